"""`concur recheck`: verification of a stored proof by the independent checkers."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from concur.certify import Finding, Recheck, Status, examine
from concur.checker import is_task_proof, load_task_proof, recheck
from concur.cli._answer import Answer
from concur.cli._bar import progress_bar
from concur.io import load_task


def recheck_file(path: Path, task_file: Path | None, console: Console) -> Answer:
    """Verify a file, and compare it with a task if one is given."""
    task = None if task_file is None else load_task(task_file)
    began = time.perf_counter()
    stored, claims, region = None, tuple[str, ...](), tuple[str, ...]()
    found: Recheck | Finding
    if is_task_proof(path):
        stored = load_task_proof(path)
        with progress_bar("verifying", console) as report:
            found = recheck(path, task=task or stored.task, progress=report)
    elif task is not None:
        found = recheck(path, task=task)
    else:
        found = examine(path)
    if isinstance(found, Recheck):
        claims, region = found.claims, found.region
    seconds = time.perf_counter() - began
    confirmed, own = found.status is Status.PROVED, None if stored is None else stored.task
    about = "" if task is None else f", and it is about {task.name}"
    sentence = f"not confirmed ({found.status.name}): {found.reason}"
    if confirmed:
        sentence = f"confirmed: every step was verified by the independent checker{about}"
    claim = "" if stored is None else stored.claim
    verdict = found.status.name if confirmed else "not verified"
    return Answer(
        command="recheck",
        passed=confirmed,
        status=found.status.name,
        name="" if own is None else own.name,
        robot="" if own is None else own.robot.name,
        problems=() if confirmed else (sentence,),
        rows=() if stored is None else stored.rows,
        own={
            "file": str(path),
            "kind": "certificate" if stored is None else "task",
            "reason": found.reason,
            "sentence": claim and f"{verdict}: {claim}",
            "claims": list(claims),
            "region": list(region),
            "seconds": seconds,
        },
        shown=[
            *([f"claim: {claim}"] if stored else [f"- {text}" for text in claims]),
            *(f"- where: {place}" for place in (() if stored else region)),
            f"{sentence if confirmed else 'verified'}, {seconds:.1f} s",
        ],
    )
