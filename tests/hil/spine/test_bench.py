"""The loop in C with emulated drives: frames, rates, and how it stops when a process fails."""

import contextlib
import ctypes
import dataclasses
import json
import math
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import can
import numpy as np
import pytest
from typer.testing import CliRunner

from hil._punctuality import Punctuality
from hil.cli import main
from hil.drives import Wanted, make_drives
from hil.drives._cia402_setup import MODE, TORQUE
from hil.drives._drive import FaultCode
from hil.drives.feedback import Feedback
from hil.errors import RigError
from hil.guard import Phase, State
from hil.reasons import Reason
from hil.record import Record
from hil.record.copies import recorded_rig
from hil.record.rows import Layout
from hil.replay import replay
from hil.rig import load_rig
from hil.spine import BenchResult, bench_rig
from hil.spine._bench import SKIPPED, started
from hil.spine._build import build
from hil.spine._memory import DRIVE, drives_of, input_of, output_of, structure
from tests.hil.bench import EXAMPLES, ROVER, ROVER_MIT, divided
from tests.hil.spine.twelve import made

RIG = EXAMPLES / ROVER
WATCHDOG, TOLERANCE = 0.1, 5e-3


def rig_of(**changes):
    """The rover's rig with other settings of its loop."""
    rig = load_rig(RIG)
    return dataclasses.replace(rig, loop=dataclasses.replace(rig.loop, **changes))


# --- frames -----------------------------------------------------------------------------------


