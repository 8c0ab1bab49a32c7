"""Commands of the command line: one line per error, exit status 0, 1 or 2."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from enum import Enum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console

from concur._threads import LIMITS
from concur._version import __version__
from concur.cli._answer import answering
from concur.cli._errors import errors

# Commands import their code when they run, so that `--help` is fast.

GROUPS = {
    "Describe and check": {
        "new": "make a folder with a robot and a task that run",
        "check": "lint, reduction and assumptions of a robot or task",
        "schema": "JSON schema of a kind of file, for editors",
        "view": "a run, robot or task in three dimensions",
    },
    "Track and compare": {
        "track": "simulate a task; figures, run and report",
        "gains": "gains by poles, by cost, with a proved rate",
        "compare": "runs side by side",
    },
    "Prove": {
        "certify": "a decay rate of the errors, with its region",
        "prove": "limits from all starts, with all imperfections",
        "recheck": "a stored proof, by an independent checker",
    },
    "Campaigns and controllers": {
        "verify": "the requirements of a task in many worlds",
        "export": "the control law as C code or as an FMU",
    },
}
"""Commands under the headings of `concur --help`, one line each."""


class _Contents(typer.core.TyperGroup):
    """Lists the commands like a table of contents."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, lines in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))


main = typer.Typer(
    cls=_Contents,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Build tracking controllers for robots with a free base.",
)

STATUS = "Exit status: 0 yes, 1 no, 2 bad input."

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Write into a folder that holds other files than results; files with the names of "
        "results are replaced.",
    ),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]

TaskFile = Annotated[Path, typer.Argument(help="Task file (.toml).")]

Out = Annotated[
    Path | None, typer.Option(help="Folder of the results; default out/<name of the file>.")
]


class FileKind(Enum):
    """Kind of a file that users write."""

    ROBOT = "robot"
    SIDECAR = "sidecar"
    TASK = "task"
    CAMPAIGN = "campaign"
    RIG = "rig"


ListAudit = Annotated[
    bool,
    typer.Option("--audit", help="List all assumptions of the theory, not only those that fail."),
]


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"concur {__version__}")
        raise typer.Exit


@main.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Group of the commands."""
    for name in LIMITS:
        os.environ.setdefault(name, "1")


@main.command(
    epilog=f"Example: concur track examples/rover_arm.toml --out out/rover_arm\n\n{STATUS}"
)
def track(
    task: TaskFile,
    out: Out = None,
    animation: Annotated[
        str | None,
        typer.Option(help="Also write an animation: gif, or mp4 if ffmpeg is installed."),
    ] = None,
    as_json: AsJson = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Simulate although an assumption fails; the verdict stays failed, exit status 1.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    audit: ListAudit = False,
) -> None:
    """Simulate a tracking task; write figures, run and report.

    The assumptions are audited first, then the servo is simulated on the full-order plant. The exit
    status is 0 only if all assumptions hold and the run is within the task's tolerances and the
    limits of the robot's joints. The folder then belongs to this run: results of an earlier run
    are removed when it starts.
    """
    folder = out or Path("out") / task.stem
    with answering("track", as_json) as reply:
        from concur.cli._track import track_task

        reply(track_task(task, folder, animation, reply.console, force, overwrite, audit))


@main.command(epilog=f"Example: concur check rover_arm\n\n{STATUS}")
def check(
    robot: Annotated[
        str, typer.Argument(help="Robot file (.toml or .urdf), name of a shipped robot, or task.")
    ],
    as_json: AsJson = False,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NAME,...",
            help="Reduce further by unactuated joints that conserve their momentum, at zero "
            "momentum: auto for all of them; default none.",
        ),
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.urdf",
            help="Instead of the check, write a copy of a URDF file with its faults repaired, as "
            "of inertias that no rigid body has.",
        ),
    ] = None,
    suggest: Annotated[
        bool,
        typer.Option(
            "--suggest",
            help="Instead of the check, write the sidecar of a URDF file: base, wheels, actuated "
            "joints.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file that --fix or --suggest writes.")
    ] = False,
    xacro: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:=VALUE|PACKAGE=FOLDER",
            help="Value of an argument of a .xacro file, or the folder of a package that it names; "
            "may be repeated.",
        ),
    ] = None,
    audit: ListAudit = False,
) -> None:
    """Check a robot: inertias, wheels, reduction, assumptions; of a task also start and reach."""
    with answering("check", as_json) as reply:
        if fix is not None or suggest:
            from concur.cli._urdf import write_urdf

            reply(write_urdf(robot, fix, suggest, overwrite, xacro))

        from concur.cli._check import check_robot

        reply(check_robot(robot, stages, xacro, audit))


@main.command(epilog="Example: concur new rover my_rover\n\nExit status: 0 written, 2 bad input.")
def new(
    kind: Annotated[str, typer.Argument(metavar="rover|floater|urdf", help="Kind of the robot.")],
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="Folder to make; its name is that of the robot.")
    ],
    source: Annotated[
        Path | None, typer.Option("--from", help="With urdf: the URDF file of the robot.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a folder with a robot and a task that run, with a comment for each line.

    With urdf the robot is a copy of a URDF file with the sidecar of `concur check --suggest`, and
    the task is found by simulation: outputs of base and hand that move along lines.
    """
    with answering("new", as_json) as reply:
        from concur.cli._new import make_new

        reply(make_new(kind, folder, source))


