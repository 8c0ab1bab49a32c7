"""The robot in a viser scene: its drawing, hands, and the references of its outputs.

All nodes are below one node, `/world`, which moves against the robot's travel. So the robot stays
before the camera, the ground moves below it, and the viewer can still turn the camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import trimesh
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError
from concur.robot import Mechanism, shortest_rotation
from concur.show._drawing import Drawing
from concur.show._outputs import position_axes
from concur.show.style import (
    ARM,
    CHASSIS,
    COM,
    EDGE,
    REFERENCE,
    SUPPORT,
    WHEEL,
    Floats,
    output_color,
)

if TYPE_CHECKING:
    import viser

TRAIL = 600
"""Number of points of each hand's path."""

STEP = 0.01
"""Distance between two points of a path, as a fraction of the robot's size."""

_FROM = np.array([-0.55, -0.75, 0.5])
"""Direction to the first camera of a robot without an arm."""

_OBLIQUE = 0.9
"""Angle from the arm to the first camera, rad: an arm that points at the camera looks short."""

_PAINTS = {"base": CHASSIS, "wheel": WHEEL, "support": SUPPORT, "shape": ARM}
_BARS = {"strut": (EDGE, 0.012), "link": (ARM, 0.02), "stub": (ARM, 0.02)}
"""Colour and radius of bars by their role, as a fraction of the robot's size."""


def color(name: str) -> tuple[int, int, int]:
    """A colour as three numbers from 0 to 255."""
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
        self._server, self._name, self._opacity = server, name, opacity
        self.drawing = Drawing(robot, q, outputs)
        self._outputs, self.size = self.drawing.outputs, self.drawing.size
        self._start = self._base(q)
        self.world = server.scene.add_frame(name, show_axes=False)
        if name == "/world":
            self._add_surroundings()
            self.look_at(q[None, :])
        self._add_robot()
        self._add_outputs(self.drawing.at(q).hands)
        self._last: Floats = np.empty(0)
        self.update(q, np.full(sum(output.pose_size for output in self._outputs), np.nan))

    def _add_surroundings(self) -> None:
        scene, ground, size = self._server.scene, self.drawing.robot.ground_height, self.size
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
        look = self._focus + self.drawing.at(path[0]).com - self._base(path[0])
        span = 1.75 * self.size + 0.45 * float(np.linalg.norm(high - low))
        camera = self._server.initial_camera
        camera.position = tuple(look + span * self._side(path))
        camera.look_at = tuple(look)

    def _side(self, path: Floats) -> Floats:
        """Direction to the first camera: obliquely to that of the arm, and above."""
        drawn = [self.drawing.at(q) for q in path]
        arms = [np.concatenate([at.joints, at.hands]) for at in drawn]
        if not len(self.drawing.joints):
            return _FROM
        bases = [at.surfaces[0].mean(axis=0) for at in drawn]
        arm = np.mean([points.mean(axis=0) for points in arms], axis=0) - np.mean(bases, axis=0)
        across = float(np.linalg.norm(arm[:2]))
        side = _FROM.copy()
        if across > 0.02 * self.size:
            azimuth = np.arctan2(arm[1], arm[0]) - _OBLIQUE
            side[:2] = np.linalg.norm(_FROM[:2]) * np.array([np.cos(azimuth), np.sin(azimuth)])
        if self.drawing.robot.ground_height is None and -arm[2] > across:  # it is below the base
            side[2] = -side[2]
        return side

    def _add_robot(self) -> None:
        scene, name, size = self._server.scene, f"{self._name}/robot", self.size
        look: Any = {"opacity": self._opacity, "flat_shading": True, "side": "double"}
        self.parts = []
        for k, part in enumerate(self.drawing.surfaces):
            node, paint = f"{name}/parts/{k}", color(_PAINTS[part.role])
            mesh = scene.add_mesh_simple(node, part.points, part.faces, color=paint, **look)
            self.parts.append(mesh)
            for lines, shade, thick in ((part.edges, EDGE, 0.006), (part.marks, "0.9", 0.012)):
                if len(lines):
                    scene.add_line_segments(
                        f"{node}/{shade}", lines, colors=color(shade), thickness=thick * size
                    )
        tube = _tube()
        self.bars = [
            scene.add_mesh_simple(f"{name}/bars/{k}", *tube, color=color(_BARS[role][0]), **look)
            for k, role in enumerate(self.drawing.roles)
        ]
        self.joints = [
            scene.add_icosphere(
                f"{name}/joints/{k}", 0.03 * size, color=color(EDGE), opacity=self._opacity
            )
            for k in range(len(self.drawing.joints))
        ]
        self.com = scene.add_icosphere(
            f"{self._name}/com", 0.04 * size, color=color(COM), visible=False
        )

    def _add_outputs(self, hands: Floats) -> None:
        scene, size = self._server.scene, self.size
        self.hands, self.demands, self.frames = [], [], []
        self.trails: list[Any] = []  # paths of hands
        self.references: list[Any] = []  # and of their references
        self._paths = [[hand] for hand in hands]
        for k, (output, hand) in enumerate(zip(self._outputs, hands, strict=True)):
            paint, name = color(output_color(k)), f"{self._name}/outputs/{output.name}"
            ball: Any = {"color": paint, "opacity": self._opacity}
            self.hands.append(scene.add_icosphere(name, 0.035 * size, **ball))
            ball = {"color": paint, "opacity": 0.35, "cast_shadow": False}
            self.demands.append(scene.add_icosphere(f"{name} demanded", 0.06 * size, **ball))
            axes: Any = {"axes_length": 0.2 * size, "axes_radius": 0.005 * size, "visible": False}
            self.frames.append(scene.add_frame(f"{name} frame", **axes))
            for lines, shade, what in (
                (self.trails, paint, "path"),
                (self.references, color(REFERENCE), "reference path"),
            ):
                line: Any = {"colors": shade, "thickness": 0.007 * size}
                path = np.array([[hand, hand]])
                lines.append(scene.add_line_segments(f"{name} {what}", path, **line))

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
            at = self.drawing.at(q)
        except ConcurError:  # too large numbers, or a quaternion without unit norm
            return
        self._last = now
        with self._server.atomic():  # otherwise the arm could be shown apart from its base
            travel = self._base(q) - self._focus if self.follow else self._start
            self.world.position = tuple(-travel if self._name == "/world" else self.offset)
            for mesh, part in zip(self.parts, self.drawing.surfaces, strict=True):
                _put(mesh, at.poses[part.body])
            for bar, role, ends in zip(self.bars, self.drawing.roles, at.bars, strict=True):
                _span(bar, _BARS[role][1] * self.size, *ends)
            for joint, point in zip(self.joints, at.joints, strict=True):
                joint.position = tuple(point)
            self.com.position = tuple(at.com)
            start = 0
            for k, (output, hand) in enumerate(zip(self._outputs, at.hands, strict=True)):
                demanded = pose[start : start + output.pose_size]
                start += output.pose_size
                self._move_output(k, at.poses[output.body], hand, demanded)

    def _move_output(self, k: int, pose: Floats, hand: Floats, demanded: Floats) -> None:
        output, path = self._outputs[k], self._paths[k]
        self.hands[k].position = tuple(hand)
        place = demanded_place(output, demanded, hand)
        self.demands[k].visible = bool(np.isfinite(place).all())
        if self.demands[k].visible:
            self.demands[k].position = tuple(place)
        _put(self.frames[k], pose @ frame_of(output))
        if self.grows and np.linalg.norm(hand - path[-1]) > STEP * self.size:
            path.append(hand)
            del path[:-TRAIL]
            points = np.array(path)
            self.trails[k].points = np.stack([points[:-1], points[1:]], 1).astype(np.float32)

    def paint(self, paint: str) -> None:
        """Give the arms another colour.

        Parameters
        ----------
        paint : str
            Colour, as for Matplotlib.
        """
        for mesh, part in zip(self.parts, self.drawing.surfaces, strict=True):
            if part.role == "shape":
                mesh.color = color(paint)
        for bar, role in zip(self.bars, self.drawing.roles, strict=True):
            if role != "strut":
                bar.color = color(paint)

    def show(self, com: bool, frames: bool) -> None:
        """Show or hide the centre of mass, with a transparent base, and the frames of outputs.

        Parameters
        ----------
        com, frames : bool
            Whether to show them.
        """
        com = com and self.drawing.heavy
        self.com.visible, self.parts[0].opacity = com, 0.3 if com else self._opacity
        for frame in self.frames:
            frame.visible = frames

    def _base(self, q: Floats) -> Floats:
        """Position of the base; its height is zero for robots on the ground."""
        robot = self.drawing.robot
        place = np.array(robot.pose(q, self.drawing.root), dtype=float)[:3, 3]
        if robot.ground_height is not None:
            place[2] = 0.0
        return place


