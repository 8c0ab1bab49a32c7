"""A wrong momentum: how wrong, and what it does, against Pinocchio and against motions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo
from concur.errors import ConcurError, NonFiniteError, ReductionError, ShapeError
from concur.outputs import Output, ReferenceSample
from concur.outputs.references import hold
from concur.reduction import reduce
from concur.simulation import RealPlant, simulate
from tests.control._cases import case_study, refused
from tests.control._floating_cases import (
    CHECK_A_Q0,
    CHECK_A_V0,
    build,
    states,
)
from tests.oracles import assert_close

NAMES = ["hand of the free-flyer", "base attitude and hand", "tip on the station", "three wheels"]
Q0 = np.array([0, 0, 0, 0, 0, 0, 1, 0.1, 1, -1.35, 0.1, 1, -1.5])
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
