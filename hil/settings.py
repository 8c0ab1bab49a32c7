"""Settings of a rig: axes, bus, loop, watchdogs, policies, and the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hil.errors import ArmError

if TYPE_CHECKING:
    from hil._concur import Task


class Policy(Enum):
    """Response of the loop to a late cycle or a missing report; values are sentences."""

    HOLD = "keep the last torque for a few cycles, then stop"
    DAMP = "brake with joint damping for a few cycles, then stop"
    STOP = "stop at once"


@dataclass(frozen=True)
class Axis:
    """One motor with its drive; all torques and speeds are those of the joint.

    Parameters
    ----------
    name : str
        Actuated degree of freedom of the robot (a name in `servo.velocity_names`).
    drive : str
        Kind of drive: "cia402", "mit", or a registered kind.
    node : int
        Node number on the bus (CANopen), or identifier of the drive (MIT).
    torque_limit : float
        Largest torque at the joint, N m (N).
    torque_rate_limit : float
        Largest rate of change of the torque, N m/s (N/s).
    speed_limit : float
        Largest joint speed, rad/s (m/s).
    gear : float
        Motor turns per joint turn (motor radians per metre on a linear axis), above zero. It refers
        to the shaft whose position the drive reports: the output of an integrated gearbox.
    direction : int
        1 or -1: -1 if the joint moves against the motor.
    rated_torque : float
        Rated torque of the motor, N m (CiA 402, object 0x6076); 0 for other kinds.
    torque_unit : {"rated", "maximum", "count"}
        Unit of the drive's torque. "rated": per mille of rated torque (0x6076). "maximum": per
        mille of maximum torque (0x6072), which is set to the torque limit before arming. "count":
        counts of the drive.
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
        Largest mechanical power, W; default: infinite.
    damping : float
        Joint damping of a braking stop, N m s/rad (N s/m). Default in a file: torque_limit /
        speed_limit, which brakes a joint at its largest speed with its largest torque.
    stiffness : float
        Joint stiffness of a holding stop, N m/rad (N/m). Default in a file: 5 / s times the
        damping.
    watchdog : float
        Time without a command after which the drive itself removes torque, s.
    watchdog_confirmed : bool
        Whether a person has verified the watchdog; for drives that cannot report its action.
    watchdog_torque : float
        Torque at which the watchdog is tested before arming, N m (N). Default: a twentieth of the
        torque limit.
    torque_count : float
        Torque of the motor for one count (unit "count"), N m; 0 for other units.
    rated_torque_unit : float
        Unit of 0x6076, N m; in the standard 1e-3.
    modulo : int
        Number of counts after which the reported position wraps (CiA 402); 0: it does not wrap.
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
    watchdog_torque: float = 0.0
    torque_count: float = 0.0
    rated_torque_unit: float = 1e-3
    modulo: int = 0

    @property
    def test_torque(self) -> float:
        """Torque at which the watchdog is tested, N m (N)."""
        return self.watchdog_torque or 0.05 * self.torque_limit


@dataclass(frozen=True)
class BusSettings:
    """The bus of the drives.

    Parameters
    ----------
    interface, channel : str
        Names of python-can.
    bitrate : int
        Bit rate, bit/s; for interfaces without a bit rate it only limits the bus load.
    largest_load : float
        Largest permitted fraction of the bit rate in the worst case.
    options : mapping
        Further arguments of `can.Bus`.
    """

    interface: str
    channel: str
    bitrate: int = 1_000_000
    largest_load: float = 0.8
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LoopSettings:
    """Rate, priority and timing of the loop.

    Parameters
    ----------
    rate : float
        Cycles per second.
    priority : int
        Requested SCHED_FIFO priority, 1 to 99; 0: normal scheduling.
    lock_memory : bool
        Whether to request memory that is never swapped out.
    spin : float
        Last part of each wait, in which the clock is polled, s.
    receive_window : float
        Time after the start of a cycle for which the loop waits for reports, s.
    """

    rate: float = 250.0
    priority: int = 50
    lock_memory: bool = True
    spin: float = 200e-6
    receive_window: float = 1.5e-3

    @property
    def period(self) -> float:
        """Duration of a cycle, s."""
        return 1.0 / self.rate


