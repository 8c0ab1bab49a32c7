"""A lock-free ring of rows in shared memory: the loop writes, other processes read.

The writer copies a row into the next slot and then publishes its number. A reader copies rows and
checks their numbers afterwards: a slot that was overwritten meanwhile has another number. The
memory is a mapped file in `/dev/shm`. Readers may attach at any time. The file survives the death
of the writer, so that the recorder can still drain it; the last process that closes it then removes
it. One object serves one thread. For Linux and macOS.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hil.record.rows import Layout

if TYPE_CHECKING:
    from hil.errors import RecordError

PREFIX = "concur-ring-"
_LISTED = Path("/proc/self/stat").exists()
_MAGIC = 0x31474E4952434343
_HEADER = 4096
_TEXT, _NOTE = 2048, 3584
"""Offsets in the header of the layout and of the recorder's note."""

# Indices of the numbers in the header, int64.
_READY, _ROWS, _WIDTH, _PID, _BORN, _WRITTEN, _HEARTBEAT, _CLOSED = range(8)
_RECORDER, _RECORDED, _LOST, _ERROR, _DONE = range(8, 13)


def _ring_folder() -> Path:
    """Folder of the rings: `/dev/shm` if it exists, else the folder for temporary files."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def _process_start(pid: int) -> int:
    """Start time of a process, which distinguishes it from a later one with the same number.

    In clock ticks since the start of the machine; 0: unknown; -1: the process does not exist, or
    has ended.
    """
    if _LISTED:
        try:
            # The name, in parentheses, may contain anything.
            parts = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return -1
        return -1 if parts[0] in (b"Z", b"X") else int(parts[19])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except PermissionError:
        pass
    return 0


def header_numbers() -> dict[str, int]:
    """Numbers of the memory of a ring, for code in C that writes rows.

    Returns
    -------
    dict of str to int
        Bytes of the header, and indices of its numbers, int64.
    """
    return {
        "HEADER": _HEADER,
        "ROWS": _ROWS,
        "WIDTH": _WIDTH,
        "WRITTEN": _WRITTEN,
        "HEARTBEAT": _HEARTBEAT,
    }


class Ring:
    """Rows of the last seconds; `create` makes a ring, `attach` opens one for reading.

    Parameters
    ----------
    name : str
        Name for `attach`.
    memory : mmap.mmap
        The shared memory.
    writer : bool
        Whether this object writes.

    Attributes
    ----------
    row : numpy.ndarray
        Row to fill, shape (width,); for the writer only. It is always the same array, so that views
        of it remain valid.
    """

    def __init__(self, name: str, memory: mmap.mmap, writer: bool) -> None:
        self.name = name
        self._path = _ring_folder() / name
        self._memory = memory
        self._writer = writer
        self._header = memoryview(memory)[: 8 * 32].cast("q")
        rows, width = self._header[_ROWS], self._header[_WIDTH]
        self._rows, self._width = rows, width
        stamps = _HEADER + 8 * rows
        self._stamps = memoryview(memory)[_HEADER:stamps].cast("q")
        self._all_stamps = np.frombuffer(memory, np.int64, rows, _HEADER)
        self._table = np.frombuffer(memory, np.float64, rows * width, stamps).reshape(rows, width)
        # Release and acquisition of a lock are a memory barrier.
        self._fence = threading.Lock()
        self._fence.acquire()
        self.row = np.full(width, np.nan) if writer else np.empty(0)
        self._next = 0

    @classmethod
    def create(cls, layout: Layout, rows: int, name: str | None = None) -> Ring:
        """Make a ring and become its writer.

        Parameters
        ----------
        layout : Layout
            Layout of the rows.
        rows : int
            Number of rows in the ring.
        name : str, optional
            Name of the ring; default: a new name.

        Returns
        -------
        Ring
            The ring; close it after use.

        Raises
        ------
        RecordError
            If the memory cannot be allocated, or the name is in use.
        """
        if rows < 2:
            raise _error(
                "ring", "at least 2 rows", str(rows), "Set `seconds` of `[recorder]` higher."
            )
        _sweep()
        name = name or f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        text = json.dumps(layout.to_dict()).encode()
        if len(text) > _NOTE - _TEXT:
            raise _error(
                f"ring `{name}`",
                f"a layout of at most {_NOTE - _TEXT} bytes",
                f"{len(text)}: {len(layout.axes)} axes",
                "Give the axes shorter names.",
            )
        size = _HEADER + 8 * rows * (1 + layout.width)
        path = _ring_folder() / _checked(name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise _error(
                f"ring `{name}`",
                f"a file that can be created in {path.parent}",
                error.strerror or str(error),
                "Choose another name, or permit writing in this folder.",
            ) from error
        try:
            if hasattr(os, "posix_fallocate"):
                # Missing memory must raise an error here, rather than a signal in the loop.
                os.posix_fallocate(descriptor, 0, size)
            else:
                os.ftruncate(descriptor, size)
            # Allocate all pages now: the loop must not wait for a page at its first use.
            memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise _error(
                f"ring `{name}`",
                f"{size / 1e6:.3g} MB of shared memory",
                error.strerror or str(error),
                f"Set `seconds` of `[recorder]` lower, or free memory in {path.parent}.",
            ) from error
        finally:
            os.close(descriptor)
        header = memoryview(memory)[: 8 * 32].cast("q")
        header[_ROWS], header[_WIDTH] = rows, layout.width
        header[_PID], header[_BORN] = os.getpid(), _process_start(os.getpid())
        header[_HEARTBEAT] = time.monotonic_ns()
        memory[_TEXT : _TEXT + len(text)] = text
        header.release()
        ring = cls(name, memory, writer=True)
        # Removes the file if the writer ends without closing the ring.
        weakref.finalize(ring, _forgotten, path, os.getpid())
        ring._barrier()
        ring._header[_READY] = _MAGIC
        return ring

    @classmethod
    def attach(cls, name: str) -> Ring:
        """Open a ring that another process writes.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        Ring
            The ring, for reading; close it after use.

        Raises
        ------
        RecordError
            If the ring does not exist.
        """
        path = _ring_folder() / _checked(name)
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError as error:
            raise _missing(name, error.strerror or str(error)) from error
        try:
            size = os.fstat(descriptor).st_size
            if size < _HEADER:
                raise _missing(name, f"a file of {size} bytes")
            memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        with memoryview(memory) as whole, whole[: 8 * 32].cast("q") as header:
            ready, rows, width = header[_READY], header[_ROWS], header[_WIDTH]
        if ready != _MAGIC or size != _HEADER + 8 * rows * (1 + width):
            memory.close()
            raise _missing(name, "a file that is not a ring, or not ready yet")
        return cls(name, memory, writer=False)

    @property
    def layout_dict(self) -> dict[str, Any]:
        """The layout in the ring, as arguments of `Layout`."""
        text = bytes(self._memory[_TEXT:_NOTE]).rstrip(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def layout(self) -> Layout:
        """Layout of the rows."""
        return Layout.from_dict(self.layout_dict)

    @property
    def memory(self) -> mmap.mmap:
        """The shared memory."""
        return self._memory

    @property
    def path(self) -> Path:
        """File of the memory."""
        return self._path

    @property
    def rows(self) -> int:
        """Number of rows in the ring."""
        return self._rows

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self._width

    @property
    def written(self) -> int:
        """Number of rows published so far."""
        return int(self._header[_WRITTEN])

    @property
    def closed(self) -> bool:
        """Whether the writer has ended the ring."""
        return bool(self._header[_CLOSED])

    @property
    def heartbeat(self) -> float:
        """Instant of the last published row, s of the machine's monotonic clock."""
        return self._header[_HEARTBEAT] * 1e-9

    @property
    def writer_alive(self) -> bool:
        """Whether the process of the writer exists."""
        return _process_start(self._header[_PID]) == self._header[_BORN]

    def publish(self) -> None:
        """Publish `row` as the next row."""
        number = self._next
        slot = number % self._rows
        stamps, fence = self._stamps, self._fence
        stamps[slot] = 0
        fence.release()
        fence.acquire()
        self._table[slot] = self.row
        fence.release()
        fence.acquire()
        self._next = number = number + 1
        stamps[slot] = number
        header = self._header
        header[_WRITTEN] = number
        header[_HEARTBEAT] = time.monotonic_ns()

    def take(self, since: int, most: int | None = None) -> tuple[NDArray[np.float64], int, int]:
        """Copy the rows from a number on.

        Parameters
        ----------
        since : int
            Number of the first requested row, counted from 0: `next` of the last call.
        most : int, optional
            Largest number of rows; default: all available rows.

        Returns
        -------
        rows : numpy.ndarray
            Shape (n, width); may be empty.
        next : int
            Number of the row after them.
        lost : int
            Number of requested rows that were overwritten before they could be copied; the first
            copied row has the number `since + lost`.
        """
        end = self.written
        self._barrier()
        begin = max(since, end - self._rows)
        end = max(end, begin)
        if most is not None:
            end = min(end, begin + most)
        slots = np.arange(begin, end) % self._rows
        rows = self._table[slots]
        self._barrier()
        overwritten = self._all_stamps[slots] != np.arange(begin + 1, end + 1)
        # The oldest are overwritten first.
        bad = int(np.flatnonzero(overwritten)[-1]) + 1 if overwritten.any() else 0
        return rows[bad:], end, begin + bad - since

    def last(self) -> NDArray[np.float64] | None:
        """Copy the newest row; None before the first row.

        Returns
        -------
        numpy.ndarray or None
            Shape (width,).
        """
        rows = self._table[:0]
        # A writer that repeatedly overtakes the reader must not block it forever.
        for _ in range(100):
            written = self.written
            if written and not len(rows):
                rows, _, _ = self.take(written - 1)
        return rows[-1].copy() if len(rows) else None

    def end(self) -> None:
        """Mark the end of the rows. For the writer."""
        self._barrier()
        self._header[_CLOSED] = 1

    def close(self) -> None:
        """Unmap the memory, and remove the file if the writer has ended."""
        if self._memory.closed:
            return
        if self._writer:
            self.end()
        if self._writer or self.closed or not self.writer_alive:
            self.remove()
        self.row = np.empty(0)
        self._table = self._table[:0].copy()
        self._all_stamps = self._all_stamps[:0].copy()
        self._stamps.release()
        self._header.release()
        # A remaining view keeps the memory alive; the name is removed in any case.
        with contextlib.suppress(BufferError):
            self._memory.close()

    def remove(self) -> None:
        """Remove the file; attached processes keep their access."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reports from the recorder to the loop ---------------------------------------------------

    def report(self, recorded: int, lost: int, error: int = 0, note: str = "") -> None:
        """Report the progress of recording. For the recorder.

        Parameters
        ----------
        recorded : int
            Number of the first row that is not in the file.
        lost : int
            Number of rows that were overwritten before they were recorded.
        error : int
            Number of the operating system's error that keeps rows from the file; 0: no error.
        note : str
            The error as text.
        """
        header = self._header
        if error and note:
            text = note.encode()[: _HEADER - _NOTE]
            self._memory[_NOTE:_HEADER] = text.ljust(_HEADER - _NOTE, b"\0")
        header[_RECORDED], header[_LOST], header[_ERROR] = recorded, lost, error
        header[_RECORDER] = time.monotonic_ns()

    def report_done(self) -> None:
        """Report that the file is complete. For the recorder."""
        self._header[_DONE] = 1

    @property
    def recorder_ready(self) -> bool:
        """Whether a recorder has reported."""
        return self._header[_RECORDER] != 0

    @property
    def recorder_heartbeat(self) -> float:
        """Instant of the recorder's last report, s of the machine's monotonic clock; 0: never."""
        return self._header[_RECORDER] * 1e-9

    @property
    def recorder_error(self) -> int:
        """Number of the error that keeps rows from the file; 0: no error."""
        return int(self._header[_ERROR])

    @property
    def recorder_note(self) -> str:
        """The last error of the recorder as text; "" if there was none."""
        return bytes(self._memory[_NOTE:_HEADER]).rstrip(b"\0").decode(errors="replace")

    @property
    def recorder_done(self) -> bool:
        """Whether the file is complete."""
        return bool(self._header[_DONE])

    @property
    def recorded(self) -> int:
        """Number of the first row that is not in the file."""
        return int(self._header[_RECORDED])

    @property
    def lost(self) -> int:
        """Number of rows that were overwritten before they were recorded."""
        return int(self._header[_LOST])

    def _barrier(self) -> None:
        self._fence.release()
        self._fence.acquire()


def _sweep() -> None:
    """Remove rings of dead writers."""
    for path in _ring_folder().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            # A recorder that still drains the ring has it open and does not need the name.
            if _process_start(_pid_in(path.name)) < 0:
                path.unlink(missing_ok=True)


def _forgotten(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _pid_in(name: str) -> int:
    return int(name.removeprefix(PREFIX).partition("-")[0])


def _checked(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise _error("ring", "a name of a ring", repr(name), "Use the name in the manifest.")
    return name


def _missing(name: str, came: str) -> RecordError:
    return _error(
        f"ring `{name}`",
        "a ring of a running controller",
        came,
        "Start the controller first, and use the name in the manifest of its record.",
    )


def _error(where: str, expected: str, came: str, cure: str) -> RecordError:
    # A late import, as the recorder's process must start fast.
    from hil.errors import RecordError

    return RecordError(where, expected=expected, came=came, cure=cure)
