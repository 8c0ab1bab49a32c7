"""Injected faults in whole runs: short ones are tolerated, long ones stop the rig."""

import dataclasses
import functools
import math

import numpy as np
import pytest

import hil.record.recorder
import hil.session
from hil.controller import Mode
from hil.emulator import Fault, World
from hil.errors import RigError
from hil.guard import Reason, State
from hil.record import Record
from hil.session import SessionOptions, run_session
from hil.state._residual import CAUSES
from tests.hil._records import limit_recorder
from tests.hil.bench import (
    EXAMPLES,
    FLOATER,
    ROVER,
    ROVER_MIT,
    Bench,
    JumpingClock,
    law_of,
    rig_of,
)

PERIOD = 0.004
DURATION = 0.6
AT = 60
"""Cycle in which a fault begins."""
SHORT = 4
"""Cycles that a short one lasts; the patience is 5."""


def slow(*values, **others):
    return pytest.param(*values, marks=pytest.mark.slow, **others)


# -- short faults ------------------------------------------------------------------------------


@functools.cache
def undisturbed(file):
    """Torques, true configurations, and whether a row is of RUN, of a run without faults."""
    with Bench(file, duration=DURATION) as bench:
        assert bench.run().done
        return bench["torque"].copy(), np.array(bench.places), bench.run_rows.copy(), bench.begun


def errors_of(bench, places, rows):
    """True errors of the outputs at the end of each cycle, shape (cycles, size)."""
    first = bench.begun
    return np.array(
        [bench.error_at(places[k], bench.plan.pose[k - first]) for k in np.flatnonzero(rows)]
    )


def largest_deviation(bench, cycles, change):
    """Bound on the tracking errors due to torques that were wrong for some cycles.

    The error of an output with stiffness k and damping 2 sqrt(k) answers an acceleration that
    lasts for h, short against 1 / sqrt(k), by at most h / (e sqrt(k)) times its size. The
    acceleration is that of the outputs by the torques' change; the estimator needs some of its
    time constants until nothing is left of what it had not seen.
    """
    settling = 4.0 / (2.0 * math.pi * bench.rig.estimator.bandwidth)
    lasting = cycles * PERIOD + settling
    decoupling = np.abs(bench.servo.decoupling(bench.places[bench.row(AT)]))
    acceleration = decoupling @ change(lasting)
    stiffness = np.concatenate(
        [
            np.full(output.dim, table["stiffness"])
            for output, table in zip(bench.servo.outputs, GAINS[bench.file], strict=True)
        ]
    )
    return acceleration * lasting / (math.e * np.sqrt(stiffness))


ROVER_GAINS = ({"stiffness": 4.0}, {"stiffness": 9.0})
GAINS = {ROVER: ROVER_GAINS, ROVER_MIT: ROVER_GAINS, FLOATER: ({"stiffness": 4.0},)}


def held_change(file):
    """How far a torque that is held gets from the one that the law would have given."""
    torque, _, rows, begun = undisturbed(file)
    smooth = torque[rows][15:]  # without the first rise

    def change(lasting):
        shift = math.ceil(lasting / PERIOD)
        return 2.0 * np.abs(smooth[shift:] - smooth[:-shift]).max(axis=0)

    assert begun > 0
    return change


def guarded_change(bench):
    """Largest deviation of the torque from the law's, for any input of the law."""
    limits = bench.limits
    return lambda lasting: np.minimum(2.0 * limits.torque, 2.0 * limits.rate * lasting)


def deviation(bench):
    """By how much the errors differ from those of the run without faults, shape (size,)."""
    _, places, rows, begun = undisturbed(bench.file)
    both = rows.copy()
    n = min(len(bench), len(rows))
    assert begun == bench.begun
    both[n:] = False
    both[:n] &= bench.run_rows[:n]
    here = errors_of(bench, bench.places, both)
    there = errors_of(bench, places, both)
    return np.abs(here - there).max(axis=0)


def strike(bench, kind, axis, lasting, **others):
    fault = Fault(kind, axis, lasting=lasting, **others)
    bench.at(AT, bench.world.fault, fault)


