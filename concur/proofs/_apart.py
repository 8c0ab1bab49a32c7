"""Distances of capsules from obstacles over cells, by directions that separate them.

Two convex sets are at least as far apart as along any direction a of unit length:

    distance >= min_i a.p_i - max_k a.o_k - both radii,   p_i, o_k the ends of both segments.

The direction is that of the nearest points in the middle of the cell. The place of the base
follows from that of its output, y = gamma - x.

**What holds.** Each returned bound is one for every point of the cell.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model
from concur.proofs._wheeled import Robot
from concur.robot import Clearance


class Apart:
    """Graphs of the distances of a wheeled robot.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    clearance : Clearance
        Capsules and obstacles.
    """

    def __init__(self, robot: Robot, clearance: Clearance) -> None:
        graph, mechanism = robot.graph, robot.servo.model.robot
        self.pairs = clearance.pairs
        home = mechanism.pose(graph.q, mechanism.base.name)
        columns, self._of = list[ca.SX](), list[slice]()
        for capsule, _ in self.pairs:
            pose = mechanism.pose(graph.q, capsule.body)
            self._of.append(slice(len(columns), len(columns) + len(capsule.ends)))
            for end in capsule.ends:
                place = pose[:3, :3] @ ca.DM(end) + pose[:3, 3] - home[:3, 3]
                columns.append(home[:3, :3].T @ place)
        self._ends = robot.walker([graph.phi], [robot.of_arm(ca.horzcat(*columns), [])])
        self._lead = np.array([*robot.servo.outputs[0].point[:2], 0.0])

    def of_arm(self, phi: list[Model]) -> dict[str, Floats]:
        """Bounds of the pairs, (k, b); infinite for obstacles in the world."""
        near, found = self._ends(phi)[0], []
        for (capsule, obstacle), own in zip(self.pairs, self._of, strict=True):
            room = capsule.radius + obstacle.radius
            on_base = obstacle.frame == "base"
            far = list(obstacle.ends) if on_base else []
            found.append(_overlap(list(near[:, own].T), far, room) if on_base else [np.inf])
        b = max(map(len, found))
        return {"apart": np.array([np.broadcast_to(row, b) for row in found])}

    def rows(self, phi: list[Model], own: dict[str, Floats], places: list[list[Model]]) -> Floats:
        """Bounds of all distances times -1, (k, b).

        `places` are the ends of the obstacles in the world in axes of the base, from its output.
        """
        found = list(own["apart"])
        if places:
            near, rest = self._ends(phi)[0], iter(places)
            for k, (capsule, obstacle) in enumerate(self.pairs):
                if obstacle.frame == "world":
                    far = [next(rest) + self._lead for _ in obstacle.ends]
                    room = capsule.radius + obstacle.radius
                    found[k] = _overlap(list(near[:, self._of[k]].T), far, room)
        return np.array([np.broadcast_to(row, phi[0].c.size) for row in found])


def _overlap(near: list[np.ndarray], far: list[np.ndarray], room: float) -> Floats:
    """Upper bound of `room` less the distance of two segments, for each column.

    Ends are vectors (3,) of models, those of the second one may be numbers.
    """
    parts = [
        np.array(np.broadcast_arrays(*[m.c if isinstance(m, Model) else [m] for m in end]))
        for end in (*near, *far)
    ]
    middles = list(np.broadcast_arrays(*parts))
    way = _direction(middles[: len(near)], middles[len(near) :])

    def along(end: np.ndarray) -> Any:
        return sum(m * own for m, own in zip(end, way, strict=True))

    ahead, behind = ([along(end) for end in part] for part in (near, far))
    apart = [a - b for a in ahead for b in behind]
    # The direction has unit length up to rounding.
    rows = [room - m.c + m.reach + 1e-12 * np.abs(m.c) for m in apart]
    return np.asarray(np.max(rows, axis=0))


def _direction(near: list[Floats], far: list[Floats]) -> Floats:
    """Unit vector (3, b) between the nearest points of segments, from the second to the first.

    Of the nearest points of both lines, each moved into its segment; any unit vector is allowed.
    """
    (a, b), (c, d) = ((part[0], part[-1]) for part in (near, far))
    u, v, w = b - a, d - c, a - c

    def dot(x: Floats, y: Floats) -> Floats:
        return np.asarray((x * y).sum(axis=0))

    uu, vv, uv, uw, vw = dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w)
    with np.errstate(all="ignore"):
        first = np.clip(np.nan_to_num((uv * vw - vv * uw) / (uu * vv - uv**2)), 0.0, 1.0)
        second = np.clip(np.nan_to_num((uv * first + vw) / vv), 0.0, 1.0)
        first = np.clip(np.nan_to_num((uv * second - uw) / uu), 0.0, 1.0)
        way = w + first * u - second * v
        size = np.sqrt(dot(way, way))
        return np.where(size > 1e-9, way / size, np.array([[0.0], [0.0], [1.0]]))
