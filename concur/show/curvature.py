"""Figure of a connection's curvature over two coordinates of the shape, with a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import CenteredNorm

from concur.show.style import REFERENCE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.show.style import Floats

_GRID = 81
_POINTS = 401
# Room around the loop, relative to its larger extent.
_MARGIN = 0.25
# Changes of the curvature, relative to its size, below which it counts as constant.
_CONSTANT = 1e-9


def curvature_figure(
    model: Any,
    loop: Any,
    curvature: Callable[[Floats], Floats],
    pair: tuple[int, int],
    name: str,
    units: tuple[str, str, str],
) -> Figure:
    """Draw the curvature over two coordinates of the shape, with the loop.

    Parameters
    ----------
    model : ReducedModel
        The reduced model, with `name` and `shape_names`.
    loop : Loop
        The loop.
    curvature : callable
        Displacement per area of the pair at shapes (k, n), returned as (k,).
    pair : tuple of int
        The two coordinates.
    name : str
        Name of the freedom that is displaced.
    units : tuple of str
        Units of this freedom and of the two coordinates, m or rad.

    Returns
    -------
    matplotlib.figure.Figure
        One panel: curvature in colours, zero drawn as a line, and the loop with its direction.
        The other coordinates are those of the centre of the loop.

    Examples
    --------
    >>> plan.plot().savefig("loop.png")    # doctest: +SKIP
    """
    i, j = pair
    path = loop.places(np.linspace(0.0, 1.0, _POINTS))[:, [i, j]]
    path = path[:: int(np.sign(loop.cycles))]
    middle = (path.min(axis=0) + path.max(axis=0)) / 2
    reach = (0.5 + _MARGIN) * max(float(np.ptp(path, axis=0).max()), 1e-3)
    low, high = middle - reach, middle + reach
    first, second = np.meshgrid(*np.linspace(low, high, _GRID).T)
    places = np.tile(np.asarray(loop.center, dtype=float), (first.size, 1))
    places[:, i], places[:, j] = first.ravel(), second.ravel()
    values = np.asarray(curvature(places), dtype=float).reshape(first.shape)
    size = float(np.abs(values).max()) or 1.0
    varies = np.ptp(values) > _CONSTANT * size
    area, cycles = float(loop.areas[i, j]), abs(loop.cycles)
    with styled():
        figure = new_figure(7.6, 5.6)
        axes = figure.subplots()
        # Both signs always have their own colour; a constant curvature has a light one.
        norm = CenteredNorm(0.0, size if varies else 3.0 * size)
        colours = axes.pcolormesh(
            first, second, values, cmap="RdBu_r", norm=norm, shading="gouraud", rasterized=True
        )
        if varies:
            levels = axes.contour(first, second, values, 8, colors=REFERENCE, linewidths=0.5)
            axes.clabel(levels, fontsize=7, fmt="%.2g")
        bar = figure.colorbar(colours, ax=axes)
        bar.set_label(f"{name}: displacement per area [{units[0]} / ({units[1]} {units[2]})]")
        label = f"loop, area {area / cycles:.3g}" + (f", {cycles} cycles" if cycles > 1 else "")
        axes.plot(path[:, 0], path[:, 1], color="black", linewidth=2.0, label=label)
        for k in range(_POINTS // 8, _POINTS - 1, _POINTS // 4):
            axes.annotate(
                "",
                path[k + 1],
                path[k],
                arrowprops={"arrowstyle": "-|>", "color": "black", "mutation_scale": 16},
            )
        axes.plot(*path[0], color="black", marker="o", linestyle="none", label="start and end")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set_aspect("equal")
        axes.grid(visible=False)
        axes.set_xlabel(f"{model.shape_names[i]} [{units[1]}]")
        axes.set_ylabel(f"{model.shape_names[j]} [{units[2]}]")
        axes.set_title(f"{model.name}: curvature over the shape, and the loop")
        axes.legend(loc="upper left")
        return figure
