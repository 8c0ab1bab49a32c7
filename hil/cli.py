"""Command line of the rig."""

from __future__ import annotations

from typing import Annotated

import typer

main = typer.Typer(add_completion=False)


@main.command(context_settings={"ignore_unknown_options": True}, no_args_is_help=False)
def refuse(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="Any command; none exists yet."),
    ] = None,
) -> None:
    """Drive a rig with the servo that was simulated. This version has no drive commands yet.

    Whatever command is given, nothing is opened, sent or armed, and the exit status is 2.

    A program can stop a rig only in categories 1 (damp, then remove power) and 2 (hold) of
    IEC 60204-1. Category 0, the emergency stop that removes power at once, must be wired.
    """
    asked = " ".join(["concur-rig", *(words or [])])
    typer.echo(
        f"{asked}: expected a version with drive commands, got one without any. "
        "Simulate with `concur track TASK.toml` instead.",
        err=True,
    )
    raise typer.Exit(2)
