"""Tables of a task file: fields and their types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.formats._imperfections import ImperfectionsTable, SlipTable
from concur.formats._initial import InitialTable
from concur.formats._proof import ProofTable
from concur.formats._reference import REFERENCE_KINDS
from concur.formats._requirements import RequirementTable
from concur.formats._servo import ServoTable
from concur.simulation import LONGEST_RUN, METHODS, SHORTEST_STEP, Tolerances
from concur.tables import (
    NUMBER,
    PAIR,
    Expected,
    FileName,
    NumberOrList,
    Positive,
    Quaternion,
    Table,
    Text,
    Vector3,
    Vector6,
    any_of,
    is_number,
    list_of,
    table_of,
)


def _known_method(name: str) -> str:
    if name not in METHODS:
        raise ValueError(f"one of {', '.join(METHODS)}")
    return name


def _known_stages(value: Any) -> Any:
    if value == "auto":
        return value
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, dict) and all(
        is_number(momentum) or (isinstance(momentum, list) and all(map(is_number, momentum)))
        for momentum in value.values()
    ):
        return value
    raise PydanticCustomError("stages", "stages expected")


class OutputTable(Table):
    """A tracked quantity of a body."""

    name: Text = Field(description="Name of the output.")
    body: Text = Field(description="Name of the body.")
    group: Annotated[Text, Field(json_schema_extra={"enum": list(REFERENCE_KINDS)})] = Field(
        description="Group of the output: one to three coordinates of a point, heading, position "
        "and heading, orientation, or position and orientation."
    )
    point: Vector3 | None = Field(
        default=None, description="Point of the body, in its frame, m. Default: the origin."
    )
    axes: Text | None = Field(
        default=None,
        description='`R`, `R2`, `R3` only: inertial axes, such as `"xz"` or `"z"`. Default: the '
        "first axes.",
    )
    orientation: Quaternion | None = Field(
        default=None,
        description="Groups with rotation only: orientation of the output's frame in the body, "
        "such as a tool frame: unit quaternion x, y, z, w. Default: `[0, 0, 0, 1]`.",
    )
    normal: Vector3 | None = Field(
        default=None,
        description="`SO2`, `SE2` only: normal of the plane, of any length, inertial axes. "
        "Default: `[0, 0, 1]`.",
    )
    relative_to: Text | None = Field(
        default=None,
        description="Body in whose frame the output and its reference are given. Default: the "
        "inertial frame.",
    )
    stiffness: NumberOrList = Field(
        description="Gain of the pose error, 1/s^2: one number, or one per coordinate."
    )
    damping: NumberOrList = Field(
        description="Gain of the velocity error, 1/s: one number, or one per coordinate."
    )
    integral: NumberOrList | None = Field(
        default=None,
        description="Gain of integral action, 1/s^3: one number, or one per coordinate. Default: "
        "none.",
    )


Step = Annotated[
    float,
    Field(ge=SHORTEST_STEP, le=LONGEST_RUN),
    Expected(f"a number above zero, from {SHORTEST_STEP:g} to {LONGEST_RUN:g}"),
]


class SimulationTable(Table):
    """Duration and method of the simulation."""

    duration: Step = Field(description="Duration of the run, s; a multiple of `dt`.")
    dt: Step = Field(default=1e-3, description="Step of integration and recording, s.")
    method: Annotated[
        str,
        AfterValidator(_known_method),
        Field(json_schema_extra={"enum": list(METHODS)}),
        Expected("one of " + ", ".join(f'"{m}"' for m in METHODS)),
    ] = Field(default="rk4", description="Integrator.")
    control_period: Step | None = Field(
        default=None,
        description="Time for which the torque is held, s; a multiple of `dt`. Default: "
        "continuous.",
    )


class TolerancesTable(Table):
    """Limits for a run that passes, beside those of the robot's joints."""

    final_error: Positive = Field(
        default=Tolerances.final_error, description="Largest output error at the end, m or rad."
    )
    deviation: Positive = Field(
        default=Tolerances.deviation,
        description="Largest deviation of an error coordinate from the exact error dynamics, m or "
        "rad.",
    )
    constraint: Positive = Field(
        default=Tolerances.constraint, description="Largest slip of a wheel, m/s."
    )
    evaluate_after: Positive | None = Field(
        default=None,
        description="No limit: the report gives the largest error after this time, s, within the "
        "duration. Default: half the duration.",
    )
    margin: Positive = Field(
        default=Tolerances.margin, description="Least decoupling margin, without unit."
    )
    momentum: Positive = Field(
        default=Tolerances.momentum,
        description="Largest relative drift of the momentum of a robot with a floating base.",
    )


class PlantTable(Table):
    """The simulated robot, if it differs from the model of the law."""

    file: FileName | None = Field(
        default=None,
        description="Robot file, relative to the task's folder: the same bodies, joints and "
        "drives, with other masses, placements or wheels. Default: the robot.",
    )
    momentum: Vector6 | None = Field(
        default=None,
        description="True momentum of a robot with a floating base: linear, kg m/s, then angular, "
        "kg m^2/s. Default: `momentum` of the task.",
    )
    slip: SlipTable | None = Field(
        default=None, description="Friction of wheels that may slip. Default: the wheels roll."
    )


def _ranges(value: Any) -> Any:
    pair = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
    if pair or (isinstance(value, list) and all(map(_pair, value)) and value):
        return value
    raise PydanticCustomError("range", "range expected")


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _speeds(value: Any) -> Any:
    entries = list(value.values()) if isinstance(value, dict) else value
    numbers = entries if isinstance(entries, list) else [entries]
    if all(map(is_number, numbers)):
        return value
    raise PydanticCustomError("speeds", "speeds expected")


