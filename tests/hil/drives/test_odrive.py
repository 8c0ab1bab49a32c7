"""ODrives: frames by the published protocol, test of the watchdog, accidents.

The other side of each frame is `EmulatedODrive`, which is written from the public description, and
bytes worked out by hand from its table of messages.
"""

from __future__ import annotations

import dataclasses
import math
import struct

import can
import pytest

from hil.clock import SteppedClock
from hil.drives import FaultCode, Finding, ODriveDrive, Wanted
from hil.drives._odrive_frames import Message
from hil.drives.feedback import Feedback
from hil.emulator import EmulatedODrive, Fault
from hil.errors import ArmError, DriveError, UnitError
from hil.reasons import Reason
from hil.rig import Axis
from hil.state import CAUSES
from tests.hil.bench import ROVER_ODRIVE, Bench
from tests.hil.drives._stations import AnsweringBus, make_rig

NODE = 5
PERIOD = 0.004
ENDPOINTS = {"firmware": "0.6.10", "watchdog_timeout": 301, "enable_watchdog": 300}


def make_axis(**changes):
    values = {
        "name": "hip",
        "drive": "odrive",
        "node": NODE,
        "torque_limit": 12.0,
        "torque_rate_limit": 500.0,
        "speed_limit": 8.0,
        "watchdog": 0.05,
        "gear": 2.0,
        "direction": -1,
        "offset": 0.25,
        "counts": 1e5,
    }
    return Axis(**(values | changes))


class Motor(EmulatedODrive):
    """A drive that departs from a good one, with the shaft of its motor.

    `works`: how often its watchdog works under a torque. `later`: time by which it is late then, s.
    `late_again`: factor of its time once it has worked. `keeps`: fraction of its torque that goes
    on when it has expired, whatever it says; `admits`: whether it shows it. `stays`: in closed loop
    with the error. `inertia`: of the joint. `feeds`: whether each frame feeds the watchdog.
    """

    works, later, late_again, keeps, admits, stays = math.inf, 0.0, 1.0, 0.0, True, False
    inertia, feeds = math.inf, False

    def __init__(self, axis, settings=None, **quirks):
        self._kept, self._last = 0.0, None
        super().__init__(axis, settings)
        for name, value in quirks.items():
            setattr(self, name, value)
        self.position = axis.offset

    def poll(self, now):
        while self._last is not None and self._last < now - 1e-9:
            step = min(1e-3, now - self._last)
            self._last += step
            self._expire(self._last)
            acceleration = self.torque(self._last) / self.inertia
            self.position += (self.velocity + 0.5 * acceleration * step) * step
            self.velocity += acceleration * step
        self._last = now
        return []

    def _expire(self, now):
        loaded = self.enabled and abs(self._input[2]) > 0.01
        if now < self._late + (self.later if loaded else 0.0) or (loaded and self.works <= 0):
            return
        if loaded:
            self.works -= 1
            self._timeout *= self.late_again
            self.late_again = 1.0
            self._kept = self.keeps * self._input[2]
        self._late = math.inf
        self.error |= 0x01000000
        if not self.stays:
            self.state = 1

    def _obey(self, name, data, now):
        if name == "state" and data == b"\x01\x00\x00\x00":
            self._kept = 0.0
        if self.feeds:
            self._feed(now)
        return super()._obey(name, data, now)

    def _target(self, now):
        return self._input[2] if self.enabled else 0.0

    def _shaft_torque(self, now):
        return self.torque(now) / self._at_joint(1.0) if self.admits else 0.0

    def torque(self, now):
        return self._at_joint(Motor._target(self, now) + self._kept)


class Line(AnsweringBus):
    """A bus on which a drive answers; remote frames stay remote."""

    def __init__(self, drive):
        self.other, self.log = drive, []
        super().__init__(lambda frame, now: [], SteppedClock())

    def send(self, frame):
        if self.silent:
            return False
        self.log.append((frame.arbitration_id, bytes(frame.data), frame.is_remote_frame))
        for _, answer in self.other.receive(frame, self.clock.now()):
            self.far.send(answer)
        return True


