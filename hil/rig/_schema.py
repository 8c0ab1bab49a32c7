"""Tables of a rig file: fields and types; what must hold between them is in `_checks.py`.

No table has defaults of its own: a field that is left out takes the default of the dataclass in
`rig.py` that the table becomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from concur.formats._toml import Number, Positive, Table, Text


def _one_of(*known: int) -> AfterValidator:
    """Refuse other whole numbers; a `Literal` would take `true` for 1."""

    def check(value: int) -> int:
        if value not in known:
            raise ValueError(f"one of {known}")
        return value

    return AfterValidator(check)


def _tables(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    raise ValueError("a list of tables")


NotNegative = Annotated[float, Field(ge=0.0, description="a number not below zero")]
Share = Annotated[float, Field(ge=0.0, lt=1.0, description="a number from 0 to below 1")]
Natural = Annotated[int, Field(ge=0, description="a whole number not below zero")]
Count = Annotated[int, Field(gt=0, description="a whole number above zero")]
Port = Annotated[int, Field(ge=1, le=65535, description="a port from 1 to 65535")]
Pair = Annotated[
    list[float], Field(min_length=2, max_length=2, description="a lower and an upper end")
]
Truth = Annotated[bool, Field(description="true or false")]
PolicyName = Annotated[
    Literal["hold", "damp", "stop"], Field(description='"hold", "damp" or "stop"')
]
ByAxis = Annotated[dict[str, NotNegative], Field(description="a table of numbers by axis")]


class RangesTable(Table):
    """Ranges of an MIT drive: what the smallest and the largest code mean."""

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
    torque_limit: Positive
    torque_rate_limit: Positive
    speed_limit: Positive
    gear: Positive | None = None
    direction: Annotated[int, _one_of(1, -1), Field(description="1 or -1")] | None = None
    rated_torque: Positive | None = None
    torque_unit: (
        Annotated[Literal["rated", "maximum"], Field(description='"rated" or "maximum"')] | None
    ) = None
    torque_constant: Positive | None = None
    model: Text | None = None
    ranges: RangesTable | None = None
    counts: Count | None = None
    offset: Number | None = None
    position_limits: Pair | None = None
    power_limit: Positive | None = None
    damping: Positive | None = None
    stiffness: Positive | None = None
    watchdog: Positive | None = None
    watchdog_confirmed: Truth | None = None


class BusTable(Table):
    """Where the frames go."""

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
    """How the loop runs."""

    cures: ClassVar[Mapping[str, str]] = {"period": "Give its inverse, `rate`, in Hz."}

    rate: Positive | None = None
    priority: (
        Annotated[int, Field(ge=0, le=99, description="a whole number from 0 to 99")] | None
    ) = None
    lock_memory: Truth | None = None
    spin: NotNegative | None = None
    window: Positive | None = None


class PoliciesTable(Table):
    """What is done when something fails."""

    late: PolicyName | None = None
    lost: PolicyName | None = None
    patience: Natural | None = None
    stop_category: (
        Annotated[
            int,
            _one_of(1, 2),
            Field(description="1 or 2 (category 0, removing power at once, must be wired)"),
        ]
        | None
    ) = None
    stop_time: Positive | None = None
    prelude: Count | None = None
    postlude: Count | None = None
    start_error: Positive | None = None
    largest_error: Positive | None = None


class OperatorTable(Table):
    """The person at the stop button."""

    host: Text | None = None
    port: Port | None = None
    timeout: Positive | None = None
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
    timeout: Positive | None = None
    required: Truth | None = None
    largest_jump: Positive | None = None


class EstimatorTable(Table):
    """How states are made of reports."""

    bandwidth: Positive | None = None
    latency: NotNegative | None = None
    pose_gain: NotNegative | None = None


class RecorderTable(Table):
    """What becomes of each cycle."""

    directory: Text | None = None
    seconds: Positive | None = None


class EmulatorTable(Table):
    """How an emulated rig differs from a perfect one."""

    latency: NotNegative | None = None
    loss: Share | None = None
    dt: Positive | None = None
    seed: Natural | None = None
    pose_rate: NotNegative | None = None
    pose_noise: NotNegative | None = None
    pose_latency: NotNegative | None = None
    pose_loss: Share | None = None
    viscous: ByAxis | None = None
    friction: ByAxis | None = None
    faults: Annotated[Any, AfterValidator(_tables), Field(description="a list of tables")] = None
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
    task: Text
    bus: BusTable
    drive_modules: (
        Annotated[list[str], Field(description="a list of names of Python files")] | None
    ) = None
    axes: Annotated[list[AxisTable], Field(min_length=1, description="at least one table [[axes]]")]
    loop: LoopTable | None = None
    policies: PoliciesTable | None = None
    operator: OperatorTable | None = None
    estimator: EstimatorTable | None = None
    recorder: RecorderTable | None = None
    emulator: EmulatorTable | None = None
    pose: PoseTable | None = None
    certificate: Text | None = None
