"""Commands of `concur-rig`: one line per error, exit status 0, 1 or 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hil._concur import application, documented, errors_in_lines

main = application(
    "Send torques of a servo to the drives of wheels and joints. A program can stop a rig in "
    "categories 1 (brake, then remove power) and 2 (hold) of IEC 60204-1 only: category 0, the "
    "emergency stop that removes power at once, must be wired.",
    markup="rich",
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


def _command(epilog: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command of a function, which may return a result to show."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(**given: Any) -> None:
            from rich.console import Console

            from hil._extras import require_extra

            with errors_in_lines("concur-rig"):
                require_extra()
                result = function(**given)
                if result is None:
                    return
                if given["as_json"]:
                    typer.echo(json.dumps(result.as_dict(), indent=2))
                else:
                    result.show(Console())
                raise typer.Exit(0 if result.passed else 1)

        main.command(epilog=epilog)(documented(run))
        return function

    return register


@_command(f"Example: concur-rig check examples/rover_rig/rig.toml\n\n{STATUS}")
def check(rig: RigFile, mock: bool = False, as_json: AsJson = False) -> Any:
    """Query identity and units of every drive; show the bus load.

    No drive is armed, and no torque is sent.

    Parameters
    ----------
    mock : bool
        Query emulated drives in this process.
    """
    from hil.cli._check import check_rig

    return check_rig(rig, mock)


@_command(
    "Example: concur-rig emulate examples/rover_rig/rig.toml --fault drop,turret,5,0.1"
    "\n\nExit status: 0 ended, 2 bad input."
)
def emulate(rig: RigFile, duration: float | None = None, fault: FaultOption = None) -> None:
    """Emulate a rig: drives in a separate process on the bus, which move the full-order robot.

    Parameters
    ----------
    duration : float, optional
        Duration in s; default: until interrupted.
    """
    from hil.cli._emulate import emulate_rig

    emulate_rig(rig, duration, fault or [])


@_command(f"Example: concur-rig listen examples/rover_rig/rig.toml\n\n{STATUS}")
def listen(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    as_json: AsJson = False,
) -> Any:
    """Record the commands of another controller, and check them with the guard; send nothing."""
    from hil.cli._run import run_rig

    return run_rig(rig, "listen", duration, out, dashboard, as_json)


@_command(f"Example: concur-rig shadow examples/rover_rig/rig.toml\n\n{STATUS}")
def shadow(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    as_json: AsJson = False,
) -> Any:
    """Compute commands in every cycle, beside another controller; send nothing."""
    from hil.cli._run import run_rig

    return run_rig(rig, "shadow", duration, out, dashboard, as_json)


@_command(
    "Example: concur-rig drive examples/rover_rig/rig.toml --emulate --yes\n\n"
    "Without --emulate and --mock, hold the space bar to keep the rig running. " + STATUS
)
def drive(
    rig: RigFile,
    duration: Duration = None,
    out: Folder = None,
    dashboard: Dashboard = None,
    emulate: bool = False,
    mock: bool = False,
    heartbeat: str | None = None,
    token: Annotated[str, typer.Option(envvar="CONCUR_RIG_TOKEN")] = "",
    reset: bool = False,
    yes: bool = False,
    fault: FaultOption = None,
    as_json: AsJson = False,
) -> Any:
    """Run the task on the rig: arm, track, stop, record.

    Shows the torque bound of the certificate beside the limits of the rig, and asks for
    confirmation. Writes a record with a report. The exit status is 0 only if the task was
    completed.

    Parameters
    ----------
    emulate : bool
        Also start an emulated rig on the bus, in a separate process.
    mock : bool
        Use emulated drives in this process, in simulated time, without a bus.
    heartbeat : str, optional
        Source of the heartbeat: keys, the space bar held in this terminal (default); port, a
        pendant; auto, automatic, for emulated rigs only (default with --emulate).
    token : str
        Secret of the pendant, with --heartbeat port; default: random. Other users of the machine
        can see the option, but not the environment variable.
    reset : bool
        Clear earlier faults of the drives.
    yes : bool
        Confirm the torque limits without a prompt.
    """
    from hil.cli._run import run_rig

    return run_rig(
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


@_command(f"Example: concur-rig commission examples/rover_rig/rig.toml --mock\n\n{STATUS}")
def commission(
    rig: RigFile,
    mock: bool = False,
    out: Path | None = None,
    heartbeat: str | None = None,
    token: Annotated[str, typer.Option(envvar="CONCUR_RIG_TOKEN")] = "",
    reset: bool = False,
    yes: bool = False,
    fault: FaultOption = None,
    as_json: AsJson = False,
) -> Any:
    """Push each axis a little, compare its motion with the model, and permit to drive.

    The robot is held at the start of its task. The result is written beside the rig file;
    `drive` requires it, and the drives with which it was made.

    Parameters
    ----------
    mock : bool
        Use emulated drives in this process, in simulated time, without a bus.
    out : path, optional
        File of the result; default: beside the rig file, with --mock none.
    heartbeat : str, optional
        Source of the heartbeat: keys, the space bar held in this terminal (default); port, a
        pendant.
    token : str
        Secret of the pendant, with --heartbeat port; default: random.
    reset : bool
        Clear earlier faults of the drives.
    yes : bool
        Confirm the torque limits without a prompt.
    """
    from hil.cli._commission import commission_rig

    return commission_rig(
        rig,
        mock,
        out,
        as_json,
        heartbeat=heartbeat,
        token=token,
        reset=reset,
        yes=yes,
        faults=fault,
    )


@_command(
    "Example: concur-rig export examples/rover_rig/rig.toml --out rover_c\n\n"
    "Exit status: 0 success, 2 bad input."
)
def export(
    rig: RigFile,
    out: Annotated[Path, typer.Option(help="Folder of the code.")] = Path("rig_c"),
    as_json: AsJson = False,
) -> Any:
    """Write the cycle of a rig in C99: estimator, law, guard and stop; for loops of your own."""
    from hil.rig import load_rig
    from hil.spine import export_rig

    return export_rig(load_rig(rig), out)


@_command(
    "Example: concur-rig bench examples/rover_rig/rig.toml --rate 1000\n\n"
    "Exit status: 0 the machine holds the rate, 1 it does not, 2 bad input."
)
def bench(
    rig: RigFile,
    rate: Annotated[float | None, typer.Option(min=1.0, max=10000.0)] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=86400.0)] = 10.0,
    out: Path | None = None,
    as_json: AsJson = False,
) -> Any:
    """Measure which rate the cycle in C holds on this machine, with emulated CiA 402 drives.

    Parameters
    ----------
    rate : float, optional
        Rate in Hz; default: that of the rig.
    seconds : float
        Duration in s.
    out : path, optional
        Folder of a record of the run, for `replay`; default: no record.
    """
    from hil.rig import load_rig
    from hil.spine import bench_rig

    return bench_rig(load_rig(rig), rate, seconds, out)


@_command(f"Example: concur-rig replay rig-records/rover-20260101-120000\n\n{STATUS}")
def replay(
    record: Path,
    rig: Path | None = None,
    out: Path | None = None,
    mcap: bool = False,
    hdf5: bool = False,
    force: bool = False,
    allow_code: bool = False,
    as_json: AsJson = False,
) -> Any:
    """Recompute every cycle of a record with the same code, and compare.

    Rig, task and robot are read from the copies in the record; no file outside of its folder is
    read. Missing, damaged or surplus rows give exit status 1.

    Parameters
    ----------
    record : path
        Folder of a record.
    rig : path, optional
        Rig file; default: the copy in the record.
    out : path, optional
        Folder of the report; default: that of the record.
    mcap : bool
        Also write the record as MCAP, for log viewers.
    hdf5 : bool
        Also write the record as HDF5.
    force : bool
        Replay even if rig, robot or law differ.
    allow_code : bool
        Run the drive modules in the record, which are code of its author.
    """
    from hil.cli._replay import replay_record

    return replay_record(record, rig, out, mcap, hdf5, force, allow_code)
