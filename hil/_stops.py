"""Reason and axis of the stop of a run, from the other columns of its record.

The loop takes the first reason in a fixed order: from outside, drives, motion of the axes, state,
law and reference, guard. Reasons from outside, such as a signal, leave no trace in the rows. All
others follow from rows, and their axis too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import TickStatus
from hil.guard import Verdict
from hil.reasons import Reason
from hil.state import Finding, Residual

if TYPE_CHECKING:
    from hil.record import Record
    from hil.settings import Rig

OUTSIDE = frozenset(
    {
        Reason.SIGNAL,
        Reason.OPERATOR,
        Reason.DEADMAN,
        Reason.RECORDER,
        Reason.FOREIGN,
        Reason.BUS_OFF,
        Reason.CLOCK,
        Reason.ERROR,
    }
)
"""Reasons that leave no trace in rows; they precede all others, and have no axis."""

EFFECTS = Reason.OVERSPEED, Reason.OUT_OF_RANGE, Reason.TRACKING
"""Reasons whose cause may be in the residual of an axis."""

OWED = 40
"""Number of cycles before a stop in which an axis with late reports has received fewer of them."""


@dataclass
class Evidence:
    """What recomputations found about the first cycle of a stop, row `k`."""

    k: int
    finding: Finding | None = None  # residual beyond its bound
    residual: Residual | None = None
    lost: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  # encoders that jump
    valid: bool = True  # the state
    verdict: Verdict = field(default_factory=lambda: Verdict(Reason.NONE))  # of the guard
    absent: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def suspected(self, axis: int) -> Finding | None:
        """Clear cause of a residual near its bound, of one axis or of any (-1)."""
        return None if self.residual is None else self.residual.suspected(axis)


def is_power_lost(
    reason: Reason, absent: list[int], fault: NDArray[np.int64], enabled: NDArray[np.bool_]
) -> bool:
    """Whether all drives fell silent or off at once."""
    if len(absent) < 2:
        return False
    if reason is Reason.LOST:
        return min(absent) == max(absent) > 0
    off = (fault != 0) | ~enabled
    return bool(off.all()) and all(_without_power(code) for code in fault.tolist())


def _without_power(code: int) -> bool:
    """Whether a fault may be a loss of power: none, a voltage (0x3000), or detected by the host."""
    return code == 0 or code >> 12 == 3 or code > 0xFFFF


@np.errstate(all="ignore")  # a record may contain any numbers
def stop_of(record: Record, rig: Rig, seen: Evidence) -> tuple[Reason, int]:
    """Reason and axis of a stop as they follow from the rows; the recorded ones if both may be so.

    Reason NONE: nothing in the rows explains a stop.
    """
    k = seen.k
    recorded = next((reason for reason in Reason if reason == record["reason"][k]), Reason.NONE)
    blamed = int(np.nan_to_num(record["axis"][k]))
    if recorded in OUTSIDE:
        return recorded, -1
    fault = np.nan_to_num(record["fault"][k]).astype(np.int64)
    enabled = record["enabled"][k] == 1.0
    verdict = seen.verdict
    late = _late(record, k) if recorded is Reason.STALE else []
    if late and verdict.reason is not Reason.STALE:
        return recorded, blamed if blamed in late else late[0]
    absent = seen.absent.astype(int).tolist()
    if fault.any():
        found = Reason.DRIVE_FAULT, int(np.argmax(fault != 0))
    elif not enabled.all():
        found = Reason.DRIVE_OFF, int(np.argmin(enabled))
    elif seen.finding is not None:
        return seen.finding.reason, seen.finding.axis
    elif recorded is Reason.POSE_LOST and rig.pose is not None and rig.pose.required:
        return recorded, -1  # poses are not recorded
    elif seen.lost.any():
        return Reason.JUMP, int(np.argmax(seen.lost))
    elif not seen.valid:
        found = Reason.NOT_FINITE, -1
    elif record["tick"][k] != TickStatus.OK:
        found = Reason.TICK_REFUSED, -1
    elif not (np.abs(record["error"][k]) <= rig.policies.largest_error).all():
        found = Reason.TRACKING, -1
    elif _is_done(record, k, rig.loop.period):
        found = Reason.END, -1
    elif verdict.reason is Reason.LOST:
        found = Reason.LOST, int(np.argmax(absent))
    else:
        found = verdict.reason, verdict.axis
    if found[0] in EFFECTS:
        cause = seen.suspected(-1 if found[0] is Reason.TRACKING else found[1])
        return found if cause is None else (cause.reason, cause.axis)
    if found[0] in (Reason.LOST, Reason.DRIVE_OFF, Reason.DRIVE_FAULT) and is_power_lost(
        found[0], absent, fault, enabled
    ):
        return Reason.POWER_LOST, -1
    return found


def _is_done(record: Record, k: int, period: float) -> bool:
    """Whether the reference of a row is the last one of its run."""
    passed = np.rint((record["deadline"][k] - record["deadline"][k - 1]) / period)
    planned = record.manifest.get("facts", {}).get("duration")
    last = float(planned) if isinstance(planned, int | float) else np.inf
    return bool(record["elapsed"][k - 1] + (passed + 0.5) * period > last)


def _late(record: Record, k: int) -> list[int]:
    """Axes whose reports may be late: they owe some."""
    first = max(k - OWED, 0)
    grown = record["reports"][k] - record["reports"][first]
    least = k - first if grown.min() == grown.max() else grown.max()
    return [int(i) for i in np.flatnonzero(grown < least)]
