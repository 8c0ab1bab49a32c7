"""A rig without hardware, its layout, and records of it."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np

import hil.record.recorder
from concur.io import load_task
from hil.record._chunks import ChunkFile
from hil.record._drain import ROWS_FILE, end_manifest, opening_of, read_manifest_or_nothing
from hil.record.rows import Layout
from hil.rig import Axis, BusSettings, RecorderSettings, Rig

ROOT = Path(__file__).parent.parent.parent
TASK = ROOT / "examples" / "rover_arm.toml"
SMALL = Layout(("wheel", "arm"), nq=3, ns=2, pose_size=2, size=2)


@functools.cache
def task_and_servo():
    task = load_task(TASK)
    return task, task.servo


def make_rig(folder, seconds=20.0, **axis):
    """A rig whose file is in the folder, with the axes of the rover."""
    task, servo = task_and_servo()
    path = Path(folder) / "rig.toml"
    path.write_text('name = "rover"\n')
    limits = {"torque_limit": 20.0, "torque_rate_limit": 2e3, "speed_limit": 15.0, **axis}
    axes = tuple(
        Axis(name, "cia402", node, **limits)
        for node, name in enumerate(servo.model.control_names, 1)
    )
    settings = RecorderSettings(Path(folder) / "records", seconds)
    return Rig("rover", path, task, axes, (BusSettings("virtual", "x"),), recorder=settings)


def layout_of_rig(rig):
    return Layout.of([axis.name for axis in rig.axes], task_and_servo()[1])


def write_rows(folder, layout, *parts):
    """Write rows, in parts with the number of the first, as the recorder of this manifest would."""
    manifest = read_manifest_or_nothing(folder)
    opening = opening_of(layout.to_dict(), manifest)
    (folder / ROWS_FILE).unlink(missing_ok=True)
    file = ChunkFile(folder / ROWS_FILE, opening, layout.width)
    for first, rows in parts:
        file.write(first, memoryview(np.ascontiguousarray(rows).tobytes()))
    file.close()
    if "end" in manifest:
        end_manifest(folder, {"link": file.link.hex()})


def numbered(layout, first, count):
    """Rows whose entries all equal their number."""
    return np.arange(first, first + count, dtype=float)[:, None] + np.arange(layout.width) / 1024


def limit_recorder(monkeypatch, size=None):
    """Let recorders wait briefly for a full disk, which takes so many bytes."""
    drain = (
        "import resource, sys, hil.record._drain as drain\n"
        f"size = {size}\n"
        "if size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
        "drain.PATIENCE = 0.2\n"
        "sys.exit(drain.main(*sys.argv[1:]))\n"
    )

    def start(name, folder):
        return subprocess.Popen([sys.executable, "-c", drain, name, str(folder)], cwd=ROOT)

    monkeypatch.setattr(hil.record.recorder, "_start", start)
