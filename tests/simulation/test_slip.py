"""Wheels that slip: rolling as the limit, an explicit law, equilibrium of loads, the ellipse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

import concur as cc
from concur.codegen import Batch, Demand, Rollout
from concur.errors import ConcurError, DescriptionError, SimulationError, UnknownNameError
from concur.simulation import (
    Imperfections,
    Integrator,
    Plant,
    RealPlant,
    Slip,
    Wrench,
    loop_program,
)
from tests.oracles import Pinocchio
from tests.simulation.loops import Stay, changed

EXAMPLES = Path(__file__).parents[2] / "examples"
FRONT = {"front": (0.5, 0.0, -0.1)}
NONE = np.zeros(0)


@pytest.fixture(scope="module")
def task():
    return cc.load_task(EXAMPLES / "rover_arm.toml")


def tracked(task, slip, duration=0.5, dt=1e-3, **options):
    plant = Plant(task.robot, slip=slip)
    integrator = Integrator(dt=dt, **options)
    args = task.robot, task.servo, task.reference, duration, task.q0, task.s0
    return cc.simulate(*args, plant=plant, dt=integrator)


def apart(one, other, rows=slice(None)):
    """Largest distance of two bases, m and rad."""
    return np.abs(one.q[:, :3] - other.q[rows, :3]).max()


def moved(robot, seed):
    """A random configuration, velocity and vector of torques of moderate size."""
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    return np.asarray(robot.normalize(q)), v, 20 * rng.normal(size=robot.nu)


def loaded(name, grip=0.8, **options):
    robot = getattr(cc.robots, name)()
    given = {"rover_arm": {"supports": FRONT}, "mecanum_arm": {"compliance": 1.0}}
    return Plant(robot, slip=Slip.of(robot, grip, **given.get(name, {}), **options))


def slips(robot, q, v):
    """Slip along and across each wheel of the rover, m/s: its axle through the base, by hand."""
    (vx, vy, turn), spins = v[:3], v[3:5]
    return np.array(
        [[vx - y * turn - 0.1 * w, vy] for y, w in zip((0.25, -0.25), spins, strict=True)]
    )


def test_the_distance_from_rolling_falls_as_damping_grows(task):
    # 3.5e-3 m at 1e3 N s/m and 3.5e-12 m at 1e12 N s/m after 3 s, and so between them.
    rolling = tracked(task, None, 3.0, 5e-3)
    for damping in (1e3, 1e6, 1e12):
        slip = Slip.of(task.robot, 1.0, loads=1e6, damping=damping, time=1e-2)
        distance = apart(tracked(task, slip, 3.0, 5e-3), rolling)
        assert distance * damping == pytest.approx(3.48, rel=0.02), damping


@pytest.mark.extended
def test_steps_of_1_ms_suffice_whether_the_wheels_slide_or_not(task):
    robot = task.robot
    for slip in (Slip.of(robot, 0.8, supports=FRONT), Slip.of(robot, 0.02, supports=FRONT)):
        coarse, fine = (tracked(task, slip, 0.3, dt) for dt in (1e-3, 1e-4))
        assert (coarse.slip_speed.max() > 0.01) == (slip.grip[0] < 0.1)
        assert apart(coarse, fine, slice(None, None, 10)) < 3e-8


def explicit(task, limit, duration, w=1e-3):
    """Base at the end under friction -limit s / sqrt(s^2 + w^2), by a stiff integrator."""
    robot, servo, nq = task.robot, task.servo, task.robot.nq
    pin, shape = Pinocchio(robot), list(task.servo.model.shape)
    unit = np.eye(robot.nv)
    rows = np.stack([slips(robot, None, e).ravel() for e in unit], axis=1)

    def slope(t, z):
        q, v = z[:nq], z[nq:]
        s = (rows @ v).reshape(2, 2)
        friction = -limit * s / np.sqrt((s**2).sum(axis=1, keepdims=True) + w**2)
        force = rows.T @ friction.ravel() - pin.bias(q, v)
        force[3:] += servo.torque(q, v[shape], task.reference(t))
        return np.concatenate([pin.rate(q, v), np.linalg.solve(pin.mass_matrix(q), force)])

    start = np.concatenate([task.q0, servo.model.velocity(task.q0, task.s0)])
    found = solve_ivp(slope, (0.0, duration), start, method="LSODA", rtol=1e-8, atol=1e-10)
    return found.y[:3, -1]


@pytest.mark.parametrize(
    ("limits", "duration"),
    [((20.0,), 0.25), pytest.param((5.0, 10.0, 20.0, 40.0, 60.0), 3.0, marks=pytest.mark.slow)],
)
def test_friction_is_that_of_an_explicit_law_with_a_small_smoothing_speed(task, limits, duration):
    for limit in limits:
        run = tracked(task, Slip.of(task.robot, 1.0, loads=limit), duration)
        difference = np.abs(run.q[-1, :3] - explicit(task, limit, duration)).max()
        assert difference < 3e-4, (limit, difference)


def test_friction_stays_in_its_ellipse_and_takes_power():
    for name in ("rover_arm", "car_arm", "mecanum_arm"):
        plant = loaded(name, 0.5, side=0.6)
        for seed in range(20):
            q, v, u = moved(plant.robot, seed)
            loads = np.random.default_rng(seed).uniform(-50.0, 200.0, plant.nl)
            vdot, forces, _ = plant.slip_acceleration(q, v, loads, u, NONE)
            # Mass matrix and bias of Pinocchio: the remaining force is that of the wheels.
            pin = Pinocchio(plant.robot)
            made = pin.mass_matrix(q) @ vdot + pin.bias(q, v)
            made[list(plant.robot.actuated_freedoms)] -= u
            power = made @ v
            start = 0
            for wheel, load in zip(plant.robot.wheels, loads, strict=False):
                axes = {"disk": [1.0, 0.6], "slider": [0.6], "mecanum": [1.0]}[wheel.kind]
                own = forces[start : start + len(axes)]
                start += len(axes)
                limit = 0.5 * max(load, 0.0) * (1 + 1e-12)
                assert np.linalg.norm(own / np.array(axes)) <= limit, (name, seed, wheel.body)
            assert start == len(forces)
            assert power <= 1e-9, (name, seed)


def test_a_wheel_without_load_has_no_friction_and_one_with_grip_rolls():
    plant = loaded("rover_arm")
    q, v, u = moved(plant.robot, 3)
    for loads, free in (((100.0, -1e-9, 0.0), True), ((100.0, 1e-3, 0.0), False)):
        forces = plant.slip_acceleration(q, v, loads, u, NONE)[1]
        assert (np.abs(forces[2:]).max() == 0.0) == free
        assert np.abs(forces[:2]).max() > 1.0


def test_redundant_rows_give_the_accelerations_of_rolling():
    for name in ("rover_arm", "car_arm", "mecanum_arm"):
        plant = loaded(name, 1e9, damping=1e12)
        robot = plant.robot
        rolling = Plant(robot, stabilisation=1 / plant.slip.time)
        model, rng = cc.reduce(robot), np.random.default_rng(2)
        for _ in range(3):
            q = robot.random(rng)
            v = np.asarray(model.velocity(q, rng.normal(size=model.ns)))
            u = rng.normal(size=robot.nu)
            found = plant.slip_acceleration(q, v, np.full(plant.nl, 1e3), u, NONE)[0]
            expected = rolling.acceleration(q, v, u)[0]
            assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def lifted(robot):
    """The robot with its base free, for the wrench that the ground exerts on it."""
    base = cc.Body("base", cc.joints.Free(), inertia=robot.base.inertia)
    others = [replace(b, parent="base") if b.parent == "chassis" else b for b in robot.bodies[1:]]
    return cc.Mechanism(robot.name, [base, *others], gravity=robot.gravity, actuated=[])


def test_loads_are_in_equilibrium_with_the_motion():
    # Six equations of the whole robot by Pinocchio, with forces of the ground at the contacts.
    plant = loaded("rover_arm")
    robot, free = plant.robot, lifted(plant.robot)
    pin = Pinocchio(free)
    points = np.array([(0.0, 0.25, -0.1), (0.0, -0.25, -0.1), FRONT["front"]])
    still = np.zeros(robot.nv)
    for seed in range(5):
        q, v, u = moved(robot, seed)
        vdot, forces, rate = plant.slip_acceleration(q, v, [150.0, 60.0, 170.0], u, NONE)
        at_rest = seed == 0
        if at_rest:
            v, vdot, forces = still, still, np.zeros(4)
        loads = plant.loads(q, v, vdot, NONE)
        pushes = np.column_stack([np.vstack([forces.reshape(2, 2), np.zeros((1, 2))]), loads])
        made = [pushes.sum(axis=0), np.cross(points, pushes).sum(axis=0)]
        turn = np.array([0.0, 0.0, np.sin(q[2] / 2), np.cos(q[2] / 2)])
        full = np.concatenate([q[:2], [0.0], turn, q[3:]])
        twist, rate_of = (np.concatenate([x[:2], [0.0, 0.0, 0.0], x[2:]]) for x in (v, vdot))
        wrench = pin.inverse_dynamics(full, twist, rate_of)[:6]
        assert_allclose(np.concatenate(made), wrench, atol=1e-10)
        if at_rest:
            assert loads.sum() == pytest.approx(robot.total_mass * 9.81, rel=1e-14)
        else:
            assert_allclose(rate, (loads - [150.0, 60.0, 170.0]) / 2e-3, rtol=1e-10)


def test_more_than_three_supports_share_the_load_as_springs():
    # A statically indeterminate table: the plane of the springs' deflections is the closed form.
    for compliance in (
        1.0,
        {"front_left": 1e-5, "front_right": 2e-5, "rear_left": 1e-5, "rear_right": 3e-5},
    ):
        robot = cc.robots.mecanum_arm()
        plant = Plant(robot, slip=Slip.of(robot, 0.8, compliance=compliance))
        still = np.zeros(robot.nv)
        loads = plant.loads(robot.neutral(), still, still, NONE)
        assert loads.sum() == pytest.approx(robot.total_mass * 9.81, rel=1e-13)
        x, y = np.array([0.35, 0.35, -0.35, -0.35]), np.array([0.3, -0.3, 0.3, -0.3])
        sunk = loads * np.array(plant.slip.compliance)
        plane = np.column_stack([np.ones(4), x, y])
        rest = sunk - plane @ np.linalg.lstsq(plane, sunk, rcond=None)[0]
        assert np.abs(rest).max() < 1e-12 * np.abs(sunk).max()


def test_a_run_tells_slip_and_load_of_each_wheel(task, tmp_path):
    slip = Slip.of(task.robot, 0.02, supports=FRONT)
    run = tracked(task, slip, 0.3)
    by_hand = np.linalg.norm([slips(None, q, v) for q, v in zip(run.q, run.v, strict=True)], axis=2)
    assert_allclose(run.slip_speed, by_hand, atol=1e-12)
    plant, power = Plant(task.robot, slip=slip), []
    for k in range(0, 300, 7):
        forces = plant.slip_acceleration(run.q[k], run.v[k], run.wheel_load[k], run.u[k], NONE)[1]
        power.append(forces @ slips(None, run.q[k], run.v[k]).ravel())
    assert max(power) == 0.0 > min(power)
    assert_allclose(
        run.wheel_load[0],
        Plant(task.robot, slip=slip).loads(run.q[0], run.v[0], 0 * run.v[0], NONE),
    )
    found = {f.quantity: f for f in run.findings(task.tolerances)}
    assert found["slip speed of left_wheel, largest"].value == run.slip_speed[:, 0].max() > 0.01
    assert found["load of front, smallest"].value == run.wheel_load[:, 2].min()
    assert found["load of front, smallest"].place == ""
    assert "constraint residual" not in found
    assert run.plant_differences == ("wheels that may slip",)
    again = cc.Run.load(run.save(tmp_path / "run.h5"), task.servo)
    assert again.slip == slip
    assert again.slip.supports == slip.supports
    assert_array_equal(again.slip_speed, run.slip_speed)
    assert_array_equal(again.wheel_load, run.wheel_load)
    lifts = changed(run, wheel_load=run.wheel_load - run.wheel_load[:, 2].max() + 1e-9)
    notes = {f.quantity: f.place for f in lifts.findings(task.tolerances)}
    assert notes["load of front, smallest"].startswith("lifts off at ")


@pytest.mark.by_default(1)
@pytest.mark.parametrize("method", ["rkmk4", "dop853"])
def test_other_integrators_and_held_torques_agree(task, method):
    slip = Slip.of(task.robot, 0.02, supports=FRONT)
    held = {"control_period": 5e-3}
    first = tracked(task, slip, 0.02, **held)
    other = tracked(task, slip, 0.02, method=method, **held)
    assert apart(first, other) < 1e-8
    assert_allclose(first.wheel_load, other.wheel_load, atol=1e-2)


@pytest.mark.extended
def test_campaigns_have_slip_and_loads_as_states_and_signals(task):
    robot = task.robot
    slip = Slip.of(robot, 0.05, supports=FRONT)
    plant = Plant(robot, slip=slip, uncertain=["right_wheel.grip"])
    program = loop_program(task.servo, plant, dt=1e-3, control_period=5e-3)
    p = program.numbers(plant.numbers({"right_wheel.grip": [0.0, -0.04]}))
    x0 = program.start(task.q0, task.s0, p=p)
    world = {"right_wheel.grip": -0.04}
    args = robot, task.servo, task.reference, 0.1, task.q0, task.s0
    integrator = Integrator(control_period=5e-3)
    expected = cc.simulate(*args, plant=RealPlant(plant, world=world), dt=integrator)
    assert_allclose(program.state(x0[1], "load"), expected.wheel_load[0], rtol=1e-12)
    rows = program.reference(task.reference, 20)
    found = Rollout(program.tick, program.step, 5, interpreted=True)(
        Batch(x0, p, [0, 1]), rows, ticks=20, record=1, demands=[
            Demand(program.signals.index(name), "max", 0, 19)
            for name in ("slip:right_wheel", "load:front")
        ],
    )  # fmt: skip
    recorded = found.record.x[1]
    for name, values in (("q", expected.q), ("load", expected.wheel_load)):
        assert_allclose(program.state(recorded, name), values[:-1:5], rtol=1e-9, atol=1e-11)
    assert_allclose(found.values[1, 0], expected.slip_speed[1:, 1].max(), rtol=1e-9)
    assert_allclose(found.values[1, 1], expected.wheel_load[1:, 2].max(), rtol=1e-9)
    assert found.values[0, 0] < 0.95 * found.values[1, 0]
    again = cc.simulate(
        *args, dt=integrator, plant=RealPlant(plant, imperfections=Imperfections(), world=world)
    )
    assert again.slip.grip == pytest.approx((0.05, 0.01))
    for name in ("q", "slip_speed", "wheel_load"):
        assert_allclose(getattr(again, name), getattr(expected, name)[::5], rtol=1e-9, atol=1e-11)
    with pytest.raises(SimulationError, match=r"steps up to 0\.004 s"):
        loop_program(task.servo, plant, dt=5e-3)


def test_a_push_above_the_ground_tilts_the_loads():
    # At rest without grip and torque: 30 N forwards, 0.6 m above the ground, by hand.
    robot = cc.robots.rover_arm()
    plant = Plant(robot, slip=Slip.of(robot, 0.0, supports=FRONT))
    q, v = robot.neutral(), np.zeros(robot.nv)
    hold = Pinocchio(robot).bias(q, v)[3:]
    push = Wrench("push", "chassis", force=(30.0, 0.0, 0.0), point=(0.1, 0.0, 0.5))
    model = cc.reduce(robot)
    moves = []
    for given in ((), (push,)):
        program = loop_program(Stay(robot, hold), plant, Imperfections(disturbances=given))
        x = program.start(q, np.zeros(model.ns))[0]
        end, _ = program.step(x, program.numbers()[0], hold)
        moves.append(program.state(np.array(end)[:, 0] - x, "load"))
    # In half of `time`, 1 ms, a load moves by 1 - exp(-1/2) of its change.
    share = 1 - sum((-0.5) ** k / math.factorial(k) for k in range(5))
    vdot = np.linalg.solve(Pinocchio(robot).mass_matrix(q), np.eye(robot.nv)[0] * 30.0)
    assert_allclose(moves[0], 0.0, atol=1e-9)
    assert_allclose(moves[1].sum(), 0.0, atol=1e-9)
    carried = plant.loads(q, v, vdot, NONE) - plant.loads(q, v, 0 * v, NONE)
    assert_allclose(moves[1][2], share * (carried[2] + 30.0 * 0.6 / 0.5), rtol=2e-3)


def test_supports_are_part_of_robot_files(tmp_path):
    robot = replace(cc.robots.rover_arm(), supports={"front": [0.5, 0, -0.1]})
    assert robot.supports == FRONT
    assert Slip.of(robot, 0.8) == Slip.of(cc.robots.rover_arm(), 0.8, supports=FRONT)
    assert Slip.of(robot, 0.8, supports={}).supports == {}
    for name in ("rover.toml", "linked.urdf", "linked.urdf"):
        robot.save(tmp_path / name)
        assert cc.load(tmp_path / name).supports == FRONT
    text = (path := tmp_path / "rover.toml").read_text()
    for given, words in (
        ("left_wheel = [0, 0, 0]", "names that no wheel has"),
        ("front = [0, 0]", "supports"),
        ("front = 1", "supports"),
    ):
        path.write_text(text.split("[supports]")[0] + "[supports]\n" + given)
        with pytest.raises(DescriptionError, match=words):
            cc.load(path)
    with pytest.raises(DescriptionError, match="points by name"):
        replace(robot, supports=[(0.5, 0, 0)])


@pytest.mark.extended
def test_grips_are_uncertain_inputs(task):
    robot = task.robot
    slip = Slip.of(robot, 0.5, supports=FRONT)
    plant = Plant(
        robot, slip=slip, uncertain=["left_wheel.grip", "left_wheel.radius", "forearm.inertia.mass"]
    )
    world = {"left_wheel.grip": -0.3, "left_wheel.radius": 0.002, "forearm.inertia.mass": 0.4}
    assert "left_wheel: grip" in plant.number_names
    p, known = plant.numbers(world)[0], plant.of_world(world)
    assert_allclose(known.slip.grip, (0.2, 0.5), rtol=1e-14)
    q, v, u = moved(robot, 4)
    loads = np.array([150.0, 60.0, 170.0])
    for one, other in zip(
        plant.slip_acceleration(q, v, loads, u, p),
        known.slip_acceleration(q, v, loads, u, NONE),
        strict=True,
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    args = robot, task.servo, task.reference, 0.05, task.q0, task.s0
    run = cc.simulate(*args, plant=RealPlant(plant, world=world))
    expected = cc.simulate(*args, plant=known)
    assert_allclose(run.q, expected.q, atol=1e-11)
    assert run.slip == known.slip
    assert plant.numbers({"left_wheel.grip": -0.5}).shape == p[None].shape
    with pytest.raises(SimulationError, match="a friction coefficient of zero or more"):
        plant.numbers({"left_wheel.grip": -0.51})
    with pytest.raises(SimulationError, match="a plant without `slip`"):
        Plant(robot, uncertain=["left_wheel.grip"])


def test_what_has_no_sound_model_is_refused(task):
    robot, car, mecanum = task.robot, cc.robots.car_arm(), cc.robots.mecanum_arm()
    weightless = cc.Mechanism("rover", robot.bodies, robot.wheels)
    row = {"front": (0.0, 0.0, 0.0)}
    ball = cc.Mechanism(
        "ball",
        [
            cc.Body("point", cc.joints.Sliding((0, 0, 1))),
            cc.Body(
                "ball", cc.joints.Spherical(), "point", inertia=cc.Inertia(1.0, moments=(1, 1, 1))
            ),
        ],
        [cc.Wheel("ball", 0.5, "ball")],
        (0, 0, -9.81),
        [],
    )
    rubber = replace(ball, wheels=[cc.Wheel("ball", 0.5, "rubber_ball")])
    for one, slip, words in (
        (robot, Slip.of(robot, 0.8), "three supports or more, got 2: left_wheel, right_wheel"),
        (robot, Slip.of(robot, 0.8, supports=row), "in one line"),
        (mecanum, Slip.of(mecanum, 0.8), "the compliance of each of 4 supports"),
        (weightless, Slip.of(robot, 0.8, supports=FRONT), "gravity that presses the wheels"),
        (car, Slip.of(robot, 0.8), "a robot with 2 wheels"),
        (robot, Slip.of(robot, 0.8, supports={"left_wheel": (1, 0, 0)}), "names unlike those"),
        (cc.robots.free_flyer(), Slip((), ()), "some wheels"),
        (ball, Slip.of(ball, 0.8), "a base on a Planar joint"),
        (
            rubber,
            Slip.of(rubber, 0.8),
            "whose friction is a force in this plane, got a rubber_ball",
        ),
    ):
        with pytest.raises(SimulationError, match=words):
            Plant(one, slip=slip)
    Plant(car, slip=Slip.of(car, 0.8))
    Plant(weightless, slip=Slip.of(robot, 0.8, loads=10.0))
    Plant(robot, slip=Slip.of(robot, 0.8, supports={"front": (1e-3, 0, 0)}))
    for given in ({"grip": -1e-9}, {"side": 0.0}, {"damping": 0.0}, {"time": 0.0}, {"loads": -1.0}):
        with pytest.raises(ConcurError, match=f"slip, `{next(iter(given))}`"):
            Slip.of(robot, **({"grip": 0.8} | given))
    with pytest.raises(UnknownNameError, match="a number for each of left_wheel, right_wheel"):
        Slip.of(robot, {"left_wheel": 0.8})
    plant = loaded("rover_arm")
    q, v, u = moved(robot, 0)
    with pytest.raises(SimulationError, match=r"Call slip_acceleration\(q, v, loads, u, p\)"):
        plant.acceleration(q, v, u)
    with pytest.raises(SimulationError, match="wheels that may slip"):
        Plant(robot).loads(q, v, v, NONE)
    with pytest.raises(SimulationError, match=r"friction stops a slip in 0\.002 s"):
        tracked(task, plant.slip, 0.0082, 4.1e-3)
    tracked(task, plant.slip, 0.008, 4e-3)
