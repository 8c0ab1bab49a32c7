"""Options that several commands have: their checks, and what they print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from concur.errors import ConcurError, UnknownNameError

if TYPE_CHECKING:
    from concur.reduction import Audit
    from concur.results import Row

LARGEST = 1e9
"""Largest number of an option."""


def within(name: str, value: float | None, most: float = LARGEST, unit: str = "") -> None:
    """Demand a number above zero, if one is given."""
    if value is not None and not 0.0 < value <= most:
        raise ConcurError(
            f"option `--{name}`",
            expected=f"a number above 0, at most {most:g} {unit}".rstrip(),
            came=f"{value:g}",
            cure=f"See `concur --help`: the default of --{name} suits most tasks.",
        )


def one_of(name: str, value: str | None, known: Sequence[str]) -> None:
    """Demand one of several words, if one is given."""
    if value is not None and value not in known:
        raise UnknownNameError(
            f"option `--{name}`",
            expected=" or ".join(known),
            came=repr(value),
            cure=f"Write for example --{name} {known[0]}.",
        )


def listed(audit: Audit, every: bool) -> tuple[Row, ...]:
    """Assumptions to print: all that apply with --audit, otherwise those that fail."""
    shown = {row.id for row in (audit.applicable if every else audit.failures)}
    return tuple(row for one, row in zip(audit, audit.rows, strict=True) if one.id in shown)


def held(audit: Audit, every: bool) -> str:
    """Say how many assumptions hold, fail, are not needed or not checked."""
    verbs = {"holds": "hold", "fails": "fail"}
    counts = Counter(row.status.value for row in audit.applicable)
    parts = (f"{count} {verbs.get(status, status)}" for status, count in counts.items())
    text = f"assumptions: {', '.join(parts)}"
    if counts.keys() == {"holds"}:
        text = f"{counts.total()} assumptions hold"
    return text + ("" if every else "; `--audit` lists them")
