"""Tables of wheels, in robot files and in sidecars of URDF files."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Annotated, ClassVar

from pydantic import Field

from concur.formats.tables import Number, Positive, Table, Text, Vector3, located, unknown
from concur.mechanism import Support, Wheel


class SupportTable(Table):
    """Fields of a surface on which a body rolls."""

    cures: ClassVar[dict[str, str]] = dict.fromkeys(
        ("box", "capsule", "cylinder", "mesh", "size", "width"),
        "Bodies roll on planes and spheres, which they touch in one smooth contact point. Leave it "
        "out for a plane, or give `radius` for a sphere.",
    )
    body: Text | None = None
    radius: Positive | None = None
    center: Vector3 | None = None
    normal: Vector3 | None = None
    hollow: Annotated[bool, Field(description="true or false")] | None = None


class WheelTable(Table):
    """Fields of a wheel."""

    body: Text
    radius: Number
    kind: Text | None = None
    roller_angle: Number | None = None
    axis: Vector3 | None = None
    center: Vector3 | None = None
    ground: Number | None = None
    support: SupportTable | None = None


def wheel_of(table: WheelTable, names: Iterable[str], path: str | PathLike[str]) -> Wheel:
    """Build the wheel of a table, whose body must be among the names."""
    label = f'[[wheels]] "{table.body}"'
    if table.body not in names:
        raise unknown(path, label, "body", "a body", table.body, names)
    given = table.given()
    if table.support is not None:
        on = table.support.body
        if on is not None and on not in names:
            raise unknown(path, label, "support", "a body", on, names)
        with located(path, label):
            given["support"] = Support(**table.support.given())
    with located(path, label):
        return Wheel(**given)