def station(axis=None, settings=None, **quirks):
    axis = axis or make_axis()
    motor = Motor(axis, settings, **quirks)
    return Line(motor), ODriveDrive(axis, 0, make_rig(axis)), motor


class Loop:
    """Cycles of a host with one drive."""

    def __init__(self, bus, drive):
        self.bus, self.drive, self.feedback, self.number = bus, drive, Feedback(1), 0

    def cycle(self, wanted, torque=0.0, times=1):
        for _ in range(times):
            self.number += 1
            for frame in ODriveDrive.opening_frames(self.drive.rig):
                self.bus.send(frame)
            self._take()
            self.bus.send(self.drive.command(wanted, torque))
            for frame in self.drive.asides(self.number):
                self.bus.send(frame)
            self.bus.clock.sleep_until(self.bus.clock.now() + PERIOD)
        return self

    def _take(self):
        while (frame := self.bus.receive()) is not None:
            if frame.arbitration_id in self.drive.identifiers:
                self.drive.receive(frame, self.bus.clock.now(), self.feedback)

    @property
    def fault(self):
        return int(self.feedback.fault[0])

    @property
    def enabled(self):
        return bool(self.feedback.enabled[0])


def running(axis=None, **quirks):
    """A drive that is prepared and runs."""
    bus, drive, motor = station(axis, **quirks)
    drive.prepare(bus)
    loop = Loop(bus, drive).cycle(Wanted.READY, times=20)
    assert loop.enabled
    return loop.cycle(Wanted.TORQUE, 1.0, times=5), motor


# -- frames ------------------------------------------------------------------------------------


def test_frames_are_those_of_the_table():
    bus, drive, motor = station()
    drive._prepared = drive._entered = True
    frame = drive.command(Wanted.TORQUE, -3.0)
    assert (frame.arbitration_id, bytes(frame.data)) == (0x0AE, struct.pack("<f", 1.5))
    assert [(f.arbitration_id, f.is_remote_frame) for f in drive.opening_frames(drive.rig)] == [
        (0x0BC, True),
        (0x0A9, True),
    ]
    drive._entered = False
    sent = [drive.command(Wanted.OFF, 0.0) for _ in range(2)]
    assert {(f.arbitration_id, bytes(f.data)) for f in sent} == {
        (0x0AE, bytes(4)),
        (0x0A7, b"\x01\x00\x00\x00"),
    }
    assert drive.identifiers == (0x0A1, 0x0BC, 0x0A9)
    assert (frame.arbitration_id >> 5, frame.arbitration_id & 0x1F) == (NODE, 0x0E)
    for length, (_, answer) in zip((8, 8), _asked(motor, 0x1C, 0x09), strict=True):
        assert len(answer.data) == length
    bus.close()


def _asked(motor, *numbers):
    for number in numbers:
        frame = can.Message(
            arbitration_id=NODE << 5 | number, is_extended_id=False, is_remote_frame=True, dlc=8
        )
        yield from motor.receive(frame, 1.0)


