"""Replay: it reproduces a run to the last bit, and detects every change."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from hil import session
from hil._bookkeeping import contradictions, expected
from hil.clock import SteppedClock
from hil.controller import Controller, Mode
from hil.emulator import Fault
from hil.errors import RecordError
from hil.guard import Flag, Limits
from hil.quality import LATE
from hil.reasons import Reason, State
from hil.record import Record
from hil.record._drain import ROWS_FILE, write_json
from hil.record.rows import Layout
from hil.replay import replay
from hil.rig import Policies, Policy, load_rig
from hil.session import SessionOptions, run_session
from tests.hil._records import ROOT, write_rows

RIG = ROOT / "examples" / "rover_rig" / "rig.toml"
DURATION = 0.8


@pytest.fixture(scope="module")
def rig():
    return load_rig(RIG)


@pytest.fixture(scope="module")
def servo(rig):
    return rig.task.servo


def run(rig, servo, folder, *faults, duration=DURATION):
    wishes = SessionOptions(Mode.MOCK, duration=duration, folder=folder, faults=faults)
    return run_session(rig, wishes, servo)


@pytest.fixture(scope="module")
def made(rig, servo, tmp_path_factory):
    """Folder of a run without faults; never to be changed."""
    folder = tmp_path_factory.mktemp("replay") / "run"
    assert run(rig, servo, folder).outcome.done
    return folder


@pytest.fixture(scope="module")
def begun(made):
    """Instant at which a run begins, after the drives were set up and their watchdogs tested."""
    record = Record.load(made)
    return float(record["time"][np.argmax(record["state"] == State.RUN)])


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def rewrite(folder, change):
    """Write changed rows to the file."""
    record = Record.load(folder)
    rows = record.rows.copy()
    kept = change(record.layout.views(rows))
    spans = [(0, len(rows))] if kept is None else kept
    write_rows(folder, record.layout, *((first, rows[first:last]) for first, last in spans))


def edit(folder, **entries):
    manifest = json.loads((folder / "manifest.json").read_text())
    write_json(folder / "manifest.json", manifest | entries)
    return manifest


def running(folder):
    return np.flatnonzero(Record.load(folder)["state"] == State.RUN)


def test_a_run_comes_out_to_the_last_bit(made, rig, servo):
    report = replay(made, rig, servo=servo)
    assert report.differences == ()
    assert report.passed
    assert report.exact
    assert report.largest == 0.0
    assert report.first is None
    assert report.judged == round(DURATION / rig.loop.period)  # the last instant ends the run
    assert report.evaluated >= report.judged
    assert report.stopped > 10
    assert report.left_out == 0
    assert ("verdict", "as recorded") in report.rows()
    assert json.loads(json.dumps(report.as_dict()))["passed"] is True


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("demand", "law: torque"),
        ("error", "law: error"),
        ("tick", "law: status"),
        ("torque", "guard: torque"),
        ("flags", "guard: flags"),
    ],
)
def test_one_changed_bit_is_found_with_its_cycle(folder, rig, servo, name, what):
    k = int(running(folder)[50])

    def change(views):
        if name in ("tick", "flags"):
            views[name][k] = views[name][k] + 2
        else:
            views[name][k, 1] = np.nextafter(views[name][k, 1], np.inf)

    rewrite(folder, change)
    report = replay(folder, rig, servo=servo)
    assert not report.passed
    found = {difference.what: difference for difference in report.differences}
    difference = found[what]
    assert difference.cycle == k
    assert difference.cycles == 1
    assert difference.recorded != difference.replayed
    assert difference.time == pytest.approx(Record.load(folder).time[k])
    columns = dict.fromkeys(("tick", "flags"), "") | {"error": "base.y"}
    assert difference.column == columns.get(name, "right_wheel")
    assert report.first.cycle == k
    assert f"in cycle {k}" in str(report.first)
    assert ("verdict", "not as recorded") in report.rows()


def test_a_changed_state_changes_the_law(folder, rig, servo):
    k = int(running(folder)[20])

    def change(views):
        views["q"][k, 0] += 1e-3

    rewrite(folder, change)
    report = replay(folder, rig, servo=servo)
    assert {difference.what for difference in report.differences} >= {"law: torque", "law: error"}
    assert report.largest > 0.0


def test_a_report_that_was_too_fast_changes_the_verdict(folder, rig, servo):
    k = int(running(folder)[20])

    def change(views):
        views["s"][k, 2] = 2.0 * rig.axes[2].speed_limit

    rewrite(folder, change)
    found = {d.what: d for d in replay(folder, rig, servo=servo).differences}
    assert found["guard: verdict"].replayed == Reason.OVERSPEED


def test_a_stop_that_does_not_brake_is_found(folder, rig, servo):
    stop = np.flatnonzero(Record.load(folder)["state"] == State.STOP)

    def change(views):
        views["torque"][stop[0] : stop[0] + 5] = 1.0

    rewrite(folder, change)
    (difference,) = replay(folder, rig, servo=servo).differences
    assert (difference.what, difference.cycle) == ("stop: torque", stop[0])


def test_holding_at_the_end_comes_out_although_its_first_cycle_is_doubtful(folder, rig, servo):
    """The row determines the held position and its torque nevertheless."""
    end = int(np.argmax(Record.load(folder)["state"] == State.STOP))

    def change(views):
        limits = Limits.from_rig(rig)
        views["report_time"][end, 0] = views["time"][end, 0] - limits.largest_age + 1e-4

    before = replay(folder, rig, servo=servo)
    rewrite(folder, change)
    report = replay(folder, rig, servo=servo)
    assert all(difference.what.startswith("residual") for difference in report.differences)
    assert (report.left_out, report.stopped) == (1, before.stopped - 1)


def test_holding_at_the_end_is_left_out_where_the_torque_before_is_missing(folder, rig, servo):
    record = Record.load(folder)
    end = int(np.argmax(record["state"] == State.STOP))
    held = int(record["torque"][end:].any(axis=1).sum())
    rewrite(folder, lambda views: [(0, end - 1), (end, len(views["q"]))])
    report = replay(folder, rig, servo=servo)
    assert report.differences == ()
    assert report.left_out >= held > 50


def test_when_listening_the_torques_of_others_are_judged(folder, rig, servo):
    edit(folder, mode="listen")
    assert "guard: torque" in {d.what for d in replay(folder, rig, servo=servo).differences}

    def change(views):
        views["measured"][:] = views["demand"]

    rewrite(folder, change)
    assert replay(folder, rig, servo=servo).passed


def test_on_another_machine_rounding_is_tolerated(folder, rig, servo):
    machine = edit(folder)["machine"]
    edit(folder, machine={**machine, "processor": "another"})

    def change(size):
        def add(views):
            views["demand"][:] += size

        return add

    rewrite(folder, change(1e-12))
    report = replay(folder, rig, servo=servo)
    assert not report.exact
    assert {d.what for d in report.differences} <= {"guard: torque"}
    assert 0.0 < report.largest < 1e-11
    rewrite(folder, change(1e-6))
    assert "law: torque" in {d.what for d in replay(folder, rig, servo=servo).differences}


def test_rows_that_are_missing_are_left_out(folder, rig, servo):
    k = int(running(folder)[50])
    rewrite(folder, lambda views: [(0, k), (k + 3, len(views["q"]))])
    report = replay(folder, rig, servo=servo)
    assert report.differences == ()
    assert not report.passed  # missing rows were not compared
    assert report.left_out == 1  # the torque of the preceding cycle is unknown
    assert ("note", "3 rows are missing between others") in report.rows()


def test_another_law_is_refused_by_name(made, rig, servo):
    other = dataclasses.replace(servo, stiffness=1.5 * servo.stiffness)
    with pytest.raises(RecordError, match="another law") as caught:
        replay(made, rig, servo=other)
    assert caught.value.names == ("law",)
    report = replay(made, rig, force=True, servo=other)
    assert report.forced == ("law",)
    assert not report.exact
    assert report.first.what == "law: torque"
    assert ("not those of the record", "law") in report.rows()


def test_another_rig_file_is_refused_by_name(made, rig, servo, tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(RIG.read_text() + "\n# a comment\n")
    other = dataclasses.replace(rig, path=path)
    with pytest.raises(RecordError, match="got another rig") as caught:
        replay(made, other, servo=servo)
    assert caught.value.names == ("rig",)
    report = replay(made, other, force=True, servo=servo)
    assert report.differences == ()
    assert report.forced == ("rig",)
    assert not report.passed  # nothing differs, but it is not the rig of the record
    assert report.as_dict()["passed"] is False
    assert ("verdict", "not as recorded: another rig") in report.rows()


def test_other_code_is_reported_as_such(folder, rig, servo):
    prints = edit(folder)["fingerprints"]
    edit(folder, fingerprints={**prints, "robot": "0", "law": "0", "code": "0"})
    with pytest.raises(RecordError, match=r"robot, another law \(the code of concur"):
        replay(folder, rig, servo=servo)


def test_a_rig_with_other_axes_is_refused(made, rig, servo):
    other = dataclasses.replace(rig, axes=rig.axes[::-1])
    with pytest.raises(RecordError, match="Pass the rig file of the run"):
        replay(made, other, force=True, servo=servo)


def test_a_record_of_nothing_has_not_passed(folder, rig, servo):
    (folder / ROWS_FILE).unlink()
    report = replay(Record.load(folder), rig, servo=servo)
    assert report.evaluated == 0
    assert not report.passed


@pytest.mark.extended
@pytest.mark.parametrize("policy", [Policy.HOLD, Policy.DAMP, Policy.STOP])
def test_lost_reports_come_out_again(rig, servo, begun, tmp_path, policy):
    policies = dataclasses.replace(rig.policies, on_missing=policy)
    failing = dataclasses.replace(rig, policies=policies)
    fault = Fault("drop", axis="turret", at=begun - 1000.0 + 0.1, lasting=5.0, probability=0.4)
    result = run(failing, servo, tmp_path / "run", fault)
    record = Record.load(tmp_path / "run")
    assert result.outcome.quality.lost > 0
    report = replay(record, failing, servo=servo)
    assert report.differences == ()
    flags = np.bitwise_or.reduce(record["flags"][record["state"] == State.RUN].astype(int))
    marks = {Policy.HOLD: Flag.HELD, Policy.DAMP: Flag.DAMPED, Policy.STOP: Flag.NONE}
    assert Flag(int(flags)) & (Flag.HELD | Flag.DAMPED) == marks[policy]
    # Another patience is another rig: its verdicts differ.
    if policy is not Policy.STOP:
        strict = dataclasses.replace(failing.policies, on_missing=Policy.STOP)
        other = dataclasses.replace(failing, policies=strict)
        report = replay(record, other, servo=servo)
        assert "guard: verdict" in {d.what for d in report.differences}


class LateClock(SteppedClock):
    """A clock whose sleep ends too late now and then."""

    sleeps = 0

    def sleep_until(self, instant):
        if instant - self.now() > 1e-3:
            LateClock.sleeps += 1
            if LateClock.sleeps % 97 < 2:
                instant += 2.6e-3
        super().sleep_until(instant)


@pytest.mark.extended
def test_late_cycles_come_out_again(rig, servo, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "SteppedClock", LateClock)
    result = run(rig, servo, tmp_path / "run")
    record = Record.load(tmp_path / "run")
    assert result.outcome.quality.late > 3
    run_flags = record["flags"][record["state"] == State.RUN].astype(int)
    assert (run_flags & Flag.HELD).any()
    assert replay(record, rig, servo=servo).differences == ()


class Slow(Controller):
    """A loop whose cycles take more than a period from some time on: it never keeps up."""

    def _judge_and_act(self, start, reason):
        super()._judge_and_act(start, reason)
        if self.quality.cycles > 60:
            self.clock.sleep_until(self.clock.now() + 0.9 * self.rig.loop.period)


@pytest.mark.extended
@pytest.mark.parametrize("policy", Policy)
def test_a_loop_that_never_keeps_up_comes_out_again(policy, rig, servo, tmp_path):
    tight = dataclasses.replace(rig, policies=Policies(on_late=policy, max_consecutive_faults=5))
    wishes = SessionOptions(Mode.MOCK, duration=DURATION, folder=tmp_path / "run")
    result = run_session(tight, wishes, servo, controller=Slow)
    assert result.outcome.reason is Reason.LATE
    record = Record.load(tmp_path / "run")
    gaps = np.diff(record["deadline"][record["state"] == State.RUN]) > 1.5 * rig.loop.period
    if policy is not Policy.STOP:  # there are cycles in time between those that are missed
        assert gaps.sum() == 5
        assert (gaps[:-1] & gaps[1:]).sum() == 0
    report = replay(record, tight, servo=servo)
    assert report.differences == ()
    assert report.left_out == 0


class EndingClock(SteppedClock):
    """A clock at whose end the world ends: nothing else ends a stop that holds."""

    end = 0.0

    def sleep_until(self, instant):
        if instant > self.end:
            raise RuntimeError("the end of the world")
        super().sleep_until(instant)


@pytest.mark.extended
def test_a_holding_stop_comes_out_again(rig, servo, begun, tmp_path, monkeypatch):
    monkeypatch.setattr(EndingClock, "end", begun + DURATION + 0.7)
    monkeypatch.setattr(session, "SteppedClock", EndingClock)
    policies = Policies(stop_category=2, stop_time=0.1)
    holding = dataclasses.replace(rig, policies=policies)
    with pytest.raises(RuntimeError, match="the end of the world"):
        run(holding, servo, tmp_path / "run")
    record = Record.load(tmp_path / "run")
    assert record.manifest["end"]["reason"] == "RuntimeError: the end of the world"
    report = replay(record, holding, servo=servo)
    assert report.differences == ()
    assert report.stopped > 100
    # Without stiffness worth the name it is no holding: the torques differ.
    loose = tuple(dataclasses.replace(axis, stiffness=1e-9) for axis in holding.axes)
    report = replay(record, dataclasses.replace(holding, axes=loose), servo=servo)
    assert [difference.what for difference in report.differences] == ["stop: torque"]
    assert report.first.cycles > 50


# -- dependent columns of a record -------------------------------------------------------------


LAYOUT = Layout(("wheel", "arm"), nq=3, ns=2, pose_size=2, size=2)
PERIOD = 0.004
STATES = 3 * [State.ARMED] + 5 * [State.RUN] + 3 * [State.STOP]
FIRST, LAST, STOP = 3, 7, 8


@pytest.fixture
def record(tmp_path):
    """Rows of a run without faults, written by hand."""
    n = len(STATES)
    rows = np.zeros((n, LAYOUT.width))
    views = LAYOUT.views(rows)
    count = np.arange(n)
    views["cycle"][:, 0] = count + 1
    chain = np.add.accumulate(np.append(100.0, np.full(n - 1, PERIOD)))
    views["deadline"][:, 0] = views["time"][:, 0] = chain
    views["state"][:, 0] = STATES
    views["reason"][STOP:] = Reason.END
    views["elapsed"][:] = np.nan
    views["elapsed"][FIRST:STOP, 0] = PERIOD * np.arange(STOP - FIRST)
    views["reports"][:] = count[:, None] + 1.0
    views["command_time"][:, 0] = chain
    views["axis"][:] = -1.0
    views["enabled"][:] = 1.0
    return Record(tmp_path, LAYOUT, {"mode": "mock"}, rows, count, ())


def wrong(record):
    """Columns that contradict others, with the rows where they do."""
    assert all(v.shape == record[n].shape for n, v in expected(record, PERIOD).items())
    found = {}
    for name, k, *_ in contradictions(record, PERIOD):
        found.setdefault(name, []).append(k)
    return found


def without(record, *rows):
    """The record without some of its rows."""
    kept = np.setdiff1d(np.arange(len(record)), rows)
    return dataclasses.replace(record, rows=record.rows[kept], index=record.index[kept])


def test_a_run_without_faults_contradicts_nothing(record):
    assert wrong(record) == {}
    for k in range(len(record)):
        assert wrong(without(record, k)) == {}
    assert wrong(without(record, *range(len(record)))) == {}


@pytest.mark.parametrize("name", ["cycle", "elapsed", "state", "late", "lost", "clipped"])
def test_one_altered_number_is_found_in_every_row(record, name):
    for k in range(len(record)):
        before = record[name][k]
        for change in (1.0, -1.0, 0.5, np.nan, np.inf):
            record[name][k] = change if np.isnan(before) else before + change
            if not np.array_equal(record[name][k], before, equal_nan=True):
                assert wrong(record), (k, change)
        record[name][k] = before


def test_the_reference_of_a_run_begins_at_its_first_instant(record):
    record["elapsed"][FIRST:STOP] = PERIOD * np.arange(1, STOP - FIRST + 1)
    assert wrong(record) == {"elapsed": [FIRST]}
    assert wrong(without(record, FIRST - 1)) == {}  # the run may have begun there


@pytest.mark.parametrize("name", ["late", "lost", "clipped"])
def test_counters_begin_at_zero(record, name):
    record[name][:] += 1.0
    assert wrong(record) == {name: [0]}
    assert wrong(without(record, 0)) == {}  # the counts of the missing row are unknown


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_of_nonsense_are_contradictions_and_no_warnings(record, value):
    record.rows[4:] = value
    assert {"cycle", "state", "reason", "late", "lost"} <= wrong(record).keys()


@pytest.mark.parametrize("name", ["invalid", "reports"])
@pytest.mark.parametrize("change", [-20.0, 20.0, 0.5, np.nan, np.inf])
def test_counts_of_an_axis_do_not_decrease(record, name, change):
    record[name][5, 1] += change
    assert wrong(record).keys() & {name, "lost"}


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_the_last_count_of_an_axis_is_finite(record, value):
    record["invalid"][-1, 1] = value
    assert wrong(record) == {"invalid": [len(record) - 1]}


def test_counts_of_an_axis_may_increase(record):
    record["invalid"][5:, 1] += 3.0
    record["reports"][5:, 1] += 3.0
    assert wrong(record) == {}


@pytest.mark.parametrize("reason", [r for r in Reason if r] + [np.nan, 99, -1])
def test_a_cycle_of_a_run_has_no_reason_to_stop(record, reason):
    record["reason"][5] = reason
    assert wrong(record) == {"reason": [5]}


def test_the_first_reason_of_a_stop_stays(record):
    record["reason"][STOP + 1] = Reason.LATE
    assert wrong(record) == {"reason": [STOP + 1, STOP + 2]}


@pytest.mark.parametrize("reason", [Reason.NONE, np.nan, 99])
def test_a_stop_has_a_reason(record, reason):
    record["reason"][STOP:] = reason
    assert wrong(record)["reason"][0] == STOP


@pytest.mark.parametrize(("name", "value"), [("enabled", 0.0), ("enabled", np.nan), ("fault", 7.0)])
def test_drives_without_power_or_with_a_fault_end_a_run(record, name, value):
    record[name][FIRST + 1, 1] = value
    assert wrong(record) == {name: [FIRST + 1]}
    record[name][FIRST + 1, 1] = float(name == "enabled")
    record[name][[FIRST - 1, FIRST, STOP], 1] = value  # a run begins while faults are reset
    assert wrong(record) == {}


@pytest.mark.parametrize("mode", ["listen", "shadow"])
def test_drives_that_others_command_may_be_off(record, mode):
    record["enabled"][:] = 0.0
    assert wrong(record)
    record.manifest["mode"] = mode
    assert wrong(record) == {}


@pytest.mark.parametrize(("lateness", "late"), [(0.99 * LATE, 0.0), (1.01 * LATE, 1.0)])
def test_late_cycles_are_those_that_began_late(record, lateness, late):
    record["time"][5] += lateness * PERIOD
    record["late"][5:] += late
    assert wrong(record) == {}
    assert wrong(without(record, 5)) == {}  # the counts of the missing row are unknown
    record["late"][5:] += 1.0 - 2.0 * late
    assert wrong(record) == {"late": [5]}


def test_deadlines_without_a_cycle_are_instants_of_the_reference(record):
    record["deadline"][5:] += 2.0 * PERIOD
    record["time"][5:] += 2.0 * PERIOD
    assert wrong(record) == {"elapsed": [5]}
    record["elapsed"][5:STOP] = PERIOD * np.arange(4, 7)
    assert wrong(record) == {}


def test_lost_reports_are_those_that_did_not_come(record):
    record["reports"][5:] -= 1.0  # of both axes
    record["lost"][5:] += 2.0
    assert wrong(record) == {}
    for step in (1.0, 3.0):
        other = dataclasses.replace(record, rows=record.rows.copy())
        other["lost"][5:] += step - 2.0
        assert wrong(other) == {"lost": [5]}
    record["lost"][5:] -= 2.0  # a cycle that asked for no report
    assert wrong(record) == {}


@pytest.mark.parametrize("k", [FIRST, STOP + 1])
def test_reports_are_lost_in_a_run_only(record, k):
    record["reports"][k:, 0] -= 1.0
    assert wrong(record) == {}
    record["lost"][k:] += 1.0
    assert wrong(record) == {"lost": [k]}


def test_commands_leave_before_the_next_cycle(record):
    record["command_time"][5] = record["time"][6] + 1e-6
    assert wrong(record) == {"command_time": [5]}
    record["command_time"][5] = np.nan  # drives that answer commands
    assert wrong(record) == {}


def test_a_stop_has_one_axis_that_caused_it(record):
    record["axis"][STOP:] = 1.0
    assert wrong(record) == {}
    record["axis"][LAST] = 0.0
    assert wrong(record)["axis"]
    record["axis"][STOP:] = 2.0  # of two axes
    assert wrong(record)["axis"]
    record["axis"][STOP:] = -1.0
    record["axis"][5] = 1.0  # of a run
    assert 5 in wrong(record)["axis"]


@pytest.mark.parametrize("flag", [f for f in Flag if f])
def test_clipped_cycles_are_those_with_flags_of_bounds(record, flag):
    record["flags"][5] = flag
    bounded = flag not in (Flag.HELD, Flag.DAMPED)
    record["clipped"][5:] += bounded
    assert wrong(record) == {}
    record["clipped"][5:] += 1.0 - 2.0 * bounded
    assert wrong(record) == {"clipped": [5]}


def test_a_cycle_that_stops_may_have_been_clipped(record):
    record["flags"][STOP:] = Flag.CLIPPED_RATE
    assert wrong(record) == {}
    record["clipped"][STOP:] = 1.0
    assert wrong(record) == {}
    record["clipped"][STOP + 1 :] = 2.0
    assert wrong(record) == {"clipped": [STOP + 1]}
    record["flags"][STOP], record["clipped"][STOP:] = 0.0, 1.0
    assert wrong(record) == {"clipped": [STOP]}
