"""The servicer: two arms that mirror each other."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots

LEFT = np.array([0.5, -0.4, 0.2, 1.0, -0.6, -0.4, 0.3])
MIRROR = np.array([-1, 1, -1, 1, 1, -1, -1])  # turns about y stay, those about x and z reverse
REFLECTION = np.diag([1.0, -1.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def robot():
    return robots.servicer()


def both(robot, left, right):
    q = robot.neutral()
    q[7:] = [*left, *right]
    return q


def test_arms_have_the_same_parts(robot) -> None:
    parts = [body.name.partition("_")[2] for body in robot.bodies[1:]]
    assert parts[:7] == parts[7:]
    assert parts[6] == "hand"
    assert len(robot.bodies) == 15
    for near, far in zip(robot.bodies[1:8], robot.bodies[8:], strict=True):
        assert near.inertia.mass == far.inertia.mass
        assert near.joint == far.joint


def test_hands_mirror_each_other(robot) -> None:
    q = both(robot, LEFT, MIRROR * LEFT)
    left, right = robot.pose(q, "left_hand"), robot.pose(q, "right_hand")
    np.testing.assert_allclose(right, REFLECTION @ left @ REFLECTION, atol=1e-14)
    assert left[1, 3] - right[1, 3] > 0.5
