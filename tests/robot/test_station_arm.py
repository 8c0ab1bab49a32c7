"""The station's arm: what is published of it, and where it stands."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots

ARM = ["shoulder_roll", "shoulder_yaw", "upper_boom", "lower_boom", "wrist_pitch", "wrist_yaw"]
ARM += ["hand"]


@pytest.fixture(scope="module")
def robot():
    return robots.station_arm()


def test_joints_are_roll_yaw_three_pitches_yaw_roll(robot) -> None:
    bodies = {body.name: body for body in robot.bodies}
    assert ["xyz"[int(np.argmax(bodies[name].joint.axis))] for name in ARM] == list("xzyyyzx")
    for name in ARM:
        np.testing.assert_allclose(np.degrees(bodies[name].limits), [[-270.0, 270.0]])


def test_arm_has_its_published_mass(robot) -> None:
    masses = {body.name: body.inertia.mass for body in robot.bodies}
    arm = sum(masses[name] for name in [*ARM, "foot", "tip"])
    assert arm == pytest.approx(2 * 243.66 + 4 * 105.98 + 314.88 + 279.2)
    assert masses["station"] == pytest.approx(420e3)


def test_arm_stands_straight_up_from_the_station(robot) -> None:
    # Two end effectors and two booms along z; the offsets of shoulder, elbow and wrist along -y.
    pose = robot.pose(robot.neutral(), "tip")
    height = 2 * 1.3589 + 2 * 7.11
    expected = [6.0, 3.0 - 2 * 0.5692 - 0.475, 2.5 + height]
    np.testing.assert_allclose(pose[:3, 3], expected, atol=1e-13)
    np.testing.assert_allclose(pose[:3, :3], [[0, 0, -1], [0, 1, 0], [1, 0, 0]], atol=1e-15)
