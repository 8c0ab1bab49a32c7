"""`concur view`: a run, a robot or a task in three dimensions, in a browser or as a picture."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from concur.cli._check import is_task, named_robot
from concur.control import Output
from concur.errors import ConcurError, DescriptionError
from concur.files import read_bytes
from concur.formats import load, load_task
from concur.viewing import FILMED, Film, RobotViewer, RunViewer, Viewer


def viewer_of(name: str, other: str | None, port: int, browser: bool) -> Viewer:
    """Start the viewer of a run, of two runs, of a robot or of a task."""
    films = _films(name, other)
    if films:
        return RunViewer(films, port, browser)
    robot, q, outputs, servo = _robot(name)
    return RobotViewer(robot, q, outputs, servo, port, browser)


def write_still(name: str, other: str | None, picture: Path) -> None:
    """Write a picture: the robot, or the path of a run with the robot at several instants."""
    from concur.plotting import path_figure, robot_figure

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
    if not _is_run(name):
        if other is not None:
            raise DescriptionError(
                name,
                expected="a run, as a second one was given",
                came="a robot or a task",
                cure="Give two files run.h5, or one robot or task.",
            )
        return []
    return [read_film(path) for path in (name, other) if path is not None]


def _is_run(name: str) -> bool:
    return Path(name).is_dir() or Path(name).suffix == ".h5"


def read_film(name: str) -> Film:
    """Read what a viewer shows of a run from its file, or from the folder of its results."""
    import h5py

    path = Path(name) / "run.h5" if Path(name).is_dir() else Path(name)
    cure = "`concur track TASK` writes run.h5 into the folder of its results."
    data = read_bytes(path, "the file of a run, such as out/rover_arm/run.h5", cure, largest=None)
    try:
        with h5py.File(io.BytesIO(data)) as file:
            arrays = {key: np.array(file[key], dtype=float) for key in ("t", "q", *FILMED)}
            columns = {key: _columns(file[key], key) for key in FILMED}
            robot, outputs = (file[key][()].decode() for key in ("robot", "outputs"))
    except (OSError, KeyError, ValueError, AttributeError) as problem:
        raise DescriptionError(
            str(path),
            expected="the file of a run with its robot, as this version of concur writes it",
            came=f"another file ({problem})",
            cure="Run `concur track` again.",
            file=str(path),
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "robot.toml"
        stored.write_text(robot, encoding="utf-8")
        mechanism = load(stored)
    rows = len(arrays["t"])
    values = {key: (arrays[key].reshape(rows, -1), columns[key]) for key in FILMED}
    made = tuple(Output(**fields) for fields in json.loads(outputs))
    return Film(mechanism, made, arrays["t"], arrays["q"], values)


def _columns(data: Any, name: str) -> list[tuple[str, str]]:
    if "columns" not in data.attrs:
        return [(name, data.attrs["unit"])]
    return list(zip(data.attrs["columns"], data.attrs["units"], strict=True))


def _robot(name: str) -> tuple[Any, np.ndarray, tuple[Output, ...], Any]:
    """Load a robot by file or name, or that of a task at its start with the task's servo."""
    if is_task(name):
        task = load_task(name)
        return task.robot, task.q0, task.outputs, task.servo
    robot, _ = named_robot(name)
    return robot, robot.neutral(), (), None
