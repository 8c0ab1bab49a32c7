"""CiA 402 drives over CANopen in cyclic synchronous torque mode.

Each cycle the host sends SYNC; every drive answers with its first transmitted process data object
(statusword, position, torque), sampled at the SYNC. The host then sends each drive its first
received one (controlword, target torque), which is applied at once.

Before the first torque the drive is given a watchdog of its own and what it shall do when that
expires. Two exist in CiA 301, and all that the drive has are set: the event timer of the received
process data (0x1400:5), which watches the commands themselves, and the heartbeat consumer
(0x1016), which watches the heartbeat that the loop sends beside SYNC. Both begin to watch with
the first frame, so drives may be prepared one after another. A drive that has neither is refused.
"""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import can

from hil.bus import Bus
from hil.drives._cia402_state import (
    REMOTE,
    VOLTAGE_ENABLED,
    Controlword,
    DriveState,
    next_controlword,
    state_of,
)
from hil.drives._drive import AxisCheck, CycleFrame, Drive, FaultCode, Finding, Wanted
from hil.drives._network import Nmt, SdoSession
from hil.drives.units import AxisScale, Turns, limit_per_mille, signed
from hil.errors import ArmError, DriveError, UnitError

if TYPE_CHECKING:
    from hil.drives.feedback import Feedback
    from hil.rig import Axis, Rig

HOST_NODE = 0x7F
"""Node number under which the loop sends its heartbeat; no drive may have it."""

SYNC_IDENTIFIER = 0x080
TORQUE_MODE = 10
"""Cyclic synchronous torque in 0x6060; its bit in 0x6502 is one lower."""

SETTLE = 0.2
"""Time that the drive may take to change mode or to leave a fault, s."""

_POSITION = "position (0x6064), rad (m)"
_INVALID_PDO, _NO_REMOTE = 1 << 31, 1 << 30
_COMMAND_MAP = (0x60400010, 0x60710010)
_REPORT_MAP = (0x60410010, 0x60640020, 0x60770010)
_COMMAND = struct.Struct("<Hh")
_REPORT = struct.Struct("<Hih")
_EMERGENCY = struct.Struct("<H")
_LEAP = 1 << 30  # counts that no joint moves between two reports: a report with a wrong bit
_SURE = 3  # frames with "enable operation" in a row after which a fall was not asked for

# Reactions to a lost host (0x6007), best first: power off, quick stop, fault.
_ABORT_OPTIONS = (2, 3, 1)


