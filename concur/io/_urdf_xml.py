"""Elements of URDF files: text, XML and numbers, with errors that name the line."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy.spatial.transform import Rotation

from concur.errors import DescriptionError, shown
from concur.tables import (
    LARGEST,
    show,
    suggest,
)

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)

_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)

UNDECLARED = "undeclared:"
"""Start of the namespace of a prefix that the file uses without declaring it."""

MOST_PREFIXES = 50
"""Largest number of prefixes that a file may use without declaring them."""

_ROOT = re.compile(r"(?:\s|<!--.*?-->|<\?.*?\?>)*<[^\s/>!?]+", re.DOTALL)

_LACKING = re.compile(r"Namespace prefix (\S+) (?:for .* )?on .* is not defined")

_DECLARATION = re.compile(r"(?:\s|<!--.*?-->)*(<\?xml\b[^>]*\?>)", re.DOTALL)

# Tags that are read, with their attributes. A tag or attribute that resembles one is refused.
TAGS: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "mimic", "dynamics", "calibration"),
    "inertial": ("origin", "mass", "inertia"),
    "visual": ("origin", "geometry"),
    "collision": ("origin", "geometry"),
}

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "mimic": ("joint", "multiplier", "offset"),
}

EXPAND = "Expand the macros: `xacro robot.urdf.xacro > robot.urdf`; or rename the file to .xacro."
"""Cure for macros in a URDF file."""


@functools.lru_cache(10_000)
def _resembles(name: str, known: tuple[str, ...], cutoff: float) -> bool:
    """Whether a name is probably a known one, misspelt; files have few names, many times."""
    return bool(difflib.get_close_matches(name.lower(), known, 1, cutoff))


class Node:
    """An element of the file, with errors that name its line."""

    def __init__(self, element: Any, path: Path, owner: str = "") -> None:
        self.element = element
        self.path = path
        self.tag = tag_of(element)
        self.line = int(element.sourceline)
        self.place = f"line {self.line}, " + (f"{owner}, " if owner else "") + f"<{self.tag}>"
        self.check_near("attribute", element.attrib, ATTRIBUTES.get(self.tag, ()), 0.6)

    def named(self) -> str:
        """Name of a link or joint, which becomes part of the place."""
        name = self.text("name")
        self.place = f"line {self.line}, {self.tag} `{shown(name)}`"
        if not name.strip() or len(name) > 255 or not name.isprintable():
            expected = "a name of at most 255 characters, without control characters"
            self.refuse(expected, show(name), f"Rename this {self.tag}.")
        return name

    def refuse(self, expected: str, came: str, cure: str) -> NoReturn:
        """Raise the error for this element."""
        raise DescriptionError(
            f"{self.path}, {self.place}",
            expected=expected,
            came=came,
            cure=cure,
            file=str(self.path),
            line=self.line,
        )

    def parts(self) -> dict[str, Node]:
        """First child element of each tag that is read; only shapes and limits may occur often."""
        known = TAGS[self.tag]
        self.check_near("element", map(tag_of, self.element), known, 0.75)
        found: dict[str, Node] = {}
        for element in self.element:
            tag = tag_of(element)
            if tag in known and tag not in ("visual", "collision"):
                if tag not in found:
                    found[tag] = self._inner(element)
                elif tag != "limit":
                    self.refuse(f"one element <{tag}>", "several", "Remove all but one.")
        return found

    def limits(self) -> list[Node]:
        """All elements <limit> of a joint."""
        return [self._inner(element) for element in self.element if tag_of(element) == "limit"]

    def _inner(self, element: Any) -> Node:
        return Node(element, self.path, self.place.partition(", ")[2])

    def check_near(
        self, kind: str, names: Iterable[str], known: tuple[str, ...], cutoff: float
    ) -> None:
        given = dict.fromkeys(names)
        absent = tuple(name for name in known if name not in given)
        for name in given:
            if name not in known and _resembles(name[:40], absent, cutoff):
                self.refuse(
                    f"one of {', '.join(known)}",
                    f"an unknown {kind} `{shown(name)}`",
                    suggest(name[:40], absent, "Correct it."),
                )

    def text(self, attribute: str) -> str:
        """Return an attribute that must be given."""
        text = self.element.get(attribute)
        if text is None:
            expected = f"the attribute `{attribute}`"
            self.refuse(expected, "no value", f'Write {attribute}="...".')
        return str(text)

    def numbers(
        self, attribute: str, count: int, default: tuple[float, ...] | None, infinite: bool = False
    ) -> tuple[float, ...]:
        """Read the numbers of an attribute; with `infinite`, those above `LARGEST` are inf."""
        if default is not None and attribute not in self.element.attrib:
            return default
        text = self.text(attribute)
        values = []
        for word in text.split():
            known = _NUMBER.fullmatch(word) or (infinite and _INFINITE.fullmatch(word))
            value = float(word) if known else math.nan
            if infinite and abs(value) > LARGEST:
                value = math.copysign(math.inf, value)
            values.append(value)
        finite = all(abs(x) <= LARGEST for x in values)
        if len(values) != count or any(map(math.isnan, values)) or not (finite or infinite):
            noun = "a number" if count == 1 else f"{count} numbers"
            expected = f"`{attribute}`: {noun} within 1e9"
            cure = EXPAND if "$" in text else "Correct the attribute."
            self.refuse(expected, show(text), cure)
        return tuple(values)

    def number(self, attribute: str, default: float | None, infinite: bool = False) -> float:
        """Read the one number of an attribute."""
        (value,) = self.numbers(attribute, 1, None if default is None else (default,), infinite)
        return value

    def pose(self) -> np.ndarray:
        """Matrix (4, 4), m, of the child <origin>: Rz(yaw) Ry(pitch) Rx(roll); else the unit."""
        node, pose = self.parts().get("origin"), np.eye(4)
        if node is not None:
            rpy = node.numbers("rpy", 3, (0.0, 0.0, 0.0))
            if any(rpy):
                pose[:3, :3] = Rotation.from_euler("xyz", rpy).as_matrix()
            pose[:3, 3] = node.numbers("xyz", 3, (0.0, 0.0, 0.0))
        return pose


def plain(text: str) -> str:
    """The text with spaces in place of an XML declaration and of zeros at its end.

    Files in use have the version 0.0, or text before it.
    """
    kept = text.rstrip("\0")
    text = kept + " " * (len(text) - len(kept))
    found = _DECLARATION.match(text)
    if found is None:
        return text
    start, end = found.span(1)
    return text[:start] + re.sub(r"\S", " ", text[start:end]) + text[end:]


def parsed(text: str, file: Path) -> Any:
    """Parse the text of a file without entities, external files and deep nesting.

    Prefixes that the file does not declare belong to the namespaces "undeclared:PREFIX".
    """
    from lxml import etree

    def refuse(line: int, came: str, cure: str) -> NoReturn:
        raise DescriptionError(
            f"{file}, line {line}",
            expected="a URDF file: plain XML with the root element <robot>",
            came=came,
            cure=cure,
            file=str(file),
            line=line,
        )

    doctype = text.find("<!DOCTYPE")
    if doctype >= 0:
        line = text.count("\n", 0, doctype) + 1
        refuse(line, "a document type", "Remove <!DOCTYPE>, and write its entities out.")
    text = plain(text)
    parser = _parser()
    try:
        try:
            root = etree.fromstring(text.encode(), parser)
        except etree.XMLSyntaxError:
            declared = _with_prefixes(text, [entry.message for entry in parser.error_log])
            if declared == text:
                raise
            root = etree.fromstring(declared.encode(), _parser())
    except etree.XMLSyntaxError as error:
        refuse(error.lineno or 1, f"`{shown(str(error.msg), 100)}`", "Correct the XML.")
    macro = next((e for e in root.iter() if "xacro}" in str(e.tag)), None)
    if macro is not None:
        refuse(macro.sourceline, "macros of xacro", EXPAND)
    if tag_of(root) != "robot":
        refuse(root.sourceline, f"<{shown(tag_of(root))}>", "Give the path of a URDF file.")
    return root


def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def _with_prefixes(text: str, messages: list[str]) -> str:
    """Declare the prefixes that messages of the parser name in the root element."""
    prefixes = sorted({found[1] for found in map(_LACKING.match, messages) if found})
    root = _ROOT.match(text)
    if root is None or len(prefixes) > MOST_PREFIXES:
        return text
    declared = "".join(f' xmlns:{prefix}="{UNDECLARED}{prefix}"' for prefix in prefixes)
    return text[: root.end()] + declared + text[root.end() :]


def tag_of(element: Any) -> str:
    """Tag of an element; a default namespace is ignored, a prefix is not."""
    tag = str(element.tag)
    return tag.rpartition("}")[2] if element.prefix is None else tag


def owner_of(element: Any) -> str:
    """Link or joint of an element, with its name; empty for others."""
    while element is not None and tag_of(element) not in ("link", "joint"):
        element = element.getparent()
    return "" if element is None else f"{tag_of(element)} `{shown(element.get('name', ''))}`"
