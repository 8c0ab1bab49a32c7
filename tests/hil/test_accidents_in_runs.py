"""The accidents in whole runs: controller, drives and emulated rig in one process.

The naive pieces that repeat them are in `naive.py`, and fail in `test_accidents.py`.
"""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from hil._plan import sample_plan
from hil.bus import open_bus
from hil.clock import SteppedClock
from hil.controller import Controller, Mode
from hil.drives import make_drives
from hil.emulator import DriveSettings, Fault, World
from hil.errors import RigError, UnitError
from hil.guard import Flag, Limits, Reason, State
from hil.operator import OperatorChannel, OperatorSender
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.rig import load_rig
from hil.session import mocked

FOLDER = Path(__file__).parents[2] / "examples" / "rover_rig"
CYCLE = 30
"""Cycle of the run in which something happens."""

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def law():
    """The common parts of all runs: servo, tick, reference."""
    rig = load_rig(FOLDER / "rig.toml")
    servo = rig.task.servo
    return servo, servo.compile(), sample_plan(rig.task, servo, rig.loop.period, 0.3)


class Law:
    """The law, with something else done in some cycle of the run."""

    def __init__(self, tick, change, cycle=CYCLE):
        self.tick, self.buffers = tick, tick.buffers
        self.change, self.cycle, self.count = change, cycle, None

    def begin(self):
        self.count = 0

    def reset(self):
        self.tick.reset()

    def run(self):
        status = self.tick.run()
        if self.count is not None:
            self.count += 1
            if self.count >= self.cycle:
                self.change(self.buffers.u, self.count - self.cycle)
        return status


class Loop:
    """A controller on an emulated rig, and its actions in each cycle."""

    def __init__(
        self, law, change=None, file="rig.toml", settings=None, mode=Mode.MOCK, cycle=CYCLE, **rest
    ):
        servo, tick, plan = law
        rig = mocked(load_rig(FOLDER / file))
        policies = dataclasses.replace(rig.policies, stop_time=0.1, max_consecutive_faults=5)
        operator = dataclasses.replace(rig.operator, port=0, timeout=0.2)
        self.rig = dataclasses.replace(rig, policies=policies, operator=operator)
        self.clock = rest.pop("clock", None) or SteppedClock()
        # With a fault that never starts, the world stores the report that a stale drive repeats.
        idle = Fault("drop", probability=0.0)
        self.world = World(self.rig, self.clock, [idle], settings=settings)
        self.bus = open_bus(self.rig.bus, self.clock)
        self.frames = []
        self.torques = []
        take = self.bus.send

        def send(frame):
            self.frames.append((self.clock.now(), frame.arbitration_id, bytes(frame.data)))
            return take(frame)

        self.bus.send = send
        layout = Layout(
            tuple(a.name for a in rig.axes), servo.nq, servo.nw, servo.pose_size, servo.size
        )
        self.ring = Ring.create(layout, 2000)
        self.channel = self.sender = None
        if mode is Mode.DRIVE:
            self.channel = OperatorChannel(self.rig.operator, self.clock, self.rig.loop.period)
            self.sender = OperatorSender("127.0.0.1", self.channel.port, self.channel.token)
        self.law = Law(tick, change or (lambda u, k: None), cycle)
        self.controller = Controller(
            self.rig,
            servo,
            self.law,
            plan,
            make_drives(self.rig),
            self.bus,
            self.ring,
            mode=mode,
            operator=self.channel,
        )
        self.limits = Limits.from_rig(self.rig)
        start, inner = self.controller.latch.run, self.controller._cycle

        def begin():
            start()
            self.law.begin()

        def watched(deadline):
            inner(deadline)
            self.torques.append(self.world.torque.copy())

        self.beats = True
        self.controller.latch.run = begin
        self.controller._cycle = watched

    def run(self):
        if self.sender is not None:  # held from before the run on
            step = self.clock.advance

            def advance(instant):
                step(instant)
                if self.beats:
                    self.sender.heartbeat()

            self.clock.advance = advance
        outcome = self.controller.run()
        self.rows, _, lost = self.ring.take(0)
        assert not lost
        self.columns = self.ring.layout.views(self.rows)
        return outcome

    def __getitem__(self, name):
        column = self.columns[name]
        return column[:, 0] if name in ("state", "reason", "flags", "time") else column

    def wait(self, seconds):
        self.clock.sleep_until(self.clock.now() + seconds)

    def checked(self):
        """Check the properties of every run: limited torque, and no torque at its end."""
        torque, state = self["torque"], self["state"]
        assert np.isfinite(torque).all()
        assert (np.abs(torque) <= self.limits.torque).all()
        run = state == State.RUN
        change = np.abs(np.diff(torque, axis=0))[run[1:] & run[:-1]]
        assert (change <= self.limits.rate * self.rig.loop.period).all()
        assert not torque[state < State.RUN].any()
        self.wait(0.01)
        assert not self.world.torque.any()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.channel is not None:
            self.channel.close()
            self.sender.close()
        self.bus.close()
        self.world.close()
        self.ring.close()
        self.ring.remove()


