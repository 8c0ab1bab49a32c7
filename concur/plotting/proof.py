"""Figure of the proof of a task: tube of its errors and base, and bounds beside limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from concur.plotting.errors import TIME
from concur.plotting.style import PALETTE, REFERENCE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats


class TaskProofLike(Protocol):
    """Radii of a tube on a uniform grid: `x` (outputs, n), m, and `wall` (n,), rad, of `base`."""

    @property
    def x(self) -> Floats: ...
    @property
    def wall(self) -> Floats: ...
    @property
    def base(self) -> str: ...


def proof_figure(
    proof: TaskProofLike, outputs: Sequence[str], duration: float, shares: Mapping[str, float]
) -> Figure:
    """Draw the tube of a task about its declared motion, and its bounds beside their limits.

    Parameters
    ----------
    proof : TaskProofLike
        The proof.
    outputs : sequence of str
        Names of the outputs.
    duration : float
        Length of the task (s).
    shares : mapping of str to float
        Share of its limit that each bound takes, by label; 1 at the limit.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels over time, outputs and heading or base pose, and one of shares.

    Examples
    --------
    >>> proof_figure(proof, ["base", "hand"], 20.0, {}).savefig("bounds.png")  # doctest: +SKIP
    """
    with styled():
        figure = new_figure(8.0, 5.4 + 0.25 * len(shares))
        heights = [2.0, 1.6, 0.6 + 0.25 * len(shares)]
        place, wall, limits = figure.subplots(3, 1, height_ratios=heights)
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
        wall.set_xlabel(TIME)
        for axes in (place, wall):
            axes.set_xlim(0.0, duration)
            axes.set_ylim(bottom=0.0)
            axes.legend(loc="lower right")
        rows = np.arange(len(shares))
        limits.barh(rows, list(shares.values()), color=PALETTE[5], height=0.6, label="bound")
        limits.axvline(1.0, color=REFERENCE, linestyle="--", label="limit")
        limits.set_yticks(rows, list(shares))
        limits.invert_yaxis()
        limits.set_xlabel("bound, as share of its limit [1]")
        limits.set_xlim(0.0, 1.25 * max([1.0, *shares.values()]))
        limits.legend(loc="lower right")
        figure.align_ylabels([place, wall])
        return figure


def _finite(values: Floats) -> Floats:
    """Values with gaps where there is no bound."""
    return np.asarray(np.where(np.isfinite(values), values, np.nan))
