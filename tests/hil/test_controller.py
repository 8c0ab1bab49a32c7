"""The loop: arming, tolerated faults, stops, and an orderly end in all cases."""

import dataclasses
import os
import signal

import can
import numpy as np
import pytest

from hil.controller import Controller, Mode
from hil.controller._controller import HOLDING, PATIENCE
from hil.controller._preparation import OPERATOR_PATIENCE
from hil.emulator import Fault
from hil.errors import ArmError
from hil.guard import Phase, Reason, State
from hil.operator import CHALLENGES, OperatorSender
from tests.hil.bench import (
    FLOATER,
    ROVER,
    ROVER_MIT,
    Bench,
    plan_of,
    rig_of,
    slow,
)

PERIOD = 0.004


BOTH = pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
FIRST = pytest.mark.parametrize("file", [ROVER, slow(ROVER_MIT)])
SECOND = pytest.mark.parametrize("file", [slow(ROVER), ROVER_MIT])


def has_torque(file, data):
    """Whether a command asks for torque."""
    if file == ROVER_MIT:
        special = data[:7] == b"\xff" * 7
        return not special and abs(((data[6] & 0x0F) << 8 | data[7]) - 2047.5) > 0.5
    return len(data) == 4 and data[2:] != b"\x00\x00"


# -- arming ------------------------------------------------------------------------------------


@BOTH
def test_arming(file):
    with Bench(file) as bench:
        outcome = bench.run()
        assert outcome.done
        assert outcome.left == ()
        assert bench.controller.latch.reason is Reason.END
        bench.check()
        state, begun = bench["state"], bench.begun
        assert (state[:begun] == State.ARMED).all()
        assert begun >= bench.rig.policies.startup_cycles
        # The law is evaluated from the first reports on; none of it leaves before RUN.
        assert np.abs(bench["demand"][begun - 1]).max() > 0.1
        first = bench["time"][begun]
        assert bench.is_free_until(first)
        for drive in bench.controller.drives:
            for time, _, data in bench.commands(drive.index):
                assert time >= first or time < bench.armed or not has_torque(file, data)
        # All drives are under power by then, and the first torque is as far from zero as it may.
        assert bench["enabled"][begun - 1].all()
        rate = bench.limits.rate * bench.rig.loop.period
        assert (np.abs(bench["torque"][begun]) <= rate).all()
        assert np.abs(bench["torque"][begun]).max() > 0.0
        assert [check.axis for check in outcome.checks][:1] == bench.names[:1]
        assert {check.axis for check in outcome.checks} == set(bench.names)


def test_a_start_too_far_from_the_task_is_refused():
    with Bench(rig=rig_of(policies={"start_error": 0.01, "stop_time": 0.1})) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.START_ERROR
        assert not bench.run_rows.any()
        assert bench.is_free_until()
        bench.check()


@pytest.mark.parametrize("way", ["to_host", slow("to_drive")])
def test_a_drive_that_falls_silent_while_arming_is_not_run(way):
    fault = Fault("drop", "forearm", way=way)
    with Bench() as bench:
        arm = bench.controller.latch.arm

        def arm_and_drop():
            arm()
            bench.world.fault(fault)

        bench.controller.latch.arm = arm_and_drop
        outcome = bench.run()
        assert outcome.reason in (Reason.LOST, Reason.DRIVE_OFF, Reason.DRIVE_FAULT)
        assert not bench.run_rows.any()
        assert bench["time"][-1] - bench["time"][0] < PATIENCE + 0.2
        assert bench.is_free_until()
        bench.check()


def test_drive_mode_needs_an_operator():
    with pytest.raises(ArmError, match=r"operator's heartbeat"):
        Bench(mode=Mode.DRIVE, operator=None)


