"""Declared motion, error tube and heading wall, for the checker of proofs.

**What holds.** `Motion` encloses the reference and the motion without disturbance over intervals of
time; `tube` bounds the deviations from it for |d| <= D; `wall` those of the heading from any curve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from concur.proofs._recheck_numbers import exponentials
from concur.proofs._recheck_smooth import ROUND, Floats, Smooth, constant, require, stack


def walk(function: Any, arguments: list[list[Smooth]]) -> list[list[Smooth]]:
    """Evaluate a graph of SX on models; entries of sparse results that are zero are missing."""
    n, cells = len(arguments[0][0].g), arguments[0][0].c.shape[-1]
    work: dict[int, Smooth] = {}
    found = [[constant(np.zeros(cells), n)] * function.nnz_out(k) for k in range(function.n_out())]
    unary: dict[int, Callable[[Smooth], Smooth]] = {
        ca.OP_NEG: Smooth.__neg__,
        ca.OP_SIN: Smooth.sine,
        ca.OP_COS: Smooth.cosine,
        ca.OP_SQ: lambda a: a * a,
        ca.OP_TWICE: lambda a: a * 2.0,
        ca.OP_ASSIGN: lambda a: a,
    }
    binary = {ca.OP_ADD: Smooth.__add__, ca.OP_SUB: Smooth.__sub__, ca.OP_MUL: Smooth.__mul__}
    for k in range(function.n_instructions()):
        code, ins, outs = (
            function.instruction_id(k),
            function.instruction_input(k),
            function.instruction_output(k),
        )
        if code == ca.OP_INPUT:
            work[outs[0]] = arguments[ins[0]][ins[1]]
        elif code == ca.OP_OUTPUT:
            found[outs[0]][outs[1]] = work[ins[0]]
        elif code == ca.OP_CONST:
            value = float(function.instruction_constant(k))
            work[outs[0]] = constant(np.full(cells, value), n)
        elif code in unary:
            work[outs[0]] = unary[code](work[ins[0]])
        elif code in binary:
            work[outs[0]] = binary[code](work[ins[0]], work[ins[1]])
        elif code == ca.OP_DIV:
            work[outs[0]] = work[ins[0]] * work[ins[1]].reciprocal()
        elif code == ca.OP_INV:
            work[outs[0]] = work[ins[0]].reciprocal()
        else:
            require(False, f"reference: operation {code} is not covered")
    return found


def flow(matrix: Floats, times: Floats) -> Floats:
    """Exp(A t), shape (2, 2, k)."""
    return np.moveaxis(exponentials(np.multiply.outer(times, matrix)), 0, -1)


class Channel:
    """Errors of one output: xdot = -ve, vedot = kp x - kd ve + d, alike in all directions."""

    def __init__(self, stiffness: float, damping: float) -> None:
        self.stiffness, self.damping = stiffness, damping
        self.matrix = np.array([[0.0, -1.0], [stiffness, -damping]])

    def tube(
        self, x0: float, v0: float, d: Floats, step: float, short: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Bounds of the deviations of x and ve on each step, for starts within x0 and v0.

        `d` bounds the disturbance on each step. The integral of a kernel over a step is exact
        where it has one sign: A^-1 (E(b) - E(a)). `short` bounds the integrals over each step of a
        further part of it.
        """
        n, a = len(d), self.matrix
        ends = flow(a, step * np.arange(n + 1))
        middle = flow(a, step * (np.arange(n) + 0.5))
        size = np.abs(a)
        growth = np.exp(size.sum() * step / 2)
        # |E(t + s)| <= exp(|A| s) |E(t)|, whose entries are at most those of the columns' sums.
        mixed = np.abs(middle).sum(axis=0, keepdims=True).repeat(2, axis=0) * growth
        slope, curve = (np.einsum("ij,jkn->ikn", m, mixed) for m in (size, size @ size))
        # A chord errs by step^2 / 8 times the second derivative.
        peak = np.maximum(np.abs(ends[..., :-1]), np.abs(ends[..., 1:])) + step**2 / 8 * curve
        exact = np.abs(np.einsum("ij,jkn->ikn", np.linalg.inv(a), ends[..., 1:] - ends[..., :-1]))
        alone = np.abs(middle) > step / 2 * slope
        share = np.where(alone, exact + 1e-14, peak * step)
        worst = np.maximum(d, np.append(d[:1], d[:-1]))
        x, ve = (
            peak[i, 0] * x0 + peak[i, 1] * v0 + np.convolve(share[i, 1], worst)[:n] for i in (0, 1)
        )
        short = np.zeros(n) if short is None else short
        for k in np.flatnonzero(short).tolist():
            # Between this step and another one lie times of two steps of the kernel.
            late = np.maximum(peak[:, 1], np.concatenate([peak[:, 1, :1], peak[:, 1, :-1]], axis=1))
            x[k:] += short[k] * late[0, : n - k]
            ve[k:] += short[k] * late[1, : n - k]
        return x * (1 + 1e-9), ve * (1 + 1e-9)

    def centre(self, start: Floats, middle: Floats, half: Floats, n: int) -> list[Smooth]:
        """X and ve, each (dim, k), without disturbance over middle + half xi_0, of n symbols."""
        a, size = self.matrix, np.abs(self.matrix)
        here = np.einsum("ijk,jd->idk", flow(a, middle), start)
        first, second = (np.einsum("ij,jdk->idk", m, here) for m in (a, a @ a / 2))
        growth = np.exp(size.sum() * half)
        rest = np.einsum(
            "ij,jdk->idk", size @ size @ size, np.abs(here).sum(axis=0)[None] + 0 * here
        )
        found = []
        for i in (0, 1):
            m = constant(here[i], n)
            m.g[0], m.h[0] = first[i] * half, second[i] * half**2
            m.r[0] = rest[i] * growth * half**3 / 6 + 1e-11 * np.abs(here).sum(axis=(0, 1))
            m.r[1] = rest[i] * growth * half**3 / 2 + 1e-11 * np.abs(here).sum(axis=(0, 1))
            found.append(m)
        return found


