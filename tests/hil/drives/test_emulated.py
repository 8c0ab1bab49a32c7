"""Host classes and emulated drives, written apart, on one bus in stepped time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil.bus import open_bus
from hil.clock import SteppedClock
from hil.drives import FaultCode, Finding, Wanted, make_drives
from hil.drives.feedback import Feedback
from hil.emulator import DriveSettings, Fault, FaultKind, World
from hil.errors import ArmError, DriveError, UnitError
from hil.rig import load_rig

FOLDER = Path(__file__).parents[3] / "examples" / "rover_rig"
FILES = ("rig.toml", "rig_mit.toml")


class Bench:
    """A controller without law and guard."""

    def __init__(self, file, loss=0.0, **options):
        rig = load_rig(FOLDER / file)
        self.rig = replace(
            rig,
            bus=replace(rig.bus, interface="virtual", channel=f"bench {id(self)}", options={}),
            emulator=replace(rig.emulator, loss=loss),
        )
        self.clock = SteppedClock()
        self.bus = open_bus(self.rig.bus, self.clock)
        self.world = World(self.rig, self.clock, **options)
        self.drives = make_drives(self.rig)
        self.feedback = Feedback(len(self.drives))
        kinds = {type(drive) for drive in self.drives}
        self.opening = [frame for kind in kinds for frame in kind.opening_frames(self.rig)]
        self.clock.sleep_until(self.clock.now() + 0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bus.close()
        self.world.close()

    def prepare(self):
        checks = [check for drive in self.drives for check in drive.prepare(self.bus)]
        kind = type(self.drives[0])
        return checks + kind.prove(self.drives, self.bus)

    def cycle(self, wanted, torque=0.0, times=1):
        for _ in range(times):
            start = self.clock.now() + self.rig.loop.period
            self.clock.sleep_until(start)
            for frame in self.opening:
                self.bus.send(frame)
            while (frame := self.bus.receive(start + 3e-3)) is not None:
                for drive in self.drives:
                    if frame.arbitration_id in drive.identifiers:
                        drive.receive(frame, self.clock.now(), self.feedback)
            for drive in self.drives:
                self.bus.send(drive.command(wanted, torque))


@pytest.mark.parametrize("file", FILES)
def test_torque_arrives_and_ends(file):
    with Bench(file) as bench:
        checks = bench.prepare()
        assert not {c.finding for c in checks} & {Finding.WRONG, Finding.MISSING}
        assert not any(drive.enabled for drive in bench.world.drives)
        bench.cycle(Wanted.READY, times=20)
        assert bench.feedback.enabled.all()
        assert not bench.feedback.fault.any()
        bench.cycle(Wanted.TORQUE, 0.2, times=2)
        bench.cycle(Wanted.TORQUE, -0.2, times=3)
        np.testing.assert_allclose(bench.world.torque, -0.2, atol=6e-3)
        np.testing.assert_allclose(bench.feedback.torque, bench.world.torque, atol=6e-3)
        bench.cycle(Wanted.OFF, times=4)
        assert not any(drive.enabled for drive in bench.world.drives)
        assert not bench.world.torque.any()
        assert bench.feedback.invalid.sum() == 0


@pytest.mark.parametrize("file", FILES)
def test_arming_again_after_release(file):
    with Bench(file) as bench:
        for _ in range(2):
            bench.prepare()
            bench.cycle(Wanted.READY, times=20)
            assert bench.feedback.enabled.all()
            for drive in bench.drives:  # without any frame that switches off before
                drive.release(bench.bus)
            bench.clock.sleep_until(bench.clock.now() + 0.05)
            assert not any(drive.enabled for drive in bench.world.drives)
            assert not bench.feedback.fault.any()


@pytest.mark.parametrize("file", FILES)
def test_positions_and_velocities_are_those_of_the_joints(file):
    with Bench(file) as bench:
        bench.prepare()
        bench.cycle(Wanted.READY, times=20)
        bench.cycle(Wanted.TORQUE, 0.5, times=5)
        bench.cycle(Wanted.TORQUE, 0.0, times=2)
        truth = bench.world.plant.positions(), bench.world.plant.velocities()
        assert np.abs(truth[1]).max() > 0.01
        np.testing.assert_allclose(bench.feedback.position, truth[0], atol=0.02)
        if file == "rig_mit.toml":
            np.testing.assert_allclose(bench.feedback.velocity, truth[1], atol=0.15)


@pytest.mark.parametrize("file", FILES)
def test_set_up_survives_lost_frames(file):
    with Bench(file, loss=0.03) as bench:
        bench.prepare()
        bench.cycle(Wanted.READY, times=30)
        bench.cycle(Wanted.READY, times=2)
        assert bench.feedback.enabled.all()


@pytest.mark.parametrize(
    ("file", "settings", "kind"),
    [
        ("rig.toml", {"rated_torque": 5.0}, UnitError),
        ("rig.toml", {"counts": 8192}, UnitError),
        ("rig.toml", {"limit": "ignored"}, ArmError),
        ("rig.toml", {"watchdog": False}, ArmError),
        ("rig_mit.toml", {"watchdog": False}, ArmError),
        ("rig_mit.toml", {"timeout": 1.0}, ArmError),
        ("rig_mit.toml", {"report_length": 6}, ArmError),
    ],
)
def test_drives_unlike_the_rig_file_are_refused_without_torque(file, settings, kind):
    with Bench(file, settings={"turret": DriveSettings(**settings)}) as bench:
        with pytest.raises(kind, match="axis `turret`"):
            bench.prepare()
        assert not bench.world.torque.any()
        assert not any(drive.enabled for drive in bench.world.drives)


@pytest.mark.parametrize("file", FILES)
def test_silence_ends_the_torque_within_the_watchdog(file):
    with Bench(file) as bench:
        bench.prepare()
        bench.cycle(Wanted.READY, times=20)
        bench.cycle(Wanted.TORQUE, 0.3, times=3)
        assert bench.world.torque.all()
        bench.clock.sleep_until(bench.clock.now() + 0.2)
        assert not bench.world.torque.any()
        for axis in bench.rig.axes:
            assert bench.world.torque_free_after(axis.name) <= axis.watchdog + 1e-3
        # the host is back: nothing resumes
        bench.cycle(Wanted.TORQUE, 0.3, times=10)
        assert not bench.world.torque.any()
        assert bench.feedback.fault.all()


@pytest.mark.parametrize("file", FILES)
def test_accident_10_power_cycled_drives_stay_off(file):
    with Bench(file) as bench:
        bench.prepare()
        bench.cycle(Wanted.READY, times=20)
        bench.cycle(Wanted.TORQUE, 2.5, times=3)
        bench.world.fault(Fault(FaultKind.POWER_CYCLE, "turret"))
        bench.cycle(Wanted.TORQUE, 2.5, times=60)
        turret = bench.world.drive("turret")
        assert not turret.enabled
        assert bench.feedback.fault[2] in (FaultCode.RESTARTED, FaultCode.FELL)
        assert not bench.feedback.enabled[2]
        bench.cycle(Wanted.READY, times=20)
        assert not turret.enabled


def test_a_drive_that_died_is_missing():
    with Bench("rig.toml") as bench:
        bench.world.fault(Fault(FaultKind.DROP, "turret"))
        with pytest.raises(DriveError, match="axis `turret`"):
            bench.prepare()
