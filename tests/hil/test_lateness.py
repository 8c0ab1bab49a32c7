"""Late cycles, lost and late reports, and loops that are held up."""

import math

import numpy as np
import pytest

from hil._punctuality import CONFIRMED, DOUBTED, SEQUENCE, Punctuality
from hil.clock import ASLEEP, SteppedClock
from hil.controller._controller import HOLDING
from hil.drives import Finding
from hil.emulator import Fault
from hil.errors import ArmError, DriveError
from hil.guard import Flag, Phase, Reason, State
from hil.rig import Policy
from tests.hil.bench import (
    ROVER,
    ROVER_MIT,
    Bench,
    rig_of,
    slow,
)

PERIOD = 0.004


# -- late cycles and lost reports --------------------------------------------------------------


def hang(bench, time):
    bench.clock.sleep_until(bench.clock.now() + time)


def test_a_cycle_that_takes_too_long():
    """The reference still follows the time: missed instants are skipped."""
    with Bench() as bench:
        bench.at(20, hang, bench, 3.4 * PERIOD)
        outcome = bench.run()
        assert outcome.done
        run = bench.run_rows
        time, elapsed = bench["time"][run], bench["elapsed"][run]
        late = bench["time"][run] - bench["deadline"][run] > 0.5 * PERIOD
        assert outcome.quality.late == late.sum() == 1  # the next began at a deadline again
        assert outcome.quality.skipped == len(bench.plan) - run.sum() - 1 == 3
        behind = (time - time[0]) - elapsed
        assert (behind > -1e-9).all()
        assert (behind[~late] < 0.5 * PERIOD + 1e-9).all()
        held = bench["flags"][run].astype(int) & Flag.HELD != 0
        after = np.append(False, np.diff(bench["deadline"][run]) > 1.5 * PERIOD)
        np.testing.assert_array_equal(held, late | after)
        np.testing.assert_array_equal(
            bench["torque"][run][held], bench["torque"][run][np.flatnonzero(held) - 1]
        )
        bench.check()


@pytest.mark.parametrize(("policy", "cycles"), [("HOLD", 5), slow("DAMP", 5), slow("STOP", 0)])
def test_cycles_that_are_late_again_and_again(policy, cycles):
    late = Policy[policy]
    with Bench(rig=rig_of(policies={"on_late": late, "stop_time": 0.1})) as bench:
        inner = bench.law.run

        def slow():
            if bench.cycle >= 20:
                hang(bench, 0.9 * PERIOD)
            return inner()

        bench.law.run = slow
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        flag = Flag.DAMPED if policy == "DAMP" else Flag.HELD
        run = bench.run_rows
        failing_cycles = (bench["flags"][run].astype(int) & flag) != 0
        assert failing_cycles.sum() == cycles
        assert outcome.quality.skipped > cycles
        bench.check()


@pytest.mark.parametrize("file", [slow(ROVER), ROVER_MIT])
def test_a_loop_that_hangs_for_longer_than_the_watchdogs(file):
    """The watchdogs stop the drives; the loop that continues finds them off, and stays off."""
    with Bench(file) as bench:
        bench.at(20, hang, bench, 0.25)
        outcome = bench.run()
        assert outcome.reason in (
            Reason.DRIVE_FAULT,
            Reason.DRIVE_OFF,
            Reason.LOST,
            Reason.STALE,
            Reason.LATE,
        )
        stuck = bench["time"][bench.row(19)]
        watchdog = max(axis.watchdog for axis in bench.rig.axes)
        after = bench.torque_since(stuck + watchdog + 2 * PERIOD)
        assert len(after) > 10
        assert not after.any()
        bench.check()


def drop(bench, axis, cycles, way="to_host"):
    """Lose the reports (commands) of some cycles."""
    bench.world.fault(Fault("drop", axis, lasting=cycles * PERIOD - 1e-4, way=way))


