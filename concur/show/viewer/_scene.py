"""The robot in a viser scene: box, wheels, arms, hands, and the references of its outputs.

All nodes are below one node, `/world`, which moves against the robot's travel. So the robot stays
before the camera, the ground moves below it, and the viewer can still turn the camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from concur.errors import ConcurError
from concur.show.shapes import FACES, surfaces
from concur.show.skeleton import Outline
from concur.show.style import ARM, CHASSIS, COM, EDGE, REFERENCE, WHEEL, output_color

if TYPE_CHECKING:
    import viser

    from concur.robot import Mechanism

Floats = NDArray[np.float64]

TRAIL = 600
"""Number of points of each hand's path."""

STEP = 0.01
"""Distance between two points of a path, as a fraction of the robot's size."""

_FROM = np.array([-0.55, -0.75, 0.5])
"""Direction to the first camera of a robot without an arm."""

_OBLIQUE = 0.9
"""Angle from the arm to the first camera, rad: an arm that points at the camera looks short."""

_SIDES = 12
_EDGES = np.array(
    [[i, j] for i in range(8) for j in range(i + 1, 8) if (i ^ j) in (1, 2, 4)], dtype=int
)


def color(name: str) -> tuple[int, int, int]:
    """A colour as three numbers from 0 to 255."""
    from matplotlib.colors import to_rgb

    red, green, blue = (round(255 * part) for part in to_rgb(name))
    return red, green, blue


