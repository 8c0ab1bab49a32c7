"""Change of frame of twists, wrenches and inertias, written to keep structural zeros.

A pose is a pair (rotation, translation) of the child's frame in the parent's.
"""

from __future__ import annotations

from typing import TypeAlias

import casadi as ca

from concur.codegen import Array

Placed: TypeAlias = tuple[Array, Array]
Twist: TypeAlias = tuple[Array, Array]


def cross(a: Array, columns: Array) -> Array:
    """Cross product of a 3-vector with each column of a matrix (3, k)."""
    if columns.shape[1] == 1:
        return ca.cross(a, columns)
    parts = [ca.cross(a, columns[:, k]) for k in range(columns.shape[1])]
    return ca.horzcat(*parts) if parts else ca.SX(3, 0)


def compose(outer: Placed, inner: Placed) -> Placed:
    """Product of two poses: the inner frame in the outer's parent."""
    return outer[0] @ inner[0], outer[1] + outer[0] @ inner[1]


def invert(pose: Placed) -> Placed:
    """Inverse of a pose: the parent's frame in the child's."""
    return pose[0].T, -(pose[0].T @ pose[1])


def twist_to_child(pose: Placed, twist: Twist) -> Twist:
    """Twist of the parent, parts (3, k), seen in the child's frame: Ad of the inverse pose."""
    rotation, translation = pose
    linear, angular = twist
    return rotation.T @ (linear - cross(translation, angular)), rotation.T @ angular


def bracket(a: Twist, b: Twist) -> Twist:
    """Lie bracket of twists, ad_a b; the parts of b may have k columns."""
    return cross(a[1], b[0]) + cross(a[0], b[1]), cross(a[1], b[1])


def stacked(twist: Twist) -> Array:
    """Twist as one array [linear; angular], shape (6, k)."""
    return ca.vertcat(*twist)
