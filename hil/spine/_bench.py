"""The cycle in C on this machine, with emulated drives: which rate it holds, and how it stops.

Three processes: the loop and the drives, both in C without threads, and this supervisor. Links are
pairs of datagram sockets that carry frames of CAN; the loop and the supervisor share a memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import mmap
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil._concur import TrackingLaw, tracking_law
from hil._plan import sample_plan
from hil.clock import MonotonicClock
from hil.errors import RigError
from hil.quality import Histogram, Quality
from hil.reasons import Reason, State
from hil.record.recorder import Recorder
from hil.record.rows import Layout
from hil.settings import Rig
from hil.spine._build import build
from hil.spine._memory import REASONS, count, emulated_of, reference_of, shared_of

STATES = {int(state): state for state in State}

BEAT = 0.01
"""Time between heartbeats of the supervisor, s."""

SKIPPED = 1e-3
"""Largest fraction of skipped cycles at which a machine holds a rate."""

PATIENCE = 10.0
"""Time for the drives to be enabled, and for processes to end, s."""

WINDOW = 0.6
"""Receive window at another rate than that of the rig, as a fraction of the period."""


@dataclass(frozen=True)
class BenchResult:
    """Statistics of the loop of a rig on this machine.

    Parameters
    ----------
    rig : str
        Name of the rig.
    rate : float
        Rate of the cycles, Hz.
    axes, buses : int
        Numbers of axes and buses.
    cycles, skipped : int
        Number of cycles, and of deadlines without one.
    median, rare, longest : float
        Duration of a cycle from its start to its last frame, with the wait for reports: median,
        99.9 % and longest, s.
    late : float
        Lateness of the start of a cycle, 99.9 %, s.
    scheduled, locked : bool
        Whether SCHED_FIFO and locked memory were granted.
    ran : bool
        Whether the law ran.
    reason : Reason
        Reason of the stop; OPERATOR or END: the run lasted to its end.
    record : str
        Folder of the record; "" without one.
    complete : bool
        Whether the record has every cycle.
    """

    rig: str
    rate: float
    axes: int
    buses: int
    cycles: int
    skipped: int
    median: float
    rare: float
    longest: float
    late: float
    scheduled: bool
    locked: bool
    ran: bool
    reason: Reason
    record: str = ""
    complete: bool = True

    @property
    def passed(self) -> bool:
        """Whether the machine holds the rate: the law ran to its end, nearly without skips."""
        ended = self.reason in (Reason.OPERATOR, Reason.END)
        held = self.skipped <= SKIPPED * self.cycles
        return self.ran and ended and held and self.complete

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Numbers and texts.
        """
        return {**dataclasses.asdict(self), "reason": self.reason.name, "passed": self.passed}

    def show(self, console: Any) -> None:
        """Print a few lines.

        Parameters
        ----------
        console : rich.console.Console
            Prints.
        """
        share = self.skipped / max(1, self.cycles)
        grants = [
            f"{what} {'granted' if given else 'not granted'}"
            for what, given in (("SCHED_FIFO", self.scheduled), ("locked memory", self.locked))
        ]
        for line in (
            f"{self.rig}: {self.axes} axes on {self.buses} buses at {self.rate:g} Hz",
            f"{self.cycles} cycles, {self.skipped} skipped ({100.0 * share:.2g} %)",
            f"duration of a cycle: median {1e6 * self.median:.0f} us, 99.9 % "
            f"{1e6 * self.rare:.0f} us, longest {1e6 * self.longest:.0f} us",
            f"lateness of its start: 99.9 % {1e6 * self.late:.0f} us",
            ", ".join(grants),
            f"stop: {self.reason.name}, {self.reason.sentence}"
            + ("" if self.ran else "; the law did not run"),
            f"this machine {'holds' if self.passed else 'does not hold'} the rate",
            *(
                [f"record: {self.record}{'' if self.complete else ' (incomplete)'}"]
                * bool(self.record)
            ),
        ):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bench:
    """Loop and emulated drives of a rig as processes; `start` makes one, `close` ends it.

    Attributes
    ----------
    shared, emulated : ctypes.Structure
        Memory shared with the loop, and with the drives.
    loop, drives : subprocess.Popen
        The processes.
    ran : bool
        Whether the law ran.
    """

    def __init__(self, rig: Rig, folder: Path, seconds: float, out: Path | None = None) -> None:
        self.rig, self.out = rig, out
        self.recorder: Recorder | None = None
        where = f"rig `{rig.name}`, measurement"
        self.law: TrackingLaw = tracking_law(rig.task.law, f"{where}, law")
        self.shared: Any = None  # structures of C
        self.emulated: Any = None
        self.ran = False
        self._stack = contextlib.ExitStack()
        try:
            self._open(folder, seconds, where)
        except BaseException:
            self.close()
            raise

    def _open(self, folder: Path, seconds: float, where: str) -> None:
        """Build and start the processes."""
        rig = self.rig
        layout = Layout.of([axis.name for axis in rig.axes], self.law)
        build(rig, folder, layout, where, programs=True)
        duration = min(seconds, rig.task.duration)
        plan = sample_plan(rig.task, self.law, rig.loop.period, duration)
        reference_of(plan).tofile(folder / "reference")
        ring = Path("-")
        if self.out is not None:
            facts = {"compiled": True, "duration": plan.duration, "commission": False}
            clock, mode = MonotonicClock(), "drive"
            self.recorder = self._stack.enter_context(
                Recorder(rig, layout, self.out, servo=self.law, clock=clock, mode=mode, facts=facts)
            )
            ring = self.recorder.ring.path
        self.shared = self._memory(folder / "shared", shared_of(rig, self.law))
        self.emulated = self._memory(folder / "emulated", emulated_of(rig))
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in rig.buses]
        with contextlib.ExitStack() as ends:
            for end in (end for pair in pairs for end in pair):
                ends.enter_context(end)
            here, there = zip(*([end.fileno() for end in pair] for pair in pairs), strict=True)
            watchdog = min(axis.watchdog for axis in rig.axes)
            self.drives = self._start(folder / "emulate", ["emulated", f"{watchdog!r}"], there)
            with contextlib.suppress(OSError, AttributeError):  # drives have their own processors
                priority = os.sched_param(rig.loop.priority)
                os.sched_setscheduler(self.drives.pid, os.SCHED_FIFO, priority)
            self._await(lambda: self.emulated.ready, "emulated drives")
            words = ["shared", "reference", str(ring), str(rig.loop.priority)]
            words += [str(int(rig.loop.lock_memory)), f"{rig.operator.timeout!r}"]
            self.loop = self._start(folder / "loop", words, here)

    def _memory(self, path: Path, kind: type[ctypes.Structure]) -> Any:
        path.write_bytes(bytes(ctypes.sizeof(kind)))
        with path.open("r+b") as file:
            return kind.from_buffer(mmap.mmap(file.fileno(), 0))

    def _start(
        self, program: Path, words: Sequence[str], descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [program, *words, *map(str, descriptors)],
            cwd=program.parent,
            pass_fds=descriptors,
        )
        self._stack.callback(_end, process)
        return process

    def _await(self, done: Any, what: str) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > until:
                raise RigError(
                    f"rig `{self.rig.name}`, measurement",
                    expected=f"{what} within {PATIENCE:g} s",
                    came="no answer",
                    cure="End other programs, or measure on a machine with more processors.",
                )
            time.sleep(BEAT)

    def beat(self, seconds: float, until: Any = lambda: False) -> None:
        """Send heartbeats for a time, while the loop runs and `until` is false."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.loop.poll() is None and not until():
            self.shared.heartbeat += 1
            time.sleep(BEAT)

    @property
    def state(self) -> State:
        """State of the rig."""
        return STATES[self.shared.output.state]

    def run(self) -> bool:
        """Arm the drives and start the law; return whether it runs."""
        self.shared.run = 1
        self.beat(PATIENCE, lambda: self.state in (State.RUN, State.STOP))
        runs = self.state is State.RUN
        self.ran = runs or self.shared.output.reason == Reason.END
        return runs

    def stop(self) -> None:
        """Stop the rig, and wait for the end of the loop."""
        self.shared.stop, self.shared.release = Reason.OPERATOR, 1
        self.beat(PATIENCE)

    def result(self) -> BenchResult:
        """Statistics of the loop so far; they complete the record."""
        shared, output, recorder = self.shared, self.shared.output, self.recorder
        duration = Histogram(np.array(shared.duration, dtype=np.int64), shared.longest)
        lateness = Histogram(np.array(shared.lateness, dtype=np.int64), shared.latest)
        reason = REASONS[output.reason]
        if recorder is not None:
            counters = Quality()
            count(shared, counters)
            recorder.stop(reason.name, counters.to_dict())
        return BenchResult(
            self.rig.name,
            self.rig.loop.rate,
            len(self.rig.axes),
            len(self.rig.buses),
            shared.cycles,
            shared.skipped,
            duration.quantile(0.5),
            duration.quantile(0.999),
            duration.largest,
            lateness.quantile(0.999),
            bool(shared.scheduled),
            bool(shared.locked),
            self.ran,
            reason,
            "" if recorder is None else str(recorder.folder),
            recorder is None or recorder.complete,
        )

    def close(self) -> None:
        """End the processes."""
        if self.emulated is not None:
            self.emulated.end = 1
        self._stack.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def started(rig: Rig, seconds: float, out: Path | None = None) -> Iterator[Bench]:
    """Processes of a rig in a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="concur-rig-") as name,
        Bench(rig, Path(name), seconds, out) as bench,
    ):
        yield bench


