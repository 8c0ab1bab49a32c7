"""Distances that a plan keeps: from obstacles, and of a robot's bodies from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import OutputError
from concur.robot import (
    Capsule,
    Clearance,
    Mechanism,
    Obstacle,
    Shape,
    box_distance,
    segment_distance,
)

ROUND, BOX = 7, 19
"""Numbers of a sphere or capsule: ends and radius; of a box half lengths and axes too."""


def capsules_of(robot: Mechanism) -> tuple[Capsule, ...]:
    """Capsules around the shapes of the bodies; meshes, of unknown size, have none."""
    found = []
    for body in robot.bodies:
        shapes = [shape for shape in body.shape if shape.kind != "mesh"]
        for k, shape in enumerate(shapes):
            name = f"{body.name} {k + 1}" if len(shapes) > 1 else body.name
            found.append(Capsule(name, *_around(shape), body.name))
    return tuple(found)


def _around(shape: Shape) -> tuple[Any, Any, float]:
    """Ends and radius of a capsule that contains a shape."""
    if shape.capsule is not None:
        return shape.capsule
    size, half = np.array(shape.size), np.zeros(3)
    if shape.kind == "cylinder":
        half[2], radius = size[1] / 2.0, float(size[0])
    else:
        along = int(np.argmax(size))
        half[along] = size[along] / 2.0
        radius = float(np.linalg.norm(np.delete(size, along)) / 2.0)
    turn, middle = shape.placement.rotation_matrix, np.array(shape.placement.translation)
    return tuple(middle - turn @ half), tuple(middle + turn @ half), radius


def clearance_of(
    robot: Mechanism, given: Clearance | Sequence[Obstacle], where: str
) -> Clearance | None:
    """Pairs of capsules and obstacles, those around the shapes by default."""
    if isinstance(given, Clearance):
        for capsule in given.capsules:
            robot.index(capsule.body)
        return given
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not listed or not all(isinstance(one, Obstacle) for one in given):
        raise OutputError(
            f"{where}, `obstacles`",
            expected="a list of concur.proofs.Obstacle, or a concur.proofs.Clearance",
            came=f"{given!r:.40}",
            cure="Leave it out for none.",
        )
    if not given:
        return None
    capsules = capsules_of(robot)
    if not capsules:
        raise OutputError(
            f"{where}, `obstacles`",
            expected="a robot whose bodies have shapes, or capsules on its bodies",
            came="neither",
            cure="Give a `concur.proofs.Clearance` of capsules and obstacles; in a task add tables "
            "[[plan.capsule]].",
        )
    return Clearance(capsules, tuple(given))


def check_apart(
    robot: Mechanism, clearance: Clearance | None, apart: float | None, where: str
) -> None:
    """Reject a distance of bodies from each other where fewer than two have capsules."""
    own = capsules_of(robot) if clearance is None else clearance.capsules
    bodies = sorted({made.body for made in own})
    if apart is not None and len(bodies) < 2:
        raise OutputError(
            f"{where}, `apart`",
            expected="two bodies or more with shapes, or capsules on them; meshes do not count",
            came=f"one, `{bodies[0]}`" if bodies else "a robot without shapes",
            cure="Add shapes to the bodies, or give a `concur.proofs.Clearance`; in a task add "
            "tables [[plan.capsule]].",
        )


@dataclass(frozen=True)
class Pairs:
    """Which pairs keep a distance: capsules, kinds of obstacles, and what their rows are called.

    An obstacle has a frame, and is a box or not. A pair is a capsule with an obstacle, or with
    another capsule: numbers of both in their lists.
    """

    capsules: tuple[Capsule, ...] = ()
    frames: tuple[str, ...] = ()
    boxes: tuple[bool, ...] = ()
    obstacles: tuple[tuple[int, int], ...] = ()
    between: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of numbers of the obstacles."""
        return sum(BOX if box else ROUND for box in self.boxes)


