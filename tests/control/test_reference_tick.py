"""A law with its reference inside: torques of the servo, no torque on bad input or bad times."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur import robots
from concur.control import ReferenceTick, Servo, Tick, TickStatus
from concur.errors import ConcurError, NonFiniteError, ShapeError, SingularConfigurationError
from concur.outputs import Output, ReferenceSample, references
from concur.outputs.references import Reference
from concur.reduction import reduce
from tests.control._cases import Q0, S0, case_study, refused

STRETCHED = np.array([*Q0[:5], 0.1, 0.0, 0.0])
KNOTS = np.linspace(0.0, 3.0, 31)


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def demands(servo: Servo, q: np.ndarray) -> dict[str, Reference]:
    place = np.atleast_1d(servo.output(q))
    drawn = np.random.default_rng(4).normal(size=(31, servo.size)).cumsum(axis=0)
    if servo.size == servo.pose_size:
        table = references.waypoints(KNOTS, place + 0.01 * drawn)
        curve = references.polynomial([place, *0.1 * drawn[:3]])
    else:
        points = [[*(place[:3] + 0.01 * row[:3]), *place[3:]] for row in drawn]
        table = references.waypoints(KNOTS, points, group="SE3")
        curve = references.polynomial(0.01 * drawn[:3], start=place, group="SE3")
    return {"curve": curve, "table": table}


def plain(reference: Reference) -> Reference:
    """The same as a custom function."""
    return references.from_function(reference, reference.pose_size, reference.size)


def test_torques_are_those_of_the_servo_at_the_sample(servo: Servo) -> None:
    limited = replace(servo, torque_limits=1.0)
    measured = replace(servo, use_measured_velocity=True)
    rng = np.random.default_rng(1)
    for law in (servo, limited, measured):
        for reference in demands(law, Q0).values():
            own = Tick(law, interpreted=True)
            given = (reference, plain(reference), plain(reference).__call__)
            for one in given if law is servo else given[:1]:
                tick = ReferenceTick(law, one, interpreted=True)
                for t in (-0.4, 0.0, 0.1, 1.234, 3.0, 3.7):
                    q, s = Q0 + 0.05 * rng.normal(size=8), 0.3 * rng.normal(size=law.nw)
                    expected = own(q, s, reference(t))
                    assert_allclose(tick(t, q, s), expected, rtol=1e-9, atol=1e-9)
                    assert_allclose(tick.buffers.pose, reference(t).pose, rtol=1e-12, atol=1e-12)
                    assert_allclose(tick.buffers.scale, own.buffers.scale, atol=1e-6)


def test_momentum_is_an_input_as_it_is_of_a_tick() -> None:
    robot = robots.free_flyer()
    hand = Output("hand", "tool", "SE3")
    law = Servo(reduce(robot, momentum=[0.5, -0.3, 0.2, 2.5, 0.8, 0.8]), [hand], 4.0, 4.0)
    q = robot.neutral()
    q[7:] = [0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    for reference in demands(law, q).values():
        tick, own = ReferenceTick(law, reference, True), Tick(law, True)
        assert_array_equal(tick.buffers.momentum, law.model.momentum)
        for mu in (law.model.momentum, np.full(6, 0.3)):
            tick.buffers.momentum[:] = own.buffers.momentum[:] = mu
            expected = own(q, np.full(6, 0.1), reference(0.7))
            assert_allclose(tick(0.7, q, np.full(6, 0.1)), expected, rtol=1e-9, atol=1e-9)


def test_bad_input_and_bad_times_give_no_torque(servo: Servo) -> None:
    reference = demands(servo, Q0)["table"]
    for given in (reference, plain(reference)):
        tick = servo.compile(given, interpreted=True)
        buffers = tick.buffers
        for name, bad in (
            *((name, bad) for name in ("t", "q", "s") for bad in (np.nan, np.inf, -np.inf)),
            ("t", np.nextafter(1e9, np.inf)),
            ("t", -np.nextafter(1e9, np.inf)),
            ("s", 1e19),
        ):
            buffers.t[:], buffers.q[:], buffers.s[:] = 0.5, Q0, S0
            assert tick.run() == 0
            assert buffers.u.any()
            getattr(buffers, name)[-1] = bad
            assert tick.run() == TickStatus.BAD_INPUT
            assert not buffers.u.any()
        for t in (1e9, -1e9):
            buffers.t[:], buffers.q[:], buffers.s[:] = t, Q0, S0
            assert tick.run() != TickStatus.BAD_INPUT
        for t, kind, words in (
            (np.nan, NonFiniteError, {"where": "argument `t`"}),
            (2e9, ConcurError, {"expected": "a time within 1e+09 s", "came": "2e+09 s"}),
        ):
            refused(kind, lambda t=t, tick=tick: tick(t, Q0, S0), **words)
        refused(NonFiniteError, lambda tick=tick: tick(0.0, Q0 * np.nan, S0), where="argument `q`")
        refused(ShapeError, lambda tick=tick: tick(0.0, Q0[1:], S0), where="argument `q`")
        refused(ShapeError, lambda tick=tick: tick([0.0, 1.0], Q0, S0), where="argument `t`")
        refused(SingularConfigurationError, lambda tick=tick: tick(0.0, STRETCHED, S0))
        assert tick(np.array(0), [*Q0], [*S0]).any()


def test_a_reference_that_leaves_the_numbers_gives_no_torque(servo: Servo) -> None:
    steep = references.polynomial(np.full((40, 5), 1.0))
    tick = servo.compile(steep, interpreted=True)
    tick.buffers.t[:], tick.buffers.q[:], tick.buffers.s[:] = 1e9, Q0, S0
    assert tick.run() == TickStatus.BAD_INPUT
    refused(NonFiniteError, lambda: tick(1e9, Q0, S0), where="`pose` of the reference at 1e+09 s")


def test_a_custom_function_that_fails_leaves_no_torque(servo: Servo) -> None:
    reference = demands(servo, Q0)["curve"]

    def broken(t: float) -> ReferenceSample:
        if t > 1.0:
            raise RuntimeError("no reference")
        return reference(t)

    tick = servo.compile(broken, interpreted=True)
    assert tick(0.5, Q0, S0).any()
    tick.buffers.t[:] = 1.5
    with pytest.raises(RuntimeError, match="no reference"):
        tick.run()
    assert not tick.buffers.u.any()
    assert tick.buffers.status[0] == TickStatus.FAILED


def test_references_that_do_not_fit_are_refused(servo: Servo) -> None:
    for wrong, kind in (
        (references.hold([1.0]), ShapeError),
        (3, ConcurError),
        (True, ConcurError),
    ):
        refused(kind, lambda wrong=wrong: servo.compile(wrong, interpreted=True))


def test_a_jump_over_a_singular_configuration_is_noticed(servo: Servo) -> None:
    tick = servo.compile(demands(servo, Q0)["curve"], interpreted=True)
    other = Q0.copy()
    other[-1] *= -1.0
    assert tick(0.0, Q0, S0).any()
    refused(SingularConfigurationError, lambda: tick(0.0, other, S0))
    assert tick(0.0, other, S0).any()
    tick.reset()
    assert tick(0.0, Q0, S0).any()


@pytest.mark.extended
def test_machine_code_gives_the_same_and_allocates_nothing(servo: Servo, compiler: None) -> None:
    limited = replace(servo, torque_limits=1.0)
    for law in (servo, limited):
        for reference in demands(law, Q0).values():
            tick, slow = law.compile(reference), law.compile(reference, interpreted=True)
            assert (tick.compiled, slow.compiled) == (True, False)
            again = pickle.loads(pickle.dumps(tick))
            assert again.build_times["graph"] == 0.0  # found by its fingerprint
            for t in np.random.default_rng(0).uniform(-1.0, 4.0, 20):
                assert_allclose(tick(t, Q0, S0), slow(t, Q0, S0), rtol=1e-7, atol=1e-7)
                assert_array_equal(again(t, Q0, S0), tick(t, Q0, S0))
            _allocates_nothing(tick)


def _allocates_nothing(tick: ReferenceTick) -> None:
    def run(count: int) -> None:
        for _ in range(count):
            tick.run()

    run(1000)
    gc.collect()
    tracemalloc.start()
    try:
        run(100)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run(10_000)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4096
    assert peak - before < 8192
