"""Clocks and machines: time of suspension counts in CLOCK_BOOTTIME and not in CLOCK_MONOTONIC."""

import gc
import time

import pytest

import hil.clock
from hil._realtime import NOTED, TOO_MUCH, Machine, host_time, measure_machine, realtime
from hil.clock import MonotonicClock, SteppedClock


def test_time_asleep_is_the_difference_of_two_clocks(monkeypatch):
    monkeypatch.setattr(hil.clock, "_BOOTTIME", 7)
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: {7: time.monotonic_ns() + 5_000_000_000}[clock]
    )
    assert MonotonicClock().asleep() == pytest.approx(5.0, abs=1e-2)


def test_a_pause_between_the_two_readings_is_no_sleep(monkeypatch):
    """The process is taken off the processor after one clock has been read."""
    monkeypatch.setattr(hil.clock, "_BOOTTIME", 7)
    readings = iter([10_000_000_000, 10_500_000_000])
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: next(readings))
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(readings))
    assert MonotonicClock().asleep() <= 0.0


def test_a_machine_that_does_not_tell_never_slept(monkeypatch):
    monkeypatch.setattr(hil.clock, "_BOOTTIME", None)
    assert MonotonicClock().asleep() == 0.0
    assert SteppedClock().asleep() == 0.0


def test_this_machine_does_not_sleep_during_the_test():
    clock = MonotonicClock()
    before = clock.asleep()
    time.sleep(0.01)
    assert abs(clock.asleep() - before) < 1e-3


@pytest.mark.parametrize(
    ("event", "until", "reached"),
    [
        (0.00095, 0.003, 0.001),  # the first step that ends at or after the event
        (0.001, 0.003, 0.001),
        (0.00101, 0.003, 0.0011),
        (0.01, 0.003, 0.003),
        (-1.0, 0.003, 0.0001),  # past events: a step
        (0.01, 0.00005, 0.00005),
    ],
)
def test_a_stepped_clock_moves_to_the_step_of_the_next_event(event, until, reached):
    clock = SteppedClock(lambda instant: None, start=0.0)
    clock.wake = lambda: event
    clock.step(1e-4, until)
    assert clock.now() == pytest.approx(reached, abs=1e-12)


def test_without_a_known_event_a_stepped_clock_moves_by_one_step():
    clock = SteppedClock(start=0.0)
    clock.step(1e-4, 1.0)
    assert clock.now() == 1e-4


def test_what_was_sent_is_an_event_of_the_step_that_follows():
    seen = []
    clock = SteppedClock(seen.append, start=0.0)
    clock.wake = lambda: 5e-4 if seen else 1.0
    clock.step(1e-4, 1.0)
    assert seen == [0.0, clock.now()]
    assert clock.now() == pytest.approx(5e-4)


# -- suitability of a machine for a process in real time ---------------------------------------


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
