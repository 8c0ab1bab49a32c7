"""Checks of a description, its order of bodies, sizes, planes, and copies."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import (
    ConcurError,
    DescriptionError,
    InertiaError,
    ShapeError,
    WheelError,
)
from concur.robot import (
    Body,
    Inertia,
    Mechanism,
    Pose,
    Wheel,
    freedom_lengths,
    joints,
    robot_size,
    shortest_rotation,
)
from concur.robot._lint import suspicious_inertias
from concur.robot._size import POINT
from tests.oracles import Units, random_tree, rover

LINK = Inertia(1.0, moments=(0.1, 0.1, 0.1))
Z = joints.Revolute((0, 0, 1))
BASE = Body("base", joints.Fixed())


def link(name: str, parent: str | None) -> Body:
    return Body(name, Z, parent, inertia=LINK)


def rolling(
    axis: tuple[float, ...] = (0, 1, 0),
    base: joints.Joint | None = None,
    height: float = 0.0,
    **changes: object,
) -> Mechanism:
    """Build a base with two wheels; the changes are made to the second one."""
    bodies = [
        Body("base", base or joints.Planar(), inertia=LINK),
        Body("left", joints.Revolute((0, 1, 0)), "base", Pose((0, 0.2, 0)), LINK),
        Body("right", joints.Revolute(axis), "base", Pose((0, -0.2, height)), LINK),
    ]
    right = replace(Wheel("right", 0.1), **changes)
    return Mechanism("cart", bodies, [Wheel("left", 0.1), right])


# --- the tree ---------------------------------------------------------------------------------


def test_cyclic_parents() -> None:
    bodies = [BASE, link("a", "c"), link("b", "a"), link("c", "b")]
    with pytest.raises(DescriptionError, match="the cycle a -> c -> b -> a"):
        Mechanism("ring", bodies)


def test_body_that_is_its_own_parent() -> None:
    with pytest.raises(DescriptionError, match="the cycle a -> a"):
        Mechanism("loop", [BASE, link("a", "a")])


def test_duplicate_names() -> None:
    with pytest.raises(DescriptionError, match=r"`name`: expected each name once, got 2"):
        Mechanism("arm", [BASE, link("hand", "base"), link("hand", "base")])


def test_parents_come_before_children_and_the_rest_keeps_its_order() -> None:
    bodies = [link("c", "b"), link("b", "base"), BASE, link("d", "base")]
    robot = Mechanism("arm", bodies)
    assert [body.name for body in robot.bodies] == ["base", "b", "c", "d"]
    assert robot.path(robot.index("c")) == (0, 1, 2)
    assert robot.parents[0] is None


# --- inertia, axes, poses ---------------------------------------------------------------------


def test_triangle_inequality_shows_the_eigenvalues() -> None:
    with pytest.raises(InertiaError, match=r"sum of the two others.*\(1, 1, 2\.1\)") as caught:
        Inertia(1.0, moments=(1.0, 2.1, 1.0))
    np.testing.assert_allclose(caught.value.eigenvalues, [1, 1, 2.1], rtol=0, atol=1e-14)


def test_triangle_inequality_in_slanted_axes() -> None:
    # On the diagonal nothing is wrong: the test must use the principal moments.
    turn = Rotation.from_rotvec([0.3, -0.7, 0.5]).as_matrix()
    tensor = turn @ np.diag([1.0, 1.0, 2.1]) @ turn.T
    diagonal = np.sort(np.diag(tensor))
    assert diagonal[0] + diagonal[1] > diagonal[2]
    with pytest.raises(InertiaError, match=r"eigenvalues \(1, 1, 2\.1\) kg m\^2"):
        Inertia(1.0, moments=tensor)


def test_flat_body_is_allowed() -> None:
    # A thin plate fulfils the triangle inequality with equality.
    np.testing.assert_array_equal(Inertia(1.0, moments=(1, 1, 2)).principal_moments, [1, 1, 2])


def test_spatial_inertia_of_a_displaced_body() -> None:
    # A point mass of 2 kg at (1, 2, 3): parallel axes by hand.
    inertia = Inertia(2.0, com=(1, 2, 3))
    origin = 2.0 * np.array([[13, -2, -3], [-2, 10, -6], [-3, -6, 5]])
    np.testing.assert_allclose(inertia.origin_tensor, origin, rtol=0, atol=1e-14)
    momentum = inertia.matrix @ [0, 0, 0, 0, 0, 1.0]
    # w x r = (-2, 1, 0), so p = (-4, 2, 0) and r x p = (-6, -12, 10).
    np.testing.assert_allclose(momentum, [-4, 2, 0, -6, -12, 10], rtol=0, atol=1e-14)


@pytest.mark.parametrize("rotation", [(0, 0, 0, 0), (1, 1, 0, 0)])
def test_quaternion_of_a_placement_without_unit_norm(rotation: tuple[float, ...]) -> None:
    with pytest.raises(ShapeError, match=r"a unit quaternion \(x, y, z, w\).*norm"):
        Pose(rotation=rotation)


def test_pose_is_what_scipy_says() -> None:
    quaternion = Rotation.from_rotvec([0.4, -1.2, 0.7]).as_quat()
    pose = Pose((1, 2, 3), quaternion)
    expected = np.eye(4)
    expected[:3, :3], expected[:3, 3] = Rotation.from_quat(quaternion).as_matrix(), (1, 2, 3)
    np.testing.assert_allclose(pose.matrix, expected, rtol=0, atol=1e-15)


# --- actuators --------------------------------------------------------------------------------


def test_all_joints_but_the_base_are_driven_by_default() -> None:
    robot = Mechanism("arm", [BASE, link("a", "base"), Body("tool", joints.Fixed(), "a")])
    assert robot.actuated == ("a",)
    assert robot.actuated_freedoms == (0,)


def test_actuators_are_kept_in_the_order_of_the_bodies() -> None:
    robot = replace(rover(), actuated=["fore", "left"])
    assert robot.actuated == ("left", "fore")
    assert robot.actuated_freedoms == (3, 7)


def test_actuator_on_a_floating_base() -> None:
    bodies = [Body("hub", joints.Free(), inertia=LINK), link("arm", "hub")]
    with pytest.raises(DescriptionError, match=r"`actuated`.*the base `hub`"):
        Mechanism("flyer", bodies, actuated=["hub", "arm"])


def test_actuator_on_a_fixed_joint() -> None:
    bodies = [BASE, link("a", "base"), Body("tool", joints.Fixed(), "a")]
    with pytest.raises(DescriptionError, match="the fixed joint of `tool`"):
        Mechanism("arm", bodies, actuated=["a", "tool"])


# --- wheels -----------------------------------------------------------------------------------


def test_wheels_of_two_sizes_on_one_plane() -> None:
    robot = rolling(height=0.03, radius=0.13)
    assert robot.ground_height == pytest.approx(-0.1, abs=1e-12)


def test_wheel_axis_that_is_not_its_joint_axis() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`, `axis`: expected the axis of its joint"):
        Mechanism("cart", rolling().bodies, [Wheel("right", 0.1, axis=(1, 0, 0))])


# --- copies -----------------------------------------------------------------------------------


def test_equal_descriptions_are_equal_robots() -> None:
    again = rover.__wrapped__()  # another one than that which tests share
    assert again is not rover()
    assert rover() == again
    assert rover() != replace(rover(), gravity=(0, 0, -1.62))
    assert hash(rover()) == hash(again)
    assert random_tree(0) == random_tree.__wrapped__(0)
    assert random_tree(0) != random_tree(1)


def test_robot_survives_pickling_after_use() -> None:
    robot = random_tree(0)
    q = robot.random(np.random.default_rng(0))
    before = robot.mass_matrix(q)  # builds an evaluator, which must not be pickled
    again = pickle.loads(pickle.dumps(robot))
    assert again == robot
    np.testing.assert_array_equal(again.mass_matrix(q), before)


def test_descriptions_cannot_be_changed() -> None:
    robot = rover()
    with pytest.raises(FrozenInstanceError):
        robot.gravity = (0, 0, 0)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        robot.bodies[0].inertia.mass = 3.0  # type: ignore[misc]


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


ANGLES = [0.0, 1e-160, 1e-12, 1e-8, 1e-6, 1.3e-6, 1.5e-6, 1e-5, 1e-4, 1e-2, 0.7, 1.5, 1.6, 3.0]
DIRECTIONS = [0.0, 0.4, 2.0, -1.3]


def direction(tilt: float, turn: float, sign: float) -> np.ndarray:
    """Unit vector at an angle from z or from -z."""
    side = np.sin(tilt) * np.array([np.cos(turn), np.sin(turn)])
    return np.array([*side, sign * np.cos(tilt)])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("tilt", ANGLES)
def test_frames_are_orthonormal_and_keep_the_normal(tilt: float, sign: float) -> None:
    for turn in DIRECTIONS:
        normal = direction(tilt, turn, sign)
        frame = shortest_rotation(normal)
        assert_allclose(frame.T @ frame, np.eye(3), rtol=0.0, atol=2e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0, abs=1e-15)
        assert_allclose(frame[:, 2], normal, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("tilt", [1.5e-6, 1e-5, 1e-3, 0.5, 2.0, 3.0])
def test_the_turn_is_the_shortest(tilt: float) -> None:
    for turn in DIRECTIONS:
        normal = direction(tilt, turn, -1.0)
        about = np.cross([0.0, 0.0, 1.0], normal)
        angle = np.arctan2(np.linalg.norm(about), normal[2])
        expected = Rotation.from_rotvec(about / np.linalg.norm(about) * angle).as_matrix()
        assert_allclose(shortest_rotation(normal), expected, rtol=0.0, atol=1e-15)


def test_round_off_in_a_normal_does_not_choose_the_axis_of_half_a_turn() -> None:
    # sin(pi) is no zero in floating point.
    for normal in ((0.0, 0.0, -1.0), (np.sin(np.pi), 0.0, -1.0), (0.0, np.sin(np.pi), -1.0)):
        assert_allclose(shortest_rotation(normal), np.diag([1.0, -1.0, -1.0]), atol=1e-15)


@pytest.mark.parametrize("tilt", [1e-7, 3e-6, 1e-5])
def test_planar_joints_with_normals_near_minus_z_move_in_their_plane(tilt: float) -> None:
    normal = direction(tilt, 0.4, -1.0)
    for joint in (joints.Planar(normal), joints.PlanarPrismatic(normal), joints.Sliding(normal)):
        linear = joint.basis[:3][:, [0, 1]]
        assert_allclose(linear.T @ linear, np.eye(2), rtol=0.0, atol=2e-15)
        assert_allclose(linear.T @ normal, 0.0, atol=1e-15)


def test_planes_are_horizontal_by_default():
    for joint in (joints.Planar, joints.PlanarPrismatic, joints.Sliding):
        assert joint() == joint((0, 0, 1))


def test_coordinates_that_are_all_fixed() -> None:
    robot = Mechanism("floor", [Body("floor", joints.Fixed())])
    assert (robot.nq, robot.nv) == (0, 0)
    assert robot.mass_matrix([]).shape == (0, 0)
    assert robot.momentum_matrix([]).shape == (6, 0)
    np.testing.assert_array_equal(robot.pose([], "floor"), np.eye(4))


@pytest.mark.parametrize("name", [None, 3, True, "", "  ", ["a"], b"a"], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda name: cc.Body(name, cc.joints.Free()),
        lambda name: cc.Wheel(name, 0.1),
        lambda name: cc.robot.Mimic(name, of="b"),
        lambda name: cc.robot.Mimic("a", of=name),
        lambda name: cc.Motor(name, joints={"a": 1.0}),
        lambda name: cc.simulation.Wrench(name, "a"),
        lambda name: cc.simulation.Wrench("a", name),
        lambda name: cc.Output(name, "a", "R3"),
    ],
)
def test_names_are_text_that_is_not_empty(make: Callable[[Any], object], name: object) -> None:
    with pytest.raises(DescriptionError, match="a name"):
        make(name)


@pytest.mark.parametrize("value", [True, "1.0", float("nan"), b"1"], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: Inertia(x),
        lambda x: cc.Wheel("a", x),
        lambda x: cc.Wheel("a", 0.1, ground=x),
        lambda x: cc.robot.Support(radius=x),
        lambda x: cc.robot.Mimic("a", of="b", offset=x),
        lambda x: cc.joints.Helical((0, 0, 1), x),
        lambda x: cc.Body("a", cc.joints.Revolute((0, 0, 1)), limits=(x, 2.0)),
        lambda x: cc.Body("a", cc.joints.Revolute((0, 0, 1)), speed_limit=x),
        lambda x: cc.Body("a", cc.joints.Revolute((0, 0, 1)), torque_limit=[x]),
    ],
)
def test_true_and_text_are_no_numbers(make: Callable[[Any], object], value: object) -> None:
    with pytest.raises(ConcurError):
        make(value)
