"""Degrees and millimetres are noticed, and what is meant is not warned of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from concur import robots
from concur.formats import load_shipped, shipped_names
from concur.mechanism import Body, Inertia, Pose, joints
from concur.mechanism._unit_lint import suspicious_points, suspicious_start, suspicious_units
from concur.multibody import Mechanism

Z = joints.Revolute((0, 0, 1))


def arm(*lengths: float, mass: float = 2.0, limits: object = None) -> Mechanism:
    """A chain of links of some lengths."""
    bodies = [Body("base", joints.Fixed())]
    for k, length in enumerate(lengths):
        place = Pose((length, 0, 0))
        inertia = Inertia(mass / len(lengths), moments=(0.01, 0.01, 0.01))
        bodies.append(Body(f"link{k}", Z, bodies[-1].name, place, inertia, limits))
    return Mechanism("arm", bodies)


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_robots_bring_no_warning(name: str) -> None:
    robot = load_shipped(name)
    assert suspicious_units(robot) == ()
    assert suspicious_start(robot, robot.neutral()) == ()


@pytest.mark.parametrize(("angle", "warned"), [(-46.0, True), (6.29, True), (6.28, False)])
def test_start_beyond_a_turn_is_degrees(angle: float, warned: bool) -> None:
    robot = robots.rover_arm()
    q = robot.neutral()
    q[7] = angle
    found = suspicious_start(robot, q)
    assert bool(found) is warned
    if angle == -46.0:
        assert found == (
            "start of `forearm`: angle -46 rad, 7.32 turns: deg instead of rad? -46 deg are "
            "-0.8029 rad",
        )
    q = robot.neutral()
    q[3] = 200.0  # a wheel that has rolled far
    assert suspicious_start(robot, q) == ()


@pytest.mark.parametrize(("end", "warned"), [(180.0, True), (12.6, True), (12.5, False)])
def test_limits_beyond_two_turns_are_degrees(end: float, warned: bool) -> None:
    for pair in ((-end, 1.0), (-1.0, end), (-math.inf, end)):
        found = suspicious_units(arm(0.3, limits=pair))
        assert bool(found) is warned
        assert all("deg instead of rad" in text and "`link0`" in text for text in found)
    assert suspicious_units(arm(0.3, limits=(-math.inf, math.inf))) == ()


@pytest.mark.parametrize(("factor", "unit"), [(1.0, ""), (100.0, "cm"), (1000.0, "mm")])
@pytest.mark.parametrize("mass", [0.2, 2.0, 40.0])
def test_robot_in_another_unit_of_length(factor: float, unit: str, mass: float) -> None:
    found = suspicious_units(arm(*(factor * x for x in (0.0, 0.35, 0.35, 0.1)), mass=mass))
    assert [f"{unit} instead of m" in text for text in found] == [True] * bool(unit)


def test_size_and_weight_on_both_sides_of_their_limits() -> None:
    assert suspicious_units(arm(0.0, 50.0, 49.9, mass=1e3)) == ()
    assert "robot of 100.1 m" in suspicious_units(arm(0.0, 50.0, 50.1, mass=1e3))[0]
    assert suspicious_units(arm(0.0, 5.0, 5.0, mass=0.11)) == ()
    assert "and 0.09 kg" in suspicious_units(arm(0.0, 5.0, 5.0, mass=0.09))[0]


def test_one_link_in_another_unit_is_named() -> None:
    (text,) = suspicious_units(arm(0.0, 0.4, 350.0))
    assert "`link2` of 350 m" in text
    (text,) = suspicious_units(arm(0.0, 0.4, 35.0, mass=40.0))
    assert text.startswith("body `link2`: 35 m from its parent")
    assert suspicious_units(arm(0.0, 0.4, 7.9, mass=40.0)) == ()
    assert suspicious_units(arm(0.0, 0.4, 8.1, mass=40.0))


def test_roller_angle_and_gravity() -> None:
    robot = robots.mecanum_arm()
    wheels = [replace(robot.wheels[0], roller_angle=45.0), *robot.wheels[1:]]
    (text,) = suspicious_units(replace(robot, wheels=wheels))
    assert "roller angle 45 rad: deg instead of rad?" in text
    for pull, warned in ((9810.0, True), (101.0, True), (99.0, False)):
        assert bool(suspicious_units(replace(arm(0.3), gravity=(0, 0, -pull)))) is warned


def test_points_far_outside_the_robot() -> None:
    robot = arm(0.0, 0.35, 0.35)
    points = [("near", np.array([2.09, 0, 0])), ("far", (0, 2.11, 0)), ("mm", [0, 0, 250.0])]
    far, mm = suspicious_points(robot, points)
    assert far.startswith("output `far`: point 2.11 m")
    assert "on a robot of 0.7 m: mm instead of m?" in mm
