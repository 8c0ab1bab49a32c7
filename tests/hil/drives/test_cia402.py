"""CiA 402 drives: set-up against the library's node, frames of the loop, accidents."""

from __future__ import annotations

import struct
from itertools import pairwise, product

import numpy as np
import pytest
from canopen.profiles.p402 import State402
from hypothesis import given
from hypothesis import strategies as st

from hil.clock import SteppedClock
from hil.drives import (
    Cia402Drive,
    DriveState,
    FaultCode,
    Finding,
    Wanted,
    next_controlword,
    state_of,
)
from hil.drives._cia402_setup import HOST_NODE
from hil.drives.feedback import Feedback
from hil.emulator import EmulatedCia402
from hil.errors import ArmError, DriveError, UnitError
from tests.hil.drives._stations import (
    NODE,
    AnsweringBus,
    frame,
    make_axis,
    make_rig,
    report,
    station,
    take_all,
    virtual_pair,
)

ENABLED, SWITCHED_ON, READY, DISABLED, FAULT = 0x0237, 0x0233, 0x0231, 0x0250, 0x0218


def make_drive(**changes):
    axis = make_axis(**changes)
    return Cia402Drive(axis, 0, make_rig(axis))


def findings(checks):
    return {check.what.split(" (0x")[0]: check.finding for check in checks}


def snapshot(feedback):
    return {name: getattr(feedback, name).copy() for name in Feedback.__slots__}


def same(before, feedback, but=()):
    for name, values in before.items():
        if name not in but:
            np.testing.assert_array_equal(values, getattr(feedback, name), err_msg=name)


# -- set-up against the library ----------------------------------------------------------------


def test_inspect_finds_the_drive_and_writes_nothing():
    with station() as (bus, drive):
        checks = make_drive().inspect(bus)
        assert {check.finding for check in checks} == {Finding.FOUND}
        assert findings(checks).keys() >= {
            "profile of the device",
            "cyclic synchronous torque",
            "rated torque",
            "watchdog of the drive",
        }
        assert drive.written == []


def test_inspect_reports_an_absent_drive():
    with virtual_pair(SteppedClock()) as (bus, _):
        (check,) = make_drive().inspect(bus)
        assert check.finding is Finding.MISSING
        assert "node number" in check.cure
        with pytest.raises(DriveError, match="expected an answer to SDO"):
            make_drive().prepare(bus)


def test_no_query_is_sent_on_a_silent_bus():
    with virtual_pair(SteppedClock()) as (bus, far):
        bus.silent = True
        drive = make_drive()
        before = bus.clock.now()
        (check,) = drive.inspect(bus)
        assert check.finding is Finding.UNKNOWN
        with pytest.raises(ArmError, match="only listens"):
            drive.prepare(bus)
        drive.release(bus)
        assert far.recv(0) is None
        assert bus.clock.now() == before


def test_prepare_makes_the_librarys_node_speak_our_process_data():
    with station() as (bus, drive):
        host = make_drive()
        drive.set(0x6041, DISABLED)
        drive.set(0x6064, -1024)
        checks = host.prepare(bus)
        assert all(check.finding is Finding.FOUND for check in checks)
        assert drive.node.nmt.state == "OPERATIONAL"
        host.accept(ENABLED)

        # sent values, decoded by the library with the mapping that the host wrote
        host.receive(report(ENABLED, 0, 0), 0.0, Feedback(1))
        message = host.command(Wanted.TORQUE, -5.0)
        assert drive.decode_command(message) == {0x6040: 0x0F, 0x6071: 250}

        # values that the library sends, as the host reads them
        drive.set(0x6041, ENABLED)
        drive.set(0x6064, -4096)
        drive.set(0x6077, -500)
        bus.send(host.opening_frames(host.rig)[0])
        feedback = Feedback(1)
        answer = bus.receive(bus.clock.now() + 1.0)
        assert answer.arbitration_id in host.identifiers
        assert host.receive(answer, 7.5, feedback)
        assert feedback.position[0] == pytest.approx(0.25 + 2 * np.pi / 10)
        assert feedback.torque[0] == pytest.approx(10.0)
        assert feedback.enabled[0]
        assert feedback.status[0] == ENABLED
        assert (feedback.time[0], feedback.count[0], feedback.fault[0]) == (7.5, 1, 0)
        assert np.isnan(feedback.velocity[0])


