"""`concur prove`: proof that a task keeps its limits from all starts of its statement."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from concur.certify import Status
from concur.checker import confirm
from concur.cli._bar import progress_bar
from concur.cli._prove_report import write_proof_report
from concur.cli._prove_result import PROOF, ProveResult
from concur.cli._results import results
from concur.codegen import find_compiler
from concur.errors import OutputError
from concur.files import writing
from concur.io import Task, load_task
from concur.proofs import Sampled, TaskProof, largest_factor, prove_task, sample_statement
from concur.show import bounds_figure, proof_figure
from concur.show.style import save_picture

WORLDS = 100
"""Worlds that are simulated by default."""

INTERPRETED = 2000
"""Periods of a task beyond which they take minutes without a compiler."""


def prove_file(
    path: Path,
    folder: Path,
    console: Console,
    overwrite: bool = False,
    samples: int | None = None,
    search: int = 0,
    seed: int = 0,
    verified: bool = True,
    factor: bool = True,
) -> ProveResult:
    """Prove the statement of a task; write its file, bounds and their figures into a folder.

    Of an undecided one `factor` finds the share of starts and imperfections that is proved. With
    `samples` None as many worlds are simulated as take seconds.
    """
    with results(folder, "prove", overwrite) as kept:
        task = load_task(path)
        began = time.perf_counter()
        with progress_bar("proving", console) as report:
            found = prove_task(task, progress=lambda done, total: report(done / total))
        result = ProveResult(task, found, time.perf_counter() - began, _notes(task))
        if found.found:
            target = kept.staging / PROOF
            with writing(target):
                found.save(target)
            # Published first: an interruption leaves a file that can be verified later.
            kept.publish([target])
            if verified:
                began = time.perf_counter()
                with progress_bar("verifying", console) as report:
                    found = confirm(found, report)
                took = time.perf_counter() - began
                result = replace(result, proof=found, verification_seconds=took)
        worlds, note = _worlds(task, found, samples, search, seed, console)
        result = replace(result, sampled=worlds, notes=(*result.notes, *note))
        unproved = found.status is Status.UNDECIDED and result.verification_seconds is None
        if factor and unproved and not result.refuted:
            with progress_bar("finding what is proved", console) as report:
                found = replace(found, factor=largest_factor(task, progress=report))
            result = replace(result, proof=found)
        names = [output.name for output in task.outputs]
        figures = {"tube": proof_figure(found, names, task.duration)}
        if found.bounds or worlds:
            figures["bounds"] = bounds_figure(found, task.duration, result.sampled)
        for name, figure in figures.items():
            kept.publish([save_picture(figure, kept.staging / f"{name}.png")])
        pictures = {name: kept.folder / f"{name}.png" for name in figures}
        kept.publish([write_proof_report(result, pictures, kept.staging)])
        target = kept.staging / "bounds.json"
        with writing(target):
            target.write_text(json.dumps(result.as_dict(), indent=1, allow_nan=False) + "\n")
        kept.publish([target])
        kept.end("proved" if result.proved else "not proved", found.reason)
    result = replace(result, files=(*kept.files, kept.manifest))
    result.show(console)
    return result


def _worlds(
    task: Task, found: TaskProof, samples: int | None, search: int, seed: int, console: Console
) -> tuple[Sampled | None, tuple[str, ...]]:
    """Worlds inside the statement, and a note if none are simulated although none were declined."""
    given, optional = task.statement, samples is None and not search
    if samples == 0 or given is None or (optional and found.status is Status.REFUTED):
        return None, ()
    if optional and find_compiler() is None and task.duration > INTERPRETED * given.period > 0.0:
        return None, (
            f"no worlds were simulated: without a C compiler they take minutes; --samples {WORLDS} "
            "simulates them",
        )
    try:
        with progress_bar("sampling", console) as report:
            return sample_statement(
                task, samples or WORLDS, seed, found, search,
                progress=lambda done, total: report(done / total),
            ), ()  # fmt: skip
    except OutputError as error:
        if not optional:
            raise
        return None, (f"no worlds were simulated: expected {error.expected}, got {error.came}",)


def _notes(task: Task) -> tuple[str, ...]:
    """Notes on imperfections that the verdict leaves out."""
    notes = list[str]()
    given = {
        "[plant]": task.plant is not None or task.plant_momentum is not None,
        "[plant.slip]": task.slip is not None,
        "[imperfections]": task.imperfections is not None,
        "[world]": task.world is not None,
        "[uncertainty]": bool(task.uncertainty.size),
    }
    notes += [
        f"the proof is about the imperfections of [proof]; those of {table} are no part of it"
        for table, has in given.items()
        if has
    ]
    return tuple(notes)