PUT_UP_WITH = [
    ("drop", "to_host", {}),
    ("drop", "to_drive", {}),
    ("drop", "both", {}),
    ("delay", "to_host", {"value": 3e-3}),
    ("delay", "to_drive", {"value": 3e-3}),
    ("duplicate", "both", {}),
    ("reorder", "to_host", {}),
    ("reorder", "to_drive", {}),
    ("bus_off", "both", {}),
    ("nan", "to_drive", {}),
]
NAMES = [f"{kind} {way}" for kind, way, _ in PUT_UP_WITH]
BY_DEFAULT = {
    (ROVER, "forearm"): ("delay to_host", "reorder to_host", "nan to_drive"),
    (ROVER, "*"): ("drop both", "duplicate both"),
    (ROVER_MIT, "*"): ("bus_off both",),
}
CASES = [
    pytest.param(
        file,
        axis,
        *entry,
        id=f"{file[10:-5]} {axis} {name}",
        marks=() if name in BY_DEFAULT.get((file, axis), ()) else pytest.mark.slow,
    )
    for file in (ROVER, ROVER_MIT)
    for axis in ("forearm", "*")
    for name, entry in zip(NAMES, PUT_UP_WITH, strict=True)
]


@pytest.mark.extended
@pytest.mark.parametrize(("file", "axis", "kind", "way", "others"), CASES)
def test_a_short_fault_is_tolerated(file, axis, kind, way, others):
    if (file, kind, way) == (ROVER_MIT, "nan", "to_drive"):
        others = others | {"probability": 0.0}  # eight times 0xFF is none of its commands
    with Bench(file, duration=DURATION) as bench:
        strike(bench, kind, axis, SHORT * PERIOD - 1e-4, way=way, **others)
        outcome = bench.run()
        assert outcome.done, outcome.reason.name
        change = held_change(file)
        if kind == "nan":  # commands without torque, in place of those that were sent
            largest = np.abs(undisturbed(file)[0][bench.row(AT) :]).max(axis=0)
            held = change
            change = lambda lasting: held(lasting) + 2.0 * largest  # noqa: E731
        # One cycle more asks for nothing, to see whether reports are lost or late.
        bound = largest_deviation(bench, SHORT + (kind in ("drop", "bus_off")), change)
        found = deviation(bench)
        assert (found <= bound + 1e-9).all(), (found, bound)
        assert bound.max() < 0.15
        bench.check()


MAY_STOP = [
    ("corrupt", "to_host"),
    slow("nan", "to_host"),
    ("stale", "to_host"),
    slow("freeze", "both"),
    slow("corrupt", "to_drive"),
]


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("file", "axis"), [(ROVER, "forearm"), slow(ROVER, "*"), slow(ROVER_MIT, "upper_arm")]
)
@pytest.mark.parametrize(("kind", "way"), MAY_STOP)
def test_a_short_fault_that_tells_wrong_things(file, axis, kind, way):
    """Wrong reports are accepted for a while, or rejected; the torque is limited in any case."""
    with Bench(file, duration=DURATION) as bench:
        strike(bench, kind, axis, SHORT * PERIOD - 1e-4, way=way)
        outcome = bench.run()
        if not outcome.done:
            assert outcome.reason in WRONG_NUMBERS
            assert bench.stopped >= bench.row(AT)
        bound = largest_deviation(bench, SHORT, guarded_change(bench))
        found = deviation(bench)
        assert (found <= bound).all(), (found, bound)
        bench.check()
        bench.torque_ended_in_time()


# -- long faults -------------------------------------------------------------------------------


