"""The case study of section 2.5: frames, freedoms and masses of the shipped robot."""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.robot import joints

# Poses computed independently, with 60 digits, from the frames that the file states.
INITIAL = {
    "spacecraft": [
        [0.955336489125606, -0.2955202066613396, 0.0, 1.0],
        [0.2955202066613396, 0.955336489125606, 0.0, -0.5],
        [0.0, 0.0, 1.0, 0.8],
    ],
    "vehicle": [
        [0.955336489125606, -0.28633319910066873, 0.07311286916773026, 1.1615152771589872],
        [0.2955202066613396, 0.925637391227236, -0.23635402982999043, -0.34536230975517146],
        [0.0, 0.24740395925452294, 0.9689124217106447, 1.4],
    ],
    "ball": [
        [0.955336489125606, -0.28633319910066873, 0.07311286916773026, 1.3230939678197606],
        [0.2955202066613396, 0.925637391227236, -0.23635402982999043, -0.36012278621346816],
        [0.0, 0.24740395925452294, 0.9689124217106447, 1.6422281054276613],
    ],
    "arm": [
        [0.955336489125606, -0.07311286916773026, -0.28633319910066873, 1.3596504024036258],
        [0.2955202066613396, 0.23635402982999043, 0.925637391227236, -0.4782998011284634],
        [0.0, -0.9689124217106447, 0.24740395925452294, 2.1266843162829834],
    ],
    "left_tip": [
        [0.9931789886339382, -0.07311286916773026, -0.09082953758623988, 1.785896179051762],
        [0.10573371655151434, 0.23635402982999043, 0.9658970720357982, -0.333498006639361],
        [-0.04915157902114466, -0.9689124217106447, 0.24247235169095427, 2.0782386951974514],
    ],
    "right_tip": [
        [0.7684197765395419, -0.07311286916773026, -0.6357558929219476, 1.793207465968535],
        [0.6326523137660455, 0.23635402982999043, 0.7374875066532267, -0.35713340962236007],
        [0.09634363969349323, -0.9689124217106447, 0.22787413663122016, 2.175129937368516],
    ],
}

# Screw parameters of a state away from the initial pose, and the poses of the tips there.
GENERIC = [0.4, -0.3, 0.2, 0.5, -0.7, 0.9, 0.6, -0.25, 1.1, 0.3, 0.8, -0.4, 0.7, -1.2, 0.35]
THERE = {
    "left_tip": [
        [-0.34095976998243227, 0.08957226896799439, -0.9358008569591354, 1.155782046360579],
        [0.7948115746933123, 0.5590538491343074, -0.23607912762811573, -0.30263419554796217],
        [0.5020169279885531, -0.8242788377727771, -0.26180794795593143, 2.541257615197835],
    ],
    "right_tip": [
        [-0.40732159011364655, 0.5215339045849839, -0.7497276229375781, 1.1207575424993144],
        [0.3174947664360789, -0.6888492784909358, -0.6516776387204158, -0.24881239992901436],
        [-0.8563213155778561, -0.5034769685803493, 0.11499889823886042, 2.6179159379398866],
    ],
}


@pytest.fixture(scope="module")
def robot():
    return cc.robots.orbital_crawler()


def test_structure_is_that_of_the_case_study(robot) -> None:
    assert [(body.name, body.parent, type(body.joint)) for body in robot.bodies] == [
        ("spacecraft", None, joints.Free),
        ("vehicle", "spacecraft", joints.Planar),
        ("ball", "vehicle", joints.Spherical),
        ("arm", "ball", joints.Revolute),
        ("left_tip", "arm", joints.Revolute),
        ("right_tip", "arm", joints.Revolute),
    ]
    assert robot.nv == 15
    assert robot.actuated == ("vehicle", "ball", "arm", "left_tip", "right_tip")
    assert not robot.wheels
    assert not np.any(robot.gravity)
    axes = [body.joint.axis for body in robot.bodies[3:]]
    assert axes == [(0.0, 0.0, 1.0)] * 3
    assert robot.bodies[1].joint.normal == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("body", INITIAL)
def test_initial_poses_are_those_of_the_independent_computation(robot, body: str) -> None:
    pose = robot.pose(robot.neutral(), body)
    np.testing.assert_allclose(pose, [*INITIAL[body], [0, 0, 0, 1]], atol=1e-15)


@pytest.mark.parametrize("body", THERE)
def test_poses_of_the_tips_are_those_of_the_independent_computation(robot, body: str) -> None:
    q = robot.integrate(robot.neutral(), GENERIC)
    np.testing.assert_allclose(robot.pose(q, body), [*THERE[body], [0, 0, 0, 1]], atol=2e-15)


def test_motors_keep_the_momentum_and_a_thruster_changes_it(robot) -> None:
    q = robot.integrate(robot.neutral(), GENERIC)
    v = np.linspace(-0.5, 0.4, robot.nv)

    def change(tau):
        acceleration = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias(q, v))
        step = 1e-5
        after, before = (
            robot.momentum(
                robot.integrate(q, t * v + t**2 / 2 * acceleration), v + t * acceleration
            )
            for t in (step, -step)
        )
        return (after - before) / (2 * step)

    motors = np.zeros(robot.nv)
    motors[list(robot.actuated_freedoms)] = np.linspace(1.0, -2.0, 9)
    np.testing.assert_allclose(change(motors), 0.0, atol=1e-5)
    thruster = np.zeros(robot.nv)
    thruster[:3] = [3.0, 0.0, 4.0]
    assert np.linalg.norm(change(thruster)[:3]) == pytest.approx(5.0, abs=1e-5)
