"""Comparison of the measured torque of a CiA 402 drive with the commanded torque."""

from __future__ import annotations

import math

from hil.drives._cia402_state import FOLLOWS, LIMITED
from hil.drives._drive import FaultCode

MISFIT = 0.2
"""Tolerated difference of measured and commanded torque, as a fraction of the axis' limit."""

LAG = 0.02
"""Largest lag of the measured torque behind the commanded one, and shortest duration of a
difference that is a fault, s."""


def lag_of(period: float) -> int:
    """Largest lag of a measured torque behind its command, cycles.

    Parameters
    ----------
    period : float
        Period of the loop, s.

    Returns
    -------
    int
        The number of cycles.
    """
    return max(2, math.ceil(LAG / period - 1e-9))


class Following:
    """Compares the reports of one drive with its commands.

    Torques are in the drive's units (0x6071, 0x6077), which saves conversions in the loop.
    """

    __slots__ = (
        "_commanded",
        "_cycles",
        "_follows",
        "_place",
        "_shows",
        "_wrong",
        "margin",
        "seen",
    )

    def __init__(self, margin: int, period: float, follows: bool) -> None:
        self.margin = margin
        self._cycles = lag_of(period)
        self._follows = follows
        self._commanded = [0] * (self._cycles + 1)  # targets of the last cycles, in a ring
        self._place = 0
        self._wrong = 0  # consecutive reports with a wrong torque
        self._shows = False  # whether 0x6077 was ever nonzero
        self.seen = False  # whether bit 12 was set since the drive was enabled

    def command(self, target: int) -> None:
        """Store the target (0x6071) of a cycle."""
        place = self._place + 1
        self._place = place if place < len(self._commanded) else 0
        self._commanded[self._place] = target

    def judge(self, status: int, torque: int | None) -> int:
        """Fault code for a report of a drive that is surely enabled; 0: no fault."""
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
        margin = self.margin
        if -margin <= torque - self._commanded[self._place] <= margin:  # nearly always
            self._wrong = 0
            return 0
        low, high = min(self._commanded), max(self._commanded)
        if status & LIMITED:  # the drive's own limit may reduce the torque, never increase it
            low, high = min(low, 0), max(high, 0)
        if low - margin <= torque <= high + margin:
            self._wrong = 0
            return 0
        self._wrong += 1
        return FaultCode.OTHER_TORQUE if self._wrong >= self._cycles else 0
