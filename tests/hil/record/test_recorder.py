"""The recorder: every cycle reaches the file after killed processes and disk errors."""

import dataclasses
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hil.clock import SteppedClock
from hil.errors import RecordError
from hil.record import Record
from hil.record._chunks import FIRST, ROWS, ChunkFile, scan
from hil.record._drain import END_ROOM, RESERVES, Drain, end_manifest, reserve_end
from hil.record.manifest import read_manifest
from hil.record.recorder import Recorder
from hil.record.ring import Ring, _ring_folder
from tests.hil._records import (
    ROOT,
    SMALL,
    layout_of_rig,
    limit_recorder,
    make_rig,
    task_and_servo,
)

# Publishes rows until it is killed, and prints their number.
CONTROLLER = """
import subprocess, sys, time
from hil.record.ring import Ring
from hil.record.rows import Layout
ring = Ring.create(Layout(("wheel", "arm"), nq=3, ns=2, pose_size=2, size=2), 1000)
subprocess.Popen([sys.executable, "-m", "hil.record._drain", ring.name, sys.argv[1]])
while not ring.recorder_ready:
    time.sleep(0.01)
print(ring.name, flush=True)
k = 0
while True:
    ring.row[:] = k
    ring.publish()
    k += 1
    print(k, flush=True)
    time.sleep(0.001)
"""


def make_recorder(tmp_path, **settings):
    rig = make_rig(tmp_path)
    return Recorder(rig, layout_of_rig(rig), servo=task_and_servo()[1], **settings)


def publish(ring, first, count):
    for k in range(first, first + count):
        ring.row[:] = k
        ring.publish()


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def check_rows(record, count):
    np.testing.assert_array_equal(record.index, np.arange(count))
    np.testing.assert_array_equal(
        record.rows, np.arange(count)[:, None] * np.ones(len(record.rows[0]))
    )


def test_every_row_is_recorded(tmp_path, monkeypatch):
    with make_recorder(tmp_path, mode="mock") as recorder:
        monkeypatch.setattr(time, "time", lambda: 0.0)  # the wall clock may jump
        assert not recorder.failed
        size = (recorder.folder / "manifest.json").stat().st_size
        for name in RESERVES:  # room for the end: blocks of the disk, not a hole
            assert 512 * (recorder.folder / name).stat().st_blocks >= size + END_ROOM
        publish(recorder.ring, 0, 1000)
        wait_for(lambda: recorder.recorded == 1000)
        publish(recorder.ring, 1000, 500)
        recorder.stop("the task ended", {"late": 2})
        assert recorder.complete
        assert (recorder.recorded, recorder.lost, recorder.why) == (1500, 0, "")
    record = Record.load(recorder.folder)
    check_rows(record, 1500)
    assert record.complete
    assert record.notes == ()
    assert record.manifest["mode"] == "mock"
    assert record.manifest["end"] == {
        "reason": "the task ended",
        "rows": 1500,
        "lost": 0,
        "unwritten": 0,
        "link": [*scan((recorder.folder / "rows.bin").read_bytes())][-1].link.hex(),
        "counters": {"late": 2},
    }
    assert not (_ring_folder() / recorder.ring.name).exists()
    assert not any((recorder.folder / name).exists() for name in RESERVES)


def test_an_error_in_the_loop_is_the_reason_of_the_end(tmp_path):
    recorder = make_recorder(tmp_path)
    publish(recorder.ring, 0, 10)
    error = ZeroDivisionError("of something")
    error.add_note("axis `arm` may still be under power: a timeout")
    with pytest.raises(ZeroDivisionError), recorder:
        raise error
    record = Record.load(recorder.folder)
    check_rows(record, 10)
    assert record.manifest["end"]["reason"] == "ZeroDivisionError: of something"
    assert record.manifest["end"]["left"] == error.__notes__


