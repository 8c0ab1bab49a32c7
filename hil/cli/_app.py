"""Commands of `concur-rig`: one line per error, exit status 0, 1 or 2."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hil._concur import CompilerWarning, ConcurError, concur_version, escape_output

main = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Send torques of a servo to the drives of wheels and joints. A program can stop a rig in "
    "categories 1 (brake, then remove power) and 2 (hold) of IEC 60204-1 only: category 0, the "
    "emergency stop that removes power at once, must be wired.",
)

STATUS = "Exit status: 0 success, 1 failure, 2 bad input."

RigFile = Annotated[Path, typer.Argument(help="Rig file (.toml).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Duration = Annotated[
    float | None, typer.Option(help="Duration of the run in s; default: that of the task.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of the record; default: rig-records/<rig and time>."),
]
Dashboard = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Port of the dashboard, a local web page of the run."),
]
FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="KIND,AXIS,AT,FOR",
        help="Injected fault of an emulated rig: kind, axis or *, start and duration in s. May be "
        "given several times.",
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"concur {concur_version}")
        raise typer.Exit


@main.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Define the options of all commands."""


@main.command(epilog=f"Example: concur-rig check examples/rover_rig/rig.toml\n\n{STATUS}")
def check(
    rig: RigFile,
    mock: Annotated[
        bool, typer.Option("--mock", help="Query emulated drives in this process.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Query identity and units of every drive; show the bus load.

    No drive is armed, and no torque is sent.
    """
    with _errors():
        from hil.cli._check import check_rig

        _finish(check_rig(rig, mock), as_json)


@main.command(
    epilog="Example: concur-rig emulate examples/rover_rig/rig.toml --fault drop,turret,5,0.1"
    "\n\nExit status: 0 ended, 2 bad input."
)
def emulate(
    rig: RigFile,
    duration: Annotated[
        float | None, typer.Option(help="Duration in s; default: until interrupted.")
    ] = None,
    fault: FaultOption = None,
) -> None:
    """Emulate a rig: drives in a separate process on the bus, which move the full-order robot."""
    with _errors():
        from hil.cli._emulate import emulate_rig

        emulate_rig(rig, duration, fault or [])


@main.command(epilog=f"Example: concur-rig listen examples/rover_rig/rig.toml\n\n{STATUS}")
def listen(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    as_json: AsJson = False,
) -> None:
    """Record the commands of another controller, and check them with the guard; send nothing."""
    with _errors():
        from hil.cli._run import run_rig

        _finish(run_rig(rig, "listen", duration, out, dashboard, as_json), as_json)


@main.command(epilog=f"Example: concur-rig shadow examples/rover_rig/rig.toml\n\n{STATUS}")
def shadow(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    as_json: AsJson = False,
) -> None:
    """Compute commands in every cycle, beside another controller; send nothing."""
    with _errors():
        from hil.cli._run import run_rig

        _finish(run_rig(rig, "shadow", duration, out, dashboard, as_json), as_json)


@main.command(
    epilog="Example: concur-rig drive examples/rover_rig/rig.toml --emulate --yes\n\n"
    "Without --emulate and --mock, hold the space bar to keep the rig running. " + STATUS
)
def drive(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate", help="Also start an emulated rig on the bus, in a separate process."
        ),
    ] = False,
    mock: Annotated[
        bool,
        typer.Option(
            "--mock", help="Use emulated drives in this process, in simulated time, without a bus."
        ),
    ] = False,
    heartbeat: Annotated[
        str | None,
        typer.Option(
            help="Source of the heartbeat: keys, the space bar held in this terminal (default); "
            "port, a pendant; auto, automatic, for emulated rigs only (default with --emulate)."
        ),
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            envvar="CONCUR_RIG_TOKEN",
            help="Secret of the pendant, with --heartbeat port; default: random. Other users of "
            "the machine can see the option, but not the environment variable.",
        ),
    ] = "",
    reset: Annotated[
        bool, typer.Option("--reset", help="Clear earlier faults of the drives.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm the torque limits without a prompt.")
    ] = False,
    fault: FaultOption = None,
    as_json: AsJson = False,
) -> None:
    """Run the task on the rig: arm, track, stop, record.

    Shows the torque bound of the certificate beside the limits of the rig, and asks for
    confirmation. Writes a record with a report. The exit status is 0 only if the task was
    completed.
    """
    with _errors():
        from hil.cli._run import run_rig

        result = run_rig(
            rig,
            "mock" if mock else "drive",
            duration,
            out,
            dashboard,
            as_json,
            emulate=emulate,
            heartbeat=heartbeat,
            token=token,
            reset=reset,
            yes=yes,
            faults=fault or [],
        )
        _finish(result, as_json)


@main.command(epilog=f"Example: concur-rig replay rig-records/rover-20260101-120000\n\n{STATUS}")
def replay(
    record: Annotated[Path, typer.Argument(help="Folder of a record.")],
    rig: Annotated[
        Path | None, typer.Option(help="Rig file; default: the copy in the record.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report; default: that of the record.")
    ] = None,
    mcap: Annotated[
        bool, typer.Option("--mcap", help="Also write the record as MCAP, for log viewers.")
    ] = False,
    hdf5: Annotated[bool, typer.Option("--hdf5", help="Also write the record as HDF5.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replay even if rig, robot or law differ.")
    ] = False,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            help="Run the drive modules in the record, which are code of its author.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute every cycle of a record with the same code, and compare.

    Rig, task and robot are read from the copies in the record; no file outside of its folder is
    read. Missing, damaged or surplus rows give exit status 1.
    """
    with _errors():
        from hil.cli._replay import replay_record

        result = replay_record(record, rig, out, mcap, hdf5, force, allow_code)
        _finish(result, as_json)


def _finish(result: Any, as_json: bool) -> None:
    """Show a result and exit with its status."""
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=2))
    else:
        result.show(Console())
    raise typer.Exit(0 if result.passed else 1)


@contextmanager
def _errors() -> Iterator[None]:
    """Print errors, and warnings about compilers, in one line each without a traceback."""
    from hil._extras import require_extra

    escape_output()
    with warnings.catch_warnings():
        warnings.simplefilter("always", CompilerWarning)
        others = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, CompilerWarning):
                _print_line(f"note: {message}")
            else:
                others(message, category, *rest, **more)

        warnings.showwarning = shown
        try:
            require_extra()
            yield
        except ConcurError as error:
            _print_line(str(error))
            for note in getattr(error, "__notes__", ()):
                _print_line(note)
            raise typer.Exit(2) from None


def _print_line(message: str) -> None:
    typer.echo(f"concur-rig: {' '.join(message.split())}", err=True)
