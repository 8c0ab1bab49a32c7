"""The shipped rover task, short, and states drawn inside its statement."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from concur.io import Task, load_task
from concur.proofs._prove import Prover, stack_of_lattices
from concur.proofs._statement import Statement

EXAMPLES = Path(__file__).parents[2] / "examples"

NEAR = Statement((0.002, 0.002), (0.004, 0.006), 0.002, period=0.001, masses=0.005)
"""A thin tube, for quick tests."""


@cache
def rover() -> Task:
    return load_task(EXAMPLES / "rover_arm.toml")


@cache
def prover(duration: float) -> Prover:
    task = rover()
    return Prover(task.servo, task.reference, duration, task.q0, task.s0)


def states(
    case: Prover, rng: np.random.Generator, t: float, x: np.ndarray, ve: np.ndarray, wall: float
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and shape velocities in a tube about the declared motion at a time.

    Radii x and ve (2,) of base and hand, half of the states on the edge; by inverse kinematics of
    the servo's own functions, not by those of the proof.
    """
    servo, rows = rover().servo, [slice(0, 2), slice(2, 5)]
    sample = rover().reference(t)
    error = np.concatenate(
        [
            np.einsum("ij,jd->id", c.flow(np.array([t]))[..., 0], case.start[:, c.rows])
            for c in servo_channels(case)
        ],
        axis=1,
    )
    for k, row in enumerate(rows):
        for part, radius in ((0, x[k]), (1, ve[k])):
            d = rng.normal(size=row.stop - row.start)
            error[part, row] += radius * d / np.linalg.norm(d) * rng.choice([1.0, rng.uniform()])
    k = min(int(t / case.step), case.count - 1)
    place = 2 * (t / case.step - k) - 1
    theta = case.heading.cubics[:, k] @ place ** np.arange(4) + wall * rng.uniform(-1, 1)
    y, rate = sample.flat_pose - error[0], sample.twist + error[1]
    q = np.array(rover().q0, dtype=float)
    q[2] = theta
    q[:2] = y[:2] - 0.25 * np.array([np.cos(theta), np.sin(theta)])
    for _ in range(30):
        # Newton on the hand with the base at its place; columns by differences.
        off = servo.output(q)[2:] - y[2:]
        slope = np.empty((3, 3))
        for j in range(3):
            moved = q.copy()
            moved[5 + j] += 1e-6
            slope[:, j] = (servo.output(moved)[2:] - y[2:] - off) / 1e-6
        q[5:] -= np.linalg.solve(slope, off)
    assert np.abs(servo.output(q) - y).max() < 1e-9
    return q, np.linalg.solve(servo.decoupling(q), rate)


def servo_channels(case: Prover) -> list:
    return case.robot.channels


def swept(
    case: Prover, held: np.ndarray, edge: float, levels: int = 0, statement: Statement = NEAR
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], list[dict[str, np.ndarray]], int]:
    """Tube, largest values of each segment and number of cells, for bounds (2,) of |d|."""
    tube = case.tube(statement, np.repeat(held[:, None], case.count, axis=1))
    lattices = stack_of_lattices(case.robot, edge, statement)[: levels + 1]
    found = [case.segment(statement, k, tube, held, lattices) for k in range(len(case.first))]
    assert all(fault == "" for _, _, fault in found)
    return tube, [largest for largest, _, _ in found], sum(len(leaves) for _, leaves, _ in found)
