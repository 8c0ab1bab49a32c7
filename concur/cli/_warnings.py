"""Warnings about numbers of robots and tasks that are possible but suspicious."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from concur.formats import Task, suspicious_urdf
from concur.mechanism import (
    suspicious_inertias,
    suspicious_points,
    suspicious_start,
    suspicious_units,
)
from concur.multibody import Mechanism

SINGULAR = 1e-7
"""Smallest eigenvalue of the mass matrix with unit diagonal below which it is suspicious. Of 125
robots in use, one has 4e-15 and all others more than 1e-4."""

INVOLVED = 0.1
"""Share of the largest component above which a freedom is named as part of a motion."""


def robot_warnings(robot: Mechanism) -> tuple[str, ...]:
    """Warnings about inertias, lengths and limits of a robot that suggest a wrong unit."""
    return (*suspicious_inertias(robot), *suspicious_units(robot), *_near_singular(robot))


def file_warnings(path: str) -> tuple[str, ...]:
    """Warnings about the file of a robot, beside those about the robot; none for TOML."""
    if Path(path).suffix.lower() not in (".urdf", ".xacro") or not os.path.isfile(path):
        return ()
    return suspicious_urdf(path)


def _near_singular(robot: Mechanism) -> tuple[str, ...]:
    """Motion of the neutral configuration that moves almost no mass."""
    if not robot.nv:
        return ()
    mass = robot.mass_matrix(robot.neutral())
    scale = np.sqrt(np.diag(mass))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(mass / np.outer(scale, scale))
    if values[0] >= SINGULAR:
        return ()
    motion = np.abs(vectors[:, 0])
    chosen = np.array(robot.freedom_names)[motion > INVOLVED * motion.max()]
    names = ", ".join(f"`{name}`" for name in chosen)
    return (
        f"mass matrix near singular at the neutral configuration: a motion of {names} moves "
        f"{max(values[0], 0.0):.1e} of the inertia that they move one by one",
    )


def task_warnings(task: Task) -> tuple[str, ...]:
    """Warnings about a task: its robot, its plant, its start and the points of its outputs."""
    found = robot_warnings(task.robot)
    if task.plant is not None:
        found += tuple(f"plant, {text}" for text in robot_warnings(task.plant))
    found += suspicious_start(task.robot, task.q0)
    points = [(output.name, output.point) for output in task.outputs]
    return (*found, *suspicious_points(task.robot, points))
