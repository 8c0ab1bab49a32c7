"""`concur-rig replay`: recomputation of every cycle of a record."""

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
    """Result of a replay."""

    report: ReplayReport
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        """Whether the replay reproduces the record."""
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
    allow_code: bool = False,
) -> ReplayResult:
    """Replay a record, write its report, and export it."""
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
        if os.path.islink(target / name):  # also false for impossible names
            (target / name).unlink()
    files = [write_report(record, target, replayed=report)]
    if mcap:
        files.append(record.save_mcap(target / WRITTEN[1]))
    if hdf5:
        files.append(record.save(target / WRITTEN[2]))
    return ReplayResult(report, tuple(files))


def _ask(record: Record, console: Console) -> None:
    """Show the code in the record; in a terminal, ask for confirmation to run it."""
    code = whose(record.manifest)
    console.print(f"This record contains Python code: {code}.", markup=False)
    if sys.stdin.isatty() and not Confirm.ask(
        "Run it with your permissions?", console=console, default=False
    ):
        raise RecordError(
            f"record {record.folder}",
            expected="confirmation to run its code",
            came="a refusal",
            cure="Pass your own rig file with `--rig`. No code was run.",
        )
