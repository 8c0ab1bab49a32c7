"""Reports that come late by whole cycles are noticed: before arming, and in the loop."""

import numpy as np
import pytest

from hil.controller._punctuality import CONFIRMED, SEQUENCE, Punctuality
from hil.drives import Finding
from hil.emulator import Fault
from hil.errors import ArmError
from hil.guard import Reason, State
from tests.hil.bench import ROVER, ROVER_MIT, Bench, rig_of

PATIENCE = 5
AT = 30


class Line:
    """One axis whose reports take some cycles, or are lost."""

    def __init__(self, patience=PATIENCE):
        self.watch = Punctuality(1, patience)
        self.flying, self.cycle = [], 0

    def run(self, cycles, delay=0, lost=False):
        """Cycles until one is over, or the watch is sure."""
        pauses = 0
        for _ in range(cycles):
            pausing = self.watch.pauses
            pauses += pausing
            if not pausing:
                self.watch.ask(0)
                if not lost:
                    self.flying.append(self.cycle + delay)
            due = [instant for instant in self.flying if instant <= self.cycle]
            self.flying = [instant for instant in self.flying if instant > self.cycle]
            for _ in due:
                self.watch.come(0)
            self.watch.end([bool(due)], pausing)
            self.cycle += 1
            if self.watch.delayed:
                break
        return pauses


@pytest.mark.parametrize("delay", [1, 2, 3, 5, 10])
def test_late_by_whole_cycles(delay):
    line = Line()
    assert line.run(50) == 0
    assert not line.watch.delayed
    pauses = line.run(delay + PATIENCE + 2 + sum(SEQUENCE), delay)
    assert CONFIRMED <= pauses <= 1 + len(SEQUENCE)
    assert line.watch.delayed


def test_lost_reports_cost_one_pause_and_are_forgotten():
    line = Line()
    line.run(20)
    line.run(3, lost=True)
    assert line.run(PATIENCE) == 0  # not yet
    assert line.run(100) == 1
    assert not line.watch.delayed


def test_reports_that_were_held_up_for_a_while_catch_up():
    """A drive that slept answers all that it was asked: nothing is owed any more."""
    line = Line()
    for delay in (3, 2, 1, 0):
        line.run(1, delay)
    assert line.run(50) == 0
    assert not line.watch.delayed


def test_one_that_is_late_by_chance_in_a_pause_is_not_enough():
    line = Line()
    line.run(1, lost=True)
    while not line.watch.pauses:
        line.run(1)
    line.flying.append(line.cycle)  # a report that comes although none is asked for
    line.run(1)
    assert line.run(sum(SEQUENCE) + 1) == len(SEQUENCE)
    assert line.run(50) == 0
    assert not line.watch.delayed


@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
def test_the_round_trip_is_measured_before_arming(file):
    with Bench(file, duration=0.1) as bench:
        outcome = bench.run()
    found = [check for check in outcome.checks if check.what.startswith("round trip")]
    assert [check.axis for check in found] == bench.names
    assert all(check.finding is Finding.FOUND for check in found)
    latency = bench.rig.emulator.latency
    assert all(float(check.came) == pytest.approx(2e3 * latency, abs=0.2) for check in found)


@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
@pytest.mark.parametrize("delay", [30e-3, 60e-3])
def test_reports_that_are_late_from_the_first_on_are_refused(file, delay):
    faults = [Fault("delay", "turret", value=delay, way="to_host")]
    with (
        Bench(file, faults=faults, duration=0.2) as bench,
        pytest.raises(ArmError, match=r"turret`, round trip.*got (32|62)\.?\d* ms"),
    ):
        bench.run()
    assert not bench.world.torque.any()


@pytest.mark.parametrize("beyond", [-0.3e-3, 0.3e-3])
def test_the_window_is_the_limit(beyond):
    rig = rig_of(ROVER)
    delay = rig.loop.receive_window - 2.0 * rig.emulator.latency + beyond
    faults = [Fault("delay", "forearm", value=delay, way="to_host")]
    with Bench(rig=rig, faults=faults, duration=0.1) as bench:
        if beyond > 0.0:
            with pytest.raises(ArmError, match="the receive window"):
                bench.run()
        else:
            assert bench.run().done


@pytest.mark.parametrize(("file", "delay"), [(ROVER, 12e-3), (ROVER_MIT, 12e-3)])
def test_reports_that_become_late_stop_the_run(file, delay):
    """Within the policies' patience nothing is lost: afterwards each cycle has a report again."""
    with Bench(file, duration=0.6) as bench:
        fault = Fault("delay", "left_wheel", value=delay, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
    assert outcome.reason is Reason.STALE
    patience = bench.rig.policies.max_consecutive_faults
    stopped = bench.stopped - bench.row(AT)
    assert 3 < stopped < 2 * patience + sum(SEQUENCE) + 8
    assert (bench["state"][bench.stopped :] == State.STOP).all()


def test_lost_frames_do_not_count_as_late():
    with Bench(duration=1.2) as bench:
        fault = Fault("drop", "*", probability=0.05, way="to_host")
        bench.at(AT, bench.world.fault, fault)
        outcome = bench.run()
    assert outcome.done, outcome.reason.name
    assert outcome.quality.lost > 5
    assert np.abs(outcome.error).max() < 0.2
