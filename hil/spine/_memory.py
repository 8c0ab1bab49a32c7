"""Structures of the cycle in C, as ctypes."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from hil.quality import BINS

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.settings import Rig


class Request(IntEnum):
    """Requests of the supervisor to the loop."""

    ARM = 0
    RUN = 1
    STOP = 2


_REAL, _INT, _LONG = ctypes.c_double, ctypes.c_int, ctypes.c_longlong


def structure(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """A structure of C."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


def _array(name: str, size: int, kind: Any = _REAL) -> tuple[str, Any]:
    return name, kind * max(1, size)


def output_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_output` of rig.h."""
    codes = "action", "state", "phase", "reason", "axis", "flags", "status", "ready"
    return structure(
        "Output",
        _array("torque", len(rig.axes)),
        *((name, _INT) for name in codes),
        _array("q", law.nq),
        _array("s", law.nw),
        _array("error", law.size),
    )


def input_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_input` of rig.h."""
    n = len(rig.axes)
    return structure(
        "Input",
        *((name, _REAL) for name in ("start", "deadline", "now", "sent", "t")),
        *((name, _INT) for name in ("skipped", "paused", "run", "stop", "last", "release")),
        *(_array(name, n) for name in ("position", "velocity", "time")),
        _array("count", n, _LONG),
        *(_array(name, n, _INT) for name in ("fault", "enabled")),
        _array("pose", law.pose_size),
        _array("twist", law.twist_size),
        _array("acceleration", law.twist_size),
    )


def shared_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_shared` of shared.h."""
    return structure(
        "Shared",
        ("heartbeat", _LONG),
        *((name, _INT) for name in ("request", "scheduled", "locked", "ended")),
        *((name, _LONG) for name in ("cycles", "skipped")),
        *((name, _REAL) for name in ("longest", "latest")),
        *(_array(name, BINS, ctypes.c_uint) for name in ("duration", "lateness")),
        ("output", output_of(rig, law)),
    )


def emulated_of(rig: Rig) -> type[ctypes.Structure]:
    """`rig_emulated` of emulated.h."""
    n = len(rig.axes)
    return structure(
        "Emulated",
        *((name, _INT) for name in ("end", "ready")),
        *(_array(name, n) for name in ("torque", "position", "velocity", "command", "freed")),
        _array("enabled", n, _INT),
    )
