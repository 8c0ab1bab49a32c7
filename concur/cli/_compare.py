"""`concur compare`: tasks and recorded runs in one table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import command
from concur.cli._folder import save_figure
from concur.errors import DescriptionError, SimulationError

if TYPE_CHECKING:
    from concur.simulation import RunRecord


@command(
    "Track and compare",
    "runs side by side",
    "concur compare examples/rover_arm.toml out/rover_arm/run.h5",
    "0 all runs reach their ends and keep the limits of the joints, 1 one does not, 2 bad input.",
)
def compare(
    reply: Reply,
    subjects: Annotated[list[str], typer.Argument(metavar="TASK|RUN...")],
    figure: Annotated[Path | None, typer.Option(metavar="FILE.png")] = None,
) -> Answer:
    """Compare runs with the same outputs: errors, torques, energy, margin and broken limits.

    Tasks are simulated; their assumptions are not checked. Robots, plants, laws and lengths of the
    runs may differ.

    Parameters
    ----------
    subjects : list of str
        Task files (.toml), runs (run.h5) or folders of results.
    figure : path, optional
        Also write a figure: errors, controls, margins.
    """
    from concur.simulation import compare as side_by_side
    from concur.stored import is_run, read_run

    runs = []
    for subject in subjects:
        with reply.progress(subject) as report:
            runs.append(read_run(subject) if is_run(subject) else _simulated(subject, report))
    names = [run.name for run in runs]
    if len(set(names)) < len(names):  # two tasks of one name
        names = [f"{name} ({Path(one).name})" for name, one in zip(names, subjects, strict=True)]
    found = side_by_side(runs, names)
    if figure is not None:
        save_figure(found.plot(), figure, "--figure")
    return Answer.of(
        found,
        name=", ".join(found.names),
        robot=", ".join(dict.fromkeys(run.robot.name for run in runs)),
        files=(figure,) if figure else (),
        listed=(),
    )


def _simulated(subject: str, report: Any) -> RunRecord:
    """Run of a task, as far as it came."""
    from concur.io import load_task
    from concur.simulation import RunRecord

    if Path(subject).suffix != ".toml":
        raise DescriptionError(
            subject,
            expected="a task file (.toml), a recorded run (.h5) or the folder of one",
            came="another name",
            cure="Write for example: concur compare examples/rover_arm.toml out/rover_arm/run.h5.",
        )
    task, stopped = load_task(subject), ""
    try:
        run = task.simulate(progress=report)
    except SimulationError as error:
        if "run" not in error.data:
            raise
        run, stopped = error.run, f"{error.where}: expected {error.expected}, got {error.came}"
    return replace(RunRecord.of(run), name=task.name, stopped=stopped)
