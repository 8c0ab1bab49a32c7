"""Frames of moteus drives: registers in subframes of CAN FD frames, and the layout of the loop.

A frame has subframes that write registers, ask for registers, or answer: each begins with a byte of
kind, type and number of registers, and the number of the first register. The package `moteus` packs
and reads them. The frames of the loop have a constant layout: the package packs the command once,
and only its torque is replaced; the report is read by `REPORT`. Before a run the layout of a report
is compared with what the package reads in it.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from hil._extras import library

if TYPE_CHECKING:
    from types import ModuleType

HOST = 0x7D
"""Number of the host in identifiers; tools of the manufacturer use 0."""
LARGEST_NODE = 0x7C
"""Largest number of a drive: 125 is the host, 126 is left free, 127 means all drives."""
ANSWER = 0x8000
"""Bit of an identifier that requests an answer."""

STOPPED, FAULT, PREPARING, POSITION, TIMEOUT = 0, 1, (2, 3, 4), 10, 11
"""Modes (register 0x000)."""

MODE, PLACE, SPEED, TORQUE, CODE, CLOCK = 0x000, 0x001, 0x002, 0x003, 0x00F, 0x070
"""Registers of a report: mode, position, velocity, torque, fault, counter of milliseconds."""
MODEL, FIRMWARE, MAP, SERIAL = 0x100, 0x101, 0x102, (0x120, 0x121, 0x122)
"""Registers of the identity of a drive."""

TURNS = 1e-5
"""Unit of the position in a report, turns, and of the velocity, turns/s."""
NOWHERE = -(2**31)
"""Position that stands for none."""

LIMITING = range(96, 104)
"""Fault codes of a drive that works and limits its torque."""

REPORT = struct.Struct("<2sb2sii2sf2sb2si")
_HEADS = tuple(map(bytes.fromhex, ("2100", "2a01", "2d03", "210f", "2970")))
REPORT_LENGTH, COMMAND_LENGTH = 32, 48
"""Bytes of data of the frames of the loop: those above, filled up to a length of CAN FD."""

NOTHING = 0x50
"""Subframe without meaning, which fills a frame."""


class Report(NamedTuple):
    """Numbers of a report."""

    mode: int
    position: int  # TURNS
    velocity: int  # TURNS/s
    torque: float  # of the drive's shaft, N m
    code: int
    clock: int  # ms, 32 bits with sign

    @property
    def fault(self) -> int:
        """Code of a fault; 0 for the codes of a drive that limits its torque."""
        return 0 if self.code in LIMITING and self.mode != FAULT else self.code


def read_report(data: bytes | bytearray) -> Report | None:
    """Read a report; None if its layout is another one or a number is missing."""
    if len(data) < REPORT.size:
        return None
    a, mode, b, position, velocity, c, torque, d, code, e, clock = REPORT.unpack_from(data)
    if (a, b, c, d, e) != _HEADS or data[REPORT.size :].strip(b"\x50"):
        return None
    if position == NOWHERE or velocity == NOWHERE or not math.isfinite(torque):
        return None
    return Report(mode, position, velocity, torque, code, clock)


def commands(data: bytes | bytearray) -> bool:
    """Whether a frame does more than to ask for registers: it writes some, or opens a console."""
    place, codec = 0, library("moteus", "moteus").multiplex
    try:
        for subframe in codec.parse_frame(bytes(data)):
            place += 1
            kind = getattr(subframe, "type", None)
            if kind not in (codec.SubframeType.READ, codec.SubframeType.RESPONSE):
                return True
    except Exception:  # of an invalid frame
        return True
    return False


class Codec:
    """Frames of one drive, packed by the package `moteus`."""

    def __init__(self, node: int) -> None:
        self._library: ModuleType = library("moteus", "moteus")
        kinds = self._library.multiplex
        self._controller = self._library.Controller(id=node, source_can_id=HOST)
        self._query = self._library.QueryResolution()
        self._query.mode = self._query.fault = kinds.INT8
        self._query.position = self._query.velocity = kinds.INT32
        self._query.torque = kinds.F32
        self._query.voltage = self._query.temperature = kinds.IGNORE
        self._query._extra = {CLOCK: kinds.INT32}

    def torque(self, torque: float, limit: float, watchdog: float) -> tuple[bytes, int]:
        """Command of a torque of the shaft, N m, that is valid for a time, s.

        Position mode without a position, and without the terms of its law; the second number is the
        place of the torque in the data.
        """
        kinds, formats = self._library.multiplex, self._library.PositionResolution()
        formats.position = formats.velocity = kinds.INT8
        formats.kp_scale = formats.kd_scale = formats.ilimit_scale = kinds.INT8
        self._controller.position_resolution = formats

        asked = self._controller.make_query(query_override=self._query).data

        def packed(value: float) -> bytes:
            made = self._controller.make_position(
                position=math.nan,
                velocity=0.0,
                feedforward_torque=value,
                kp_scale=0.0,
                kd_scale=0.0,
                maximum_torque=limit,
                watchdog_timeout=watchdog,
                ilimit_scale=0.0,
            )
            # The request is first: the answer shows the mode before the command.
            return filled(asked + made.data)

        # The numbers 1 and 2 differ in all bytes that a torque can change but the first two.
        one, two = packed(1.0), packed(2.0)
        changed = [k for k, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
        place = changed[-1] - 3
        assert struct.unpack_from("<f", two, place)[0] == 2.0
        return packed(torque), place

    def stop(self) -> bytes:
        """Command of mode "stopped", which clears faults."""
        return filled(self._controller.make_stop(query_override=self._query).data)

    def ask(self) -> bytes:
        """Request of a report."""
        return filled(self._controller.make_query(query_override=self._query).data)

    def identity(self) -> bytes:
        """Request of the registers of the identity."""
        registers = dict.fromkeys((MODEL, FIRMWARE, MAP, *SERIAL), self._library.INT32)
        return filled(self._controller.make_custom_query(registers).data)

    def write(self, text: str) -> bytes:
        """Text for the console of the drive."""
        return filled(self._controller.make_diagnostic_write(text.encode()).data)

    def read(self) -> bytes:
        """Request of text of the console."""
        return filled(self._controller.make_diagnostic_read().data)

    def text_of(self, data: bytes) -> str | None:
        """Text of the console in an answer; None if it has none."""
        kinds = self._library.multiplex
        for subframe in kinds.parse_frame(data):
            if isinstance(subframe, kinds.StreamSubframe):
                return str(subframe.data, errors="replace")
        return None

    def registers(self, data: bytes) -> dict[int, Any]:
        """Registers of an answer, in the units of the package."""
        values: dict[int, Any] = self._library.protocol.parse_reply(data)
        return values


def filled(data: bytes) -> bytes:
    """Fill data up to the next length of CAN FD."""
    length = next(n for n in (*range(9), 12, 16, 20, 24, 32, 48, 64) if n >= len(data))
    return data.ljust(length, bytes([NOTHING]))
