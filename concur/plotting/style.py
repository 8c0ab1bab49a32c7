"""One look for all figures: palette, fonts, sizes, and the care that logarithmic axes need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from concur.plotting.protocols import Floats

# Okabe and Ito's colours, told apart by colour-blind readers; their yellow vanishes on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
REFERENCE = "#555555"
CHASSIS = "#8FA3B5"
EDGE = "#4F6272"
WHEEL = "#2B2B2B"
ARM = "#D55E00"

COM = "#F0E442"
FRAME_COLORS = ("#C62828", "#2E7D32", "#1565C0")

DPI = 130
FLOOR = 1e-16

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "figure.titlesize": 12,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.prop_cycle": cycler(linestyle=["-", "--", ":"]) * cycler(color=PALETTE),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#CCCCCC",
    "text.usetex": False,
    "axes.unicode_minus": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Give every figure made inside the `with` block the look of the package.

    Yields
    ------
    None
        The settings of Matplotlib are as before when the block ends.

    Examples
    --------
    >>> from concur.plotting import new_figure, styled
    >>> with styled():
    ...     figure = new_figure(6.0, 4.0)
    """
    with mpl.rc_context(_RC):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure with its own raster canvas, apart from any window.

    Parameters
    ----------
    width, height : float
        Size in inches.

    Returns
    -------
    matplotlib.figure.Figure
        A figure with constrained layout.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def above_floor(values: Floats) -> Floats:
    """Return magnitudes fit for a logarithmic axis: nothing below 1e-16.

    Parameters
    ----------
    values : ndarray
        Any numbers, any unit; NaN stays NaN and leaves a gap.

    Returns
    -------
    ndarray
        `max(|values|, 1e-16)`, same shape.
    """
    magnitudes: Floats = np.abs(np.asarray(values, dtype=float))
    return np.asarray(np.maximum(magnitudes, FLOOR))


def logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with limits that frame what is drawn.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes whose lines are already drawn, with data from `above_floor`.
    """
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    values = np.concatenate(drawn) if drawn else np.array([1.0])
    values = values[np.isfinite(values)]
    # Exact zeros, drawn at the floor, must not squeeze the rest into the top of the picture.
    values = values[values > FLOOR] if np.any(values > FLOOR) else values
    low, high = (values.min(), values.max()) if values.size else (FLOOR, 1.0)
    axes.set_yscale("log")
    # At least two decades, or a constant looks like noise and the axis has no labelled tick.
    axes.set_ylim(low / 3.0, max(high * 3.0, 40.0 * low))


def side_legend(axes: Axes) -> None:
    """Put the legend to the right of the axes, where it can hide nothing.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes with labelled artists.
    """
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