def pairs_of(robot: Mechanism, clearance: Clearance | None, apart: float | None) -> Pairs:
    """Pairs of a clearance; with `apart` all pairs of the robot's own bodies too."""
    if clearance is None and apart is None:
        return Pairs()
    capsules = capsules_of(robot) if clearance is None else clearance.capsules
    obstacles = () if clearance is None else clearance.obstacles
    at = {made.name: k for k, made in enumerate(capsules)}
    others = {made.name: k for k, made in enumerate(obstacles)}
    first = [] if clearance is None else [(at[a.name], others[b.name]) for a, b in clearance.pairs]
    given = () if clearance is None else clearance.between
    second = [(at[a], at[b]) for a, b in given]
    if apart is not None:
        own = combinations(range(len(capsules)), 2)
        second += [(a, b) for a, b in own if capsules[a].body != capsules[b].body]
    words = [(capsules[a].name, obstacles[b].name) for a, b in first]
    words += [(capsules[a].name, capsules[b].name) for a, b in second]
    return Pairs(
        tuple(capsules),
        tuple(made.frame for made in obstacles),
        tuple(made.box is not None for made in obstacles),
        tuple(first),
        tuple(second),
        tuple(f"distance of {a} from {b}" for a, b in words),
    )


def numbers_of(clearance: Clearance | None) -> np.ndarray:
    """Ends and radius of each obstacle in a row; of a box then half lengths and axes."""
    found = list[float]()
    for made in () if clearance is None else clearance.obstacles:
        found += [*made.start, *made.end, made.radius]
        if made.box is not None:
            found += [*(0.5 * np.array(made.box)).tolist(), *made.turn.T.ravel().tolist()]
    return np.array(found)


def leasts_of(clearance: Clearance | None, apart: float | None, now: np.ndarray) -> np.ndarray:
    """Least distance of each pair; none (-inf) for own bodies that are nearer at the start."""
    given = [] if clearance is None else [*clearance.least.values()]
    found = np.full(len(now), -np.inf if apart is None else float(apart))
    found[: len(given)] = given
    own = np.arange(len(now)) >= len(given)
    return np.where(own & (now <= found), -np.inf, found)


def distances(robot: Mechanism, q: Any, pairs: Pairs, numbers: Any) -> Any:
    """Distances of pairs over SX, shape (pairs,)."""

    def placed(body: str, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        pose = robot.pose(q, body)
        return tuple(pose[:3, :3] @ end + pose[:3, 3] for end in ends)

    own = [placed(made.body, (ca.DM(made.start), ca.DM(made.end))) for made in pairs.capsules]
    counts = [BOX if box else ROUND for box in pairs.boxes]
    given = ca.vertsplit(numbers, [0, *np.cumsum(counts).tolist()])

    def apart(ends: tuple[Any, Any], k: int) -> Any:
        on_base, has = pairs.frames[k] == "base", given[k]
        there = has[:3], has[3:6]
        if on_base:
            there = placed(robot.base.name, there)
        if not pairs.boxes[k]:
            return segment_distance(*ends, *there) - has[6]
        turn = ca.reshape(has[10:], 3, 3)
        if on_base:
            turn = robot.pose(q, robot.base.name)[:3, :3] @ turn
        return box_distance(*ends, there[0], turn, has[7:10]) - has[6]

    found = [apart(own[a], b) - pairs.capsules[a].radius for a, b in pairs.obstacles]
    found += [
        segment_distance(*own[a], *own[b]) - pairs.capsules[a].radius - pairs.capsules[b].radius
        for a, b in pairs.between
    ]
    return ca.vertcat(ca.SX(0, 1), *found)


def middles(robot: Mechanism, q: Any, capsules: Sequence[Capsule]) -> Any:
    """Middles of capsules over SX, shape (3 n,)."""
    found = [ca.SX(0, 1)]
    for made in capsules:
        pose, middle = robot.pose(q, made.body), (np.array(made.start) + np.array(made.end)) / 2.0
        found.append(pose[:3, :3] @ ca.DM(middle) + pose[:3, 3])
    return ca.vertcat(*found)
