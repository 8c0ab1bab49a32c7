"""Wheels of a URDF file: a table of evidence, and the score of each joint that may turn one."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from concur.errors import shown
from concur.io._urdf_repair import number_of
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

ROUND = 0.01
"""Relative difference of the moments of inertia across the axle above which a link is no wheel."""

TURNS = 4.0 * math.pi
"""Range of a revolute joint, rad, from which on it may be the axle of a wheel."""

NEAR = 0.2
"""Height above the lowest cylinder, in radii, up to which one with another hint is a wheel."""

ROLLERS = 4
"""Number of rollers from which on a link is a wheel with rollers."""

CERTAIN = 3
"""Score from which on a joint turns a wheel."""

WHEEL_NAMES = re.compile(
    r"wheel|tire|tyre|whl|caster|castor|roue|ruota|rueda|llanta|pneu|(?<![a-z])r[aä]d(?![a-z])|"
    r"räder|raeder|reifen|hjul|(?<![a-z])roda(?![a-z])|kolo|koło|koleso|колесо|teker|轮|輪|タイヤ|바퀴",
    re.I,
)
"""Parts of names of wheels, in several languages."""

CASTER_NAMES = re.compile(r"caster|castor|swivel|lenkrolle|laufrolle|roulette|rueda_loca", re.I)
"""Parts of names of wheels that roll in every direction."""

OTHER_NAMES = re.compile(
    r"reaction|momentum|fly_?wheel|steering_?wheel|gyro|solar|panel|array|wing|antenna|dish|"
    r"lidar|laser|scan",
    re.I,
)
"""Parts of names of what turns without end and rolls on nothing."""

SPINNING_NAMES = re.compile(r"rotor|prop|fan", re.I)
"""Parts of such names, unless there is that of a wheel too."""

_PLUGINS = re.compile(r"diff|skid|mecanum|omni|ackermann|tricycle|steer|swerve|wheel|planar", re.I)
"""Parts of names of plugins that drive wheels."""

_MESH = "{*}%s/{*}geometry/{*}mesh"
_SPEED = re.compile(r"velocity", re.I)


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
    rollers: tuple[str, ...] = ()  # joints of rollers on it
    upright: bool = True  # whether all joints that move it are along the vertical
    why: str = ""
    guess: str = ""
    drawn: bool = False  # whether a cylinder around the axle has this radius

    @property
    def ground(self) -> float:
        """Height of its lowest point, m."""
        return float(self.center[2] - self.radius)


@dataclass(frozen=True)
class Hints:
    """Joints that plugins, transmissions and hardware interfaces name, and a radius."""

    words: str = ""  # names of the plugins that drive wheels
    wheels: dict[str, str] = field(default_factory=dict)  # their joints, with the plugin
    driven: frozenset[str] = frozenset()
    fast: frozenset[str] = frozenset()  # joints whose motors are controlled in speed
    radius: float = 0.0

    @classmethod
    def of(cls, read: UrdfFile) -> Hints:
        """Hints of a file."""
        words, radius, wheels = "", 0.0, dict[str, str]()
        driven, fast = set[str](), set[str]()
        for element in read.root.element.iter():
            tag = tag_of(element)
            for own in element if tag in ("transmission", "ros2_control") else ():
                if tag_of(own) == "joint":
                    driven.add(str(own.get("name")))
                    texts = [f"{e.get('name')} {e.text}" for e in own.iter() if e is not own]
                    fast |= {str(own.get("name"))} if _SPEED.search(" ".join(texts)) else set()
            name = " ".join(str(element.get(name, "")) for name in ("name", "filename"))
            if tag != "plugin" or not _PLUGINS.search(name):
                continue
            words += f"{name.lower()} "
            for entry in element.iter():
                text = (entry.text or "").strip()
                label = shown(name.split()[-1].removeprefix("lib"), 60)
                wheels |= {word: label for word in re.split(r"[\s,]+", text) if word in read.tree}
                size = re.search(r"wheel.*(radius|diameter)", tag_of(entry), re.I)
                if size and (number := number_of(text)):
                    radius = number / (2.0 if size[1].lower() == "diameter" else 1.0)
        return cls(
            words, wheels, frozenset(driven | set(wheels)), frozenset(fast), max(radius, 0.0)
        )


@dataclass(frozen=True)
class Scene:
    """All joints that may turn wheels, and what is known of them."""

    read: UrdfFile
    hints: Hints
    candidates: tuple[Rolling, ...]

    @functools.cached_property
    def ground(self) -> float:
        """Height of the lowest cylinder, m."""
        return min((wheel.ground for wheel in self.candidates if wheel.drawn), default=0.0)

    def named(self, wheel: Rolling) -> bool:
        return bool(WHEEL_NAMES.search(f"{wheel.link} {wheel.joint}"))

    def lowest(self, wheel: Rolling) -> bool:
        return wheel.drawn and wheel.ground <= self.ground + TOUCHES * wheel.radius

    def last(self, wheel: Rolling) -> bool:
        """Whether it carries nothing, and steering or suspensions along the vertical carry it."""
        return wheel.link not in self.read.bearing and wheel.upright

    def beside(self, wheel: Rolling) -> bool:
        """Whether a round link stands beside it on a parallel axle at the same height."""
        for other in self.candidates:
            apart = wheel.center - other.center
            level = sine(wheel.axis, other.axis) <= PARALLEL and abs(apart[2]) <= LEVEL
            leaf = other.link not in self.read.bearing and self.round(other)
            if level and leaf and abs(apart @ wheel.axis) > LEVEL:
                return True
        return False

    def round(self, wheel: Rolling) -> bool:
        """Whether the inertia has the symmetry of a wheel about its axle."""
        link, axis = self.read.links[wheel.link], axis_of(self.read.tree[wheel.joint])
        across = np.eye(3) - np.outer(axis, axis)
        moments = np.linalg.eigvalsh(across @ link.tensor @ across)[1:]
        away = np.linalg.norm(across @ link.com)
        balanced = link.mass * away**2 <= ROUND * moments[1]
        return bool(link.mass and balanced and moments[1] - moments[0] <= ROUND * moments[1])


EVIDENCE: tuple[tuple[int, str, Callable[[Scene, Rolling], bool]], ...] = (
    (3, "a plugin names it", lambda scene, wheel: wheel.joint in scene.hints.wheels),
    (3, "it has the name of a wheel", Scene.named),
    (3, "it carries rollers", lambda scene, wheel: bool(wheel.rollers)),
    (3, "the cylinder around its axle is the lowest", Scene.lowest),
    (1, "it has the place of a wheel", Scene.beside),
    (1, "its inertia is round", Scene.round),
    (1, "it carries nothing", Scene.last),
    (1, "its speed is controlled", lambda scene, wheel: wheel.joint in scene.hints.fast),
)
"""What suggests that a joint turns a wheel, with its weight."""


def rolling(read: UrdfFile, hints: Hints) -> list[Rolling]:
    """The wheels of a file, with their sizes: certain ones, else the joints with enough hints."""
    candidates = []
    for name, joint in read.tree.items():
        low, high = joint.limits.get("limits", (-math.inf, math.inf))
        turns = joint.kind == "continuous" or (joint.kind == "revolute" and high - low >= TURNS)
        found = _placed(read, name) if turns else None
        label = f"{joint.child} {name}"
        spins = SPINNING_NAMES.search(label) and not WHEEL_NAMES.search(label)
        if found is None or spins or OTHER_NAMES.search(label):
            continue
        found = _cylinder(found, read)
        if found.drawn or joint.mimic is None or name in hints.wheels:
            candidates.append(found)
    rollers = {name for wheel in candidates for name in wheel.rollers}
    candidates = [wheel for wheel in candidates if wheel.joint not in rollers]
    scene = Scene(read, hints, tuple(candidates))
    certain, likely = list[Rolling](), list[Rolling]()
    for wheel in candidates:
        found_here = [(weight, what) for weight, what, holds in EVIDENCE if holds(scene, wheel)]
        weights = [weight for weight, _ in found_here]
        near = wheel.ground - scene.ground <= NEAR * wheel.radius
        if sum(weights) < CERTAIN or (wheel.drawn and not (scene.lowest(wheel) or near)):
            continue
        why = " and ".join(what for weight, what in found_here if weight == max(weights))
        wheel = replace(wheel, why=wheel.why or f"{why}.")
        (certain if CERTAIN in weights else likely).append(wheel)
    sized = [w if w.drawn else _sized(w, read, hints) for w in certain or likely]
    lowest = min((w.ground for w in sized if not w.drawn), default=0.0)
    return [replace(w, radius=float(w.center[2] - lowest)) if w.guess else w for w in sized]


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
    rolling_joints = {joint for w in wheels for joint in (w.joint, *w.carriers)}
    carriers = {joint.parent for joint in read.tree.values()}
    ground = min((wheel.ground for wheel in wheels if not wheel.guess), default=-math.inf)
    found = {}
    for name, joint in read.tree.items():
        if joint.child in carriers or name in rolling_joints:
            continue
        pose, _ = chain(read, name)
        shapes = shapes_of(read.links[joint.child].node, "collision")
        middle = np.array(shapes[0].placement.translation) if shapes else np.zeros(3)
        below = reach(shapes[0], pose[:3, :3].T @ (0.0, 0.0, -1.0)) if shapes else 0.0
        center = pose[:3, :3] @ middle + pose[:3, 3]
        height = pose[2, 3] - below if shapes else center[2]
        slides = [shape.kind for shape in shapes] == ["sphere"] and abs(height - ground) <= LEVEL
        if CASTER_NAMES.search(f"{joint.child} {name}") or (slides and joint.kind == "fixed"):
            found[joint.child] = np.array([center[0], center[1], height])
    return found


# --- geometry -------------------------------------------------------------------------------------


def sine(one: np.ndarray, other: np.ndarray) -> float:
    """Sine of the angle between two unit vectors."""
    return float(np.linalg.norm(np.cross(one, other)))


def chain(read: UrdfFile, name: str) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Pose (4, 4) of a joint in the root's frame at zero, and of the joints that move it."""
    above: list[tuple[str, np.ndarray]] = []
    joint = read.tree[name]
    pose, seen = joint.pose, {joint.child}
    while joint.parent in read.carriers and joint.parent not in seen:
        seen.add(joint.parent)
        name = read.carriers[joint.parent]
        joint = read.tree[name]
        pose = joint.pose @ pose
        above = [(one, joint.pose @ own) for one, own in above]
        if joint.joint.nv == 1:  # a planar or floating joint is that of the base
            above.append((name, joint.pose))
    return pose, above


