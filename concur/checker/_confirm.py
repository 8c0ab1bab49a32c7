"""Verification of a proof that the prover found: the word PROVED is given here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from concur.certify import Status
from concur.checker._recheck import recheck
from concur.checker._stored import load_task_proof
from concur.errors import OutputError
from concur.io import Task
from concur.proofs import TaskProof


def confirm(
    proof: TaskProof,
    progress: Callable[[float], None] | None = None,
    work: float | None = None,
) -> TaskProof:
    """Verify a proof that `prove_task` found, by the independent checker.

    Parameters
    ----------
    proof : TaskProof
        The proof.
    progress : callable, optional
        Called with the share of the work that is done, from which the time left follows.
    work : float, optional
        Largest total work, as of `recheck`.

    Returns
    -------
    TaskProof
        PROVED if the checker confirmed every step of the file that `save` writes, about the task
        that was proved. UNVERIFIED, with the reason, if it does not cover the statement. UNDECIDED,
        with the reason, if it does not confirm it. A verdict without a proof is returned as it is.

    Raises
    ------
    OutputError
        If the proof was not made by `prove_task`, so that it has no task.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.checker import confirm
    >>> from concur.proofs import prove_task
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> found = prove_task(task, edge=0.05)
    >>> found.status.name, confirm(found).status.name
    ('UNVERIFIED', 'UNDECIDED')
    """
    if not proof.found:
        return proof
    if proof.source is None:
        raise OutputError(
            "verification of a proof",
            expected="a proof of a task by `prove_task`",
            came="one without its task",
            cure="Prove a task with a table [proof].",
        )
    task = cast(Task, proof.source.given)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        proof.save(path)
        answer = recheck(path, task=task, work=work, progress=progress)
        uncovered = load_task_proof(path).document.uncovered
    if answer.status is Status.PROVED:
        return replace(proof, status=Status.PROVED, reason="", cure="")
    if uncovered:
        return replace(proof, status=Status.UNVERIFIED, reason=uncovered)
    return replace(
        proof,
        status=Status.UNDECIDED,
        reason=f"the independent checker does not confirm the proof: {answer.reason}",
        cure="Take smaller cells, a nearer start or wider limits.",
    )
