"""Reader of robots from URDF files, with an optional sidecar for what URDF cannot express."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import numpy as np
from pydantic import Field
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError, DescriptionError, InertiaError, install_command, shown
from concur.files import is_file, read_text
from concur.formats._drives import Drives, drive_of
from concur.formats._sidecar import SidecarTable, sidecar_cures
from concur.formats._wheels import steering_of, wheel_of
from concur.formats.tables import (
    LARGEST,
    LARGEST_TOML,
    MOST_BODIES,
    Number,
    check,
    fault,
    file_named,
    located,
    read_toml,
    show,
    suggest,
    unknown,
)
from concur.mechanism import Body, Inertia, Mimic, Pose, Shape, joints
from concur.multibody import Mechanism

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)
_DECLARATION = re.compile(r"(?:\s|<!--.*?-->)*(<\?xml\b[^>]*\?>)", re.DOTALL)

# Tags that are read, with their attributes. A tag or attribute that resembles one is refused.
_TAGS: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "mimic", "dynamics", "calibration"),
    "inertial": ("origin", "mass", "inertia"),
    "visual": ("origin", "geometry"),
    "collision": ("origin", "geometry"),
}
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "mimic": ("joint", "multiplier", "offset"),
}
ONE_COORDINATE = ("revolute", "continuous", "prismatic")
_TYPES = (*ONE_COORDINATE, "fixed", "planar", "floating")
_BASES = {"free": joints.Free, "planar": joints.Planar, "fixed": joints.Fixed}
MOST_LINKS = 50_000
"""Largest number of links and joints in a file; those that move on their own are far fewer."""
EXPAND = "Expand the macros: `xacro robot.urdf.xacro > robot.urdf`; or rename the file to .xacro."
"""Cure for macros in a URDF file."""
FIX = "`concur check robot.urdf --fix OUT.urdf` writes the nearest physical inertias."
"""Cure for an inertia that no rigid body has."""


class UrdfSidecarTable(SidecarTable):
    """Fields of a sidecar of a URDF file."""

    cures: ClassVar[Mapping[str, str]] = {
        **sidecar_cures(".urdf"),
        "drive": "Write [[drives]].",
        "root": 'Write base = "free", "planar" or "fixed".',
    }
    drives: Drives | None = None
    locked: (
        Annotated[
            dict[str, Number],
            Field(description="a table with a coordinate, m or rad, for each joint name"),
        ]
        | None
    ) = None


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
        self._check_near("attribute", element.attrib, _ATTRIBUTES.get(self.tag, ()), 0.6)

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
        """Child elements that are read, by tag; each may occur once, `visual` and others often."""
        known = _TAGS[self.tag]
        self._check_near("element", map(tag_of, self.element), known, 0.75)
        found: dict[str, Node] = {}
        for element in self.element:
            tag = tag_of(element)
            if tag in known and tag not in ("visual", "collision"):
                if tag in found:
                    self.refuse(f"one element <{tag}>", "several", "Remove all but one.")
                found[tag] = Node(element, self.path, self.place.partition(", ")[2])
        return found

    def _check_near(
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


_SIZES: dict[str, Callable[[Node], tuple[float, ...]]] = {
    "box": lambda node: node.numbers("size", 3, None),
    "cylinder": lambda node: (node.number("radius", None), node.number("length", None)),
    "sphere": lambda node: (node.number("radius", None),),
}


def primitive(node: Node) -> tuple[str, np.ndarray, tuple[float, ...]]:
    """Kind, pose (4, 4) in the link and sizes, m, of an element <visual> or <collision>."""
    geometry = node.parts()["geometry"]
    shape = Node(geometry.element[0], node.path, geometry.place.partition(", ")[2])
    return shape.tag, node.pose(), _SIZES[shape.tag](shape)


def _drawn(link: Node, pose: np.ndarray) -> list[Shape]:
    """Boxes, cylinders and spheres under <visual>, else under <collision>; others are skipped."""
    found: list[Shape] = []
    for tag in ("visual", "collision"):
        for element in link.element:
            if tag_of(element) != tag or (found and tag == "collision"):
                continue
            with suppress(ConcurError, IndexError, KeyError):
                kind, own, size = primitive(Node(element, link.path, link.place))
                found.append(Shape(kind, size, _pose_of(pose @ own)))
    return found


def _pose_of(matrix: np.ndarray) -> Pose:
    rotation = Rotation.from_matrix(matrix[:3, :3]).as_quat()
    return Pose(tuple(matrix[:3, 3]), tuple(rotation))


@dataclass(frozen=True)
class Link:
    """A link with its mass (kg), centre of mass (m) and tensor about it (kg m^2), link axes."""

    node: Node
    mass: float
    com: np.ndarray
    tensor: np.ndarray


@dataclass(frozen=True)
class UrdfJoint:
    """A joint: type, links, placement (4, 4) in the parent link, arguments of `Body`; and mimic.

    `mimic` has the name of the other joint, the multiplier and the offset.
    """

    node: Node
    kind: str
    parent: str
    child: str
    pose: np.ndarray
    joint: joints.Joint
    limits: dict[str, Any]
    mimic: tuple[str, float, float] | None = None


@dataclass
class _Group:
    """A body to be: a link with the links fixed to it, as parts (mass, com, tensor)."""

    joint: joints.Joint
    parent: str | None
    placement: np.ndarray
    limits: dict[str, Any] = field(default_factory=dict)
    parts: list[tuple[float, np.ndarray, np.ndarray]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)

    def add(self, link: Link, pose: np.ndarray) -> None:
        """Add a link whose frame has a pose (4, 4) in the body frame."""
        self.shapes += _drawn(link.node, pose)
        if link.mass:
            R = pose[:3, :3]
            self.parts.append((link.mass, R @ link.com + pose[:3, 3], R @ link.tensor @ R.T))

    def inertia(self) -> Inertia:
        """Inertia of all parts together."""
        if not self.parts:
            return Inertia(0.0)
        mass = sum(m for m, _, _ in self.parts)
        com = np.sum([m * c for m, c, _ in self.parts], axis=0) / mass
        tensor = np.zeros((3, 3))
        for m, c, I in self.parts:
            d = c - com
            tensor += I + m * (d @ d * np.eye(3) - np.outer(d, d))
        return Inertia(mass, tuple(com), tuple(0.5 * (tensor + tensor.T)))


def load_urdf(
    path: str | PathLike[str], sidecar: str | PathLike[str] | None, keep_fixed: bool
) -> Mechanism:
    """Read a robot from a URDF file; parameters and errors as of `load`."""
    file = file_named(path)
    table, side, given = sidecar_table(file, sidecar)
    root = Node(parsed(urdf_text(file), file), file)
    links, tree = contents(root)
    moving = _held(_locked(tree, table, side), links, table)
    groups = _bodies(root, links, moving, table.base, side, keep_fixed)
    if len(groups) > MOST_BODIES:
        root.refuse(
            f"at most {MOST_BODIES} bodies", f"{len(groups)}", "Merge links that do not move."
        )
    bodies = []
    for name, group in groups.items():
        placement = _pose_of(group.placement)
        with located(file, links[name].node.place):
            inertia = group.inertia()
            facts = {**group.limits, "shape": group.shapes}
            bodies.append(Body(name, group.joint, group.parent, placement, inertia, **facts))
    wheels = [wheel_of(wheel, list(groups), side) for wheel in table.wheels or ()]
    free = {
        name: joint.child
        for name, joint in moving.items()
        if joint.child in groups and groups[joint.child].joint.nv
    }
    single = [name for name, child in free.items() if groups[child].joint.nv == 1]
    drives = [
        drive_of(drive, list(groups), single, side, free.__getitem__)
        for drive in table.drives or ()
    ]
    mimics = []
    for joint in moving.values():
        if joint.mimic is not None:
            with located(file, joint.node.place):
                other, *numbers = joint.mimic
                mimics.append(Mimic(joint.child, moving[other].child, *numbers))
    steering = [steering_of(entry, table.wheels or (), side) for entry in table.steering or ()]
    passive = {n for d in drives for n in d.joints or ()} | {mimic.body for mimic in mimics}
    led = [wheel for wheel in wheels if wheel.body in [entry.wheel for entry in steering]]
    passive |= {w.body if w.kind == "slider" else str(groups[w.body].parent) for w in led}
    actuated = _actuated(free, passive, groups, table, side)
    name = table.name or root.element.get("name") or ""
    if not name.strip() or len(name) > 255 or not name.isprintable():
        root.refuse("the name of the robot", show(name), 'Write <robot name="...">.')
    try:
        gravity = table.gravity or (0.0, 0.0, 0.0)
        return Mechanism(name, bodies, wheels, gravity, actuated, drives, mimics, steering)
    except ConcurError as error:
        found = re.search(r"(body|wheel|mimic|drive|steering) `([^`]*)`", error.where)
        if found is not None and found[1] in ("body", "mimic") and found[2] in links:
            with located(file, links[found[2]].node.place):
                empty = [name for name, group in groups.items() if not group.parts]
                if isinstance(error, InertiaError) and empty:
                    error.came += f"; links without mass: {shown(', '.join(empty), 300)}"
                    if next(iter(groups)) in empty:
                        error.cure += ' Or hold the root: base = "fixed" in the sidecar.'
                raise
        label = f'[[{found[1].removesuffix("ing")}s]] "{found[2]}"' if found else ""
        with located(side if given else file, label):
            raise


def sidecar_of(file: Path) -> Path:
    """Default sidecar: arm.toml of arm.urdf, arm.xacro and arm.urdf.xacro."""
    stem = file.with_suffix("")
    return (stem if stem.suffix.lower() == ".urdf" else file).with_suffix(".toml")


def sidecar_table(
    file: Path, sidecar: str | PathLike[str] | None
) -> tuple[UrdfSidecarTable, Path, bool]:
    """Read the sidecar of a file; return its fields, its path, and whether there is one."""
    side = sidecar_of(file) if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    return check(UrdfSidecarTable, read_toml(side) if given else {}, side), side, given


def urdf_text(file: Path) -> str:
    """Text of a URDF file, or of a xacro file with its macros expanded."""
    text = read_text(file, "a URDF file", "Check the path.", largest=LARGEST_TOML)
    if file.suffix.lower() != ".xacro":
        return text
    text = expanded(file)
    if len(text) > LARGEST_TOML:
        raise DescriptionError(
            str(file),
            expected=f"at most {LARGEST_TOML // 2**20} MiB of URDF after the macros",
            came=f"{len(text) / 2**20:.3g} MiB",
            cure="Remove the parts that do not move.",
            file=str(file),
        )
    return text


def expanded(file: Path) -> str:
    """Expand the macros of a xacro file."""
    expected = "a xacro file that expands to a URDF file"
    try:
        from xacrodoc import XacroDoc
    except ImportError:
        raise DescriptionError(
            str(file),
            expected="the package xacrodoc, which expands xacro files without ROS",
            came="an environment without it",
            cure="Run `pip install xacrodoc`; or expand the macros where ROS is: "
            "`xacro robot.urdf.xacro > robot.urdf`.",
            file=str(file),
        ) from None
    try:
        return str(XacroDoc.from_file(file, resolve_packages=False).to_urdf_string(pretty=True))
    except Exception as error:  # macros raise errors of every kind
        raise DescriptionError(
            str(file),
            expected=expected,
            came=f"`{shown(' '.join(str(error).split()), 200)}`",
            cure="Correct the macros, or the packages and files they include.",
            file=str(file),
        ) from None


def blank_declaration(text: str) -> str:
    """Replace an XML declaration by spaces: files in use have version 0.0, or text before it."""
    found = _DECLARATION.match(text)
    if found is None:
        return text
    start, end = found.span(1)
    return text[:start] + re.sub(r"\S", " ", text[start:end]) + text[end:]


def parsed(text: str, file: Path) -> Any:
    """Parse the text of a file without entities, external files and deep nesting."""
    try:
        from lxml import etree
    except ImportError:
        raise DescriptionError(
            str(file),
            expected="the package lxml, which reads URDF files",
            came="an environment without it",
            cure=f"Install the extra: {install_command('urdf')}.",
            file=str(file),
        ) from None

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
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(blank_declaration(text).encode(), parser)
    except etree.XMLSyntaxError as error:
        refuse(error.lineno or 1, f"`{shown(str(error.msg), 100)}`", "Correct the XML.")
    macro = next((e for e in root.iter() if "xacro}" in str(e.tag)), None)
    if macro is not None:
        refuse(macro.sourceline, "macros of xacro", EXPAND)
    if tag_of(root) != "robot":
        refuse(root.sourceline, f"<{shown(tag_of(root))}>", "Give the path of a URDF file.")
    return root


def tag_of(element: Any) -> str:
    """Tag of an element; a default namespace is ignored, a prefix is not."""
    tag = str(element.tag)
    return tag.rpartition("}")[2] if element.prefix is None else tag


def contents(root: Node) -> tuple[dict[str, Link], dict[str, UrdfJoint]]:
    """Read all links and joints, by name, and check that they form a tree."""
    links: dict[str, Link] = {}
    tree: dict[str, UrdfJoint] = {}
    root._check_near("element", map(tag_of, root.element), _TAGS["robot"], 0.75)
    found = [element for element in root.element if tag_of(element) in _TAGS["robot"]]
    if len(found) > MOST_LINKS:
        cure = "Remove the parts that do not move."
        root.refuse(f"at most {MOST_LINKS} links and joints", f"{len(found)}", cure)
    for element in found:
        node = Node(element, root.path)
        name = node.named()
        if name in (links if node.tag == "link" else tree):
            node.refuse(f"each {node.tag} name once", f"a second `{name}`", "Rename one of them.")
        if node.tag == "link":
            links[name] = _link(node)
        else:
            tree[name] = _joint(node)
    if not links:
        root.refuse("at least one <link>", "a robot without links", "Add the links.")
    carried: dict[str, str] = {}
    for name, joint in tree.items():
        for link in (joint.parent, joint.child):
            if link not in links:
                cure = suggest(link[:255], links, "Check the spelling.")
                joint.node.refuse("names of links", f"`{shown(link)}`", cure)
        if joint.child in carried:
            joint.node.refuse(
                "one joint that carries each link",
                f"`{joint.child}` also carried by the joint `{carried[joint.child]}`",
                "URDF describes trees: open the loop at one of the joints.",
            )
        carried[joint.child] = name
    return links, tree


def inertial_of(link: Node) -> tuple[Node, float, np.ndarray, np.ndarray] | None:
    """Read <inertia>, mass, pose (4, 4) of the inertial frame and tensor (3, 3) in its axes."""
    inertial = link.parts().get("inertial")
    if inertial is None:
        return None
    parts = inertial.parts()
    for tag in ("mass", "inertia"):
        if tag not in parts:
            inertial.refuse(f"the element <{tag}>", "no such element", f"Add <{tag}>.")
    mass = parts["mass"].number("value", None)
    xx, yy, zz = (parts["inertia"].number(name, None) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (parts["inertia"].number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return parts["inertia"], mass, inertial.pose(), tensor


def _link(node: Node) -> Link:
    """Read a link; without <inertial> it has no mass. The inertia must be physical."""
    found = inertial_of(node)
    if found is None:
        return Link(node, 0.0, np.zeros(3), np.zeros((3, 3)))
    inertia, mass, pose, tensor = found
    with located(node.path, inertia.place):
        try:
            Inertia(mass, (0.0, 0.0, 0.0), tuple(map(tuple, tensor)))
        except InertiaError as error:
            if mass >= 0.0:
                error.cure += f" {FIX}"
            raise
    R = pose[:3, :3]
    return Link(node, mass, pose[:3, 3], R @ tensor @ R.T)


def _joint(node: Node) -> UrdfJoint:
    """Read a joint."""
    parts = node.parts()
    kind = node.text("type")
    if kind not in _TYPES:
        cure = suggest(kind[:40], _TYPES, "Choose one of them.")
        node.refuse(f"a type among {', '.join(_TYPES)}", f"`{shown(kind)}`", cure)
    ends = []
    for tag in ("parent", "child"):
        if tag not in parts:
            node.refuse(f"the element <{tag}>", "no such element", f'Add <{tag} link="..."/>.')
        ends.append(parts[tag].text("link"))
    axis: tuple[float, ...] = (1.0, 0.0, 0.0)
    moves = kind in (*ONE_COORDINATE, "planar")
    if "axis" in parts:
        axis = parts["axis"].numbers("xyz", 3, None if moves else axis)
    joint: joints.Joint = joints.Free() if kind == "floating" else joints.Fixed()
    if moves:
        with located(node.path, parts["axis"].place if "axis" in parts else node.place):
            if kind == "planar":
                joint = joints.Planar(axis)
            else:
                joint = joints.Prismatic(axis) if kind == "prismatic" else joints.Revolute(axis)
    limits: dict[str, Any] = {}
    if "limit" in parts and kind in ONE_COORDINATE:
        limits = _limits(parts["limit"], kind)
    mimic = None
    if "mimic" in parts and kind != "fixed":
        if kind not in ONE_COORDINATE:
            expected = "a joint with one coordinate where there is <mimic>"
            node.refuse(expected, f"a {kind} joint", "Remove <mimic>.")
        other = parts["mimic"]
        mimic = other.text("joint"), other.number("multiplier", 1.0), other.number("offset", 0.0)
    return UrdfJoint(node, kind, ends[0], ends[1], node.pose(), joint, limits, mimic)


def _limits(node: Node, kind: str) -> dict[str, Any]:
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


def _locked(
    tree: dict[str, UrdfJoint], table: UrdfSidecarTable, side: Path
) -> dict[str, UrdfJoint]:
    """Replace locked joints, and joints that follow them, by fixed ones."""
    locked = dict(table.locked or {})
    known = [n for n, joint in tree.items() if joint.kind in ONE_COORDINATE]
    for name in locked:
        if name not in known:
            raise unknown(side, "[locked]", name, "a joint with one coordinate", name, known)
    for joint in tree.values():
        if joint.mimic is not None and joint.mimic[0] not in known:
            other = joint.node.parts()["mimic"]
            cure = suggest(joint.mimic[0][:255], known, "Check the spelling.")
            other.refuse("the name of a joint with one coordinate", show(joint.mimic[0]), cure)
    locked = _with_followers(tree, locked)
    found = {}
    for name, joint in tree.items():
        if name in locked:
            low, high = joint.limits.get("limits", (-math.inf, math.inf))
            if not low <= locked[name] <= high:
                raise fault(
                    side,
                    "[locked]",
                    name,
                    expected=f"a coordinate in the range of the joint, {low:g} to {high:g}",
                    came=f"{locked[name]:g}",
                    cure="Use radians, or metres for a prismatic joint.",
                )
            joint = _fixed(joint, locked[name])
        found[name] = joint
    return found


def heavy_links(tree: dict[str, UrdfJoint], links: dict[str, Link]) -> set[str]:
    """Links that have mass, or carry a link that has."""
    ends = {joint.child: joint.parent for joint in tree.values()}
    heavy: set[str] = set()
    for link in links:
        at: str | None = link if links[link].mass else None
        while at is not None and at not in heavy:
            heavy.add(at)
            at = ends.get(at)
    return heavy


def held_at_zero(
    tree: dict[str, UrdfJoint], links: dict[str, Link], table: UrdfSidecarTable
) -> dict[str, float]:
    """Coordinates of the joints that carry no mass and that the sidecar does not name.

    A coordinate is zero, or the bound of the joint next to zero. A robot without any mass has none.
    """
    named = {*(table.actuated or ()), *(table.locked or ())}
    rolling = {wheel.body for wheel in table.wheels or ()}
    heavy = heavy_links(tree, links)
    if not heavy:
        return {}
    return {
        name: float(np.clip(0.0, *joint.limits.get("limits", (-math.inf, math.inf))))
        for name, joint in tree.items()
        if joint.joint.nv and joint.child not in heavy
        if name not in named and joint.child not in rolling
    }


def _held(
    tree: dict[str, UrdfJoint], links: dict[str, Link], table: UrdfSidecarTable
) -> dict[str, UrdfJoint]:
    """Hold the joints that carry no mass, whose motion would be undetermined."""
    held = _with_followers(tree, held_at_zero(tree, links, table))
    return {
        name: _fixed(joint, held[name]) if name in held else joint for name, joint in tree.items()
    }


def _with_followers(tree: dict[str, UrdfJoint], held: dict[str, float]) -> dict[str, float]:
    """Add the joints that follow held ones, with the coordinates that belong to them."""
    held = dict(held)
    following = {name: joint.mimic for name, joint in tree.items() if joint.mimic is not None}
    # Chains of joints that follow each other.
    while ready := [name for name, (leader, *_) in following.items() if leader in held]:
        for name in ready:
            leader, factor, offset = following.pop(name)
            held.setdefault(name, factor * held[leader] + offset)
    return held


def _fixed(joint: UrdfJoint, value: float) -> UrdfJoint:
    """Replace a joint by a fixed one at a coordinate; planar and floating ones are at zero."""
    motion = np.eye(4)
    if joint.kind in ONE_COORDINATE:
        axis = np.array(joint.joint.axis)  # type: ignore[attr-defined]
        if joint.kind == "prismatic":
            motion[:3, 3] = value * axis
        else:
            motion[:3, :3] = Rotation.from_rotvec(value * axis).as_matrix()
    ends = joint.parent, joint.child
    return UrdfJoint(joint.node, "fixed", *ends, joint.pose @ motion, joints.Fixed(), {})


def _bodies(
    root: Node,
    links: dict[str, Link],
    tree: dict[str, UrdfJoint],
    base: str | None,
    side: Path,
    keep_fixed: bool,
) -> dict[str, _Group]:
    """Group links to bodies from the root on, parents first."""
    children: dict[str, list[UrdfJoint]] = {}
    for joint in tree.values():
        children.setdefault(joint.parent, []).append(joint)
    carried = {joint.child for joint in tree.values()}
    tops = [name for name in links if name not in carried]
    if len(tops) > 1:
        cure = "Connect all others to it by joints."
        root.refuse("one root link", shown(", ".join(tops)), cure)
    top = tops[0] if tops else ""
    only = children.get(top, [])
    world = top == "world" or (
        tops and len(only) == 1 and not links[top].mass and only[0].kind in ("floating", "planar")
    )
    if world and len(only) == 1 and not links[top].mass:
        first = only[0]
        top = first.child
        if base is not None and first.kind in ONE_COORDINATE:
            raise fault(
                side,
                "",
                "base",
                expected=f"no base: the joint at line {first.node.line} of the URDF file "
                "connects it to the world",
                came=show(base),
                cure="Remove this field.",
            )
        own = first.joint if base is None else _BASES[base]()
        groups = {top: _Group(own, None, first.pose, first.limits)}
    else:
        groups = {top: _Group(_BASES[base or ("fixed" if world else "free")](), None, np.eye(4))}
    at = {top: (top, np.eye(4))}  # body that contains a link, and the pose of the link in it
    waiting = [top] if tops else []
    while waiting:
        name = waiting.pop()
        body, pose = at[name]
        groups[body].add(links[name], pose)
        for joint in children.get(name, []):
            placement = pose @ joint.pose
            if joint.kind == "fixed" and not keep_fixed:
                at[joint.child] = (body, placement)
            else:
                groups[joint.child] = _Group(joint.joint, body, placement, joint.limits)
                at[joint.child] = (joint.child, np.eye(4))
        waiting.extend(joint.child for joint in reversed(children.get(name, [])))
    lost = next((j for j in tree.values() if j.child not in at and j.parent not in at), None)
    if lost is not None:
        cure = "Remove the joint that leads back."
        lost.node.refuse("joints that form a tree", "a cycle of joints", cure)
    return groups


def _actuated(
    moving: dict[str, str],
    passive: set[str],
    groups: dict[str, _Group],
    table: UrdfSidecarTable,
    side: Path,
) -> list[str] | None:
    """Bodies of the actuated joints; default all but a base with the joint of the sidecar."""
    if table.actuated is None:
        base = next(iter(groups.values())).joint
        every = [body for body in moving.values() if body not in passive]
        return every if base.nv == 1 else None
    for name in table.actuated:
        if name not in moving:
            raise unknown(side, "", "actuated", "a joint that moves", name, moving)
    return [moving[name] for name in table.actuated]
