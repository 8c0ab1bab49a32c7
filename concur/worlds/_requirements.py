"""Requirements on a run as robustness: how far signals stay inside their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import Demand
from concur.control import SLACK
from concur.errors import DescriptionError, UnknownNameError, shown

WORST = 10.0
"""Scales by which bounds count as broken at most in a run that stopped early."""
LIMITS = ("torque", "speed", "joint", "heat")
"""Kinds whose bounds a law may stay at: each is wider by the share `SLACK` of itself, rounding."""


@dataclass(frozen=True)
class Requirement:
    """Bounds of signals from some time on.

    Its robustness is the smallest distance of the signals from their bounds, positive inside: the
    robustness of "always, from `after` on" in signal temporal logic. A law that keeps a limit stays
    at it: bounds of "torque", "speed", "joint" and "heat" are wider by 1e-9 of themselves, the
    rounding that the limits of a robot have too.

    Parameters
    ----------
    kind : str
        "settle", "error", "torque", "margin", "joint", "speed", "base", "slip", "load", "tipping"
        or "ticks".
    name : str
        Name of its column, unique among the requirements of a task.
    bounds : tuple of (str, float, float)
        Signals of the loop, each with a lower and an upper bound, which may be infinite. None
        for "ticks": that the run reaches its end.
    scale : float
        Size of the bound, above zero: what a run that stops at once loses at least.
    unit : str
        Unit of the robustness.
    after : float
        Time from which on the bounds count, s.

    Raises
    ------
    DescriptionError
        If the bounds are not in order, the scale is not above zero, or the time is negative.

    Examples
    --------
    >>> from concur.worlds import Requirement
    >>> within = Requirement("error", "error hand", (("error:hand", -float("inf"), 0.1),), 0.1, "m")
    >>> within.value([[0.02], [0.02]], stopped=[1000, 500], ticks=1000)
    array([ 0.08, -0.05])
    """

    kind: str
    name: str
    bounds: tuple[tuple[str, float, float], ...]
    scale: float = 1.0
    unit: str = ""
    after: float = 0.0

    def __post_init__(self) -> None:
        faults = [
            (f"{low:g}, {high:g} for `{signal}`", "a lower bound below an upper one, one finite")
            for signal, low, high in self.bounds
            if not low < high or (math.isinf(low) and math.isinf(high))
        ]
        if not (0.0 < self.scale < math.inf):
            faults.append((f"a scale of {self.scale:g}", "a scale above zero"))
        if not (0.0 <= self.after < math.inf):
            faults.append((f"{self.after:g} s", "a time of zero or more"))
        for came, expected in faults:
            raise DescriptionError(
                f"requirement `{self.name}`",
                expected=expected,
                came=came,
                cure="Correct the numbers, in SI units.",
            )

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that it needs."""
        return tuple(signal for signal, _, _ in self.bounds)

    @property
    def _sides(self) -> list[tuple[str, Literal["max", "min"], float]]:
        """Finite bounds: signal, extreme that has to keep it, and bound with its rounding."""
        slack = SLACK if self.kind in LIMITS else 0.0
        return [
            (signal, "max", bound + slack * abs(bound))
            if bound == high
            else (signal, "min", bound - slack * abs(bound))
            for signal, low, high in self.bounds
            for bound in (high, low)
            if math.isfinite(bound)
        ]

    def demands(self, signals: Sequence[str], ticks: int, period: float) -> list[Demand]:
        """Extremes that the loop over time has to compute.

        Parameters
        ----------
        signals : sequence of str
            Names of the signals of the loop, in order.
        ticks : int
            Number of ticks of the run.
        period : float
            Time between ticks, s.

        Returns
        -------
        list of Demand
            For each signal the largest value where its upper bound is finite, then the smallest.

        Raises
        ------
        UnknownNameError
            If the loop has no such signal.
        DescriptionError
            If the run ends before the bounds count.
        """
        first = self._first(ticks, period)
        for signal in self.signals:
            if signal not in signals:
                raise UnknownNameError(
                    f"requirement `{self.name}`",
                    expected=f"a signal of the loop ({', '.join(signals)})",
                    came=f"`{shown(signal)}`",
                    cure="Remove the requirement, or name an output or joint that has this signal.",
                )
        places = {name: at for at, name in reversed(list(enumerate(signals)))}
        return [Demand(places[name], way, first, ticks - 1) for name, way, _ in self._sides]

    def value(self, reduced: ArrayLike, stopped: ArrayLike, ticks: int) -> NDArray[np.float64]:
        """Robustness of runs.

        Parameters
        ----------
        reduced : array_like
            Values of `demands`, shape (B, k).
        stopped : array_like of int
            Ticks that each run completed, shape (B,); less than `ticks` if it stopped early.
        ticks : int
            Number of ticks of a whole run.

        Returns
        -------
        numpy.ndarray
            Shape (B,), in `unit`: above zero if the requirement holds. A run that stops at the time
            t of T never holds: the worst before it, at most zero and at least minus ten scales,
            minus (T - t) / T scales.
        """
        done = np.asarray(stopped)
        columns = np.asarray(reduced, dtype=float).T if self.bounds else ()
        distances = [
            bound - column if way == "max" else column - bound
            for column, (_, way, bound) in zip(columns, self._sides, strict=True)
        ]
        worst = np.min(distances, axis=0) if distances else np.full(len(done), self.scale)
        lost = np.maximum(ticks - done, 1) / ticks
        broken = np.where(np.isnan(worst), -WORST * self.scale, worst)
        early = np.clip(broken, -WORST * self.scale, 0.0) - self.scale * lost
        whole = (done >= ticks) & np.isfinite(worst)
        return np.asarray(np.where(whole, worst, early))

    def robustness(
        self,
        series: Mapping[str, ArrayLike],
        ticks: int,
        period: float,
        stopped: int | None = None,
    ) -> float:
        """Robustness of one recorded run.

        Parameters
        ----------
        series : mapping of str to array_like
            Signals by name, one value for each tick of the run, shape (n,); fewer than `ticks` if
            it stopped early.
        ticks : int
            Number of ticks of a whole run.
        period : float
            Time between ticks, s.
        stopped : int, optional
            Tick from which on the run is not valid, which stops it for `value`; None: it is valid.

        Returns
        -------
        float
            As `value`.
        """
        first = self._first(ticks, period)
        recorded = {name: np.asarray(values, dtype=float) for name, values in series.items()}
        reduced = [
            values.max(initial=-math.inf) if way == "max" else values.min(initial=math.inf)
            for values, way in ((recorded[name][first:], way) for name, way, _ in self._sides)
        ]
        done = min((len(values) for values in recorded.values()), default=0)
        done = done if stopped is None else min(done, stopped)
        return float(self.value([reduced], [done], ticks)[0])

    def _first(self, ticks: int, period: float) -> int:
        first = max(math.ceil(self.after / period - 1e-9), 0)
        if first >= ticks:
            raise DescriptionError(
                f"requirement `{self.name}`",
                expected=f"a time within the run of {ticks * period:g} s",
                came=f"{self.after:g} s",
                cure="Shorten this time, or lengthen the run.",
            )
        return first
