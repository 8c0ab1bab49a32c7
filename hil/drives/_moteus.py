"""moteus drives over CAN FD: position mode without a position; torque and watchdog in each frame.

Each cycle the host sends each drive one frame that writes the mode and its command, and asks for
mode, position, velocity, torque, fault and the drive's counter of milliseconds. Position mode acts
as torque mode: the position is NaN, and the factors of the terms of its law are zero.

- Each command contains the time for which it is valid: `watchdog`. Afterwards the drive enters the
  mode "timeout", which only a command of the mode "stopped" ends. Its torque there follows from
  `servo.timeout_mode` of its configuration: it must be 0, without torque. The default, 12, brakes.
- The request precedes the command in the frame. So the report shows a drive that is no longer in
  position mode before the command would switch it on again.
- The counter of milliseconds shows old and repeated reports, which are rejected, and a drive that
  was restarted: it would apply the next command.
- The largest torque is part of each command too, as a limit in the drive.
- A fault is latched in the drive until it is stopped. The loop stops such a drive, and keeps the
  fault until a reset is requested.
- Tools of the manufacturer use the number 0 in their identifiers, this host 125. Frames of others
  that write registers, or open a console, are foreign; those that only ask are not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import can

from hil.drives._cia402_following import MISFIT, Following
from hil.drives._cia402_state import LIMITED
from hil.drives._drive import AxisCheck, CycleFrame, FaultCode, Finding, Wanted
from hil.drives._moteus_frames import (
    ANSWER,
    COMMAND_LENGTH,
    FAULT,
    FIRMWARE,
    HOST,
    LIMITING,
    MAP,
    MODEL,
    POSITION,
    PREPARING,
    REPORT_LENGTH,
    SERIAL,
    TIMEOUT,
    TURNS,
    Codec,
    Report,
    commands,
    read_report,
)
from hil.drives._single_trial import Answer, AnsweringDrive, try_watchdog
from hil.drives._trial import SILENCE
from hil.drives._units import TurnScale, signed
from hil.errors import ArmError, DriveError, UnitError
from hil.links import Link

if TYPE_CHECKING:
    from hil.drives.feedback import Feedback
    from hil.settings import Axis, Rig

T = TypeVar("T")

ANSWER_TIME = 0.05
"""Time-out of an answer while a drive is prepared, s."""
ATTEMPTS = 3
"""Number of times that a request without an answer is sent."""
AT_REST = 0.05
"""Fraction of the limits of torque and speed below which a drive counts as at rest."""
OLDER = 200
"""Largest age of a report that was overtaken, ms; an older counter is that of a restart."""
REPEATED = 2.5e-3
"""Time after which the counter of a drive must have moved, s."""
LIMIT = 1.001
"""Limit in the drive, as a multiple of that of the axis: it must not act before the guard."""

_SURE = 2  # reports in position mode after which a drive counts as enabled
_MILLI = 1e3  # resolution at which torques are compared, per N m


def moteus_frames(node: int) -> tuple[CycleFrame, ...]:
    """Frames that cross the bus in each cycle for one drive.

    Parameters
    ----------
    node : int
        Number of the drive; the identifier of its answers has 11 bits where this is small.

    Returns
    -------
    tuple of CycleFrame
        Report and command.
    """
    return (
        CycleFrame("report", REPORT_LENGTH, False, fd=True, extended=node > 7),
        CycleFrame("command", COMMAND_LENGTH, True, fd=True, extended=True),
    )


class MoteusDrive(AnsweringDrive):
    """A moteus drive.

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
    scale : TurnScale
        Conversion between the drive's numbers and the joint.

    Raises
    ------
    RigError
        If the package `moteus` is not installed.
    """

    largest_identifier = 0x1FFFFFFF

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        super().__init__(axis, index, rig)
        self.scale = TurnScale(axis, TURNS)
        self.codec = Codec(axis.node)
        limit = LIMIT * axis.torque_limit / axis.gear
        torque, self._place = self.codec.torque(0.0, limit, axis.watchdog)
        self._torque = self._frame(bytearray(torque))
        self._stop = self._frame(self.codec.stop())
        margin = round(_MILLI * MISFIT * axis.torque_limit / axis.gear)
        self._followed: Callable[[], Following] = lambda: Following(
            margin, rig.loop.period, follows=False
        )
        self._prepared = False
        self._fault_before = 0
        self._forget()

    def _frame(self, data: bytes | bytearray) -> can.Message:
        return can.Message(
            arbitration_id=ANSWER | HOST << 8 | self.axis.node,
            data=data,
            is_extended_id=True,
            is_fd=True,
            bitrate_switch=True,
        )

    def _forget(self) -> None:
        self._entered, self._sure = False, 0
        self._last: Report | None = None
        self._last_time = 0.0
        self._following = self._followed()

    @property
    def identifiers(self) -> tuple[int, ...]:
        return (self.axis.node << 8 | HOST,)

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        return ANSWER | HOST << 8 | self.axis.node, HOST << 8 | self.axis.node

    @property
    def watched_identifiers(self) -> tuple[int, ...]:
        return tuple(
            bit | source << 8 | self.axis.node for source in range(0x80) for bit in (0, ANSWER)
        )

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether a frame to the drive writes registers or opens a console.

        Parameters
        ----------
        frame : can.Message
            A frame whose identifier is among `watched_identifiers`.

        Returns
        -------
        bool
            False for a frame that only asks, or answers.
        """
        return commands(frame.data)

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return moteus_frames(self.axis.node)

    # -- in the loop ---------------------------------------------------------------------------

    def command(self, wanted: Wanted, torque: float) -> can.Message:
        """Command frame of this cycle.

        Position mode is entered in cycles with READY, never with TORQUE: a drive that has left it
        is stopped, and stays so.

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
        works = wanted is Wanted.TORQUE and self._entered
        if works or (wanted is Wanted.READY and self._prepared):
            value = self.scale.shaft_torque(torque) if works else 0.0
            struct.pack_into("<f", self._torque.data, self._place, value)
            self._following.command(round(_MILLI * value))
            return self._torque
        self._following.command(0)
        if wanted is Wanted.RESET:
            self._fault_before = 0
        if wanted is not Wanted.TORQUE:
            self._entered, self._sure = False, 0
        return self._stop

    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        index, scale = self.index, self.scale
        report = read_report(frame.data)
        if report is None or not self._is_new(report, now):
            feedback.invalid[index] += 1
            return False
        gap = now - self._last_time
        self._last, self._last_time = report, now
        feedback.position[index] = scale.position(report.position)
        feedback.velocity[index] = scale.velocity(report.velocity)
        feedback.torque[index] = scale.torque(report.torque)
        feedback.status[index] = report.mode
        fault = report.fault if report.mode == FAULT else 0
        if report.mode == FAULT and not fault:
            fault = FaultCode.UNNAMED
        if self._entered:
            fault = fault or self._judge(report, gap)
            if fault:  # stays off until the next `prepare`
                self._entered = self._prepared = False
                self._fault_before = fault
        elif report.mode == POSITION and self._prepared:
            self._sure += 1
            self._entered = self._sure >= _SURE
            self._following = self._followed()
        fault = self._fault_before or fault
        feedback.fault[index] = fault
        feedback.enabled[index] = self._entered and not fault
        feedback.time[index] = now
        feedback.count[index] += 1
        return True

    def _judge(self, report: Report, gap: float) -> int:
        """Fault of a drive that was enabled."""
        if report.mode != POSITION:
            off = report.mode in (0, TIMEOUT, *PREPARING)
            return FaultCode.FELL if off else FaultCode.OTHER_MODE
        if gap > self.axis.watchdog:
            return FaultCode.FELL
        limits = LIMITED if report.code in LIMITING else 0
        return self._following.judge(limits, round(_MILLI * report.torque))

    def _is_new(self, report: Report, now: float) -> bool:
        """Whether a report is newer than the last one, by the counter of the drive."""
        if self._last is None:
            return True
        step = signed(report.clock - self._last.clock, 32)
        if step < -OLDER:
            if self._prepared:
                self._fault_before = FaultCode.RESTARTED
            self._entered = self._prepared = False
            return True
        return step > 0 or (step == 0 and now - self._last_time <= REPEATED)

    # -- before and after the loop -------------------------------------------------------------

    def inspect(self, bus: Link) -> list[AxisCheck]:
        if bus.silent:
            return [self._check("drive", Finding.UNKNOWN, cure="Nothing is sent in this mode.")]
        data = self._asked(bus, self.codec.ask(), bytes)
        if data is None:
            return [
                self._check(
                    "drive",
                    Finding.MISSING,
                    "a report",
                    "no report",
                    "Check power, cable, termination, both bit rates, and `node`.",
                )
            ]
        report = read_report(data)
        if report is None or not self._agrees(report, data):
            return [
                self._check(
                    "layout of a report",
                    Finding.WRONG,
                    "six registers in the order in which they were requested",
                    data.hex(),
                    "Install newer firmware. If a register is missing, the drive has no encoder "
                    "that it trusts: calibrate it.",
                )
            ]
        unknown = f"tested when the rig is armed, by {SILENCE * self.axis.watchdog:g} s of silence"
        return [
            self._check("drive", Finding.FOUND, "a report", f"mode {report.mode}"),
            self._identity(bus),
            self._timeout_mode(bus),
            self._check(
                "watchdog of the drive",
                Finding.UNKNOWN,
                f"{self.axis.watchdog:g} s",
                "part of each command",
                f"It is {unknown}.",
            ),
            *self._plausible(report),
        ]

    def _agrees(self, report: Report, data: bytes) -> bool:
        """Whether the package reads the same numbers in a report."""
        with suppress(Exception):
            values = self.codec.registers(data)
            return bool(
                values[0x000] == report.mode
                and abs(values[0x001] - TURNS * report.position) < 0.5 * TURNS
                and abs(values[0x002] - TURNS * report.velocity) < 0.5 * TURNS
                and values[0x003] == report.torque
                and values[0x00F] == report.code
            )
        return False

    def _identity(self, bus: Link) -> AxisCheck:
        def read(data: bytes) -> str | None:
            values = self.codec.registers(data)
            if not {MODEL, FIRMWARE, MAP, *SERIAL} <= set(values):
                return None
            version = int(values[FIRMWARE])
            text = ".".join(str(version >> 8 * k & 0xFF) for k in (2, 1, 0))
            serial = "".join(f"{int(values[k]) & 0xFFFFFFFF:08x}" for k in reversed(SERIAL))
            return (
                f"moteus model {int(values[MODEL]):#x}, firmware {text}, registers "
                f"{int(values[MAP])}, serial number {serial}"
            )

        found = self._asked(bus, self.codec.identity(), read)
        finding = Finding.UNKNOWN if found is None else Finding.FOUND
        return self._check("identity", finding, "", found or "not reported")

    def _timeout_mode(self, bus: Link) -> AxisCheck:
        """Mode that follows a timeout, from the console of the drive."""
        text, until = "", bus.clock.now() + 4.0 * ANSWER_TIME
        bus.send(self._frame(self.codec.write("conf get servo.timeout_mode\n")))
        while "\n" not in text and bus.clock.now() < until:
            text += self._asked(bus, self.codec.read(), self.codec.text_of) or ""
        came = text.strip().splitlines()[0] if text.strip() else "no answer"
        try:
            finding = Finding.FOUND if float(came) == 0.0 else Finding.WRONG
        except ValueError:
            finding = Finding.WRONG
        return self._check(
            "mode after a timeout (servo.timeout_mode)",
            finding,
            "0, stopped",
            came,
            "Otherwise it keeps a torque when commands cease. In a console of the drive: "
            "`conf set servo.timeout_mode 0`, then `conf write`.",
        )

    def _plausible(self, report: Report) -> list[AxisCheck]:
        """Check that numbers of a drive at rest are plausible in the units of the rig file."""
        axis, scale = self.axis, self.scale
        low, high = axis.position_limits
        position = scale.position(report.position)
        cure = (
            "Bring the joint to rest within its limits, or correct `offset`, `direction`, and the "
            "reduction of the motor, or `motor_position` of the drive."
        )

        def check(what: str, right: bool, expected: str, came: float) -> AxisCheck:
            finding = Finding.FOUND if right else Finding.WRONG
            return self._check(what, finding, expected, f"{came:.4g}", cure)

        torque, speed = scale.torque(report.torque), scale.velocity(report.velocity)
        rest, slow = AT_REST * axis.torque_limit, AT_REST * axis.speed_limit
        range_ = f"{low:g} to {high:g}"
        return [
            check("position, rad (m)", low <= position <= high, range_, position),
            check(
                "torque without command, N m (N)", abs(torque) <= rest, f"at most {rest:g}", torque
            ),
            check("speed at rest, rad/s (m/s)", abs(speed) <= slow, f"at most {slow:g}", speed),
        ]

    def prepare(self, bus: Link) -> list[AxisCheck]:
        """Stop the drive, inspect it, then test its watchdog by silence at a small torque, twice.

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
            If the drive does not enter the mode "timeout" when commands cease, keeps its torque, or
            has another mode after a timeout than "stopped".
        DriveError, UnitError
            See `Drive.prepare`.
        """
        axis = self.axis
        self._refuse_silence(bus)
        self._prepared, self._fault_before = False, 0
        self._forget()
        before = self._asked(bus, self.codec.ask(), read_report)
        if before is not None and before.mode != FAULT:
            self._asked(bus, self.codec.stop(), read_report)
        checks = self.inspect(bus)
        for check in checks:
            if check.finding in (Finding.MISSING, Finding.WRONG):
                kind: type[DriveError | UnitError | ArmError] = UnitError
                if check.finding is Finding.MISSING or check.what.startswith("layout"):
                    kind = DriveError
                elif check.what.startswith("mode after"):
                    kind = ArmError
                raise kind(
                    f"axis `{axis.name}`, node {axis.node}, {check.what}",
                    expected=check.expected,
                    came=check.came,
                    cure=check.cure,
                )
        checks = [check for check in checks if not check.what.startswith("watchdog")]
        if before is not None and before.mode == FAULT:
            # The loop shows an earlier fault until a reset is requested.
            self._fault_before = before.fault or FaultCode.UNNAMED
            return [*checks, self._check("watchdog in force, s", Finding.UNKNOWN, "", _FAULTY)]
        checks += try_watchdog(self, bus)
        self._forget()
        self._prepared = True
        return checks

    def reset(self, bus: Link) -> None:
        """Clear a fault by a command of the mode "stopped".

        Parameters
        ----------
        bus : Link
            The open bus.
        """
        self._asked(bus, self.codec.stop(), read_report)

    def release(self, bus: Link) -> None:
        if bus.silent:
            return
        self._entered = False
        stop = self.codec.stop()
        # Both are sent in any case: one may be lost.
        answers = [self._asked(bus, stop, read_report, 1, 0.01) for _ in range(2)]
        if not any(answer is not None and answer.mode in (0, FAULT) for answer in answers):
            raise DriveError(
                f"axis `{self.axis.name}`",
                expected="an answer to the command that stops the drive",
                came="no answer to two of these commands",
                cure="Check the drive and its wiring before anyone reaches into the rig.",
            )

    def _asked(
        self,
        bus: Link,
        data: bytes,
        read: Callable[[bytes], T | None],
        attempts: int = ATTEMPTS,
        timeout: float = ANSWER_TIME,
    ) -> T | None:
        """Send a frame, and wait for an answer in which `read` finds something."""
        frame, (reports,) = self._frame(data), self.identifiers
        for _ in range(attempts):
            while bus.receive() is not None:
                pass  # discard earlier frames
            bus.send(frame)
            until = bus.clock.now() + timeout
            while (came := bus.receive(until)) is not None:
                if came.arbitration_id == frame.arbitration_id:
                    bus.echoes = True  # some buses echo sent frames
                if came.arbitration_id != reports:
                    continue
                bus.echoes = bool(bus.echoes)
                with suppress(Exception):  # the package raises several types for invalid data
                    found = read(bytes(came.data))
                    if found is not None:
                        return found
        return None

    # -- for the test of the watchdog ------------------------------------------------------------

    @property
    def resolution(self) -> TurnScale:
        return self.scale

    @property
    def cure(self) -> str:
        return (
            "The drive ignores the time in its commands (register 0x027): a killed controller "
            "would leave its last torque acting. Install newer firmware."
        )

    def ask(self, bus: Link, torque: float, attempts: int, timeout: float) -> Answer | None:
        data = bytearray(self._torque.data)
        struct.pack_into("<f", data, self._place, self.scale.shaft_torque(torque))
        report = self._asked(bus, bytes(data), read_report, attempts, timeout)
        # The first answer shows the mode before the command.
        after = self._asked(bus, self.codec.ask(), read_report, attempts, timeout)
        if report is None or after is None:
            return None
        off = after.mode not in (POSITION, *PREPARING)
        return Answer(report.position, self.scale.torque(after.torque), after.fault, off)

    def place(self, position: float, first: float) -> float:
        return self.scale.position(position)

    def enter(self, bus: Link) -> Answer | None:
        self._asked(bus, self.codec.stop(), read_report)
        return self.ask(bus, 0.0, ATTEMPTS, ANSWER_TIME)

    def leave(self, bus: Link) -> None:
        self._asked(bus, self.codec.stop(), read_report)


_FAULTY = "not tested: the drive has a fault"
