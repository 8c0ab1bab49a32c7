"""Readers of the parts of a task file: robot, plant, outputs, gains, times and tolerances."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.control import GAINS, KINDS, Servo, TrackingLaw, law_of_kind, own_kind, stated_limits
from concur.errors import ConcurError, DescriptionError
from concur.files import is_file, read_text
from concur.io._configuration import check_joints
from concur.io._robot import ROBOT_FILES, load, load_shipped, shipped_names
from concur.io._task_tables import TrackedOutput
from concur.outputs import Output, Reference
from concur.reduction import ReducedModel
from concur.robot import Mechanism
from concur.tables import (
    build,
    fault,
    located,
    missing_file,
    model_of,
    refused,
    show,
    stranger,
    unknown,
)


def read_operating(
    data: Mapping[str, Any], robot: Mechanism, path: str | PathLike[str]
) -> dict[str, Any]:
    """Arguments of `operating_bounds` in a task; it checks all but types and names of joints."""
    from concur.certify import operating_bounds

    found: dict[str, Any] = build(
        operating_bounds, data["operating"], path, data, ("operating",), maker=dict
    )
    check_joints(found["ranges"], robot, path, "[operating.ranges]")
    return found


def read_stages(
    stages: str | list[str] | dict[str, Any] | None,
    robot: Mechanism,
    path: str | PathLike[str],
) -> str | tuple[str, ...] | dict[str, Any] | None:
    """Reject unknown joints; the model checks whether their joints can be reduced."""
    if stages is not None and stages != "auto":
        check_joints(stages, robot, path, "", "stages")
    return tuple(stages) if isinstance(stages, list) else stages


def read_robot(name: str, path: str | PathLike[str]) -> Mechanism:
    if is_robot_file(name):
        file = Path(path).parent / name
        if not is_file(file):
            raise missing_file(path, "", "robot", "a robot file", file)
        return load(file)
    known = shipped_names()
    if name not in known:
        raise unknown(path, "", "robot", "a shipped robot or a .toml file", name, known)
    return load_shipped(name)


def is_robot_file(name: str) -> bool:
    return "/" in name or "\\" in name or Path(name).suffix.lower() in ROBOT_FILES


def read_plant(file: str, robot: Mechanism, path: str | PathLike[str]) -> Mechanism:
    whole = Path(path).parent / file
    if not is_file(whole):
        raise missing_file(path, "[plant]", "file", "a robot file", whole)
    plant = load(whole)
    expected, found = _structure(robot), _structure(plant)
    if expected != found:
        odd = [line for line in found if line not in expected]
        lost = [line for line in expected if line not in found]
        parts = [", ".join(odd), f"without {', '.join(lost)}" if lost else ""]
        came = " ".join(filter(None, parts)) or "another order of the bodies"
        raise fault(
            path,
            "[plant]",
            "file",
            expected="the bodies, joints and drives of the task's robot",
            came=came,
            cure="Copy the robot's file and change numbers only.",
        )
    return plant


def _structure(robot: Mechanism) -> list[str]:
    """Describe the properties that a plant shares with the robot, one line per body."""
    driven = robot.driven_bodies
    return [
        f"`{b.name}` ({type(b.joint).__name__} on {b.parent or 'the world'}"
        + (", driven)" if b.name in driven else ")")
        for b in robot.bodies
    ]


def read_outputs(
    tables: Sequence[Mapping[str, Any]], robot: Mechanism, path: str | PathLike[str]
) -> tuple[tuple[Output, ...], dict[str, NDArray[np.float64]]]:
    """Outputs, and the diagonal gains of all; without integral action there is no `integral`."""
    bodies, diagonals = [body.name for body in robot.bodies], dict[str, list[float]]()
    acting = any("integral" in table for table in tables)

    def made(stiffness: Any, damping: Any, integral: Any = None, **given: Any) -> Output:
        for field in ("body", "relative_to"):
            if given.get(field, bodies[0]) not in bodies:
                raise stranger((field,), "a body", given[field], bodies)
        output = Output(**given)
        gains = {"stiffness": stiffness, "damping": damping}
        for field, value in (gains | {"integral": integral} if acting else gains).items():
            numbers = list(value) if isinstance(value, list) else [value or 0.0] * output.dim
            least = [0.0 < number < np.inf for number in numbers]
            if len(numbers) != output.dim or not (all(least) or value is None):
                expected = f"a number above zero, or {output.dim} of them for an output in "
                cure = "Use gains above zero, with which the errors decay."
                raise refused((field,), expected + output.group, show(value), cure)
            diagonals[field] = diagonals.get(field, []) + numbers
        return output

    file = {"outputs": tables}
    outputs = [
        build(TrackedOutput, table, path, file, ("outputs", k), made)
        for k, table in enumerate(tables)
    ]
    return tuple(outputs), {name: frozen(np.diag(found)) for name, found in diagonals.items()}


def check_law(
    table: Mapping[str, Any],
    given: str,
    path: str | PathLike[str],
    where: str = "[law]",
) -> str:
    """Check the kind of a law and the names of its options; text of the file of an own law.

    `given` are options of a servo that stand elsewhere in the file; in a table of several laws
    those of a servo stand in it.
    """
    kind, among = table.get("kind"), where != "[law]"
    file, _, name = str(kind).rpartition(":")
    if file.endswith(".py") and name.isidentifier():
        whole = Path(path).parent / file
        if not is_file(whole):
            raise missing_file(path, where, "kind", "a Python file", whole)
        return read_text(whole, "a Python file", "Write it beside the task.")
    if not isinstance(kind, str) or kind not in KINDS:
        raise unknown(path, where, "kind", "a kind of law, or FILE.py:NAME", kind, KINDS)
    taken = inspect.signature(KINDS[kind]).parameters
    own = ("model", "outputs", "reference", *(() if kind == "servo" else ("constraints",)))
    known = [key for key in taken if key not in own]
    if kind == "servo" and not among:
        known = []  # its options are fields of [servo] and of the outputs
    for key in table:
        if key not in (*known, "kind", *(["name"] if among else [])):
            raise unknown(path, where, key, "a field", key, ["kind", *known])
    if kind == "servo":
        return ""
    if given:
        raise fault(
            path,
            where,
            "kind",
            expected=f"a servo beside {given}",
            came=show(kind),
            cure=f"Remove {given}, or this table: options of other laws are fields of [law].",
        )
    for key in known:
        # Without any gains those of the outputs count; half of them are a mistake.
        required = taken[key].default is inspect.Parameter.empty and "outputs" not in taken
        if required and key not in table and any(gain in table for gain in GAINS):
            raise fault(
                path,
                where,
                key,
                expected="a number for all joints, a list, or a table of joints",
                came="no value",
                cure=f"Give the gains of the joints, such as `{key} = 20.0`.",
            )
    return ""


def read_laws(
    tables: Sequence[Mapping[str, Any]], path: str | PathLike[str]
) -> dict[str, Mapping[str, Any]]:
    """Laws of the tables [[laws]] by name, by default that of their kind."""
    found = dict[str, Mapping[str, Any]]()
    for k, table in enumerate(tables):
        name, where = table.get("name", table.get("kind")), f"[[laws]] {k + 1}"
        if not isinstance(name, str) or not name or name in found:
            raise fault(
                path,
                where,
                "name",
                expected="a unique name for each law",
                came=show(name),
                cure='Write for example `name = "stiff"`.',
            )
        check_law(table, "", path, f'[[laws]] "{name}"')
        found[name] = {key: value for key, value in table.items() if key != "name"}
    return found


def law_words(text: str, known: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Table of a law in words: the name of a known one, or a kind, and options behind a comma."""
    kind, _, options = (part.strip() for part in text.partition(","))
    if text in known:
        return known[text]
    given: dict[str, Any]
    try:
        given = tomllib.loads(f"options = {{{options}}}")["options"]
    except tomllib.TOMLDecodeError:
        raise DescriptionError(
            f'law "{text}"',
            expected="a kind of law, and options in TOML behind commas",
            came=options,
            cure="Write for example \"passive, rate = 2.0, payload = 'hand'\": words in quotes.",
        ) from None
    return dict(known.get(kind, {"kind": kind})) | given


