"""Limit of the work of a verification: a file that needs more stays UNDECIDED, in bounded time.

The count depends on the file alone, so results are the same on all machines. One unit is about a
microsecond of one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from concur.certify._recheck_finding import Rejection
from concur.certify._status import Status

WORK = 100_000_000
"""Default limit, some minutes; the longest known proof takes a third of it."""

LARGEST_FILE = 2**24
"""Bytes of the largest file that is read, 16 MiB; proofs of the package have a few MiB at most."""

_left: ContextVar[float | None] = ContextVar("work left to a verification", default=None)


@contextmanager
def limited(work: float) -> Iterator[None]:
    """Limit the work of a verification in this context."""
    token = _left.set(float(work))
    try:
        yield
    finally:
        _left.reset(token)


def spend(units: float) -> None:
    """Count work before it is done; reject with UNDECIDED if it exceeds the rest."""
    left = _left.get()
    if left is None:
        return
    if units > left:
        raise Rejection(
            Status.UNDECIDED,
            "the file needs more work than allowed; try a larger `work`",
        )
    _left.set(left - units)


def fraction_cost(bits: int) -> float:
    """Units of one sum or product of fractions with so many bits in numerator and denominator.

    The greatest common divisor dominates; its cost grows with the square of the length.
    """
    return 4.0 + 3e-6 * bits * bits
