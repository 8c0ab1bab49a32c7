"""Tables of wheels, and of wheels that follow guides, in robot files and in sidecars."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Annotated, ClassVar

from pydantic import Field

from concur.formats.tables import (
    MOST_BODIES,
    Number,
    Positive,
    Table,
    Text,
    Vector3,
    located,
    unknown,
)
from concur.mechanism import Steering, Support, Wheel

WHEELS = ["disk", "omni", "mecanum", "slider", "ball", "rubber_ball"]


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
    kind: Annotated[Text, Field(json_schema_extra={"enum": WHEELS})] | None = None
    roller_angle: Number | None = None
    axis: Vector3 | None = None
    center: Vector3 | None = None
    ground: Number | None = None
    support: SupportTable | None = None


class SteeringTable(Table):
    """Fields of a steered wheel whose axle meets those of two guides in one point."""

    wheel: Text
    guides: Annotated[
        list[Text], Field(min_length=2, max_length=2, description="names of two other wheels")
    ]


Supports = Annotated[
    dict[str, Vector3],
    Field(
        max_length=MOST_BODIES,
        description=f"a table of points such as caster = [0.5, 0, 0], at most {MOST_BODIES}",
    ),
]

SteeringTables = Annotated[
    list[SteeringTable],
    Field(max_length=MOST_BODIES, description=f"tables [[steering]], at most {MOST_BODIES}"),
]


def steering_of(
    table: SteeringTable, wheels: Iterable[WheelTable], path: str | PathLike[str]
) -> Steering:
    """Build the coupling of a table, whose names must be those of wheels."""
    label = f'[[steering]] "{table.wheel}"'
    names = [wheel.body for wheel in wheels]
    for field, name in (("wheel", table.wheel), *(("guides", name) for name in table.guides)):
        if name not in names:
            raise unknown(path, label, field, "the body of a wheel", name, names)
    with located(path, label):
        return Steering(**table.given())


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
