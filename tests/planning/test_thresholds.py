"""Thresholds of the search for a motion, each on both sides."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._direct import direct_guess
from concur.planning._program import CLOSE, INSIDE, REACHED, SETTLED, Found, Search
from concur.planning._to_goal import BINDING, Planner
from concur.results import Row
from tests.planning.test_direct import formed, mirrored

START = [0, 0, 0, 0.5, -1.0]


@pytest.fixture(scope="module")
def search():
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    form, start, wanted = formed(model, [hand], START, {"hand": [1.3, 0.4]}, PlanLimits(speeds=2.0))
    shares = np.full(len(form.facts), 0.999), np.ones(3)
    return Search(form, start, wanted, None, *shares, np.zeros(4))


@pytest.fixture(scope="module")
def found(search):
    made = search.solve(direct_guess(search.form, search.start, search.wanted, None))
    assert made.kept
    return made


@pytest.mark.parametrize(
    ("excess", "missed", "kept"),
    [
        (0.9 * SETTLED, 9.0 * REACHED, True),
        (1.1 * SETTLED, 0.0, False),
        (0.0, 11.0 * REACHED, False),
    ],
)
def test_motions_count_as_found_within_excess_and_miss(found, excess, missed, kept) -> None:
    assert dataclasses.replace(found, excess=excess, missed=missed).kept is kept


@pytest.mark.parametrize(("share", "closed"), [(0.9, True), (1.1, False)])
def test_small_misses_are_taken_away_without_a_program(search, found, share, closed) -> None:
    """The goal moves by a part of what counts as close; no program is allowed."""
    moved = dataclasses.replace(search, wanted=np.add(search.wanted, [share * CLOSE, 0.0]))
    again = moved.solve(found.unknowns, 0)
    assert again.programs == 0
    assert again.missed == pytest.approx(0.0 if closed else share * CLOSE, abs=1e-8)


@pytest.mark.parametrize("side", ["low", "high"])
def test_control_points_stay_a_millionth_inside_of_ranges(search, found, side) -> None:
    """The forearm swings beyond its ends, of the mirrored problem on the other side."""
    if side == "high":
        form, start, wanted = formed(*mirrored())
        shares = np.full(len(form.facts), 0.999), np.ones(3)
        search = Search(form, start, wanted, None, *shares, np.zeros(4))
        found = search.solve(direct_guess(form, start, wanted, None))
    own = found.path.points[:, 1]
    ends = own[[0, -1]]
    wall = (own.min() + ends.min()) / 2 if side == "low" else (own.max() + ends.max()) / 2
    bounds = {"low": np.full(2, -np.inf), "high": np.full(2, np.inf)}
    bounds[side][1] = wall
    limited = dataclasses.replace(search.form.bounds, **bounds)
    walled = dataclasses.replace(search, form=dataclasses.replace(search.form, bounds=limited))
    own = walled.solve(found.unknowns).path.points[:, 1]
    room = own.min() - wall if side == "low" else wall - own.max()
    assert 0.9 * INSIDE < room < 1.1 * INSIDE


def reason(search: Search, found: Found, rows: list[Row], duration: float | None) -> str:
    made: Any = None
    planner = Planner(search.form, "plan", duration, 8, made)
    samples = {"hand": (np.array([[1.2, 0.4]]),)}
    return planner._reason(rows, {"hand": 0.1}, samples, ("no", "no"))


@pytest.mark.parametrize("quantity", ["torque of a", "speed of a", "acceleration of a"])
@pytest.mark.parametrize(("share", "named"), [(BINDING + 1e-3, True), (BINDING - 1e-3, False)])
def test_rates_near_their_limit_are_named_where_time_is_given(
    search, found, quantity, share, named
) -> None:
    rows = [Row.judged(quantity, 20.0 * share, 20.0)]
    assert (f"limited by the {quantity}" in reason(search, found, rows, 4.0)) is named
    # With time to spare a rate forbids nothing.
    assert "out of reach" in reason(search, found, rows, None)


@pytest.mark.parametrize("quantity", ["position of a", "distance of a from b"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("part", "named"), [(0.9, True), (1.1, False)])
def test_places_near_their_limit_are_named(search, found, quantity, sign, part, named) -> None:
    rows = [Row.judged(quantity, 0.5 + sign * part * (1.0 - BINDING), 0.5, slack=1.0)]
    told = reason(search, found, rows, None)
    assert (f"limited by the {quantity}" in told) is named
    assert ("out of reach" in told) is not named
