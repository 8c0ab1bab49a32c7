"""`concur track`: simulation of a task file, with figures and a report."""

from __future__ import annotations

import math
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.animation import FFMpegWriter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from concur.cli._answer import answer
from concur.cli._facts import run_attributes, task_facts, task_settings
from concur.cli._mismatch import felt_mismatch, mismatch_dict, mismatch_text
from concur.cli._results import Results, results
from concur.cli._tables import (
    applicable,
    audit_dict,
    findings_table,
    show_audit,
    show_warnings,
)
from concur.cli._warnings import task_warnings
from concur.control import Servo
from concur.errors import (
    ConcurError,
    SimulationError,
    SingularConfigurationError,
    UnknownNameError,
)
from concur.formats import Task, load_task
from concur.plotting import animate, save_figures, write_report
from concur.reduction import Audit
from concur.simulation import Finding, Run

ANIMATIONS = ("gif", "mp4")
REQUIREMENT = "requirement "
MISMATCH = "The plant's momentum differs from the one the servo assumes"


@dataclass(frozen=True)
class TrackResult:
    """Result of tracking a task."""

    task: Task
    servo: Servo
    audit: Audit
    findings: tuple[Finding, ...]  # empty when nothing was simulated
    stopped: str  # why the run ended early, or did not start
    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()
    forced: bool = False
    mismatch: dict[str, Any] | None = None  # None if it is without effect

    @property
    def missed(self) -> str:
        """Labels of the exceeded limits, separated by semicolons."""
        return "; ".join(finding.label for finding in self.findings if finding.holds is False)

    @property
    def passed(self) -> bool:
        """Whether the assumptions hold and the run is within its limits."""
        kept = all(finding.holds is not False for finding in self.findings)
        return self.audit.holds and kept and bool(self.findings) and not self.stopped

    @property
    def status(self) -> str:
        """Outcome in one word, as in the manifest of the results."""
        if self.passed:
            return "passed"
        if self.stopped:
            return "partial" if self.findings else "refused"
        return "failed"

    @property
    def problems(self) -> tuple[str, ...]:
        """Each reason why the task is not passed, in a sentence."""
        failures = (f"{row.id}: {row.why}" for row in self.audit.failures)
        missed = (
            f"{f.label}: {f.shown}, limit {f.shown_limit}"
            for f in self.findings
            if f.holds is False
        )
        stopped = [self.stopped] if self.stopped and self.audit.holds else []
        return (*failures, *stopped, *missed)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        return answer(
            "track",
            self.passed,
            self.status,
            name=self.task.name,
            robot=self.task.robot.name,
            problems=self.problems,
            warnings=self.warnings,
            files=self.files,
            task=self.task.name,
            stopped=self.stopped,
            forced=self.forced,
            settings=task_settings(self.task, self.servo),
            audit=audit_dict(self.audit),
            findings=[
                {
                    "label": f.label,
                    "value": f.value,
                    "unit": f.unit,
                    "limit": f.limit,
                    "at_least": f.at_least,
                    "kept": f.holds,
                    "note": f.note,
                    "numerical": f.numerical,
                }
                for f in self.findings
            ],
            requirements=[
                {
                    "name": f.label.removeprefix(REQUIREMENT),
                    "robustness": f.value,
                    "unit": f.unit,
                    "holds": f.holds,
                }
                for f in self.findings
                if f.label.startswith(REQUIREMENT)
            ],
            mismatch=self.mismatch,
        )


def track_task(
    path: Path,
    folder: Path,
    animation: str | None,
    console: Console,
    force: bool = False,
    overwrite: bool = False,
    every: bool = False,
) -> TrackResult:
    """Run a task and write its results into a folder.

    Errors of options and of the task are raised before the simulation. With `every` the audit is
    printed in full, otherwise its failures.
    """
    with results(folder, "track", overwrite) as kept:
        result = _tracked(path, kept, animation, console, force, every)
        simulated = bool(result.findings)
        kept.end(result.status, result.stopped or result.missed)
        if not simulated:
            return result
    return replace(result, files=(*result.files, kept.manifest))


