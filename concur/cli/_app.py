"""Commands and what they have in common: one line per error, exit status 0, 1 or 2."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console

from concur._version import __version__
from concur.errors import ConcurError
from concur.files import escape_output

# What a command does is imported when it runs, so that `--help` does not wait for it.

main = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="From a robot with a free base to a tracker running on its motors.",
)

STATUS = "Exit status: 0 yes, 1 no, 2 bad input."

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Write into a folder that holds other files than results; files of the same names are "
        "replaced.",
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"concur {__version__}")
        raise typer.Exit


@main.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Hold the commands together, also while there is one only."""


@main.command(
    epilog=f"Example: concur track examples/rover_arm.toml --out out/rover_arm\n\n{STATUS}"
)
def track(
    task: Annotated[Path, typer.Argument(help="Task file (.toml).")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; default out/<name of the file>.")
    ] = None,
    animation: Annotated[
        str | None,
        typer.Option(help="Write a moving picture too: gif, or mp4 where ffmpeg is installed."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, for machines.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Simulate although an assumption fails, to see what happens; the verdict stays "
            "failed, exit status 1.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Simulate a tracking task; write figures, run and report.

    The assumptions are audited first. The servo is simulated on the full-order plant. The exit
    status is 0 only if all assumptions hold and the task's tolerances, and the limits of the
    robot's joints, are kept. The folder then belongs to this run: results that an earlier run left
    there are removed when it starts.
    """
    folder = out or Path("out") / task.stem
    with _errors():
        from concur.cli._track import track_task

        console = Console(stderr=as_json, quiet=as_json)
        result = track_task(task, folder, animation, console, force, overwrite)
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2))
        raise typer.Exit(0 if result.passed else 1)


@main.command(epilog=f"Example: concur check rover_arm\n\n{STATUS}")
def check(
    robot: Annotated[str, typer.Argument(help="Robot file (.toml) or name of a shipped robot.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, for machines.")
    ] = False,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NAME,...",
            help="Reduce further by joints that nobody drives and that keep their momentum, at "
            "zero: auto for all of them; default none.",
        ),
    ] = None,
) -> None:
    """Check a robot: inertias, wheels, reduction, assumptions."""
    with _errors():
        from concur.cli._check import check_robot

        result = check_robot(robot, stages)
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2))
        else:
            result.show(Console())
        raise typer.Exit(0 if result.audit.holds else 1)


@main.command(
    epilog="Example: concur certify examples/free_floater.toml --angle 90 --out out/certificate"
    f"\n\n{STATUS}"
)
def certify(
    task: Annotated[Path, typer.Argument(help="Task file (.toml).")],
    angle: Annotated[
        float, typer.Option(help="Rotation error that must stay in reach, in degrees.")
    ] = 90.0,
    distance: Annotated[
        float | None,
        typer.Option(
            help="Position error that must stay in reach where rotations act on it, in m; "
            "default as the gains allow."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="tight, a search with a proof, or thesis, the constants of its theorem 5.4.2."
        ),
    ] = "tight",
    disturbance: Annotated[
        float | None,
        typer.Option(
            help="Acceleration of the outputs that the law does not know, in m/s^2, rotations by "
            "the channel's length: prove and draw the tubes that the errors stay in."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; default out/<name of the file>.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, for machines.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Prove how fast the errors of a task decay, and from where.

    Writes proof.json behind, which is verified anew at once, and figures. The exit status is 0
    only if all that is asked for is proved; 1 if it is refuted or undecided.
    """
    folder = out or Path("out") / task.stem
    with _errors():
        from concur.cli._certify import certify_task

        console = Console(stderr=as_json, quiet=as_json)
        result = certify_task(
            task, folder, angle, distance, method, console, disturbance, overwrite
        )
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2, allow_nan=False))
        raise typer.Exit(0 if result.proved else 1)


@main.command(
    epilog="Example: concur export examples/rover_arm.toml --out out/rover_arm/c"
    "\n\nExit status: 0 written, 2 bad input."
)
def export(
    task: Annotated[Path, typer.Argument(help="Task file (.toml).")],
    target: Annotated[str, typer.Option(help="c, for C99 without libraries; fmu.")] = "c",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the files; default out/<name of the file>/<target>."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="With what all names begin; default the robot's name.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="double, or single for controllers without double precision.")
    ] = "double",
    speed_limit: Annotated[
        float, typer.Option(help="Velocity above which C refuses a state, in m/s or rad/s.")
    ] = 1000.0,
    fmi: Annotated[str, typer.Option(help="Version of FMI of an fmu, 3.0 or 2.0.")] = "3.0",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, for machines.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the law of a task as C, or as a unit for simulators.

    A programme that tries the C comes with it. The README beside the code says how it is compiled,
    tried and used. An fmu is a unit for co-simulation that other simulators load.
    """
    folder = out or Path("out") / task.stem / target
    with _errors():
        from concur.cli._export import export_task

        result = export_task(task, target, folder, name, precision, speed_limit, fmi, overwrite)
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2))
        else:
            result.show(Console())


@contextmanager
def _errors() -> Iterator[None]:
    """Tell errors, and warnings about compilers, in one line each and without a place in code."""
    from concur.codegen import CompilerWarning

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
                _tell(f"note: {message}")
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = shown
        warnings.simplefilter("always", CompilerWarning)
        try:
            yield
        except ConcurError as error:
            _tell(str(error))
            raise typer.Exit(2) from None


def _tell(message: str) -> None:
    typer.echo(f"concur: {' '.join(message.split())}", err=True)
