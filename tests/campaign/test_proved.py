"""Proved bounds over sampled runs: counted as broken only by runs that leave their assumptions."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign, CampaignReport, sampled_curves, verify
from concur.campaign._proved import disturbance_size, torque_bounds, true_velocity_error
from concur.certify import operating_bounds
from concur.show import curves_figure
from tests.cli.test_gains import TASK

WORLDS = f"""{TASK}
[[imperfections.wrenches]]
name = "push"
body = "forearm"
start = 0.5
end = 4.0

[uncertainty.force]
push = [[0.1, 0.3], [0.1, 0.3], 0]

[[requirements]]
kind = "settle"
output = "hand"
within = 3.0
radius = 0.5

[[requirements]]
kind = "torque"
below = 4.0
"""
BOX = {"upper_arm": (-0.7, 0.7), "forearm": (1.1, 2.0)}
ASKED: dict[str, Any] = {"speeds": 0.8, "pose_error": 0.15, "velocity_error": 0.15, "limits": 1e3}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Campaign of four pushed worlds, its result, certificate and runs."""
    path = tmp_path_factory.mktemp("proved") / "task.toml"
    path.write_text(WORLDS)
    campaign = Campaign(cc.load_task(path))
    result = verify(campaign, 4)
    certificate = cc.certify(campaign.task.servo.error_dynamics)  # the law has torque limits
    assert certificate.status is cc.Status.PROVED
    runs = [campaign.replay(*row) for row in zip(result.worlds, result.numbers, strict=True)]
    return campaign, result, certificate, runs


def hand(sampled, disturbance=None):
    """Curves, and the tube of the hand."""
    campaign, result, certificate, _ = sampled
    curves = sampled_curves(campaign, result, 4, certificate, disturbance)
    return curves, curves[0].bounds[1]


@pytest.mark.extended
def test_disturbances_are_those_of_the_motion(sampled):
    certificate, runs = sampled[2:]
    sizes = []
    for run in runs:
        # The push changes the momentum, which the law does not see.
        ve = true_velocity_error(run)
        rate = np.gradient(run.error, run.t, axis=0)  # the output is flat: xdot = -ve
        assert np.abs(rate + ve)[1:-1].max() < 2e-3 < np.abs(rate + run.velocity_error).max()
        # xdd = -KP x - KD xdot - d, by differences of the position alone.
        change = np.diff(run.error, 2, axis=0) / 0.01**2
        force = change + 4.0 * run.error[1:-1] + 4.0 * rate[1:-1]
        largest = np.linalg.norm(force, axis=1).max()
        size = disturbance_size(certificate.parts[0].channel, run.t, run.error, ve)
        step = np.linalg.norm(np.diff(force, axis=0), axis=1).max()
        assert 0.98 * largest <= size <= 1.1 * (largest + step)
        sizes.append(size)
    # Runs of which one, or all, leave the assumption have their sizes on the other side.
    for disturbance, beyond in ((max(sizes), 0), (0.999 * max(sizes), 1), (0.999 * min(sizes), 4)):
        curves, tube = hand(sampled, disturbance)
        assert (tube.name, curves[0].counts(tube)[1:]) == ("proved tube", (beyond, 0))
    curves, tube = hand(sampled)
    assert tube.name == "tube: estimate, not proved"  # its disturbance is that of the samples
    assert curves[0].counts(tube) == (0, 0, 0)
    text = f"at most {max(sizes):.3g} m/s^2 (the largest of these runs)"
    assert text in tube.assumption


def test_a_larger_disturbance_leaves_the_tube_and_the_report_says_so(sampled):
    curves, _ = hand(sampled, 0.01)
    content = CampaignReport(sampled[1], curves=curves).details
    error, norm = content["curves"][:2]
    required, tube = error["bounds"]
    assert (required["name"], required["assumption"]) == ("required", None)
    assert (tube["name"], tube["runs_above"]) == ("proved tube", 4)
    assert tube["runs_beyond_assumption"] == tube["runs_above"] > required["runs_above"]
    assert tube["runs_above_within_assumption"] == 0
    assert tube["assumption"].startswith("the disturbance is at most 0.01 m/s^2 (runs: up to ")
    # No sampled loop is the exact one.
    assert norm["bounds"][0]["runs_beyond_assumption"] == norm["runs"] == 4
    labels = [text.get_text() for text in curves_figure(curves).axes[0].get_legend().get_texts()]
    assert "runs above it: 4" in labels[-1]
    assert "runs outside this assumption: 4" in labels[-1]


def test_without_a_proof_no_bound_is_proved(sampled):
    campaign, result, certificate, _ = sampled
    undecided = replace(certificate, status=cc.Status.UNDECIDED)
    for given in (None, undecided):
        curves = sampled_curves(campaign, result, 4, given, 1.0)
        assert [curve.name for curve in curves][:1] == ["error of hand"]
        assert all(bound.name == "required" for curve in curves for bound in curve.bounds)
        assert not any("norm" in curve.name for curve in curves)


@pytest.mark.extended
def test_torques_have_the_bound_of_the_operating_box(sampled):
    campaign, result, _, runs = sampled
    wide = operating_bounds(campaign.task.servo, BOX, **ASKED, tolerance=10.0)
    assert np.isfinite(wide.torque).all()

    curves = sampled_curves(campaign, result, 4, None, None, wide)[1:]
    assert [curve.name for curve in curves] == ["torque:upper_arm", "torque:forearm"]
    for k, curve in enumerate(curves):
        required, bound = curve.bounds
        assert (required.values == 4.0).all()
        assert bound.values == wide.torque[k]
        assert curve.counts(bound) == (0, 0, 0)
        largest = max(np.abs(run.u[:, k]).max() for run in runs)
        assert 0.99 * largest <= np.nanmax(curve.values) <= largest

    def beyond(**changes):
        found = torque_bounds(replace(wide, **changes), campaign, runs)
        return {int(np.sum(~np.array(bound.kept))) for bound in found.values()}

    # Each assumption is checked, on both sides.
    lowest = min(run.q[:, -1].min() for run in runs)
    for low, left in ((lowest, 0), (lowest + 1e-9, 1)):
        assert beyond(ranges=wide.ranges | {"forearm": (low, 2.0)}) == {left}
    for name, rows in (
        ("speeds", [run.s for run in runs]),
        ("pose_error", [run.error for run in runs]),
        ("velocity_error", [run.velocity_error for run in runs]),
    ):
        size = np.abs(rows).max(axis=(0, 1))
        assert beyond(demand=wide.demand | {name: size.tolist()}) == {0}
        assert beyond(demand=wide.demand | {name: (size - 1e-9).tolist()}) != {0}
    # Measurements with noise are not in the record.
    noisy = replace(runs[0].imperfections, noise=(1e-4, 1e-4))
    blurred = copy(runs[0])
    object.__setattr__(blurred, "imperfections", noisy)
    (kept,) = torque_bounds(wide, campaign, [blurred])["forearm"].kept
    assert not kept