class Cia402Drive(Drive):
    """A CiA 402 drive.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    index : int
        Its place among the axes.
    rig : Rig
        The whole rig.

    Attributes
    ----------
    scale : AxisScale
        Between the drive's numbers and the joint; made anew from what the drive says of its
        torques when it is prepared.
    state : DriveState
        State that it reported last.
    """

    def __init__(self, axis: Axis, index: int, rig: Rig) -> None:
        super().__init__(axis, index, rig)
        node = axis.node
        self._report, self._emergency, self._guarding = 0x180 + node, 0x080 + node, 0x700 + node
        self.scale = AxisScale(axis)
        self._turns = Turns(32)
        self._prepared = False
        self._data = bytearray(_COMMAND.size)
        self._message = can.Message(
            arbitration_id=0x200 + node, data=self._data, is_extended_id=False
        )
        self._forget()

    def _forget(self) -> None:
        self.state = DriveState.UNKNOWN
        self._latched = 0  # reason for which only `prepare` lets the drive be enabled again
        self._emergency_code = 0
        self._edge = False
        self._asked = 0
        self._turns.forget()
        self._last_counts: int | None = None

    @property
    def identifiers(self) -> tuple[int, ...]:
        return self._report, self._emergency, self._guarding

    @property
    def sent_identifiers(self) -> tuple[int, ...]:
        node = self.axis.node
        return 0x200 + node, 0x580 + node, 0x600 + node

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return (
            CycleFrame("report (TPDO1)", _REPORT.size, to_drive=False),
            CycleFrame("command (RPDO1)", _COMMAND.size, to_drive=True),
        )

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        """SYNC, and the heartbeat of the host as an operational node.

        Parameters
        ----------
        rig : Rig
            The whole rig.

        Returns
        -------
        tuple of can.Message
            The two frames.
        """
        return (
            can.Message(arbitration_id=SYNC_IDENTIFIER, is_extended_id=False),
            can.Message(arbitration_id=0x700 + HOST_NODE, data=b"\x05", is_extended_id=False),
        )

    # -- in the loop ---------------------------------------------------------------------------

    def command(self, wanted: Wanted, torque: float) -> can.Message:
        state = self.state
        # Led to power while READY is wanted, never while torque is: a drive that has left it
        # stays so, even if its fault has gone by itself.
        fell = wanted is Wanted.TORQUE and state is not DriveState.OPERATION_ENABLED
        if self._latched or fell:
            wanted = Wanted.OFF
        if wanted is Wanted.RESET and state not in _FAULTS:
            self._emergency_code = 0  # its end may have been lost
        self._edge = wanted is Wanted.RESET and not self._edge
        word = next_controlword(state, wanted, self._edge)
        self._asked = self._asked + 1 if word == Controlword.ENABLE_OPERATION else 0
        target = 0
        if wanted is Wanted.TORQUE and state is DriveState.OPERATION_ENABLED:
            target = self.scale.per_mille(torque)
        _COMMAND.pack_into(self._data, 0, word, target)
        return self._message

    def receive(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        identifier = frame.arbitration_id
        if identifier == self._report:
            return self._take_report(frame, now, feedback)
        index, data = self.index, frame.data
        if identifier == self._emergency and len(data) == 8:
            code = _EMERGENCY.unpack_from(data)[0]
            if code & 0xFF00:
                self._emergency_code = feedback.fault[index] = code
            else:  # error reset
                self._emergency_code = 0
        elif identifier == self._guarding and len(data) == 1:
            # a boot-up frame: power was cycled, and nothing of what was written is left
            if data[0] & 0x7F == 0:
                self._latch(FaultCode.RESTARTED, feedback)
            elif data[0] & 0x7F != 5:
                self._latch(FaultCode.NOT_OPERATIONAL, feedback)
        elif identifier in self.identifiers:
            feedback.invalid[index] += 1
        return False

    def _latch(self, code: FaultCode, feedback: Feedback) -> None:
        if not self._prepared:
            return  # while others drive, what drives do is their affair
        if self._latched != FaultCode.RESTARTED:
            self._latched = code
        self.state = DriveState.UNKNOWN
        feedback.fault[self.index] = self._latched
        feedback.enabled[self.index] = False

    def _take_report(self, frame: can.Message, now: float, feedback: Feedback) -> bool:
        index = self.index
        if len(frame.data) != _REPORT.size:
            feedback.invalid[index] += 1
            return False
        status, counts, per_mille = _REPORT.unpack_from(frame.data)
        last = self._last_counts
        if last is not None and not -_LEAP < signed(counts - last, 32) < _LEAP:
            feedback.invalid[index] += 1
            return False
        self._last_counts = counts
        state = state_of(status)
        if (
            self.state is DriveState.OPERATION_ENABLED
            and self._prepared
            and self._asked >= _SURE
            and state not in _EXPECTED_AFTER_ENABLED
            and not self._latched
        ):
            self._latched = FaultCode.FELL
        self.state = state
        fault = self._latched or self._emergency_code
        if not fault and state in _FAULTS:
            fault = FaultCode.UNNAMED
        on = state is DriveState.OPERATION_ENABLED and not self._latched
        feedback.position[index] = self.scale.position(self._turns.take(counts))
        feedback.torque[index] = self.scale.torque(per_mille)
        feedback.status[index] = status
        feedback.enabled[index] = on and status & _READY_BITS == _READY_BITS
        feedback.fault[index] = fault
        feedback.time[index] = now
        feedback.count[index] += 1
        return True

    # -- before and after the loop -------------------------------------------------------------

    def inspect(self, bus: Bus) -> list[AxisCheck]:
        if bus.silent:
            return [self._check("drive", Finding.UNKNOWN, cure="Nothing is sent in this mode.")]
        node = SdoSession(bus, self.axis.name, self.axis.node)
        try:
            device = node.find(0x1000, 0, "I")
        except DriveError as error:
            return [
                self._check("drive", Finding.MISSING, "an answer to SDO", error.came, error.cure)
            ]
        checks = [
            self._compare(
                "profile of the device (0x1000)",
                402,
                None if device is None else device & 0xFFFF,
                "Only drives of profile CiA 402 can be driven so; check the node number.",
            )
        ]
        checks += self._inspect_identity(node)
        checks += self._inspect_mode(node)
        checks += self._inspect_torque(node)
        checks += self._inspect_position(node)
        checks += self._inspect_watchdog(node)
        return checks

    def prepare(self, bus: Bus) -> list[AxisCheck]:
        """Switch the drive off, inspect it, write what the loop needs, read each value back.

        Nothing that an earlier run wrote is relied upon: a drive that was power-cycled in between
        has lost it. A fault that the drive has is left alone; the loop reports and resets it.

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
            If the drive has no watchdog, or no reaction to its expiry that removes torque.
        DriveError, UnitError
            See `Drive.prepare`.
        """
        if bus.silent:
            raise ArmError(
                f"axis `{self.axis.name}`",
                expected="a mode in which frames are sent",
                came="one that only listens",
                cure="Use `concur-rig drive`.",
            )
        self._forget()
        self._prepared = False
        with suppress(DriveError):  # a stopped node does not hear it
            SdoSession(bus, self.axis.name, self.axis.node, attempts=1).put(
                0x6040, 0, "H", Controlword.DISABLE_VOLTAGE
            )
        node = SdoSession(bus, self.axis.name, self.axis.node)
        node.command(Nmt.PRE_OPERATIONAL)
        # The position is judged below as the loop will hear it.
        checks = [check for check in self.inspect(bus) if check.what != _POSITION]
        self._refuse(checks)
        self._switch_off(node, bus)
        self._set_mode(node, bus)
        checks += self._set_limit(node)
        checks += self._set_watchdog(node)
        self._map(node, 0x1400, 0x200, _COMMAND_MAP, 255)
        self._map(node, 0x1800, 0x180, _REPORT_MAP, 1)
        checks.append(self._first_report(node, bus))
        self._prepared = True
        return checks

    def release(self, bus: Bus) -> None:
        if bus.silent:
            return
        bus.send(self.command(Wanted.OFF, 0.0))
        node = SdoSession(bus, self.axis.name, self.axis.node, timeout=0.02, attempts=2)
        off = False
        try:
            # the frame above may be lost; these are confirmed
            node.put(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
            off = True
            node.put(0x6071, 0, "h", 0)
            node.command(Nmt.PRE_OPERATIONAL)
            node.put(0x1016, 1, "I", 0)  # the heartbeat ends with the loop
        except DriveError:
            bus.send(
                can.Message(
                    arbitration_id=0,
                    data=bytes((Nmt.PRE_OPERATIONAL, self.axis.node)),
                    is_extended_id=False,
                )
            )
            if not off:
                raise

    # -- checks --------------------------------------------------------------------------------

    def _check(
        self, what: str, finding: Finding, expected: str = "", came: str = "", cure: str = ""
    ) -> AxisCheck:
        return AxisCheck(self.axis.name, what, finding, expected, came, cure)

    def _compare(
        self, what: str, expected: float, came: float | None, cure: str, within: float = 0.0
    ) -> AxisCheck:
        if came is None:
            finding, shown = Finding.UNKNOWN, "not told"
        else:
            right = math.isclose(came, expected, rel_tol=0.0, abs_tol=within)
            finding, shown = Finding.FOUND if right else Finding.WRONG, f"{came:g}"
        return self._check(what, finding, f"{expected:g}", shown, cure)

    def _inspect_identity(self, node: SdoSession) -> list[AxisCheck]:
        vendor, product = node.find(0x1018, 1, "I"), node.find(0x1018, 2, "I")
        if vendor is None or product is None:
            return []
        came = f"vendor 0x{vendor:X}, product 0x{product:X}"
        return [self._check("identity (0x1018)", Finding.FOUND, "any", came)]

    def _inspect_mode(self, node: SdoSession) -> list[AxisCheck]:
        modes = node.find(0x6502, 0, "I")
        if modes is None:
            finding, came = Finding.UNKNOWN, "not told"
        else:
            able = modes >> (TORQUE_MODE - 1) & 1
            finding, came = Finding.FOUND if able else Finding.WRONG, f"modes 0x{modes:X}"
        return [
            self._check(
                "cyclic synchronous torque (0x6502)",
                finding,
                "mode 10, bit 9",
                came,
                "This drive or its firmware cannot follow torques; use another.",
            )
        ]

    def _inspect_torque(self, node: SdoSession) -> list[AxisCheck]:
        axis = self.axis
        rated, largest = node.find(0x6076, 0, "I"), node.find(0x6072, 0, "H")
        within = max(1.0, axis.rated_torque)  # mN m: the last place, or one per mille
        cure = (
            f"Set `rated_torque` of axis `{axis.name}` to what the drive says, or correct the "
            "motor data of the drive. All torques would be wrong by the ratio."
        )
        if rated and largest and abs(rated * largest * 1e-3 - axis.rated_torque * 1e3) <= within:
            cure = (
                f"The rig file gives the drive's maximum torque as `rated_torque` of axis "
                f"`{axis.name}`; give its rated torque, and say by `torque_unit` which of the two "
                "its per mille are of."
            )
        checks = [
            self._compare(
                "rated torque (0x6076), mN m", axis.rated_torque * 1e3, rated, cure, within
            )
        ]
        if largest is not None:
            checks.append(
                self._check(
                    "maximum torque (0x6072), per mille",
                    Finding.FOUND,
                    f"{limit_per_mille(axis)}, which is set before arming",
                    f"{largest}",
                )
            )
        return checks

    def _inspect_position(self, node: SdoSession) -> list[AxisCheck]:
        checks = [
            self._compare(
                "position units per motor turn (0x608F, 0x6091, 0x6092)",
                self.axis.counts,
                _units_per_turn(node),
                f"Set `counts` of axis `{self.axis.name}` to it, or correct the drive's scaling.",
                within=1e-6 * self.axis.counts,
            )
        ]
        polarity = node.find(0x607E, 0, "B")
        if polarity is not None:
            checks.append(
                self._compare(
                    "polarity (0x607E)",
                    0,
                    polarity,
                    "Clear it in the drive and use `direction` of the rig file: turned for "
                    "positions but not for torques, every loop around the drive is unstable.",
                )
            )
        counts = node.find(0x6064, 0, "i")
        if counts is not None:
            low, high = self.axis.position_limits
            position = self.scale.position(counts)
            checks.append(
                self._check(
                    _POSITION,
                    Finding.FOUND if low <= position <= high else Finding.WRONG,
                    f"{low:g} to {high:g}",
                    f"{position:.4g}",
                    "Move the joint into its range, or correct `offset`, `counts`, `gear` or "
                    "`direction`.",
                )
            )
        return checks

    def _inspect_watchdog(self, node: SdoSession) -> list[AxisCheck]:
        timer, consumer = node.find(0x1400, 5, "H"), node.find(0x1016, 1, "I")
        has = [
            name for name, value in (("0x1400:5", timer), ("0x1016", consumer)) if value is not None
        ]
        return [
            self._check(
                "watchdog of the drive",
                Finding.FOUND if has else Finding.WRONG,
                "0x1400:5 or 0x1016",
                " and ".join(has) or "neither",
                "A drive that does not notice a dead host must not be given torques. Look for "
                "newer firmware, or wire a watchdog relay and register a drive class of your own.",
            )
        ]

    def _refuse(self, checks: list[AxisCheck]) -> None:
        """Raise the first of the checks that forbids to arm."""
        for check in checks:
            if check.finding in (Finding.FOUND, Finding.UNKNOWN):
                continue
            kind: type[DriveError | ArmError] = DriveError
            if "(0x60" in check.what:
                kind = UnitError
            if check.what.startswith("watchdog"):
                kind = ArmError
            raise kind(
                f"axis `{self.axis.name}`, node {self.axis.node}, {check.what}",
                expected=check.expected,
                came=check.came,
                cure=check.cure,
            )

    # -- set-up --------------------------------------------------------------------------------

    def _switch_off(self, node: SdoSession, bus: Bus) -> None:
        """Power off and no target torque. A fault is left for the loop to show and to reset."""
        node.put(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
        node.write(0x6071, 0, "h", 0)
        until = bus.clock.now() + SETTLE
        while (state := state_of(node.read(0x6041, 0, "H"))) not in _RESTING:
            if bus.clock.now() >= until:
                raise DriveError(
                    node.where(0x6041),
                    expected="a drive that is switched off",
                    came=f"one whose state is {state.name.lower().replace('_', ' ')}",
                    cure="Free it of other masters, and check supply and enable input.",
                )
            node.network.idle(0.005)

    def _set_mode(self, node: SdoSession, bus: Bus) -> None:
        node.put(0x6060, 0, "b", TORQUE_MODE)
        until = bus.clock.now() + SETTLE
        while (mode := node.read(0x6061, 0, "b")) != TORQUE_MODE:
            if bus.clock.now() >= until:
                raise DriveError(
                    node.where(0x6061),
                    expected="mode 10, cyclic synchronous torque",
                    came=f"mode {mode}",
                    cure="Free the drive of other masters and of a configuration that fixes "
                    "its mode.",
                )
            node.network.idle(0.005)

    def _set_limit(self, node: SdoSession) -> list[AxisCheck]:
        """Give the drive the axis' torque limit: behind the guard, it limits as well.

        Where per mille are of the maximum torque, this changes what they mean, and the scale with
        it. Which torque they are of cannot be asked; it is taken from the rig file.
        """
        limit = limit_per_mille(self.axis)
        try:
            node.write(0x6072, 0, "H", limit)
        except DriveError as error:
            if error.data.get("silent"):
                raise
            raise ArmError(
                error.where,
                expected=f"the torque limit of {limit} per mille in force",
                came=error.came,
                cure="Lower `torque_limit` to what drive and motor bear, or free the object in "
                "the drive's configuration. A limit that is not in force limits nothing.",
            ) from None
        rated = node.read(0x6076, 0, "I") * 1e-3
        self.scale = AxisScale(self.axis, rated_torque=rated, maximum_torque=rated * limit * 1e-3)
        what = "torque limit in force (0x6072), per mille"
        return [self._check(what, Finding.FOUND, f"{limit}", f"{limit}")]

    def _set_watchdog(self, node: SdoSession) -> list[AxisCheck]:
        axis = self.axis
        milliseconds = round(axis.watchdog * 1e3)
        set_ones = []
        if node.offer(0x1400, 5, "H", milliseconds):
            set_ones.append("0x1400:5")
        if node.offer(0x1016, 1, "I", HOST_NODE << 16 | milliseconds):
            set_ones.append("0x1016")
        if not set_ones:
            raise ArmError(
                f"axis `{axis.name}`, node {axis.node}, watchdog of the drive",
                expected=f"{milliseconds} ms in 0x1400:5 or 0x1016",
                came="a drive that keeps neither",
                cure="A drive that does not notice a dead host must not be given torques. Try "
                "another `watchdog`: the drive may have steps or a least value.",
            )
        reaction = next((o for o in _ABORT_OPTIONS if node.offer(0x6007, 0, "h", o)), None)
        if reaction is None:
            raise ArmError(
                node.where(0x6007),
                expected="power off (2), quick stop (3) or fault (1) when the host is lost",
                came="a drive that keeps none of them",
                cure="Its watchdog would expire without effect. Set the reaction in the drive's "
                "own configuration, or use other firmware.",
            )
        node.offer(0x1029, 1, "B", 0)
        return [
            self._check(
                "watchdog in force, ms",
                Finding.FOUND,
                f"{milliseconds}",
                f"{milliseconds} in {' and '.join(set_ones)}, then "
                + {2: "power off", 3: "quick stop", 1: "fault"}[reaction],
            )
        ]

    def _map(
        self, node: SdoSession, index: int, base: int, objects: tuple[int, ...], kind: int
    ) -> None:
        """Lay out the first process data object, and take the others out of use (CiA 301)."""
        identifier = node.read(index, 1, "I") & _NO_REMOTE | base + self.axis.node
        node.put(index, 1, "I", identifier | _INVALID_PDO)
        mapping = index + 0x200
        node.put(mapping, 0, "B", 0)
        for place, entry in enumerate(objects, 1):
            node.write(mapping, place, "I", entry)
        node.write(mapping, 0, "B", len(objects))
        node.write(index, 2, "B", kind)
        node.write(index, 1, "I", identifier)
        for other in range(index + 1, index + 4):
            used = node.find(other, 1, "I")
            if used is not None and not used & _INVALID_PDO:
                node.put(other, 1, "I", used | _INVALID_PDO)

    def _first_report(self, node: SdoSession, bus: Bus) -> AxisCheck:
        """Start the node; one SYNC, one report: mapping and position make sense."""
        axis = self.axis
        where = f"axis `{axis.name}`, node {axis.node}, first report"
        clock = bus.clock
        for _ in range(3):
            node.command(Nmt.START)  # again if it was lost: nobody confirms it
            bus.send(self.opening_frames(self.rig)[0])
            until = clock.now() + 0.05
            while (frame := bus.receive(until)) is not None:
                if frame.arbitration_id == self._report and len(frame.data) == _REPORT.size:
                    status, counts, _ = _REPORT.unpack_from(frame.data)
                    self.state = state_of(status)
                    return self._judge_position(self.scale.position(counts), where)
        raise DriveError(
            where,
            expected="an answer to SYNC on identifier "
            f"0x{self._report:03X} with {_REPORT.size} bytes",
            came="none",
            cure="Check that the drive went operational and that its SYNC identifier (0x1005) "
            "is 0x80.",
        )

    def _judge_position(self, position: float, where: str) -> AxisCheck:
        low, high = self.axis.position_limits
        if not low <= position <= high:
            raise UnitError(
                where,
                expected=f"a position between {low:g} and {high:g}",
                came=f"{position:g}",
                cure="Move the joint into its range, or correct `offset`, `counts`, `gear` or "
                "`direction`.",
            )
        return self._check("position, rad (m)", Finding.FOUND, "in its range", f"{position:.4g}")


_READY_BITS = REMOTE | VOLTAGE_ENABLED
_FAULTS = (DriveState.FAULT, DriveState.FAULT_REACTION_ACTIVE)
_EXPECTED_AFTER_ENABLED = (DriveState.OPERATION_ENABLED, *_FAULTS)
_RESTING = (DriveState.SWITCH_ON_DISABLED, DriveState.FAULT)


def _units_per_turn(node: SdoSession) -> float | None:
    """Units of position per turn of the motor, as far as the drive tells them."""

    def ratio(index: int) -> float | None:
        above, below = node.find(index, 1, "I"), node.find(index, 2, "I")
        return above / below if above and below else None

    feed = ratio(0x6092)
    if feed is not None:
        return feed / (ratio(0x6091) or 1.0)
    return ratio(0x608F)
