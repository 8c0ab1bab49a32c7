"""Result of a proof of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur.certify import Status
from concur.proofs._models import Floats
from concur.proofs._statement import Statement


@dataclass(frozen=True)
class Bound:
    """A quantity with its proved bound.

    Parameters
    ----------
    kind, name, unit : str
        What it is, of what, and its unit.
    value : float
        Bound that all motions keep.
    limit : float or None
        Limit of the statement; None if there is no limit.
    time : float
        Beginning of the segment where the bound is largest (s).
    sign : float
        1 for upper bounds, -1 for lower ones.
    """

    kind: str
    name: str
    unit: str
    value: float
    limit: float | None
    time: float
    sign: float

    @property
    def slack(self) -> float:
        """Distance of the bound from the limit; infinite without a limit."""
        return float("inf") if self.limit is None else self.sign * (self.limit - self.value)

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        return self.slack >= 0.0

    def __str__(self) -> str:
        text = f"{self.kind} {self.name} {self.value:.4g} {self.unit}".rstrip()
        limit = "" if self.limit is None else f" (limit {self.limit:.4g})"
        return f"{text}{limit} at {self.time:.2f} s"


@dataclass(frozen=True, eq=False)
class TaskProof:
    """Verdict about a task, with its bounds.

    Parameters
    ----------
    status : Status
        PROVED or UNDECIDED.
    reason, cure : str
        What is not shown, and what to change; empty if proved.
    statement : Statement
        What was to be proved.
    bounds : tuple of Bound
        Bound of each quantity over the whole task.
    times : numpy.ndarray
        Beginnings of the segments (s).
    sources : dict of str to numpy.ndarray
        Disturbance of base and hand by source over segments (m/s^2), (2, segments).
    x, ve : numpy.ndarray
        Radii of the error tube about the declared motion on each step, (2, steps), m and m/s.
    wall : numpy.ndarray
        Deviation of the heading on each step, (steps,), rad.
    cells : int
        Number of cells.
    growth : float
        Factor by which a small error of the heading can grow.
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

    def __str__(self) -> str:
        if self.status is not Status.PROVED:
            return f"{self.status.name}: {self.reason}. {self.cure}"
        given = self.statement
        starts = (
            f"from starts within {max(given.place):g} m, {max(given.speed):g} m/s and "
            f"{given.heading:g} rad of heading of the declared one"
        )
        lines = [
            f"PROVED: {starts}, with masses within {given.masses:.1%}, torques held for "
            f"{given.period:g} s"
        ]
        return "\n".join([*lines, *(f"  {bound}" for bound in self.bounds)])
