"""Tables of CiA 402 drives for code in C, from the numbers with which Python drives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hil._c_numbers import array, number
from hil.drives._cia402_cycle import SURE, UNANSWERED, Cia402Cycle
from hil.drives._cia402_following import lag_of
from hil.drives._cia402_setup import HOST_NODE, TORQUE_MODE
from hil.drives._cia402_state import (
    FOLLOWS,
    LIMITED,
    Controlword,
    DriveState,
    next_controlword,
    state_of,
)
from hil.drives._drive import FaultCode, Wanted
from hil.drives._registry import make_drives
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.settings import Rig

__all__ = ["drives_in_c", "lag_of"]

CODES = "RESTARTED", "NOT_OPERATIONAL", "FELL", "UNNAMED", "UNPROVED", "NOT_FOLLOWING"
MORE_CODES = "OTHER_MODE", "OTHER_TORQUE", "MUTE"
"""Fault codes that the code in C gives."""


def drives_in_c(rig: Rig) -> str:
    """Tables of CiA 402 drives in C: nodes, links and scales, and their states.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    str
        A header.

    Raises
    ------
    RigError
        If a drive is of another kind.
    """
    where = f"rig `{rig.name}`"
    start = rig.transmission.ratios @ np.asarray(rig.task.q0)[list(rig.transmission.q)]
    rows = []
    for k, (drive, at) in enumerate(zip(make_drives(rig), start.tolist(), strict=True)):
        axis = drive.axis
        if not isinstance(drive, Cia402Cycle):
            raise RigError(
                f"{where}, axis `{axis.name}`",
                expected='drive = "cia402"',
                came=f'drive = "{axis.drive}"',
                cure="Measure a rig with CiA 402 drives; the cycle itself is the same.",
            )
        row = (rig.bus_of[k], axis.node, *drive.numbers(at))
        rows.append(", ".join(map(number, row)))
    states = [int(state_of(bits)) for bits in range(0x80)]
    words = [int(next_controlword(state, Wanted.TORQUE)) for state in DriveState]
    numbers = {
        "LAG": lag_of(rig.loop.period),
        "SURE": SURE,
        "UNANSWERED": UNANSWERED,
        "HOST": HOST_NODE,
        "TORQUE_MODE": TORQUE_MODE,
        "ENABLED": int(DriveState.OPERATION_ENABLED),
        "REACTS": int(DriveState.FAULT_REACTION_ACTIVE),
        "FAILED": int(DriveState.FAULT),
        "UNKNOWN": int(DriveState.UNKNOWN),
        "ENABLE": int(Controlword.ENABLE_OPERATION),
        "RESET": int(Controlword.FAULT_RESET),
        "FOLLOWS": FOLLOWS,
        "LIMITED": LIMITED,
        **{name: int(FaultCode[name]) for name in CODES + MORE_CODES},
    }
    return "\n".join(
        [
            "/* Tables of the drives; see frames.h. */",
            "",
            "#ifndef RIG_DRIVES_H",
            "#define RIG_DRIVES_H",
            "",
            *(f"#define RIG_DRIVE_{name} {value}" for name, value in numbers.items()),
            "#define RIG_DRIVES \\",
            *(f"    {{{row}}}, \\" for row in rows),
            "",
            array("static const unsigned char rig_states", states, whole=True),
            array("static const unsigned char rig_words", words, whole=True),
            "",
            "#endif",
            "",
        ]
    )