def axis_of(joint: UrdfJoint) -> np.ndarray:
    """Axis of a joint with one coordinate in its frame, shape (3,)."""
    return np.array(joint.joint.axis)  # type: ignore[attr-defined]


def _placed(read: UrdfFile, name: str) -> Rolling | None:
    """A joint with an axis parallel to the ground, the plane normal to z of the root link."""
    joint = read.tree[name]
    pose, above = chain(read, name)
    axis = pose[:3, :3] @ axis_of(joint)
    if abs(axis[2]) > PARALLEL:
        return None
    center, steering, trail = pose[:3, 3], "", 0.0
    upright = [one for one, own in above if is_upright(read, one, own)]
    for one, own in above:
        if not steering and one in upright and read.tree[one].kind != "prismatic":
            steering = one
            ahead = np.array([axis[1], -axis[0], 0.0])
            trail = abs(float((center - own[:3, 3]) @ ahead))
    names = tuple(one for one, _ in above)
    found = Rolling(joint.child, name, 0.0, center, np.zeros(3), axis, steering, names, trail)
    held = len(upright) == len(above)
    return replace(found, upright=held, rollers=rollers_of(read, joint.child))


def rollers_of(read: UrdfFile, link: str) -> tuple[str, ...]:
    """Joints of the rollers on a wheel: several that turn without end and carry nothing."""
    solid = {part.node.element.get("name") for part, _ in read.solid(link)}
    found = [
        name
        for name, joint in read.tree.items()
        if joint.parent in solid and joint.kind == "continuous" and joint.child not in read.bearing
    ]
    return tuple(found) if len(found) >= ROLLERS else ()


