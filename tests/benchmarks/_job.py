"""What is timed: the task of `examples/rover_arm.toml`, and states near its start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import concur as cc
from concur.io import Task

TASK = Path(__file__).parents[2] / "examples" / "rover_arm.toml"


@dataclass(frozen=True)
class Moment:
    """One call of the law: a state and what is demanded in it."""

    q: np.ndarray
    s: np.ndarray
    v: np.ndarray
    sample: cc.ReferenceSample


def task() -> Task:
    """Read the task; its robot is `cc.robots.rover_arm()`."""
    return cc.load_task(TASK)


def servo_of(job: Task) -> cc.Servo:
    """Build our servo."""
    return cc.Servo(cc.reduce(job.robot), job.outputs, job.stiffness, job.damping)


def start(job: Task) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and shape velocities at the start of the task."""
    return job.q0, np.asarray(job.s0)


def moments(job: Task, servo: cc.Servo, count: int) -> list[Moment]:
    """Draw states in which the law is far from singular, each with another demand.

    The whole rover is moved about and turned, its arm bends by up to 0.3 rad around the posture
    at the start, and everything moves.
    """
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(count):
        q = job.q0 + np.concatenate([rng.uniform(-3.0, 3.0, 5), rng.uniform(-0.3, 0.3, 3)])
        s = rng.uniform(-2.0, 2.0, servo.ns)
        sample = job.reference(rng.uniform(0.0, job.duration))
        drawn.append(Moment(q, s, servo.model.velocity(q, s), sample))
    return drawn


def lift(robot: cc.Mechanism) -> np.ndarray:
    """Write the lift v = H s of a rover with two wheels by hand, in body axes.

    With wheels of radius b at c to both sides, forward speed b (left + right) / 2, turning rate
    b (right - left) / (2 c).
    """
    b, c = robot.wheels[0].radius, robot.bodies[1].placement.translation[1]
    rows = np.zeros((8, 5))
    rows[0, :2] = b / 2
    rows[2, :2] = -b / (2 * c), b / (2 * c)
    rows[3:] = np.eye(5)
    return rows


def rolling(robot: cc.Mechanism) -> np.ndarray:
    """Write the rolling constraints by hand: no side slip, left wheel, right wheel."""
    b, c = robot.wheels[0].radius, robot.bodies[1].placement.translation[1]
    rows = np.zeros((3, 8))
    rows[0, 1] = 1.0
    rows[1, [0, 2, 3]] = 1.0, -c, -b
    rows[2, [0, 2, 4]] = 1.0, c, -b
    return rows
