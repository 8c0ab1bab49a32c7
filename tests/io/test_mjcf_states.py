"""Sites and keyframes of MJCF files, against MuJoCo's own frames and states."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError
from concur.io import load_task
from concur.robot import Keyframe
from tests.oracles import assert_close

SOLID = '<inertial mass="{}" pos="0.1 0.02 0" diaginertia="0.2 0.1 0.15"/>'
FLYER = f"""<mujoco model="flyer"><compiler angle="degree"/><option gravity="0 0 0"/>
<default><default class="tool"><site pos="0.2 0.1 0" euler="10 20 30"/></default></default>
<worldbody>
  <site name="dock" pos="1 2 3"/>
  <body name="hull" pos="0 0 1" euler="0 0 40"><freejoint/>{SOLID.format(20)}
    <site name="plain"/><site name="turned" pos="0.1 0.2 0.3" quat="1 2 3 4"/>
    <site name="axis" axisangle="1 1 0 35"/><site name="up" zaxis="1 2 3"/><site pos="1 1 1"/>
    <site name="span" type="capsule" fromto="0 0 0 0.3 0.1 0.2" size="0.01"/>
    <body name="ball" pos="0.3 0 0"><joint type="ball" pos="0.05 0 0.02"/>{SOLID.format(2)}
      <site name="in_class" class="tool"/><site name="hull" pos="0.1 0 0"/>
      <body name="fore" pos="0.3 0 0" euler="20 0 0">
        <joint name="slide" type="slide" axis="1 0 1"/>
        <joint name="bend" axis="0 0 1" pos="0 0.1 0" ref="15" range="-80 90"/>{SOLID.format(1)}
        <site name="tip" pos="0.4 0 0.1" xyaxes="0 1 0 0 0 1"/>
        <body name="pad" pos="0.1 0.2 0" euler="0 30 0"><site name="camera" euler="5 0 7"/>
          {SOLID.format(0.2)}</body>
</body></body></body></worldbody>
<actuator><motor joint="bend"/><motor joint="slide"/></actuator>
<keyframe>
  <key name="home" qpos="0.1 0.2 0.3 1 0 0 0  1 0 0 0  0.05 0.3" ctrl="1 2"/>
  <key qpos="1 2 3 2 0.5 -1 0.2  0.1 0.7 0 0.3  0.1 -0.4"
    qvel="0.1 -0.2 0.3 0.4 0.5 -0.6  0.2 0.1 -0.3  0.02 0.7"/>
</keyframe></mujoco>
"""
CART = f"""<mujoco model="cart"><compiler angle="radian"/><worldbody>
  <body name="cart" pos="0.1 0 0.2">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="yaw" axis="0 0 1"/>{SOLID.format(9)}
    <body name="drum" pos="0.2 0 0"><joint name="lift" type="slide" axis="0 0 1"/>
      <joint name="turn" axis="0 0 1"/>{SOLID.format(2)}<site name="top" pos="0 0 0.4"/></body>
  </body></worldbody><actuator><motor joint="turn"/><motor joint="lift"/></actuator>
