"""An emulated CiA 402 drive in cyclic synchronous torque mode.

The server of service data objects is canopen's. Process data, states and watchdogs are implemented
here and share no code with the host's drive class, so that each tests the other.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Literal

from canopen.sdo.exceptions import SdoAbortedError

from hil.emulator._cia402_machine import PowerState, after
from hil.emulator._cia402_objects import UNSUPPORTED_VALUE, Objects, Pdo
from hil.emulator._drive import (
    NEVER,
    DriveSettings,
    EmulatedDrive,
    Outgoing,
    is_plain,
)
from hil.emulator._objects import TORQUE_MODE, dictionary

if TYPE_CHECKING:
    import can

    from hil.settings import Axis

PRE_OPERATIONAL, OPERATIONAL, STOPPED, BOOTING = 127, 5, 4, 0
"""States of network management, as in a heartbeat."""

HEARTBEAT_LOST, LENGTH_SHORT, LENGTH_LONG, PDO_LATE = 0x8130, 0x8210, 0x8220, 0x8250
OVERCURRENT = 0x2310
"""Codes of emergency frames."""

_NMT = {1: OPERATIONAL, 2: STOPPED, 128: PRE_OPERATIONAL}
_RESET_NODE, _RESET_COMMUNICATION = 129, 130


_REMOTE, _VOLTAGE, _FOLLOWS, _LIMITED = 1 << 9, 1 << 4, 1 << 12, 1 << 11

_LIVE = frozenset(
    {0x1001, 0x603F, 0x6040, 0x6041, 0x6060, 0x6061, 0x6064, 0x606C, 0x6071, 0x6072, 0x6077}
)  # objects whose values are stored here, not in the server
_SETUP = frozenset({0x1005, 0x1016, 0x1400, 0x1401, 0x1800, 0x1801, 0x6007})
# objects that `_configure` reads; mappings change only while their process data are invalid


class EmulatedCia402(EmulatedDrive):
    """A torque drive on a CAN bus, as specified in CiA 301 and IEC 61800-7-201.

    Two watchdogs can be set: a heartbeat consumer (0x1016), and the event timer of the received
    process data (0x1400:5). When one expires, the drive sends an emergency frame and reacts as set
    in 0x6007 and 0x1029. Frames of a wrong length feed neither watchdog.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Attributes
    ----------
    state : PowerState
        State of the power drive system.
    network_state : int
        State of network management: 0 booting, 4 stopped, 5 operational, 127 pre-operational.
    """

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        super().__init__(axis, settings)
        own = self.settings
        self._unit = own.torque_unit or axis.torque_unit
        self._counts = axis.counts if own.counts is None else own.counts
        rated = axis.rated_torque if own.rated_torque is None else own.rated_torque
        self._rated = round(rated * 1000.0) * 1e-3  # in the resolution of 0x6076
        self._peak = round(own.peak * 1000.0)
        self._changed: dict[int, int] = {}
        self._now = 0.0
        self._switch_on()
        self._boot_at = -NEVER  # at the first poll

    def _switch_on(self) -> None:
        """Set the state after power-on: all written values are lost."""
        node = self.axis.node
        rated = round(self._rated / self.axis.rated_torque_unit)
        objects = dictionary(node, rated, self._counts, self._peak, self.settings.watchdog)
        for index, value in self._changed.items():
            variable = objects.get_variable(index)
            if variable is not None:
                variable.default = value
        self._objects = Objects(node, objects, self._written, self._read)
        self._outlet = self._objects.outlet
        self.network_state = BOOTING
        self.state = PowerState.NOT_READY
        self._control = 0
        self._target = 0
        self._mode = 0
        self._limit = self._limit_read_back = self._changed.get(0x6072, self._peak)
        self._error_code = 0
        self._change_at = NEVER  # end of a state that ends without a command
        self._heartbeat_due = NEVER
        self._host_late = NEVER
        self._command_late = NEVER
        self._syncs = 0
        self._held: bytes | None = None
        self._events = [NEVER, NEVER]
        self._configure()

    # -- objects -------------------------------------------------------------------------------

    def _value(self, index: int) -> int:
        """Value of an object; process values are computed or stored here."""
        match index:
            case 0x6041:
                return self.status
            case 0x6064:
                counts = self._count(self._motor_angle(), math.tau / self._counts)
                return counts % self.axis.modulo if self.axis.modulo else _wrapped(counts, 32)
            case 0x606C:
                return _bounded(self._count(self._motor_speed(), math.tau / self._counts), 32)
            case 0x6077:
                return self._applied()
            case 0x6040:
                return self._control
            case 0x6071:
                return self._target
            case 0x6060 | 0x6061:
                return self._mode
            case 0x6072:
                return self._limit_read_back
            case 0x603F:
                return self._error_code
            case 0x1001:
                return int(self.state in (PowerState.FAULT, PowerState.FAULT_REACTION_ACTIVE))
        return self._objects.value(index)

    def _read(self, index: int, **_: Any) -> int | None:
        """Answer a read of an object that the server does not store."""
        return self._value(index) if index in _LIVE else None

    def _written(self, index: int, subindex: int, od: Any, data: bytes) -> None:
        """Accept or reject a value that is about to be written."""
        value = int(od.decode_raw(bytes(data)))
        if index in (0x1400, 0x1401, 0x1800, 0x1801):
            self._objects.check_communication(index, subindex, value)
        elif index in (0x1600, 0x1601, 0x1A00, 0x1A01):
            self._objects.check_mapping(index, subindex, value)
        elif index == 0x6060:
            if value not in (0, TORQUE_MODE):
                raise SdoAbortedError(UNSUPPORTED_VALUE)
            self._mode = value
        elif index == 0x6007:
            if value not in (0, 1, 2, 3):
                raise SdoAbortedError(UNSUPPORTED_VALUE)
        elif index == 0x605A:
            if value not in (0, 1, 2, 5, 6):
                raise SdoAbortedError(UNSUPPORTED_VALUE)
        elif index == 0x605E or index == 0x1029:
            if value not in (0, 1, 2):
                raise SdoAbortedError(UNSUPPORTED_VALUE)
        elif index == 0x6072:
            self._set_limit(value)
        elif index == 0x6040:
            self._command(value)
        elif index == 0x6071:
            self._target = value
        elif index == 0x1016:
            self._host_late = NEVER  # monitored from the host's next heartbeat on
        elif index == 0x1017:
            self._heartbeat_due = self._now + value * 1e-3 if value else NEVER
        self._stale |= index in _SETUP

    def _set_limit(self, value: int) -> None:
        behaviour: Literal["applied", "ignored", "pretended"] = self.settings.limit
        if behaviour != "ignored":
            self._limit_read_back = value
        if behaviour == "applied":
            self._limit = value

    def _configure(self) -> None:
        """Read the process data objects from the dictionary, after writes of `_SETUP`."""
        self._stale = False
        self._received = [self._objects.pdo(0x1400 + k, 0x1600 + k) for k in range(2)]
        self._sent = [self._objects.pdo(0x1800 + k, 0x1A00 + k) for k in range(2)]
        self._consumed = self._objects.value(0x1016, 1)
        self._sync = self._objects.value(0x1005) & 0x7FF
        self._abort_option = self._objects.value(0x6007)
        host = self._consumed >> 16 & 0x7F
        node = self.axis.node
        heard = {0x000, self._sync, 0x600 + node}
        heard |= {pdo.identifier for pdo in self._received if pdo.valid}
        if self._consumed & 0xFFFF and host:
            heard.add(0x700 + host)
        self._heard = frozenset(heard)

    # -- interface of EmulatedDrive ------------------------------------------------------------

    @property
    def heard(self) -> frozenset[int]:
        return self._heard

    @property
    def enabled(self) -> bool:
        return self.state is PowerState.OPERATION_ENABLED

    @property
    def status(self) -> int:
        """Status word, 0x6041."""
        word = int(self.state) | _REMOTE
        if self.state is not PowerState.NOT_READY:
            word |= _VOLTAGE
        if self.enabled and self._mode == TORQUE_MODE:
            word |= _FOLLOWS
            if self._applied() != self._target:
                word |= _LIMITED
        if self.state in (PowerState.SWITCH_ON_DISABLED, PowerState.FAULT):
            word |= 1 << 5  # no quick stop
        return word

    @property
    def torque_until(self) -> float:
        return min(self._host_late, self._command_late) if self._abort_option else NEVER

    @property
    def next_event(self) -> float:
        first, second = self._events
        return min(
            self._boot_at,
            self._change_at,
            self._heartbeat_due,
            self._host_late,
            self._command_late,
            first,
            second,
        )

    def receive(self, frame: can.Message, now: float) -> Outgoing:
        out = self.poll(now)
        identifier = frame.arbitration_id
        if identifier not in self._heard or not is_plain(frame):
            return out
        if self.network_state == BOOTING:
            return out
        self._now = now
        if identifier == self._received[0].identifier or identifier == self._received[1].identifier:
            self._take_pdo(frame, now)
        elif identifier == self._sync:
            self._take_sync(frame, now)
        elif identifier == 0x000:
            self._take_management(frame, now)
        elif identifier >= 0x700:
            self._take_heartbeat(frame, now)
        elif self.network_state != STOPPED:
            self._take_service(frame, now)
        return out + self._flush(now)

    def poll(self, now: float) -> Outgoing:
        if now < self.next_event:
            return []
        self._now = now
        if now >= self._boot_at:
            self._boot_at = NEVER
            self.network_state = PRE_OPERATIONAL
            self.state = PowerState.SWITCH_ON_DISABLED
            self._outlet.send_message(0x700 + self.axis.node, b"\x00")
        if now >= self._change_at:
            self._change_at = NEVER
            self.state = (
                PowerState.FAULT
                if self.state is PowerState.FAULT_REACTION_ACTIVE
                else PowerState.SWITCH_ON_DISABLED
            )
        if now >= self._host_late:
            self._host_late = NEVER  # until the next heartbeat
            self._lose_host(HEARTBEAT_LOST, now)
        if now >= self._command_late:
            self._command_late = NEVER
            self._lose_host(PDO_LATE, now)
        if now >= self._heartbeat_due:
            period = self._objects.value(0x1017) * 1e-3
            self._heartbeat_due = now + period if period else NEVER
            self._outlet.send_message(0x700 + self.axis.node, bytes([self.network_state]))
        for k, due in enumerate(self._events):
            if now >= due:
                self._send_pdo(k, now)
        return self._flush(now)

    def torque(self, now: float) -> float:
        if not self.enabled or now >= self.torque_until:
            return 0.0  # an expired watchdog acts even before it is polled
        return self._at_joint(self._applied() * 1e-3 * self._unit_torque())

    def power_cycle(self, now: float) -> None:
        self._changed = dict(self.settings.after_power_cycle)
        self._switch_on()
        self._boot_at = now + self.settings.boot_time

    def fail(self, now: float, code: int = 0) -> Outgoing:
        self._now = now
        if self.network_state != BOOTING:
            self._fault(code or OVERCURRENT, now)
        return self._flush(now)

    # -- frames --------------------------------------------------------------------------------

    def _take_management(self, frame: can.Message, now: float) -> None:
        """A command of network management."""
        if len(frame.data) != 2:
            self.refused += 1
            return
        command, node = frame.data
        if node not in (0, self.axis.node):
            return
        if command in (_RESET_NODE, _RESET_COMMUNICATION):
            self._switch_on()
            self._boot_at = now + self.settings.boot_time
        elif command in _NMT:
            before, self.network_state = self.network_state, _NMT[command]
            if before == OPERATIONAL != self.network_state and self.enabled:
                self._abort_connection(PDO_LATE, now)
            if self.network_state == OPERATIONAL != before:
                self._events = [
                    now if pdo.valid and pdo.transmission >= 254 else NEVER for pdo in self._sent
                ]
            elif self.network_state != OPERATIONAL:
                self._events = [NEVER, NEVER]
                self._command_late = NEVER

    def _take_service(self, frame: can.Message, now: float) -> None:
        """A request to read or write an object."""
        if len(frame.data) != 8:
            self.refused += 1
            return
        try:
            self._outlet.notify(frame.arbitration_id, bytearray(frame.data), now)
        except (struct.error, TypeError, AttributeError):
            self.refused += 1  # canopen's server raises for a transfer that was never begun
        if self._stale:
            self._configure()

    def _take_heartbeat(self, frame: can.Message, now: float) -> None:
        data = frame.data
        if len(data) != 1 or data[0] not in (PRE_OPERATIONAL, OPERATIONAL, STOPPED, BOOTING):
            self.refused += 1
            return
        self._host_late = now + (self._consumed & 0xFFFF) * 1e-3
        self.last_command = now

    def _take_pdo(self, frame: can.Message, now: float) -> None:
        """Receive the commands of a cycle."""
        if self.network_state != OPERATIONAL:
            return
        for pdo in self._received:
            if not pdo.valid or frame.arbitration_id != pdo.identifier:
                continue
            if len(frame.data) != pdo.format.size:
                self.refused += 1
                short = len(frame.data) < pdo.format.size
                self._emergency(LENGTH_SHORT if short else LENGTH_LONG)
                return
            self.last_command = now
            self._command_late = now + pdo.period if pdo.period else NEVER
            if pdo.transmission >= 254:
                self._apply(pdo, bytes(frame.data))
            else:
                self._held = bytes(frame.data)

    def _apply(self, pdo: Pdo, data: bytes) -> None:
        word = None
        for index, value in zip(pdo.objects, pdo.format.unpack(data), strict=True):
            if index == 0x6071:
                self._target = value
            elif index == 0x6040:
                word = value
            elif index == 0x6060 and value in (0, TORQUE_MODE):
                self._mode = value
            elif index == 0x6072:
                self._set_limit(value)
        if word is not None:
            self._command(word)

    def _take_sync(self, frame: can.Message, now: float) -> None:
        if self.network_state != OPERATIONAL:
            return
        if len(frame.data) > 1:
            self.refused += 1
            return
        self._syncs += 1
        for k, pdo in enumerate(self._sent):
            # 0: only after a change of values, which is always the case in a moving robot.
            every = max(pdo.transmission, 1)
            if pdo.valid and pdo.transmission <= 240 and self._syncs % every == 0:
                self._send_pdo(k, now)
        if self._held is not None:
            for pdo in self._received:
                if pdo.valid and pdo.transmission <= 240:
                    self._apply(pdo, self._held)
            self._held = None

    def _send_pdo(self, number: int, now: float) -> None:
        pdo = self._sent[number]
        values = [self._value(index) for index in pdo.objects]
        self._outlet.send_message(pdo.identifier, pdo.format.pack(*values))
        timed = pdo.transmission >= 254 and pdo.period
        self._events[number] = now + pdo.period if timed else NEVER

    def _flush(self, now: float) -> Outgoing:
        sent, self._outlet.sent = self._outlet.sent, []
        due = now + self.settings.response_time
        return [(due, frame) for frame in sent]

    # -- states --------------------------------------------------------------------------------

    def _command(self, word: int) -> None:
        """Apply a control word."""
        before, self._control = self._control, word
        state = after(self.state, word, before)
        if state is PowerState.QUICK_STOP_ACTIVE and self.state is not state:
            self._quick_stop(self._now)
            return
        if self.state is PowerState.FAULT and state is not self.state:
            self._error_code = 0
            self._emergency(0)
        if state is not self.state and self.state is PowerState.QUICK_STOP_ACTIVE:
            self._change_at = NEVER
        self.state = state

    def _quick_stop(self, now: float) -> None:
        """Perform a quick stop as set in 0x605A: at once, for a time, or until a command."""
        option = self._objects.value(0x605A)
        self.state = PowerState.QUICK_STOP_ACTIVE if option else PowerState.SWITCH_ON_DISABLED
        self._change_at = now + self.settings.reaction_time if option in (1, 2) else NEVER

    def _fault(self, code: int, now: float) -> None:
        if self.state not in (PowerState.FAULT, PowerState.FAULT_REACTION_ACTIVE):
            self.state = PowerState.FAULT_REACTION_ACTIVE
            self._change_at = now + self.settings.reaction_time
        self._error_code = code
        self._emergency(code)

    def _lose_host(self, code: int, now: float) -> None:
        """React to an expired watchdog."""
        if self.network_state != OPERATIONAL:
            return
        self._abort_connection(code, now)
        behaviour = self._objects.value(0x1029, 1)
        if behaviour != 1:
            self.network_state = STOPPED if behaviour == 2 else PRE_OPERATIONAL
            self._events = [NEVER, NEVER]

    def _abort_connection(self, code: int, now: float) -> None:
        """React to the loss of the host as set in 0x6007."""
        option = self._abort_option
        if option == 1:
            self._fault(code, now)
            return
        self._emergency(code)
        if option == 2 and self.state is not PowerState.FAULT:
            self.state = PowerState.SWITCH_ON_DISABLED
        elif option == 3 and self.enabled:
            self._quick_stop(now)

    def _emergency(self, code: int) -> None:
        register = 0 if code == 0 else 0x11 if code & 0xFF00 in (0x8100, 0x8200) else 0x01
        self._objects.server.emcy.send(code, register)

    # -- torque --------------------------------------------------------------------------------

    def _unit_torque(self) -> float:
        """Torque of the motor at 1000 per mille, or 1000 counts, N m."""
        if self._unit == "count":
            return 1000.0 * self.axis.torque_count
        return self._rated if self._unit == "rated" else self._rated * self._limit * 1e-3

    def _applied(self) -> int:
        """Torque of the motor, in the unit of the target torque."""
        if not self.enabled or self._mode != TORQUE_MODE:
            return 0
        if self._unit == "count":
            return self._target
        limit = min(self._limit, self._peak) if self._unit == "rated" else 1000
        return max(-limit, min(limit, self._target))


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _bounded(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return max(-half, min(half - 1, value))
