"""Ten minutes at 250 Hz: memory stays flat, and every cycle that came late is accounted for."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from hil.controller import Controller, Mode
from hil.emulator import EmulatorProcesses
from hil.latch import Reason, State
from hil.record import Record
from hil.rig import load_rig
from hil.session import SessionOptions, run_session

RIG = Path(__file__).parents[2] / "examples" / "rover_rig"
PAGE = os.sysconf("SC_PAGE_SIZE")


class _Weighed(Controller):
    """The controller, which notes its process's memory every second."""

    weights: list[int] = []  # noqa: RUF012 - one run at a time

    def _fill_row(self) -> None:
        super()._fill_row()
        if self.quality.cycles % 250 == 0:
            with open("/proc/self/statm", encoding="ascii") as file:
                self.weights.append(int(file.read().split()[1]) * PAGE)


def long_rig(folder: Path, seconds: float):
    """The rover's rig with a task as long as that: the same slalom, further."""
    for name in ("rig.toml", "task.toml"):
        (folder / name).write_text((RIG / name).read_text(encoding="utf-8"), encoding="utf-8")
    task = folder / "task.toml"
    text = task.read_text(encoding="utf-8")
    count = int(seconds / 5.0) + 3
    times = [5.0 * k for k in range(count)]
    points = [[1.5 * k, (0.0, 0.3, 0.0, -0.3)[k % 4]] for k in range(count)]
    text = re.sub(r"times = \[.*?\]", f"times = {times}", text, count=1, flags=re.DOTALL)
    text = re.sub(r"points = \[.*?\n\]", f"points = {points}", text, count=1, flags=re.DOTALL)
    text = re.sub(r"duration = 60\.0", f"duration = {seconds}", text)
    task.write_text(text, encoding="utf-8")
    rig = folder / "rig.toml"
    lines = rig.read_text(encoding="utf-8").splitlines()
    rig.write_text(
        "\n".join(line for line in lines if not line.startswith("certificate")), encoding="utf-8"
    )
    made = load_rig(rig)
    options = dict(made.bus.options) | {"port": 20000 + time.monotonic_ns() % 20000}
    # A shared machine may stand still for some tens of ms: tolerate this for as long as the
    # drives' own watchdogs do.
    patience = int(min(axis.watchdog for axis in made.axes) * made.loop.rate) - 1
    return dataclasses.replace(
        made,
        policies=dataclasses.replace(made.policies, max_consecutive_faults=patience),
        bus=dataclasses.replace(made.bus, options=options),
        operator=dataclasses.replace(made.operator, port=0),
    )


def soak(folder: Path, seconds: float):
    rig = long_rig(folder, seconds)
    _Weighed.weights = []
    wishes = SessionOptions(Mode.DRIVE, folder=folder / "record", heartbeat="auto", emulated=True)
    with EmulatorProcesses(rig) as emulator:
        result = run_session(rig, wishes, controller=_Weighed, clock=emulator.clock)
    return rig, result, Record.load(folder / "record"), _Weighed.weights


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_ten_minutes(tmp_path):
    rig, result, record, weights = soak(tmp_path, 600.0)
    quality = result.outcome.quality
    assert result.outcome.reason is Reason.END, quality.rows()
    assert np.abs(result.outcome.error).max() < 5e-3

    # Memory: nothing after the first half minute.
    settled = np.array(weights[30:], dtype=float)
    assert settled.max() - settled.min() < 1e6, settled[[0, -1]]

    # Cycles: all of them in the record, one after the other.
    assert result.complete
    np.testing.assert_array_equal(record["cycle"].ravel(), np.arange(1, quality.cycles + 1))

    # Deadlines: each had a cycle, or is counted as skipped.
    deadline = record["deadline"].ravel()
    steps = np.diff(deadline) / rig.loop.period
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
    assert quality.skipped == int(np.round(steps - 1.0).sum())
    lateness = record["time"].ravel() - deadline
    assert quality.late == int((lateness > 0.5 * rig.loop.period).sum())
    running = record["state"].ravel() == State.RUN
    assert running.sum() + quality.skipped >= 600.0 * rig.loop.rate
