"""Wheels of a URDF file: the joints that may turn wheels, with the evidence for each."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from concur.errors import shown
from concur.io._urdf_shapes import reach, shapes_of
from concur.io._urdf_tree import Link, UrdfFile, UrdfJoint
from concur.io._urdf_xml import Node, tag_of
from concur.robot import read_mesh

PARALLEL = 1e-3
"""Sine of the angle between an axis and the ground, or between two axes, below which they are
parallel."""

TOUCHES = 0.02
"""Height above the lowest cylinder, in radii, up to which a cylinder touches the ground."""

LEVEL = 1e-3
"""Difference of heights, m, up to which axles of wheels without cylinders are at one height."""

WHEEL_NAMES = re.compile(r"wheel|tire|tyre|caster|castor|whl|roue|ruota|rueda", re.I)
"""Parts of names of wheels."""

CASTER_NAMES = re.compile(r"caster|castor|swivel", re.I)
"""Parts of names of wheels that roll in every direction."""

OTHER_NAMES = re.compile(
    r"reaction|momentum|fly_?wheel|steering_?wheel|gyro|solar|panel|array|wing|antenna|dish|"
    r"rotor|prop|fan|lidar|laser|scan",
    re.I,
)
"""Parts of names of what turns without end and rolls on nothing."""

ROUND = 0.01
"""Relative difference of the moments of inertia across the axle above which a link is no wheel."""

TURNS = 4.0 * math.pi
"""Range of a revolute joint, rad, from which on it may be the axle of a wheel."""

_MESH = "{*}%s/{*}geometry/{*}mesh"

_PLUGINS = re.compile(r"diff|skid|mecanum|omni|ackermann|tricycle|steer|swerve|wheel|planar", re.I)
"""Parts of names of plugins that drive wheels."""


@dataclass(frozen=True)
class Rolling:
    """A wheel; centre (m) and axis in the frame of the root link.

    The radius of a wheel whose size is unknown is a guess, with the reason; it is not written.
    """

    link: str
    joint: str
    radius: float
    center: np.ndarray
    offset: np.ndarray  # centre in the frame of the link
    axis: np.ndarray
    steering: str = ""  # joint along the vertical that carries it
    carriers: tuple[str, ...] = ()  # all joints that move it, such as those of rockers
    trail: float = 0.0  # distance of the axle from the steering axis, m
    why: str = ""
    guess: str = ""


@dataclass(frozen=True)
class Hints:
    """Joints that plugins, transmissions and hardware interfaces name, and a radius."""

    words: str = ""  # names of the plugins that drive wheels
    wheels: dict[str, str] = field(default_factory=dict)  # their joints, with the plugin
    driven: frozenset[str] = frozenset()
    radius: float = 0.0

    @classmethod
    def of(cls, read: UrdfFile) -> Hints:
        """Hints of a file."""
        words, radius, wheels = "", 0.0, dict[str, str]()
        driven: set[str] = set()
        for element in read.root.element.iter():
            tag = tag_of(element)
            if tag in ("transmission", "ros2_control"):
                driven |= {str(e.get("name")) for e in element.iter() if tag_of(e) == "joint"}
            own = " ".join(str(element.get(name, "")) for name in ("name", "filename"))
            if tag != "plugin" or not _PLUGINS.search(own):
                continue
            words += f"{own.lower()} "
            for entry in element.iter():
                text = (entry.text or "").strip()
                label = shown(own.split()[-1].removeprefix("lib"), 60)
                wheels |= {word: label for word in re.split(r"[\s,]+", text) if word in read.tree}
                size = re.search(r"wheel.*(radius|diameter)", tag_of(entry), re.I)
                with suppress(ValueError):
                    if size:
                        radius = float(text) / (2.0 if size[1].lower() == "diameter" else 1.0)
        return cls(words, wheels, frozenset(driven | set(wheels)), max(radius, 0.0))


def rolling(read: UrdfFile, hints: Hints) -> list[Rolling]:
    """Wheels: the lowest cylinders, joints that a plugin names, and names or places of wheels."""
    links, tree = read.links, read.tree
    ends = {joint.child: name for name, joint in tree.items()}
    carriers = {joint.parent for joint in tree.values()}
    moving = {joint.parent for joint in tree.values() if joint.joint.nv}
    drawn, others = [], []
    for name, joint in tree.items():
        label = f"{joint.child} {name}"
        low, high = joint.limits.get("limits", (-math.inf, math.inf))
        turns = joint.kind == "continuous" or (joint.kind == "revolute" and high - low >= TURNS)
        found = _placed(read, name, ends) if turns else None
        if found is None or OTHER_NAMES.search(label):
            continue
        ends_chain = joint.child not in moving or WHEEL_NAMES.search(label)
        if joint.kind == "continuous" and ends_chain:
            wheel = _cylinder(found, links[joint.child], joint)
            if wheel is not None:
                drawn.append(wheel)
                continue
        if joint.mimic is None or name in hints.wheels:
            others.append(found)
    ground = min((w.center[2] - w.radius for w in drawn), default=0.0)
    touching = [w for w in drawn if w.center[2] - w.radius <= ground + TOUCHES * w.radius]
    chosen = [
        w for w in others if w.joint in hints.wheels or WHEEL_NAMES.search(f"{w.link} {w.joint}")
    ]
    if not touching and not chosen:
        leaves = [
            w
            for w in others
            if w.link not in carriers and not w.carriers and _is_round(links[w.link], tree[w.joint])
        ]
        chosen = [w for w in leaves if any(_beside(w, other) for other in leaves)]
    sized = [_sized(w, read, hints) for w in chosen]
    lowest = min((w.center[2] - w.radius for w in sized), default=0.0)
    return touching + [
        replace(w, radius=float(w.center[2] - lowest)) if w.guess else w for w in sized
    ]


def looks_wheeled(read: UrdfFile, hints: Hints) -> bool:
    """Whether a plugin drives wheels or a link has the name of one, even if it cannot roll."""
    names = [f"{name} {joint.child}" for name, joint in read.tree.items()]
    named = any(WHEEL_NAMES.search(name) and not OTHER_NAMES.search(name) for name in names)
    return named or bool(hints.words)


def is_caster(wheel: Rolling, read: UrdfFile, hints: Hints) -> bool:
    """Whether a wheel swivels freely: by its name, or a trail and no limits of the steering."""
    if hints.driven & {wheel.joint, wheel.steering}:
        return False
    named = CASTER_NAMES.search(f"{wheel.link} {wheel.joint} {wheel.steering}")
    steering = read.tree.get(wheel.steering)
    free = steering is not None and steering.kind == "continuous"
    return bool(named) or (free and wheel.trail > LEVEL)


def balls(read: UrdfFile, wheels: list[Rolling]) -> dict[str, np.ndarray]:
    """Contact points in the frame of the root of casters that are no wheels on axles."""
    ends = {joint.child: name for name, joint in read.tree.items()}
    rolling_joints = {joint for w in wheels for joint in (w.joint, *w.carriers)}
    found = {}
    for link, name in ends.items():
        joint = read.tree[name]
        leaf = link not in {other.parent for other in read.tree.values()}
        if leaf and name not in rolling_joints and CASTER_NAMES.search(f"{link} {name}"):
            pose, _ = chain(joint, read.tree, ends)
            shapes = shapes_of(read.links[link].node, "collision")
            middle = np.array(shapes[0].placement.translation) if shapes else np.zeros(3)
            below = reach(shapes[0], pose[:3, :3].T @ (0.0, 0.0, -1.0)) if shapes else 0.0
            center = pose[:3, :3] @ middle + pose[:3, 3]
            height = pose[2, 3] - below if shapes else center[2]
            found[link] = np.array([center[0], center[1], height])
    return found


def sine(one: np.ndarray, other: np.ndarray) -> float:
    """Sine of the angle between two unit vectors."""
    return float(np.linalg.norm(np.cross(one, other)))


def chain(
    joint: UrdfJoint, tree: dict[str, UrdfJoint], ends: dict[str, str]
) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Pose (4, 4) of a joint in the root's frame at zero, and of the joints that move it."""
    above: list[tuple[str, np.ndarray]] = []
    pose, seen = joint.pose, {joint.child}
    while joint.parent in ends and joint.parent not in seen:
        seen.add(joint.parent)
        name = ends[joint.parent]
        joint = tree[name]
        pose = joint.pose @ pose
        above = [(one, joint.pose @ own) for one, own in above]
        if joint.joint.nv == 1:  # a planar or floating joint is that of the base
            above.append((name, joint.pose))
    return pose, above


