"""What torques within limits can hold: against Pinocchio, on both sides of each threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import concur as cc
from concur.control._barriers import LimitRow
from concur.errors import OutputError, UnknownNameError
from concur.io import check, load_task
from concur.robot import Body, Inertia, Mechanism, Motor, joints
from tests.control._mecanum import FOUR, OUTPUTS
from tests.control.test_constraints import Q0, away, changed, rover
from tests.oracles import Pinocchio

EXAMPLES = Path(__file__).parents[2] / "examples"
CONTROLS = ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm")


def weights(servo, path):
    """Reduced forces that hold the robot at rest along a path, by Pinocchio, shape (k, ns)."""
    plant, still = Pinocchio(servo.model.robot), np.zeros(servo.nv)
    return np.array([np.asarray(servo.model.lift(q)[0]).T @ plant.bias(q, still) for q in path])


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_weight_of_the_rover(share):
    free = rover(limits=50.0)
    goal = away(free, 0.2, 0, 0.1, -0.1, 0.1, duration=2.0)
    path = free.feasibility(goal, 2.0, Q0)
    needed = np.abs(weights(free, path.configurations))  # each shape velocity has its drive
    assert np.allclose(np.asarray(free.model.input_matrix(Q0)), np.eye(5))
    most = needed.max(axis=0)
    limits = dict(zip(CONTROLS, np.maximum(1.5 * most, 1.0), strict=True))
    limits["upper_arm"] = share * most[3]
    servo = rover(limits=limits)
    found = servo.torque_reserve(goal, 2.0, Q0)
    assert found.holds == (share > 1.0)
    assert found.weight == pytest.approx(1.0 / share, rel=1e-9)
    time = path.times[needed[:, 3].argmax()]
    assert found.rows[0].place == (
        f"upper_arm needs {most[3]:.3g} N m to hold the weight, {share * most[3]:.3g} N m are "
        f"available at t = {time:.3g} s"
    )
    assert found.problems == (() if share > 1.0 else (found.rows[0].place,))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("limits", [40.0, [60.0, 20.0, 30.0, 50.0, 10.0]])
def test_weight_that_more_motors_share(limits):
    """Five motors on four shape velocities, on a slope; against bounded least squares."""
    robot = replace(FOUR.robot, gravity=(3.0, 1.0, -9.0))
    servo = cc.Servo(cc.reduce(robot), OUTPUTS, 4.0, 4.0, torque_limits=limits)
    start = np.asarray(servo.output(robot.neutral()))
    found = servo.torque_reserve(cc.references.rest_to_rest(start, start + 0.1, 1.0), 1.0)
    path = servo.feasibility(cc.references.rest_to_rest(start, start + 0.1, 1.0), 1.0)
    for share, kept in ((1.0001, True), (0.9999, False)):
        most = found.weight * share * np.asarray(limits) * np.ones(5)
        forces = zip(path.configurations, weights(servo, path.configurations), strict=True)
        rest = [
            lsq_linear(np.asarray(servo.model.input_matrix(q)), f, (-most, most), tol=1e-14).cost
            for q, f in forces
        ]
        assert (max(rest) < 1e-12) == kept


def test_thrusters_that_only_push():
    """A hull on a slope: one that pushes down it holds nothing, one that pushes up it does."""
    hull = Body("hull", joints.Planar(), inertia=Inertia(10.0, moments=(0.5, 0.6, 0.9)))
    for sign, needed in ((1.0, 10.0 * 2.0 / 25.0), (-1.0, np.inf)):
        jets = [
            Motor("up", body="hull", wrench=(-sign, 0, 0, 0, 0, 0)),
            Motor("side", body="hull", wrench=(0, 1, 0, 0, 0, 0)),
            Motor("turn", body="hull", wrench=(0, 0, 0, 0, 0, 1)),
        ]
        robot = Mechanism("hull", [hull], gravity=(2.0, 0, -9.0), motors=jets)
        limits = [(0.0, 25.0), (-5.0, 5.0), (-5.0, 5.0)]
        output = cc.Output("hull", "hull", "SE2")
        servo = cc.Servo(cc.reduce(robot), [output], 4.0, 4.0, torque_limits=limits)
        found = servo.torque_reserve(cc.references.hold(servo.output(robot.neutral())), 1.0)
        assert found.weight == pytest.approx(needed)
        assert found.holds == (sign > 0.0)


@pytest.mark.extended
def test_a_limit_of_a_joint_takes_torques_of_all_motors():
    """One row: the largest acceleration away from the limit has each torque at its own limit."""
    robot = changed("forearm", limits=(-1.7, 3.0))
    free = rover(robot, 50.0)
    goal = away(free, 0, 0, 0.1, -0.1, 0.1, duration=2.0)
    path, plant = free.feasibility(goal, 2.0, Q0), Pinocchio(robot)
    few, shares = np.unique(np.linspace(0, len(path.times) - 1, 41).astype(int)), []
    for q in path.configurations[few]:
        held = np.r_[q[:-1], -1.7]
        lift = np.asarray(free.model.lift(held)[0])
        mass, force = lift.T @ plant.mass_matrix(held) @ lift, weights(free, [held])[0]
        inverse = np.linalg.inv(mass)
        shares.append(inverse[-1] @ force / np.abs(inverse[-1]).sum())  # of 1 N m each
    assert max(shares) > 0.0
    time, q0 = path.times[few[int(np.argmax(shares))]], np.r_[Q0[:-1], -1.7]
    here = cc.references.hold(free.output(q0))
    for strong in (0.9, 1.1):
        servo = rover(robot, strong * max(shares))
        found = servo.torque_reserve(goal, 2.0, Q0)
        assert found.joints == pytest.approx(1.0 / strong, rel=1e-6)
        held = found.rows[1]
        assert held.holds == (strong > 1.0)
        assert held.place.endswith(f"at t = {time:.3g} s with forearm at its lower limit")
        assert found.weight > 1.0  # alone its motor holds nothing
        run = cc.simulate(robot, servo, here, 0.2, q0, [0] * 5, dt=2e-3)
        assert run.t[-1] == pytest.approx(0.2)  # the nearest thing, no end


def test_limits_that_contradict_each_other(monkeypatch):
    row, zero = ca.SX(ca.DM([[0, 0, 0, 0, 1]])), ca.SX(1, 1)
    apart = [LimitRow(row, zero, ["a"], [low], [low + 1]) for low in (ca.SX(1), ca.SX(-2))]
    monkeypatch.setattr("concur.control._torque_reserve.limit_rows", lambda *_: apart)
    servo = rover()
    found = servo.torque_reserve(away(servo, 0, 0, 0.1, 0, 0, duration=1.0), 1.0, Q0)
    assert (found.joints, found.holds) == (np.inf, False)
    assert found.problems[0].startswith(
        "no torques are enough to keep the limits of joints at t = "
    )


def test_speeds_in_a_box_take_torques():
    robot = changed("forearm", speed_limit=1.0)
    servo = rover(robot, 12.0)
    goal = away(servo, 0, 0, 0.02, 0, 0, duration=1.0)
    ranges = {"upper_arm": (0.9, 1.1), "forearm": (-1.7, -1.5)}
    alone = servo.torque_reserve(goal, 1.0, Q0)
    slow, fast = (
        servo.torque_reserve(goal, 1.0, Q0, ranges, {"forearm": speed}) for speed in (1.0, 40.0)
    )
    assert alone.holds
    assert slow.holds
    assert alone.joints <= slow.joints < 1.0 < fast.joints
    assert alone.weight < slow.weight
    corners = [(*Q0[:6], a, b) for a in (0.9, 1.1) for b in (-1.7, -1.5)]
    held = weights(servo, [np.array(q) for q in corners])
    worst = np.abs(held).max() / 12.0
    assert worst - 0.02 < slow.weight <= worst + 1e-9
    with pytest.raises(UnknownNameError):
        servo.torque_reserve(goal, 1.0, Q0, ranges, {"elbow": 1.0})
    for wrong in ({"forearm": (1.0, -1.0)}, {"forearm": (0.0, 1.0, 2.0, 3.0)}):
        with pytest.raises(OutputError):
            servo.torque_reserve(goal, 1.0, Q0, wrong)


def test_check_of_a_task_says_what_cannot_be_held():
    task = load_task(EXAMPLES / "rover_arm.toml")
    assert check(task).start.reserve.rows == ()
    weak = task.with_law({"kind": "servo", "torque_limits": 6.2, "constraints": {}})
    found = check(replace(weak, duration=15.0))
    assert found.status == "failed"
    (problem,) = found.start.problems
    assert problem == (
        "upper_arm needs 7.46 N m to hold the weight, 6.2 N m are available at t = 12 s"
    )
    row = next(row for row in found.rows if row.quantity.startswith("torque at rest"))
    assert row.value == pytest.approx(120.3, abs=0.1)
    passed = check(task.with_law({"kind": "servo", "torque_limits": 8.0, "constraints": {}}))
    assert passed.status == "passed"


def test_loads_of_wheels_at_rest():
    """The load of the caster from the weight of the bodies, by Pinocchio's poses."""
    robot = replace(rover().model.robot, supports={"caster": (0.75, 0.0, -0.1)})
    free = rover(robot, 50.0)
    goal = away(free, 0.2, 0, 0.1, -0.1, 0.1, duration=2.0)
    path, plant, loads = free.feasibility(goal, 2.0, Q0), Pinocchio(robot), []
    for q in path.configurations:
        moment = 0.0
        for body in robot.bodies:
            away_from_axle = np.linalg.inv(plant.pose(q, "chassis")) @ plant.pose(q, body.name)
            place = away_from_axle @ np.append(body.inertia.com, 1.0)
            moment += 9.81 * body.inertia.mass * place[0]
        loads.append(moment / 0.75)
    for share in (0.999, 1.001):
        least = min(loads) / share
        rules = cc.Constraints(least_load={"caster": least})
        found = rover(robot, 50.0, constraints=rules).torque_reserve(goal, 2.0, Q0)
        row = next(row for row in found.rows if row.quantity == "load of caster at rest, smallest")
        assert row.value == pytest.approx(min(loads), rel=1e-9)
        assert row.limit == least
        assert row.holds == (share > 1.0) == found.holds
        assert f"t = {path.times[int(np.argmin(loads))]:.3g} s" in row.place


@pytest.mark.parametrize("grip", [0.2, 2.0])
def test_limits_that_the_exact_motion_exceeds(grip):
    """A run of the free servo needs more friction than 0.2 where it starts, and less than 2."""
    robot = replace(rover().model.robot, supports={"caster": (0.75, 0.0, -0.1)})
    servo = rover(robot, 50.0, constraints=cc.Constraints(grip=grip))
    goal = away(servo, 1.0, 0, 1.0, 0, 0, duration=1.5)
    rows = servo.torque_reserve(goal, 1.5, Q0).rows
    places = [row.place for row in rows if "exact motion" in row.quantity]
    assert len(places) == (grip < 1.0)
    assert all("grip of left_wheel at t = " in place for place in places)
