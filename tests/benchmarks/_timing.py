"""Interleaved timing: in every round each contender runs once, so all see the same machine."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import nan

import numpy as np

from tests.benchmarks._contender import Comparison, Contender, Run


@dataclass(frozen=True)
class Measured:
    """A comparison with its times.

    Parameters
    ----------
    comparison : Comparison
        What was compared.
    times : numpy.ndarray
        Seconds per job, shape (rounds, contenders); NaN for a peer that is missing or has failed.
    """

    comparison: Comparison
    times: np.ndarray

    def median(self, contender: Contender) -> float:
        """Median time of one contender, s."""
        return float(np.median(self._of(contender)))

    def ratio(self, ours: Contender, peer: Contender) -> tuple[float, float, float]:
        """Time of ours over that of a peer in the same round: median, lower, upper quartile."""
        middle, low, high = np.percentile(self._of(ours) / self._of(peer), [50, 25, 75])
        return float(middle), float(low), float(high)

    def _of(self, contender: Contender) -> np.ndarray:
        return self.times[:, self.comparison.contenders.index(contender)]


def measure(comparison: Comparison, rounds: int | None = None) -> Measured:
    """Time a comparison.

    Parameters
    ----------
    comparison : Comparison
        What to compare.
    rounds : int, optional
        How often each contender is timed; default what the comparison asks for.
    """
    progress(comparison.job)
    runs = [_ready(contender) for contender in comparison.contenders]
    gc.collect()
    gc.disable()
    try:
        with nullcontext() if comparison.spread else on_one_processor():
            times = [
                [nan if run is None else _seconds(run, comparison.warm) for run in runs]
                for _ in range(rounds or comparison.rounds)
            ]
    finally:
        gc.enable()
    return Measured(comparison, np.array(times) / comparison.count)


def _ready(contender: Contender) -> Run | None:
    """Prepare a contender, and run it once for caches and functions that are built late.

    None for a peer that cannot run here; without ours there is nothing to measure.
    """
    try:
        run = contender.prepare()
        run()
    except Exception as error:
        if not contender.library:
            raise
        print(f"not measured: {contender.name}: {error}", file=sys.stderr, flush=True)
        return None
    return run


def measure_all(comparisons: Iterable[Comparison], rounds: int | None = None) -> list[Measured]:
    """Time comparisons one after the other."""
    return [measure(comparison, rounds) for comparison in comparisons]


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Stay on one processor for a while, where the system lets a process choose."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def progress(what: str) -> None:
    """Say what goes on, where somebody may be waiting."""
    if sys.stderr.isatty():
        print(what, file=sys.stderr, flush=True)


def _seconds(run: Callable[[], object], warm: bool) -> float:
    if warm:  # the others have filled the caches with what is theirs
        run()
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
