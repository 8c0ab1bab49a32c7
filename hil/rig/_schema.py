"""Tables of a rig file: fields and types. `_checks.py` checks conditions across fields.

Tables define no defaults: a missing field takes the default of the dataclass in `hil.settings` to
which the table is converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from hil._concur import Expected, FileName, Positive, Table, Text, Truth, list_of
from hil.rig._values import (
    ByAxis,
    Counts,
    Cycles,
    Delay,
    Deviation,
    Natural,
    NotNegative,
    Pair,
    Place,
    PolicyName,
    Port,
    Rate,
    Ratio,
    Seconds,
    Share,
    Speed,
    Step,
    StopTime,
    Torque,
    one_of,
    tables,
)


class RangesTable(Table):
    """Ranges of an MIT drive: values of the smallest and the largest code."""

    position: Pair = Field(description="Position, rad.")
    velocity: Pair = Field(description="Velocity, rad/s.")
    torque: Pair = Field(description="Torque, N m.")
    kp: Pair = Field(description="Stiffness, N m/rad.")
    kd: Pair = Field(description="Damping, N m s/rad.")


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

    name: Text = Field(description="Actuated joint, by the name of its body.", examples=["turret"])
    drive: Text = Field(
        description='`"cia402"` (CANopen, cyclic synchronous torque), `"mit"` (mini-cheetah '
        "protocol), or a kind registered by `hil.drives.register_drive` in a file of"
        " `drive_modules`.",
        examples=["cia402"],
    )
    node: Annotated[int, Field(ge=1, le=2047), Expected("a whole number from 1 to 2047")] = Field(
        description="CANopen node number, or identifier of an MIT drive, 1 to 126.", examples=[3]
    )
    torque_limit: Torque = Field(
        description="Largest torque or force of the joint, N m or N.", examples=[12.0]
    )
    torque_rate_limit: Positive = Field(
        description="Largest rate of the torque or force, N m/s or N/s.", examples=[600.0]
    )
    speed_limit: Speed = Field(
        description="Largest speed of the joint, rad/s or m/s.", examples=[3.0]
    )
    gear: Ratio | None = Field(
        default=None,
        description="Ratio: turns of the shaft that the drive reports per turn of the joint; "
        "on a linear axis rad/m. A drive with an integrated gearbox that reports its output "
        "shaft has gear 1. Default: `1.0`.",
        examples=[10.0],
    )
    direction: (
        Annotated[
            int, one_of(1, -1), Field(json_schema_extra={"enum": [1, -1]}), Expected("1 or -1")
        ]
        | None
    ) = Field(
        default=None,
        description="Sign: `-1` if joint and motor rotate in opposite directions. Default: `1`.",
        examples=[-1],
    )
    rated_torque: Torque | None = Field(
        default=None,
        description="Rated torque of the motor (object 0x6076), N m; required for CiA 402 unless"
        " torques are in counts; compared with the value in the drive. Default: "
        "none.",
        examples=[0.6],
    )
    torque_unit: (
        Annotated[Literal["rated", "maximum", "count"], Expected('"rated", "maximum" or "count"')]
        | None
    ) = Field(
        default=None,
        description='Reference of torques in per mille: the `"rated"` torque (0x6076) or the '
        '`"maximum"` torque (0x6072, set to the torque limit before arming); '
        '`"count"` for drives with torque in counts. Default: `"rated"`.',
        examples=["maximum"],
    )
    torque_count: Torque | None = Field(
        default=None,
        description="Torque of the motor per count of 0x6071 and 0x6077, N m; only with "
        '`torque_unit = "count"`. Default: none.',
        examples=[0.00024],
    )
    rated_torque_unit: Torque | None = Field(
        default=None,
        description="Unit of 0x6076, N m: 1e-3 (mN m) by the standard; some drives differ "
        "(EPOS4: 1e-6). Default: `0.001`.",
        examples=[1e-06],
    )
    torque_constant: Torque | None = Field(
        default=None,
        description="Torque constant of the motor, N m/A; for information only. Default: none.",
        examples=[0.1],
    )
    model: Text | None = Field(
        default=None,
        description="Model of an MIT drive, which gives its ranges. Default: none.",
        examples=["AK80-9"],
    )
    ranges: RangesTable | None = Field(
        default=None,
        description="Ranges of an MIT drive, in place of `model`. Default: those of the model.",
        examples=[
            {
                "position": [-12.5, 12.5],
                "velocity": [-50.0, 50.0],
                "torque": [-18.0, 18.0],
                "kp": [0.0, 500.0],
                "kd": [0.0, 5.0],
            }
        ],
    )
    counts: Counts | None = Field(
        default=None,
        description="Encoder counts per turn of the motor; required for CiA 402. Default: none.",
        examples=[4096],
    )
    modulo: Counts | None = Field(
        default=None,
        description="Counts after which the reported position (0x6064) wraps, on drives with a "
        "position range or a single-turn encoder; must exceed the span of "
        "`position_limits`. Default: none.",
        examples=[65536],
    )
    offset: Place | None = Field(
        default=None,
        description="Position of the joint where the drive reports zero, rad or m. Default: `0.0`.",
        examples=[-1.6],
    )
    position_limits: Pair | None = Field(
        default=None,
        description="Lower and upper limit of the joint position, rad or m. Default: none.",
        examples=[[-1.2, 1.2]],
    )
    power_limit: Positive | None = Field(
        default=None, description="Largest mechanical power, W. Default: none.", examples=[60.0]
    )
    damping: Positive | None = Field(
        default=None,
        description="Joint damping of a braking stop, N m s/rad or N s/m; the default brakes a "
        "joint at its largest speed with its largest torque. Default: `torque_limit "
        "/ speed_limit`.",
        examples=[4.0],
    )
    stiffness: Positive | None = Field(
        default=None,
        description="Joint stiffness of a holding stop, N m/rad or N/m. Default: 5/s times "
        "`damping`.",
        examples=[20.0],
    )
    watchdog: Seconds | None = Field(
        default=None,
        description="Time without a command after which the drive removes torque, s: 0.02 to "
        "0.2, more than two periods of the loop. Default: `0.1`.",
        examples=[0.05],
    )
    watchdog_confirmed: Truth | None = Field(
        default=None,
        description="`true` if a person has verified that the watchdog removes torque, for "
        "drives that cannot report it. A drive that reports that it is still enabled"
        " is rejected in any case. Default: `false`.",
        examples=[True],
    )
    watchdog_torque: Torque | None = Field(
        default=None,
        description="Torque of the joint at which its watchdog is tested before arming, N m or N: "
        "at most a quarter of `torque_limit`; if it is not given, a twentieth. It is reduced where "
        "the joint would become faster than half of `speed_limit`. Default: none.",
        examples=[0.2],
    )


class BusTable(Table):
    """The bus of the drives."""

    cures: ClassVar[Mapping[str, str]] = {"bit_rate": "Did you mean `bitrate`?"}

    interface: Text = Field(
        description='Name of the interface in python-can: `"socketcan"`, `"pcan"`, ..., or '
        'without hardware `"udp_multicast"` between processes.',
        examples=["udp_multicast"],
    )
    channel: Text = Field(
        description="Name of the channel in python-can.", examples=["239.255.99.2"]
    )
    bitrate: (
        Annotated[
            int, Field(ge=10_000, le=1_000_000), Expected("a whole number from 10000 to 1000000")
        ]
        | None
    ) = Field(
        default=None,
        description="Bit rate, bit/s; limits the bus load also on interfaces without a bit rate."
        " Default: `1000000`.",
        examples=[500000],
    )
    largest_load: (
        Annotated[float, Field(gt=0.0, le=1.0), Expected("a number above 0, at most 1")] | None
    ) = Field(
        default=None,
        description="Largest fraction of the bit rate that is used in the worst case. Default: "
        "`0.8`.",
        examples=[0.7],
    )
    options: Annotated[dict[str, Any], Expected("a table")] | None = Field(
        default=None,
        description="Further arguments of `can.Bus`. Default: none.",
        examples=[{"port": 43113}],
    )


class LoopTable(Table):
    """Rate, priority and timing of the loop."""

    cures: ClassVar[Mapping[str, str]] = {"period": "Give its inverse, `rate`, in Hz."}

    rate: Positive | None = Field(
        default=None, description="Rate of the cycles, Hz. Default: `250.0`.", examples=[500.0]
    )
    priority: Annotated[int, Field(ge=0, le=99), Expected("a whole number from 0 to 99")] | None = (
        Field(
            None,
            description="Requested SCHED_FIFO priority, 1 to 99; 0: none. Default: `50`.",
            examples=[80],
        )
    )
    lock_memory: Truth | None = Field(
        default=None,
        description="Whether locked memory, which is never swapped out, is requested. Default: "
        "`true`.",
        examples=[False],
    )
    spin: NotNegative | None = Field(
        default=None,
        description="Last part of each wait, s, in which the loop polls the clock. Default: "
        "`0.0002`.",
        examples=[0.0001],
    )
    receive_window: Seconds | None = Field(
        default=None,
        description="Receive window, s: time after the start of a cycle for which the loop waits"
        " for reports. Default: `0.0015`.",
        examples=[0.001],
    )


class PoliciesTable(Table):
    """Responses of the loop to late cycles and missing reports, and stops."""

    on_late: PolicyName | None = Field(
        default=None,
        description="Response to a late cycle, which starts more than half a period late or "
        'after skipped cycles: `"hold"` the last torque for `max_consecutive_faults`'
        ' cycles, then stop; `"damp"` the joints for `max_consecutive_faults` '
        'cycles, then stop; `"stop"` at once. The count ends with a cycle that '
        'starts within a quarter of the period. Default: `"hold"`.',
        examples=["damp"],
    )
    on_missing: PolicyName | None = Field(
        default=None,
        description="Response to a cycle without a valid report of some axis: the same choices. "
        'Default: `"hold"`.',
        examples=["stop"],
    )
    max_consecutive_faults: Natural | None = Field(
        default=None,
        description="Largest number of consecutive faulty cycles; at most 0.2 s in total. "
        "Default: `5`.",
        examples=[3],
    )
    stop_category: (
        Annotated[
            int,
            one_of(1, 2),
            Field(json_schema_extra={"enum": [1, 2]}),
            Expected("1 or 2 (category 0, removing power at once, must be wired)"),
        ]
        | None
    ) = Field(
        default=None,
        description="Category of IEC 60204-1: `1`, brake, then remove power; `2`, brake, then "
        "hold under power. Category 0, the emergency stop, must be wired. Default: "
        "`1`.",
        examples=[2],
    )
    stop_time: StopTime | None = Field(
        default=None, description="Longest time for braking, s. Default: `0.5`.", examples=[1.0]
    )
    end: Annotated[Literal["stop", "hold"], Expected('"stop" or "hold"')] | None = Field(
        default=None,
        description="At the end of the task: `stop`, as after any other reason, or `hold` the "
        "joints under power in place, until the operator ends the run (for one "
        'second if no person is the operator). Default: `"stop"`.',
        examples=["hold"],
    )
    startup_cycles: Cycles | None = Field(
        default=None,
        description="Number of zero-torque cycles after arming. Default: `10`.",
        examples=[25],
    )
    shutdown_cycles: Cycles | None = Field(
        default=None,
        description="Number of zero-torque cycles before disconnecting. Default: `10`.",
        examples=[25],
    )
    start_error: Deviation | None = Field(
        default=None,
        description="Largest tracking error, per output coordinate, at which a run may start, m "
        "or rad. Default: `0.5`.",
        examples=[0.8],
    )
    largest_error: Deviation | None = Field(
        default=None,
        description="Tracking error, per output coordinate, above which a run stops, m or rad. "
        "Default: twice `start_error`.",
        examples=[0.3],
    )


class OperatorTable(Table):
    """The channel of the operator's stop button and enabling device."""

    host: Text | None = Field(
        default=None,
        description='Address at which heartbeats arrive. Default: `"127.0.0.1"`.',
        examples=["0.0.0.0"],
    )
    port: Port | None = Field(
        default=None, description="Number of the UDP port. Default: `47110`.", examples=[47120]
    )
    timeout: Seconds | None = Field(
        default=None,
        description="Time without a heartbeat after which the rig stops, s; more than two "
        "periods, at most 2 s. Default: `0.3`.",
        examples=[0.2],
    )
    required: Truth | None = Field(
        default=None,
        description="Whether arming needs heartbeats; `false` is rejected in the mode `drive`. "
        "Default: `true`.",
        examples=[False],
    )


