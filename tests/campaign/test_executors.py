"""Worlds in blocks on threads, processes and a scheduler: the same bits; failures name worlds."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import uniform

import concur as cc
from concur.campaign import Campaign, _verify, cluster, pass_rates, workers, worst_searches
from concur.campaign._store import opened
from concur.campaign._verify import block_size, run
from concur.errors import ConcurError, DescriptionError
from concur.io import Task
from concur.worlds import Quantity, Requirement, Uncertainty
from tests.campaign._evaluators import Bad, Foreign, Quick, Slow, drawn
from tests.cli.test_gains import TASK as NOMINAL
from tests.cli.test_verify import TASK

NUMBERS, WORLDS = drawn(203)
RESULT = run(Quick(), NUMBERS, WORLDS)[0]


def values_of(evaluator, executor=None, rows=slice(None), **options):
    return run(evaluator, NUMBERS[rows], WORLDS[rows], executor, **options)[0]


@pytest.fixture
def small(monkeypatch):
    """Blocks of any size: four for each worker."""
    monkeypatch.setattr(_verify, "LANES", 1)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "task.toml"
    path.write_text(TASK)
    return Campaign(cc.load_task(path), seed=3)


@pytest.mark.parametrize("lanes", [1, 7, 8, 300])
def test_threads_blocks_and_order_do_not_matter(lanes, monkeypatch):
    monkeypatch.setattr(_verify, "LANES", lanes)
    order = np.random.default_rng(1).permutation(203)
    with ThreadPoolExecutor(1) as serial, ThreadPoolExecutor(3) as threads:
        for executor in (serial, threads, None):
            assert values_of(Quick(), executor, order).tobytes() == RESULT[order].tobytes()
    assert np.array_equal(RESULT[:, 0], WORLDS.sum(axis=1))
    twice = np.repeat(np.arange(3), 2)  # as in searches
    assert values_of(Quick(), None, twice).tobytes() == RESULT[twice].tobytes()
    assert values_of(Quick(), None, slice(0)).shape == (0, 2)


@pytest.mark.parametrize(
    ("worlds", "workers", "size"), [(5, 2, 8), (64, 2, 8), (65, 2, 16), (512, 2, 64), (9999, 2, 64)]
)
def test_blocks_are_whole_lanes_and_give_each_worker_four(worlds, workers, size):
    assert block_size(worlds, workers) == size


def test_a_world_that_raises_has_a_reason_and_ends_nothing(tmp_path):
    for _ in range(2):  # its reason is found again
        with opened(tmp_path / "worlds.h5", Bad(), WORLDS) as store:
            values, reasons = run(Bad(), NUMBERS, WORLDS, store=store)
            assert np.flatnonzero(~store.known).tolist() == [13]
        assert reasons == {13: "ValueError: no model"}
        assert np.isnan(values[13]).all()
        others = np.arange(203) != 13
        assert values[others].tobytes() == RESULT[others].tobytes()


def test_a_world_whose_evaluation_raises_fails_the_campaign_with_its_reason(campaign, monkeypatch):
    whole = Campaign.outcome

    def outcome(self, numbers, worlds):
        if 2 in numbers:
            raise ArithmeticError("no reference")
        return whole(self, numbers, worlds)

    expected = cc.verify(campaign, 5)
    monkeypatch.setattr(Campaign, "outcome", outcome)
    found = cc.verify(campaign, 5)
    assert found.crashes == {2: "ArithmeticError: no reference"}
    assert (found.status, found.passed.tolist()[2]) == ("failed", False)
    assert np.array_equal(np.delete(found.values, 2, 0), np.delete(expected.values, 2, 0))


def test_bad_arguments_are_refused(campaign, tmp_path):
    for executor in (0, -1, True, 1.5, "tcp://somewhere"):
        with pytest.raises(ConcurError, match=r"an executor of concurrent\.futures"):
            values_of(Quick(), executor)

    class Local(Quick):
        pass

    with pytest.raises(ConcurError, match="can be pickled"):
        values_of(Local(), 1)
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with pytest.raises(ConcurError, match="results of worlds 0 to 55"):
        values_of(Quick(), closed)
    for name, values in (("samples", (0, -1, 2.5, True, "9")), ("time_limit", (0.0, -1.0))):
        for value in values:
            with pytest.raises(ConcurError, match=f"`{name}`"):
                cc.verify(campaign, **{"samples": 3, name: value})
    (tmp_path / "task.toml").write_text(NOMINAL)
    with pytest.raises(DescriptionError, match=r"\[uncertainty\]"):
        cc.verify(cc.load_task(tmp_path / "task.toml"), 10)
    with pytest.raises(ConcurError, match="dask scheduler"), cluster("nonsense://a:b"):
        pass
    assert cc.verify(campaign, np.int64(1)).numbers.tolist() == [0]


def test_progress_is_a_share_that_ends_at_one(capsys):
    shares = []
    values_of(Quick(), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 3
    values_of(Quick(), progress=True)
    assert "100 %" in capsys.readouterr().err


class Lost(Executor):
    """A scheduler whose workers are gone after the first answers."""

    def __init__(self, answers=0):
        self.answers = answers

    def submit(self, fn, *arguments, **options):
        future, self.answers = Future(), self.answers - 1
        if self.answers >= 0:
            future.set_result(fn(*arguments))
        return future


@pytest.mark.parametrize("answers", [0, 1])
def test_an_executor_that_never_answers_is_an_error_within_the_time_limit(answers):
    named = r"worlds \d+ to \d+.*within 0.05 s.*Check that workers are there"
    with pytest.raises(ConcurError, match=named):
        values_of(Quick(), Lost(answers), time_limit=0.05)


@pytest.mark.extended
def test_processes_give_the_same_bits_and_prepare_once(campaign, tmp_path):
    assert values_of(Quick(str(tmp_path)), 2).tobytes() == RESULT.tobytes()
    prepared = {p.name: p.read_text().count("x") for p in tmp_path.glob("prepared-*")}
    evaluated = {p.name.partition("-")[2] for p in tmp_path.glob("evaluated-*")}
    assert set(prepared.values()) == {1}
    assert f"prepared-{os.getpid()}" in prepared
    assert str(os.getpid()) not in evaluated
    assert 1 <= len(evaluated) <= 2
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert values_of(Quick(), pool).tobytes() == RESULT.tobytes()
    with pytest.raises(ConcurError, match="`compiler`") as caught:
        values_of(Foreign(), 1)
    assert caught.value.fields == ("compiler",)
    campaign.task.path.unlink()  # workers have the text of the task, not its file
    threads, processes = cc.verify(campaign, 40), cc.verify(campaign, 40, 2)
    assert threads.values.tobytes() == processes.values.tobytes()
    assert threads.extremes.tobytes() == processes.extremes.tobytes()


@pytest.mark.extended
def test_a_scheduler_gives_the_same_bits_and_lost_blocks_are_named(campaign, tmp_path, small):
    import dask
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, processes=True, **options) as scheduler,
        Client(scheduler.scheduler_address) as client,
    ):
        # Also with an executor that returns results of earlier calls of the same block.
        for executor in (client.get_executor(), client.get_executor(pure=True)):
            assert values_of(Quick(str(tmp_path)), executor).tobytes() == RESULT.tobytes()
        prepared = [path.read_text().count("x") for path in tmp_path.glob("prepared-*")]
        assert sorted(prepared) == [1, 1, 2]  # once in each worker; here at each run
        with cluster(scheduler.scheduler_address) as executor:
            dask_values = cc.verify(campaign, 9, executor).values
            assert dask_values.tobytes() == cc.verify(campaign, 9).values.tobytes()
            with pytest.raises(ConcurError, match="`compiler`") as caught:
                values_of(Foreign(), executor)
            assert caught.value.fields == ("compiler",)
            with pytest.raises(ConcurError, match="worlds 12 to 13") as caught:
                values_of(Bad(how="dies"), executor, slice(16))
            assert caught.value.worlds == ((12, 13),)


@pytest.mark.extended
@pytest.mark.parametrize(("how", "why"), [("dies", "BrokenProcessPool"), ("hangs", "within 15 s")])
def test_process_that_dies_or_hangs_ends_the_campaign_and_the_file_goes_on(
    tmp_path, how, why, small
):
    path, evaluator = tmp_path / "worlds.h5", Bad(how=how)
    with (
        opened(path, evaluator, WORLDS) as store,
        pytest.raises(ConcurError, match=f"worlds 12 to 15.*{why}") as caught,
    ):
        values_of(evaluator, 1, slice(16), store=store, time_limit=15)
    assert caught.value.worlds == ((12, 15),)
    with opened(path, evaluator, WORLDS) as store:
        assert store.known.sum() == 12
        found = values_of(evaluator, None, slice(12), store=store)
    assert found.tobytes() == RESULT[:12].tobytes()


SCRIPT = """
import sys
from concur.campaign import _verify
from concur.campaign._store import opened
from tests.campaign._evaluators import Slow, drawn
from pathlib import Path