class Motion:
    """Reference and motion without disturbance from the declared start.

    Parameters
    ----------
    reference : Reference
        Its formula between knots is used.
    channels : list of Channel
        Errors of base and hand.
    start : numpy.ndarray
        x and ve at time 0, shape (2, 5).
    """

    def __init__(self, reference: Any, channels: list[Channel], start: Floats) -> None:
        self.pieces, self.channels, self.start = reference.pieces(), channels, start
        require(self.pieces is not None, "reference: has no formula")
        knots = np.asarray(self.pieces.knots)
        self.knots = knots[knots > 0.0]

    def jumps(self, duration: float) -> tuple[Floats, Floats]:
        """Times inside the duration at which the acceleration jumps, and jumps of base and hand.

        Shapes (k,) and (2, k); a reference whose place or velocity jumps is rejected.
        """
        times, found = [], []
        for t in self.knots[self.knots < duration].tolist():
            ends = []
            for at in (np.nextafter(t, -np.inf), t):
                rows = [row[0] for row in self.pieces.rows(np.array([at]))]
                ends.append([np.asarray(p).ravel() for p in self.pieces.function(t, *rows)])
            room = 1e-9 * (1 + max(np.abs(part).max() for part in ends[1]))
            place, velocity, jump = (b - a for a, b in zip(*ends, strict=True))
            smooth = max(np.abs(place).max(), np.abs(velocity).max()) <= room
            require(bool(smooth), f"reference: it jumps at {t:g} s")
            if np.abs(jump).max() > room:
                times.append(t)
                own = [np.linalg.norm(jump[r]) * (1 + 1e-9) for r in (slice(0, 2), slice(2, 5))]
                found.append(own)
        return np.array(times), np.array(found).reshape(len(times), 2).T

    def over(self, middle: Floats, half: Floats, n: int) -> dict[str, Smooth]:
        """Vectors (5, k) in inertial axes over intervals of time, the symbol xi_0 of n.

        y, its rate, x, ve, acceleration and jerk of the reference.
        """
        t = constant(middle, n)
        t.g[0] = half
        t = t.widened(ROUND * (1 + np.abs(middle)))
        rows = [
            [constant(column, n) for column in np.asarray(table).T]
            for table in self.pieces.rows(middle)
        ]
        pose, twist, acceleration = map(stack, walk(self.pieces.function, [[t], *rows]))
        jerk = constant(acceleration.g[0] / half, n)
        jerk.g[0] = 2 * acceleration.h[0] / half
        jerk.r[0] = acceleration.r[1] / half
        own = [
            channel.centre(self.start[:, rows_], middle, half, n)
            for channel, rows_ in zip(self.channels, (slice(0, 2), slice(2, 5)), strict=True)
        ]
        x, ve = (stack([*(o[i][k] for o in own for k in range(len(o[i].c)))]) for i in (0, 1))
        return {
            "y": pose - x,
            "rate": twist + ve,
            "x": x,
            "ve": ve,
            "acceleration": acceleration,
            "jerk": jerk,
        }


