"""Drives of the MIT protocol: frames by the published layout, trial of the watchdog, accidents."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.clock import SteppedClock
from hil.drives import FaultCode, Finding, MitDrive, Wanted
from hil.drives._mit import CLEAR, ENTER, LEAVE, unpack_report
from hil.drives.feedback import Feedback
from hil.errors import ArmError, DriveError, UnitError
from tests.hil.drives._stations import (
    AnsweringBus,
    frame,
    make_mit_axis,
    make_rig,
    take_all,
    virtual_pair,
)

NODE = 3
PERIOD = 0.004


def make_drive(**changes):
    axis = make_mit_axis(**changes)
    return MitDrive(axis, 0, make_rig(axis))


# The other side of every frame: layout by the tables of the AK series' manual (V1.0.8, section
# 5.3, pages 48 and 49), scaling by 2^bits - 1 as in the mini-cheetah's firmware. The sample code
# of that manual (page 51) scales by 2^bits, which differs by at most one code but does not fit the
# upper end of a range. The bytes below are worked out by hand; neither document prints examples.


def float_to_uint(x, x_min, x_max, bits):
    span = x_max - x_min
    x = min(max(x, x_min), x_max)
    return int((x - x_min) * ((1 << bits) - 1) / span)


def uint_to_float(x_int, x_min, x_max, bits):
    return x_int * (x_max - x_min) / ((1 << bits) - 1) + x_min


def unpack_cmd(data, t_max=18.0, p_max=12.5, v_max=50.0):
    p_int = (data[0] << 8) | data[1]
    v_int = (data[2] << 4) | (data[3] >> 4)
    kp_int = ((data[3] & 0xF) << 8) | data[4]
    kd_int = (data[5] << 4) | (data[6] >> 4)
    t_int = ((data[6] & 0xF) << 8) | data[7]
    return (
        uint_to_float(p_int, -p_max, p_max, 16),
        uint_to_float(v_int, -v_max, v_max, 12),
        uint_to_float(kp_int, 0.0, 500.0, 12),
        uint_to_float(kd_int, 0.0, 5.0, 12),
        uint_to_float(t_int, -t_max, t_max, 12),
    )


def pack_reply(node, p, v, t, p_max=12.5, v_max=50.0, t_max=18.0, error=0, length=8):
    p_int = float_to_uint(p, -p_max, p_max, 16)
    v_int = float_to_uint(v, -v_max, v_max, 12)
    t_int = float_to_uint(t, -t_max, t_max, 12)
    data = [
        node,
        p_int >> 8,
        p_int & 0xFF,
        v_int >> 4,
        ((v_int & 0xF) << 4) + (t_int >> 8),
        t_int & 0xFF,
        70,
        error,
    ]
    return bytes(data[:length])


class Firmware:
    """A drive as its firmware goes, for one kind of behaviour when commands cease.

    Parameters
    ----------
    kind : {"reports", "mini-cheetah", "no watchdog", "damiao"}
        "reports": leaves motor mode and reports an error code; "mini-cheetah": sets torque to zero,
        stays in motor mode, reports 6 bytes; "no watchdog": continues; "damiao": leaves motor mode,
        has its state in the first byte.
    """

    def __init__(self, kind="reports", node=NODE, timeout=0.05, master=0, position=0.0, t_max=18.0):
        self.kind, self.node, self.timeout, self.master = kind, node, timeout, master
        self.position, self.t_max = position, t_max
        self.reported_torque = None
        self.motor_mode, self.error, self.torque = False, 0, 0.0
        self.heard = -math.inf
        self.commands = []
        self.deaf = False
        self.clears_on_enter = False  # and by nothing else
        self.stays = False  # whether an error cannot be cleared at all
        self.enters = "to stay"  # or "for a moment", or "without an answer"

    def expire(self, now):
        if now - self.heard > self.timeout and self.kind != "no watchdog" and self.motor_mode:
            self.torque = 0.0
            if self.kind != "mini-cheetah":
                self.motor_mode, self.error = False, 0x0D

    def answer(self, message, now):
        if message.arbitration_id != self.node or self.deaf:
            return []
        self.expire(now)
        self.heard = now
        data = bytes(message.data)
        self.commands.append(data)
        if data == ENTER:
            clears = self.clears_on_enter or (self.kind != "damiao" and self.error == 0x0D)
            if clears and not self.stays:
                self.error = 0
            self.motor_mode = not self.error
            if self.enters == "without an answer":
                return []
        elif data == LEAVE:
            self.motor_mode, self.torque = False, 0.0
            if self.kind != "damiao" and not self.clears_on_enter:
                self.error = 0
        elif data == CLEAR:
            self.error = 0
        elif self.enters == "for a moment":
            self.motor_mode = False
        elif self.motor_mode:
            _, _, kp, kd, torque = unpack_cmd(data, self.t_max)
            assert kp == 0.0
            assert kd == 0.0
            self.torque = torque
        return [self.report()]

    def report(self):
        torque = self.torque if self.reported_torque is None else self.reported_torque
        length = 6 if self.kind == "mini-cheetah" else 8
        data = bytearray(
            pack_reply(self.node, self.position, 0.0, torque, t_max=self.t_max, length=length)
        )
        if self.kind == "damiao":
            state = self.error or int(self.motor_mode)
            data[0] = self.node | state << 4
            data[7] = 35  # a temperature there
        elif length == 8:
            data[7] = self.error
        return frame(self.master, bytes(data))

    def power_cycle(self):
        self.motor_mode, self.error, self.torque = False, 0, 0.0


class Loop:
    """Cycles of the loop with one drive."""

    def __init__(self, bus, drive):
        self.bus, self.drive, self.feedback = bus, drive, Feedback(1)

    def cycle(self, wanted, torque=0.0, times=1):
        for _ in range(times):
            clock = self.bus.clock
            clock.sleep_until(clock.now() + PERIOD)
            while (came := self.bus.receive()) is not None:
                if came.arbitration_id in self.drive.identifiers:
                    self.drive.receive(came, clock.now(), self.feedback)
            self.bus.send(self.drive.command(wanted, torque))


@pytest.fixture
def make_bench():
    buses = []

    def make(kind="reports", axis=None, **options):
        firmware = Firmware(kind, **options)
        bus = AnsweringBus(firmware.answer)
        buses.append(bus)
        return bus, make_drive(**(axis or {})), firmware

    yield make
    for bus in buses:
        bus.close()


# -- frames ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("torque", "golden"),
    [
        # 9 N m of -18 to 18: (9 + 18) * 4095 / 36 = 3071.25, 0xBFF
        (9.0, "7f ff 7f f0 00 00 0b ff"),
        (18.0, "7f ff 7f f0 00 00 0f ff"),
        (-18.0, "7f ff 7f f0 00 00 00 00"),
        (-9.0, "7f ff 7f f0 00 00 04 00"),
    ],
)
def test_commands_byte_by_byte(make_bench, torque, golden):
    bus, drive, _ = make_bench()
    drive.prepare(bus)
    Loop(bus, drive).cycle(Wanted.READY, times=10)
    message = drive.command(Wanted.TORQUE, torque)
    assert message.arbitration_id == NODE
    assert bytes(message.data) == bytes.fromhex(golden)


def test_frames_that_are_no_commands():
    assert bytes.fromhex("ff ff ff ff ff ff ff fc") == ENTER
    assert bytes.fromhex("ff ff ff ff ff ff ff fd") == LEAVE


@pytest.mark.parametrize(
    ("golden", "position", "velocity", "torque", "status"),
    [
        ("03 ff ff ff ff ff 46 00", 12.5, 50.0, 18.0, 0x4600),
        ("03 00 00 00 00 00 46 00", -12.5, -50.0, -18.0, 0x4600),
        # (2.5 + 12.5) * 65535 / 25 = 39321; (25 + 50) * 4095 / 100 = 3071; 0xBFF
        ("03 99 99 bf fb ff 00 00", 2.5, 25.0, 9.0, 0),
        ("03 99 99 bf fb ff", 2.5, 25.0, 9.0, 0),
    ],
)
def test_reports_byte_by_byte(golden, position, velocity, torque, status):
    drive, feedback = make_drive(), Feedback(1)
    assert drive.receive(frame(0x000, bytes.fromhex(golden)), 2.0, feedback)
    assert feedback.position[0] == pytest.approx(position, abs=2e-4)
    assert feedback.velocity[0] == pytest.approx(velocity, abs=0.013)
    assert feedback.torque[0] == pytest.approx(torque, abs=0.005)
    assert (feedback.status[0], feedback.time[0], feedback.count[0]) == (status, 2.0, 1)


@given(
    position=st.floats(-12.5, 12.5),
    velocity=st.floats(-50.0, 50.0),
    torque=st.floats(-18.0, 18.0),
    length=st.sampled_from([6, 8]),
)
def test_any_report_of_the_published_layout_is_read(position, velocity, torque, length):
    drive, feedback = make_drive(gear=2.0, direction=-1, offset=0.5), Feedback(1)
    data = pack_reply(NODE, position, velocity, torque, length=length)
    assert drive.receive(frame(0x000, data), 0.0, feedback)
    assert feedback.position[0] == pytest.approx(0.5 - position / 2, abs=2e-4)
    assert feedback.velocity[0] == pytest.approx(-velocity / 2, abs=0.0125)
    assert feedback.torque[0] == pytest.approx(-torque * 2, abs=0.02)


@given(torque=st.floats(-12.0, 12.0))
def test_any_torque_is_what_the_published_layout_unpacks(torque):
    drive = make_drive()
    drive._entered = True
    data = drive.command(Wanted.TORQUE, torque).data
    _, _, kp, kd, got = unpack_cmd(data)
    assert (kp, kd) == (0.0, 0.0)
    assert got == pytest.approx(torque, abs=36 / 4095 / 2 + 1e-12)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("identifier", [0x000, NODE])
def test_malformed_frames_of_every_length_leave_the_feedback(length, identifier):
    drive, feedback = make_drive(), Feedback(1)
    drive.receive(frame(0x000, pack_reply(NODE, 1.0, 2.0, 3.0)), 1.0, feedback)
    before = {name: getattr(feedback, name).copy() for name in Feedback.__slots__}
    data = bytes([NODE] + [0] * 7)[:length]
    assert not drive.receive(frame(identifier, data), 2.0, feedback)
    assert feedback.invalid[0] == 1
    for name, values in before.items():
        if name != "invalid":
            np.testing.assert_array_equal(values, getattr(feedback, name))


def test_reports_on_a_shared_identifier_go_to_the_drive_they_name():
    axes = [make_mit_axis(name=f"joint {node}", node=node) for node in (1, 2, 17)]
    rig = make_rig(*axes)
    drives = [MitDrive(axis, k, rig) for k, axis in enumerate(axes)]
    feedback = Feedback(3)
    for node, position in ((17, 3.0), (1, 1.0), (2, 2.0)):
        taken = [
            drive.receive(frame(0x000, pack_reply(node, position, 0, 0)), 1.0, feedback)
            for drive in drives
        ]
        assert taken == [axis.node == node for axis in axes]
    np.testing.assert_allclose(feedback.position, [1.0, 2.0, 3.0], atol=4e-4)
    assert feedback.invalid.sum() == 0


def test_a_wheel_turns_on_past_the_end_of_the_range():
    drive, feedback = make_drive(speed_limit=30.0), Feedback(1)
    angle, seen = 0.0, []
    span = 25.0 * 65536 / 65535
    for k in range(2000):
        angle = 0.1 * k
        wrapped = (angle + 12.5) % span - 12.5
        assert drive.receive(frame(0, pack_reply(NODE, wrapped, 25.0, 0)), 0.004 * k, feedback)
        seen.append(feedback.position[0] - angle)
    assert np.abs(seen).max() < 2e-3
    assert feedback.position[0] == pytest.approx(199.9, abs=2e-3)


def test_a_corrupted_report_does_not_change_the_count_of_turns():
    drive, feedback = make_drive(), Feedback(1)
    for k in range(200):
        position = 0.01 * k
        if k % 10 == 5:  # far away: no joint moves so in a cycle
            position = -11.0
        data = pack_reply(NODE, position, 0, 0)
        taken = drive.receive(frame(0, data), 0.004 * k, feedback)
        assert taken == (k % 10 != 5)
    assert feedback.position[0] == pytest.approx(1.99, abs=1e-3)
    assert feedback.invalid[0] == 20


def test_a_joint_with_ends_is_never_wrapped():
    drive, feedback = make_drive(position_limits=(-12.0, 12.0)), Feedback(1)
    for k, position in enumerate((12.4, -12.4, 12.4, -12.4)):
        drive.receive(frame(0, pack_reply(NODE, position, 0, 0)), float(k), feedback)
        assert feedback.position[0] == pytest.approx(position, abs=1e-3)


# -- arming ------------------------------------------------------------------------------------


def test_inspect_reports_the_readable_properties(make_bench):
    bus, drive, firmware = make_bench()
    checks = {check.what: check for check in drive.inspect(bus)}
    assert checks["drive"].finding is Finding.FOUND
    assert checks["ranges of its numbers"].finding is Finding.UNKNOWN
    assert checks["watchdog of the drive"].finding is Finding.UNKNOWN
    assert not firmware.motor_mode
    assert not {ENTER, LEAVE} & set(firmware.commands)


def test_no_query_is_sent_on_a_silent_bus(make_bench):
    bus, drive, firmware = make_bench()
    bus.silent = True
    assert [check.finding for check in drive.inspect(bus)] == [Finding.UNKNOWN]
    with pytest.raises(ArmError, match="only listens"):
        drive.prepare(bus)
    drive.release(bus)
    assert firmware.commands == []


@pytest.mark.parametrize(
    ("enters", "came"),
    [("for a moment", "a drive that is off again"), ("without an answer", "no answer")],
)
def test_a_drive_that_does_not_enter_motor_mode_is_refused(make_bench, enters, came):
    bus, drive, firmware = make_bench("damiao")
    firmware.enters = enters
    with pytest.raises(DriveError, match="can be switched on") as caught:
        drive.prepare(bus)
    assert caught.value.came == came


def test_a_drive_that_does_not_answer_its_release_is_named():
    with virtual_pair(SteppedClock()) as (bus, far):
        drive = make_drive()
        with pytest.raises(DriveError, match=drive.axis.name) as caught:
            drive.release(bus)
        assert caught.value.came == "no answer to two of these commands"
        sent = [bytes(m.data) for m in take_all(far)]
        assert sent.count(LEAVE) == 2


def torques(firmware):
    """Commanded torques, in units of the twentieth of the limit; rounded."""
    return {
        round(unpack_cmd(data)[4] / 0.6, 1) + 0.0
        for data in firmware.commands
        if data not in (ENTER, LEAVE, CLEAR)
    }


def test_a_watchdog_is_proved_by_silence_at_a_torque(make_bench):
    bus, drive, firmware = make_bench()
    before = bus.clock.now()
    checks = drive.prepare(bus)
    proof = next(check for check in checks if check.what.startswith("watchdog in force"))
    assert proof.finding is Finding.FOUND
    assert "code 13" in proof.came
    assert bus.clock.now() - before >= 2 * 1.5 * drive.axis.watchdog
    assert not firmware.motor_mode
    assert torques(firmware) == {0.0, 1.0, -1.0}


@pytest.mark.parametrize(
    ("kind", "options", "came"),
    [
        ("no watchdog", {}, "that the drive is on"),
        ("mini-cheetah", {}, "without error code"),
        ("reports", {"timeout": 10.0}, "that the drive is on"),
        ("damiao", {"timeout": 10.0}, "that the drive is on"),
    ],
)
def test_a_watchdog_that_cannot_be_proved_forbids_to_arm(make_bench, kind, options, came):
    bus, drive, firmware = make_bench(kind, **options)
    with pytest.raises(ArmError, match="watchdog") as caught:
        drive.prepare(bus)
    assert came in caught.value.came
    assert "serial port" in caught.value.cure
    assert not firmware.motor_mode


@pytest.mark.parametrize("kind", ["no watchdog", "mini-cheetah"])
def test_a_watchdog_that_is_not_reported_may_be_confirmed_by_a_person(make_bench, kind):
    bus, drive, firmware = make_bench(kind)
    drive.axis = dataclasses.replace(drive.axis, watchdog_confirmed=True)
    proof = next(check for check in drive.prepare(bus) if check.what.startswith("watchdog in"))
    assert proof.finding is Finding.UNKNOWN
    assert "confirmed" in proof.came
    assert torques(firmware) == {0.0, 1.0, -1.0}


def test_a_drive_that_tells_it_is_still_on_is_refused_whatever_is_confirmed(make_bench):
    bus, drive, firmware = make_bench("damiao", timeout=10.0)
    drive.axis = dataclasses.replace(drive.axis, watchdog_confirmed=True)
    with pytest.raises(ArmError, match="watchdog"):
        drive.prepare(bus)
    assert not firmware.motor_mode


def test_a_drive_that_is_not_there(make_bench):
    bus, drive, firmware = make_bench()
    firmware.deaf = True
    assert [check.finding for check in drive.inspect(bus)] == [Finding.MISSING]
    with pytest.raises(DriveError, match="axis `knee`, node 3, drive: expected a report"):
        drive.prepare(bus)


@pytest.mark.parametrize("kind", ["reports", "damiao"])
def test_a_drive_whose_fault_cannot_be_cleared_is_refused(make_bench, kind):
    bus, drive, firmware = make_bench(kind)
    answer = bus.answer

    def broken(message, now):
        firmware.error, firmware.motor_mode = 0, False
        answer(message, now)
        firmware.error, firmware.motor_mode, firmware.torque = 0x0A, False, 0.0
        return [firmware.report()]

    bus.answer = broken
    with pytest.raises(DriveError, match="can be switched on") as caught:
        drive.prepare(bus)
    assert "error 10" in caught.value.came


@pytest.mark.parametrize("master", [0, NODE])
@pytest.mark.parametrize("kind", ["reports", "damiao"])
def test_whole_life(make_bench, kind, master):
    bus, drive, firmware = make_bench(kind, master=master)
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=10)
    assert loop.feedback.enabled[0]
    assert firmware.motor_mode
    loop.cycle(Wanted.TORQUE, 6.0, times=5)
    assert firmware.torque == pytest.approx(6.0, abs=0.005)
    assert loop.feedback.torque[0] == pytest.approx(6.0, abs=0.01)
    assert loop.feedback.enabled[0]
    assert loop.feedback.fault[0] == 0
    loop.cycle(Wanted.OFF, 6.0, times=4)
    assert not firmware.motor_mode
    assert not loop.feedback.enabled[0]
    drive.release(bus)
    assert not firmware.motor_mode
    drive.prepare(bus)
    loop.cycle(Wanted.READY, times=10)
    assert loop.feedback.enabled[0]


def test_what_the_bus_gives_back_is_no_report(make_bench):
    """Multicast buses give a sender its own frames, on the identifier of the drive."""
    bus, drive, _ = make_bench()
    answer = bus.answer
    bus.answer = lambda message, now: [message, *answer(message, now), message]
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=10)
    loop.cycle(Wanted.TORQUE, 3.0, times=5)
    assert loop.feedback.torque[0] == pytest.approx(3.0, abs=0.01)
    assert loop.feedback.invalid[0] == 0
    assert loop.feedback.enabled[0]


def test_motor_mode_is_entered_between_commands_without_torque(make_bench):
    """Drives of this kind keep the torque of their last command when they are entered again."""
    bus, drive, firmware = make_bench()
    drive.prepare(bus)
    firmware.commands.clear()
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=30)
    first = firmware.commands.index(ENTER)
    assert first > 0
    assert firmware.commands.count(ENTER) > 1  # one may be lost
    assert firmware.commands.count(ENTER) <= 8
    loop.cycle(Wanted.TORQUE, 5.0, times=3)
    firmware.commands.clear()
    loop.cycle(Wanted.OFF, 5.0, times=4)
    assert abs(unpack_cmd(firmware.commands[0])[4]) < 0.005
    assert LEAVE in firmware.commands


def test_an_error_that_clears_on_enter_alone_does_not_keep_the_drive_off(make_bench):
    """Neither the watchdog test nor an earlier fault that was reset is a fault."""
    bus, drive, firmware = make_bench()
    firmware.clears_on_enter = True
    drive.prepare(bus)
    assert firmware.error == 0x0D
    loop = Loop(bus, drive)
    for _ in range(10):
        loop.cycle(Wanted.READY)
        assert loop.feedback.fault[0] == 0
    assert loop.feedback.enabled[0]
    loop.cycle(Wanted.TORQUE, 5.0, times=5)
    assert firmware.torque == pytest.approx(5.0, abs=0.01)
    # one that occurs while it drives counts at once
    firmware.error, firmware.motor_mode, firmware.torque = 2, False, 0.0
    loop.cycle(Wanted.TORQUE, 5.0, times=2)
    assert loop.feedback.fault[0] == 2
    assert not loop.feedback.enabled[0]
    drive.prepare(bus)
    loop.cycle(Wanted.READY, times=3)
    assert loop.feedback.fault[0] == 2  # an earlier fault, shown until a reset is requested
    loop.cycle(Wanted.RESET, times=3)
    loop.cycle(Wanted.READY, times=12)
    assert loop.feedback.fault[0] == 0
    assert loop.feedback.enabled[0]


def test_an_error_that_entering_does_not_clear_is_a_fault(make_bench):
    bus, drive, firmware = make_bench()
    drive.prepare(bus)
    firmware.error, firmware.stays = 4, True
    firmware.clears_on_enter = True
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=8)
    assert loop.feedback.fault[0] == 0
    loop.cycle(Wanted.READY, times=12)
    assert loop.feedback.fault[0] == 4
    assert not loop.feedback.enabled[0]


@pytest.mark.parametrize(("kind", "code"), [("reports", 2), ("damiao", 0x0A)])
def test_a_fault_is_shown_until_a_reset_is_requested(make_bench, kind, code):
    bus, drive, firmware = make_bench(kind)
    firmware.error = code
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=6)
    assert loop.feedback.fault[0] == code
    assert not loop.feedback.enabled[0]
    loop.cycle(Wanted.RESET, times=6)
    assert loop.feedback.fault[0] == 0
    loop.cycle(Wanted.READY, times=10)
    assert loop.feedback.enabled[0]


def test_a_fault_in_the_loop_stays_until_it_is_prepared_again(make_bench):
    bus, drive, firmware = make_bench()
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=10)
    loop.cycle(Wanted.TORQUE, 5.0, times=3)
    firmware.motor_mode, firmware.error, firmware.torque = False, 1, 0.0
    loop.cycle(Wanted.TORQUE, 5.0, times=3)
    assert loop.feedback.fault[0] == 1
    firmware.error = 0
    loop.cycle(Wanted.READY, times=20)
    assert not firmware.motor_mode
    assert not loop.feedback.enabled[0]
    drive.prepare(bus)
    loop.cycle(Wanted.READY, times=10)
    assert loop.feedback.enabled[0]
    assert loop.feedback.fault[0] == 0


# -- drives that restart, and numbers that make no sense ---------------------------------------


@pytest.mark.parametrize("kind", ["reports", "damiao"])
def test_after_power_cycling_nothing_resumes(make_bench, kind):
    bus, drive, firmware = make_bench(kind)
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=10)
    loop.cycle(Wanted.TORQUE, 5.0, times=5)
    assert firmware.torque == pytest.approx(5.0, abs=0.005)

    firmware.power_cycle()
    loop.cycle(Wanted.TORQUE, 5.0, times=40)
    assert not firmware.motor_mode
    assert firmware.torque == 0.0
    assert not loop.feedback.enabled[0]  # detected: it answers, but does not follow commands
    assert loop.feedback.fault[0] == FaultCode.FELL
    loop.cycle(Wanted.READY, times=20)
    assert not firmware.motor_mode


def test_silence_longer_than_the_watchdog_counts_as_off(make_bench):
    bus, drive, firmware = make_bench()
    drive.prepare(bus)
    loop = Loop(bus, drive)
    loop.cycle(Wanted.READY, times=10)
    firmware.deaf = True
    loop.cycle(Wanted.TORQUE, 0.1, times=20)
    firmware.deaf = False
    firmware.power_cycle()
    loop.cycle(Wanted.TORQUE, 0.1, times=3)
    assert loop.feedback.fault[0] == FaultCode.FELL
    assert not firmware.motor_mode


@pytest.mark.parametrize(
    ("options", "axis", "what"),
    [
        # the offset of another assembly: the joint would be outside of its ends
        ({"position": 3.0}, {"position_limits": (-1.0, 1.0)}, "position"),
        # torque without command: a range whose zero is elsewhere
        ({"position": 0.0}, {"model": "", "ranges": "shifted"}, "torque"),
    ],
)
def test_numbers_that_make_no_sense_forbid_to_arm(make_bench, options, axis, what):
    if axis.get("ranges") == "shifted":
        axis = axis | {
            "ranges": {
                "position": (-12.5, 12.5),
                "velocity": (-50.0, 50.0),
                "torque": (-18.0, 30.0),
                "kp": (0.0, 500.0),
                "kd": (0.0, 5.0),
            }
        }
    bus, drive, firmware = make_bench(axis=axis, **options)
    with pytest.raises(UnitError, match=what):
        drive.prepare(bus)
    assert ENTER not in firmware.commands


@given(data=st.binary(max_size=8), has_state=st.booleans(), node=st.integers(1, 126))
def test_any_bytes_are_a_report_in_range_or_rejected(data, has_state, node):
    report = unpack_report(data, node, has_state)
    if report is None:
        return
    assert len(data) in (6, 8)
    assert 0 <= report.position <= 0xFFFF
    assert 0 <= report.velocity <= 0xFFF
    assert 0 <= report.torque <= 0xFFF
