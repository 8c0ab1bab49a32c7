"""A tick of the passive servo beside one of the servo: length of the graphs, time in one run."""

import time

import pytest

import concur as cc
from concur.control import Tick
from tests.benchmarks._job import moments, task

MOMENTUM = [0.0, 0.0, 0.0, 0.6, 0.3, 0.3]
START = (0.5, -1.5, 2.1, 0.2, -0.4, 0.8)
"""Joints of the floater's arm, rad."""


def laws(name: str) -> tuple[cc.Servo, cc.PassiveServo]:
    """Both laws with the same outputs."""
    if name == "rover":
        model, outputs = task().servo.model, task().servo.outputs
    else:
        model = cc.reduce(cc.robots.free_flyer(), MOMENTUM)
        outputs = (cc.Output("hand", "tool", "SE3"),)
    return cc.Servo(model, outputs, 9.0, 6.0), cc.PassiveServo(model, outputs, 60.0, 60.0, rate=2.0)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("name", "most"), [("rover", 1.3), ("floater", 1.45)])
def test_graph_is_not_much_longer_than_that_of_the_servo(name, most):
    ours, theirs = (law.graph().n_instructions() for law in reversed(laws(name)))
    assert 1.0 < ours / theirs < most


def fastest(tick: Tick, calls: int = 2000) -> float:
    """Time of a call, s."""
    start = time.perf_counter()
    for _ in range(calls):
        tick.run()
    return (time.perf_counter() - start) / calls


@pytest.mark.extended
@pytest.mark.parametrize("name", ["rover", "floater"])
def test_tick_takes_at_most_one_and_a_half_times_as_long(name, compiler):
    servo, passive = laws(name)
    ticks = servo.compile(), passive.compile()
    q = moments(task(), task().servo, 1)[0].q if name == "rover" else [0.0] * 6 + [1.0, *START]
    for tick in ticks:
        tick.buffers.q[:] = q
        tick.buffers.s[:] = 0.1
        tick.buffers.pose[:] = servo.output(q)
        tick.buffers.twist[:] = tick.buffers.acceleration[:] = 0.1
        assert tick.run() == 0
    times = [[fastest(tick) for tick in ticks] for _ in range(20)]
    theirs, ours = map(min, zip(*times, strict=True))
    assert ours < 1.5 * theirs, f"{1e6 * ours:.2f} us beside {1e6 * theirs:.2f} us"
