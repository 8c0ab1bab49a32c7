"""Reader of references, the tables [reference.<output>] of a task file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Ge, Le, Len

from concur.outputs import Output, output_motion, references
from concur.outputs.references import Reference
from concur.robot import Mechanism
from concur.tables import (
    Expected,
    NumberOrList,
    Table,
    Vector3,
    Vector6,
    build,
    entry,
    fault,
    of_kind,
    placed,
    refused,
    stranger,
    unknown,
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
    "table": references.table,
    "screw": references.screw,
    "file": references.from_file,
}
"""Function that makes each kind of reference."""

SAME = 0.02
"""Part of a run by which samples of a file may begin later, or end earlier or later."""

_OF_POSES = ("start", "attitude", "turning")
"""Parameters of paths of poses only, of `polynomial` and `circle`."""


_HELD = {
    "point": (
        NumberOrList,
        'Coordinates of the point (m, rad); of an "SO3" a quaternion x, y, z, w, of an "S2" a unit '
        "vector, of a pose x, y, z and a quaternion. Default: those of the output at the start "
        "that is written in `[initial]`.",
    )
}
"""Parameter of `hold` that a file may leave out."""


def _path(kind: str) -> type[Table]:
    omit = () if kind == "rest_to_rest" else _OF_POSES
    if kind == "hold":
        return variant(MAKERS[kind], "HoldPath", Relative, _HELD, more=_HELD)
    return variant(MAKERS[kind], f"{_title(kind)}Path", Relative, omit)


def _pose(kind: str) -> type[Table]:
    if kind == "hold":
        return variant(MAKERS[kind], "HoldPose", Carried, ("group", *_HELD), more=_HELD)
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
    "S2": {kind: table for kind, table in _ATTITUDES.items() if kind != "screw"},
    "SE3": _POSES,
    "R3xSO3": _POSES,
}


def held_at_start(
    outputs: Sequence[Output],
    given_tables: Mapping[str, dict[str, Any]],
    robot: Mechanism,
    q: np.ndarray | None,
    path: str | PathLike[str],
) -> dict[str, dict[str, Any]]:
    """Tables with the `point` of outputs that hold their place at the start.

    Without the configuration q (nq,) the start itself is on the reference.
    """
    found = dict(given_tables)
    for output in outputs:
        table = found[output.name]
        if q is None or "relative_to" in table:
            came = "a start on the reference" if q is None else "`relative_to`"
            expected = "`point`, or a start that is written and no `relative_to`"
            cure = "Write `point`, or without it the start in [initial.q], not `start`."
            raise fault(
                path, f"[reference.{output.name}]", "point", expected=expected, came=came, cure=cure
            )
        place = ca.DM(output_motion(robot, [output], ca.DM(q)).coordinates)
        found[output.name] = table | {"point": np.array(place)[:, 0].tolist()}
    return found


def read_reference(
    outputs: Sequence[Output],
    given_tables: Mapping[str, dict[str, Any]],
    path: str | PathLike[str],
    duration: float,
) -> Reference:
    """Build the reference of all outputs from the tables [reference.<output>].

    Its `warnings` state where samples of a file and a run of this duration (s) do not cover the
    same time.
    """
    named = {output.name: output for output in outputs}
    for name in given_tables:
        if name not in named:
            raise unknown(path, f"[reference.{name}]", "", "an output", name, named)
    file, own = {"reference": given_tables}, dict[str, Reference]()
    with placed(path, file):
        for name, output in named.items():
            if name not in given_tables:
                cure = f"Add a table [reference.{name}]: each output needs one."
                at = ("reference", name)
                raise refused(at, f"a table [reference.{name}]", "no value", cure)
            own[name] = _own_reference(output, given_tables[name], file, Path(path))
        parts = [_total(output, named, given_tables, own) for output in outputs]
        whole = references.stack(*parts)
    whole.notes = tuple(f"{name}: {note}" for name, part in own.items() for note in part.notes)
    whole.warnings = tuple(
        f"{name}: {text}"
        for name, part in own.items()
        for text in (*part.warnings, *_beyond(part, duration))
    )
    return whole


def _beyond(part: Reference, duration: float) -> list[str]:
    """Where the samples of a file begin or end away from the ends of a run."""
    if part.span is None:
        return []
    first, last = part.span
    found, near = [], SAME * duration
    if first > near:
        found.append(f"the run begins at 0, its samples at {first:.6g} s: {_straight(part, first)}")
    if last < duration - near:
        ends = f"the run ends at {duration:.6g} s, its samples at {last:.6g} s"
        found.append(f"{ends}: {_straight(part, last)}")
    elif last > duration + near:
        found.append(f"the run ends at {duration:.6g} s, its samples at {last:.6g} s")
    return found


def _straight(part: Reference, t: float) -> str:
    speed = np.linalg.norm(part(t).twist)
    return f"beyond them it goes straight on, at a speed of {speed:.2g} (m/s and rad/s together)"


def _own_reference(
    output: Output, table: Mapping[str, Any], file: Mapping[str, Any], path: Path
) -> Reference:
    """Reference of one table, without that to which it is relative."""
    at, kinds = ("reference", output.name), REFERENCE_KINDS[output.group]
    fields = of_kind(kinds, table, path, file, at, f"a kind for an output in {output.group}")
    is_path = fields is _PATHS.get(table["kind"])

    def made(
        kind: str,
        drift: Sequence[float] | None = None,
        moving: Sequence[float] | None = None,
        relative_to: str | None = None,
        components: Sequence[int] | None = None,
        **given: Any,
    ) -> Reference:
        make = MAKERS[kind]
        if kind == "file":
            given |= {"group": output.group, "file": path.parent / given["file"]}
        elif kind == "screw":
            given |= {"group": output.group, "start_pose": given["start_pose"].matrix}
        elif "group" in inspect.signature(make).parameters and not is_path:
            given["group"] = output.group
        reference = make(**given)
        if reference.pose_size != output.pose_size:
            expected = f"{output.pose_size} coordinates for an output in {output.group}"
            cure = "Give each point one number per coordinate of the output."
            raise refused((None,), expected, f"{reference.pose_size} coordinates", cure)
        carried = _carried(output, reference, drift, moving)
        if output.group == "SE2" and kind != "file":
            carried = references.planar(carried)
        for fact in ("notes", "warnings", "span", "smoothing"):
            setattr(carried, fact, getattr(reference, fact))
        return carried

    found: Reference = build(fields, table, path, file, at, made)
    return found


def _carried(
    output: Output,
    reference: Reference,
    drift: Sequence[float] | None,
    moving: Sequence[float] | None,
) -> Reference:
    """Reference carried by a moving frame or a drift."""
    axes = output.axes or ""
    if moving is not None:
        if output.group not in _MOVING or (axes and axes != "xyz"):
            expected = f"an output in {', '.join(_MOVING)}, with axes x, y, z"
            came = " ".join(filter(None, (output.group, axes)))
            raise refused(("moving",), expected, came, "Give the motion in inertial axes.")
        with entry("moving"):
            reference = references.moving(reference, moving)
    if drift is not None:
        if output.group in ("SO2", "SO3", "S2"):
            cure = "Remove it: an orientation cannot drift."
            raise refused(("drift",), "an output with a position", output.group, cure)
        velocity = np.array(drift)
        if axes:
            velocity = velocity[["xyz".index(axis) for axis in axes]]
        elif output.group == "SE2":
            velocity = np.append(output.lie.basis[:3, :2].T @ velocity, 0.0)
        with entry("drift"):
            reference = references.drifting(reference, velocity)
    return reference


def _total(
    output: Output,
    named: Mapping[str, Output],
    tables: Mapping[str, Mapping[str, Any]],
    own: Mapping[str, Reference],
    trail: tuple[str, ...] = (),
) -> Reference:
    """Sum of a reference and of those that it is relative to."""
    name = output.name
    to, components = (tables[name].get(field) for field in ("relative_to", "components"))
    at, sums = ("reference", name, "relative_to"), ("reference", name, "components")
    if to is None:
        if components is not None:
            expected = "`components` together with `relative_to`"
            cure = "Add `relative_to` or remove `components`."
            raise refused(sums, expected, "`components` alone", cure)
        return own[name]
    if to not in named:
        raise stranger(at, "another output", to, named)
    if to in (*trail, name):
        came, cure = "the cycle " + " -> ".join((*trail, name, to)), "Give one in inertial axes."
        raise refused(at, "references without a cycle", came, cure)
    frames = [each.relative_to or "the inertial frame" for each in (output, named[to])]
    if frames[0] != frames[1]:
        came = f"`{name}` in {frames[0]} relative to `{to}` in {frames[1]}"
        cure = "Give both outputs the same `relative_to`, or none."
        raise refused(at, "another output in the same frame", came, cure)
    axes, origin_axes = output.axes or "", named[to].axes or ""
    if not axes or not origin_axes or (components is None and not set(origin_axes) <= set(axes)):
        expected = "two outputs in R, R2 or R3, the other one with no further axes"
        kinds = [f"{each.group} {each.axes or ''}" for each in (output, named[to])]
        came = f"`{name}` in {kinds[0]} relative to `{to}` in {kinds[1]}"
        raise refused(at, expected, came, "Use outputs with positions along the same axes.")
    origin = _total(named[to], named, tables, own, (*trail, name))
    if components is None:
        components = [axes.index(axis) for axis in origin_axes]
    if len(origin_axes) > len(axes):
        expected = "an output with at least as many coordinates as the one it is relative to"
        came = f"{len(axes)} coordinates relative to {len(origin_axes)}"
        cure = "Make it relative to an output with fewer coordinates."
        raise refused(sums, expected, came, cure)
    with entry(*sums):
        return references.relative(own[name], origin, components)
