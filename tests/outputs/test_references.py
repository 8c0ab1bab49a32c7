"""References: motions against matrix exponentials and SciPy, graphs, groups, and bad input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError, NonFiniteError, OutputError, ShapeError, UnknownNameError
from concur.outputs import Output, ReferenceSample, reference_for
from concur.outputs import references as ref
from concur.outputs.references import Loop, Reference
from tests.groups.oracles import twist_matrix, twist_of
from tests.oracles import assert_close, difference_quotient

Curve = Callable[[float], np.ndarray]

TIMES = [0.0, 1.0, 2.5, 3.0, 5.0]
POINTS = [[0.0, 1.0], [0.5, -1.0], [2.0, 0.0], [1.0, 0.3], [0.0, 0.0]]
RATES = [[0.2, 0.0], [-0.3, 0.1]]

X1 = np.array([0.1, -0.05, 0.08, 0.4, 0.3, -0.5])
X2 = np.array([0.03, -0.03, 0.02, -0.2, 0.5, 0.6])
POSE = expm(twist_matrix(np.array([0.3, -0.2, 0.5, 0.8, -0.6, 0.2])))
GOAL = expm(twist_matrix(np.array([-0.4, 0.1, 0.2, -0.3, 1.2, 0.9])))
GROUPS = ["R3xSO3", "SE3", "SO3", "R3"]
CURVED = GROUPS[:3]


def wave(value: Curve, rate: Curve, second: Curve) -> Reference:
    return ref.from_function(lambda t: ReferenceSample([value(t)], [rate(t)], [second(t)]), 1, 1)


SINE = wave(np.sin, np.cos, lambda t: -np.sin(t))


def motions() -> dict[str, Reference]:
    """A reference of each kind."""
    path = ref.waypoints(TIMES, POINTS, RATES)
    poses = ref.waypoints(TIMES, POSES, np.array([X1, X2]), group="SE3")
    turn = Rotation.from_rotvec([0.4, -1.2, 0.7]).as_quat()
    return {
        "hold": ref.hold(POSE, "SE3"),
        "polynomial": ref.polynomial([X1, X2], start=POSE, group="R3xSO3"),
        "line": ref.polynomial([[1.0], [2.0]]),
        "rest_to_rest": ref.rest_to_rest(POSE, GOAL, 3.0, 0.5, group="SE3"),
        "circle": ref.circle([1, 2, 3], 0.5, 7.0, attitude=turn, turning=True),
        "waypoints": path,
        "poses": poses,
        "planar": ref.planar(ref.stack(path, ref.polynomial([[0.1], [0.2]]))),
        "moving": ref.moving(poses, X1, start=0.7),
        "drifting": ref.drifting(poses, [0.1, 0.2, 0.3], start=-0.3),
        "composed": ref.composed(poses, poses, group="R3xSO3"),
        "relative": ref.relative(ref.hold([0.1, 0.2, 0.3]), path),
        "screw": ref.screw(POSE, X2, progress=ref.waypoints(TIMES, TIMES)),
        "loop": Loop([0.3, -0.2], [[0.1, 0.2]], [[0.3, 0.1]], 3.0, 2),
        "function": SINE,
    }


# --- values -----------------------------------------------------------------------------------


def test_many_times_a_copy_and_the_graph_give_the_same() -> None:
    knots = np.array(TIMES)
    beside = [np.nextafter(knots, 9.0), np.nextafter(knots, -9.0), knots + 0.7, knots - 0.3]
    times = np.concatenate([knots, *beside, [-1e4, 1e4, 0.123]])
    for name, reference in motions().items():
        together, graph = reference.sample(times), reference.graph()
        assert [len(part) for part in reference.sample([])] == [0, 0, 0]
        copy = reference if name == "function" else pickle.loads(pickle.dumps(reference))
        for i, t in enumerate(times):
            one = copy(t)
            for part, wanted in zip((one.pose, one.twist, one.acceleration), together, strict=True):
                np.testing.assert_array_equal(part, wanted[i])
            if graph is not None:
                assert (graph.name_in(), graph.name_out()) == (
                    ["t"],
                    ["pose", "twist", "acceleration"],
                )
                for part, wanted in zip(graph(t), together, strict=True):
                    assert_close(np.array(part)[:, 0], wanted[i], 1e-12, name=f"{name}, {t}")
        assert (graph is None) == (name == "function")


def test_blocks_of_many_times_give_the_same() -> None:
    reference, times = motions()["poses"], np.linspace(-1.0, 7.0, 20_003)
    together = reference.sample(times)
    for i in (0, 9_999, 10_000, 20_000, 20_002):
        for part, wanted in zip(reference.sample(times[i : i + 1]), together, strict=True):
            np.testing.assert_array_equal(part[0], wanted[i])


def test_custom_functions_have_no_graph_and_neither_has_what_contains_them() -> None:
    three = ref.from_function(
        lambda t: ReferenceSample([np.sin(t)] * 3, [np.cos(t)] * 3, [-np.sin(t)] * 3), 3, 3
    )
    later = ref.moving(three, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], start=1.0)
    whole = ref.stack(later, motions()["waypoints"])
    assert all(reference.graph() is None for reference in (three, later, whole))
    assert all(reference.pieces() is None for reference in (three, later, whole))
    # The function is called at the time of its frame.
    np.testing.assert_allclose(whole(1.0).pose[:3], np.sin([1.0] * 3))
    np.testing.assert_allclose(whole.sample([2.0, 3.0])[0][:, 1], np.sin([2.0, 3.0]))


def test_a_graph_with_a_thousand_segments_is_as_short_as_one_with_two() -> None:
    knots = np.linspace(0.0, 10.0, 1001)
    points = np.random.default_rng(1).normal(size=(1001, 3)).cumsum(axis=0)
    long, short = ref.waypoints(knots, points).graph(), motions()["waypoints"].graph()
    assert long.n_instructions() == short.n_instructions()  # type: ignore[union-attr]


def test_waypoints_are_the_spline_of_scipy_and_go_on_at_the_rates_of_their_ends() -> None:
    for rates in (RATES, np.zeros((2, 2))):
        given = rates if np.any(rates) else None
        reference = ref.waypoints(TIMES, POINTS, given)
        spline = CubicSpline(TIMES, POINTS, bc_type=((1, rates[0]), (1, rates[1])))
        inside = np.array([*TIMES, 0.3, 1.7, 2.9, 4.99])
        for order, part in enumerate(reference.sample(inside)):
            np.testing.assert_allclose(part, spline(inside, order), atol=1e-12)
        outside = reference.sample([-2.0, 7.0])
        ends = [POINTS[0] - 2.0 * np.array(rates[0]), POINTS[-1] + 2.0 * np.array(rates[1])]
        np.testing.assert_allclose(outside[0], ends, atol=1e-12)
        np.testing.assert_allclose(outside[1], rates, atol=1e-12)
        assert not outside[2].any()
    assert ref.waypoints([0.0, 1.0], [2.0, 3.0])(1.0).pose.tolist() == [3.0]
    near = ref.waypoints([0.0, 1e-6, 1.0], [[0.0], [1e-6], [1.0]])
    assert np.isfinite(near.sample([0.0, 1e-6])[1]).all()


def test_rest_to_rest_rests_before_and_after() -> None:
    reference = ref.rest_to_rest([1.0], [3.0], duration=2.0, begin=1.0)
    for t, place in ((0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (10.0, 3.0)):
        assert reference(t).pose[0] == pytest.approx(place, abs=1e-12)
    for t in (1.0, 3.0):
        assert reference(t).twist[0] == reference(t).acceleration[0] == 0.0


def test_circles_keep_radius_plane_and_sense() -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -0.5])
    reference = ref.circle(center, 0.5, 4.0, normal=normal)
    poses, twists, _ = reference.sample(np.linspace(0.0, 4.0, 17))
    arms = poses - center
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), 0.5, atol=1e-12)
    np.testing.assert_allclose(arms @ normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(poses[0], poses[-1], atol=1e-12)
    assert (np.cross(arms, twists) @ normal > 0.0).all()
    # The angle counts from the x axis, or the y axis where the normal is near x.
    for up, axis in (([1.0, 0.0, 0.0], 1), ([0.0, 0.0, 1.0], 0), ([0.9, 0.1, 0.0], 1)):
        start = ref.circle([0.0, 0.0, 0.0], 2.0, 4.0, normal=up)(0.0).pose
        assert np.linalg.norm(start) == pytest.approx(2.0)
        assert start[axis] > 1.0


def test_a_polynomial_that_leaves_the_numbers_is_refused_where_it_does() -> None:
    path = ref.polynomial(np.ones((300, 1)))
    assert np.isfinite(path(1.0).pose).all()
    with pytest.raises(NonFiniteError, match="reference sample"):
        path(20.0)  # and no warning of NumPy's


def test_relative_adds_to_the_components_named() -> None:
    point, path = ref.hold([1.0, 2.0, 3.0]), ref.polynomial([[0.0, 0.0], [10.0, 20.0]])
    for total in (ref.relative(point, path, [0, 2]), ref.relative(path, point, [0, 2])):
        np.testing.assert_array_equal(total(1.0).pose, [11.0, 2.0, 23.0])
        np.testing.assert_array_equal(total(1.0).twist, [10.0, 0.0, 20.0])
    drifting = ref.drifting(ref.hold([1.0, 2.0]), [0.1, -0.2])
    np.testing.assert_allclose(drifting(3.0).pose, [1.3, 1.4], atol=1e-15)
    np.testing.assert_allclose(drifting(3.0).twist, [0.1, -0.2])


def test_loops_end_where_they_begin() -> None:
    cosine, sine = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2))
    for rest in (True, False):
        loop = Loop([0.3, -0.2], cosine, sine, duration=3.0, cycles=2, rest=rest)
        t, h = np.array([0.4, 1.1, 2.6]), 1e-5
        before, at, after = (loop.sample(t + k * h) for k in (-1, 0, 1))
        for part in (0, 1):
            slope = (after[part] - before[part]) / (2 * h)
            np.testing.assert_allclose(at[part + 1], slope, rtol=1e-6, atol=1e-6)
        ends = loop.sample([-1.0, 0.0, 1.5, 3.0, 4.0])  # half the time is one cycle
        np.testing.assert_allclose(ends[0], [[0.3, -0.2]] * 5, atol=1e-12)
        assert np.abs(ends[1][[0, 4]]).max() < 1e-12
        assert (np.abs(ends[1][[1, 3]]).max() < 1e-12) == rest


@pytest.mark.parametrize("count", [3, 4, 7, 8])
def test_loops_through_points(count: int) -> None:
    points = np.random.default_rng(count).uniform(-1, 1, (count, 2))
    loop = Loop.through(points)
    np.testing.assert_allclose(loop.places(np.arange(count) / count), points, atol=1e-13)
    # The area by the shoelace formula on many points of the curve.
    x, y = loop.places(np.arange(4000) / 4000).T
    area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2
    assert loop.areas[0, 1] == pytest.approx(area, abs=1e-4)
    np.testing.assert_allclose(loop.reversed().areas, -loop.areas)


# --- samples ----------------------------------------------------------------------------------


def test_holds_and_samples_of_a_pose_are_the_same_flat_or_as_a_matrix() -> None:
    flat_one = flat("SE3", POSE)
    matrix_hold, flat_hold = ref.hold(POSE), ref.hold(flat_one, "R3xSO3")
    np.testing.assert_allclose(
        matrix_hold(0.0).pose * np.sign(flat_one[6]), flat_hold(1.0).pose, atol=1e-12
    )
    assert (matrix_hold.size, flat_hold.size) == (6, 6)
    assert ref.hold([0, 0, 0, 1], "SO3").size == 3
    assert ref.hold(4.0).pose_size == 1
    sample = ReferenceSample(POSE, ca.SX.sym("v", 6), np.zeros(6))
    np.testing.assert_array_equal(sample.pose, POSE)
    np.testing.assert_allclose(sample.flat_pose, matrix_hold(0.0).pose, atol=1e-15)
    assert sample.is_matrix
    assert isinstance(sample.twist, ca.SX)
    plain = ReferenceSample([1.0], [0.0], [0.0])
    assert plain.flat_pose is plain.pose
    assert not plain.is_matrix


def test_samples_are_frozen_and_survive_pickling() -> None:
    given = np.array([1.0, 2.0])
    sample = ReferenceSample(given, [0.5, 0.0], [3.0, 0.0])
    given[0] = 5.0
    assert sample.pose[0] == 1.0
    for change in (partial(setattr, sample, "pose", given), partial(delattr, sample, "twist")):
        with pytest.raises(AttributeError, match="frozen"):
            change()
    with pytest.raises(ValueError, match="read-only"):
        sample.pose[0] = 3.0
    copy = pickle.loads(pickle.dumps(sample))
    assert repr(copy) == repr(sample)
    np.testing.assert_array_equal(copy.acceleration, [3.0, 0.0])


def test_symbolic_samples_keep_their_expressions() -> None:
    parts = [ca.SX.sym(name, n) for name, n in (("p", 7), ("v", 6), ("a", 6))]
    sample = ReferenceSample(*parts)
    for part, symbol in zip(
        (sample.flat_pose, sample.twist, sample.acceleration), parts, strict=True
    ):
        assert ca.is_equal(part, symbol, 1)
    assert "p_6" in repr(sample)
    parts[0][0] = 3.0
    assert not sample.pose[0].is_constant()


@pytest.mark.parametrize(
    ("arguments", "field", "kind"),
    [
        (([[1.0, 2.0]], [0.0], [0.0]), "pose", ShapeError),
        (("far", [0.0], [0.0]), "pose", ShapeError),
        (([1.0], 0.0, [0.0]), "twist", ShapeError),
        (([1.0], np.eye(4), [0.0]), "twist", ShapeError),
        (([1.0], [0.0], [0.0, 0.0]), "acceleration", ShapeError),
        (([1.0], [float("nan")], [0.0]), "twist", NonFiniteError),
        (([1.0], [0.0], [float("inf")]), "acceleration", NonFiniteError),
        ((None, [0.0], [0.0]), "pose", ShapeError),
        ((ca.SX.sym("pose", 4, 4), [0.0], [0.0]), "pose", ShapeError),
        (([1.0], ca.SX.sym("twist", 1, 3), [0.0] * 3), "twist", ShapeError),
        (([1.0], [0.0, 0.0], ca.SX.sym("acceleration", 3)), "acceleration", ShapeError),
    ],
)
def test_bad_samples_are_refused(arguments: tuple, field: str, kind: type) -> None:
    with pytest.raises(kind, match=f"reference sample, {field}"):
        ReferenceSample(*arguments)


# --- motions of poses: products of matrix exponentials, with velocities by differences ---------


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


def subgroup(group: str, start: np.ndarray, x: np.ndarray) -> np.ndarray:
    """start exp(x) on a group, as a matrix."""
    if group == "SE3":
        return start @ exponential(x)
    moved = start @ exponential([0, 0, 0, *x[-3:]])
    if group == "R3xSO3":
        moved[:3, 3] += x[:3]
    return moved


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("twist", [X1, X1 * [1, 1, 1, 0, 0, 0], X1 * [0, 0, 0, 8, 8, 8]])
def test_screws_in_the_body_and_in_space(group: str, twist: np.ndarray) -> None:
    body = ref.screw(POSE, twist, group)
    assert_follows(body, group, lambda t: POSE @ exponential(twist * t))
    spatial = ref.screw(POSE, twist, group, frame="spatial")
    assert_follows(spatial, group, lambda t: exponential(twist * t) @ POSE)


@pytest.mark.parametrize("group", GROUPS)
def test_a_screw_goes_as_its_progress_says(group: str) -> None:
    reference = ref.screw(POSE, X2, group, progress=SINE)
    assert_follows(reference, group, lambda t: POSE @ exponential(X2 * np.sin(t)))


@pytest.mark.parametrize("group", CURVED)
def test_polynomials_of_poses(group: str) -> None:
    coefficients = np.array([0.5 * X2, X1, X2, -0.3 * X1[::-1]])
    if group == "SO3":
        coefficients = coefficients[:, 3:]

    def curve(t: float) -> np.ndarray:
        return subgroup(group, POSE, coefficients.T @ t ** np.arange(4.0))

    for start in (POSE, flat(group, POSE)):
        assert_follows(ref.polynomial(coefficients, start=start, group=group), group, curve)


@pytest.mark.parametrize("group", CURVED)
def test_rest_to_rest_between_poses(group: str) -> None:
    way = twist_of(logm(np.linalg.inv(POSE) @ GOAL).real)
    if group == "R3xSO3":
        way[:3] = GOAL[:3, 3] - POSE[:3, 3]
    way = way[-3:] if group == "SO3" else way

    def curve(t: float) -> np.ndarray:
        x = np.clip((t - 0.5) / 3.0, 0.0, 1.0)
        return subgroup(group, POSE, way * (10 * x**3 - 15 * x**4 + 6 * x**5))

    reference = ref.rest_to_rest(POSE, flat(group, GOAL), 3.0, begin=0.5, group=group)
    assert_follows(reference, group, curve, (0.0, 0.8, 1.7, 3.1, 4.0))


def test_poses_go_the_shorter_way_round() -> None:
    start, end = Rotation.from_rotvec([0, 0, 3.0]), Rotation.from_rotvec([0, 0, -3.0])
    reference = ref.rest_to_rest(start.as_quat(), -end.as_quat(), 2.0, group="SO3")
    middle = Rotation.from_quat(reference(1.0).pose)
    assert (middle.inv() * Rotation.from_rotvec([0, 0, np.pi])).magnitude() < 1e-12


@pytest.mark.parametrize("group", ["R3xSO3", "SE3", None])
@pytest.mark.parametrize("turning", [False, True])
def test_circles_with_an_attitude(group: str | None, turning: bool) -> None:
    center, normal = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -0.5])
    attitude = Rotation.from_rotvec([0.4, -1.2, 0.7])
    reference = ref.circle(
        center, 0.5, -3.0, normal, 0.3, attitude.as_quat(), turning=turning, group=group
    )
    arm = ref.circle(center, 0.5, -3.0, normal, 0.3)(0.0).pose - center

    def curve(t: float) -> np.ndarray:
        turn = Rotation.from_rotvec(normal / np.linalg.norm(normal) * 2 * np.pi * t / -3.0)
        pose = np.eye(4)
        pose[:3, :3] = ((turn if turning else Rotation.identity()) * attitude).as_matrix()
        pose[:3, 3] = center + turn.apply(arm)
        return pose

    assert_follows(reference, group or "R3xSO3", curve)


POSES = [POSE, GOAL, GOAL @ exponential(X1), POSE @ exponential(2 * X2), POSE]


def as_matrix(group: str, numbers: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    if group != "SO3":
        pose[:3, 3] = numbers[:3]
    pose[:3, :3] = Rotation.from_quat(numbers[-4:]).as_matrix()
    return pose


@pytest.mark.parametrize("group", CURVED)
@pytest.mark.parametrize("ends", [False, True])
def test_waypoints_of_poses_are_met_twice_differentiably(group: str, ends: bool) -> None:
    size = 3 if group == "SO3" else 6
    rates = np.array([X1, X2])[:, -size:] * ends
    points = [flat(group, pose) for pose in POSES]
    reference = ref.waypoints(TIMES, points, rates if ends else None, group=group)
    assert_follows(
        reference,
        group,
        lambda t: as_matrix(group, reference(t).pose),
        (-0.5, 0.31, 1.2, 1.9, 2.72, 3.6, 4.5, 6.0),
    )
    for t, pose in zip(TIMES, POSES, strict=True):
        assert_close(
            as_matrix(group, reference(t).pose), as_matrix(group, flat(group, pose)), 1e-12
        )
        left, right = reference(t - 1e-7), reference(t + 1e-7)
        assert np.abs(right.twist - left.twist).max() < 1e-5
        assert np.abs(right.acceleration - left.acceleration).max() < 1e-4
    for t, end, pose, rate in ((-1.5, 0.0, POSES[0], rates[0]), (7.0, 5.0, POSES[-1], rates[1])):
        assert_close(reference(end).twist, rate, 1e-12)
        assert np.abs(reference(end).acceleration).max() < 1e-11
        beyond = as_matrix(group, flat(group, subgroup(group, pose, (t - end) * rate)))
        assert_close(as_matrix(group, reference(t).pose), beyond, 1e-12)
        assert_close(reference(t).twist, rate, 1e-12)


def test_waypoints_of_poses_have_the_derivatives_of_parabolas_at_their_points() -> None:
    found = ref.waypoints(TIMES, POSES, group="R3xSO3")
    places = np.array(POSES)[:, :3, 3]
    for k in (1, 2, 3):
        near = slice(k - 1, k + 2)
        curve = np.polyfit(np.array(TIMES[near]) - TIMES[k], places[near], 2)
        assert_close(found(TIMES[k]).twist[:3], curve[1], 1e-12)
        assert_close(found(TIMES[k]).acceleration[:3], 2.0 * curve[0], 1e-12)


@pytest.mark.parametrize("group", CURVED)
def test_waypoints_on_a_screw_stay_on_it(group: str) -> None:
    # Poses of a uniform motion: between them the motion is that one again.
    way = np.array([0.2, -0.1, 0.3, 0.5, 0.9, -0.4])[-3 if group == "SO3" else 0 :]
    times = np.array([0.0, 1.0, 1.7, 3.0])
    poses = [subgroup(group, POSE, way * t) for t in times]
    reference = ref.waypoints(times, poses, [way, way], group=group)
    assert_follows(reference, group, lambda t: subgroup(group, POSE, way * t))
    assert np.abs(reference.sample(times + 0.3)[2]).max() < 1e-11


def inner_motions() -> dict[str, tuple[Reference, Curve]]:
    """A reference for each group of motions in space, and the motion as matrices."""

    def place(t: float) -> np.ndarray:
        pose = np.eye(4)
        pose[:3, 3] = [1.0 + 0.2 * t, -0.5 * t**2, 0.3]
        return pose

    path = ref.polynomial([[1.0, 0.0, 0.3], [0.2, 0.0, 0.0], [0.0, -0.5, 0.0]])
    turn = ref.polynomial([0 * X1[3:], X1[3:], X2[3:]], start=[0, 0, 0, 1], group="SO3")

    def turned(t: float) -> np.ndarray:
        return exponential([0, 0, 0, *(X1[3:] * t + X2[3:] * t**2)])

    return {
        "R3": (path, place),
        "SO3": (turn, turned),
        "R3xSO3": (ref.stack(path, turn), lambda t: place(t) @ turned(t)),
        "SE3": (ref.screw(POSE, X1, "SE3"), lambda t: POSE @ exponential(X1 * t)),
    }


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("start", [0.0, 0.7])
def test_moving_and_drifting_are_products_with_the_frame(group: str, start: float) -> None:
    inner, curve = inner_motions()[group]
    for twist in (2 * X2, X2 * [1, 1, 1, 0, 0, 0]):
        reference = ref.moving(inner, twist, start)
        assert_follows(reference, group, lambda t, x=twist: exponential(x * (t - start)) @ curve(t))
    if group != "SO3":
        drift = np.array([0.3, -0.2, 0.1, 0, 0, 0])
        reference = ref.drifting(inner, drift[:3], start)
        assert_follows(reference, group, lambda t: exponential(drift * (t - start)) @ curve(t))


@pytest.mark.parametrize("group", GROUPS)
def test_motions_compose_and_are_read_in_any_group(group: str) -> None:
    inner = inner_motions()
    parts = [inner[name] for name in ("R3", "SE3", "SO3", "R3xSO3")]

    def product(t: float) -> np.ndarray:
        return np.linalg.multi_dot([curve(t) for _, curve in parts])

    assert_follows(ref.composed(*(part for part, _ in parts), group=group), group, product)
    for part, curve in parts:
        assert_follows(ref.composed(part, group=group), group, curve)


# --- which outputs a reference fits ------------------------------------------------------------


def rest(pose: list[float], size: int) -> Reference:
    sample = ReferenceSample(pose, np.zeros(size), np.zeros(size))
    return ref.from_function(lambda t: sample, len(pose), size)


POINT, SPOT = ref.hold([1.0, 2.0, 3.0]), ref.hold([1.0, 2.0])
HEIGHT = ref.hold([3.0], "R")
TURNED = ref.hold([0, 0, 0, 1], "SO3")
HEADED = ref.planar(POINT)
BODY_SCREW = ref.screw(np.eye(4), [0.1, 0, 0, 0, 0, 0.3], "SE3")
INERTIAL_SCREW = ref.screw(np.eye(4), [0.1, 0, 0, 0, 0, 0.3])


def outputs(groups: str) -> list[Output]:
    return [Output(f"output{i}", "body", group) for i, group in enumerate(groups.split())]


FIT = [
    (POINT, "R3"),
    (POINT, "R2 R"),
    (POINT, "SE2"),
    (HEADED, "SE2"),
    (ref.hold([0.3], "SO2"), "SO2"),
    (ref.hold([0.3]), "SO2"),
    (ref.polynomial([[0.3], [0.1]]), "SO2"),
    (ref.stack(SPOT, HEIGHT), "R3"),
    (ref.stack(SPOT, HEIGHT), "R2 R"),
    (ref.stack(POINT, TURNED), "R3xSO3"),
    (ref.stack(POINT, TURNED), "R3 SO3"),
    (ref.hold(np.eye(4)), "SE3"),
    (ref.hold(np.eye(4)), "R3xSO3"),
    (INERTIAL_SCREW, "R3 SO3"),
    (rest([0.0] * 10, 9), "R3 SE3"),
    (ref.stack(SPOT, BODY_SCREW, HEADED, HEIGHT), "R2 SE3 SE2 R"),
]


@pytest.mark.parametrize(("reference", "groups"), FIT)
def test_references_that_fit(reference: Reference, groups: str) -> None:
    assert reference_for(reference, outputs(groups), "servo") is reference
    with pytest.raises(ShapeError, match=r"^servo, reference: "):
        reference_for(reference, outputs(groups + " R"), "servo")


MISFIT = [
    (BODY_SCREW, "R3xSO3", 0),
    (INERTIAL_SCREW, "SE3", 0),
    (ref.hold(np.eye(4), "SE3"), "R3xSO3", 0),
    (ref.hold([0.3], "SO2"), "R", 0),
    (HEADED, "R3", 0),
    (HEADED, "R2 SO2", 0),
    (HEIGHT, "SO2", 0),
    (ref.stack(SPOT, HEIGHT), "SE2", 0),
    (ref.stack(HEADED, SPOT), "R2 SE2", 0),
    (ref.stack(SPOT, BODY_SCREW), "R2 R3xSO3", 1),
    (ref.stack(POINT, TURNED), "SO3 R3", 0),
    (ref.stack(TURNED, POINT), "R3xSO3", 0),
    (ref.stack(POINT, rest([0, 0, 0, 1], 3)), "SE3", 0),
    (ref.stack(INERTIAL_SCREW, POINT), "R3 SE2 SO3", 1),
]


@pytest.mark.parametrize(("reference", "groups", "place"), MISFIT)
def test_references_for_other_groups_are_refused(
    reference: Reference, groups: str, place: int
) -> None:
    with pytest.raises(OutputError) as caught:
        reference_for(reference, outputs(groups), "servo")
    assert caught.value.where == f"servo, reference of output `output{place}`"


@pytest.mark.parametrize(
    ("reference", "groups"),
    [(SPOT, "R3"), (POINT, "R3 R"), (POINT, ""), (TURNED, "R3"), (ref.hold([0.0] * 7), "SE3")],
)
def test_references_of_another_size_are_refused(reference: Reference, groups: str) -> None:
    pose_size, size = reference.pose_size, reference.size
    with pytest.raises(ShapeError, match=rf"^servo, reference: .*, got {pose_size} and {size}"):
        reference_for(reference, outputs(groups), "servo")


def test_outputs_of_a_group_of_ones_own() -> None:
    own = SimpleNamespace(name="grip", group="S3", pose_size=3, twist_size=2)
    reference_for(rest([0.0] * 3, 2), [own], "servo")  # type: ignore[list-item]
    with pytest.raises(OutputError, match="in S3"):
        reference_for(ref.stack(rest([0.0] * 2, 1), ref.hold([1.0])), [own], "servo")  # type: ignore[list-item]


def test_plain_functions_become_references() -> None:
    found = reference_for(SINE.__call__, outputs("SO2"), "servo")
    assert found.groups == ((1, 1, None),)
    np.testing.assert_allclose(found(0.3).twist, np.cos(0.3), rtol=1e-15)
    with pytest.raises(ShapeError, match="t = 0 s: expected 2 pose"):
        reference_for(SINE.__call__, outputs("R2"), "servo")(0.0)
    assert reference_for(None, [], "servo")(1.0).pose.size == 0
    for value in (None, 3.0, [1.0], ReferenceSample([1.0], [0.0], [0.0]), ReferenceSample):
        with pytest.raises(ConcurError, match=r"^reference: "):
            reference_for(value, outputs("R"), "servo")  # type: ignore[arg-type]


# --- bad input: class and place ----------------------------------------------------------------

NAN = float("nan")
TURN = [0, 0, 0, 1]
ROW = [[0.1, 0.2]]
TWO = ref.stack(ref.hold(np.eye(4), "SE3"), ref.hold([1.0]))
BAD: list[tuple[str, type[ConcurError], Callable[[], object]]] = [
    ("hold, point", NonFiniteError, lambda: ref.hold([NAN])),
    ("hold, point", ConcurError, lambda: ref.hold([1.1e9])),
    ("hold, point", ShapeError, lambda: ref.hold([[1.0], [2.0]])),
    ("hold, point", ShapeError, lambda: ref.hold([])),
    ("hold, group", UnknownNameError, lambda: ref.hold([1.0], "R9")),
    ("hold, group", UnknownNameError, lambda: ref.hold(np.eye(4), "R3xS03")),
    ("hold, point", ShapeError, lambda: ref.hold(ca.SX.sym("x", 2))),
    ("hold, point", ShapeError, lambda: ref.hold([1.0], "R2")),
    ("hold, point", ShapeError, lambda: ref.hold(np.eye(4), "SO3")),
    ("hold, point", ShapeError, lambda: ref.hold([1.0, 0, 0, 1.0], "SO3")),
    ("hold, point", ShapeError, lambda: ref.hold(np.ones((4, 4)))),
    ("polynomial, coefficients", ShapeError, lambda: ref.polynomial([1.0, 2.0])),
    ("polynomial, coefficients", ShapeError, lambda: ref.polynomial([[1.0], [1.0, 2.0]])),
    ("polynomial", ConcurError, lambda: ref.polynomial([[0.0] * 3], start=TURN)),
    ("polynomial", ConcurError, lambda: ref.polynomial([[0.0] * 3], group="SO3")),
    ("polynomial, group", UnknownNameError, lambda: ref.polynomial(ROW, [0, 0, 0], "R3")),
    ("polynomial, coefficients", ShapeError, lambda: ref.polynomial([[0.0] * 6], TURN, "SO3")),
    ("rest_to_rest, end", ShapeError, lambda: ref.rest_to_rest([1.0], [1.0, 2.0], 1.0)),
    ("rest_to_rest, duration", ConcurError, lambda: ref.rest_to_rest([1.0], [2.0], 0.0)),
    ("rest_to_rest, begin", NonFiniteError, lambda: ref.rest_to_rest([1.0], [2.0], 1.0, NAN)),
    (
        "rest_to_rest, end",
        ShapeError,
        lambda: ref.rest_to_rest(np.eye(4), TURN, 1.0, group="SE3"),
    ),
    (
        "rest_to_rest, duration",
        ConcurError,
        lambda: ref.rest_to_rest(np.eye(4), np.eye(4), 0.0, group="SE3"),
    ),
    ("circle, center", ShapeError, lambda: ref.circle([0.0], 1.0, 1.0)),
    ("circle, radius", ConcurError, lambda: ref.circle([0.0, 0.0], 0.0, 1.0)),
    ("circle, radius", ConcurError, lambda: ref.circle([0, 0], -1.0, 1.0)),
    ("circle, radius", ShapeError, lambda: ref.circle([0, 0], [1.0], 1.0)),  # type: ignore[arg-type]
    ("circle, period", ConcurError, lambda: ref.circle([0, 0], 1.0, 0.0)),
    ("circle, normal", ShapeError, lambda: ref.circle([0, 0, 0], 1.0, 1.0, [0, 0, 0])),
    ("circle, normal", ShapeError, lambda: ref.circle([0, 0], 1.0, 1.0, [1, 0, 1])),
    ("circle, center", ShapeError, lambda: ref.circle([0.0, 0.0], 1.0, 1.0, attitude=TURN)),
    ("circle, attitude", ShapeError, lambda: ref.circle([0] * 3, 1.0, 1.0, attitude=[0] * 3)),
    ("circle, attitude", ConcurError, lambda: ref.circle([0, 0, 0], 1.0, 1.0, turning=True)),
    ("circle, turning", ConcurError, lambda: ref.circle([0] * 3, 1.0, 1.0, turning=1)),  # type: ignore[arg-type]
    (
        "circle, group",
        UnknownNameError,
        lambda: ref.circle([0, 0, 0], 1.0, 1.0, attitude=TURN, group="SO3"),
    ),
    ("waypoints, times", ShapeError, lambda: ref.waypoints([0.0], [[1.0]])),
    ("waypoints, times, entry 2", ConcurError, lambda: ref.waypoints([0, 2, 1], [[0.0]] * 3)),
    ("waypoints, times, entry 2", ConcurError, lambda: ref.waypoints([0, 1, 1], [[0]] * 3)),
    (
        "waypoints, times, entry 2",
        ConcurError,
        lambda: ref.waypoints([0, 1, 1 + 0.9e-6], [[0.0]] * 3),
    ),
    ("waypoints, times", NonFiniteError, lambda: ref.waypoints([0, NAN], [[0]] * 2)),
    ("waypoints, points", ShapeError, lambda: ref.waypoints([0, 1], [[0.0]] * 3)),
    ("waypoints, points", ShapeError, lambda: ref.waypoints([0.0, 1.0], 3.0)),
    ("waypoints, points", ShapeError, lambda: ref.waypoints([0, 1], [np.eye(4), np.eye(4)])),
    ("waypoints, rates", ShapeError, lambda: ref.waypoints([0, 1], [[0.0]] * 2, [[0.0, 0.0]])),
    (
        "waypoints, points, entry 1",
        ConcurError,
        lambda: ref.waypoints([0, 1], [TURN, [1, 0, 0, 0]], group="SO3"),
    ),
    (
        "waypoints, points, entry 1",
        ShapeError,
        lambda: ref.waypoints([0, 1], [TURN, [1, 1, 0, 0]], group="SO3"),
    ),
    (
        "waypoints, rates",
        ShapeError,
        lambda: ref.waypoints([0, 1], [TURN, [0.6, 0, 0, 0.8]], np.zeros((2, 4)), "SO3"),
    ),
    ("screw, start_pose", ShapeError, lambda: ref.screw(np.zeros((4, 4)), np.zeros(6))),
    ("screw, start_pose", ShapeError, lambda: ref.screw(np.eye(3), np.zeros(6))),
    ("screw, twist", ShapeError, lambda: ref.screw(np.eye(4), np.zeros(3))),
    ("screw, group", UnknownNameError, lambda: ref.screw(np.eye(4), np.zeros(6), "SE2")),
    ("screw, frame", UnknownNameError, lambda: ref.screw(np.eye(4), X1, frame="spacial")),
    ("screw, progress", ConcurError, lambda: ref.screw(np.eye(4), X1, progress=SPOT)),
    ("screw, progress", ConcurError, lambda: ref.screw(np.eye(4), X1, progress=0.5)),  # type: ignore[arg-type]
    ("drifting, velocity", ShapeError, lambda: ref.drifting(POINT, [1.0, 2.0])),
    ("drifting, velocity", ShapeError, lambda: ref.drifting(BODY_SCREW, [0.0] * 6)),
    ("drifting, velocity", NonFiniteError, lambda: ref.drifting(ref.hold([1.0]), [NAN])),
    ("drifting, start", ShapeError, lambda: ref.drifting(ref.hold([1.0]), [1.0], [0.0])),  # type: ignore[arg-type]
    ("drifting", ConcurError, lambda: ref.drifting(TURNED, [1, 2, 3])),
    ("drifting", ConcurError, lambda: ref.drifting(ref.hold([0.3], "SO2"), [1.0])),
    ("drifting", ConcurError, lambda: ref.drifting(HEADED, [1, 2])),
    ("drifting", ConcurError, lambda: ref.drifting(ref.hold(np.eye(4)), [1, 2, 3])),
    ("drifting", ConcurError, lambda: ref.drifting(TWO, [1, 2, 3])),
    ("drifting", ConcurError, lambda: ref.drifting(lambda t: t, [1, 2, 3])),  # type: ignore[arg-type]
    ("moving, twist", ShapeError, lambda: ref.moving(POINT, [1.0, 2.0, 3.0])),
    ("moving", ConcurError, lambda: ref.moving(SPOT, np.zeros(6))),
    ("moving, start", NonFiniteError, lambda: ref.moving(POINT, np.zeros(6), NAN)),
    ("composed, group", UnknownNameError, lambda: ref.composed(POINT, group="SE2")),
    ("composed", ConcurError, lambda: ref.composed(POINT, ref.hold([1.0]))),
    ("composed", ConcurError, lambda: ref.composed(POINT, 3.0)),  # type: ignore[arg-type]
    ("planar", ShapeError, lambda: ref.planar(ref.hold([1.0]))),
    ("stack", ConcurError, lambda: ref.stack()),
    ("stack", ConcurError, lambda: ref.stack(lambda t: t)),  # type: ignore[arg-type]
    ("relative", ShapeError, lambda: ref.relative(ref.hold(np.eye(4)), ref.hold([1.0]))),
    ("relative", ShapeError, lambda: ref.relative(HEADED, ref.hold([1.0]))),
    ("relative, components", ShapeError, lambda: ref.relative(HEIGHT, SPOT, [2])),
    ("relative, components", ShapeError, lambda: ref.relative(HEIGHT, SPOT, [-1])),
    ("relative, components", ShapeError, lambda: ref.relative(HEIGHT, SPOT, [0.5])),  # type: ignore[list-item]
    ("relative, components", ShapeError, lambda: ref.relative(SPOT, POINT, [1, 1])),
    ("from_function", ConcurError, lambda: ref.from_function(3, 1, 1)),  # type: ignore[arg-type]
    ("from_function, size", ConcurError, lambda: ref.from_function(SINE, 1, 0)),
    ("from_function, t = 0.5 s", ConcurError, lambda: ref.from_function(np.sin, 1, 1)(0.5)),
    ("from_function, t = 0.5 s", ShapeError, lambda: ref.from_function(SINE, 2, 2)(0.5)),
    (
        "from_function, t = 0.5 s",
        ConcurError,
        lambda: ref.from_function(lambda t: ReferenceSample([t], [1.0], ca.SX.sym("a")), 1, 1)(0.5),
    ),
    ("times", NonFiniteError, lambda: POINT(NAN)),
    ("times", ShapeError, lambda: POINT.sample([[1.0]])),
    ("loop, sine", ShapeError, lambda: Loop([0, 0], ROW, [[0.1]])),
    ("loop, points", ShapeError, lambda: Loop.through(ROW * 2)),
    ("loop, points", ShapeError, lambda: Loop.through([[0, 0], [1, 0], [0, 1], [0, 0]])),
    ("loop, cycles", ConcurError, lambda: Loop([0, 0], ROW, ROW, cycles=0)),
    ("loop, duration", ConcurError, lambda: Loop([0, 0], ROW, ROW, duration=0.0)),
]


@pytest.mark.parametrize(("place", "kind", "make"), BAD)
def test_bad_references_are_refused(
    place: str, kind: type[ConcurError], make: Callable[[], object]
) -> None:
    with pytest.raises(ConcurError) as caught:
        make()
    assert type(caught.value) is kind
    assert caught.value.where == f"reference {place}"


def test_what_is_just_within_the_limits_is_taken() -> None:
    assert ref.hold([0.99e9])(0.0).pose[0] == 0.99e9
    assert ref.rest_to_rest([1.0], [2.0], 1e-6)(0.5e-6).pose[0] == pytest.approx(1.5)
    with pytest.raises(ConcurError, match="duration"):
        ref.rest_to_rest([1.0], [2.0], 0.99e-6)
    nearly = Rotation.from_rotvec([np.pi - 2e-6, 0.0, 0.0]).as_quat()
    beyond = Rotation.from_rotvec([np.pi - 5e-7, 0.0, 0.0]).as_quat()
    assert ref.waypoints([0, 1], [TURN, nearly], group="SO3")(1.0).twist.max() < 1e-12
    with pytest.raises(ConcurError, match="half a turn"):
        ref.waypoints([0, 1], [TURN, beyond], group="SO3")
    tilted = np.eye(4)
    tilted[0, 1] = 0.9e-6
    ref.hold(tilted)
    for entry in ((0, 1), (3, 0)):
        loose = np.eye(4)
        loose[entry] = 1.1e-6
        with pytest.raises(ShapeError, match="rotation"):
            ref.hold(loose)


LEANING = np.array([0.5, 0.5, 0.5, 0.5])
WITH_QUATERNIONS: dict[str, Callable[[np.ndarray], Reference]] = {
    "hold": lambda x: ref.hold(x, "SO3"),
    "hold pose": lambda x: ref.hold([1.0, 2.0, 3.0, *x], "SE3"),
    "polynomial": lambda x: ref.polynomial([[0.0] * 3], start=x, group="SO3"),
    "rest to rest": lambda x: ref.rest_to_rest(x, TURN, 1.0, group="SO3"),
    "waypoints": lambda x: ref.waypoints([0, 1], [x, TURN], group="SO3"),
    "circle": lambda x: ref.circle([0, 0, 0], 1.0, 1.0, attitude=x),
}


@pytest.mark.parametrize("name", WITH_QUATERNIONS)
def test_quaternions_are_normalised_near_unit_norm_and_refused_beyond(name: str) -> None:
    make = WITH_QUATERNIONS[name]
    for norm in (0.9991, 1.0009):
        np.testing.assert_allclose(
            make(norm * LEANING)(0.0).pose, make(LEANING)(0.0).pose, atol=1e-15
        )
    for norm in (0.9989, 1.0011, 0.0):
        with pytest.raises(ShapeError, match="unit quaternion"):
            make(norm * LEANING)
