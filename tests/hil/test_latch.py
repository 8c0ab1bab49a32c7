"""The latch: a stop stays until a reset, and has the same meaning in every mode."""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hil.errors import ArmError
from hil.latch import (
    BLIND,
    NO_HOLDING,
    Action,
    Event,
    Latch,
    Phase,
    Reason,
    State,
    next_state,
)
from hil.rig import Policies

PERIOD = 0.004
POLICIES = Policies(stop_time=0.02, startup_cycles=3, shutdown_cycles=4)
REASONS = [r for r in Reason if r]
ALLOWED = {
    ("DISARMED", "ARM"): "ARMED",
    ("ARMED", "RUN"): "RUN",
    ("DISARMED", "STOP"): "STOP",
    ("ARMED", "STOP"): "STOP",
    ("RUN", "STOP"): "STOP",
    ("STOP", "STOP"): "STOP",
    ("STOP", "RESET"): "DISARMED",
}


class Cycles:
    """A latch with a clock that moves on."""

    def __init__(self, policies=POLICIES):
        self.latch = Latch(policies, PERIOD)
        self.now = 1000.0

    def step(self, reason=Reason.NONE, speed=1.0, times=1, by=PERIOD):
        for _ in range(times):
            self.now += by
            self.latch.step(self.now, reason, speed)
        return self.latch

    def running(self):
        self.step()
        self.latch.arm()
        self.step(times=self.latch.policies.startup_cycles)
        self.latch.run()
        return self


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_every_pair_of_state_and_event(state, event):
    expected = ALLOWED.get((state.name, event.name))
    if expected is not None:
        assert next_state(state, event) is State[expected]
        return
    with pytest.raises(ArmError) as caught:
        next_state(state, event)
    assert state.name in caught.value.where
    assert event.name.lower() in caught.value.came
    assert caught.value.cure
    assert (caught.value.state, caught.value.event) == (state, event)


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_an_invalid_period_is_rejected(period):
    with pytest.raises(ArmError, match="period"):
        Latch(POLICIES, period)


def test_the_whole_way():
    cycles = Cycles()
    latch = cycles.latch
    assert (latch.state, latch.phase, latch.action) == (State.DISARMED, Phase.NONE, Action.OFF)
    cycles.step(times=2)
    assert latch.action is Action.OFF
    latch.arm()
    assert (latch.state, latch.action, latch.cycles) == (State.ARMED, Action.READY, 0)
    for count in range(3):
        assert not latch.may_run
        with pytest.raises(ArmError, match="3 cycles of zero torque"):
            latch.run()
        assert latch.cycles == count
        cycles.step()
        assert latch.action is Action.READY
    latch.run()
    cycles.step(times=5)
    assert (latch.state, latch.action, latch.reason) == (State.RUN, Action.LAW, Reason.NONE)
    cycles.step(Reason.END)
    assert (latch.state, latch.phase, latch.action) == (State.STOP, Phase.BRAKING, Action.BRAKE)
    assert latch.reason is Reason.END
    assert not latch.may_leave
    cycles.step(times=10)
    assert (latch.phase, latch.action) == (Phase.OFF, Action.OFF)
    assert latch.may_leave
    latch.reset()
    assert (latch.state, latch.phase, latch.reason) == (State.DISARMED, Phase.NONE, Reason.NONE)
    assert latch.action is Action.OFF


def test_even_without_a_prelude_one_cycle_passes_before_the_run():
    cycles = Cycles(Policies(startup_cycles=0))
    cycles.latch.arm()
    with pytest.raises(ArmError, match="1 cycles of zero torque"):
        cycles.latch.run()
    cycles.step()
    cycles.latch.run()
    assert cycles.latch.state is State.RUN


@pytest.mark.parametrize("reason", REASONS)
def test_while_a_reason_is_there_the_rig_is_neither_armed_nor_run_nor_reset(reason):
    cycles = Cycles()
    latch = cycles.step(reason)
    assert latch.state is State.DISARMED  # nothing to stop: it does not latch
    with pytest.raises(ArmError, match=reason.name):
        latch.arm()
    cycles.step()
    latch.arm()
    cycles.step(reason)
    assert (latch.state, latch.action) == (State.STOP, Action.OFF)
    with pytest.raises(ArmError, match="STOP"):
        latch.run()
    for _ in range(10):
        cycles.step(reason)
        with pytest.raises(ArmError, match=reason.sentence) as caught:
            latch.reset()
        assert caught.value.reasons == [reason]
    assert (latch.state, latch.reason) == (State.STOP, reason)
    cycles.step()
    latch.reset()
    assert latch.state is State.DISARMED


