"""The plane under the wheels: its height from each kind of wheel, by hand, and its tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from concur.errors import WheelError
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.robot._contact import ROUNDING
from tests.oracles import Units

SOLID = Inertia(0.5, moments=(0.002, 0.002, 0.002))
BASE = Body("base", joints.Planar(), inertia=Inertia(5.0, moments=(1, 1, 1)))
LEAN = 0.4


def scaled(unit: float, name: str, bodies: list[Body], wheels: list[Wheel]) -> Mechanism:
    """A robot whose lengths are counted in another unit, of which there are `unit` to a metre."""
    units = Units(length=unit)
    return Mechanism(
        name, [units.body(body) for body in bodies], [units.wheel(wheel) for wheel in wheels]
    )


def robot(kind: str, height: float, radius: float, ground: float | None = None) -> Mechanism:
    """One wheel of a kind, its centre at a height above the base frame."""
    place = Pose((0.2, 0.1, height))
    if kind in ("ball", "rubber_ball"):
        bodies = [BASE, Body("wheel", joints.Spherical(), "base", place, SOLID)]
        return Mechanism("one", bodies, [Wheel("wheel", radius, kind=kind, ground=ground)])
    if kind == "slider":
        wheel = Wheel(
            "base", radius, kind, axis=(0, 1, 0), center=(0.2, 0.1, height), ground=ground
        )
        return Mechanism("one", [BASE], [wheel])
    axis = (0.0, np.cos(LEAN), np.sin(LEAN)) if kind == "leaning" else (0.0, 1.0, 0.0)
    bodies = [BASE, Body("wheel", joints.Revolute(axis), "base", place, SOLID)]
    kind = "disk" if kind == "leaning" else kind
    angle = 0.7 if kind == "mecanum" else None
    wheel = Wheel("wheel", radius, kind=kind, roller_angle=angle, ground=ground)
    return Mechanism("one", bodies, [wheel])


@pytest.mark.parametrize(
    "kind", ["disk", "leaning", "omni", "mecanum", "slider", "ball", "rubber_ball"]
)
@pytest.mark.parametrize(("height", "radius"), [(0.3, 0.1), (-0.05, 0.2)])
def test_lowest_point_is_a_radius_below_the_centre(kind: str, height: float, radius: float) -> None:
    lowest = height - radius * (np.cos(LEAN) if kind == "leaning" else 1.0)
    assert robot(kind, height, radius).ground_height == pytest.approx(lowest, abs=1e-12)
    robot(kind, height, radius, ground=lowest)
    with pytest.raises(WheelError, match="does not touch the plane") as caught:
        robot(kind, height, radius, ground=lowest - 2 * radius)
    assert caught.value.gap == pytest.approx(2 * radius, abs=1e-12)


def test_ground_is_counted_from_the_inertial_origin_along_the_normal() -> None:
    # A base whose frame stands upside down at a height of 0.7 m: its wheels are above it.
    upside_down = Pose((0.3, 0.1, 0.7), (1.0, 0.0, 0.0, 0.0))
    for pose, ground in ((Pose((0.3, 0.1, 0.7)), 0.6), (upside_down, -0.8)):
        base = Body("base", joints.Planar(), placement=pose, inertia=SOLID)
        wheel = Body("wheel", joints.Revolute((0, 1, 0)), "base", inertia=SOLID)
        robot = Mechanism("high", [base, wheel], [Wheel("wheel", 0.1, ground=ground)])
        assert robot.ground_height == pytest.approx(-0.1, abs=1e-12)
        with pytest.raises(WheelError, match="does not touch the plane"):
            Mechanism("high", [base, wheel], [Wheel("wheel", 0.1, ground=-ground)])


@pytest.mark.parametrize(("share", "touches"), [(0.99, True), (1.01, False), (-1.01, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3], ids=["m", "km", "mm"])
def test_two_wheels_stand_on_one_plane(share: float, touches: bool, unit: float) -> None:
    # The wheels are 0.4 m apart: the size of this robot.
    gap = share * ROUNDING * 0.4
    bodies = [BASE] + [
        Body(name, joints.Revolute((0, 1, 0)), "base", Pose((0, side, height)), SOLID)
        for name, side, height in (("left", 0.2, 0.0), ("right", -0.2, gap))
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1)]
    if touches:
        robot = scaled(unit, "two", bodies, wheels)
        assert robot.ground_height == pytest.approx(-0.1 * unit, rel=1e-14)
        return
    with pytest.raises(WheelError, match="does not touch the plane") as caught:
        scaled(unit, "two", bodies, wheels)
    assert caught.value.gap == pytest.approx(gap * unit, rel=1e-5)


@pytest.mark.parametrize(("upright", "stands"), [(2e-6, True), (0.5e-6, False)])
def test_a_wheel_needs_an_axle_that_is_not_upright(upright: float, stands: bool) -> None:
    axis = (0.0, upright, np.sqrt(1.0 - upright**2))
    bodies = [BASE, Body("wheel", joints.Revolute(axis), "base", inertia=SOLID)]
    if stands:
        Mechanism("flat", bodies, [Wheel("wheel", 0.1)])
        return
    with pytest.raises(WheelError, match="lies flat on the plane"):
        Mechanism("flat", bodies, [Wheel("wheel", 0.1)])


def test_a_wheel_that_lies_flat_in_one_configuration_is_refused() -> None:
    lean = Body("lean", joints.Revolute((1, 0, 0)), "base", inertia=SOLID)
    wheel = Body("wheel", joints.Revolute((0, 0, 1)), "lean", inertia=SOLID)
    with pytest.raises(WheelError, match="lies flat on the plane"):
        Mechanism("leaning", [BASE, lean, wheel], [Wheel("wheel", 0.1)])


@pytest.mark.parametrize(("tilt", "fits"), [(0.5e-9, True), (3e-9, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3], ids=["m", "km", "mm"])
def test_axis_and_centre_of_a_wheel_lie_on_its_joint(tilt: float, fits: bool, unit: float) -> None:
    bodies = [BASE, Body("wheel", joints.Revolute((0, 1, 0)), "base", inertia=SOLID)]
    for wheel in (
        Wheel("wheel", 0.1, axis=(tilt, 1, 0)),
        Wheel("wheel", 0.1, center=(tilt, 0.3, 0)),
    ):
        if fits:
            scaled(unit, "tilted", bodies, [wheel])
            continue
        with pytest.raises(WheelError, match=r"the axis of its joint|on the joint's axis"):
            scaled(unit, "tilted", bodies, [wheel])


@pytest.mark.parametrize(("lift", "stays"), [(1e-10, True), (1e-7, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3], ids=["m", "km", "mm"])
def test_a_wheel_that_a_joint_lifts_is_refused(lift: float, stays: bool, unit: float) -> None:
    # A slide that is nearly level: its first metre lifts the wheel by this.
    strut = Body("strut", joints.Prismatic((1.0, 0.0, lift)), "base", inertia=SOLID)
    wheel = Body("wheel", joints.Revolute((0, 1, 0)), "strut", inertia=SOLID)
    if stays:
        scaled(unit, "slide", [BASE, strut, wheel], [Wheel("wheel", 0.1)])
        return
    with pytest.raises(WheelError, match="a contact point that moves off it"):
        scaled(unit, "slide", [BASE, strut, wheel], [Wheel("wheel", 0.1)])


@pytest.mark.parametrize(("tilt", "stays"), [(0.4, True), (2.5, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3], ids=["m", "km", "mm"])
def test_a_wheel_that_a_turning_joint_lifts_is_refused(
    tilt: float, stays: bool, unit: float
) -> None:
    # An arm of one size of the robot turns about an axis that is nearly upright.
    axis = (tilt * ROUNDING, 0.0, np.sqrt(1.0 - (tilt * ROUNDING) ** 2))
    arm = Body("arm", joints.Revolute(axis), "base", inertia=SOLID)
    wheel = Body("wheel", joints.Revolute((0, 1, 0)), "arm", Pose((0, 0.4, 0)), SOLID)
    if stays:
        scaled(unit, "arm", [BASE, arm, wheel], [Wheel("wheel", 0.1)])
        return
    with pytest.raises(WheelError, match="a contact point that moves off it"):
        scaled(unit, "arm", [BASE, arm, wheel], [Wheel("wheel", 0.1)])
