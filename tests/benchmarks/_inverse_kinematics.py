"""Inverse kinematics on the shipped robots: how many targets are reached, and how fast."""

from __future__ import annotations

import time

import numpy as np

import concur as cc
from concur.groups import quaternion
from tests.benchmarks._report import duration

TARGETS = 1000

CASES: dict[str, tuple[str, tuple[cc.Output, ...], tuple[str, ...]]] = {
    "rover_arm: base R2 and hand R3": (
        "rover_arm",
        (
            cc.Output("base", "chassis", "R2", (0.25, 0.0, 0.0)),
            cc.Output("hand", "forearm", "R3", (0.0, 0.2, 0.0)),
        ),
        (),
    ),
    "rover_arm: hand R3, chassis fixed": (
        "rover_arm",
        (cc.Output("hand", "forearm", "R3", (0.0, 0.2, 0.0)),),
        ("chassis",),
    ),
    "orbital_crawler: both tips R3": (
        "orbital_crawler",
        (cc.Output("left", "left_tip", "R3"), cc.Output("right", "right_tip", "R3")),
        (),
    ),
    "orbital_crawler: left tip SE3, spacecraft fixed": (
        "orbital_crawler",
        (cc.Output("left", "left_tip", "SE3"),),
        ("spacecraft",),
    ),
}


def inverse_kinematics_table(targets: int = TARGETS) -> str:
    """Solve random reachable targets from random starts, as a Markdown table."""
    lines = [
        "| outputs | targets | reached | median | 99th percentile |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for label, (name, outputs, fixed) in CASES.items():
        robot = getattr(cc.robots, name)()
        solver = cc.control.InverseKinematicsSolver(robot, outputs, fixed=fixed)
        rng = np.random.default_rng(0)
        locked = {i for body in fixed for i in range(*robot.q_slice(body).indices(robot.nq))}
        seconds, reached = [], 0
        for _ in range(targets):
            aim, start = robot.random(rng), robot.random(rng)
            start[list(locked)] = aim[list(locked)]
            target = np.concatenate([_coordinates(robot, output, aim) for output in outputs])
            begin = time.perf_counter()
            found = solver.solve(target, start)
            seconds.append(time.perf_counter() - begin)
            again = np.concatenate([_coordinates(robot, output, found.q) for output in outputs])
            reached += found.solved and bool(np.abs(_near(target, again)).max() < 1e-7)
        median, late = np.median(seconds), np.quantile(seconds, 0.99)
        share = f"{100 * reached / targets:.4g} %"
        cells = label, str(targets), share, duration(float(median)), duration(float(late))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _coordinates(robot: cc.Mechanism, output: cc.Output, q: np.ndarray) -> np.ndarray:
    """Flat coordinates from the pose alone, not from the solver."""
    pose = robot.pose(q, output.body)
    place = pose[:3, :3] @ np.array(output.point) + pose[:3, 3]
    if output.group in ("R2", "R3"):
        return place[: int(output.group[1])]
    return np.concatenate([place, quaternion.from_matrix(pose[:3, :3])])


def _near(target: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Difference, with q and -q one rotation."""
    if target.size == 7 and target[3:] @ found[3:] < 0.0:
        found = np.concatenate([found[:3], -found[3:]])
    return target - found