def test_without_a_heartbeat_no_drive_is_armed():
    with Bench(mode=Mode.DRIVE) as bench:
        bench.beats = False
        begin = bench.clock.now()
        with pytest.raises(ArmError, match="enabling device") as caught:
            bench.run()
        assert caught.value.came == f"no heartbeat for {OPERATOR_PATIENCE:.1f} s"
        waited = bench.clock.now() - begin
        assert OPERATOR_PATIENCE <= waited <= OPERATOR_PATIENCE + 1.0
        assert len(bench) == 0
        # Another controller may drive this rig: this host must not remove its torque.
        assert not bench.sent


def test_a_plan_of_another_period_is_refused():
    plan = dataclasses.replace(plan_of(ROVER, 0.4), period=0.005)
    with Bench() as bench, pytest.raises(ArmError, match="period"):
        Controller(
            bench.rig,
            bench.servo,
            bench.law,
            plan,
            bench.controller.drives,
            bench.links,
            bench.ring,
            mode=Mode.MOCK,
        )


@FIRST
def test_an_earlier_fault_is_cleared_only_on_request(file):
    for resets in (False, True):
        with Bench(file, resets=resets) as bench:
            bench.world.fault(Fault("drive_fault", "turret", at=0.3))
            bench.wait(0.5)
            outcome = bench.run()
            if file == ROVER and resets:
                assert outcome.done, outcome.reason
            elif not resets:
                assert outcome.reason is Reason.DRIVE_FAULT
                assert not bench.run_rows.any()
            bench.check()


# -- stops by people ---------------------------------------------------------------------------


def braked_in_time(bench):
    """From the stop on: joint damping, no longer than the rig file allows, then no torque."""
    stopped = bench.stopped
    torque, time = bench["torque"], bench["time"]
    braking = np.flatnonzero(torque[stopped:].any(axis=1)) + stopped
    speeds = bench["s"]
    assert (torque[braking] * speeds[braking] <= 1e-12).all()
    # The present speed is damped, for every reason of the stop.
    n = len(bench.names)
    true = np.array(bench.speeds)[braking]
    assert np.abs(speeds[braking][:, :n] - true).max() < 0.25
    damping = np.array([axis.damping for axis in bench.rig.axes])
    for row in braking[2:]:
        free = np.abs(torque[row]) < bench.limits.torque
        np.testing.assert_allclose(torque[row][free], (-damping * speeds[row][:n])[free])
    stop_time = bench.rig.policies.stop_time
    assert time[braking[-1]] - time[stopped] <= stop_time + 1e-9
    assert not torque[braking[-1] + 1 :].any()
    # The frames that follow take the power away, and do so for the whole postlude.
    assert len(bench) - braking[-1] - 1 >= bench.rig.policies.shutdown_cycles
    return braking


@SECOND
def test_a_deadman_let_go(file):
    rig = rig_of(file, operator={"port": 0, "timeout": 0.1})
    with Bench(file, rig=rig, mode=Mode.DRIVE) as bench:
        bench.at(20, setattr, bench, "beats", False)
        outcome = bench.run()
        assert outcome.reason is Reason.DEADMAN
        stopped, begun = bench.stopped, bench.begun
        silence = bench["time"][stopped] - bench["time"][begun + 20]
        # Challenges are as old as the distance between them, and no heartbeat is younger.
        assert 0.1 - 0.1 / CHALLENGES - 2 * PERIOD <= silence <= 0.1 + PERIOD
        assert len(braked_in_time(bench)) >= 5
        bench.check()


@pytest.mark.parametrize(
    "known", [slow(True, id="with token"), pytest.param(False, id="from anybody")]
)
def test_a_stop_by_datagram(known):
    with Bench(mode=Mode.DRIVE) as bench:
        token = bench.channel.token if known else ""
        with OperatorSender("127.0.0.1", bench.channel.port, token) as pendant:
            bench.at(20, pendant.stop)
            outcome = bench.run()
        assert outcome.reason is Reason.OPERATOR
        assert bench.stopped == bench.row(20)
        braked_in_time(bench)
        bench.check()


