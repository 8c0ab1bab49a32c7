"""Joints whose group is commutative: coordinates are a vector, turns are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.errors import DescriptionError
from concur.robot._pose import scalar, unit_vector
from concur.robot.joints._joint import Joint
from concur.robot.joints._rotation import axis_rotation, shortest_rotation


class VectorJoint(Joint):
    """Abelian groups whose coordinates are a vector: v is their rate."""

    def rate(self, q: Vector, v: Vector) -> Vector:
        return v

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return q + dv

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return q1 - q0

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return rate

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return v


@dataclass(frozen=True)
class Revolute(VectorJoint):
    """Rotation about an axis through the joint frame's origin, SO(2).

    The angle is not wrapped: 2 pi is a turn of a wheel, and another configuration than 0.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Revolute((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (1, 1, ('angle',))
    """

    axis: Sequence[float]
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    coordinate_names: ClassVar[tuple[str, ...]] = ("angle",)
    coordinate_units: ClassVar[tuple[str, ...]] = ("rad",)
    freedom_names: ClassVar[tuple[str, ...]] = ("angle",)
    freedom_units: ClassVar[tuple[str, ...]] = ("rad",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_vector(self.axis, "Revolute, `axis`"))

    @property
    def basis(self) -> np.ndarray:
        return np.array([[0.0, 0.0, 0.0, *self.axis]]).T

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.axis, q), ca.SX(3, 1)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.pi, np.pi, 1)


@dataclass(frozen=True)
class Prismatic(VectorJoint):
    """Translation along an axis, R.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Prismatic((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (1, 1, ('travel',))
    """

    axis: Sequence[float]
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    coordinate_names: ClassVar[tuple[str, ...]] = ("travel",)
    coordinate_units: ClassVar[tuple[str, ...]] = ("m",)
    freedom_names: ClassVar[tuple[str, ...]] = ("travel",)
    freedom_units: ClassVar[tuple[str, ...]] = ("m",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_vector(self.axis, "Prismatic, `axis`"))

    @property
    def basis(self) -> np.ndarray:
        return np.array([[*self.axis, 0.0, 0.0, 0.0]]).T

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), constant(self.axis) * q

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, 1)


@dataclass(frozen=True)
class Helical(VectorJoint):
    """Screw motion about an axis through the joint frame's origin, H_p.

    The pitch keeps its sign: a left-handed screw is no frame change of a right-handed one.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,); normalised here.
    pitch : float
        Travel along the axis per angle, m/rad; not zero.

    Raises
    ------
    DescriptionError
        If the pitch is zero: that is a `Revolute`.

    References
    ----------
    Thesis, (2.4.16), (2.4.17).

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Helical((0, 0, 1), pitch=0.002)
    >>> joint.nq, joint.nv, joint.coordinate_names
    (1, 1, ('angle',))
    """

    axis: Sequence[float]
    pitch: float
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    coordinate_names: ClassVar[tuple[str, ...]] = ("angle",)
    coordinate_units: ClassVar[tuple[str, ...]] = ("rad",)
    freedom_names: ClassVar[tuple[str, ...]] = ("angle",)
    freedom_units: ClassVar[tuple[str, ...]] = ("rad",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_vector(self.axis, "Helical, `axis`"))
        object.__setattr__(self, "pitch", scalar(self.pitch, "Helical, `pitch`"))
        if self.pitch == 0.0:
            raise DescriptionError(
                "Helical, `pitch`",
                expected="a pitch other than zero, m/rad",
                came="0",
                cure="A screw without pitch is a Revolute joint.",
            )

    @property
    def basis(self) -> np.ndarray:
        axis = np.array(self.axis)
        return np.concatenate([self.pitch * axis, axis])[:, None]

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.axis, q), constant(self.axis) * (self.pitch * q)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-np.pi, np.pi, 1)


@dataclass(frozen=True)
class Cylindrical(VectorJoint):
    """Travel along and rotation about one axis through the joint frame's origin, SO(2) x R.

    Coordinates are (travel, angle).

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Cylindrical((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (2, 2, ('travel', 'angle'))
    """

    axis: Sequence[float]
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    coordinate_names: ClassVar[tuple[str, ...]] = ("travel", "angle")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "rad")
    freedom_names: ClassVar[tuple[str, ...]] = ("travel", "angle")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "rad")

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_vector(self.axis, "Cylindrical, `axis`"))

    @property
    def basis(self) -> np.ndarray:
        return np.kron(np.eye(2), np.array([self.axis]).T)

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.axis, q[1]), constant(self.axis) * q[0]

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-1.0, 1.0), rng.uniform(-np.pi, np.pi)])


@dataclass(frozen=True)
class Sliding(VectorJoint):
    """Translation in a plane, R^2.

    The plane's axes are those of the joint frame turned the shortest way that takes z to the
    normal, as for `Planar`.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Sliding()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (2, 2, ('x', 'y'))
    """

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "m")
    freedom_names: ClassVar[tuple[str, ...]] = ("vx", "vy")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "m")

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_vector(self.normal, "Sliding, `normal`"))

    @property
    def basis(self) -> np.ndarray:
        return np.vstack([shortest_rotation(self.normal)[:, :2], np.zeros((3, 2))])

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), constant(self.basis[:3]) @ q

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, 2)


@dataclass(frozen=True)
class Cartesian(VectorJoint):
    """Translation in space, R^3.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Cartesian()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (3, 3, ('x', 'y', 'z'))
    """

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "m", "m")
    freedom_names: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "m", "m")

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, :3]

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), q

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, 3)
