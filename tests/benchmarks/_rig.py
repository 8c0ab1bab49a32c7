"""What a cycle of the rig's loop costs its controller, against drives in processes of their own."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hil._torque import CycleTorque
from hil.controller import Controller, Mode, Outcome
from hil.controller._law import LoopLaw
from hil.emulator import EmulatorProcesses
from hil.quality import Histogram
from hil.rig import Rig, load_rig
from hil.session import SessionOptions, run_session
from tests.benchmarks._timing import progress

EXAMPLES = Path(__file__).parents[2] / "examples"
RIGS = {
    "rover, 5 axes, CiA 402": EXAMPLES / "rover_rig" / "rig.toml",
    "rover, 5 axes, MIT": EXAMPLES / "rover_rig" / "rig_mit.toml",
    "free-flyer, 6 axes, CiA 402": EXAMPLES / "floater_rig" / "rig.toml",
}
LENGTH = 20.0
"""Length of each run, s."""
RUNS = 3
"""Runs of each rig; the one with the least computing is shown, as other timings are."""

STAGES: dict[str, tuple[type, str]] = {
    "state": (Controller, "_estimate"),
    "tick": (LoopLaw, "evaluate"),
    "guard": (CycleTorque, "judge"),
    "record": (Controller, "_fill_row"),
}
"""Methods of the loop that are timed by themselves."""


@dataclass(frozen=True)
class RigRow:
    """One run of a rig.

    Parameters
    ----------
    rig : Rig
        The rig.
    outcome : Outcome
        How it went.
    stages : dict of str to Histogram
        Times of parts of the cycle.
    """

    rig: Rig
    outcome: Outcome
    stages: dict[str, Histogram]

    @property
    def share(self) -> float:
        """Median of the controller's own computing as a share of the period."""
        return self.outcome.quality.compute.quantile(0.5) * self.rig.loop.rate


@contextmanager
def _stages() -> Iterator[dict[str, Histogram]]:
    """Time parts of the cycle meanwhile."""
    found = {name: Histogram() for name in STAGES}
    with ExitStack() as stack:
        for name, (owner, method) in STAGES.items():
            watched = _watched(getattr(owner, method), found[name])
            stack.enter_context(mock.patch.object(owner, method, watched))
        yield found


def _watched(method: Callable[..., Any], into: Histogram) -> Callable[..., Any]:
    def watched(*given: Any) -> Any:
        before = time.perf_counter()
        result = method(*given)
        into.add(time.perf_counter() - before)
        return result

    return watched


def run_rig(path: Path, length: float = LENGTH, emulated: bool = True) -> RigRow:
    """Run an example against an emulated rig.

    Parameters
    ----------
    path : Path
        Rig file.
    length : float
        Length of the run, s.
    emulated : bool
        Whether drives are processes on the rig's bus; else all in this process and in simulated
        time.
    """
    rig = load_rig(path)
    free = dataclasses.replace(rig.operator, port=0)
    rig = dataclasses.replace(rig, buses=_own_port(rig), operator=free)
    with tempfile.TemporaryDirectory() as folder, _stages() as stages:
        wishes = SessionOptions(
            Mode.DRIVE if emulated else Mode.MOCK,
            duration=length,
            folder=Path(folder) / "record",
            heartbeat="auto",
            emulated=True,
        )
        if emulated:
            with EmulatorProcesses(rig) as emulator:
                result = run_session(rig, wishes, clock=emulator.clock)
        else:
            result = run_session(rig, wishes)
    return RigRow(rig, result.outcome, stages)


def _own_port(rig: Rig) -> Any:
    """Another port, so that a rig that is emulated elsewhere is not met."""
    options = dict(rig.buses[0].options)
    options["port"] = 20000 + time.monotonic_ns() % 20000
    return (dataclasses.replace(rig.buses[0], options=options),)


def rig_table() -> str:
    """Table of all example rigs."""
    head = (
        "| rig | cycles | late | lost | lateness: median, 99.9 % | compute: median, 99.9 % "
        "| of the period | state | tick | guard | record | transfer | compute, caches warm |"
    )
    lines = [head, "| --- |" + " ---: |" * 12]
    for name, path in RIGS.items():
        progress(f"rig, {name}")
        row = min((run_rig(path) for _ in range(RUNS)), key=lambda row: row.share)
        quality = row.outcome.quality
        if not row.outcome.done:
            raise RuntimeError(f"{name}: {row.outcome.reason.name}; measure on a quiet machine")
        parts = [
            name,
            str(quality.cycles),
            str(quality.late + quality.skipped),
            str(quality.lost),
            _two(quality.lateness),
            _two(quality.compute),
            f"{row.share:.1%}",
            *(_median(row.stages[stage]) for stage in ("state", "tick", "guard", "record")),
            _median(quality.transfer),
            _median(run_rig(path, 0.5 * LENGTH, emulated=False).outcome.quality.compute),
        ]
        lines.append("| " + " | ".join(parts) + " |")
    words = (
        f"The best of {RUNS} runs of {LENGTH:g} s in real time, drives in separate processes on a "
        "multicast bus of this machine, the rovers at 250 Hz, the free-flyer at 200 Hz, times in "
        "microseconds. *Compute* is the time of a cycle without waiting and without *transfer*, "
        "the time in python-can for sending and receiving; *tick* includes the tracking error, "
        "*guard* the policies. After a wait of some milliseconds caches are cold, most of all on "
        "a shared host; the last column is for cycles in simulated time, without waits."
    )
    return "\n".join([words, "", *lines])


def _median(histogram: Histogram) -> str:
    return f"{histogram.quantile(0.5) * 1e6:.0f}"


def _two(histogram: Histogram) -> str:
    return f"{_median(histogram)}, {histogram.quantile(0.999) * 1e6:.0f}"
