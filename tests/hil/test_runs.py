"""Whole runs: ways in which wrong torque could be sent, or a stop be missing or end too early."""

import dataclasses
import math

import can
import numpy as np
import pytest

from hil import session
from hil.bus import Bus
from hil.clock import ASLEEP, MonotonicClock, SteppedClock
from hil.controller import Mode
from hil.controller._controller import HOLDING
from hil.controller._punctuality import CONFIRMED, SEQUENCE, Punctuality
from hil.drives import Finding
from hil.drives._network import SdoSession
from hil.emulator import EmulatorProcesses, Fault
from hil.errors import ArmError, DriveError, RigError
from hil.guard import Flag, Phase, Reason, State
from hil.operator import CHALLENGES, OperatorSender
from hil.rig import BusSettings, Policy, load_rig
from hil.session import SessionOptions
from tests.hil.bench import EXAMPLES, FLOATER, ROVER, ROVER_MIT, Bench, rig_of

PERIOD = 0.004
slow = pytest.mark.slow


def hang(bench, time):
    bench.clock.sleep_until(bench.clock.now() + time)


# -- the operator ------------------------------------------------------------------------------


def test_a_deadman_let_go_while_the_drives_are_prepared_does_not_run():
    """Its last heartbeats wait to be read, and are older than they seem."""
    with Bench(mode=Mode.DRIVE) as bench:
        prepare = bench.controller.drives[0].prepare

        def held_until_now(bus):
            bench.sender.heartbeat()
            bench.beats = False
            return prepare(bus)

        bench.controller.drives[0].prepare = held_until_now
        outcome = bench.run()
        assert outcome.reason is Reason.DEADMAN
        assert not bench.run_rows.any()
        bench.check()


def test_a_deadman_that_is_held_all_the_time_runs_although_preparing_takes_long():
    """Heartbeats come four times in a second: the first fresh one is waited for."""
    with Bench(mode=Mode.DRIVE, duration=0.2) as bench:
        poll, last = bench.channel.poll, [0.0]

        def polled(now=None):
            if bench.clock.now() - last[0] >= 0.2:
                last[0] = bench.clock.now()
                bench.sender.heartbeat()
            return poll(now)

        bench.channel.poll = polled
        bench.sender.heartbeat()
        bench.beats = False
        assert bench.controller.run().done


def test_a_stop_request_before_arming_forbids_it():
    with Bench(mode=Mode.DRIVE) as bench:
        bench.sender.stop()
        with pytest.raises(ArmError, match="stop"):
            bench.run()
        assert len(bench) == 0
        assert not bench.sent


def test_driving_without_a_required_operator_is_refused():
    rig = rig_of(operator={"port": 0, "required": False})
    with pytest.raises(ArmError, match="required"), Bench(rig=rig, mode=Mode.DRIVE):
        pass


# -- a stop that holds -------------------------------------------------------------------------


def holding(bench, act, after=100):
    """Do something once a stop has held for some cycles; how long it held in all."""
    cycles, inner = [], bench.controller._cycle

    def cycle(deadline):
        if bench.phase is Phase.HOLDING:
            cycles.append(None)
            if len(cycles) == after:
                act()
            assert len(cycles) < after + 1000, "holds forever"
        inner(deadline)

    bench.controller._cycle = cycle
    return cycles


CATEGORY_2 = {"stop_category": 2, "stop_time": 0.1}


@pytest.mark.parametrize("known", [True, False], ids=["with token", "from anybody"])
def test_a_second_stop_ends_holding(known):
    rig = rig_of(policies=CATEGORY_2, operator={"port": 0})
    with Bench(rig=rig, mode=Mode.DRIVE) as bench:
        token = bench.channel.token if known else ""
        with OperatorSender("127.0.0.1", bench.channel.port, token) as pendant:
            bench.at(20, pendant.stop)
            cycles = holding(bench, pendant.stop)
            outcome = bench.run()
        assert outcome.reason is Reason.OPERATOR
        assert 100 <= len(cycles) <= 102
        bench.check()


