"""Plans of other robots: a floater with seven joints, a lift with an arm on wheels, steered wheels.

Torques of each plan, with weak feedback of the joints, take the robot to its goal in simulation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import concur as cc
from concur.planning import PlanLimits
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.contract._robots import _mobile_manipulator

ROOT = Path(__file__).parents[2]


def floater() -> tuple[Any, ...]:
    """A hull with an arm of seven joints and a momentum: hand and hull where a motion leads."""
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    bodies = [Body("hull", joints.Free(), inertia=Inertia(60.0, moments=(8.0, 9.0, 10.0)))]
    parent, place = "hull", Pose((0.5, 0.0, 0.2))
    for k, axis in enumerate(axes.astype(float)):
        inertia = Inertia(3.0 - 0.3 * k, (0.12, 0.0, 0.0), (0.02, 0.04, 0.04))
        bodies.append(Body(f"link{k}", joints.Revolute(tuple(axis)), parent, place, inertia))
        parent, place = f"link{k}", Pose((0.25, 0.0, 0.0))
    robot = Mechanism("floater", bodies, gravity=(0.0, 0.0, 0.0))
    model = cc.reduce(robot, momentum=(4.0, -2.0, 2.0, 1.0, -1.0, 0.5))
    q0, change = robot.neutral(), np.array([0.4, -0.5, 0.3, 0.6, -0.2, 0.4, -0.5])
    q0[7:] = 0.2, 0.6, -0.3, -1.1, 0.3, 0.7, 0.1
    q, step = q0.copy(), 0.05
    for k in range(60):
        x = (k + 0.5) / 60
        s = change * 10.0 * x**2 * (1.0 - x) ** 2
        half = robot.integrate(q, 0.5 * step * model.velocity(q, s))
        q = robot.integrate(q, step * model.velocity(half, s))
    hand = cc.Output("hand", "link6", "R3xSO3", point=(0.2, 0.0, 0.0))
    base = cc.Output("base", "hull", "SO3")
    goals = {"hand": robot.pose(q, "link6") @ Pose((0.2, 0.0, 0.0)).matrix, "base": q[3:7]}
    return model, [hand, base], q0, goals, PlanLimits(torques=30.0, speeds=1.0)


def lift() -> tuple[Any, ...]:
    """A base on two wheels, a lift and an arm of seven joints: base and pose of the hand."""
    robot = _mobile_manipulator()
    model, q0 = cc.reduce(robot), robot.neutral()
    q0[list(model.shape_coordinates)[2:]] = 0.1, 0.4, 0.5, -0.3, 0.9, 0.2, 0.5, 0.1
    base = cc.Output("base", "base", "R2", point=(0.3, 0.0, 0.0))
    hand = cc.Output("hand", "arm7", "R3xSO3", point=(0.05, 0.0, 0.0))
    q = q0.copy()
    q[:3] = 0.9, 0.5, 0.7
    q[list(model.shape_coordinates)[2:]] = 0.25, 0.0, 0.8, 0.2, 0.6, -0.2, 0.9, 0.4
    goals = {
        "base": (robot.pose(q, "base") @ [0.3, 0.0, 0.0, 1.0])[:2],
        "hand": robot.pose(q, "arm7") @ Pose((0.05, 0.0, 0.0)).matrix,
    }
    torques = {"lift": 900.0} | {f"arm{k}": 250.0 for k in range(1, 8)} | dict.fromkeys(
        ("left", "right"), 20.0
    )  # fmt: skip
    speeds = {"lift": 0.2, "left": 8.0, "right": 8.0} | {f"arm{k}": 1.5 for k in range(1, 8)}
    return model, [base, hand], q0, goals, PlanLimits(torques=torques, speeds=speeds)


def swerve() -> tuple[Any, ...]:
    """A platform with four steered wheels: a place of one fork, and the heading of another."""
    robot = cc.load(ROOT / "examples/drives/swerve.toml")
    nose = cc.Output("nose", "steer_fl", "R2", point=(0.2, 0, 0))
    heading = cc.Output("heading", "steer_rr", "SO2")
    goals = {"nose": [2.0, 1.0], "heading": [0.5]}
    limits = PlanLimits(torques=20.0, speeds=5.0)
    return cc.reduce(robot), [nose, heading], robot.neutral(), goals, limits


@pytest.mark.extended
@pytest.mark.parametrize("kind", [floater, lift, swerve])
def test_robots_of_other_kinds_are_planned(kind) -> None:
    model, outputs, q0, goals, limits = kind()
    found = cc.plan(model, outputs, q0, goals, limits)
    assert found.reached, found.why
    assert all(row.holds is not False for row in found.rows)
    most = limits.torques
    allowed = [most if isinstance(most, float) else most[name] for name in model.control_names]
    assert (np.abs(found.u).max(axis=0) <= 1.001 * np.array(allowed)).all()
    shape = list(model.shape_coordinates)
    r, s, u = (CubicSpline(found.t, x) for x in (found.q[:, shape], found.s, found.u))
    drives = [list(model.control_names).index(name) for name in model.shape_names]
    stiff = 0.3 * np.array(allowed)[drives]

    def torque(t, q, now):
        found = np.array(u(t))
        found[drives] += stiff * (r(t) - q[shape]) + 0.5 * stiff * (s(t) - now)
        return found

    rest, step = np.zeros(model.ns), found.duration / 400
    motion = cc.simulation.forced_motion(model, torque, found.duration, q0, rest, dt=step)
    for output in outputs:
        place = cc.Servo(model, [output], 1.0, 1.0).output(motion.q[-1])
        assert np.abs(place - found.samples[output.name][0][-1]).max() < 2e-3
