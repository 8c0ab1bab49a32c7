"""Charts: panels of curves in one column, with units, limits, and legends above the axes.

A figure of a result declares its panels: which arrays, which limits, which unit, which title. The
column is narrow, so that its text is readable on a telephone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import ArrayLike

from concur.show.style import (
    PALETTE,
    REFERENCE,
    ROUNDING,
    TIME,
    logarithmic,
    new_figure,
    styled,
    unmagnified,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.0
"""Width of a chart, inches."""

_HEIGHT, _LINE, _HEAD, _FOOT = 1.75, 0.19, 0.34, 0.75
"""Heights of axes, of a line of a legend, of the title of a panel, and of title and time axis."""

_TEXT = 4.0
"""Width of title and legend of a panel, inches."""

_COLUMN = 26
"""Characters of an entry up to which a legend has two columns."""

_SPACING: dict[str, Any] = {
    "title_fontsize": 10.5,
    "handlelength": 1.6,
    "columnspacing": 1.2,
    "labelspacing": 0.2,
    "borderpad": 0.1,
    "borderaxespad": 0.1,
}

_EXCEEDED = 1e-9
"""Part of a limit beyond it that counts as rounding, as in the findings of a run."""

LOOKS: dict[str, dict[str, Any]] = {
    "line": {},
    "wide": {"linewidth": 2.8},
    "dashes": {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 1.2},
    "bound": {"color": PALETTE[6], "linewidth": 2.0},
    "limit": {"color": REFERENCE, "linestyle": "--", "linewidth": 1.0},
    "sample": {"color": PALETTE[5], "linewidth": 0.8, "alpha": 0.7},
    "dots": {"linestyle": "none", "marker": "o"},
}
"""Appearance of a curve by its role: `dashes` are references and ideals that others cover."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity over time, or several of the same kind.

    Parameters
    ----------
    values : array_like
        Values, shape (k,), or (m, k) for curves with one entry in the legend.
    label : str
        Entry in the legend; empty without one.
    look : str
        Name of its appearance in `LOOKS`.
    color : str, optional
        Colour; default that of the role, or the next of the palette.
    limits : tuple of float
        Lower and upper limit, infinite without one.
    owner : str
        Whose limits these are.
    extremes : tuple of float, optional
        Smallest and largest value, if the curve does not show them; judged by the limits.
    peak : bool
        Whether the largest size is marked.
    t : array_like, optional
        Own times, shape (k,); one more than values for steps.
    style : dict, optional
        Further properties of the line.
    """

    values: ArrayLike
    label: str = ""
    look: str = "line"
    color: str | None = None
    limits: tuple[float, float] = (-np.inf, np.inf)
    owner: str = ""
    extremes: tuple[float, float] | None = None
    peak: bool = False
    t: ArrayLike | None = None
    style: dict[str, Any] | None = None

    @property
    def exceeded(self) -> bool:
        """Whether an extreme is beyond its limit by more than rounding."""
        values = np.asarray(self.values, dtype=float)
        own = self.extremes
        own = own or (np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf))
        slack = [_EXCEEDED * abs(end) if np.isfinite(end) else 0.0 for end in self.limits]
        low, high = self.limits
        return bool(own[0] < low - slack[0] or own[1] > high + slack[1])

    @property
    def limits_text(self) -> str:
        """Limits in words; empty without one."""
        low, high = self.limits
        if not np.isfinite(self.limits).any():
            return ""
        text = f"±{high:.3g}" if low == -high else f"{low:.3g} to {high:.3g}"
        text = f"≤ {high:.3g}" if low == -np.inf else f"≥ {low:.3g}" if high == np.inf else text
        owner = f" ({self.owner})" if self.owner else ""
        return f"limit {text}{owner}" + ": exceeded" * self.exceeded


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves with a common unit.

    Parameters
    ----------
    title : str
        What is drawn.
    quantity : str
        Label of the vertical axis, with the unit in brackets.
    curves : sequence of Curve
        The curves.
    log : bool
        Whether the vertical axis is logarithmic; values below rounding do not stretch it.
    zero : bool
        Whether the vertical axis starts at zero.
    floor, span : float
        As of `logarithmic`.
    least : float
        Least height of a linear axis: smaller differences are not magnified.
    """

    title: str
    quantity: str
    curves: Sequence[Curve]
    log: bool = False
    zero: bool = False
    floor: float = ROUNDING
    span: float = 1e-9
    least: float = 1e-9