@pytest.mark.parametrize("ends", [True, False], ids=["at the end", "after a stop"])
def test_letting_go_of_the_deadman_ends_holding(ends):
    rig = rig_of(policies=CATEGORY_2, operator={"port": 0, "timeout": 0.2})
    with Bench(rig=rig, mode=Mode.DRIVE, duration=0.2) as bench:
        if not ends:
            bench.at(20, bench.sender.stop)
        cycles = holding(bench, lambda: setattr(bench, "beats", False))
        outcome = bench.run()
        assert outcome.reason is (Reason.END if ends else Reason.OPERATOR)
        timeout = 0.2 / PERIOD
        # A heartbeat is as old as the challenge that it answers.
        older = math.ceil(timeout / CHALLENGES)
        assert 100 + timeout - older - 2 <= len(cycles) <= 100 + timeout + 2
        bench.check()


def test_letting_go_of_the_deadman_in_a_run_does_not_hold():
    """There is no operator who could end it."""
    rig = rig_of(policies=CATEGORY_2, operator={"port": 0, "timeout": 0.1})
    with Bench(rig=rig, mode=Mode.DRIVE) as bench:
        cycles = holding(bench, lambda: None)
        bench.at(10, setattr, bench, "beats", False)
        outcome = bench.run()
        assert outcome.reason is Reason.DEADMAN
        assert not cycles
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


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=slow), pytest.param(2, marks=slow)])
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
        outcome = bench.run()
        assert outcome.done
        # Fewer where a cycle asked for nothing, to see whether reports are late.
        assert 50 <= outcome.quality.lost <= 60
        held = (bench["flags"].astype(int) & Flag.HELD) != 0
        assert 1 <= held.sum() <= 5
        rows = np.flatnonzero(bench.run_rows)
        same = (np.diff(bench["torque"][rows], axis=0) == 0.0).all(axis=1)
        assert same.sum() <= 5
        bench.check()


# -- the bus -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "channel"),
    [("socketcan", "can0"), ("pcan", "PCAN_USBBUS1"), ("slcan", "ttyACM0")],
)
def test_nothing_is_emulated_on_a_bus_that_may_have_drives(interface, channel):
    """With `--emulate` there is no confirmation and no enabling device."""
    rig = dataclasses.replace(load_rig(EXAMPLES / ROVER), bus=BusSettings(interface, channel))
    with pytest.raises(RigError, match=r"bus\.interface"):
        EmulatorProcesses(rig)
    for mode in (Mode.DRIVE, Mode.SHADOW):
        with pytest.raises(ArmError, match="person"):
            session.run_session(rig, SessionOptions(mode, heartbeat="auto", emulated=True))


def test_one_drive_that_gets_no_command_any_more_stops_the_rig():
    """A full queue refuses the last frame of each cycle, and takes the others: that drive would
    keep its last torque while the host's heartbeat continues."""
    with Bench() as bench:
        send, sent = bench.bus.bus.send, []
        commands = {i for drive in bench.controller.drives for i in drive.sent_identifiers}

        def full(frame, timeout=None):
            if frame.arbitration_id == 0x080:
                sent.clear()
            if frame.arbitration_id in commands:
                if len(sent) == len(bench.rig.axes) - 1:
                    raise can.CanOperationError("no buffer space")
                sent.append(frame.arbitration_id)
            return send(frame, timeout)

        bench.at(20, setattr, bench.bus.bus, "send", full)
        outcome = bench.run()
        assert outcome.reason is Reason.BUS_OFF
        assert bench.stopped - bench.begun - 20 <= bench.rig.policies.max_consecutive_faults + 2
        # Whose frame was refused comes first next time: each drive heard of the stop.
        after = bench["time"][bench.stopped] + 0.02
        assert not bench.torque_since(after).any()


# -- before and during a run -------------------------------------------------------------------


def test_an_axis_that_the_estimator_gave_up_is_not_run():
    with Bench() as bench:
        update = bench.controller.estimator.update
        estimator = bench.controller.estimator

        def lost(feedback, now, known=None):
            update(feedback, now, known)
            estimator.lost[2], estimator.valid = True, False
            return False

        estimator.update = lost
        outcome = bench.run()
        assert outcome.reason is Reason.LOST
        assert not bench.run_rows.any()
        assert not bench["torque"].any()


