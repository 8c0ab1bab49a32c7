"""The sampled loop with imperfections against closed forms, SciPy and the plain simulation."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import sqrtm

import concur as cc
from concur.codegen import LONGEST_DELAY, Batch, Demand, Rollout
from concur.errors import ShapeError, SimulationError, UnknownNameError
from concur.simulation import Friction, Imperfections, Integrator, Wrench, loop_program
from tests.simulation.loops import INERTIA, WHEEL, Stay, limited, part, rolled

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def rover():
    return cc.load_task(EXAMPLES / "rover_arm.toml")


@pytest.mark.extended
def test_laws_with_a_state_or_limits_are_sampled_as_in_plain_simulations(rover):
    robot = cc.robots.free_flyer()
    model = cc.reduce(robot, momentum=(0.1, 0, 0, 0, 0.02, 0))
    base, hand = robot.base.name, robot.bodies[-1].name
    outputs = [cc.Output("base", base, "SO3"), cc.Output("hand", hand, "R3")]
    limited_servo = cc.Servo(model, outputs, 4.0, 4.0, torque_limits=2.0)
    q = robot.random(np.random.default_rng(1))
    away = limited_servo.output(q) + np.array([0, 0, 0, 0, 0.3, -0.2, 0.1])
    pose, still = cc.ReferenceSample(away, np.zeros(6), np.zeros(6)), np.zeros(model.ns)
    law = rover.servo
    whole = cc.Servo(law.model, law.outputs, law.stiffness, law.damping, integral=0.5)
    for servo, reference, q0, s0, method, scale in (
        (whole, rover.reference, rover.q0, rover.s0, "rkmk4", 1e-12),
        (limited_servo, lambda t: pose, q, still, "rk4", 1e-9),
    ):
        system = servo.model.robot
        plain = cc.simulate(
            system, servo, reference, 0.03, q0, s0,
            dt=Integrator(method, dt=1e-3, control_period=3e-3),
        )  # fmt: skip
        program = loop_program(servo, cc.Plant(system), control_period=3e-3, method=method)
        states, _ = rolled(program, program.start(q0, s0), 10, reference)
        np.testing.assert_allclose(part(program, states, "q"), plain.q, atol=scale)
        np.testing.assert_allclose(part(program, states, "v"), plain.v, atol=scale)
    assert plain.scale.min() < 1.0


def test_programs_go_through_pickles(rover):
    real = Imperfections.of(rover.robot, viscous=0.1)
    program = loop_program(
        rover.servo, cc.Plant(rover.robot), real, {("lag", "turret")}, control_period=2e-3
    )
    program.numbers()
    again = pickle.loads(pickle.dumps(program))
    assert again.uncertain == program.uncertain
    assert (again.states, again.signals) == (program.states, program.signals)
    np.testing.assert_array_equal(again.numbers(), program.numbers())
    assert again.imperfections == real


def test_torque_lag_is_exact_under_held_commands():
    law, lag = Stay(WHEEL, [0.0]), 0.013
    real = Imperfections.of(WHEEL, lag=lag)
    program = loop_program(law, cc.Plant(WHEEL), real, control_period=0.05, dt=0.01)
    x = program.start([0.0], [0.0])[0]
    x, _, _ = program.tick(x, program.numbers()[0], [0.0], [])
    for k in range(1, 6):
        x, _ = program.step(x, [], [2.0])
        t = 0.01 * k
        torque = 2.0 * (1.0 - math.exp(-t / lag))
        speed = 2.0 / INERTIA * (t - lag * (1.0 - math.exp(-t / lag)))
        assert program.state(np.array(x).T, "torque").item() == pytest.approx(torque, rel=1e-14)
        # Simpson's rule over the exact torque.
        assert float(x[program.states["v"]]) == pytest.approx(speed, rel=5e-4)
    program = loop_program(Stay(WHEEL, [1.5]), cc.Plant(WHEEL), real)
    states, _ = rolled(program, program.start([0.0], [0.0]), 3)
    # A run starts with the first command as the torque.
    assert part(program, states, "torque")[1] == pytest.approx(1.5, rel=1e-15)


def test_no_unit_of_mass_makes_a_run_diverge():
    # A motor that follows a lag, in units of 1 kg and of 1e-9 kg: work and torque are large.
    found = []
    for scale in (1.0, 1e9):
        inertia = cc.Inertia(1.0, moments=(INERTIA * scale,) * 3)
        joint = cc.joints.Revolute((0, 0, 1))
        robot = cc.Mechanism(
            "wheel", [cc.Body("wheel", joint, inertia=inertia)], actuated=["wheel"]
        )
        real = Imperfections.of(robot, lag=0.01)
        program = loop_program(Stay(robot, [2.0 * scale]), cc.Plant(robot), real)
        rows, x0 = program.reference(None, 100), program.start([0.0], [0.0])
        demands = [Demand(program.signals.index("torque:wheel"), "max", 0, 99)]
        rolled = Rollout(program.tick, program.step, 1, interpreted=True)(
            Batch(x0, program.numbers(), [0]), rows, ticks=100, demands=demands, record=1
        )
        assert (rolled.stopped[0], rolled.values[0, 0]) == (100, 2.0 * scale)
        x = rolled.record.x[0]
        assert part(program, x, "work")[-1, 0] == pytest.approx(0.98 * scale * 0.05, rel=0.1)
        found.append([part(program, x, name) for name in ("q", "v")])
    np.testing.assert_allclose(*found, rtol=1e-12)


def svd_margin(servo, q):
    """Least singular value of the scaled decoupling matrix in the metric of the kinetic energy."""
    lift = servo.model.lift(q)[0]
    metric = lift.T @ servo.model.robot.mass_matrix(q) @ lift
    rows = np.diag(servo.margins.scales[0]) @ servo.decoupling(q)
    return np.linalg.svd(rows @ np.linalg.inv(sqrtm(metric)), compute_uv=False)[-1]


def flying():
    model = cc.reduce(cc.robots.free_flyer(), momentum=(0.1, 0, 0, 0, 0.02, 0))
    tool = cc.Output("tool", model.robot.bodies[-1].name, "SE3")
    return cc.Servo(model, [tool], 4.0, 4.0)


TURN = cc.Output("turn", "turret", "SO2")
LAWS = {
    "square": lambda servo: servo,
    "damped": lambda servo: replace(servo, damping_threshold=0.9),
    "limited": lambda servo: replace(servo, torque_limits=90.0),
    "redundant": lambda servo: cc.Servo(servo.model, servo.outputs[1:], 4.0, 4.0),
    "one row": lambda servo: cc.Servo(servo.model, [TURN], 4.0, 4.0),
    "floating": lambda servo: flying(),
}


@pytest.mark.by_default(4)
@pytest.mark.parametrize("kind", LAWS)
def test_the_margin_of_a_tick_is_that_of_a_singular_value_decomposition(rover, kind):
    law = LAWS[kind](rover.servo)
    model, rng = law.model, np.random.default_rng(3)
    program = loop_program(law, cc.Plant(model.robot))
    q0 = rover.q0 if model.robot == rover.robot else model.robot.random(rng)
    sample = cc.ReferenceSample(law.output(q0), np.zeros(law.size), np.zeros(law.size))
    x = program.start(q0, rng.normal(0, 0.1, model.ns))
    states, signals = rolled(program, x, 4, lambda t: sample)
    found = signals[:, program.signals.index("margin")]
    places = part(program, states, "q")[: len(found)]
    assert_allclose = np.testing.assert_allclose
    assert_allclose(found, [svd_margin(law, q) for q in places], rtol=1e-8)
    assert_allclose(found, [law.margin(q) for q in places], rtol=1e-8)


def test_uncertain_imperfections_equal_fixed_ones(rover):
    robot, law = rover.robot, rover.servo
    tables = {
        "viscous": {"turret": 0.3}, "coulomb": {"turret": 0.1}, "stribeck": {"turret": 0.05},
        "lag": {"turret": 0.004, "forearm": 0.002},
    }  # fmt: skip
    weak = cc.Plant(limited(robot, {"turret": 0.2}))
    fixed = loop_program(law, weak, Imperfections.of(robot, **tables))
    names = {(kind, name) for kind, table in tables.items() for name in table}
    half = {
        kind: {name: value / 2 for name, value in table.items()} for kind, table in tables.items()
    }
    tables_of_half = dict(half)
    half["torque_limit"] = {"turret": 0.1}
    names.add(("torque_limit", "turret"))
    weaker = cc.Plant(limited(robot, {"turret": 0.1}))
    family = loop_program(law, weaker, Imperfections.of(robot, **tables_of_half), names)
    assert family.uncertain == tuple(sorted(names))
    given = {(kind, name): [0.0, half[kind][name]] for kind, name in names}
    p = family.numbers(deviations=given)
    found, _ = rolled(family, family.start(rover.q0, rover.s0), 25, rover.reference, p[1])
    wanted, _ = rolled(fixed, fixed.start(rover.q0, rover.s0), 25, rover.reference)
    np.testing.assert_allclose(found, wanted, atol=1e-13)
    other, _ = rolled(family, family.start(rover.q0, rover.s0), 25, rover.reference, p[0])
    assert np.abs(other - wanted).max() > 1e-5


def test_uncertain_robots_start_and_move_as_rebuilt_ones(rover):
    robot, law = rover.robot, rover.servo
    plant = cc.Plant(
        robot, uncertain=["forearm.inertia.mass", "forearm.inertia.com", "left_wheel.radius"]
    )
    world = {
        "forearm.inertia.mass": 0.2,
        "forearm.inertia.com": (0.01, 0.0, 0.0),
        "left_wheel.radius": 0.004,
    }
    real, s0 = Imperfections.of(robot, viscous=0.1, lag=0.003), np.linspace(0.1, 0.5, 5)
    family = loop_program(law, plant, real)
    p = family.numbers(plant.numbers(world))
    x0 = family.start(rover.q0, s0, p=p)
    rebuilt = loop_program(law, cc.Plant(plant.rebuilt(world)), real)
    wanted = rebuilt.start(rover.q0, s0)
    np.testing.assert_allclose(x0, wanted, atol=1e-14)
    by_model = law.model.on(plant.rebuilt(world)).velocity(rover.q0, s0)
    np.testing.assert_allclose(part(family, x0[0], "v"), by_model, atol=1e-13)
    found, _ = rolled(family, x0, 20, rover.reference, p[0])
    wanted, _ = rolled(rebuilt, wanted, 20, rover.reference)
    np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_true_momentum_at_the_start_of_a_floating_robot():
    robot = cc.robots.free_flyer()
    model = cc.reduce(robot)
    law = Stay(robot, np.zeros(robot.nu))
    error = (0.3, 0.0, -0.2, 0.05, 0.02, 0.0)
    family = cc.Plant(
        robot, uncertain=[f"{robot.base.name}.inertia.mass", f"{robot.base.name}.inertia.com"]
    )
    program = loop_program(law, family, Imperfections.of(robot, momentum_error=error))
    world = {
        f"{robot.base.name}.inertia.mass": [2.0, -1.0],
        f"{robot.base.name}.inertia.com": (0.02, 0.0, 0.01),
    }
    q, s = robot.random(np.random.default_rng(2)), np.linspace(-0.2, 0.3, model.ns)
    x = program.start(q, s, p=program.numbers(family.numbers(world)))
    for k, mass in enumerate((2.0, -1.0)):
        one = {
            f"{robot.base.name}.inertia.mass": mass,
            f"{robot.base.name}.inertia.com": (0.02, 0.0, 0.01),
        }
        v = part(program, x[k], "v")
        momentum = family.rebuilt(one).momentum(q, v)
        np.testing.assert_allclose(momentum, np.array(model.momentum) + error, atol=1e-12)
        np.testing.assert_array_equal(v[list(model.shape)], s)


def test_programs_refuse_what_does_not_fit(rover):
    robot, law, plant = rover.robot, rover.servo, cc.Plant(rover.robot)
    of = Imperfections.of
    for make, error, words in (
        (lambda: of(robot, lag={"turet": 1.0}), UnknownNameError, "controls out of left_wheel"),
        (lambda: of(robot, noise={"chassis": 1.0}), UnknownNameError, "joints out of left_wheel"),
        (lambda: of(robot, slack=1.0), UnknownNameError, "a table out of ripple"),
        (lambda: of(robot, lag=-1.0), SimulationError, "`lag`: expected finite numbers"),
        (lambda: of(robot, stiffness=0.0), SimulationError, "expected numbers above zero"),
        (lambda: of(robot, latency=-1e-3), SimulationError, "`latency`: expected a time"),
        (lambda: of(robot, stiffness=1e3), SimulationError, "an inertia above zero for each"),
        (lambda: loop_program(law, plant, Imperfections(lag=(0.1,))), SimulationError,
         "`lag`: expected 5 numbers"),
        (lambda: loop_program(law, plant, uncertain={("lack", "turret")}), UnknownNameError,
         "a kind out of viscous"),
        (lambda: loop_program(law, plant, uncertain={("lag", "turet")}), UnknownNameError,
         "a name among left_wheel"),
        (lambda: loop_program(law, plant, uncertain={("stiffness", "turret")}), SimulationError,
         "a finite fixed value"),
        (lambda: loop_program(law, robot), SimulationError, "`plant`: expected Plant"),
        (lambda: loop_program(law, plant, 0.1), SimulationError, "expected Imperfections"),
        (lambda: loop_program(law, plant, uncertain=("lag",)), SimulationError, "pairs of kind"),
        (lambda: of(robot, viscous="much"), ShapeError, "an array of numbers"),
        (lambda: of(robot, lag="long"), SimulationError, "a tuple of numbers"),
        (lambda: of(robot, latency="long"), ShapeError, "an array of numbers"),
        (lambda: Wrench("push", "hand", start="now"), ShapeError, "an array of numbers"),
        (lambda: loop_program(law, plant, method="radau"), UnknownNameError, "a method among rk4"),
        (lambda: loop_program(law, plant, control_period=1.5e-3), SimulationError, "whole number"),
        (lambda: loop_program(law, plant, of(robot, momentum_error=(1, 0, 0, 0, 0, 0))),
         SimulationError, "a robot that does not float"),
        (lambda: loop_program(law, cc.Plant(robot, friction=Friction.of(robot, 0.1)),
                              of(robot, viscous=0.1)), SimulationError, "got both"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            make()
    program = loop_program(law, plant, uncertain={("lag", "turret"), ("timing", "jitter")})
    for make, error, words in (
        (lambda: program.numbers(deviations={("lag", "forearm"): 1e-3}), UnknownNameError,
         "uncertain: lag turret, timing jitter, got"),
        (lambda: program.numbers(deviations={("lag", "turret"): [0.0, -1e-9]}), SimulationError,
         "world 1, `lag` of `turret`: expected a number of zero or more"),
        (lambda: program.numbers(np.zeros((2, 3))), ShapeError, "0 numbers for each world"),
        (lambda: program.delays({("timing", "jitter"): [0.0, -1e-9]}, 2), SimulationError,
         "world 1, `jitter`"),
        (lambda: program.start(rover.q0[:3], rover.s0), ShapeError, "`q0`: expected 8 numbers"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            make()
    late = program.delays({("timing", "jitter"): [0.0, 5e-4]}, 2)
    with pytest.raises(SimulationError, match=r"world 1, .*at most 254 control periods"):
        program.delays({("timing", "jitter"): [LONGEST_DELAY * 1e-3, 0.2541]}, 2)
    np.testing.assert_allclose(late, [[0.0, 0.0], [0.0, 0.5]])
