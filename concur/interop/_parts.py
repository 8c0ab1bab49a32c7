"""Coordinates of one joint in MuJoCo, Pinocchio and Drake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from concur.codegen import DRIFT
from concur.errors import SingularConfigurationError
from concur.interop._chains import chain, is_native
from concur.robot import Body, Tree, joints

Array = np.ndarray

SINGULAR = 1e-9
"""Cosine of the second of three hinges below which their rates are not computed."""


@dataclass(frozen=True)
class Part:
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
class Angles(Part):
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


def same(nq: int) -> Part:
    return Part(nq, lambda q: q, lambda q: q)


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


def _angle(cosine: float, sine: float) -> float:
    """Angle of a point on the unit circle; NaN if it is not on it."""
    near = abs(np.hypot(cosine, sine) - 1.0) <= DRIFT
    return float(np.arctan2(sine, cosine)) if near else np.nan


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def in_plane_axes(joint: joints.Joint) -> Part:
    """A planar joint whose velocity is in axes of the plane; SE(2) and SE(2) x R."""
    at = joint.nq - 1
    return Part(
        joint.nq,
        lambda q: q,
        lambda q: q,
        lambda q: _about_z(q[at]),
        lambda v: np.array([0.0, 0.0, v[at]]),
        (0,),
    )


def pinocchio_part(body: Body, urdf: bool) -> Part:
    match body.joint:
        case joints.Planar() if not urdf or is_native(body):
            return Part(
                4,
                lambda q: np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])]),
                lambda q: np.array([q[0], q[1], _angle(q[2], q[3])]),
            )
        case joints.Planar() | joints.PlanarPrismatic() if urdf:
            if body.limits[-1] != (-np.inf, np.inf):
                return in_plane_axes(body.joint)
            return _with_circle(in_plane_axes(body.joint))
        case joints.PlanarPrismatic():
            return in_plane_axes(body.joint)
        case joints.Spherical() if urdf:
            return _three_circles()
        case joints.Revolute() | joints.Cylindrical() if urdf:
            if body.limits[-1] == (-np.inf, np.inf):
                return _with_circle(same(body.joint.nq))
    return same(body.joint.nq)


def _with_circle(part: Part) -> Part:
    """The last angle as cosine and sine: a `continuous` joint of a URDF file."""
    return Part(
        part.nq + 1,
        lambda q: np.array([*q[:-1], np.cos(q[-1]), np.sin(q[-1])]),
        lambda q: np.array([*q[:-2], _angle(q[-2], q[-1])]),
        part.turn,
        part.spin,
        part.blocks,
    )


def three_angles() -> Angles:
    return Angles(
        3,
        _hinge_angles,
        lambda q: Rotation.from_euler("XYZ", q).as_quat(),
    )


def _three_circles() -> Angles:
    """Three `continuous` joints of a URDF file in place of a ball."""
    plain = three_angles()

    def there(q: Array) -> Array:
        angles = plain.to_q(q)
        return np.column_stack([np.cos(angles), np.sin(angles)]).ravel()

    return Angles(6, there, lambda q: plain.from_q(np.array([*map(_angle, q[::2], q[1::2])])))


def free_part(
    body: Body, quaternion_first: bool, angular_first: bool, blocks: tuple[int, ...]
) -> Part:
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
        size = float(np.linalg.norm(turned))  # stays, and is checked with all others
        attitude = (
            size
            * (frame.inv() * Rotation.from_quat(_last(turned) if size else [0, 0, 0, 1])).as_quat()
        )
        return np.concatenate([frame.inv().apply(position - origin), attitude])

    return Part(
        7,
        there,
        back,
        lambda q: (frame * Rotation.from_quat(q[3:])).as_matrix(),
        lambda v: v[3:],
        blocks,
        (3, 4, 5, 0, 1, 2) if angular_first else None,
    )


def _with_lift(part: Part, nv: int) -> Part:
    """A base on wheels, which a slide along the normal lets stand on them."""
    return replace(
        part,
        nq=part.nq + 1,
        to_q=lambda q: np.append(q, 0.0),
        from_q=lambda q: q[:-1],
        order=(*range(nv), -1),
    )


class _Standing(Part):
    """A planar joint of a base that is free in the library: `turn` is the map (6, 3)."""

    def map(self, q: Array, nv: int) -> Array:
        return self.turn(q)

    def size(self, nv: int) -> int:
        return 6

    def drift(self, q: Array, v: Array) -> Array:
        return np.asarray(self.turn(q) @ [-v[2] * v[1], v[2] * v[0], 0.0])


def standing_part(body: Body, joint: joints.Planar) -> Part:
    """A base on a planar joint that is free and stands on contacts: its pose is projected."""
    placed, axes = Rotation.from_quat(body.placement.rotation), joint.frame
    plane, origin = placed.as_matrix() @ axes, np.array(body.placement.translation)

    def turned(heading: float) -> Rotation:
        return placed * Rotation.from_rotvec(heading * axes[:, 2])

    def there(q: Array) -> Array:
        return np.concatenate([origin + plane[:, :2] @ q[:2], _first(turned(q[2]).as_quat())])

    def back(q: Array) -> Array:
        turn = plane.T @ Rotation.from_quat(_last(q[3:])).as_matrix() @ axes
        heading = np.arctan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])
        return np.append(plane[:, :2].T @ (q[:3] - origin), heading)

    def map(q: Array) -> Array:
        rows = np.zeros((6, 3))
        rows[:3, :2] = turned(q[2]).as_matrix() @ axes[:, :2]
        rows[3:, 2] = axes[:, 2]
        return rows

    return _Standing(7, there, back, map)


def mujoco_part(robot: Tree, body: Body) -> Part:
    if body is robot.base and 0 in robot.platforms and not isinstance(body.joint, joints.Free):
        planar = isinstance(body.joint, joints.Planar)
        plain = in_plane_axes(body.joint) if planar else same(body.joint.nq)
        return _with_lift(plain, body.joint.nv)
    match body.joint:
        case joints.Free():
            return free_part(body, False, False, (0,))
        case joints.Spherical():
            return Part(4, _first, _last)
        case joints.Planar() | joints.PlanarPrismatic():
            return in_plane_axes(body.joint)
    chain(body.joint)  # refuses screws
    return same(body.joint.nq)


def drake_part(body: Body) -> Part:
    match body.joint:
        case joints.Free():
            return free_part(body, True, True, (0, 3))
        case joints.Spherical():
            return Part(
                3,
                lambda q: roll_pitch_yaw(Rotation.from_quat(q).as_matrix()),
                lambda q: Rotation.from_euler("xyz", q).as_quat(),
                lambda q: Rotation.from_quat(q).as_matrix(),
                lambda v: v,
                (0,),
            )
        case joints.Planar() | joints.PlanarPrismatic():
            return in_plane_axes(body.joint)
    return same(body.joint.nq)
