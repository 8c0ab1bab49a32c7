"""Runs on drives that were written from the standards alone, and a maker's tool beside them.

The robot is the emulator's; of its drives nothing is used.
"""

from __future__ import annotations

import contextlib
import math
import struct
from typing import ClassVar

import numpy as np
import pytest

import hil.emulator._world
from hil.drives import FaultCode
from hil.emulator._drive import EmulatedDrive
from hil.errors import ArmError
from hil.guard import Reason
from tests.hil.bench import Bench
from tests.hil.standards_drive import MakersTool, StandardsDrive

PERIOD = 0.004


class Plugged(EmulatedDrive):
    """A drive by the standards on the emulator's robot."""

    quirks: ClassVar[dict] = {}  # by name of the axis

    def __init__(self, axis, settings=None):
        super().__init__(axis, settings)
        values = {
            (0x6076, 0): round(1e3 * axis.rated_torque),
            (0x608F, 1): axis.counts,
        }
        self.drive = StandardsDrive(axis.node, values=values, **self.quirks.get(axis.name, {}))
        node = axis.node
        self._heard = frozenset({0, 0x80, 0x200 + node, 0x600 + node, 0x700 + node, 0x77F})

    @property
    def heard(self):
        return self._heard

    @property
    def enabled(self):
        return self.drive.acting() != 0

    @property
    def torque_until(self):
        return math.inf

    @property
    def next_event(self):
        later = self.drive.later if self.drive.torque() else 0.0
        dues = [due + later for due in self.drive._due.values() if due is not None]
        return min(dues, default=math.inf) if self.drive._booted else -math.inf

    def receive(self, frame, now):
        self.drive.counts = round(self._motor_angle() / math.tau * self.axis.counts)
        return [(now, answer) for answer in self.drive.receive(frame, now)]

    def poll(self, now):
        return [(now, answer) for answer in self.drive.poll(now)]

    def torque(self, now):
        return self._at_joint(self.drive.acting() * 1e-3 * self.axis.rated_torque)

    def power_cycle(self, now):
        raise NotImplementedError

    def fail(self, now, code=0):
        raise NotImplementedError


@pytest.fixture
def plugged(monkeypatch):
    """Rigs with these drives; some have special properties."""
    monkeypatch.setitem(hil.emulator._world.KINDS, "cia402", Plugged)
    quirks = {}
    monkeypatch.setattr(Plugged, "quirks", quirks)
    return quirks


def test_torque_ends_within_the_watchdog_when_the_controller_is_killed(plugged):
    with Bench() as bench:

        def kill():
            raise SystemExit

        bench.controller._leave = lambda: None
        bench.at(50, kill)
        with pytest.raises(SystemExit):
            bench.run()
        killed = bench.clock.now()
        assert bench.world.torque.any()
        bench.wait(max(axis.watchdog for axis in bench.rig.axes) + PERIOD)
        assert not bench.world.torque.any()
        assert not bench.torque_since(killed + 0.11).any()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("axis", [0, 4])
def test_a_drive_that_pushes_without_a_command_stops_the_rig_before_it_is_fast(plugged, axis):
    with Bench() as bench:
        settings = bench.rig.axes[axis]
        whole = settings.torque_limit / settings.gear / settings.rated_torque * 1e3
        drive = bench.world.drives[axis].drive
        bench.at(40, setattr, drive, "pushes", round(0.5 * whole))
        outcome = bench.run()
        assert outcome.reason is Reason.DRIVE_FAULT
        assert bench["fault"][bench.stopped][axis] == FaultCode.OTHER_TORQUE
        assert (bench.stopped - bench.row(40)) * PERIOD <= 0.03
        assert drive.torque() == 0


@pytest.mark.parametrize(
    "act",
    [
        lambda tool, node: tool.write(node, 0x6060, "b", 9),
        lambda tool, node: tool.command(node, 0x0F, 16),
    ],
    ids=["mode", "command"],
)
def test_a_makers_tool_is_foreign_at_its_first_frame(plugged, act):
    with Bench() as bench:
        tool = MakersTool(bench.rig.buses[0].channel)
        bench.at(40, act, tool, bench.rig.axes[1].node)
        outcome = bench.run()
        tool.close()
        assert outcome.reason is Reason.FOREIGN
        assert bench.stopped - bench.row(40) <= 1
        # power is removed at once: no braking with drives that another host commands
        assert not bench["torque"][bench.stopped :].any()


