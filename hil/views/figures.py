"""Figures of a record, without any recomputation."""

from __future__ import annotations

from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import (
    PALETTE,
    REFERENCE,
    Curve,
    Panel,
    chart,
    make_directory,
    output_color,
    save_picture,
)
from hil.guard import Flag
from hil.reasons import Reason, State
from hil.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


STATE_COLORS = {
    State.DISARMED: "#D5DBE1",
    State.ARMED: "#E69F00",
    State.RUN: "#009E73",
    State.STOP: "#D55E00",
}
_SHADE = "#EEF0F2"

CAPTIONS = {
    "errors": "Tracking errors by output and unit. Grey: the law's torques were not sent.",
    "torques": "Torques commanded by the law, sent after the guard, and measured by the drives, "
    "with the limits of the rig.",
    "timing": "Lateness of the cycles after their deadlines, and their computing times.",
    "guard": "State of the latch, cycles whose torques the guard changed, cycles in which the law "
    "kept a limit, and counters of late and limited cycles and of missing reports.",
}


def error_figure(record: Record) -> Figure:
    """Draw the tracking errors, by output and unit.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        The norm on a logarithmic axis, and the coordinates.
    """
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for i, (name, unit) in enumerate(record.columns("error")):
        output, _, coordinate = name.rpartition(".")
        groups.setdefault((output, unit), []).append((i, coordinate))
    outputs = list(dict.fromkeys(output for output, _ in groups))
    run, panels = _runs(record), []
    # Outside of a run the law is evaluated too, for a reference that is not followed.
    error = _only(record["error"], run)
    for (output, unit), members in groups.items():
        kind = {"m": "position", "rad": "rotation"}.get(unit, unit)
        part = error[:, [i for i, _ in members]]
        norm, color = np.linalg.norm(part, axis=1), output_color(outputs.index(output))
        curve = Curve(norm, _last(norm[run], unit), color=color)
        panels.append(Panel(f"{output}: {kind}", f"|error| [{unit}]", [curve], log=True))
        coordinates = [
            Curve(column, name) for column, (_, name) in zip(part.T, members, strict=True)
        ]
        panels.append(Panel(f"{output}: coordinates", f"error [{unit}]", coordinates))
    return _chart(f"Tracking error of {_name(record)}", record, panels)


def torque_figure(record: Record) -> Figure:
    """Draw the torques of each axis: commanded, sent, measured, and their limits.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each axis.
    """
    demand = _only(record["demand"], record["state"] == State.RUN)
    sent, measured = record["torque"], record["measured"]
    limits, panels = record.manifest.get("limits", {}), []
    for i, (name, unit) in enumerate(record.columns("torque")):
        limit = float(limits.get(name, {}).get("torque", np.inf))
        label = f"sent, at most {_largest(np.abs(sent[:, i])):.3g} {unit}"
        curves = [  # mostly equal: each line is narrower than the one before
            Curve(demand[:, i], "demand", color=REFERENCE, style={"linewidth": 4.0, "alpha": 0.35}),
            Curve(measured[:, i], "measured", "wide", PALETTE[4]),
            Curve(sent[:, i], label, "line", PALETTE[0], (-limit, limit)),
        ]
        panels.append(Panel(name, f"[{unit}]", curves))
    figure = _chart(f"Torques of {_name(record)}", record, panels)
    for axes, panel in zip(figure.axes, panels, strict=False):
        # A large commanded torque must not flatten the line of the sent torque.
        _frame(axes, np.concatenate([curve.values for curve in panel.curves[1:]]), panel.curves[2])
    return figure


def timing_figure(record: Record) -> Figure:
    """Draw lateness and computing time of the cycles over time, with their quantiles.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        Microseconds on logarithmic axes.
    """
    period = 1e6 / float(record.manifest.get("rate", np.nan))
    late = np.maximum(1e6 * (record["time"] - record["deadline"]), 0.0)
    parts = [
        ("Lateness of each cycle", late, PALETTE[1], 0.5, "half a period: late"),
        ("Computing time of each cycle", 1e6 * record["compute"], PALETTE[0], 1.0, "a period"),
    ]
    panels = []
    for title, values, color, share, word in parts:
        good = values[np.isfinite(values)]
        label = "zero throughout"  # in simulated time no cycle is late
        if good.any():
            ends = np.quantile(good, [0.5, 0.999, 1.0])
            label = "median {:.3g} µs, 99.9 % {:.3g} µs, largest {:.3g} µs".format(*ends)
        look = {"marker": ".", "markersize": 2.0, "rasterized": True}
        shown = np.where(np.isfinite(values), np.maximum(values, 0.1), np.nan)
        curves = [
            Curve(shown, label, "dots", color, style=look),
            Curve(np.full(len(values), share * period), word, "limit"),
        ]
        panels.append(Panel(title, "time [µs]", curves, log=True, floor=0.1))
    return _chart(f"Cycles of {_name(record)}: period {period:.6g} µs", record, panels)


