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
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Rover, forward, rover_of, solve
from concur.proofs._recheck_leaves import ROWS, Sets, Vector, bounds, table
from concur.proofs._recheck_motion import (
    Channel,
    Motion,
    cells_reached,
    heading_candidate,
    heading_of,
    turned,
    wall,
)
from concur.proofs._recheck_smooth import Floats, Rejection, Smooth, constant, require, stack

LEAVES, STEPS, CELLS = 1_000_000, 100_000, 200_000
"""Most leaves, steps of the grid, and cells that one segment may reach."""

DEPTH, WIDTH = 6, 4096
"""Most halvings of a cell, and largest index of a cell without them."""

PARTS = (32, 15)
"""Parts of a segment and of its headings in the test which cells it reaches."""

BLOCK = 128
"""Cells computed side by side."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a file, as arrays.

    Parameters
    ----------
    step, edge : float
        Step of the grid (s); edge of the cells without halving (m).
    first : numpy.ndarray
        First step of each segment.
    disturbance : numpy.ndarray
        D of base and hand, (2, segments).
    leaves : list of numpy.ndarray
        Level and place of the leaves of each segment, (k, 4).
    bounds : dict
        Claimed value by kind and name.
    statement : Statement
        What is claimed.
    """

    step: float
    edge: float
    first: np.ndarray
    disturbance: Floats
    leaves: list[np.ndarray]
    bounds: dict[tuple[str, str], float]
    statement: Any


@dataclass(frozen=True, eq=False)
class Case:
    """Robot, law and declared start of a task."""

    rover: Rover
    gains: Floats
    motion: Motion
    heading: float
    angles: Floats
    duration: float
    scales: tuple[Floats, Floats]
    refused_below: float
    controls: list[str]
    shape: list[str]
    joints: list[int]
    outputs: list[str]


def case_of(servo: Any, reference: Any, duration: float, q0: Floats, s0: Floats) -> Case:
    """Numbers of a task; rejects what the checker does not cover."""
    model = servo.model
    robot = model.robot
    rover = rover_of(robot, servo.outputs)
    options = (servo.integral, servo.torque_limits, servo.damping_threshold, servo.redundancy)
    plain = not servo.use_measured_velocity and all(option is None for option in options)
    require(plain, "law: the checker covers a plain servo only")
    gains = np.empty((2, 2))
    for i, matrix in enumerate((servo.stiffness, servo.damping)):
        own = np.linalg.solve(np.asarray(servo.inertia), np.asarray(matrix))
        for o, rows in enumerate(ROWS):
            gains[i, o] = own[rows.start, rows.start]
        diagonal = np.repeat(gains[i], (2, 3))
        same = np.abs(own - np.diag(diagonal)).max() <= 1e-14 * np.abs(own).max()
        require(bool(same), "law: the checker covers one gain for each output")
    channels = [Channel(*gains[:, o]) for o in range(2)]
    names = [body.name for body in robot.bodies[1:]]
    require(list(model.shape_names) == names == list(model.control_names), "law: other motors")
    joints = [names.index(name) for name in rover.names[3:]]
    q0, s0 = np.asarray(q0, dtype=float), np.asarray(s0, dtype=float)
    angles = q0[3:][joints]
    theta = float(q0[2])
    at = forward(rover, constant(angles[:, None], 3))
    # From the axle, in axes of the base.
    rates = np.linalg.solve(rover.speeds, s0)
    hand = at.hand.c[:, 0]
    speed = np.array([rates[0], 0, 0]) + rates[1] * np.array([-hand[1], hand[0], 0])
    speed = speed + at.jacobian.c[:, :, 0] @ rates[2:]
    c, s = np.cos(theta), np.sin(theta)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    axle = np.array([*q0[:2], 0.0]) - turn @ [rover.ahead, 0, 0]
    lead = np.array([rover.lead, 0, 0])
    place = np.concatenate([(axle + turn @ lead)[:2], axle + turn @ hand])
    moving = np.concatenate([(turn @ [rates[0], rover.lead * rates[1], 0])[:2], turn @ speed])
    pieces = reference.pieces()
    require(pieces is not None, "reference: it has no formula")
    rows = [row[0] for row in pieces.rows(np.zeros(1))]
    pose, twist = (np.asarray(p).ravel() for p in pieces.function(0.0, *rows)[:2])
    motion = Motion(reference, channels, np.array([pose - place, moving - twist]))
    return Case(
        rover,
        gains,
        motion,
        theta,
        angles,
        float(duration),
        tuple(np.asarray(part, dtype=float) for part in servo.scales),  # type: ignore[arg-type]
        float(servo.refused_below),
        list(model.control_names),
        names,
        joints,
        [output.name for output in servo.outputs],
    )


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
        _cover(stored, k, nominal, radii[0][:, k])
    found = _leaves(case, stored, nominal, (radii[0], radii[1]))
    _inclusion(stored, found)
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
        require(bool(((level >= 0) & (level <= DEPTH)).all()), f"cells are halved over {DEPTH} times")
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