@dataclass(frozen=True)
class Policies:
    """Responses to late cycles and missing reports, how many are tolerated, and stops.

    Parameters
    ----------
    on_late : Policy
        Response to a cycle that starts more than half a period after its deadline, or after skipped
        cycles. Late cycles are counted until a cycle starts within a quarter of the period.
    on_missing : Policy
        Response to a cycle without a valid report of an axis.
    max_consecutive_faults : int
        Largest number of consecutive faulty cycles that hold or damp; then the rig stops.
    stop_category : {1, 2}
        IEC 60204-1: 1, brake and remove power; 2, brake and hold under power.
    stop_time : float
        Largest duration of braking before power is removed, s.
    end : {"stop", "hold"}
        At the end of the task: "stop", a stop of the category above; "hold", hold the joints at
        once under power, until the operator ends it; for one second without a person as operator.
    startup_cycles, shutdown_cycles : int
        Number of cycles without torque after arming and before the release of the drives.
    start_error : float
        Largest tracking error, per output coordinate in its unit, at which a run may start.
    largest_error : float
        Tracking error, per output coordinate in its unit, above which a run stops. Default in a
        file: twice the `start_error`.
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
    """The channel of the operator's stop button and enabling device.

    Parameters
    ----------
    host, port : str, int
        Address of the loop for datagrams of the operator.
    timeout : float
        Time without a heartbeat after which the rig stops, s.
    required : bool
        Whether arming requires a heartbeat; must be true in mode drive.
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
        Transport of the poses.
    host, port : str, int
        Address at which the poses arrive.
    gives : {"pose", "position", "attitude"}
        Measured part of the pose.
    timeout : float
        Age above which a pose is not used, s.
    required : bool
        Whether loss of the source stops the rig; if False, the lift alone is used after a loss.
    largest_jump : float
        Distance from the estimate above which a pose is rejected, m and rad.
    largest_drift : float
        Largest error of the odometry of a robot on wheels, as a fraction of its path. A source that
        moves the base further from the odometry than this error plus `largest_jump` is rejected.
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
    """State estimation.

    Parameters
    ----------
    bandwidth : float
        Bandwidth of the filtered differentiation of joint positions, Hz.
    latency : float
        Known delay from the sampling of a position to its arrival, s.
    pose_gain : float
        Rate at which the estimate converges to the external pose, 1/s.
    """

    bandwidth: float = 25.0
    latency: float = 1e-3
    pose_gain: float = 5.0


@dataclass(frozen=True)
class RecorderSettings:
    """Recording of the cycles.

    Parameters
    ----------
    directory : Path
        Folder of the records, with one folder for each run.
    seconds : float
        Length of the ring that buffers rows for a slow disk, s.
    """

    directory: Path = Path("rig-records")
    seconds: float = 30.0


@dataclass(frozen=True)
class EmulatorSettings:
    """Imperfections of an emulated rig.

    Parameters
    ----------
    latency : float
        Delay of every frame, s.
    jitter : float
        Largest random addition to it, s; one for the frames that the host sends at one instant, and
        one for each frame of a drive. Frames of a sender keep their order.
    loss : float
        Fraction of frames that are lost.
    dt : float
        Time step of the plant, s.
    seed : int
        Seed of the random numbers.
    pose_rate : float
        Rate of the emulated motion capture, Hz; 0: no motion capture.
    pose_noise : float
        Standard deviation of the motion capture, m and rad.
    pose_latency : float
        Time from a sample of the motion capture to its sending, s.
    pose_loss : float
        Fraction of samples of the motion capture that are lost.
    viscous, friction : mapping of str to float
        Viscous (N m s/rad) and Coulomb friction (N m) by axis; default: zero.
    faults : tuple of mapping
        Scheduled faults, one table each, with the fields of `hil.emulator.Fault`.
    control_port : int
        UDP port of this machine at which faults can be commanded; 0: no port.
    """

    latency: float = 1e-3
    jitter: float = 0.0
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
    """A robot's motors on a bus, and their task; read by `load_rig`.

    Parameters
    ----------
    name : str
        Name of the rig.
    path : Path
        The rig file.
    task : Task
        Robot, references and gains.
    axes : tuple of Axis
        One axis for each control, in the order of the robot's controls.
    bus : BusSettings
        Adapter and bit rate.
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
    bus: BusSettings
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
