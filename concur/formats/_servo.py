"""Reader of the table [servo] of a task: options of the control law."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.control import Redundancy
from concur.errors import ConcurError
from concur.formats._configuration import read_configuration
from concur.robot import Mechanism
from concur.tables import (
    NUMBER,
    PAIR,
    Expected,
    NumberOrList,
    Positive,
    Table,
    Text,
    Truth,
    any_of,
    is_number,
    list_of,
    located,
    table_of,
    unknown,
)


def _limit(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
    return is_number(value) or pair


def _limits(value: Any) -> Any:
    entries = [value]
    if isinstance(value, dict):
        entries = list(value.values())
    elif isinstance(value, list):
        entries = value
    if all(map(_limit, entries)):
        return value
    raise PydanticCustomError("limits", "limits expected")


def _weight(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, list) and all(map(is_number, value))):
        return value
    raise PydanticCustomError("weight", "weight expected")


def _weights(value: Any) -> Any:
    entries = list(value.values()) if isinstance(value, dict) else value
    if isinstance(entries, list) and all(map(is_number, entries)):
        return value
    raise PydanticCustomError("weights", "weights expected")


def _bounds(value: Any) -> Any:
    entries = value if isinstance(value, list) else [value]
    if all(is_number(entry) and entry > 0.0 for entry in entries):
        return value
    raise PydanticCustomError("bounds", "bounds expected")


LIMIT = any_of(NUMBER, PAIR)


class RedundancyTable(Table):
    """Rule for internal motion, if there are more shape velocities than output coordinates."""

    weight: Annotated[
        Any,
        AfterValidator(_weight),
        Field(json_schema_extra=any_of({"enum": ["energy", "torque"]}, list_of(NUMBER))),
        Expected("a name or a list of numbers"),
    ] = Field(
        default=None,
        description='Metric of the distance: `"energy"` (least acceleration energy), `"torque"` '
        "(least torque of each instant; internal motion may grow on long references), or a list "
        'with one positive number per shape velocity. Default: `"energy"`.',
    )
    objective: (
        Annotated[Text, Field(json_schema_extra={"enum": ["rest", "posture", "base_rotation"]})]
        | None
    ) = Field(
        default=None,
        description='`"rest"`: internal motion comes to rest; `"posture"`: it approaches a '
        'configuration; `"base_rotation"`: it minimizes the rotation of the base. Default: '
        '`"rest"`.',
    )
    stiffness: Positive | None = Field(
        default=None, description="Stiffness towards the posture, 1/s^2. Default: `1.0`."
    )
    damping: Positive | None = Field(
        default=None, description="Decay rate of internal motion, 1/s. Default: `2.0`."
    )
    posture: Annotated[dict[str, NumberOrList], Expected("a table of bodies")] | None = Field(
        default=None,
        description='With `"posture"` only: configurations by body, m and rad, as in '
        "`[initial.q]`; other joints are free. Default: none.",
    )
    base_weight: Positive | None = Field(
        default=None,
        description='With `"base_rotation"` only: weight of the base rotation relative to the '
        "shape motion; torques and speeds of the joints rise with it. Default: `100.0`.",
    )


class ServoTable(Table):
    """Options of the control law."""

    use_measured_velocity: Truth = Field(
        default=False,
        description="Whether the law uses the measured velocity of the base, and with it the true "
        "momentum, in place of `momentum` of the task.",
    )
    damping_threshold: Positive | None = Field(
        default=None,
        description="Decoupling margin, without unit, below which the law uses damped least "
        "squares. Default: no torque below `margin`.",
    )
    torque_limits: Annotated[
        Any,
        AfterValidator(_limits),
        Field(json_schema_extra=any_of(LIMIT, list_of(LIMIT), table_of(LIMIT))),
        Expected("a number, one per control, or a table of controls"),
    ] = Field(
        default=None,
        description="Limits of the drives, N and N m: one entry for all, a list with one per "
        "drive, or a table by name; an entry is a number (both directions) or a pair [lower, "
        "upper]. Default: none.",
    )
    torque_weights: Annotated[
        Any,
        AfterValidator(_weights),
        Field(json_schema_extra=any_of(list_of(NUMBER), table_of(NUMBER))),
        Expected("one positive number per control, or a table of controls"),
    ] = Field(
        default=None,
        description="Relative weights of the drives if there are more than shape velocities, such "
        "as four motors of a mecanum base: of all torques with the same effect the law takes those "
        "with the least weighted sum of squares, within `torque_limits`. Default: 1 each.",
    )
    longest_period: Positive | None = Field(
        default=None,
        description="With integral action: longest time from a tick to the next, s; longer ones "
        "are rejected as bad input. Default: 3 over the fastest rate of the errors.",
    )
    largest_state: Annotated[
        Any,
        AfterValidator(_bounds),
        Field(json_schema_extra=any_of(NUMBER, list_of(NUMBER))),
        Expected("a number above zero, or one per output coordinate"),
    ] = Field(
        default=None,
        description="With integral action: largest magnitude of the integral, m s and rad s, at "
        "which ticks hold it; a number, or a list with one per output coordinate. Default: the "
        "integral that acts like an error of 100 times the robot's size, or of 100 rad.",
    )
    redundancy: RedundancyTable | None = Field(
        default=None,
        description="Rule for internal motion. Default: least acceleration energy, coming to rest.",
    )


def read_servo(table: ServoTable, robot: Mechanism, path: str | PathLike[str]) -> dict[str, Any]:
    """Read the options of the control law as arguments of `Servo`."""
    options: dict[str, Any] = {
        "use_measured_velocity": table.use_measured_velocity,
        "damping_threshold": table.damping_threshold,
        "torque_limits": table.torque_limits,
        "torque_weights": table.torque_weights,
        "longest_period": table.longest_period,
        "largest_state": table.largest_state,
        "redundancy": None,
    }
    if table.redundancy is not None:
        rule = {name: value for name, value in table.redundancy if value is not None}
        if "posture" in rule:
            read_configuration(rule["posture"], robot, path, "[servo.redundancy.posture]")
        with located(path, "[servo.redundancy]"):
            options["redundancy"] = Redundancy(**rule)
    return options


def check_control_names(
    field: str, values: Any, controls: Sequence[str], path: str | PathLike[str]
) -> None:
    """Reject limits or weights of unknown drives; only a table has names."""
    for name in values if isinstance(values, dict) else ():
        if name not in controls:
            raise unknown(path, "[servo]", field, "a drive", name, controls)


def option_at_fault(error: ConcurError) -> tuple[str, str]:
    """Table and field of a task that an error of `Servo` belongs to; empty if unknown."""
    named = re.findall(r", `(\w+)`", error.where)
    if not named or named[0] not in ServoTable.model_fields:
        return "", ""
    if named[0] == "redundancy":
        return "[servo.redundancy]", named[1] if len(named) > 1 else ""
    return "[servo]", named[0]
