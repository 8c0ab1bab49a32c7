"""Joints that follow others: the shape velocities of a reduced model without theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Scalar, Vector, evaluated
from concur.dynamics import solve_positive_definite
from concur.kinematics import constant
from concur.multibody import Mechanism
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel
from concur.system import System


@dataclass(frozen=True)
class CoupledReduction(ReducedModel):
    """A reduced model in which some joints follow others: lifts compose, ``v = H1 P s + h1``.

    Made by `reduce` for a robot with `mimics` and without wheels. The matrix P is constant: it has
    the identity in the rows of the shape velocities, and the multipliers in those of joints that
    follow. With wheels the couplings are rows of the constraints.

    Parameters
    ----------
    system : Mechanism
        The robot.
    kind : str
        As of the model before.
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of those that the lift gives.
    reason : str
        Why this reduction was taken.
    inner : ReducedModel
        The model before, whose shape has all joints.

    See Also
    --------
    reduce : makes one.
    """

    inner: ReducedModel

    @property
    def first(self) -> ReducedModel:
        return self.inner.first

    @property
    def takes_momentum(self) -> bool:
        return self.inner.takes_momentum

    def at_momentum(self, momentum: ArrayLike) -> CoupledReduction:
        return coupled(self.inner.at_momentum(momentum))

    def on(self, robot: System) -> CoupledReduction:
        return replace(self, system=robot, inner=self.inner.on(robot))

    @evaluated("(nq),(ns),(nm)->(nv)")
    def velocity_at(self, q: Vector, s: Vector, momentum: Vector) -> Vector:
        return self.inner.velocity_at(q, self._coupling @ s, momentum)

    @evaluated("(nq)->(nv,ns),(nv)")
    def lift(self, q: Vector) -> tuple[Matrix, Vector]:
        horizontal, drift = self.inner.lift(q)
        return horizontal @ self._coupling, drift

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        return self.inner.regularity(q)

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        return self.inner.side(q)

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        return self.inner.velocity_drift(q, v)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Vector) -> Matrix:
        coupling = self._coupling
        return ca.triu2symm(ca.triu(coupling.T @ self.inner.mass_matrix(q) @ coupling))

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Vector, v: Vector, sdot: Vector) -> Vector:
        return self._coupling.T @ self.inner.shape_forces(q, v, self._coupling @ sdot)

    @evaluated("(nq),(ns),(nu)->(nv),(ns)")
    def vector_field(self, q: Vector, p: Vector, u: Vector) -> tuple[Vector, Vector]:
        s = solve_positive_definite(self.mass_matrix(q), p)
        v = self.velocity(q, s)
        turning = along(self.mass_matrix, q, self.robot.rate(q, v))
        return v, turning @ s + self.input_matrix(q) @ u - self.bias(q, s)

    def momentum_fields(self, q: Vector) -> Array:
        return self.first.momentum_fields(q)

    @property
    def _coupling(self) -> Array:
        """Matrix P, shape (inner.ns, ns)."""
        robot, places = self.robot, {i: k for k, i in enumerate(self.inner.shape)}
        rows = np.zeros((self.inner.ns, self.ns))
        for column, i in enumerate(self.shape):
            rows[places[i], column] = 1.0
        for mimic in robot.mimics:  # each after the joint that it follows
            follower, other = robot.freedoms(mimic.body, mimic.of)
            rows[places[follower]] = mimic.multiplier * rows[places[other]]
        return constant(rows)


def coupled(model: ReducedModel) -> CoupledReduction:
    """Take the joints that follow others out of the shape of a model."""
    robot = model.robot
    shape = tuple(i for i in model.shape if i not in robot.followers)
    dependent = tuple(i for i in range(robot.nv) if i not in shape)
    reason = model.reason + following(robot)
    return CoupledReduction(robot, model.kind, shape, dependent, reason, model)


def following(robot: Mechanism) -> str:
    """Clause that names the joints that follow others; empty without such."""
    pairs = [f"{mimic.body} follows {mimic.of}" for mimic in robot.mimics]
    return "; " + ", ".join(pairs) if pairs else ""
