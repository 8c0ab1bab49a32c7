"""Test of the watchdogs of CiA 402 drives by silence, before the first torque.

A drive may store the time of a watchdog and never act on it. Therefore all drives of the bus are
enabled at zero torque, as in the loop. Then the host stops sending, as a killed controller does: no
command, no heartbeat, no SYNC. Each drive must then leave *operation enabled*. The drives are
tested together, since all of them receive the host's heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hil.drives._cia402_setup import SETTLE, clear_fault, describe
from hil.drives._cia402_state import (
    FAULTS,
    FOLLOWS,
    REMOTE,
    VOLTAGE_ENABLED,
    Controlword,
    DriveState,
    next_controlword,
    state_of,
)
from hil.drives._drive import AxisCheck, Finding, Wanted
from hil.drives._intruders import Intruders
from hil.drives._network import Nmt, SdoSession
from hil.drives.feedback import Feedback
from hil.errors import ArmError, DriveError

if TYPE_CHECKING:
    import can

    from hil.bus import Bus
    from hil.drives._cia402_cycle import Cia402Cycle

SILENCE = 1.5
"""Duration of the silence that tests a watchdog, as a multiple of the watchdog's time."""

RISE = 2.0
"""Time in which drives must be enabled, s: brakes open, motors find their commutation."""

STEADY = 0.05
"""Time for which all drives are enabled before the silence begins, s."""

ANSWER = 0.03
"""Time-out of each SDO answer, s: short, so that a late reaction does not pass as prompt."""

_PASSING = (DriveState.FAULT_REACTION_ACTIVE, DriveState.QUICK_STOP_ACTIVE)
_BITS = ((REMOTE, "remote (bit 9)"), (VOLTAGE_ENABLED, "voltage enabled (bit 4)"))
_ALL_BITS = (*_BITS, (FOLLOWS, "follows the command (bit 12)"))


def try_watchdogs(drives: Sequence[Cia402Cycle], bus: Bus) -> list[AxisCheck]:
    """Enable drives at zero torque, stop sending, and check that each drive switches off.

    A drive with a fault is not tested, and not enabled later either.
    """
    tested = [drive for drive in drives if drive.state not in FAULTS]
    if not tested:
        return []
    trial = _Trial(tested, bus)
    try:
        trial.enable()
        checks = trial.fall_silent()
        for drive in drives:
            if drive not in tested:  # it received the heartbeat too, and lost it
                drive.restart(bus)
        return checks
    except BaseException:
        for drive in tested:
            with suppress(Exception):
                trial.session(drive, attempts=1).attempt(
                    0x6040, 0, "H", Controlword.DISABLE_VOLTAGE
                )
        raise


