"""Robots from MJCF: dynamics against MuJoCo's own, rules, sidecar, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError
from concur.robot import Body, Inertia, Mechanism, Mimic, Motor, joints
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


def compare(path: Path, robot: Mechanism) -> None:
    """Poses of bodies, mass matrix and inverse dynamics of MuJoCo at the same coordinates."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    assert (order.nq, order.nv) == (model.nq, model.nv)
    rng = np.random.default_rng(1)
    for _ in range(2):
        q = robot.random(rng)
        v, vdot = random_velocity(robot, rng), random_velocity(robot, rng)
        data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
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
    compare(path, robot)
    upper, slide = robot.bodies[1], robot.bodies[2]
    assert upper.limits == pytest.approx(np.array([[-1.0, 2.0]]))
    assert slide.limits == ((0.1, 0.4),)
    assert upper.torque_limit == (20.0,)
    assert slide.torque_limit == (40.0,)
    assert robot.actuated == ("shoulder", "slide")
    assert robot.gravity == (0.0, 0.0, -3.0)


BASES = ("Free", "Planar", "Fixed", "Revolute", "Spherical", "Cylindrical")


@pytest.mark.by_default(6)
@pytest.mark.parametrize("name", [*BASES, "servicer", "two_handed_spacecraft"])
def test_what_is_saved_comes_back(name: str, tmp_path: Path) -> None:
    if name in BASES:
        k = BASES.index(name)
        robot = random_robot(k, NO_SCREW, name, limits=k % 2 == 0)
    else:
        robot = getattr(cc.robots, name)()
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
    assert robot.mimics == (Mimic("fore", "upper", -2.0, 0.2 + 2.0 * 0.3),)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    for q in (robot.random(np.random.default_rng(1)), robot.random(np.random.default_rng(2))):
        q[robot.q_slice("fore")] = 0.8 - 2.0 * q[robot.q_slice("upper")]
        data.qpos[:] = order.to_q(q)
        mujoco.mj_forward(model, data)
        kind = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        assert kind.any()
        assert_close(data.efc_pos[kind], 0.0, 1e-12)
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


def test_actuators_of_tendons_and_sites_are_motors(tmp_path: Path) -> None:
    head, _, rest = ARM.partition("<actuator>")
    head = head.replace(
        '<joint name="wrist"',
        '<site name="nozzle" pos="1 2 3" euler="0.5 1 2"/>\n<joint name="wrist"',
    )
    path = written(tmp_path, head + GEARS + rest[rest.index("</actuator>") - 2 :])
    robot = cc.load(path)
    assert "`range`: limits of tendons and ball joints (tendon `t`)" in robot.unread
    assert robot.control_names == ("slide", "both", "own", "jet")
    assert robot.control_limits.tolist() == [6.0, 2.0, 4.0, 8.0]
    assert robot.motors[0].joints == {"shoulder": 10.0, "bend": -15.0}
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q, u = robot.random(np.random.default_rng(1)), np.array([0.7, 0.3, -0.4, 2.0])
    data.qpos[:] = order.to_q(q)
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


def test_motors_that_are_saved_come_back(tmp_path: Path) -> None:
    heavy = Inertia(1.0, (0.1, 0.0, 0.0), (1, 1, 1))
    base = Body("base", joints.Free(), inertia=heavy)
    hinges = [
        Body(x, joints.Revolute((0, 0, 1)), "base", inertia=heavy, torque_limit=6.0) for x in "abc"
    ]
    motors = [
        Motor("sum", {"a": 2.0, "b": 1.5}, torque=4.0),
        Motor("difference", {"a": 2.0, "b": -1.5}),
        Motor("c", {"c": 3.0}),
        Motor("jet", body="a", wrench=(0, 1, 0, 0, 0, 0.2), point=(0.5, 0, 0), torque=2.0),
    ]
    robot = Mechanism("geared", [base, *hinges], motors=motors)
    again = cc.load(robot.save(tmp_path / "robot.xml")[0])
    assert again.motors == (*motors[:2], Motor("c", {"c": 3.0}, torque=2.0), motors[3])
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


@pytest.mark.parametrize("refs", [(0.3, 0.0, 0.0), (0.0, 0.2, 0.0), (-1.0, 0.15, 2.0)])
def test_coordinates_are_those_of_mujoco_with_a_reference(refs, tmp_path: Path) -> None:
    """Bodies are where MuJoCo has them at the same coordinates, whatever `ref` of the joints."""
    text = ARM.replace('ref="0.3"', f'ref="{refs[0]}"')
    text = text.replace('range="0.1 0.4"', f'range="0.1 0.4" ref="{refs[1]}"')
    path = written(tmp_path, text.replace('name="bend"', f'name="bend" ref="{refs[2]}"'))
    robot = cc.load(path)
    compare(path, robot)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q = robot.random(np.random.default_rng(4))
    data.qpos[:] = order.to_q(q)
    mujoco.mj_forward(model, data)
    for body in ("upper", "fore", "body5"):
        ours = robot.pose(q, body)
        name = body if body != "body5" else 5
        com = robot.bodies[robot.index(body)].inertia.com
        assert_close(ours[:3, :3] @ com + ours[:3, 3], data.body(name).xipos, 1e-12)