def test_prepare_writes_all_that_the_loop_relies_on():
    with station() as (bus, drive):
        make_drive().prepare(bus)
        assert drive.value(0x6060) == 10
        assert drive.value(0x6071) == 0
        assert drive.value(0x6072) == 1500  # 30 N m / 10 / 2 N m
        assert drive.value(0x1400, 5) == 50
        assert drive.value(0x1016, 1) == HOST_NODE << 16 | 50
        assert drive.value(0x6007) == 2
        assert drive.value(0x1029, 1) == 0
        assert drive.value(0x1400, 2) == 254  # acts at once, as 255 does: left as it was
        assert drive.value(0x1800, 2) == 1
        assert drive.value(0x1800, 1) == 0x40000180 + NODE
        assert drive.value(0x1401, 1) >> 31 == 1  # out of use


def test_the_watchdog_is_set_before_the_node_is_started_and_no_torque_is_ever_written():
    with station() as (bus, drive):
        started = []
        drive.network.subscribe(0, lambda i, data, t: started.append((data[0], len(drive.written))))
        make_drive().prepare(bus)
        watchdogs = [k for k, (index, *_) in enumerate(drive.written) if index in (0x1016, 0x1400)]
        start = next(count for command, count in started if command == 1)
        assert max(watchdogs) < start
        assert all(value == 0 for index, _, value in drive.written if index == 0x6071)
        assert all(value & 0x0F != 0x0F for index, _, value in drive.written if index == 0x6040)


def test_a_mapping_is_changed_only_while_out_of_use():
    with station() as (bus, drive):
        make_drive().prepare(bus)
        for communication, mapping in ((0x1400, 0x1600), (0x1800, 0x1A00)):
            valid, entries = True, 1
            for index, sub, value in drive.written:
                if (index, sub) == (communication, 1):
                    valid = not value >> 31
                elif index == mapping:
                    assert not valid
                    if sub == 0:
                        entries = value
                    else:
                        assert entries == 0
            assert valid


@pytest.mark.parametrize(
    ("values", "without", "kind", "words"),
    [
        ({"x6076": 2500}, (), UnitError, "rated torque"),
        ({"x6076": 1000, "x6072": 2000}, (), UnitError, "maximum torque in `rated_torque`"),
        ({"x6502": 0x1FF}, (), DriveError, "mode 10"),
        ({}, (0x1016, (0x1400, 5)), ArmError, "dead host"),
        ({}, (0x6007,), ArmError, "0x6007"),
    ],
)
def test_drives_that_differ_from_the_rig_file_are_rejected(values, without, kind, words):
    with station(without=without, **values) as (bus, drive):
        host = make_drive()
        with pytest.raises(kind, match=words) as caught:
            host.prepare(bus)
        assert "elbow" in caught.value.where
        assert len(caught.value.cure) > 30
        assert drive.node.nmt.state != "OPERATIONAL"
        host.receive(report(ENABLED, 0, 0), 0.0, Feedback(1))


def test_another_profile_or_encoder_is_refused():
    with station(without=(0x608F,)) as (bus, drive):
        checks = {c.what.split(" (")[0]: c for c in make_drive().inspect(bus)}
        assert checks["position units per motor turn"].finding is Finding.UNKNOWN
    with station() as (bus, drive):
        with pytest.raises(UnitError, match="position units per motor turn"):
            make_drive(counts=8192).prepare(bus)
        assert drive.written == [(0x6040, 0, 0)]  # power off, nothing else


