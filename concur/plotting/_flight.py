"""Figures of a floating robot: views at several instants, paths, and rotation of the base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from scipy.spatial.transform import Rotation

from concur.plotting._outputs import instants, positions, relative_positions
from concur.plotting._window import clipped, dashed, windows
from concur.plotting.errors import TIME
from concur.plotting.protocols import on_bodies
from concur.plotting.robot import (
    TRIAD,
    RobotArtists,
    add_axes3d,
    fit_view,
    line_handles,
    set_window,
)
from concur.plotting.skeleton import Outline
from concur.plotting.style import (
    FRAME_COLORS,
    PALETTE,
    REFERENCE,
    new_figure,
    output_color,
    side_legend,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
    from numpy.typing import NDArray

    from concur.plotting.protocols import Floats, RunLike

_INSTANTS, _COLUMNS = 6, 3
# In inches: width of the page and of the side legends; heights of the title, of a row of views
# with their times, of their legend, and of a panel over time with its title.
_WIDTH, _SIDE, _HEAD, _ROW, _TIME, _LEGEND, _PANEL, _FOOT = 12.0, 2.0, 0.4, 3.0, 0.3, 0.7, 2.2, 0.3
# Number of samples of a curve in space or an angle over time, and length of a dash of a reference
# as a fraction of the window.
_SAMPLES, _DASH = 1000, 0.03


def leaves_plane(run: RunLike) -> bool:
    """Whether the base rises or tilts during a run, so that a view from above is insufficient."""
    poses = _base_poses(run, _few(run, 50))
    moved = np.concatenate([poses[:, 2:3, 3], poses[:, :3, 2]], axis=1)
    return bool(np.ptp(moved, axis=0).max() > 1e-9)


def flight_figure(run: RunLike) -> Figure:
    """Draw a floating robot: six views in time, positions of its outputs, rotation of its base."""
    with styled():
        chosen = instants(run, _INSTANTS)
        placed = {name: ("", "xyz", *pair) for name, pair in positions(run).items()}
        placed |= relative_positions(run)
        rows = -(-len(chosen) // _COLUMNS)
        lower = _FOOT + (1 + len(placed)) * _PANEL
        height = _HEAD + rows * (_TIME + _ROW) + _LEGEND + lower
        figure = new_figure(_WIDTH, height)
        figure.set_layout_engine("none")
        figure.suptitle(f"Path of {run.robot.name}", parse_math=False, y=1.0 - 0.1 / height)

        columns = min(_COLUMNS, len(chosen))
        cells = []
        for number, index in enumerate(chosen):
            left, row = number % _COLUMNS / columns, number // _COLUMNS
            top = 1.0 - (_HEAD + row * (_TIME + _ROW)) / height
            cell = (left, top - (_TIME + _ROW) / height, 1.0 / columns, _ROW / height)
            cells.append(cell)
            time = f"t = {run.t[index]:.3g} s"
            figure.text(left + 0.5 / columns, top, time, ha="center", va="top", fontsize=11)
        handles = draw_views(figure, run, chosen, cells)
        figure.legend(
            handles=handles,
            loc="center",
            bbox_to_anchor=(0.5, (lower + 0.5 * _LEGEND) / height),
            ncols=len(handles),
            handler_map=TRIAD,
        )

        first: Axes | None = None
        for number, name in enumerate([*placed, None]):
            bottom = lower - (1 + number) * _PANEL + 0.2
            axes = figure.add_axes(
                (0.7 / _WIDTH, bottom / height, 1.0 - (0.7 + _SIDE) / _WIDTH, 1.6 / height),
                sharex=first,
            )
            first = first or axes
            if name is None:
                _draw_turn(axes, run)
                axes.set_xlabel(TIME)
            else:
                draw_place(axes, run.t, name, *placed[name])
                axes.tick_params(labelbottom=False)
        return figure


def draw_views(
    figure: Figure,
    run: RunLike,
    chosen: NDArray[np.intp],
    cells: list[tuple[float, float, float, float]],
) -> list[Any]:
    """Draw the robot at some instants, one view for each, with the paths up to that time.

    Cells are left, bottom, width and height of each view as fractions of the figure, whose layout
    is frozen. Returns the entries of a legend.
    """
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    seen = np.stack([outline.at(run.q[index]).points() for index in _few(run, 40)])
    placed = {
        name: (_spatial(actual), _spatial(reference))
        for name, (actual, reference) in positions(run).items()
    }
    curves = [reference for _, reference in placed.values()]
    bases = _base_poses(run, chosen)[:, :3, 3]
    # Views are separate instants: do not smooth between them.
    low, high = windows(
        seen, np.concatenate([np.empty((0, 3)), *curves]), bases, run.robot.ground_height, 1e-3
    )
    size = high[0] - low[0]
    weight = min(0.8, 0.2 + 0.7 * outline.size / float(np.max(size)))
    views: list[Axes3D] = []
    zoom, inset = 1.0, np.zeros(2)
    for number, cell in enumerate(cells):
        axes = add_axes3d(figure)
        set_window(axes, low[number], high[number])
        axes.locator_params(nbins=4)
        # A view must not cover the labels of its neighbour.
        axes.patch.set_visible(False)
        if not views:
            # Measure the first view, while the rest of the figure is still empty and fast to draw.
            zoom, _ = fit_view(axes, cell)
            inset = np.array(axes.get_position(original=True).bounds[:2]) - cell[:2]
        axes.set_box_aspect(tuple(size), zoom=zoom)
        axes.set_position((*(inset + cell[:2]), *cell[2:]))
        views.append(axes)

    names = [output.name for output in run.servo.outputs]
    fine = _few(run, _SAMPLES)
    for axes, index, least, most in zip(views, chosen, low, high, strict=True):
        for name, (actual, reference) in placed.items():
            dashes = dashed(reference[fine], _DASH * float(np.max(size)))
            axes.plot(
                *clipped(dashes, least, most).T, color=REFERENCE, linestyle="-", linewidth=1.0
            )
            past = actual[[*fine[fine < index], index]]
            color = output_color(names.index(name))
            curve = clipped(past, least, most)
            axes.plot(*curve.T, color=color, linestyle="-", linewidth=2.0, label=name)
        RobotArtists(axes, outline, run.q[index], weight)
        for artist in (*axes.lines, *axes.collections):
            artist.set_clip_on(False)
    return _handles(views[0], run, placed)


def _handles(axes: Axes3D, run: RunLike, placed: dict[str, Any]) -> list[Any]:
    """Legend entries: paths or output points, reference, centre of mass and frames."""
    lines = {line.get_label(): line for line in axes.lines}
    handles: list[Any] = [lines[name] for name in placed]
    if placed:
        handles.append(
            Line2D([], [], color=REFERENCE, linestyle="--", linewidth=1.0, label="reference")
        )
    # An orientation has no path: use the entry of its point.
    handles += [
        lines[f"output {output.name}"]
        for output in on_bodies(run.servo.outputs)
        if output.name not in placed
    ]
    return [*handles, lines["centre of mass"], *line_handles(run.robot)]


def draw_place(
    axes: Axes, t: Floats, name: str, frame: str, letters: str, actual: Floats, reference: Floats
) -> None:
    """Draw coordinates over time in the colours of the frames' axes.

    `frame` is the body in whose frame they are; empty: the inertial frame.
    """
    for column, letter in zip(range(actual.shape[1]), letters, strict=False):
        color = FRAME_COLORS["xyz".index(letter)]
        axes.plot(t, actual[:, column], color=color, linestyle="-", linewidth=2.2, label=letter)
        label = "reference" if column == actual.shape[1] - 1 else None
        axes.plot(
            t,
            reference[:, column],
            color="black",
            linestyle=(0, (4, 3)),
            linewidth=1.2,
            label=label,
        )
    axes.set_ylabel("relative position [m]" if frame else "position [m]")
    where = f" in the frame of {frame}" if frame else ""
    axes.set_title(f"Position of {name}{where}", parse_math=False)
    side_legend(axes)


def _draw_turn(axes: Axes, run: RunLike) -> None:
    """Draw the rotation angle of the base: accumulated, and from the first orientation."""
    some = _few(run, _SAMPLES)
    attitudes = Rotation.from_matrix(_base_poses(run, some)[:, :3, :3])
    steps = (attitudes[:-1].inv() * attitudes[1:]).magnitude() if len(some) > 1 else np.empty(0)
    added = np.concatenate([[0.0], np.cumsum(steps)])
    apart = (attitudes[0].inv() * attitudes).magnitude()
    label = f"accumulated\n  total {added[-1]:.3g} rad"
    axes.plot(run.t[some], added, color=PALETTE[0], linestyle="-", label=label)
    label = "from the orientation\n  at the start"
    axes.plot(run.t[some], apart, color=PALETTE[1], linestyle="--", label=label)
    axes.set_title("Rotation of the base")
    axes.set_ylabel("angle [rad]")
    side_legend(axes)


def _spatial(curve: Floats) -> Floats:
    """Points in space of a curve that may lie in the plane z = 0."""
    missing = np.zeros((len(curve), 3 - curve.shape[1]))
    return np.concatenate([curve, missing], axis=1)


def _base_poses(run: RunLike, chosen: NDArray[np.intp]) -> Floats:
    root = next(body.name for body in run.robot.bodies if body.parent is None)
    return np.array([np.asarray(run.robot.pose(run.q[k], root), dtype=float) for k in chosen])


def _few(run: RunLike, number: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), number)).astype(int))
