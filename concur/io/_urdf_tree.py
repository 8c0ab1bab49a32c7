"""Links and joints of a URDF file, checked, by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from concur.errors import InertiaError, shown
from concur.io._sidecar import UrdfSidecar
from concur.io._urdf_draft import Repair
from concur.io._urdf_repair import (
    NAMES,
    ONE_COORDINATE,
    inertial_of,
    limits_of,
    repaired,
)
from concur.io._urdf_xacro import Macros, read_sidecar, urdf_text
from concur.io._urdf_xml import TAGS, Node, parsed, tag_of
from concur.robot import Inertia, joints
from concur.tables import fault, file_named, located, show, suggest, unknown

_TYPES = (*ONE_COORDINATE, "fixed", "planar", "floating", "spherical")

MOST_LINKS = 50_000
"""Largest number of links and joints in a file; those that move on their own are far fewer."""

FIX = "`concur check robot.urdf --fix OUT.urdf` writes the nearest physical inertias."
"""Cure for an inertia that no rigid body has."""

FIX_POINT = "`concur check robot.urdf --fix OUT.urdf` writes an assumed tensor for each of them."
"""Cure for a mass without tensor where the motion needs one."""


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


@dataclass(frozen=True)
class UrdfFile:
    """A URDF file as it is read: its tree after the repairs, and its sidecar."""

    file: Path
    macros: Macros
    root: Node
    links: dict[str, Link]
    tree: dict[str, UrdfJoint]
    repairs: Sequence[Repair]
    table: UrdfSidecar
    side: Path
    given: bool  # whether there is a sidecar

    @functools.cached_property
    def carriers(self) -> dict[str, str]:
        """Names of the joints that carry links, by link."""
        return {joint.child: name for name, joint in self.tree.items()}

    @functools.cached_property
    def bearing(self) -> set[str]:
        """Links that carry a joint that moves, on themselves or on links fixed to them."""
        found: set[str] = set()
        for joint in self.tree.values():
            at = joint.parent if joint.joint.nv else ""
            while at and at not in found:
                found.add(at)
                above = self.tree.get(self.carriers.get(at, ""))
                at = above.parent if above is not None and not above.joint.nv else ""
        return found

    def solid(self, link: str) -> list[tuple[Link, np.ndarray]]:
        """A link and those fixed to it, with their poses (4, 4) in its frame."""
        found, waiting = [], [(link, np.eye(4))]
        while waiting:
            name, pose = waiting.pop()
            found.append((self.links[name], pose))
            fixed = [j for j in self.tree.values() if j.parent == name and not j.joint.nv]
            waiting += [(j.child, pose @ j.pose) for j in fixed if len(found) <= len(self.links)]
        return found

    @property
    def top(self) -> str:
        """Root link; empty if each link is carried."""
        return next((name for name in self.links if name not in self.carriers), "")


def read_urdf(
    path: str | PathLike[str],
    sidecar: str | PathLike[str] | None = None,
    macros: Macros = Macros(),  # noqa: B008  # a frozen value
    asked: Collection[str] = (),
) -> UrdfFile:
    """Read a URDF file and its sidecar: parse, repair, check that links and joints form a tree."""
    file = file_named(path)
    table, macros, side, given = read_sidecar(file, sidecar, macros)
    for name in table.repair:
        if name not in NAMES:
            raise unknown(side, "", "repair", "the name of a repair", name, NAMES)
    draft = repaired(Node(parsed(urdf_text(file, macros), file), file), {*table.repair, *asked})
    links, tree = contents(draft.root)
    return UrdfFile(file, macros, draft.root, links, tree, draft.repairs, table, side, given)


def contents(root: Node) -> tuple[dict[str, Link], dict[str, UrdfJoint]]:
    """Read all links and joints, by name, and check that they form a tree."""
    links: dict[str, Link] = {}
    tree: dict[str, UrdfJoint] = {}
    root.check_near("element", map(tag_of, root.element), TAGS["robot"], 0.75)
    found = [element for element in root.element if tag_of(element) in TAGS["robot"]]
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
    others = {"floating": joints.Free, "spherical": joints.Spherical}
    joint: joints.Joint = others.get(kind, joints.Fixed)()
    if moves:
        with located(node.path, parts["axis"].place if "axis" in parts else node.place):
            if kind == "planar":
                joint = joints.Planar(axis)
            else:
                joint = joints.Prismatic(axis) if kind == "prismatic" else joints.Revolute(axis)
    limits = limits_of(parts["limit"], kind) if kind in ONE_COORDINATE and "limit" in parts else {}
    mimic = None
    if "mimic" in parts and kind != "fixed":
        if kind not in ONE_COORDINATE:
            expected = "a joint with one coordinate where there is <mimic>"
            node.refuse(expected, f"a {kind} joint", "Remove <mimic>.")
        other = parts["mimic"]
        mimic = other.text("joint"), other.number("multiplier", 1.0), other.number("offset", 0.0)
    return UrdfJoint(node, kind, ends[0], ends[1], node.pose(), joint, limits, mimic)


# --- joints that are held -----------------------------------------------------------------------


def locked_joints(
    tree: dict[str, UrdfJoint], table: UrdfSidecar, side: Path
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
    tree: dict[str, UrdfJoint], links: dict[str, Link], table: UrdfSidecar
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


def held_joints(
    tree: dict[str, UrdfJoint], links: dict[str, Link], table: UrdfSidecar
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
