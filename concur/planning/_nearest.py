"""Whether some posture reaches the goals of a plan, and the nearest goals that one reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.control import InverseKinematicsSolver
from concur.errors import ConcurError
from concur.outputs import Output
from concur.planning._targets import Target

STARTS = 20
"""Postures from which a posture at the goal is sought."""

TOLERANCE = 1e-6
"""Residual up to which a posture is at the goal, m and rad."""

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


def nearest_pose(
    robot: Any, outputs: Sequence[Output], targets: Sequence[Target], q0: Floats
) -> Nearest | None:
    """Posture at the goals, or nearest to them; None if no goal is a whole pose or position."""
    chosen = [(outputs[target.output], target) for target in targets]
    parts = [_asked(*pair) for pair in chosen]
    asked = [part for part in parts if part is not None]
    if not asked:
        return None
    try:
        solver = InverseKinematicsSolver(robot, asked, starts=STARTS, tolerance=TOLERANCE)
        goal = [t.wanted for t, part in zip(targets, parts, strict=True) if part is not None]
        found = solver.solve(np.concatenate(goal), q0)
    except ConcurError:  # joints or outputs that inverse kinematics does not cover
        return None
    wanted, words = list[Floats](), list[str]()
    for target, part in zip(targets, parts, strict=True):
        if part is None:
            wanted.append(target.wanted)
            continue
        pose = np.asarray(robot.pose(found.q, part.body))
        placed = ca.DM(pose[:3, :3]), ca.DM(pose[:3, :3] @ np.array(part.point) + pose[:3, 3])
        wanted.append(np.array(ca.DM(part.lie.coordinates(placed)))[:, 0])
        numbers = ", ".join(f"{x:.5g}" for x in wanted[-1])
        words.append(f"`{outputs[target.output].name}` at [{numbers}]")
    missed = found.why.removesuffix("; the search was still on its way: allow more `iterations`")
    why = f"{missed}; the nearest goal within reach is {' with '.join(words)}"
    return Nearest(np.array(found.q), found.solved, np.concatenate(wanted), why)


def _asked(output: Output, target: Target) -> Output | None:
    """Output whose pose is the goal; None if parts are free."""
    if target.within or output.is_function or target.kind == "direction":
        return None
    if target.kind == "pose":
        return output
    if target.wanted.size != len(target.rows):
        return None
    if output.pose_size == target.wanted.size:
        return output
    return replace(output, group="R3") if target.wanted.size == 3 else None
