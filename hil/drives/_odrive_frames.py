"""Frames of ODrive's protocol CANSimple: identifiers, layouts and codes (firmware 0.6).

An identifier has 6 bits of the node and 5 bits of the message. Messages `Get_...` of the drive are
requested by a remote frame with their identifier. Numbers are little-endian, floats of 32 bits.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

LARGEST_NODE = 62
"""Largest number of a drive: 63 stands for drives without one."""


class Message(IntEnum):
    """Numbers of messages."""

    VERSION = 0x00
    HEARTBEAT = 0x01
    ESTOP = 0x02
    ERROR = 0x03
    RX_SDO = 0x04
    TX_SDO = 0x05
    ADDRESS = 0x06
    AXIS_STATE = 0x07
    ESTIMATES = 0x09
    CONTROLLER_MODE = 0x0B
    INPUT_TORQUE = 0x0E
    CLEAR_ERRORS = 0x18
    TORQUES = 0x1C


ORDERS = 0x02, 0x04, 0x06, 0x07, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, *range(0x10, 0x14)
ORDERS += 0x16, 0x18, 0x19, 0x1A, 0x1B, 0x1F
"""Messages of a host that change something."""

IDLE, CLOSED_LOOP = 1, 8
"""States of an axis."""
TORQUE_CONTROL, PASSTHROUGH = 1, 1
"""Control mode and input mode."""
WATCHDOG_EXPIRED = 0x0100_0000
"""Error of an axis whose watchdog has expired."""
READ, WRITE = 0, 1
"""Operations on an endpoint."""

FLOAT, FLOATS, STATE, MODES = map(struct.Struct, ("<f", "<ff", "<I", "<II"))
HEARTBEAT, ERRORS = struct.Struct("<IBBBx"), struct.Struct("<II")
SDO = struct.Struct("<BHx4s")


class Heartbeat(NamedTuple):
    """Numbers of a heartbeat."""

    error: int
    state: int


def identifier(node: int, message: int) -> int:
    """Identifier of a message of a node, or to it."""
    return node << 5 | message


def read_heartbeat(data: bytes | bytearray) -> Heartbeat | None:
    """Read a heartbeat; None if it has another length."""
    if len(data) != HEARTBEAT.size:
        return None
    error, state, _, _ = HEARTBEAT.unpack(data)
    return Heartbeat(error, state)
