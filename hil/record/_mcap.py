"""Records as MCAP files: JSON messages with schemas, one topic for each group of quantities.

Requires the package `mcap` of the extra `rig`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hil._extras import INSTALL
from hil.errors import RecordError

TOPICS: dict[str, tuple[str, ...]] = {
    "state": ("q", "s", "position", "velocity", "pose_age"),
    "reference": ("elapsed", "pose", "twist", "acceleration", "error"),
    "torque": ("demand", "torque", "measured"),
    "guard": ("state", "reason", "tick", "flags", "enabled", "fault"),
    "timing": ("cycle", "time", "deadline", "compute", "late", "lost", "stale", "clipped"),
    "reports": ("report_time", "reports", "invalid"),
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
    try:
        from mcap.writer import Writer
    except ImportError as error:
        raise RecordError(
            "export to MCAP",
            expected="the package `mcap`",
            came="a Python installation without it",
            cure=f"Install it with `{INSTALL}`.",
        ) from error
    target = Path(path)
    topics = _topics(record)
    offset = round(float(record.manifest["wall_minus_clock"]) * 1e9)
    stamps = [offset + round(t * 1e9) if np.isfinite(t) else offset for t in record["time"]]
    try:
        with open(target, "wb") as stream:
            writer: Any = Writer(stream)
            writer.start(profile="", library="concur")
            writer.add_metadata("manifest", {"json": json.dumps(record.manifest)})
            channels = []
            for topic, names in topics.items():
                schema = json.dumps(_schema(record, topic, names)).encode()
                number = writer.register_schema(f"concur.{topic}", "jsonschema", schema)
                channels.append(writer.register_channel(f"/{topic}", "json", number))
            tables = [_table(record, names) for names in topics.values()]
            for k, stamp in enumerate(stamps):
                for channel, table in zip(channels, tables, strict=True):
                    text = json.dumps({name: _value(part[k], keys) for name, part, keys in table})
                    writer.add_message(channel, stamp, text.encode(), stamp, int(record.index[k]))
            writer.finish()
    except OSError as error:
        raise RecordError(
            str(target),
            expected="a file that can be written",
            came=error.strerror or str(error),
            cure="Choose another file, or free disk space.",
        ) from error
    return target


def _topics(record: Rows) -> dict[str, list[str]]:
    known = {name for names in TOPICS.values() for name in names}
    topics = {topic: [n for n in names if n in record.names] for topic, names in TOPICS.items()}
    topics["other"] = [name for name in record.names if name not in known]
    return {topic: names for topic, names in topics.items() if names}


def _key(column: str) -> str:
    """A name that is valid in message paths of viewers: chassis.x becomes chassis_x."""
    kept = "".join(c if c.isalnum() else "_" for c in column)
    return kept.strip("_")


def _table(record: Rows, names: list[str]) -> list[tuple[str, list[Any], list[str] | None]]:
    """Name, numbers of all rows as Python floats, and keys of each quantity."""
    found = []
    for name in names:
        part = record[name]
        keys = None if part.ndim == 1 else [_key(column) for column, _ in record.columns(name)]
        found.append((name, part.tolist(), keys))
    return found


def _value(value: Any, keys: list[str] | None) -> Any:
    if keys is None:
        return _number(value)
    return {key: _number(entry) for key, entry in zip(keys, value, strict=True)}


def _number(value: float) -> float | None:
    # JSON has neither NaN nor infinities.
    return value if math.isfinite(value) else None


def _schema(record: Rows, topic: str, names: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name in names:
        columns = record.columns(name)
        if record[name].ndim == 1:
            properties[name] = _number_schema(columns[0] if columns else (name, "1"))
        else:
            parts = {_key(column): _number_schema((column, unit)) for column, unit in columns}
            properties[name] = {"type": "object", "properties": parts}
    return {"title": f"concur.{topic}", "type": "object", "properties": properties}


def _number_schema(column: tuple[str, str]) -> dict[str, Any]:
    name, unit = column
    return {"type": ["number", "null"], "description": f"{name} [{unit}]"}
