"""Figure of worlds inside the statement of a proof: quantities over time within proved bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.plotting.errors import TIME
from concur.plotting.style import PALETTE, REFERENCE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats

COLUMNS = 4
"""Panels of a row."""

NEAR = 1.6
"""Size of a limit, in parts of the bound, up to which it is drawn; others are written."""


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


def samples_figure(sampled: SampledLike, proof: BoundedLike, duration: float) -> Figure:
    """Draw quantities of sampled worlds over time, inside the bounds of a proof.

    Parameters
    ----------
    sampled : SampledLike
        The worlds.
    proof : BoundedLike
        The proof.
    duration : float
        Length of the task (s).

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each quantity; angles have both bounds in one.

    Examples
    --------
    >>> samples_figure(sampled, proof, 20.0).savefig("samples.png")    # doctest: +SKIP
    """
    panels: dict[tuple[str, str], list[int]] = {}
    for k, made in enumerate(sampled.quantities):
        kind = "angle" if made.kind.startswith("angle") else made.kind
        panels.setdefault((kind, made.name), []).append(k)
    radii = iter(np.vstack([proof.x, proof.ve, proof.wall]))
    bounds = {(bound.kind, bound.name): bound for bound in proof.bounds}
    rows = -(-len(panels) // COLUMNS)
    with styled():
        figure = new_figure(3.3 * COLUMNS, 0.6 + 2.15 * rows)
        grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for axes, ((kind, name), members) in zip(grid, panels.items(), strict=False):
            first = sampled.quantities[members[0]]
            title = f"{kind} {name}".replace("tube", "distance")
            axes.plot(
                sampled.times,
                sampled.runs[:, members[0]].T,
                color=PALETTE[5],
                ls="-",
                lw=0.5,
                alpha=0.5,
            )
            for k in members:
                axes.plot(sampled.times, sampled.envelope[k], color=PALETTE[0], ls="-", lw=1.2)
                made = sampled.quantities[k]
                if kind.startswith("tube"):
                    radius = next(radii)
                    edges = np.linspace(0.0, duration, len(radius) + 1)
                    finite = np.where(np.isfinite(radius), radius, np.nan)
                    axes.stairs(finite, edges, baseline=None, color=PALETTE[1], ls="-", lw=1.4)
                elif (made.kind, made.name) in bounds:
                    title += _bound(axes, bounds[made.kind, made.name])
            if first.sign > 0 and kind != "angle":
                axes.set_ylim(bottom=0.0)
            axes.set_title(title)
            axes.set_ylabel(f"[{first.unit or 1}]")
            axes.set_xlim(0.0, duration)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[max(0, len(panels) - COLUMNS) : len(panels)]:
            axes.set_xlabel(TIME)
        entries: dict[str, Any] = {
            "proved bound": {"color": PALETTE[1], "ls": "-", "lw": 1.4},
            "limit": {"color": REFERENCE, "ls": "--"},
            "worst of all drawn worlds": {"color": PALETTE[0], "ls": "-", "lw": 1.2},
            f"{len(sampled.runs)} of them": {"color": PALETTE[5], "ls": "-", "lw": 0.8},
        }
        lines = [grid[0].plot([], [], label=label, **style)[0] for label, style in entries.items()]
        figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))
        return figure


def _bound(axes: Axes, bound: Any) -> str:
    """Proved bound; the limit as a line where it is near, else in words."""
    axes.axhline(bound.value, color=PALETTE[1], ls="-", lw=1.4)
    if bound.limit is None or not np.isfinite(bound.limit):
        return ""
    ratio = bound.limit / bound.value if bound.value else np.inf
    if 1.0 / NEAR <= ratio <= NEAR:
        axes.axhline(bound.limit, color=REFERENCE, linestyle="--")
        return ""
    return f", limit {bound.limit:.4g}"
