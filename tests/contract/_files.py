"""Broken files with the class and the place of the error that each must give.

A file is stored as changes of lines of a base text, so that a case is as short as what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concur as cc
from tests.contract._frozen import frozen

Document = dict[str, Any]


def _rig(path: Path) -> object:
    import hil
    from tests.hil._acme import forgotten

    with forgotten():  # kinds of drives that the file registers
        return hil.load_rig(path)


READERS: dict[str, Callable[[Path], object]] = {
    "robot": cc.load,
    "task": cc.load_task,
    "rig": _rig,
    "proof": cc.recheck,
}


def written(base: list[str], changes: list[list[Any]]) -> str:
    """Text of a base whose lines i to j are replaced."""
    lines = list(base)
    for first, last, new in reversed(changes):
        lines[first:last] = new
    return "".join(lines)


def cases() -> Iterator[tuple[str, Document]]:
    """Yield name and content of all cases."""
    for name, row in frozen("files").items():
        if name != "bases":
            yield name, row


def outcome(row: Document, folder: Path) -> tuple[str, list[str]] | None:
    """Class and place of the error that files give; None if they are read."""
    bases = frozen("files")["bases"]
    for name, (base, changes) in row["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written(bases[base], changes).encode())
    try:
        READERS[row["kind"]](folder / row["name"])
    except Exception as error:
        return type(error).__name__, place(str(getattr(error, "where", "")))
    return None


def place(where: str) -> list[str]:
    """Names in the place of an error: file, tables, entries, fields, lines.

    What follows a colon is the place inside of what the file describes, and left out.
    """
    head = where.partition(": ")[0]
    file = re.match(r"\S*/(\S+?\.\w+)", head)
    rest = head[file.end() :] if file else head
    found = re.findall(r"\[\[?[\w.]+\]\]?|`[^`]*`|\"[^\"]*\"|line \d+", rest)
    return [*([file.group(1)] if file else []), *found]
