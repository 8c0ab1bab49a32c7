"""The lock of a bus is a regular file, never the target of another user's link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hil.emulator._lock import BusLock
from hil.errors import BusError
from hil.rig import BusSettings


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
