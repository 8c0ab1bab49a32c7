"""Joints whose group moves in a plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.groups import se2
from concur.robot._pose import unit_vector
from concur.robot.joints._joint import Joint
from concur.robot.joints._rotation import axis_rotation, shortest_rotation


@dataclass(frozen=True)
class Planar(Joint):
    """Motion in a plane, SE(2): two translations and a turn about the normal.

    Coordinates are (x, y, theta): position in the joint frame's plane and heading. The
    velocity (vx, vy, omega) is in body axes. With another normal than z the plane's axes are
    those of the joint frame turned the shortest way that takes z to the normal.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Planar()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (3, 3, ('x', 'y', 'heading'))
    """

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "heading")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "m", "rad")
    freedom_names: ClassVar[tuple[str, ...]] = ("vx", "vy", "omega")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "m", "rad")

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_vector(self.normal, "Planar, `normal`"))

    @property
    def frame(self) -> np.ndarray:
        """Plane axes (3, 3): columns are the first and second in-plane axis and the normal."""
        return shortest_rotation(self.normal)

    @property
    def basis(self) -> np.ndarray:
        basis = np.zeros((6, 3))
        basis[:3, :2] = self.frame[:, :2]
        basis[3:, 2] = self.frame[:, 2]
        return basis

    def pose(self, q: Vector) -> tuple[Array, Array]:
        translation = constant(self.frame[:, :2]) @ q[:2]
        return axis_rotation(self.normal, q[2]), translation

    def rate(self, q: Vector, v: Vector) -> Vector:
        return se2.rate(q, v)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return se2.compose(q, se2.exp(dv))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return se2.log(se2.compose(se2.inverse(q0), q1))

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return se2.dexp_body(dv) @ rate

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return se2.dexp_body_inverse(dv) @ v

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.uniform(-1.0, 1.0, 2), rng.uniform(-np.pi, np.pi, 1)])

    def bracket(self, a: Array, b: Array) -> Array:
        return se2.ad(a) @ b


@dataclass(frozen=True)
class PlanarPrismatic(Joint):
    """Motion in a plane and travel along its normal, SE(2) x R (Schoenflies motion).

    Coordinates are (x, y, z, heading), velocities (vx, vy, vz, omega) in body axes; the
    plane's axes are chosen as for `Planar`, z is along the normal.

    Parameters
    ----------
    normal : sequence of float
        Normal of the plane in the joint frame, shape (3,); normalised here.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.PlanarPrismatic()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (4, 4, ('x', 'y', 'z', 'heading'))
    """

    normal: Sequence[float] = (0.0, 0.0, 1.0)
    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 4
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "z", "heading")
    coordinate_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "rad")
    freedom_names: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz", "omega")
    freedom_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "rad")

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit_vector(self.normal, "PlanarPrismatic, `normal`"))

    @property
    def basis(self) -> np.ndarray:
        frame = shortest_rotation(self.normal)
        turning = np.concatenate([np.zeros(3), frame[:, 2]])[:, None]
        return np.hstack([np.vstack([frame, np.zeros((3, 3))]), turning])

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return axis_rotation(self.normal, q[3]), constant(self.basis[:3, :3]) @ q[:3]

    def rate(self, q: Vector, v: Vector) -> Vector:
        return self._split(se2.rate, q, v, v[2])

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return self._split(lambda a, b: se2.compose(a, se2.exp(b)), q, dv, q[2] + dv[2])

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return self._split(
            lambda a, b: se2.log(se2.compose(se2.inverse(a), b)), q0, q1, q1[2] - q0[2]
        )

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return self._split(lambda a, b: se2.dexp_body(a) @ b, dv, rate, rate[2])

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return self._split(lambda a, b: se2.dexp_body_inverse(a) @ b, dv, v, v[2])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-np.pi, np.pi, 1)])

    def bracket(self, a: Array, b: Array) -> Array:
        return self._split(lambda x, y: se2.ad(x) @ y, a, b, ca.SX(1, 1))

    @staticmethod
    def _split(act: Callable[[Array, Array], Array], a: Array, b: Array, travel: Array) -> Array:
        """Act on the planar parts; the travel along the normal goes its own way."""
        flat = [0, 1, 3]
        planar = act(a[flat], b[flat])
        return ca.vertcat(planar[:2], travel, planar[2])
