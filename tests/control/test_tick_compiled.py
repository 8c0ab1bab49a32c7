"""The law as machine code: the interpreter's numbers, other momenta, and never a wrong torque."""

from __future__ import annotations

import gc
import itertools
import resource
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.control import Servo, Tick, TickStatus, tick_function
from concur.errors import NonFiniteError, ShapeError, SingularConfigurationError
from concur.outputs import Output, ReferenceSample
from concur.reduction import StagedReduction, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.control._cases import Q0, S0, case_study, case_study_sample, two_links
from tests.control._floating_cases import (
    CHECK_A_MOMENTUM,
    CHECK_A_Q0,
    CHECK_A_S0,
    check_a_demand,
    flyer,
)
from tests.oracles import Pinocchio, assert_close

pytestmark = pytest.mark.usefixtures("compiler")

MU = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])
INPUTS = ("q", "s", "pose", "twist", "acceleration", "momentum")


def rotor_ship() -> Servo:
    """A floating arm with an unactuated rotor that keeps its spin."""
    link = Inertia(2.0, (0.3, 0.02, 0.01), (0.02, 0.2, 0.21))
    robot = Mechanism(
        "rotor ship",
        [
            Body("ship", joints.Free(), inertia=Inertia(20.0, (0.05, 0.0, 0.1), (2.0, 3.0, 2.5))),
            Body(
                "rotor",
                joints.Revolute((0, 0, 1)),
                "ship",
                Pose((0.1, 0.2, 0.3)),
                Inertia(3.0, moments=(0.1, 0.1, 0.15)),
            ),
            Body("upper", joints.Revolute((0, 1, 0)), "ship", Pose((0.5, 0, 0)), link),
            Body("fore", joints.Revolute((0, 1, 0)), "upper", Pose((0.6, 0, 0)), link),
        ],
        actuated=["upper", "fore"],
    )
    model = reduce(robot, momentum=MU, stages={"rotor": 0.7})
    assert isinstance(model, StagedReduction)
    return Servo(model, [Output("tip", "fore", "R2", (0.6, 0, 0))], 4.0, 2.8)


def drawn(servo: Servo, count: int) -> list[tuple[np.ndarray, np.ndarray, ReferenceSample]]:
    rng = np.random.default_rng(5)
    states = []
    for _ in range(count):
        q = servo.model.robot.integrate(CHECK_A_Q0, 0.2 * rng.normal(size=servo.nv))
        pose = servo.output(servo.model.robot.integrate(q, 0.1 * rng.normal(size=servo.nv)))
        twist, acceleration = rng.normal(size=(2, servo.size))
        states.append((q, rng.normal(size=servo.nw), ReferenceSample(pose, twist, acceleration)))
    return states


@pytest.mark.extended
def test_momentum_may_change_from_tick_to_tick() -> None:
    servo = flyer()
    tick, rng = servo.compile(), np.random.default_rng(6)
    assert_array_equal(tick.buffers.momentum, CHECK_A_MOMENTUM)
    for q, s, sample in drawn(servo, 4):
        momentum = CHECK_A_MOMENTUM + rng.normal(size=6)
        tick.buffers.momentum[:] = momentum
        other = replace(servo, model=servo.model.at_momentum(momentum))
        assert_close(tick(q, s, sample), other.torque(q, s, sample), 1e-11)
        assert np.abs(tick.buffers.u - servo.torque(q, s, sample)).max() > 1e-3
        # The base's velocity that goes with it is what Pinocchio finds it to be.
        v = other.velocity(q, s)
        assert_allclose(Pinocchio(servo.model.robot).momentum(q, v), momentum, atol=1e-11)
        measured = replace(servo, use_measured_velocity=True)
        assert_close(tick.buffers.u, measured.torque(q, v, sample), 1e-11)


