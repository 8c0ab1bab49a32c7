"""A whole rig of processes over a multicast bus, of which one is killed.

On a busy machine cycles are late and reports are lost. The tests tolerate both, and assert only
times of watchdogs, with a margin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hil.controller import Controller, Mode
from hil.emulator import EmulatorProcesses, Fault
from hil.guard import Reason, State
from hil.operator import OperatorSender
from hil.record import Record
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.ports import free_udp_port

FOLDER = Path(__file__).parents[2] / "examples" / "rover_rig"
WATCHDOG = 0.2
TOKEN = "a token for tests"
PATIENCE = 60.0  # s, of the tests, for processes to start


LOOPS = "rig.toml", "rig.toml in C", pytest.param("rig_mit.toml", marks=pytest.mark.slow)


@pytest.fixture(params=LOOPS)
def file(request, tmp_path):
    """The rover's rig on free ports, with tolerances for a busy machine."""
    return rig_file(request, tmp_path, request.param)


@pytest.fixture
def in_c(request, tmp_path):
    """The same whose loop runs in C."""
    return rig_file(request, tmp_path, "rig.toml in C")


def rig_file(request, tmp_path, kind):
    """Write the file of the rover's rig: "rig.toml in C" has a bus of datagrams."""
    bus, compiled = free_udp_port(), kind.endswith("in C")
    if compiled:
        request.getfixturevalue("compiler")
    text = (FOLDER / kind.split()[0]).read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        word = line.split("=")[0].strip()
        if word == "task":
            line = f'task = "{(FOLDER / "task.toml").as_posix()}"'
        elif word == "certificate":
            line = f'certificate = "{(FOLDER / "operating.json").as_posix()}"'
        elif word == "interface" and compiled:
            line = 'interface = "datagram"'
        elif word == "channel" and compiled:
            line = f'channel = "{bus}"'
        elif word == "options":
            line = "" if compiled else f"options = {{ port = {bus} }}"
        elif word == "port":
            line = f"port = {free_udp_port()}"
        elif word == "timeout":
            line = "timeout = 1.0"
        elif word == "max_consecutive_faults":
            line = "max_consecutive_faults = 50"
        elif word == "stop_time":
            line = "stop_time = 0.2"
        elif word == "watchdog":
            line = f"watchdog = {WATCHDOG}"
        lines.append(line)
    path = tmp_path / "rig.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rig = load_rig(path)
    assert {axis.watchdog for axis in rig.axes} == {WATCHDOG}
    assert (rig.policies.max_consecutive_faults, rig.operator.timeout) == (50, 1.0)
    return path


SESSION = """
import sys
from pathlib import Path
from hil.controller import Mode
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
if __name__ == "__main__":
    wishes = SessionOptions(Mode.DRIVE, 30.0, Path(sys.argv[2]), "port", sys.argv[3])
    print(run_session(load_rig(sys.argv[1]), wishes).outcome.reason.name)
"""

OPERATOR = """
import sys, time
from hil.operator import OperatorSender
with OperatorSender("127.0.0.1", int(sys.argv[1]), sys.argv[2]) as sender:
    while True:
        sender.heartbeat()
        time.sleep(0.02)
"""


@contextlib.contextmanager
def process(script, *arguments):
    """A separate process, which ends with the test."""
    words = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=FOLDER.parents[1]
    ) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


