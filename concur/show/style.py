"""Common style of all figures: palette, fonts, sizes, limits of axes, and small PNG files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from concur.files import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]

# Okabe and Ito's colours, which colour-blind readers can distinguish; without their yellow.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Without the orange of the arms; black is reserved for references.
_OUTPUTS = (PALETTE[2], PALETTE[3], PALETTE[0], PALETTE[4], PALETTE[5])
REFERENCE = "#555555"
CHASSIS = "#8FA3B5"
EDGE = "#4F6272"
WHEEL = "#2B2B2B"
SUPPORT = "#8A6FB0"
ARM = "#D55E00"

COM = "#F0E442"
FRAME_COLORS = ("#C62828", "#2E7D32", "#1565C0")

TIME = "time [s]"
"""Label of the axis of times."""

DPI = 144
"""Pixels per inch of pictures."""

LETTER = 0.55
"""Mean width of a letter, as a share of the size of its font."""

ROUNDING = 1e-12
"""Size of numbers of order one that are zero within rounding."""

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
    """Apply the style of the package to every figure made inside the `with` block.

    Yields
    ------
    None
        The block's end restores the settings of Matplotlib.

    Examples
    --------
    >>> from concur.show import new_figure, styled
    >>> with styled():
    ...     figure = new_figure(6.0, 4.0)
    """
    with mpl.rc_context(_RC):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Create an empty figure with a raster canvas, independent of any window.

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


def output_color(number: int) -> str:
    """Return the colour of an output, the same in every figure.

    Parameters
    ----------
    number : int
        Index of the output, from 0.

    Returns
    -------
    str
        A colour different from those of the arms and the centre of mass.
    """
    return _OUTPUTS[number % len(_OUTPUTS)]


def logarithmic(axes: Axes, floor: float = ROUNDING, span: float = 1e-9) -> None:
    """Make the vertical axis logarithmic, with limits that fit the lines.

    Lines that are zero within rounding are not magnified: a sentence gives their largest value.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes with their lines. Smaller values, such as zeros, leave the axes at the lower edge;
        NaN leaves a gap.
    floor : float
        Values below it do not stretch the axis.
    span : float
        Values below this fraction of the largest one do not stretch the axis.
    """
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    values = np.concatenate(drawn) if drawn else np.array([1.0])
    values = values[np.isfinite(values) & (values > 0)]
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    if drawn and high <= ROUNDING:
        text = f"zero within rounding: at most {high:.2g}"
        axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes)
    low = max(low, floor, span * high)
    # Show at least two decades: a constant would look like noise, and the axis would lack labels.
    # Set limits before the scale: Matplotlib would compute others, and warn if all values are zero.
    axes.set_ylim(low / 3.0, max(high * 3.0, 40.0 * low))
    axes.set_yscale("log")


def unmagnified(axes: Axes, least: float = 1e-9) -> None:
    """Widen the vertical axis where it would magnify rounding to the height of the panel.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes with their lines.
    least : float
        Least height of the axis.
    """
    low, high = axes.get_ylim()
    least = max(least, 1e-6 * max(abs(low), abs(high)))
    if high - low < least:
        axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)


def picture(figure: Figure, dpi: int | None = None) -> bytes:
    """Draw a figure as a small PNG, with a palette of its colours.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    dpi : int, optional
        Pixels per inch; default `DPI`.

    Returns
    -------
    bytes
        The file.
    """
    drawn, small, dpi = io.BytesIO(), io.BytesIO(), dpi or DPI
    figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 0})
    with Image.open(drawn) as image:
        few = image.convert("RGB").quantize(
            256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
        few.save(small, "PNG", optimize=True, dpi=(dpi, dpi))
    return small.getvalue()


def wrapped(text: str, width: float, size: float) -> str:
    """Break lines between words so that they fit a width.

    Parameters
    ----------
    text : str
        The text; its own line breaks are kept.
    width : float
        Width, inches.
    size : float
        Size of the font, points.

    Returns
    -------
    str
        The lines.
    """
    most = max(int(72.0 * width / (LETTER * size)), 1)
    lines = (textwrap.wrap(line, most, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join(part for parts in lines for part in parts or [""])


def save_picture(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : Path
        The file.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ConcurError
        If it cannot be written.
    """
    with writing(path):
        path.write_bytes(picture(figure))
    return path