@main.command(
    epilog="Example: concur schema task > task.schema.json\n\nExit status: 0 printed, 2 bad input."
)
def schema(
    kind: Annotated[
        FileKind,
        typer.Argument(metavar="robot|sidecar|task|campaign|rig", help="Kind of the file."),
    ],
) -> None:
    """Print the JSON schema of a kind of file, with which editors complete and check it."""
    file = resources.files("concur.io") / "schemas" / f"{kind.value}.json"
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


@main.command(
    epilog="Example: concur gains examples/rover_arm.toml --settling 2 --torque-limit 20"
    f"\n\n{STATUS}"
)
def gains(
    task: TaskFile,
    settling: Annotated[
        float, typer.Option(help="Time after which an error stays below 2 %, in s.")
    ] = 2.0,
    damping_ratio: Annotated[float, typer.Option(help="Damping ratio of the placed poles.")] = 1.0,
    torque_share: Annotated[
        float,
        typer.Option(help="Largest share of the torque limits that the gains may need, up to 1."),
    ] = 1.0,
    torque_limit: Annotated[
        float | None,
        typer.Option(
            help="Torque limit of every control, in N m or N; default the limits of task and robot."
        ),
    ] = None,
    angle: Annotated[
        float | None,
        typer.Option(
            help="Largest rotation error of the certified gains, in degrees; default 1.25 times "
            "that of the start."
        ),
    ] = None,
    distance: Annotated[
        float | None,
        typer.Option(
            help="Largest position error of the certified gains, in m; default 1.25 times that of "
            "the start."
        ),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            metavar="place|lqr|certified",
            help="Write these gains into the task file; everything else stays, comments too.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find gains for the outputs of a task: by poles, by a quadratic cost, with a proved rate.

    Each set is simulated in the task. The exit status is 0 only if at least one set, or the
    written one, stays within the share of the torque limits.
    """
    with answering("gains", as_json) as reply:
        from concur.cli._gains import task_gains

        options = (settling, damping_ratio, torque_share, torque_limit, angle, distance)
        reply(task_gains(task, *options, write, reply.console))


@main.command(
    epilog="Example: concur compare examples/rover_arm.toml out/rover_arm/run.h5"
    "\n\nExit status: 0 all runs reach their ends and keep the limits of the joints, 1 one does "
    "not, 2 bad input."
)
def compare(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK|RUN...", help="Task files (.toml), runs (run.h5) or folders of results."
        ),
    ],
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Also write a figure: errors, controls, margins."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs with the same outputs: errors, torques, energy, margin and broken limits.

    Tasks are simulated; their assumptions are not checked. Robots, plants, laws and lengths of the
    runs may differ.
    """
    with answering("compare", as_json) as reply:
        from concur.cli._compare import compare_runs

        reply(compare_runs(subjects, figure, reply.console))


@main.command(
    epilog="Example: concur certify examples/free_floater.toml --angle 90 --out out/certificate"
    f"\n\n{STATUS}"
)
def certify(
    task: TaskFile,
    angle: Annotated[
        float, typer.Option(help="Largest rotation error covered by the certificate, in degrees.")
    ] = 90.0,
    distance: Annotated[
        float | None,
        typer.Option(
            help="Largest position error covered where rotations act on it, in m; default: as "
            "far as the gains allow."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="tight: a search with a proof; thesis: the constants of Theorem 5.4.2."),
    ] = "tight",
    disturbance: Annotated[
        float | None,
        typer.Option(
            help="Bound of an unmodelled output acceleration, in m/s^2, with rotations scaled by "
            "the channel's length: prove and draw the tubes of the errors."
        ),
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
    overwrite: Overwrite = False,
) -> None:
    """Prove a decay rate of the errors of a task, with its certified region.

    Writes the proof to proof.json, verifies this file independently, and draws figures. The exit
    status is 0 only if all claims are proved; 1 if one is refuted or undecided.
    """
    folder = out or Path("out") / task.stem
    with errors("certify" if as_json else None):
        from concur.cli._certify import certify_task

        console = Console(stderr=as_json, quiet=as_json)
        result = certify_task(
            task, folder, angle, distance, method, console, disturbance, overwrite
        )
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2, allow_nan=False))
        raise typer.Exit(0 if result.proved else 1)


@main.command(
    epilog=f"Example: concur prove examples/rover_arm.toml --out out/rover_arm/proof\n\n{STATUS}"
)
def prove(
    task: Annotated[Path, typer.Argument(help="Task file (.toml) with [proof].")],
    out: Out = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of worlds inside the statement to simulate; 0 for none. Default: 100 "
            "where this takes seconds.",
        ),
    ] = None,
    search: Annotated[
        int,
        typer.Option(
            min=0,
            help="Further worlds for each quantity, in which its worst value is searched; needs "
            "the extra `verify`.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the worlds.")] = 0,
    recheck: Annotated[
        bool,
        typer.Option(
            help="Verify the written file by the independent checker, in about the time of the "
            "proof. Without it nothing is PROVED."
        ),
    ] = True,
    factor: Annotated[
        bool,
        typer.Option(
            help="If undecided, find the largest factor on all starts and imperfections with a "
            "proof, by four further proofs."
        ),
    ] = True,
    as_json: AsJson = False,
    overwrite: Overwrite = False,
) -> None:
    """Prove that a task keeps its limits, from all starts and with all imperfections of [proof].

    Writes a report, the bounds of all quantities to bounds.json, and figures. A proof is also
    written to proof.json, which `concur recheck` verifies from this file alone. It is verified here
    too, unless --no-recheck is given: until then the task is UNVERIFIED. The exit status is 0 only
    if the task is PROVED, and 1 otherwise.

    Worlds inside the statement are then simulated and drawn inside the bounds. A world beyond a
    bound contradicts the proof: exit status 1. One beyond a limit refutes the statement.
    """
    folder = out or Path("out") / task.stem
    with errors("prove" if as_json else None):
        from concur.cli._prove import prove_file

        console = Console(stderr=as_json, quiet=as_json)
        result = prove_file(
            task, folder, console, overwrite, samples, search, seed, recheck, factor
        )
        if as_json:
            typer.echo(json.dumps(result.as_dict(), indent=2, allow_nan=False))
        raise typer.Exit(0 if result.proved else 1)


