"""The loop: reports in, torques out, one row for the record, in every cycle the same.

One process, one thread. What waits, allocates much or talks to people runs elsewhere: the
recorder, the terminal view and the dashboard read the ring, and nobody can hold the loop up.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from concur.control import Tick, TickStatus
from hil._exchange import Exchange
from hil.clock import ASLEEP
from hil.drives import AxisCheck, Finding, Wanted
from hil.emulator import EmulationClock
from hil.errors import ArmError
from hil.guard import CLIPPED, Limits, Verdict, brake, hold, judge, largest_speed, policy_torque
from hil.latch import Action, Latch, Phase
from hil.quality import LATE, PROMPT, Quality
from hil.realtime import Granted, host_time, realtime
from hil.reasons import Reason, State
from hil.record.rows import Layout
from hil.rig import Policy
from hil.state.estimator import Estimator

if TYPE_CHECKING:
    from concur.control import Servo
    from hil.bus import Bus
    from hil.drives import Drive
    from hil.operator import OperatorChannel
    from hil.plan import Plan
    from hil.record.ring import Ring
    from hil.rig import Rig
    from hil.state.pose_source import PoseReceiver

PATIENCE = 3.0
"""Time that drives may take from arming until all report and are under power, s."""

OPERATOR_PATIENCE = 30.0
"""Time that a person may take to hold the deadman, s."""

HOLDING = 1.0
"""Time for which a stop of category 2 holds where there is no operator to end it, s."""

RESET_CYCLES = 50
"""Cycles for which a fault reset is asked of the drives, where it is wanted."""


class Mode(Enum):
    """What a loop may do to the bus; values are sentences. The guard is the same in all."""

    MOCK = "emulated drives in this process, in simulated time"
    LISTEN = "judge what others command; send nothing"
    SHADOW = "compute what would be sent; send nothing"
    DRIVE = "drive the motors"


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    mode : Mode
        What the loop was allowed to do.
    reason : Reason
        Why it stopped; `Reason.END`: the task was done.
    elapsed : float
        Time in RUN, s.
    error : numpy.ndarray
        Last tracking error in RUN, in error coordinates (m, rad), shape (size,); NaN if none.
    quality : Quality
        What came late, was lost, was stale, was clipped.
    granted : Granted
        What the operating system gave.
    checks : tuple of AxisCheck
        What the drives said before arming.
    left : tuple of str
        What went wrong when the drives were released at the end: one sentence for each drive that
        is not known to be out of the loop.
    machine : str
        Standstills of the machine during the run, in words; "" if there were none to speak of.
    """

    mode: Mode
    reason: Reason
    elapsed: float
    error: np.ndarray
    quality: Quality
    granted: Granted
    checks: tuple[AxisCheck, ...] = ()
    left: tuple[str, ...] = ()
    machine: str = ""

    @property
    def done(self) -> bool:
        """Whether the task was run to its end."""
        return self.reason is Reason.END


class _Failing:
    """Failing cycles in a row, of one kind."""

    __slots__ = ("cycles", "policy", "reason")

    def __init__(self, reason: Reason, policy: Policy) -> None:
        self.reason, self.policy, self.cycles = reason, policy, 0


