"""A rig as values: axes, bus, loop, watchdogs, policies, and the task it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hil._renamed import renamed_fields
from hil.errors import ArmError

if TYPE_CHECKING:
    from concur.formats import Task

RENAMED = {
    "late": "on_late",
    "lost": "on_missing",
    "patience": "max_consecutive_faults",
    "prelude": "startup_cycles",
    "postlude": "shutdown_cycles",
}
"""Old names of the fields of `Policies`, in files too."""


class Policy(Enum):
    """What is done when a cycle or a report fails; values are sentences."""

    HOLD = "keep the last torque for a few cycles, then stop"
    DAMP = "brake with joint damping for a few cycles, then stop"
    STOP = "stop at once"


@dataclass(frozen=True)
class Axis:
    """One motor with its drive; all torques and speeds are those of the joint.

    Parameters
    ----------
    name : str
        Controlled freedom of the robot that it moves (a name of `servo.velocity_names`).
    drive : str
        Kind of drive: "cia402", "mit", or a registered one.
    node : int
        Node number on the bus (CANopen), or identifier of the drive (MIT).
    torque_limit : float
        Largest torque at the joint, N m (N).
    torque_rate_limit : float
        Largest change of it, N m / s (N / s).
    speed_limit : float
        Largest joint speed, rad/s (m/s).
    gear : float
        Motor turns per joint turn (motor radians per metre on a linear axis), above zero. What
        counts is the shaft that the drive reports: that of the gearbox for a drive with its own.
    direction : int
        1 or -1: -1 if the joint moves against the motor.
    rated_torque : float
        Rated torque of the motor, N m (CiA 402, object 0x6076); 0 for other kinds.
    torque_unit : {"rated", "maximum", "count"}
        Whether the drive's per mille are of rated torque (0x6076) or of maximum torque (0x6072),
        which is set to the torque limit before arming; "count": it takes counts of its own.
    torque_constant : float
        N m per A at the motor; 0 if not needed.
    model : str
        Model of an MIT drive, which fixes its ranges; "" for other kinds.
    ranges : mapping of str to (float, float)
        Ranges of an MIT drive that is not a known model: position, velocity, torque, kp, kd.
    counts : int
        Encoder counts per motor turn (CiA 402); 0 for kinds that report radians.
    offset : float
        Joint position at encoder zero, rad (m).
    position_limits : (float, float)
        Range of the joint, rad (m); infinite for wheels.
    power_limit : float
        Largest mechanical power, W; infinite if not given.
    damping : float
        Joint damping of a braking stop, N m s/rad (N s/m); from a file that does not give it
        torque_limit / speed_limit, which brakes a joint at its largest speed with its largest
        torque.
    stiffness : float
        Joint stiffness of a holding stop, N m/rad (N/m); from a file that does not give it
        5 / s times the damping.
    watchdog : float
        Time without a command after which the drive itself removes torque, s.
    watchdog_confirmed : bool
        Whether a person has seen that it does: for drives that cannot tell.
    torque_count : float
        Torque of the motor that one count (unit "count") means, N m; 0 for other units.
    rated_torque_unit : float
        What one of 0x6076 means, N m; by the standard 1e-3.
    modulo : int
        Counts after which the reported position starts again (CiA 402); 0: it counts on.
    """

    name: str
    drive: str
    node: int
    torque_limit: float
    torque_rate_limit: float
    speed_limit: float
    gear: float = 1.0
    direction: int = 1
    rated_torque: float = 0.0
    torque_unit: Literal["rated", "maximum", "count"] = "rated"
    torque_constant: float = 0.0
    model: str = ""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    counts: int = 0
    offset: float = 0.0
    position_limits: tuple[float, float] = (float("-inf"), float("inf"))
    power_limit: float = float("inf")
    damping: float = 0.0
    stiffness: float = 0.0
    watchdog: float = 0.1
    watchdog_confirmed: bool = False
    torque_count: float = 0.0
    rated_torque_unit: float = 1e-3
    modulo: int = 0


@dataclass(frozen=True)
class BusSettings:
    """Where the frames go.

    Parameters
    ----------
    interface, channel : str
        As python-can names them.
    bitrate : int
        Bit rate, bit/s; for interfaces without one it still bounds the load.
    largest_load : float
        Share of the bit rate that may be used in the worst case.
    options : mapping
        Further arguments of `can.Bus`.
    """

    interface: str
    channel: str
    bitrate: int = 1_000_000
    largest_load: float = 0.8
    options: Mapping[str, Any] = field(default_factory=dict)


@renamed_fields(window="receive_window")
@dataclass(frozen=True)
class LoopSettings:
    """How the loop runs.

    Parameters
    ----------
    rate : float
        Cycles per second.
    priority : int
        SCHED_FIFO priority asked for, 1 to 99; 0: none.
    lock_memory : bool
        Whether to ask for memory that is never swapped out.
    spin : float
        Last part of each wait spent in asking the clock, s.
    receive_window : float
        Time after the start of a cycle that reports are waited for, s.
    """

    rate: float = 250.0
    priority: int = 50
    lock_memory: bool = True
    spin: float = 200e-6
    receive_window: float = 1.5e-3

    @property
    def period(self) -> float:
        """Length of a cycle, s."""
        return 1.0 / self.rate


@renamed_fields(**RENAMED)
@dataclass(frozen=True)
class Policies:
    """What is done when something fails, and how long it is put up with.

    Parameters
    ----------
    on_late : Policy
        A cycle that starts more than half a period after its deadline, or after deadlines that
        were left out. They are counted until a cycle starts within a quarter of the period.
    on_missing : Policy
        A cycle without a valid report of some axis.
    max_consecutive_faults : int
        Failing cycles in a row that hold and damp last; then the rig stops.
    stop_category : {1, 2}
        IEC 60204-1: 1, brake and remove power; 2, brake and hold under power.
    stop_time : float
        Time that braking may take before power is removed, s.
    end : {"stop", "hold"}
        At the end of the task: a stop of its category, or hold the joints at once under power,
        until the operator ends it; for one second where no person is the operator.
    startup_cycles, shutdown_cycles : int
        Cycles without torque after arming and before leaving.
    start_error : float
        Largest tracking error, per output coordinate in its unit, at which a run may start.
    largest_error : float
        Tracking error, likewise, above which a run stops; from a file that does not give it,
        twice the `start_error`.
    """

    on_late: Policy = Policy.HOLD
    on_missing: Policy = Policy.HOLD
    max_consecutive_faults: int = 5
    stop_category: Literal[1, 2] = 1
    stop_time: float = 0.5
    end: Literal["stop", "hold"] = "stop"
    startup_cycles: int = 10
    shutdown_cycles: int = 10
    start_error: float = 0.5
    largest_error: float = 1.0


@dataclass(frozen=True)
class OperatorSettings:
    """The person at the stop button.

    Parameters
    ----------
    host, port : str, int
        Where the loop listens for datagrams of the operator's heartbeat.
    timeout : float
        Time without a heartbeat after which the rig stops, s.
    required : bool
        Whether the rig may be armed without a heartbeat; cannot be false in drive mode.
    """

    host: str = "127.0.0.1"
    port: int = 47110
    timeout: float = 0.3
    required: bool = True


@dataclass(frozen=True)
class PoseSettings:
    """An external source of the base's pose.

    Parameters
    ----------
    kind : {"udp", "zmq"}
        How it arrives.
    host, port : str, int
        Where it arrives.
    gives : {"pose", "position", "attitude"}
        What of the pose it measures.
    timeout : float
        Age above which it is not used, s.
    required : bool
        Whether its loss stops the rig; else the lift alone is used from then on.
    largest_jump : float
        Distance from the estimate above which a report is refused, m and rad.
    largest_drift : float
        Share of its way by which the odometry of a robot on wheels may be wrong. A source that has
        drawn the base further away from it than that and `largest_jump` is refused.
    """

    kind: Literal["udp", "zmq"] = "udp"
    host: str = "127.0.0.1"
    port: int = 47111
    gives: Literal["pose", "position", "attitude"] = "pose"
    timeout: float = 0.2
    required: bool = False
    largest_jump: float = 0.3
    largest_drift: float = 0.1


@dataclass(frozen=True)
class EstimatorSettings:
    """How states are made of reports.

    Parameters
    ----------
    bandwidth : float
        Of the filtered differentiation of joint positions, Hz.
    latency : float
        Known delay from sampling a position to its arrival, s.
    pose_gain : float
        Rate at which the estimate is drawn to the external pose, 1/s.
    """

    bandwidth: float = 25.0
    latency: float = 1e-3
    pose_gain: float = 5.0


@dataclass(frozen=True)
class RecorderSettings:
    """What becomes of each cycle.

    Parameters
    ----------
    directory : Path
        Folder that records are written to, one folder for each run.
    seconds : float
        Length of the ring that bridges a slow disk, s.
    """

    directory: Path = Path("rig-records")
    seconds: float = 30.0


@dataclass(frozen=True)
class EmulatorSettings:
    """How an emulated rig differs from a perfect one.

    Parameters
    ----------
    latency : float
        Delay of every frame, s.
    loss : float
        Share of frames that are lost.
    dt : float
        Time step of the plant, s.
    seed : int
        Of the random numbers.
    pose_rate : float
        Rate of the emulated motion capture, Hz; 0: none.
    pose_noise : float
        Its standard deviation, m and rad.
    pose_latency : float
        Time from a sample of it to its departure, s.
    pose_loss : float
        Share of its samples that are lost.
    viscous, friction : mapping of str to float
        Viscous (N m s/rad) and Coulomb friction (N m) by axis; zero where not named.
    faults : tuple of mapping
        Faults that happen by themselves, one table each: `kind`, `axis`, `at`, `lasting` and what
        else `hil.emulator.Fault` knows.
    control_port : int
        UDP port of this machine at which faults are commanded; 0: none.
    """

    latency: float = 1e-3
    loss: float = 0.0
    dt: float = 1e-3
    seed: int = 0
    pose_rate: float = 0.0
    pose_noise: float = 0.0
    pose_latency: float = 0.0
    pose_loss: float = 0.0
    viscous: Mapping[str, float] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[Mapping[str, Any], ...] = ()
    control_port: int = 0


@dataclass(frozen=True, eq=False)
class Rig:
    """A robot's motors on a bus, and the task they are to run; read by `load_rig`.

    Parameters
    ----------
    name : str
        Name of the rig.
    path : Path
        File it was read from.
    task : Task
        What is to be tracked, with which gains.
    axes : tuple of Axis
        One for each control, in the order of the robot's controls.
    bus : BusSettings
        Adapter and bit rate.
    loop : LoopSettings
        Rate, and what is asked of the operating system.
    policies : Policies
        What is done about failing cycles, and how the rig stops.
    operator : OperatorSettings
        Where the stop button's datagrams arrive.
    estimator : EstimatorSettings
        How positions become a state.
    recorder : RecorderSettings
        Where records go.
    emulator : EmulatorSettings
        How the emulated rig differs from a perfect one.
    pose : PoseSettings or None
        External pose source, if there is one.
    certificate : Path or None
        Certificate of the law whose bound on the torque is shown before driving.
    drive_modules : tuple of Path
        Python files that register kinds of drives of one's own.
    """

    name: str
    path: Path
    task: Task
    axes: tuple[Axis, ...]
    bus: BusSettings
    loop: LoopSettings = LoopSettings()
    policies: Policies = Policies()
    operator: OperatorSettings = OperatorSettings()
    estimator: EstimatorSettings = EstimatorSettings()
    recorder: RecorderSettings = RecorderSettings()
    emulator: EmulatorSettings = EmulatorSettings()
    pose: PoseSettings | None = None
    certificate: Path | None = None
    drive_modules: tuple[Path, ...] = ()

    def check_operator(self) -> None:
        """Refuse to drive without a person at the stop button.

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
                cure="Set it to true, and keep `concur-rig operator` or the dashboard open beside "
                "the rig. Without a person the modes mock, listen and shadow are left.",
            )
