"""Coordinates of MuJoCo, Pinocchio, Drake and ROS: orders and frames of q, v and forces.

Each function describes how a library writes the state of a robot. The library's model has the
joints of the robot; a joint that the library lacks is a chain of joints with one degree of freedom
each, as `Mechanism.save` writes it.

=========  ===========================  ==============================  =======================
library    floating base, q             floating base, v                planar joint, q and v
=========  ===========================  ==============================  =======================
here       position, quaternion xyzw    [linear; angular], body axes    x, y, angle; body axes
Pinocchio  position, quaternion xyzw    [linear; angular], body axes    x, y, cos, sin; body axes
MuJoCo     position, quaternion wxyz    linear in world axes, angular   x, y, angle; axes of the
                                        in body axes                    plane
Drake      quaternion wxyz, position    [angular; linear], world axes   x, y, angle; axes of the
                                                                        plane
ROS        position, quaternion xyzw    linear, angular, body axes      (a base: as floating)
=========  ===========================  ==============================  =======================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from concur.codegen import finite_floats
from concur.errors import DescriptionError, SingularConfigurationError, shown
from concur.mechanism import Body, Tree, joints

__all__ = [
    "Link",
    "Order",
    "RosState",
    "chain",
    "drake",
    "from_ros",
    "is_native",
    "mujoco",
    "pinocchio",
    "roll_pitch_yaw",
    "to_ros",
    "urdf_joints",
]

Array = np.ndarray

SINGULAR = 1e-9
"""Cosine of the second of three hinges below which their rates are not computed."""


@dataclass(frozen=True)
class Link:
    """One joint of a chain.

    Parameters
    ----------
    suffix : str
        Name of its freedom; empty for a joint that is no chain.
    kind : str
        "slide", "hinge" or "ball".
    axis : tuple of float
        Its axis in the joint frame, shape (3,).
    """

    suffix: str
    kind: str
    axis: tuple[float, ...] = (0.0, 0.0, 0.0)


def chain(joint: joints.Joint) -> tuple[Link, ...]:
    """Simple joints that together move a body as one joint does, outermost first.

    Parameters
    ----------
    joint : Joint
        The joint; a `Free` joint is three slides and a ball.

    Returns
    -------
    tuple of Link
        The simple joints; none for a `Fixed` joint.

    Raises
    ------
    DescriptionError
        If the joint is a screw.
    """
    match joint:
        case joints.Helical():
            raise DescriptionError(
                "Helical joint",
                expected="joints that are chains of hinges, slides and balls",
                came="a screw, which couples a hinge and a slide",
                cure="Replace it by a Revolute or a Prismatic joint, or keep the robot in TOML.",
            )
        case joints.Revolute():
            return (Link("", "hinge", tuple(joint.axis)),)
        case joints.Prismatic():
            return (Link("", "slide", tuple(joint.axis)),)
        case joints.Spherical():
            return (Link("", "ball"),)
        case joints.Free():
            return (*chain(joints.Cartesian()), Link("rotation", "ball"))
    basis = joint.basis.T
    return tuple(
        Link(
            name,
            "hinge" if unit == "rad" else "slide",
            tuple((row[3:] if unit == "rad" else row[:3]).tolist()),
        )
        for name, unit, row in zip(
            joint.coordinate_names, joint.coordinate_units, basis, strict=True
        )
    )


@dataclass(frozen=True)
class _Part:
    """Coordinates of one joint in a library.

    Velocities are turned by `turn`(q) in blocks of three, which rotate with the rate `spin`(v) in
    body axes, and then put in another order; -1 stands for a freedom that is at rest.
    """

    nq: int
    to_q: Callable[[Array], Array]
    from_q: Callable[[Array], Array]
    turn: Callable[[Array], Array] = lambda q: np.eye(3)
    spin: Callable[[Array], Array] = lambda v: np.zeros(3)
    blocks: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None

    def map(self, q: Array, nv: int) -> Array:
        """Map (nv, nv) of velocities at a configuration."""
        full, turn = np.eye(nv), self.turn(q)
        for at in self.blocks:
            full[at : at + 3, at : at + 3] = turn
        return full if self.order is None else np.vstack([full, np.zeros(nv)])[list(self.order)]

    def inverse(self, q: Array, nv: int) -> Array:
        """Map back; the columns of the map are orthonormal."""
        return self.map(q, nv).T

    def size(self, nv: int) -> int:
        """Number of velocities in the library."""
        return nv if self.order is None else len(self.order)

    def drift(self, q: Array, v: Array) -> Array:
        """Rate of the map times the velocity."""
        turning = np.zeros(len(v))
        for at in self.blocks:
            turning[at : at + 3] = np.cross(self.spin(v), v[at : at + 3])
        return np.asarray(self.map(q, len(v)) @ turning)


@dataclass(frozen=True)
class _Angles(_Part):
    """A ball as hinges about x, y and z: R = Rx Ry Rz; singular at 90 deg of the second angle."""

    def _rates(self, q: Array) -> tuple[Array, Array, Array]:
        """Matrix from rates of angles to the body twist, its first column's inner part, Rz^T."""
        _, b, c = _hinge_angles(q)
        if abs(np.cos(b)) < SINGULAR:
            raise SingularConfigurationError(
                "Spherical joint as three hinges",
                expected="a second angle other than 90 deg",
                came=f"{np.degrees(b):.9g} deg",
                cure="Convert the quaternion itself: hinges have no finite rates here.",
            )
        z = Rotation.from_rotvec([0.0, 0.0, c]).as_matrix().T
        inner = np.array([np.cos(b), 0.0, np.sin(b)])
        return np.column_stack([z @ inner, z[:, 1], [0.0, 0.0, 1.0]]), inner, z

    def map(self, q: Array, nv: int) -> Array:
        return np.linalg.inv(self._rates(q)[0])

    def inverse(self, q: Array, nv: int) -> Array:
        return self._rates(q)[0]

    def drift(self, q: Array, v: Array) -> Array:
        matrix, inner, z = self._rates(q)
        rates = np.linalg.solve(matrix, v)
        change = np.zeros((3, 3))
        axis = np.array([0.0, 0.0, rates[2]])
        change[:, 0] = -np.cross(axis, matrix[:, 0]) - z @ np.cross([0.0, rates[1], 0.0], inner)
        change[:, 1] = -np.cross(axis, matrix[:, 1])
        return np.asarray(-np.linalg.solve(matrix, change @ rates))


