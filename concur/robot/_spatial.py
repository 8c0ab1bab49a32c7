"""Twists, turns and masses as expressions, written to keep structural zeros.

A pose is a pair (rotation, translation) of the child's frame in the parent's; a twist or wrench is
a pair (linear, angular), each with one column or several.
"""

from __future__ import annotations

from dataclasses import dataclass
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


def power(a: Twist, b: Twist) -> Array:
    """Products of the columns of a twist with those of a wrench."""
    return a[0].T @ b[0] + a[1].T @ b[1]


def plus(a: Twist, b: Twist) -> Twist:
    """Sum of two twists or wrenches."""
    return a[0] + b[0], a[1] + b[1]


@dataclass(frozen=True, eq=False)
class Turn:
    """A rotation as a recursion applies it: v = matrix @ v', about a coordinate axis or any."""

    matrix: Array
    axis: int | None

    @staticmethod
    def about(axis: int, cosine: Array, sine: Array) -> Turn:
        """Make a turn about a coordinate axis."""
        i, j = (axis + 1) % 3, (axis + 2) % 3
        matrix = ca.SX(3, 3)
        matrix[axis, axis] = 1.0
        matrix[i, i], matrix[j, j] = cosine, cosine
        matrix[j, i], matrix[i, j] = sine, -sine
        return Turn(ca.sparsify(matrix), axis)

    @staticmethod
    def of(matrix: ca.SX) -> Turn:
        """Take a rotation matrix; find the axis from its zeros."""
        pattern = {(int(i), int(j)) for i, j in zip(*matrix.sparsity().get_triplet(), strict=True)}
        for axis in range(3):
            i, j = (axis + 1) % 3, (axis + 2) % 3
            block = {(axis, axis), (i, i), (j, j), (i, j), (j, i)}
            if pattern <= block and matrix[axis, axis].is_one():
                return Turn(matrix, axis)
        return Turn(matrix, None)

    def outwards(self, vectors: Array) -> Array:
        """Components along the turned axes of vectors (3, k)."""
        return self.matrix.T @ vectors

    def inwards(self, vectors: Array) -> Array:
        """Components along the axes before the turn of vectors (3, k)."""
        return self.matrix @ vectors

    def seen_inwards(self, tensor: Array) -> Array:
        """A symmetric tensor (3, 3) along the axes before the turn."""
        if self.axis is None:
            half = self.matrix @ tensor
            return ca.triu2symm(ca.triu(half @ self.matrix.T))
        k = self.axis
        i, j = (k + 1) % 3, (k + 2) % 3
        c, s = self.matrix[i, i], self.matrix[j, i]
        # Both changes of the diagonal and that beside it come from one product.
        common = s * (tensor[j, j] - tensor[i, i]) - 2 * c * tensor[i, j]
        change = s * common
        turned = ca.SX(3, 3)
        turned[k, k] = tensor[k, k]
        turned[i, i], turned[j, j] = tensor[i, i] + change, tensor[j, j] - change
        pairs = {
            (i, j): -(c * common) - tensor[i, j],
            (i, k): c * tensor[i, k] - s * tensor[j, k],
            (j, k): s * tensor[i, k] + c * tensor[j, k],
        }
        for (a, b), value in pairs.items():
            turned[a, b] = turned[b, a] = value
        return ca.sparsify(turned)


@dataclass(frozen=True, eq=False)
class Step:
    """Pose of a link in its parent, as turns one after the other.

    Parameters
    ----------
    turns : tuple of Turn
        From the parent's axes to the link's.
    offset : casadi.SX
        Origin in the parent's link frame, shape (3,), m.
    """

    turns: tuple[Turn, ...]
    offset: Array

    def outwards(self, vectors: Array) -> Array:
        """Turn components (3, k) along the parent's axes into those along the link's."""
        for turn in self.turns:
            vectors = turn.outwards(vectors)
        return vectors

    def inwards(self, vectors: Array) -> Array:
        """Turn components (3, k) along the link's axes into those along the parent's."""
        for turn in reversed(self.turns):
            vectors = turn.inwards(vectors)
        return vectors

    def seen_inwards(self, tensor: Array) -> Array:
        """Turn a symmetric tensor (3, 3) along the link's axes into that along the parent's."""
        for turn in reversed(self.turns):
            tensor = turn.seen_inwards(tensor)
        return tensor

    def twist_outwards(self, twist: Twist) -> Twist:
        """Twist of the parent at its origin, parts (3, k), moved to the link's origin."""
        linear, angular = twist
        return self.outwards(linear - cross(self.offset, angular)), self.outwards(angular)

    def wrench_inwards(self, wrench: Twist) -> Twist:
        """Wrench or momentum at the link's origin, parts (3, k), moved to its parent's."""
        force = self.inwards(wrench[0])
        return force, self.inwards(wrench[1]) + cross(self.offset, force)

    def extended(self, rotation: Array) -> Array:
        """Attitude (3, 3) of the link for that of its parent."""
        for turn in self.turns:
            rotation = rotation @ turn.matrix
        return rotation


@dataclass(frozen=True, eq=False)
class Distribution:
    """Mass, first moment and symmetric second moment (integral of r r^T) in some frame."""

    mass: float | Array
    first: Array
    second: Array

    @property
    def moves(self) -> bool:
        """Whether the mass may be other than zero."""
        return isinstance(self.mass, ca.SX) or bool(self.mass)

    @property
    def tensor(self) -> Array:
        """Inertia tensor about the frame's origin, shape (3, 3), kg m^2."""
        xx, yy, zz = (self.second[k, k] for k in range(3))
        tensor = -self.second
        tensor[0, 0], tensor[1, 1], tensor[2, 2] = yy + zz, xx + zz, xx + yy
        return ca.sparsify(tensor)

    def momentum(self, twist: Twist) -> Twist:
        """Momentum (linear, angular) of a twist; the parts may be (3, k) matrices."""
        linear, angular = twist
        return (
            self.mass * linear - cross(self.first, angular),
            cross(self.first, linear) + self.tensor @ angular,
        )

    def plus(self, other: Distribution) -> Distribution:
        """Both together."""
        return Distribution(
            self.mass + other.mass, self.first + other.first, self.second + other.second
        )

    def seen_inwards(self, step: Step) -> Distribution:
        """The same mass in the frame of the link's parent."""
        first, offset = step.inwards(self.first), step.offset
        arm = first + self.mass / 2 * offset
        shift = ca.SX(3, 3)
        for a in range(3):
            for b in range(a, 3):
                entry = (
                    2 * offset[a] * arm[a] if a == b else offset[a] * arm[b] + offset[b] * arm[a]
                )
                shift[a, b] = shift[b, a] = entry
        return Distribution(
            self.mass,
            first + self.mass * offset,
            ca.sparsify(step.seen_inwards(self.second) + shift),
        )


MASSLESS = Distribution(0.0, ca.SX(3, 1), ca.SX(3, 3))
"""No mass."""
