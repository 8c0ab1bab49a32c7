"""Figure of the paths of a run: from above, or in space with two projections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull

from concur.show._course import Course, leaves_plane
from concur.show._drawing import Drawing, Placed
from concur.show._names import write_names
from concur.show._outputs import Place, few, nearest, places
from concur.show._space import BARS, LOOKS, TRIAD, fit_view
from concur.show.charts import LOOKS as CURVES
from concur.show.charts import legend
from concur.show.style import (
    Floats,
    new_figure,
    output_color,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.simulation import Run

__all__ = ["path_figure"]

INSTANTS = 6
"""Number of instants at which a view from above shows the robot."""

# In inches: width of pictures in space and of a view from above; heights of the title, of pictures
# in space, and of the legend.
_WIDTH, _ABOVE, _HEAD, _ROW, _LEGEND = 12.0, 6.4, 0.7, 4.2, 0.7
_SAMPLES = 1000


def path_figure(run: Run) -> Figure:
    """Draw the paths and their references with the robot.

    Planar motion is seen from above. For a base that rises or tilts the figure shows the paths in
    space, from above and from the side.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    matplotlib.figure.Figure
        Top view with equal axes and the robot at several instants; in space: the robot at the end
        with the paths, and two projections of the paths with start and end.

    Examples
    --------
    >>> path_figure(run).savefig("path.png")    # doctest: +SKIP
    """
    with styled():
        if leaves_plane(run):
            height = _HEAD + _ROW + _LEGEND
            figure = new_figure(_WIDTH, height)
            figure.set_layout_engine("none")
            figure.suptitle(f"Path of {run.robot.name}", parse_math=False, y=1.0 - 0.1 / height)
            draw_flight(figure, run, height)
            return figure
        figure = new_figure(_ABOVE + 0.8, _top_height(run) + _HEAD + _LEGEND)
        figure.suptitle(f"Path of {run.robot.name}", parse_math=False)
        top = figure.subplots()
        draw_top_view(top, run)
        legend(top, "Seen from above")
        return figure


def draw_space(figure: Figure, run: Run, cell: tuple[float, float, float, float]) -> list[Any]:
    """Draw paths and the robot at the end of a run in a cell of the figure.

    Return the entries of the legend, which needs `handler_map=TRIAD`.
    """
    course = Course(figure, run, np.array([len(run.t) - 1]))
    fit_view(course.axes, cell)
    (left, bottom, width, height), title = cell, f"Paths, and the robot at {run.t[-1]:.3g} s"
    figure.text(left + width / 2, bottom + height, title, ha="center", fontsize=11)
    return course.handles


def draw_flight(figure: Figure, run: Run, height: float) -> None:
    """Draw the robot in space, and the paths from above and from the side that shows more."""
    paths = [place for place in places(run) if place.is_path]
    share = 0.44 if paths else 1.0
    handles = draw_space(figure, run, (0.0, _LEGEND / height, share, _ROW / height))
    if paths:
        spread = np.ptp(np.concatenate([_spatial(place.actual) for place in paths]), axis=0)
        across = 0 if spread[0] >= spread[1] else 1
        for k, (i, j, title) in enumerate(((0, 1, "From above"), (across, 2, "From the side"))):
            bottom, high = (_LEGEND + 0.5) / height, 3.5 / height
            axes = figure.add_axes((0.535 + 0.245 * k, bottom, 0.175, high))
            for place in paths:
                _draw_path(axes, run, place, [i, j])
            # True proportion, and rounding is not magnified.
            middle = np.array([[np.mean(axes.get_xlim()), np.mean(axes.get_ylim())]])
            axes.update_datalim(np.concatenate([middle - 1e-9, middle + 1e-9]))
            axes.set_aspect("equal", adjustable="datalim")
            axes.locator_params("y", nbins=5)
            axes.locator_params("x", nbins=3)
            axes.set(title=title, xlabel=f"{'xyz'[i]} [m]", ylabel=f"{'xyz'[j]} [m]")
        look: Any = {"ls": "", "color": "white", "mec": "black", "ms": 8}
        ends = (("o", "start"), ("s", "end"))
        handles += [Line2D([], [], marker=mark, label=text, **look) for mark, text in ends]
    figure.legend(
        handles=handles,
        loc="center",
        bbox_to_anchor=(0.5, 0.4 * _LEGEND / height),
        ncols=min(8, len(handles)),
        handler_map=TRIAD,
    )


def draw_top_view(axes: Axes, run: Run) -> None:
    """Draw paths, references and the robot at several instants, in the plane z = 0."""
    drawing, rows, drawn = _instants(run)
    for number, at in enumerate(drawn):
        strength = 0.3 + 0.7 * number / max(1, len(drawn) - 1)
        _draw_from_above(axes, drawing, at, strength)
    often = f"robot at {len(drawn)} instants" if len(drawn) > 1 else "robot"
    axes.patches[-len(drawing.surfaces)].set_label(often)
    for part, patch in zip(reversed(drawing.surfaces), reversed(axes.patches), strict=False):
        if part.role == "support":
            patch.set_label("support")
            break
    for place in places(run):
        if place.is_path:
            _draw_path(axes, run, place, [0, 1], end=False)
    axes.plot([], [], label="reference", **CURVES["dashes"])
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="x [m]", ylabel="y [m]")
    _write_times(axes, run, rows, drawn)


def _draw_path(axes: Axes, run: Run, place: Place, columns: list[int], end: bool = True) -> None:
    """Draw a path over its reference, with its start and its end."""
    actual, reference = _spatial(place.actual)[:, columns], _spatial(place.reference)[:, columns]
    color, name = output_color(run.servo.outputs.index(place.output)), place.output.name
    axes.plot(*actual.T, color=color, linestyle="-", linewidth=2.2, label=name, zorder=4)
    axes.plot(*reference.T, **CURVES["dashes"], zorder=5)
    for marker, row in (("o", 0), ("s", -1))[: 1 + end]:
        look: Any = {"ls": "", "color": color, "mec": "black", "ms": 8, "zorder": 6}
        axes.plot(*actual[row], marker=marker, **look)


def _draw_from_above(axes: Axes, drawing: Drawing, at: Placed, strength: float) -> None:
    for part, points in zip(drawing.surfaces, at.surfaces, strict=True):
        color, opacity = LOOKS[part.role]
        face, edge = (color, opacity * strength), (color, 0.8 * strength)
        hull = _hull(points, drawing.size)
        axes.add_patch(Polygon(hull, facecolor=face, edgecolor=edge, zorder=1))
    for role, bar in zip(drawing.roles, at.bars, strict=True):
        color, width = BARS[role]
        look: Any = {"color": color, "lw": 0.6 * width, "alpha": 0.8 * strength}
        joints: Any = {"marker": "o", "ms": 4} if role == "link" else {}
        axes.plot(*bar[:, :2].T, ls="-", solid_capstyle="round", zorder=2, **look, **joints)


def _write_times(axes: Axes, run: Run, rows: Any, drawn: list[Placed]) -> None:
    """Write the times beside the bases, or beside the hands where the bases hardly move."""
    bases = np.array([at.surfaces[0][:, :2].mean(axis=0) for at in drawn])
    tips = [at.hands if len(at.hands) else at.joints for at in drawn]
    hands = np.array([tip[-1, :2] for tip in tips]) if len(tips[0]) else bases
    width = float(np.linalg.norm(np.ptp(drawn[0].surfaces[0][:, :2], axis=0)))
    still = _spread(bases) < 0.5 * width
    anchors = hands if still and _spread(hands) > 1.5 * _spread(bases) else bases
    near = 0.15 * _spread(anchors)
    names: list[tuple[str, Floats]] = []
    for anchor, row in zip(anchors, rows, strict=True):
        text = f"{run.t[row]:.3g} s"
        for k, (others, place) in enumerate(names):
            if np.linalg.norm(anchor - place) <= near:
                names[k] = (f"{others}, {text}", place)
                break
        else:
            names.append((text, anchor))
    busy = [place.actual[few(run, _SAMPLES), :2] for place in places(run) if place.is_path]
    busy += [np.linspace(bar[0, :2], bar[1, :2], 12) for at in drawn for bar in at.bars]
    busy += [_filled(_hull(points, 1.0)) for at in drawn for points in at.surfaces]
    write_names(axes, names, np.concatenate(busy))


def _instants(run: Run) -> tuple[Drawing, Any, list[Placed]]:
    rows = np.unique(nearest(run.t, np.linspace(run.t[0], run.t[-1], INSTANTS)))
    drawing = Drawing(run.robot, run.q[0], run.servo.outputs)
    return drawing, rows, [drawing.at(run.q[row]) for row in rows]


def _top_height(run: Run) -> float:
    """Height of a top view that fits its contents, inches."""
    points = [at.points[:, :2] for at in _instants(run)[2]]
    points += [curve[:, :2] for p in places(run) if p.is_path for curve in (p.actual, p.reference)]
    across, along = np.ptp(np.concatenate(points), axis=0)
    return float(np.clip(_ABOVE * along / max(across, 1e-9), 2.4, 6.4)) + 0.6


def _spatial(curve: Floats) -> Floats:
    """Points in space of a curve that may lie in the plane z = 0."""
    return np.column_stack([curve, np.zeros((len(curve), 3 - curve.shape[1]))])


def _filled(corners: Floats) -> Floats:
    """Points along a closed polygon (n, 2), twelve on each side."""
    share = np.arange(12)[:, None, None] / 12
    return ((1 - share) * corners + share * np.roll(corners, 1, axis=0)).reshape(-1, 2)


def _spread(points: Floats) -> float:
    return float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))


def _hull(points: Floats, size: float) -> Floats:
    # A thin wheel seen edge-on is a line without a hull; widen it slightly.
    corners = 1e-6 * max(size, 1e-3) * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    spread = (points[:, None, :2] + corners).reshape(-1, 2)
    return np.asarray(spread[ConvexHull(spread).vertices], dtype=float)
