"""Lie groups on which outputs live: coordinates, velocity, error and its transport.

Each group is one object. It defines how a body's pose gives the output's flat
coordinates, how its body twist gives the left-trivialised output velocity, the error
x = log(r^-1 gamma), the transport Ad of r^-1 gamma, the bracket ad, and
B(x) = ad_x / (exp(ad_x) - 1) of the error dynamics. Directions are no group, but SO(3) acts on
them: `Direction` has what takes the place of each of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import block_diag

from concur.codegen import Array, constant, part
from concur.errors import OutputError
from concur.groups import quaternion, s2, se2, se3, so3
from concur.robot import Placed, Twist, cross, shortest_rotation

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class OutputGroup(ABC):
    """A Lie group R as an output takes values in it.

    Attributes
    ----------
    dim : int
        Dimension of the group.
    pose_size : int
        Length of the flat coordinates.
    coordinate_names, error_names, error_units : tuple of str
        Names of the flat coordinates; names and units of the error's components.
    planar : bool
        Whether the output means something only for a body that moves in a plane.
    unit_size : int
        Number of flat coordinates, the last ones, that are a unit quaternion or a unit vector.
    operators : module, optional
        Its module in `concur.groups`, with the operators of its error dynamics; None for an
        abelian group.
    """

    dim: int
    pose_size: int
    coordinate_names: tuple[str, ...]
    error_names: tuple[str, ...]
    error_units: tuple[str, ...]
    planar: bool = False
    unit_size: int = 0
    operators: Any = None

    @property
    @abstractmethod
    def basis(self) -> np.ndarray:
        """Twist basis (6, dim) of the group's algebra in se(3)."""

    @property
    def paths(self) -> OutputGroup:
        """The group in which references move: its twists are those of `ReferenceSample`."""
        return self

    @abstractmethod
    def coordinates(self, pose: Placed) -> Array:
        """Flat coordinates of a pose.

        Parameters
        ----------
        pose : Placed
            Rotation and position of the output's frame in the inertial frame.

        Returns
        -------
        Array
            Shape (pose_size,).
        """

    @abstractmethod
    def velocity(self, pose: Placed, twist: Twist) -> Array:
        """Left-trivialised output velocity of a body twist; linear in the twist.

        Parameters
        ----------
        pose : Placed
            Rotation and position of the output's frame in the inertial frame.
        twist : Twist
            Its body twist.

        Returns
        -------
        Array
            Shape (dim,).
        """

    @abstractmethod
    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        """Time derivative of `velocity`.

        Parameters
        ----------
        pose : Placed
            Rotation and position of the output's frame in the inertial frame.
        twist : Twist
            Its body twist.
        rate : Twist
            Rate of the twist.

        Returns
        -------
        Array
            Shape (dim,).
        """

    @abstractmethod
    def error(self, actual: Array, desired: Array) -> Array:
        """Error x = log(r^-1 gamma).

        Parameters
        ----------
        actual, desired : Array
            Flat coordinates of r and gamma, shape (pose_size,).

        Returns
        -------
        Array
            Shape (dim,).
        """

    def offset(self, actual: Array, desired: Array) -> Array:
        """Offset of r from gamma: the error, for a direction along the normals of gamma.

        Parameters
        ----------
        actual, desired : Array
            Flat coordinates of r and gamma, shape (pose_size,).

        Returns
        -------
        Array
            Shape (dim,).
        """
        return self.error(actual, desired)

    def shifted(self, desired: Array, x: Array) -> Array:
        """Coordinates r whose offset is x: r = gamma exp(-x), the inverse of `offset`.

        Parameters
        ----------
        desired : Array
            Flat coordinates of gamma, shape (pose_size,).
        x : Array
            Offset, shape (dim,).

        Returns
        -------
        Array
            Shape (pose_size,).
        """
        return desired - x

    def transport(self, x: Array, actual: Array | None = None) -> Array:
        """Ad of r^-1 gamma = exp(x); the identity for abelian groups.

        Parameters
        ----------
        x : Array
            Error, shape (dim,).
        actual : Array, optional
            Flat coordinates of r, (pose_size,), on which it depends where there is no group.

        Returns
        -------
        Array
            Map from twists of a reference, shape (dim, paths.dim).

        References
        ----------
        Thesis, (5.2.16), (5.2.17).
        """
        group = self.operators
        return ca.SX.eye(self.dim) if group is None else group.adjoint(group.exp(x))

    def ad(self, velocity: Array) -> Array:
        """Matrix of the bracket with a velocity; zero for abelian groups.

        Parameters
        ----------
        velocity : Array
            Shape (dim,).

        Returns
        -------
        Array
            Shape (dim, dim).
        """
        return ca.SX(self.dim, self.dim) if self.abelian else self.operators.ad(velocity)

    def differential(self, x: Array) -> Array:
        """D(x): the velocity of exp(x) is D(x) xdot; the identity for abelian groups.

        Parameters
        ----------
        x : Array
            Logarithm, shape (dim,).

        Returns
        -------
        Array
            Shape (dim, dim).

        References
        ----------
        Thesis, (2.1.4).
        """
        return ca.SX.eye(self.dim) if self.abelian else self.operators.dexp_body(x)

    def error_map(self, x: Array) -> Array:
        """B(x) of the error dynamics xdot = -B(x) ve; the identity for abelian groups.

        Parameters
        ----------
        x : Array
            Error, shape (dim,).

        Returns
        -------
        Array
            Shape (dim, dim).

        References
        ----------
        Thesis, Corollary 5.2.5, Proposition 5.2.6, (5.2.18), (5.2.19).
        """
        return ca.SX.eye(self.dim) if self.abelian else self.operators.dexp_spatial_inverse(x)

    def closure_residual(self) -> float:
        """Largest part of a bracket of two basis elements that leaves the algebra."""
        basis = self.basis
        worst = 0.0
        for column in basis.T:
            brackets = se3.ad(column) @ basis
            rest = brackets - basis @ (np.linalg.pinv(basis) @ brackets)
            worst = max(worst, float(np.abs(rest).max(initial=0.0)))
        return worst

    @property
    def abelian(self) -> bool:
        """Whether the error dynamics are linear."""
        return self.operators is None


