"""The latched state of the rig, with the reason of its stop.

DISARMED -> ARMED -> RUN -> STOP. Only an explicit reset ends a stop. It leads to DISARMED, and is
rejected while a cause of the stop persists. The latch is independent of the mode: a stop has the
same meaning with mock drives, in the shadow of another controller and on the rig.

Stop categories are those of IEC 60204-1: 1, brake and remove power; 2, brake and hold under
power. Category 0, the immediate removal of power, must be wired.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hil.errors import ArmError
from hil.reasons import Reason, Sentences, State

if TYPE_CHECKING:
    from hil.settings import Policies, Rig

REST = 0.02
"""Fraction of the speed limits below which the joints count as at rest."""

REST_CYCLES = 5
"""Consecutive cycles at rest after which braking ends."""

WORSE = 0.25
"""Increase of the largest joint speed during braking after which power is removed, as a fraction of
the speed limits."""


class Phase(Sentences):
    """Phase of a stop; the attribute `sentence` describes it."""

    NONE = 0, "the rig has not stopped"
    BRAKING = 1, "the joints are being damped"
    HOLDING = 2, "the joints are held where they came to rest, under power"
    OFF = 3, "no torque is requested, and power is removed"


class Action(Sentences):
    """Command to the drives in a cycle; the attribute `sentence` describes it."""

    OFF = 0, "no torque, output stage without power"
    READY = 1, "zero torque, output stage under power"
    LAW = 2, "the torque that the guard passed"
    BRAKE = 3, "joint damping"
    HOLD = 4, "joint stiffness and damping about the position of rest"


class Event(Sentences):
    """Event that changes the state; the attribute `sentence` describes it."""

    ARM = 0, "arm"
    RUN = 1, "run"
    STOP = 2, "stop"
    RESET = 3, "reset"


BLIND = frozenset(
    {
        Reason.CLOCK,
        Reason.BUS_OFF,
        Reason.ERROR,
        Reason.FOREIGN,
        Reason.WRONG_SIGN,
        Reason.TORQUE_SCALE,
        Reason.COUNT_SCALE,
        Reason.JUMP,
        Reason.POWER_LOST,
    }
)
"""Reasons after which measurements or commands are unreliable: power is removed at once."""

NO_HOLDING = BLIND | {
    Reason.NOT_FINITE,
    Reason.WRONG_SHAPE,
    Reason.STALE,
    Reason.OVERSPEED,
    Reason.OUT_OF_RANGE,
    Reason.OVERHEATED,
    Reason.DRIVE_FAULT,
    Reason.DRIVE_OFF,
    Reason.LOST,
    Reason.STUCK,
    Reason.IGNORED,
    Reason.CONTACT,
    Reason.DELAYED,
    Reason.DEADMAN,
    Reason.SIGNAL,
}
"""Reasons after which a stop of category 2 ends as one of category 1: holding requires reliable
positions and drives, an attentive operator, and a process that keeps running."""

_NEXT = {
    (State.DISARMED, Event.ARM): State.ARMED,
    (State.ARMED, Event.RUN): State.RUN,
    (State.DISARMED, Event.STOP): State.STOP,
    (State.ARMED, Event.STOP): State.STOP,
    (State.RUN, Event.STOP): State.STOP,
    (State.STOP, Event.STOP): State.STOP,
    (State.STOP, Event.RESET): State.DISARMED,
}

_CURES = {
    State.DISARMED: "Arm the rig first: DISARMED -> ARMED -> RUN.",
    State.ARMED: "Run or stop the rig.",
    State.RUN: "Stop the rig first, then reset it.",
    State.STOP: "Remove the cause, then reset the rig: it starts disarmed.",
}


def next_state(state: State, event: Event) -> State:
    """State after an event.

    Parameters
    ----------
    state : State
        State before the event.
    event : Event
        The event.

    Returns
    -------
    State
        State after the event.

    Raises
    ------
    ArmError
        If the event is not allowed in this state. A stop is always allowed.
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        allowed = [e.name.lower() for (s, e) in _NEXT if s is state]
        raise ArmError(
            f"state {state.name}",
            expected="one of the events " + ", ".join(f"`{name}`" for name in allowed),
            came=f"`{event.name.lower()}`",
            cure=_CURES[state],
            state=state,
            event=event,
        ) from None


