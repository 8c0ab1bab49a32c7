"""Posture at the goals of a plan within the limits that hold at rest, or the nearest to them.

A goal in an obstacle, out of reach, with more weight than torques carry or wheels that lift off is
found so before any motion is sought. Gauss-Newton steps minimise the misses of the goal from many
postures at once; limits and the centre of mass of a robot that floats are rows of their quadratic
programs. The largest excess over a limit is elastic, at a price that no miss pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from concur.outputs import Output
from concur.planning._graphs import STEPS
from concur.planning._quadratic import least
from concur.planning._targets import Target
from concur.planning._transcription import Transcription
from concur.planning._verdict import KEPT
from concur.robot.joints import Free, Planar

TRIES = STEPS + 1
"""Postures from which the search begins: as many as the functions take at once."""

ITERATIONS, LAST = 40, 15
"""Largest number of steps of each, and of the last ones towards the nearest goal."""

ROOM = 5 * KEPT
"""Room to the limits at the nearest goal, relative to them, so that a motion gets there."""

TOLERANCE = 1e-6
"""Norm of the misses at which a posture is at the goal, m and rad."""

UNREACHED = 1e-3
"""Norm of the misses from which a goal counts as out of reach, m and rad. A smaller one may be
left where the arm is stretched, so that a motion is sought then."""

REGION, LARGEST, SMALLEST = 0.5, 4.0, 1e-6
"""Trust region at the start, its largest and smallest size, rad and m."""

PRICE = 10.0
"""Price of the largest excess, for each m and rad that the start is away from the goal."""

PROXIMAL = 1e-6
"""Price of a squared step, which makes programs strictly convex."""

EXCESS = 1e-6
"""Excess over limits, less the share that motions leave, that a posture at the goal may have."""

SETTLED, POORLY = 1e-9, 0.1
"""Relative fall of the merit at which a posture is settled, and share of what a program foresees
below which its step is refused."""

CAUSES, COUNTS = 3, 1e-3
"""Largest number of limits that are named, and share of the largest price from which they are."""

OUT_OF_REACH = "no small motion brings it nearer"

WIDEST = np.pi
"""Half of the range from which shape coordinates without limits are drawn, rad and m."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Nearest:
    """Posture nearest to the goals: its configuration, and whether it reaches them.

    `wanted` are the numbers that it reaches; `why` states what is missed, and what is nearest.
    """

    q: Floats
    solved: bool
    wanted: Floats
    why: str


def nearest_posture(form: Transcription, targets: Sequence[Target], q0: Floats) -> Nearest:
    """Posture at the goals within all limits that hold at rest, or the nearest to them."""
    wanted = np.concatenate([target.wanted for target in targets])
    search = _Postures(form, wanted, q0, KEPT)
    found = [search.sought(search.starts())]
    if not found[0].solved and search.free.rows != search.rows:
        # A wall between start and goal holds postures back that begin at the start.
        beyond, seen, _ = search.free.descend(search.starts(), ITERATIONS)
        if seen.missed.min() <= UNREACHED:
            found.append(search.sought(beyond))
    best = min(found, key=lambda one: (not one.solved, one.merit))
    if best.solved:
        return Nearest(best.q, True, wanted, "")
    why = best.search.why(best.seen, best.at, best.prices, targets)
    return Nearest(best.q, False, best.seen.places[best.at], why)


@dataclass(frozen=True)
class _Best:
    """Best of many postures: the one at place `at` of those seen, with the prices of its rows."""

    search: _Postures
    seen: _Seen
    q: Floats
    at: int
    prices: Floats
    solved: bool
    merit: float