class PoseTable(Table):
    """An external source of the base's pose."""

    kind: Annotated[Literal["udp", "zmq"], Expected('"udp" or "zmq"')] | None = Field(
        default=None,
        description='Protocol by which poses arrive. Default: `"udp"`.',
        examples=["zmq"],
    )
    host: Text | None = Field(
        default=None,
        description='Address at which poses arrive. Default: `"127.0.0.1"`.',
        examples=["0.0.0.0"],
    )
    port: Port | None = Field(
        default=None,
        description="Port number at which poses arrive. Default: `47111`.",
        examples=[47121],
    )
    gives: (
        Annotated[
            Literal["pose", "position", "attitude"], Expected('"pose", "position" or "attitude"')
        ]
        | None
    ) = Field(
        default=None,
        description='Measured quantity: `"pose"`, `"position"` or `"attitude"`. Default: `"pose"`.',
        examples=["attitude"],
    )
    timeout: Seconds | None = Field(
        default=None,
        description="Age above which a pose is not used, s. Default: `0.2`.",
        examples=[0.1],
    )
    required: Truth | None = Field(
        default=None,
        description="Whether the loss of poses stops the rig; otherwise the estimate of the base"
        " uses the joints alone. Default: `false`.",
        examples=[True],
    )
    largest_jump: Deviation | None = Field(
        default=None,
        description="Distance from the estimate above which a pose is rejected, m or rad. "
        "Default: `0.3`.",
        examples=[0.1],
    )
    largest_drift: Share | None = Field(
        default=None,
        description="Tolerated drift of the odometry of a robot on wheels, as a fraction of its "
        "path: a source that moves the base further away from the odometry, beyond "
        "`largest_jump`, is rejected. Default: `0.1`.",
        examples=[0.2],
    )


