"""Worlds on a Dask scheduler with two workers in processes of their own."""

import logging

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from concur.errors import ConcurError
from concur.verification._executors import cluster
from concur.verification._run import run
from tests.verification._evaluators import Dying, Foreign, Hanging, Quick, Raising, drawn

NUMBERS, WORLDS = drawn(203)
RESULT = run(Quick(), NUMBERS, WORLDS)


@pytest.fixture(scope="module")
def address():
    """Address of a scheduler, whose workers come back when they die."""
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    blamed_at_once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with blamed_at_once, LocalCluster(n_workers=2, processes=True, **options) as scheduler:
        yield scheduler.scheduler_address


def assert_crashed(table, world):
    assert list(table.crashes) == [world]
    alive = table.numbers != world
    assert table.values[alive].tobytes() == RESULT.values[table.numbers][alive].tobytes()
    assert np.isnan(table.values[~alive]).all()


@pytest.mark.extended
def test_same_bits_as_in_this_process(address, tmp_path):
    marked = Quick(str(tmp_path))
    with Client(address) as client:
        # Also with an executor that returns results of earlier calls of the same block.
        for executor in (client.get_executor(pure=False), client.get_executor(pure=True)):
            for block in (None, 7):
                table = run(marked, NUMBERS, WORLDS, executor, block=block)
                assert table.encoded() == RESULT.encoded()
        prepared = [path.read_text().count("x") for path in tmp_path.glob("prepared-*")]
        assert sorted(prepared) == [1, 1, 4]  # once in each worker; here at each run
        raised = run(Raising(bad=(13,)), NUMBERS, WORLDS, client.get_executor(pure=False))
        assert_crashed(raised, 13)
    with cluster(address) as executor, pytest.raises(ConcurError, match="`compiler`") as caught:
        run(Foreign(), NUMBERS, WORLDS, executor)
    assert caught.value.fields == ("compiler",)


@pytest.mark.extended
def test_world_that_kills_its_workers_is_found(address):
    with cluster(address) as executor:
        few = slice(10, 18)
        table = run(Dying(bad=(13,)), NUMBERS[few], WORLDS[few], executor, block=4)
        assert_crashed(table, 13)
        assert run(Quick(), NUMBERS, WORLDS, executor).encoded() == RESULT.encoded()


@pytest.mark.slow
def test_world_that_hangs_is_found(address):
    with cluster(address) as executor:
        few = slice(10, 18)
        table = run(Hanging(bad=(13,)), NUMBERS[few], WORLDS[few], executor, block=4, time_limit=6)
        assert_crashed(table, 13)
        assert run(Quick(), NUMBERS, WORLDS, executor).encoded() == RESULT.encoded()


def test_scheduler_that_does_not_answer_is_an_error():
    with pytest.raises(ConcurError, match="dask scheduler"), cluster("nonsense://a:b"):
        pass