if __name__ == "__main__":
    numbers, worlds = drawn(203)
    _verify.LARGEST_BLOCK = 5
    with opened(Path(sys.argv[1]), Slow(), worlds) as store:
        _verify.run(Slow(), numbers, worlds, 2, store=store, progress=print)
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
        assert values_of(Slow(), store=store).tobytes() == RESULT.tobytes()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.05)


def test_a_campaign_is_its_evaluator_and_its_file_that_grows_keeps_its_looks(campaign, tmp_path):
    task, file = campaign.task, tmp_path / "worlds.h5"
    for samples, looks in [(4, (4,)), (4, (4,)), (6, (4, 6)), (5, (4, 5, 6))]:
        result = cc.verify(task, samples, seed=3, file=file)
        worlds = task.uncertainty.draw(range(samples), 3)
        assert result.worlds.tobytes() == worlds.tobytes()
        expected = campaign.evaluate(range(samples), worlds)
        assert result.values.tobytes() == expected[:, :1].tobytes()
        assert (len(result), result.looks, result.seed) == (samples, looks, 3)
        assert pass_rates(result)[0].grown == (len(looks) > 1)
    # In one process a campaign knows its looks, without a file too; another seed is another one.
    own = Campaign(task, seed=3)
    assert [cc.verify(own, n).looks for n in (2, 3)] == [(2,), (2, 3)]
    assert cc.verify(task, 3, seed=3).looks == (3,)
    sobol = cc.verify(own, 4, method="sobol")
    assert sobol.looks == (4,)
    assert sobol.worlds.tobytes() == task.uncertainty.draw(range(4), 3, "sobol").tobytes()
    with pytest.raises(ConcurError, match="other worlds"):
        cc.verify(campaign, 4, method="sobol", file=file)


