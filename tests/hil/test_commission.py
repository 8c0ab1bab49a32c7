"""Commissioning of emulated rigs: honest ones pass, others are refused by the axis."""

import dataclasses
import json
import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import hil.session
from hil._commission import (
    LEAST,
    MOST,
    TRIP,
    UNSURE,
    ZERO,
    AxisResult,
    Commission,
    Commissioner,
    _result,
    commission_file,
    conclude,
    judged,
    load_commission,
)
from hil._pushes import LONGEST, SHORTEST, SPEED, STEPS, Push, pushed_plan, pushes_of
from hil.controller import Mode
from hil.drives import AxisCheck, Finding
from hil.emulator import World
from hil.errors import ArmError, RigFileError
from hil.reasons import Reason, State
from hil.record import Record
from hil.replay import replay
from hil.session import SessionOptions, run_session
from hil.state._differentiation import encoder_step
from hil.state._residual import CAUSES
from tests.hil.bench import EXAMPLES, ROVER, ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE, Bench, rig_of
from tests.hil.test_fault_table import motion, torque

AXES = "left_wheel", "right_wheel", "turret", "upper_arm", "forearm"


def commissioned(file, folder, monkeypatch, inject=None, axis=None):
    """Outcome and results of a commissioning, with a fault of one drive from arming on."""
    worlds, loops = [], []

    class Seen(World):
        def __init__(self, *arguments, **others):
            super().__init__(*arguments, **others)
            worlds.append(self)

    class Loop(Commissioner):
        def __init__(self, *arguments, **others):
            super().__init__(*arguments, **others)
            loops.append(self)

        def _loop(self):
            if inject is not None:
                inject(SimpleNamespace(world=worlds[0]), AXES.index(axis))
            super()._loop()

    monkeypatch.setattr(hil.session, "World", Seen)
    options = SessionOptions(Mode.MOCK, folder=folder / "run")
    result = run_session(rig_of(file), options, controller=Loop)
    return result.outcome, loops[0].found


def wrong(outcome):
    """Axes with a row that forbids to drive."""
    return {check.axis for check in outcome.checks if check.finding is Finding.WRONG}


@pytest.mark.by_default(1)
@pytest.mark.parametrize("file", [ROVER, ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE])
def test_axes_without_a_fault_follow_the_model(file, tmp_path, monkeypatch):
    outcome, found = commissioned(file, tmp_path, monkeypatch)
    assert outcome.done, outcome.detail
    assert wrong(outcome) == set()
    assert list(found) == list(AXES)
    latency = rig_of(file).emulator.latency
    for axis in found.values():
        assert axis.factor == pytest.approx(1.0, abs=0.03)
        assert axis.deviation < 0.02
        assert abs(axis.zero) < 1e-3
        assert axis.round_trip == pytest.approx(2.0 * latency, abs=3e-4)
        assert "2 times" in axis.watchdog
        assert axis.bound_by == ("signature" if file == ROVER_MIT else "serial number")
    rig, record = rig_of(file), Record.load(tmp_path / "run")
    report = replay(record, rig)
    assert report.passed, report.differences
    assert report.largest == 0.0
    forged = dataclasses.replace(record, rows=record.rows.copy())
    pushed = middles_of(record, rig)[2]
    forged["demand"][pushed, 2] *= 2.0
    (difference,) = [d for d in replay(forged, rig).differences if d.what == "law: torque"]
    assert difference.cycle == record.index[pushed]
    forged = dataclasses.replace(record, manifest=record.manifest | {"facts": {}})
    assert not replay(forged, rig).passed


def middles_of(record, rig):
    """A row in the middle of the push of each axis."""
    begun = int(np.argmax(record["state"] == State.RUN))
    return [
        begun + push.first + push.quarter // 2 for push in pushed_plan(rig, rig.task.law).pushes
    ]


