"""Reader of the tables [imperfections] of a task: drives, encoders, timing and disturbances."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.robot import Mechanism
from concur.simulation import GravityGradient, Imperfections, Plant, Slip, Wrench
from concur.tables import (
    LARGEST,
    Expected,
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
    Field(json_schema_extra=BY_NAME),
    Expected("a number of zero or more, or a table of them by name"),
]
Time = Annotated[float, Field(ge=0.0, le=LARGEST), Expected("a time of zero or more, s")]


class TimingTable(Table):
    """Delays between measurement and torque."""

    latency: Time = Field(default=0.0, description="Time from measurement to torque, s.")
    jitter: Time = Field(default=0.0, description="Largest random addition to it, s.")


class WrenchTable(Table):
    """A disturbance: force and torque on a body."""

    name: Text = Field(description="Name of the disturbance.")
    body: Text = Field(description="Body on which it acts.")
    force: Vector3 | None = Field(default=None, description="Force, N. Default: zero.")
    torque: Vector3 | None = Field(default=None, description="Torque, N m. Default: zero.")
    point: Vector3 | None = Field(
        default=None,
        description="Point of the body at which the force acts, in the body frame, m. Default: the "
        "origin.",
    )
    frame: Annotated[Literal["world", "body"], Expected('"world" or "body"')] | None = Field(
        default=None, description='Axes of force and torque. Default: `"world"`.'
    )
    start: Time | None = Field(
        default=None, description="Time at which it begins, s. Default: `0.0`."
    )
    end: Time | None = Field(
        default=None, description="Time at which it ends, s. Default: the end of the run."
    )


class GravityGradientTable(Table):
    """Torque of the gravity gradient on a circular orbit."""

    rate: Time = Field(description="Angular rate of the orbit, rad/s.")
    direction: Vector3 | None = Field(
        default=None,
        description="Direction from the orbit's centre in world axes, of any length. Default: "
        "`[0, 0, 1]`.",
    )


class ImperfectionsTable(Table):
    """Properties of the simulated robot that the model of the law lacks.

    An entry by control or joint is a number for all, or a table by name; names that it lacks are
    ideal.
    """

    viscous: NumbersByName = Field(
        default=None, description="Viscous friction by control, N m s/rad or N s/m. Default: `0`."
    )
    coulomb: NumbersByName = Field(
        default=None, description="Coulomb friction in motion by control, N m or N. Default: `0`."
    )
    stribeck: NumbersByName = Field(
        default=None,
        description="Excess of the friction at breakaway by control, N m or N. Default: `0`.",
    )
    full_speed: Positive | None = Field(
        default=None,
        description="Without effect, rad/s or m/s: dry friction sticks, and has its full value at "
        "any speed. Default: none.",
    )
    stribeck_speed: Positive | None = Field(
        default=None,
        description="Speed at which the excess of friction has fallen to 1/e, rad/s or m/s. "
        "Default: `0.1`.",
    )
    torque_limit: NumbersByName = Field(
        default=None,
        description="Largest torque or force of each control, N m or N. Default: none.",
    )
    ripple: NumbersByName = Field(
        default=None,
        description="Torque ripple of each control, as a fraction of its torque. Default: `0`.",
    )
    ripple_periods: (
        Annotated[int, Field(ge=1, le=10_000), Expected("a whole number from 1 to 10000")] | None
    ) = Field(
        default=None,
        description="Number of periods of the ripple in a turn of the joint. Default: `6`.",
    )
    lag: NumbersByName = Field(
        default=None, description="Time constant of the torque of each control, s. Default: `0`."
    )
    stiffness: NumbersByName = Field(
        default=None,
        description="Stiffness of the flexible joint of each control, N m/rad or N/m. Default: "
        "rigid.",
    )
    damping: NumbersByName = Field(
        default=None,
        description="Damping of the flexible joint of each control, N m s/rad or N s/m. Default: "
        "`0`.",
    )
    motor_inertia: NumbersByName = Field(
        default=None,
        description="Inertia of the motor of each flexible joint, kg m^2 or kg. Default: none; "
        "required with `stiffness`.",
    )
    resolution: NumbersByName = Field(
        default=None,
        description="Step of the encoder of each joint with one coordinate, rad or m. Default: "
        "`0`.",
    )
    noise: NumbersByName = Field(
        default=None,
        description="Standard deviation of the measured position of each such joint, rad or m. "
        "Default: `0`.",
    )
    velocity_noise: NumbersByName = Field(
        default=None,
        description="Standard deviation of the measured velocity of each such joint, rad/s or m/s. "
        "Default: `0`.",
    )
    timing: TimingTable = Field(
        default=TimingTable(), description="Delays between measurement and torque. Default: none."
    )
    momentum_error: Vector6 | None = Field(
        default=None,
        description="True momentum at the start minus that of the model: linear, kg m/s, then "
        "angular, kg m^2/s. Default: zero.",
    )
    wrenches: (
        Annotated[
            list[WrenchTable],
            Field(max_length=100),
            Expected("tables [[imperfections.wrenches]], at most 100"),
        ]
        | None
    ) = Field(default=None, description="Forces and torques on bodies. Default: none.")
    gravity_gradient: GravityGradientTable | None = Field(
        default=None, description="Torque of the gravity gradient. Default: none."
    )


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
    for name in ("timing", "wrenches", "gravity_gradient", "full_speed"):
        given.pop(name, None)
    with located(path, "[imperfections]"):
        return Imperfections.of(robot, **given, **table.timing.given(), disturbances=disturbances)


class SlipTable(Table):
    """Friction of wheels that may slip; an entry is a number for all wheels, or by name."""

    grip: Annotated[
        Any,
        AfterValidator(_numbers_by_name),
        Field(json_schema_extra=BY_NAME),
        Expected("a number of zero or more, or a table of them by wheel"),
    ] = Field(description="Friction coefficient of each wheel.")
    side: NumbersByName = Field(
        default=None,
        description="Friction coefficient across the wheel, relative to that along it. Default: "
        "`1.0`.",
    )
    loads: NumbersByName = Field(
        default=None,
        description="Constant load of each wheel, N. Default: computed from the motion.",
    )
    compliance: NumbersByName = Field(
        default=None,
        description="Vertical compliance of wheels and supports, m/N; only ratios matter. Required "
        "for more than three of them. Default: none.",
    )
    damping: Positive | None = Field(
        default=None,
        description="Force per slip speed of a wheel that does not slide, N s/m. Default: `1e6`.",
    )
    time: Positive | None = Field(
        default=None,
        description="Time within which friction stops a slip and loads follow the motion, s. "
        "Default: `0.002`.",
    )


def read_slip(table: SlipTable | None, robot: Mechanism, path: str | PathLike[str]) -> Slip | None:
    """Friction of wheels that may slip; an error names table and field."""
    if table is None:
        return None
    with located(path, "[plant.slip]"):
        slip = Slip.of(robot, **table.given())
        Plant(robot, slip=slip)  # checks loads and supports
        return slip
