"""Figure of a robot: joints by kind, frames and names of its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped]
    Line3DCollection,
    Poly3DCollection,
)
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]

from concur.errors import DescriptionError
from concur.show._joint_symbols import Symbol, symbol
from concur.show.robot import (
    TRIAD,
    RobotArtists,
    add_axes3d,
    fill_view,
    frame_axes,
    line_handles,
)
from concur.show.skeleton import Outline
from concur.show.style import FRAME_COLORS, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.robot import Mechanism
    from concur.show.style import Floats

# Candidate positions of a name beside its joint: directions, and distances in points.
_DIRECTIONS = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
_DISTANCES = (10.0, 18.0, 28.0, 40.0, 55.0, 75.0)


def robot_portrait(
    robot: Mechanism, q: Floats, outputs: Sequence[Any] = (), axes: Axes3D | None = None
) -> Figure:
    """Draw a robot with the kinds of its joints, the frames and the names of its bodies.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    q : ndarray, shape (nq,)
        Configuration.
    outputs : sequence of Output
        Output points to draw.
    axes : mpl_toolkits.mplot3d.axes3d.Axes3D, optional
        Axes to draw into; default a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure of the axes.

    Raises
    ------
    DescriptionError
        If the axes have two dimensions.

    Examples
    --------
    >>> robot_portrait(robot, robot.neutral()).savefig("robot.png")    # doctest: +SKIP
    """
    if axes is not None and getattr(axes, "name", None) != "3d":
        raise DescriptionError(
            f"picture of `{robot.name}`, `ax`",
            expected="three-dimensional axes",
            came=f"{type(axes).__name__}",
            cure='Make them with figure.add_subplot(projection="3d"), or omit the argument.',
        )
    with styled():
        own = axes is None
        if axes is None:
            axes = add_axes3d(new_figure(8.5, 7.5))
        # The axes may lie in a part of a figure.
        figure = cast("Figure", cast(Any, axes).get_figure().canvas.figure)
        q = np.asarray(q, dtype=float)
        outline = Outline(robot, q, outputs)
        at = outline.at(q)
        # Thinner than in other figures: the joints are the subject of this one.
        RobotArtists(axes, outline, q, weight=0.6)
        frame_axes(axes, at.points(), robot.ground_height)
        poses = {body.name: np.asarray(robot.pose(q, body.name), float) for body in robot.bodies}
        lines = [*at.struts, *at.links, *at.stubs]
        length = _symbol_length(outline.size, lines)
        symbols = []
        for body in robot.bodies:
            found = symbol(body.joint, poses[body.name], length)
            if found is not None:
                _add_symbol(axes, body.name, found)
                symbols.append(found)
        _add_frames(axes, list(poses.values()), 0.8 * length)
        handles = _handles(axes, robot, symbols)
        if own:
            figure.suptitle(robot.name, parse_math=False)
            figure.legend(handles=handles, loc="lower center", ncols=4, handler_map=TRIAD)
            rows = -(-len(handles) // 4)
            fill_view(axes, bottom=0.03 + 0.03 * rows, top=0.94)
        else:
            axes.legend(handles=handles, loc="upper left", handler_map=TRIAD)
        busy = [line for found in symbols for line in [*found.lines, *found.faces]]
        busy += [np.linspace(line[0], line[1], 12) for line in lines]
        _add_names(axes, robot, poses, np.concatenate([at.com[None], *busy]))
        return figure


def _symbol_length(size: float, lines: list[Floats]) -> float:
    """Length of a symbol, such that those at the ends of a short link do not overlap."""
    spans = [float(np.linalg.norm(line[1] - line[0])) for line in lines]
    shortest = min([span for span in spans if span > 0.02 * size], default=size)
    return float(np.clip(0.45 * shortest, 0.07 * size, 0.12 * size))


def _add_symbol(axes: Axes3D, body: str, found: Symbol) -> None:
    if len(found.faces):
        faces = Poly3DCollection(
            list(found.faces),
            facecolors=[(found.color, 0.3)],
            edgecolors=[(found.color, 0.6)],
            linewidth=0.5,
            zorder=2,
        )
        faces.set_gid(f"{found.kind}:{body}")
        axes.add_collection3d(faces, autolim=False)
    if found.lines:
        lines = Line3DCollection(
            found.lines, colors=found.color, linewidths=1.8, capstyle="round", zorder=6
        )
        lines.set_gid(f"{found.kind}:{body}")
        axes.add_collection3d(lines, autolim=False)


def _add_frames(axes: Axes3D, poses: list[Floats], length: float) -> None:
    lines = [
        np.stack([pose[:3, 3], pose[:3, 3] + length * pose[:3, i]])
        for pose in poses
        for i in range(3)
    ]
    frames = Line3DCollection(
        lines, colors=list(FRAME_COLORS) * len(poses), linewidths=1.4, zorder=5
    )
    frames.set_gid("frames")
    axes.add_collection3d(frames, autolim=False)


def _handles(axes: Axes3D, robot: Mechanism, symbols: list[Symbol]) -> list[Any]:
    """Legend entries of each kind of joint in the figure, the frames, and labelled artists."""
    kinds = {found.kind: found.color for found in symbols}
    handles: list[Any] = [
        Line2D([], [], color=color, linewidth=2.5, label=kind) for kind, color in kinds.items()
    ]
    artists = zip(*axes.get_legend_handles_labels(), strict=True)
    handles += [artist for artist, label in artists if label != "joints"]
    return handles + line_handles(robot)


class _Name(Annotation):
    """A name that stays beside a point in space when the view rotates."""

    def __init__(self, axes: Axes3D, text: str, point: Floats) -> None:
        super().__init__(
            text,
            xy=(0.0, 0.0),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8.5,
            zorder=9,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0},
            arrowprops={"arrowstyle": "-", "color": "#777777", "linewidth": 0.7, "shrinkB": 3.0},
            annotation_clip=False,
            parse_math=False,
        )
        self.point = point
        axes.add_artist(self)
        # A name must neither shrink the axes in the layout nor be clipped at their frame.
        self.set_in_layout(False)
        self.set_clip_on(False)
        self.follow()

    def follow(self) -> None:
        axes: Any = self.axes
        x, y, _ = proj_transform(*self.point, axes.get_proj())
        self.xy = (float(x), float(y))

    def draw(self, renderer: Any) -> None:
        self.follow()
        super().draw(renderer)


def _add_names(axes: Axes3D, robot: Mechanism, poses: dict[str, Floats], busy: Floats) -> None:
    """Write the names, each where it covers the other names and the drawing least."""
    figure: Any = cast(Any, axes).get_figure().canvas.figure
    figure.draw_without_rendering()
    scale = figure.dpi / 72.0
    names = [_Name(axes, _text(body), poses[body.name][:3, 3]) for body in robot.bodies]
    places = np.array([axes.transData.transform(name.xy) for name in names])
    flat = np.array(proj_transform(*busy.T, cast(Any, axes).get_proj())[:2]).T
    drawn = axes.transData.transform(flat)
    taken: list[Floats] = []
    outside = np.array([[0.0, 0.0], [figure.bbox.width, figure.bbox.height]])
    for name, place in zip(names, places, strict=True):
        half = _size(name) / 2
        offsets = [
            half * [np.cos(turn), np.sin(turn)]
            + scale * distance * np.array([np.cos(turn), np.sin(turn)])
            for distance in _DISTANCES
            for turn in _DIRECTIONS
        ]
        costs = [
            _cost(place + offset, half, taken, places, drawn, outside)
            + 0.3 * float(np.linalg.norm(offset / scale))
            for offset in offsets
        ]
        offset = offsets[int(np.argmin(costs))]
        name.set_position((float(offset[0]) / scale, float(offset[1]) / scale))
        taken.append(np.stack([place + offset - half, place + offset + half]))


def _text(body: Any) -> str:
    pitch = getattr(body.joint, "pitch", None)
    return str(body.name) if pitch is None else f"{body.name}\npitch {pitch:.4g} m/rad"


def _size(name: Annotation) -> Floats:
    """Width and height of the text without its leader, in pixels."""
    return np.array(Text.get_window_extent(name).size) + 4.0


def _cost(
    centre: Floats,
    half: Floats,
    taken: list[Floats],
    places: Floats,
    drawn: Floats,
    outside: Floats,
) -> float:
    low, high = centre - half, centre + half
    cost = 0.0
    for other in taken:
        overlap = np.minimum(high, other[1]) - np.maximum(low, other[0])
        if np.all(overlap > 0):
            cost += 200.0 + float(np.prod(overlap))
    for points, price in ((places, 60.0), (drawn, 3.0)):
        inside = np.all((points > low - 2) & (points < high + 2), axis=1)
        cost += price * float(inside.sum())
    return cost + 1e3 * float(np.any(low < outside[0]) or np.any(high > outside[1]))
