"""A run in three dimensions: the robot at a sample, its references and the paths up to there."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from concur.show._drawing import Drawing
from concur.show._outputs import few, places
from concur.show._scenery import scenery
from concur.show._space import SpaceRobot, add_axes3d, line_handles, set_proportions, set_window
from concur.show.style import REFERENCE, Floats, output_color

# Side of a window that follows the robot, relative to the largest extent of the robot.
_SIDE = 2.5
# Smallest height and width of the window, relative to its longest side.
_LEAST = np.array([0.35, 0.35, 0.12])
# Points of a path in one window, and length of a dash of a reference in windows.
_POINTS, _DASH = 400, 0.03


class Course:
    """A view of a run in space; `show` moves it to another of its frames.

    The view follows the robot if its course is long compared with its size.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure to add the view to.
    run : Run or Film
        The run.
    frames : ndarray of int, shape (f,)
        Sample of the run in each frame; the first one is shown.
    smoothing : float
        Standard deviation of the filter of a view that follows the robot, frames.
    """

    def __init__(
        self, figure: Figure, run: Any, frames: NDArray[np.intp], smoothing: float = 1e-3
    ) -> None:
        self.run, self.frames = run, frames
        drawing = Drawing(run.robot, run.q[0], run.servo.outputs)
        seen = np.stack([drawing.at(run.q[index]).points for index in few(run, 40)])
        first = dict(zip(drawing.outputs, drawing.at(run.q[0]).hands, strict=True))
        references = [
            # A planar reference is drawn at the height of the point that follows it.
            np.column_stack([place.reference, *([np.full(len(run.t), first[place.output][2])] * (
                3 - len(place.axes)
            ))])
            for place in places(run)
            if place.is_path
        ]  # fmt: skip
        curves = np.concatenate([np.empty((0, 3)), *references])
        self._low, self._high = windows(
            seen, curves, base_poses(run, frames)[:, :3, 3], drawing.robot.ground_height, smoothing
        )
        size = self._high[0] - self._low[0]
        side = float(np.max(size))
        # The course may span many windows: sample its curves equally densely in each.
        whole = float(np.max(np.ptp(np.concatenate([seen.reshape(-1, 3), curves]), axis=0)))
        self._rows = few(run, int(_POINTS * max(1.0, whole / side)))
        self._hands = np.array([drawing.at(run.q[row]).hands for row in self._rows])
        self._dashes = [dashed(curve[self._rows], _DASH * side) for curve in references]
        self.axes = axes = add_axes3d(figure)
        set_window(axes, self._low[0], self._high[0])
        set_proportions(axes, size)
        self._lines = [
            axes.plot([], [], [], color=REFERENCE, ls="-", lw=1.1, label="_")[0]
            for _ in self._dashes
        ]
        self._paths = [
            axes.plot([], [], [], color=output_color(k), ls="-", lw=2.0, label=output.name)[0]
            for k, output in enumerate(drawing.outputs)
        ]
        weight = min(1.0, 0.25 + 1.2 * drawing.size / side)
        self._robot = SpaceRobot(axes, drawing, run.q[frames[0]], weight)
        self.show(0)

    @property
    def handles(self) -> list[Any]:
        """Entries of a legend, which needs `handler_map=TRIAD`."""
        dashes = Line2D([], [], color=REFERENCE, ls="--", lw=1.1, label="reference")
        com = [line for line in self.axes.lines if line.get_label() == "centre of mass"]
        robot = line_handles(scenery(self.run.robot))
        return [*self._paths, *[dashes] * bool(self._dashes), *com, *robot]

    def show(self, frame: int) -> None:
        """Show a frame, by its number."""
        index, low, high = self.frames[frame], self._low[frame], self._high[frame]
        set_window(self.axes, low, high)
        now = self._robot.update(self.run.q[index])
        for line, curve in zip(self._lines, self._dashes, strict=True):
            line.set_data_3d(*clipped(curve, low, high).T)
        past = self._hands[self._rows < index]
        for line, curve in zip(
            self._paths, np.concatenate([past, now.hands[None]]).transpose(1, 0, 2), strict=True
        ):
            line.set_data_3d(*clipped(curve, low, high).T)


def windows(
    robot: Floats, curves: Floats, bases: Floats, ground_height: float | None, smoothing: float
) -> tuple[Floats, Floats]:
    """Return the corners of the window of every frame; all windows have the same size.

    A course shorter than twice the window is shown completely. On a longer one the window
    follows the base along every axis on which the course exceeds it. Points of the robot
    are (k, n, 3), of other curves (m, 3), of the base (f, 3), in the world frame, m.
    """
    extent = float(np.max(np.ptp(robot, axis=1)))
    side = _SIDE * max(extent, 1e-3)
    course = np.concatenate([robot.reshape(-1, 3), curves])
    first, last = course.min(axis=0), course.max(axis=0)
    span = last - first
    # With a ground the window always extends from there to the top of the motion.
    level = ground_height is not None and first[2] > ground_height - 0.1 * extent
    whole = float(np.max(span[:2] if level else span)) <= 2.0 * side
    follows = np.zeros(3, dtype=bool) if whole else span > side
    follows[2] = follows[2] and not level

    size = np.where(follows, side, span + 0.1 * extent)
    size = np.maximum(size, np.max(size) * _LEAST)
    centre = np.tile((first + last) / 2, (len(bases), 1))
    smooth = gaussian_filter1d(bases, smoothing, axis=0, mode="nearest")
    # The robot extends to two fifths of the side; a margin of a twelfth keeps it inside.
    smooth = np.clip(smooth, bases - side / 12, bases + side / 12)
    centre[:, follows] = smooth[:, follows]
    low, high = centre - size / 2, centre + size / 2
    if level and ground_height is not None:
        low[:, 2] = ground_height
        top = last[2] + 0.05 * extent - ground_height
        high[:, 2] = ground_height + max(top, _LEAST[2] * np.max(size))
    return low, high


def clipped(curve: Floats, low: Floats, high: Floats) -> Floats:
    """Curve, (n, 3), with a gap (NaN) wherever it is outside a window."""
    inside = np.all((curve >= low) & (curve <= high), axis=1)
    return np.asarray(np.where(inside[:, None], curve, np.nan))


def dashed(curve: Floats, period: float) -> Floats:
    """Curve, (n, 3), as dashes of length `period` that do not move when the curve is clipped.

    Matplotlib starts its dashes at the first visible point: they would creep along a curve whose
    start leaves the window.
    """
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    number = np.arange(int(length[-1] / period * 10) + 1)
    found = [np.interp(number * period / 10, length, column) for column in curve.T]
    return np.where((number % 10 < 7)[:, None], np.stack(found, axis=1), np.nan)


def leaves_plane(run: Any) -> bool:
    """Whether the base rises or tilts during a run, so that a view from above is insufficient."""
    poses = base_poses(run, few(run, 50))
    moved = np.concatenate([poses[:, 2:3, 3], poses[:, :3, 2]], axis=1)
    return bool(np.ptp(moved, axis=0).max() > 1e-9)


def base_poses(run: Any, rows: NDArray[np.intp]) -> Floats:
    """Poses (k, 4, 4) of the base at samples of a run."""
    robot = scenery(run.robot)
    base = robot.base.name
    return np.array([np.asarray(robot.pose(run.q[row], base), float) for row in rows])
