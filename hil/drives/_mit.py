"""Drives of the MIT mini-cheetah protocol: mini-cheetah, T-Motor (CubeMars) AK, Damiao, and kin.

A command of 8 bytes on the drive's identifier contains position, velocity, stiffness, damping and
torque as fixed-point numbers. The drive answers with a report of position, velocity and torque.
Position, velocity, stiffness and damping are commanded as zero here, so that torque alone acts; the
guard adds damping. Three frames are not commands: enter motor mode, leave motor mode, and set the
present position to zero, which is never sent.

All drives of a bus usually report on one identifier (0x000), and the first byte contains the number
of the drive. The manual of the AK series specifies the drive's own identifier instead; both are
supported. A report has 6 bytes, or 8 with temperature and error code.

The reaction of the drives to missing commands differs, and cannot be queried:

- Firmware of the mini-cheetah has a `CAN_TIMEOUT`; its descendants differ. Many set torque to zero
  and keep motor mode, some leave it, some have the check commented out. Their reports of 6 bytes
  do not show the difference, and the next command may act at once.
- T-Motor AK drives have an error byte in their reports; no documented code stands for missing
  commands. Open libraries list 1 motor too hot, 2 current, 3 voltage high, 4 low, 5 encoder.
- Damiao drives report their state in the upper half of the first byte: 0 off, 1 on, others faults,
  of which 13 is "communication lost" in the libraries that read it.

Therefore a watchdog is tested before a rig is armed (`_single_trial`). The drive enters motor mode,
gets a small torque, and receives nothing for one and a half times `watchdog`; then its error code
or state must show that it is off, and its torque must have ended. The test is made twice. A drive
whose reports do not show it is rejected, even if its watchdog works. The exception is
`watchdog_confirmed` in the rig file, for a drive whose watchdog a person has tested: set the CAN
timeout, let the motor push lightly against a hand, pull the CAN plug, and time how long the motor
keeps pushing. The automatic test is made nevertheless, and the table shows that it proved nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import can

from hil.drives._drive import AxisCheck, CycleFrame, FaultCode, Finding, Wanted
from hil.drives._mit_frames import (
    CLEAR,
    COMMUNICATION_LOST,
    ENTER,
    LEAVE,
    Report,
    pack_torque,
    unpack_report,
)
from hil.drives._single_trial import Answer, AnsweringDrive, try_watchdog
from hil.drives._trial import SILENCE
from hil.drives._units import MitScale, Turns
from hil.errors import DriveError, UnitError
from hil.links import Link

if TYPE_CHECKING:
    from hil.drives.feedback import Feedback
    from hil.settings import Axis, Rig

MASTER = 0x000
"""Identifier on which drives report to their master."""

TIMEOUT = 0.05
"""Time-out of a report while a drive is prepared, s."""
ATTEMPTS = 3
"""Number of times that a command without a report is sent."""
AT_REST = 0.05
"""Fraction of the ranges of torque and velocity below which a drive counts as at rest."""

_ENTRIES = 8  # frames that enter motor mode, as some may be lost
_SURE = 2  # reports without error after the first entering frame
_HALF = 2047.5  # code of zero torque in a symmetric range
_MUCH = 205.0  # tenth of half the range of torque, in codes
_LONG = 20  # reports
_STATES = range(1, 16)  # without 0, which is invisible in the first byte


class MitDrive(AnsweringDrive):
    """A drive of the MIT protocol.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    index : int
        Index of the axis.
    rig : Rig
        The whole rig.

    Attributes
    ----------
    scale : MitScale
        Conversion between the drive's codes and the joint.
    """

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        super().__init__(axis, index, rig)
        self.scale = MitScale(axis)
        self._zero = self.scale.torque_code(0.0)
        self._message = can.Message(
            arbitration_id=axis.node, data=bytearray(8), is_extended_id=False
        )
        low, high = axis.position_limits
        # Only a joint without limits passes the ends of the drive's range. Turns of other joints
        # are not counted, so that a corrupted report cannot make the count wrong.
        self._turns = Turns(16, has_sign=False) if high - low == float("inf") else None
        self._answers_on: int | None = None
        self.has_state = False
        self._prepared = False
        self._fault_before = 0
        self._raw = b""
        self._forget()

    def _forget(self) -> None:
        self._entered = False
        self._entries = self._sure = self._phase = self._deaf = 0
        self._asked = self._zero
        self._last_position: int | None = None
        self._last_time = 0.0
        if self._turns is not None:
            self._turns.forget()

    @property
    def identifiers(self) -> tuple[int, ...]:
        return MASTER, self.axis.node

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        return (self.axis.node,)

    @property
    def shares_identifiers(self) -> bool:
        return True

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether a frame on the drive's identifier is not the drive's own report.

        Parameters
        ----------
        frame : can.Message
            A frame whose identifier is among `watched_identifiers`.

        Returns
        -------
        bool
            True if another host sent it.
        """
        data = frame.data
        return self._answers_on == MASTER or (len(data) == 8 and data[0] != self.axis.node)

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return CycleFrame("report", 8, to_drive=False), CycleFrame("command", 8, to_drive=True)

    # -- in the loop ---------------------------------------------------------------------------

    def command(self, wanted: Wanted, torque: float) -> can.Message:
        """Command frame of this cycle.

        Motor mode is entered in cycles with READY, never with TORQUE: a drive that has left motor
        mode stays off. Drives keep the torque of their last command; therefore commands of zero
        torque precede and separate the frames that enter and leave.

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
        data = self._message.data
        if wanted is Wanted.TORQUE:
            self._phase = 0
            code = self.scale.torque_code(torque) if self._entered else self._zero
            self._asked = code
            pack_torque(data, code)
            return self._message
        self._phase += 1
        self._asked = self._zero
        if wanted is Wanted.READY:
            enters = self._prepared and self._entries < _ENTRIES and self._phase % 2 == 0
            if enters:
                self._entries += 1
                data[:] = ENTER
            else:
                pack_torque(data, self._zero)
            return self._message
        if wanted is Wanted.RESET:
            self._fault_before = 0
        self._entered = False
        self._entries = self._sure = 0
        if self.has_state and wanted is Wanted.RESET and self._phase % 4 == 0:
            data[:] = CLEAR
        elif self._phase % 2 == 0:
            data[:] = LEAVE
        else:
            pack_torque(data, self._zero)
        return self._message

    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        data, index, axis = frame.data, self.index, self.axis
        if self._answers_on is not None and frame.arbitration_id != self._answers_on:
            return False
        report = unpack_report(data, axis.node, self.has_state)
        if report is None:
            if not data or (data[0] & 0x0F if self.has_state else data[0]) == axis.node:
                feedback.invalid[index] += 1
            return False
        gap = now - self._last_time
        if not self._follows(report.position, gap):
            feedback.invalid[index] += 1
            return False
        position = self._last_position = report.position
        self._last_time = now
        if self._turns is not None:
            position = self._turns.take(position)
        scale = self.scale
        feedback.position[index] = scale.position(position)
        feedback.velocity[index] = scale.velocity(report.velocity)
        feedback.torque[index] = scale.torque(report.torque)
        feedback.status[index] = report.status
        # Some firmware keeps an error until motor mode is entered. Errors before that were read in
        # `prepare`, or were caused by the test of the watchdog.
        asks_to_enter = self._prepared and not self._entered and self._entries < _ENTRIES
        fault = (0 if asks_to_enter else report.error) or self._fault_before
        if self._entered:
            if report.off or gap > axis.watchdog or self._is_deaf(report.torque):
                # switched off without a command: stays off until the next `prepare`
                self._entered = self._prepared = False
                self._fault_before = fault = fault or FaultCode.FELL
        elif self._entries and not report.off:
            self._sure += 1
            self._entered = self._sure >= _SURE
        feedback.fault[index] = fault
        feedback.enabled[index] = self._entered and not fault
        feedback.time[index] = now
        feedback.count[index] += 1
        return True

    def _follows(self, position: int, gap: float) -> bool:
        """Whether the joint can have moved from the last position to this one."""
        if self._last_position is None:
            return True
        low, high = self.scale.span
        step = (position - self._last_position + 0x8000 & 0xFFFF) - 0x8000
        return abs(step) <= 0x4000 or gap * self.axis.speed_limit >= 0.25 * (high - low)

    def _is_deaf(self, torque: int) -> bool:
        """Whether the drive has long reported little torque while much was commanded.

        This detects a restarted drive whose reports have no state: it answers, but is not in motor
        mode.
        """
        asked = abs(self._asked - _HALF)
        if asked > _MUCH and abs(torque - _HALF) < 0.1 * asked:
            self._deaf += 1
        else:
            self._deaf = 0
        return self._deaf >= _LONG

    # -- before and after the loop -------------------------------------------------------------

    def inspect(self, bus: Link) -> list[AxisCheck]:
        if bus.silent:
            return [self._check("drive", Finding.UNKNOWN, cure="Nothing is sent in this mode.")]
        report = self.exchange(bus, self._torque_free())
        if report is None:
            return [
                self._check(
                    "drive",
                    Finding.MISSING,
                    "a report",
                    "no report",
                    "Check power, cable, termination, bit rate, that the drive is in MIT mode, "
                    "and `node`.",
                )
            ]
        unknown = Finding.UNKNOWN
        checks = [
            self._check(
                "drive", Finding.FOUND, "a report", f"one on identifier 0x{self._answers_on:03X}"
            ),
            self._check(
                "ranges of its numbers",
                unknown,
                f"those of model {self.axis.model}" if self.axis.model else "those of `ranges`",
                "not reported",
                "Compare the model and its ranges with the manual of the drive's firmware: wrong "
                "ranges scale all torques and positions.",
            ),
            self._check(
                "watchdog of the drive",
                unknown,
                f"{self.axis.watchdog:g} s",
                "not reported",
                "Set it over the drive's serial port. It is tested when the rig is armed, by "
                f"{SILENCE * self.axis.watchdog:g} s of silence.",
            ),
        ]
        return checks + self._plausible(report)

    def prepare(self, bus: Link) -> list[AxisCheck]:
        """Inspect the drive, then test its watchdog by silence at a small torque, twice.

        Parameters
        ----------
        bus : Link
            The open bus.

        Returns
        -------
        list of AxisCheck
            The drive's properties, and the result of the watchdog test.

        Raises
        ------
        ArmError
            If the drive does not report that it switched off when commands ceased, or keeps its
            torque.
        DriveError, UnitError
            See `Drive.prepare`.
        """
        axis = self.axis
        where = f"axis `{axis.name}`, node {axis.node}"
        self._refuse_silence(bus)
        self._prepared = self.has_state = False
        self._answers_on = None
        checks = self.inspect(bus)
        for check in checks:
            if check.finding in (Finding.MISSING, Finding.WRONG):
                kind = UnitError if check.finding is Finding.WRONG else DriveError
                raise kind(
                    f"{where}, {check.what}",
                    expected=check.expected,
                    came=check.came,
                    cure=check.cure,
                )
        checks = [check for check in checks if not check.what.startswith("watchdog")]
        self._forget()
        first = self._raw
        checks += try_watchdog(self, bus)
        # The loop shows an earlier fault until a reset is requested. Its place in the report is
        # known only after the exchange above.
        before = unpack_report(first, axis.node, self.has_state)
        fault = before.error if before is not None else None
        self._fault_before = 0 if fault in (None, COMMUNICATION_LOST) else fault or 0
        self._prepared = True
        return checks

    def release(self, bus: Link) -> None:
        if bus.silent:
            return
        self._entered = False
        self.exchange(bus, self._torque_free(), attempts=1, timeout=0.01)
        # Both are sent in any case: one may be lost.
        answers = [self.exchange(bus, LEAVE, attempts=1, timeout=0.01) for _ in range(2)]
        if answers == [None, None]:
            raise DriveError(
                f"axis `{self.axis.name}`",
                expected="an answer to the command that ends motor mode",
                came="no answer to two of these commands",
                cure="Check the drive and its wiring before anyone reaches into the rig.",
            )

    def _plausible(self, report: Report) -> list[AxisCheck]:
        """Check that numbers of a drive at rest are plausible in the units of the rig file."""
        axis, scale = self.axis, self.scale
        low, high = axis.position_limits
        position = scale.position(report.position)
        torque, speed = scale.torque(report.torque), scale.velocity(report.velocity)
        numbers = (
            ("position, rad (m)", position, low, high),
            ("torque without command, N m (N)", torque, -scale.largest_torque, 0.0),
            ("speed at rest, rad/s (m/s)", speed, -scale.fastest, 0.0),
        )
        checks = []
        for what, value, least, most in numbers:
            if what.startswith("position"):
                right, expected = least <= value <= most, f"{least:g} to {most:g}"
            else:
                right, expected = abs(value) <= AT_REST * -least, f"at most {AT_REST * -least:g}"
            checks.append(
                self._check(
                    what,
                    Finding.FOUND if right else Finding.WRONG,
                    expected,
                    f"{value:.4g}",
                    "Bring the joint to rest within its limits, or correct `model`, `ranges`, "
                    "`offset`, `gear` or `direction`.",
                )
            )
        return checks

    def _torque_free(self) -> bytes:
        data = bytearray(8)
        pack_torque(data, self._zero)
        return bytes(data)

    def exchange(
        self, bus: Link, data: bytes, attempts: int = ATTEMPTS, timeout: float = TIMEOUT
    ) -> Report | None:
        """Send a frame and wait for the report that answers it.

        Parameters
        ----------
        bus : Link
            The open bus.
        data : bytes
            Data of the frame, 8 bytes.
        attempts : int
            Number of times that the frame is sent without an answer.
        timeout : float
            Time-out of each answer, s.

        Returns
        -------
        Report or None
            The report; None if there was no answer.
        """
        node = self.axis.node
        message = can.Message(arbitration_id=node, data=data, is_extended_id=False)
        for _ in range(attempts):
            while bus.receive() is not None:
                pass  # discard earlier frames
            bus.send(message)
            until = bus.clock.now() + timeout
            while (frame := bus.receive(until)) is not None:
                if frame.arbitration_id not in self.identifiers or not frame.data:
                    continue
                if frame.arbitration_id == node and bytes(frame.data) == data:
                    bus.echoes = True  # some buses echo sent frames
                    continue
                first = frame.data[0]
                if first != node and first & 0x0F == node and first >> 4 in _STATES:
                    self.has_state = self._may_have_state()
                report = unpack_report(frame.data, node, self.has_state)
                if report is not None:
                    self._raw = bytes(frame.data)
                    bus.echoes = bool(bus.echoes)
                    self._answers_on = frame.arbitration_id
                    return report
        return None

    # -- for the test of the watchdog ------------------------------------------------------------

    @property
    def resolution(self) -> MitScale:
        return self.scale

    @property
    def cure(self) -> str:
        return (
            f"Set its CAN timeout to {self.axis.watchdog:g} s over its serial port. If it has "
            "a timeout and does not report it, verify that it works (pull the CAN plug while "
            "the motor pushes lightly against a hand), then set `watchdog_confirmed = true`."
        )

    def ask(self, bus: Link, torque: float, attempts: int, timeout: float) -> Answer | None:
        data = bytearray(8)
        pack_torque(data, self.scale.torque_code(torque))
        return self._answer(self.exchange(bus, bytes(data), attempts, timeout))

    def _answer(self, report: Report | None) -> Answer | None:
        if report is None:
            return None
        torque = self.scale.torque(report.torque)
        return Answer(report.position, torque, report.error, report.off)

    def place(self, position: float, first: float) -> float:
        step = (int(position - first) + 0x8000 & 0xFFFF) - 0x8000
        return self.scale.position(int(first) + step)

    def enter(self, bus: Link) -> Answer | None:
        self.exchange(bus, LEAVE)
        entered = self.exchange(bus, ENTER)
        if entered is not None and entered.off and self.has_state:
            self.exchange(bus, CLEAR)
            entered = self.exchange(bus, ENTER)
        return self._answer(entered)

    def leave(self, bus: Link) -> None:
        self.exchange(bus, LEAVE)
        if self.has_state:
            self.exchange(bus, CLEAR)

    def _may_have_state(self) -> bool:
        """Whether the lower half of the first byte identifies this drive on its bus."""
        others = (axis.node for axis in self.rig.axes if axis.drive == self.axis.drive)
        return not any(o != self.axis.node and o & 0x0F == self.axis.node for o in others)
