"""Change of frame of twists, wrenches and inertias, written to keep structural zeros.

A pose is a pair (rotation, translation) of the child's frame in the parent's.
"""

from __future__ import annotations

from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array

Placed: TypeAlias = tuple[Array, Array]
Twist: TypeAlias = tuple[Array, Array]


def constant(values: object) -> Array:
    """Numbers as an expression whose zeros are structural."""
    return ca.SX(ca.sparsify(ca.DM(np.asarray(values, dtype=float))))


def cross(a: Array, columns: Array) -> Array:
    """Cross product of a 3-vector with each column of a (3, k) matrix."""
    if columns.shape[1] == 1:
        return ca.cross(a, columns)
    parts = [ca.cross(a, columns[:, k]) for k in range(columns.shape[1])]
    return ca.horzcat(*parts) if parts else ca.SX(3, 0)


def skew(a: Array) -> Array:
    """Matrix (3, 3) of the cross product with a."""
    return ca.sparsify(ca.skew(a))


def compose(outer: Placed, inner: Placed) -> Placed:
    """Product of two poses."""
    return outer[0] @ inner[0], outer[1] + outer[0] @ inner[1]


def invert(pose: Placed) -> Placed:
    """Inverse of a pose."""
    return pose[0].T, -(pose[0].T @ pose[1])


def twist_to_child(pose: Placed, twist: Twist) -> Twist:
    """Twist of the parent seen in the child's frame: Ad of the inverse pose."""
    rotation, translation = pose
    linear, angular = twist
    return rotation.T @ (linear - cross(translation, angular)), rotation.T @ angular


def wrench_to_parent(pose: Placed, wrench: Twist) -> Twist:
    """Wrench or momentum at the child moved to the parent's frame: transpose of the above."""
    rotation, translation = pose
    force = rotation @ wrench[0]
    return force, rotation @ wrench[1] + cross(translation, force)


def bracket(a: Twist, b: Twist) -> Twist:
    """Lie bracket of twists: ad_a b."""
    return cross(a[1], b[0]) + cross(a[0], b[1]), cross(a[1], b[1])


def stacked(twist: Twist) -> Array:
    """Twist as one array [linear; angular]."""
    return ca.vertcat(*twist)
