"""Results file of a campaign: one HDF5 file with a row for each world, filled as blocks finish.

All datasets have their full size from the beginning. A block overwrites numbers in place, so the
structure of the file never changes, and a process that is killed leaves a file that can be read. A
row counts if its mark is the digest of what the values depend on, its world and its values; all
others are evaluated again. The file of another campaign is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from concur.campaign._campaign import Campaign
from concur.errors import ConcurError, DescriptionError
from concur.files import lock, replace_files, writing
from concur.hdf5 import hdf5_file

_FORMAT = "concur worlds 4"
_CURE = "Name another folder, or restore what has changed."


class Store:
    """Results file that is open, and locked by this process; made by `opened`.

    Parameters
    ----------
    path : Path
        The file.
    head : str
        What the values depend on, as JSON.
    worlds : numpy.ndarray
        Deviations of the worlds 0 to n - 1, shape (n, d).
    columns : int
        Number of values of a world.

    Attributes
    ----------
    values : numpy.ndarray
        Values, shape (n, m).
    known : numpy.ndarray
        Whether each world has been evaluated, shape (n,).
    looks : set of int
        Numbers of worlds at which answers were given.
    file : binary file
        The file that `write` has made, open and locked, for `save` and `look`.
    """

    file: BinaryIO

    def __init__(self, path: Path, head: str, worlds: np.ndarray, columns: int) -> None:
        self._path, self._head, self._worlds = path, head, worlds
        self.values = np.full((len(worlds), columns), np.nan)
        self.known = np.zeros(len(worlds), dtype=bool)
        self.looks: set[int] = set()

    def read(self) -> None:
        """Take worlds, values and looks from the file, which may have more or fewer worlds."""
        path = self._path
        with hdf5_file(path, "the results of this campaign", _CURE) as file:
            self._check(file.text("campaign"))
            worlds, values = file.array("worlds", "f"), file.array("values", "f")
            marks, looks = file.array("marks", "u"), file.array("looks", "u")
            if (worlds.shape[1:], values.shape, looks.shape) != (
                self._worlds.shape[1:],
                (len(worlds), self.values.shape[1]),
                (len(worlds) + 1,),
            ) or marks.shape != worlds.shape[:1]:
                file.refuse("datasets whose sizes do not fit together")
            common = min(len(worlds), len(self._worlds))
            if worlds[:common].tobytes() != self._worlds[:common].tobytes():
                came, expected = "other worlds with the same numbers", "those of this campaign"
                file.refuse(came, "worlds", expected, "Name another folder.")
            self._worlds = np.vstack([self._worlds, worlds[common:]])
            kept = [n for n in range(len(marks)) if marks[n] == self._mark(n, values[n])]
            self.values = np.full((len(self._worlds), values.shape[1]), np.nan)
            self.values[kept], self.known = values[kept], np.zeros(len(self._worlds), dtype=bool)
            self.known[kept] = True
            self.looks = {look for look in range(len(looks)) if looks[look] == self._digest(look)}
            if any(looks[k] != self._look(k) for k in range(len(looks))):
                cure = "Restore the file from a copy, or name another folder."
                file.refuse("damaged numbers", "looks", "numbers of worlds with answers", cure)

    def write(self) -> None:
        """Replace the file by one with all worlds."""
        import h5py

        marks = np.zeros(len(self.known), dtype="<u8")
        for number in np.flatnonzero(self.known).tolist():
            marks[number] = self._mark(number, self.values[number])
        looks = np.array([self._look(k) for k in range(len(marks) + 1)], dtype="<u8")
        arrays = {"worlds": self._worlds, "values": self.values, "marks": marks, "looks": looks}
        memory = io.BytesIO()
        with h5py.File(memory, "w") as file:
            file["campaign"] = self._head
            for name, array in arrays.items():
                file[name] = array
            self._places = {name: file[name].id.get_offset() for name in arrays}
        with writing(self._path):
            replace_files({self._path: memory.getvalue()})

    def save(self, numbers: np.ndarray, values: np.ndarray) -> None:
        """Write the values of some worlds; they are on the disk when this returns.

        Worlds without any are left out: their reasons are found again.
        """
        numbers, values = (rows[~np.isnan(values).all(axis=1)] for rows in (numbers, values))
        self.values[numbers], self.known[numbers] = values, True
        for number, row in zip(numbers.tolist(), values, strict=True):
            self._put("values", number, row)
            self._put("marks", number, np.array([self._mark(number, row)], dtype="<u8"))
        self._sync()

    def look(self, worlds: int) -> None:
        """Keep that an answer with this number of worlds is given."""
        if worlds not in self.looks:
            self.looks.add(worlds)
            self._put("looks", worlds, np.array([self._look(worlds)], dtype="<u8"))
            self._sync()

    def _put(self, name: str, row: int, numbers: np.ndarray) -> None:
        with writing(self._path):
            self.file.seek(self._places[name] + row * numbers.nbytes)
            self.file.write(numbers.tobytes())

    def _sync(self) -> None:
        with writing(self._path):
            self.file.flush()
            os.fsync(self.file.fileno())

    def _mark(self, number: int, values: np.ndarray) -> int:
        return self._digest(number, self._worlds[number].tobytes() + values.tobytes())

    def _look(self, worlds: int) -> int:
        """Entry of a number of worlds: that of a look, or another one that is as hard to forge."""
        return self._digest(worlds, b"" if worlds in self.looks else b"none")

    def _digest(self, number: int, data: bytes = b"") -> int:
        """Digest of a number with the head and further bytes, 64 bits."""
        whole = f"{self._head} {number} ".encode() + data
        return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")

    def _check(self, text: str) -> None:
        """Refuse the file of another campaign."""
        try:
            stated = json.loads(text)
        except (ValueError, RecursionError):
            stated = None
        if not isinstance(stated, dict) or not all(isinstance(x, str) for x in stated.values()):
            stated = {}
        other = differences(json.loads(self._head), stated)
        if other:
            raise DescriptionError(
                str(self._path),
                expected="the results of this campaign",
                came=f"results of another one: {', '.join(other.values())}",
                cure=_CURE,
                file=str(self._path),
                fields=tuple(other),
            )


def differences(facts: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Fields in which two sets of facts differ, with both values as a text."""
    return {
        name: f"`{name}` ({others.get(name, 'nothing'):.40} instead of "
        f"{facts.get(name, 'nothing'):.40})"
        for name in dict.fromkeys((*facts, *others))
        if facts.get(name) != others.get(name)
    }