FAULTS = {
    "reversed torque": (torque(-1.0), {Reason.WRONG_SIGN}, (-1.3, -0.7)),
    "reversed encoder": (motion(-1.0), {Reason.WRONG_SIGN}, (-1.3, -0.7)),
    "torque times 3": (torque(3.0), {Reason.TORQUE_SCALE, Reason.CONTACT}, (2.0, 4.0)),
    "a third of the torque": (
        torque(1.0 / 3.0),
        {Reason.TORQUE_SCALE, Reason.CONTACT, Reason.IGNORED},  # below 0.3 counts as none
        (0.2, 0.5),
    ),
    "no torque": (torque(0.0), {Reason.IGNORED, Reason.STUCK, Reason.CONTACT}, (-0.1, 0.1)),
    "counts times 2": (motion(2.0), CAUSES, (1.5, 2.5)),
    "half the counts": (motion(0.5), CAUSES, (0.4, 0.6)),
}


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("axis", ["forearm", "upper_arm", "right_wheel", "turret"])
def test_wrong_directions_and_units_are_refused_by_the_axis(name, axis, tmp_path, monkeypatch):
    """Those of slow arms too: the loop stops, or the push shows it."""
    inject, reasons, factors = FAULTS[name]
    outcome, found = commissioned(ROVER, tmp_path, monkeypatch, inject, axis)
    if outcome.done:
        assert axis in wrong(outcome), found
        assert factors[0] < found[axis].factor < factors[1]
    else:
        assert outcome.reason in reasons, outcome.detail
        # The forearm moves with the upper arm: its encoder seems to stand still.
        named = "forearm" if (name, axis) == ("half the counts", "upper_arm") else axis
        assert f"axis `{named}`" in outcome.detail


# -- thresholds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "deviation", "right"),
    [
        (LEAST + 0.01, 0.01, True),
        (LEAST - 0.01, 0.01, False),
        (MOST - 0.01, 0.01, True),
        (MOST + 0.01, 0.01, False),
        (-1.0, 0.01, False),
        (1.0, UNSURE - 1e-3, True),
        (1.0, UNSURE + 1e-3, False),
        (math.nan, math.nan, False),
    ],
)
def test_bounds_of_the_factor(factor, deviation, right):
    (row,) = judged("arm", factor, deviation, 5.0, (-math.inf, math.inf))
    assert (row.finding is Finding.FOUND) is right
    assert bool(row.cure) is not right


@pytest.mark.parametrize(("share", "right"), [(0.99, True), (1.01, False), (-1.01, False)])
def test_bounds_of_the_zero(share, right):
    rows = judged("arm", 1.0, 0.01, share * ZERO, (-1.0, 1.0))
    assert (rows[1].finding is Finding.FOUND) is right


def test_a_push_moves_its_axis_by_enough_steps_within_its_bounds():
    rig = rig_of()
    period = rig.loop.period
    for ease in (1e-4, 0.3, 2.0, 1e3):
        pushes = pushes_of(rig, np.full(5, ease))
        for push, axis in zip(pushes, rig.axes, strict=True):
            time = push.quarter * period
            assert SHORTEST - period <= time <= LONGEST + period
            assert ease * push.torque * time <= 1.1 * SPEED * axis.speed_limit
            way = ease * push.torque * time**2 / encoder_step(axis)
            inside = SHORTEST + period < time < LONGEST - period
            assert not inside or way == pytest.approx(STEPS, rel=0.15)
        for one, other in pairwise(pushes):
            assert other.first >= one.last


def test_a_push_ends_at_rest_where_it_began():
    push = Push(0, 2.0, 10, 5)
    torques = [push.at(k) for k in range(9, 32)]
    assert torques[0] == torques[-1] == 0.0
    speed = np.cumsum(torques)
    assert speed[-1] == 0.0
    assert speed.sum() == 0.0
    assert speed.max() == -speed.min() == 10.0


# -- the file ------------------------------------------------------------------------------------

NUMBERED = AxisResult("vendor 1, serial number 7", "serial number", 1.0, 0.01, 0.0, 0.002, "")
SIGNED = AxisResult("", "signature", 1.0, 0.01, 0.0, 0.002, "")
RESULTS = dict.fromkeys(AXES, SIGNED) | {"turret": NUMBERED}


@pytest.fixture
def written(tmp_path):
    """A rig with a file of a commissioning of its real drives."""
    path = tmp_path / "rig.toml"
    path.write_text((EXAMPLES / ROVER).read_text())
    rig = dataclasses.replace(rig_of(), path=path)
    conclude(rig, RESULTS, False).write(commission_file(rig))
    return rig


def test_the_file_comes_back(written):
    found = load_commission(written)
    assert found.axes == RESULTS


WAYS = {
    "missing": "commission",
    "changed": "a file that was changed",
    "another rig": "those of another rig",
    "another robot": "those of another rig or robot",
    "another ratio": "those of another rig or robot",
    "an axis without a result": "axis `forearm`",
    "an axis that turns the other way": "axis `forearm`",
    "emulated": "one of emulated drives",
    "nonsense": "invalid file",
}


