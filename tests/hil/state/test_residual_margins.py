"""Constants of residuals and of their explanation, each on both sides, by independent numbers."""

import math

import numpy as np
import pytest

from hil.reasons import Reason
from hil.state import _explanation
from hil.state._explanation import Cause, Sample, Tracked, explain
from hil.state._residual import (
    CHANGE,
    FEW,
    FLOOR,
    GAP,
    HALF,
    JOLT,
    LOOKS,
    MEMORY,
    PATIENCE,
    RATES,
    REPEATS,
    STEPS,
    TIMING,
    Allowance,
    Residual,
    Still,
    allowance_of,
    coast,
    correct,
)
from tests.hil.bench import ROVER, ROVER_MIT, law_of, rig_of

N, PERIOD, LIMIT, STEP = 5, 0.004, 10.0, 1e-9
ONE = np.eye(N).tolist()
ZERO = [0.0] * N


@pytest.fixture
def residual():
    """Residuals of five axes without friction, with fine encoders and an inertia of one."""
    made = Residual(rig_of(), law_of(ROVER)[0])
    made.allowances = [Allowance(LIMIT, 0.0, 0.0, 0.0, 0.0, STEP, 0.0)] * N
    made._latency, made._fastest = 0.0, [1e9] * N
    return made


def follow(residual, k, position, torques=ZERO, accelerations=ZERO, time=None, reports=None):
    """Pass a cycle in which the first axis has a position; the others stand still."""
    time = k * PERIOD if time is None else time
    counts = [k if reports is None else reports, *[0] * (N - 1)]
    positions = [position, *[0.0] * (N - 1)]
    return residual.follow(positions, [time] * N, counts, torques, accelerations, ONE, ZERO, ONE)


# -- observers and bounds --------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "half"), [(0, 0.02674), (1, 0.06685), (2, 0.22283)])
def test_half_of_a_step_is_seen_after_its_time(k, half):
    """1 - exp(-x) (1 + x + x^2 / 2) is one half at x = 2.674."""
    dt, state, seen = 1e-5, Tracked(0.0, 0.0, 0.0), 0.0
    while state.d < 0.5:
        seen += dt
        state, _ = correct(coast(state, 0.0, dt), 0.5 * seen**2, dt, RATES[k])
    assert 0.995 * half < seen < 1.005 * half


@pytest.mark.parametrize(("share", "stops"), [(0.97, False), (1.03, True)])
def test_a_hundredth_of_the_limit_is_the_least_that_stops(residual, share, stops):
    assert FLOOR == 0.01
    force, found = share * 0.01 * LIMIT, None
    for k in range(1, 400):
        found = found or follow(residual, k, 0.5 * force * (k * PERIOD) ** 2)
    assert (found is not None) is stops
    if stops:
        assert (found.reason, found.axis) == (Reason.CONTACT, 0)


@pytest.mark.parametrize(("part", "stops"), [(0.97, False), (1.03, True)])
def test_a_sudden_change_has_half_of_the_floor(residual, part, stops):
    assert CHANGE == 0.5
    quick, slow = Tracked(0.0, 0.0, part * 0.5 * 0.01 * LIMIT), Tracked(0.0, 0.0, 0.0)
    residual._states = [[quick, *[slow] * (N - 1)], [slow] * N, [slow] * N]
    residual._average(ONE)
    assert residual._compare(ONE, ZERO, ZERO) == (-1, 0 if stops else -1)


@pytest.mark.parametrize("rate", RATES)
def test_a_step_of_the_speed_changes_the_acceleration_by_its_jolt(rate):
    """x^2 / 2 exp(-x) is largest at x = 2."""
    state, most, dt = Tracked(0.0, 0.0, 0.0), 0.0, 1e-3 / rate
    for k in range(1, 6000):
        state, _ = correct(coast(state, 0.0, dt), k * dt, dt, rate)
        most = max(most, state.d)
    assert most == pytest.approx(2.0 * np.exp(-2.0) * rate, rel=2e-3)
    assert most == pytest.approx(JOLT * rate, rel=0.01)


@pytest.mark.parametrize(("share", "seen"), [(0.9, False), (1.15, True)])
def test_a_step_of_the_speed_is_beyond_the_bound_from_the_seen_speed_on(residual, share, seen):
    """A hundredth of the limit, by the fastest observer, with an inertia of one."""
    speeds = residual.seen_speeds(np.eye(N), ZERO, np.eye(N))
    assert speeds == pytest.approx([0.01 * LIMIT / (0.27 * 100.0)] * N, rel=0.01)
    firm = False
    for k in range(1, 60):
        follow(residual, k, share * speeds[0] * PERIOD * max(k - 20, 0))
        firm = firm or residual._firm
    assert firm is seen


