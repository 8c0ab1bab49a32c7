"""How a task is run, in words for people and in numbers for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from concur.control import Servo
from concur.formats import Task


def task_facts(task: Task, servo: Servo) -> list[tuple[str, str]]:
    """Settings of a run that its numbers depend on.

    Parameters
    ----------
    task : Task
        The task.
    servo : Servo
        Its servo.

    Returns
    -------
    list of (str, str)
        Label and value: task, integration, control, gains by output, plant.
    """
    held = "continuous" if task.hold is None else f"sampled, torque held for {task.hold:g} s"
    facts = [
        ("Task", f"{task.name} ({task.path.name})"),
        ("Integration", f"{task.method}, dt = {task.dt:g} s"),
        ("Servo", held),
    ]
    for name, gains in _gains(task, servo).items():
        values = (
            f"{kind} {_shown(gains[kind])} {unit}"
            for kind, unit in (("stiffness", "1/s^2"), ("damping", "1/s"))
        )
        facts.append((f"Gains of {name}", ", ".join(values)))
    if task.plant is None:
        facts.append(("Plant", "the robot as the servo knows it"))
    else:
        facts.append(
            ("Plant", f"{task.plant.name} ({task.plant_file}), in place of the task's robot")
        )
    return facts


def task_settings(task: Task, servo: Servo) -> dict[str, Any]:
    """Settings of a run for JSON.

    Parameters
    ----------
    task : Task
        The task.
    servo : Servo
        Its servo.

    Returns
    -------
    dict
        File, integration, control, gains by output, tolerances and plant.
    """
    return {
        "file": str(task.path),
        "robot": task.robot.name,
        "duration": task.duration,
        "method": task.method,
        "dt": task.dt,
        "hold": task.hold,
        "gains": _gains(task, servo),
        "tolerances": asdict(task.tolerances),
        "plant": None if task.plant is None else task.plant.name,
        "plant_file": task.plant_file,
    }


def run_attributes(task: Task) -> dict[str, str | float]:
    """What the record of a run is to say about its task.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    dict of str to str or float
        Name, files and tolerances.
    """
    limits = {f"tolerance_{name}": value for name, value in asdict(task.tolerances).items()}
    return {
        "task": task.name,
        "task_file": task.path.name,
        "plant_file": task.plant_file or "",
        **limits,
    }


def _gains(task: Task, servo: Servo) -> dict[str, dict[str, list[float]]]:
    gains, start = {}, 0
    for output in servo.outputs:
        part = slice(start, start + output.dim)
        start += output.dim
        gains[output.name] = {
            "stiffness": np.diag(task.stiffness)[part].tolist(),
            "damping": np.diag(task.damping)[part].tolist(),
        }
    return gains


def _shown(values: list[float]) -> str:
    different = dict.fromkeys(values)
    return ", ".join(f"{value:g}" for value in (different if len(different) == 1 else values))
