"""Limit of the work of the checker of proofs of tasks, which ends on every file.

Work is counted, not timed, before it is done: a file needs the same on all machines. One unit is
about a microsecond of one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from concur.proofs._recheck_smooth import require

WORK = 4e9
"""Default limit, about an hour; the shipped rover takes a twelfth of it."""

_left: ContextVar[list[float] | None] = ContextVar("work left to the checker", default=None)


@contextmanager
def limited(work: float) -> Iterator[None]:
    """Limit the work of a verification in this context."""
    token = _left.set([float(work)])
    try:
        yield
    finally:
        _left.reset(token)


def spend(units: float) -> None:
    """Count work before it is done; end the verification if it exceeds the rest."""
    left = _left.get()
    if left is None:
        return
    require(units <= left[0], "the file needs more work than allowed; try a larger `work`")
    left[0] -= units
