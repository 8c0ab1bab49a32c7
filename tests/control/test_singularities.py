"""Singularity reports against geometry, and against differences of the robot's poses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import concur as cc
from concur import robots
from concur.control import Servo, lost_direction, singularities
from concur.errors import NonFiniteError, OutputError, ShapeError, UnknownNameError
from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.control._cases import arm, case_study
from tests.oracles import difference_quotient

SMALL = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
ABOUT = {
    "x": cc.joints.Revolute((1, 0, 0)),
    "y": cc.joints.Revolute((0, 1, 0)),
    "z": cc.joints.Revolute((0, 0, 1)),
}


def chain(axes: str, links: tuple[float, ...]) -> cc.Mechanism:
    """Revolute joints about the named axes, each `links[k]` along x from the one before."""
    bodies = [cc.Body("ground", cc.joints.Fixed())]
    for k, (axis, link) in enumerate(zip(axes, links, strict=True)):
        placement = cc.Pose((link, 0, 0))
        bodies.append(cc.Body(f"link{k + 1}", ABOUT[axis], bodies[-1].name, placement, SMALL))
    return cc.Mechanism(f"chain {axes}", bodies)


PLANAR = chain("zz", (0.0, 1.0))
TIP = cc.Output("tip", "link2", "R2", point=(0.7, 0, 0))


# --- hand-checked -----------------------------------------------------------------------------


@pytest.mark.parametrize("elbow", [0.0, np.pi])
@pytest.mark.parametrize("shoulder", [0.0, 0.3, -2.0])
def test_a_stretched_or_folded_arm_cannot_move_along_itself(shoulder, elbow):
    report = cc.singularities(PLANAR, [TIP], [shoulder, elbow])
    assert report.rank == 1
    assert report.singular
    radial = np.array([np.cos(shoulder), np.sin(shoulder)])
    assert report.lost.shape == (2, 1)
    assert_allclose(abs(report.lost[:, 0] @ radial), 1.0, atol=1e-12)
    # The forearm lies along itself: the direction in its axes is x, and nothing turns.
    assert_allclose(np.abs(report.lost_twists), [[[1, 0, 0, 0, 0, 0]]], atol=1e-12)
    # The tip is 1 + 0.7 (or 1 - 0.7) from the shoulder and 0.7 from the elbow, along a line.
    from_shoulder, from_elbow = 1.0 + 0.7 * np.cos(elbow), 0.7 * np.cos(elbow)
    vain = np.array([from_elbow, -from_shoulder]) / np.hypot(from_elbow, from_shoulder)
    assert report.idle.shape == (2, 1)
    assert_allclose(abs(report.idle[:, 0] @ vain), 1.0, atol=1e-12)
    assert report.condition > 1e12


@pytest.mark.parametrize("elbow", [0.4, 1.5, -2.2])
def test_manipulability_of_two_links(elbow):
    report = cc.singularities(PLANAR, [TIP], [0.3, elbow])
    assert not report.singular
    assert (report.lost.shape, report.idle.shape) == ((2, 0), (2, 0))
    assert report.length == pytest.approx(1.7)
    assert report.manipulability == pytest.approx(0.7 * abs(np.sin(elbow)) / 1.7**2)
    assert report.condition == pytest.approx(np.linalg.cond(report.matrix))


def test_gimbal_lock():
    yaw, roll = 0.4, 0.7
    robot = chain("zyx", (0.0, 0.0, 0.0))
    output = cc.Output("attitude", "link3", "SO3")
    assert not cc.singularities(robot, [output], [yaw, 0.3, roll]).singular
    report = cc.singularities(robot, [output], [yaw, np.pi / 2, roll])
    assert report.rank == 2
    # Yaw and roll turn about one line; what is lost is the turn about the third axis, square
    # to that line and to the pitch axis, which in the body is y turned back by the roll.
    line, pitch = np.array([1.0, 0, 0]), np.array([0, np.cos(roll), -np.sin(roll)])
    assert_allclose(report.lost_twists[0, 0, :3], 0.0, atol=1e-12)
    assert_allclose(abs(report.lost_twists[0, 0, 3:] @ np.cross(line, pitch)), 1.0, atol=1e-12)
    assert_allclose(np.abs(report.idle[:, 0]), np.array([1, 0, 1]) / np.sqrt(2), atol=1e-12)
    assert_allclose(report.singular_values, [np.sqrt(2), 1, 0], atol=1e-12)


def test_wrist_singularity():
    # With the fifth joint straight, the fourth and the sixth turn about the same line, x.
    robot = arm("zyyxyx")
    q = np.array([0.3, 0.4, 0.9, 0.2, 0.0, 0.5])
    output = cc.Output("hand", "hand", "SE3", point=(0.1, 0, 0))
    report = cc.singularities(robot, [output], q)
    assert report.rank == 5
    assert_allclose(np.abs(report.idle[:, 0]), np.array([0, 0, 0, 1, 0, 1]) / 2**0.5, atol=1e-9)
    assert report.idle[3, 0] * report.idle[5, 0] < 0.0
    # Nothing that the joints do has a share in the lost direction.
    twists = robot.jacobian(q, "hand")
    twists[:3] -= np.cross([0.1, 0, 0], twists[3:].T).T
    twists[:3] /= report.length
    assert_allclose(report.lost_twists[0, 0] @ twists, 0.0, atol=1e-12)
    assert np.linalg.norm(report.lost_twists[0, 0]) == pytest.approx(1.0)
    q[4] = 0.5
    assert not cc.singularities(robot, [output], q).singular


def test_motions_in_vain_are_told_apart():
    robot = cc.robots.rover_arm()
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    report = cc.singularities(robot, [hand], robot.neutral(), fixed=["chassis"])
    assert report.motions == ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm")
    wheels = report.idle[:, :2]
    assert_allclose(wheels, np.eye(5)[:, :2], atol=1e-12)
    # Links of 0.4 m and 0.2 m: the hand is 0.6 m from the shoulder and 0.2 m from the elbow.
    assert_allclose(report.idle[3, 2] / report.idle[4, 2], -0.2 / 0.6, rtol=1e-9)
    assert "left_wheel +1" in report.summary()


def test_more_coordinates_than_motions():
    output = cc.Output("tip", "link2", "SE2", point=(0.7, 0, 0))
    report = cc.singularities(PLANAR, [output], [0.3, 0.8])
    assert report.rank == 2
    assert not report.singular
    assert report.lost.shape == (3, 1)


def test_no_motion_at_all():
    # The height of a planar arm: every singular value is zero.
    report = cc.singularities(PLANAR, [cc.Output("z", "link2", "R", axes="z")], [0.3, 0.8])
    assert report.rank == 0
    assert report.condition == np.inf
    assert_allclose(report.lost, [[1.0]])
    assert_allclose(report.lost_twists, [[[0, 0, 1, 0, 0, 0]]], atol=1e-15)


# --- against numbers from elsewhere -----------------------------------------------------------

SPATIAL = {
    "R3xSO3": cc.Output("o", "hand", "R3xSO3", point=(0.1, 0.05, -0.2)),
    "SE3": cc.Output("o", "hand", "SE3", point=(0.1, 0.05, -0.2)),
    "R3": cc.Output("o", "hand", "R3", point=(0.1, 0.05, -0.2)),
    "R": cc.Output("o", "hand", "R", point=(0.1, 0.05, -0.2), axes="z"),
    "SO3": cc.Output("o", "hand", "SO3"),
    "SE2": cc.Output("o", "link2", "SE2", point=(0.3, 0.1, 0)),
    "SO2": cc.Output("o", "link2", "SO2"),
}


def velocity(robot: cc.Mechanism, output: cc.Output, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """Output velocity by differences of poses: for poses in the axes of the output's frame."""
    start = robot.pose(q, output.body)

    def motion(h: float) -> np.ndarray:
        pose = robot.pose(robot.integrate(q, h * dv), output.body)
        place = (pose @ [*output.point, 1.0])[:3]
        return np.append(place, Rotation.from_matrix(start[:3, :3].T @ pose[:3, :3]).as_rotvec())

    rate = difference_quotient(motion)
    linear, angular = rate[:3], rate[3:]
    if output.axes is not None:
        return linear[["xyz".index(axis) for axis in output.axes]]
    if output.group == "R3xSO3":
        return rate
    if output.group == "SO3":
        return angular
    if output.group == "SE3":
        return np.append(start[:3, :3].T @ linear, angular)
    turning = (start[:3, :3] @ angular)[2]
    heading = np.arctan2(start[1, 0], start[0, 0])
    back = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    return np.array([turning]) if output.group == "SO2" else np.append(back @ linear[:2], turning)