class Frame(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint32),
        ("length", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 3),
        ("data", ctypes.c_uint8 * 8),
    )


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Frames in C for the rover on two links: library, and fresh memory for drives and input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONCUR_CC")
        folder, rig = tmp_path_factory.mktemp("frames"), load_rig(RIG)
        # The right wheel has an encoder that wraps, and the turret is at the end of its counter.
        axes = list(rig.axes)
        axes[1] = dataclasses.replace(axes[1], modulo=4096)
        rig = divided(dataclasses.replace(rig, axes=tuple(axes)), 2)
        layout = Layout.of([axis.name for axis in rig.axes], rig.task.law)
        build(rig, folder, layout, "test", programs=True)
    words = ["cc", "-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC"]
    files = "frames.c", "exchange.c"
    subprocess.run([*words, "-shared", *files, "-lm", "-o", "frames.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "frames.so")), rig


LAYOUTS = ((TORQUE,), True, True), ((), False, False), ((MODE,), True, False), ((), True, True)
"""Reports with torque, mode or neither; whether drives show modes, and guard their node."""


def table_of(library, rig):
    return (DRIVE * len(rig.axes)).in_dll(library, "rig_drive")


def pair_of(frames):
    """Drives in Python, and the same in C with their memory; each axis has another layout."""
    library, rig = frames
    drives, known = make_drives(rig), drives_of(rig)()
    library.rig_init_drives(ctypes.byref(known))
    table = table_of(library, rig)
    for drive, row, k in zip(drives, table, range(len(drives)), strict=True):
        report, shows, guards = LAYOUTS[k % len(LAYOUTS)]
        drive._configure(report, shows, guards)
        drive._prepared = True
        drive.accept(0x1250 if k % 2 else 0x0250)  # with and without "follows"
        link, node = row.link, row.node
        values = (link, node, *drive.numbers(0.0))
        for (name, _), value in zip(row._fields_, values, strict=True):
            setattr(row, name, value)
    return library, rig, drives, known


def random_frame(rng, drive, counts, trial):
    """A report, or another frame of the drive, often a wrong one."""
    k, node = drive.index, drive.axis.node
    kind = rng.choice([0x180] * 12 + [0x080, 0x580, 0x700])
    if kind == 0x180:
        state = rng.choice([0x27] * 40 + [0x40, 0x21, 0x23, 0x07, 0x08, 0x0F, 0x00, 0x6F])
        status = int(state) | 0x0210 | 0x1000 * (rng.random() < 0.97)
        status = status & ~0x10 if rng.random() < 0.02 else status
        status |= 0x800 * (rng.random() < 0.2)
        counts[k] += rng.integers(-900, 900)
        wrong = rng.random()
        number = int(counts[k]) + (2**30 if k != 1 else 1500) * (wrong < 0.03)
        number = (number + 2**31) % 2**32 - 2**31
        data = struct.pack("<Hi", status, number)
        torque = 9000 if trial // 300 % 2 else int(rng.choice([0, 0, 5, 40, -300]))
        if drive._has_mode:
            data += struct.pack("<b", 10 if rng.random() < 0.97 else 8)
        elif drive._has_torque:
            data += struct.pack("<h", torque)
        data = data[: rng.integers(8)] if wrong > 0.97 else data
    elif kind == 0x080:
        data = struct.pack("<H6x", int(rng.choice([0, 0x8130, 0x00FF])))
    elif kind == 0x580:
        data = struct.pack("<BHBb3x", 0x4F, int(rng.choice([0x6061, 0x6060])), 0, 10)
        data = data[:4] + bytes([8]) + data[5:] if rng.random() < 0.1 else data
    else:
        data = bytes([int(rng.choice([5, 5, 5, 0x7F, 0]))])
        data *= int(rng.choice([1, 1, 1, 2]))
    return int(kind) + node, data


@pytest.mark.parametrize("seed", range(6))
def test_frames_are_read_and_written_as_in_python(frames, seed):
    """Random frames of drives and requests to them: reports, faults, latches, commands, asides."""
    library, rig, drives, known = pair_of(frames)
    rng, law = np.random.default_rng(seed), rig.task.servo
    given, feedback = input_of(rig, law)(), Feedback(len(rig.axes))
    counts = rng.integers(-(2**20), 2**20, len(rig.axes))
    counts[2] = 2**31 - 100
    faults, words, many, asides = set(), set(), Frame * 2, 0
    for trial in range(3000):
        k = int(rng.integers(len(rig.axes)))
        drive = drives[k]
        if drive._latched and rng.random() < 0.1:  # it is prepared again
            drive._latched = drive._unanswered = 0
            known.latched[k] = known.unanswered[k] = 0
        identifier, data = random_frame(rng, drive, counts, trial)
        frame = Frame(identifier, len(data), data=(ctypes.c_uint8 * 8)(*data))
        link = table_of(library, rig)[k].link
        assert library.rig_axis_of(ctypes.byref(frame), link) == k
        assert library.rig_axis_of(ctypes.byref(frame), 1 - link) == -1
        message = can.Message(arbitration_id=identifier, data=data, is_extended_id=False)
        own = library.rig_take(
            ctypes.byref(known),
            ctypes.byref(frame),
            k,
            ctypes.c_double(0.1 * trial),
            ctypes.byref(given),
        )
        assert bool(own) == drive.receive(message, 0.1 * trial, feedback), trial
        if feedback.count[k]:
            assert given.position[k] == feedback.position[k]
            assert given.time[k] == feedback.time[k]
        measured = float(feedback.torque[k])
        assert known.torque[k] == measured or math.isnan(measured)
        assert given.fault[k] == feedback.fault[k], trial
        assert bool(given.enabled[k]) == bool(feedback.enabled[k]), trial
        assert given.count[k] == feedback.count[k]
        assert known.invalid[k] == feedback.invalid[k]
        faults.add(int(feedback.fault[k]))
        # Halves of the unit of the drive are rounded to even numbers.
        wanted = Wanted(int(rng.choice([0, 1, 2, 2, 2, 2, 2, 2, 3])))
        torque = float(rng.integers(-20, 20)) * 0.5 * drive.scale.step
        sent, expected = Frame(), drive.command(wanted, torque)
        library.rig_command(
            ctypes.byref(known), int(wanted), ctypes.c_double(torque), k, ctypes.byref(sent)
        )
        assert (sent.id, bytes(sent.data[: sent.length])) == (
            expected.arbitration_id,
            bytes(expected.data),
        ), trial
        words.add(bytes(expected.data[:2]))
        further = many()
        count = library.rig_asides(
            ctypes.byref(known), ctypes.c_longlong(trial), k, ctypes.byref(further)
        )
        others = drive.asides(trial)
        assert count == len(others)
        for one, other in zip(further[:count], others, strict=True):
            assert one.id == other.arbitration_id | 0x40000000 * other.is_remote_frame
            assert one.length == other.dlc
            assert bytes(one.data[: one.length]) == bytes(other.data) or other.is_remote_frame
        asides += count
    assert asides > 100
    assert len(words) == 5  # off, shutdown, switch on, enable, reset
    expected = {"RESTARTED", "NOT_OPERATIONAL", "FELL", "UNNAMED", "OTHER_MODE", "OTHER_TORQUE"}
    assert {0, 0x8130, *(int(FaultCode[name]) for name in expected)} <= faults


def test_frames_of_other_hosts_are_noticed_as_in_python(frames):
    library, rig, drives, _ = pair_of(frames)
    rng, seen, table = np.random.default_rng(3), set(), table_of(library, rig)
    for _ in range(4000):
        node = int(rng.choice([axis.node for axis in rig.axes] + [99]))
        first = int(rng.choice([0x000, 0x080, 0x180, 0x200, 0x600, 0x700, 0x77F]))
        identifier = first if first in (0x000, 0x77F) or rng.random() < 0.2 else first + node
        numbers = [0, 1, 2, 5, node, 0x23, 0x40, 0x60, 0xC2, 0x80]
        data = bytes(map(int, rng.choice(numbers, rng.integers(4))))
        frame = Frame(identifier, len(data), data=(ctypes.c_uint8 * 8)(*data))
        message = can.Message(arbitration_id=identifier, data=data, is_extended_id=False)
        for link in (0, 1):
            own = [d for d in drives if table[d.index].link == link]
            watching = [d for d in own if identifier in d.watched_identifiers]
            foreign = any(d.is_foreign(message) for d in watching)
            assert bool(library.rig_is_foreign(ctypes.byref(frame), link)) == foreign
            seen.add((first, foreign))
    assert {(0x000, True), (0x000, False), (0x600, True), (0x600, False)} <= seen


@pytest.mark.parametrize("seed", range(4))
def test_late_reports_are_found_as_in_python(frames, seed):
    """Reports that are lost, that arrive twice, or that answer a request of an earlier cycle."""
    library, rig = frames
    n, patience = len(rig.axes), rig.policies.max_consecutive_faults
    rng, own, found = np.random.default_rng(seed), Punctuality(n, patience), set()
    library.rig_come.restype = ctypes.c_double
    fields = "first", "count", "fresh", "outside", "strayed", "doubt", "caught"
    kind = structure(
        "Punctuality",
        ("owed", ctypes.c_double * 1000 * n),
        *((name, ctypes.c_int * n) for name in fields),
        *((name, ctypes.c_int) for name in ("next", "wait", "pauses", "late")),
    )
    other = kind()
    memory = ctypes.byref(other)
    library.rig_init_punctuality(memory)
    for cycle in range(600):
        pausing = own.pauses
        assert bool(other.pauses) == pausing
        lost = 0.05 if seed > 1 else 0.002
        came, stray = rng.random(n) < 1.0 - lost, rng.random(n) < lost
        for k in range(n):
            if not pausing:
                own.ask(k, 0.5 * cycle)
                library.rig_ask(memory, k, ctypes.c_double(0.5 * cycle))
            for _ in range(int(came[k]) + int(stray[k])):
                one, same = own.come(k), library.rig_come(memory, k)
                assert one == same or (math.isnan(one) and math.isnan(same))
        if pausing and seed % 2:
            came = np.zeros(n, dtype=bool)
        own.end(came.tolist(), stray.tolist(), pausing)
        other.fresh[:], other.outside[:] = came.astype(int).tolist(), stray.astype(int).tolist()
        library.rig_end_window(memory, int(pausing))
        assert other.late == own.late
        for k in range(n):
            assert bool(library.rig_doubts(memory, k)) == own.doubts(k)
        found |= {("pause", pausing), ("late", own.late >= 0)}
        if own.late >= 0:
            own.late = other.late = -1
    assert ("pause", True) in found


def test_what_a_full_queue_rejected_comes_first_in_the_next_cycle(frames):
    """Otherwise it would always cut off the same drive."""
    library, rig = frames
    law, sender, receiver = rig.task.law, *socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    node = {axis.node: k for k, axis in enumerate(rig.axes)}
    links, output, given = (
        ctypes.create_string_buffer(1 << 20),
        output_of(rig, law)(),
        input_of(rig, law)(),
    )
    with sender, receiver:
        idle, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with idle, there:
            library.rig_init_links(links, (ctypes.c_int * 2)(sender.fileno(), idle.fileno()), 2)
            for row in table_of(library, rig):
                row.asks = row.guards = 0
            sender.setblocking(False)
            full = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    sender.send(bytes(16))
                    full += 1
            rounds = []
            for room in (1, 2, 3):
                for _ in range(room):
                    receiver.recv(64)
                library.rig_send(links, ctypes.byref(output), 0, ctypes.byref(given))
                waiting = [receiver.recv(64) for _ in range(full)]
                sent = [node[int.from_bytes(f[:2], "little") - 0x200] for f in waiting if any(f)]
                rounds.append(sent)
                for _ in range(full):
                    sender.send(bytes(16))
                while len(there.recv(64)) and select.select([there], [], [], 0)[0]:
                    pass
    own = [k for k, bus in enumerate(rig.bus_of) if bus == 0]
    assert own == [0, 1, 2]
    assert rounds == [[0], [1, 2], [0, 1, 2]]


# --- the result -------------------------------------------------------------------------------


def result(**changes):
    given = {
        **{"rig": "r", "rate": 1e3, "axes": 2, "buses": 1, "cycles": 2000, "skipped": 0},
        **{"median": 1e-4, "rare": 2e-4, "longest": 3e-4, "late": 1e-4},
        **{"scheduled": True, "locked": False, "ran": True, "reason": Reason.OPERATOR},
    }
    return BenchResult(**given | changes)


def test_a_rate_is_held_with_few_skipped_cycles_and_no_stop():
    most = round(SKIPPED * 2000)
    assert result(skipped=most).passed
    assert not result(skipped=most + 1).passed
    assert result(reason=Reason.END).passed
    for reason in set(Reason) - {Reason.OPERATOR, Reason.END}:
        assert not result(reason=reason).passed
    assert not result(ran=False).passed


# --- refusals ---------------------------------------------------------------------------------


def test_without_a_compiler_the_measurement_names_the_loop_in_python():
    with pytest.raises(RigError, match="with a C compiler") as found:
        bench_rig(load_rig(RIG), None, 0.1)
    assert "loop in Python runs without" in str(found.value)


@pytest.mark.usefixtures("compiler")
def test_what_cannot_be_measured_is_refused():
    with pytest.raises(RigError, match="cia402"):
        bench_rig(load_rig(EXAMPLES / ROVER_MIT), None, 0.1)


# --- processes --------------------------------------------------------------------------------


@pytest.fixture
def running(compiler):
    """The rover's loop in RUN, with torque."""
    with started(divided(rig_of(), 2), 60.0) as bench:
        assert bench.run(), bench.result()
        bench.beat(0.3)
        assert any(bench.emulated.torque)
        yield bench


def freed(bench, within=WATCHDOG + TOLERANCE):
    """Check that all drives gave up by their own watchdogs."""
    time.sleep(2.0 * WATCHDOG)
    now = bench.emulated
    assert not any(now.torque)
    assert not any(now.enabled)
    passed = np.array(now.freed) - np.array(now.command)
    assert (passed > WATCHDOG).all()
    assert (passed <= within).all(), passed


@pytest.mark.extended
def test_a_run_tracks_and_ends_when_it_is_asked(running):
    running.beat(1.5)
    assert running.state is State.RUN
    error = np.abs(running.shared.output.error)
    assert error.max() < 0.2
    running.stop()
    found = running.result()
    assert found.reason is Reason.OPERATOR
    assert found.cycles > 0.9 * 1.8 * 250
    assert running.shared.ended
    assert not any(running.emulated.torque)
    assert not any(running.emulated.enabled)
    assert not any(running.emulated.freed)  # the loop switched them off itself


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("seconds", "waits"), [(0.2, 0), (10.0, 10**6)])
def test_a_law_that_did_not_run_holds_no_rate(seconds, waits, monkeypatch):
    """A task that ends between two looks of the supervisor has run."""
    monkeypatch.setattr("hil.spine._bench.BEAT", 0.01 if waits else 0.4)
    rig = rig_of()
    policies = dataclasses.replace(rig.policies, startup_cycles=max(waits, 1))
    rig = dataclasses.replace(rig, policies=policies)
    rig = dataclasses.replace(rig, operator=dataclasses.replace(rig.operator, timeout=1.0))
    with started(rig, seconds) as bench:
        if waits:
            monkeypatch.setattr("hil.spine._bench.PATIENCE", 0.06)
        bench.run()
        bench.stop()
        found = bench.result()
    assert found.ran is not bool(waits)
    assert found.reason is (Reason.OPERATOR if waits else Reason.END)
    assert not (waits and found.passed)


def replayed(folder):
    """A record replayed with the rig file in it."""
    record = Record.load(folder)
    report = replay(record, recorded_rig(folder, record.manifest, False))
    return record, report


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("late", [False, True])
def test_python_recomputes_the_record_of_a_run_in_c_to_the_last_bit(late, tmp_path):
    """Also of cycles that were skipped, after which the torque of the law is held."""
    with started(divided(rig_of(), 2), 60.0, tmp_path / "record") as bench:
        assert bench.run(), bench.result()
        bench.beat(0.4)
        for _ in range(3 * late):
            os.kill(bench.loop.pid, signal.SIGSTOP)
            time.sleep(0.010)
            os.kill(bench.loop.pid, signal.SIGCONT)
            bench.beat(0.2)
        bench.beat(0.6)
        bench.stop()
        found = bench.result()
    assert found.reason is Reason.OPERATOR
    assert found.complete
    record, report = replayed(tmp_path / "record")
    assert report.exact
    assert not report.differences, [str(difference) for difference in report.differences]
    assert report.passed
    assert len(record) == found.cycles
    assert report.judged + report.stopped > 0.9 * (found.cycles - 100)
    assert report.left_out < 0.05 * found.cycles
    assert (np.abs(record["residual"]).max(axis=0) > 0.0).all()
    assert (found.skipped >= 3) or not late
    ended = record.manifest["end"]
    assert ended["reason"] == "OPERATOR"
    assert ended["counters"]["cycles"] == found.cycles
    assert ended["counters"]["skipped"] == found.skipped


@pytest.mark.usefixtures("compiler")
def test_a_record_has_the_rate_of_its_rig_file(tmp_path):
    with pytest.raises(RigError, match="the rate of the rig file, 250 Hz"):
        bench_rig(rig_of(), 500.0, 0.1, tmp_path / "record")
    assert not (tmp_path / "record").exists()


@pytest.mark.extended
def test_drives_are_free_after_a_kill(running):
    running.loop.kill()
    freed(running)


@pytest.mark.extended
def test_drives_are_free_while_the_loop_is_stopped_and_it_does_not_go_on(running):
    os.kill(running.loop.pid, signal.SIGSTOP)
    freed(running)
    os.kill(running.loop.pid, signal.SIGCONT)
    running.beat(5.0)
    assert running.result().reason is Reason.LATE
    assert not any(running.emulated.torque)


@pytest.mark.extended
def test_a_silent_supervisor_is_a_stopped_rig(running):
    running.shared.heartbeat += 1
    begun = time.monotonic()
    assert running.loop.wait(10.0) == 0
    rig = running.rig
    limit = rig.operator.timeout + rig.policies.stop_time + 51 * rig.loop.period
    assert rig.operator.timeout < time.monotonic() - begun < limit + 0.5
    assert running.result().reason is Reason.DEADMAN
    assert not any(running.emulated.torque)
    assert not any(running.emulated.enabled)
    assert not any(running.emulated.freed)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_a_stop_that_holds_ends_when_its_supervisor_falls_silent():
    rig = divided(rig_of(), 2)
    policies = dataclasses.replace(rig.policies, end="hold")
    with started(dataclasses.replace(rig, policies=policies), 0.5) as bench:
        assert bench.run(), bench.result()
        bench.beat(1.5)
        assert bench.shared.output.phase == Phase.HOLDING
        assert all(bench.emulated.enabled)
        assert bench.loop.wait(10.0) == 0  # without heartbeats
        assert bench.result().reason is Reason.END
        assert not any(bench.emulated.enabled)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("which", ["loop", "drives"])
def test_a_machine_that_stands_still_is_no_fault_of_an_encoder(which):
    """Drives report what was at SYNC, and a report that is read late came within its window."""
    rig = divided(rig_of(), 2)
    emulator = dataclasses.replace(rig.emulator, jitter=rig.loop.receive_window)
    with started(dataclasses.replace(rig, emulator=emulator), 60.0) as bench:
        assert bench.run(), bench.result()
        bench.beat(0.3)
        for _ in range(20):
            os.kill(getattr(bench, which).pid, signal.SIGSTOP)
            time.sleep(0.006)
            os.kill(getattr(bench, which).pid, signal.SIGCONT)
            bench.beat(0.07)
        bench.stop()
        assert bench.result().reason is Reason.OPERATOR


@pytest.mark.extended
def test_drives_that_fall_silent_stop_the_loop(running):
    running.drives.kill()
    running.beat(10.0)
    assert running.result().reason in (Reason.POWER_LOST, Reason.STALE)
    assert running.shared.ended


ORPHANED = """
import sys, time
from hil.rig import load_rig
from hil.spine._bench import started
with started(load_rig(sys.argv[1]), 60.0) as bench:
    assert bench.run()
    print(bench.loop.pid, bench.drives.pid, flush=True)
    bench.beat(60.0)
"""


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_all_processes_end_when_the_supervisor_is_killed():
    words = [sys.executable, "-c", ORPHANED, str(RIG)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as supervisor:
        pids = [int(word) for word in supervisor.stdout.readline().split()]
        assert len(pids) == 2
        supervisor.kill()
    until = time.monotonic() + 10.0
    while not all(map(has_ended, pids)):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_command_prints_what_was_measured(tmp_path):
    words = ["bench", str(made(tmp_path)), "--rate", "500", "--seconds", "1"]
    done = CliRunner().invoke(main, [*words, "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == (0 if told["passed"] else 1)
    assert (told["axes"], told["buses"], told["rate"]) == (12, 4, 500.0)
    assert told["cycles"] > 450
    assert 0.0 < told["median"] <= told["rare"] <= told["longest"]
    done = CliRunner().invoke(main, words, env={"COLUMNS": "200"})
    assert "12 axes on 4 buses at 500 Hz" in done.stdout
    assert "SCHED_FIFO" in done.stdout
    assert ("holds the rate" in done.stdout) or ("does not hold" in done.stdout)
    assert not list(Path(tmp_path).glob("*.o"))
