"""Worlds in blocks on threads and processes: the same bits, also when workers die or hang."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from concur.errors import ConcurError, ShapeError
from concur.verification import _blocks
from concur.verification._run import run
from concur.verification._store import opened
from tests.verification._evaluators import (
    Dying,
    Foreign,
    Hanging,
    Quick,
    Raising,
    Slow,
    Unready,
    drawn,
)

NUMBERS, WORLDS = drawn(203)
RESULT = run(Quick(), NUMBERS, WORLDS)


def test_threads_blocks_and_order_do_not_matter():
    order = np.random.default_rng(1).permutation(203)
    with ThreadPoolExecutor(1) as serial, ThreadPoolExecutor(3) as threads:
        for executor in (serial, threads, None):
            for block in (None, 1, 7, 64, 203, 1000):
                table = run(Quick(), NUMBERS[order], WORLDS[order], executor, block=block)
                assert table.encoded() == RESULT.encoded()
    assert np.array_equal(RESULT.values[:, 0], WORLDS.sum(axis=1))
    assert RESULT.crashes == {}


def test_world_whose_evaluation_raises_has_a_reason_and_no_value():
    for block in (1, 64, 203):
        table = run(Raising(bad=(0, 13, 202)), NUMBERS, WORLDS, block=block)
        assert table.crashes == {k: f"ValueError: no model of world {k}" for k in (0, 13, 202)}
        lost = np.isin(NUMBERS, (0, 13, 202))
        assert np.isnan(table.values[lost]).all()
        assert table.values[~lost].tobytes() == RESULT.values[~lost].tobytes()


def test_error_of_all_worlds_stops_the_campaign(tmp_path):
    def begun(count, bad, block=4, **options):
        given = NUMBERS[:count], WORLDS[:count]
        return run(Raising(bad=bad), *given, block=block, **options)

    everyone, cause = tuple(range(203)), "error in all of the first 8 worlds: ValueError: no model"
    for block in (1, 4, 8):
        with ThreadPoolExecutor(1) as serial, pytest.raises(ConcurError, match=cause):
            begun(203, everyone, block, executor=serial)
    with pytest.raises(ConcurError, match="first 64 worlds"):
        begun(203, everyone, 64)
    with pytest.raises(ConcurError, match="first 2 worlds"):
        begun(2, everyone, 2)
    # A world of its own, another one with a result, and another cause are no common cause.
    assert list(begun(1, everyone).crashes) == [0]
    assert len(begun(9, everyone[:8], 9).crashes) == 8
    with ThreadPoolExecutor(1) as serial:
        assert len(begun(203, everyone[:7], 1, executor=serial).crashes) == 7

    class Mixed(Raising):
        def at(self, number):
            raise (KeyError if number == 7 else ValueError)(f"no model of world {number}")

    assert len(run(Mixed(), NUMBERS[:20], WORLDS[:20], block=8).crashes) == 20
    # The worlds that crash alike are not kept: the campaign starts with them again.
    path, evaluator = tmp_path / "worlds.bin", Raising(bad=everyone)
    with opened(path, evaluator, 3) as store, pytest.raises(ConcurError, match="common to all"):
        run(evaluator, NUMBERS, WORLDS, block=4, store=store)
    with opened(path, evaluator, 3) as store:
        assert len(store.table) == 0


def test_bad_arguments_are_refused():
    def refused(match, *arguments, error=ConcurError, **options):
        with pytest.raises(error, match=match):
            run(Quick(), *(arguments or (NUMBERS, WORLDS)), **options)

    refused("one twice", NUMBERS * 0, WORLDS)
    refused("a row for each number", NUMBERS[1:], WORLDS, error=ShapeError)
    refused("`block`", block=0)
    refused("`time_limit`", time_limit=-1.0)
    refused("at least 1", executor=0)
    refused("an executor of concurrent.futures", executor="tcp://somewhere")

    class Wide(Quick):
        columns = ("sum", "wave", "more")

    with pytest.raises(ConcurError, match=r"shape \(203, 3\).*\(203, 2\)"):
        run(Wide(), NUMBERS, WORLDS, block=203)
    with pytest.raises(ConcurError, match="can be pickled"):
        run(Wide(), NUMBERS, WORLDS, executor=1)
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    refused("return results", executor=closed)
    assert len(run(Quick(), NUMBERS[:0], WORLDS[:0])) == 0


def test_progress_is_a_share_that_ends_at_one():
    shares = []
    run(Quick(), NUMBERS, WORLDS, block=50, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == 5


def test_progress_bar_shows_rate_and_time_left(capsys):
    run(Quick(), NUMBERS, WORLDS, block=50, progress=True)
    assert "100 %" in capsys.readouterr().err


class Lost(Executor):
    """A scheduler all of whose workers are gone: futures never resolve."""

    def submit(self, fn, *arguments, **options):
        return Future()


def test_executor_that_never_answers_is_an_error_within_the_time_limit():
    with pytest.raises(ConcurError, match=r"within 0.05 s.*Check that workers are there"):
        run(Quick(), NUMBERS, WORLDS, Lost(), time_limit=0.05)


class Killed(Executor):
    """Reports a dead worker for each block with a certain world; answers at once otherwise."""

    def __init__(self, deadly=13, times=10**9):
        self.deadly, self.times, self.blocks = deadly, times, []

    def submit(self, fn, sent, *rows, **options):
        future = Future()
        if len(rows) > 1:
            self.blocks.append(len(rows[0]))
            if self.deadly in rows[0] and self.times:
                self.times -= 1
                future.set_exception(type("KilledWorker", (Exception,), {})("4 workers died"))
                return future
        future.set_result(fn(sent, *rows))
        return future


def test_block_that_kills_workers_is_halved_until_the_world_is_found():
    executor = Killed()
    table = run(Quick(), NUMBERS, WORLDS, executor, block=64)
    assert list(table.crashes) == [13]
    assert "2 times of 2" in table.crashes[13]
    alive = NUMBERS != 13
    assert table.values[alive].tobytes() == RESULT.values[alive].tobytes()
    # The other blocks come first; the suspect is evaluated alone, then its halves, in order.
    sizes = [64, 64, 64, 11, 64, 32, 16, 8, 8, 4, 4, 2, 1, 1, 1, 2, 16, 32]
    assert executor.blocks == sizes


@pytest.mark.parametrize(("times", "crashes"), [(1, 0), (8, 0), (9, 1)])
def test_worker_that_dies_for_another_reason_costs_no_world(times, crashes):
    # The block in company and alone, its halves of 32, 16, 8, 4, 2 worlds, and world 13 alone.
    table = run(Quick(), NUMBERS, WORLDS, Killed(times=times), block=64)
    assert len(table.crashes) == crashes
    if not crashes:
        assert table.encoded() == RESULT.encoded()


def test_time_limit_follows_the_longest_block(monkeypatch):
    work = _blocks.Work(Quick(), NUMBERS, WORLDS, _blocks.Pool(Lost(), False), None, None)
    assert work._limit == _blocks.FIRST_LIMIT
    work._longest = 0.1
    assert work._limit == _blocks.SHORTEST_LIMIT
    work._longest = _blocks.SHORTEST_LIMIT
    assert work._limit == _blocks.SLOWER * _blocks.SHORTEST_LIMIT


@pytest.mark.parametrize(
    ("worlds", "workers", "size"), [(5, 2, 8), (64, 2, 8), (65, 2, 16), (512, 2, 64), (9999, 2, 64)]
)
def test_blocks_are_whole_lanes_and_give_each_worker_four(worlds, workers, size):
    assert _blocks._block_size(worlds, workers) == size


@pytest.mark.extended
def test_processes_give_the_same_bits_and_prepare_once(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    table = run(Quick(str(marks)), NUMBERS, WORLDS, 2, block=7)
    assert table.encoded() == RESULT.encoded()
    prepared = {p.name: p.read_text().count("x") for p in marks.glob("prepared-*")}
    evaluated = {p.name.partition("-")[2] for p in marks.glob("evaluated-*")}
    assert set(prepared.values()) == {1}
    assert f"prepared-{os.getpid()}" in prepared
    assert str(os.getpid()) not in evaluated
    assert 1 <= len(evaluated) <= 2
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert run(Quick(), NUMBERS, WORLDS, pool).encoded() == RESULT.encoded()
    with pytest.raises(ConcurError, match="`compiler`") as caught:
        run(Foreign(), NUMBERS, WORLDS, 1)
    assert caught.value.fields == ("compiler",)


@pytest.mark.extended
def test_process_that_dies_loses_its_block_only(tmp_path):
    once = Dying(bad=(13,), once=str(tmp_path / "once"))
    assert run(once, NUMBERS, WORLDS, 2).encoded() == RESULT.encoded()
    numbers, worlds = NUMBERS[10:18], WORLDS[10:18]
    table = run(Dying(bad=(13,)), numbers, worlds, 2, block=2)
    assert list(table.crashes) == [13]
    alive = numbers != 13
    assert table.values[alive].tobytes() == RESULT.values[10:18][alive].tobytes()
    assert np.isnan(table.values[~alive]).all()
    with pytest.raises(ConcurError, match="workers that start, prepare"):  # no world is to blame
        run(Unready(), NUMBERS, WORLDS, 1)


@pytest.mark.slow
def test_world_that_hangs_is_found_within_time_limits():
    numbers, worlds = NUMBERS[8:24], WORLDS[8:24]
    table = run(Hanging(bad=(13,)), numbers, worlds, 2, block=4, time_limit=6.0)
    assert table.crashes == {13: "no result within 6 s, 2 times of 2"}
    alive = numbers != 13
    assert table.values[alive].tobytes() == RESULT.values[8:24][alive].tobytes()


SCRIPT = """
import sys
from concur.verification._run import run
from concur.verification._store import opened
from tests.verification._evaluators import Slow, drawn
from pathlib import Path

if __name__ == "__main__":
    numbers, worlds = drawn(203)
    with opened(Path(sys.argv[1]), Slow(), 3) as store:
        run(Slow(), numbers, worlds, 2, block=5, store=store)
"""


def _children(parent):
    """Processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.extended
def test_killed_campaign_goes_on_and_leaves_no_processes(tmp_path):

    path, script = tmp_path / "worlds.bin", tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    campaign = subprocess.Popen([sys.executable, str(script), str(path)], env=environment)
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < 2000:
        assert time.monotonic() < deadline
        assert campaign.poll() is None
        time.sleep(0.02)
    children = _children(campaign.pid)
    campaign.send_signal(signal.SIGKILL)
    campaign.wait()
    with opened(path, Slow(), 3) as store:
        before = len(store.table)
        assert 0 < before < 203
        table = run(Slow(), NUMBERS, WORLDS, block=40, store=store)
    assert table.encoded() == RESULT.encoded()
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.05)