@pytest.mark.parametrize(
    ("feed", "gear", "right"),
    [
        ((360000, 1), (1, 1), False),
        ((40960, 10), (1, 1), True),
        ((40960, 1), (10, 1), True),
        ((4096, 1), (10, 1), False),
    ],
)
def test_positions_may_be_scaled_by_feed_and_gear(feed, gear, right):
    """6092: units per turns of the shaft; 6091: turns of the motor per turns of the shaft."""
    extra = {(index, 0): ("B", "ro", 2) for index in (0x6091, 0x6092)}
    for index, (above, below) in ((0x6092, feed), (0x6091, gear)):
        extra |= {(index, 1): ("I", "ro", above), (index, 2): ("I", "ro", below)}
    with station(extra=extra) as (bus, _):
        checks = {c.what.split(" (")[0]: c for c in make_drive().inspect(bus)}
        finding = checks["position units per motor turn"].finding
        assert finding is (Finding.FOUND if right else Finding.WRONG)


@pytest.mark.parametrize(("polarity", "refused"), [(0, False), (0x80, True), (0x20, True)])
def test_positions_turned_round_in_the_drive_are_refused(polarity, refused):
    with station(extra={(0x607E, 0): ("B", "rw", polarity)}) as (bus, _):
        if refused:
            with pytest.raises(UnitError, match="unstable"):
                make_drive().prepare(bus)
        else:
            make_drive().prepare(bus)


def test_a_drive_that_does_not_answer_sync_is_refused():
    with station() as (bus, drive):
        drive.network.unsubscribe(0x080)
        with pytest.raises(DriveError, match="an answer to SYNC on identifier 0x185") as caught:
            make_drive().prepare(bus)
        assert caught.value.came == "no frame"


def test_reports_of_another_length_are_named():
    with station() as (bus, _):
        sound = bus.receive

        def cut(until=0.0):
            frame = sound(until)
            if frame is not None and frame.arbitration_id == 0x185:
                frame.data, frame.dlc = frame.data[:4], 4
            return frame

        bus.receive = cut
        with pytest.raises(DriveError, match="an answer to SYNC") as caught:
            make_drive().prepare(bus)
        assert caught.value.came == "0x185 with 4 bytes"


def prepare_with(survives):
    """Prepare a drive that falls silent after some frames; returns how many it was sent."""
    drive = EmulatedCia402(make_axis())
    drive.poll(0.0)
    count = 0

    def answer(message, now):
        nonlocal count
        count += 1
        if count > survives:
            return []
        drive.poll(now)
        return [reply for _, reply in drive.receive(message, now)]

    bus = AnsweringBus(answer, SteppedClock(start=1.0))
    try:
        make_drive().prepare(bus)
    finally:
        bus.close()
    return count


def test_set_up_fails_with_our_error_wherever_the_drive_falls_silent():
    """A plug that is pulled during set-up, at any of its frames."""
    frames = prepare_with(10_000)
    for survives in range(frames):
        with pytest.raises(DriveError, match="axis `elbow`"):
            prepare_with(survives)


@pytest.mark.parametrize("kept", [(0x1016,), ((0x1400, 5),)])
def test_one_watchdog_is_enough(kept):
    missing = ((0x1400, 5),) if kept == (0x1016,) else (0x1016,)
    with station(without=missing) as (bus, drive):
        checks = make_drive().prepare(bus)
        came = next(c.came for c in checks if c.what.startswith("watchdog in force"))
        assert came.startswith("50 in 0x1016" if kept == (0x1016,) else "50 in 0x1400:5")
        assert drive.value(0x6007) == 2


def test_a_watchdog_that_exceeds_its_time_is_rejected():
    with station(without=((0x1400, 5),)) as (bus, drive):
        drive.refuses[0x1016, 1] = 0x06090030
        with pytest.raises(ArmError, match="stores none"):
            make_drive().prepare(bus)
        assert drive.node.nmt.state != "OPERATIONAL"


