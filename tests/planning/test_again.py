"""Plans from a state on the way: torques do not jump, and what is left of a motion is kept."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._direct import direct_guess, rest_of
from concur.planning._graphs import STEPS
from concur.planning._program import Search
from concur.planning._transcription import Start
from tests.planning.test_direct import formed

START = [0, 0, 0, 0.5, -1.0]
GOAL = {"hand": [1.3, 0.4]}


@pytest.fixture(scope="module")
def problem():
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    return model, [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]


@pytest.fixture(scope="module")
def planned(problem):
    return cc.plan(*problem, START, GOAL, PlanLimits(torques=5.0, speeds=2.0))


@pytest.mark.parametrize("share", [0.15, 0.18, 0.4, 0.7])
def test_torques_do_not_jump_where_a_plan_is_made_again(planned, share) -> None:
    k = round(share * (len(planned.t) - 1))
    smooth = planned.again(planned.q[k], planned.s[k], a=planned.a[k])
    assert smooth.reached
    np.testing.assert_allclose(smooth.a[0], planned.a[k], atol=1e-9)
    np.testing.assert_allclose(smooth.u[0], planned.u[k], atol=1e-8)
    assert smooth.duration < 1.02 * (planned.duration - planned.t[k])
    jumps = planned.again(planned.q[k], planned.s[k])
    np.testing.assert_allclose(jumps.a[0], 0.0, atol=1e-9)
    jump = np.abs(jumps.u[0] - planned.u[k]).max()
    assert (jump > 0.1) == (np.abs(planned.a[k]).max() > 0.1)  # at the speed limit there is none
    assert smooth.made_for["start"] != jumps.made_for["start"]


def test_starts_have_up_to_three_parts(problem, planned) -> None:
    k = len(planned.t) // 3
    state = planned.q[k], planned.s[k], planned.a[k]
    limits = PlanLimits(torques=5.0, speeds=2.0)
    found = cc.plan(*problem, state, GOAL, limits)
    np.testing.assert_allclose(found.u[0], planned.u[k], atol=1e-8)
    with pytest.raises(cc.errors.ShapeError, match="accelerations of `start`: expected 2 numbers"):
        cc.plan(*problem, (*state[:2], [0.0]), GOAL, limits)
    with pytest.raises(cc.errors.ShapeError, match="accelerations of `start`: expected 2 numbers"):
        planned.again(*state[:2], a=[0.0, 1.0, 2.0])


@pytest.fixture(scope="module")
def moving(problem):
    """Search that starts with speeds and accelerations, with its first unknowns."""
    limits = PlanLimits(torques=5.0, speeds=2.0, accelerations=9.0, jerks=99.0)
    form, start, wanted = formed(*problem, START, GOAL, limits, speeds=[0.4, -0.3])
    start = dataclasses.replace(start, a=np.array([0.8, -1.1]))
    shares = np.full(len(form.facts), 0.999), np.ones(3)
    search = Search(form, start, wanted, None, *shares, np.zeros(form.within.size))
    return search, direct_guess(form, start, wanted, None)


def test_slopes_of_motions_that_start_with_an_acceleration(moving) -> None:
    """By central differences, in each unknown and the duration."""
    search, unknowns = moving
    slopes = search.path(unknowns).slopes
    assert slopes is not None
    step = 1e-6
    for k in range(unknowns.size):
        ends = []
        for sign in (1.0, -1.0):
            other = unknowns.copy()
            other[k] += sign * step
            ends.append(search.values(other))
        for part, exact in (("g", slopes[0][..., k]), ("e", slopes[1][..., k])):
            found = (getattr(ends[0], part) - getattr(ends[1], part)) / (2.0 * step)
            np.testing.assert_allclose(found, exact, atol=2e-6 * (1.0 + np.abs(exact).max()))


def test_control_points_of_rates_follow_the_duration(moving) -> None:
    search, unknowns = moving
    time, step = float(unknowns[-1]), 1e-6
    by_time = search.start.parts_by_time(time).ravel()
    values = [
        search._derivatives(search.form.points(search.start, np.array([*unknowns[:-1], t])))
        for t in (time - step, time + step)
    ]
    for before, after, (_, by_start, _) in zip(*values, search._linear, strict=True):
        assert before.size
        np.testing.assert_allclose((after - before) / (2 * step), by_start @ by_time, atol=1e-6)


def test_what_is_too_much_at_the_start_is_allowed_there_alone(moving) -> None:
    search, unknowns = moving
    g = search.path(unknowns).g
    most = search.most(g)
    assert np.isinf(most[0]).all()
    np.testing.assert_allclose(most[1:], np.tile(search.shares, (STEPS, 1)))
    fast = dataclasses.replace(search.start, a=np.array([400.0, 0.0]))
    wild = dataclasses.replace(search, start=fast)
    path = wild.path(np.array([*unknowns[:-1], 1e-2]))
    own = np.abs(path.g)
    assert own[0].max() > 10.0
    assert wild._excess(unknowns, dataclasses.replace(path, g=0.0 * path.g)) < own[0].max() - 1.0
    only = dataclasses.replace(path, g=np.where(np.arange(STEPS + 1)[:, None] == 0, path.g, 0.0))
    none = dataclasses.replace(path, g=0.0 * path.g)
    assert wild._excess(unknowns, only) == wild._excess(unknowns, none)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_the_rest_of_a_motion_begins_where_it_is_nearest(moving, share) -> None:
    """Durations are what is left; shapes are those of the motion, to the error of the splines."""
    search, unknowns = moving
    form, time = search.form, float(unknowns[-1])
    points = form.points(search.start, unknowns)
    r, d, dd = (y[0] for y in form.splines.at(np.array([share])) @ points)
    path, _ = form.dense(search.start, unknowns, search.wanted)
    at = round(share * (len(path.x) - 1))
    start = Start(path.x[at], r, d / time, dd / time**2)
    rest = rest_of(form, search.start, unknowns, start)
    assert rest[-1] == pytest.approx((1.0 - share) * time, rel=5e-3)
    left = form.splines.at(np.linspace(0.0, 1.0, 40))[0] @ form.points(start, rest)
    whole = form.splines.at(np.linspace(share, 1.0, 40))[0] @ points
    np.testing.assert_allclose(left, whole, atol=2e-2)
