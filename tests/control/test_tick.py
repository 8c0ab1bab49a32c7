"""The law in a loop: same numbers, no torque on bad input, nothing that grows."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.control import Servo, Tick
from concur.errors import ConcurError
from tests.control._cases import Q0, S0, case_study, case_study_sample, refused


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def fill(tick: Tick, q: np.ndarray, s: np.ndarray, t: float) -> None:
    buffers, sample = tick.buffers, case_study_sample(t)
    buffers.q[:], buffers.s[:] = q, s
    buffers.pose[:] = sample.pose
    buffers.twist[:], buffers.acceleration[:] = sample.twist, sample.acceleration


def test_buffers_are_read_and_written_in_place(servo: Servo) -> None:
    tick = servo.compile()
    u = tick.buffers.u
    fill(tick, Q0, S0, 0.0)
    assert tick.run() == 0
    expected = servo.torque(Q0, S0, case_study_sample(0.0))
    assert_allclose(u, expected, rtol=0, atol=1e-11)
    assert 0.0 < tick.buffers.margin_bound[0] <= 1.0
    fill(tick, Q0, S0, 1.0)
    assert_allclose(u, expected, rtol=0, atol=1e-11)  # nothing happens before `update`
    assert tick.run() == 0
    assert_allclose(u, servo.torque(Q0, S0, case_study_sample(1.0)), rtol=0, atol=1e-11)


def test_ticks_do_not_share_buffers(servo: Servo) -> None:
    one, two = servo.compile(), servo.compile()
    first = one(Q0, S0, case_study_sample(0.0)).copy()
    two(Q0 + 0.1, S0, case_study_sample(1.0))
    assert_allclose(one.buffers.u, first, rtol=0, atol=0)
    assert np.abs(two.buffers.u - first).max() > 1e-3
    assert_allclose(one.buffers.q, Q0, rtol=0, atol=0)


def test_update_allocates_nothing_that_stays(servo: Servo) -> None:
    tick = servo.compile()
    fill(tick, Q0, S0, 0.0)
    for _ in range(1000):
        tick.run()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(100):
            tick.run()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(10_000):
            tick.run()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One leaked Python object per call would be 10^4 times at least 16 bytes.
    assert after - before < 4096
    assert peak - before < 8192


@pytest.mark.parametrize("asked", ["yes", "", 1, None], ids=repr)
def test_interpreted_is_a_truth_value(servo: Servo, asked: object) -> None:
    refused(
        ConcurError,
        lambda: servo.compile(interpreted=asked),  # type: ignore[arg-type]
        where="`interpreted`",
        expected="True or False",
        came=repr(asked),
    )