def put(index, value):
    """A change of the law: one torque is something else, once."""

    def change(u, k):
        if k == 0:
            u[index] = value

    return change


def stops(loop, outcome, *reasons):
    assert outcome.reason in reasons, outcome.reason.name
    assert not outcome.done
    assert loop["state"][-1] == State.STOP
    loop.checked()


def test_a_run_without_accident_reaches_its_end_and_nothing_is_blocked(law):
    """Accidents 8 and 13: guard and latch let a task pass that keeps its limits."""
    with Loop(law) as loop:
        outcome = loop.run()
        assert outcome.done
        loop.checked()
        run = loop["state"] == State.RUN
        assert run.sum() >= 75
        clipped = loop["flags"][run] != 0
        assert clipped[10:].sum() == 0  # the first torques rise from zero at their rate
        np.testing.assert_array_equal(loop["torque"][run][10:], loop["demand"][run][10:])

        # Accident 8: every cycle sends, also while nothing changes and in the stop.
        period = loop.rig.loop.period
        first, last = loop["time"][0], loop["time"][-1]
        per_axis = {}
        for time, identifier, _ in loop.frames:
            if first <= time <= last + period:
                per_axis.setdefault(identifier, []).append(time)
        cycles = len(loop["time"])
        steady = [times for times in per_axis.values() if len(times) >= cycles]
        assert len(steady) >= len(loop.rig.axes)
        for times in steady:
            assert np.diff(times).max() < 2 * period


@pytest.mark.parametrize(
    ("index", "value"),
    [(4, math.nan), pytest.param(0, math.nan, marks=slow), pytest.param(2, math.inf, marks=slow)],
)
def test_1_to_4_a_law_that_gives_no_number(law, index, value):
    """The whole vector is judged before the first frame, and the run is no success."""
    with Loop(law, put(index, value)) as loop:
        outcome = loop.run()
        stops(loop, outcome, Reason.NOT_FINITE)
        bad = int(np.flatnonzero(~np.isfinite(loop["demand"]).all(axis=1))[0])
        assert loop["state"][bad] == State.STOP
        # Joint damping was sent instead, in the same cycle and on all axes.
        assert (loop["torque"][bad] * loop["s"][bad] <= 0.0).all()


@slow
def test_5_reports_of_garbage_are_no_reports(law):
    with Loop(law) as loop:
        fault = Fault("corrupt", "turret", way="to_host")
        loop.law.change = lambda u, k: loop.world.fault(fault) if k == 0 else None
        outcome = loop.run()
        # A turned bit may be that of a fault; in any case the reports are no sign of life.
        stops(loop, outcome, Reason.LOST, Reason.STUCK, Reason.DRIVE_FAULT, Reason.DRIVE_OFF)


def test_5_commands_of_garbage_do_not_feed_the_drive(law):
    with Loop(law) as loop:
        fault = Fault("corrupt", "turret", way="to_drive")
        loop.law.change = lambda u, k: loop.world.fault(fault) if k == 0 else None
        outcome = loop.run()
        stops(loop, outcome, Reason.DRIVE_FAULT, Reason.DRIVE_OFF, Reason.LOST)
        assert loop.world.torque_free_after("turret") <= 0.1 + 0.01


def test_6_a_fault_that_goes_away_does_not_bring_the_torque_back(law):
    with Loop(law) as loop:
        fault = Fault("drop", "forearm", lasting=0.06, way="to_host")
        loop.law.change = lambda u, k: loop.world.fault(fault) if k == 0 else None
        outcome = loop.run()
        stops(loop, outcome, Reason.LOST)
        state = loop["state"]
        stopped = int(np.argmax(state == State.STOP))
        assert (state[stopped:] == State.STOP).all()
        assert len(state) - stopped > 20  # the fault has long gone


