"""Distances of a rover's capsules from obstacles over leaves, for the checker of proofs.

Along a unit direction a, two segments are apart by at least min a.p_i - max a.o_k over their ends.
The direction is that between nearest points in the middle of the leaf.

**What holds.** Each bound is one for every point of the leaf, all times and headings of its segment
and all places of the base within its radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Forces, Rover
from concur.proofs._recheck_leaves import Entry, Sets, Table, Tensor, tensor
from concur.proofs._recheck_smooth import Floats, Smooth, constant, product, require

SAMPLES, TURNS = 9, 30
"""Points of a segment for a first pair of near ones, and projections from there."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of capsules and obstacles.

    Parameters
    ----------
    rover : Rover
        Numbers of the robot.
    entries : list of tuple
        The quantities.
    near : list of tuple
        Of each pair the number of the capsule's body, and both ends in the frame of that body.
    far : list of numpy.ndarray or slice
        Ends of the obstacle on the base, from the axle, (2, 3), or their places among those in the
        world.
    room : list of float
        Sum of both radii (m).
    world : numpy.ndarray
        Points in the world, (k, 3).
    """

    rover: Rover
    entries: list[Entry]
    near: list[tuple[int, Floats]]
    far: list[Floats | slice]
    room: list[float]
    world: Floats

    spatial = False

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """Ends of all capsules in axes of the base from the axle."""
        parts, cells, n = dict[str, Tensor](), place.c.shape[-1], len(place.g)
        for k, (body, ends) in enumerate(self.near):
            for i, end in enumerate(ends):
                if body < 0:
                    at = constant(np.repeat(end[:, None], cells, axis=1), n)
                else:
                    at = f.chain.origins[body] + product("ijb,j->ib", f.chain.turns[body], end)
                parts[f"P{k}{i}"] = tensor(at)
        return parts, {}

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """Bounds of all distances times -1, (k, b), and the parts that halves reduce."""
        found, loose = [], []
        for k, far in enumerate(self.far):
            near = [t.parts[f"P{k}{i}"] for i in (0, 1)]
            if isinstance(far, slice):
                others = sets.places[far]
                middles = [other.c for other in others]
            else:
                others = None
                middles = [np.repeat(end[:, None], sets.y.c.shape[-1], axis=1) for end in far]
            way = _way([part.c for part in near], middles)
            least, rest = [], []
            for part in near:
                ahead = (way * part.c).sum(axis=0) - np.abs((way * part.g).sum(axis=1)).sum(axis=0)
                more = (np.abs(way) * part.rest).sum(axis=0)
                least.append(ahead - more)
                rest.append(more)
            most = []
            for i, middle in enumerate(middles):
                behind = (way * middle).sum(axis=0)
                if others is not None:
                    own = others[i]
                    behind = behind + np.abs((way * own.lines).sum(axis=1)).sum(axis=0)
                    behind = behind + (np.abs(way) * own.rest).sum(axis=0)
                    behind = behind + np.hypot(way[0], way[1]) * sets.x[0]
                most.append(behind)
            apart = np.min(least, axis=0) - np.max(most, axis=0)
            size = np.abs(np.array(middles)).sum(axis=(0, 1)) + 1.0
            found.append(self.room[k] - apart + 1e-12 * size)
            loose.append(np.max(rest, axis=0))
        return {"apart": np.array(found), "apart_rest": np.array(loose)}


def pairs_of(robot: Any, rover: Rover, clearance: Any) -> Pairs:
    """Pairs of a statement; rejects capsules on bodies whose place depends on more than the arm."""
    bodies = dict.fromkeys(rover.names[:3], -1)
    bodies |= {name: k for k, name in enumerate(rover.names[3:])}
    places = {b.name: np.array(b.placement.translation) for b in robot.bodies}
    names = [capsule.name for capsule in clearance.capsules]
    sound = len(set(names)) == len(names) > 0
    obstacles = [obstacle.name for obstacle in clearance.obstacles]
    require(sound and len(set(obstacles)) == len(obstacles) > 0, "clearance: names are not unique")
    made = Pairs(rover, [], [], [], [], np.zeros((0, 3)))
    points = list[Floats]()
    for obstacle in clearance.obstacles:
        chosen = names if obstacle.capsules is None else list(obstacle.capsules)
        require(set(chosen) <= set(names), "clearance: an unknown capsule")
        require(obstacle.frame in ("world", "base"), "clearance: an unknown frame")
        for capsule in clearance.capsules:
            if capsule.name not in chosen:
                continue
            require(capsule.body in bodies, f"clearance: a capsule on `{capsule.body}`")
            body = bodies[capsule.body]
            shift = np.array([rover.ahead, 0.0, 0.0])
            ends = np.array([capsule.start, capsule.end], dtype=float)
            if body < 0:
                ends = ends + places[capsule.body]
                on_axle = not np.any([capsule.start[::2], capsule.end[::2]])
                still = capsule.body == rover.names[0] or on_axle
                require(bool(still), f"clearance: `{capsule.name}` turns with a wheel")
            made.near.append((body, ends + shift if body < 0 else ends))
            other = np.array([obstacle.start, obstacle.end], dtype=float)
            if obstacle.frame == "base":
                made.far.append(other + shift)
            else:
                made.far.append(slice(2 * len(points), 2 * len(points) + 2))
                points.append(other)
            require(min(capsule.radius, obstacle.radius) >= 0.0, "clearance: a negative radius")
            made.room.append(float(capsule.radius + obstacle.radius))
            name = f"{capsule.name} from {obstacle.name}"
            made.entries.append(("clearance", name, "m", -1.0, float(obstacle.distance)))
    return Pairs(
        rover, made.entries, made.near, made.far, made.room, np.vstack([made.world, *points])
    )


def _way(near: list[Floats], far: list[Floats]) -> Floats:
    """Unit direction (3, b) from the second segment to the first, by alternate projections."""
    shares = np.linspace(0.0, 1.0, SAMPLES)
    first, second = (
        part[0][:, None] + (part[1] - part[0])[:, None] * shares[None, :, None]
        for part in (near, far)
    )
    apart = np.sqrt(((first[:, :, None] - second[:, None]) ** 2).sum(axis=0))
    best = apart.reshape(-1, apart.shape[-1]).argmin(axis=0)
    cells = np.arange(apart.shape[-1])
    at, there = first[:, best // SAMPLES, cells], second[:, best % SAMPLES, cells]
    for _ in range(TURNS):
        at, there = _onto(near, there), _onto(far, at)
    way = at - there
    length = np.sqrt((way**2).sum(axis=0))
    up = np.array([[0.0], [0.0], [1.0]])
    return np.asarray(np.where(length > 1e-9, way / np.maximum(length, 1e-12), up))


def _onto(ends: list[Floats], point: Floats) -> Floats:
    """Nearest points of segments to points."""
    a, way = ends[0], ends[1] - ends[0]
    square = np.maximum((way**2).sum(axis=0), 1e-30)
    share = np.clip(((point - a) * way).sum(axis=0) / square, 0.0, 1.0)
    return np.asarray(a + share * way)
