"""`concur track`: the main job from a task file to a report."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.animation import FFMpegWriter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from concur.cli._facts import run_attributes, task_facts, task_settings
from concur.cli._tables import (
    applicable,
    audit_dict,
    audit_table,
    findings_table,
    show_warnings,
)
from concur.control import Servo
from concur.errors import ConcurError, DescriptionError, SimulationError, UnknownNameError
from concur.formats import Task, load_task
from concur.mechanism._inertia_lint import suspicious_inertias
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
    servo : Servo
        Its servo.
    audit : Audit
        Its assumptions.
    findings : tuple of Finding
        Numbers of the run; empty when an assumption failed.
    stopped : str
        Why the run ended early; empty otherwise.
    files : tuple of pathlib.Path
        What was written.
    warnings : tuple of str
        What of the robot is possible but looks like a slip.
    """

    task: Task
    servo: Servo
    audit: Audit
    findings: tuple[Finding, ...]
    stopped: str
    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()

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
            Verdict, settings, warnings, assumptions, numbers and files.
        """
        return {
            "task": self.task.name,
            "passed": self.passed,
            "stopped": self.stopped,
            "settings": task_settings(self.task, self.servo),
            "warnings": list(self.warnings),
            "audit": audit_dict(self.audit),
            "findings": [
                {
                    "label": f.label,
                    "value": f.value,
                    "unit": f.unit,
                    "limit": f.limit,
                    "kept": f.holds,
                    "note": f.note,
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
        If an option cannot be met, or the task cannot be read or built: all before anything is
        simulated.
    """
    started = time.perf_counter()
    _check_animation(animation)
    task = load_task(path)
    servo = task.servo()
    _check_folder(folder)
    model = servo.model
    facts = f"{task.robot.name}, {model.kind} reduction: {model.reason}"
    console.print(f"[bold]{escape(task.name)}[/]: {escape(facts)}", highlight=False)
    console.print(escape(f"{model.ns} shape velocities: {', '.join(model.shape_names)}"))
    for label, value in task_facts(task, servo)[1:]:
        console.print(escape(f"{label}: {value}"), highlight=False)
    warnings = suspicious_inertias(task.robot)
    if task.plant is not None:
        warnings += tuple(f"plant, {text}" for text in suspicious_inertias(task.plant))
    show_warnings(warnings, console)
    audit = servo.audit(task.reference, task.duration, task.q0)
    console.print(audit_table(audit))
    if not audit.holds:
        why = "; ".join(f"{row.id}: {row.why}" for row in audit.failures)
        console.print(f"[bold red]not simulated[/]: an assumption fails. {escape(why)}")
        return TrackResult(task, servo, audit, (), f"an assumption fails: {why}", (), warnings)

    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    stopped = ""
    total = bar.add_task("simulating", total=1.0)
    with ExitStack() as shown:

        def show(part: float) -> None:
            # Not before something moves: an error at the start would leave a stray bar behind.
            if not bar.live.is_started:
                shown.enter_context(bar)
            bar.update(total, completed=part)

        try:
            run = task.simulate(servo, show)
        except SimulationError as error:
            if "run" not in error.data:  # nothing was simulated: the task is at fault
                raise
            run, stopped = error.run, _stop(error)
        files, found = _write(task, run, audit, stopped, folder, animation, bar, started)
    console.print(findings_table(task.name, found))
    if stopped:
        console.print(f"[bold red]stopped early[/]: {escape(stopped)}")
    if run.plant_differences:
        listed = ", ".join(run.plant_differences)
        console.print(escape(f"the plant differs from the servo's model: {listed}"))
    result = TrackResult(task, servo, audit, found, stopped, files, warnings)
    verdict = "[bold green]passed[/]" if result.passed else "[bold red]failed[/]"
    console.print(f"{verdict}: results in {folder}, start with {folder / 'report.html'}")
    return result


def _check_animation(animation: str | None) -> None:
    if animation not in (None, *ANIMATIONS):
        raise UnknownNameError(
            "option `--animation`",
            expected=" or ".join(f".{suffix}" for suffix in ANIMATIONS),
            came=repr(animation),
            cure="Write --animation gif.",
        )
    if animation == "mp4" and not FFMpegWriter.isAvailable():
        raise ConcurError(
            "option `--animation`",
            expected="the program ffmpeg on the search path, to write .mp4",
            came="no ffmpeg",
            cure="Install ffmpeg, or write --animation gif.",
        )


def _check_folder(folder: Path) -> None:
    """Try whether results can be written, and leave nothing behind."""
    missing = [this for this in (folder, *folder.parents) if not this.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DescriptionError(
            f"option `--out`, {folder}",
            expected="a folder that can be written",
            came=error.strerror or str(error),
            cure="Name another folder.",
        ) from error
    finally:
        for this in missing:
            if this.is_dir():
                this.rmdir()


def _stop(error: SimulationError) -> str:
    """Say why a run ended early, to someone who reads a report."""
    return (
        f"{error.where}: expected {error.expected}, got {error.came}. run.h5 and report.html hold "
        "the run up to there. Start nearer to the reference, keep it away from such "
        "configurations, or lower the gains."
    )


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
    files = [run.save(folder / "run.h5", run_attributes(task)), *figures.values()]
    found = run.findings(task.tolerances)
    rows = [(f.label, f.shown, f.shown_limit, f.holds) for f in found]
    if stopped:
        rows.insert(0, ("stopped early", stopped, "", False))
    facts = task_facts(task, run.servo)
    files.append(write_report(run, rows, applicable(audit), figures, folder, task.name, facts))
    bar.update(work, total=1, completed=1)
    if animation is not None:
        film = bar.add_task("animating", total=1.0)
        target = folder / f"animation.{animation}"
        files.append(animate(run, target, progress=lambda k, n: bar.update(film, completed=k / n)))
    taken = Finding("time taken in all", time.perf_counter() - started, "s")
    return tuple(files), (*found, taken)
