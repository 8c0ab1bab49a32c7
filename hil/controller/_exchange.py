"""The bus traffic of a cycle: opening frames, reception of reports, sending of commands."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import can
import numpy as np

from hil._punctuality import Punctuality
from hil.drives import Intruders, Wanted
from hil.drives.feedback import Feedback
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.bus import Bus
    from hil.drives import Drive
    from hil.settings import Rig

TRIALS = 5
"""Number of measurements of a round trip; the shortest counts, as some frames are delayed."""

QUIET = 0.07
"""Silence before a round trip is measured, s, in which earlier requested reports arrive."""

LONGEST_TRIP = 0.25
"""Time-out of a report in the measurement of a round trip, s."""


class Exchange:
    """Exchanges frames with the drives of a rig; it sends only if `talks` is true."""

    def __init__(self, rig: Rig, drives: Sequence[Drive], bus: Bus, talks: bool) -> None:
        n = len(drives)
        self.rig, self.drives, self.bus, self.talks = rig, tuple(drives), bus, talks
        self.feedback = Feedback(n)
        self.ages = np.full(n, np.inf)  # time since each report was sampled, s
        self.absent = [0] * n  # consecutive cycles without a report, by axis
        self.foreign = 0  # number of frames of another host that command these drives
        self.refused = 0  # consecutive cycles in which the bus rejected a command
        self.transfer = self.waited = 0.0  # time in the library of the bus, and waiting time, s
        kinds = dict.fromkeys(type(drive) for drive in self.drives)
        self._opening: tuple[can.Message, ...] = tuple(
            frame for kind in kinds for frame in kind.opening_frames(rig)
        )
        # Receivers of each identifier, and whether they report after an opening frame.
        self._receivers: dict[int, list[tuple[Drive, bool]]] = {}
        self._answers = [not type(drive).opening_frames(rig) for drive in self.drives]
        for drive, answers in zip(self.drives, self._answers, strict=True):
            asked = not answers
            for identifier in drive.identifiers:
                self._receivers.setdefault(identifier, []).append((drive, asked))
        self._counts = [0] * n  # number of reports at the last cycle
        self._fresh = [False] * n  # whether each axis has reported in this cycle
        self._missing = n  # number of axes that have not
        self._outside = [False] * n  # whether each axis has reported between the windows
        self.sent = math.nan  # instant of the commands of the last cycle
        self._intruders = Intruders(self.drives, bus)
        self._cycle = 0
        self._first = 0  # first axis to send to: its command was rejected in the last cycle
        self._punctual = Punctuality(n, rig.policies.max_consecutive_faults)
        self.paused = False  # whether no report was requested since the last cycle

    @property
    def late(self) -> int:
        """Axis whose reports answer an earlier cycle than the one in which they arrive, or -1."""
        return self._punctual.late

    def doubts(self, axis: int) -> bool:
        """Whether reports of an axis may answer an earlier cycle."""
        return self._punctual.doubts(axis)

    def round_trips(self) -> list[float]:
        """Measure for each axis the shortest time from the request of a report to its arrival, s.

        NaN for an axis that does not report, or reports without a request.
        """
        bus, clock, scratch = self.bus, self.bus.clock, Feedback(len(self.drives))
        shortest = [math.nan] * len(self.drives)
        silent = 0
        if not self._is_quiet(scratch):
            return shortest
        for _ in range(TRIALS):
            asked, missing = clock.now(), set(range(len(self.drives)))
            for opening in self._opening:
                bus.send(opening)
            for drive, answers in zip(self.drives, self._answers, strict=True):
                if answers:
                    bus.send(drive.command(Wanted.OFF, 0.0))
            while missing and (frame := bus.receive(asked + LONGEST_TRIP)) is not None:
                for k in [k for k in missing if self._is_report(frame, k, scratch)]:
                    missing.discard(k)
                    shortest[k] = min(clock.now() - asked, shortest[k])  # NaN is replaced
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
        """Wait until no reports arrive; return False if they do not cease."""
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
    def watching(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Detect frames of another host while drives are prepared; call `interrupt` at each frame.

        Earlier frames, before the first write, are discarded. Identifiers on which drives report
        too, as MIT drives may, are not monitored. If another host has commanded these drives,
        ArmError is raised at the end, also in place of an error of a drive.
        """
        bus, foreign = self.bus, list[can.Message]()
        reports = {identifier for drive in self.drives for identifier in drive.identifiers}

        def watch(frame: can.Message, leaves: bool) -> None:
            if leaves:
                self._intruders.note(frame)
            elif frame.arbitration_id not in reports and self._intruders.is_foreign(frame):
                foreign.append(frame)
            interrupt()

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
        """Open a cycle and receive frames until every axis has reported or the window is over."""
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
        # Waiting frames arrived after the last window. Drives that report after an opening frame
        # sampled them after an earlier one; their reports of this cycle are still to come.
        self._outside = [False] * len(self.drives)
        for frame, came in waiting:
            self._read(frame, came, math.nan, late=True)
        if not self.paused:
            for k, by_command in enumerate(self._answers):
                if not by_command:
                    self._punctual.ask(k, start)
        # Drives that answer commands sampled on their arrival; their reports have waited since.
        answered = self.sent + 2.0 * latency if self.talks else start
        self._listen(start + window, answered)
        if self.talks:
            self._punctual.end(self._fresh, self._outside, self.paused)

    def _listen(self, until: float, answered: float) -> None:
        """Receive frames until every axis has reported or an instant is reached."""
        bus, clock, clocked = self.bus, self.bus.clock, time.perf_counter
        end = until + self.rig.loop.receive_window  # in case a babbling node never stops
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
        """Receive the waiting frames, each with its instant."""
        bus, clock, frames = self.bus, self.bus.clock, []
        while (frame := bus.receive()) is not None:
            now = clock.now()
            frames.append((frame, now))
            if now > end:
                break
        return frames

    def _read(self, frame: can.Message, came: float, sampled: float, late: bool = False) -> None:
        """Pass a frame to its drives; an answer to a command counts as sampled at `sampled`.

        `late`: the frame answers an opening frame of an earlier cycle.
        """
        for drive, asked in self._receivers.get(frame.arbitration_id, ()):
            instant = sampled if asked is late and sampled < came else came
            if drive.receive(frame, instant, self.feedback):
                opened = self._punctual.come(drive.index)
                if late and asked:
                    self._outside[drive.index] = True
                    sampled = opened + self.rig.estimator.latency
                    if sampled < came:
                        self.feedback.time[drive.index] = sampled
                elif not self._fresh[drive.index]:
                    self._fresh[drive.index] = True
                    self._missing -= 1
                return
        if self.talks and self._intruders.is_foreign(frame):
            self.foreign += 1

    def count(self, now: float) -> int:
        """Update `ages` and `absent`; return the number of axes without a new report."""
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
        """Whether a report has become too old since `count`; `ages` are then updated to `now`."""
        times = self.feedback.time.tolist()
        if all(now - sampled <= largest for sampled in times):
            return False
        self.ages[:] = [now - sampled for sampled in times]
        return True

    def send(self, wanted: Wanted, torque: np.ndarray, pausing: bool = False) -> None:
        """Pack the frames of all axes, then send them.

        The first axis whose frame was rejected is the first in the next cycle, so that a queue that
        rejects the last frame does not always cut off the same drive. `pausing`: drives that answer
        commands get no command in this cycle if the next cycle must show delayed reports.
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
        now = self.bus.clock.now()
        for k in order:
            if self._answers[k] and k not in refused:
                self._punctual.ask(k, now)
        self._cycle += 1
        for drive in self.drives:
            for frame in drive.asides(self._cycle):
                send(frame)
                self._intruders.note(frame)
        self.transfer += time.perf_counter() - before
        self.sent = now
        if self.bus.echoes is not False:
            for frame in frames:
                self._intruders.note(frame)
        self._first = refused[0] if refused else 0
        self.refused = self.refused + 1 if refused else 0