def is_upright(read: UrdfFile, name: str, pose: np.ndarray) -> bool:
    """Whether the axis of a joint is normal to the ground."""
    return bool(abs((pose[:3, :3] @ axis_of(read.tree[name]))[2]) > 1.0 - PARALLEL)


def _cylinder(wheel: Rolling, read: UrdfFile) -> Rolling:
    """The wheel with the size of the one cylinder around its axle, if it ends a chain."""
    own, solid = axis_of(read.tree[wheel.joint]), read.solid(wheel.link)
    collision, visual = (
        [(shape, pose) for link, pose in solid for shape in shapes_of(link.node, tag)]
        for tag in ("collision", "visual")
    )
    drawn = collision or visual
    if len(drawn) != 1 or drawn[0][0].kind != "cylinder":
        return wheel
    carries = wheel.link in read.bearing and not wheel.rollers
    named = WHEEL_NAMES.search(f"{wheel.link} {wheel.joint}")
    if read.tree[wheel.joint].kind != "continuous" or (carries and not named):
        return wheel
    shape, pose = drawn[0]
    pose, radius = pose @ shape.placement.matrix, shape.size[0]
    along, offset = pose[:3, 2], pose[:3, 3]
    if sine(along, own) > PARALLEL or sine(offset, own) > PARALLEL * radius:
        return wheel
    offset = (offset @ own) * own  # `Wheel` has its centre on the joint axis
    center = wheel.center + (offset @ own) * wheel.axis
    why = f"a cylinder of radius {radius:g} m around it is the lowest."
    return replace(wheel, radius=radius, center=center, offset=offset, why=why, drawn=True)


