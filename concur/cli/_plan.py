"""`concur plan`: from the goal of a task to the references of its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import Overwrite, TaskFile, command
from concur.cli._folder import results

SHOWN = 8
"""Quantities that the terminal shows, those closest to their limits."""


@command(
    "Track and compare",
    "a motion to a goal within limits",
    "concur plan examples/planned_rover.toml",
    "0 the goal is reached within all limits, 1 it is not, 2 bad input.",
)
def plan(
    reply: Reply,
    task: TaskFile,
    file: Annotated[Path | None, typer.Option("--file", "-o", metavar="FILE")] = None,
    out: Path | None = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Plan the motion to the goals of a task, within the limits of the robot and of [plan].

    Writes the plan to the file that the task names in [plan]: from there all other commands take
    the references of the outputs. If the goal is not reached, the file stays as it was, and the
    answer states which limit forbids it, and what is nearest. Writes a page with a figure.

    Parameters
    ----------
    task : path
        Task file (.toml) with [plan].
    file : path, optional
        File of the plan; default the `file` of [plan].
    out : path, optional
        Folder of the results; default out/<name of the file>/plan.
    """
    from concur.io import load_goal, plan_task
    from concur.show import write_result

    name = Path(task)
    given, goal = load_goal(task)
    target = file or goal.path(task)
    with results(out or Path("out") / name.stem / "plan", "plan", overwrite) as kept:
        with reply.progress("planning") as report:
            found = plan_task(given, goal, report)
        if found.reached:
            found.save(target)
        drawn = kept.draw(reply, found.figures)
        title = f"Plan: {given.name}"
        kept.publish([write_result(found, kept.staging, title, figures=drawn)])
        answer = Answer.of(
            found,
            name=given.name,
            robot=given.robot.name,
            problems=[] if found.reached else [found.why],
            files=[*([target] if found.reached else []), *kept.files],
            listed=found.rows[:SHOWN],
        )
        return kept.close_with(answer, "" if found.reached else found.why)