@pytest.mark.parametrize("reason", REASONS)
def test_a_stop_stays_although_its_cause_is_gone(reason):
    cycles = Cycles().running()
    cycles.step(reason)
    cycles.step(times=1000)
    assert cycles.latch.state is State.STOP
    assert cycles.latch.reason is reason
    assert cycles.latch.action is Action.OFF
    for act in (cycles.latch.arm, cycles.latch.run):
        with pytest.raises(ArmError, match="STOP"):
            act()


def test_a_second_reason_neither_replaces_the_first_nor_restarts_the_stop():
    cycles = Cycles().running()
    cycles.step(Reason.DEADMAN)
    cycles.step(times=2)
    count = cycles.latch.cycles
    cycles.latch.stop(Reason.LATE)
    cycles.step(Reason.LOST)
    assert cycles.latch.reason is Reason.DEADMAN
    assert cycles.latch.cycles == count + 1
    assert cycles.latch.present == {Reason.LATE, Reason.LOST}


def test_no_reason_is_no_stop():
    cycles = Cycles().running()
    cycles.latch.stop(Reason.NONE)
    assert cycles.latch.state is State.RUN


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("between", [False, True])
def test_braking_lasts_for_the_stop_time_at_most(reason, between):
    """Whether the reason comes with a cycle or, like a signal, between two."""
    cycles = Cycles().running()
    if between:
        cycles.latch.stop(reason)
    else:
        cycles.step(reason)
    braking = 0
    while cycles.latch.phase is Phase.BRAKING:
        assert cycles.latch.action is Action.BRAKE
        braking += 1
        cycles.step()
    assert braking == (0 if reason in BLIND else 5)  # 20 ms of 4 ms each
    assert cycles.latch.action is Action.OFF


def test_braking_ends_early_once_the_joints_are_at_rest():
    cycles = Cycles(Policies(stop_time=10.0)).running()
    cycles.step(Reason.END)
    cycles.step(speed=0.5, times=20)
    cycles.step(speed=0.01, times=4)
    cycles.step(speed=0.03)
    cycles.step(speed=0.01, times=4)
    assert cycles.latch.phase is Phase.BRAKING
    cycles.step(speed=0.01)
    assert cycles.latch.phase is Phase.OFF


def test_an_unknown_speed_is_not_rest():
    cycles = Cycles(Policies(stop_time=10.0)).running()
    cycles.step(Reason.END, speed=math.nan)
    cycles.step(speed=math.nan, times=100)
    assert cycles.latch.phase is Phase.BRAKING


def test_braking_that_accelerates_a_joint_is_detected_after_unknown_speeds():
    cycles = Cycles(Policies(stop_time=10.0)).running()
    cycles.step(Reason.END, speed=math.nan)
    cycles.step(speed=0.1)
    cycles.step(speed=0.4)
    assert cycles.latch.phase is Phase.OFF


@pytest.mark.parametrize(("speed", "rests"), [(0.02, False), (math.nextafter(0.02, 0.0), True)])
def test_rest_is_below_two_hundredths_of_the_speed_limit(speed, rests):
    cycles = Cycles(Policies(stop_time=10.0)).running()
    cycles.step(Reason.END)
    cycles.step(speed=speed, times=5)
    assert (cycles.latch.phase is Phase.OFF) == rests


@pytest.mark.parametrize(("rise", "worse"), [(0.25, False), (0.2500001, True)])
def test_braking_is_worse_from_a_quarter_of_the_speed_limit_more(rise, worse):
    cycles = Cycles(Policies(stop_time=10.0)).running()
    cycles.step(Reason.END, speed=0.5)
    cycles.step(speed=0.5 + rise)
    assert (cycles.latch.phase is Phase.OFF) == worse


