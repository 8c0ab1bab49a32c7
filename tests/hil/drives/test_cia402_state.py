"""The state machine, against the tables of another implementation of the standard."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from canopen.profiles.p402 import State402
from hypothesis import given
from hypothesis import strategies as st

from hil.drives import DriveState, Wanted, next_controlword, state_of
from hil.drives._cia402_state import Controlword

NAMES = {
    "NOT READY TO SWITCH ON": DriveState.NOT_READY,
    "SWITCH ON DISABLED": DriveState.SWITCH_ON_DISABLED,
    "READY TO SWITCH ON": DriveState.READY_TO_SWITCH_ON,
    "SWITCHED ON": DriveState.SWITCHED_ON,
    "OPERATION ENABLED": DriveState.OPERATION_ENABLED,
    "QUICK STOP ACTIVE": DriveState.QUICK_STOP_ACTIVE,
    "FAULT REACTION ACTIVE": DriveState.FAULT_REACTION_ACTIVE,
    "FAULT": DriveState.FAULT,
}
UP = ("SWITCH ON DISABLED", "READY TO SWITCH ON", "SWITCHED ON", "OPERATION ENABLED")

# The standard's table of commands (IEC 61800-7-201, table "command coding"): bits 7, 3, 2, 1, 0
# of the controlword with x for any, and the transitions that each starts.
COMMANDS = {
    "shutdown": (
        "0x110",
        {("SWITCH ON DISABLED", 2), ("SWITCHED ON", 6), ("OPERATION ENABLED", 8)},
    ),
    "switch on": ("00111", {("READY TO SWITCH ON", 3)}),
    "enable operation": ("01111", {("SWITCHED ON", 4), ("QUICK STOP ACTIVE", 16)}),
    "disable voltage": (
        "0xx0x",
        {
            ("READY TO SWITCH ON", 7),
            ("OPERATION ENABLED", 9),
            ("SWITCHED ON", 10),
            ("QUICK STOP ACTIVE", 12),
        },
    ),
    "quick stop": (
        "0x01x",
        {("READY TO SWITCH ON", 7), ("SWITCHED ON", 10), ("OPERATION ENABLED", 11)},
    ),
    "disable operation": ("00111", {("OPERATION ENABLED", 5)}),
}


def bits(word: int) -> str:
    return "".join(str(word >> k & 1) for k in (7, 3, 2, 1, 0))


def commands_of(word: int) -> set[str]:
    return {
        name
        for name, (pattern, _) in COMMANDS.items()
        if all(p in ("x", b) for p, b in zip(pattern, bits(word), strict=True))
    }


def transitions(state: str, word: int) -> set[int]:
    return {
        number
        for name in commands_of(word)
        for before, number in COMMANDS[name][1]
        if before == state
    }


def test_every_statusword_is_read_as_the_library_reads_it() -> None:
    for statusword in range(0x10000):
        found = [
            NAMES[name]
            for name, (mask, value) in State402.SW_MASK.items()
            if statusword & mask == value
        ]
        assert len(found) <= 1
        assert state_of(statusword) is (found[0] if found else DriveState.UNKNOWN), hex(statusword)


@pytest.mark.parametrize(
    ("statusword", "state"),
    [
        (0x0250, DriveState.SWITCH_ON_DISABLED),
        (0x0231, DriveState.READY_TO_SWITCH_ON),
        (0x0233, DriveState.SWITCHED_ON),
        (0x0237, DriveState.OPERATION_ENABLED),
        (0x0217, DriveState.QUICK_STOP_ACTIVE),
        (0x0218, DriveState.FAULT),
        (0x021F, DriveState.FAULT_REACTION_ACTIVE),
        (0x0200, DriveState.NOT_READY),
        (0x0001, DriveState.UNKNOWN),
        (0x0004, DriveState.UNKNOWN),
    ],
)
def test_statuswords_of_manuals(statusword: int, state: DriveState) -> None:
    assert state_of(statusword) is state


@pytest.mark.parametrize("wanted", [Wanted.READY, Wanted.TORQUE])
@pytest.mark.parametrize(("before", "after"), list(pairwise(UP)))
def test_one_step_up_by_the_librarys_command(wanted: Wanted, before: str, after: str) -> None:
    word = next_controlword(NAMES[before], wanted)
    assert word == State402.TRANSITIONTABLE[before, after]


@pytest.mark.parametrize("state", NAMES)
def test_the_librarys_way_up_is_ours(state: str) -> None:
    """The next state on the way up equals that of the library, except for faults."""
    target = State402.next_state_indirect(state)
    word = next_controlword(NAMES[state], Wanted.READY)
    if state in ("FAULT", "FAULT REACTION ACTIVE", "OPERATION ENABLED"):
        expected = Controlword.ENABLE_OPERATION if state == "OPERATION ENABLED" else 0
        assert word == expected
    else:
        assert word == State402.TRANSITIONTABLE[state, target]


def test_an_enabled_drive_is_kept_enabled() -> None:
    word = next_controlword(DriveState.OPERATION_ENABLED, Wanted.TORQUE)
    assert word == State402.CW_OPERATION_ENABLED
    assert transitions("OPERATION ENABLED", word) == set()


# Every row of the standard's table of commands, with the controlword in that state.
@pytest.mark.parametrize(
    ("state", "wanted", "numbers"),
    [
        ("SWITCH ON DISABLED", Wanted.READY, {2}),
        ("READY TO SWITCH ON", Wanted.READY, {3}),
        ("SWITCHED ON", Wanted.READY, {4}),
        ("OPERATION ENABLED", Wanted.READY, set()),
        ("QUICK STOP ACTIVE", Wanted.READY, {12}),
        ("NOT READY TO SWITCH ON", Wanted.READY, set()),
        ("FAULT REACTION ACTIVE", Wanted.READY, set()),
        ("FAULT", Wanted.READY, set()),
        ("SWITCH ON DISABLED", Wanted.OFF, set()),
        ("READY TO SWITCH ON", Wanted.OFF, {7}),
        ("SWITCHED ON", Wanted.OFF, {10}),
        ("OPERATION ENABLED", Wanted.OFF, {9}),
        ("QUICK STOP ACTIVE", Wanted.OFF, {12}),
        ("FAULT", Wanted.OFF, set()),
        ("OPERATION ENABLED", Wanted.RESET, {9}),
        ("SWITCHED ON", Wanted.RESET, {10}),
        ("READY TO SWITCH ON", Wanted.RESET, {7}),
        ("QUICK STOP ACTIVE", Wanted.RESET, {12}),
    ],
)
def test_one_transition_at_a_time(state: str, wanted: Wanted, numbers: set[int]) -> None:
    word = next_controlword(NAMES[state], wanted)
    assert transitions(state, word) == numbers
    assert not word & 0x80


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("shutdown", Controlword.SHUTDOWN),
        ("switch on", Controlword.SWITCH_ON),
        ("disable operation", Controlword.SWITCH_ON),
        ("enable operation", Controlword.ENABLE_OPERATION),
        ("disable voltage", Controlword.DISABLE_VOLTAGE),
        ("quick stop", Controlword.QUICK_STOP),
    ],
)
def test_controlwords_have_the_bits_of_the_standard(command: str, word: int) -> None:
    assert command in commands_of(word)


def test_a_fault_is_left_only_by_a_reset_and_its_edge() -> None:
    for wanted, edge in product(Wanted, (False, True)):
        word = next_controlword(DriveState.FAULT, wanted, edge)
        assert bool(word & 0x80) == (wanted is Wanted.RESET and edge)
    word = next_controlword(DriveState.FAULT, Wanted.RESET, fault_reset_edge=True)
    assert word == State402.TRANSITIONTABLE["FAULT", "SWITCH ON DISABLED"]


@given(state=st.sampled_from(DriveState), wanted=st.sampled_from(Wanted), edge=st.booleans())
def test_power_is_requested_only_for_ready_and_torque(
    state: DriveState, wanted: Wanted, edge: bool
) -> None:
    word = next_controlword(state, wanted, edge)
    if wanted in (Wanted.OFF, Wanted.RESET):
        assert not word & 0x02  # enable voltage
    if state in (DriveState.FAULT, DriveState.FAULT_REACTION_ACTIVE, DriveState.UNKNOWN):
        assert not word & 0x0F
    if word & 0x08:
        assert state in (DriveState.SWITCHED_ON, DriveState.OPERATION_ENABLED)
    assert not (word & 0x80 and word & 0x0F)
