"""Answers of commands: printed, as JSON, and as exit status, the same for all commands."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from concur.errors import ConcurError
from concur.files import escape_output
from concur.results import Row, Table, answer, word

YES = ("passed", "written", "PROVED")
"""Statuses with which a command ends with 0."""

MARKS = {True: "[green]yes[/]", False: "[bold red]no[/]", None: ""}

WIDE = 8
"""Number of columns from which on they stand close, so that 80 characters hold their numbers."""

_PATIENCE = 2.0
"""Seconds before a progress bar is shown."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A verdict with its evidence.

    Printed are the verdict, the warnings, the rows, what `shown` adds, the problems and the files.
    """

    status: str | Enum
    name: str = ""
    robot: str = ""
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    files: Sequence[Path] = ()
    rows: Sequence[Row] = ()
    own: Mapping[str, Any] = field(default_factory=dict)  # further fields of the JSON
    shown: Sequence[str | Table] = ()  # further lines and tables for the terminal
    verdict: str = ""  # printed in place of the status
    listed: Sequence[Row] | None = None  # rows to print; all by default

    @classmethod
    def of(cls, result: Any, **given: Any) -> Answer:
        """Take verdict, rows, problems, tables, notes and further fields of a result."""
        own = {name: getattr(result, name, ()) for name in ("status", "rows", "problems")}
        shown = (*getattr(result, "tables", ()), *getattr(result, "notes", ()))
        own |= {"own": getattr(result, "details", {}), "shown": shown}
        return cls(**{**own, **given})

    @property
    def passed(self) -> bool:
        """Whether the answer is yes."""
        return word(self.status) in YES

    def show(self, console: Console) -> None:
        """Print the answer."""
        color = "bold green" if self.passed else "bold red"
        head = f"[bold]{escape(self.name)}[/]: " if self.name else ""
        verdict = escape(self.verdict or word(self.status))
        console.print(f"{head}[{color}]{verdict}[/]", highlight=False)
        for text in self.warnings:
            _warn(console, text)
        for part in (rows_table(self.rows if self.listed is None else self.listed), *self.shown):
            if isinstance(part, str):
                console.print(escape(part), highlight=False, soft_wrap=True)
            elif part.rows:
                console.print(_grid(part))
        for text in self.problems:
            console.print(f"[bold red]no[/]: {escape(text)}", highlight=False, soft_wrap=True)
        for path in self.files:
            console.print(escape(str(path)), highlight=False, soft_wrap=True)


def rows_table(rows: Sequence[Row]) -> Table:
    """Table of rows; a column that is empty is left out."""
    heads = ("quantity", "value", "limit, where", "kept")
    lines = [
        (r.quantity, r.shown, "; ".join(filter(None, (r.shown_limit, r.place))), r.holds)
        for r in rows
    ]
    used = [k for k in range(len(heads)) if any(line[k] not in ("", None) for line in lines)]
    cells = tuple(tuple(line[k] for k in used) for line in lines)
    return Table("", tuple(heads[k] for k in used), cells)


def _grid(table: Table) -> Grid:
    """Table for the terminal; columns of numbers are aligned to the right."""
    room = (0, 1 if len(table.head) < WIDE else 0)
    grid = Grid(title=table.title or None, title_justify="left", padding=room)
    for title, column in zip(table.head, zip(*table.rows, strict=True), strict=True):
        texts = [cell for cell in column if cell]
        numbers = all(isinstance(text, str) and text[0] in "-0123456789" for text in texts)
        if numbers and texts:  # never cut
            grid.add_column(escape(title), justify="right", min_width=max(map(len, texts)))
        else:
            grid.add_column(escape(title))
    for row in table.rows:
        grid.add_row(*(escape(cell) if isinstance(cell, str) else MARKS[cell] for cell in row))
    return grid


def _warn(console: Console, text: str) -> None:
    console.print(f"[bold yellow]warning[/]: {escape(text)}", highlight=False)


class Reply:
    """Caller of a command: where it prints, shows its progress, and how it ends."""

    def __init__(self, command: str, as_json: bool) -> None:
        self.command, self.as_json = command, as_json
        self.console = Console(stderr=as_json, quiet=as_json)

    def end(self, found: Answer | None) -> None:
        """Print an answer; raise its exit status."""
        if found is None:
            return
        if self.as_json:
            typer.echo(json.dumps(self.document(found), indent=2, allow_nan=False))
        else:
            found.show(self.console)
        raise typer.Exit(0 if found.passed else 1)

    def document(self, found: Answer) -> dict[str, Any]:
        """Answer as JSON."""
        return answer(
            self.command, found.passed, word(found.status), name=found.name, robot=found.robot,
            problems=found.problems, warnings=found.warnings, files=found.files, rows=found.rows,
            own=found.own,
        )  # fmt: skip

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Print errors, and warnings about compilers, in one line; with JSON also as an answer."""
        with errors_in_lines("concur"):
            try:
                yield
            except ConcurError as error:
                if self.as_json:
                    found = answer(self.command, False, "error", problems=[str(error)])
                    typer.echo(json.dumps(found, indent=2))
                raise

    @contextmanager
    def warned(self, texts: Sequence[str]) -> Iterator[None]:
        """Print warnings about suspicious values if an error ends the command."""
        try:
            yield
        except ConcurError:
            for text in texts:
                _warn(self.console, text)
            raise

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[..., None]]:
        """Show a bar for a longer calculation, with an estimate of the time left.

        The callable takes the part that is done, or a number of steps and their total.
        """
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn()
        bar = Progress(*columns, TimeElapsedColumn(), console=self.console, transient=True)
        work, began = bar.add_task(title, total=None), time.perf_counter()
        # A timer, because the first report may come late.
        timer = threading.Timer(_PATIENCE, bar.start)
        timer.daemon = True

        def report(done: float, total: float = 1.0) -> None:
            left = time_left(time.perf_counter() - began, done / total)
            bar.update(work, completed=done, total=total, description=title + left)

        # Only on a terminal: in a file a removed bar would leave empty lines.
        if self.console.is_terminal:
            timer.start()
        try:
            yield report
        finally:
            timer.cancel()
            if self.console.is_terminal:
                timer.join()
            if bar.live.is_started:
                bar.stop()


@contextmanager
def errors_in_lines(program: str) -> Iterator[None]:
    """Print errors, and warnings about compilers, in one line each; an error has exit status 2.

    Parameters
    ----------
    program : str
        Name of the program, with which each line begins.

    Yields
    ------
    None
        While a command runs.
    """
    from concur.codegen import CompilerWarning

    def line(message: str) -> None:
        typer.echo(f"{program}: {' '.join(message.split())}", err=True)

    escape_output()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def shown(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, CompilerWarning):
                line(f"note: {message}")
            else:
                others(message, category, *place, **more)

        warnings.showwarning = shown
        warnings.simplefilter("always", CompilerWarning)
        try:
            yield
        except ConcurError as error:
            for text in (str(error), *getattr(error, "__notes__", ())):
                line(text)
            raise typer.Exit(2) from None


def time_left(taken: float, part: float) -> str:
    """Estimate of the time left from the time taken (s) for a part of the work, in words."""
    if not 0.0 < part < 1.0:
        return ""
    rest = taken * (1.0 - part) / part
    return f", about {rest:.0f} s left" if rest < 120.0 else f", about {rest / 60:.0f} min left"
