"""Time of an emulated rig, which stops while the machine suspends one side of the emulation.

The process of the emulated rig writes the time and grants it in short leases. A controller on the
same machine reads the time and writes the instant until which it is idle. If the machine suspends
either side, the time of both stops: emulated drives do not miss commands of a suspended controller,
and the controller does not miss reports of suspended drives. Time passes without a side that is
silent for longer than `LONGEST_STALL`: this side hangs, or is dead.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from typing import Any

from hil.clock import SPIN, MonotonicClock
from hil.emulator._shared import TRIES

LEASE = 1.5e-3
"""Time that passes unless the emulated rig renews the lease, s."""

SLACK = 1e-3
"""Time that passes after the instant at which an idle controller should wake, s."""

LONGEST_STALL = 1.0
"""Silence of one side after which time passes without it, s."""

NOTABLE = 1e-3
"""Shortest standstill that counts as a stall, s."""

_NUMBERS = 10
_REAL, _TIME, _LEASE, _COUNT, _LONGEST, _TOTAL, _DUE, _SAID, _MARK = range(1, _NUMBERS)


@dataclass(frozen=True)
class Stalls:
    """Standstills of the machine.

    Parameters
    ----------
    count : int
        Number of standstills.
    longest, total : float
        Longest and total duration, s.
    """

    count: int = 0
    longest: float = 0.0
    total: float = 0.0


class SharedTime:
    """Shared memory with the time of an emulated rig."""

    def __init__(self, raw: Any = None) -> None:
        self.raw = RawArray(ctypes.c_double, _NUMBERS) if raw is None else raw
        self.numbers = memoryview(self.raw).cast("B").cast("d")
        if raw is None:
            self.numbers[_REAL] = self.numbers[_TIME] = time.monotonic()
            self.numbers[_DUE] = math.inf

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedTime, (self.raw,)

    def at(self, real: float) -> float:
        """Time of the emulated rig at an instant of the monotonic clock, s."""
        numbers = self.numbers
        for _ in range(TRIES):
            before = numbers[0]
            step = real - numbers[_REAL]
            value, lease = numbers[_TIME], numbers[_LEASE]
            if before % 2.0 == 0.0 and numbers[0] == before:
                break
            real = time.monotonic()
        value += min(max(step, 0.0), lease)
        return value if step <= LONGEST_STALL else value + step - LONGEST_STALL

    @property
    def stalls(self) -> Stalls:
        """Standstills so far."""
        numbers = self.numbers
        return Stalls(int(numbers[_COUNT]), numbers[_LONGEST], numbers[_TOTAL])


class Timekeeper:
    """Advances the time of an emulated rig; for its process."""

    def __init__(self, shared: SharedTime) -> None:
        self._shared = shared
        self._stalled = 0.0  # duration of the present standstill, s
        self._mark = 0.0
        self._time = self._real = math.nan

    def now(self) -> float:
        """Time at the last `tick`, s; the first call starts the time."""
        return self.tick() if math.isnan(self._time) else self._time

    def tick(self) -> float:
        """Renew the lease; return the time now, s."""
        shared, numbers, real = self._shared, self._shared.numbers, time.monotonic()
        lost = 0.0
        if math.isnan(self._time):
            value = real
        else:
            value = max(shared.at(real), self._time)
            lost = (real - self._real) - (value - self._time)
        self._real, self._time = real, value
        limit = numbers[_DUE] + SLACK + max(real - numbers[_SAID] - LONGEST_STALL, 0.0)
        numbers[0] += 1.0
        numbers[_REAL], numbers[_TIME] = real, value
        numbers[_LEASE] = min(max(limit - value, 0.0), LEASE)
        if numbers[_MARK] != self._mark:
            self._mark = numbers[_MARK]
            self._stalled = lost = numbers[_COUNT] = numbers[_LONGEST] = numbers[_TOTAL] = 0.0
        if lost > 1e-6:
            if self._stalled < NOTABLE <= self._stalled + lost:
                numbers[_COUNT] += 1.0
            self._stalled += lost
            numbers[_TOTAL] += lost
            numbers[_LONGEST] = max(numbers[_LONGEST], self._stalled)
        else:
            self._stalled = 0.0
        numbers[0] += 1.0
        return value

    def stamped(self, send: Callable[[Mapping[str, Any]], object]) -> Callable[..., object]:
        """Wrap `send` so that samples have the time of the receiving controller.

        A controller that does not share this time uses the machine's.
        """

        def stamped(sample: Mapping[str, Any]) -> object:
            if self._shared.numbers[_DUE] < math.inf:
                return send(sample)
            return send({**sample, "time": sample["time"] + self._real - self._time})

        return stamped


class EmulationClock(MonotonicClock):
    """Clock of a controller that stops together with the clock of an emulated rig.

    Parameters
    ----------
    shared : SharedTime
        Shared memory with the time.
    spin : float
        Last part of each wait, in which the clock is polled, s.
    """

    __slots__ = ("_last", "shared")

    def __init__(self, shared: SharedTime, spin: float = SPIN) -> None:
        super().__init__(spin)
        self.shared = shared
        self._last = -math.inf

    @property
    def stalls(self) -> Stalls:
        """Standstills of the machine since the controller joined."""
        return self.shared.stalls

    def now(self) -> float:
        """Time of the emulated rig, s."""
        real = time.monotonic()
        now = self.shared.at(real)
        if now > self._last:
            self._last = now
        numbers = self.shared.numbers
        numbers[_SAID] = real
        if self._last > numbers[_DUE]:
            numbers[_DUE] = self._last
        return self._last

    def join(self) -> None:
        """Stop the time whenever this controller is suspended, from now on; clear the stalls."""
        self.expect(self.now())
        self.shared.numbers[_MARK] += 1.0

    def expect(self, instant: float) -> None:
        """Declare that the controller is idle until an instant.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        if instant >= self._last:
            self.shared.numbers[_DUE] = instant

    def sleep_until(self, instant: float) -> None:
        """Sleep until `instant`; return at once if it has passed.

        Parameters
        ----------
        instant : float
            Instant of this clock, s.
        """
        left = instant - self.now()
        if left <= 0.0:
            return
        self.expect(instant)
        pause = left - self.spin
        while left > 0.0:
            if pause > 0.0:
                time.sleep(pause)
            before, left = left, instant - self.now()
            # Poll a stopped clock again after a pause, not at once.
            pause = left - self.spin if left > self.spin else (SPIN if left == before else 0.0)

    def asleep(self) -> float:
        """Time that passed during suspension, s: zero, as the emulated rig is suspended too."""
        return 0.0

    def leave(self) -> None:
        """Let time pass even if this controller is suspended."""
        self.shared.numbers[_DUE] = math.inf