def bench_rig(rig: Rig, rate: float | None, seconds: float, out: Path | None = None) -> BenchResult:
    """Measure which rate the cycle of a rig holds on this machine, on emulated drives.

    Parameters
    ----------
    rig : Rig
        The rig.
    rate : float or None
        Rate, Hz; None: that of the rig.
    seconds : float
        Duration, s; a shorter task ends before it.
    out : Path, optional
        Folder of a record of the run, for `replay`; default: no record.

    Returns
    -------
    BenchResult
        Cycles, their durations, and what the system granted.

    Raises
    ------
    RigError
        If there is no compiler, or the rig cannot be measured.
    """
    other = rate is not None and rate != rig.loop.rate
    if other and out is not None:
        raise RigError(
            f"rig `{rig.name}`, measurement",
            expected=f"the rate of the rig file, {rig.loop.rate:g} Hz, in a record",
            came=f"{rate:g} Hz",
            cure="Set `rate` of `[loop]` in a copy of the rig file, which the record keeps.",
        )
    if rate is not None and other:
        window = min(rig.loop.receive_window, WINDOW / rate)
        loop = dataclasses.replace(rig.loop, rate=rate, receive_window=window)
        rig = dataclasses.replace(rig, loop=loop)
    if out is None:  # emulated drives report when the machine runs their process
        jitter = max(rig.emulator.jitter, rig.loop.receive_window)
        rig = dataclasses.replace(rig, emulator=dataclasses.replace(rig.emulator, jitter=jitter))
    with started(rig, seconds + PATIENCE, out) as bench:
        if bench.run():
            bench.beat(seconds, lambda: bench.state is not State.RUN)
        bench.stop()
        return bench.result()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, if it has not ended."""
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
