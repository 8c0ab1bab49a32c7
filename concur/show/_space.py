"""Three-dimensional axes of Matplotlib, and a robot drawn into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib import patheffects
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator
from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped]
    Line3DCollection,
    Poly3DCollection,
)
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]

from concur.robot import Mechanism
from concur.show._drawing import Drawing, Placed, coarse, moved
from concur.show.style import (
    ARM,
    CHASSIS,
    COM,
    EDGE,
    FRAME_COLORS,
    SUPPORT,
    WHEEL,
    Floats,
    output_color,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = {
    "base": (CHASSIS, 0.35),
    "wheel": (WHEEL, 1.0),
    "support": (SUPPORT, 1.0),
    "shape": ("#F0BC98", 1.0),
}
"""Colour and opacity of surfaces by their role."""

BARS = {"strut": (EDGE, 1.4), "link": (ARM, 6.0), "stub": (ARM, 3.0)}
"""Colour and width of bars by their role, points."""


class SpaceRobot:
    """A robot in three-dimensional axes; `update` moves it to another configuration.

    Parameters
    ----------
    axes : mpl_toolkits.mplot3d.axes3d.Axes3D
        Axes to draw into.
    drawing : Drawing
        Look of the robot.
    q : ndarray, shape (nq,)
        First configuration.
    weight : float
        Factor on all line widths and marker sizes; below 1 if the robot is small in the view.
    """

    def __init__(self, axes: Axes3D, drawing: Drawing, q: Floats, weight: float = 1.0) -> None:
        self.drawing = drawing
        self._surfaces = [coarse(part) for part in drawing.surfaces]
        at = drawing.at(q)
        looks = [LOOKS[part.role] for part in self._surfaces for _ in part.faces]
        # Faces are sorted by depth only within a collection. Edges close the seams of opaque ones.
        self._faces = Poly3DCollection(
            self._triangles(at),
            facecolors=looks,
            edgecolors=[(color, opacity // 1.0) for color, opacity in looks],
            linewidth=0.4,
            shade=True,
            zorder=1,
        )
        lines = [
            *((EDGE, 0.7) for part in self._surfaces for _ in part.edges),
            *(("white", 1.2) for part in self._surfaces for _ in part.marks),
            *(BARS[role] for role in drawing.roles),
            *((color, 1.8) for _ in drawing.framed for color in FRAME_COLORS),
        ]
        self._lines = Line3DCollection(
            self._segments(at),
            colors=[color for color, _ in lines],
            linewidths=[weight * width for _, width in lines],
            capstyle="round",
            zorder=3,
        )
        axes.add_collection3d(self._faces, autolim=False)
        axes.add_collection3d(self._lines, autolim=False)
        small = max(weight, 0.7)
        marks = [
            ("joints", "o", 7 * weight, "#7A3300", "#7A3300"),
            *(
                (f"output {output.name}", "D", 7 * small, output_color(number), "black")
                for number, output in enumerate(drawing.outputs)
            ),
            *[("centre of mass", "X", 8 * small, COM, "black")] * drawing.heavy,
        ]
        self._marks = [
            axes.plot(
                [], [], [], ls="", marker=marker, ms=size, color=color, mec=edge, label=label,
                # Points of outputs are seen before frames, symbols of joints and links.
                zorder=4 if label == "joints" else 7,
            )[0]
            for label, marker, size, color, edge in marks
        ]  # fmt: skip
        self._move_marks(at)

    def update(self, q: Floats) -> Placed:
        """Move the robot to another configuration.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.

        Returns
        -------
        Placed
            The drawn points.
        """
        at = self.drawing.at(q)
        self._faces.set_verts(self._triangles(at))
        self._lines.set_segments(self._segments(at))
        self._move_marks(at)
        return at

    def _triangles(self, at: Placed) -> Floats:
        return np.concatenate(
            [moved(at.poses[part.body], part.points)[part.faces] for part in self._surfaces]
        )

    def _segments(self, at: Placed) -> Floats:
        def lines(name: str) -> list[Floats]:
            return [moved(at.poses[part.body], getattr(part, name)) for part in self._surfaces]

        size, base = self.drawing.size, self.drawing.surfaces[0].points
        # The first frame shows the orientation of the base: keep it visible outside its surface.
        lengths = [max(0.16 * size, 0.35 * np.ptp(base, axis=0).max())]
        lengths += [0.16 * size] * (len(self.drawing.framed) - 1)
        frames = [
            moved(at.poses[body], np.stack([np.zeros((3, 3)), length * np.eye(3)], axis=1))
            for body, length in zip(self.drawing.framed, lengths, strict=True)
        ]
        return np.concatenate([*lines("edges"), *lines("marks"), at.bars, *frames])

    def _move_marks(self, at: Placed) -> None:
        places = [at.joints, *at.hands[:, None], *[at.com[None]] * self.drawing.heavy]
        for line, points in zip(self._marks, places, strict=True):
            line.set_data_3d(*points.T)


def line_handles(robot: Mechanism) -> list[Any]:
    """Legend entries for supports, wheel angles and frames; they need `handler_map=TRIAD`."""
    handles: list[Any] = []
    if getattr(robot, "supports", ()):
        handles.append(Line2D([], [], color=SUPPORT, marker="o", ms=8, ls="", label="support"))
    if robot.wheels:
        # White on the dark of the wheel, as in the picture.
        dark = [patheffects.withStroke(linewidth=8.0, foreground=WHEEL)]
        handles.append(
            Line2D([], [], color="white", linewidth=1.2, path_effects=dark, label="wheel angle")
        )
    handles.append(_Triad(Line2D([], [], color=color, linewidth=1.8) for color in FRAME_COLORS))
    return handles


class _Triad(tuple[Line2D, ...]):
    """Three lines that share one legend entry."""

    def get_label(self) -> str:
        return "axes x red, y green, z blue"


TRIAD: Any = {_Triad: HandlerTuple(ndivide=None, pad=0.2)}


def add_axes3d(figure: Figure) -> Axes3D:
    """Add a three-dimensional view, from the front left and a little above."""
    axes = cast(Axes3D, figure.add_subplot(projection="3d"))
    # Draw links and markers in front of the box; Matplotlib would sort them by its centre.
    axes.computed_zorder = False
    axes.view_init(elev=26, azim=-58)
    axes.patch.set_visible(False)  # it must not cover the labels of its neighbour
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
    return axes


def set_window(axes: Axes3D, low: Floats, high: Floats) -> None:
    """Set limits (m) and labels of three-dimensional axes."""
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")


def set_proportions(axes: Axes3D, size: Floats) -> None:
    """Set true proportions, and ticks at round numbers, which stay while a window moves."""
    axes.set_box_aspect(tuple(size))
    for axis, length in ((axes.xaxis, max(size)), (axes.yaxis, max(size)), (axes.zaxis, size[2])):
        step = min(_round_step(max(size) / 8), _round_step(length / 3))
        axis.set_major_locator(MultipleLocator(step))


def _round_step(length: float) -> float:
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min(factor for factor in (1, 2, 5, 10) if factor * power >= length))


def fit_view(axes: Axes3D, cell: tuple[float, float, float, float]) -> float:
    """Fill a cell of the figure with the box and its labels, and freeze the layout.

    Matplotlib lays out three-dimensional axes by their frame, not by their visible contents. This
    wastes space on one side while labels are cut off on another. The cell is left, bottom, width
    and height as fractions of the figure. Returns the height of the visible contents, which is less
    than that of the cell if the width is the limit.
    """
    left, bottom, width, height = cell
    cast(Any, axes).get_figure().set_layout_engine("none")
    # Matplotlib clips at the original square of the view, which the box exceeds.
    for artist in (*axes.lines, *axes.collections):
        artist.set_clip_on(False)
    axes.set_position(cell)
    aspect = [np.ptp(ends) for ends in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())]
    zoom = 1.0
    # The labels do not grow with the box, so iterate.
    for _ in range(3):
        axes.set_box_aspect(aspect, zoom=zoom)
        low, high = _seen(axes)
        zoom *= float(np.min(np.array([0.96 * width, height]) / (high - low)))
    axes.set_box_aspect(aspect, zoom=zoom)
    low, high = _seen(axes)
    shift = np.array([left + width / 2, bottom + height / 2]) - (low + high) / 2
    axes.set_position((left + shift[0], bottom + shift[1], width, height))
    return float(high[1] - low[1])


def _seen(axes: Axes3D) -> Floats:
    """Return the corners (2, 2) of the visible contents of the axes, as fractions of the figure."""
    figure: Any = axes.get_figure()
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    corners = np.array(np.meshgrid(axes.get_xlim(), axes.get_ylim(), axes.get_zlim()))
    points = [axes.transData.transform(flat(axes, corners.reshape(3, -1).T))]
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        points.append(axis.get_tightbbox(renderer).get_points())
    found = figure.transFigure.inverted().transform(np.concatenate(points))
    return np.array([found.min(axis=0), found.max(axis=0)])


def flat(axes: Any, points: Floats) -> Floats:
    """Points (n, 2 or 3) of the axes in the plane of the picture, before `transData`."""
    if axes.name != "3d":
        return points[:, :2]
    return np.array(proj_transform(*points.T, axes.get_proj())[:2]).T
