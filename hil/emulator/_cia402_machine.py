"""The state machine of CiA 402 drives (IEC 61800-7-201), on the drive's side."""

from __future__ import annotations

from enum import Enum, IntEnum


class PowerState(IntEnum):
    """States; values are the bits of the status word that identify them."""

    NOT_READY = 0x0000
    SWITCH_ON_DISABLED = 0x0040
    READY = 0x0021
    SWITCHED_ON = 0x0023
    OPERATION_ENABLED = 0x0027
    QUICK_STOP_ACTIVE = 0x0007
    FAULT_REACTION_ACTIVE = 0x000F
    FAULT = 0x0008


class Command(Enum):
    """Commands of a control word, except the reset of a fault."""

    SHUTDOWN = "shutdown"
    SWITCH_ON = "switch on, or disable operation"
    ENABLE = "enable operation"
    DISABLE_VOLTAGE = "disable voltage"
    QUICK_STOP = "quick stop"


FAULT_RESET = 0x80
"""Bit of the control word whose rising edge resets a fault."""

_VOLTAGE, _QUICK = 0x02, 0x04

TRANSITIONS: dict[tuple[PowerState, Command], PowerState] = {
    (PowerState.SWITCH_ON_DISABLED, Command.SHUTDOWN): PowerState.READY,  # 2
    (PowerState.READY, Command.SWITCH_ON): PowerState.SWITCHED_ON,  # 3
    (PowerState.READY, Command.ENABLE): PowerState.SWITCHED_ON,  # 3; 4 needs the word again
    (PowerState.SWITCHED_ON, Command.ENABLE): PowerState.OPERATION_ENABLED,  # 4
    (PowerState.OPERATION_ENABLED, Command.SWITCH_ON): PowerState.SWITCHED_ON,  # 5
    (PowerState.SWITCHED_ON, Command.SHUTDOWN): PowerState.READY,  # 6
    (PowerState.READY, Command.DISABLE_VOLTAGE): PowerState.SWITCH_ON_DISABLED,  # 7
    (PowerState.READY, Command.QUICK_STOP): PowerState.SWITCH_ON_DISABLED,  # 7
    (PowerState.OPERATION_ENABLED, Command.SHUTDOWN): PowerState.READY,  # 8
    (PowerState.OPERATION_ENABLED, Command.DISABLE_VOLTAGE): PowerState.SWITCH_ON_DISABLED,  # 9
    (PowerState.SWITCHED_ON, Command.DISABLE_VOLTAGE): PowerState.SWITCH_ON_DISABLED,  # 10
    (PowerState.SWITCHED_ON, Command.QUICK_STOP): PowerState.SWITCH_ON_DISABLED,  # 10
    (PowerState.OPERATION_ENABLED, Command.QUICK_STOP): PowerState.QUICK_STOP_ACTIVE,  # 11
    (PowerState.QUICK_STOP_ACTIVE, Command.DISABLE_VOLTAGE): PowerState.SWITCH_ON_DISABLED,  # 12
}
"""Transitions that a control word causes, with the standard's numbers."""


def command_of(word: int) -> Command:
    """Read a control word."""
    if not word & _VOLTAGE:
        return Command.DISABLE_VOLTAGE
    if not word & _QUICK:
        return Command.QUICK_STOP
    if not word & 0x01:
        return Command.SHUTDOWN
    return Command.ENABLE if word & 0x08 else Command.SWITCH_ON


def after(state: PowerState, word: int, before: int) -> PowerState:
    """State after a control word was received."""
    if state is PowerState.FAULT:
        edge = word & FAULT_RESET and not before & FAULT_RESET
        return PowerState.SWITCH_ON_DISABLED if edge else state  # 15
    if word & FAULT_RESET:
        return state
    return TRANSITIONS.get((state, command_of(word)), state)
