"""moteus drives: frames by the published registers, test of the watchdog, accidents.

The other side of each frame is `EmulatedMoteus`, which is written from the public description, and
the package of the manufacturer.
"""

from __future__ import annotations

import dataclasses
import math
import struct
import sys

import can
import moteus
import pytest

from hil.clock import SteppedClock
from hil.drives import FaultCode, Finding, MoteusDrive, Wanted
from hil.drives._moteus_frames import COMMAND_LENGTH, REPORT, REPORT_LENGTH, commands, read_report
from hil.drives.feedback import Feedback
from hil.emulator import EmulatedMoteus, Fault
from hil.emulator import _world as world
from hil.errors import ArmError, DriveError, RigError, UnitError
from hil.reasons import Reason
from hil.rig import Axis
from tests.hil.bench import ROVER_MOTEUS, Bench
from tests.hil.drives._stations import AnsweringBus, make_rig

NODE = 3
PERIOD = 0.004


def make_axis(**changes):
    values = {
        "name": "hip",
        "drive": "moteus",
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


class Motor(EmulatedMoteus):
    """A drive that departs from a good one, with the shaft of its motor.

    `works`: how often its watchdog works. `later`: time by which it is late under load, s. `keeps`:
    fraction of its torque that goes on when it has expired, whatever it says; `admits`: whether the
    report shows it. `resumes`: whether a command ends its mode "timeout". `inertia`: of the joint.
    """

    works, later, late_again, keeps, admits, resumes = math.inf, 0.0, 1.0, 0.0, True, False
    inertia = math.inf

    def __init__(self, axis, settings=None, **quirks):
        self._kept, self._scale, self._last = 0.0, 1.0, None
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
        late = self._late + (self.later if abs(self._command[0x022]) > 0.01 else 0.0)
        if self.mode == 10 and now >= late and self.works > 0:
            self.works -= 1
            self._scale *= self.late_again
            self.late_again = 1.0
            self._kept = self.keeps * self._command[0x022]
            self._late = -1.0
            super().poll(now)

    def _valid_for(self, asked):
        return self._scale * super()._valid_for(asked)

    def _obey(self, written, now):
        if self.resumes and self.mode == 11:
            self.mode = 0
        if written.get(0) == 0:
            self._kept = 0.0
        super()._obey(written, now)

    def torque(self, now):
        running = self._command[0x022] if self.mode == 10 else 0.0
        return self._at_joint(running + self._kept)

    def _shaft_torque(self, now):
        return self.torque(now) / self._at_joint(1.0) if self.admits else 0.0


class Line(AnsweringBus):
    """A bus on which a drive answers; frames keep their format."""

    def __init__(self, drive):
        self.other, self.log = drive, []
        super().__init__(lambda frame, now: [], SteppedClock())
        self.has_fd = True

    def send(self, frame):
        if self.silent:
            return False
        self.log.append((self.clock.now(), frame.arbitration_id, bytes(frame.data)))
        for _, answer in self.other.receive(frame, self.clock.now()):
            self.far.send(answer)
        return True


def station(axis=None, settings=None, **quirks):
    axis = axis or make_axis()
    motor = Motor(axis, settings, **quirks)
    return Line(motor), MoteusDrive(axis, 0, make_rig(axis)), motor


class Loop:
    """Cycles of a host with one drive."""

    def __init__(self, bus, drive):
        self.bus, self.drive, self.feedback = bus, drive, Feedback(1)

    def cycle(self, wanted, torque=0.0, times=1, period=PERIOD):
        for _ in range(times):
            self.bus.send(self.drive.command(wanted, torque))
            while (frame := self.bus.receive()) is not None:
                self.drive.receive(frame, self.bus.clock.now(), self.feedback)
            self.bus.clock.sleep_until(self.bus.clock.now() + period)
        return self

    @property
    def fault(self):
        return int(self.feedback.fault[0])


def running(**quirks):
    """A drive that is prepared and runs."""
    bus, drive, motor = station(**quirks)
    drive.prepare(bus)
    loop = Loop(bus, drive).cycle(Wanted.READY, times=10)
    assert loop.feedback.enabled[0]
    return loop.cycle(Wanted.TORQUE, 1.0, times=5), motor


# -- frames ------------------------------------------------------------------------------------


def test_the_example_of_the_description():
    """Frame and answer of the public description of the protocol, byte by byte."""
    drive = EmulatedMoteus(make_axis(node=1, gear=1.0, direction=1, offset=0.0))
    drive.kp = drive.kd = 0.0
    drive.position = 0.0080 * math.tau
    frame = can.Message(
        arbitration_id=0x8001,
        data=bytes.fromhex("01000a07206000200150ff140400130d"),
        is_extended_id=True,
        is_fd=True,
    )
    ((_, answer),) = drive.receive(frame, 1.0)
    assert answer.arbitration_id == 0x100
    assert drive._command[0x020] == pytest.approx(0.0096)
    assert drive._command[0x021] == pytest.approx(0.072)
    assert drive._command[0x022] == pytest.approx(-1.76)
    # The answer has 24 V and 30 degrees in place of 12 V and 20 degrees.
    assert bytes(answer.data)[:15].hex() == "2404000a005000000050ff230d301e"


def test_a_command_is_torque_alone_and_ends_by_itself():
    axis = make_axis()
    _, drive, motor = station(axis)
    drive._prepared = drive._entered = True
    frame = drive.command(Wanted.TORQUE, 3.0)
    assert frame.arbitration_id == 0x8000 | 0x7D << 8 | NODE
    assert frame.is_fd
    assert frame.bitrate_switch
    assert frame.is_extended_id
    assert len(frame.data) == COMMAND_LENGTH
    found = moteus.protocol.parse_registers(bytes(frame.data))
    assert found.command.pop(0x000) == 10
    assert math.isnan(found.command.pop(0x020))
    assert found.command == {
        0x021: 0.0,
        0x022: pytest.approx(3.0 / -2.0),
        0x023: 0.0,
        0x024: 0.0,
        0x025: pytest.approx(1.001 * 12.0 / 2.0),
        0x027: pytest.approx(axis.watchdog),
        0x02B: 0.0,
    }
    motor.receive(frame, 1.0)
    assert motor.torque(1.0) == pytest.approx(3.0)
    assert not motor.springy


def test_a_report_is_what_the_package_reads():
    bus, drive, motor = station()
    motor.position, motor.velocity = 1.0, -2.0
    drive._prepared = True
    loop = Loop(bus, drive).cycle(Wanted.READY, times=3)
    feedback = loop.feedback
    assert feedback.position[0] == pytest.approx(motor.position, abs=0.5e-5 * math.tau / 2.0)
    assert feedback.velocity[0] == pytest.approx(-2.0, abs=0.5e-5 * math.tau / 2.0)
    (_, answer), *_ = motor.receive(drive.command(Wanted.READY, 0.0), bus.clock.now())
    assert len(answer.data) == REPORT_LENGTH
    report, values = read_report(answer.data), moteus.protocol.parse_reply(bytes(answer.data))
    assert values[0x001] == pytest.approx(1e-5 * report.position, abs=1e-12)
    assert values[0x070] == report.clock


@pytest.mark.parametrize("node", [1, 7, 8, 124])
def test_identifiers_and_lengths_are_those_of_the_bus_load(node):
    bus, drive, motor = station(make_axis(node=node))
    report, command = drive.cycle_frames()
    sent = drive.command(Wanted.OFF, 0.0)
    drive._prepared = True
    sent = drive.command(Wanted.READY, 0.0)
    ((_, answer),) = motor.receive(sent, 1.0)
    assert (answer.arbitration_id,) == drive.identifiers
    assert (len(answer.data), answer.is_extended_id) == (report.length, report.extended)
    assert (len(sent.data), sent.is_extended_id) == (command.length, command.extended)
    bus.close()


def garbled(data):
    yield "short", data[: REPORT.size - 1]
    yield "another register", data.replace(bytes.fromhex("2d03"), bytes.fromhex("2d04"))
    yield "no position", data[:5] + struct.pack("<i", -(2**31)) + data[9:]
    yield "no torque", data[:15] + struct.pack("<f", math.nan) + data[19:]
    yield "more", data[:-1] + b"\x21"
    yield "ones", b"\xff" * len(data)


def test_garbled_reports_change_nothing():
    loop, motor = running()
    bus, drive, feedback = loop.bus, loop.drive, loop.feedback
    ((_, answer),) = motor.receive(drive.command(Wanted.TORQUE, 1.0), bus.clock.now())
    before = feedback.position.copy(), feedback.count.copy()
    for k, (name, data) in enumerate(garbled(bytes(answer.data)), start=1):
        frame = can.Message(arbitration_id=drive.identifiers[0], data=data, is_fd=True)
        assert not drive.receive(frame, bus.clock.now(), feedback), name
        assert feedback.invalid[0] == k
    assert (feedback.position, feedback.count) == before


def test_frames_of_others_that_command_are_foreign():
    drive = station()[1]
    tool = moteus.Controller(id=NODE)
    harmless = tool.make_query(), tool.make_custom_query({0x100: moteus.INT32})
    orders = (
        tool.make_stop(),
        tool.make_position(position=math.nan, velocity=1.0, query=True),
        tool.make_diagnostic_write(b"d stop\n"),
    )
    for order in (*harmless, *orders):
        assert commands(order.data) is (order in orders)
    assert {0x8000 | NODE, NODE, 0x8000 | 0x7D << 8 | NODE} <= set(drive.watched_identifiers)
    assert commands(b"\x07")


# -- before a run --------------------------------------------------------------------------------


def test_an_honest_drive_is_prepared_and_runs():
    bus, drive, _ = station(inertia=0.05)
    found = {check.what: check for check in drive.prepare(bus)}
    assert all(check.finding is Finding.FOUND for check in found.values())
    assert "serial number 00400003" in found["identity"].came
    assert "2 times, from 0.6" in found["watchdog in force, s"].came
    loop = Loop(bus, drive).cycle(Wanted.READY, times=10).cycle(Wanted.TORQUE, 2.0, times=5)
    assert loop.feedback.enabled[0]
    assert loop.fault == 0
    drive.release(bus)
    assert drive.command(Wanted.TORQUE, 2.0) is drive._stop


REFUSED = {
    "never": ({"works": 0}, 1),
    "works once": ({"works": 1}, 2),
    "at zero torque only": ({"later": math.inf}, 1),
    "1.5 s late under load": ({"later": 1.5}, 1),
    "late the second time": ({"late_again": 1.6}, 2),
    "off, it says, with its torque": ({"keeps": 1.0}, 1),
    "off, it says, and moves": ({"keeps": 1.0, "admits": False, "inertia": 0.15}, 1),
    "resumes at the next command": ({"resumes": True}, 1),
}


@pytest.mark.parametrize(("quirks", "number"), REFUSED.values(), ids=REFUSED)
def test_a_watchdog_that_does_not_hold_is_refused_and_the_drive_is_free(quirks, number):
    bus, drive, motor = station(**quirks)
    with pytest.raises(ArmError, match="axis `hip`") as caught:
        drive.prepare(bus)
    assert f"test {number} of 2 at 0.6" in caught.value.where
    assert motor.torque(bus.clock.now()) == 0.0
    loop = Loop(bus, drive).cycle(Wanted.READY, times=10)
    assert motor.mode == 0
    assert not loop.feedback.enabled[0]


@pytest.mark.parametrize("mode", [10, 12, 15])
def test_a_drive_that_brakes_after_a_timeout_is_refused(mode):
    bus, drive, _ = station()
    drive_settings = dataclasses.replace(bus.other.settings, timeout_mode=mode)
    bus.other.settings = drive_settings
    with pytest.raises(ArmError, match="timeout_mode") as caught:
        drive.prepare(bus)
    assert caught.value.came == str(mode)
    assert "conf set servo.timeout_mode 0" in caught.value.cure
    assert bus.other.last_command != bus.other.last_command  # no torque was ever asked for


def test_wrong_units_silence_and_faults_are_told_before_a_torque():
    bus, drive, motor = station(make_axis(position_limits=(-1.0, 1.0)))
    motor.position = 2.0
    with pytest.raises(UnitError, match="position"):
        drive.prepare(bus)
    motor.position = 0.0
    motor.fail(1.0, 38)
    rows = {check.what: check for check in drive.prepare(bus)}
    assert rows["watchdog in force, s"].finding is Finding.UNKNOWN
    loop = Loop(bus, drive).cycle(Wanted.READY, times=10)
    assert loop.fault == 38
    assert not loop.feedback.enabled[0]
    drive.reset(bus)
    drive.prepare(bus)
    assert Loop(bus, drive).cycle(Wanted.READY, times=10).feedback.enabled[0]
    motor._deaf_until = math.inf
    with pytest.raises(DriveError, match="drive") as caught:
        drive.prepare(bus)
    assert "both bit rates" in caught.value.cure
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


def test_the_package_is_needed_by_these_drives_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "moteus", None)
    with pytest.raises(RigError, match="moteus") as caught:
        MoteusDrive(make_axis(), 0, make_rig(make_axis()))
    assert "[moteus]" in caught.value.cure


