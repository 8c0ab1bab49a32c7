"""Bounds of a linear equation with forcing, and a curve near the declared motion, for the checker.

Deviations y = (dx, eta, dv) obey y' = A_k y + f on segment k, with bounds F of |f| by blocks. With
the transition matrix Phi, |A| the matrix of the blocks' norms and G = exp(|A| h),

    |y(t)| <= |Phi(t, 0)| y_0 + sum_{j < i} (integral of |Phi(t, s)| over segment j) F_j + h G_i F_i

on segment i. Chords in t and in s err by B_i |Phi(t_i, s)| and by |Phi(t, t_{j+1})| B_j, with
B = h^2 / 8 |A|^2 G.

**What holds.** `Flow.reached` bounds y by blocks at all times of segments, if F does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from concur.proofs._recheck_balls import UP, Floats
from concur.proofs._recheck_numbers import exponentials

BLOCKS = (slice(0, 6), slice(6, 12), slice(12, 18))
"""dx, eta and dv."""


class Flow:
    """Norms of the transition matrix between the ends of segments.

    Parameters
    ----------
    matrices : numpy.ndarray
        A_k, shape (n, 18, 18).
    step : float
        Length of a segment (s).
    """

    def __init__(self, matrices: Floats, step: float) -> None:
        self.step, n = step, len(matrices)
        sizes = _norms(matrices)
        self.growth = exponentials(sizes * step)
        ahead = exponentials(matrices * step)
        # From the end of segment j - 1 to that of segment i - 1.
        self.past = np.zeros((n + 1, n + 1, 3, 3))
        own = np.eye(18)[None]
        self.past[0, 0] = np.eye(3)
        for i in range(n):
            own = np.concatenate([ahead[i] @ own, np.eye(18)[None]])
            self.past[i + 1, : i + 2] = _norms(own)
        self.bend = sizes @ sizes @ self.growth * (step**2 / 8)
        ends = self.past[:, 0]
        self.start = np.maximum(ends[:-1], ends[1:]) + self.bend @ ends[:-1]
        # Of the integrals over segments, from the start to the end of a segment.
        mean = (self.past[:, :-1] + self.past[:, 1:]) / 2
        self.pushed = step * (mean + self.past[:, 1:] @ self.bend)

    def reached(self, start: Floats, forcing: Floats, some: np.ndarray) -> Floats:
        """Bounds (3, b) on segments, from radii (3,) and F on all until then, (3, n)."""
        first, last = int(some[0]), int(some[-1]) + 1
        found = np.empty((3, len(some)))
        for k, i in enumerate(range(first, last)):
            both = self.pushed[i : i + 2, :i]
            before, after = np.einsum("njab,bj->na", both, forcing[:, :i])
            found[:, k] = self.start[i] @ start + np.maximum(before, after)
            found[:, k] += self.bend[i] @ before + self.growth[i] @ forcing[:, i] * self.step
        return found * (1 + 1e-9)


def _norms(matrices: Floats) -> Floats:
    """Norms of the blocks, shape (k, 3, 3)."""
    found = np.empty((len(matrices), 3, 3))
    for a, rows in enumerate(BLOCKS):
        for b, columns in enumerate(BLOCKS):
            part = matrices[:, rows, columns]
            gram = part @ part.transpose(0, 2, 1)
            top = np.abs(np.linalg.eigvalsh(gram)[:, -1])
            found[:, a, b] = np.sqrt(top + 1e-14 * np.trace(gram, axis1=1, axis2=2)) * UP
    return found


def curve(
    rate: Callable[[float, Floats], Floats], start: Floats, count: int, step: float
) -> tuple[Floats, Floats]:
    """Values at the ends of segments (rows, count + 1), and cubics in -1 .. 1, (4, rows, count).

    Any curve is allowed: its defect is bounded elsewhere.
    """
    values, slopes = [start], [rate(0.0, start)]
    for k in range(count):
        t, y, k1 = k * step, values[-1], slopes[-1]
        k2 = rate(t + step / 2, y + step / 2 * k1)
        k3 = rate(t + step / 2, y + step / 2 * k2)
        k4 = rate(t + step, y + step * k3)
        values.append(y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        slopes.append(rate(t + step, values[-1]))
    found, change = np.array(values).T, np.array(slopes).T * (step / 2)
    a, b, p, q = found[:, :-1], found[:, 1:], change[:, :-1], change[:, 1:]
    mean, rise = (a + b) / 2, (b - a) / 2
    cubics = [mean - (q - p) / 4, 1.5 * rise - (p + q) / 4, (q - p) / 4, (p + q) / 4 - rise / 2]
    return found, np.array(cubics)