@pytest.mark.parametrize("number", [signal.SIGINT, slow(signal.SIGTERM), slow(signal.SIGHUP)])
def test_a_signal(number):
    before = signal.getsignal(number)
    with Bench() as bench:
        bench.at(20, os.kill, os.getpid(), number)
        outcome = bench.run()
        assert outcome.reason is Reason.SIGNAL
        assert bench.stopped == bench.row(20)
        braked_in_time(bench)
        bench.check()
    assert signal.getsignal(number) is before


@pytest.mark.by_default(1)
@FIRST
@pytest.mark.parametrize("request_of", ["signal", "operator"])
def test_a_stop_in_the_test_of_the_watchdogs_removes_their_torque_at_once(file, request_of):
    """Without it the torque would act until the drives' watchdogs end it."""
    with Bench(file, mode=Mode.DRIVE, duration=0.1) as bench:
        asked, advance = [], bench.clock.advance

        def moved(instant):
            advance(instant)
            if not asked and np.abs(bench.world.torque).max() > 0.3:
                asked.append(instant)
                if request_of == "signal":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    bench.sender.stop()

        bench.clock.advance = moved
        outcome = bench.run()
        assert outcome.reason is (Reason.SIGNAL if request_of == "signal" else Reason.OPERATOR)
        assert not bench.run_rows.any()
        (since,) = asked
        assert bench.is_free(bench.torque_since(since + 3 * PERIOD))
        bench.check()


def test_a_signal_while_the_operator_is_waited_for():
    with Bench(mode=Mode.DRIVE) as bench:
        bench.beats = False
        poll = bench.channel.poll

        def polled(now):
            os.kill(os.getpid(), signal.SIGINT)
            return poll(now)

        bench.channel.poll = polled
        begin = bench.clock.now()
        with pytest.raises(ArmError):
            bench.run()
        assert bench.clock.now() - begin < 1.0


# -- the end -----------------------------------------------------------------------------------


@FIRST
def test_the_end_of_the_task(file):
    with Bench(file) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.END
        assert outcome.elapsed == pytest.approx(bench.plan.duration)
        # At the last instant there is nothing left to be done: that cycle is the stop's.
        followed = bench["state"] >= State.RUN
        followed[bench.stopped + 1 :] = False
        assert followed.sum() == len(bench.plan) == bench.run_rows.sum() + 1
        np.testing.assert_array_equal(bench["pose"][followed], bench.plan.pose)
        np.testing.assert_allclose(bench["elapsed"][bench.run_rows], PERIOD * np.arange(100))
        braked_in_time(bench)
        bench.check()
        # Once nothing leaves any more, a drive that hears nothing has no torque to lose.
        assert not any(drive.enabled for drive in bench.world.drives)


def held(bench):
    """Rows in which a stop holds: stiffness about the place of rest."""
    stopped, torque = bench.stopped, bench["torque"]
    braking = round(bench.rig.policies.stop_time / PERIOD)
    rows = np.flatnonzero(torque[stopped:].any(axis=1)) + stopped
    return rows[rows >= stopped + braking]


def test_category_2_holds_under_power_until_the_operator_resets():
    rig = rig_of(policies={"stop_category": 2, "stop_time": 0.1}, operator={"port": 0})
    with Bench(rig=rig, mode=Mode.DRIVE) as bench:
        cycles = []
        inner = bench.controller._cycle

        def cycle(deadline):
            if bench.phase is Phase.HOLDING:
                cycles.append(bench.clock.now())
                if len(cycles) == 400:
                    bench.sender.reset()
            inner(deadline)

        bench.controller._cycle = cycle
        bench.at(5, bench.sender.reset)  # one from before the stop ends nothing
        bench.at(30, bench.sender.stop)
        outcome = bench.run()
        assert outcome.reason is Reason.OPERATOR
        assert len(cycles) == 400
        rows = held(bench)
        assert len(rows) >= 399
        # The joints deflect by the arm's weight over their stiffness, and stay there.
        position, axis = bench["position"][rows], bench.rig.axes[3]
        yielding = np.abs(bench["torque"][bench.begun : bench.stopped, 3]).max() / axis.stiffness
        assert np.abs(position - position[0])[:, 2:].max() < 1.5 * yielding
        assert np.abs(np.array(bench.speeds)[rows[-1], 2:]).max() < 0.05
        assert (np.abs(bench["torque"][rows][200:, 3]) > 1.0).all()
        assert bench["enabled"][rows].all()
        bench.check()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("reason", [Reason.END, Reason.SIGNAL])
