"""The emulated MIT drive against frames worked out from the makers' ranges."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.emulator import DriveSettings, EmulatedMit
from tests.hil.emulator._rigs import axis, frame

ENTER, LEAVE, ZERO = (b"\xff" * 7 + bytes([k]) for k in (0xFC, 0xFD, 0xFE))


def drive(settings=None, **changes):
    values = {"drive": "mit", "model": "AK80-9", "gear": 1.0, "direction": 1, "offset": 0.0}
    return EmulatedMit(axis(**(values | changes)), settings)


def command(torque, position=0x7FFF, velocity=0x7FF, kp=0, kd=0):
    bits = position << 48 | velocity << 36 | kp << 24 | kd << 12 | torque
    return bits.to_bytes(8, "big")


def send(emulated, data, now):
    answers = emulated.receive(frame(5, data), now)
    return [bytes(message.data) for _, message in answers]


def fields(report):
    node, position = report[0], report[1] << 8 | report[2]
    velocity, torque = report[3] << 4 | report[4] >> 4, (report[4] & 15) << 8 | report[5]
    return node, position, velocity, torque


def test_it_has_no_torque_before_motor_mode():
    emulated = drive()
    (report,) = send(emulated, command(4095), 1.0)
    assert not emulated.enabled
    assert emulated.torque(1.0) == 0.0
    assert fields(report) == (5, 0x8000, 0x800, 0x800)
    assert len(report) == 8
    assert report[7] == 0


@pytest.mark.parametrize(
    ("code", "torque"), [(4095, 18.0), (0, -18.0), (3072, 3072 * 36 / 4095 - 18)]
)
def test_torque_by_the_table_of_the_maker(code, torque):
    emulated = drive()
    send(emulated, ENTER, 1.0)
    (report,) = send(emulated, command(code), 1.001)
    assert emulated.torque(1.001) == pytest.approx(torque)
    assert fields(report)[3] == code


def test_gear_and_direction():
    emulated = drive(gear=2.0, direction=-1, offset=0.5)
    send(emulated, ENTER, 1.0)
    emulated.sense(1.5, 3.0)
    (report,) = send(emulated, command(4095), 1.0)
    assert emulated.torque(1.0) == pytest.approx(-36.0)
    _, position, velocity, _ = fields(report)
    assert position * 25.0 / 65535 - 12.5 == pytest.approx(-2.0, abs=25.0 / 65535)
    assert velocity * 100.0 / 4095 - 50.0 == pytest.approx(-6.0, abs=100.0 / 4095)


def test_positions_wrap_at_the_end_of_the_range():
    emulated = drive()
    codes = []
    for joint in (12.49, 12.51):
        emulated.sense(joint, 0.0)
        codes.append(fields(send(emulated, ENTER, 1.0)[0])[1])
    assert codes[0] > 65500
    assert codes[1] < 60


def test_stiffness_and_damping_act():
    emulated = drive()
    send(emulated, ENTER, 1.0)
    send(emulated, command(0x7FF, kp=410, kd=819), 1.0)  # 50 N m/rad, 1 N m s/rad, to zero
    assert emulated.springy
    emulated.sense(0.1, 2.0)
    assert emulated.torque(1.0) == pytest.approx(-7.0, abs=0.1)


def test_commands_that_cease_end_motor_mode():
    emulated = drive(watchdog=0.06)
    send(emulated, ENTER, 1.0)
    send(emulated, command(4000), 1.02)
    assert emulated.torque(1.0799) > 0.0
    assert emulated.torque(1.0801) == 0.0
    assert emulated.torque_until == emulated.next_event == pytest.approx(1.08)
    (report,) = send(emulated, command(4000), 1.2)
    assert report[7] == 0x0D
    assert not emulated.enabled
    assert emulated.torque(1.2) == 0.0
    (report,) = send(emulated, ENTER, 1.21)
    assert report[7] == 0
    assert emulated.enabled
    assert emulated.torque(1.21) == 0.0  # the old command is forgotten


@pytest.mark.parametrize("length", [0, 1, 6, 7])
def test_frames_of_another_length_keep_no_watchdog_quiet(length):
    emulated = drive(watchdog=0.05)
    send(emulated, ENTER, 1.0)
    send(emulated, command(4000), 1.0)
    for k in range(6):
        assert send(emulated, command(4000)[:length], 1.01 + 0.01 * k) == []
    assert emulated.torque(1.0601) == 0.0
    assert emulated.last_command == 1.0
    assert emulated.refused == 6


def test_without_a_watchdog_the_torque_stays():
    emulated = drive(DriveSettings(watchdog=False))
    send(emulated, ENTER, 1.0)
    send(emulated, command(4000), 1.0)
    assert emulated.torque(99.0) > 0.0
    assert emulated.next_event == math.inf


def test_leaving_faults_and_power_cycles_end_the_torque():
    for end in (
        lambda d: send(d, LEAVE, 2.0),
        lambda d: d.fail(2.0),
        lambda d: d.power_cycle(2.0),
    ):
        emulated = drive(DriveSettings(watchdog=False))
        send(emulated, ENTER, 1.0)
        send(emulated, command(4000), 1.0)
        end(emulated)
        send(emulated, command(4000), 2.2)
        assert emulated.torque(2.2) == 0.0
        assert not emulated.enabled


def test_a_fault_stays_until_motor_mode_is_left():
    emulated = drive()
    emulated.fail(1.0, 3)
    (report,) = send(emulated, ENTER, 1.1)
    assert report[7] == 3
    assert not emulated.enabled
    send(emulated, LEAVE, 1.2)
    send(emulated, ENTER, 1.3)
    assert emulated.enabled


def test_it_boots_after_a_power_cycle():
    emulated = drive(DriveSettings(boot_time=0.1))
    emulated.power_cycle(1.0)
    assert send(emulated, ENTER, 1.05) == []
    assert len(send(emulated, ENTER, 1.11)) == 1


def test_other_ranges_than_the_host_believes():
    own = {"position": (-12.5, 12.5), "velocity": (-50.0, 50.0), "torque": (-144.0, 144.0)}
    own |= {"kp": (0.0, 500.0), "kd": (0.0, 5.0)}
    emulated = drive(DriveSettings(ranges=own))
    send(emulated, ENTER, 1.0)
    send(emulated, command(4095), 1.0)
    assert emulated.torque(1.0) == pytest.approx(144.0)


def test_zero_is_where_it_was_called():
    emulated = drive()
    emulated.sense(2.0, 0.0)
    send(emulated, ZERO, 1.0)
    emulated.sense(2.5, 0.0)
    (report,) = send(emulated, ENTER, 1.0)
    assert fields(report)[1] * 25.0 / 65535 - 12.5 == pytest.approx(0.5, abs=1e-3)


def test_short_reports_and_another_master():
    emulated = drive(DriveSettings(report_length=6, master=0x7B))
    ((_, report),) = emulated.receive(frame(5, ENTER), 1.0)
    assert report.arbitration_id == 0x7B
    assert len(report.data) == 6
    assert emulated.receive(frame(6, ENTER), 1.0) == []


@given(st.lists(st.binary(min_size=8, max_size=8)), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_torque_is_within_the_range_whatever_comes(frames, position, velocity):
    emulated = drive()
    send(emulated, ENTER, 1.0)
    emulated.sense(position, velocity)
    for data in frames:
        (report,) = send(emulated, data, 1.0)
        assert abs(emulated.torque(1.0)) <= 18.0
        assert len(report) == 8
        assert report[0] == 5
