"""Clocks: time of suspension counts in CLOCK_BOOTTIME and not in CLOCK_MONOTONIC."""

import time

import pytest

import hil.clock
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
