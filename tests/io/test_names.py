"""Names of joints from a file to all that is shown, where bodies and joints share names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError
from concur.io import load_task
from concur.simulation import run_signals
from tests.io.test_urdf import SOLID, joint, link, robot
from tests.oracles import assert_close

LIMIT = '<origin xyz="0.3 0 0.1"/><limit lower="-1" upper="1" effort="5" velocity="2"/>'
URDF = robot(
    link("hull", SOLID.replace('mass value="2.5"', 'mass value="25"')),
    *(link(f"link{k}") for k in range(1, 5)),
    # One joint has the name of the base, one that of the body which carries it.
    joint("one", "revolute", "hull", "link1", LIMIT + '<axis xyz="0 0 1"/>'),
    joint("link1", "revolute", "link1", "link2", LIMIT + '<axis xyz="0 1 0"/>'),
    joint("three", "prismatic", "link2", "link3", LIMIT + '<axis xyz="1 0 0"/>'),
    joint("hull", "revolute", "link3", "link4", LIMIT + '<axis xyz="1 0 0"/>'),
)
MJCF = """<mujoco model="arm"><compiler angle="radian"/>
  <option gravity="0 0 0"/><worldbody><body name="hull"><freejoint/>
  <inertial mass="25" pos="0 0 0.1" diaginertia="1 1 1"/>
  <body name="link1"><joint name="one" axis="0 0 1" range="-1 1"/>
    <inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
  <body name="link2" pos="0.3 0 0"><joint name="link1" axis="0 1 0" range="-1 1"/>
    <inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
  <body name="link3" pos="0.3 0 0"><joint name="three" type="slide" axis="1 0 0" range="-1 1"/>
    <inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
  <body name="link4" pos="0.3 0 0"><joint name="hull" axis="1 0 0" range="-1 1"/>
    <inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
  </body></body></body></body></body></worldbody><actuator>
  <motor joint="one"/><motor joint="link1"/><motor joint="three"/><motor joint="hull"/>
</actuator></mujoco>
"""
JOINTS = ("one", "link1", "three", "hull")
TASK = """
name = "hold"
robot = "./{file}"
[[outputs]]
name = "hand"
body = "link4"
group = "R3"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [1.0, 0.0, 0.0]
[initial]
q = {{ one = 0.1, link1 = 0.2, hull = 0.3 }}
[servo]
torque_limits = {{ one = 4.0, link1 = 4.0, three = 4.0, hull = 4.0 }}
[servo.redundancy]
objective = "posture"
stiffness = 1.0
damping = 2.0
posture = {{ link1 = 0.2, hull = 0.3 }}
[operating]
ranges = {{ one = [0.0, 0.2], link1 = [0.1, 0.3], three = [-0.1, 0.1], hull = [0.2, 0.4] }}
[imperfections]
coulomb = {{ link1 = 0.001 }}
noise = {{ hull = 1e-6 }}
[uncertainty.initial_q]
link1 = [-0.01, 0.01]
[uncertainty.initial_s]
hull = [-0.01, 0.01]
[uncertainty.mass]
hull = [-0.1, 0.1]
[simulation]
duration = 0.02
dt = 0.01
"""


@pytest.mark.parametrize(("file", "text"), [("arm.urdf", URDF), ("arm.xml", MJCF)])
def test_joints_keep_their_names_wherever_they_are_shown(tmp_path: Path, file: str, text: str):
    (tmp_path / file).write_text(text)
    (tmp_path / "task.toml").write_text(TASK.format(file=file))
    task = load_task(tmp_path / "task.toml")
    ours, run = task.robot, task.simulate()
    assert ours.joint_names == ("hull_2", *JOINTS)
    assert ours.actuated == ours.control_names == task.servo.model.shape_names == JOINTS
    assert task.q0[7:].tolist() == [0.1, 0.2, 0.0, 0.3]
    moved = run_signals(run)
    kinds = ("position", "speed", "torque")
    assert {f"{kind}:{name}" for kind in kinds for name in JOINTS} <= moved.keys()
    assert not any("link2" in name or "link3" in name for name in moved)
    rows = [row.quantity for row in run.rows]
    for name in ("largest angle of one", "smallest travel of three", "largest angle of hull"):
        assert name in rows
    assert {f"joint {name}" for name in JOINTS} <= {one.name for one in task.requirements}
    assert [made.label for made in task.uncertainty.quantities] == [
        *("initial_q.link1", "initial_s.hull", "mass.hull")
    ]
    run.save(tmp_path / "run.h5")
    again = cc.load_result(tmp_path / "run.h5")
    assert again.robot == ours


@pytest.mark.parametrize(("file", "text"), [("arm.urdf", URDF), ("arm.xml", MJCF)])
def test_names_of_joints_come_back_from_saved_files(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    ours = cc.load(tmp_path / file)
    for ending in ("toml", "urdf", "xml"):
        again = cc.load(ours.save(tmp_path / f"{ending}.{ending}")[0])
        assert again.joint_names[1:] == JOINTS
        assert again.control_names == JOINTS
        assert (again == ours) is (ending == "toml") or again.actuated == ours.actuated
        q = ours.random(np.random.default_rng(1))
        assert_close(again.mass_matrix(q), ours.mass_matrix(q), 1e-9)
    both = cc.mount(ours, ours, on="link4", prefix="left_")
    assert both.control_names == (*JOINTS, *(f"left_{name}" for name in JOINTS))
    assert interop.mujoco(both).bodies[2] == "link2"


def test_a_joint_is_found_by_its_body_where_no_joint_has_the_name(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(URDF)
    ours = cc.load(tmp_path / "arm.urdf")
    found = {name: ours.bodies[k].name for name, k in ours.joints.items()}
    assert found["hull"] == "link4"
    assert found["link1"] == found["link2"] == "link2"
    assert (found["hull_2"], found["one"], found["link3"]) == ("hull", "link1", "link3")
    assert (ours.q_slice("link1").start, ours.q_slice("link2").start) == (7, 8)


def test_two_joints_of_one_name_are_refused(tmp_path: Path) -> None:
    solid = cc.Inertia(1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0))
    turn = cc.joints.Revolute((0, 0, 1))
    base = cc.Body("base", cc.joints.Free(), inertia=solid)
    first = cc.Body("a", turn, "base", inertia=solid, joint_name="b")
    assert cc.Mechanism("one", [base, first]).joint_names == ("base", "b")
    second = cc.Body("b", turn, "a", inertia=solid)
    with pytest.raises(DescriptionError, match="body `b`, `joint_name`: expected each name of a"):
        cc.Mechanism("two", [base, first, second])
    with pytest.raises(ConcurError, match="`joint_name`"):
        cc.Body("a", turn, "base", inertia=solid, joint_name="")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("three = 0.1, link3 = 0.1", "[initial.q], field `link3`: expected each joint once"),
        ("link5 = 0.1", "expected a joint (hull_2, one, link1, three, hull), got"),
        ("three = [0.1, 0.2]", "[initial.q], field `three`: expected one number"),
    ],
)
def test_wrong_names_of_joints_are_refused(tmp_path: Path, entry: str, words: str) -> None:
    (tmp_path / "arm.urdf").write_text(URDF)
    text = TASK.format(file="arm.urdf").replace("q = { one", f"q = {{ {entry}, one")
    (tmp_path / "task.toml").write_text(text)
    with pytest.raises(DescriptionError, match=re.escape(words)):
        load_task(tmp_path / "task.toml")