def test_braking_ends_when_the_clock_reaches_the_stop_time():
    cycles = Cycles(Policies(stop_time=1.0)).running()
    cycles.step(Reason.LATE)
    cycles.step(by=0.5)
    assert cycles.latch.phase is Phase.BRAKING
    cycles.step(by=0.5)
    assert cycles.latch.phase is Phase.OFF


@pytest.mark.parametrize(
    ("periods", "expected"), [(5 + 0.5e-9, 5), (5 + 5e-9, 6), (4.5, 5), (1e-10, 1)]
)
def test_braking_cycles_are_the_stop_time_rounded_up(periods, expected):
    cycles = Cycles(Policies(stop_time=periods * PERIOD)).running()
    cycles.step(Reason.END, by=1e-14 * PERIOD + 1e-12)  # the clock hardly moves: cycles count
    braking = 0
    while cycles.latch.action is Action.BRAKE:
        braking += 1
        cycles.step(by=1e-12)
    assert braking == expected


def test_records_keep_the_numbers_of_reasons_and_states():
    names = (
        "NONE NOT_FINITE WRONG_SHAPE STALE OVERSPEED OUT_OF_RANGE TICK_REFUSED DRIVE_FAULT "
        "DRIVE_OFF LOST STUCK LATE CLOCK OPERATOR DEADMAN POSE_LOST BUS_OFF SIGNAL END ERROR "
        "RECORDER START_ERROR TRACKING FOREIGN"
    )
    assert " ".join(r.name for r in sorted(Reason)).startswith(names)
    assert sorted(Reason) == list(range(len(Reason)))
    assert [s.name for s in sorted(State)] == ["DISARMED", "ARMED", "RUN", "STOP"]
    assert [a.name for a in sorted(Action)] == ["OFF", "READY", "LAW", "BRAKE", "HOLD"]
    assert [p.name for p in sorted(Phase)] == ["NONE", "BRAKING", "HOLDING", "OFF"]


@pytest.mark.parametrize("move", [0.0, -1e-9, -5.0, math.nan, math.inf, -math.inf])
def test_a_clock_that_stands_still_or_goes_back_removes_power(move):
    cycles = Cycles().running()
    cycles.step(by=move)
    assert (cycles.latch.state, cycles.latch.phase) == (State.STOP, Phase.OFF)
    assert (cycles.latch.reason, cycles.latch.action) == (Reason.CLOCK, Action.OFF)


@pytest.mark.parametrize("move", [0.0, -5.0, math.nan])
def test_a_clock_that_stands_still_ends_braking_and_forbids_arming(move):
    cycles = Cycles().running()
    cycles.step(Reason.END)
    before = cycles.now
    cycles.step(by=move)
    assert (cycles.latch.phase, cycles.latch.reason) == (Phase.OFF, Reason.END)
    with pytest.raises(ArmError, match="CLOCK"):
        cycles.latch.reset()
    cycles.now = before + 1.0
    cycles.step()
    cycles.latch.reset()
    before = cycles.now
    cycles.step(by=move)
    with pytest.raises(ArmError, match="CLOCK"):
        cycles.latch.arm()
    cycles.now = before + 1.0
    cycles.step()
    cycles.latch.arm()


# -- category 2 --------------------------------------------------------------------------------

HOLDING = Policies(stop_category=2, stop_time=0.02, startup_cycles=3, shutdown_cycles=4)


@pytest.mark.parametrize("reason", REASONS)
def test_category_two_holds_unless_the_reason_forbids_it(reason):
    cycles = Cycles(HOLDING).running()
    cycles.step(reason)
    cycles.step(times=50)
    holds = reason not in NO_HOLDING
    assert cycles.latch.phase is (Phase.HOLDING if holds else Phase.OFF)
    assert cycles.latch.action is (Action.HOLD if holds else Action.OFF)
    assert not (holds and cycles.latch.may_leave)
    assert cycles.latch.reason is reason


@pytest.mark.parametrize("reason", sorted(NO_HOLDING))
@pytest.mark.parametrize("wait", [1, 50])
def test_what_forbids_holding_does_so_later_too(reason, wait):
    cycles = Cycles(HOLDING).running()
    cycles.step(Reason.OPERATOR)
    cycles.step(times=wait)
    cycles.step(reason)
    cycles.step(times=50)
    assert (cycles.latch.phase, cycles.latch.action) == (Phase.OFF, Action.OFF)
    assert cycles.latch.reason is Reason.OPERATOR


