"""The traffic of a cycle on all buses: opening frames, reports, commands."""

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
    from hil.drives import Drive
    from hil.links import Link, Links
    from hil.settings import Rig

TRIALS = 5
"""Number of measurements of a round trip; the shortest counts, as some frames are delayed."""

QUIET = 0.07
"""Silence before a round trip is measured, s, in which earlier requested reports arrive."""

LONGEST_TRIP = 0.25
"""Time-out of a report in the measurement of a round trip, s."""


class _Wire:
    """One link with its drives: who receives a frame, and which frames open a cycle.

    `rig` has this bus alone.
    """

    def __init__(self, link: Link, drives: Sequence[Drive], rig: Rig) -> None:
        self.link, self.drives = link, tuple(drives)
        kinds = dict.fromkeys(type(drive) for drive in self.drives)
        self.opening: tuple[can.Message, ...] = tuple(
            frame for kind in kinds for frame in kind.opening_frames(rig)
        )
        # Receivers of each identifier, and whether they report after an opening frame.
        self.receivers: dict[int, list[tuple[Drive, bool]]] = {}
        for drive in self.drives:
            asked = bool(type(drive).opening_frames(rig))
            for identifier in drive.identifiers:
                self.receivers.setdefault(identifier, []).append((drive, asked))
        self.intruders = Intruders(self.drives, link)
        self.first = 0  # first drive to send to: its command was rejected in the last cycle

    def open(self) -> None:
        """Send the frames that open a cycle."""
        for frame in self.opening:
            self.link.send(frame)
            self.intruders.note(frame)


