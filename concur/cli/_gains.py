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
    settling: float = 2.0,
    damping_ratio: float = 1.0,
    torque_share: float = 1.0,
    torque_limit: float | None = None,
    angle: float | None = None,
    distance: float | None = None,
    write: Annotated[str | None, typer.Option(metavar="place|lqr|certified")] = None,
) -> Answer:
    """Find gains for the outputs of a task: by poles, by a quadratic cost, with a proved rate.

    Each set is simulated in the task. The exit status is 0 only if at least one set, or the
    written one, stays within the share of the torque limits.

    Parameters
    ----------
    settling : float
        Time after which an error stays below 2 %, in s.
    damping_ratio : float
        Damping ratio of the placed poles.
    torque_share : float
        Largest share of the torque limits that the gains may need, up to 1.
    torque_limit : float, optional
        Torque limit of every control, in N m or N; default the limits of task and robot.
    angle : float, optional
        Largest rotation error of the certified gains, in degrees; default 1.25 times that of the
        start.
    distance : float, optional
        Largest position error of the certified gains, in m; default 1.25 times that of the start.
    write : str, optional
        Write these gains into the task file; everything else stays, comments too.
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
