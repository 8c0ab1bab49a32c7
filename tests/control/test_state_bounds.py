"""Bounds of the period and of the state of laws with a state, in all that evaluates them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import concur as cc
from concur.control import (
    PassiveServo,
    ReferenceTick,
    Servo,
    Tick,
    TickStatus,
    TrackingLaw,
    tracking_law,
)
from concur.control._state_bounds import SLOWEST
from concur.errors import ConcurError, NonFiniteError
from concur.simulation import Imperfections, Integrator, RealPlant
from hil.controller import Mode
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.control._cases import Q0, S0, case_study, case_study_sample, refused

EXAMPLES = Path(__file__).parents[2] / "examples"
WRAPPED = [2.0**24 * 1e-6, 2.0**16 * 1e-3, 2.0**32 * 1e-6, 1e6]
"""Counters that wrapped: of 24 and 32 bits in microseconds, of 16 bits in milliseconds."""


@dataclass(frozen=True)
class Held:
    """A user's law with an integral of some joints, of which the third has no number left."""

    model: cc.reduction.ReducedModel
    torque_limits: None = None
    longest_period: Any = None
    largest_state: Any = None

    def graph(self) -> ca.Function:
        q, s, z = (ca.SX.sym(n, k) for n, k in (("q", 8), ("s", 5), ("z", 2)))
        rate = ca.vertcat(0.3 - q[3], ca.log(q[4]))
        u = ca.vertcat(z, ca.SX(3, 1)) - s
        return ca.Function("held", [q, s, z], [u, rate], ["q", "s", "z"], ["u", "zdot"])


def law(kind: str, **options: Any) -> TrackingLaw:
    servo = case_study()
    if kind == "own":
        return tracking_law(Held(servo.model, **options), "here")
    if kind == "payload":
        gains = {"stiffness": [60.0, 90.0], "damping": [60.0, 60.0], "rate": [2.0, 3.0]}
        return PassiveServo(servo.model, servo.outputs, **gains, payload="fore", **options)
    limits = {"torque_limits": 40.0} if kind == "limited" else {}
    return replace(servo, integral=[3.0, 8.0], **limits, **options)


KINDS = ["integral", "limited", "payload", "own"]
Q = np.array([*Q0[:3], 0.1, 0.2, *Q0[5:]])


def filled(kind: str, **options: Any) -> Tick:
    tick = tracking_law(law(kind, **options)).compile(interpreted=True)
    tick.buffers.q[:], tick.buffers.s[:] = Q, S0
    if kind != "own":
        sample = case_study_sample(0.0)
        parts = tick.servo.flat(sample)
        buffers = tick.buffers.pose, tick.buffers.twist, tick.buffers.acceleration
        for buffer, part in zip(buffers, parts, strict=True):
            buffer[:] = part
    return tick


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("declared", [None, 0.02])
def test_period_is_bad_input_beyond_its_bound(kind: str, declared: float | None) -> None:
    tick = filled(kind, longest_period=declared)
    longest = tick.servo.state_bounds.period
    assert longest == declared or declared is None
    tick.buffers.period[:] = 0.01
    assert tick.run() == TickStatus.OK
    kept = tick.buffers.state.copy()
    assert kept.any()
    for bad in (np.nextafter(longest, 9.0), *WRAPPED, -1e-12, -1.0, np.nan, np.inf, -np.inf):
        tick.buffers.period[:] = bad
        assert tick.run() in (TickStatus.BAD_INPUT, TickStatus.FAILED), bad
        assert_array_equal(tick.buffers.u, 0.0)
        assert_array_equal(tick.buffers.state, kept)
    for good in (longest, np.nextafter(longest, 0.0), 0.0):
        tick.buffers.period[:] = good
        assert tick.run() == TickStatus.OK
        assert tick.buffers.u.any()
    before = tick.buffers.state.copy()
    assert tick.run() == TickStatus.OK  # with a period of zero
    assert_array_equal(tick.buffers.state, before)


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_bad_input_beyond_its_bounds_and_held_at_them(kind: str) -> None:
    tick = filled(kind, largest_state=2.0)
    tick.buffers.period[:] = 0.01
    state = tick.buffers.state
    for k in range(state.size):
        for bad in (np.nextafter(2.0, 3.0), -3.0, 1e6, 1e30, np.nan, np.inf, -np.inf):
            tick.reset()
            state[k] = bad
            assert tick.run() in (TickStatus.BAD_INPUT, TickStatus.FAILED), (k, bad)
            assert_array_equal(tick.buffers.u, 0.0)
            assert_array_equal(state[k], bad)  # kept, until a reset
        for good in (2.0, -2.0):
            tick.reset()
            state[k] = good
            assert tick.run() == TickStatus.OK
            assert np.abs(state).max() <= 2.0
    rate = filled(kind)
    rate.buffers.period[:] = 1e-3
    rate.run()
    moved = np.sign(rate.buffers.state)
    tick.reset()
    for _ in range(3):
        state[:] = 2.0 * moved
        assert tick.run() == TickStatus.OK
        assert_array_equal(state, 2.0 * moved)  # held


