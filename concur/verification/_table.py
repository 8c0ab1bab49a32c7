"""Values of worlds as a table, and as bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

_SIZES = struct.Struct("<4Q")


@dataclass(frozen=True, eq=False)
class Table:
    """Values of worlds, a row each.

    Parameters
    ----------
    numbers : numpy.ndarray
        Numbers of the worlds, shape (n,).
    worlds : numpy.ndarray
        Deviations from nominal numbers, shape (n, d).
    values : numpy.ndarray
        Values, shape (n, m).
    crashes : dict of int to str
        Reason for each world that could not be evaluated, by its number; its values are NaN.
    """

    numbers: np.ndarray
    worlds: np.ndarray
    values: np.ndarray
    crashes: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of worlds."""
        return len(self.numbers)

    def encoded(self) -> bytes:
        """Table as bytes, the same on every machine."""
        crashes = json.dumps(sorted(self.crashes.items())).encode()
        sizes = (len(self), self.worlds.shape[1], self.values.shape[1], len(crashes))
        arrays = ((self.numbers, "<i8"), (self.worlds, "<f8"), (self.values, "<f8"))
        parts = (np.ascontiguousarray(array, kind).tobytes() for array, kind in arrays)
        return b"".join((_SIZES.pack(*sizes), *parts, crashes))


def decoded(data: bytes) -> Table:
    """Table from the bytes of `Table.encoded`; ValueError if they are something else."""
    if len(data) < _SIZES.size:
        raise ValueError("too short")
    n, d, m, text = _SIZES.unpack_from(data)
    at = _SIZES.size
    if len(data) != at + 8 * n * (1 + d + m) + text:
        raise ValueError("another length")
    numbers = np.frombuffer(data, "<i8", n, at)
    worlds = np.frombuffer(data, "<f8", n * d, at + 8 * n).reshape(n, d)
    values = np.frombuffer(data, "<f8", n * m, at + 8 * n * (1 + d)).reshape(n, m)
    crashes = {int(number): str(why) for number, why in json.loads(data[len(data) - text :])}
    return Table(numbers.astype(np.int64), worlds.astype(float), values.astype(float), crashes)


def crashed(numbers: np.ndarray, worlds: np.ndarray, columns: int, why: str) -> Table:
    """Rows of worlds that could not be evaluated."""
    values = np.full((len(numbers), columns), np.nan)
    return Table(numbers, worlds, values, {int(number): why for number in numbers})


def stacked(tables: Iterable[Table]) -> Table:
    """Rows of several tables, at least one, one below the other."""
    parts = list(tables)
    return Table(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.worlds for part in parts]),
        np.concatenate([part.values for part in parts]),
        {number: why for part in parts for number, why in part.crashes.items()},
    )


def joined(tables: Iterable[Table]) -> Table:
    """Rows of several tables, at least one, sorted by number; of equal numbers the first."""
    whole = stacked(tables)
    _, first = np.unique(whole.numbers, return_index=True)
    crashes = dict(sorted(whole.crashes.items()))
    return Table(whole.numbers[first], whole.worlds[first], whole.values[first], crashes)