class Stalling(SteppedClock):
    """A clock that can be made to repeat a reading."""

    __slots__ = ("again", "spoke")

    def __init__(self):
        super().__init__()
        self.again, self.spoke = None, 0.0

    def now(self):
        said, self.again = self.again, None
        return super().now() if said is None else said


@pytest.mark.parametrize(
    "back", [0.0, pytest.param(0.001, marks=slow), pytest.param(5.0, marks=slow)]
)
def test_7_a_clock_that_stands_still_or_goes_back(law, back):
    clock = Stalling()
    with Loop(law, clock=clock) as loop:
        inner, starts = loop.controller._cycle, []

        def cycle(deadline):
            if loop.law.count == CYCLE:
                clock.again = starts[-1] - back
            else:
                starts.append(SteppedClock.now(clock))
            inner(deadline)

        loop.controller._cycle = cycle
        outcome = loop.run()
        stops(loop, outcome, Reason.CLOCK)
        stopped = int(np.argmax(loop["state"] == State.STOP))
        assert not loop["torque"][stopped:].any()  # power is removed at once


def test_9_and_12_the_mode_changes_nothing_of_a_run(law):
    """With the same reports, mock and drive send the same torques up to the end of a stop."""
    runs = []
    for mode in (Mode.MOCK, Mode.DRIVE):
        with Loop(law, put(1, math.nan), mode=mode) as loop:
            outcome = loop.run()
            stops(loop, outcome, Reason.NOT_FINITE)
            state = loop["state"]
            begun = int(np.argmax(state == State.RUN))
            runs.append((loop["torque"][begun:].tobytes(), state[begun:].tobytes()))
    assert runs[0] == runs[1]


def test_the_deadman_stops_a_run(law):
    with Loop(law, mode=Mode.DRIVE, cycle=1) as loop:

        def let_go(u, k):
            loop.beats = False

        loop.law.change = let_go
        outcome = loop.run()
        stops(loop, outcome, Reason.DEADMAN)
        begun = int(np.argmax(loop["state"] == State.RUN))
        stopped = int(np.argmax(loop["state"] == State.STOP))
        assert 0.19 <= (stopped - begun) * loop.rig.loop.period <= 0.22


def test_the_operator_stops_a_run_without_a_token(law):
    with Loop(law, mode=Mode.DRIVE) as loop:

        def press(u, k):
            with OperatorSender("127.0.0.1", loop.channel.port) as stranger:
                stranger.stop()

        loop.law.change = press
        outcome = loop.run()
        stops(loop, outcome, Reason.OPERATOR)


@pytest.mark.parametrize("file", ["rig.toml", pytest.param("rig_mit.toml", marks=slow)])
def test_10_after_a_power_cycle_nothing_resumes(law, file):
    with Loop(law, file=file) as loop:
        fault = Fault("power_cycle", "turret")
        loop.law.change = lambda u, k: loop.world.fault(fault) if k == 0 else None
        outcome = loop.run()
        stops(loop, outcome, Reason.DRIVE_OFF, Reason.DRIVE_FAULT, Reason.LOST)
        turret = [a.name for a in loop.rig.axes].index("turret")
        stopped = int(np.argmax(loop["state"] == State.STOP))
        # From the power cycle on its motor has no torque, although it is back after 50 ms.
        assert not np.array(loop.torques)[stopped:, turret].any()
        loop.wait(1.0)
        assert not loop.world.torque.any()
        assert not loop.world.drive("turret").enabled


def test_11_a_rebooted_drive_is_asked_again(law):
    """Between two runs a drive comes back with another rated torque: it is not armed."""
    with Loop(law, settings={"turret": DriveSettings(after_power_cycle={0x6076: 12000})}) as loop:
        for drive in loop.controller.drives:
            drive.prepare(loop.bus)
            drive.release(loop.bus)
        loop.world.drive("turret").power_cycle(loop.clock.now())
        loop.wait(0.2)
        with pytest.raises(UnitError, match="turret"):
            loop.controller.run()
        assert not loop.world.torque.any()


