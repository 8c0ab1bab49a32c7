"""Residuals of axes: observers by their closed forms, bounds on both sides, causes by name."""

import math

import numpy as np
import pytest

from hil.reasons import Reason
from hil.state._explanation import explain
from hil.state._residual import (
    FLOOR,
    JITTER,
    PEAK,
    RATES,
    SLIP,
    Allowance,
    Sample,
    Still,
    Tracked,
    acting,
    coast,
    correct,
    wait,
)


def track(state, y, a, dt, rate):
    return correct(coast(state, a, dt), y, dt, rate)


# -- observers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("known", [0.0, -3.0])
def test_a_step_of_the_missing_acceleration_is_followed_with_three_poles(rate, known):
    """1 - exp(-x) (1 + x + x^2 / 2) of the step, x = rate t, whatever the model knows."""
    dt, missing = 1e-4, 2.0
    state = Tracked(0.0, 0.0, 0.0)
    for k in range(1, round(4.0 / rate / dt)):
        t = k * dt
        state, _ = track(state, 0.5 * (known + missing) * t**2, known, dt, rate)
        x = rate * t
        expected = missing * (1.0 - math.exp(-x) * (1.0 + x + 0.5 * x**2))
        assert state.d == pytest.approx(expected, abs=0.02 * missing)


@pytest.mark.parametrize("rate", RATES)
def test_constant_acceleration_is_followed_without_error(rate):
    state, dt = Tracked(0.0, 1.0, 0.5), 0.01
    for k in range(1, 50):
        t = k * dt
        state, rest = track(state, t + 0.25 * t**2, 0.0, dt, rate)
        assert abs(rest) < 1e-12
    assert state.d == pytest.approx(0.5)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("period", [5e-4, 2e-3, 1e-2])
def test_a_step_of_the_encoder_changes_the_acceleration_by_its_peak(rate, period):
    state, most = Tracked(0.0, 0.0, 0.0), 0.0
    for _ in range(round(3.0 / rate / period)):
        state, _ = track(state, 1.0, 0.0, period, rate)
        most = max(most, abs(state.d))
    assert most <= PEAK * rate**2
    assert rate * period > 0.1 or most >= 0.85 * PEAK * rate**2


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("period", [5e-4, 2e-3, 1e-2])
def test_errors_of_a_speed_are_largest_for_steps_of_acceleration_and_position(rate, period):
    pushed = stepped = Tracked(0.0, 0.0, 0.0)
    slip = jitter = 0.0
    for k in range(1, round(4.0 / rate / period) + 1):
        t = k * period
        pushed, _ = track(pushed, 0.5 * t**2, 0.0, period, rate)
        stepped, _ = track(stepped, 1.0, 0.0, period, rate)
        slip, jitter = max(slip, abs(t - pushed.w)), max(jitter, abs(stepped.w))
    assert slip <= SLIP / rate
    assert jitter <= JITTER * rate
    if rate * period < 0.1:
        assert slip >= 0.9 * SLIP / rate
        assert jitter >= 0.9 * JITTER * rate


@pytest.mark.parametrize(
    ("commanded", "share"),
    [(10.0, 0.0), (10.001, 0.25), (10.003, 0.75), (10.2, 1.0), (math.nan, 0.0)],
)
def test_the_earlier_torque_acts_until_the_commands(commanded, share):
    acted = acting(np.array([2.0]), np.array([6.0]), 10.0, commanded, 10.004)
    assert acted[0] == pytest.approx(2.0 + 4.0 * share)
    assert acting(np.array([2.0]), np.array([6.0]), math.nan, 1.0, 10.0)[0] == 2.0


# -- bounds -------------------------------------------------------------------------------------


def allowance(**numbers):
    usual = {"limit": 10.0, "viscous": 0.0, "dry": 0.0, "losses": 0.0, "share": 0.0}
    return Allowance(**(usual | {"step": 1e-3, "timing": 1e-4} | numbers))


@pytest.mark.parametrize(
    ("numbers", "state", "more"),
    [
        ({}, (4.0, 3.0, 2.0), 0.0),
        ({"viscous": 0.1}, (0.0, 0.0, -2.0), 0.2),
        ({"dry": 0.3}, (0.0, 0.0, 0.0), 0.3),
        ({"losses": 0.2}, (4.0, 0.0, 0.0), 0.8),
        ({"share": 0.1}, (4.0, -6.0, 0.0), 0.6),  # of the larger one
        ({"share": 0.1}, (4.0, 3.0, 0.0), 0.4),
    ],
)
def test_each_number_of_a_motor_explains_its_part(numbers, state, more):
    assert allowance(**numbers).torque(*state) == pytest.approx(FLOOR * 10.0 + more)


