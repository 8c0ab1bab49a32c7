"""Tables of a rig file: fields and types. `_checks.py` checks conditions across fields.

Tables define no defaults: a missing field takes the default of the dataclass in `hil.settings` to
which the table is converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from concur.formats.tables import LARGEST, FileName, Positive, Table, Text, list_of
from hil.settings import RENAMED


def _one_of(*known: int) -> AfterValidator:
    """Reject other integers; a `Literal` would accept `true` as 1."""

    def check(value: int) -> int:
        if value not in known:
            raise ValueError(f"one of {known}")
        return value

    return AfterValidator(check)


def _tables(value: Any) -> Any:
    tables = isinstance(value, list) and all(isinstance(entry, dict) for entry in value)
    if tables and len(value) <= 1000:
        return value
    raise ValueError("a list of tables")


# Bounds of real machines: a value beyond them has another unit, or is a typing error.
NotNegative = Annotated[
    float, Field(ge=0.0, le=LARGEST, description="a number not below zero, at most 1e9")
]
Share = Annotated[float, Field(ge=0.0, lt=1.0, description="a number from 0 to below 1")]
Natural = Annotated[
    int, Field(ge=0, le=2**31 - 1, description="a whole number not below zero, below 2^31")
]
Cycles = Annotated[int, Field(gt=0, le=10_000, description="a whole number above zero, to 10000")]
# A drive reports its position with 32 bits and a sign: more counts would not cover one turn.
Counts = Annotated[int, Field(gt=0, le=2**30, description="a whole number above zero, to 2^30")]
Torque = Annotated[float, Field(ge=1e-6, le=1e6, description="a number above zero, 1e-6 to 1e6")]
Speed = Annotated[float, Field(ge=1e-4, le=1e3, description="a number above zero, 1e-4 to 1e3")]
# Motor radians per metre of a fine screw are 6e4.
Ratio = Annotated[float, Field(ge=1e-4, le=1e6, description="a number from 1e-4 to 1e6")]
Place = Annotated[float, Field(ge=-1e6, le=1e6, description="a number within 1e6, rad or m")]
Seconds = Annotated[float, Field(ge=1e-6, le=1e3, description="a time from 1e-6 to 1e3 s")]
Delay = Annotated[float, Field(ge=0.0, le=10.0, description="a time from 0 to 10 s")]
# A rig that still brakes after this time does not stop; a category 1 stop then removes the power.
StopTime = Annotated[float, Field(ge=1e-3, le=10.0, description="a time from 1e-3 to 10 s")]
# In m or rad: larger tolerances would detect no fault.
Deviation = Annotated[
    float, Field(ge=1e-9, le=10.0, description="a number from 1e-9 to 10, m or rad")
]
# The plant's step: the computation of a shorter step takes longer than the step.
Step = Annotated[float, Field(ge=1e-5, le=1.0, description="a time step from 1e-5 to 1 s")]
Rate = Annotated[float, Field(ge=0.0, le=1e4, description="a rate from 0 to 1e4 Hz")]
Port = Annotated[int, Field(ge=1, le=65535, description="a port from 1 to 65535")]
Pair = Annotated[
    list[Place], Field(min_length=2, max_length=2, description="a lower and an upper end")
]
Truth = Annotated[bool, Field(description="true or false")]
PolicyName = Annotated[
    Literal["hold", "damp", "stop"], Field(description='"hold", "damp" or "stop"')
]
ByAxis = Annotated[dict[str, NotNegative], Field(description="a table of numbers by axis")]


class RangesTable(Table):
    """Ranges of an MIT drive: values of the smallest and the largest code."""

    position: Pair
    velocity: Pair
    torque: Pair
    kp: Pair
    kd: Pair


class AxisTable(Table):
    """One motor with its drive."""

    cures: ClassVar[Mapping[str, str]] = {
        "node_id": "Did you mean `node`?",
        "id": "Did you mean `node`?",
        "encoder_counts": "Did you mean `counts`?",
        "gear_ratio": "Did you mean `gear`?",
        "joint": "Did you mean `name`?",
        "kind": "Did you mean `drive`?",
    }

    name: Text
    drive: Text
    node: Annotated[int, Field(ge=1, le=2047, description="a whole number from 1 to 2047")]
    torque_limit: Torque
    torque_rate_limit: Positive
    speed_limit: Speed
    gear: Ratio | None = None
    direction: (
        Annotated[
            int, _one_of(1, -1), Field(description="1 or -1", json_schema_extra={"enum": [1, -1]})
        ]
        | None
    ) = None
    rated_torque: Torque | None = None
    torque_unit: (
        Annotated[
            Literal["rated", "maximum", "count"],
            Field(description='"rated", "maximum" or "count"'),
        ]
        | None
    ) = None
    torque_count: Torque | None = None
    rated_torque_unit: Torque | None = None
    torque_constant: Torque | None = None
    model: Text | None = None
    ranges: RangesTable | None = None
    counts: Counts | None = None
    modulo: Counts | None = None
    offset: Place | None = None
    position_limits: Pair | None = None
    power_limit: Positive | None = None
    damping: Positive | None = None
    stiffness: Positive | None = None
    watchdog: Seconds | None = None
    watchdog_confirmed: Truth | None = None


class BusTable(Table):
    """The bus of the drives."""

    cures: ClassVar[Mapping[str, str]] = {"bit_rate": "Did you mean `bitrate`?"}

    interface: Text
    channel: Text
    bitrate: (
        Annotated[
            int,
            Field(ge=10_000, le=1_000_000, description="a whole number from 10000 to 1000000"),
        ]
        | None
    ) = None
    largest_load: (
        Annotated[float, Field(gt=0.0, le=1.0, description="a number above 0, at most 1")] | None
    ) = None
    options: Annotated[dict[str, Any], Field(description="a table")] | None = None


class LoopTable(Table):
    """Rate, priority and timing of the loop."""

    renamed: ClassVar[Mapping[str, str]] = {"window": "receive_window"}
    cures: ClassVar[Mapping[str, str]] = {"period": "Give its inverse, `rate`, in Hz."}

    rate: Positive | None = None
    priority: (
        Annotated[int, Field(ge=0, le=99, description="a whole number from 0 to 99")] | None
    ) = None
    lock_memory: Truth | None = None
    spin: NotNegative | None = None
    receive_window: Seconds | None = None


class PoliciesTable(Table):
    """Responses of the loop to late cycles and missing reports, and stops."""

    renamed: ClassVar[Mapping[str, str]] = RENAMED

    on_late: PolicyName | None = None
    on_missing: PolicyName | None = None
    max_consecutive_faults: Natural | None = None
    stop_category: (
        Annotated[
            int,
            _one_of(1, 2),
            Field(
                description="1 or 2 (category 0, removing power at once, must be wired)",
                json_schema_extra={"enum": [1, 2]},
            ),
        ]
        | None
    ) = None
    stop_time: StopTime | None = None
    end: Annotated[Literal["stop", "hold"], Field(description='"stop" or "hold"')] | None = None
    startup_cycles: Cycles | None = None
    shutdown_cycles: Cycles | None = None
    start_error: Deviation | None = None
    largest_error: Deviation | None = None


class OperatorTable(Table):
    """The channel of the operator's stop button and enabling device."""

    host: Text | None = None
    port: Port | None = None
    timeout: Seconds | None = None
    required: Truth | None = None


