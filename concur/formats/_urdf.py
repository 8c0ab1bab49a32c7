"""Reader of robots from URDF files, with an optional sidecar for what URDF cannot express."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from pydantic import Field
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError, DescriptionError, install_command, shown
from concur.files import is_file, read_text
from concur.formats._wheels import WheelTable, wheel_of
from concur.formats.tables import (
    LARGEST,
    LARGEST_TOML,
    MOST_BODIES,
    Number,
    Table,
    Text,
    Vector3,
    check,
    fault,
    file_named,
    located,
    read_toml,
    show,
    suggest,
    unknown,
)
from concur.mechanism import Body, Inertia, Pose, joints
from concur.multibody import Mechanism

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)

# Tags that are read, with their attributes. A tag or attribute that resembles one is refused.
_TAGS: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "mimic", "dynamics", "calibration"),
    "inertial": ("origin", "mass", "inertia"),
}
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
}
_ONE_COORDINATE = ("revolute", "continuous", "prismatic")
_TYPES = (*_ONE_COORDINATE, "fixed", "planar", "floating")
_BASES = {"free": joints.Free, "planar": joints.Planar, "fixed": joints.Fixed}
_NO_SIDECAR = "`<robot>.toml` beside `<robot>.urdf` is its sidecar: rename one of them."


class SidecarTable(Table):
    """Fields of a sidecar."""

    cures: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("bodies", "robot", "outputs", "reference"), _NO_SIDECAR),
        "wheel": "Write [[wheels]].",
        "root": 'Write base = "free", "planar" or "fixed".',
    }
    name: Text | None = None
    gravity: Vector3 | None = None
    base: (
        Annotated[
            Literal["free", "planar", "fixed"],
            Field(description='"free", "planar" or "fixed"'),
        ]
        | None
    ) = None
    actuated: Annotated[list[str], Field(description="a list of joint names")] | None = None
    locked: (
        Annotated[
            dict[str, Number],
            Field(description="a table with a coordinate, m or rad, for each joint name"),
        ]
        | None
    ) = None
    wheels: (
        Annotated[
            list[WheelTable],
            Field(max_length=MOST_BODIES, description=f"tables [[wheels]], at most {MOST_BODIES}"),
        ]
        | None
    ) = None


class _Node:
    """An element of the file, with errors that name its line."""

    def __init__(self, element: Any, path: Path, owner: str = "") -> None:
        self.element = element
        self.path = path
        self.tag = _tag(element)
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

    def parts(self) -> dict[str, _Node]:
        """Child elements that are read, by tag; each may occur once, `visual` and others often."""
        known = _TAGS[self.tag]
        self._check_near("element", map(_tag, self.element), known, 0.75)
        found: dict[str, _Node] = {}
        for element in self.element:
            tag = _tag(element)
            if tag in known and tag not in ("visual", "collision"):
                if tag in found:
                    self.refuse(f"one element <{tag}>", "several", "Remove all but one.")
                found[tag] = _Node(element, self.path, self.place.partition(", ")[2])
        return found

    def _check_near(
        self, kind: str, names: Iterable[str], known: tuple[str, ...], cutoff: float
    ) -> None:
        for name in names:
            if name not in known and difflib.get_close_matches(name[:40], known, 1, cutoff):
                self.refuse(
                    f"one of {', '.join(known)}",
                    f"an unknown {kind} `{shown(name)}`",
                    suggest(name[:40], known, "Correct it."),
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
            self.refuse(expected, show(text), "Correct the attribute.")
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


@dataclass(frozen=True)
class _Link:
    """A link with its mass (kg), centre of mass (m) and tensor about it (kg m^2), link axes."""

    node: _Node
    mass: float
    com: np.ndarray
    tensor: np.ndarray


@dataclass(frozen=True)
class _Joint:
    """A joint: its type, links, placement (4, 4) in the parent link, and arguments of `Body`."""

    node: _Node
    kind: str
    parent: str
    child: str
    pose: np.ndarray
    joint: joints.Joint
    limits: dict[str, Any]


@dataclass
class _Group:
    """A body to be: a link with the links fixed to it, as parts (mass, com, tensor)."""

    joint: joints.Joint
    parent: str | None
    placement: np.ndarray
    limits: dict[str, Any] = field(default_factory=dict)
    parts: list[tuple[float, np.ndarray, np.ndarray]] = field(default_factory=list)

    def add(self, link: _Link, pose: np.ndarray) -> None:
        """Add a link whose frame has a pose (4, 4) in the body frame."""
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
    side = file.with_suffix(".toml") if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    table = check(SidecarTable, read_toml(side) if given else {}, side)
    root = _Node(_parsed(file), file)
    links, tree = _contents(root)
    moving = _locked(tree, table, side)
    groups = _bodies(root, links, moving, table.base, side, keep_fixed)
    if len(groups) > MOST_BODIES:
        root.refuse(
            f"at most {MOST_BODIES} bodies", f"{len(groups)}", "Merge links that do not move."
        )
    bodies = []
    for name, group in groups.items():
        placement = Pose(
            tuple(group.placement[:3, 3]),
            tuple(Rotation.from_matrix(group.placement[:3, :3]).as_quat()),
        )
        with located(file, links[name].node.place):
            inertia = group.inertia()
            bodies.append(Body(name, group.joint, group.parent, placement, inertia, **group.limits))
    wheels = [wheel_of(wheel, list(groups), side) for wheel in table.wheels or ()]
    actuated = _actuated(moving, groups, table, side)
    name = table.name or root.element.get("name") or ""
    if not name.strip() or len(name) > 255 or not name.isprintable():
        root.refuse("the name of the robot", show(name), 'Write <robot name="...">.')
    try:
        return Mechanism(name, bodies, wheels, table.gravity or (0.0, 0.0, 0.0), actuated)
    except ConcurError as error:
        found = re.search(r"(body|wheel) `([^`]*)`", error.where)
        if found is not None and found[1] == "body" and found[2] in links:
            with located(file, links[found[2]].node.place):
                raise
        with located(side if given else file, f'[[wheels]] "{found[2]}"' if found else ""):
            raise


def _parsed(file: Path) -> Any:
    """Parse the file without entities, external files and deep nesting."""
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

    text = read_text(file, "a URDF file", "Check the path.", largest=LARGEST_TOML)
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
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        refuse(error.lineno or 1, f"`{shown(str(error.msg), 100)}`", "Correct the XML.")
    macro = next((e for e in root.iter() if "xacro}" in str(e.tag)), None)
    if macro is not None:
        cure = "Expand them: `xacro robot.urdf.xacro > robot.urdf`."
        refuse(macro.sourceline, "macros of xacro", cure)
    if _tag(root) != "robot":
        refuse(root.sourceline, f"<{shown(_tag(root))}>", "Give the path of a URDF file.")
    return root


def _tag(element: Any) -> str:
    """Tag of an element; a default namespace is ignored, a prefix is not."""
    tag = str(element.tag)
    return tag.rpartition("}")[2] if element.prefix is None else tag


def _contents(root: _Node) -> tuple[dict[str, _Link], dict[str, _Joint]]:
    """Read all links and joints, by name, and check that they form a tree."""
    links: dict[str, _Link] = {}
    tree: dict[str, _Joint] = {}
    root._check_near("element", map(_tag, root.element), _TAGS["robot"], 0.75)
    for element in root.element:
        if _tag(element) not in _TAGS["robot"]:
            continue
        node = _Node(element, root.path)
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


def _link(node: _Node) -> _Link:
    """Read a link; without <inertial> it has no mass. The inertia must be physical."""
    inertial = node.parts().get("inertial")
    if inertial is None:
        return _Link(node, 0.0, np.zeros(3), np.zeros((3, 3)))
    parts = inertial.parts()
    for tag in ("mass", "inertia"):
        if tag not in parts:
            inertial.refuse(f"the element <{tag}>", "no such element", f"Add <{tag}>.")
    mass = parts["mass"].number("value", None)
    xx, yy, zz = (parts["inertia"].number(name, None) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (parts["inertia"].number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    with located(node.path, parts["inertia"].place):
        Inertia(mass, (0.0, 0.0, 0.0), tuple(map(tuple, tensor)))
    pose = inertial.pose()
    return _Link(node, mass, pose[:3, 3], pose[:3, :3] @ tensor @ pose[:3, :3].T)


def _joint(node: _Node) -> _Joint:
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
    if "axis" in parts:
        axis = parts["axis"].numbers("xyz", 3, axis)
    joint: joints.Joint = joints.Free() if kind == "floating" else joints.Fixed()
    if kind in (*_ONE_COORDINATE, "planar"):
        with located(node.path, parts["axis"].place if "axis" in parts else node.place):
            if kind == "planar":
                joint = joints.Planar(axis)
            else:
                joint = joints.Prismatic(axis) if kind == "prismatic" else joints.Revolute(axis)
    limits: dict[str, Any] = {}
    if "limit" in parts and kind in _ONE_COORDINATE:
        limits = _limits(parts["limit"], kind)
    return _Joint(node, kind, ends[0], ends[1], node.pose(), joint, limits)


def _limits(node: _Node, kind: str) -> dict[str, Any]:
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


def _locked(tree: dict[str, _Joint], table: SidecarTable, side: Path) -> dict[str, _Joint]:
    """Replace locked joints by fixed ones, and refuse mimic joints that are not locked."""
    locked = table.locked or {}
    for name in locked:
        known = [n for n, joint in tree.items() if joint.kind in _ONE_COORDINATE]
        if name not in known:
            raise unknown(side, "[locked]", name, "a joint with one coordinate", name, known)
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
            motion, axis = np.eye(4), np.array(joint.joint.axis)  # type: ignore[attr-defined]
            if joint.kind == "prismatic":
                motion[:3, 3] = locked[name] * axis
            else:
                motion[:3, :3] = Rotation.from_rotvec(locked[name] * axis).as_matrix()
            at, ends = joint.pose @ motion, (joint.parent, joint.child)
            joint = _Joint(joint.node, "fixed", *ends, at, joints.Fixed(), {})
        elif joint.kind != "fixed" and "mimic" in joint.node.parts():
            joint.node.refuse(
                "a joint that moves independently of all others",
                "<mimic>, a coupling to another joint, which models do not support",
                f"Hold the joint in the sidecar: [locked], then `{name}` = 0.0; or remove <mimic>.",
            )
        found[name] = joint
    return found


def _bodies(
    root: _Node,
    links: dict[str, _Link],
    tree: dict[str, _Joint],
    base: str | None,
    side: Path,
    keep_fixed: bool,
) -> dict[str, _Group]:
    """Group links to bodies from the root on, parents first."""
    children: dict[str, list[_Joint]] = {}
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
        if base is not None and first.kind in _ONE_COORDINATE:
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
    tree: dict[str, _Joint], groups: dict[str, _Group], table: SidecarTable, side: Path
) -> list[str] | None:
    """Bodies of the actuated joints; default all but a base with the joint of the sidecar."""
    moving = {
        name: joint.child
        for name, joint in tree.items()
        if joint.child in groups and groups[joint.child].joint.nv
    }
    if table.actuated is None:
        base = next(iter(groups.values())).joint
        return list(moving.values()) if base.nv == 1 else None
    for name in table.actuated:
        if name not in moving:
            raise unknown(side, "", "actuated", "a joint that moves", name, moving)
    return [moving[name] for name in table.actuated]
