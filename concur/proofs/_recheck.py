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

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from concur.proofs._recheck_apart import Pairs, pairs_of
from concur.proofs._recheck_case import Case
from concur.proofs._recheck_claims import Entry, Names, Stored, claims, confirm
from concur.proofs._recheck_cover import DEPTH, WIDTH, lacking
from concur.proofs._recheck_formula import Formulas, formulas_of
from concur.proofs._recheck_ground import Stand, stand_of
from concur.proofs._recheck_leaves import ROWS, Extra, Inertia
from concur.proofs._recheck_motion import heading_candidate, heading_of, turned, wall
from concur.proofs._recheck_reading import reading_of
from concur.proofs._recheck_smooth import Floats, require, stack
from concur.proofs._recheck_sweep import CLAIMED, Nominal, Sweep
from concur.proofs._recheck_work import spend

LEAVES, STEPS = 1_000_000, 100_000
"""Most leaves, and steps of the grid."""


def verify(case: Case, stored: Stored, progress: Callable[[float], None] | None = None) -> None:
    """Verify a file; return if all is confirmed.

    Parameters
    ----------
    case, stored
        Robot, law and start of the task; content of the file.
    progress : callable, optional
        Called with the share of the work that is done.

    Raises
    ------
    Rejection
        With the first thing that is not confirmed.
    """
    first, last, step = _grid(case, stored)
    statement, motion, count = stored.statement, case.motion, stored.count
    extras = extras_of(case, statement)
    claimed = claims(_names(case), stored, _entries(extras))
    hold = (statement.period + statement.delay) * (1 + 1e-9)
    jumps, short = _jumps(case, first * step, last * step, hold, count)
    spread = np.repeat(stored.disturbance, last - first, axis=1)
    tubes = [
        channel.tube(statement.place[o], statement.speed[o], spread[o], step, short[o])
        for o, channel in enumerate(motion.channels)
    ]
    x, ve = (np.array([tube[i] for tube in tubes]) for i in (0, 1))
    cubics = heading_candidate(motion, case.heading, count, step, case.rover.lead)
    start = (case.heading, float(statement.heading))
    around = wall(motion, cubics, start, ve[0], step, case.rover.lead)
    require(bool(np.isfinite(around).all()), "the heading has no wall")
    radii = [np.maximum.reduceat(part, first, axis=-1) for part in (x, ve, around)]
    # The sets contain the measured state, too.
    room, turn = _room(stored)
    radii = [radii[0] + room[0], radii[1] + room[1], radii[2] + turn]
    nominal = _nominal(case, cubics, first, last, radii[2], step, world_of(extras))
    leaves = [
        np.vstack([part, lacking(stored, k, nominal.relative[:, k : k + 1], radii[0][:, k])])
        for k, part in enumerate(stored.leaves)
    ]
    values = {
        name: np.array([claim.sign * claim.value for claim in claimed[name]])
        for name in CLAIMED
        if name in claimed
    }
    reach = np.searchsorted(last * step, first * step - hold, side="right")
    given = radii[0], radii[1], jumps
    sweep = Sweep(
        case, replace(stored, leaves=leaves), nominal, given, values, extras, reach, progress
    )
    found = sweep.run()
    if "moved" in found:
        inside = bool((found["moved"] < room.reshape(4, -1)).all())
        require(inside, "errors of what the law reads exceed the room of the file")
    confirm(claimed, found | {"corridor": _corridor(case, x, step)})


def extras_of(case: Case, statement: Any) -> list[Extra]:
    """Further values of a statement."""
    found: list[Extra] = [Inertia()]
    if statement.reading is not None:
        joints = [case.shape[joint] for joint in case.joints]
        names = joints, case.shape
        found.append(reading_of(statement.reading, case.rover, case.gains, *names))
    if statement.ground is not None:
        found.append(stand_of(case.robot, case.rover, statement))
    if statement.clearance is not None:
        found.append(pairs_of(case.robot, case.rover, statement.clearance))
    if statement.expressions:
        joints = [case.shape[joint] for joint in case.joints]
        found.append(formulas_of(statement.expressions, joints, case.shape, case.controls))
    return found


