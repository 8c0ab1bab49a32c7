"""The interface of emulated drives: frames in, frames out, torque on the plant. No clock, no bus.

The caller passes the time to the drive. Therefore the same drive works in stepped time and in real
time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import can

from hil._concur import encoder_count

if TYPE_CHECKING:
    from hil.settings import Axis

Outgoing = list[tuple[float, can.Message]]
"""Frames to send, each with the instant at which the drive sends it, s."""

NEVER = math.inf


@dataclass(frozen=True)
class DriveSettings:
    """Properties of an emulated drive, and its differences from the rig file.

    Default of optional parameters: the value of the rig file.

    Parameters
    ----------
    rated_torque : float, optional
        True rated torque of the motor, N m (CiA 402).
    torque_unit : {"rated", "maximum"}, optional
        True reference of the drive's per mille (CiA 402).
    counts : int, optional
        True number of encoder counts per motor turn (CiA 402).
    ranges : mapping of str to (float, float), optional
        True ranges (MIT): position, velocity, torque, kp, kd.
    limit : {"applied", "ignored", "pretended"}
        Effect of writing a torque limit (0x6072). "applied": the new limit acts. "ignored": the old
        limit acts and is read back. "pretended": the old limit acts, but the new one is read back.
    watchdog : bool
        Whether the drive detects missing commands.
    timeout : float, optional
        Time without a valid command after which an MIT drive leaves motor mode, s. The host sets
        the time of CiA 402 drives.
    peak : float
        Largest torque of a CiA 402 drive as a multiple of its rated torque; its limit at start.
    after_power_cycle : mapping of int to int
        Objects (index) of a CiA 402 drive that have other values after a power cycle.
    boot_time : float
        Time from power-on to boot-up, s.
    reaction_time : float
        Duration of a fault reaction or a quick stop, s; without torque.
    response_time : float
        Time between a frame and its answer, s.
    master : int
        Identifier of the reports of an MIT drive.
    report_length : {6, 8}
        Bytes of the reports of an MIT drive: 8 with temperature and error, 6 without.
    timeout_mode : int
        Mode of a moteus drive after a timeout: 0 stopped, 10 position, 12 zero velocity, 15 brake.
    """

    rated_torque: float | None = None
    torque_unit: Literal["rated", "maximum"] | None = None
    counts: int | None = None
    ranges: Mapping[str, tuple[float, float]] | None = None
    limit: Literal["applied", "ignored", "pretended"] = "applied"
    watchdog: bool = True
    timeout: float | None = None
    peak: float = 3.0
    after_power_cycle: Mapping[int, int] = field(default_factory=dict)
    boot_time: float = 0.05
    reaction_time: float = 5e-3
    response_time: float = 0.0
    master: int = 0
    report_length: Literal[6, 8] = 8
    timeout_mode: int = 0


class EmulatedDrive(ABC):
    """A drive with its motor, without clock and bus.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Attributes
    ----------
    position, velocity : float
        Last sensed position and velocity of the motor, rad and rad/s (m, m/s).
    last_command : float
        Instant of the last valid frame that fed the watchdog, s; NaN before the first frame.
    refused : int
        Number of invalid frames for this drive.
    """

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        self.axis = axis
        self.settings = settings or DriveSettings()
        self.position = 0.0
        self.velocity = 0.0
        self.last_command = math.nan
        self.refused = 0

    def sense(self, position: float, velocity: float) -> None:
        """Set the encoder's reading of the motor.

        Parameters
        ----------
        position, velocity : float
            Of the motor, rad and rad/s (m, m/s).
        """
        self.position, self.velocity = position, velocity

    @property
    @abstractmethod
    def heard(self) -> frozenset[int]:
        """Identifiers that the drive receives."""

    @property
    @abstractmethod
    def enabled(self) -> bool:
        """Whether the drive applies commanded torque."""

    @property
    def springy(self) -> bool:
        """Whether the torque depends on the state of the motor."""
        return False

    @property
    @abstractmethod
    def torque_until(self) -> float:
        """Instant at which the torque ends unless a command arrives, s."""

    @property
    @abstractmethod
    def next_event(self) -> float:
        """Instant of the next action of `poll`, s; infinite if there is none."""

    @abstractmethod
    def receive(self, frame: can.Message, now: float) -> Outgoing:
        """Receive a frame.

        Parameters
        ----------
        frame : can.Message
            Any frame of the bus.
        now : float
            Instant of its arrival, s.

        Returns
        -------
        list of (float, can.Message)
            Answers, each with the instant at which the drive sends it.
        """

    @abstractmethod
    def poll(self, now: float) -> Outgoing:
        """Perform actions that are due: boot-up, heartbeats, expired watchdogs.

        Parameters
        ----------
        now : float
            The instant, s.

        Returns
        -------
        list of (float, can.Message)
            Frames to send.
        """

    @abstractmethod
    def torque(self, now: float) -> float:
        """Torque of the motor.

        Parameters
        ----------
        now : float
            The instant, s.

        Returns
        -------
        float
            N m (N on a linear axis); zero unless the drive is enabled and its watchdog
            has not expired.
        """

    @abstractmethod
    def power_cycle(self, now: float) -> None:
        """Cycle the power: written values are lost, and the drive boots.

        Parameters
        ----------
        now : float
            The instant, s.
        """

    @abstractmethod
    def fail(self, now: float, code: int = 0) -> Outgoing:
        """Cause a fault of the drive, such as overcurrent.

        Parameters
        ----------
        now : float
            The instant, s.
        code : int
            Fault code; 0: the drive's default code.

        Returns
        -------
        list of (float, can.Message)
            Frames that report the fault.
        """

    def _motor_angle(self) -> float:
        """Angle of the drive's shaft since encoder zero, rad."""
        axis = self.axis
        return (self.position - axis.offset) * axis.direction * axis.gear

    def _motor_speed(self) -> float:
        return self.velocity * self.axis.direction * self.axis.gear

    @staticmethod
    def _count(value: float, resolution: float) -> int:
        """Reading of the encoder, or of its difference, in whole steps."""
        return int(encoder_count(value, resolution))

    def _at_joint(self, torque: float) -> float:
        """Torque of the motor for one of the drive's shaft."""
        return torque * self.axis.direction * self.axis.gear


def message(identifier: int, data: bytes | bytearray) -> can.Message:
    """Make a data frame with a standard identifier."""
    return can.Message(arbitration_id=identifier, data=data, is_extended_id=False)


def changed(frame: can.Message, data: bytes | bytearray) -> can.Message:
    """Copy a data frame with other data, in its format; a remote frame has none."""
    if frame.is_remote_frame:
        return frame
    return can.Message(
        arbitration_id=frame.arbitration_id,
        data=data,
        is_extended_id=frame.is_extended_id,
        is_fd=frame.is_fd,
        bitrate_switch=frame.bitrate_switch,
    )


def is_plain(frame: can.Message) -> bool:
    """Whether a frame is a data frame with a standard identifier."""
    return not (
        frame.is_extended_id or frame.is_remote_frame or frame.is_error_frame or frame.is_fd
    )