def test_refused_periods_and_states_are_named() -> None:
    tick, sample = Tick(law("integral", longest_period=0.5), True), case_study_sample(0.0)
    tick.buffers.period[:] = 4295.0
    error = refused(
        ConcurError, lambda: tick(Q, S0, sample), where="`buffers.period`", came="4295 s"
    )
    assert "0.5 s" in error.expected
    tick.buffers.period[:] = 0.01
    tick.buffers.state[3] = 1e9
    refused(ConcurError, lambda: tick(Q, S0, sample), where="`buffers.state`", came="[3] = 1e+09")
    tick.buffers.state[3] = np.nan
    refused(NonFiniteError, lambda: tick(Q, S0, sample), where="`buffers.state`")
    tick.reset()
    assert tick(Q, S0, sample).any()
    # The torque of a state that is handed in has the same bounds.
    servo, most = law("integral"), law("integral").state_bounds.state
    assert isinstance(servo, Servo)
    assert servo.torque(Q, S0, sample, most).any()
    for bad in (np.nextafter(most, np.inf), np.full(5, 1e9)):
        refused(ConcurError, lambda bad=bad: servo.torque(Q, S0, sample, bad), where="`z`")


def test_reference_ticks_have_the_bounds_of_their_law() -> None:
    servo = law("integral", longest_period=0.05)
    inside = ReferenceTick(servo, cc.references.hold(servo.output(Q) + 0.1), interpreted=True)
    inside.buffers.period[:] = 0.051
    refused(ConcurError, lambda: inside(0.0, Q, S0), where="`buffers.period`")
    inside.buffers.period[:] = 0.05
    assert inside(0.0, Q, S0).any()


def test_rate_without_a_number_does_not_become_a_state() -> None:
    tick = filled("own")
    tick.buffers.period[:] = 0.01
    assert tick.run() == TickStatus.OK
    kept = tick.buffers.state.copy()
    for angle in (0.0, -1.0):  # of which the logarithm is infinite, or no number
        tick.buffers.q[4] = angle
        assert tick.run() == TickStatus.NO_RESULT
        assert_array_equal(tick.buffers.u, 0.0)
        assert_array_equal(tick.buffers.state, kept)


def sampled_radius(log_gains: np.ndarray, share: float) -> float:
    """Spectral radius of a double integrator, sampled at `share` over the fastest rate."""
    kp, kd, ki = np.exp(log_gains)
    t = share / np.abs(np.roots([1.0, kd, kp])).max()
    force = np.array([-kp, -kd, ki])
    step = np.eye(3) + np.array([t * t / 2 * force + [0.0, t, 0.0], t * force, [-t, 0.0, 0.0]])
    return float(np.abs(np.linalg.eigvals(step)).max())


