"""Whether constraints on velocities are constraints on configurations: Frobenius' test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ReductionError, shown
from concur.formulations._lagrangian import LagrangianSystem
from concur.robot import Mechanism

VANISHES = 1e-8
"""Part of a bracket, relative to its terms, below which it counts as zero."""

DEEPEST = 6
"""Brackets within brackets that are taken at most."""

Field = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Integrability:
    """Result of `integrability`, at one configuration.

    Parameters
    ----------
    names : tuple of str
        Names of the constraints, (nf,).
    velocity_names : tuple of str
        Names of the velocities, (nv,).
    growth : tuple of int
        Dimension of the admissible velocities, then of those with brackets, brackets of brackets
        and so on, as long as it grows.
    motions : numpy.ndarray
        Admissible velocities, orthonormal in the kinetic energy, shape (nv, k).
    curvature : numpy.ndarray
        C [X_I, X_J] for fields of admissible velocities with these values, shape (nf, k, k): the
        Hamel coefficients of the constraints, (23), which are zero for holonomic ones.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.formulations import integrability
    >>> integrability(cc.robots.rover_arm()).growth
    (5, 6, 7)
    """

    names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    growth: tuple[int, ...]
    motions: np.ndarray
    curvature: np.ndarray

    @property
    def integrable(self) -> bool:
        """Whether all constraints together are holonomic: (25)."""
        return len(self.growth) == 1

    @property
    def holonomic(self) -> int:
        """Number of independent combinations of the constraints that are holonomic."""
        return len(self.velocity_names) - self.growth[-1]

    def __str__(self) -> str:
        nf = len(self.names)
        if self.integrable:
            return f"{nf} constraints, holonomic: brackets of admissible velocities are admissible"
        row, i, j = np.unravel_index(np.abs(self.curvature).argmax(), self.curvature.shape)

        return (
            f"{nf} constraints, {self.holonomic} of them holonomic; velocities and brackets span "
            f"{', '.join(map(str, self.growth))} of {len(self.velocity_names)} dimensions. "
            f"`{self.names[int(row)]}` is broken most, by the bracket of motions {i} and {j}: "
            f"{self.curvature[row, i, j]:.3g}"
        )


def integrability(
    system: LagrangianSystem | Mechanism, q: ArrayLike | None = None
) -> Integrability:
    """Test whether the constraints C(q) v = 0 of a system are holonomic, by Frobenius' theorem.

    They are if the bracket of two fields of admissible velocities is admissible. If not, brackets
    are repeated until their span no longer grows: constraints that this span keeps too are
    holonomic, as the height of a rolling ball.

    Parameters
    ----------
    system : LagrangianSystem or Mechanism
        The system, with constraints.
    q : array_like, optional
        Configuration, shape (nq,); default a random one. At special configurations the span may
        be smaller.

    Returns
    -------
    Integrability
        The result, with the curvature that breaks the constraints.

    Raises
    ------
    ReductionError
        If it is another object, or has no constraints.
    ShapeError, NonFiniteError
        If the configuration does not fit.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.formulations import integrability
    >>> integrability(cc.robots.rover_arm()).growth[:2]
    (5, 6)
    """
    if not isinstance(system, LagrangianSystem | Mechanism) or not system.nf:
        raise ReductionError(
            "integrability, `system`",
            expected="a LagrangianSystem or a Mechanism with constraints",
            came=shown(system),
            cure="A system without constraints needs no test.",
        )
    bare = system.unframed if isinstance(system, LagrangianSystem) else system
    rng = np.random.default_rng(7)
    at = np.asarray(bare.random(rng) if q is None else bare.check_configuration(q, "`q`"))
    rows, mass = np.asarray(bare.constraints(at)), np.asarray(bare.mass_matrix(at))
    factor = np.linalg.cholesky(mass)
    kernel = np.linalg.svd(np.linalg.solve(factor, rows.T).T)[2][len(rows) :]
    motions = np.linalg.solve(factor.T, kernel.T)
    # An easy lift of the values at q to fields: the part that obeys the constraints elsewhere.
    lifted = np.linalg.solve(mass, rows.T)
    fields = [_field(bare, lifted, column) for column in motions.T]
    span, growth = motions, [motions.shape[1]]
    last = list(range(len(fields)))
    curvature = np.zeros((len(rows), len(fields), len(fields)))
    known = fields.copy()
    for depth in range(DEEPEST):
        fresh = list[int]()
        for i in range(len(fields)):
            for j in last:
                if depth == 0 and j <= i:
                    continue
                bracket = _bracket(bare, known[i], known[j])
                terms = _values(bare, bracket, at)
                found = terms.sum(axis=1)
                if depth == 0:
                    curvature[:, i, j] = rows @ found
                    curvature[:, j, i] = -curvature[:, i, j]
                rest = found - span @ (span.T @ (mass @ found))
                sizes = np.sqrt(np.einsum("ik,ij,jk->k", terms, mass, terms)).sum()
                size = float(np.sqrt(rest @ mass @ rest))
                if size > VANISHES * sizes:
                    span = np.column_stack([span, rest / size])
                    fresh.append(len(known))
                    known.append(partial(_total, bracket))
        if not fresh:
            break
        growth.append(span.shape[1])
        last = fresh
    return Integrability(
        tuple(system.constraint_names), bare.freedom_names, tuple(growth), motions, curvature
    )


def _field(system: Any, lifted: np.ndarray, value: np.ndarray) -> Field:
    """Field of admissible velocities with a value: value - L (C L)^-1 C value, for constant L."""

    def field(q: Array) -> Array:
        rows = system.constraints(q)
        off = ca.solve(rows @ ca.DM(lifted), rows @ ca.DM(value))
        return ca.DM(value) - ca.DM(lifted) @ off

    return field


def _bracket(system: Any, one: Field, other: Field) -> Callable[[Array], tuple[Array, ...]]:
    """Terms of the bracket of two fields: the derivatives along each other, and the algebra's."""

    def terms(q: Array) -> tuple[Array, ...]:
        a, b = ca.densify(one(q)), ca.densify(other(q))
        along = (ca.densify(system.rate(q, v)) for v in (a, b))
        forth, back = (ca.jtimes(x, q, y) for x, y in zip((b, a), along, strict=True))
        return forth, -back, system.bracket(a, b)

    return terms


def _total(terms: Callable[[Array], tuple[Array, ...]], q: Array) -> Array:
    """Sum of the terms of a bracket."""
    forth, back, own = terms(q)
    return forth + back + own


def _values(system: Any, terms: Callable[[Array], tuple[Array, ...]], q: np.ndarray) -> np.ndarray:
    """Values of the terms of a bracket, shape (nv, 3)."""
    symbol = ca.SX.sym("q", system.nq)
    graph = ca.Function("terms", [symbol], [ca.densify(ca.horzcat(*terms(symbol)))], {"cse": True})
    return np.array(graph(q))
