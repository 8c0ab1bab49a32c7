"""Rolling constraints from geometry, against rows by hand and the speed of the contact point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import ReductionError
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import Pinocchio, assert_close, crane, random_rover, rover

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


def test_redundant_side_slip_rows_are_left_out() -> None:
    assert rover().constraint_names == ("left: rolling", "left: no side slip", "right: rolling")
    assert len(crane().constraint_names) == 4


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


def test_rows_do_not_depend_on_place_heading_or_wheel_angles() -> None:
    robot = rover()
    rng = np.random.default_rng(3)
    q = robot.random(rng)
    moved = q + np.concatenate([rng.uniform(-3, 3, 5), np.zeros(3)])
    np.testing.assert_allclose(robot.constraints(moved), robot.constraints(q), rtol=0, atol=1e-15)


def test_axis_the_other_way_round_turns_the_wheel_backwards() -> None:
    ahead = Mechanism("a", [BASE, _wheel("w", (0, 1, 0), (0, 0.2, 0))], [Wheel("w", 0.1)])
    back = Mechanism("b", [BASE, _wheel("w", (0, -1, 0), (0, 0.2, 0))], [Wheel("w", 0.1)])
    q = ahead.neutral()
    # Same wheel, opposite angle: the same velocities are allowed once psi' changes sign.
    flip = np.diag([1, 1, 1, -1])
    for row in back.constraints(q) @ flip:
        combined = np.linalg.lstsq(ahead.constraints(q).T, row, rcond=None)[0]
        np.testing.assert_allclose(combined @ ahead.constraints(q), row, rtol=0, atol=1e-14)


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


def test_axis_given_against_the_joint_axis_changes_nothing() -> None:
    bodies = [BASE, _wheel("w", (0, 1, 0), (0, 0.2, 0))]
    plain = Mechanism("a", bodies, [Wheel("w", 0.1)])
    turned = Mechanism("b", bodies, [Wheel("w", 0.1, axis=(0, -1, 0))])
    q = plain.neutral()
    for row in turned.constraints(q):
        combined = np.linalg.lstsq(plain.constraints(q).T, row, rcond=None)[0]
        np.testing.assert_allclose(combined @ plain.constraints(q), row, rtol=0, atol=1e-14)