def chart(title: str, t: ArrayLike, panels: Sequence[Panel], xlabel: str = TIME) -> Figure:
    """Draw panels below each other over one horizontal axis.

    Parameters
    ----------
    title : str
        Title of the figure.
    t : array_like
        Times, shape (k,), s, or other values of the horizontal axis.
    panels : sequence of Panel
        The panels.
    xlabel : str
        Label of the horizontal axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    with styled():
        figure = new_figure(WIDTH, 1.0)
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        head = wrapped(title, WIDTH, 12.0)
        figure.suptitle(head, parse_math=False)
        lines = sum(draw(axes, t, panel) for axes, panel in zip(grid, panels, strict=True))
        lines += head.count("\n")
        figure.set_figheight(_FOOT + len(panels) * (_HEIGHT + _HEAD) + _LINE * lines)
        grid[-1].set_xlabel(xlabel)
        return figure


def draw(axes: Axes, t: ArrayLike, panel: Panel) -> int:
    """Draw the curves of a panel with their limits.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    t : array_like
        Times, shape (k,), s.
    panel : Panel
        The curves.

    Returns
    -------
    int
        Lines of the legend.
    """
    axes.margins(x=0.01)
    own = [curve.limits_text for curve in panel.curves]
    shared = len(own) > 1 and len(set(own)) == 1 and bool(own[0])
    for number, curve in enumerate(panel.curves):
        look = {"color": PALETTE[number % len(PALETTE)], "linestyle": "-"}
        look["linestyle"] = ("-", "-.", ":")[number // len(PALETTE) % 3]
        look |= LOOKS[curve.look] | ({"color": curve.color} if curve.color else {})
        text = "" if shared else own[number]
        label = ", ".join(filter(None, (curve.label, text))) or "_"
        times = np.asarray(t if curve.t is None else curve.t, dtype=float)
        _draw_curve(axes, times, curve, label, look | (curve.style or {}))
    if panel.log:
        logarithmic(axes, panel.floor, panel.span)
    else:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.5g}"))
        _draw_limits(axes, panel.curves, shared)
        unmagnified(axes, panel.least)
        if panel.zero:
            high = axes.get_ylim()[1]
            axes.set_ylim(0.0, 1.05 * high if high > 0.0 else 1.0)
    axes.set_ylabel(panel.quantity)
    return legend(axes, panel.title)


def legend(axes: Axes, title: str) -> int:
    """Write title and legend above the axes, where they cover nothing.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes with labelled artists.
    title : str
        Title of the panel.

    Returns
    -------
    int
        Lines of the legend, and of the title behind its first one.
    """
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= _COLUMN else 1
    columns = 4 if len(labels) > 2 and max(map(len, labels)) <= _COLUMN // 4 else columns
    title, width = wrapped(title, _TEXT, 10.5), _TEXT - 0.2 if columns == 1 else WIDTH
    labels = [wrapped(label, width, 9.0) for label in labels]
    found = axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        title=title,
        alignment="left",
        frameon=False,
        **_SPACING,
    )
    for text in (found.get_title(), *found.get_texts()):
        text.set_parse_math(False)
    found.get_title().set_fontweight("bold")
    wider: int = title.count("\n") + sum(label.count("\n") for label in labels)
    return -(-len(labels) // columns) + wider


def _draw_curve(axes: Axes, t: np.ndarray, curve: Curve, label: str, look: dict[str, Any]) -> None:
    values = np.asarray(curve.values, dtype=float)
    if len(t) == values.shape[-1] + 1:  # steps: each value holds up to the next time
        values = np.append(values, values[..., -1:], axis=-1)
        look |= {"drawstyle": "steps-post"}
    values = np.where(np.isfinite(values), values, np.nan)
    lines = axes.plot(t, values.T, **look)
    if lines:
        lines[0].set_label(label)
    for line in lines[1:]:
        line.set_label("_")
    if curve.peak:
        at = int(np.nanargmax(np.abs(values))) if np.isfinite(values).any() else 0
        mark: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "clip_on": False}
        axes.plot(t[at : at + 1], values[at : at + 1], color=look["color"], zorder=5, **mark)


def _draw_limits(axes: Axes, curves: Sequence[Curve], shared: bool) -> None:
    """Draw limits in the colours of their curves, equal ones once; distant ones are only named."""
    low, high = shown = axes.get_ylim()
    drawn = curves[:1] if shared else curves
    colors = [line.get_color() for line in axes.get_lines() if line.get_marker() != "o"]
    for curve, color in zip(drawn, colors, strict=False):
        look = LOOKS["limit"] | ({} if shared else {"color": color})
        label: str | None = curve.limits_text
        for end in filter(np.isfinite, curve.limits):
            axes.axhline(end, label=label if shared else None, **look)
            label = None
            # A distant limit would flatten the curves.
            if 2.0 * low - high <= end <= 2.0 * high - low:
                room = 0.04 * (high - low)
                shown = min(shown[0], end - room), max(shown[1], end + room)
    axes.set_ylim(shown)


@contextmanager
def tiles(
    count: int, title: str, most: int = 0, height: float = 2.1, columns: int = 3
) -> Iterator[list[Axes]]:
    """Draw many small panels in rows.

    Parameters
    ----------
    count : int
        Panels that there are.
    title : str
        Title of the figure.
    most : int
        Panels that are drawn at most; 0 for all.
    height : float
        Height of a panel, inches.
    columns : int
        Panels in a row, at most.

    Yields
    ------
    list of matplotlib.axes.Axes
        One for each panel that is drawn; their figure has this title.
    """
    drawn = min(count, most or count)
    columns = max(1, min(columns, drawn))
    rows = max(1, -(-drawn // columns))
    with styled():
        figure = new_figure(max(WIDTH, 0.5 * WIDTH * columns), 0.6 + height * rows)
        width = figure.get_figwidth()
        head = title + (f" ({drawn} of {count})" if drawn < count else "")
        figure.suptitle(wrapped(head, width, 12.0))
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in grid[drawn:]:
            axes.set_axis_off()
        yield list(grid[:drawn])
        for axes in grid[:drawn]:
            axes.set_title(wrapped(axes.get_title(), 0.95 * width / columns, 11.0))