@main.command(
    epilog="Example: concur recheck out/rover_arm/proof.json --task examples/rover_arm.toml\n\n"
    + STATUS
)
def recheck(
    file: Annotated[
        Path, typer.Argument(help="Proof of a task, certificate, tube or operating box (.json).")
    ],
    task: Annotated[
        Path | None, typer.Option(help="Task file (.toml) that the proof should be about.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a stored proof by arithmetic and formulas that share nothing with the prover.

    Nothing but the file is needed. With --task, robot, law, reference, start, duration, control
    period and statement have to be those of this task; of certificates, outputs and gains.

    The exit status is 0 only if every step is confirmed. A rig arms only with proofs of tasks that
    were confirmed on its computer.
    """
    with answering("recheck", as_json) as reply:
        from concur.cli._recheck import recheck_file

        reply(recheck_file(file, task, reply.console))


@main.command(
    epilog="Example: concur verify examples/rover_campaign.toml --samples 500"
    "\n\nExit status: 0 all requirements hold in all worlds, 1 a world breaks one, 2 bad input."
)
def verify(
    task: Annotated[Path, typer.Argument(help="Task file (.toml) with [uncertainty].")],
    samples: Annotated[int, typer.Option(min=1, help="Number of worlds that are drawn.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed: the same worlds on any machine.")] = 0,
    search: Annotated[
        int,
        typer.Option(
            min=0,
            help="Then search the worst world of each requirement, with at most this number of "
            "worlds each; needs the extra `verify`.",
        ),
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of processes; default threads of this process, one for each processor.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers are used; needs the extra `cluster`.",
        ),
    ] = None,
    proofs: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Draw what `concur certify` proves: decay of the errors, tubes and the torques of "
            "[operating], each with its assumptions; needs the extra `certify`.",
        ),
    ] = False,
    disturbance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Bound of the unmodelled output acceleration for the tubes of --certify, in "
            "m/s^2; default the largest of the drawn runs, which proves nothing.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results; default out/<name of the file>/verify."),
    ] = None,
    as_json: AsJson = False,
    overwrite: Overwrite = False,
) -> None:
    """Simulate a task in many imperfect worlds; report what breaks its requirements.

    Worlds are drawn from the [uncertainty] of the task. The worst world of each requirement is
    written as a task file for `concur track`. In a folder with results of the same campaign the
    command continues; those of another one are refused. Results are samples, not proofs.
    """
    folder = out or Path("out") / task.stem / "verify"
    with answering("verify", as_json) as reply:
        from concur.cli._verify import verify_task

        options = (seed, search, jobs, scheduler, overwrite, proofs, disturbance)
        reply(verify_task(task, samples, folder, reply.console, *options))


@main.command(
    epilog="Example: concur export examples/rover_arm.toml --out out/rover_arm/c"
    "\n\nExit status: 0 written, 2 bad input."
)
def export(
    task: TaskFile,
    target: Annotated[
        str, typer.Option(help="c: C99 without libraries; fmu: a functional mock-up unit.")
    ] = "c",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the files; default out/<name of the file>/<target>."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Prefix of all generated names; default: the robot's name.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="double; or single, for controllers without double precision.")
    ] = "double",
    speed_limit: Annotated[
        float, typer.Option(help="Velocity above which C code rejects a state, in m/s or rad/s.")
    ] = 1000.0,
    fmi: Annotated[str, typer.Option(help="FMI version of an fmu, 3.0 or 2.0.")] = "3.0",
    with_reference: Annotated[
        bool,
        typer.Option("--with-reference", help="The reference is inside: the time is an input."),
    ] = False,
    as_json: AsJson = False,
    overwrite: Overwrite = False,
) -> None:
    """Export the control law of a task as C code or as an FMU.

    The C code comes with a test program and a README with instructions to compile, test and use it.
    An fmu is a functional mock-up unit (FMU) for co-simulation in other simulators.
    """
    folder = out or Path("out") / task.stem / target
    with answering("export", as_json) as reply:
        from concur.cli._export import export_task

        options = (name, precision, speed_limit, fmi, overwrite, with_reference)
        reply(export_task(task, target, folder, *options))


@main.command(
    epilog="Example: concur view out/rover_arm; concur view examples/rover_arm.toml"
    "\n\nExit status: 0 closed by Ctrl-C or written, 2 bad input."
)
def view(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN|ROBOT|TASK",
            help="run.h5 or its folder, a robot file or name of a shipped robot, or a task file.",
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A second run, as a ghost or beside the first."),
    ] = None,
    port: Annotated[int, typer.Option(help="Port of this machine; 0: any free port.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address only; open no browser.")
    ] = False,
    still: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Write a picture instead: the robot, or a run's path with the robot on it.",
        ),
    ] = None,
) -> None:
    """Show a run, a robot or a task in three dimensions in the browser, until Ctrl-C."""
    with errors():
        from concur.cli._view import viewer_of, write_still

        if still is not None:
            write_still(subject, other, still)
            typer.echo(str(still))
            return
        with (
            suppress(KeyboardInterrupt),
            viewer_of(subject, other, port, not no_browser) as viewer,
        ):
            viewer.wait(lambda: typer.echo(f"{viewer.url} shows {subject}; Ctrl-C ends it"))
