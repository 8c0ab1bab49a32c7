"""Figure of the paths of a run: from above or in space, and positions and attitude over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from concur.show._course import Course, base_poses, leaves_plane
from concur.show._drawing import Drawing, Placed
from concur.show._names import write_names
from concur.show._outputs import Place, few, nearest, places
from concur.show._space import BARS, LOOKS, TRIAD, fit_view
from concur.show.errors import TIME
from concur.show.style import (
    DASHES,
    FRAME_COLORS,
    Floats,
    new_figure,
    output_color,
    side_legend,
    styled,
    unmagnified,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.simulation import Run

__all__ = ["path_figure"]

INSTANTS = 6
"""Number of instants at which a view from above shows the robot."""

# In inches: width of the page and of the side legends; height of the title, of pictures in space,
# of the legend below them, of a panel over time with its title, and of the labels at the bottom.
_WIDTH, _SIDE, _HEAD, _ROW, _LEGEND, _PANEL, _FOOT = 12.0, 2.2, 0.7, 4.2, 0.7, 2.2, 0.3
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
        with the paths, and two projections of the paths with start and end. Below: the position of
        each output over time, and the heading or attitude of the base.

    Examples
    --------
    >>> path_figure(run).savefig("path.png")    # doctest: +SKIP
    """
    with styled():
        flies, found = leaves_plane(run), places(run)
        row = _ROW + _LEGEND if flies else _top_height(run)
        lower = _FOOT + (1 + len(found)) * _PANEL
        height = _HEAD + row + lower
        figure = new_figure(_WIDTH, height)
        figure.set_layout_engine("none")
        above = "" if flies else ", seen from above"
        title = f"Path of {run.robot.name}{above}"
        figure.suptitle(title, parse_math=False, y=1.0 - 0.1 / height)

        def panel(left: float, bottom: float, width: float, high: float, **more: Any) -> Axes:
            """Axes at a place on the page, inches."""
            box = (left / _WIDTH, bottom / height, width / _WIDTH, high / height)
            return figure.add_axes(box, **more)

        if flies:
            draw_flight(figure, run, panel, lower, height)
        else:
            top = panel(0.8, lower + 0.6, _WIDTH - 0.8 - _SIDE, row - 0.5)
            draw_top_view(top, run)
            side_legend(top)
        first: Any = None
        for number, place in enumerate([*found, None]):
            bottom = lower - (1 + number) * _PANEL + 0.2
            axes = panel(0.8, bottom, _WIDTH - 0.8 - _SIDE, 1.6, sharex=first)
            first = first or axes
            if place is not None:
                _draw_place(axes, run, place)
                axes.tick_params(labelbottom=False)
            else:
                _draw_turn(axes, run)
                axes.set_xlabel(TIME)
        return figure


def draw_flight(figure: Figure, run: Run, panel: Any, lower: float, height: float) -> None:
    """Draw the robot in space, and the paths from above and from the side that shows more."""
    paths = [place for place in places(run) if place.is_path]
    share = 0.45 if paths else 1.0
    course = Course(figure, run, np.array([len(run.t) - 1]))
    fit_view(course.axes, (0.0, (lower + _LEGEND) / height, share, _ROW / height))
    title = f"Paths, and the robot at {run.t[-1]:.3g} s"
    figure.text(share / 2, (lower + _LEGEND + _ROW) / height, title, ha="center", fontsize=11)
    handles = course.handles
    if paths:
        spread = np.ptp(np.concatenate([_spatial(place.actual) for place in paths]), axis=0)
        across = 0 if spread[0] >= spread[1] else 1
        for k, (i, j, title) in enumerate(((0, 1, "From above"), (across, 2, "From the side"))):
            axes = panel((0.5 + 0.25 * k) * _WIDTH, lower + _LEGEND + 0.5, 0.2 * _WIDTH, 3.5)
            for place in paths:
                _draw_path(axes, run, place, [i, j])
            # True proportion, and rounding is not magnified.
            middle = np.array([[np.mean(axes.get_xlim()), np.mean(axes.get_ylim())]])
            axes.update_datalim(np.concatenate([middle - 1e-9, middle + 1e-9]))
            axes.set_aspect("equal", adjustable="datalim")
            axes.locator_params(nbins=5)
            axes.set(title=title, xlabel=f"{'xyz'[i]} [m]", ylabel=f"{'xyz'[j]} [m]")
        look: Any = {"ls": "", "color": "white", "mec": "black", "ms": 8}
        ends = (("o", "start"), ("s", "end"))
        handles += [Line2D([], [], marker=mark, label=text, **look) for mark, text in ends]
    figure.legend(
        handles=handles,
        loc="center",
        bbox_to_anchor=(0.5, (lower + 0.4 * _LEGEND) / height),
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
    for place in places(run):
        if place.is_path:
            _draw_path(axes, run, place, [0, 1], end=False)
    axes.plot([], [], label="reference", **DASHES)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel="x [m]", ylabel="y [m]")
    _write_times(axes, run, rows, drawn)


