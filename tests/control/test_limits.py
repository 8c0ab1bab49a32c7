"""The law within torque limits: what it reports is what the robot lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.control import Servo
from concur.errors import OutputError
from concur.outputs import Output, ReferenceSample
from concur.outputs.references import hold
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.simulation import Integrator, Tolerances, simulate
from tests.oracles import Pinocchio

LINK = Inertia(1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
Q0 = np.array([0.3, 0.8])
STILL = np.zeros(2)
AWAY = np.array([0.1, -0.2])


def arm(limit: float | None, weight: float = 0.0) -> Servo:
    robot = Mechanism(
        "2R",
        [
            Body("floor", joints.Fixed(), inertia=Inertia(1.0)),
            Body("upper", joints.Revolute((0, 0, 1)), "floor", inertia=LINK),
            Body("fore", joints.Revolute((0, 0, 1)), "upper", Pose((0.4, 0, 0)), LINK),
        ],
        gravity=(0, -weight, 0),
    )
    tip = Output("tip", "fore", "R2", (0.4, 0, 0))
    return Servo(reduce(robot), [tip], 4.0, 4.0, torque_limits=limit)


def lacking(servo: Servo, sample: ReferenceSample) -> tuple[np.ndarray, np.ndarray, float]:
    """Output acceleration that the robot lacks, the one reported, and the scale."""
    u, _, missed, scale, *_ = servo.law(Q0, STILL, *servo.flat(sample))
    made = Pinocchio(servo.model.robot).forward_dynamics(Q0, STILL, u)
    wanted = 4.0 * (sample.pose - servo.output(Q0)) + sample.acceleration
    return wanted - servo.decoupling(Q0) @ made, missed, scale


@pytest.mark.parametrize("options", [{}, {"damping_threshold": 0.05}])
def test_limits_that_are_not_reached_give_up_exactly_nothing(options: dict[str, float]) -> None:
    servo = replace(arm(1e3, weight=9.81), **options)  # type: ignore[arg-type]
    sample = ReferenceSample(servo.output(Q0) + AWAY, STILL, STILL)
    lacks, missed, scale = lacking(servo, sample)
    assert_allclose(lacks, STILL, rtol=0, atol=1e-12)
    assert not missed.any()
    assert scale == 1.0


def test_arm_that_cannot_hold_its_weight_does_not_claim_to_meet_the_demand() -> None:
    servo = arm(1.0, weight=9.81)
    lacks, missed, scale = lacking(servo, ReferenceSample(servo.output(Q0), STILL, STILL))
    assert scale == 0.0
    assert np.abs(missed).max() > 1.0
    assert_allclose(lacks, missed, rtol=0, atol=1e-9)


def test_held_torque_is_reported_with_what_it_gave_up() -> None:
    servo = arm(0.05)
    reference = hold(servo.output(Q0) + AWAY)
    integrator = Integrator(dt=0.01, control_period=0.1)
    run = simulate(servo.model.robot, servo, reference, 0.3, Q0, STILL, dt=integrator)
    for values in (run.u, run.scale[:, None], run.acceleration_residual):
        periods = values[:-1].reshape(3, 10, -1)
        assert_allclose(periods, periods[:, :1].repeat(10, axis=1), rtol=0, atol=0)
    assert run.scale[0] < run.scale[-1]
    labels = {f.quantity: f for f in run.findings(Tolerances(evaluate_after=0.2))}
    deviation = labels["deviation from the ideal error dynamics, largest coordinate"]
    assert "limits were active" in deviation.place


def test_limits_of_the_robot_are_taken_by_true() -> None:
    law = arm(None)
    robot = law.model.robot
    bodies = [replace(b, torque_limit=2.5) if b.name == "fore" else b for b in robot.bodies]
    weak = replace(robot, bodies=bodies)
    kept = Servo(reduce(weak), law.outputs, 4.0, 4.0, torque_limits=True)
    assert kept.torque_limits.tolist() == [[-np.inf, np.inf], [-2.5, 2.5]]
    assert Servo(reduce(weak), law.outputs, 4.0, 4.0, torque_limits=False).torque_limits is None
    with pytest.raises(OutputError, match="a robot with limits of motors or joints"):
        replace(law, torque_limits=True)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (2.0, [[-2.0, 2.0], [-2.0, 2.0]]),
        (20.0, [[-20.0, 20.0], [-2.5, 2.5]]),
        ({"upper": 3.0}, [[-3.0, 3.0], [-2.5, 2.5]]),
        ({"fore": [-1.0, np.inf]}, [[-np.inf, np.inf], [-1.0, 2.5]]),
        ([None, [-9.0, 2.0]], [[-np.inf, np.inf], [-2.5, 2.0]]),
    ],
)
def test_a_law_keeps_no_limit_wider_than_the_robots(given: object, kept: list[object]) -> None:
    law = arm(None)
    robot = law.model.robot
    bodies = [replace(b, torque_limit=2.5) if b.name == "fore" else b for b in robot.bodies]
    model = reduce(replace(robot, bodies=bodies))
    assert Servo(model, law.outputs, 4.0, 4.0, torque_limits=given).torque_limits.tolist() == kept
    with pytest.raises(OutputError, match=r"room within 2\.5, the limit of the robot"):
        Servo(model, law.outputs, 4.0, 4.0, torque_limits={"fore": [3.0, 4.0]})
