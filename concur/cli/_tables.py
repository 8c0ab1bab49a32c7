"""Tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.reduction import Audit, AuditRow, AuditStatus
from concur.simulation import Finding

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


def show_audit(audit: Audit, console: Console, every: bool) -> None:
    """Print the same."""
    for part in shown_audit(audit, every):
        console.print(part, highlight=False)


def _audit_table(rows: Iterable[AuditRow]) -> Table:
    """Table of assumptions with their evidence."""
    table = Table(title="Assumptions", title_justify="left")
    for title in ("", "", "assumption", "evidence"):
        table.add_column(title)
    for row in rows:
        table.add_row(row.id, MARKS[row.status], escape(row.statement), escape(row.why))
    return table


def findings_table(title: str, found: Iterable[Finding]) -> Table:
    """Table of the numbers of a run and their limits."""
    table = Table(title=escape(title), title_justify="left")
    table.add_column("")
    table.add_column("measured", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("kept")
    rows = list(found)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        table.add_row(
            escape(row.label),
            row.shown,
            escape(row.shown_limit),
            MARKS[row.holds],
            end_section=following is not None and following.numerical != row.numerical,
        )
    return table


def show_warnings(warnings: Iterable[str], console: Console) -> None:
    """Print warnings about suspicious values."""
    for warning in warnings:
        console.print(f"[bold yellow]warning[/]: {escape(warning)}", highlight=False)


def audit_dict(audit: Audit) -> list[dict[str, Any]]:
    """Audit for JSON."""
    return [
        {"id": r.id, "statement": r.statement, "status": r.status.value, "why": r.why}
        for r in audit
    ]