def _placed(read: UrdfFile, name: str, ends: dict[str, str]) -> Rolling | None:
    """A joint with an axis parallel to the ground, the plane normal to z of the root link."""
    joint = read.tree[name]
    pose, above = chain(joint, read.tree, ends)
    axis = pose[:3, :3] @ np.array(joint.joint.axis)  # type: ignore[attr-defined]
    if abs(axis[2]) > PARALLEL:
        return None
    center, steering, trail = pose[:3, 3], "", 0.0
    for one, own in above:
        up = own[:3, :3] @ np.array(read.tree[one].joint.axis)  # type: ignore[attr-defined]
        if not steering and abs(up[2]) > 1.0 - PARALLEL and read.tree[one].kind != "prismatic":
            steering = one
            ahead = np.array([axis[1], -axis[0], 0.0])
            trail = abs(float((center - own[:3, 3]) @ ahead))
    names = tuple(one for one, _ in above)
    return Rolling(joint.child, name, 0.0, center, np.zeros(3), axis, steering, names, trail)


def _cylinder(wheel: Rolling, link: Link, joint: UrdfJoint) -> Rolling | None:
    """The wheel with the size of the one cylinder around its axle; None without one."""
    own = np.array(joint.joint.axis)  # type: ignore[attr-defined]
    shapes = shapes_of(link.node, "collision") or shapes_of(link.node, "visual")
    if len(shapes) != 1 or shapes[0].kind != "cylinder":
        return None
    pose = shapes[0].placement.matrix
    along, offset = pose[:3, 2], pose[:3, 3]
    radius = shapes[0].size[0]
    if sine(along, own) > PARALLEL or sine(offset, own) > PARALLEL * radius:
        return None
    offset = (offset @ own) * own  # `Wheel` has its centre on the joint axis
    center = wheel.center + (offset @ own) * wheel.axis
    why = f"a cylinder of radius {radius:g} m around it is the lowest."
    return replace(wheel, radius=radius, center=center, offset=offset, why=why)


