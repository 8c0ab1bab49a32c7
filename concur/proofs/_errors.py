"""Tube of the tracking errors of outputs in R^n about the motion from the declared start.

An output with scalar gains has xdot = -ve, vedot = kp x - kd ve + d, in every direction the same.
Deviations z = (x, ve) from the motion without d obey the same equation (`task-proof`, sections 0
and 4), so with E = exp(A t) and |d| <= D(t)

    |x(t)| <= |E11| x0 + |E12| v0 + int |E12(tau)| D(t - tau) dtau,

and |ve(t)| likewise with E21 and E22.

**What holds.** `tube` returns, for each step of a uniform grid, a bound of |x| and |ve| at every
time of the step, for all starts within the radii and all measurable d within D. Largest values of
the kernels on a step include their curvature; D between two steps counts by the larger one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur._polynomials import Floats, Model, Space

_UP = 1 + 1e-11
"""Above the rounding of sums of some thousand positive numbers."""


@dataclass(frozen=True)
class Channel:
    """Error dynamics of one output in R^n, the same in each of its directions.

    Parameters
    ----------
    stiffness, damping : float
        kp (1/s^2) and kd (1/s).
    rows : slice
        Its coordinates among those of all outputs.
    """

    stiffness: float
    damping: float
    rows: slice

    @property
    def matrix(self) -> Floats:
        """Rates of (x, ve), shape (2, 2)."""
        return np.array([[0.0, -1.0], [self.stiffness, -self.damping]])

    def flow(self, times: np.ndarray) -> Floats:
        """Matrices exp(A t), shape (2, 2, k)."""
        t, half = np.asarray(times, dtype=float), self.damping / 2
        square = half**2 - self.stiffness
        if abs(square) * np.max(t, initial=0.0) ** 2 < 1e-12 * (1 + self.stiffness):
            even = np.exp(-half * t) * (1 + square * t**2 / 2)
            odd = np.exp(-half * t) * t * (1 + square * t**2 / 6)
        elif square > 0.0:
            mu = np.sqrt(square)
            slow, fast = np.exp((mu - half) * t), np.exp(-(mu + half) * t)
            even, odd = (slow + fast) / 2, (slow - fast) / (2 * mu)
        else:
            mu = np.sqrt(-square)
            even, odd = np.exp(-half * t) * np.cos(mu * t), np.exp(-half * t) * np.sin(mu * t) / mu
        one = np.eye(2)[:, :, None]
        return np.asarray(one * even + (self.matrix + half * np.eye(2))[:, :, None] * odd)

    def largest(self, step: float, count: int) -> Floats:
        """Largest absolute entries of exp(A t) on each of `count` steps, shape (2, 2, count)."""
        ends = np.abs(self.flow(step * np.arange(count + 1)))
        size = np.abs(self.matrix)
        # |exp(A s)| <= exp(|A| s) entry by entry, and a chord errs by step^2 / 8 times |A^2 E|.
        growth = np.eye(2) + size * step * np.exp(np.abs(size).sum() * step)
        bend = np.einsum("ij,jk,kln->iln", np.abs(self.matrix @ self.matrix), growth, ends)
        chord = np.maximum(ends[..., :-1], ends[..., 1:])
        return np.asarray((chord + step**2 / 8 * bend[..., :-1]) * _UP)

    def tube(
        self, x0: float, v0: float, disturbance: Floats, step: float, areas: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Bounds of |x| and |ve| on each step, for starts within radii x0 (m) and v0 (m/s).

        `disturbance` bounds |d| on each step, shape (n,), m/s^2; `areas` bound the integral of a
        further part of |d| over each step, shape (n,), m/s.
        """
        n = len(disturbance)
        e = self.largest(step, n)
        worst = np.maximum(disturbance, np.append(disturbance[:1], disturbance[:-1]))
        pushed = [np.convolve(e[i, 1], worst)[:n] * step for i in (0, 1)]
        if areas is not None:
            # Times of step n lag those of step k by the kernel's steps n - k - 1 and n - k.
            both = np.maximum(e, np.concatenate([e[..., :1], e[..., :-1]], axis=-1))
            for i in (0, 1):
                pushed[i] = pushed[i] + np.convolve(both[i, 1], areas)[:n]
        x, ve = (e[i, 0] * x0 + e[i, 1] * v0 + pushed[i] for i in (0, 1))
        return x * _UP, ve * _UP

    def centre(
        self, space: Space, clock: int, start: Floats, middle: Floats, half: Floats
    ) -> tuple[list[Model], list[Model]]:
        """Models of x and ve without disturbance over middle + half d, d the symbol `clock`.

        `start` is (x, ve) at time 0, shape (2, dim); times have shape (b,). Taylor's polynomial of
        exp(A t); its remainder is below |A|^3 exp(|A| h) h^3 / 6 times |z|, entry by entry.
        """
        here = np.einsum("ijb,jd->idb", self.flow(middle), start)
        a, size = self.matrix, np.abs(self.matrix)
        slope, bend = np.einsum("ij,jdb->idb", a, here), np.einsum("ij,jdb->idb", a @ a, here) / 2
        late = np.linalg.matrix_power(size, 3) / 6
        growth = np.exp(size.sum() * half)
        rest = np.einsum("ij,jdb->idb", late, np.abs(here)) * growth * half**3
        rest = _both(rest) + 1e-12 * _both(np.abs(here))
        d = space.symbol(clock, half)
        square = d * d
        parts = []
        for i in (0, 1):
            rows = []
            for k in range(start.shape[1]):
                m = d * slope[i, k] + square * bend[i, k] + here[i, k]
                rows.append(m.with_remainder(m.r + rest[i, k]))
            parts.append(rows)
        return parts[0], parts[1]


def _both(values: Floats) -> Floats:
    """Each of (x, ve) by the sum of both: exp(|A| h) mixes them."""
    return np.repeat(values.sum(axis=0, keepdims=True), 2, axis=0)