def test_the_instant_of_a_sample_is_unsure_by_a_tenth_of_a_millisecond():
    rig = rig_of(emulator={"jitter": 3e-4})
    assert TIMING == 1e-4
    own = allowance_of(rig.axes[0], rig)
    assert own.blur(2.0) - own.blur(0.0) == pytest.approx(2.0 * 4e-4)


@pytest.mark.parametrize(("periods", "kept"), [(1.45, True), (1.55, False)])
def test_after_a_gap_an_observer_restarts(residual, periods, kept):
    assert GAP == 1.5
    for k in range(1, 5):
        follow(residual, k, 0.0)
    follow(residual, 5, 1e-3, time=(4.0 + periods) * PERIOD)
    assert len(residual._samples[0]) == (5 if kept else 1)
    x = residual._states[-1][0].x
    assert (x < 1e-3) is kept  # corrected by a part, or set


@pytest.mark.parametrize(
    ("reports", "known", "taken"), [(1, True, True), (2, True, False), (1, False, False)]
)
def test_a_report_of_unknown_instant_is_no_sample(residual, reports, known, taken):
    """One that may answer an earlier request, or one of several that came at once."""
    for k in range(1, 5):
        follow(residual, k, 0.0)
    counts = [count + reports for count in residual._counts]
    times = [5.0 * PERIOD if known else float("nan")] * N
    residual.follow(
        [1e-3] * N, times, counts, ZERO, ZERO, np.eye(N).tolist(), ZERO, np.eye(N).tolist()
    )
    assert (residual._seen[0][1] == 1e-3) is taken
    assert residual._counts == counts
    assert residual._times[0] > 4.0 * PERIOD - residual._latency  # the observers went on


def test_samples_of_the_last_eight_tenths_of_a_second_are_kept(residual):
    assert MEMORY == 0.8
    for k in range(1, 260):
        follow(residual, k, 0.0)
    times = [sample.time for sample in residual._samples[0]]
    assert times[-1] - times[0] == pytest.approx(0.8 - PERIOD)


# -- judgement -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("torque", "cycles"),
    # 14 ms of the whole torque: the fourth cycle of 4 ms. Without torque more than 60 ms.
    [(LIMIT, 4), (2.0 * LIMIT, 4), (0.5 * LIMIT, 8), (0.0, 16)],
)
def test_a_residual_without_a_clear_cause_stops_after_its_impulse(residual, torque, cycles):
    assert PATIENCE == (0.014, 0.06)
    residual._axis, residual._firm = 0, True
    residual.cause = lambda *_: None
    for _ in range(cycles - 1):
        assert residual._judge([torque, *ZERO[1:]]) is None
    assert residual._judge([torque, *ZERO[1:]]).reason is Reason.CONTACT


@pytest.mark.parametrize("clear", [True, False])
def test_causes_are_looked_for_in_some_cycles(residual, clear):
    assert frozenset({4, 8, 16, 32, 64}) == LOOKS
    residual._axis, residual._firm, looks = 0, True, []
    cause = Cause(Reason.IGNORED, 0.0, 1.0, clear)
    residual.cause = lambda *_: looks.append(residual._since) or cause
    for since in range(1, 4):
        assert residual._judge(ZERO) is None, since
    found = residual._judge(ZERO)
    assert (found is not None) is clear
    assert looks == [4]


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("repeats", "share", "stuck"),
    [(3, 1.01, True), (3, 0.99, False), (2, 9.0, False), (4, 1.01, True)],
)
def test_equal_positions_are_stuck_beyond_their_steps_and_three_reports(
    residual, repeats, share, stuck, moved
):
    """Few steps, unless a residual shows a force that may have stopped the axis."""
    assert (STEPS, FEW, REPEATS) == (5.0, 2.5, 3)
    residual._still[0] = Still(repeats, 1.0, 0.0, share * (STEPS if moved else FEW) * STEP)
    if moved:
        still = Tracked(0.0, 0.0, 0.0)
        state = Tracked(0.0, 0.0, 0.51 * 0.01 * LIMIT)
        residual._states = [[state, *[still] * (N - 1)] for _ in RATES]
        residual._times = [-math.inf] * N
    found = follow(residual, 0, 0.0)
    assert (found is not None) is stuck