class Vector(OutputGroup):
    """R^n: components of a point's position along inertial axes.

    Parameters
    ----------
    axes : sequence of str
        Those of "x", "y" and "z" that count.
    """

    def __init__(self, axes: Sequence[str]) -> None:
        self.axes = tuple(axes)
        self.dim = self.pose_size = len(self.axes)
        self.coordinate_names = self.error_names = self.axes
        self.error_units = ("m",) * self.dim

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, ["xyz".index(axis) for axis in self.axes]]

    @property
    def _rows(self) -> Array:
        return constant([AXES[axis] for axis in self.axes])

    def coordinates(self, pose: Placed) -> Array:
        return self._rows @ pose[1]

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return self._rows @ (pose[0] @ twist[0])

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return self._rows @ (pose[0] @ (rate[0] + cross(twist[1], twist[0])))

    def error(self, actual: Array, desired: Array) -> Array:
        return desired - actual


class Coordinates(Vector):
    """R^n of any n: values of a function, with the values themselves in place of a position.

    Parameters
    ----------
    n : int
        Dimension.
    unit : str
        Unit of each, "m" or "rad".
    """

    def __init__(self, n: int, unit: str) -> None:
        super().__init__([f"r{k}" for k in range(n)])
        self.error_units = (unit,) * n

    @property
    def basis(self) -> np.ndarray:
        return np.zeros((6, self.dim))

    def coordinates(self, pose: Placed) -> Array:
        return pose[1]

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return twist[0]

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return rate[0]


class _Planar(OutputGroup):
    """Base of SO(2) and SE(2): the plane, with its axes.

    Formulas are those of the x-y plane, for poses seen from the plane's frame: inertial axes
    turned the shortest way that takes z to the normal.
    """

    planar = True

    def __init__(self, normal: Sequence[float] = AXES["z"]) -> None:
        self._upright = tuple(normal) == AXES["z"]
        self._frame = np.eye(3) if self._upright else shortest_rotation(normal)

    def _seen(self, pose: Placed) -> Placed:
        if self._upright:
            return pose
        turn = constant(self._frame.T)
        return turn @ pose[0], turn @ pose[1]

    def _heading(self, rotation: Array) -> Array:
        return ca.atan2(rotation[1, 0], rotation[0, 0])


