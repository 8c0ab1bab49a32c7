"""Memory that the processes of an emulated rig share: one writer for each block, no locks.

The writer increments a counter before and after each write. A reader that finds the counter odd, or
changed, reads again. All supported processors write numbers of 8 bytes atomically.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIES = 100
"""Largest number of readings while a writer is interrupted in a write."""


class Block:
    """Numbers with one writer."""

    def __init__(self, names: Sequence[tuple[str, int]], raw: Any = None) -> None:
        self.names = tuple(names)
        width = sum(length for _, length in self.names)
        self.raw = RawArray(ctypes.c_double, 1 + width) if raw is None else raw
        self._memory = np.frombuffer(memoryview(self.raw), dtype=np.float64)
        self._numbers = self._memory[1:]
        self._draft = np.zeros(width)
        self._spans: dict[str, slice] = {}
        start = 0
        for name, length in self.names:
            self._spans[name] = slice(start, start + length)
            start += length

    def __reduce__(self) -> tuple[Any, ...]:
        return Block, (self.names, self.raw)

    def draft(self, name: str) -> NDArray[np.float64]:
        """Array into which the writer writes a quantity before `publish`."""
        return self._draft[self._spans[name]]

    def place(self, name: str) -> int:
        """First index of a quantity in a snapshot."""
        return int(self._spans[name].start)

    def publish(self) -> None:
        """Copy the draft to the shared memory."""
        self._memory[0] += 1.0
        self._numbers[:] = self._draft
        self._memory[0] += 1.0

    def read(self) -> dict[str, NDArray[np.float64]]:
        """All quantities at one instant; copies."""
        numbers = self.snapshot()
        return {name: numbers[span] for name, span in self._spans.items()}

    def snapshot(self) -> NDArray[np.float64]:
        """All numbers at one instant; a copy."""
        for _ in range(TRIES):
            before = self._memory[0]
            numbers = self._numbers.copy()
            if before % 2.0 == 0.0 and self._memory[0] == before:
                break
        return numbers


class Stopped:
    """Whether the process must end: after a signal, or after the death of its parent."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
        if sys.platform == "linux":
            _die_with_parent()

    def _ask(self, *_: object) -> None:
        self._asked = True

    def __bool__(self) -> bool:
        return self._asked or os.getppid() != self._parent


def _die_with_parent() -> None:
    """Make Linux send SIGTERM when the parent dies for any reason."""
    library = ctypes.CDLL(ctypes.util.find_library("c") or None, use_errno=True)
    library.prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG


def hurry(priority: int) -> bool:
    """Request SCHED_FIFO with a priority, where it is permitted; return whether it was granted.

    If there are several processors, the first is then left to the controller, which emulated
    hardware must not slow down.
    """
    gc.collect()
    gc.freeze()  # a collection of existing objects takes longer than a step
    if not priority or not hasattr(os, "sched_setscheduler"):
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, processors[1:] or processors)
    except OSError:
        return False
    return True