def _sized(wheel: Rolling, read: UrdfFile, hints: Hints) -> Rolling:
    """The wheel with the radius of its plugin or mesh, or with a guess."""
    link, own = read.links[wheel.link], axis_of(read.tree[wheel.joint])
    height = float(wheel.center[2])
    if wheel.joint in hints.wheels and hints.radius:
        why = f"the plugin {hints.wheels[wheel.joint]} drives it with this radius."
        return replace(wheel, radius=hints.radius, why=why)
    drawn = _mesh_radius(read, link, own)
    if drawn:
        return replace(wheel, radius=drawn, why=f"{wheel.why} The radius is that of its mesh.")
    why = wheel.why if drawn is None else f"{wheel.why} No mesh of it was found."
    spin = float(own @ link.tensor @ own)
    radius, guess = 0.1, "the file does not show it"
    if height > LEVEL:
        radius = height
        guess = f"the axle is {height:.4g} m above the origin of the root link"
    elif link.mass > 0.0 and spin > 0.0:
        radius = math.sqrt(2.0 * spin / link.mass)
        guess = f"a solid disk of its mass and inertia has {radius:.3g} m"
    return replace(wheel, radius=radius, guess=guess, why=why)


def _mesh_radius(read: UrdfFile, link: Link, axis: np.ndarray) -> float | None:
    """Radius about the axle of the meshes that are found, m; 0 without their files."""
    meshes = [
        (mesh, pose)
        for tag in ("collision", "visual")
        for part, pose in read.solid(link.node.element.get("name"))
        for mesh in part.node.element.iterfind(_MESH % tag)
    ]
    radii = [0.0]
    for mesh, pose in meshes:
        path = read.macros.file(mesh.get("filename", ""), read.file)
        found = None if path is None else read_mesh(str(path))
        if found is not None:
            with suppress(ValueError):  # of an invalid scale
                place = pose @ Node(mesh.getparent().getparent(), read.file).pose()
                points = found[0] * np.array(mesh.get("scale", "1 1 1").split(), float)
                points = points @ place[:3, :3].T + place[:3, 3]
                across = points - np.outer(points @ axis, axis)
                radii.append(float(f"{np.linalg.norm(across, axis=1).max():.4g}"))
    return max(radii) if meshes else None
