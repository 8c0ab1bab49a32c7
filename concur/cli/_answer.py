"""Answers of commands: printed, as JSON, and as exit status, the same for all commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.cli._errors import errors
from concur.results import Row
from concur.results import answer as document

MARKS = {True: "[green]yes[/]", False: "[bold red]no[/]", None: ""}


NO_TABLE = Table()
"""In place of the table of rows, if other tables show them."""

COMMON_OF_CALLS = ("name", "robot", "problems", "warnings", "files", "rows")


def answer(command: str, passed: bool, status: str, **fields: Any) -> dict[str, Any]:
    """Answer as JSON from its fields."""
    common = {name: fields.pop(name) for name in COMMON_OF_CALLS if name in fields}
    return document(command, passed, status, **common, own=fields)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A verdict with its evidence.

    Printed are the verdict, the warnings, the rows, what `shown` adds, the problems and the files.
    """

    command: str
    passed: bool = True
    status: str = ""
    name: str = ""
    robot: str = ""
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    files: Sequence[Path] = ()
    rows: Sequence[Row] = ()
    own: Mapping[str, Any] = field(default_factory=dict)  # further fields of the JSON
    shown: Sequence[str | Table] = ()  # further lines and tables for the terminal
    verdict: str = ""  # printed in place of the status
    table: Table | None = None  # in place of the one of the rows

    def as_dict(self) -> dict[str, Any]:
        """Answer as JSON."""
        return document(
            self.command, self.passed, self.status, name=self.name, robot=self.robot,
            problems=self.problems, warnings=self.warnings, files=self.files, rows=self.rows,
            own=self.own,
        )  # fmt: skip

    def show(self, console: Console) -> None:
        """Print the answer."""
        color = "bold green" if self.passed else "bold red"
        head = f"[bold]{escape(self.name)}[/]: " if self.name else ""
        console.print(f"{head}[{color}]{escape(self.verdict or self.status)}[/]", highlight=False)
        for text in self.warnings:
            console.print(f"[bold yellow]warning[/]: {escape(text)}", highlight=False)
        table = rows_table(self.rows) if self.table is None else self.table
        if table.columns:
            console.print(table)
        for part in self.shown:
            one = escape(part) if isinstance(part, str) else part
            console.print(one, highlight=False, soft_wrap=isinstance(part, str))
        for text in self.problems:
            console.print(f"[bold red]no[/]: {escape(text)}", highlight=False, soft_wrap=True)
        for path in self.files:
            console.print(escape(str(path)), highlight=False, soft_wrap=True)


def rows_table(rows: Sequence[Row], title: str = "") -> Table:
    """Table of rows; a column that is empty is left out."""
    cells = [
        (escape(row.quantity), escape(row.shown),
         escape("; ".join(filter(None, (row.shown_limit, row.place)))), MARKS[row.holds])
        for row in rows
    ]  # fmt: skip
    heads = ("quantity", "value", "limit, where", "kept")
    used = [k for k in range(len(heads)) if any(line[k] for line in cells)]
    table = Table(title=title or None, title_justify="left")
    for k in used:
        table.add_column(heads[k], justify="right" if heads[k] == "value" else "left")
    for line in cells:
        table.add_row(*(line[k] for k in used))
    return table


class Reply:
    """Prints the answer of a command, and ends it with its exit status."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(stderr=as_json, quiet=as_json)

    def __call__(self, found: Answer) -> NoReturn:
        """Print an answer; raise the exit status."""
        if self.as_json:
            typer.echo(json.dumps(found.as_dict(), indent=2, allow_nan=False))
        else:
            found.show(self.console)
        raise typer.Exit(0 if found.passed else 1)


@contextmanager
def answering(command: str, as_json: bool) -> Iterator[Reply]:
    """Run a command, which calls what this yields with its answer."""
    with errors(command if as_json else None):
        yield Reply(as_json)
