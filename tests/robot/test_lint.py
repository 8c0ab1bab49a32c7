"""Slips of units in inertias, lengths, limits and starts are noticed; what is meant is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur import robots
from concur.io import load_shipped, shipped_names
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.robot._lint import (
    suspicious_inertias,
    suspicious_points,
    suspicious_start,
    suspicious_units,
)

SOUND = cc.Inertia(2.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))


def pair(inertia=SOUND, reach=0.8):
    """Two bodies on hinges, one `reach` from the other."""
    return cc.Mechanism(
        "pair",
        [
            cc.Body("base", cc.joints.Free(), inertia=SOUND),
            cc.Body("arm", cc.joints.Revolute((0, 0, 1)), "base", cc.Pose((reach, 0, 0)), inertia),
        ],
    )


@pytest.mark.parametrize("name", ["rover_arm", "orbital_crawler"])
def test_shipped_robots_are_not_suspicious(name):
    assert suspicious_inertias(getattr(cc.robots, name)()) == ()


@pytest.mark.parametrize(
    ("factor", "unit"),
    [(1.0, None), (1e4, "kg cm^2"), (1e6, "kg mm^2"), (1e9, "g mm^2")],
)
def test_moments_in_another_unit_are_named(factor, unit):
    moments = (0.05 * factor, 0.08 * factor, 0.08 * factor)  # 0.2 m for 2 kg
    found = suspicious_inertias(pair(cc.Inertia(2.0, moments=moments)))
    if unit is None:
        assert found == ()
        return
    (text,) = found
    assert text == (
        f"body `arm`: radius of gyration {0.2 * factor**0.5:.3g} m on a robot of 0.8 m: "
        f"{unit} instead of kg m^2?"
    )


@pytest.mark.parametrize(("factor", "unit"), [(1e2, "cm"), (1e3, "mm")])
def test_centres_of_mass_in_another_unit_are_named(factor, unit):
    inertia = cc.Inertia(2.0, (0.0, 0.3 * factor, 0.0), (0.01, 0.02, 0.02))
    (text,) = suspicious_inertias(pair(inertia))
    assert f"centre of mass {0.3 * factor:.3g} m from the origin" in text
    assert text.endswith(f"{unit} instead of m?")


def test_no_body_is_denser_than_osmium():
    for density, count in ((22550.0, 0), (22650.0, 1)):
        for size in (1e-3, 0.1):  # a ball, and an ellipsoid with half-axes 1, 2 and 3
            for axes in (np.ones(3), np.array([1.0, 2.0, 3.0])):
                axes = axes * size
                mass = density * 4.0 / 3.0 * np.pi * axes.prod()
                moments = mass / 5.0 * ((axes**2).sum() - axes**2)
                found = suspicious_inertias(pair(cc.Inertia(mass, moments=moments)))
                assert len(found) == count, (density, axes, found)
    assert "mass in g instead of kg" in found[0]


def test_rods_and_plates_have_no_density():
    for thin, count in ((0.9e-9, 0), (1.1e-9, 1)):
        rod = cc.Inertia(2.0, (0.1, 0.0, 0.0), (1e-3, 1e-3, 2e-3 * thin))
        plate = cc.Inertia(2.0, (0.1, 0.0, 0.0), (1e-5, 1e-5, 2e-5 * (1.0 - thin)))
        assert len(suspicious_inertias(pair(rod))) == count
        assert len(suspicious_inertias(pair(plate))) == count
    assert suspicious_inertias(pair(cc.Inertia(2.0, (0.1, 0.0, 0.0)))) == ()


def test_three_sizes_are_the_limit():
    for away, count in ((2.3, 0), (2.5, 1)):
        inertia = cc.Inertia(2.0, (away, 0.0, 0.0), (0.01, 0.02, 0.02))
        assert len(suspicious_inertias(pair(inertia))) == count, away


@pytest.mark.parametrize("mass", [5e-324, 1e-300])
def test_the_lightest_of_bodies_can_be_judged(mass):
    (text,) = suspicious_inertias(pair(cc.Inertia(mass, (0.0, 0.0, 0.0), (0.01, 0.02, 0.02))))
    assert "radius of gyration" in text


def test_a_robot_without_extent_cannot_be_judged():
    alone = cc.Mechanism("alone", [cc.Body("body", cc.joints.Free(), None, cc.Pose(), SOUND)])
    assert suspicious_inertias(alone) == ()


def test_a_body_says_an_inertia_and_that_a_quaternion_has_no_limits():
    with pytest.raises(cc.errors.DescriptionError, match="expected an Inertia, got"):
        cc.Body("part", cc.joints.Free(), inertia=3.0)
    for joint in (cc.joints.Free(), cc.joints.Spherical()):
        words = f"no limits: a {type(joint).__name__} joint has a quaternion"
        with pytest.raises(cc.errors.DescriptionError, match=words):
            cc.Body("part", joint, limits=[(0.0, 1.0)] * joint.nq)


Z = joints.Revolute((0, 0, 1))


def arm(
    *lengths: float, mass: float = 2.0, limits: object = None, speed: float | None = None
) -> Mechanism:
    """A chain of links of some lengths."""
    bodies = [Body("base", joints.Fixed())]
    for k, length in enumerate(lengths):
        place = Pose((length, 0, 0))
        inertia = Inertia(mass / len(lengths), moments=(0.01, 0.01, 0.01))
        bodies.append(Body(f"link{k}", Z, bodies[-1].name, place, inertia, limits, speed))
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


@pytest.mark.parametrize(
    ("angle", "warned"),
    [(45.0, True), (3.15, True), (-3.15, True), (3.14, False), (-3.14, False)],
)
def test_roller_angle_beyond_half_a_turn_is_degrees(angle: float, warned: bool) -> None:
    robot = robots.mecanum_arm()
    wheels = [replace(robot.wheels[0], roller_angle=angle), *robot.wheels[1:]]
    found = suspicious_units(replace(robot, wheels=wheels))
    name = robot.wheels[0].body
    text = f"wheel `{name}`: roller angle {angle:.4g} rad: deg instead of rad?"
    assert found == ((text,) if warned else ())


@pytest.mark.parametrize(("speed", "warned"), [(90.0, True), (50.1, True), (49.9, False)])
def test_speed_limit_of_a_joint_beyond_eight_turns_a_second_is_degrees(
    speed: float, warned: bool
) -> None:
    found = suspicious_units(arm(0.0, 0.4, speed=speed, limits=(-1.0, 1.0)))
    assert len(found) == warned
    if speed == 90.0:
        assert found[0] == (
            "joints `link0`, `link1`: speed limits 90 rad/s: deg/s instead of rad/s? "
            "90 deg/s are 1.571 rad/s"
        )


def test_one_line_names_three_fast_joints_and_counts_the_others() -> None:
    solid = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [Body("base", joints.Fixed())]
    for i in range(4):
        turn, parent, limits = joints.Revolute((0, 0, 1)), bodies[-1].name, (-1.0, 1.0)
        bodies.append(Body(f"b{i}", turn, parent, Pose(), solid, limits, 60.0 + 10.0 * i))
    for count, named in ((3, "`b0`, `b1`, `b2`: "), (4, "`b0`, `b1`, `b2` and 1 more: ")):
        (text,) = suspicious_units(Mechanism("arm", bodies[: count + 1]))
        high = 50 + 10 * count
        assert text.startswith(f"joints {named}speed limits 60 to {high} rad/s: deg/s")


@pytest.mark.parametrize(("speed", "warned"), [(250.0, True), (20.1, True), (19.9, False)])
def test_speed_limit_of_a_slide_beyond_twenty_metres_a_second_is_millimetres(
    speed: float, warned: bool
) -> None:
    solid = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    ground = Body("ground", joints.Fixed())
    slide = Body("slide", joints.Prismatic((1, 0, 0)), "ground", Pose(), solid, None, speed)
    found = suspicious_units(Mechanism("axis", [ground, slide]))
    assert bool(found) is warned
    if speed == 250.0:
        assert found == (
            "joint `slide`: speed limit 250 m/s: mm/s instead of m/s? 250 mm/s are 0.25 m/s",
        )


def test_a_base_may_be_fast_but_not_turn_fast() -> None:
    solid = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    car = Body("car", joints.Planar(), None, Pose(), solid, None, (40.0, 40.0, 40.0))
    assert suspicious_units(Mechanism("car", [car])) == ()
    turning = replace(car, speed_limit=(40.0, 40.0, 90.0))
    (text,) = suspicious_units(Mechanism("car", [turning]))
    assert "speed limit 90 rad/s" in text


def rotor(name: str, **changes: object) -> tuple[Mechanism, str]:
    """A robot of which one body turns at 300 rad/s, with changes to that body."""
    robot = load_shipped(name)
    body = robot.bodies[-1]
    bodies = [*robot.bodies[:-1], replace(body, speed_limit=300.0, **changes)]
    return replace(robot, bodies=bodies), body.name


def test_wheels_screws_and_rotors_may_turn_fast() -> None:
    robot, name = rotor("wheel_satellite")
    assert suspicious_units(robot) == ()
    screw, _ = rotor("wheel_satellite", joint=joints.Helical((0, 0, 1), 0.01), limits=(-9.0, 9.0))
    assert suspicious_units(screw) == ()
    rover = robots.rover_arm()
    wheels = {wheel.body for wheel in rover.wheels}
    quick = [replace(b, speed_limit=90.0) if b.name in wheels else b for b in rover.bodies]
    assert suspicious_units(replace(rover, bodies=quick)) == ()
    # A hinge with an end is no rotor, nor is what carries something.
    ends, _ = rotor("wheel_satellite", limits=(-1.0, math.inf))
    assert f"`{name}`" in suspicious_units(ends)[0]
    loaded = replace(robot, bodies=[*robot.bodies, Body("mirror", joints.Fixed(), name)])
    assert f"`{name}`" in suspicious_units(loaded)[0]


@pytest.mark.parametrize(("part", "warned"), [(0.99, False), (1.01, True)])
def test_a_rotor_has_its_mass_on_the_axis(part: float, warned: bool) -> None:
    # Radius of gyration of the disc: 0.3 kg and 8e-4 kg m^2.
    beside = part * 0.01 * math.sqrt(8e-4 / 0.3)
    inertia = Inertia(0.3, (0.0, beside, 0.1), moments=(4e-4, 4e-4, 8e-4))
    robot, _ = rotor("wheel_satellite", inertia=inertia)
    assert bool(suspicious_units(robot)) is warned


def test_gravity_beyond_ten_times_the_earths_is_millimetres() -> None:
    for pull, warned in ((9810.0, True), (101.0, True), (99.0, False)):
        assert bool(suspicious_units(replace(arm(0.3), gravity=(0, 0, -pull)))) is warned


def test_points_far_outside_the_robot() -> None:
    robot = arm(0.0, 0.35, 0.35)
    points = [("near", np.array([2.09, 0, 0])), ("far", (0, 2.11, 0)), ("mm", [0, 0, 250.0])]
    far, mm = suspicious_points(robot, points)
    assert far.startswith("output `far`: point 2.11 m")
    assert "on a robot of 0.7 m: mm instead of m?" in mm


SOUND_MOTOR = {
    "gear": 50.0, "rotor": 1e-5, "torque": 0.4, "speed": 600.0, "no_load_speed": 700.0,
    "stall_torque": 0.9, "viscous": 1e-6, "coulomb": 0.005, "efficiency": 0.8,
    "torque_constant": 0.035, "encoder": 4096, "continuous": 0.1, "thermal_time": 20.0,
}  # fmt: skip


def motored(**numbers):
    """A link of 2 kg whose weight acts at 0.1 m, with one motor."""
    foot = cc.Body("foot", cc.joints.Fixed(), inertia=cc.Inertia.box(10.0, (0.4, 0.4, 0.4)))
    lift = cc.joints.Revolute((0, -1, 0))
    arm = cc.Body("arm", lift, "foot", cc.Pose((0, 0, 0.5)), SOUND, limits=[(0.0, 1.0)])
    motor = cc.Motor("lift", "arm", **SOUND_MOTOR | numbers)
    return cc.Mechanism("arm", [foot, arm], gravity=(0, 0, -9.81), motors=[motor], actuated=[])


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({}, ""),
        ({"gear": 1.0, "torque": 2.5, "stall_torque": 3.0}, ""),
        ({"gear": 0.9, "torque": 2.5, "stall_torque": 3.0}, "gear 0.9, slower than its joint"),
        ({"rotor": 3.5e-3}, ""),  # 12 kg and 0.5 m: 9 kg m^2, by the square of the gear
        ({"rotor": 3.7e-3}, "g cm^2 or kg cm^2 instead of kg m^2"),
        ({"speed": 2000.0}, ""),
        ({"speed": 2001.0}, "`speed` 2001 rad/s: turns per minute"),
        ({"no_load_speed": 6700.0}, "6700 per minute are 701.6 rad/s"),
        ({"torque_constant": 2.1}, ""),
        ({"torque_constant": 35.0}, "needs 2.45e+04 V: mN m/A instead of N m/A?"),
        ({"torque": 400.0, "stall_torque": 900.0}, "1.143e+04 A: mN m instead of N m?"),
        ({"torque": 0.9}, ""),
        ({"torque": 0.91}, "above its stall torque of 0.9 N m"),
        ({"encoder": 14}, ""),  # 0.009 rad at the joint
        ({"encoder": 12}, "12 bits are 4096 counts"),
        ({"continuous": 0.4}, ""),
        ({"continuous": 0.41}, "its heat is no limit"),
        ({"coulomb": 0.31}, ""),  # below 80 % of 0.4 N m
        ({"coulomb": 0.33}, 'friction_at = "joint" instead?'),
        ({"coulomb": 0.33, "friction_at": "joint"}, ""),
        ({"viscous": 6e-4}, ""),
        ({"viscous": 7e-4}, "at its largest speed"),
        ({"torque": 0.04, "continuous": 0.03}, ""),  # 2 kg, 0.1 m, gear 50: 0.0392 N m
        ({"torque": 0.039, "continuous": 0.03}, "needs 0.0392 N m, its largest torque is 0.039"),
    ],
)  # fmt: skip
def test_numbers_of_motors_in_another_unit_are_named(numbers, words):
    found = cc.robot.suspicious(motored(**numbers))
    assert (len(found), all(words in text for text in found)) == (bool(words), True), found


def test_check_lists_all_that_motors_and_supports_state():
    text = " ".join(motored(friction_at="joint", stribeck=0.1).summary().split())
    assert (
        "lift: 50 arm, rotor 1e-05 kg m^2, up to 0.4 N m (20 N m at the joint), up to 600 rad/s, "
        "stall torque 0.9 N m, no-load speed 700 rad/s, viscous friction 1e-06 N m s/rad at the "
        "joint, Coulomb friction 0.005 N m at the joint, breakaway excess 0.1 N m at the "
        "joint, efficiency 0.8, torque constant 0.035 N m/A, encoder 4096 counts per turn, "
        "continuous 0.1 N m, thermal time 20 s"
    ) in text
    cart = replace(cc.robots.rover_arm(), supports={"caster": (0.4, 0.0, 0.0)})
    assert "supports: caster (0.4, 0, 0) m" in cart.summary()


@pytest.mark.parametrize(
    ("gear", "unit", "step"),
    [(1.0, "N", 1e-3), (-1.0, "N", 1e-3), (628.0, "N m", 2.0 * math.pi / 1000.0 / 628.0)],
)
def test_a_motor_of_a_slide_is_linear_if_its_gear_is_one(gear, unit, step):
    slide = cc.Body("slide", cc.joints.Prismatic((1, 0, 0)), inertia=SOUND)
    motor = cc.Motor("drive", "slide", gear=gear, encoder=1000)
    robot = cc.Mechanism("slide", [slide], motors=[motor], actuated=[])
    assert robot.control_units == (unit,)
    made = cc.simulation.Imperfections.of(robot)
    np.testing.assert_allclose(made.values("resolution", robot), [step])