def _keys(cells: np.ndarray) -> np.ndarray:
    """One integer for each level and place."""
    size = np.int64(2 * WIDTH * 2**DEPTH)
    key = cells[:, 0].astype(np.int64)
    for i in (1, 2, 3):
        key = key * size + cells[:, i] + size // 2
    return key


def _cover(stored: Stored, k: int, nominal: Nominal, x: Floats) -> None:
    """Verify that the leaves of a segment cover every relative position that it may have."""
    relative, leaves, edge = nominal.relative[:, k : k + 1], stored.leaves[k], stored.edge
    known = np.unique(_keys(leaves))
    reach = relative.reach[:, 0] + np.array([x.sum(), x.sum(), x[1]]) + 1e-9
    low, high = (
        np.floor((relative.c[:, 0] + sign * reach) / edge).astype(int) for sign in (-1, 1)
    )
    require(bool(np.isfinite(reach).all()), f"segment {k} has no bounded positions")
    require(int(np.prod(high - low + 1.0)) <= CELLS, f"segment {k} reaches more than {CELLS} cells")
    axes = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    cells = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    for level in range(DEPTH + 1):
        size = edge / 2**level
        own = np.column_stack([np.full(len(cells), level), cells])
        cells = cells[~np.isin(_keys(own), known)]
        sizes = np.full(len(cells), size)
        cells = cells[cells_reached(relative, x, cells * size, sizes, PARTS)]
        if not len(cells):
            return
        deeper = bool((leaves[:, 0] > level).any())
        require(
            deeper and 8 * len(cells) <= CELLS,
            f"segment {k} may reach {np.round((cells[0] + 0.5) * size, 4).tolist()} m, "
            "which no leaf covers",
        )
        cells = (2 * cells[:, None] + _CORNERS[None]).reshape(-1, 3)


_CORNERS = np.array([[i, j, l] for i in (0, 1) for j in (0, 1) for l in (0, 1)])


def _leaves(
    case: Case, stored: Stored, nominal: Nominal, radii: tuple[Floats, Floats]
) -> dict[str, Floats]:
    """Largest values over each segment's leaves."""
    n = len(stored.first)
    owner = np.repeat(np.arange(n), [len(part) for part in stored.leaves])
    cells, source, index = np.unique(
        np.vstack(stored.leaves), axis=0, return_index=True, return_inverse=True
    )
    index = index.ravel()
    guess = _guesses(case, nominal)[:, owner[source]]
    size = stored.edge / 2.0 ** cells[:, 0]
    middle, half = ((cells[:, 1:] + 0.5) * size[:, None]).T, np.tile(size / 2, (3, 1)) * (1 + 1e-12)
    blocks, parts = [slice(i, i + BLOCK) for i in range(0, len(cells), BLOCK)], []
    for block in blocks:
        parts.append(solve(case.rover, middle[:, block], half[:, block], guess[:, block]))
        bad = ~parts[-1].solved
        where = np.round(middle[:, block][:, bad][:, :1].ravel(), 4).tolist()
        require(not bad.any(), f"no unique angles of the arm are found near {where} m")
    _branch(case, stored, cells, parts, nominal)
    order = np.argsort(index, kind="stable")
    ends = np.searchsorted(index[order], np.arange(0, len(cells) + BLOCK, BLOCK))
    largest: dict[str, Floats] = {}
    for b, block in enumerate(blocks):
        made = table(case.rover, middle[:, block], half[:, block], parts[b], case.scales)
        for i in range(ends[b], ends[b + 1], BLOCK):
            jobs = order[i : min(i + BLOCK, ends[b + 1])]
            own = owner[jobs]
            sets = Sets(
                *(_vector(m, own) for m in (nominal.y, nominal.nu, nominal.w)),
                radii[0][:, own],
                radii[1][:, own],
                stored.disturbance[:, own],
                case.gains,
            )
            found = bounds(made.take(index[jobs] - block.start), sets, case.rover)
            for name in ("low", "margin", "pivot"):
                found[name] = -found[name]
            for name, part in found.items():
                part = np.where(np.isnan(part), np.inf, part)
                held = largest.setdefault(name, np.full((*part.shape[:-1], n), -np.inf))
                np.maximum.at(np.moveaxis(held, -1, 0), own, np.moveaxis(part, -1, 0))
    return largest