def _tracked(
    path: Path,
    kept: Results,
    animation: str | None,
    console: Console,
    force: bool,
    every: bool,
) -> TrackResult:
    started = time.perf_counter()
    _check_animation(animation)
    task = load_task(path)
    # Before checks that may reject the task: a wrong unit may be the cause.
    warnings = task_warnings(task)
    show_warnings(warnings, console)
    servo = task.servo
    audit = servo.audit(task.reference, task.duration, task.q0)
    forced = force and not audit.holds
    why = "; ".join(f"{row.id}: {row.why}" for row in audit.failures)
    if not audit.holds and not force:
        console.print(f"[bold red]not simulated[/]: an assumption fails. {escape(why)}")
        show_audit(audit, console, every)
        _show_settings(task, servo, console)
        console.print("To simulate anyway: --force")
        return TrackResult(task, servo, audit, (), f"an assumption fails: {why}", (), warnings)
    if forced:
        console.print(f"[bold yellow]simulated although an assumption fails[/]: {escape(why)}")

    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console,
    )  # fmt: skip
    stopped = ""
    total = bar.add_task("simulating", total=1.0)
    with ExitStack() as shown:

        def show(part: float) -> None:
            # Start the bar with the first progress: an error at the start would leave it on screen.
            if not bar.live.is_started:
                shown.enter_context(bar)
            bar.update(total, completed=part)

        try:
            run = task.simulate(servo, show)
        except SimulationError as error:
            if "run" not in error.data:  # nothing was simulated: the error is in the task
                raise
            run, stopped = error.run, _stop(error)
        except KeyboardInterrupt as error:
            if not hasattr(error, "run"):  # before the first steps
                raise
            run = error.run
            stopped = f"interrupted at t = {run.t[-1]:.6g} s of {task.duration:g} s. {_KEPT}"
            console.print("[bold red]interrupted[/]: writing the run so far")
        except SingularConfigurationError as error:
            if not forced:
                raise
            stopped = f"an assumption fails: {why}. {error}"
            console.print(f"[bold red]cannot be simulated[/]: {escape(str(error))}")
            return TrackResult(task, servo, audit, (), stopped, (), warnings, forced)
        files, found = _write(task, run, audit, stopped, kept, animation, bar, started)
    wrong = felt_mismatch(run)
    mismatch = mismatch_dict(run, wrong)
    result = TrackResult(task, servo, audit, found, stopped, files, warnings, forced, mismatch)
    verdict = "[bold green]passed[/]" if result.passed else "[bold red]failed[/]"
    if forced:
        failed = ", ".join(row.id for row in audit.failures)
        verdict += escape(f" (assumptions that fail: {failed})")
    if result.missed:
        verdict += escape(f" (limits missed: {result.missed})")
    if not stopped:
        verdict += f", ran to its end at {run.t[-1]:g} s"
    console.print(f"[bold]{escape(task.name)}[/]: {verdict}", highlight=False)
    if stopped:
        console.print(f"[bold red]stopped early[/]: {escape(stopped)}")
    console.print(findings_table("", found))
    show_audit(audit, console, every)
    if run.plant_differences:
        listed = ", ".join(run.plant_differences)
        console.print(escape(f"the plant differs from the servo's model: {listed}"))
    if wrong is not None:
        console.print(f"[bold yellow]{MISMATCH}[/]:")
        text = mismatch_text(run, wrong)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    _show_settings(task, servo, console)
    console.print(f"results in {kept.folder}, start with {kept.folder / 'report.html'}")
    return result


def _show_settings(task: Task, servo: Servo, console: Console) -> None:
    """Print the reduction of the robot and the settings of the run."""
    model = servo.model
    lines = [
        f"{task.robot.name}, {model.kind} reduction: {model.reason}",
        f"{model.ns} shape velocities: {', '.join(model.shape_names)}",
        *(f"{label}: {value}" for label, value in task_facts(task, servo)[1:]),
    ]
    console.print(escape("\n".join(lines)), highlight=False)


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
) -> tuple[tuple[Path, ...], tuple[Finding, ...]]:
    """Write run, figures, report and animation; return them with the numbers."""
    # Numbers before figures: after a failure or an interruption the run remains.
    kept.publish(
        [_saved(run, kept.staging / "run.h5", {**run_attributes(task), "stopped": stopped})]
    )
    work = bar.add_task("drawing", total=None)
    figures = save_figures(run, kept.staging, _required_controls(task))
    found = (*_required(task, run), *run.findings(task.tolerances))
    facts = task_facts(task, run.servo)
    wrong = felt_mismatch(run)
    warnings = task_warnings(task)
    notes = [("Warnings", "\n".join(warnings))] if warnings else []
    notes += [] if wrong is None else [(MISMATCH, mismatch_text(run, wrong))]
    checked = applicable(audit)
    page = write_report(
        run, found, checked, figures, kept.staging, task.name, facts, notes, stopped
    )
    kept.publish([*figures.values(), page])
    bar.update(work, total=1, completed=1)
    if animation is not None:
        film = bar.add_task("animating", total=1.0)
        target = kept.staging / f"animation.{animation}"
        animate(run, target, progress=lambda k, n: bar.update(film, completed=k / n))
        kept.publish([target])
    taken = Finding("time taken in all", time.perf_counter() - started, "s", numerical=True)
    return tuple(kept.files), (*found, taken)


def _required_controls(task: Task) -> dict[str, float]:
    """Largest sizes of controls that the task requires, by name."""
    found: dict[str, float] = {}
    for made in task.requirements if task.states_requirements else ():
        for signal, low, high in made.bounds:
            kind, _, name = signal.partition(":")
            if kind == "torque":
                found[name] = min(found.get(name, math.inf), -low, high)
    return found


def _required(task: Task, run: Run) -> list[Finding]:
    """Robustness of the requirements that the task states, or that its campaign has."""
    if not task.states_requirements and task.world is None:
        return []  # the findings contain all tolerances and limits
    units = {made.name: made.unit for made in task.requirements}
    return [
        # Zero does not hold: the smallest float does.
        Finding(
            REQUIREMENT + name,
            value,
            units[name],
            0.0,
            at_least=True,
            note="robustness",
            slack=-math.ulp(0.0),
        )
        for name, value in task.robustness(run).items()
    ]


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
