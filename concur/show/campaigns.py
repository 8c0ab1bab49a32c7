"""Figures and page of a campaign: robustness, extremes, curves, influences, worst worlds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from concur.campaign import is_share
from concur.rounding import percent, percent_range
from concur.show.charts import WIDTH, Curve, Panel, chart, tiles
from concur.show.page import Marked, Section, write_page
from concur.show.style import EDGE, LETTER, PALETTE, REFERENCE, ROUNDING, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PASS, FAIL, NOISE = PALETTE[0], PALETTE[1], "#C8CED4"

MOST = 9
"""Panels of a figure, at most."""

PROVED: dict[str, Any] = {"color": PALETTE[2], "linestyle": "-."}
_LIMIT: dict[str, Any] = {"color": REFERENCE, "linestyle": "--", "linewidth": 1.2}

DECADE = 10.0
"""Largest ratio of values that a linear axis shows."""

_BINS = 30
_THINNEST = 60  # bars that fit between the values and their limit, at most
_RINGS = 5  # worst worlds that are marked
_WORST = 3  # requirements whose worst worlds are drawn
_TICK = 9.0  # size of the names of laws, points
_LINES = 3  # lines of a name that is not turned, at most
_AXIS = 0.8  # width of the numbers of a vertical axis, inches


def robustness_figure(result: Any) -> Figure:
    """Draw how often each robustness occurs, for each requirement.

    Parameters
    ----------
    result : CampaignResult
        The campaign, with worlds and requirements.

    Returns
    -------
    matplotlib.figure.Figure
        A histogram for each requirement, those that most worlds break first. Zero is the limit.
    """
    rows = []
    for (name, unit), own in zip(result.columns, np.asarray(result.robustness).T, strict=True):
        good, lost = own > 0.0, int(np.sum(~np.isfinite(own)))
        note = f", {lost} without a value" if lost else ""
        title = f"{name}\n{np.sum(~good)} of {len(own)} worlds fail{note}"
        rows.append(_Histogram(title, f"robustness [{unit or '1'}]", own, good, [0.0]))
    return _histograms("Robustness of the requirements in all worlds", rows)


def laws_figure(comparison: Any) -> Figure:
    """Draw errors and torques of laws in many worlds, side by side.

    Parameters
    ----------
    comparison : LawComparison
        The laws.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each error and one for the torques: a dot for each world, with lines at the
        median and the 95 % quantile; worlds without a value are crosses above. The axis is
        logarithmic where values differ by more than a decade.
    """
    laws, panels = comparison.laws, dict[str, list[np.ndarray]]()
    for law in laws:
        for (output, unit), values in law.errors.items():
            panels.setdefault(f"Error of {output} [{unit}]", []).append(values)
        shares = np.isfinite(law.share).any()
        unit, peak = next(iter(law.peak.items()))
        label = "Peak torque [% of limit]" if shares else f"Largest control [{unit}]"
        panels.setdefault(label, []).append(100.0 * law.share if shares else peak)
    names, look, height = _law_labels([law.name for law in laws])
    title = "Laws in the same worlds"
    with tiles(len(panels), title, height=2.2 + height, columns=1) as grid:
        for axes, (title, parts) in zip(grid, panels.items(), strict=True):
            _strips(axes, title, parts)
            axes.set_xticks(range(len(names)), names, **look)
        figure = cast(Figure, grid[0].figure)
        line: dict[str, Any] = {"color": EDGE, "linewidth": 1.4}
        lines = [
            Line2D([], [], linestyle="-", label="median", **line),
            Line2D([], [], linestyle="--", label="95 % of the worlds are below", **line),
        ]
        figure.legend(handles=lines, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _law_labels(names: list[str]) -> tuple[list[str], dict[str, Any], float]:
    """Names of laws below a panel, in lines or upright, so that none covers its neighbour.

    The names with their line breaks, how to turn them, and their height, inches.
    """
    room, letter = (WIDTH - _AXIS) / len(names), LETTER * _TICK / 72.0
    words = max(len(word) for name in names for word in name.split())
    lines = [wrapped(name, room - letter, _TICK) for name in names]
    most = max(text.count("\n") for text in lines) + 1
    if words * letter <= room - letter and most <= _LINES:
        return lines, {"parse_math": False}, 1.25 * _TICK / 72.0 * most
    return names, {"rotation": 90, "parse_math": False}, letter * max(map(len, names))


def _strips(axes: Axes, title: str, parts: list[np.ndarray]) -> None:
    """A column of dots for each law, on a logarithmic scale if they spread over a decade."""
    known = np.concatenate([part[np.isfinite(part) & (part > 0.0)] for part in parts])
    least, most = (known.min(), known.max()) if known.size else (0.1, 1.0)
    wide = most > DECADE * least
    floor = least if wide else 0.0
    for k, part in enumerate(parts):
        sound, color = np.isfinite(part), PALETTE[k % 7]
        places = k + 0.5 * (np.arange(len(part)) / max(len(part) - 1, 1) - 0.5)
        axes.scatter(places[sound], np.maximum(part[sound], floor), s=12, color=color, alpha=0.7)
        lost = np.full((~sound).sum(), (2.0 if wide else 1.1) * most)
        axes.scatter(places[~sound], lost, s=20, color=FAIL, marker="x")
        for share, style in ((0.5, "-"), (0.95, "--")):
            value = np.quantile(part, share, method="inverted_cdf")
            if np.isfinite(value):
                ends = [k - 0.35, k + 0.35]
                axes.plot(ends, [max(value, floor)] * 2, style, color=EDGE, linewidth=1.4)
    axes.set_yscale("log" if wide else "linear")
    axes.set_title(title)


def extremes_figure(result: Any, curves: Sequence[Any] = ()) -> Figure:
    """Draw how often each extreme of a signal occurs, such as the largest torque of a control.

    Parameters
    ----------
    result : CampaignResult
        The campaign, with worlds and signals.
    curves : sequence of SampledCurves
        Curves with the name of a signal, whose proved bounds are drawn.

    Returns
    -------
    matplotlib.figure.Figure
        A histogram for each signal, with its limit where there is one; those that break
        their limit most often first.
    """
    rows = []
    for (name, unit), own in zip(result.signals, np.asarray(result.extremes).T, strict=True):
        low, high = result.limits.get(name, (-np.inf, np.inf))
        ends, title = [end for end in (low, high) if np.isfinite(end)], name
        # A world without a value breaks no limit.
        good = ~((own < low) | (own > high))
        if ends:
            shown = " and ".join(f"{end:.4g}" for end in ends)
            title += f"\n{np.sum(~good)} beyond the limit {shown} {unit}".rstrip()
        proved = []
        for bound in (b for c in curves if c.name == name for b in c.bounds if b.assumption):
            proved.append(value := float(np.max(bound.values)))
            title += f"\n{np.sum(own > value)} above {value:.4g} {unit},\n{bound.name}"
        label = f"extreme [{unit or '1'}]"
        if is_share(name):
            if not (own > 0.0).any():
                continue
            label = "share of the time [1]"
        rows.append(_Histogram(title, label, own, good, ends, proved))
    return _histograms("Extremes of signals in all worlds", rows)


@dataclass(frozen=True)
class _Histogram:
    """Values in worlds, whether each is good, and the limits and proved bounds to draw."""

    title: str
    label: str
    values: np.ndarray
    good: np.ndarray
    limits: Sequence[float]
    proved: Sequence[float] = ()


def _histograms(title: str, rows: Sequence[_Histogram]) -> Figure:
    """Histograms with limits, those that most worlds break first."""
    order = sorted(rows, key=lambda row: (not row.limits, int(np.sum(row.good))))
    with tiles(len(order), title, MOST, 2.3) as grid:
        for axes, row in zip(grid, order, strict=False):
            _bars(axes, row)
            for look, ends in ((_LIMIT, row.limits), (PROVED, row.proved)):
                for end in ends:
                    axes.axvline(end, **look)
            axes.set(title=row.title, xlabel=row.label, ylabel="worlds")
    return _of(grid)


def curves_figure(curves: Sequence[Any]) -> Figure:
    """Draw curves of sampled runs, with the bounds that hold for them.

    Parameters
    ----------
    curves : sequence of SampledCurves
        One for each panel, at least one.

    Returns
    -------
    matplotlib.figure.Figure
        Panels over one time axis.
    """
    return chart("Sampled runs", [], [_sampled(one) for one in curves])


def _sampled(one: Any) -> Panel:
    values, passed = np.asarray(one.values), np.asarray(one.passed)
    strength = float(np.clip(12.0 / max(1, len(values)), 0.15, 0.9))
    found = []
    for chosen, color, verb in ((passed, PASS, "pass"), (~passed, FAIL, "fail")):
        if chosen.any():
            alpha = strength if verb == "pass" else 0.9
            label = f"runs that {verb}: {chosen.sum()}"
            found.append(
                Curve(values[chosen], label, "sample", color, style={"alpha": alpha}, t=one.t)
            )
    highest = np.where(np.isfinite(values), values, -np.inf).max(axis=0, initial=-np.inf)
    style = {"linestyle": ":", "linewidth": 2.0}
    found.append(Curve(highest, "largest of them", color=PALETTE[4], style=style, t=one.t))
    for bound in one.bounds:
        above, beyond, _ = one.counts(bound)
        label = f"{bound.name}; runs above it: {above}"
        if bound.assumption:
            label += f"\n  if {bound.assumption};\n  runs outside this assumption: {beyond}"
        held = np.broadcast_to(np.asarray(bound.values, dtype=float), np.shape(one.t))
        style = PROVED if bound.assumption else _LIMIT
        found.append(Curve(held, label, style=style, t=one.t))
    positive = values[np.isfinite(values) & (values > 0.0)]
    floor = max(float(np.quantile(positive, 0.02)) / 100.0, ROUNDING) if len(positive) else ROUNDING
    title = "\n".join(filter(None, (one.name, one.note)))
    return Panel(title, f"[{one.unit}]", found, log=one.log, floor=floor)


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
    robustness = np.asarray(result.robustness)[:, column]
    finite = np.isfinite(robustness)
    worst = [row for row in np.argsort(robustness, kind="stable") if finite[row]][:_RINGS]
    chosen = [labels.index(name) for name in quantities or labels[:3]]
    title = f"Robustness of {requirement}"
    if worst:
        title += f": the worst is world {result.numbers[worst[0]]}"
    with tiles(len(chosen), title, MOST) as grid:
        for axes, k in zip(grid, chosen, strict=False):
            x = np.asarray(result.worlds)[:, k]
            for color, rows in ((PASS, robustness > 0), (FAIL, robustness <= 0)):
                rows = finite & rows
                axes.plot(x[rows], robustness[rows], ".", color=color, markersize=4, alpha=0.6)
            axes.axhline(0.0, **_LIMIT)
            axes.plot(x[worst], robustness[worst], "o", color=EDGE, fillstyle="none", markersize=8)
            axes.plot(x[worst[:1]], robustness[worst[:1]], "x", color=EDGE, markersize=5)
            axes.margins(y=0.12)
            axes.set_xlabel(f"{labels[k]} [{result.quantities[k][1] or '1'}]")
        grid[0].set_ylabel(f"robustness [{result.columns[column][1] or '1'}]")
    return _of(grid)


def influence_figure(influences: Iterable[Any]) -> Figure:
    """Draw the rank correlations of the quantities with each requirement.

    Parameters
    ----------
    influences : iterable of RankInfluence
        Those of a campaign, at least one.

    Returns
    -------
    matplotlib.figure.Figure
        Bars with intervals for each requirement, the strongest on top; grey ones may be noise.
    """
    rows: dict[str, list[Any]] = {}
    for one in influences:
        rows.setdefault(one.requirement, []).append(one)
    order = sorted(rows, key=lambda name: -abs(rows[name][0].correlation) * rows[name][0].shown)
    title = "Rank correlation of quantities with robustness (grey: may be noise)"
    with tiles(len(order), title, MOST) as grid:
        for axes, name in zip(grid, order, strict=False):
            own = rows[name][:8]
            values = np.array([one.correlation for one in own])
            ends = [values - [one.low for one in own], [one.high for one in own] - values]
            colors = [(FAIL if o.correlation < 0.0 else PASS) if o.shown else NOISE for o in own]
            places = np.arange(len(own))[::-1]
            look = {"ecolor": EDGE, "capsize": 2, "elinewidth": 1}
            axes.barh(places, values, color=colors, xerr=np.maximum(ends, 0.0), error_kw=look)
            axes.set_yticks(places, [_form(one) for one in own])
            axes.set_xlim(-1.05, 1.05)
            axes.axvline(0.0, color=REFERENCE, linewidth=0.8)
            axes.set_title(name)
            axes.set_xlabel("rank correlation [1]")
    return _of(grid)


def write_campaign(report: Any, directory: str | PathLike[str]) -> Path:
    """Write the page of a campaign.

    Parameters
    ----------
    report : CampaignReport
        The answers of the campaign.
    directory : str or path-like
        Folder of the page; created if it does not exist.

    Returns
    -------
    pathlib.Path
        The page.
    """
    reasons = [f"{report.rates[0]}.", *(f"{p}." for p in report.problems), report.note]
    title = f"Campaign of {report.name}" if report.name else "Campaign"
    headline = report.sentence[0].upper() + report.sentence[1:]
    return write_page(directory, title, report.passed, headline, reasons, _sections(report))


def _sections(report: Any) -> Iterator[Section]:
    result = report.result
    rows = []
    for rate, (_, unit), own in zip(report.rates[1:], result.columns, report.shares, strict=True):
        interval = "–"
        if rate.low is not None:
            interval = " to ".join(percent_range(rate.low, rate.high))
        cells = [rate.name, f"{rate.passed} of {rate.worlds}", interval]
        cells += [_shown(value, unit) for value in own]
        rows.append(Marked(cells, rate.passed == rate.worlds))
    head = ["Requirement", "Pass", f"{percent(report.confidence)} interval"]
    head += ["Lowest robustness", "5 % quantile", "Median"]
    text = "The robustness of a requirement is positive where it holds; zero is the limit."
    caption = "Robustness of each requirement in all sampled worlds; left of zero it fails."
    figure = robustness_figure(result) if result.columns and len(result) else None
    yield Section("Requirements", text, head, rows, {"robustness": (figure, caption)})
    yield from _worst_cases(report)
    yield from _sensitivity(report)
    if report.curves:
        yield _runs(report.curves)
    if result.signals and len(result):
        caption = "Extremes in each world; dashed lines are limits, green ones need the "
        caption += "assumptions of a proof."
        figures = {"extremes": (extremes_figure(result, report.curves), caption)}
        yield Section("Signals", figures=figures)
    if report.comparisons:
        head = ["Requirement", "Both pass", "Only first", "Only second", "Difference"]
        pairs = [
            [one.name, one.both, len(one.only_first), len(one.only_second), one.interval]
            for one in report.comparisons
        ]
        text = "The first controller is the other one, the second is that of this campaign."
        yield Section("Comparison in the same worlds", text, head, pairs)
    yield Section("Campaign", "", ["Fact", "Value"], list(report.content.items()), folded=True)


def _runs(curves: Sequence[Any]) -> Section:
    """Curves, and the bounds that are proved under assumptions."""
    rows = []
    for curve in curves:
        for bound in curve.bounds:
            above, beyond, contrary = curve.counts(bound)
            if bound.assumption:
                cells = [curve.name, bound.name, bound.assumption, beyond, above, contrary]
                rows.append(Marked(cells, False if contrary else None))
    text = "The curves are samples."
    if rows:
        text += (
            " A proof holds for all motions that keep its assumptions, and for no others: runs "
            "that leave them may exceed its bound. An estimate rests on these runs."
        )
    head = ["Curve", "Bound", "Assumption", "Runs beyond it", "Runs above the bound"]
    caption = "Sampled runs over time; dashed bounds are required, green ones need assumptions."
    figures = {"curves": (curves_figure(curves), caption)}
    return Section("Runs", text, [*head, "Above within the assumption"], rows, figures)


def _sensitivity(report: Any) -> Iterator[Section]:
    if report.influences:
        rows = []
        for name, _ in report.result.columns:
            strongest = report.strongest(name)
            texts = [f"{_form(one)} ({one.correlation:+.2f})" for one in strongest]
            rows.append([name, ", ".join(texts) or "none beyond noise"])
        text = (
            "Rank correlation with the robustness: negative if a larger value reduces it; |x| is "
            "the distance from nominal. The probability of a false entry in this table is at most "
            f"{percent(1.0 - report.confidence)}{' at this look alone' * report.result.grown}."
        )
        caption = "Rank correlations with intervals; grey bars may be noise."
        figures = {"influences": (influence_figure(report.influences), caption)}
        yield Section("Influences", text, ["Requirement", "Strongest quantities"], rows, figures)
    if report.sobol:
        indices = [
            [one.requirement, one.quantity,
             f"{one.first:.2f} ({one.first_low:.2f} to {one.first_high:.2f})",
             f"{one.total:.2f} ({one.total_low:.2f} to {one.total_high:.2f})"]
            for one in report.sobol
        ]  # fmt: skip
        head = ["Requirement", "Quantity", "First-order index", "Total index"]
        text = "Shares of the variance of the robustness: alone, and with all interactions."
        yield Section("Sobol indices", text, head, indices)


def _worst_cases(report: Any) -> Iterator[Section]:
    result, searched = report.result, {one.requirement: one for one in report.found}
    units, rows = dict(result.quantities), []
    for one in report.worst:
        names = [influence.quantity for influence in report.strongest(one.requirement)]
        deviations = [f"{name} {_shown(one.deviations[name], units[name])}" for name in names]
        search = searched.get(one.requirement)
        cells = [one.requirement, one.number, one.reason or _shown(one.value, one.unit)]
        cells += [", ".join(deviations) or "–", report.files.get(one.requirement, "–")]
        cells += [_shown(search.value, search.unit) if search else "–"]
        rows.append(Marked(cells, min(one.value, search.value if search else one.value) > 0.0))
    if not rows:
        return
    order = sorted(range(len(report.rates) - 1), key=lambda k: report.rates[k + 1].passed)
    figures = {}
    for k in order[:_WORST] if result.quantities else ():
        name = result.columns[k][0]
        figure = worst_figure(result, name, [one.quantity for one in report.strongest(name)])
        figures[f"worst-{k}"] = (figure, f"{name} over the quantities that matter most.")
    text = "The sampled world with the lowest robustness, and the lowest one of the search."
    head = ["Requirement", "World", "Robustness", "Deviations that matter", "File", "Search"]
    yield Section("Worst worlds", text, head, rows, figures)


def _bars(axes: Axes, row: _Histogram) -> None:
    """Bars of the worlds that keep a limit and of those that do not; it is an edge of the bins."""
    finite = np.isfinite(row.values)
    values, good = row.values[finite], row.good[finite]
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    limit = row.limits[0] if row.limits else np.inf
    if high - low > 1e-12 * max(abs(low), abs(high)):
        ends = [low, high, *row.limits[:1], *row.proved]
        width = max((high - low) / _BINS, (max(ends) - min(ends)) / _THINNEST)
        start = low if not low < limit < high else limit - width * np.ceil((limit - low) / width)
        edges = start + width * np.arange(_BINS + 2)
    else:  # one bar for equal values
        width = 0.06 * max(abs(low - limit) if row.limits else abs(low), 1e-6)
        edges = low + width * np.array([-0.5, 0.5])
    parts = [values[good], values[~good]]
    look: dict[str, Any] = {"color": [PASS, FAIL], "edgecolor": "white", "linewidth": 0.4}
    axes.hist(parts, list(edges), stacked=True, **look)


def _of(grid: Sequence[Axes]) -> Figure:
    return cast(Figure, grid[0].get_figure())


def _form(one: Any) -> str:
    return f"|{one.quantity}|" if one.form == "size" else str(one.quantity)


def _shown(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "no value"
    return f"{value:.4g} {unit if unit != '1' else ''}".strip().replace("-", "−")
