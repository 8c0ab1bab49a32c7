"""Every kind of law with every imperfection on every kind of plant, in one step and in many."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.control import KINDS, TrackingLaw, law_of_kind, tracking_law
from concur.simulation import (
    GravityGradient,
    Imperfections,
    Integrator,
    RealPlant,
    Wrench,
    mujoco_run,
    run_signals,
)
from tests.simulation.test_records_of_systems import arm

PERIOD = 0.01

IMPERFECTIONS: dict[str, dict[str, Any]] = {
    "delay": {"latency": 0.013},
    "jitter": {"latency": 0.002, "jitter": 0.004},
    "lag": {"lag": 0.02},
    "ripple": {"ripple": 0.1},
    "flexible joints": {"stiffness": 400.0, "damping": 2.0, "motor_inertia": 0.05},
    "encoders": {"resolution": 2e-3},
    "noise": {"noise": 1e-3, "velocity_noise": 1e-2},
    "friction": {"viscous": 0.2, "coulomb": 0.1, "stribeck": 0.05},
    "momentum": {"momentum_error": (0.02, 0.0, 0.0, 0.0, 0.0, 0.02)},
    "disturbance": {},
}


class Springs:
    """A law of a user: the transposed Jacobian."""

    torque_limits = None

    def __init__(self, servo: cc.Servo) -> None:
        self.servo, self.model, self.outputs = servo, servo.model, servo.outputs

    def graph(self) -> ca.Function:
        names = ("q", "s", "pose", "twist")
        x = {name: ca.SX.sym(name, self.servo.inputs[name]) for name in names}
        rows = self.servo.decoupling(x["q"])
        force = 4.0 * self.servo.pose_error(x["q"], x["pose"])
        u = rows.T @ (force - 4.0 * (rows @ x["s"] - x["twist"]))
        u += self.model.bias(x["q"], ca.SX(self.model.ns, 1))
        return ca.Function("springs", [*x.values()], [u], [*x], ["u"])


LAWS = [*KINDS, "own"]
PLANTS = ["rover", "floater", "system"]


@cache
def scene(plant: str) -> tuple[Any, cc.Servo, list[float], list[float]]:
    """Robot, servo, start and end of the outputs."""
    if plant == "system":
        system, servo = arm()
        return system, servo, [0.2, 1.0], [1.0, 0.5]
    if plant == "rover":
        robot = cc.robots.rover_arm()
        outputs = [
            cc.Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0)),
            cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0)),
        ]
        servo, q = cc.Servo(cc.reduce(robot), outputs, [4, 9], [4, 6]), robot.neutral()
        q[-3:] = -0.1, 1.0, -1.6
    else:
        robot = cc.robots.planar_floater()
        model, q = cc.reduce(robot, momentum=[0.0] * 5 + [0.2]), robot.neutral()
        q[-2:] = 0.6, 1.2
        servo = cc.Servo(model, [cc.Output("hand", "forearm", "R2", point=(0.4, 0, 0))], 4.0, 4.0)
    goal = np.asarray(servo.output(q)) + 0.02
    return robot, servo, q.tolist(), goal.tolist()


@cache
def law_of(kind: str, plant: str) -> TrackingLaw:
    _, servo, q, goal = scene(plant)
    if kind == "own":
        return tracking_law(Springs(servo))
    if plant == "system" and kind in ("pd", "computed torque"):
        path = cc.references.hold(np.add(q, 0.1))
        make = KINDS[kind]
        return tracking_law(make(servo.model, path, 20.0, 8.0), outputs=servo.outputs)
    return law_of_kind(kind, servo, {}, (cc.references.hold(goal), 1.0, q))


def imperfections(name: str, plant: str) -> Imperfections | None:
    """None where a plant has no such thing."""
    robot, given = scene(plant)[0], IMPERFECTIONS[name]
    if name == "momentum" and plant != "floater":
        return None
    if name == "disturbance":
        if plant == "system":
            return None
        body = robot.bodies[-1].name
        push = Wrench("push", body, force=(0.5, 0.0, 0.0), start=0.013, end=0.047)
        found = (push, *([GravityGradient(1e-2)] if plant == "floater" else []))
        return Imperfections(disturbances=found)
    return Imperfections.of(robot, **given)


def cases() -> list[Any]:
    """All of them; by default each law and each imperfection on some plant."""
    found = []
    for i, kind in enumerate(LAWS):
        for j, name in enumerate(IMPERFECTIONS):
            for k, plant in enumerate(PLANTS):
                lacks = {"momentum": ("rover", "system"), "disturbance": ("system",)}
                if plant in lacks.get(name, ()):
                    continue
                marks = [] if (i + 2 * j + k) % 15 == 1 else [pytest.mark.extended]
                found.append(pytest.param(kind, name, plant, marks=marks))
    return found


@pytest.mark.parametrize(("kind", "name", "plant"), cases())
def test_laws_run_with_imperfections(kind: str, name: str, plant: str) -> None:
    """A small imperfection moves the run a little, and moves it at all."""
    robot, servo, q, goal = scene(plant)
    law, real = law_of(kind, plant), imperfections(name, plant)
    assert real is not None
    goal_now = cc.references.hold(goal)
    runs = [
        cc.simulate(
            robot, law, goal_now, 0.1, q, [0.0] * servo.ns,
            Integrator(dt=1e-3 if name in ("flexible joints", "friction") else 5e-3,
                       control_period=PERIOD),
            RealPlant(imperfections=one),
        )
        for one in (Imperfections(), real)
    ]  # fmt: skip
    ideal, moved = (np.hstack([run.q, run.v]) for run in runs)
    off = np.abs(ideal[-1] - moved[-1]).max()
    assert 1e-9 < off < 1.0
    signals = run_signals(runs[1])
    assert all(len(signals[f"error:{name}"]) == 11 for name in ([o.name for o in law.outputs]))
    assert np.isfinite(runs[1].u).all()


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.extended] * (k != "passive")) for k in LAWS]
)
def test_laws_drive_the_rover_of_mujoco(kind: str) -> None:
    """Wheels that slip little: the hand is where it is on wheels that roll."""
    pytest.importorskip("mujoco")
    robot, servo, q, goal = scene("rover")
    law, path, still = law_of(kind, "rover"), cc.references.hold(goal), [0.0] * servo.ns
    own = cc.simulate(robot, law, path, 0.2, q, still, Integrator(control_period=1e-3))
    other = mujoco_run(law, path, 0.2, q, still, supports={"caster": (0.5, 0.0, 0.0)}).run
    assert np.abs(own.error[-1] - other.error[-1]).max() < 0.1 * np.abs(own.error[0]).max()