def test_a_task_made_in_python_has_a_campaign_too():
    """In threads and, with its objects pickled, from a copy: no file is read."""
    robot = cc.robots.rover_arm()
    task = Task(
        robot=robot,
        outputs=(cc.Output("nose", "chassis", "R2", point=(0.25, 0, 0)),),
        stiffness=4.0,
        damping=4.0,
        reference=cc.references.hold([0.3, 0.0]),
        q0=robot.neutral(),
        duration=0.1,
        dt=5e-3,
    )
    mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.1, 0.2), unit="kg"),))
    slow = Requirement("speed", "turret", (("speed:turret", -1.0, 1.0),), 1.0, "rad/s")
    result = cc.verify(task, 3, uncertainty=mass, requirements=[slow])
    assert (result.columns, result.passed.all()) == ((("turret", "rad/s"),), True)
    again = cc.verify(pickle.loads(pickle.dumps(Campaign(task, 0, mass, [slow]))), 3)
    assert again.values.tobytes() == result.values.tobytes()
    with pytest.raises(DescriptionError, match="uncertainty"):
        cc.verify(task, 3, requirements=[slow])
    given = Uncertainty((Quantity("reference.nose", "value", uniform(-0.1, 0.2)),))
    with pytest.raises(ConcurError, match="a reference without it"):
        cc.verify(task, 3, uncertainty=given, requirements=[slow])


def test_searches_share_workers_and_find_nothing_above_the_samples(campaign):
    shares = []
    with workers() as pool:
        result = cc.verify(campaign, 5, pool)
        (found,) = worst_searches(campaign, result, 12, pool, shares.append)
    assert found.value <= result.values[:, 0].min()
    assert shares == [1.0]
    alone = campaign.evaluate([found.number], found.world[None])
    assert alone[0, 0] == found.value
