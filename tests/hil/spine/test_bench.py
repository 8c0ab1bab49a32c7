"""The loop in C with emulated drives: frames, rates, and how it stops when a process fails."""

import ctypes
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import can
import numpy as np
import pytest
from typer.testing import CliRunner

from hil.cli import main
from hil.drives import Wanted, make_drives
from hil.drives.feedback import Feedback
from hil.errors import RigError
from hil.guard import Action, State
from hil.reasons import Reason
from hil.rig import load_rig
from hil.spine import BenchResult, bench_rig
from hil.spine._bench import SKIPPED, build, started
from hil.spine._memory import input_of, output_of
from tests.hil.bench import EXAMPLES, ROVER, ROVER_MIT
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
        rig = dataclasses.replace(rig, axes=tuple(axes))
        build(rig, folder, 2, "test")
    words = ["cc", "-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC"]
    subprocess.run([*words, "-shared", "frames.c", "-o", "frames.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "frames.so")), rig


def test_reports_are_read_as_in_python(frames):
    library, rig = frames
    rng, law = np.random.default_rng(1), rig.task.servo
    drives, known = make_drives(rig), ctypes.create_string_buffer(4096)
    given, feedback = input_of(rig, law)(), Feedback(len(rig.axes))
    counts = rng.integers(-(2**31), 2**31, len(rig.axes))
    counts[2] = 2**31 - 100
    taken = refused = 0
    for _ in range(400):
        k, status = int(rng.integers(len(rig.axes))), int(rng.integers(2**16))
        length = 8 if rng.random() > 0.05 else int(rng.integers(8))
        far = rng.random() < 0.05
        counts[k] += rng.integers(-900, 900) if not far else 2**30 if k != 1 else 1500
        wrapped = (int(counts[k]) + 2**31) % 2**32 - 2**31
        data = np.array([status, wrapped & 0xFFFF, wrapped >> 16 & 0xFFFF, 7], "<u2").tobytes()
        frame = Frame(0x180 + rig.axes[k].node, length, data=(ctypes.c_uint8 * 8)(*data))
        link = library.rig_link_of(k)
        assert library.rig_axis_of(ctypes.byref(frame), link) == k
        assert library.rig_axis_of(ctypes.byref(frame), 1 - link) == -1
        message = can.Message(
            arbitration_id=frame.id, data=data[:length], is_extended_id=False, check=True
        )
        own = library.rig_take(
            known, ctypes.byref(frame), k, ctypes.c_double(3.5), ctypes.byref(given)
        )
        assert bool(own) == drives[k].receive(message, 3.5, feedback)
        taken, refused = taken + bool(own), refused + (not own)
        if not own and length == 8:
            counts[k] -= 2**30 if k != 1 else 1500
        if feedback.count[k]:
            assert given.position[k] == feedback.position[k]
            assert math.isnan(given.velocity[k])
            assert given.fault[k] == feedback.fault[k]
            assert bool(given.enabled[k]) == bool(feedback.enabled[k])
            assert given.count[k] == feedback.count[k]
    assert taken > 200
    assert refused > 20


def test_commands_are_written_as_in_python(frames):
    library, rig = frames
    rng, law = np.random.default_rng(2), rig.task.servo
    known, given = ctypes.create_string_buffer(4096), input_of(rig, law)()
    output, drives = output_of(rig, law)(), make_drives(rig)
    feedback, seen = Feedback(len(rig.axes)), set()
    wishes = {
        Action.OFF: Wanted.OFF,
        Action.READY: Wanted.READY,
        Action.LAW: Wanted.TORQUE,
        Action.BRAKE: Wanted.TORQUE,
        Action.HOLD: Wanted.TORQUE,
    }
    for trial in range(600):
        k = trial % len(rig.axes)
        status = int(rng.choice([0x40, 0x21, 0x23, 0x27, 0x07, 0x08, 0x0F, 0x00])) | 0x1210
        data = np.array([status, 0, 0, 0], "<u2").tobytes()
        frame = Frame(0x180 + rig.axes[k].node, 8, data=(ctypes.c_uint8 * 8)(*data))
        library.rig_take(known, ctypes.byref(frame), k, ctypes.c_double(0.0), ctypes.byref(given))
        message = can.Message(arbitration_id=frame.id, data=data, is_extended_id=False)
        drives[k].receive(message, 0.0, feedback)
        action = Action(int(rng.integers(5)))
        # Halves of the unit of the drive are rounded to even numbers.
        torque = float(rng.integers(-4000, 4000)) * 0.5 * drives[k].scale.step
        output.action, output.torque[k] = int(action), torque
        sent = Frame()
        library.rig_command(known, ctypes.byref(output), k, ctypes.byref(sent))
        expected = drives[k].command(wishes[action], torque)
        assert (sent.id, sent.length) == (expected.arbitration_id, len(expected.data))
        assert bytes(sent.data[: sent.length]) == bytes(expected.data)
        seen.add(bytes(expected.data[:2]))
    assert len(seen) == 4  # off, shutdown, switch on, enable


# --- the result -------------------------------------------------------------------------------


def result(**changes):
    given = {
        **{"rig": "r", "rate": 1e3, "axes": 2, "links": 1, "cycles": 2000, "skipped": 0},
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
        bench_rig(load_rig(RIG), None, 0.1, 1)
    assert "loop in Python runs without" in str(found.value)


@pytest.mark.usefixtures("compiler")
def test_what_cannot_be_measured_is_refused():
    with pytest.raises(RigError, match="cia402"):
        bench_rig(load_rig(EXAMPLES / ROVER_MIT), None, 0.1, 1)
    for links in (0, 6):
        with pytest.raises(RigError, match="1 to 5"):
            bench_rig(load_rig(RIG), None, 0.1, links)


# --- processes --------------------------------------------------------------------------------


@pytest.fixture
def running(compiler):
    """The rover's loop in RUN, with torque."""
    with started(rig_of(), 2, 60.0) as bench:
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
    with started(rig, 1, seconds) as bench:
        if waits:  # the arm falls without torque, for no longer
            monkeypatch.setattr("hil.spine._bench.PATIENCE", 0.06)
        bench.run()
        bench.stop()
        found = bench.result()
    assert found.ran is not bool(waits)
    assert found.reason is (Reason.OPERATOR if waits else Reason.END)
    assert not (waits and found.passed)


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
def test_drives_that_fall_silent_stop_the_loop(running):
    running.drives.kill()
    running.beat(10.0)
    assert running.result().reason in (Reason.POWER_LOST, Reason.STALE)
    assert running.shared.ended


ORPHANED = """
import sys, time
from hil.rig import load_rig
from hil.spine._bench import started
with started(load_rig(sys.argv[1]), 2, 60.0) as bench:
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
    words = ["bench", str(made(tmp_path)), "--rate", "500", "--seconds", "1", "--links", "4"]
    done = CliRunner().invoke(main, [*words, "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == (0 if told["passed"] else 1)
    assert (told["axes"], told["links"], told["rate"]) == (12, 4, 500.0)
    assert told["cycles"] > 450
    assert 0.0 < told["median"] <= told["rare"] <= told["longest"]
    done = CliRunner().invoke(main, words, env={"COLUMNS": "200"})
    assert "12 axes on 4 links at 500 Hz" in done.stdout
    assert "SCHED_FIFO" in done.stdout
    assert ("holds the rate" in done.stdout) or ("does not hold" in done.stdout)
    assert not list(Path(tmp_path).glob("*.o"))
