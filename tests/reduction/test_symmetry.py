"""Symmetry groups of joints: the worked results, two independent forms of AP2, brute force."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur import Body, Inertia, Mechanism, Pose, joints
from concur.errors import DescriptionError, UnknownNameError
from tests.oracles import (
    CraneNumbers,
    Pinocchio,
    RoverNumbers,
    crane,
    rover,
    rover_rows,
    rover_without_arm,
)
from tests.oracles._random import _direction, _inertia, _placement
from tests.reduction._symmetric_robots import (
    BOX,
    CAR,
    FLOATING,
    GENERIC,
    OUT,
    SLANTED,
    X,
    Z,
    assert_same_span,
    ball_on,
    centred,
    chain,
    disc_then_planar,
    in_gravity,
    left_by_condition,
    left_translated,
    lift_on_car,
    momentum_rates,
    slide_then_planar,
    turntable,
    two_balls,
)

# --- worked results ----------------------------------------------------------------------------


def round_boom():
    numbers = CraneNumbers()
    return crane(replace(numbers, j=(*numbers.j[:5], (45.0, 45.0, 45.0))))


def crooked_column():
    robot = crane()
    bodies = [
        replace(b, inertia=Inertia(150.0, (0.1, 0, 0.75), (40, 40, 15)))
        if b.name == "column"
        else b
        for b in robot.bodies
    ]
    return Mechanism("crooked", bodies, wheels=robot.wheels)


# Robot, joint, dimension of the joint's group, AP1, AP2, right translations (None: no extremity).
WORKED = {
    "rover base": (rover, "chassis", 3, 3, 3, None),
    "rover left wheel": (rover, "left", 1, 0, 1, 1),
    "rover right wheel": (rover, "right", 1, 0, 1, 1),
    "rover turret": (rover, "turret", 1, 0, 0, None),
    "rover upper arm": (rover, "upper", 1, 0, 0, None),
    "rover forearm": (rover, "fore", 1, 0, 0, 0),
    "crane base": (crane, "chassis", 3, 3, 3, None),
    "crane steering": (crane, "axle", 1, 0, 1, None),
    "crane column": (crane, "column", 1, 0, 1, None),
    "crane column off its axis": (crooked_column, "column", 1, 0, 0, None),
    "crane left wheel": (crane, "left", 1, 0, 1, 1),
    "crane right wheel": (crane, "right", 1, 0, 1, 1),
    "crane boom": (crane, "boom", 1, 0, 0, 0),
    "crane round boom": (round_boom, "boom", 1, 0, 1, 1),
    "turntable off its axis": (lambda: turntable((0.1, 0, 0.3)), "b2", 1, 0, 0, 0),
    "turntable": (lambda: turntable((0, 0, 0.3)), "b2", 1, 0, 1, 1),
    "disc, planar": (disc_then_planar, "b2", 3, 3, 1, 1),
    "free base, isotropic": (lambda: ball_on(joints.Free(), (1, 1, 1)), "b2", 3, 0, 0, 3),
    "free base, axisymmetric": (lambda: ball_on(joints.Free(), (1, 1, 1.5)), "b2", 3, 0, 0, 1),
    "planar base, isotropic": (lambda: ball_on(joints.Planar(), (1, 1, 1)), "b2", 3, 0, 1, 3),
    "planar base, z slide": (lift_on_car, "b2", 1, 1, 1, 1),
    "z slide, planar": (lambda: slide_then_planar(Z), "b2", 3, 3, 3, 1),
    "two balls at one centre": (two_balls, "b2", 3, 3, 0, 0),
    "x slide, planar": (lambda: slide_then_planar(X), "b2", 3, 3, 2, 1),
}


@cache
def examined(build):
    robot = build()
    return robot, cc.symmetry(robot)


@pytest.mark.parametrize("case", WORKED)
def test_worked_results(case):
    """Thesis: (4.4.29)-(4.4.32). Misprint 001-32."""
    build, joint, whole, conjugated, left, right = WORKED[case]
    robot, report = examined(build)
    row = report[joint]
    assert row.whole.dim == whole
    assert row.conjugated.dim == conjugated
    assert row.left.dim == left
    assert (None if row.right is None else row.right.dim) == right
    assert_same_span(row.left.coordinates, left_by_condition(robot, joint))
    for group in (row.conjugated, row.left, row.kept, *filter(None, [row.right])):
        assert group.residual < 1e-12
        assert group.twists.shape == (6, group.dim)
        assert group.group.closed
        assert group.violation is None or group.violation > 1e-2
        if group is not row.kept:
            assert (group.violation is None) == (group.dim == whole)


def test_groups_have_their_place():
    # The plane turns about the axis of the disc, which is not that of its frame.
    row = cc.symmetry(disc_then_planar())["b2"]
    assert row.left.name == "SO(2)"
    x, y = -0.3, 0.2  # the disc's axis seen from the frame of the plane
    expected = np.array([y, -x, 0, 0, 0, 1])
    np.testing.assert_allclose(row.left.twists[:, 0], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(row.left.coordinates[:, 0], expected[[0, 1, 5]], atol=1e-12)
    # The ball keeps its turns about the vertical, in a frame that is slanted.
    row = cc.symmetry(ball_on(joints.Planar(), (1, 1, 1)))["b2"]
    vertical = Rotation.from_quat(SLANTED.rotation).as_matrix().T @ Z
    np.testing.assert_allclose(np.cross(row.left.twists[3:, 0], vertical), 0.0, atol=1e-12)
    # The axisymmetric body turns about its own axis.
    row = cc.symmetry(ball_on(joints.Free(), (1, 1, 1.5)))["b2"]
    np.testing.assert_allclose(np.abs(row.right.twists[:, 0]), [0, 0, 0, 0, 0, 1], atol=1e-12)
    # Two slides of the plane commute with the one below, the turn does not.
    row = cc.symmetry(slide_then_planar(X))["b2"]
    assert row.left.name == "R^2"
    assert row.conjugated.name == "SE(2)"


def test_both_algebras_must_be_quantified_over_the_whole_joint():
    """Thesis: (4.4.29), (4.4.30). Misprint 001-31."""
    # With the velocities of the plane kept to the candidate group, the condition passes although
    # the mass matrix changes.
    robot = chain(
        (joints.Prismatic(X), Pose(), Inertia(3.0, moments=BOX)),
        (joints.Planar(), OUT, centred(BOX)),
    )
    turn = np.array([[0.0], [0.0], [1.0]])
    misled = left_by_condition(robot, "b2", restricted=turn)
    assert_same_span(misled, np.eye(3))
    row = cc.symmetry(robot)["b2"]
    assert row.left.name == "R^2"
    assert row.left.violation > 0.1
    q, oracle = np.array([0.2, 0.5, -0.3, 0.4]), Pinocchio(robot)
    moved = left_translated(robot, q, "b2", np.array([0.0, 0.0, 0.5]))
    assert np.abs(oracle.mass_matrix(moved) - oracle.mass_matrix(q)).max() > 0.1


# --- what follows: potential, constraints, drives ----------------------------------------------


def test_verdicts_of_the_crane():
    report = cc.symmetry(crane(undriven="column"))
    column = report["column"]
    assert column.reducible
    assert column.reason.startswith("conserved: it is unactuated")
    assert column.conserved == ("angular momentum about z",)
    assert [row.joint for row in report.reducible] == ["chassis", "column"]
    assert report["chassis"].role == "base"
    assert report["chassis"].conserving.dim == 0
    assert report["chassis"].conserved == ()
    assert report["chassis"].reason.startswith("rolling: ")

    axle = report["axle"]
    assert (axle.left.dim, axle.constraints.dim, axle.kept.dim) == (1, 0, 0)
    assert axle.reason.startswith("the rolling constraints depend on it")
    assert axle.constraints.violation > 0.1

    wheel = report["left"]
    assert (wheel.role, wheel.driven, wheel.kept.dim, wheel.conserving.dim) == ("wheel", True, 1, 0)
    assert wheel.reason == "driven: its momentum changes with the torque"
    assert report["boom"].reason.startswith("kinetic energy depends on it")

    driven = cc.symmetry(crane())["column"]
    assert not driven.reducible
    assert driven.reason == "driven: its momentum changes with the torque"
    assert driven.conserving.dim == 1
    assert driven.conserved == ()


def test_a_wheel_that_nobody_drives_is_reduced_by_rolling_or_not_at_all():
    # Four rows: with the base, the wheel that is not driven follows from the others.
    idle = cc.symmetry(crane(undriven="right"))["right"]
    assert idle.kept.dim == 1
    assert idle.reducible
    assert idle.reason.startswith("rolling: ")
    assert idle.conserved == ()
    # Three rows give the base; an idle wheel then has an independent velocity.
    robot = rover()
    driven = [body.name for body in robot.bodies[1:] if body.name != "left"]
    robot = Mechanism("idle", robot.bodies, robot.wheels, robot.gravity, driven)
    idle = cc.symmetry(robot)["left"]
    assert (idle.kept.dim, idle.conserving.dim, idle.reducible) == (1, 0, False)
    assert idle.reason == "rolling: the reactions of the wheels change its momentum"
    # So it is: the momentum of the wheel changes by the reaction alone.
    rates = momentum_rates(robot, "left", np.eye(1), rover_rows(0.1, 0.25))
    assert np.abs(rates).max() > 1e-3


def test_momenta_with_what_rolls_along_are_listed_as_reduce_takes_them():
    # With its mass over the axle the platform's two-form vanishes: the momentum of the wheel
    # with all that rolls along is constant, that of the wheel alone is not.
    robot = replace(rover_without_arm(RoverNumbers(l0=0.0)), actuated=("right",))
    report = cc.symmetry(robot)
    left = report["left"]
    assert left.conserved == ("angular momentum about y, with what rolls along",)
    assert (left.conserving.dim, left.reducible, left.partly) == (0, True, False)
    assert cc.reduction.conservation(cc.reduce(robot), "left").conserved
    assert cc.reduce(robot, stages={"left": 0.2}).theta == (0.2,)
    # Nothing is reported if it is driven, or follows from others.
    assert not any(row.along for row in cc.symmetry(crane(undriven="right")))


def test_floating_base_is_its_whole_group_when_gravity_allows():
    """Thesis: Theorem 3.3.3."""
    hull = cc.symmetry(FLOATING)["hull"]
    for group in (hull.conjugated, hull.left, hull.kept, hull.conserving):
        assert (group.name, group.dim, group.violation) == ("SE(3)", 6, None)
    assert hull.reducible
    assert hull.conserved == (
        "linear momentum along x",
        "linear momentum along y",
        "linear momentum along z",
        "angular momentum about x",
        "angular momentum about y",
        "angular momentum about z",
    )
    falling = cc.symmetry(in_gravity(FLOATING, (0, 0, -9.81)))["hull"]
    assert falling.left.name == "SE(3)"
    assert falling.kept.name == falling.potential.name == "SE(2)"
    assert falling.constraints.name == "SE(3)"
    assert "gravity breaks the rest of SE(3)" in falling.reason
    assert falling.conserved == (
        "linear momentum along x",
        "linear momentum along y",
        "angular momentum about z",
    )


def test_gravity_breaks_a_symmetry():
    lift = chain(CAR, (joints.Prismatic(Z), OUT, GENERIC), gravity=(0, 0, -9.81), actuated=[])
    row = cc.symmetry(lift)["b2"]
    assert (row.left.dim, row.potential.dim, row.kept.dim) == (1, 0, 0)
    assert not row.reducible
    assert row.reason.startswith("gravity breaks it")
    # One metre per second against gravity lifts all of what is carried.
    assert row.potential.violation == pytest.approx(1.0, rel=1e-9)
    still = cc.symmetry(in_gravity(lift, (0, 0, 0)))["b2"]
    assert still.reducible
    assert still.conserved == ("linear momentum along z",)


def test_nothing_is_found_in_a_robot_without_symmetry():
    rng = np.random.default_rng(21)
    kinds = [
        joints.Revolute(_direction(rng)),
        joints.Spherical(),
        joints.Prismatic(_direction(rng)),
        joints.Planar(_direction(rng)),
        joints.Revolute(_direction(rng)),
    ]
    bodies = [Body("wall", joints.Fixed())] + [
        Body(f"b{i}", joint, "wall" if i == 0 else f"b{i - 1}", _placement(rng), _inertia(rng))
        for i, joint in enumerate(kinds)
    ]
    report = cc.symmetry(Mechanism("generic", bodies, gravity=(1.0, 2.0, -9.0), actuated=[]))
    assert [row.joint for row in report] == ["b0", "b1", "b2", "b3", "b4"]
    # On a wall that does not move, the first joint is free to shift: gravity sees it.
    assert [row.left.dim for row in report] == [1, 0, 0, 0, 0]
    assert [row.kept.dim for row in report] == [0, 0, 0, 0, 0]
    assert [row.conjugated.dim for row in report] == [1, 0, 0, 0, 0]
    assert not report.reducible
    assert all(row.left.violation > 1e-2 for row in list(report)[1:])
    assert all(row.reason and not row.conserved for row in report)
    assert report["b4"].right.dim == 0


# --- the report --------------------------------------------------------------------------------


def test_momenta_about_other_axes_are_named():
    rows = cc.symmetry(in_gravity(disc_then_planar(), (0, 0, 0), ["b2"]))
    assert rows["b2"].conserved == (
        "angular momentum about z through (-0.3, 0.2, 0)",
        "angular momentum about z through (0.1, 0.05, 0) of the body",
    )
    screw = chain((joints.Helical((0, 0.6, 0.8), 0.02), Pose(), GENERIC), actuated=[])
    assert cc.symmetry(screw)["b1"].conserved == (
        "screw momentum about (0, 0.6, 0.8) with pitch 0.02 m/rad",
    )


def test_what_is_welded_moves_along():
    # A joint whose body carries something welded is still an extremity.
    hand = chain(CAR, (joints.Revolute(Z), OUT, centred(BOX)), (joints.Fixed(), OUT, GENERIC))
    report = cc.symmetry(hand)
    assert [row.joint for row in report] == ["b1", "b2"]
    assert report["b2"].right.dim == 0
    assert report["b1"].right is None


def test_point_masses_do_not_divide_by_zero():
    robot = chain(CAR, (joints.Prismatic(X), Pose(), Inertia(1.0)))
    assert cc.symmetry(robot)["b2"].left.dim == 0
    assert cc.symmetry(chain((joints.Cartesian(), Pose(), Inertia(1.0))))["b1"].left.dim == 3


def test_bad_input():
    with pytest.raises(DescriptionError, match="a Mechanism or a reduced model, got str"):
        cc.symmetry("rover")
    with pytest.raises(DescriptionError, match="`samples`"):
        cc.symmetry(rover(), samples=0)
    with pytest.raises(DescriptionError, match="`samples`"):
        cc.symmetry(rover(), samples=True)
    assert len(cc.symmetry(rover(), samples=np.int64(2))) == 6
    for wrong in (0.0, 0.5, "tight", float("nan")):
        with pytest.raises(DescriptionError, match="`tolerance`"):
            cc.symmetry(rover(), tolerance=wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'column'"):
        cc.symmetry(crane())["colum"]
