"""One door to the checkers of all stored proofs."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import overload

from concur.certify import Recheck, Status, examine
from concur.checker._receipts import give_receipt
from concur.checker._stored import load_task_proof
from concur.control import Servo
from concur.documents import as_path
from concur.errors import ConcurError
from concur.files import read_json
from concur.io import Task
from concur.proofs import LARGEST_PROOF, TASK_PROOF


@overload
def recheck(
    path: str | PathLike[str], *, budget: int = ..., work: float | None = ...
) -> Status: ...


@overload
def recheck(
    path: str | PathLike[str],
    servo: Servo,
    budget: int = ...,
    work: float | None = ...,
    *,
    task: Task | None = ...,
    progress: Callable[[float], None] | None = ...,
) -> Recheck: ...


@overload
def recheck(
    path: str | PathLike[str],
    servo: Servo | None = ...,
    budget: int = ...,
    work: float | None = ...,
    *,
    task: Task,
    progress: Callable[[float], None] | None = ...,
) -> Recheck: ...


def recheck(
    path: str | PathLike[str],
    servo: Servo | None = None,
    budget: int = 200_000,
    work: float | None = None,
    *,
    task: Task | None = None,
    progress: Callable[[float], None] | None = None,
) -> Status | Recheck:
    """Verify a stored proof with independent arithmetic and formulas.

    Parameters
    ----------
    path : str or os.PathLike
        The JSON file: a certificate, tube or operating box by `save` of `concur.certify`, or the
        proof of a task by `concur prove` or `concur.proofs.TaskProof.save`.
    servo : Servo, optional
        The servo that the file should be about. Its output groups and gains are compared with
        the file's, bit by bit; of the proof of a task, the whole law and the robot.
    budget : int
        Largest number of boxes evaluated for each channel of a certificate.
    work : float, optional
        Largest total work for the file, in units of about a microsecond; default 1e8, and 4e9 for
        proofs of tasks. Work is counted, not timed: the result is the same on every machine.
    task : Task, optional
        The task that the file should be about. The proof of a task must have the same robot, law,
        reference, start, duration and statement, and at least its control period. Of other files,
        its servo is compared.
    progress : callable, optional
        Called with the share of the work that is done, for proofs of tasks.

    Returns
    -------
    Status or Recheck
        PROVED when every step was confirmed here, and the law and the task are those given;
        REFUTED when a claim of a certificate is false for the stored numbers; UNDECIDED when the
        proof has gaps, this arithmetic cannot confirm it, it exceeds `budget` or `work`, it is
        about another law or task, or it claims nothing. With `servo` or `task` the result is a
        `Recheck` that lists the claims.

    Raises
    ------
    ConcurError
        If the file is no complete proof, or was changed after it was written; if the path is
        invalid; or if `servo` is not a `Servo`.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> cc.certify(servo).save("proof.json")
    >>> cc.recheck("proof.json").name
    'PROVED'
    >>> found = cc.recheck("proof.json", servo)
    >>> found.status.name, found.law
    ('PROVED', True)
    """
    file = as_path(path)
    if is_task_proof(file):
        found = _of_task(file, servo, task, work, progress)
    else:
        law = task.servo if servo is None and task is not None else servo
        found = examine(file, law, budget, **({} if work is None else {"work": work}))
    return found.status if servo is None and task is None else found


def is_task_proof(path: str | PathLike[str]) -> bool:
    """Whether a file has the format of proofs of tasks.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    bool
        False also for files that cannot be read.
    """
    try:
        file = as_path(path)
        if file.stat().st_size > LARGEST_PROOF:
            return False
        document = read_json(file, "a proof", "Check the name.")
    except (ConcurError, OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == TASK_PROOF


def _of_task(
    path: Path,
    servo: Servo | None,
    task: Task | None,
    work: float | None,
    progress: Callable[[float], None] | None,
) -> Recheck:
    stored = load_task_proof(path)
    other = stored.differences(task, servo)
    own = stored.task
    if stored.document.uncovered:
        reason = stored.document.uncovered
    elif other:
        reason = f"the file is about another {', '.join(other)}"
    elif stored.differences(own):
        reason = "the torques of its task are held for longer than those of its statement"
    else:
        reason = stored.document.verify(
            own.servo, own.reference, own.duration, own.q0, own.s0, work, progress
        )
    if not reason:
        give_receipt(stored.document)
    return Recheck(
        Status.UNDECIDED if reason else Status.PROVED,
        reason,
        "task",
        not other,
        None,
        (stored.conditions,),
        stored.claims,
    )
