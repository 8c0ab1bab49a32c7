"""State machine of CiA 402 (IEC 61800-7-201) as two pure functions.

Bits 0 to 3, 5 and 6 of the statusword (0x6041) contain the state; bits 0 to 3 and 7 of the
controlword (0x6040) request transitions. One controlword requests one transition; the next one
depends on the state that the drive then reports.
"""

from __future__ import annotations

from enum import IntEnum

from hil.drives._drive import Wanted

REMOTE = 1 << 9
"""Bit of the statusword: the controlword is taken from the bus."""
VOLTAGE_ENABLED = 1 << 4
"""Bit of the statusword: the power stage has its supply."""
FOLLOWS = 1 << 12
"""Bit of the statusword in cyclic synchronous modes: the drive follows the command."""
LIMITED = 1 << 11
"""Bit of the statusword: a limit of the drive is active."""


class DriveState(IntEnum):
    """States of a CiA 402 drive."""

    NOT_READY = 0
    """The drive initialises itself; it leaves this state without a command."""
    SWITCH_ON_DISABLED = 1
    """Initialised, without power."""
    READY_TO_SWITCH_ON = 2
    """Power may be switched on."""
    SWITCHED_ON = 3
    """Power stage ready, no torque."""
    OPERATION_ENABLED = 4
    """Set-points become torque."""
    QUICK_STOP_ACTIVE = 5
    """The drive performs, or has performed, a quick stop."""
    FAULT_REACTION_ACTIVE = 6
    """The drive reacts to a fault; it leaves this state without a command."""
    FAULT = 7
    """Without torque until the fault is reset."""
    UNKNOWN = 8
    """Bits that the standard does not define."""


FAULTS = (DriveState.FAULT, DriveState.FAULT_REACTION_ACTIVE)


class Controlword(IntEnum):
    """Commands of the controlword; bits 0 to 3 and 7."""

    DISABLE_VOLTAGE = 0x00
    """Transitions 7, 9, 10, 12: power off at once."""
    QUICK_STOP = 0x02
    """Transitions 7, 10, 11."""
    SHUTDOWN = 0x06
    """Transitions 2, 6, 8."""
    SWITCH_ON = 0x07
    """Transition 3; transition 5 (disable operation) from an enabled drive."""
    ENABLE_OPERATION = 0x0F
    """Transitions 4 and 16."""
    FAULT_RESET = 0x80
    """Transition 15, at the rising edge of bit 7."""


# (mask, bits, state): x0xx 0000, x1xx 0000, x01x 0001, ... in the standard's notation
_PATTERNS: tuple[tuple[int, int, DriveState], ...] = (
    (0x4F, 0x00, DriveState.NOT_READY),
    (0x4F, 0x40, DriveState.SWITCH_ON_DISABLED),
    (0x6F, 0x21, DriveState.READY_TO_SWITCH_ON),
    (0x6F, 0x23, DriveState.SWITCHED_ON),
    (0x6F, 0x27, DriveState.OPERATION_ENABLED),
    (0x6F, 0x07, DriveState.QUICK_STOP_ACTIVE),
    (0x4F, 0x0F, DriveState.FAULT_REACTION_ACTIVE),
    (0x4F, 0x08, DriveState.FAULT),
)


def _decode(bits: int) -> DriveState:
    for mask, pattern, state in _PATTERNS:
        if bits & mask == pattern:
            return state
    return DriveState.UNKNOWN


_STATES = tuple(_decode(bits) for bits in range(0x80))  # a look-up is faster in the loop

_UP = {
    DriveState.SWITCH_ON_DISABLED: Controlword.SHUTDOWN,
    DriveState.READY_TO_SWITCH_ON: Controlword.SWITCH_ON,
    DriveState.SWITCHED_ON: Controlword.ENABLE_OPERATION,
    DriveState.OPERATION_ENABLED: Controlword.ENABLE_OPERATION,
}


def state_of(statusword: int) -> DriveState:
    """State in a statusword.

    Parameters
    ----------
    statusword : int
        Value of object 0x6041.

    Returns
    -------
    DriveState
        The state; UNKNOWN for bits that no state has.
    """
    return _STATES[statusword & 0x7F]


def next_controlword(state: DriveState, wanted: Wanted, fault_reset_edge: bool = False) -> int:
    """Controlword of the next transition towards the requested state.

    A fault is cleared only for RESET. A drive in quick stop is not enabled directly (transition 16)
    but switched off first, so that the cause of the stop is noticed.

    Parameters
    ----------
    state : DriveState
        State of the last report.
    wanted : Wanted
        Requested state.
    fault_reset_edge : bool
        Whether bit 7 may be set in this frame. A fault is reset by its rising edge: a frame with
        the bit must follow one without it.

    Returns
    -------
    int
        Value for object 0x6040.
    """
    if wanted is Wanted.RESET:
        if state is DriveState.FAULT and fault_reset_edge:
            return Controlword.FAULT_RESET
        return Controlword.DISABLE_VOLTAGE
    if wanted is Wanted.OFF:
        return Controlword.DISABLE_VOLTAGE
    return _UP.get(state, Controlword.DISABLE_VOLTAGE)
