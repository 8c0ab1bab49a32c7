"""Reader of the tables [imperfections] of a task: drives, encoders, timing and disturbances."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.formats.tables import (
    LARGEST,
    Positive,
    Table,
    Text,
    Vector3,
    Vector6,
    any_of,
    is_number,
    located,
    table_of,
    unknown,
)
from concur.multibody import Mechanism
from concur.simulation import GravityGradient, Imperfections, Plant, Slip, Wrench


def _numbers_by_name(value: Any) -> Any:
    entries = list(value.values()) if isinstance(value, dict) else [value]
    if all(is_number(entry) and entry >= 0.0 for entry in entries):
        return value
    raise PydanticCustomError("by_name", "numbers by name expected")


_NOT_NEGATIVE = {"type": "number", "minimum": 0}
BY_NAME = any_of(_NOT_NEGATIVE, table_of(_NOT_NEGATIVE))

NumbersByName = Annotated[
    Any,
    AfterValidator(_numbers_by_name),
    Field(
        description="a number of zero or more, or a table of them by name",
        json_schema_extra=BY_NAME,
    ),
]
Time = Annotated[float, Field(ge=0.0, le=LARGEST, description="a time of zero or more, s")]


class TimingTable(Table):
    latency: Time = 0.0
    jitter: Time = 0.0


class WrenchTable(Table):
    name: Text
    body: Text
    force: Vector3 | None = None
    torque: Vector3 | None = None
    point: Vector3 | None = None
    frame: Annotated[Literal["world", "body"], Field(description='"world" or "body"')] | None = None
    start: Time | None = None
    end: Time | None = None


class GravityGradientTable(Table):
    rate: Time
    direction: Vector3 | None = None


class ImperfectionsTable(Table):
    """The table `[imperfections]`."""

    viscous: NumbersByName = None
    coulomb: NumbersByName = None
    stribeck: NumbersByName = None
    full_speed: Positive | None = None
    stribeck_speed: Positive | None = None
    torque_limit: NumbersByName = None
    ripple: NumbersByName = None
    ripple_periods: (
        Annotated[int, Field(ge=1, le=10_000, description="a whole number from 1 to 10000")] | None
    ) = None
    lag: NumbersByName = None
    stiffness: NumbersByName = None
    damping: NumbersByName = None
    motor_inertia: NumbersByName = None
    resolution: NumbersByName = None
    noise: NumbersByName = None
    velocity_noise: NumbersByName = None
    timing: TimingTable = TimingTable()
    momentum_error: Vector6 | None = None
    wrenches: (
        Annotated[
            list[WrenchTable],
            Field(max_length=100, description="tables [[imperfections.wrenches]], at most 100"),
        ]
        | None
    ) = None
    gravity_gradient: GravityGradientTable | None = None


def read_imperfections(
    table: ImperfectionsTable | None, robot: Mechanism, path: str | PathLike[str]
) -> Imperfections | None:
    """Imperfections of the plant; an error names table and field."""
    if table is None:
        return None
    given = table.given()
    disturbances: list[Wrench | GravityGradient] = []
    for wrench in table.wrenches or ():
        label, bodies = (
            f'[[imperfections.wrenches]] "{wrench.name}"',
            [b.name for b in robot.bodies],
        )
        if wrench.body not in bodies:
            raise unknown(path, label, "body", "a body", wrench.body, bodies)
        with located(path, label):
            disturbances.append(Wrench(**wrench.given()))
    if table.gravity_gradient is not None:
        with located(path, "[imperfections.gravity_gradient]"):
            disturbances.append(GravityGradient(**table.gravity_gradient.given()))
    for name in ("timing", "wrenches", "gravity_gradient"):
        given.pop(name, None)
    with located(path, "[imperfections]"):
        return Imperfections.of(robot, **given, **table.timing.given(), disturbances=disturbances)


class SlipTable(Table):
    """The table `[plant.slip]`."""

    grip: Annotated[
        Any,
        AfterValidator(_numbers_by_name),
        Field(
            description="a number of zero or more, or a table of them by wheel",
            json_schema_extra=BY_NAME,
        ),
    ]
    side: NumbersByName = None
    loads: NumbersByName = None
    compliance: NumbersByName = None
    damping: Positive | None = None
    time: Positive | None = None


def read_slip(table: SlipTable | None, robot: Mechanism, path: str | PathLike[str]) -> Slip | None:
    """Friction of wheels that may slip; an error names table and field."""
    if table is None:
        return None
    with located(path, "[plant.slip]"):
        slip = Slip.of(robot, **table.given())
        Plant(robot, slip=slip)  # checks loads and supports
        return slip
