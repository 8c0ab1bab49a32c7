"""What commands print of errors and warnings: one line each."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from concur.errors import ConcurError
from concur.files import escape_output


@contextmanager
def errors(command: str | None = None) -> Iterator[None]:
    """Print errors, and warnings about compilers, in one line each and without a code location.

    With the name of a command, its answer in JSON reports an error too.
    """
    from concur.codegen import CompilerWarning
    from concur.results import answer

    escape_output()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def shown(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, CompilerWarning):
                _print_line(f"note: {message}")
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = shown
        warnings.simplefilter("always", CompilerWarning)
        try:
            yield
        except ConcurError as error:
            _print_line(str(error))
            if command is not None:
                typer.echo(
                    json.dumps(answer(command, False, "error", problems=[str(error)]), indent=2)
                )
            raise typer.Exit(2) from None


def _print_line(message: str) -> None:
    typer.echo(f"concur: {' '.join(message.split())}", err=True)