def _same(nq: int) -> _Part:
    return _Part(nq, lambda q: q, lambda q: q)


def roll_pitch_yaw(rotation: ArrayLike) -> Array:
    """Angles of a rotation Rz(yaw) Ry(pitch) Rx(roll), exact also near a pitch of 90 deg.

    Parameters
    ----------
    rotation : array_like
        Rotation matrix, shape (3, 3).

    Returns
    -------
    numpy.ndarray
        Roll, pitch and yaw, shape (3,), rad.
    """
    R = np.array(rotation)
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    # The remaining rotation is about x, whatever rounding does to yaw near the singular pitch.
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def _hinge_angles(q: Array) -> Array:
    """Angles of three hinges about x, y and z that rotate as a quaternion: R = Rx Ry Rz."""
    return -roll_pitch_yaw(Rotation.from_quat(q).as_matrix().T)


def _first(q: Array) -> Array:
    """Quaternion with the scalar first."""
    return np.roll(q, 1)


def _last(q: Array) -> Array:
    """Quaternion with the scalar last."""
    return np.roll(q, -1)


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _in_plane_axes(joint: joints.Joint) -> _Part:
    """A planar joint whose velocity is in axes of the plane; SE(2) and SE(2) x R."""
    at = joint.nq - 1
    return _Part(
        joint.nq,
        lambda q: q,
        lambda q: q,
        lambda q: _about_z(q[at]),
        lambda v: np.array([0.0, 0.0, v[at]]),
        (0,),
    )


