"""Detection of reports that answer an earlier cycle than the one in which they arrive.

Before arming, the round trip from request to report is measured: it is within the receive window.
In the loop, requests and reports are counted. A report that arrives outside of the window answers
the oldest outstanding request, whose instant gives its age; such reports in many consecutive cycles
are late. A report that is late by whole cycles looks fresh: each cycle requests one report, and one
arrives. If reports arrive but one remains outstanding, either it was lost or all reports are late.
Then one cycle requests no report; a report that still arrives is late.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

CONFIRMED = 2
"""Number of pauses of a sequence with a report of an axis that show that its reports are late: a
single report may be delayed by chance. A pause is a cycle that requests no report."""

DOUBTED = 2
"""Number of cycles with an outstanding report, although others arrive, after which one pauses: a
report that was delayed by chance, and comes within them, costs no pause."""

MOST = 1000
"""Largest number of outstanding requests that are kept."""

SEQUENCE = (2, 3, 4)
"""Numbers of cycles between successive pauses of a sequence.

They differ, because with reports that are late by two cycles the second of two regular pauses would
meet the gap left by the first."""


class Punctuality:
    """Counts requested and received reports."""

    def __init__(self, axes: int, patience: int) -> None:
        self._patience = patience
        # Instants of the requests of outstanding reports.
        self._owed: list[deque[float]] = [deque(maxlen=MOST) for _ in range(axes)]
        self._outside = [0] * axes  # consecutive cycles with reports outside of the window only
        self._doubt = [0] * axes  # cycles with an outstanding report although another arrived
        self._caught = [0] * axes  # pauses of a sequence with a report
        self._next: tuple[int, ...] = ()  # numbers of cycles before each of the next pauses
        self._wait = 0  # number of cycles before the next planned pause; 0: no planned pause
        self.pauses = False  # whether this cycle requests no report
        self.late = -1  # axis whose reports answer earlier cycles

    def ask(self, axis: int, instant: float) -> None:
        """Count a request for a report of an axis."""
        self._owed[axis].append(instant)

    def come(self, axis: int) -> float:
        """Count a received report of an axis; return the instant of the oldest request, or NaN."""
        return self._owed[axis].popleft() if self._owed[axis] else math.nan

    def doubts(self, axis: int) -> bool:
        """Whether reports of an axis may be late: one arrived while another is outstanding."""
        return self._doubt[axis] > 0 or self._caught[axis] > 0

    def end(self, fresh: Sequence[bool], outside: Sequence[bool], pausing: bool) -> None:
        """End the receive window of a cycle, in which or before which some axes have reported."""
        self.pauses = False
        for k, (came, late) in enumerate(zip(fresh, outside, strict=True)):
            self._outside[k] = 0 if came else self._outside[k] + late
            if self._outside[k] > self._patience:
                self.late = k
        if pausing:
            self._judge(fresh, outside)
        else:
            for k, came in enumerate(fresh):
                if not self._owed[k]:
                    self._doubt[k] = 0
                elif came:
                    self._doubt[k] += 1
        if self._wait:
            self._wait -= 1
            self.pauses = not self._wait
        elif max(self._doubt) > min(DOUBTED, self._patience):
            self.pauses = True

    def postpone(self) -> None:
        """Request reports in this cycle, and pause in the next one."""
        self.pauses, self._wait = False, 1

    def _judge(self, fresh: Sequence[bool], outside: Sequence[bool]) -> None:
        """Evaluate a pause: reports that arrived are late, outstanding ones are lost."""
        first = not any(self._caught)
        for k, (came, late) in enumerate(zip(fresh, outside, strict=True)):
            self._doubt[k] = 0
            self._caught[k] += came
            if not (came or late):
                self._owed[k].clear()
        if max(self._caught) >= CONFIRMED:
            self.late = self._caught.index(max(self._caught))
        if first:
            self._next = SEQUENCE if any(fresh) else ()
        if self._next:
            self._wait, *rest = self._next
            self._next = tuple(rest)
        else:
            self._caught = [0] * len(fresh)


def punctuality_numbers(patience: int) -> dict[str, int]:
    """Numbers of `Punctuality` by name, for code in C."""
    return {
        "FAULTS": patience,
        "DOUBTED": min(DOUBTED, patience),
        "CONFIRMED": CONFIRMED,
        "MOST_OWED": MOST,
    }