OFF = '<option><flag {}="disable"/></option><worldbody>'
PINNED = '<connect body1="fore" anchor="0 0 0"/>'
LED = (
    '<site name="s"/><site name="t" pos="1 0 0"/></worldbody>'
    '<tendon><spatial><site site="s"/><site site="t"/>'
)

# Change of the file, its element, and what comes: listed owners, or None if it is refused.
ELEMENTS = [
    (' type="hinge"', ' type="hinge" damping="1"', "damping", "joint `bend`"),
    (' type="hinge"', ' type="hinge" frictionloss="1"', "frictionloss", "joint `bend`"),
    (' range="-1', ' damping="1 0.1" range="-1', "damping", "joint `shoulder`"),
    (' type="hinge"', ' type="hinge" armature="0.1"', "armature", None),
    ('type="ball"', 'type="ball" stiffness="1"', "stiffness", None),
    (' range="-1', ' springref="1" range="-1', None, None),
    ('contype="0" conaffinity="0"', "", "geom", "contacts"),
    ('type="ball"', 'type="ball" range="0 1"', "range", "joint `wrist`"),
    ('<body name="fore"', '<body name="fore" gravcomp="1"', "gravcomp", None),
    ('gravity="0 0 -3"', 'gravity="0 0 -3" wind="1 0 0"', "wind", None),
    ('gravity="0 0 -3"', 'gravity="0 0 -3" density="1.2"', "density", None),
    ('gravity="0 0 -3"', 'gravity="0 0 -3" viscosity="1e-5"', "viscosity", None),
    ('name="table"', 'name="table" mocap="true"', "mocap", None),
    ("<actuator>", '<equality><weld body1="fore"/></equality><actuator>', "equality", None),
    ("<actuator>", '<equality><joint joint1="bend"/></equality><actuator>', "equality", None),
    ("<actuator>", f"<equality>{PINNED}</equality><actuator>", "equality", None),
    ("</worldbody>", f"{LED}</spatial></tendon>", "spatial", None),
    (
        "<actuator>",
        '<equality><joint joint1="bend" joint2="slide" active="false"/></equality><actuator>',
        *("active", "coupling of joint `bend`"),
    ),
    *(
        (
            'gravity="0 0 -3"/>',
            f'gravity="0 0 -3" actuatorgroupdisable="{group}"/>',
            *(element, None),
        )
        for group, element in (("0", "actuatorgroupdisable"), ("1 30", None))
    ),
    ("<actuator>", '<sensor><jointpos joint="bend"/></sensor><actuator>', "sensor", "sensors"),
    ("<actuator>", '<keyframe><key ctrl="1 2"/></keyframe><actuator>', "keyframe", "controls"),
    *(
        ("<worldbody>", OFF.format(name), f"flag {name}", None)
        for name in ("constraint", "equality", "limit", "clampctrl", "actuation")
    ),
]


@pytest.mark.parametrize(("old", "new", "element", "listed"), ELEMENTS)
def test_each_element_is_listed_or_refused(old, new, element, listed, tmp_path: Path) -> None:
    """What changes the motion is refused, unless the sidecar says that the model may lack it."""
    plain = cc.load(written(tmp_path, ARM))
    assert plain.unread == (
        "`actuator`: laws of actuators: each is a force or torque here (actuator)",
    )
    path = written(tmp_path, ARM.replace(old, new, 1))
    mujoco.MjModel.from_xml_path(str(path))
    if element is None:
        assert cc.load(path).unread == plain.unread
        return
    if listed is None:
        with pytest.raises(DescriptionError, match="changes its motion") as caught:
            cc.load(path)
        assert caught.value.element == element
        written(tmp_path, ARM.replace(old, new, 1), f'ignore = ["{element}"]')
    robot = cc.load(path)
    (text,) = [x for x in robot.unread if x not in plain.unread and not x.startswith("`site`")]
    assert text.startswith(f"`{element}`: ")
    assert listed is None or listed in text
    assert replace(robot, keyframes={}) == plain or element == "mocap"  # which stands still here


