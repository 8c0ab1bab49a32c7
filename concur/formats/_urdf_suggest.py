"""Sidecar for a URDF file, suggested from its joints and shapes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from concur.errors import ConcurError, shown
from concur.formats._urdf import load_urdf
from concur.formats._urdf_held import heavy_links
from concur.formats._urdf_lint import shapes_of
from concur.formats._urdf_sidecar import sidecar_of
from concur.formats._urdf_tree import Link, UrdfJoint, contents
from concur.formats._urdf_xml import Node, parsed, urdf_text
from concur.formats.tables import file_named

PARALLEL = 1e-3
"""Sine of the angle between an axis and the ground, or between two axes, below which they are
parallel."""

TOUCHES = 0.02
"""Height above the lowest cylinder, in radii, up to which a cylinder touches the ground."""


@dataclass(frozen=True)
class _Rolling:
    """A cylinder on a continuous joint; centre (m) and axis in the frame of the root link."""

    link: str
    joint: str
    radius: float
    center: np.ndarray
    offset: np.ndarray  # centre in the frame of the link
    axis: np.ndarray
    steered: bool


def suggest_sidecar(path: str | PathLike[str]) -> tuple[Path, str]:
    """Suggest the sidecar of a URDF file, with the reason of each entry in a comment.

    Cylinders on continuous joints with axes parallel to the ground, the plane normal to z of the
    root link, are taken for wheels if they are the lowest ones. Wheels on further axles are taken
    to skid sideways (kind "omni"). If the file with these wheels cannot be loaded, the wheels are
    comments.

    Parameters
    ----------
    path : path
        URDF file; a sidecar that it has is not read.

    Returns
    -------
    path : pathlib.Path
        File where `load` finds a sidecar of this URDF file.
    text : str
        Text of a TOML file, with which `load` reads the robot.

    Raises
    ------
    ConcurError
        If the file cannot be loaded with any suggestion.
    """
    file = file_named(path)
    root = Node(parsed(urdf_text(file), file), file)
    links, tree = contents(root)
    wheels = _wheels(links, tree)
    first: ConcurError | None = None
    for chosen in (wheels, []) if wheels else ([],):
        text = _text(file, links, tree, chosen)
        try:
            _try(file, text)
        except ConcurError as error:
            first = first or error
            continue
        if wheels and not chosen:
            text += _as_comment(wheels, first)
        return sidecar_of(file), text
    assert first is not None
    raise first


def _try(file: Path, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        side = Path(folder) / "suggested.toml"
        side.write_text(text, encoding="utf-8")
        load_urdf(file, side, False)


def _wheels(links: dict[str, Link], tree: dict[str, UrdfJoint]) -> list[_Rolling]:
    """Lowest cylinders on continuous joints with axes parallel to the ground."""
    found = []
    ends = {joint.child: (name, joint) for name, joint in tree.items()}
    for link in links:
        name, joint = ends.get(link, ("", None))
        if joint is None or joint.kind != "continuous":
            continue
        pose, steered = _pose(joint, ends)
        own = np.array(joint.joint.axis)  # type: ignore[attr-defined]
        axis = pose[:3, :3] @ own
        node = links[link].node
        shapes = shapes_of(node, "collision") or shapes_of(node, "visual")
        if abs(axis[2]) > PARALLEL or len(shapes) != 1 or shapes[0].kind != "cylinder":
            continue
        along, offset = shapes[0].pose[:3, 2], shapes[0].pose[:3, 3]
        radius = shapes[0].size[0]
        if _sine(along, own) > PARALLEL or _sine(offset, own) > PARALLEL * radius or not radius:
            continue
        offset = (offset @ own) * own  # `Wheel` has its centre on the joint axis
        center = pose[:3, :3] @ offset + pose[:3, 3]
        found.append(_Rolling(link, name, radius, center, offset, axis, steered))
    ground = min((wheel.center[2] - wheel.radius for wheel in found), default=0.0)
    return [w for w in found if w.center[2] - w.radius <= ground + TOUCHES * w.radius]


def _sine(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(np.cross(one, other)))


def _pose(joint: UrdfJoint, ends: dict[str, tuple[str, UrdfJoint]]) -> tuple[np.ndarray, bool]:
    """Pose (4, 4) of a joint in the root's frame at zero, and whether a joint before it moves."""
    pose, steered, seen = joint.pose, False, {joint.child}
    while joint.parent in ends and joint.parent not in seen:
        seen.add(joint.parent)
        joint = ends[joint.parent][1]
        pose = joint.pose @ pose
        # A planar or floating joint is that of the base.
        steered |= joint.joint.nv == 1
    return pose, steered


