"""Largest values over the leaves of a proof; leaves whose own values break a claim are halved.

**What holds.** `swept` returns only if disturbances are strictly below D in each segment. Its
values are then those of all motions of the statement (first exit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from concur.proofs._recheck_arm import Angles, forward, joined, solve
from concur.proofs._recheck_case import Case
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_cover import CORNERS, DEPTH, check_branch
from concur.proofs._recheck_leaves import Extra, Sets, Vector, bounds, table
from concur.proofs._recheck_smooth import Floats, Rejection, Smooth, constant, require
from concur.proofs._recheck_work import spend

BLOCK = 128
"""Cells computed side by side."""

CELL, LEAF = 5e3, 2e2
"""Work of a cell and of a leaf (microseconds)."""

ROUNDS, GROWTH, FEW, MANY = 4, 8, 20_000, 2_000_000
"""How often leaves may be halved; the largest number of halves: this multiple of the leaves, but a
number of few leaves, and at most one that fits into memory."""

NEARER = 1.25
"""Factor on the excess that halves have to reduce."""

CLAIMED = ("torque", "speed", "ground", "apart", "formula")
OWN = (*CLAIMED, "weights", "held")
"""Values that are kept for each leaf, each with the part that halves reduce, `..._rest`."""

SWINGS = ("torque_rate", "response_rate")
"""Further values that are kept: their product counts with held torques."""


@dataclass(frozen=True, eq=False)
class Nominal:
    """Declared motion over segments in axes of the base; symbols time and heading.

    `places` are points in the world from the axle.
    """

    y: Smooth
    nu: Smooth
    w: Smooth
    relative: Smooth
    places: list[Smooth]


class Sweep:
    """Values over leaves.

    Parameters
    ----------
    case, stored
        As of `verify`; each relative position of a segment is in one of its leaves.
    nominal : Nominal
        Declared motion over the segments.
    radii : tuple of numpy.ndarray
        Radii of x, ve and jumps of the acceleration over the segments, (2, segments).
    claims : dict of str to numpy.ndarray
        Claimed bounds of the rows of `CLAIMED` times their signs.
    extras : sequence of Extra
        Further values.
    reach : numpy.ndarray
        First segment that a held torque may come from, for each segment.
    progress : callable or None
        Called with the share of the work that is done.
    """

    def __init__(
        self,
        case: Case,
        stored: Stored,
        nominal: Nominal,
        radii: tuple[Floats, Floats, Floats],
        claims: dict[str, Floats],
        extras: Sequence[Extra],
        reach: np.ndarray,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.case, self.stored, self.nominal, self.radii = case, stored, nominal, radii
        self.claims, self.extras, self.reach, self.progress = claims, extras, reach, progress
        self.count = len(stored.first)
        self.guesses = _guesses(case, nominal)
        self.largest: dict[str, Floats] = {}

    def run(self) -> dict[str, Floats]:
        """Largest values over each segment, with D verified."""
        sizes = [len(part) for part in self.stored.leaves]
        leaves, owner = np.vstack(self.stored.leaves), np.repeat(np.arange(self.count), sizes)
        values, room = self._values(leaves, owner), min(max(GROWTH * len(leaves), FEW), MANY)
        for attempt in range(ROUNDS + 1):
            for name, part in values.items():
                self.largest[name] = self._maxima(part, owner)
            total = self._disturbance()
            bad = ~(total * (1 + 1e-12) < self.stored.disturbance)
            large = self._large(values, owner, bad) & (leaves[:, 0] < DEPTH)
            room -= 8 * large.sum()
            if attempt == ROUNDS or not large.any() or room < 0:
                break
            halves = np.repeat(leaves[large], 8, axis=0)
            halves[:, 0] += 1
            halves[:, 1:] = 2 * halves[:, 1:] + np.tile(CORNERS, (int(large.sum()), 1))
            new = np.repeat(owner[large], 8)
            more = self._values(halves, new)
            leaves, owner = np.vstack([leaves[~large], halves]), np.append(owner[~large], new)
            values = {
                name: np.concatenate([part[..., ~large], more[name]], axis=-1)
                for name, part in values.items()
            }
        if bad.any():
            o, k = np.argwhere(bad)[0].tolist()
            came, limit = total[o, k], self.stored.disturbance[o, k]
            raise Rejection(
                f"segment {k}: the disturbance of output {o} may reach {came:.6g} m/s^2, "
                f"which is not below D, {limit:.6g}"
            )
        return self.largest

    def _maxima(self, values: Floats, owner: np.ndarray) -> Floats:
        """Largest values over the leaves of each segment."""
        found = np.full((*values.shape[:-1], self.count), -np.inf)
        np.maximum.at(np.moveaxis(found, -1, 0), owner, np.moveaxis(values, -1, 0))
        return found

    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """Bounds of d by inertias, by held torques, and by the rest, (2, segments)."""
        given, found = self.stored.statement, self.largest
        hold = given.period + given.delay
        late = {name: self._late(found[name]) for name in ("held", "response_rate", "torque_rate")}
        swung = hold**2 * np.einsum("cib,ib->cb", late["response_rate"], late["torque_rate"])
        turned = 0.0 * late["torque_rate"]
        if "inertia" in found and self.radii[2].any():
            turned = turned + self._late(np.einsum("iok,ok->ik", found["inertia"], self.radii[2]))
        if "read" in found:
            turned = turned + self._late(found["read_torque"])
        rest = hold * np.einsum("cib,ib->cb", late["response_rate"], turned)
        if "read" in found:
            rest = rest + self._late(found["read"])
        if given.torque_error:
            rest = rest + np.einsum("cib,i->cb", found["response"], np.array(given.torque_error))
        if given.push:
            rest = rest + np.array(given.push)[:, None]
        return given.masses * found["weights"], hold * late["held"] + swung, rest

    def _late(self, values: Floats) -> Floats:
        """Largest values over the segments that held torques may come from."""
        found = values.copy()
        for back in range(1, int((np.arange(self.count) - self.reach).max()) + 1):
            k = np.flatnonzero(np.arange(self.count) - back >= self.reach)
            found[..., k] = np.maximum(found[..., k], values[..., k - back])
        return found

    def _disturbance(self) -> Floats:
        """Bound of |d| of both outputs over segments, (2, segments)."""
        inertias, held, rest = self._parts()
        return np.asarray((inertias + held + rest) * (1 + 1e-12))

    def _large(self, values: dict[str, Floats], owner: np.ndarray, bad: np.ndarray) -> np.ndarray:
        """Leaves whose halves could keep torques and speeds within claims, and d below D.

        Inertias and held torques share the excess according to their parts that halves reduce. No
        leaf is returned if these parts are too small.
        """
        found = none = np.zeros(len(owner), dtype=bool)
        core = {name: values[name] - values[f"{name}_rest"] for name in OWN if name in values}
        for name in self.claims:
            claims = self.claims[name][:, None]
            found = found | (values[name] > claims).any(axis=0)
            if (core[name] > claims).any():
                return none
        weights, held, rest = self._parts()
        given = self.stored.statement
        hold = given.period + given.delay
        loose = weights - given.masses * self._maxima(core["weights"], owner)
        # Rates of torques shrink with the rest of their effect.
        late = hold * self._late(self.largest["held"])
        sharp = hold * self._late(self._maxima(core["held"], owner))
        scale = held / np.where(late > 0.0, late, 1.0)
        slow = (late - sharp) * scale
        over = weights + held + rest - (1 - 1e-3) * self.stored.disturbance
        if not (over < loose + slow)[bad].all():
            return none
        part = np.minimum(1.0, NEARER * over / np.where(bad, loose + slow, 1.0))
        most = np.where(bad, weights - part * loose, np.inf)
        found |= (given.masses * values["weights"] > most[:, owner]).any(axis=0)
        # A late command counts in later segments too.
        most = np.where(bad, held - part * slow, np.inf)
        least = most.copy()
        for k in np.flatnonzero(bad.any(axis=0)).tolist():
            before = slice(int(self.reach[k]), k)
            least[:, before] = np.minimum(least[:, before], most[:, k : k + 1])
        own = hold * values["held"] * scale[:, owner]
        return np.asarray(found | (own > least[:, owner]).any(axis=0))

    def _values(self, leaves: np.ndarray, owner: np.ndarray) -> dict[str, Floats]:
        """Kept values of leaves, the last axis counts them; maxima of others go to `largest`."""
        case, nominal, radii, stored = self.case, self.nominal, self.radii, self.stored
        # Halves belong to the branch of the file's leaves, which belong to that of the start.
        sizes = [len(part) for part in stored.leaves]
        owners = np.append(owner, np.repeat(np.arange(self.count), sizes))
        cells, source, index = np.unique(
            np.vstack([leaves, *stored.leaves]), axis=0, return_index=True, return_inverse=True
        )
        index = index.ravel()[: len(owner)]
        cell, leaf = (work * (0.5 + 0.5 * len(self.extras)) for work in (CELL, LEAF))
        total, done = cell * len(cells) + leaf * len(owner), 0.0
        spend(total)
        size = stored.edge / 2.0 ** cells[:, 0]
        middle = ((cells[:, 1:] + 0.5) * size[:, None]).T
        half = np.tile(size / 2, (3, 1)) * (1 + 1e-12)
        angles = self._angles(middle, half, self.guesses[:, owners[source]])
        check_branch(case, stored.edge, cells, angles)
        order = np.argsort(index, kind="stable")
        used = np.unique(index)
        blocks = [used[i : i + BLOCK] for i in range(0, len(used), BLOCK)]
        ends = np.searchsorted(index[order], [*(block[0] for block in blocks), len(cells)])
        own, kept = dict[str, Floats](), {*OWN, *(f"{name}_rest" for name in OWN), *SWINGS}
        for b, block in enumerate(blocks):
            at = angles.take(block)
            places = middle[:, block], half[:, block]
            made = table(case.rover, *places, at, case.scales, self.extras)
            done += cell * len(block)
            for i in range(ends[b], ends[b + 1], BLOCK):
                jobs = order[i : min(i + BLOCK, ends[b + 1])]
                of = owner[jobs]
                sets = Sets(
                    _vector(nominal.y, of),
                    _vector(nominal.nu, of),
                    _vector(nominal.w, of),
                    radii[0][:, of],
                    radii[1][:, of],
                    stored.disturbance[:, of] + radii[2][:, of],
                    case.gains,
                    [_vector(place, of) for place in nominal.places],
                )
                own_table = made.take(np.searchsorted(block, index[jobs]))
                found = bounds(own_table, sets, case.rover)
                for extra in self.extras:
                    found |= extra.bounds(own_table, sets)
                for name in ("low", "margin", "pivot"):
                    found[name] = -found[name]
                for name, part in found.items():
                    part = np.atleast_2d(np.where(np.isnan(part), np.inf, part))
                    if name in kept:
                        full = own.setdefault(name, np.empty((*part.shape[:-1], len(owner))))
                        full[..., jobs] = part
                    else:
                        most = self._maxima(part, of)
                        self.largest[name] = np.maximum(self.largest.get(name, most), most)
                done += leaf * len(jobs)
                if self.progress:
                    self.progress(done / total)
        return own

    def _angles(self, middle: Floats, half: Floats, guess: Floats) -> Angles:
        """Angles of all cells, each with one root."""
        parts = []
        for i in range(0, middle.shape[1], BLOCK):
            own = slice(i, i + BLOCK)
            parts.append(solve(self.case.rover, middle[:, own], half[:, own], guess[:, own]))
            bad = ~parts[-1].solved
            where = np.round(middle[:, own][:, bad][:, :1].ravel(), 4).tolist()
            require(not bad.any(), f"no unique angles of the arm are found near {where} m")
        return joined(parts)


def _vector(m: Smooth, own: np.ndarray) -> Vector:
    return Vector(
        m.c[:, own], m.g[..., own], (np.abs(m.h).sum(axis=0) + m.r[0])[:, own] * (1 + 1e-12)
    )


def _guesses(case: Case, nominal: Nominal) -> Floats:
    """Angles along the declared motion, by Newton in floats from those of the start."""
    now, found = case.angles.copy(), []
    lead = np.array([case.rover.lead, 0.0, 0.0])
    for place in nominal.relative.c.T:
        for _ in range(8):
            at = forward(case.rover, constant(now[:, None], 0))
            jacobian, off = at.jacobian.c[:, :, 0], at.hand.c[:, 0] - place - lead
            require(bool(np.isfinite(jacobian).all()), "the declared motion cannot be followed")
            now = now - np.linalg.lstsq(jacobian, off, rcond=None)[0]
        found.append(now)
    return np.array(found).T
