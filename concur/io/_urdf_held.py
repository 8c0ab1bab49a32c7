"""Joints of a URDF file that are held: locked ones, and those that move no mass."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from concur.io._sidecar import UrdfSidecar
from concur.io._urdf_tree import ONE_COORDINATE, Link, UrdfJoint
from concur.robot import joints
from concur.tables import (
    fault,
    show,
    suggest,
    unknown,
)


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
