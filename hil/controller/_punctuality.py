"""Detection of reports that answer an earlier cycle than the one in which they arrive.

A report that is late by whole cycles looks fresh: each cycle requests one report, and one arrives.
Two measures detect such reports. Before arming, the round trip from request to report is measured.
In the loop, outstanding reports are counted. If reports arrive but one remains outstanding, either
it was lost or all reports are late. Then one cycle requests no report; a report that still arrives
is late.
"""

from __future__ import annotations

from collections.abc import Sequence

CONFIRMED = 2
"""Number of pauses of a sequence with a report of an axis that show that its reports are late: a
single report may be delayed by chance. A pause is a cycle that requests no report."""

SEQUENCE = (2, 3, 4)
"""Numbers of cycles between successive pauses of a sequence.

They differ, because with reports that are late by two cycles the second of two regular pauses would
meet the gap left by the first."""


class Punctuality:
    """Counts requested and received reports."""

    def __init__(self, axes: int, patience: int) -> None:
        self._patience = patience
        self._owed = [0] * axes  # outstanding reports
        self._doubt = [0] * axes  # cycles with an outstanding report although another arrived
        self._caught = [0] * axes  # pauses of a sequence with a report
        self._next: tuple[int, ...] = ()  # numbers of cycles before each of the next pauses
        self._wait = 0  # number of cycles before the next planned pause; 0: no planned pause
        self.pauses = False  # whether this cycle requests no report
        self.delayed = False  # whether reports of an axis answer earlier cycles

    def ask(self, axis: int) -> None:
        """Count a request for a report of an axis."""
        self._owed[axis] += 1

    def come(self, axis: int) -> None:
        """Count a received report of an axis."""
        if self._owed[axis]:
            self._owed[axis] -= 1

    def end(self, fresh: Sequence[bool], pausing: bool) -> None:
        """End the receive window of a cycle, in which some axes have reported."""
        self.pauses = False
        if pausing:
            self._judge(fresh)
        else:
            for k, came in enumerate(fresh):
                if not self._owed[k]:
                    self._doubt[k] = 0
                elif came:
                    self._doubt[k] += 1
        if self._wait:
            self._wait -= 1
            self.pauses = not self._wait
        elif max(self._doubt) > self._patience:
            self.pauses = True

    def postpone(self) -> None:
        """Request reports in this cycle, and pause in the next one."""
        self.pauses, self._wait = False, 1

    def _judge(self, fresh: Sequence[bool]) -> None:
        """Evaluate a pause: reports that arrived are late, outstanding ones are lost."""
        first = not any(self._caught)
        for k, came in enumerate(fresh):
            self._doubt[k] = 0
            self._caught[k] += came
            if not came:
                self._owed[k] = 0
        self.delayed = self.delayed or max(self._caught) >= CONFIRMED
        if first:
            self._next = SEQUENCE if any(fresh) else ()
        if self._next:
            self._wait, *rest = self._next
            self._next = tuple(rest)
        else:
            self._caught = [0] * len(fresh)
