"""Tracking while the robot tumbles: the error follows its own equation, whatever the momentum.

The demand tumbles and drifts along with the robot: it is where the hand of the robot would be
with locked joints, spinning about a principal axis, and it sways a little on top. The robot
starts with other joint angles, by up to 170 degrees in the hand's attitude, and its base turns
once or more in a run.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Servo
from concur.outputs import Output
from concur.reduction import reduce
from concur.simulation import Run, simulate
from tests.control._floating_cases import (
    Chain,
    Tumble,
    swing,
)
from tests.oracles import Pinocchio

TIGHT = 1e-6
"""Largest deviation from the error's own equation, m and rad: what is claimed."""

ANGLES = [30.0, 90.0, 150.0, 170.0]
START = np.array([0.3, -0.2, 0.1, *Rotation.from_rotvec([0.2, -0.4, 0.3]).as_quat()])
SWAY = np.array([0.02, -0.03, 0.02, 0.06, 0.04, -0.05])

FLYER = np.array([*START, 0.1, 1.0, -1.35, 0.1, 1.0, -1.5])
OFFSETS = np.array([0.05, -0.04, 0.06, 0.05, -0.05])


@cache
def scene(group: str, axis: int = 2) -> tuple[Tumble, Servo, Chain]:
    """The free-flyer's hand, and a demand that tumbles along."""
    robot = robots.free_flyer()
    tumble = Tumble(robot, FLYER, rate=0.6, axis=axis)
    servo = Servo(
        reduce(robot, momentum=tumble.momentum), [Output("hand", "tool", group)], 4.0, 3.5
    )
    hand = Pinocchio(robot).pose(FLYER, "tool")
    return tumble, servo, tumble.carried([hand, (SWAY, swing(0.5))], group)


def begin(angle: float) -> np.ndarray:
    """Start with joints aside; the hand's own axis takes most of the angle."""
    q = FLYER.copy()
    q[7:12] += OFFSETS
    q[12] += np.radians(angle)
    return q


def turned(error: np.ndarray) -> np.ndarray:
    """Angles of rotation errors, degrees."""
    return np.degrees(np.linalg.norm(error[:, -3:], axis=1))


def check(run: Run, tumble: Tumble, angle: float) -> None:
    assert turned(run.error)[0] == pytest.approx(angle, abs=5.0)
    assert turned(run.error).max() < 178.0
    assert np.abs(run.deviation).max() < TIGHT
    assert np.linalg.norm(run.error[-1]) < 1e-5
    assert abs(tumble.turns(run.t, run.q, run.v)) > 1.0
    assert_allclose(run.momentum, np.tile(tumble.momentum, (len(run.t), 1)), rtol=0, atol=1e-6)
    assert np.linalg.norm(tumble.momentum[3:]) > 1.0


@pytest.mark.extended
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("group", ["SE3", "R3xSO3"])
def test_hand_tracks_while_the_base_turns_over(group: str, angle: float) -> None:
    tumble, servo, demand = scene(group)
    run = simulate(servo.model.robot, servo, demand, 11.0, begin(angle), np.zeros(6), dt=1e-2)
    check(run, tumble, angle)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("angle", ANGLES[::-1])
def test_three_wheels_turn_a_satellite_over(angle: float) -> None:
    # The attitude itself tumbles through a full turn; its momentum is not that of this motion,
    # so that the wheels have to carry the difference.
    robot = robots.wheel_satellite()
    q0 = np.array([*START, 0.0, 0.0, 0.0])
    tumble = Tumble(robot, q0, rate=0.6, axis=1)
    servo = Servo(
        reduce(robot, momentum=1.5 * tumble.momentum),
        [Output("attitude", "satellite", "SO3")],
        4.0,
        3.5,
    )
    attitude = np.eye(4)
    attitude[:3, :3] = Rotation.from_quat(START[3:]).as_matrix()
    away = np.eye(4)
    away[:3, :3] = Rotation.from_rotvec(
        np.radians(angle) * np.array([0.6, -0.48, 0.64])
    ).as_matrix()
    demand = tumble.carried([attitude @ away, (SWAY, swing(0.5))], "SO3")
    run = simulate(robot, servo, demand, 14.0, q0, np.array([3.0, -4.0, 5.0]), dt=1e-2)
    assert turned(run.error)[0] == pytest.approx(angle, abs=1e-9)
    assert turned(run.error).max() < 179.0
    assert np.abs(run.deviation).max() < TIGHT
    assert np.linalg.norm(run.error[-1]) < 1e-5
    assert abs(tumble.turns(run.t, run.q, run.v)) > 1.0
    assert np.abs(run.momentum - 1.5 * tumble.momentum).max() < 1e-8
