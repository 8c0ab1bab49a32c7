"""Test of the watchdog of one drive that answers commands: by silence, twice, at a small torque.

A report answers a command, so nothing is known during the silence. The first command after it asks
for the same torque again: a drive that is off ignores it, and a drive that only reports that it is
off applies it, which its report or the motion of the joint shows. A drive whose reports have no
state gets a command of zero torque instead, since it may act at once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hil.drives._drive import AxisCheck, Drive, Finding
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
    from hil.links import Link


ANSWER = 0.02, 0.05
"""Time-outs of a report in cycles, and of one without which the test fails, s."""

MUTE = 3
"""Cycles without a report, one after the other, after which a test ends."""


class Answer(NamedTuple):
    """Answer to a command."""

    position: float  # in the drive's unit; `Tested.place` converts it
    torque: float  # at the joint, N m (N); NaN: not reported
    error: int | None  # None: the report has no place for an error
    off: bool  # whether the drive reports that it is off


class Scale(Protocol):
    """Resolution of a drive at the joint: torque, N m (N), and position, rad (m)."""

    @property
    def step(self) -> float:
        """Of the torque."""
        ...

    @property
    def position_step(self) -> float:
        """Of the position."""
        ...


class AnsweringDrive(Drive):
    """A drive that answers commands, and whose watchdog is tested alone."""

    has_state = True
    """Whether each report shows if the drive is on."""

    @property
    @abstractmethod
    def resolution(self) -> Scale:
        """Resolution of the drive."""

    @property
    @abstractmethod
    def cure(self) -> str:
        """Remedy where the watchdog fails: how it is set."""

    @abstractmethod
    def ask(self, bus: Link, torque: float, attempts: int, timeout: float) -> Answer | None:
        """Command a torque, and wait for the answer.

        Parameters
        ----------
        bus : Link
            The open bus.
        torque : float
            Torque at the joint, N m (N).
        attempts : int
            Number of times that the command is sent without an answer.
        timeout : float
            Time-out of each answer, s.

        Returns
        -------
        Answer or None
            The answer; None if the drive sent none.
        """

    @abstractmethod
    def place(self, position: float, first: float) -> float:
        """Convert the position of an answer.

        Parameters
        ----------
        position : float
            Position in the unit of the drive.
        first : float
            That of the first answer.

        Returns
        -------
        float
            Position of the joint, rad (m).
        """

    @abstractmethod
    def enter(self, bus: Link) -> Answer | None:
        """Switch the drive on, without torque.

        Parameters
        ----------
        bus : Link
            The open bus.

        Returns
        -------
        Answer or None
            The answer; None if the drive sent none.
        """

    @abstractmethod
    def leave(self, bus: Link) -> None:
        """Switch the drive off, and clear the fault that the test caused.

        Parameters
        ----------
        bus : Link
            The open bus.
        """


def try_watchdog(drive: AnsweringDrive, bus: Link) -> list[AxisCheck]:
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
    def __init__(self, drive: AnsweringDrive, bus: Link) -> None:
        self.drive, self.bus, self.axis = drive, bus, drive.axis
        self.load = load_of(drive.axis, drive.resolution.step)
        self.first = self.direction = math.nan  # of the loads
        self.cycles = cycles_of(drive.axis.watchdog, drive.rig.loop.period)
        self.shown = False  # whether reports or the motion have shown the load
        self.sent = 0.0  # instant of the last command, s
        self.speed = 0.0  # before the load
        self.origin: float | None = None  # first position
        self.now, self.position, self.torque = math.nan, math.nan, math.nan  # of the last report

    def _exchange(self, torque: float, attempts: int = 1) -> Answer | None:
        """Command a torque, and read the report."""
        self.sent = self.bus.clock.now()
        patience = ANSWER[1] if attempts > 1 else min(ANSWER[0], self.axis.watchdog / 3.0)
        report = self.drive.ask(self.bus, torque, attempts, patience)
        if report is not None:
            first = self.origin = report.position if self.origin is None else self.origin
            self.now, self.position = self.sent, self.drive.place(report.position, first)
            self.torque = report.torque
        return report

    def enter(self, steady: float) -> None:
        """Switch the drive on, and leave it at zero torque for a while."""
        drive = self.drive
        entered = drive.enter(self.bus)
        working = self._exchange(0.0, attempts=3)
        if entered is None or working is None or working.off:
            raise self._off(working if entered is not None else None)
        begin, start = self.now, self.position
        self._hold(0.0, math.ceil(steady / drive.rig.loop.period))
        if self.now > begin:
            self.speed = (self.position - start) / (self.now - begin)

    def _off(self, report: Answer | None) -> DriveError:
        came = "no answer" if report is None else "a drive that is off again"
        return DriveError(
            f"axis `{self.axis.name}`, node {self.axis.node}",
            expected="a drive that can be switched on, and stays on",
            came=f"error {report.error}" if report and report.error else came,
            cure="Find the error in the drive's manual and remove its cause.",
        )

    def _hold(self, torque: float, cycles: int, course: Course | None = None) -> tuple[int, float]:
        """Command a torque for some cycles, or until the axis moves too fast.

        Returns the number of cycles, and the factor that the load permits.
        """
        missed, factor, done = 0, math.inf, 0
        while done < cycles and (factor >= 1.0 or torque * self.direction < 0.0):
            done += 1
            report = self._exchange(torque)
            missed = missed + 1 if report is None else 0
            if missed >= MUTE:
                raise self._off(None)
            if report is not None:
                if report.off:
                    raise self._off(report)
                if course is not None and self.now > course.begin:
                    course.keep(self.now, self.position, self.load.torque)
                    factor = course.permitted(self.now, self.position)
            self.bus.clock.sleep_until(self.sent + self.drive.rig.loop.period)
        if missed == done:
            raise self._off(None)
        return done, factor

    def apply(self, number: int) -> None:
        """Apply the load, reduced where the axis would become too fast in the silence."""
        if number == 1:
            self.first = first_direction(self.axis, self.position)
        self.direction = self.first * DIRECTIONS[number - 1]
        axis, step = self.axis, self.drive.resolution.position_step
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
            self.drive.cure,
            **data,
        )

    def leave(self) -> None:
        """Switch the drive off."""
        self.drive.leave(self.bus)

    def abort(self) -> None:
        """Remove the torque: several frames, as some may be lost."""
        with suppress(Exception):
            self._exchange(0.0)
        for _ in range(2):
            with suppress(Exception):
                self.leave()
