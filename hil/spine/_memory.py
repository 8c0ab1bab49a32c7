"""Structures of the cycle in C, as ctypes."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from hil.drives.in_c import lag_of
from hil.quality import BINS, Histogram, Quality
from hil.reasons import Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hil._concur import TrackingLaw
    from hil._plan import Plan
    from hil.settings import Rig

REASONS = {int(reason): reason for reason in Reason}

_REAL, _INT, _LONG = ctypes.c_double, ctypes.c_int, ctypes.c_longlong


def structure(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    """A structure of C."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


def _array(name: str, size: int, kind: Any = _REAL) -> tuple[str, Any]:
    return name, kind * max(1, size)


FINDING = structure(
    "Finding",
    *((name, _INT) for name in ("reason", "axis", "known", "encoder")),
    *((name, _REAL) for name in ("factor", "residual", "allowed", "applied")),
    ("repeats", _INT),
    ("way", _REAL),
)
"""`rig_finding` of rig.h."""


DRIVE = structure(
    "Drive",
    *((name, _INT) for name in ("link", "node")),
    ("modulus", _LONG),
    ("bounded", _INT),
    ("middle", _LONG),
    *((name, _REAL) for name in ("offset", "position", "torque", "unit", "start")),
    *((name, _INT) for name in ("has_torque", "has_mode", "asks", "guards", "every")),
    *((name, _INT) for name in ("ready", "margin")),
)
"""`rig_drive_table` of frames.h."""


def output_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_output` of rig.h."""
    codes = "action", "state", "phase", "reason", "axis", "flags", "status"
    return structure(
        "Output",
        _array("torque", len(rig.axes)),
        *((name, _INT) for name in (*codes, "ready", "able", "wrong", "faults", "code", "strays")),
        _array("q", law.nq),
        _array("s", law.nw),
        _array("error", law.size),
        _array("demand", len(rig.axes)),
        _array("active", len(law.limit_names)),
        *(_array(name, len(rig.axes)) for name in ("residual", "allowed")),
        *((name, _LONG) for name in ("late", "lost", "clipped")),
        ("finding", FINDING),
    )


def input_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_input` of rig.h."""
    n = len(rig.axes)
    return structure(
        "Input",
        *((name, _REAL) for name in ("start", "deadline", "now", "sent", "t")),
        *((name, _INT) for name in ("skipped", "paused", "run", "stop", "late", "last", "release")),
        *(_array(name, n) for name in ("position", "velocity", "time")),
        _array("count", n, _LONG),
        *(_array(name, n, _INT) for name in ("fault", "enabled", "doubtful")),
        _array("pose", law.pose_size),
        _array("twist", law.twist_size),
        _array("acceleration", law.twist_size),
    )


def drives_of(rig: Rig) -> type[ctypes.Structure]:
    """`rig_drives` of frames.h."""
    n, lag = len(rig.axes), lag_of(rig.loop.period)
    return structure(
        "Drives",
        _array("counts", n, _LONG),
        *(_array(name, n, _INT) for name in ("located", "status", "state")),
        _array("torque", n),
        _array("invalid", n, _LONG),
        *(_array(name, n, _INT) for name in ("prepared", "proved", "latched", "emergency")),
        *(_array(name, n, _INT) for name in ("asked", "edge", "unanswered")),
        ("targets", _INT * (lag + 1) * n),
        *(_array(name, n, _INT) for name in ("place", "wrong", "shows", "follows")),
    )


def setup_of(shared: Any, drives: Any) -> type[ctypes.Structure]:
    """`rig_setup` of loop.h, for memory of these types."""
    pointer = ctypes.POINTER
    return structure(
        "Setup",
        ("shared", pointer(shared)),
        ("reference", pointer(_REAL)),
        ("rows", _LONG),
        ("ring", ctypes.c_void_p),
        ("ring_size", ctypes.c_size_t),
        ("silence", _REAL),
        ("sockets", pointer(_INT)),
        ("links", _INT),
        ("drives", pointer(drives)),
        ("resets", _INT),
    )


def shared_of(rig: Rig, law: TrackingLaw) -> type[ctypes.Structure]:
    """`rig_shared` of shared.h."""
    return structure(
        "Shared",
        ("heartbeat", _LONG),
        *((name, _INT) for name in ("run", "stop", "release")),
        *((name, _INT) for name in ("scheduled", "locked", "ended")),
        ("writes", _LONG),
        *((name, _LONG) for name in ("cycles", "skipped")),
        *((name, _REAL) for name in ("longest", "slowest", "latest", "busiest")),
        *(
            _array(name, BINS, ctypes.c_uint)
            for name in ("duration", "compute", "lateness", "transfer")
        ),
        *((name, _LONG) for name in ("rejected", "invalid", "delays")),
        *((name, _REAL) for name in ("delayed", "most_delayed", "elapsed")),
        _array("error", law.size),
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


def reference_of(plan: Plan) -> NDArray[np.float64]:
    """Rows of pose, twist and acceleration for the loop in C; an empty part has one column."""
    parts = [plan.pose, plan.twist, plan.acceleration]
    table = np.hstack([np.pad(part, ((0, 0), (0, not part.shape[1]))) for part in parts])
    return np.ascontiguousarray(table)


def count(shared: Any, quality: Quality) -> None:
    """Set statistics from those of the loop in C.

    Parameters
    ----------
    shared : ctypes.Structure
        `rig_shared`.
    quality : Quality
        Takes the numbers.
    """
    output = shared.output
    quality.cycles, quality.skipped = shared.cycles, shared.skipped
    quality.late, quality.lost, quality.clipped = output.late, output.lost, output.clipped
    quality.invalid, quality.refused = shared.invalid, shared.rejected
    for name, largest in (
        ("lateness", shared.latest),
        ("compute", shared.slowest),
        ("transfer", shared.busiest),
    ):
        counts = np.array(getattr(shared, name), dtype=np.int64)
        setattr(quality, name, Histogram(counts, largest))