def is_native(body: Body) -> bool:
    """Whether URDF has one joint for the several freedoms of a body.

    Parameters
    ----------
    body : Body
        The body.

    Returns
    -------
    bool
        True for a `Free` joint, and for a base on a `Planar` joint with the normal z: readers
        disagree on planes with another normal, and messages on planar joints within a robot.
    """
    joint = body.joint
    upright = isinstance(joint, joints.Planar) and tuple(joint.normal) == (0.0, 0.0, 1.0)
    return isinstance(joint, joints.Free) or (upright and body.parent is None)


def urdf_joints(body: Body) -> tuple[str, ...]:
    """Names of the joints of a URDF file that carry a body, outermost first.

    Parameters
    ----------
    body : Body
        The body.

    Returns
    -------
    tuple of str
        The name of the body, or one name per freedom of a chain.

    Raises
    ------
    DescriptionError
        If its joint is a screw.
    """
    if is_native(body) or not body.joint.nv:
        return (body.name,)
    if isinstance(body.joint, joints.Spherical):
        return tuple(f"{body.name}_{axis}" for axis in ("rx", "ry", "rz"))
    links = chain(body.joint)
    return tuple(f"{body.name}_{link.suffix}" if link.suffix else body.name for link in links)


def _pinocchio_part(body: Body, urdf: bool) -> _Part:
    match body.joint:
        case joints.Planar() if not urdf or is_native(body):
            return _Part(
                4,
                lambda q: np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])]),
                lambda q: np.array([q[0], q[1], np.arctan2(q[3], q[2])]),
            )
        case joints.Planar() | joints.PlanarPrismatic() if urdf:
            if body.limits[-1] != (-np.inf, np.inf):
                return _in_plane_axes(body.joint)
            return _with_circle(_in_plane_axes(body.joint))
        case joints.PlanarPrismatic():
            return _in_plane_axes(body.joint)
        case joints.Spherical() if urdf:
            return _three_circles()
        case joints.Revolute() | joints.Cylindrical() if urdf:
            if body.limits[-1] == (-np.inf, np.inf):
                return _with_circle(_same(body.joint.nq))
    return _same(body.joint.nq)


def _with_circle(part: _Part) -> _Part:
    """The last angle as cosine and sine: a `continuous` joint of a URDF file."""
    return _Part(
        part.nq + 1,
        lambda q: np.array([*q[:-1], np.cos(q[-1]), np.sin(q[-1])]),
        lambda q: np.array([*q[:-2], np.arctan2(q[-1], q[-2])]),
        part.turn,
        part.spin,
        part.blocks,
    )


def _angles() -> _Angles:
    return _Angles(
        3,
        _hinge_angles,
        lambda q: Rotation.from_euler("XYZ", q).as_quat(),
    )


def _three_circles() -> _Angles:
    """Three `continuous` joints of a URDF file in place of a ball."""
    plain = _angles()

    def there(q: Array) -> Array:
        angles = plain.to_q(q)
        return np.column_stack([np.cos(angles), np.sin(angles)]).ravel()

    return _Angles(6, there, lambda q: plain.from_q(np.arctan2(q[1::2], q[::2])))


def _free_part(
    body: Body, quaternion_first: bool, angular_first: bool, blocks: tuple[int, ...]
) -> _Part:
    """A free joint; that of a base is placed in the inertial frame."""
    placed = body.placement if body.parent is None else None
    frame = Rotation.identity() if placed is None else Rotation.from_quat(placed.rotation)
    origin = np.zeros(3) if placed is None else np.array(placed.translation)

    def there(q: Array) -> Array:
        turned = (frame * Rotation.from_quat(q[3:])).as_quat()
        parts = [origin + frame.apply(q[:3]), _first(turned)]
        return np.concatenate(parts[::-1] if quaternion_first else parts)

    def back(q: Array) -> Array:
        position, turned = (q[4:], q[:4]) if quaternion_first else (q[:3], q[3:])
        attitude = (frame.inv() * Rotation.from_quat(_last(turned))).as_quat()
        return np.concatenate([frame.inv().apply(position - origin), attitude])

    return _Part(
        7,
        there,
        back,
        lambda q: (frame * Rotation.from_quat(q[3:])).as_matrix(),
        lambda v: v[3:],
        blocks,
        (3, 4, 5, 0, 1, 2) if angular_first else None,
    )


