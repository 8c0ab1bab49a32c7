"""Joints that follow others, or wheels on a hull: the shape of a model without their velocities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Scalar, Vector, constant, evaluated
from concur.reduction._constraints import WheelReduction
from concur.reduction._model import ReducedModel
from concur.robot import Mechanism
from concur.system import System


@dataclass(frozen=True, repr=False)
class CoupledReduction(ReducedModel):
    """A reduced model in which some joints follow others: lifts compose, ``v = H1 P s + h1``.

    Made by `reduce` for a robot with `mimics` and without wheels, or with wheels that roll on a
    body of a robot that floats. Without wheels the matrix P is constant: it has
    the identity in the rows of the shape velocities, and the multipliers in those of joints that
    follow. With wheels P(q) is the lift of their constraints, in the rows of the joints: these
    constraints do not contain the velocity of the base, so their forces keep the momentum.

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
    wheels : WheelReduction, optional
        The model of the wheels alone, whose shape has the base's velocities too.

    See Also
    --------
    reduce : makes one.
    """

    inner: ReducedModel
    wheels: WheelReduction | None = None

    @property
    def first(self) -> ReducedModel:
        return self.inner.first

    @property
    def wheel_dependents(self) -> tuple[int, ...]:
        return self.wheels.dependent if self.wheels else self.inner.wheel_dependents

    def at_momentum(self, momentum: ArrayLike) -> CoupledReduction:
        inner = self.inner.at_momentum(momentum)
        return rolling(inner, self.wheels) if self.wheels else coupled(inner)

    def on(self, robot: System) -> CoupledReduction:
        wheels = replace(self.wheels, system=robot) if self.wheels else None
        return replace(self, system=robot, inner=self.inner.on(robot), wheels=wheels)

    @evaluated("(nq),(nm)->(nv,ns),(nv)")
    def lift(self, q: Vector, momentum: Vector | None = None) -> tuple[Matrix, Vector]:
        horizontal, drift = self.inner.lift(q, momentum)
        return horizontal @ self._coupling(q), drift

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        before = self.inner.regularity(q)
        return ca.fmin(before, self.wheels.regularity(q)) if self.wheels else before

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        before = self.inner.side(q)
        return before * self.wheels.side(q) if self.wheels else before

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        drift = self.inner.velocity_drift(q, v)
        return drift + self.inner.lift(q)[0] @ self._turning(q, v) if self.wheels else drift

    @evaluated("(nq),(nv),(nv)->(nv)")
    def following_drift(self, q: Vector, v: Vector, w: Vector) -> Vector:
        drift = self.inner.following_drift(q, v, w)
        return drift + self.inner.lift(q)[0] @ self._turning(q, v, w) if self.wheels else drift

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Vector) -> Matrix:
        coupling = self._coupling(q)
        return ca.triu2symm(ca.triu(coupling.T @ self.inner.mass_matrix(q) @ coupling))

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Vector, v: Vector, sdot: Vector) -> Vector:
        coupling = self._coupling(q)
        turning = self._turning(q, v) if self.wheels else 0.0
        return coupling.T @ self.inner.shape_forces(q, v, coupling @ sdot + turning)

    def _turning(self, q: Vector, v: Vector, w: Vector | None = None) -> Array:
        """Pdot s along v of the shape velocities in w, by default in v, shape (inner.ns,)."""
        assert self.wheels is not None
        drift = self.wheels.following_drift(q, v, v if w is None else w)
        return drift[list(self.inner.shape), :]

    def _coupling(self, q: Vector) -> Array:
        """Matrix P, shape (inner.ns, ns)."""
        if self.wheels:
            columns = [self.wheels.shape.index(i) for i in self.shape]
            return self.wheels.lift(q)[0][list(self.inner.shape), columns]
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


def rolling(model: ReducedModel, wheels: WheelReduction) -> CoupledReduction:
    """Take the velocities that follow from wheels on a hull out of the shape of a model."""
    shape = tuple(i for i in model.shape if i not in wheels.dependent)
    dependent = tuple(i for i in range(model.nv) if i not in shape)
    reason = f"{model.reason}; {wheels.reason}"
    return CoupledReduction(model.system, model.kind, shape, dependent, reason, model, wheels)


def following(robot: Mechanism) -> str:
    """Clause that names the joints that follow others; empty without such."""
    pairs = [f"{mimic.body} follows {mimic.of}" for mimic in robot.mimics]
    pairs += [f"{s.wheel} follows {' and '.join(s.guides)}" for s in robot.steering]
    return "; " + ", ".join(pairs) if pairs else ""