class Angle(_Planar):
    """SO(2): heading of the output's frame in a plane, about its normal.

    Parameters
    ----------
    normal : sequence of float
        Unit normal of the plane.
    """

    dim = pose_size = 1
    coordinate_names = error_names = ("heading",)
    error_units = ("rad",)

    @property
    def basis(self) -> np.ndarray:
        return np.concatenate([np.zeros(3), self._frame[:, 2]])[:, None]

    def coordinates(self, pose: Placed) -> Array:
        return self._heading(self._seen(pose)[0])

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return self._seen(pose)[0][2, :] @ twist[1]

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return self._seen(pose)[0][2, :] @ rate[1]

    def error(self, actual: Array, desired: Array) -> Array:
        return ca.atan2(ca.sin(desired - actual), ca.cos(desired - actual))


class PlanarPose(_Planar):
    """SE(2): position in a plane, along its axes, and heading.

    Parameters
    ----------
    normal : sequence of float
        Unit normal of the plane.
    """

    dim = pose_size = 3
    operators = se2
    coordinate_names = ("x", "y", "heading")
    error_names = ("x", "y", "heading")
    error_units = ("m", "m", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.asarray(block_diag(self._frame, self._frame)[:, [0, 1, 5]])

    def coordinates(self, pose: Placed) -> Array:
        rotation, place = self._seen(pose)
        return ca.vertcat(place[:2], self._heading(rotation))

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return self._in_plane(self._seen(pose)[0], twist[0], twist[1])

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        own = self.velocity(pose, twist)
        rotation = self._seen(pose)[0]
        direct = self._in_plane(rotation, rate[0] + cross(twist[1], twist[0]), rate[1])
        return direct + ca.vertcat(own[2] * own[1], -own[2] * own[0], 0.0)

    def error(self, actual: Array, desired: Array) -> Array:
        return se2.log(se2.compose(se2.inverse(actual), desired))

    def shifted(self, desired: Array, x: Array) -> Array:
        return se2.compose(desired, se2.exp(-x))

    def _in_plane(self, rotation: Array, linear: Array, angular: Array) -> Array:
        heading = self._heading(rotation)
        turned = rotation @ linear
        c, s = ca.cos(heading), ca.sin(heading)
        return ca.vertcat(
            c * turned[0, :] + s * turned[1, :],
            c * turned[1, :] - s * turned[0, :],
            rotation[2, :] @ angular,
        )


class Rotation(OutputGroup):
    """SO(3): orientation of the output's frame, as a unit quaternion (x, y, z, w)."""

    dim, pose_size, unit_size = 3, 4, 4
    operators = so3
    coordinate_names = ("qx", "qy", "qz", "qw")
    error_names = ("rx", "ry", "rz")
    error_units = ("rad", "rad", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, 3:]

    def coordinates(self, pose: Placed) -> Array:
        return quaternion.from_matrix(pose[0])

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return twist[1]

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return rate[1]

    def error(self, actual: Array, desired: Array) -> Array:
        return quaternion.log(quaternion.multiply(quaternion.conjugate(actual), desired))

    def shifted(self, desired: Array, x: Array) -> Array:
        return quaternion.multiply(desired, quaternion.exp(-x))

    def transport(self, x: Array, actual: Array | None = None) -> Array:
        return so3.exp(x)

    def ad(self, velocity: Array) -> Array:
        return so3.skew(velocity)


class Pose(OutputGroup):
    """SE(3): pose of the output's frame; position and orientation errors are coupled."""

    dim, pose_size, unit_size = 6, 7, 4
    operators = se3
    coordinate_names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    error_names = ("x", "y", "z", "rx", "ry", "rz")
    error_units = ("m", "m", "m", "rad", "rad", "rad")

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, :]

    def coordinates(self, pose: Placed) -> Array:
        return ca.vertcat(pose[1], quaternion.from_matrix(pose[0]))

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return ca.vertcat(*twist)

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return ca.vertcat(*rate)

    def error(self, actual: Array, desired: Array) -> Array:
        attitude = quaternion.multiply(quaternion.conjugate(actual[3:]), desired[3:])
        offset = quaternion.to_matrix(actual[3:]).T @ (desired[:3] - actual[:3])
        rotation = quaternion.log(attitude)
        return ca.vertcat(so3.dexp_spatial_inverse(rotation) @ offset, rotation)

    def shifted(self, desired: Array, x: Array) -> Array:
        offset = quaternion.rotate(desired[3:], se3.exp(-x)[:3, 3])
        return ca.vertcat(
            desired[:3] + offset, quaternion.multiply(desired[3:], quaternion.exp(-x[3:]))
        )


