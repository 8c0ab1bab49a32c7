"""Changes of a URDF file, of its tree and of its text at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from concur.errors import DescriptionError
from concur.io._urdf_xml import Node, owner_of, plain, tag_of

_TAG = re.compile(rb"""<[^\s/>]+((?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>""")
_ATTRIBUTE = re.compile(rb"""([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True)
class Repair:
    """A change of a URDF file.

    Parameters
    ----------
    fault : str
        Kind of the fault: an element or attribute, or the entry of `repair` in a sidecar.
    place : str
        Line, and name of the link or joint.
    change : str
        What is changed, and what other readers do.
    line : int
        Line in the file.
    """

    fault: str
    place: str
    change: str
    line: int


class Draft:
    """A parsed file, the changes of its tree, and the same changes of its text."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.repairs: list[Repair] = []
        self._numbers = {element: number for number, element in enumerate(root.element.iter())}
        # By number of the element: attributes with their texts, None where they go, and an
        # element that becomes the first child; no attributes where the element goes.
        self._edits: dict[int, tuple[dict[str, str | None] | None, str]] = {}

    def change(
        self,
        fault: str,
        element: Any,
        change: str,
        attributes: Mapping[str, str | None] | None = None,
        child: str = "",
    ) -> None:
        """Change attributes, add a child, or without both remove the element, with a note."""
        owner = owner_of(element) or f"<{tag_of(element)}>"
        line = int(element.sourceline)
        self.repairs.append(Repair(fault, f"line {line}, {owner}", change, line))
        self.edit(element, attributes, child)

    def edit(
        self, element: Any, attributes: Mapping[str, str | None] | None = None, child: str = ""
    ) -> None:
        """Change the tree and the text, as `change` does."""
        number = self._numbers[element]
        if attributes is None:
            self._edits[number] = None, ""
            element.getparent().remove(element)
            return
        before, children = self._edits.get(number, ({}, ""))
        self._edits[number] = {**(before or {}), **attributes}, child + children
        for name, text in attributes.items():
            if text is not None:
                element.set(name, text)
            elif name in element.attrib:
                del element.attrib[name]
        if child:
            element.insert(0, _element(child, element))

    def text(self, data: bytes) -> bytes:
        """The text of the file with the changes; all other bytes are as they are."""
        spans = _spans(data, self.root.path) if self._edits else []
        parts, at = [], 0
        for number in sorted(self._edits):
            (start, stop), (attributes, child) = spans[number], self._edits[number]
            if start < at:  # within an element that goes
                continue
            tag = _TAG.match(data, start)
            assert tag is not None  # the parsers have read it
            new = b""
            if attributes is not None:
                stop, new = tag.end(), _tag(data, tag, attributes)
                if child:
                    name = tag[0].split(maxsplit=1)[0].strip(b"</>")
                    close = b"</%s>" % name if tag[2] else b""
                    new = new.rstrip(b"/>") + b">" + child.encode() + close
            parts += [data[at:start], new]
            at = stop
        return b"".join([*parts, data[at:]])


def _element(text: str, parent: Any) -> Any:
    """An element of a text, in the namespace and on the line of its parent."""
    from lxml import etree

    space = str(parent.tag).partition("}")[0][1:] if "}" in str(parent.tag) else ""
    child = etree.fromstring(f'<x xmlns="{space}">{text}</x>' if space else f"<x>{text}</x>")[0]
    for own in child.iter():
        own.sourceline = parent.sourceline
    return child


def _spans(data: bytes, file: Path) -> list[tuple[int, int]]:
    """Start and end of each element in the file, in the order of the starts."""
    starts: list[int] = []
    ends: dict[int, int] = {}
    still_open: list[int] = []
    parser = expat.ParserCreate("utf-8")

    def start(*_: object) -> None:
        still_open.append(len(starts))
        starts.append(parser.CurrentByteIndex)

    def end(*_: object) -> None:
        at = data.index(b">", parser.CurrentByteIndex) + 1
        tag = _TAG.match(data, starts[still_open[-1]])
        ends[still_open.pop()] = tag.end() if tag is not None and tag[2] else at

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(plain(data.decode()).encode(), True)
    except expat.ExpatError as error:  # its rules for names are stricter than those of lxml
        raise DescriptionError(
            f"{file}, line {error.lineno}",
            expected="a URDF file: plain XML",
            came=f"`{expat.ErrorString(error.code)}`",
            cure="Use letters and digits only in the names of elements.",
            file=str(file),
            line=error.lineno,
        ) from None
    return [(start, ends[number]) for number, start in enumerate(starts)]


def _tag(data: bytes, tag: re.Match[bytes], attributes: Mapping[str, str | None]) -> bytes:
    """A tag with other texts of some attributes."""
    text = tag[1]
    for name, value in attributes.items():
        found = (m for m in _ATTRIBUTE.finditer(text) if m[1] == name.encode())
        own = next(found, None)
        if own is None and value is not None:
            text += f' {name}="{value}"'.encode()
        elif own is not None and value is None:
            text = text[: own.start()].rstrip() + text[own.end() :]
        elif own is not None and value is not None:
            text = text[: own.start(2) + 1] + value.encode() + text[own.end(2) - 1 :]
    return data[tag.start() : tag.start(1)] + text + data[tag.end(1) : tag.end()]
