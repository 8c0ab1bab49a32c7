"""Reader of robots from URDF files, with an optional sidecar for what URDF cannot express."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.errors import ConcurError, InertiaError, shown
from concur.io._names import free_name
from concur.io._sidecar import UrdfSidecar
from concur.io._unread import Part, Unread
from concur.io._urdf_elements import unread_urdf
from concur.io._urdf_repair import ONE_COORDINATE
from concur.io._urdf_shapes import drawn, pose_of
from concur.io._urdf_tree import (
    FIX_POINT,
    Link,
    UrdfFile,
    UrdfJoint,
    held_joints,
    locked_joints,
    read_urdf,
)
from concur.io._urdf_xacro import Macros
from concur.robot import Body, Inertia, Mechanism, Mimic, Shape, joints
from concur.tables import (
    MOST_BODIES,
    fault,
    located,
    show,
    unknown,
)

_BASES = {"free": joints.Free, "planar": joints.Planar, "fixed": joints.Fixed}


@dataclass
class _Group:
    """A body to be: a link with the links fixed to it, as parts (mass, com, tensor)."""

    joint: joints.Joint
    parent: str | None
    placement: np.ndarray
    limits: dict[str, Any] = field(default_factory=dict)
    parts: list[tuple[float, np.ndarray, np.ndarray]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)

    def add(self, link: Link, pose: np.ndarray, macros: Macros) -> None:
        """Add a link whose frame has a pose (4, 4) in the body frame."""
        shown_as = drawn(link.node, "visual", macros)
        for shape in shown_as if any(shown_as) else drawn(link.node, "collision", macros):
            if shape:
                place = pose_of(pose @ shape.placement.matrix)
                self.shapes.append(replace(shape, placement=place))
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
    path: str | PathLike[str],
    sidecar: str | PathLike[str] | None,
    keep_fixed: bool = False,
    macros: Macros = Macros(),  # noqa: B008  # a frozen value
    held: bool = False,
) -> Mechanism:
    """Read a robot from a URDF file; parameters and errors as of `load`.

    The base of one that is `held` is on a fixed joint, if the sidecar has no base.
    """
    read = read_urdf(path, sidecar, macros)
    file, root, links, tree = read.file, read.root, read.links, read.tree
    table, side, given = read.table, read.side, read.given
    changes = [Part(own.fault, own.place, own.change) for own in read.repairs]
    unread = Unread(file, table.ignore, changes)
    unread_urdf(root, unread, read.macros)
    if table.base is None and "world" in links.keys() - {joint.child for joint in tree.values()}:
        meaning = "the inertial frame, because of its name; under another name the base is free"
        unread.parts.append(Part("world", f"line {links['world'].node.line}", meaning))
    listed = unread.close(side)
    moving = held_joints(locked_joints(tree, table, side), links, table)
    groups = _bodies(read, moving, keep_fixed, held)
    if len(groups) > MOST_BODIES:
        root.refuse(
            f"at most {MOST_BODIES} bodies", f"{len(groups)}", "Merge links that do not move."
        )
    lost = {joint.child for joint in moving.values() if joint.kind == "fixed"} - groups.keys()
    if lost:
        listed += (f"`link`: names of {len(lost)} links on fixed joints: there are too many",)
    bodies, joint_names = [], {joint.child: name for name, joint in moving.items()}
    for name, group in groups.items():
        placement = pose_of(group.placement)
        with located(file, links[name].node.place):
            inertia = group.inertia()
            facts = {**group.limits, "shape": group.shapes}
            facts["joint_name"] = joint_names.get(name) or free_name(name, moving)
            bodies.append(Body(name, group.joint, group.parent, placement, inertia, **facts))
    free = {
        name: joint.child
        for name, joint in moving.items()
        if joint.child in groups and groups[joint.child].joint.nv
    }
    single = [name for name, child in free.items() if groups[child].joint.nv == 1]
    for motor in table.motors:
        for moved in motor.ratios:
            if moved not in single:
                label = f'[[motors]] "{motor.name}"'
                raise unknown(side, label, "joints", "a joint", moved, single)
    wheels, steering = table.wheels, table.steering
    mimics = []
    for joint in moving.values():
        if joint.mimic is not None:
            with located(file, joint.node.place):
                other, *numbers = joint.mimic
                mimics.append(Mimic(joint.child, moving[other].child, *numbers))
    passive = {free[name] for motor in table.motors for name in motor.ratios}
    passive |= {mimic.body for mimic in mimics}
    led = [wheel for wheel in wheels if wheel.body in [entry.wheel for entry in steering]]
    for wheel in led:
        carrier = wheel.body
        while not groups[carrier].joint.nv and groups[carrier].parent:  # a frame of the wheel
            carrier = str(groups[carrier].parent)
        passive.add(carrier if wheel.kind == "slider" else str(groups[carrier].parent))
    actuated = _actuated(free, passive, groups, table, side)
    name = table.name or root.element.get("name") or ""
    if not name.strip() or len(name) > 255 or not name.isprintable():
        root.refuse("the name of the robot", show(name), 'Write <robot name="...">.')
    try:
        gravity = table.gravity or (0.0, 0.0, 0.0)
        parts = wheels, gravity, actuated, table.motors, mimics, steering, table.supports or {}
        return Mechanism(name, bodies, *parts, table.springs, listed)
    except ConcurError as error:
        found = re.search(r"(body|wheel|mimic|motor|spring|steering) `([^`]*)`", error.where)
        if found is not None and found[1] in ("body", "mimic") and found[2] in links:
            with located(file, links[found[2]].node.place):
                empty = [name for name, group in groups.items() if not group.parts]
                if isinstance(error, InertiaError) and empty:
                    error.came += f"; links without mass: {shown(', '.join(empty), 300)}"
                    if next(iter(groups)) in empty:
                        error.cure += ' Or hold the root: base = "fixed" in the sidecar.'
                points = [n for n, link in links.items() if link.mass and not link.tensor.any()]
                if isinstance(error, InertiaError) and points:
                    error.came += f"; links read as points: {shown(', '.join(points), 300)}"
                    error.cure += f" {FIX_POINT}"
                raise
        tables = {"body": "bodies", "steering": "steering"}
        label = f'[[{tables.get(found[1], f"{found[1]}s")}]] "{found[2]}"' if found else ""
        of_base = "base" if found is None and "base `" in error.where else ""
        with located(side if given else file, label, of_base):
            raise


def _bodies(
    read: UrdfFile, tree: dict[str, UrdfJoint], keep_fixed: bool, held: bool
) -> dict[str, _Group]:
    """Group links to bodies from the root on, parents first."""
    root, links, base, side = read.root, read.links, read.table.base, read.side
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
        otherwise = "fixed" if world or held else "free"
        groups = {top: _Group(_BASES[base or otherwise](), None, np.eye(4))}

    frames: dict[str, _Group] = {}
    at = {top: (top, np.eye(4))}  # body that contains a link, and the pose of the link in it
    waiting = [top] if tops else []
    while waiting:
        name = waiting.pop()
        body, pose = at[name]
        groups[body].add(links[name], pose, read.macros)
        for joint in children.get(name, []):
            placement = pose @ joint.pose
            if joint.kind == "fixed" and not keep_fixed:
                at[joint.child] = (body, placement)
                frames[joint.child] = _Group(joint.joint, body, placement)
            else:
                groups[joint.child] = _Group(joint.joint, body, placement, joint.limits)
                at[joint.child] = (joint.child, np.eye(4))
        waiting.extend(joint.child for joint in reversed(children.get(name, [])))
    lost = next((j for j in tree.values() if j.child not in at and j.parent not in at), None)
    if lost is not None:
        cure = "Remove the joint that leads back."
        lost.node.refuse("joints that form a tree", "a cycle of joints", cure)
    return groups | (frames if len(groups) + len(frames) <= MOST_BODIES else {})


def _actuated(
    moving: dict[str, str],
    passive: set[str],
    groups: dict[str, _Group],
    table: UrdfSidecar,
    side: Path,
) -> list[str] | None:
    """The actuated joints; default all but a base with the joint of the sidecar."""
    if table.actuated is None:
        base = next(iter(groups.values())).joint
        every = [name for name, body in moving.items() if body not in passive]
        return every if base.nv == 1 else None
    for name in table.actuated:
        if name not in moving:
            raise unknown(side, "", "actuated", "a joint that moves", name, moving)
    return list(table.actuated)
