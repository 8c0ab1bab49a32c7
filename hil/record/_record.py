"""Reading of the record of a run from its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil._concur import confined, folder_named, printable, read_bytes, shown, write_arrays
from hil.errors import RecordError
from hil.reasons import Reason, State
from hil.record._chunks import FIRST, LAYOUT, ROWS, Chunk, Damage, scan
from hil.record._drain import opening_of
from hil.record._mcap import write_mcap
from hil.record.manifest import ROWS_FILE, read_manifest
from hil.record.rows import SCALARS, Layout

LARGEST_INDEX = 2**53
"""Largest valid row number."""


@dataclass(frozen=True, eq=False)
class Record:
    """Rows of a run with names, units and metadata; `Record.load` reads a record.

    Parameters
    ----------
    folder : Path
        Folder of the record.
    layout : Layout
        Layout of the rows.
    manifest : mapping
        Metadata of the start and, if the run was ended, of its end: `end`.
    rows : numpy.ndarray
        Shape (n, width).
    index : numpy.ndarray
        Numbers of the rows, counted from the start of the run, shape (n,), increasing; a gap shows
        that rows are missing.
    damage : tuple of Damage
        Parts of the file that could not be read.
    notes : tuple of str
        Remarks, such as a controller that died or lost rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options)
    >>> record = hil.Record.load(result.folder)
    >>> record["torque"].shape[1], record.damage
    (5, ())
    """

    folder: Path
    layout: Layout
    manifest: Mapping[str, Any]
    rows: NDArray[np.float64]
    index: NDArray[np.int64]
    damage: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Record:
        """Read a record; damaged parts are skipped and listed in `damage`.

        Parameters
        ----------
        folder : str or os.PathLike
            Folder of one run.

        Returns
        -------
        Record
            The record with the rows of all valid chunks.

        Raises
        ------
        RecordError
            If the folder does not contain a record, or its files belong to different records.
        """
        path = folder_named(folder, "record")
        manifest = read_manifest(path)
        layout = _manifest_layout(path, manifest)
        file, data = path / ROWS_FILE, b""
        if os.path.lexists(file):
            with confined(path):
                data = read_bytes(file, "the rows of a record", "", RecordError, None)
        rows, index, damage = _read_rows(file, data, layout, manifest)
        record = cls(path, layout, manifest, rows, index, damage)
        return replace(record, notes=_notes(manifest, record.faults))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Columns of a quantity of the layout: shape (n,) for a scalar, else (n, length)."""
        span = self.layout.spans.get(name)
        if span is None:
            raise RecordError(
                f"record {self.folder}",
                expected=f"one of the names {', '.join(self.layout.spans)}",
                came=f"`{name}`",
                cure="Use one of these names.",
            )
        part = self.rows[:, span]
        return part[:, 0] if name in self._scalars else part

    def __repr__(self) -> str:
        ended = "" if self.complete else ", incomplete"
        return f"Record({self.folder}: {len(self)} rows, {self.duration:.6g} s{ended})"

    @property
    def _scalars(self) -> set[str]:
        return {name for name, _ in SCALARS}

    @property
    def names(self) -> tuple[str, ...]:
        """Valid names for `record[name]`."""
        return tuple(self.layout.spans)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return self.layout.axes

    @property
    def time(self) -> NDArray[np.float64]:
        """Start of each cycle, s since the first one, shape (n,)."""
        clock = self["time"]
        return clock - clock[0] if len(clock) else clock

    @property
    def wall(self) -> NDArray[np.float64]:
        """Start of each cycle by the machine's wall clock, s since 1970, shape (n,).

        The offset to the loop's clock is that of the start, without later steps of the wall clock.
        """
        return self["time"] + float(self.manifest.get("wall_minus_clock", 0.0))

    @property
    def duration(self) -> float:
        """Time from the first cycle to the last, s."""
        return float(self.time[-1]) if len(self) else 0.0

    @property
    def complete(self) -> bool:
        """Whether the run was ended and the record contains exactly its rows."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Defects of rows and manifest, one sentence each."""
        found, end = [], self.manifest.get("end")
        rows, index = len(self), self.index
        if end is None:
            found.append("the run was not ended: controller and recorder died, or it still runs")
        else:
            if end.get("unwritten"):
                found.append(f"the last {end['unwritten']} rows could not be written")
            if end.get("lost"):
                found.append(f"{end['lost']} rows were overwritten before they were written")
            listed = end.get("rows")
            if listed is None:
                found.append("the manifest has no number of rows")
            elif listed != rows:
                found.append(f"{rows} rows instead of the {listed} in the manifest")
            found += self._wrong_end(str(end.get("reason", "")))
        missing = int(index[-1]) + 1 - rows if rows else 0
        if missing:
            found.append(f"{missing} rows are missing between others")
        return (*found, *map(str, self.damage))

    def _wrong_end(self, listed: str) -> list[str]:
        """Contradiction between the reason in the manifest and that of the last row."""
        if listed not in Reason.__members__ or not len(self):
            return []
        state, reason = self["state"][-1], self["reason"][-1]
        if listed == Reason.RECORDER.name:
            return []  # replaces any reason of the loop
        if state == State.STOP and reason == Reason[listed]:
            return []
        return [f"the manifest ends with {listed}, but the last row does not"]

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Name and unit of each column of a quantity.

        Parameters
        ----------
        name : str
            A name of the layout.

        Returns
        -------
        list of (str, str)
            One pair for each column.
        """
        span = self.layout.spans[name]
        listed = self.manifest.get("columns", {}).get(name)
        if listed is None or len(listed) != span.stop - span.start:
            return [(f"{name}[{i}]", "1") for i in range(span.stop - span.start)]
        return [(str(column), str(unit)) for column, unit in listed]

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the record to an HDF5 file.

        Parameters
        ----------
        path : str or os.PathLike
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file. Each quantity of the layout is a dataset with its `unit`; a dataset with
            several columns has their names and units in the attributes `columns` and `units`. The
            manifest is an attribute of the file, as JSON.

        Raises
        ------
        DescriptionError
            If the file cannot be written.
        """
        arrays = {name: (self[name], self.columns(name)) for name in self.names}
        arrays["index"] = (self.index.astype(np.float64), [("index", "1")])
        facts = {
            "rig": str(self.manifest.get("name", "")),
            "started": str(self.manifest.get("started", "")),
            "wall_minus_clock": float(self.manifest.get("wall_minus_clock", 0.0)),
            "manifest": json.dumps(self.manifest),
        }
        return write_arrays(path, arrays, facts)

    def save_mcap(self, path: str | PathLike[str]) -> Path:
        """Write the record as an MCAP file, for viewers of robot logs.

        Parameters
        ----------
        path : str or os.PathLike
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file. Each cycle has one message on each topic: an object with one member for each
            quantity. The member is a number, or an object with one number for each axis or
            coordinate. NaN is null. Units are part of the schemas. Time stamps are wall-clock
            times: the loop's clock plus the offset of the manifest.

        Raises
        ------
        RecordError
            If the file cannot be written, or the package `mcap` is missing.
        """
        return write_mcap(self, path)