@contextlib.contextmanager
def beating(port):
    """An operator who holds the enabling device."""
    done = threading.Event()

    def beat():
        with OperatorSender("127.0.0.1", port, TOKEN) as sender:
            while not done.wait(0.02):
                sender.heartbeat()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def until(condition, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def runs(emulator):
    """Whether all drives have torque to speak of, and some more than in the test of watchdogs."""
    drives = emulator.drives()
    loads = [axis.test_torque for axis in emulator.rig.axes]
    return all(drive.enabled and abs(drive.torque) > 0.05 for drive in drives) and any(
        abs(drive.torque) > 1.5 * load for drive, load in zip(drives, loads, strict=True)
    )


class Killer(threading.Thread):
    """Kills processes once the rig runs, and records the time."""

    def __init__(self, emulator, pids):
        super().__init__()
        self.emulator, self.pids = emulator, pids
        self.at = math.nan

    def run(self):
        if until(lambda: runs(self.emulator)):
            time.sleep(0.2)
            self.at = time.monotonic()
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.extended
def test_a_controller_that_is_killed(file, tmp_path):
    """Every drive is without torque within its watchdog, and the record is kept."""
    rig, folder = load_rig(file), tmp_path / "record"
    with (
        EmulatorProcesses(rig) as emulator,
        beating(rig.operator.port),
        process(SESSION, file, folder, TOKEN) as controller,
    ):
        # Its own word of how it ended, should it end too early.
        ready = until(lambda: controller.poll() is not None or runs(emulator))
        assert ready
        assert controller.poll() is None, controller.communicate()
        time.sleep(0.3)
        os.kill(controller.pid, signal.SIGKILL)
        controller.wait()
        killed = time.monotonic()
        assert until(lambda: not emulator.plant().torque.any(), 5.0)
        assert emulator.alive
        for report in emulator.drives():
            assert not report.torque
            assert 0.0 < report.torque_free_after <= WATCHDOG + 0.005, report
            assert report.last_command <= killed
        # No torque returns without a command.
        time.sleep(2.0 * WATCHDOG)
        assert not emulator.plant().torque.any()
        assert not any(report.enabled for report in emulator.drives())
        # The recorder has survived the controller, and has written all rows.
        assert until(lambda: "end" in json.loads((folder / "manifest.json").read_text()), 20.0)
    record = Record.load(folder)
    assert record.manifest["end"]["reason"] == "controller died"
    assert len(record) >= 50
    assert (record["state"][-1] == State.RUN).all()
    assert np.abs(record["torque"][-1]).max() > 0.05


def drive(rig, folder, **others):
    wishes = SessionOptions(Mode.DRIVE, 30.0, folder, "port", TOKEN, **others)
    return run_session(rig, wishes)


def stopped_in_order(result, *reasons):
    assert result.outcome.reason in reasons, result.outcome.reason.name
    assert result.complete
    record = Record.load(result.folder)
    assert record.manifest["end"]["reason"] == result.outcome.reason.name
    assert len(record) == result.recorded == result.outcome.quality.cycles
    state = np.ravel(record["state"])
    run, stop = np.flatnonzero(state == State.RUN), np.flatnonzero(state == State.STOP)
    assert len(run) >= 20
    assert (np.diff(stop) == 1).all()
    assert stop[-1] == len(record) - 1
    # Braking has ended, and nothing was asked for in the cycles of the postlude.
    assert not np.any(record["torque"][-5:])
    return record


@pytest.mark.extended
def test_an_emulator_that_dies(file, tmp_path):
    """All drives are gone at once: the loop gives them up and leaves in order."""
    rig = load_rig(file)
    with EmulatorProcesses(rig) as emulator, beating(rig.operator.port):
        killer = Killer(emulator, [emulator.pid])
        killer.start()
        result = drive(rig, tmp_path / "record")
        killer.join()
        assert not math.isnan(killer.at)
        assert not emulator.alive
    record = stopped_in_order(result, Reason.LOST, Reason.STALE, Reason.POWER_LOST)
    patience = rig.policies.max_consecutive_faults * rig.loop.period
    stop = np.ravel(record["time"])[np.flatnonzero(np.ravel(record["state"]) == State.STOP)[0]]
    assert 0.5 * patience < stop - killer.at


@pytest.mark.extended
def test_an_operator_who_dies(file, tmp_path):
    """The heartbeat ends: the rig brakes, and its drives are switched off."""
    rig = load_rig(file)
    with (
        EmulatorProcesses(rig) as emulator,
        process(OPERATOR, rig.operator.port, TOKEN) as operator,
    ):
        killer = Killer(emulator, [operator.pid])
        killer.start()
        result = drive(rig, tmp_path / "record")
        killer.join()
        assert not math.isnan(killer.at)
        record = stopped_in_order(result, Reason.DEADMAN)
        stop = np.ravel(record["time"])[np.flatnonzero(np.ravel(record["state"]) == State.STOP)[0]]
        assert stop - killer.at > 0.9 * rig.operator.timeout
        assert until(lambda: not emulator.plant().torque.any(), 5.0)
        assert emulator.alive
        assert not any(report.enabled for report in emulator.drives())


@pytest.mark.extended
def test_a_controller_in_c_that_is_suspended(in_c, tmp_path):
    """Every drive is without torque within its watchdog; when it wakes, it stops."""
    rig, folder = load_rig(in_c), tmp_path / "record"
    with (
        EmulatorProcesses(rig) as emulator,
        beating(rig.operator.port),
        process(SESSION, in_c, folder, TOKEN) as controller,
    ):
        assert until(lambda: controller.poll() is not None or runs(emulator))
        assert controller.poll() is None, controller.communicate()
        time.sleep(0.3)
        os.kill(controller.pid, signal.SIGSTOP)
        assert until(lambda: not emulator.plant().torque.any(), 5.0)
        for report in emulator.drives():
            assert 0.0 < report.torque_free_after <= WATCHDOG + 0.005, report
        time.sleep(WATCHDOG)
        os.kill(controller.pid, signal.SIGCONT)
        out, _ = controller.communicate(timeout=PATIENCE)
        # In the middle of a cycle it first reads that the drives gave up.
        assert out.split() in (["LATE"], ["DRIVE_FAULT"])
        assert not emulator.plant().torque.any()
    assert Record.load(folder).manifest["end"]["reason"] == out.strip()


SILENT = SESSION.replace(
    "if __name__",
    """
from hil._compiled import CompiledController
beats, whole = [], CompiledController._supervise
def supervise(self, shared):
    beats.append(shared.output.state == 2)
    if sum(beats) < 100:
        whole(self, shared)
CompiledController._supervise = supervise
if __name__""",
)


@pytest.mark.extended
def test_a_supervisor_that_is_silent_stops_the_loop_in_c(in_c, tmp_path):
    """Its heartbeat ends 0.2 s after the start, although the operator's goes on."""
    rig, folder = load_rig(in_c), tmp_path / "record"
    with (
        EmulatorProcesses(rig) as emulator,
        beating(rig.operator.port),
        process(SILENT, in_c, folder, TOKEN) as controller,
    ):
        out, err = controller.communicate(timeout=PATIENCE)
        assert out.split() == ["DEADMAN"], err
        assert not emulator.plant().torque.any()
        assert not any(report.enabled for report in emulator.drives())
    record = Record.load(folder)
    state = np.ravel(record["state"])
    ran = np.ravel(record["time"])[state == State.RUN]
    assert rig.operator.timeout < ran[-1] - ran[0] < rig.operator.timeout + 2.0
    assert not np.any(record["torque"][-5:])


@pytest.mark.extended
def test_python_recomputes_a_run_of_the_loop_in_c(in_c, tmp_path):
    """Its result has what that of the loop in Python has."""
    rig = load_rig(in_c)
    with EmulatorProcesses(rig) as emulator:
        wishes = SessionOptions(
            Mode.DRIVE, 1.5, tmp_path / "record", heartbeat="auto", emulated=True
        )
        result = run_session(rig, wishes)
        assert until(lambda: not any(report.enabled for report in emulator.drives()), 5.0)
    outcome = result.outcome
    assert result.loop == "C"
    assert (outcome.reason, outcome.detail) == (Reason.END, "")
    assert outcome.elapsed == pytest.approx(1.5)
    assert result.complete
    record = Record.load(tmp_path / "record")
    assert len(record) == outcome.quality.cycles == result.recorded
    ended = int(np.flatnonzero(np.ravel(record["state"]) == State.STOP)[0])
    assert np.array_equal(record["error"][ended], outcome.error)
    report = replay(record, rig)
    assert report.passed, [str(difference) for difference in report.differences]
    assert report.exact


@pytest.mark.extended
def test_a_fault_stops_the_loop_in_c_by_its_name(in_c, tmp_path):
    rig = load_rig(in_c)
    with EmulatorProcesses(rig) as emulator, beating(rig.operator.port):

        def inject():
            if until(lambda: runs(emulator)):
                time.sleep(0.4)
                emulator.fault(Fault("drive_fault", "turret", value=0x7305))

        thread = threading.Thread(target=inject)
        thread.start()
        result = drive(rig, tmp_path / "record")
        thread.join()
    assert result.outcome.detail == "axis `turret`, fault 0x7305"
    record = stopped_in_order(result, Reason.DRIVE_FAULT)
    assert record["axis"][-1] == 2
    assert replay(record, rig).passed


@pytest.mark.slow
def test_one_command_for_all_of_it(file, tmp_path):
    """Emulator and controller as processes of one command; its verdict for machines."""
    program = Path(sys.executable).with_name("concur-rig")
    words = ["drive", file, "--emulate", "--duration", "3", "--yes", "--json"]
    done = subprocess.run(
        [program, *words, "--out", tmp_path / "record"],
        capture_output=True,
        text=True,
        timeout=300.0,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["passed"]
    assert (result["mode"], result["reason"]) == ("drive", "END")
    assert result["elapsed"] == pytest.approx(3.0)
    assert result["complete"]
    assert result["recorded"] == result["quality"]["cycles"]
    assert set(result["error"]) == {"base", "hand"}
    assert all(Path(name).is_file() for name in result["files"])
    assert len(Record.load(result["record"])) == result["recorded"]


# -- ten minutes at 250 Hz ---------------------------------------------------------------------


RIG = Path(__file__).parents[2] / "examples" / "rover_rig"
PAGE = os.sysconf("SC_PAGE_SIZE")


class _Weighed(Controller):
    """The controller, which notes its process's memory every second."""

    weights: list[int] = []  # noqa: RUF012 - one run at a time

    def _fill_row(self) -> None:
        super()._fill_row()
        if self.quality.cycles % 250 == 0:
            with open("/proc/self/statm", encoding="ascii") as file:
                self.weights.append(int(file.read().split()[1]) * PAGE)


def long_rig(folder: Path, seconds: float):
    """The rover's rig with a task as long as that: the same slalom, further."""
    for name in ("rig.toml", "task.toml"):
        (folder / name).write_text((RIG / name).read_text(encoding="utf-8"), encoding="utf-8")
    task = folder / "task.toml"
    text = task.read_text(encoding="utf-8")
    count = int(seconds / 5.0) + 3
    times = [5.0 * k for k in range(count)]
    points = [[1.5 * k, (0.0, 0.3, 0.0, -0.3)[k % 4]] for k in range(count)]
    text = re.sub(r"times = \[.*?\]", f"times = {times}", text, count=1, flags=re.DOTALL)
    text = re.sub(r"points = \[.*?\n\]", f"points = {points}", text, count=1, flags=re.DOTALL)
    text = re.sub(r"duration = 60\.0", f"duration = {seconds}", text)
    task.write_text(text, encoding="utf-8")
    rig = folder / "rig.toml"
    lines = rig.read_text(encoding="utf-8").splitlines()
    rig.write_text(
        "\n".join(line for line in lines if not line.startswith("certificate")), encoding="utf-8"
    )
    made = load_rig(rig)
    options = dict(made.buses[0].options) | {"port": 20000 + time.monotonic_ns() % 20000}
    # A shared machine may stand still for some tens of ms: tolerate this for as long as the
    # drives' own watchdogs do.
    patience = int(min(axis.watchdog for axis in made.axes) * made.loop.rate) - 1
    return dataclasses.replace(
        made,
        policies=dataclasses.replace(made.policies, max_consecutive_faults=patience),
        buses=(dataclasses.replace(made.buses[0], options=options),),
        operator=dataclasses.replace(made.operator, port=0),
    )


def soak(folder: Path, seconds: float):
    rig = long_rig(folder, seconds)
    _Weighed.weights = []
    wishes = SessionOptions(Mode.DRIVE, folder=folder / "record", heartbeat="auto", emulated=True)
    with EmulatorProcesses(rig) as emulator:
        result = run_session(rig, wishes, controller=_Weighed, clock=emulator.clock)
    return rig, result, Record.load(folder / "record"), _Weighed.weights


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_ten_minutes(tmp_path):
    rig, result, record, weights = soak(tmp_path, 600.0)
    quality = result.outcome.quality
    assert result.outcome.reason is Reason.END, quality.rows()
    assert np.abs(result.outcome.error).max() < 5e-3

    # Memory: nothing after the first half minute.
    settled = np.array(weights[30:], dtype=float)
    assert settled.max() - settled.min() < 1e6, settled[[0, -1]]

    # Cycles: all of them in the record, one after the other.
    assert result.complete
    np.testing.assert_array_equal(record["cycle"].ravel(), np.arange(1, quality.cycles + 1))

    # Deadlines: each had a cycle, or is counted as skipped.
    deadline = record["deadline"].ravel()
    steps = np.diff(deadline) / rig.loop.period
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
    assert quality.skipped == int(np.round(steps - 1.0).sum())
    lateness = record["time"].ravel() - deadline
    assert quality.late == int((lateness > 0.5 * rig.loop.period).sum())
    running = record["state"].ravel() == State.RUN
    assert running.sum() + quality.skipped >= 600.0 * rig.loop.rate
