"""Rigid-body inertia as mass, first moment and second moment, in the body frame."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, constant
from concur.groups import so3
from concur.robot._inertia import Inertia
from concur.robot._motion import Placed, Twist, cross
from concur.robot._tree import Tree


@dataclass(frozen=True)
class BodyInertia:
    """Mass, first moment and inertia tensor about the origin: from a twist to a momentum."""

    mass: float
    first: Array
    second: Array

    @staticmethod
    def of(inertia: Inertia, tensor: np.ndarray) -> BodyInertia:
        """Take the numbers of a described body, and its tensor about the centre of mass."""
        com, mass = np.array(inertia.com), inertia.mass
        about = mass * (com @ com * np.eye(3) - np.outer(com, com))
        return BodyInertia(mass, constant(mass * com), constant(tensor + about))

    def momentum(self, twist: Twist) -> Twist:
        """Momentum (linear, angular) of a twist; the parts may be (3, k) matrices."""
        linear, angular = twist
        return (
            self.mass * linear - cross(self.first, angular),
            cross(self.first, linear) + self.second @ angular,
        )

    def plus(self, other: BodyInertia) -> BodyInertia:
        """Two bodies welded together."""
        return BodyInertia(
            self.mass + other.mass, self.first + other.first, self.second + other.second
        )

    def seen_from(self, pose: Placed) -> BodyInertia:
        """The same body seen from the frame in which it has the given pose."""
        rotation, translation = pose
        first = rotation @ self.first
        p, h = so3.skew(translation), so3.skew(first)
        second = rotation @ self.second @ rotation.T - p @ h - h @ p - self.mass * (p @ p)
        return BodyInertia(self.mass, first + self.mass * translation, second)

    def matrix(self) -> Array:
        """Spatial inertia (6, 6)."""
        h = so3.skew(self.first)
        return ca.vertcat(ca.horzcat(self.mass * ca.SX.eye(3), -h), ca.horzcat(h, self.second))


def body_inertias(tree: Tree, asked: str) -> list[BodyInertia]:
    """Inertia of each described body, in its frame, for the function `asked`."""
    bodies = tree.described(asked)
    return [BodyInertia.of(b.inertia, x) for b, x in zip(bodies, tree.tensors, strict=True)]


def composite_inertias(
    bodies: list[BodyInertia], poses: list[Placed], parents: list[int | None]
) -> list[BodyInertia]:
    """Inertia of each body with all it carries, in its own frame."""
    composite = list(bodies)
    for i in reversed(range(len(bodies))):
        parent = parents[i]
        if parent is not None:
            composite[parent] = composite[parent].plus(composite[i].seen_from(poses[i]))
    return composite
