"""The look of a robot: surfaces on its bodies, bars between them, joints and output points.

A `Drawing` is made once from the robot, and placed in each configuration. Figures and the viewer
draw the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray

from concur.outputs import Output
from concur.robot import Body, Mechanism, Pose, Shape, Wheel, read_mesh, shortest_rotation
from concur.show._outputs import frames_of
from concur.show._scenery import scenery
from concur.show.style import Floats

SIDES = 16
"""Sides of a round surface."""

FINE = 1000
"""Number of triangles of a surface above which it has no edges, and fewer triangles in figures."""

SHARP = 0.6
"""Angle between two faces from which on their common edge is drawn, rad."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles that move with a body.

    Parameters
    ----------
    body : str
        Name of the body.
    role : str
        "base", "wheel", "support" or "shape".
    points : ndarray, shape (n, 3)
        Corners in the frame of the body, m.
    faces : ndarray, shape (m, 3)
        Indices of the corners of each triangle.
    edges : ndarray, shape (k, 2, 3)
        Sharp edges, m.
    marks : ndarray, shape (j, 2, 3)
        Lines that show the angle of a wheel, m.
    """

    body: str
    role: str
    points: Floats
    faces: NDArray[np.int_]
    edges: Floats
    marks: Floats


@dataclass(frozen=True, eq=False)
class Placed:
    """A drawing in one configuration; all points are in the inertial frame, m.

    Parameters
    ----------
    poses : dict of str to ndarray, shape (4, 4)
        Pose of each body.
    surfaces : list of ndarray, shape (n, 3)
        Corners of each surface.
    bars : ndarray, shape (n, 2, 3)
        Ends of each bar.
    joints : ndarray, shape (n, 3)
        Joints of the arms.
    hands : ndarray, shape (m, 3)
        Points of the outputs.
    com : ndarray, shape (3,)
        Centre of mass of the robot; without masses the base.
    """

    poses: dict[str, Floats]
    surfaces: list[Floats]
    bars: Floats
    joints: Floats
    hands: Floats
    com: Floats

    @property
    def points(self) -> Floats:
        """Every point of the drawing, shape (n, 3)."""
        bars = self.bars.reshape(-1, 3)
        return np.concatenate([*self.surfaces, bars, self.hands, self.com[None]])


class Drawing:
    """Look of a robot: its surfaces, bars, joints, frames and outputs.

    A bar leads from the origin of a body to that of each body on it, to the points of outputs and,
    at the end of a branch without an output, to the centre of mass. Bodies that are drawn as meshes
    have none, and neither have frames without an output, unless nothing else is on their body.

    Parameters
    ----------
    robot : Mechanism or System
        The robot, or a system with declared frames.
    q : array_like, shape (nq,)
        A configuration; a base without shapes or the box of its inertia is fitted to it.
    outputs : iterable of Output
        Outputs whose points are drawn.

    Attributes
    ----------
    heavy : bool
        Whether it has masses, and so a centre of mass; declared frames have none.
    supports : dict of str to ndarray, shape (3,)
        Where the supports beside the wheels touch the ground, by name, in the frame of the base, m.

    Raises
    ------
    ConcurError
        If the system has neither bodies nor declared frames.
    """

    def __init__(self, robot: Mechanism, q: Any, outputs: Iterable[Any] = ()) -> None:
        self.robot, self.outputs = (robot := scenery(robot)), on_bodies(outputs)
        self.root = robot.bodies[0].name
        self.heavy = any(body.inertia.mass > 0.0 for body in robot.bodies)
        self.framed = tuple(dict.fromkeys([self.root, *(out.body for out in self.outputs)]))
        parents = [self.root, *(body.parent for body in robot.bodies)]
        unseen = {body.name for body in frames_of(robot) if parents.count(body.parent) > 1}
        self._bodies = [b for b in robot.bodies if b.name not in unseen - {*self.framed}]
        poses = self._poses(np.asarray(q, dtype=float))
        looks = {b.name: [surface(part) for part in b.shape or _solid(b)] for b in robot.bodies}
        shapes = {name: [part for part in parts if part] for name, parts in looks.items()}
        self._carriers = self._bodies_that_carry_wheels_only()
        meshed = {body.name for body in robot.bodies if any(shape.file for shape in body.shape)}
        solid = {name for name in meshed if shapes[name]}
        self.bars, self.roles = self._bars(solid)
        self.joints = [
            body.name for body in self._bodies[1:] if body.name not in self._carriers | solid
        ]
        self.supports = self._support_points()
        base = shapes.pop(self.root)
        wheels = {wheel.body for wheel in robot.wheels} - {self.root}
        drawn = [poses[body.name] for body in self._bodies]
        far = max(float(np.linalg.norm((p - poses[self.root])[:3, 3])) for p in drawn)
        if not base:
            frame = trimesh.creation.box((0.08 * far or 0.1,) * 3)
            base = [self._box(poses) if self.heavy else frame]
        self.surfaces = [_surface(self.root, "base", base)]
        for wheel in robot.wheels:
            self.surfaces.append(self._wheel(wheel, 0.05 * far or 0.05))
        self.surfaces += [self._support(point) for point in self.supports.values()]
        for name, parts in shapes.items():
            if parts and name not in wheels:
                self.surfaces.append(_surface(name, "shape", parts))
        at = self.at(q)
        self.size = float(np.linalg.norm(at.points - poses[self.root][:3, 3], axis=1).max())

    def at(self, q: Any) -> Placed:
        """Place the drawing in a configuration.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration.

        Returns
        -------
        Placed
            The points of the drawing.
        """
        poses = self._poses(q)

        def points(places: Sequence[tuple[str, Any]]) -> Floats:
            found = [moved(poses[body], np.asarray(point, float)) for body, point in places]
            return np.array(found).reshape(-1, 3)

        bodies = self.robot.bodies
        masses = np.array([body.inertia.mass for body in bodies])
        centres = points([(body.name, body.inertia.com) for body in bodies])
        return Placed(
            poses=poses,
            surfaces=[moved(poses[part.body], part.points) for part in self.surfaces],
            bars=points([end for bar in self.bars for end in bar]).reshape(-1, 2, 3),
            joints=points([(name, np.zeros(3)) for name in self.joints]),
            hands=points([(output.body, output.point) for output in self.outputs]),
            com=masses @ centres / masses.sum() if masses.sum() > 0 else centres[0],
        )

    def _support_points(self) -> dict[str, Floats]:
        """Points of contact of the supports in the frame of the base, on the ground of the wheels.

        The height of a point in the file has no meaning if the wheels determine that of the ground.
        """
        normal, ground = _normal(self.robot), self.robot.ground_height
        points = {n: np.array(at, float) for n, at in getattr(self.robot, "supports", {}).items()}
        if ground is None:
            return points
        return {name: at + (ground - at @ normal) * normal for name, at in points.items()}

    def _poses(self, q: Any) -> dict[str, Floats]:
        return {b.name: np.asarray(self.robot.pose(q, b.name), float) for b in self.robot.bodies}

    def _bars(self, solid: set[str]) -> tuple[list[Any], list[str]]:
        """Ends (body, point) and role of each bar: "strut", "link" or "stub"."""
        zero, bodies = (0.0, 0.0, 0.0), self._bodies
        # A line inside the box of the base is a mount, not a part of the arm; frames have no box.
        mounts = {self.root} if self.heavy else set()
        found: list[tuple[str, Any]] = [
            (
                "strut" if body.name in self._carriers or body.parent in mounts else "link",
                ((body.parent, zero), (body.name, zero)),
            )
            for body in bodies[1:]
        ]
        found += [
            ("link", ((output.body, zero), (output.body, output.point)))
            for output in self.outputs
            if output.body != self.root
        ]
        ends = {b.name for b in bodies} - {b.parent for b in bodies} - {*self.framed}
        found += [
            ("stub", ((body.name, zero), (body.name, body.inertia.com)))
            for body in bodies
            if body.name in ends - {wheel.body for wheel in self.robot.wheels}
            and np.any(body.inertia.com)
        ]
        found = [bar for bar in found if bar[1][0][0] not in solid]
        return [ends for _, ends in found], [role for role, _ in found]

    def _bodies_that_carry_wheels_only(self) -> set[str]:
        bodies = self._bodies
        # A wheel may be on the base itself, or on a body that carries more than a wheel.
        wheels = {wheel.body for wheel in self.robot.wheels} - {body.parent for body in bodies}
        carriers = {*wheels}
        for body in reversed(bodies[1:]):
            below = [other.name for other in bodies if other.parent == body.name]
            if below and carriers.issuperset(below):
                carriers.add(body.name)
        return carriers - {output.body for output in self.outputs} | wheels

    def _box(self, poses: dict[str, Floats]) -> trimesh.Trimesh:
        """Box of a base without shapes: over wheels and supports, or up to the mounts of arms."""
        to_root = np.linalg.inv(poses[self.root])
        base, near = self.robot.base, {self.root, *self._carriers}
        parents = {body.name: body.parent for body in self.robot.bodies}
        wheels = [w for w in self.robot.wheels if {w.body, parents[w.body] or w.body} <= near]
        mounts = [
            (to_root @ poses[body.name])[:3, 3]
            for body in self._bodies
            if body.parent == self.root and body.name not in self._carriers
        ]
        if wheels:
            hubs = np.array([moved(to_root @ poses[w.body], np.array(w.center)) for w in wheels])
            radius = max(wheel.radius for wheel in wheels)
            around = np.array([*hubs, *mounts, *self.supports.values()])
            low, high = around.min(axis=0), around.max(axis=0)
            least = max(0.6 * float(np.max((high - low)[:2])), radius) or 0.1
            missing = np.maximum(0.0, least - (high - low)[:2])
            size = 0.88 * ((high - low)[:2] + missing)
            middle = (high + low)[:2] / 2
            low[:2], high[:2] = middle - size / 2, middle + size / 2
            low[2] = hubs[:, 2].min()
            high[2] = max([low[2] + max(0.7 * radius, 0.1 * least), *(m[2] for m in mounts)])
        else:
            centre = np.array(base.inertia.com, float)
            half = np.max([np.abs(mount - centre) for mount in mounts] or [np.full(3, 0.1)], axis=0)
            half = np.maximum(half, 0.5 * half.max())
            # An arm at the origin of the base gives no information about the size of the base.
            drawn = [to_root @ poses[body.name] for body in self._bodies]
            far = max(float(np.linalg.norm(pose[:3, 3])) for pose in drawn)
            half = np.maximum(half, 0.1 * far if far > 0 else 0.1)
            low, high = centre - half, centre + half
        box: trimesh.Trimesh = trimesh.creation.box(bounds=[low, high])
        return box

    def _wheel(self, wheel: Wheel, least: float) -> Surface:
        """A disc; a wheel without a radius gets a visible one."""
        radius = wheel.radius or least
        turn = np.eye(4)
        turn[:3, :3] = shortest_rotation(tuple(self.robot.wheel_axis(wheel)))
        turn[:3, 3] = wheel.center
        disc = trimesh.creation.cylinder(radius, 0.4 * radius, sections=SIDES)
        # Lines on both faces, slightly outside, show the angle.
        marks = np.array([[[0, 0, z], [0.9, 0, z]] for z in (-0.22, 0.22)]) * radius
        return _surface(wheel.body, "wheel", [disc.apply_transform(turn)], moved(turn, marks))

    def _support(self, point: Floats) -> Surface:
        """A ball of about the size of a caster, which touches the ground in a point."""
        radii = [wheel.radius for wheel in self.robot.wheels if wheel.radius]
        radius = 0.5 * float(np.median(radii)) if radii else 0.05
        ball = trimesh.creation.uv_sphere(radius, count=[SIDES + 1, SIDES])
        ball.apply_translation(point + radius * _normal(self.robot))
        return _surface(self.root, "support", [ball])


def _normal(robot: Any) -> Floats:
    """Normal of the ground in the frame of the base."""
    return np.array(getattr(robot.base.joint, "normal", (0.0, 0.0, 1.0)), float)


def _solid(body: Body) -> tuple[Shape, ...]:
    """Box of the inertia of a body, if it was given by one."""
    edges = body.inertia.edges
    if edges is None or min(edges) <= 0.0:
        return ()
    return (Shape("box", edges, Pose(body.inertia.com)),)


def surface(shape: Shape) -> trimesh.Trimesh | None:
    """Surface of a shape in the frame of its body, m; None for a mesh that cannot be read."""
    size: Any = shape.size
    if shape.kind == "mesh":
        read = read_mesh(shape.file)
        if read is None:
            return None
        made = trimesh.Trimesh(*read, process=False)
        made.apply_transform(np.diag([*size, 1.0]))
    elif shape.kind == "box":
        made = trimesh.creation.box(size)
    elif shape.kind == "cylinder":
        made = trimesh.creation.cylinder(size[0], size[1], sections=SIDES)
    elif shape.kind == "sphere":
        made = trimesh.creation.uv_sphere(size[0], count=[SIDES + 1, SIDES])
    else:
        made = trimesh.creation.capsule(size[1], size[0], count=[SIDES, SIDES])
    return made.apply_transform(shape.placement.matrix)


def coarse(part: Surface, cells: int = 20) -> Surface:
    """The surface with few triangles: corners within one cell of a grid become one."""
    if len(part.faces) <= FINE:
        return part
    cell = float(np.ptp(part.points, axis=0).max()) / cells
    grid = np.round(part.points / cell)
    _, first, new = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    faces = new.reshape(-1)[part.faces]
    sides = np.sort(faces, axis=1)
    _, once = np.unique(sides, axis=0, return_index=True)
    faces = faces[[k for k in once if len({*sides[k]}) == 3]]
    return Surface(part.body, part.role, part.points[first], faces, part.edges[:0], part.marks)


def moved(pose: Floats, points: Floats) -> Floats:
    """Points (..., 3) of the frame with a pose (4, 4), in the inertial frame."""
    return np.asarray(points @ pose[:3, :3].T + pose[:3, 3])


def on_bodies(outputs: Iterable[Any]) -> tuple[Output, ...]:
    """Outputs on bodies; one that is a function has no place on the robot."""
    return tuple(output for output in outputs if not output.is_function)


def _surface(body: str, role: str, parts: list[trimesh.Trimesh], marks: Any = ()) -> Surface:
    mesh: Any = parts[0] if len(parts) == 1 else trimesh.util.concatenate(parts)
    fine = len(mesh.faces) > FINE  # edges would hide its faces
    sharp = [] if fine else mesh.face_adjacency_edges[mesh.face_adjacency_angles > SHARP]
    points = np.array(mesh.vertices, float)
    lines = np.asarray(marks, float).reshape(-1, 2, 3)
    return Surface(
        body,
        role,
        points,
        np.array(mesh.faces),
        points[np.array(sharp, int)].reshape(-1, 2, 3),
        lines,
    )