LOST = Reason.LOST, Reason.POWER_LOST
WATCHDOG = (Reason.DRIVE_FAULT, Reason.DRIVE_OFF, *LOST)
WRONG_NUMBERS = (
    *WATCHDOG,
    Reason.STUCK,
    Reason.STALE,
    Reason.OVERSPEED,
    Reason.OUT_OF_RANGE,
    Reason.NOT_FINITE,
    Reason.TICK_REFUSED,
    Reason.JUMP,
    *CAUSES,
)
STOPPED_BY = [
    ("drop", "to_host", {}, LOST),
    ("drop", "to_drive", {}, WATCHDOG),
    ("drop", "both", {}, LOST),
    ("delay", "to_host", {"value": 0.06}, (*LOST, Reason.STALE)),
    ("delay", "to_drive", {"value": 0.15}, WATCHDOG),
    ("corrupt", "to_host", {}, WRONG_NUMBERS),
    ("corrupt", "to_drive", {}, WATCHDOG),
    ("nan", "to_host", {}, WATCHDOG),
    ("stale", "to_host", {}, WRONG_NUMBERS),
    ("freeze", "both", {}, (Reason.STUCK,)),
    ("drive_fault", "both", {}, (Reason.DRIVE_FAULT,)),
    ("bus_off", "both", {}, LOST),
    ("power_cycle", "both", {}, WATCHDOG),
]
LONG_BY_DEFAULT = {
    (ROVER, "turret"): ("drop to_drive", "delay to_host", "freeze both", "corrupt to_drive"),
    (ROVER, "*"): ("bus_off both", "power_cycle both"),
    (ROVER_MIT, "turret"): ("nan to_host", "corrupt to_host"),
    (ROVER_MIT, "*"): ("drive_fault both", "stale to_host"),
}
LONG_CASES = [
    pytest.param(
        file,
        axis,
        *entry,
        id=f"{file[10:-5]} {axis} {entry[0]} {entry[1]}",
        marks=()
        if f"{entry[0]} {entry[1]}" in LONG_BY_DEFAULT.get((file, axis), ())
        else pytest.mark.slow,
    )
    for file in (ROVER, ROVER_MIT)
    for axis in ("turret", "*")
    for entry in STOPPED_BY
    # Behind the checksum of the bus each turned bit of a command to an MIT drive is a command.
    if (file, *entry[:2]) != (ROVER_MIT, "corrupt", "to_drive")
]


@pytest.mark.by_default(2)
@pytest.mark.parametrize(("file", "axis", "kind", "way", "others", "reasons"), LONG_CASES)
def test_a_long_fault_stops_the_rig(file, axis, kind, way, others, reasons):
    with Bench(file, duration=DURATION) as bench:
        strike(bench, kind, axis, 1.0, way=way, **others)
        outcome = bench.run()
        assert outcome.reason in reasons, outcome.reason.name
        struck, stopped = bench["time"][bench.row(AT)], bench["time"][bench.stopped]
        watchdog = max(a.watchdog for a in bench.rig.axes)
        allowed = 0.2 if kind in ("freeze", "stale") else watchdog + 10 * PERIOD
        assert stopped - struck <= allowed
        # Braking ends by its time; a drive that cannot be reached stops by its watchdog.
        limit = max(bench.rig.policies.stop_time, watchdog) + 3 * PERIOD
        for _ in range(50):
            bench.wait(0.01)
        after = np.array([u for t, u in bench.loads if t > stopped + limit])
        assert len(after) > 10
        assert bench.is_free(after)
        bench.torque_ended_in_time()
        # Nothing comes back: not with the fault gone, not with drives that are back.
        bench.wait(1.0)
        bench.check()


@pytest.mark.parametrize(
    ("kind", "way"),
    [("duplicate", "both"), slow("duplicate", "to_host"), slow("duplicate", "to_drive")],
)
@pytest.mark.parametrize("file", [ROVER, slow(ROVER_MIT)])
def test_frames_that_come_twice_change_nothing(file, kind, way):
    with Bench(file, duration=DURATION) as bench:
        strike(bench, kind, "*", math.inf, way=way)
        assert bench.run().done
        # Two reports of one sample: the second adds no information.
        assert deviation(bench).max() < 1e-3
        bench.check()


@pytest.mark.parametrize("share", [0.02, slow(0.1)])
def test_frames_lost_at_random_all_the_time(share):
    with Bench(rig=rig_of(emulator={"seed": 7}), duration=DURATION) as bench:
        lossy = Fault("drop", "*", lasting=DURATION - PERIOD, probability=share)
        bench.at(0, bench.world.fault, lossy)
        outcome = bench.run()
        assert outcome.done, outcome.reason.name
        expected = (1.0 - (1.0 - share) ** 2) * 5 * len(bench.plan)  # SYNC, then the report
        assert 0.4 * expected < outcome.quality.lost < 2.0 * expected
        bench.check()


