"""Result of a proof of a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from concur._polynomials import Floats
from concur.certify import Status
from concur.errors import OutputError
from concur.proofs._bound import Bound, claimed, tightest
from concur.proofs._file import Source, write_proof
from concur.proofs._statement import Statement
from concur.results import Figures, Row, picked, plain, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class TaskProof:
    """Verdict about a task, with its bounds.

    Parameters
    ----------
    status : Status
        UNVERIFIED where a proof was found, and PROVED once `concur.checker.confirm` verified its
        file; UNDECIDED, or REFUTED by the declared motion.
    reason, cure : str
        The fault, and what to change; empty if both are missing.
    statement : Statement
        The statement to prove.
    bounds : tuple of Bound
        Bound of each quantity over the whole task.
    times : numpy.ndarray
        Beginnings of the segments (s).
    sources : dict of str to numpy.ndarray
        Disturbance of base and hand by source over segments (m/s^2), (2, segments).
    x, ve : numpy.ndarray
        Radii of the error tube about the declared motion on each step, (2, steps), m and m/s;
        infinite beyond what is shown.
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
    source : Source, optional
        Robot and task, which the file of the proof contains; of `prove_task`.
    factor : float or None
        Factor on all starts and imperfections with which an undecided task has a proof, see
        `largest_factor`; 0 if it is undecided with 1/16, None if none was looked for.
    room : numpy.ndarray or None
        With errors of the measured state, ways of x and ve of both outputs that the cells contain
        beside the true state, (2, 2, segments), m and m/s.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.proofs import prove_task
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> proof = prove_task(task, edge=0.05)
    >>> margin = next(bound for bound in proof.bounds if bound.quantity.kind == "margin")
    >>> proof.status.name, round(margin.value, 2), margin.limit
    ('UNVERIFIED', 0.74, 0.1)
    >>> proof.save("task.json")
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
    source: Source | None = field(default=None, repr=False)
    factor: float | None = None
    room: Floats | None = None

    @property
    def sentence(self) -> str:
        """Verdict in one sentence."""
        if not self.found:
            return f"{self.status.name}: {self.reason}. {self.cure}{self._passing}".rstrip()
        sure = self.status is Status.PROVED
        verdict = self.status.name if sure else "proved, not yet verified"
        why = f" ({self.reason})" if self.reason else ""
        return f"{verdict}{why}: {claimed(self.statement, self.bounds, self.base)}"

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON, in SI units."""
        names = "kind", "name", "unit", "value", "limit", "time", "slack", "profile", "kept"
        bounds = [
            picked(bound, *names) | {"side": "upper" if bound.sign > 0 else "lower"}
            for bound in self.bounds
        ]
        tightest = [
            {"time": time, **picked(bound, "kind", "name"), "value": value, "slack": slack}
            for time, bound, value, slack in self.in_segments()
        ]
        tube = picked(self, "step", "x", "ve") | {self.base.replace(" ", "_"): plain(self.wall)}
        return picked(
            self, "sentence", "reason", "cure", "factor", "cells", "growth", "sources"
        ) | {
            "statement": plain(self.statement),
            "segments": plain(self.times),
            "bounds": bounds,
            "tightest": tightest,
            "tube": tube,
        }

    @property
    def rows(self) -> tuple[Row, ...]:
        """Bound of each quantity beside its limit; the place is the time of the worst segment."""
        return tuple(bound.row for bound in self.bounds)

    @property
    def figures(self) -> Figures:
        """Tube and bounds over time; none without the task of the proof."""
        if self.source is None:
            return {}

        task = self.source.given
        names = [output.name for output in task.servo.outputs]
        drawn: dict[str, Callable[[], Figure]] = {
            "tube": partial(show, "proof_figure", self, names, task.duration)
        }
        return drawn | (
            {"bounds": partial(show, "bounds_figure", self, task.duration)} if self.bounds else {}
        )

    @property
    def found(self) -> bool:
        """Whether the prover found a proof, verified or not."""
        return self.status in (Status.PROVED, Status.UNVERIFIED)

    @property
    def _passing(self) -> str:
        """Sentence about the factor."""
        if self.factor is None:
            return ""
        if not self.factor:
            return " It is undecided even with a sixteenth of all starts and imperfections."
        share = f"{self.factor:g} times all starts and imperfections"
        return f" With {share} it is proved, not yet verified."

    @property
    def tightest(self) -> tuple[Bound, ...]:
        """Of each kind the bound with the least slack, or the largest one without limits."""
        return tightest(self.bounds)

    def shares(self, bound: Bound) -> Floats:
        """Share of its limit that a bound takes in each segment; 1 at the limit.

        Of an angle with both limits it is the distance from their middle as a share of the largest
        one; with one limit, 1 less the slack over half a turn.

        Parameters
        ----------
        bound : Bound
            One of `bounds`.

        Returns
        -------
        numpy.ndarray
            Shares, shape (n,); NaN without a limit.
        """
        if bound.limit is None or not math.isfinite(bound.limit):
            return np.full(len(bound.profile), np.nan)
        if bound.kind.startswith("angle"):
            low, high = self.statement.angles[bound.name]
            half = (high - low) / 2 if math.isfinite(high - low) else math.pi
            return np.asarray(1.0 - bound.slacks / half)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = bound.profile / bound.limit if bound.sign > 0 else bound.limit / bound.profile
        lost = np.where(bound.slacks < 0.0, np.inf, 0.0)
        return np.asarray(np.where(found >= 0.0, found, lost))

    def in_segments(self) -> tuple[tuple[float, Bound, float, float], ...]:
        """Tightest bound of each segment that has one, by its share of the limit.

        Returns
        -------
        tuple of (float, Bound, float, float)
            Beginning of the segment (s), the bound, its value there, and its slack there.
        """
        limited = [b for b in self.bounds if b.limit is not None and math.isfinite(b.limit)]
        if not limited:
            return ()
        worst = np.argmax(np.nan_to_num([self.shares(b) for b in limited], posinf=1e300), axis=0)
        return tuple(
            (float(time), bound, float(bound.profile[k]), float(bound.slacks[k]))
            for k, (time, bound) in enumerate(
                zip(limited[0].times, [limited[i] for i in worst], strict=True)
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file that `concur.recheck` verifies; it needs nothing but this file.

        Its bounds are 2 % wider than the proved ones, but within the limits, so that another order
        of evaluation confirms them.

        Parameters
        ----------
        path : path
            File to write.

        Raises
        ------
        OutputError
            If the task is not proved, or the proof was not made by `prove_task`.
        DescriptionError
            If the file cannot be written.
        """
        if not self.found or self.source is None:
            raise OutputError(
                "file of a proof",
                expected="a proof of a task by `prove_task`",
                came=f"{self.status.name}, {'with' if self.source else 'without'} its task",
                cure="Save proofs that `prove_task` found.",
            )
        write_proof(
            path,
            self.source,
            self.statement,
            self.bounds,
            self.first,
            self.edge,
            self.disturbance,
            self.leaves,
            self.room,
        )

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {bound}" for bound in self.bounds)])
