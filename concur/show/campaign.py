"""Figures of a campaign: robustness, sampled curves, extremes, worst worlds, influences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.campaign import SampledCurves
from concur.show.errors import TIME
from concur.show.style import (
    EDGE,
    PALETTE,
    REFERENCE,
    ROUNDING,
    logarithmic,
    new_figure,
    side_legend,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PASS, FAIL = PALETTE[0], PALETTE[1]

MOST = 9
"""Panels of a figure, at most."""

REQUIRED: dict[str, Any] = {"color": REFERENCE, "linestyle": "--"}
PROVED: dict[str, Any] = {"color": PALETTE[2], "linestyle": "-."}

_BINS = 30
_THINNEST = 60  # bars that fit between the values and their limit, at most
_RINGS = 5  # worst worlds that are marked


def robustness_figure(result: Any) -> Figure:
    """Draw how often each robustness occurs, for each requirement.

    Parameters
    ----------
    result : CampaignResult
        The campaign.

    Returns
    -------
    matplotlib.figure.Figure
        A histogram for each requirement, those that most worlds break first. Zero is the limit.
    """
    robustness = np.asarray(result.robustness)
    order = np.argsort(np.sum(robustness > 0.0, axis=0), kind="stable")
    with _panels(len(order), "Robustness of the requirements in all sampled worlds") as panels:
        for axes, column in panels.of(order):
            name, unit = result.columns[column]
            own = robustness[:, column]
            finite = own[np.isfinite(own)]
            _histogram(axes, finite, finite > 0.0, 0.0)
            axes.axvline(0.0, color=REFERENCE, linestyle="--", linewidth=1.2)
            failed = int(np.sum(~(own > 0.0)))
            lost = len(own) - len(finite)
            note = f", {lost} without a value" if lost else ""
            axes.set_title(f"{name}\n{failed} of {len(own)} worlds fail{note}")
            axes.set_xlabel(f"robustness [{unit or '1'}]")
            axes.set_ylabel("worlds")
    return panels.figure


def extremes_figure(result: Any, curves: Sequence[SampledCurves] = ()) -> Figure:
    """Draw how often each extreme of a signal occurs, such as the largest torque of a control.

    Parameters
    ----------
    result : CampaignResult
        The campaign, with signals.
    curves : sequence of SampledCurves
        Curves with the name of a signal, whose proved bounds are drawn.

    Returns
    -------
    matplotlib.figure.Figure
        A histogram for each signal, with its limit where there is one; those that break
        their limit most often first.
    """
    extremes = np.asarray(result.extremes)
    limits = [result.limits.get(name, (-np.inf, np.inf)) for name, _ in result.signals]
    broken = [
        int(np.sum((own < low) | (own > high)))
        for own, (low, high) in zip(extremes.T, limits, strict=True)
    ]
    free = [not np.isfinite(pair).any() for pair in limits]
    order = sorted(range(len(limits)), key=lambda column: (free[column], -broken[column]))
    with _panels(len(order), "Extremes of signals in all sampled worlds") as panels:
        for axes, column in panels.of(order):
            name, unit = result.signals[column]
            own = extremes[:, column]
            ends = [end for end in limits[column] if np.isfinite(end)]
            finite = own[np.isfinite(own)]
            good = (finite >= limits[column][0]) & (finite <= limits[column][1])
            proved = [b for c in curves if c.name == name for b in c.bounds if b.assumption]
            values = [float(np.max(bound.values)) for bound in proved]
            limit = ends[0] if ends else np.inf
            _histogram(axes, finite, good, limit, max(values, default=-np.inf))
            for end in ends:
                axes.axvline(end, color=REFERENCE, linestyle="--", linewidth=1.2)
            shown = " and ".join(f"{end:.4g}" for end in ends)
            note = f"\n{broken[column]} worlds beyond the limit of {shown} {unit}".rstrip()
            title = name + (note if ends else "")
            for bound, value in zip(proved, values, strict=True):
                axes.axvline(value, **PROVED)
                above = int(np.sum(own > value))
                title += f"\n{above} worlds above {value:.4g} {unit},\n{bound.name}"
            axes.set_title(title)
            axes.set_xlabel(f"extreme [{unit or '1'}]")
            axes.set_ylabel("worlds")
    return panels.figure


def curves_figure(curves: Sequence[SampledCurves]) -> Figure:
    """Draw curves of sampled runs, with the bounds that hold for them.

    Parameters
    ----------
    curves : sequence of SampledCurves
        One for each panel.

    Returns
    -------
    matplotlib.figure.Figure
        Panels over one time axis.
    """
    with styled():
        figure = new_figure(9.0, 0.9 + 2.7 * max(1, len(curves)))
        panels = figure.subplots(max(1, len(curves)), 1, sharex=True, squeeze=False)[:, 0]
        figure.suptitle("Sampled runs")
        for axes, one in zip(panels, curves, strict=False):
            _draw_curves(axes, one)
        panels[-1].set_xlabel(TIME)
        return figure


def worst_figure(result: Any, requirement: str, quantities: Sequence[str] = ()) -> Figure:
    """Draw the robustness of a requirement over the quantities that matter for it.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    requirement : str
        Name of the requirement.
    quantities : sequence of str, optional
        Names of quantities, a panel for each, at most `MOST`; default: the first three.

    Returns
    -------
    matplotlib.figure.Figure
        A point for each world with a finite robustness; rings mark the five worst ones.
    """
    labels = [name for name, _ in result.quantities]
    column = result.requirement(requirement)
    unit = result.columns[column][1] or "1"
    robustness = np.asarray(result.robustness)[:, column]
    finite = np.isfinite(robustness)
    worst = [row for row in np.argsort(robustness, kind="stable") if finite[row]][:_RINGS]
    chosen = [labels.index(name) for name in quantities or labels[:3]]
    with _panels(len(chosen), f"Robustness of {requirement}: the worst worlds") as panels:
        for axes, k in panels.of(chosen):
            x = np.asarray(result.worlds)[:, k]
            for color, rows in (
                (PASS, finite & (robustness > 0)),
                (FAIL, finite & (robustness <= 0)),
            ):
                axes.plot(x[rows], robustness[rows], ".", color=color, markersize=4, alpha=0.6)
            axes.axhline(0.0, color=REFERENCE, linestyle="--", linewidth=1.2)
            axes.plot(x[worst], robustness[worst], "o", color=EDGE, fillstyle="none", markersize=9)
            for row in worst[:1]:
                axes.annotate(
                    f"world {result.numbers[row]}",
                    (x[row], robustness[row]),
                    xytext=(6, -10) if x[row] < np.mean(x) else (-6, -10),
                    ha="left" if x[row] < np.mean(x) else "right",
                    textcoords="offset points",
                    fontsize=8,
                )
            axes.margins(y=0.12)
            axes.set_xlabel(f"{labels[k]} [{result.quantities[k][1] or '1'}]")
            axes.set_ylabel(f"robustness [{unit}]")
    return panels.figure


def influence_figure(influences: Iterable[Any]) -> Figure:
    """Draw the rank correlations of the quantities with each requirement.

    Parameters
    ----------
    influences : iterable of RankInfluence
        Those of a campaign.

    Returns
    -------
    matplotlib.figure.Figure
        Bars with intervals for each requirement, the strongest on top; grey ones may be noise.
    """
    rows: dict[str, list[Any]] = {}
    for one in influences:
        rows.setdefault(one.requirement, []).append(one)
    strongest = {
        name: abs(own[0].correlation) if own[0].shown else 0.0 for name, own in rows.items()
    }
    order = sorted(rows, key=lambda name: -strongest[name])
    title = "Rank correlation of quantities with robustness (grey: may be noise)"
    with _panels(len(order), title, width=4.6) as panels:
        for axes, name in panels.of(order):
            own = rows[name][:8]
            places = np.arange(len(own))[::-1]
            for place, one in zip(places, own, strict=True):
                color = FAIL if one.correlation < 0.0 else PASS
                ends = [[one.correlation - one.low], [one.high - one.correlation]]
                axes.barh(
                    place,
                    one.correlation,
                    color=color if one.shown else "#C8CED4",
                    xerr=np.maximum(ends, 0.0),
                    error_kw={"ecolor": EDGE, "capsize": 2, "elinewidth": 1},
                )
            names = [f"|{o.quantity}|" if o.form == "size" else o.quantity for o in own]
            axes.set_yticks(places, names)
            axes.set_xlim(-1.05, 1.05)
            axes.axvline(0.0, color=REFERENCE, linewidth=0.8)
            axes.set_title(name)
            axes.set_xlabel("rank correlation [1]")
    return panels.figure


def _draw_curves(axes: Axes, one: SampledCurves) -> None:
    from matplotlib.collections import LineCollection

    t, values, passed = np.asarray(one.t), np.asarray(one.values), np.asarray(one.passed)
    strength = float(np.clip(12.0 / max(1, len(values)), 0.15, 0.9))
    for chosen, color, verb in ((passed, PASS, "pass"), (~passed, FAIL, "fail")):
        if chosen.any():
            lines = [np.column_stack([t, row]) for row in values[chosen]]
            level = {"alpha": strength} if color == PASS else {"alpha": 0.9, "zorder": 3}
            axes.add_collection(LineCollection(lines, colors=color, linewidths=0.8, **level))
            axes.plot(
                [],
                [],
                color=color,
                linestyle="-",
                label=f"sampled runs that {verb}: {chosen.sum()}",
            )
    with np.errstate(all="ignore"):
        kept = np.where(np.isfinite(values), values, -np.inf)
        largest = kept.max(axis=0, initial=-np.inf)
    axes.plot(
        t,
        np.where(np.isfinite(largest), largest, np.nan),
        color=PALETTE[4],
        linestyle=":",
        linewidth=2.2,
        label="largest of the samples",
    )
    for bound in one.bounds:
        above, beyond, _ = one.counts(bound)
        label = f"{bound.name}\n  sampled runs above it: {above}"
        if bound.assumption:
            label += f"\n  if {bound.assumption}\n  sampled runs outside this assumption: {beyond}"
        look = PROVED if bound.assumption else REQUIRED
        axes.plot(t, np.broadcast_to(np.asarray(bound.values), t.shape), label=label, **look)
    axes.set_title("\n".join(filter(None, (one.name, one.note))))
    axes.set_ylabel(f"{one.name} [{one.unit}]" if len(one.name) < 15 else f"[{one.unit}]")
    if one.log:
        logarithmic(axes)
        positive = values[np.isfinite(values) & (values > 0.0)]
        if len(positive):
            bottom, top = axes.get_ylim()
            low = max(float(np.quantile(positive, 0.02)), ROUNDING)
            axes.set_ylim(float(np.clip(bottom, low / 100.0, low)), top)
    side_legend(axes)


def _histogram(
    axes: Axes, values: np.ndarray, good: np.ndarray, limit: float, farthest: float = -np.inf
) -> None:
    """Bars of the worlds that keep a limit and of those that do not; it is an edge of the bins."""
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    if high - low > 1e-12 * max(abs(low), abs(high)):
        ends = [low, high, *(end for end in (limit, farthest) if np.isfinite(end))]
        seen = max(ends) - min(ends)
        width = max((high - low) / _BINS, seen / _THINNEST)
        start = low if not low < limit < high else limit - width * np.ceil((limit - low) / width)
        edges = start + width * np.arange(_BINS + 2)
    else:  # one bar for equal values
        width = 0.06 * max(abs(low - limit) if np.isfinite(limit) else abs(low), 1e-6)
        edges = low + width * np.array([-0.5, 0.5])
    middle = (edges[1:] + edges[:-1]) / 2.0
    below = np.zeros(len(middle))
    for chosen, color in ((good, PASS), (~good, FAIL)):
        counts = np.histogram(values[chosen], edges)[0]
        bars = counts > 0
        axes.bar(
            *(middle[bars], counts[bars], width),
            bottom=below[bars],
            color=color,
            edgecolor="white",
            linewidth=0.4,
        )
        below += counts


@dataclass
class _Panels:
    figure: Figure
    axes: list[Axes]

    def of(self, things: Iterable[Any]) -> Iterator[tuple[Axes, Any]]:
        return zip(self.axes, list(things)[: len(self.axes)], strict=True)


@contextmanager
def _panels(count: int, title: str, width: float = 3.7) -> Iterator[_Panels]:
    """Figure of up to `MOST` panels in rows of three."""
    drawn = min(count, MOST)
    columns = max(1, min(3, drawn))
    rows = max(1, -(-drawn // 3))
    with styled():
        figure = new_figure(max(6.5, width * columns), 0.8 + 2.9 * rows)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        figure.suptitle(title + (f" ({drawn} of {count})" if drawn < count else ""))
        for axes in grid[drawn:]:
            axes.set_axis_off()
        yield _Panels(figure, list(grid[:drawn]))
