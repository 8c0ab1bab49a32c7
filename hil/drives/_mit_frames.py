"""Frames of the MIT protocol: commands, and reports of 6 or 8 bytes."""

from __future__ import annotations

from typing import NamedTuple

ENTER = b"\xff" * 7 + b"\xfc"
"""Enter motor mode."""
LEAVE = b"\xff" * 7 + b"\xfd"
"""Leave motor mode."""
CLEAR = b"\xff" * 7 + b"\xfb"
"""Clear faults; Damiao drives only, which need it after communication was lost."""

COMMUNICATION_LOST = 0x0D
"""Error code, or Damiao state, of a drive that has received no command for too long."""

# Position and velocity in the middle of their ranges; stiffness, damping and torque are zero codes.
_COMMAND = bytes((0x7F, 0xFF, 0x7F, 0xF0, 0x00, 0x00, 0x00, 0x00))
_ON = 1  # state of a Damiao drive that is on


class Report(NamedTuple):
    """A report, as codes."""

    position: int  # 16 bits
    velocity: int  # 12 bits
    torque: int  # 12 bits
    error: int | None  # or state of a Damiao drive, neither on nor off; None: not reported
    off: bool  # whether the drive reports that it is off
    status: int  # the last two bytes, or the state of a Damiao drive


def unpack_report(data: bytes | bytearray, node: int, has_state: bool = False) -> Report | None:
    """Read a report; None if it has another length or comes from another drive.

    `has_state`: the upper half of the first byte is the drive's state (Damiao).
    """
    length = len(data)
    if length not in (6, 8) or (data[0] & 0x0F if has_state else data[0]) != node:
        return None
    error: int | None
    if has_state:
        status = data[0] >> 4
        error, off = (status if status > _ON else 0), status != _ON
    elif length == 8:
        status, error, off = data[6] << 8 | data[7], data[7], data[7] != 0
    else:
        status, error, off = 0, None, False
    return Report(
        data[1] << 8 | data[2],
        data[3] << 4 | data[4] >> 4,
        (data[4] & 0x0F) << 8 | data[5],
        error,
        off,
        status,
    )


def pack_torque(data: bytearray, code: int) -> None:
    """Pack a torque command: zero position and velocity, no stiffness, no damping."""
    data[:] = _COMMAND
    data[6] = code >> 8
    data[7] = code & 0xFF
