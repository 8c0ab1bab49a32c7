"""Results file of a campaign: a header, then one record per block of worlds, appended.

A record has a head with its length, the head's checksum, its content and a digest of both. So a
file that ends within a record was cut off there, which a killed process explains; any other fault
is damage. The header lists what the values depend on: a file of another campaign is refused. A
further kind of record is a look: the number of worlds of an answer that was given.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from concur.errors import ConcurError, DescriptionError
from concur.files import lock, writing
from concur.verification._evaluator import Evaluator, differences
from concur.verification._table import Table, decoded, joined

_MAGIC = b"concur worlds 2\n"
_HEAD = struct.Struct("<4sQ")
_CHECK = struct.Struct("<I")
_LOOK = struct.Struct("<Q")
_DIGEST = 16


class Store:
    """Results file that is open, and locked by this process; made by `opened`.

    Parameters
    ----------
    path : Path
        The file.
    file : binary file
        The same, open for reading and writing.
    facts : mapping of str to str
        What the values depend on.
    size : int
        Number of uncertain quantities.
    columns : int
        Number of values of a world.
    """

    def __init__(
        self, path: Path, file: BinaryIO, facts: Mapping[str, str], size: int, columns: int
    ) -> None:
        self.path, self._file, self._facts = path, file, dict(facts)
        self._shape = (size, columns)
        self.looks: set[int] = set()
        empty = np.empty(0, dtype=np.int64)
        self.table = Table(empty, np.empty((0, size)), np.empty((0, columns)))
        self._read()

    def append(self, table: Table) -> None:
        """Append rows; they are on the disk when this returns."""
        self._write(_record(b"ROWS", table.encoded()))

    def look(self, worlds: int) -> None:
        """Keep that an answer with this number of worlds is given."""
        if worlds not in self.looks:
            self._write(_record(b"LOOK", _LOOK.pack(worlds)))
            self.looks.add(worlds)

    def _write(self, data: bytes) -> None:
        with writing(self.path):
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())

    def _read(self) -> None:
        """Read all whole records, and drop what is left of one that was cut off."""
        header = _MAGIC + _record(b"HEAD", json.dumps(self._facts, sort_keys=True).encode())
        begin = self._file.read(max(len(header), len(_MAGIC)))
        if len(begin) < len(header) and header.startswith(begin):
            self._cut(0)
            self._write(header)
            return
        if not begin.startswith(_MAGIC):
            self._refuse("another file", "Name another folder.")
        self._file.seek(len(_MAGIC))
        found = self._next()
        if found is None:
            self._refuse("a file that ends in its header", "Remove it, or name another folder.")
        self._check(found[1])
        tables, end = [self.table], self._file.tell()
        while (found := self._next()) is not None:
            kind, data = found
            # Of JSON that is no list of pairs.
            with suppress(ValueError, TypeError, OverflowError, RecursionError, struct.error):
                if kind == b"LOOK":
                    self.looks.add(*_LOOK.unpack(data))
                    end = self._file.tell()
                    continue
                table = decoded(data)
                if (table.worlds.shape[1], table.values.shape[1]) == self._shape:
                    tables.append(table)
                    end = self._file.tell()
                    continue
            self._damaged(end)
        self._cut(end)
        self.table = joined(tables)

    def _next(self) -> tuple[bytes, bytes] | None:
        """Kind and content of the next record; None at the end, or where one was cut off."""
        start = self._file.tell()
        head = self._file.read(_HEAD.size + _CHECK.size)
        if len(head) < _HEAD.size + _CHECK.size:
            return None
        kind, length = _HEAD.unpack_from(head)
        if _CHECK.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
            self._damaged(start)
        if os.fstat(self._file.fileno()).st_size - self._file.tell() < length + _DIGEST:
            return None
        data, digest = self._file.read(length), self._file.read(_DIGEST)
        expected = (b"HEAD",) if start == len(_MAGIC) else (b"ROWS", b"LOOK")
        if digest != _digest(head, data) or kind not in expected:
            self._damaged(start)
        return kind, data

    def _check(self, header: bytes) -> None:
        """Refuse the file of another campaign."""
        try:
            stated = json.loads(header)
        except (ValueError, RecursionError):
            stated = None
        if not isinstance(stated, dict) or not all(isinstance(x, str) for x in stated.values()):
            self._refuse("another header", "Remove the file, or name another folder.")
        other = differences(self._facts, stated)
        if other:
            self._refuse(
                f"results of another one: {', '.join(other)}",
                "Name another folder, or restore what has changed.",
                fields=tuple(text.split("`")[1] for text in other),
            )

    def _cut(self, end: int) -> None:
        with writing(self.path):
            self._file.truncate(end)
            self._file.seek(end)

    def _damaged(self, start: int) -> NoReturn:
        self._refuse(
            f"a damaged record at byte {start}",
            "Restore the file from a copy, or keep what is before: "
            f"`truncate -s {start} {self.path}`, and run the campaign again.",
        )

    def _refuse(self, came: str, cure: str, **data: Any) -> NoReturn:
        raise DescriptionError(
            str(self.path),
            expected="the results of this campaign",
            came=came,
            cure=cure,
            file=str(self.path),
            **data,
        )


def _digest(head: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(head + data, digest_size=_DIGEST).digest()


def _record(kind: bytes, data: bytes) -> bytes:
    head = _HEAD.pack(kind, len(data))
    head += _CHECK.pack(zlib.crc32(head))
    return head + data + _digest(head, data)


@contextmanager
def opened(path: Path, evaluator: Evaluator, size: int) -> Iterator[Store]:
    """Open the results file of a campaign, a new one or that of an earlier run.

    Parameters
    ----------
    path : Path
        The file; its folder exists.
    evaluator : Evaluator
        What the campaign evaluates.
    size : int
        Number of uncertain quantities.

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
    columns = evaluator.columns
    facts = {**evaluator.facts, "columns": ", ".join(columns), "quantities": str(size)}
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
        _lock(handle, path)
        yield Store(path, file, facts, size, len(columns))


def _lock(handle: int, path: Path) -> None:
    try:
        lock(handle)
    except OSError:
        raise ConcurError(
            str(path),
            expected="a file that no other campaign writes",
            came="one that another process has locked",
            cure="Wait for the other campaign, or name another folder.",
        ) from None
