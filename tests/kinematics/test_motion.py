"""Twists, Jacobians and their rates against differences of the poses."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from concur import robot as kinematics
from concur.errors import UnknownNameError
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import (
    Pinocchio,
    assert_close,
    difference_quotient,
    random_tree,
    random_velocity,
)

TREES = range(8)


def hat(twist: np.ndarray) -> np.ndarray:
    v, w = twist[:3], twist[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    matrix[:3, 3] = v
    return matrix


@pytest.mark.parametrize("seed", TREES)
def test_pose_moves_with_the_body_twist(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), random_velocity(robot, rng)
    qdot = oracle.rate(q, v)
    for body in (body.name for body in robot.bodies):
        rate = difference_quotient(lambda h, body=body: oracle.pose(q + h * qdot, body))
        moving = oracle.pose(q, body) @ hat(robot.twist(q, v, body))
        assert_close(moving, rate, 1e-9, name=body)


@pytest.mark.parametrize("seed", TREES)
def test_velocity_product_is_the_rate_of_the_jacobian_times_velocity(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), random_velocity(robot, rng)
    qdot = oracle.rate(q, v)
    for body in (body.name for body in robot.bodies):
        rate = difference_quotient(lambda h, body=body: oracle.jacobian(q + h * qdot, body) @ v)
        assert_close(robot.velocity_product(q, v, body), rate, 1e-8, name=body)


@pytest.mark.parametrize("seed", TREES)
def test_jacobian_relative_to_an_ancestor(seed: int) -> None:
    # J = J_body - Ad(ancestor to body) J_ancestor.
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    q = robot.random(np.random.default_rng(seed))
    symbol = ca.SX.sym("q", robot.nq)
    body = robot.bodies[-1].name
    for ancestor in robot.path(robot.index(body))[:-1]:
        name = robot.bodies[ancestor].name
        expression = kinematics.jacobian(robot, symbol, body, name)
        ours = np.array(ca.Function("j", [symbol], [ca.densify(expression)])(q))
        relative = np.linalg.inv(oracle.pose(q, body)) @ oracle.pose(q, name)
        rotation, translation = relative[:3, :3], relative[:3, 3]
        adjoint = np.zeros((6, 6))
        adjoint[:3, :3] = adjoint[3:, 3:] = rotation
        adjoint[:3, 3:] = hat(np.array([0, 0, 0, *translation]))[:3, :3] @ rotation
        expected = oracle.jacobian(q, body) - adjoint @ oracle.jacobian(q, name)
        assert_close(ours, expected, 1e-12)


def test_neutral_pose_is_the_product_of_the_placements() -> None:
    robot = random_tree(0)
    q = robot.neutral()
    for i, body in enumerate(robot.bodies):
        product = np.eye(4)
        for k in robot.path(i):
            product = product @ robot.bodies[k].placement.matrix
        assert_close(robot.pose(q, body.name), product, 1e-14)


def test_pose_of_a_planar_body_by_hand() -> None:
    inertia = Inertia(1.0, moments=(1, 1, 1))
    plate = Body("plate", joints.Planar(), placement=Pose((0, 0, 0.5)), inertia=inertia)
    robot = Mechanism("plate", [plate])
    pose = robot.pose([1.0, 2.0, np.pi / 2], "plate")
    expected = [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 0.5], [0, 0, 0, 1]]
    np.testing.assert_allclose(pose, expected, rtol=0, atol=1e-15)


def test_turned_plane_takes_z_to_its_normal_by_the_shortest_turn() -> None:
    # Normal x: z turns about y, so the plane's first axis is -z and its second stays y.
    joint = joints.Planar((1, 0, 0))
    basis = np.zeros((6, 3))
    basis[2, 0], basis[1, 1], basis[3, 2] = -1.0, 1.0, 1.0
    np.testing.assert_allclose(joint.basis, basis, rtol=0, atol=1e-15)


def test_unknown_body_is_named() -> None:
    robot = random_tree(0)
    with pytest.raises(UnknownNameError, match="Did you mean 'body1'"):
        robot.pose(robot.neutral(), "bodi1")
