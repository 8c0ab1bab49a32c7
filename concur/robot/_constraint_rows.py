"""Rows of rolling constraints and couplings."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from concur.codegen import Matrix, Vector
from concur.robot import _controls, _rolling
from concur.robot._tree import Tree


def constraint_rows(tree: Tree, q: Vector, kept: Sequence[int]) -> Matrix:
    """Rows of all wheels and couplings; those that are kept."""
    rows = [_rolling.wheel_rows(tree, q, wheel).rows for wheel in tree.wheels]
    coupled = _controls.coupling_rows(tree, q)
    return ca.vertcat(ca.SX(0, tree.nv), *rows, coupled)[list(kept), :]
