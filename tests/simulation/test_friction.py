"""Friction of plants: closed forms for one joint, and the same model in plants and rigs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

import concur as cc
from concur.errors import SimulationError, UnknownNameError
from concur.simulation import Friction, Integrator, Tolerances, check_friction

INERTIA = 0.4  # kg m^2


@pytest.fixture(scope="module")
def wheel():
    body = cc.Body(
        "wheel", cc.joints.Revolute((0, 0, 1)), inertia=cc.Inertia(1.0, moments=(INERTIA,) * 3)
    )
    return cc.Mechanism("one wheel", [body], actuated=["wheel"])


def test_one_joint_slows_down_as_its_equation_says(wheel):
    friction = Friction.of(wheel, 0.8, {"wheel": 0.3})
    for speed in (-2.0, 0.004, 0.0, 1.0):
        vdot, _ = cc.Plant(wheel, friction=friction).acceleration([0.0], [speed], [0.5])
        rest = 0.5 - 0.8 * speed - 0.3 * math.tanh(speed / 0.01)
        assert vdot[0] == pytest.approx(rest / INERTIA, rel=1e-14)
    assert friction.left(np.array([0.5]), np.array([0.0])) == 0.5


def test_friction_acts_along_the_controls_of_a_rover():
    robot = cc.robots.rover_arm()
    rng = np.random.default_rng(1)
    q, v, u = robot.neutral(), rng.normal(size=robot.nv), rng.normal(size=5)
    friction = Friction.of(robot, {"turret": 0.5, "left_wheel": 0.2}, 0.1)
    speeds = v[list(robot.actuated_freedoms)]
    by_hand = u - np.array([0.2, 0, 0.5, 0, 0]) * speeds - 0.1 * np.tanh(speeds / 0.01)
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
            integrator=Integrator(dt=0.01),
        )
        for plant in (cc.Plant(wheel), cc.Plant(wheel, friction=friction))
    }  # fmt: skip
    for known, run in made.items():
        assert run.plant_differences == (() if known is None else ("friction",))
        (deviation,) = (f for f in run.findings(Tolerances(0.1)) if f.label.startswith("deviation"))
        assert deviation.holds is (True if known is None else None)
        again = cc.Run.load(run.save(tmp_path / "run.h5"), servo)
        assert again.friction == known
        assert again.plant_differences == run.plant_differences
    # The energy that friction takes: 0.8 N m s/rad times the square of the speed.
    run = made[friction]
    assert run.energy_balance[-1] == pytest.approx(
        -trapezoid(0.8 * run.v[:, 0] ** 2, run.t), rel=1e-3
    )


def test_friction_is_checked_against_a_step(wheel):
    def plant(rate):
        return cc.Plant(wheel, friction=Friction.of(wheel, rate * INERTIA))

    check_friction(cc.Plant(wheel), 1e9)
    check_friction(plant(1.999e3), 1e-3)
    with pytest.raises(SimulationError, match=r"plant of `one wheel`, `friction` of `wheel`"):
        check_friction(plant(2.001e3), 1e-3)
    check_friction(plant(2.001e3), 0.9e-3)


def test_runs_with_fixed_steps_refuse_friction_that_is_too_stiff(wheel):
    servo = cc.Servo(cc.reduce(wheel), [cc.Output("angle", "wheel", "SO2")], 4.0, 4.0)

    def end(rate, method="rk4", period=None, dt=1e-3):
        plant = cc.Plant(wheel, friction=Friction.of(wheel, 0.0, 0.01 * rate * INERTIA))
        reference = cc.references.hold([0.0], group="SO2")
        options = Integrator(method, dt, control_period=period)
        run = cc.simulate(
            wheel, servo, reference, 0.02, [0.4], [0.0], plant=plant, integrator=options
        )
        return run.q[-1, 0]

    for method, period in (("rk4", None), ("rkmk4", 2e-3)):
        end(1.999e3, method, period)
        with pytest.raises(SimulationError, match=r"Take a step of 0.00094 s or less") as refused:
            end(2.001e3, method, period)
        assert refused.value.data["rate"] == pytest.approx(2.001e3, rel=1e-12)
    assert end(2.001e3, dt=2.5e-4) == pytest.approx(end(2.001e3, "radau"), rel=1e-7)
