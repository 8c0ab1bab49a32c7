"""What a wrong momentum does to the law, held against what the robot then does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Output, Redundancy, ReferenceSample, Servo
from concur.control.references import hold
from concur.reduction import reduce
from concur.simulation import simulate
from tests.oracles import Pinocchio

Q0 = np.array([0, 0, 0, 0, 0, 0, 1, 0.1, 1, -1.35, 0.1, 1, -1.5])
ASSUMED = np.array([1.95, -1.25, 0.40, 0.45, 0.59, -0.15])
WRONG_BY = np.array([0.5, -0.2, 0.3, 0.2, 0.1, -0.3])
GAINS = 4.0, 3.0


@pytest.mark.parametrize("group", ["R3xSO3", "SE3", "R3"])
def test_disturbance_is_what_the_robot_lacks(group: str) -> None:
    robot = robots.free_flyer()
    model = reduce(robot, momentum=ASSUMED)
    rule = Redundancy() if group == "R3" else None
    servo = Servo(model, [Output("hand", "tool", group)], *GAINS, redundancy=rule)
    rng = np.random.default_rng(3)
    s = rng.normal(0, 0.1, model.ns)
    v = model.velocity_at(Q0, s, ASSUMED + WRONG_BY)
    found = servo.mismatch(Q0, v)

    still = np.zeros(servo.size)
    pose = servo.output(Q0)
    pose[:3] += (0.05, -0.02, 0.03)
    sample = ReferenceSample(pose, still, still)
    torque = np.concatenate([np.zeros(6), servo.torque(Q0, s, sample)])
    acceleration = Pinocchio(robot).forward_dynamics(Q0, v, torque)
    measured = servo.as_measured
    jacobian = servo.decoupling(Q0)
    velocity, drift = measured.output_motion(Q0, v)
    # Where all velocities are known, output and shape acceleration are in this relation.
    moved = jacobian @ acceleration[6:] + drift
    x, ve = measured.error(Q0, v, sample)
    wanted = servo.error_dynamics.feedback(x, ve)
    assert_allclose(moved - wanted, found.disturbance, rtol=0, atol=1e-12)
    assert np.abs(found.disturbance).max() > 1e-2
    seen = servo.output_motion(Q0, s)[0]
    assert_allclose(seen - velocity, found.output_velocity, rtol=0, atol=1e-15)


def test_offset_is_where_the_error_settles() -> None:
    robot = robots.free_flyer()
    servo = Servo(reduce(robot), [Output("hand", "tool", "R3xSO3")], *GAINS)
    reference = hold(servo.output(Q0), group="R3xSO3")
    run = simulate(robot, servo, reference, 6.0, Q0, np.zeros(6), dt=1e-2, momentum=WRONG_BY)
    found = servo.mismatch(run.q[-1], run.v[-1])
    # The base goes on drifting, so that the error never quite settles.
    assert_allclose(run.error[-1], found.offset, rtol=0, atol=0.02 * np.abs(found.offset).max())
    assert np.abs(run.error[-1]).max() > 1e-2