@pytest.mark.parametrize("group", SPATIAL)
def test_singular_values_against_a_jacobian_by_differences(group):
    output = SPATIAL[group]
    robot = PLANAR if output.body == "link2" else arm()
    q = robot.random(np.random.default_rng(6))
    length = 0.8
    report = cc.singularities(robot, [output], q, length=length)
    columns = [velocity(robot, output, q, dv) for dv in np.eye(robot.nv)]
    scaled = np.array(columns).T
    scaled[[unit == "m" for unit in output.coordinate_units]] /= length
    assert_allclose(report.matrix, scaled, atol=1e-9)
    assert_allclose(report.singular_values, np.linalg.svd(scaled)[1], atol=1e-9)
    assert_allclose(report.lost.T @ scaled, 0.0, atol=1e-9)
    assert_allclose(scaled @ report.idle, 0.0, atol=1e-9)
    assert_allclose(np.linalg.norm(report.idle, axis=0), 1.0)


@pytest.mark.parametrize("group", SPATIAL)
def test_lost_twists_are_square_to_all_motions(group):
    output = SPATIAL[group]
    robot = PLANAR if output.body == "link2" else arm()
    # Stretched: the arm's neutral configuration loses something for every group but SO2 and R.
    q = np.zeros(robot.nq)
    report = cc.singularities(robot, [output], q)
    twists = robot.jacobian(q, output.body)
    twists[:3] -= np.cross(output.point, twists[3:].T).T
    twists[:3] /= report.length
    assert report.lost_twists.shape == (output.dim - report.rank, 1, 6)
    assert_allclose(report.lost_twists[:, 0] @ twists, 0.0, atol=1e-12)
    assert_allclose(np.linalg.norm(report.lost_twists[:, 0], axis=1), 1.0)


