"""Figure of the bounds of a proof over time, with sampled worlds inside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.show.errors import TIME
from concur.show.style import PALETTE, REFERENCE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats

COLUMNS = 4
"""Panels of a row."""

NEAR = 1.6
"""Size of a limit, in parts of the bound, up to which it is drawn; others are written."""

_BOUND: dict[str, Any] = {"color": PALETTE[1], "ls": "-", "lw": 1.4}
_LIMIT: dict[str, Any] = {"color": REFERENCE, "ls": "--"}
_WORST: dict[str, Any] = {"color": PALETTE[0], "ls": "-", "lw": 1.2}
_RUN: dict[str, Any] = {"color": PALETTE[5], "ls": "-", "lw": 0.5, "alpha": 0.5}


class SampledLike(Protocol):
    """Worlds of a statement; see `concur.proofs.Sampled`."""

    @property
    def quantities(self) -> Sequence[Any]: ...
    @property
    def times(self) -> Floats: ...
    @property
    def envelope(self) -> Floats: ...
    @property
    def runs(self) -> Floats: ...


class BoundedLike(Protocol):
    """A proof with bounds and the radii of its tube; see `concur.proofs.TaskProof`."""

    @property
    def bounds(self) -> Sequence[Any]: ...
    @property
    def x(self) -> Floats: ...
    @property
    def ve(self) -> Floats: ...
    @property
    def wall(self) -> Floats: ...


def bounds_figure(
    proof: BoundedLike, duration: float, sampled: SampledLike | None = None
) -> Figure:
    """Draw each quantity of a proof over time: bounds, limits and sampled worlds.

    Parameters
    ----------
    proof : BoundedLike
        The proof.
    duration : float
        Length of the task (s).
    sampled : SampledLike, optional
        Worlds inside the statement.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each quantity; angles have both bounds in one.

    Examples
    --------
    >>> bounds_figure(proof, 20.0, sampled).savefig("bounds.png")    # doctest: +SKIP
    """
    made = [bound.quantity for bound in proof.bounds] if sampled is None else sampled.quantities
    panels: dict[tuple[str, str], list[int]] = {}
    for k, quantity in enumerate(made):
        kind = "angle" if quantity.kind.startswith("angle") else quantity.kind
        panels.setdefault((kind, quantity.name), []).append(k)
    radii = iter(np.vstack([proof.x, proof.ve, proof.wall]))
    bounds = {bound.quantity.key: bound for bound in proof.bounds}
    rows = max(1, -(-len(panels) // COLUMNS))
    with styled():
        figure = new_figure(3.3 * COLUMNS, 0.6 + 2.15 * rows)
        grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for axes, ((kind, name), members) in zip(grid, panels.items(), strict=False):
            title = f"{kind} {name}".replace("tube", "distance")
            if sampled is not None:
                axes.plot(sampled.times, sampled.runs[:, members[0]].T, **_RUN)
            for k in members:
                if sampled is not None:
                    axes.plot(sampled.times, sampled.envelope[k], **_WORST)
                if kind.startswith("tube"):
                    _stairs(axes, next(radii), duration)
                elif made[k].key in bounds:
                    title += _bound(axes, bounds[made[k].key], duration)
            if made[members[0]].sign > 0 and kind != "angle":
                axes.set_ylim(bottom=0.0)
            axes.set_title(title)
            axes.set_ylabel(f"[{made[members[0]].unit or 1}]")
            axes.set_xlim(0.0, duration)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[max(0, len(panels) - COLUMNS) : len(panels)]:
            axes.set_xlabel(TIME)
        entries = {"bound": _BOUND, "limit": _LIMIT}
        if sampled is not None:
            entries["worst of all drawn worlds"] = _WORST
            entries[f"{len(sampled.runs)} of them"] = _RUN | {"lw": 0.8, "alpha": 1.0}
        lines = [grid[0].plot([], [], label=label, **style)[0] for label, style in entries.items()]
        figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))
        return figure


def _bound(axes: Axes, bound: Any, duration: float) -> str:
    """Proved bound; the limit as a line where it is near, else in words."""
    _stairs(axes, bound.profile, duration, bound.times)
    if bound.limit is None or not np.isfinite(bound.limit):
        return ""
    ratio = bound.limit / bound.value if bound.value else np.inf
    if 1.0 / NEAR <= ratio <= NEAR:
        axes.axhline(bound.limit, **_LIMIT)
        return ""
    return f", limit {bound.limit:.4g}"


def _stairs(axes: Axes, values: Floats, duration: float, times: Floats | None = None) -> None:
    """Steps over time, with gaps where there is no bound; equal ones unless times are given."""
    given = np.linspace(0.0, duration, len(values) + 1)[:-1] if times is None else times
    finite = np.where(np.isfinite(values), values, np.nan)
    axes.stairs(finite, [*given[: len(finite)], duration], baseline=None, **_BOUND)
