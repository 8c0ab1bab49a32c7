"""Many cases of one kind in one test."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

Case = TypeVar("Case")


def each(cases: Collection[Case], check: Callable[[Case], object]) -> None:
    """Check all cases, and report all that fail.

    Parameters
    ----------
    cases : collection
        The cases, at least one.
    check : callable
        Raises an AssertionError for a case that fails.
    """
    assert cases
    failed = []
    for case in cases:
        try:
            check(case)
        except AssertionError as error:
            error.add_note(f"Case: {case!r}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(cases)} cases fail", failed)
