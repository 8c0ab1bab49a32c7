"""Sidecar for a URDF file, suggested from its joints and shapes."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from concur.errors import ConcurError, shown
from concur.formats._sidecar import sidecar_of
from concur.formats._urdf import load_urdf
from concur.formats._urdf_held import heavy_links
from concur.formats._urdf_lint import shapes_of
from concur.formats._urdf_tree import Link, UrdfJoint, contents
from concur.formats._urdf_xml import Node, parsed, urdf_text
from concur.reduction import reduce
from concur.robot import Mechanism
from concur.tables import file_named

PARALLEL = 1e-3
"""Sine of the angle between an axis and the ground, or between two axes, below which they are
parallel."""

TOUCHES = 0.02
"""Height above the lowest cylinder, in radii, up to which a cylinder touches the ground."""

LEVEL = 1e-3
"""Difference of heights, m, up to which axles of wheels without cylinders are at one height."""

WHEEL_NAMES = re.compile(r"wheel|tire|tyre|caster|castor|whl|roue|ruota|rueda", re.I)
"""Parts of names of wheels."""

OTHER_NAMES = re.compile(
    r"reaction|momentum|fly_?wheel|steering_?wheel|gyro|solar|panel|array|wing|antenna|dish|"
    r"rotor|prop|fan|lidar|laser|scan",
    re.I,
)
"""Parts of names of what turns without end and rolls on nothing."""

ROUND = 0.01
"""Relative difference of the moments of inertia across the axle above which a link is no wheel."""

FILL_IN = "# radius =   # FILL IN, m"
"""Line in place of the radius of a wheel that is not drawn as a cylinder."""

TURNS = 4.0 * math.pi
"""Range of a revolute joint, rad, from which on it may be the axle of a wheel."""


@dataclass(frozen=True)
class _Rolling:
    """A wheel on a continuous joint; centre (m) and axis in the frame of the root link.

    The radius of a wheel that is drawn as a mesh is a guess, with the reason; it is not written.
    """

    link: str
    joint: str
    radius: float
    center: np.ndarray
    offset: np.ndarray  # centre in the frame of the link
    axis: np.ndarray
    steered: bool
    guess: str = ""


def suggest_sidecar(path: str | PathLike[str]) -> tuple[Path, str]:
    """Suggest the sidecar of a URDF file, with the reason of each entry in a comment.

    Wheels are the lowest cylinders on continuous joints with axes parallel to the ground, the plane
    normal to z of the root link; and links with the name of a wheel on such joints, or links that
    carry nothing on two or more such joints of one height. If a wheel is not drawn as a cylinder,
    its radius has to be filled in. Wheels on further axles are taken to skid sideways (kind
    "omni"). Each suggestion is loaded and reduced, with a guess of missing radii. If this fails
    with the wheels, they are comments, with the error, and the base is planar.

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
    rolls = bool(wheels) or _has_wheels(tree)
    first: ConcurError | None = None
    for chosen in (wheels, []) if wheels else ([],):
        text = _text(file, links, tree, chosen, rolls)
        try:
            reduce(_tried(file, _filled(text, chosen)))
        except ConcurError as error:
            first = first or error
            continue
        if wheels and not chosen:
            text += _as_comment(wheels, first)
        return sidecar_of(file), text
    assert first is not None
    _tried(file, text)  # an error of the file itself
    reason = " ".join(str(first).partition(": ")[2].split())
    text += f"\n# `concur check` rejects the robot with this file: {reason}\n"
    return sidecar_of(file), text + (_as_comment(wheels, first) if wheels else "")


def _tried(file: Path, text: str) -> Mechanism:
    """Load the file with a sidecar."""
    with tempfile.TemporaryDirectory() as folder:
        side = Path(folder) / "suggested.toml"
        side.write_text(text, encoding="utf-8")
        return load_urdf(file, side, False)


def _filled(text: str, wheels: list[_Rolling]) -> str:
    """The text with a guess in place of each radius that has to be filled in."""
    for wheel in wheels:
        if wheel.guess:
            text = text.replace(f"{FILL_IN}: ", f"radius = {wheel.radius!r}  # ", 1)
    return text


def _wheels(links: dict[str, Link], tree: dict[str, UrdfJoint]) -> list[_Rolling]:
    """Wheels: the lowest cylinders, and links with names or in places of wheels."""
    drawn = _cylinders(links, tree)
    known = {wheel.link for wheel in drawn}
    others = [wheel for wheel in _undrawn(links, tree) if wheel.link not in known]
    others = [w for w in others if not OTHER_NAMES.search(f"{w.link} {w.joint}")]
    named = [w for w in others if WHEEL_NAMES.search(f"{w.link} {w.joint}")]
    if drawn or named:
        return drawn + named
    carriers = {joint.parent for joint in tree.values()}
    leaves = [
        w
        for w in others
        if w.link not in carriers and not w.steered and _is_round(links[w.link], tree[w.joint])
    ]
    return [
        w
        for w in leaves
        if any(
            _sine(w.axis, other.axis) <= PARALLEL
            and abs(w.center[2] - other.center[2]) <= LEVEL
            and abs((w.center - other.center) @ w.axis) > LEVEL
            for other in leaves
        )
    ]


