"""`concur-rig replay`: every cycle of a record once more."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.prompt import Confirm
from rich.table import Table

from hil.errors import RecordError
from hil.record import Record
from hil.record.copies import copied_modules, recorded_rig, whose
from hil.replay import ReplayReport, replay
from hil.rig import load_rig
from hil.views.report import write_report

WRITTEN = ("report.html", "record.mcap", "record.h5")
"""Files that a replay writes."""


@dataclass(frozen=True, eq=False)
class ReplayResult:
    """Verdict on a record."""

    report: ReplayReport
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        """Whether all of it came out as recorded."""
        return self.report.passed

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        return {
            **self.report.as_dict(),
            "differences": [str(difference) for difference in self.report.differences],
            "files": [str(path) for path in self.files],
        }

    def show(self, console: Console) -> None:
        """Print a table."""
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
    allow_code: bool = False,
) -> ReplayResult:
    """Compute a record again, draw it, and export it."""
    record = Record.load(folder)
    console = Console(stderr=True)
    if rig_file is not None:
        rig = load_rig(rig_file)
    else:
        if allow_code and copied_modules(record.manifest):
            _ask(record, console)
        rig = recorded_rig(folder, record.manifest, allow_code)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("replay", total=1.0)
        report = replay(
            record, rig, force, progress=lambda share: bars.update(bar, completed=share)
        )
    target = out or folder
    for name in WRITTEN:  # a link in a record must not be written through
        if os.path.islink(target / name):  # false too where no file can have the name
            (target / name).unlink()
    files = [write_report(record, target, replayed=report)]
    if mcap:
        files.append(record.save_mcap(target / WRITTEN[1]))
    if hdf5:
        files.append(record.save(target / WRITTEN[2]))
    return ReplayResult(report, tuple(files))


def _ask(record: Record, console: Console) -> None:
    """Say whose code is about to run, and ask if somebody is there."""
    said = whose(record.manifest)
    console.print(f"This record brings Python code along: {said}.", markup=False)
    if sys.stdin.isatty() and not Confirm.ask(
        "Run it with your rights?", console=console, default=False
    ):
        raise RecordError(
            f"record {record.folder}",
            expected="a yes to its code",
            came="a no",
            cure="Nothing was run. Give your own rig file with `--rig`.",
        )
