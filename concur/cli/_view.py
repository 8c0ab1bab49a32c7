"""`concur view`: a run, a robot or a task in three dimensions, in a browser or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from concur.cli._check import is_task, named_robot
from concur.errors import ConcurError, DescriptionError
from concur.io import load_task
from concur.outputs import Output
from concur.show.viewer import FILMED, Film, RobotViewer, RunViewer, Viewer
from concur.stored import is_run, read_recorded


def viewer_of(name: str, other: str | None, port: int, browser: bool) -> Viewer:
    """Start the viewer of a run, of two runs, of a robot or of a task."""
    films = _films(name, other)
    if films:
        return RunViewer(films, port, browser)
    robot, q, outputs, servo = _robot(name)
    return RobotViewer(robot, q, outputs, servo, port, browser)


def write_still(name: str, other: str | None, picture: Path) -> None:
    """Write a picture: the robot, or the path of a run with the robot at several instants."""
    from concur.show import path_figure, robot_figure

    films: list[Any] = _films(name, other)
    if films:
        figure = path_figure(films[0])
    else:
        robot, q, outputs, _ = _robot(name)
        figure = robot_figure(robot, q, outputs)
    try:
        figure.savefig(picture)
    except (OSError, ValueError) as problem:
        raise ConcurError(
            f"option `--still`, {picture}",
            expected="a file that can be written, in a format of Matplotlib such as .png",
            came=getattr(problem, "strerror", None) or str(problem),
            cure="Name another file.",
        ) from None


def _films(name: str, other: str | None) -> list[Film]:
    """Read the runs; none if the first name is a robot or a task."""
    if not is_run(name):
        if other is not None:
            raise DescriptionError(
                name,
                expected="a run, as a second one was given",
                came="a robot or a task",
                cure="Give two files run.h5, or one robot or task.",
            )
        return []
    return [read_film(path) for path in (name, other) if path is not None]


def read_film(name: str) -> Film:
    """Read the film of a run from its file, or from the folder of its results."""
    return Film.of(read_recorded(name, ("t", "q", *FILMED)))


def _robot(name: str) -> tuple[Any, np.ndarray, tuple[Output, ...], Any]:
    """Load a robot by file or name, or that of a task at its start with the task's servo."""
    if is_task(name):
        task = load_task(name)
        return task.robot, task.q0, task.outputs, task.law
    robot, _ = named_robot(name)
    return robot, robot.neutral(), (), None
