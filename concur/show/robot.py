"""Figure of a robot: its look, joints by kind, frames and names of its bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.art3d import (  # type: ignore[import-untyped]
    Line3DCollection,
    Poly3DCollection,
)
from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]

from concur.errors import DescriptionError
from concur.robot import Body, Mechanism
from concur.show._course import windows
from concur.show._drawing import Drawing, moved
from concur.show._names import write_names
from concur.show._space import (
    TRIAD,
    SpaceRobot,
    add_axes3d,
    fit_view,
    line_handles,
    set_proportions,
    set_window,
)
from concur.show._symbols import symbol
from concur.show.style import FRAME_COLORS, Floats, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def robot_figure(
    robot: Mechanism, q: Floats, outputs: Iterable[Any] = (), axes: Axes3D | None = None
) -> Figure:
    """Draw a robot with the kinds of its joints, the frames and the names of its bodies.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    q : ndarray, shape (nq,)
        Configuration.
    outputs : iterable of Output
        Outputs whose points are drawn.
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
    >>> robot_figure(robot, robot.neutral()).savefig("robot.png")    # doctest: +SKIP
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
        drawing = Drawing(robot, q, outputs)
        at = drawing.at(q)
        # Thinner than in other figures: the joints are the subject of this one.
        SpaceRobot(axes, drawing, q, weight=0.6)
        nothing, middle = np.empty((0, 3)), at.points.mean(axis=0)[None]
        (low,), (high,) = windows(at.points[None], nothing, middle, robot.ground_height, 1e-3)
        set_window(axes, low, high)
        set_proportions(axes, high - low)
        length = _symbol_length(drawing.size, at.bars)
        kinds, busy = {}, [np.linspace(bar[0], bar[1], 12) for bar in at.bars]
        for body in robot.bodies:
            found = symbol(body.joint)
            if found is not None:
                pose = at.poses[body.name]
                lines = [moved(pose, length * line) for line in found.lines]
                faces = moved(pose, length * found.faces)
                _add_symbol(axes, f"{found.kind}:{body.name}", found.color, lines, faces)
                kinds[found.kind] = found.color
                busy += [*lines, *faces]
        axis = np.stack([np.zeros((3, 3)), 0.8 * length * np.eye(3)], axis=1)
        frames = np.concatenate([moved(pose, axis) for pose in at.poses.values()])
        colors = list(FRAME_COLORS) * len(at.poses)
        axes.add_collection3d(
            Line3DCollection(frames, colors=colors, linewidths=1.4, zorder=5, gid="frames"),
            autolim=False,
        )
        handles: list[Any] = [
            Line2D([], [], color=color, linewidth=2.5, label=kind) for kind, color in kinds.items()
        ]
        handles += [mark for mark in axes.lines if mark.get_label() != "joints"]
        handles += line_handles(robot)
        if own:
            figure.suptitle(robot.name, parse_math=False)
            figure.legend(handles=handles, loc="lower center", ncols=4, handler_map=TRIAD)
            foot = 0.03 + 0.03 * -(-len(handles) // 4)
            fit_view(axes, (0.0, foot, 1.0, 0.94 - foot))
        else:
            axes.legend(handles=handles, loc="upper left", handler_map=TRIAD)
        names = [(_text(body), at.poses[body.name][:3, 3]) for body in robot.bodies]
        base = at.poses[drawing.root]
        names += [(name, moved(base, point)) for name, point in drawing.supports.items()]
        busy += [
            points
            for part, points in zip(drawing.surfaces, at.surfaces, strict=True)
            if part.role == "support"
        ]
        write_names(axes, names, np.concatenate([at.com[None], at.hands, *busy]))
        return figure


def _symbol_length(size: float, bars: Floats) -> float:
    """Length of a symbol, such that those at the ends of a short link do not overlap."""
    spans = np.linalg.norm(bars[:, 1] - bars[:, 0], axis=1)
    shortest = min(spans[spans > 0.02 * size], default=size)
    return float(np.clip(0.45 * shortest, 0.07 * size, 0.12 * size))


def _add_symbol(axes: Axes3D, name: str, color: str, lines: list[Floats], faces: Floats) -> None:
    if len(faces):
        paint = {"facecolors": [(color, 0.3)], "edgecolors": [(color, 0.6)]}
        patch = Poly3DCollection(faces, **paint, linewidth=0.5, zorder=2, gid=name)
        axes.add_collection3d(patch, autolim=False)
    if lines:
        look: Any = {"colors": color, "linewidths": 1.8, "capstyle": "round"}
        axes.add_collection3d(Line3DCollection(lines, **look, zorder=6, gid=name), autolim=False)


def _text(body: Body) -> str:
    pitch = getattr(body.joint, "pitch", None)
    return str(body.name) if pitch is None else f"{body.name}\npitch {pitch:.4g} m/rad"
