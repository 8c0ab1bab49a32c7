"""Time for the loop: monotonic seconds, and a way to wait for an instant.

Wall-clock time is never used: it may jump. `SteppedClock` lets a loop run without real time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

SPIN = 200e-6
"""The last part of a wait, s, spent in asking the clock: sleeping wakes too late."""
STANDSTILL = 1_000_000
"""Readings of the clock in a row that are the same after which it has stopped."""
ASLEEP = 1e-3
"""Time that the machine may have slept, s: far below any suspension, far above rounding."""

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """What the loop knows of time."""

    def now(self) -> float:
        """Seconds since some instant; never goes back."""
        ...

    def sleep_until(self, instant: float) -> None:
        """Return at `instant` or, if that has passed, at once.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        ...

    def asleep(self) -> float:
        """Time for which the machine slept and this clock did not run, s, since some instant."""
        ...


class MonotonicClock:
    """The monotonic clock of the machine: sleeps, then spins.

    Parameters
    ----------
    spin : float
        Last part of each wait that is spent in asking the clock, s.
    """

    __slots__ = ("spin",)

    def __init__(self, spin: float = SPIN) -> None:
        self.spin = spin

    def now(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic_ns() * 1e-9

    def sleep_until(self, instant: float) -> None:
        """Return at `instant`, at once if that has passed, and soon if the clock has stopped.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        before = self.now()
        pause = instant - before - self.spin
        if pause > 0.0:
            time.sleep(pause)
        same = 0
        while (now := self.now()) < instant and same < STANDSTILL:
            same = same + 1 if now == before else 0
            before = now

    def asleep(self) -> float:
        """Time for which the machine was suspended since it started, s.

        The difference of CLOCK_BOOTTIME, which runs on, and CLOCK_MONOTONIC, which does not; always
        0 on systems without the former.

        Returns
        -------
        float
            Never more than the time in truth, even if the process is held up between the readings.
        """
        if _BOOTTIME is None:
            return 0.0
        return (time.clock_gettime_ns(_BOOTTIME) - time.monotonic_ns()) * 1e-9


class SteppedClock:
    """A clock that moves only when someone waits for it, and moves a world along.

    Parameters
    ----------
    advance : callable, optional
        Called with the instant that is reached, s; an emulated world moves up to it.
    start : float
        First instant, s.
    """

    __slots__ = ("_now", "advance")

    def __init__(
        self, advance: Callable[[float], object] | None = None, start: float = 1000.0
    ) -> None:
        self.advance = advance
        self._now = start

    def now(self) -> float:
        """Instant that was reached."""
        return self._now

    def sleep_until(self, instant: float) -> None:
        """Move to `instant`, unless it has passed.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        if instant > self._now:
            self._now = instant
        if self.advance is not None:
            self.advance(self._now)

    def asleep(self) -> float:
        """Time for which the machine slept, s: none."""
        return 0.0