@pytest.mark.parametrize(
    ("axis", "cycles"),
    [
        ("upper_arm", 5),
        ("*", 6),
        slow("upper_arm", 1),
        slow("upper_arm", 6),
        slow("*", 1),
        slow("*", 5),
    ],
)
def test_lost_reports(axis, cycles):
    with Bench() as bench:
        patience = bench.rig.policies.max_consecutive_faults
        assert patience == 5
        bench.at(20, drop, bench, axis, cycles)
        outcome = bench.run()
        run = bench.run_rows
        held_rows = np.flatnonzero(bench["flags"].astype(int) & Flag.HELD != 0)
        n = 5 if axis == "*" else 1
        np.testing.assert_array_equal(held_rows, bench.row(20) + np.arange(min(cycles, patience)))
        before = bench["torque"][bench.row(19)]
        assert (bench["torque"][held_rows] == before).all()
        if cycles <= patience:
            assert outcome.done
            assert outcome.quality.lost == n * cycles
            assert run.sum() == len(bench.plan) - 1
        else:
            assert outcome.reason is (Reason.POWER_LOST if axis == "*" else Reason.LOST)
            assert bench.stopped == bench.row(20) + patience
        bench.check()


@pytest.mark.parametrize(("policy", "cycles"), [slow("DAMP", 5), ("STOP", 0)])
def test_lost_reports_of_other_policies(policy, cycles):
    lost = Policy[policy]
    with Bench(rig=rig_of(policies={"on_missing": lost, "stop_time": 0.1})) as bench:
        bench.at(20, drop, bench, "turret", 6)
        outcome = bench.run()
        assert outcome.reason is Reason.LOST
        assert bench.stopped == bench.row(20) + cycles
        flags = bench["flags"][bench.run_rows].astype(int)
        assert (flags & Flag.DAMPED != 0).sum() == cycles
        bench.check()


def pauses_of(bench, cycles):
    """A list that takes, for each of these cycles, whether it requests no report."""
    watch, pauses = bench.controller._exchange._punctual, []
    for cycle in cycles:
        bench.at(cycle, lambda: pauses.append(watch.pauses))
    return pauses


def test_a_report_now_and_then_lost_is_no_reason_to_stop():
    with Bench() as bench:
        begins = range(10, 95, 6)
        for cycle in begins:
            bench.at(cycle, drop, bench, bench.names[cycle % 5], 4)
        pauses = pauses_of(bench, [cycle + k for cycle in begins for k in range(4)])
        outcome = bench.run()
        assert outcome.done
        # None is lost where a cycle asks for none, to see whether reports are late.
        assert outcome.quality.lost == 4 * len(begins) - sum(pauses)
        assert sum(pauses) <= len(begins)
        bench.check()


# -- cycles and deadlines ----------------------------------------------------------------------


def stall(bench, at, periods):
    """Be held up in the middle of a cycle, after its start: it began in time."""
    inner = bench.law.run

    def run():
        if bench.cycle == at:
            hang(bench, periods * PERIOD)
        return inner()

    bench.law.run = run


def test_a_cycle_that_takes_many_periods_is_late_whatever_the_instant_it_ends():
    """Just before a deadline, as here, all deadlines but that one were missed."""
    rig = rig_of(policies={"on_late": Policy.STOP, "stop_time": 0.1})
    with Bench(rig=rig) as bench:
        stall(bench, 20, 4.1)
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        assert bench.stopped == bench.begun + 22
        bench.check()


def test_patience_with_late_cycles_counts_the_deadlines_that_had_no_cycle():
    rig = rig_of(policies={"max_consecutive_faults": 5, "stop_time": 0.1})
    with Bench(rig=rig) as bench:
        stall(bench, 20, 12.05)
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        assert bench.stopped == bench.begun + 21  # in the same cycle, before its torque is sent
        bench.check()


