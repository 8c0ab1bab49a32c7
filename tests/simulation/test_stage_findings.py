"""A run on a robot reduced in stages says how constant the stages' momenta stayed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from tests.oracles import crane


@pytest.fixture(scope="module")
def run() -> cc.Run:
    robot = replace(crane(), actuated=["axle", "left", "boom"])
    model = cc.reduce(robot, stages={"column": -11.5})
    outputs = [
        cc.Output("front", "axle", "R2", point=(1.0, 0.0, 0.0)),
        cc.Output("height", "boom", "R", axes="z", point=(2.0, 0.0, 0.0)),
    ]
    servo = cc.Servo(model, outputs, 4.0, 4.0)
    q = robot.neutral()
    q[robot.q_slice("boom")] = 0.4
    start = servo.output(q)
    ahead = cc.references.rest_to_rest(start[:2], start[:2] + np.array([1.0, 0.1]), 4.0)
    up = cc.references.rest_to_rest(start[2:], start[2:] + 0.2, 4.0)
    reference = cc.references.stack(ahead, up)
    return cc.simulate(robot, servo, reference, 4.0, q, np.zeros(model.ns), dt=2e-3)


def test_momentum_of_the_stage_stays(run: cc.Run) -> None:
    column = run.robot.v_slice("column").start
    # Wheels have no say in it: the column's row of the mass matrix is its momentum.
    momenta = [run.robot.mass_matrix(q)[column] @ v for q, v in zip(run.q, run.v, strict=True)]
    np.testing.assert_allclose(momenta, -11.5, rtol=1e-9)
    assert list(run.stage_drifts) == ["column"]
    assert run.stage_drifts["column"].max() < 1e-9
    labels = {f.label: f for f in run.findings(cc.Tolerances(settling_time=2.0))}
    assert labels["relative drift of the momentum of column"].holds


def test_drift_is_seen(run: cc.Run) -> None:
    turned = run.v.copy()
    column = run.robot.v_slice("column").start
    turned[-1, column] *= 1.01
    off = replace(run, v=turned)
    mass = run.robot.mass_matrix(run.q[-1])[column, column]
    expected = 0.01 * abs(mass * run.v[-1, column]) / 11.5
    assert off.stage_drifts["column"].max() == pytest.approx(expected, rel=0.05)


def test_other_robots_have_no_stages() -> None:
    model = cc.reduce(cc.robots.rover_arm())
    assert not hasattr(model, "chain")