def test_no_sampled_loop_is_stable_beyond_the_default() -> None:
    """The best gains found for a period that is shorter than the default, and for the default."""
    starts = np.random.default_rng(0).normal(size=(5, 3))
    best = {
        share: min(
            minimize(sampled_radius, x, args=(share,), method="Nelder-Mead").fun for x in starts
        )
        for share in (2.8, SLOWEST)
    }
    assert best[2.8] < 1.0 < best[SLOWEST]
    servo = law("integral")
    fastest = np.abs(np.roots([1.0, 6.0, 9.0])).max()  # of the hand
    assert servo.state_bounds.period == pytest.approx(SLOWEST / fastest, rel=1e-6)
    quick = replace(servo, stiffness=[400.0, 900.0], damping=[40.0, 60.0])
    assert quick.state_bounds.period == pytest.approx(0.1 * SLOWEST / fastest, rel=1e-6)


def test_default_bounds_of_states_are_those_of_a_far_error() -> None:
    servo = law("integral")
    size = 100.0 * cc.robot.robot_size(servo.model.robot)
    wanted = size * np.array([4, 4, 9, 9, 9]) / np.array([3, 3, 8, 8, 8])
    assert_allclose(servo.state_bounds.state, wanted, rtol=1e-9)
    # Outputs without integral action have a bound too, which holds what has no effect.
    part = replace(servo, integral=[0.0, 8.0]).state_bounds.state
    assert (part > 0.0).all()
    assert_allclose(part[2:], wanted[2:], rtol=1e-9)
    load = law("payload").state_bounds.state
    mass = sum(body.inertia.mass for body in servo.model.robot.bodies)
    assert_allclose(load[:4], [100 * mass, *[mass * size] * 3], rtol=1e-9)
    assert (law("own").state_bounds.period, *law("own").state_bounds.state) == (1.0, 1e18, 1e18)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("longest_period", bad) for bad in (0.0, -1.0, np.nan, np.inf, "1 s")),
        *(("largest_state", bad) for bad in (0.0, -1.0, np.nan, 1.1e18, [1.0, 1.0, 1.0])),
    ],
)
def test_bounds_are_positive_numbers(kind: str, name: str, bad: object) -> None:
    with pytest.raises(ConcurError, match=name):
        law(kind, **{name: bad})


def test_bounds_without_a_state_have_no_effect() -> None:
    servo = replace(case_study(), longest_period=1e-3, largest_state=[1.0] * 5)
    assert servo.state_bounds.state.shape == (0,)
    assert Tick(servo, interpreted=True)(Q, S0, case_study_sample(0.0)).any()
    servo.state_bounds.check_period("here", 1.0)


@pytest.mark.parametrize("imperfect", [False, True])
def test_simulations_reject_control_periods_beyond_the_bound(imperfect: bool) -> None:
    servo = law("integral", longest_period=0.02)
    goal = cc.references.hold(servo.output(Q))
    plant = RealPlant(imperfections=Imperfections() if imperfect else None)

    def run(period: float) -> cc.Run:
        loop = Integrator(dt=0.01, control_period=period)
        robot = servo.model.robot
        return cc.simulate(robot, servo, goal, 0.06, Q, np.zeros(5), loop, plant)

    assert np.isfinite(run(0.02).u).all()
    refused(ConcurError, lambda: run(0.03), where="`control_period`", came="0.03 s")


@pytest.mark.extended
def test_rig_rejects_a_loop_beyond_the_bound(tmp_path: Path) -> None:
    rig = load_rig(EXAMPLES / "rover_rig/rig.toml")
    slow = replace(rig.task.servo, integral=1.0, longest_period=0.5 * rig.loop.period)
    options = SessionOptions(Mode.MOCK, 0.1, tmp_path / "run", heartbeat="auto", emulated=True)
    refused(ConcurError, lambda: run_session(rig, options, slow), where="`loop.period`")
