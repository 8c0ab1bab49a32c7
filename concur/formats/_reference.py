"""Reader of references, the tables [reference.<output>] of a task file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from concur.outputs import Output, references
from concur.outputs.references import Reference
from concur.robot import Pose
from concur.tables import (
    Expected,
    Number,
    NumberOrList,
    Numbers,
    Positive,
    Quaternion,
    Rows,
    Table,
    Text,
    Truth,
    Vector3,
    Vector6,
    check,
    fault,
    located,
    model_of,
    show,
    unknown,
)

Points = Annotated[list[NumberOrList], Expected("a list of points, one for each time")]


_POINT = "One number per coordinate of the output, m or rad"
_POSE = "For `SO3` a quaternion x, y, z, w; for poses x, y, z, m, and a quaternion"


_Placement: Any = model_of(Pose)


class _Reference(Table):
    """Fields of all references: motion with a frame, and drift."""

    kind: str = Field(description="Kind of the reference.")
    drift: Vector3 | None = Field(
        default=None,
        description="Constant velocity that is added, in inertial axes, m/s; not for `SO2` and "
        "`SO3`. Default: none.",
    )
    moving: Vector6 | None = Field(
        default=None,
        description="Constant spatial twist of the frame in which the reference is given: linear, "
        "m/s, at the inertial origin, then angular, rad/s; for `R3`, `SO3`, `SE3` and `R3xSO3`. At "
        "t = 0 this frame is the inertial frame. Default: none.",
    )

    def arguments(self) -> dict[str, Any]:
        return {k: v for k, v in self.given().items() if k not in _Path.model_fields}


class _Path(_Reference):
    """Common fields of paths in R^n, which can be relative to each other."""

    relative_to: Text | None = Field(
        default=None,
        description="Output to whose reference this path is added; both are in the same frame. "
        "Default: none.",
    )
    components: (
        Annotated[
            list[Annotated[int, Field(ge=0, le=100)]],
            Field(max_length=100),
            Expected("a list of whole numbers from 0"),
        ]
        | None
    ) = Field(
        default=None,
        description="Number, from 0, of the coordinate to which each coordinate of that output is "
        "added. Default: axis to axis.",
    )


class _Hold(_Reference):
    """A constant rotation or pose."""

    point: NumberOrList = Field(description=f"{_POSE}.")

    def build(self, group: str) -> Reference:
        return references.hold(self.point, group)


class _HoldPoint(_Path):
    """A constant point."""

    point: NumberOrList = Field(description=f"{_POINT}.")

    def build(self, group: str) -> Reference:
        return references.hold(**self.arguments())


class _Polynomial(_Path):
    """A polynomial of time."""

    coefficients: Rows = Field(
        description="One point for each power of time, beginning with the constant, m/s^k or "
        "rad/s^k."
    )

    def build(self, group: str) -> Reference:
        return references.polynomial(**self.arguments())


class _PosePolynomial(_Reference):
    """A rotation or pose whose exponential coordinates are a polynomial of time."""

    coefficients: Rows = Field(
        description="One twist for each power of time, beginning with the constant: linear, m/s^k, "
        "then angular, rad/s^k, relative to `start`."
    )
    start: Numbers = Field(description=f"{_POSE}.")

    def build(self, group: str) -> Reference:
        return references.polynomial(**self.arguments(), group=group)


class _RestToRest(_Path):
    """A motion from rest to rest on a straight line, which starts and ends without acceleration."""

    start: Numbers = Field(description=f"First point: {_POINT[0].lower() + _POINT[1:]}.")
    end: Numbers = Field(description="Last point, in the form of `start`, m or rad.")
    duration: Positive = Field(description="Duration of the motion, s.")
    begin: Number | None = Field(
        default=None, description="Time at which the motion begins, s. Default: `0.0`."
    )

    def build(self, group: str) -> Reference:
        return references.rest_to_rest(**self.arguments())


class _PoseRestToRest(_Reference):
    """A motion from rest to rest, which rotates by the smaller angle."""

    start: Numbers = Field(description=f"First pose: {_POSE[0].lower() + _POSE[1:]}.")
    end: Numbers = Field(description="Last pose, in the form of `start`, m.")
    duration: Positive = Field(description="Duration of the motion, s.")
    begin: Number | None = Field(
        default=None, description="Time at which the motion begins, s. Default: `0.0`."
    )

    def build(self, group: str) -> Reference:
        return references.rest_to_rest(**self.arguments(), group=group)


class _Circle(_Path):
    """A circle of constant speed, for `R2` and `R3`."""

    center: Numbers = Field(description="Centre, m.")
    radius: Positive = Field(description="Radius, m.")
    period: Number = Field(description="Time of one turn, s; negative: clockwise.")
    normal: Vector3 | None = Field(
        default=None,
        description="Normal of the plane, of any length, in `R3`. Default: `[0, 0, 1]`.",
    )
    phase: Number | None = Field(
        default=None, description="Angle on the circle at t = 0, rad. Default: `0.0`."
    )

    def build(self, group: str) -> Reference:
        return references.circle(**self.arguments())


class _PoseCircle(_Reference):
    """A circle of constant speed with an orientation, for `SE3` and `R3xSO3`."""

    center: Vector3 = Field(description="Centre, m.")
    radius: Positive = Field(description="Radius, m.")
    period: Number = Field(description="Time of one turn, s; negative: clockwise.")
    normal: Vector3 | None = Field(
        default=None, description="Normal of the plane, of any length. Default: `[0, 0, 1]`."
    )
    phase: Number | None = Field(
        default=None, description="Angle on the circle at t = 0, rad. Default: `0.0`."
    )
    attitude: Quaternion = Field(description="Orientation at t = 0: unit quaternion x, y, z, w.")
    turning: Truth | None = Field(
        default=None,
        description="Whether the orientation rotates with the circle. Default: `false`.",
    )

    def build(self, group: str) -> Reference:
        return references.circle(**self.arguments(), group=group)


class _Waypoints(_Path):
    """A cubic spline through points."""

    times: Numbers = Field(description="Times of the points, s.")
    points: Points = Field(description=f"One for each time. {_POINT}.")
    rates: Rows | None = Field(
        default=None,
        description="Velocities at the first and the last point, m/s or rad/s. Default: at rest.",
    )

    def build(self, group: str) -> Reference:
        return references.waypoints(**self.arguments())


class _PoseWaypoints(_Reference):
    """A cubic spline through rotations or poses."""

    times: Numbers = Field(description="Times of the points, s.")
    points: Points = Field(description=f"One for each time. {_POSE}.")
    rates: Rows | None = Field(
        default=None,
        description="Twists at the first and the last point: linear, m/s, then angular, rad/s. "
        "Default: at rest.",
    )

    def build(self, group: str) -> Reference:
        return references.waypoints(**self.arguments(), group=group)


class _Screw(_Reference):
    """A motion with a constant twist."""

    start_pose: _Placement = Field(description="Pose at t = 0.")
    twist: Vector6 = Field(description="Twist: linear, m/s, then angular, rad/s.")
    frame: Annotated[Text, Field(json_schema_extra={"enum": ["body", "spatial"]})] | None = Field(
        default=None, description='Frame of the twist. Default: `"body"`.'
    )

    def build(self, group: str) -> Reference:
        pose = Pose(**self.start_pose.given())
        return references.screw(pose.matrix, self.twist, group, self.frame or "body")


_PATHS: dict[str, type[_Path]] = {
    "hold": _HoldPoint,
    "polynomial": _Polynomial,
    "rest_to_rest": _RestToRest,
    "circle": _Circle,
    "waypoints": _Waypoints,
}
_ATTITUDES: dict[str, type[_Reference]] = {
    "hold": _Hold,
    "polynomial": _PosePolynomial,
    "rest_to_rest": _PoseRestToRest,
    "waypoints": _PoseWaypoints,
    "screw": _Screw,
}
_POSES: dict[str, type[_Reference]] = {**_ATTITUDES, "circle": _PoseCircle}
_MOVING = ("R3", "SO3", "SE3", "R3xSO3")
REFERENCE_KINDS: dict[str, dict[str, type[Any]]] = {
    **dict.fromkeys(("R", "R2", "SO2", "SE2"), _PATHS),
    "R3": dict[str, type[Any]](_PATHS, screw=_Screw),
    "SO3": _ATTITUDES,
    "SE3": _POSES,
    "R3xSO3": _POSES,
}


def read_reference(
    outputs: Sequence[Output],
    given_tables: Mapping[str, dict[str, Any]],
    data: dict[str, Any],
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
        tables[name] = _reference_table(output, given_tables[name], data, path)
        own[name] = _own_reference(output, tables[name], path)
    return references.stack(*(_total(output, named, tables, own, path) for output in outputs))


def _reference_table(
    output: Output, table: dict[str, Any], data: dict[str, Any], path: str | PathLike[str]
) -> Any:
    label = f"[reference.{output.name}]"
    kinds = REFERENCE_KINDS[output.group]
    kind = table.get("kind")
    if not isinstance(kind, str):
        raise fault(
            path,
            label,
            "kind",
            expected=f"a kind for an output in {output.group}: {', '.join(kinds)}",
            came="no value" if kind is None else show(kind),
            cure='Write for example kind = "hold".',
        )
    if kind not in kinds:
        raise unknown(path, label, "kind", f"a kind for an output in {output.group}", kind, kinds)
    return check(kinds[kind], table, path, whole=data, at=("reference", output.name))


def _own_reference(output: Output, table: Any, path: str | PathLike[str]) -> Reference:
    label = f"[reference.{output.name}]"
    with located(path, label):
        reference: Reference = table.build(output.group)
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
    return references.planar(carried) if output.group == "SE2" else carried


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
