"""Emulated rigs as processes, on a multicast bus of this machine, and what they share."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import can
import msgpack
import pytest

from hil.bus import open_bus
from hil.clock import MonotonicClock
from hil.drives import Finding, Wanted, make_drives
from hil.emulator import EmulatorProcesses, Fault, command_fault
from hil.emulator._inbox import Inbox
from hil.emulator._lock import BusLock
from hil.errors import BusError, RigError
from hil.rig import BusSettings, EmulatorSettings, load_rig
from tests.hil._acme import ACME, forgotten
from tests.hil._records import ROOT
from tests.hil.emulator._rigs import ROVER, ROVER_MIT, Driver, frame, virtual_rig
from tests.ports import free_udp_port

TORQUES = (0.4, 0.3, 0.5, 6.0, 1.2)
WATCHDOG = 0.2
SLACK = 0.1  # s: longest delay of a process on a loaded machine


def rig(path=ROVER, **emulator):
    """On a free port; with watchdogs that tolerate a loaded machine."""
    found = load_rig(path)
    port = free_udp_port()
    axes = tuple(dataclasses.replace(axis, watchdog=WATCHDOG) for axis in found.axes)
    return dataclasses.replace(
        found,
        axes=axes,
        buses=(BusSettings("udp_multicast", "239.74.163.2", options={"port": port}),),
        emulator=EmulatorSettings(**({"latency": 1e-3, "dt": 1e-3} | emulator)),
        pose=None,
    )


def until(condition, timeout=5.0):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.extended
@pytest.mark.parametrize("path", [ROVER, pytest.param(ROVER_MIT, marks=pytest.mark.slow)])
def test_driven_over_the_bus_with_faults_then_silent(path):
    own = rig(path, control_port=free_udp_port())
    clock = MonotonicClock()
    with open_bus(own.buses[0], clock) as bus, EmulatorProcesses(own) as emulator:
        assert emulator.alive
        driver = Driver(own, None, bus, make_drives(own)).prepare()
        driver.cycle(Wanted.READY, [0.0] * 5, 40)
        driver.cycle(Wanted.TORQUE, TORQUES, 75)
        _torques_act(emulator, driver)
        _faults_are_commanded(emulator, driver)
        # from here on the controller is silent, as after `kill -9`
        assert until(lambda: not emulator.plant().torque.any())
        for name in ("left_wheel", "right_wheel"):
            assert 0.5 * WATCHDOG < emulator.drive(name).torque_free_after <= WATCHDOG + SLACK
        pid = emulator.pid
        assert _lives(pid)
    assert not _lives(pid)


def _torques_act(emulator, driver):
    assert driver.feedback.enabled.all()
    plant = emulator.plant()
    assert plant.torque == pytest.approx(TORQUES, abs=0.08)
    assert abs(plant.v[3]) > 0.1  # a wheel turns
    assert driver.feedback.position[0] == pytest.approx(plant.q[3], abs=0.3)
    for report in emulator.drives():
        assert report.enabled
        assert report.torque_free_after == math.inf
    assert plant.delivered > 500
    assert "enabled 5/5" in emulator.status()


def _faults_are_commanded(emulator, driver):
    port = emulator.rig.emulator.control_port
    command_fault(Fault("drive_fault", "turret"), port)
    command_fault(Fault("drop", "forearm", lasting=60.0, way="to_host"), port)
    command_fault(Fault("drop", "leg"), port)
    done = 0
    for _ in range(25):
        driver.cycle(Wanted.TORQUE, TORQUES)
        done += emulator.poll()
    assert done == 2  # a fault of an unknown axis is skipped
    before = driver.feedback.count.copy()
    driver.cycle(Wanted.TORQUE, TORQUES, 30)
    came = driver.feedback.count - before
    assert came[4] == 0
    assert came[3] >= 20
    assert driver.feedback.fault[2] != 0
    assert emulator.drive("turret").torque == 0.0


SCRIPT = """
import dataclasses, sys, time
from hil.emulator import EmulatorProcesses
from hil.rig import BusSettings, load_rig
rig = load_rig(sys.argv[1])
rig = dataclasses.replace(rig, buses=(BusSettings("udp_multicast", "239.74.163.2",
                          options={"port": int(sys.argv[2])}),))