class OperatingTable(Table):
    """Box of configurations in which `concur certify` proves margin and torques."""

    ranges: dict[
        str,
        Annotated[
            Any,
            AfterValidator(_ranges),
            Field(json_schema_extra=any_of(PAIR, list_of(PAIR, 1))),
            Expected("a lower and an upper end, or a list of such pairs"),
        ],
    ] = Field(
        description="Lower and upper end of the coordinate of each joint, rad or m; a list of "
        "pairs for several coordinates. Required for all coordinates that the law depends on."
    )
    speeds: Annotated[
        Any,
        AfterValidator(_speeds),
        Field(json_schema_extra=any_of(NUMBER, list_of(NUMBER), table_of(NUMBER))),
        Expected("a number, a list of them, or a table of shape velocities"),
    ] = Field(
        default=None,
        description="Largest shape velocities, rad/s or m/s: a number, one for each, or a table by "
        "name. Default: only the margin is bounded.",
    )
    acceleration: NumberOrList = Field(
        default=0.0,
        description="Largest acceleration of the reference, m/s^2 or rad/s^2: a number, or one for "
        "each coordinate of the outputs.",
    )
    pose_error: NumberOrList = Field(
        default=0.0,
        description="Largest pose error, m or rad: a number, or one for each coordinate.",
    )
    velocity_error: NumberOrList = Field(
        default=0.0,
        description="Largest velocity error, m/s or rad/s: a number, or one for each coordinate.",
    )
    distance: Positive | None = Field(
        default=None,
        description="Largest distance of a floating base from the inertial origin, m; required "
        "with linear momentum. Default: none.",
    )
    required_margin: Positive | None = Field(
        default=None,
        description="Required decoupling margin, without unit. Default: the "
        "margin below which the law gives no torque.",
    )
    tolerance: Positive = Field(default=0.2, description="Relative accuracy of the bounds.")
    budget: Annotated[
        int,
        # Some milliseconds per box: a million boxes take hours.
        Field(gt=0, le=1_000_000),
        Expected("a whole number above zero, at most 1000000"),
    ] = Field(default=2000, description="Largest number of boxes.")


class TaskTable(Table):
    """A whole task file."""

    name: Text = Field(description="Name of the task, used in the report.")
    robot: FileName = Field(
        description="A robot file, relative to the task's folder, or the name of a shipped robot."
    )
    momentum: Vector6 | None = Field(
        default=None,
        description="Constant spatial momentum of a robot with a floating base, about the inertial "
        "origin: linear, kg m/s, then angular, kg m^2/s. Default: zero.",
    )
    stages: Annotated[
        Any,
        AfterValidator(_known_stages),
        Field(
            json_schema_extra=any_of(
                {"enum": ["auto"]},
                list_of({"type": "string"}),
                table_of(any_of(NUMBER, list_of(NUMBER))),
            )
        ),
        Expected('"auto", a list of bodies, or a table of momenta by body'),
    ] = Field(
        default=None,
        description="Unactuated joints with conserved momentum, by which the robot is reduced: "
        '`"auto"` (all of them, at zero momentum), a list of bodies, or a table with the momentum '
        "of each body's joint, N m s about an axis and N s along one. Default: none.",
    )
    outputs: Annotated[
        list[OutputTable],
        # More than any robot has drives; each needs a graph.
        Field(min_length=1, max_length=100),
        Expected("at least one table [[outputs]]"),
    ] = Field(description="Tracked quantities of bodies.")
    reference: Annotated[
        dict[str, dict[str, Any]], Expected("a table [reference.<output>] per output")
    ] = Field(description="Reference of each output: a table with its `kind` and fields.")
    initial: InitialTable = Field(
        default=InitialTable(), description="The initial state. Default: neutral, at rest."
    )
    servo: ServoTable = Field(
        default=ServoTable(), description="Options of the law. Default: none."
    )
    simulation: SimulationTable = Field(description="Duration and method.")
    tolerances: TolerancesTable = Field(
        default=TolerancesTable(),
        description="Limits for a run that passes. Default: those of the fields.",
    )
    plant: PlantTable = Field(
        default=PlantTable(),
        description="The simulated robot, if it differs from the model of the law. Default: the "
        "robot.",
    )
    operating: OperatingTable | None = Field(
        default=None,
        description="Box of configurations in which the decoupling margin and the torques are "
        "proved. Default: none.",
    )
    proof: ProofTable | None = Field(
        default=None,
        description="Starts, imperfections and limits that `concur prove` proves. Default: none.",
    )
    imperfections: ImperfectionsTable | None = Field(
        default=None,
        description="Friction, lags, delays, noise and disturbances of the simulated robot. "
        "Default: none.",
    )
    requirements: (
        Annotated[
            list[RequirementTable],
            Field(min_length=1, max_length=1000),
            Expected("tables [[requirements]]"),
        ]
        | None
    ) = Field(
        default=None,
        description="Conditions on a run, for campaigns. Default: tolerances and limits.",
    )
    # The readers of these tables check their entries, which depend on the robot.
    uncertainty: Annotated[dict[str, Any] | None, Expected("tables [uncertainty.<kind>]")] = Field(
        default=None,
        description="Quantities that differ between the worlds of a campaign. Default: none.",
    )
    world: Annotated[dict[str, Any] | None, Expected("tables [world.<kind>]")] = Field(
        default=None, description="Deviations of the one world that is simulated. Default: none."
    )
