"""What is timed on robots that float: the hand of `cc.robots.free_flyer()`, with momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from tests.benchmarks._job import Moment
from tests.benchmarks._robots import tilted_free_flyer

MOMENTUM = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])
"""About the inertial origin, kg m/s and kg m^2/s: the free-flyer turns at a third rad/s."""

HAND = cc.Output("hand", "tool", "SE3")
STIFFNESS, DAMPING = 4.0, 4.0

TORQUE_LIMIT = 10.0
"""Of each joint, N m: about half of the states drawn reach it."""

START = np.array([-0.5, -0.15, -0.2, 0.0, 0.0, 0.0, 1.0, 0.5, -1.5, 2.1, 0.2, -0.6, 0.6])
"""Configuration of the free-flyer at the start, wrist and elbow bent."""

STATION_START = np.array([0.0] * 6 + [1.0, 0.0, 0.7, -0.6, 1.5, -0.9, 0.7, 0.0])


@dataclass(frozen=True)
class FloatingJob:
    """Robot, output, gains and momentum: all that a law is made of."""

    robot: cc.Mechanism
    output: cc.Output
    stiffness: np.ndarray
    damping: np.ndarray
    momentum: np.ndarray

    def servo(self, **options: Any) -> cc.Servo:
        """Build our servo."""
        model = cc.reduce(self.robot, momentum=self.momentum)
        return cc.Servo(model, [self.output], self.stiffness, self.damping, **options)


@cache
def free_flyer() -> FloatingJob:
    """Six joints, six coordinates of the hand, twelve freedoms."""
    gains = np.diag(np.full(6, STIFFNESS)), np.diag(np.full(6, DAMPING))
    return FloatingJob(cc.robots.free_flyer(), HAND, *gains, MOMENTUM)


@cache
def tilted() -> FloatingJob:
    """Build the same with a robot that has no structural zeros."""
    return replace(free_flyer(), robot=tilted_free_flyer())


@cache
def station_arm() -> FloatingJob:
    """Seven joints for six coordinates of the tip; the station turns slowly."""
    gains = np.diag(np.full(6, STIFFNESS)), np.diag(np.full(6, DAMPING))
    momentum = np.array([4e3, -2e3, 1e3, 1e5, 2e5, -1e5])
    tip = cc.Output("tip", "tip", "SE3")
    return FloatingJob(cc.robots.station_arm(), tip, *gains, momentum)


def floating_moments(servo: cc.Servo, start: np.ndarray, count: int) -> list[Moment]:
    """Draw states around a posture, each with a demand next to where the output is.

    The robot is anywhere and turned anyhow, its arm bends by up to 0.2 rad around the posture.
    The demand is up to about 0.3 m and 1 rad away and moves on its own.
    """
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(count):
        q = start.copy()
        q[:3] += rng.uniform(-1.0, 1.0, 3)
        q[3:7] = Rotation.random(random_state=rng).as_quat()
        q[7:] += rng.uniform(-0.2, 0.2, len(q) - 7)
        s = rng.uniform(-0.5, 0.5, servo.ns)
        here = servo.output(q)
        hands = []
        for hand in here.reshape(-1, 7):
            turned = Rotation.from_quat(hand[3:]) * Rotation.from_rotvec(rng.uniform(-0.6, 0.6, 3))
            hands += [*(hand[:3] + rng.uniform(-0.2, 0.2, 3)), *turned.as_quat()]
        twist, acceleration = rng.uniform(-0.3, 0.3, (2, servo.size))
        sample = cc.ReferenceSample(np.array(hands), twist, acceleration)
        drawn.append(Moment(q, s, servo.model.velocity(q, s), sample))
    return drawn


def floating_reference(job: FloatingJob) -> cc.references.Reference:
    """Demand a motion of the hand that tumbles and drifts along with the robot."""
    servo = job.servo()
    here = servo.output(START)
    away = Rotation.from_quat(here[3:]) * Rotation.from_rotvec([0.2, -0.1, 0.15])
    first = np.array([*(here[:3] + np.array([0.05, -0.05, 0.04])), *away.as_quat()])
    last = np.array([*(first[:3] + np.array([0.15, 0.1, -0.1])), *here[3:]])
    path = cc.references.rest_to_rest(first, last, 6.0, group="SE3")
    moving = cc.references.moving(path, [0.0, 0.0, 0.0, 0.32, 0.08, 0.12])
    return cc.references.drifting(moving, job.momentum[:3] / job.robot.total_mass)
