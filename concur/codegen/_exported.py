"""What is exported: a function with names, units and frames for all its numbers."""

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
        What it is, such as a joint or a coordinate.
    unit : str
        SI unit; empty for a number without one.
    """

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Signal:
    """Numbers that go into or come out of an exported function.

    Parameters
    ----------
    name : str
        Name in C.
    meaning : str
        What they are, and in which frame.
    entries : tuple of Entry
        Name and unit of each.
    preset : tuple of float
        Values that are known beforehand; zeros where nothing is.
    largest : tuple of float
        Sizes above which they are refused; empty where there is no bound.
    quaternions : tuple of int
        Where quaternions start.
    scalar : bool
        Whether it is a number rather than an array.
    start : int
        Where it starts among the numbers of all signals of its direction.
    """

    name: str
    meaning: str
    entries: tuple[Entry, ...]
    preset: tuple[float, ...] = ()
    largest: tuple[float, ...] = ()
    quaternions: tuple[int, ...] = ()
    scalar: bool = False
    start: int = 0

    @property
    def size(self) -> int:
        """How many numbers."""
        return len(self.entries)


@dataclass(frozen=True)
class Code:
    """A code that an exported function returns: name in C, without the function's, and meaning."""

    name: str
    number: int
    meaning: str


@dataclass(frozen=True, eq=False)
class ReferenceVector:
    """A state with all numbers that go in, signal by signal, that come out, and the code."""

    what: str
    inputs: np.ndarray
    outputs: np.ndarray
    code: int


@dataclass(frozen=True, eq=False)
class Exported:
    """A function that is exported.

    Parameters
    ----------
    name : str
        Its name in C.
    title : str
        One line that says what it is.
    function : casadi.Function
        From the inputs, and what the call before kept, to the outputs, a status, and what it keeps;
        over SX, or over MX with holes for programmes.
    inputs, outputs : tuple of Signal
        The signals, in order.
    codes : tuple of Code
        The codes, OK, BAD_INPUT, NO_ATTITUDE, TOO_FAST, NO_RESULT and FAILED among them.
    vectors : tuple of ReferenceVector
        States to try it with.
    tolerance : float
        By how much outputs in double precision may differ on another machine, relative to the
        largest of a state, or to 1.
    kept : int
        How many numbers it keeps from call to call; zeros at the first.
    facts : mapping
        What else is known: versions, robot, gains.
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
    facts: Mapping[str, Any] = field(default_factory=dict)


def placed(signals: Iterable[Signal]) -> tuple[Signal, ...]:
    """Signals of one direction, in order, with `start`, and presets of zero without others."""
    found, start = [], 0
    for signal in signals:
        preset = signal.preset or (0.0,) * signal.size
        found.append(replace(signal, start=start, preset=preset))
        start += signal.size
    return tuple(found)


def plain_text(text: str) -> str:
    """Text that can stand in a comment of C and in a table.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Without what would end either.
    """
    ascii_only = text.encode("ascii", "replace").decode().replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"[\s|\\`]+", " ", ascii_only)
