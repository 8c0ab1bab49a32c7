"""Time for the loop: monotonic seconds, and a way to wait for an instant.

Wall-clock time is never used: it may jump. `SteppedClock` lets a loop run without real time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

SPIN = 200e-6
"""Last part of a wait, in which the clock is polled, s: sleeping would wake too late."""
STANDSTILL = 1_000_000
"""Consecutive equal readings after which the clock counts as stopped."""
ASLEEP = 1e-3
"""Tolerated time of suspension, s: far below any real suspension, far above rounding."""

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Interface of the loop's clock."""

    def now(self) -> float:
        """Seconds since some instant; never goes back."""
        ...

    def sleep_until(self, instant: float) -> None:
        """Sleep until `instant`; return at once if it has passed.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        ...

    def asleep(self) -> float:
        """Time for which the machine was suspended and this clock stood still, s."""
        ...


class MonotonicClock:
    """The monotonic clock of the machine: sleeps, then spins.

    Parameters
    ----------
    spin : float
        Last part of each wait, in which the clock is polled, s.
    """

    __slots__ = ("spin",)

    def __init__(self, spin: float = SPIN) -> None:
        self.spin = spin

    def now(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic_ns() * 1e-9

    def sleep_until(self, instant: float) -> None:
        """Sleep until `instant`; return early if it has passed or the clock has stopped.

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

        The difference of CLOCK_BOOTTIME, which counts suspensions, and CLOCK_MONOTONIC, which does
        not; 0 on systems without CLOCK_BOOTTIME.

        Returns
        -------
        float
            A lower bound of the time, even if the process is delayed between the readings.
        """
        if _BOOTTIME is None:
            return 0.0
        return (time.clock_gettime_ns(_BOOTTIME) - time.monotonic_ns()) * 1e-9


class SteppedClock:
    """A clock that moves only during waits, and advances an emulated world.

    Parameters
    ----------
    advance : callable, optional
        Called with the new instant, s; advances an emulated world to it.
    start : float
        First instant, s.

    Attributes
    ----------
    wake : callable or None
        Returns the instant of the next event of the emulated world, s, if that is known.
    """

    __slots__ = ("_now", "advance", "wake")

    def __init__(
        self, advance: Callable[[float], object] | None = None, start: float = 1000.0
    ) -> None:
        self.advance = advance
        self.wake: Callable[[], float] | None = None
        self._now = start

    def now(self) -> float:
        """Present instant, s."""
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

    def step(self, size: float, until: float) -> None:
        """Move by one step, or by the steps that end at or after the next event of the world.

        Parameters
        ----------
        size : float
            Length of a step, s.
        until : float
            Last instant to move to, s.
        """
        steps, now = 1, self.now()
        if self.wake is not None and self.advance is not None:
            self.advance(self._now)  # what was sent counts as an event
            steps = max(1, math.ceil(min(self.wake() - self._now, until - now) / size))
        self.sleep_until(min(now + steps * size, until))

    def asleep(self) -> float:
        """Time of suspension, s: zero."""
        return 0.0
