"""Momentum of the free flyer in a state computed independently of this package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur import robots
from concur.robot import joints
from tests.oracles._pinocchio import Pinocchio

MOMENTUM = [
    *(1.954790558, -1.255431220, 0.406422957),
    *(0.447493141, 0.587019332, -0.149264686),
]


@pytest.fixture(scope="module")
def robot():
    return robots.free_flyer()


@pytest.fixture(scope="module", params=["concur", "Pinocchio"])
def source(request, robot):
    return robot if request.param == "concur" else Pinocchio(robot)


def test_momentum_is_that_of_the_independent_computation(source) -> None:
    v, (a, b, c) = [0.1, -0.2, 0.3], (0.1, 0.2, -0.1)
    twist = np.zeros((4, 4))
    twist[:3, :3] = [[0, -c, b], [c, 0, -a], [-b, a, 0]]
    twist[:3, 3] = v
    base = expm(twist)
    attitude = Rotation.from_matrix(base[:3, :3]).as_quat()
    q = np.concatenate([base[:3, 3], attitude, [0.1, 1.0, -1.35, 0.1, 1.0, -1.5]])
    rates = [0.02, -0.01, 0.015, 0.03, 0.02, -0.03, 0.05, -0.04, 0.03, 0.02, -0.03, 0.04]
    np.testing.assert_allclose(source.momentum(q, np.array(rates)), MOMENTUM, atol=6e-10)


def test_joints_turn_about_z_y_y_x_y_x(robot) -> None:
    turning = [body for body in robot.bodies if isinstance(body.joint, joints.Revolute)]
    assert ["xyz"[int(np.argmax(body.joint.axis))] for body in turning] == list("zyyxyx")


def test_tool_is_at_the_end_of_the_straight_arm(robot) -> None:
    pose = robot.pose(robot.neutral(), "tool")
    x = 0.4 + 0.35 + 0.5 + 0.45 + 0.25 + 0.2 + 0.15
    np.testing.assert_allclose(pose[:3, 3], [x, 0.0, 0.3], atol=1e-15)
    np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-15)
    tool = robot.bodies[-1]
    assert (tool.name, tool.parent, tool.inertia.mass) == ("tool", "hand", 0.0)