def test_a_cycle_that_takes_longer_than_the_watchdogs_removes_power_at_once():
    """For a delay at any place in the cycle: the known speeds are outdated."""
    with Bench() as bench:
        watchdog = min(axis.watchdog for axis in bench.rig.axes)
        stall(bench, 20, (watchdog + 0.02) / PERIOD + 0.05)
        outcome = bench.run()
        assert outcome.reason is Reason.LATE
        assert bench.stopped == bench.begun + 21  # in the same cycle, before its torque is sent
        assert not bench["torque"][bench.stopped :].any()
        bench.check()


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_every_deadline_has_a_cycle_or_is_counted_as_skipped(seed):
    """Cycles plus skipped deadlines equal the passed deadlines in every case."""
    random = np.random.default_rng(seed)
    with Bench(rig=rig_of(policies={"max_consecutive_faults": 200, "stop_time": 0.1})) as bench:
        inner, cycle = bench.law.run, bench.controller._cycle
        starts = []

        def slow():
            if random.random() < 0.2:
                hang(bench, random.choice([0.3, 0.9, 1.0, 1.7, 2.0, 3.5, 6.2]) * PERIOD)
            return inner()

        def watched(deadline):
            starts.append(bench.clock.now())
            cycle(deadline)

        bench.law.run, bench.controller._cycle = slow, watched
        outcome = bench.run()
        quality = outcome.quality
        assert quality.cycles == len(starts) == len(bench)
        assert quality.skipped > 5
        first = bench["deadline"][0]
        last = bench["time"][-1]
        passed = 1 + int((last - first) / PERIOD + 1e-6)
        assert quality.cycles + quality.skipped == passed
        # The deadline in a row is the first one without an earlier cycle.
        gaps = np.rint(np.diff(bench["deadline"]) / PERIOD)
        assert (gaps >= 1).all()
        late = bench["time"] - bench["deadline"] > 0.5 * PERIOD
        assert quality.late == late.sum()


def test_a_loop_that_hangs_while_arming_begins_at_the_beginning():
    """The task has not begun: nothing of it is skipped."""
    with Bench() as bench:
        inner, hung = bench.law.run, []

        def run():
            if bench.controller.latch.state is State.ARMED and not hung:
                hung.append(hang(bench, 20.3 * PERIOD))
            return inner()

        bench.law.run = run
        outcome = bench.run()
        assert outcome.done
        np.testing.assert_array_equal(bench["pose"][bench.begun], bench.plan.pose[0])
        np.testing.assert_array_equal(bench["pose"][bench.begun - 1], bench.plan.pose[0])
        assert bench.run_rows.sum() >= len(bench.plan) - 1


def test_lost_reports_count_each_axis():
    with Bench() as bench:
        names = bench.names
        for name, cycles in zip(names[:3], (1, 2, 3), strict=True):
            bench.at(
                20,
                bench.world.fault,
                Fault("drop", name, lasting=cycles * PERIOD - 1e-4, way="to_host"),
            )
        outcome = bench.run()
        assert outcome.done
        assert outcome.quality.lost == 6
        assert bench["lost"][-1] == 6
        bench.check()


def test_axes_that_are_lost_in_turn_do_not_keep_an_old_torque_forever():
    """No axis is away for longer than a cycle, and yet one is missing in each."""
    with Bench(rig=rig_of(policies={"max_consecutive_faults": 5, "stop_time": 0.1})) as bench:
        for cycle in range(20, 80):
            name = bench.names[cycle % 5]
            fault = Fault("drop", name, lasting=PERIOD - 1e-4, way="to_host")
            bench.at(cycle, bench.world.fault, fault)
        pauses = pauses_of(bench, range(20, 80))
        outcome = bench.run()
        assert outcome.done
        assert outcome.quality.lost == 60 - sum(pauses)
        assert sum(pauses) <= 12
        held = (bench["flags"].astype(int) & Flag.HELD) != 0
        assert 1 <= held.sum() <= 5
        rows = np.flatnonzero(bench.run_rows)
        same = (np.diff(bench["torque"][rows], axis=0) == 0.0).all(axis=1)
        assert same.sum() <= 5
        bench.check()


# -- held up within a cycle, and drives that cannot be released --------------------------------


CYCLE = 30


