"""Figures of the linearised loop: step responses, and margins in the frequency domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MultipleLocator

from concur.show.charts import LOOKS, WIDTH, Curve, Panel, chart, draw, legend
from concur.show.style import EDGE, PALETTE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REACH = 2.2
"""Largest magnitude in the complex plane: larger values are far from the unit circle."""


def step_figure(loop: Any) -> Figure:
    """Draw the step response of every coordinate, with its settling time.

    Parameters
    ----------
    loop : LoopResponse
        Step and frequency response of every coordinate.

    Returns
    -------
    matplotlib.figure.Figure
        One panel; coordinates with the same response share a curve. A dot marks when a curve
        enters the band without leaving it again.

    Examples
    --------
    >>> step_figure(loop).savefig("step.png")    # doctest: +SKIP
    """
    ends, curves = [loop.t[0], loop.t[-1]], list[Curve]()
    for end in (1.0 - loop.band, 1.0 + loop.band):
        label = f"within {100 * loop.band:.3g} %" if not curves else ""
        curves.append(Curve([end, end], label, "limit", t=ends))
    for column, name, color in _groups(loop.names, loop.step):
        values, settled = loop.step[:, column], float(loop.settling_time[column])
        curves.append(Curve(values, f"{name}: settles in {settled:.3g} s", color=color))
        if settled <= loop.t[-1]:
            at = float(np.interp(settled, loop.t, values))
            curves.append(Curve([0.0, at], color=color, t=[settled] * 2, style={"linestyle": ":"}))
            curves.append(Curve([at], "", "dots", color, t=[settled]))
    panel = Panel("Output, relative to the step of its reference", "output [1]", curves)
    return chart("Step response of the linearised loop", loop.t, [panel])


def margin_figure(loop: Any) -> Figure:
    """Draw the loop of every coordinate: Bode diagram, and Nyquist curve about the point -1.

    Parameters
    ----------
    loop : LoopResponse
        Step and frequency response of every coordinate, with its margins.

    Returns
    -------
    matplotlib.figure.Figure
        Gain and phase over frequency, with crossover and phase margin; below them the complex
        plane, with the unit circle and the disk that no curve enters.

    Examples
    --------
    >>> margin_figure(loop).savefig("margins.png")    # doctest: +SKIP
    """
    groups, margins = _groups(loop.names, loop.loop), loop.margins
    shown = [float(margins.crossover[column]) for column, _, _ in groups]
    window = (loop.frequency >= min(shown) / 30.0) & (loop.frequency <= max(shown) * 30.0)
    frequency = loop.frequency[window]
    ends = [frequency[0], frequency[-1]]
    gains, phases = ([Curve([level] * 2, "", "limit", t=ends)] for level in (0.0, -180.0))
    for (column, name, color), crossover in zip(groups, shown, strict=True):
        values = loop.loop[window, column]
        decibels, angles = 20.0 * np.log10(np.abs(values)), _degrees(values)
        at = float(np.interp(np.log(crossover), np.log(frequency), angles))
        lost, delay = margins.phase_margin[column], margins.delay_margin[column]
        gains += [
            Curve(decibels, f"{name}: crossover {crossover:.3g} rad/s", color=color),
            Curve([0.0], "", "dots", color, t=[crossover]),
        ]
        phases += [
            Curve(angles, f"{name}: margin {lost:.1f}°, delay {delay:.3g} s", color=color),
            Curve([-180.0, at], color=color, t=[crossover] * 2, style={"linestyle": ":"}),
            Curve([at], "", "dots", color, t=[crossover]),
        ]
    with styled():
        figure = new_figure(WIDTH, 10.0)
        gain, phase, plane = figure.subplots(3, 1, height_ratios=[1.0, 1.0, 1.6])
        figure.suptitle("Open loop, cut at the commanded acceleration")
        draw(gain, frequency, Panel("Gain", "gain [dB]", gains))
        draw(phase, frequency, Panel("Phase", "phase [deg]", phases))
        for axes in (gain, phase):
            axes.set_xscale("log")
            axes.set_xlim(ends)
            axes.set_xlabel("frequency [rad/s]")
        phase.yaxis.set_major_locator(MultipleLocator(45.0))
        _draw_plane(plane, loop, groups)
        return figure


def _draw_plane(axes: Axes, loop: Any, groups: Sequence[tuple[int, str, str]]) -> None:
    turn = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, 361))
    axes.plot(turn.real, turn.imag, **LOOKS["limit"], label="gain 1")
    disk = float(loop.margins.disk_margin)
    if disk < 2.0:
        # The circle through -g and -1/g, where g is the gain margin of the disk.
        far = (2.0 + disk) / (2.0 - disk)
        round_ = -(far + 1.0 / far) / 2.0 + (far - 1.0 / far) / 2.0 * turn
        label = f"excluded disk: disk margin {disk:.3g}"
        axes.fill(round_.real, round_.imag, facecolor=EDGE, alpha=0.18, edgecolor=EDGE, label=label)
    axes.plot(-1.0, 0.0, color="black", marker="+", markersize=11, linestyle="none", label="-1")
    # Curves of equal damping ratios coincide: draw each wider than the next to show all.
    widths = np.linspace(1.4, 4.0, len(groups))[::-1]
    for width, (column, _, color) in zip(widths, groups, strict=True):
        values = loop.loop[:, column]
        axes.plot(values.real, values.imag, color=color, linestyle="-", linewidth=width)
        at, known = np.log(float(loop.margins.crossover[column])), np.log(loop.frequency)
        crossed = [np.interp(at, known, part) for part in (values.real, values.imag)]
        axes.plot(*crossed, color=color, zorder=3, **LOOKS["dots"])
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(-2.0 * _REACH + 1.4, 1.4)
    axes.set_ylim(-_REACH, _REACH)
    axes.set_xlabel("real part of the loop [1]")
    axes.set_ylabel("imaginary part of the loop [1]")
    legend(axes, "Complex plane")


def _groups(names: Sequence[str], table: Any) -> list[tuple[int, str, str]]:
    """Column, label and colour of each group of equal columns."""
    leaders: dict[int, list[str]] = {}
    for column, name in enumerate(names):
        twin = next((k for k in leaders if np.allclose(table[:, k], table[:, column])), column)
        leaders.setdefault(twin, []).append(name)
    # Black is reserved for references.
    return [
        (column, _joined(members), PALETTE[number % (len(PALETTE) - 1)])
        for number, (column, members) in enumerate(leaders.items())
    ]


def _joined(names: Sequence[str]) -> str:
    """Join names such as hand[x], hand[y] to hand[x, y]."""
    found: dict[str, list[str]] = {}
    for name in names:
        head, _, component = name.removesuffix("]").partition("[")
        found.setdefault(head, []).append(component)
    return ", ".join(
        f"{head}[{', '.join(parts)}]" if all(parts) else head for head, parts in found.items()
    )


def _degrees(values: Any) -> np.ndarray:
    """Unwrapped phase, starting at the -180 degrees of a double integrator."""
    angles = np.degrees(np.unwrap(np.angle(values)))
    return np.asarray(angles - 360.0 * np.round((angles[0] + 180.0) / 360.0))
