"""Tables as MCAP files: JSON messages with schemas, one topic for each group of quantities.

Requires the package `mcap` of the extra `rig`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur._version import __version__
from concur.errors import needed
from concur.files import replacing


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity over time, with the names and units of its columns.

    Parameters
    ----------
    values : ndarray, shape (k,) or (k, n)
        One row per message.
    columns : sequence of (str, str)
        Name and unit of each column.
    """

    values: np.ndarray
    columns: Sequence[tuple[str, str]]


def write_mcap(
    path: str | PathLike[str],
    topics: Mapping[str, Mapping[str, Quantity]],
    stamps: Sequence[int],
    sequence: Sequence[int],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write tables as an MCAP file.

    Parameters
    ----------
    path : str or path-like
        File to write; an existing one is replaced when the new one is complete.
    topics : mapping of str to mapping of str to Quantity
        Quantities of each topic by name; topics without any are left out.
    stamps : sequence of int
        Time of each message (ns).
    sequence : sequence of int
        Number of each message.
    metadata : mapping of str to str, optional
        JSON texts by name.

    Returns
    -------
    pathlib.Path
        The file. Numbers that are not finite are null.

    Raises
    ------
    ConcurError
        If the package `mcap` is missing, or the file cannot be written.
    """
    module = needed("mcap.writer", "rig", "export to MCAP")
    with replacing(path) as file:
        writer: Any = module.Writer(file)
        writer.start(profile="", library=f"concur {__version__}")
        for name, text in (metadata or {}).items():
            writer.add_metadata(name, {"json": text})
        channels = []
        for topic, quantities in topics.items():
            if quantities:
                properties = {name: _schema(entry) for name, entry in quantities.items()}
                schema = {"title": f"concur.{topic}", "type": "object", "properties": properties}
                known = writer.register_schema(
                    f"concur.{topic}", "jsonschema", json.dumps(schema).encode()
                )
                channel = writer.register_channel(f"/{topic}", "json", known)
                channels.append((channel, [(n, *_plain(q)) for n, q in quantities.items()]))
        for k, (stamp, number) in enumerate(zip(stamps, sequence, strict=True)):
            for channel, table in channels:
                message = {name: _message(rows[k], keys) for name, rows, keys in table}
                writer.add_message(channel, stamp, json.dumps(message).encode(), stamp, number)
        writer.finish()
    return Path(path)


def _key(column: str) -> str:
    """A name that is valid in message paths of viewers: chassis.x becomes chassis_x."""
    return "".join(c if c.isalnum() else "_" for c in column).strip("_")


def _plain(quantity: Quantity) -> tuple[list[Any], list[str] | None]:
    """Rows as Python floats, and the keys of their entries."""
    alone = quantity.values.ndim == 1
    return quantity.values.tolist(), None if alone else [_key(c) for c, _ in quantity.columns]


def _message(row: Any, keys: list[str] | None) -> Any:
    if keys is None:
        return _number(row)
    return {key: _number(entry) for key, entry in zip(keys, row, strict=True)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has neither NaN nor infinities


def _schema(quantity: Quantity) -> dict[str, Any]:
    each = [
        {"type": ["number", "null"], "description": f"{name} [{unit}]"}
        for name, unit in quantity.columns
    ]
    if quantity.values.ndim == 1:
        return each[0]
    keys = [_key(name) for name, _ in quantity.columns]
    return {"type": "object", "properties": dict(zip(keys, each, strict=True))}
