"""Recomputed reference and state of a record: forged numbers are reported with the true ones."""

import dataclasses
import random

import numpy as np
import pytest

from hil import session
from hil._bookkeeping import contradictions
from hil._recomputed import REFERENCE, ROUNDING, TIMES, instant_of, pose_ages, references
from hil.clock import SteppedClock
from hil.controller import Mode
from hil.reasons import Reason, State
from hil.record import Record
from hil.replay import TOLERANCE, replay
from hil.rig import PoseSettings, load_rig
from hil.session import SessionOptions, run_session
from hil.state.estimator import AHEAD
from tests.hil._records import ROOT

EXAMPLES = ROOT / "examples"
DURATION = 0.4


class CreepingClock(SteppedClock):
    """A clock that passes while it is read: nothing happens at the instant of anything else."""

    chance = random.Random(7)

    def now(self):
        self._now += self.chance.uniform(1e-6, 5e-6)
        return self._now


def run_of(file, tmp_path_factory):
    """Rig, servo and record of a run; the record is never to be changed."""
    rig = load_rig(EXAMPLES / file)
    servo, folder = rig.task.servo, tmp_path_factory.mktemp("recomputed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "SteppedClock", CreepingClock)
        result = run_session(
            rig, SessionOptions(Mode.MOCK, duration=DURATION, folder=folder), servo
        )
    assert result.outcome.done
    return rig, servo, Record.load(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return run_of("rover_rig/rig.toml", tmp_path_factory)


@pytest.fixture(scope="module", params=["rover_rig/rig.toml", "rover_rig/rig_mit.toml"])
def each(request, made, tmp_path_factory):
    """Runs with either kind of drive, whose reports differ."""
    return made if "mit" not in request.param else run_of(request.param, tmp_path_factory)


def forged(record):
    """A copy of a record whose numbers may be changed."""
    return dataclasses.replace(record, rows=record.rows.copy())


def differences(made, record):
    rig, servo, _ = made
    return {found.what: found for found in replay(record, rig, servo=servo).differences}


def row_of(record, state, number):
    return int(np.flatnonzero(record["state"] == state)[number])


@pytest.mark.extended
def test_a_run_comes_out_again_at_instants_that_are_found(each):
    rig, servo, record = each
    report = replay(record, rig, servo=servo)
    assert report.differences == ()
    assert report.estimated == round(DURATION / rig.loop.period)
    assert report.as_dict()["estimated"] == report.estimated


# --- the state --------------------------------------------------------------------------------


@pytest.mark.by_default(4)
@pytest.mark.parametrize(
    ("name", "change"),
    [("position", 1e-6), ("report_time", -1e-6), ("q", 1e-6), ("s", 1e-6)],
)
def test_a_forged_report_or_state_is_reported(each, name, change):
    record = forged(each[2])
    k = row_of(record, State.RUN, 60)
    record[name][k, -1] += change if name != "reports" else -record[name][k, -1]
    found = differences(each, record)
    first = min(
        (f for f in found.values() if f.what.startswith("estimator")), key=lambda f: f.cycle
    )
    assert first.cycle == k
    assert first.recorded != first.replayed
    assert first.column in [column for column, _ in record.columns(first.what[-1])]
    if name in "qs":
        assert first.what == f"estimator: {name}"
        assert first.column == record.columns(name)[-1][0]
        assert first.recorded == each[2][name][k, -1] + change
        assert first.replayed == pytest.approx(each[2][name][k, -1], abs=1e-12)


def test_a_forged_velocity_of_a_drive_that_reports_it_is_reported(each):
    record = forged(each[2])
    k = row_of(record, State.RUN, 60)
    reports = bool(np.isfinite(record["velocity"][k, -1]))
    record["velocity"][k, -1] += 1e-3
    assert ("estimator: s" in differences(each, record)) == reports


@pytest.mark.parametrize(("part", "told"), [(0.5, False), (2.0, True)])
def test_states_are_compared_within_the_tolerance(made, part, told):
    record = forged(made[2])
    k = row_of(record, State.RUN, 60)
    assert abs(record["q"][k, 0]) < 1.0
    record["q"][k, 0] += part * TOLERANCE
    assert ("estimator: q" in differences(made, record)) == told


def test_a_shifted_base_is_reported_where_the_shift_begins(made):
    """All cycles from one on: the law is evaluated elsewhere, and each step is right again."""
    record = forged(made[2])
    k = row_of(record, State.RUN, 60)
    record["q"][k:, 0] += 0.01
    found = differences(made, record)["estimator: q"]
    assert (found.cycle, found.cycles) == (k, 1)
    assert found.recorded - found.replayed == pytest.approx(0.01, abs=1e-12)


def test_states_after_missing_rows_are_left_out(made):
    rig, servo, record = made
    k = row_of(record, State.RUN, 60)
    kept = np.setdiff1d(np.arange(len(record)), [k])
    cut = dataclasses.replace(record, rows=record.rows[kept], index=record.index[kept])
    assert replay(cut, rig, servo=servo).estimated == 60


@pytest.mark.parametrize("mode", ["listen", "shadow"])
def test_states_of_a_rig_that_others_drive_are_left_out(made, mode):
    rig, servo, record = made
    other = dataclasses.replace(record, manifest={**record.manifest, "mode": mode})
    assert replay(other, rig, servo=servo).estimated == 0


@pytest.fixture(scope="module")
def floating(tmp_path_factory):
    """The same of a floating robot whose base is corrected by external poses."""
    return run_of("floater_rig/rig.toml", tmp_path_factory)


@pytest.mark.extended
def test_of_a_base_with_an_external_source_the_joints_are_compared(floating):
    rig, servo, record = floating
    report = replay(record, rig, servo=servo)
    assert report.differences == ()
    assert report.estimated == round(DURATION / rig.loop.period)
    other, k = forged(record), row_of(record, State.RUN, 40)
    other["q"][k, 0] += 1e-6
    assert "estimator: q" not in differences(floating, other)
    other = forged(record)
    other["q"][k, -1] += 1e-6
    found = differences(floating, other)["estimator: q"]
    assert (found.cycle, found.column) == (k, record.columns("q")[-1][0])


# --- the instant ------------------------------------------------------------------------------


def motion(x, w, a, passed):
    return x + w * passed + 0.5 * a * passed**2, w + a * passed


SPANS = pytest.mark.parametrize("span", [1e-4, 4e-3])


@SPANS
@pytest.mark.parametrize("speed", [0.0, 1e-3, 3.0])
@pytest.mark.parametrize("part", [-0.2, 0.0, 0.3, 1.0, 1.2])
def test_the_instant_is_found_between_its_bounds(span, speed, part):
    x, w, a = np.array([0.4, -70.0]), np.array([speed, -2.0 * speed]), np.array([5.0, 0.7])
    early, late = motion(x, w, a, 0.0), motion(x, w, a, span)
    now, unsure = instant_of(*motion(x, w, a, part * span), early, late, 10.0, 10.0 + span)
    assert now - 10.0 == pytest.approx(np.clip(part, 0.0, 1.0) * span, abs=1e-11)
    assert unsure < 1e-12


def test_unknown_numbers_do_not_determine_the_instant():
    x, w, a, span = np.zeros(2), np.array([1.0, 9.0]), np.zeros(2), 1e-3
    position, velocity = motion(x, w, a, 0.3 * span)
    position[1] = velocity[1] = np.nan
    now, _ = instant_of(position, velocity, motion(x, w, a, 0.0), motion(x, w, a, span), 0.0, span)
    assert now == pytest.approx(0.3 * span, rel=1e-9)


def test_an_axis_whose_velocity_was_set_to_zero_does_not_determine_the_instant():
    early = np.zeros(2), np.array([0.1, 9.0])
    late = np.array([1e-4, 5e-3]), np.array([0.1, 0.0])
    now, _ = instant_of(np.array([4e-5, 4e-3]), np.array([0.1, 9.0]), early, late, 0.0, 1e-3)
    assert now == pytest.approx(4e-4, rel=1e-9)


@pytest.mark.parametrize(("part", "found"), [(0.9, False), (1.1, True)])
def test_a_robot_at_rest_does_not_tell_the_instant(part, found):
    """One that moves by less than the rounding of its position in all of the time."""
    span, x = 1e-3, np.array([20.0])
    w, a = np.array([part * ROUNDING * 20.0 / span]), np.zeros(1)
    early, late = motion(x, w, a, 0.0), motion(x, w, a, span)
    now, unsure = instant_of(*motion(x, w, a, span), early, late, 0.0, span)
    assert (unsure < span) == found
    assert found or now == 0.0


def test_without_time_between_the_bounds_there_is_one_instant():
    one = np.zeros(1), np.ones(1)
    assert instant_of(np.ones(1), np.ones(1), one, one, 3.0, 3.0) == (3.0, 0.0)


# --- the reference ----------------------------------------------------------------------------


@pytest.mark.by_default(6)
@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize(
    ("state", "number"),
    [(State.ARMED, 3), (State.RUN, 0), (State.RUN, 60), (State.STOP, 0), (State.STOP, 7)],
)
def test_a_forged_reference_is_reported(made, name, state, number):
    record = forged(made[2])
    k = row_of(record, state, number)
    before = record[name][k, 0]
    record[name][k, 0] = np.nextafter(before, np.inf)
    found = differences(made, record)[f"reference: {name}"]
    assert (found.cycle, found.cycles) == (k, 1)
    assert (found.recorded, found.replayed) == (record[name][k, 0], before)
    assert found.column == record.columns(name)[0][0]


def test_a_reference_that_lags_is_reported(made):
    """All of it, so that nothing else of the record contradicts it but law and task."""
    record = forged(made[2])
    runs = np.flatnonzero(record["state"] == State.RUN)
    for name in REFERENCE:
        record[name][runs[1:]] = made[2][name][runs[:-1]]
    found = differences(made, record)["reference: pose"]
    assert (found.cycle, found.cycles) == (runs[1], len(runs) - 1)


def rows_of(record, states, instants, passed=1):
    """Rows of some states, with the reference of some instants of a task."""
    rig = record[0]
    period, layout = rig.loop.period, record[2].layout
    rows = np.zeros((len(states), layout.width))
    views = layout.views(rows)
    views["state"][:, 0] = states
    runs = np.array(states) == State.RUN
    views["elapsed"][:, 0] = np.where(runs, period * np.array(instants), np.nan)
    steps = np.where(np.arange(len(states)) == len(states) - 1, passed, 1)
    views["deadline"][:, 0] = period * np.cumsum(steps)
    for k, instant in enumerate(instants):
        sample = rig.task.reference(instant * period)
        for name, part in zip(REFERENCE, record[1].flat(sample), strict=True):
            views[name][k] = np.asarray(part).reshape(-1)
    index = np.arange(len(states))
    return dataclasses.replace(record[2], rows=rows, index=index)


A, R, S = State.ARMED, State.RUN, State.STOP


@pytest.mark.parametrize(
    ("states", "instants", "wrong"),
    [
        ([A, R, R, S, S, S], [0, 0, 1, 2, 3, 3], []),
        ([A, R, R, S, S, S], [0, 0, 1, 2, 2, 2], []),  # it was the last instant
        ([A, R, R, S, S, S], [0, 0, 1, 2, 3, 4], [5]),
        ([A, R, R, S, S, S], [0, 0, 1, 1, 3, 3], [3]),
        ([A, R, R, S, S, S], [0, 0, 1, 2, 4, 4], [4, 5]),
        ([A, S, S, S], [0, 0, 0, 0], []),
        ([A, S, S, S], [0, 0, 1, 1], []),  # the first instant of a run that was stopped at once
        ([A, S, S, S], [0, 1, 1, 1], [1]),
        ([A, A, R], [0, 1, 0], [1]),
    ],
)
def test_instants_of_a_stop_follow_those_of_the_run(made, states, instants, wrong):
    record = rows_of(made, states, instants)
    found = references(record, *made[:2])
    off = (found["pose"] != record["pose"]).any(axis=1)
    assert np.flatnonzero(off).tolist() == wrong


@pytest.mark.parametrize(("instant", "wrong"), [(1, [2]), (2, []), (4, []), (5, [2])])
def test_a_stop_may_come_after_deadlines_without_a_cycle(made, instant, wrong):
    # The run may have ended before the last of them.
    record = rows_of(made, [R, R, S], [0, 1, instant], passed=3)
    off = (references(record, *made[:2])["pose"] != record["pose"]).any(axis=1)
    assert np.flatnonzero(off).tolist() == wrong


def test_the_reference_of_a_stop_after_missing_rows_is_not_known(made):
    record = rows_of(made, [R, S, S], [0, 1, 7])
    cut = dataclasses.replace(record, index=np.array([0, 1, 3]))
    assert np.array_equal(references(cut, *made[:2])["pose"], record["pose"])


# --- chains -----------------------------------------------------------------------------------


def wrong(made, record):
    found = {}
    for name, k, *_ in contradictions(record, made[0].loop.period):
        found.setdefault(name, []).append(k)
    return found


@pytest.mark.parametrize("state", [State.ARMED, State.RUN, State.STOP])
def test_a_forged_deadline_is_reported(made, state):
    record = forged(made[2])
    k = row_of(record, state, 5)
    before = record["deadline"][k]
    record["deadline"][k] = np.nextafter(before, -np.inf)
    found = differences(made, record)["record: deadline"]
    assert (found.cycle, found.recorded) == (k, record["deadline"][k])
    assert found.replayed == before


def test_no_cycle_begins_before_its_deadline_or_the_one_before(made):
    record = forged(made[2])
    k = row_of(record, State.RUN, 5)
    record["time"][k] = np.nextafter(record["deadline"][k], -np.inf)
    assert wrong(made, record) == {"time": [k]}
    record["time"][k] = record["deadline"][k]
    assert wrong(made, record) == {}


@pytest.mark.parametrize("name", ["position", "velocity", "measured", "report_time"])
def test_numbers_of_a_report_change_with_a_report_only(made, name):
    record = forged(made[2])
    k = row_of(record, State.STOP, 5)
    for column in ("position", "velocity", "measured", "report_time", "reports"):
        record[column][k:, 0] = record[column][k - 1, 0]
    assert wrong(made, record) == {}
    record[name][k + 2, 0] = 0.123
    assert wrong(made, record) == {name: [k + 2, k + 3]}


def test_no_report_comes_after_its_cycle(made):
    record = forged(made[2])
    k = row_of(record, State.STOP, 5)
    record["report_time"][k, 0] = record["time"][k + 1]
    assert wrong(made, record) == {}
    record["report_time"][k, 0] = np.nextafter(record["time"][k + 1], np.inf)
    assert wrong(made, record) == {"report_time": [k]}


# --- external poses ---------------------------------------------------------------------------


def ages_wrong(rig, record):
    ages, wanted = record["pose_age"], pose_ages(record, rig)
    same = np.isclose(ages, wanted, rtol=0.0, atol=1e-15, equal_nan=True)
    return np.flatnonzero(~same).tolist()


def test_without_a_source_poses_have_no_age(made):
    record = forged(made[2])
    k = row_of(record, State.RUN, 5)
    assert ages_wrong(made[0], record) == []
    record["pose_age"][k] = 0.01
    found = differences(made, record)["record: pose_age"]
    assert (found.cycle, found.recorded) == (k, 0.01)
    assert np.isnan(found.replayed)


def with_ages(made, ages):
    rig, _, record = made
    record = rows_of(made, [State.RUN] * len(ages), range(len(ages)))
    record["time"][:] = rig.loop.period * np.arange(len(ages))
    record["pose_age"][:] = ages
    return dataclasses.replace(rig, pose=PoseSettings(port=0)), record


@pytest.mark.parametrize(("beyond", "wrong"), [(0.9 * TIMES, []), (1.1 * TIMES, [1])])
def test_no_pose_follows_an_older_one(made, beyond, wrong):
    # The instants of two cycles are two periods apart at most.
    older = 0.01 + 2.0 * made[0].loop.period + beyond
    rig, record = with_ages(made, [0.01, older, 0.001, 0.001, 0.001])
    assert ages_wrong(rig, record) == wrong


@pytest.mark.parametrize(("age", "wrong"), [(0.9 * TIMES, []), (1.1 * TIMES, [2])])
def test_no_pose_is_from_the_future(made, age, wrong):
    rig, record = with_ages(made, [0.01, 0.01, -AHEAD - age, 0.0, 0.0])
    assert ages_wrong(rig, record) == wrong


def test_a_source_that_has_spoken_keeps_an_age(made):
    rig, record = with_ages(made, [np.nan, 0.01, np.nan, 0.01, 0.01])
    assert ages_wrong(rig, record) == [2]
    record["state"][1:] = State.STOP
    record["reason"][1:] = Reason.END
    assert ages_wrong(rig, record) == []
