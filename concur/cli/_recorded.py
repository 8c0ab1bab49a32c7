"""Files of recorded runs, read without their task."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concur.control import Output
from concur.errors import DescriptionError
from concur.files import read_bytes
from concur.formats import load
from concur.multibody import Mechanism


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
    import h5py

    path = Path(name) / "run.h5" if Path(name).is_dir() else Path(name)
    cure = "`concur track TASK` writes run.h5 into the folder of its results."
    data = read_bytes(path, "the file of a run, such as out/rover_arm/run.h5", cure, largest=None)
    try:
        with h5py.File(io.BytesIO(data)) as file:
            values = {key: np.array(file[key], dtype=float) for key in arrays}
            columns = {key: _columns(file[key], key) for key in values}
            robot, outputs = (file[key][()].decode() for key in ("robot", "outputs"))
            task, plant = file.attrs.get("task", ""), file.attrs["plant"]
            stopped = file.attrs.get("stopped", "")
    except (OSError, KeyError, ValueError, AttributeError) as problem:
        raise DescriptionError(
            str(path),
            expected="the file of a run with its robot, as this version of concur writes it",
            came=f"another file ({problem})",
            cure="Run `concur track` again.",
            file=str(path),
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "robot.toml"
        description.write_text(robot, encoding="utf-8")
        mechanism = load(description)
    made = tuple(Output(**fields) for fields in json.loads(outputs))
    return Recorded(str(task or plant), mechanism, made, values, columns, str(stopped))


def _columns(data: Any, name: str) -> list[tuple[str, str]]:
    if "columns" not in data.attrs:
        return [(name, data.attrs["unit"])]
    return list(zip(data.attrs["columns"], data.attrs["units"], strict=True))
