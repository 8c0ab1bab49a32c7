"""Reduction by constraints: C v = 0, such as rolling, gives some velocities from the others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import casadi as ca
import numpy as np

from concur.codegen import Array, Matrix, Scalar, Vector, constant, evaluated
from concur.errors import ReductionError
from concur.reduction._dependents import freedom_scales
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel
from concur.robot import (
    control_velocities,
    side_of_factor,
    solve_positive_definite,
    wheel_rows,
)
from concur.system import System

REGULAR = 1e-9
"""Regularity below which no velocities are chosen to follow."""


@dataclass(frozen=True, repr=False)
class ConstraintReduction(ReducedModel):
    """A system in the shape velocities that its constraints leave: ``H = [-C_d^-1 C_s; 1]``."""

    @evaluated("(nq),(nm)->(nv,ns),(nv)")
    def lift(self, q: Vector, momentum: Vector | None = None) -> tuple[Matrix, Vector]:
        horizontal = self._on_shape()
        constraints = self.system.constraints(q)
        own, shape = constraints[:, list(self.dependent)], constraints[:, list(self.shape)]
        horizontal[list(self.dependent), :] = -_solve_rows(own, shape)
        return horizontal, ca.SX(self.nv, 1)

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        # Angle, in the kinetic energy, between the constraint forces and the dependent
        # velocities: the same in all units of rows and velocities.
        mass, rows, dependent = self.system.mass_matrix(q), *self._columns(q)
        own = mass[list(self.dependent), list(self.dependent)]
        size = ca.det(rows @ solve_positive_definite(mass, rows.T)) * ca.det(own)
        return ca.fabs(ca.det(dependent)) / ca.sqrt(size)

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        return ca.sign(ca.det(self._columns(q)[1]))

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        return self.following_drift(q, v, v)

    @evaluated("(nq),(nv),(nv)->(nv)")
    def following_drift(self, q: Vector, v: Vector, w: Vector) -> Vector:
        acceleration = ca.SX(self.nv, 1)
        turning = along(self.system.constraints, q, self.system.rate(q, v)) @ w
        acceleration[list(self.dependent)] = -_solve_rows(self._columns(q)[1], turning)
        return ca.sparsify(acceleration)

    def _columns(self, q: Vector) -> tuple[Array, Array]:
        """Constraints, and their columns of the dependent velocities."""
        rows = self.system.constraints(q)
        return rows, rows[:, list(self.dependent)]


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


def by_constraints(system: System, samples: list[np.ndarray]) -> ConstraintReduction:
    """Reduce a system by the dependent velocities with few drives and the best worst regularity."""
    driven = _driven(system)
    masses = np.array([system.mass_matrix(q) for q in samples])
    rows = np.array([system.constraints(q) for q in samples])
    sizes = np.linalg.det(rows @ np.linalg.solve(masses, rows.transpose(0, 2, 1)))
    best: tuple[tuple[int, bool, float], tuple[int, ...]] | None = None
    for dependent in combinations(range(system.nv), system.nf) if system.nf < system.nv else ():
        own = np.linalg.det(masses[:, dependent][:, :, dependent])
        sides = np.linalg.det(rows[:, :, dependent])
        with np.errstate(divide="ignore", invalid="ignore"):
            quality = float(f"{np.min(np.abs(sides) / np.sqrt(sizes * own)):.1e}")
        key = -len(driven & set(dependent)), len(set(np.sign(sides))) == 1, quality
        if quality > REGULAR and (best is None or key > best[0]):
            best = key, dependent
    if best is None:
        raise ReductionError(
            f"robot `{system.name}`, `constraints`",
            expected=f"fewer independent constraints than the {system.nv} velocities",
            came=f"{system.nf} that determine no choice of velocities: "
            f"{', '.join(system.constraint_names)}",
            cure="Leave out constraints that follow from others.",
        )
    dependent = best[1]
    shape = tuple(i for i in range(system.nv) if i not in dependent)
    names = ", ".join(system.freedom_names[i] for i in dependent)
    reason = f"{system.nf} independent constraints determine {names}"
    return ConstraintReduction(system, "constrained", shape, dependent, reason)


def _driven(system: System) -> set[int]:
    """Indices in v of the velocities along which controls push."""
    q = ca.SX.sym("q", system.nq)
    columns = ca.SX(control_velocities(system, q, ca.SX.eye(system.nv)))
    return set(ca.sparsify(columns).sparsity().get_triplet()[1])


def _solve_rows(own: ca.SX, right: ca.SX) -> Array:
    """Solve for the dependent velocities; in numbers when the constraints are constant."""
    if own.is_constant() and right.is_constant():
        solution = np.linalg.solve(np.array(ca.DM(own)), np.array(ca.DM(right)))
        solution[np.abs(solution) < 1e-15 * np.abs(solution).max(initial=0.0)] = 0.0
        return constant(solution)
    return ca.solve(own, right)
