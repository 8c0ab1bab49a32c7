"""How much a verification may do: a file that asks for more is left undecided, in bounded time.

What is counted depends on the file alone, not on the machine: an answer is the same everywhere.
One unit is about a microsecond of one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from concur.certify._recheck_finding import Rejection
from concur.certify._status import Status

WORK = 100_000_000
"""Units that a file may take by default, some minutes; the longest proof known takes a third."""

LARGEST_FILE = 2**24
"""Bytes of the largest file that is read, 16 MiB; proofs of the package have a few at most."""

_left: ContextVar[float | None] = ContextVar("work left to a verification", default=None)


@contextmanager
def limited(work: float) -> Iterator[None]:
    """Limit the work of the verification inside."""
    token = _left.set(float(work))
    try:
        yield
    finally:
        _left.reset(token)


def spend(units: float) -> None:
    """Count work before it is done; reject with UNDECIDED if it is more than is left."""
    left = _left.get()
    if left is None:
        return
    if units > left:
        raise Rejection(
            Status.UNDECIDED,
            "the file needs more work than is allowed; a larger `work` may do",
        )
    _left.set(left - units)


def fraction_cost(bits: int) -> float:
    """Units of one sum or product of fractions with so many bits in numerator and denominator.

    Their common divisor takes longest, and grows with the square of the length.
    """
    return 4.0 + 3e-6 * bits * bits
