"""Robots to files: TOML comes back equal, URDF and MJCF mean the same to other libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, DescriptionError
from concur.robot import Body, Inertia, Mechanism, Mimic, Motor, Wheel, joints
from concur.simulation import Plant
from concur.writers import to_mjcf, to_toml, to_urdf
from tests.oracles import EVERY_JOINT, assert_close, random_robot, random_velocity

NO_SCREW = tuple(kind for kind in EVERY_JOINT if kind != "Helical")
SHIPPED = {name: getattr(cc.robots, name)() for name in cc.robots.__all__}


def mechanism(*bodies: Body, **options: object) -> Mechanism:
    return Mechanism("robot", bodies, **options)  # type: ignore[arg-type]


def hinge(name: str, parent: str | None = None, **options: object) -> Body:
    heavy = Inertia(1.0, moments=(1, 1, 1))
    return Body(name, joints.Revolute((0, 0, 1)), parent, inertia=heavy, **options)  # type: ignore[arg-type]


def test_toml_keeps_every_name(tmp_path: Path) -> None:
    """Names that stand for nothing elsewhere are names like all others."""
    robot = mechanism(
        Body("base", joints.Fixed()),
        hinge("other", "base"),
        hinge("no joint", "base"),
        hinge("c", "base"),
        motors=[Motor("no motor", {"no joint": 1.0})],
        mimics=[Mimic("c", "other", 1.0)],
    )
    robot.save(tmp_path / "robot.toml")
    assert cc.load(tmp_path / "robot.toml") == robot


def geared() -> Mechanism:
    """A wrist of two motors, a thruster, and a finger that follows another."""
    return mechanism(
        Body("base", joints.Free(), inertia=Inertia(9.0, moments=(1, 1, 1))),
        hinge("a", "base"),
        hinge("b", "a"),
        hinge("left", "b"),
        hinge("right", "b"),
        motors=[
            Motor("sum", {"a": 2.0, "b": 1.5}, torque=4.0),
            Motor(
                *("difference", {"a": 2.0, "b": -1.5}, 1.0, 1e-4),
                **{"stator": "base", "torque": 5.0, "speed": 90.0, "no_load_speed": 120.0},
                **{"stall_torque": 0.7, "viscous": 1e-3, "coulomb": 0.01, "stribeck": 0.02},
                **{"friction_at": "joint", "efficiency": 0.8, "torque_constant": 0.05},
                **{"encoder": 4096, "encoder_at": "joint", "continuous": 0.2, "thermal_time": 30.0},
            ),
            Motor("jet", body="base", wrench=(0, 1, 0, 0, 0, 0.2), point=(0.5, 0, 0)),
        ],
        mimics=[Mimic("right", "left", -1.0, 0.1)],
    )


def test_drives_and_followers_are_written(tmp_path: Path) -> None:
    robot = geared()
    for name in ("robot.toml", "other.urdf"):
        again = cc.load(robot.save(tmp_path / name)[0])
        assert (again.motors, again.mimics) == (robot.motors, robot.mimics)
        assert again.actuated == robot.actuated == ("left",)
    assert cc.load(tmp_path / "robot.toml") == robot
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q, u = robot.random(np.random.default_rng(1)), np.array([0.3, 1.0, 2.0, 3.0])
    data.qpos[:], data.ctrl[:] = order.to_q(q), u
    mujoco.mj_forward(model, data)
    tau = np.zeros(robot.nv)
    tau[robot.v_slice("a").start] = 2.0 * (u[1] + u[2])
    tau[robot.v_slice("b").start] = 1.5 * (u[1] - u[2])
    tau[robot.v_slice("left").start] = u[0]
    tau[:6] = [0, 3.0, 0, 0, 0, 3.0 * (0.2 + 0.5)]
    assert_close(order.from_force(q, data.qfrc_actuator), tau, 1e-12)
    assert model.actuator("sum").ctrlrange.tolist() == [-4.0, 4.0]
    ball = Body("b", joints.Spherical(), "a", inertia=Inertia(1.0, moments=(1, 1, 1)))
    odd = mechanism(hinge("a"), ball, motors=[Motor("d", {"b[wx]": 1.0})])
    for writer in (to_urdf, to_mjcf):
        with pytest.raises(DescriptionError, match="joints with one freedom"):
            writer(odd)


@pytest.mark.slow
def test_toml_gives_an_equal_robot_hundreds_of_times(tmp_path: Path) -> None:
    for seed in range(4, 200):
        robot = random_robot(seed, limits=True)
        robot.save(tmp_path / "robot.toml")
        assert cc.load(tmp_path / "robot.toml") == robot


def test_toml_keeps_every_field_of_a_wheel(tmp_path: Path) -> None:
    robot = SHIPPED["rover_arm"]
    ground = robot.ground_height
    wheels = [
        replace(robot.wheels[0], axis=(0, 1, 0), center=(0.0, 0.01, 0.0), ground=ground),
        replace(robot.wheels[1], kind="mecanum", roller_angle=0.7),
        Wheel(robot.base.name, 0.0, "slider", axis=(0, 1, 0)),
    ]
    changed = Mechanism('a "rover" with \\ and ä', robot.bodies, wheels, robot.gravity)
    path = tmp_path / "robot.toml"
    changed.save(path)
    assert cc.load(path) == changed


def urdf_robots() -> list[Mechanism]:
    """Robots that URDF can express: those of the package, and one for each kind of base."""
    bases = ("Free", "Planar", "Fixed", "Revolute", "Spherical", "Cylindrical")
    random = [random_robot(k, NO_SCREW, base, limits=True) for k, base in enumerate(bases)]
    return [*random, *SHIPPED.values()]


@pytest.mark.extended
@pytest.mark.parametrize(
    "part", [slice(0, 10), pytest.param(slice(10, None), marks=pytest.mark.slow)]
)
def test_urdf_gives_the_same_dynamics(part: slice, tmp_path: Path) -> None:
    for robot in urdf_robots()[part]:
        path = tmp_path / "robot.urdf"
        assert robot.save(path) == (path, path.with_suffix(".toml"))
        again = cc.load(path, keep_fixed=True)
        own, theirs = (interop.pinocchio(r, urdf=True) for r in (robot, again))
        rng = np.random.default_rng(1)
        q, v = robot.random(rng), random_velocity(robot, rng)
        there = theirs.from_q(own.to_q(q))
        rates = theirs.from_v(there, own.to_v(q, v))
        energy = again.kinetic_energy(there, rates)
        assert energy == pytest.approx(robot.kinetic_energy(q, v), rel=1e-9)
        for body in robot.bodies:
            assert_close(again.pose(there, body.name), robot.pose(q, body.name), 1e-9)
        assert again.gravity == robot.gravity
        assert again.wheels == robot.wheels
        assert len(again.actuated_freedoms) == len(robot.actuated_freedoms)
        for body in robot.actuated:
            mover = again.bodies[again.index(body)]
            assert {body, mover.joint_name} & {*again.actuated}
        for body in robot.bodies:
            if body.joint.nv == 1:
                other = again.bodies[again.index(body.name)]
                for name in ("limits", "speed_limit", "torque_limit"):
                    assert getattr(other, name) == getattr(body, name)


def test_mjcf_has_limits_and_motors() -> None:
    robot = mechanism(
        Body("base", joints.Free(), inertia=Inertia(9.0, moments=(1, 1, 1))),
        hinge("arm", "base", limits=(-1.0, 2.0), torque_limit=3.0),
        hinge("hand", "arm", limits=(-np.inf, 0.5)),
        hinge("free", "arm"),
        gravity=(0, 0, -1.6),
        actuated=["hand", "arm"],
    )
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, 2e-3))
    assert (model.nq, model.nv, model.nu) == (10, 9, 2)
    assert_close(model.opt.gravity, [0, 0, -1.6], 0.0)
    assert model.opt.timestep == 2e-3
    assert model.joint("arm").range.tolist() == [-1.0, 2.0]
    assert model.joint("hand").range[1] == 0.5
    assert [bool(x) for x in model.jnt_limited] == [False, True, True, False]
    assert [model.actuator(k).name for k in range(2)] == ["arm", "hand"]
    assert model.actuator("arm").ctrlrange.tolist() == [-3.0, 3.0]
    assert not model.actuator("hand").ctrllimited[0]


def test_points_and_plates_have_the_least_inertia_that_mujoco_takes() -> None:
    for moments in ((0, 0, 0), (1, 2, 3), (0, 1, 1), (1, 1, 2 + 1e-9)):
        robot = mechanism(replace(hinge("a"), inertia=Inertia(2.0, (1, 0, 0), moments)))
        model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
        assert_close(np.sort(model.body_inertia[1]), np.sort(moments), 2e-9)


def test_motors_of_a_ball_act_in_body_axes() -> None:
    robot = cc.robots.two_handed_spacecraft()
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    rng = np.random.default_rng(3)
    q, u = robot.random(rng), rng.normal(size=model.nu)
    data.qpos[:], data.ctrl[:] = order.to_q(q), u
    mujoco.mj_forward(model, data)
    tau = np.zeros(robot.nv)
    tau[list(robot.actuated_freedoms)] = u
    assert_close(order.from_force(q, data.qfrc_actuator), tau, 1e-12)


def test_a_rover_in_mujoco_drives_as_the_plant_does() -> None:
    robot = SHIPPED["rover_arm"]
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
    data, order, plant = mujoco.MjData(model), interop.mujoco(robot), Plant(robot)
    q, v = robot.neutral(), np.zeros(robot.nv)
    data.qpos[:] = order.to_q(q)
    u, h = np.array([0.6, 0.4, 0.0, 0.0, 0.0]), 1e-3
    assert order.nq == robot.nq + 1
    start = robot.bias(q, v)[list(robot.actuated_freedoms)]
    for _ in range(1000):
        vdot, _ = plant.acceleration(q, v, start + u)
        q = robot.integrate(q, h * v)
        v = v + h * vdot
        data.ctrl[:] = start + u
        mujoco.mj_step(model, data)
    there = order.from_q(data.qpos)
    assert data.ncon == len(robot.wheels)
    assert abs(data.qpos[3]) < 1e-3  # the base stands on its wheels
    assert np.linalg.norm(q[:2]) > 0.02
    assert_close(there[:3], q[:3], 0.03)


def test_what_a_format_cannot_express_is_refused() -> None:
    screw = random_robot(1)
    ball = SHIPPED["rover_arm"]
    mecanum, slider = SHIPPED["mecanum_arm"], SHIPPED["car_arm"]
    weightless = Mechanism("ice", ball.bodies, ball.wheels)
    massless = Body("b", joints.Revolute((1, 0, 0)), "a")
    light = mechanism(
        hinge("a"), massless, replace(hinge("c", "b"), joint=joints.Revolute((0, 1, 0)))
    )
    twice = mechanism(
        Body("a", joints.Cylindrical((0, 0, 1)), inertia=Inertia(1.0, moments=(1, 1, 1))),
        hinge("a_travel", "a"),
    )
    mass = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    rolling = Mechanism(
        "ball",
        [
            Body("base", joints.Planar(), inertia=mass),
            Body("ball", joints.Spherical(), "base", inertia=mass),
        ],
        [Wheel("ball", 0.1, "rubber_ball")],
    )
    sliding = replace(rolling, bodies=[Body("base", joints.Sliding((0, 0, 1))), rolling.bodies[1]])
    cases = [
        (to_urdf, rolling, "wheel `ball`: .* on joints that URDF has"),
        (to_urdf, sliding, "under a base on a Planar joint"),
        (to_mjcf, screw, "Helical"),
        (to_urdf, screw, "Helical"),
        (to_mjcf, mecanum, "mecanum"),
        (to_mjcf, slider, "slider"),
        (to_mjcf, weightless, "gravity that presses"),
        (to_mjcf, light, "a mass on each moving body"),
        (to_mjcf, mechanism(hinge("world")), "`world`, which the format reserves"),
        (to_urdf, mechanism(hinge("world")), "`world` twice"),
        (to_urdf, twice, "`a_travel` twice"),
        (to_toml, mechanism(hinge("a\nb")), "without control characters"),
        (to_toml, mechanism(hinge("a" * 256)), "at most 255"),
        (to_toml, mechanism(hinge("a"), gravity=(0, 0, 1.1e9)), "within 1e9"),
        (
            to_mjcf,
            mechanism(replace(hinge("a"), inertia=Inertia(2e9, moments=(1, 1, 1)))),
            "within 1e9",
        ),
    ]
    for writer, robot, message in cases:
        with pytest.raises(DescriptionError, match=message):
            writer(robot)
    # On both sides of the bounds.
    to_toml(mechanism(hinge("a" * 255), gravity=(0, 0, 1e9)))


def test_bad_paths(tmp_path: Path) -> None:
    robot = SHIPPED["free_flyer"]
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for path, message in (
        (tmp_path / "robot.json", r"the ending `\.json`"),
        (tmp_path / "robot", "without ending"),
        (tmp_path / "none" / "robot.toml", "a file that can be written"),
        (folder, "a file that can be written"),
        (str(tmp_path / "a\0.toml"), "a file that can be written"),
        (None, "the path of a file"),
        (3, "the path of a file"),
    ):
        with pytest.raises(ConcurError, match=message):
            robot.save(path)  # type: ignore[arg-type]
    assert [file.name for file in tmp_path.iterdir()] == ["folder.toml"]


def test_a_write_that_fails_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot, link = SHIPPED["free_flyer"], tmp_path / "link.urdf"
    robot.save(tmp_path / "a.urdf")
    link.symlink_to("a.urdf")
    (tmp_path / "a.urdf").chmod(0o640)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        full = iter([None, OSError(28, "No space left on device")])

        def sync(number: int) -> None:
            if error := next(full):
                raise error

        patch.setattr("concur.files.os.fsync", sync)
        with pytest.raises(ConcurError, match="No space left"):
            SHIPPED["station_arm"].save(tmp_path / "a.urdf")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    SHIPPED["station_arm"].save(link)
    assert link.is_symlink()
    assert (tmp_path / "a.urdf").read_bytes() != before["a.urdf"]
    assert (tmp_path / "a.urdf").stat().st_mode & 0o777 == 0o640


def test_a_sidecar_replaces_sidecars_only(tmp_path: Path) -> None:
    robot = SHIPPED["free_flyer"]
    robot.save(tmp_path / "a.urdf")
    robot.save(tmp_path / "a.urdf")
    robot.save(tmp_path / "b.toml")
    for text in (None, "x = [", "\x00", '[project]\nname = "x"'):
        if text is not None:
            (tmp_path / "b.toml").write_text(text)
        with pytest.raises(DescriptionError, match="no file, or a sidecar"):
            robot.save(tmp_path / "b.urdf")
        assert not (tmp_path / "b.urdf").exists()
