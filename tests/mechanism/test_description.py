"""Checks of a description, its order of bodies, and copies."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import (
    DescriptionError,
    InertiaError,
    NonFiniteError,
    ShapeError,
    UnknownNameError,
    WheelError,
)
from concur.formats import load
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import random_tree, rover

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


def test_unknown_parent() -> None:
    with pytest.raises(UnknownNameError, match=r"body `hand`, `parent`.*'bse'.*mean 'base'"):
        Mechanism("arm", [BASE, link("hand", "bse")])


def test_cyclic_parents() -> None:
    bodies = [BASE, link("a", "c"), link("b", "a"), link("c", "b")]
    with pytest.raises(DescriptionError, match="the cycle a -> c -> b -> a"):
        Mechanism("ring", bodies)


def test_body_that_is_its_own_parent() -> None:
    with pytest.raises(DescriptionError, match="the cycle a -> a"):
        Mechanism("loop", [BASE, link("a", "a")])


def test_no_body_without_parent() -> None:
    with pytest.raises(DescriptionError, match="cycle"):
        Mechanism("ring", [link("a", "b"), link("b", "a")])


def test_duplicate_names() -> None:
    with pytest.raises(DescriptionError, match=r"body `hand`: expected each name once, got 2"):
        Mechanism("arm", [BASE, link("hand", "base"), link("hand", "base")])


def test_two_bodies_without_parent() -> None:
    with pytest.raises(DescriptionError, match=r"one body without parent.*got base, other"):
        Mechanism("pair", [BASE, link("other", None)])


def test_no_bodies() -> None:
    with pytest.raises(DescriptionError, match="at least one body"):
        Mechanism("void", [])


def test_parents_come_before_children_and_the_rest_keeps_its_order() -> None:
    bodies = [link("c", "b"), link("b", "base"), BASE, link("d", "base")]
    robot = Mechanism("arm", bodies)
    assert [body.name for body in robot.bodies] == ["base", "b", "c", "d"]
    assert robot.path(robot.index("c")) == (0, 1, 2)
    assert robot.parents[0] is None


@pytest.mark.parametrize("name", ["", "  ", 7])
def test_name_of_a_body(name: object) -> None:
    with pytest.raises(DescriptionError, match="a name"):
        Body(name, Z)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("joint", "Revolute"), ("placement", (0, 0, 1)), ("inertia", 2.0), ("parent", 3)],
)
def test_part_of_a_body_of_the_wrong_kind(attribute: str, value: object) -> None:
    with pytest.raises(DescriptionError, match=f"body `hand`, `{attribute}`"):
        replace(link("hand", "base"), **{attribute: value})


def test_moving_body_at_the_end_without_mass() -> None:
    with pytest.raises(InertiaError, match=r"body `hand`: expected a mass above zero"):
        Mechanism("arm", [BASE, Body("hand", Z, "base")])


def test_gravity_of_the_wrong_shape() -> None:
    with pytest.raises(ShapeError, match=r"robot `arm`, `gravity`: expected shape \(3,\)"):
        Mechanism("arm", [BASE, link("a", "base")], gravity=-9.81)  # type: ignore[arg-type]


# --- inertia, axes, poses ---------------------------------------------------------------------


def test_negative_mass() -> None:
    with pytest.raises(InertiaError, match="a mass of zero or more, got -1 kg"):
        Inertia(-1.0)


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


def test_negative_eigenvalue() -> None:
    with pytest.raises(InertiaError, match=r"no negative eigenvalue, got eigenvalues \(-1, 1, 3\)"):
        Inertia(1.0, moments=((1, 2, 0), (2, 1, 0), (0, 0, 1)))


def test_tensor_that_is_not_symmetric() -> None:
    with pytest.raises(InertiaError, match=r"a symmetric inertia tensor.*0\.2, 1\.0"):
        Inertia(1.0, moments=((1, 0, 0), (0.2, 1, 0), (0, 0, 1)))


@pytest.mark.parametrize(
    ("inertia", "message"),
    [
        ("moments = [1.0, 1.0, 2.1]", r"hand.*inertia.*eigenvalues \(1, 1, 2\.1\)"),
        (
            "tensor = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]",
            r"hand.*inertia.*symmetric.*0\.2",
        ),
    ],
)
def test_link_with_an_impossible_inertia_is_named(
    tmp_path: Path, inertia: str, message: str
) -> None:
    path = tmp_path / "arm.toml"
    path.write_text(
        'name = "arm"\n[[bodies]]\nname = "hand"\njoint = { type = "Free" }\n'
        f"inertia = {{ mass = 1.0, {inertia} }}\n"
    )
    with pytest.raises(InertiaError, match=message):
        load(path)


def test_moments_without_mass() -> None:
    with pytest.raises(InertiaError, match="no moments of inertia on a body without mass"):
        Inertia(0.0, moments=(1, 1, 1))


def test_inertia_that_is_not_finite() -> None:
    with pytest.raises(NonFiniteError, match="Inertia, `com`"):
        Inertia(1.0, com=(0, np.nan, 0))
    with pytest.raises(NonFiniteError, match="Inertia, `mass`"):
        Inertia(np.inf)
    with pytest.raises(NonFiniteError, match="Inertia, `moments`"):
        Inertia(1.0, moments=(1, np.nan, 1))


def test_spatial_inertia_of_a_displaced_body() -> None:
    # A point mass of 2 kg at (1, 2, 3): parallel axes by hand.
    inertia = Inertia(2.0, com=(1, 2, 3))
    origin = 2.0 * np.array([[13, -2, -3], [-2, 10, -6], [-3, -6, 5]])
    np.testing.assert_allclose(inertia.origin_tensor, origin, rtol=0, atol=1e-14)
    momentum = inertia.matrix @ [0, 0, 0, 0, 0, 1.0]
    # w x r = (-2, 1, 0), so p = (-4, 2, 0) and r x p = (-6, -12, 10).
    np.testing.assert_allclose(momentum, [-4, 2, 0, -6, -12, 10], rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", [joints.Revolute, joints.Prismatic, joints.Planar])
def test_axis_of_zero_length(kind: type[joints.Joint]) -> None:
    with pytest.raises(ShapeError, match=f"{kind.__name__}, `.*a direction.*not zero"):
        kind((0, 0, 0))


def test_axis_is_normalised() -> None:
    assert joints.Revolute((0, 3, 4)).axis == pytest.approx((0, 0.6, 0.8), abs=1e-15)


def test_nan_in_an_axis() -> None:
    with pytest.raises(NonFiniteError, match="Revolute, `axis`"):
        joints.Revolute((0, np.nan, 1))


def test_nan_in_a_placement() -> None:
    with pytest.raises(NonFiniteError, match=r"Pose, `translation`.*\[2\] = nan"):
        Pose((0, 0, np.nan))
    with pytest.raises(NonFiniteError, match="Pose, `rotation`"):
        Pose(rotation=(0, 0, np.nan, 1))


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


def test_actuator_on_a_rolling_base() -> None:
    with pytest.raises(DescriptionError, match=r"`actuated`.*the base `chassis`"):
        replace(rover(), actuated=["chassis", "left"])


def test_actuator_on_a_floating_base() -> None:
    bodies = [Body("hub", joints.Free(), inertia=LINK), link("arm", "hub")]
    with pytest.raises(DescriptionError, match=r"`actuated`.*the base `hub`"):
        Mechanism("flyer", bodies, actuated=["hub", "arm"])


def test_unknown_actuator() -> None:
    with pytest.raises(UnknownNameError, match=r"'turet'.*Did you mean 'turret'"):
        replace(rover(), actuated=["turet"])


def test_actuator_on_a_fixed_joint() -> None:
    bodies = [BASE, link("a", "base"), Body("tool", joints.Fixed(), "a")]
    with pytest.raises(DescriptionError, match="the fixed joint of `tool`"):
        Mechanism("arm", bodies, actuated=["a", "tool"])


def test_actuator_named_twice() -> None:
    with pytest.raises(DescriptionError, match="each joint once"):
        replace(rover(), actuated=["left", "left"])


# --- wheels -----------------------------------------------------------------------------------


def test_wheel_flat_on_the_plane() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`.*lies flat on the plane"):
        rolling(axis=(0, 0, 1))


def test_wheel_above_the_ground() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`.*-0\.1 m: the wheel does not touch") as e:
        rolling(ground=-0.15)
    assert e.value.gap == pytest.approx(0.05, abs=1e-12)


def test_wheels_that_disagree_about_the_plane() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`.*under wheel `left`.*does not touch"):
        rolling(height=0.03)


def test_wheels_of_two_sizes_on_one_plane() -> None:
    robot = rolling(height=0.03, radius=0.13)
    assert robot.ground_height == pytest.approx(-0.1, abs=1e-12)


def test_ground_counts_from_the_inertial_origin() -> None:
    robot = rolling(ground=-0.1)
    raised = replace(robot.bodies[0], placement=Pose((0, 0, 0.5)))
    bodies = [raised, *robot.bodies[1:]]
    wheels = [replace(wheel, ground=0.4) for wheel in robot.wheels]
    assert replace(robot, bodies=bodies, wheels=wheels).nf == 3
    with pytest.raises(WheelError, match="does not touch the plane"):
        replace(robot, bodies=bodies)


def test_wheel_under_a_base_that_is_not_planar() -> None:
    expected = "a Planar or Sliding joint under a robot with wheels, got Free"
    with pytest.raises(WheelError, match=expected):
        rolling(base=joints.Free())


def test_wheel_that_an_arm_lifts() -> None:
    bodies = [
        Body("base", joints.Planar(), inertia=LINK),
        Body("swing", joints.Revolute((0, 1, 0)), "base", inertia=LINK),
        Body("wheel", joints.Revolute((0, 1, 0)), "swing", Pose((0.3, 0, 0)), LINK),
    ]
    with pytest.raises(WheelError, match=r"wheel `wheel`.*stays on its plane"):
        Mechanism("swing", bodies, [Wheel("wheel", 0.1)])


def test_wheel_on_a_prismatic_joint() -> None:
    bodies = [
        Body("base", joints.Planar(), inertia=LINK),
        Body("foot", joints.Prismatic((0, 1, 0)), "base", inertia=LINK),
    ]
    with pytest.raises(WheelError, match="a Revolute joint about the wheel axis, got Prismatic"):
        Mechanism("foot", bodies, [Wheel("foot", 0.1)])


def test_wheel_axis_that_is_not_its_joint_axis() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`, `axis`: expected the axis of its joint"):
        Mechanism("cart", rolling().bodies, [Wheel("right", 0.1, axis=(1, 0, 0))])


def test_wheel_centre_off_its_axle() -> None:
    with pytest.raises(WheelError, match=r"wheel `right`, `center`: expected a point on"):
        rolling(center=(0.01, 0, 0))


def test_wheel_on_an_unknown_body() -> None:
    with pytest.raises(UnknownNameError, match=r"'rihgt'.*Did you mean 'right'"):
        rolling(body="rihgt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0.1, "kind": "square"}, "one of disk, omni, mecanum, slider"),
        ({"radius": 0.0}, "a radius above zero"),
        ({"radius": -0.1}, "a radius above zero"),
        ({"radius": 0.1, "kind": "mecanum"}, "the roller angle in rad"),
        ({"radius": 0.1, "kind": "mecanum", "roller_angle": 0.0}, "not parallel to the wheel axis"),
        ({"radius": 0.1, "roller_angle": 0.7}, "none for kind 'disk'"),
        ({"radius": 0.1, "kind": "slider"}, "the direction that cannot slip"),
    ],
)
def test_wheel_that_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(WheelError, match=message):
        Wheel("wheel", **arguments)  # type: ignore[arg-type]


def test_radius_that_is_not_finite() -> None:
    with pytest.raises(NonFiniteError, match=r"wheel `wheel`"):
        Wheel("wheel", np.nan)


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


def test_errors_survive_pickling() -> None:
    # They travel between the processes of a campaign.
    with pytest.raises(InertiaError) as caught:
        Inertia(-1.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is InertiaError
    assert str(again) == str(caught.value)
    assert again.came == "-1 kg"


def test_descriptions_cannot_be_changed() -> None:
    robot = rover()
    with pytest.raises(FrozenInstanceError):
        robot.gravity = (0, 0, 0)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        robot.bodies[0].inertia.mass = 3.0  # type: ignore[misc]


def test_misspelt_argument() -> None:
    with pytest.raises(TypeError, match="gravitty"):
        Mechanism("arm", [BASE, link("a", "base")], gravitty=(0, 0, 0))  # type: ignore[call-arg]


@pytest.mark.parametrize("value", ["Prismatic", "prismatic", joints.Prismatic])
def test_name_of_a_joint_is_told_how_to_be_made(value: object) -> None:
    with pytest.raises(DescriptionError, match=r"`joint`: expected a Joint, .*Prismatic\(\(0, 0"):
        Body("slider", value)  # type: ignore[arg-type]
