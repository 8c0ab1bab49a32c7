"""Numbers of a record that follow from others: cycles, deadlines, reasons, counters, drives.

The loop counts them while it runs. What a row must say is computed here from the row, from the row
before, and from the columns that do not count anything. Where a row is missing, counters are
compared with the last row that is there: they never decrease.
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
"""Columns that a report changes, and nothing else."""

COUNTERS = "late", "lost", "stale", "clipped", "invalid", "reports"
"""Columns that never decrease."""


def contradictions(record: Record, period: float) -> Iterator[tuple[str, int, Numbers, Numbers]]:
    """Column, row, recorded and expected numbers wherever a row contradicts `expected`."""
    for name, values in expected(record, period).items():
        recorded, wanted = (np.atleast_2d(part.T).T for part in (record[name], values))
        same = np.isclose(recorded, wanted, rtol=0.0, atol=0.0, equal_nan=True)
        for k in np.flatnonzero(~same.all(axis=1)).tolist():
            yield name, k, recorded[k], wanted[k]


@np.errstate(all="ignore")  # of records of strangers
def expected(record: Record, period: float) -> dict[str, Numbers]:
    """What columns must say if the rest is right: their own numbers where these are possible."""
    state, reason, index = record["state"], record["reason"], record.index
    deadline, flags, reports = record["deadline"], record["flags"], record["reports"]
    follows = np.diff(index, prepend=-1) == 1  # the first row of a run follows nothing
    lowest = float(State.ARMED)
    before = np.concatenate([[lowest], state[:-1]])
    runs, ran = state == State.RUN, before == State.RUN
    stops = state == State.STOP

    wanted = {name: _never_less(record[name]) for name in COUNTERS}
    wanted["cycle"] = 1.0 + index.astype(np.float64)
    # The loop arms before its first cycle, and does not go back.
    possible = np.where(np.isin(state, list(State)), np.fmax(state, lowest), lowest)
    wanted["state"] = np.maximum.accumulate(possible)
    # The first reason of a stop stays.
    kept = np.where(stops & (before == State.STOP), np.append(0.0, reason[:-1]), reason)
    known = np.isin(kept, list(Reason)) & (kept != Reason.NONE)
    wanted["reason"] = np.where(stops, np.where(known, kept, float(Reason.ERROR)), 0.0)

    passed = np.rint(np.diff(deadline, prepend=np.nan) / period)
    previous = np.append(np.nan, record["elapsed"][:-1])
    instant = np.where(ran, np.rint(previous / period) + passed, 0.0)
    # After a gap before the run it is not known when the run began.
    instant = np.where(ran | follows, instant, np.rint(record["elapsed"] / period))
    wanted["elapsed"] = np.where(runs, instant * period, np.nan)

    # The loop adds the period, and that of each deadline without a cycle; no cycle begins sooner.
    last = np.append(np.nan, deadline[:-1])
    chain = (last + period) + np.fmax(passed - 1.0, 0.0) * period
    wanted["deadline"] = np.where(follows & ~np.isnan(last), chain, deadline)
    earlier = np.append(np.nan, record["time"][:-1])
    least = np.fmax(np.fmax(record["time"], deadline), earlier)
    # A clock that went back is the reason of a stop; from there on its times have no order.
    clock = reason == Reason.CLOCK
    wanted["time"] = np.where(clock, record["time"], least)

    kept = (np.diff(reports, axis=0, prepend=np.nan) == 0.0) & follows[:, None]
    for name in REPORTED:
        wanted[name] = np.where(kept, np.roll(record[name], 1, axis=0), record[name])
    # No report comes after the cycle has ended.
    in_order = follows[1:] & ~clock[1:]
    ended = np.append(np.where(in_order, record["time"][1:], np.inf), np.inf)[: len(index)]
    wanted["report_time"] = np.minimum(wanted["report_time"], ended[:, None])

    late = record["time"] - deadline > LATE * period
    same = np.sum(np.diff(reports, axis=0, prepend=np.nan) == 0.0, axis=1)
    clipped = flags.astype(np.int64, casting="unsafe") & CLIPPED != 0
    grown = {name: np.diff(record[name], prepend=0.0) for name in COUNTERS[:4]}
    steps = {
        "late": late,
        # A cycle that asked for no report misses none.
        "lost": np.where(ran & (grown["lost"] != 0.0), same, 0),
        # Either ends the run.
        "stale": np.where(
            ran & stops,
            np.fmin(np.fmax(np.rint(grown["stale"]), reason == Reason.STUCK), len(record.axes)),
            0,
        ),
        # A run that stops in a cycle may have stopped before its torque was judged.
        "clipped": clipped & (runs | (stops & (before != State.STOP) & (grown["clipped"] != 0.0))),
    }
    for name, step in steps.items():
        last = np.append(0.0, record[name][:-1])
        wanted[name] = np.where(follows, last + step, wanted[name])

    if record.manifest.get("mode") not in ("listen", "shadow"):
        both = (runs & ran)[:, None]
        wanted["enabled"] = np.where(both, 1.0, record["enabled"])
        wanted["fault"] = np.where(both, 0.0, record["fault"])
    return wanted


def _never_less(counter: Numbers) -> Numbers:
    """The counter where it is a whole number not below that of the row before."""
    whole = np.where(np.isfinite(counter), np.rint(counter), 0.0)
    before: Numbers = np.concatenate([np.zeros_like(whole[:1]), whole[:-1]])
    return np.maximum(whole, before)
