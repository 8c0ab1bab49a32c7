"""ODrive drives by the protocol CANSimple: torque control with a watchdog of the axis.

At the start of each cycle the host requests from each drive, by remote frames, its torques and its
estimates of position and velocity; then it sends each its torque. The state of the axis and its
errors are in the heartbeat, which the host requests four times within each watchdog time.

- A drive keeps its last torque until its watchdog expires; then it disarms, and keeps the error
  WATCHDOG_TIMER_EXPIRED until errors are cleared. The watchdog is set by USB, or by the host where
  the rig file has its `endpoints`, whose numbers depend on the firmware. It is tested by silence in
  any case, twice and at a torque.
- The watchdog may expire while the axis is idle too. So the host clears this error, and no other,
  before it enables the axis.
- Torques contain the target of the controller beside the estimate: a drive in another control mode
  has another target than it was sent.
- A restarted drive is idle, and ignores torques.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import can

from hil.drives._cia402_following import MISFIT, Following
from hil.drives._cia402_state import LIMITED
from hil.drives._drive import AxisCheck, CycleFrame, FaultCode, Finding, Wanted
from hil.drives._odrive_frames import (
    CLOSED_LOOP,
    FLOAT,
    FLOATS,
    IDLE,
    MODES,
    ORDERS,
    PASSTHROUGH,
    READ,
    SDO,
    STATE,
    TORQUE_CONTROL,
    WATCHDOG_EXPIRED,
    WRITE,
    Heartbeat,
    Message,
    identifier,
    read_heartbeat,
)
from hil.drives._single_trial import Answer, AnsweringDrive, try_watchdog
from hil.drives._trial import SILENCE
from hil.drives._units import TurnScale
from hil.errors import DriveError, UnitError
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
OFTEN = 4.0
"""Heartbeats that are requested within each watchdog time."""

_MILLI = 1e3  # resolution at which torques are compared, per N m
_SURE = 2  # heartbeats in closed loop after which a drive counts as enabled
_ENTRIES = 12  # requests of closed loop, as some may be lost
_NEVER = -math.inf


def odrive_frames() -> tuple[CycleFrame, ...]:
    """Frames that cross the bus in each cycle for one drive, without its requests.

    Returns
    -------
    tuple of CycleFrame
        Torques, estimates and command.
    """
    return (
        CycleFrame("torques", 8, to_drive=False),
        CycleFrame("estimates", 8, to_drive=False),
        CycleFrame("command", 4, to_drive=True),
    )


class ODriveDrive(AnsweringDrive):
    """An ODrive, which has one axis or several with a number each.

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
    """

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        super().__init__(axis, index, rig)
        self.scale = TurnScale(axis)
        self._torque = self._frame(Message.INPUT_TORQUE, bytearray(FLOAT.size))
        self._states = {
            state: self._frame(Message.AXIS_STATE, STATE.pack(state))
            for state in (IDLE, CLOSED_LOOP)
        }
        self._clear = self._frame(Message.CLEAR_ERRORS, bytes(1))
        self._heartbeat = (self._request(Message.HEARTBEAT),)
        every = int(axis.watchdog / (OFTEN * rig.loop.period))
        self._every = max(1, every)
        self._margin = round(_MILLI * MISFIT * axis.torque_limit / axis.gear)
        self._prepared = False
        self._fault_before = 0
        self._forget()

    def _frame(self, message: Message, data: bytes | bytearray) -> can.Message:
        number = identifier(self.axis.node, message)
        return can.Message(arbitration_id=number, data=data, is_extended_id=False)

    def _request(self, message: Message) -> can.Message:
        return _request(self.axis.node, message)

    def _forget(self) -> None:
        self._entered, self._sure, self._entries, self._phase = False, 0, 0, 0
        self._last = Heartbeat(0, IDLE)
        self._heard = _NEVER  # instant of the last heartbeat
        self._measured_torque = math.nan  # at the joint
        period = self.rig.loop.period
        self._measured = Following(self._margin, period, follows=False)
        self._target = Following(self._margin, period, follows=False)

    @property
    def identifiers(self) -> tuple[int, ...]:
        found = Message.HEARTBEAT, Message.TORQUES, Message.ESTIMATES
        return tuple(identifier(self.axis.node, message) for message in found)

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        # The first is that of the command. The last ones are answers outside of the loop.
        others = Message.VERSION, Message.ERROR, Message.TX_SDO
        ours = [Message.INPUT_TORQUE, *ORDERS, *others]
        return tuple(dict.fromkeys(identifier(self.axis.node, message) for message in ours))

    @property
    def watched_identifiers(self) -> tuple[int, ...]:
        return tuple(
            identifier(self.axis.node, message) for message in ORDERS if message != Message.ADDRESS
        )

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return odrive_frames()

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        """Requests of torques and estimates.

        Parameters
        ----------
        rig : Rig
            The whole rig.

        Returns
        -------
        tuple of can.Message
            Two remote frames for each of its ODrive axes.
        """
        return tuple(
            _request(axis.node, message)
            for axis in rig.axes
            if axis.drive == "odrive"
            for message in (Message.TORQUES, Message.ESTIMATES)
        )

    # -- in the loop ---------------------------------------------------------------------------

    def asides(self, cycle: int) -> tuple[can.Message, ...]:
        """Request of the heartbeat, in some of the cycles.

        Parameters
        ----------
        cycle : int
            Number of the cycle.

        Returns
        -------
        tuple of can.Message
            Messages that are reused.
        """
        return () if (cycle + self.index) % self._every else self._heartbeat

    def command(self, wanted: Wanted, torque: float) -> can.Message:
        """Command frame of this cycle.

        Closed loop is requested in cycles with READY, never with TORQUE: a drive that has left it
        stays off. Commands of zero torque separate the requests, as they feed the watchdog.

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
        value = self.scale.shaft_torque(torque) if works else 0.0
        FLOAT.pack_into(self._torque.data, 0, value)
        asked = round(_MILLI * value)
        self._measured.command(asked)
        self._target.command(asked)
        self._phase += 1
        if wanted is Wanted.TORQUE:
            return self._torque
        if wanted is Wanted.READY:
            needs = self._prepared and self._last.state != CLOSED_LOOP
            if not needs or self._entries >= _ENTRIES or self._phase % 2:
                return self._torque
            if self._last.error == WATCHDOG_EXPIRED:
                self._last = Heartbeat(0, self._last.state)
                return self._clear
            self._entries += 1
            return self._states[CLOSED_LOOP]
        if wanted is Wanted.RESET:
            self._fault_before = 0
        self._entered, self._sure, self._entries = False, 0, 0
        if wanted is Wanted.RESET and self._phase % 4 == 0:
            return self._clear
        return self._torque if self._phase % 2 else self._states[IDLE]

    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        index, data = self.index, frame.data
        message = frame.arbitration_id & 0x1F
        if message == Message.HEARTBEAT:
            heartbeat = read_heartbeat(data)
            if heartbeat is None:
                feedback.invalid[index] += 1
            else:
                self._take_heartbeat(heartbeat, now)
            return False
        if len(data) != FLOATS.size:
            feedback.invalid[index] += 1
            return False
        first, second = FLOATS.unpack(data)
        if not (math.isfinite(first) and math.isfinite(second)):
            feedback.invalid[index] += 1
            return False
        if message == Message.TORQUES:
            self._measured_torque = self.scale.torque(second)
            if self._entered:
                self._judge(first, second)
            return False
        # Estimates complete a report: nothing else changes the feedback.
        feedback.torque[index] = self._measured_torque
        feedback.status[index] = self._last.state
        feedback.position[index] = self.scale.position(first)
        feedback.velocity[index] = self.scale.velocity(second)
        if self._entered and now - self._heard > self.axis.watchdog:
            self._fail(FaultCode.MUTE)
        fault = self._fault_before or (self._last.error & ~WATCHDOG_EXPIRED)
        feedback.fault[index] = fault
        feedback.enabled[index] = self._entered and not fault
        feedback.time[index] = now
        feedback.count[index] += 1
        return True

    def _take_heartbeat(self, heartbeat: Heartbeat, now: float) -> None:
        self._last, self._heard = heartbeat, now
        if self._entered:
            if heartbeat.error:
                self._fail(heartbeat.error)
            elif heartbeat.state != CLOSED_LOOP:
                off = heartbeat.state in (0, IDLE)
                self._fail(FaultCode.FELL if off else FaultCode.OTHER_MODE)
        elif heartbeat.state == CLOSED_LOOP and self._prepared and self._entries:
            self._sure += 1
            self._entered = self._sure >= _SURE and not heartbeat.error

    def _judge(self, target: float, measured: float) -> None:
        """Compare the target and the estimate of the torque with the commands."""
        if self._target.judge(LIMITED, _number(target)):
            self._fail(FaultCode.NOT_FOLLOWING)
        elif fault := self._measured.judge(0, _number(measured)):
            self._fail(fault)

    def _fail(self, fault: int) -> None:
        """Stay off until the next `prepare`."""
        self._entered = self._prepared = False
        self._fault_before = self._fault_before or fault

    # -- before and after the loop -------------------------------------------------------------

    def inspect(self, bus: Link) -> list[AxisCheck]:
        if bus.silent:
            return [self._check("drive", Finding.UNKNOWN, cure="Nothing is sent in this mode.")]
        heartbeat = self._asked(bus, Message.HEARTBEAT, read_heartbeat)
        if heartbeat is None:
            return [
                self._check(
                    "drive",
                    Finding.MISSING,
                    "a heartbeat",
                    "no answer",
                    "Check power, cable, termination, bit rate, and `node` (axis.config.can."
                    "node_id). The drive must have firmware 0.6 or newer.",
                )
            ]
        found = f"state {heartbeat.state}" + f", error {heartbeat.error:#x}" * bool(heartbeat.error)
        return [
            self._check("drive", Finding.FOUND, "a heartbeat", found),
            self._identity(bus),
            self._watchdog(),
            *self._plausible(bus),
        ]

    def _watchdog(self) -> AxisCheck:
        return self._check(
            "watchdog of the drive",
            Finding.UNKNOWN,
            f"{self.axis.watchdog:g} s",
            "set by `endpoints` when the rig is armed" if self.axis.endpoints else "not read",
            f"It is tested when the rig is armed, by {SILENCE * self.axis.watchdog:g} s of "
            "silence.",
        )

    def _identity(self, bus: Link) -> AxisCheck:
        version = self._asked(bus, Message.VERSION, lambda data: tuple(data[:8]))
        serial = self._asked(bus, Message.ADDRESS, _serial)
        if version is None or len(version) < 7:
            return self._check("identity", Finding.UNKNOWN, "", "not reported")
        hardware, firmware = (".".join(map(str, version[k : k + 3])) for k in (1, 4))
        came = f"ODrive hardware {hardware}, firmware {firmware}"
        came += "" if serial is None else f", serial number {serial}"
        needed = self.axis.endpoints.get("firmware", firmware)
        return self._check(
            "identity",
            Finding.FOUND if needed == firmware else Finding.WRONG,
            f"firmware {needed}" if self.axis.endpoints else "",
            came,
            ""
            if needed == firmware
            else "Endpoints depend on the firmware: take them from its flat_endpoints.json.",
        )

    def _plausible(self, bus: Link) -> list[AxisCheck]:
        """Check that numbers of a drive at rest are plausible in the units of the rig file."""
        axis, scale = self.axis, self.scale
        cure = (
            "Bring the joint to rest within its limits, or correct `offset`, `direction`, and the "
            "reduction of the motor, or the encoder of the drive."
        )
        estimates = self._asked(bus, Message.ESTIMATES, _floats)
        torques = self._asked(bus, Message.TORQUES, _floats)
        if estimates is None or torques is None:
            what = "estimates of position" if estimates is None else "torques"
            return [
                self._check(
                    what,
                    Finding.MISSING,
                    "finite numbers",
                    "no answer, or a number that is not finite",
                    "Calibrate the encoder; `Get_Torques` needs firmware 0.6.",
                )
            ]
        low, high = axis.position_limits
        rest, slow = AT_REST * axis.torque_limit, AT_REST * axis.speed_limit

        def check(what: str, right: bool, expected: str, came: float) -> AxisCheck:
            finding = Finding.FOUND if right else Finding.WRONG
            return self._check(what, finding, expected, f"{came:.4g}", cure)

        position, speed = scale.position(estimates[0]), scale.velocity(estimates[1])
        torque = scale.torque(torques[1])
        span, most = f"{low:g} to {high:g}", "at most {:g}"
        name = "torque without command, N m (N)"
        return [
            check("position, rad (m)", low <= position <= high, span, position),
            check(name, abs(torque) <= rest, most.format(rest), torque),
            check("speed at rest, rad/s (m/s)", abs(speed) <= slow, most.format(slow), speed),
        ]

    def prepare(self, bus: Link) -> list[AxisCheck]:
        """Switch the axis off, inspect it, set its watchdog, and test that by silence, twice.

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
            If the axis does not disarm when commands cease, or keeps its torque.
        DriveError, UnitError
            See `Drive.prepare`.
        """
        axis = self.axis
        self._refuse_silence(bus)
        self._prepared, self._fault_before = False, 0
        self._forget()
        self._order(bus, IDLE)
        checks = self.inspect(bus)
        for check in checks:
            if check.finding in (Finding.MISSING, Finding.WRONG):
                physical = check.finding is Finding.WRONG and check.what != "identity"
                raise (UnitError if physical else DriveError)(
                    f"axis `{axis.name}`, node {axis.node}, {check.what}",
                    expected=check.expected,
                    came=check.came,
                    cure=check.cure,
                )
        checks = [check for check in checks if not check.what.startswith("watchdog")]
        if axis.endpoints:
            checks.append(self._set_watchdog(bus))
        before = self._asked(bus, Message.HEARTBEAT, read_heartbeat) or Heartbeat(0, IDLE)
        if before.error & ~WATCHDOG_EXPIRED:
            # The loop shows an earlier fault until a reset is requested.
            self._fault_before = before.error
            return [*checks, self._check("watchdog in force, s", Finding.UNKNOWN, "", _FAULTY)]
        checks += try_watchdog(self, bus)
        self._forget()
        self._prepared = True
        return checks

    def _set_watchdog(self, bus: Link) -> AxisCheck:
        """Write time and enabling of the watchdog by their endpoints, and read them back."""
        wanted = (
            ("watchdog_timeout", FLOAT.pack(self.axis.watchdog)),
            ("enable_watchdog", b"\x01".ljust(4, b"\x00")),
        )
        for name, value in wanted:
            number = self.axis.endpoints[name]
            bus.send(self._frame(Message.RX_SDO, SDO.pack(WRITE, number, value)))
            came = self._endpoint(bus, number)
            size = FLOAT.size if name == "watchdog_timeout" else 1
            if came is None or came[:size] != value[:size]:
                raise DriveError(
                    f"axis `{self.axis.name}`, node {self.axis.node}, endpoint {number} (`{name}`)",
                    expected=f"the value that was written, {value[:size].hex()}",
                    came="no answer" if came is None else came[:size].hex(),
                    cure="Take the number from flat_endpoints.json of the drive's firmware.",
                )
        limit = f"{self.axis.watchdog:g}"
        return self._check("time-out of the watchdog, s", Finding.FOUND, limit, limit)

    def _endpoint(self, bus: Link, number: int) -> bytes | None:
        """Value of an endpoint."""

        def read(data: bytes) -> bytes | None:
            if len(data) < 5:
                return None
            _, endpoint = struct.unpack_from("<BH", data)
            return data[4:].ljust(4, b"\x00") if endpoint == number else None

        question = self._frame(Message.RX_SDO, SDO.pack(READ, number, bytes(4)))
        return self._asked(bus, Message.TX_SDO, read, question)

    def reset(self, bus: Link) -> None:
        """Clear the errors of the axis.

        Parameters
        ----------
        bus : Link
            The open bus.
        """
        self._order(bus, IDLE)
        bus.send(self._clear)
        self._asked(bus, Message.HEARTBEAT, lambda data: data)

    def release(self, bus: Link) -> None:
        if bus.silent:
            return
        self._entered = False
        FLOAT.pack_into(self._torque.data, 0, 0.0)
        for _ in range(2):  # one may be lost
            bus.send(self._torque)
            if self._order(bus, IDLE, attempts=1, timeout=0.01):
                return
        raise DriveError(
            f"axis `{self.axis.name}`",
            expected="a heartbeat of an idle axis",
            came="none after two requests of this state",
            cure="Check the drive and its wiring before anyone reaches into the rig.",
        )

    def _order(
        self, bus: Link, state: int, attempts: int = ATTEMPTS, timeout: float = ANSWER_TIME
    ) -> bool:
        """Request a state, and return whether the axis is in it afterwards."""
        for _ in range(attempts):
            order = self._states[state]
            found = self._asked(
                bus, Message.HEARTBEAT, read_heartbeat, attempts=1, timeout=timeout, order=order
            )
            if found is not None and found.state == state:
                return True
        return False

    def _asked(
        self,
        bus: Link,
        message: Message,
        read: Callable[[bytes], T | None],
        question: can.Message | None = None,
        attempts: int = ATTEMPTS,
        timeout: float = ANSWER_TIME,
        order: can.Message | None = None,
    ) -> T | None:
        """Request a message, and wait for one in which `read` finds something.

        `question`: another request than a remote frame. `order`: a frame that precedes it.
        """
        wanted = identifier(self.axis.node, message)
        for _ in range(attempts):
            while bus.receive() is not None:
                pass  # discard earlier frames
            if order is not None:
                bus.send(order)
            bus.send(question or self._request(message))
            until = bus.clock.now() + timeout
            while (came := bus.receive(until)) is not None:
                if order is not None and came.arbitration_id == order.arbitration_id:
                    bus.echoes = True  # some buses echo sent frames
                if came.arbitration_id != wanted:
                    continue
                if order is not None:
                    bus.echoes = bool(bus.echoes)
                with suppress(struct.error):
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
            f"Set axis.config.watchdog_timeout = {self.axis.watchdog:g} and enable_watchdog = True "
            "by USB, and save the configuration; or give their `endpoints` in the rig file."
        )

    def ask(self, bus: Link, torque: float, attempts: int, timeout: float) -> Answer | None:
        for _ in range(attempts):
            FLOAT.pack_into(self._torque.data, 0, self.scale.shaft_torque(torque))
            bus.send(self._torque)
            estimates = self._asked(bus, Message.ESTIMATES, _floats, None, 1, timeout)
            torques = self._asked(bus, Message.TORQUES, _floats, None, 1, timeout)
            state = self._asked(bus, Message.HEARTBEAT, read_heartbeat, None, 1, timeout)
            if estimates is not None and torques is not None and state is not None:
                measured = self.scale.torque(torques[1])
                off = state.state != CLOSED_LOOP
                return Answer(estimates[0], measured, state.error, off)
        return None

    def place(self, position: float, first: float) -> float:
        return self.scale.position(position)

    def enter(self, bus: Link) -> Answer | None:
        mode = MODES.pack(TORQUE_CONTROL, PASSTHROUGH)
        self._order(bus, IDLE)
        bus.send(self._frame(Message.CONTROLLER_MODE, mode))
        FLOAT.pack_into(self._torque.data, 0, 0.0)
        for _ in range(ATTEMPTS):
            bus.send(self._torque)
            bus.send(self._clear)
            if self._order(bus, CLOSED_LOOP, 1):
                break
        return self.ask(bus, 0.0, ATTEMPTS, ANSWER_TIME)

    def leave(self, bus: Link) -> None:
        self._order(bus, IDLE)
        bus.send(self._torque)
        bus.send(self._clear)


def _request(node: int, message: Message) -> can.Message:
    """Request of a message."""
    return can.Message(
        arbitration_id=identifier(node, message), is_extended_id=False, is_remote_frame=True, dlc=8
    )


def _number(torque: float) -> int:
    """Torque in thousandths of a N m, within 32 bits."""
    return round(_MILLI * max(-1e6, min(1e6, torque)))


def _floats(data: bytes) -> tuple[float, float] | None:
    """Two numbers; None if they are not finite."""
    first, second = FLOATS.unpack(data)
    return (first, second) if math.isfinite(first) and math.isfinite(second) else None


def _serial(data: bytes) -> str | None:
    """Serial number in an answer to the request of the address."""
    return data[6:0:-1].hex() if len(data) >= 7 else None


_FAULTY = "not tested: the drive has an error"