def frame_of(output: Any) -> Floats:
    """Pose (4, 4) of an output's frame in its body, m."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(output.orientation).as_matrix()
    pose[:3, 3] = output.point
    return pose


def demanded_place(output: Any, demanded: Floats, hand: Floats) -> Floats:
    """Reference position (..., 3), m; coordinates without a reference are those of the hand.

    NaN if the reference has no position in the inertial frame.
    """
    axes = position_axes(output)
    if output.relative_to is not None or not axes:
        return np.full_like(hand, np.nan)
    place = hand.copy()
    place[..., ["xyz".index(axis) for axis in axes]] = demanded[..., : len(axes)]
    return place


def placed(handle: Any) -> Floats:
    """Vertices of a mesh of the scene, in the frame `/world`."""
    turn = Rotation.from_quat(handle.wxyz, scalar_first=True)
    moved = turn.apply(handle.vertices * np.asarray(handle.scale)) + np.asarray(handle.position)
    return np.asarray(moved, dtype=float)


def _tube() -> tuple[Floats, NDArray[np.int_]]:
    """A closed tube of radius and length 1 along z, from 0: vertices and faces."""
    tube = trimesh.creation.cylinder(1.0, segment=[(0, 0, 0), (0, 0, 1)], sections=12)
    return np.array(tube.vertices), np.array(tube.faces)


def _put(handle: Any, pose: Floats) -> None:
    turn = Rotation.from_matrix(pose[:3, :3])
    handle.wxyz, handle.position = turn.as_quat(scalar_first=True), tuple(pose[:3, 3])


def _span(handle: Any, radius: float, begin: Floats, end: Floats) -> None:
    """Place a tube between two points."""
    length = float(np.linalg.norm(end - begin))
    handle.visible = length > 0.0
    if length:
        turn = np.eye(4)
        turn[:3, :3], turn[:3, 3] = shortest_rotation(tuple((end - begin) / length)), begin
        _put(handle, turn)
        handle.scale = (radius, radius, length)
