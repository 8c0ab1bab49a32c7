"""Curves over time beside a scene, as plots of viser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from concur.plotting.style import PALETTE

if TYPE_CHECKING:
    import viser

Floats = NDArray[np.float64]

_DASHES: tuple[tuple[float, ...], ...] = ((), (6.0, 4.0), (2.0, 3.0))


def add_plot(
    gui: viser.GuiApi, names: Sequence[str], times: tuple[float, float]
) -> viser.GuiUplotHandle:
    """Add an empty plot with a curve for each name over a range of times, s."""
    from viser import uplot

    series = [uplot.Series(label="time (s)")] + [
        uplot.Series(
            label=name,
            stroke=PALETTE[k % len(PALETTE)],
            width=1.5,
            dash=_DASHES[k // len(PALETTE) % len(_DASHES)],
            points=uplot.Series_Points(show=False),
        )
        for k, name in enumerate(names)
    ]
    return gui.add_uplot(
        data=(np.array(times), *(np.zeros(2) for _ in names)),
        series=tuple(series),
        scales={"x": uplot.Scale(time=False, range=times)},
        axes=(uplot.Axis(size=32.0), uplot.Axis(size=62.0)),
        legend=uplot.Legend(show=True, live=False),
        height=165,
    )


def drawable(times: Floats, columns: Floats) -> tuple[Floats, ...]:
    """Data of a plot; non-finite values leave a gap."""
    known = np.where(np.isfinite(columns), columns, np.nan)
    return (np.ascontiguousarray(times), *(np.ascontiguousarray(part) for part in known.T))
