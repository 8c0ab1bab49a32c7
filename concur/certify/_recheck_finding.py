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


@dataclass(frozen=True)
class Recheck:
    """What a stored file claims, and what of it was confirmed.

    Made by `recheck` where a servo is given.

    Parameters
    ----------
    status : Status
        PROVED: all that the file claims was confirmed, and it holds of the servo's law.
    reason : str
        Why it is not PROVED, with the place; empty when it is.
    kind : str
        "error dynamics", "tube" or "operating box".
    law : bool
        Whether the file is about the servo's law: its output groups and its gains, bit by bit.
    rate : float or None
        Rate that the file claims, 1/s; None without one.
    region : tuple of str
        Errors or configurations that the claim is about, one text for each channel or coordinate.
    claims : tuple of str
        What the file claims.
    """

    status: Status
    reason: str
    kind: str
    law: bool
    rate: float | None
    region: tuple[str, ...]
    claims: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.status.name}. {self.reason or self.status.value}"]
        lines.append(f"{self.kind}, {'of' if self.law else 'NOT of'} the servo's law")
        lines += [f"- claimed: {claim}" for claim in self.claims]
        return "\n".join([*lines, *(f"- where: {place}" for place in self.region)])


class Rejection(Exception):  # noqa: N818 - an answer, not an error
    """Ends the verification with an answer other than PROVED."""

    def __init__(self, status: Status, reason: str) -> None:
        self.finding = Finding(status, reason)
        super().__init__(reason)


def require(holds: bool, status: Status, reason: str) -> None:
    """End the verification with a status and a reason unless something holds."""
    if not holds:
        raise Rejection(status, reason)
