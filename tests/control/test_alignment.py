"""Sentences of a singular report about joints and bodies."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from concur.control import Servo, lost_direction, singularities
from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints


def test_stretched_arm_names_its_joints() -> None:
    robot = robots.rover_arm()
    base = Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    model = reduce(robot)
    servo = Servo(model, [base, hand], 4.0, 4.0)
    q = robot.neutral()
    said = "joints `upper_arm`, `forearm` align"
    assert said in lost_direction(servo, q)
    for report in (
        singularities(robot, servo.outputs, q, model=model),
        singularities(robot, [hand], q, fixed=("chassis",)),
    ):
        (clause,) = report.aligned
        assert said in clause
        assert said in report.summary()
    q[-1] = -1.6
    assert "align" not in lost_direction(servo, q)
    assert singularities(robot, [hand], q, fixed=("chassis",)).aligned == ()


@pytest.mark.parametrize(("angle", "named"), [(0.005, True), (0.3, False)])
def test_joints_are_named_near_a_singular_configuration_only(angle: float, named: bool) -> None:
    robot = robots.rover_arm()
    base = Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    servo = Servo(reduce(robot), [base, hand], 4.0, 4.0)
    q = robot.neutral()
    q[-1] = angle
    assert ("align" in lost_direction(servo, q)) is named


def wrist() -> Mechanism:
    """A wrist of three axes that meet in a point: z, y, z."""
    inertia = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    bodies = [Body("mount", joints.Fixed())]
    for name, axis in (("first", (0, 0, 1)), ("middle", (0, 1, 0)), ("last", (0, 0, 1))):
        place = Pose((0.0, 0.0, 0.3 if name == "last" else 0.1))
        bodies.append(Body(name, joints.Revolute(axis), bodies[-1].name, place, inertia))
    return Mechanism("wrist", bodies)


def test_coinciding_axes_of_a_wrist_are_named() -> None:
    robot = wrist()
    tool = Output("tool", "last", "SO3")
    report = singularities(robot, [tool], np.zeros(3))
    assert report.aligned == ("joints `first`, `last` align",)
    assert singularities(robot, [tool], np.array([0.3, 0.5, 0.1])).aligned == ()


def test_idle_motions_count_metres_in_the_characteristic_length() -> None:
    """A rail and a joint that cancel: the motion is the same in any unit of length."""
    inertia = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    found = []
    for scale in (1.0, 1e3):
        bodies = [
            Body("mount", joints.Fixed()),
            Body("rail", joints.Prismatic((0, 1, 0)), "mount", inertia=inertia),
            Body("arm", joints.Revolute((0, 0, 1)), "rail", Pose((0.2 * scale, 0, 0)), inertia),
        ]
        robot = Mechanism("rail", bodies)
        tip = Output("tip", "arm", "R", point=(0.5 * scale, 0, 0), axes="y")
        report = singularities(robot, [tip], robot.neutral())
        (column,) = report.idle.T
        assert np.linalg.norm(column / (report.length, 1.0)) == pytest.approx(1.0)
        found.append(column / (scale, 1.0))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
