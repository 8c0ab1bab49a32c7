"""Demands and results of a rollout, and its job: arguments whose lengths are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concur.codegen._evaluator import as_floats
from concur.errors import ConcurError, ShapeError, entries, shown

LONGEST_DELAY = 254
"""Longest delay of commands, periods."""

LARGEST_STATE = 1e6
"""Absolute value of a state from which on a world has diverged."""

DIVERGED = -1
"""Status of a world that has diverged."""

KINDS = ("max", "min", "last", "last_above", "first_above", "count_above", "first_below")
"""Kinds of demands, in the order of their numbers in C."""

RECORD = np.dtype(
    [("signal", "i8"), ("kind", "i8"), ("first", "i8"), ("last", "i8"), ("threshold", "f8")]
)
"""A demand as C reads it."""

MOST_TICKS = 2**31
"""Most ticks of a rollout."""


@dataclass(frozen=True)
class Demand:
    """One number to be computed from a signal, in a window of ticks.

    Parameters
    ----------
    signal : int
        Index of the signal: those of the tick, then those of the step.
    kind : str
        "max", "min" and "last" are values of the signal. "last_above" and "first_above" are the
        last and the first tick at which it exceeds the threshold, `first` - 1 and `last` + 1 if it
        never does; "first_below" is the first one at which it is less. "count_above" is the number
        of evaluations at which it exceeds the threshold.
    first, last : int
        First and last tick of the window.
    threshold : float
        Threshold, in the unit of the signal.
    """

    signal: int
    kind: str
    first: int
    last: int
    threshold: float = 0.0

    @property
    def initial(self) -> float:
        """Value without any evaluation in the window."""
        return {
            "max": -np.inf,
            "min": np.inf,
            "last": np.nan,
            "last_above": self.first - 1.0,
            "first_above": self.last + 1.0,
            "first_below": self.last + 1.0,
            "count_above": 0.0,
        }[self.kind]


@dataclass(frozen=True, eq=False)
class Record:
    """States, commands and signals of each world over time.

    Row j belongs to the tick j times the stride. Rows behind the tick at which a world stops are
    NaN.

    Parameters
    ----------
    x : numpy.ndarray
        State before the tick, shape (B, K, nx).
    u : numpy.ndarray
        Command that the tick computes, shape (B, K, nu).
    y : numpy.ndarray
        Signals of the tick and of the first step after it, shape (B, K, ny + ny_step); of a tick
        whose status is not zero, only those of the tick.
    """

    x: np.ndarray
    u: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Rolled:
    """Result of a rollout.

    Parameters
    ----------
    values : numpy.ndarray
        Value of each demand in each world, up to the tick at which the world stops, shape
        (B, demands).
    stopped : numpy.ndarray
        Number of periods that were completed, shape (B,): all ticks, or the tick at which the
        world stopped.
    status : numpy.ndarray
        0 if the world is whole, the status of the tick that stopped it, or -1 if it diverged,
        shape (B,).
    record : Record or None
        Record, if asked for.
    """

    values: np.ndarray
    stopped: np.ndarray
    status: np.ndarray
    record: Record | None = None


class Sizes(NamedTuple):
    """Lengths of state, numbers, reference, noise, command, and signals of tick and step."""

    nx: int
    np: int
    nr: int
    noises: int
    nu: int
    ny: int
    ny_step: int


@dataclass(frozen=True, eq=False)
class Job:
    """Checked arguments of a rollout, with arrays for its results."""

    start: np.ndarray
    numbers: np.ndarray
    reference: np.ndarray
    ticks: int
    worlds: np.ndarray
    seed: int
    delay: np.ndarray
    jitter: np.ndarray
    demands: np.ndarray
    initial: np.ndarray
    watched: np.ndarray
    stride: int
    rolled: Rolled

    @property
    def ring_length(self) -> int:
        """Number of commands to keep, a power of two; 0 if none arrives late."""
        longest = float((self.delay + self.jitter).max(initial=0.0))
        return 1 << (int(longest) + 1).bit_length() if longest else 0


def job_of(
    where: str,
    sizes: Sizes,
    arguments: tuple[Any, Any, Any],
    ticks: Any,
    worlds: Any,
    seed: Any,
    delays: tuple[Any, Any],
    demands: Any,
    record: Any,
) -> Job:
    """Check all arguments of a rollout."""
    ticks = _whole(ticks, f"{where}, `ticks`", 1, MOST_TICKS)
    seed = _whole(seed, f"{where}, `seed`", 0, 2**63)
    keys = _keys(worlds, f"{where}, `worlds`")
    count = len(keys)
    start = _array(arguments[0], f"{where}, `x0`", (count, sizes.nx))
    numbers = _array(arguments[1], f"{where}, `p`", (count, sizes.np))
    rows = (ticks, sizes.nr)
    reference = _array(arguments[2], f"{where}, `reference`", rows, (count, *rows))
    delay, jitter = (
        np.ascontiguousarray(
            np.broadcast_to(_array(value, f"{where}, `{name}`", (), (count,)), count)
        )
        for name, value in zip(("delay", "jitter"), delays, strict=True)
    )
    sane = (delay >= 0.0) & (jitter >= 0.0) & (delay + jitter <= LONGEST_DELAY)
    for world in np.flatnonzero(~sane):
        raise ConcurError(
            f"{where}, world {keys[world]}, `delay` and `jitter`",
            expected=f"numbers of zero or more, together at most {LONGEST_DELAY} periods",
            came=f"{delay[world]:g} and {jitter[world]:g} periods",
            cure="Take a shorter delay, or a longer control period.",
        )
    given = entries(demands, Demand)
    if given is None:
        raise ShapeError(
            f"{where}, `demands`",
            expected="a list of `Demand`",
            came=shown(demands),
            cure="Use () for none.",
        )
    signals = sizes.ny + sizes.ny_step
    for i, demand in enumerate(given):
        _check(demand, f"{where}, `demands[{i}]`", signals, ticks)
    table = np.array(
        [(d.signal, KINDS.index(d.kind), d.first, d.last, d.threshold) for d in given], RECORD
    )
    watched = np.zeros(signals, dtype=bool)
    watched[table["signal"]] = True
    stride = 0 if record is None else _whole(record, f"{where}, `record`", 1, MOST_TICKS)
    kept = -(-ticks // stride) if stride else 0
    rolled = Rolled(
        np.tile([d.initial for d in given], (count, 1)) if given else np.empty((count, 0)),
        np.full(count, ticks),
        np.zeros(count, dtype=np.int64),
        Record(*(np.full((count, kept, size), np.nan) for size in (sizes.nx, sizes.nu, signals)))
        if stride
        else None,
    )
    initial = np.array([d.initial for d in given])
    return Job(
        start=start,
        numbers=numbers,
        reference=reference,
        ticks=ticks,
        worlds=keys,
        seed=seed,
        delay=delay,
        jitter=jitter,
        demands=table,
        initial=initial,
        watched=watched,
        stride=stride,
        rolled=rolled,
    )


def _check(demand: Demand, where: str, signals: int, ticks: int) -> None:
    whole = (demand.signal, demand.first, demand.last)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in whole):
        came, expected = repr(whole), "whole numbers for `signal`, `first` and `last`"
    elif not 0 <= demand.signal < signals:
        came, expected = f"signal {demand.signal}", f"one of {signals} signals, counted from 0"
    elif demand.kind not in KINDS:
        came, expected = shown(demand.kind), f"a kind of {', '.join(KINDS)}"
    elif not 0 <= demand.first <= demand.last < ticks:
        came = f"a window from {demand.first} to {demand.last}"
        expected = f"a window within 0 and {ticks - 1}, which is not empty"
    elif as_floats(demand.threshold, f"{where}, `threshold`").shape != ():
        came, expected = shown(demand.threshold), "a threshold that is a number"
    elif np.isnan(demand.threshold):
        came, expected = "nan", "a threshold that is a number"
    else:
        return
    raise ConcurError(where, expected=expected, came=came, cure="Change this demand.")


def _whole(value: Any, where: str, least: int, bound: int) -> int:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= value < bound:
        return int(value)
    raise ConcurError(
        where,
        expected=f"a whole number from {least} to {bound - 1}",
        came=shown(value),
        cure="Pass such a number.",
    )


def _keys(worlds: Any, where: str) -> np.ndarray:
    keys = np.asarray(worlds)
    whole = keys.ndim == 1 and (keys.dtype.kind in "iu" or not keys.size)
    if whole and (keys.astype(float) >= 0.0).all() and (keys <= 2**63 - 1).all():
        return np.ascontiguousarray(keys, dtype=np.int64)
    raise ShapeError(
        where,
        expected="numbers of the worlds, whole, zero or more, shape (B,)",
        came=shown(worlds),
        cure="Pass np.arange(B), or the numbers of a block.",
    )


def _array(value: Any, where: str, *shapes: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(as_floats(value, where), dtype=float, order="C")
    if array.shape not in shapes:
        raise ShapeError(
            where,
            expected=" or ".join(f"shape {shape}" for shape in shapes),
            came=f"shape {array.shape}",
            cure="Give one row for each world in `worlds`, and one row of the reference for each "
            "tick.",
        )
    return array
