"""Whole runs: ways in which wrong torque could be sent, or a stop be missing or end too early."""

import dataclasses
import math

import can
import numpy as np
import pytest

from hil import session
from hil.bus import Bus
from hil.clock import MonotonicClock
from hil.controller import Mode
from hil.drives._network import SdoSession
from hil.emulator import EmulatorProcesses, Fault
from hil.errors import ArmError, DriveError, RigError
from hil.guard import Phase, Reason, State
from hil.operator import CHALLENGES, OperatorSender
from hil.rig import BusSettings, load_rig
from hil.session import SessionOptions
from tests.hil.bench import EXAMPLES, FLOATER, ROVER, ROVER_MIT, Bench, rig_of

PERIOD = 0.004
slow = pytest.mark.slow


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


@pytest.mark.by_default(1)
@pytest.mark.parametrize("known", [False, True], ids=["from anybody", "with token"])
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


@pytest.mark.by_default(1)
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


# -- the bus -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "channel"),
    [("socketcan", "can0"), ("pcan", "PCAN_USBBUS1"), ("slcan", "ttyACM0")],
)
def test_nothing_is_emulated_on_a_bus_that_may_have_drives(interface, channel):
    """With `--emulate` there is no confirmation and no enabling device."""
    rig = dataclasses.replace(load_rig(EXAMPLES / ROVER), buses=(BusSettings(interface, channel),))
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
        assert outcome.reason is Reason.JUMP
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


def test_a_drive_that_is_enabled_but_gives_no_torque_is_noticed():
    rig = rig_of(policies={"largest_error": 0.3, "stop_time": 0.1})
    with Bench(rig=rig, duration=4.0) as bench:
        drive = bench.world.drives[bench.names.index("upper_arm")]
        drive.torque = lambda now: 0.0
        outcome = bench.run()
        assert outcome.reason is Reason.IGNORED
        assert outcome.elapsed < 0.2
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


@pytest.mark.by_default(1)
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
