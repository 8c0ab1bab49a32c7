"""A wrong momentum: how wrong, and what it does, against Pinocchio and against motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Redundancy, Servo
from concur.errors import ConcurError, NonFiniteError, ReductionError, ShapeError
from concur.outputs import Output, ReferenceSample
from concur.outputs.references import hold
from concur.reduction import reduce
from concur.simulation import RealPlant, simulate
from tests.control._cases import case_study, refused
from tests.control._floating_cases import (
    CHECK_A_Q0,
    CHECK_A_V0,
    Chain,
    OutputOracle,
    build,
    check_a_demand,
    full_velocity,
    states,
    steady,
)
from tests.oracles import Pinocchio, assert_close, full_order

NAMES = ["hand of the free-flyer", "base attitude and hand", "tip on the station", "three wheels"]
Q0 = np.array([0, 0, 0, 0, 0, 0, 1, 0.1, 1, -1.35, 0.1, 1, -1.5])
ASSUMED = np.array([1.95, -1.25, 0.40, 0.45, 0.59, -0.15])
WRONG_BY = np.array([0.5, -0.2, 0.3, 0.2, 0.1, -0.3])


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_pinocchio(name: str) -> None:
    servo, oracle = build(name)
    rng = np.random.default_rng(1)
    for q, s, lifted in states(servo, 3):
        v = lifted.copy()
        v[:6] += rng.uniform(-0.2, 0.2, 6)
        found = servo.mismatch(q, v)
        assert_close(found.assumed, servo.model.momentum, 1e-12)
        assert_close(found.measured, oracle.plant.momentum(q, v), 1e-12)
        assert_close(found.difference, oracle.plant.momentum(q, v - lifted), 1e-11)
        assert_allclose(found.base_velocity, (lifted - v)[:6], rtol=0, atol=1e-11)
        assert_allclose(
            found.output_velocity, oracle.jacobian(q) @ (lifted - v), rtol=0, atol=1e-11
        )
        # The plant differs from the law by the disturbance. The reference is at rest:
        # one that moves would be carried with the wrong velocity too.
        pose = oracle.sample(q, rng).flat_pose
        sample = ReferenceSample(pose, np.zeros(servo.size), np.zeros(servo.size))
        made = oracle.acceleration(q, v, servo.torque(q, s, sample))
        lack = made - oracle.command(servo, q, v, sample)
        assert np.abs(lack).max() > 1e-3
        assert_close(found.disturbance, lack, 1e-9)
        balance = np.linalg.inv(servo.inertia) @ servo.stiffness @ found.offset
        assert_close(balance, -lack, 1e-9)
        assert found.used


@pytest.mark.parametrize("group", ["R3xSO3", "SE3", "R3"])
def test_disturbance_is_what_the_robot_lacks(group: str) -> None:
    robot = robots.free_flyer()
    model = reduce(robot, momentum=ASSUMED)
    rule = Redundancy() if group == "R3" else None
    servo = Servo(model, [Output("hand", "tool", group)], 4.0, 3.0, redundancy=rule)
    rng = np.random.default_rng(3)
    s = rng.normal(0, 0.1, model.ns)
    v = model.velocity(Q0, s, ASSUMED + WRONG_BY)
    found = servo.mismatch(Q0, v)

    still = np.zeros(servo.size)
    pose = servo.output(Q0)
    pose[:3] += (0.05, -0.02, 0.03)
    sample = ReferenceSample(pose, still, still)
    torque = np.concatenate([np.zeros(6), servo.torque(Q0, s, sample)])
    acceleration = Pinocchio(robot).forward_dynamics(Q0, v, torque)
    measured = replace(servo, use_measured_velocity=True)
    jacobian = servo.decoupling(Q0)
    velocity, drift = measured.motion(Q0, measured.velocity(Q0, v))
    # Where all velocities are known, output and shape acceleration are in this relation.
    moved = jacobian @ acceleration[6:] + drift
    x, ve = measured.error(Q0, v, sample)
    wanted = servo.error_dynamics.feedback(x, ve)
    assert_allclose(moved - wanted, found.disturbance, rtol=0, atol=1e-12)
    assert np.abs(found.disturbance).max() > 1e-2
    seen = servo.motion(Q0, servo.velocity(Q0, s))[0]
    assert_allclose(seen - velocity, found.output_velocity, rtol=0, atol=1e-15)


def test_offset_takes_the_gains_as_matrices() -> None:
    servo, oracle = build("three wheels")
    rng = np.random.default_rng(2)
    factors = [rng.normal(size=(3, 3)) for _ in range(3)]
    stiffness, damping, inertia = (a @ a.T + np.eye(3) for a in factors)
    other = Servo(servo.model, servo.outputs, stiffness, damping, inertia)
    q, s, v = next(states(servo, 1))
    v[3:6] += 0.1
    found = other.mismatch(q, v)
    still = ReferenceSample(servo.output(q), np.zeros(3), np.zeros(3))
    lack = oracle.acceleration(q, v, other.torque(q, s, still))
    lack -= oracle.command(other, q, v, still)
    assert_close(found.disturbance, lack, 1e-10)
    assert_close(stiffness @ found.offset, -inertia @ lack, 1e-9)


def test_offset_is_where_the_error_settles() -> None:
    robot = robots.free_flyer()
    servo = Servo(reduce(robot), [Output("hand", "tool", "R3xSO3")], 4.0, 3.0)
    reference = hold(servo.output(Q0), group="R3xSO3")
    run = simulate(
        robot, servo, reference, 6.0, Q0, np.zeros(6), dt=1e-2, plant=RealPlant(momentum=WRONG_BY)
    )
    found = servo.mismatch(run.q[-1], run.v[-1])
    # The base drifts, so that the error never settles completely.
    assert_allclose(run.error[-1], found.offset, rtol=0, atol=0.02 * np.abs(found.offset).max())
    assert np.abs(run.error[-1]).max() > 1e-2


@pytest.mark.parametrize("share", [0.0, 0.9, 1.2])
def test_offset_is_where_the_motion_settles(share: float) -> None:
    # A demand that drifts along with the robot, followed on Pinocchio's plant.
    robot, outputs = robots.free_flyer(), [Output("hand", "tool", "SE3")]
    oracle = OutputOracle(robot, outputs)
    momentum = oracle.plant.momentum(CHECK_A_Q0, CHECK_A_V0)
    servo = Servo(reduce(robot, momentum=share * momentum), outputs, 4.0, 2.8)
    drift = np.array([*momentum[:3] / robot.total_mass, 0.0, 0.0, 0.0])
    demand = Chain([(drift, steady), oracle.poses(CHECK_A_Q0)[0]], "SE3")
    q, v = full_order(
        robot,
        CHECK_A_Q0,
        CHECK_A_V0,
        lambda t, q, v: servo.torque(q, v[6:], demand(t)),
        [0.0, 6.0],
        rtol=1e-8,
    )
    error, _ = oracle.errors(q[-1], v[-1], demand(6.0))
    offset = servo.mismatch(q[-1], v[-1]).offset
    # Within a few per cent in every direction at once; about one when written.
    assert np.linalg.norm(offset - error) < 0.05 * np.linalg.norm(error)
    assert np.linalg.norm(error) == pytest.approx(0.0309 * abs(1 - share), rel=0.05)
    # At the start already it has the right size.
    early = servo.mismatch(CHECK_A_Q0, CHECK_A_V0)
    assert 0.5 < np.linalg.norm(early.offset) / np.linalg.norm(error) < 2.0


def test_right_momentum_disturbs_nothing() -> None:
    servo, oracle = build(NAMES[0])
    for q, s, _ in states(servo, 3):
        v = full_velocity(oracle.plant, servo.model.momentum, q, s)
        found = servo.mismatch(q, v)
        for part in ("difference", "base_velocity", "output_velocity", "disturbance", "offset"):
            assert np.abs(getattr(found, part)).max() < 1e-11, part
        assert found.relative < 1e-12


def test_relative_difference() -> None:
    servo, _ = build(NAMES[0])
    q, s, v = next(states(servo, 1))
    found = servo.mismatch(q, v)
    linear, angular = np.split(np.array(servo.model.momentum), 2)
    assert found.relative < 1e-12
    tripled = servo.model.velocity(q, s) * 3.0  # momentum is linear in all velocities
    expected = 2.0 / 3.0  # of the larger one
    assert servo.mismatch(q, tripled).relative == pytest.approx(expected, rel=1e-9)
    still = np.zeros(servo.model.nv)
    assert servo.mismatch(q, still).relative == pytest.approx(1.0)
    unmoved = Servo(reduce(servo.model.robot), servo.outputs, 1.0, 1.0)
    assert unmoved.mismatch(q, still).relative == 0.0
    assert min(np.linalg.norm(linear), np.linalg.norm(angular)) > 0.1


def test_law_that_measures_leaves_no_error_where_the_other_does() -> None:
    # P14 the other way round: at the model's wrong momentum the measured law needs none.
    robot, outputs = robots.free_flyer(), [Output("hand", "tool", "SE3")]
    demand, oracle = check_a_demand(), OutputOracle(robot, outputs)
    servo = Servo(reduce(robot), outputs, 4.0, 2.8, use_measured_velocity=True)
    times = np.array([0.0, 2.5, 5.0])
    q, v = full_order(
        robot,
        CHECK_A_Q0,
        CHECK_A_V0,
        lambda t, q, v: servo.torque(q, v, demand(t)),
        times,
        rtol=1e-9,
    )
    x, ve = oracle.errors(q[0], v[0], demand(0.0))
    ideal, _ = oracle.ideal(servo, x, ve, times)
    for k in (1, 2):
        assert_allclose(oracle.errors(q[k], v[k], demand(times[k]))[0], ideal[k], atol=1e-7)


def test_robots_without_a_momentum_are_refused() -> None:
    servo = case_study()
    refused(
        ReductionError,
        lambda: servo.mismatch(servo.model.robot.neutral(), np.zeros(8)),
        where="`mismatch`",
        came="chaplygin reduction",
    )


@pytest.mark.parametrize(
    ("kind", "q", "v", "where"),
    [
        (ShapeError, CHECK_A_Q0, CHECK_A_V0[6:], "`v`"),
        (NonFiniteError, CHECK_A_Q0, np.full(12, np.nan), "`v`"),
        (ShapeError, CHECK_A_Q0[:-1], CHECK_A_V0, "`q`"),
        (NonFiniteError, np.full(13, np.nan), CHECK_A_V0, "`q`"),
    ],
)
def test_state_that_does_not_fit_is_refused(
    kind: type[ConcurError], q: np.ndarray, v: np.ndarray, where: str
) -> None:
    servo, _ = build(NAMES[0])
    refused(kind, lambda: servo.mismatch(q, v), where=where)
