"""The interface between the loop and a drive of any protocol.

A third kind of drive
---------------------
A class for another protocol derives from `Drive`, implements the methods below and is registered
under the name that the rig file gives in `drive`:

1. `identifiers`: identifiers of the frames that the drive sends in the loop; `sent_identifiers`:
   identifiers of all other frames between the host and the drive. `make_drives` rejects rigs in
   which two drives use the same identifier.
2. `cycle_frames`: the frames that cross the bus in each cycle, for the bus load.
3. `inspect` queries the drive's identity and returns a list of `AxisCheck`; it writes nothing.
   On a silent bus (`bus.silent`) no query can be sent: the finding is UNKNOWN.
4. `prepare` inspects the drive, sets its watchdog to `axis.watchdog` seconds and its limits,
   reads them back, and raises `ArmError` if there is no watchdog. It leaves the drive without
   torque. It sends frames by `bus.send` and waits for frames by `bus.receive(until)`, where `until`
   is an instant of `bus.clock`. It uses no other clock and no threads, so that it also works with
   emulated drives.
5. `command` packs the command of a cycle into one message that is reused. It requests torque only
   for `Wanted.TORQUE`. A drive that has switched itself off, or lost power, must not be switched
   on again before the next `prepare`.
6. `receive` reads a frame into the arrays of `Feedback` at `index`, joint side, SI units. A frame
   of the wrong length, or with numbers out of range, changes nothing but `invalid`.
7. `release` removes the torque. It raises only `DriveError`, and only after all frames were sent.

Where needed: `reset` clears a fault before `prepare`. `prove` tests, for all drives of the kind
together and before a run, properties that cannot be read back, such as a watchdog.
`asides` are frames that are not needed in every cycle. `is_foreign` distinguishes commands of
another host from harmless frames on `watched_identifiers`.

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
from typing import TYPE_CHECKING, ClassVar

from hil.errors import ArmError

if TYPE_CHECKING:
    import can

    from hil.drives.feedback import Feedback
    from hil.links import Link
    from hil.settings import Axis, Rig


class Wanted(IntEnum):
    """State that is requested from a drive in one cycle."""

    OFF = 0
    """No torque, output stage without power."""
    READY = 1
    """Output stage on, torque zero: the cycles between arming and running."""
    TORQUE = 2
    """Output stage on, with the given torque."""
    RESET = 3
    """Clear a fault; no torque."""


class FaultCode(IntEnum):
    """Faults that the host detects, in addition to the drive's own codes of 16 bits."""

    RESTARTED = 0x10000
    """The drive lost power, and with it all values that were written to it."""
    NOT_OPERATIONAL = 0x10001
    """The drive has left the operational state and ignores commands."""
    FELL = 0x10002
    """The drive switched itself off without a fault."""
    UNNAMED = 0x10003
    """The drive reports a fault without a code."""
    UNPROVED = 0x10004
    """The watchdog was not tested: the drive had a fault when the rig was armed."""
    NOT_FOLLOWING = 0x10005
    """The drive reports that it no longer follows the commanded torque (statusword, bit 12)."""
    OTHER_MODE = 0x10006
    """The mode of operation (0x6061) differs from the one that was set."""
    OTHER_TORQUE = 0x10007
    """The measured torque (0x6077) differs from the commanded torque."""
    MUTE = 0x10008
    """The drive no longer answers queries for its mode of operation (0x6061)."""


class Finding(Enum):
    """Result of a check of one property of a drive; values are sentences."""

    FOUND = "the property matches the rig file"
    MISSING = "the drive does not answer"
    WRONG = "the property differs from the rig file"
    UNKNOWN = "the property cannot be read from the drive"


@dataclass(frozen=True)
class AxisCheck:
    """One property of one drive, checked before arming.

    Parameters
    ----------
    axis : str
        Name of the axis.
    what : str
        The property, with its unit.
    finding : Finding
        Result of the check.
    expected, came : str
        Value in the rig file, and value in the drive.
    cure : str
        Remedy if they differ.
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
        Name of the frame.
    length : int
        Bytes of data.
    to_drive : bool
        Whether the host sends it.
    fd : bool
        Whether it is a frame of CAN FD.
    extended : bool
        Whether its identifier has 29 bits.
    """

    name: str
    length: int
    to_drive: bool
    fd: bool = False
    extended: bool = False


