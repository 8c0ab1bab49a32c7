"""Whether a CiA 402 drive does what it is commanded, judged at each of its reports."""

from __future__ import annotations

import math

from hil.drives._cia402_state import FOLLOWS, LIMITED
from hil.drives._drive import FaultCode

MISFIT = 0.2
"""Difference of measured and commanded torque that counts, as a share of the axis' limit."""

LAG = 0.02
"""Time that the measured torque may be behind the commanded one, and time for which a difference
must last, s."""


class Following:
    """Holds the reports of one drive against what it was commanded.

    Numbers are those of the drive (0x6071, 0x6077), so that a report costs comparisons only.
    """

    __slots__ = (
        "_commanded",
        "_cycles",
        "_follows",
        "_margin",
        "_place",
        "_shows",
        "_wrong",
        "seen",
    )

    def __init__(self, margin: int, period: float, follows: bool) -> None:
        self._margin = margin
        self._cycles = max(2, math.ceil(LAG / period - 1e-9))
        self._follows = follows
        self._commanded = [0] * (self._cycles + 1)  # targets of the last cycles, in a ring
        self._place = 0
        self._wrong = 0  # reports in a row with another torque
        self._shows = False  # whether 0x6077 was ever anything but zero
        self.seen = False  # whether bit 12 was set since the drive was enabled

    def command(self, target: int) -> None:
        """Note the target (0x6071) of a cycle."""
        place = self._place + 1
        self._place = place if place < len(self._commanded) else 0
        self._commanded[self._place] = target

    def judge(self, status: int, torque: int | None) -> int:
        """Fault code by a report of a drive that has been enabled for a while; 0: none."""
        if self._follows:
            if status & FOLLOWS:
                self.seen = True
            elif self.seen:
                return FaultCode.NOT_FOLLOWING
        if torque is None:
            return 0
        if not self._shows:
            if torque == 0:  # some drives have the object and never fill it in
                return 0
            self._shows = True
        margin = self._margin
        if -margin <= torque - self._commanded[self._place] <= margin:  # nearly always
            self._wrong = 0
            return 0
        low, high = min(self._commanded), max(self._commanded)
        if status & LIMITED:  # a limit of its own may take torque away, never add to it
            low, high = min(low, 0), max(high, 0)
        if low - margin <= torque <= high + margin:
            self._wrong = 0
            return 0
        self._wrong += 1
        return FaultCode.OTHER_TORQUE if self._wrong >= self._cycles else 0
