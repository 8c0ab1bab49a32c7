"""The file of a record: chunks with checksums, which are only appended.

The module imports only the standard library, so that the process that writes the file starts fast.

A chunk is a header of 36 bytes, little-endian, and a payload. The header contains four bytes CCRW,
kind (uint32; 0: JSON, which opens the file: the layout, and run and hash of the manifest; 1: rows
of float64), number of the first row (int64), length of the payload in bytes (uint64), a link to the
chunk before it (8 bytes), and CRC-32 (uint32) of the preceding header and the payload. The link is
the start of the SHA-256 of the link of the chunk before it (zeros before the first), the preceding
header and the payload. A truncated or changed chunk is detected and skipped; other chunks stay
readable. Links detect chunks that are missing, moved, or of another file.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAGIC = b"CCRW"
LAYOUT, ROWS = 0, 1
_HEADER = struct.Struct("<4sIqQ8sI")
_CHECKED = _HEADER.size - 4
_LINKED = _CHECKED - 8
FIRST = bytes(8)
"""Link before the first chunk."""
LARGEST = 1 << 16
"""Largest payload of a written chunk, bytes: small, to use the last space of a full disk."""


@dataclass(frozen=True)
class Chunk:
    """A valid chunk."""

    kind: int
    first: int  # number of its first row, counted from the start of the run
    start: int  # offset of its payload in the file, bytes
    end: int
    link: bytes  # to the chunk before it


@dataclass(frozen=True)
class Damage:
    """A part of the file that is not a valid chunk."""

    start: int
    end: int
    why: str

    def __str__(self) -> str:
        place = f"bytes {self.start} to {self.end}" if self.end > self.start else f"byte {self.end}"
        return f"{place}: {self.why}"


def link_of(before: bytes, start: bytes | memoryview, payload: bytes | memoryview) -> bytes:
    """Link of a chunk to the one before it."""
    digest = hashlib.sha256(before)
    digest.update(start)
    digest.update(payload)
    return digest.digest()[:8]


def pack(
    kind: int, first: int, payload: bytes | memoryview, before: bytes = FIRST
) -> list[bytes | memoryview]:
    """Header and payload of a chunk after one with the link `before`."""
    start = _HEADER.pack(MAGIC, kind, first, len(payload), FIRST, 0)[:_LINKED]
    start += link_of(before, start, payload)
    checksum = zlib.crc32(payload, zlib.crc32(start))
    return [start + struct.pack("<I", checksum), payload]


def scan(data: bytes | memoryview) -> Iterator[Chunk | Damage]:
    """Chunks and damage of a file in their order; together they cover it."""
    view = memoryview(data)
    place, size = 0, len(view)
    before: bytes | None = FIRST  # unknown after damage
    while place < size:
        chunk, why = _chunk_at(view, place)
        if chunk is not None:
            head, payload = view[place : place + _LINKED], view[chunk.start : chunk.end]
            if before is not None and chunk.link != link_of(before, head, payload):
                yield Damage(place, place, "a chunk that does not follow the one before it")
            yield chunk
            place, before = chunk.end, chunk.link
            continue
        start, before = place, None
        while chunk is None:
            place = _find(view, place + 1)
            if place < 0:
                yield Damage(start, size, why)
                return
            chunk, _ = _chunk_at(view, place)
        yield Damage(start, place, why)


def _find(view: memoryview, start: int) -> int:
    """Offset of the next magic number; -1 if there is none."""
    for begin in range(start, len(view), LARGEST):
        # Pieces overlap by three bytes, to find a magic number across a border.
        found = bytes(view[begin : begin + LARGEST + 3]).find(MAGIC)
        if found >= 0:
            return begin + found
    return -1


def _chunk_at(view: memoryview, place: int) -> tuple[Chunk | None, str]:
    head = view[place : place + _HEADER.size]
    if head[:4] != MAGIC[: len(head)]:
        return None, "no chunk begins here"
    if len(head) < _HEADER.size:
        return None, f"a header of {_HEADER.size} bytes that ends after {len(head)}"
    _, kind, first, length, link, checksum = _HEADER.unpack(head)
    start = place + _HEADER.size
    if length > len(view) - start:
        return None, f"a chunk of {length} bytes that ends after {len(view) - start}"
    if zlib.crc32(view[start : start + length], zlib.crc32(head[:_CHECKED])) != checksum:
        return None, "a chunk with a wrong checksum"
    return Chunk(kind, first, start, start + length, link), ""


class ChunkFile:
    """The file while it is written; it always ends with a complete chunk."""

    def __init__(
        self, path: str | os.PathLike[str], opening: Mapping[str, Any], width: int
    ) -> None:
        self.next = 0  # number of the first row that is not in the file
        self._row_bytes = 8 * width
        self.path = path
        self._opening = json.dumps(dict(opening)).encode()
        self.link = FIRST  # of the last chunk
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._size = self._whole_size()
        os.ftruncate(self._descriptor, self._size)
        self._synced = False

    def _whole_size(self) -> int:
        """Offset of the end of the last valid chunk."""
        with open(self.path, "rb") as file:
            data = file.read()
        size = 0
        for part in scan(data):
            if isinstance(part, Chunk):
                size, self.link = part.end, part.link
                if part.kind == ROWS:
                    self.next = part.first + (part.end - part.start) // self._row_bytes
        return size

    def write(self, first: int, rows: memoryview) -> None:
        """Append rows; on return the operating system has accepted them.

        After an OSError the file ends with the last complete chunk, `next` is the first row that is
        not in it, and the call may be repeated from there.
        """
        if not self._size:
            self._append(LAYOUT, 0, self._opening)
        step = max(LARGEST // self._row_bytes, 1) * self._row_bytes
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            self._append(ROWS, first, part)
            first += len(part) // self._row_bytes
            self.next = first

    def _append(self, kind: int, first: int, payload: bytes | memoryview) -> None:
        place, parts = self._size, pack(kind, first, payload, self.link)
        try:
            for part in parts:
                view = memoryview(part)
                while view:
                    written = os.pwrite(self._descriptor, view, place)
                    place += written
                    view = view[written:]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size, self.link = place, bytes(parts[0][_LINKED:_CHECKED])
        self._synced = False

    def sync(self) -> None:
        """Wait until all data are on the disk."""
        if not self._synced:
            os.fsync(self._descriptor)
            self._synced = True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
