"""Demands and results of a rollout, and its job: arguments whose lengths are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from concur.codegen._arguments import as_floats
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
    """Lengths of the inputs and results of a tick and a step.

    Parameters
    ----------
    nx, np, nr, noises : int
        State, numbers, row of the reference, and noise of a tick.
    nu, ny, ny_step : int
        Command, signals of the tick, and signals of the step.
    """

    nx: int
    np: int
    nr: int
    noises: int
    nu: int
    ny: int
    ny_step: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Worlds that a rollout computes, and all that is random in them.

    Parameters
    ----------
    x0 : array_like
        States at the start, shape (B, nx).
    p : array_like
        Numbers of the worlds, shape (B, np); in one world step by step also (B, ticks, np).
    worlds : array_like of int
        Number of each world, shape (B,): with the seed the key of all its random numbers.
    seed : int
        Seed, zero or more.
    delay, jitter : float or array_like
        Delay of the commands and its random part, periods, of all worlds or shape (B,). The
        command of the tick k arrives at ``a[k] = max(a[k-1], k + delay + jitter * uniform)``,
        in periods: no command overtakes another. A period gets the average over time of the
        commands in force. Commands before the first equal the first. Together at most
        `LONGEST_DELAY` periods.
    """

    x0: Any
    p: Any
    worlds: Any
    seed: int = 0
    delay: Any = 0.0
    jitter: Any = 0.0


def refused(
    what: str, expected: str, came: str, kind: type[ConcurError] = ConcurError
) -> ConcurError:
    """The error for an argument of a rollout or of its call."""
    cure = "Correct it: `Rollout`, `Batch` and `Demand` describe their arguments."
    return kind(f"rollout, {what}", expected=expected, came=came, cure=cure)


class Job:
    """Checked arguments of a rollout, with arrays for its results.

    Parameters
    ----------
    sizes : Sizes
        Lengths of the parts of the loop.
    batch : Batch
        The worlds.
    reference : array_like
        Rows of the reference.
    ticks : int
        Number of ticks.
    demands : sequence of Demand
        Numbers to be computed from the signals.
    record : int or None
        Ticks between rows of a record.
    """

    def __init__(
        self, sizes: Sizes, batch: Batch, reference: Any, ticks: Any, demands: Any, record: Any
    ) -> None:
        self.ticks = _whole(ticks, "ticks", 1, MOST_TICKS)
        self.seed = _whole(batch.seed, "seed", 0, 2**63)
        self.worlds = _keys(batch.worlds)
        count, rows, self.noises = len(self.worlds), (self.ticks, sizes.nr), sizes.noises
        self.start = _array(batch.x0, "x0", (count, sizes.nx))
        self.numbers = _array(batch.p, "p", (count, sizes.np), (count, self.ticks, sizes.np))
        self.reference = _array(reference, "reference", rows, (count, *rows))
        self.delay, self.jitter = (
            np.ascontiguousarray(np.broadcast_to(_array(value, name, (), (count,)), count))
            for name, value in (("delay", batch.delay), ("jitter", batch.jitter))
        )
        late = self.delay + self.jitter
        sane = (self.delay >= 0.0) & (self.jitter >= 0.0) & (late <= LONGEST_DELAY)
        for world in np.flatnonzero(~sane):
            raise refused(
                f"world {self.worlds[world]}, `delay` and `jitter`",
                f"numbers of zero or more, together at most {LONGEST_DELAY} periods",
                f"{self.delay[world]:g} and {self.jitter[world]:g} periods",
            )
        # Number of commands to keep, a power of two; 0 if none arrives late.
        longest = float(late.max(initial=0.0))
        self.ring_length = 1 << (int(longest) + 1).bit_length() if longest else 0
        given = entries(demands, Demand)
        if given is None:
            raise refused("`demands`", "a list of `Demand`", shown(demands), ShapeError)
        signals = sizes.ny + sizes.ny_step
        for i, demand in enumerate(given):
            _check(demand, f"`demands[{i}]`", signals, self.ticks)
        self.demands = np.array(
            [(d.signal, KINDS.index(d.kind), d.first, d.last, d.threshold) for d in given], RECORD
        )
        self.watched = np.zeros(signals, dtype=bool)
        self.watched[self.demands["signal"]] = True
        self.initial = np.array([d.initial for d in given])
        self.stride = 0 if record is None else _whole(record, "record", 1, MOST_TICKS)
        kept = -(-self.ticks // self.stride) if self.stride else 0
        lengths = (sizes.nx, sizes.nu, signals) if self.stride else ()
        tables = [np.full((count, kept, size), np.nan) for size in lengths]
        self.rolled = Rolled(
            np.broadcast_to(self.initial, (count, len(given))).copy(),
            np.full(count, self.ticks),
            np.zeros(count, dtype=np.int64),
            Record(*tables) if tables else None,
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
    elif as_floats(demand.threshold, f"rollout, {where}, `threshold`").shape != ():
        came, expected = shown(demand.threshold), "a threshold that is a number"
    elif np.isnan(demand.threshold):
        came, expected = "nan", "a threshold that is a number"
    else:
        return
    raise refused(where, expected, came)


def _whole(value: Any, name: str, least: int, bound: int) -> int:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= value < bound:
        return int(value)
    raise refused(f"`{name}`", f"a whole number from {least} to {bound - 1}", shown(value))


def _keys(worlds: Any) -> np.ndarray:
    keys = np.asarray(worlds)
    whole = keys.ndim == 1 and (keys.dtype.kind in "iu" or not keys.size)
    if whole and (keys.astype(float) >= 0.0).all() and (keys <= 2**63 - 1).all():
        return np.ascontiguousarray(keys, dtype=np.int64)
    expected = "numbers of the worlds, whole, zero or more, shape (B,)"
    raise refused("`worlds`", expected, shown(worlds), ShapeError)


def _array(value: Any, name: str, *shapes: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(as_floats(value, f"rollout, `{name}`"), dtype=float, order="C")
    if array.shape not in shapes:
        expected = " or ".join(f"shape {shape}" for shape in shapes)
        raise refused(f"`{name}`", expected, f"shape {array.shape}", ShapeError)
    return array
