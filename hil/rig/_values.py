"""Types of the values in rig files, with their bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from hil._concur import LARGEST, Expected


def one_of(*known: int) -> AfterValidator:
    """Reject other integers; a `Literal` would accept `true` as 1."""

    def check(value: int) -> int:
        if value not in known:
            raise ValueError(f"one of {known}")
        return value

    return AfterValidator(check)


def tables(value: Any) -> Any:
    tables = isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
    if tables and len(value) <= 1000:
        return value
    raise ValueError("a list of tables")


# Bounds of real machines: a value beyond them has another unit, or is a typing error.
NotNegative = Annotated[
    float, Field(ge=0.0, le=LARGEST), Expected("a number not below zero, at most 1e9")
]
Share = Annotated[float, Field(ge=0.0, lt=1.0), Expected("a number from 0 to below 1")]
Natural = Annotated[
    int, Field(ge=0, le=2**31 - 1), Expected("a whole number not below zero, below 2^31")
]
Cycles = Annotated[int, Field(gt=0, le=10_000), Expected("a whole number above zero, to 10000")]
# A drive reports its position with 32 bits and a sign: more counts would not cover one turn.
Counts = Annotated[int, Field(gt=0, le=2**30), Expected("a whole number above zero, to 2^30")]
Torque = Annotated[float, Field(ge=1e-6, le=1e6), Expected("a number above zero, 1e-6 to 1e6")]
Speed = Annotated[float, Field(ge=1e-4, le=1e3), Expected("a number above zero, 1e-4 to 1e3")]
# Motor radians per metre of a fine screw are 6e4.
Ratio = Annotated[float, Field(ge=1e-4, le=1e6), Expected("a number from 1e-4 to 1e6")]
Place = Annotated[float, Field(ge=-1e6, le=1e6), Expected("a number within 1e6, rad or m")]
Seconds = Annotated[float, Field(ge=1e-6, le=1e3), Expected("a time from 1e-6 to 1e3 s")]
Delay = Annotated[float, Field(ge=0.0, le=10.0), Expected("a time from 0 to 10 s")]
# A rig that still brakes after this time does not stop; a category 1 stop then removes the power.
StopTime = Annotated[float, Field(ge=1e-3, le=10.0), Expected("a time from 1e-3 to 10 s")]
# In m or rad: larger tolerances would detect no fault.
Deviation = Annotated[
    float, Field(ge=1e-9, le=10.0), Expected("a number from 1e-9 to 10, m or rad")
]
# The plant's step: the computation of a shorter step takes longer than the step.
Step = Annotated[float, Field(ge=1e-5, le=1.0), Expected("a time step from 1e-5 to 1 s")]
Rate = Annotated[float, Field(ge=0.0, le=1e4), Expected("a rate from 0 to 1e4 Hz")]
Port = Annotated[int, Field(ge=1, le=65535), Expected("a port from 1 to 65535")]
Pair = Annotated[
    list[Place], Field(min_length=2, max_length=2), Expected("a lower and an upper end")
]
PolicyName = Annotated[Literal["hold", "damp", "stop"], Expected('"hold", "damp" or "stop"')]
ByAxis = Annotated[dict[str, NotNegative], Expected("a table of numbers by axis")]