def guard_figure(record: Record) -> Figure:
    """Draw the state of the latch, the guard's flags, active limits of the law, and counters.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over one time axis, and one more if a limit of the law was active.
    """
    flags = np.nan_to_num(record["flags"]).astype(np.int64) * (record["state"] == State.RUN)
    names = [flag for flag in Flag if flag.value]
    hits = [flags & flag.value != 0 for flag in names]
    limits = active_limits(record)
    marks = [hits, list(limits.values())]
    changes, kept = (
        [
            Curve(np.where(hit, row, np.nan), look="dots", style={"marker": "|", "markersize": 9.0})
            for row, hit in enumerate(rows)
        ]
        for rows in marks
    )
    counters = [
        Curve(
            record[name],
            f"{name}: {record[name][-1] if len(record) else 0.0:.6g}",
            style={"drawstyle": "steps-post"},
        )
        for name in ("late", "lost", "clipped")
    ]
    nothing = np.full(len(record), np.nan)
    states = [
        Curve(nothing, state.name, color=color, style={"linewidth": 8.0})
        for state, color in STATE_COLORS.items()
    ]
    panels = [
        Panel("State of the latch", "", states),
        Panel("Torques changed", "", changes),
        *([Panel("Limits of the law that were active", "", kept)] if kept else []),
        Panel("Counters", "cycles, reports", counters, zero=True),
    ]
    figure = _chart(f"Guard of {_name(record)}: {reason_name(record)}", record, panels)
    top, *middle, _ = figure.axes
    for state, begin, end in _spans(record):
        top.axvspan(begin, end, color=STATE_COLORS.get(state, "white"))
    top.set_yticks([])
    labels = [_words(flag.name) for flag in names], list(limits)
    for axes, rows, texts in zip(middle, marks, labels, strict=False):
        words = [f"{text}: {int(hit.sum())} cycles" for text, hit in zip(texts, rows, strict=True)]
        axes.set_yticks(range(len(words)), words)
        axes.set_ylim(len(words) - 0.4, -0.6)
    return figure


def _chart(title: str, record: Record, panels: Sequence[Panel]) -> Figure:
    """Panels over time; grey while the law's torques were not sent."""
    figure = chart(title, record.time, panels or [Panel("No outputs", "", [])])
    for axes in figure.axes:
        for state, begin, end in _spans(record):
            if state is not State.RUN:
                axes.axvspan(begin, end, color=_SHADE, zorder=0)
        if len(record) > 1:
            axes.set_xlim(0.0, record.duration)
    return figure


FIGURES = {
    "errors": error_figure,
    "torques": torque_figure,
    "timing": timing_figure,
    "guard": guard_figure,
}
"""All figures of a record by name."""


def save_figures(record: Record, directory: str | PathLike[str]) -> dict[str, Path]:
    """Draw all figures of a record into PNG files.

    Parameters
    ----------
    record : Record
        A record.
    directory : str or os.PathLike
        Target folder; created if it is missing.

    Returns
    -------
    dict of str to pathlib.Path
        The files by name of the figure.

    Raises
    ------
    ConcurError
        If a file cannot be written.
    """
    folder = make_directory(directory)
    return {
        name: save_picture(draw(record), folder / f"{name}.png") for name, draw in FIGURES.items()
    }


def reason_name(record: Record) -> str:
    """Reason for the end of a run, as a sentence.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    str
        Sentence of the last cycle's `Reason`, or the end in the record's manifest.
    """
    reasons = record["reason"]
    known = {int(reason): reason for reason in Reason if reason}
    last = known.get(int(np.nan_to_num(reasons[-1]))) if len(reasons) else None
    if last is not None:
        return last.sentence
    end = record.manifest.get("end") or {}
    return str(end.get("reason", "the run was not ended"))


def active_limits(record: Record) -> dict[str, NDArray[np.bool_]]:
    """Cycles of the run in which each limit of the law was active, of those that were.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    dict of str to numpy.ndarray
        By name of the limit, shape (rows,).
    """
    names = record.layout.limits
    flags = record["active"] == 1.0 if names else np.zeros((len(record), 0), dtype=np.bool_)
    flags = flags & (record["state"] == State.RUN)[:, None]
    return {name: hit for name, hit in zip(names, flags.T, strict=True) if hit.any()}


def _name(record: Record) -> str:
    return str(record.manifest.get("name", record.folder.name))


def _words(name: str | None) -> str:
    return (name or "").replace("_", " ").lower()


def _runs(record: Record) -> NDArray[np.bool_]:
    """Rows of the run; all rows if there is none."""
    run = record["state"] == State.RUN
    return run if run.any() else np.ones(len(record), dtype=np.bool_)


def _only(values: NDArray[np.float64], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Columns with NaN outside of the selected rows."""
    return np.where(rows[:, None], values, np.nan)


def _spans(record: Record) -> list[tuple[State, float, float]]:
    """State, begin and end of each stretch of one state, s."""
    t, states = record.time, record["state"]
    spans: list[tuple[State, float, float]] = []
    borders = [0, *(np.flatnonzero(np.diff(states) != 0.0) + 1).tolist(), len(states)]
    known = {int(state): state for state in State}
    for begin, end in pairwise(borders):
        if begin < end and states[begin] in known:
            last = t[end] if end < len(t) else t[-1]
            spans.append((known[int(states[begin])], float(t[begin]), float(last)))
    return spans


def _frame(axes: Axes, values: NDArray[np.float64], limited: Curve) -> None:
    """Set limits of the axis around finite values, and around their limit if it is near."""
    finite, limit = values[np.isfinite(values)], limited.limits[1]
    if not finite.size:
        return
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or 1.0
    low, high = low - room, high + room
    if limit < 2.0 * max(-low, high):
        low, high = min(low, -1.08 * limit), max(high, 1.08 * limit)
    axes.set_ylim(low, high)


def _largest(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _last(values: NDArray[np.float64], unit: str) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "none"
    return f"last {finite[-1]:.2g} {unit}, largest {finite.max():.2g} {unit}"
