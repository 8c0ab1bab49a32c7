"""The file of a task's proof, with its robot, its task and its claims."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np

from concur.certify import Status
from concur.checker._receipts import confirmed
from concur.control import Servo
from concur.documents import as_path
from concur.io import Task, load_proof_task
from concur.outputs.references import Reference
from concur.proofs import Bound, Statement, TaskDocument
from concur.results import Figures, Row


@dataclass(frozen=True, eq=False)
class StoredTaskProof:
    """A stored proof of a task. Its claims are those of the file; `recheck` verifies them.

    Parameters
    ----------
    path : Path
        The file.
    task : Task
        The task of the proof: robot, law, reference and start.
    statement : Statement
        Starts, imperfections and limits.
    bounds : tuple of Bound
        Claimed bound of each quantity.
    conditions, claim : str
        Starts and imperfections, and the whole claim, in words.
    document : TaskDocument
        Content of the file.
    """

    path: Path
    task: Task
    statement: Statement
    bounds: tuple[Bound, ...]
    conditions: str
    claim: str
    document: TaskDocument

    @property
    def status(self) -> Status:
        """PROVED where the checker of this version confirmed the file on this machine."""
        return Status.PROVED if confirmed(self.document) else Status.UNVERIFIED

    @property
    def rows(self) -> tuple[Row, ...]:
        """Claimed bounds beside their limits."""
        return tuple(bound.row for bound in self.bounds)

    @property
    def figures(self) -> Figures:
        """Empty: the file has no tube."""
        return {}

    def save(self, path: str | PathLike[str]) -> Path:
        """Copy the file.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The copy.
        """
        return Path(copyfile(self.path, path))

    @property
    def sentence(self) -> str:
        """Claim, with whether the checker of this version confirmed it on this machine."""
        sure = self.status is Status.PROVED
        return f"{Status.PROVED.name if sure else 'not verified on this computer'}: {self.claim}"

    @property
    def claims(self) -> tuple[str, ...]:
        """Claimed bounds in words."""
        sides = {1.0: "most", -1.0: "least"}
        return tuple(
            f"{b.kind} {b.name} at {sides[b.sign]} {b.value:.6g} {b.unit}".strip()
            for b in self.bounds
        )

    def differences(self, task: Task | None = None, servo: Servo | None = None) -> tuple[str, ...]:
        """Name what differs from the proof's.

        Parameters
        ----------
        task : Task, optional
            Task to compare: robot, law, reference, start, duration, control period, and its
            statement if it has one.
        servo : Servo, optional
            Servo to compare: robot and law.

        Returns
        -------
        tuple of str
            Names out of "robot", "law", "reference", "start", "duration", "control period" and
            "statement"; empty if nothing differs.
        """
        own = self.task
        found = [] if servo is None else _of_law(servo, own.servo)
        if task is None:
            return tuple(found)
        found += [name for name in _of_law(task.servo, own.servo) if name not in found]
        if not _same_reference(task.reference, own.reference):
            found.append("reference")
        starts = [(task.q0, own.q0), (task.s0, own.s0)]
        if not all(np.array_equal(a, b) for a, b in starts):
            found.append("start")
        if task.duration != own.duration:
            found.append("duration")
        if (task.control_period or 0.0) > self.statement.period:
            found.append("control period")
        if task.statement is not None and task.statement != self.statement:
            found.append("statement")
        return tuple(found)


def load_task_proof(path: str | PathLike[str]) -> StoredTaskProof:
    """Read the file of a task's proof; its entries are validated, its claims are not.

    Parameters
    ----------
    path : path
        File that `TaskProof.save` or `concur prove` wrote.

    Returns
    -------
    StoredTaskProof
        Task, statement and claims.

    Raises
    ------
    ConcurError
        If the file is no complete proof of a task, or was changed after it was written.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.checker import load_task_proof
    >>> from concur.proofs import prove_task
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> prove_task(task, edge=0.05).save("task.json")
    >>> load_task_proof("task.json").sentence.partition(":")[0]
    'not verified on this computer'
    """
    file = as_path(path, "proof of a task")
    document = TaskDocument(file)
    task = load_proof_task(document.robot, document.task)
    statement, words = document.statement(task.servo), document.sentences(task.servo)
    return StoredTaskProof(file, task, statement, document.bounds, *words, document)


def _of_law(servo: Servo, own: Servo) -> list[str]:
    """Name robot and law if they differ."""
    found = [] if servo.model.system == own.model.system else ["robot"]
    models = servo.model, own.model
    same = type(models[0]) is type(models[1])
    same = same and all(
        _equal(getattr(models[0], field.name), getattr(models[1], field.name))
        for field in fields(own.model)
        if field.name != "system"
    )
    same = same and all(
        _equal(getattr(servo, field.name), getattr(own, field.name))
        for field in fields(Servo)
        if field.name != "model"
    )
    return found if same else [*found, "law"]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, type(b)) and np.array_equal(a, b)
    return bool(a == b)


def _same_reference(one: Reference, other: Reference) -> bool:
    """Whether two references are the same formula with the same tables."""
    pieces, own = one.pieces(), other.pieces()
    if pieces is None or own is None or len(pieces.tables) != len(own.tables):
        return False
    if pieces.function.serialize() != own.function.serialize():
        return False
    times = np.concatenate([pieces.knots - 1.0, pieces.knots, own.knots])
    return np.array_equal(pieces.knots, own.knots) and all(
        np.array_equal(a, b) for a, b in zip(pieces.rows(times), own.rows(times), strict=True)
    )
