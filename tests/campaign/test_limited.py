"""How often limits of a law are active in worlds: by the compiled program as by runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign
from concur.io import load_task
from concur.simulation import run_signals
from concur.worlds import Requirement

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_shares_of_limited_time_are_those_of_the_runs_of_worlds() -> None:
    """Gravity needs 5.9 N m: of the worlds, with other masses, some meet 7 N m and some do not.

    Those that meet it pass, because the law stays at it, and fail where the error is too large.
    """
    required = (
        Requirement("torque", "torque", (("torque:upper_arm", -7.0, 7.0),), 7.0, "N m"),
        Requirement("torque", "less", (("torque:upper_arm", -6.9999999, 6.9999999),), 7.0, "N m"),
        Requirement("error", "hand", (("error:hand", -np.inf, 0.5),), 0.5, "m"),
        Requirement("ticks", "ticks", ()),
    )
    task = replace(load_task(EXAMPLES / "rover_campaign.toml"), duration=3.0, requirements=required)
    task = task.with_law({"kind": "servo", "torque_limits": 7.0, "constraints": {}})
    campaign = Campaign(task)
    worlds = task.uncertainty.draw(range(5), 0)
    values, reasons = campaign.outcome(range(5), worlds)
    result = campaign.result(np.arange(5), worlds, values, reasons)
    met = result.extremes[:, [name for name, _ in result.signals].index("torque:upper_arm")] >= 7.0
    assert 0 < met.sum() < 5
    largest = result.extremes[:, [name for name, _ in result.signals].index("error:hand")]
    assert len(set(zip(met, largest < 0.5, strict=True))) == 3  # at the limit: both verdicts
    at, less, near, ticks = result.held.T
    assert at.all()
    assert ticks.all()
    assert np.array_equal(less, ~met)
    assert np.array_equal(near, largest < 0.5)
    shares = dict(zip([name for name, _ in result.signals], result.extremes.T, strict=True))
    for k in (0, 2):
        run = campaign.replay(worlds[k], k)
        signals = run_signals(run)
        ticks = len(run.t) - 1  # the last row is behind the last tick
        assert np.array_equal(signals["limited"], run.active.any(axis=1))
        for name, found in shares.items():
            if name.startswith("limit"):
                assert found[k] == pytest.approx(signals[name][:ticks].mean(), abs=1e-12)
    assert shares["limited"][0] == 0.0 < shares["limited"][2]
    assert (shares["limited"] <= 1.0).all()
    whole, *each = result.limited
    assert whole.value == pytest.approx(100 * shares["limited"].mean())
    assert whole.place.startswith(f"in {met.sum()} of 5 worlds, most in world ")
    assert "limit active: torque of upper_arm" in [row.quantity for row in each]
    assert "share of the time with active limits" in cc.campaign.CampaignReport(result).notes[1]


@pytest.mark.parametrize(
    ("name", "damped"),
    [
        pytest.param("rover_arm", False, marks=pytest.mark.extended),
        pytest.param("crane_car", True, marks=pytest.mark.extended),
        pytest.param("crawler", False, marks=pytest.mark.extended),
        pytest.param("free_floater", False, marks=pytest.mark.extended),
        ("free_floater_proved", False),
        pytest.param("mecanum_arm", False, marks=pytest.mark.extended),
        pytest.param("servicer", True, marks=pytest.mark.extended),
        pytest.param("two_hands", False, marks=pytest.mark.extended),
        pytest.param("unknown_payload", False, marks=pytest.mark.extended),
    ],
)
def test_shipped_tasks_meet_no_limit(name: str, damped: bool) -> None:
    """As they are, and with constraints; some pass where directions are damped by default."""
    task = load_task(EXAMPLES / f"{name}.toml")
    run = task.with_law({"kind": "servo", "constraints": {}}).simulate()
    names = np.array(run.servo.limit_names)[run.active.any(axis=0)]
    assert set(names) == {"margin"} & {"margin" * damped}
    if not damped:
        row = next(row for row in run.rows if row.quantity.startswith("share of the time in"))
        assert row.value == 0.0
    if task.law.limit_names:
        assert not task.simulate().active.any()