@contextmanager
def opened(path: Path, campaign: Campaign, worlds: np.ndarray) -> Iterator[Store]:
    """Open the results file of a campaign, a new one or that of an earlier run.

    Parameters
    ----------
    path : Path
        The file; its folder exists.
    campaign : Campaign
        The campaign.
    worlds : numpy.ndarray
        Deviations of the worlds 0 to n - 1, shape (n, d).

    Yields
    ------
    Store
        The file, locked.

    Raises
    ------
    DescriptionError
        If the file holds other results or is damaged.
    ConcurError
        If it cannot be written, or another process writes it.
    """
    columns = campaign.columns
    facts = {"format": _FORMAT, **campaign.facts, "columns": ", ".join(columns)}
    facts["quantities"] = str(worlds.shape[1])
    store = Store(path, json.dumps(facts, sort_keys=True), worlds, len(columns))
    with _locked(path) as file:
        if os.fstat(file.fileno()).st_size:
            store.read()
        if os.name == "nt":  # an open file cannot be replaced there; it has no lock
            file.close()
        store.write()
        with _locked(path) as store.file:
            yield store


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Open a file, a new one if it does not exist, which no other process has locked."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    with writing(path):
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DescriptionError(
            str(path),
            expected="the results of a campaign",
            came="a pipe or a device",
            cure="Name another folder.",
        )
    with os.fdopen(handle, "r+b") as file:
        try:
            lock(handle)
            if not os.path.samestat(os.fstat(handle), os.stat(path)):
                raise BlockingIOError
        except OSError:
            raise ConcurError(
                str(path),
                expected="a file that no other campaign writes",
                came="one that another process has locked",
                cure="Wait for the other campaign, or name another folder.",
            ) from None
        yield file
