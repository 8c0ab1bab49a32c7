"""Comparisons of runs: numbers against closed forms, and runs of different laws and lengths."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.control import JointLimits, Servo
from concur.errors import ConcurError, SimulationError
from concur.outputs import Output, references
from concur.reduction import reduce
from concur.robots import planar_floater
from concur.simulation import Integrator, RunRecord

SHARE, PACE = 0.4, 5.0  # damping ratio, natural frequency in 1/s
DAMPED = PACE * np.sqrt(1.0 - SHARE**2)
T = np.linspace(0.0, 6.0, 60001)


def record(error, **changes):
    """Record with one output in the plane; the last joint moves at 2 rad/s under 3 sin(t) N m."""
    robot = planar_floater()
    rows = len(error)
    t = np.linspace(0.0, 6.0, rows)
    v, u = np.zeros((rows, robot.nv)), np.zeros((rows, 2))
    v[:, -1], u[:, 1] = 2.0, 3.0 * np.sin(t)
    values = {
        "robot": robot,
        "outputs": (Output("hand", "forearm", "R2"),),
        **{"t": t, "q": np.zeros((rows, robot.nq)), "v": v, "u": u, "error": error},
        **{"margin": np.linspace(0.5, 0.2, rows), "joint_limits": JointLimits.of(robot)},
        **{"q_range": np.zeros((2, robot.nq)), "v_range": np.zeros((2, robot.nv))},
        "u_range": np.array([[0.0, -3.5], [0.0, 3.0]]),
    }
    return RunRecord(**values | changes)


def oscillation(scale=1.0):
    """Free oscillation of a damped mass on a spring, along a line of the plane."""
    decay = np.exp(-SHARE * PACE * T)
    free = decay * (np.cos(DAMPED * T) + SHARE * PACE / DAMPED * np.sin(DAMPED * T))
    return scale * free[:, None] * [[0.6, 0.8]]


def test_numbers_are_those_of_closed_forms():
    table = cc.compare([record(oscillation())], ["one"])
    values = {row.label: row.values[0] for row in table.table}
    peak = 100 * np.exp(-np.pi * SHARE / np.sqrt(1 - SHARE**2))  # overshoot of the step response
    assert values["overshoot of hand"] == pytest.approx(peak, rel=1e-6)
    # Integral of the square of the oscillation from zero to infinity.
    square = (1 + 4 * SHARE**2) / (4 * SHARE * PACE)
    assert values["error of hand, rms"] == pytest.approx(np.sqrt(square / 6.0), rel=1e-6)
    settled = values["settling time of hand, to 2 %"]
    inside = np.abs(oscillation() @ [0.6, 0.8])[settled <= T]
    assert inside.max() <= 0.02
    assert np.abs(oscillation() @ [0.6, 0.8])[settled > T][-1] > 0.02
    assert values["peak torque of joints"] == 3.5  # over all stages, not the rows
    assert values["torque of joints, rms"] == pytest.approx(
        3 * np.sqrt(0.5 - np.sin(12) / 24), rel=1e-7
    )
    # Power 6 sin(t): positive until pi, then braking, which returns nothing.
    assert values["energy supplied by the controls"] == pytest.approx(12.0, rel=1e-6)
    assert values["smallest decoupling margin"] == pytest.approx(0.2)
    assert values["duration"] == 6.0
    assert values["error of hand, largest"] == pytest.approx(1.0)
    assert (values["peak torque of upper_arm"], values["peak torque of forearm"]) == (0.0, -3.5)


def test_errors_at_the_start_too_small_have_no_settling_time():
    tiny, small = (cc.compare([record(oscillation(x))]) for x in (0.99e-6, 1.01e-6))
    label = "settling time of hand, to 2 %"
    assert tiny[label].values == tiny["overshoot of hand"].values == (None,)
    assert tiny[label].shown == ("-",)
    assert small[label].values[0] > 1.0
    lasting = cc.compare([record(np.ones((9, 2)))])[label]
    assert lasting.values == (np.inf,)
    assert lasting.shown == ("not settled",)
    assert "not settled" in str(cc.compare([record(np.ones((9, 2)))]))


def test_limits_of_joints_are_judged_on_both_sides():
    still = record(np.zeros((9, 2)))
    limits = dataclasses.replace(still.joint_limits, torques=np.array([np.inf, 3.5]))
    kept = cc.compare([dataclasses.replace(still, joint_limits=limits)], ["a"])
    assert kept["limits broken"].values == (0.0,)
    assert not kept.broken
    lower = dataclasses.replace(limits, torques=np.array([np.inf, 3.49]))
    broken = cc.compare([dataclasses.replace(still, joint_limits=lower)], ["a"])
    assert broken["limits broken"].values == (1.0,)
    assert broken.broken == (
        "a breaks a limit: peak torque of forearm -3.5 N m, limit >= -3.49 N m.",
    )
    assert broken.broken[0] in str(broken)


class Brake:
    """A law without outputs."""

    torque_limits = None

    def __init__(self, model):
        self.model = model

    def graph(self):
        s = ca.SX.sym("s", self.model.ns)
        return ca.Function("brake", [s], [-s], ["s"], ["u"])


@pytest.fixture(scope="module")
def runs():
    robot = planar_floater()
    model = reduce(robot, momentum=[0, 0, 0, 0, 0, 0.5])
    servo = Servo(model, [Output("hand", "forearm", "R2", point=(0.4, 0, 0))], 4.0, 4.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = references.hold(servo.output(q) - 0.1, group="R2")
    lengths = ((servo, reference, 0.2), (servo, reference, 0.1), (Brake(model), None, 0.2))
    made = [
        cc.simulate(robot, law, path, length, q, [0, 0], dt=Integrator(dt=0.01))
        for law, path, length in lengths
    ]
    return made, reference


def test_runs_of_other_laws_and_lengths(runs):
    (first, short, brake), reference = runs
    table = cc.compare([first, short, brake], reference=reference)
    assert table.names == (
        "planar_floater, servo (1)",
        "planar_floater, servo (2)",
        "planar_floater, brake",
    )
    ends = table["error of hand, at the end"].values
    assert ends[0] == pytest.approx(float(np.linalg.norm(first.error[-1])), rel=1e-12)
    # By hand: where the brake left the output, and where it should have been.
    there = first.servo.output(brake.q[-1]) - reference(0.2).pose
    assert ends[2] == pytest.approx(float(np.linalg.norm(there)), rel=1e-12)
    margins = table["smallest decoupling margin"].values
    assert margins[2] == pytest.approx(min(first.servo.margin(q) for q in brake.q), rel=1e-9)
    lengths = "The runs differ in length: rms, energy and peaks are over each run."
    words = [f"planar_floater, servo ({k}): stiffness 4; damping 4" for k in (1, 2)]
    assert table.notes == (*words, lengths)
    same = cc.compare([first, brake], reference=reference)
    assert same.notes == ("planar_floater, servo: stiffness 4; damping 4",)
    assert repr(table).startswith("<comparison of 3 runs: planar_floater, servo (1), ")
    figure = table.plot()
    units = ["[m]", "[N m]", "[1]"]
    assert [axes.get_ylabel().split(" ", 1)[1] for axes in figure.axes[:3]] == units
    assert all(len(axes.get_lines()) == 3 for axes in figure.axes[:3])


def test_runs_that_cannot_be_compared_are_refused_with_the_reason(runs):
    (first, _, brake), reference = runs
    with pytest.raises(SimulationError, match=r"no `reference`.*Pass the reference of the outputs"):
        cc.compare([first, brake])
    with pytest.raises(SimulationError, match="entry 1: expected runs of laws with outputs"):
        cc.compare([brake], reference=reference)
    with pytest.raises(SimulationError, match="got an empty list"):
        cc.compare([])
    for wrong in ([3], 3):
        with pytest.raises(SimulationError, match="expected a list of runs, got 3"):
            cc.compare(wrong)
    assert len(cc.compare(first).names) == len(cc.compare(iter([first])).names) == 1
    with pytest.raises(SimulationError, match="expected 1 names, one for each run, got 2"):
        cc.compare([first], ["a", "b"])
    other = record(np.zeros((9, 2)), outputs=(Output("tip", "forearm", "R2"),))
    with pytest.raises(SimulationError, match=r"run other.*hand \(R2\), got tip \(R2\)"):
        cc.compare([first, other], ["first", "other"])
    moved = dataclasses.replace(RunRecord.of(brake), robot=cc.robots.rover_arm())
    with pytest.raises(SimulationError, match="got a robot with other coordinates"):
        cc.compare([first, moved], reference=reference)
    with pytest.raises(ConcurError, match="expected one of duration"):
        cc.compare([first])["speed"]


def test_torques_before_and_behind_a_gear_stand_apart():
    robot = cc.robots.rover_arm()
    geared = cc.robot.Motor("gear", {"upper_arm": 0.1})
    actuated = [name for name in robot.actuated if name != "upper_arm"]
    robot = replace(robot, motors=[geared], actuated=actuated)
    found = {name: cc.control.driven_by(robot, name) for name in robot.control_names}
    assert found == {
        "left_wheel": "wheels",
        "right_wheel": "wheels",
        "forearm": "joints",
        "turret": "joints",
        "gear": "motors",
    }


@pytest.mark.parametrize(("second", "each"), [("forearm", True), ("elbow", False)])
def test_runs_with_the_same_controls_have_the_peak_of_each(second, each):
    """A gear that changes one control shows, although another one has the largest torque."""
    runs = [record(np.zeros((9, 2)), u_range=np.array([[-x, -9.0], [0.0, 9.0]])) for x in (2, 3)]
    bodies = [
        replace(b, name=second if b.name == "forearm" else b.name) for b in runs[1].robot.bodies
    ]
    runs[1] = replace(runs[1], robot=replace(runs[1].robot, bodies=bodies, actuated=None))
    assert runs[1].robot.control_names == ("upper_arm", second)
    table = cc.compare(runs, ["a", "b"])
    assert table["peak torque of joints"].values == (9.0, 9.0)
    labels = [row.label for row in table.table]
    assert ("peak torque of upper_arm" in labels) == ("peak torque of forearm" in labels) == each
    if each:
        assert table["peak torque of upper_arm"].values == (-2.0, -3.0)
        assert table["peak torque of forearm"].values == (9.0, 9.0)


def test_a_recorded_run_has_the_largest_error_with_its_time():
    (row,) = (r for r in record(oscillation()).rows if r.quantity == "error of hand, largest")
    assert (row.value, row.unit, row.place) == (pytest.approx(1.0), "m", "at 0 s")