def test_category_2_without_an_operator(reason):
    """At the end of a task it holds for a while; a process that was asked to end does not."""
    rig = rig_of(policies={"stop_category": 2, "stop_time": 0.1})
    with Bench(rig=rig) as bench:
        if reason is Reason.SIGNAL:
            bench.at(20, os.kill, os.getpid(), signal.SIGTERM)
        outcome = bench.run()
        assert outcome.reason is reason
        rows = held(bench)
        if reason is Reason.END:
            assert len(rows) * PERIOD == pytest.approx(HOLDING, abs=2 * PERIOD)
        else:
            assert not len(rows)
        bench.check()


@pytest.mark.parametrize("kind", ["drive_fault", slow("power_cycle"), slow("drop")])
def test_what_fails_while_holding_ends_the_power(kind):
    """A stop that holds trusts positions and drives; without that there is no holding."""
    rig = rig_of(policies={"stop_category": 2, "stop_time": 0.1})
    with Bench(rig=rig) as bench:
        inner, struck = bench.controller._cycle, []

        def cycle(deadline):
            if bench.phase is Phase.HOLDING:
                if not struck:
                    bench.world.fault(Fault(kind, "turret"))
                struck.append(len(struck))
            inner(deadline)

        bench.controller._cycle = cycle
        outcome = bench.run()
        assert outcome.reason is Reason.END  # the first reason stays
        patience = bench.rig.policies.max_consecutive_faults
        assert len(struck) <= (3 if kind == "drive_fault" else patience + 5)
        bench.check()


# -- every way out -----------------------------------------------------------------------------


class InjectedError(Exception):
    """Raised in the middle of a cycle."""


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def break_law(bench, error):
    bench.law.run = failing(error)


def break_estimator(bench, error):
    bench.controller.estimator.update = failing(error)


def break_latch(bench, error):
    bench.controller.latch.step = failing(error)


def break_encoding(bench, error):
    """For good: this drive gives no frame any more, not even one without torque."""
    bench.controller.drives[2].command = failing(error)


def break_sending(bench, error):
    """Once, after the first of the five frames of a cycle."""
    send, count = bench.bus.send, [0]

    def broken(frame):
        count[0] += 1
        if count[0] == 4:
            raise error
        return send(frame)

    bench.bus.send = broken


def break_bus(bench, error):
    bench.bus.receive = failing(error)


def break_record(bench, error):
    bench.ring.publish = failing(error)


PLACES = [
    break_law,
    slow(break_estimator),
    slow(break_latch),
    break_encoding,
    break_sending,
    slow(break_bus),
    slow(break_record),
]


def leaves_in_order(bench, broken=None):
    """After an exception: frames without torque for the whole postlude, then silence."""
    since = bench.clock.now()
    latch = bench.controller.latch
    assert (latch.state, latch.reason) == (State.STOP, Reason.ERROR)
    postlude = bench.rig.policies.shutdown_cycles
    for drive in bench.controller.drives:
        if drive.index == broken:
            continue
        last = bench.commands(drive.index)[-postlude:]
        assert len(last) == postlude
        assert not any(has_torque(bench.file, data) for _, _, data in last)
        assert not bench.world.torque[drive.index]
    bench.dead(after=0.1)
    assert not any(drive.enabled for drive in bench.world.drives)
    bench.torque_ended_in_time()
    assert bench.clock.now() > since


@pytest.mark.by_default(4)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__[6:])
def test_an_exception_in_the_middle_of_a_cycle(place):
    with Bench() as bench:
        bench.at(30, place, bench, InjectedError("here"))
        with pytest.raises(InjectedError):
            bench.run()
        assert bench.run_rows.sum() >= 30
        assert np.abs(bench["torque"][bench.begun + 20]).max() > 0.5
        leaves_in_order(bench, broken=2 if place is break_encoding else None)


