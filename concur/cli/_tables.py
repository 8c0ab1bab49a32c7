"""Tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.errors import ConcurError
from concur.reduction import Audit, AuditRow, AuditStatus

MARKS = {
    True: "[green]yes[/]",
    False: "[bold red]no[/]",
    None: "",
    AuditStatus.HOLDS: "[green]holds[/]",
    AuditStatus.FAILS: "[bold red]fails[/]",
    AuditStatus.NOT_NEEDED: "not needed",
    AuditStatus.NOT_CHECKED: "[yellow]not checked[/]",
}


def applicable(audit: Audit) -> tuple[AuditRow, ...]:
    """Rows that apply to this robot: all but unchecked ones among NHR1 to NHR3."""
    unchecked = AuditStatus.NOT_CHECKED
    return tuple(row for row in audit if not (row.id.startswith("NHR") and row.status is unchecked))


def shown_audit(audit: Audit, every: bool) -> list[str | Table]:
    """How many assumptions hold, with the table of all of them or of those that fail."""
    counts = Counter(row.status.value for row in applicable(audit))
    verbs = {"holds": "hold", "fails": "fail"}
    parts = [f"{count} {verbs.get(status, status)}" for status, count in counts.items()]
    held = counts["holds"]
    text = (
        f"{held} assumptions hold" if held == counts.total() else f"assumptions: {', '.join(parts)}"
    )
    rows = applicable(audit) if every else audit.failures
    return [
        text + ("" if every else "; `--audit` lists them"),
        *([_audit_table(rows)] * bool(rows)),
    ]


def _audit_table(rows: Iterable[AuditRow]) -> Table:
    """Table of assumptions with their evidence."""
    table = Table(title="Assumptions", title_justify="left")
    for title in ("", "", "assumption", "evidence"):
        table.add_column(title)
    for row in rows:
        table.add_row(row.id, MARKS[row.status], escape(row.statement), escape(row.why))
    return table


@contextmanager
def warned(warnings: Sequence[str], console: Console) -> Iterator[None]:
    """Print warnings about suspicious values if an error ends the command."""
    try:
        yield
    except ConcurError:
        for warning in warnings:
            console.print(f"[bold yellow]warning[/]: {escape(warning)}", highlight=False)
        raise


def audit_dict(audit: Audit) -> list[dict[str, Any]]:
    """Audit for JSON."""
    return [
        {"id": r.id, "statement": r.statement, "status": r.status.value, "why": r.why}
        for r in audit
    ]
