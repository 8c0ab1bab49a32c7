"""What the loop asks of a drive, whatever its protocol.

A third kind of drive
---------------------
A class for another protocol derives from `Drive`, fills in the methods below and is registered
under the name that the rig file gives in `drive`:

1. `identifiers`: identifiers of the frames that the drive sends in the loop; `sent_identifiers`:
   those of the frames that it is sent, and of any others. `make_drives` refuses rigs in which
   two drives meet on one.
2. `cycle_frames`: what crosses the bus in each cycle, for the bus load.
3. `inspect` asks the drive who it is and returns a list of `AxisCheck`; it writes nothing.
   On a silent bus (`bus.silent`) nothing can be asked: the finding is UNKNOWN.
4. `prepare` inspects, sets the drive's own watchdog to `axis.watchdog` seconds and its limits,
   reads them back, and raises `ArmError` if there is no watchdog. It leaves the drive without
   torque. Frames are sent by `bus.send` and awaited by `bus.receive(until)`, where `until` is an
   instant of `bus.clock`: no other clock, no threads, so that the drive runs emulated too.
5. `command` packs the command of a cycle into one message that is reused. Torque is asked for
   with `Wanted.TORQUE` alone. A drive that was switched off by itself, or lost power, must not be
   switched on again before the next `prepare`.
6. `receive` reads a frame into the arrays of `Feedback` at `index`, joint side, SI units. A frame
   of the wrong length, or with numbers out of range, changes nothing but `invalid`.
7. `release` takes the torque away and never raises.

Where needed: `reset` clears a fault before `prepare`; `prove` tries, for all drives of the kind
together and before the first torque, what can only be seen (a watchdog, by silence); `asides` are
frames that are not needed in every cycle; `is_foreign` says which frames on `sent_identifiers`
are harmless when somebody else sends them.

>>> class SilentDrive(Drive):
...     '''A drive that reports a position in microradians and takes microNewtonmetres.'''
...
...     def __init__(self, axis, index, rig):
...         super().__init__(axis, index, rig)
...         self._message = can.Message(
...             arbitration_id=0x400 + axis.node, data=bytearray(4), is_extended_id=False
...         )
...
...     @property
...     def identifiers(self):
...         return (0x500 + self.axis.node,)
...
...     @property
...     def sent_identifiers(self):
...         return (0x400 + self.axis.node,)
...
...     def cycle_frames(self):
...         return CycleFrame("report", 4, False), CycleFrame("command", 4, True)
...
...     def inspect(self, bus):
...         return [AxisCheck(self.axis.name, "drive", Finding.UNKNOWN)]
...
...     def prepare(self, bus):
...         return self.inspect(bus)  # and set the drive's watchdog, or raise ArmError
...
...     def command(self, wanted, torque):
...         value = round(1e6 * torque) if wanted is Wanted.TORQUE else 0
...         struct.pack_into("<i", self._message.data, 0, value)
...         return self._message
...
...     def receive(self, frame, now, feedback):
...         if len(frame.data) != 4:
...             feedback.invalid[self.index] += 1
...             return False
...         feedback.position[self.index] = 1e-6 * struct.unpack("<i", frame.data)[0]
...         feedback.time[self.index] = now
...         feedback.enabled[self.index] = True
...         feedback.count[self.index] += 1
...         return True
...
...     def release(self, bus):
...         bus.send(self.command(Wanted.OFF, 0.0))
>>> register_drive("silent", SilentDrive)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from hil.errors import ArmError

if TYPE_CHECKING:
    import can

    from hil.bus import Bus
    from hil.drives.feedback import Feedback
    from hil.settings import Axis, Rig


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


class FaultCode(IntEnum):
    """Faults that a drive does not name itself, beside its own codes of 16 bits."""

    RESTARTED = 0x10000
    """It was without power: what was written to it is lost."""
    NOT_OPERATIONAL = 0x10001
    """It has left the operational state and ignores commands."""
    FELL = 0x10002
    """It switched itself off without a fault."""
    UNNAMED = 0x10003
    """It has a fault and has not said which."""
    UNPROVED = 0x10004
    """Its watchdog was not tried: it had a fault when the rig was armed."""
    NOT_FOLLOWING = 0x10005
    """It says that it no longer follows the commanded torque (statusword, bit 12)."""
    OTHER_MODE = 0x10006
    """It is in another mode of operation than the one that was set (0x6061)."""
    OTHER_TORQUE = 0x10007
    """The torque that it measures (0x6077) is not the one that it was commanded."""
    MUTE = 0x10008
    """It no longer says in which mode of operation it is (0x6061)."""


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

    def _check(
        self, what: str, finding: Finding, expected: str = "", came: str = "", cure: str = ""
    ) -> AxisCheck:
        return AxisCheck(self.axis.name, what, finding, expected, came, cure)

    def _refuse_silence(self, bus: Bus) -> None:
        """Raise if nothing may be sent on a bus."""
        if bus.silent:
            raise ArmError(
                f"axis `{self.axis.name}`",
                expected="a mode in which frames are sent",
                came="one that only listens",
                cure="Use `concur-rig drive`.",
            )

    @property
    @abstractmethod
    def identifiers(self) -> tuple[int, ...]:
        """Identifiers of the frames that this drive sends in the loop."""

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        """Identifiers of all other frames between the host and this drive alone."""
        return ()

    @property
    def watched_identifiers(self) -> tuple[int, ...]:
        """Identifiers on which this host alone may send while it drives."""
        return self.sent_identifiers

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether a frame that this host did not send commands the drive.

        Parameters
        ----------
        frame : can.Message
            A frame whose identifier is among `watched_identifiers`.

        Returns
        -------
        bool
            True by default.
        """
        return True

    @property
    def shares_identifiers(self) -> bool:
        """Whether drives of this kind may send on one identifier, told apart by their data."""
        return False

    @abstractmethod
    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        """Frames that cross the bus in every cycle for this axis."""

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        """Frames sent once at the start of each cycle for all axes of this kind, such as SYNC.

        Parameters
        ----------
        rig : Rig
            The whole rig.

        Returns
        -------
        tuple of can.Message
            None by default.
        """
        return ()

    @abstractmethod
    def inspect(self, bus: Bus) -> list[AxisCheck]:
        """Ask the drive who it is and in which units it counts; waits.

        Nothing is written. Where a protocol has no other question, a command without torque is
        the question; so nobody else should be driving.

        Parameters
        ----------
        bus : Bus
            The open bus.

        Returns
        -------
        list of AxisCheck
            What it says; one finding MISSING if it does not answer, one UNKNOWN if nothing may
            be sent.
        """

    @abstractmethod
    def prepare(self, bus: Bus) -> list[AxisCheck]:
        """Inspect, then write what the loop needs: watchdog, mapping, limits; waits.

        Parameters
        ----------
        bus : Bus
            The open bus.

        Returns
        -------
        list of AxisCheck
            What the drive says, and what is in force now.

        Raises
        ------
        ArmError
            If the drive has no watchdog, or a limit is not in force. No torque has left.
        DriveError
            If the drive does not answer, or refuses.
        UnitError
            If its units are not those of the rig file.
        """

    def reset(self, bus: Bus) -> None:  # noqa: B027
        """Clear a fault before `prepare`, where that is asked for; nothing by default.

        Parameters
        ----------
        bus : Bus
            The open bus.
        """

    @classmethod
    def prove(cls, drives: Sequence[Drive], bus: Bus) -> list[AxisCheck]:
        """Try what cannot be read back, for all drives of this kind together; waits.

        It is called once all drives are prepared, before any torque. Nothing is tried by default.

        Parameters
        ----------
        drives : sequence of Drive
            The drives of this kind, all prepared.
        bus : Bus
            The open bus.

        Returns
        -------
        list of AxisCheck
            What was seen.

        Raises
        ------
        ArmError
            If a drive keeps its power when the host falls silent.
        DriveError
            If a drive does not answer, or cannot be put under power.
        """
        return []

    def asides(self, cycle: int) -> tuple[can.Message, ...]:
        """Frames that go out beside the command, such as a question that is asked now and then.

        Parameters
        ----------
        cycle : int
            Number of the cycle.

        Returns
        -------
        tuple of can.Message
            None by default; messages that are reused.
        """
        return ()

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
        """Leave the drive without torque and out of the loop; waits little.

        Parameters
        ----------
        bus : Bus
            The open bus.

        Raises
        ------
        DriveError
            If the drive does not confirm it, once everything has been sent. The loop goes on with
            the other drives, and the run's result names this one.
        """
