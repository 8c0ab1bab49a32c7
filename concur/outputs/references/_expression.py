"""References as expressions of time over SX, and their values at many times.

Numbers without a formula are read as rows: the coefficients of the segment that contains the time,
or the results of a custom function. An expression whose rows all come from tables is a graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.outputs.references._columns import Columns, Floats

Samples: TypeAlias = tuple[Floats, Floats, Floats]
Motion: TypeAlias = tuple[Array, Array, Array]
"""Pose, twist and acceleration as columns over SX."""


class Rows(ABC):
    """Numbers that depend on time by no formula: `width` of them at each time."""

    width: int

    @abstractmethod
    def at(self, times: Floats) -> Floats:
        """Look up the rows at some times, shape (k, width)."""

    def over(self, t: ca.MX) -> ca.MX | None:
        """Look up the row at a symbolic time, shape (width, 1); None where this is impossible."""
        return None


Reader: TypeAlias = Callable[[Rows, Array], Array]
"""Takes rows and a time, and returns the symbols of the row at this time."""


class Table(Rows):
    """Rows that change at increasing times: the first holds before the first time.

    Of times (k,) and rows (k + 1, width). A row holds from its time on.
    """

    def __init__(self, times: Floats, rows: Floats) -> None:
        self.width = rows.shape[1]
        self.times, self._rows = times, rows

    def at(self, times: Floats) -> Floats:
        """Look up the rows at some times."""
        return self._rows[np.searchsorted(self.times, times, side="right")]

    def over(self, t: ca.MX) -> ca.MX | None:
        """Look up the row by bisection."""
        # The ends of the grid do not count: times beyond them belong to the outer rows.
        grid = np.concatenate([self.times[:1] - 1.0, self.times, self.times[-1:] + 1.0])
        row = ca.low(ca.DM(grid), t, {"lookup_mode": "binary"})
        return ca.MX(ca.DM(self._rows.T))[:, row]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A reference as one formula over SX between the times at which rows of its tables change.

    Parameters
    ----------
    function : casadi.Function
        From the time t (s) and the rows of each table to pose, twist and acceleration.
    tables : tuple of Table
        The tables.
    """

    function: ca.Function
    tables: tuple[Table, ...]

    @property
    def knots(self) -> Floats:
        """Times (s) at which a row changes, ascending."""
        times = [table.times for table in self.tables]
        return np.unique(np.concatenate([np.zeros(0), *times]))

    def rows(self, times: Floats) -> list[Floats]:
        """Rows of each table at times (k,), shapes (k, width)."""
        return [table.at(times) for table in self.tables]


class Graph:
    """The expression of a motion, made once."""

    def __init__(self, motion: Callable[[ca.SX, Reader], Motion]) -> None:
        t = ca.SX.sym("t")
        times, symbols = list[Array](), list[Array]()
        self._rows = list[Rows]()

        def read(rows: Rows, at: Array) -> Array:
            self._rows.append(rows)
            times.append(at)
            symbols.append(ca.SX.sym(f"row{len(symbols)}", rows.width))
            return symbols[-1]

        results = [ca.densify(ca.SX(part)) for part in motion(t, read)]
        function = ca.Function("motion", [t, *symbols], results, {"cse": True})
        self._times = Columns(ca.Function("times", [t], times))
        self._moved = not all(ca.is_equal(time, t) for time in times)
        self._motion = Columns(function)

    def __call__(self, times: Floats) -> Samples:
        """Evaluate at times (k,): tables with a row for each."""
        table = times[:, None]
        each = self._times(table) if self._moved else [table] * len(self._rows)
        rows = [source.at(at[:, 0]) for source, at in zip(self._rows, each, strict=True)]
        poses, twists, changes = self._motion(table, *rows)
        return poses, twists, changes

    @property
    def pieces(self) -> Pieces | None:
        """One formula between knots; None with custom functions or rows at other times."""
        tables = tuple(row for row in self._rows if isinstance(row, Table))
        if self._moved or len(tables) < len(self._rows):
            return None
        return Pieces(self._motion.function, tables)

    @property
    def function(self) -> ca.Function | None:
        """Function of time, over SX or, with tables, over MX; None with custom functions."""
        t = ca.MX.sym("t") if self._rows else ca.SX.sym("t")
        each = self._times.function.call([t])
        rows = [source.over(at) for source, at in zip(self._rows, each, strict=True)]
        if any(row is None for row in rows):
            return None
        motion = self._motion.function.call([t, *rows])
        return ca.Function("reference", [t], motion, ["t"], NAMES)


NAMES = ["pose", "twist", "acceleration"]
"""Results of a reference's graph."""
