"""Links on fixed joints as frames of outputs, against the placements of frames of Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import concur as cc
from concur.errors import DescriptionError
from concur.io import load_task
from tests.io.test_urdf import GRAVITY, ORIGIN, UrdfOracle, joint, link, load, robot
from tests.oracles import assert_close, random_velocity

AXIS = '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="4"/>'
TEXT = robot(
    link("bus"),
    link("arm"),
    link("flange", ""),
    link("tool0", ""),
    link("weight"),
    joint("j", "revolute", "bus", "arm", ORIGIN + AXIS),
    joint("f", "fixed", "arm", "flange", ORIGIN),
    joint("t", "fixed", "flange", "tool0", '<origin xyz="0.4 0 0.1" rpy="0 1.5708 0.3"/>'),
    joint("w", "fixed", "tool0", "weight", ORIGIN),
    link("fore"),
    joint("k", "revolute", "weight", "fore", ORIGIN + AXIS),
)
FRAMES = ["flange", "tool0", "weight"]
TASK = """
name = "hold"
robot = "arm.urdf"
[[outputs]]
name = "turn"
body = "{body}"
group = "SO3"
stiffness = 4.0
damping = 4.0
[reference.turn]
kind = "hold"
point = [0.0, 0.0, 0.0, 1.0]
[simulation]
duration = 0.1
dt = 0.01
"""


def test_links_on_fixed_joints_are_frames_of_a_robot_that_moves_alike(tmp_path: Path) -> None:
    merged = load(tmp_path, TEXT, keep_fixed=True)
    found = load(tmp_path, TEXT)
    named = [body.name for body in found.bodies]
    assert set(named) == {"bus", "arm", "fore", "tool0", "flange", "weight"}
    heavy = [body.name for body in found.bodies if body.inertia.mass]
    assert heavy == ["bus", "arm", "fore"]
    rng, oracle = np.random.default_rng(1), UrdfOracle(TEXT, found)
    for _ in range(2):
        q, v = found.random(rng), random_velocity(found, rng)
        assert_close(found.mass_matrix(q), merged.mass_matrix(q), 1e-12)
        assert_close(found.bias(q, v), merged.bias(q, v), 1e-12)
        data = oracle.model.createData()
        pin.framesForwardKinematics(oracle.model, data, oracle.configuration(q))
        for name in named:
            placement = data.oMf[oracle.model.getFrameId(name, pin.FrameType.BODY)]
            assert_close(found.pose(q, name), placement.homogeneous, 1e-12, name=name)
            assert_close(found.jacobian(q, name), oracle.jacobian(q, name), 1e-9, name=name)


def test_outputs_of_tasks_name_frames(tmp_path: Path) -> None:
    merged = load(tmp_path, TEXT, GRAVITY + 'base = "fixed"')
    (tmp_path / "task.toml").write_text(TASK.format(body="tool0"))
    task = load_task(tmp_path / "task.toml")
    (output,) = task.outputs
    assert output.body == "tool0"
    assert [body.name for body in task.robot.bodies] == ["bus", "arm", "fore", *FRAMES]
    assert (task.robot.nq, task.robot.actuated) == (merged.nq, merged.actuated)


def test_a_misspelt_frame_is_an_error(tmp_path: Path) -> None:
    load(tmp_path, TEXT)
    (tmp_path / "task.toml").write_text(TASK.format(body="tool9"))
    with pytest.raises(DescriptionError, match=r"field `body`: expected a body .*, got `tool9`"):
        load_task(tmp_path / "task.toml")


def test_a_servo_tracks_a_frame_as_the_point_of_its_body(tmp_path: Path) -> None:
    """The same torques as with the frame's pose in the body that carries it."""
    found = load(tmp_path, TEXT, 'base = "fixed"')
    frame = found.bodies[found.index("tool0")].placement
    fore = cc.Output("fore", "fore", "R", axes="z", point=(0.3, 0.1, 0.0))
    goal, model, torques = cc.references.hold([0.3, 0.2])(0.0), cc.reduce(found), []
    for body, point in (("tool0", (0.0, 0.0, 0.0)), ("arm", frame.translation)):
        outputs = [cc.Output("hand", body, "R", axes="z", point=point), fore]
        torques.append(cc.Servo(model, outputs, 4, 4).torque([0.4, 0.3], [0.1, -0.2], goal))
    assert_close(torques[0], torques[1], 1e-12)


def test_frames_keep_their_names_without_being_asked_for(tmp_path: Path) -> None:
    """A tool frame carries an output in Python, also behind a mount."""
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="r"><link name="sat"><inertial><mass value="50"/>'
        '<inertia ixx="5" iyy="5" izz="5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<link name="l1"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<link name="flange"/><link name="tool0"/>'
        '<joint name="j1" type="revolute"><parent link="sat"/><child link="l1"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>'
        '<joint name="f" type="fixed"><parent link="l1"/><child link="flange"/>'
        '<origin xyz="0.4 0 0.1"/></joint>'
        '<joint name="t" type="fixed"><parent link="flange"/><child link="tool0"/>'
        '<origin xyz="0 0 0.2" rpy="0 1.5 0"/></joint></robot>'
    )
    robot = cc.load(path)
    assert [body.name for body in robot.bodies] == ["sat", "l1", "flange", "tool0"]
    q = robot.neutral()
    assert_close(robot.pose(q, "tool0")[:3, 3], [0.4, 0.0, 0.3], 1e-12)
    hull = cc.Mechanism(
        "hull", [cc.Body("hull", cc.joints.Free(), inertia=cc.Inertia.box(9.0, (1, 1, 1)))]
    )
    both = cc.mount(hull, robot, prefix="a_")
    model = cc.reduce(both)
    assert model.shape_names == ("a_j1",)
    assert_close(both.pose(both.neutral(), "a_tool0")[:3, 3], [0.4, 0.0, 0.3], 1e-12)
