"""The control loop: in each cycle it reads reports, sends torques and records one row.

The loop has one thread. Recorder, terminal view and dashboard run in other processes and read the
ring, so that they cannot delay the loop.
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

import numpy as np

from hil._concur import Tick, TickStatus, TrackingLaw
from hil._plan import Plan
from hil._proof import StartRegion
from hil._realtime import Granted, realtime
from hil._stops import EFFECTS, is_power_lost
from hil._torque import CycleTorque
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
from hil.drives import AxisCheck, Drive, Finding, Wanted
from hil.emulator import EmulationClock
from hil.errors import ArmError
from hil.guard import CLIPPED, Limits, Verdict, largest_speed
from hil.latch import Action, Latch, Phase
from hil.links import Links
from hil.operator import OperatorChannel
from hil.quality import LATE, PROMPT, Quality
from hil.reasons import Reason, State
from hil.record.ring import Ring
from hil.settings import Rig
from hil.state import CAUSES, Residual, acting
from hil.state.estimator import Estimator
from hil.state.pose_source import PoseReceiver

PATIENCE = 3.0
"""Time after arming in which all drives must report and be under power, s."""

HOLDING = 1.0
"""Duration of the holding of a stop of category 2 without an operator, s."""

RESET_CYCLES = 50
"""Number of cycles in which a fault reset is requested, if the reset is permitted."""


class Mode(Enum):
    """Modes of the loop; values are sentences. The guard is the same in all modes.

    Examples
    --------
    >>> import hil
    >>> [mode.name for mode in hil.Mode]
    ['MOCK', 'LISTEN', 'SHADOW', 'DRIVE']
    """

    MOCK = "command emulated drives in this process, in simulated time"
    LISTEN = "check the commands of another controller; send nothing"
    SHADOW = "compute commands beside another controller; send nothing"
    DRIVE = "command the drives of the rig"


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a run.

    Parameters
    ----------
    mode : Mode
        Mode of the loop.
    reason : Reason
        Reason of the stop; `Reason.END`: the task was completed.
    elapsed : float
        Time in RUN, s.
    error : numpy.ndarray
        Last tracking error in RUN, in error coordinates (m, rad), shape (size,); NaN without RUN.
    quality : Quality
        Loop statistics.
    granted : Granted
        Real-time settings that the operating system granted.
    checks : tuple of AxisCheck
        Checks of the drives before arming.
    left : tuple of str
        Failed releases at the end: one sentence for each drive that did not confirm its release.
    machine : str
        Standstills of the machine during the run, as text; "" if there were none.
    detail : str
        Axis that caused the stop, with its numbers, as text; "" if no particular axis did.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options)
    >>> outcome = result.outcome
    >>> outcome.mode.name, outcome.reason.sentence
    ('MOCK', 'the task is done')
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
    detail: str = ""

    @property
    def done(self) -> bool:
        """Whether the task was completed."""
        return self.reason is Reason.END


@dataclass(slots=True)
class _Arming:
    """State of a rig before RUN."""

    addressed: bool = False  # whether frames were sent to the drives
    since: float = float("nan")  # instant of arming, s
    complete: int = 0  # consecutive cycles with reports of all axes and a valid state


class _Interrupted(Exception):  # noqa: N818
    """A preparation that a signal or a stop request has ended."""


class Controller:
    """The loop of one rig; `run` arms the rig, runs the task and releases the drives.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : TrackingLaw
        The control law.
    tick : Tick
        The compiled law.
    plan : Plan
        The reference, sampled at the loop's period.
    drives : sequence of Drive
        One drive for each axis, in order.
    links : Links
        The open buses.
    ring : Ring
        Ring that takes one row per cycle.
    mode : Mode
        Mode of the loop.
    operator : OperatorChannel, optional
        Heartbeat and stop button. Required in mode DRIVE.
    pose : PoseReceiver, optional
        External pose of the base.
    recording : callable, optional
        Returns whether the record can still be written.
    resets : bool
        Whether to clear faults of the drives during arming. If False, a rig whose drive has a fault
        does not run, as the cause of the fault is unknown.
    attended : bool
        Whether a person is the operator; without a person a stop of category 2 holds for 1 s.
    start : StartRegion, optional
        Starts of the proof of the task; a run starts in one of them only.
    approve : callable, optional
        Called with the checks of the drives before any of them gets a torque, and again when the
        round trips are measured; raises ArmError if the drives are not those of the commissioning.

    Raises
    ------
    ArmError
        If there is no operator in mode DRIVE, or the plan has another period.

    Examples
    --------
    >>> import hil
    >>> class Logged(hil.Controller):
    ...     def run(self):
    ...         outcome = super().run()
    ...         print(outcome.reason.name)
    ...         return outcome
    >>> from pathlib import Path
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options, controller=Logged)
    END
    """

    def __init__(
        self,
        rig: Rig,
        servo: TrackingLaw,
        tick: Tick,
        plan: Plan,
        drives: Sequence[Drive],
        links: Links,
        ring: Ring,
        *,
        mode: Mode,
        operator: OperatorChannel | None = None,
        pose: PoseReceiver | None = None,
        recording: Callable[[], bool] | None = None,
        resets: bool = False,
        attended: bool = True,
        start: StartRegion | None = None,
        approve: Callable[[Sequence[AxisCheck]], None] = lambda checks: None,
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
        servo.state_bounds.check_period(f"rig `{rig.name}`, `loop.period`", rig.loop.period)
        if mode is Mode.DRIVE:
            rig.check_operator()
        self.rig, self.servo, self.tick, self.plan = rig, servo, tick, plan
        self.drives, self.links, self.ring, self.mode = tuple(drives), links, ring, mode
        self.operator, self.pose, self.recording = operator, pose, recording
        self.resets, self.attended, self.start = resets, attended, start
        self.approve = approve
        self.clock = links.clock
        self.quality = Quality()
        self.latch = Latch.from_rig(rig)
        self.limits = Limits.from_rig(rig)
        self.estimator = Estimator(rig, servo)
        self.checks: tuple[AxisCheck, ...] = ()
        self.left: list[str] = []
        self._talks = mode in (Mode.MOCK, Mode.DRIVE)
        links.silent = not self._talks
        self._exchange = Exchange(rig, drives, links, self._talks)
        self.feedback = self._exchange.feedback
        self._law = LoopLaw(servo, tick, plan, len(rig.axes))
        self._torque = CycleTorque(self.limits, rig.policies, rig.loop.period)
        self._failures = Failures(rig.policies)
        self._arming = _Arming()
        self._still = np.zeros(len(rig.axes))
        self._row = ring.layout.views(ring.row)
        self._shortest_watchdog = min(axis.watchdog for axis in rig.axes)
        self._signal = 0  # number of a received signal
        self._stops = 0  # number of the operator's stop requests at the start of holding
        self._standstills = Standstills(self.clock)
        self.residual = Residual(rig, servo)
        self._opened = any(type(drive).opening_frames(rig) for drive in drives)
        self._before = np.zeros(len(rig.axes))  # torque sent before the last one
        self._axis, self._detail = -1, ""  # cause of the stop
        self.place = "Python"  # where the loop runs

    # -- the whole run -------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Arm the rig, run the task, stop, and release the drives.

        Returns
        -------
        Outcome
            Result of the run.

        Raises
        ------
        ArmError, DriveError, UnitError
            If the rig may not be armed; no torque was sent but that of the watchdog tests.
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
            self._detail,
        )

    def _prepare(self) -> None:
        """Perform all checks and settings before any drive is under power."""
        self._warm_up()
        operator, clock = self.operator, self.clock
        if operator is not None and self._talks:
            await_operator(self.rig, operator, clock, self._is_interrupted)
        self._standstills.begin()
        if not self._talks:
            return
        self._arming.addressed = True
        # An interrupted preparation leads to the first cycle, which stops for the same reason.
        with suppress(_Interrupted), self._exchange.watching(self._interrupt):
            self.checks = tuple(prepare_drives(self.drives, self.links, self.resets, self.approve))
            if operator is not None:
                await_heartbeat(self.rig, operator, clock, self._is_interrupted)
            # This is last, as the drives receive frames from now on.
            self.checks += tuple(check_round_trips(self.rig, self._exchange))
            self.approve(self.checks)
            self.checks += tuple(self._visible())

    def _visible(self) -> list[AxisCheck]:
        """Speeds from which a wrong scale of counts stops a run; creeping axes are below them."""
        estimator, axes = self.estimator, self.rig.axes
        speeds = self.residual.seen_speeds(
            estimator.inertia, estimator.held.tolist(), estimator.ease
        )
        return [
            AxisCheck(
                axis.name,
                "speed from which doubled counts stop a run, rad/s (m/s)",
                Finding.FOUND if speed <= axis.speed_limit else Finding.UNKNOWN,
                f"at most {axis.speed_limit:g}",
                f"{speed:.3g}",
                "Use a finer encoder, or reduce `model_error`: this axis never moves fast enough.",
            )
            for axis, speed in zip(axes, speeds, strict=True)
        ]

    def _is_interrupted(self) -> bool:
        return bool(self._signal)

    def _interrupt(self) -> None:
        """End the preparation, whose tests send torques, at a signal or a stop request."""
        operator = self.operator
        if self._signal or (operator is not None and operator.poll() is Reason.OPERATOR):
            raise _Interrupted

    def _warm_up(self) -> None:
        """Call functions once whose first call is slow; discard the results."""
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
                if self.latch.state is State.RUN:  # before RUN the reference does not advance
                    self._law.index += skipped
                deadline += skipped * period

    def _leave(self) -> None:
        """Send cycles without torque, then release each drive, also after errors."""
        if self._talks and self._arming.addressed:
            self.left += release_drives(self.rig, self.drives, self.links)

    # -- one cycle -----------------------------------------------------------------------------

    def _cycle(self, deadline: float) -> None:
        clock, quality, row, exchange = self.clock, self.quality, self._row, self._exchange
        failures, law, period = self._failures, self._law, self.rig.loop.period
        start = clock.now()
        started = time.perf_counter()
        lateness = start - deadline
        behind = lateness + failures.skipped * period  # since the first skipped deadline
        self._torque.warm(1 + failures.skipped)
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
        estimated = self._estimate(start, now)  # also in a stop, whose braking needs the state
        reason = reason or estimated
        running = self.latch.state is State.RUN
        if running and not exchange.paused:
            quality.lost += missing
        prompt = lateness <= PROMPT * period
        failures.count(running, late, prompt, missing, max(exchange.absent), exchange.paused)
        law.evaluate(self.estimator, running)
        reason = reason or self._advance(now, missing)
        if behind > self._shortest_watchdog:
            # The watchdogs have stopped the drives, or the clock has jumped: speeds are invalid.
            self.latch.stop(Reason.LATE)
            self.latch.remove_power()
        self._judge_and_act(start, reason)
        quality.refused = self.links.refused
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
        """Reason to stop from the operator, the operating system, the bus or the drives."""
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
        """Reason to stop from the bus and, while torques are sent, from the drives."""
        if self._talks and self._exchange.foreign:
            return Reason.FOREIGN
        if self._talks and self._exchange.late >= 0:
            return Reason.STALE
        patience = self.rig.policies.max_consecutive_faults
        if self._talks and (self.links.off >= 0 or self._exchange.refused > patience):
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
        """Whether torques are sent: those of the law, or of a stop that brakes or holds."""
        latch = self.latch
        return latch.state is State.RUN or latch.phase in (Phase.BRAKING, Phase.HOLDING)

    def _estimate(self, start: float, now: float) -> Reason:
        """Estimate the state; in RUN, return the reason why it, or the motion, is implausible."""
        estimator, feedback = self.estimator, self.feedback
        running, moved = self.latch.state is State.RUN, self._asks_for_torque
        known, acted = None, feedback.torque
        if moved:
            # The torque that acted since the last cycle: sent, or measured by the drives.
            if self._talks:
                begun, commanded = (float(self._row[name][0]) for name in ("time", "command_time"))
                acted = acting(self._torque.sent, self._before, begun, commanded, start)
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
        return self._reason_of_motion(acted) or self._reason_of_estimator()

    def _reason_of_motion(self, acted: np.ndarray) -> Reason:
        """Reason why the axes do not move by the torques that were sent."""
        if not self._talks:
            return Reason.NONE
        feedback, estimator, ease = self.feedback, self.estimator, self.estimator.ease.tolist()
        known = estimator.accelerated.tolist()
        found = self.residual.follow(
            feedback.position.tolist(),
            [
                math.nan if self._exchange.doubts(axis) else instant
                for axis, instant in enumerate(feedback.time.tolist())
            ],
            feedback.count.tolist(),
            *self.residual.between_samples(acted.tolist(), self._before.tolist(), known, ease),
            estimator.inertia.tolist(),
            estimator.held.tolist(),
            ease,
        )
        if found is None:
            return Reason.NONE
        self._axis, self._detail = found.axis, found.detail
        return Reason.STALE if self._exchange.doubts(found.axis) else found.reason

    def _reason_of_estimator(self) -> Reason:
        """Reason why the estimated state is invalid."""
        estimator, settings = self.estimator, self.rig.pose
        needed = settings is not None and settings.required
        if needed and (estimator.disagrees or estimator.source.startswith("lift (")):
            return Reason.POSE_LOST
        if not estimator.valid:
            return Reason.JUMP if estimator.lost.any() else Reason.NOT_FINITE
        return Reason.NONE

    def _advance(self, now: float, missing: int) -> Reason:
        """Change from ARMED to RUN when the rig is ready; return reasons to stop in RUN."""
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
        """Begin the run once all axes report and the state is valid."""
        latch, law, arming, policies = self.latch, self._law, self._arming, self.rig.policies
        wrong = self._reason_of_estimator() if self.estimator.started else Reason.LOST
        ready = wrong is Reason.NONE and not missing
        arming.complete = arming.complete + 1 if ready else 0
        if not self._talks:  # single reports may answer the queries of another host
            ready = arming.complete >= policies.startup_cycles
        else:
            ready = ready and bool(self.feedback.enabled.all())
            if self.feedback.fault.any() and self._grace_is_over(now):
                return Reason.DRIVE_FAULT
        if ready and latch.may_run:
            if law.status is not TickStatus.OK:
                return Reason.TICK_REFUSED
            if not law.is_within(policies.start_error):
                return Reason.START_ERROR
            if self.start is not None and not law.starts_in(self.start, self.estimator.q):
                return Reason.START_ERROR
            with suppress(ArmError):  # there is a reason to stop, which the latch reports
                latch.run()
                law.begin()
                counts = self.feedback.count.tolist()
                self.residual.start(counts, self.estimator.s)
        elif self._has_waited(now):
            return wrong or Reason.DRIVE_OFF
        return Reason.NONE

    def _grace_is_over(self, now: float) -> bool:
        """Whether faults of the drives should have been reset by now."""
        grace = RESET_CYCLES * self.plan.period if self.resets else 0.0
        return now - self._arming.since > grace

    def _has_waited(self, now: float) -> bool:
        """Whether the run should have begun by now."""
        longest = max(PATIENCE, 0.0 if self._talks else self.plan.duration)
        return now - self._arming.since > longest

    def _judge_and_act(self, start: float, reason: Reason) -> None:
        """Check the torque with the guard, step the latch, and send the resulting torque."""
        latch, torque, ages = self.latch, self._torque, self._exchange.ages
        estimator = self.estimator
        velocity = estimator.velocity if estimator.started else self._still
        position = estimator.position if estimator.started else self.feedback.position
        verdict = torque.judge(self._demand, self._failures.failing, position, velocity, ages)
        if latch.state is State.RUN:
            self.quality.clipped += bool(torque.flags & CLIPPED)
            reason = reason or verdict.reason
        elif self._asks_for_torque:
            # A later reason may forbid holding.
            latch.stop(self._reason_of_drives())
            latch.stop(verdict.reason)
        elif latch.state is State.ARMED and estimator.started:
            if verdict.reason is Reason.STALE and not self._talks:
                estimator.started = False  # the other controller pauses: restart with it
            else:
                reason = reason or verdict.reason
        before, ran = latch.action, latch.state is not State.STOP
        reason = self._named(reason, verdict.axis)
        latch.step(start, reason, largest_speed(velocity, ages, self.limits))
        if ran and latch.state is State.STOP:
            self._blame(verdict)
        self._end_holding(self.clock.now())
        self._check_again()
        action, wanted = latch.action, Wanted.TORQUE
        if action is Action.HOLD and before is not Action.HOLD:
            torque.anchor(position, carries=before is Action.LAW)
        self._before[:] = torque.sent
        torque.act(action, position, velocity, ages)
        if action is Action.OFF:
            wanted = Wanted.OFF
        elif action is Action.READY:
            resets = self.resets and self.feedback.fault.any()
            wanted = Wanted.RESET if resets else Wanted.READY
        self._exchange.send(wanted, torque.sent, pausing=action is Action.LAW)

    def _named(self, reason: Reason, axis: int) -> Reason:
        """The cause in place of its effect.

        That is POWER_LOST if all drives fall silent or off at once, and the cause of the residual
        of an axis that is too fast or too far.
        """
        if not (self._talks and self.latch.state is State.RUN):
            return reason
        feedback, absent = self.feedback, self._exchange.absent
        if reason in EFFECTS:
            axis = -1 if reason is Reason.TRACKING else axis
            found = self.residual.suspected(axis)
            if found is not None and not self._exchange.doubts(found.axis):
                self._axis, self._detail = found.axis, found.detail
                return found.reason
        lost = reason in (Reason.LOST, Reason.DRIVE_OFF, Reason.DRIVE_FAULT)
        if lost and is_power_lost(reason, absent, feedback.fault, feedback.enabled):
            return Reason.POWER_LOST
        return reason

    def _blame(self, verdict: Verdict) -> None:
        """Find the axis that causes a stop, for the record and the result."""
        feedback, latch = self.feedback, self.latch
        if latch.reason in CAUSES:
            return
        if latch.reason in (Reason.FOREIGN, Reason.BUS_OFF):
            exchange, off = self._exchange, self.links.off
            dead = off if off >= 0 else exchange.refuser
            self._detail = str(
                self.rig.buses[exchange.meddled if latch.reason is Reason.FOREIGN else dead]
            )
            return
        found: dict[Reason, tuple[int, str]] = {verdict.reason: (verdict.axis, "")}
        fault = int(np.argmax(feedback.fault != 0))
        found[Reason.DRIVE_FAULT] = fault, f", fault 0x{int(feedback.fault[fault]):04X}"
        found[Reason.DRIVE_OFF] = int(np.argmin(feedback.enabled)), ""
        found[Reason.LOST] = int(np.argmax(self._exchange.absent)), ""
        if self._exchange.late >= 0:
            late = self._exchange.late
            found[Reason.STALE] = late, ": its reports arrive after the receive window"
        found[Reason.JUMP] = int(np.argmax(self.estimator.lost)), ""
        self._axis, more = found.get(latch.reason, (-1, ""))
        if self._axis >= 0:
            self._detail = f"axis `{self.rig.axes[self._axis].name}`{more}"

    @property
    def _demand(self) -> np.ndarray:
        """Torque for the guard: the law's, or in mode LISTEN the measured one; zero before RUN."""
        if self.latch.state is not State.RUN:
            return self._still
        return self.feedback.torque if self.mode is Mode.LISTEN else self._law.demand

    def _check_again(self) -> None:
        """Stop if the loop, or the machine, was delayed after the reports were checked."""
        if self._standstills.has_slept:
            self.latch.stop(Reason.CLOCK)
        if self._asks_for_torque and self._exchange.outdated(
            self.clock.now(), self.limits.largest_age
        ):
            self.latch.stop(Reason.LATE)

    def _end_holding(self, now: float) -> None:
        """End a stop that holds: at a reset, a second stop, or when the heartbeat ends.

        Without an operator, it ends after `HOLDING`.
        """
        latch = self.latch
        holds = latch.phase is Phase.HOLDING
        if self._holding_ends(latch.cycles * latch.period if holds else None, now):
            latch.remove_power()

    def _holding_ends(self, held: float | None, now: float) -> bool:
        """Whether a stop ends that has held for a time, s; None: none holds."""
        operator = self.operator
        asked = operator is not None and operator.take_reset()  # discards earlier resets
        if held is None:
            self._stops = 0 if operator is None else operator.stops
            return False
        if operator is None or not self.attended:
            return held >= HOLDING
        return asked or operator.stops > self._stops or not operator.alive(now)

    def _fill_row(self) -> None:
        row, quality, feedback, estimator = self._row, self.quality, self.feedback, self.estimator
        law, buffers = self._law, self._law.buffers
        row["state"][0] = self.latch.state
        row["reason"][0] = self.latch.reason
        row["tick"][0] = law.status
        row["flags"][0] = self._torque.flags
        row["late"][0] = quality.late
        row["lost"][0] = quality.lost
        row["clipped"][0] = quality.clipped
        row["pose_age"][0] = estimator.pose_age
        row["command_time"][0] = self._exchange.sent if self._opened else np.nan
        row["axis"][0] = self._axis
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
        row["residual"][:] = self.residual.torque
        row["allowed"][:] = self.residual.allowed
        row["report_time"][:] = feedback.time
        row["doubtful"][:] = [self._exchange.doubts(k) for k in range(len(self.drives))]
        row["reports"][:] = feedback.count
        row["invalid"][:] = feedback.invalid
        row["enabled"][:] = feedback.enabled
        row["fault"][:] = feedback.fault
        if "active" in row:
            row["active"][:] = buffers.active

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Make the clock of an emulated rig wait for this loop while the loop runs."""
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
        """Convert signals to stops while the loop runs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _: FrameType | None) -> None:
            self._signal = number

        numbers = [signal.SIGINT, signal.SIGTERM]
        numbers += [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
