"""Figure of the path, from above, with the robot at several instants and the height of hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull

from concur.show._flight import draw_place, flight_figure, leaves_plane
from concur.show._outputs import instants, positions, relative_positions
from concur.show.errors import TIME
from concur.show.skeleton import Outline, Skeleton
from concur.show.style import (
    ARM,
    CHASSIS,
    DASHES,
    EDGE,
    WHEEL,
    new_figure,
    output_color,
    side_legend,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats
    from concur.simulation import Run

__all__ = ["path_figure"]

INSTANTS = 6
# Largest width and height of the top view, and those of legend and titles beside it, in inches.
_WIDEST, _HIGHEST, _SIDE, _HEAD = 7.0, 6.4, 2.6, 1.4


def path_figure(run: Run) -> Figure:
    """Draw the paths and their references with the robot.

    Planar motion is seen from above. For a base that rises or tilts the figure shows the paths in
    space, from above and from the side.

    Parameters
    ----------
    run : Run
        A finished run with `t`, `q`, `pose`, `reference`, `robot` and `servo.outputs`.

    Returns
    -------
    matplotlib.figure.Figure
        Top view with equal axes and, if an output is spatial, its height over time below it.
        Positions in the frame of a body are drawn over time in further panels. In space: the
        robot at the end with the paths, two projections of the paths with start and end and, below
        them, output coordinates and the attitude of the base.

    Examples
    --------
    >>> path_figure(run).savefig("path.png")    # doctest: +SKIP
    """
    if leaves_plane(run):
        return flight_figure(run)
    with styled():
        spatial = {name: pair for name, pair in positions(run).items() if pair[0].shape[1] == 3}
        width, height = _panel_size(run)
        relative = relative_positions(run)
        lower = [2.2] * (bool(spatial) + len(relative))
        figure = new_figure(width + _SIDE, height + sum(lower) + _HEAD)
        panels = figure.subplots(1 + len(lower), 1, height_ratios=[height, *lower], squeeze=False)[
            :, 0
        ]
        top, bottom = panels[0], panels[1] if spatial else None
        draw_top_view(top, run)
        top.set_title(f"Path of {run.robot.name}, seen from above")
        side_legend(top)
        if bottom is not None:
            for name, (actual, reference) in spatial.items():
                bottom.plot(
                    run.t,
                    actual[:, 2],
                    color=_color(run, name),
                    linestyle="-",
                    linewidth=2.2,
                    label=name,
                )
                # Label the last one only, so that the legend ends with it.
                label = "reference" if name == list(spatial)[-1] else None
                bottom.plot(run.t, reference[:, 2], label=label, **DASHES)
            bottom.set_xlabel(TIME)
            bottom.set_ylabel("height z [m]")
            side_legend(bottom)
        for axes, (name, found) in zip(panels[1 + bool(spatial) :], relative.items(), strict=True):
            draw_place(axes, run.t, name, *found)
            axes.set_xlabel(TIME)
        return figure


def draw_top_view(axes: Axes, run: Run) -> None:
    """Draw paths, references and the robot at several instants, in the plane z = 0."""
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    chosen = instants(run, INSTANTS)
    drawn = [outline.at(run.q[index]) for index in chosen]
    for number, at in enumerate(drawn):
        strength = 0.3 + 0.7 * number / max(1, len(drawn) - 1)
        _draw_from_above(axes, at, outline.size, strength)
    often = f"robot at {len(drawn)} instants" if len(drawn) > 1 else "robot"
    axes.patches[-1 - len(drawn[-1].wheels)].set_label(often)
    _write_times(axes, run, drawn, [f"{run.t[index]:.3g} s" for index in chosen])

    found = positions(run)
    for name, (actual, reference) in found.items():
        color = _color(run, name)
        axes.plot(*actual[:, :2].T, color=color, linestyle="-", linewidth=2.2, label=name, zorder=4)
        label = "reference" if name == list(found)[-1] else None
        axes.plot(*reference[:, :2].T, label=label, zorder=5, **DASHES)
        axes.plot(*actual[:1, :2].T, linestyle="none", marker="o", color=color, zorder=6)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")


def _color(run: Run, name: str) -> str:
    return output_color([output.name for output in run.servo.outputs].index(name))


def _draw_from_above(axes: Axes, at: Skeleton, size: float, strength: float) -> None:
    axes.add_patch(
        Polygon(
            _hull(at.chassis, size),
            facecolor=(CHASSIS, 0.35 * strength),
            edgecolor=(EDGE, 0.8 * strength),
            zorder=1,
        )
    )
    for rims in at.wheels:
        axes.add_patch(
            Polygon(_hull(rims.reshape(-1, 3), size), color=WHEEL, alpha=0.8 * strength, zorder=1.5)
        )
    for line in at.struts:
        axes.plot(
            *line[:, :2].T, color=EDGE, linestyle="-", linewidth=1.0, alpha=strength, zorder=1.2
        )
    for line in at.links:
        axes.plot(
            line[:, 0],
            line[:, 1],
            color=ARM,
            linewidth=3.5,
            linestyle="-",
            alpha=0.8 * strength,
            solid_capstyle="round",
            marker="o",
            markersize=4,
            zorder=2,
        )


def _write_times(axes: Axes, run: Run, drawn: list[Skeleton], texts: list[str]) -> None:
    bases = np.array([at.chassis[:, :2].mean(axis=0) for at in drawn])
    tips = [at.links[-1][-1] if at.links else at.frames[0][:3, 3] for at in drawn]
    hands = np.array(tips)[:, :2]
    # Where the base hardly moves, write the times at the hand, which moves further. If the drawn
    # bases are distinguishable, write them at the base: long arms overlap other instants.
    width = float(np.linalg.norm(np.ptp(drawn[0].chassis[:, :2], axis=0)))
    still = _spread(bases) < 0.5 * width
    at_hand = still and _spread(hands) > 1.5 * _spread(bases)
    anchors = hands if at_hand else bases
    points, extent = _everything(run, drawn)
    figure: Any = axes.get_figure()
    room = axes.get_position().size * figure.get_size_inches() * 72
    scale = float(np.min(room / np.maximum(extent, 1e-9 + 0.01 * np.max(extent))))
    near = max(0.15 * _spread(anchors), 8.0 / scale)
    labels: list[tuple[Floats, Floats, str]] = []
    for anchor, ahead, text in zip(anchors, hands - bases, texts, strict=True):
        for number, (other, away, said) in enumerate(labels):
            if np.linalg.norm(anchor - other) <= near:
                labels[number] = (other, away, f"{said}, {text}")
                break
        else:
            length = float(np.linalg.norm(ahead))
            away = ahead / length if length > 0 else np.array([0.0, 1.0])
            labels.append((anchor, away if at_hand else -away, text))
    for anchor, ahead, text in labels:
        half = np.array([3.2 * len(text) + 5.0, 9.0])
        place = _free_place(anchor * scale, ahead, half, points * scale) / scale
        points = np.concatenate([points, place + np.outer([-0.5, 0.0, 0.5], [half[0] / scale, 0])])
        axes.update_datalim([place - half / scale, place + half / scale])
        axes.text(
            float(place[0]),
            float(place[1]),
            text,
            ha="center",
            va="center",
            fontsize=9,
            zorder=7,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )


def _free_place(anchor: Floats, ahead: Floats, half: Floats, points: Floats) -> Floats:
    """Return the nearest position around an anchor where a text covers none of the points.

    Lengths are in typographic points; `half` is half the size of the text.
    """
    first = np.arctan2(ahead[1], ahead[0])
    turns = np.pi / 12 * np.array([0, *(sign * k for k in range(1, 13) for sign in (1, -1))])
    best, most = anchor, -1.0
    for distance in np.arange(12.0, 72.0, 4.0):
        for angle in first + turns:
            place = anchor + distance * np.array([np.cos(angle), np.sin(angle)])
            clear = float(np.min(np.max(np.abs(points - place) / half, axis=1)))
            if clear >= 1.0:
                return np.asarray(place)
            if clear > most:
                best, most = place, clear
    return np.asarray(best)


def _panel_size(run: Run) -> tuple[float, float]:
    """Return width and height (inches) of a top view that fits its contents."""
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    drawn = [outline.at(run.q[index]) for index in instants(run, INSTANTS)]
    across, along = _everything(run, drawn)[1]
    ratio = float(along / max(across, 1e-9))
    width, height = _WIDEST, _WIDEST * ratio
    if height > _HIGHEST:
        width, height = _HIGHEST / ratio, _HIGHEST
    return max(width, 4.5), max(height, 2.2)


def _everything(run: Run, drawn: list[Skeleton]) -> tuple[Floats, Floats]:
    """Return the points of a top view, dense along lines, and their extent, in metres."""
    parts = []
    for at in drawn:
        parts += [_filled(at.chassis[[0, 1, 3, 2, 0]]), *(_filled(line) for line in at.links)]
        parts += [rims.reshape(-1, 3) for rims in at.wheels]
    few = np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), 1000)).astype(int))
    for pair in positions(run).values():
        parts += [curve[few] for curve in pair]
    points = np.concatenate([part[:, :2] for part in parts])
    return points, np.ptp(points, axis=0)


def _filled(line: Floats) -> Floats:
    part = np.linspace(0.0, len(line) - 1.0, 12 * len(line))
    return np.stack([np.interp(part, np.arange(len(line)), column) for column in line.T], axis=1)


def _spread(points: Floats) -> float:
    return float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))


def _hull(points: Floats, size: float) -> Floats:
    flat = points[:, :2]
    # A thin wheel seen edge-on is a line without a hull; widen it slightly.
    corners = 1e-6 * max(size, 1e-3) * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    spread = (flat[:, None, :] + corners).reshape(-1, 2)
    return np.asarray(spread[ConvexHull(spread).vertices], dtype=float)
