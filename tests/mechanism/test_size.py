"""Size of a robot: distances of joint frames, wheels, and what stands in where joints coincide."""

from __future__ import annotations

import numpy as np
import pytest

from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, freedom_lengths, joints, robot_size
from concur.robot._lint import suspicious_inertias
from concur.robot._size import POINT
from tests.oracles import Units

SOLID = Inertia(2.0, (0.3, 0.0, 0.0), moments=(0.02, 0.02, 0.02))
RADIUS = float(np.sqrt(0.3**2 + 0.02 / 2.0))  # about the common origin, by Steiner's theorem


def wrist(*apart: float, base: float = 0.0, inertia: Inertia = SOLID) -> Mechanism:
    """A body on a spacecraft, carried by hinges some way apart; all have the same inertia."""
    bodies = [Body("base", joints.Free(), None, Pose((base, 0, 0)), inertia)]
    for k, way in enumerate(apart):
        axis = np.eye(3)[k % 3]
        place = Pose((0, way, 0))
        bodies.append(Body(f"link{k}", joints.Revolute(axis), bodies[-1].name, place, inertia))
    return Mechanism("wrist", bodies)


def test_largest_distance_counts() -> None:
    assert robot_size(wrist(0.4, 0.4, 0.3)) == pytest.approx(1.1, rel=1e-12)
    assert robot_size(wrist(0.4, -0.4, 0.3)) == pytest.approx(0.4, rel=1e-12)


def test_where_the_base_stands_does_not_count() -> None:
    assert robot_size(wrist(0.8, base=100.0)) == pytest.approx(0.8, rel=1e-12)


def test_a_point_counts_as_a_frame_does() -> None:
    robot = wrist(0.4)
    assert robot_size(robot, [np.array([0.0, 0.2, 0.0])]) == pytest.approx(0.4, rel=1e-12)
    assert robot_size(robot, [np.array([0.0, 1.0, 0.0])]) == pytest.approx(1.0, rel=1e-12)
    assert robot_size(wrist(0.0), [np.array([0.0, 1.0, 0.0])]) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("radius", "size"), [(0.19, 0.4), (0.21, 0.42)])
def test_the_largest_wheel_counts_where_frames_are_nearer(radius: float, size: float) -> None:
    bodies = [
        Body("base", joints.Planar(), None, Pose((0, 0, radius)), SOLID),
        *(
            Body(name, joints.Revolute((0, 1, 0)), "base", Pose((0, y, 0)), SOLID)
            for name, y in (("left", 0.2), ("right", -0.2))
        ),
    ]
    wheels = [Wheel(name, radius) for name in ("left", "right")]
    assert robot_size(Mechanism("cart", bodies, wheels=wheels)) == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize(("part", "coincide"), [(0.0, True), (0.99, True), (1.01, False)])
@pytest.mark.parametrize("length", [1.0, 1e3, 1e-6])
def test_joints_that_coincide_up_to_rounding_have_the_size_of_their_bodies(
    part: float, coincide: bool, length: float
) -> None:
    near = part * POINT * RADIUS
    robot = Units(length=length).robot(wrist(near, 0.0, 0.0))
    assert robot.extent == pytest.approx(0.0 if coincide else near * length, rel=1e-12)
    assert robot_size(robot) == pytest.approx((RADIUS if coincide else near) * length, rel=1e-12)
    turning = [size for size in freedom_lengths(robot) if size != 1.0]
    assert turning == [pytest.approx((RADIUS if coincide else near) * length, rel=1e-12)] * 6


def test_a_bead_has_the_size_of_a_metre() -> None:
    bead = Mechanism("bead", [Body("bead", joints.Prismatic((1, 0, 0)), inertia=Inertia(2.0))])
    assert (bead.extent, robot_size(bead)) == (0.0, 1.0)


@pytest.mark.parametrize("near", [0.0, 1e-12])
def test_inertias_of_joints_that_coincide_are_not_judged(near: float) -> None:
    # A light ring about a heavy motor: nothing determines its size.
    motor = Body("motor", joints.Free(), inertia=Inertia(50.0, moments=(0.2, 0.2, 0.2)))
    ring = Inertia(0.5, moments=(0.1, 0.1, 0.2))
    place = Pose((near, 0, 0))
    bodies = [motor, Body("ring", joints.Revolute((0, 0, 1)), "motor", place, ring)]
    assert suspicious_inertias(Mechanism("ring", bodies)) == ()