def test_numbers_are_those_of_the_joint():
    """Gear 2, reversed: a turn of the shaft is half a turn of the joint, the other way."""
    bus, drive, _ = station()
    feedback = Feedback(1)
    frame = can.Message(
        arbitration_id=0x0A9, data=struct.pack("<ff", 0.5, -2.0), is_extended_id=False
    )
    torque = struct.pack("<ff", 1.0, 1.5)
    before = can.Message(arbitration_id=0x0BC, data=torque, is_extended_id=False)
    assert not drive.receive(before, 1.0, feedback)
    assert math.isnan(feedback.torque[0])  # until the report is complete
    assert drive.receive(frame, 1.0, feedback)
    assert feedback.torque[0] == pytest.approx(-3.0)
    assert feedback.position[0] == pytest.approx(0.25 - math.pi / 2.0)
    assert feedback.velocity[0] == pytest.approx(2.0 * math.pi)
    bus.close()


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0x09, struct.pack("<ff", math.nan, 0.0)),
        (0x09, struct.pack("<ff", 0.0, math.inf)),
        (0x09, bytes(7)),
        (0x1C, struct.pack("<ff", math.nan, 0.0)),
        (0x01, bytes(7)),
    ],
)
def test_garbled_reports_change_nothing(number, data):
    loop, _ = running()
    feedback = loop.feedback
    before = {name: getattr(feedback, name).copy() for name in ("position", "torque", "count")}
    frame = can.Message(arbitration_id=NODE << 5 | number, data=data, is_extended_id=False)
    assert not loop.drive.receive(frame, loop.bus.clock.now(), feedback)
    assert feedback.invalid[0] == 1
    assert all(getattr(feedback, name) == value for name, value in before.items())


def test_orders_of_another_host_are_foreign_and_requests_are_not():
    drive = station()[1]
    watched = {number & 0x1F for number in drive.watched_identifiers}
    assert {0x02, 0x04, 0x07, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x16, 0x18} <= watched
    answers = {0x00, 0x01, 0x03, 0x05, 0x09, 0x1C}
    assert not watched & answers


# -- before a run --------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoints", [{}, ENDPOINTS])
@pytest.mark.parametrize("feeds", [False, True])
def test_an_honest_drive_is_prepared_and_runs(endpoints, feeds):
    bus, drive, motor = station(make_axis(endpoints=endpoints), inertia=0.05, feeds=feeds)
    found = {check.what: check for check in drive.prepare(bus)}
    assert all(check.finding is Finding.FOUND for check in found.values())
    assert "serial number 387300000005" in found["identity"].came
    assert "2 times, from 0.6" in found["watchdog in force, s"].came
    assert motor.mode == 1
    loop = Loop(bus, drive).cycle(Wanted.READY, times=20).cycle(Wanted.TORQUE, 2.0, times=5)
    assert loop.enabled
    assert loop.fault == 0
    drive.release(bus)
    assert not motor.enabled
    assert loop.cycle(Wanted.TORQUE, 2.0, times=5).bus.other.torque(1.0) == 0.0


def test_a_watchdog_is_set_by_its_endpoints():
    axis = make_axis(endpoints=ENDPOINTS)
    bus, drive, motor = station(axis)
    motor.endpoints[300], motor.endpoints[301] = b"\x00", struct.pack("<f", 3.0)
    motor._timeout = 3.0
    row = next(check for check in drive.prepare(bus) if check.what.startswith("time-out"))
    assert row.finding is Finding.FOUND
    assert motor.endpoints == {300: b"\x01", 301: struct.pack("<f", axis.watchdog)}


def test_endpoints_of_other_firmware_are_refused():
    axis = make_axis(endpoints=ENDPOINTS | {"firmware": "0.6.9"})
    bus, drive, _ = station(axis)
    with pytest.raises(DriveError, match="identity") as caught:
        drive.prepare(bus)
    assert "flat_endpoints.json" in caught.value.cure
    bus, drive, motor = station(make_axis(endpoints=ENDPOINTS))
    motor.endpoints = {300: b"\x01"}
    with pytest.raises(DriveError, match="endpoint 301"):
        drive.prepare(bus)


REFUSED = {
    "never": ({"works": 0}, 1),
    "works once": ({"works": 1}, 2),
    "at zero torque only": ({"later": math.inf}, 1),
    "1.5 s late under load": ({"later": 1.5}, 1),
    "late the second time": ({"late_again": 1.6}, 2),
    "off, it says, with its torque": ({"keeps": 1.0}, 1),
    "off, it says, and moves": ({"keeps": 1.0, "admits": False, "inertia": 0.15}, 1),
    "with an error, and on": ({"stays": True}, 1),
}