def test_a_drive_that_keeps_its_mode_is_refused():
    with station() as (bus, drive):
        drive.ignores.add(0x6060)
        drive.node._read_callbacks.insert(0, lambda index, **_: 3 if index == 0x6061 else None)
        with pytest.raises(DriveError, match="mode 3"):
            make_drive().prepare(bus)


def test_a_drive_that_stays_switched_on_is_refused_and_one_with_a_fault_is_left_to_the_loop():
    with station(x6041=ENABLED) as (bus, _), pytest.raises(DriveError, match="operation enabled"):
        make_drive().prepare(bus)
    with station(x6041=FAULT) as (bus, drive):
        host = make_drive()
        host.prepare(bus)
        assert not any(value & 0x80 for index, _, value in drive.written if index == 0x6040)
        assert host.state is DriveState.FAULT


def test_a_position_out_of_range_is_refused():
    with station(x6064=4096) as (bus, _), pytest.raises(UnitError, match=r"got -0\.378"):
        make_drive(position_limits=(-0.3, 2.0)).prepare(bus)


def test_release_takes_the_torque_away_and_tells_if_that_is_not_confirmed():
    with station() as (bus, drive):
        host = make_drive()
        host.prepare(bus)
        drive.written.clear()
        drive.network.subscribe(0x200 + NODE, lambda i, data, t: commands.append(bytes(data)))
        commands = []
        host.release(bus)
        assert commands == [bytes(4)]
        assert drive.value(0x6040) == 0
        assert drive.value(0x6071) == 0
        assert drive.value(0x1016, 1) == 0
        assert drive.node.nmt.state == "PRE-OPERATIONAL"
    with virtual_pair(SteppedClock()) as (bus, far):
        before = bus.clock.now()
        with pytest.raises(DriveError, match="0x6040"):
            make_drive().release(bus)
        assert bus.clock.now() - before < 0.1
        sent = [(m.arbitration_id, bytes(m.data)) for m in take_all(far)]
        assert (0x200 + NODE, bytes(4)) in sent
        assert (0x000, bytes((0x80, NODE))) in sent


# -- frames of the loop ------------------------------------------------------------------------


def command_of(drive, wanted, torque=0.0):
    message = drive.command(wanted, torque)
    assert message.arbitration_id == 0x200 + NODE
    assert len(message.data) == 4
    return struct.unpack("<Hh", message.data)


def test_way_up_and_torque_only_when_enabled():
    drive, feedback = make_drive(), Feedback(1)
    words = []
    for status in (DISABLED, READY, SWITCHED_ON, ENABLED):
        drive.receive(report(status, 0, 0), 0.0, feedback)
        # Torque is for drives that are enabled: it leads none of them there.
        expected = (0x0F, -1000) if status == ENABLED else (0x00, 0)
        assert command_of(drive, Wanted.TORQUE, 20.0) == expected
        word, target = command_of(drive, Wanted.READY, 20.0)
        words.append(word)
        assert target == 0
    assert words == [0x06, 0x07, 0x0F, 0x0F]
    assert command_of(drive, Wanted.OFF, 20.0) == (0x00, 0)


@pytest.mark.parametrize(
    ("status", "enabled"),
    [
        (ENABLED, True),
        (ENABLED & ~(1 << 9), False),  # the controlword is not taken from the bus
        (ENABLED & ~(1 << 4), False),  # no supply
        (SWITCHED_ON, False),
        (FAULT, False),
        (0x0217, False),
    ],
)
def test_enabled_needs_state_remote_and_voltage(status, enabled):
    drive, feedback = make_drive(), Feedback(1)
    assert drive.receive(report(status, 0, 0), 0.0, feedback)
    assert feedback.enabled[0] == enabled


@pytest.mark.parametrize(
    ("identifier", "length"),
    [
        (identifier, length)
        for identifier, right in ((0x180 + NODE, 8), (0x080 + NODE, 8), (0x700 + NODE, 1))
        for length in range(9)
        if length != right
    ],
)
def test_malformed_frames_of_every_length_leave_the_feedback(identifier, length):
    drive, feedback = make_drive(), Feedback(1)
    drive.receive(report(ENABLED, 100, 5), 1.0, feedback)
    before, state = snapshot(feedback), drive.state
    assert not drive.receive(frame(identifier, b"\x00" * length), 2.0, feedback)
    same(before, feedback, but=("invalid",))
    assert feedback.invalid[0] == 1
    assert drive.state is state


