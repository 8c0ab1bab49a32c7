"""First motions around obstacles: beside each one in the way, left, right, above or below it.

A motion through all obstacles shows those in the way. Corners of a detour are places that the
middle of a capsule passes, at instants that share the time by the length of the detour: one beside
a ball or a thin box, and two beside a box that is long along the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from concur.planning._graphs import STEPS
from concur.planning._program import Search
from concur.planning._transcription import Path
from concur.robot import Capsule, Obstacle

WAY_PROGRAMS = 20
"""Largest number of programs that find a way around obstacles."""

PASSED = 0.1
"""Distance of a way from an obstacle, beside the least one, m."""

TURNS = 4
"""Sides on which obstacles are passed: left, right, above and below."""

APART = 2
"""Least number of points between places that a way passes, and to its ends."""

Floats = NDArray[np.float64]


def ways_around(search: Search, first: Floats) -> Iterator[Floats]:
    """Unknowns of motions that pass the obstacles in the way of a motion on one side, then others.

    The one through them comes after those to the left and to the right.
    """
    clearance, form = search.form.clearance, search.form
    if clearance is None:
        return
    rows = [k for k, fact in enumerate(form.facts) if fact[0].startswith("distance of")]
    shares = search.shares.copy()
    shares[rows] = np.inf
    relaxed = replace(search, shares=shares)
    free = relaxed.solve(first, WAY_PROGRAMS)
    worst = dict[str, tuple[float, int, int, Obstacle]]()
    for row, (capsule, obstacle) in zip(rows, clearance.pairs, strict=False):
        k = int(np.argmax(free.path.g[:, row]))
        over = float(free.path.g[k, row]) - 1.0
        if obstacle.frame == "world" and over > worst.get(obstacle.name, (0.0,))[0]:
            worst[obstacle.name] = over, k, clearance.capsules.index(capsule), obstacle
    met = sorted((k, own, obstacle) for _, k, own, obstacle in worst.values())
    for turn in range(TURNS if met else 0):
        if turn == 2:
            yield free.unknowns
        places = [
            (own, place)
            for k, own, obstacle in met
            for place in _beside(search, free.path, k, own, obstacle, turn)
        ]
        if places:
            ways = _timed(search, free.path, places)
            yield replace(relaxed, ways=ways).solve(free.unknowns, WAY_PROGRAMS).unknowns


def _beside(
    search: Search, path: Path, k: int, own: int, obstacle: Obstacle, turn: int
) -> list[Floats]:
    """Corners of a detour of a capsule beside an obstacle that it passes at a point of a path."""
    form = search.form
    assert form.clearance is not None
    last = len(path.x) - 1
    k = min(max(k, APART), last - APART)
    at, behind, ahead = (form.middle(path, j, own) for j in (k, k - APART, k + APART))
    a, b = np.array(obstacle.start), np.array(obstacle.end)
    along, way = b - a, ahead - behind
    share = np.clip(along @ (at - a) / max(along @ along, 1e-12), 0.0, 1.0)
    left = np.cross([0.0, 0.0, 1.0], way)
    side = left if turn < 2 else np.cross(way, left)
    if along @ along > 0.0:
        side = side - along * (along @ side) / (along @ along)
    size, length = float(np.linalg.norm(side)), float(np.linalg.norm(way))
    if size < 1e-3 * length or size < 1e-9:
        return []
    room = room_of(form.clearance.capsules[own], obstacle)
    corner = a + share * along + (-1.0) ** turn * (obstacle.extent(side) + room) / size * side
    if obstacle.box is None or obstacle.extent(way) < room:
        return [corner]
    reach = obstacle.extent(way) / length * way
    return [corner - reach, corner + reach]


def room_of(capsule: Capsule, obstacle: Obstacle) -> float:
    """Distance of the middle of a capsule from an obstacle that it passes, m."""
    half = 0.5 * float(np.linalg.norm(np.subtract(capsule.end, capsule.start)))
    return capsule.radius + obstacle.distance + 0.5 * half + PASSED


def _timed(
    search: Search, path: Path, places: list[tuple[int, Floats]]
) -> tuple[tuple[int, int, Floats], ...]:
    """Points at which a capsule passes its places, by the length of the way to them."""
    found = list[tuple[int, int, Floats]]()
    for own in {own for own, _ in places}:
        corners = [place for other, place in places if other == own]
        ends = [search.form.middle(path, k, own) for k in (0, len(path.x) - 1)]
        nodes = np.array([ends[0], *corners, ends[1]])
        lengths = np.cumsum(np.linalg.norm(np.diff(nodes, axis=0), axis=1))
        shares = lengths[:-1] / max(float(lengths[-1]), 1e-9)
        for j, (share, place) in enumerate(zip(shares, corners, strict=True)):
            least, most = APART * (j + 1), STEPS - APART * (len(corners) - j)
            found.append((int(np.clip(round(share * STEPS), least, most)), own, place))
    return tuple(found)