# -- in a run ------------------------------------------------------------------------------------


def strikes(name):
    def other_mode(motor):
        motor.mode = 9

    def zero_velocity(motor):
        motor.mode = 12

    def stopped(motor):
        motor._switch_on()

    def fault(motor):
        motor.fail(0.0, 33)

    def timeout(motor):
        motor.mode = 11

    def more(motor):
        motor.torque = lambda now: 3.0 * Motor.torque(motor, now)

    def less(motor):
        motor.torque = lambda now: 0.0

    return locals()[name]


IN_RUN = {
    "other_mode": FaultCode.OTHER_MODE,
    "zero_velocity": FaultCode.OTHER_MODE,
    "stopped": FaultCode.FELL,
    "timeout": FaultCode.FELL,
    "fault": 33,
    "more": FaultCode.OTHER_TORQUE,
    "less": FaultCode.OTHER_TORQUE,
}


@pytest.mark.parametrize(("name", "code"), IN_RUN.items(), ids=IN_RUN)
def test_a_drive_that_leaves_its_mode_stays_off(name, code):
    loop, motor = running()
    loop.cycle(Wanted.TORQUE, 6.0, times=20)
    assert loop.fault == 0
    strikes(name)(motor)
    loop.cycle(Wanted.TORQUE, 6.0, times=12)
    assert loop.fault == code
    assert not loop.feedback.enabled[0]
    assert motor.mode == 0
    loop.cycle(Wanted.READY, times=10)
    assert motor.mode == 0
    assert loop.fault == code


