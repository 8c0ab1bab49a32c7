"""The process data of a CiA 402 drive: frames that are sent and read in each cycle."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import can

from hil.drives._cia402_following import MISFIT, Following
from hil.drives._cia402_setup import HOST_NODE, MODE, TORQUE, TORQUE_MODE
from hil.drives._cia402_state import (
    FAULTS,
    FOLLOWS,
    REMOTE,
    VOLTAGE_ENABLED,
    Controlword,
    DriveState,
    next_controlword,
    state_of,
)
from hil.drives._drive import AxisCheck, CycleFrame, Drive, FaultCode, Finding, Wanted
from hil.drives._network import Nmt, SdoSession
from hil.drives._units import AxisScale, Turns, first_turn, middle_of
from hil.errors import DriveError, UnitError
from hil.links import Link

if TYPE_CHECKING:
    from hil.drives.feedback import Feedback
    from hil.settings import Axis, Rig

SYNC_IDENTIFIER = 0x080
NMT_IDENTIFIER = 0x000

_COMMAND = struct.Struct("<Hh")
_REPORTS = {True: struct.Struct("<Hih"), False: struct.Struct("<Hi")}  # with torque or without
_WITH_MODE = struct.Struct("<Hib")
_EMERGENCY = struct.Struct("<H")
_ANSWER = struct.Struct("<BHBb")
_ASK_MODE = struct.pack("<BHB4x", 0x40, 0x6061, 0)
UNANSWERED = 16
"""Largest number of consecutive unanswered queries for the mode of operation, two per watchdog."""

# Consecutive frames with "enable operation" after which leaving that state is a fault.
SURE = 3
_WRITES = (0x00, 0x20, 0xC0)  # SDO services of a client that write: segments, whole, blocks
_ENABLED = DriveState.OPERATION_ENABLED  # attribute access of enumerations is slow


class Cia402Cycle(Drive):
    """A CiA 402 drive in the loop; `state` is its last reported state."""

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        super().__init__(axis, index, rig)
        node = axis.node
        self._report, self._emergency, self._guarding = 0x180 + node, 0x080 + node, 0x700 + node
        self._answer = 0x580 + node
        self.scale = AxisScale(axis)
        self._turns = Turns(32, modulus=axis.modulo)
        self._leap = self._turns.modulus // 4
        self._struct, self._has_torque, self._has_mode = _REPORTS[True], True, False
        self._following = self._followed(0)
        self._data = bytearray(_COMMAND.size)
        self._message = can.Message(
            arbitration_id=0x200 + node, data=self._data, is_extended_id=False
        )
        self._question = can.Message(
            arbitration_id=0x600 + node, data=_ASK_MODE, is_extended_id=False
        )
        self._guard = can.Message(
            arbitration_id=0x700 + node, is_extended_id=False, is_remote_frame=True, dlc=1
        )
        self._asides: tuple[can.Message, ...] = ()
        self._asks = False  # whether they include the query for the mode
        self._every = 1
        self._forget()

    def _forget(self) -> None:
        self._prepared = self.proved = False
        self._ready = REMOTE | VOLTAGE_ENABLED
        self.state = DriveState.UNKNOWN
        self._latched = 0  # fault after which only `prepare` permits enabling again
        self._emergency_code = 0
        self._edge = False
        self._asked = 0
        self._unanswered = 0  # queries for the mode since the last answer
        self._turns.forget()
        self._located = False

    def _followed(self, bits: int) -> Following:
        """New comparison of torques; `bits`: bits that the drive sets while enabled."""
        margin = max(1, round(MISFIT * self.axis.torque_limit / self.scale.step))
        return Following(margin, self.rig.loop.period, bool(bits & FOLLOWS))

    @property
    def identifiers(self) -> tuple[int, ...]:
        return self._report, self._emergency, self._guarding, self._answer

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        node = self.axis.node
        return 0x200 + node, 0x600 + node

    @property
    def watched_identifiers(self) -> tuple[int, ...]:
        common = NMT_IDENTIFIER, SYNC_IDENTIFIER, 0x700 + HOST_NODE
        return (*self.sent_identifiers, *common)

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether a frame commands the drive, or feeds its watchdog when this host is dead.

        SDO queries are harmless, and so is the management of other nodes.
        """
        identifier, data = frame.arbitration_id, frame.data
        if identifier == NMT_IDENTIFIER:
            return len(data) == 2 and data[1] in (0, self.axis.node)
        if identifier == 0x600 + self.axis.node:
            return bool(data) and data[0] & 0xE0 in _WRITES
        return True

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return (
            CycleFrame("report (TPDO1)", _REPORTS[True].size, to_drive=False),
            CycleFrame("command (RPDO1)", _COMMAND.size, to_drive=True),
        )

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        """SYNC, and the heartbeat of the host as an operational node."""
        return (
            can.Message(arbitration_id=SYNC_IDENTIFIER, is_extended_id=False),
            can.Message(arbitration_id=0x700 + HOST_NODE, data=b"\x05", is_extended_id=False),
        )

    # -- in the loop ---------------------------------------------------------------------------

    def command(self, wanted: Wanted, torque: float) -> can.Message:
        state = self.state
        # A drive is enabled in cycles with READY, never with TORQUE: a drive that has left
        # "operation enabled" stays off, even if its fault has disappeared.
        fell = wanted is Wanted.TORQUE and state is not DriveState.OPERATION_ENABLED
        unproved = self._prepared and not self.proved and wanted is not Wanted.RESET
        if self._latched or fell or unproved:
            wanted = Wanted.OFF
        if wanted is Wanted.RESET and state not in FAULTS:
            self._emergency_code = 0  # its end may have been lost
        self._edge = wanted is Wanted.RESET and not self._edge
        word = next_controlword(state, wanted, self._edge)
        self._asked = self._asked + 1 if word == Controlword.ENABLE_OPERATION else 0
        target = 0
        if wanted is Wanted.TORQUE and state is DriveState.OPERATION_ENABLED:
            target = self.scale.per_mille(torque)
        self._following.command(target)
        _COMMAND.pack_into(self._data, 0, word, target)
        return self._message

    def asides(self, cycle: int) -> tuple[can.Message, ...]:
        if (cycle + self.index) % self._every:
            return ()
        self._unanswered += self._asks
        return self._asides

    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        identifier = frame.arbitration_id
        if identifier == self._report:
            return self._take_report(frame, now, feedback)
        index, data = self.index, frame.data
        if identifier == self._answer:
            if len(data) == 8:
                service, asked, sub, mode = _ANSWER.unpack_from(data)
                if asked == 0x6061 and not sub and service & 0xE0 == 0x40:
                    self._judge_mode(mode, feedback)
            return False
        if identifier == self._emergency and len(data) == 8:
            code = _EMERGENCY.unpack_from(data)[0]
            if code & 0xFF00:
                self._emergency_code = feedback.fault[index] = code
            else:  # error reset
                self._emergency_code = 0
        elif identifier == self._guarding and len(data) == 1:
            # a boot-up frame: power was cycled, and all written settings are lost
            if data[0] & 0x7F == 0:
                self._latch(FaultCode.RESTARTED, feedback)
            elif data[0] & 0x7F != 5:
                self._latch(FaultCode.NOT_OPERATIONAL, feedback)
        elif identifier in self.identifiers:
            feedback.invalid[index] += 1
        return False

    def _latch(self, code: FaultCode, feedback: Feedback) -> None:
        if not self._prepared:
            return  # another host commands the drive
        if self._latched != FaultCode.RESTARTED:
            self._latched = code
        self.state = DriveState.UNKNOWN
        feedback.fault[self.index] = self._latched
        feedback.enabled[self.index] = False

    @property
    def _is_sure(self) -> bool:
        """Whether the drive is enabled, and was commanded to be for long enough to be checked."""
        enabled = self.state is _ENABLED and self._asked >= SURE
        return enabled and self.proved and not self._latched

    def _judge_mode(self, mode: int, feedback: Feedback) -> None:
        self._unanswered = 0
        if mode != TORQUE_MODE and self._is_sure:
            self._latch(FaultCode.OTHER_MODE, feedback)

    def _take_report(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        index, turns = self.index, self._turns
        layout, data = self._struct, frame.data
        if len(data) != layout.size:
            feedback.invalid[index] += 1
            return False
        numbers = layout.unpack(data)
        status, counts = numbers[0], numbers[1]
        if not self._located:
            self._located = True
            turns.forget(first_turn(self.axis, self.scale, counts) if self.axis.modulo else None)
        # No joint moves by a quarter of the counter between two reports: a bit is wrong.
        step, leap = turns.step(counts), self._leap
        if not -leap < step < leap:
            feedback.invalid[index] += 1
            return False
        state = state_of(status)
        if (
            state is not _ENABLED
            and self.state is _ENABLED
            and self._prepared
            and self._asked >= SURE
            and state not in FAULTS
            and not self._latched
        ):
            self._latched = FaultCode.FELL
        self.state = state
        torque = numbers[2] if self._has_torque else None
        if self._is_sure:
            self._latched = self._following.judge(status, torque)
            if self._has_mode and numbers[2] != TORQUE_MODE:
                self._latched = FaultCode.OTHER_MODE
            elif self._unanswered > UNANSWERED:
                self._latched = FaultCode.MUTE
        else:
            self._following.seen = False
        fault = self._latched or self._emergency_code
        if not fault and state in FAULTS:
            fault = FaultCode.UNNAMED
        if not fault and self._prepared and not self.proved:
            fault = FaultCode.UNPROVED
        on = state is _ENABLED and not self._latched
        feedback.position[index] = self.scale.position(turns.take(counts))
        if torque is not None:
            feedback.torque[index] = self.scale.torque(torque)
        feedback.status[index] = status
        feedback.enabled[index] = on and status & self._ready == self._ready
        feedback.fault[index] = fault
        feedback.time[index] = now
        feedback.count[index] += 1
        return True

    def numbers(self, start: float) -> tuple[float, ...]:
        """Numbers of `rig_drive_table` in C from the modulus on; `start`: of the position."""
        axis, scale = self.axis, self.scale
        middle = middle_of(axis, scale)
        return (
            self._turns.modulus,
            int(middle is not None),
            middle or 0,
            axis.offset,
            1.0 / scale.counts_per_unit,
            1.0 / scale.torque(1),
            scale.torque(1),
            start,
            int(self._has_torque),
            int(self._has_mode),
            int(self._asks),
            int(self._guard in self._asides),
            self._every,
            self._ready,
            self._following.margin,
        )

    @property
    def counted(self) -> int | None:
        """Unwrapped counts (0x6064) of the last report; None before the first."""
        return self._turns.last if self._located else None

    @property
    def faults(self) -> tuple[int, int]:
        """Fault after which the drive stays off, and code of the last emergency; 0: none."""
        return int(self._latched), int(self._emergency_code)

    # -- around the loop -----------------------------------------------------------------------

    def _configure(self, report: tuple[int, ...], shows_mode: bool, guards: bool) -> None:
        """Select the layout of the reports, and whether to query the mode or guard the node."""
        self._has_torque, self._has_mode = TORQUE in report, MODE in report
        self._struct = _WITH_MODE if self._has_mode else _REPORTS[self._has_torque]
        self._asks = shows_mode and not self._has_mode
        self._asides = (self._guard,) * guards + (self._question,) * self._asks
        often = 4 if guards else 2  # times within each watchdog
        self._every = max(1, int(self.axis.watchdog / (often * self.rig.loop.period)))

    def trial(self, word: int, torque: float) -> can.Message:
        """Command for the test of the watchdog; a torque only if the drive is enabled."""
        target = self.scale.per_mille(torque) if self.state is _ENABLED else 0
        _COMMAND.pack_into(self._data, 0, word, target)
        return self._message

    def position_at(self, counts: int) -> float:
        """Position of the joint for counts (0x6064), nearest to the last report."""
        return self.scale.position(self._turns.near(counts))

    def accept(self, status: int) -> None:
        """Permit enabling of the drive from now on.

        Bits of the statusword that it did not set while it was enabled are not required later.
        """
        self._ready = status & (REMOTE | VOLTAGE_ENABLED | FOLLOWS)
        self._following = self._followed(self._ready)
        self._asked, self._edge, self._emergency_code, self._unanswered = 0, False, 0, 0
        self.state, self.proved = DriveState.UNKNOWN, True

    def restart(self, bus: Link) -> None:
        """Start the node again, and wait for its answer to SYNC."""
        self._first_report(SdoSession(bus, self.axis.name, self.axis.node), bus)

    def _first_report(self, node: SdoSession, bus: Link) -> AxisCheck:
        """Start the node, send SYNC, and check mapping and position in the report."""
        axis = self.axis
        where = f"axis `{axis.name}`, node {axis.node}, first report"
        clock, size = bus.clock, self._struct.size
        others: set[str] = set()
        for _ in range(3):
            node.command(Nmt.START)  # repeated, as it is unconfirmed and may be lost
            bus.send(self.opening_frames(self.rig)[0])
            until = clock.now() + 0.05
            while (frame := bus.receive(until)) is not None:
                if frame.arbitration_id == self._report and len(frame.data) == size:
                    status, counts, *_ = self._struct.unpack_from(frame.data)
                    self.state = state_of(status)
                    counts = first_turn(axis, self.scale, counts)
                    return self._judge_position(self.scale.position(counts), where)
                others.add(f"0x{frame.arbitration_id:03X} with {len(frame.data)} bytes")
        raise DriveError(
            where,
            expected=f"an answer to SYNC on identifier 0x{self._report:03X} with {size} bytes",
            came=", ".join(sorted(others)) or "no frame",
            cure="Check that the drive went operational and that its SYNC identifier (0x1005) "
            "is 0x80.",
        )

    def _judge_position(self, position: float, where: str) -> AxisCheck:
        low, high = self.axis.position_limits
        if not low <= position <= high:
            raise UnitError(
                where,
                expected=f"a position between {low:g} and {high:g}",
                came=f"{position:g}",
                cure="Move the joint into its range, or correct `offset`, `counts`, `gear` or "
                "`direction`.",
            )
        what = "position, rad (m)"
        return self._check(what, Finding.FOUND, "in its range", f"{position:.4g}")
