"""Results of `recheck`, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from concur.certify._recheck_conditions import texts
from concur.certify._status import Status


@dataclass(frozen=True)
class Recheck:
    """Claims of a stored file, and whether they were confirmed.

    Returned by `examine`, and by `concur.recheck` when a servo or a task is given.

    Parameters
    ----------
    status : Status
        PROVED: every claim of the file was confirmed, and the law is the servo's.
    reason : str
        Explanation, with the place, why it is not PROVED; empty when PROVED.
    kind : str
        "error dynamics", "integral action", "tube", "operating box" or "task"; "unread" of a file
        that needs too much work.
    law : bool or None
        Whether the file is about the servo's law: its output groups and its gains, bit by bit. Of
        the proof of a task, whether it is about the servo and the task that were given. None if
        none was given.
    rate : float or None
        Claimed rate, 1/s; None without one.
    region : tuple of str
        Errors or configurations that the claims cover, one text per channel or coordinate.
    claims : tuple of str
        Claims of the file.
    conditions : tuple of str
        Conditions of the claims of a certificate, as stated in the file.
    """

    status: Status
    reason: str
    kind: str
    law: bool | None
    rate: float | None
    region: tuple[str, ...]
    claims: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.status.name}. {self.reason or self.status.value}"]
        given = "given task" if self.kind == "task" else "servo's law"
        about = "" if self.law is None else f", {'of' if self.law else 'NOT of'} the {given}"
        lines.append(f"{self.kind}{about}")
        lines += [f"- claimed: {claim}" for claim in self.claims]
        lines += [f"- where: {place}" for place in self.region]
        return "\n".join([*lines, *texts(self.conditions)])


class Rejection(Exception):  # noqa: N818 - a result, not an error
    """Ends the verification with a status other than PROVED."""

    def __init__(self, status: Status, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)


def require(holds: bool, status: Status, reason: str) -> None:
    """End the verification with a status and a reason unless `holds` is true."""
    if not holds:
        raise Rejection(status, reason)
