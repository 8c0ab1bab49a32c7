"""Result of a proof of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur.certify import Status
from concur.proofs._bound import Bound, proved, tightest
from concur.proofs._models import Floats
from concur.proofs._statement import Statement


@dataclass(frozen=True, eq=False)
class TaskProof:
    """Verdict about a task, with its bounds.

    Parameters
    ----------
    status : Status
        PROVED, UNDECIDED, or REFUTED by the declared motion.
    reason, cure : str
        The fault, and what to change; empty if proved.
    statement : Statement
        The statement to prove.
    bounds : tuple of Bound
        Bound of each quantity over the whole task.
    times : numpy.ndarray
        Beginnings of the segments (s).
    sources : dict of str to numpy.ndarray
        Disturbance of base and hand by source over segments (m/s^2), (2, segments).
    x, ve : numpy.ndarray
        Radii of the error tube about the declared motion on each step, (2, steps), m and m/s.
    wall : numpy.ndarray
        Deviation of the heading, or of a free base's pose, on each step, (steps,), rad.
    cells : int
        Number of cells.
    growth : float
        Factor by which a small error of the heading, or of the base's pose, can grow.
    disturbance : numpy.ndarray
        Bound of |d| of both outputs in each segment, (2, segments), m/s^2.
    leaves : tuple of numpy.ndarray
        Cells of each segment, shape (k, 4): level, and its place (i, j, l) in a lattice whose cells
        have the edge `edge / 2**level`.
    edge : float
        Edge of whole cells of the hand's position relative to the base (m).
    step : float
        Step of the grid of `x`, `ve` and `wall` (s).
    first : numpy.ndarray
        First step of each segment.
    base : str
        What `wall` and the statement's `heading` are radii of: "heading", or "base pose" of
        floaters, in which a metre counts as a radian.
    """

    status: Status
    reason: str
    cure: str
    statement: Statement
    bounds: tuple[Bound, ...]
    times: Floats
    sources: dict[str, Floats]
    x: Floats
    ve: Floats
    wall: Floats
    cells: int
    growth: float
    disturbance: Floats
    leaves: tuple[np.ndarray, ...]
    edge: float
    step: float
    first: np.ndarray
    base: str = "heading"

    @property
    def sentence(self) -> str:
        """Verdict in one sentence."""
        if self.status is not Status.PROVED:
            return f"{self.status.name}: {self.reason}. {self.cure}"
        return proved(self.statement, self.bounds, self.base)

    @property
    def tightest(self) -> tuple[Bound, ...]:
        """Of each kind the bound with the least slack, or the largest one without limits."""
        return tightest(self.bounds)

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {bound}" for bound in self.bounds)])
