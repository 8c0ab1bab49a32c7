"""`concur track`: simulation of a task file, with figures and a report."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.animation import FFMpegWriter
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from concur.cli._answer import Answer
from concur.cli._facts import run_attributes, task_facts, task_settings
from concur.cli._mismatch import felt_mismatch, mismatch_dict, mismatch_text
from concur.cli._results import Results, results
from concur.cli._tables import applicable, audit_dict, shown_audit, warned
from concur.cli._warnings import task_warnings
from concur.control import MomentumMismatch, TrackingLaw
from concur.errors import (
    ConcurError,
    SimulationError,
    SingularConfigurationError,
    UnknownNameError,
)
from concur.io import Task, load_task
from concur.reduction import Audit
from concur.results import Row
from concur.show import animate, save_figures, write_report
from concur.simulation import Run

ANIMATIONS = ("gif", "mp4")
MISMATCH = "The plant's momentum differs from the one the servo assumes"


@dataclass(frozen=True)
class Tracked:
    """What `concur track` found."""

    task: Task
    servo: TrackingLaw
    audit: Audit
    warnings: tuple[str, ...]
    forced: bool
    findings: tuple[Row, ...] = ()  # empty when nothing was simulated
    stopped: str = ""  # why the run ended early, or did not start
    files: tuple[Path, ...] = ()
    run: Run | None = None

    @property
    def missed(self) -> list[Row]:
        """Numbers beyond their limits."""
        return [finding for finding in self.findings if finding.holds is False]

    @property
    def status(self) -> str:
        """Outcome in one word, as in the manifest of the results."""
        if self.stopped:
            return "partial" if self.findings else "refused"
        return "passed" if self.audit.holds and self.findings and not self.missed else "failed"

    @property
    def why(self) -> str:
        """Assumptions that fail, with their evidence."""
        return "; ".join(f"{row.id}: {row.why}" for row in self.audit.failures)

    def answer(self, folder: Path, every: bool) -> Answer:
        """Answer of the command; `every` prints all assumptions."""
        failures = [f"{row.id}: {row.why}" for row in self.audit.failures]
        wrong = None if self.run is None else felt_mismatch(self.run)
        return Answer(
            command="track",
            passed=self.status == "passed",
            status=self.status,
            name=self.task.name,
            robot=self.task.robot.name,
            problems=[
                *failures,
                *([self.stopped] if self.stopped and self.audit.holds else []),
                *(f"{f.quantity}: {f.shown}, limit {f.shown_limit}" for f in self.missed),
            ],
            warnings=self.warnings,
            files=self.files,
            rows=self.findings,
            own={
                "task": self.task.name,
                "stopped": self.stopped,
                "forced": self.forced,
                "settings": task_settings(self.task, self.servo),
                "audit": audit_dict(self.audit),
                "mismatch": None if self.run is None else mismatch_dict(self.run, wrong),
            },
            verdict=self._verdict,
            shown=self._shown(folder, wrong, every),
        )

    @property
    def _verdict(self) -> str:
        """Verdict, with the assumptions and limits that fail."""
        if not self.findings:
            how = "cannot be simulated" if self.forced else "not simulated"
            return f"{how}: {self.stopped}"
        found = "passed" if self.status == "passed" else "failed"
        if self.forced:
            failed = ", ".join(row.id for row in self.audit.failures)
            found += f" (simulated although assumptions fail: {failed})"
        if self.missed:
            found += f" (limits missed: {'; '.join(f.quantity for f in self.missed)})"
        if self.stopped or self.run is None:
            return f"{found}, stopped early: {self.stopped}"
        return f"{found}, ran to its end at {self.run.t[-1]:g} s"

    def _shown(
        self, folder: Path, wrong: MomentumMismatch | None, every: bool
    ) -> list[str | Table]:
        """Audit, plant and settings for the terminal."""
        task, model = self.task, self.servo.model
        lines = shown_audit(self.audit, every)
        if self.run is not None and self.run.plant_differences:
            listed = ", ".join(self.run.plant_differences)
            lines.append(f"the plant differs from the servo's model: {listed}")
        if self.run is not None and wrong is not None:
            lines += [f"{MISMATCH}:", mismatch_text(self.run, wrong)]
        lines += [
            f"{task.robot.name}, {model.kind} reduction: {model.reason}",
            f"{model.ns} shape velocities: {', '.join(model.shape_names)}",
            *(f"{label}: {value}" for label, value in task_facts(task, self.servo)[1:]),
        ]
        if self.findings:
            return [*lines, f"results in {folder}, start with {folder / 'report.html'}"]
        return lines if self.forced else [*lines, "To simulate anyway: --force"]


def track_task(
    path: Path,
    folder: Path,
    animation: str | None,
    console: Console,
    force: bool = False,
    overwrite: bool = False,
    every: bool = False,
) -> Answer:
    """Run a task and write its results into a folder.

    Errors of options and of the task are raised before the simulation. With `every` the audit is
    printed in full, otherwise its failures.
    """
    with results(folder, "track", overwrite) as kept:
        found = _tracked(path, kept, animation, console, force)
        missed = "; ".join(row.quantity for row in found.missed)
        kept.end(found.status, found.stopped or missed)
    if found.findings:
        found = replace(found, files=(*found.files, kept.manifest))
    return found.answer(folder, every)


def _tracked(
    path: Path, kept: Results, animation: str | None, console: Console, force: bool
) -> Tracked:
    started = time.perf_counter()
    _check_animation(animation)
    task = load_task(path)
    warnings = task_warnings(task)
    with warned(warnings, console):
        servo = task.law
        audit = servo.audit(task.reference, task.duration, task.q0)
        result = Tracked(task, servo, audit, warnings, force and not audit.holds)
        refusal = f"an assumption fails: {result.why}"
        if not audit.holds and not force:
            return replace(result, stopped=refusal)
        bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            console=console,
        )  # fmt: skip
        with ExitStack() as shown:
            try:
                run, stopped = _simulated(task, servo, bar, shown, console)
            except SingularConfigurationError as error:
                if not result.forced:
                    raise
                return replace(result, stopped=f"{refusal}. {error}")
            files, found = _write(task, run, audit, stopped, kept, animation, bar, started)
        return replace(result, findings=found, stopped=stopped, files=files, run=run)


def _simulated(
    task: Task, servo: TrackingLaw, bar: Progress, shown: ExitStack, console: Console
) -> tuple[Run, str]:
    """Simulate a task; the run, and why it ended early."""
    total = bar.add_task("simulating", total=1.0)

    def show(part: float) -> None:
        # Start the bar with the first progress: an error at the start would leave it on screen.
        if not bar.live.is_started:
            shown.enter_context(bar)
        bar.update(total, completed=part)

    try:
        return task.simulate(servo, show), ""
    except SimulationError as error:
        if "run" not in error.data:  # nothing was simulated: the error is in the task
            raise
        return error.run, _stop(error)
    except KeyboardInterrupt as error:
        if not hasattr(error, "run"):  # before the first steps
            raise
        console.print("[bold red]interrupted[/]: writing the run so far")
        end = f"{error.run.t[-1]:.6g} s of {task.duration:g} s"
        return error.run, f"interrupted at t = {end}. {_KEPT}"


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


_KEPT = "run.h5 and report.html contain the run up to that time."


def _stop(error: SimulationError) -> str:
    """Reason for a report why a run ended early."""
    return (
        f"{error.where}: expected {error.expected}, got {error.came}. {_KEPT} Start closer to the "
        "reference, keep it away from such configurations, or lower the gains."
    )


def _write(
    task: Task,
    run: Run,
    audit: Audit,
    stopped: str,
    kept: Results,
    animation: str | None,
    bar: Progress,
    started: float,
) -> tuple[tuple[Path, ...], tuple[Row, ...]]:
    """Write run, figures, report and animation; return them with the numbers."""
    # Numbers before figures: after a failure or an interruption the run remains.
    kept.publish(
        [_saved(run, kept.staging / "run.h5", {**run_attributes(task), "stopped": stopped})]
    )
    work = bar.add_task("drawing", total=None)
    figures = save_figures(run, kept.staging, task)
    found = run.rows
    ended = [Row("stopped early", stopped, holds=False)] if stopped else []
    facts = task_facts(task, run.servo)
    wrong = felt_mismatch(run)
    warnings = task_warnings(task)
    notes = [("Warnings", "\n".join(warnings))] if warnings else []
    notes += [] if wrong is None else [(MISMATCH, mismatch_text(run, wrong))]
    checked = applicable(audit)
    page = write_report(
        run, [*ended, *found], checked, figures, kept.staging, task.name, facts, notes
    )
    kept.publish([*figures.values(), page])
    bar.update(work, total=1, completed=1)
    if animation is not None:
        film = bar.add_task("animating", total=1.0)
        target = kept.staging / f"animation.{animation}"
        animate(run, target, progress=lambda k, n: bar.update(film, completed=k / n))
        kept.publish([target])
    taken = Row("time taken in all", time.perf_counter() - started, unit="s", numerical=True)
    return tuple(kept.files), (*found, taken)


def _saved(run: Run, target: Path, facts: dict[str, str | float]) -> Path:
    """Save a run; if its folder is full, in the system's folder for temporary files."""
    try:
        return run.save(target, facts)
    except ConcurError as error:
        with suppress(ConcurError, OSError):
            rescued = run.save(Path(tempfile.mkdtemp(prefix="concur-")) / "run.h5", facts)
            error = type(error)(
                error.where,
                expected=error.expected,
                came=error.came,
                cure=f"Move the run, which was saved to {rescued}, before you start again.",
            )
        raise error from None
