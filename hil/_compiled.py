"""The controller of a rig whose loop runs in C: it arms in Python, hands over, and supervises.

The loop is a thread of this process that needs nothing of Python: no interpreter lock, no memory.
Where the process is killed or suspended, the loop is too, and the watchdogs of the drives end
their torque. Python sends a heartbeat, without which the loop stops, and the requests of operator,
signals and recorder.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

import numpy as np

from hil._concur import TickStatus
from hil.controller import Controller
from hil.latch import Phase
from hil.reasons import Reason, State
from hil.spine import LoopInC, count
from hil.state import CAUSES, Cause, Finding

BEAT = 2e-3
"""Time between two heartbeats, s."""


class CompiledController(Controller):
    """A `Controller` that hands prepared drives over to the loop in C."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._c = LoopInC(self.rig, self.servo, self.ring.layout, self.plan)
        self._held_since = float("nan")

    def _loop(self) -> None:
        if self.links.echo:
            self.place = "Python: the adapter echoes sent frames"
            super()._loop()
            return
        priority, self.place = self.rig.loop.priority, "C"
        self.latch.arm()
        self._arming.since = self.clock.now()
        # Stops and faults of the preparation stop the loop before its first command.
        reason = self._reason_outside(self.clock.now()) or super()._reason_of_drives()
        if self._standstills.has_slept:
            reason = reason or Reason.CLOCK
        self._c.shared.stop = int(reason)
        try:
            self._c.start(self.drives, self.links, self.ring, priority, self.resets)
            if priority:  # the loop precedes its supervisor
                below = os.SCHED_FIFO if priority > 1 else os.SCHED_OTHER
                with suppress(OSError):
                    os.sched_setscheduler(0, below, os.sched_param(priority - 1))
            while self._c.runs:
                self._supervise(self._c.shared)
                time.sleep(BEAT)
        finally:
            self._c.end()
            self._conclude(self._c.shared)

    def _supervise(self, shared: Any) -> None:
        """Send the heartbeat and the requests of this instant."""
        now, output = self.clock.now(), self._c.output()
        shared.heartbeat += 1
        reason = self._reason_outside(now)
        if reason is Reason.NONE and output.state == State.ARMED:
            reason = self._start(output, now)
        if reason is not Reason.NONE:
            shared.stop = int(reason)
        holds = output.phase == Phase.HOLDING
        self._held_since = self._held_since if holds else now
        if self._holding_ends(now - self._held_since if holds else None, now):
            shared.release = 1

    def _reason_of_drives(self) -> Reason:
        return Reason.NONE  # the loop in C judges bus and drives

    def _start(self, output: Any, now: float) -> Reason:
        """Start the law once the rig is able to; return why it must not start."""
        if output.able:
            if output.status != TickStatus.OK:
                return Reason.TICK_REFUSED
            if not output.ready or not self._starts_in_region(output):
                return Reason.START_ERROR
            self._c.shared.run = 1
            return Reason.NONE
        if output.faults and self._grace_is_over(now):
            return Reason.DRIVE_FAULT
        if self._has_waited(now):
            wrong = next(reason for reason in Reason if reason == output.wrong)
            return wrong or Reason.DRIVE_OFF
        return Reason.NONE

    def _starts_in_region(self, output: Any) -> bool:
        """Whether the state is one of the starts of the proof of the task."""
        if self.start is None:
            return True
        q, s = np.array(output.q)[: self.servo.nq], np.array(output.s)[: self.servo.nw]
        plan = self.plan
        error, velocity = self._law.errors.view(q, s, plan.pose[0], plan.twist[0])
        return self.start.contains(error, velocity, q)

    def _conclude(self, shared: Any) -> None:
        """Take over the results of the loop."""
        output, law, stalls = shared.output, self._law, self._standstills
        law.elapsed = shared.elapsed
        law.last_error[:] = np.array(shared.error)[: self.servo.size]
        count(shared, self.quality)
        stalls.count, stalls.total = shared.delays, shared.delayed
        stalls.longest = shared.most_delayed
        self.latch.stop(self._c.reason or Reason.ERROR)
        self._axis = output.axis
        self._detail = self._detail_of(output)

    def _detail_of(self, output: Any) -> str:
        """Axis that caused the stop, with its numbers, as text; "" if no particular axis did."""
        reason, axis = self._c.reason, output.axis
        if reason in CAUSES:
            return finding_of(output.finding, self.rig.axes[output.finding.axis].name).detail
        if axis < 0:
            return ""
        more = ""
        if reason is Reason.DRIVE_FAULT:
            more = f", fault 0x{output.code:04X}"
        elif reason is Reason.STALE and output.strays:
            more = ": its reports arrive after the receive window"
        return f"axis `{self.rig.axes[axis].name}`{more}"


def finding_of(found: Any, name: str) -> Finding:
    """The `Finding` of a `rig_finding`; `name`: of its axis."""
    if found.repeats:
        return Finding.of_still(found.axis, name, found.repeats, found.way)
    cause = None
    if found.known:
        reason = next(reason for reason in Reason if reason == found.reason)
        cause = Cause(reason, found.factor, 0.0, encoder=bool(found.encoder))
    numbers = found.residual, found.allowed, found.applied
    return Finding.of_cause(found.axis, name, cause, *numbers)