class Scene:
    """A robot drawn into a viser scene; `update` moves it.

    Parameters
    ----------
    server : viser.ViserServer
        The viewer.
    robot : Mechanism
        The robot.
    outputs : sequence of Output
        Outputs whose points are drawn as hands.
    q : ndarray, shape (nq,)
        First configuration.
    name : str
        Node of the scene; below `/world` for a further robot in the scene of the first.
    opacity : float, optional
        Opacity of the robot, from 0 to 1; default 1.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        robot: Mechanism,
        outputs: Sequence[Any],
        q: Floats,
        *,
        name: str = "/world",
        opacity: float | None = None,
    ) -> None:
        self.follow = True  # the camera follows the robot instead of the ground
        self.offset = np.zeros(3)  # of a further robot in the scene of the first
        self._focus = np.zeros(3)  # where the base stands before the camera that follows it
        self.grows = True  # hands leave paths
        self._server, self._robot, self._outputs = server, robot, tuple(outputs)
        self._name, self._opacity = name, opacity
        self._outline = Outline(robot, q, self._outputs)
        self._root = self._outline.root
        self._start = self._base(q)
        at, size = self._outline.at(q), self._outline.size
        self.size = size
        scene = server.scene
        self.world = scene.add_frame(name, show_axes=False)
        if name == "/world":
            self._add_surroundings(size, q)
        self._add_bodies(at.chassis, q)
        self._add_wheels(at.wheels, at.spokes, q)
        self.bars = [
            self._mesh(f"{part}/{k}", *_prism(thick * size), paint)
            for part, count, thick, paint in (
                ("struts", len(at.struts), 0.012, EDGE),
                ("links", len(at.links), 0.02, ARM),
                ("stubs", len(at.stubs), 0.02, ARM),
            )
            for k in range(count)
        ]
        self._struts = len(at.struts)
        self.joints = [
            scene.add_icosphere(
                f"{name}/robot/joints/{k}", 0.03 * size, color=color(EDGE), opacity=opacity
            )
            for k in range(len(at.joints))
        ]
        self.com = scene.add_icosphere(f"{name}/com", 0.04 * size, color=color(COM), visible=False)
        self._add_outputs(at.hands)
        self._last: Floats = np.empty(0)
        self.update(q, np.full(sum(output.pose_size for output in self._outputs), np.nan))

    def _add_surroundings(self, size: float, q: Floats) -> None:
        scene, ground = self._server.scene, self._robot.ground_height
        if ground is not None:
            cell = float(10.0 ** np.round(np.log10(size)) / 4.0)
            scene.add_grid(
                f"{self._name}/ground",
                infinite_grid=True,
                cell_size=cell,
                section_size=4.0 * cell,
                cell_color=(225, 228, 232),
                section_color=(170, 176, 184),
                fade_distance=30.0 * size,
                shadow_opacity=0.2,
                position=(0.0, 0.0, float(ground)),
            )
        scene.add_frame(f"{self._name}/inertial", axes_length=0.25 * size, axes_radius=0.006 * size)
        self.look_at(q[None, :])

    def look_at(self, path: Floats) -> None:
        """Place the first camera on the side of the arm, where it sees the whole path of the base.

        Parameters
        ----------
        path : ndarray, shape (k, nq)
            Configurations.
        """
        places = np.array([self._base(q) for q in path]) - self._start
        low, high = places.min(axis=0), places.max(axis=0)
        self._focus = (low + high) / 2.0
        look = self._focus + self._outline.at(path[0]).com - self._base(path[0])
        span = 1.75 * self.size + 0.45 * float(np.linalg.norm(high - low))
        camera = self._server.initial_camera
        camera.position = tuple(look + span * self._side(path))
        camera.look_at = tuple(look)

    def _side(self, path: Floats) -> Floats:
        """Direction to the first camera: obliquely to that of the arm, and above."""
        drawn = [self._outline.at(q) for q in path]
        arms = [np.mean(at.joints, axis=0) for at in drawn if len(at.joints)]
        if not arms:
            return _FROM
        arm = np.mean(arms, axis=0) - np.mean([at.chassis.mean(axis=0) for at in drawn], axis=0)
        across = float(np.linalg.norm(arm[:2]))
        side = _FROM.copy()
        if across > 0.02 * self.size:
            azimuth = np.arctan2(arm[1], arm[0]) - _OBLIQUE
            side[:2] = np.linalg.norm(_FROM[:2]) * np.array([np.cos(azimuth), np.sin(azimuth)])
        if self._robot.ground_height is None and -arm[2] > across:  # the arm is below the base
            side[2] = -side[2]
        return side

    def _mesh(
        self, part: str, vertices: Floats, faces: NDArray[np.int_], paint: str
    ) -> viser.MeshHandle:
        return self._server.scene.add_mesh_simple(
            f"{self._name}/robot/{part}",
            vertices,
            faces,
            color=color(paint),
            opacity=self._opacity,
            flat_shading=True,
            side="double",
        )

    def _add_bodies(self, corners: Floats, q: Floats) -> None:
        """Draw the shapes of bodies; a base without shapes is a box."""
        rolling = {wheel.body for wheel in self._robot.wheels}
        shapes = {
            body.name: getattr(body, "shape", ())
            for body in self._robot.bodies
            if body.name not in rolling
        }
        self.shapes = [
            (name, self._mesh(f"shapes/{name}", *surfaces(own), ARM))
            for name, own in shapes.items()
            if own and name != self._root
        ]
        if shapes.get(self._root):
            self.base = self._mesh("base", *surfaces(shapes[self._root]), CHASSIS)
            return
        local = _into(self._pose(q, self._root), corners)
        self.base = self._mesh("base", local, FACES, CHASSIS)
        self._server.scene.add_line_segments(
            f"{self._name}/robot/base/edges",
            local[_EDGES],
            colors=color(EDGE),
            thickness=0.006 * self.size,
        )

    def _add_wheels(self, wheels: Sequence[Floats], spokes: Sequence[Floats], q: Floats) -> None:
        self.wheels = []
        for k, (wheel, rims, spoke) in enumerate(
            zip(self._robot.wheels, wheels, spokes, strict=True)
        ):
            pose = self._pose(q, wheel.body)
            rims, spoke = _into(pose, rims), _into(pose, spoke)
            self.wheels.append((wheel.body, self._mesh(f"wheels/{k}", *_disc(rims), WHEEL)))
            # Marks on both faces, slightly outside, show the rotation of the wheel.
            hub, out = spoke
            sides = [rim[:-1].mean(axis=0) - hub for rim in rims]
            marks = [[hub + 1.1 * side, hub + 1.1 * side + 0.9 * (out - hub)] for side in sides]
            self._server.scene.add_line_segments(
                f"{self._name}/robot/wheels/{k}/mark",
                np.array(marks),
                colors=(230, 230, 230),
                thickness=0.012 * self.size,
            )

    def _add_outputs(self, hands: Floats) -> None:
        scene, size = self._server.scene, self.size
        self.hands, self.demands, self.trails, self.frames = [], [], [], []
        self._paths: list[list[Floats]] = []
        for k, (output, hand) in enumerate(zip(self._outputs, hands, strict=True)):
            paint, name = color(output_color(k)), f"{self._name}/outputs/{output.name}"
            self.hands.append(
                scene.add_icosphere(name, 0.035 * size, color=paint, opacity=self._opacity)
            )
            self.demands.append(
                scene.add_icosphere(
                    f"{name} demanded", 0.06 * size, color=paint, opacity=0.35, cast_shadow=False
                )
            )
            self.frames.append(
                scene.add_frame(
                    f"{name} frame",
                    axes_length=0.2 * size,
                    axes_radius=0.005 * size,
                    visible=False,
                )
            )
            self._paths.append([hand])
            self.trails.append(
                scene.add_line_segments(
                    f"{name} path",
                    np.array([[hand, hand]]),
                    colors=paint,
                    thickness=0.008 * size,
                )
            )

    def update(self, q: Floats, pose: Floats) -> None:
        """Move the robot, unless the configuration is invalid.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.
        pose : ndarray, shape (pose_size,)
            Reference poses of all outputs; NaN: no reference.
        """
        now = np.concatenate([q, pose, [self.follow], self.offset])
        if not np.isfinite(q).all() or np.array_equal(now, self._last, equal_nan=True):
            return
        try:
            at = self._outline.at(q)
        except ConcurError:  # too large numbers, or a quaternion without unit norm
            return
        self._last = now
        with self._server.atomic():  # otherwise the arm could be shown apart from its base
            travel = self._base(q) - self._focus if self.follow else self._start
            self.world.position = tuple(-travel if self._name == "/world" else self.offset)
            _put(self.base, self._pose(q, self._root))
            for body, mesh in (*self.wheels, *self.shapes):
                _put(mesh, self._pose(q, body))
            for bar, line in zip(self.bars, at.struts + at.links + at.stubs, strict=True):
                _span(bar, *line)
            for joint, point in zip(self.joints, at.joints, strict=True):
                joint.position = tuple(point)
            self.com.position = tuple(at.com)
            self._move_outputs(at.hands, q, pose)

    def paint(self, paint: str) -> None:
        """Give the arms another colour.

        Parameters
        ----------
        paint : str
            Colour, as for Matplotlib.
        """
        for bar in (*self.bars[self._struts :], *(mesh for _, mesh in self.shapes)):
            bar.color = color(paint)

    def show_com(self, shown: bool) -> None:
        """Show or hide the centre of mass; the base is transparent with it.

        Parameters
        ----------
        shown : bool
            Whether to show it.
        """
        self.com.visible, self.base.opacity = shown, 0.3 if shown else self._opacity

    def hands_at(self, q: Floats) -> Floats:
        """Output points of a configuration.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.

        Returns
        -------
        ndarray, shape (m, 3)
            The points in the world frame, m.
        """
        return self._outline.at(q).hands

    def add_path(self, number: int, segments: NDArray[np.float32]) -> viser.LineSegmentsHandle:
        """Draw the reference path of an output.

        Parameters
        ----------
        number : int
            Index of the output.
        segments : ndarray, shape (n, 2, 3)
            Segments of the path, m.

        Returns
        -------
        viser.LineSegmentsHandle
            The drawn path.
        """
        return self._server.scene.add_line_segments(
            f"{self._name}/outputs/{self._outputs[number].name} reference path",
            segments,
            colors=color(REFERENCE),
            thickness=0.006 * self.size,
        )

    def _move_outputs(self, hands: Floats, q: Floats, pose: Floats) -> None:
        start = 0
        for k, (output, hand) in enumerate(zip(self._outputs, hands, strict=True)):
            self.hands[k].position = tuple(hand)
            demanded = pose[start : start + output.pose_size]
            start += output.pose_size
            place = demanded_place(output, demanded, hand)
            self.demands[k].visible = place is not None
            if place is not None:
                self.demands[k].position = tuple(place)
            _put(self.frames[k], self._pose(q, output.body) @ frame_of(output))
            path = self._paths[k]
            if self.grows and np.linalg.norm(hand - path[-1]) > STEP * self.size:
                path.append(hand)
                del path[:-TRAIL]
                points = np.array(path)
                self.trails[k].points = np.stack([points[:-1], points[1:]], 1).astype(np.float32)

    def _pose(self, q: Floats, body: str) -> Floats:
        return np.asarray(self._robot.pose(q, body), dtype=float)

    def _base(self, q: Floats) -> Floats:
        """Position of the base; its height is zero for robots on the ground."""
        place = self._pose(q, self._root)[:3, 3].copy()
        if self._robot.ground_height is not None:
            place[2] = 0.0
        return place


def frame_of(output: Any) -> Floats:
    """Pose (4, 4) of an output's frame in its body, m."""
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(output.orientation).as_matrix()
    pose[:3, 3] = output.point
    return pose


