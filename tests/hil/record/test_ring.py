"""The ring: readers get complete rows as written, or the number of lost rows."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hil.errors import RecordError
from hil.record.ring import Ring, _ring_folder, _sweep
from tests.hil._records import ROOT, SMALL, numbered

# Writes rows whose entries are all equal, as fast as it can, until it is killed.
WRITER = """
import sys
from hil.record.ring import Ring
from hil.record.rows import Layout
ring = Ring.create(Layout(("wheel", "arm"), nq=3, ns=2, pose_size=2, size=2), int(sys.argv[1]))
print(ring.name, flush=True)
k = 0
while True:
    ring.row[:] = k
    ring.publish()
    k += 1
"""


@pytest.fixture
def ring():
    with Ring.create(SMALL, 8) as ring:
        yield ring


def publish(ring, rows):
    for row in rows:
        ring.row[:] = row
        ring.publish()


def start_writer(rows):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(rows)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def end_writer(process):
    process.kill()
    _, errors = process.communicate()
    return errors


def test_rows_come_as_they_were_written(ring):
    with Ring.attach(ring.name) as reader:
        assert reader.layout == SMALL
        assert reader.last() is None
        rows = numbered(SMALL, 0, 5)
        publish(ring, rows)
        taken, after, lost = reader.take(0)
        np.testing.assert_array_equal(taken, rows)
        assert (after, lost) == (5, 0)
        np.testing.assert_array_equal(reader.last(), rows[-1])
        again, after, lost = reader.take(5)
        assert (len(again), after, lost) == (0, 5, 0)


def test_overwritten_rows_are_counted(ring):
    publish(ring, numbered(SMALL, 0, 21))
    with Ring.attach(ring.name) as reader:
        taken, after, lost = reader.take(3)
        assert (after, lost) == (21, 10)
        np.testing.assert_array_equal(taken, numbered(SMALL, 13, 8))
        some, after, lost = reader.take(15, most=2)
        assert (after, lost) == (17, 0)
        np.testing.assert_array_equal(some, numbered(SMALL, 15, 2))


def test_a_reader_from_the_future_gets_nothing(ring):
    publish(ring, numbered(SMALL, 0, 3))
    taken, after, lost = ring.take(7)
    assert (len(taken), after, lost) == (0, 7, 0)


def test_a_row_that_is_being_overwritten_is_lost_and_not_torn(ring):
    publish(ring, numbered(SMALL, 0, 8))
    # The writer has begun with row 8, in the place of row 0, and has not published it.
    ring._stamps[0] = 0
    ring._table[0, :3] = -1.0
    taken, after, lost = ring.take(0)
    assert (after, lost) == (8, 1)
    np.testing.assert_array_equal(taken, numbered(SMALL, 1, 7))


def test_the_row_is_the_same_array_in_every_cycle(ring):
    views = SMALL.views(ring.row)
    for k in range(20):
        views["torque"][:] = k
        ring.publish()
    assert (SMALL.views(ring.last())["torque"] == 19.0).all()


def test_rows_of_another_process_are_never_torn():
    process, name = start_writer(16)
    try:
        with Ring.attach(name) as reader:
            since = seen = missed = 0
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                rows, after, lost = reader.take(since)
                numbers = np.arange(since + lost, after)
                assert (rows == numbers[:, None]).all()
                seen, missed, since = seen + len(rows), missed + lost, after
            assert seen > 100
            assert seen + missed == since
            assert missed > 0  # the ring is short: the writer overtook the reader
    finally:
        errors = end_writer(process)
    assert errors == ""


def test_a_ring_outlives_its_killed_writer_and_is_then_removed():
    process, name = start_writer(64)
    reader = Ring.attach(name)
    assert reader.writer_alive
    # Any ring that is created, also by another process, removes the names of dead writers' rings.
    assert (_ring_folder() / name).exists()
    time.sleep(0.05)
    process.kill()
    deadline = time.monotonic() + 10.0
    while reader.writer_alive and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, 0)  # a zombie, whose number is still taken
    assert not reader.writer_alive
    process.wait()
    assert not reader.writer_alive
    rows, after, lost = reader.take(reader.written - 10)
    assert lost == 0
    assert (rows[:, 0] == np.arange(after - 10, after)).all()
    reader.close()
    assert not (_ring_folder() / name).exists()
    assert end_writer(process) == ""  # no resource tracker complains


def test_rings_of_dead_writers_are_swept():
    process, name = start_writer(64)
    _sweep()
    assert (_ring_folder() / name).exists()  # its writer lives
    process.kill()
    process.wait()
    _sweep()
    assert not (_ring_folder() / name).exists()
    assert end_writer(process) == ""


def test_a_writer_that_forgets_to_close_leaves_nothing_behind():
    code = WRITER.partition("k = 0")[0]
    ended = subprocess.run(
        [sys.executable, "-c", code, "8"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    assert not (_ring_folder() / ended.stdout.strip()).exists()


def test_a_ring_that_was_closed_is_gone():
    ring = Ring.create(SMALL, 4)
    reader = Ring.attach(ring.name)
    publish(ring, numbered(SMALL, 0, 2))
    ring.close()
    ring.close()
    assert reader.closed
    assert len(reader.take(0)[0]) == 2
    reader.close()
    with pytest.raises(RecordError, match="Start the controller first"):
        Ring.attach(ring.name)


@pytest.mark.parametrize("name", ["", "../etc/passwd", ".hidden", "a/b"])
def test_invalid_names_are_rejected(name):
    with pytest.raises(RecordError, match="a name of a ring"):
        Ring.attach(name)


def test_files_that_are_no_ring_are_refused():
    path = _ring_folder() / f"concur-ring-{os.getpid()}-none"
    try:
        for size in (10, 5000):
            path.write_bytes(bytes(size))
            with pytest.raises(RecordError, match="a ring of a running controller"):
                Ring.attach(path.name)
    finally:
        path.unlink()


def test_a_name_is_taken_once(ring):
    with pytest.raises(RecordError, match="Choose another name"):
        Ring.create(SMALL, 4, ring.name)


def test_a_ring_of_one_row_is_refused():
    with pytest.raises(RecordError, match="at least 2 rows"):
        Ring.create(SMALL, 1)


def test_memory_that_is_not_there_is_an_error_and_no_signal(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = set(_ring_folder().iterdir())
    with pytest.raises(RecordError, match="Set `seconds` of"):
        Ring.create(SMALL, 100)
    assert {p for p in _ring_folder().iterdir() if str(os.getpid()) in p.name} <= before


def test_words_of_the_recorder_reach_the_loop(ring):
    with Ring.attach(ring.name) as reader:
        assert not ring.recorder_ready
        reader.report(5, 1, 28, "disk: full")
        assert ring.recorder_ready
        assert (ring.recorded, ring.lost, ring.recorder_error) == (5, 1, 28)
        assert ring.recorder_note == "disk: full"
        reader.report(6, 1)
        assert ring.recorder_error == 0
        assert ring.recorder_note == "disk: full"
        assert 0.0 <= time.monotonic() - ring.recorder_heartbeat < 60.0
