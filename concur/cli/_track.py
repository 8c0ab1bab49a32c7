"""`concur track`: the main job from a task file to a report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from concur.cli._tables import audit_dict, audit_table, findings_table
from concur.errors import SimulationError, UnknownNameError
from concur.formats import Task, load_task
from concur.plotting import animate, save_figures, write_report
from concur.reduction import Audit
from concur.simulation import Finding, Run

ANIMATIONS = ("gif", "mp4")


@dataclass(frozen=True)
class TrackResult:
    """Verdict on a task.

    Parameters
    ----------
    task : Task
        The task.
    audit : Audit
        Its assumptions.
    findings : tuple of Finding
        Numbers of the run; empty when an assumption failed.
    stopped : str
        Why the run ended early; empty otherwise.
    files : tuple of pathlib.Path
        What was written.
    """

    task: Task
    audit: Audit
    findings: tuple[Finding, ...]
    stopped: str
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        """Whether the assumptions hold and the run kept its limits."""
        kept = all(finding.holds is not False for finding in self.findings)
        return self.audit.holds and kept and bool(self.findings) and not self.stopped

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Verdict, assumptions, numbers and files.
        """
        return {
            "task": self.task.name,
            "passed": self.passed,
            "stopped": self.stopped,
            "audit": audit_dict(self.audit),
            "findings": [
                {
                    "label": f.label,
                    "value": f.value,
                    "unit": f.unit,
                    "limit": f.limit,
                    "kept": f.holds,
                }
                for f in self.findings
            ],
            "files": [str(path) for path in self.files],
        }


def track_task(path: Path, folder: Path, animation: str | None, console: Console) -> TrackResult:
    """Run a task and write what it leaves behind.

    Parameters
    ----------
    path : pathlib.Path
        Task file.
    folder : pathlib.Path
        Where the results go; made if it is missing.
    animation : str or None
        "gif" or "mp4" to write a moving picture.
    console : rich.console.Console
        For tables and progress.

    Returns
    -------
    TrackResult
        Verdict, numbers and files.

    Raises
    ------
    ConcurError
        If the task cannot be read or built.
    """
    started = time.perf_counter()
    if animation not in (None, *ANIMATIONS):
        raise UnknownNameError(
            "option `--animation`",
            expected=" or ".join(f".{suffix}" for suffix in ANIMATIONS),
            came=repr(animation),
            cure="Write --animation gif.",
        )
    task = load_task(path)
    servo = task.servo()
    model = servo.model
    facts = f"{task.robot.name}, {model.kind} reduction: {model.reason}"
    console.print(f"[bold]{escape(task.name)}[/]: {escape(facts)}", highlight=False)
    console.print(escape(f"{model.ns} shape velocities: {', '.join(model.shape_names)}"))
    audit = servo.audit(task.reference, task.duration, task.q0)
    console.print(audit_table(audit))
    if not audit.holds:
        why = "; ".join(f"{row.id}: {row.why}" for row in audit.failures)
        console.print(f"[bold red]not simulated[/]: an assumption fails. {escape(why)}")
        return TrackResult(task, audit, (), f"an assumption fails: {why}", ())

    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    stopped = ""
    with bar:
        total = bar.add_task("simulating", total=1.0)
        try:
            run = task.simulate(servo, lambda part: bar.update(total, completed=part))
        except SimulationError as error:
            if "run" not in error.data:  # nothing was simulated: the task is at fault
                raise
            run, stopped = error.run, str(error)
        files, found = _write(task, run, audit, stopped, folder, animation, bar, started)
    console.print(findings_table(task.name, found))
    if stopped:
        console.print(f"[bold red]stopped early[/]: {escape(stopped)}")
    result = TrackResult(task, audit, found, stopped, files)
    verdict = "[bold green]passed[/]" if result.passed else "[bold red]failed[/]"
    console.print(f"{verdict}: results in {folder}, start with {folder / 'report.html'}")
    return result


def _write(
    task: Task,
    run: Run,
    audit: Audit,
    stopped: str,
    folder: Path,
    animation: str | None,
    bar: Progress,
    started: float,
) -> tuple[tuple[Path, ...], tuple[Finding, ...]]:
    """Write run, figures, report and animation; return them with the numbers."""
    work = bar.add_task("drawing", total=None)
    figures = save_figures(run, folder)
    files = [run.save(folder / "run.h5"), *figures.values()]
    found = run.findings(task.tolerances)
    rows = [(f.label, f.shown, f.shown_limit, f.holds) for f in found]
    if stopped:
        rows.insert(0, ("stopped early", stopped, "", False))
    files.append(write_report(run, rows, audit, figures, folder))
    bar.update(work, total=1, completed=1)
    if animation is not None:
        film = bar.add_task("animating", total=1.0)
        target = folder / f"animation.{animation}"
        files.append(animate(run, target, progress=lambda k, n: bar.update(film, completed=k / n)))
    taken = Finding("time taken in all", time.perf_counter() - started, "s")
    return tuple(files), (*found, taken)