def test_a_torque_that_a_drive_limits_by_itself_is_no_fault():
    loop, motor = running()
    motor.code = 99
    motor.torque = lambda now: 0.3 * Motor.torque(motor, now)
    loop.cycle(Wanted.TORQUE, 6.0, times=30)
    assert loop.fault == 0
    motor.torque = lambda now: 1.5 * Motor.torque(motor, now)  # a limit never adds
    loop.cycle(Wanted.TORQUE, 6.0, times=12)
    assert loop.fault == FaultCode.OTHER_TORQUE


def test_a_restarted_drive_is_noticed_at_its_first_report():
    """It would apply the next command: its counter of milliseconds shows the restart."""
    loop, motor = running()
    loop.cycle(Wanted.TORQUE, 2.0, times=60)
    motor._switch_on()
    motor._started = loop.bus.clock.now()
    loop.cycle(Wanted.TORQUE, 2.0, times=2)
    assert loop.fault == FaultCode.RESTARTED
    assert motor.mode == 0


def test_old_and_repeated_reports_are_rejected():
    loop, motor = running()
    bus, drive, feedback = loop.bus, loop.drive, loop.feedback
    seen = []
    for _ in range(3):
        ((_, answer),) = motor.receive(drive.command(Wanted.TORQUE, 1.0), bus.clock.now())
        seen.append(answer)
        bus.clock.sleep_until(bus.clock.now() + PERIOD)
    now = bus.clock.now()
    assert drive.receive(seen[2], now, feedback)
    assert not drive.receive(seen[1], now, feedback)
    assert drive.receive(seen[2], now + 1e-3, feedback)  # arrived twice
    assert not drive.receive(seen[2], now + PERIOD, feedback)
    assert not drive.receive(seen[0], now + PERIOD, feedback)
    assert feedback.fault[0] == 0


