"""`concur view`: a run, a robot or a task in three dimensions, in a browser or as a picture."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concur.cli._answer import Reply
from concur.cli._app import command
from concur.cli._folder import save_figure
from concur.errors import DescriptionError

if TYPE_CHECKING:
    from concur.show.viewer import Film


@command(
    "Describe and check",
    "a run, robot or task in three dimensions",
    "concur view out/rover_arm; concur view examples/rover_arm.toml",
    "0 closed by Ctrl-C or written, 2 bad input.",
)
def view(
    reply: Reply,
    subject: Annotated[str, typer.Argument(metavar="RUN|ROBOT|TASK")],
    other: Annotated[str | None, typer.Argument(metavar="[RUN]")] = None,
    port: int = 0,
    no_browser: bool = False,
    still: Annotated[Path | None, typer.Option(metavar="FILE.png")] = None,
) -> None:
    """Show a run, a robot or a task in three dimensions in the browser, until Ctrl-C.

    Parameters
    ----------
    subject : str
        run.h5 or its folder, a robot file or name of a shipped robot, or a task file.
    other : str, optional
        A second run, as a ghost or beside the first.
    port : int
        Port of this machine; 0: any free port.
    no_browser : bool
        Print the address only; open no browser.
    still : path, optional
        Write a picture instead: the robot, or a run's path with the robot on it.
    """
    from concur.show import path_figure, robot_figure
    from concur.show.viewer import RobotViewer, RunViewer, Viewer

    films: list[Any] = _films(subject, other)
    known: tuple[Any, ...] = (None, None, (), None) if films else _robot(subject)
    robot, q, outputs, servo = known
    if still is not None:
        figure = path_figure(films[0]) if films else robot_figure(robot, q, outputs)
        save_figure(figure, still, "--still")
        typer.echo(str(still))
        return
    viewer: Viewer
    if films:
        viewer = RunViewer(films, port, not no_browser)
    else:
        viewer = RobotViewer(robot, q, outputs, servo, port, not no_browser)
    with suppress(KeyboardInterrupt), viewer:
        viewer.wait(lambda: typer.echo(f"{viewer.url} shows {subject}; Ctrl-C ends it"))


def _films(name: str, other: str | None) -> list[Film]:
    """Read the runs; none if the first name is a robot or a task."""
    from concur.show.viewer import Film
    from concur.stored import is_run

    if not is_run(name):
        if other is not None:
            raise DescriptionError(
                name,
                expected="a run, as a second one was given",
                came="a robot or a task",
                cure="Give two files run.h5, or one robot or task.",
            )
        return []
    return [Film.read(path) for path in (name, other) if path is not None]


def _robot(name: str) -> tuple[Any, ...]:
    """Robot by file or name, or that of a task: with configuration, outputs and servo."""
    from concur.io import is_task, load_task, named_robot

    if is_task(name):
        task = load_task(name)
        return task.robot, task.q0, task.outputs, task.law
    robot, _ = named_robot(name)
    return robot, robot.neutral(), (), None
