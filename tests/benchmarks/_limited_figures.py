"""What happened in a scenario: a column per law with errors, torques, and active limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from concur.show.charts import Curve, Panel, draw
from concur.show.style import PALETTE, TIME, new_figure, styled
from tests.benchmarks._limited_measures import Passage

WIDTH, HEIGHT, BAR = 4.2, 2.1, 0.2
"""Size of a panel, and height of a bar, inches."""

STRIDE = 5
"""Ticks from one point of a curve to the next."""

FLOOR = 1e-7
"""Smallest error that is shown, m and rad."""

KEPT, EXCEEDED, SAID = PALETTE[0], PALETTE[1], PALETTE[5]


def figure(found: Sequence[Passage]) -> Figure:
    """Draw a scenario: a column for each law.

    Parameters
    ----------
    found : sequence of Passage
        What the laws did.
    """
    names = active_names(found)
    scenario = found[0].scenario
    with styled():
        heights = [HEIGHT, HEIGHT, HEIGHT, BAR * (len(names) + 1)]
        made = new_figure(WIDTH * len(found), sum(heights) + 3.0)
        grid = made.subplots(
            4, len(found), sharex=True, sharey="row", squeeze=False, height_ratios=heights
        )
        made.suptitle(scenario.shown)
        for column, result in zip(grid.T, found, strict=True):
            for axes, panel in zip(column, panels(result), strict=False):
                draw(axes, result.t[::STRIDE], panel)
                axes.axvline(scenario.arrival, color="black", linewidth=0.8, linestyle=":")
                if result.ended:
                    axes.axvline(result.t[-1], color=EXCEEDED, linewidth=2.0)
            _bars(column[3], result, names)
            column[3].set_xlabel(TIME)
            column[3].set_xlim(0.0, scenario.duration)
            said = f"{result.law}: ended" if result.ended else result.law
            column[0].annotate(
                said,
                (0.5, 1.0),
                (0, 46),
                "axes fraction",
                "offset points",
                ha="center",
                fontsize=12,
                weight="bold",
            )
        _fit(grid)
        return made


def panels(result: Passage) -> list[Panel]:
    """Errors, torques as shares of their limits, and what is in the way."""
    names, thin = result.scenario.robot.actuated, slice(None, None, STRIDE)
    errors = [
        Curve(result.errors[thin, k], f"{name} [{unit}]")
        for k, (name, unit) in enumerate(result.error_units)
    ]
    shares = (result.u / result.scenario.torques)[thin]
    torques = [Curve(shares[:, k], name, limits=(-1.0, 1.0)) for k, name in enumerate(names)]
    return [
        Panel(
            "Errors; dotted: the reference has arrived",
            "error [m, rad]",
            errors,
            log=True,
            floor=FLOOR,
        ),
        Panel("Torques over their limits", "torque / limit [1]", torques),
        _in_the_way(result, thin),
    ]


def _in_the_way(result: Passage, thin: slice) -> Panel:
    """The quantity whose limit the scenario is about; without one speeds of the joints."""
    scenario, twin = result.scenario, result.twin
    if scenario.ball is not None:
        keep = (0.0, np.inf)
        curve = Curve(1e3 * result.clearance[thin], "distance less the one to keep", limits=keep)
        return Panel("Distance from the ball", "distance [mm]", [curve])
    if scenario.ground is not None and scenario.ground.load:
        keep = (scenario.ground.load, np.inf)
        curve = Curve(result.load[thin], "wheels and caster", limits=keep)
        return Panel("Least load", "load [N]", [curve])
    if scenario.ground is not None:
        curve = Curve(
            np.minimum(result.grip[thin], 5 * scenario.ground.grip),
            "needed",
            limits=(0.0, scenario.ground.grip),
        )
        return Panel("Grip of the wheels", "friction coefficient [1]", [curve], zero=True)
    bounded = [limit for limit in result.limits if limit.kind == "position"]
    if bounded:
        curves = []
        for limit in bounded:
            name = limit.name.removeprefix("position of ")
            place = twin.angles[list(scenario.robot.actuated).index(name)]
            low, high = scenario.robot.limits[place]
            curves.append(Curve(result.q[thin, place], name, limits=(float(low), float(high))))
        return Panel("Angle of the joint", "angle [rad]", curves)
    most = np.asarray(scenario.robot.speed_limits)[twin.driven]
    speeds = [
        Curve(result.v[thin, i], name, limits=(-float(w), float(w)))
        for i, name, w in zip(twin.driven, scenario.robot.actuated, most, strict=True)
    ]
    return Panel("Speeds of the joints", "speed [rad/s]", speeds)


def active_names(found: Sequence[Passage]) -> list[str]:
    """Limits that some law reached."""
    names = [limit.name for result in found for limit in result.limits if limit.active.any()]
    names += [name for result in found for name, active in result.said.items() if active.any()]
    return list(dict.fromkeys(names))


def _bars(axes: Axes, result: Passage, names: Sequence[str]) -> None:
    """Draw when each limit was active, and when it was exceeded."""
    for row, name in enumerate(names):
        spans = [(result.said.get(name, np.zeros(len(result.t), bool)), SAID, 0.35)]
        for limit in result.limits:
            if limit.name == name:
                beyond = limit.room < -1e-3 * limit.size
                spans += [(limit.active & ~beyond, KEPT, 0.2), (beyond, EXCEEDED, 0.2)]
        for places, color, half in spans:
            axes.broken_barh(_spans(places, result.t), (row - half, 2 * half), facecolors=color)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    shown = [(KEPT, "reached"), (EXCEEDED, "exceeded"), (SAID, "in the law")]
    for color, label in shown[: 3 if result.said else 2]:
        axes.plot([], [], color=color, linewidth=6, label=label)
    found = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=3,
        frameon=False,
        title="Limits",
        alignment="left",
    )
    found.get_title().set_fontweight("bold")


def _spans(places: np.ndarray, t: np.ndarray) -> list[tuple[float, float]]:
    """Beginnings and lengths of the times at which something holds; short ones stay visible."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], places, [False]]).astype(int)))
    least = 2e-3 * float(t[-1])
    return [
        (float(t[a]), max(float(t[b - 1] - t[a]), least))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]


def _fit(grid: np.ndarray) -> None:
    """Give each row one scale that shows all laws, and labels to the first column alone."""
    for row in grid[:3]:
        drawn = [np.asarray(line.get_ydata(), float) for axes in row for line in axes.get_lines()]
        values = np.concatenate([y for y in drawn if len(y) > 2])
        low, high = np.nanmin(values), np.nanmax(values)
        if row[0].get_yscale() == "log":
            row[0].set_ylim(FLOOR, 2.0 * high)
        else:
            ends = [end for end in row[0].get_ylim() if low - (high - low) < end < 2 * high - low]
            low, high = min([low, *ends]), max([high, *ends])
            row[0].set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        for axes in row[1:]:
            axes.set_ylabel("")
    for axes in grid[3, 1:]:
        axes.tick_params(labelleft=False)
