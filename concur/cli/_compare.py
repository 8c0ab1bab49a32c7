"""`concur compare`: tasks, laws and recorded runs in one table, with a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import Overwrite, command
from concur.cli._folder import results
from concur.errors import ConcurError, DescriptionError, SimulationError

if TYPE_CHECKING:
    from concur.io import Task
    from concur.simulation import Comparison, RunRecord


@command(
    "Track and compare",
    "laws and runs side by side",
    "concur compare examples/unknown_payload.toml --worlds 20",
    "0 all runs reach their ends and keep tolerances and limits, or the requirements in all "
    "worlds, 1 one does not, 2 bad input.",
)
def compare(
    reply: Reply,
    subjects: Annotated[list[str], typer.Argument(metavar="TASK|RUN...")],
    law: Annotated[list[str] | None, typer.Option(metavar="LAW")] = None,
    worlds: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Path | None = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Compare laws and runs with the same outputs: errors, torques and failures.

    Tasks are simulated with each law and judged by tolerances and limits, as by `concur track`;
    their assumptions are not checked. Robots, plants and lengths may differ. With --worlds all laws
    meet the same drawn worlds, and the table has the median, the 95 % quantile and the largest of
    the errors. Writes a page with a figure.

    Parameters
    ----------
    subjects : list of str
        Task files (.toml), runs (run.h5) or folders of results.
    law : list of str, optional
        Law for the tasks, several times: a name of their [[laws]], or a kind with options, as
        "passive, rate = 2.0"; default all [[laws]], or the law of the task.
    worlds : int, optional
        Number of worlds of the [uncertainty] of the tasks; default the nominal one.
    seed : int
        Seed of the worlds.
    out : path, optional
        Folder of the results; default out/<name of the first file>/compare.
    """
    from concur.campaign import compare_laws
    from concur.show import write_result

    folder = out or Path("out") / Path(subjects[0]).stem / "compare"
    with results(folder, "compare", overwrite) as kept:
        tasks = [_task(subject) for subject in subjects if not _recorded(subject)]
        found: Any
        if worlds is None:
            found = _runs(reply, subjects, tasks, law)
            robots = [run.robot.name for run in found.runs]
        elif len(tasks) < len(subjects):
            raise ConcurError(
                "option `--worlds`",
                expected="task files",
                came=next(subject for subject in subjects if _recorded(subject)),
                cure="Name the task of this run.",
            )
        else:
            with reply.progress("simulating worlds") as report:
                found = compare_laws(tasks, law, worlds, seed, progress=report)
            robots = [one.robot for one in found.laws]
        names = dict.fromkeys(task.name for task in tasks)
        answer = Answer.of(
            found,
            name=", ".join(names if worlds else found.names),
            robot=", ".join(dict.fromkeys(robots)),
            listed=(),
        )
        drawn = kept.draw(reply, found.figures)
        title = f"Comparison: {answer.name}"
        kept.publish([write_result(found, kept.staging, title, figures=drawn)])
        kept.document(reply, replace(answer, files=kept.files), "report.json")
        return kept.close_with(answer)


def _recorded(subject: str) -> bool:
    from concur.stored import is_run

    return is_run(subject)


def _task(subject: str) -> Task:
    from concur.io import load_task

    if Path(subject).suffix != ".toml":
        raise DescriptionError(
            subject,
            expected="a task file (.toml), a recorded run (.h5) or the folder of one",
            came="another name",
            cure="Write for example: concur compare examples/rover_arm.toml out/rover_arm/run.h5.",
        )
    return load_task(subject)


def _runs(
    reply: Reply, subjects: list[str], tasks: list[Task], laws: list[str] | None
) -> Comparison:
    """Nominal runs of the tasks with each law, and recorded runs."""
    from concur.simulation import compare as side_by_side
    from concur.stored import read_run

    runs, left = [], iter(tasks)
    for subject in subjects:
        with reply.progress(subject) as report:
            if _recorded(subject):
                runs.append((read_run(subject), subject))
                continue
            task = next(left)
            chosen = laws or list(task.laws)
            one = f"{task.name}: " * (len(tasks) > 1)
            for name in chosen:
                run = _simulated(task.with_law(name), report)
                runs.append((replace(run, name=f"{one}{name}"), subject))
            if not chosen:
                runs.append((_simulated(task, report), subject))
    names = [run.name for run, _ in runs]
    if len(set(names)) < len(names):  # two tasks of one name
        names = [f"{run.name} ({Path(subject).name})" for run, subject in runs]
    return side_by_side([run for run, _ in runs], names)


def _simulated(task: Task, report: Any) -> RunRecord:
    """Run of a task, as far as it came."""
    from concur.simulation import RunRecord

    stopped = ""
    try:
        run = task.simulate(progress=report)
    except SimulationError as error:
        if "run" not in error.data:
            raise
        run, stopped = error.run, f"{error.where}: expected {error.expected}, got {error.came}"
    return replace(RunRecord.of(run), name=task.name, stopped=stopped)