def _sized(wheel: Rolling, read: UrdfFile, hints: Hints) -> Rolling:
    """The wheel with the radius of its plugin or mesh, or with a guess."""
    plugin = hints.wheels.get(wheel.joint)
    if plugin and hints.radius:
        why = f"the plugin {plugin} drives it with this radius."
        return replace(wheel, radius=hints.radius, why=why)
    link, own = read.links[wheel.link], np.array(read.tree[wheel.joint].joint.axis)  # type: ignore[attr-defined]
    named = f"`{wheel.link}` has the name or the place of a wheel."
    named = f"the plugin {plugin} names it." if plugin else named
    drawn = _mesh_radius(read, link, own)
    if drawn:
        return replace(wheel, radius=drawn, why=f"{named} The radius is that of its mesh.")
    radius, guess = _guess(link, own, float(wheel.center[2]))
    why = named if drawn is None else f"{named} No mesh of it was found."
    return replace(wheel, radius=radius, guess=guess, why=why)


def _guess(link: Link, axis: np.ndarray, height: float) -> tuple[float, str]:
    """A radius and its reason."""
    if height > LEVEL:
        return height, f"the axle is {height:.4g} m above the origin of the root link"
    spin = float(axis @ link.tensor @ axis)
    if link.mass > 0.0 and spin > 0.0:
        radius = math.sqrt(2.0 * spin / link.mass)
        return radius, f"a solid disk of its mass and inertia has {radius:.3g} m"
    return 0.1, "the file does not show it"


def _mesh_radius(read: UrdfFile, link: Link, axis: np.ndarray) -> float | None:
    """Radius about the axle of the first mesh that is found, m; 0 without its file."""
    meshes = [m for tag in ("collision", "visual") for m in link.node.element.iterfind(_MESH % tag)]
    for mesh in meshes:
        path = read.macros.file(mesh.get("filename", ""), read.file)
        if path is None:
            continue
        pose = Node(mesh.getparent().getparent(), read.file).pose()
        with suppress(ValueError):  # of an invalid scale
            found = read_mesh(str(path))
            if found is None:
                continue
            points = found[0] * np.array(mesh.get("scale", "1 1 1").split(), float)
            points = points @ pose[:3, :3].T + pose[:3, 3]
            across = points - np.outer(points @ axis, axis)
            return float(f"{np.linalg.norm(across, axis=1).max():.4g}")
    return 0.0 if meshes else None


def _is_round(link: Link, joint: UrdfJoint) -> bool:
    """Whether the inertia of a link has the symmetry of a wheel about its axle."""
    axis = np.array(joint.joint.axis)  # type: ignore[attr-defined]
    across = np.eye(3) - np.outer(axis, axis)
    moments = np.linalg.eigvalsh(across @ link.tensor @ across)[1:]
    away = np.linalg.norm(across @ link.com)
    balanced = link.mass * away**2 <= ROUND * moments[1]
    return bool(link.mass and balanced and moments[1] - moments[0] <= ROUND * moments[1])


def _beside(one: Rolling, other: Rolling) -> bool:
    """Whether two axles are parallel and at one height, and the wheels not behind each other."""
    apart = one.center - other.center
    same = sine(one.axis, other.axis) <= PARALLEL and abs(apart[2]) <= LEVEL
    return bool(same and abs(apart @ one.axis) > LEVEL)
