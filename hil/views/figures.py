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
    TIME,
    logarithmic,
    make_directory,
    new_figure,
    output_color,
    save_picture,
    side_legend,
    styled,
)
from hil.guard import Flag
from hil.reasons import Reason, State
from hil.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


STATE_COLORS = {
    State.DISARMED: "#D5DBE1",
    State.ARMED: "#E69F00",
    State.RUN: "#009E73",
    State.STOP: "#D55E00",
}
_SHADE = "#EEF0F2"
_COLUMNS = 2
_ROWS_OF_ONE_COLUMN = 6

CAPTIONS = {
    "errors": "Tracking errors by output and unit. Grey: the law's torques were not sent.",
    "torques": "Torques commanded by the law, sent after the guard, and measured by the drives, "
    "with the limits of the rig.",
    "timing": "Lateness of the cycles after their deadlines, and their computing times.",
    "guard": "State of the latch, changes by the guard, and counters.",
}


def error_figure(record: Record) -> Figure:
    """Draw the tracking errors: one column for each output and unit.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        Top: the norm on a logarithmic axis; bottom: the coordinates.
    """
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for i, (name, unit) in enumerate(record.columns("error")):
        output, _, coordinate = name.rpartition(".")
        groups.setdefault((output, unit), []).append((i, coordinate))
    outputs = list(dict.fromkeys(output for output, _ in groups))
    run = _runs(record)
    # Outside of a run the law is evaluated too, for a reference that is not followed.
    t, error = record.time, _only(record["error"], run)
    with styled():
        figure = new_figure(max(6.5, 4.3 * len(groups)), 6.2)
        grid = figure.subplots(2, max(len(groups), 1), sharex=True, squeeze=False)
        figure.suptitle(f"Tracking error of {_name(record)}")
        for (top, bottom), ((output, unit), members) in zip(grid.T, groups.items(), strict=True):
            kind = {"m": "position", "rad": "rotation"}.get(unit, unit)
            part = error[:, [i for i, _ in members]]
            norm = np.linalg.norm(part, axis=1)
            label = _last(norm[run], unit)
            top.plot(t, norm, color=output_color(outputs.index(output)), linewidth=1.0, label=label)
            top.set_title(f"{output}: {kind}")
            top.set_ylabel(f"|error| [{unit}]")
            logarithmic(top)
            top.legend()
            for column, (_, coordinate) in zip(part.T, members, strict=True):
                bottom.plot(t, column, linewidth=1.0, linestyle="-", label=coordinate)
            _frame(bottom, part[run])
            bottom.set_ylabel(f"error coordinates [{unit}]")
            bottom.set_xlabel(TIME)
            bottom.legend(ncols=min(3, len(members)))
            for axes in (top, bottom):
                _shade(axes, record)
        return figure


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
    t, names = record.time, record.columns("torque")
    demand = _only(record["demand"], record["state"] == State.RUN)
    sent, measured = record["torque"], record["measured"]
    limits = record.manifest.get("limits", {})
    columns = 1 if len(names) <= _ROWS_OF_ONE_COLUMN else _COLUMNS
    rows = -(-len(names) // columns)
    with styled():
        figure = new_figure(9.0 if columns == 1 else 13.0, 1.2 + 1.75 * rows)
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
        panels = grid.T.reshape(-1)
        figure.suptitle(f"Torques of {_name(record)}")
        for i, (axes, (name, unit)) in enumerate(zip(panels, names, strict=False)):
            # The lines mostly coincide: each is narrower than the one before.
            axes.plot(t, demand[:, i], color=REFERENCE, linewidth=4.0, alpha=0.35, label="demand")
            axes.plot(t, measured[:, i], color=PALETTE[4], linewidth=2.0, label="measured")
            axes.plot(t, sent[:, i], color=PALETTE[0], linewidth=0.8, label="sent")
            # A large commanded torque must not flatten the line of the sent torque.
            _frame(axes, np.column_stack([sent[:, i], measured[:, i]]))
            limit = float(limits.get(name, {}).get("torque", np.inf))
            low, high = axes.get_ylim()
            if limit < 2.0 * max(-low, high):
                for end in (-limit, limit):
                    axes.axhline(end, color=REFERENCE, linestyle="-.", linewidth=1.0)
                axes.set_ylim(min(low, -1.08 * limit), max(high, 1.08 * limit))
            bound = f"±{limit:.3g} {unit}" if np.isfinite(limit) else "none"
            peak = _largest(np.abs(sent[:, i]))
            axes.set_title(f"{name}: at most {peak:.3g} {unit}, limit {bound}")
            axes.set_ylabel(f"[{unit}]")
            _shade(axes, record)
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        for axes in grid[-1]:
            axes.set_xlabel(TIME)
        if len(names):
            lines = panels[0].get_lines()[:3]
            figure.legend(handles=lines, loc="outside lower center", ncols=3)
        return figure


def timing_figure(record: Record) -> Figure:
    """Draw lateness and computing time of the cycles, over time and as histograms.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        Microseconds on logarithmic axes.
    """
    t = record.time
    period = 1e6 / float(record.manifest.get("rate", np.nan))
    late = np.maximum(1e6 * (record["time"] - record["deadline"]), 0.0)
    parts = [
        ("lateness", "Lateness of each cycle", late, PALETTE[1], 0.5, "half a period: late"),
        (
            "compute",
            "Computing time of each cycle",
            1e6 * record["compute"],
            PALETTE[0],
            1.0,
            "a period",
        ),
    ]
    with styled():
        figure = new_figure(11.0, 6.4)
        grid = figure.subplots(2, 2, width_ratios=(1.7, 1.0), squeeze=False)
        figure.suptitle(f"Cycles of {_name(record)}: period {period:.6g} µs")
        for (left, right), (name, title, values, color, share, word) in zip(
            grid, parts, strict=True
        ):
            finite = np.isfinite(values)
            good = values[finite]
            shown = np.maximum(good, 0.1)
            # In simulated time no cycle is late; a logarithmic axis has no zero.
            zero = not good.any()
            left.plot(
                t[finite],
                shown,
                visible=not zero,
                color=color,
                linestyle="none",
                marker=".",
                markersize=2.0,
                rasterized=True,
            )
            left.set_title(title)
            left.set_ylabel(f"{name} [µs]")
            left.axhline(share * period, color=REFERENCE, linestyle="--", linewidth=1.0, label=word)
            logarithmic(left, 0.1)
            left.set_ylim(None, max(left.get_ylim()[1], 2.0 * share * period))
            left.legend(loc="upper right")
            _shade(left, record)
            if zero:
                words = f"{name}: zero throughout"
                left.text(0.5, 0.4, words, transform=left.transAxes, ha="center")
                right.set_axis_off()
            else:
                edges = np.geomspace(shown.min() * 0.95, max(shown.max(), 1.0) * 1.05, 60)
                right.hist(shown, bins=edges, color=color, alpha=0.85)
                for quantile, style in ((0.5, "-"), (0.999, "--"), (1.0, ":")):
                    value = float(np.quantile(good, quantile))
                    label = {0.5: "median", 0.999: "99.9 %", 1.0: "largest"}[quantile]
                    right.axvline(
                        max(value, 0.1),
                        color="black",
                        linestyle=style,
                        linewidth=1.0,
                        label=f"{label} {value:.3g} µs",
                    )
                right.set_xscale("log")
                right.set_yscale("log")
                right.set_ylim(0.7, None)
                side_legend(right)
            right.set_xlabel(f"{name} [µs]")
            right.set_ylabel("cycles")
        grid[-1, 0].set_xlabel(TIME)
        return figure


def guard_figure(record: Record) -> Figure:
    """Draw the state of the latch, the guard's flags, and the loop's counters over time.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over one time axis.
    """
    from matplotlib.patches import Patch

    t = record.time
    flags = np.nan_to_num(record["flags"]).astype(np.int64) * (record["state"] == State.RUN)
    names = [flag for flag in Flag if flag.value]
    with styled():
        figure = new_figure(10.0, 6.6)
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(0.8, 2.0, 2.2))
        why = reason_name(record)
        figure.suptitle(f"Guard of {_name(record)}: {why}")
        _shade(bottom, record)
        _shade(middle, record)
        for state, begin, end in _spans(record):
            top.axvspan(begin, end, color=STATE_COLORS.get(state, "white"))
        top.set_yticks([])
        top.grid(visible=False)
        top.set_title("State of the latch")
        patches = [Patch(color=color, label=state.name) for state, color in STATE_COLORS.items()]
        top.legend(
            handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.15), borderaxespad=0.0
        )
        for row, flag in enumerate(names):
            hit = flags & flag.value != 0
            middle.plot(
                t[hit],
                np.full(int(hit.sum()), row),
                linestyle="none",
                marker="|",
                markersize=9.0,
                color=PALETTE[row % len(PALETTE)],
            )
        labels = [
            f"{_words(flag.name)}: {int((flags & flag.value != 0).sum())} cycles" for flag in names
        ]
        middle.set_yticks(range(len(names)), labels)
        middle.set_ylim(len(names) - 0.4, -0.6)
        middle.set_title("Changes of passed torques by the guard")
        for number, name in enumerate(("late", "lost", "stale", "clipped")):
            values = record[name]
            last = values[-1] if len(values) else 0.0
            bottom.step(
                t,
                values,
                where="post",
                color=PALETTE[number],
                linestyle=("-", "--", "-.", ":")[number],
                label=f"{name}: {last:.6g}",
            )
        bottom.set_title("Counters: late and limited cycles; missing and repeated reports")
        bottom.set_ylabel("number")
        bottom.set_ylim(0.0, max(1.0, 1.08 * bottom.get_ylim()[1]))
        bottom.set_xlabel(TIME)
        side_legend(bottom)
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


def _shade(axes: Axes, record: Record) -> None:
    """Shade the time in which the law's torques were not sent."""
    for state, begin, end in _spans(record):
        if state is not State.RUN:
            axes.axvspan(begin, end, color=_SHADE, zorder=0)
    if len(record) > 1:
        axes.set_xlim(0.0, record.duration)


def _frame(axes: Axes, values: NDArray[np.float64]) -> None:
    """Set limits of the axis around finite values, with a margin."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)


def _largest(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _last(values: NDArray[np.float64], unit: str) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "none"
    return f"last {finite[-1]:.2g} {unit}, largest {finite.max():.2g} {unit}"