@slow
def test_a_pose_that_is_required_is_waited_for_and_without_it_nothing_runs():
    rig = rig_of(FLOATER, pose={"required": True}, emulator={"pose_loss": 1.0})
    with Bench(FLOATER, rig=rig, duration=0.2) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.POSE_LOST
        assert not bench.run_rows.any()
        assert not bench["torque"].any()


def test_a_drive_that_is_enabled_but_gives_no_torque_is_noticed_by_the_error():
    rig = rig_of(policies={"largest_error": 0.3, "stop_time": 0.1})
    with Bench(rig=rig, duration=4.0) as bench:
        drive = bench.world.drives[bench.names.index("upper_arm")]
        drive.torque = lambda now: 0.0
        outcome = bench.run()
        assert outcome.reason in (Reason.TRACKING, Reason.OVERSPEED, Reason.OUT_OF_RANGE)
        assert outcome.elapsed < 2.0
        assert np.abs(bench["error"][bench.run_rows][-1]).max() < 0.5
        bench.check()


def test_an_error_beyond_its_bound_stops():
    rig = rig_of(policies={"largest_error": 0.3, "start_error": 0.3, "stop_time": 0.1})
    with Bench(rig=rig) as bench:
        errors = bench.controller._law.errors

        class Far:
            def view(self, *arguments):
                x, rest = errors.view(*arguments)
                return (x + 0.29 if bench.cycle >= 40 else x), rest

        bench.controller._law.errors = Far()
        outcome = bench.run()
        assert outcome.reason is Reason.TRACKING
        bench.check()


# -- drives ------------------------------------------------------------------------------------


def test_a_fault_that_disappears_does_not_bring_the_torque_back():
    """Some drives clear a fault when its cause ends, although no person has checked it."""
    rig = rig_of(policies={"stop_time": 0.4})
    with Bench(rig=rig) as bench:
        index = bench.names.index("turret")
        drive = bench.world.drives[index]

        def recover():
            drive.state = type(drive.state).SWITCH_ON_DISABLED

        bench.at(20, bench.world.fault, Fault("drive_fault", "turret"))
        inner, struck = bench.controller._cycle, []

        def cycle(deadline):
            if bench.controller.latch.state is State.STOP:
                struck.append(None)
                if len(struck) == 5:
                    recover()
            inner(deadline)

        bench.controller._cycle = cycle
        outcome = bench.run()
        assert outcome.reason is Reason.DRIVE_FAULT
        stopped = bench.stopped
        assert not bench["enabled"][stopped + 2 :, index].any()
        assert bench["fault"][-1, index] != 0
        bench.check()


# -- faults of the emulator --------------------------------------------------------------------


def test_a_drive_goes_stale_although_no_fault_was_there_before():
    """As the first fault of all, commanded while the rig runs."""
    with Bench() as bench:
        bench.at(20, bench.world.fault, Fault("stale", "*", way="to_host"))
        outcome = bench.run()
        assert outcome.reason is Reason.STUCK
        rows = bench["position"][bench.begun + 22 :]
        assert len(rows) > 5
        assert (np.ptp(rows, axis=0) == 0.0).all()
        bench.check()


def test_a_report_that_comes_twice_is_no_encoder_that_fails():
    """A drive that was held up answers two commands at once, with one position."""
    with Bench(ROVER_MIT) as bench:
        receive = bench.controller.drives[0].receive
        last = [None]

        def twice(frame, now, feedback):
            data = bytes(frame.data)
            again = bench.cycle in range(30, 90, 10) and last[0] is not None
            if again:
                frame = can.Message(
                    arbitration_id=frame.arbitration_id, data=last[0], is_extended_id=False
                )
            taken = receive(frame, now, feedback)
            if taken and not again:
                last[0] = data
            return taken

        bench.controller.drives[0].receive = twice
        assert bench.run().done


