"""Tables of a task file: fields and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.formats._imperfections import ImperfectionsTable, SlipTable
from concur.formats._initial import InitialTable
from concur.formats._proof import ProofTable
from concur.formats._reference import REFERENCE_KINDS
from concur.formats._requirements import RequirementTable
from concur.formats._servo import ServoTable
from concur.formats.tables import (
    NUMBER,
    PAIR,
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
from concur.simulation import LONGEST_RUN, METHODS, SHORTEST_STEP, Tolerances


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
    name: Text
    body: Text
    group: Annotated[Text, Field(json_schema_extra={"enum": list(REFERENCE_KINDS)})]
    point: Vector3 | None = None
    axes: Text | None = None
    orientation: Quaternion | None = None
    normal: Vector3 | None = None
    relative_to: Text | None = None
    stiffness: NumberOrList
    damping: NumberOrList
    integral: NumberOrList | None = None


Step = Annotated[
    float,
    Field(
        ge=SHORTEST_STEP,
        le=LONGEST_RUN,
        description=f"a number above zero, from {SHORTEST_STEP:g} to {LONGEST_RUN:g}",
    ),
]


class SimulationTable(Table):
    renamed: ClassVar[Mapping[str, str]] = {"hold": "control_period"}

    duration: Step
    dt: Step = 1e-3
    method: Annotated[
        str,
        AfterValidator(_known_method),
        Field(
            description="one of " + ", ".join(f'"{m}"' for m in METHODS),
            json_schema_extra={"enum": list(METHODS)},
        ),
    ] = "rk4"
    control_period: Step | None = None


class TolerancesTable(Table):
    renamed: ClassVar[Mapping[str, str]] = {"settling_time": "evaluate_after"}

    final_error: Positive = Tolerances.final_error
    deviation: Positive = Tolerances.deviation
    constraint: Positive = Tolerances.constraint
    evaluate_after: Positive | None = None
    margin: Positive = Tolerances.margin
    momentum: Positive = Tolerances.momentum


class PlantTable(Table):
    file: FileName | None = None
    momentum: Vector6 | None = None
    slip: SlipTable | None = None


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
    renamed: ClassVar[Mapping[str, str]] = {"least": "required_margin"}

    ranges: dict[
        str,
        Annotated[
            Any,
            AfterValidator(_ranges),
            Field(
                description="a lower and an upper end, or a list of such pairs",
                json_schema_extra=any_of(PAIR, list_of(PAIR, 1)),
            ),
        ],
    ]
    speeds: Annotated[
        Any,
        AfterValidator(_speeds),
        Field(
            description="a number, a list of them, or a table of shape velocities",
            json_schema_extra=any_of(NUMBER, list_of(NUMBER), table_of(NUMBER)),
        ),
    ] = None
    acceleration: NumberOrList = 0.0
    pose_error: NumberOrList = 0.0
    velocity_error: NumberOrList = 0.0
    distance: Positive | None = None
    required_margin: Positive | None = None
    tolerance: Positive = 0.2
    budget: Annotated[
        int,
        # Some milliseconds per box: a million boxes take hours.
        Field(gt=0, le=1_000_000, description="a whole number above zero, at most 1000000"),
    ] = 2000


class TaskTable(Table):
    name: Text
    robot: FileName
    momentum: Vector6 | None = None
    stages: Annotated[
        Any,
        AfterValidator(_known_stages),
        Field(
            description='"auto", a list of bodies, or a table of momenta by body',
            json_schema_extra=any_of(
                {"enum": ["auto"]},
                list_of({"type": "string"}),
                table_of(any_of(NUMBER, list_of(NUMBER))),
            ),
        ),
    ] = None
    outputs: Annotated[
        list[OutputTable],
        # More than any robot has drives; each needs a graph.
        Field(min_length=1, max_length=100, description="at least one table [[outputs]]"),
    ]
    reference: Annotated[
        dict[str, dict[str, Any]], Field(description="a table [reference.<output>] per output")
    ]
    initial: InitialTable = InitialTable()
    servo: ServoTable = ServoTable()
    simulation: SimulationTable
    tolerances: TolerancesTable = TolerancesTable()
    plant: PlantTable = PlantTable()
    operating: OperatingTable | None = None
    proof: ProofTable | None = None
    imperfections: ImperfectionsTable | None = None
    requirements: (
        Annotated[
            list[RequirementTable],
            Field(min_length=1, max_length=1000, description="tables [[requirements]]"),
        ]
        | None
    ) = None
    # The readers of these tables check their entries, which depend on the robot.
    uncertainty: Annotated[
        dict[str, Any] | None, Field(description="tables [uncertainty.<kind>]")
    ] = None
    world: Annotated[dict[str, Any] | None, Field(description="tables [world.<kind>]")] = None
