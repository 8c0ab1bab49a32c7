"""`concur export`: the law of a task as code for a controller."""

from __future__ import annotations

from pathlib import Path

from concur.cli._answer import Answer
from concur.cli._results import results
from concur.control import CFolder
from concur.io import load_task
from concur.tables import located


def export_task(
    path: Path,
    target: str,
    folder: Path,
    name: str | None,
    precision: str,
    speed_limit: float,
    fmi: str = "3.0",
    overwrite: bool = False,
    with_reference: bool = False,
) -> Answer:
    """Export the servo of a task into a folder, alone or with the reference of the task."""
    with results(folder, "export", overwrite) as kept:
        task = load_task(path)
        with located(path, ""):
            servo = task.law
        reference = task.reference if with_reference else None
        staged = servo.export(kept.staging, target, name, precision, speed_limit, fmi, reference)
        if isinstance(staged, Path):
            files, lines, own, title = kept.publish([staged]), [], {}, staged.stem
        else:
            files, title, error = kept.publish(staged.files), staged.name, staged.error
            own = {"states": staged.states, "error": None if error is None else error.largest}
            lines = _lines(staged, folder)
        kept.end("written")
    return Answer(
        command="export",
        status="written",
        name=title,
        robot=task.robot.name,
        files=files,
        own={"task": task.name, "target": target, **own},
        shown=lines,
    )


def _lines(written: CFolder, folder: Path) -> list[str]:
    """Precision of the code, and how to test it."""
    name, error = written.name, written.error
    precision = (
        []
        if error is None
        else [
            f"single precision: error about {error.largest:.1e} of the largest number, over "
            f"{error.states} states"
        ]
    )
    return [
        *precision,
        f"test it with {written.states} states:",
        f"  cd {folder} && cc -std=c99 -O2 {name}.c replay.c -o replay -lm && ./replay",
    ]