if __name__ == "__main__":
    with EmulatorProcesses(rig) as emulator:
        print(emulator.pid, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, marks=pytest.mark.extended),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_it_does_not_outlive_its_parent(how, tmp_path):
    script = tmp_path / "emulate.py"
    script.write_text(SCRIPT)
    arguments = [sys.executable, str(script), ROVER, str(free_udp_port())]
    parent = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_path()
    )
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 1
        assert all(_lives(pid) for pid in pids)
        parent.send_signal(how)
        parent.wait(10.0)
        assert until(lambda: not any(_lives(pid) for pid in pids))
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


@pytest.mark.extended
def test_a_second_emulated_rig_on_the_bus_is_refused():
    own = rig()
    with EmulatorProcesses(own):
        second = EmulatorProcesses(own)
        with pytest.raises(BusError, match=rf"no other emulated rig.*process {os.getpid()}"):
            second.__enter__()
        assert second.pid == 0
    with EmulatorProcesses(own) as again:  # the bus is free again
        assert again.alive


def test_what_cannot_start_is_refused():
    with pytest.raises(RigError, match="udp_multicast"):
        EmulatorProcesses(virtual_rig())
    own = rig()
    with pytest.raises(RigError, match="leg"):
        EmulatorProcesses(own, [Fault("drop", "leg")])
    broken = dataclasses.replace(own, buses=(BusSettings("udp_multicast", "no address"),))
    emulator = EmulatorProcesses(broken)
    with pytest.raises(BusError, match="no address"), emulator:
        pass
    assert emulator.pid == 0


@pytest.mark.extended
def test_a_process_that_ends_before_it_is_ready_is_noticed(tmp_path):
    dies = "import multiprocessing, sys\n\nif multiprocessing.parent_process():\n    sys.exit(3)\n"
    (tmp_path / "dies.py").write_text(dies)
    emulator = EmulatorProcesses(dataclasses.replace(rig(), drive_modules=(tmp_path / "dies.py",)))
    with pytest.raises(RigError, match="a process that ended"), emulator:
        pass
    assert not emulator.alive
    assert not _lives(emulator.pid)


@pytest.mark.extended
def test_drives_of_one_s_own_are_emulated_in_a_process_too(tmp_path):
    (tmp_path / "acme.py").write_text(ACME)
    text = (ROOT / ROVER).read_text(encoding="utf-8")
    text = text.replace('"task.toml"', f'"{(ROOT / ROVER).parent.as_posix()}/task.toml"')
    text = text.replace('certificate = "', '# "').replace("node = 3", "node = 33")
    text = text.replace('name = "turret"\ndrive = "cia402"', 'name = "turret"\ndrive = "acme"')
    (tmp_path / "rig.toml").write_text('drive_modules = ["acme.py"]\n' + text, encoding="utf-8")
    with forgotten():
        own = rig(tmp_path / "rig.toml")
        assert [axis.drive for axis in own.axes].count("acme") == 1
        clock = MonotonicClock()
        with open_bus(own.buses[0], clock) as bus, EmulatorProcesses(own):
            drive = make_drives(own)[2]
            assert type(drive).__name__ == "AcmeDrive"
            findings = {check.finding for check in drive.inspect(bus)}
        assert Finding.MISSING not in findings
        assert Finding.FOUND in findings
        with pytest.raises(RigError, match=r"got acme, registered in this process.*drive_modules"):
            EmulatorProcesses(dataclasses.replace(own, drive_modules=()))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _path():
    root = os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["hil"].__file__)))
    return {**os.environ, "PYTHONPATH": root}


# -- the lock of a bus: a regular file, never the target of another user's link ----------------


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BusLock:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return BusLock(BusSettings("virtual", "lock"))