@pytest.mark.extended
def test_momentum_may_change_behind_stages() -> None:
    servo = rotor_ship()
    robot, rng = servo.model.robot, np.random.default_rng(7)
    tick = servo.compile()
    q, s = robot.integrate(robot.neutral(), 0.5 * rng.normal(size=robot.nv)), rng.normal(size=2)
    sample = ReferenceSample(servo.output(q) + 0.1, rng.normal(size=2), rng.normal(size=2))
    assert_close(tick(q, s, sample), servo.torque(q, s, sample), 1e-11)
    # The rotor keeps its spin at another momentum too.
    momentum = MU + rng.normal(size=6)
    other = replace(servo, model=servo.model.at_momentum(momentum))
    tick.buffers.momentum[:] = momentum
    assert_close(tick(q, s, sample), other.torque(q, s, sample), 1e-11)
    assert np.abs(tick.buffers.u - servo.torque(q, s, sample)).max() > 1e-3


@pytest.mark.extended
def test_robot_on_wheels_and_measured_velocities_take_no_momentum() -> None:
    for servo in (case_study(), flyer(use_measured_velocity=True)):
        assert servo.compile().buffers.momentum.shape == (0,)
        assert "momentum" not in tick_function(servo).name_in()
    assert tick_function(flyer()).name_in() == [*INPUTS]


@pytest.mark.by_default(3)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("interpreted", "options"),
    [(False, {}), (True, {"torque_limits": 3.0}), (True, {}), (False, {"torque_limits": 3.0})],
    ids=str,
)
def test_no_torque_leaves_on_a_number_that_is_none(
    options: dict[str, object], bad: float, interpreted: bool
) -> None:
    servo = flyer(**options)
    tick, sample = servo.compile(interpreted=interpreted), check_a_demand()(0.0)
    expected = tick(CHECK_A_Q0, CHECK_A_S0, sample).copy()
    assert (expected != 0.0).all()
    for name in INPUTS:
        buffer = getattr(tick.buffers, name)
        for i in range(len(buffer)):
            kept, buffer[i] = buffer[i], bad
            status = tick.run()
            assert status in (TickStatus.BAD_INPUT, TickStatus.FAILED)
            assert_array_equal(tick.buffers.u, 0.0)
            buffer[i] = kept
            assert tick.run() == 0
            assert_array_equal(tick.buffers.u, expected)
    tick.buffers.momentum[2] = bad
    with pytest.raises(NonFiniteError, match="tick of `free_flyer`, argument `momentum`") as caught:
        tick(CHECK_A_Q0, CHECK_A_S0, sample)
    assert (caught.value.came, caught.value.entries) == (f"[2] = {bad}", (2,))


def test_status_says_why_there_is_no_torque() -> None:
    servo = case_study()
    tick, sample = servo.compile(), case_study_sample(0.0)
    assert tick(Q0, S0, sample).any()
    stretched = np.array([*Q0[:5], 0.1, 0.0, 0.0])
    with pytest.raises(SingularConfigurationError) as caught:
        tick(stretched, S0, sample)
    assert caught.value.margin < servo.singular_margin
    assert "`hand`" in caught.value.came
    assert_allclose(caught.value.q, stretched)
    assert tick.buffers.status[0] == TickStatus.SINGULAR
    assert_array_equal(tick.buffers.u, 0.0)
    far = ReferenceSample(sample.flat_pose, sample.twist, np.full(5, 1e308))
    with pytest.raises(NonFiniteError):
        tick(Q0, S0, far)
    assert tick.buffers.status[0] == TickStatus.BAD_INPUT
    with pytest.raises(NonFiniteError, match="commanded acceleration is too large"):
        tick(Q0, 1e12 * S0, sample)
    assert tick.buffers.status[0] == TickStatus.NO_RESULT
    assert_array_equal(tick.buffers.u, 0.0)

    floating = flyer().compile()
    lost = CHECK_A_Q0.copy()
    lost[3:7] *= 0.5
    with pytest.raises(ShapeError, match="unit norm"):
        floating(lost, CHECK_A_S0, check_a_demand()(0.0))
    assert floating.run() == TickStatus.INVALID_QUATERNION
    assert_array_equal(floating.buffers.u, 0.0)


