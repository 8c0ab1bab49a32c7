"""Description of an exported function: names, units and frames of all its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np


@dataclass(frozen=True)
class Entry:
    """One number of a signal.

    Parameters
    ----------
    name : str
        Name, such as that of a joint or a coordinate.
    unit : str
        SI unit; empty for a number without one.
    """

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Signal:
    """Input or output of an exported function.

    Parameters
    ----------
    name : str
        Name in C.
    meaning : str
        Meaning of the numbers, and their frame.
    entries : tuple of Entry
        Name and unit of each number.
    preset : tuple of float
        Default values; zero where there is no other.
    largest : tuple of float
        Magnitudes above which the numbers are rejected; empty without a bound.
    guard : str
        Name of the code with which numbers above `largest` are rejected before the function is
        evaluated; empty if the function itself rejects them.
    quaternions : tuple of int
        Indices at which quaternions start.
    scalar : bool
        Whether the signal is a number rather than an array.
    start : int
        Index of its first number among those of all inputs, or all outputs.
    """

    name: str
    meaning: str
    entries: tuple[Entry, ...]
    preset: tuple[float, ...] = ()
    largest: tuple[float, ...] = ()
    guard: str = ""
    quaternions: tuple[int, ...] = ()
    scalar: bool = False
    start: int = 0

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.entries)


@dataclass(frozen=True)
class Code:
    """Status code of an exported function.

    Parameters
    ----------
    name : str
        Name in C, without the function's prefix.
    number : int
        Value.
    meaning : str
        Meaning, in one sentence.
    """

    name: str
    number: int
    meaning: str


@dataclass(frozen=True, eq=False)
class ReferenceVector:
    """State with which exported code is tested.

    Parameters
    ----------
    what : str
        Kind of state.
    inputs, outputs : numpy.ndarray
        All numbers, in the order of the signals.
    code : int
        Status code.
    """

    what: str
    inputs: np.ndarray
    outputs: np.ndarray
    code: int


@dataclass(frozen=True, eq=False)
class Exported:
    """A function for export.

    Parameters
    ----------
    name : str
        Its name in C.
    title : str
        Description in one line.
    function : casadi.Function
        Function of the inputs and the memory of the last call; returns the outputs, a status
        and the new memory. Over SX, or over MX with holes for QPs.
    inputs, outputs : tuple of Signal
        The signals, in order.
    codes : tuple of Code
        The codes, OK, BAD_INPUT, NO_ATTITUDE, TOO_FAST, NO_RESULT and FAILED among them.
    vectors : tuple of ReferenceVector
        Test states.
    tolerance : float
        Largest deviation of outputs in double precision on another machine, relative to the
        largest number of a state, or to 1.
    kept : int
        Size of the memory from call to call; zeros at the first.
    state : Signal or None
        State of the law: the last numbers of the memory.
    facts : mapping
        Further data: versions, robot, gains.
    """

    name: str
    title: str
    function: ca.Function
    inputs: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    codes: tuple[Code, ...]
    vectors: tuple[ReferenceVector, ...]
    tolerance: float
    kept: int
    state: Signal | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def placed(signals: Iterable[Signal]) -> tuple[Signal, ...]:
    """Number the entries of the signals of one direction.

    Parameters
    ----------
    signals : iterable of Signal
        The signals, in order.

    Returns
    -------
    tuple of Signal
        The same with `start`, and with presets: zeros by default.
    """
    found, start = [], 0
    for signal in signals:
        preset = signal.preset or (0.0,) * signal.size
        found.append(replace(signal, start=start, preset=preset))
        start += signal.size
    return tuple(found)


def plain_text(text: str) -> str:
    """Convert a text for comments in C and for tables.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Text without characters that would end either.
    """
    ascii_only = text.encode("ascii", "replace").decode().replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"[\s|\\`]+", " ", ascii_only)
