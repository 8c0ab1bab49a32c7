"""Suitability of a machine for a process in real time."""

import gc

import pytest

from hil._realtime import NOTED, TOO_MUCH, Machine, host_time, measure_machine, realtime


def machine(**changes):
    return Machine(
        **({"cores": 2, "steal": 0.0, "late": 1e-4, "longest": 1e-3, "lost": 0.0} | changes)
    )


@pytest.mark.parametrize("name", ["steal", "lost"])
def test_both_sides_of_the_thresholds(name):
    assert machine(**{name: TOO_MUCH - 1e-6}).keeps_up
    assert not machine(**{name: TOO_MUCH + 1e-6}).keeps_up
    assert machine(**{name: NOTED - 1e-6}).is_steady
    assert not machine(**{name: NOTED}).is_steady


def test_one_processor_is_worth_a_word():
    assert not machine(cores=1).is_steady
    assert machine(cores=1).keeps_up


def test_a_measurement():
    found = measure_machine(seconds=0.1)
    assert found.cores >= 1
    assert 0.0 <= found.late <= found.longest
    assert 0.0 <= found.steal <= 1.0


def test_counters_of_the_kernel(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 1 5 70 2 0 3 9 4 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert host_time(stat) == (9.0, 100.0)
    assert host_time(tmp_path / "none") == (0.0, 0.0)
    stat.write_text("cpu\n")
    assert host_time(stat) == (0.0, 0.0)


def test_garbage_is_not_collected_meanwhile_and_what_a_caller_froze_stays_frozen():
    frozen = gc.get_freeze_count()
    try:
        gc.unfreeze()
        with realtime(0, False):
            assert not gc.isenabled()
            assert gc.get_freeze_count() > 0
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0
        gc.freeze()
        with realtime(0, False):
            pass
        assert gc.get_freeze_count() > 0
    finally:
        if not frozen:
            gc.unfreeze()
