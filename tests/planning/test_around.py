"""Ways around obstacles: broad boxes between start and goal, and corners beside them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._around import APART, _beside, _timed, room_of
from concur.planning._clearances import clearance_of
from concur.planning._direct import direct_guess
from concur.planning._graphs import STEPS
from concur.planning._nearest import nearest_posture
from concur.planning._program import Search
from concur.planning._targets import targets_of
from concur.robot import Obstacle
from tests.planning.test_direct import formed

ROOT = Path(__file__).parents[2]
START = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
AROUND = np.hypot(0.4, 0.1) / 2
"""Radius of the capsule around the chassis, m."""


@pytest.fixture(scope="module")
def rover():
    model = cc.reduce(cc.load(ROOT / "examples/rover_rig/robot.toml"))
    return model, [cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))]


def block(x, y, long, wide, turn=0.0, distance=0.02):
    """A box that stands on the ground, turned about the vertical (deg)."""
    size = {"box": (long, wide, 1.0), "rpy_deg": (0.0, 0.0, turn)}
    return Obstacle.from_table("block", (x, y, 0.0), distance=distance, **size)


def nearest(robot, configurations, x, y, long, wide, turn):
    """Least distance of 61 points on the middle line of the chassis from a box, in the plane."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    line = np.array([[u, 0.0, 0.0, 1.0] for u in np.linspace(-0.1, 0.5, 61)]).T
    found = []
    for q in configurations:
        points = (robot.pose(q, "chassis") @ line)[:2].T - [x, y]
        own = points @ np.array([[c, -s], [s, c]])
        out = np.maximum(np.abs(own) - [long / 2, wide / 2], 0.0)
        found.append(np.linalg.norm(out, axis=1).min())
    return min(found)


BOXES = [
    (1.3, -0.19, 0.25, 1.31, 0.0, (2.02, 0.0)),
    *[
        pytest.param(*case, marks=pytest.mark.extended)
        for case in (
            (1.5, 0.0, 0.76, 2.34, 0.0, (2.71, -0.37)),
            (1.7, 0.03, 1.18, 2.42, -27.0, (4.06, 0.02)),
            (1.5, 0.34, 0.75, 0.55, 0.0, (3.01, 0.16)),
            (1.5, -0.04, 1.02, 1.95, -31.0, (3.33, -0.22)),
            (1.4, 0.38, 0.1, 2.3, -3.0, (2.4, -0.38)),
        )
    ],
]


@pytest.mark.parametrize(("x", "y", "long", "wide", "turn", "goal"), BOXES)
def test_broad_boxes_are_passed(rover, x, y, long, wide, turn, goal) -> None:
    model, base = rover
    wall = block(x, y, long, wide, turn)
    found = cc.plan(model, base, START, {"base": goal}, PlanLimits(margin=0.1), [wall])
    assert found.reached
    assert nearest(model.robot, found.q, x, y, long, wide, turn) >= AROUND + 0.02 - 1e-3
    free = cc.plan(model, base, START, {"base": goal}, PlanLimits(margin=0.1))
    assert nearest(model.robot, free.q, x, y, long, wide, turn) < AROUND  # it is in the way
    assert free.duration < found.duration


def posture(rover, goal, wall):
    model, base = rover
    form, *_ = formed(model, base, START, {"base": goal}, PlanLimits(speeds=5.0))
    form = dataclasses.replace(form, clearance=clearance_of(model.robot, [wall], "plan"))
    return nearest_posture(form, targets_of(base, {"base": goal}, "plan"), np.array(START, float))


@pytest.mark.parametrize(("share", "solved"), [(1.02, True), (0.95, False)])
def test_goals_behind_a_wall_are_in_reach_and_goals_in_it_are_not(rover, share, solved) -> None:
    """A wall from 1.35 to 1.65 m; the goal beyond it, around the least distance of the chassis."""
    wall = block(1.5, 0.0, 0.3, 8.0)
    found = posture(rover, [1.65 + share * (AROUND + 0.02), 0.0], wall)
    assert found.solved is solved
    if not solved:
        assert "limited by the distance of chassis from block (0.02 m)" in found.why
        # The nearest goal is on the far side, where the goal is.
        assert found.wanted[0] == pytest.approx(1.65 + AROUND + 0.02, abs=5e-3)


@pytest.fixture(scope="module")
def straight(rover):
    """Search and path of a motion straight to (2.25, 0)."""
    model, base = rover
    form, start, wanted = formed(model, base, START, {"base": [2.25, 0.0]}, PlanLimits(speeds=5.0))
    clearance = clearance_of(model.robot, [block(1.2, 0.0, 0.2, 1.0)], "plan")
    form = dataclasses.replace(form, clearance=clearance)
    shares = np.full(len(form.facts), 0.999), np.ones(3)
    search = Search(form, start, wanted, None, *shares, np.zeros(form.within.size))
    return search, search.path(direct_guess(form, start, wanted, None))


@pytest.mark.parametrize(("turn", "side"), [(0, 1.0), (1, -1.0)])
@pytest.mark.parametrize(("share", "count"), [(0.99, 1), (1.01, 2)])
def test_long_boxes_have_two_corners(straight, turn, side, share, count) -> None:
    search, path = straight
    own = [made.body for made in search.form.clearance.capsules].index("chassis")
    room = room_of(search.form.clearance.capsules[own], block(1.2, 0.0, 0.2, 1.0))
    wall = block(1.2, 0.0, 2.0 * share * room, 1.0)
    corners = _beside(search, path, STEPS // 2, own, wall, turn)
    assert len(corners) == count
    for corner in corners:
        assert corner[1] == pytest.approx(side * (0.5 + room), abs=1e-2)
    along = sorted(corner[0] - 1.2 for corner in corners)
    wanted = [0.0] if count == 1 else [-share * room, share * room]
    np.testing.assert_allclose(along, wanted, atol=2e-2)


def test_corners_share_the_time_by_the_length_of_the_way(straight) -> None:
    """From 0.2 to 2.2 m along x: a corner at a quarter of the way, then one at three quarters."""
    search, path = straight
    places = [(0, np.array([0.7, 0.0, 0.2])), (0, np.array([1.7, 0.0, 0.2]))]
    a, b = sorted(k for k, _, _ in _timed(search, path, places))
    assert abs(a - STEPS / 4) <= 3
    assert abs(b - 3 * STEPS / 4) <= 3
    at_start = [(0, search.form.middle(path, 0, 0))] * 2
    assert sorted(k for k, _, _ in _timed(search, path, at_start)) == [APART, 2 * APART]
    at_end = [(0, search.form.middle(path, STEPS, 0))] * 2
    ends = sorted(k for k, _, _ in _timed(search, path, at_end))
    assert ends == [STEPS - 2 * APART, STEPS - APART]