class Latch:
    """State of the rig, its first reason to stop, and the command to the drives.

    Call `step` once in every cycle, in every state and in every mode, then perform `action`.

    Parameters
    ----------
    policies : Policies
        Stop category and time, cycles of prelude and postlude.
    period : float
        Duration of a cycle, s, above zero.

    Attributes
    ----------
    state : State
        State of the rig.
    phase : Phase
        Phase of a stop.
    reason : Reason
        First reason of the stop; later reasons do not replace it.
    present : frozenset of Reason
        Reasons since the last step: while there is one, the rig cannot be armed or reset.
    action : Action
        Command to the drives in this cycle.
    cycles : int
        Number of cycles in this state, or in this phase of the stop.
    braking_cycles : int
        Largest number of cycles of braking.

    Examples
    --------
    >>> import hil
    >>> latch = hil.Latch.from_rig(hil.load_rig("examples/rover_rig/rig.toml"))
    >>> latch.step(0.004, hil.Reason.NONE, 0.0).name
    'DISARMED'
    >>> latch.arm()
    >>> latch.step(0.008, hil.Reason.OPERATOR, 0.0).name
    'STOP'
    >>> latch.reason.sentence
    'the operator requested a stop'
    """

    def __init__(self, policies: Policies, period: float) -> None:
        if not (period > 0.0 and math.isfinite(period)):
            raise ArmError(
                "period of the loop",
                expected="a finite time above zero, s",
                came=f"{period}",
                cure="Pass the period of the rig file: `rig.loop.period`.",
            )
        self.policies = policies
        self.period = period
        self.state = State.DISARMED
        self.phase = Phase.NONE
        self.reason = Reason.NONE
        self.present: frozenset[Reason] = frozenset()
        self.action = Action.OFF
        self.cycles = 0
        self._prelude = max(1, policies.startup_cycles)  # reasons are unknown before one cycle
        self.braking_cycles = max(1, math.ceil(policies.stop_time / period - 1e-9))
        self._given: set[Reason] = set()  # since the last step
        self._now: float | None = None
        self._entered = math.nan
        self._rest = 0
        self._speed = math.nan  # largest speed at the start of braking
        self._trusted = True  # whether no reason since the stop forbids holding

    @classmethod
    def from_rig(cls, rig: Rig) -> Latch:
        """Make a latch with the policies and the period of a rig.

        Parameters
        ----------
        rig : Rig
            The rig.

        Returns
        -------
        Latch
            A disarmed latch.
        """
        return cls(rig.policies, rig.loop.period)

    @property
    def may_run(self) -> bool:
        """Whether the prelude is over: the cycles of zero torque under power."""
        return self.state is State.ARMED and self.cycles >= self._prelude

    @property
    def may_leave(self) -> bool:
        """Whether the postlude is over: the cycles without torque before the loop ends."""
        off = self.state is State.DISARMED or self.phase is Phase.OFF
        return off and self.cycles >= self.policies.shutdown_cycles

    def arm(self) -> None:
        """Put the drives under power, with zero torque.

        Raises
        ------
        ArmError
            If the rig is not disarmed, or there is a reason to stop.
        """
        state = next_state(self.state, Event.ARM)
        self._refuse_while_present("arm")
        self._enter(state, Phase.NONE, Action.READY)

    def run(self) -> None:
        """Start sending the law's torques.

        Raises
        ------
        ArmError
            If the rig is not armed, or the prelude is not over.
        """
        state = next_state(self.state, Event.RUN)
        if not self.may_run:
            raise ArmError(
                "state ARMED",
                expected=f"{self._prelude} cycles of zero torque before the run",
                came=f"{self.cycles} cycles",
                cure="Run the loop's cycles until `may_run` is true.",
            )
        self._enter(state, Phase.NONE, Action.LAW)

    def stop(self, reason: Reason) -> None:
        """Stop, in any state; the first reason stays.

        Only a rig in RUN brakes: in other states no torque was sent.

        Parameters
        ----------
        reason : Reason
            Reason of the stop; NONE has no effect.
        """
        if reason is Reason.NONE:
            return
        self._given.add(reason)
        if self.state is State.STOP:
            self._trusted = self._trusted and reason not in NO_HOLDING
            if reason in BLIND or (self.phase is Phase.HOLDING and not self._trusted):
                self._end_of_power()
            return
        brakes = self.state is State.RUN and reason not in BLIND
        state = next_state(self.state, Event.STOP)
        self.reason = reason
        self._trusted = reason not in NO_HOLDING
        self._entered = self._speed = math.nan
        self._rest = 0
        if brakes and reason is Reason.END and self.policies.end == "hold":
            self._enter(state, Phase.HOLDING, Action.HOLD)
        elif brakes:
            self._enter(state, Phase.BRAKING, Action.BRAKE)
        else:
            self._enter(state, Phase.OFF, Action.OFF)

    def remove_power(self) -> None:
        """End the braking or holding of a stop; this is the only end of holding.

        Raises
        ------
        ArmError
            If the rig has not stopped.
        """
        if self.state is not State.STOP:
            raise ArmError(
                f"state {self.state.name}",
                expected="state STOP for the removal of power",
                came=f"state {self.state.name}",
                cure="Stop the rig first.",
            )
        self._end_of_power()

    def reset(self) -> None:
        """End a stop: the rig is disarmed.

        Raises
        ------
        ArmError
            If the rig has not stopped, still brakes, or a cause of the stop persists. A cause has
            ended once a whole cycle has passed without a reason.
        """
        state = next_state(self.state, Event.RESET)
        if self.phase is Phase.BRAKING:
            raise ArmError(
                "state STOP",
                expected="joints at rest, or without power",
                came="joints that still brake",
                cure=f"Wait for the end of braking, at most {self.policies.stop_time:g} s.",
            )
        self._refuse_while_present("reset")
        self.reason = Reason.NONE
        self._enter(state, Phase.NONE, Action.OFF)

    def step(self, now: float, reason: Reason, speed: float) -> State:
        """Count a cycle, and stop if there is a reason.

        A disarmed rig does not latch a reason: it has no torque to stop, and cannot be armed while
        there is a reason. A clock that stands still or goes back is a reason (CLOCK). Braking ends
        by the clock or by the number of cycles, whichever is first.

        Parameters
        ----------
        now : float
            Start of this cycle on the loop's clock, s.
        reason : Reason
            Reason to stop in this cycle, or NONE.
        speed : float
            Largest joint speed as a fraction of its limit, from `largest_speed`; NaN if it is
            unknown.

        Returns
        -------
        State
            State in this cycle.
        """
        advances = math.isfinite(now) and (self._now is None or now > self._now)
        if math.isfinite(now):
            self._now = now
        self.cycles += 1
        if self.state is State.DISARMED:
            self._given.update(r for r in (reason, Reason.NONE if advances else Reason.CLOCK) if r)
        else:
            if not advances:
                self.stop(Reason.CLOCK)
            self.stop(reason)
        if self.phase is Phase.BRAKING:
            self._brake(now, speed)
        self.present = frozenset(self._given)
        self._given.clear()
        return self.state

    def _brake(self, now: float, speed: float) -> None:
        """End braking once it is over, or if it accelerates a joint."""
        if math.isnan(self._entered):
            self._entered = now
        self._rest = self._rest + 1 if speed < REST else 0
        if math.isnan(self._speed):
            self._speed = speed
        elif speed > self._speed + WORSE:
            # A damping torque that accelerates a joint has the wrong sign: wrong encoder or gear.
            self._end_of_power()
            return
        over = self.cycles >= self.braking_cycles or (
            now - self._entered >= self.policies.stop_time
        )
        if over or self._rest >= REST_CYCLES:
            if self.policies.stop_category == 2 and self._trusted:
                self._enter(State.STOP, Phase.HOLDING, Action.HOLD)
            else:
                self._end_of_power()

    def _end_of_power(self) -> None:
        """Command no torque from now on."""
        if self.phase is not Phase.OFF:
            self._enter(State.STOP, Phase.OFF, Action.OFF)

    def _enter(self, state: State, phase: Phase, action: Action) -> None:
        self.state = state
        self.phase = phase
        self.action = action
        self.cycles = 0

    def _refuse_while_present(self, act: str) -> None:
        causes = sorted(self.present | self._given)
        if causes:
            raise ArmError(
                f"state {self.state.name}",
                expected=f"no reason to stop, to {act} the rig",
                came="; ".join(f"{r.name}: {r.sentence}" for r in causes),
                cure="Remove the cause, and wait for a cycle without it.",
                reasons=causes,
            )