def test_11_no_gains_of_a_drive_are_relied_on(law):
    """Commands of MIT drives have neither stiffness nor damping, in no state of a run."""
    with Loop(law, put(1, math.nan), file="rig_mit.toml") as loop:
        stops(loop, loop.run(), Reason.NOT_FINITE)
        special = [bytes([0xFF] * 7 + [x]) for x in (0xFB, 0xFC, 0xFD)]
        commands = [data for _, _, data in loop.frames if data not in special]
        assert len(commands) > 300
        for data in commands:
            stiffness = (data[3] & 0x0F) << 8 | data[4]
            damping = data[5] << 4 | data[6] >> 4
            assert (stiffness, damping) == (0, 0)


@pytest.mark.parametrize(
    "way", ["to_drive", *(pytest.param(way, marks=slow) for way in ("to_host", "both"))]
)
def test_14_no_torque_outlives_its_set_point(law, way):
    with Loop(law) as loop:
        fault = Fault("drop", "upper_arm", way=way)
        loop.law.change = lambda u, k: loop.world.fault(fault) if k == 0 else None
        outcome = loop.run()
        stops(loop, outcome, Reason.LOST, Reason.DRIVE_FAULT, Reason.DRIVE_OFF)
        assert loop.world.torque_free_after("upper_arm") <= 0.1 + 0.01
        if way != "to_drive":
            held = (loop["flags"].astype(int) & Flag.HELD) != 0
            assert held.sum() == loop.rig.policies.max_consecutive_faults


@pytest.mark.parametrize("file", [pytest.param("rig.toml", marks=slow), "rig_mit.toml"])
def test_14_a_controller_that_dies_leaves_drives_that_stop_by_themselves(law, file):
    with Loop(law, file=file) as loop:

        def die(u, k):
            loop.controller._leave = lambda: None  # as `kill -9` leaves it
            raise KeyboardInterrupt

        loop.law.change = die
        with pytest.raises(KeyboardInterrupt):
            loop.run()
        assert loop.world.torque.any()
        loop.wait(0.25)
        assert not loop.world.torque.any()
        for axis in loop.rig.axes:
            assert loop.world.torque_free_after(axis.name) <= axis.watchdog + 0.005


def test_14_an_error_in_the_loop_leaves_no_torque(law):
    with Loop(law) as loop:

        def fail(u, k):
            raise ZeroDivisionError

        loop.law.change = fail
        with pytest.raises(ZeroDivisionError):
            loop.run()
        assert loop.controller.latch.reason is Reason.ERROR
        loop.wait(0.01)
        assert not loop.world.torque.any()
        assert not any(drive.enabled for drive in loop.world.drives)


def test_15_a_law_out_of_its_mind_stays_within_every_limit(law):
    with Loop(law, lambda u, k: u.fill(1e6 * (-1) ** (k // 3))) as loop:
        loop.run()
        loop.checked()
        flags = np.bitwise_or.reduce(loop["flags"].astype(int))
        assert flags & Flag.CLIPPED_TORQUE
        assert flags & Flag.CLIPPED_RATE
        assert (np.abs(loop.torques) <= loop.limits.torque * 1.001).all()


@slow
@pytest.mark.parametrize("limit", ["ignored", "pretended"])
def test_15_a_drive_that_does_not_apply_its_limit_is_held_by_the_guard(law, limit):
    settings = {"turret": DriveSettings(limit=limit)}
    with Loop(law, lambda u, k: u.fill(1e6), settings=settings) as loop:
        try:
            loop.run()
        except RigError:  # found when it was armed
            assert not loop.world.torque.any()
            return
        loop.checked()
        assert (np.abs(loop.torques) <= loop.limits.torque * 1.001).all()


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("rig.toml", DriveSettings(rated_torque=12.0)),
        ("rig.toml", DriveSettings(rated_torque=3.0)),
        ("rig.toml", DriveSettings(counts=8192)),
    ],
)
def test_16_a_drive_of_other_units_is_not_armed(law, file, settings):
    with Loop(law, file=file, settings={"turret": settings}) as loop:
        with pytest.raises(UnitError, match="turret"):
            loop.run()
        assert not loop.torques  # not one cycle of the loop
        assert not loop.world.torque.any()
        assert not any(drive.enabled for drive in loop.world.drives)


def test_a_drive_without_watchdog_is_not_armed(law):
    for file in ("rig.toml", "rig_mit.toml"):
        with Loop(law, file=file, settings={"turret": DriveSettings(watchdog=False)}) as loop:
            with pytest.raises(RigError, match=r"turret.*watchdog"):
                loop.run()
            assert not loop.torques
            assert not loop.world.torque.any()