def world_of(extras: list[Extra]) -> Floats:
    """Points in the world that the further values need, (k, 3)."""
    own = [extra.world for extra in extras if isinstance(extra, Pairs)]
    return np.vstack([np.zeros((0, 3)), *own])


def _jumps(
    case: Case, begin: Floats, end: Floats, hold: float, count: int
) -> tuple[Floats, Floats]:
    """Jumps of the reference that count in each segment, and their integrals over each step.

    Shapes (2, segments) and (2, steps): torques from before a jump are held for a time.
    """
    times, sizes = case.motion.jumps(case.duration)
    step = case.duration / count
    segments, short = np.zeros((2, len(begin))), np.zeros((2, count))
    if not hold:
        return segments, short
    for t, size in zip(times.tolist(), sizes.T, strict=True):
        segments += np.outer(size, (t < end - 1e-12) & (t + hold >= begin))
        grid = step * np.arange(count)
        part = np.clip(np.minimum(grid + step, t + hold) - np.maximum(grid, t), 0.0, step)
        short += np.outer(size, part * (1 + 1e-9))
    return segments, short


def _room(stored: Stored) -> tuple[Floats, float]:
    """Ways of x and ve that errors of what the law reads have room for, and of the heading."""
    segments, reading = len(stored.first), stored.statement.reading
    if reading is None:
        return np.zeros((2, 2, segments)), 0.0
    room = np.asarray(stored.room, dtype=float)
    sound = room.shape == (2, 2, segments) and np.isfinite(room).all() and (room >= 0.0).all()
    require(bool(sound), "the file has no room for errors of what the law reads")
    return room, float(reading.heading)


def _grid(case: Case, stored: Stored) -> tuple[np.ndarray, np.ndarray, float]:
    """First and last steps of segments and length of a step, bounded before any work."""
    first, count = stored.first, stored.count
    require(not stored.statement.momentum_error, "the statement has entries of other robots")
    require(0 < count < STEPS, f"the file has no steps, or more than {STEPS}")
    step = case.duration / count
    sound = len(first) > 0 and first[0] == 0 and bool((np.diff(first) > 0).all())
    require(sound and int(first[-1]) < count, "segments do not cover the time without a gap")
    stored.require_disturbance(2)
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
        place = round(knot / step)
        sound = abs(place * step - knot) <= 1e-13 * (1 + knot) and place in first
        require(bool(sound), f"no segment begins at the reference's point at {knot:g} s")
    instructions = case.motion.pieces.function.n_instructions()
    spend(1e-3 * count**2 + 30.0 * (count + len(first)) + 1e4 * len(first))
    spend(instructions * (50.0 + 2.0 * (count + len(first))))
    return first, np.append(first[1:], count), step


def _nominal(
    case: Case,
    cubics: Floats,
    first: np.ndarray,
    last: np.ndarray,
    around: Floats,
    step: float,
    world: Floats,
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
    places = []
    for point in world:
        dx, dy = (own["y"][i] * -1.0 + point[i] for i in (0, 1))
        z = 0.0 * dx + point[2]
        from_base = turned(stack([dx, dy, dx, dy, z]), cosine, sine)[2:]
        places.append(from_base + np.array([[case.rover.lead], [0.0], [0.0]]))
    return Nominal(y, nu, w, relative[2:], places)


def _names(case: Case) -> Names:
    joints = [case.shape[joint] for joint in case.joints]
    return Names(case.controls, case.shape, joints, case.outputs, case.refused_below)


def _entries(extras: list[Extra]) -> dict[str, list[Entry]]:
    """Claims of further values by row."""
    kinds: dict[type, str] = {Stand: "ground", Pairs: "apart", Formulas: "formula"}
    return {kinds[type(e)]: e.entries for e in extras if isinstance(e, Stand | Pairs | Formulas)}


def _corridor(case: Case, x: Floats, step: float) -> Floats:
    """Largest distances of the outputs from their references on each step, (2, steps)."""
    count = x.shape[1]
    at = (np.arange(count) + 0.5) * step
    centre = case.motion.over(at, np.full(count, step / 2), 1)["x"]
    paths = [np.sqrt((centre[rows].bound ** 2).sum(axis=0)) for rows in ROWS]
    return np.asarray((np.array(paths) + x) * (1 + 1e-12))
