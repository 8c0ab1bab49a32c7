"""Tasks of examples/drives: mecanum wheels, a differential, Ackermann steering, steered modules."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.errors import ReductionError
from concur.robot import Mimic, Pose
from tests.oracles import assert_close

EXAMPLES = Path(__file__).parents[2] / "examples" / "drives"


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["mecanum", "tricycle", "ackermann_car", "swerve"])
def test_task_passes(name):
    task = cc.load_task(EXAMPLES / f"{name}_task.toml")
    servo = task.servo
    run = task.simulate(servo)
    assert {f.quantity for f in run.findings(task.tolerances) if f.holds is False} == set()
    robot, q, v = task.robot, run.q[len(run.q) // 2], run.v[len(run.v) // 2]
    assert abs(robot.constraints(q) @ v).max() < 1e-9
    # By hand: a forward motion turns each rear wheel by v / r, and the motor by 5 times that, so
    # that the motor has the power of both wheels.
    if name == "tricycle":
        column = robot.actuation(q)[:, 1]
        spins = [robot.v_slice(f"rear_{side}").start for side in ("left", "right")]
        assert_close(column[spins], [5.0, 5.0], 1e-15)
        assert np.count_nonzero(column) == 2
    elif name == "ackermann_car":
        # Track 0.6 m over wheelbase 0.8 m; the task leaves out the angle that follows.
        left, right = (run.q[:, robot.q_slice(f"{k}_steering")] for k in ("left", "right"))
        assert_close(np.sin(left - right), 0.75 * np.sin(left) * np.sin(right), 1e-13)
        assert left.max() > 0.1 > 0.0 > left.min()
    elif name == "swerve":
        assert (servo.nu, servo.ns) == (8, 3)
        assert np.abs(run.u[:, ::2]).max() < np.abs(run.u[:, 1::2]).max()
    else:
        # Weak motors of weight 3 work less than strong ones. CON2 and CON9 count five motors.
        effort = np.abs(run.u).max(axis=0)
        assert servo.nu == 5
        assert effort[3:].max() < effort[1:3].max()


def test_steered_wheels_coupled_linearly_are_rejected():
    # The angles of an Ackermann axle obey cot(right) - cot(left) = track / wheelbase, which no
    # constant ratio expresses: with equal angles the wheels hold the base except straight ahead.
    robot = cc.load(EXAMPLES / "tricycle.toml")
    chassis, left, right, steering, front = robot.bodies

    def axle(side, y):
        return (
            replace(steering, name=f"{side}_steering", placement=Pose((0.8, y, 0.0))),
            replace(front, name=f"{side}_front", parent=f"{side}_steering"),
        )

    car = replace(
        robot,
        bodies=[chassis, left, right, *axle("left", 0.3), *axle("right", -0.3)],
        wheels=[
            *robot.wheels[:2],
            *(replace(robot.wheels[2], body=f"{side}_front") for side in ("left", "right")),
        ],
        actuated=["left_steering"],
        mimics=[Mimic("right_steering", "left_steering")],
    )
    with pytest.raises(ReductionError, match="lose rank at the neutral configuration: left_"):
        cc.reduce(car)
