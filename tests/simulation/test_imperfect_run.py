"""Simulations with imperfections: the same program in time, recorded, saved and judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.codegen import Batch, Rollout
from concur.errors import DescriptionError, SimulationError
from concur.simulation import (
    GravityGradient,
    Imperfections,
    Integrator,
    RealPlant,
    Tolerances,
    Wrench,
    loop_program,
)
from concur.simulation._imperfections import imperfections_from
from tests.simulation.loops import INERTIA, WHEEL, Stay, limited, part, rolled

EXAMPLES = Path(__file__).parents[2] / "examples"
SAMPLED = Integrator(dt=1e-3, control_period=4e-3, compiled=False)


@pytest.fixture(scope="module")
def rover():
    return cc.load_task(EXAMPLES / "rover_arm.toml")


def simulated(task, real, duration=0.12, integrator=SAMPLED, **options):
    given = task.robot, task.servo, task.reference, duration, task.q0, task.s0
    return cc.simulate(*given, integrator, RealPlant(imperfections=real, **options))


def test_runs_are_the_program_in_time(rover):
    real = Imperfections.of(rover.robot, viscous=0.2, lag=0.003, resolution=1e-4, latency=2e-3)
    plant = cc.Plant(limited(rover.robot, dict.fromkeys(rover.robot.control_names, 30.0)))
    run = simulated(rover, real, plant=plant)
    program = loop_program(rover.servo, plant, real, dt=1e-3, control_period=4e-3)
    x, y = rolled(program, program.start(rover.q0, rover.s0), 30, rover.reference, delay=0.5)
    np.testing.assert_allclose(run.q, part(program, x, "q")[::4], atol=1e-13)
    seen = dict(zip(program.signals, y.T, strict=False))
    np.testing.assert_allclose(run.u[:-1, 2], seen["torque:turret"], atol=1e-12)
    for name in run.error_norms:
        np.testing.assert_allclose(run.error_norms[name][:-1], seen[f"error:{name}"], atol=1e-13)
    assert run.plant_differences == ("friction", "resolution", "lag", "torque limit", "latency")


@pytest.mark.extended
def test_runs_of_a_world_are_those_of_its_campaign(rover):
    real = Imperfections.of(rover.robot, coulomb=0.05, noise=1e-5, jitter=1e-3)
    deviations = {("lag", "turret"): [2e-3, 4e-3], ("timing", "latency"): [1e-3, 3e-3]}
    plant = cc.Plant(rover.robot, uncertain=["forearm.inertia.mass"])
    masses = {"forearm.inertia.mass": [0.1, -0.1]}
    program = loop_program(rover.servo, plant, real, set(deviations), control_period=1e-3)
    rollout = Rollout(
        program.tick, program.step, program.steps_per_tick, program.noises, interpreted=True
    )
    p = program.numbers(plant.numbers(masses), deviations)
    x0, (delay, jitter) = program.start(rover.q0, rover.s0, p=p), program.delays(deviations, 2)
    batch = Batch(x0, p, [7, 8], 5, delay, jitter)
    found = rollout(batch, program.reference(rover.reference, 40), ticks=40, record=1)
    one, world = (
        {key: values[1] for key, values in deviations.items()},
        {"forearm.inertia.mass": -0.1},
    )
    given = {"plant": plant, "world": world, "seed": 5, "deviations": one}
    given["integrator"] = Integrator(dt=1e-3)
    run = simulated(rover, real, 0.039, number=8, **given)
    np.testing.assert_allclose(run.q, found.record.x[1][:, program.states["q"]], atol=1e-12)
    assert run.robot.bodies[-1].inertia.mass == pytest.approx(
        rover.robot.bodies[-1].inertia.mass - 0.1
    )
    other = simulated(rover, real, 0.039, number=7, **given)
    assert np.abs(other.q - run.q).max() > 1e-9


def test_delays_are_those_of_torques_that_switch_at_the_instant():
    servo = cc.Servo(cc.reduce(WHEEL), [cc.Output("angle", "wheel", "SO2")], 40.0, 8.0)
    hold, h, late = cc.references.hold([0.5], group="SO2"), 2e-3, 0.0047
    run = cc.simulate(
        WHEEL,
        servo,
        hold,
        0.6,
        [0.0],
        [0.0],
        plant=RealPlant(imperfections=Imperfections(latency=late)),
        dt=h,
    )
    x, given, worst = np.zeros(2), [], 0.0
    for k in range(300):
        worst = max(worst, abs(run.q[k, 0] - x[0]))
        given.append(float(servo.torque(x[:1], x[1:], hold(0.0))[0]))
        # 4.7 ms are two periods and 0.7 ms: before that the older command acts.
        for span, back in ((0.0007, 3), (0.0013, 2)):
            u = given[max(k - back, 0)] / INERTIA
            end = solve_ivp(lambda _, y, u=u: [y[1], u], (0, span), x, rtol=1e-12, atol=1e-12)
            x = end.y[:, -1]
    assert 0.0 < worst < 1e-5


def test_runs_keep_their_imperfections_in_files(rover, tmp_path):
    real = Imperfections.of(
        rover.robot,
        viscous=0.2,
        stribeck=0.01,
        disturbances=[Wrench("push", "chassis", (1, 0, 0), end=0.1), GravityGradient(1e-3)],
    )
    plant = limited(rover.robot, {"turret": 5.0})
    run = simulated(rover, real, 0.02, plant=plant)
    assert run.plant_differences == (
        "friction",
        "torque limit",
        "wrench `push`",
        "gravity gradient",
    )
    again = cc.Run.load(run.save(tmp_path / "run.h5"), rover.servo, plant)
    assert again.imperfections == real
    assert again.plant_differences == run.plant_differences
    for text in ("{", "[]", '{"friction": 1}'):
        with pytest.raises(DescriptionError, match=r"what `Run\.save` has written"):
            imperfections_from(text)


def test_momentum_is_not_judged_under_disturbances():
    robot = cc.robots.free_flyer()
    law, limits = Stay(robot, np.zeros(robot.nu)), Tolerances(1.0)
    q0, s0 = robot.neutral(), np.zeros(robot.nu)
    push = Wrench("push", robot.base.name, (1, 0, 0))
    for entries, holds in (((), True), ((push,), None)):
        real = Imperfections.of(robot, disturbances=entries, momentum_error=(0, 0.1, 0, 0, 0, 0))
        run = cc.simulate(robot, law, None, 0.02, q0, s0, plant=RealPlant(imperfections=real))
        (drift,) = (f for f in run.findings(limits) if f.quantity.startswith("relative drift"))
        assert drift.holds is holds
        assert run.momentum[0, 1] == pytest.approx(0.1)


def test_failed_runs_say_when_and_keep_their_beginning(rover):
    strong = Imperfections.of(
        rover.robot, disturbances=[Wrench("push", "forearm", (0, 0, 1e9), start=0.0105)]
    )
    with pytest.raises(SimulationError, match=r"a diverged state|the status") as caught:
        simulated(rover, strong, 0.5)
    error = caught.value
    run = error.data["run"]
    assert error.data["time"] == run.t[-1] >= 0.008
    assert np.isfinite(run.q).all()
    with pytest.raises(SimulationError, match="whole number of steps"):
        simulated(rover, Imperfections(latency=1e-3), 0.003)
    with pytest.raises(SimulationError, match="`deviations`"):
        simulated(rover, None, deviations=4.0)
    with pytest.raises(cc.errors.UnknownNameError, match="a method among rk4, rkmk4"):
        simulated(rover, Imperfections(), integrator=Integrator("radau"))


@pytest.mark.extended
def test_all_effects_are_the_same_in_machine_code(compiler):
    task = cc.load_task(EXAMPLES / "rover_arm.toml")
    robot = task.robot
    kinds = {
        "viscous": 0.1, "coulomb": 0.02, "stribeck": 0.01, "ripple": 0.02,
        "lag": 2e-3, "stiffness": 500.0, "damping": 0.5, "motor_inertia": 0.05,
        "resolution": 1e-4, "noise": 1e-5, "velocity_noise": 1e-4,
    }  # fmt: skip
    push = Wrench("push", "forearm", (1, 2, 3), (0.1, 0, 0), start=0.01, end=0.0305)
    real = Imperfections.of(
        robot, **kinds, latency=2e-3, jitter=1e-3, disturbances=[push, GravityGradient(1e-2)]
    )
    family = {(kind, "turret") for kind in kinds} | {("force", "push.y")}
    program = loop_program(task.servo, cc.Plant(robot), real, family)
    graphs = program.tick, program.step, program.steps_per_tick, program.noises
    deviations = {key: np.array([0.0, 0.1, 0.2]) * 1e-3 for key in family}
    p, x0 = program.numbers(deviations=deviations), program.start(task.q0, task.s0)
    delay, jitter = program.delays({}, 3)
    batch = Batch(np.tile(x0, (3, 1)), p, [0, 1, 2], delay=delay, jitter=jitter)
    found = [
        Rollout(*graphs, interpreted=interpreted)(
            batch, program.reference(task.reference, 60), ticks=60, record=59
        )
        for interpreted in (False, True)
    ]
    assert not found[0].status.any()
    np.testing.assert_allclose(found[0].record.x[:, -1], found[1].record.x[:, -1], atol=1e-9)
    assert np.ptp(found[0].record.x[:, -1, :8], axis=0).min() > 1e-9