@pytest.mark.parametrize("place", [break_law, slow(break_sending)])
@pytest.mark.parametrize("error", [slow(KeyboardInterrupt), SystemExit, slow(MemoryError)])
def test_not_only_exceptions(place, error):
    with Bench(ROVER_MIT) as bench:
        bench.at(30, place, bench, error())
        with pytest.raises(error):
            bench.run()
        leaves_in_order(bench)


@pytest.mark.parametrize("place", [slow(break_law), break_encoding])
def test_an_exception_while_arming(place):
    with Bench() as bench:
        arm = bench.controller.latch.arm

        def arm_and_break():
            arm()
            place(bench, InjectedError())

        bench.controller.latch.arm = arm_and_break
        with pytest.raises(InjectedError):
            bench.run()
        assert not bench.run_rows.any()
        assert bench.is_free_until()
        bench.dead(after=0.1)


def test_an_exception_while_preparing():
    with Bench() as bench:
        bench.controller.drives[3].prepare = failing(InjectedError())
        with pytest.raises(InjectedError):
            bench.run()
        bench.dead()
        # The drives that were prepared before it have left the loop again.
        node = bench.rig.axes[0].node
        assert bench.world.drives[0].network_state == 127
        assert any(i == 0x000 and data[1] == node for _, i, data in bench.sent[-60:])


def test_the_record_ends_but_the_run_stops_in_order():
    going = [True]
    with Bench(recording=lambda: going[0]) as bench:
        bench.at(30, going.__setitem__, 0, False)
        outcome = bench.run()
        assert outcome.reason is Reason.RECORDER
        assert bench.stopped == bench.row(30)
        braked_in_time(bench)
        bench.check()


def test_a_bus_that_takes_nothing_more():
    with Bench() as bench:

        def refuse(frame, timeout=None):
            raise can.CanOperationError("no buffer space")

        bench.at(30, setattr, bench.bus.bus, "send", refuse)
        outcome = bench.run()
        assert outcome.reason in (Reason.BUS_OFF, Reason.LOST)
        assert outcome.quality.refused > 0
        bench.check()
        bench.torque_ended_in_time()


# -- the whole task ----------------------------------------------------------------------------


def tracked(file, duration):
    """True errors of the outputs at the end of a run, and the estimator's."""
    with Bench(file, duration=duration) as bench:
        seen = {}

        def look():
            seen["q"] = bench.world.q

        last = len(bench.plan) - 1
        run = bench.law.run

        def law():
            if bench.cycle == last - 1 and not seen:
                look()
            return run()

        bench.law.run = law
        outcome = bench.run()
        assert outcome.done, outcome.reason.name
        assert outcome.quality.lost == outcome.quality.late == outcome.quality.invalid == 0
        bench.check()
        return bench.error_at(seen["q"], bench.plan.pose[last]), outcome


def sizes(file, error):
    """Distances (m), and angles (rad), of the outputs."""
    if file == FLOATER:
        return np.linalg.norm(error[:3]), np.linalg.norm(error[3:])
    return np.linalg.norm(error[:2]), np.linalg.norm(error[2:])


@pytest.mark.extended
@pytest.mark.parametrize("file", [ROVER, ROVER_MIT, FLOATER])
def test_the_robot_is_where_the_task_wants_it(file):
    """Not by the estimate that the law sees but in the emulated world, after the first seconds."""
    error, _ = tracked(file, 4.0)
    assert max(sizes(file, error)) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize(("file", "duration"), [(ROVER, 60.0), (ROVER_MIT, 60.0), (FLOATER, 24.0)])
def test_the_whole_task(file, duration):
    error, outcome = tracked(file, duration)
    assert outcome.elapsed == pytest.approx(duration)
    assert max(sizes(file, error)) < 5e-3
