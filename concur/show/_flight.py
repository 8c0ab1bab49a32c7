"""Figure of a floating robot: paths in space, from above and the side; attitude of the base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from scipy.spatial.transform import Rotation

from concur.show._outputs import on_bodies, positions, relative_positions
from concur.show._window import clipped, dashed, windows
from concur.show.errors import TIME
from concur.show.robot import (
    TRIAD,
    RobotArtists,
    add_axes3d,
    fit_view,
    line_handles,
    set_window,
)
from concur.show.skeleton import Outline
from concur.show.style import (
    DASHES,
    FRAME_COLORS,
    REFERENCE,
    new_figure,
    output_color,
    side_legend,
    styled,
    unmagnified,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.axes3d import Axes3D  # type: ignore[import-untyped]
    from numpy.typing import NDArray

    from concur.show.style import Floats
    from concur.simulation import Run

# In inches: width of the page and of the side legends; heights of the title, of the row of
# pictures, of their legend, and of a panel over time with its title.
_WIDTH, _SIDE, _HEAD, _ROW, _LEGEND, _PANEL, _FOOT = 12.0, 2.0, 0.7, 4.2, 0.6, 2.2, 0.3
# Number of samples of a curve in space or an angle over time, and length of a dash of a reference
# as a fraction of the window.
_SAMPLES, _DASH = 1000, 0.03


def leaves_plane(run: Run) -> bool:
    """Whether the base rises or tilts during a run, so that a view from above is insufficient."""
    poses = _base_poses(run, _few(run, 50))
    moved = np.concatenate([poses[:, 2:3, 3], poses[:, :3, 2]], axis=1)
    return bool(np.ptp(moved, axis=0).max() > 1e-9)


def flight_figure(run: Run) -> Figure:
    """Draw paths in space, from above and from the side; positions, and attitude of the base."""
    with styled():
        paths = positions(run)
        placed = {name: ("", "xyz", *pair) for name, pair in paths.items()}
        placed |= relative_positions(run)
        lower = _FOOT + (1 + len(placed)) * _PANEL
        height = _HEAD + _ROW + _LEGEND + lower
        figure = new_figure(_WIDTH, height)
        figure.set_layout_engine("none")
        figure.suptitle(f"Path of {run.robot.name}", parse_math=False, y=1.0 - 0.1 / height)

        bottom, share = (lower + _LEGEND) / height, 0.45 if paths else 1.0
        handles = draw_view(figure, run, (0.0, bottom, share, _ROW / height))
        title = f"Paths, and the robot at {run.t[-1]:.3g} s"
        figure.text(share / 2, bottom + _ROW / height, title, ha="center", fontsize=11)
        if paths:
            curves = {name: [_spatial(curve) for curve in pair] for name, pair in paths.items()}
            handles += _draw_projections(figure, run, curves, (bottom + 0.5 / height, 3.6 / height))
        figure.legend(
            handles=handles,
            loc="center",
            bbox_to_anchor=(0.5, (lower + 0.4 * _LEGEND) / height),
            ncols=min(8, len(handles)),
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


def _draw_projections(
    figure: Figure, run: Run, curves: dict[str, list[Floats]], rows: tuple[float, float]
) -> list[Any]:
    """Draw paths (k, 3), m, from above and from the side that shows more of them.

    Each entry of `curves` is a path with its reference; `rows` are bottom and height of the panels
    as fractions of the figure. Returns entries of a legend.
    """
    names = [output.name for output in run.servo.outputs]
    spread = np.ptp(np.concatenate([curve for pair in curves.values() for curve in pair]), axis=0)
    across = 0 if spread[0] >= spread[1] else 1
    ends = (("o", 0, "start"), ("s", -1, "end"))
    for k, (i, j, title) in enumerate(((0, 1, "From above"), (across, 2, "From the side"))):
        axes = figure.add_axes((0.5 + 0.25 * k, rows[0], 0.2, rows[1]))
        for name, (actual, reference) in curves.items():
            color = output_color(names.index(name))
            axes.plot(*actual[:, [i, j]].T, color=color, linestyle="-", linewidth=2.0, label=name)
            axes.plot(*reference[:, [i, j]].T, **DASHES)
            for marker, row, _ in ends:
                axes.plot(
                    *actual[row, [i, j]],
                    linestyle="none",
                    marker=marker,
                    markersize=8,
                    color=color,
                    markeredgecolor="black",
                    zorder=6,
                )
        # True proportion, and rounding is not magnified.
        middle = np.array([[np.mean(axes.get_xlim()), np.mean(axes.get_ylim())]])
        axes.update_datalim(np.concatenate([middle - 1e-9, middle + 1e-9]))
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=5)
        axes.set_title(title)
        axes.set_xlabel(f"{'xyz'[i]} [m]")
        axes.set_ylabel(f"{'xyz'[j]} [m]")
    look: Any = {"linestyle": "none", "color": "white", "markeredgecolor": "black", "markersize": 8}
    return [Line2D([], [], marker=marker, label=label, **look) for marker, _, label in ends]


def draw_view(
    figure: Figure, run: Run, cell: tuple[float, float, float, float], index: int = -1
) -> list[Any]:
    """Draw the robot at a sample of the run, the last by default, with the paths up to there.

    The cell is left, bottom, width and height as fractions of the figure, whose layout is frozen.
    Returns the entries of a legend.
    """
    index = range(len(run.t))[index]
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    seen = np.stack([outline.at(run.q[index]).points() for index in _few(run, 40)])
    placed = {
        name: (_spatial(actual), _spatial(reference))
        for name, (actual, reference) in positions(run).items()
    }
    curves = np.concatenate([np.empty((0, 3)), *(reference for _, reference in placed.values())])
    base = _base_poses(run, np.array([index]))[:, :3, 3]
    (low,), (high,) = windows(seen, curves, base, run.robot.ground_height, 1e-3)
    size = high - low
    axes = add_axes3d(figure)
    set_window(axes, low, high)
    axes.set_box_aspect(tuple(size))
    axes.locator_params(nbins=4)
    axes.patch.set_visible(False)  # it must not cover the labels of its neighbour
    fit_view(axes, cell)
    names, fine = [output.name for output in run.servo.outputs], _few(run, _SAMPLES)
    for name, (actual, reference) in placed.items():
        dashes = clipped(dashed(reference[fine], _DASH * float(np.max(size))), low, high)
        axes.plot(*dashes.T, color=REFERENCE, linestyle="-", linewidth=1.0)
        color, curve = (
            output_color(names.index(name)),
            clipped(actual[[*fine[fine < index], index]], low, high),
        )
        axes.plot(*curve.T, color=color, linestyle="-", linewidth=2.0, label=name)
    weight = min(0.8, 0.2 + 0.7 * outline.size / float(np.max(size)))
    RobotArtists(axes, outline, run.q[index], weight)
    for artist in (*axes.lines, *axes.collections):
        artist.set_clip_on(False)
    return _handles(axes, run, placed)


def _handles(axes: Axes3D, run: Run, placed: dict[str, Any]) -> list[Any]:
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
        axes.plot(t, reference[:, column], label=label, **DASHES)
    unmagnified(axes)
    axes.set_ylabel("relative position [m]" if frame else "position [m]")
    where = f" in the frame of {frame}" if frame else ""
    axes.set_title(f"Position of {name}{where}", parse_math=False)
    side_legend(axes)


def _draw_turn(axes: Axes, run: Run) -> None:
    """Draw the rotation vector of the base from its first orientation, in inertial axes."""
    some = _few(run, _SAMPLES)
    attitudes = Rotation.from_matrix(_base_poses(run, some)[:, :3, :3])
    steps = (attitudes[:-1].inv() * attitudes[1:]).magnitude() if len(some) > 1 else np.zeros(1)
    vectors = np.degrees((attitudes * attitudes[0].inv()).as_rotvec())
    jumps = np.linalg.norm(np.diff(vectors, axis=0, prepend=vectors[:1]), axis=1) > 180.0
    vectors[jumps] = np.nan  # the vector turns round at half a turn
    for column, letter in enumerate("xyz"):
        color, label = FRAME_COLORS[column], f"about {letter}"
        axes.plot(run.t[some], vectors[:, column], color=color, linestyle="-", label=label)
    angle = np.linalg.norm(vectors, axis=1)
    label = f"angle\n  turned in all: {np.degrees(steps.sum()):.3g}°"
    axes.plot(run.t[some], angle, color="black", linestyle="--", linewidth=1.2, label=label)
    axes.set_title("Attitude of the base, from that at the start")
    axes.set_ylabel("rotation [deg]")
    unmagnified(axes)
    side_legend(axes)


def _spatial(curve: Floats) -> Floats:
    """Points in space of a curve that may lie in the plane z = 0."""
    missing = np.zeros((len(curve), 3 - curve.shape[1]))
    return np.concatenate([curve, missing], axis=1)


def _base_poses(run: Run, chosen: NDArray[np.intp]) -> Floats:
    root = next(body.name for body in run.robot.bodies if body.parent is None)
    return np.array([np.asarray(run.robot.pose(run.q[k], root), dtype=float) for k in chosen])


def _few(run: Run, number: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), number)).astype(int))
