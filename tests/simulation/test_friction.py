"""Friction of plants: closed forms for one joint, and the same model in plants and rigs."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp, trapezoid

import concur as cc
from concur.errors import SimulationError, UnknownNameError
from concur.simulation import (
    Friction,
    Imperfections,
    Integrator,
    Tolerances,
    loop_program,
)
from concur.simulation._friction import stopping_impulses
from tests.simulation.loops import Stay, rolled

INERTIA = 0.4  # kg m^2


@pytest.fixture(scope="module")
def wheel():
    body = cc.Body(
        "wheel", cc.joints.Revolute((0, 0, 1)), inertia=cc.Inertia(1.0, moments=(INERTIA,) * 3)
    )
    return cc.Mechanism("one wheel", [body], actuated=["wheel"])


def test_friction_acts_along_the_controls_of_a_rover():
    robot = cc.robots.rover_arm()
    rng = np.random.default_rng(1)
    q, v, u = robot.neutral(), rng.normal(size=robot.nv), rng.normal(size=5)
    friction = Friction.of(robot, {"turret": 0.5, "left_wheel": 0.2}, 0.1)
    speeds = v[list(robot.actuated_freedoms)]
    by_hand = u - np.array([0.2, 0, 0.5, 0, 0]) * speeds - 0.1 * np.sign(speeds)
    found = cc.Plant(robot, friction=friction).acceleration(q, v, u)
    expected = cc.Plant(robot).acceleration(q, v, by_hand)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_bad_friction_is_refused(wheel):
    for viscous, coulomb in (((-1e-9,), (0.0,)), ((0.0,), (math.inf,)), ((0.0,), (0.0, 0.0))):
        with pytest.raises(
            SimulationError, match="a finite number, zero or more, for each control"
        ):
            Friction(viscous, coulomb)
    assert Friction((0.0,), (0.0,)).coulomb == (0.0,)
    with pytest.raises(UnknownNameError, match="expected controls out of wheel, got whel"):
        Friction.of(wheel, {"whel": 1.0})
    with pytest.raises(SimulationError, match="expected 1 numbers, one for each control, got 2"):
        cc.Plant(wheel, friction=Friction((0.0, 0.0), (0.0, 0.0)))


def test_runs_know_the_friction_of_their_plant(wheel, tmp_path):
    model = cc.reduce(wheel)
    servo = cc.Servo(model, [cc.Output("angle", "wheel", "SO2")], 4.0, 4.0)
    friction = Friction.of(wheel, 0.8)
    made = {
        plant.friction: cc.simulate(
            wheel, servo, cc.references.hold([0.0], group="SO2"), 0.5, [0.4], [0.0], plant=plant,
            dt=Integrator(dt=0.01),
        )
        for plant in (cc.Plant(wheel), cc.Plant(wheel, friction=friction))
    }  # fmt: skip
    for known, run in made.items():
        assert run.plant_differences == (() if known is None else ("friction",))
        (deviation,) = (
            f for f in run.findings(Tolerances(0.1)) if f.quantity.startswith("deviation")
        )
        assert deviation.holds is (True if known is None else None)
        (balance,) = (f for f in run.findings(Tolerances(0.1)) if f.quantity == "energy balance")
        assert balance.place == ("" if known is None else "with the heat of friction")
        again = cc.Run.load(run.save(tmp_path / "run.h5"), servo)
        assert again.friction == known
        assert again.plant_differences == run.plant_differences
    # The energy that friction takes: 0.8 N m s/rad times the square of the speed.
    run = made[friction]
    assert run.energy_balance[-1] == pytest.approx(
        -trapezoid(0.8 * run.v[:, 0] ** 2, run.t), rel=1e-3
    )


def test_steps_of_plants_have_fixed_methods_and_known_numbers(wheel):
    for method in ("rk4", "rkmk4"):
        assert cc.Plant(wheel).step_function(method).n_out() == 2
    with pytest.raises(UnknownNameError):
        cc.Plant(wheel).step_function("dop853")
    for friction in (None, Friction.of(wheel, 0.1, 0.1)):
        with pytest.raises(SimulationError):
            cc.Plant(wheel, uncertain=["wheel.inertia.moments"], friction=friction).step_function()


def test_runs_with_fixed_steps_refuse_friction_that_is_too_stiff(wheel):
    servo = cc.Servo(cc.reduce(wheel), [cc.Output("angle", "wheel", "SO2")], 4.0, 4.0)

    def end(rate, method="rk4", period=None, dt=1e-3):
        plant = cc.Plant(wheel, friction=Friction.of(wheel, rate * INERTIA))
        reference = cc.references.hold([0.0], group="SO2")
        options = Integrator(method, dt, control_period=period)
        run = cc.simulate(wheel, servo, reference, 0.02, [0.4], [0.0], plant=plant, dt=options)
        return run.q[-1, 0]

    for method, period in (("rk4", None), ("rkmk4", 2e-3)):
        end(1.999e3, method, period)
        with pytest.raises(SimulationError, match=r"Take a step of 0.00094 s or less") as refused:
            end(2.001e3, method, period)
        assert refused.value.data["rate"] == pytest.approx(2.001e3, rel=1e-12)
    assert end(2.001e3, dt=2.5e-4) == pytest.approx(end(2.001e3, "radau"), rel=1e-7)


def by_simulate(method, **options):
    def motion(robot, friction, u, q0, v0, steps):
        run = cc.simulate(
            robot, Stay(robot, u), None, steps * 1e-3, q0, v0,
            plant=cc.Plant(robot, friction=friction), dt=Integrator(method, **options),
        )  # fmt: skip
        return run.q, run.v

    return motion


def by_program(robot, friction, u, q0, v0, steps):
    program = loop_program(Stay(robot, u), cc.Plant(robot), Imperfections(friction=friction))
    x, _ = rolled(program, program.start(q0, v0), steps)
    return program.state(x, "q"), program.state(x, "v")


def by_plant(robot, friction, u, q0, v0, steps):
    step, rows = cc.Plant(robot, friction=friction).step_function(), [(q0, v0)]
    for _ in range(steps):
        rows.append([np.array(part).ravel() for part in step(*rows[-1], u, 1e-3)])
    return tuple(np.array(part) for part in zip(*rows, strict=True))


ROUTES = {
    "rk4": by_simulate("rk4"),
    "sampled": by_simulate("rk4", control_period=5e-3),
    "rkmk4": by_simulate("rkmk4"),
    "dop853": by_simulate("dop853"),
    "program": by_program,
    "plant": by_plant,
}


@pytest.mark.parametrize(
    "route", [pytest.param(r, marks=pytest.mark.extended) if r == "dop853" else r for r in ROUTES]
)
def test_a_joint_coasts_to_rest_sticks_and_comes_loose(wheel, route):
    """One joint: it stops after v^2 / 2a, holds below the level of friction, and moves above."""
    motion, dry = ROUTES[route], Friction.of(wheel, coulomb=0.3)
    slowing = 0.3 / INERTIA
    q, v = motion(wheel, dry, [0.0], [0.0], [0.15], 260)
    t = np.arange(261) * 1e-3
    moving = t < 0.15 / slowing
    np.testing.assert_allclose(v[moving, 0], 0.15 - slowing * t[moving], atol=1e-12)
    assert np.abs(v[-50:]).max() < 1e-15
    assert q[-1, 0] == pytest.approx(0.15**2 / (2.0 * slowing), abs=slowing * 1e-6)
    for torque in (-0.3 * (1 - 1e-9), 0.15, 0.3 * (1 - 1e-9)):
        q, v = motion(wheel, dry, [torque], [0.2], [0.0], 100)
        assert np.abs(v).max() < 1e-15
        assert np.abs(q - 0.2).max() < 1e-15
    q, v = motion(wheel, dry, [-0.3 * 1.001], [0.2], [0.0], 100)
    assert v[-1, 0] == pytest.approx(-0.3e-3 / INERTIA * 0.1, rel=1e-9)
    assert q[-1, 0] - 0.2 == pytest.approx(-0.3e-3 / INERTIA * 0.1**2 / 2, rel=1e-7)


@pytest.mark.parametrize("route", ["rk4", "program"])
def test_breakaway_takes_more_than_motion(wheel, route):
    """Stribeck: between the two levels a joint at rest stays, and one that moves goes on."""
    rubbing = Friction.of(wheel, coulomb=0.2, stribeck=0.1, stribeck_speed=0.02)
    assert ROUTES[route](wheel, rubbing, [0.2999], [0.0], [0.0], 50)[1][-1, 0] == 0.0
    assert ROUTES[route](wheel, rubbing, [0.3001], [0.0], [0.0], 50)[1][-1, 0] > 1e-6
    speeds = ROUTES[route](wheel, rubbing, [0.25], [0.0], [0.1], 200)[1][:, 0]
    exact = solve_ivp(
        lambda _, w: (0.25 - 0.2 - 0.1 * np.exp(-((w / 0.02) ** 2))) / INERTIA,
        (0.0, 0.2), [0.1], rtol=1e-11, atol=1e-13,
    ).y[0, -1]  # fmt: skip
    assert speeds[-1] == pytest.approx(exact, rel=1e-9)


def arm(gravity=9.81):
    """A car whose wheels roll, with an arm of two joints that hangs sideways under gravity."""
    links = [
        cc.Body("column", cc.joints.Fixed()),
        cc.Body(
            "upper",
            cc.joints.Revolute((0, 1, 0)),
            parent="column",
            inertia=cc.Inertia(2.0, com=(0.25, 0, 0), moments=(0.01, 0.05, 0.05)),
        ),
        cc.Body(
            "fore",
            cc.joints.Revolute((0, 1, 0)),
            parent="upper",
            placement=cc.Pose((0.5, 0, 0)),
            inertia=cc.Inertia(1.0, com=(0.2, 0, 0), moments=(0.005, 0.02, 0.02)),
        ),
    ]
    return cc.Mechanism("arm", links, gravity=(0, 0, -gravity))


def test_joints_loaded_at_half_their_friction_do_not_creep():
    robot = arm()
    q0 = np.array([0.3, 0.4])
    load = np.abs(robot.bias(q0, np.zeros(2)))
    holding = Friction((0.0, 0.0), tuple(2.0 * load))
    for route in ("rk4", "program"):
        q, _ = ROUTES[route](robot, holding, [0.0, 0.0], q0, [0.0, 0.0], 1000)
        assert np.abs(q - q0).max() < 1e-12
    falling = Friction((0.0, 0.0), tuple(0.99 * load))
    q, _ = ROUTES["rk4"](robot, falling, [0.0, 0.0], q0, [0.0, 0.0], 500)
    assert np.abs(q[-1] - q0).max() > 1e-3


def in_small_steps(robot, levels, q, v, duration, h):
    """The motion by steps of first order, whose friction is found by trial of all modes."""
    n = len(levels)
    for _ in range(round(duration / h)):
        mass, bias = robot.mass_matrix(q), robot.bias(q, v)
        free = v - h * np.linalg.solve(mass, bias)
        mobility = h * np.linalg.inv(mass)
        for mode in np.ndindex(*(3,) * n):
            ways = np.array(mode) - 1.0
            rest = ways == 0
            forces = -levels * ways
            moved = free + mobility @ forces
            forces[rest] -= np.linalg.solve(mobility[np.ix_(rest, rest)], moved[rest])
            v = free + mobility @ forces
            if (np.abs(forces) <= levels * (1 + 1e-9)).all() and (v * ways >= -1e-14)[~rest].all():
                break
        else:
            raise AssertionError("no mode")
        q = q + h * v
    return np.concatenate([q, v])


@pytest.mark.extended
@pytest.mark.parametrize("levels", [(1.5, 0.4), (6.0, 0.2), (0.5, 2.5)])
def test_an_arm_swings_sticks_and_slides_as_in_small_steps(levels):
    """Coupled joints that stop and come loose several times; errors are of the order of a step."""
    robot, levels, q0, v0 = arm(), np.array(levels), np.array([0.9, -0.5]), np.array([0.6, -1.1])
    due = in_small_steps(robot, levels, q0, v0, 0.9, 1.5e-4)
    for route in ("rk4", "program"):
        q, v = ROUTES[route](robot, Friction((0.0, 0.0), levels), [0.0, 0.0], q0, v0, 900)
        assert np.abs(q[-1] - due[:2]).max() < 1e-3
        assert np.abs(v[-1] - due[2:]).max() < 4e-3


def test_friction_of_a_motor_behind_a_spring_holds_it(wheel):
    """The motor stays below the level, and its load swings about the start until it rests."""
    for torque, holds in ((0.14, True), (0.301, False)):
        real = Imperfections.of(wheel, coulomb=0.3, stiffness=50.0, damping=2.0, motor_inertia=0.05)
        program = loop_program(Stay(wheel, [torque]), cc.Plant(wheel), real)
        x, _ = rolled(program, program.start([0.0], [0.0]), 1200)
        motor, speed = (program.state(x, name)[:, 0] for name in ("motor", "v"))
        assert bool(np.abs(motor[1:]).max() < 1e-15) is holds
        assert bool(np.abs(speed[-100:]).max() < 0.1 * np.abs(speed).max()) is holds


def test_impulses_of_friction_never_give_energy():
    """Random couplings of five controls; for most of them the rounds end, at the minimum."""
    n, rng, ended = 5, np.random.default_rng(1), 0
    shapes = [ca.SX.sym("mobility", n, n), *(ca.SX.sym(name, n) for name in "vsi")]
    function = ca.Function("impulses", shapes, [stopping_impulses(*shapes)])
    for _ in range(400):
        root = rng.normal(size=(n, n))
        mobility, speed = root @ root.T + 0.01 * np.eye(n), rng.normal(size=n)
        share, impulse = rng.uniform(-1.0, 1.0, n), rng.uniform(0.0, 2.0, n)
        low, high = -impulse * (1.0 - share), impulse * (1.0 + share)
        found = np.array(function(mobility, speed, share, impulse)).ravel()
        assert ((found >= low) & (found <= high)).all()
        gradient = speed + mobility @ found
        assert found @ (speed + gradient) / 2.0 <= 0.0
        # First-order conditions of the minimum in the box.
        step = np.clip(found - gradient, low, high) - found
        ended += np.abs(step).max() < 1e-9
    assert 380 <= ended < 400


def train(wheels):
    """A base on wheels in one line, which roll and all turn together."""
    bodies = [
        cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(24.0, moments=(0.4, 0.7, 1.0)))
    ]
    bodies += [
        cc.Body(
            f"wheel_{k}",
            cc.joints.Revolute((0, 1, 0)),
            parent="base",
            placement=cc.Pose((0.21 * k - 0.2, 0.22, 0.0)),
            inertia=cc.Inertia(1.4, moments=(0.004, 0.007, 0.004)),
        )
        for k in range(wheels)
    ]
    rolling = [cc.Wheel(f"wheel_{k}", 0.1) for k in range(wheels)]
    return cc.Mechanism("train", bodies, wheels=rolling, gravity=(0, 0, -9.81))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("route", ["rk4", "program", "plant"])
def test_drives_that_turn_together_hold_by_the_sum_of_their_friction(route):
    """The controls are coupled so that their mobility is singular."""
    robot, levels = train(3), (0.513, 0.47, 0.61)
    inertia = (24.0 + 3 * 1.4) * 0.1**2 + 3 * 0.007
    friction = Friction((0.0,) * 3, levels)
    assert robot.control_names == ("wheel_0", "wheel_1", "wheel_2")
    q0, rest = np.zeros(robot.nq), np.zeros(robot.nv if route == "plant" else 1)
    for u, moves in (([3.0, -2.0, 0.592], False), ([3.0, -2.0, 0.594], True)):
        _, v = ROUTES[route](robot, friction, u, q0, rest, 300)
        speed = (sum(u) - sum(levels)) / inertia * 0.3
        assert np.abs(v[-1, 3:] - speed * moves).max() < 1e-9


def test_drives_that_turn_together_come_to_rest():
    robot = train(3)
    friction = Friction((0.0,) * 3, (0.513, 0.47, 0.61))
    v0 = np.array([0.05, 0.0, 0.0, 0.5, 0.5, 0.5])
    _, v = by_plant(robot, friction, [3.0, -2.0, 0.3], np.zeros(robot.nq), v0, 900)
    assert np.abs(v[-1]).max() < 1e-12
