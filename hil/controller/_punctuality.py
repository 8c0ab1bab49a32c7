"""Whether reports answer the cycle in which they come, or an earlier one.

A report that is late by whole cycles looks as fresh as one in time: in each cycle one is asked
for, and one comes. Two things tell them apart. Before arming, the round trip is measured, from
asking to the report. In the loop, reports that are owed are counted: where reports come, but one
has been owed for a while, it was lost, or all of them are late. Then one cycle asks for nothing; a
report that comes nevertheless is late.
"""

from __future__ import annotations

from collections.abc import Sequence

CONFIRMED = 2
"""Cycles that asked for nothing, and brought a report of an axis, of which so many in a sequence
show that its reports are late: one may have been held up by chance."""

SEQUENCE = (2, 3, 4)
"""Cycles from the first one that brought a report to the second, and so on.

Where reports are late by two cycles the second finds the gap that the first has left: the steps
differ."""


class Punctuality:
    """Counts what was asked for and what came."""

    def __init__(self, axes: int, patience: int) -> None:
        self._patience = patience
        self._owed = [0] * axes  # reports that were asked for and did not come
        self._doubt = [0] * axes  # cycles in which one was owed although another one came
        self._caught = [0] * axes  # pauses of a sequence with a report
        self._next: tuple[int, ...] = ()  # cycles up to each of the pauses that follow
        self._wait = 0  # cycles up to the next pause that is planned; 0: none is
        self.pauses = False  # whether this cycle asks for no report
        self.delayed = False  # whether reports of an axis answer earlier cycles

    def ask(self, axis: int) -> None:
        """Count a report that an axis was asked for."""
        self._owed[axis] += 1

    def come(self, axis: int) -> None:
        """Count a report of an axis."""
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
        """Ask in this cycle nevertheless, and pause in a later one."""
        self.pauses, self._wait = False, 1

    def _judge(self, fresh: Sequence[bool]) -> None:
        """Judge by a cycle that asked for nothing: whatever came is late, what did not is lost."""
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