@pytest.mark.parametrize(("quirks", "number"), REFUSED.values(), ids=REFUSED)
def test_a_watchdog_that_does_not_hold_is_refused_and_the_drive_is_free(quirks, number):
    bus, drive, motor = station(**quirks)
    with pytest.raises(ArmError, match="axis `hip`") as caught:
        drive.prepare(bus)
    assert f"test {number} of 2 at 0.6" in caught.value.where
    assert motor.torque(bus.clock.now()) == 0.0
    loop = Loop(bus, drive).cycle(Wanted.READY, times=20)
    assert not motor.enabled
    assert not loop.enabled


@pytest.mark.parametrize("timeout", [0.08, 10.0])
def test_a_watchdog_with_a_longer_time_is_refused(timeout):
    bus, drive, motor = station()
    motor._timeout = timeout
    with pytest.raises(ArmError, match="test 1 of 2") as caught:
        drive.prepare(bus)
    assert "watchdog_timeout = 0.05" in caught.value.cure


def test_wrong_units_silence_and_errors_are_told_before_a_torque():
    bus, drive, motor = station(make_axis(position_limits=(-1.0, 1.0)))
    motor.position = 2.0
    with pytest.raises(UnitError, match="position"):
        drive.prepare(bus)
    motor.position = 0.0
    motor.fail(1.0, 0x20)
    rows = {check.what: check for check in drive.prepare(bus)}
    assert rows["watchdog in force, s"].finding is Finding.UNKNOWN
    assert not any(number == 0x0AE and data != bytes(4) for number, data, _ in bus.log)
    loop = Loop(bus, drive).cycle(Wanted.READY, times=20)
    assert loop.fault == 0x20
    assert not motor.enabled
    drive.reset(bus)
    drive.prepare(bus)
    assert Loop(bus, drive).cycle(Wanted.READY, times=20).enabled
    motor._deaf_until = math.inf
    with pytest.raises(DriveError, match="drive") as caught:
        drive.prepare(bus)
    assert "firmware 0.6" in caught.value.cure
    with pytest.raises(DriveError, match="axis `hip`"):
        drive.release(bus)


def test_nothing_is_sent_on_a_silent_bus():
    bus, drive, _ = station()
    bus.silent = True
    assert [check.finding for check in drive.inspect(bus)] == [Finding.UNKNOWN]
    with pytest.raises(ArmError, match="only listens"):
        drive.prepare(bus)
    drive.release(bus)
    assert bus.log == []


# -- in a run ------------------------------------------------------------------------------------


def idle(motor):
    motor.state = 1


def homing(motor):
    motor.state = 11


def overcurrent(motor):
    motor.fail(0.0, 0x1000)


def position_mode(motor):
    motor._target = lambda now: 9.0


def three_times(motor):
    motor.torque = lambda now: 3.0 * Motor.torque(motor, now)


def none(motor):
    motor.torque = lambda now: 0.0


def no_heartbeats(motor):
    inner = motor._answer
    motor._answer = lambda name, now: None if name == "heartbeat" else inner(name, now)


IN_RUN = {
    idle: FaultCode.FELL,
    homing: FaultCode.OTHER_MODE,
    overcurrent: 0x1000,
    position_mode: FaultCode.NOT_FOLLOWING,
    three_times: FaultCode.OTHER_TORQUE,
    none: FaultCode.OTHER_TORQUE,
    no_heartbeats: FaultCode.MUTE,
}


