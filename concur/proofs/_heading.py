"""Heading of a wheeled base whose output is a point ahead of the axle: a wall about a candidate.

The base point y = p + l e(theta) obliges l thetadot = n(theta).ydot. For a candidate thc(t) with
defect eta = thc' - n(thc).yc'/l along the motion yc of the centre, vc = e(thc).yc' and
wc = n(thc).yc'/l, the deviation delta = theta - thc obeys (`task-proof`, section 1)

    deltadot = -(vc/l) sin delta - wc (1 - cos delta) + n(theta).dve / l - eta,

dve the deviation of the base's velocity error from its centre.

**What holds.** `wall` returns bounds b of |delta| on each step for every start with |delta| <= b0
and every |dve| <= eps: b is continuous and linear on each step, and its slope exceeds the growth
of |delta| at |delta| = b, so that no motion crosses it (first touching). Infinite where b reaches
a quarter turn. The candidate's values are arbitrary; what is wrong with them counts as eta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur._polynomials import Floats, Model, Space


def hermite(values: Floats, slopes: Floats, length: float) -> Floats:
    """Hermite's cubics in d = -1 .. 1 on each segment, ascending powers, (4, ..., segments)."""
    a, b = values[..., :-1], values[..., 1:]
    s, e = slopes[..., :-1] * length / 2, slopes[..., 1:] * length / 2
    rise = (b - a) / 2
    return np.array(
        [(a + b) / 2 - (e - s) / 4, 1.5 * rise - (s + e) / 4, (e - s) / 4, (s + e) / 4 - rise / 2]
    )


QUARTER = np.pi / 2

ROUNDS = 60
"""Trials of the wall's end of a step; each is a contraction by step * |vc / l|."""


@dataclass(frozen=True, eq=False)
class Heading:
    """Candidate of the heading on a uniform grid, and what bounds the deviation from it.

    Parameters
    ----------
    cubics : numpy.ndarray
        Coefficients of thc on each step in d = -1 .. 1, ascending powers, shape (4, n), rad.
    forward : tuple of numpy.ndarray
        Least and largest vc / l on each step, shape (n,), 1/s.
    turning, defect : numpy.ndarray
        Bounds of |wc| and |eta| on each step, shape (n,), rad/s.
    step : float
        Length of a step (s).
    arm : float
        l, from the axle to the point, positive ahead of it (m).
    """

    cubics: Floats
    forward: tuple[Floats, Floats]
    turning: Floats
    defect: Floats
    step: float
    arm: float

    @property
    def growth(self) -> float:
        """Factor by which a small deviation can grow over the whole time at most."""
        return float(np.exp(self.step * np.maximum(-self.forward[0], 0.0).sum()))

    def wall(self, start: float, speed: Floats) -> Floats:
        """Bounds of |delta| on the first n steps, from |delta| <= start and |dve| <= speed (n,)."""
        found, b = np.full(len(speed), np.inf), start
        push = (speed / abs(self.arm) + self.defect[: len(speed)]) * (1 + 1e-12) + 1e-15
        for k, eps in enumerate(push):
            low, turning = float(self.forward[0][k]), float(self.turning[k])
            # From below: a wall that falls may fall as fast as the motions within.
            rate = eps - low * np.sin(b) + turning * (1.0 - np.cos(b))
            after = max(b + self.step * float(rate), 0.0)
            for _ in range(ROUNDS):
                least, most = min(b, after), max(b, after)
                if not most < QUARTER:
                    return found
                back = low * np.sin(least if low >= 0.0 else most)
                needed = b + self.step * (eps - back + turning * (1.0 - np.cos(most)))
                if needed * (1 + 1e-14) < after:
                    break
                after = max(needed, 0.0) * (1 + 1e-12) + 1e-15
            else:
                return found
            found[k], b = max(b, after), after
        return found

    def model(self, space: Space, clock: int, first: Floats, last: Floats) -> Model:
        """Thc over whole steps first <= k < last of the grid, one segment for each column.

        The symbol `clock` is -1 at the beginning of a segment and 1 at its end.
        """
        columns = []
        for i, j in zip(first, last, strict=True):
            i, j = int(i), int(j)
            part, count = self.cubics[:, i:j], j - i
            nodes = np.append(part[0] - part[1] + part[2] - part[3], part[:, -1].sum())
            places = np.linspace(-1.0, 1.0, count + 1)
            c = np.polynomial.polynomial.polyfit(places, nodes, 2) if count > 1 else part[:3, 0]
            # The parabola in the time of each step, and what the cubic differs from it.
            m, h = (places[1:] + places[:-1]) / 2, 1.0 / count
            own = [c[0] + c[1] * m + c[2] * m**2, h * (c[1] + 2 * c[2] * m), h**2 * c[2] + 0 * m]
            apart = np.abs(part[:3] - np.array(own)).sum(axis=0) + np.abs(part[3])
            columns.append([*c, apart.max() * (1 + 1e-12) + 1e-14])
        c0, c1, c2, rest = np.array(columns).T
        d = space.symbol(clock, np.ones(len(c0)))
        whole = d * c1 + (d * d) * c2 + c0
        model: Model = whole.with_remainder(whole.r + rest)
        return model


def candidate(
    start: float, arm: float, step: float, speeds: Floats, velocity: list[Model]
) -> Heading:
    """Make a candidate of the heading by Runge-Kutta, and enclose its defect.

    Parameters
    ----------
    start : float
        Heading at the start (rad).
    arm, step : float
        As of `Heading`.
    speeds : numpy.ndarray
        yc' at the ends and middles of the steps in inertial axes, shape (2, 2 n + 1), m/s.
    velocity : list of Model
        yc' over each step; its symbol 0 is the time from -1 to 1. Two entries with n columns.
    """

    def rate(theta: float, v: Floats) -> float:
        return float((np.cos(theta) * v[1] - np.sin(theta) * v[0]) / arm)

    n = (speeds.shape[1] - 1) // 2
    theta, slope = np.empty(n + 1), np.empty(n + 1)
    theta[0] = start
    for k in range(n):
        v0, v1, v2 = speeds[:, 2 * k : 2 * k + 3].T
        k1 = slope[k] = rate(theta[k], v0)
        k2 = rate(theta[k] + step / 2 * k1, v1)
        k3 = rate(theta[k] + step / 2 * k2, v1)
        k4 = rate(theta[k] + step * k3, v2)
        theta[k + 1] = theta[k] + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    slope[n] = rate(theta[n], speeds[:, 2 * n])
    cubics = hermite(theta, slope, step)
    d = velocity[0].space.symbol(0)
    square = d * d
    here = d * cubics[1] + square * cubics[2] + cubics[0]
    here = here.with_remainder(here.r + np.abs(cubics[3]) * (1 + 1e-12))
    rates = (d * (2 * cubics[2]) + square * (3 * cubics[3]) + cubics[1]) * (2 / step)
    sine, cosine = here.sin(), here.cos()
    along = (cosine * velocity[0] + sine * velocity[1]) / arm
    across = (cosine * velocity[1] - sine * velocity[0]) / arm
    forward = along.c - along.reach, along.c + along.reach
    return Heading(cubics, forward, across.bound, (rates - across).bound, step, arm)