class EstimatorTable(Table):
    """State estimation."""

    bandwidth: Positive | None = Field(
        default=None,
        description="Bandwidth of the filtered differentiation of joint positions, Hz; below "
        "half the rate. Default: `25.0`.",
        examples=[40.0],
    )
    latency: Delay | None = Field(
        default=None,
        description="Known delay from sampling a position to its arrival, s; at most 0.1. "
        "Default: `0.001`.",
        examples=[0.0005],
    )
    pose_gain: NotNegative | None = Field(
        default=None,
        description="Rate at which the estimate converges to the external pose, 1/s. Default: "
        "`5.0`.",
        examples=[2.0],
    )


class RecorderTable(Table):
    """Recording of the cycles."""

    directory: FileName | None = Field(
        default=None,
        description="Folder of the recordings, with one folder for each run; relative to the "
        'working directory of the command. Default: `"rig-records"`.',
        examples=["/data/runs"],
    )
    seconds: Seconds | None = Field(
        default=None,
        description="Capacity of the memory that bridges a slow disk, s. Default: `30.0`.",
        examples=[60.0],
    )


class EmulatorTable(Table):
    """Imperfections of an emulated rig."""

    latency: Delay | None = Field(
        default=None, description="Delay of every frame, s. Default: `0.001`.", examples=[0.0005]
    )
    jitter: Delay | None = Field(
        default=None,
        description="Largest random addition to the latency, s: one for the frames that the host"
        " sends at one instant, one for each frame of a drive; frames of a sender "
        "keep their order. Default: `0.0`.",
        examples=[0.0005],
    )
    loss: Share | None = Field(
        default=None, description="Fraction of lost frames. Default: `0.0`.", examples=[0.01]
    )
    dt: Step | None = Field(
        default=None,
        description="Time step of the plant, s; not above the period of the loop. Default: "
        "`0.001`.",
        examples=[0.0005],
    )
    seed: Natural | None = Field(
        default=None, description="Seed of the random numbers. Default: `0`.", examples=[7]
    )
    pose_rate: Rate | None = Field(
        default=None,
        description="Rate of the emulated motion capture, Hz; 0: none; it needs `[pose]`. "
        "Default: `0.0`.",
        examples=[100.0],
    )
    pose_noise: NotNegative | None = Field(
        default=None,
        description="Standard deviation of emulated poses, m or rad. Default: `0.0`.",
        examples=[0.001],
    )
    pose_latency: Delay | None = Field(
        default=None,
        description="Time from the sample of a pose to its transmission, s. Default: `0.0`.",
        examples=[0.005],
    )
    pose_loss: Share | None = Field(
        default=None, description="Fraction of lost poses. Default: `0.0`.", examples=[0.02]
    )
    viscous: ByAxis | None = Field(
        default=None,
        description="Viscous friction by axis, N m s/rad; friction too stiff for `dt` is "
        "rejected. Default: none.",
        examples=[{"turret": 0.1}],
    )
    friction: ByAxis | None = Field(
        default=None,
        description="Coulomb friction by axis, N m. Default: none.",
        examples=[{"turret": 0.2}],
    )
    faults: Annotated[
        Any,
        AfterValidator(tables),
        Field(json_schema_extra=list_of({"type": "object"})),
        Expected("a list of tables"),
    ] = Field(
        default=None,
        description="Tables `[[emulator.faults]]` of injected faults: `kind`, `axis`, `at` and "
        "`lasting` in s, and the other fields of `hil.emulator.Fault`. Default: "
        "none.",
        examples=[[{"kind": "drop", "axis": "turret", "at": 5.0, "lasting": 0.1}]],
    )
    control_port: (
        Annotated[int, Field(ge=0, le=65535), Expected("a port from 1 to 65535, or 0 for none")]
        | None
    ) = Field(
        default=None,
        description="Number of the UDP port of this machine that receives commands for faults; 0: "
        "none. Default: `0`.",
        examples=[47140],
    )


