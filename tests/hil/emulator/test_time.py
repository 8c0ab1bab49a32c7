"""Time of an emulated rig: it stops when one of its two sides does not run."""

from unittest import mock

import pytest

from hil.emulator._time import (
    LEASE,
    LONGEST_STALL,
    NOTABLE,
    SLACK,
    EmulationClock,
    SharedTime,
    Timekeeper,
)

STEP = 0.5e-3


class Machine:
    """Real time, and the two sides of an emulation, which the tests step."""

    def __init__(self):
        self.real = 100.0
        patch = mock.patch("hil.emulator._time.time.monotonic", side_effect=lambda: self.real)
        patch.start()
        self.stop = patch.stop
        self.shared = SharedTime()
        self.keeper, self.clock = Timekeeper(self.shared), EmulationClock(self.shared)
        self.keeper.tick()

    def run(self, seconds, rig=True, controller=True):
        for _ in range(round(seconds / STEP)):
            self.real += STEP
            if rig:
                self.keeper.tick()
            if controller:
                self.clock.now()


@pytest.fixture
def machine():
    made = Machine()
    yield made
    made.stop()


def test_time_passes_as_on_the_machine_while_both_run(machine):
    machine.clock.join()
    before = machine.clock.now()
    machine.run(1.0)
    assert machine.clock.now() - before == pytest.approx(1.0, abs=1e-9)
    assert machine.clock.stalls.count == 0


@pytest.mark.parametrize("stall", [0.05, 0.9])
@pytest.mark.parametrize(("rig", "bound"), [(False, LEASE), (True, SLACK + LEASE)])
def test_a_side_that_sleeps_stops_the_time_of_both(machine, rig, bound, stall):
    machine.clock.join()
    machine.run(0.01)
    before = machine.clock.now()
    machine.run(stall, rig=rig, controller=not rig)
    passed = machine.clock.now() - before
    assert 0.0 <= passed <= bound + 1e-9
    machine.run(0.1)
    assert machine.clock.now() - before == pytest.approx(passed + 0.1, abs=2.0 * STEP)
    stalls = machine.clock.stalls
    assert stalls.count == 1
    assert stalls.longest == pytest.approx(stall - passed, abs=2.0 * STEP)
    assert stalls.total == pytest.approx(stalls.longest, abs=2.0 * STEP)


@pytest.mark.parametrize("rig", [False, True])
def test_a_side_that_is_dead_is_not_waited_for(machine, rig):
    machine.clock.join()
    machine.run(0.01)
    before = machine.clock.now()
    machine.run(LONGEST_STALL + 0.5, rig=rig, controller=not rig)
    assert machine.shared.at(machine.real) - before == pytest.approx(0.5, abs=0.01)


def test_a_controller_that_waits_is_not_one_that_sleeps(machine):
    machine.clock.join()
    before = machine.clock.now()
    machine.clock.expect(before + 0.3)
    machine.run(0.3, controller=False)
    assert machine.clock.now() - before == pytest.approx(0.3, abs=1e-9)


def test_a_controller_that_left_is_not_waited_for(machine):
    machine.clock.join()
    machine.run(0.01)
    machine.clock.leave()
    before = machine.keeper.now()
    machine.run(0.5, controller=False)
    assert machine.keeper.now() - before == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("lost", [0.8 * NOTABLE, 1.2 * NOTABLE])
def test_short_standstills_are_no_stalls(machine, lost):
    machine.clock.join()
    machine.run(0.01)
    machine.clock.expect(machine.clock.now() + 1.0)
    machine.keeper.tick()
    machine.real += LEASE + lost
    machine.keeper.tick()
    assert machine.clock.stalls.count == (lost > NOTABLE)


def test_time_never_goes_back(machine):
    machine.clock.join()
    last = machine.clock.now()
    for k in range(2000):
        machine.real += (k * 7 % 13) * 3e-4
        if k % 3:
            machine.keeper.tick()
        now = machine.clock.now()
        assert now >= last
        last = now


def test_samples_have_the_time_of_those_who_take_them(machine):
    sent = []
    send = machine.keeper.stamped(sent.append)
    machine.run(0.01)
    machine.run(0.5, rig=False)
    machine.keeper.tick()
    behind = machine.real - machine.keeper.now()
    assert behind > 0.4
    send({"time": machine.keeper.now()})
    machine.clock.join()
    send({"time": machine.keeper.now()})
    assert sent[0]["time"] == pytest.approx(machine.real)
    assert sent[1]["time"] == pytest.approx(machine.keeper.now())
