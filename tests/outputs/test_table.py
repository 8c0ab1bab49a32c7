"""Tables of samples: the samples are met, in between the motion is smooth, and it has a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import BPoly, CubicSpline
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import ConcurError, NonFiniteError, ShapeError, UnknownNameError
from concur.outputs import references

TIMES = np.array([0.0, 0.1, 0.25, 0.4, 0.5, 0.7, 0.8, 1.0])
DENSE = np.linspace(0.0, 1.0, 101)
START = [0.3, -0.2, 0.5, *Rotation.from_rotvec([0.4, -0.7, 0.2]).as_quat()]
GROUPS = ("R3xSO3", "SE3", "SO3", "R3", "SE2", "R2", "SO2", "R")


def motion(group: str) -> references.Reference:
    """A smooth motion with known derivatives."""
    if group in ("R3xSO3", "SE3", "SO3"):
        size = 3 if group == "SO3" else 6
        powers = np.random.default_rng(4).uniform(-1.5, 1.5, (4, size))
        return references.polynomial(powers, start=START[-size - 1 :], group=group)
    size = {"R3": 3, "SE2": 3, "R2": 2}.get(group, 1)
    powers = np.random.default_rng(size).uniform(-2.0, 2.0, (4, size))
    path = references.polynomial(powers)
    return references.planar(path) if group == "SE2" else path


def same_sign(poses: np.ndarray, like: np.ndarray, group: str) -> np.ndarray:
    if group not in ("R3xSO3", "SE3", "SO3"):
        return poses
    signs = np.sign(np.einsum("ij,ij->i", poses[:, -4:], like[:, -4:]))
    return np.hstack([poses[:, :-4], signs[:, None] * poses[:, -4:]])


@pytest.mark.parametrize("group", GROUPS)
def test_samples_are_met_with_all_that_is_given(group: str) -> None:
    poses, twists, accelerations = motion(group).sample(TIMES)
    table = references.table(TIMES, poses, twists, accelerations, group)
    found = table.sample(TIMES)
    assert_allclose(same_sign(found[0], poses, group), poses, atol=1e-12)
    assert_allclose(found[1], twists, atol=1e-11)
    assert_allclose(found[2], accelerations, atol=1e-9)
    cc.outputs.reference_for(table, [cc.Output("o", "body", group)], "here")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("given", [0, 1, 2])
def test_what_is_not_given_is_close_to_the_motion(group: str, given: int) -> None:
    smooth = motion(group)
    samples = smooth.sample(DENSE)
    table = references.table(DENSE, *samples[: given + 1], group=group)
    between = np.linspace(0.02, 0.98, 377)
    expected, found = smooth.sample(between), table.sample(between)
    limits = [(2e-7, 6e-5, 3e-2), (4e-9, 2e-6, 3e-3), (2e-10, 2e-8, 5e-6)][given]
    found = same_sign(found[0], expected[0], group), *found[1:]
    for part, wanted, limit in zip(found, expected, limits, strict=True):
        assert_allclose(part, wanted, atol=limit)


def test_in_rn_it_is_the_piecewise_quintic_of_scipy() -> None:
    rng = np.random.default_rng(2)
    samples = rng.normal(size=(3, TIMES.size, 4))
    quintic = BPoly.from_derivatives(TIMES, samples.transpose(1, 0, 2))
    table = references.table(TIMES, *samples)
    for order, part in enumerate(table.sample(DENSE)):
        assert_allclose(part, quintic(DENSE, nu=order), atol=1e-9 * 10.0 ** (2 * order))


def test_missing_derivatives_are_those_of_splines_of_scipy() -> None:
    points = np.random.default_rng(3).normal(size=(TIMES.size, 2))
    spline = CubicSpline(TIMES, points)
    found = references.table(TIMES, points).sample(TIMES)
    for order, part in enumerate(found):
        assert_allclose(part, spline(TIMES, order), atol=1e-9)
    rates = np.random.default_rng(5).normal(size=points.shape)
    found = references.table(TIMES, points, rates).sample(TIMES)
    assert_allclose(found[1], rates, atol=1e-11)
    assert_allclose(found[2], CubicSpline(TIMES, rates)(TIMES, 1), atol=1e-9)


def test_headings_may_be_wrapped() -> None:
    heading = np.linspace(3.0, 3.6, 30)
    wrapped = np.angle(np.exp(1j * heading))
    for group, poses in (("SO2", wrapped), ("SE2", np.column_stack([heading, heading, wrapped]))):
        table = references.table(np.arange(30.0), poses, group=group)
        assert_allclose(table.sample(np.linspace(0.0, 29.0, 90))[1][:, -1], 0.6 / 29, atol=1e-12)


def test_outside_it_goes_on_at_the_twists_of_its_ends() -> None:
    samples = motion("SE3").sample(TIMES)
    table = references.table(TIMES, *samples, group="SE3")
    for end, row in ((-0.5, 0), (1.5, -1)):
        start = cc.Pose(samples[0][row][:3], samples[0][row][3:]).matrix
        screw = references.screw(start, samples[1][row], "SE3")(end - TIMES[row])
        found = table(end)
        assert_allclose(found.twist, samples[1][row], atol=1e-12)
        assert_allclose(found.acceleration, 0.0, atol=1e-14)
        pose = same_sign(found.pose[None], screw.pose[None], "SE3")[0]
        assert_allclose(pose, screw.pose, atol=1e-12)


def test_matrices_are_poses() -> None:
    flat = motion("SE3").sample(TIMES)[0]
    matrices = [cc.Pose(pose[:3], pose[3:]).matrix for pose in flat]
    one = references.table(TIMES, matrices, group="R3xSO3").sample(DENSE)
    two = references.table(TIMES, flat, group="R3xSO3").sample(DENSE)
    for part, other in zip(one, two, strict=True):
        assert_allclose(np.abs(part), np.abs(other), atol=1e-12)


@pytest.mark.parametrize("group", ["SE3", "SE2"])
def test_the_graph_and_its_pieces_give_the_same(group: str) -> None:
    table = references.table(TIMES, *motion(group).sample(TIMES), group=group)
    graph, pieces = table.graph(), table.pieces()
    assert graph is not None
    assert pieces is not None
    assert set(TIMES[:-1]) <= set(pieces.knots)
    for t in (-0.3, 0.0, 0.31, 0.5, 1.0, 1.2):
        rows = [row[0] for row in pieces.rows(np.array([t]))]
        for part, piece, wanted in zip(
            graph(t), pieces.function(t, *rows), table.sample([t]), strict=True
        ):
            assert_allclose(np.array(part)[:, 0], wanted[0], rtol=1e-13, atol=1e-13)
            assert_allclose(np.array(piece)[:, 0], wanted[0], rtol=1e-13, atol=1e-13)


def test_a_table_of_samples_of_another_reference_is_followed_alike() -> None:
    robot = cc.robots.planar_floater()
    model = cc.reduce(robot)
    output = cc.Output("tip", robot.bodies[-1].name, "R2", point=(0.3, 0.0, 0.0))
    servo = cc.Servo(model, [output], 9.0, 6.0)
    q, s = np.array([*robot.neutral()[:-2], 0.4, 0.9]), np.zeros(model.ns)
    circle = references.circle(np.asarray(servo.output(q)), 0.05, 4.0)
    times = np.linspace(0.0, 4.0, 201)
    table = references.table(times, *circle.sample(times), group="R2")
    ticks = [servo.compile(reference, interpreted=True) for reference in (circle, table)]
    for t in (0.0, 0.51, 1.777):
        assert_allclose(ticks[1](t, q, s), ticks[0](t, q, s), atol=1e-6)


BAD: dict[str, tuple[Callable[[], object], type[ConcurError], str]] = {
    "unsorted": (
        lambda: references.table([0, 2, 1], [[0.0]] * 3),
        ConcurError,
        "table, times, entry 2: expected a time after 2 s",
    ),
    "double": (
        lambda: references.table([0, 1, 1], [[0.0]] * 3),
        ConcurError,
        "table, times, entry 2",
    ),
    "one": (lambda: references.table([0.0], [[1.0]]), ShapeError, "at least two times"),
    "count": (lambda: references.table([0, 1], [[0.0]] * 3), ShapeError, "table, poses"),
    "width": (
        lambda: references.table([0, 1], [[0.0] * 3] * 2, group="SO3"),
        ShapeError,
        "table, poses, entry 0: expected 4 numbers",
    ),
    "twists": (
        lambda: references.table([0, 1], [[0.0], [1.0]], [[0.0, 0.0]] * 2),
        ShapeError,
        r"table, twists: expected shape \(2,\)",
    ),
    "accelerations": (
        lambda: references.table([0, 1], [[0.0], [1.0]], [[0.0]] * 2, [[0.0]]),
        ShapeError,
        "table, accelerations",
    ),
    "nan": (
        lambda: references.table([0, 1], [[0.0], [1.0]], [[0.0], [float("nan")]]),
        NonFiniteError,
        "table, twists",
    ),
    "group": (
        lambda: references.table([0, 1], [[0.0], [1.0]], group="R9"),
        UnknownNameError,
        "R2",
    ),
    "matrices": (
        lambda: references.table([0, 1], [np.eye(4)] * 2, group="SE2"),
        ShapeError,
        "table, poses",
    ),
    "half a turn": (
        lambda: references.table([0, 1], [[0, 0, 0, 1], [1, 0, 0, 0]], group="SO3"),
        ConcurError,
        "entry 1: expected an orientation less than half a turn",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused(name: str) -> None:
    make, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        make()