class Sleeper(SteppedClock):
    """The clock of a machine that may have slept."""

    slept = 0.0

    def asleep(self):
        return self.slept


def held_up(bench, seconds):
    """Time passes while the law of a cycle is computed: after the reports were taken."""
    bench.law.change = None
    bench.clock.sleep_until(bench.clock.now() + seconds)


@pytest.mark.parametrize("over", [-0.5e-3, 0.5e-3])
def test_no_torque_leaves_on_reports_that_became_too_old_meanwhile(over):
    with Bench() as bench:
        ages = []
        count = bench.controller._exchange.count

        def noting(now):
            lost = count(now)
            ages[:] = bench.controller._exchange.ages.tolist()
            return lost

        bench.controller._exchange.count = noting
        bench.at(
            CYCLE,
            lambda: setattr(
                bench.law,
                "change",
                lambda _: held_up(bench, bench.limits.largest_age - max(ages) + over),
            ),
        )
        bench.run()
        row = bench.row(CYCLE)
        assert np.abs(bench["torque"][row - 1]).max() > 0.1
        assert (bench["reason"][row] == Reason.LATE) == (over > 0.0)
        assert (bench["state"][row] == State.STOP) == (over > 0.0)
        assert bench["torque"][row].any() == (over < 0.0)
        bench.check()


@pytest.mark.by_default(4)
@pytest.mark.parametrize("within", [False, True], ids=["between cycles", "within a cycle"])
@pytest.mark.parametrize("slept", [0.9 * ASLEEP, 1.1 * ASLEEP, 3600.0])
def test_a_machine_that_slept_loses_its_power_at_once(slept, within):
    with Bench(clock=Sleeper()) as bench:
        bench.clock.slept = 7200.0  # before: that is no matter

        def sleep(*_):
            bench.law.change = None
            bench.clock.slept = 7200.0 + slept

        if within:
            bench.at(CYCLE, setattr, bench.law, "change", sleep)
        else:
            bench.at(CYCLE, sleep)
        outcome = bench.run()
        noticed = slept > ASLEEP
        assert outcome.reason is (Reason.CLOCK if noticed else Reason.END)
        row = bench.row(CYCLE)
        assert bench["torque"][row].any() != noticed
        assert not bench["torque"][row + 1 :].any() or not noticed
        assert bench.phase is Phase.OFF
        bench.check()


def test_a_release_that_fails_leaves_a_trace_and_the_others_are_released():
    with Bench() as bench:
        released = []

        def fail(_):
            raise DriveError(
                "axis `turret`", expected="an answer", came="silence", cure="Check it."
            )

        for drive in bench.controller.drives:
            drive.release = fail if drive.axis.name == "turret" else released.append
        outcome = bench.run()
        assert len(released) == len(bench.names) - 1
        (sentence,) = outcome.left
        assert "axis `turret` may still be under power: DriveError" in sentence
        assert outcome.done  # of the task


def test_frames_that_the_bus_refuses_at_the_end_leave_a_trace():
    with Bench() as bench:
        drive = bench.controller.drives[1]
        inner = drive.release

        def release(bus):
            bus.refused += 1
            inner(bus)

        drive.release = release
        (sentence,) = bench.run().left
        assert bench.names[1] in sentence
        assert "the bus rejected frames" in sentence


def test_a_failed_release_after_an_error_is_a_note_of_the_error():
    with Bench() as bench:

        def fail(*_):
            raise OSError("no bus")

        bench.controller.drives[0].release = fail
        bench.at(CYCLE, setattr, bench.law, "change", fail)
        with pytest.raises(OSError, match="no bus") as caught:
            bench.run()
        assert any(bench.names[0] in note for note in caught.value.__notes__)


