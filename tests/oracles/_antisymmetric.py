"""Antisymmetric matrices of expressions: two-forms of coadjoint orbits, of size 0, 2 or 4."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array

_EVEN = ((0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 2, 0, 3), (1, 3, 2, 0), (2, 3, 0, 1))
"""Even permutations of four: each pair, then the other two in the order of its sign."""


def pfaffian(form: Array) -> Array:
    """Signed square root of the determinant of an antisymmetric matrix of size 0, 2 or 4."""
    if form.shape[0] == 0:
        return ca.SX(1)
    if form.shape[0] == 2:
        return form[0, 1]
    return form[0, 1] * form[2, 3] - form[0, 2] * form[1, 3] + form[0, 3] * form[1, 2]


def solve_antisymmetric(form: Array, right: Array) -> Array:
    """Solve form @ x = right in closed form, without a pivot that could vanish."""
    if form.shape[0] == 0:
        return ca.SX(0, 1)
    if form.shape[0] == 2:
        return ca.vertcat(-right[1], right[0]) / form[0, 1]
    dual = ca.SX(4, 4)
    for i, j, k, m in _EVEN:
        dual[i, j], dual[j, i] = -form[k, m], form[k, m]
    return dual @ right / pfaffian(form)