def _with_lift(part: _Part, nv: int) -> _Part:
    """A base on wheels, which a slide along the normal lets stand on them."""
    return replace(
        part,
        nq=part.nq + 1,
        to_q=lambda q: np.append(q, 0.0),
        from_q=lambda q: q[:-1],
        order=(*range(nv), -1),
    )


def _mujoco_part(robot: Tree, body: Body) -> _Part:
    if body is robot.base and robot.wheels:
        planar = isinstance(body.joint, joints.Planar)
        plain = _in_plane_axes(body.joint) if planar else _same(body.joint.nq)
        return _with_lift(plain, body.joint.nv)
    match body.joint:
        case joints.Free():
            return _free_part(body, False, False, (0,))
        case joints.Spherical():
            return _Part(4, _first, _last)
        case joints.Planar() | joints.PlanarPrismatic():
            return _in_plane_axes(body.joint)
    chain(body.joint)  # refuses screws
    return _same(body.joint.nq)


def _drake_part(body: Body) -> _Part:
    match body.joint:
        case joints.Free():
            return _free_part(body, True, True, (0, 3))
        case joints.Spherical():
            return _Part(
                3,
                lambda q: roll_pitch_yaw(Rotation.from_quat(q).as_matrix()),
                lambda q: Rotation.from_euler("xyz", q).as_quat(),
                lambda q: Rotation.from_quat(q).as_matrix(),
                lambda v: v,
                (0,),
            )
        case joints.Planar() | joints.PlanarPrismatic():
            return _in_plane_axes(body.joint)
    return _same(body.joint.nq)


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
    parts: Mapping[str, _Part] = field(repr=False)

    @property
    def nq(self) -> int:
        """Number of coordinates in the library."""
        return sum(self.parts[name].nq for name in self.bodies)

    @property
    def nv(self) -> int:
        """Number of velocities in the library; one more than the robot's with wheels in MuJoCo."""
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
        """
        theirs = self._checked(position, "position", self.nq)
        ours, at = np.zeros(self.robot.nq), 0
        for body in self.bodies:
            part = self.parts[body]
            ours[self.robot.q_slice(body)] = part.from_q(theirs[at : at + part.nq])
            at += part.nq
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

    def _each(self, q: ArrayLike) -> Iterator[tuple[list[int], Array, _Part]]:
        """Indices in v, own configuration and conversion of each joint."""
        ours = self._checked(q, "q", self.robot.nq)
        for body in self.bodies:
            yield self.robot.freedoms(body), ours[self.robot.q_slice(body)], self.parts[body]

    def _back(
        self, q: ArrayLike, value: ArrayLike, name: str, map: Callable[[_Part, Array, int], Array]
    ) -> Array:
        """Apply a map to the part of each joint of a vector of the library."""
        theirs, ours, start = self._checked(value, name, self.nv), np.zeros(self.robot.nv), 0
        for at, own, part in self._each(q):
            size = part.size(len(at))
            ours[at] = map(part, own, len(at)) @ theirs[start : start + size]
            start += size
        return ours

    def _checked(self, value: ArrayLike, name: str, size: int) -> Array:
        return np.array(finite_floats(value, f"Order of {self.library}, `{name}`", (size,)))


def _joined(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.zeros(0), *parts])


def mujoco(robot: Tree, order: Sequence[str] | None = None) -> Order:
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

    Returns
    -------
    Order
        The conversions.

    Raises
    ------
    DescriptionError
        If a joint is a screw, or `order` does not name each moving body once.

    Examples
    --------
    >>> import concur as cc
    >>> from concur import interop
    >>> order = interop.mujoco(cc.robots.free_flyer())
    >>> order.to_q([1, 2, 3, 0, 0, 0, 1, *[0.5] * 6])[:7]
    array([1., 2., 3., 1., 0., 0., 0.])
    """
    return _order("MuJoCo", robot, order or _depth_first(robot), lambda b: _mujoco_part(robot, b))


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
    return _order("Pinocchio", robot, bodies, lambda body: _pinocchio_part(body, urdf))


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
    return _order("Drake", robot, order or _depth_first(robot), _drake_part)


