"""Proof of a task that is read from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from concur.certify import Status
from concur.errors import OutputError
from concur.mechanism import joints
from concur.proofs._file import Source
from concur.proofs._floater import Prover as FloaterProver
from concur.proofs._floater import proof_of as proof_of_floater
from concur.proofs._floater import refuted as refuted_floater
from concur.proofs._proof import TaskProof
from concur.proofs._provable import Provable
from concur.proofs._prove import Prover, proof_of, refuted
from concur.proofs._sampled import counterexample
from concur.writers import to_toml


def prove_task(
    task: Provable,
    edge: float = 0.0125,
    progress: Callable[[int, int], None] | None = None,
) -> TaskProof:
    """Prove the statement of a task: that all its starts and imperfections keep its limits.

    The robot is simulated first, from the declared start without imperfections but with held
    torques. If that motion breaks a limit, the statement is REFUTED.

    Parameters
    ----------
    task : concur.formats.Task
        A task with a table ``[proof]``.
    edge : float
        Edge of the cells of the hand's position relative to the base (m); of wheeled robots.
    progress : callable, optional
        As for `prove`; of floaters it gets numbers of segments.

    Returns
    -------
    TaskProof
        Verdict and bounds.

    Raises
    ------
    OutputError
        If the task has no statement, or robot, law, reference or a limit are not covered.

    Examples
    --------
    >>> proof = cc.proofs.prove_task(cc.load_task("rover.toml"))    # doctest: +SKIP
    """
    statement = task.statement
    if statement is None:
        raise OutputError(
            str(task.path),
            expected="a table [proof]",
            came="a task without it",
            cure="Add one with `place`, `speed` and `heading`; see docs/files.md.",
        )
    given = (task.servo, task.reference, task.duration, task.q0, task.s0)
    floats = isinstance(task.servo.model.robot.base.joint, joints.Free)
    if floats:
        case = FloaterProver(*given, statement)
        prove, refute = partial(proof_of_floater, case, progress), partial(refuted_floater, case)
    else:
        prover = Prover(*given)
        prove = partial(proof_of, prover, statement, edge, progress)
        refute = partial(refuted, prover, statement, edge)
    broken = counterexample(task)
    found = refute(broken) if broken else prove()
    _check_all_are_bounded(found, str(task.path))
    if found.status is not Status.PROVED:
        return found
    kind = "floater" if floats else "rover"
    texts = to_toml(task.robot), task.proof_text()
    return replace(found, source=Source(kind, *texts, task.servo, len(found.wall)))


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