<keyframe><key name="away" qpos="0.3 -0.2 2.5 0.1 4" qvel="0.4 0.2 0.3 0.1 -1"/></keyframe></mujoco>
"""


def loaded(folder: Path, text: str, side: str = "") -> tuple[cc.Mechanism, mujoco.MjModel]:
    path = folder / "robot.xml"
    path.write_text(text)
    path.with_suffix(".toml").write_text(side)
    return cc.load(path), mujoco.MjModel.from_xml_path(str(path))


def test_sites_are_frames_of_mujoco(tmp_path: Path) -> None:
    robot, model = loaded(tmp_path, FLYER)
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    named = [model.site(k).name for k in range(model.nsite)]
    here = {name: name for name in named if name} | {"hull": "hull_2"}
    assert "dock" in here
    del here["dock"]
    assert set(here.values()) < {body.name for body in robot.bodies}
    assert "`site`: frames on bodies that the robot lacks (`dock`)" in robot.unread
    assert "`site`: frames with another name, which is taken (`hull_2`)" in robot.unread
    for seed in range(3):
        q = robot.random(np.random.default_rng(seed))
        data.qpos[:] = order.to_q(q)
        mujoco.mj_forward(model, data)
        for name, label in here.items():
            pose, k = robot.pose(q, label), named.index(name)
            assert_close(pose[:3, 3], data.site_xpos[k], 1e-12, name=name)
            assert_close(pose[:3, :3], data.site_xmat[k].reshape(3, 3), 1e-12, name=name)


@pytest.mark.parametrize("text", [FLYER, CART], ids=["flyer", "cart"])
def test_keyframes_are_states_of_mujoco(tmp_path: Path, text: str) -> None:
    robot, model = loaded(tmp_path, text)
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    names = [model.key(k).name or f"key{k}" for k in range(model.nkey)]
    assert list(robot.keyframes) == names
    for k, name in enumerate(names):
        mujoco.mj_resetDataKeyframe(model, data, k)
        mujoco.mj_forward(model, data)
        q, v = robot.keyframe(name)
        assert_close(order.to_v(q, v), data.qvel, 1e-12)
        for i in range(1, model.nbody):
            frame = robot.pose(q, model.body(i).name)
            assert_close(frame[:3, :3], data.xmat[i].reshape(3, 3), 1e-12)
            com = robot.bodies[robot.index(model.body(i).name)].inertia.com
            assert_close((frame @ [*com, 1.0])[:3], data.xipos[i], 1e-12)
        mujoco.mj_subtreeVel(model, data)
        linear = sum(model.body_mass) * data.subtree_linvel[0]
        assert_close(robot.momentum(q, v)[:3], linear, 1e-12)
        spin = data.subtree_angmom[0] + np.cross(data.subtree_com[0], linear)
        assert_close(robot.momentum(q, v)[3:], spin, 1e-12)
    noted = "`keyframe`: controls and activations of stored states (key `home`)"
    assert (noted in robot.unread) is (text == FLYER)


def test_keyframes_come_back_and_are_mounted(tmp_path: Path) -> None:
    robot, _ = loaded(tmp_path, CART)
    again = cc.load(robot.save(tmp_path / "again.xml")[0])
    for mine, other in zip(robot.keyframe("away"), again.keyframe("away"), strict=True):
        assert_close(mine, other, 1e-12)
    robot, _ = loaded(tmp_path, FLYER)
    assert cc.load(robot.save(tmp_path / "again.toml")[0]).keyframes == robot.keyframes
    both = cc.mount(robot, robot, on="tip", prefix="left_")
    q, v = both.keyframe("left_key1")
    assert_close(q[both.freedoms("hull")], [0.0] * 6, 0.0)
    assert v[both.freedom_names.index("left_bend")] == 0.7
    fixed, _ = loaded(tmp_path, FLYER, 'base = "fixed"')
    assert_close(fixed.keyframe("home")[0][-2:], [0.05, 0.3], 0.0)


TASK = """
name = "start"
robot = "robot.xml"
{head}
[[outputs]]
name = "hand"
body = "{body}"
group = "{group}"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = {point}
[initial]
{initial}
[simulation]
duration = 0.01
dt = 0.01
"""


def started(folder: Path, text: str, initial: str, head: str = "", side: str = ""):
    robot, model = loaded(folder, text, side)
    body, group, point = ("top", "R2", [0.1, 0.1]) if text == CART else ("tip", "R", [0.1])
    words = TASK.format(head=head, body=body, group=group, point=point, initial=initial)
    (folder / "task.toml").write_text(words.replace('"R"', '"R"\naxes = "x"'))
    return load_task(folder / "task.toml"), robot, model


def test_tasks_start_at_keyframes(tmp_path: Path) -> None:
    task, robot, _ = started(tmp_path, FLYER, 'keyframe = "key1"', 'stages = ["ball"]')
    q, v = robot.keyframe("key1")
    assert_close(task.q0, q, 0.0)
    assert_close(task.momentum, robot.momentum(q, v), 1e-12)
    spun, _, _ = started(tmp_path, FLYER, 'keyframe = "home"\nattitude_deg = [0, 0, 90]')
    half = 0.5**0.5
    assert_close(spun.q0[:7], [0.1, 0.2, 0.3, 0.0, 0.0, half, half], 1e-15)
    assert spun.momentum is None
    moved, _, _ = started(
        tmp_path, FLYER, 'keyframe = "home"\nq = { bend = 0.7 }\ns = { slide = 0.1 }'
    )
    assert (moved.q0[-1], moved.q0[-2]) == (0.7, 0.05)
    assert moved.initial_velocities == {"slide": 0.1}
    near, _, _ = started(
        tmp_path,
        FLYER,
        'keyframe = "key1"\nstart = "on reference"',
        "momentum = [0, 0, 0, 0, 0, 0.1]",
        'actuated = ["slide", "bend", "ball"]',
    )
    assert_close(near.momentum, [0.0, 0.0, 0.0, 0.0, 0.0, 0.1], 0.0)


@pytest.mark.parametrize(
    ("initial", "head", "words"),
    [
        ('keyframe = "homes"', "", "field `keyframe`: expected a keyframe (home, key1)"),
        ('keyframe = "key1"', "momentum = [0, 0, 0, 0, 0, 1]", "got both. Remove one of them"),
        ('keyframe = "home"\nq = { bend = [1, 2] }', "", "field `bend`: expected one number"),
    ],
)
def test_wrong_keyframes_are_refused(tmp_path: Path, initial: str, head: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=re.escape(words)):
        started(tmp_path, FLYER, initial, head)


def test_keyframes_that_break_a_coupling_are_refused_where_they_are_used(tmp_path: Path) -> None:
    coupled = '<equality><joint joint1="bend" joint2="slide" polycoef="0 2"/></equality><actuator>'
    text = FLYER.replace("<actuator>", coupled).replace('<motor joint="bend"/>', "")
    text = text.replace('ctrl="1 2"', "").replace("0.1 -0.4", f"0.1 {0.2 + np.radians(15)}")
    with pytest.raises(DescriptionError, match=r"`keyframe`.*`home`, joint of `bend`"):
        started(tmp_path, text, 'keyframe = "home"')
    with pytest.raises(DescriptionError, match="velocities that fit: 2 times that of `slide`"):
        started(tmp_path, text, 'keyframe = "key1"')
    task, _, _ = started(tmp_path, text.replace("0.02 0.7", "0.02 0.04"), 'keyframe = "key1"')
    assert "bend" not in task.initial_velocities


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"q": {"turet": 0.1}}, "a joint among"),
        ({"q": {"turret": [0.1, 0.2]}}, "joint `turret`: expected shape"),
        ({"q": {"turret": float("nan")}}, "joint `turret`"),
        ({"v": {"chassis": 1.0}}, "a velocity among chassis[vx]"),
    ],
)
def test_states_of_unknown_joints_and_sizes_are_refused(state: dict, words: str) -> None:
    robot = cc.robots.rover_arm()
    with pytest.raises(ConcurError, match=re.escape(words)):
        cc.Mechanism(robot.name, robot.bodies, robot.wheels, keyframes={"home": Keyframe(**state)})