def turned(vector: Smooth, cosine: Smooth, sine: Smooth) -> Smooth:
    """R(-theta) of base (2) and hand (3) vectors."""
    v = [vector[i] for i in range(5)]
    for i in (0, 2):
        v[i], v[i + 1] = cosine * v[i] + sine * v[i + 1], cosine * v[i + 1] - sine * v[i]
    return stack(v)


def heading_candidate(motion: Motion, start: float, count: int, step: float, lead: float) -> Floats:
    """Cubics of a curve near the heading on each step in -1 .. 1, (4, count); in floats."""
    over = motion.over(step * (np.arange(count) + 0.5), np.full(count, step / 2), 1)["rate"][:2]
    before, middle, after = (over.c + s * over.g[0] + s * s * over.h[0] for s in (-1, 0, 1))

    def rate(theta: float, v: Floats) -> float:
        return float((np.cos(theta) * v[1] - np.sin(theta) * v[0]) / lead)

    found, theta = np.empty((4, count)), start
    for k in range(count):
        k1 = rate(theta, before[:, k])
        k2 = rate(theta + step / 2 * k1, middle[:, k])
        k3 = rate(theta + step / 2 * k2, middle[:, k])
        k4 = rate(theta + step * k3, after[:, k])
        end = theta + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        # Hermite's cubic by values and slopes at both ends.
        a, b = step / 2 * k1, step / 2 * rate(end, after[:, k])
        mean, rise = (theta + end) / 2, (end - theta) / 2
        found[:, k] = (
            mean - (b - a) / 4,
            1.5 * rise - (a + b) / 4,
            (b - a) / 4,
            (a + b) / 4 - rise / 2,
        )
        theta = end
    return found


def heading_of(cubics: Floats, first: Floats, last: Floats, n: int) -> Smooth:
    """Candidate of the heading over steps first <= k < last, of n symbols; xi_0 is the time."""
    found = constant(np.zeros(len(first)), n)
    for s, (i, j) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        part, count = cubics[:, i:j], j - i
        at = (2 * np.arange(count) + 1) / count - 1
        ends = np.append(at - 1 / count, 1.0)
        values = np.append(part[0] - part[1] + part[2] - part[3], part[:, -1].sum())
        c0, c1, c2 = np.linalg.lstsq(np.vander(ends, 3, increasing=True), values, rcond=None)[0]
        own = [c0 + c1 * at + c2 * at**2, (c1 + 2 * c2 * at) / count, c2 / count**2 + 0 * at]
        away = np.abs(part[:3] - np.array(own)).sum(axis=0) + np.abs(part[3])
        found.c[s], found.g[0, s], found.h[0, s] = c0, c1, c2
        found.r[0, s] = away.max() + 1e-12 * (1 + np.abs(c0))
    return found


