"""`concur track`: simulation of a task file, with figures and a report."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur.cli._answer import Answer, Reply
from concur.cli._app import ListAudit, Out, Overwrite, TaskFile, command
from concur.cli._folder import Results, results
from concur.cli._options import held, listed, one_of
from concur.errors import ConcurError, SimulationError, SingularConfigurationError
from concur.results import Row, picked

if TYPE_CHECKING:
    from concur.io import Task
    from concur.reduction import Audit
    from concur.simulation import Run

MISMATCH = "The plant's momentum differs from the one the servo assumes"
KEPT = "run.h5 and report.html contain the run up to that time."


@command(
    "Track and compare",
    "simulate a task; figures, run and report",
    "concur track examples/rover_arm.toml --out out/rover_arm",
)
def track(
    reply: Reply,
    task: TaskFile,
    out: Out = None,
    animation: str | None = None,
    force: bool = False,
    overwrite: Overwrite = False,
    audit: ListAudit = False,
) -> Answer:
    """Simulate a tracking task; write figures, run and report.

    The assumptions are audited first, then the servo is simulated on the full-order plant. The exit
    status is 0 only if all assumptions hold and the run is within the task's tolerances and the
    limits of the robot's joints. The folder then belongs to this run: results of an earlier run
    are removed when it starts.

    Parameters
    ----------
    animation : str, optional
        Also write an animation: gif, or mp4 if ffmpeg is installed.
    force : bool
        Simulate although an assumption fails; the verdict stays failed, exit status 1.
    """
    from concur.io import load_task, suspicious_task
    from concur.robot import Mechanism
    from concur.show.animation import require_ffmpeg

    folder, began = out or Path("out") / task.stem, time.perf_counter()
    with results(folder, "track", overwrite) as kept:
        one_of("animation", animation, ("gif", "mp4"))
        if animation == "mp4":
            require_ffmpeg("option `--animation`")
        given = load_task(task)
        warnings = suspicious_task(given)
        with reply.warned(warnings):
            along = given.reference, given.duration, given.q0
            checked = given.law.audit(*(along if isinstance(given.robot, Mechanism) else ()))
            run, stopped = None, ""
            if not checked.holds:
                why = "; ".join(f"{row.id}: {row.why}" for row in checked.failures)
                stopped = f"an assumption fails: {why}"
            if checked.holds or force:
                try:
                    run, stopped = _simulated(given, reply)
                except SingularConfigurationError as error:
                    if checked.holds:
                        raise
                    stopped = f"{stopped}. {error}"
            if run is not None:
                _write(given, run, checked, warnings, stopped, kept, reply)
                if animation is not None:
                    _animate(run, animation, kept, reply)
        rows = () if run is None else run.rows
        if run is not None:
            taken = time.perf_counter() - began
            rows += (Row("time taken in all", taken, unit="s", numerical=True),)
        missed = [row for row in rows if row.holds is False]
        status = "partial" if run is not None else "refused"
        if not stopped:
            status = "passed" if checked.holds and not missed else "failed"
        forced = force and not checked.holds
        found = Answer(
            status=status,
            name=given.name,
            robot=given.robot.name,
            problems=[
                *(f"{row.id}: {row.why}" for row in checked.failures),
                *([stopped] if stopped and checked.holds else []),
                *(f"{row.quantity}: {row.shown}, limit {row.shown_limit}" for row in missed),
            ],
            warnings=warnings,
            rows=rows,
            own=_own(given, checked, run) | {"stopped": stopped, "forced": forced},
            verdict=_verdict(status, checked, run, missed, stopped, forced),
            listed=(*listed(checked, audit), *rows),
            shown=_shown(given, checked, run, folder, audit, forced),
        )
        closed = kept.close_with(found, stopped or "; ".join(row.quantity for row in missed))
    return closed if run is not None else found


def _simulated(task: Task, reply: Reply) -> tuple[Run, str]:
    """Simulate a task; the run, and why it ended early."""
    try:
        with reply.progress("simulating") as report:
            return task.simulate(progress=report), ""
    except SimulationError as error:
        if "run" not in error.data:  # nothing was simulated: the error is in the task
            raise
        why = f"{error.where}: expected {error.expected}, got {error.came}. {KEPT}"
        cure = "Start closer to the reference, keep it away from such configurations, or lower the "
        return error.run, f"{why} {cure}gains."
    except KeyboardInterrupt as error:
        if not hasattr(error, "run"):  # before the first steps
            raise
        reply.console.print("[bold red]interrupted[/]: writing the run so far")
        end = f"{error.run.t[-1]:.6g} s of {task.duration:g} s"
        return error.run, f"interrupted at t = {end}. {KEPT}"


def _write(
    task: Task,
    run: Run,
    audit: Audit,
    warnings: tuple[str, ...],
    stopped: str,
    kept: Results,
    reply: Reply,
) -> None:
    """Write run, figures and report."""
    from concur.io import task_facts
    from concur.show import save_figures, write_report

    facts = {"task": task.name, "task_file": task.path.name, "plant_file": task.plant_file or ""}
    # Numbers before figures: after a failure or an interruption the run remains.
    kept.publish([_saved(run, kept.staging / "run.h5", facts | {"stopped": stopped})])
    with reply.progress("drawing"):
        figures = save_figures(run, kept.staging, task)
        notes = [("Warnings", "\n".join(warnings))] if warnings else []
        notes += [(MISMATCH, f"{run.felt_mismatch}\n{_cure(run)}")] if run.felt_mismatch else []
        rows = [Row("stopped early", stopped, holds=False)] if stopped else []
        page = write_report(
            run, [*rows, *run.rows], audit.applicable, figures, kept.staging, task.name,
            task_facts(task), notes,
        )  # fmt: skip
    kept.publish([*figures.values(), page])


def _animate(run: Run, kind: str, kept: Results, reply: Reply) -> None:
    from concur.show import animate

    with reply.progress("animating") as report:
        kept.file(f"animation.{kind}", lambda path: animate(run, path, progress=report))


def _saved(run: Run, target: Path, facts: dict[str, str]) -> Path:
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


def _cure(run: Run) -> str:
    # With other inertias the momentum is as stated; only the servo computes another one.
    wrong = "the robot's masses and lengths" if run.plant_differences else "the task's `momentum`"
    return (
        "Write `use_measured_velocity = true` in [servo], so that the law uses the measured "
        f"velocity of the base, or correct {wrong}."
    )


def _own(task: Task, audit: Audit, run: Run | None) -> dict[str, Any]:
    """Fields of the JSON."""
    from concur.io import settings

    mismatch = None
    if run is not None and run.felt_mismatch is not None:
        names = "assumed", "measured", "relative", "base_velocity", "output_velocity"
        more = "disturbance", "offset", "coordinate_names", "coordinate_units"
        mismatch = picked(run.felt_mismatch, *names, *more) | {"cure": _cure(run)}
    own = {"task": task.name, "settings": settings(task), "audit": audit.details}
    return own | {"mismatch": mismatch}


def _verdict(
    status: str, audit: Audit, run: Run | None, missed: list[Row], stopped: str, forced: bool
) -> str:
    """Verdict, with the assumptions and limits that fail."""
    if run is None:
        return f"{'cannot be simulated' if forced else 'not simulated'}: {stopped}"
    found = "passed" if status == "passed" else "failed"
    if forced:
        failed = ", ".join(row.id for row in audit.failures)
        found += f" (simulated although assumptions fail: {failed})"
    if missed:
        found += f" (limits missed: {'; '.join(row.quantity for row in missed)})"
    end = f"stopped early: {stopped}" if stopped else f"ran to its end at {run.t[-1]:g} s"
    return f"{found}, {end}"


def _shown(
    task: Task, audit: Audit, run: Run | None, folder: Path, every: bool, forced: bool
) -> list[str]:
    """Audit, plant and settings for the terminal."""
    from concur.io import task_facts

    model, lines = task.law.model, [held(audit, every)]
    if run is not None and run.plant_differences:
        listed = ", ".join(run.plant_differences)
        lines.append(f"the plant differs from the servo's model: {listed}")
    if run is not None and run.felt_mismatch is not None:
        lines += [f"{MISMATCH}:", str(run.felt_mismatch), _cure(run)]
    lines += [
        f"{task.robot.name}, {model.kind} reduction: {model.reason}",
        f"{model.ns} shape velocities: {', '.join(model.shape_names)}",
        *(f"{label}: {value}" for label, value in task_facts(task)[1:]),
    ]
    if run is None:
        return lines if forced else [*lines, "To simulate anyway: --force"]
    return [*lines, f"results in {folder}, start with {folder / 'report.html'}"]
