"""What the loop asks of a drive, whatever its protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import can

    from hil.bus import Bus
    from hil.feedback import Feedback
    from hil.rig import Axis, Rig


class Wanted(IntEnum):
    """What a drive shall do in this cycle."""

    OFF = 0
    """No torque, output stage without power."""
    READY = 1
    """Output stage on, torque zero: the cycles between arming and running."""
    TORQUE = 2
    """The torque that is given."""
    RESET = 3
    """Clear a fault; no torque."""


class Finding(Enum):
    """What a check of one property of a drive came to; values are sentences."""

    FOUND = "as the rig file says"
    MISSING = "the drive does not answer"
    WRONG = "not what the rig file says"
    UNKNOWN = "the drive cannot be asked"


@dataclass(frozen=True)
class AxisCheck:
    """One property of one drive, as asked before arming.

    Parameters
    ----------
    axis : str
        Name of the axis.
    what : str
        The property, with its unit.
    finding : Finding
        What it came to.
    expected, came : str
        What the rig file says, and what the drive says.
    cure : str
        What to do if they differ.
    """

    axis: str
    what: str
    finding: Finding
    expected: str = ""
    came: str = ""
    cure: str = ""


@dataclass(frozen=True)
class CycleFrame:
    """A frame that crosses the bus in every cycle, for the bus load.

    Parameters
    ----------
    name : str
        What it is.
    length : int
        Bytes of data.
    to_drive : bool
        Whether the host sends it.
    """

    name: str
    length: int
    to_drive: bool


class Drive(ABC):
    """One axis' drive: makes frames of commands and reads frames into feedback.

    `inspect`, `prepare` and `release` talk to the drive and wait for answers; they are called
    outside the loop. `command` and `receive` are called in every cycle: they neither wait nor
    send. All frames of a cycle are made before the first of them is sent.

    A third kind of drive is a subclass, registered by `register_drive`.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    index : int
        Its place among the axes.
    rig : Rig
        The whole rig.
    """

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        self.axis = axis
        self.index = index
        self.rig = rig

    @property
    @abstractmethod
    def identifiers(self) -> tuple[int, ...]:
        """Identifiers of the frames that this drive sends in the loop."""

    @abstractmethod
    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        """Frames that cross the bus in every cycle for this axis."""

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        """Frames sent once at the start of each cycle for all axes of this kind, such as SYNC."""
        return ()

    @abstractmethod
    def inspect(self, bus: Bus) -> list[AxisCheck]:
        """Ask the drive who it is and in which units it counts; writes nothing, waits."""

    @abstractmethod
    def prepare(self, bus: Bus) -> list[AxisCheck]:
        """Inspect, then write what the loop needs: watchdog, mapping, limits; waits.

        Raises
        ------
        DriveError
            If the drive does not answer, refuses, or has no watchdog. No torque has left.
        UnitError
            If its units are not those of the rig file.
        """

    @abstractmethod
    def command(self, wanted: Wanted, torque: float) -> can.Message:
        """Frame of this cycle.

        Parameters
        ----------
        wanted : Wanted
            What the drive shall do. With anything but TORQUE the frame asks for no torque.
        torque : float
            Torque at the joint, N m (N on a linear axis); finite, within limits.

        Returns
        -------
        can.Message
            A message that is reused: send it before the next call.
        """

    @abstractmethod
    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        """Read a frame of this drive into the feedback.

        Parameters
        ----------
        frame : can.Message
            A frame whose identifier is among `identifiers`.
        now : float
            Instant of its arrival, s of the loop's clock.
        feedback : Feedback
            Arrays that take the report at `index`; a frame that is refused changes `invalid` only.

        Returns
        -------
        bool
            Whether it was a valid report.
        """

    @abstractmethod
    def release(self, bus: Bus) -> None:
        """Leave the drive without torque and out of the loop; never raises, waits little."""
