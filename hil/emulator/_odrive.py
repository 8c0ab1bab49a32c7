"""An emulated ODrive: messages of CANSimple, from the public description of the protocol.

It shares no line with `hil.drives`.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import can

from hil.emulator._drive import NEVER, DriveSettings, EmulatedDrive, Outgoing, message

if TYPE_CHECKING:
    from hil.settings import Axis

UNDEFINED, IDLE, CLOSED_LOOP = 0, 1, 8
POSITION, VELOCITY, TORQUE = 3, 2, 1

WATCHDOG_EXPIRED, DRIVE_FAULT, ESTOP = 0x01000000, 0x20, 0x02000000

BEAT = 0.1
"""Time between heartbeats that are not requested, s."""

_NAMES = {
    **{0x00: "version", 0x01: "heartbeat", 0x02: "estop", 0x03: "errors", 0x04: "sdo"},
    **{0x06: "address", 0x07: "state", 0x09: "estimates", 0x0B: "mode", 0x0C: "position"},
    **{0x0D: "velocity", 0x0E: "torque", 0x16: "reboot", 0x18: "clear", 0x1C: "torques"},
}


class EmulatedODrive(EmulatedDrive):
    """An axis of an ODrive, which answers remote frames and obeys inputs in closed loop.

    Its watchdog is fed by inputs, and expires in the idle state too. Where the settings do not
    state another time, it is set as in the rig file, as by USB.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Attributes
    ----------
    state, error, mode : int
        State and errors of the axis, and control mode.
    endpoints : dict of int to bytes
        Values by number, for the endpoints of the rig file.
    """

    gains = 20.0, 0.16  # 1/s, N m s per turn: of position and velocity control

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        super().__init__(axis, settings)
        self._deaf_until = -NEVER
        numbers = axis.endpoints
        own = self.settings.timeout
        self._timeout = axis.watchdog if own is None else own
        self.endpoints = {}
        if numbers:
            self.endpoints = {
                numbers["watchdog_timeout"]: struct.pack("<f", self._timeout),
                numbers["enable_watchdog"]: bytes((self.settings.watchdog,)),
            }
        self._beat = NEVER
        self._switch_on()

    def _switch_on(self) -> None:
        self.state, self.error, self.mode = IDLE, 0, POSITION
        self._input = (0.0, 0.0, 0.0)
        self._late = NEVER

    @property
    def heard(self) -> frozenset[int]:
        return frozenset(self.axis.node << 5 | number for number in _NAMES)

    @property
    def enabled(self) -> bool:
        return self.state == CLOSED_LOOP

    @property
    def springy(self) -> bool:
        return self.enabled and self.mode != TORQUE

    @property
    def torque_until(self) -> float:
        return self._late

    @property
    def next_event(self) -> float:
        return min(self._late, self._beat)

    # -- frames ----------------------------------------------------------------------------------

    def receive(self, frame: can.Message, now: float) -> Outgoing:
        out = self.poll(now)
        if frame.is_extended_id or frame.is_fd or now < self._deaf_until:
            return out
        if self._beat == NEVER:
            self._beat = now + BEAT
        if frame.arbitration_id >> 5 != self.axis.node:
            return out
        name, data = _NAMES.get(frame.arbitration_id & 0x1F), bytes(frame.data)
        if frame.is_remote_frame:
            answer = self._answer(name, now)
        else:
            try:
                answer = self._obey(name, data, now)
            except struct.error:
                self.refused += 1
                return out
        if answer is not None:
            number, content = answer
            identifier = self.axis.node << 5 | number
            out = [*out, (now + self.settings.response_time, message(identifier, content))]
        return out

    def _answer(self, name: str | None, now: float) -> tuple[int, bytes] | None:
        """Number and data of a message that was requested."""
        if name == "version":
            return 0x00, bytes((2, 4, 4, 58, 0, 6, 10, 0))
        if name == "heartbeat":
            return 0x01, struct.pack("<IBBBx", self.error, self.state, 0, 0)
        if name == "errors":
            return 0x03, struct.pack("<II", self.error, self.error)
        if name == "address":
            return 0x06, bytes((self.axis.node,)) + (0x3873_0000_0000 + self.axis.node).to_bytes(
                6, "little"
            )
        if name == "estimates":
            return 0x09, struct.pack("<ff", self._turns(), self._motor_speed() / math.tau)
        if name == "torques":
            return 0x1C, struct.pack("<ff", self._target(now), self._shaft_torque(now))
        return None

    def _obey(self, name: str | None, data: bytes, now: float) -> tuple[int, bytes] | None:
        if name in ("position", "velocity", "torque"):
            if name == "torque":
                given = (0.0, 0.0, *struct.unpack("<f", data))
            elif name == "velocity":
                given = (0.0, *struct.unpack("<ff", data))
            else:
                position, velocity, torque = struct.unpack("<fhh", data)
                given = (position, 1e-3 * velocity, 1e-3 * torque)
            if not all(map(math.isfinite, given)):
                self.refused += 1
                return None
            self._feed(now)
            self._input = given
        elif name == "state":
            (wanted,) = struct.unpack("<I", data)
            if wanted == IDLE:
                self.state = IDLE
            elif wanted == CLOSED_LOOP and not self.error:
                self.state = CLOSED_LOOP
        elif name == "mode":
            self.mode, _ = struct.unpack("<II", data)
        elif name == "clear":
            self.error = 0
            self._restart_watchdog(now)
        elif name == "estop":
            self._disarm(ESTOP)
        elif name == "reboot":
            self.power_cycle(now)
        elif name == "sdo":
            return self._served(data)
        return None

    def _served(self, data: bytes) -> tuple[int, bytes] | None:
        """Read or write an endpoint."""
        operation, number = struct.unpack_from("<BH", data)
        if number not in self.endpoints:
            return None
        size = len(self.endpoints[number])
        if operation == 1:
            self.endpoints[number] = data[4 : 4 + size]
            if number == self.axis.endpoints["watchdog_timeout"]:
                (self._timeout,) = struct.unpack("<f", self.endpoints[number])
            return None
        return 0x05, struct.pack("<BHB", 0, number, 0) + self.endpoints[number]

    def _feed(self, now: float) -> None:
        self.last_command = now
        self._restart_watchdog(now)

    def _restart_watchdog(self, now: float) -> None:
        self._late = now + self._timeout if self._watches() else NEVER

    def _watches(self) -> bool:
        """Whether the watchdog is enabled."""
        if not self.settings.watchdog or not self.axis.endpoints:
            return self.settings.watchdog
        return self.endpoints[self.axis.endpoints["enable_watchdog"]] != b"\x00"

    # -- torque ----------------------------------------------------------------------------------

    def _turns(self) -> float:
        turns = self._motor_angle() / math.tau
        counts = self.settings.counts
        return turns if counts is None else self._count(turns, 1.0 / counts) / counts

    def poll(self, now: float) -> Outgoing:
        out: Outgoing = []
        if now >= self._late:
            self._late = NEVER
            self._disarm(WATCHDOG_EXPIRED)
        if now >= self._beat:
            self._beat = now + BEAT
            _, data = self._answer("heartbeat", now) or (0, b"")
            out = [(now, message(self.axis.node << 5 | 0x01, data))]
        return out

    def _disarm(self, error: int) -> None:
        self.state = IDLE
        self.error |= error

    def _target(self, now: float) -> float:
        """Torque that the controller requests, N m."""
        if not self.enabled or now >= self._late:
            return 0.0
        position, velocity, torque = self._input
        if self.mode == TORQUE:
            return torque
        stiffness, damping = self.gains
        if self.mode == POSITION:
            velocity += stiffness * (position - self._turns())
        return torque + damping * (velocity - self._motor_speed() / math.tau)

    def _shaft_torque(self, now: float) -> float:
        """Torque of the shaft as the drive estimates it by its current, N m."""
        return self._target(now)

    def torque(self, now: float) -> float:
        return self._at_joint(self._target(now))

    def power_cycle(self, now: float) -> None:
        self._switch_on()
        self._beat = self._deaf_until = now + self.settings.boot_time

    def fail(self, now: float, code: int = 0) -> Outgoing:
        self._disarm(code or DRIVE_FAULT)
        return []
