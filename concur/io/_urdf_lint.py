"""Entries of URDF files that a robot can have but hardly has."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from concur.errors import shown
from concur.io._unread import first_names
from concur.io._urdf_repair import ONE_COORDINATE
from concur.io._urdf_shapes import separation, shapes_of
from concur.io._urdf_tree import Link, UrdfJoint, held_at_zero, read_urdf
from concur.io._urdf_wheels import Hints, looks_wheeled
from concur.io._urdf_xacro import Macros

OUTSIDE = 0.01
"""Distance of a centre of mass from the hull of the collision shapes above which it is
suspicious, in widths of the hull."""

UNEQUAL = 1e-3
"""Difference of the length of an axis from one above which it is suspicious. Axes with four
digits, such as 0.7071 0.7071 0, are below it."""


def suspicious_urdf(
    path: str | PathLike[str],
    sidecar: str | PathLike[str] | None = None,
    *,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str | Path] | None = None,
) -> tuple[str, ...]:
    """Find entries of a URDF file that a robot can have but hardly has.

    These are centres of mass outside the hull of collision shapes, if all shapes of a link are
    boxes, cylinders and spheres; limits of zero, which are read as no limits; axes that are not of
    unit length; and joints that are held because they carry no mass.

    Parameters
    ----------
    path : path
        File that `load` has read.
    sidecar : path, optional
        As of `load`.
    xacro : mapping of str to str, optional
        As of `load`.
    packages : mapping of str to path, optional
        As of `load`.

    Returns
    -------
    tuple of str
        One sentence for each kind of finding.
    """
    read = read_urdf(path, sidecar, Macros(xacro or {}, packages or {}))
    links, tree, table = read.links, read.tree, read.table
    moving = {name: joint for name, joint in tree.items() if joint.kind in ONE_COORDINATE}
    found = {
        "centre of mass outside the hull of the collision shapes": _outside(links),
        "limits [0, 0] are read as no limits": _zero(moving, "lower", "upper"),
        "effort 0 is read as no limit": _zero(moving, "effort"),
        "velocity 0 is read as no limit": _zero(moving, "velocity"),
        "axis not of unit length": _unequal(tree),
        "held at a constant coordinate, because the joint carries no mass": [
            f"joint `{name}` at {value:g}"
            for name, value in held_at_zero(tree, links, table).items()
        ],
    }
    sentences = [f"{what}: {first_names(names)}" for what, names in found.items() if names]
    free = table.base in (None, "free") and not table.gravity and read.top != "world"
    if free and looks_wheeled(read, Hints.of(read)):
        sentences.append(
            "it has wheels, but a free base without gravity: `concur check --suggest` writes a "
            "sidecar with the wheels"
        )
    return tuple(sentences)


def _outside(links: dict[str, Link]) -> list[str]:
    """Links with the distance of their centres of mass from the hull of their shapes."""
    found = []
    for name, link in links.items():
        shapes = shapes_of(link.node, "collision")
        if not shapes or not link.mass:
            continue
        away, width = separation(shapes, link.com)
        if away > OUTSIDE * width:
            found.append(f"link `{shown(name)}` by {away:.3g} m")
    return found


def _zero(tree: dict[str, UrdfJoint], *attributes: str) -> list[str]:
    """Joints whose element <limit> has zero in each of some attributes that are written."""
    found = []
    for name, joint in tree.items():
        limit = joint.node.parts().get("limit")
        if limit is None or (attributes[0] == "lower" and joint.kind == "continuous"):
            continue
        values = [limit.number(a, 0.0, True) for a in attributes if a in limit.element.attrib]
        if values and not any(values):
            found.append(f"joint `{shown(name)}`")
    return found


def _unequal(tree: dict[str, UrdfJoint]) -> list[str]:
    found = []
    for name, joint in tree.items():
        axis = joint.node.parts().get("axis")
        if axis is None or joint.kind in ("fixed", "floating"):
            continue
        length = float(np.linalg.norm(axis.numbers("xyz", 3, (1.0, 0.0, 0.0))))
        if abs(length - 1.0) > UNEQUAL:
            found.append(f"joint `{shown(name)}`, length {length:.4g}")
    return found