@given(
    status=st.integers(0, 0xFFFF),
    counts=st.integers(-(2**31), 2**31 - 1),
    per_mille=st.integers(-32768, 32767),
)
def test_any_report_is_read_as_it_was_packed(status, counts, per_mille):
    drive, feedback = make_drive(), Feedback(1)
    assert drive.receive(report(status, counts, per_mille), 3.0, feedback)
    axis = drive.axis
    assert feedback.status[0] == status
    motor = (feedback.position[0] - axis.offset) * axis.direction * axis.gear
    assert motor / (2 * np.pi) * 4096 == pytest.approx(counts, abs=1e-3, rel=1e-9)
    assert feedback.torque[0] == pytest.approx(-per_mille * 1e-3 * 2.0 * 10)


def test_wheels_turn_on_past_the_end_of_the_counter():
    drive, feedback = make_drive(gear=1.0, direction=1, offset=0.0), Feedback(1)
    drive.receive(report(ENABLED, 2**31 - 10, 0), 0.0, feedback)
    first = feedback.position[0]
    drive.receive(report(ENABLED, -(2**31) + 6, 0), 0.004, feedback)
    assert feedback.position[0] - first == pytest.approx(16 * 2 * np.pi / 4096, rel=1e-3)


@pytest.mark.parametrize("bit", range(32))
def test_a_wrong_bit_of_a_position_does_no_lasting_harm(bit):
    drive, feedback = make_drive(), Feedback(1)
    for k in range(5):
        drive.receive(report(ENABLED, 1000 + k, 0), 0.004 * k, feedback)
    wrong = (1004 ^ 1 << bit) + 2**31 & 2**32 - 1
    taken = drive.receive(report(ENABLED, wrong - 2**31, 0), 0.020, feedback)
    assert taken == (bit < 30)
    assert feedback.invalid[0] == (bit >= 30)
    assert drive.receive(report(ENABLED, 1005, 0), 0.024, feedback)
    expected = make_drive().scale.position(1005)
    assert feedback.position[0] == pytest.approx(expected, abs=1e-12)


def test_a_stopped_node_is_prepared():
    """Stopped nodes serve no SDO: they must be woken before they can be asked."""
    drive = EmulatedCia402(make_axis())
    drive.poll(0.0)

    def answer(message, now):
        drive.poll(now)
        return [reply for _, reply in drive.receive(message, now)]

    bus = AnsweringBus(answer, SteppedClock(start=1.0))
    bus.send(frame(0x000, bytes((0x02, NODE))))
    assert make_drive().inspect(bus)[0].finding is Finding.MISSING
    assert {c.finding for c in make_drive().prepare(bus)} == {Finding.FOUND}
    bus.close()


def test_faults_and_emergencies_reach_the_feedback():
    drive, feedback = make_drive(), Feedback(1)
    drive.receive(report(FAULT, 0, 0), 0.0, feedback)
    assert feedback.fault[0] == FaultCode.UNNAMED
    emergency = struct.pack("<HB5x", 0x2310, 1)
    assert not drive.receive(frame(0x80 + NODE, emergency), 0.0, feedback)
    assert feedback.fault[0] == 0x2310
    drive.receive(report(FAULT, 0, 0), 0.0, feedback)
    assert feedback.fault[0] == 0x2310
    drive.receive(frame(0x80 + NODE, bytes(8)), 0.0, feedback)  # error reset
    drive.receive(report(DISABLED, 0, 0), 0.0, feedback)
    assert feedback.fault[0] == 0


