"""A controller on an emulated rig in one process: tests see both sides of the bus.

Time is stepped. Nothing here decides anything: the loop is that of `hil.controller`, the drives
and the robot are those of `hil.emulator`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import threading
from pathlib import Path
from unittest import mock

import msgpack
import numpy as np
import pytest

from hil._bookkeeping import contradictions
from hil._plan import sample_plan
from hil._realtime import Granted
from hil.clock import SteppedClock
from hil.controller import Controller, Mode
from hil.drives import make_drives
from hil.emulator import World
from hil.guard import Limits, Phase, State
from hil.links import open_links
from hil.operator import OperatorChannel, OperatorSender
from hil.record import Record
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.rig import load_rig
from hil.session import mocked
from hil.state.pose_source import PoseReceiver, PoseSender

EXAMPLES = Path(__file__).parents[2] / "examples"
ROVER = "rover_rig/rig.toml"
ROVER_MIT = "rover_rig/rig_mit.toml"
ROVER_MOTEUS = "rover_rig/rig_moteus.toml"
ROVER_ODRIVE = "rover_rig/rig_odrive.toml"
FLOATER = "floater_rig/rig.toml"

SCALARS = ("cycle", "time", "deadline", "elapsed", "state", "reason", "tick", "flags", "lost")


@contextlib.contextmanager
def _no_realtime(*_):
    """Collecting garbage before a run takes as long as the run, where time is stepped."""
    yield Granted(0, False)


@functools.cache
def law_of(file):
    """Servo and tick of an example; built once."""
    servo = load_rig(EXAMPLES / file).task.servo
    return servo, servo.compile()


@functools.cache
def plan_of(file, duration):
    rig = load_rig(EXAMPLES / file)
    return sample_plan(rig.task, law_of(file)[0], rig.loop.period, duration)


USUAL = {
    "policies": {"max_consecutive_faults": 5, "stop_time": 0.1, "end": "stop"},
    "loop": {"receive_window": 2.5e-3},
    "operator": {"port": 0},
}
"""Strict policies for tests; the examples tolerate more, for busy machines."""


def rig_of(file=ROVER, **parts):
    """An example on a new virtual bus; `policies={"end": "hold"}` changes a part of it."""
    rig = mocked(load_rig(EXAMPLES / file))
    names = {*USUAL, *parts}
    changes = {name: {**USUAL.get(name, {}), **parts.get(name, {})} for name in names}
    return dataclasses.replace(
        rig, **{name: dataclasses.replace(getattr(rig, name), **changes[name]) for name in names}
    )


def divided(rig, buses):
    """A rig whose axes are divided among several buses, in their order."""
    first, size = rig.buses[0], len(rig.axes)
    names = [f"bus{k}" for k in range(buses)]
    made = [dataclasses.replace(first, name=n, channel=f"{first.channel}-{n}") for n in names]
    axes = [
        dataclasses.replace(axis, bus=names[k * buses // size]) for k, axis in enumerate(rig.axes)
    ]
    return dataclasses.replace(rig, buses=tuple(made), axes=tuple(axes))


def ranged(rig, **ends):
    """A rig whose robot has other ranges of joints."""
    found, made = rig.transmission, dataclasses.replace(rig)
    limits = found.limits.copy()
    for name, pair in ends.items():
        limits[found.joints.index(name)] = pair
    vars(made)["transmission"] = dataclasses.replace(found, limits=limits)
    return made


class Law:
    """The compiled law, with something done to its torque in each cycle of the run."""

    def __init__(self, tick):
        self.tick, self.buffers = tick, tick.buffers
        self.change = None

    def run(self):
        status = self.tick.run()
        if self.change is not None:
            self.change(self.buffers.u)
        return status

    def reset(self):
        self.tick.reset()


class Bench:
    """World and controller on one clock.

    Parameters
    ----------
    file : str
        Rig file of the examples.
    mode : Mode
        What the loop may do; in mode DRIVE a heartbeat is sent in every cycle while `beats`.
    duration : float or None
        Length of the task, s; None: all of it.
    clock : SteppedClock, optional
        The clock of both.
    settings, faults
        Of the world.
    rig : Rig, optional
        In place of `file`'s own, see `rig_of`.
    **others
        Arguments of `Controller`.

    Attributes
    ----------
    sent : list of (float, int, bytes)
        Frames that the controller put on the bus: instant, identifier, data.
    loads : list of (float, numpy.ndarray)
        Torques on the robot whenever the clock moved.
    speeds : list of list of float
        True speeds of the axes at the end of each cycle, rad/s.
    places : list of numpy.ndarray
        True configurations then.
    cycle : int
        Cycle that began in RUN, from 0; -1 before. The first row of RUN is that of the cycle
        before: it began in ARMED.
    """

    def __init__(
        self,
        file=ROVER,
        *,
        mode=Mode.MOCK,
        duration=0.4,
        clock=None,
        settings=None,
        faults=(),
        rig=None,
        **others,
    ):
        self.file, self.mode = file, mode
        self.rig = rig or rig_of(file)
        self.servo, tick = law_of(file)
        self.clock = clock or SteppedClock()
        self.plan = plan_of(file, duration)
        self._closing = contextlib.ExitStack()
        own = self._closing.enter_context
        try:
            self._build(own, tick, settings, faults, others)
        except BaseException:
            self._closing.close()
            raise

    def _build(self, own, tick, settings, faults, others):
        mode = self.mode
        self.pose = None
        send_pose = None
        if self.rig.pose is not None:
            base = self.servo.model.robot.base.name
            self.pose = own(PoseReceiver(self.rig.pose, base))
            sender = own(PoseSender(self.rig.pose.kind, "127.0.0.1", self.pose.port))

            def send_pose(sample):
                sender.send_bytes(msgpack.packb(dict(sample)))

        self.world = own(World(self.rig, self.clock, faults, settings, send_pose=send_pose))
        if self.clock.advance == self.world.advance:
            self.clock.advance = self.advance
        self.links = own(open_links(self.rig, self.clock))
        self.bus = self.links[0]
        self.sent, self.loads, self.speeds, self.places = [], [], [], []
        self._watch_bus()
        servo = self.servo
        layout = Layout.of([axis.name for axis in self.rig.axes], servo)
        self.ring = Ring.create(layout, len(self.plan) + 3000)
        self._closing.callback(self._remove_ring)
        self.channel = self.sender = None
        if mode is Mode.DRIVE:
            self.channel = own(OperatorChannel(self.rig.operator, self.clock, self.rig.loop.period))
            self.sender = own(OperatorSender("127.0.0.1", self.channel.port, self.channel.token))
        self.beats = True
        self.law = Law(tick)
        self.controller = Controller(
            self.rig,
            servo,
            self.law,
            self.plan,
            make_drives(self.rig),
            self.links,
            self.ring,
            **({"mode": mode, "operator": self.channel, "pose": self.pose} | others),
        )
        self.limits = Limits.from_rig(self.rig)
        self.slight = np.array([_slight(axis) for axis in self.rig.axes])
        self.cycle = -1
        self.armed = math.inf  # instant at which the tests of the watchdogs are over
        self._acts = {}
        self._watch_cycles()

    def advance(self, instant):
        self.world.advance(instant)
        self.loads.append((instant, self.world.torque.copy()))
        if self.sender is not None and self.beats:
            self.sender.heartbeat()

    def _watch_bus(self):
        take = self.bus.bus.send

        def send(frame, timeout=None):
            take(frame, timeout)
            self.sent.append((self.clock.now(), frame.arbitration_id, bytes(frame.data)))

        self.bus.bus.send = send

    def _watch_cycles(self):
        inner, latch = self.controller._cycle, self.controller.latch
        begin = self.controller._loop

        def loop():
            self.armed = self.clock.now()
            begin()

        self.controller._loop = loop

        def cycle(deadline):
            if self.sender is not None and self.beats:
                self.sender.heartbeat()
            if latch.state is State.RUN:
                self.begin_cycle()
            assert self.ring.written < self.ring.rows - 1, "a run that does not end"
            inner(deadline)
            self.places.append(self.world.q)  # moves the robot to now
            self.speeds.append(self.world.plant.velocities())

        self.controller._cycle = cycle

    def hold(self):
        """Let one heartbeat count from now on: the first asks for a challenge, the next has it."""
        self.sender.heartbeat()
        self.channel.poll(self.clock.now())
        self.sender.heartbeat()

    def begin_cycle(self):
        """Count a cycle of RUN, and perform the actions for its start."""
        self.cycle += 1
        for act in self._acts.pop(self.cycle, ()):
            act()

    def at(self, cycle, act, *arguments):
        """Do something at the start of a cycle that begins in RUN, counted from 0."""
        self._acts.setdefault(cycle, []).append(functools.partial(act, *arguments))
        return self

    def run(self):
        """Run the controller; rows and columns are those of its record."""
        if self.sender is not None and self.beats:
            self.hold()
        try:
            with mock.patch("hil.controller._controller.realtime", _no_realtime):
                return self.controller.run()
        finally:
            self.rows, _, lost = self.ring.take(0)
            self.columns = self.ring.layout.views(self.rows)
            assert not lost

    def wait(self, seconds):
        """Let time pass after the run."""
        self.clock.sleep_until(self.clock.now() + seconds)

    def is_free_until(self, instant=math.inf):
        """Whether there was no torque but that of the tests of the watchdogs, before arming."""
        tests = [axis.test_torque for axis in self.rig.axes] + self.slight
        before = [torque for time, torque in self.loads if time < self.armed]
        after = [torque for time, torque in self.loads if self.armed <= time < instant]
        return bool((np.abs(before) <= 1.02 * tests).all()) and self.is_free(after)

    def is_free(self, torques):
        """Whether all torques are zero, up to the resolution of the drives."""
        return bool((np.abs(torques) <= self.slight).all())

    # -- results -------------------------------------------------------------------------------

    def __getitem__(self, name):
        column = self.columns[name]
        return column[:, 0] if name in SCALARS else column

    def __len__(self):
        return len(self.rows)

    @property
    def names(self):
        return [axis.name for axis in self.rig.axes]

    @property
    def run_rows(self):
        """Which rows are of RUN."""
        return self["state"] == State.RUN

    @property
    def stopped(self):
        """First row of the stop."""
        assert (self["state"] == State.STOP).any()
        return int(np.argmax(self["state"] == State.STOP))

    @property
    def begun(self):
        """First row of RUN."""
        assert self.run_rows.any()
        return int(np.argmax(self.run_rows))

    def row(self, cycle):
        """Row of a cycle of RUN, counted as by `at`."""
        return self.begun + 1 + cycle

    @property
    def phase(self):
        return self.controller.latch.phase

    def torque_since(self, instant):
        """Torques on the robot from an instant on, shape (samples, n)."""
        return np.array([torque for time, torque in self.loads if time > instant])

    def commands(self, index):
        """Commands of the cycles to one axis."""
        (identifier, *_) = self.controller.drives[index].sent_identifiers
        return [entry for entry in self.sent if entry[1] == identifier]

    def true_error(self):
        """Distance of the robot as it is from the reference of the last cycle of RUN."""
        last = self.plan.pose[int(self.run_rows.sum()) - 1]
        return self.error_at(self.world.q, last)

    def error_at(self, q, pose):
        """Errors of each output, shape (size,)."""
        still = np.zeros(self.servo.nw)
        return self.servo.errors(q, still, pose, np.zeros(self.servo.size))[0]

    def check(self):
        """Check the properties of every run, with any fault."""
        torque, state = self["torque"], self["state"]
        limits, period = self.limits, self.rig.loop.period
        assert np.isfinite(torque).all()
        assert (np.abs(torque) <= limits.torque).all()
        run = self.run_rows
        change = np.abs(np.diff(torque, axis=0))[run[1:] & run[:-1]]
        assert (change <= limits.rate * period).all()
        assert not torque[state < State.RUN].any()
        manifest = {"mode": self.controller.mode.name.lower()}
        index = np.arange(len(self.rows))
        record = Record(Path(), self.ring.layout, manifest, self.rows, index, ())
        assert not list(contradictions(record, period))
        if (state == State.STOP).any():  # nothing leaves a stop
            assert (state[self.stopped :] == State.STOP).all()
        assert self.controller.latch.state is State.STOP
        assert self.phase is Phase.OFF
        self.dead()
        return self

    def dead(self, after=0.05, lasting=0.3):
        """No drive has torque soon after the run, nor gets any."""
        self.wait(after)
        since = self.clock.now()
        for _ in range(round(lasting / 0.01)):
            self.wait(0.01)
        assert not self.world.torque.any()
        assert not self.torque_since(since).any()
        assert not any(drive.enabled for drive in self.world.drives)
        return self

    def torque_ended_in_time(self, margin=0.01):
        """Every drive: within its watchdog of its last valid command, or at a command."""
        for axis in self.rig.axes:
            free = self.world.torque_free_after(axis.name)
            assert math.isnan(free) or free <= axis.watchdog + margin, (axis.name, free)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._closing.close()

    def _remove_ring(self):
        self.ring.close()
        self.ring.remove()


def _slight(axis):
    """Torque of a drive at zero command: 12 bits of the MIT protocol have no zero."""
    if not axis.ranges:
        return 0.0
    low, high = axis.ranges["torque"]
    return 0.51 * (high - low) / 4095.0 * axis.gear


def with_policies(rig, **changes):
    """The rig with other policies."""
    return dataclasses.replace(rig, policies=dataclasses.replace(rig.policies, **changes))


class JumpingClock(SteppedClock):
    """A clock that can be put forward and back; the world goes by the time that really passes."""

    offset = 0.0

    def now(self):
        return super().now() + self.offset

    def jump(self, by):
        self.offset += by

    def sleep_until(self, instant):
        super().sleep_until(instant - self.offset)


# -- several loops on one bus ------------------------------------------------------------------


class Turns:
    """Time for several loops in one process: the loop that wakes first runs alone.

    Parameters
    ----------
    advance : callable, optional
        Called with each instant that is reached.
    start : float
        First instant, s.
    """

    def __init__(self, advance=None, start=1000.0):
        self.advance, self.time = advance, start
        self._wakes, self._turn = {}, None
        self._changed = threading.Condition()

    def seat(self):
        """A clock for one more loop."""
        seat = Seat(self)
        self._wakes[seat] = (self.time, len(self._wakes))
        return seat

    def wait(self, seat, instant):
        with self._changed:
            if seat not in self._wakes:  # it has left: time passes for it alone
                self.time = max(self.time, instant)
                self.advance(self.time)
                return
            self._wakes[seat] = (max(instant, self.time), self._wakes[seat][1])
            self._hand_over()
            self._changed.wait_for(lambda: self._turn is seat)

    def begin(self, seat):
        """Wait for the first turn."""
        with self._changed:
            if self._turn is None:
                self._hand_over()
            self._changed.wait_for(lambda: self._turn is seat)

    def leave(self, seat):
        with self._changed:
            del self._wakes[seat]
            self._turn = None
            if self._wakes:
                self._hand_over()

    def _hand_over(self):
        self._turn = min(self._wakes, key=self._wakes.__getitem__)
        self.time = max(self.time, self._wakes[self._turn][0])
        if self.advance is not None:
            self.advance(self.time)
        self._changed.notify_all()


class Seat(SteppedClock):
    """The clock of one of several loops."""

    __slots__ = ("turns",)

    def step(self, size, until):  # the other loops have events too
        self.sleep_until(min(self.now() + size, until))

    def __init__(self, turns):
        super().__init__(None, turns.time)
        self.turns = turns

    def __hash__(self):
        return id(self)

    def now(self):
        return self.turns.time

    def sleep_until(self, instant):
        self.turns.wait(self, instant)


def together(turns, *loops):
    """Run loops, each a (clock, function); return the result of each."""
    results = [None] * len(loops)
    errors = []

    def go(place, seat, function):
        turns.begin(seat)
        try:
            results[place] = function()
        except BaseException as error:
            errors.append(error)
        finally:
            turns.leave(seat)

    threads = [
        threading.Thread(target=go, args=(k, *loop), daemon=True) for k, loop in enumerate(loops)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results


def slow(*values, **others):
    """Values of a test that runs with `-m slow` only."""
    return pytest.param(*values, marks=pytest.mark.slow, **others)
