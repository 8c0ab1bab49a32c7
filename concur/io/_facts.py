"""Settings of a task, as text and for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from concur.control import JointLimits, TrackingLaw, longest_latency, loop_margins
from concur.errors import ConcurError
from concur.io._initial import FAR
from concur.io._task import Task
from concur.outputs.groups import named
from concur.reduction import momenta_text
from concur.results import picked, plain
from concur.robot import Mechanism, suspicious, suspicious_points, suspicious_start
from concur.tables import is_number

FAR_TURN = 0.5
"""Turn of a reference at the start, rad, that suggests a mistake."""

SAME_GEAR = 1e-6
"""Largest difference of equal gears."""

SMALL_UNITS = {"mm": 1e-3, "cm": 1e-2}
"""Units in which a position may be written by mistake, m."""


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
    for note in task.reference.notes:
        name, _, text = note.partition(": ")
        facts.append((f"Reference of {name}", text))
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
            f"`{stage.label}` {momenta_text(stage.theta, stage.momentum_units)}"
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
        facts.append(("Torque limits", torque_limits(servo)))
    return facts


def torque_limits(law: TrackingLaw) -> str:
    """Limits that a law keeps, and which of them are the robot's own: numbers may be wider."""
    model, each = law.model, list[str]()
    of_robot = model.robot.control_limits
    for ends, unit, own in zip(law.torque_limits, model.control_units, of_robot, strict=True):
        holds = own < np.inf and own in (-ends[0], ends[1])
        each.append(f"{ends[0]:g} to {ends[1]:g} {unit}{', of the robot' * bool(holds)}")
    if len(set(each)) == 1 < len(each):
        return f"each drive {each[0]}"
    named = zip(model.control_names, each, law.torque_limits, strict=True)
    return "; ".join(f"{name} {text}" for name, text, ends in named if np.isfinite(ends).any())


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
        A sentence about each: robot, plant, start, references, and points of outputs.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.io import suspicious_task
    >>> suspicious_task(cc.load_task("examples/rover_arm.toml"))
    ()
    """
    found, tree = tuple[str, ...](), isinstance(task.robot, Mechanism)
    if tree:
        found += suspicious(task.robot)
        if task.plant is not None:
            found += tuple(f"plant, {text}" for text in suspicious(task.plant))
        found += suspicious_start(task.robot, task.q0)
    found += tuple(f"reference of {text}" for text in task.reference.warnings)
    with suppress(ConcurError):  # of a law that does not fit; whoever needs it refuses it
        found += tuple(_misread(task)) if tree else ()
    loop = sampled_loop(task)
    found += () if loop is None or loop[0] else (loop[1],)
    found += (*_one_limit(task), *_late(task))
    if not tree:
        return found
    points = [(output.name, output.point) for output in task.outputs]
    return (*found, *suspicious_points(task.robot, points))


def _one_limit(task: Task) -> Iterator[str]:
    """One limit for controls whose gears make different torques of it at their joints."""
    robot = task.robot
    limit = task.law_table.get("torque_limits", task.servo_options.get("torque_limits"))
    gears = {motor.name: motor.reduction for motor in robot.motors}
    each = [gears.get(name, 1.0) for name in robot.control_names]
    if not is_number(limit) or np.ptp(each) < SAME_GEAR:
        return
    k = int(np.argmax(each))
    name, unit, own = robot.control_names[k], robot.control_units[k], robot.control_limits[k]
    text = (
        f"torque_limits = {limit:g} is one number for all controls, but `{name}` is a motor with a "
        f"gear of {each[k]:g}: {limit:g} {unit} there are {limit * each[k]:g} at the joint"
    )
    holds = f"; here the motor's own {own:g} {unit} hold" * bool(own <= limit)
    yield f"{text}{holds}. Write a table by names of controls, limits of motors at the motor"


def _late(task: Task) -> Iterator[str]:
    """Pushes that begin after the end of the run."""
    for wrench in task.imperfections.wrenches if task.imperfections else ():
        if wrench.start >= task.duration:
            yield (
                f"wrench `{wrench.name}` begins at {wrench.start:g} s, the run ends at "
                f"{task.duration:g} s: it has no effect"
            )


def sampled_loop(task: Task) -> tuple[bool, str] | None:
    """Whether the gains of a servo bear sampling and latency, in words; None without them."""
    latency = task.imperfections.latency if task.imperfections else 0.0
    period = task.control_period or (task.dt if latency else 0.0)
    held = f"torques held for {period:g} s"
    try:
        if not (task.law.linearizes and period):
            return None
        longest = longest_latency(task.law, period, latency)
    except ConcurError:  # of a law that does not fit; whoever needs it refuses it
        return None
    if longest == 0.0:
        limit = loop_margins(task.law).hold_limit
        return False, f"{held}: the errors grow; these gains need a period below {limit:.3g} s"
    held += f" and a latency of {latency:g} s"
    if longest is None:
        return True, f"{held}: the gains bear them"
    return False, f"{held}: the errors grow; these gains need a latency below {longest:.3g} s"


def _misread(task: Task) -> Iterator[str]:
    """References that begin at the outputs if their numbers are read in another way."""
    size, start = task.robot.extent, 0
    actual, wanted = task.law.output(task.q0), task.reference(0.0).pose
    for output in task.outputs:
        part = slice(start, start + output.pose_size)
        start, names = part.stop, named(output.group).coordinate_names
        text = f"reference of {output.name}: at t = 0 it is"
        here, there = (pose[part] for pose in (actual, wanted))
        place = [name in ("x", "y", "z") for name in names]
        away, *off = (
            float(np.linalg.norm(scale * there[place] - here[place]))
            for scale in (1.0, *SMALL_UNITS.values())
        )
        if away > FAR * size and min(off) < size:
            unit = list(SMALL_UNITS)[int(np.argmin(off))]
            yield f"{text} {away:.4g} m away, on a robot of {size:.2g} m: {unit} instead of m?"
        if names[-1] == "qw":
            # Both signs of a quaternion are the same orientation.
            orders = there[-4:], np.roll(there[-4:], -1)
            turn, turned = (2.0 * np.arccos(min(1.0, abs(q @ here[-4:]))) for q in orders)
            if turn > FAR_TURN and turned < 0.1 * turn:
                yield (
                    f"{text} turned by {turn:.2g} rad, but by {turned:.2g} rad if its quaternion "
                    "has the scalar part first: write x, y, z, w"
                )


def _gains(task: Task) -> dict[str, dict[str, list[float]]]:
    gains, start, servo = dict[str, dict[str, list[float]]](), 0, task.law
    if not servo.linearizes:
        return gains
    for output in servo.outputs:
        part = slice(start, start + output.dim)
        start += output.dim
        gains[output.name] = {
            "stiffness": np.diag(servo.stiffness)[part].tolist(),
            "damping": np.diag(servo.damping)[part].tolist(),
        }
        if servo.integral is not None:
            gains[output.name]["integral"] = np.diag(servo.integral)[part].tolist()
    return gains


def _shown(values: list[float]) -> str:
    different = dict.fromkeys(values)
    return ", ".join(f"{value:g}" for value in (different if len(different) == 1 else values))
