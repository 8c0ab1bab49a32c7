"""The process that drains a ring to a file: `python -m hil.record._drain RING FOLDER`.

It survives the process that writes the ring, and imports only modules that it needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hil.record._chunks import ChunkFile
from hil.record.ring import Ring

ROWS_FILE = "rows.bin"
MANIFEST_FILE = "manifest.json"
PERIOD = 0.05
"""Time between drains, s."""
SYNC = 0.25
"""Time between synchronizations with the disk, s."""
UNWRITTEN = 3
"""Exit status of the process if rows could not be written."""
PATIENCE = 5.0
"""Longest wait for space on a full disk after the last row, s."""
RESERVES = ".manifest.reserve-1", ".manifest.reserve-2"
"""Files that reserve disk space for the final manifests of this process and of the loop."""
END_ROOM = 2**15
"""Bytes by which a manifest may grow at the end."""


class Drain:
    """Copies rows from a ring to the file of a record."""

    def __init__(
        self, ring: Ring, folder: Path, make_file: Callable[..., ChunkFile] = ChunkFile
    ) -> None:
        self.ring = ring
        self.folder = folder
        opening = opening_of(ring.layout_dict, read_manifest_or_nothing(folder))
        self.file = make_file(folder / ROWS_FILE, opening, ring.width)
        self.lost = ring.lost
        self._synced = time.monotonic()

    def step(self) -> bool:
        """Write all available rows; return whether the file contains all published rows."""
        ring, file = self.ring, self.file
        error: OSError | None = None
        try:
            while True:
                rows, _, lost = ring.take(file.next, 4096)
                if not len(rows):
                    self._skip(lost)
                    break
                first = file.next + lost
                self._skip(lost)
                file.write(first, rows.data.cast("B"))
                ring.report(file.next, self.lost)
            if time.monotonic() - self._synced >= SYNC:
                self._synced = time.monotonic()
                file.sync()
        except OSError as failure:
            error = failure
        if error is None:
            ring.report(file.next, self.lost)
        else:
            note = f"{file.path}: {error.strerror or error}"
            ring.report(file.next, self.lost, error.errno or -1, note)
        return error is None and file.next >= ring.written

    def _skip(self, lost: int) -> None:
        self.lost += lost
        self.file.next += lost

    def finish(self, reason: str) -> bool:
        """Write the remaining rows and the end of the manifest; return whether all succeeded."""
        deadline = time.monotonic() + PATIENCE
        complete = self.step()
        while not complete and time.monotonic() < deadline:
            time.sleep(PERIOD)
            complete = self.step()
        end = {"reason": reason, "rows": self.file.next, "lost": self.lost}
        end |= {"unwritten": self.ring.written - self.file.next, "link": self.file.link.hex()}
        try:
            self.file.sync()
            end_manifest(self.folder, end)
        except OSError as error:
            note = f"{self.folder}: {error.strerror or error}"
            self.ring.report(self.file.next, self.lost, error.errno or -1, note)
            complete = False
        self.file.close()
        return complete


def read_manifest_or_nothing(folder: Path) -> dict[str, Any]:
    """Manifest of a record; empty if the file is missing or is not a manifest."""
    try:
        found = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def opening_of(layout: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Opening of a file of rows: the layout, and what binds the rows to a manifest."""
    start = {name: value for name, value in manifest.items() if name != "end"}
    digest = hashlib.sha256(json.dumps(start, sort_keys=True).encode()).hexdigest()
    return {**layout, "run": str(manifest.get("run", "")), "manifest": digest}


def end_manifest(folder: Path, end: Mapping[str, Any]) -> None:
    """Add the end of a run to its manifest.

    Parameters
    ----------
    folder : Path
        Folder of the record.
    end : mapping
        Entries to add to the manifest's `end`.

    Raises
    ------
    OSError
        If the manifest cannot be written; it is then unchanged.
    """
    path = folder / MANIFEST_FILE
    manifest = read_manifest_or_nothing(folder)
    manifest["end"] = {**manifest.get("end", {}), **end}
    try:
        write_json(path, manifest)
    except OSError:
        reserve = next((folder / name for name in RESERVES if (folder / name).exists()), None)
        if reserve is None:
            raise
        _fill(reserve, path, manifest)


def reserve_end(folder: Path, size: int) -> None:
    """Reserve disk space for the final manifest, as the disk may be full by then."""
    for name in RESERVES:
        with open(folder / name, "wb") as file:
            file.write(bytes(size + END_ROOM))
            file.flush()
            os.fsync(file.fileno())


def release_end(folder: Path) -> None:
    """Release the disk space that was reserved for the final manifest."""
    for name in RESERVES:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _fill(reserve: Path, path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file into reserved disk space, then rename it."""
    data = (json.dumps(document, indent=1) + "\n").encode()
    with open(reserve, "r+b") as file:
        file.write(data)  # overwrites data: needs no new space
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    os.replace(reserve, path)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def main(name: str, folder: str) -> int:
    """Drain a ring until its writer closes it or dies; return 0 if all rows were written."""
    _step_back()
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ring = Ring.attach(name)
    drain = Drain(ring, Path(folder))
    while True:
        # Check the end first and drain afterwards, so that all earlier rows are written.
        reason = "closed" if ring.closed else "" if ring.writer_alive else "controller died"
        reason = reason or ("recorder was asked to stop" if asked else "")
        if reason:
            break
        drain.step()
        time.sleep(PERIOD)
    complete = drain.finish(reason)
    if complete and not asked:
        ring.report_done()
    if not ring.writer_alive:
        release_end(drain.folder)
    ring.close()
    return 0 if complete else UNWRITTEN


def _step_back() -> None:
    """Lower the priority of this process, which inherits that of the loop."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.nice(10)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
