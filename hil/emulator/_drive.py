"""What every emulated drive is asked: frames in, frames out, torque on the plant. No clock, no bus.

Time is told to a drive, never asked for by it; so the same drive runs in a world of stepped time
and in a process of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import can

if TYPE_CHECKING:
    from hil.settings import Axis

Outgoing = list[tuple[float, can.Message]]
"""Frames to send, each with the instant at which it leaves the drive, s."""

NEVER = math.inf


@dataclass(frozen=True)
class DriveSettings:
    """How an emulated drive differs from what the rig file says of it, and what it is like.

    What is None is as the rig file says.

    Parameters
    ----------
    rated_torque : float, optional
        Rated torque of the motor that is really there, N m (CiA 402).
    torque_unit : {"rated", "maximum"}, optional
        What its per mille are really of (CiA 402).
    counts : int, optional
        Encoder counts per motor turn that it really has (CiA 402).
    ranges : mapping of str to (float, float), optional
        Ranges that it really has (MIT): position, velocity, torque, kp, kd.
    limit : {"applied", "ignored", "pretended"}
        What becomes of a torque limit (0x6072) that is written: it holds; the old one stays, and
        is read back; the new one is read back, and the old one holds.
    watchdog : bool
        Whether the drive notices that commands have ceased.
    timeout : float, optional
        Time without a valid command after which an MIT drive leaves motor mode, s; that of the
        rig file if None. CiA 402 drives are told theirs.
    peak : float
        Largest torque of a CiA 402 drive as a multiple of its rated torque; its limit at start.
    after_power_cycle : mapping of int to int
        Objects (index) of a CiA 402 drive that have other values after it was power-cycled.
    boot_time : float
        Time from power to boot-up, s.
    reaction_time : float
        Time that a fault reaction or a quick stop takes, s; without torque.
    response_time : float
        Time between a frame and its answer, s.
    master : int
        Identifier of the reports of an MIT drive.
    report_length : {6, 8}
        Bytes of them: 8 with temperature and error, 6 without.
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


class EmulatedDrive(ABC):
    """A drive with its motor, without clock and bus.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    settings : DriveSettings, optional
        How it differs from that.

    Attributes
    ----------
    position, velocity : float
        Of the joint as last sensed, rad and rad/s (m, m/s).
    last_command : float
        Instant of the last valid frame that kept the watchdog quiet, s; NaN before the first.
    refused : int
        Frames for this drive that were not valid.
    """

    def __init__(self, axis: Axis, settings: DriveSettings | None = None) -> None:
        self.axis = axis
        self.settings = settings or DriveSettings()
        self.position = 0.0
        self.velocity = 0.0
        self.last_command = math.nan
        self.refused = 0

    def sense(self, position: float, velocity: float) -> None:
        """Let the encoder see the joint.

        Parameters
        ----------
        position, velocity : float
            Of the joint, rad and rad/s (m, m/s).
        """
        self.position, self.velocity = position, velocity

    @property
    @abstractmethod
    def heard(self) -> frozenset[int]:
        """Identifiers that the drive listens to."""

    @property
    @abstractmethod
    def enabled(self) -> bool:
        """Whether commands become torque."""

    @property
    def springy(self) -> bool:
        """Whether the torque depends on the state of the joint."""
        return False

    @property
    @abstractmethod
    def torque_until(self) -> float:
        """Instant at which the torque ends by itself unless a command comes, s."""

    @property
    @abstractmethod
    def next_event(self) -> float:
        """Instant at which `poll` has something to do, s; infinite if never."""

    @abstractmethod
    def receive(self, frame: can.Message, now: float) -> Outgoing:
        """Take a frame.

        Parameters
        ----------
        frame : can.Message
            Any frame of the bus.
        now : float
            Instant of its arrival, s.

        Returns
        -------
        list of (float, can.Message)
            Answers, each with the instant at which it leaves the drive.
        """

    @abstractmethod
    def poll(self, now: float) -> Outgoing:
        """Do what is due: boot-up, heartbeats, expired watchdogs.

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
        """Torque on the joint.

        Parameters
        ----------
        now : float
            The instant, s.

        Returns
        -------
        float
            N m (N on a linear axis), joint side; zero unless the drive is enabled, its watchdog
            quiet.
        """

    @abstractmethod
    def power_cycle(self, now: float) -> None:
        """Lose power and get it back at once: what was written is lost, and the drive boots.

        Parameters
        ----------
        now : float
            The instant, s.
        """

    @abstractmethod
    def fail(self, now: float, code: int = 0) -> Outgoing:
        """Have a fault of its own, such as too high a current.

        Parameters
        ----------
        now : float
            The instant, s.
        code : int
            Fault code; 0: the drive's usual one.

        Returns
        -------
        list of (float, can.Message)
            Frames that say so.
        """

    def _motor_angle(self) -> float:
        """Angle of the motor since encoder zero, rad."""
        axis = self.axis
        return (self.position - axis.offset) * axis.direction * axis.gear

    def _motor_speed(self) -> float:
        return self.velocity * self.axis.direction * self.axis.gear

    def _at_joint(self, torque: float) -> float:
        """Torque of the motor as the joint feels it."""
        return torque * self.axis.direction * self.axis.gear


def message(identifier: int, data: bytes | bytearray) -> can.Message:
    """A data frame with a standard identifier."""
    return can.Message(arbitration_id=identifier, data=data, is_extended_id=False)


def is_plain(frame: can.Message) -> bool:
    """Whether a frame is a data frame with a standard identifier."""
    return not (
        frame.is_extended_id or frame.is_remote_frame or frame.is_error_frame or frame.is_fd
    )
