"""The robot of a rig in a viser scene: box, wheels, links, hands, and where they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from concur.plotting.skeleton import Outline, Skeleton
from concur.plotting.style import ARM, CHASSIS, WHEEL, output_color

if TYPE_CHECKING:
    import viser

    from concur.control import Servo

TRAIL = 600
"""Points of the path that each hand leaves behind it."""

_EDGES = np.array(
    [[i, j] for i in range(8) for j in range(i + 1, 8) if (i ^ j) in (1, 2, 4)], dtype=int
)


def color(name: str) -> tuple[int, int, int]:
    """A colour of the figures as three numbers from 0 to 255.

    Parameters
    ----------
    name : str
        As Matplotlib takes it.

    Returns
    -------
    (int, int, int)
        Red, green, blue.
    """
    from matplotlib.colors import to_rgb

    red, green, blue = (round(255 * part) for part in to_rgb(name))
    return red, green, blue


class Scene:
    """A robot drawn into a viser scene; `update` moves it.

    Parameters
    ----------
    server : viser.ViserServer
        Where to draw.
    servo : Servo
        Robot and outputs.
    q : numpy.ndarray
        First configuration, shape (nq,).
    """

    def __init__(self, server: viser.ViserServer, servo: Servo, q: NDArray[np.float64]) -> None:
        robot = servo.model.robot
        self._servo = servo
        self._outline = Outline(robot, q, servo.outputs)
        at, size = self._outline.at(q), self._outline.size
        scene = server.scene
        self._ground = robot.ground_height
        if self._ground is not None:
            scene.add_grid(
                "/ground",
                width=20.0,
                height=20.0,
                cell_size=0.25,
                position=(0.0, 0.0, float(self._ground)),
            )
        scene.add_frame("/inertial", axes_length=0.3 * size, axes_radius=0.006 * size)
        self._lines = {
            name: scene.add_line_segments(
                f"/robot/{name}", segments, colors=color(paint), thickness=width * size
            )
            for name, (segments, paint, width) in _lines(at).items()
            if len(segments)
        }
        self._joints = [
            scene.add_icosphere(
                f"/robot/joints/{k}", 0.022 * size, color=color(ARM), position=tuple(point)
            )
            for k, point in enumerate(at.joints)
        ]
        self._hands, self._demands, self._trails = [], [], []
        self._paths: list[list[NDArray[np.float64]]] = []
        for k, (output, hand) in enumerate(zip(servo.outputs, at.hands, strict=True)):
            paint = color(output_color(k))
            self._hands.append(
                scene.add_icosphere(
                    f"/outputs/{output.name}", 0.03 * size, color=paint, position=tuple(hand)
                )
            )
            self._demands.append(
                scene.add_icosphere(
                    f"/outputs/{output.name} demanded",
                    0.04 * size,
                    color=paint,
                    opacity=0.35,
                    position=tuple(hand),
                )
            )
            self._paths.append([hand, hand])
            self._trails.append(
                scene.add_line_segments(
                    f"/outputs/{output.name} path",
                    np.array([[hand, hand]]),
                    colors=paint,
                    thickness=0.006 * size,
                )
            )
        span, look = 2.6 * size, at.com
        server.initial_camera.position = tuple(look + span * np.array([-0.6, -0.7, 0.55]))
        server.initial_camera.look_at = tuple(look)

    def update(self, q: NDArray[np.float64], pose: NDArray[np.float64]) -> None:
        """Move the robot.

        Parameters
        ----------
        q : numpy.ndarray
            Configuration, shape (nq,).
        pose : numpy.ndarray
            Demanded poses of the outputs, flat, shape (pose_size,); NaN if there are none.
        """
        at = self._outline.at(q)
        for name, (segments, _, _) in _lines(at).items():
            if name in self._lines:
                self._lines[name].points = segments.astype(np.float32)
        for handle, point in zip(self._joints, at.joints, strict=True):
            handle.position = tuple(point)
        start = 0
        for k, output in enumerate(self._servo.outputs):
            hand = at.hands[k]
            self._hands[k].position = tuple(hand)
            demanded = pose[start : start + output.pose_size]
            start += output.pose_size
            self._demands[k].position = tuple(self._place(output.group, demanded, hand))
            path = self._paths[k]
            if np.linalg.norm(hand - path[-1]) > 0.01 * self._outline.size:
                path.append(hand)
                del path[:-TRAIL]
                points = np.array(path)
                self._trails[k].points = np.stack([points[:-1], points[1:]], 1).astype(np.float32)

    def _place(
        self, group: str, demanded: NDArray[np.float64], hand: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Where in space a demand is; what it says nothing of is taken from the hand."""
        place = hand.copy()
        if group in ("R3", "SE3", "R3xSO3"):
            place[:] = demanded[:3]
        elif group in ("R2", "SE2"):
            place[:2] = demanded[:2]
        return place if np.isfinite(place).all() else hand


def _lines(at: Skeleton) -> dict[str, tuple[NDArray[np.float64], str, float]]:
    """Line segments, shape (n, 2, 3), with colour and width, by name."""

    def stacked(parts: tuple[NDArray[np.float64], ...]) -> NDArray[np.float64]:
        return np.array(parts).reshape(-1, 2, 3)

    rims = [
        np.concatenate([np.stack([rim[:-1], rim[1:]], axis=1) for rim in wheel])
        for wheel in at.wheels
    ]
    return {
        "base": (at.chassis[_EDGES], CHASSIS, 0.012),
        "struts": (stacked(at.struts), CHASSIS, 0.012),
        "wheels": (
            np.concatenate([*rims, stacked(at.spokes)]) if rims else np.empty((0, 2, 3)),
            WHEEL,
            0.008,
        ),
        "arm": (stacked(at.links + at.stubs), ARM, 0.028),
    }
