"""Worlds on a Dask scheduler with two workers in processes of their own."""

import logging

import dask
import pytest
from distributed import Client, LocalCluster

from concur.campaign import cluster
from concur.campaign._run import run
from concur.errors import ConcurError
from tests.campaign._evaluators import Bad, Foreign, Quick, drawn

NUMBERS, WORLDS = drawn(203)
RESULT = run(Quick(), NUMBERS, WORLDS).tobytes()


@pytest.mark.extended
def test_same_bits_as_in_this_process_and_bad_blocks_are_named(tmp_path):
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    blamed_at_once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    marked = Quick(str(tmp_path))
    with (
        blamed_at_once,
        LocalCluster(n_workers=2, processes=True, **options) as scheduler,
        Client(scheduler.scheduler_address) as client,
    ):
        # Also with an executor that returns results of earlier calls of the same block.
        for executor in (client.get_executor(), client.get_executor(pure=True)):
            for block in (None, 7):
                assert run(marked, NUMBERS, WORLDS, executor, block=block).tobytes() == RESULT
        prepared = [path.read_text().count("x") for path in tmp_path.glob("prepared-*")]
        assert sorted(prepared) == [1, 1, 4]  # once in each worker; here at each run
        with cluster(scheduler.scheduler_address) as executor:
            with pytest.raises(ConcurError, match="`compiler`") as caught:
                run(Foreign(), NUMBERS, WORLDS, executor)
            assert caught.value.fields == ("compiler",)
            for how in ("raises", "dies"):
                with pytest.raises(ConcurError, match="worlds 12 to 15") as caught:
                    run(Bad(how=how), NUMBERS, WORLDS, executor, block=4)
                assert caught.value.worlds == ((12, 15),)
            assert run(Quick(), NUMBERS, WORLDS, executor).tobytes() == RESULT


def test_scheduler_that_does_not_answer_is_an_error():
    with pytest.raises(ConcurError, match="dask scheduler"), cluster("nonsense://a:b"):
        pass