def demanded_place(output: Any, demanded: Floats, hand: Floats) -> Floats | None:
    """Reference position, m; coordinates without a reference are those of the hand.

    None if no coordinate is along an axis of the world frame, or the position is not finite.
    """
    place = hand.copy()
    if output.relative_to is not None:
        return None
    if output.group in ("R", "R2", "R3"):
        for axis, value in zip(output.coordinate_names, demanded, strict=True):
            place["xyz".index(axis)] = value
    elif output.group in ("SE3", "R3xSO3"):
        place[:] = demanded[:3]
    elif output.group == "SE2" and tuple(output.normal) == (0.0, 0.0, 1.0):
        place[:2] = demanded[:2]
    else:
        return None
    return place if np.isfinite(place).all() else None


def placed(handle: Any) -> Floats:
    """Vertices of a mesh of the scene, in the frame `/world`."""
    from scipy.spatial.transform import Rotation

    w, x, y, z = handle.wxyz
    turned = Rotation.from_quat([x, y, z, w]).apply(handle.vertices * np.asarray(handle.scale))
    return np.asarray(turned + np.asarray(handle.position), dtype=float)


def _into(pose: Floats, points: Floats) -> Floats:
    """Points of the world frame, in the frame of a pose."""
    return (points - pose[:3, 3]) @ pose[:3, :3]


