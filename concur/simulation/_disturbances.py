"""Forces on a robot that its law does not expect: wrenches on bodies, and gravity gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array, as_floats, finite_floats
from concur.errors import SimulationError, shown
from concur.robot import Tree, check_name, cross, jacobian, pose
from concur.tables import Time, Vector3, one_of

FRAMES = ("world", "body")


@dataclass(frozen=True)
class Wrench:
    """A constant force and torque on a body: a thruster, a steady pull, or a push for some time.

    Parameters
    ----------
    name : str
        Name of the disturbance.
    body : str
        The body.
    force, torque : tuple of float
        Force, N, and torque about its point, N m, shapes (3,).
    point : tuple of float
        Point of the force in the body's frame, m, shape (3,).
    frame : {"world", "body"}
        Axes of force and torque: "body" for a thruster, which turns with its body.
    start, end : float
        Times at which it begins and ends, s; in a step of integration that contains one of them it
        acts with the mean over the step, so that the impulse is exact. Default: always.

    Raises
    ------
    DescriptionError
        If name or body is not a name.
    SimulationError
        If a number or the frame is invalid.

    Examples
    --------
    >>> import concur as cc
    >>> push = cc.simulation.Wrench("push", "chassis", force=(20, 0, 0), start=2.0, end=2.1)
    >>> push.frame
    'world'
    """

    name: str
    body: str
    force: Vector3 = (0.0, 0.0, 0.0)
    torque: Vector3 = (0.0, 0.0, 0.0)
    point: Vector3 = (0.0, 0.0, 0.0)
    frame: Annotated[str, one_of(FRAMES)] = "world"
    start: Time = 0.0
    end: Time = np.inf

    def __post_init__(self) -> None:
        where = f"wrench `{shown(self.name)}`"
        for name in ("name", "body"):
            check_name(getattr(self, name), f"{where}, `{name}`")
        for part in ("force", "torque", "point"):
            object.__setattr__(self, part, _vector(f"{where}, `{part}`", getattr(self, part)))
        times = {name: as_floats(getattr(self, name), where) for name in ("start", "end")}
        for name, time in times.items():
            object.__setattr__(self, name, float(time) if time.shape == () else np.nan)
        for part, sound, wanted in (
            ("frame", self.frame in FRAMES, " or ".join(FRAMES)),
            ("start", 0.0 <= self.start < np.inf, "a time, s"),
            ("end", self.end > self.start, f"a time after {self.start:g} s"),
        ):
            if not sound:
                raise SimulationError(
                    f"{where}, `{part}`",
                    expected=wanted,
                    came=shown(getattr(self, part)),
                    cure="Omit it for a wrench in world axes that always acts.",
                )


@dataclass(frozen=True)
class GravityGradient:
    """Gravity gradient of a circular orbit, on each body of a robot.

    A mass element at the distance r from the robot's centre of mass is pulled by
    ``rate^2 (3 e (e . r) - r)`` per mass; the torque on the whole is ``3 rate^2 e x I e``. Masses
    are those of the nominal robot, and e is constant: for runs that are short against the orbit.

    Parameters
    ----------
    rate : float
        Angular rate of the orbit, rad/s: 1.1e-3 in low Earth orbit.
    direction : tuple of float
        Direction e from the centre of the orbit, in world axes, shape (3,), of any length.

    Raises
    ------
    SimulationError
        If the rate is negative or the direction is zero.

    Examples
    --------
    >>> import concur as cc
    >>> cc.simulation.GravityGradient(rate=1e-3).rate
    0.001
    """

    rate: Time
    direction: Vector3 = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        where = "gravity gradient"
        e = np.array(_vector(f"{where}, `direction`", self.direction))
        object.__setattr__(self, "rate", float(finite_floats(self.rate, f"{where}, `rate`", ())))
        if not (np.linalg.norm(e) > 0.0 and 0.0 <= self.rate < np.inf):
            raise SimulationError(
                where,
                expected="a rate of zero or more, rad/s, and a direction",
                came=f"{shown(self.rate)}, {shown(self.direction)}",
                cure="In low Earth orbit the rate is about 1.1e-3 rad/s.",
            )
        object.__setattr__(self, "direction", tuple((e / np.linalg.norm(e)).tolist()))


Disturbance: TypeAlias = Wrench | GravityGradient


def active_share(wrench: Wrench, t: Any, h: float) -> Any:
    """Share of a wrench that acts at the start, the middle and the end of a step; None: always.

    Of a wrench that begins or ends in the step the shares are those of the line in time that has
    its impulse and the moment of its impulse: so speeds and places at the end are those of the
    wrench itself, up to the third power of the step.
    """
    if wrench.start == 0.0 and wrench.end == np.inf:
        return None
    late, early = ca.fmax(wrench.start - t, 0.0), ca.fmax(t + h - wrench.end, 0.0)
    mean = ca.fmax(h - late - early, 0.0) / h
    slope = 3.0 * mean * (late - early) / h
    return ca.horzcat(mean - slope, mean, mean + slope)


def wrench_force(wrench: Wrench, tree: Tree, q: Array, force: Array, torque: Array) -> Array:
    """Generalised force J^T f of a force and a torque, shape (nv,)."""
    if wrench.frame == "world":
        turn = pose(tree, q, wrench.body)[:3, :3]
        force, torque = turn.T @ force, turn.T @ torque
    torque = torque + cross(ca.SX(ca.DM(wrench.point)), force)
    return jacobian(tree, q, wrench.body).T @ ca.vertcat(force, torque)


def wrench_on_base(wrench: Wrench, tree: Tree, q: Array, force: Array, torque: Array) -> Array:
    """Force and torque about the origin and along the axes of the base, shape (6,)."""
    own, base = pose(tree, q, wrench.body), pose(tree, q, tree.base.name)
    if wrench.frame == "body":
        force, torque = own[:3, :3] @ force, own[:3, :3] @ torque
    arm = own[:3, 3] + own[:3, :3] @ ca.DM(wrench.point) - base[:3, 3]
    turn = base[:3, :3].T
    return ca.vertcat(turn @ force, turn @ (torque + cross(arm, force)))


def gradient_force(gradient: GravityGradient, tree: Tree, q: Array) -> Array:
    """Generalised force, shape (nv,)."""
    e = ca.SX(ca.DM(gradient.direction))
    seen = []
    for body in tree.bodies:
        own = body.inertia
        if own.mass:
            at = pose(tree, q, body.name)
            place = at[:3, 3] + at[:3, :3] @ ca.DM(own.com)
            seen.append((body, own, at[:3, :3], place))
    total = sum(own.mass for _, own, _, _ in seen)
    centre = sum((own.mass * place for _, own, _, place in seen), ca.SX(3, 1)) / total
    force = ca.SX(tree.nv, 1)
    for body, own, turn, place in seen:
        way = place - centre
        pull = turn.T @ (own.mass * (3.0 * e * ca.dot(e, way) - way))
        seen_e = turn.T @ e
        twist = 3.0 * cross(seen_e, ca.DM(own.tensor) @ seen_e) + cross(ca.SX(ca.DM(own.com)), pull)
        force += jacobian(tree, q, body.name).T @ ca.vertcat(pull, twist)
    return gradient.rate**2 * force


def _vector(where: str, values: Any) -> tuple[float, ...]:
    return tuple(finite_floats(values, where, (3,)).tolist())