@pytest.mark.parametrize("end", ["hold", "stop"])
def test_the_arm_is_held_when_the_task_is_done(end):
    """The page of a run shows the errors of its last cycles: an arm that falls is 0.1 m away."""
    with Bench(rig=rig_of(policies={"end": end}), duration=1.0) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.END
        off = bench["state"] == State.STOP
        fallen = np.linalg.norm(bench["q"][off][:, -2:] - bench["q"][bench.stopped][-2:], axis=1)
        held = bench["torque"][off].any(axis=1)
        if end == "hold":
            assert fallen.max() < 0.03  # rad, with the cycles after power is removed
            assert held.sum() >= HOLDING / bench.rig.loop.period - 1
        else:
            assert fallen.max() > 0.03
            assert held.sum() <= bench.rig.policies.stop_time / bench.rig.loop.period + 1
        assert not bench["torque"][-5:].any()
        bench.check()


# -- reports that come late by whole cycles ----------------------------------------------------


PATIENCE = 5
AT = 30


class Line:
    """One axis whose reports take some cycles, or are lost."""

    def __init__(self, patience=PATIENCE):
        self.watch = Punctuality(1, patience)
        self.flying, self.cycle = [], 0

    def run(self, cycles, delay=0, lost=False):
        """Cycles until one is over, or the watch is sure."""
        pauses = 0
        for _ in range(cycles):
            pausing = self.watch.pauses
            pauses += pausing
            if not pausing:
                self.watch.ask(0, float(self.cycle))
                if not lost:
                    self.flying.append(self.cycle + delay)
            due = [instant for instant in self.flying if instant <= self.cycle]
            self.flying = [instant for instant in self.flying if instant > self.cycle]
            for _ in due:
                self.watch.come(0)
            self.watch.end([bool(due)], [False], pausing)
            self.cycle += 1
            if self.watch.late >= 0:
                break
        return pauses


@pytest.mark.parametrize("delay", [1, 2, 3, 5, 10])
def test_late_by_whole_cycles(delay):
    line = Line()
    assert line.run(50) == 0
    assert line.watch.late < 0
    pauses = line.run(delay + DOUBTED + 2 + sum(SEQUENCE), delay)
    assert CONFIRMED <= pauses <= 1 + len(SEQUENCE)
    assert line.watch.late == 0


@pytest.mark.parametrize(("cycles", "late"), [(PATIENCE, -1), (PATIENCE + 1, 0)])
def test_reports_outside_of_the_window_in_many_cycles_are_late(cycles, late):
    watch = Punctuality(1, PATIENCE)
    for k in range(3):
        watch.end([k == 1], [True], False)  # one in time ends the count
    for _ in range(cycles - 1):
        watch.end([False], [True], False)
    assert watch.late == late