@pytest.mark.extended
@pytest.mark.parametrize(
    "options", [{}, {"torque_limits": 3.0}, {"damping_threshold": 0.1}], ids=str
)
def test_no_torque_leaves_on_a_number_that_cannot_be_meant(options: dict[str, object]) -> None:
    tick, sample = flyer(**options).compile(), check_a_demand()(0.0)
    expected = tick(CHECK_A_Q0, CHECK_A_S0, sample).copy()
    for name in INPUTS:
        buffer = getattr(tick.buffers, name)
        for i in range(len(buffer)):
            for bad in (1.1e18, -1e30, 1e160, -1e200, 1e300, 1.7e308):
                kept, buffer[i] = buffer[i], bad
                assert tick.run() in (TickStatus.BAD_INPUT, TickStatus.FAILED), (name, i, bad)
                assert_array_equal(tick.buffers.u, 0.0)
                buffer[i] = kept
    # Two that cancel are invalid too.
    tick.buffers.twist[:2] = 1e200, -1e200
    assert tick.run() in (TickStatus.BAD_INPUT, TickStatus.FAILED)
    with pytest.raises(NonFiniteError, match=r"`s`: expected numbers up to 1e\+18, got \[2\]"):
        tick(CHECK_A_Q0, np.where(np.arange(6) == 2, 1e60, CHECK_A_S0), sample)
    assert_array_equal(tick(CHECK_A_Q0, CHECK_A_S0, sample), expected)


def test_call_takes_what_numpy_takes() -> None:
    servo = case_study()
    tick, sample = servo.compile(), case_study_sample(0.5)
    expected = tick(Q0, S0, sample).copy()
    matrix = np.zeros((8, 2))
    matrix[:, 1] = Q0
    for q in (list(Q0), tuple(Q0), Q0.astype(np.longdouble), matrix[:, 1], Q0.astype(">f8")):
        assert_array_equal(tick(q, list(S0), sample), expected)
    with pytest.raises(ShapeError, match="argument `s`"):
        tick(Q0, np.zeros((5, 1)), sample)
    with pytest.raises(ShapeError, match="ReferenceSample"):
        tick(Q0, S0, None)  # type: ignore[arg-type]


def resident() -> int:
    """Memory of the process, in bytes."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * resource.getpagesize()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def grown(tick: Tick, count: int) -> tuple[int, int]:
    """Growth of Python's memory and of the process's, in bytes, over many ticks."""
    run, rounds = tick.run, itertools.repeat(None)
    for _ in itertools.islice(rounds, 10_000):
        run()
    gc.collect()
    before = resident()
    for _ in itertools.islice(rounds, count):
        run()
    process = resident() - before
    tracemalloc.start()
    try:
        for _ in itertools.islice(rounds, 100):
            run()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in itertools.islice(rounds, 10_000):
            run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - kept, process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "count"), [({}, 10_000_000), ({"torque_limits": 3.0}, 5_000_000)], ids=str
)
def test_memory_is_flat_over_ten_million_ticks(options: dict[str, object], count: int) -> None:
    tick = flyer(**options).compile()
    tick(CHECK_A_Q0, CHECK_A_S0, check_a_demand()(0.0))
    python, process = grown(tick, count)
    # Of a tick that kept 16 bytes, 1.6e5 and 8e7 at least would be seen.
    assert python < 2048
    assert process < 1_000_000


@pytest.mark.extended
@pytest.mark.parametrize("interpreted", [False, True])
def test_ticks_of_one_servo_serve_a_thread_each(interpreted: bool) -> None:
    servo = flyer(torque_limits=3.0)
    states = drawn(servo, 4)
    first = servo.compile(interpreted=interpreted)
    expected = [first(*state).copy() for state in states]
    assert min(np.abs(u).max() for u in expected) > 2.9  # the limits are active
    wrong: list[object] = []

    def work(own: int) -> None:
        try:
            tick = servo.compile(interpreted=interpreted)
            for k in range(3000):
                u = tick(*states[(own + k) % 4])
                if np.abs(u - expected[(own + k) % 4]).max() > 1e-9:
                    wrong.append(u.copy())
        except Exception as error:  # what a thread raises is not seen elsewhere
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"{len(wrong)} of 9000 or less, such as {wrong[0]}"


def test_a_law_that_was_compiled_before_is_made_without_a_graph() -> None:
    first = two_links(singular_margin=1.1e-3)
    assert first.__dict__["_evaluators"]
    first.compile()
    again = two_links(singular_margin=1.1e-3)
    assert "_evaluators" not in again.__dict__
    assert_array_equal(again.decoupling([0.2, 0.5]), first.decoupling([0.2, 0.5]))