class RigTable(Table):
    """A whole rig file."""

    cures: ClassVar[Mapping[str, str]] = {
        "robot": "The task names the robot; name the task file in `task`.",
        "axis": "Write a table [[axes]] for each axis.",
        "drive_module": "Did you mean `drive_modules`?",
        "drives": "Write a table [[axes]] for each drive.",
    }

    name: Text = Field(description="Name of the rig.", examples=["rover"])
    task: FileName = Field(
        description="Task file, relative to this file; it names the robot, the outputs, gains "
        "and reference.",
        examples=["task.toml"],
    )
    bus: BusTable = Field(description="Interface of the drives in python-can.")
    drive_modules: Annotated[list[str], Expected("a list of names of Python files")] | None = Field(
        default=None,
        description="Python files, relative to this file, that register custom kinds of drives; "
        "every program that reads the rig file runs them. Default: none.",
        examples=[["micro_drive.py"]],
    )
    axes: Annotated[
        list[AxisTable],
        # The largest number of nodes on a bus.
        Field(min_length=1, max_length=126),
        Expected("at least one table [[axes]], at most 126"),
    ] = Field(description="One table for each actuated joint of the robot, in any order.")
    loop: LoopTable | None = Field(
        default=None, description="Rate, priority and timing. Default: its defaults."
    )
    policies: PoliciesTable | None = Field(
        default=None, description="Responses to faults, and stops. Default: its defaults."
    )
    operator: OperatorTable | None = Field(
        default=None, description="Heartbeats of a person. Default: its defaults."
    )
    estimator: EstimatorTable | None = Field(
        default=None, description="State estimation. Default: its defaults."
    )
    recorder: RecorderTable | None = Field(
        default=None, description="Recording of the cycles. Default: its defaults."
    )
    emulator: EmulatorTable | None = Field(
        default=None, description="Imperfections of an emulated rig. Default: its defaults."
    )
    pose: PoseTable | None = Field(
        default=None, description="External source of the base's pose. Default: none."
    )
    certificate: FileName | None = Field(
        default=None,
        description="`operating.json` of `concur certify`, relative to this file; its torque "
        "bounds are shown beside the limits before driving. Other files are "
        "rejected. Default: none.",
        examples=["servo.certificate.json"],
    )
    proof: FileName | None = Field(
        default=None,
        description="`proof.json` of `concur prove` for the task, relative to this file; it is "
        "shown before driving, and a rig that it is not about is not armed. Other "
        "files are rejected. Default: none.",
        examples=["proof.json"],
    )
