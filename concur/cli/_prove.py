"""`concur prove`: proof that a task keeps its limits from all starts of its statement."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import Overwrite, command
from concur.cli._folder import results
from concur.errors import OutputError

if TYPE_CHECKING:
    from concur.io import Task
    from concur.proofs import Sampled, TaskProof

PROOF = "proof.json"
"""Name of the file of a proof."""

WORLDS = 100
"""Worlds that are simulated by default."""

INTERPRETED = 2000
"""Periods of a task beyond which they take minutes without a compiler."""


@command(
    "Prove",
    "limits from all starts, with all imperfections",
    "concur prove examples/rover_arm.toml --out out/rover_arm/proof",
)
def prove(
    reply: Reply,
    task: Path,
    out: Path | None = None,
    samples: Annotated[int | None, typer.Option(min=0)] = None,
    search: Annotated[int, typer.Option(min=0)] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    recheck: bool = True,
    factor: bool = True,
    overwrite: Overwrite = False,
) -> Answer:
    """Prove that a task keeps its limits, from all starts and with all imperfections of [proof].

    Writes a report, the bounds of all quantities to bounds.json, and figures. A proof is also
    written to proof.json, which `concur recheck` verifies from this file alone. It is verified here
    too, unless --no-recheck is given: until then the task is UNVERIFIED. The exit status is 0 only
    if the task is PROVED, and 1 otherwise.

    Worlds inside the statement are then simulated and drawn inside the bounds. A world beyond a
    bound contradicts the proof: exit status 1. One beyond a limit refutes the statement.

    Parameters
    ----------
    task : path
        Task file (.toml) with [proof].
    out : path, optional
        Folder of the results; default out/<name of the file>/prove.
    samples : int, optional
        Number of worlds inside the statement to simulate; 0 for none. Default: 100 where this
        takes seconds.
    search : int
        Further worlds for each quantity, in which its worst value is searched; needs the extra
        `verify`.
    seed : int
        Seed of the worlds.
    recheck : bool
        Verify the written file by the independent checker, in about the time of the proof. Without
        it nothing is PROVED.
    factor : bool
        If undecided, find the largest factor on all starts and imperfections with a proof, by four
        further proofs.
    """
    from concur.certify import Status
    from concur.checker import confirm
    from concur.io import load_task
    from concur.proofs import largest_factor, prove_task
    from concur.results import show
    from concur.show.proof_report import write_proof_report

    with results(out or Path("out") / task.stem / "prove", "prove", overwrite) as kept:
        given, seconds, began = load_task(task), None, time.perf_counter()
        with reply.progress("proving") as report:
            found = prove_task(given, progress=report)
        notes, took = _beside(given), time.perf_counter() - began
        if found.found:
            # Published first: an interruption leaves a file that can be verified later.
            kept.file(PROOF, found.save)
            if recheck:
                began = time.perf_counter()
                with reply.progress("verifying") as report:
                    found = confirm(found, report)
                seconds = time.perf_counter() - began
        sampled, more = _worlds(given, found, samples, search, seed, reply)
        notes += more
        judged = found if sampled is None else sampled.judge(found)
        if factor and judged.status is Status.UNDECIDED and not found.found and seconds is None:
            with reply.progress("finding what is proved") as report:
                judged = replace(judged, factor=largest_factor(given, progress=report))
        names = [output.name for output in given.outputs]
        figures: dict[str, Any] = {
            "tube": partial(show, "proof_figure", judged, names, given.duration)
        }
        if found.bounds or sampled is not None:
            figures["bounds"] = partial(show, "bounds_figure", judged, given.duration, sampled)
        pictures = kept.draw(reply, figures)
        checked = _verification(found, seconds)
        page = [*(() if sampled is None else sampled.outside(found)), *checked, *notes]
        kept.publish([write_proof_report(judged, given, page, sampled, pictures, kept.staging)])
        own = judged.details | {"seconds": took, "verification_seconds": seconds}
        answer = Answer(
            status=judged.status,
            name=given.name,
            robot=given.robot.name,
            problems=[judged.sentence] if judged.status is not Status.PROVED else [],
            warnings=notes,
            files=kept.files,
            rows=judged.rows,
            own=own | {"samples": None if sampled is None else sampled.details(judged)},
            verdict=judged.sentence,
            listed=[bound.row for bound in judged.tightest],
            shown=[*([] if sampled is None else [sampled.table(judged)]), *checked],
        )
        kept.document(reply, answer, "bounds.json")
        return kept.close_with(answer, found.reason)


def _verification(found: TaskProof, seconds: float | None) -> list[str]:
    """Answer of the independent checker in one sentence; none without a proof."""
    if found.status.name == "PROVED":
        return [f"{PROOF} is confirmed by the independent checker, in {seconds:.1f} s"]
    if found.status.name == "UNVERIFIED":
        why = found.reason or "run `concur recheck`, which shows the time left"
        return [f"{PROOF} is not verified: {why}"]
    return [] if seconds is None else [f"{PROOF} is not confirmed by the independent checker"]


def _worlds(
    task: Task, found: TaskProof, samples: int | None, search: int, seed: int, reply: Reply
) -> tuple[Sampled | None, list[str]]:
    """Worlds inside the statement, and a note if none are simulated although none were declined."""
    from concur.codegen import find_compiler
    from concur.proofs import sample_statement

    given, optional = task.statement, samples is None and not search
    if samples == 0 or given is None or (optional and found.status.name == "REFUTED"):
        return None, []
    if optional and find_compiler() is None and task.duration > INTERPRETED * given.period > 0.0:
        return None, [
            f"no worlds were simulated: without a C compiler they take minutes; --samples {WORLDS} "
            "simulates them"
        ]
    try:
        with reply.progress("sampling") as report:
            count = samples or WORLDS
            return sample_statement(task, count, seed, found, search, progress=report), []
    except OutputError as error:
        if not optional:
            raise
        return None, [f"no worlds were simulated: expected {error.expected}, got {error.came}"]


def _beside(task: Task) -> list[str]:
    """Notes on imperfections that the verdict leaves out."""
    given = {
        "[plant]": task.plant is not None or task.plant_momentum is not None,
        "[plant.slip]": task.slip is not None,
        "[imperfections]": task.imperfections is not None,
        "[world]": task.world is not None,
        "[uncertainty]": bool(task.uncertainty.size),
    }
    text = "the proof is about the imperfections of [proof]; those of {} are no part of it"
    return [text.format(table) for table, has in given.items() if has]