@pytest.mark.parametrize(("share", "other"), [(0.51, True), (0.49, False)])
def test_a_position_that_stays_may_be_the_fault_of_another_axis(residual, share, other):
    """It is, if the residual of that one is beyond half of its bound, and its own is not."""
    residual._still[0] = Still(9, 1.0, 0.0, 1.0)
    state = Tracked(0.0, 0.0, share * 0.01 * LIMIT)
    still = Tracked(0.0, 0.0, 0.0)
    residual._states = [[still, state, *[still] * (N - 2)] for _ in RATES]
    assert (follow(residual, 0, 0.0) is None) is other


@pytest.mark.parametrize(("share", "found"), [(0.51, True), (0.49, False), (-0.51, True)])
def test_half_of_a_bound_may_explain_an_effect(residual, share, found):
    assert HALF == 0.5
    residual.allowed[:] = 1.0
    residual.torque[2] = share
    residual.cause = lambda *_: Cause(Reason.WRONG_SIGN, -1.0, 1.0, True)
    for axis in (2, -1):
        cause = residual.suspected(axis)
        assert (cause is not None) is found
    for other in (Cause(Reason.WRONG_SIGN, -1.0, 1.0, False), Cause(Reason.CONTACT, 0, 1.0, True)):
        residual.cause = lambda *_, other=other: other
        assert residual.suspected(2) is None


# -- explanation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [_explanation._of_encoder, _explanation._of_torque])
@pytest.mark.parametrize(
    ("change", "possible"),
    [
        (0.29, False),
        (0.31, True),
        (-0.29, False),
        (-0.31, True),
        (10.9, True),
        (11.1, False),
        (-12.9, True),
        (-13.1, False),
    ],
)
def test_factors_near_one_are_no_change_and_large_ones_impossible(make, change, possible):
    assert (_explanation.NOT, _explanation.LARGEST) == (0.3, 12.0)
    cause = make(change, 1.0)
    assert (cause is not None) is possible
    if possible:
        assert cause.factor == pytest.approx(1.0 + change)


@pytest.mark.parametrize(
    ("factor", "torque", "motion"),
    [
        (0.29, Reason.IGNORED, Reason.STUCK),
        (0.31, Reason.TORQUE_SCALE, Reason.COUNT_SCALE),
        (-0.29, Reason.IGNORED, Reason.STUCK),
        (-0.31, Reason.WRONG_SIGN, Reason.WRONG_SIGN),
    ],
)
def test_factors_near_zero_mean_none(factor, torque, motion):
    assert _explanation._of_torque(factor - 1.0, 1.0).reason is torque
    assert _explanation._of_encoder(factor - 1.0, 1.0).reason is motion


@pytest.mark.parametrize(("share", "possible"), [(1.49, True), (-1.49, True), (-1.51, False)])
def test_a_force_has_at_most_half_again_the_limit(share, possible):
    assert _explanation.STRONGEST == 1.5
    assert (_explanation._of_force(share * LIMIT, 1.0, LIMIT) is not None) is possible


@pytest.mark.parametrize(
    ("factor", "usual"),
    [
        (2.0 + 0.23, True),
        (2.0 + 0.25, False),
        (0.11, True),
        (0.66, False),
        (-1.11, True),
        (-1.13, False),
        (4.0 - 0.47, True),
        (3.0 + 0.37, False),
        (0.5 + 0.11, True),
    ],
)
def test_usual_factors_are_preferred_within_twelve_hundredths(factor, usual):
    """Relative for those above one; 0.66 and 3.37 lie between two."""
    assert (_explanation.NEAR, _explanation.CLEARER) == (0.12, 1.5)
    doubt = _explanation._doubt(Cause(Reason.TORQUE_SCALE, factor, 3.0))
    assert doubt == pytest.approx(2.0 if usual else 4.5)
    assert _explanation._doubt(Cause(Reason.CONTACT, factor, 3.0)) == 3.0


@pytest.mark.parametrize(("others", "clear"), [(1.49, False), (1.51, True)])
def test_a_clear_cause_leaves_two_thirds_of_what_all_others_leave(monkeypatch, others, clear):
    """Those of the same reason do not count."""
    monkeypatch.setattr(_explanation, "DELAYS", ())
    monkeypatch.setattr(
        _explanation, "_of_encoder", lambda *_: Cause(Reason.STUCK, 0.0, 1.0, encoder=True)
    )
    monkeypatch.setattr(_explanation, "_of_torque", lambda *_: Cause(Reason.STUCK, 0.0, 1.2))
    monkeypatch.setattr(_explanation, "_of_force", lambda *_: Cause(Reason.CONTACT, 0.0, others))
    still = Tracked(0.0, 0.0, 0.0)
    samples = [Sample(k * PERIOD, 0.0, 0.0, 0.0, still, 0.0) for k in range(8)]
    cause = explain(samples, 1.0, LIMIT, STEP)
    assert cause.encoder
    assert cause.clear is clear


