"""Figure of several runs: errors, controls and margins over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from concur.show.errors import TIME
from concur.show.style import PALETTE, logarithmic, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_figure(comparison: Any) -> Figure:
    """Draw errors, controls and margins of several runs over time.

    Parameters
    ----------
    comparison : Comparison
        Runs with their names, made by `concur.compare`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the norm of the errors of each output by unit, one for the norm of the
        controls by unit, and one for the decoupling margin. A run has one colour in all panels.

    Examples
    --------
    >>> comparison_figure(comparison).savefig("comparison.png")    # doctest: +SKIP
    """
    runs, names = comparison.runs, comparison.names
    curves: list[tuple[str, str, bool, list[Any]]] = [
        (f"error of {name}", f"|error| [{unit}]", True, [run.errors[name, unit] for run in runs])
        for name, unit in runs[0].errors
    ]
    for unit in dict.fromkeys(unit for run in runs for unit in run.controls):
        what = {"N m": "torques", "N": "forces"}[unit]
        parts = [run.u[:, run.controls[unit]] if unit in run.controls else None for run in runs]
        curves.append((what, f"|{what}| [{unit}]", False, parts))
    margins = [np.reshape(run.margin, (-1, 1)) for run in runs]
    curves.append(("decoupling margin", "margin", False, margins))
    with styled():
        rows = (len(curves) + 1) // 2
        figure = new_figure(11.0, 1.0 + 2.9 * rows + 0.2 * len(names))
        grid = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, (title, label, log, parts) in zip(grid, curves, strict=False):
            for number, (run, part) in enumerate(zip(runs, parts, strict=True)):
                if part is None:
                    continue
                dashes = ("-", "--", ":")[number // len(PALETTE) % 3]
                axes.plot(
                    run.t,
                    np.linalg.norm(part, axis=1),
                    color=PALETTE[number % len(PALETTE)],
                    linestyle=dashes,
                    # Curves that coincide remain visible.
                    linewidth=max(1.2, 3.2 - 0.8 * number),
                )
            axes.set_title(title)
            axes.set_ylabel(label)
            axes.set_xlabel(TIME)
            if log:
                logarithmic(axes)
            else:
                axes.set_ylim(0.0, 1.08 * max(1e-12, axes.dataLim.y1))
        for axes in grid[len(curves) :]:
            axes.set_axis_off()
        lines = grid[len(curves) - 1].get_lines()
        figure.legend(lines, names, loc="outside lower center", ncols=min(3, len(names)))
        return figure
