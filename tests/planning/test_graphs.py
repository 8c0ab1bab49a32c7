"""Functions that plans of a model share: slopes, what is kept, and what is not."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._clearances import distances, numbers_of, pairs_of
from concur.planning._direct import direct_guess
from concur.planning._graphs import KEPT_AS, KEPT_PROBLEMS, Graphs
from concur.robot import Capsule, Clearance, Obstacle
from tests.planning.test_direct import formed

ROOT = Path(__file__).parents[2]
START = [0, 0, 0, 0.5, -1.0]
LIMITS = PlanLimits(torques=5.0, speeds=2.0)


def floater():
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    return model, [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]


@pytest.mark.parametrize("via", [(), ({"hand": [1.5, 0.2]}, {"hand": [np.nan, 0.3]})])
def test_paths_with_slopes_and_without_are_the_same_and_the_slopes_are_theirs(via) -> None:
    model, hand = floater()
    given = {"speeds": [0.3, -0.2], "via": via, "places": (12, 30)[: len(via)]}
    form, start, wanted = formed(model, hand, START, {"hand": [1.3, 0.4]}, LIMITS, **given)
    unknowns, bias = direct_guess(form, start, wanted, None), np.zeros(form.within.size)
    assert bias.size == 4 + (3 if via else 0)
    full = form.evaluate(start, unknowns, wanted, bias)
    plain = form.values(start, unknowns, wanted, bias)
    for name in ("points", "x", "r", "s", "a", "g", "e"):
        np.testing.assert_allclose(getattr(full, name), getattr(plain, name), atol=1e-12)
    step, rng = 1e-6, np.random.default_rng(0)
    for k in (0, 7, len(unknowns) - 1, None):
        way = rng.normal(size=unknowns.size) if k is None else np.eye(unknowns.size)[k]
        ahead, behind = (
            form.values(start, unknowns + sign * step * way, wanted, bias) for sign in (1, -1)
        )
        for value, slopes in (("g", full.slopes[0]), ("e", full.slopes[1])):
            found = (getattr(ahead, value) - getattr(behind, value)) / (2 * step)
            np.testing.assert_allclose(slopes @ way, found, atol=2e-6)


def test_functions_are_kept_for_other_goals_and_limits_of_a_model() -> None:
    model, hand = floater()
    first = cc.plan(model, hand, START, {"hand": [1.3, 0.4]}, LIMITS)
    (kept,) = vars(model)[KEPT_AS].values()
    for goal, limits in (([1.2, 0.5], LIMITS), ([1.3, 0.4], PlanLimits(torques=3.0, speeds=1.0))):
        assert cc.plan(model, hand, START, {"hand": goal}, limits).reached
        assert list(vars(model)[KEPT_AS].values()) == [kept]
    # The same problem again, with the functions of the others: the same motion to the last bit.
    again = cc.plan(model, hand, START, {"hand": [1.3, 0.4]}, LIMITS)
    np.testing.assert_array_equal(again.q, first.q)
    other = cc.Output("hand", "forearm", "R2", point=(0.9, 0, 0))
    assert cc.plan(model, [other], START, {"hand": [1.2, 0.4]}, LIMITS).reached
    assert len(vars(model)[KEPT_AS]) == 2


@pytest.mark.extended
def test_obstacles_are_numbers_of_the_same_functions() -> None:
    """A post that moves, and one that grows, are kept away from with the functions of the first."""
    model = cc.reduce(cc.load(ROOT / "examples/rover_rig/robot.toml"))
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    q0, limits = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6], PlanLimits(speeds=5.0)
    for y, radius in ((0.6, 0.1), (-0.7, 0.1), (0.6, 0.2)):
        post = Obstacle("post", (1.2, y, -0.5), (1.2, y, 0.5), radius)
        found = cc.plan(model, [base], q0, {"base": [2.0, 0.0]}, limits, [post])
        assert found.reached
        (row,) = [row for row in found.rows if row.quantity == "distance of chassis from post"]
        points = np.array([
            (model.robot.pose(q, "chassis") @ [x, 0.0, 0.0, 1.0])[:2]
            for q in found.q for x in np.linspace(-0.1, 0.5, 61)
        ])  # fmt: skip
        seen = np.linalg.norm(points - [1.2, y], axis=1).min() - radius - np.hypot(0.4, 0.1) / 2
        assert row.value == pytest.approx(seen, abs=0.01)
        assert len(vars(model)[KEPT_AS]) == 1


@pytest.mark.parametrize("frame", ["world", "base"])
def test_distances_of_boxes_in_plans_are_those_of_limits(frame: str) -> None:
    robot, rng = cc.robots.rover_arm(), np.random.default_rng(3)
    own = (Capsule.of(robot, "forearm"), Capsule.of(robot, "upper_arm"))
    size = {"box": (0.3, 0.2, 0.1), "rpy_deg": (20.0, 30.0, 40.0), "radius": 0.01}
    block = Obstacle.from_table("block", (0.3, 0.4, 0.2), frame=frame, **size)
    ball = Obstacle("ball", (0.0, 1.0, 0.2), (0.0, 1.2, 0.2), 0.1)
    scene, q = Clearance(own, (block, ball)), ca.SX.sym("q", robot.nq)
    numbers, pairs = numbers_of(scene), pairs_of(robot, scene, None)
    assert len(numbers) == pairs.size
    found = [distances(robot, q, pairs, ca.DM(numbers)), scene.seen(robot, q)]
    both = ca.Function("both", [q], found)
    for _ in range(20):
        one, other = map(np.array, both(robot.random(rng)))
        np.testing.assert_allclose(one, other, atol=1e-13)


@pytest.mark.extended
@pytest.mark.parametrize(("long", "wide", "y"), [(0.3, 0.1, 0.1), (0.1, 0.4, 0.25)])
def test_a_box_in_the_way_is_passed(long: float, wide: float, y: float) -> None:
    """Points of the chassis' middle line keep away from a box that stands in the way."""
    robot = cc.load(ROOT / "examples/rover_rig/robot.toml")
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    block = Obstacle.from_table("block", (1.2, y, 0.0), box=(long, wide, 1.0), distance=0.02)
    limits, q0 = PlanLimits(speeds=5.0), [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
    found = cc.plan(cc.reduce(robot), [base], q0, {"base": [2.4, 0.0]}, limits, [block])
    assert found.reached
    points = np.array([
        (robot.pose(q, "chassis") @ [x, 0.0, 0.0, 1.0])[:2] - [1.2, y]
        for q in found.q for x in np.linspace(-0.1, 0.5, 61)
    ])  # fmt: skip
    apart = np.linalg.norm(np.maximum(np.abs(points) - [long / 2, wide / 2], 0.0), axis=1).min()
    assert apart >= np.hypot(0.4, 0.1) / 2 + 0.02 - 1e-3
    assert any("block" in row.quantity for row in found.rows)


def test_few_functions_are_kept_the_last_used_ones() -> None:
    model, (hand,) = floater()
    made = []
    for k in range(KEPT_PROBLEMS + 1):
        output = dataclasses.replace(hand, point=(0.5 + 0.01 * k, 0, 0))
        form, _, _ = formed(model, [output], START, {"hand": [1.3, 0.4]}, LIMITS)
        made.append(form.graphs)
        first = dataclasses.replace(hand, point=(0.5, 0, 0))
        assert formed(model, [first], START, {"hand": [1, 1]}, LIMITS)[0].graphs is made[0]
    kept = list(vars(model)[KEPT_AS].values())
    assert len(kept) == KEPT_PROBLEMS
    assert made[1] not in kept
    assert made[0] is kept[-1]


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_copies_of_a_model_have_no_functions_and_plan_anew(copied) -> None:
    model, hand = floater()
    found = cc.plan(model, hand, START, {"hand": [1.3, 0.4]}, LIMITS)
    other = copied(model)
    assert not vars(other).get(KEPT_AS)
    again = cc.plan(other, hand, START, {"hand": [1.3, 0.4]}, LIMITS)
    np.testing.assert_allclose(again.q, found.q, atol=1e-12)
    assert isinstance(next(iter(vars(other)[KEPT_AS].values())), Graphs)


@pytest.mark.extended
def test_ways_around_an_obstacle_are_sought_with_paths_without_slopes() -> None:
    """A post in the middle of the way: the places beside it count in the merit of each trial."""
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    q0 = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
    post = Obstacle("post", (1.4, 0.0, 0.0), (1.4, 0.0, 0.5), 0.1, distance=0.02)
    limits = PlanLimits(torques=10.0, speeds=5.0)
    assert cc.plan(model, [base], q0, {"base": [2.6, 0.0]}, limits, [post]).reached
