"""Nearest physical inertias of a URDF file, all other bytes as they are."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from xml.parsers import expat

import numpy as np

from concur.errors import DescriptionError, InertiaError
from concur.files import read_bytes
from concur.io._urdf_inertia import (
    ball,
    inertial_of,
    largest_gyration,
    nearest_tensor,
    second_moments,
)
from concur.io._urdf_repair import repaired
from concur.io._urdf_tree import read_link, read_sidecar
from concur.io._urdf_xacro import Macros, urdf_text
from concur.io._urdf_xml import Node, blank_declaration, parsed, tag_of
from concur.tables import LARGEST_TOML, file_named

_ENTRIES = {
    "ixx": (0, 0),
    "ixy": (0, 1),
    "ixz": (0, 2),
    "iyy": (1, 1),
    "iyz": (1, 2),
    "izz": (2, 2),
}
_ACROSS = {"iyx": (1, 0), "izx": (2, 0), "izy": (2, 1)}
_TAG = re.compile(rb"""<[^\s/>]+((?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*/?>""")
_ATTRIBUTE = re.compile(rb"""([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True)
class FixedInertia:
    """An inertia that was replaced.

    Parameters
    ----------
    link : str
        Name of the link.
    line : int
        Line of ``<inertia>`` in the file.
    change : float, optional
        Relative change of the second moments of mass about the centre of mass, in the Frobenius
        norm; None if the link had a mass but no tensor, or one that is rounding. It has that of a
        ball now.
    moments : tuple of float
        New principal moments, shape (3,), ascending, kg m^2.
    """

    link: str
    line: int
    change: float | None
    moments: tuple[float, ...]


def fix_inertias(
    path: str | PathLike[str],
    *,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str | Path] | None = None,
) -> tuple[bytes, tuple[FixedInertia, ...]]:
    """Replace the inertias of a URDF file that no rigid body has by the nearest physical ones.

    The pseudo-inertia about the centre of mass is the matrix ``diag(S, m)`` with the mass m and
    the second moments ``S = tr(I)/2 1 - I``. A rigid body has it if and only if it is positive
    semidefinite: ``S >= 0`` contains both positive moments and the triangle inequality. Its
    projection onto the positive semidefinite matrices in the Frobenius norm sets the negative
    eigenvalues of S to zero, and keeps the mass and the centre of mass. On a link without mass the
    moments become zero.

    A link with a mass and no tensor, or one that is nothing but rounding, gets the tensor of a
    solid ball of its mass with the density of water. This is an assumption, which `load` does not
    make: it reads such a link as a point.

    Parameters
    ----------
    path : path
        URDF file.
    xacro : mapping of str to str, optional
        As of `load`.
    packages : mapping of str to path, optional
        As of `load`.

    Returns
    -------
    data : bytes
        The file with the new numbers; without a replacement, the same bytes.
    fixed : tuple of FixedInertia
        The replaced inertias, in the order of the file.

    Raises
    ------
    DescriptionError
        If the file cannot be read, is not XML, or an inertia has an element that is missing or is
        not a number.
    InertiaError
        If a mass is negative.

    Notes
    -----
    Wensing, Kim and Slotine, "Linear matrix inequalities for physically consistent inertial
    parameter identification", IEEE Robotics and Automation Letters 3 (2018), eq. (13).
    """
    file = file_named(path)
    if file.suffix.lower() == ".xacro":
        macros = read_sidecar(file, None, Macros(xacro or {}, packages or {}))[1]
        raw = urdf_text(file, macros).encode()
    else:
        raw = read_bytes(file, "a URDF file", "Check the path.", largest=LARGEST_TOML)
        urdf_text(file, Macros())  # raises an error unless the file is text
    mark = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    data = raw[len(mark) :]
    root = parsed(data.decode(), file)
    numbers = {element: number for number, element in enumerate(root.iter())}
    repaired(Node(root, file))  # what `load` mends is no reason to refuse the file
    found: list[FixedInertia] = []
    # Old and new ones, by number of the element in the file.
    tensors: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    gyration = functools.cache(lambda: largest_gyration(Node(root, file)))
    for element in root:
        if tag_of(element) != "link":
            continue
        link = Node(element, file)
        name = link.named()
        read = inertial_of(link)
        if read is None:
            continue
        inertia, mass, _, tensor = read
        change, assumed = None, False
        try:
            read_as = read_link(link, gyration)
        except InertiaError:
            if mass < 0.0:  # a slip of sign has no nearest inertia
                raise
            new = nearest_tensor(tensor) if mass else np.zeros((3, 3))
        else:
            if not read_as.note:
                continue
            assumed = read_as.is_point
            new = ball(mass) if assumed else nearest_tensor(tensor)
        if not assumed:
            size = np.abs(tensor).max()  # squares of small moments are zero
            before, after = second_moments(tensor / size), second_moments(new / size)
            change = float(np.linalg.norm(after - before) / np.linalg.norm(before))
        tensors[numbers[inertia.element]] = tensor, new
        moments = tuple(np.maximum(np.linalg.eigvalsh(new), 0.0).tolist())
        found.append(FixedInertia(name, inertia.line, change, moments))
    starts = _starts(data, file) if tensors else []
    for number in sorted(tensors, reverse=True):
        data = _with_tensor(data, starts[number], *tensors[number])
    return mark + data, tuple(found)


def _starts(data: bytes, file: Path) -> list[int]:
    """Offset of each element in the file, in its order."""
    starts: list[int] = []
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda *_: starts.append(parser.CurrentByteIndex)
    try:
        parser.Parse(blank_declaration(data.decode()).encode(), True)
    except expat.ExpatError as error:  # its rules for names are stricter than those of lxml
        raise DescriptionError(
            f"{file}, line {error.lineno}",
            expected="a URDF file: plain XML",
            came=f"`{expat.ErrorString(error.code)}`",
            cure="Use letters and digits only in the names of elements.",
            file=str(file),
            line=error.lineno,
        ) from None
    return starts


def _with_tensor(data: bytes, start: int, old: np.ndarray, tensor: np.ndarray) -> bytes:
    """Write a tensor into the tag at an offset; numbers that are equal keep their text.

    If the tag is <inertial>, a new tag <inertia> becomes its first child.
    """
    tag = _TAG.match(data, start)
    assert tag is not None  # the parsers have read it
    if tag[0].split(maxsplit=1)[0].rstrip(b">") == b"<inertial":
        values = ((name, float(tensor[at])) for name, at in _ENTRIES.items())
        text = b"<inertia " + " ".join(f'{k}="{v!r}"' for k, v in values).encode() + b"/>"
        return data[: tag.end()] + text + data[tag.end() :]
    text = tag[1]
    for name, at in (_ENTRIES | _ACROSS).items():
        value = f"{float(tensor[at])!r}".encode()
        own = next((m for m in _ATTRIBUTE.finditer(text) if m[1] == name.encode()), None)
        if own is None:
            if tensor[at] and name in _ENTRIES:
                text += b' %s="%s"' % (name.encode(), value)
        elif old[at] != tensor[at]:
            text = text[: own.start(2) + 1] + value + text[own.end(2) - 1 :]
    return data[: tag.start(1)] + text + data[tag.end(1) :]