class Exchange:
    """Exchanges frames with the drives of a rig; it sends only if `talks` is true."""

    def __init__(self, rig: Rig, drives: Sequence[Drive], links: Links, talks: bool) -> None:
        n = len(drives)
        self.rig, self.drives, self.links, self.talks = rig, tuple(drives), links, talks
        self._wires = [
            _Wire(
                link,
                [drive for drive, own in zip(drives, links.bus_of, strict=True) if own == k],
                rig.on(k) if len(links) > 1 else rig,
            )
            for k, link in enumerate(links)
        ]
        self.feedback = Feedback(n)
        self.ages = np.full(n, np.inf)  # time since each report was sampled, s
        self.absent = [0] * n  # consecutive cycles without a report, by axis
        self.foreign = 0  # number of frames of another host that command these drives
        self.meddled = -1  # index of the bus of the last of them
        self.refused = 0  # consecutive cycles in which a bus rejected a command
        self.refuser = -1  # index of the last bus that did
        self.transfer = self.waited = 0.0  # time in the library of the bus, and waiting time, s
        self._opened = any(wire.opening for wire in self._wires)
        self._answers = [not type(drive).opening_frames(rig) for drive in self.drives]
        self._counts = [0] * n  # number of reports at the last cycle
        self._fresh = [False] * n  # whether each axis has reported in this cycle
        self._missing = n  # number of axes that have not
        self._outside = [False] * n  # whether each axis has reported between the windows
        self.sent = math.nan  # instant of the commands of the last cycle
        self._cycle = 0
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
        links, clock, scratch = self.links, self.links.clock, Feedback(len(self.drives))
        shortest = [math.nan] * len(self.drives)
        silent = 0
        if not self._is_quiet(scratch):
            return shortest
        for _ in range(TRIALS):
            asked, missing = clock.now(), set(range(len(self.drives)))
            for wire in self._wires:
                for opening in wire.opening:
                    wire.link.send(opening)
            for k, drive in enumerate(self.drives):
                if self._answers[k]:
                    links.of(k).send(drive.command(Wanted.OFF, 0.0))
            while missing and (found := links.receive(asked + LONGEST_TRIP)) is not None:
                for k in [k for k in missing if self._is_report(*found, k, scratch)]:
                    missing.discard(k)
                    shortest[k] = min(clock.now() - asked, shortest[k])  # NaN is replaced
            silent += bool(missing)
            if silent > 1:
                break
        return shortest

    def _is_report(self, bus: int, frame: can.Message, axis: int, feedback: Feedback) -> bool:
        """Whether a frame of a bus is a report of an axis."""
        drive, is_own = self.drives[axis], self.links.bus_of[axis] == bus
        if not (is_own and frame.arbitration_id in drive.identifiers):
            return False
        return drive.receive(frame, self.links.clock.now(), feedback)

    def _is_quiet(self, feedback: Feedback) -> bool:
        """Wait until no reports arrive; return False if they do not cease."""
        links, clock = self.links, self.links.clock
        now = clock.now()
        until, end = now + QUIET, now + LONGEST_TRIP + QUIET
        while until <= end:
            found = links.receive(until)
            if found is None:
                return True
            if any(self._is_report(*found, k, feedback) for k in range(len(self.drives))):
                until = clock.now() + QUIET
        return False

    @contextmanager
    def watching(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Detect frames of another host while drives are prepared; call `interrupt` at each frame.

        Earlier frames, before the first write, are discarded. Identifiers on which drives report
        too, as MIT drives may, are not monitored. If another host has commanded these drives,
        ArmError is raised at the end, also in place of an error of a drive.
        """
        links, foreign = self.links, list[can.Message]()

        def watcher(wire: _Wire) -> Callable[[can.Message, bool], None]:
            def watch(frame: can.Message, leaves: bool) -> None:
                if leaves:
                    wire.intruders.note(frame)
                elif frame.arbitration_id not in wire.receivers and wire.intruders.is_foreign(
                    frame
                ):
                    foreign.append(frame)
                interrupt()

            return watch

        self._take_waiting(links.clock.now() + LONGEST_TRIP)
        cause = None
        for wire in self._wires:
            wire.link.watch = watcher(wire)
        try:
            yield
        except RigError as error:
            if not foreign:
                raise
            cause = error
        finally:
            for link in links:
                link.watch = None
        if foreign:
            raise Intruders.refusal(foreign[0]) from cause

    def take(self, start: float) -> None:
        """Open a cycle and receive frames until every axis has reported or the window is over."""
        latency = self.rig.estimator.latency
        window, clocked = self.rig.loop.receive_window, time.perf_counter
        self._missing = len(self.drives)
        self._fresh = [False] * self._missing
        before = clocked()
        waiting = self._take_waiting(start + window) if self._opened and self.talks else []
        self.paused = self._punctual.pauses and self.talks
        if not self.paused:
            for wire in self._wires:
                wire.open()
        self.transfer, self.waited = clocked() - before, 0.0
        # Waiting frames arrived after the last window. Drives that report after an opening frame
        # sampled them after an earlier one; their reports of this cycle are still to come.
        self._outside = [False] * len(self.drives)
        for bus, frame, came in waiting:
            self._read(bus, frame, came, math.nan, late=True)
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
        links, clock, clocked = self.links, self.links.clock, time.perf_counter
        end = until + self.rig.loop.receive_window  # in case a babbling node never stops
        while True:
            before = clocked()
            received = links.receive()
            self.transfer += clocked() - before
            if received is None:
                if not self._missing or clock.now() >= until:
                    return
                before = clocked()
                received = links.receive(until)
                self.waited += clocked() - before
                if received is None:
                    return
            now = clock.now()
            # Read after the window, because the loop was delayed, it came within it.
            self._read(*received, min(now, until), answered)
            if now > end:
                return

    def _take_waiting(self, end: float) -> list[tuple[int, can.Message, float]]:
        """Receive the waiting frames, each with its bus and its instant."""
        links, clock, frames = self.links, self.links.clock, []
        while (found := links.receive()) is not None:
            now = clock.now()
            frames.append((*found, now))
            if now > end:
                break
        return frames

    def _read(
        self, bus: int, frame: can.Message, came: float, sampled: float, late: bool = False
    ) -> None:
        """Pass a frame to its drives; an answer to a command counts as sampled at `sampled`.

        `late`: the frame answers an opening frame of an earlier cycle.
        """
        wire = self._wires[bus]
        for drive, asked in wire.receivers.get(frame.arbitration_id, ()):
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
        if self.talks and wire.intruders.is_foreign(frame):
            self.foreign += 1
            self.meddled = bus

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

        The first axis of a bus whose frame was rejected is the first in the next cycle, so that a
        queue that rejects the last frame does not always cut off the same drive. `pausing`: drives
        that answer commands get no command in this cycle if the next cycle must show delayed
        reports.
        """
        frames = [
            drive.command(wanted, value)
            for drive, value in zip(self.drives, torque.tolist(), strict=True)
        ]
        before, pauses = time.perf_counter(), self._punctual.pauses and any(self._answers)
        if pauses and not pausing:
            self._punctual.postpone()
        self._cycle += 1
        asked, refusals = list[int](), False
        for k, wire in enumerate(self._wires):
            taken, first = self._command(wire, frames, pauses and pausing)
            asked += taken
            wire.first, refused = max(first, 0), first >= 0
            if refused:
                refusals, self.refuser = True, k
            self._aside(wire)
        self.sent = now = self.links.clock.now()
        for axis in asked:
            self._punctual.ask(axis, now)
        self.transfer += time.perf_counter() - before
        self.refused = self.refused + 1 if refusals else 0

    def _command(
        self, wire: _Wire, frames: Sequence[can.Message], pauses: bool
    ) -> tuple[list[int], int]:
        """Send the commands of a link.

        Returns the axes that will answer, and the place of the first drive that was rejected, or
        -1.
        """
        size, send = len(wire.drives), wire.link.send
        order = [*range(wire.first, size), *range(wire.first)]
        answers, rejected = list[int](), -1
        for place in order:
            axis = wire.drives[place].index
            if pauses and self._answers[axis]:
                continue
            if send(frames[axis]):
                answers += [axis] * self._answers[axis]
            elif rejected < 0:
                rejected = place
        if wire.link.echoes is not False:
            for drive in wire.drives:
                wire.intruders.note(frames[drive.index])
        return answers, rejected

    def _aside(self, wire: _Wire) -> None:
        """Send the further frames of the drives of a link."""
        for drive in wire.drives:
            for frame in drive.asides(self._cycle):
                wire.link.send(frame)
                wire.intruders.note(frame)
