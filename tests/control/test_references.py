"""References: derivatives against differences, continuity, motions against expm, bad input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from concur import robots
from concur.errors import (
    ConcurError,
    NonFiniteError,
    OutputError,
    ShapeError,
    UnknownNameError,
)
from concur.outputs import Output, ReferenceSample, reference_for, references
from concur.outputs.references import Reference
from tests.groups.oracles import conjugation, twist_matrix, twist_of
from tests.oracles import assert_close, difference_quotient

Curve = Callable[[float], np.ndarray]

TIMES = [0.0, 1.0, 2.5, 3.0, 5.0]
POINTS = [[0.0, 1.0], [0.5, -1.0], [2.0, 0.0], [1.0, 0.3], [0.0, 0.0]]


def paths() -> dict[str, Reference]:
    slalom = references.waypoints(TIMES, POINTS, [[0.2, 0.0], [-0.3, 0.1]])
    return {
        "hold": references.hold([1.0, -2.0]),
        "polynomial": references.polynomial([[1.0, 0.5], [0.2, -0.1], [0.3, 0.0], [0.0, 0.05]]),
        "line": references.polynomial([[1.0], [2.0]]),
        "rest_to_rest": references.rest_to_rest([0.0, 1.0], [2.0, -1.0], duration=3.0, begin=0.5),
        "circle in the plane": references.circle([1.0, 2.0], 0.5, 7.0, phase=0.3),
        "circle in space": references.circle([1.0, 2.0, 3.0], 0.5, -7.0, normal=[1.0, 2.0, -0.5]),
        "waypoints": slalom,
        "relative": references.relative(references.circle([0.0, 0.0, 1.0], 0.2, 4.0), slalom),
        "stack": references.stack(slalom, references.hold([3.0])),
        "function": references.from_function(
            lambda t: ReferenceSample([np.sin(t)], [np.cos(t)], [-np.sin(t)]), 1, 1
        ),
    }


@pytest.mark.parametrize("name", paths())
def test_rate_and_acceleration_are_the_derivatives_of_the_pose(name: str) -> None:
    reference, step = paths()[name], 1e-4
    # Away from knots and from the ends of the quintic, where the third derivative jumps.
    times = np.array([0.21, 0.77, 1.3, 2.2, 2.8, 4.1, 4.9, 6.3])
    before, now, after = (reference.sample(times + d) for d in (-step, 0.0, step))
    np.testing.assert_allclose(now[1], (after[0] - before[0]) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(now[2], (after[1] - before[1]) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("name", paths())
def test_many_times_give_the_same_as_one_by_one(name: str) -> None:
    reference = paths()[name]
    times = np.array([4.0, -1.0, 0.5, 7.0])
    poses, twists, accelerations = reference.sample(times)
    assert poses.shape == (4, reference.pose_size)
    assert twists.shape == accelerations.shape == (4, reference.size)
    for i, t in enumerate(times):
        sample = reference(t)
        np.testing.assert_array_equal(sample.pose, poses[i])
        np.testing.assert_array_equal(sample.twist, twists[i])
        np.testing.assert_array_equal(sample.acceleration, accelerations[i])
    assert [part.shape[0] for part in reference.sample([])] == [0, 0, 0]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.1, 3.0), min_size=2, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_waypoints_are_met_with_two_continuous_derivatives(steps: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum([0.3, *steps])
    points, rates = rng.normal(size=(times.size, 3)), rng.normal(size=(2, 3))
    reference = references.waypoints(times, points, rates)
    tiny = 1e-9
    for i, t in enumerate(times):
        np.testing.assert_allclose(reference(t).pose, points[i], atol=1e-9)
        inside = 0 < i < times.size - 1
        left, right = reference(t - tiny), reference(t + tiny)
        np.testing.assert_allclose(left.twist, right.twist, atol=1e-4)
        if inside:
            np.testing.assert_allclose(left.acceleration, right.acceleration, atol=1e-3)
    np.testing.assert_allclose(reference(times[0]).twist, rates[0], atol=1e-9)
    np.testing.assert_allclose(reference(times[-1]).twist, rates[1], atol=1e-9)


def test_waypoints_of_one_number_are_refused() -> None:
    with pytest.raises(ShapeError, match="one row for each of the 2 times"):
        references.waypoints([0.0, 1.0], 3.0)  # type: ignore[arg-type]


def test_waypoints_rest_at_the_ends_by_default() -> None:
    reference = references.waypoints(TIMES, POINTS)
    for t, point in ((-2.0, POINTS[0]), (0.0, POINTS[0]), (5.0, POINTS[-1]), (9.0, POINTS[-1])):
        np.testing.assert_allclose(reference(t).pose, point, atol=1e-12)
        np.testing.assert_allclose(reference(t).twist, 0.0, atol=1e-12)
    assert not reference(9.0).acceleration.any()


def test_waypoints_go_on_at_the_rates_of_their_ends() -> None:
    reference = references.waypoints(TIMES, POINTS, [[0.2, 0.0], [-0.3, 0.1]])
    np.testing.assert_allclose(reference(-2.0).pose, [-0.4, 1.0], atol=1e-12)
    np.testing.assert_allclose(reference(7.0).pose, [-0.6, 0.2], atol=1e-12)
    np.testing.assert_array_equal(reference(7.0).twist, [-0.3, 0.1])


def test_waypoints_accept_numbers_as_points() -> None:
    assert references.waypoints([0.0, 1.0], [2.0, 3.0])(1.0).pose.tolist() == [3.0]


def test_rest_to_rest_rests_before_and_after() -> None:
    reference = references.rest_to_rest([1.0], [3.0], duration=2.0, begin=1.0)
    for t, place in ((0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (10.0, 3.0)):
        assert reference(t).pose[0] == pytest.approx(place, abs=1e-12)
    for t in (1.0, 3.0):
        assert reference(t).twist[0] == reference(t).acceleration[0] == 0.0


def test_circle_keeps_its_radius_plane_and_sense() -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -0.5])
    reference = references.circle(center, 0.5, 4.0, normal=normal)
    poses, twists, _ = reference.sample(np.linspace(0.0, 4.0, 17))
    arms = poses - center
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), 0.5, atol=1e-12)
    np.testing.assert_allclose(arms @ normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(poses[0], poses[-1], atol=1e-12)
    assert (np.cross(arms, twists) @ normal > 0.0).all()


@pytest.mark.parametrize("normal", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]])
def test_circle_has_a_start_for_every_normal(normal: list[float]) -> None:
    start = references.circle([0.0, 0.0, 0.0], 2.0, 4.0, normal=normal)(0.0).pose
    assert np.linalg.norm(start) == pytest.approx(2.0)
    axis = 1 if normal[0] > 0.8 else 0
    assert start[axis] > 1.0


def test_screw_is_the_exponential_of_its_twist() -> None:
    rng = np.random.default_rng(3)
    start, twist = np.eye(4), rng.normal(size=6)
    start[:3, :3] = Rotation.random(rng=rng).as_matrix()
    start[:3, 3] = [1.0, -2.0, 0.5]
    v, w = twist[:3], twist[3:]
    hat = np.zeros((4, 4))
    hat[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    hat[:3, 3] = v
    times = np.linspace(-1.0, 3.0, 9)
    poses, twists, accelerations = references.screw(start, twist, "SE3").sample(times)
    inertial = references.screw(start, twist)
    for i, t in enumerate(times):
        expected = start @ expm(hat * t)
        np.testing.assert_allclose(poses[i, :3], expected[:3, 3], atol=1e-12)
        rotation = Rotation.from_quat(poses[i, 3:]).as_matrix()
        np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-12)
        sample = inertial(t)
        np.testing.assert_array_equal(sample.pose, poses[i])
        np.testing.assert_allclose(sample.twist, [*(rotation @ v), *w], atol=1e-12)
        step = 1e-5
        rate = (inertial(t + step).pose[:3] - inertial(t - step).pose[:3]) / (2 * step)
        np.testing.assert_allclose(sample.twist[:3], rate, atol=1e-8)
        change = (inertial(t + step).twist - inertial(t - step).twist) / (2 * step)
        np.testing.assert_allclose(sample.acceleration, change, atol=1e-8)
    np.testing.assert_array_equal(twists, np.tile(twist, (9, 1)))
    assert not accelerations.any()


def test_planar_turns_rates_into_the_axes_of_the_pose() -> None:
    path = references.polynomial([[0.0, 1.0, 0.3], [0.5, -0.2, 0.7], [0.1, 0.3, -0.2]])
    reference, step = references.planar(path), 1e-5
    for t in (0.0, 0.8, 2.0):
        sample = reference(t)
        angle = sample.pose[2]
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(turn @ sample.twist[:2], path(t).twist[:2], atol=1e-12)
        assert sample.twist[2] == path(t).twist[2]
        change = (reference(t + step).twist - reference(t - step).twist) / (2 * step)
        np.testing.assert_allclose(sample.acceleration, change, atol=1e-8)


def test_stack_keeps_the_order_of_the_outputs() -> None:
    pose = np.eye(4)
    pose[:3, 3] = [7.0, 8.0, 9.0]
    both = references.stack(references.hold([1.0, 2.0]), references.hold(pose))
    assert (both.pose_size, both.size) == (9, 8)
    np.testing.assert_array_equal(both(0.0).pose, [1, 2, 7, 8, 9, 0, 0, 0, 1])


def test_relative_adds_to_the_components_named() -> None:
    point = references.hold([1.0, 2.0, 3.0])
    path = references.polynomial([[0.0, 0.0], [10.0, 20.0]])
    for total in (
        references.relative(point, path, [0, 2]),
        references.relative(path, point, [0, 2]),
    ):
        np.testing.assert_array_equal(total(1.0).pose, [11.0, 2.0, 23.0])
        np.testing.assert_array_equal(total(1.0).twist, [10.0, 0.0, 20.0])


def test_relative_leaves_its_parts_alone() -> None:
    constant = np.ones((1, 1))
    part = _Constant(constant)
    references.relative(part, part)(0.0)
    assert constant[0, 0] == 1.0


class _Constant(Reference):
    pose_size = size = 1

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    def _evaluate(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.value, self.value, self.value


def test_hold_of_a_pose_is_the_same_flat_or_as_a_matrix() -> None:
    rotation = Rotation.from_euler("xyz", [0.3, -0.2, 2.0])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.as_matrix(), [1.0, 2.0, 3.0]
    flat = np.concatenate([[1.0, 2.0, 3.0], rotation.as_quat(canonical=True)])
    matrix_hold, flat_hold = references.hold(pose), references.hold(flat, "R3xSO3")
    np.testing.assert_allclose(matrix_hold(0.0).pose, flat_hold(1.0).pose, atol=1e-12)
    assert (matrix_hold.size, flat_hold.size) == (6, 6)
    assert references.hold([0, 0, 0, 1], "SO3").size == 3
    assert references.hold(4.0).pose_size == 1


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-9, 1e-3, 1.0]))
def test_quaternion_of_a_matrix_also_at_half_turns(seed: int, away: float) -> None:
    rng = np.random.default_rng(seed)
    axis = rng.choice(np.vstack([np.eye(3), rng.normal(size=(3, 3))]))
    rotation = Rotation.from_rotvec((np.pi - away) * axis / np.linalg.norm(axis))
    pose = np.eye(4)
    pose[:3, :3] = rotation.as_matrix()
    flat = ReferenceSample(pose, np.zeros(6), np.zeros(6)).flat_pose
    np.testing.assert_allclose(Rotation.from_quat(flat[3:]).as_matrix(), pose[:3, :3], atol=1e-12)
    assert np.linalg.norm(flat[3:]) == pytest.approx(1.0, abs=1e-14)
    assert flat[6] >= 0.0


def test_sample_is_frozen() -> None:
    given_pose = np.array([1.0, 2.0])
    sample = ReferenceSample(given_pose, [0.0, 0.0], [0.0, 0.0])
    given_pose[0] = 5.0
    assert sample.pose[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        sample.pose[0] = 3.0
    with pytest.raises(AttributeError, match="frozen"):
        sample.pose = given_pose  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del sample.twist


def test_sample_survives_pickling() -> None:
    sample = ReferenceSample([1.0], [2.0], [3.0])
    copy = pickle.loads(pickle.dumps(sample))
    assert (copy.pose, copy.twist, copy.acceleration) == (1.0, 2.0, 3.0)
    assert repr(copy) == repr(sample)


def test_references_survive_pickling() -> None:
    for name, reference in paths().items():
        if name != "function":
            copy = pickle.loads(pickle.dumps(reference))
            np.testing.assert_array_equal(copy(1.7).pose, reference(1.7).pose)


def test_sample_keeps_a_matrix_and_shows_it_flat() -> None:
    pose = np.eye(4)
    pose[:3, 3] = [1.0, 2.0, 3.0]
    sample = ReferenceSample(pose, np.zeros(6), np.zeros(6))
    np.testing.assert_array_equal(sample.pose, pose)
    np.testing.assert_array_equal(sample.flat_pose, [1, 2, 3, 0, 0, 0, 1])
    flat = ReferenceSample([1.0], [0.0], [0.0])
    assert flat.flat_pose is flat.pose


@pytest.mark.parametrize(
    ("arguments", "field", "kind"),
    [
        (([[1.0, 2.0]], [0.0], [0.0]), "pose", ShapeError),
        (("far", [0.0], [0.0]), "pose", ShapeError),
        (([1.0], 0.0, [0.0]), "twist", ShapeError),
        (([1.0], [0.0], [0.0, 0.0]), "acceleration", ShapeError),
        (([1.0], [float("nan")], [0.0]), "twist", NonFiniteError),
        (([1.0], [0.0], [float("inf")]), "acceleration", NonFiniteError),
        ((None, [0.0], [0.0]), "pose", ShapeError),
        ((ca.SX.sym("pose", 4, 4), [0.0], [0.0]), "pose", ShapeError),
        (([1.0], ca.SX.sym("twist", 1, 3), [0.0] * 3), "twist", ShapeError),
        (([1.0], ca.SX.sym("twist", 3), [0.0] * 2), "acceleration", ShapeError),
        (([1.0], [0.0, 0.0], ca.SX.sym("acceleration", 3)), "acceleration", ShapeError),
    ],
)
def test_bad_samples_are_refused(arguments: tuple, field: str, kind: type) -> None:
    with pytest.raises(kind, match=f"reference sample, {field}"):
        ReferenceSample(*arguments)


def test_symbolic_sample_keeps_its_expressions() -> None:
    pose, twist, acceleration = (ca.SX.sym(name, n) for name, n in (("p", 7), ("v", 6), ("a", 6)))
    sample = ReferenceSample(pose, twist, acceleration)
    for part, symbol in (
        (sample.pose, pose),
        (sample.flat_pose, pose),
        (sample.twist, twist),
        (sample.acceleration, acceleration),
    ):
        assert isinstance(part, ca.SX)
        assert ca.is_equal(part, symbol, 1)
    assert not sample.is_matrix
    assert "p_6" in repr(sample)
    pose[0] = 3.0
    assert not sample.pose[0].is_constant()


def test_parts_of_a_sample_may_be_numbers_and_expressions() -> None:
    twist = ca.SX.sym("v", 6)
    sample = ReferenceSample(np.eye(4), twist, np.zeros(6))
    assert sample.is_matrix
    np.testing.assert_array_equal(sample.flat_pose, [0, 0, 0, 0, 0, 0, 1])
    assert isinstance(sample.twist, ca.SX)
    assert isinstance(sample.acceleration, np.ndarray)
    assert not ReferenceSample(np.zeros(7), twist, np.zeros(6)).is_matrix


# Motions of poses: what is demanded is written as products of matrix exponentials, and its
# velocities are differences of these.

X1 = np.array([0.1, -0.05, 0.08, 0.4, 0.3, -0.5])
X2 = np.array([0.03, -0.03, 0.02, -0.2, 0.5, 0.6])
POSE = expm(twist_matrix(np.array([0.3, -0.2, 0.5, 0.8, -0.6, 0.2])))
GOAL = expm(twist_matrix(np.array([-0.4, 0.1, 0.2, -0.3, 1.2, 0.9])))
GROUPS = ["R3xSO3", "SE3", "SO3", "R3"]
CURVED = GROUPS[:3]


def exponential(twist: np.ndarray) -> np.ndarray:
    return expm(twist_matrix(np.asarray(twist, dtype=float)))


def flat(group: str, pose: np.ndarray) -> np.ndarray:
    numbers = np.concatenate([pose[:3, 3], Rotation.from_matrix(pose[:3, :3]).as_quat()])
    return numbers[{"R3": slice(0, 3), "SO3": slice(3, 7)}.get(group, slice(0, 7))]


def velocity(group: str, curve: Curve, t: float, step: float = 2e-3) -> np.ndarray:
    """Left-trivialised velocity of a curve of matrices on a group, by differences."""
    rate = difference_quotient(lambda h: curve(t + h), step)
    twist = twist_of(np.linalg.inv(curve(t)) @ rate)
    parts = {
        "SE3": twist,
        "SO3": twist[3:],
        "R3": rate[:3, 3],
        "R3xSO3": np.array([*rate[:3, 3], *twist[3:]]),
    }
    return parts[group]


def assert_follows(
    reference: Reference, group: str, curve: Curve, times: tuple[float, ...] = (-0.4, 0.3, 1.1, 2.3)
) -> None:
    """Fail unless a reference is the motion that a curve of 4x4 matrices is."""
    reference_for(reference, [Output("it", "body", group)], "here")
    poses, twists, accelerations = reference.sample(times)
    for i, t in enumerate(times):
        wanted = flat(group, curve(t))
        if group != "R3":
            q, other = poses[i, -4:], wanted[-4:]
            assert abs(np.linalg.norm(q) - 1.0) < 1e-12
            wanted[-4:] = other * np.sign(other @ q)
        assert_close(poses[i], wanted, 1e-12, name=f"pose at {t}")
        assert_close(twists[i], velocity(group, curve, t), 1e-9, name=f"twist at {t}")
        change = difference_quotient(lambda h, t=t: velocity(group, curve, t + h), 2e-2)
        assert_close(accelerations[i], change, 1e-6, name=f"acceleration at {t}")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("twist", [X1, X1 * [1, 1, 1, 0, 0, 0], X1 * [0, 0, 0, 8, 8, 8]])
def test_screws_in_the_body_and_in_space(group: str, twist: np.ndarray) -> None:
    def body(t: float) -> np.ndarray:
        return POSE @ exponential(twist * t)

    def spatial(t: float) -> np.ndarray:
        return exponential(twist * t) @ POSE

    assert_follows(references.screw(POSE, twist, group), group, body)
    assert_follows(references.screw(POSE, twist, group, frame="spatial"), group, spatial)


@pytest.mark.parametrize("group", GROUPS)
def test_a_screw_goes_as_its_progress_says(group: str) -> None:
    progress = references.from_function(
        lambda t: ReferenceSample([np.sin(t)], [np.cos(t)], [-np.sin(t)]), 1, 1
    )
    reference = references.screw(POSE, X2, group, progress=progress)
    assert_follows(reference, group, lambda t: POSE @ exponential(X2 * np.sin(t)))


def subgroup(group: str, start: np.ndarray, x: np.ndarray) -> np.ndarray:
    """start exp(x) on a group, as a matrix."""
    if group == "SE3":
        return start @ exponential(x)
    moved = start @ exponential([0, 0, 0, *x[-3:]])
    if group == "R3xSO3":
        moved[:3, 3] += x[:3]
    return moved


@pytest.mark.parametrize("group", CURVED)
def test_polynomials_of_poses(group: str) -> None:
    coefficients = np.array([0.5 * X2, X1, X2, -0.3 * X1[::-1]])
    if group == "SO3":
        coefficients = coefficients[:, 3:]

    def curve(t: float) -> np.ndarray:
        return subgroup(group, POSE, coefficients.T @ t ** np.arange(4.0))

    for start in (POSE, flat(group, POSE)):
        assert_follows(references.polynomial(coefficients, start=start, group=group), group, curve)


@pytest.mark.parametrize("group", CURVED)
def test_rest_to_rest_between_poses(group: str) -> None:
    way = twist_of(logm(np.linalg.inv(POSE) @ GOAL).real)
    if group == "R3xSO3":
        way[:3] = GOAL[:3, 3] - POSE[:3, 3]
    way = way[-3:] if group == "SO3" else way

    def curve(t: float) -> np.ndarray:
        x = np.clip((t - 0.5) / 3.0, 0.0, 1.0)
        return subgroup(group, POSE, way * (10 * x**3 - 15 * x**4 + 6 * x**5))

    reference = references.rest_to_rest(POSE, flat(group, GOAL), 3.0, begin=0.5, group=group)
    assert_follows(reference, group, curve, (0.0, 0.8, 1.7, 3.1, 4.0))
    for t, pose in ((-1.0, POSE), (0.5, POSE), (3.5, GOAL), (9.0, GOAL)):
        wanted = flat(group, pose)
        q = reference(t).pose
        wanted[-4:] *= np.sign(wanted[-4:] @ q[-4:])
        assert_close(q, wanted, 1e-12)
        assert np.abs(reference(t).twist).max() < 1e-12
        assert np.abs(reference(t).acceleration).max() < 1e-12


def test_poses_go_the_shorter_way_round() -> None:
    start, end = Rotation.from_rotvec([0, 0, 3.0]), Rotation.from_rotvec([0, 0, -3.0])
    reference = references.rest_to_rest(start.as_quat(), -end.as_quat(), 2.0, group="SO3")
    middle = Rotation.from_quat(reference(1.0).pose)
    assert (middle.inv() * Rotation.from_rotvec([0, 0, np.pi])).magnitude() < 1e-12


@pytest.mark.parametrize("group", ["R3xSO3", "SE3"])
@pytest.mark.parametrize("turning", [False, True])
def test_circles_with_an_attitude(group: str, turning: bool) -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -0.5])
    attitude = Rotation.from_rotvec([0.4, -1.2, 0.7])
    reference = references.circle(
        center, 0.5, -3.0, normal, 0.3, attitude.as_quat(), turning=turning, group=group
    )
    arm = references.circle(center, 0.5, -3.0, normal, 0.3)(0.0).pose - center

    def curve(t: float) -> np.ndarray:
        turn = Rotation.from_rotvec(normal / np.linalg.norm(normal) * 2 * np.pi * t / -3.0)
        pose = np.eye(4)
        pose[:3, :3] = ((turn if turning else Rotation.identity()) * attitude).as_matrix()
        pose[:3, 3] = center + turn.apply(arm)
        return pose

    assert_follows(reference, group, curve)


def test_circles_of_poses_are_in_r3_x_so3_by_default() -> None:
    reference = references.circle([0, 0, 0], 1.0, 4.0, attitude=[0, 0, 0, 1])
    assert reference.groups == ((7, 6, "R3xSO3"),)


POSES = [POSE, GOAL, GOAL @ exponential(X1), POSE @ exponential(2 * X2), POSE]


@pytest.mark.parametrize("group", CURVED)
@pytest.mark.parametrize("ends", [False, True])
def test_waypoints_of_poses_are_met_twice_differentiably(group: str, ends: bool) -> None:
    size = 3 if group == "SO3" else 6
    rates = np.array([X1, X2])[:, -size:]
    reference = references.waypoints(TIMES, POSES, rates if ends else None, group=group)
    tiny = 1e-7
    for t, pose in zip(TIMES, POSES, strict=True):
        found, wanted = reference(t).pose, flat(group, pose)
        wanted[-4:] *= np.sign(wanted[-4:] @ found[-4:])
        assert_close(found, wanted, 1e-12)
        left, right = reference(t - tiny), reference(t + tiny)
        sign = np.sign(left.pose[-4:] @ right.pose[-4:])
        jump = right.pose - np.append(left.pose[:-4], sign * left.pose[-4:])
        assert np.abs(jump).max() < 1e-5
        assert np.abs(right.twist - left.twist).max() < 1e-5
        assert np.abs(right.acceleration - left.acceleration).max() < 1e-4
    for t, rate in ((TIMES[0], rates[0]), (TIMES[-1], rates[1])):
        assert_close(reference(t).twist, rate * ends, 1e-12)
        assert np.abs(reference(t).acceleration).max() < 1e-12
    outside = {
        -1.5: (POSES[0], -1.5 - TIMES[0], rates[0]),
        7.0: (POSES[-1], 7 - TIMES[-1], rates[1]),
    }
    for t, (pose, elapsed, rate) in outside.items():
        wanted = flat(group, subgroup(group, pose, elapsed * rate * ends))
        found = reference(t).pose
        wanted[-4:] *= np.sign(wanted[-4:] @ found[-4:])
        assert_close(found, wanted, 1e-12)
        assert_close(reference(t).twist, rate * ends, 1e-12)


def as_matrix(group: str, numbers: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    if group != "SO3":
        pose[:3, 3] = numbers[:3]
    if group != "R3":
        pose[:3, :3] = Rotation.from_quat(numbers[-4:]).as_matrix()
    return pose


@pytest.mark.parametrize("group", CURVED)
def test_waypoints_of_poses_give_the_derivatives_of_their_poses(group: str) -> None:
    points = [flat(group, pose) for pose in POSES]
    reference = references.waypoints(TIMES, points, group=group)
    curve = partial(_matrix_at, reference, group)
    assert_follows(reference, group, curve, (-0.5, 0.31, 1.2, 1.9, 2.72, 3.6, 4.5, 6.0))


def _matrix_at(reference: Reference, group: str, t: float) -> np.ndarray:
    return as_matrix(group, reference(t).pose)


@pytest.mark.parametrize("group", CURVED)
def test_waypoints_on_a_screw_stay_on_it(group: str) -> None:
    # Poses of a uniform motion: between them the motion is that one again.
    way = np.array([0.2, -0.1, 0.3, 0.5, 0.9, -0.4])[-3 if group == "SO3" else 0 :]
    times = np.array([0.0, 1.0, 1.7, 3.0])
    poses = [subgroup(group, POSE, way * t) for t in times]
    reference = references.waypoints(times, poses, [way, way], group=group)
    assert_follows(reference, group, lambda t: subgroup(group, POSE, way * t))
    assert np.abs(reference.sample(times + 0.3)[2]).max() < 1e-11


def inner_motions() -> dict[str, tuple[Reference, Curve]]:
    """A reference for each group of motions in space, and the motion as matrices."""

    def place(t: float) -> np.ndarray:
        pose = np.eye(4)
        pose[:3, 3] = [1.0 + 0.2 * t, -0.5 * t**2, 0.3]
        return pose

    path = references.polynomial([[1.0, 0.0, 0.3], [0.2, 0.0, 0.0], [0.0, -0.5, 0.0]])
    turn = references.polynomial([0 * X1[3:], X1[3:], X2[3:]], start=[0, 0, 0, 1], group="SO3")

    def turned(t: float) -> np.ndarray:
        return exponential([0, 0, 0, *(X1[3:] * t + X2[3:] * t**2)])

    return {
        "R3": (path, place),
        "SO3": (turn, turned),
        "R3xSO3": (references.stack(path, turn), lambda t: place(t) @ turned(t)),
        "SE3": (references.screw(POSE, X1, "SE3"), lambda t: POSE @ exponential(X1 * t)),
    }


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("twist", [2 * X2, X2 * [1, 1, 1, 0, 0, 0]])
@pytest.mark.parametrize("start", [0.0, 0.7])
def test_moving_is_the_product_with_the_frame(group: str, twist: np.ndarray, start: float) -> None:
    inner, curve = inner_motions()[group]
    reference = references.moving(inner, twist, start)
    assert_follows(reference, group, lambda t: exponential(twist * (t - start)) @ curve(t))


@pytest.mark.parametrize("group", ["R3", "R3xSO3", "SE3"])
@pytest.mark.parametrize("start", [0.0, 0.7])
def test_drifting_moves_the_place_only(group: str, start: float) -> None:
    inner, curve = inner_motions()[group]
    drift = np.array([0.3, -0.2, 0.1])

    def carried(t: float) -> np.ndarray:
        return exponential([*(drift * (t - start)), 0, 0, 0]) @ curve(t)

    assert_follows(references.drifting(inner, drift, start), group, carried)


def test_drifting_of_coordinates_and_of_what_is_relative_to_them() -> None:
    path = references.drifting(references.hold([1.0, 2.0]), [0.1, -0.2])
    np.testing.assert_allclose(path(3.0).pose, [1.3, 1.4], atol=1e-15)
    np.testing.assert_allclose(path(3.0).twist, [0.1, -0.2])
    total = references.relative(references.hold([1.0, 1.0, 1.0]), path)
    np.testing.assert_allclose(total(3.0).pose, [2.3, 2.4, 1.0], atol=1e-15)
    constant = np.ones((1, 1))
    references.drifting(_Constant(constant), [5.0])(2.0)
    assert constant[0, 0] == 1.0


@pytest.mark.parametrize("group", GROUPS)
def test_motions_compose(group: str) -> None:
    motions = inner_motions()
    parts = [motions[name] for name in ("R3", "SE3", "SO3", "R3xSO3")]

    def product(t: float) -> np.ndarray:
        return np.linalg.multi_dot([curve(t) for _, curve in parts])

    reference = references.composed(*(part for part, _ in parts), group=group)
    assert_follows(reference, group, product)


@pytest.mark.parametrize("group", GROUPS)
def test_a_single_motion_is_read_in_any_group(group: str) -> None:
    for part, curve in inner_motions().values():
        assert_follows(references.composed(part, group=group), group, curve)


def wave(value: Curve, rate: Curve, second: Curve) -> Reference:
    return references.from_function(
        lambda t: ReferenceSample([value(t)], [rate(t)], [second(t)]), 1, 1
    )


def test_reference_of_the_free_flyer() -> None:
    # Check A: gamma = T(mu_lin t / m) gam0 exp(x1 sin .8 t) exp(x2 (1 - cos t)), and the velocity
    # error at the start as it was computed elsewhere.
    robot = robots.free_flyer()
    q, v = robot.neutral(), np.zeros(robot.nv)
    base = exponential([0.1, -0.2, 0.3, 0.1, 0.2, -0.1])
    q[:7] = flat("SE3", base)
    q[7:] = [0.1, 1.0, -1.35, 0.1, 1.0, -1.5]
    v[:6] = [0.02, -0.01, 0.015, 0.03, 0.02, -0.03]
    v[6:] = [0.05, -0.04, 0.03, 0.02, -0.03, 0.04]
    mu_linear = np.array([1.954790558, -1.255431220, 0.406422957])
    x0 = np.array([-0.08, 0.06, 0.07, 0.3, -0.22, 0.25])
    x1, x2 = np.array([0, 0, 0, 0.1, 0.05, -0.08]), np.array([0.03, -0.03, 0.02, 0, 0, 0])
    start = robot.pose(q, "tool") @ exponential(x0)
    drift = mu_linear / 85.5
    sway = wave(
        lambda t: np.sin(0.8 * t),
        lambda t: 0.8 * np.cos(0.8 * t),
        lambda t: -0.64 * np.sin(0.8 * t),
    )
    swell = wave(lambda t: 1 - np.cos(t), np.sin, np.cos)

    def curve(t: float) -> np.ndarray:
        turn = exponential(x1 * np.sin(0.8 * t)) @ exponential(x2 * (1 - np.cos(t)))
        return exponential([*(drift * t), 0, 0, 0]) @ start @ turn

    for group in ("SE3", "R3xSO3"):
        still = references.composed(
            references.screw(start, x1, "SE3", progress=sway),
            references.screw(np.eye(4), x2, "SE3", progress=swell),
            group=group,
        )
        assert_follows(references.drifting(still, drift), group, curve, (0.0, 0.7, 2.9, 5.0))

    reference = references.drifting(
        references.composed(
            references.screw(start, x1, progress=sway),
            references.screw(np.eye(4), x2, progress=swell),
            group="SE3",
        ),
        drift,
    )
    error = robot.twist(q, v, "tool") - conjugation(exponential(x0)) @ reference(0.0).twist
    printed = [0.021961835, -0.009029227, 0.038907410, -0.011256206, -0.127117792, 0.010521825]
    assert_close(error, printed, 2e-9)


def test_motions_at_many_times_are_those_at_each() -> None:
    for reference in (
        references.moving(references.waypoints(TIMES, POSES, group="SE3"), X1),
        references.screw(POSE, X1),
    ):
        times = np.linspace(-1.0, 7.0, 131)
        together = reference.sample(times)
        for i in (0, 63, 64, 65, 127, 128, 130):
            for whole, part in zip(together, reference.sample(times[i : i + 1]), strict=True):
                np.testing.assert_allclose(whole[i], part[0], rtol=0, atol=1e-15)
        assert [len(part) for part in reference.sample([])] == [0, 0, 0]
        copy = pickle.loads(pickle.dumps(reference))
        np.testing.assert_array_equal(copy(1.7).acceleration, reference(1.7).acceleration)


def rest(pose: list[float], size: int) -> Reference:
    sample = ReferenceSample(pose, np.zeros(size), np.zeros(size))
    return references.from_function(lambda t: sample, len(pose), size)


POINT, SPOT = references.hold([1.0, 2.0, 3.0]), references.hold([1.0, 2.0])
HEIGHT = references.hold([3.0], "R")
TURNED = references.hold([0, 0, 0, 1], "SO3")
HEADED = references.planar(POINT)
BODY_SCREW = references.screw(np.eye(4), [0.1, 0, 0, 0, 0, 0.3], "SE3")
INERTIAL_SCREW = references.screw(np.eye(4), [0.1, 0, 0, 0, 0, 0.3])


def test_groups_of_the_parts() -> None:
    expected = {
        POINT: [(3, 3, None)],
        TURNED: [(4, 3, "SO3")],
        HEADED: [(3, 3, "SE2")],
        BODY_SCREW: [(7, 6, "SE3")],
        INERTIAL_SCREW: [(7, 6, "R3xSO3")],
        references.hold(np.eye(4)): [(7, 6, None)],
        references.hold(np.eye(4), "SE3"): [(7, 6, "SE3")],
        references.stack(SPOT, references.stack(HEADED, TURNED)): [
            (2, 2, None),
            (3, 3, "SE2"),
            (4, 3, "SO3"),
        ],
        references.relative(HEIGHT, SPOT, [0]): [(2, 2, None)],
        references.relative(SPOT, references.stack(SPOT, HEIGHT)): [(2, 2, None), (1, 1, "R")],
        references.relative(references.hold([1, 2], "R2"), SPOT): [(2, 2, "R2")],
        references.relative(SPOT, references.hold([1, 2], "R2")): [(2, 2, None)],
        references.waypoints(TIMES, POINTS): [(2, 2, "R2")],
        rest([0.0] * 7, 6): [(7, 6, None)],
        _Constant(np.ones((1, 1))): [(1, 1, None)],
    }
    for reference, parts in expected.items():
        assert list(reference.groups) == parts
        assert sum(part[0] for part in parts) == reference.pose_size
        assert sum(part[1] for part in parts) == reference.size


def outputs(*groups: str) -> list[Output]:
    return [Output(f"output{i}", "body", group) for i, group in enumerate(groups)]


FIT = [
    (POINT, ["R3"]),
    (POINT, ["R2", "R"]),
    (POINT, ["SE2"]),
    (HEADED, ["SE2"]),
    (references.hold([0.3], "SO2"), ["SO2"]),
    (references.hold([0.3]), ["SO2"]),
    (references.stack(SPOT, HEIGHT), ["R3"]),
    (references.stack(SPOT, HEIGHT), ["R2", "R"]),
    (references.stack(POINT, TURNED), ["R3xSO3"]),
    (references.stack(POINT, TURNED), ["R3", "SO3"]),
    (references.hold(np.eye(4)), ["SE3"]),
    (references.hold(np.eye(4)), ["R3xSO3"]),
    (references.hold(np.eye(4), "SE3"), ["SE3"]),
    (BODY_SCREW, ["SE3"]),
    (INERTIAL_SCREW, ["R3xSO3"]),
    (INERTIAL_SCREW, ["R3", "SO3"]),
    (rest([0.0] * 10, 9), ["R3", "SE3"]),
    (references.stack(SPOT, BODY_SCREW, HEADED, HEIGHT), ["R2", "SE3", "SE2", "R"]),
]


@pytest.mark.parametrize(("reference", "groups"), FIT)
def test_references_that_fit(reference: Reference, groups: list[str]) -> None:
    reference_for(reference, outputs(*groups), "servo")
    with pytest.raises(ShapeError, match="one reference for each output"):
        reference_for(reference, outputs(*groups, "R"), "servo")


MISFIT = [
    (
        BODY_SCREW,
        ["R3xSO3"],
        "output0",
        r"in R3xSO3 \(7 pose, 6 twist .*got one in SE3 \(7 pose, 6",
    ),
    (INERTIAL_SCREW, ["SE3"], "output0", r"in SE3 .*got one in R3xSO3"),
    (references.hold(np.eye(4), "SE3"), ["R3xSO3"], "output0", "got one in SE3"),
    (references.hold([0.3], "SO2"), ["R"], "output0", "in R .*got one in SO2"),
    (HEADED, ["R3"], "output0", "in R3 .*got one in SE2"),
    (HEADED, ["R2", "SO2"], "output0", "got one in SE2"),
    (HEIGHT, ["SO2"], "output0", "in SO2 .*got one in R "),
    (references.stack(SPOT, HEIGHT), ["SE2"], "output0", "in SE2"),
    (references.stack(HEADED, SPOT), ["R2", "SE2"], "output0", "in R2 .*got one in SE2"),
    (references.stack(SPOT, BODY_SCREW), ["R2", "R3xSO3"], "output1", "in R3xSO3 .*got one in SE3"),
    (references.stack(POINT, TURNED), ["SO3", "R3"], "output0", "in SO3 .*got one in any group"),
    (references.stack(TURNED, POINT), ["R3xSO3"], "output0", "got one in SO3"),
    (references.stack(POINT, rest([0, 0, 0, 1], 3)), ["SE3"], "output0", "in SE3"),
    (references.stack(INERTIAL_SCREW, POINT), ["R3", "SE2", "SO3"], "output1", "in SE2"),
]


@pytest.mark.parametrize(("reference", "groups", "name", "text"), MISFIT)
def test_references_for_other_groups_are_refused(
    reference: Reference, groups: list[str], name: str, text: str
) -> None:
    with pytest.raises(OutputError, match=f"^servo, reference of output `{name}`.*{text}"):
        reference_for(reference, outputs(*groups), "servo")


@pytest.mark.parametrize(
    ("reference", "groups"),
    [
        (SPOT, ["R3"]),
        (POINT, ["R3", "R"]),
        (POINT, []),
        (TURNED, ["R3"]),
        (references.hold([0.0] * 7), ["SE3"]),
    ],
)
def test_references_of_another_size_are_refused(reference: Reference, groups: list[str]) -> None:
    pose_size, size = reference.pose_size, reference.size
    with pytest.raises(
        ShapeError, match=rf"^servo, reference: .*, got {pose_size} and {size}"
    ) as e:
        reference_for(reference, outputs(*groups), "servo")
    for output in outputs(*groups):
        assert f"`{output.name}` {output.group} ({output.pose_size} pose, {output.dim}" in str(
            e.value
        )


def test_outputs_of_a_group_of_ones_own() -> None:
    own = SimpleNamespace(name="grip", group="S2", pose_size=3, dim=2)
    reference_for(rest([0.0] * 3, 2), [own], "servo")
    with pytest.raises(OutputError, match="in S2"):
        reference_for(references.stack(rest([0.0] * 2, 1), references.hold([1.0])), [own], "servo")


def test_plain_functions_become_references() -> None:
    def wave(t: float) -> ReferenceSample:
        return ReferenceSample([np.sin(t)], [np.cos(t)], [-np.sin(t)])

    assert reference_for(POINT, outputs("R3"), "servo") is POINT
    reference = reference_for(wave, outputs("SO2"), "servo")
    assert reference.groups == ((1, 1, None),)
    np.testing.assert_allclose(reference(0.3).twist, np.cos(0.3), rtol=1e-15)
    with pytest.raises(ShapeError, match="t = 0 s: expected 2 pose"):
        reference_for(wave, outputs("R2"), "servo")(0.0)


@pytest.mark.parametrize(
    "value", [None, 3.0, [1.0], ReferenceSample([1.0], [0.0], [0.0]), ReferenceSample]
)
def test_what_is_no_reference_is_refused(value: object) -> None:
    with pytest.raises(ConcurError, match=r"^reference: expected a Reference or a function"):
        reference_for(value, outputs("R"), "servo")  # type: ignore[arg-type]


NAN = float("nan")
BAD = {
    "hold NaN": (lambda: references.hold([NAN]), NonFiniteError, "hold, point"),
    "hold table": (lambda: references.hold([[1.0], [2.0]]), ShapeError, "hold, point"),
    "hold empty": (lambda: references.hold([]), ShapeError, "hold, point"),
    "hold group": (lambda: references.hold([1.0], "R9"), UnknownNameError, "R2"),
    "hold near group": (
        lambda: references.hold(np.eye(4), "R3xS03"),
        UnknownNameError,
        "Did you mean 'R3xSO3'",
    ),
    "hold symbol": (lambda: references.hold(ca.SX.sym("x", 2)), ShapeError, "Give lists"),
    "hold size": (lambda: references.hold([1.0], "R2"), ShapeError, "2 numbers"),
    "hold quaternion": (
        lambda: references.hold([1.0, 0, 0, 1.0], "SO3"),
        ShapeError,
        "unit quaternion",
    ),
    "hold matrix": (lambda: references.hold(np.ones((4, 4))), ShapeError, "rotation"),
    "polynomial flat": (lambda: references.polynomial([1.0, 2.0]), ShapeError, "table"),
    "polynomial ragged": (
        lambda: references.polynomial([[1.0], [1.0, 2.0]]),
        ShapeError,
        "one length",
    ),
    "travel shapes": (lambda: references.rest_to_rest([1.0], [1.0, 2.0], 1.0), ShapeError, "end"),
    "travel time": (
        lambda: references.rest_to_rest([1.0], [2.0], 0.0),
        ConcurError,
        "duration: expected a positive",
    ),
    "travel begin": (
        lambda: references.rest_to_rest([1.0], [2.0], 1.0, NAN),
        NonFiniteError,
        "begin",
    ),
    "circle center": (lambda: references.circle([0.0], 1.0, 1.0), ShapeError, "two or three"),
    "circle radius": (
        lambda: references.circle([0.0, 0.0], 0.0, 1.0),
        ConcurError,
        "radius: expected a positive",
    ),
    "circle negative": (lambda: references.circle([0, 0], -1.0, 1.0), ConcurError, "radius"),
    "circle period": (lambda: references.circle([0, 0], 1.0, 0.0), ConcurError, "period"),
    "circle normal": (
        lambda: references.circle([0, 0, 0], 1.0, 1.0, [0, 0, 0]),
        ShapeError,
        "normal",
    ),
    "circle tilted plane": (
        lambda: references.circle([0, 0], 1.0, 1.0, [1, 0, 1]),
        ShapeError,
        "normal",
    ),
    "circle list radius": (lambda: references.circle([0, 0], [1.0], 1.0), ShapeError, "one number"),
    "waypoints one": (lambda: references.waypoints([0.0], [[1.0]]), ShapeError, "at least two"),
    "waypoints order": (
        lambda: references.waypoints([0, 2, 1], [[0.0]] * 3),
        ConcurError,
        "entry 2: expected a time after 2 s",
    ),
    "waypoints equal": (lambda: references.waypoints([0, 1, 1], [[0]] * 3), ConcurError, "entry 2"),
    "waypoints close": (
        lambda: references.waypoints([0, 1, 1 + 0.9e-6], [[0.0]] * 3),
        ConcurError,
        "by at least 1e-06 s",
    ),
    "waypoints count": (lambda: references.waypoints([0, 1], [[0.0]] * 3), ShapeError, "points"),
    "waypoints rates": (
        lambda: references.waypoints([0, 1], [[0.0]] * 2, [[0.0, 0.0]]),
        ShapeError,
        "rates",
    ),
    "waypoints NaN": (lambda: references.waypoints([0, NAN], [[0]] * 2), NonFiniteError, "times"),
    "screw pose": (lambda: references.screw(np.zeros((4, 4)), np.zeros(6)), ShapeError, "rotation"),
    "screw shape": (lambda: references.screw(np.eye(3), np.zeros(6)), ShapeError, "start_pose"),
    "screw twist": (lambda: references.screw(np.eye(4), np.zeros(3)), ShapeError, "twist"),
    "screw group": (
        lambda: references.screw(np.eye(4), np.zeros(6), "SE2"),
        UnknownNameError,
        "R3xSO3",
    ),
    "screw frame": (
        lambda: references.screw(np.eye(4), np.zeros(6), frame="spacial"),
        UnknownNameError,
        "Did you mean 'spatial'",
    ),
    "screw progress": (
        lambda: references.screw(np.eye(4), np.zeros(6), progress=references.hold([0.0, 1.0])),
        ConcurError,
        "progress: expected a reference in R, got one with 2",
    ),
    "screw progress number": (
        lambda: references.screw(np.eye(4), np.zeros(6), progress=0.5),
        ConcurError,
        "screw, progress: expected references",
    ),
    "pose polynomial start": (
        lambda: references.polynomial([[0.0] * 3], start=[0, 0, 0, 1]),
        ConcurError,
        "`start` alone",
    ),
    "pose polynomial group": (
        lambda: references.polynomial([[0.0] * 3], group="SO3"),
        ConcurError,
        "`group` alone",
    ),
    "pose polynomial in R3": (
        lambda: references.polynomial([[0.0] * 3], start=[0, 0, 0], group="R3"),
        UnknownNameError,
        "SO3",
    ),
    "pose polynomial rows": (
        lambda: references.polynomial([[0.0] * 6], start=[0, 0, 0, 1], group="SO3"),
        ShapeError,
        "rows of 3 numbers for an output in SO3, got rows of 6",
    ),
    "pose travel quaternion": (
        lambda: references.rest_to_rest([0, 0, 0, 2], [0, 0, 0, 1], 1.0, group="SO3"),
        ShapeError,
        "rest_to_rest, start: expected a unit quaternion",
    ),
    "pose travel size": (
        lambda: references.rest_to_rest(np.eye(4), [0, 0, 0, 1], 1.0, group="SE3"),
        ShapeError,
        r"rest_to_rest, end: expected 7 numbers .* got an array of shape \(4,\)",
    ),
    "pose travel time": (
        lambda: references.rest_to_rest(np.eye(4), np.eye(4), 0.0, group="SE3"),
        ConcurError,
        "duration: expected a positive",
    ),
    "pose circle in the plane": (
        lambda: references.circle([0.0, 0.0], 1.0, 1.0, attitude=[0, 0, 0, 1]),
        ShapeError,
        "three numbers for a pose",
    ),
    "pose circle attitude": (
        lambda: references.circle([0, 0, 0], 1.0, 1.0, attitude=[0, 0, 0]),
        ShapeError,
        "circle, attitude: expected 4 numbers",
    ),
    "pose circle turning": (
        lambda: references.circle([0, 0, 0], 1.0, 1.0, turning=True),
        ConcurError,
        "circle, attitude: expected an orientation",
    ),
    "pose circle group": (
        lambda: references.circle([0, 0, 0], 1.0, 1.0, attitude=[0, 0, 0, 1], group="SO3"),
        UnknownNameError,
        "R3xSO3",
    ),
    "pose waypoints half a turn": (
        lambda: references.waypoints([0, 1], [[0, 0, 0, 1], [1, 0, 0, 0]], group="SO3"),
        ConcurError,
        "entry 1: expected an orientation less than half a turn",
    ),
    "pose waypoints entry": (
        lambda: references.waypoints([0, 1], [[0, 0, 0, 1], [1, 1, 0, 0]], group="SO3"),
        ShapeError,
        "entry 1: expected a unit quaternion",
    ),
    "pose waypoints rates": (
        lambda: references.waypoints(
            [0, 1], [[0, 0, 0, 1], [0.6, 0, 0, 0.8]], np.zeros((2, 4)), "SO3"
        ),
        ShapeError,
        r"rates: expected shape \(2, 3\)",
    ),
    "pose waypoints matrices": (
        lambda: references.waypoints([0, 1], [np.eye(4), np.eye(4)]),
        ShapeError,
        "points",
    ),
    "drifting velocity": (
        lambda: references.drifting(references.hold([1.0, 2.0, 3.0]), [1.0, 2.0]),
        ShapeError,
        r"drifting, velocity: expected shape \(3,\)",
    ),
    "drifting pose velocity": (
        lambda: references.drifting(references.hold(np.eye(4), "SE3"), [0.0] * 6),
        ShapeError,
        r"drifting, velocity: expected shape \(3,\)",
    ),
    "drifting NaN": (
        lambda: references.drifting(references.hold([1.0]), [NAN]),
        NonFiniteError,
        "velocity",
    ),
    "drifting start": (
        lambda: references.drifting(references.hold([1.0]), [1.0], [0.0]),
        ShapeError,
        "start: expected one number",
    ),
    "drifting orientation": (
        lambda: references.drifting(references.hold([0, 0, 0, 1], "SO3"), [1, 2, 3]),
        ConcurError,
        "An orientation does not drift",
    ),
    "drifting heading": (
        lambda: references.drifting(references.hold([0.3], "SO2"), [1.0]),
        ConcurError,
        "got one in SO2",
    ),
    "drifting planar": (
        lambda: references.drifting(references.planar(references.hold([1, 2, 3])), [1, 2]),
        ConcurError,
        "then use `planar`",
    ),
    "drifting any group": (
        lambda: references.drifting(references.hold(np.eye(4)), [1, 2, 3]),
        ConcurError,
        "Name its group",
    ),
    "drifting several": (
        lambda: references.drifting(
            references.stack(references.hold(np.eye(4), "SE3"), references.hold([1.0])), [1, 2, 3]
        ),
        ConcurError,
        "the reference of one output",
    ),
    "drifting function": (
        lambda: references.drifting(lambda t: t, [1, 2, 3]),
        ConcurError,
        "from_function",
    ),
    "moving twist": (
        lambda: references.moving(references.hold([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ShapeError,
        r"moving, twist: expected shape \(6,\)",
    ),
    "moving plane": (
        lambda: references.moving(references.hold([1.0, 2.0]), np.zeros(6)),
        ConcurError,
        "motions in space: references in R3xSO3, SE3, SO3, R3, got one in R2",
    ),
    "moving start": (
        lambda: references.moving(references.hold([1.0, 2.0, 3.0]), np.zeros(6), NAN),
        NonFiniteError,
        "moving, start",
    ),
    "composed group": (
        lambda: references.composed(references.hold([1, 2, 3]), group="SE2"),
        UnknownNameError,
        "R3xSO3",
    ),
    "composed plane": (
        lambda: references.composed(references.hold([1, 2, 3]), references.hold([1.0])),
        ConcurError,
        "motions in space",
    ),
    "composed number": (
        lambda: references.composed(references.hold([1, 2, 3]), 3.0),
        ConcurError,
        "from_function",
    ),
    "planar size": (lambda: references.planar(references.hold([1.0])), ShapeError, "theta"),
    "stack none": (lambda: references.stack(), ConcurError, "at least one"),
    "stack function": (lambda: references.stack(lambda t: t), ConcurError, "from_function"),
    "relative pose": (
        lambda: references.relative(references.hold(np.eye(4)), references.hold([1.0])),
        ShapeError,
        "R\\^n",
    ),
    "relative planar": (
        lambda: references.relative(
            references.planar(references.hold([1, 2, 3])), references.hold([1.0])
        ),
        ShapeError,
        "R\\^n",
    ),
    "relative components": (
        lambda: references.relative(references.hold([1.0]), references.hold([1, 2]), [2]),
        ShapeError,
        "from 0 to 1",
    ),
    "relative doubles": (
        lambda: references.relative(references.hold([1, 2]), references.hold([1, 2, 3]), [1, 1]),
        ShapeError,
        "different",
    ),
    "function size": (
        lambda: references.from_function(lambda t: None, 1, 0),
        ConcurError,
        "from_function, size: expected a positive whole number",
    ),
    "function symbolic": (
        lambda: references.from_function(
            lambda t: ReferenceSample([t], [1.0], ca.SX.sym("a")), 1, 1
        )(0.5),
        ConcurError,
        "t = 0.5 s: expected a sample of numbers",
    ),
    "function": (lambda: references.from_function(3, 1, 1), ConcurError, "from time"),
    "function result": (
        lambda: references.from_function(lambda t: 3.0, 1, 1)(0.5),
        ConcurError,
        "t = 0.5 s",
    ),
    "function sizes": (
        lambda: references.from_function(lambda t: ReferenceSample([1], [1], [1]), 2, 2)(0.5),
        ShapeError,
        "2 pose",
    ),
    "time NaN": (lambda: references.hold([1.0])(NAN), NonFiniteError, "times"),
    "times table": (lambda: references.hold([1.0]).sample([[1.0]]), ShapeError, "times"),
}


def test_waypoints_may_be_as_close_as_the_shortest_time() -> None:
    twists = references.waypoints([0.0, 1e-6, 1.0], [[0.0], [1e-6], [1.0]]).sample([0.0, 1e-6])[1]
    assert np.isfinite(twists).all()


def test_a_polynomial_that_leaves_the_numbers_is_refused_where_it_does() -> None:
    path = references.polynomial(np.ones((2000, 1)))
    assert np.isfinite(path(1.0).pose).all()
    with pytest.raises(NonFiniteError, match="reference sample"):
        path(20.0)  # and no warning of NumPy's


LEANING = np.array([0.5, 0.5, 0.5, 0.5])
WITH_QUATERNIONS: dict[str, Callable[[np.ndarray], references.Reference]] = {
    "hold": lambda x: references.hold(x, "SO3"),
    "hold pose": lambda x: references.hold([1.0, 2.0, 3.0, *x], "SE3"),
    "polynomial": lambda x: references.polynomial([[0.0] * 3], start=x, group="SO3"),
    "rest to rest": lambda x: references.rest_to_rest(x, [0, 0, 0, 1], 1.0, group="SO3"),
    "waypoints": lambda x: references.waypoints([0, 1], [x, [0, 0, 0, 1]], group="SO3"),
    "circle": lambda x: references.circle([0, 0, 0], 1.0, 1.0, attitude=x),
}


@pytest.mark.parametrize("norm", [0.9991, 1.0009])
@pytest.mark.parametrize("name", WITH_QUATERNIONS)
def test_quaternions_of_references_are_normalised_by_the_rule_of_all_calls(
    name: str, norm: float
) -> None:
    make = WITH_QUATERNIONS[name]
    np.testing.assert_allclose(make(norm * LEANING)(0.0).pose, make(LEANING)(0.0).pose, atol=1e-15)


@pytest.mark.parametrize("norm", [0.9989, 1.0011, 0.0])
@pytest.mark.parametrize("name", WITH_QUATERNIONS)
def test_other_quaternions_of_references_are_refused(name: str, norm: float) -> None:
    with pytest.raises(ShapeError, match="unit quaternion"):
        WITH_QUATERNIONS[name](norm * LEANING)


@pytest.mark.parametrize("name", BAD)
def test_bad_references_are_refused(name: str) -> None:
    make, kind, text = BAD[name]
    with pytest.raises(kind, match=text) as caught:
        make()
    assert str(caught.value).startswith("reference ")
