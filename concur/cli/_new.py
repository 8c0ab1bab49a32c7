"""`concur new` and `concur schema`: folders to start from, and schemas for editors."""

from __future__ import annotations

from enum import Enum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import WRITTEN, command


class FileKind(Enum):
    """Kind of a file that users write."""

    ROBOT = "robot"
    SIDECAR = "sidecar"
    TASK = "task"
    CAMPAIGN = "campaign"
    RIG = "rig"


@command(
    "Describe and check",
    "make a folder with a robot and a task that run",
    "concur new rover my_rover",
    WRITTEN,
)
def new(
    reply: Reply,
    kind: Annotated[str, typer.Argument(metavar="rover|floater|spacecraft|urdf")],
    folder: Annotated[Path, typer.Argument(metavar="NAME")],
    source: Annotated[Path | None, typer.Option("--from")] = None,
) -> Answer:
    """Make a folder with a robot and a task that run, with a comment for each line.

    With spacecraft the robot is a hull with the arm of a URDF file and a motor for each joint; the
    hand follows samples in hand.csv. With urdf the robot is a copy of a URDF file with the sidecar
    of `concur check --suggest`, and the task is found by simulation: outputs of base and hand that
    move along lines.

    Parameters
    ----------
    kind : str
        Kind of the robot.
    folder : path
        Folder to make; its name is that of the robot.
    source : path, optional
        With urdf: the URDF file of the robot; with spacecraft: that of its arm.
    """
    from concur.io import new_folder

    with reply.progress("trying tasks"):
        robot = new_folder(kind, folder, source)
    files = sorted(folder.iterdir())
    return Answer(
        status="written",
        name=folder.name,
        robot=robot,
        files=files,
        shown=[
            "check and track it, then change names and numbers:",
            f"  concur check {next(path for path in files if path.stem == 'robot')}",
            f"  concur track {folder / 'task.toml'}",
        ],
    )


@command(
    "Describe and check",
    "JSON schema of a kind of file, for editors",
    "concur schema task > task.schema.json",
    "0 printed, 2 bad input.",
)
def schema(
    reply: Reply,
    kind: Annotated[FileKind, typer.Argument(metavar="robot|sidecar|task|campaign|rig")],
) -> None:
    """Print the JSON schema of a kind of file, with which editors complete and check it.

    Parameters
    ----------
    kind : FileKind
        Kind of the file.
    """
    file = resources.files("concur.io") / "schemas" / f"{kind.value}.json"
    typer.echo(file.read_text(encoding="utf-8"), nl=False)