@pytest.mark.parametrize("kind", ["freeze", pytest.param("stale", marks=slow)])
@pytest.mark.parametrize("axis", ["turret", pytest.param("upper_arm", marks=slow), "forearm"])
def test_an_encoder_that_fails_is_noticed(kind, axis):
    """Also on axes as slow as these, which turn by 0.2 to 0.3 rad/s then."""
    with Bench(duration=0.8) as bench:
        bench.at(100, bench.world.fault, Fault(kind, axis, way="to_host"))
        outcome = bench.run()
        assert outcome.reason in (Reason.STUCK, Reason.TRACKING)
        bench.check()


# -- clocks ------------------------------------------------------------------------------------


def test_a_clock_that_stops_forever_does_not_hold_the_loop(monkeypatch):
    clock = MonotonicClock()
    instant = clock.now()
    monkeypatch.setattr(MonotonicClock, "now", lambda self: instant)
    clock.sleep_until(instant + 1e-4)
    assert clock.now() == instant


class Silent:
    """A bus on which nothing comes, whose waits take no time."""

    state = can.BusState.ACTIVE

    def send(self, frame, timeout=None):
        pass

    def _recv_internal(self, timeout):
        return None, True


def test_a_clock_that_stops_forever_does_not_hold_the_set_up(monkeypatch):
    clock = MonotonicClock()
    instant = clock.now()
    monkeypatch.setattr(MonotonicClock, "now", lambda self: instant)
    node = SdoSession(Bus(Silent(), clock), "joint", 1)
    with pytest.raises(DriveError, match="answer"):
        node.read(0x1000, 0, "I")
    node.network.idle(0.1)


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
                self.watch.ask(0)
                if not lost:
                    self.flying.append(self.cycle + delay)
            due = [instant for instant in self.flying if instant <= self.cycle]
            self.flying = [instant for instant in self.flying if instant > self.cycle]
            for _ in due:
                self.watch.come(0)
            self.watch.end([bool(due)], pausing)
            self.cycle += 1
            if self.watch.delayed:
                break
        return pauses


@pytest.mark.parametrize("delay", [1, 2, 3, 5, 10])
def test_late_by_whole_cycles(delay):
    line = Line()
    assert line.run(50) == 0
    assert not line.watch.delayed
    pauses = line.run(delay + PATIENCE + 2 + sum(SEQUENCE), delay)
    assert CONFIRMED <= pauses <= 1 + len(SEQUENCE)
    assert line.watch.delayed


def test_lost_reports_cost_one_pause_and_are_forgotten():
    line = Line()
    line.run(20)
    line.run(3, lost=True)
    assert line.run(PATIENCE) == 0  # not yet
    assert line.run(100) == 1
    assert not line.watch.delayed


def test_reports_that_were_held_up_for_a_while_catch_up():
    """A drive that slept answers all that it was asked: nothing is owed any more."""
    line = Line()
    for delay in (3, 2, 1, 0):
        line.run(1, delay)
    assert line.run(50) == 0
    assert not line.watch.delayed


def test_one_that_is_late_by_chance_in_a_pause_is_not_enough():
    line = Line()
    line.run(1, lost=True)
    while not line.watch.pauses:
        line.run(1)
    line.flying.append(line.cycle)  # a report that comes although none is asked for
    line.run(1)
    assert line.run(sum(SEQUENCE) + 1) == len(SEQUENCE)
    assert line.run(50) == 0
    assert not line.watch.delayed


@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
def test_the_round_trip_is_measured_before_arming(file):
    with Bench(file, duration=0.1) as bench:
        outcome = bench.run()
    found = [check for check in outcome.checks if check.what.startswith("round trip")]
    assert [check.axis for check in found] == bench.names
    assert all(check.finding is Finding.FOUND for check in found)
    latency = bench.rig.emulator.latency
    assert all(float(check.came) == pytest.approx(2e3 * latency, abs=0.2) for check in found)


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


def test_lost_frames_do_not_count_as_late():
    with Bench(duration=0.8) as bench:
        fault = Fault("drop", "*", probability=0.05, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
    assert outcome.done, outcome.reason.name
    assert outcome.quality.lost > 5
    assert np.abs(outcome.error).max() < 0.2
