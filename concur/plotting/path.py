"""The path seen from above, with the robot at a few instants, and the height of the hands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects
from matplotlib.patches import Polygon
from scipy.spatial import ConvexHull

from concur.plotting.errors import TIME
from concur.plotting.outputs import nearest, positions
from concur.plotting.skeleton import Outline, Skeleton
from concur.plotting.style import (
    ARM,
    CHASSIS,
    EDGE,
    PALETTE,
    WHEEL,
    new_figure,
    side_legend,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats, RunLike

INSTANTS = 6


def path_figure(run: RunLike) -> Figure:
    """Draw the paths and their references from above, with the robot at six instants.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `q`, `pose`, `reference`, `robot` and `servo.outputs`.

    Returns
    -------
    matplotlib.figure.Figure
        Top view with equal axes; below it, if an output is spatial, its height over time.

    Examples
    --------
    >>> path_figure(run).savefig("path.png")    # doctest: +SKIP
    """
    with styled():
        spatial = {name: pair for name, pair in positions(run).items() if pair[0].shape[1] == 3}
        figure = new_figure(9.0, 9.0 if spatial else 7.0)
        if spatial:
            top, bottom = figure.subplots(2, 1, height_ratios=[3.2, 1])
        else:
            top, bottom = figure.subplots(), None
        draw_top_view(top, run)
        top.set_title(f"Path of {run.robot.name}, seen from above")
        side_legend(top)
        if bottom is not None:
            for number, (name, (actual, wanted)) in enumerate(positions(run).items()):
                if name not in spatial:
                    continue
                color = _color(number)
                bottom.plot(
                    run.t, actual[:, 2], color=color, linestyle="-", linewidth=2.2, label=name
                )
                label = "reference" if name == next(iter(spatial)) else None
                bottom.plot(run.t, wanted[:, 2], label=label, **_WANTED)
            bottom.set_xlabel(TIME)
            bottom.set_ylabel("height z [m]")
            side_legend(bottom)
        return figure


def draw_top_view(axes: Axes, run: RunLike, instants: int = INSTANTS) -> None:
    """Draw paths, references and the robot at some instants, in the plane z = 0.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw into; they become equal.
    run : RunLike
        A finished run.
    instants : int
        How often to draw the robot, evenly in time.
    """
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    chosen = np.unique(nearest(run.t, np.linspace(run.t[0], run.t[-1], instants)))
    drawn = [outline.at(run.q[index]) for index in chosen]
    for number, at in enumerate(drawn):
        strength = 0.3 + 0.7 * number / max(1, len(drawn) - 1)
        _draw_from_above(axes, at, outline.size, strength)
    _write_times(axes, drawn, [f"{run.t[index]:.3g} s" for index in chosen])

    few = np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), 300)).astype(int))
    base = np.array([np.asarray(run.robot.pose(run.q[i], outline.root))[:2, 3] for i in few])
    axes.plot(*base.T, linestyle="-", linewidth=1.2, color=EDGE, label=outline.root, zorder=3)
    for number, (name, (actual, wanted)) in enumerate(positions(run).items()):
        color = _color(number)
        axes.plot(*actual[:, :2].T, color=color, linestyle="-", linewidth=2.2, label=name, zorder=4)
        axes.plot(*wanted[:, :2].T, label=None if number else "reference", zorder=5, **_WANTED)
        axes.plot(*actual[:1, :2].T, linestyle="none", marker="o", color=color, zorder=6)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")


_WANTED: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 1.2}


def _color(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


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


def _write_times(axes: Axes, drawn: list[Skeleton], texts: list[str]) -> None:
    bases = np.array([at.chassis[:, :2].mean(axis=0) for at in drawn])
    tips = [at.links[-1][-1] if at.links else at.frames[0][:3, 3] for at in drawn]
    hands = np.array(tips)[:, :2]
    # Where the base hardly moves its hand may: the times go where they stand further apart.
    at_hand = _spread(hands) > 1.5 * _spread(bases)
    anchors = hands if at_hand else bases
    near = 0.15 * _spread(anchors)
    labels: list[tuple[Floats, Floats, str]] = []
    for anchor, ahead, text in zip(anchors, hands - bases, texts, strict=True):
        for number, (other, away, said) in enumerate(labels):
            if np.linalg.norm(anchor - other) <= near:
                labels[number] = (other, away, f"{said}, {text}")
                break
        else:
            length = float(np.linalg.norm(ahead))
            away = ahead / length if length > 0 else np.array([0.0, 1.0])
            labels.append((anchor, 22 * away if at_hand else -26 * away, text))
    for anchor, away, text in labels:
        axes.annotate(
            text,
            (anchor[0], anchor[1]),
            xytext=(away[0], away[1]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9,
            zorder=7,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )


def _spread(points: Floats) -> float:
    return float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))


def _hull(points: Floats, size: float) -> Floats:
    flat = points[:, :2]
    # A slim wheel seen edge-on is a line, of which no hull exists; widen it by a hair.
    corners = 1e-6 * max(size, 1e-3) * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    spread = (flat[:, None, :] + corners).reshape(-1, 2)
    return np.asarray(spread[ConvexHull(spread).vertices], dtype=float)
