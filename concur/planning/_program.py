"""Sequential quadratic programs for a motion to a goal.

Rows that cannot be kept are elastic: the largest excess of the limits, and the misses of the goal,
have a price, so that a program always has a solution. Steps stay in a trust region, whose size
follows how well the program foresees the merit; a step that it foresees badly is corrected once
(second-order correction).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concur.planning._graphs import STEPS
from concur.planning._quadratic import least
from concur.planning._splines import ENDS
from concur.planning._transcription import Path, Start, Transcription

ITERATIONS = 60
"""Largest number of programs of one start."""

SMOOTH = 1e-7
"""Price of the squared jerk, in units of the speed limits, beside the duration."""

LEAST_EFFORT = 1e-9
"""Least effort that counts as much as the duration: that of a motion at rest is zero."""

PROXIMAL = 1e-4
"""Price of a squared step, which makes programs strictly convex."""

ELASTIC = 0.01
"""Share of its price by which the price of a miss or an excess rises for each unit of it (m, rad).
With less the solver works with numbers that are too far apart."""

EXCESS, MORE, LAST_EXCESS = 3.0, 5.0, 75.0
"""Price of the largest excess, in durations: at first, its factor each time that a motion has
settled beyond a limit, and at last."""

MISS, LAST_MISS = 8.0, 30.0
"""Price of each miss of the goal (m, rad), in durations: at first, and once a motion has settled
beside its goal. A low one lets steps be long. Where the way decides, only the last one counts."""

NEAR_LIMIT, FAR = 0.4, -5.0
"""Rows below this share of their limit are skipped in a program; of those with one side."""

WELL, POORLY = 0.7, 0.1
"""Shares of the fall that a program foresees, below which a trial is corrected: at the goal alone,
and in all rows."""

PASSING = 30.0
"""Price of the squared distance from places to pass, in durations, 1/m^2."""

REGION, LARGEST, SMALLEST = 0.5, 3.0, 1e-5
"""Trust region at the start, its largest and smallest size, rad and m."""

SHORTEST = 0.01
"""Shortest motion, s."""

INSIDE = 1e-6
"""Distance of control points from the ends of ranges (rad, m): simulations of a plan end inside."""

SETTLED = 1e-3
"""Relative fall of the merit at which a motion is finished, and excess that is kept."""

REACHED = 1e-5
"""Sum of the misses at which a goal counts as reached, before they are refined, m and rad."""

CLOSE = 1e-3
"""Sum of misses that is taken away without a program, m and rad."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Unknowns that a search ended with, their path, largest excess and sum of misses."""

    unknowns: Floats
    path: Path
    excess: float
    missed: float
    programs: int

    @property
    def time(self) -> float:
        """Duration, s."""
        return float(self.unknowns[-1])

    @property
    def kept(self) -> bool:
        """Whether all limits are kept and the goal is reached."""
        return self.excess <= SETTLED and self.missed <= 10 * REACHED

    @property
    def note(self) -> str:
        """What became of it."""
        if self.kept:
            return f"{self.time:.4g} s"
        return f"misses the goal by {self.missed:.3g}, limits by {self.excess:.3g}"


