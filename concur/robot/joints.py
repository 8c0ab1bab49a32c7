"""Joints: displacement subgroups of SE(3) with global coordinates (Table 2.1 of the thesis).

A joint moves the child's frame in the joint frame that is fixed to the parent. Its group is
given by a twist basis `basis`, written in the child's frame; the velocity coordinates `v`
are the body twist in that basis. Configurations are global: no chart is singular.

A new subgroup is one more class in this file: it states its basis, its coordinates, its pose, its
rate, and how a motion `basis @ dv` is appended and read back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.errors import DescriptionError
from concur.groups import quaternion, se2, se3, so3
from concur.robot._pose import axis_rotation, scalar, shortest_rotation, unit_vector
from concur.tables import Vector3

__all__ = [
    "Cartesian",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "PlanarPrismatic",
    "Prismatic",
    "Revolute",
    "Sliding",
    "Spherical",
]


class Joint(ABC):
    """A displacement subgroup of SE(3) between two bodies.

    Attributes
    ----------
    nq, nv : int
        Number of configuration coordinates and of freedoms.
    coordinate_names, coordinate_units : tuple of str
        One per configuration coordinate.
    freedom_names, freedom_units, effort_units : tuple of str
        One per freedom: name, unit of the displacement, unit of the force or torque.

    Examples
    --------
    >>> import concur as cc
    >>> isinstance(cc.joints.Free(), cc.joints.Joint)
    True
    """

    # Sets of motions of Table 2.1 that are no joints, and what replaces them.
    _cures: ClassVar[Mapping[str, str]] = {
        "HelicalPlane": "Write two bodies: one with a Sliding joint and, on it, one with a Helical "
        "joint; the first may have no inertia. One joint would not reach all poses of this group "
        "by screw motions, as its exponential map is not onto. In Python "
        "`concur.robot.helical_plane` makes both bodies."
    }
    nq: ClassVar[int]
    nv: ClassVar[int]
    coordinate_names: ClassVar[tuple[str, ...]]
    coordinate_units: ClassVar[tuple[str, ...]]
    freedom_names: ClassVar[tuple[str, ...]]
    freedom_units: ClassVar[tuple[str, ...]]
    quaternion_at: ClassVar[int | None] = None
    """Index in q where a unit quaternion begins, if there is one."""

    def __init_subclass__(cls) -> None:
        """Count the coordinates; freedoms are named as these unless the class names them."""
        for what in ("names", "units") if "coordinate_names" in vars(cls) else ():
            if f"freedom_{what}" not in vars(cls):
                setattr(cls, f"freedom_{what}", getattr(cls, f"coordinate_{what}"))
            cls.nq, cls.nv = len(cls.coordinate_names), len(cls.freedom_names)

    @property
    @abstractmethod
    def basis(self) -> np.ndarray:
        """Twist basis (6, nv) of the subgroup's algebra, [linear; angular]."""

    @property
    def neutral(self) -> np.ndarray:
        """Configuration (nq,) of the identity."""
        q = np.zeros(self.nq)
        if self.quaternion_at is not None:
            q[self.quaternion_at + 3] = 1.0
        return q

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of the force or torque of each freedom."""
        return tuple("N m" if unit == "rad" else "N" for unit in self.freedom_units)

    @abstractmethod
    def pose(self, q: Vector) -> tuple[Array, Array]:
        """Pose of the child's frame in the joint frame.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        rotation, translation : casadi.SX
            Shapes (3, 3) and (3,), m.
        """

    @abstractmethod
    def rate(self, q: Vector, v: Vector) -> Vector:
        """Time derivative of the configuration.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        v : casadi.SX
            Body-twist coordinates, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nq,).
        """

    @abstractmethod
    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Append the motion exp(basis dv) to a configuration.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        dv : casadi.SX
            Displacement in the basis, shape (nv,).

        Returns
        -------
        casadi.SX
            Configuration, shape (nq,).
        """

    @abstractmethod
    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Displacement dv with ``integrate(q0, dv) = q1``, the shorter way round.

        Parameters
        ----------
        q0, q1 : casadi.SX
            Configurations, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """

    @abstractmethod
    def dexp(self, dv: Vector, rate: Array) -> Array:
        """Body twist of exp(basis dv) for a rate of dv, (2.1.4).

        Parameters
        ----------
        dv : casadi.SX
            Displacement in the basis, shape (nv,).
        rate : casadi.SX
            Its time derivative, shape (nv,).

        Returns
        -------
        casadi.SX
            Body-twist coordinates, shape (nv,).
        """

    @abstractmethod
    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        """Rate of dv that gives the body twist v at exp(basis dv), (2.1.4) inverted.

        Parameters
        ----------
        dv : casadi.SX
            Displacement in the basis, shape (nv,).
        v : casadi.SX
            Body-twist coordinates, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (nq,): uniform rotations and angles, translations in [-1, 1] m.
        """
        ends = [np.pi if unit == "rad" else 1.0 for unit in self.coordinate_units if unit != "1"]
        drawn = [rng.uniform(-end, end) for end in ends]
        if self.quaternion_at is None:
            return np.array(drawn, dtype=float)
        sample = rng.normal(size=4)
        return np.concatenate([drawn, sample / np.linalg.norm(sample)])

    def bracket(self, a: Array, b: Array) -> Array:
        """Lie bracket of two algebra elements in the basis; zero for abelian groups.

        Parameters
        ----------
        a, b : casadi.SX
            Coordinates in the basis, shape (nv,).

        Returns
        -------
        casadi.SX
            Coordinates of [a, b], shape (nv,).
        """
        return ca.SX(self.nv, 1)


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
class AxisJoint(VectorJoint):
    """Abelian groups of motions along and about one axis."""

    axis: Vector3

    def __post_init__(self) -> None:
        axis = unit_vector(self.axis, f"{type(self).__name__}, `axis`")
        object.__setattr__(self, "axis", axis)


@dataclass(frozen=True)
class Revolute(AxisJoint):
    """Rotation about an axis through the joint frame's origin, SO(2).

    The angle is not wrapped: 2 pi is a turn of a wheel, and another configuration than 0.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,), of any length; normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Revolute((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (1, 1, ('angle',))
    """

    coordinate_names = ("angle",)
    coordinate_units = ("rad",)

    @property
    def basis(self) -> np.ndarray:
        return np.array([[0.0, 0.0, 0.0, *self.axis]]).T

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.axis, q), ca.SX(3, 1)


@dataclass(frozen=True)
class Prismatic(AxisJoint):
    """Translation along an axis, R.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,), of any length; normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Prismatic((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (1, 1, ('travel',))
    """

    coordinate_names = ("travel",)
    coordinate_units = ("m",)

    @property
    def basis(self) -> np.ndarray:
        return np.array([[*self.axis, 0.0, 0.0, 0.0]]).T

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), constant(self.axis) * q


@dataclass(frozen=True)
class Helical(AxisJoint):
    """Screw motion about an axis through the joint frame's origin, H_p.

    The pitch keeps its sign: a left-handed screw is no frame change of a right-handed one.

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,), of any length; normalised here.
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

    pitch: float
    coordinate_names = ("angle",)
    coordinate_units = ("rad",)

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True)
class Cylindrical(AxisJoint):
    """Travel along and rotation about one axis through the joint frame's origin, SO(2) x R.

    Coordinates are (travel, angle).

    Parameters
    ----------
    axis : sequence of float
        Direction of the axis in the joint frame, shape (3,), of any length; normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Cylindrical((0, 0, 1))
    >>> joint.nq, joint.nv, joint.coordinate_names
    (2, 2, ('travel', 'angle'))
    """

    coordinate_names = ("travel", "angle")
    coordinate_units = ("m", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.kron(np.eye(2), np.array([self.axis]).T)

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.axis, q[1]), constant(self.axis) * q[0]


@dataclass(frozen=True)
class InPlane:
    """Members of joints that move in a plane and turn about its normal, the last freedom."""

    nv: ClassVar[int]
    normal: Vector3 = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        normal = unit_vector(self.normal, f"{type(self).__name__}, `normal`")
        object.__setattr__(self, "normal", normal)

    @property
    def frame(self) -> np.ndarray:
        """Plane axes (3, 3): columns are the first and second in-plane axis and the normal."""
        return shortest_rotation(self.normal)

    @property
    def basis(self) -> np.ndarray:
        basis = np.zeros((6, self.nv))
        basis[:3, :-1], basis[3:, -1] = self.frame[:, : self.nv - 1], self.frame[:, 2]
        return basis

    def pose(self, q: Vector) -> tuple[Array, Array]:
        count = self.nv - 1
        return axis_rotation(self.normal, q[count]), constant(self.frame[:, :count]) @ q[:count]

    def rate(self, q: Vector, v: Vector) -> Vector:
        return self._split(se2.rate, q, v, v)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return self._split(lambda a, b: se2.compose(a, se2.exp(b)), q, dv, q + dv)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return self._split(lambda a, b: se2.log(se2.compose(se2.inverse(a), b)), q0, q1, q1 - q0)

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return self._split(lambda a, b: se2.dexp_body(a) @ b, dv, rate, rate)

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return self._split(lambda a, b: se2.dexp_body_inverse(a) @ b, dv, v, v)

    def bracket(self, a: Array, b: Array) -> Array:
        return self._split(lambda x, y: se2.ad(x) @ y, a, b, ca.SX(self.nv, 1))

    def _split(
        self, act: Callable[[Array, Array], Array], a: Array, b: Array, travel: Array
    ) -> Array:
        """Act on the planar parts; travel along the normal goes its own way."""
        flat = [0, 1, self.nv - 1]
        planar = act(a[flat], b[flat])
        return ca.vertcat(planar[:2], travel[2 : self.nv - 1], planar[2])


@dataclass(frozen=True)
class Planar(InPlane, Joint):
    """Motion in a plane, SE(2): two translations and a turn about the normal.

    Coordinates are (x, y, theta): position in the joint frame's plane and heading. The
    velocity (vx, vy, omega) is in body axes. With another normal than z the plane's axes are
    those of the joint frame turned the shortest way that takes z to the normal.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,), of any length; normalised here.

    References
    ----------
    Thesis, (2.4.18).

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Planar()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (3, 3, ('x', 'y', 'heading'))
    """

    coordinate_names = ("x", "y", "heading")
    coordinate_units = ("m", "m", "rad")
    freedom_names = ("vx", "vy", "omega")


@dataclass(frozen=True)
class PlanarPrismatic(InPlane, Joint):
    """Motion in a plane and travel along its normal, SE(2) x R (Schoenflies motion).

    Coordinates are (x, y, z, heading), velocities (vx, vy, vz, omega) in body axes; the
    plane's axes are chosen as for `Planar`, z is along the normal.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,), of any length; normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.PlanarPrismatic()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (4, 4, ('x', 'y', 'z', 'heading'))
    """

    coordinate_names = ("x", "y", "z", "heading")
    coordinate_units = ("m", "m", "m", "rad")
    freedom_names = ("vx", "vy", "vz", "omega")


@dataclass(frozen=True)
class Sliding(VectorJoint):
    """Translation in a plane, R^2.

    The plane's axes are those of the joint frame turned the shortest way that takes z to the
    normal, as for `Planar`.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,), of any length; normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Sliding()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (2, 2, ('x', 'y'))
    """

    normal: Vector3 = (0.0, 0.0, 1.0)
    coordinate_names = ("x", "y")
    coordinate_units = ("m", "m")
    freedom_names = ("vx", "vy")

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_vector(self.normal, "Sliding, `normal`"))

    @property
    def basis(self) -> np.ndarray:
        return np.vstack([shortest_rotation(self.normal)[:, :2], np.zeros((3, 2))])

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), constant(self.basis[:3]) @ q