@pytest.mark.parametrize("way", WAYS)
def test_files_that_permit_nothing(written, way):
    path = commission_file(written)
    if way == "missing":
        path.unlink()
    elif way == "changed":
        document = json.loads(path.read_text())
        document["axes"]["turret"]["factor"] = 1.01
        path.write_text(json.dumps(document))
    elif way == "another rig":
        axes = tuple(dataclasses.replace(axis, watchdog=0.07) for axis in written.axes)
        written = dataclasses.replace(written, axes=axes)
    elif way == "another robot":
        source = written.task.source
        files = {name: text.replace(b"mass = ", b"mass = 2") for name, text in source.files.items()}
        task = dataclasses.replace(written.task, source=dataclasses.replace(source, files=files))
        written = dataclasses.replace(written, task=task)
    elif way == "another ratio":
        found = written.transmission
        turned = dataclasses.replace(found, ratios=found.ratios * [1.0, 1.0, -1.0, 1.0, 1.0])
        written = dataclasses.replace(written)
        vars(written)["transmission"] = turned
    elif way == "an axis without a result":
        results = {name: axis for name, axis in RESULTS.items() if name != "forearm"}
        conclude(written, results, False).write(path)
    elif way == "an axis that turns the other way":
        wrong_way = dataclasses.replace(SIGNED, factor=-1.0)
        conclude(written, RESULTS | {"forearm": wrong_way}, False).write(path)
    elif way == "emulated":
        conclude(written, RESULTS, True).write(path)
    else:
        path.write_text("[]")
    with pytest.raises(RigFileError, match=WAYS[way]) as caught:
        load_commission(written)
    assert "concur-rig commission" in caught.value.cure


def test_a_drive_of_ones_own_may_report_nothing():
    """Neither identity nor round trip, and its watchdog in a row of another name."""
    found = _result(rows("arm", "gap of commands", "45 ms"), 1.0, 0.01, 0.02)
    assert found == AxisResult("", "nothing", 1.0, 0.01, 0.02, None, "")
    for what in ("identity", "round trip of a report, ms"):
        assert _result(rows("arm", what, "2"), 1.0, 0.01, 0.02).bound_by == "signature"
    last = rows("arm", "watchdog, 1", "once") + rows("arm", "watchdog, 2", "2 times")
    assert _result(last, 1.0, 0.01, 0.02).watchdog == "2 times"


def rows(name, what, came):
    return [AxisCheck(name, what, Finding.FOUND, "", came)]


def test_another_drive_is_refused_by_its_number_or_its_signature(written):
    known = load_commission(written)
    own = rows("turret", "identity (0x1018)", NUMBERED.identity)
    known.require(own)
    for name in set(AXES) - {"turret", "forearm"}:
        own += rows(name, "round trip of a report, ms", "2")
    for other in ([], rows("turret", "identity (0x1018)", "vendor 1, serial number 8")):
        with pytest.raises(ArmError, match="turret"):
            known.require(other)
    room = 1e3 * (TRIP[0] + TRIP[1] * SIGNED.round_trip)
    for change, fits in ((0.99, True), (1.01, False), (-0.99, True), (-1.01, False)):
        trip = rows("forearm", "round trip of a report, ms", f"{2.0 + change * room:.6g}")
        if fits:
            known.require(own + trip)
        else:
            with pytest.raises(ArmError, match="forearm"):
                known.require(own + trip)


def test_a_drive_with_another_number_gets_no_torque():
    axes = {name: dataclasses.replace(NUMBERED, identity="another") for name in AXES}
    known = Commission("", "", False, axes)
    with Bench(approve=known.require, duration=0.1) as bench:
        with pytest.raises(ArmError, match="left_wheel"):
            bench.run()
        assert not bench.torque_since(0.0).any()
        bench.dead()


@pytest.mark.parametrize("may_have_drives", [True, False])
def test_a_bus_with_motors_needs_the_file(written, monkeypatch, may_have_drives):
    monkeypatch.setattr(hil.session, "may_have_drives", lambda _: may_have_drives)
    commission_file(written).unlink()

    def stop(rig):
        raise RuntimeError("so far")

    monkeypatch.setattr(hil.session, "make_drives", stop)
    options = SessionOptions(Mode.DRIVE, heartbeat="port")
    expected = RigFileError if may_have_drives else RuntimeError
    with pytest.raises(expected):
        run_session(written, options)
    with pytest.raises(RuntimeError):  # by which the file is made
        run_session(written, options, controller=Commissioner)