class Product(OutputGroup):
    """Direct product of groups: each keeps its own error dynamics.

    Parameters
    ----------
    factors : sequence of OutputGroup
        The groups, in order.
    """

    def __init__(self, factors: Sequence[OutputGroup]) -> None:
        self.factors = tuple(factors)
        self.dim = sum(f.dim for f in self.factors)
        self.pose_size = sum(f.pose_size for f in self.factors)
        self.coordinate_names = tuple(n for f in self.factors for n in f.coordinate_names)
        self.error_names = tuple(n for f in self.factors for n in f.error_names)
        self.error_units = tuple(n for f in self.factors for n in f.error_units)
        self.planar = any(f.planar for f in self.factors)
        self.unit_size = self.factors[-1].unit_size if self.factors else 0

    @property
    def basis(self) -> np.ndarray:
        return np.hstack([f.basis for f in self.factors])

    def closure_residual(self) -> float:
        return max(f.closure_residual() for f in self.factors)

    def coordinates(self, pose: Placed) -> Array:
        return ca.vertcat(*[f.coordinates(pose) for f in self.factors])

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return ca.vertcat(*[f.velocity(pose, twist) for f in self.factors])

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return ca.vertcat(*[f.acceleration(pose, twist, rate) for f in self.factors])

    def error(self, actual: Array, desired: Array) -> Array:
        spans = self._spans("pose_size")
        return ca.vertcat(*[f.error(part(actual, own), part(desired, own)) for f, own in spans])

    def offset(self, actual: Array, desired: Array) -> Array:
        spans = self._spans("pose_size")
        return ca.vertcat(*[f.offset(part(actual, own), part(desired, own)) for f, own in spans])

    def shifted(self, desired: Array, x: Array) -> Array:
        places = zip(self._spans("pose_size"), self._spans("dim"), strict=True)
        return ca.vertcat(
            *[f.shifted(part(desired, own), part(x, rows)) for (f, own), (_, rows) in places]
        )

    def transport(self, x: Array, actual: Array | None = None) -> Array:
        if actual is None:
            return self._blocks(x, lambda f, part: f.transport(part))
        places = zip(self._spans("pose_size"), self._spans("dim"), strict=True)
        return ca.diagcat(
            *[f.transport(part(x, rows), part(actual, own)) for (f, own), (_, rows) in places]
        )

    def ad(self, velocity: Array) -> Array:
        return self._blocks(velocity, lambda f, part: f.ad(part))

    def differential(self, x: Array) -> Array:
        return self._blocks(x, lambda f, part: f.differential(part))

    def error_map(self, x: Array) -> Array:
        return self._blocks(x, lambda f, part: f.error_map(part))

    @property
    def abelian(self) -> bool:
        return all(f.abelian for f in self.factors)

    def _spans(self, size: str) -> Iterator[tuple[OutputGroup, slice]]:
        """Factors with their places, by `pose_size` in coordinates and by `dim` in velocities."""
        start = 0
        for f in self.factors:
            yield f, slice(start, start + getattr(f, size))
            start += getattr(f, size)

    def _blocks(self, x: Array, act: Callable[[OutputGroup, Array], Array]) -> Array:
        return ca.diagcat(*[act(f, part(x, own)) for f, own in self._spans("dim")])


class Turns(OutputGroup):
    """Motions of a direction by turns in inertial axes: what references on S^2 are made of.

    Its logarithms are rotation vectors, and its twists angular velocities, both in inertial axes.
    Of an angular velocity the part along the direction does not move it.
    """

    dim = pose_size = unit_size = 3
    coordinate_names = ("x", "y", "z")
    error_names = ("rx", "ry", "rz")
    error_units = ("rad", "rad", "rad")
    operators = so3

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, 3:]

    def coordinates(self, pose: Placed) -> Array:
        return pose[0][:, 2]

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return pose[0] @ twist[1]

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return pose[0] @ rate[1]

    def error(self, actual: Array, desired: Array) -> Array:
        return s2.log(actual, desired)

    def shifted(self, desired: Array, x: Array) -> Array:
        return s2.turned(desired, -x)

    def differential(self, x: Array) -> Array:
        return so3.dexp_spatial(x)

    def error_map(self, x: Array) -> Array:
        return so3.dexp_body_inverse(x)


