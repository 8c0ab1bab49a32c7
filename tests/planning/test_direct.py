"""First motions whose outputs go straight to their goals, on wheels and with momentum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits, _direct
from concur.planning._direct import MOST, PEAK, _shapes, direct_guess
from concur.planning._graphs import STEPS
from concur.planning._path_limits import bounds_of, ground_of
from concur.planning._program import Search
from concur.planning._targets import targets_of, vias_of
from concur.planning._transcription import Start, Transcription

ROVER = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]


def formed(model, outputs, q0, goals, limits, speeds=None, via=(), places=()):
    """Transcription, start and wanted numbers of a problem."""
    q0 = np.array(q0, dtype=float)
    targets = tuple(targets_of(outputs, goals, "plan"))
    bounds = bounds_of(model, limits, "plan")
    ground = ground_of(model, limits, "plan")
    vias = vias_of(outputs, via, "plan")
    numbers = q0, ground, vias, places
    form = Transcription(model, tuple(outputs), targets, bounds, None, None, 0.0, *numbers)
    s0 = np.zeros(model.ns) if speeds is None else np.array(speeds)
    start = Start(q0[form.rest], q0[form.shape], s0, np.zeros(model.ns))
    return form, start, np.concatenate([t.wanted for own in (targets, *vias) for t in own])


@pytest.fixture(scope="module")
def rover():
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    goals = {"base": [1.0, 0.6], "hand": [1.2, 1.1, 0.5]}
    return cc.reduce(cc.robots.rover_arm()), [base, hand], ROVER, goals, PlanLimits(speeds=5.0)


def mirrored():
    """The problem of `floater` on the other side of the x axis."""
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, 0.2, 0, 0, 0, -0.3])
    hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    return model, [hand], [0, 0, 0, -0.5, 1.0], {"hand": [1.3, -0.4]}, PlanLimits(speeds=2.0)


@pytest.fixture(scope="module")
def floater():
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    return model, [hand], [0, 0, 0, 0.5, -1.0], {"hand": [1.3, 0.4]}, PlanLimits(speeds=2.0)


@pytest.mark.parametrize("kind", ["rover", "floater"])
@pytest.mark.parametrize("duration", [None, 4.0])
def test_a_first_motion_ends_near_its_goal(request, kind, duration) -> None:
    problem = request.getfixturevalue(kind)
    form, start, wanted = formed(*problem)
    unknowns = direct_guess(form, start, wanted, duration)
    path, _ = form.dense(start, unknowns, wanted)
    still = np.abs(form.to_goal(start.x, start.r, wanted)[0])
    assert still.max() > 0.1
    assert np.abs(path.e[: len(still)]).max() < 0.02
    # Half way in time, half of the way: the outputs go straight.
    mid = len(path.x) // 2
    e, _ = form.to_goal(path.x[mid], path.r[mid], wanted)
    assert np.abs(np.abs(e) - 0.5 * still).max() < 0.03
    if duration is None:
        assert 0.7 * PEAK < (np.abs(path.s) / form.bounds.speeds).max() < 1.1 * PEAK
    else:
        assert unknowns[-1] == duration


def test_a_first_motion_keeps_joints_inside_their_ranges(floater) -> None:
    form, start, wanted = formed(*floater)
    free, _ = form.dense(start, direct_guess(form, start, wanted, None), wanted)
    j = int(np.argmax(np.ptp(free.r, axis=0)))
    moved = free.r[:, j] - start.r[j]
    sign = np.sign(moved[np.argmax(np.abs(moved))])
    wall = start.r[j] + 0.5 * sign * np.abs(moved).max()
    low, high = np.full(2, -np.inf), np.full(2, np.inf)
    (high if sign > 0 else low)[j] = wall
    walled = dataclasses.replace(form, bounds=dataclasses.replace(form.bounds, low=low, high=high))
    path, _ = walled.dense(start, direct_guess(walled, start, wanted, None), wanted)
    assert (sign * (path.r[:, j] - wall)).max() < 0.02
    # The other joint does what it can: the goal is missed by less than the first way alone.
    assert np.abs(path.e[:2]).max() < 0.5


@pytest.mark.by_default(1)
@pytest.mark.parametrize("place", [[3.0, 0.4], [9.0, 0.4], [-9.0, 4.0], [1e6, 0.0]])
def test_first_motions_to_goals_out_of_reach_stay_finite(floater, place) -> None:
    """Also the search that begins with them; the plan states that it misses the goal."""
    model, outputs, q0, _, limits = floater
    goals = {"hand": place}
    form, start, wanted = formed(model, outputs, q0, goals, limits)
    speeds = form.bounds.speeds
    rates = np.abs(np.diff(_shapes(form, start, wanted, 2.0, speeds), axis=0)) * STEPS
    assert (rates / (2.0 * speeds)).max() == pytest.approx(MOST)
    found = cc.plan(model, outputs, q0, goals, limits, guesses=1)
    assert not found.reached
    assert all(np.isfinite(part).all() for part in (found.q, found.s, found.u))
    assert found.missed["hand"] > 0.5
    assert "out of reach" in found.why


@pytest.mark.parametrize(("share", "same"), [(1.001, True), (0.999, False)])
def test_speeds_of_a_first_motion_are_cut_at_a_multiple_of_their_limits(
    floater, monkeypatch, share, same
) -> None:
    form, start, wanted = formed(*floater)
    speeds = form.bounds.speeds
    free = _shapes(form, start, wanted, 2.0, speeds)
    most = (np.abs(np.diff(free, axis=0)) * STEPS / (2.0 * speeds)).max()
    assert most < MOST
    monkeypatch.setattr(_direct, "MOST", share * most)
    assert np.array_equal(_shapes(form, start, wanted, 2.0, speeds), free) is same


def test_a_first_motion_begins_with_the_speed_of_the_start(rover) -> None:
    form, start, wanted = formed(*rover, speeds=[0.5, 0.4, 0.1, 0.0, -0.2])
    path, _ = form.dense(start, direct_guess(form, start, wanted, None), wanted)
    np.testing.assert_allclose(path.s[0], start.s, atol=1e-9)
    assert np.abs(path.e).max() < 0.1


@pytest.mark.parametrize("side", ["low", "high"])
def test_motions_beyond_a_range_come_back(floater, side) -> None:
    """The forearm swings beyond its start and its end; then its range ends half way there."""
    form, start, wanted = formed(*(floater if side == "low" else mirrored()))
    shares = np.full(len(form.facts), 0.999), np.ones(3)
    free = Search(form, start, wanted, None, *shares, np.zeros(4))
    found = free.solve(direct_guess(form, start, wanted, None))
    assert found.kept
    own = found.path.points[:, 1]
    ends = own[[0, -1]]
    wall = (own.min() + ends.min()) / 2 if side == "low" else (own.max() + ends.max()) / 2
    assert abs(wall - own.min() if side == "low" else own.max() - wall) > 0.05
    bounds = {"low": np.full(2, -np.inf), "high": np.full(2, np.inf)}
    bounds[side][1] = wall
    limited = dataclasses.replace(form.bounds, **bounds)
    walled = dataclasses.replace(free, form=dataclasses.replace(form, bounds=limited))
    again = walled.solve(found.unknowns)
    assert again.kept
    beyond = wall - again.path.points[:, 1] if side == "low" else again.path.points[:, 1] - wall
    assert beyond.max() < 1e-5
