"""An emulated moteus drive: registers in CAN FD frames, written from their public description.

It shares no line with `hil.drives` or with the package of the manufacturer.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import can

from hil.emulator._drive import NEVER, DriveSettings, EmulatedDrive, Outgoing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hil.settings import Axis

STOPPED, FAULT, POSITION, TIMEOUT = 0, 1, 10, 11

DRIVER_FAULT = 33
"""Code of a fault of the motor driver."""

HOSTS = 0x00, 0x7D
"""Numbers of hosts to which it listens: tools of the manufacturer, and a rig."""

UNANSWERED, ANSWERED = 0x0000, 0x8000

_LENGTHS = *range(9), 12, 16, 20, 24, 32, 48, 64
_TYPES = tuple(map(struct.Struct, ("<b", "<h", "<i", "<f")))
_PWM = 1.0 / 127.0, 1.0 / 32767.0, 1.0 / 2147483647.0
_UNITS: dict[int, tuple[float, float, float]] = {
    # one step of each register as a number of 8, 16 and 32 bits
    **dict.fromkeys((0x001, 0x020, 0x026), (0.01, 0.0001, 0.00001)),
    **dict.fromkeys((0x002, 0x021), (0.1, 0.00025, 0.00001)),
    **dict.fromkeys((0x003, 0x022, 0x025), (0.5, 0.01, 0.001)),
    **dict.fromkeys((0x023, 0x024, 0x02B), _PWM),
    0x027: (0.01, 0.001, 0.000001),
    0x00D: (0.5, 0.1, 0.001),
    0x00E: (1.0, 0.1, 0.001),
}
_WHOLE = (1.0, 1.0, 1.0)
_DEFAULTS = {
    **dict.fromkeys((0x020, 0x021, 0x022, 0x027), 0.0),
    **dict.fromkeys((0x023, 0x024, 0x02B), 1.0),
    **dict.fromkeys((0x025, 0x026), math.nan),
}
"""Registers of a command that has not written them."""
_CONSTANT = {0x100: 0x10, 0x101: 0x000304, 0x102: 5, 0x00D: 24.0, 0x00E: 30.0, 0x00C: 1}


class EmulatedMoteus(EmulatedDrive):
    """A drive with the registers of moteus, which answers frames that request it.

    The time of a command ends in the mode "timeout", which only the mode "stopped" ends. Gains and
    other values are those of a drive as it comes from the factory, with `timeout_mode` of the
    settings.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Attributes
    ----------
    mode, code : int
        Mode and fault code.
    """

    kp, kd = 4.0, 1.0  # N m per turn, N m s per turn
    default_timeout = 0.1  # s
    damping_torque = 5.0  # largest torque of mode 12 after a timeout, N m

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        super().__init__(axis, settings)
        self._deaf_until = -NEVER
        self._console = b""
        self._started = 0.0
        self._switch_on()

    def _switch_on(self) -> None:
        self.mode, self.code = STOPPED, 0
        self._late = NEVER
        self._held = 0.0  # position that a command without position captures, turns
        self._command = dict(_DEFAULTS)

    @property
    def heard(self) -> frozenset[int]:
        return frozenset(
            bit | host << 8 | self.axis.node for bit in (UNANSWERED, ANSWERED) for host in HOSTS
        )

    @property
    def enabled(self) -> bool:
        return self.mode == POSITION or (self.mode == TIMEOUT and self.settings.timeout_mode != 0)

    @property
    def springy(self) -> bool:
        if self.mode == POSITION:
            return bool(self._command[0x023] or self._command[0x024])
        return self.enabled

    @property
    def torque_until(self) -> float:
        return self._late

    @property
    def next_event(self) -> float:
        return self._late

    # -- frames ----------------------------------------------------------------------------------

    def receive(self, frame: can.Message, now: float) -> Outgoing:
        self.poll(now)
        identifier, data = frame.arbitration_id, bytes(frame.data)
        if frame.is_remote_frame or identifier & 0xFF != self.axis.node or now < self._deaf_until:
            return []
        if identifier > 0x7FF and not frame.is_extended_id:
            return []
        out = bytearray()
        written: dict[int, float] = {}
        try:
            for kind, register, size, value in _subframes(data):
                if written and kind != "write":
                    self._obey(written, now)
                    written = {}
                if kind == "write":
                    written[register] = value
                elif kind == "read":
                    out += self._answered(register, size, value, now)
                elif kind == "console":
                    self._console += self._said(value)
                elif kind == "poll":
                    part, self._console = self._console[:value], self._console[value:]
                    out += bytes((0x41, 0x01, len(part))) + part
        except (ValueError, struct.error):
            self.refused += 1
            return []
        if written:
            self._obey(written, now)
        if not identifier & ANSWERED or not out:
            return []
        return [(now + self.settings.response_time, self._reply(identifier, out))]

    def _reply(self, identifier: int, out: bytearray) -> can.Message:
        to = self.axis.node << 8 | (identifier >> 8 & 0x7F)
        length = next(n for n in _LENGTHS if n >= len(out))
        return can.Message(
            arbitration_id=to,
            data=bytes(out).ljust(length, b"\x50"),
            is_extended_id=to > 0x7FF,
            is_fd=True,
            bitrate_switch=True,
        )

    def _obey(self, written: dict[int, float], now: float) -> None:
        """Apply the registers that a frame has written; the mode is among them in a command."""
        if 0x000 not in written:
            return
        mode = int(written[0x000])
        if mode == STOPPED:
            self._switch_on()
        elif mode == POSITION and self.mode in (STOPPED, POSITION):
            self.last_command = now
            self.mode = POSITION
            self._command = {**_DEFAULTS, **{k: v for k, v in written.items() if k in _DEFAULTS}}
            self._held = self._command[0x020]
            if math.isnan(self._held):
                self._held = self._turns()
            self._late = now + self._valid_for(self._command[0x027])

    def _valid_for(self, asked: float) -> float:
        """Time for which a command is valid, s."""
        if not self.settings.watchdog or math.isnan(asked):
            return NEVER
        if self.settings.timeout is not None:
            return self.settings.timeout
        return asked or self.default_timeout

    def _answered(self, register: int, size: int, count: int, now: float) -> bytes:
        head = 0x20 | size << 2
        out = bytes((head | count,)) if 0 < count < 4 else bytes((head, count))
        out += _varuint(register)
        for k in range(register, register + count):
            out += _packed(k, size, self.value(k, now))
        return out

    def value(self, register: int, now: float) -> float:
        """Value of a register.

        Parameters
        ----------
        register : int
            Number of the register.
        now : float
            The instant, s.

        Returns
        -------
        float
            In the unit of the register.
        """
        if register in _CONSTANT:
            return _CONSTANT[register]
        if 0x120 <= register <= 0x122:
            return (0x30475105, 0x36383437, 0x00400000 + self.axis.node)[register - 0x120]
        if register == 0x000:
            return self.mode
        if register == 0x001:
            return self._turns()
        if register == 0x002:
            return self._motor_speed() / math.tau
        if register == 0x003:
            return self._shaft_torque(now)
        if register == 0x00F:
            return self.code
        if register == 0x070:
            return self._clock(now)
        if register in self._command:
            return self._command[register]
        raise ValueError(f"register {register:#05x}")

    def _clock(self, now: float) -> float:
        return float(int(1e3 * (now - self._started)))

    def _said(self, text: bytes) -> bytes:
        """Answer of the console."""
        words = text.decode(errors="replace").split()
        if words == ["conf", "get", "servo.timeout_mode"]:
            return f"{self.settings.timeout_mode}\r\n".encode()
        if words == ["d", "stop"]:
            self._switch_on()
            return b"OK\r\n"
        return b"ERR unknown\r\n"

    # -- torque ----------------------------------------------------------------------------------

    def _turns(self) -> float:
        """Position by the encoder, turns."""
        turns = self._motor_angle() / math.tau
        counts = self.settings.counts
        return turns if counts is None else self._count(turns, 1.0 / counts) / counts

    def poll(self, now: float) -> Outgoing:
        if now >= self._late:
            self._late = NEVER
            if self.mode == POSITION:
                self.mode = TIMEOUT
                self._held = self._turns()
        return []

    def torque(self, now: float) -> float:
        return self._at_joint(self._shaft_torque(now))

    def _shaft_torque(self, now: float) -> float:
        """Torque of the shaft as the drive measures it by its current, N m."""
        speed = self._motor_speed() / math.tau
        if self.mode == POSITION and now < self._late:
            command = self._command
            kp = self.kp * command[0x023]
            kd = self.kd * min(command[0x023], command[0x024])
            away = self._held - self._turns() if kp else 0.0
            shaft = kp * away + kd * (command[0x021] - speed) + command[0x022]
            largest = command[0x025]
            if not math.isnan(largest):
                shaft = max(-largest, min(largest, shaft))
        elif self.mode in (POSITION, TIMEOUT) and self.settings.timeout_mode in (10, 12, 15):
            away = self._held - self._turns() if self.settings.timeout_mode == 10 else 0.0
            shaft = self.kp * away - self.kd * speed
            shaft = max(-self.damping_torque, min(self.damping_torque, shaft))
        else:
            return 0.0
        return shaft

    def power_cycle(self, now: float) -> None:
        self._switch_on()
        self._console = b""
        self._deaf_until = self._started = now + self.settings.boot_time

    def fail(self, now: float, code: int = 0) -> Outgoing:
        self.mode, self.code, self._late = FAULT, code or DRIVER_FAULT, NEVER
        return []


def _subframes(data: bytes) -> Iterator[tuple[str, int, int, Any]]:
    """Kind, first register, type and value (number of registers, text) of each part of a frame."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            if place >= len(data):
                raise ValueError("an incomplete number")
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while place < len(data):
        head = data[place]
        place += 1
        family, size, count = head & 0xF0, head >> 2 & 3, head & 3
        if head == 0x50:
            continue
        if family in (0x00, 0x10):
            count = count or number()
            register = number()
            if family == 0x10:
                yield "read", register, size, count
                continue
            for k in range(count):
                (raw,) = _TYPES[size].unpack_from(data, place)
                place += _TYPES[size].size
                yield "write", register + k, size, _value(register + k, size, raw)
        elif head in (0x40, 0x42):
            number()  # channel
            length = number()
            if head == 0x42:
                yield "poll", 0, 0, length
            else:
                yield "console", 0, 0, data[place : place + length]
                place += length
        else:
            raise ValueError(f"a subframe {head:#04x}")


def _value(register: int, size: int, raw: float) -> float:
    """Number of a register from its code; the most negative whole number means NaN."""
    if size == 3:
        return raw
    if raw == -(1 << 8 * _TYPES[size].size - 1):
        return math.nan
    return raw * _UNITS.get(register, _WHOLE)[size]


def _packed(register: int, size: int, value: float) -> bytes:
    if size == 3:
        return _TYPES[3].pack(value)
    largest = (1 << 8 * _TYPES[size].size - 1) - 1
    if math.isnan(value):
        return _TYPES[size].pack(-largest - 1)
    steps = round(value / _UNITS.get(register, _WHOLE)[size])
    if register == 0x070:  # wraps
        steps = (steps + largest + 1) % (2 * largest + 2) - largest - 1
    return _TYPES[size].pack(max(-largest, min(largest, steps)))


def _varuint(number: int) -> bytes:
    out = b""
    while True:
        byte, number = number & 0x7F, number >> 7
        if not number:
            return out + bytes((byte,))
        out += bytes((byte | 0x80,))
