"""Faults of URDF files: what a repair changes, and what other readers do with the file.

`load` makes the repairs that have one cautious reading. The others guess, and are made where the
sidecar names them in `repair`, or by `concur check --fix` in a copy of the file.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.errors import InertiaError, shown
from concur.files import read_bytes
from concur.io._urdf_draft import Draft, Repair
from concur.io._urdf_xacro import Macros, read_sidecar, urdf_text
from concur.io._urdf_xml import TAGS, Node, parsed, tag_of
from concur.robot import Inertia
from concur.tables import LARGEST_TOML, file_named, located

ONE_COORDINATE = ("revolute", "continuous", "prismatic")
"""Types of joints with one coordinate."""

ROUNDING = 1e-14
"""Negative second moment that is rounding, in units of mass times the square of the size."""

WATER = 1000.0
"""Density of the ball that takes the place of a link without tensor, kg/m^3."""

_VECTORS = ("xyz", "rpy", "size")
_DECIMAL = re.compile(r",(?=\S).*[^,\s]\s+\S|[^,\s]\s+\S.*,\S")
"""A comma that may be a decimal point: "0,5 1" may be two numbers or three."""

_NUMBERS = ("lower", "upper", "effort", "velocity", "value", "ixx", "iyy", "izz")
_STRAY = re.compile(r"\s*([-+]?\d+\.\d+)[.,;]\s*")
"""A number with a stray character at its end."""

_OPTENV = re.compile(r"\$\(optenv\s+\w+\s*([^()]*)\)")
_EIGHTH = math.pi / 4.0
_ENTRIES = {f"i{'xyz'[i]}{'xyz'[j]}": (i, j) for i in range(3) for j in range(i, 3)}
_MIRRORED = {"iyx": "ixy", "izx": "ixz", "izy": "iyz"}
"""Entries of a tensor and those across the diagonal."""


def _macros(draft: Draft) -> None:
    for element in draft.root.element.iter():
        for name, value in element.attrib.items():
            if (new := _OPTENV.sub(r"\1", value)) != value:
                change = "the default of $(optenv); other readers refuse the file"
                draft.change("macro", element, change, {name: new})


def _commas(draft: Draft) -> None:
    for element, name, value in _vectors(draft):
        if "," in value and not _DECIMAL.search(value):
            change = "commas read as spaces; Pinocchio refuses the file"
            draft.change(name, element, change, {name: value.replace(",", " ")})


def _surplus(draft: Draft) -> None:
    for element, name, value in _vectors(draft):
        words = value.split()
        if len(words) > 3 and None not in map(number_of, words):
            change = "the first three numbers, as Bullet reads them; urdfdom refuses the file"
            draft.change("number", element, change, {name: " ".join(words[:3])})
    for element in draft.root.element.iter():
        for name, value in element.attrib.items():
            if name in _NUMBERS and (found := _STRAY.fullmatch(value)):
                change = f"`{value.strip()}` is {found[1]}, as Bullet reads it; others refuse it"
                draft.change("number", element, change, {name: found[1]})


def _angles(draft: Draft) -> None:
    for element, name, value in _vectors(draft):
        exact = " ".join(map(_unrounded, value.split()))
        if name == "rpy" and exact != " ".join(value.split()):
            change = "multiples of 45 degrees without rounding; other readers keep it"
            draft.change("angle", element, change, {name: exact})


def _unrounded(word: str) -> str:
    """An angle that is a multiple of 45 degrees to its digits, with all digits."""
    angle, digits = number_of(word), len(word.partition(".")[2])
    if not angle or "e" in word.lower() or digits < 2:
        return word
    exact = round(angle / _EIGHTH) * _EIGHTH
    return repr(exact) if abs(angle - exact) < 10.0**-digits else word


def _twice(draft: Draft) -> None:
    for parent in list(draft.root.element.iter()):
        tags = TAGS.get(tag_of(parent), ())
        single = set(tags) - {"link", "joint", "visual", "collision", "limit"}
        seen: set[str] = set()
        for element in list(parent):
            if (tag := tag_of(element)) in single & seen:
                change = f"<{tag}> for the second time is dropped, as urdfdom does"
                draft.change("element", element, change)
            seen.add(tag)


def _bounds(draft: Draft) -> None:
    for limit in list(draft.root.element.iter("{*}limit")):
        low, high = (number_of(limit.get(name, "0")) for name in ("lower", "upper"))
        if low is not None and high is not None and low > high:
            change = f"no bounds in place of {low:g} to {high:g}, as Bullet reads them"
            draft.change("bound", limit, change, {"lower": None, "upper": None})
        for name in ("effort", "velocity"):
            if (number_of(limit.get(name, "0")) or 0.0) < 0.0:
                change = f"the magnitude of `{name}`; other readers keep the sign"
                draft.change("bound", limit, change, {name: limit.get(name).strip()[1:]})


def _limits(draft: Draft) -> None:
    """Replace several limits of a joint by the tightest."""
    for element in _children(draft, "joint"):
        limits = [own for own in element if tag_of(own) == "limit"]
        if len(limits) < 2 or element.get("type") not in ONE_COORDINATE:
            continue
        joint = Node(element, draft.root.path)
        joint.named()
        each = [limits_of(own, str(joint.text("type"))) for own in joint.limits()]
        if ranges := [one["limits"] for one in each if "limits" in one]:
            lower, upper = max(low for low, _ in ranges), min(high for _, high in ranges)
            if not lower < upper:
                texts = " and ".join(f"{low:g} to {high:g}" for low, high in ranges)
                joint.refuse("limits that overlap", texts, "Remove all <limit> but one.")
        else:
            lower, upper = -math.inf, math.inf
        effort, speed = (
            min(one.get(name, math.inf) for one in each) for name in ("torque_limit", "speed_limit")
        )
        numbers = {"lower": lower, "upper": upper, "effort": effort, "velocity": speed}
        lines = ", ".join(str(limit.sourceline) for limit in limits)
        taken = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
        change = f"the tightest of those at lines {lines}: {taken}; Pinocchio takes the first"
        tightest = {name: repr(float(value)) for name, value in numbers.items()}
        draft.change("limit", limits[0], change, tightest)
        for limit in limits[1:]:
            draft.edit(limit)


def limits_of(node: Node, kind: str) -> dict[str, Any]:
    """Limits as arguments of `Body`; zero efforts and velocities and [0, 0] are placeholders."""
    found: dict[str, Any] = {}
    lower, upper = (node.number(name, 0.0, infinite=True) for name in ("lower", "upper"))
    if kind != "continuous" and (lower, upper) != (0.0, 0.0):
        if not lower < upper:
            cure = "Correct the bounds; hold a joint with [locked] of the sidecar."
            node.refuse("`lower` below `upper`", f"{lower:g} and {upper:g}", cure)
        found["limits"] = (lower, upper)
    for attribute, argument in (("effort", "torque_limit"), ("velocity", "speed_limit")):
        value = node.number(attribute, 0.0, infinite=True)
        if value < 0.0:
            node.refuse(f"`{attribute}` of zero or more", f"{value:g}", "Give its magnitude.")
        if value > 0.0:
            found[argument] = value
    return found


def _mirrored(draft: Draft) -> None:
    for element in draft.root.element.iter("{*}inertia"):
        for name, other in _MIRRORED.items():
            if name in element.attrib and element.get(name) == element.get(other, "0"):
                change = "the entry across the diagonal, equal to the one that is read; "
                draft.change(name, element, f"{change}Pinocchio ignores it", {name: None})


def _mimics(draft: Draft) -> None:
    kinds = {own.get("name", ""): own.get("type") for own in _children(draft, "joint")}
    leaders = [name for name, kind in kinds.items() if kind in ONE_COORDINATE]
    for element in _children(draft, "joint"):
        for mimic in [own for own in element if tag_of(own) == "mimic"]:
            name = mimic.get("joint", "")
            if not name or name in leaders or element.get("type") not in ONE_COORDINATE:
                continue
            near = [other for other in leaders if other.endswith(name)]
            near = near or difflib.get_close_matches(name, leaders)
            if best := difflib.get_close_matches(element.get("name", ""), near, 1, 0.0):
                change = (
                    f"follows `{shown(best[0])}`, the nearest name; urdfdom keeps `{shown(name)}`"
                )
                draft.change("mimic", mimic, change, {"joint": best[0]})
            else:
                change = f"moves on its own, as no joint `{shown(name)}` exists; urdfdom keeps it"
                draft.change("mimic", mimic, change)


def _links(draft: Draft) -> None:
    links = {own.get("name") for own in _children(draft, "link")}
    for element in _children(draft, "joint"):
        for parent in element.findall("{*}parent"):
            name = parent.get("link")
            if name and name not in links:
                links.add(name)
                change = (
                    f"`{shown(name)}`, which carries joints only, is a link; others refuse the file"
                )
                draft.change("link", draft.root.element, change, {}, _written("link", name=name))


# --- inertias -------------------------------------------------------------------------------------


def inertial_of(link: Node) -> tuple[Node, float, np.ndarray, np.ndarray] | None:
    """Read <inertia>, mass, pose (4, 4) of the inertial frame and tensor (3, 3) in its axes.

    Without <inertia> the tensor is zero, and the node is <inertial>.
    """
    inertial = link.parts().get("inertial")
    if inertial is None:
        return None
    parts = inertial.parts()
    if "mass" not in parts:
        inertial.refuse("the element <mass>", "no such element", "Add <mass>.")
    mass = parts["mass"].number("value", None)
    if "inertia" not in parts:
        return inertial, mass, inertial.pose(), np.zeros((3, 3))
    xx, yy, zz = (parts["inertia"].number(name, None) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (parts["inertia"].number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return parts["inertia"], mass, inertial.pose(), tensor


def second_moments(tensor: np.ndarray) -> np.ndarray:
    """Second moments of mass (3, 3) of a tensor (3, 3), kg m^2."""
    return np.asarray(0.5 * np.trace(tensor) * np.eye(3) - tensor)


def nearest_tensor(tensor: np.ndarray) -> np.ndarray:
    """Tensor (3, 3) with the nearest semidefinite second moments; equal entries are identical."""
    values, vectors = np.linalg.eigh(second_moments(tensor))
    more = vectors @ np.diag(np.maximum(-values, 0.0)) @ vectors.T
    return np.asarray(tensor + np.trace(more) * np.eye(3) - 0.5 * (more + more.T))


def _inertias(draft: Draft, guess: bool) -> None:
    """Replace tensors that are missing or rounding; with `guess` all that no rigid body has."""
    found = []
    for element in _children(draft, "link"):
        link = Node(element, draft.root.path)
        link.named()
        if (own := inertial_of(link)) is not None:
            found.append((link, *own))
    moments = [(second_moments(tensor), mass) for *_, mass, _, tensor in found if mass > 0.0]
    sizes = [float(np.trace(S)) / mass for S, mass in moments
             if np.linalg.eigvalsh(S)[0] >= -1e-9 * np.trace(S)]  # fmt: skip
    largest = max(sizes, default=0.0)
    for link, node, mass, pose, tensor in found:
        if node.tag == "inertial":
            if mass > 0.0:
                _missing(draft, node, mass, guess)
            continue
        at_origin = not tensor.any() and not pose[:3, 3].any()
        if guess and mass > 0.0 and at_origin:
            _replace(draft, node, tensor, _ball(mass), _BALL)
            continue
        try:
            Inertia(mass, (0.0, 0.0, 0.0), tuple(map(tuple, tensor)))
        except InertiaError:
            if mass < 0.0 and guess:  # a slip of sign has no nearest inertia
                with located(link.path, node.place):
                    raise
            least = ROUNDING * mass * max(largest, float(pose[:3, 3] @ pose[:3, 3]))
            lack = float(np.linalg.eigvalsh(second_moments(tensor))[0])
            rounding = mass > 0.0 and -lack <= least
            if rounding and np.abs(tensor).max() <= least:
                new = _ball(mass) if guess else np.zeros((3, 3))
            elif rounding or guess:
                new = nearest_tensor(tensor) if mass else np.zeros((3, 3))
            else:
                continue
            values = ", ".join(f"{x:.6g}" for x in np.maximum(np.linalg.eigvalsh(new), 0.0))
            if rounding and not guess:
                change = f"a second moment of {lack:.3g} kg m^2, which is rounding; without it "
                change += f"the principal moments are ({values}) kg m^2"
            elif rounding and new[0, 0] == new[1, 1] == new[2, 2]:
                change = _BALL
            else:
                size = np.abs(tensor).max()  # squares of small moments are zero
                before, after = second_moments(tensor / size), second_moments(new / size)
                share = np.linalg.norm(after - before) / np.linalg.norm(before)
                change = f"second moments changed by {share:.2g} of their norm; principal moments "
                change += f"({values}) kg m^2. Pinocchio keeps the file's, MuJoCo refuses them"
            _replace(draft, node, tensor, new, change)


_BALL = "no tensor: assumed a solid ball of its mass with the density of water"


def _ball(mass: float) -> np.ndarray:
    """Tensor (3, 3) of a solid ball of a mass with the density of water, kg m^2."""
    radius = (3.0 * mass / (4.0 * math.pi * WATER)) ** (1.0 / 3.0)
    return np.asarray(0.4 * mass * radius**2 * np.eye(3))


def _missing(draft: Draft, inertial: Node, mass: float, guess: bool) -> None:
    """Add a tensor beside a mass."""
    tensor = _ball(mass) if guess else np.zeros((3, 3))
    change = _BALL if guess else "missing beside a mass, read as a point, as Pinocchio does"
    entries = {name: repr(float(tensor[at])) for name, at in _ENTRIES.items()}
    draft.change("inertia", inertial.element, change, {}, _written("inertia", **entries))


def _replace(draft: Draft, node: Node, old: np.ndarray, new: np.ndarray, change: str) -> None:
    """Write another tensor; numbers that are equal keep their text."""
    texts: dict[str, str | None] = {}
    for name, other in {**dict(zip(_ENTRIES, _ENTRIES, strict=True)), **_MIRRORED}.items():
        at = _ENTRIES[other]
        if old[at] != new[at] and (name == other or name in node.element.attrib):
            texts[name] = repr(float(new[at]))
    draft.change("inertia", node.element, change, texts)


def _masses(draft: Draft) -> None:
    """Give all drawn links of a robot without any mass a ball of one kilogram."""
    links = list(_children(draft, "link"))
    masses = [own.get("value") for link in links for own in link.iter("{*}mass")]
    if any(number_of(mass) for mass in masses) or not list(_children(draft, "joint")):
        return
    for link in links:
        for inertial in [own for own in link if tag_of(own) == "inertial"]:
            draft.edit(inertial)
        _add_mass(draft, "mass", link, "no mass in the whole robot")


def _wheels(draft: Draft) -> None:
    """Give drawn links without inertia that turn without end a ball of one kilogram."""
    turning = [own for own in _children(draft, "joint") if own.get("type") == "continuous"]
    names = {child.get("link") for own in turning for child in own.iterfind("{*}child")}
    for link in _children(draft, "link"):
        if link.get("name") in names and "inertial" not in map(tag_of, link):
            _add_mass(draft, "wheel", link, "no inertia")


def _add_mass(draft: Draft, fault: str, link: Any, why: str) -> None:
    if any(tag_of(own) in ("visual", "collision") for own in link):
        entries = {name: repr(float(_ball(1.0)[at])) for name, at in _ENTRIES.items()}
        text = f'<inertial><mass value="1.0"/>{_written("inertia", **entries)}</inertial>'
        change = f"{why}: assumed a ball of 1 kg with the density of water"
        draft.change(fault, link, change, {}, text)


# --- the table ------------------------------------------------------------------------------------


def number_of(word: str | None) -> float | None:
    """The number of a word; None if it is no finite number."""
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _written(tag: str, **attributes: str) -> str:
    from lxml import etree

    return str(etree.tostring(etree.Element(tag, attributes), encoding="unicode"))


def _children(draft: Draft, tag: str) -> list[Any]:
    return [element for element in draft.root.element if tag_of(element) == tag]


def _vectors(draft: Draft) -> Iterator[tuple[Any, str, str]]:
    """Elements with an attribute of several numbers, its name and its text."""
    for element in draft.root.element.iter():
        for name in _VECTORS:
            if name in element.attrib:
                yield element, name, element.get(name)


REPAIRS: tuple[tuple[str, Callable[[Draft], None]], ...] = (
    ("macro", _macros),
    ("", _commas),
    ("number", _surplus),
    ("angle", _angles),
    ("element", _twice),
    ("bound", _bounds),
    ("", _limits),
    ("", _mirrored),
    ("mimic", _mimics),
    ("link", _links),
    ("mass", _masses),
    ("wheel", _wheels),
    ("inertia", lambda draft: _inertias(draft, guess=True)),
    ("", lambda draft: _inertias(draft, guess=False)),
)
"""Repairs in their order, with the names of those that guess."""

NAMES = tuple(name for name, _ in REPAIRS if name)
"""Names that a sidecar can have in `repair`."""

FIX = tuple(name for name in NAMES if name not in ("angle", "wheel"))
"""Repairs of a copy; exact angles and masses of wheels are for robots on wheels alone."""


def repaired(root: Node, asked: Collection[str] = ()) -> Draft:
    """Mend the tree in place."""
    draft = Draft(root)
    for name, repair in REPAIRS:
        if not name or name in asked:
            repair(draft)
    return draft


def repair_urdf(
    path: str | PathLike[str],
    *,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str | Path] | None = None,
) -> tuple[bytes, tuple[Repair, ...]]:
    """Repair a URDF file: what `load` reads with a change, and what it refuses and others guess.

    Inertias that no rigid body has become the nearest physical ones. The pseudo-inertia about the
    centre of mass is the matrix ``diag(S, m)`` with the mass m and the second moments
    ``S = tr(I)/2 1 - I``. A rigid body has it if and only if it is positive semidefinite. Its
    projection onto the positive semidefinite matrices in the Frobenius norm sets the negative
    eigenvalues of S to zero, and keeps the mass and the centre of mass. On a link without mass the
    moments become zero.

    A link with a mass and no tensor, or one that is nothing but rounding, gets the tensor of a
    solid ball of its mass with the density of water. This is an assumption, which `load` does not
    make: it reads such a link as a point. So are the other repairs that a sidecar can name.

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
        The file with the changes; all other bytes are the same.
    repairs : tuple of Repair
        The changes.

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

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "point.urdf"
    >>> _ = path.write_text(
    ...     '<robot name="r"><link name="a"><inertial><mass value="1"/></inertial></link></robot>'
    ... )
    >>> [repair.place for repair in repair_urdf(path)[1]]
    ['line 1, link `a`']
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
    draft = repaired(Node(parsed(data.decode(), file), file), FIX)
    return mark + draft.text(data), tuple(draft.repairs)
