"""`concur compare`: tasks and recorded runs in one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.cli._answer import answer
from concur.cli._recorded import is_run, read_recorded
from concur.control import JointLimits
from concur.errors import ConcurError, DescriptionError, SimulationError
from concur.files import writing
from concur.formats import load_task
from concur.simulation import Comparison, Run, RunRecord, compare

ARRAYS = ("t", "q", "v", "u", "error", "margin", "q_range", "v_range", "u_range")


@dataclass(frozen=True, eq=False)
class CompareResult:
    """Comparison of tasks and recorded runs."""

    comparison: Comparison
    stopped: tuple[str, ...]  # runs that ended early, with the reason
    files: tuple[Path, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Runs that ended early and limits of joints that are broken, in sentences."""
        return (*self.stopped, *self.comparison.broken)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON; a value without meaning, or a time that did not come, is null."""
        names, robots = self.comparison.names, [run.robot.name for run in self.comparison.runs]
        passed = not self.problems
        return answer(
            "compare",
            passed,
            "passed" if passed else "failed",
            name=", ".join(names),
            robot=", ".join(dict.fromkeys(robots)),
            problems=self.problems,
            files=self.files,
            runs=list(names),
            rows=[
                {
                    "label": row.label,
                    "unit": row.unit,
                    "values": [
                        None if value is None or not math.isfinite(value) else value
                        for value in row.values
                    ],
                    "shown": list(row.shown),
                }
                for row in self.comparison.rows
            ],
        )

    def show(self, console: Console) -> None:
        """Print the table and what is noted below it."""
        table = Table()
        table.add_column("", no_wrap=True)
        for name in self.comparison.names:
            table.add_column(escape(name), justify="right")
        table.add_column("unit")
        for row in self.comparison.rows:
            table.add_row(escape(row.label), *row.shown, row.unit)
        console.print(table)
        for text in (*self.stopped, *self.comparison.notes):
            console.print(escape(text), highlight=False)
        for path in self.files:
            console.print(f"figure in {escape(str(path))}", highlight=False)


def compare_runs(subjects: Sequence[str], figure: Path | None, console: Console) -> CompareResult:
    """Simulate tasks, read recorded runs, and compare them; write the figure if it has a name."""
    runs: list[Run | RunRecord] = []
    names, reasons = [], []
    for subject in subjects:
        with console.status(f"{escape(subject)}"):
            run, name, stopped = _recorded(subject) if is_run(subject) else _simulated(subject)
        runs.append(run)
        names.append(name)
        reasons.append(stopped)
    if len(set(names)) < len(names):  # two tasks of one name
        names = [
            f"{name} ({Path(subject).name})" for name, subject in zip(names, subjects, strict=True)
        ]
    comparison = compare(runs, names)
    if figure is not None:
        with writing(figure.parent):
            try:
                comparison.plot().savefig(figure, dpi=130)
            except ValueError as problem:
                raise ConcurError(
                    f"option `--figure`, {figure}",
                    expected="a name in a format of Matplotlib, such as .png or .svg",
                    came=str(problem),
                    cure="Write for example --figure comparison.png.",
                ) from None
    ended = tuple(
        f"{name} ended early: {reason}"
        for name, reason in zip(comparison.names, reasons, strict=True)
        if reason
    )
    return CompareResult(comparison, ended, (figure,) if figure else ())


def _simulated(subject: str) -> tuple[Run, str, str]:
    """Run of a task, its name, and why it ended early."""
    if Path(subject).suffix != ".toml":
        raise DescriptionError(
            subject,
            expected="a task file (.toml), a recorded run (.h5) or the folder of one",
            came="another name",
            cure="Write for example: concur compare examples/rover_arm.toml out/rover_arm/run.h5.",
        )
    task = load_task(subject)
    try:
        return task.simulate(), task.name, ""
    except SimulationError as error:
        if "run" not in error.data:
            raise
        return error.run, task.name, f"{error.where}: expected {error.expected}, got {error.came}"


def _recorded(subject: str) -> tuple[RunRecord, str, str]:
    """Recorded run, the name of its task, and why it ended early."""
    found = read_recorded(subject, ARRAYS)
    limits = JointLimits.of(found.robot)
    run = RunRecord(robot=found.robot, outputs=found.outputs, joint_limits=limits, **found.arrays)
    return run, found.name, found.stopped
