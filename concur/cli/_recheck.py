"""`concur recheck`: verification of a stored proof by the independent checkers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from concur.cli._answer import Answer, Reply
from concur.cli._app import command


@command(
    "Prove",
    "a stored proof, by an independent checker",
    "concur recheck out/rover_arm/proof.json --task examples/rover_arm.toml",
)
def recheck(
    reply: Reply,
    file: Path,
    task: Path | None = None,
) -> Answer:
    """Verify a stored proof by arithmetic and formulas that share nothing with the prover.

    Nothing but the file is needed. With --task, robot, law, reference, start, duration, control
    period and statement have to be those of this task; of certificates, outputs and gains.

    The exit status is 0 only if every step is confirmed. A rig arms only with proofs of tasks that
    were confirmed on its computer.

    Parameters
    ----------
    file : path
        Proof of a task, certificate, tube or operating box (.json).
    task : path, optional
        Task file (.toml) that the proof should be about.
    """
    from concur.certify import Status, examine
    from concur.checker import is_task_proof, load_task_proof
    from concur.checker import recheck as verify
    from concur.io import load_task

    given, began = None if task is None else load_task(task), time.perf_counter()
    stored = load_task_proof(file) if is_task_proof(file) else None
    if stored is None and given is None:
        found = examine(file)
    else:
        own: Any = given if stored is None or given is not None else stored.task
        with reply.progress("verifying") as report:
            found = verify(file, task=own, progress=report)
    seconds, confirmed = time.perf_counter() - began, found.status is Status.PROVED
    claims, region = ((), ()) if given is None and stored is None else (found.claims, found.region)
    about = "" if given is None else f", and it is about {given.name}"
    reason = f"not confirmed ({found.status.name}): {found.reason}"
    claim = "" if stored is None else stored.claim
    state = found.status.name if confirmed else "not verified"
    sentence = f"confirmed: every step was verified by the independent checker{about}"
    lines = [f"claim: {claim}"] if claim else [f"- {text}" for text in claims]
    lines += [] if stored else [f"- where: {place}" for place in region]
    return Answer(
        status=found.status,
        name="" if stored is None else stored.task.name,
        robot="" if stored is None else stored.task.robot.name,
        problems=() if confirmed else (reason,),
        rows=() if stored is None else stored.rows,
        own={
            "file": str(file),
            "kind": "certificate" if stored is None else "task",
            "reason": found.reason,
            "sentence": claim and f"{state}: {claim}",
            "claims": list(claims),
            "region": list(region),
            "seconds": seconds,
        },
        shown=[*lines, f"{sentence if confirmed else 'verified'}, {seconds:.1f} s"],
    )