class Drive(ABC):
    """Drive of one axis: packs commands into frames and reads frames into feedback.

    `inspect`, `prepare` and `release` exchange frames with the drive and wait for answers; they are
    called outside the loop. `command` and `receive` are called in every cycle: they neither wait
    nor send. All frames of a cycle are packed before the first of them is sent.

    A third kind of drive is a subclass, registered by `register_drive`.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    index : int
        Index of the axis.
    rig : Rig
        The whole rig.

    Examples
    --------
    >>> import hil
    >>> class Silent(hil.Drive):
    ...     pass
    >>> try:
    ...     hil.register_drive("silent", Silent)
    ... except hil.errors.RigFileError as error:
    ...     print(error.came)
    a class without command, cycle_frames, identifiers, inspect, prepare, receive, release
    """

    largest_identifier: ClassVar[int] = 0x7FF
    """Largest identifier of the frames of this kind; above it, identifiers are extended."""

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        self.axis = axis
        self.index = index
        self.rig = rig

    def _check(
        self, what: str, finding: Finding, expected: str = "", came: str = "", cure: str = ""
    ) -> AxisCheck:
        return AxisCheck(self.axis.name, what, finding, expected, came, cure)

    def _refuse_silence(self, bus: Link) -> None:
        """Raise if the bus is silent."""
        if bus.silent:
            raise ArmError(
                f"axis `{self.axis.name}`",
                expected="a mode in which frames are sent",
                came="a mode that only listens",
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
        """Identifiers on which no other host may send while this host commands the drive."""
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
        """Whether drives of this kind may send on one identifier and differ in their data."""
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
            Empty by default.
        """
        return ()

    @abstractmethod
    def inspect(self, bus: Link) -> list[AxisCheck]:
        """Query the drive's identity and units; waits.

        Nothing is written. If the protocol has no query, a command without torque is sent instead;
        no other host should then command the drive.

        Parameters
        ----------
        bus : Link
            The open bus.

        Returns
        -------
        list of AxisCheck
            The drive's properties; one finding MISSING if it does not answer, one UNKNOWN if the
            bus is silent.
        """

    @abstractmethod
    def prepare(self, bus: Link) -> list[AxisCheck]:
        """Inspect the drive, then set its watchdog, mapping and limits; waits.

        Parameters
        ----------
        bus : Link
            The open bus.

        Returns
        -------
        list of AxisCheck
            The drive's properties, and the settings in force.

        Raises
        ------
        ArmError
            If the drive has no watchdog, or a limit is not in force. No torque was sent but
            that of a test.
        DriveError
            If the drive does not answer, or rejects a setting.
        UnitError
            If its units are not those of the rig file.
        """

    def reset(self, bus: Link) -> None:  # noqa: B027
        """Clear a fault before `prepare`, if a reset is requested; nothing by default.

        Parameters
        ----------
        bus : Link
            The open bus.
        """

    @classmethod
    def prove(cls, drives: Sequence[Drive], bus: Link) -> list[AxisCheck]:
        """Test properties that cannot be read back, for all drives of this kind together; waits.

        It is called once all drives are prepared, before the run. A test sends at most
        `axis.test_torque`. No test by default.

        Parameters
        ----------
        drives : sequence of Drive
            The drives of this kind, all prepared.
        bus : Link
            The open bus.

        Returns
        -------
        list of AxisCheck
            Results of the tests.

        Raises
        ------
        ArmError
            If a drive keeps its power when the host stops sending.
        DriveError
            If a drive does not answer, or cannot be enabled.
        """
        return []

    def asides(self, cycle: int) -> tuple[can.Message, ...]:
        """Frames that are sent in addition to the command, such as a periodic query.

        Parameters
        ----------
        cycle : int
            Number of the cycle.

        Returns
        -------
        tuple of can.Message
            Messages that are reused; empty by default.
        """
        return ()

    @abstractmethod
    def command(self, wanted: Wanted, torque: float) -> can.Message:
        """Command frame of this cycle.

        Parameters
        ----------
        wanted : Wanted
            Requested state. The frame requests torque only for TORQUE.
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
            Arrays that take the report at `index`; an invalid frame changes `invalid` only.

        Returns
        -------
        bool
            Whether it was a valid report.
        """

    @abstractmethod
    def release(self, bus: Link) -> None:
        """Remove the drive's torque and take it out of the loop; waits only briefly.

        Parameters
        ----------
        bus : Link
            The open bus.

        Raises
        ------
        DriveError
            If the drive does not confirm it, once all frames were sent. The loop continues with
            the other drives, and the run's result names this one.
        """
