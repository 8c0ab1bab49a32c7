"""References as expression graphs: the same numbers as samples, at knots, ends and beyond."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from concur.outputs import ReferenceSample, references
from concur.outputs.references import Reference
from tests.oracles import difference_quotient

Curve = Callable[[float, int], np.ndarray]

TIMES = [0.0, 1.0, 2.5, 3.0, 5.0]
POINTS = [[0.0, 1.0], [0.5, -1.0], [2.0, 0.0], [1.0, 0.3], [0.0, 0.0]]
TURNS = Rotation.from_rotvec(np.cumsum(np.full((5, 3), [0.3, -0.4, 0.2]), axis=0)).as_quat()
POSES = [[*point, 0.3, *turn] for point, turn in zip(POINTS, TURNS, strict=True)]


def motions() -> dict[str, Reference]:
    path = references.waypoints(TIMES, POINTS, [[0.2, 0.0], [-0.3, 0.1]])
    poses = references.waypoints(TIMES, POSES, np.full((2, 6), 0.1), group="SE3")
    return {
        "hold": references.hold(POSES[0], "SE3"),
        "polynomial": references.polynomial(np.full((3, 6), 0.2), start=POSES[1], group="R3xSO3"),
        "rest_to_rest": references.rest_to_rest(POSES[0], POSES[1], 3.0, 0.5, group="SE3"),
        "circle": references.circle([1, 2, 3], 0.5, 7.0, attitude=TURNS[1], turning=True),
        "waypoints": path,
        "poses": poses,
        "planar": references.planar(references.stack(path, references.polynomial([[0.1], [0.2]]))),
        "moving": references.moving(poses, [0.1, 0.2, 0.3, 0.3, 0.2, 0.1], start=0.7),
        "drifting": references.drifting(poses, [0.1, 0.2, 0.3], start=-0.3),
        "composed": references.composed(poses, poses, group="R3xSO3"),
        "relative": references.relative(references.hold([0.1, 0.2, 0.3]), path),
        "screw": references.screw(
            np.eye(4), np.full(6, 0.3), progress=references.waypoints(TIMES, TIMES)
        ),
    }


def test_graphs_give_the_numbers_of_samples() -> None:
    knots = np.array(TIMES)
    beside = [np.nextafter(knots, 9.0), np.nextafter(knots, -9.0), knots + 0.7, knots - 0.3]
    drawn = np.random.default_rng(0).uniform(-2.0, 8.0, 20)
    times = np.concatenate([knots, *beside, drawn, [-1e4, 1e4]])
    for name, reference in motions().items():
        graph = reference.graph()
        assert graph is not None, name
        assert (graph.name_in(), graph.name_out()) == (["t"], ["pose", "twist", "acceleration"])
        expected = reference.sample(times)
        for i, t in enumerate(times):
            for part, table in zip(graph(t), expected, strict=True):
                np.testing.assert_allclose(
                    np.array(part)[:, 0], table[i], rtol=1e-12, atol=1e-12, err_msg=f"{name}, {t}"
                )


def test_twists_and_accelerations_of_graphs_are_derivatives() -> None:
    for name, reference in motions().items():
        graph = reference.graph()
        assert graph is not None

        def at(t: float, index: int, graph: ca.Function = graph) -> np.ndarray:
            return np.array(graph(t)[index])[:, 0]

        def rate(t: float, index: int, at: Curve = at) -> np.ndarray:
            return difference_quotient(lambda h: at(t + h, index))

        for t in (-0.4, 0.31, 2.7, 4.4, 5.6):
            np.testing.assert_allclose(at(t, 2), rate(t, 1), atol=1e-8, err_msg=f"{name}, {t}")
            if reference.pose_size == reference.size and name != "planar":
                np.testing.assert_allclose(at(t, 1), rate(t, 0), atol=1e-8, err_msg=f"{name}, {t}")


def test_a_graph_with_a_thousand_segments_is_as_short_as_one_with_two() -> None:
    knots = np.linspace(0.0, 10.0, 1001)
    points = np.random.default_rng(1).normal(size=(1001, 3)).cumsum(axis=0)
    rest = np.zeros(3)
    spline = CubicSpline(knots, points, bc_type=((1, rest), (1, rest)))
    long, short = references.waypoints(knots, points).graph(), motions()["waypoints"].graph()
    assert long is not None
    assert short is not None
    assert long.n_instructions() == short.n_instructions()
    for t in (0.0, 0.004, 3.21, 5.0, 9.999, 10.0):
        for order, part in enumerate(long(t)):
            np.testing.assert_allclose(
                np.array(part)[:, 0], spline(t, order), rtol=1e-12, atol=1e-10
            )


def test_custom_functions_have_no_graph_and_neither_has_what_contains_them() -> None:
    wave = references.from_function(
        lambda t: ReferenceSample([np.sin(t)] * 3, [np.cos(t)] * 3, [-np.sin(t)] * 3), 3, 3
    )
    later = references.moving(wave, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], start=1.0)
    whole = references.stack(later, motions()["waypoints"])
    assert all(reference.graph() is None for reference in (wave, later, whole))
    # The function is called at the time of its frame.
    np.testing.assert_allclose(whole(1.0).pose[:3], np.sin([1.0] * 3))
    np.testing.assert_allclose(whole.sample([2.0, 3.0])[0][:, 1], np.sin([2.0, 3.0]))
