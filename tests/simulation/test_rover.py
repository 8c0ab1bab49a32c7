"""The rover of section 5.5 in closed loop, and against a simulator that shares no code with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.simulation import Imperfections, Integrator, RealPlant, simulate
from tests.control._cases import (
    Q0,
    S0,
    case_study,
    case_study_reference,
    case_study_sample,
)
from tests.oracles import CASE_STUDY, Constrained, Pinocchio, assert_close, rover_rows

N = CASE_STUDY
SERVO = case_study()
ROBOT = SERVO.model.robot
FULL = Constrained(Pinocchio(ROBOT), rover_rows(N.b, N.c))


def test_run_settles_on_the_exact_error_dynamics() -> None:
    servo = case_study(stiffness=16.0, damping=8.0)
    run = simulate(ROBOT, servo, case_study_reference(), 6.0, Q0, S0, dt=2e-3)
    assert np.abs(run.deviation).max() < 1e-6
    assert np.abs(run.error[0]).max() > 0.05
    assert np.abs(run.error[-1]).max() < 1e-6
    assert run.constraint_residual.max() < 1e-9
    assert np.abs(run.energy_balance).max() < 1e-8
    assert np.ptp(run.work) > 1.0
    assert_allclose(run.pose - run.reference, -run.error, rtol=0, atol=1e-15)


def test_states_are_those_of_the_independent_simulator() -> None:
    times = np.arange(1, 9) * 0.25
    tick = SERVO.compile()

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(3), tick(q, v[3:], case_study_sample(t))])

    q, v = FULL.simulate(Q0, SERVO.model.velocity(Q0, S0), law, times)
    run = simulate(ROBOT, SERVO, case_study_reference(), 2.0, Q0, S0)
    rows = (times * 1000).round().astype(int)
    assert_close(run.q[rows], q, 1e-7)
    assert_close(run.v[rows], v, 1e-7)
    assert_close(run.s, run.v[:, 3:], 1e-15)
    for k in rows:
        expected = law(run.t[k], run.q[k], run.v[k])[3:]
        assert_allclose(run.u[k], expected, rtol=0, atol=1e-10)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("method", ["rkmk4", "dop853", "rk45", "radau", "lsoda"])
def test_methods_agree(method: str) -> None:
    # The implicit ones are slow in Python, and nothing more is learnt from a longer run.
    duration = 0.5 if method in ("rkmk4", "dop853") else 0.1
    one = simulate(ROBOT, SERVO, case_study_reference(), duration, Q0, S0, dt=5e-3)
    integrator = Integrator(method, 5e-3)
    other = simulate(ROBOT, SERVO, case_study_reference(), duration, Q0, S0, dt=integrator)
    assert other.method == method
    assert_allclose(other.q, one.q, rtol=0, atol=1e-7)
    assert_allclose(other.v, one.v, rtol=0, atol=1e-6)
    assert_allclose(other.work, one.work, rtol=0, atol=1e-6)


def on_the_reference() -> tuple[np.ndarray, np.ndarray]:
    path = SERVO.feasibility(case_study_reference(), 0.02, Q0)
    return path.configurations[0], path.speeds[0]


@pytest.mark.extended
def test_error_under_hold_is_first_order_in_the_period() -> None:
    # P15: 20, 50, 100 and 200 Hz.
    q0, s0 = on_the_reference()
    periods = np.array([0.05, 0.02, 0.01, 0.005])
    worst = []
    for hold in periods:
        integrator = Integrator(control_period=hold)
        run = simulate(ROBOT, SERVO, case_study_reference(), 3.0, q0, s0, dt=integrator)
        assert run.control_period == hold
        assert np.abs(run.error[0]).max() < 1e-10
        worst.append(np.abs(run.error).max())
    slopes = np.diff(np.log(worst)) / np.diff(np.log(periods))
    assert_allclose(slopes, 1.0, atol=0.1)
    assert worst[-1] > 1e-6
    continuous = simulate(ROBOT, SERVO, case_study_reference(), 3.0, q0, s0)
    assert np.abs(continuous.error).max() < 1e-9


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dop853"])
def test_held_torque_changes_at_its_own_period_only(method: str) -> None:
    integrator = Integrator(method, 5e-3, 0.02)
    run = simulate(ROBOT, SERVO, case_study_reference(), 0.1, Q0, S0, dt=integrator)
    changes = np.flatnonzero(np.abs(np.diff(run.u, axis=0)).max(axis=1) > 0.0) + 1
    assert changes.tolist() == [4, 8, 12, 16]
    for k in (0, 4, 8, 12, 16):
        expected = SERVO.torque(run.q[k], run.s[k], case_study_sample(run.t[k]))
        assert_allclose(run.u[k], expected, rtol=0, atol=1e-11)
    # The work is that of the held torque, and the energy is gained by it alone.
    assert np.abs(run.energy_balance).max() < 1e-8


def test_progress_is_reported_up_to_the_end() -> None:
    seen: list[float] = []
    simulate(ROBOT, SERVO, case_study_reference(), 0.5, Q0, S0, dt=Integrator(progress=seen.append))
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("options", "imperfect"),
    [
        ({}, False),
        ({"control_period": 4e-3}, False),
        ({"method": "dop853", "dt": 2e-3}, False),
        ({"control_period": 4e-3}, True),
    ],
)
def test_an_interrupted_run_has_what_was_checked_before(
    options: dict[str, Any], imperfect: bool
) -> None:
    plant = RealPlant(imperfections=Imperfections(latency=1e-3)) if imperfect else None
    given = ROBOT, SERVO, case_study_reference(), 0.4, Q0, S0
    seen: list[float] = []

    def stop(done: float) -> None:
        seen.append(done)
        if done > 0.5:
            raise KeyboardInterrupt

    whole = simulate(*given, Integrator(**options), plant)
    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(*given, Integrator(**options, progress=stop), plant)
    run = caught.value.run  # type: ignore[attr-defined]
    assert run.t[-1] == pytest.approx(0.4 * seen[-2])
    assert 0 < len(run.t) < len(whole.t)
    for name in ("q", "v", "work"):
        assert_allclose(getattr(run, name), getattr(whole, name)[: len(run.t)], rtol=0, atol=1e-12)


def test_an_error_of_a_reference_within_a_step_comes_out() -> None:
    def ends(t: float) -> Any:
        if t > 0.0213:
            raise RuntimeError("no samples any more")
        return case_study_sample(t)

    with pytest.raises(RuntimeError, match="no samples"):
        simulate(ROBOT, SERVO, ends, 0.04, Q0, S0, Integrator("dop853", dt=1e-2))