def test_with_a_model_it_is_the_decoupling_matrix():
    servo = case_study()
    model = servo.model
    q = np.array([-0.3, -0.05, 0.1, 0.0, 0.0, 0.1, 1.2, -1.6])
    report = cc.singularities(model.robot, servo.outputs, q, model=model, length=1.0)
    assert report.motions == model.shape_names
    assert_allclose(report.matrix, servo.decoupling(q), atol=1e-12)
    assert not report.singular
    # The arm stretched: the servo's margin and the report both show it.
    q[-2:] = 0.7, 0.0
    stretched = cc.singularities(model.robot, servo.outputs, q, model=model)
    assert stretched.rank == 4
    assert servo.margin(q) < 1e-9
    assert_allclose(np.abs(stretched.idle[-2:, 0]), np.array([0.2, 0.6]) / np.hypot(0.2, 0.6))


# --- paths ------------------------------------------------------------------------------------


def test_a_path_through_the_stretched_arm():
    elbow = np.linspace(-1.0, 1.0, 21)
    q = np.column_stack([np.full(21, 0.3), elbow])
    path = cc.singularities(PLANAR, [TIP], q)
    assert path.singular_values.shape == (21, 2)
    assert_allclose(path.manipulability, 0.7 * np.abs(np.sin(elbow)) / 1.7**2, atol=1e-12)
    assert (path.nearest, path.drops) == (10, (10,))
    assert path.rank.tolist() == [2] * 10 + [1] + [2] * 10
    assert path.report.singular
    assert path.singular
    assert path.condition[0] == pytest.approx(
        path.singular_values[0, 0] / path.singular_values[0, 1]
    )
    assert "rank drops at" in path.summary()
    assert "along (1, 0, 0) of body `link2`" in str(path)


