"""Reader of [plan]: the goal of a task, from which a plan makes its references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le, Len

from concur.codegen import as_floats
from concur.documents import document_hash
from concur.files import read_json
from concur.outputs import Output, references
from concur.outputs.references import Reference
from concur.planning import MotionPlan, PlanLimits, changed, made_for, plan, table_of
from concur.robot import Capsule, Clearance, Obstacle
from concur.tables import Expected, FileName, InFiles, any_of, fault, is_number, located

LEAST = "least"

_TIME = Expected(
    'a duration from 0.01 to 1e6 s, or "least"',
    lambda value: value == LEAST or (is_number(value) and 0.01 <= value <= 1e6),
    any_of({"type": "number", "minimum": 0.01, "maximum": 1e6}, {"const": LEAST}),
)


_TABLES = Len(0, 100), Expected("tables, at most 100")


@dataclass(frozen=True)
class PlanTable:
    """The goal of the motion; `concur plan` makes the references of the outputs from it.

    Parameters
    ----------
    goals : mapping
        Goal by output: its pose as a list, with `nan` for free coordinates of R^n; or a table with
        `position` and `within`, the largest distance of each coordinate from it, m, and with
        `direction`, in inertial axes, along which `axis` of the output's frame points.
    time : float or str, optional
        Duration of the motion, s, or the least possible.
    file : str, optional
        File of the plan, beside the task: `concur plan` writes it, other commands read it. Default:
        the name of the task file with `.plan.json`.
    limits : table, optional
        Limits beside those of the robot. Default: none.
    capsule : sequence, optional
        Capsules that move with bodies. Default: around the shapes of the bodies, meshes excepted.
    obstacle : sequence, optional
        Spheres, capsules and boxes that these capsules keep away from. Default: none.
    guesses : int, optional
        Largest number of guesses from which motions are sought.
    via : sequence, optional
        Goals on the way, up to 8 in their order, each a table of goals by output. Default: none.
    """

    goals: Annotated[
        Mapping[str, Any], Len(1, 100), Expected("a table of goals by output, [plan.goals]")
    ]
    time: Annotated[Any, _TIME] = LEAST
    file: FileName | None = None
    limits: PlanLimits = field(default_factory=PlanLimits)
    capsule: Annotated[Sequence[Annotated[Any, InFiles(Capsule.of)]], *_TABLES] = ()
    obstacle: Annotated[Sequence[Obstacle], *_TABLES] = ()
    guesses: Annotated[int, Ge(1), Le(1000), Expected("a whole number from 1 to 1000")] = 8
    via: Annotated[
        Sequence[Annotated[Mapping[str, Any], Expected("a table of goals by output")]],
        Len(0, 8), Expected("tables [[plan.via]], at most 8"),
    ] = ()  # fmt: skip

    def path(self, task: str | PathLike[str]) -> Path:
        """File of the plan of a task."""
        own = Path(task)
        return own.parent / self.file if self.file else own.with_name(f"{own.stem}.plan.json")


def read_planned(
    table: PlanTable, outputs: Sequence[Output], path: str | PathLike[str]
) -> tuple[Reference, dict[str, dict[str, Any]]]:
    """Reference of all outputs from the file of a plan, and the tables that a task has of them.

    Outputs in SE(2) have no such table: a task describes their references as paths in the plane.
    """
    file = table.path(path)
    cure = f"Run `concur plan {path}`, or write [reference.<output>] for each output."
    found = read_json(file, "the file of a plan", cure)
    if not _is_unchanged(found):
        raise fault(
            file,
            "",
            "hash",
            expected="the file of a plan as it was written",
            came="one that was changed, or another file",
            cure=cure,
        )
    parts = found.get("outputs")
    parts = parts if isinstance(parts, dict) else {}
    tables = {o.name: parts.get(o.name) for o in outputs}
    groups = {name: t.get("group") if isinstance(t, dict) else None for name, t in tables.items()}
    wrong = [o.name for o in outputs if groups[o.name] != o.group]
    if wrong or not isinstance(found.get("t"), list):
        raise fault(
            file,
            "",
            "outputs",
            expected=f"the plan of the outputs {', '.join(groups)}",
            came=f"none of `{wrong[0]}`" if wrong else "no times",
            cure=cure,
        )
    if found.get("passed") is not True:
        raise fault(
            file,
            "",
            "status",
            expected="a plan that reaches its goal",
            came=f"{found.get('status')}: {'; '.join(map(str, found.get('problems', ())))}",
            cure="Change the goal or the limits, and run `concur plan` again.",
        )
    with located(file, "", "outputs"):
        times = as_floats(found["t"], "times")
        each, written = list[Reference](), dict[str, dict[str, Any]]()
        for o in outputs:
            poses, twists, accelerations = (
                as_floats(parts[o.name].get(k), f"{k} of `{o.name}`")
                for k in ("poses", "twists", "accelerations")
            )
            each.append(table_of(times, poses, twists, accelerations, o.group))
            if o.group != "SE2":
                rows = {"poses": poses, "twists": twists, "accelerations": accelerations}
                own = {name: value.tolist() for name, value in rows.items()}
                written[o.name] = {"kind": "table", "times": times.tolist(), **own}
        return references.stack(*each), written


def _is_unchanged(found: Any) -> bool:
    """Whether a document has its own hash."""
    try:
        return isinstance(found, dict) and found.get("hash") == document_hash(found)
    except (ValueError, RecursionError):  # numbers that are not finite
        return False


def check_planned(task: Any, table: PlanTable) -> None:
    """Refuse the file of a plan that was made for another problem than that of its task."""
    file = table.path(task.path)
    cure = f"Run `concur plan {task.path}` again."
    moves = any(task.initial_velocities.values())
    names = task.servo.model.shape_names if moves else ()
    speeds = dict(zip(names, task.s0.tolist() if moves else (), strict=True))
    with located(task.path, "[plan]"):
        wanted = made_for(
            *(task.robot, task.momentum, task.outputs, (task.q0, speeds), table.goals),
            *(table.limits, _obstacles(task, table), table.time, table.via),
        )
    others = changed(read_json(file, "the file of a plan", cure).get("made_for"), wanted)
    if others:
        raise fault(
            file,
            "",
            "made_for",
            expected="the plan of this task",
            came=f"one that was made for other values of {', '.join(others)}",
            cure=cure,
        )


def _obstacles(task: Any, table: PlanTable) -> Any:
    """Obstacles of a plan, with its own capsules if it has any."""
    if not table.capsule:
        return tuple(table.obstacle)
    own = tuple(made(task.robot) if callable(made) else made for made in table.capsule)
    return Clearance(own, tuple(table.obstacle))


def plan_task(
    task: Any, table: PlanTable, progress: Callable[[float], Any] | None = None
) -> MotionPlan:
    """Plan the motion of a task from its start to its goals.

    Parameters
    ----------
    task : Task
        The task, as `load_goal` returns it.
    table : PlanTable
        Its goal.
    progress : callable, optional
        Called with the share done.

    Returns
    -------
    MotionPlan
        The plan.

    Raises
    ------
    ConcurError
        As of `concur.plan`; the error names the file.

    Examples
    --------
    >>> from concur.io import load_goal, plan_task
    >>> plan_task(*load_goal("examples/planned_rover.toml")).reached
    True
    """
    with located(task.path, "[plan]"):
        return plan(
            task.servo.model,
            task.outputs,
            (task.q0, task.s0),
            table.goals,
            table.limits,
            _obstacles(task, table),
            time=table.time,
            via=table.via,
            guesses=table.guesses,
            progress=progress,
        )