@pytest.mark.by_default(3)
@pytest.mark.parametrize(
    ("act", "foreign", "meets", "before"),
    [
        (lambda tool, node: tool.write(node, 0x6060, "b", 9), True, 0, False),
        (lambda tool, node: tool.write(node, 0x6072, "H", 3000), True, 4, True),
        (lambda tool, node: tool.manage(2, node), True, 0, True),
        (lambda tool, node: tool.sync(), True, 0, False),
        (lambda tool, node: tool.read(node, 0x6061), False, 0, False),
        (lambda tool, node: tool.write(99, 0x6060, "b", 9), False, 0, True),
    ],
    ids=["mode", "limit", "stop", "sync", "read", "another"],
)
def test_a_makers_tool_is_noticed_while_drives_are_prepared(plugged, act, foreign, meets, before):
    """It meets one axis before or after the second one is prepared."""
    with Bench(duration=0.1) as bench:
        tool = MakersTool(bench.rig.buses[0].channel)
        drive, node = bench.controller.drives[1], bench.rig.axes[meets].node
        inner = drive.prepare

        def prepare(bus):
            checks = [] if before else inner(bus)
            act(tool, node)
            return checks or inner(bus)

        drive.prepare = prepare
        with contextlib.ExitStack() as stack:
            stack.callback(tool.close)
            if foreign:
                stack.enter_context(pytest.raises(ArmError, match="no frame of another controller"))
            assert bench.run().reason is Reason.END
        assert foreign == (len(bench) == 0)


def test_what_a_makers_tool_wrote_before_is_of_no_matter(plugged):
    with Bench(duration=0.1) as bench:
        tool = MakersTool(bench.rig.buses[0].channel)
        tool.write(bench.rig.axes[1].node, 0x6060, "b", 9)
        assert bench.run().reason is Reason.END
        tool.close()


def test_questions_of_a_makers_tool_do_not_stop_the_rig(plugged):
    with Bench() as bench:
        tool = MakersTool(bench.rig.buses[0].channel)
        for cycle in range(20, 60):
            bench.at(cycle, tool.read, bench.rig.axes[1].node, 0x6064)
        assert bench.run().reason is Reason.END
        tool.close()


def test_the_task_is_done_on_them_after_a_trial_with_its_torque(plugged):
    with Bench() as bench:
        start, poses = bench.world.q, []
        inner = bench.controller._loop

        def loop():
            poses.append(bench.world.q)
            inner()

        bench.controller._loop = loop
        outcome = bench.run()
        assert outcome.reason is Reason.END
        assert np.abs(bench["torque"]).max() > 1.0
        bench.check()
        assert np.array_equal(poses[0], start)  # the emulated stand holds the robot in the trial
        begun = bench["time"][0]
        assert not bench.world.plant.held
        for axis in bench.rig.axes:
            targets = [
                struct.unpack("<Hh", data)[1]
                for time, identifier, data in bench.sent
                if time < begun and identifier == 0x200 + axis.node
            ]
            size = round(1e3 * 0.05 * axis.torque_limit / axis.gear / axis.rated_torque)
            assert set(targets) == {0, size, -size}
        trials = [check for check in outcome.checks if "watchdog test" in check.what]
        assert [check.axis for check in trials] == bench.names


@pytest.mark.parametrize(
    "quirks",
    [{"ignores_watchdog": True}, {"works": 1}, {"keeps": 1.0}],
    ids=["never", "once", "keeps"],
)
def test_a_rig_with_a_drive_that_keeps_its_torque_is_not_armed(plugged, quirks):
    plugged["forearm"] = quirks
    with Bench() as bench:
        with pytest.raises(ArmError, match="forearm") as caught:
            bench.run()
        assert caught.value.axis == "forearm"
        assert len(bench) == 0
        loads = np.array([axis.test_torque for axis in bench.rig.axes])
        assert (np.abs(bench.torque_since(0.0)) <= 1.01 * loads).all()
        bench.dead()
