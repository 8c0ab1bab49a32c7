"""Worlds in blocks on threads and processes: the same bits; failures name their worlds."""

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

from concur.campaign import _run
from concur.campaign._run import run
from concur.campaign._store import opened
from concur.errors import ConcurError
from tests.campaign._evaluators import Bad, Foreign, Quick, Slow, drawn

NUMBERS, WORLDS = drawn(203)
RESULT = run(Quick(), NUMBERS, WORLDS)


def test_threads_blocks_and_order_do_not_matter():
    order = np.random.default_rng(1).permutation(203)
    with ThreadPoolExecutor(1) as serial, ThreadPoolExecutor(3) as threads:
        for executor in (serial, threads, None):
            for block in (None, 1, 7, 64, 203, 1000):
                found = run(Quick(), NUMBERS[order], WORLDS[order], executor, block=block)
                assert found.tobytes() == RESULT[order].tobytes()
    assert np.array_equal(RESULT[:, 0], WORLDS.sum(axis=1))
    twice = np.repeat(np.arange(3), 2)  # as in searches
    assert run(Quick(), twice, WORLDS[twice]).tobytes() == RESULT[twice].tobytes()
    assert run(Quick(), NUMBERS[:0], WORLDS[:0]).shape == (0, 2)


def test_error_of_an_evaluation_names_its_block_and_other_blocks_are_kept(tmp_path):
    path, evaluator = tmp_path / "worlds.h5", Bad()
    with (
        ThreadPoolExecutor(1) as serial,
        opened(path, evaluator, WORLDS) as store,
        pytest.raises(ConcurError, match=r"worlds 12 to 15.*no model.*continues") as caught,
    ):
        run(evaluator, NUMBERS, WORLDS, serial, block=4, store=store)
    assert caught.value.worlds == ((12, 15),)
    with opened(path, evaluator, WORLDS) as store:
        assert np.flatnonzero(store.known).tolist() == list(range(12))


def test_bad_arguments_are_refused():
    def refused(match, **options):
        with pytest.raises(ConcurError, match=match):
            run(Quick(), NUMBERS, WORLDS, **options)

    for value in (0, -1.0):
        refused("`block`", block=value)
        refused("`time_limit`", time_limit=value)
    for executor in (0, -1, True, 1.5, "tcp://somewhere"):
        refused("an executor of concurrent.futures", executor=executor)

    class Wide(Quick):
        columns = ("sum", "wave", "more")

    with pytest.raises(ConcurError, match=r"shape \(203, 3\).*\(203, 2\)"):
        run(Wide(), NUMBERS, WORLDS, block=203)
    with pytest.raises(ConcurError, match="can be pickled"):
        run(Wide(), NUMBERS, WORLDS, executor=1)
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    refused("results of worlds 0 to 55", executor=closed)


def test_progress_is_a_share_that_ends_at_one(capsys):
    shares = []
    run(Quick(), NUMBERS, WORLDS, block=50, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == 5
    run(Quick(), NUMBERS, WORLDS, block=50, progress=True)
    assert "100 %" in capsys.readouterr().err


class Lost(Executor):
    """A scheduler all of whose workers are gone, or which answers after the first block."""

    def __init__(self, answers=0):
        self.answers = answers

    def submit(self, fn, *arguments, **options):
        future, self.answers = Future(), self.answers - 1
        if self.answers >= 0:
            future.set_result(fn(*arguments))
        return future


def test_executor_that_never_answers_is_an_error_within_the_time_limit(monkeypatch):
    named = r"worlds 0 to \d+.*within 0.05 s.*Check that workers are there"
    with pytest.raises(ConcurError, match=named):
        run(Quick(), NUMBERS, WORLDS, Lost(), time_limit=0.05)
    # Without one: another limit for the first block than for the others.
    assert (_run.FIRST_LIMIT, _run.SHORTEST_LIMIT, _run.SLOWER) == (600.0, 60.0, 20.0)
    for name, seconds in (("FIRST_LIMIT", 0.06), ("SHORTEST_LIMIT", 0.07)):
        monkeypatch.setattr(_run, name, seconds)
    for answers, seconds in ((0, 0.06), (1, 0.07)):
        with pytest.raises(ConcurError, match=f"within {seconds} s"):
            run(Quick(), NUMBERS, WORLDS, Lost(answers))
    monkeypatch.setattr(_run, "SLOWER", 1e9)
    with pytest.raises(ConcurError, match="within 1 s"):
        run(Quick(), NUMBERS, WORLDS, Lost(1), time_limit=1)


@pytest.mark.parametrize(
    ("worlds", "workers", "size"), [(5, 2, 8), (64, 2, 8), (65, 2, 16), (512, 2, 64), (9999, 2, 64)]
)
def test_blocks_are_whole_lanes_and_give_each_worker_four(worlds, workers, size):
    assert _run._block_size(worlds, workers) == size


@pytest.mark.extended
def test_processes_give_the_same_bits_and_prepare_once(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    assert run(Quick(str(marks)), NUMBERS, WORLDS, 2, block=7).tobytes() == RESULT.tobytes()
    prepared = {p.name: p.read_text().count("x") for p in marks.glob("prepared-*")}
    evaluated = {p.name.partition("-")[2] for p in marks.glob("evaluated-*")}
    assert set(prepared.values()) == {1}
    assert f"prepared-{os.getpid()}" in prepared
    assert str(os.getpid()) not in evaluated
    assert 1 <= len(evaluated) <= 2
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert run(Quick(), NUMBERS, WORLDS, pool).tobytes() == RESULT.tobytes()
    with pytest.raises(ConcurError, match="`compiler`") as caught:
        run(Foreign(), NUMBERS, WORLDS, 1)
    assert caught.value.fields == ("compiler",)


@pytest.mark.extended
@pytest.mark.parametrize(("how", "why"), [("dies", "BrokenProcessPool"), ("hangs", "within 4 s")])
def test_process_that_dies_or_hangs_ends_the_campaign_and_the_file_goes_on(tmp_path, how, why):
    path, evaluator = tmp_path / "worlds.h5", Bad(how=how)
    with (
        opened(path, evaluator, WORLDS) as store,
        pytest.raises(ConcurError, match=f"worlds 12 to 15.*{why}") as caught,
    ):
        run(evaluator, NUMBERS[:16], WORLDS[:16], 1, block=4, store=store, time_limit=4)
    assert caught.value.worlds == ((12, 15),)
    with opened(path, evaluator, WORLDS) as store:
        assert store.known.sum() == 12
        found = run(evaluator, NUMBERS[:12], WORLDS[:12], store=store)
    assert found.tobytes() == RESULT[:12].tobytes()


SCRIPT = """
import sys
from concur.campaign._run import run
from concur.campaign._store import opened
from tests.campaign._evaluators import Slow, drawn
from pathlib import Path

if __name__ == "__main__":
    numbers, worlds = drawn(203)
    with opened(Path(sys.argv[1]), Slow(), worlds) as store:
        run(Slow(), numbers, worlds, 2, block=5, store=store, progress=print)
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
    path, script = tmp_path / "worlds.h5", tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-u", str(script), str(path)]
    campaign = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    shares = [campaign.stdout.readline() for _ in range(3)]
    children = _children(campaign.pid)
    campaign.send_signal(signal.SIGKILL)
    campaign.communicate()
    with opened(path, Slow(), WORLDS) as store:
        assert round(float(shares[-1]) * 203) <= store.known.sum() < 203
        assert run(Slow(), NUMBERS, WORLDS, block=40, store=store).tobytes() == RESULT.tobytes()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.05)
