"""Curves over time beside a scene, as plots of viser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from concur.show.style import PALETTE, REFERENCE, Floats

if TYPE_CHECKING:
    import viser

DASHES: tuple[tuple[float, ...], ...] = ((), (6.0, 4.0), (2.0, 3.0))


def add_plot(
    gui: viser.GuiApi,
    names: Sequence[str],
    times: tuple[float, float],
    styles: Sequence[tuple[str, tuple[float, ...]]] = (),
    values: tuple[float, float] | None = None,
) -> viser.GuiUplotHandle:
    """Add an empty plot over a range of times, s, with a curve for each name.

    Styles are pairs of colour and dashes; default: the palette, then the palette dashed.
    The range of values, in their unit, is fitted to the curves unless it is given.
    """
    from viser import uplot

    count = len(PALETTE)
    styles = styles or [(PALETTE[k % count], DASHES[k // count % 3]) for k in range(len(names))]
    series = [uplot.Series(label="time (s)")] + [
        uplot.Series(
            label=name,
            stroke=stroke,
            width=1.5,
            dash=dash,
            points=uplot.Series_Points(show=False),
        )
        for name, (stroke, dash) in zip(names, styles, strict=True)
    ]
    scales = {"x": uplot.Scale(time=False, range=times)}
    if values is not None:
        scales["y"] = uplot.Scale(range=values)
    return gui.add_uplot(
        data=(np.array(times), *(np.zeros(2) for _ in names)),
        series=tuple(series),
        scales=scales,
        axes=(uplot.Axis(size=32.0), uplot.Axis(size=62.0)),
        legend=uplot.Legend(show=True, live=False),
        height=165,
    )


def drawable(times: Floats, columns: Floats) -> tuple[Floats, ...]:
    """Data of a plot; non-finite values leave a gap."""
    known = np.where(np.isfinite(columns), columns, np.nan)
    return (np.ascontiguousarray(times), *(np.ascontiguousarray(part) for part in known.T))


class TimedPlot:
    """Curves over the times of a run, with a line at the time that is shown.

    All curves of a plot have the same times: each is there twice, for the two ends of the line.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        names: Sequence[str],
        times: Floats,
        columns: Floats,
        styles: Sequence[tuple[str, tuple[float, ...]]],
    ) -> None:
        self._times = times
        self._data = drawable(np.repeat(times, 2), np.repeat(columns, 2, axis=0))
        finite = columns[np.isfinite(columns)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        margin = 0.05 * (high - low) or 1e-3 * max(abs(high), 1.0)
        self._ends = float(low - margin), float(high + margin)
        span = float(times[0]), float(max(times[-1], times[0] + 1e-9))
        lines = [*styles, (REFERENCE, ())]
        self.handle = add_plot(gui, [*names, "time shown"], span, lines, self._ends)
        self.show(float(times[0]))

    def show(self, time: float) -> None:
        """Move the line to a time, s."""
        line = np.full(2 * len(self._times), np.nan)
        nearest = int(np.abs(self._times - time).argmin())
        line[2 * nearest : 2 * nearest + 2] = self._ends
        self.handle.data = (*self._data, line)