def wall(
    motion: Motion,
    cubics: Floats,
    start: tuple[float, float],
    speed: Floats,
    step: float,
    lead: float,
) -> Floats:
    """Bounds of |theta - candidate| on each step; infinite where no wall exists.

    `start` is the declared heading and its radius; `speed` bounds the deviation of the base's
    velocity on each step. A wall that is linear on a step holds if its slope exceeds the growth
    of the deviation everywhere on it (first touching); jumps of the candidate are added.
    """
    n = len(speed)
    half = np.full(n, step / 2)
    rate = motion.over(step * (np.arange(n) + 0.5), half, 1)["rate"]
    theta = constant(cubics[0], 1)
    theta.g[0], theta.h[0], theta.r[:] = cubics[1], cubics[2], np.abs(cubics[3]) * [[1.0], [3.0]]
    turn = constant(cubics[1], 1)
    turn.g[0], turn.r[0] = 2 * cubics[2], 3 * np.abs(cubics[3])
    sine, cosine = theta.sine(), theta.cosine()
    along = (cosine * rate[0] + sine * rate[1]) * (1 / lead)
    across = (cosine * rate[1] - sine * rate[0]) * (1 / lead)
    defect = (turn * (2 / step) - across).bound
    slow, turning = along.c - along.reach, across.bound
    begin = cubics[0] - cubics[1] + cubics[2] - cubics[3]
    end = cubics.sum(axis=0)
    jumps = np.abs(begin - np.append(start[0], end[:-1])) + 1e-14 * (1 + np.abs(begin))
    found, b = np.full(n, np.inf), start[1]
    for k in range(n):
        b += float(jumps[k])
        push = float(speed[k] / abs(lead) + defect[k]) * (1 + 1e-12) + 1e-14
        # Where the deviation shrinks, the wall may come nearer: try its end by Euler's step.
        rate = push - slow[k] * np.sin(b) + turning[k] * (1 - np.cos(b))
        after = max(b + step * float(rate), 0.0)
        for _ in range(40):
            low, high = min(b, after), max(b, after)
            if not high < np.pi / 2:
                return found
            held = slow[k] * np.sin(low if slow[k] >= 0.0 else high)
            needed = b + step * (push - held + turning[k] * (1 - np.cos(high)))
            if needed < after:
                found[k], b = high, after
                break
            after = max(float(needed), 0.0) * (1 + 1e-10) + 1e-13
        else:
            return found
    return found


def cells_reached(
    relative: Smooth, x: Floats, low: Floats, edge: Floats, parts: tuple[int, int]
) -> Floats:
    """Whether one segment may reach cells (k, 3) with corners `low` and edges (k,).

    `relative` (3, 1) is the declared relative position, symbols time and heading; x (2,) are the
    radii of base, a horizontal disc, and hand, a ball. Within a part the position differs by
    a ball.
    """
    ticks = [(2 * np.arange(n) + 1) / n - 1 for n in parts]
    a, b = (m.ravel() for m in np.meshgrid(*ticks))
    m = relative
    points = m.c + m.g[0] * a + m.g[1] * b + m.h[0] * a**2 + m.h[1] * a * b + m.h[2] * b**2
    reach = np.zeros(3)
    for own, other, mixed, square, n in (
        (m.g[0], b, m.h[1], m.h[0], parts[0]),
        (m.g[1], a, m.h[1], m.h[2], parts[1]),
    ):
        slope = (
            np.abs(own)[:, 0] + np.abs(mixed)[:, 0] * np.abs(other).max() + 2 * np.abs(square)[:, 0]
        )
        reach = reach + slope / n
    reach = reach + np.abs(m.h[1])[:, 0] / (parts[0] * parts[1])
    slack = float(np.sqrt(((reach + m.r[0][:, 0]) ** 2).sum())) + 1e-10
    inside = np.zeros(len(low), dtype=bool)
    for k in range(0, len(low), 512):
        own, size = low[k : k + 512, :, None], edge[k : k + 512, None, None]
        apart = np.maximum(np.maximum(own - points, points - own - size), 0.0)
        across = np.maximum(np.hypot(apart[:, 0], apart[:, 1]) - x[0], 0.0)
        inside[k : k + 512] = (np.hypot(across, apart[:, 2]) <= x[1] + slack).any(axis=1)
    return inside
