"""Files of recorded runs, read without their task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concur.formats import recorded_robot
from concur.hdf5 import hdf5_file
from concur.outputs import Output
from concur.robot import Mechanism


@dataclass(frozen=True, eq=False)
class Recorded:
    """Robot, outputs and arrays of a recorded run; name and unit of each column by array."""

    name: str
    robot: Mechanism
    outputs: tuple[Output, ...]
    arrays: dict[str, np.ndarray]
    columns: dict[str, list[tuple[str, str]]]
    stopped: str  # why the run ended early


def is_run(name: str) -> bool:
    """Whether a name is that of a recorded run: of its file, or of the folder of its results."""
    return Path(name).is_dir() or Path(name).suffix == ".h5"


def read_recorded(name: str, arrays: Iterable[str]) -> Recorded:
    """Read arrays of a run from its file, or from the folder of its results."""
    path = Path(name) / "run.h5" if Path(name).is_dir() else Path(name)
    expected = "the file of a run with its robot, as this version of concur writes it"
    cure = "`concur track TASK` writes run.h5 into the folder of its results."
    with hdf5_file(path, expected, cure) as file:
        facts = file.attributes()
        if "plant" not in facts:
            file.refuse("another file (no attribute `plant`)")
        mechanism, made = recorded_robot(file)
        columns = {key: file.columns(key) for key in arrays}
        widths = {key: _width(key, mechanism, columns[key]) for key in columns}
        values = file.table(widths)
    title, stopped = facts.get("task", "") or facts["plant"], facts.get("stopped", "")
    return Recorded(str(title), mechanism, made, values, columns, str(stopped))


def _width(name: str, robot: Mechanism, columns: list[tuple[str, str]]) -> int | None:
    """Number of columns of an array; None for one number per row."""
    sizes = {"q": robot.nq, "v": robot.nv, "t": None, "margin": None}
    return sizes.get(name.removesuffix("_range"), len(columns))