def _put(handle: Any, pose: Floats) -> None:
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
    handle.wxyz, handle.position = (w, x, y, z), tuple(pose[:3, 3])


def _span(handle: Any, begin: Floats, end: Floats) -> None:
    """Place a prism of unit length along z between two points."""
    along = end - begin
    length = float(np.linalg.norm(along))
    handle.visible = length > 0.0
    if not length:
        return
    x, y, z = along / length
    # The quaternion of the smallest rotation from (0, 0, 1) to (x, y, z).
    wxyz = np.array([1.0 + z, -y, x, 0.0]) if z > -1.0 + 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
    handle.wxyz = tuple(wxyz / np.linalg.norm(wxyz))
    handle.position = tuple(begin)
    handle.scale = (1.0, 1.0, length)


def _prism(radius: float) -> tuple[Floats, NDArray[np.int_]]:
    """A closed prism along z, from 0 to 1: vertices and faces."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES + 1)
    ring = radius * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    return _disc(np.stack([ring, ring + np.array([0.0, 0.0, 1.0])]))


def _disc(rims: Floats) -> tuple[Floats, NDArray[np.int_]]:
    """A closed body between two rims, shape (2, n, 3), whose last point is the first."""
    low, high = rims[0][:-1], rims[1][:-1]
    n = len(low)
    vertices = np.concatenate([low, high, [low.mean(axis=0), high.mean(axis=0)]])
    faces = []
    for i in range(n):
        j = (i + 1) % n
        faces += [[i, j, n + j], [i, n + j, n + i], [2 * n, j, i], [2 * n + 1, n + i, n + j]]
    return vertices, np.array(faces)
