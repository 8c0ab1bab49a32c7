"""Tables of wheels, and of wheels that follow guides, in robot files and in sidecars."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Annotated, ClassVar

from pydantic import Field

from concur.formats.tables import (
    MOST_BODIES,
    Expected,
    Number,
    Positive,
    Table,
    Text,
    Truth,
    Vector3,
    located,
    unknown,
)
from concur.robot import Steering, Support, Wheel

WHEELS = ["disk", "omni", "mecanum", "slider", "ball", "rubber_ball"]


class SupportTable(Table):
    """Plane or sphere on which a body rolls that no joint keeps on a plane."""

    cures: ClassVar[dict[str, str]] = dict.fromkeys(
        ("box", "capsule", "cylinder", "mesh", "size", "width"),
        "Bodies roll on planes and spheres, which they touch in one smooth contact point. Leave it "
        "out for a plane, or give `radius` for a sphere.",
    )
    body: Text | None = Field(
        default=None, description="Body to which the surface is fixed. Default: the inertial frame."
    )
    radius: Positive | None = Field(
        default=None, description="Radius of a sphere, m. Default: a plane."
    )
    center: Vector3 | None = Field(
        default=None,
        description="Centre of the sphere, or a point of the plane, in the frame of `body`, m. "
        "Default: the origin.",
    )
    normal: Vector3 | None = Field(
        default=None,
        description="Normal of the plane, to the side of the rolling body, in the frame of `body`. "
        "Default: `[0, 0, 1]`.",
    )
    hollow: Truth | None = Field(
        default=None, description="Whether the body rolls inside the sphere. Default: `false`."
    )


class WheelTable(Table):
    """The condition that a body rolls on a plane or a sphere."""

    body: Text = Field(
        description="The rolling body, with a `Revolute` joint about its axle; of a slider any "
        "body, of a ball one with a `Spherical` joint."
    )
    radius: Number = Field(description="Radius, m; 0 for a slider.")
    kind: Annotated[Text, Field(json_schema_extra={"enum": WHEELS})] | None = Field(
        default=None,
        description='Kind, which gives the directions without slip. Default: `"disk"`.',
    )
    roller_angle: Number | None = Field(
        default=None,
        description="Of `mecanum`, and required there: angle from the wheel axis to the axis of "
        "the roller on the ground, rad. Default: none.",
    )
    axis: Vector3 | None = Field(
        default=None,
        description="Axis of the wheel in the body frame, of any length; not for balls. Default: "
        "that of the joint.",
    )
    center: Vector3 | None = Field(
        default=None,
        description="Centre of the wheel in the body frame, on its axis, m; the origin for a ball. "
        "Default: the origin.",
    )
    ground: Number | None = Field(
        default=None,
        description="Height of the plane along its normal, from the inertial origin or that of the "
        "hull, m. Default: the height at which the wheels touch.",
    )
    support: SupportTable | None = Field(
        default=None,
        description="Surface under a body that no joint keeps on a plane. Default: the plane of "
        "the joint.",
    )


class SteeringTable(Table):
    """A steered wheel whose axle meets those of two guides in one point."""

    wheel: Text = Field(
        description="Body of the wheel that follows, a `disk` or `slider` on a steered body."
    )
    guides: Annotated[
        list[Text], Field(min_length=2, max_length=2), Expected("names of two other wheels")
    ] = Field(description="Bodies of two other wheels, which do not follow themselves.")


Supports = Annotated[
    dict[str, Vector3],
    Field(max_length=MOST_BODIES),
    Expected(f"a table of points such as caster = [0.5, 0, 0], at most {MOST_BODIES}"),
]

SteeringTables = Annotated[
    list[SteeringTable],
    Field(max_length=MOST_BODIES),
    Expected(f"tables [[steering]], at most {MOST_BODIES}"),
]


WheelTables = Annotated[
    list[WheelTable],
    Field(max_length=MOST_BODIES),
    Expected(f"tables [[wheels]], at most {MOST_BODIES}"),
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
