"""CiA 402 drives over EtherCAT: the real master, pysoem, on a line of drives written in Python.

The line is a process at the other end of a pair of virtual network adapters, which needs root.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from hil._ethercat_bus import open_ethercat
from hil.clock import MonotonicClock
from hil.drives import Cia402Drive, FaultCode, Finding, Wanted
from hil.drives.feedback import Feedback
from hil.errors import ArmError, BusError, DriveError, RigError
from hil.rig import BusSettings
from tests.hil.drives._stations import make_axis, make_rig

REASON = ""
if os.name != "posix" or os.geteuid() != 0:
    REASON = "virtual network adapters need root"
elif shutil.which("ip") is None:
    REASON = "the program `ip` makes virtual network adapters"
elif importlib.util.find_spec("pysoem") is None:
    REASON = "the extra `ethercat` is not installed"
elif subprocess.run(
    ["ip", "link", "add", "ecProbe", "type", "veth", "peer", "name", "ecProbe2"],
    capture_output=True,
    check=False,
).returncode:
    REASON = "this kernel makes no virtual network adapters"
else:
    subprocess.run(["ip", "link", "del", "ecProbe"], check=True)
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

PERIOD = 0.004
SAFEOP_ERROR, WATCHDOG = 0x14, 0x1B
_names = itertools.count()


class Line:
    """The line of drives, in its process."""

    def __init__(self, count, **quirks):
        self.near, far = (f"ec{end}{os.getpid() % 100000}{next(_names) % 10}" for end in "ab")
        for words in (
            ["add", self.near, "type", "veth", "peer", "name", far],
            ["set", self.near, "up"],
            ["set", far, "up"],
        ):
            subprocess.run(["ip", "link", *words], check=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hil._ethercat_line", far, str(count), json.dumps(quirks)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def order(self, *words):
        """Change a drive; see `_ethercat_line`."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def drive(self, position):
        """Torque that acts (per mille), state and code of the controller, state of the drive."""
        self.order("?", position)
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait(5.0)
        self._process.stdout.close()
        subprocess.run(["ip", "link", "del", self.near], check=False, capture_output=True)


@contextlib.contextmanager
def lined(count=1, quirks=None, **changes):
    """Line, bus and drivers of some axes."""
    line = Line(count, **{str(k): value for k, value in (quirks or {}).items()})
    try:
        axes = [make_axis(name=f"axis {k}", node=k, **changes) for k in range(1, count + 1)]
        rig = make_rig(*axes)
        settings = BusSettings("ethercat", line.near)
        with open_ethercat(settings, MonotonicClock(0.0)) as bus:
            yield line, bus, [Cia402Drive(axis, k, rig) for k, axis in enumerate(axes)]
    finally:
        line.close()


def armed(bus, drives):
    """Prepare drives and prove their watchdogs."""
    checks = [check for drive in drives for check in drive.prepare(bus)]
    return checks + Cia402Drive.prove(drives, bus)


class Loop:
    """Cycles of a host."""

    def __init__(self, bus, drives):
        self.bus, self.drives, self.number = bus, drives, 0
        self.feedback = Feedback(len(drives))
        self.missing = 0

    def cycle(self, wanted, torque=0.0, times=1, sends=True):
        bus, drives = self.bus, self.drives
        for _ in range(times):
            self.number += 1
            deadline = bus.clock.now() + PERIOD
            before = self.feedback.count.copy()
            for frame in Cia402Drive.opening_frames(drives[0].rig):
                bus.send(frame)
            while (frame := bus.receive()) is not None:
                for drive in drives:
                    if frame.arbitration_id in drive.identifiers:
                        drive.receive(frame, bus.clock.now(), self.feedback)
            self.missing += int((self.feedback.count == before).sum())
            for drive in drives if sends else ():
                bus.send(drive.command(wanted, torque))
                for frame in drive.asides(self.number):
                    bus.send(frame)
            bus.clock.sleep_until(deadline)
        return self

    @property
    def enabled(self):
        return bool(self.feedback.enabled.all())


