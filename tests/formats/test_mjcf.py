"""Robots from MJCF: dynamics against MuJoCo's own, rules, sidecar, and what is refused."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError
from concur.formats import IgnoredWarning
from concur.mechanism import Body, Drive, Inertia, Mimic, joints
from concur.multibody import Mechanism
from tests.oracles import EVERY_JOINT, assert_close, random_robot, random_velocity

NO_SCREW = tuple(kind for kind in EVERY_JOINT if kind != "Helical")

ARM = """<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="0 0 -3"/>
  <worldbody>
    <body name="table"><geom size="1" contype="0" conaffinity="0"/></body>
    <body name="base" pos="0 0 0.5" euler="0.1 0.2 0.3">
      <inertial mass="2" pos="0 0.1 0" diaginertia="0.1 0.1 0.1"/>
      <body name="upper" pos="0.1 0 0.2" euler="0.4 0 0.1">
        <joint name="shoulder" axis="0 1 0" pos="0.05 0.02 0.1" ref="0.3" range="-1 2"/>
        <geom type="box" size="0.1 0.2 0.3" euler="0 0.3 0" contype="0" conaffinity="0"/>
        <body name="fore" pos="0.3 0 0">
          <joint name="slide" type="slide" axis="1 0 1" pos="0.3 0.2 0.1" range="0.1 0.4"/>
          <joint name="bend" type="hinge" axis="0 0 1" pos="0 0.1 0"/>
          <inertial mass="1" pos="0.1 0 0" fullinertia="0.02 0.03 0.04 0.001 0 0.002"/>
          <body pos="0.2 0 0">
            <joint name="wrist" type="ball" pos="0 0 0.05"/>
            <inertial mass="0.5" pos="0 0 0.1" diaginertia="0.002 0.003 0.004"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" gear="10" ctrlrange="-2 3"/>
    <position joint="slide" kp="100" forcerange="-40 50"/>
  </actuator>
</mujoco>
"""


def written(folder: Path, text: str, side: str | None = None) -> Path:
    (folder / "robot.xml").write_text(text, encoding="utf-8")
    if side is not None:
        (folder / "robot.toml").write_text(side, encoding="utf-8")
    return folder / "robot.xml"


def compare(path: Path, robot: Mechanism, reference: np.ndarray | float = 0.0) -> None:
    """Mass matrix and inverse dynamics of MuJoCo, whose coordinates may have another zero."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    assert (order.nq, order.nv) == (model.nq, model.nv)
    rng = np.random.default_rng(1)
    for _ in range(2):
        q = robot.random(rng)
        v, vdot = random_velocity(robot, rng), random_velocity(robot, rng)
        data.qpos[:], data.qvel[:] = order.to_q(q) + reference, order.to_v(q, v)
        mujoco.mj_forward(model, data)
        mass, T = np.zeros((model.nv, model.nv)), order.velocity_map(q)
        mujoco.mj_fullM(model, data, mass)
        assert_close(T.T @ mass @ T, robot.mass_matrix(q), 1e-9)
        force = mass @ order.to_acceleration(q, v, vdot) + data.qfrc_bias
        assert_close(order.from_force(q, force), robot.inverse_dynamics(q, v, vdot), 1e-9)


def test_dynamics_are_those_of_mujoco(tmp_path: Path) -> None:
    path = written(tmp_path, ARM)
    robot = cc.load(path)
    assert [body.name for body in robot.bodies] == ["base", "upper", "slide", "fore", "body5"]
    compare(path, robot, np.array([0.3, 0, 0, 0, 0, 0, 0]))
    upper, slide = robot.bodies[1], robot.bodies[2]
    assert upper.limits == pytest.approx(np.array([[-1.3, 1.7]]))
    assert slide.limits == ((0.1, 0.4),)
    assert upper.torque_limit == (20.0,)
    assert slide.torque_limit == (40.0,)
    assert robot.actuated == ("upper", "slide")
    assert robot.gravity == (0.0, 0.0, -3.0)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    bases = ("Free", "Planar", "Fixed", "Revolute", "Spherical", "Cylindrical")
    random = [random_robot(k, NO_SCREW, base, limits=k % 2 == 0) for k, base in enumerate(bases)]
    for robot in [*random, cc.robots.servicer(), cc.robots.two_handed_spacecraft()]:
        path = tmp_path / "robot.xml"
        robot.save(path)
        again = cc.load(path)
        compare(path, again)
        assert len(again.actuated_freedoms) == len(robot.actuated_freedoms)
        if robot.limits.size and not np.isfinite(robot.limits).any():
            # Motors of planar and free joints make them chains.
            Mechanism("passive", robot.bodies, actuated=[]).save(path)
            again = cc.load(path)
            kinds = [type(body.joint) for body in again.bodies]
            assert kinds == [type(again.bodies[again.index(b.name)].joint) for b in again.bodies]
            assert sorted(map(str, kinds)) == sorted(str(type(b.joint)) for b in robot.bodies)


