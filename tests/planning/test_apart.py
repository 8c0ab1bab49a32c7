"""Distance of a robot's own bodies from each other, by points on their capsules."""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.errors import OutputError
from concur.planning import PlanLimits
from concur.robot import Capsule, Clearance, Mechanism, Obstacle

START = [0, 0, 0, 1.1, -0.4]


def clearance(robot: Mechanism, names=("base", "forearm")) -> Clearance:
    """A mast on the base beside the way of the forearm, and the forearm; nothing around them."""
    root = robot.base.name
    mast = Capsule("mast", (1.4, 0.2, 0.0), (1.4, 0.2, 0.0), 0.1, root)
    arm = Capsule("arm", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.04, "forearm")
    chosen = [made for made, name in ((mast, "base"), (arm, "forearm")) if name in names]
    far = Obstacle("far", (0, 90, 0), (0, 90, 0), 0.1)
    return Clearance(tuple(chosen), (far,))


def nearest(robot: Mechanism, configurations: np.ndarray) -> float:
    """Smallest distance between the two, over 401 points of the arm."""
    found = []
    points = np.column_stack([np.linspace(0.0, 1.0, 401), np.zeros((401, 2)), np.ones(401)])
    for q in configurations:
        mast = robot.pose(q, robot.base.name) @ [1.4, 0.2, 0.0, 1.0]
        arm = points @ robot.pose(q, "forearm").T
        found.append(np.linalg.norm(arm[:, :3] - mast[:3], axis=1).min() - 0.14)
    return float(min(found))


@pytest.fixture(scope="module")
def problem():
    model = cc.reduce(cc.robots.planar_floater())
    end = np.array(START, dtype=float)
    end[3:] = -0.7, 0.6
    hand = cc.Output("hand", "forearm", "SE2", point=(1.0, 0, 0), relative_to=model.robot.base.name)
    pose = np.linalg.inv(model.robot.pose(end, model.robot.base.name)) @ model.robot.pose(
        end, "forearm"
    )
    place = (pose @ [1.0, 0.0, 0.0, 1.0])[:2]
    goal = {"hand": [*place, np.arctan2(pose[1, 0], pose[0, 0])]}
    return model, [hand], START, goal


def test_bodies_of_a_robot_keep_apart(problem) -> None:
    robot = problem[0].robot
    free = cc.plan(*problem, PlanLimits(speeds=2.0), clearance(robot))
    assert free.reached
    assert nearest(robot, free.q) < -0.02
    for apart in (0.0, 0.04):
        limits = PlanLimits(speeds=2.0, apart=apart)
        kept = cc.plan(*problem, limits, clearance(robot))
        assert kept.reached
        # Between two samples the distance is smaller by less than half a millimetre.
        assert nearest(robot, kept.q) > apart - 6e-4
        (row,) = [row for row in kept.rows if row.quantity == "distance of mast from arm"]
        assert row.holds
        assert kept.duration > free.duration


@pytest.mark.parametrize(("share", "count"), [(0.999, 1), (1.001, 0)])
def test_bodies_that_are_nearer_at_the_start_are_skipped(problem, share, count) -> None:
    robot = problem[0].robot
    here = nearest(robot, np.array([START], dtype=float))
    limits = PlanLimits(speeds=2.0, apart=share * here)
    found = cc.plan(*problem, limits, clearance(robot), guesses=1)
    assert [row.quantity for row in found.rows].count("distance of mast from arm") == count


@pytest.mark.parametrize("names", [("base",), ("forearm",)])
def test_robots_with_one_body_that_could_touch_are_refused(problem, names) -> None:
    limits = PlanLimits(speeds=2.0, apart=0.01)
    with pytest.raises(OutputError, match=r"`apart`: expected two bodies or more.*got one, `"):
        cc.plan(*problem, limits, clearance(problem[0].robot, names))


def test_robots_without_shapes_are_refused(problem) -> None:
    with pytest.raises(
        OutputError, match=r"`apart`.*got a robot without shapes\. Add shapes.*\[\[plan.capsule\]\]"
    ):
        cc.plan(*problem, PlanLimits(speeds=2.0, apart=0.01))


@pytest.mark.extended
def test_capsules_around_shapes_keep_apart_too() -> None:
    """The hand of a rover goes down beside its chassis; its forearm stays away from it."""
    model = cc.reduce(cc.robots.rover_arm())
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    start = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
    limits = PlanLimits(torques=12.0, speeds=3.0, apart=0.05)
    found = cc.plan(model, [hand], start, {"hand": [0.6, -0.3, 0.4]}, limits)
    assert found.reached
    names = [row.quantity for row in found.rows if row.quantity.startswith("distance")]
    assert "distance of chassis from forearm" in names
    assert all(row.holds for row in found.rows if row.quantity.startswith("distance"))
