"""Modes that only listen: nothing is sent, and the same guard judges."""

import dataclasses

import can
import numpy as np
import pytest

import hil._torque
from hil import guard
from hil.controller import Controller, Mode
from hil.controller._controller import PATIENCE
from hil.drives import make_drives
from hil.guard import Flag, Reason, State
from hil.links import open_links
from hil.record.ring import Ring
from tests.hil.bench import (
    ROVER,
    ROVER_MIT,
    Bench,
    Law,
    Turns,
    ranged,
    slow,
    together,
    with_policies,
)

PERIOD = 0.004


# -- modes that only listen --------------------------------------------------------------------


class Listening:
    """A driving controller, and beside it on the same bus one that sends nothing."""

    def __init__(self, mode, file=ROVER, change=lambda rig: rig):
        self.turns = Turns()
        self.bench = Bench(file, clock=self.turns.seat())
        self.turns.advance = self.bench.advance
        self.seat = self.turns.seat()
        bench = self.bench
        self.links = open_links(bench.rig, self.seat)
        self.spy = can.Bus(interface="virtual", channel=bench.rig.buses[0].channel)
        self.said = [0]
        self._count(bench.world.buses[0])
        self.sent = []
        take = self.links[0].bus.send
        self.links[0].bus.send = lambda frame, timeout=None: (self.sent.append(frame), take(frame))
        rig = change(bench.rig)
        self.ring = Ring.create(bench.ring.layout, 3000)
        self.law = Law(bench.servo.compile())
        self.controller = Controller(
            rig,
            bench.servo,
            self.law,
            bench.plan,
            make_drives(rig),
            self.links,
            self.ring,
            mode=mode,
        )

    def _count(self, bus):
        send = bus.send

        def counted(frame, timeout=None):
            self.said[0] += 1
            return send(frame, timeout)

        bus.send = counted

    def run(self):
        bench = self.bench
        driven, heard = together(
            self.turns, (bench.clock, bench.run), (self.seat, self.controller.run)
        )
        rows, _, _ = self.ring.take(0)
        self.columns = self.ring.layout.views(rows)
        return driven, heard

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.spy.shutdown()
        self.links.close()
        self.ring.close()
        self.ring.remove()
        self.bench.__exit__()


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("mode", "file"),
    [
        (Mode.SHADOW, ROVER),
        (Mode.LISTEN, ROVER_MIT),
        slow(Mode.LISTEN, ROVER),
        slow(Mode.SHADOW, ROVER_MIT),
    ],
)
def test_listening_sends_nothing(mode, file):
    with Listening(mode, file) as both:
        driven, heard = both.run()
        assert driven.done
        assert heard.reason is Reason.END
        assert not both.sent
        assert both.controller.links.silent
        # An independent count on the bus: all frames are of the drives, or of the driving loop.
        count = 0
        while both.spy.recv(0) is not None:
            count += 1
        assert count == len(both.bench.sent) + both.said[0] > 1000
        # Its record contains the robot's joints, and its computed torques.
        run = both.columns["state"][:, 0] == State.RUN
        assert run.sum() == len(both.bench.plan) - 1
        assert np.abs(both.columns["torque"][run]).max() > 1.0
        time, moved = both.bench["time"], both.bench["position"]
        at, seen = both.columns["time"][run, 0], both.columns["position"][run]
        speeds = np.abs(both.bench["s"]).max(axis=0)
        for k in (20, 60):
            there = moved[np.argmin(np.abs(time - at[k]))]
            assert (np.abs(seen[k] - there) <= 2.0 * PERIOD * speeds + 0.02).all()
        # The same robot at the same place: nearly the torques that were sent at that time.
        theirs = both.bench.run_rows
        lag = round((at[0] - time[theirs][0]) / PERIOD)
        assert -15 <= lag <= 0  # it begins as soon as it hears of all drives
        sent = both.bench["torque"][theirs][10:80]
        own = both.columns["torque"][run][10 - lag : 80 - lag]
        assert np.abs(own - sent).max() < 0.15 * np.abs(sent).max()


def counted_judge(monkeypatch):
    """Count the calls of the guard, by the loop that asks."""
    calls, judge = [], guard.judge

    def counted(*arguments):
        verdict = judge(*arguments)
        calls.append((arguments[5], verdict))
        return verdict

    assert hil._torque.judge is judge
    monkeypatch.setattr(hil._torque, "judge", counted)
    return calls


def halved(rig):
    axes = tuple(dataclasses.replace(a, torque_limit=0.1 * a.torque_limit) for a in rig.axes)
    return dataclasses.replace(rig, axes=axes)


@pytest.mark.parametrize("mode", [Mode.LISTEN, slow(Mode.SHADOW)])
def test_listening_runs_the_same_guard(mode, monkeypatch):
    """The functions are those of the driving loop, in every cycle, and so are verdicts."""
    calls = counted_judge(monkeypatch)
    with Listening(mode, change=halved) as both:
        driven, heard = both.run()
        for controller, outcome in ((both.bench.controller, driven), (both.controller, heard)):
            mine = [verdict for limits, verdict in calls if limits is controller.limits]
            assert len(mine) == outcome.quality.cycles + 1  # one to warm up
        # The other controller exceeds these limits: flags show it, and the torque is limited.
        run = both.columns["state"][:, 0] == State.RUN
        flags = both.columns["flags"][run, 0].astype(int)
        assert (flags & Flag.CLIPPED_TORQUE != 0).mean() > 0.5
        assert heard.quality.clipped > 50
        limits = both.controller.limits.torque
        assert (np.abs(both.columns["torque"]) <= limits).all()
        assert (np.abs(both.bench["torque"]) > limits).any()
        both.bench.check()


def narrow(rig):
    return ranged(rig, forearm=(-1.65, -1.59))


def strict(rig):
    return with_policies(rig, start_error=0.01)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("change", "reason", "mode"),
    [
        (narrow, Reason.OUT_OF_RANGE, Mode.LISTEN),
        slow(narrow, Reason.OUT_OF_RANGE, Mode.SHADOW),
        (strict, Reason.START_ERROR, Mode.SHADOW),
        slow(strict, Reason.START_ERROR, Mode.LISTEN),
    ],
)
def test_listening_stops_for_the_same_reasons(mode, change, reason):
    with Listening(mode, change=change) as both:
        driven, heard = both.run()
        assert driven.done
        assert heard.reason is reason
        assert not both.sent
        state = both.columns["state"][:, 0]
        assert state[-1] == State.STOP


def test_listening_on_a_silent_bus_ends_after_the_time_of_the_run():
    with Bench(mode=Mode.LISTEN, duration=0.2) as bench:
        before = bench.clock.now()
        outcome = bench.run()
        assert outcome.reason is Reason.LOST
        assert not bench.sent
        # Others may take some time to arm, however short the run.
        assert 0.0 <= bench.clock.now() - before - PATIENCE < 0.2