class Controller:
    """One loop on one rig; `run` arms, runs the task and leaves.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : Servo
        The law's servo.
    tick : Tick
        The compiled law.
    plan : Plan
        The reference, sampled at the loop's period.
    drives : sequence of Drive
        One for each axis, in order.
    bus : Bus
        The open bus.
    ring : Ring
        Where each cycle is written.
    mode : Mode
        What it may do.
    operator : OperatorChannel, optional
        Heartbeat and stop button. Needed in mode DRIVE.
    pose : PoseReceiver, optional
        External pose of the base.
    recording : callable, optional
        Tells whether the record can still be written.
    resets : bool
        Whether to clear faults that drives have when they are armed. Without it a rig whose drive
        has a fault is not armed: nobody has looked at it yet.
    attended : bool
        Whether a person is the operator; without one a rig that holds is held for a second.

    Raises
    ------
    ArmError
        If there is no operator in mode DRIVE, or the plan has another period.
    """

    def __init__(
        self,
        rig: Rig,
        servo: Servo,
        tick: Tick,
        plan: Plan,
        drives: Sequence[Drive],
        bus: Bus,
        ring: Ring,
        *,
        mode: Mode,
        operator: OperatorChannel | None = None,
        pose: PoseReceiver | None = None,
        recording: Callable[[], bool] | None = None,
        resets: bool = False,
        attended: bool = True,
    ) -> None:
        if mode is Mode.DRIVE and operator is None:
            raise ArmError(
                f"rig `{rig.name}`, mode DRIVE",
                expected="an operator's heartbeat",
                came="none",
                cure="Give the controller an OperatorChannel.",
            )
        if abs(plan.period - rig.loop.period) > 1e-12:
            raise ArmError(
                f"rig `{rig.name}`, plan",
                expected=f"the loop's period of {rig.loop.period:g} s",
                came=f"{plan.period:g} s",
                cure="Sample the plan with `rig.loop.period`.",
            )
        if mode is Mode.DRIVE:
            rig.check_operator()
        self.rig, self.servo, self.tick, self.plan = rig, servo, tick, plan
        self.drives, self.bus, self.ring, self.mode = tuple(drives), bus, ring, mode
        self.operator, self.pose, self.recording = operator, pose, recording
        self.resets = resets
        self.attended = attended
        self.clock = bus.clock
        self.quality = Quality()
        self.latch = Latch.from_rig(rig)
        self.checks: tuple[AxisCheck, ...] = ()
        self.left: list[str] = []
        n = len(rig.axes)
        self.limits = Limits.from_rig(rig)
        self.estimator = Estimator(rig, servo)
        self.layout: Layout = ring.layout
        self._row = self.layout.views(ring.row)
        self._talks = mode in (Mode.MOCK, Mode.DRIVE)
        bus.silent = not self._talks
        self._exchange = Exchange(rig, drives, bus, self._talks)
        self.feedback = self._exchange.feedback
        self._errors = servo.buffered("errors")
        self._demand = np.zeros(n)
        self._torque = np.zeros(n)
        self._passed = np.zeros(n)
        self._held = np.zeros(n)
        self._still = np.zeros(n)
        self._anchor = np.zeros(n)
        self._carried = np.zeros(n)
        self._error = np.full(servo.size, np.nan)
        self._last_error = np.full(servo.size, np.nan)
        self._lost = _Failing(Reason.LOST, rig.policies.lost)
        self._late = _Failing(Reason.LATE, rig.policies.late)
        self._signal = 0
        self._addressed = False  # whether anything was asked of the drives
        self._stalls, self._stalled, self._longest_stall = 0, 0.0, 0.0  # of this loop, s
        self._heard = 0  # cycles in a row, when armed, with reports of all axes
        self._losing = 0  # cycles in a row without a report of some axis, whichever
        self._stops = 0  # stops that the operator had asked for when holding began
        self._armed = self._elapsed = self._asleep = float("nan")
        self._longest = min(axis.watchdog for axis in rig.axes)
        self._missed = 0  # deadlines since the cycle before that had no cycle
        self._delayed = 0  # cycles late or left out since the loop kept up
        self._tick_status = TickStatus.OK
        self._flags = 0  # bits of `Flag`: enumerations are slow
        self._index = 0

    # -- the whole run -------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Arm, run the task, stop, leave.

        Returns
        -------
        Outcome
            Why it ended, and what it was like.

        Raises
        ------
        ArmError, DriveError, UnitError
            If the rig may not be armed; no torque has left.
        """
        rig, failure, host = self.rig, None, host_time()
        with (
            realtime(rig.loop.priority, rig.loop.lock_memory) as granted,
            self._signals(),
            self._in_time(),
        ):
            try:
                self._prepare()
                self._loop()
            except BaseException as error:
                failure = error
                self.latch.stop(Reason.ERROR)
                raise
            finally:
                self._leave()
                if failure is not None:
                    for sentence in self.left:
                        failure.add_note(sentence)
        return Outcome(
            self.mode,
            self.latch.reason,
            self._elapsed,
            self._last_error,
            self.quality,
            granted,
            self.checks,
            tuple(self.left),
            self._standstills(host),
        )

    def _standstills(self, before: tuple[float, float]) -> str:
        """Say how often the machine kept this loop, or the rig that it emulates, waiting."""
        taken, passed = (b - a for a, b in zip(before, host_time(), strict=True))
        parts = []
        if isinstance(self.clock, EmulationClock):
            stalls = self.clock.stalls
            count, longest, total = stalls.count, stalls.longest, stalls.total
        else:
            count, longest, total = self._stalls, self._longest_stall, self._stalled
        if count:
            parts.append(
                f"the machine stood still {count} times, {1e3 * longest:.0f} ms at most and "
                f"{total:.2f} s together"
            )
        if passed > 0.0 and taken / passed >= 0.01:
            parts.append(f"its host took {100.0 * taken / passed:.0f} % of the processor time")
        return "; ".join(parts)

    def _prepare(self) -> None:
        """Everything that is asked before any drive is put under power."""
        self._warm_up()
        if self.operator is not None and self._talks:
            self._await_operator(self.operator)
        self._asleep = self.clock.asleep()
        if not self._talks:
            return
        self._addressed = True
        with self._exchange.watching():
            self._prepare_drives()

    def _prepare_drives(self) -> None:
        """Write what the drives need, try their watchdogs, measure how soon they answer."""
        checks: list[AxisCheck] = []
        for drive in self.drives:
            if self.resets:
                drive.reset(self.bus)
            checks += drive.prepare(self.bus)
        for kind in dict.fromkeys(type(drive) for drive in self.drives):
            checks += kind.prove([d for d in self.drives if type(d) is kind], self.bus)
        self.checks = tuple(checks)
        if self.operator is not None:
            # That took a while: the next heartbeat tells whether somebody still watches.
            until = self.clock.now() + self.rig.operator.timeout
            while not self._signal and self.clock.now() < until:
                if self.operator.poll(self.clock.now()) is not Reason.DEADMAN:
                    break
                self.clock.sleep_until(self.clock.now() + 0.02)
        self.checks += self._measure_latency()  # last: from now on drives are spoken to

    def _measure_latency(self) -> tuple[AxisCheck, ...]:
        """Refuse drives whose reports come too late for the cycle that they belong to."""
        loop, found = self.rig.loop, []
        for drive, trip in zip(self.drives, self._exchange.round_trips(), strict=True):
            # Drives that answer commands have until the next cycle.
            axis, opened = drive.axis, type(drive).opening_frames(self.rig)
            window = loop.window if opened else loop.period
            if trip > window:
                raise ArmError(
                    f"axis `{axis.name}`, round trip of a report",
                    expected=f"at most {1e3 * window:.3g} ms, the "
                    + ("receive window" if opened else "period of the loop"),
                    came=f"{1e3 * trip:.3g} ms",
                    cure="Find what delays frames: a gateway, an adapter's queue, the priority of "
                    "the loop. If the delay is right, increase `window` of `[loop]` (and "
                    "`latency` of `[estimator]`), or reduce `rate`.",
                )
            finding = Finding.UNKNOWN if math.isnan(trip) else Finding.FOUND
            came = "" if math.isnan(trip) else f"{1e3 * trip:.3g}"
            found.append(
                AxisCheck(
                    axis.name, "round trip of a report, ms", finding, f"{1e3 * window:.3g}", came
                )
            )
        return tuple(found)

    def _warm_up(self) -> None:
        """Call once what is slow when it is called first; nothing of it is kept."""
        buffers, plan, still = self.tick.buffers, self.plan, self._still
        buffers.q[:] = self.rig.task.q0
        buffers.s[:] = 0.0
        buffers.pose[:], buffers.twist[:] = plan.pose[0], plan.twist[0]
        buffers.acceleration[:] = plan.acceleration[0]
        self.tick.run()
        self.tick.reset()
        self._errors.view(buffers.q, buffers.s, buffers.pose, buffers.twist)
        self.estimator.acceleration(still)
        judge(still, still, still, still, still, self.limits, self.rig.loop.period, self._passed)

    def _await_operator(self, operator: OperatorChannel) -> None:
        clock, settings = self.clock, self.rig.operator
        until = clock.now() + OPERATOR_PATIENCE
        while True:
            reason = operator.poll(clock.now())
            if reason is Reason.OPERATOR:
                raise ArmError(
                    f"rig `{self.rig.name}`, operator",
                    expected="nobody who asks for a stop",
                    came="a stop",
                    cure="Remove its cause, then begin anew. Nothing was armed.",
                )
            if reason is not Reason.DEADMAN:
                return
            if clock.now() >= until or self._signal:
                raise ArmError(
                    f"rig `{self.rig.name}`, operator",
                    expected=f"a heartbeat at {settings.host}:{settings.port}",
                    came="none",
                    cure="Hold the deadman: a key in the terminal view, or a pendant. Nothing was "
                    "armed.",
                )
            clock.sleep_until(clock.now() + 0.02)

    def _loop(self) -> None:
        period, clock = self.rig.loop.period, self.clock
        self.latch.arm()
        self._armed = clock.now()
        deadline = clock.now() + period
        while True:
            clock.sleep_until(deadline)
            self._cycle(deadline)
            if self.latch.may_leave and self.latch.state is State.STOP:
                return
            # A cycle that would begin more than half a period late is left out: it would wait its
            # whole window for reports again, and the loop would stay behind.
            deadline += period
            missed = max(0, round((clock.now() - deadline) / period))
            if missed:
                self.quality.skipped += missed
                self._missed = missed
                if self.latch.state is State.RUN:  # before, nothing of the task is missed
                    self._index += missed
                deadline += missed * period

    def _leave(self) -> None:
        """Cycles without torque, then each drive out of the loop, whatever happened before."""
        if not (self._talks and self._addressed):
            return
        clock, period = self.clock, self.rig.loop.period
        for _ in range(self.rig.policies.postlude):
            for drive in self.drives:  # one that fails does not keep the others from their frames
                with suppress(Exception):
                    self.bus.send(drive.command(Wanted.OFF, 0.0))
            with suppress(Exception):
                clock.sleep_until(clock.now() + period)
        for drive in self.drives:
            refused = self.bus.refused
            try:
                drive.release(self.bus)
            except Exception as error:
                self._note_left(drive, f"{type(error).__name__}: {error}")
            else:
                if self.bus.refused > refused:
                    self._note_left(drive, "the bus did not take all frames")

    def _note_left(self, drive: Drive, why: str) -> None:
        """Keep why a drive is not known to be out of the loop."""
        self.left.append(f"axis `{drive.axis.name}` may still be under power: {why}")

    # -- one cycle -----------------------------------------------------------------------------

    def _cycle(self, deadline: float) -> None:
        clock, quality, row, exchange = self.clock, self.quality, self._row, self._exchange
        start = clock.now()
        started = time.perf_counter()
        lateness = start - deadline
        behind = lateness + self._missed * self.rig.loop.period  # of the first that had no cycle
        quality.cycles += 1
        quality.lateness.add(lateness)
        exchange.take(start)
        now = clock.now()
        lost = exchange.count(now)
        quality.invalid = sum(self.feedback.invalid.tolist())
        late = lateness > LATE * self.rig.loop.period
        quality.late += late
        if late or self._missed:
            self._stalls += 1
            self._stalled += behind
            self._longest_stall = max(self._longest_stall, behind)
        reason = self._reason_outside(now)
        estimated = self._estimate(now)  # in any case: a stop brakes by it
        reason = reason or estimated
        self._count_failures(late, lateness <= PROMPT * self.rig.loop.period, lost)
        self._law()
        reason = reason or self._advance(now, lost)
        if behind > self._longest:
            # The drives have stopped by themselves, or the clock has jumped: speeds are none.
            self.latch.stop(Reason.LATE)
            self.latch.remove_power()
        self._judge_and_act(start, reason)
        quality.refused = self.bus.refused
        compute = time.perf_counter() - started - exchange.waited - exchange.transfer
        quality.compute.add(compute)
        quality.transfer.add(exchange.transfer)
        row["cycle"][0] = quality.cycles
        row["time"][0] = start
        row["deadline"][0] = deadline
        row["elapsed"][0] = self._elapsed if self.latch.state is State.RUN else np.nan
        row["compute"][0] = compute
        self._fill_row(now)
        self.ring.publish()

    def _reason_outside(self, now: float) -> Reason:
        """What people, the operating system, the bus and the drives say."""
        if self._signal:
            return Reason.SIGNAL
        if self.operator is not None:
            reason = self.operator.poll(now)
            if reason is Reason.OPERATOR or (self._talks and reason is Reason.DEADMAN):
                return reason
        if self.recording is not None and not self.recording():
            return Reason.RECORDER
        return self._reason_of_drives()

    def _reason_of_drives(self) -> Reason:
        """What the bus says, and while torques leave, the drives."""
        if self._talks and self._exchange.foreign:
            return Reason.FOREIGN
        if self._talks and self._exchange.delayed:
            return Reason.STALE
        if self._talks and (self.bus.is_off or self._exchange.refused > self.rig.policies.patience):
            return Reason.BUS_OFF
        if self._talks and self._asks_for_torque:
            feedback = self.feedback
            if any(feedback.fault.tolist()):
                return Reason.DRIVE_FAULT
            if not all(feedback.enabled.tolist()):
                return Reason.DRIVE_OFF
        return Reason.NONE

    @property
    def _asks_for_torque(self) -> bool:
        """Whether torques leave: those of the law, or those of a stop that brakes or holds."""
        latch = self.latch
        return latch.state is State.RUN or latch.phase in (Phase.BRAKING, Phase.HOLDING)

    def _estimate(self, now: float) -> Reason:
        estimator, feedback = self.estimator, self.feedback
        running, moved = self.latch.state is State.RUN, self._asks_for_torque
        known = None
        if moved:
            # Of the torque that acted since the cycle before, as well as it is known.
            acted = self._torque if self._talks else feedback.torque
            known = estimator.acceleration(acted)
        if estimator.started:
            estimator.update(feedback, now, known)
        elif (feedback.count > 0).all():
            estimator.start(feedback, now)
        if self.pose is not None:
            for measurement in self.pose.poll(now):
                if moved:
                    estimator.correct(measurement)
                else:
                    estimator.adopt(measurement)
        if not running:
            return Reason.NONE
        self.quality.stale += sum(estimator.stuck.tolist())
        return self._reason_of_estimator()

    def _reason_of_estimator(self) -> Reason:
        """Why its state may not be used."""
        estimator, settings = self.estimator, self.rig.pose
        needed = settings is not None and settings.required
        if needed and (estimator.disagrees or estimator.source.startswith("lift (")):
            return Reason.POSE_LOST
        if any(estimator.stuck.tolist()):
            return Reason.STUCK
        if not estimator.valid:
            return Reason.LOST if estimator.lost.any() else Reason.NOT_FINITE
        return Reason.NONE

    def _count_failures(self, late: bool, prompt: bool, lost: int) -> None:
        """Count failing cycles in a row; only a run has any."""
        running = self.latch.state is State.RUN
        if running and self._exchange.paused:
            self._lost.cycles = 0  # nothing was asked for
        elif running:
            self.quality.lost += lost
            # One axis that stays away is a failure, five that hesitate in turn are not; but then
            # no old torque is kept either: the law goes on with what is known.
            self._losing = self._losing + 1 if lost else 0
            absent, patience = max(self._exchange.absent), self.rig.policies.patience
            self._lost.cycles = absent if self._losing <= patience or absent > patience else 0
        else:
            self._lost.cycles = self._losing = 0
        failed = late + self._missed  # the last torque was kept for as long
        # Only a cycle that began in time by itself shows that the loop keeps up.
        keeps_up = prompt and not failed
        self._delayed = self._delayed + failed if running and not keeps_up else 0
        self._late.cycles = self._delayed if failed else 0
        self._missed = 0

    def _law(self) -> None:
        """Evaluate the law at the reference of this cycle."""
        buffers, plan, estimator = self.tick.buffers, self.plan, self.estimator
        running = self.latch.state is State.RUN
        k = min(self._index, len(plan) - 1)
        buffers.pose[:] = plan.pose[k]
        buffers.twist[:] = plan.twist[k]
        buffers.acceleration[:] = plan.acceleration[k]
        if not estimator.started:
            return
        buffers.q[:] = estimator.q
        buffers.s[:] = estimator.s
        self._tick_status = TickStatus(self.tick.run())
        self._demand[:] = buffers.u
        x, _ = self._errors.view(buffers.q, buffers.s, buffers.pose, buffers.twist)
        self._error[:] = x
        if running:
            self._last_error[:] = x
            self._index += 1

    def _advance(self, now: float, lost: int) -> Reason:
        """From ARMED to RUN when all is ready, and from RUN to the end of the task."""
        latch = self.latch
        if latch.state is State.RUN:
            self._elapsed = (self._index - 1) * self.plan.period
            if self._tick_status is not TickStatus.OK and self.mode is not Mode.LISTEN:
                return Reason.TICK_REFUSED
            near = _within(self.rig.policies.largest_error, self._error)
            if not near and self.mode is not Mode.LISTEN:
                return Reason.TRACKING
            return Reason.END if self._index >= len(self.plan) else Reason.NONE
        if latch.state is not State.ARMED:
            return Reason.NONE
        wrong = self._reason_of_estimator() if self.estimator.started else Reason.LOST
        ready = wrong is Reason.NONE and not lost
        self._heard = self._heard + 1 if ready else 0
        if not self._talks:  # one report of each may be the answer to somebody who asks around
            ready = self._heard >= self.rig.policies.prelude
        else:
            ready = ready and bool(self.feedback.enabled.all())
            grace = RESET_CYCLES * self.plan.period if self.resets else 0.0
            if self.feedback.fault.any() and now - self._armed > grace:
                return Reason.DRIVE_FAULT
        if ready and latch.may_run:
            if self._tick_status is not TickStatus.OK:
                return Reason.TICK_REFUSED
            if not _within(self.rig.policies.start_error, self._error):
                return Reason.START_ERROR
            with suppress(ArmError):  # something asks for a stop: the latch will say what
                latch.run()  # at the first instant of the reference, for which the law was asked
                self._index, self._elapsed = 1, 0.0
                self._last_error[:] = self._error
        elif now - self._armed > max(PATIENCE, 0.0 if self._talks else self.plan.duration):
            return wrong or Reason.DRIVE_OFF
        return Reason.NONE

    def _judge_and_act(self, start: float, reason: Reason) -> None:
        """Let the guard judge, the latch decide, and send what it decides."""
        feedback, latch, limits = self.feedback, self.latch, self.limits
        estimator, ages = self.estimator, self._exchange.ages
        velocity = estimator.velocity if estimator.started else self._still
        position = estimator.position if estimator.started else feedback.position
        verdict = self._judge(position, velocity)
        flags = int(verdict.flags)
        self._flags |= flags
        if latch.state is State.RUN:
            self.quality.clipped += bool(flags & CLIPPED)
            reason = reason or verdict.reason
        elif self._asks_for_torque:
            # One reason to stop does not hide another that forbids to hold.
            latch.stop(self._reason_of_drives())
            latch.stop(verdict.reason)
        elif latch.state is State.ARMED and estimator.started:
            if verdict.reason is Reason.STALE and not self._talks:
                estimator.started = False  # others are not at it yet: begin anew with them
            else:
                reason = reason or verdict.reason
        before = latch.action
        latch.step(start, reason, largest_speed(velocity, ages, limits))
        self._end_holding(self.clock.now())
        self._check_again()
        action, wanted = latch.action, Wanted.TORQUE
        if action is Action.LAW:
            self._torque[:] = self._passed
        elif action is Action.BRAKE:
            brake(velocity, ages, limits, self._torque)
        elif action is Action.HOLD:
            if before is not Action.HOLD:
                self._anchor[:] = position
                # At the end of a task the law's last torque carries the robot.
                self._carried[:] = self._torque if before is Action.LAW else 0.0
            hold(position, self._anchor, velocity, ages, limits, self._torque)
            self._torque += self._carried
            np.clip(self._torque, -limits.torque, limits.torque, out=self._torque)
        else:
            self._torque[:] = 0.0
            wanted = Wanted.READY if action is Action.READY else Wanted.OFF
        if wanted is Wanted.READY and self.resets and feedback.fault.any():
            wanted = Wanted.RESET
        self._exchange.send(wanted, self._torque, pausing=action is Action.LAW)

    def _check_again(self) -> None:
        """Stop if the loop, or the machine, was held up after the reports were judged."""
        if self.clock.asleep() - self._asleep > ASLEEP:
            self.latch.stop(Reason.CLOCK)
        if self._asks_for_torque and self._exchange.outdated(
            self.clock.now(), self.limits.largest_age
        ):
            self.latch.stop(Reason.LATE)

    def _end_holding(self, now: float) -> None:
        """End a stop that holds: at a reset, a second stop, or when the operator goes away.

        Where there is no operator at all, it ends after a while.
        """
        latch, operator = self.latch, self.operator
        asked = operator is not None and operator.take_reset()  # one from before counts no more
        if latch.phase is not Phase.HOLDING:
            self._stops = 0 if operator is None else operator.stops
            return
        if operator is None or not self.attended:
            ends = latch.cycles * latch.period >= HOLDING
        else:
            ends = asked or operator.stops > self._stops or not operator.alive(now)
        if ends:
            latch.remove_power()

    def _judge(self, position: np.ndarray, velocity: np.ndarray) -> Verdict:
        """Verdict of the guard on what this mode and this state would send."""
        limits, period, ages = self.limits, self.rig.loop.period, self._exchange.ages
        demand, self._flags = self._demand, 0
        if self.latch.state is not State.RUN:
            demand = self._still
        elif self.mode is Mode.LISTEN:
            demand = self.feedback.torque
        for failing in (self._lost, self._late):
            if failing.cycles:
                held = policy_torque(
                    failing.policy,
                    failing.reason,
                    failing.cycles,
                    self.rig.policies.patience,
                    self._torque,
                    velocity,
                    ages,
                    limits,
                    period,
                    self._held,
                )
                if held.stops:
                    self._passed.fill(0.0)
                    return held
                demand, self._flags = self._held, self._flags | int(held.flags)
                break
        return judge(demand, self._torque, position, velocity, ages, limits, period, self._passed)

    def _fill_row(self, now: float) -> None:
        row, quality, feedback, estimator = self._row, self.quality, self.feedback, self.estimator
        buffers = self.tick.buffers
        row["state"][0] = self.latch.state
        row["reason"][0] = self.latch.reason
        row["tick"][0] = self._tick_status
        row["flags"][0] = self._flags
        row["late"][0] = quality.late
        row["lost"][0] = quality.lost
        row["stale"][0] = quality.stale
        row["clipped"][0] = quality.clipped
        row["pose_age"][0] = estimator.pose_age
        row["q"][:] = estimator.q
        row["s"][:] = estimator.s
        row["pose"][:] = buffers.pose
        row["twist"][:] = buffers.twist
        row["acceleration"][:] = buffers.acceleration
        row["error"][:] = self._error
        row["demand"][:] = self._demand
        row["torque"][:] = self._torque
        row["position"][:] = feedback.position
        row["velocity"][:] = feedback.velocity
        row["measured"][:] = feedback.torque
        row["report_time"][:] = feedback.time
        row["reports"][:] = feedback.count
        row["invalid"][:] = feedback.invalid
        row["enabled"][:] = feedback.enabled
        row["fault"][:] = feedback.fault

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Let the clock of an emulated rig wait for this loop, and no other part of a session."""
        clock = self.clock
        if not isinstance(clock, EmulationClock):
            yield
            return
        clock.join()
        try:
            yield
        finally:
            clock.leave()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn signals into stops, for as long as the loop runs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _: FrameType | None) -> None:
            self._signal = number

        wanted = [signal.SIGINT, signal.SIGTERM]
        wanted += [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        before = {number: signal.signal(number, note) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _within(bound: float, values: np.ndarray) -> bool:
    """Whether no value is larger than the bound, or no number."""
    return all(-bound <= value <= bound for value in values.tolist())
