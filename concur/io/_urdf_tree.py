"""Links and joints of a URDF file, checked, by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.errors import InertiaError, shown
from concur.files import is_file
from concur.io._sidecar import UrdfSidecar, sidecar_of
from concur.io._unread import Part
from concur.io._urdf_inertia import (
    inertial_of,
    largest_gyration,
    second_moments,
    without_rounding,
)
from concur.io._urdf_repair import repaired
from concur.io._urdf_xacro import Macros, urdf_text
from concur.io._urdf_xml import TAGS, Node, parsed, tag_of
from concur.robot import Inertia, joints
from concur.tables import build, file_named, located, read_toml, suggest

ONE_COORDINATE = ("revolute", "continuous", "prismatic")

_TYPES = (*ONE_COORDINATE, "fixed", "planar", "floating")

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
    note: str = ""  # of what differs from the file

    @property
    def is_point(self) -> bool:
        """Whether a tensor of zero replaces a missing or invalid one."""
        return bool(self.note) and not self.tensor.any()


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
    note: str = ""  # of what differs from the file


@dataclass(frozen=True)
class UrdfFile:
    """A URDF file as it is read: its tree after the repairs, and its sidecar."""

    file: Path
    macros: Macros
    root: Node
    links: dict[str, Link]
    tree: dict[str, UrdfJoint]
    repairs: list[Part]
    table: UrdfSidecar
    side: Path
    given: bool  # whether there is a sidecar

    @property
    def top(self) -> str:
        """Root link; empty if each link is carried."""
        carried = {joint.child for joint in self.tree.values()}
        return next((name for name in self.links if name not in carried), "")


def read_urdf(
    path: str | PathLike[str],
    sidecar: str | PathLike[str] | None = None,
    macros: Macros = Macros(),  # noqa: B008  # a frozen value
) -> UrdfFile:
    """Read a URDF file and its sidecar: parse, repair, check that links and joints form a tree."""
    file = file_named(path)
    table, macros, side, given = read_sidecar(file, sidecar, macros)
    root = Node(parsed(urdf_text(file, macros), file), file)
    repairs = repaired(root)
    links, tree = contents(root)
    return UrdfFile(file, macros, root, links, tree, repairs, table, side, given)


def read_sidecar(
    file: Path, sidecar: str | PathLike[str] | None, macros: Macros
) -> tuple[UrdfSidecar, Macros, Path, bool]:
    """The sidecar, all macros, the path of the sidecar, and whether there is one."""
    side = sidecar_of(file) if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    table = build(UrdfSidecar, read_toml(side) if given else {}, side)
    return table, macros.over(table.xacro or {}, table.packages or {}, side.parent), side, given


def contents(root: Node) -> tuple[dict[str, Link], dict[str, UrdfJoint]]:
    """Read all links and joints, by name, and check that they form a tree."""
    links: dict[str, Link] = {}
    tree: dict[str, UrdfJoint] = {}
    root.check_near("element", map(tag_of, root.element), TAGS["robot"], 0.75)
    found = [element for element in root.element if tag_of(element) in TAGS["robot"]]
    if len(found) > MOST_LINKS:
        cure = "Remove the parts that do not move."
        root.refuse(f"at most {MOST_LINKS} links and joints", f"{len(found)}", cure)
    gyration = functools.cache(lambda: largest_gyration(root))
    for element in found:
        node = Node(element, root.path)
        name = node.named()
        if name in (links if node.tag == "link" else tree):
            node.refuse(f"each {node.tag} name once", f"a second `{name}`", "Rename one of them.")
        if node.tag == "link":
            links[name] = read_link(node, gyration)
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


def read_link(node: Node, gyration: Callable[[], float]) -> Link:
    """Read a link; without <inertial> it has no mass. The inertia must be physical."""
    found = inertial_of(node)
    if found is None:
        return Link(node, 0.0, np.zeros(3), np.zeros((3, 3)))
    inertia, mass, pose, tensor = found
    R, com, note = pose[:3, :3], pose[:3, 3], ""
    try:
        Inertia(mass, (0.0, 0.0, 0.0), tuple(map(tuple, tensor)))
    except InertiaError as error:
        exact = None if mass <= 0.0 else without_rounding(mass, com, tensor, gyration())
        if exact is None:
            with located(node.path, inertia.place):
                if mass >= 0.0:
                    error.cure += f" {FIX}"
                raise
        moments = ", ".join(f"{x:.3g}" for x in np.maximum(np.linalg.eigvalsh(exact), 0.0))
        note = (
            f"a second moment of {np.linalg.eigvalsh(second_moments(tensor))[0]:.3g} kg m^2, which "
            f"is rounding; without it the principal moments are ({moments}) kg m^2"
        )
        tensor = exact
    if inertia.tag == "inertial" and mass:
        note = "missing beside a mass, which is read as a point, as Pinocchio does"
    return Link(node, mass, com, R @ tensor @ R.T, note and f"{note} ({inertia.place})")


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
    limits, note = _tightest(node, kind) if kind in ONE_COORDINATE else ({}, "")
    mimic = None
    if "mimic" in parts and kind != "fixed":
        if kind not in ONE_COORDINATE:
            expected = "a joint with one coordinate where there is <mimic>"
            node.refuse(expected, f"a {kind} joint", "Remove <mimic>.")
        other = parts["mimic"]
        mimic = other.text("joint"), other.number("multiplier", 1.0), other.number("offset", 0.0)
    return UrdfJoint(node, kind, ends[0], ends[1], node.pose(), joint, limits, mimic, note)


def _tightest(joint: Node, kind: str) -> tuple[dict[str, Any], str]:
    """Limits that all elements <limit> of a joint allow, and a note if there are several."""
    elements = joint.limits()
    each = [_limits(element, kind) for element in elements]
    if len(each) < 2:
        return (each[0] if each else {}), ""
    found: dict[str, Any] = {}
    if ranges := [one["limits"] for one in each if "limits" in one]:
        lower, upper = max(low for low, _ in ranges), min(high for _, high in ranges)
        if not lower < upper:
            texts = " and ".join(f"{low:g} to {high:g}" for low, high in ranges)
            joint.refuse("limits that overlap", texts, "Remove all <limit> but one.")
        found["limits"] = (lower, upper)
    for name in ("torque_limit", "speed_limit"):
        if values := [one[name] for one in each if name in one]:
            found[name] = min(values)
    lower, upper = found.get("limits", (-math.inf, math.inf))
    taken = (
        f"lower {lower:g}, upper {upper:g}, effort {found.get('torque_limit', math.inf):g}, "
        f"velocity {found.get('speed_limit', math.inf):g}"
    )
    lines = ", ".join(str(element.line) for element in elements)
    note = f"all but the tightest of {len(each)}, which leaves {taken}; Pinocchio takes the first"
    return found, f"{note} ({joint.place}, <limit> at lines {lines})"


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