def _order(library: str, robot: Tree, order: Sequence[str], part: Callable[[Body], _Part]) -> Order:
    moving = {body.name: body for body in robot.bodies if body.joint.nv}
    names = tuple(order)
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


# --- ROS ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RosState:
    """A state as the messages of ROS hold it: ``sensor_msgs/JointState``, ``nav_msgs/Odometry``.

    Parameters
    ----------
    name : tuple of str
        Names of the joints of the URDF file that `Mechanism.save` writes.
    position, velocity, effort : numpy.ndarray
        Of each joint: m or rad, m/s or rad/s, N or N m.
    base_position : numpy.ndarray
        Position of the base in the inertial frame, shape (3,), m: ``pose.pose.position``.
    base_orientation : numpy.ndarray
        Its orientation, quaternion x, y, z, w: ``pose.pose.orientation``.
    base_linear, base_angular : numpy.ndarray
        Its velocity in body axes, shape (3,), m/s and rad/s: ``twist.twist``, which ROS gives in
        the frame of the child.
    """

    name: tuple[str, ...]
    position: Array
    velocity: Array
    effort: Array
    base_position: Array
    base_orientation: Array
    base_linear: Array
    base_angular: Array


def _ros_parts(robot: Tree) -> tuple[bool, list[tuple[Body, _Part]]]:
    """Whether the base is a pose beside the joints, and the parts of all other joints."""
    floats = isinstance(robot.base.joint, joints.Free | joints.Planar)
    found: list[tuple[Body, _Part]] = []
    for body in robot.bodies[1 if floats else 0 :]:
        match body.joint:
            case joints.Free():
                raise DescriptionError(
                    f"robot `{robot.name}`, body `{body.name}`",
                    expected="joints of one position each, as messages of joint states have them",
                    came="a Free joint that is not the base",
                    cure="Publish the pose of this body as a transform.",
                )
            case joints.Spherical():
                found.append((body, _angles()))
            case joints.Planar() | joints.PlanarPrismatic():
                found.append((body, _in_plane_axes(body.joint)))
            case joints.Fixed():
                pass
            case _:
                found.append((body, _same(body.joint.nq)))
    return floats, found


def to_ros(
    robot: Tree, q: ArrayLike, v: ArrayLike | None = None, tau: ArrayLike | None = None
) -> RosState:
    """Convert a state to the names, orders and frames of ROS.

    Parameters
    ----------
    robot : Tree
        The robot. A `Free` or `Planar` base is the pose of the odometry; all other joints are
        joints of the joint state.
    q : array_like
        Configuration, shape (nq,), m and rad.
    v, tau : array_like, optional
        Velocity and generalized forces, shape (nv,), SI units; default zero.

    Returns
    -------
    RosState
        The fields of both messages.

    Raises
    ------
    DescriptionError
        If a joint other than the base is `Free`, or a joint is a screw.
    """
    zero = np.zeros(robot.nv)
    ours = np.array(finite_floats(q, "to_ros, `q`", (robot.nq,)))
    rates, forces = (
        zero if given is None else np.array(finite_floats(given, f"to_ros, `{name}`", (robot.nv,)))
        for name, given in (("v", v), ("tau", tau))
    )
    floats, parts = _ros_parts(robot)
    names: list[str] = []
    columns: list[list[Array]] = [[], [], []]
    for body, part in parts:
        own, span = ours[robot.q_slice(body.name)], robot.v_slice(body.name)
        there = part.map(own, body.joint.nv)
        names.extend(urdf_joints(body))
        columns[0].append(part.to_q(own))
        columns[1].append(there @ rates[span])
        columns[2].append(part.inverse(own, body.joint.nv).T @ forces[span])
    position, velocity, effort = (np.concatenate([np.zeros(0), *column]) for column in columns)
    frame = Rotation.from_quat(robot.base.placement.rotation)
    origin, twist = np.array(robot.base.placement.translation), np.zeros(6)
    if floats:
        own = ours[robot.q_slice(robot.base.name)]
        joint: Any = robot.base.joint
        if isinstance(joint, joints.Planar):
            moved = joint.frame[:, :2] @ own[:2]
            turned = Rotation.from_rotvec(own[2] * np.array(joint.normal))
        else:
            moved, turned = own[:3], Rotation.from_quat(own[3:])
        origin, frame = origin + frame.apply(moved), frame * turned
        twist = joint.basis @ rates[robot.v_slice(robot.base.name)]
    return RosState(
        tuple(names),
        position,
        velocity,
        effort,
        origin,
        frame.as_quat(),
        twist[:3],
        twist[3:],
    )