def test_a_fault_is_reset_by_an_edge_only_on_request():
    drive, feedback = make_drive(), Feedback(1)
    drive.receive(report(FAULT, 0, 0), 0.0, feedback)
    drive.receive(frame(0x80 + NODE, struct.pack("<HB5x", 0x2310, 1)), 0.0, feedback)
    for wanted in (Wanted.OFF, Wanted.READY, Wanted.TORQUE):
        assert command_of(drive, wanted, 5.0) == (0, 0)
    words = [command_of(drive, Wanted.RESET)[0] for _ in range(6)]
    assert words == [0x80, 0, 0x80, 0, 0x80, 0]
    # the end of a fault is detected even if its frame was lost
    drive.receive(report(DISABLED, 0, 0), 0.0, feedback)
    assert feedback.fault[0] == 0x2310
    assert command_of(drive, Wanted.RESET) == (0, 0)
    drive.receive(report(DISABLED, 0, 0), 0.0, feedback)
    assert feedback.fault[0] == 0


# -- drives that restart -----------------------------------------------------------------------


def prepared(bus):
    """A drive whose watchdog counts as tried: the library's node has no states of power."""
    drive, feedback = make_drive(), Feedback(1)
    drive.prepare(bus)
    drive.accept(ENABLED)
    return drive, feedback


def test_after_power_cycling_nothing_resumes():
    with station() as (bus, _):
        drive, feedback = prepared(bus)

        def exchange(status, cycles=1):
            for _ in range(cycles):
                drive.receive(report(status, 0, 0), 0.0, feedback)
                command = command_of(drive, Wanted.TORQUE, 5.0)
            return command

        for status in (DISABLED, READY, SWITCHED_ON):
            exchange(status)
        assert exchange(ENABLED, 5) == (0x0F, -250)
        assert drive.faults == (0, 0)

        drive.receive(frame(0x700 + NODE, b"\x00"), 1.0, feedback)  # boot-up
        assert drive.faults == (FaultCode.RESTARTED, 0)  # what the loop in C takes over
        assert feedback.fault[0] == FaultCode.RESTARTED
        assert not feedback.enabled[0]
        assert [exchange(status) for status in (DISABLED, READY, ENABLED)] == [(0, 0)] * 3
        assert feedback.fault[0] == FaultCode.RESTARTED
        assert not feedback.enabled[0]
        assert command_of(drive, Wanted.RESET) == (0, 0)

        drive.prepare(bus)
        assert exchange(ENABLED) == (0, 0)
        assert feedback.fault[0] == FaultCode.UNPROVED
        drive.accept(ENABLED)
        assert exchange(ENABLED) == (0x0F, -250)
        assert feedback.fault[0] == 0


def test_nothing_resumes_also_when_the_boot_up_frame_was_lost():
    with station() as (bus, _):
        drive, feedback = prepared(bus)
        for status in (DISABLED, READY, SWITCHED_ON, *[ENABLED] * 5):
            drive.receive(report(status, 0, 0), 0.0, feedback)
            command_of(drive, Wanted.TORQUE, 5.0)
        drive.receive(report(DISABLED, 0, 0), 0.0, feedback)
        assert feedback.fault[0] == FaultCode.FELL
        for status in (DISABLED, READY, SWITCHED_ON, ENABLED):
            drive.receive(report(status, 0, 0), 0.0, feedback)
            assert command_of(drive, Wanted.TORQUE, 5.0) == (0, 0)
            assert not feedback.enabled[0]


def test_a_drive_that_was_switched_off_on_purpose_has_not_fallen():
    with station() as (bus, _):
        drive, feedback = prepared(bus)
        for status in (DISABLED, READY, SWITCHED_ON, *[ENABLED] * 5):
            drive.receive(report(status, 0, 0), 0.0, feedback)
            command_of(drive, Wanted.READY)
        command_of(drive, Wanted.OFF)
        drive.receive(report(ENABLED, 0, 0), 0.0, feedback)  # the report is a cycle behind
        command_of(drive, Wanted.OFF)
        drive.receive(report(DISABLED, 0, 0), 0.0, feedback)
        assert feedback.fault[0] == 0
        assert command_of(drive, Wanted.READY) == (0x06, 0)


