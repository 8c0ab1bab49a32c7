"""`concur check`: reduction, assumptions and symmetries of a robot, and the start of a task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.campaign import Campaign
from concur.cli._answer import NO_TABLE, Answer
from concur.cli._check_task import StartResult
from concur.cli._tables import MARKS, audit_dict, shown_audit
from concur.cli._urdf import macros_of
from concur.cli._warnings import file_warnings, robot_warnings, task_warnings
from concur.errors import UnknownNameError
from concur.files import is_file
from concur.io import Task, load, load_shipped, load_task, shipped_names
from concur.reduction import Audit, JointSymmetry, ReducedModel, SymmetryReport, reduce, symmetry
from concur.robot import Body, Mechanism
from concur.tables import located, read_toml, suggest_file


def check_robot(
    robot: str,
    stages: str | None = None,
    xacro: Sequence[str] | None = None,
    every: bool = False,
) -> Answer:
    """Load a robot by file or name, reduce and audit it, and find its symmetries."""
    if is_task(robot):
        return _check_task(Path(robot), stages, every)
    macros = macros_of(xacro)
    mechanism, is_name = named_robot(robot, **macros)
    with located(robot, ""):
        names = stages if stages in (None, "auto") else [s.strip() for s in stages.split(",")]
        model = reduce(mechanism, stages=names)
    # This takes seconds for a robot of many joints: show a status on a terminal.
    with Console(stderr=True).status("searching for symmetries, joint by joint"):
        found = symmetry(mechanism)
    warnings = (*robot_warnings(mechanism), *(() if is_name else file_warnings(robot, **macros)))
    return _answer(mechanism, model, model.audit(), found, warnings, None, every)


def is_task(name: str) -> bool:
    """Whether a name is that of a task file."""
    path = Path(name)
    return path.suffix == ".toml" and is_file(path) and "outputs" in read_toml(path)


def named_robot(robot: str, **macros: Any) -> tuple[Mechanism, bool]:
    """Load a robot by file or name; also, whether it was a name."""
    known = shipped_names()
    path = Path(robot)
    # Not `Path.exists`, which raises an error if a name is too long for a file.
    is_name = not os.path.exists(robot) and not path.suffix and path.name == robot
    if is_name and robot not in known:
        raise UnknownNameError(
            robot,
            expected=f"a robot or task file (.toml, .urdf) or a shipped robot ({', '.join(known)})",
            came="neither a file nor a robot of this name",
            cure=suggest_file(path, "Check the spelling.", names=known),
        )
    return (load_shipped(robot) if is_name else load(robot, **macros)), is_name


def _check_task(path: Path, stages: str | None, every: bool) -> Answer:
    """Check the robot of a task with its outputs, its reference and its start."""
    if stages is not None:
        raise UnknownNameError(
            "option `--stages`",
            expected="a robot",
            came=f"the task {path}",
            cure="Write `stages` in the task.",
        )
    task = load_task(path)
    servo = task.law
    audit = servo.audit(task.reference, task.duration, task.q0)
    start = StartResult.of(task, servo)
    if servo.linearizes:
        _ = task.statement  # an error in [proof] is found here
    if task.uncertainty.size:
        Campaign(task).check()
    with Console(stderr=True).status("searching for symmetries, joint by joint"):
        found = symmetry(task.robot)
    return _answer(task.robot, servo.model, audit, found, task_warnings(task), start, every)


def _answer(
    robot: Mechanism,
    model: ReducedModel,
    audit: Audit,
    symmetries: SymmetryReport,
    warnings: Sequence[str],
    start: StartResult | None,
    every: bool,
) -> Answer:
    """Answer about a robot, or a task with its start; `every` prints all assumptions."""
    problems = [f"{row.id}: {row.why}" for row in audit.failures] + (
        start.problems if start else []
    )
    campaign = _campaign(start.task) if start else {}
    named = {label: [entry["name"] for entry in entries] for label, entries in campaign.items()}
    return Answer(
        command="check",
        passed=not problems,
        status="failed" if problems else "passed",
        name=start.task.name if start else robot.name,
        robot=robot.name,
        problems=problems,
        warnings=warnings,
        rows=audit.rows,
        own={
            "unread": list(robot.unread),
            "gravity": list(robot.gravity),
            "bodies": [_body_dict(body, robot) for body in robot.bodies],
            "wheels": [
                {"body": wheel.body, "kind": wheel.kind, "radius": wheel.radius}
                for wheel in robot.wheels
            ],
            "constraints": list(robot.constraint_names),
            "kind": model.kind,
            "reason": model.reason,
            "shape": list(model.shape_names),
            "audit": audit_dict(audit),
            "holds": audit.holds,
            "symmetry": [_symmetry_dict(row) for row in symmetries],
            **({"start": start.as_dict(), **campaign} if start else {}),
        },
        table=NO_TABLE,
        shown=[
            f"{model.kind} reduction: {model.reason}",
            f"shape velocities: {', '.join(model.shape_names)}",
            *(f"not part of the model: {text}" for text in robot.unread),
            *(start.shown() if start else ()),
            *(f"{label}: {', '.join(names) or 'none'}" for label, names in named.items()),
            *shown_audit(audit, every),
            "",
            robot.summary(),
            "",
            _symmetry_table(symmetries),
        ],
    )


def _campaign(task: Task) -> dict[str, list[dict[str, Any]]]:
    """Requirements and uncertain quantities of a task, by their fields."""
    return {
        "requirements": [
            {"name": made.name, "kind": made.kind, "unit": made.unit, "after": made.after}
            for made in task.requirements
        ],
        "uncertainty": [
            {
                "name": quantity.label,
                "unit": quantity.unit,
                "support": [x if isfinite(x) else None for x in quantity.support],
            }
            for quantity in task.uncertainty.quantities
        ],
    }


def _symmetry_table(report: SymmetryReport) -> Table:
    table = Table(title="Symmetries, joint by joint", title_justify="left")
    for title in ("joint", "group", "keeps all", "reducible", "evidence"):
        table.add_column(title)
    for row in report:
        reducible = "in part" if row.partly else MARKS[row.reducible]
        group = f"{row.whole.dim} {row.whole.name}"
        table.add_row(escape(row.joint), group, str(row.kept), reducible, escape(row.evidence))
    return table


def _symmetry_dict(row: JointSymmetry) -> dict[str, Any]:
    groups = {
        "group": row.whole.name,
        "conjugated": row.conjugated.name,
        "left": row.left.name,
        "right": row.right.name if row.right else None,
        "kept": row.kept.name,
    }
    return {
        "joint": row.joint,
        "driven": row.driven,
        **groups,
        "reducible": row.reducible,
        "partly": row.partly,
        "why": row.reason,
        "conserved": list(row.conserved),
    }


def _body_dict(body: Body, robot: Mechanism) -> dict[str, Any]:
    joint, inertia = body.joint, body.inertia
    # JSON has no infinity.
    limits = [[x if isfinite(x) else None for x in pair] for pair in body.limits]
    return {
        "name": body.name,
        "parent": body.parent,
        "joint": type(joint).__name__,
        **{
            name: getattr(joint, name)
            for name in ("axis", "normal", "pitch")
            if hasattr(joint, name)
        },
        "driven": body.name in robot.driven_bodies,
        "limits": limits,
        "speed_limit": [x if isfinite(x) else None for x in body.speed_limit],
        "torque_limit": [x if isfinite(x) else None for x in body.torque_limit],
        "mass": inertia.mass,
        "com": list(inertia.com),
        "moments": inertia.tensor.tolist(),
        "principal_moments": inertia.principal_moments.tolist(),
    }
