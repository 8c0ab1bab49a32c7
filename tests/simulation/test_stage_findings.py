"""A run on a robot reduced in stages reports the drift of the stages' momenta."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import concur as cc
from tests.oracles import crane
from tests.simulation.loops import changed


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
    # Wheels have no influence: the column's row of the mass matrix is its momentum.
    momenta = [run.robot.mass_matrix(q)[column] @ v for q, v in zip(run.q, run.v, strict=True)]
    np.testing.assert_allclose(momenta, -11.5, rtol=1e-9)
    assert list(run.stage_drifts) == ["column"]
    assert run.stage_drifts["column"].max() < 1e-9
    labels = {f.quantity: f for f in run.findings(cc.simulation.Tolerances(evaluate_after=2.0))}
    assert labels["relative drift of the momentum of column"].holds


def test_drift_is_seen(run: cc.Run) -> None:
    turned = run.v.copy()
    column = run.robot.v_slice("column").start
    turned[-1, column] *= 1.01
    off = changed(run, v=turned)
    mass = run.robot.mass_matrix(run.q[-1])[column, column]
    expected = 0.01 * abs(mass * run.v[-1, column]) / 11.5
    assert off.stage_drifts["column"].max() == pytest.approx(expected, rel=0.05)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("part", [0, 1])
def test_of_two_parts_of_a_joint_the_worse_one_counts(run: cc.Run, part: int) -> None:
    # A body of a round inertia, held in its centre: its spin, and its turn about the vertical.
    hull = cc.Body("hull", cc.joints.Planar(), inertia=cc.Inertia(6.0, moments=(1, 1, 0.9)))
    inertia = cc.Inertia(2.0, moments=(0.3, 0.3, 0.2))
    ball = cc.Body("ball", cc.joints.Spherical(), "hull", cc.Pose((0.1, 0.2, 0.3)), inertia)
    robot = cc.Mechanism("toy", [hull, ball], gravity=(0, 0, -9.81), actuated=[])
    model = cc.reduce(robot, stages={"ball": [0.02, 0.1]})
    q = robot.neutral()
    q[robot.q_slice("ball")] = np.sin(0.45), 0.0, 0.0, np.cos(0.45)
    theta = [0.02, 0.1]
    theta[part] += 0.01
    off = cc.reduce(robot, stages={"ball": theta})
    states = np.array([model.velocity(q, [0.01]), off.velocity(q, [0.01])])
    only = SimpleNamespace(model=model)
    both = changed(replace(run, robot=robot, servo=only), q=np.array([q, q]), v=states)
    drift = both.stage_drifts["ball"]
    assert drift[0] < 1e-12
    assert 0.05 < drift[1] < 0.6


@pytest.mark.by_default(1)
@pytest.mark.parametrize("part", [0, 1], ids=["linear", "angular"])
def test_drift_of_a_joint_that_slides_and_turns_is_the_same_in_any_unit(
    run: cc.Run, part: int
) -> None:
    # Linear and angular momenta of one joint: their norm would depend on the unit of length.
    def drift(unit: float) -> float:
        hull = cc.Body("hull", cc.joints.Planar(), inertia=cc.Inertia(6.0, moments=[0.9] * 3))
        spool = cc.Inertia(2.0, moments=(0.3, 0.3, 0.2))
        place = cc.Pose((0.1, 0.2, 0.3))
        drum = cc.Body("drum", cc.joints.Cylindrical((0, 0, 1)), "hull", place, spool)
        robot = _in_unit(cc.Mechanism("toy", [hull, drum], actuated=[]), unit)
        theta = np.array([0.3, 0.1])
        sizes = np.array([unit, unit**2])
        turns = [u == "N m s" for u in cc.reduce(robot, stages={"drum": [0, 0]}).momentum_units]
        theta, sizes = (np.where(turns, x[1], x[0]) for x in (theta, sizes))
        model = cc.reduce(robot, stages={"drum": theta / sizes})
        moved = theta + np.where(np.array(turns) == bool(part), 0.01, 0.0)
        off = cc.reduce(robot, stages={"drum": moved / sizes})
        q = robot.neutral()
        states = np.array([m.velocity(q, np.zeros(m.ns)) for m in (model, off)])
        only = SimpleNamespace(model=model)
        both = changed(replace(run, robot=robot, servo=only), q=np.array([q, q]), v=states)
        return float(both.stage_drifts["drum"].max())

    assert drift(1.0) > 1e-3
    assert drift(1e-3) == pytest.approx(drift(1.0), rel=1e-9)


def _in_unit(robot: cc.Mechanism, unit: float) -> cc.Mechanism:
    """The same robot with lengths in another unit, m."""
    bodies = [
        replace(
            body,
            placement=replace(
                body.placement, translation=tuple(x / unit for x in body.placement.translation)
            ),
            inertia=cc.Inertia(
                body.inertia.mass,
                moments=tuple(x / unit**2 for x in body.inertia.moments),
            ),
        )
        for body in robot.bodies
    ]
    return replace(robot, bodies=bodies)
