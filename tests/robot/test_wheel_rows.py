"""Rows of wheels by hand and by the speed of the contact point; the plane under them; ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import ReductionError, WheelError
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.robot._contact import ROUNDING, _rank
from tests.oracles import Pinocchio, Units, assert_close, crane, random_rover, rover

DISK = Inertia(0.5, moments=(0.001, 0.002, 0.001))
BASE = Body("base", joints.Planar(), inertia=Inertia(5.0, moments=(1, 1, 1)))


def _wheel(
    name: str, axis: tuple[float, ...], point: tuple[float, ...], parent: str = "base"
) -> Body:
    return Body(name, joints.Revolute(axis), parent, Pose(point), DISK)


def _slip(robot: Mechanism, q: np.ndarray, v: np.ndarray, wheel: Wheel) -> np.ndarray:
    """Velocity of the contact point in inertial axes, from Pinocchio and the wheel's geometry."""
    oracle = Pinocchio(robot)
    pose = oracle.pose(q, wheel.body)
    twist = oracle.jacobian(q, wheel.body) @ v
    body = robot.bodies[robot.index(wheel.body)]
    axis = pose[:3, :3] @ np.array(body.joint.axis)
    center = pose[:3, :3] @ (twist[:3] + np.cross(twist[3:], wheel.center))
    angular = pose[:3, :3] @ twist[3:]
    down = -(np.array([0, 0, 1]) - axis[2] * axis)
    return center + np.cross(angular, wheel.radius * down / np.linalg.norm(down))


@pytest.mark.parametrize("robot", [rover(), crane(), random_rover(1).robot], ids=lambda r: r.name)
def test_contact_points_of_disks_stand_still(robot: Mechanism) -> None:
    model = reduce(robot)
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, s = robot.random(rng), rng.uniform(-3, 3, model.ns)
        for wheel in robot.wheels:
            if wheel.kind == "disk":
                slip = _slip(robot, q, model.velocity(q, s), wheel)
                np.testing.assert_allclose(slip, np.zeros(3), rtol=0, atol=1e-12)


def test_leaning_wheel_rolls_on_its_rim() -> None:
    lean = 0.4
    axis = (0.0, np.cos(lean), np.sin(lean))
    bodies = [BASE, _wheel("wheel", axis, (0.2, 0.3, 0.1))]
    robot = Mechanism("leaning", bodies, [Wheel("wheel", 0.1)])
    rng = np.random.default_rng(1)
    for _ in range(10):
        q, v = robot.random(rng), rng.uniform(-2, 2, 4)
        slip = _slip(robot, q, v, robot.wheels[0])
        assert slip[2] == pytest.approx(0.0, abs=1e-14)
        heading = q[2]
        along = np.array([np.cos(heading), np.sin(heading), 0.0])
        across = np.array([-np.sin(heading), np.cos(heading), 0.0])
        rows = robot.constraints(q) @ v
        np.testing.assert_allclose(rows, [along @ slip, across @ slip], rtol=0, atol=1e-13)


def test_kiwi_turns_with_the_sum_of_its_wheels() -> None:
    radius, arm = 0.05, 0.2
    angles = np.deg2rad([0, 120, 240])
    bodies = [BASE]
    for i, angle in enumerate(angles):
        axis = (np.cos(angle), np.sin(angle), 0.0)
        bodies.append(_wheel(f"omni{i}", axis, (arm * axis[0], arm * axis[1], 0.0)))
    wheels = [Wheel(f"omni{i}", radius, kind="omni") for i in range(3)]
    robot = Mechanism("kiwi", bodies, wheels)
    model = reduce(robot)
    rows = np.asarray(robot.constraints(robot.neutral()))
    np.testing.assert_allclose(np.abs(rows[:, 3:]), radius * np.eye(3), rtol=0, atol=1e-14)  # m
    lift, _ = model.lift(np.array([0.3, 0.1, 0.7, 1.0, 2.0, 3.0]))
    connection = -lift[:3]
    np.testing.assert_allclose(connection[2], np.full(3, 0.0833333333333), rtol=0, atol=1e-12)
    # Rolling along a x n: a sideways wheel speed is minus the rim's, (sin, -cos) of its angle.
    rims = np.array([np.sin(angles), -np.cos(angles)])
    np.testing.assert_allclose(lift[:2], rims * 2 / 3 * radius, rtol=0, atol=1e-14)


def test_caster_rows() -> None:
    xc, d, b = 0.3, 0.05, 0.06
    fork = Body("fork", joints.Revolute((0, 0, 1)), "base", Pose((xc, 0, 0)), DISK)
    bodies = [BASE, fork, _wheel("caster", (0, 1, 0), (-d, 0, 0), "fork")]
    robot = Mechanism("caster", bodies, [Wheel("caster", b)])
    rng = np.random.default_rng(2)
    for _ in range(10):
        q = robot.random(rng)
        cos, sin = np.cos(q[3]), np.sin(q[3])
        rows = [[cos, sin, xc * sin, 0, -b], [-sin, cos, xc * cos - d, -d, 0]]
        np.testing.assert_allclose(robot.constraints(q), rows, rtol=0, atol=1e-14)


