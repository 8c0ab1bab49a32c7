"""Numbers of robots and tasks that are possible but look like slips."""

from __future__ import annotations

from concur.formats import Task
from concur.mechanism import (
    suspicious_inertias,
    suspicious_points,
    suspicious_start,
    suspicious_units,
)
from concur.multibody import Mechanism


def robot_warnings(robot: Mechanism) -> tuple[str, ...]:
    """Find inertias, lengths and limits of a robot that suggest another unit.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    tuple of str
        One sentence each.
    """
    return (*suspicious_inertias(robot), *suspicious_units(robot))


def task_warnings(task: Task) -> tuple[str, ...]:
    """Find the same in a task: its robot, its plant, its start and the points of its outputs.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    tuple of str
        One sentence each.
    """
    found = robot_warnings(task.robot)
    if task.plant is not None:
        found += tuple(f"plant, {text}" for text in robot_warnings(task.plant))
    found += suspicious_start(task.robot, task.q0)
    points = [(output.name, output.point) for output in task.outputs]
    return (*found, *suspicious_points(task.robot, points))