def _has_wheels(tree: dict[str, UrdfJoint]) -> bool:
    """Whether a link has the name of a wheel, even if it cannot roll as it is."""
    names = [f"{name} {joint.child}" for name, joint in tree.items()]
    return any(WHEEL_NAMES.search(name) and not OTHER_NAMES.search(name) for name in names)


def _is_round(link: Link, joint: UrdfJoint) -> bool:
    """Whether the inertia of a link has the symmetry of a wheel about its axle."""
    axis = np.array(joint.joint.axis)  # type: ignore[attr-defined]
    across = np.eye(3) - np.outer(axis, axis)
    moments = np.linalg.eigvalsh(across @ link.tensor @ across)[1:]
    away = np.linalg.norm(across @ link.com)
    balanced = link.mass * away**2 <= ROUND * moments[1]
    return bool(link.mass and balanced and moments[1] - moments[0] <= ROUND * moments[1])


def _undrawn(links: dict[str, Link], tree: dict[str, UrdfJoint]) -> list[_Rolling]:
    """Links on joints that turn about axes parallel to the ground, with guesses of radii."""
    ends = {joint.child: (name, joint) for name, joint in tree.items()}
    found = []
    for name, joint in tree.items():
        low, high = joint.limits.get("limits", (-math.inf, math.inf))
        turns = joint.kind == "continuous" or (joint.kind == "revolute" and high - low >= TURNS)
        if not turns or joint.mimic is not None:
            continue
        pose, steered = _pose(joint, ends)
        own = np.array(joint.joint.axis)  # type: ignore[attr-defined]
        axis, center = pose[:3, :3] @ own, pose[:3, 3]
        if abs(axis[2]) > PARALLEL:
            continue
        radius, guess = _guess(links[joint.child], own, float(center[2]))
        offset = np.zeros(3)
        found.append(_Rolling(joint.child, name, radius, center, offset, axis, steered, guess))
    lowest = min((wheel.center[2] - wheel.radius for wheel in found), default=0.0)
    return [replace(wheel, radius=float(wheel.center[2] - lowest)) for wheel in found]


def _guess(link: Link, axis: np.ndarray, height: float) -> tuple[float, str]:
    """A radius and its reason."""
    if height > LEVEL:
        return height, f"the axle is {height:.4g} m above the origin of the root link"
    spin = float(axis @ link.tensor @ axis)
    if link.mass > 0.0 and spin > 0.0:
        radius = math.sqrt(2.0 * spin / link.mass)
        return radius, f"a solid disk of its mass and inertia has {radius:.3g} m"
    return 0.1, "the file does not show it"


def _cylinders(links: dict[str, Link], tree: dict[str, UrdfJoint]) -> list[_Rolling]:
    """Lowest cylinders that end a chain, on continuous joints with axes parallel to the ground."""
    found = []
    ends = {joint.child: (name, joint) for name, joint in tree.items()}
    carriers = {joint.parent for joint in tree.values() if joint.joint.nv}
    for link in links:
        name, joint = ends.get(link, ("", None))
        if joint is None or joint.kind != "continuous" or OTHER_NAMES.search(f"{link} {name}"):
            continue
        if link in carriers and not WHEEL_NAMES.search(f"{link} {name}"):
            continue  # a link of an arm
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
    rolls: bool,
) -> str:
    carried = {joint.child for joint in tree.values()}
    top = next((name for name in links if name not in carried), "")
    lines = [f"# Suggested by `concur check {shown(file.name)} --suggest`: review every line.", ""]
    if top == "world":
        lines.append("# No base: the root link `world` is the inertial frame.")
    elif wheels:
        lines.append(f'base = "planar"  # {len(wheels)} wheels roll on the ground')
    elif rolls:
        lines.append('base = "planar"  # it has wheels, which no suggestion could take over')
    elif not links[top].mass if top else False:
        lines.append(f'base = "fixed"  # the root link `{top}` has no mass')
    else:
        lines.append('base = "free"  # no wheels were found, and the root link has mass')
    if rolls or "free" not in lines[-1]:
        lines.append("gravity = [0.0, 0.0, -9.81]  # the z axis of the root link points upwards")
    else:
        lines.append("# gravity = [0.0, 0.0, -9.81]  # zero by default, as of a spacecraft")
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
    evidence = f"# and a cylinder of radius {wheel.radius:g} m around it is the lowest."
    entry = f"radius = {float(radius)!r}"
    entry += "" if radius == wheel.radius else "  # touches the ground"
    if wheel.guess:
        evidence = (
            f"# and `{wheel.link}` has the name or the place of a wheel. Meshes are not opened."
        )
        entry = f"{FILL_IN}: {wheel.guess}"
    lines = [
        f"# `{wheel.joint}` is continuous, its axis ({axis}) is parallel to the ground,",
        evidence,
        "[[wheels]]",
        f"body = {json.dumps(wheel.link)}",
        entry,
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