def test_a_killed_controller_loses_no_row(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    name = process.stdout.readline().strip()
    for _ in range(200):
        published = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    told, errors = process.communicate()
    published = int([str(published), *told.split()][-1])
    manifest = tmp_path / "manifest.json"
    wait_for(lambda: manifest.exists() and "end" in manifest.read_text())
    data = (tmp_path / "rows.bin").read_bytes()
    rows = np.concatenate(
        [
            np.frombuffer(data[part.start : part.end]).reshape(-1, SMALL.width)
            for part in scan(data)
            if part.kind == ROWS
        ]
    )
    # It may have been killed between publishing a row and telling of it.
    assert len(rows) in (published, published + 1)
    assert (rows == np.arange(len(rows))[:, None]).all()
    end = json.loads(manifest.read_text())["end"]
    assert (end["reason"], end["rows"], end["lost"]) == ("controller died", len(rows), 0)
    assert errors == ""
    wait_for(lambda: not (_ring_folder() / name).exists())


def test_a_killed_recorder_is_noticed_and_the_controller_drains_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("hil.record.recorder.SILENCE", 0.3)
    with make_recorder(tmp_path) as recorder:
        publish(recorder.ring, 0, 100)
        wait_for(lambda: recorder.recorded == 100)
        os.kill(recorder._process.pid, signal.SIGKILL)
        publish(recorder.ring, 100, 100)
        wait_for(lambda: recorder.failed)
        assert recorder.why == "the recorder's process does not answer"
        # Its rows are in the file before the recorder is stopped.
        assert len(Record.load(recorder.folder)) >= 100
        recorder.stop("end")
        assert recorder.complete
    record = Record.load(recorder.folder)
    check_rows(record, 200)
    assert record.notes == ("the recorder ended early; the controller wrote the remaining rows",)


def test_a_recorder_that_was_asked_to_leave_drains_first(tmp_path):
    with make_recorder(tmp_path) as recorder:
        publish(recorder.ring, 0, 50)
        recorder._process.terminate()
        assert recorder._process.wait(20.0) == 0
        assert len(Record.load(recorder.folder)) == 50
        publish(recorder.ring, 50, 10)
    check_rows(Record.load(recorder.folder), 60)


def test_a_full_disk_is_reported_and_nothing_is_lost_when_there_is_room_again(tmp_path):
    with make_recorder(tmp_path) as recorder:
        publish(recorder.ring, 0, 100)
        wait_for(lambda: recorder.recorded == 100)
        size = (recorder.folder / "rows.bin").stat().st_size
        pid, (_, hard) = recorder._process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 1000, hard))
        publish(recorder.ring, 100, 100)
        wait_for(lambda: recorder.failed)
        assert "File too large" in recorder.why
        assert recorder.recorded == 100
        full = Record.load(recorder.folder)
        check_rows(full, 100)
        assert full.damage == ()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_for(lambda: not recorder.failed)
        assert recorder.recorded == 200
    assert recorder.complete
    assert recorder.note == ""
    check_rows(Record.load(recorder.folder), 200)


class FullDisk(ChunkFile):
    """A file on a disk that takes no more than some rows, until there is room again."""

    room = 10

    def write(self, first, rows):
        if first >= self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(first, rows)


def test_rows_wait_in_the_ring_while_the_disk_is_full(tmp_path):
    with Ring.create(SMALL, 64) as ring:
        drain = Drain(ring, tmp_path, FullDisk)
        publish(ring, 0, 10)
        assert drain.step()
        publish(ring, 10, 64)
        assert not drain.step()
        assert ring.recorder_error == errno.ENOSPC
        assert "No space left" in ring.recorder_note
        drain.file.room = 1000
        assert drain.step()
        assert (ring.recorder_error, ring.recorded, ring.lost) == (0, 74, 0)


def test_rows_that_the_ring_could_not_keep_are_counted(tmp_path):
    with Ring.create(SMALL, 64) as ring:
        drain = Drain(ring, tmp_path, FullDisk)
        publish(ring, 0, 10)
        drain.step()
        publish(ring, 10, 164)
        assert not drain.step()
        publish(ring, 174, 6)
        drain.file.room = 1000
        assert drain.step()
        assert (ring.recorded, ring.lost) == (180, 106)
    parts = [p for p in scan((tmp_path / "rows.bin").read_bytes()) if p.kind == ROWS]
    assert [part.first for part in parts] == [0, 116]


def test_a_drain_of_nothing_is_complete(tmp_path):
    with Ring.create(SMALL, 4) as ring:
        assert Drain(ring, tmp_path).finish("closed")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["end"] == {
        **{"reason": "closed", "rows": 0, "lost": 0, "unwritten": 0},
        "link": FIRST.hex(),
    }


@pytest.mark.extended
def test_a_loop_faster_than_real_time_waits_for_room(tmp_path):
    rig = make_rig(tmp_path, seconds=0.2)  # 50 rows
    clock = SteppedClock()
    with Recorder(rig, layout_of_rig(rig), servo=task_and_servo()[1], clock=clock) as recorder:
        for k in range(500):
            publish(recorder.ring, k, 1)
            recorder.relieve()
    assert recorder.complete
    record = Record.load(recorder.folder)
    check_rows(record, 500)
    assert record.manifest["clock_at_start"] == 1000.0