def from_ros(robot: Tree, state: RosState) -> tuple[Array, Array, Array]:
    """Convert a state of ROS; joints may come in any order, as they do in messages.

    Parameters
    ----------
    robot : Tree
        The robot.
    state : RosState
        The fields of both messages; joints that the robot lacks are ignored.

    Returns
    -------
    q : numpy.ndarray
        Configuration, shape (nq,), m and rad. A planar base is the projection of the pose on its
        plane.
    v : numpy.ndarray
        Velocity, shape (nv,), m/s and rad/s.
    tau : numpy.ndarray
        Generalized forces, shape (nv,), N and N m; zero for the base.

    Raises
    ------
    DescriptionError
        If a joint is missing, or occurs twice.
    ShapeError, NonFiniteError
        If the numbers do not fit the names, or are not finite.
    """
    floats, parts = _ros_parts(robot)
    wanted = [name for body, _ in parts for name in urdf_joints(body)]
    places = [[k for k, name in enumerate(state.name) if name == joint] for joint in wanted]
    wrong = next((j for j, p in zip(wanted, places, strict=True) if len(p) != 1), None)
    if wrong is not None:
        raise DescriptionError(
            "RosState, `name`",
            expected=f"the joint `{wrong}` once",
            came=shown(tuple(state.name), 200),
            cure="Wait for a message with all joints, or merge the messages.",
        )
    rows = [place[0] for place in places]
    read = {
        name: np.array(
            finite_floats(getattr(state, name), f"RosState, `{name}`", (len(state.name),))
        )[rows]
        for name in ("position", "velocity", "effort")
    }
    sizes = {"base_position": 3, "base_orientation": 4, "base_linear": 3, "base_angular": 3}
    read |= {
        name: np.array(finite_floats(getattr(state, name), f"RosState, `{name}`", (size,)))
        for name, size in sizes.items()
    }
    q, v, tau, at = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv), 0
    for body, part in parts:
        span = robot.v_slice(body.name)
        size = body.joint.nv
        own = part.from_q(read["position"][at : at + size])
        there = part.map(own, size)
        q[robot.q_slice(body.name)] = own
        v[span] = part.inverse(own, size) @ read["velocity"][at : at + size]
        tau[span] = there.T @ read["effort"][at : at + size]
        at += size
    if floats:
        joint: Any = robot.base.joint
        frame = Rotation.from_quat(robot.base.placement.rotation).inv()
        moved = frame.apply(read["base_position"] - np.array(robot.base.placement.translation))
        turned = frame * Rotation.from_quat(read["base_orientation"])
        if isinstance(joint, joints.Planar):
            x, y, _ = joint.frame.T @ moved
            flat = joint.frame.T @ turned.as_matrix() @ joint.frame
            q[:3] = x, y, np.arctan2(flat[1, 0] - flat[0, 1], flat[0, 0] + flat[1, 1])
        else:
            q[:7] = [*moved, *turned.as_quat()]
        twist = np.concatenate([read["base_linear"], read["base_angular"]])
        v[: joint.nv] = joint.basis.T @ twist
    return q, v, tau