class Direction(OutputGroup):
    """S^2: direction of an axis of a body, a unit vector in inertial axes.

    SO(3) acts on directions, and the spin about one leaves it alone. With the direction d, that of
    the reference g and its angular velocity w, the errors are the shortest turn from d to g, and
    ``ve = d x ddot - (w - (w . d) d)``, both along the two normals `s2.frame` of d. Accelerations
    and rates are covariant, free of the turning of these normals. In normals that turn with
    ``w . d``,

        xdot = -B(x) ve,    B = a cot a + (1 - a cot a) n n^T,    x = a n,

    so that with one number as the gain of both components the loop is autonomous, as on groups.

    An offset is the same turn along the normals of g. Two numbers are an offset of one direction
    d; as an error they belong to none, one or two, because the normals of d depend on d.

    Parameters
    ----------
    axis : sequence of float
        The axis in the output's frame, of unit length.
    """

    dim, pose_size, unit_size = 2, 3, 3
    coordinate_names = ("x", "y", "z")
    error_names = ("tilt1", "tilt2")
    error_units = ("rad", "rad")
    operators = s2

    def __init__(self, axis: Sequence[float] = AXES["z"]) -> None:
        self.axis = tuple(axis)

    @property
    def basis(self) -> np.ndarray:
        return np.eye(6)[:, 3:]

    @property
    def paths(self) -> OutputGroup:
        return Turns()

    def coordinates(self, pose: Placed) -> Array:
        return pose[0] @ constant(self.axis)

    def velocity(self, pose: Placed, twist: Twist) -> Array:
        return s2.frame(self.coordinates(pose)).T @ (pose[0] @ twist[1])

    def acceleration(self, pose: Placed, twist: Twist, rate: Twist) -> Array:
        return self.following(pose, twist[1], twist[1], rate[1])

    def following(self, pose: Placed, spin: Array, other: Array, rate: Array) -> Array:
        """Covariant rate of the velocity that belongs to another angular velocity.

        Parameters
        ----------
        pose : Placed
            Rotation and position of the output's frame in the inertial frame.
        spin : Array
            Angular velocity of the body, in its axes.
        other, rate : Array
            The other angular velocity, and the rate of the vector, in the axes of the body.

        Returns
        -------
        Array
            Shape (2,).
        """
        axis = constant(self.axis)
        bent = rate - ca.dot(axis, other) * cross(spin, axis)
        return s2.frame(self.coordinates(pose)).T @ (pose[0] @ bent)

    def error(self, actual: Array, desired: Array) -> Array:
        return s2.frame(actual).T @ s2.log(actual, desired)

    def offset(self, actual: Array, desired: Array) -> Array:
        return s2.frame(desired).T @ s2.log(actual, desired)

    def shifted(self, desired: Array, x: Array) -> Array:
        return s2.turned(desired, -(s2.frame(desired) @ x))

    def transport(self, x: Array, actual: Array | None = None) -> Array:
        if actual is None:
            raise OutputError(
                "outputs",
                expected="groups on which the error alone carries a twist",
                came="S2, a direction",
                cure="Follow the attitude, an output in SO3, or leave this question out.",
            )
        return s2.frame(actual).T

    def ad(self, velocity: Array) -> Array:
        return ca.SX(self.dim, self.dim)

    def differential(self, x: Array) -> Array:
        return ca.inv(self.error_map(x))

    def error_map(self, x: Array) -> Array:
        return s2.error_map(x)


NAMES = ("R3xSO3", "SE3", "SO3", "S2", "R3", "SE2", "R2", "SO2", "R")
"""Names of the groups of outputs on bodies."""


@cache
def named(
    name: str,
    axes: str | None = None,
    normal: Sequence[float] = AXES["z"],
    axis: Sequence[float] = AXES["z"],
) -> OutputGroup:
    """Group of an output on a body by its name.

    Parameters
    ----------
    name : str
        One of `NAMES`, or "R" with a larger number: that many coordinates without a body.
    axes : str, optional
        Inertial axes of a vector group; default the first ones.
    normal : tuple of float
        Unit normal of the plane of "SE2" and "SO2".
    axis : tuple of float
        Axis of the output's frame that is the direction of "S2".

    Returns
    -------
    OutputGroup
        The group.
    """
    if name == "S2":
        return Direction(axis)
    if name == "R3xSO3":
        return Product([Vector("xyz"), Rotation()])
    if name in ("SE3", "SO3"):
        return Pose() if name == "SE3" else Rotation()
    if name in ("SE2", "SO2"):
        return PlanarPose(normal) if name == "SE2" else Angle(normal)
    size = int(name[1:] or 1)
    return Vector(axes or "xyz"[:size]) if size <= 3 else Coordinates(size, "m")