def _draw_path(axes: Axes, run: Run, place: Place, columns: list[int], end: bool = True) -> None:
    """Draw a path over its reference, with its start and its end."""
    actual, reference = _spatial(place.actual)[:, columns], _spatial(place.reference)[:, columns]
    color, name = output_color(run.servo.outputs.index(place.output)), place.output.name
    axes.plot(*actual.T, color=color, linestyle="-", linewidth=2.2, label=name, zorder=4)
    axes.plot(*reference.T, **DASHES, zorder=5)
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
    return float(np.clip((_WIDTH - 0.8 - _SIDE) * along / max(across, 1e-9), 2.4, 6.4)) + 0.6


def _draw_place(axes: Axes, run: Run, place: Place) -> None:
    """Draw coordinates over time in the colours of the frames' axes."""
    columns = list(zip(place.axes, place.actual.T, place.reference.T, strict=True))
    for letter, actual, reference in columns:
        color = FRAME_COLORS["xyz".index(letter)]
        axes.plot(run.t, actual, color=color, linestyle="-", linewidth=2.2, label=letter)
        label = "reference" if letter == place.axes[-1] else None
        axes.plot(run.t, reference, label=label, **DASHES)
    unmagnified(axes)
    body = place.output.relative_to
    axes.set_ylabel("relative position [m]" if body else "position [m]")
    where = f" in the frame of {body}" if body else ""
    axes.set_title(f"Position of {place.output.name}{where}", parse_math=False)
    side_legend(axes)


def _draw_turn(axes: Axes, run: Run) -> None:
    """Draw the rotation vector of the base from its first orientation, in inertial axes."""
    some = few(run, _SAMPLES)
    attitudes = Rotation.from_matrix(base_poses(run, some)[:, :3, :3])
    steps = (attitudes[:-1].inv() * attitudes[1:]).magnitude() if len(some) > 1 else np.zeros(1)
    vectors = np.degrees((attitudes * attitudes[0].inv()).as_rotvec())
    jumps = np.linalg.norm(np.diff(vectors, axis=0, prepend=vectors[:1]), axis=1) > 180.0
    vectors[jumps] = np.nan  # the vector turns round at half a turn
    angle = np.linalg.norm(vectors, axis=1)
    for letter, color, values in zip("xyz", FRAME_COLORS, vectors.T, strict=True):
        if np.nanmax(np.abs(values)) > 1e-9 * np.nanmax(angle):
            axes.plot(run.t[some], values, color=color, linestyle="-", label=f"about {letter}")
    label = f"angle\n  turned in all: {np.degrees(steps.sum()):.3g}°"
    axes.plot(run.t[some], angle, color="black", linestyle="--", linewidth=1.2, label=label)
    axes.set_title("Attitude of the base, from that at the start")
    axes.set_ylabel("rotation [deg]")
    unmagnified(axes)
    side_legend(axes)


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
