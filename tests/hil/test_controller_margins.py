"""Counters and thresholds of the loop, each from both sides: a controller without a rig."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import hil.controller._controller
from concur.control import TickStatus
from hil.controller import Controller, Mode
from hil.controller._controller import _Arming
from hil.controller._failures import Failures
from hil.controller._law import LoopLaw
from hil.controller._preparation import await_heartbeat, release_drives
from hil.controller._standstills import Standstills
from hil.guard import Phase, Reason, State
from hil.latch import Action
from hil.links import Links

PERIOD = 0.25  # exact in binary, like all times here


def yes(*_):
    return True


class Clock:
    """Sleeps without waiting, and remembers until when."""

    def __init__(self, time=100.0):
        self.time, self.slept = time, []

    def now(self):
        return self.time

    def sleep_until(self, instant):
        self.slept.append(instant)
        self.time = max(self.time, instant)

    def asleep(self):
        return 0.0


def controller(**others):
    """A controller of one axis with only the attributes that the tested method needs."""
    made = Controller.__new__(Controller)
    made.clock = Clock()
    made.mode, made._talks, made.resets, made.attended = Mode.MOCK, True, False, True
    made._signal, made.operator, made.recording, made.start = 0, None, None, None
    made.plan = SimpleNamespace(period=PERIOD, duration=10.0)
    made.rig = SimpleNamespace(
        loop=SimpleNamespace(period=PERIOD),
        policies=SimpleNamespace(
            max_consecutive_faults=3, startup_cycles=4, start_error=1.0, largest_error=1.0
        ),
        pose=None,
    )
    made.latch = SimpleNamespace(
        state=State.RUN, phase=Phase.NONE, may_run=False, may_leave=False, cycles=0, period=PERIOD
    )
    made.quality = SimpleNamespace(
        cycles=0, lost=0, late=0, skipped=0, clipped=0, invalid=0, refused=0
    )
    made.feedback = SimpleNamespace(
        fault=np.array([False, False]),
        enabled=np.array([True, True]),
        position=np.zeros(2),
        count=np.zeros(2, int),
    )
    made._exchange = SimpleNamespace(
        paused=False, absent=[0, 0], foreign=0, late=-1, refused=0, ages=np.zeros(2)
    )
    made._failures, made._arming = Failures(made.rig.policies), _Arming(since=100.0)
    made._standstills, made._stops = Standstills(made.clock), 0
    for name, value in others.items():
        setattr(made, name, value)
    made._law = law(made.plan)
    return made


def law(plan):
    """The law of one output, which never fails."""
    servo = SimpleNamespace(buffered=lambda _: None, size=1)
    made = LoopLaw(servo, SimpleNamespace(buffers=None), plan, 2)
    made.error[:] = 0.0
    return made


@pytest.mark.parametrize(
    ("values", "within"),
    [
        ([0.5, -0.5], True),
        ([0.5000001, 0.0], False),
        ([0.0, -0.5000001], False),
        ([0.0, math.nan], False),
    ],
)
def test_errors_at_their_bound_are_within_it(values, within):
    made = law(None)
    made.error = np.array(values)
    assert made.is_within(0.5) is within


# -- failing cycles ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losing", "absent", "counted"),
    [
        (0, 1, 1),
        (2, 1, 1),  # the third consecutive cycle
        (3, 1, 0),  # beyond the patience: axes that hesitate in turn
        (3, 3, 0),
        (3, 4, 4),  # unless one axis is missing for longer
    ],
)
def test_axes_that_hesitate_in_turn_are_no_failure(losing, absent, counted):
    made = Failures(SimpleNamespace(max_consecutive_faults=3), losing=losing)
    made.count(True, False, True, 1, absent, False)
    assert made.lost == counted
    assert made.losing == losing + 1


@pytest.mark.parametrize(
    ("late", "missed", "prompt", "delayed", "cycles"),
    [
        (False, 0, True, 0, 0),  # the loop keeps up again
        (False, 0, False, 2, 0),  # neither late nor prompt
        (True, 0, False, 3, 3),
        (False, 2, True, 4, 4),  # left out: prompt only because of that
        (True, 2, False, 5, 5),
    ],
)
def test_cycles_that_are_late_or_left_out_are_counted(late, missed, prompt, delayed, cycles):
    made = Failures(SimpleNamespace(max_consecutive_faults=3), delayed=2, skipped=missed)
    made.count(True, late, prompt, 0, 0, False)
    assert (made.delayed, made.late, made.skipped) == (delayed, cycles, 0)
    assert made.losing == 0


def test_only_a_run_has_failing_cycles():
    made = Failures(SimpleNamespace(max_consecutive_faults=3), delayed=2, losing=2, skipped=1)
    made.count(False, True, False, 2, 5, False)
    assert (made.delayed, made.late, made.lost, made.losing) == (0, 0, 0, 0)
    assert made.failing is None


def test_a_cycle_without_requests_has_no_missing_report():
    made = Failures(SimpleNamespace(max_consecutive_faults=3), losing=2, lost=2)
    made.count(True, False, True, 2, 3, True)
    assert (made.lost, made.losing) == (0, 2)


def test_the_policy_of_missing_reports_goes_before_that_of_late_cycles():
    policies = SimpleNamespace(on_missing="damp", on_late="hold")
    assert Failures(policies, late=2, lost=3).failing == ("damp", Reason.LOST, 3)
    assert Failures(policies, late=2).failing == ("hold", Reason.LATE, 2)


# -- reasons to stop ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "refused", "reason"),
    [
        (False, 3, Reason.NONE),
        (False, 4, Reason.BUS_OFF),
        (True, 0, Reason.BUS_OFF),
    ],
)
def test_a_bus_that_refuses_for_longer_than_the_patience(off, refused, reason):
    made = controller(links=SimpleNamespace(off=0 if off else -1))
    made._exchange.refused = refused
    assert made._reason_of_drives() is reason


@pytest.mark.parametrize(
    ("fault", "enabled", "reason"),
    [
        ([False, True], [True, True], Reason.DRIVE_FAULT),
        ([False, False], [True, False], Reason.DRIVE_OFF),
        ([False, False], [True, True], Reason.NONE),
    ],
)
def test_one_drive_is_enough(fault, enabled, reason):
    made = controller(links=SimpleNamespace(off=-1))
    made.feedback.fault, made.feedback.enabled = np.array(fault), np.array(enabled)
    assert made._reason_of_drives() is reason


# -- arming ------------------------------------------------------------------------------------


def armed(reason=Reason.NONE, started=True, **others):
    """A controller that is armed, whose state may not be used for a reason."""
    made = controller(**others)
    made.latch.state = State.ARMED
    made.estimator = SimpleNamespace(started=started, s=np.zeros(2))
    made.residual = SimpleNamespace(start=lambda *_: None)
    made._reason_of_estimator = lambda: reason
    return made


@pytest.mark.parametrize(
    ("reason", "lost", "heard"),
    [(Reason.NONE, 0, 8), (Reason.NONE, 1, 0), (Reason.STUCK, 0, 0), (Reason.STUCK, 1, 0)],
)
def test_cycles_count_as_complete_if_all_report_and_the_state_is_valid(reason, lost, heard):
    made = armed(reason)
    made._arming.complete = 7
    made._advance(100.0, lost)
    assert made._arming.complete == heard


@pytest.mark.parametrize(
    ("resets", "after", "reason"),
    [
        (False, 0.0, Reason.NONE),
        (False, 0.25, Reason.DRIVE_FAULT),
        (True, 12.5, Reason.NONE),  # fifty cycles
        (True, 12.75, Reason.DRIVE_FAULT),
    ],
)
def test_a_fault_while_armed_is_waited_for_only_if_it_is_reset(resets, after, reason):
    made = armed(resets=resets)
    made.plan.duration = 100.0
    made.feedback.fault = np.array([False, True])
    made.feedback.enabled = np.array([True, False])
    found = made._advance(100.0 + after, 0)
    assert (found is Reason.DRIVE_FAULT) == (reason is Reason.DRIVE_FAULT)


@pytest.mark.parametrize(
    ("talks", "after", "ends"),
    [(True, 3.0, False), (True, 3.25, True), (False, 10.0, False), (False, 10.25, True)],
)
@pytest.mark.parametrize("reason", [Reason.NONE, Reason.STUCK])
def test_drives_have_three_seconds_to_come_and_listeners_the_time_of_the_run(
    talks, after, ends, reason
):
    made = armed(reason, _talks=talks)
    made.feedback.enabled = np.array([True, False])
    expected = (reason or Reason.DRIVE_OFF) if ends else Reason.NONE
    assert made._advance(100.0 + after, 0) is expected


@pytest.mark.parametrize(("enabled", "runs"), [((True, True), True), ((True, False), False)])
def test_a_run_begins_once_all_drives_are_enabled(enabled, runs):
    made = armed()
    made.feedback.enabled = np.array(enabled)
    made.latch.may_run, ran = True, []
    made.latch.run = lambda: ran.append(True)
    assert made._advance(100.0, 0) is Reason.NONE
    assert bool(ran) is runs


@pytest.mark.parametrize(("heard", "runs"), [(2, False), (3, True)])
def test_a_listener_runs_after_as_many_reports_as_the_prelude_has_cycles(heard, runs):
    made = armed(_talks=False)
    made._arming.complete = heard
    made.latch.may_run, ran = True, []
    made.latch.run = lambda: ran.append(True)
    assert made._advance(100.0, 0) is Reason.NONE
    assert bool(ran) is runs
    assert made._law.index == runs


@pytest.mark.parametrize(
    ("index", "reason"), [(9, Reason.NONE), (10, Reason.END), (11, Reason.END)]
)
def test_the_task_ends_with_its_last_instant(index, reason):
    class Plan(SimpleNamespace):
        def __len__(self):
            return 10

    made = controller(plan=Plan(period=PERIOD))
    made._law.index = index
    assert made._advance(100.0, 0) is reason
    assert made._law.elapsed == (index - 1) * PERIOD


@pytest.mark.parametrize("state", [State.RUN, State.ARMED])
def test_a_law_that_gave_no_torque_stops_unless_others_drive(state):
    made = armed() if state is State.ARMED else controller()
    made.latch.may_run, made._law.status = True, TickStatus.BAD_INPUT
    assert made._advance(100.0, 0) is Reason.TICK_REFUSED


@pytest.mark.parametrize(
    ("timeout", "answers", "polls"),
    [(0.02, (), 1), (0.03, (), 2), (0.3, (), 15), (0.3, (Reason.DEADMAN, Reason.NONE), 2)],
)
def test_a_heartbeat_after_preparing_is_waited_for_as_long_as_it_may_take(timeout, answers, polls):
    given, asked = iter(answers), []

    def poll(now):
        asked.append(now)
        return next(given, Reason.DEADMAN)

    rig = SimpleNamespace(operator=SimpleNamespace(timeout=timeout))
    await_heartbeat(rig, SimpleNamespace(poll=poll), Clock(0.0), lambda: False)
    assert asked == pytest.approx([0.02 * k for k in range(polls)])


# -- the loop ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("took", "missed"),
    [
        (0.1, 0),
        (0.37, 0),  # less than half a period after the next deadline
        (0.38, 1),
        (0.62, 1),
        (0.63, 2),
        (2.5, 9),
    ],
)
@pytest.mark.parametrize("state", [State.RUN, State.ARMED])
def test_cycles_that_are_left_out_are_counted(took, missed, state):
    made, begun = controller(), []
    made._law.index = 7
    made.latch.state, made.latch.arm = state, lambda: None

    def cycle(deadline):
        begun.append((deadline, made._failures.skipped))
        if len(begun) == 1:
            made.clock.time += took
        else:
            made.latch.state, made.latch.may_leave = State.STOP, True

    made._cycle = cycle
    made._loop()
    following = 100.5 + missed * PERIOD
    assert begun == [(100.25, 0), (following, missed)]
    assert made.clock.slept == [100.25, following]
    assert made.quality.skipped == missed
    assert made._law.index == 7 + (missed if state is State.RUN else 0)


def test_cycles_without_torque_at_the_end_are_a_period_apart():
    sent, clock = [], Clock()
    drives = [SimpleNamespace(command=lambda *_: "off", release=yes)]
    bus = SimpleNamespace(send=lambda _: sent.append(clock.time), refused=0, clock=clock)
    policies = SimpleNamespace(shutdown_cycles=3)
    rig = SimpleNamespace(policies=policies, loop=SimpleNamespace(period=PERIOD))
    assert release_drives(rig, drives, Links([bus], [0])) == []
    assert sent == [100.0, 100.25, 100.5]
    assert clock.time == 100.75


@pytest.mark.parametrize(("lateness", "late"), [(0.125, False), (0.1875, True)])
@pytest.mark.parametrize("missed", [0, 2])
def test_a_cycle_is_late_beyond_half_a_period(lateness, late, missed):
    made, judged = controller(_shortest_watchdog=10.0, estimator=None), []
    made._law = SimpleNamespace(evaluate=yes, elapsed=0.0)
    made._row = {name: np.zeros(1) for name in ("cycle", "time", "deadline", "elapsed", "compute")}
    made.feedback.invalid = np.array([2, 3])
    made.links = SimpleNamespace(refused=0)
    made.ring = SimpleNamespace(publish=yes)
    noted = SimpleNamespace(add=yes)
    made.quality.lateness = made.quality.compute = made.quality.transfer = noted
    made._exchange.take, made._exchange.count = yes, lambda _: 1
    made._exchange.waited = made._exchange.transfer = 0.0
    for name in ("_reason_outside", "_estimate", "_advance"):
        setattr(made, name, lambda *_: Reason.NONE)
    made._judge_and_act = made._fill_row = yes
    made._failures = SimpleNamespace(skipped=missed, count=lambda *counted: judged.append(counted))
    warmed = []
    made._torque = SimpleNamespace(warm=warmed.append)
    made._cycle(100.0 - lateness)
    assert warmed == [1 + missed]
    assert judged == [(True, late, False, 1, 0, False)]
    assert made.quality.lost == 1
    assert (made.quality.cycles, made.quality.late, made.quality.invalid) == (1, late, 5)
    stalled = lateness + 0.25 * missed
    expected = (1, stalled, stalled) if late or missed else (0, 0.0, 0.0)
    stalls = made._standstills
    assert (stalls.count, stalls.longest, stalls.total) == expected
    assert made._row["cycle"][0] == 1


# -- acting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "started", "told"),
    [
        (State.ARMED, False, False),
        (State.ARMED, True, True),
        (State.STOP, True, False),
        (State.DISARMED, True, False),
    ],
)
def test_the_guard_stops_an_armed_rig_once_its_state_is_estimated(
    monkeypatch, state, started, told
):
    monkeypatch.setattr(hil.controller._controller, "largest_speed", lambda *_: 0.0)
    made, steps = controller(), []
    made.latch.state, made.latch.action = state, Action.OFF
    made.latch.step = lambda now, reason, speed: steps.append(reason)
    made._still = made._before = np.zeros(2)
    made.estimator = SimpleNamespace(
        started=started, velocity=np.zeros(2), position=np.zeros(2), valid=True
    )
    made.limits = None
    verdict = SimpleNamespace(reason=Reason.NOT_FINITE, axis=0)
    made._torque = SimpleNamespace(judge=lambda *_: verdict, act=yes, sent=np.zeros(2), flags=0)
    made._end_holding = made._check_again = yes
    made._exchange.send = lambda *_, **__: None
    made._judge_and_act(100.0, Reason.NONE)
    assert steps == [Reason.NOT_FINITE if told else Reason.NONE]


@pytest.mark.parametrize(
    ("asked", "stops", "alive", "ends"),
    [
        (False, 2, True, False),
        (True, 2, True, True),
        (False, 3, True, True),
        (False, 2, False, True),
    ],
)
def test_holding_ends_by_any_word_of_the_operator(asked, stops, alive, ends):
    made, ended = controller(_stops=2), []
    made.latch.phase, made.latch.remove_power = Phase.HOLDING, lambda: ended.append(True)
    made.operator = SimpleNamespace(take_reset=lambda: asked, stops=stops, alive=lambda now: alive)
    made._end_holding(100.0)
    assert bool(ended) is ends


@pytest.mark.parametrize(("cycles", "ends"), [(3, False), (4, True)])
@pytest.mark.parametrize("operator", [None, SimpleNamespace(take_reset=yes)])
def test_holding_ends_after_a_second_where_there_is_no_operator(cycles, ends, operator):
    made, ended = controller(operator=operator, attended=False), []
    made.latch.phase, made.latch.remove_power = Phase.HOLDING, lambda: ended.append(True)
    made.latch.cycles = cycles
    made._end_holding(100.0)
    assert bool(ended) is ends


@pytest.mark.parametrize(
    ("stolen", "passed", "sentence"),
    [
        (0.125, 12.5, "its host took 1 % of the processor time"),
        (0.099, 10.0, ""),
        (3.0, 10.0, "its host took 30 % of the processor time"),
        (3.0, 0.0, ""),
    ],
)
def test_time_taken_by_the_host_is_reported_from_one_per_cent(
    monkeypatch, stolen, passed, sentence
):
    times = iter([(0.0, 0.0), (stolen, passed)])
    monkeypatch.setattr("hil.controller._standstills.host_time", lambda: next(times))
    assert Standstills(Clock()).sentence == sentence
