"""Test of the watchdog of an MIT drive by silence, twice, at a small torque.

A report answers a command, so nothing is known during the silence. The first command after it asks
for the same torque again: a drive that is off ignores it, and a drive that only reports that it is
off applies it, which its report or the motion of the joint shows. A drive whose reports have no
state gets a command of zero torque instead, since it may act at once.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from hil.drives._drive import AxisCheck, Finding
from hil.drives._mit_frames import CLEAR, ENTER, LEAVE, Report, pack_torque
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
from hil.errors import DriveError

if TYPE_CHECKING:
    from hil.bus import Bus
    from hil.drives._units import MitScale
    from hil.settings import Axis, Rig


ANSWER = 0.02, 0.05
"""Time-outs of a report in cycles, and of one without which the test fails, s."""


class Tested(Protocol):
    """Members of a drive that the test uses."""

    axis: Axis
    rig: Rig
    scale: MitScale
    has_state: bool

    def exchange(
        self, bus: Bus, data: bytes, attempts: int = ..., timeout: float = ...
    ) -> Report | None:
        """Send a frame and wait for the report that answers it."""
        ...


def try_watchdog(drive: Tested, bus: Bus) -> list[AxisCheck]:
    """Apply a torque, send nothing, and check that the drive switches off; twice."""
    trial = _Trial(drive, bus)
    try:
        for number in range(1, 1 + len(DIRECTIONS)):
            trial.enter(STEADY[number - 1])
            trial.apply(number)
            check = trial.fall_silent(number)
            trial.leave()
        return [check] if trial.shown else [check, unseen(trial.load)]
    except BaseException:
        trial.abort()
        raise


class _Trial:
    def __init__(self, drive: Tested, bus: Bus) -> None:
        self.drive, self.bus, self.axis, self.scale = drive, bus, drive.axis, drive.scale
        self.load = load_of(drive.axis, drive.scale.step)
        self.first = self.direction = math.nan  # of the loads
        self.cycles = cycles_of(drive.axis.watchdog, drive.rig.loop.period)
        self.shown = False  # whether reports or the motion have shown the load
        self.sent = 0.0  # instant of the last command, s
        self.speed = 0.0  # before the load
        self.code: int | None = None  # first position
        self.now, self.position, self.torque = math.nan, math.nan, math.nan  # of the last report

    def _exchange(self, torque: float, attempts: int = 1) -> Report | None:
        """Command a torque, and read the report."""
        data = bytearray(8)
        pack_torque(data, self.scale.torque_code(torque))
        self.sent = self.bus.clock.now()
        report = self.drive.exchange(self.bus, bytes(data), attempts, ANSWER[attempts > 1])
        if report is not None:
            code = self.code = report.position if self.code is None else self.code
            step = (report.position - code + 0x8000 & 0xFFFF) - 0x8000
            self.now, self.position = self.sent, self.scale.position(code + step)
            self.torque = self.scale.torque(report.torque)
        return report

    def enter(self, steady: float) -> None:
        """Enter motor mode, and stay there at zero torque for a while."""
        drive, bus = self.drive, self.bus
        drive.exchange(bus, LEAVE)
        entered = drive.exchange(bus, ENTER)
        if entered is not None and entered.off and drive.has_state:
            drive.exchange(bus, CLEAR)
            entered = drive.exchange(bus, ENTER)
        working = self._exchange(0.0, attempts=3)
        if entered is None or working is None or working.off:
            raise self._off(working if entered is not None else None)
        begin, start = self.now, self.position
        self._hold(0.0, math.ceil(steady / drive.rig.loop.period))
        if self.now > begin:
            self.speed = (self.position - start) / (self.now - begin)

    def _off(self, report: Report | None) -> DriveError:
        came = "no answer" if report is None else "a drive that is off again"
        return DriveError(
            f"axis `{self.axis.name}`, node {self.axis.node}",
            expected="a drive that enters motor mode, and stays in it",
            came=f"error {report.error}" if report and report.error else came,
            cure="Find the error in the drive's manual and remove its cause.",
        )

    def _hold(self, torque: float, cycles: int, course: Course | None = None) -> tuple[int, float]:
        """Command a torque for some cycles, or until the axis moves too fast.

        Returns the number of cycles, and the factor that the load permits.
        """
        answered, factor, done = False, math.inf, 0
        while done < cycles and (factor >= 1.0 or torque * self.direction < 0.0):
            done += 1
            report = self._exchange(torque)
            if report is not None:
                answered = True
                if report.off:
                    raise self._off(report)
                if course is not None and self.now > course.begin:
                    course.keep(self.now, self.position, self.load.torque)
                    factor = course.permitted(self.now, self.position)
            self.bus.clock.sleep_until(self.sent + self.drive.rig.loop.period)
        if not answered:
            raise self._off(None)
        return done, factor

    def apply(self, number: int) -> None:
        """Apply the load, reduced where the axis would become too fast in the silence."""
        if number == 1:
            self.first = first_direction(self.axis, self.position)
        self.direction = self.first * DIRECTIONS[number - 1]
        axis, step = self.axis, self.scale.position_step
        for _ in range(ATTEMPTS):
            torque = self.direction * self.load.torque
            self.course = Course(axis, self.now, self.position, self.speed, step, self.direction)
            cycles, factor = self._hold(torque, self.cycles, self.course)
            if factor >= 1.0:
                self.shown |= self.load.is_shown(self.torque, self.direction)
                return
            self._hold(-torque, cycles, self.course)  # takes back the speed
            self.load = self.load.reduced(max(0.0, REDUCED * factor))
        self.load.reduced(0.0)  # which is rejected

    def fall_silent(self, number: int) -> AxisCheck:
        """Send nothing for the time of the test, then check the first report."""
        axis, drive, load, course = self.axis, self.drive, self.load, self.course
        self._wait(self.sent + SILENCE * axis.watchdog)
        again = 0.0 if axis.watchdog_confirmed else course.direction * load.torque
        after = self._exchange(again, attempts=3)
        if after is None or not after.off:
            if after is not None and not drive.has_state and axis.watchdog_confirmed:
                self._check_torque(number)
                came = "not reported; confirmed in the rig file"
                return self._check(Finding.UNKNOWN, came)
            came = (
                "no report"
                if after is None
                else "a report without error code"
                if after.error is None
                else "a report that the drive is on"
            )
            self._refuse(number, came)
        assert after is not None
        self._check_torque(number)
        now, position = self.now, self.position
        course.keep(now, position, load.torque)
        if course.is_clear(now, position):
            self.shown = True
            self._wait(2.0 * now - course.begin)
            if self._exchange(0.0, attempts=3) is not None:
                self._check_torque(number)
                if course.accelerates(now, position, self.now, self.position):
                    self._refuse(number, course.describe(now, position, self.now, self.position))
        silence = f"{SILENCE * axis.watchdog:g}"
        return self._check(
            Finding.FOUND,
            f"off after {silence} of silence, code {after.error}; {len(DIRECTIONS)} times, from "
            f"{load.torque:.3g} N m (N)",
        )

    def _wait(self, until: float) -> None:
        while self.bus.clock.now() < until:
            self.bus.receive(until)

    def _check(self, finding: Finding, came: str) -> AxisCheck:
        name, watchdog = self.axis.name, f"{self.axis.watchdog:g}"
        return AxisCheck(name, "watchdog in force, s", finding, watchdog, came)

    def _check_torque(self, number: int) -> None:
        """Reject a drive whose report shows the load after the silence."""
        if self.load.is_shown(self.torque):
            came = f"a report of a torque of {self.torque:.3g} N m (N)"
            self._refuse(number, came, measured=self.torque)

    def _refuse(self, number: int, came: str, **data: float) -> None:
        silence = f"{SILENCE * self.axis.watchdog:g}"
        refuse(
            self.load,
            number,
            self.axis.node,
            f"a report that the drive is off, {silence} s after the last command, and no torque",
            came,
            f"Set its CAN timeout to {self.axis.watchdog:g} s over its serial port. If it has "
            "a timeout and does not report it, verify that it works (pull the CAN plug while "
            "the motor pushes lightly against a hand), then set `watchdog_confirmed = true`.",
            **data,
        )

    def leave(self) -> None:
        """Leave motor mode, and clear the fault that the test caused."""
        self.drive.exchange(self.bus, LEAVE)
        if self.drive.has_state:
            self.drive.exchange(self.bus, CLEAR)

    def abort(self) -> None:
        """Remove the torque: several frames, as some may be lost."""
        with suppress(Exception):
            self._exchange(0.0)
        for _ in range(2):
            with suppress(Exception):
                self.leave()
