"""Verify the file of a task's proof by arithmetic that shares nothing with the prover.

Of the file only the grid, the segments, the candidate D of disturbances, the leaves and the bounds
are used, and none is trusted (`verify`). Robot, law and reference come from the task: the numbers
of bodies, wheels and joints, gains, and the reference's formula.

**What holds.** If `verify` returns, then for all starts and imperfections of the statement: (a) the
segments cover the time without a gap, and the start is inside; (b) the leaves of each segment cover
all relative positions of hand and base; (c) the heading stays within its wall; (d) each leaf has
one root of the arm's angles; (e) the bounds hold; (f) disturbances are strictly below D; (g) all
roots are the branch of the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur.proofs._recheck_arm import forward, joined, solve
from concur.proofs._recheck_case import Case, Stored
from concur.proofs._recheck_cover import CORNERS, DEPTH, WIDTH, check_branch, check_cover
from concur.proofs._recheck_leaves import ROWS, Sets, Vector, bounds, table
from concur.proofs._recheck_motion import (
    heading_candidate,
    heading_of,
    turned,
    wall,
)
from concur.proofs._recheck_smooth import Floats, Rejection, Smooth, constant, require, stack

LEAVES, STEPS = 1_000_000, 100_000
"""Most leaves, and steps of the grid."""

BLOCK = 128
"""Cells computed side by side."""


ROUNDS, WORST = 2, 0.9
"""How often leaves may be halved here, and the share of D from which a leaf is halved."""


@dataclass(frozen=True, eq=False)
class Nominal:
    """Declared motion over segments in axes of the base; symbols time and heading."""

    y: Smooth
    nu: Smooth
    w: Smooth
    relative: Smooth


def verify(case: Case, stored: Stored) -> None:
    """Verify a file; return if all is confirmed.

    Raises
    ------
    Rejection
        With the first thing that is not confirmed.
    """
    first, last, count = _grid(case, stored)
    statement, motion = stored.statement, case.motion
    spread = np.repeat(stored.disturbance, last - first, axis=1)
    tubes = [
        channel.tube(statement.place[o], statement.speed[o], spread[o], stored.step)
        for o, channel in enumerate(motion.channels)
    ]
    x, ve = (np.array([tube[i] for tube in tubes]) for i in (0, 1))
    cubics = heading_candidate(motion, case.heading, count, stored.step, case.rover.lead)
    start = (case.heading, float(statement.heading))
    around = wall(motion, cubics, start, ve[0], stored.step, case.rover.lead)
    require(bool(np.isfinite(around).all()), "the heading has no wall")
    radii = [np.maximum.reduceat(part, first, axis=-1) for part in (x, ve, around)]
    nominal = _nominal(case, cubics, first, last, radii[2], stored.step)
    for k in range(len(first)):
        check_cover(stored, k, nominal.relative[:, k : k + 1], radii[0][:, k])
    found = _swept(case, stored, nominal, (radii[0], radii[1]))
    _bounds(case, stored, found, x, count)


def _grid(case: Case, stored: Stored) -> tuple[np.ndarray, np.ndarray, int]:
    """First and last steps of segments and their number, bounded before any work."""
    first, step = stored.first, stored.step
    require(np.isfinite(step) and step > 0.0, "the step is not a positive number")
    require(case.duration / step < STEPS, f"the file has more than {STEPS} steps")
    count = round(case.duration / step)
    require(count > 0 and abs(count * step - case.duration) < 1e-9, "steps do not end at the end")
    sound = len(first) > 0 and first[0] == 0 and bool((np.diff(first) > 0).all())
    require(sound and int(first[-1]) < count, "segments do not cover the time without a gap")
    require(stored.disturbance.shape == (2, len(first)), "D has another shape than the segments")
    sound = bool(np.isfinite(stored.disturbance).all() and (stored.disturbance >= 0.0).all())
    require(sound, "D has numbers that are no bounds")
    require(len(stored.leaves) == len(first), "leaves and segments differ in number")
    total = sum(len(part) for part in stored.leaves)
    require(total <= LEAVES, f"the file has {total} leaves, more than {LEAVES}")
    require(np.isfinite(stored.edge) and 1e-4 <= stored.edge <= 1.0, "the edge is out of range")
    for part in stored.leaves:
        require(part.ndim == 2 and part.shape[1] == 4 and len(part) > 0, "a segment has no leaves")
        level = part[:, 0]
        require(
            bool(((level >= 0) & (level <= DEPTH)).all()), f"cells are halved over {DEPTH} times"
        )
        near = np.abs(part[:, 1:]) < WIDTH * 2 ** level[:, None]
        require(bool(near.all()), "a cell is out of range")
    knots = case.motion.knots
    for knot in knots[knots < case.duration]:
        place = knot / step
        sound = abs(place - round(place)) < 1e-6 and round(place) in first
        require(bool(sound), f"no segment begins at the reference's point at {knot:g} s")
    case.motion.continuous(case.duration)
    return first, np.append(first[1:], count), count


def _nominal(
    case: Case, cubics: Floats, first: np.ndarray, last: np.ndarray, around: Floats, step: float
) -> Nominal:
    own = case.motion.over((first + last) / 2 * step, (last - first) / 2 * step, 2)
    theta = heading_of(cubics, first, last, 2)
    theta.g[1] = around
    cosine, sine = theta.cosine(), theta.sine()
    kp, kd = (np.repeat(g, (2, 3))[:, None] for g in case.gains)
    back = own["x"] * kp - own["ve"] * kd
    nu = back + own["acceleration"]
    w = own["jerk"] - own["ve"] * kp - back * kd
    apart = own["y"]
    apart = stack([*(apart[i] - apart[j] for i, j in ((2, 0), (3, 1), (2, 0), (3, 1))), apart[4]])
    y, nu, w, relative = (turned(v, cosine, sine) for v in (own["rate"], nu, w, apart))
    return Nominal(y, nu, w, relative[2:])


def _swept(
    case: Case, stored: Stored, nominal: Nominal, radii: tuple[Floats, Floats]
) -> dict[str, Floats]:
    """Largest values over each segment, with D verified; leaves are halved where this needs it."""
    leaves = stored.leaves
    found: dict[str, Floats] = {}
    for attempt in range(ROUNDS + 1):
        largest, shares = _leaves(case, stored, leaves, nominal, radii)
        again = np.array([len(part) > 0 for part in leaves])
        found = {
            name: np.where(again, part, found[name]) if found else part
            for name, part in largest.items()
        }
        total = _disturbance(stored, found)
        bad = ~(total * (1 + 1e-12) < stored.disturbance)
        if not bad.any():
            return found
        if attempt == ROUNDS or not np.isfinite(total).all():
            break
        # A late command counts in the next segment too.
        worst = np.array(bad.any(axis=0))
        worst[:-1] |= worst[1:]
        ends = np.cumsum([len(part) for part in leaves])[:-1]
        leaves = [
            _halved(part, share, stored.disturbance[:, k]) if worst[k] else part[:0]
            for k, (part, share) in enumerate(
                zip(leaves, np.split(shares, ends, axis=1), strict=True)
            )
        ]
    o, k = np.argwhere(bad)[0].tolist()
    came, limit = total[o, k], stored.disturbance[o, k]
    raise Rejection(
        f"segment {k}: the disturbance of output {o} may reach {came:.6g} m/s^2, "
        f"which is not below D, {limit:.6g}"
    )


def _halved(leaves: np.ndarray, shares: Floats, d: Floats) -> np.ndarray:
    """Leaves whose own share of D exceeds a part of it, as their halves."""
    large = (shares > WORST * d[:, None]).any(axis=0) & (leaves[:, 0] < DEPTH)
    part = leaves[large]
    parts = np.repeat(part, 8, axis=0)
    parts[:, 0] += 1
    parts[:, 1:] = 2 * parts[:, 1:] + np.tile(CORNERS, (len(part), 1))
    return np.vstack([leaves[~large], parts])


def _leaves(
    case: Case,
    stored: Stored,
    leaves: list[np.ndarray],
    nominal: Nominal,
    radii: tuple[Floats, Floats],
) -> tuple[dict[str, Floats], Floats]:
    """Largest values over each segment's leaves, and the share of each leaf in d, (2, leaves)."""
    n = len(stored.first)
    owner = np.repeat(np.arange(n), [len(part) for part in leaves])
    # Halves belong to the branch of the file's leaves, which belong to that of the start.
    every = np.vstack([*leaves, *stored.leaves])
    owners = np.append(owner, np.repeat(np.arange(n), [len(part) for part in stored.leaves]))
    cells, source, index = np.unique(every, axis=0, return_index=True, return_inverse=True)
    index = index.ravel()[: len(owner)]
    guess = _guesses(case, nominal)[:, owners[source]]
    size = stored.edge / 2.0 ** cells[:, 0]
    middle = ((cells[:, 1:] + 0.5) * size[:, None]).T
    half = np.tile(size / 2, (3, 1)) * (1 + 1e-12)
    parts = []
    for i in range(0, len(cells), BLOCK):
        own = slice(i, i + BLOCK)
        parts.append(solve(case.rover, middle[:, own], half[:, own], guess[:, own]))
        bad = ~parts[-1].solved
        where = np.round(middle[:, own][:, bad][:, :1].ravel(), 4).tolist()
        require(not bad.any(), f"no unique angles of the arm are found near {where} m")
    angles = joined(parts)
    check_branch(case, stored.edge, cells, angles)
    order = np.argsort(index, kind="stable")
    used = np.unique(index)
    blocks = [used[i : i + BLOCK] for i in range(0, len(used), BLOCK)]
    ends = np.searchsorted(index[order], [*(block[0] for block in blocks), len(cells)])
    largest: dict[str, Floats] = {}
    shares = np.zeros((2, len(owner)))
    given = stored.statement
    for b, block in enumerate(blocks):
        made = table(case.rover, middle[:, block], half[:, block], angles.take(block), case.scales)
        for i in range(ends[b], ends[b + 1], BLOCK):
            jobs = order[i : min(i + BLOCK, ends[b + 1])]
            of = owner[jobs]
            sets = Sets(
                _vector(nominal.y, of),
                _vector(nominal.nu, of),
                _vector(nominal.w, of),
                radii[0][:, of],
                radii[1][:, of],
                stored.disturbance[:, of],
                case.gains,
            )
            found = bounds(made.take(np.searchsorted(block, index[jobs])), sets, case.rover)
            shares[:, jobs] = given.masses * found["weights"].sum(axis=1)
            shares[:, jobs] += (given.period + given.delay) * found["held"]
            for name in ("low", "margin", "pivot"):
                found[name] = -found[name]
            for name, part in found.items():
                part = np.where(np.isnan(part), np.inf, part)
                held = largest.setdefault(name, np.full((*part.shape[:-1], n), -np.inf))
                np.maximum.at(np.moveaxis(held, -1, 0), of, np.moveaxis(part, -1, 0))
    return largest, shares


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