def test_a_node_that_leaves_the_operational_state_is_reported():
    with station() as (bus, _):
        drive, feedback = prepared(bus)
        drive.receive(frame(0x700 + NODE, b"\x05"), 0.0, feedback)
        assert feedback.fault[0] == 0
        drive.receive(frame(0x700 + NODE, b"\x7f"), 0.0, feedback)
        assert feedback.fault[0] == FaultCode.NOT_OPERATIONAL
        drive.receive(frame(0x700 + NODE, b"\x00"), 0.0, feedback)
        drive.receive(frame(0x700 + NODE, b"\x7f"), 0.0, feedback)
        assert feedback.fault[0] == FaultCode.RESTARTED


def test_listening_does_not_latch_what_others_do():
    drive, feedback = make_drive(), Feedback(1)
    drive.receive(frame(0x700 + NODE, b"\x00"), 0.0, feedback)
    for status in (*[ENABLED] * 5, DISABLED, ENABLED):
        drive.receive(report(status, 0, 0), 0.0, feedback)
        command_of(drive, Wanted.TORQUE, 1.0)
    assert feedback.fault[0] == 0
    assert feedback.enabled[0]


def test_per_mille_of_the_maximum_torque_follow_the_limit_that_was_set():
    """On such a drive 1000 per mille mean 0x6072 of 0x6076: 1.5 x 2 N m once the limit is set."""
    with station() as (bus, other):
        drive = make_drive(torque_unit="maximum")
        drive.prepare(bus)
        drive.accept(ENABLED)
        assert other.value(0x6072) == 1500
        feedback = Feedback(1)
        drive.receive(report(ENABLED, 0, 1000), 0.0, feedback)
        assert feedback.torque[0] == pytest.approx(-30.0)
        assert command_of(drive, Wanted.TORQUE, 30.0)[1] == -1000


# -- the state machine, against the tables of another implementation ---------------------------


NAMES = {
    "NOT READY TO SWITCH ON": DriveState.NOT_READY,
    "SWITCH ON DISABLED": DriveState.SWITCH_ON_DISABLED,
    "READY TO SWITCH ON": DriveState.READY_TO_SWITCH_ON,
    "SWITCHED ON": DriveState.SWITCHED_ON,
    "OPERATION ENABLED": DriveState.OPERATION_ENABLED,
    "QUICK STOP ACTIVE": DriveState.QUICK_STOP_ACTIVE,
    "FAULT REACTION ACTIVE": DriveState.FAULT_REACTION_ACTIVE,
    "FAULT": DriveState.FAULT,
}
UP = ("SWITCH ON DISABLED", "READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED")

# The standard's table of commands (IEC 61800-7-201, table "command coding"): bits 7, 3, 2, 1, 0
# of the controlword with x for any, and the transitions that each starts.
COMMANDS = {
    "shutdown": (
        "0x110",
        {("SWITCH ON DISABLED", 2), ("SWITCHED ON", 6), ("OPERATION ENABLED", 8)},
    ),
    "switch on": ("00111", {("READY TO SWITCH ON", 3)}),
    "enable operation": ("01111", {("SWITCHED ON", 4), ("QUICK STOP ACTIVE", 16)}),
    "disable voltage": (
        "0xx0x",
        {
            ("READY TO SWITCH ON", 7),
            ("OPERATION ENABLED", 9),
            ("SWITCHED ON", 10),
            ("QUICK STOP ACTIVE", 12),
        },
    ),
    "quick stop": (
        "0x01x",
        {("READY TO SWITCH ON", 7), ("SWITCHED ON", 10), ("OPERATION ENABLED", 11)},
    ),
    "disable operation": ("00111", {("OPERATION ENABLED", 5)}),
}


def bits(word: int) -> str:
    return "".join(str(word >> k & 1) for k in (7, 3, 2, 1, 0))


