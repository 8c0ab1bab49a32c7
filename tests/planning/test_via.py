"""Goals on the way: passed in their order, inside their regions, as early or late as is fast."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import concur as cc
from concur.errors import ConcurError
from concur.io import load_goal, plan_task
from concur.planning import PlanLimits
from concur.planning._direct import legs_of
from tests.planning.test_direct import formed

ROOT = Path(__file__).parents[2]
START = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
GOAL = {"base": [2.0, 0.3], "hand": [2.3, 0.8, 0.5]}
LIMITS = PlanLimits(torques=10.0, speeds=5.0)
REGION = {"base": {"position": [1.0, 0.6], "within": 0.05}}
OUTPUTS = [
    cc.Output("base", "chassis", "R2", point=(0.25, 0, 0)),
    cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
]


@pytest.fixture(scope="module")
def model():
    return cc.reduce(cc.robots.rover_arm())


@pytest.fixture(scope="module")
def passing(model):
    return cc.plan(model, OUTPUTS, START, GOAL, LIMITS, via=[REGION])


def distances(found, name, place):
    """Times, and largest distance of a coordinate from a place."""
    times = np.linspace(0.0, found.duration, 4001)
    return times, np.abs(CubicSpline(found.t, found.samples[name][0])(times) - place).max(axis=1)


def test_a_motion_passes_a_region_on_its_way(model, passing) -> None:
    assert passing.reached
    assert passing.missed["via 1"] < 1e-6
    assert distances(passing, "base", [1.0, 0.6])[1].min() <= 0.05 + 1e-4
    free = cc.plan(model, OUTPUTS, START, GOAL, LIMITS)
    assert distances(free, "base", [1.0, 0.6])[1].min() > 0.1
    assert passing.duration > free.duration
    assert all(row.holds is not False for row in passing.rows)


@pytest.mark.extended
def test_regions_are_passed_in_their_order(model) -> None:
    """Of the base, and then of the hand."""
    hand = {"hand": {"position": [1.5, 0.9, 0.6], "within": 0.05}}
    found = cc.plan(model, OUTPUTS, START, GOAL, LIMITS, via=[REGION, hand])
    assert found.reached
    times, base = distances(found, "base", [1.0, 0.6])
    _, arm = distances(found, "hand", [1.5, 0.9, 0.6])
    assert max(base.min(), arm.min()) <= 0.05 + 1e-4
    assert times[base <= 0.05 + 1e-4].min() < times[arm <= 0.05 + 1e-4].max()


@pytest.mark.extended
def test_what_is_behind_is_not_passed_again(passing) -> None:
    """From beyond the region it goes on to the goal, or back to the region if it has to."""
    beyond = int(np.argmax(passing.t > 0.8 * passing.duration))
    state = passing.q[beyond], passing.s[beyond]
    rest = passing.again(*state, passed=1)
    for wrong in (-1, 1.0, True, 99):  # only goals on the way of this plan can be behind
        with pytest.raises(ConcurError, match="`passed`: expected a whole number from 0 to"):
            passing.again(*state, passed=wrong)
    assert rest.reached
    assert "via 1" not in rest.missed
    assert distances(rest, "base", [1.0, 0.6])[1].min() > 0.5
    back = passing.again(*state)
    assert back.reached
    assert back.made_for != rest.made_for  # a file of one is none of the other
    assert distances(back, "base", [1.0, 0.6])[1].min() <= 0.05 + 1e-4
    assert back.duration > 1.5 * rest.duration


def test_legs_take_the_share_of_time_that_their_speeds_need(model) -> None:
    """A goal on the way near the start is passed early, one near the goal late."""
    near = {"base": [0.75, 0.05]}
    places = []
    for way in (near, {"base": [1.9, 0.27]}):
        given = formed(model, OUTPUTS[:1], START, {"base": [2.25, 0.35]}, LIMITS, via=[way])
        places.append(legs_of(*given)[0])
    assert 8 <= places[0] <= 15
    assert 33 <= places[1] <= 40


def test_a_goal_on_the_way_beyond_the_arm_is_said(model) -> None:
    high = {"hand": {"position": [np.nan, np.nan, 3.0]}}
    found = cc.plan(model, OUTPUTS, START, GOAL, LIMITS, via=[high], guesses=2)
    assert not found.reached
    assert "via 1 is" in found.why
    assert found.missed["via 1"] > 1.5


@pytest.mark.parametrize(
    "via",
    [
        *[{"base": [1.0, 0.6]}, 3, "base", None, [3], [{}], [{"tool": [1.0]}], [REGION] * 9],
        [{"base": {"position": [1.0, 0.6], "within": -1.0}}],
    ],
    ids=repr,
)
def test_wrong_goals_on_the_way_are_refused(model, via) -> None:
    with pytest.raises(ConcurError, match="`via`"):
        cc.plan(model, OUTPUTS, START, GOAL, LIMITS, via=via)


@pytest.mark.extended
def test_tasks_have_goals_on_the_way(tmp_path) -> None:
    text = (ROOT / "examples/planned_rover.toml").read_text(encoding="utf-8")
    text = text.replace("rover_rig/robot.toml", str(ROOT / "examples/rover_rig/robot.toml"))
    text = text[: text.index("[[plan.obstacle]]")] + text[text.index("[initial.q]") :]
    path = tmp_path / "task.toml"
    path.write_text(text, encoding="utf-8")
    free = plan_task(*load_goal(path))
    free.save(tmp_path / "task.plan.json")
    assert cc.load_task(path).outputs[0].name == "base"
    via = "[[plan.via]]\nbase = { position = [1.2, 0.6], within = 0.1 }\n\n"
    path.write_text(text.replace("[initial.q]", via + "[initial.q]"), encoding="utf-8")
    with pytest.raises(ConcurError, match="other values of goals"):
        cc.load_task(path)
    found = plan_task(*load_goal(path))
    assert found.reached
    found.save(tmp_path / "task.plan.json")
    cc.load_task(path)
    assert distances(found, "base", [1.2, 0.6])[1].min() <= 0.1 + 1e-4
    assert distances(free, "base", [1.2, 0.6])[1].min() > 0.15
    wrong = text.replace("[initial.q]", "[plan.via]\nbase = [1.2, 0.6]\n\n[initial.q]")
    path.write_text(wrong, encoding="utf-8")
    with pytest.raises(ConcurError, match=r"tables \[\[plan.via\]\]"):
        load_goal(path)


@pytest.mark.extended
def test_plans_are_made_for_their_goals_on_the_way(model, passing) -> None:
    other = dataclasses.replace(passing)
    wider = {"base": {"position": [1.0, 0.6], "within": 0.06}}
    again = cc.plan(model, OUTPUTS, START, GOAL, LIMITS, via=[wider], guesses=1)
    assert other.made_for["goals"] != again.made_for["goals"]
    assert {k: v for k, v in other.made_for.items() if k != "goals"} == {
        k: v for k, v in again.made_for.items() if k != "goals"
    }