@pytest.mark.parametrize(("count", "enough"), [(3, False), (4, True)])
def test_a_cause_needs_four_samples(count, enough):
    assert _explanation.SHORTEST == 3
    still = Tracked(0.0, 0.0, 0.0)
    samples = [Sample(k * PERIOD, 1e-3 * k**2, 0.0, 1.0, still, 0.0) for k in range(count)]
    assert (explain(samples, 1.0, LIMIT, STEP) is not None) is enough


# -- inertia and torques of the time of the observers -------------------------------------------


def test_friction_is_not_seen_at_an_axis_whose_inertia_changes_with_the_posture(residual):
    """Constant friction at the second axis; the inertia that couples both grows at a constant rate.

    The accelerations that the model lacks are solved from the inertia of each instant. With the
    inertia of the end, the first axis would show the friction times the change in 0.25 s.
    """
    force, inertia = 0.1, np.eye(N)
    x, w = np.zeros(N), np.zeros(N)
    seen = []
    for k in range(1, 250):
        inertia[0, 1] = inertia[1, 0] = 0.8 * k * PERIOD
        d = np.linalg.solve(inertia, force * np.eye(N)[1])
        x, w = x + (w + 0.5 * d * PERIOD) * PERIOD, w + d * PERIOD
        rows = inertia.tolist()
        arguments = x.tolist(), [k * PERIOD] * N, [k] * N, ZERO, ZERO, rows, ZERO, ONE
        residual.follow(*arguments)
        slow = np.array([state.d for state in residual._states[-1]])
        seen.append((float((np.array(rows) @ slow)[0]), float(residual._inertia[-1][0] @ slow)))
    with_now, with_mean = np.abs(seen[-1])
    assert with_now > 0.1 * force
    assert with_mean < 0.3 * with_now


def test_a_drive_that_answers_commands_samples_before_it_applies_them(residual):
    ease = [[2.0, 1.0, 0.0, 0.0, 0.0], *np.eye(N)[1:].tolist()]
    acted, before, known = [3.0] * N, [1.0, 2.0, 3.0, 3.0, 3.0], [10.0] * N
    assert residual.between_samples(acted, before, known, ease) == (acted, known)
    residual.answers = [True, *[False] * (N - 1)]
    torques, accelerations = residual.between_samples(acted, before, known, ease)
    assert torques == [1.0, 3.0, 3.0, 3.0, 3.0]
    assert accelerations == [10.0 + 2.0 * (1.0 - 3.0) + 1.0 * (2.0 - 3.0), 10.0, 10.0, 10.0, 10.0]


@pytest.mark.parametrize(("file", "answers"), [(ROVER, False), (ROVER_MIT, True)])
def test_drives_of_the_mit_protocol_answer_commands(file, answers):
    assert Residual(rig_of(file), law_of(file)[0]).answers == [answers] * N


def test_what_one_motor_explains_is_seen_at_all_that_share_its_torque(residual):
    """Two motors on one freedom: half of the friction of one is seen at both."""
    half = [[0.5, 0.5, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0], *np.eye(N)[2:].tolist()]
    rubs = Allowance(LIMIT, 0.0, 1.0, 0.0, 0.0, STEP, 0.0)
    residual.allowances = [rubs, *residual.allowances[1:]]
    residual._ease, own = ONE, 0.01 * LIMIT
    assert residual._bounds(half, ZERO, ZERO)[0] == pytest.approx([own + 1.0, *[own] * (N - 1)])
    residual.shared = True
    rests, changes = residual._bounds(half, ZERO, ZERO)
    assert rests == pytest.approx([own + 0.5, own + 0.5, own, own, own])
    assert changes == pytest.approx([0.5 * own + 1.0, 0.5 * own + 1.0, *[0.5 * own] * (N - 2)])


def test_viscous_friction_may_change_with_the_speed(residual):
    """The slowest observer shows the friction of the speed of 0.25 s before."""
    drag = Allowance(LIMIT, 0.5, 0.0, 0.0, 0.0, STEP, 0.0)
    residual.allowances = [drag, *residual.allowances[1:]]
    residual._states[-1][0], residual._paces[0] = Tracked(0.0, 3.0, 0.0), 1.0
    own = 0.5 * 0.01 * LIMIT
    assert residual._bounds(ONE, ZERO, ZERO)[1] == pytest.approx([own + 1.0, *[own] * (N - 1)])
