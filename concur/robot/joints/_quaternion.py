"""Joints whose coordinates contain a quaternion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.groups import quaternion, se3, so3
from concur.robot.joints._joint import Joint


@dataclass(frozen=True)
class Spherical(Joint):
    """Rotation about a point, SO(3): unit quaternion (x, y, z, w), body angular velocity.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Spherical()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (4, 3, ('qx', 'qy', 'qz', 'qw'))
    """

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    coordinate_names: ClassVar[tuple[str, ...]] = ("qx", "qy", "qz", "qw")
    coordinate_units: ClassVar[tuple[str, ...]] = ("1", "1", "1", "1")
    freedom_names: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")
    freedom_units: ClassVar[tuple[str, ...]] = ("rad", "rad", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.vstack([np.zeros((3, 3)), np.eye(3)])

    @property
    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 1.0])

    @property
    def quaternion_at(self) -> int | None:
        return 0

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return quaternion.to_matrix(q), ca.SX(3, 1)

    def rate(self, q: Vector, v: Vector) -> Vector:
        return quaternion.rate(q, v)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return quaternion.normalize(quaternion.multiply(q, quaternion.exp(dv)))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return quaternion.log(quaternion.multiply(quaternion.conjugate(q0), q1))

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return so3.dexp_body(dv) @ rate

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return so3.dexp_body_inverse(dv) @ v

    def random(self, rng: np.random.Generator) -> np.ndarray:
        sample = rng.normal(size=4)
        return sample / np.linalg.norm(sample)

    def bracket(self, a: Array, b: Array) -> Array:
        return ca.cross(a, b)


@dataclass(frozen=True)
class Free(Joint):
    """All motions, SE(3): position (x, y, z), unit quaternion (x, y, z, w), body twist.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Free()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (7, 6, ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw'))
    """

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "z", "qx", "qy", "qz", "qw")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "1", "1", "1", "1")
    freedom_names: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz", "wx", "wy", "wz")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "rad", "rad", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)

    @property
    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    @property
    def quaternion_at(self) -> int | None:
        return 3

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return quaternion.to_matrix(q[3:]), q[:3]

    def rate(self, q: Vector, v: Vector) -> Vector:
        return ca.vertcat(quaternion.to_matrix(q[3:]) @ v[:3], quaternion.rate(q[3:], v[3:]))

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        step = se3.exp(dv)
        position = q[:3] + quaternion.to_matrix(q[3:]) @ step[:3, 3]
        attitude = quaternion.multiply(q[3:], quaternion.exp(dv[3:]))
        return ca.vertcat(position, quaternion.normalize(attitude))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        rotation = quaternion.log(quaternion.multiply(quaternion.conjugate(q0[3:]), q1[3:]))
        offset = quaternion.to_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return ca.vertcat(so3.dexp_spatial_inverse(rotation) @ offset, rotation)

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return se3.dexp_body(dv) @ rate

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return se3.dexp_body_inverse(dv) @ v

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.uniform(-1.0, 1.0, 3), Spherical().random(rng)])

    def bracket(self, a: Array, b: Array) -> Array:
        return se3.ad(a) @ b
