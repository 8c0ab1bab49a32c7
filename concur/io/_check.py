"""Checks of a robot before it is used, and of a task before it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.control import Feasibility, Reach, TorqueReserve, TrackingLaw, lost_direction
from concur.errors import DescriptionError, UnknownNameError
from concur.files import is_file
from concur.io._facts import sampled_loop, suspicious_task, torque_limits
from concur.io._python_task import is_python
from concur.io._robot import load, load_shipped, shipped_names
from concur.io._task import Task, load_task
from concur.io._urdf_lint import suspicious_urdf
from concur.reduction import Audit, ReducedModel, SymmetryReport, reduce, symmetry
from concur.results import JsonResult, Row, Table, picked, plain
from concur.robot import Body, Mechanism, Motor, suspicious
from concur.robot.joints import Free
from concur.simulation import error_parts
from concur.tables import located, read_toml, suggest_file

CLOSE = 20.0
"""Multiple of the singular margin below which a configuration counts as nearly singular."""

FALLEN = 0.2
"""Share of the margin at the start from which on the least one is explained: joints turn fast."""

OF_BASE = ("x", "y", "z", "qx", "qy", "qz", "qw")
"""Coordinates of a base on a `Free` joint."""


@dataclass(frozen=True, eq=False)
class Start:
    """Start of a task and reach of its outputs.

    Parameters
    ----------
    task : Task
        The task.
    reach : Reach
        Configurations along the reference, found from the start.
    path : Feasibility
        The exact motion along the reference, which wheels and momentum determine.
    reserve : TorqueReserve
        Shares of the limits of torques that the weight and the limits of joints need.
    """

    task: Task
    reach: Reach
    path: Feasibility
    reserve: TorqueReserve

    @property
    def servo(self) -> TrackingLaw:
        """Law of the task."""
        return self.task.law

    @cached_property
    def margin(self) -> float:
        """Decoupling margin at the start."""
        return self.servo.margin(self.task.q0)

    @property
    def poses(self) -> dict[str, dict[str, float]]:
        """Coordinates of each output at the start, by output and name."""
        values, found = iter(np.asarray(self.servo.output(self.task.q0)).tolist()), {}
        for output in self.servo.outputs:
            found[output.name] = {name: next(values) for name in output.lie.coordinate_names}
        return found

    @property
    def distances(self) -> dict[tuple[str, str], float]:
        """Distances to the reference at the start by output and unit, m and rad."""
        error = self.servo.pose_error(self.task.q0, self.task.reference(0.0).flat_pose)
        return self._sizes(np.asarray(error))

    @property
    def residuals(self) -> dict[tuple[str, str], float]:
        """Distances that stay where the reference is farthest out of reach."""
        return self._sizes(self.reach.errors[self.reach.worst])

    def _sizes(self, error: np.ndarray) -> dict[tuple[str, str], float]:
        return {
            (", ".join(name), unit): float(np.linalg.norm(error[places]))
            for name, unit, places in error_parts(self.servo.outputs)
        }

    @property
    def lost(self) -> str:
        """Direction that is nearly lost at the start or on the way; empty if none is."""
        bound = CLOSE * self.servo.singular_margin
        way = self.path if self.path.feasible else self.reach
        least = int(way.margins.argmin())
        if self.margin < min(bound, way.margins[least]):
            return f"at the start, {lost_direction(self.servo, self.task.q0)}"
        if way.margins[least] < max(bound, FALLEN * self.margin):
            where = lost_direction(self.servo, way.configurations[least])
            return f"at t = {way.times[least]:.3g} s, {where}"
        return ""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the task cannot be tracked, a sentence each."""
        found, reach = [], self.reach
        if self.margin < self.servo.margins.refused_below:
            found.append(f"the start is singular: {lost_direction(self.servo, self.task.q0)}")
        if not reach.complete:
            (name, unit), size = max(self.residuals.items(), key=lambda entry: entry[1])
            found.append(
                f"the reference is out of reach: output `{name}` stays {size:.3g} {unit} away at "
                f"t = {reach.times[reach.worst]:.3g} s"
            )
        return (*found, *self.reserve.problems)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Distances at the start and out of reach, margins, and shares of the torque limits."""
        reach, path = self.reach, self.path
        at, refused = f"t = {reach.times[reach.worst]:.3g} s", self.servo.margins.refused_below
        lowest, time = path.margin, path.reached
        if path.feasible:
            time = path.times[int(path.margins.argmin())]
        where = f"nearly singular {self.lost}" if self.lost else f"t = {time:.3g} s"
        away = [
            Row(f"distance of {name} to the reference at the start", size, unit=unit)
            for (name, unit), size in self.distances.items()
        ]
        stays = [
            Row(f"distance of {name} that stays", size, None, unit, at, reach.complete)
            for (name, unit), size in self.residuals.items()
        ]
        margin = Row.judged("decoupling margin at the start", self.margin, refused, at_least=True)
        smallest = Row("smallest margin on the reference", lowest, place=where)
        return (*away, *stays, margin, smallest, *self.reserve.rows)

    @property
    def details(self) -> dict[str, Any]:
        """Fields for JSON."""
        return picked(self, "poses", "margin", "lost") | {"within_reach": self.reach.complete}


@dataclass(frozen=True, eq=False)
class Check(JsonResult):
    """Checks of a robot or a task before it is used; made by `check`.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    model : ReducedModel
        Its reduction.
    audit : Audit
        The assumptions, of a task for its outputs and its reference.
    symmetries : SymmetryReport
        Symmetries, joint by joint.
    warnings : tuple of str
        Numbers that are possible but suggest a mistake.
    start : Start or None
        Start and reach of a task.

    Examples
    --------
    >>> from concur.io import check
    >>> found = check("rover_arm")
    >>> found.status, found.model.kind
    ('passed', 'chaplygin')
    """

    kind = "check"

    robot: Mechanism
    model: ReducedModel
    audit: Audit
    symmetries: SymmetryReport
    warnings: tuple[str, ...]
    start: Start | None = None

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.robot.name

    @property
    def status(self) -> str:
        """Whether all assumptions hold and the reference is within reach: "passed" or "failed"."""
        return "failed" if self.problems else "passed"

    @property
    def problems(self) -> tuple[str, ...]:
        """Assumptions that fail, and what is wrong with the start, in sentences."""
        cures = {} if self.start is None else {"CON4": f". {self.start.path.cure}"}
        failures = (f"{row.id}: {row.why}{cures.get(row.id, '')}" for row in self.audit.failures)
        return (*failures, *(() if self.start is None else self.start.problems))

    @property
    def rows(self) -> tuple[Row, ...]:
        """Assumptions with their evidence; of a task also distances and margins."""
        return (*self.audit.rows, *(() if self.start is None else self.start.rows))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Symmetries of a robot."""
        if self.start is not None or not isinstance(self.robot, Mechanism):
            return ()
        rows = tuple(
            (row.joint, f"{row.whole.dim} {row.whole.name}", str(row.kept),
             "in part" if row.partly else row.reducible, row.evidence)
            for row in self.symmetries
        )  # fmt: skip
        head = ("joint", "group", "keeps all", "reducible", "evidence")
        return (Table("Symmetries, joint by joint", head, rows),)

    @property
    def notes(self) -> tuple[str, ...]:
        """Reduction and shape velocities; of a robot its parts, and what the model leaves out."""
        found = [
            f"{self.model.kind} reduction: {self.model.reason}",
            f"shape velocities: {', '.join(self.model.shape_names)}",
        ]
        robot: Any = self.robot
        if not isinstance(robot, Mechanism):
            found.append("reach and torques of a system without bodies: `concur track` the task")
        elif self.start is None:
            found += [f"not part of the model: {text}" for text in self.robot.unread]
            found.append(self.robot.summary())
        if self.start is not None:
            base, poses = self.robot.base, self.start.poses
            if isinstance(base.joint, Free):
                place = zip(OF_BASE, self.start.task.q0.tolist(), strict=False)
                poses = {f"base `{base.name}`": dict(place), **poses}
            for of, pose in poses.items():
                shown = " ".join(f"{name} {round(x, 9) + 0.0:.4g}" for name, x in pose.items())
                found.append(f"{of} at the start: {shown}")
            found += _at_start(self.start.task)
            found += [f"reference of {text}" for text in self.start.task.reference.notes]
            if self.start.task.law.torque_limits is not None:
                found.append(f"torque limits: {torque_limits(self.start.task.law)}")
            if (loop := sampled_loop(self.start.task)) and loop[0]:
                found.append(loop[1])
            for label, entries in _campaign(self.start.task).items():
                names = ", ".join(entry["name"] + _support(entry) for entry in entries)
                stated = label == "requirements" and self.start.task.states_requirements
                instead = ", in place of those of tolerances and limits" if stated else ""
                found.append(f"{label}: {names or 'none'}{instead}")
            found.append("`concur check` of the robot lists its parts, motors and symmetries")
        return tuple(found)

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON."""
        tree = isinstance(self.robot, Mechanism)
        own = picked(self.robot, "unread", "gravity") if tree else {"unread": [], "gravity": None}
        own["constraints"] = list(self.robot.constraint_names)
        symmetries = [
            picked(row, "joint", "driven", "reducible", "partly", "conserved")
            | {"group": row.whole.name, "why": row.reason}
            | {
                name: None if (found := getattr(row, name)) is None else found.name
                for name in ("conjugated", "left", "right", "kept")
            }
            for row in self.symmetries
        ]
        start = self.start
        return own | {
            "bodies": [_body(body, self.robot) for body in self.robot.bodies] if tree else [],
            "wheels": [picked(w, "body", "kind", "radius") for w in self.robot.wheels]
            if tree
            else [],
            "motors": [_motor(motor) for motor in self.robot.motors],
            "kind": self.model.kind,
            "reason": self.model.reason,
            "shape": list(self.model.shape_names),
            "audit": self.audit.details,
            "holds": self.audit.holds,
            "symmetry": symmetries,
            **({} if start is None else {"start": start.details, **_campaign(start.task)}),
        }


def check(
    subject: str | PathLike[str] | Mechanism | Task,
    stages: str | Sequence[str] | None = None,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str] | None = None,
) -> Check:
    """Check a robot: inertias, reduction, assumptions, symmetries; of a task also start and reach.

    Parameters
    ----------
    subject : Mechanism, Task, str or path-like
        The robot or task, its file, or the name of a shipped robot.
    stages : str or sequence of str, optional
        Joints by which a robot is reduced further, as of `reduce`.
    xacro, packages : mapping of str to str, optional
        As of `load`.

    Returns
    -------
    Check
        What is known, with `status` and `problems`.

    Raises
    ------
    ConcurError
        If a file cannot be read, or the robot cannot be reduced.

    Examples
    --------
    >>> from concur.io import check
    >>> found = check("examples/rover_arm.toml")
    >>> found.status, round(found.start.margin, 2)
    ('passed', 0.75)
    """
    where, warnings = "check", tuple[str, ...]()
    if not isinstance(subject, (Mechanism, Task)):
        where = name = os.fspath(subject)
        if is_task(name):
            subject = load_task(name)
        else:
            macros: Any = {"xacro": dict(xacro or {}), "packages": dict(packages or {})}
            subject, is_name = named_robot(name, **macros)
            if not is_name and Path(name).suffix.lower() in (".urdf", ".xacro"):
                warnings = suspicious_urdf(name, **macros)
    if isinstance(subject, Mechanism):
        with located(where, ""):
            model = reduce(subject, stages=stages)
        found = (*suspicious(subject), *warnings)
        return Check(subject, model, model.audit(), symmetry(subject), found)
    if stages is not None:
        raise DescriptionError(
            "check, `stages`",
            expected="a robot",
            came=f"the task {subject.path}",
            cure="Write `stages` in the task.",
        )
    servo = subject.law
    robot: Any = subject.robot
    if not isinstance(robot, Mechanism):
        found, none = suspicious_task(subject), SymmetryReport(robot.name, (), 0.0)
        return Check(robot, servo.model, servo.audit(), none, found)
    audit = servo.audit(subject.reference, subject.duration, subject.q0)
    along = subject.reference, subject.duration, subject.q0
    given = subject.operating or {}
    box = {key: given[key] for key in ("ranges", "speeds") if given.get(key) is not None}
    path, reserve = servo.feasibility(*along), servo.torque_reserve(*along, **box)
    start = Start(subject, servo.reach(*along), path, reserve)
    if servo.linearizes:
        _ = subject.statement  # an error in [proof] is found here
    warnings = suspicious_task(subject)
    return Check(subject.robot, servo.model, audit, symmetry(subject.robot), warnings, start)


def is_task(name: str) -> bool:
    """Whether a name is that of a task file.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    bool
        Whether it is a TOML file with outputs, or a Python file.
    """
    path = Path(name)
    if is_python(path):
        return is_file(path)
    return path.suffix == ".toml" and is_file(path) and "outputs" in read_toml(path)


def named_robot(
    name: str, xacro: Mapping[str, str] | None = None, packages: Mapping[str, str] | None = None
) -> tuple[Mechanism, bool]:
    """Load a robot by its file or by the name of a shipped one.

    Parameters
    ----------
    name : str
        File or name.
    xacro, packages : mapping of str to str, optional
        As of `load`.

    Returns
    -------
    robot : Mechanism
        The robot.
    shipped : bool
        Whether it was a name.

    Raises
    ------
    UnknownNameError
        If there is neither.
    """
    known, path = shipped_names(), Path(name)
    # Not `Path.exists`, which raises an error if a name is too long for a file.
    shipped = not os.path.exists(name) and not path.suffix and path.name == name
    if shipped and name not in known:
        raise UnknownNameError(
            name,
            expected=f"a robot or task file (.toml, .urdf) or a shipped robot ({', '.join(known)})",
            came="neither a file nor a robot of this name",
            cure=suggest_file(path, "Check the spelling.", names=known),
        )
    found = load_shipped(name) if shipped else load(name, xacro=xacro, packages=packages)
    return found, shipped


def _at_start(task: Task) -> list[str]:
    """Joints behind the base at the start, and the spin of a base that floats."""
    robot, joints = task.robot, []
    for body in robot.bodies[1:]:
        units = body.joint.coordinate_units
        values = task.q0[robot.q_slice(body.name)]
        for name, x, unit in zip(
            body.of_each(body.joint.coordinate_names), values, units, strict=True
        ):
            joints.append(f"{name} {round(float(x), 9) + 0.0:.4g}" + f" {unit}" * (unit != "1"))
    found = [f"joints at the start: {', '.join(joints)}"] if joints else []
    if isinstance(robot.base.joint, Free) and not robot.wheels:
        spin = np.degrees(task.law.model.velocity(task.q0, task.s0)[3:6])
        shown = ", ".join(f"{round(float(x), 9) + 0.0:.4g}" for x in spin)
        found.append(f"spin of `{robot.base.name}` at the start: ({shown}) deg/s about its axes")
    return found


def _support(entry: Mapping[str, Any]) -> str:
    """Range of an uncertain quantity in words; empty without one."""
    low, high = entry.get("support") or (None, None)
    if low is None or high is None or not np.isfinite([low, high]).all():
        return ""
    unit = entry["unit"]
    return f" {low:.4g} to {high:.4g}" + f" {unit}" * (unit not in ("", "1"))


def _campaign(task: Task) -> dict[str, list[dict[str, Any]]]:
    """Requirements and uncertain quantities of a task, by their fields."""
    return {
        "requirements": [
            picked(made, "name", "kind", "unit", "after") for made in task.requirements
        ],
        "uncertainty": [
            {"name": made.label, "unit": made.unit, "support": plain(made.support)}
            for made in task.uncertainty.quantities
        ],
    }


def _body(body: Body, robot: Mechanism) -> dict[str, Any]:
    shape = [name for name in ("axis", "normal", "pitch") if hasattr(body.joint, name)]
    own = picked(body, "name", "parent", "limits", "speed_limit", "torque_limit")
    own |= picked(body.inertia, "mass", "com", "tensor", "principal_moments")
    own |= {
        "joint": type(body.joint).__name__,
        "joint_name": body.joint_label,
        "driven": body.name in robot.driven_bodies,
    }
    return own | picked(body.joint, *shape) if shape else own


def _motor(motor: Motor) -> dict[str, Any]:
    """Fields of a motor that its file states."""
    stated = (one.name for one in fields(motor) if getattr(motor, one.name) != one.default)
    return picked(motor, *stated)
