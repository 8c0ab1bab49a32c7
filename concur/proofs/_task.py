"""Proof of a task that is read from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from concur.errors import OutputError
from concur.proofs._file import Source
from concur.proofs._floater import Prover as FloaterProver
from concur.proofs._floater import proof_of as proof_of_floater
from concur.proofs._floater import refuted as refuted_floater
from concur.proofs._proof import TaskProof
from concur.proofs._provable import Provable, plain_law, torque_room
from concur.proofs._prove import Prover, proof_of, refuted
from concur.proofs._sampled import counterexample
from concur.proofs._statement import Statement
from concur.robot import joints
from concur.writers import to_toml

Progress: TypeAlias = Callable[[int, int], None]
Prove: TypeAlias = Callable[[Statement, Progress | None], TaskProof]
Refute: TypeAlias = Callable[[Statement, str], TaskProof]


def prove_task(
    task: Provable,
    edge: float = 0.0125,
    progress: Progress | None = None,
) -> TaskProof:
    """Prove the statement of a task: that all its starts and imperfections keep its limits.

    The robot is simulated first, from the declared start without imperfections but with held
    torques. If that motion breaks a limit, the statement is REFUTED.

    Parameters
    ----------
    task : concur.io.Task
        A task with a table ``[proof]``.
    edge : float
        Edge of the cells of the hand's position relative to the base (m); of wheeled robots.
    progress : callable, optional
        As for `prove`; of floaters it gets numbers of segments.

    Returns
    -------
    TaskProof
        Verdict and bounds. A proof that was found is UNVERIFIED: `concur.checker.confirm` has it
        verified by the independent checker, and returns the final status.

    Raises
    ------
    OutputError
        If the task has no statement, or robot, law, reference or a limit are not covered.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.proofs import prove_task
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> proof = prove_task(task, edge=0.05)
    >>> proof.status.name
    'UNVERIFIED'
    """
    statement = statement_of(task)
    prove, refute = provers(task, edge)
    broken = counterexample(task)
    found = refute(statement, broken) if broken else prove(statement, progress)
    _check_all_are_bounded(found, str(task.path))
    if not found.found:
        return found
    kind = "floater" if _floats(task) else "rover"
    texts = to_toml(task.robot), task.proof_text()
    return replace(found, source=Source(kind, *texts, len(found.wall), task))


def _floats(task: Provable) -> bool:
    return isinstance(task.servo.model.robot.base.joint, joints.Free)


def statement_of(task: Provable) -> Statement:
    """Statement of a task that has one."""
    if task.statement is None:
        raise OutputError(
            str(task.path),
            expected="a table [proof]",
            came="a task without it",
            cure="Add one with `place`, `speed` and `heading`; see docs/files.md.",
        )
    return task.statement


def provers(task: Provable, edge: float) -> tuple[Prove, Refute]:
    """Functions that prove statements about a task's motion, or refute them for a reason."""
    _check_torques(task)
    given = (plain_law(task.servo), task.reference, task.duration, task.q0, task.s0)
    if not _floats(task):
        prover = Prover(*given)
        return (
            lambda statement, progress: proof_of(prover, statement, edge, progress),
            lambda statement, reason: refuted(prover, statement, edge, reason),
        )
    if statement_of(task).reading is not None:
        raise OutputError(
            str(task.path),
            expected="a measured state without errors, for a floater",
            came="a table [proof.reading]",
            cure="Remove it: proofs of floaters do not bound what it does.",
        )
    first = FloaterProver(*given, statement_of(task))

    def case(statement: Statement) -> FloaterProver:
        return first if statement is first.statement else FloaterProver(*given, statement)

    return (
        lambda statement, progress: proof_of_floater(case(statement), progress),
        lambda statement, reason: refuted_floater(case(statement), reason),
    )


def _check_torques(task: Provable) -> None:
    """Reject statements that let torques exceed the limits of the law."""
    given, servo = statement_of(task).torques, task.servo
    for name, limit in torque_room(servo).items():
        if not given.get(name, np.inf) <= limit:
            raise OutputError(
                str(task.path),
                expected=f"a torque of `{name}` of at most {limit:g}, within the limits of the law",
                came=f"{given.get(name, np.inf):g}",
                cure="Lower it: beyond the limits the law is another one.",
            )


def _check_all_are_bounded(found: TaskProof, where: str) -> None:
    """Reject limits of quantities without a bound, which a verdict would pass over."""
    bounded = {bound.quantity.key for bound in found.bounds}
    given = found.statement
    for kind, name in [*given.limits, *(made.key for made in given.added)]:
        if found.bounds and (kind, name) not in bounded:
            raise OutputError(
                where,
                expected="quantities that the proof of this robot bounds",
                came=f"the {kind.split()[0]} of `{name}`",
                cure="Remove it from the statement.",
            )
