"""The largest share of all starts and imperfections of a statement with a proof."""

from __future__ import annotations

from collections.abc import Callable

from concur.certify import Status
from concur.proofs._provable import Provable
from concur.proofs._task import provers, statement_of

STEPS = 4
"""Proofs of the bisection: the factor is a multiple of 1/16."""


def largest_factor(
    task: Provable,
    edge: float = 0.0125,
    progress: Callable[[float], None] | None = None,
) -> float:
    """Find the largest factor on all starts and imperfections with which a task has a proof.

    By bisection of the whole proof between 0 and 1, which are not tried. The factor multiplies
    `place`, `speed`, `heading`, `period`, `delay`, `masses`, `momentum_error`, `torque_error`,
    `push` and `reading`.

    Parameters
    ----------
    task : concur.io.Task
        A task with a table ``[proof]`` that is undecided.
    edge : float
        As for `prove_task`.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    float
        A multiple of 1/16 with which the prover finds a proof, which is not verified; 0 if it is
        undecided with 1/16.

    Raises
    ------
    OutputError
        If the task has no statement, or robot, law, reference or a limit are not covered.

    Examples
    --------
    >>> largest_factor(task)                                    # doctest: +SKIP
    0.4375
    """
    statement, prove = statement_of(task), provers(task, edge)[0]
    low, width = 0.0, 0.5
    for k in range(STEPS):

        def report(done: int, total: int, k: int = k) -> None:
            if progress:
                progress((k + done / total) / STEPS)

        if prove(statement.scaled(low + width), report).status is Status.UNVERIFIED:
            low += width
        width /= 2
        report(1, 1)
    return low