class _Trial:
    """One test of all drives of a bus."""

    def __init__(self, drives: Sequence[Cia402Cycle], bus: Bus) -> None:
        self.drives, self.bus = drives, bus
        self.period = drives[0].rig.loop.period
        self.feedback = Feedback(1 + max(drive.index for drive in drives))
        self.by_identifier = {i: drive for drive in drives for i in drive.identifiers}
        self.intruders = Intruders(drives, bus)

    def session(self, drive: Cia402Cycle, attempts: int = 4, timeout: float = ANSWER) -> SdoSession:
        name, node = drive.axis.name, drive.axis.node
        return SdoSession(self.bus, name, node, timeout, attempts)

    # -- up ------------------------------------------------------------------------------------

    def enable(self) -> None:
        """Bring all drives to operation enabled at zero torque, and keep them there briefly."""
        clock = self.bus.clock
        begin = clock.now()
        since = None  # instant at which the last drive was enabled
        cycle = 0
        while since is None or clock.now() - since < STEADY:
            cycle += 1
            self._cycle(cycle, clock.now() + self.period)
            down = [d for d in self.drives if d.state is not DriveState.OPERATION_ENABLED]
            since = None if down else since or clock.now()
            failed = [d for d in down if d.state in FAULTS]
            if failed or clock.now() - begin > RISE + STEADY:
                raise self._not_enabled((failed or down or self.drives)[0])

    def _cycle(self, cycle: int, until: float) -> None:
        """One cycle as in the loop, with commands of zero torque.

        SYNC is sent in every second cycle only, so that listeners do not mistake it for a run.
        """
        sync, heartbeat = self.drives[0].opening_frames(self.drives[0].rig)
        if cycle % 2:
            self._send(sync)
        self._send(heartbeat)
        for drive in self.drives:
            self._send(drive.zero(next_controlword(drive.state, Wanted.READY)))
            for frame in drive.asides(cycle):
                self._send(frame)
        self._listen(until)

    def _send(self, frame: can.Message) -> None:
        self.bus.send(frame)
        self.intruders.note(frame)

    def _listen(self, until: float) -> None:
        """Receive frames up to an instant."""
        clock, bus = self.bus.clock, self.bus
        while True:
            frame = bus.receive(until)
            if frame is None:
                if clock.now() >= until:
                    return
                clock.sleep_until(until)
                continue
            drive = self.by_identifier.get(frame.arbitration_id)
            if drive is not None:
                drive.receive(frame, clock.now(), self.feedback)
            elif self.intruders.is_foreign(frame):
                raise self.intruders.refusal(frame)

    def _not_enabled(self, drive: Cia402Cycle) -> DriveError:
        index = drive.index
        status = int(self.feedback.status[index])
        unset = [name for bit, name in _BITS if not status & bit]
        code = int(self.feedback.fault[index])
        return DriveError(
            f"axis `{drive.axis.name}`, node {drive.axis.node}, test of the watchdog",
            expected=f"operation enabled within {RISE:g} s, at zero torque",
            came=f"{describe(drive.state)}, statusword 0x{status:04X}"
            + (f", fault 0x{code:04X}" if code else "")
            + (f"; not set: {' and '.join(unset)}" if unset else ""),
            cure="Check supply, enable input (STO), brake and commutation. Find the cause of a "
            "fault in the drive's manual, remove it, and clear the fault with --reset.",
        )

    # -- and silent ----------------------------------------------------------------------------

    def fall_silent(self) -> list[AxisCheck]:
        """Send nothing, check each drive when its time is over, then restart all drives."""
        clock = self.bus.clock
        enabled = {drive.index: int(self.feedback.status[drive.index]) for drive in self.drives}
        self.feedback.fault[:] = 0
        begin = clock.now()
        checks = []
        for drive in sorted(self.drives, key=lambda drive: drive.axis.watchdog):
            self._listen(begin + SILENCE * drive.axis.watchdog)
            checks.append(self._check_reaction(drive))
        for drive in self.drives:
            self._rest(drive)
            drive.restart(self.bus)
        for drive in self.drives:
            checks += self._bits(drive, enabled[drive.index])
            drive.accept(enabled[drive.index])
        return checks

    def _check_reaction(self, drive: Cia402Cycle) -> AxisCheck:
        """Check the reaction of a drive to the silence."""
        axis, clock = drive.axis, self.bus.clock
        node = self.session(drive)
        silence = SILENCE * axis.watchdog
        state: DriveState | None = None
        until = clock.now() + SETTLE
        read: Callable[[], DriveState] = lambda: state_of(node.read(0x6041, 0, "H"))  # noqa: E731
        with suppress(DriveError):
            state = read()
            while state in _PASSING and clock.now() < until:
                node.network.idle(0.005)
                state = read()
        code = int(self.feedback.fault[drive.index])
        what = "watchdog test, s of silence"
        if state is None and axis.watchdog_confirmed:
            came = "no answer to SDO; confirmed in the rig file"
            return AxisCheck(axis.name, what, Finding.UNKNOWN, f"{silence:g}", came)
        if state is None or state is DriveState.OPERATION_ENABLED or state in _PASSING:
            raise ArmError(
                f"axis `{axis.name}`, node {axis.node}, watchdog of the drive",
                expected=f"a drive that has left operation enabled {silence:g} s after the last "
                "command",
                came="no answer to SDO" if state is None else describe(state),
                cure=_CURES.get(state, _STAYS),
            )
        came = f"{describe(state)}" + (f", code 0x{code:04X}" if code else "")
        return AxisCheck(axis.name, what, Finding.FOUND, f"{silence:g}", came)

    def _rest(self, drive: Cia402Cycle) -> None:
        """Switch a drive off by confirmed frames, and clear the fault that the test caused."""
        node = self.session(drive)
        node.command(Nmt.PRE_OPERATIONAL)  # a stopped node serves no SDO
        woken = state_of(node.read(0x6041, 0, "H"))
        drive.restart(self.bus)  # the state in its report must agree with its answer
        if DriveState.OPERATION_ENABLED in (woken, drive.state):
            raise ArmError(
                f"axis `{drive.axis.name}`, node {drive.axis.node}, watchdog of the drive",
                expected="a drive that has left operation enabled",
                came="operation enabled, once its node was pre-operational",
                cure=_STAYS,
            )
        node.attempt(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
        if state_of(node.read(0x6041, 0, "H")) in FAULTS:
            state = clear_fault(node)
            if state in FAULTS:
                raise DriveError(
                    node.where(0x6041),
                    expected="a fault of the watchdog test that can be reset",
                    came=describe(state),
                    cure="Reset it with the manufacturer's tool, and set the reaction to a lost "
                    "host (0x6007) to 2, disable voltage, if the drive allows it.",
                )

    def _bits(self, drive: Cia402Cycle, status: int) -> list[AxisCheck]:
        """Bits that the drive does not set while it is enabled: they carry no information."""
        return [
            AxisCheck(
                drive.axis.name,
                f"statusword, {name}",
                Finding.UNKNOWN,
                "set while enabled",
                "not set",
                "This drive does not use the bit, or uses it incorrectly: the loop ignores it.",
            )
            for bit, name in _ALL_BITS
            if not status & bit
        ]


_STAYS = (
    "The drive stores its watchdog and ignores it: a killed controller would leave its last torque "
    "acting. Install newer firmware, or wire a watchdog relay and register your own drive class."
)
_CURES: dict[DriveState | None, str] = {
    None: "If the drive leaves the bus when its host is lost, verify that it removes its torque, "
    "then set `watchdog_confirmed = true`.",
    DriveState.QUICK_STOP_ACTIVE: "In this state a drive may hold torque. Set the reaction to a "
    "lost host (0x6007) to 2, or the quick stop option code (0x605A) to 0, in its configuration.",
}
