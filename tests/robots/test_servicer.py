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


def test_mirrored_motion_has_mirrored_momentum(robot) -> None:
    rng = np.random.default_rng(9)
    twist, near, far = rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 7)
    other = 0.7 - LEFT
    momentum = robot.momentum(both(robot, LEFT, other), np.concatenate([twist, near, far]))
    sign = np.array([1, -1, 1, -1, 1, -1])  # momenta about axes in the mirror plane reverse
    mirrored = robot.momentum(
        both(robot, MIRROR * other, MIRROR * LEFT),
        np.concatenate([sign * twist, MIRROR * far, MIRROR * near]),
    )
    np.testing.assert_allclose(mirrored, sign * momentum, atol=1e-10)


def test_hands_reach_forward_to_where_they_grasp(robot) -> None:
    for hand, y in (("left_hand", 0.6), ("right_hand", -0.6)):
        pose = robot.pose(robot.neutral(), hand)
        np.testing.assert_allclose(pose[:3, 3], [1.0 + 2.6, y, 0.2], atol=1e-15)
        np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-15)


def test_bent_arms_move_both_hands_in_every_direction(robot) -> None:
    def rank(q):
        rows = [robot.jacobian(q, hand)[:, 6:] for hand in ("left_hand", "right_hand")]
        values = np.linalg.svd(np.vstack(rows), compute_uv=False)
        return int(np.sum(values > 1e-6 * values[0]))

    assert rank(robot.neutral()) < 12
    assert rank(both(robot, LEFT, MIRROR * LEFT)) == 12