def _disturbance(stored: Stored, found: dict[str, Floats]) -> Floats:
    """Bound of |d| of both outputs over segments, (2, segments)."""
    given = stored.statement
    hold = given.period + given.delay
    late = {}
    for name in ("held", "response_rate", "torque_rate"):
        before = np.concatenate([found[name][..., :1], found[name][..., :-1]], axis=-1)
        late[name] = np.maximum(found[name], before)
    turn = np.einsum("cib,ib->cb", late["response_rate"], late["torque_rate"])
    total = given.masses * found["weights"].sum(axis=1) + hold * late["held"] + hold**2 * turn
    if given.torque_error:
        total = total + np.einsum("cib,i->cb", found["response"], np.array(given.torque_error))
    if given.push:
        total = total + np.array(given.push)[:, None]
    return np.asarray(total * (1 + 1e-12))


def _bounds(case: Case, stored: Stored, found: dict[str, Floats], x: Floats, count: int) -> None:
    """Verify the claimed bounds and that they keep the statement's limits."""
    given = stored.statement
    expected: dict[tuple[str, str], tuple[float, float | None]] = {}
    for i, name in enumerate(case.controls):
        expected["torque", name] = found["torque"][i].max(), given.torques.get(name)
    for i, name in enumerate(case.shape):
        expected["speed", name] = found["speed"][i].max(), given.speeds.get(name)
    for i, joint in enumerate(case.joints):
        name = case.shape[joint]
        low, high = given.angles.get(name, (None, None))
        expected["angle above", name] = found["low"][i].max(), None if low is None else -low
        expected["angle below", name] = found["high"][i].max(), high
    expected["margin", "decoupling"] = found["margin"].max(), -given.margin
    expected["pivot", "of the law"] = found["pivot"].max(), -case.refused_below
    steps = np.full(count, stored.step / 2)
    centre = case.motion.over((np.arange(count) + 0.5) * stored.step, steps, 1)["x"]
    for o, rows in enumerate(ROWS):
        path = np.sqrt((centre[rows].bound ** 2).sum(axis=0)) + x[o]
        name = case.outputs[o]
        expected["corridor", name] = path.max(), given.corridor.get(name)
    require(set(stored.bounds) == set(expected), "bounds of other quantities than the statement's")
    for (kind, name), (own, limit) in expected.items():
        lower = kind in ("angle above", "margin", "pivot")
        claim = -stored.bounds[kind, name] if lower else stored.bounds[kind, name]
        require(bool(own <= claim), f"{kind} {name}: {own:.6g} exceeds the bound {claim:.6g}")
        kept = limit is None or claim <= limit
        require(bool(kept), f"{kind} {name}: the bound {claim:.6g} exceeds the limit {limit}")
