"""Distances that a plan keeps: from obstacles, and of a robot's bodies from each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import OutputError
from concur.robot import Capsule, Clearance, Mechanism, Obstacle, Shape, segment_distance


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
            came=f"one, `{bodies[0]}`" if bodies else "none",
            cure="Add shapes to the bodies, or give a `concur.proofs.Clearance`; in a task add "
            "tables [[plan.capsule]].",
        )


def distances(
    robot: Mechanism, q: Any, clearance: Clearance | None, apart: float | None, start: np.ndarray
) -> list[tuple[str, Any, float]]:
    """Name, distance over SX and least distance of each pair.

    With `apart`, pairs of the robot's own bodies too, but for those that are nearer at the start,
    such as neighbours.
    """
    rows = list[tuple[str, Any, float]]()
    if clearance is not None:
        seen = ca.vertsplit(clearance.seen(robot, q))
        rows += [
            (f"distance of {name}", d, least)
            for d, (name, least) in zip(seen, clearance.least.items(), strict=True)
        ]
    if apart is None:
        return rows
    own = capsules_of(robot) if clearance is None else clearance.capsules
    ends = {
        made.name: [
            robot.pose(q, made.body)[:3, :3] @ ca.DM(end) + robot.pose(q, made.body)[:3, 3]
            for end in (made.start, made.end)
        ]
        for made in own
    }
    pairs = [
        (f"distance of {a.name} from {b.name}", d - a.radius - b.radius)
        for a, b in combinations(own, 2)
        if a.body != b.body
        for d in [segment_distance(*ends[a.name], *ends[b.name])]
    ]
    if pairs:
        now = ca.Function("now", [q], [ca.vertcat(*[d for _, d in pairs])])(start)
        rows += [
            (name, d, apart)
            for (name, d), at in zip(pairs, np.array(now)[:, 0], strict=True)
            if at > apart
        ]
    return rows


def middles(robot: Mechanism, q: Any, clearance: Clearance) -> Any:
    """Middles of the capsules over SX, shape (3 n,)."""
    found = [ca.SX(0, 1)]
    for made in clearance.capsules:
        pose, middle = robot.pose(q, made.body), (np.array(made.start) + np.array(made.end)) / 2.0
        found.append(pose[:3, :3] @ ca.DM(middle) + pose[:3, 3])
    return ca.vertcat(*found)