@dataclass(frozen=True, eq=False)
class Search:
    """One problem: start, goal, duration (None: the least), and shares of the limits of rows.

    Of a given duration the effort is least, the mean over time of squared torques relative to their
    limits; an effort of `unit` counts as much as the duration.
    """

    form: Transcription
    start: Start
    wanted: Floats
    duration: float | None
    shares: Floats
    hulls: Floats
    bias: Floats
    ways: tuple[tuple[int, int, Floats], ...] = ()  # point, capsule and place that it passes
    unit: float = 1.0

    def path(self, unknowns: Floats) -> Path:
        """Path of unknowns with slopes."""
        return self.form.evaluate(self.start, unknowns, self.wanted, self.bias)

    def values(self, unknowns: Floats) -> Path:
        """Path of unknowns without slopes."""
        return self.form.values(self.start, unknowns, self.wanted, self.bias)

    @cached_property
    def _linear(self) -> list[tuple[Floats, Floats, Floats]]:
        """Slopes of the control points of each derivative by unknowns and the start, and limits."""
        splines, bounds, unit = self.form.splines, self.form.bounds, np.eye(self.form.model.ns)
        speeds = (bounds.speeds, bounds.accelerations, bounds.jerks)
        found = []
        for k, limits in enumerate(speeds, 1):
            chosen = np.isfinite(limits)
            rows = np.einsum("jk,ab->jakb", splines.hulls[k] @ splines.inner, unit[chosen])
            count = len(rows) * int(chosen.sum())
            by_start = np.einsum("jk,ab->jakb", splines.hulls[k] @ splines.start, unit[chosen])
            limit = np.tile(limits[chosen] * self.hulls[k - 1], len(rows))
            # Control points that the start alone determines are no choice; the dense check remains.
            limit[~rows.any(axis=(2, 3)).ravel()] = np.inf
            own = [part.reshape(count, part.shape[2] * len(unit)) for part in (rows, by_start)]
            found.append((own[0], own[1], limit))
        return found

    @cached_property
    def _range(self) -> tuple[Floats, Floats, Floats]:
        """Slopes of the control points, with lower and upper limits."""
        splines, bounds = self.form.splines, self.form.bounds
        ns = self.form.model.ns
        rows = np.einsum("jk,ab->jakb", splines.inner[ENDS:], np.eye(ns))
        rows = rows.reshape(-1, rows.shape[2] * ns)
        count = len(rows) // ns
        low, high = np.tile(bounds.low, count), np.tile(bounds.high, count)
        kept = np.isfinite(low) | np.isfinite(high)
        return rows[kept], low[kept] + INSIDE, high[kept] - INSIDE

    @cached_property
    def _smooth(self) -> tuple[Floats, Floats, Floats]:
        """Jerks of the control points by the free parameters and by the start; and their units."""
        splines, speeds = self.form.splines, self.form.bounds.speeds
        scale = np.where(np.isfinite(speeds), speeds, 1.0)
        rows = splines.hulls[3] @ splines.inner / np.sqrt(len(splines.hulls[3]))
        spread = np.einsum("jk,ab->jakb", rows, np.diag(1.0 / scale))
        start = splines.hulls[3] @ splines.start / np.sqrt(len(splines.hulls[3]))
        return spread.reshape(len(rows) * len(scale), -1), start, scale

    def _jerks(self, unknowns: Floats) -> tuple[Floats, Floats]:
        """Jerks of the control points, and their slopes by the unknowns."""
        rows, start, scale = self._smooth
        time = float(unknowns[-1])
        still = (start @ self.start.parts(time) / scale).ravel()
        moving = (start @ self.start.parts_by_time(time) / scale).ravel()
        return rows @ unknowns[:-1] + still, np.column_stack([rows, moving])

    @cached_property
    def _efforts(self) -> list[int]:
        return [k for k, fact in enumerate(self.form.facts) if fact[0].startswith("torque of")]

    def _derivatives(self, points: Floats) -> list[Floats]:
        """Control points of each derivative that has limits."""
        hulls, bounds = self.form.splines.hulls, self.form.bounds
        limits = (bounds.speeds, bounds.accelerations, bounds.jerks)
        return [(hulls[k] @ points)[:, np.isfinite(own)].ravel() for k, own in enumerate(limits, 1)]

    def cost(self, found: Found) -> float:
        """Duration, or effort of a given duration, of what was found."""
        return found.time if self.duration is None else self._effort(found.path)

    def measured(self, unknowns: Floats) -> Search:
        """Count the effort of some unknowns as much as the duration."""
        return replace(self, unit=max(self._effort(self.values(unknowns)), LEAST_EFFORT))

    # -- merit -----------------------------------------------------------------------------------

    def _effort(self, path: Path) -> float:
        return float(np.square(path.g[:, self._efforts]).sum()) / (STEPS + 1)

    def _cost(self, unknowns: Floats, path: Path) -> float:
        smooth = 0.5 * SMOOTH * float(np.square(self._jerks(unknowns)[0]).sum())
        places = [self.form.middle(path, k, own) - place for k, own, place in self.ways]
        smooth += 0.5 * PASSING * sum(float(off @ off) for off in places)
        if self.duration is None:
            return float(unknowns[-1]) + smooth
        return self._effort(path) * self.duration / self.unit + smooth

    def _passing(self, path: Path) -> list[tuple[Floats, Floats]]:
        """Distances from places to pass, and their slopes."""
        found = [(self.form.passing(path, k, own), place) for k, own, place in self.ways]
        return [(at - place, slopes) for (at, slopes), place in found]

    def _excess(self, unknowns: Floats, path: Path) -> float:
        """Largest excess over a limit, relative to it; of ranges in rad and m."""
        time, worst = unknowns[-1], 0.0
        for k, (values, (_, _, limits)) in enumerate(
            zip(self._derivatives(path.points), self._linear, strict=True), 1
        ):
            if values.size:
                worst = max(worst, float((np.abs(values) / (limits * time**k)).max()) - 1.0)
        _, low, high = self._range
        if low.size:
            at = self._range_values(path)
            worst = max(worst, float((low - at).max()), float((at - high).max()))
        if path.g.size:
            signed = np.where(self.form.one_sided, path.g, np.abs(path.g))
            worst = max(worst, float((signed - self.most(path.g)).max()))
        return worst

    def most(self, g: Floats) -> Floats:
        """Limit of each row of a path; none at the start, whose state and acceleration are given.

        Else what is too much there would be allowed everywhere.
        """
        found = np.tile(self.shares, (len(g), 1))
        found[0] = np.inf
        return found

    def _range_values(self, path: Path) -> Floats:
        bounds = self.form.bounds
        at = path.points[ENDS:].ravel()
        count = at.size // bounds.low.size
        kept = np.tile(np.isfinite(bounds.low) | np.isfinite(bounds.high), count)
        return np.asarray(at[kept])

    def _missed(self, path: Path) -> float:
        return float(np.maximum(np.abs(path.e) - self.form.within, 0.0).sum())

    def _merit(self, unknowns: Floats, path: Path, prices: tuple[float, float]) -> float:
        excess, miss = prices
        return (
            self._cost(unknowns, path)
            + excess * self._excess(unknowns, path)
            + miss * self._missed(path)
        )

    # -- programs --------------------------------------------------------------------------------

    def solve(self, unknowns: Floats, programs: int = ITERATIONS) -> Found:
        """Improve unknowns until limits and goal hold and the merit settles."""
        region, count, over = REGION, 0, EXCESS
        # Prices follow the duration upwards only: else it shrinks to nothing beside its goal.
        longest = float(unknowns[-1])
        each = LAST_MISS if self.form.is_crowded else MISS
        path = self.path(unknowns)
        while count < programs:
            count += 1
            price = max(float(unknowns[-1]), longest)
            prices = over * price, each * price
            program = self._program(unknowns, path, price, prices)
            before, accepted = self._merit(unknowns, path, prices), False
            for _ in range(8):
                step = program.solve(region, unknowns)
                foreseen = before - program.merit(step)
                if foreseen <= 1e-6 * price or region < SMALLEST:
                    break
                trial = _moved(unknowns, step)
                ahead = self.values(trial)
                fall, best = before - self._merit(trial, ahead, prices), trial
                for share, corrected in ((WELL, program.pulled), (POORLY, program.again)):
                    if fall >= share * foreseen:
                        break
                    other = corrected(unknowns, trial, ahead, step, region)
                    better = before - self._merit(other, self.values(other), prices)
                    if better > fall:
                        best, fall = other, better
                trial = best
                if fall >= POORLY * foreseen:
                    accepted = True
                    break
                region *= 0.35
            finished = not accepted
            if accepted:
                largest = float(np.abs((trial - unknowns)[:-1]).max())
                unknowns, path = trial, self.path(trial)
                if fall > 0.7 * foreseen and largest > 0.8 * region:
                    region = min(2.0 * region, LARGEST)
                elif fall < 0.3 * foreseen:
                    region *= 0.5
                settled = (
                    self._excess(unknowns, path) <= 0.1 * SETTLED and self._missed(path) <= REACHED
                )
                finished = fall <= (1.0 if settled else 1e-2) * SETTLED * price
            if finished:
                beside = each < LAST_MISS and self._missed(path) > REACHED
                beyond = over < LAST_EXCESS and self._excess(unknowns, path) > 0.1 * SETTLED
                if not beside and not beyond:
                    break
                region = max(region, 0.2 * REGION)
                each, over = LAST_MISS if beside else each, over * MORE if beyond else over
        if 0.0 < self._missed(path) <= CLOSE:
            unknowns, path = self._closed(unknowns, path)
        excess, missed = self._excess(unknowns, path), self._missed(path)
        return Found(unknowns, path, excess, missed, count)

    def _closed(self, unknowns: Floats, path: Path) -> tuple[Floats, Path]:
        """Least change of the unknowns, but T, that takes away a small miss of the goal."""
        for _ in range(2):
            unknowns = self.pulled(unknowns, path, path)
            path = self.path(unknowns)
        return unknowns, path

    def pulled(self, unknowns: Floats, path: Path, known: Path) -> Floats:
        """Unknowns of a path after a change, by the slopes of a known one."""
        assert known.slopes is not None
        count = unknowns.size - 1 - (0 if self.form.ends_moving else self.form.model.ns)
        off = path.e - np.clip(path.e, -self.form.within, self.form.within)
        change = np.linalg.lstsq(known.slopes[1][:, :count], -off, rcond=1e-8)[0]
        return np.concatenate([unknowns[:count] + change, unknowns[count:]])

    def _program(
        self, unknowns: Floats, path: Path, price: float, prices: tuple[float, float]
    ) -> _Program:
        assert path.slopes is not None
        size, time, goals = unknowns.size, unknowns[-1], path.e.size
        variables = size + 1 + 2 * goals
        rows, low, high = self._range
        at = self._range_values(path)
        # Ranges are kept exactly; where a motion is beyond one it comes back at the common price.
        below, above = low - at > 0.0, at - high > 0.0
        table = np.pad(rows, ((0, 0), (0, variables - size + 1)))
        table[:, size] = 1.0 * below - 1.0 * above
        parts = [(table, np.where(above, -np.inf, low - at), np.where(below, np.inf, high - at))]
        by_time = self.start.parts_by_time(float(time)).ravel()
        for k, (values, (slopes, by_start, limits)) in enumerate(
            zip(self._derivatives(path.points), self._linear, strict=True), 1
        ):
            if not values.size:
                continue
            scale = limits * time**k
            share = values / scale
            table = np.zeros((values.size, variables))
            table[:, : size - 1] = slopes / scale[:, None]
            table[:, size - 1] = by_start @ by_time / scale - k * share / time
            parts += _sided(table, share, 1.0, size)
        if path.g.size:
            table = np.zeros((path.g.size, variables))
            table[:, :size] = path.slopes[0].reshape(-1, size)
            limit = self.most(path.g).ravel()
            sided = np.broadcast_to(self.form.one_sided, path.g.shape).ravel()
            parts += _sided(table, path.g.ravel(), limit, size, sided)
        ends = np.zeros((goals, variables))
        ends[:, :size] = path.slopes[1]
        ends[:, size + 1 : size + 1 + goals] = np.eye(goals)
        ends[:, size + 1 + goals :] = -np.eye(goals)
        parts.append((ends, -path.e - self.form.within, -path.e + self.form.within))
        square = np.zeros((variables, variables))
        slope = np.zeros(variables)
        jerks, by_unknowns = self._jerks(unknowns)
        square[:size, :size] = SMOOTH * by_unknowns.T @ by_unknowns
        slope[:size] = SMOOTH * by_unknowns.T @ jerks
        if self.duration is None:
            slope[size - 1] += 1.0
        elif self._efforts:
            efforts = path.slopes[0][:, self._efforts].reshape(-1, size)
            factor = 2.0 * self.duration / self.unit / (STEPS + 1)
            square[:size, :size] += factor * efforts.T @ efforts
            slope[:size] += factor * efforts.T @ path.g[:, self._efforts].ravel()
        for off, slopes in self._passing(path):
            square[:size, :size] += PASSING * slopes.T @ slopes
            slope[:size] += PASSING * slopes.T @ off
        square += PROXIMAL * price * np.eye(variables)
        # Torques are linear in y = (T / T')^2 - 1 for the next duration T'.
        by_y = -0.5 * time
        for part in parts:
            part[0][:, size - 1] *= by_y
        square[size - 1] *= by_y
        square[:, size - 1] *= by_y
        slope[size - 1] *= by_y
        curved = 0.75 * time if self.duration is None else 0.0
        square[size - 1, size - 1] = max(square[size - 1, size - 1] + curved, 1e-2)
        slope[size], slope[size + 1 :] = prices
        elastic = np.arange(size, variables)
        square[elastic, elastic] = ELASTIC * slope[size:]
        return _Program(self, path, square, slope, parts, self._cost(unknowns, path), size)


