"""A rover on contacts in MuJoCo: it stands as statics says, follows its law, and slips on ice."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import concur as cc
from concur import interop, simulation
from concur.errors import ConcurError, DescriptionError, SimulationError
from concur.outputs import references
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.simulation import ContactRun, Tolerances, mujoco_run
from concur.simulation._contact_model import ContactModel
from concur.writers import Contacts, to_mjcf
from tests.oracles import Pinocchio, random_rover, random_velocity

CASTER = {"caster": (0.5, 0.0, 7.0)}
TASK = cc.load_task("examples/rover_arm.toml")
POINTS = [(0.0, 0.25), (0.0, -0.25), (0.5, 0.0)]
LIMITS = Tolerances(evaluate_after=4.0, final_error=0.02)


def drive(duration: float, friction: float = 1.0, **options: object) -> ContactRun:
    """The task of the rover with an arm, on its wheels and a caster."""
    start = TASK.q0, TASK.s0
    options = {"supports": CASTER, "friction": friction, **options}
    return mujoco_run(TASK.servo, TASK.reference, duration, *start, **options)


@lru_cache
def stand(world: tuple[tuple[str, float], ...] = ()) -> ContactRun:
    """The rover holds its posture."""
    servo = TASK.servo
    held = references.hold(np.asarray(servo.output(TASK.q0)))
    worlds = dict(world)
    return mujoco_run(servo, held, 0.1, TASK.q0, np.zeros(5), supports=CASTER, world=worlds)


def statics(robot: Mechanism, points: list[tuple[float, float]]) -> np.ndarray:
    """Loads of three points that balance the weight, by hand over poses of Pinocchio."""
    oracle, q = Pinocchio(robot), np.array(TASK.q0)
    q[:3] = 0.0
    moment = np.zeros(3)
    for body in robot.bodies:
        pose = oracle.pose(q, body.name)
        moment += body.inertia.mass * (pose @ np.array([*body.inertia.com, 1.0]))[:3]
    balance = np.vstack([np.ones(3), np.array(points).T])
    return 9.81 * np.linalg.solve(balance, [robot.total_mass, *moment[:2]])


def test_a_rover_at_rest_stands_on_its_loads_and_does_not_move() -> None:
    found = stand()
    assert found.names == ("left_wheel", "right_wheel", "caster")
    assert_allclose(found.load, [statics(TASK.robot, POINTS)] * 101, rtol=0.01)
    assert np.ptp(found.height) < 1e-8
    assert -1e-5 < found.height.max() < 0.0
    assert found.tilt.max() < 2e-5
    assert np.abs(found.run.v).max() < 1e-4


def test_a_world_has_its_own_loads_and_leans_on_a_larger_wheel() -> None:
    chassis, *others = TASK.robot.bodies
    inertia = replace(chassis.inertia, mass=chassis.inertia.mass + 10.0)
    heavy = replace(TASK.robot, bodies=[replace(chassis, inertia=inertia), *others])
    found = stand((("chassis.inertia.mass", 10.0),))
    assert_allclose(found.load, [statics(heavy, POINTS)] * 101, rtol=0.01)
    # The larger wheel lifts the left side by 5 mm, half of it in the middle of the axle.
    found = stand((("left_wheel.radius", 0.005),))
    assert found.tilt[0] == pytest.approx(np.hypot(0.01, 0.005), rel=0.01)
    assert found.height[0] == pytest.approx(0.0025, rel=0.01)


@pytest.mark.extended
def test_the_rover_follows_on_contacts_and_the_wheels_do_not_slip() -> None:
    found = drive(4.0)
    late = found.run.t >= 3.5
    for norm in found.run.error_norms.values():
        assert norm[0] > 0.2
        assert norm[late].max() < 0.02
    assert found.slip.max() < 1e-4
    assert found.load.min() > 40.0
    assert np.ptp(found.height) < 1e-6
    assert np.abs(found.run.energy_balance).max() < 0.01
    slips = [one for one in found.findings(LIMITS) if one.quantity.startswith("slip speed")]
    assert [one.holds for one in slips] == [True, True]
    assert "slip" in str(found)


def test_slip_on_a_smooth_floor_is_a_finding() -> None:
    found = drive(0.3, friction=0.05)
    told = {one.quantity: one for one in found.findings(LIMITS)}
    assert told["slip speed of left_wheel, largest"].holds is False
    assert told["slip speed of right_wheel, largest"].value > 0.1
    # Friction does not exceed its limit: it changes the momentum of the robot.
    momentum = found.run.momentum[:, :2]
    force = np.diff(momentum, axis=0) / 1e-3
    assert np.linalg.norm(force, axis=1).max() < 1.05 * 0.05 * found.load[:, :2].sum(axis=1).max()
    # The limit counts.
    speed = told["slip speed of left_wheel, largest"].value
    for limit, holds in ((0.99 * speed, False), (1.01 * speed, True)):
        assert found.findings(LIMITS, slip=limit)[0].holds is holds
    # Loads of sliding wheels chatter, but on average the wheels stay on the ground.
    assert found.load.min() == 0.0
    for name, least in (("left_wheel", 60.0), ("right_wheel", 10.0), ("caster", 120.0)):
        load = told[f"load of {name}, smallest"]
        assert load.value > least
        assert not load.place
    for rows, note in ((19, ""), (20, "lifts off")):
        load = np.ones_like(found.load)
        load[50 : 50 + rows, 0] = 0.0
        told = {one.quantity: one for one in replace(found, load=load).findings(LIMITS)}
        assert told["load of left_wheel, smallest"].place == note
    # One smooth wheel suffices.
    rough = {"left_wheel": 1.0, "right_wheel": 0.01}
    left, right = drive(0.2, friction=rough).slip.max(axis=0)  # type: ignore[arg-type]
    assert right > 0.05 > left


def placed(seed: int) -> tuple[Mechanism, Contacts]:
    """A random rover on a slope whose normal is also the way up, with one caster."""
    case = random_rover(seed)
    turn = Rotation.from_rotvec(np.random.default_rng(seed).normal(size=3))
    base, *others = case.robot.bodies
    pose = Pose((0.3, -0.2, 0.1), tuple(turn.as_quat()))
    gravity = tuple(-9.81 * turn.as_matrix()[:, 2])
    robot = Mechanism("slope", [replace(base, placement=pose), *others], case.robot.wheels, gravity)
    # The centre of mass may be anywhere: three casters around carry it.
    supports = {f"caster {k}": (3 * np.cos(k), 3 * np.sin(k), 0.0) for k in (0.0, 2.0, 4.0)}
    return robot, Contacts(supports)


@pytest.mark.parametrize("seed", range(3))
def test_the_free_base_in_the_plane_is_the_planar_robot(seed: int) -> None:
    robot, contacts = placed(seed)
    order = interop.mujoco(robot, free_base=True)
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, contacts=contacts))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    q, v, vdot = robot.random(rng), *(random_velocity(robot, rng) for _ in range(2))
    assert (model.nq, model.nv) == (order.nq, order.nv) == (7 + 5, 6 + 5)
    data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
    mujoco.mj_forward(model, data)
    mass, onto = np.zeros((order.nv, order.nv)), order.velocity_map(q)
    mujoco.mj_fullM(model, data, mass)
    assert_allclose(onto.T @ mass @ onto, robot.mass_matrix(q), rtol=0, atol=1e-10)
    assert_allclose(order.from_q(data.qpos), robot.normalize(q), rtol=0, atol=1e-12)
    assert_allclose(order.from_v(q, data.qvel), v, rtol=0, atol=1e-12)
    # Forces that keep the motion in the plane do no work.
    data.qacc[:] = order.to_acceleration(q, v, vdot)
    force = np.zeros(order.nv)
    mujoco.mj_rne(model, data, 1, force)
    expected = robot.inverse_dynamics(q, v, vdot)
    assert_allclose(order.from_force(q, force), expected, rtol=0, atol=1e-9)
    assert_allclose(order.from_acceleration(q, v, data.qacc), vdot, rtol=0, atol=1e-11)


def test_rolling_is_no_slip_on_slopes_and_balls() -> None:
    mass = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    corners = {f"ball{k}": (np.cos(k), np.sin(k), 0.0) for k in (0, 2, 4)}
    rolling = Mechanism(
        "balls",
        [
            Body("base", joints.Planar(), inertia=mass),
            *(
                Body(name, joints.Spherical(), "base", Pose(at), mass)
                for name, at in corners.items()
            ),
        ],
        [Wheel(name, 0.1, "ball") for name in corners],
        gravity=(0.0, 0.0, -9.81),
    )
    for robot, contacts in (placed(1), placed(2), (rolling, Contacts())):
        model, rng = ContactModel(robot, contacts, 5e-4), np.random.default_rng(3)
        q = np.asarray(robot.random(rng))
        rows = np.asarray(robot.constraints(q))
        v = rng.normal(size=robot.nv)
        for roll, limit in ((v - np.linalg.pinv(rows) @ rows @ v, 1e-4), (v, np.inf)):
            model.place(q, roll)
            slip = model.slips(model.wheel_motions()[None])[0]
            assert slip.max() < limit
            height, tilt = model.lean(model.data.qpos[None])
            assert abs(height[0]) < 1e-5
            assert tilt[0] < 1e-4
            assert_allclose(model.loads().sum(), 9.81 * robot.total_mass, rtol=1e-2)
        assert slip.min() > 1e-2


def test_casters_have_no_friction_and_the_options_are_those_of_contacts() -> None:
    robot = TASK.robot
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, 1e-3, contacts=Contacts(CASTER, 0.3)))
    assert model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    assert (model.opt.timestep, model.opt.impratio) == (1e-3, 100.0)
    placed = ContactModel(robot, Contacts(CASTER, {"left_wheel": 0.3, "right_wheel": 0.4}), 1e-3)
    placed.place(np.asarray(TASK.q0), np.zeros(8))
    found = {
        placed.model.geom(int(pair[1])).name or placed.model.geom(int(pair[0])).name: contact
        for pair, contact in zip(placed.data.contact.geom, placed.data.contact, strict=True)
    }
    assert {name: contact.dim for name, contact in found.items()} == {
        "left_wheel": 3,
        "right_wheel": 3,
        "caster": 1,
    }
    assert found["left_wheel"].friction[0] == 0.3
    assert found["right_wheel"].friction[0] == 0.4


@pytest.mark.extended
def test_runs_that_end_early_keep_what_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drive(0.1, friction=0.05)
    peaks = {
        "DIVERGED": (max(np.abs(whole.run.v).max(), np.abs(whole.run.q).max()), "diverged"),
        "TIPPED": (whole.tilt.max(), "tips over"),
    }
    for name, (peak, words) in peaks.items():
        with monkeypatch.context() as patch:
            patch.setattr(simulation._mujoco, name, 1.01 * peak)
            drive(0.1, friction=0.05)
            patch.setattr(simulation._mujoco, name, 0.99 * peak)
            with pytest.raises(SimulationError, match=words) as error:
                drive(0.1, friction=0.05)
        part = error.value.run
        count = len(part.run.t)
        assert 1 < count <= 101
        assert_allclose(part.slip, whole.slip[:count])
        assert_allclose(part.run.u[: count - 1], whole.run.u[: count - 1])
    blunt = replace(TASK.servo, singular_margin=0.8)
    with pytest.raises(SimulationError, match="status SINGULAR"):
        mujoco_run(blunt, TASK.reference, 0.1, TASK.q0, TASK.s0, supports=CASTER)


def test_what_cannot_stand_or_roll_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mecanum, rover = cc.robots.mecanum_arm(), cc.robots.rover_arm()
    cases = [
        (lambda: drive(0.1, supports={}), SimulationError, "tips over"),
        (lambda: drive(0.1, supports={"behind": (-0.5, 0, 0)}), SimulationError, "tips over"),
        (lambda: drive(0.1, supports={"left_wheel": (0.5, 0, 0)}), DescriptionError, "twice"),
        (lambda: drive(0.1, friction=-0.1), DescriptionError, "0 to 1000"),
        (lambda: drive(0.1, friction=1001.0), DescriptionError, "0 to 1000"),
        (lambda: drive(0.1, friction={"left_wheel": 1.0}), DescriptionError, "right_wheel"),  # type: ignore[arg-type]
        (lambda: drive(0.10005), SimulationError, "whole number"),
        (lambda: drive(0.0), SimulationError, "a time above zero"),
        (lambda: to_mjcf(mecanum, contacts=Contacts()), DescriptionError, "mecanum"),
        (
            lambda: to_mjcf(cc.robots.free_flyer(), contacts=Contacts()),
            DescriptionError,
            "Planar joint",
        ),
        (lambda: interop.mujoco(cc.robots.free_flyer(), free_base=True), DescriptionError, "Free"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words):
            call()
    Contacts(friction=1000.0).of(rover)
    Contacts(friction=0.0).of(rover)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ConcurError, match=r"\[mjcf\]"):
        drive(0.1)
