"""Reduction by wheels: rolling constraints give the base's velocity from the shape's."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from concur.codegen import Scalar, Vector, evaluated
from concur.reduction._constraints import ConstraintReduction
from concur.reduction._dependents import freedom_scales
from concur.robot import side_of_factor, wheel_rows


@dataclass(frozen=True, repr=False)
class WheelReduction(ConstraintReduction):
    """A rolling robot in its shape velocities: Chaplygin's lift, (4.3.25).

    Made by `reduce`. The rolling constraints C v = 0 give the dependent velocities:
    ``H = [-C_d^-1 C_s; 1]``, ``h = 0``.

    Parameters
    ----------
    system : Mechanism
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

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> model.kind, model.shape_names
    ('chaplygin', ('left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm'))
    """

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        # Smallest over largest pivot of the dependent columns, angles counted in metres. A
        # row has a part of size one, the direction that does not slip: pivots that are all small
        # are singular too.
        columns, found = self._in_metres(q), ca.SX(1)
        if not columns.is_constant():
            pivots = ca.fabs(ca.diag(ca.qr_sparse(columns)[1]))
            found = ca.mmin(pivots) / ca.fmax(1.0, ca.mmax(pivots))
        for wheel in self.robot.wheels:
            if wheel.support is not None:  # zero for a disk that lies flat
                found = ca.fmin(found, wheel_rows(self.robot, q, wheel).upright)
        return found

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        columns = self._in_metres(q)
        return ca.SX(1) if columns.is_constant() else side_of_factor(ca.qr_sparse(columns)[2])

    def _in_metres(self, q: Vector) -> ca.SX:
        """Columns of the dependent velocities, angles counted in metres."""
        scales = ca.SX(ca.DM(freedom_scales(self.robot)[list(self.dependent)]))
        return ca.mtimes(self._columns(q)[1], ca.diag(scales))
