"""Replay: it reproduces a run to the last bit, and detects every change."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from hil import session
from hil.clock import SteppedClock
from hil.controller import Controller, Mode
from hil.emulator import Fault
from hil.errors import RecordError
from hil.guard import Flag, Limits
from hil.latch import Reason, State
from hil.record import Record
from hil.record._chunks import ChunkFile
from hil.record._drain import ROWS_FILE, write_json
from hil.replay import replay
from hil.rig import Policies, Policy, load_rig
from hil.session import SessionOptions, run_session
from tests.hil._records import ROOT

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


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def rewrite(folder, change):
    """Write changed rows to the file."""
    record = Record.load(folder)
    rows = record.rows.copy()
    kept = change(record.layout.views(rows))
    (folder / ROWS_FILE).unlink()
    file = ChunkFile(folder / ROWS_FILE, record.layout.to_dict(), record.layout.width)
    for first, last in [(0, len(rows))] if kept is None else kept:
        file.write(first, np.ascontiguousarray(rows[first:last]).data.cast("B"))
    file.close()


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
    assert report.differences == ()
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
def test_lost_reports_come_out_again(rig, servo, tmp_path, policy):
    policies = dataclasses.replace(rig.policies, on_missing=policy)
    failing = dataclasses.replace(rig, policies=policies)
    fault = Fault("drop", axis="turret", at=1.3, lasting=5.0, probability=0.4)
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

    def sleep_until(self, instant):
        if instant > 1002.5:
            raise RuntimeError("the end of the world")
        super().sleep_until(instant)


@pytest.mark.extended
def test_a_holding_stop_comes_out_again(rig, servo, tmp_path, monkeypatch):
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
    # Without stiffness it is no holding: the torques differ.
    loose = tuple(dataclasses.replace(axis, stiffness=0.0) for axis in holding.axes)
    report = replay(record, dataclasses.replace(holding, axes=loose), servo=servo)
    assert [difference.what for difference in report.differences] == ["stop: torque"]
    assert report.first.cycles > 50