def read_law(
    table: Mapping[str, Any],
    source: str,
    servo: Servo,
    motion: tuple[Reference, float, Any],
    path: str | PathLike[str],
) -> TrackingLaw:
    """Make the law of the table [law]; errors of its constructor name the field."""
    options = {key: value for key, value in table.items() if key != "kind"}
    file, _, name = table["kind"].rpartition(":")
    try:
        kind = own_kind(source, file, name) if file else table["kind"]
        law = law_of_kind(kind, servo, options, motion)
        if not file:
            check_reserve(options, "[law]", servo.model, path)
        return law
    except ConcurError as error:
        named = [word for word in re.findall(r", `(\w+)`", error.where) if word != "kind"]
        with located(path, "[law]", named[0] if named else "kind"):
            raise


def check_control_names(
    field: str, values: Any, controls: Sequence[str], path: str | PathLike[str]
) -> None:
    """Reject limits or weights of unknown drives; only a table has names."""
    for name in values if isinstance(values, dict) else ():
        if name not in controls:
            raise unknown(path, "[servo]", field, "a drive", name, controls)


def check_reserve(
    options: Mapping[str, Any], table: str, model: ReducedModel, path: str | PathLike[str]
) -> None:
    """Refuse torque limits that repeat or exceed those of the robot, which are named by `true`."""
    given = options.get("torque_limits")
    if given is None or isinstance(given, bool):
        return
    own = dict(zip(model.control_names, model.robot.control_limits, strict=True))
    ends = np.abs(stated_limits("torque limits", given, model))
    wide = np.isfinite(ends) & (ends >= np.array(list(own.values()))[:, None])
    at = np.flatnonzero(wide.any(axis=1))
    single = not np.iterable(given)
    if not at.size or (single and not wide.all()):
        return
    at_fault = int(np.argmax(list(own.values()))) if single else int(at[0])
    name, stated = list(own)[at_fault], ends[at_fault]
    raise fault(
        path,
        table,
        "torque_limits",
        expected=f"less than {own[name]:g}, the limit of `{name}` in the robot",
        came=f"{stated[np.isfinite(stated)].max():g}",
        cure="Leave out controls without a reserve, or write torque_limits = true for all: the law "
        "keeps the limits of the robot.",
    )


def option_at_fault(error: ConcurError) -> tuple[str, str]:
    """Table and field of a task that an error of `Servo` belongs to; empty if unknown."""
    named = re.findall(r", `(\w+)`", error.where)
    if not named or named[0] not in model_of(Servo).model_fields:
        return "", ""
    if named[0] == "redundancy":
        return "[servo.redundancy]", named[1] if len(named) > 1 else ""
    return "[servo]", named[0]


def frozen(values: Any) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
