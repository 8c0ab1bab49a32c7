"""`concur compare`: tasks and recorded runs in one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.cli._answer import Answer
from concur.errors import ConcurError, DescriptionError, SimulationError
from concur.files import writing
from concur.io import load_task
from concur.simulation import Comparison, RunRecord, compare
from concur.stored import is_run, read_run


def compare_runs(subjects: Sequence[str], figure: Path | None, console: Console) -> Answer:
    """Simulate tasks, read recorded runs, and compare them; write the figure if it has a name."""
    runs = []
    for subject in subjects:
        with console.status(f"{escape(subject)}"):
            runs.append(read_run(subject) if is_run(subject) else _simulated(subject))
    names = [run.name for run in runs]
    if len(set(names)) < len(names):  # two tasks of one name
        names = [
            f"{name} ({Path(subject).name})" for name, subject in zip(names, subjects, strict=True)
        ]
    found = compare(runs, names)
    if figure is not None:
        _draw(found, figure)
    return Answer(
        command="compare",
        passed=not found.problems,
        status=found.status,
        name=", ".join(found.names),
        robot=", ".join(dict.fromkeys(run.robot.name for run in runs)),
        problems=found.problems,
        files=(figure,) if figure else (),
        rows=found.rows,
        own={"runs": list(found.names), "table": _rows(found)},
        table=_table(found),
        shown=[note for note in found.notes if note not in found.broken],
    )


def _simulated(subject: str) -> RunRecord:
    """Run of a task, as far as it came."""
    if Path(subject).suffix != ".toml":
        raise DescriptionError(
            subject,
            expected="a task file (.toml), a recorded run (.h5) or the folder of one",
            came="another name",
            cure="Write for example: concur compare examples/rover_arm.toml out/rover_arm/run.h5.",
        )
    task = load_task(subject)
    stopped = ""
    try:
        run = task.simulate()
    except SimulationError as error:
        if "run" not in error.data:
            raise
        run, stopped = error.run, f"{error.where}: expected {error.expected}, got {error.came}"
    return replace(RunRecord.of(run), name=task.name, stopped=stopped)


def _draw(found: Comparison, figure: Path) -> None:
    with writing(figure.parent):
        try:
            found.plot().savefig(figure, dpi=130)
        except ValueError as problem:
            raise ConcurError(
                f"option `--figure`, {figure}",
                expected="a name in a format of Matplotlib, such as .png or .svg",
                came=str(problem),
                cure="Write for example --figure comparison.png.",
            ) from None


def _rows(found: Comparison) -> list[dict[str, object]]:
    """Rows for JSON; a value without meaning, or a time that did not come, is null."""
    return [
        {
            "label": row.label,
            "unit": row.unit,
            "values": [x if x is not None and math.isfinite(x) else None for x in row.values],
            "shown": list(row.shown),
        }
        for row in found.table
    ]


def _table(found: Comparison) -> Table:
    table = Table()
    table.add_column("", no_wrap=True)
    for name in found.names:
        table.add_column(escape(name), justify="right")
    table.add_column("unit")
    for row in found.table:
        table.add_row(escape(row.label), *row.shown, row.unit)
    return table
