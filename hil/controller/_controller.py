"""The loop: reports in, torques out, one row for the record, in every cycle the same.

One process, one thread. What waits, allocates much or talks to people runs elsewhere: the
recorder, the terminal view and the dashboard read the ring, and nobody can hold the loop up.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from types import FrameType

import numpy as np

from concur.control import Tick, TickStatus, TrackingLaw
from hil._plan import Plan
from hil._realtime import Granted, realtime
from hil._torque import CycleTorque
from hil.bus import Bus
from hil.controller._exchange import Exchange
from hil.controller._failures import Failures
from hil.controller._law import LoopLaw
from hil.controller._preparation import (
    await_heartbeat,
    await_operator,
    check_round_trips,
    prepare_drives,
    release_drives,
)
from hil.controller._standstills import Standstills
from hil.drives import AxisCheck, Drive, Wanted
from hil.emulator import EmulationClock
from hil.errors import ArmError
from hil.guard import CLIPPED, Limits, largest_speed
from hil.latch import Action, Latch, Phase
from hil.operator import OperatorChannel
from hil.quality import LATE, PROMPT, Quality
from hil.reasons import Reason, State
from hil.record.ring import Ring
from hil.settings import Rig
from hil.state.estimator import Estimator
from hil.state.pose_source import PoseReceiver

PATIENCE = 3.0
"""Time that drives may take from arming until all report and are under power, s."""

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


@dataclass(slots=True)
class _Arming:
    """What is known of a rig that is armed and does not run yet."""

    addressed: bool = False  # whether anything was asked of the drives
    since: float = float("nan")  # when it was armed, s
    heard: int = 0  # cycles in a row with reports of all axes and a usable state


class Controller:
    """One loop on one rig; `run` arms, runs the task and leaves.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : TrackingLaw
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
        servo: TrackingLaw,
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
                came="no operator",
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
        self.resets, self.attended = resets, attended
        self.clock = bus.clock
        self.quality = Quality()
        self.latch = Latch.from_rig(rig)
        self.limits = Limits.from_rig(rig)
        self.estimator = Estimator(rig, servo)
        self.checks: tuple[AxisCheck, ...] = ()
        self.left: list[str] = []
        self._talks = mode in (Mode.MOCK, Mode.DRIVE)
        bus.silent = not self._talks
        self._exchange = Exchange(rig, drives, bus, self._talks)
        self.feedback = self._exchange.feedback
        self._law = LoopLaw(servo, tick, plan, len(rig.axes))
        self._torque = CycleTorque(self.limits, rig.policies, rig.loop.period)
        self._failures = Failures(rig.policies)
        self._arming = _Arming()
        self._still = np.zeros(len(rig.axes))
        self._row = ring.layout.views(ring.row)
        self._shortest_watchdog = min(axis.watchdog for axis in rig.axes)
        self._signal = 0  # number of a signal that came
        self._stops = 0  # stops that the operator had asked for when holding began
        self._standstills = Standstills(self.clock)

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
        rig, failure = self.rig, None
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
            self._law.elapsed,
            self._law.last_error,
            self.quality,
            granted,
            self.checks,
            tuple(self.left),
            self._standstills.sentence,
        )

    def _prepare(self) -> None:
        """Everything that is asked before any drive is put under power."""
        self._warm_up()
        operator, clock = self.operator, self.clock
        if operator is not None and self._talks:
            await_operator(self.rig, operator, clock, self._is_interrupted)
        self._standstills.begin()
        if not self._talks:
            return
        self._arming.addressed = True
        with self._exchange.watching():
            self.checks = tuple(prepare_drives(self.drives, self.bus, self.resets))
            if operator is not None:
                await_heartbeat(self.rig, operator, clock, self._is_interrupted)
            # Last: from now on drives are spoken to.
            self.checks += tuple(check_round_trips(self.rig, self._exchange))

    def _is_interrupted(self) -> bool:
        return bool(self._signal)

    def _warm_up(self) -> None:
        """Call once what is slow when it is called first; nothing of it is kept."""
        still = self._still
        self._law.warm_up(self.rig.task.q0)
        self.estimator.acceleration(still)
        self._torque.judge(still, None, still, still, still)

    def _loop(self) -> None:
        period, clock = self.rig.loop.period, self.clock
        self.latch.arm()
        self._arming.since = clock.now()
        deadline = clock.now() + period
        while True:
            clock.sleep_until(deadline)
            self._cycle(deadline)
            if self.latch.may_leave and self.latch.state is State.STOP:
                return
            # Skip a cycle that would start more than half a period late. It would again wait the
            # full receive window, and the loop would never catch up.
            deadline += period
            skipped = max(0, round((clock.now() - deadline) / period))
            if skipped:
                self.quality.skipped += skipped
                self._failures.skipped = skipped
                if self.latch.state is State.RUN:  # before, nothing of the task is missed
                    self._law.index += skipped
                deadline += skipped * period

    def _leave(self) -> None:
        """Cycles without torque, then each drive out of the loop, whatever happened before."""
        if self._talks and self._arming.addressed:
            self.left += release_drives(self.rig, self.drives, self.bus)

    # -- one cycle -----------------------------------------------------------------------------

    def _cycle(self, deadline: float) -> None:
        clock, quality, row, exchange = self.clock, self.quality, self._row, self._exchange
        failures, law, period = self._failures, self._law, self.rig.loop.period
        start = clock.now()
        started = time.perf_counter()
        lateness = start - deadline
        behind = lateness + failures.skipped * period  # of the first that had no cycle
        quality.cycles += 1
        quality.lateness.add(lateness)
        exchange.take(start)
        now = clock.now()
        missing = exchange.count(now)
        quality.invalid = sum(self.feedback.invalid.tolist())
        late = lateness > LATE * period
        quality.late += late
        if late or failures.skipped:
            self._standstills.add(behind)
        reason = self._reason_outside(now)
        estimated = self._estimate(now)  # in any case: a stop brakes by it
        reason = reason or estimated
        running = self.latch.state is State.RUN
        if running and not exchange.paused:
            quality.lost += missing
        prompt = lateness <= PROMPT * period
        failures.count(running, late, prompt, missing, max(exchange.absent), exchange.paused)
        law.evaluate(self.estimator, running)
        reason = reason or self._advance(now, missing)
        if behind > self._shortest_watchdog:
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
        row["elapsed"][0] = law.elapsed if self.latch.state is State.RUN else np.nan
        row["compute"][0] = compute
        self._fill_row()
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
        patience = self.rig.policies.max_consecutive_faults
        if self._talks and (self.bus.is_off or self._exchange.refused > patience):
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
            acted = self._torque.sent if self._talks else feedback.torque
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
        self.quality.repeated += sum(estimator.stuck.tolist())
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

    def _advance(self, now: float, missing: int) -> Reason:
        """From ARMED to RUN when all is ready, and from RUN to the end of the task."""
        law = self._law
        if self.latch.state is State.RUN:
            law.follow()
            if law.status is not TickStatus.OK and self.mode is not Mode.LISTEN:
                return Reason.TICK_REFUSED
            if not law.is_within(self.rig.policies.largest_error) and self.mode is not Mode.LISTEN:
                return Reason.TRACKING
            return Reason.END if law.is_done else Reason.NONE
        if self.latch.state is State.ARMED:
            return self._begin(now, missing)
        return Reason.NONE

    def _begin(self, now: float, missing: int) -> Reason:
        """Begin the run, once all axes report and the state may be used."""
        latch, law, arming, policies = self.latch, self._law, self._arming, self.rig.policies
        wrong = self._reason_of_estimator() if self.estimator.started else Reason.LOST
        ready = wrong is Reason.NONE and not missing
        arming.heard = arming.heard + 1 if ready else 0
        if not self._talks:  # one report of each may be the answer to somebody who asks around
            ready = arming.heard >= policies.startup_cycles
        else:
            ready = ready and bool(self.feedback.enabled.all())
            grace = RESET_CYCLES * self.plan.period if self.resets else 0.0
            if self.feedback.fault.any() and now - arming.since > grace:
                return Reason.DRIVE_FAULT
        if ready and latch.may_run:
            if law.status is not TickStatus.OK:
                return Reason.TICK_REFUSED
            if not law.is_within(policies.start_error):
                return Reason.START_ERROR
            with suppress(ArmError):  # something asks for a stop: the latch will say what
                latch.run()
                law.begin()
        elif now - arming.since > max(PATIENCE, 0.0 if self._talks else self.plan.duration):
            return wrong or Reason.DRIVE_OFF
        return Reason.NONE

    def _judge_and_act(self, start: float, reason: Reason) -> None:
        """Let the guard judge, the latch decide, and send what it decides."""
        latch, torque, ages = self.latch, self._torque, self._exchange.ages
        estimator = self.estimator
        velocity = estimator.velocity if estimator.started else self._still
        position = estimator.position if estimator.started else self.feedback.position
        verdict = torque.judge(self._demand, self._failures.failing, position, velocity, ages)
        if latch.state is State.RUN:
            self.quality.clipped += bool(torque.flags & CLIPPED)
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
        latch.step(start, reason, largest_speed(velocity, ages, self.limits))
        self._end_holding(self.clock.now())
        self._check_again()
        action, wanted = latch.action, Wanted.TORQUE
        if action is Action.HOLD and before is not Action.HOLD:
            torque.anchor(position, carries=before is Action.LAW)
        torque.act(action, position, velocity, ages)
        if action is Action.OFF:
            wanted = Wanted.OFF
        elif action is Action.READY:
            resets = self.resets and self.feedback.fault.any()
            wanted = Wanted.RESET if resets else Wanted.READY
        self._exchange.send(wanted, torque.sent, pausing=action is Action.LAW)

    @property
    def _demand(self) -> np.ndarray:
        """Torque that the guard judges: the law's, or that of others; zero unless the rig runs."""
        if self.latch.state is not State.RUN:
            return self._still
        return self.feedback.torque if self.mode is Mode.LISTEN else self._law.demand

    def _check_again(self) -> None:
        """Stop if the loop, or the machine, was held up after the reports were judged."""
        if self._standstills.has_slept:
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

    def _fill_row(self) -> None:
        row, quality, feedback, estimator = self._row, self.quality, self.feedback, self.estimator
        law, buffers = self._law, self._law.buffers
        row["state"][0] = self.latch.state
        row["reason"][0] = self.latch.reason
        row["tick"][0] = law.status
        row["flags"][0] = self._torque.flags
        row["late"][0] = quality.late
        row["lost"][0] = quality.lost
        row["stale"][0] = quality.repeated
        row["clipped"][0] = quality.clipped
        row["pose_age"][0] = estimator.pose_age
        row["q"][:] = estimator.q
        row["s"][:] = estimator.s
        row["pose"][:] = buffers.pose
        row["twist"][:] = buffers.twist
        row["acceleration"][:] = buffers.acceleration
        row["error"][:] = law.error
        row["demand"][:] = law.demand
        row["torque"][:] = self._torque.sent
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
