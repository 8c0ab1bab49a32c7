"""Faults of URDF files that have one cautious reading: the parsed tree is mended, with a note."""

from __future__ import annotations

import re

from concur.io._unread import Part
from concur.io._urdf_xml import Node, tag_of

_VECTORS = ("xyz", "rpy", "size")
_DECIMAL = re.compile(r",(?=\S).*[^,\s]\s+\S|[^,\s]\s+\S.*,\S")
"""A comma that may be a decimal point: "0,5 1" may be two numbers or three."""

_MIRRORED = {"iyx": "ixy", "izx": "ixz", "izy": "iyz"}
"""Entries of a tensor and those across the diagonal."""


def repaired(root: Node) -> list[Part]:
    """Mend the tree in place; return a note for each kind of change."""
    found: dict[tuple[str, str], list[int]] = {}

    def changed(what: str, meaning: str, line: int) -> None:
        found.setdefault((what, meaning), []).append(line)

    for element in root.element.iter():
        tag, line = tag_of(element), element.sourceline
        for name in _VECTORS:
            value = element.get(name, "")
            if "," in value and not _DECIMAL.search(value):
                element.set(name, value.replace(",", " "))
                changed(name, "commas read as spaces; Pinocchio refuses the file", line)
        for name, other in _MIRRORED.items() if tag == "inertia" else ():
            if name in element.attrib and element.get(name) == element.get(other, "0"):
                del element.attrib[name]
                meaning = "the entry across the diagonal, equal to the one that is read"
                changed(name, f"{meaning}; Pinocchio ignores it", line)
    return [
        Part(what, "", f"{meaning} ({_lines(lines)})") for (what, meaning), lines in found.items()
    ]


def _lines(lines: list[int]) -> str:
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"line {lines[0]}{more}"
