"""Rates that the cycle of a rig holds in C, on emulated drives in a process of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hil.rig import load_rig
from hil.spine import BenchResult, bench_rig
from tests.benchmarks._timing import progress
from tests.hil.bench import divided
from tests.hil.spine.twelve import made

EXAMPLE = Path(__file__).parents[2] / "examples" / "rover_rig" / "rig.toml"
CASES = (("rover", 250.0), ("rover", 1000.0), ("four arms", 1000.0), ("four arms", 2000.0))
"""Rigs and rates, Hz."""

LENGTH = 60.0
"""Length of each run, s."""


def run_case(name: str, rate: float, length: float = LENGTH) -> BenchResult:
    """Measure a rig at a rate."""
    with tempfile.TemporaryDirectory() as folder:
        rover = name == "rover"
        rig = divided(load_rig(EXAMPLE), 2) if rover else load_rig(made(folder))
        return bench_rig(rig, rate, length)


def cycle_table() -> str:
    """Table of all cases."""
    head = "| rig | rate, Hz | cycles | skipped | stop | median | 99.9 % | longest | late, 99.9 % |"
    lines = [head, "| --- |" + " ---: |" * 3 + " --- |" + " ---: |" * 4]
    granted = []
    for name, rate in CASES:
        progress(f"cycle in C, {name}, {rate:g} Hz")
        found = run_case(name, rate)
        granted.append(found.scheduled and found.locked)
        times = (found.median, found.rare, found.longest, found.late)
        parts = [
            f"{name}, {found.axes} axes on {found.buses} buses",
            f"{rate:g}",
            str(found.cycles),
            str(found.skipped),
            found.reason.name,
            *(f"{1e6 * time:.0f}" for time in times),
        ]
        lines.append("| " + " | ".join(parts) + " |")
    words = (
        f"Runs of {LENGTH:g} s with [`concur-rig bench`](rig.md#rates), times in microseconds: "
        "duration of a cycle from its start to its last frame, with the wait for the reports, and "
        "lateness of its start. OPERATOR: the run lasted to its end. The emulated drives have the "
        "same processors as the loop. SCHED_FIFO and locked memory were "
        f"{'granted' if all(granted) else 'not granted in all runs'}."
    )
    return "\n".join([words, "", *lines])