@dataclass(frozen=True)
class Cartesian(VectorJoint):
    """Translation in space, R^3.

    References
    ----------
    Thesis, Lemma 2.4.4.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Cartesian()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (3, 3, ('x', 'y', 'z'))
    """

    coordinate_names = ("x", "y", "z")
    coordinate_units = ("m", "m", "m")
    freedom_names = ("vx", "vy", "vz")

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, :3]

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), q


@dataclass(frozen=True)
class Fixed(VectorJoint):
    """No freedom: the child is welded to the parent.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Fixed()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (0, 0, ())
    """

    coordinate_names = ()
    coordinate_units = ()

    @property
    def basis(self) -> np.ndarray:
        return np.zeros((6, 0))

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), ca.SX(3, 1)


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

    coordinate_names = ("qx", "qy", "qz", "qw")
    coordinate_units = ("1", "1", "1", "1")
    freedom_names = ("wx", "wy", "wz")
    freedom_units = ("rad", "rad", "rad")
    quaternion_at = 0

    @property
    def basis(self) -> np.ndarray:
        return np.vstack([np.zeros((3, 3)), np.eye(3)])

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

    coordinate_names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    coordinate_units = ("m", "m", "m", "1", "1", "1", "1")
    freedom_names = ("vx", "vy", "vz", "wx", "wy", "wz")
    freedom_units = ("m", "m", "m", "rad", "rad", "rad")
    quaternion_at = 3

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)

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

    def bracket(self, a: Array, b: Array) -> Array:
        return se3.ad(a) @ b
