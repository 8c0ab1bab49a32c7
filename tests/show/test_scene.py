"""The robot in the browser stands where the robot stands."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import viser
from scipy.spatial.transform import Rotation

from concur.io import load_task
from concur.outputs import Output
from concur.show.style import SUPPORT
from concur.show.viewer._scene import Scene, color, demanded_place, placed
from tests.ports import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"
ROVER, FLOATER = "rover_arm.toml", "free_floater.toml"


@contextlib.contextmanager
def scene_of(file):
    task = load_task(EXAMPLES / file)
    q0 = np.asarray(task.q0, dtype=float)
    server = viser.ViserServer(host="127.0.0.1", port=free_port(), verbose=False)
    try:
        yield task, q0, Scene(server, task.robot, task.outputs, q0)
    finally:
        server.stop()


def moved(robot, q0, rng):
    """A configuration somewhere else, reached by a motion."""
    return np.asarray(robot.integrate(q0, rng.standard_normal(robot.nv)), dtype=float)


def nothing(task):
    return np.full(sum(output.pose_size for output in task.outputs), np.nan)


def hand_of(robot, output, q):
    pose = np.asarray(robot.pose(q, output.body), dtype=float)
    return pose[:3, :3] @ np.asarray(output.point, dtype=float) + pose[:3, 3]


@pytest.mark.parametrize("file", [ROVER, FLOATER])
def test_parts_move_with_their_bodies(file):
    with scene_of(file) as (task, q0, scene):
        robot = task.robot
        bodies = [part.body for part in scene.drawing.surfaces]
        meshes = [*zip(bodies, scene.parts, strict=True)]
        assert bodies[: 1 + len(robot.wheels)] == [robot.base.name, *(w.body for w in robot.wheels)]
        before = [(robot.pose(q0, body), placed(mesh)) for body, mesh in meshes]
        for seed in range(3):
            q = moved(robot, q0, np.random.default_rng(seed))
            scene.update(q, nothing(task))
            for (body, mesh), (start, vertices) in zip(meshes, before, strict=True):
                carried = np.asarray(robot.pose(q, body)) @ np.linalg.inv(np.asarray(start))
                expected = vertices @ carried[:3, :3].T + carried[:3, 3]
                np.testing.assert_allclose(placed(mesh), expected, atol=1e-6)
            for output, hand in zip(task.outputs, scene.hands, strict=True):
                np.testing.assert_allclose(hand.position, hand_of(robot, output, q), atol=1e-9)


def test_supports_are_balls_on_the_ground_of_the_viewer():
    task = load_task(EXAMPLES / ROVER)
    robot = replace(task.robot, supports={"caster": (0.5, 0.1, 0.0)})
    q = np.asarray(task.q0, dtype=float)
    server = viser.ViserServer(host="127.0.0.1", port=free_port(), verbose=False)
    try:
        scene = Scene(server, robot, task.outputs, q)
        roles = [part.role for part in scene.drawing.surfaces]
        mesh = scene.parts[roles.index("support")]
    finally:
        server.stop()
    points = placed(mesh)
    lowest = points[np.argmin(points[:, 2])]
    there = (np.asarray(robot.pose(q, "chassis")) @ [0.5, 0.1, 0.0, 1.0])[:2]
    np.testing.assert_allclose(lowest, [*there, -0.1], atol=1e-6)
    assert tuple(mesh.color) == color(SUPPORT)


@pytest.mark.parametrize("file", [ROVER, FLOATER])
def test_arms_are_closed_from_base_to_hand(file):
    """Each link of an arm ends at a joint or a hand, and each joint has a link or the base."""
    with scene_of(file) as (task, q0, scene):
        q = moved(task.robot, q0, np.random.default_rng(5))
        scene.update(q, nothing(task))
        origins = [np.asarray(task.robot.pose(q, body.name))[:3, 3] for body in task.robot.bodies]
        centres = [
            np.asarray(task.robot.pose(q, body.name))[:3] @ [*np.asarray(body.inertia.com), 1.0]
            for body in task.robot.bodies
        ]
        hands = [hand_of(task.robot, output, q) for output in task.outputs]
        known = np.array([*origins, *centres, *hands])
        shown = [bar for bar in scene.bars if bar.visible]
        assert shown
        for bar in shown:
            ends = np.array([[0, 0, 0], [0, 0, 1]]) * np.asarray(bar.scale)
            turn = Rotation.from_quat(bar.wxyz, scalar_first=True)
            for end in turn.apply(ends) + bar.position:
                assert np.linalg.norm(known - end, axis=1).min() < 1e-6
        joints = np.array([joint.position for joint in scene.joints])
        assert len(joints)
        for joint in joints:
            assert np.linalg.norm(np.array(origins) - joint, axis=1).min() < 1e-9


def test_wheels_have_their_radius_and_touch_the_ground():
    with scene_of(ROVER) as (task, _, scene):
        for wheel, mesh in zip(task.robot.wheels, scene.parts[1:], strict=False):
            lowest = placed(mesh)[:, 2].min()
            assert lowest == pytest.approx(task.robot.ground_height, abs=0.01 * wheel.radius)


def test_the_robot_stays_before_the_camera_or_the_ground_does():
    with scene_of(ROVER) as (task, q0, scene):
        root = next(body.name for body in task.robot.bodies if body.parent is None)
        q = moved(task.robot, q0, np.random.default_rng(1))
        scene.update(q, nothing(task))
        place = np.asarray(task.robot.pose(q, root))[:3, 3]
        np.testing.assert_allclose(scene.world.position[:2], -place[:2], atol=1e-9)
        assert scene.world.position[2] == 0.0  # the ground stays below
        scene.follow = False
        scene.update(q, nothing(task))
        start = np.asarray(task.robot.pose(q0, root))[:3, 3]
        np.testing.assert_allclose(scene.world.position[:2], -start[:2], atol=1e-9)


@pytest.mark.parametrize("turn", [0.0, 2.0, 4.0])
def test_the_camera_stands_on_the_side_of_the_arm(turn):
    with scene_of("servicer.toml") as (task, q0, scene):
        q0 = q0.copy()
        q0[3:7] = [0.0, 0.0, np.sin(turn / 2), np.cos(turn / 2)]
        scene.look_at(q0[None])
        camera = scene._server.initial_camera
        towards = np.array(camera.position) - np.array(camera.look_at)
        arm = np.asarray(task.robot.pose(q0, "left_hand"))[:2, 3] - q0[:2]
        cosine = towards[:2] @ arm / np.linalg.norm(towards[:2]) / np.linalg.norm(arm)
        assert 0.2 < cosine < 0.95
        assert towards[2] > 0.0


def test_the_camera_sees_an_arm_below_a_floating_base_from_below():
    with scene_of("servicer.toml") as (_, q0, scene):
        q0 = q0.copy()
        q0[3:7] = [0.0, np.sin(np.pi / 4), 0.0, np.cos(np.pi / 4)]  # x of the base points down
        scene.look_at(q0[None])
        camera = scene._server.initial_camera
        assert camera.position[2] < camera.look_at[2]


def test_references_are_shown_and_hidden_where_there_is_none():
    with scene_of(ROVER) as (task, q0, scene):
        demanded = nothing(task)
        scene.update(q0, demanded)
        assert not any(demand.visible for demand in scene.demands)
        pose = np.arange(1.0, 1.0 + len(demanded))
        scene.update(q0, pose)
        start = 0
        for output, demand in zip(task.outputs, scene.demands, strict=True):
            part = pose[start : start + output.pose_size]
            start += output.pose_size
            assert demand.visible
            np.testing.assert_allclose(demand.position[: min(3, len(part))], part[:3])
            if len(part) == 2:
                assert demand.position[2] == hand_of(task.robot, output, q0)[2]


@pytest.mark.parametrize(
    ("output", "pose", "expected"),
    [
        (Output("o", "b", "R3"), [1, 2, 3], [1, 2, 3]),
        (Output("o", "b", "R2", axes="xz"), [1, 3], [1, 8, 3]),
        (Output("o", "b", "R", axes="y"), [2], [7, 2, 9]),
        (Output("o", "b", "R3xSO3"), [1, 2, 3, 0, 0, 0, 1], [1, 2, 3]),
        (Output("o", "b", "SE3"), [1, 2, 3, 0, 0, 0, 1], [1, 2, 3]),
        (Output("o", "b", "SO3"), [0, 0, 0, 1], None),
        (Output("o", "b", "R3", relative_to="a"), [1, 2, 3], None),
        (Output("o", "b", "SE2"), [1, 2, 0.3], [1, 2, 9]),
        (Output("o", "b", "SE2", normal=(0, 1, 0)), [1, 2, 0.3], None),
        (Output("o", "b", "R3"), [1, np.inf, 3], None),
    ],
)
def test_place_of_a_demand(output, pose, expected):
    place = demanded_place(output, np.array(pose, float), np.array([7.0, 8.0, 9.0]))
    if expected is None:
        assert not np.isfinite(place).all()
    else:
        np.testing.assert_array_equal(place, expected)


def test_an_invalid_configuration_moves_nothing():
    with scene_of(ROVER) as (task, q0, scene):
        before = placed(scene.parts[0])
        scene.update(np.full_like(q0, np.nan), nothing(task))
        np.testing.assert_array_equal(placed(scene.parts[0]), before)


def test_hands_leave_a_path():
    with scene_of(ROVER) as (task, q0, scene):
        places = []
        for x in np.linspace(0.0, 1.0, 5):
            q = q0.copy()
            q[0] += x
            scene.update(q, nothing(task))
            places.append(hand_of(task.robot, task.outputs[-1], q))
        trail = scene.trails[-1].points
        np.testing.assert_allclose(trail[:, 0], places[:-1], atol=1e-6)
        np.testing.assert_allclose(trail[:, 1], places[1:], atol=1e-6)
