"""Reader of references, the tables [reference.<output>] of a task file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le, Len

from concur.outputs import Output, references
from concur.outputs.references import Reference
from concur.robot import Pose
from concur.tables import (
    Expected,
    Table,
    Vector3,
    Vector6,
    check_kind,
    fault,
    located,
    unknown,
    values,
    variant,
)


@dataclass(frozen=True)
class Carried:
    """Fields of all references: motion with a frame, and drift.

    Parameters
    ----------
    kind : str
        Kind of the reference.
    drift : sequence of float, optional
        Constant velocity that is added, in inertial axes, m/s; not for `SO2` and `SO3`. Default:
        none.
    moving : sequence of float, optional
        Constant spatial twist of the frame in which the reference is given: linear, m/s, at the
        inertial origin, then angular, rad/s; for `R3`, `SO3`, `SE3` and `R3xSO3`. At t = 0 this
        frame is the inertial frame. Default: none.
    """

    kind: str
    drift: Vector3 | None = None
    moving: Vector6 | None = None


@dataclass(frozen=True)
class Relative(Carried):
    """Fields of paths in R^n, which can be relative to each other.

    Parameters
    ----------
    relative_to : str, optional
        Output to whose reference this path is added; both are in the same frame. Default: none.
    components : sequence of int, optional
        Number, from 0, of the coordinate to which each coordinate of that output is added.
        Default: axis to axis.
    """

    relative_to: str | None = None
    components: (
        Annotated[
            Sequence[Annotated[int, Ge(0), Le(100)]],
            Len(0, 100),
            Expected("a list of whole numbers from 0"),
        ]
        | None
    ) = None


MAKERS: dict[str, Callable[..., Reference]] = {
    "hold": references.hold,
    "polynomial": references.polynomial,
    "rest_to_rest": references.rest_to_rest,
    "circle": references.circle,
    "waypoints": references.waypoints,
    "screw": references.screw,
    "file": references.from_file,
}
"""Function that makes each kind of reference."""

_OF_POSES = ("start", "attitude", "turning")
"""Parameters of paths of poses only, of `polynomial` and `circle`."""


def _path(kind: str) -> type[Table]:
    omit = () if kind == "rest_to_rest" else _OF_POSES
    return variant(MAKERS[kind], f"{_title(kind)}Path", Relative, omit)


def _pose(kind: str) -> type[Table]:
    required = {"polynomial": ("start",), "circle": ("attitude",)}.get(kind, ())
    return variant(MAKERS[kind], f"{_title(kind)}Pose", Carried, (), required)


def _title(kind: str) -> str:
    return kind.title().replace("_", "")


_PATHS = {kind: _path(kind) for kind in MAKERS if kind != "screw"}
_POSES = {kind: _pose(kind) for kind in MAKERS}
_ATTITUDES = {kind: table for kind, table in _POSES.items() if kind != "circle"}
_MOVING = ("R3", "SO3", "SE3", "R3xSO3")
REFERENCE_KINDS: dict[str, dict[str, type[Table]]] = {
    **dict.fromkeys(("R", "R2", "SO2", "SE2"), _PATHS),
    "R3": _PATHS | {"screw": _POSES["screw"]},
    "SO3": _ATTITUDES,
    "SE3": _POSES,
    "R3xSO3": _POSES,
}


def read_reference(
    outputs: Sequence[Output],
    given_tables: Mapping[str, dict[str, Any]],
    path: str | PathLike[str],
) -> Reference:
    """Build the reference of all outputs from the tables [reference.<output>]."""
    named = {output.name: output for output in outputs}
    for name in given_tables:
        if name not in named:
            raise unknown(path, f"[reference.{name}]", "", "an output", name, named)
    tables: dict[str, Any] = {}
    own: dict[str, Reference] = {}
    for name, output in named.items():
        if name not in given_tables:
            raise fault(
                path,
                "[reference]",
                name,
                expected=f"a table [reference.{name}]",
                came="no value",
                cure=f"Add a table [reference.{name}]: each output needs one.",
            )
        tables[name] = check_kind(
            REFERENCE_KINDS[output.group],
            given_tables[name],
            path,
            {"reference": given_tables},
            ("reference", name),
            f"a kind for an output in {output.group}",
        )
        own[name] = _own_reference(output, tables[name], path)
    whole = references.stack(*(_total(output, named, tables, own, path) for output in outputs))
    whole.notes = tuple(f"{name}: {note}" for name, part in own.items() for note in part.notes)
    return whole


def _own_reference(output: Output, table: Any, path: str | PathLike[str]) -> Reference:
    label = f"[reference.{output.name}]"
    own = inspect.signature(MAKERS[table.kind]).parameters.keys()
    given = {name: value for name, value in values(table).items() if name in own}
    if table.kind == "file":
        given |= {"group": output.group, "file": Path(path).parent / given["file"]}
    elif "group" in own and (table.kind == "screw" or type(table) is not _PATHS.get(table.kind)):
        given["group"] = output.group
    with located(path, label):
        if table.kind == "screw":
            given["start_pose"] = Pose(**values(given["start_pose"])).matrix
        reference = MAKERS[table.kind](**given)
    if reference.pose_size != output.pose_size:
        raise fault(
            path,
            label,
            "",
            expected=f"{output.pose_size} coordinates for an output in {output.group}",
            came=f"{reference.pose_size} coordinates",
            cure="Give each point one number per coordinate of the output.",
        )
    carried = _carried(output, table, reference, path)
    planar = output.group == "SE2" and table.kind != "file"
    return references.planar(carried) if planar else carried


def _carried(
    output: Output, table: Any, reference: Reference, path: str | PathLike[str]
) -> Reference:
    """Reference carried by a moving frame or a drift."""
    label = f"[reference.{output.name}]"
    axes = output.axes or ""
    if table.moving is not None:
        if output.group not in _MOVING or (axes and axes != "xyz"):
            raise fault(
                path,
                label,
                "moving",
                expected=f"an output in {', '.join(_MOVING)}, with axes x, y, z",
                came=" ".join(filter(None, (output.group, axes))),
                cure="Give the motion in inertial axes.",
            )
        with located(path, label, "moving"):
            reference = references.moving(reference, table.moving)
    if table.drift is not None:
        if output.group in ("SO2", "SO3"):
            raise fault(
                path,
                label,
                "drift",
                expected="an output with a position",
                came=output.group,
                cure="Remove it: an orientation cannot drift.",
            )
        velocity = np.array(table.drift)
        if axes:
            velocity = velocity[["xyz".index(axis) for axis in axes]]
        elif output.group == "SE2":
            velocity = np.append(output.lie.basis[:3, :2].T @ velocity, 0.0)
        with located(path, label, "drift"):
            reference = references.drifting(reference, velocity)
    return reference


def _total(
    output: Output,
    named: Mapping[str, Output],
    tables: Mapping[str, Any],
    own: Mapping[str, Reference],
    path: str | PathLike[str],
    trail: tuple[str, ...] = (),
) -> Reference:
    """Sum of a reference and of those that it is relative to."""
    name, label = output.name, f"[reference.{output.name}]"
    to = getattr(tables[name], "relative_to", None)
    components = getattr(tables[name], "components", None)
    if to is None:
        if components is not None:
            raise fault(
                path,
                label,
                "components",
                expected="`components` together with `relative_to`",
                came="`components` alone",
                cure="Add `relative_to` or remove `components`.",
            )
        return own[name]
    if to not in named:
        raise unknown(path, label, "relative_to", "another output", to, named)
    if to in (*trail, name):
        raise fault(
            path,
            label,
            "relative_to",
            expected="references without a cycle",
            came="the cycle " + " -> ".join((*trail, name, to)),
            cure="Give one of them in inertial axes.",
        )
    frames = [each.relative_to or "the inertial frame" for each in (output, named[to])]
    if frames[0] != frames[1]:
        raise fault(
            path,
            label,
            "relative_to",
            expected="another output in the same frame",
            came=f"`{name}` in {frames[0]} relative to `{to}` in {frames[1]}",
            cure="Give both outputs the same `relative_to`, or none.",
        )
    axes, origin_axes = output.axes or "", named[to].axes or ""
    if not axes or not origin_axes or (components is None and not set(origin_axes) <= set(axes)):
        raise fault(
            path,
            label,
            "relative_to",
            expected="two outputs in R, R2 or R3, the other one with no further axes",
            came=f"`{name}` in {output.group} {axes} relative to `{to}` in "
            f"{named[to].group} {origin_axes}",
            cure="Use outputs with positions along the same axes.",
        )
    origin = _total(named[to], named, tables, own, path, (*trail, name))
    if components is None:
        components = [axes.index(axis) for axis in origin_axes]
    if len(origin_axes) > len(axes):
        raise fault(
            path,
            label,
            "components",
            expected="an output with at least as many coordinates as the one it is relative to",
            came=f"{len(axes)} coordinates relative to {len(origin_axes)}",
            cure="Make it relative to an output with fewer coordinates.",
        )
    with located(path, label, "components"):
        return references.relative(own[name], origin, components)