def _moved(unknowns: Floats, step: Floats) -> Floats:
    """Unknowns after a step, whose last entry is y = (T / T')^2 - 1 for the next duration T'."""
    found = unknowns + step[: unknowns.size]
    found[-1] = unknowns[-1] / np.sqrt(1.0 + step[unknowns.size - 1])
    return np.asarray(found)


def _sided(
    table: Floats,
    values: Floats,
    limit: float | Floats,
    size: int,
    sided: NDArray[np.bool_] | None = None,
) -> list[tuple[Floats, Floats, Floats]]:
    """Rows within limits, elastic by the variable after the unknowns; only those near them."""
    limit = np.broadcast_to(limit, values.shape)
    found = []
    for sign in (1.0, -1.0):
        near = _near(values, limit, sign, sided)
        rows = sign * table[near]
        rows[:, size] = -1.0
        upper = limit[near] - sign * values[near]
        found.append((rows, np.full(upper.size, -np.inf), upper))
    return found


def _near(
    values: Floats, limit: Floats, sign: float, sided: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Rows that a program has on one of their sides."""
    if sided is None:
        sided = np.zeros(values.shape, bool)
    both = sign * values > NEAR_LIMIT * limit
    return np.where(sided, (sign > 0.0) & (values > limit + FAR - 1.0), both)


@dataclass(frozen=True, eq=False)
class _Program:
    """A quadratic program about a path: least cost of the step, excess and misses within rows."""

    search: Search
    path: Path
    square: Floats
    slope: Floats
    parts: list[tuple[Floats, Floats, Floats]]
    cost: float
    size: int

    @cached_property
    def _stacked(self) -> tuple[Floats, Floats, Floats]:
        table, low, high = (np.concatenate([part[k] for part in self.parts]) for k in range(3))
        return table, low, high

    def solve(self, region: float, unknowns: Floats) -> Floats:
        """Step and elastic variables within a trust region."""
        table, low, high = self._stacked
        search, size = self.search, self.size
        first, last = np.full(self.slope.size, -np.inf), np.full(self.slope.size, np.inf)
        first[:size], last[:size], first[size:] = -region, region, 0.0
        time = unknowns[-1]
        shortest = max(1.0 - min(region, 0.7), min(SHORTEST / time, 1.0))
        first[size - 1], last[size - 1] = (1.0 + 2.0 * region) ** -2 - 1.0, shortest**-2 - 1.0
        if search.duration is not None:
            first[size - 1] = last[size - 1] = (time / search.duration) ** 2 - 1.0
        if not search.form.ends_moving:
            ns = search.form.model.ns
            first[size - 1 - ns : size - 1] = last[size - 1 - ns : size - 1] = 0.0
        return least(self.square, self.slope, table, (low, high), (first, last))[0]

    def merit(self, step: Floats) -> float:
        """Merit that the program foresees."""
        own = step[: self.size]
        part = slice(self.size)
        cost = self.cost + self.slope[part] @ own + 0.5 * own @ self.square[part, part] @ own
        return float(cost + self.slope[self.size :] @ step[self.size :])

    def pulled(
        self, unknowns: Floats, trial: Floats, ahead: Path, step: Floats, region: float
    ) -> Floats:
        """Least change of a trial, but T, that takes away its miss of the goal."""
        return self.search.pulled(trial, ahead, self.path)

    def again(
        self, unknowns: Floats, trial: Floats, ahead: Path, step: Floats, region: float
    ) -> Floats:
        """Trial of the corrected program."""
        straight = step[: self.size].copy()
        straight[-1] *= -0.5 * unknowns[-1]
        return _moved(unknowns, self.corrected(ahead, straight).solve(region, unknowns))

    def corrected(self, ahead: Path, step: Floats) -> _Program:
        """The same program with the values of the rows where the last step led."""
        search, path = self.search, self.path
        assert path.slopes is not None
        fault = (ahead.g - path.g - path.slopes[0] @ step).ravel()
        limit = search.most(path.g).ravel()
        sided = np.broadcast_to(search.form.one_sided, path.g.shape).ravel()
        parts, values = list(self.parts), path.g.ravel()
        if values.size:
            at = len(parts) - 3
            for k, sign in enumerate((1.0, -1.0)):
                near = _near(values, limit, sign, sided)
                rows, low, high = parts[at + k]
                parts[at + k] = rows, low, high - sign * fault[near]
        rows, low, high = parts[-1]
        off = ahead.e - path.e - path.slopes[1] @ step
        parts[-1] = rows, low - off, high - off
        return replace(self, parts=parts)