def commands_of(word: int) -> set[str]:
    return {
        name
        for name, (pattern, _) in COMMANDS.items()
        if all(p in ("x", b) for p, b in zip(pattern, bits(word), strict=True))
    }


def transitions(state: str, word: int) -> set[int]:
    return {
        number
        for name in commands_of(word)
        for before, number in COMMANDS[name][1]
        if before == state
    }


def test_every_statusword_is_read_as_the_library_reads_it() -> None:
    for statusword in range(0x10000):
        found = [
            NAMES[name]
            for name, (mask, value) in State402.SW_MASK.items()
            if statusword & mask == value
        ]
        assert len(found) <= 1
        assert state_of(statusword) is (found[0] if found else DriveState.UNKNOWN), hex(statusword)


@pytest.mark.parametrize("wanted", [Wanted.READY, Wanted.TORQUE])
@pytest.mark.parametrize(("before", "after"), list(pairwise(UP)))
def test_one_step_up_by_the_librarys_command(wanted: Wanted, before: str, after: str) -> None:
    word = next_controlword(NAMES[before], wanted)
    assert word == State402.TRANSITIONTABLE[before, after]


# Every row of the standard's table of commands, with the controlword in that state.
@pytest.mark.parametrize(
    ("state", "wanted", "numbers"),
    [
        ("SWITCH ON DISABLED", Wanted.READY, {2}),
        ("READY TO SWITCH ON", Wanted.READY, {3}),
        ("SWITCHED ON", Wanted.READY, {4}),
        ("OPERATION ENABLED", Wanted.READY, set()),
        ("QUICK STOP ACTIVE", Wanted.READY, {12}),
        ("NOT READY TO SWITCH ON", Wanted.READY, set()),
        ("FAULT REACTION ACTIVE", Wanted.READY, set()),
        ("FAULT", Wanted.READY, set()),
        ("SWITCH ON DISABLED", Wanted.OFF, set()),
        ("READY TO SWITCH ON", Wanted.OFF, {7}),
        ("SWITCHED ON", Wanted.OFF, {10}),
        ("OPERATION ENABLED", Wanted.OFF, {9}),
        ("QUICK STOP ACTIVE", Wanted.OFF, {12}),
        ("FAULT", Wanted.OFF, set()),
        ("OPERATION ENABLED", Wanted.RESET, {9}),
        ("SWITCHED ON", Wanted.RESET, {10}),
        ("READY TO SWITCH ON", Wanted.RESET, {7}),
        ("QUICK STOP ACTIVE", Wanted.RESET, {12}),
    ],
)
def test_one_transition_at_a_time(state: str, wanted: Wanted, numbers: set[int]) -> None:
    word = next_controlword(NAMES[state], wanted)
    assert transitions(state, word) == numbers
    assert not word & 0x80


def test_a_fault_is_left_only_by_a_reset_and_its_edge() -> None:
    for wanted, edge in product(Wanted, (False, True)):
        word = next_controlword(DriveState.FAULT, wanted, edge)
        assert bool(word & 0x80) == (wanted is Wanted.RESET and edge)
    word = next_controlword(DriveState.FAULT, Wanted.RESET, fault_reset_edge=True)
    assert word == State402.TRANSITIONTABLE["FAULT", "SWITCH ON DISABLED"]


@given(state=st.sampled_from(DriveState), wanted=st.sampled_from(Wanted), edge=st.booleans())
def test_power_is_requested_only_for_ready_and_torque(
    state: DriveState, wanted: Wanted, edge: bool
) -> None:
    word = next_controlword(state, wanted, edge)
    if wanted in (Wanted.OFF, Wanted.RESET):
        assert not word & 0x02  # enable voltage
    if state in (DriveState.FAULT, DriveState.FAULT_REACTION_ACTIVE, DriveState.UNKNOWN):
        assert not word & 0x0F
    if word & 0x08:
        assert state in (DriveState.SWITCHED_ON, DriveState.OPERATION_ENABLED)
    assert not (word & 0x80 and word & 0x0F)
