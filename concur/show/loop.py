"""Figures of the linearised loop: step responses, and margins in the frequency domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.show.errors import TIME
from concur.show.style import EDGE, PALETTE, REFERENCE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats

# Largest magnitude in the complex plane: larger values are far from the unit circle.
_NYQUIST_REACH = 2.2
_DOT: Any = {"marker": "o", "linestyle": "none"}


class MarginsLike(Protocol):
    """Margins of each coordinate's loop, and the symmetric disk margin of the whole loop."""

    @property
    def crossover(self) -> Floats: ...
    @property
    def phase_margin(self) -> Floats: ...
    @property
    def delay_margin(self) -> Floats: ...
    @property
    def disk_margin(self) -> float: ...


class LoopLike(Protocol):
    """Step and frequency response of every coordinate; coordinates along the second axis."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def t(self) -> Floats: ...
    @property
    def step(self) -> Floats: ...
    @property
    def settling_time(self) -> Floats: ...
    @property
    def band(self) -> float: ...
    @property
    def frequency(self) -> Floats: ...
    @property
    def loop(self) -> Any: ...
    @property
    def margins(self) -> MarginsLike: ...


@dataclass(frozen=True)
class _Curve:
    """Coordinates whose curves coincide, drawn as one."""

    column: int
    label: str
    color: str


def step_figure(loop: LoopLike) -> Figure:
    """Draw the step response of every coordinate, with its settling time.

    Parameters
    ----------
    loop : LoopLike
        Responses with `names`, `t` (k,), s, `step` (k, size), `settling_time` (size,), s, and
        `band`, the half width of the band about 1.

    Returns
    -------
    matplotlib.figure.Figure
        One panel; coordinates with the same response share a curve. A dot marks when a curve
        enters the band without leaving it again.

    Examples
    --------
    >>> step_figure(loop).savefig("step.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(8.0, 4.6)
        axes = figure.subplots()
        axes.axhspan(
            1.0 - loop.band,
            1.0 + loop.band,
            color=REFERENCE,
            alpha=0.15,
            linewidth=0.0,
            label=f"within {100 * loop.band:.3g} %",
        )
        axes.axhline(1.0, color=REFERENCE, linewidth=0.8)
        for curve in _curves(loop.names, loop.step):
            settled = float(loop.settling_time[curve.column])
            axes.plot(
                loop.t,
                loop.step[:, curve.column],
                color=curve.color,
                label=f"{curve.label}: settles in {settled:.3g} s",
            )
            if settled <= loop.t[-1]:
                value = np.interp(settled, loop.t, loop.step[:, curve.column])
                axes.plot([settled, settled], [0.0, value], color=curve.color, linestyle=":")
                axes.plot(settled, value, color=curve.color, zorder=3, **_DOT)
        axes.set_xlim(loop.t[0], loop.t[-1])
        axes.set_ylim(min(0.0, 1.05 * float(loop.step.min())), None)
        axes.set_xlabel(TIME)
        axes.set_ylabel("output, relative to the step of its reference [1]")
        axes.set_title("Step response of the linearised loop")
        axes.legend(loc="lower right")
        return figure


def margin_figure(loop: LoopLike) -> Figure:
    """Draw the loop of every coordinate: Bode diagram, and Nyquist curve about the point -1.

    Parameters
    ----------
    loop : LoopLike
        Responses with `names`, `frequency` (m,), rad/s, `loop` (m, size), complex, and
        `margins` with `crossover` (size,), rad/s, `phase_margin` (size,), degrees,
        `delay_margin` (size,), s, and `disk_margin`.

    Returns
    -------
    matplotlib.figure.Figure
        Left gain and phase over frequency, with crossover and phase margin; right the complex
        plane, with the unit circle and the disk that no curve enters.

    Examples
    --------
    >>> margin_figure(loop).savefig("margins.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(12.0, 6.2)
        grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1.0])
        gain = figure.add_subplot(grid[0, 0])
        phase = figure.add_subplot(grid[1, 0], sharex=gain)
        plane = figure.add_subplot(grid[:, 1])
        curves = _curves(loop.names, loop.loop)
        _draw_bode(gain, phase, loop, curves)
        _draw_plane(plane, loop, curves)
        figure.suptitle("Open loop, cut at the commanded acceleration")
        return figure


def _draw_bode(gain: Axes, phase: Axes, loop: LoopLike, curves: Sequence[_Curve]) -> None:
    margins = loop.margins
    shown = [float(margins.crossover[curve.column]) for curve in curves]
    window = (loop.frequency >= min(shown) / 30.0) & (loop.frequency <= max(shown) * 30.0)
    frequency = loop.frequency[window]
    lowest = -180.0
    gain.axhline(0.0, color=REFERENCE, linewidth=0.8)
    phase.axhline(-180.0, color=REFERENCE, linewidth=0.8, label="-180°")
    for curve, crossover in zip(curves, shown, strict=True):
        values = loop.loop[window, curve.column]
        angles = _degrees(values)
        lowest = min(lowest, float(angles.min()))
        gain.plot(
            frequency,
            20.0 * np.log10(np.abs(values)),
            color=curve.color,
            label=f"{curve.label}: crossover {crossover:.3g} rad/s",
        )
        gain.plot(crossover, 0.0, color=curve.color, zorder=3, **_DOT)
        lost = float(margins.phase_margin[curve.column])
        phase.plot(
            frequency,
            angles,
            color=curve.color,
            label=f"{curve.label}: margin {lost:.1f}°, "
            f"delay {float(margins.delay_margin[curve.column]):.3g} s",
        )
        at = np.interp(np.log(crossover), np.log(frequency), angles)
        phase.plot([crossover, crossover], [-180.0, at], color=curve.color, linestyle=":")
        phase.plot(crossover, at, color=curve.color, zorder=3, **_DOT)
    gain.set_xscale("log")
    gain.set_xlim(frequency[0], frequency[-1])
    gain.set_ylabel("gain [dB]")
    gain.set_title("Gain and phase")
    gain.tick_params(labelbottom=False)
    gain.legend(loc="upper right")
    phase.set_ylabel("phase [deg]")
    phase.set_xlabel("frequency [rad/s]")
    phase.set_yticks(np.arange(45.0 * np.floor(lowest / 45.0), 1.0, 45.0))
    phase.set_ylim(45.0 * np.floor(lowest / 45.0) - 10.0, 5.0)
    phase.legend(loc="upper left")


def _draw_plane(axes: Axes, loop: LoopLike, curves: Sequence[_Curve]) -> None:
    turn = np.linspace(0.0, 2.0 * np.pi, 361)
    axes.plot(
        np.cos(turn), np.sin(turn), color=REFERENCE, linestyle="--", linewidth=1.0, label="gain 1"
    )
    disk = float(loop.margins.disk_margin)
    if disk < 2.0:
        # The circle through -g and -1/g, where g is the gain margin of the disk.
        far = (2.0 + disk) / (2.0 - disk)
        center, radius = -(far + 1.0 / far) / 2.0, (far - 1.0 / far) / 2.0
        axes.fill(
            center + radius * np.cos(turn),
            radius * np.sin(turn),
            facecolor=EDGE,
            alpha=0.18,
            edgecolor=EDGE,
            label=f"excluded disk: disk margin {disk:.3g}",
        )
    axes.plot(-1.0, 0.0, color="black", marker="+", markersize=11, linestyle="none", label="-1")
    # Curves of equal damping ratios coincide: draw each wider than the next to show all.
    for width, curve in zip(np.linspace(1.4, 4.0, len(curves))[::-1], curves, strict=True):
        values = loop.loop[:, curve.column]
        axes.plot(values.real, values.imag, color=curve.color, linewidth=width)
        crossover = np.log(float(loop.margins.crossover[curve.column]))
        at = [np.interp(crossover, np.log(loop.frequency), part) for part in _parts(values)]
        axes.plot(*at, color=curve.color, zorder=3, **_DOT)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(-2.0 * _NYQUIST_REACH + 1.4, 1.4)
    axes.set_ylim(-_NYQUIST_REACH, _NYQUIST_REACH)
    axes.set_xlabel("real part of the loop [1]")
    axes.set_ylabel("imaginary part of the loop [1]")
    axes.set_title("Complex plane")
    # Colours are those of the other panels; curve names would cover the disk here.
    axes.legend(loc="upper right")


def _curves(names: Sequence[str], table: Any) -> list[_Curve]:
    """One curve for each group of equal columns."""
    leaders: dict[int, list[str]] = {}
    for column, name in enumerate(names):
        twin = next((k for k in leaders if np.allclose(table[:, k], table[:, column])), column)
        leaders.setdefault(twin, []).append(name)
    # Black is reserved for references.
    return [
        _Curve(column, _joined(members), PALETTE[number % (len(PALETTE) - 1)])
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


def _degrees(values: Any) -> Floats:
    """Unwrapped phase, starting at the -180 degrees of a double integrator."""
    angles = np.degrees(np.unwrap(np.angle(values)))
    return np.asarray(angles - 360.0 * np.round((angles[0] + 180.0) / 360.0))


def _parts(values: Any) -> tuple[Floats, Floats]:
    return values.real, values.imag
