"""Reduction by wheels: rolling constraints give the base's velocity from the shape's."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, evaluated
from concur.dynamics import side_of_factor
from concur.kinematics import constant
from concur.reduction._dependents import freedom_scales
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel


@dataclass(frozen=True)
class WheelReduction(ReducedModel):
    """A rolling robot in its shape velocities: Chaplygin's lift, (4.3.25).

    Made by `reduce`. The rolling constraints C v = 0 give the dependent velocities:
    ``H = [-C_d^-1 C_s; 1]``, ``h = 0``.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    kind : str
        "chaplygin", or "constrained" without the symmetry.
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of those that the wheels give.
    reason : str
        Why this reduction was taken.

    See Also
    --------
    reduce : makes one.
    """

    @evaluated("(nq)->(nv,ns),(nv)")
    def lift(self, q: Array) -> tuple[Array, Array]:
        horizontal = self._on_shape()
        constraints = self.robot.constraints(q)
        own, shape = constraints[:, list(self.dependent)], constraints[:, list(self.shape)]
        horizontal[list(self.dependent), :] = -_solve_rows(own, shape)
        return horizontal, ca.SX(self.nv, 1)

    @evaluated("(nq)->()")
    def regularity(self, q: Array) -> Array:
        # Smallest over largest pivot of the dependent columns, angles counted in metres. A
        # row has a part of size one, the direction that does not slip: pivots that are all small
        # are singular too.
        columns = self._dependent_columns(q)
        if columns.is_constant():
            return ca.SX(1)
        pivots = ca.fabs(ca.diag(ca.qr_sparse(columns)[1]))
        return ca.mmin(pivots) / ca.fmax(1.0, ca.mmax(pivots))

    @evaluated("(nq)->()")
    def side(self, q: Array) -> Array:
        columns = self._dependent_columns(q)
        return ca.SX(1) if columns.is_constant() else side_of_factor(ca.qr_sparse(columns)[2])

    def _dependent_columns(self, q: Array) -> Array:
        """Columns of the dependent velocities, angles counted in metres."""
        dependent = list(self.dependent)
        scales = ca.SX(ca.DM(freedom_scales(self.robot)[dependent]))
        return ca.mtimes(self.robot.constraints(q)[:, dependent], ca.diag(scales))

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Array, v: Array) -> Array:
        acceleration = ca.SX(self.nv, 1)
        constraints = self.robot.constraints(q)
        turning = along(self.robot.constraints, q, self.robot.rate(q, v)) @ v
        own = constraints[:, list(self.dependent)]
        acceleration[list(self.dependent)] = -_solve_rows(own, turning)
        return ca.sparsify(acceleration)


def _solve_rows(own: Array, right: Array) -> Array:
    """Solve for the dependent velocities; in numbers when the wheels' geometry is constant."""
    if own.is_constant() and right.is_constant():
        solution = np.linalg.solve(np.array(ca.DM(own)), np.array(ca.DM(right)))
        solution[np.abs(solution) < 1e-15 * np.abs(solution).max(initial=0.0)] = 0.0
        return constant(solution)
    return ca.solve(own, right)