def test_couplings_are_joints_that_follow(tmp_path: Path) -> None:
    text = ARM.replace(
        "<actuator>",
        '<equality><joint joint1="bend" joint2="shoulder" polycoef="0.2 -2 0 0 0"/></equality>'
        "<actuator>",
    )
    robot = cc.load(written(tmp_path, text))
    assert robot.mimics == (Mimic("fore", "upper", -2.0, 0.2),)
    heavy = Inertia(1.0, moments=(1, 1, 1))
    hinges = [Body(x, joints.Revolute((0, 0, 1)), "base", inertia=heavy) for x in "ab"]
    base = Body("base", joints.Free(), inertia=heavy)
    gripper = Mechanism("gripper", [base, *hinges], mimics=[Mimic("b", "a", -1.0, 0.1)])
    again = cc.load(gripper.save(tmp_path / "again.xml")[0])
    assert (again.mimics, again.actuated) == (gripper.mimics, ("a",))
    bent = text.replace('"0.2 -2 0 0 0"', '"0.2 -2 1 0 0"')
    with pytest.raises(DescriptionError, match="a linear coupling of two joints"):
        cc.load(written(tmp_path, bent))


GEARS = """<tendon><fixed name="t" range="0 1"><joint joint="shoulder" coef="2"/>
  <joint joint="bend" coef="-3"/></fixed></tendon>
  <actuator>
    <motor name="both" tendon="t" gear="5" ctrlrange="-2 2" forcerange="-9 9"/>
    <motor joint="slide" gear="2" ctrlrange="-4 4" forcerange="-3 3"/>
    <motor name="own" joint="bend" gear="7" forcerange="-4 4"/>
    <motor name="jet" site="nozzle" gear="0 1 0 0 0 2" ctrlrange="-8 8"/>
"""


def test_actuators_of_tendons_and_sites_are_drives(tmp_path: Path) -> None:
    head, _, rest = ARM.partition("<actuator>")
    head = head.replace(
        '<joint name="wrist"',
        '<site name="nozzle" pos="1 2 3" euler="0.5 1 2"/>\n<joint name="wrist"',
    )
    path = written(tmp_path, head + GEARS + rest[rest.index("</actuator>") - 2 :])
    with pytest.warns(IgnoredWarning, match="limits of tendons"):
        robot = cc.load(path)
    assert robot.control_names == ("slide", "both", "own", "jet")
    assert robot.control_limits.tolist() == [6.0, 2.0, 4.0, 8.0]
    assert robot.drives[0].joints == {"upper": 10.0, "fore": -15.0}
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q, u = robot.random(np.random.default_rng(1)), np.array([0.7, 0.3, -0.4, 2.0])
    data.qpos[:] = order.to_q(q) + np.array([0.3, 0, 0, 0, 0, 0, 0])
    data.ctrl[:] = [u[1], u[0] / 2.0, u[2], u[3]]
    mujoco.mj_forward(model, data)
    assert_close(order.from_force(q, data.qfrc_actuator), robot.actuation(q) @ u, 1e-12)


def test_motors_of_planar_joints_push_along_fixed_axes(tmp_path: Path) -> None:
    robot = cc.load(cc.robots.orbital_crawler().save(tmp_path / "robot.xml")[0])
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q, u = robot.random(np.random.default_rng(1)), np.arange(1.0, model.nu + 1)
    data.qpos[:], data.ctrl[:] = order.to_q(q), u
    mujoco.mj_forward(model, data)
    assert_close(order.from_force(q, data.qfrc_actuator), robot.actuation(q) @ u, 1e-12)


def test_drives_that_are_saved_come_back(tmp_path: Path) -> None:
    heavy = Inertia(1.0, (0.1, 0.0, 0.0), (1, 1, 1))
    base = Body("base", joints.Free(), inertia=heavy)
    hinges = [
        Body(x, joints.Revolute((0, 0, 1)), "base", inertia=heavy, torque_limit=6.0) for x in "abc"
    ]
    drives = [
        Drive("sum", {"a": 2.0, "b": 1.5}, torque_limit=4.0),
        Drive("difference", {"a": 2.0, "b": -1.5}),
        Drive("c", {"c": 3.0}),
        Drive("jet", None, "a", (0, 1, 0, 0, 0, 0.2), (0.5, 0, 0), 2.0),
    ]
    robot = Mechanism("geared", [base, *hinges], drives=drives)
    again = cc.load(robot.save(tmp_path / "robot.xml")[0])
    assert again.drives == (*drives[:2], Drive("c", {"c": 3.0}, torque_limit=2.0), drives[3])
    assert (again.actuated, again.control_names) == (robot.actuated, robot.control_names)
    assert again.control_limits.tolist() == robot.control_limits.tolist()