class PoseTable(Table):
    """An external source of the base's pose."""

    kind: Annotated[Literal["udp", "zmq"], Field(description='"udp" or "zmq"')] | None = None
    host: Text | None = None
    port: Port | None = None
    gives: (
        Annotated[
            Literal["pose", "position", "attitude"],
            Field(description='"pose", "position" or "attitude"'),
        ]
        | None
    ) = None
    timeout: Seconds | None = None
    required: Truth | None = None
    largest_jump: Deviation | None = None
    largest_drift: Share | None = None


class EstimatorTable(Table):
    """State estimation."""

    bandwidth: Positive | None = None
    latency: Delay | None = None
    pose_gain: NotNegative | None = None


class RecorderTable(Table):
    """Recording of the cycles."""

    directory: FileName | None = None
    seconds: Seconds | None = None


class EmulatorTable(Table):
    """Imperfections of an emulated rig."""

    latency: Delay | None = None
    jitter: Delay | None = None
    loss: Share | None = None
    dt: Step | None = None
    seed: Natural | None = None
    pose_rate: Rate | None = None
    pose_noise: NotNegative | None = None
    pose_latency: Delay | None = None
    pose_loss: Share | None = None
    viscous: ByAxis | None = None
    friction: ByAxis | None = None
    faults: Annotated[
        Any,
        AfterValidator(_tables),
        Field(description="a list of tables", json_schema_extra=list_of({"type": "object"})),
    ] = None
    control_port: (
        Annotated[int, Field(ge=0, le=65535, description="a port from 1 to 65535, or 0 for none")]
        | None
    ) = None


class RigTable(Table):
    """A whole rig file."""

    cures: ClassVar[Mapping[str, str]] = {
        "robot": "The task names the robot; name the task file in `task`.",
        "axis": "Write a table [[axes]] for each axis.",
        "drive_module": "Did you mean `drive_modules`?",
        "drives": "Write a table [[axes]] for each drive.",
    }

    name: Text
    task: FileName
    bus: BusTable
    drive_modules: (
        Annotated[list[str], Field(description="a list of names of Python files")] | None
    ) = None
    axes: Annotated[
        list[AxisTable],
        # The largest number of nodes on a bus.
        Field(min_length=1, max_length=126, description="at least one table [[axes]], at most 126"),
    ]
    loop: LoopTable | None = None
    policies: PoliciesTable | None = None
    operator: OperatorTable | None = None
    estimator: EstimatorTable | None = None
    recorder: RecorderTable | None = None
    emulator: EmulatorTable | None = None
    pose: PoseTable | None = None
    certificate: FileName | None = None
    proof: FileName | None = None
