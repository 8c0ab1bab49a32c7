"""Dependent columns of a record, recomputed: cycles, deadlines, reasons, counters, drives.

The loop counts them while it runs. This module computes their expected values from the row, the
preceding row, and the columns that are not counters. After missing rows, counters are compared with
the last available row: they never decrease.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hil.guard import CLIPPED
from hil.quality import LATE
from hil.reasons import Reason, State
from hil.record import Record

Numbers = NDArray[np.float64]

REPORTED = "position", "velocity", "measured", "report_time"
"""Columns that change only with a report."""

COUNTERS = "late", "lost", "clipped", "invalid", "reports"
"""Columns that never decrease."""


def contradictions(record: Record, period: float) -> Iterator[tuple[str, int, Numbers, Numbers]]:
    """Column, row, recorded and expected numbers wherever a row contradicts `expected`."""
    for name, values in expected(record, period).items():
        recorded, computed = (np.atleast_2d(part.T).T for part in (record[name], values))
        same = np.isclose(recorded, computed, rtol=0.0, atol=0.0, equal_nan=True)
        for k in np.flatnonzero(~same.all(axis=1)).tolist():
            yield name, k, recorded[k], computed[k]


@np.errstate(all="ignore")  # a record may contain any numbers
def expected(record: Record, period: float) -> dict[str, Numbers]:
    """Expected values of columns, given the others; equal to the recorded ones if possible."""
    state, reason, index = record["state"], record["reason"], record.index
    deadline, flags, reports = record["deadline"], record["flags"], record["reports"]
    follows = np.diff(index, prepend=-1) == 1  # the first row of a run follows nothing
    lowest = float(State.ARMED)
    before = np.concatenate([[lowest], state[:-1]])
    runs, ran = state == State.RUN, before == State.RUN
    stops = state == State.STOP

    result = {name: _never_less(record[name]) for name in COUNTERS}
    result["cycle"] = 1.0 + index.astype(np.float64)
    # The loop arms before its first cycle, and states never decrease.
    possible = np.where(np.isin(state, list(State)), np.fmax(state, lowest), lowest)
    result["state"] = np.maximum.accumulate(possible)
    # The first reason of a stop stays.
    kept = np.where(stops & (before == State.STOP), np.append(0.0, reason[:-1]), reason)
    known = np.isin(kept, list(Reason)) & (kept != Reason.NONE)
    result["reason"] = np.where(stops, np.where(known, kept, float(Reason.ERROR)), 0.0)

    passed = np.rint(np.diff(deadline, prepend=np.nan) / period)
    previous = np.append(np.nan, record["elapsed"][:-1])
    instant = np.where(ran, np.rint(previous / period) + passed, 0.0)
    # After a gap before the run the start of the run is unknown.
    instant = np.where(ran | follows, instant, np.rint(record["elapsed"] / period))
    result["elapsed"] = np.where(runs, instant * period, np.nan)

    # The loop adds one period for each deadline, also without a cycle; no cycle begins earlier.
    last = np.append(np.nan, deadline[:-1])
    chain = (last + period) + np.fmax(passed - 1.0, 0.0) * period
    result["deadline"] = np.where(follows & ~np.isnan(last), chain, deadline)
    earlier = np.append(np.nan, record["time"][:-1])
    least = np.fmax(np.fmax(record["time"], deadline), earlier)
    # After a stop with reason CLOCK, times have no order.
    clock = reason == Reason.CLOCK
    result["time"] = np.where(clock, record["time"], least)

    kept = (np.diff(reports, axis=0, prepend=np.nan) == 0.0) & follows[:, None]
    for name in REPORTED:
        result[name] = np.where(kept, np.roll(record[name], 1, axis=0), record[name])
    # No report arrives after the end of the cycle.
    in_order = follows[1:] & ~clock[1:]
    ended = np.append(np.where(in_order, record["time"][1:], np.inf), np.inf)[: len(index)]
    result["report_time"] = np.minimum(result["report_time"], ended[:, None])

    result["command_time"] = np.fmin(record["command_time"], ended)
    result["command_time"][np.isnan(record["command_time"])] = np.nan
    blamed = np.where(np.isin(record["axis"], range(len(record.axes))), record["axis"], -1.0)
    first = stops & (before != State.STOP)
    result["axis"] = np.where(stops, np.where(first, blamed, np.append(-1.0, blamed[:-1])), -1.0)

    late = record["time"] - deadline > LATE * period
    same = np.sum(np.diff(reports, axis=0, prepend=np.nan) == 0.0, axis=1)
    clipped = flags.astype(np.int64, casting="unsafe") & CLIPPED != 0
    grown = {name: np.diff(record[name], prepend=0.0) for name in COUNTERS[:3]}
    steps = {
        "late": late,
        # A cycle that requested no report has no missing report.
        "lost": np.where(ran & (grown["lost"] != 0.0), same, 0),
        # A run may stop in a cycle before its torque was checked.
        "clipped": clipped & (runs | (stops & (before != State.STOP) & (grown["clipped"] != 0.0))),
    }
    for name, step in steps.items():
        last = np.append(0.0, record[name][:-1])
        result[name] = np.where(follows, last + step, result[name])

    if record.manifest.get("mode") not in ("listen", "shadow"):
        both = (runs & ran)[:, None]
        result["enabled"] = np.where(both, 1.0, record["enabled"])
        result["fault"] = np.where(both, 0.0, record["fault"])
    return result


def _never_less(counter: Numbers) -> Numbers:
    """A counter, rounded to integers and not below the preceding row."""
    whole = np.where(np.isfinite(counter), np.rint(counter), 0.0)
    before: Numbers = np.concatenate([np.zeros_like(whole[:1]), whole[:-1]])
    return np.maximum(whole, before)
