"""Frames of links: other frames, the same robot."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from concur.robot import (
    joints,
    link_frames,
    link_motions,
    link_steps,
    link_twists,
    mass_times,
    root_axes,
    stacked,
)
from tests.oracles import assert_close, random_tree, random_velocity

TREES = range(12)


@pytest.mark.extended
@pytest.mark.parametrize("seed", TREES)
def test_bodies_sit_in_their_links_where_they_are(seed: int) -> None:
    robot = random_tree(seed)
    links, seats = link_frames(robot)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    steps = link_steps(robot, links, q)
    root = steps[0].extended(ca.SX.eye(3)), steps[0].offset
    poses = [
        ca.horzcat(root[0] @ rotation, root[1] + root[0] @ place)
        for rotation, place in root_axes(links, steps)
    ]
    twists = [stacked(twist) for twist in link_twists(links, steps, v)]
    motions = link_motions(links, steps, v, ca.SX(robot.nv, 1), (0.0, 0.0, 0.0))
    rates = [ca.vertcat(motion.linear, motion.rate) for motion in motions]
    evaluate = ca.Function("links", [q, v], [*poses, *twists, *rates])
    rng = np.random.default_rng(seed)
    at, speed = robot.random(rng), random_velocity(robot, rng)
    found = [np.array(value) for value in evaluate(at, speed)]
    n = len(links)
    for body, seat in zip(robot.bodies, seats, strict=True):
        pose, twist, rate = (found[seat.link + k * n] for k in range(3))
        rotation = pose[:, :3] @ seat.rotation
        place = pose[:, 3] + pose[:, :3] @ seat.translation
        expected = robot.pose(at, body.name)
        assert_close(np.column_stack([rotation, place]), expected[:3], 1e-13)
        linear, angular = np.split(twist[:, 0], 2)
        linear = linear + np.cross(angular, seat.translation)
        turned = np.concatenate([seat.rotation.T @ linear, seat.rotation.T @ angular])
        assert_close(turned, robot.twist(at, speed, body.name), 1e-12)
        # The link's is the acceleration of a point, the body's the rate of its twist.
        pulled, spun = np.split(rate[:, 0], 2)
        pulled = pulled + np.cross(spun, seat.translation)
        pulled = pulled + np.cross(angular, np.cross(angular, seat.translation))
        pulled = pulled - np.cross(angular, linear)
        turned = np.concatenate([seat.rotation.T @ pulled, seat.rotation.T @ spun])
        assert_close(turned, robot.velocity_product(at, speed, body.name), 1e-11)


@pytest.mark.parametrize("seed", TREES)
def test_revolute_joints_turn_about_z(seed: int) -> None:
    robot = random_tree(seed)
    links, _ = link_frames(robot)
    turning = [isinstance(robot.bodies[link.body].joint, joints.Revolute) for link in links]
    assert [link.axial for link in links] == turning
    for link in links:
        assert_close(link.turn @ link.turn.T, np.eye(3), 1e-14)
        assert np.linalg.det(link.turn) > 0.0


@pytest.mark.parametrize("seed", TREES)
def test_mass_matrix_times_a_vector(seed: int) -> None:
    robot = random_tree(seed)
    q, x = ca.SX.sym("q", robot.nq), ca.SX.sym("x", robot.nv)
    times = ca.Function("times", [q, x], [mass_times(robot, q, x)])
    rng = np.random.default_rng(seed)
    at, vector = robot.random(rng), random_velocity(robot, rng)
    expected = robot.mass_matrix(at) @ vector
    assert_close(np.array(times(at, vector))[:, 0], expected, 1e-12)
