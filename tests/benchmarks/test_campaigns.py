"""Loops of campaigns agree with the loops of the peers, and take a small share of their time."""

import time

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign
from tests.benchmarks._campaigns import (
    WORLDS,
    campaign_comparison,
    campaign_rows,
    thread_comparison,
    thread_row,
)
from tests.benchmarks._timing import measure


@pytest.mark.slow
def test_worlds_come_to_the_same_places(compiler):
    ours, imperfect, pinocchio, *over_mujoco = [
        contender.prepare()() for contender in campaign_comparison().contenders
    ]
    assert ours.shape == (WORLDS, 8)
    np.testing.assert_allclose(ours, pinocchio, rtol=0.0, atol=1e-12)
    assert np.ptp(ours, axis=0).max() > 1e-3  # the worlds differ
    for found in over_mujoco:  # contacts creep, and the integrator is of first order
        np.testing.assert_allclose(found, ours, rtol=0.0, atol=2e-3)
    assert 1e-3 < np.abs(imperfect - ours).max() < 1.0


@pytest.mark.slow
def test_a_campaign_takes_a_small_share_of_loops_under_python(compiler):
    found = measure(campaign_comparison(), 5)
    best = dict(
        zip([c.name for c in found.comparison.contenders], found.times.min(axis=0), strict=True)
    )
    _, _, pinocchio, law, same_order, tick = [
        seconds / best["`Rollout`"] for seconds in best.values()
    ]
    assert pinocchio > 200.0
    assert same_order > 200.0
    # Of these the law, or the step too, is machine code.
    assert law > 80.0
    assert tick > 30.0
    assert len(campaign_rows(found).splitlines()) == 8


@pytest.mark.slow
def test_two_threads_do_the_job_of_one(compiler):
    two, one = [contender.prepare()() for contender in thread_comparison().contenders]
    assert np.array_equal(two, one)
    assert "two threads" in thread_row(measure(thread_comparison(), 2))


@pytest.mark.slow
def test_a_campaign_takes_little_more_than_its_rollouts(compiler):
    """Draws, blocks, threads, facts and the table of 192 worlds of the rover, 20 s each."""
    campaign = Campaign(cc.load_task("examples/rover_campaign.toml"))
    campaign.prepare()
    numbers = np.arange(192)
    worlds = campaign.uncertainty.draw(numbers)
    ratios = []
    for _ in range(3):
        seconds = []
        for job in (lambda: cc.verify(campaign, 192), lambda: campaign.evaluate(numbers, worlds)):
            start = time.process_time()
            job()
            seconds.append(time.process_time() - start)
        ratios.append(seconds[0] / seconds[1])
    assert min(ratios) < 1.15, ratios
