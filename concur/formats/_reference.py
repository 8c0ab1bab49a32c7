"""References from the tables [reference.<output>] of a task file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Annotated, Any

from pydantic import Field

from concur.control import Output, references
from concur.control.references import Reference
from concur.formats._robot import PlacementTable, given
from concur.formats._toml import (
    Number,
    NumberOrList,
    Numbers,
    Positive,
    Rows,
    Table,
    Text,
    Vector3,
    check,
    fault,
    located,
    show,
    unknown,
)
from concur.mechanism import Pose


class _Hold(Table):
    kind: str
    point: NumberOrList

    def build(self, group: str) -> Reference:
        return references.hold(self.point, group)


class _Path(Table):
    """Fields that paths in R^n share: they can be relative to each other."""

    kind: str
    relative_to: Text | None = None
    components: Annotated[list[int], Field(description="a list of whole numbers")] | None = None

    def arguments(self) -> dict[str, Any]:
        return {k: v for k, v in given(self).items() if k not in _Path.model_fields}


class _HoldPoint(_Path):
    point: NumberOrList

    def build(self, group: str) -> Reference:
        return references.hold(**self.arguments())


class _Polynomial(_Path):
    coefficients: Rows

    def build(self, group: str) -> Reference:
        return references.polynomial(**self.arguments())


class _RestToRest(_Path):
    start: Numbers
    end: Numbers
    duration: Positive
    begin: Number | None = None

    def build(self, group: str) -> Reference:
        return references.rest_to_rest(**self.arguments())


class _Circle(_Path):
    center: Numbers
    radius: Positive
    period: Number
    normal: Vector3 | None = None
    phase: Number | None = None

    def build(self, group: str) -> Reference:
        return references.circle(**self.arguments())


class _Waypoints(_Path):
    times: Numbers
    points: Annotated[list[NumberOrList], Field(description="a list of points, one for each time")]
    rates: Rows | None = None

    def build(self, group: str) -> Reference:
        return references.waypoints(**self.arguments())


class _Screw(Table):
    kind: str
    start_pose: PlacementTable
    twist: Annotated[list[float], Field(min_length=6, max_length=6, description="6 numbers")]

    def build(self, group: str) -> Reference:
        pose = Pose(**given(self.start_pose))
        return references.screw(pose.matrix, self.twist, group)


_PATHS: dict[str, type[_Path]] = {
    "hold": _HoldPoint,
    "polynomial": _Polynomial,
    "rest_to_rest": _RestToRest,
    "circle": _Circle,
    "waypoints": _Waypoints,
}
REFERENCE_KINDS: dict[str, dict[str, type[Any]]] = {
    **dict.fromkeys(("R", "R2", "R3", "SO2", "SE2"), _PATHS),
    "SO3": {"hold": _Hold},
    "SE3": {"hold": _Hold, "screw": _Screw},
    "R3xSO3": {"hold": _Hold, "screw": _Screw},
}


def read_reference(
    outputs: Sequence[Output],
    given_tables: Mapping[str, dict[str, Any]],
    data: dict[str, Any],
    path: str | PathLike[str],
) -> Reference:
    """Build the reference of all outputs from the tables [reference.<output>].

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in order.
    given_tables : mapping
        Table of each output, by name.
    data : dict
        The whole file, for the places of faults.
    path : path
        The file.

    Returns
    -------
    Reference
        Demand on all outputs.

    Raises
    ------
    DescriptionError
        If a table is missing, or a field is wrong.
    """
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
                came="nothing",
                cure="Each output needs a reference.",
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
            came="nothing" if kind is None else show(kind),
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
            cure="Give each point as many numbers as the output has coordinates.",
        )
    return references.planar(reference) if output.group == "SE2" else reference


def _total(
    output: Output,
    named: Mapping[str, Output],
    tables: Mapping[str, Any],
    own: Mapping[str, Reference],
    path: str | PathLike[str],
    trail: tuple[str, ...] = (),
) -> Reference:
    """Add up a reference and those it is relative to."""
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
            expected="references that do not lead back to themselves",
            came="the circle " + " -> ".join((*trail, name, to)),
            cure="Give one of them in inertial axes.",
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
            cure="Only positions add, axis by axis.",
        )
    origin = _total(named[to], named, tables, own, path, (*trail, name))
    if components is None:
        components = [axes.index(axis) for axis in origin_axes]
    if len(origin_axes) > len(axes):
        raise fault(
            path,
            label,
            "components",
            expected="an output with no more coordinates to be relative to",
            came=f"{len(axes)} coordinates relative to {len(origin_axes)}",
            cure="Only positions add, axis by axis.",
        )
    with located(path, label, "components"):
        return references.relative(own[name], origin, components)
