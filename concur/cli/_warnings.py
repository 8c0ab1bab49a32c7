"""Warnings about numbers of robots and tasks that are possible but suspicious."""

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
    """Warnings about inertias, lengths and limits of a robot that suggest a wrong unit."""
    return (*suspicious_inertias(robot), *suspicious_units(robot))


def task_warnings(task: Task) -> tuple[str, ...]:
    """Warnings about a task: its robot, its plant, its start and the points of its outputs."""
    found = robot_warnings(task.robot)
    if task.plant is not None:
        found += tuple(f"plant, {text}" for text in robot_warnings(task.plant))
    found += suspicious_start(task.robot, task.q0)
    points = [(output.name, output.point) for output in task.outputs]
    return (*found, *suspicious_points(task.robot, points))