@dataclass(frozen=True)
class _Seen:
    """Postures: misses of the goal, rows of limits, shape, and offset of the centre of mass.

    `places` are the numbers that goals would have there, `rates` those of the coordinates by the
    velocities, by which all slopes are.
    """

    e: Floats
    e_slopes: Floats
    g: Floats
    g_slopes: Floats
    com: Floats
    com_slopes: Floats
    places: Floats
    shape: Floats
    rates: Floats
    room: Floats

    @property
    def excess(self) -> Floats:
        """Largest excess over a limit, relative to it, or offset of the centre of mass, m."""
        over = self.g.max(axis=1, initial=-1.0) - 1.0 + self.room
        off = np.abs(self.com).max(axis=1, initial=0.0)
        return np.asarray(np.maximum(np.maximum(over, 0.0), off))

    @property
    def missed(self) -> Floats:
        """Norm of the misses."""
        return np.asarray(np.linalg.norm(self.e, axis=1))

    def merit(self, price: float) -> Floats:
        """Misses, and excess at its price."""
        return np.asarray(0.5 * self.missed**2 + price * self.excess)

    def taken(self, order: Sequence[int]) -> _Seen:
        """These postures in another order."""
        return _Seen(*[part[list(order)] for part in vars(self).values()])

    def where(self, chosen: NDArray[np.bool_], other: _Seen) -> _Seen:
        """These postures where they are chosen, others elsewhere."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Seen(*[np.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs])


@dataclass(frozen=True, eq=False)
class _Postures:
    """Search of postures at one goal."""

    form: Transcription
    wanted: Floats
    q0: Floats
    room: float
    passes: bool = False  # through obstacles

    def sought(self, q: Floats) -> _Best:
        """Best posture from some, at the goal or with room to the limits as near as it gets."""
        search = self
        # The motion to the nearest goal needs more room.
        for room, count in ((KEPT, ITERATIONS), (ROOM, LAST)):
            search = replace(self, room=room)
            q, seen, prices = search.descend(q, count)
            close = np.where(seen.excess <= KEPT, seen.missed, np.inf)
            best = int(np.argmin(close))
            if close[best] <= UNREACHED:
                return _Best(search, seen, q[best], best, prices[best], True, float(close[best]))
        if not np.isfinite(close[best]):
            best = int(np.argmin(seen.merit(search.price)))
        merit = float(seen.merit(search.price)[best])
        return _Best(search, seen, q[best], best, prices[best], False, merit)

    @cached_property
    def free(self) -> _Postures:
        """The same search without the distances from obstacles."""
        return replace(self, passes=True)

    def descend(self, q: Floats, count: int) -> tuple[Floats, _Seen, list[Floats]]:
        """Postures nearer to the goal, and prices of the rows there; the first if one reaches it.

        That is the nearest to the start of those that reach it.
        """
        region, active, seen = np.full(TRIES, REGION), np.ones(TRIES, dtype=bool), self.at(q)
        price, prices = self.price, [np.zeros(0)] * TRIES
        merit = seen.merit(price)
        for _ in range(count):
            there = (seen.missed <= TOLERANCE) & (seen.excess <= EXCESS)
            if there.any():
                away = np.linalg.norm(seen.shape - self.q0[self.form.shape], axis=1)
                near = int(np.argmin(np.where(there, away, np.inf)))
                order = [near, *np.delete(np.arange(TRIES), near)]
                return q[order], seen.taken(order), prices
            steps, foreseen, latest = self.steps(seen, region, price, active)
            prices = [b if on else a for a, b, on in zip(prices, latest, active, strict=True)]
            active &= merit - foreseen > SETTLED * (1.0 + merit)
            if not active.any():
                break
            trial = self.moved(q, seen, np.where(active[:, None], steps, 0.0))
            ahead = self.at(trial)
            share = (merit - ahead.merit(price)) / np.maximum(merit - foreseen, 1e-300)
            better = active & (share > POORLY)
            region *= np.where(share < 0.3, 0.4, np.where(share > 0.7, 2.0, 1.0))
            region, active = np.minimum(region, LARGEST), active & (region > SMALLEST)
            q = np.where(better[:, None], trial, q)
            seen = ahead.where(better, seen)
            merit = seen.merit(price)
        return q, seen, prices

    @cached_property
    def price(self) -> float:
        """Price of the largest excess."""
        return PRICE * (1.0 + float(self.at(np.tile(self.q0, (TRIES, 1))).missed[0]))

    @cached_property
    def rows(self) -> list[int]:
        """Rows of limits that count at rest, and again those with two sides.

        With a drift these are distances and margins, which are of configurations alone.
        """
        facts, sided = self.form.facts, self.form.one_sided
        kinds = ("distance", "decoupling") if self.form.drifts else ("",)
        counted = [k for k, fact in enumerate(facts) if fact[0].startswith(kinds)]
        if self.passes:
            counted = [k for k in counted if not facts[k][0].startswith("distance")]
        return [*counted, *(k for k in counted if not sided[k])]

    @cached_property
    def _signs(self) -> Floats:
        count = len(set(self.rows))
        return np.array([1.0] * count + [-1.0] * (len(self.rows) - count))

    @cached_property
    def _axes(self) -> Floats:
        """Directions in which the centre of mass of a robot that floats stays, shape (k, 3)."""
        model = self.form.model
        if not model.takes_momentum or not isinstance(model.robot.base.joint, (Free, Planar)):
            return np.zeros((0, 3))
        drift = np.asarray(model.com_velocity)
        return null_space(drift[None]).T if np.any(drift) else np.eye(3)

    @cached_property
    def _center(self) -> Floats:
        """Centre of mass at the start, by the directions in which it stays."""
        return np.asarray(self._axes @ self._com(np.tile(self.q0, (TRIES, 1)))[0])

    @cached_property
    def _wanted(self) -> Floats:
        return np.tile(self.wanted[:, None], TRIES)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """Ends of the ranges of the shape."""
        return self.form.bounds.low, self.form.bounds.high

    def at(self, q: Floats) -> _Seen:
        """Misses and limits of postures, shape (TRIES, nq)."""
        form, still = self.form, np.zeros((TRIES, self.form.model.ns))
        x, r = q[:, form.rest], q[:, form.shape]
        found = form.graphs.posture(x.T, r.T, self._wanted)
        e, e_slopes, places, com, com_slopes, rates = (
            y.reshape(len(y), TRIES, -1).transpose(1, 0, 2) for y in found
        )
        within = form.within[: e.shape[1]]
        beyond = e[:, :, 0] - np.clip(e[:, :, 0], -within, within)
        counts = (beyond != 0.0) | (within == 0.0)
        g, dg = form.limited(x, r, still, still)
        g, dg = g[:, self.rows], dg[:, self.rows, : form.model.nq] @ rates
        return _Seen(
            *(beyond, e_slopes * counts[:, :, None]),
            *(g * self._signs, dg * self._signs[:, None]),
            *(com[:, :, 0] @ self._axes.T - self._center, self._axes @ com_slopes),
            *(places[:, :, 0], r, rates, np.full(TRIES, self.room)),
        )

    def starts(self) -> Floats:
        """The start, and the same with other shapes and headings."""
        form, rng = self.form, np.random.default_rng(0)
        q = np.tile(self.q0, (TRIES, 1))
        low, high = self._ends
        low, high = (
            np.maximum(low, self.q0[form.shape] - WIDEST),
            np.minimum(high, self.q0[form.shape] + WIDEST),
        )
        low, high = (np.where(form.rolling, self.q0[form.shape], end) for end in (low, high))
        q[1:, form.shape] = rng.uniform(low, high, (TRIES - 1, low.size))
        return self._tidy(q)

    def moved(self, q: Floats, seen: _Seen, steps: Floats) -> Floats:
        """Postures after steps, inside their ranges."""
        form, ahead = self.form, q.copy()
        ahead[:, [*form.rest, *form.shape]] += (seen.rates @ steps[:, :, None])[:, :, 0]
        ahead[:, form.shape] = np.clip(ahead[:, form.shape], *self._ends)
        return self._tidy(ahead)

    def _tidy(self, q: Floats) -> Floats:
        """Postures with unit quaternions, joints that follow others, and their centre of mass."""
        robot = self.form.model.robot
        q = np.array([robot.coupled(np.asarray(robot.normalize(row))) for row in q])
        if len(self._axes):
            # A place of the base moves the centre of mass as far.
            place = robot.q_slice(robot.base.name).start + np.arange(self._places)
            back = (self._com(q) @ self._axes.T - self._center) @ self._axes
            q[:, place] -= (back @ robot.base.placement.rotation_matrix)[:, : self._places]
        return q

    def _com(self, q: Floats) -> Floats:
        """Centres of mass, shape (TRIES, 3)."""
        parts = q[:, self.form.rest].T, q[:, self.form.shape].T
        return np.asarray(self.form.graphs.posture(*parts, self._wanted)[3].T)

    @property
    def _places(self) -> int:
        """Coordinates of the place of a base that floats."""
        return 2 if isinstance(self.form.model.robot.base.joint, Planar) else 3

    def steps(
        self, seen: _Seen, regions: Floats, price: float, chosen: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, list[Floats]]:
        """Steps of chosen postures, the merit that they foresee, and prices of all rows."""
        steps, foreseen = np.zeros((TRIES, seen.rates.shape[2])), seen.merit(price)
        prices = [np.zeros(0)] * TRIES
        for k in np.flatnonzero(chosen).tolist():
            steps[k], foreseen[k], prices[k] = self._step(seen, k, regions[k], price)
        return steps, foreseen, prices

    def _step(
        self, seen: _Seen, k: int, region: float, price: float
    ) -> tuple[Floats, float, Floats]:
        """Step of a posture, the merit that it foresees, and prices of the rows."""
        size = seen.rates.shape[2]
        ns, limits = seen.shape.shape[1], seen.g.shape[1]
        slopes, e = seen.e_slopes[k], seen.e[k]
        table = np.zeros((limits + ns + len(self._axes), size + 1))
        table[:limits, :size], table[:limits, size] = seen.g_slopes[k], -1.0
        table[limits : limits + ns, :size] = seen.rates[k, -ns:]
        table[limits + ns :, :size] = seen.com_slopes[k]
        low, high = (end - seen.shape[k] for end in self._ends)
        lower = np.concatenate([np.full(limits, -np.inf), low, -seen.com[k]])
        upper = np.concatenate([1.0 - self.room - seen.g[k], high, -seen.com[k]])
        square = np.zeros((size + 1, size + 1))
        square[:size, :size] = slopes.T @ slopes + PROXIMAL * np.eye(size)
        square[size, size] = PROXIMAL
        bound = np.append(np.full(size, region), np.inf)
        z, price_of = least(
            square, np.append(slopes.T @ e, price), table, (lower, upper),
            (np.append(-bound[:size], 0.0), bound),
        )  # fmt: skip
        foreseen = 0.5 * float(np.square(e + slopes @ z[:size]).sum()) + price * float(z[size])
        return z[:size], foreseen, price_of

    def why(self, seen: _Seen, k: int, prices: Floats, targets: Sequence[Target]) -> str:
        """Sentence: what a posture misses, the limits that keep it there, and the goals there."""
        form = self.form
        misses, nearest, at, own = list[str](), list[str](), 0, 0
        for target in targets:
            output, size = form.outputs[target.output], len(target.rows)
            off = seen.e[k, at : at + size]
            units = _units(output, target)
            sizes = [
                f"{length:.4g} {unit}"
                for unit in ("m", "rad")
                if (length := float(np.linalg.norm(off[[u == unit for u in units]]))) > UNREACHED
            ]
            if sizes:
                misses.append(f"`{output.name}` stays {' and '.join(sizes)} away")
            numbers = seen.places[k, own : own + target.wanted.size]
            at, own = at + size, own + target.wanted.size
            nearest.append(f"`{output.name}` at [{', '.join(f'{x:.5g}' for x in numbers)}]")
        causes = self._causes(seen, k, prices)
        cause = f"limited by the {', the '.join(causes[:CAUSES])}" if causes else OUT_OF_REACH
        return (
            f"out of reach from {TRIES} postures: {', '.join(misses) or 'a limit is exceeded'}, "
            f"{cause}; the nearest goal within reach is {' with '.join(nearest)}"
        )

    def _causes(self, seen: _Seen, k: int, prices: Floats) -> list[str]:
        """Limits that keep a posture from its goals, those first that keep it most."""
        form, names = self.form, list[str]()
        for row in self.rows:
            name, unit, limit, offset = form.facts[row]
            names.append(f"{name} ({limit + offset:.4g} {unit}".strip() + ")")
        for j, name in enumerate(form.model.shape_names):
            end = self._ends[0 if prices[len(self.rows) + j] < 0.0 else 1][j]
            names.append(f"position of {name} ({end:.4g})")
        names += ["centre of mass, which no torque moves"] * len(self._axes)
        sizes = np.abs(prices[: len(names)])
        least = COUNTS * max(float(sizes.max(initial=0.0)), SMALLEST)
        order = [int(j) for j in np.argsort(-sizes) if sizes[j] > least]
        return list(dict.fromkeys(names[j] for j in order))


def _units(output: Output, target: Target) -> tuple[str, ...]:
    """Units of the rows of a goal."""
    if target.kind == "pose":
        return tuple(output.coordinate_units)
    return ("m" if target.kind == "position" else "rad",) * len(target.rows)
