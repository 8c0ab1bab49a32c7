"""Records as MCAP files: which quantities are on which topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hil._concur import ConcurError, Quantity
from hil._concur import write_mcap as write
from hil.errors import RecordError

TOPICS: dict[str, tuple[str, ...]] = {
    "state": ("q", "s", "position", "velocity", "pose_age"),
    "reference": ("elapsed", "pose", "twist", "acceleration", "error"),
    "torque": ("demand", "torque", "measured", "residual", "allowed"),
    "guard": ("state", "reason", "axis", "tick", "flags", "enabled", "fault"),
    "timing": ("cycle", "time", "deadline", "command_time", "compute", "late", "lost", "clipped"),
    "reports": ("report_time", "doubtful", "reports", "invalid"),
}
"""Quantities of each topic; all others belong to the topic `other`."""


class Rows(Protocol):
    """The part of a record that is exported."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...

    @property
    def index(self) -> NDArray[np.int64]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def __getitem__(self, name: str) -> NDArray[np.float64]: ...

    def columns(self, name: str) -> list[tuple[str, str]]: ...


def write_mcap(record: Rows, path: str | PathLike[str]) -> Path:
    """Write a record as an MCAP file, see `Record.save_mcap`."""
    known = {name for names in TOPICS.values() for name in names}
    groups = {**TOPICS, "other": tuple(name for name in record.names if name not in known)}
    topics = {
        topic: {
            name: Quantity(record[name], record.columns(name) or [(name, "1")])
            for name in names
            if name in record.names
        }
        for topic, names in groups.items()
    }
    offset = round(float(record.manifest["wall_minus_clock"]) * 1e9)
    stamps = [offset + round(t * 1e9) if np.isfinite(t) else offset for t in record["time"]]
    manifest = {"manifest": json.dumps(record.manifest)}
    try:
        return write(path, topics, stamps, record.index.tolist(), manifest)
    except ConcurError as error:
        raise RecordError(
            error.where, expected=error.expected, came=error.came, cure=error.cure
        ) from error
