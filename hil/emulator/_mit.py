"""An emulated drive of the MIT mini-cheetah protocol (mini-cheetah, T-Motor AK and similar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hil.emulator._drive import (
    NEVER,
    DriveSettings,
    EmulatedDrive,
    Outgoing,
    is_plain,
    message,
)

if TYPE_CHECKING:
    import can

    from hil.settings import Axis

ENTER, LEAVE, ZERO = (b"\xff" * 7 + bytes([last]) for last in (0xFC, 0xFD, 0xFE))
"""Frames that are not commands: enter motor mode, leave it, set this position to zero."""

OVERCURRENT = 2
"""T-Motor's code of overcurrent."""

COMMANDS_CEASED = 0x0D
"""Code reported after the drive has left motor mode because commands ceased."""

TEMPERATURE = 30 + 40
"""Temperature in a report of 8 bytes: degrees Celsius plus 40."""


class EmulatedMit(EmulatedDrive):
    """A torque drive of the MIT protocol, which answers each command with a report.

    Beyond its range the reported position wraps around, as in the mini-cheetah's firmware.
    Frames of another length than 8 are not commands.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Attributes
    ----------
    error : int
        Reported error code; 0: no error.
    """

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        super().__init__(axis, settings)
        own = self.settings
        self._ranges = dict(_usual_ranges(axis) if own.ranges is None else own.ranges)
        self._timeout = axis.watchdog if own.timeout is None else own.timeout
        self._zero = 0.0  # survives the loss of power, as it is stored in the drive's flash
        self._deaf_until = -NEVER
        self._switch_on()

    def _switch_on(self) -> None:
        self._motor_mode = False
        self._late = NEVER
        self._demand = (0.0, 0.0, 0.0, 0.0, 0.0)
        self.error = 0

    @property
    def springy(self) -> bool:
        return bool(self._motor_mode and (self._demand[2] or self._demand[3]))

    @property
    def heard(self) -> frozenset[int]:
        return frozenset({self.axis.node})

    @property
    def enabled(self) -> bool:
        return self._motor_mode

    @property
    def torque_until(self) -> float:
        return self._late

    @property
    def next_event(self) -> float:
        return self._late

    def receive(self, frame: can.Message, now: float) -> Outgoing:
        self.poll(now)
        if frame.arbitration_id != self.axis.node or not is_plain(frame) or now < self._deaf_until:
            return []
        data = bytes(frame.data)
        if len(data) != 8:
            self.refused += 1
            return []
        self.last_command = now
        if self.settings.watchdog:
            self._late = now + self._timeout
        if data == ENTER:
            self._demand = (0.0, 0.0, 0.0, 0.0, 0.0)
            self.error = 0 if self.error == COMMANDS_CEASED else self.error
            self._motor_mode = self.error == 0
        elif data == LEAVE:
            self._switch_on()
        elif data == ZERO:
            self._zero = self._motor_angle()
        elif self._motor_mode:
            self._demand = self._unpacked(data)
        return [(now + self.settings.response_time, self._report(now))]

    def poll(self, now: float) -> Outgoing:
        if now >= self._late:
            self._late = NEVER
            if self._motor_mode:
                self._motor_mode = False
                self.error = COMMANDS_CEASED
        return []

    def torque(self, now: float) -> float:
        if not self._motor_mode or now >= self._late:
            return 0.0
        position, velocity, kp, kd, torque = self._demand
        if kp:
            torque += kp * (position - self._shaft_angle())
        if kd:
            torque += kd * (velocity - self._motor_speed())
        low, high = self._ranges["torque"]
        return self._at_joint(max(low, min(high, torque)))

    def power_cycle(self, now: float) -> None:
        self._switch_on()
        self._deaf_until = now + self.settings.boot_time

    def fail(self, now: float, code: int = 0) -> Outgoing:
        self._motor_mode = False
        self.error = code or OVERCURRENT
        return []

    def _shaft_angle(self) -> float:
        return self._motor_angle() - self._zero

    def _unpacked(self, data: bytes) -> tuple[float, float, float, float, float]:
        """Position, velocity, kp, kd and torque of a command."""
        codes = (
            data[0] << 8 | data[1],
            data[2] << 4 | data[3] >> 4,
            (data[3] & 0x0F) << 8 | data[4],
            data[5] << 4 | data[6] >> 4,
            (data[6] & 0x0F) << 8 | data[7],
        )
        values = []
        for code, name in zip(codes, ("position", "velocity", "kp", "kd", "torque"), strict=True):
            low, high = self._ranges[name]
            values.append(low + code * (high - low) / (65535 if name == "position" else 4095))
        return values[0], values[1], values[2], values[3], values[4]

    def _report(self, now: float) -> can.Message:
        low, high = self._ranges["position"]
        position = self._count(self._shaft_angle() - low, (high - low) / 65535.0) & 0xFFFF
        velocity = self._code("velocity", self._motor_speed())
        joint = self.axis.direction * self.axis.gear
        torque = self._code("torque", self.torque(now) / joint)
        data = [
            self.axis.node & 0xFF,
            position >> 8,
            position & 0xFF,
            velocity >> 4,
            (velocity & 0x0F) << 4 | torque >> 8,
            torque & 0xFF,
            TEMPERATURE,
            self.error,
        ]
        return message(self.settings.master, bytes(data[: self.settings.report_length]))

    def _code(self, name: str, value: float) -> int:
        low, high = self._ranges[name]
        share = (min(max(value, low), high) - low) / (high - low)
        return self._count(share, 1.0 / 4095.0)


def _usual_ranges(axis: Axis) -> Mapping[str, tuple[float, float]]:
    if axis.ranges:
        return axis.ranges
    from hil.drives.mit_models import mit_ranges  # slow import, which few processes need

    return mit_ranges(axis)
