"""Three-dimensional drawing of a robot: box, wheels, links, frames and centre of mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib import patheffects
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped]
    Line3DCollection,
    Poly3DCollection,
)
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]

from concur.show.skeleton import Outline, Skeleton
from concur.show.style import (
    ARM,
    CHASSIS,
    COM,
    EDGE,
    FRAME_COLORS,
    WHEEL,
    new_figure,
    output_color,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.robot import Mechanism
    from concur.show.style import Floats

__all__ = ["RobotArtists", "draw_robot", "robot_figure"]

_FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


class RobotArtists:
    """The artists of one drawn robot; `update` moves them to another configuration.

    Parameters
    ----------
    axes : mpl_toolkits.mplot3d.axes3d.Axes3D
        Axes to draw into.
    outline : Outline
        Outline of the robot.
    q : ndarray, shape (nq,)
        First configuration.
    weight : float
        Factor on all line widths and marker sizes; below 1 if the robot is small in the view.
    """

    def __init__(self, axes: Axes3D, outline: Outline, q: Floats, weight: float = 1.0) -> None:
        self.axes = axes
        self.outline = outline
        at = outline.at(q)
        # Box and wheels in one collection: faces are sorted by depth only within a collection.
        faces = _faces(at)
        wheel_faces = len(faces) - len(_FACES)
        self._faces = Poly3DCollection(
            faces,
            facecolors=[(CHASSIS, 0.35)] * len(_FACES) + [(WHEEL, 0.85)] * wheel_faces,
            edgecolors=[EDGE] * len(_FACES) + ["black"] * wheel_faces,
            linewidth=0.7 * weight,
            zorder=1,
        )
        self._lines = Line3DCollection(
            _segments(at, outline.size),
            colors=_segment_colors(at),
            linewidths=weight * _segment_widths(at),
            capstyle="round",
            joinstyle="round",
            zorder=3,
        )
        axes.add_collection3d(self._faces, autolim=False)
        axes.add_collection3d(self._lines, autolim=False)
        (self._knots,) = axes.plot(
            *at.joints.T,
            linestyle="none",
            marker="o",
            markersize=7 * weight,
            color="#7A3300",
            label="joints",
            zorder=4,
        )
        self._hands = [
            axes.plot(
                *hand[:, None],
                linestyle="none",
                marker="D",
                markersize=6 * max(weight, 0.7),
                color=output_color(number),
                markeredgecolor="black",
                label=f"output {output.name}",
                zorder=5,
            )[0]
            for number, (output, hand) in enumerate(zip(outline.outputs, at.hands, strict=True))
        ]
        (self._com,) = axes.plot(
            *at.com[:, None],
            linestyle="none",
            marker="X",
            markersize=8 * max(weight, 0.7),
            color=COM,
            markeredgecolor="black",
            label="centre of mass",
            zorder=5,
        )

    @property
    def artists(self) -> tuple[Any, ...]:
        """Every artist of the robot."""
        return (self._faces, self._lines, self._knots, *self._hands, self._com)

    def update(self, q: Floats) -> Skeleton:
        """Move the drawing to another configuration.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.

        Returns
        -------
        Skeleton
            The drawn points.
        """
        at = self.outline.at(q)
        self._faces.set_verts(_faces(at))
        self._lines.set_segments(_segments(at, self.outline.size))
        self._knots.set_data_3d(*at.joints.T)
        for line, hand in zip(self._hands, at.hands, strict=True):
            line.set_data_3d(*hand[:, None])
        self._com.set_data_3d(*at.com[:, None])
        return at


def draw_robot(
    axes3d: Axes3D, robot: Mechanism, q: Floats, outputs: Sequence[Any] = (), *, fit: bool = True
) -> RobotArtists:
    """Draw a robot into three-dimensional axes.

    Parameters
    ----------
    axes3d : mpl_toolkits.mplot3d.axes3d.Axes3D
        Axes to draw into.
    robot : Mechanism
        The robot.
    q : ndarray, shape (nq,)
        Configuration.
    outputs : sequence of Output
        Output points to draw as hands, with a link from the origin of their body.
    fit : bool
        Whether to set limits, labels and an equal aspect around this configuration.

    Returns
    -------
    RobotArtists
        The artists; `update` moves the drawing.

    Examples
    --------
    >>> artists = draw_robot(axes, robot, robot.neutral())    # doctest: +SKIP
    """
    outline = Outline(robot, np.asarray(q, dtype=float), outputs)
    artists = RobotArtists(axes3d, outline, np.asarray(q, dtype=float))
    if fit:
        frame_axes(axes3d, outline.at(q).points(), robot.ground_height)
    return artists


def robot_figure(robot: Mechanism, q: Floats, outputs: Sequence[Any] = ()) -> Figure:
    """Draw a robot in a new figure.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    q : ndarray, shape (nq,)
        Configuration.
    outputs : sequence of Output
        Output points to draw.

    Returns
    -------
    matplotlib.figure.Figure
        One three-dimensional view with a legend.

    Examples
    --------
    >>> robot_figure(robot, robot.neutral()).savefig("robot.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(7.5, 6.5)
        axes = add_axes3d(figure)
        draw_robot(axes, robot, q, outputs)
        figure.suptitle(robot.name, parse_math=False)
        handles = [*axes.get_legend_handles_labels()[0], *line_handles(robot)]
        figure.legend(handles=handles, loc="lower center", ncols=3, handler_map=TRIAD)
        rows = -(-len(handles) // 3)
        fill_view(axes, bottom=0.03 + 0.03 * rows, top=0.93)
        return figure


def line_handles(robot: Mechanism) -> list[Any]:
    """Legend entries for wheel angles and frames; they need `handler_map=TRIAD`."""
    handles: list[Any] = []
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


def fill_view(axes: Axes3D, bottom: float, top: float) -> float:
    """Fill a band of the figure with the box and its labels, and freeze the layout.

    Matplotlib lays out three-dimensional axes by their frame, not by their visible contents. This
    wastes space on one side while labels are cut off on another. Heights are fractions of the
    figure's; returns that of the visible contents, which is less if the width is the limit.
    """
    _, seen = fit_view(axes, (0.0, bottom, 1.0, top - bottom))
    return float(seen[1, 1] - seen[0, 1])


def fit_view(axes: Axes3D, cell: tuple[float, float, float, float]) -> tuple[float, Floats]:
    """Fill a cell of the figure with the box and its labels, and freeze the layout.

    The cell is left, bottom, width and height as fractions of the figure. Returns the factor by
    which the box is larger than Matplotlib draws it, and the corners of the visible contents.
    """
    left, bottom, width, height = cell
    figure: Any = axes.get_figure()
    figure.set_layout_engine("none")
    # Matplotlib clips at the original square of the view, which the box exceeds.
    for artist in (*axes.lines, *axes.collections):
        artist.set_clip_on(False)
    axes.set_position(cell)
    aspect = np.array([high - low for low, high in _limits(axes)])
    zoom = 1.0
    # The labels do not grow with the box, so iterate.
    for _ in range(3):
        axes.set_box_aspect(aspect, zoom=zoom)
        seen, room = _seen(axes), np.array([0.96 * width, height])
        zoom *= float(np.min(room / (seen[1] - seen[0])))
    axes.set_box_aspect(aspect, zoom=zoom)
    seen = _seen(axes)
    shift = np.array([left + width / 2, bottom + height / 2]) - seen.mean(axis=0)
    axes.set_position((left + shift[0], bottom + shift[1], width, height))
    return zoom, seen + shift


def _limits(axes: Axes3D) -> tuple[Any, Any, Any]:
    return axes.get_xlim(), axes.get_ylim(), axes.get_zlim()


def _seen(axes: Axes3D) -> Floats:
    """Return the corners (2, 2) of the visible contents of the axes, as fractions of the figure."""
    figure: Any = axes.get_figure()
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    corners = np.array(np.meshgrid(*_limits(axes))).reshape(3, -1)
    flat = np.array(proj_transform(*corners, axes.get_proj())[:2]).T
    points = [axes.transData.transform(flat)]
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        points.append(axis.get_tightbbox(renderer).get_points())
    found = figure.transFigure.inverted().transform(np.concatenate(points))
    return np.array([found.min(axis=0), found.max(axis=0)])


def add_axes3d(figure: Figure) -> Axes3D:
    """Add a three-dimensional view, from the front left and a little above."""
    axes = cast(Axes3D, figure.add_subplot(projection="3d"))
    # Draw links and markers in front of the box; Matplotlib would sort them by its centre.
    axes.computed_zorder = False
    axes.view_init(elev=26, azim=-58)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
    return axes


def frame_axes(axes: Axes3D, points: Floats, ground_height: float | None) -> None:
    """Set limits, labels and true proportions around points (n, 3), m, and above the ground."""
    low, high = points.min(axis=0), points.max(axis=0)
    whole = max(float(np.max(high - low)), 1e-3)
    # A side shorter than a third of the longest has no space for its tick labels.
    missing = np.maximum(0.0, 0.35 * whole - (high - low))
    margin = 0.05 * whole
    low, high = low - missing / 2 - margin, high + missing / 2 + margin
    if ground_height is not None and points[:, 2].min() > ground_height - 0.1 * whole:
        high[2] += ground_height - low[2]
        low[2] = ground_height
        high[2] = max(high[2] - margin, points[:, 2].max() + margin)
    set_window(axes, low, high)
    axes.set_box_aspect(high - low)
    axes.locator_params(nbins=5)


def set_window(axes: Axes3D, low: Floats, high: Floats) -> None:
    """Set limits (m) and labels of three-dimensional axes."""
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_zlim(low[2], high[2])
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_zlabel("z [m]")


def _faces(at: Skeleton) -> Floats:
    # Repeat corners so that all polygons have as many as a rim: Matplotlib pads a ragged list with
    # uninitialized memory, and may warn of an overflow.
    corners = at.wheels[0].shape[1] - 1 if at.wheels else 4
    faces = [at.chassis[list(face)] for face in _FACES]
    for inner, outer in at.wheels:
        faces += [inner[:-1], outer[:-1]]
        # The tread as a few flat strips.
        for start in range(0, corners, 3):
            strip = slice(start, start + 4)
            faces.append(np.concatenate([inner[strip], outer[strip][::-1]]))
    return np.stack([np.repeat(face, corners // len(face), axis=0) for face in faces])


def _segments(at: Skeleton, size: float) -> list[Floats]:
    lines = [*at.struts, *at.links, *at.stubs, *at.spokes]
    # The first frame shows the orientation of the base: keep it visible outside the box.
    half = np.linalg.norm(at.chassis[[1, 2, 4]] - at.chassis[0], axis=1).max() / 2
    for number, pose in enumerate(at.frames):
        length = max(0.16 * size, 0.0 if number else 0.7 * half)
        lines += [np.stack([pose[:3, 3], pose[:3, 3] + length * pose[:3, i]]) for i in range(3)]
    return lines


def _segment_colors(at: Skeleton) -> list[str]:
    colors = [EDGE] * len(at.struts) + [ARM] * (len(at.links) + len(at.stubs))
    colors += ["#FFFFFF"] * len(at.spokes)
    return colors + list(FRAME_COLORS) * len(at.frames)


def _segment_widths(at: Skeleton) -> Floats:
    widths = [1.4] * len(at.struts) + [6.0] * len(at.links) + [3.0] * len(at.stubs)
    widths += [1.2] * len(at.spokes)
    return np.array(widths + [1.8] * (3 * len(at.frames)))