def test_positions_are_blurred_by_steps_and_by_the_instant_of_a_sample():
    assert allowance().blur(0.0) == 1e-3
    assert allowance().blur(-5.0) == pytest.approx(1e-3 + 5e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_axis_without_reports_of_motion_is_braked_by_its_drag_at_most(sign):
    still, dt = Still(0, sign * 0.5, 0.0, 0.0), 1e-3
    for _ in range(400):
        still = wait(still, 0.0, 2.0, dt)
    assert still.repeats == 400
    assert still.w == 0.0
    assert still.way == pytest.approx(0.5**2 / 2.0 / 2.0, rel=0.01)  # w^2 / 2a
    braked = wait(Still(0, sign * 0.5, 0.0, 0.0), -sign * 3.0, 0.0, 0.1)
    assert abs(braked.w) == pytest.approx(0.2)


# -- causes -------------------------------------------------------------------------------------


def observed(change, *, counts, dt=0.002, ease=4.0, noise=0, after=0.15, speed=0.5, push=0.0):
    """Samples of one free motor under a torque that varies; `change` happens to it in between.

    `change` gives factors of torque and motion, a force, and a delay of the torque. The motion is
    integrated here exactly: torques are constant between samples.
    """
    step = 2.0 * math.pi / counts
    torque_factor, motion_factor, force, delay = change
    begun = 0.5
    x = y = 0.0
    w, slow, samples = speed, Tracked(0.0, speed, 0.0), []
    late = round(delay / dt)
    torques = [0.6 * math.sin(7.0 * k * dt) + 0.4 + push for k in range(5000)]
    for k in range(1, round((begun + after) / dt)):
        wrong = k * dt > begun
        u = torques[k]
        acting_torque = torques[k - late] if wrong else u
        a = ease * ((torque_factor if wrong else 1.0) * acting_torque + (force if wrong else 0.0))
        before = x
        x += (w + 0.5 * a * dt) * dt
        w += a * dt
        y += (motion_factor if wrong else 1.0) * (x - before)
        seen = step * round(y / step)
        slow, rest = track(slow, seen, ease * u, dt, RATES[-1])
        samples.append(Sample(k * dt, seen, ease * u, u, slow, rest))
    return samples, step


CAUSES = {
    "reversed torque": ((-1.0, 1.0, 0.0, 0.0), Reason.WRONG_SIGN, -1.0),
    "reversed encoder": ((1.0, -1.0, 0.0, 0.0), Reason.WRONG_SIGN, -1.0),
    "no torque": ((0.0, 1.0, 0.0, 0.0), Reason.IGNORED, 0.0),
    "half the torque": ((0.5, 1.0, 0.0, 0.0), Reason.TORQUE_SCALE, 0.5),
    "twice the torque": ((2.0, 1.0, 0.0, 0.0), Reason.TORQUE_SCALE, 2.0),
    "three times the torque": ((3.0, 1.0, 0.0, 0.0), Reason.TORQUE_SCALE, 3.0),
    "half the counts": ((1.0, 0.5, 0.0, 0.0), Reason.COUNT_SCALE, 0.5),
    "twice the counts": ((1.0, 2.0, 0.0, 0.0), Reason.COUNT_SCALE, 2.0),
    "no motion": ((1.0, 0.0, 0.0, 0.0), Reason.STUCK, 0.0),
    "push": ((1.0, 1.0, 1.3, 0.0), Reason.CONTACT, 1.3),
    "pull": ((1.0, 1.0, -0.9, 0.0), Reason.CONTACT, -0.9),
    "late by 20 ms": ((1.0, 1.0, 0.0, 0.02), Reason.DELAYED, 0.02),
    "late by 60 ms": ((1.0, 1.0, 0.0, 0.06), Reason.DELAYED, 0.06),
}


@pytest.mark.parametrize("counts", [4096, 2**20])  # a delay needs fine steps
@pytest.mark.parametrize(("change", "reason", "factor"), CAUSES.values(), ids=CAUSES)
def test_each_cause_has_its_name_and_factor(change, reason, factor, counts):
    if reason is Reason.DELAYED:
        counts = 2**20
    samples, step = observed(change, counts=counts)
    cause = explain(samples, 4.0, 5.0, step)
    assert cause.reason is reason
    assert cause.factor == pytest.approx(factor, abs=0.25 if counts == 4096 else 0.02)
    assert cause.clear or counts == 4096


def test_nothing_is_explained_by_too_few_samples():
    samples, step = observed((1.0, 1.0, 0.0, 0.0), counts=4096)
    assert explain(samples[:3], 4.0, 5.0, step) is None
