"""`concur recheck`: verification of a stored proof by the independent checkers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from concur.certify import Status, examine
from concur.checker import StoredTaskProof, is_task_proof, load_task_proof, recheck
from concur.cli._answer import answer
from concur.cli._bar import progress_bar
from concur.formats import Task, load_task

_MARKS = {Status.PROVED: "green", Status.REFUTED: "bold red", Status.UNDECIDED: "yellow"}


@dataclass(frozen=True, eq=False)
class RecheckResult:
    """Whether a stored proof was confirmed."""

    path: Path
    status: Status
    reason: str
    seconds: float
    task: Task | None
    stored: StoredTaskProof | None
    claims: tuple[str, ...] = ()
    region: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether every step was confirmed."""
        return self.status is Status.PROVED

    @property
    def sentence(self) -> str:
        """Verdict in one sentence."""
        about = "" if self.task is None else f", and it is about {self.task.name}"
        if self.confirmed:
            return f"confirmed: every step was verified by the independent checker{about}"
        return f"not confirmed ({self.status.name}): {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        own = None if self.stored is None else self.stored.task
        verdict = self.status.name if self.confirmed else "not verified"
        return answer(
            "recheck",
            self.confirmed,
            self.status.name,
            name="" if own is None else own.name,
            robot="" if own is None else own.robot.name,
            problems=() if self.confirmed else (self.sentence,),
            file=str(self.path),
            kind="certificate" if self.stored is None else "task",
            reason=self.reason,
            sentence="" if self.stored is None else f"{verdict}: {self.stored.claim}",
            claims=list(self.claims),
            region=list(self.region),
            seconds=self.seconds,
        )

    def show(self, console: Console) -> None:
        """Print the claims and the verdict."""
        if self.stored is not None:
            own = self.stored.task
            console.print(f"[bold]{escape(own.name)}[/]: {escape(own.robot.name)}")
            console.print(escape(f"claim: {self.stored.claim}"), highlight=False)
        for claim in self.claims:
            console.print(escape(f"- {claim}"), highlight=False)
        for place in () if self.stored is not None else self.region:
            console.print(escape(f"- where: {place}"), highlight=False)
        color = _MARKS[self.status]
        console.print(f"[{color}]{escape(self.sentence)}[/], {self.seconds:.1f} s", highlight=False)


def recheck_file(path: Path, task_file: Path | None, console: Console) -> RecheckResult:
    """Verify a file, and compare it with a task if one is given."""
    task = None if task_file is None else load_task(task_file)
    began = time.perf_counter()
    stored = None
    if is_task_proof(path):
        stored = load_task_proof(path)
        with progress_bar("verifying", console) as report:
            found = recheck(path, task=task or stored.task, progress=report)
    elif task is not None:
        found = recheck(path, task=task)
    else:
        finding = examine(path)
        seconds = time.perf_counter() - began
        return RecheckResult(path, finding.status, finding.reason, seconds, None, None)
    seconds = time.perf_counter() - began
    return RecheckResult(
        path, found.status, found.reason, seconds, task, stored, found.claims, found.region
    )