@pytest.mark.parametrize(
    ("strike", "code"), IN_RUN.items(), ids=[strike.__name__ for strike in IN_RUN]
)
def test_a_drive_that_leaves_its_mode_stays_off(strike, code):
    loop, motor = running()
    loop.cycle(Wanted.TORQUE, 6.0, times=20)
    assert loop.fault == 0
    strike(motor)
    loop.cycle(Wanted.TORQUE, 6.0, times=20)
    assert loop.fault == code
    assert not loop.enabled
    assert motor._input == (0.0, 0.0, 0.0)
    loop.cycle(Wanted.OFF, times=10).cycle(Wanted.READY, times=20)
    assert not motor.enabled
    assert loop.fault == code


def test_a_restarted_drive_stays_off():
    loop, motor = running()
    motor._switch_on()
    loop.cycle(Wanted.TORQUE, 6.0, times=20)
    assert loop.fault == FaultCode.FELL
    assert motor.torque(loop.bus.clock.now()) == 0.0


def test_the_expired_watchdog_alone_is_cleared_before_a_run():
    """Between preparation and run the drives hear nothing."""
    bus, drive, motor = station()
    drive.prepare(bus)
    Loop(bus, drive).cycle(Wanted.OFF, times=3)
    bus.clock.sleep_until(bus.clock.now() + 1.0)
    motor.poll(bus.clock.now())
    assert motor.error == 0x01000000
    assert Loop(bus, drive).cycle(Wanted.READY, times=25).enabled
    bus, drive, motor = station()
    drive.prepare(bus)
    motor.fail(1.0, 0x01000020)
    loop = Loop(bus, drive).cycle(Wanted.READY, times=25)
    assert not motor.enabled
    assert motor.error == 0x01000020
    assert loop.fault == 0x20


def test_a_run():
    with Bench(ROVER_ODRIVE, duration=0.4) as bench:
        assert bench.run().done
        bench.check()
        bench.torque_ended_in_time()


@pytest.mark.parametrize(
    ("kind", "way", "reasons"),
    [
        ("drive_fault", "both", {Reason.DRIVE_FAULT}),
        ("power_cycle", "both", {Reason.DRIVE_FAULT, Reason.LOST, Reason.DRIVE_OFF}),
        ("stale", "to_host", {Reason.STUCK, Reason.DRIVE_FAULT, Reason.WRONG_SIGN}),
        ("nan", "to_host", {Reason.LOST}),
        # Behind the checksum of the bus each turned bit is another number.
        ("corrupt", "to_host", {Reason.LOST, Reason.JUMP, Reason.DRIVE_FAULT, *CAUSES}),
        ("drop", "to_drive", {Reason.LOST, Reason.STALE}),
        ("duplicate", "both", {Reason.END}),
    ],
)
def test_faults_of_the_link_are_named(kind, way, reasons):
    with Bench(ROVER_ODRIVE, duration=0.6) as bench:
        bench.at(60, bench.world.fault, Fault(kind, "turret", way=way))
        outcome = bench.run()
        assert outcome.reason in reasons, (outcome.reason.name, outcome.detail)
        if outcome.reason is not Reason.END:
            assert "turret" in outcome.detail
        bench.check()
        bench.torque_ended_in_time()


def test_another_host_that_commands_a_drive_stops_the_rig():
    with Bench(ROVER_ODRIVE, duration=0.4) as bench:
        other = can.Bus(interface="virtual", channel=bench.rig.buses[0].channel)
        order = can.Message(
            arbitration_id=3 << 5 | Message.AXIS_STATE,
            data=struct.pack("<I", 8),
            is_extended_id=False,
        )
        ask = can.Message(
            arbitration_id=3 << 5 | Message.ESTIMATES,
            is_extended_id=False,
            is_remote_frame=True,
            dlc=8,
        )
        bench.at(20, other.send, ask)
        bench.at(60, other.send, order)
        outcome = bench.run()
        other.shutdown()
        assert outcome.reason is Reason.FOREIGN
        assert bench.stopped >= bench.row(59)


def test_settings_are_kept_without_endpoints():
    motor = EmulatedODrive(make_axis(), dataclasses.replace(Motor(make_axis()).settings))
    assert motor.endpoints == {}