def _axles(wheels: list[_Rolling]) -> list[list[_Rolling]]:
    """Wheels that turn about one line, the largest group first; steered ones are not among them."""
    axles: list[list[_Rolling]] = []
    for wheel in wheels:
        if wheel.steered:
            continue
        for axle in axles:
            apart = np.cross(wheel.center - axle[0].center, axle[0].axis)
            same = _sine(wheel.axis, axle[0].axis) <= PARALLEL
            if same and np.linalg.norm(apart) <= PARALLEL + TOUCHES * wheel.radius:
                axle.append(wheel)
                break
        else:
            axles.append([wheel])
    return sorted(axles, key=len, reverse=True)


def _text(
    file: Path,
    links: dict[str, Link],
    tree: dict[str, UrdfJoint],
    wheels: list[_Rolling],
) -> str:
    carried = {joint.child for joint in tree.values()}
    top = next((name for name in links if name not in carried), "")
    lines = [f"# Suggested by `concur check {shown(file.name)} --suggest`: review every line.", ""]
    if top == "world":
        lines.append("# No base: the root link `world` is the inertial frame.")
    elif wheels:
        lines.append(f'base = "planar"  # {len(wheels)} wheels roll on the ground')
    elif not links[top].mass if top else False:
        lines.append(f'base = "fixed"  # the root link `{top}` has no mass')
    else:
        lines.append('base = "free"  # no wheels, and the root link has mass')
    if wheels or "free" not in lines[-1]:
        lines.append("gravity = [0.0, 0.0, -9.81]  # the z axis of the root link points upwards")
    else:
        lines.append("# gravity = [0.0, 0.0, -9.81]  # none by default, as in orbit")
    passive = {wheel.link for axle in _axles(wheels)[1:] for wheel in axle}
    heavy = heavy_links(tree, links)
    moving = [
        name
        for name, joint in tree.items()
        if joint.joint.nv == 1 and joint.mimic is None and joint.child not in passive
        if joint.child in heavy
    ]
    reason = "all joints that move independently"
    reason += ", but wheels that skid" if passive else ""
    lines += [f"actuated = [  # {reason}", *(f"    {json.dumps(n)}," for n in moving), "]"]
    for wheel in wheels:
        lines += ["", *_wheel(wheel, wheel.link in passive, wheels)]
    return "\n".join(lines) + "\n"


def _wheel(wheel: _Rolling, skids: bool, wheels: Iterable[_Rolling]) -> list[str]:
    ground = min(w.center[2] - w.radius for w in wheels)
    radius = wheel.center[2] - ground
    if abs(radius - wheel.radius) < 1e-9:
        radius = wheel.radius
    axis = ", ".join(f"{x:.3g}" for x in wheel.axis + 0.0)
    lines = [
        f"# `{wheel.joint}` is continuous, its axis ({axis}) is parallel to the ground,",
        f"# and a cylinder of radius {wheel.radius:g} m around it is the lowest.",
        "[[wheels]]",
        f"body = {json.dumps(wheel.link)}",
        f"radius = {float(radius)!r}"
        + ("" if radius == wheel.radius else "  # touches the ground"),
    ]
    if np.any(wheel.offset):
        lines.append(f"center = {wheel.offset.tolist()}")
    if skids:
        lines.append('kind = "omni"  # skids sideways: another axle determines the direction')
    return lines


def _as_comment(wheels: list[_Rolling], error: ConcurError | None) -> str:
    lines = [f"Wheels would be refused: {' '.join(str(error).partition(': ')[2].split())}"]
    for wheel in wheels:
        lines += [line.removeprefix("# ") for line in _wheel(wheel, False, wheels)]
    return "\n" + "".join(f"# {line}\n" for line in lines)