def test_twelve_drives_are_prepared_proved_and_driven():
    with lined(12) as (line, bus, drives):
        checks = armed(bus, drives)
        proofs = [check for check in checks if check.what.startswith("watchdog test")]
        assert len(proofs) == 12
        assert {check.finding for check in proofs} == {Finding.FOUND}
        assert all("2 times" in check.came for check in proofs)
        identities = {check.came for check in checks if check.what.startswith("identity")}
        assert {f"serial number {7000 + k}" for k in range(12)} == {
            text.partition(", ")[2].partition(", ")[2] for text in identities
        }
        loop = Loop(bus, drives).cycle(Wanted.READY, times=20)
        assert loop.enabled
        loop.missing = 0
        loop.cycle(Wanted.TORQUE, 2.0, times=100)
        assert loop.missing == 0
        assert loop.enabled
        assert not loop.feedback.fault.any()
        # 2 N m at the joint, gear 10, reversed, 2 N m rated: a tenth of the rated torque.
        assert loop.feedback.torque == pytest.approx(2.0)
        assert line.drive(7)[0] == -100
        loop.cycle(Wanted.OFF, times=5)
        for drive in drives:
            drive.release(bus)
        assert line.drive(12)[0] == 0


REFUSED = {
    "never": ({"ignores_watchdog": True}, 1),
    "works once": ({"works": 1}, 2),
    "at zero torque only": ({"later": 1e9}, 1),
    "1.5 s late under load": ({"later": 1.5}, 1),
    "late": ({"late": 2.0}, 1),
    "late the second time": ({"late_again": 2.0}, 2),
    "off, it says, with its torque": ({"keeps": 1.0}, 1),
}


@pytest.mark.by_default(3)
@pytest.mark.parametrize(("quirks", "number"), REFUSED.values(), ids=REFUSED)
def test_a_watchdog_that_does_not_hold_is_refused_and_the_drive_is_free(quirks, number):
    with lined(2, {2: quirks}) as (line, bus, drives):
        with pytest.raises(ArmError, match="axis `axis 2`") as caught:
            armed(bus, drives)
        assert f"test {number} of 2" in caught.value.where
        Loop(bus, drives).cycle(Wanted.READY, times=15)
        assert line.drive(2)[0] == 0
        assert line.drive(2)[3] != 0x27


def test_a_sync_manager_that_does_not_trigger_its_watchdog_is_refused():
    with lined(1, {1: {"without_watchdog_bit": True}}) as (line, bus, drives):
        with pytest.raises(ArmError, match="watchdog") as caught:
            armed(bus, drives)
        assert "test 1 of 2" in caught.value.where
        assert line.drive(1)[0] == 0


def test_a_fixed_mapping_with_all_objects_is_taken_as_it_is():
    """In another order, and with an object in front that the loop does not set."""
    with lined(2, {1: {"fixed_map": True}}) as (line, bus, drives):
        armed(bus, drives)
        loop = Loop(bus, drives).cycle(Wanted.READY, times=20).cycle(Wanted.TORQUE, 2.0, times=20)
        assert loop.enabled
        assert loop.feedback.torque == pytest.approx(2.0)
        assert line.drive(1)[0] == line.drive(2)[0] == -100


def test_a_mapping_without_the_objects_is_refused():
    with (
        lined(1, {1: {"fixed_map": True, "without": [0x6077]}}) as (_, bus, drives),
        pytest.raises(DriveError, match="mapped to the PDO"),
    ):
        armed(bus, drives)


def running(line, bus, drives):
    armed(bus, drives)
    loop = Loop(bus, drives).cycle(Wanted.READY, times=20).cycle(Wanted.TORQUE, 2.0, times=20)
    assert loop.enabled
    assert not loop.feedback.fault.any()
    return loop


IN_RUN = {
    "fault": (("fault", 2), {FaultCode.UNNAMED}),
    "other mode": (("object", 2, 0x6060, 8), {FaultCode.OTHER_MODE}),
    "more torque": (("pushes", 2, 400), {FaultCode.OTHER_TORQUE}),
    "does not follow": (("follows", 2, "false"), {FaultCode.NOT_FOLLOWING}),
    "leaves OP": (("state", 2, 4), {FaultCode.NOT_OPERATIONAL}),
}


