"""Coordinates of whole robots in MuJoCo, Pinocchio and Drake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import attitude_error, finite_floats
from concur.errors import DescriptionError, ShapeError, shown
from concur.interop._chains import urdf_joints
from concur.interop._parts import (
    Array,
    Part,
    drake_part,
    mujoco_part,
    pinocchio_part,
    standing_part,
)
from concur.robot import Body, Tree, joints


@dataclass(frozen=True)
class Order:
    """How a library writes configurations, velocities and forces of a robot.

    Made by `mujoco`, `pinocchio` and `drake`. The methods `to_...` convert to the library,
    `from_...` back; `q` is always the robot's own configuration.

    Parameters
    ----------
    library : str
        Name of the library.
    robot : Tree
        The robot.
    bodies : tuple of str
        Bodies whose joints move, in the library's order.
    parts : mapping
        Conversion of each joint, by body.
    """

    library: str
    robot: Tree
    bodies: tuple[str, ...]
    parts: Mapping[str, Part] = field(repr=False)

    @property
    def nq(self) -> int:
        """Number of coordinates in the library."""
        return sum(self.parts[name].nq for name in self.bodies)

    @property
    def nv(self) -> int:
        """Number of velocities in the library; more than the robot's with wheels in MuJoCo."""
        sizes = (len(self.robot.freedoms(body)) for body in self.bodies)
        return sum(self.parts[b].size(n) for b, n in zip(self.bodies, sizes, strict=True))

    def to_q(self, q: ArrayLike) -> Array:
        """Convert a configuration.

        Parameters
        ----------
        q : array_like
            Configuration of the robot, shape (nq,), m and rad.

        Returns
        -------
        numpy.ndarray
            Coordinates in the library, shape (`Order.nq`,), m and rad.
        """
        return _joined(part.to_q(own) for _, own, part in self._each(q))

    def from_q(self, position: ArrayLike) -> Array:
        """Convert coordinates of the library; angles on circles come back within pi.

        Parameters
        ----------
        position : array_like
            Coordinates in the library, shape (`Order.nq`,), m and rad.

        Returns
        -------
        numpy.ndarray
            Configuration of the robot, shape (nq,), m and rad.

        Raises
        ------
        ShapeError
            If a quaternion, or a pair of cosine and sine, is not of unit norm within 1e-3.
        """
        theirs = self._checked(position, "position", self.nq)
        ours, at = self.robot.neutral(), 0
        for body in self.bodies:
            part = self.parts[body]
            ours[self.robot.q_slice(body)] = part.from_q(theirs[at : at + part.nq])
            at += part.nq
        if np.isnan(ours).any():
            raise ShapeError(
                f"Order of {self.library}, `position`",
                expected="cosine and sine of each angle on a circle, squares with the sum 1",
                came=shown(theirs.tolist(), 200),
                cure="Normalise them; the neutral angle is (1, 0).",
            )
        self._check_attitude(ours, "position, converted to q")
        return ours

    def velocity_map(self, q: ArrayLike) -> Array:
        """Map from velocities of the robot to those of the library.

        Parameters
        ----------
        q : array_like
            Configuration of the robot, shape (nq,), m and rad.

        Returns
        -------
        numpy.ndarray
            Matrix T, shape (`Order.nv`, nv): v of the library = T v. A mass matrix M of the
            library is T' M T in velocities of the robot.
        """
        blocks = []
        for span, own, part in self._each(q):
            rows = np.zeros((part.size(len(span)), self.robot.nv))
            rows[:, span] = part.map(own, len(span))
            blocks.append(rows)
        return np.vstack([np.zeros((0, self.robot.nv)), *blocks])

    def to_v(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Convert a velocity.

        Parameters
        ----------
        q, v : array_like
            Configuration (nq,) and velocity (nv,) of the robot, m, rad, m/s, rad/s.

        Returns
        -------
        numpy.ndarray
            Velocity in the library, shape (`Order.nv`,), m/s and rad/s.
        """
        rates = self._checked(v, "v", self.robot.nv)
        return _joined(part.map(own, len(at)) @ rates[at] for at, own, part in self._each(q))

    def from_v(self, q: ArrayLike, velocity: ArrayLike) -> Array:
        """Convert a velocity of the library.

        Parameters
        ----------
        q : array_like
            Configuration of the robot, shape (nq,), m and rad.
        velocity : array_like
            Velocity in the library, shape (`Order.nv`,), m/s and rad/s.

        Returns
        -------
        numpy.ndarray
            Velocity of the robot, shape (nv,), m/s and rad/s.
        """
        return self._back(q, velocity, "velocity", lambda part, own, n: part.inverse(own, n))

    def to_force(self, q: ArrayLike, tau: ArrayLike) -> Array:
        """Convert generalized forces; their power is the same.

        Parameters
        ----------
        q, tau : array_like
            Configuration (nq,) and generalized forces (nv,) of the robot, m, rad, N, N m.

        Returns
        -------
        numpy.ndarray
            Generalized forces in the library, shape (`Order.nv`,), N and N m.
        """
        forces = self._checked(tau, "tau", self.robot.nv)
        return _joined(part.inverse(own, len(at)).T @ forces[at] for at, own, part in self._each(q))

    def from_force(self, q: ArrayLike, force: ArrayLike) -> Array:
        """Convert generalized forces of the library.

        Parameters
        ----------
        q : array_like
            Configuration of the robot, shape (nq,), m and rad.
        force : array_like
            Generalized forces in the library, shape (`Order.nv`,), N and N m.

        Returns
        -------
        numpy.ndarray
            Generalized forces of the robot, shape (nv,), N and N m.
        """
        return self._back(q, force, "force", lambda part, own, n: part.map(own, n).T)

    def to_acceleration(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Convert an acceleration: derivative of `to_v`.

        Parameters
        ----------
        q, v, vdot : array_like
            Configuration (nq,), velocity (nv,) and acceleration (nv,) of the robot, SI units.

        Returns
        -------
        numpy.ndarray
            Acceleration in the library, shape (`Order.nv`,), m/s^2 and rad/s^2.
        """
        return np.asarray(self.to_v(q, vdot) + self._drift(q, v))

    def from_acceleration(self, q: ArrayLike, v: ArrayLike, acceleration: ArrayLike) -> Array:
        """Convert an acceleration of the library.

        Parameters
        ----------
        q, v : array_like
            Configuration (nq,) and velocity (nv,) of the robot, SI units.
        acceleration : array_like
            Acceleration in the library, shape (`Order.nv`,), m/s^2 and rad/s^2.

        Returns
        -------
        numpy.ndarray
            Acceleration of the robot, shape (nv,), m/s^2 and rad/s^2.
        """
        drift = self._drift(q, v)
        return self.from_v(q, self._checked(acceleration, "acceleration", len(drift)) - drift)

    def _drift(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Part of the acceleration in the library that is due to the rate of the map."""
        rates = self._checked(v, "v", self.robot.nv)
        return _joined(part.drift(own, rates[at]) for at, own, part in self._each(q))

    def _each(self, q: ArrayLike) -> Iterator[tuple[list[int], Array, Part]]:
        """Indices in v, own configuration and conversion of each joint."""
        ours = self._checked(q, "q", self.robot.nq)
        self._check_attitude(ours, "q")
        for body in self.bodies:
            yield self.robot.freedoms(body), ours[self.robot.q_slice(body)], self.parts[body]

    def _back(
        self, q: ArrayLike, value: ArrayLike, name: str, map: Callable[[Part, Array, int], Array]
    ) -> Array:
        """Apply a map to the part of each joint of a vector of the library."""
        theirs, ours, start = self._checked(value, name, self.nv), np.zeros(self.robot.nv), 0
        for at, own, part in self._each(q):
            size = part.size(len(at))
            ours[at] = map(part, own, len(at)) @ theirs[start : start + size]
            start += size
        return ours

    def _check_attitude(self, q: Array, name: str) -> None:
        error = attitude_error(f"Order of {self.library}", name, q, self.robot.quaternions)
        if error is not None:
            raise error

    def _checked(self, value: ArrayLike, name: str, size: int) -> Array:
        return np.array(finite_floats(value, f"Order of {self.library}, `{name}`", (size,)))


def _joined(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.zeros(0), *parts])


def mujoco(robot: Tree, order: Sequence[str] | None = None, *, free_base: bool = False) -> Order:
    """Describe the coordinates of MuJoCo's model of a robot.

    Quaternions have the scalar first. A floating base has its linear velocity in world axes and
    its angular velocity in body axes; its coordinates include the placement of the base. The
    velocity of a planar joint is in axes of the plane (two slides and a hinge).

    Parameters
    ----------
    robot : Tree
        The robot.
    order : sequence of str, optional
        Bodies whose joints move, in the order of the model. Default: depth first, as MuJoCo
        compiles a file of `Mechanism.save`.
    free_base : bool
        Whether the base, on a `Planar` joint here, has a free joint in the model, as
        `concur.writers.to_mjcf` with `contacts` writes it. `from_q` and `from_v` then project:
        they drop height and tilt.

    Returns
    -------
    Order
        The conversions.

    Raises
    ------
    DescriptionError
        If a joint is a screw, `order` does not name each moving body once, or a base that shall be
        free is not on a `Planar` joint.

    Examples
    --------
    >>> import concur as cc
    >>> from concur import interop
    >>> order = interop.mujoco(cc.robots.free_flyer())
    >>> order.to_q([1, 2, 3, 0, 0, 0, 1, *[0.5] * 6])[:7]
    array([1., 2., 3., 1., 0., 0., 0.])
    """
    names, base = order or _depth_first(robot), robot.base.joint
    if not free_base:
        return _order("MuJoCo", robot, names, lambda body: mujoco_part(robot, body))
    if not isinstance(base, joints.Planar):
        raise DescriptionError(
            f"robot `{robot.name}`, `free_base`",
            expected="a base on a Planar joint",
            came=f"one on a {type(base).__name__} joint",
            cure="Omit it.",
        )
    return _order(
        "MuJoCo",
        robot,
        names,
        lambda b: standing_part(b, base) if b is robot.base else mujoco_part(robot, b),
    )


def pinocchio(robot: Tree, order: Sequence[str] | None = None, urdf: bool = False) -> Order:
    """Describe the coordinates of Pinocchio's model of a robot.

    A floating base has the same coordinates and velocities as here. A planar joint has cosine and
    sine in place of its angle.

    Parameters
    ----------
    robot : Tree
        The robot.
    order : sequence of str, optional
        Bodies whose joints move, in the order of the model. Default: depth first; with `urdf`
        children of a body come in the order of the names of their joints, as Pinocchio reads them.
    urdf : bool
        Whether the model was read from a URDF file of `Mechanism.save`, a free base with
        ``pinocchio.JointModelFreeFlyer()``. Then angles without limits are pairs of cosine and
        sine, and a spherical joint is three hinges.

    Returns
    -------
    Order
        The conversions.

    Raises
    ------
    DescriptionError
        If `order` does not name each moving body once.
    """
    bodies = order or _depth_first(robot, by_name=urdf)
    return _order("Pinocchio", robot, bodies, lambda body: pinocchio_part(body, urdf))


def drake(robot: Tree, order: Sequence[str] | None = None) -> Order:
    """Describe the coordinates of Drake's model of a robot.

    A floating base is a quaternion with the scalar first, then the position; its velocity is
    angular, then linear, in world axes. A spherical joint is a `BallRpyJoint`: roll, pitch, yaw,
    and the angular velocity in axes of the parent's joint frame. A planar joint has its velocity
    in axes of the plane. A helical joint is a `ScrewJoint` with the pitch in m per turn.

    Parameters
    ----------
    robot : Tree
        The robot.
    order : sequence of str, optional
        Bodies whose joints move, in the order of the plant. Default: depth first.

    Returns
    -------
    Order
        The conversions.

    Raises
    ------
    DescriptionError
        If `order` does not name each moving body once.
    """
    return _order("Drake", robot, order or _depth_first(robot), drake_part)


def _order(library: str, robot: Tree, order: Sequence[str], part: Callable[[Body], Part]) -> Order:
    moving = {body.name: body for body in robot.bodies if body.joint.nv}
    names = tuple(order) if isinstance(order, Iterable) else (order,)
    if sorted(map(str, names)) != sorted(moving):
        raise DescriptionError(
            f"robot `{robot.name}`, `order`",
            expected="each body whose joint moves once: " + ", ".join(moving),
            came=shown(names, 200),
            cure="Name the bodies in the order of the other model.",
        )
    return Order(library, robot, names, {name: part(moving[name]) for name in names})


def _depth_first(robot: Tree, by_name: bool = False) -> tuple[str, ...]:
    """Bodies whose joints move, the joints of a subtree next to each other."""
    children: dict[str | None, list[Body]] = {}
    for body in robot.bodies:
        children.setdefault(body.parent, []).append(body)
    if by_name:
        for brothers in children.values():
            brothers.sort(key=lambda body: urdf_joints(body)[0].encode())
    waiting, found = list(reversed(children[None])), []
    while waiting:
        body = waiting.pop()
        found.append(body)
        waiting.extend(reversed(children.get(body.name, [])))
    return tuple(body.name for body in found if body.joint.nv)
