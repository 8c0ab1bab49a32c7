"""Writer of robots as TOML files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from concur.robot import (
    Body,
    Inertia,
    Mechanism,
    Mimic,
    Motor,
    Pose,
    Shape,
    Spring,
    Steering,
    Support,
    Tree,
    Wheel,
    joints,
    repeated_limits,
)
from concur.writers._names import check


def to_toml(robot: Tree) -> str:
    """Write a robot as text in TOML, all numbers to the last bit.

    Parameters
    ----------
    robot : Tree
        The robot.

    Returns
    -------
    str
        Content of a robot file: `concur.load` reads an equal robot from it, but for limits of
        joints that their motors state too, which are left out.

    Raises
    ------
    DescriptionError
        If a name cannot be printed, or a number exceeds 1e9.
    """
    import tomlkit

    check(robot)
    document = tomlkit.document()
    document.add("name", tomlkit.item(robot.name))
    if any(robot.gravity):
        document.add("gravity", tomlkit.item(list(robot.gravity)))
    plain = Tree(
        robot.name,
        robot.bodies,
        robot.wheels,
        motors=robot.motors,
        mimics=robot.mimics,
        steering=robot.steering,
    )
    if robot.actuated != plain.actuated:
        document.add("actuated", tomlkit.item(list(robot.actuated or ())))
    twice = [(body.name, name) for body, name, _ in repeated_limits(robot.bodies, robot.motors)]
    parts = [_body(body) for body in robot.bodies]
    for part in parts:
        for name in ("speed_limit", "torque_limit"):
            if (part["name"], name) in twice:
                del part[name]
    document.add("bodies", tables(parts))
    add_parts(document, robot, ("wheels", "motors", "mimics", "springs", "steering"))
    if isinstance(robot, Mechanism) and robot.keyframes:
        states = tomlkit.table()
        for name, state in robot.keyframes.items():
            states.add(name, {part: dict(getattr(state, part)) for part in ("q", "v")})
        document.add("keyframes", states)
    return tomlkit.dumps(document)


def add_parts(document: Any, robot: Tree, kinds: Sequence[str]) -> None:
    """Add arrays of tables of some kinds of parts, and the table of supports, if there are any."""
    import tomlkit

    for kind in kinds:
        if parts := getattr(robot, kind):
            document.add(kind, tables([_given(part) for part in parts]))
    if robot.supports:
        document.add("supports", tomlkit.item({n: list(at) for n, at in robot.supports.items()}))


def tables(entries: list[dict[str, Any]]) -> Any:
    """Make an array of tables, with inner tables in one line each."""
    import tomlkit

    array = tomlkit.aot()
    for entry in entries:
        table = tomlkit.table()
        for key, value in entry.items():
            if isinstance(value, dict):
                value = _inline(value)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                several, value = value, tomlkit.array()
                value.extend(map(_inline, several))
            table.add(key, value)
        array.append(table)
    return array


def _inline(value: dict[str, Any]) -> Any:
    import tomlkit

    inline = tomlkit.inline_table()
    inline.update(value)
    return inline


def _body(body: Body) -> dict[str, Any]:
    """Fields of a body that differ from their defaults."""
    entry: dict[str, Any] = {"name": body.name}
    if body.parent is not None:
        entry["parent"] = body.parent
    entry["joint"] = {"type": type(body.joint).__name__, **_joint(body.joint)}
    if body.placement != Pose():
        placement = body.placement
        given = {"translation": list(placement.translation), "rotation": list(placement.rotation)}
        entry["placement"] = given
    if body.inertia != Inertia(0.0):
        entry["inertia"] = _inertia(body.inertia)
    if any(map(math.isfinite, (x for pair in body.limits for x in pair))):
        pairs = [list(pair) for pair in body.limits]
        entry["limits"] = pairs[0] if len(pairs) == 1 else pairs
    for name in ("speed_limit", "torque_limit"):
        values = list(getattr(body, name))
        if any(map(math.isfinite, values)):
            entry[name] = values[0] if len(values) == 1 else values
    if body.joint_label != body.name:
        entry["joint_name"] = body.joint_label
    if body.shape:
        entry["shape"] = [_shape(shape) for shape in body.shape]
    return entry


def _shape(shape: Shape) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": shape.kind, "size": list(shape.size)}
    if shape.file:
        entry["file"] = shape.file
    if any(shape.placement.translation):
        entry["translation"] = list(shape.placement.translation)
    if shape.placement.rotation != Pose().rotation:
        entry["rotation"] = list(shape.placement.rotation)
    return entry


def _joint(joint: joints.Joint) -> dict[str, Any]:
    values = {field.name: getattr(joint, field.name) for field in fields(joint)}  # type: ignore[arg-type]
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def _inertia(inertia: Inertia) -> dict[str, Any]:
    entry: dict[str, Any] = {"mass": inertia.mass}
    if any(inertia.com):
        entry["com"] = list(inertia.com)
    if inertia.edges:
        entry["box"] = list(inertia.edges)
    elif isinstance(inertia.moments[0], tuple):
        entry["tensor"] = [list(row) for row in inertia.moments]
    elif any(inertia.moments):
        entry["moments"] = list(inertia.moments)
    return entry


def _given(value: Motor | Mimic | Spring | Steering | Support | Wheel) -> dict[str, Any]:
    """Fields that differ from their defaults, and those without a default."""
    found = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {
        name: list(x) if isinstance(x, tuple) else _given(x) if isinstance(x, Support) else x
        for name, (x, default) in found.items()
        if x is not None and x != default
    }
