"""Campaigns of tasks: equal to their evaluator, in processes too, and rejected arguments."""

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign, pass_rates, workers, worst_searches
from concur.errors import ConcurError, DescriptionError
from tests.cli.test_gains import TASK as NOMINAL
from tests.cli.test_verify import TASK


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "task.toml"
    path.write_text(TASK)
    return Campaign(cc.load_task(path), seed=3)


def test_result_is_that_of_the_evaluator(campaign, tmp_path):
    result = cc.verify(campaign, 5, file=tmp_path / "worlds.h5")
    worlds = campaign.task.uncertainty.draw(range(5), 3)
    expected = campaign.evaluate(range(5), worlds)
    assert result.worlds.tobytes() == worlds.tobytes()
    assert result.values.tobytes() == expected[:, :1].tobytes()
    assert (result.seed, result.method) == (3, "independent")
    again = cc.verify(campaign, 5, file=tmp_path / "worlds.h5")
    assert again.values.tobytes() == result.values.tobytes()
    sobol = cc.verify(campaign, 4, method="sobol")
    assert sobol.worlds.tobytes() == campaign.task.uncertainty.draw(range(4), 3, "sobol").tobytes()
    with pytest.raises(ConcurError, match="other worlds"):
        cc.verify(campaign, 4, method="sobol", file=tmp_path / "worlds.h5")


def test_searches_share_workers_and_find_nothing_above_the_samples(campaign):
    shares = []
    with workers() as pool:
        result = cc.verify(campaign, 5, pool)
        (found,) = worst_searches(campaign, result, 12, pool, shares.append)
    assert found.value <= result.values[:, 0].min()
    assert shares == [1.0]
    alone = campaign.evaluate([found.number], found.world[None])
    assert alone[0, 0] == found.value


def test_a_file_that_grows_gives_intervals_that_hold_at_every_look(campaign, tmp_path):
    task, file = campaign.task, tmp_path / "worlds.h5"
    for samples, looks in [(4, (4,)), (4, (4,)), (6, (4, 6)), (5, (4, 5, 6))]:
        result = cc.verify(task, samples, seed=3, file=file)
        assert (len(result), result.looks) == (samples, looks)
        assert pass_rates(result)[0].grown == (len(looks) > 1)
    # In one process a campaign knows its looks, without a file too; another seed is another one.
    own = Campaign(task, seed=3)
    assert [cc.verify(own, n).looks for n in (2, 3)] == [(2,), (2, 3)]
    assert cc.verify(task, 3, seed=3).looks == (3,)
    assert cc.verify(own, 4, method="sobol").looks == (4,)


@pytest.mark.extended
def test_processes_give_the_same_bits(campaign):
    threads, processes = cc.verify(campaign, 40), cc.verify(campaign, 40, 2)
    assert threads.values.tobytes() == processes.values.tobytes()
    assert threads.extremes.tobytes() == processes.extremes.tobytes()


def test_rejected_arguments(campaign, tmp_path):
    for samples in (0, -1, 2.5, True, "9"):
        with pytest.raises(ConcurError, match="`samples`"):
            cc.verify(campaign, samples)
    (tmp_path / "task.toml").write_text(NOMINAL)
    with pytest.raises(DescriptionError, match=r"\[uncertainty\]"):
        cc.verify(cc.load_task(tmp_path / "task.toml"), 10)
    assert cc.verify(campaign, np.int64(1)).numbers.tolist() == [0]
