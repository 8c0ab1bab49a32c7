"""`concur-rig replay`: every cycle of a record once more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from hil.errors import RecordError
from hil.record import Record
from hil.replay import ReplayReport, replay
from hil.rig import load_rig
from hil.views.figures import write_report


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """Verdict on a record.

    Parameters
    ----------
    report : ReplayReport
        What was computed again.
    files : tuple of pathlib.Path
        Figures, report and exports.
    """

    report: ReplayReport
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        """Whether all of it came out as recorded."""
        return self.report.passed

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Verdict, what was compared, differences and files.
        """
        return {
            "passed": self.passed,
            "cycles": len(self.report.record),
            "evaluated": self.report.evaluated,
            "judged": self.report.judged,
            "exact": self.report.exact,
            "differences": [str(difference) for difference in self.report.differences],
            "files": [str(path) for path in self.files],
        }

    def show(self, console: Console) -> None:
        """Print a table.

        Parameters
        ----------
        console : rich.console.Console
            Where to.
        """
        table = Table(title="Replay", title_justify="left", show_header=False)
        for name, value in self.report.rows():
            table.add_row(name, escape(value))
        console.print(table)
        for path in self.files:
            console.print(f"written: {path}")


def replay_record(
    folder: Path,
    rig_file: Path | None,
    out: Path | None,
    mcap: bool,
    hdf5: bool,
    force: bool,
    as_json: bool,
) -> ReplayResult:
    """Compute a record again, draw it, and export it.

    Parameters
    ----------
    folder : pathlib.Path
        The record.
    rig_file : pathlib.Path or None
        Rig file; None: the one that the record names.
    out : pathlib.Path or None
        Where figures go; None: into the record's folder.
    mcap, hdf5 : bool
        Whether to export.
    force : bool
        Whether to go on although rig, robot or law differ.
    as_json : bool
        Whether standard output is for machines.

    Returns
    -------
    ReplayResult
        What was found and written.

    Raises
    ------
    RecordError
        If the record names no rig file and none is given.
    """
    record = Record.load(folder)
    path = rig_file or _named(record, folder)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("replay", total=1.0)
        report = replay(
            record, load_rig(path), force, progress=lambda share: bars.update(bar, completed=share)
        )
    target = out or folder
    files = [write_report(record, target, replayed=report)]
    if mcap:
        files.append(record.save_mcap(target / "record.mcap"))
    if hdf5:
        files.append(record.save(target / "record.h5"))
    return ReplayResult(report, tuple(files))


def _named(record: Record, folder: Path) -> Path:
    named = record.manifest.get("rig", {}).get("file")
    if not isinstance(named, str) or not Path(named).is_file():
        raise RecordError(
            f"record {folder}",
            expected="the rig file that it was made with",
            came=f"{named}, which is not there" if named else "no name of one",
            cure="Give it with `--rig`.",
        )
    return Path(named)
