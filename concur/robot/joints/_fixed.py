"""A joint without motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.robot.joints._joint import Joint


@dataclass(frozen=True)
class Fixed(Joint):
    """No freedom: the child is welded to the parent.

    Examples
    --------
    >>> import concur as cc
    >>> joint = cc.joints.Fixed()
    >>> joint.nq, joint.nv, joint.coordinate_names
    (0, 0, ())
    """

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    coordinate_names: ClassVar[tuple[str, ...]] = ()
    coordinate_units: ClassVar[tuple[str, ...]] = ()
    freedom_names: ClassVar[tuple[str, ...]] = ()
    freedom_units: ClassVar[tuple[str, ...]] = ()

    @property
    def basis(self) -> np.ndarray:
        return np.zeros((6, 0))

    def pose(self, q: Vector) -> tuple[Array, Array]:
        return ca.SX.eye(3), ca.SX(3, 1)

    def rate(self, q: Vector, v: Vector) -> Vector:
        return ca.SX(0, 1)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        return ca.SX(0, 1)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return ca.SX(0, 1)

    def dexp(self, dv: Vector, rate: Array) -> Array:
        return ca.SX(0, 1)

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        return ca.SX(0, 1)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(0)
