"""Test of the watchdogs of CiA 402 drives by silence, before the first torque of the law.

A drive may store the time of a watchdog and never act on it. Therefore all drives of the bus are
enabled as in the loop, and commanded a small torque each. Then the host stops sending, as a killed
controller does: no command, no heartbeat, no SYNC. Each drive must then leave *operation enabled*,
and its torque must end, by its answers, by its reports and by the motion of its joint. The test is
made twice, in both directions. The drives are tested together, since all of them receive the host's
heartbeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

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
from hil.drives._trial import (
    ATTEMPTS,
    DIRECTIONS,
    REDUCED,
    SILENCE,
    STEADY,
    Course,
    cycles_of,
    first_direction,
    load_of,
    refuse,
    unseen,
)
from hil.drives.feedback import Feedback
from hil.errors import DriveError

if TYPE_CHECKING:
    import can
    from numpy.typing import NDArray

    from hil.drives._cia402_cycle import Cia402Cycle
    from hil.links import Link

RISE = 2.0
"""Time in which drives must be enabled, s: brakes open, motors find their commutation."""

ANSWER = 0.03
"""Time-out of each SDO answer, s: short, so that a late reaction does not pass as prompt."""

_OFF = (DriveState.SWITCH_ON_DISABLED, DriveState.READY_TO_SWITCH_ON, DriveState.SWITCHED_ON)
_PASSING = (DriveState.FAULT_REACTION_ACTIVE, DriveState.QUICK_STOP_ACTIVE)
_BITS = ((REMOTE, "remote (bit 9)"), (VOLTAGE_ENABLED, "voltage enabled (bit 4)"))
_ALL_BITS = (*_BITS, (FOLLOWS, "follows the command (bit 12)"))


def try_watchdogs(drives: Sequence[Cia402Cycle], bus: Link) -> list[AxisCheck]:
    """Enable drives, apply a torque, stop sending, and check that each drive switches off; twice.

    A drive with a fault is not tested, and not enabled later either.
    """
    tested = [drive for drive in drives if drive.state not in FAULTS]
    if not tested:
        return []
    trial = _Trial(tested, bus)
    checks: list[AxisCheck] = []
    try:
        for number in range(1, 1 + len(DIRECTIONS)):
            trial.enable(STEADY[number - 1])
            trial.load(number)
            checks = trial.fall_silent(number)
        for drive in drives:
            if drive not in tested:  # it received the heartbeat too, and lost it
                drive.restart(bus)
        return checks + trial.accept()
    except BaseException:
        trial.abort()
        raise


class _Trial:
    """One test of all drives of a bus."""

    def __init__(self, drives: Sequence[Cia402Cycle], bus: Link) -> None:
        self.drives, self.bus = drives, bus
        self.period = drives[0].rig.loop.period
        self.feedback = Feedback(1 + max(drive.index for drive in drives))
        self.by_identifier = {i: drive for drive in drives for i in drive.identifiers}
        self.intruders = Intruders(drives, bus)
        self.loads = {drive: load_of(drive.axis, drive.scale.step) for drive in drives}
        self.torque = dict.fromkeys(drives, 0.0)  # commanded now
        self.first: dict[Cia402Cycle, float] = {}  # direction of the first load
        self.courses: dict[Cia402Cycle, Course] = {}
        self.speeds = np.zeros(len(self.feedback.time))
        self.places: dict[Cia402Cycle, tuple[float, float]] = {}  # after the silence
        self.shown = dict.fromkeys(drives, False)  # whether report or motion has shown the load
        self.enabled: dict[Cia402Cycle, int] = {}  # statusword with the load
        self.answered: set[Cia402Cycle] = set()  # drives that gave their torque after the silence
        self.cycles = cycles_of(max(drive.axis.watchdog for drive in drives), self.period)
        self.cycle = 0
        self.sent = 0.0  # instant of the last command

    def session(self, drive: Cia402Cycle, attempts: int = 4, timeout: float = ANSWER) -> SdoSession:
        name, node = drive.axis.name, drive.axis.node
        return SdoSession(self.bus, name, node, timeout, attempts)

    # -- up ------------------------------------------------------------------------------------

    def enable(self, steady: float) -> None:
        """Bring all drives to operation enabled at zero torque, and keep them there briefly."""
        clock, feedback = self.bus.clock, self.feedback
        self.torque = dict.fromkeys(self.drives, 0.0)
        begin = clock.now()
        since = None  # instant at which the last drive was enabled
        before: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        while since is None or clock.now() - since < steady:
            self._cycle()
            if before is None and all(feedback.time[d.index] > begin for d in self.drives):
                before = feedback.time.copy(), feedback.position.copy()
            down = [d for d in self.drives if d.state is not DriveState.OPERATION_ENABLED]
            since = None if down else since or clock.now()
            failed = [d for d in down if d.state in FAULTS]
            if failed or clock.now() - begin > RISE + steady:
                raise self._not_enabled((failed or down or self.drives)[0])
        if before is not None:
            passed = np.maximum(feedback.time - before[0], self.period)
            self.speeds = (feedback.position - before[1]) / passed

    def load(self, number: int) -> None:
        """Apply the loads, reduced where an axis would become too fast in the silence."""
        for _ in range(ATTEMPTS):
            self.courses = {drive: self._course(drive, number) for drive in self.drives}
            cycles, factors = self._apply(1.0, self.cycles)
            if min(factors.values()) >= 1.0:
                break
            self._apply(-1.0, cycles)  # takes back the speed
            for drive, factor in factors.items():
                if factor < 1.0:
                    self.loads[drive] = self.loads[drive].reduced(max(0.0, REDUCED * factor))
        else:
            drive = min(factors, key=lambda drive: factors[drive])
            self.loads[drive].reduced(0.0)  # which is rejected
        for drive, course in self.courses.items():
            torque = float(self.feedback.torque[drive.index])
            self.shown[drive] |= self.loads[drive].is_shown(torque, course.direction)
            self.enabled[drive] = int(self.feedback.status[drive.index])

    def _course(self, drive: Cia402Cycle, number: int) -> Course:
        """Beginning of the motion of an axis, with the last report."""
        begin, start = self._place(drive)
        first = self.first.setdefault(drive, first_direction(drive.axis, start))
        speed, step = float(self.speeds[drive.index]), drive.scale.position_step
        return Course(drive.axis, begin, start, speed, step, first * DIRECTIONS[number - 1])

    def _place(self, drive: Cia402Cycle) -> tuple[float, float]:
        """Instant and position of the last report of a drive."""
        return float(self.feedback.time[drive.index]), float(self.feedback.position[drive.index])

    def _apply(self, sign: float, cycles: int) -> tuple[int, dict[Cia402Cycle, float]]:
        """Command the loads, with a sign, for some cycles, or until an axis moves too fast.

        Returns the number of cycles, and for each axis the factor that its load permits.
        """
        for drive, course in self.courses.items():
            self.torque[drive] = sign * course.direction * self.loads[drive].torque
        factors = dict.fromkeys(self.drives, math.inf)
        done = 0
        while done < cycles and (sign < 0.0 or min(factors.values()) >= 1.0):
            done += 1
            self._cycle()
            for drive, course in self.courses.items():
                if drive.state is not DriveState.OPERATION_ENABLED:
                    raise self._not_enabled(drive)
                now, position = self._place(drive)
                if now > course.begin:
                    course.keep(now, position, self.loads[drive].torque)
                    factors[drive] = course.permitted(now, position)
        return done, factors

    def _cycle(self) -> None:
        """One cycle as in the loop.

        SYNC is sent in every second cycle only, so that listeners do not mistake it for a run.
        """
        self.cycle += 1
        until = self.bus.clock.now() + self.period
        sync, heartbeat = self.drives[0].opening_frames(self.drives[0].rig)
        if self.cycle % 2:
            self._send(sync)
        self._send(heartbeat)
        for drive in self.drives:
            word = next_controlword(drive.state, Wanted.READY)
            self._send(drive.trial(word, self.torque[drive]))
            for frame in drive.asides(self.cycle):
                self._send(frame)
        self.sent = self.bus.clock.now()
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
            f"axis `{drive.axis.name}`, node {drive.axis.node}, test of the watchdog at "
            f"{abs(self.torque[drive]):.3g} N m (N)",
            expected=f"operation enabled within {RISE:g} s",
            came=f"{describe(drive.state)}, statusword 0x{status:04X}"
            + (f", fault 0x{code:04X}" if code else "")
            + (f"; not set: {' and '.join(unset)}" if unset else ""),
            cure="Check supply, enable input (STO), brake and commutation. Find the cause of a "
            "fault in the drive's manual, remove it, and clear the fault with --reset.",
        )

    # -- and silent ----------------------------------------------------------------------------

    def fall_silent(self, number: int) -> list[AxisCheck]:
        """Send nothing, check each drive when its time is over, then restart all drives."""
        clock, window = self.bus.clock, self.drives[0].rig.loop.receive_window
        begin = self.sent
        self.answered.clear()
        self.feedback.fault[:] = 0
        checks = []
        for watchdog in sorted({drive.axis.watchdog for drive in self.drives}):
            group = [drive for drive in self.drives if drive.axis.watchdog == watchdog]
            self._listen(begin + SILENCE * watchdog)
            for drive in group:
                drive.state = DriveState.UNKNOWN
                self.feedback.torque[drive.index] = math.nan
            # One question to all drives at once; those that have noticed the loss may be mute.
            self._send(self.drives[0].opening_frames(self.drives[0].rig)[0])
            self._listen(clock.now() + window)
            for drive in group:
                if drive.state is DriveState.OPERATION_ENABLED:
                    self._refuse(drive, number, describe(drive.state), _STAYS)
            checks += [self._check_reaction(drive, number) for drive in group]
        self._check_motion(number)
        for drive in self.drives:
            drive.restart(self.bus)
            if number == len(DIRECTIONS) or drive.state not in _OFF:
                self._rest(drive, number)
        return checks

    def _refuse(self, drive: Cia402Cycle, number: int, came: str, cure: str, **data: float) -> None:
        load, node = self.loads[drive], drive.axis.node
        silence = SILENCE * drive.axis.watchdog
        expected = (
            f"a drive that has left operation enabled {silence:g} s after the last command, and "
            "no torque"
        )
        refuse(load, number, node, expected, came, cure, **data)

    def _check_reaction(self, drive: Cia402Cycle, number: int) -> AxisCheck:
        """Check the reaction of a drive to the silence."""
        axis, clock, node = drive.axis, self.bus.clock, self.session(drive)
        state: DriveState | None = None
        until = clock.now() + SETTLE
        read: Callable[[], DriveState] = lambda: state_of(node.read(0x6041, 0, "H"))  # noqa: E731
        torques = [float(self.feedback.torque[drive.index])]
        with suppress(DriveError):
            state = read()
            torques.append(_torque(drive, node))
            self.answered.add(drive)
            counts = node.find(0x6064, 0, "i")
            if counts is not None:
                self.places[drive] = clock.now(), drive.position_at(counts)
            while state in _PASSING and clock.now() < until:
                node.network.idle(0.005)
                state = read()
        code = int(self.feedback.fault[drive.index])
        what, silence = "watchdog test, s of silence", f"{SILENCE * axis.watchdog:g}"
        if state is None and axis.watchdog_confirmed:
            came = "no answer to SDO; confirmed in the rig file"
            return AxisCheck(axis.name, what, Finding.UNKNOWN, silence, came)
        if state is None or state is DriveState.OPERATION_ENABLED or state in _PASSING:
            came = "no answer to SDO" if state is None else describe(state)
            self._refuse(drive, number, came, _CURES.get(state, _STAYS))
        assert state is not None
        self._check_torque(drive, number, describe(state), *torques)
        came = (
            f"{describe(state)}"
            + (f", code 0x{code:04X}" if code else "")
            + f"; {len(DIRECTIONS)} times, from {self.loads[drive].torque:.3g} N m (N)"
        )
        return AxisCheck(axis.name, what, Finding.FOUND, silence, came)

    def _check_torque(self, drive: Cia402Cycle, number: int, state: str, *torques: float) -> None:
        """Reject a drive that is off, and reports a torque all the same."""
        for torque in torques:
            if self.loads[drive].is_shown(torque):
                came = f"{state}, with a torque of {torque:.3g} N m (N)"
                self._refuse(drive, number, came, _HOLDS, measured=torque)

    def _check_motion(self, number: int) -> None:
        """Reject a drive that is off, and whose joint is still accelerated as by the load."""
        moved: list[tuple[float, Cia402Cycle]] = []
        for drive, (now, position) in self.places.items():
            course = self.courses[drive]
            course.keep(now, position, self.loads[drive].torque)
            if course.is_clear(now, position):
                self.shown[drive] = True
                moved.append((2.0 * now - course.begin, drive))
        for until, drive in sorted(moved, key=lambda pair: pair[0]):
            self._listen(until)
            with suppress(DriveError):
                counts = self.session(drive).find(0x6064, 0, "i")
                if counts is None:
                    continue
                now, position = self.places[drive]
                later, then = self.bus.clock.now(), drive.position_at(counts)
                if self.courses[drive].accelerates(now, position, later, then):
                    came = self.courses[drive].describe(now, position, later, then)
                    self._refuse(drive, number, came, _PUSHES)
        self.places.clear()

    def _rest(self, drive: Cia402Cycle, number: int) -> None:
        """Switch a drive off by confirmed frames, and clear the fault that the test caused."""
        node = self.session(drive)
        node.command(Nmt.PRE_OPERATIONAL)  # a stopped node serves no SDO
        woken = state_of(node.read(0x6041, 0, "H"))
        torque = math.nan if drive in self.answered else _torque(drive, node)
        drive.restart(self.bus)  # the state in its report must agree with its answer
        if DriveState.OPERATION_ENABLED in (woken, drive.state):
            came = "operation enabled, once its node was pre-operational"
            self._refuse(drive, number, came, _STAYS)
        self._check_torque(drive, number, describe(woken), torque)
        node.attempt(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
        if woken in FAULTS:
            state = clear_fault(node)
            if state in FAULTS:
                raise DriveError(
                    node.where(0x6041),
                    expected="a fault of the watchdog test that can be reset",
                    came=describe(state),
                    cure="Reset it with the manufacturer's tool, and set the reaction to a lost "
                    "host (0x6007) to 2, disable voltage, if the drive allows it.",
                )
            drive.restart(self.bus)

    # -- and at the end ------------------------------------------------------------------------

    def accept(self) -> list[AxisCheck]:
        """Permit enabling of all drives; return what the tests did not show."""
        checks = []
        for drive in self.drives:
            checks += self._bits(drive, self.enabled[drive])
            if not self.shown[drive]:
                checks.append(unseen(self.loads[drive]))
            drive.accept(self.enabled[drive])
        return checks

    def abort(self) -> None:
        """Remove all torques: by frames that need no answer, then by confirmed ones."""
        for drive in self.drives:
            with suppress(Exception):
                self._send(drive.trial(Controlword.DISABLE_VOLTAGE, 0.0))
        for drive in self.drives:
            for index, form, value in (
                (0x6040, "H", Controlword.DISABLE_VOLTAGE),
                (0x6071, "h", 0),
            ):
                with suppress(Exception):
                    self.session(drive, attempts=1).attempt(index, 0, form, value)

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


def _torque(drive: Cia402Cycle, node: SdoSession) -> float:
    """Measured torque (0x6077) at the joint; NaN if the drive has no such object."""
    torque = node.find(0x6077, 0, "h")
    return math.nan if torque is None else drive.scale.torque(torque)


_STAYS = (
    "The drive stores its watchdog and ignores it: a killed controller would leave its last torque "
    "acting. Install newer firmware, or wire a watchdog relay and register your own drive class."
)
_HOLDS = (
    "A killed controller would leave this torque acting. Set the reaction to a lost host (0x6007) "
    "to 2, power off. If the drive reports this torque and does not apply it, increase "
    "`watchdog_torque`."
)
_PUSHES = (
    "A killed controller would leave this torque acting. If the weight of the joint moves it, "
    "support it."
)
_CURES: dict[DriveState | None, str] = {
    None: "If the drive leaves the bus when its host is lost, verify that it removes its torque, "
    "then set `watchdog_confirmed = true`.",
    DriveState.QUICK_STOP_ACTIVE: "In this state a drive may hold torque. Set the reaction to a "
    "lost host (0x6007) to 2, or the quick stop option code (0x605A) to 0, in its configuration.",
}
