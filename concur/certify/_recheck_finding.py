"""Answers of `recheck`, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from concur.certify._status import Status


@dataclass(frozen=True)
class Finding:
    """What a verification came to.

    Parameters
    ----------
    status : Status
        The answer.
    reason : str
        Why it is not PROVED, with the place; empty when it is.
    """

    status: Status
    reason: str = ""


class Rejection(Exception):  # noqa: N818 - an answer, not an error
    """Ends the verification with an answer other than PROVED."""

    def __init__(self, status: Status, reason: str) -> None:
        self.finding = Finding(status, reason)
        super().__init__(reason)


def require(holds: bool, status: Status, reason: str) -> None:
    """End the verification unless something holds.

    Parameters
    ----------
    holds : bool
        What has to hold.
    status : Status
        The answer when it does not.
    reason : str
        What does not hold, with its place.

    Raises
    ------
    Rejection
        With that answer.
    """
    if not holds:
        raise Rejection(status, reason)
