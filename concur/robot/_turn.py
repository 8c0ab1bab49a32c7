"""Turns of vectors and tensors, cheaper where they are about a coordinate axis."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array


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