def test_a_run_and_its_accidents():
    with Bench(ROVER_MOTEUS, duration=0.4) as bench:
        assert bench.run().done
        bench.check()
        bench.torque_ended_in_time()


@pytest.mark.parametrize(
    ("kind", "way", "value", "reasons"),
    [
        ("drive_fault", "both", 0, {Reason.DRIVE_FAULT}),
        ("power_cycle", "both", 0, {Reason.DRIVE_FAULT, Reason.LOST, Reason.DRIVE_OFF}),
        ("stale", "to_host", 0, {Reason.LOST}),
        ("nan", "to_host", 0, {Reason.LOST}),
        ("corrupt", "to_host", 0, {Reason.LOST, Reason.JUMP, Reason.DRIVE_FAULT}),
        ("drop", "to_drive", 0, {Reason.LOST}),
        ("reorder", "to_host", 0, {Reason.END, Reason.STALE, Reason.DELAYED}),
        ("duplicate", "both", 0, {Reason.END}),
    ],
)
def test_faults_of_the_link_are_named(kind, way, value, reasons):
    with Bench(ROVER_MOTEUS, duration=0.6) as bench:
        fault = Fault(kind, "turret", way=way, value=value)
        bench.at(60, bench.world.fault, fault)
        outcome = bench.run()
        assert outcome.reason in reasons, (outcome.reason.name, outcome.detail)
        if outcome.reason is not Reason.END:
            assert "turret" in outcome.detail
        bench.check()
        bench.torque_ended_in_time()


def test_kinds_of_emulated_drives_have_it():
    assert world.KINDS["moteus"] is EmulatedMoteus
