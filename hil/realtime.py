"""What the operating system is asked for: priority, memory that stays, no garbage collection.

None of it is taken for granted: what was refused is said, and lateness is measured in any case.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_CURRENT_AND_FUTURE = 3  # MCL_CURRENT | MCL_FUTURE


@dataclass(frozen=True)
class Granted:
    """What the operating system gave.

    Parameters
    ----------
    priority : int
        SCHED_FIFO priority; 0 if there is none.
    memory_locked : bool
        Whether memory stays where it is.
    notes : tuple of str
        One sentence for each wish that was refused, with its cure.
    """

    priority: int
    memory_locked: bool
    notes: tuple[str, ...] = ()


@contextmanager
def realtime(priority: int, lock_memory: bool) -> Iterator[Granted]:
    """Run the loop with priority and without garbage collection, as far as permitted.

    Parameters
    ----------
    priority : int
        SCHED_FIFO priority, 1 to 99; 0: leave the scheduler as it is.
    lock_memory : bool
        Whether to lock memory.

    Yields
    ------
    Granted
        What was given. Everything is undone on leaving.
    """
    notes: list[str] = []
    scheduled = priority > 0 and _fifo(priority, notes)
    locked = lock_memory and _lock_memory(notes)
    collecting = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield Granted(priority if scheduled else 0, locked, tuple(notes))
    finally:
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