@pytest.mark.parametrize(("order", "codes"), IN_RUN.values(), ids=IN_RUN)
def test_a_drive_that_leaves_its_mode_is_named(order, codes):
    with lined(2) as (line, bus, drives):
        loop = running(line, bus, drives)
        line.order(*order)
        loop.cycle(Wanted.TORQUE, 2.0, times=25)
        assert int(loop.feedback.fault[1]) in codes, hex(int(loop.feedback.fault[1]))
        assert not loop.feedback.enabled[1]
        assert loop.feedback.fault[0] == 0


def test_a_cut_cable_makes_no_reports_and_ends_the_torques():
    with lined(3) as (line, bus, drives):
        loop = running(line, bus, drives)
        for position in (2, 3):  # behind the cut
            line.order("link", position, "off")
        count = loop.feedback.count.copy()
        loop.cycle(Wanted.TORQUE, 2.0, times=25)
        assert loop.feedback.count[1] <= count[1] + 1
        assert loop.feedback.count[2] <= count[2] + 1
        assert [line.drive(position)[0] for position in (2, 3)] == [0, 0]
        assert line.drive(3)[1:3] == [SAFEOP_ERROR, WATCHDOG]


def test_a_host_that_falls_silent_or_dies_leaves_no_torque():
    with lined(2) as (line, bus, drives):
        loop = running(line, bus, drives)
        assert line.drive(1)[0] == -100
        bus.clock.sleep_until(bus.clock.now() + 0.06)  # the watchdog has 50 ms
        assert [line.drive(k)[:3] for k in (1, 2)] == [[0, SAFEOP_ERROR, WATCHDOG]] * 2
        loop.cycle(Wanted.TORQUE, 2.0, times=10)  # and the next torques revive nothing
        assert [line.drive(k)[0] for k in (1, 2)] == [0, 0]
        assert loop.feedback.fault.all()


KILLED = """
import sys, time
from tests.hil import test_ethercat as t
axes = [t.make_axis(name=f"axis {k}", node=k) for k in (1, 2)]
rig = t.make_rig(*axes)
with t.open_ethercat(t.BusSettings("ethercat", sys.argv[1]), t.MonotonicClock(0.0)) as bus:
    drives = [t.Cia402Drive(axis, k, rig) for k, axis in enumerate(axes)]
    t.armed(bus, drives)
    loop = t.Loop(bus, drives).cycle(t.Wanted.READY, times=20).cycle(t.Wanted.TORQUE, 2.0, times=5)
    print("runs", flush=True)
    loop.cycle(t.Wanted.TORQUE, 2.0, times=10_000)
"""


def test_a_host_that_is_killed_leaves_no_torque():
    line = Line(2)
    host = subprocess.Popen(
        [sys.executable, "-c", KILLED, line.near], stdout=subprocess.PIPE, text=True
    )
    try:
        assert host.stdout.readline() == "runs\n"
        assert line.drive(1)[0] == -100
        host.kill()
        host.wait()
        time.sleep(0.07)
        assert [line.drive(k)[0] for k in (1, 2)] == [0, 0]
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
        line.close()


def test_adapters_without_drives_and_without_the_package_are_named(monkeypatch):
    with pytest.raises(BusError) as caught:
        open_ethercat(BusSettings("ethercat", "no such adapter"))
    assert "raw frames" in caught.value.came
    line = Line(0)
    try:
        with pytest.raises(BusError) as caught:
            open_ethercat(BusSettings("ethercat", line.near))
        assert "no EtherCAT drive answers" in caught.value.came
    finally:
        line.close()
    monkeypatch.setitem(sys.modules, "pysoem", None)
    with pytest.raises(RigError, match="pysoem") as missing:
        open_ethercat(BusSettings("ethercat", "eth0"))
    assert "[ethercat]" in missing.value.cure
