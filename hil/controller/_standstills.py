"""Standstills of the machine that delay the loop."""

from __future__ import annotations

import math

from hil._realtime import host_time
from hil.clock import ASLEEP, Clock
from hil.emulator import EmulationClock


class Standstills:
    """Standstills of the machine since the start of a run."""

    __slots__ = ("_asleep", "_clock", "_host", "count", "longest", "total")

    def __init__(self, clock: Clock) -> None:
        self._clock, self._host = clock, host_time()
        self._asleep = math.nan
        self.count, self.longest, self.total = 0, 0.0, 0.0  # delays of this loop, s

    def begin(self) -> None:
        """Start the detection of suspensions of the machine."""
        self._asleep = self._clock.asleep()

    @property
    def has_slept(self) -> bool:
        """Whether the machine was suspended since `begin`."""
        return self._clock.asleep() - self._asleep > ASLEEP

    def add(self, behind: float) -> None:
        """Count a cycle that is late by `behind`, s, or that follows skipped ones."""
        self.count += 1
        self.total += behind
        self.longest = max(self.longest, behind)

    @property
    def sentence(self) -> str:
        """Standstills and processor time taken by the host, as text; "" if there were none."""
        stolen, passed = (b - a for a, b in zip(self._host, host_time(), strict=True))
        parts = []
        stalls = self._clock.stalls if isinstance(self._clock, EmulationClock) else self
        if stalls.count:
            parts.append(
                f"the machine stood still {stalls.count} times, at most {1e3 * stalls.longest:.0f} "
                f"ms, in total {stalls.total:.2f} s"
            )
        if passed > 0.0 and stolen / passed >= 0.01:
            parts.append(f"its host took {100.0 * stolen / passed:.0f} % of the processor time")
        return "; ".join(parts)
