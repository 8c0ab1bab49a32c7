"""Thresholds of goals on the way, of wheels and of causes, each on both sides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits, _nearest
from concur.planning._direct import LEAST_LEG, legs_of
from concur.planning._graphs import STEPS
from concur.planning._ground import COUNTED, weight_of
from concur.planning._nearest import COUNTS, ITERATIONS, LAST, _Postures, nearest_posture
from concur.planning._path_limits import ground_of
from concur.planning._targets import targets_of
from concur.planning._verdict import KEPT
from tests.planning.test_direct import formed
from tests.planning.test_ground import CASTER

ROVER = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
START = [0, 0, 0, 0.5, -1.0]
BASE = [cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))]
HAND = [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]


@pytest.fixture(scope="module")
def rover():
    return cc.reduce(cc.robots.rover_arm())


@pytest.mark.parametrize(("end", "leg"), [(0, 0), (1, 1)])
def test_legs_without_a_way_have_a_share_of_the_time(rover, end, leg) -> None:
    """A goal on the way at the start, or at the goal: its leg has 0.1 parts of 1.1."""
    places = ([0.25, 0.0], [2.25, 0.0])
    given = formed(rover, BASE, ROVER, {"base": places[1]}, PlanLimits(speeds=5.0),
                   via=[{"base": places[end]}])  # fmt: skip
    (at,) = legs_of(*given)
    share = LEAST_LEG / (1.0 + LEAST_LEG)
    assert at == pytest.approx(STEPS * (share if leg == 0 else 1.0 - share), abs=1.0)
    assert LEAST_LEG == 0.1


def test_lacking_load_counts_as_a_torque_at_twice_its_limit() -> None:
    """A load that is less than the least one by a part of the mean load."""
    model = cc.reduce(dataclasses.replace(cc.robots.rover_arm(), supports=CASTER))
    limits = PlanLimits(speeds=5.0, least_load=20.0)
    ground = ground_of(model, limits, "plan")
    assert ground is not None
    form, *_ = formed(model, BASE, ROVER, {"base": [0.5, 0.0]}, limits)
    mean = weight_of(model) / len(ground.names)
    loads = [fact for fact in form.facts if fact[0].startswith("load of")]
    assert loads
    for _, _, scale, offset in loads:

        def share(load, scale=scale, offset=offset):
            return (load - offset) / scale

        assert share(20.0) == pytest.approx(1.0)
        assert share(20.0 - COUNTED * mean) == pytest.approx(2.0)
    assert COUNTED == 0.3


@pytest.mark.parametrize(("share", "named"), [(1.01, True), (0.99, False)])
def test_limits_with_a_thousandth_of_the_largest_price_are_named(share, named) -> None:
    model = cc.reduce(cc.robots.planar_floater())
    goal = {"hand": [1.3, 0.4]}
    form, _, wanted = formed(model, HAND, START, goal, PlanLimits(torques=5.0, speeds=2.0))
    postures = _Postures(form, wanted, np.array(START, dtype=float), KEPT)
    seen = postures.at(postures.starts())
    prices = np.zeros(len(postures.rows) + model.ns + len(postures._axes))
    prices[0], prices[1] = 2.0, 2.0 * share * COUNTS
    names = [form.facts[k][0] for k in postures.rows[:2]]
    told = postures._causes(seen, 0, prices)
    assert told[0].startswith(names[0])
    assert any(one.startswith(names[1]) for one in told) is named


@pytest.mark.parametrize(("beyond", "solved"), [(-0.02, True), (0.05, False)])
def test_postures_that_end_at_the_step_limit_are_judged_alike(monkeypatch, beyond, solved) -> None:
    """One step for each posture first: the last ones go on from there, with room or without."""
    model = cc.reduce(cc.robots.planar_floater())
    stretched = np.zeros(5)
    robot = model.robot
    hand = (robot.pose(stretched, "forearm") @ [1.0, 0, 0, 1.0])[:2]
    masses = np.array([body.inertia.mass for body in robot.bodies])

    def center(q):
        places = [robot.pose(q, b.name) @ [*b.inertia.com, 1.0] for b in robot.bodies]
        return masses @ np.array(places)[:, :2] / masses.sum()

    start = center(np.array(START, dtype=float))
    far = float(np.linalg.norm(hand - center(stretched)))
    goal = {"hand": start + (far + beyond) * np.array([0.6, 0.8])}
    form, *_ = formed(model, HAND, START, goal, PlanLimits(speeds=2.0, singular=0.0))
    targets = targets_of(HAND, goal, "plan")
    for count in (1, ITERATIONS):
        monkeypatch.setattr(_nearest, "ITERATIONS", count)
        monkeypatch.setattr(_nearest, "LAST", LAST + ITERATIONS)
        assert nearest_posture(form, targets, np.array(START, dtype=float)).solved is solved