def _manifest_layout(folder: Path, manifest: Mapping[str, Any]) -> Layout:
    try:
        return Layout.from_dict(manifest["layout"])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{folder}, layout of the manifest",
            expected="axes, nq, ns, pose_size and size",
            came=f"{type(error).__name__}: {error}",
            cure="Restore the manifest from a copy. The file of rows begins with the layout too.",
        ) from error


def _read_rows(
    file: Path, data: bytes, layout: Layout, manifest: Mapping[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.int64], tuple[Damage, ...]]:
    if not layout.width:
        return np.empty((0, 0)), np.empty(0, dtype=np.int64), ()
    parts: list[NDArray[np.float64]] = []
    numbers: list[NDArray[np.int64]] = []
    damage: list[Damage] = []
    seen, opened, link = 0, False, FIRST
    for part in scan(data):
        if isinstance(part, Damage):
            damage.append(part)
            continue
        link = part.link
        if part.kind == LAYOUT and not opened:
            if _check_opening(file, data, part, layout, manifest):
                why = "rows of a manifest that was changed afterwards"
                damage.append(Damage(part.start, part.start, why))
            opened = True
        elif part.kind == ROWS and opened:
            size = part.end - part.start
            if part.first < seen or size % (8 * layout.width) or part.first > LARGEST_INDEX:
                damage.append(Damage(part.start, part.end, "rows with a wrong number or size"))
                continue
            rows = np.frombuffer(data, np.float64, size // 8, part.start)
            parts.append(rows.reshape(-1, layout.width))
            seen = part.first + len(parts[-1])
            numbers.append(np.arange(part.first, seen))
        else:
            damage.append(Damage(part.start, part.end, "a chunk of an unexpected kind"))
    end = manifest.get("end")
    if end is not None and end.get("link") != link.hex():
        why = "the end of the manifest is not that of these rows"
        damage.append(Damage(len(data), len(data), why))
    if not parts:
        return np.empty((0, layout.width)), np.empty(0, dtype=np.int64), tuple(damage)
    return np.concatenate(parts), np.concatenate(numbers), tuple(damage)


def _check_opening(
    file: Path, data: bytes, part: Chunk, layout: Layout, manifest: Mapping[str, Any]
) -> bool:
    """Reject rows of another run or layout; return whether the manifest was changed since."""
    expected = {**layout.to_dict(), "run": manifest.get("run", "")}
    try:
        own = json.loads(data[part.start : part.end])
        changed = bool(own.pop("manifest") != opening_of({}, manifest)["manifest"])
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        own, changed = "an invalid opening", True
    if own != expected:
        raise RecordError(
            str(file),
            expected=f"rows with run and layout of the manifest: {expected}",
            came=f"rows with {shown(repr(own), 200)}",
            cure="Put manifest and rows of the same run into one folder.",
        )
    return changed


def _notes(manifest: Mapping[str, Any], faults: tuple[str, ...]) -> tuple[str, ...]:
    end = manifest.get("end") or {}
    notes = []
    if end.get("reason") == "controller died":
        notes.append("the controller died")
    if "recorder" in end:
        notes.append(f"the recorder {end['recorder']}")
    if end.get("note"):
        notes.append(f"error that kept rows from the file: {end['note']}")
    notes += end.get("left", ())
    return tuple(printable(note) for note in (*notes, *faults))
