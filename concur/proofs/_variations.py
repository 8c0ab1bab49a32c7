"""Tube of a state about a candidate, by the kernels of a linear equation with steps in time.

The deviation y, in blocks that have a norm each, obeys y' = A_k y + f in step k, where f contains
all that the constant matrix A_k does not: its change in time, higher orders, the defect of the
candidate, disturbances. A step has one or more segments, on which f has bounds. With the transition
matrix Phi of the A_k (`task-proof`, section 1)

    y(t) = Phi(t, 0) y(0) + int Phi(t, s) f(s) ds .

**What holds.** Where |f_j| <= F_j, blocks j, on each segment, `reached` bounds |y_i| on each
segment, for all starts within radii: kernels count by their largest value on squares of the grid,
curvature included. If the F_j hold only while y is in a tube, and `reached` is strictly below its
radii, y stays in it (first exit).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from concur._polynomials import Floats

_UP = 1 + 1e-9
"""Far above the rounding of products of some hundred matrices."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """Largest norms of the transition matrix by blocks.

    Parameters
    ----------
    start : numpy.ndarray
        From the start to each step, shape (n, blocks, blocks).
    past : numpy.ndarray
        From step j to step i >= j, shape (n, n, blocks, blocks), else zero.
    step : float
        Length of a step (s).
    parts : int
        Segments of a step.
    """

    start: Floats
    past: Floats
    step: float
    parts: int

    def reached(self, start: Floats, forcing: Floats, some: np.ndarray) -> Floats:
        """Bounds on some segments, whole steps of them, (blocks, b).

        From radii at the start (blocks,) and F on all segments until then, (blocks, segments).
        """
        blocks, until = len(start), int(some[-1]) + 1
        rows = np.arange(some[0] // self.parts, until // self.parts)
        # The kernels' bounds hold for a whole step, so the integral of F over it is what counts.
        force = forcing[:, :until].reshape(blocks, -1, self.parts).mean(axis=2).T
        past = self.past[rows, : len(force)]
        pushed = np.einsum("ijab,jb->ia", past, force, optimize=True) * self.step
        found = (self.start[rows] @ start + pushed) * _UP
        return np.asarray(np.repeat(found.T, self.parts, axis=1))


def kernels(matrices: Floats, blocks: tuple[int, ...], step: float, parts: int) -> Kernels:
    """Kernels of matrices A_k, shape (steps, n, n), each over a step (s) of so many segments."""
    count = len(matrices)
    cuts = np.cumsum([0, *blocks])
    sizes = _norms(matrices, cuts)
    ahead = np.array([expm(a * step) for a in matrices])
    # |exp(A s)| <= exp(|A| s) entry by entry, and a chord errs by step^2 / 8 of the curvature.
    grown = np.array([expm(a * step) for a in sizes])
    bend = np.array([a @ a @ g for a, g in zip(sizes, grown, strict=True)]) * step**2 / 8
    size = len(blocks)
    ends = np.zeros((count + 1, count + 1, size, size))
    own = np.zeros((0, cuts[-1], cuts[-1]))
    for i in range(count + 1):
        if i:
            own = ahead[i - 1] @ own
        own = np.concatenate([own, np.eye(cuts[-1])[None]])
        ends[i, : i + 1] = _norms(own, cuts)
    past, start = np.zeros((count, count, size, size)), np.empty((count, size, size))
    for i in range(count):
        corners = np.maximum(ends[i, : i + 1], ends[i + 1, : i + 1])
        start[i] = corners[0] + bend[i] @ ends[i, 0]
        past[i, i] = grown[i]
        if i:
            late = np.maximum(corners[:-1], corners[1:])
            late = late + bend[i] @ np.maximum(ends[i, :i], ends[i, 1 : i + 1])
            # Back in time from the end of step j, and the bends of both directions.
            past[i, :i] = late + late @ bend[:i]
    return Kernels(start * _UP, past * _UP, step, parts)


def _norms(matrices: Floats, cuts: np.ndarray) -> Floats:
    """Norms of all blocks, shape (k, blocks, blocks)."""
    size = len(cuts) - 1
    found = np.zeros((len(matrices), size, size))
    for a in range(size):
        for b in range(size):
            part = matrices[:, cuts[a] : cuts[a + 1], cuts[b] : cuts[b + 1]]
            if part.any():
                found[:, a, b] = np.linalg.norm(part, 2, axis=(1, 2))
    return found