def test_sidecar_gives_base_and_wheels(tmp_path: Path) -> None:
    rover = cc.robots.rover_arm()
    bare = Mechanism("rover", rover.bodies, gravity=rover.gravity)
    path = bare.save(tmp_path / "robot.xml")[0]
    joint_names = ", ".join(f'"{name}"' for name in rover.actuated)
    side = f'name = "mine"\nactuated = [{joint_names}]\n'
    for wheel in rover.wheels:
        side += f'[[wheels]]\nbody = "{wheel.body}"\nradius = {wheel.radius}\n'
    (tmp_path / "robot.toml").write_text(side)
    robot = cc.load(path)
    assert robot.name == "mine"
    assert robot.actuated == rover.actuated
    q = rover.random(np.random.default_rng(1))
    assert_close(robot.constraints(q), rover.constraints(q), 1e-12)
    free = written(tmp_path, ARM, 'base = "free"')
    assert isinstance(cc.load(free).base.joint, joints.Free)
    for side, message in (
        ('actuated = ["x"]', "a joint that moves"),
        ('bas = "free"', "unknown"),
        ('base = "x"', "fixed"),
        ("[[bodies]]", "is its sidecar"),
    ):
        with pytest.raises(DescriptionError, match=message):
            cc.load(written(tmp_path, ARM, side))
    hinged = ARM.replace('<body name="upper"', '<joint name="x"/><body name="upper"')
    with pytest.raises(DescriptionError, match="connects it to the world"):
        cc.load(written(tmp_path, hinged, 'base = "free"'))


def test_forces_that_models_lack_are_ignored_with_a_warning(tmp_path: Path) -> None:
    for old, new, message in (
        (' range="-1', ' damping="1" range="-1', "damping"),
        (' range="-1', ' armature="0.1" range="-1', "armature"),
        (' range="-1', ' stiffness="1" range="-1', "springs"),
        ('contype="0" conaffinity="0"', "", "contacts"),
        ('type="ball"', 'type="ball" range="0 1"', "limits of the ball joint `wrist`"),
    ):
        with pytest.warns(IgnoredWarning, match=message):
            cc.load(written(tmp_path, ARM.replace(old, new)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cc.load(written(tmp_path, ARM))


def test_what_is_refused_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ends = '<actuator>\n    <motor joint="shoulder"'
    for old, new, message in (
        (
            "</worldbody>",
            '<site name="s"/><site name="t" pos="1 0 0"/></worldbody>'
            '<tendon><spatial><site site="s"/><site site="t"/></spatial></tendon>',
            "tendons that are led through space",
        ),
        ("<actuator>", '<equality><weld body1="fore"/></equality><actuator>', "equality"),
        ("<actuator>", '<equality><joint joint1="bend"/></equality><actuator>', "equality"),
        (ends, '<actuator>\n    <motor body="fore"', "line 24: .* MuJoCo compiles"),
        (
            "</worldbody>\n  <actuator>",
            '<site name="s"/></worldbody><actuator><motor name="jet" site="s"/>',
            "actuator 0 `jet`: expected .* a site on a body",
        ),
        ("</actuator>", '<adhesion body="fore" ctrlrange="0 1"/></actuator>', "an actuator of a"),
        (ends, '<actuator>\n    <motor joint="wrist"', "each freedom of a ball joint"),
        ('<body name="fore"', '<body name="fore" gravcomp="1"', "gravity compensation"),
        ('name="fore"', 'name="upper"', "MuJoCo compiles"),
        ('mass="1"', 'mass="-1"', "MuJoCo compiles"),
        ('pos="0.3 0 0"', 'pos="nan 0 0"', "a number that is NaN"),
        ('mass="1"', 'mass="1e12"', "within 1e9"),
        ('mass="2"', 'mass="0"', "body `base`.* no moments of inertia on a body without mass"),
        ("</body>", "", "MuJoCo compiles"),
        ("<worldbody>", "<worldbody><composite/>", "<composite>"),
        ('model="arm"', f'model="{"a" * 300}"', "a name of the model"),
        ('name="fore"', f'name="{"a" * 300}"', "at most 255"),
    ):
        assert old in ARM
        with pytest.raises(ConcurError, match=message) as caught:
            cc.load(written(tmp_path, ARM.replace(old, new, 1)))
        assert "robot.xml" in str(caught.value)
    still = re.sub(r"<joint [^>]*/>", "", ARM).partition("<actuator>")[0] + "</mujoco>"
    with pytest.raises(DescriptionError, match="a robot with joints"):
        cc.load(written(tmp_path, still))
    for text, message in (
        ("", "no element <mujoco>"),
        ("<robot/>", r"ending \.urdf"),
        ("<!-- <mujoco> -->", "no element"),
    ):
        with pytest.raises(DescriptionError, match=message):
            cc.load(written(tmp_path, text))
    with pytest.raises(DescriptionError, match="no file of this name"):
        cc.load(tmp_path / "none.xml")
    with pytest.raises(DescriptionError, match="keep_fixed"):
        cc.load(written(tmp_path, ARM), keep_fixed=True)
    assert not Path("MUJOCO_LOG.TXT").exists()  # MuJoCo's own report of warnings
