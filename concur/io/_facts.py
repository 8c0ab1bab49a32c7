"""Settings of a task, as text and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from concur.control import JointLimits, TrackingLaw
from concur.io._task import Task
from concur.reduction import momenta_text
from concur.results import picked, plain
from concur.robot import suspicious, suspicious_points, suspicious_start


def task_facts(task: Task) -> list[tuple[str, str]]:
    """List the settings that determine the numbers of a run.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    list of (str, str)
        Labels and values as texts.
    """
    servo = task.law
    held = (
        "continuous"
        if task.control_period is None
        else f"sampled, torque held for {task.control_period:g} s"
    )
    facts = [
        ("Task", f"{task.name} ({task.path.name})"),
        ("Integration", f"{task.method}, dt = {task.dt:g} s"),
        ("Servo" if servo.linearizes else "Law", held),
    ]
    options = ", ".join(f"{name} {value}" for name, value in task.law_table.items())
    facts += [("Law of the task", options)] if options else []
    for name, gains in _gains(task).items():
        values = (
            f"{kind} {_shown(gains[kind])} {unit}"
            for kind, unit in (("stiffness", "1/s^2"), ("damping", "1/s"), ("integral", "1/s^3"))
            if kind in gains
        )
        facts.append((f"Gains of {name}", ", ".join(values)))
    facts += _options(servo, task.plant_momentum)
    limits = JointLimits.of(task.robot, *([task.plant] if task.plant else []))
    stated = [limits.positions, limits.speeds, limits.torques]
    count = sum(int(np.isfinite(part).sum()) for part in stated)
    facts.append(("Limits of the joints", f"{count} stated" if count else "none stated"))
    plant = "the robot of the servo's model"
    if task.plant is not None:
        plant = f"{task.plant.name} ({task.plant_file}), instead of the task's robot"
    if task.plant_momentum is not None:
        plant += f", with the momentum {_momentum(task.plant_momentum)}"
    beside = {
        "[imperfections]": task.imperfections, "[plant.slip]": task.slip, "[world]": task.world
    }  # fmt: skip
    tables = [name for name, table in beside.items() if table is not None]
    if tables:
        plant += f", with {' and '.join(tables)} of the task"
    return [*facts, ("Plant", plant)]


def _options(servo: TrackingLaw, started: np.ndarray | None) -> list[tuple[str, str]]:
    """Options of the law; the plant may start with a momentum."""
    facts, model = [], servo.model
    first = model.first
    if model.takes_momentum:
        if servo.use_measured_velocity and started is not None:
            first = first.at_momentum(started)
        known = f"{_momentum(first.momentum)} about the origin"
        if servo.use_measured_velocity:
            known = f"measured; {known} at the start"
        drift = np.linalg.norm(first.com_velocity)
        facts.append(("Momentum", f"{known}; the centre of mass drifts at {drift:.3g} m/s"))
    if model.chain:
        kept = (
            f"`{model.robot.label(stage.joint)}` {momenta_text(stage.theta, stage.momentum_units)}"
            for stage in model.chain
        )
        facts.append(("Momenta of further stages", "; ".join(kept)))
    if servo.redundancy is not None:
        left = servo.ns - servo.size
        facts.append(("Internal motion", f"{left} freedoms, {servo.redundancy}"))
    if servo.damping_threshold is not None:
        facts.append(
            ("Singular configurations", f"damped below a margin of {servo.damping_threshold:g}")
        )
    if servo.torque_limits is not None:
        limited = [
            f"{name} {low:g} to {high:g} {unit}"
            for name, (low, high), unit in _limits(servo)
            if np.isfinite([low, high]).any()
        ]
        alike = {(tuple(pair), unit) for _, pair, unit in _limits(servo)}
        if len(alike) == 1 and len(limited) > 1:
            (low, high), unit = alike.pop()
            limited = [f"each drive {low:g} to {high:g} {unit}"]
        facts.append(("Torque limits", ", ".join(limited)))
    return facts


def _limits(servo: TrackingLaw) -> list[tuple[str, np.ndarray, str]]:
    """Name, pair of limits and unit of each control."""
    model = servo.model
    return list(zip(model.control_names, servo.torque_limits, model.control_units, strict=True))


def _momentum(values: Sequence[float] | np.ndarray) -> str:
    linear, angular = (", ".join(f"{x:.4g}" for x in part) for part in (values[:3], values[3:]))
    return f"({linear}) kg m/s, ({angular}) kg m^2/s"


def settings(task: Task) -> dict[str, Any]:
    """Settings of a run as JSON has them.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    dict
        Settings by name, in SI units.
    """
    servo, plant = task.law, task.plant
    names = "duration", "method", "dt", "control_period", "momentum", "plant_momentum", "plant_file"
    return picked(task, *names) | {
        "file": str(task.path),
        "robot": task.robot.name,
        "gains": _gains(task),
        "tolerances": asdict(task.tolerances),
        "measured": servo.use_measured_velocity,
        "redundancy": None if servo.redundancy is None else str(servo.redundancy),
        "damped_below": servo.damping_threshold,
        "torque_limits": plain(servo.torque_limits),
        "plant": None if plant is None else plant.name,
    }


def suspicious_task(task: Task) -> tuple[str, ...]:
    """Find numbers of a task that are possible but suggest a mistake.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    tuple of str
        A sentence about each: robot, plant, start, and points of outputs.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.io import suspicious_task
    >>> suspicious_task(cc.load_task("examples/rover_arm.toml"))
    ()
    """
    found = suspicious(task.robot)
    if task.plant is not None:
        found += tuple(f"plant, {text}" for text in suspicious(task.plant))
    found += suspicious_start(task.robot, task.q0)
    found += tuple(f"reference of {note}" for note in task.reference.notes)
    points = [(output.name, output.point) for output in task.outputs]
    return (*found, *suspicious_points(task.robot, points))


def _gains(task: Task) -> dict[str, dict[str, list[float]]]:
    gains, start, servo = dict[str, dict[str, list[float]]](), 0, task.law
    if not servo.linearizes:
        return gains
    for output in servo.outputs:
        part = slice(start, start + output.dim)
        start += output.dim
        gains[output.name] = {
            "stiffness": np.diag(task.stiffness)[part].tolist(),
            "damping": np.diag(task.damping)[part].tolist(),
        }
        if servo.integral is not None:
            gains[output.name]["integral"] = np.diag(servo.integral)[part].tolist()
    return gains


def _shown(values: list[float]) -> str:
    different = dict.fromkeys(values)
    return ", ".join(f"{value:g}" for value in (different if len(different) == 1 else values))