def test_four_parallel_wheels_have_six_independent_rows() -> None:
    corners = {"fl": (0.3, 0.2), "fr": (0.3, -0.2), "rl": (-0.3, 0.2), "rr": (-0.3, -0.2)}
    bodies = [BASE, *(_wheel(name, (0, 1, 0), (*xy, 0)) for name, xy in corners.items())]
    robot = Mechanism("skid", bodies, [Wheel(name, 0.1) for name in corners])
    assert robot.nf == 6
    rows = robot.constraints(robot.neutral())
    straight = np.array([0.1, 0, 0, 1, 1, 1, 1])
    turning = np.array([0, 0, 1, -2, 2, -2, 2])
    np.testing.assert_allclose(rows @ straight, np.zeros(6), rtol=0, atol=1e-15)
    assert np.abs(rows @ turning).max() > 0.1


def test_two_wheels_that_steer_independently_are_refused() -> None:
    bodies = [BASE]
    for name, y in (("left", 0.3), ("right", -0.3)):
        bodies.append(
            Body(f"{name}_fork", joints.Revolute((0, 0, 1)), "base", Pose((1, y, 0)), DISK)
        )
        bodies.append(_wheel(name, (0, 1, 0), (0, 0, 0), f"{name}_fork"))
    wheels = [
        Wheel("left", 0.1),
        Wheel("right", 0.1),
        Wheel("base", 0.0, kind="slider", axis=(0, 1, 0)),
    ]
    robot = Mechanism("ackermann", bodies, wheels)
    assert robot.nf == 5  # but where the axles meet, as in the neutral configuration
    assert np.linalg.matrix_rank(robot.constraints(robot.neutral())) == 4
    with pytest.raises(ReductionError, match="lose rank at the neutral configuration"):
        reduce(robot)


def test_wheel_beside_its_joint_frame() -> None:
    # The centre may lie anywhere on the axle: only the centre counts.
    inner = [BASE, _wheel("w", (0, 1, 0), (0.1, 0.0, 0.0))]
    outer = [BASE, _wheel("w", (0, 1, 0), (0.1, 0.25, 0.0))]
    shifted = Mechanism("a", inner, [Wheel("w", 0.1, center=(0, 0.25, 0))])
    plain = Mechanism("b", outer, [Wheel("w", 0.1)])
    q = plain.random(np.random.default_rng(4))
    np.testing.assert_allclose(shifted.constraints(q), plain.constraints(q), rtol=0, atol=1e-15)


@pytest.mark.parametrize("normal", [(1, 0, 0), (0, 0, -1), (0.48, -0.6, 0.64)])
def test_rover_on_a_wall(normal: tuple[float, ...]) -> None:
    # The same rover described on another plane: nothing changes in the plane's own axes.
    flat = rover()
    z = np.array([0.0, 0.0, 1.0])
    n = np.array(normal, dtype=float)
    across = np.cross(z, n)
    if np.linalg.norm(across) < 1e-9:
        turn = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
    else:
        angle = np.arctan2(np.linalg.norm(across), z @ n)
        turn = Rotation.from_rotvec(across / np.linalg.norm(across) * angle)
    matrix = turn.as_matrix()

    def turned(body: Body) -> Body:
        inertia = Inertia(
            body.inertia.mass,
            matrix @ np.array(body.inertia.com),
            matrix @ body.inertia.tensor @ matrix.T,
        )
        if body.parent is None:
            return replace(body, joint=joints.Planar(normal), inertia=inertia)
        placement = Pose(matrix @ np.array(body.placement.translation))
        joint = joints.Revolute(matrix @ np.array(body.joint.axis))
        return replace(body, joint=joint, placement=placement, inertia=inertia)

    wall = replace(flat, bodies=[turned(b) for b in flat.bodies], gravity=matrix @ flat.gravity)
    rng = np.random.default_rng(5)
    q, s, u = flat.random(rng), rng.uniform(-2, 2, 5), rng.uniform(-2, 2, 5)
    np.testing.assert_allclose(wall.constraints(q), flat.constraints(q), rtol=0, atol=1e-14)
    expected = reduce(flat).acceleration(q, s, u)
    assert_close(reduce(wall).acceleration(q, s, u), expected, 1e-11)


SOLID = Inertia(0.5, moments=(0.002, 0.002, 0.002))
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


@pytest.mark.parametrize(("least", "rank"), [(0.9e-9, 2), (1.1e-9, 3)])
@pytest.mark.parametrize("largest", [0.5, 1.0, 1.5, 4.0])
def test_rank_counts_what_is_above_a_thousand_millionth_of_the_largest(
    least: float, rank: int, largest: float
) -> None:
    turn, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))
    scale = max(1.0, largest)  # rows have unit length: the largest value is not below one
    rows = turn @ np.diag([largest, 0.5 * largest, least * scale])
    assert _rank(rows) == rank
