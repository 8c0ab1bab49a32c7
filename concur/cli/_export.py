"""`concur export`: the law of a task as code for a controller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from concur.cli._answer import answer
from concur.cli._results import results
from concur.control import CFolder
from concur.formats import load_task
from concur.tables import located


@dataclass(frozen=True)
class ExportResult:
    """Result of an export."""

    task: str
    robot: str
    target: str
    folder: Path
    written: CFolder | Path  # the archive for an FMU

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        own: dict[str, Any] = {}
        if not isinstance(self.written, Path):
            error = self.written.error
            own["states"] = self.written.states
            own["error"] = None if error is None else error.largest
        return answer(
            "export",
            True,
            "written",
            name=self.written.stem if isinstance(self.written, Path) else self.written.name,
            robot=self.robot,
            files=[self.written] if isinstance(self.written, Path) else self.written.files,
            task=self.task,
            target=self.target,
            **own,
        )

    def show(self, console: Console) -> None:
        """Print the result."""
        if isinstance(self.written, Path):
            console.print(escape(f"written: {self.written}"), highlight=False, soft_wrap=True)
            return
        name, error = self.written.name, self.written.error
        lines = [f"written to {self.folder}: {', '.join(p.name for p in self.written.files)}"]
        if error is not None:
            lines.append(
                f"single precision: error about {error.largest:.1e} of the largest number, "
                f"over {error.states} states"
            )
        lines.append(f"test it with {self.written.states} states:")
        lines.append(
            f"  cd {self.folder} && cc -std=c99 -O2 {name}.c replay.c -o replay -lm && ./replay"
        )
        for line in lines:
            console.print(escape(line), highlight=False, soft_wrap=True)


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
) -> ExportResult:
    """Export the servo of a task into a folder, alone or with the reference of the task."""
    with results(folder, "export", overwrite) as kept:
        task = load_task(path)
        with located(path, ""):
            servo = task.servo
        reference = task.reference if with_reference else None
        staged = servo.export(kept.staging, target, name, precision, speed_limit, fmi, reference)
        written: CFolder | Path
        if isinstance(staged, Path):
            (written,) = kept.publish([staged])
        else:
            written = replace(staged, files=tuple(kept.publish(staged.files)))
        kept.end("written")
    return ExportResult(task.name, task.robot.name, target, folder, written)
