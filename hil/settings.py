"""Settings of a rig: axes, bus, loop, watchdogs, policies, and the task.

The tables of a rig file are built from these classes: fields, bounds and defaults are those of
the constructors. `hil.rig._checks` checks conditions across tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Len, Lt

from hil._concur import Expected, InFiles, NotNegative, Positive, Text
from hil._transmission import Transmission, transmission_of
from hil.errors import ArmError

if TYPE_CHECKING:
    from hil._concur import Task

HOLDING = 5.0
"""Default ratio of stiffness to damping of a holding stop, 1/s."""

# Bounds of real machines: a value beyond them has another unit, or is a typing error.
Share = Annotated[float, Ge(0.0), Lt(1.0), Expected("a number from 0 to below 1")]
Natural = Annotated[
    int, Ge(0), Le(2**31 - 1), Expected("a whole number not below zero, below 2^31")
]
Cycles = Annotated[int, Gt(0), Le(10_000), Expected("a whole number above zero, to 10000")]
# A drive reports its position with 32 bits and a sign: more counts would not cover one turn.
Counts = Annotated[int, Gt(0), Le(2**30), Expected("a whole number above zero, to 2^30")]
Torque = Annotated[float, Ge(1e-6), Le(1e6), Expected("a number above zero, 1e-6 to 1e6")]
Used = Annotated[float, Gt(0.0), Le(1.0), Expected("a number above 0, at most 1")]
Place = Annotated[float, Ge(-1e6), Le(1e6), Expected("a number within 1e6, rad or m")]
Seconds = Annotated[float, Ge(1e-6), Le(1e3), Expected("a time from 1e-6 to 1e3 s")]
Delay = Annotated[float, Ge(0.0), Le(10.0), Expected("a time from 0 to 10 s")]
# A rig that still brakes after this time does not stop; a category 1 stop then removes the power.
StopTime = Annotated[float, Ge(1e-3), Le(10.0), Expected("a time from 1e-3 to 10 s")]
# In m or rad: larger tolerances would detect no fault.
Deviation = Annotated[float, Ge(1e-9), Le(10.0), Expected("a number from 1e-9 to 10, m or rad")]
# The plant's step: the computation of a shorter step takes longer than the step.
Step = Annotated[float, Ge(1e-5), Le(1.0), Expected("a time step from 1e-5 to 1 s")]
Rate = Annotated[float, Ge(0.0), Le(1e4), Expected("a rate from 0 to 1e4 Hz")]
Port = Annotated[int, Ge(1), Le(65535), Expected("a port from 1 to 65535")]
Endpoint = Annotated[int, Ge(1), Le(65535), Expected("a whole number from 1 to 65535")]
Pair = Annotated[tuple[Place, Place], Expected("a lower and an upper end")]
ByAxis = Annotated[Mapping[str, NotNegative], Expected("a table of numbers by axis")]
Faults = Annotated[tuple[Mapping[str, Any], ...], Len(0, 1000), Expected("a list of tables")]
_MOTORS = "The robot file has it {}in the table [[motors]] of the motor."
_CATEGORY = "1 or 2 (category 0, removing power at once, must be wired)"


class Policy(Enum):
    """Response of the loop to a late cycle or a missing report; values are sentences."""

    HOLD = "keep the last torque for a few cycles, then stop"
    DAMP = "brake with joint damping for a few cycles, then stop"
    STOP = "stop at once"


def _ranges(
    position: Pair, velocity: Pair, torque: Pair, kp: Pair, kd: Pair
) -> dict[str, tuple[float, float]]:
    """Ranges of an MIT drive: values of the smallest and the largest code.

    Parameters
    ----------
    position : pair of float
        Position, rad.
    velocity : pair of float
        Velocity, rad/s.
    torque : pair of float
        Torque, N m.
    kp : pair of float
        Stiffness, N m/rad.
    kd : pair of float
        Damping, N m s/rad.
    """
    ends = {"position": position, "velocity": velocity, "torque": torque}
    return ends | {"kp": kp, "kd": kd}


def _endpoints(
    firmware: Text, watchdog_timeout: Endpoint, enable_watchdog: Endpoint
) -> dict[str, Any]:
    """Endpoints of an ODrive, whose numbers depend on its firmware.

    Parameters
    ----------
    firmware : str
        Version of the firmware; the drive must have it.
    watchdog_timeout : int
        Number of `axis0.config.watchdog_timeout`.
    enable_watchdog : int
        Number of `axis0.config.enable_watchdog`.
    """
    numbers = {"watchdog_timeout": watchdog_timeout, "enable_watchdog": enable_watchdog}
    return {"firmware": firmware, **numbers}


@dataclass(frozen=True)
class AxisTable:
    """The drive of a motor; torques, speeds and positions are those of the motor.

    Parameters
    ----------
    name : str
        Motor of the robot, or an actuated joint, which is then its own motor. The robot file has
        its numbers: gear, torque, speed, encoder, heat, and the limits of the joints. Example:
        `"turret"`.
    drive : str
        `"cia402"` (CANopen, cyclic synchronous torque), `"mit"` (mini-cheetah protocol),
        `"moteus"` (CAN FD), `"odrive"` (CANSimple), or a kind registered by
        `hil.drives.register_drive` in a file of `drive_modules`. Example: `"cia402"`.
    node : int
        CANopen node number, or identifier of an MIT drive, 1 to 126, of a moteus drive, 1 to
        124, or of an axis of an ODrive, 1 to 62. Example: `3`.
    torque_rate_limit : float
        Largest rate of the motor's torque or force, N m/s or N/s. Example: `600.0`.
    bus : str, optional
        Name of the drive's bus; required if the rig has several. Default: the only bus. Example:
        `"arm"`.
    torque_share : float, optional
        Share of the motor's largest torque that the rig uses. Example: `0.3`.
    speed_share : float, optional
        Share of the motor's largest speed at which the rig limits it. Example: `0.5`.
    direction : {1, -1}, optional
        Sign: `-1` if the numbers of the drive have the opposite sign of those of the motor in the
        robot file. Example: `-1`.
    rated_torque : float, optional
        Rated torque of the motor (object 0x6076), N m; required for CiA 402 unless torques
        are in counts; compared with the value in the drive. Default: none. Example: `0.6`.
    torque_unit : {"rated", "maximum", "count"}, optional
        Reference of torques in per mille: the `"rated"` torque (0x6076) or the `"maximum"`
        torque (0x6072, set to the torque limit before arming); `"count"` for drives with
        torque in counts. Example: `"maximum"`.
    model : str, optional
        Model of an MIT drive, which gives its ranges. Default: none. Example: `"AK80-9"`.
    ranges : mapping, optional
        Ranges of an MIT drive, in place of `model`. Default: those of the model. Example:
        `{ position = [-12.5, 12.5], velocity = [-50.0, 50.0], torque = [-18.0, 18.0], kp =
        [0.0, 500.0], kd = [0.0, 5.0] }`.
    offset : float, optional
        Position of the motor where the drive reports zero, rad or m: the sum of the positions
        of its joints times their ratios. Example: `-1.6`.
    power_limit : float, optional
        Largest mechanical power, W. Default: none. Example: `60.0`.
    damping : float, optional
        Damping of a braking stop, N m s/rad or N s/m; the default brakes a motor at its largest
        speed with its largest torque. Default: their ratio. Example: `4.0`.
    stiffness : float, optional
        Stiffness of a holding stop, N m/rad or N/m. Default: 5/s times `damping`.
        Example: `20.0`.
    watchdog : float, optional
        Time without a command after which the drive removes torque, s: 0.02 to 0.2, more
        than two periods of the loop. Example: `0.05`.
    watchdog_confirmed : bool, optional
        `true` if a person has verified that the watchdog removes torque, for drives that
        cannot report it. A drive that reports that it is still enabled is rejected in any
        case. Example: `true`.
    watchdog_torque : float, optional
        Torque of the motor at which its watchdog is tested before arming, N m or N: at most
        a quarter of its limit; if it is not given, a twentieth. It is reduced where the motor
        would become faster than half of its limit. Default: none. Example: `0.2`.
    torque_count : float, optional
        Torque of the motor per count of 0x6071 and 0x6077, N m; only with `torque_unit =
        "count"`. Default: none. Example: `0.00024`.
    rated_torque_unit : float, optional
        Unit of 0x6076, N m: 1e-3 (mN m) by the standard; some drives differ (EPOS4: 1e-6).
        Example: `1e-06`.
    modulo : int, optional
        Counts after which the reported position (0x6064) wraps, on drives with a position
        range or a single-turn encoder; must exceed the range of the motor. Default: none.
        Example: `65536`.
    endpoints : mapping, optional
        Endpoints of an ODrive by which its watchdog is set, from `flat_endpoints.json` of its
        firmware. Default: none, the watchdog is set by USB. Example: `{ firmware = "0.6.10",
        watchdog_timeout = 301, enable_watchdog = 300 }`.
    """

    _cures: ClassVar[Mapping[str, str]] = {
        "node_id": "Did you mean `node`?",
        "id": "Did you mean `node`?",
        "joint": "Did you mean `name`?",
        "kind": "Did you mean `drive`?",
        **dict.fromkeys(("gear", "torque_constant"), _MOTORS.format("")),
        "counts": _MOTORS.format("as `encoder` "),
        "torque_limit": _MOTORS.format("as `torque` ") + " `torque_share` is the rig's share.",
        "speed_limit": _MOTORS.format("as `speed` ") + " `speed_share` is the rig's share.",
        "position_limits": "Give them in the robot file, as `limits` of the joints of the motor.",
    }

    name: Text
    drive: Text
    node: Annotated[int, Ge(1), Le(2047), Expected("a whole number from 1 to 2047")]
    torque_rate_limit: Positive
    bus: Text = ""
    torque_share: Used = 1.0
    speed_share: Used = 1.0
    direction: Literal[1, -1] = 1
    rated_torque: Torque = 0.0
    torque_unit: Literal["rated", "maximum", "count"] = "rated"
    model: Text = ""
    ranges: Annotated[Mapping[str, tuple[float, float]], InFiles(_ranges)] = field(
        default_factory=dict
    )
    offset: Place = 0.0
    power_limit: Positive = float("inf")
    damping: Positive = 0.0
    stiffness: Positive = 0.0
    watchdog: Seconds = 0.1
    watchdog_confirmed: bool = False
    watchdog_torque: Torque = 0.0
    torque_count: Torque = 0.0
    rated_torque_unit: Torque = 1e-3
    modulo: Counts = 0
    endpoints: Annotated[Mapping[str, Any], InFiles(_endpoints)] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Axis(AxisTable):
    """A motor with its drive: a table `[[axes]]`, and the motor's numbers from the robot.

    Parameters
    ----------
    name, drive : str
        As in `AxisTable`.
    node : int
        As in `AxisTable`.
    torque_rate_limit : float
        As in `AxisTable`.
    bus : str
        As in `AxisTable`.
    torque_share, speed_share : float
        As in `AxisTable`.
    direction : int
        As in `AxisTable`.
    rated_torque : float
        As in `AxisTable`.
    torque_unit, model : str
        As in `AxisTable`.
    ranges : mapping
        As in `AxisTable`.
    offset, power_limit, damping, stiffness, watchdog : float
        As in `AxisTable`.
    watchdog_confirmed : bool
        As in `AxisTable`.
    watchdog_torque, torque_count, rated_torque_unit : float
        As in `AxisTable`.
    modulo : int
        As in `AxisTable`.
    endpoints : mapping
        As in `AxisTable`.
    torque_limit : float
        Largest torque or force of the motor in the rig, N m or N.
    speed_limit : float
        Largest speed of the motor in the rig, rad/s or m/s.
    position_limits : pair of float
        Smallest and largest position of the motor within the limits of its joints, rad or m.
    counts : float
        Encoder counts per turn of the motor, or per 2 pi metres of a linear one; 0: no encoder.
    gear : float
        Turns of the shaft to which the drive's numbers refer, per turn of the motor: 1, or less
        for a drive that reports the output of its gearbox.
    continuous : float
        Torque that the motor bears for any time, N m or N.
    thermal_time : float
        Time constant of its heating, s.
    """

    torque_limit: float
    speed_limit: float
    position_limits: tuple[float, float] = (float("-inf"), float("inf"))
    counts: float = 0.0
    gear: float = 1.0
    continuous: float = float("inf")
    thermal_time: float = 1.0

    def __post_init__(self) -> None:
        damping = self.damping or self.torque_limit / self.speed_limit
        object.__setattr__(self, "damping", damping)
        object.__setattr__(self, "stiffness", self.stiffness or HOLDING * damping)

    @property
    def test_torque(self) -> float:
        """Torque at which the watchdog is tested, N m (N)."""
        return self.watchdog_torque or 0.05 * self.torque_limit


@dataclass(frozen=True)
class BusSettings:
    """A bus of drives: a table `[bus]`, or one of several tables `[[bus]]`.

    Parameters
    ----------
    interface : str
        Name of the interface in python-can: `"socketcan"`, `"pcan"`, ..., or without
        hardware `"udp_multicast"` between processes, or `"datagram"` between two processes in
        real time, on which the loop in C runs too; or `"ethercat"`, for CiA 402 drives with CoE,
        whose `node` is their position on the line. Example: `"udp_multicast"`.
    channel : str
        Name of the channel in python-can, or of the network adapter of EtherCAT drives. Example:
        `"239.255.99.2"`.
    bitrate : int, optional
        Bit rate, bit/s; limits the bus load also on interfaces without a bit rate. Example:
        `500000`.
    data_bitrate : int, optional
        Bit rate of the data of CAN FD frames, bit/s: not below `bitrate`; required for moteus
        drives. Default: none, all frames are classic. Example: `5000000`.
    largest_load : float, optional
        Largest fraction of the time of the bus that is used in the worst case. Example: `0.7`.
    options : mapping, optional
        Further arguments of `can.Bus`. Default: none. Example: `{ port = 43113 }`.
    name : str, optional
        Name, for the field `bus` of the axes; required if there are several buses. Default: none.
        Example: `"arm"`.
    """

    _cures: ClassVar[Mapping[str, str]] = {
        "bit_rate": "Did you mean `bitrate`?",
        "fd_bitrate": "Did you mean `data_bitrate`?",
    }

    interface: Text
    channel: Text
    bitrate: Annotated[
        int, Ge(10_000), Le(1_000_000), Expected("a whole number from 10000 to 1000000")
    ] = 1_000_000
    data_bitrate: Annotated[
        int, Ge(0), Le(8_000_000), Expected("a whole number, to 8000000, or 0 for none")
    ] = 0
    largest_load: Annotated[float, Gt(0.0), Le(1.0), Expected("a number above 0, at most 1")] = 0.8
    options: Annotated[Mapping[str, Any], Expected("a table")] = field(default_factory=dict)
    name: Text = ""

    def __str__(self) -> str:
        name = f"`{self.name}`, interface " if self.name else ""
        return f"bus {name}`{self.interface}`, channel `{self.channel}`"


@dataclass(frozen=True)
class LoopSettings:
    """Rate, priority and timing of the loop.

    Parameters
    ----------
    rate : float, optional
        Rate of the cycles, Hz. Example: `500.0`.
    priority : int, optional
        Requested SCHED_FIFO priority, 1 to 99; 0: none. Example: `80`.
    lock_memory : bool, optional
        Whether locked memory, which is never swapped out, is requested. Example: `false`.
    spin : float, optional
        Last part of each wait, s, in which the loop polls the clock. Example: `0.0001`.
    receive_window : float, optional
        Receive window, s: time after the start of a cycle for which the loop waits for
        reports. Example: `0.001`.
    compiled : bool, optional
        Whether the loop runs in C where it can. Default: on `datagram` alone, since the loop in C
        has not run on an adapter for CAN yet. Example: `true`.
    """

    _cures: ClassVar[Mapping[str, str]] = {
        "period": "Give its inverse, `rate`, in Hz.",
    }

    rate: Positive = 250.0
    priority: Annotated[int, Ge(0), Le(99), Expected("a whole number from 0 to 99")] = 50
    lock_memory: bool = True
    spin: NotNegative = 200e-6
    receive_window: Seconds = 1.5e-3
    compiled: bool | None = None

    @property
    def period(self) -> float:
        """Duration of a cycle, s."""
        return 1.0 / self.rate


@dataclass(frozen=True)
class Policies:
    """Responses of the loop to late cycles and missing reports, and stops.

    Parameters
    ----------
    on_late : Policy, optional
        Response to a late cycle, which starts more than half a period late or after skipped
        cycles: `"hold"` the last torque for `max_consecutive_faults` cycles, then stop;
        `"damp"` the joints for `max_consecutive_faults` cycles, then stop; `"stop"` at
        once. The count ends with a cycle that starts within a quarter of the period.
        Default: `"hold"`. Example: `"damp"`.
    on_missing : Policy, optional
        Response to a cycle without a valid report of some axis: the same choices. Default:
        `"hold"`. Example: `"stop"`.
    max_consecutive_faults : int, optional
        Largest number of consecutive faulty cycles; at most 0.2 s in total. Example: `3`.
    stop_category : {1, 2}, optional
        Category of IEC 60204-1: `1`, brake, then remove power; `2`, brake, then hold under
        power. Category 0, the emergency stop, must be wired. Example: `2`.
    stop_time : float, optional
        Longest time for braking, s. Example: `1.0`.
    end : {"stop", "hold"}, optional
        At the end of the task: `stop`, as after any other reason, or `hold` the joints
        under power in place, until the operator ends the run (for one second if no person
        is the operator). Example: `"hold"`.
    startup_cycles : int, optional
        Number of zero-torque cycles after arming. Example: `25`.
    shutdown_cycles : int, optional
        Number of zero-torque cycles before disconnecting. Example: `25`.
    start_error : float, optional
        Largest tracking error, per output coordinate, at which a run may start, m or rad.
        Example: `0.8`.
    largest_error : float, optional
        Tracking error, per output coordinate, above which a run stops, m or rad. Default:
        twice `start_error`. Example: `0.3`.
    """

    on_late: Policy = Policy.HOLD
    on_missing: Policy = Policy.HOLD
    max_consecutive_faults: Natural = 5
    stop_category: Annotated[Literal[1, 2], Expected(_CATEGORY)] = 1
    stop_time: StopTime = 0.5
    end: Literal["stop", "hold"] = "stop"
    startup_cycles: Cycles = 10
    shutdown_cycles: Cycles = 10
    start_error: Deviation = 0.5
    largest_error: Deviation = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest_error", self.largest_error or 2.0 * self.start_error)


@dataclass(frozen=True)
class OperatorSettings:
    """The channel of the operator's stop button and enabling device.

    Parameters
    ----------
    host : str, optional
        Address at which heartbeats arrive. Example: `"0.0.0.0"`.
    port : int, optional
        Number of the UDP port. Example: `47120`.
    timeout : float, optional
        Time without a heartbeat after which the rig stops, s; more than two periods, at
        most 2 s. Example: `0.2`.
    required : bool, optional
        Whether arming needs heartbeats; `false` is rejected in the mode `drive`. Example:
        `false`.
    """

    host: Text = "127.0.0.1"
    port: Port = 47110
    timeout: Seconds = 0.3
    required: bool = True


@dataclass(frozen=True)
class PoseSettings:
    """An external source of the base's pose.

    Parameters
    ----------
    kind : {"udp", "zmq"}, optional
        Protocol by which poses arrive. Example: `"zmq"`.
    host : str, optional
        Address at which poses arrive. Example: `"0.0.0.0"`.
    port : int, optional
        Port number at which poses arrive. Example: `47121`.
    gives : {"pose", "position", "attitude"}, optional
        Measured quantity: `"pose"`, `"position"` or `"attitude"`. Example: `"attitude"`.
    timeout : float, optional
        Age above which a pose is not used, s. Example: `0.1`.
    required : bool, optional
        Whether the loss of poses stops the rig; otherwise the estimate of the base uses the
        joints alone. Example: `true`.
    largest_jump : float, optional
        Distance from the estimate above which a pose is rejected, m or rad. Example: `0.1`.
    largest_drift : float, optional
        Tolerated drift of the odometry of a robot on wheels, as a fraction of its path: a
        source that moves the base further away from the odometry, beyond `largest_jump`, is
        rejected. Example: `0.2`.
    """

    kind: Literal["udp", "zmq"] = "udp"
    host: Text = "127.0.0.1"
    port: Port = 47111
    gives: Literal["pose", "position", "attitude"] = "pose"
    timeout: Seconds = 0.2
    required: bool = False
    largest_jump: Deviation = 0.3
    largest_drift: Share = 0.1


@dataclass(frozen=True)
class EstimatorSettings:
    """State estimation.

    Parameters
    ----------
    bandwidth : float, optional
        Bandwidth of the filtered differentiation of joint positions, Hz; below half the
        rate. Example: `40.0`.
    latency : float, optional
        Known delay from sampling a position to its arrival, s; at most 0.1. Example:
        `0.0005`.
    model_error : float, optional
        Error of the model's torques, as a fraction of them, that counts as no fault. Example:
        `0.2`.
    pose_gain : float, optional
        Rate at which the estimate converges to the external pose, 1/s. Example: `2.0`.
    """

    bandwidth: Positive = 25.0
    latency: Delay = 1e-3
    model_error: Share = 0.1
    pose_gain: NotNegative = 5.0


@dataclass(frozen=True)
class RecorderSettings:
    """Recording of the cycles.

    Parameters
    ----------
    directory : path, optional
        Folder of the recordings, with one folder for each run; relative to the working
        directory of the command. Default: `"rig-records"`. Example: `"/data/runs"`.
    seconds : float, optional
        Capacity of the memory that bridges a slow disk, s. Example: `60.0`.
    """

    directory: Path = Path("rig-records")
    seconds: Seconds = 30.0


@dataclass(frozen=True)
class EmulatorSettings:
    """Imperfections of an emulated rig.

    Parameters
    ----------
    latency : float, optional
        Delay of every frame, s. Default: a quarter of the receive window. Example: `0.0005`.
    jitter : float, optional
        Largest random addition to the latency, s: one for the frames that the host sends at
        one instant, one for each frame of a drive; frames of a sender keep their order.
        Example: `0.0005`.
    loss : float, optional
        Fraction of lost frames. Example: `0.01`.
    dt : float, optional
        Time step of the plant, s; not above the period of the loop. Example: `0.0005`.
    seed : int, optional
        Seed of the random numbers. Example: `7`.
    pose_rate : float, optional
        Rate of the emulated motion capture, Hz; 0: none; it needs `[pose]`. Example:
        `100.0`.
    pose_noise : float, optional
        Standard deviation of emulated poses, m or rad. Example: `0.001`.
    pose_latency : float, optional
        Time from the sample of a pose to its transmission, s. Example: `0.005`.
    pose_loss : float, optional
        Fraction of lost poses. Example: `0.02`.
    viscous : mapping of str to float, optional
        Viscous friction by axis, at motors without friction in the robot file, N m s/rad;
        friction too stiff for `dt` is rejected. Default: none. Example: `{ turret = 0.1 }`.
    friction : mapping of str to float, optional
        Coulomb friction by axis, as above, N m. Default: none. Example: `{ turret = 0.2 }`.
    faults : sequence of mapping, optional
        Tables `[[emulator.faults]]` of injected faults: `kind`, `axis`, `at` and `lasting`
        in s, and the other fields of `hil.emulator.Fault`. Default: none. Example: `[{ kind
        = "drop", axis = "turret", at = 5.0, lasting = 0.1 }]`.
    control_port : int, optional
        Number of the UDP port of this machine that receives commands for faults; 0: none.
        Example: `47140`.
    """

    latency: Delay | None = None
    jitter: Delay = 0.0
    loss: Share = 0.0
    dt: Step = 1e-3
    seed: Natural = 0
    pose_rate: Rate = 0.0
    pose_noise: NotNegative = 0.0
    pose_latency: Delay = 0.0
    pose_loss: Share = 0.0
    viscous: ByAxis = field(default_factory=dict)
    friction: ByAxis = field(default_factory=dict)
    faults: Faults = ()
    control_port: Annotated[
        int, Ge(0), Le(65535), Expected("a port from 1 to 65535, or 0 for none")
    ] = 0


@dataclass(frozen=True, eq=False)
class Rig:
    """A robot's motors on their buses, and their task; read by `load_rig`.

    Parameters
    ----------
    name : str
        Name of the rig.
    path : Path
        The rig file.
    task : Task
        Robot, references and gains.
    axes : tuple of Axis
        One axis for each motor, in the order of the robot's controls.
    buses : tuple of BusSettings
        Adapter and bit rate of each bus, in the order of the rig file.
    loop : LoopSettings
        Rate, and requests to the operating system.
    policies : Policies
        Responses to late cycles and missing reports, and stops.
    operator : OperatorSettings
        Channel of the operator.
    estimator : EstimatorSettings
        State estimation.
    recorder : RecorderSettings
        Recording.
    emulator : EmulatorSettings
        Imperfections of the emulated rig.
    pose : PoseSettings or None
        External pose source, if there is one.
    certificate : Path or None
        Certificate of the law, whose torque bound is shown before driving.
    proof : Path or None
        Proof of the task, which is shown before driving. A rig that it is not about is not armed.
    drive_modules : tuple of Path
        Python files that register further kinds of drives.

    Examples
    --------
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> [axis.name for axis in rig.axes]
    ['left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm']
    """

    name: str
    path: Path
    task: Task
    axes: tuple[Axis, ...]
    buses: tuple[BusSettings, ...]
    loop: LoopSettings = LoopSettings()
    policies: Policies = Policies()
    operator: OperatorSettings = OperatorSettings()
    estimator: EstimatorSettings = EstimatorSettings()
    recorder: RecorderSettings = RecorderSettings()
    emulator: EmulatorSettings = EmulatorSettings()
    pose: PoseSettings | None = None
    certificate: Path | None = None
    proof: Path | None = None
    drive_modules: tuple[Path, ...] = ()

    @cached_property
    def bus_of(self) -> tuple[int, ...]:
        """Index of the bus of each axis."""
        names = [bus.name for bus in self.buses]
        return tuple(names.index(axis.bus) if axis.bus else 0 for axis in self.axes)

    def on(self, bus: int) -> Rig:
        """The rig with one of its buses, and the axes on it alone.

        Parameters
        ----------
        bus : int
            Index of the bus.

        Returns
        -------
        Rig
            A copy.
        """
        axes = [axis for axis, own in zip(self.axes, self.bus_of, strict=True) if own == bus]
        return replace(self, axes=tuple(axes), buses=(self.buses[bus],))

    @cached_property
    def transmission(self) -> Transmission:
        """Ratios between the motors and their joints."""
        return transmission_of(self.task.robot, str(self.path))

    def check_operator(self) -> None:
        """Reject mode drive without a person at the stop button.

        Raises
        ------
        ArmError
            If the operator's heartbeat is not required.
        """
        if not self.operator.required:
            raise ArmError(
                f"{self.path}, [operator], field `required`",
                expected="true for driving",
                came="false",
                cure="Set it to true, and keep the terminal view or a pendant at hand. Without a "
                "person use the modes mock, listen and shadow.",
            )
