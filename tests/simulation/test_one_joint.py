"""The simplest robots: one joint on a fixed base, against their equation of motion in SciPy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.simulation import Imperfections, Integrator, RealPlant

ARM, MASS, INERTIA, WEIGHT = 0.4, 2.0, 0.3, 9.81
HEAVIER = 1.5
KP, KD, GOAL = 9.0, 5.0, 0.7


def robot(kind: str, factor: float = 1.0) -> cc.Mechanism:
    """A pendulum about the y axis, or a slider that rises along z."""
    joint = cc.joints.Revolute((0, 1, 0)) if kind == "pendulum" else cc.joints.Prismatic((0, 0, 1))
    mass = factor * MASS
    inertia = cc.Inertia(mass, (ARM, 0, 0), moments=(0.1, factor * INERTIA, 0.1 + factor * INERTIA))
    bodies = [cc.Body("base", cc.joints.Fixed()), cc.Body("arm", joint, "base", inertia=inertia)]
    return cc.Mechanism(kind, bodies, gravity=(0, 0, -WEIGHT))


def servo(kind: str, **options: Any) -> cc.Servo:
    output = (
        cc.Output("y", "arm", "SO2", normal=(0, 1, 0))
        if kind == "pendulum"
        else cc.Output("y", "arm", "R", axes="z")
    )
    return cc.Servo(cc.reduce(robot(kind)), [output], KP, KD, **options)


def terms(kind: str, x: float) -> tuple[float, float]:
    """Inertia, and force of gravity: the arm points along x, and turns down for positive angles."""
    if kind == "pendulum":
        return INERTIA + MASS * ARM**2, MASS * WEIGHT * ARM * np.cos(x)
    return MASS, -MASS * WEIGHT


def torque(kind: str, x: float, s: float, z: float = 0.0, ki: float = 0.0) -> float:
    """Computed torque of the nominal robot."""
    inertia, gravity = terms(kind, x)
    return float(inertia * (KP * (GOAL - x) - KD * s + ki * z) - gravity)


def slope(
    t: float,
    state: np.ndarray,
    kind: str,
    u: float | None = None,
    rub: float = 0.0,
    ki: float = 0.0,
) -> list[float]:
    """Equation of motion of the heavier plant."""
    x, s, z = state
    inertia, gravity = terms(kind, x)
    given = torque(kind, x, s, z, ki) if u is None else u
    return [s, (given + HEAVIER * gravity - rub * s) / (HEAVIER * inertia), GOAL - x]


def exact(kind: str, duration: float, **options: float) -> np.ndarray:
    law = partial(slope, kind=kind, **options)
    found = solve_ivp(law, (0.0, duration), np.zeros(3), rtol=1e-12, atol=1e-13, method="DOP853")
    return np.asarray(found.y[:, -1])


def simulated(kind: str, duration: float, loop: Any, law: Any = None, real: Any = None) -> cc.Run:
    goal = cc.references.hold([GOAL], "SO2" if kind == "pendulum" else "R")
    law = law or servo(kind)
    plant = RealPlant(robot(kind, HEAVIER), imperfections=real)
    return cc.simulate(robot(kind), law, goal, duration, [0.0], [0.0], loop, plant)


@pytest.mark.by_default(3)
@pytest.mark.parametrize("kind", ["pendulum", "slider"])
@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dop853"])
def test_the_closed_loop_is_that_of_its_equation(kind: str, method: str) -> None:
    run = simulated(kind, 0.5, Integrator(method, dt=5e-3))
    x, s, _ = exact(kind, 0.5)
    assert x > 0.05
    assert run.q[-1] == pytest.approx([x], abs=2e-9)
    assert run.v[-1] == pytest.approx([s], abs=2e-8)
    assert run.u[-1] == pytest.approx([torque(kind, x, s)], abs=1e-6)


@pytest.mark.parametrize("kind", ["pendulum", "slider"])
def test_integral_action_has_a_state_of_one(kind: str) -> None:
    law = servo(kind, integral=4.0)
    run = simulated(kind, 0.5, Integrator(dt=5e-3), law)
    x, s, _ = exact(kind, 0.5, ki=4.0)
    assert run.q[-1] == pytest.approx([x], abs=2e-9)
    assert run.v[-1] == pytest.approx([s], abs=2e-8)


@pytest.mark.parametrize("kind", ["pendulum", "slider"])
@pytest.mark.parametrize("viscous", [0.0, 0.8])
def test_sampled_loops_with_imperfections(kind: str, viscous: float) -> None:
    """The torque is held for a period, and friction acts in between."""
    period, count = 0.02, 10
    real = Imperfections.of(robot(kind), viscous=viscous) if viscous else Imperfections()
    held = Integrator(dt=5e-3, control_period=period)
    run = simulated(kind, count * period, held, real=real)
    state = np.zeros(3)
    for _ in range(count):
        law = partial(slope, kind=kind, u=torque(kind, *state[:2]), rub=viscous)
        state = solve_ivp(law, (0.0, period), state, rtol=1e-12, atol=1e-13).y[:, -1]
    assert run.q[-1] == pytest.approx(state[:1], abs=1e-9)
    assert run.v[-1] == pytest.approx(state[1:2], abs=1e-8)


@pytest.mark.by_default(4)
@pytest.mark.parametrize("kind", ["pendulum", "slider"])
@pytest.mark.parametrize("law", [cc.laws.PD, cc.laws.ComputedTorque])
@pytest.mark.parametrize("tables", [False, True])
def test_laws_of_joints_take_imperfections(kind: str, law: Any, tables: bool) -> None:
    """Without any, a run equals the sampled one; the path may be a table of times."""
    model = cc.reduce(robot(kind))
    path = cc.references.hold([0.3])
    if tables:
        path = cc.references.waypoints([0.0, 0.02, 0.04], [[0.0], [0.3], [0.1]])
    built, still = law(model, path, 9.0, 6.0), ([0.0], [0.0])
    loop = Integrator(dt=1e-3, control_period=2e-3)
    plain, real = (
        cc.simulate(model.robot, built, None, 0.06, *still, loop, plant)
        for plant in (None, RealPlant(imperfections=Imperfections()))
    )
    assert np.abs(plain.q).max() > 1e-4
    assert real.q == pytest.approx(plain.q[::2], abs=1e-12)
    assert real.u == pytest.approx(plain.u[::2], abs=1e-9)


@pytest.mark.parametrize("kind", ["pendulum", "slider"])
def test_laws_without_gains_of_their_own_settle_as_the_servo(kind: str) -> None:
    """One joint without gravity: all kinds have the same linear loop."""
    law = servo(kind)
    still = replace(law.model.robot, gravity=(0.0, 0.0, 0.0))
    law, goal = replace(law, model=cc.reduce(still)), cc.references.hold([GOAL])
    t, expected = np.linspace(0.0, 2.0, 201), np.roots([1.0, KD, KP])
    slow, fast = expected
    decay = np.real((fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow))
    for name in cc.control.KINDS:
        made = cc.control.law_of_kind(name, law, {}, (goal, 2.0, [GOAL]))
        run = cc.simulate(still, made, goal, 2.0, [0.0], [0.0], dt=0.01)
        assert np.abs(run.error[:, 0] - GOAL * decay).max() < 1e-6, name
    soft = cc.control.gains_of_kind("passive", law, [0.0], [1.0], [0.5])
    assert soft["rate"] == [0.25]  # kd / 2 below kp / (2 kd) = 1
    assert min(soft["stiffness"][0][0], soft["damping"][0][0]) > 0.0