def test_armature_of_driven_joints_is_the_rotor_of_their_motors(tmp_path: Path) -> None:
    tendon = (
        '<tendon><fixed name="t" armature="0.3"><joint joint="bend" coef="2"/></fixed></tendon>'
        "<actuator>"
    )
    text = ARM.replace(' range="-1', ' armature="0.2" range="-1').replace("<actuator>", tendon)
    text = text.replace("</actuator>", '<motor name="m" tendon="t" gear="5"/></actuator>')
    robot = cc.load(path := written(tmp_path, text))
    assert robot.motors[-1].rotor == 0.2
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    for seed in range(3):
        q = robot.random(np.random.default_rng(seed))
        data.qpos[:] = order.to_q(q)
        mujoco.mj_forward(model, data)
        found = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, found)
        rows = np.array([order.from_force(q, row) for row in found])
        found = np.array([order.from_force(q, row) for row in rows.T])
        assert_close(robot.mass_matrix(q), found, 1e-11)
    left = cc.load(written(tmp_path, text, 'ignore = ["armature"]'))
    assert not any(motor.rotor for motor in left.motors)
    assert sorted(left.control_names) == sorted(robot.control_names)


def test_friction_of_driven_joints_is_that_of_their_motors(tmp_path: Path) -> None:
    tendon = (
        '<tendon><fixed name="t" damping="0.3" frictionloss="0.6"><joint joint="bend" coef="2"/>'
        "</fixed></tendon><actuator>"
    )
    text = ARM.replace(' range="-1', ' damping="0.2" frictionloss="0.1" range="-1')
    text = text.replace("<actuator>", tendon)
    text = text.replace("</actuator>", '<motor name="m" tendon="t" gear="-5"/></actuator>')
    robot = cc.load(path := written(tmp_path, text))
    motors = {motor.name: motor for motor in robot.motors}
    assert motors["m"].friction == pytest.approx((0.3 / 25.0, 0.6 / 5.0, 0.0), rel=1e-14)
    assert motors["shoulder"].friction == (0.2, 0.1, 0.0)
    assert not any("damping" in line or "frictionloss" in line for line in robot.unread)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = robot.random(rng), rng.normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
        mujoco.mj_forward(model, data)
        B, level = robot.actuation(q), [m.viscous for m in robot.motors]
        names = list(robot.control_names)
        each = np.zeros(robot.nu)
        each[[names.index(m.name) for m in robot.motors]] = level
        assert_close(order.from_force(q, data.qfrc_passive), -B @ (each * (B.T @ v)), 1e-9)
    # Written and read again they are the same; joints that the sidecar does not drive are listed.
    heavy = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [Body(x, joints.Revolute((0, 0, 1)), y, inertia=heavy) for x, y in ("ab", "ca")]
    sides = {"motor": (0.3, 0.1, 0.0), "joint": (0.3 / 16.0, 0.1 / 4.0, 0.0)}
    for side, expected in sides.items():
        motor = cc.Motor("m", "c", 4.0, viscous=0.3, coulomb=0.1, friction_at=side)
        made = Mechanism("made", [Body("b", joints.Fixed()), *bodies], motors=[motor])
        again = cc.load(made.save(tmp_path / "again.xml")[0])
        assert again.motors[0].friction == pytest.approx(expected, rel=1e-14)
    passive = cc.load(written(tmp_path, text, 'actuated = ["slide"]'))
    assert any("damping" in line and "shoulder" in line for line in passive.unread)


def test_ignore_names_what_the_file_has(tmp_path: Path) -> None:
    for side, text in (('["armature"]', "armature"), ('["damping"]', "damping")):
        path = written(tmp_path, ARM.replace(' range="-1', ' damping="1" range="-1'))
        path.with_suffix(".toml").write_text(f"ignore = {side}")
        with pytest.raises(DescriptionError, match=f"a refused element .*{text}") as caught:
            cc.load(path)
        assert caught.value.field == "ignore"


def test_gravity_that_is_switched_off_is_zero(tmp_path: Path) -> None:
    flag = '<option><flag gravity="disable"/></option><worldbody>'
    path = written(tmp_path, ARM.replace("<worldbody>", flag))
    robot = cc.load(path)
    assert robot.gravity == (0.0, 0.0, 0.0)
    compare(path, robot)


def test_what_is_refused_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ends = '<actuator>\n    <motor joint="shoulder"'
    for old, new, message in (
        (ends, '<actuator>\n    <motor body="fore"', "line 24: .* MuJoCo compiles"),
        (
            "</worldbody>\n  <actuator>",
            '<site name="s"/></worldbody><actuator><motor name="jet" site="s"/>',
            "actuator 0 `jet`: expected .* a site on a body",
        ),
        ("</actuator>", '<adhesion body="fore" ctrlrange="0 1"/></actuator>', "an actuator of a"),
        (ends, '<actuator>\n    <motor joint="wrist"', "each freedom of a ball joint"),
        ('name="fore"', 'name="upper"', "MuJoCo compiles"),
        ('mass="1"', 'mass="-1"', "MuJoCo compiles"),
        ('pos="0.3 0 0"', 'pos="nan 0 0"', "a number that is NaN"),
        ('mass="1"', 'mass="1e12"', "within 1e9"),
        ('ref="0.3"', 'ref="1e300"', "within 1e9"),
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