def test_records_never_write_over_another(tmp_path):
    rig = make_rig(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    arguments = (rig, layout_of_rig(rig), folder)
    with Recorder(*arguments, servo=task_and_servo()[1]) as recorder:
        publish(recorder.ring, 0, 10)
    with pytest.raises(RecordError, match="never overwritten"):
        Recorder(*arguments, servo=task_and_servo()[1])
    check_rows(Record.load(folder), 10)


class Idle:
    """In place of the recorder's process: ready, and over at once."""

    returncode = 0

    def __init__(self, name, _):
        with Ring.attach(name) as ring:
            ring.report(0, 0)

    def poll(self):
        return 0


def test_each_run_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("hil.record.recorder._start", Idle)
    make = Path.mkdir

    def beaten(path, *rest, **more):
        monkeypatch.setattr(Path, "mkdir", make)
        make(path, *rest, **more)  # by another process that begins at once
        make(path, *rest, **more)

    with make_recorder(tmp_path) as first, make_recorder(tmp_path) as second:
        assert first.folder != second.folder
    rig = dataclasses.replace(make_rig(tmp_path), name=255 * "ä")
    monkeypatch.setattr(Path, "mkdir", beaten)
    with Recorder(rig, layout_of_rig(rig), servo=task_and_servo()[1]) as recorder:
        assert recorder.folder.name.startswith(50 * "ä" + "-")
        assert recorder.folder.name.endswith("-2")


def test_a_name_that_no_folder_can_have_is_refused(tmp_path):
    rig = make_rig(tmp_path)
    settings = dataclasses.replace(rig.recorder, directory=tmp_path / ("a" * 300))
    for folder in (None, tmp_path / ("b" * 300), "b\0"):
        with pytest.raises(RecordError, match="a new or empty folder"):
            Recorder(
                dataclasses.replace(rig, recorder=settings),
                layout_of_rig(rig),
                folder,
                servo=task_and_servo()[1],
            )


def test_a_process_that_does_not_start_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    before = {path.name for path in _ring_folder().iterdir()}
    with pytest.raises(RecordError, match="a process that ended with status 1"):
        make_recorder(tmp_path)
    mine = {path.name for path in _ring_folder().iterdir() if f"-{os.getpid()}-" in path.name}
    assert mine <= before


def no_room(monkeypatch):
    """Let no new file be written by this process, as on a full disk; old ones keep their room."""
    opened = open

    def refuse(path, mode="r", *rest, **more):
        if "w" in mode:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, mode, *rest, **more)

    monkeypatch.setattr("hil.record._drain.open", refuse, raising=False)


def test_a_disk_without_any_room_takes_both_ends_of_the_manifest(tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text('{"rate": 250}')
    reserve_end(tmp_path, 13)
    no_room(monkeypatch)
    end_manifest(tmp_path, {"reason": "closed", "rows": 3})
    end_manifest(tmp_path, {"reason": "RECORDER", "counters": {"late": 1}})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == {
        "rate": 250,
        "end": {"reason": "RECORDER", "rows": 3, "counters": {"late": 1}},
    }
    with pytest.raises(OSError, match="No space left"):
        end_manifest(tmp_path, {"rows": 4})


def test_room_for_the_end_is_part_of_a_start(tmp_path, monkeypatch):
    opened = open

    def refuse(path, mode="r", *rest, **more):
        if "reserve" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, mode, *rest, **more)

    monkeypatch.setattr("hil.record._drain.open", refuse, raising=False)
    with pytest.raises(RecordError, match="No space left"):
        make_recorder(tmp_path)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("END", "RECORDER"),
        pytest.param("OVERSPEED", "OVERSPEED", marks=pytest.mark.extended),
    ],
)
def test_an_end_without_its_last_rows_is_the_recorders(tmp_path, monkeypatch, asked, told):
    limit_recorder(monkeypatch)
    recorder = make_recorder(tmp_path)
    publish(recorder.ring, 0, 100)
    wait_for(lambda: recorder.recorded == 100)
    size = (recorder.folder / "rows.bin").stat().st_size
    resource.prlimit(recorder._process.pid, resource.RLIMIT_FSIZE, (size, size))
    publish(recorder.ring, 100, 100)
    recorder.stop(asked, left=["axis `arm` may still be under power: a timeout"])
    end = read_manifest(recorder.folder)["end"]
    assert (end["reason"], end["rows"], end["unwritten"]) == (told, 100, 100)
    assert "File too large" in end["note"]
    assert end["left"] == ["axis `arm` may still be under power: a timeout"]
    assert end["left"][0] in Record.load(recorder.folder).notes
