"""The traffic of a cycle: it is opened, reports are taken, commands are sent."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import can
import numpy as np

from hil.controller._punctuality import Punctuality
from hil.drives import Intruders, Wanted
from hil.drives.feedback import Feedback
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.bus import Bus
    from hil.drives import Drive
    from hil.settings import Rig

TRIALS = 5
"""Measurements of a round trip, of which the shortest counts: a machine delays some frames."""

QUIET = 0.07
"""Silence before a round trip is measured, s: reports that were asked for before have arrived."""

LONGEST_TRIP = 0.25
"""Time for which a report is waited for when its round trip is measured, s."""


class Exchange:
    """Frames from and to the drives of a rig; unless it `talks`, it only listens."""

    def __init__(self, rig: Rig, drives: Sequence[Drive], bus: Bus, talks: bool) -> None:
        n = len(drives)
        self.rig, self.drives, self.bus, self.talks = rig, tuple(drives), bus, talks
        self.feedback = Feedback(n)
        self.ages = np.full(n, np.inf)  # time since each report was sampled, s
        self.absent = [0] * n  # cycles in a row without a report, by axis
        self.foreign = 0  # frames of somebody else that command these drives
        self.refused = 0  # cycles in a row in which the bus did not take a command
        self.transfer = self.waited = 0.0  # time in the library of the bus, and waited, s
        kinds = dict.fromkeys(type(drive) for drive in self.drives)
        self._opening: tuple[can.Message, ...] = tuple(
            frame for kind in kinds for frame in kind.opening_frames(rig)
        )
        self._takes: dict[int, list[tuple[Drive, bool]]] = {}  # and whether it reports when asked
        self._answers = [not type(drive).opening_frames(rig) for drive in self.drives]
        for drive, answers in zip(self.drives, self._answers, strict=True):
            asked = not answers
            for identifier in drive.identifiers:
                self._takes.setdefault(identifier, []).append((drive, asked))
        self._counts = [0] * n  # of reports, in the cycle before
        self._fresh = [False] * n  # who has reported in this cycle,
        self._missing = n  # and how many have not
        self._opened = math.nan  # when the reports of the cycle before were asked for
        self._sent = math.nan  # when the commands of the cycle before left
        self._intruders = Intruders(self.drives, bus)
        self._cycle = 0
        self._first = 0  # axis whose command the bus refused
        self._punctual = Punctuality(n, rig.policies.max_consecutive_faults)
        self.paused = False  # whether no report was asked for since the cycle before

    @property
    def delayed(self) -> bool:
        """Whether reports answer earlier cycles than the one in which they come."""
        return self._punctual.delayed

    def round_trips(self) -> list[float]:
        """Measure for each axis the shortest time from asking for a report to its arrival, s.

        NaN for an axis that does not report, or reports unasked.
        """
        bus, clock, scratch = self.bus, self.bus.clock, Feedback(len(self.drives))
        shortest = [math.nan] * len(self.drives)
        silent = 0
        if not self._is_quiet(scratch):
            return shortest
        for _ in range(TRIALS):
            asked, missing = clock.now(), set(range(len(self.drives)))
            for frame in self._opening:
                bus.send(frame)
            for drive, answers in zip(self.drives, self._answers, strict=True):
                if answers:
                    bus.send(drive.command(Wanted.OFF, 0.0))
            while missing and (came := bus.receive(asked + LONGEST_TRIP)) is not None:
                for k in [k for k in missing if self._is_report(came, k, scratch)]:
                    missing.discard(k)
                    shortest[k] = min(clock.now() - asked, shortest[k])  # which may be NaN
            silent += bool(missing)
            if silent > 1:
                break
        return shortest

    def _is_report(self, frame: can.Message, axis: int, feedback: Feedback) -> bool:
        """Whether a frame is a report of an axis."""
        drive = self.drives[axis]
        return frame.arbitration_id in drive.identifiers and drive.receive(
            frame, self.bus.clock.now(), feedback
        )

    def _is_quiet(self, feedback: Feedback) -> bool:
        """Wait until no reports come; false if they do not cease."""
        bus, clock = self.bus, self.bus.clock
        now = clock.now()
        until, end = now + QUIET, now + LONGEST_TRIP + QUIET
        while until <= end:
            frame = bus.receive(until)
            if frame is None:
                return True
            if any(self._is_report(frame, k, feedback) for k in range(len(self.drives))):
                until = clock.now() + QUIET
        return False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look for frames of somebody else while drives are prepared.

        What came before, while nothing was written yet, is dropped. Identifiers on which drives
        report as well, as MIT drives may, are not watched. If somebody else has commanded these
        drives, ArmError is raised at the end, also in place of an error of a drive.
        """
        bus, foreign = self.bus, list[can.Message]()
        reports = {identifier for drive in self.drives for identifier in drive.identifiers}

        def watch(frame: can.Message, leaves: bool) -> None:
            if leaves:
                self._intruders.note(frame)
            elif frame.arbitration_id not in reports and self._intruders.is_foreign(frame):
                foreign.append(frame)

        self._take_waiting(bus.clock.now() + LONGEST_TRIP)
        bus.watch, cause = watch, None
        try:
            yield
        except RigError as error:
            if not foreign:
                raise
            cause = error
        finally:
            bus.watch = None
        if foreign:
            raise self._intruders.refusal(foreign[0]) from cause

    def take(self, start: float) -> None:
        """Open a cycle and take frames, until every axis has reported or the window is over."""
        bus, latency = self.bus, self.rig.estimator.latency
        window, clocked = self.rig.loop.receive_window, time.perf_counter
        self._missing = len(self.drives)
        self._fresh = [False] * self._missing
        before = clocked()
        waiting = self._take_waiting(start + window) if self._opening and self.talks else []
        self.paused = self._punctual.pauses and self.talks
        if not self.paused:
            for frame in self._opening:
                bus.send(frame)
                self._intruders.note(frame)
        self.transfer, self.waited = clocked() - before, 0.0
        # What waited came after the window of the cycle before: who reports when a cycle is
        # opened sampled it then, and the report of this cycle is still to come.
        sampled = self._opened + latency
        for frame, came in waiting:
            self._read(frame, came, sampled, late=True)
        if not self.paused:
            self._opened = start
            for k, by_command in enumerate(self._answers):
                if not by_command:
                    self._punctual.ask(k)
        # Drives that answer commands did so when they came, and their reports waited since.
        answered = self._sent + 2.0 * latency if self.talks else start
        self._listen(start + window, answered)
        if self.talks:
            self._punctual.end(self._fresh, self.paused)

    def _listen(self, until: float, answered: float) -> None:
        """Take frames until every axis has reported or an instant is reached."""
        bus, clock, clocked = self.bus, self.bus.clock, time.perf_counter
        end = until + self.rig.loop.receive_window  # for a node that babbles without end
        while True:
            before = clocked()
            received = bus.receive()
            self.transfer += clocked() - before
            if received is None:
                if not self._missing or clock.now() >= until:
                    return
                before = clocked()
                received = bus.receive(until)
                self.waited += clocked() - before
                if received is None:
                    return
            now = clock.now()
            self._read(received, now, answered)
            if now > end:
                return

    def _take_waiting(self, end: float) -> list[tuple[can.Message, float]]:
        """Frames that are there already."""
        bus, clock, frames = self.bus, self.bus.clock, []
        while (frame := bus.receive()) is not None:
            now = clock.now()
            frames.append((frame, now))
            if now > end:
                break
        return frames

    def _read(self, frame: can.Message, came: float, sampled: float, late: bool = False) -> None:
        """Let the drives read a frame; a report of those that report when asked was sampled before.

        `late`: drives that report when asked had been asked in the cycle before.
        """
        for drive, asked in self._takes.get(frame.arbitration_id, ()):
            instant = sampled if asked is late and sampled < came else came
            if drive.receive(frame, instant, self.feedback):
                self._punctual.come(drive.index)
                if not (self._fresh[drive.index] or (late and asked)):
                    self._fresh[drive.index] = True
                    self._missing -= 1
                return
        if self.talks and self._intruders.is_foreign(frame):
            self.foreign += 1

    def count(self, now: float) -> int:
        """Bring `ages` and `absent` up to date; return how many axes have not reported since."""
        self.ages[:] = [now - sampled for sampled in self.feedback.time.tolist()]
        counts = self.feedback.count.tolist()
        lost = 0
        if self.paused:
            self._counts = counts
            return lost
        for k, (count, before) in enumerate(zip(counts, self._counts, strict=True)):
            self.absent[k] = self.absent[k] + 1 if count == before else 0
            lost += count == before
        self._counts = counts
        return lost

    def outdated(self, now: float, largest: float) -> bool:
        """Whether a report has become too old since `count`; `ages` are those of `now` then."""
        times = self.feedback.time.tolist()
        if all(now - sampled <= largest for sampled in times):
            return False
        self.ages[:] = [now - sampled for sampled in times]
        return True

    def send(self, wanted: Wanted, torque: np.ndarray, pausing: bool = False) -> None:
        """Make the frames of all axes, then send them: none before all are made.

        Who was refused one is the first in the next cycle: a queue that takes all frames but the
        last must not cut off always the same drive. `pausing`: drives that answer commands may go
        without one in this cycle, if the next is to show which reports come unasked.
        """
        frames = [
            drive.command(wanted, value)
            for drive, value in zip(self.drives, torque.tolist(), strict=True)
        ]
        send, before = self.bus.send, time.perf_counter()
        order = [*range(self._first, len(frames)), *range(self._first)]
        if self._punctual.pauses and any(self._answers):
            if pausing:
                order = [k for k in order if not self._answers[k]]
            else:
                self._punctual.postpone()
        refused = [k for k in order if not send(frames[k])]
        for k in order:
            if self._answers[k] and k not in refused:
                self._punctual.ask(k)
        self._cycle += 1
        for drive in self.drives:
            for frame in drive.asides(self._cycle):
                send(frame)
                self._intruders.note(frame)
        self.transfer += time.perf_counter() - before
        self._sent = self.bus.clock.now()
        if self.bus.echoes is not False:
            for frame in frames:
                self._intruders.note(frame)
        self._first = refused[0] if refused else 0
        self.refused = self.refused + 1 if refused else 0