def test_a_second_rig_is_refused(lock: BusLock) -> None:
    lock.take()
    other = BusLock(BusSettings("virtual", "lock"))
    with pytest.raises(BusError, match=f"an emulated rig of process {os.getpid()}"):
        other.take()
    lock.release()
    other.take()
    other.release()


def test_a_link_is_not_followed(lock: BusLock, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    lock._path.symlink_to(precious)
    lock.take()
    lock.release()
    assert precious.read_text() == "kept"


def test_a_pipe_is_not_waited_for(lock: BusLock) -> None:
    os.mkfifo(lock._path)
    lock.take()
    lock.release()


# -- the inbox of a listener on a bus with others ----------------------------------------------


IDENTIFIERS = [0x000, 0x001, 0x07F, 0x080, 0x085, 0x0FF, 0x100, 0x205, 0x585, 0x605, 0x77F, 0x7FF]


@pytest.fixture
def buses():
    port = free_udp_port()
    opened = [
        can.Bus(interface="udp_multicast", channel="239.74.163.2", port=port) for _ in range(2)
    ]
    yield port, *opened
    for bus in opened:
        bus.shutdown()


def taken(inbox, heard):
    kept, others = [], 0
    while (came := inbox.take(0.1, heard)) is not False:
        if came is True:
            others += 1
        else:
            kept.append(came)
    return kept, others


@pytest.mark.parametrize(
    "heard",
    [{0x000}, {0x080, 0x205}, {0x7FF}, set(), {0x000, 0x080, 0x205, 0x605, 0x77F}, {0x85, 0x07F}],
)
def test_only_requested_frames_are_received(buses, heard):
    _, sender, listener = buses
    inbox, heard = Inbox(listener, "udp_multicast"), frozenset(heard)
    assert inbox.take(0.0, heard) is False
    for identifier in IDENTIFIERS:
        sender.send(frame(identifier, identifier.to_bytes(2, "big")))
    kept, others = taken(inbox, heard)
    assert [message.arbitration_id for message in kept] == sorted(heard)
    assert all(int.from_bytes(m.data, "big") == m.arbitration_id for m in kept)
    if sys.platform == "linux":
        assert inbox.filtered
        assert others == 0
    inbox.close()


def test_it_can_ask_for_something_else(buses):
    _, sender, listener = buses
    inbox = Inbox(listener, "udp_multicast")
    for heard in (frozenset({0x205}), frozenset({0x605}), frozenset({0x205, 0x605})):
        inbox.take(0.0, heard)
        sender.send(frame(0x205))
        sender.send(frame(0x605))
        assert {m.arbitration_id for m in taken(inbox, heard)[0]} == heard
    inbox.close()


def test_datagrams_that_are_no_frames_are_passed_over(buses):
    port, sender, listener = buses
    inbox, heard = Inbox(listener, "udp_multicast"), frozenset({0x205})
    inbox.take(0.0, heard)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"\x8b", b"hello", msgpack.packb([1]), msgpack.packb({"a": 1})):
            stranger.sendto(data, ("239.74.163.2", port))
        wrong = {"timestamp": 0.0, "arbitration_id": 0x205, "data": "text", "speed": 3}
        stranger.sendto(msgpack.packb(wrong), ("239.74.163.2", port))
    sender.send(frame(0x205, b"\x01"))
    kept, _ = taken(inbox, heard)
    assert [bytes(message.data) for message in kept] == [b"\x01"]
    inbox.close()


def test_other_buses_are_read_as_they_are():
    with (
        can.Bus(interface="virtual", channel="inbox") as sender,
        can.Bus(interface="virtual", channel="inbox") as listener,
    ):
        inbox, heard = Inbox(listener, "virtual"), frozenset({0x205})
        sender.send(frame(0x605))
        sender.send(frame(0x205))
        kept, others = taken(inbox, heard)
        assert [message.arbitration_id for message in kept] == [0x205]
        assert others == 1
        inbox.close()