@pytest.mark.extended
def test_a_floating_robot_whose_cameras_fall_silent_continues():
    with Bench(FLOATER, duration=0.5) as bench:
        bench.at(40, lambda: setattr(bench.world._capture, "_send", lambda sample: None))
        assert bench.run().done
        assert bench["pose_age"][bench.stopped, 0] > 0.15
        bench.check()


def test_a_floating_robot_that_needs_its_cameras_stops_without():
    rig = rig_of(FLOATER, pose={"required": True, "timeout": 0.1})
    with Bench(FLOATER, rig=rig, duration=0.5) as bench:
        bench.at(40, lambda: setattr(bench.world._capture, "_send", lambda sample: None))
        outcome = bench.run()
        assert outcome.reason is Reason.POSE_LOST
        silent = bench["time"][bench.stopped] - bench["time"][bench.row(40)]
        assert 0.08 < silent < 0.15
        bench.check()


# -- a disk that is full -----------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """A disk on which the recorder may write 100 kB."""
    limit_recorder(monkeypatch, 100_000)


def test_a_full_disk_stops_the_rig(full_disk, monkeypatch, tmp_path):
    """Rows wait in the ring; when it is half full, the rig stops."""
    worlds = []

    class Seen(World):
        def __init__(self, *arguments, **others):
            super().__init__(*arguments, **others)
            worlds.append(self)

    monkeypatch.setattr(hil.session, "World", Seen)
    rig = rig_of(recorder={"seconds": 2.0, "directory": tmp_path})
    servo, _ = law_of(ROVER)
    result = run_session(rig, SessionOptions(Mode.MOCK, duration=2.0), servo)
    assert result.outcome.reason is Reason.RECORDER
    assert not result.complete
    (world,) = worlds
    assert not world.torque.any()
    assert not any(drive.enabled for drive in world.drives)
    # Earlier rows are readable, and the error is reported.
    record = Record.load(result.folder)
    assert 1 <= len(record) == result.recorded < result.outcome.quality.cycles
    assert (result.folder / "rows.bin").stat().st_size <= 100_000
    assert record.manifest["end"]["reason"] == "RECORDER"
    assert "File too large" in result.note


@pytest.mark.extended
def test_a_disk_that_is_full_at_the_end_is_the_recorders(full_disk, tmp_path):
    """The ring takes the whole run, so the loop comes to its end; the record does not."""
    rig = rig_of(recorder={"seconds": 20.0, "directory": tmp_path})
    servo, _ = law_of(ROVER)
    result = run_session(rig, SessionOptions(Mode.MOCK, duration=1.0), servo)
    record = Record.load(result.folder)
    assert 1 <= len(record) < result.outcome.quality.cycles
    assert result.outcome.reason is Reason.RECORDER
    assert record.manifest["end"]["reason"] == "RECORDER"
    assert "File too large" in result.note
    assert any("could not be written" in note for note in record.notes)


# -- a clock that jumps ------------------------------------------------------------------------


def jumped(by, cycle=AT, middle=False):
    bench = Bench(clock=JumpingClock(), duration=DURATION)
    if not middle:
        bench.at(cycle, bench.clock.jump, by)
        return bench

    inner, done = bench.law.run, []

    def run():
        if bench.cycle == cycle and not done:
            done.append(by)
            bench.clock.jump(by)
        return inner()

    bench.law.run = run
    return bench


def torque_after(bench, time):
    """Torques on the robot from an instant of the world's own time on."""
    return np.array([torque for at, torque in bench.loads if at > time])


def instant_of(bench, cycle):
    """World's time at a cycle before the jump."""
    return bench["time"][bench.row(cycle) - 1] + PERIOD