def _vector(m: Smooth, own: np.ndarray) -> Vector:
    return Vector(m.c[:, own], m.g[..., own], (np.abs(m.h).sum(axis=0) + m.r[0])[:, own] * (1 + 1e-12))


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


def _branch(
    case: Case, stored: Stored, cells: np.ndarray, parts: list[Any], nominal: Nominal
) -> None:
    """Verify that touching cells have the same root, and the start's cell that of the start.

    Two cells of different or equal size that touch have a corner of the smaller one in common, and
    roots that agree in one common point agree in all.
    """
    polynomial = [np.concatenate([getattr(p.phi, n) for p in parts], axis=-1) for n in "cgh"]
    radius, unique = (np.concatenate([getattr(p, n) for p in parts], axis=-1) for n in ("radius", "unique"))
    keys = _keys(cells)
    order = np.argsort(keys)

    def at(k: np.ndarray, place: Floats) -> Floats:
        """Candidate of the angles in cells k at positions (3, n)."""
        size = stored.edge / 2.0 ** cells[k, 0]
        xi = 2 * (place / size - cells[k, 1:].T) - 1
        c, g, h = (part[..., k] for part in polynomial)
        pairs = [(i, j) for i in range(3) for j in range(i, 3)]
        square = sum(h[m] * xi[i] * xi[j] for m, (i, j) in enumerate(pairs))
        return np.asarray(c + np.einsum("iab,ib->ab", g, xi) + square)

    def lookup(level: int, places: np.ndarray) -> np.ndarray:
        wanted = _keys(np.column_stack([np.full(len(places), level), places]))
        spot = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where(keys[order[spot]] == wanted, order[spot], -1)

    own = np.arange(len(cells))
    for corner in _CORNERS:
        fine = (cells[:, 1:] + corner) * 2 ** (DEPTH - cells[:, :1])
        place = (fine * (stored.edge / 2**DEPTH)).T
        mine = at(own, place)
        for level in np.unique(cells[:, 0]).tolist():
            for side in _CORNERS:
                other = lookup(level, (fine - side) // 2 ** (DEPTH - level))
                k = np.flatnonzero(other >= 0)
                apart = np.abs(mine[:, k] - at(other[k], place[:, k])) + radius[:, k] + 1e-9
                same = (apart <= unique[other[k]]).all(axis=0)
                require(bool(same.all()), "touching cells may be on two branches of the arm")
    start = forward(case.rover, constant(case.angles[:, None], 0)).hand.c[:, 0]
    start = start - np.array([case.rover.lead, 0.0, 0.0])
    for level in np.unique(cells[:, 0]).tolist():
        home = lookup(level, np.floor(start / (stored.edge / 2**level)).astype(int)[None])
        if home[0] >= 0:
            away = np.abs(at(home, start[:, None])[:, 0] - case.angles).max() + 1e-9
            require(bool(away <= unique[home[0]]), "the start is on another branch of the arm")
            return
    raise Rejection("the start is in no leaf")


def _inclusion(stored: Stored, found: dict[str, Floats]) -> None:
    """Verify that the disturbance is strictly below D in each segment."""
    given = stored.statement
    hold = given.period + given.delay
    late = {
        name: np.maximum(found[name], np.concatenate([found[name][..., :1], found[name][..., :-1]], -1))
        for name in ("held", "response_rate", "torque_rate")
    }
    turned_ = np.einsum("cib,ib->cb", late["response_rate"], late["torque_rate"])
    total = given.masses * found["weights"].sum(axis=1) + hold * late["held"] + hold**2 * turned_
    if given.torque_error:
        total = total + np.einsum("cib,i->cb", found["response"], np.array(given.torque_error))
    if given.push:
        total = total + np.array(given.push)[:, None]
    bad = ~(total * (1 + 1e-12) < stored.disturbance)
    if bad.any():
        o, k = np.argwhere(bad)[0].tolist()
        came, limit = total[o, k], stored.disturbance[o, k]
        raise Rejection(
            f"segment {k}: the disturbance of output {o} may reach {came:.6g} m/s^2, "
            f"which is not below D, {limit:.6g}"
        )


def _bounds(
    case: Case, stored: Stored, found: dict[str, Floats], x: Floats, count: int
) -> None:
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
