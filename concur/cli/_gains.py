"""`concur gains`: gains of a task's outputs by three methods, with margins and torques."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import TaskFile, command
from concur.cli._options import one_of, within


@command(
    "Track and compare",
    "gains by poles, by cost, with a proved rate",
    "concur gains examples/rover_arm.toml --settling 2 --torque-limit 20",
)
def gains(
    reply: Reply,
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
) -> Answer:
    """Find gains for the outputs of a task: by poles, by a quadratic cost, with a proved rate.

    Each set is simulated in the task. The exit status is 0 only if at least one set, or the
    written one, stays within the share of the torque limits.
    """
    from concur.certify import TUNED, tune
    from concur.io import load_task

    within("torque-share", torque_share, 1.0)
    within("torque-limit", torque_limit, unit="N m or N")
    one_of("write", write, TUNED)
    given, most = load_task(task), None if angle is None else math.radians(angle)
    with reply.progress("searching for gains"):
        found = tune(given, settling, damping_ratio, torque_share, torque_limit, most, distance)
    written = write is not None and found.write(write)
    refused = f"{write} gains do not fit, nothing is written"
    return Answer.of(
        found,
        status=found.status if write is None else "written" if written else "failed",
        name=given.name,
        robot=given.robot.name,
        files=[task] * written,
        listed=(),
        verdict=refused if write is not None and not written else "",
    )
