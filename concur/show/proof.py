"""Figure of the proof of a task: tube of its errors and base, and bounds beside limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.show.errors import TIME
from concur.show.style import PALETTE, REFERENCE, new_figure, side_legend, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.show.style import Floats


MOST = 7
"""Bounds that are drawn beside their limits, those nearest to them."""


class TaskProofLike(Protocol):
    """Radii of a tube on a uniform grid: `x` (outputs, n), m, and `wall` (n,), rad, of `base`.

    `shares` are those of the limit that each of `bounds` takes in each segment.
    """

    @property
    def x(self) -> Floats: ...
    @property
    def wall(self) -> Floats: ...
    @property
    def base(self) -> str: ...
    @property
    def bounds(self) -> Sequence[Any]: ...
    def shares(self, bound: Any) -> Floats: ...


def proof_figure(proof: TaskProofLike, outputs: Sequence[str], duration: float) -> Figure:
    """Draw the tube of a task about its declared motion, and its bounds beside their limits.

    Parameters
    ----------
    proof : TaskProofLike
        The proof.
    outputs : sequence of str
        Names of the outputs.
    duration : float
        Length of the task (s).

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over time: outputs, heading or base pose, and shares of the limits.

    Examples
    --------
    >>> proof_figure(proof, ["base", "hand"], 20.0).savefig("tube.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(8.0, 8.0)
        place, wall, limits = figure.subplots(3, 1, sharex=True)
        edges = np.linspace(0.0, duration, len(proof.wall) + 1)
        for k, name in enumerate(outputs):
            place.stairs(
                _finite(1e3 * proof.x[k]),
                edges,
                baseline=None,
                color=PALETTE[k],
                label=name,
                lw=1.6,
            )
        # A pose: a metre counts as a radian.
        free = proof.base == "base pose"
        place.set_ylabel("pose [mm, mrad]" if free else "position [mm]")
        place.set_title("Largest distance from the declared motion")
        wall.stairs(
            _finite(1e3 * proof.wall),
            edges,
            baseline=None,
            color=PALETTE[2],
            label=proof.base,
            lw=1.6,
        )
        wall.set_ylabel(f"{proof.base} [{'mm, mrad' if free else 'mrad'}]")
        for axes in (place, wall):
            axes.set_xlim(0.0, duration)
            axes.set_ylim(bottom=0.0)
            axes.legend(loc="lower right")
        rows = [(bound, proof.shares(bound)) for bound in proof.bounds]
        rows = [(bound, share) for bound, share in rows if np.nanmax(share, initial=0.0) > 0.0]
        rows.sort(key=lambda row: -float(np.nanmax(row[1])))
        for k, (bound, share) in enumerate(rows[:MOST]):
            edges = np.append(bound.times, duration)
            label = f"{bound.kind} {bound.name}"
            style = {"color": PALETTE[k % len(PALETTE)], "ls": "-", "lw": 1.6}
            limits.stairs(_finite(share), edges, baseline=None, label=label, **style)
        limits.axhline(1.0, color=REFERENCE, linestyle="--", label="limit")
        limits.set_ylabel("share of the limit [1]")
        limits.set_title("Bounds beside their limits")
        limits.set_xlabel(TIME)
        limits.set_ylim(bottom=0.0)
        side_legend(limits)
        figure.align_ylabels([place, wall, limits])
        return figure


def _finite(values: Floats) -> Floats:
    """Values with gaps where there is no bound."""
    return np.asarray(np.where(np.isfinite(values), values, np.nan))
