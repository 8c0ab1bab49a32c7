"""State machine of the emulated drive against the table of IEC 61800-7-201."""

import pytest

from hil.emulator._cia402_machine import PowerState, after

S = PowerState
SHUTDOWN, SWITCH_ON, ENABLE, VOLTAGE_OFF, QUICK, RESET = 0x06, 0x07, 0x0F, 0x00, 0x02, 0x80

# state: next state for each word; other words do not change the state
TABLE = {
    S.NOT_READY: {},
    S.SWITCH_ON_DISABLED: {SHUTDOWN: S.READY},
    S.READY: {
        SWITCH_ON: S.SWITCHED_ON,
        ENABLE: S.SWITCHED_ON,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.SWITCH_ON_DISABLED,
    },
    S.SWITCHED_ON: {
        SHUTDOWN: S.READY,
        ENABLE: S.OPERATION_ENABLED,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.SWITCH_ON_DISABLED,
    },
    S.OPERATION_ENABLED: {
        SHUTDOWN: S.READY,
        SWITCH_ON: S.SWITCHED_ON,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.QUICK_STOP_ACTIVE,
    },
    S.QUICK_STOP_ACTIVE: {VOLTAGE_OFF: S.SWITCH_ON_DISABLED},
    S.FAULT_REACTION_ACTIVE: {},
    S.FAULT: {RESET: S.SWITCH_ON_DISABLED},
}


@pytest.mark.parametrize("state", list(PowerState))
@pytest.mark.parametrize("word", [SHUTDOWN, SWITCH_ON, ENABLE, VOLTAGE_OFF, QUICK, RESET])
@pytest.mark.parametrize("other_bits", [0x0000, 0xFF70])
def test_every_row_of_the_table(state, word, other_bits):
    assert after(state, word | other_bits, 0) is TABLE[state].get(word, state)


def test_a_fault_is_reset_by_a_rising_edge_only():
    assert after(S.FAULT, RESET, RESET) is S.FAULT
    assert after(S.FAULT, ENABLE, 0) is S.FAULT
    assert after(S.FAULT, RESET, ENABLE) is S.SWITCH_ON_DISABLED


def test_status_bits_tell_all_states_apart():
    assert len({int(state) & 0x6F for state in PowerState}) == len(PowerState)