@pytest.mark.by_default(1)
@pytest.mark.parametrize("middle", [False, True], ids=["between", "within"])
def test_a_clock_that_jumps_ahead_a_little(middle):
    """Three cycles are missing: the reference follows the time, and the run continues."""
    with jumped(2.6 * PERIOD, middle=middle) as bench:
        outcome = bench.run()
        assert outcome.done, outcome.reason.name
        assert outcome.quality.skipped == 2
        run = bench.run_rows
        assert outcome.quality.skipped == len(bench.plan) - 1 - run.sum()
        bench.check()


def test_a_clock_that_jumps_further_than_the_patience():
    with jumped(0.05) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        assert bench.stopped - bench.row(AT) <= 1
        braking = bench["torque"][bench.stopped : bench.stopped + 20]
        assert (braking * np.array(bench.speeds)[bench.stopped : bench.stopped + 20] <= 0.01).all()
        bench.check()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("by", [0.2, slow(10.0), 1e6])
def test_a_clock_that_jumps_far_ahead(by):
    """Further than any watchdog: no speed that is estimated is one to brake by."""
    with jumped(by) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        assert bench["state"][bench.row(AT)] == State.STOP
        assert not bench["torque"][bench.stopped :].any()
        bench.check()


@pytest.mark.parametrize("by", [-0.004, -0.05, slow(-1.0), slow(-100.0)])
def test_a_clock_that_goes_back_between_cycles(by):
    """Power is removed at once: no time that is measured means anything."""
    with jumped(by) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.CLOCK
        assert not bench["torque"][bench.stopped :].any()
        assert bench["state"][bench.row(AT)] == State.STOP
        struck = instant_of(bench, AT)
        assert not torque_after(bench, struck + 2 * PERIOD).any()
        bench.check()


@pytest.mark.parametrize("by", [-0.02, -0.3, slow(-2.0)])
def test_a_clock_that_goes_back_or_stands_still_within_a_cycle(by):
    """The loop sleeps longer by this time. If that is long, their watchdogs stop the drives."""
    with jumped(by, middle=True) as bench:
        outcome = bench.run()
        watchdog = max(axis.watchdog for axis in bench.rig.axes)
        if -by > watchdog:
            assert outcome.reason in WATCHDOG
            struck = bench["time"][bench.row(AT)]
            after = torque_after(bench, struck + watchdog + 2 * PERIOD)
            assert len(after) > 10
            assert not after.any()
        else:
            assert outcome.done, outcome.reason.name
        bench.check()


# -- one after the other -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_many_faults_one_after_the_other(seed):
    """For every fault: limited torque, a specific reason, and no torque afterwards."""
    rng = np.random.default_rng(seed)
    kinds = ["drop", "delay", "duplicate", "reorder", "corrupt", "nan", "stale", "freeze"]
    kinds += ["drive_fault", "bus_off", "power_cycle"]
    file = (ROVER, ROVER_MIT)[seed % 2]
    with Bench(file, duration=2.0) as bench:
        for cycle in np.sort(rng.integers(10, 480, 12)).tolist():
            axis = rng.choice([*bench.names, "*"])
            way = rng.choice(["both", "to_drive", "to_host"])
            kind = rng.choice(kinds, p=np.array([3, 3, 3, 3, 1, 1, 1, 1, 0.2, 1, 0.2]) / 17.4)
            lasting = float(rng.exponential(0.015))
            fault = Fault(str(kind), str(axis), lasting=lasting, way=str(way))
            bench.at(cycle, bench.world.fault, fault)
        outcome = bench.run()
        assert outcome.reason in (Reason.END, Reason.LATE, *WRONG_NUMBERS), outcome.reason
        bench.check()
        bench.torque_ended_in_time()


def test_an_unknown_axis_is_refused_before_the_law_is_built():
    wishes = SessionOptions(Mode.MOCK, faults=(Fault("drop", "tail"),))
    with pytest.raises(RigError, match=r"left_wheel.*got tail"):
        run_session(rig_of(), wishes, servo=object())


def test_the_rigs_are_those_of_the_examples():
    assert {(EXAMPLES / file).is_file() for file in GAINS} == {True}
    for file, tables in GAINS.items():
        outputs = rig_of(file).task.outputs
        assert len(outputs) == len(tables)
    assert dataclasses.is_dataclass(rig_of())