def test_holding_is_ended_by_removing_power_or_by_a_reset():
    cycles = Cycles(HOLDING).running()
    with pytest.raises(ArmError, match="RUN"):
        cycles.latch.remove_power()
    cycles.step(Reason.END)
    cycles.step(times=50)
    cycles.latch.remove_power()
    assert (cycles.latch.phase, cycles.latch.action) == (Phase.OFF, Action.OFF)
    cycles.step(times=3)
    assert not cycles.latch.may_leave
    cycles.latch.remove_power()  # a repetition changes nothing
    cycles.step()
    assert cycles.latch.may_leave
    cycles = Cycles(HOLDING).running()
    cycles.step(Reason.END)
    with pytest.raises(ArmError, match="still brake"):
        cycles.latch.reset()
    cycles.step(times=50)
    cycles.latch.reset()
    assert (cycles.latch.state, cycles.latch.action) == (State.DISARMED, Action.OFF)


def test_a_second_run_brakes_and_holds_like_the_first():
    cycles = Cycles(HOLDING).running()
    cycles.step(Reason.LOST)
    cycles.step(times=20)
    cycles.latch.reset()
    cycles.running()
    cycles.step(Reason.END, speed=0.2)
    assert cycles.latch.action is Action.BRAKE
    cycles.step(times=3, speed=0.2)
    assert cycles.latch.action is Action.BRAKE
    cycles.step(times=2, speed=0.2)
    assert cycles.latch.action is Action.HOLD


class AnyOrder(RuleBasedStateMachine):
    """Any order of cycles, reasons and requests."""

    def __init__(self):
        super().__init__()
        self.cycles = Cycles(HOLDING)
        self.latch = self.cycles.latch
        self.first = None  # reason of the present stop, as this machine saw it
        self.armed = 0  # cycles of zero torque since arming
        self.begun = False  # at the first cycle the motion of the clock is unknown

    @rule(
        reason=st.one_of(st.just(Reason.NONE), st.sampled_from(REASONS)),
        speed=st.sampled_from([0.0, 0.5, math.nan]),
        by=st.sampled_from([PERIOD, PERIOD, PERIOD, 0.0]),
    )
    def step(self, reason, speed, by):
        before = self.latch.state
        self.cycles.step(reason, speed, by=by)
        self.armed += 1
        if before is not State.DISARMED and self.first is None:
            self.first = Reason.CLOCK if by == 0.0 and self.begun else reason or None
        self.begun = True

    @rule(reason=st.sampled_from(REASONS))
    def stop(self, reason):
        self.latch.stop(reason)
        self.first = self.first or reason

    @rule()
    def arm(self):
        try:
            self.latch.arm()
        except ArmError:
            return
        assert self.first is None
        assert self.latch.state is State.ARMED
        self.armed = 0

    @rule()
    def run_(self):
        try:
            self.latch.run()
        except ArmError:
            return
        assert self.first is None
        assert self.armed >= HOLDING.prelude

    @rule()
    def reset(self):
        try:
            self.latch.reset()
        except ArmError:
            return
        assert self.first is not None
        assert self.latch.state is State.DISARMED
        self.first = None

    @precondition(lambda self: self.latch.state is State.STOP)
    @rule()
    def remove_power(self):
        self.latch.remove_power()

    @invariant()
    def stopped_until_reset(self):
        assert (self.latch.state is State.STOP) == (self.first is not None)
        assert self.latch.reason is (self.first or Reason.NONE)

    @invariant()
    def action_belongs_to_state(self):
        expected = {
            (State.DISARMED, Phase.NONE): Action.OFF,
            (State.ARMED, Phase.NONE): Action.READY,
            (State.RUN, Phase.NONE): Action.LAW,
            (State.STOP, Phase.BRAKING): Action.BRAKE,
            (State.STOP, Phase.HOLDING): Action.HOLD,
            (State.STOP, Phase.OFF): Action.OFF,
        }
        assert self.latch.action is expected[self.latch.state, self.latch.phase]


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40)
