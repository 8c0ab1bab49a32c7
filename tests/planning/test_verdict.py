"""Verdicts of plans: each row of the dense check decides, on both sides of its tolerance."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._clearances import clearance_of
from concur.planning._direct import direct_guess
from concur.planning._verdict import EXACT, KEPT, ROUNDED, is_held, rows_of
from concur.robot import Obstacle
from tests.planning.test_direct import formed

ROOT = Path(__file__).parents[2]
START = [0, 0, 0, 0.5, -1.0]
OF = {"speed": "speeds", "acceleration": "accelerations", "jerk": "jerks"}


@pytest.fixture(scope="module")
def motion():
    """A motion of a floater with limits that it does not reach, and nothing missed."""
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    limits = PlanLimits(torques=1e3)
    form, start, wanted = formed(model, [hand], START, {"hand": [1.3, 0.4]}, limits)
    unknowns = direct_guess(form, start, wanted, 3.0)
    path, _ = form.dense(start, unknowns, wanted)
    return form, dataclasses.replace(path, e=0.0 * path.e)


def held(form, path) -> bool:
    return is_held(form, path, rows_of(form, path, 3.0))


def limited(form, **changed):
    return dataclasses.replace(form, bounds=dataclasses.replace(form.bounds, **changed))


def test_nothing_is_exceeded_by_the_motion_as_it_is(motion) -> None:
    assert held(*motion)


@pytest.mark.parametrize("quantity", OF)
@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize(("share", "kept"), [(1.0 + 0.9 * KEPT, True), (1.0 + 1.1 * KEPT, False)])
def test_rates_of_each_joint_decide(motion, quantity, joint, share, kept) -> None:
    form, path = motion
    times = np.linspace(0.0, 3.0, len(path.x))
    third = np.gradient(path.a, times, axis=0)
    # The largest jerk is not at an end, where differences have one side.
    values = {"speed": path.s, "acceleration": path.a, "jerk": third}[quantity][:, joint]
    peak = np.abs(values).max()
    if quantity == "jerk":
        own = np.abs(form.jerks(path, 3.0)[:, joint]).max()
        assert own == pytest.approx(peak, rel=0.1)
        peak = own
    limits = np.full(2, np.inf)
    limits[joint] = peak / share
    assert held(limited(form, **{OF[quantity]: limits}), path) is kept
    rows = rows_of(limited(form, **{OF[quantity]: limits}), path, 3.0)
    (row,) = [row for row in rows if row.quantity.startswith(quantity)]
    assert row.value == pytest.approx(peak)
    assert row.holds is kept


@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("side", ["low", "high"])
@pytest.mark.parametrize(("over", "kept"), [(0.9 * ROUNDED, True), (1.1 * ROUNDED, False)])
def test_ranges_of_each_joint_decide(motion, joint, side, over, kept) -> None:
    form, path = motion
    bounds = np.full(2, -np.inf if side == "low" else np.inf)
    values = path.r[:, joint]
    bounds[joint] = values.min() + over if side == "low" else values.max() - over
    assert held(limited(form, **{side: bounds}), path) is kept


@pytest.mark.parametrize("row", [0, 1, 2, 3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("miss", "kept"), [(0.9 * EXACT, True), (1.1 * EXACT, False)])
def test_each_row_of_the_goal_decides(motion, row, sign, miss, kept) -> None:
    """Two coordinates of the hand, and its two velocities, which are zero at the goal."""
    form, path = motion
    e = np.zeros(4)
    e[row] = sign * miss
    assert held(form, dataclasses.replace(path, e=e)) is kept


@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("share", "kept"), [(1.0 + 0.9 * KEPT, True), (1.0 + 1.1 * KEPT, False)])
def test_torques_decide(motion, joint, sign, share, kept) -> None:
    form, path = motion
    g = path.g.copy()
    g[17, joint] = sign * share
    assert held(form, dataclasses.replace(path, g=g)) is kept


@pytest.mark.parametrize(("over", "kept"), [(0.9 * KEPT, True), (1.1 * KEPT, False)])
def test_distances_decide(over, kept) -> None:
    """A row with one side: nearer than allowed by parts of a tenth of a metre."""
    robot = cc.load(ROOT / "examples/rover_rig/robot.toml")
    post = Obstacle("post", (1.2, 0.4, -0.5), (1.2, 0.4, 0.5), 0.1)
    clearance = clearance_of(robot, [post], "plan")
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    q0 = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
    limits = PlanLimits(speeds=5.0)
    form, start, wanted = formed(cc.reduce(robot), [base], q0, {"base": [0.5, 0.0]}, limits)
    form = dataclasses.replace(form, clearance=clearance)
    path, _ = form.dense(start, direct_guess(form, start, wanted, 3.0), wanted)
    far = dataclasses.replace(path, e=0.0 * path.e)
    assert held(form, far)
    k = next(k for k, fact in enumerate(form.facts) if fact[0].startswith("distance"))
    g = far.g.copy()
    g[40, k] = 1.0 + over
    assert held(form, dataclasses.replace(far, g=g)) is kept
    row = next(
        row for row in rows_of(form, dataclasses.replace(far, g=g), 3.0)
        if row.quantity == form.facts[k][0]
    )  # fmt: skip
    assert row.value == pytest.approx(-0.1 * over)
