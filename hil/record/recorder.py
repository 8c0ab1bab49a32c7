"""The recorder of a run: a ring that the loop writes, and a process that drains it to a file."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hil.errors import RecordError
from hil.reasons import Reason
from hil.record._drain import PATIENCE, PERIOD, UNWRITTEN, Drain, end_manifest, release_end
from hil.record.copies import save_copies
from hil.record.manifest import make_manifest, write_manifest
from hil.record.ring import Ring
from hil.record.rows import Layout

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.clock import Clock
    from hil.settings import Rig

START = 30.0
"""Largest start-up time of the process, s."""
SILENCE = 3.0
"""Time without a report of the process after which recording counts as failed, s."""
LONGEST_NAME = 50
"""Largest number of characters of a rig's name in the name of a folder: up to 200 bytes."""


class Recorder:
    """Records every cycle of a run, through a separate process.

    The process drains the ring every 50 ms and synchronizes with the disk every 250 ms. If the
    controller is killed, the process writes the remaining rows and notes it in the manifest. If the
    process is killed, the file stays readable, `failed` becomes true, and `stop` writes the
    remaining rows. While the disk is full, rows wait in the ring.

    Parameters
    ----------
    rig : Rig
        The rig; its table `[recorder]` contains the folder of records and the length of the ring.
    layout : Layout
        Layout of the rows.
    folder : str or os.PathLike, optional
        Folder of this record, which must not exist or be empty; default: a folder in `directory` of
        `[recorder]`, named after the rig and the time.
    servo : TrackingLaw, optional
        Servo of the rig's task, if it has been built already.
    clock : Clock, optional
        The loop's clock; default: the machine's monotonic clock.
    mode : str
        Mode of the loop, for the manifest.
    facts : mapping, optional
        Further entries for the manifest.

    Attributes
    ----------
    ring : Ring
        Fill `ring.row` and call `ring.publish()` in each cycle.
    folder : Path
        Folder of the record.
    complete : bool
        After `stop`: whether every row is in the file.
    note : str
        After `stop`: error that kept rows from the file; "" if there was none.

    Raises
    ------
    RecordError
        If the folder cannot be created or the process does not start.
    """

    def __init__(
        self,
        rig: Rig,
        layout: Layout,
        folder: str | os.PathLike[str] | None = None,
        *,
        servo: TrackingLaw | None = None,
        clock: Clock | None = None,
        mode: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        servo = rig.task.law if servo is None else servo
        self.complete = False
        self.note = ""
        self._stopped = False
        self.folder = _make_folder(rig, folder)
        rows = max(math.ceil(rig.recorder.seconds * rig.loop.rate), 2)
        self.ring = Ring.create(layout, rows)
        self._recorded = self._lost = 0
        try:
            write_manifest(
                self.folder,
                make_manifest(
                    rig,
                    layout,
                    servo,
                    clock=clock,
                    mode=mode,
                    ring=self.ring.name,
                    files=save_copies(rig, self.folder),
                    facts=facts,
                ),
            )
            self._process = _start(self.ring.name, self.folder)
            self._wait_until_ready()
        except BaseException:
            self.ring.close()
            raise

    @property
    def failed(self) -> bool:
        """Whether rows presently do not reach the file: the disk is full, or the process has ended.

        The rows wait in the ring. The call takes less than a microsecond.
        """
        ring = self.ring
        silence = time.monotonic() - ring.recorder_heartbeat
        return ring.recorder_error != 0 or silence > SILENCE

    @property
    def recorded(self) -> int:
        """Number of rows that the operating system has accepted."""
        return self._recorded if self._stopped else self.ring.recorded

    @property
    def lost(self) -> int:
        """Number of lost rows: they were overwritten in the ring before they were drained."""
        return self._lost if self._stopped else self.ring.lost

    @property
    def why(self) -> str:
        """Error that presently keeps rows from the file, as text; "" if there is none."""
        if self._stopped:
            return self.note
        if self.ring.recorder_error:
            return self.ring.recorder_note
        return "the recorder's process does not answer" if self.failed else ""

    def relieve(self, share: float = 0.5) -> None:
        """Wait until a part of the ring is free; for loops that run faster than real time.

        Parameters
        ----------
        share : float
            Largest fraction in use after the wait. Returns at once if recording has failed.
        """
        ring = self.ring
        while ring.written - ring.recorded > share * ring.rows and not self.failed:
            time.sleep(0.2 * PERIOD)

    def stop(
        self,
        reason: str = "",
        counters: Mapping[str, Any] | None = None,
        left: Sequence[str] = (),
    ) -> None:
        """Drain the ring, complete the manifest, and end the process. Never raises.

        If the record of a run with reason END is incomplete, its reason becomes RECORDER.

        Parameters
        ----------
        reason : str
            Reason for the end of the run.
        counters : mapping, optional
            Loop statistics.
        left : sequence of str
            One sentence for each drive that did not confirm its release.
        """
        if self._stopped:
            return
        ring = self.ring
        ring.end()
        deadline = time.monotonic() + PATIENCE + 10.0
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2 * PERIOD)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        end: dict[str, Any] = {"reason": reason or "closed", "counters": dict(counters or {})}
        if left:
            end["left"] = list(left)
        try:
            if ring.recorder_done:
                self.complete = True
            elif self._process.returncode != UNWRITTEN:
                end["recorder"] = "ended early; the controller wrote the remaining rows"
                self.complete = Drain(ring, self.folder).finish("closed")
            self.complete = self.complete and not ring.lost
            if not self.complete:
                end["note"] = ring.recorder_note
                if reason == Reason.END.name:
                    end["reason"] = Reason.RECORDER.name
            end_manifest(self.folder, end)
        except OSError as error:
            self.complete = False
            self.note = f"{self.folder}: {error.strerror or error}"
        self._recorded, self._lost = ring.recorded, ring.lost
        release_end(self.folder)
        if not self.complete:
            lost = f"{self._lost} rows were overwritten before they were drained"
            self.note = self.note or ring.recorder_note or lost
        self._stopped = True
        ring.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        notes = getattr(error, "__notes__", ())  # drives that did not confirm their release
        self.stop("" if kind is None else f"{kind.__name__}: {error}", left=notes)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START
        while not self.ring.recorder_ready:
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
                raise RecordError(
                    f"recorder of {self.folder}",
                    expected=f"a process that is ready within {START:g} s",
                    came="a process that is not ready"
                    if status is None
                    else f"a process that ended with status {status}",
                    cure="Run `python -m hil.record._drain` to see its error.",
                )
            time.sleep(0.1 * PERIOD)


def _make_folder(rig: Rig, folder: str | os.PathLike[str] | None) -> Path:
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in rig.name[:LONGEST_NAME]) or "rig"
    # The wall clock is used only for the name.
    stem, number = f"{name}-{datetime.now():%Y%m%d-%H%M%S}", 1
    while True:
        own = rig.recorder.directory / (stem if number == 1 else f"{stem}-{number}")
        path = own if folder is None else Path(folder)
        try:
            path.mkdir(parents=True)
        except (OSError, ValueError) as error:
            exists = isinstance(error, FileExistsError) and path.is_dir()
            if exists and folder is None:  # made by an earlier or a concurrent run
                number += 1
                continue
            if not exists or any(path.iterdir()):
                raise RecordError(
                    str(path),
                    expected="a new or empty folder: records are never overwritten",
                    came=getattr(error, "strerror", None) or str(error),
                    cure="Choose another folder, or set `directory` of `[recorder]`.",
                ) from error
        return path.resolve()


def _start(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start the process in a new session, as Ctrl-C in the terminal must not end it."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "hil.record._drain", name, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
