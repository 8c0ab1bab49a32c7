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
    from concur.control import TrackingLaw
    from hil.clock import Clock
    from hil.settings import Rig

START = 30.0
"""Longest time that the process may take to be ready, s."""
SILENCE = 3.0
"""Time without a report of the process after which recording counts as failed, s."""
LONGEST_NAME = 50
"""Characters of a rig's name in that of a folder: with four bytes each there is room for more."""


class Recorder:
    """Records every cycle of a run, in a process of its own.

    The process drains the ring every 50 ms and waits for the disk every 250 ms. If the controller
    is killed, it drains the rest and says so in the manifest. If it is killed itself, the file
    stays readable, `failed` tells, and `stop` writes what the ring still holds. While the disk is
    full, rows wait in the ring.

    Parameters
    ----------
    rig : Rig
        The rig; `[recorder]` says where records go and how long the ring is.
    layout : Layout
        What stands in a row.
    folder : str or os.PathLike, optional
        Folder of this record, which must not be there yet; named after the rig and the time in
        `directory` of `[recorder]` if not given.
    servo : TrackingLaw, optional
        Servo of the rig's task, if it has been built already.
    clock : Clock, optional
        The loop's clock; the machine's monotonic clock if not given.
    mode : str
        In which mode the loop runs, for the manifest.
    facts : mapping, optional
        What else the manifest is to keep.

    Attributes
    ----------
    ring : Ring
        Fill `ring.row` and call `ring.publish()` in each cycle.
    folder : Path
        Folder of the record.
    complete : bool
        After `stop`: whether every row is in the file.
    note : str
        After `stop`: what kept rows from the file; "" if nothing did.

    Raises
    ------
    RecordError
        If the folder cannot be made or the process does not start.
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
        servo = rig.task.servo() if servo is None else servo
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
        """Whether rows do not reach the file now: the disk is full, or the process is gone.

        They are kept in the ring meanwhile. Takes less than a microsecond.
        """
        ring = self.ring
        silence = time.monotonic() - ring.recorder_heartbeat
        return ring.recorder_error != 0 or silence > SILENCE

    @property
    def recorded(self) -> int:
        """Rows that the operating system has been given."""
        return self._recorded if self._stopped else self.ring.recorded

    @property
    def lost(self) -> int:
        """Rows that are in no file: the ring was overwritten before they were drained."""
        return self._lost if self._stopped else self.ring.lost

    @property
    def why(self) -> str:
        """What keeps rows from the file now, in words; "" if nothing does."""
        if self._stopped:
            return self.note
        if self.ring.recorder_error:
            return self.ring.recorder_note
        return "the recorder's process does not answer" if self.failed else ""

    def relieve(self, share: float = 0.5) -> None:
        """Wait until a share of the ring is free; for loops that run faster than real time.

        Parameters
        ----------
        share : float
            Share that may be in use. Nothing is waited for if recording has failed.
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

        A run that came to its END but whose record is not complete ends as RECORDER.

        Parameters
        ----------
        reason : str
            Why the run ended.
        counters : mapping, optional
            Quality of service.
        left : sequence of str
            One sentence for each drive that is not known to be out of the loop.
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
                end["recorder"] = "left early; the controller drained the rest"
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
        notes = getattr(error, "__notes__", ())  # of the loop: what it left behind
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
                    came="one that is not" if status is None else f"one that ended with {status}",
                    cure="Run `python -m hil.record._drain` to see what it says.",
                )
            time.sleep(0.1 * PERIOD)


def _make_folder(rig: Rig, folder: str | os.PathLike[str] | None) -> Path:
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in rig.name[:LONGEST_NAME]) or "rig"
    # The wall clock gives a name here, and nothing else.
    stem, number = f"{name}-{datetime.now():%Y%m%d-%H%M%S}", 1
    while True:
        own = rig.recorder.directory / (stem if number == 1 else f"{stem}-{number}")
        path = own if folder is None else Path(folder)
        try:
            path.mkdir(parents=True)
        except (OSError, ValueError) as error:
            taken = isinstance(error, FileExistsError) and path.is_dir()
            if taken and folder is None:  # by an earlier run, or by another one just now
                number += 1
                continue
            if not taken or any(path.iterdir()):
                raise RecordError(
                    str(path),
                    expected="a folder that can be made: a record never writes over another",
                    came=getattr(error, "strerror", None) or str(error),
                    cure="Name another folder, or set `directory` of `[recorder]`.",
                ) from error
        return path.resolve()


def _start(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start the process; away from the terminal, whose Ctrl-C is for the controller."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "hil.record._drain", name, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
