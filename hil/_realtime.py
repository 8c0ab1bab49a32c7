"""Real-time settings of the loop: priority, locked memory, no garbage collection.

Rejected requests are reported, and lateness is measured in any case. `measure_machine` measures in
advance whether a machine is suitable for a process in real time.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NAP = 1e-3
"""Duration of the sleeps whose lateness is measured, s."""

NOTED = 0.05
"""Fraction of time lost, or taken by the host, from which it is reported."""

TOO_MUCH = 0.5
"""Fraction of time lost, or taken by the host, above which no rig is emulated."""

_CURRENT_AND_FUTURE = 3  # MCL_CURRENT | MCL_FUTURE


@dataclass(frozen=True)
class Granted:
    """Real-time settings that the operating system granted."""

    priority: int  # of SCHED_FIFO; 0: normal scheduling
    memory_locked: bool
    notes: tuple[str, ...] = ()  # reasons for rejected requests, with remedies


@contextmanager
def realtime(priority: int, lock_memory: bool) -> Iterator[Granted]:
    """Use a priority (0: unchanged) and no garbage collection in this context, where permitted."""
    notes: list[str] = []
    scheduled = priority > 0 and _fifo(priority, notes)
    locked = lock_memory and _lock_memory(notes)
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield Granted(priority if scheduled else 0, locked, tuple(notes))
    finally:
        if not frozen:  # otherwise the caller has frozen objects and keeps them so
            gc.unfreeze()
        if collecting:
            gc.enable()
        if locked:
            _libc().munlockall()
        if scheduled:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _fifo(priority: int, notes: list[str]) -> bool:
    if not hasattr(os, "sched_setscheduler"):
        notes.append(f"no SCHED_FIFO on {sys.platform}: expect milliseconds of lateness")
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        notes.append(
            f"no SCHED_FIFO ({error.strerror}): expect milliseconds of lateness; allow "
            "`rtprio` in /etc/security/limits.conf"
        )
        return False
    return True


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _lock_memory(notes: list[str]) -> bool:
    if not sys.platform.startswith("linux"):
        notes.append(f"memory cannot be locked on {sys.platform}")
        return False
    if _libc().mlockall(_CURRENT_AND_FUTURE) != 0:
        reason = os.strerror(ctypes.get_errno())
        notes.append(f"memory not locked ({reason}); allow `memlock` in limits.conf")
        return False
    return True


@dataclass(frozen=True)
class Machine:
    """Measured suitability of a machine for a process in real time."""

    cores: int  # number of processors of the process
    steal: float  # fraction of processor time that the host of a virtual machine took
    late: float  # 99 % quantile of the lateness of wake-ups, s
    longest: float  # largest lateness of a wake-up, s
    lost: float  # fraction of time lost by late wake-ups

    @property
    def keeps_up(self) -> bool:
        """Whether a rig can be emulated in real time, even if slowed down."""
        return max(self.steal, self.lost) <= TOO_MUCH

    @property
    def is_steady(self) -> bool:
        """Whether the machine is suitable without a note."""
        return self.cores > 1 and max(self.steal, self.lost) < NOTED

    @property
    def sentence(self) -> str:
        """The measured numbers as text."""
        return (
            f"{self.cores} processor{'s' * (self.cores != 1)}, {100.0 * self.steal:.0f} % of their "
            f"time taken by the host; wake-ups late by {1e3 * self.late:.1f} ms (99 %) and "
            f"{1e3 * self.longest:.1f} ms at most, together {100.0 * self.lost:.0f} % of the time"
        )


def measure_machine(priority: int = 0, seconds: float = 2.0) -> Machine:
    """Measure lateness of wake-ups and steal for some seconds."""
    lateness = []
    with realtime(priority, False):
        before, begin = host_time(), time.monotonic()
        now = begin
        while now < begin + seconds:
            time.sleep(NAP)
            after = time.monotonic()
            lateness.append(max(after - now - NAP, 0.0))
            now = after
        taken, passed = (b - a for a, b in zip(before, host_time(), strict=True))
    lateness.sort()
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        steal=taken / passed if passed > 0.0 else 0.0,
        late=lateness[int(0.99 * (len(lateness) - 1))],
        longest=lateness[-1],
        lost=sum(x for x in lateness if x > NAP) / (now - begin),
    )


def host_time(stat: Path = Path("/proc/stat")) -> tuple[float, float]:
    """Processor time that the host of a virtual machine took, and all of it; zeros if unknown."""
    try:
        numbers = [float(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
        return numbers[7], sum(numbers)
    except (OSError, ValueError, IndexError):
        return 0.0, 0.0
