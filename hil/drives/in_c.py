"""Tables of CiA 402 drives for code in C, from the numbers with which Python drives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hil._c_numbers import array, number
from hil.drives._cia402_state import (
    REMOTE,
    VOLTAGE_ENABLED,
    DriveState,
    next_controlword,
    state_of,
)
from hil.drives._drive import FaultCode, Wanted
from hil.drives._units import AxisScale
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.settings import Rig


def drives_in_c(rig: Rig, links: int) -> str:
    """Tables of CiA 402 drives in C: identifiers, links and scales, and their states.

    Parameters
    ----------
    rig : Rig
        The rig.
    links : int
        Number of links, among which the axes are divided.

    Returns
    -------
    str
        A header.

    Raises
    ------
    RigError
        If a drive is of another kind.
    """
    where, n = f"rig `{rig.name}`", len(rig.axes)
    start = rig.transmission.ratios @ np.asarray(rig.task.q0)[list(rig.transmission.q)]
    rows = []
    for k, (axis, at) in enumerate(zip(rig.axes, start.tolist(), strict=True)):
        if axis.drive != "cia402":
            raise RigError(
                f"{where}, axis `{axis.name}`",
                expected='drive = "cia402"',
                came=f'drive = "{axis.drive}"',
                cure="Measure a rig with CiA 402 drives; the cycle itself is the same.",
            )
        scale = AxisScale(axis)
        link = k * links // n
        whole = (link, 0x180 + axis.node, 0x200 + axis.node, axis.modulo or 1 << 32)
        real = axis.offset, 1.0 / scale.counts_per_unit, 1.0 / scale.torque(1), at
        rows.append(", ".join(map(number, (*whole, *real))))
    states = [int(state_of(bits)) for bits in range(0x80)]
    words = [int(next_controlword(state, Wanted.TORQUE)) for state in DriveState]
    return "\n".join(
        [
            "/* Tables of the drives. */",
            "",
            "typedef struct {",
            "  int link;",
            "  unsigned report, command; /* identifiers */",
            "  long long modulus;        /* of the counter */",
            "  double offset, position;  /* of the motor, and its motion by one count */",
            "  double torque;            /* numbers of the drive for 1 N m (N) */",
            "  double start;             /* position at the start of the task */",
            "} rig_drive_table;",
            "static const rig_drive_table rig_drive[RIG_AXES] = {",
            *(f"    {{{row}}}," for row in rows),
            "};",
            f"#define RIG_DRIVE_ENABLED {int(DriveState.OPERATION_ENABLED)}",
            f"#define RIG_DRIVE_REACTS {int(DriveState.FAULT_REACTION_ACTIVE)}",
            f"#define RIG_DRIVE_FAILED {int(DriveState.FAULT)}",
            f"#define RIG_DRIVE_UNNAMED {int(FaultCode.UNNAMED)}",
            f"#define RIG_DRIVE_READY 0x{REMOTE | VOLTAGE_ENABLED:x}",
            array("static const unsigned char rig_states", states, whole=True),
            array("static const unsigned char rig_words", words, whole=True),
            "",
        ]
    )