def test_a_path_that_steps_over_the_singular_configuration():
    q = np.column_stack([np.full(20, 0.3), np.linspace(-1.0, 1.0, 20)])
    path = cc.singularities(PLANAR, [TIP], q)
    assert path.drops == ()
    assert path.crossings == (9,)
    assert path.singular
    assert path.nearest in (9, 10)
    assert "between   9 and 10" in path.summary()


def test_a_path_that_is_singular_throughout():
    path = cc.singularities(PLANAR, [TIP], [[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    assert path.drops == (0, 1, 2)
    assert "0 to 2" in path.summary()


# --- bad input --------------------------------------------------------------------------------

ROVER = cc.robots.rover_arm()
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
BAD = {
    "too short": (lambda: cc.singularities(PLANAR, [TIP], [0.1]), ShapeError, "(2,)"),
    "path of nothing": (lambda: cc.singularities(PLANAR, [TIP], []), ShapeError, "(2,)"),
    "empty path": (
        lambda: cc.singularities(PLANAR, [TIP], np.zeros((0, 2))),
        ShapeError,
        "(0, 2)",
    ),
    "three axes": (
        lambda: cc.singularities(PLANAR, [TIP], np.zeros((1, 1, 2))),
        ShapeError,
        "(1, 1, 2)",
    ),
    "not finite": (
        lambda: cc.singularities(PLANAR, [TIP], [[0, 0], [0, np.nan]]),
        NonFiniteError,
        "[1] = nan",
    ),
    "unknown body": (
        lambda: cc.singularities(PLANAR, [TIP], [0, 0], fixed=["link9"]),
        UnknownNameError,
        "link9",
    ),
    "another robot's model": (
        lambda: cc.singularities(PLANAR, [TIP], [0, 0], model=cc.reduce(ROVER)),
        OutputError,
        "rover_arm",
    ),
    "a robot for a model": (
        lambda: cc.singularities(PLANAR, [TIP], [0, 0], model=PLANAR),
        OutputError,
        "reduce(robot)",
    ),
    "fixed beside a model": (
        lambda: cc.singularities(
            ROVER, [HAND], ROVER.neutral(), model=cc.reduce(ROVER), fixed=["chassis"]
        ),
        OutputError,
        "leave out",
    ),
    "length zero": (
        lambda: cc.singularities(PLANAR, [TIP], [0, 0], length=0.0),
        ShapeError,
        "length",
    ),
    "negative threshold": (
        lambda: cc.singularities(PLANAR, [TIP], [0, 0], threshold=-1.0),
        ShapeError,
        "threshold",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    act, kind, part = BAD[name]
    with pytest.raises(kind) as caught:
        act()
    assert part in str(caught.value)


def test_stretched_arm_names_its_joints() -> None:
    robot = robots.rover_arm()
    base = Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    model = reduce(robot)
    servo = Servo(model, [base, hand], 4.0, 4.0)
    q = robot.neutral()
    said = "joints `upper_arm`, `forearm` align"
    assert said in lost_direction(servo, q)
    for report in (
        singularities(robot, servo.outputs, q, model=model),
        singularities(robot, [hand], q, fixed=("chassis",)),
    ):
        (clause,) = report.aligned
        assert said in clause
        assert said in report.summary()
    q[-1] = -1.6
    assert "align" not in lost_direction(servo, q)
    assert singularities(robot, [hand], q, fixed=("chassis",)).aligned == ()


@pytest.mark.parametrize(("angle", "named"), [(0.005, True), (0.3, False)])
def test_joints_are_named_near_a_singular_configuration_only(angle: float, named: bool) -> None:
    robot = robots.rover_arm()
    base = Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    servo = Servo(reduce(robot), [base, hand], 4.0, 4.0)
    q = robot.neutral()
    q[-1] = angle
    assert ("align" in lost_direction(servo, q)) is named


@pytest.mark.parametrize(("angle", "outwards"), [(0.01, 1.0), (np.pi - 0.01, -1.0)])
def test_an_edge_of_the_reach_says_on_which_side_it_is(angle: float, outwards: float) -> None:
    """A stretched arm reaches no farther from its foot, a folded one no nearer."""
    inertia = Inertia(1.0, moments=(0.3, 0.3, 0.5))
    bodies = [Body("floor", joints.Fixed())]
    for name, place in (("upper", 0.0), ("fore", 1.0)):
        at = Pose((place, 0, 0))
        bodies.append(Body(name, joints.Revolute((0, 0, 1)), bodies[-1].name, at, inertia))
    robot = Mechanism("arm", bodies)
    tip = Output("tip", "fore", "R2", point=(0.7, 0, 0))
    servo, q = Servo(reduce(robot), [tip], 4.0, 4.0), np.array([0.7, angle])
    said = lost_direction(servo, q)
    assert "and it reaches no farther that way; joints `upper`, `fore` align" in said
    way = np.array([float(x) for x in re.findall(r"[-+]?\d+\.?\d*(?:e-?\d+)?", said)[:2]])
    way = robot.pose(q, "fore")[:2, :2] @ way  # from the axes of the body
    place = robot.pose(q, "fore")[:2] @ [0.7, 0, 0, 1]
    assert way @ place / np.linalg.norm(place) == pytest.approx(outwards, abs=0.05)


def test_aligned_axes_of_a_wrist_are_no_edge_of_the_reach() -> None:
    inertia = Inertia(1.0, moments=(0.02, 0.02, 0.02))
    bodies = [Body("mount", joints.Fixed())]
    for name, axis in zip("abcdef", "zyyxyx", strict=True):
        turn = joints.Revolute(tuple(float(axis == one) for one in "xyz"))
        place = Pose((0.0, 0.0, 0.4) if name in "bc" else (0.2 * (name in "d"), 0.0, 0.0))
        bodies.append(Body(name, turn, bodies[-1].name, place, inertia))
    servo = Servo(reduce(Mechanism("arm", bodies)), [Output("tool", "f", "SE3")], 4.0, 4.0)
    rng = np.random.default_rng(1)
    for middle in (0.0, 1e-9, 0.003):
        for q in rng.uniform(-1.2, 1.2, (6, 6)):
            q[2], q[4] = 1.0, middle  # a bent elbow, and a straight wrist
            said = lost_direction(servo, q)
            assert "joints `d`, `f` align" in said
            assert "no farther" not in said
    robot = wrist()
    servo = Servo(reduce(robot), [Output("tool", "last", "SO3")], 4.0, 4.0)
    said = lost_direction(servo, np.array([0.3, 0.005, -0.2]))
    assert "nothing moves output `tool`" in said
    assert "no farther" not in said


def wrist() -> Mechanism:
    """A wrist of three axes that meet in a point: z, y, z."""
    inertia = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    bodies = [Body("mount", joints.Fixed())]
    for name, axis in (("first", (0, 0, 1)), ("middle", (0, 1, 0)), ("last", (0, 0, 1))):
        place = Pose((0.0, 0.0, 0.3 if name == "last" else 0.1))
        bodies.append(Body(name, joints.Revolute(axis), bodies[-1].name, place, inertia))
    return Mechanism("wrist", bodies)


def test_coinciding_axes_of_a_wrist_are_named() -> None:
    robot = wrist()
    tool = Output("tool", "last", "SO3")
    report = singularities(robot, [tool], np.zeros(3))
    assert report.aligned == ("joints `first`, `last` align",)
    assert singularities(robot, [tool], np.array([0.3, 0.5, 0.1])).aligned == ()


def test_idle_motions_count_metres_in_the_characteristic_length() -> None:
    """A rail and a joint that cancel: the motion is the same in any unit of length."""
    inertia = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    found = []
    for scale in (1.0, 1e3):
        bodies = [
            Body("mount", joints.Fixed()),
            Body("rail", joints.Prismatic((0, 1, 0)), "mount", inertia=inertia),
            Body("arm", joints.Revolute((0, 0, 1)), "rail", Pose((0.2 * scale, 0, 0)), inertia),
        ]
        robot = Mechanism("rail", bodies)
        tip = Output("tip", "arm", "R", point=(0.5 * scale, 0, 0), axes="y")
        report = singularities(robot, [tip], robot.neutral())
        (column,) = report.idle.T
        assert np.linalg.norm(column / (report.length, 1.0)) == pytest.approx(1.0)
        found.append(column / (scale, 1.0))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