def test_a_report_answers_the_oldest_outstanding_request():
    watch = Punctuality(2, PATIENCE)
    for instant in (1.0, 2.0, 3.0):
        watch.ask(1, instant)
    assert [watch.come(1) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert math.isnan(watch.come(1))


@pytest.mark.parametrize(("patience", "doubted"), [(PATIENCE, DOUBTED), (1, 1)])
def test_lost_reports_cost_one_pause_and_are_forgotten(patience, doubted):
    line = Line(patience)
    line.run(20)
    line.run(3, lost=True)
    assert line.run(doubted) == 0  # not yet
    assert not line.watch.pauses
    assert line.run(1) == 0
    assert line.watch.pauses
    assert line.run(100) == 1
    assert line.watch.late < 0


def test_reports_that_were_held_up_for_a_while_catch_up():
    """A drive that slept answers all that it was asked: nothing is owed any more."""
    line = Line()
    for delay in (3, 2, 1, 0):
        line.run(1, delay)
    assert line.run(50) == 0
    assert line.watch.late < 0


def test_one_that_is_late_by_chance_in_a_pause_is_not_enough():
    line = Line()
    line.run(1, lost=True)
    while not line.watch.pauses:
        line.run(1)
    line.flying.append(line.cycle)  # a report that comes although none is asked for
    line.run(1)
    assert line.run(sum(SEQUENCE) + 1) == len(SEQUENCE)
    assert line.run(50) == 0
    assert line.watch.late < 0


@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
def test_the_round_trip_is_measured_before_arming(file):
    with Bench(file, duration=0.1) as bench:
        outcome = bench.run()
    found = [check for check in outcome.checks if check.what.startswith("round trip")]
    assert [check.axis for check in found] == bench.names
    assert all(check.finding is Finding.FOUND for check in found)
    latency = bench.rig.emulator.latency
    assert all(float(check.came) == pytest.approx(2e3 * latency, abs=0.2) for check in found)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
@pytest.mark.parametrize("delay", [30e-3, 60e-3])
def test_reports_that_are_late_from_the_first_on_are_refused(file, delay):
    faults = [Fault("delay", "turret", value=delay, way="to_host")]
    with (
        Bench(file, faults=faults, duration=0.2) as bench,
        pytest.raises(ArmError, match=r"turret`, round trip.*got (32|62)\.?\d* ms"),
    ):
        bench.run()
    assert not bench.world.torque.any()


@pytest.mark.parametrize("beyond", [-0.3e-3, 0.3e-3])
def test_the_window_is_the_limit(beyond):
    rig = rig_of(ROVER)
    delay = rig.loop.receive_window - 2.0 * rig.emulator.latency + beyond
    faults = [Fault("delay", "forearm", value=delay, way="to_host")]
    with Bench(rig=rig, faults=faults, duration=0.1) as bench:
        if beyond > 0.0:
            with pytest.raises(ArmError, match="the receive window"):
                bench.run()
        else:
            assert bench.run().done


@pytest.mark.parametrize(("file", "delay"), [(ROVER, 12e-3), (ROVER_MIT, 12e-3)])
def test_reports_that_become_late_stop_the_run(file, delay):
    """Within the policies' patience nothing is lost: afterwards each cycle has a report again."""
    with Bench(file, duration=0.6) as bench:
        fault = Fault("delay", "left_wheel", value=delay, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
    assert outcome.reason is Reason.STALE
    patience = bench.rig.policies.max_consecutive_faults
    stopped = bench.stopped - bench.row(AT)
    assert 3 < stopped < 2 * patience + sum(SEQUENCE) + 8
    assert (bench["state"][bench.stopped :] == State.STOP).all()


@pytest.mark.parametrize("delay", [9e-3, 13.3e-3, 29e-3, 45.2e-3])
def test_reports_that_arrive_between_the_windows_stop_the_run(delay):
    """Each cycle has a report, which looks 3 ms old by the last SYNC."""
    rig = rig_of(policies={"max_consecutive_faults": 15, "stop_time": 0.1})
    with Bench(rig=rig, duration=1.0) as bench:
        fault = Fault("delay", "turret", value=delay, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
        assert outcome.reason is Reason.STALE
        assert "axis `turret`" in outcome.detail
        late = (bench.stopped - bench.row(AT)) * PERIOD
        assert late < delay + 40 * PERIOD
        # Before the stop no age is believed that is less than the delay, once one is seen.
        ages = (bench["time"] - bench.columns["report_time"][:, 2])[
            bench.row(AT) + 14 : bench.stopped
        ]
        assert ages.min() > delay - 2.5e-3
        bench.check()


@pytest.mark.parametrize("delay", [20e-3, 60e-3])
def test_commands_that_become_late_stop_the_run(delay):
    """With SYNC: the reports are late by as much."""
    rig = rig_of(policies={"max_consecutive_faults": 15, "stop_time": 0.1})
    with Bench(rig=rig, duration=1.5) as bench:
        fault = Fault("delay", "turret", value=delay, way="to_drive")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
        assert outcome.reason in (Reason.STALE, Reason.DELAYED, Reason.LOST)
        assert "axis `turret`" in outcome.detail
        bench.check()


def test_lost_frames_do_not_count_as_late():
    with Bench(duration=0.8) as bench:
        fault = Fault("drop", "*", probability=0.05, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
    assert outcome.done, outcome.reason.name
    assert outcome.quality.lost > 5
    assert np.abs(outcome.error).max() < 0.2
