"""Loop statistics: late cycles, missing reports, limited torques."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LATE = 0.5
"""Fraction of the period after which a cycle is late."""

PROMPT = 0.25
"""Fraction of the period within which a cycle is prompt: the loop keeps up."""

BINS = 4000
"""Number of bins of the histograms, 1 us each; the last bin also counts longer durations."""


@dataclass
class Histogram:
    """Histogram of durations with bins of 1 us and constant size.

    Parameters
    ----------
    counts : numpy.ndarray
        Shape (BINS,); entry k counts durations from k to k + 1 us, the last also longer ones.
    largest : float
        Longest duration, s.
    """

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))
    largest: float = 0.0

    def __post_init__(self) -> None:
        self._counts = memoryview(self.counts.data)  # takes a third of the time of an array

    def add(self, duration: float) -> None:
        """Count one duration; NaN counts in the last bin.

        Parameters
        ----------
        duration : float
            The duration, s.
        """
        self.largest = max(self.largest, duration)
        place = int(duration * 1e6) if 0.0 <= duration < BINS * 1e-6 else BINS - 1
        self._counts[0 if duration < 0.0 else place] += 1

    def quantile(self, share: float) -> float:
        """Quantile of the durations.

        Parameters
        ----------
        share : float
            Fraction of the durations below the quantile; 0.5: median.

        Returns
        -------
        float
            The quantile, s; NaN if no duration was counted.
        """
        total = int(self.counts.sum())
        if not total:
            return float("nan")
        place = int(np.searchsorted(np.cumsum(self.counts), share * total))
        if place >= BINS - 1:
            return self.largest
        return min((place + 1) * 1e-6, self.largest)


@dataclass
class Quality:
    """Counters of a run.

    Parameters
    ----------
    cycles : int
        Number of cycles.
    late : int
        Cycles that began more than half a period after their deadline.
    skipped : int
        Deadlines without a cycle, because an earlier cycle overran by more than half a period.
    lost : int
        Missing reports, summed over axes.
    clipped : int
        Cycles in which the guard limited the torque.
    invalid : int
        Frames that were rejected as invalid.
    refused : int
        Frames that the bus did not accept.
    unrecorded : int
        Cycles that are in no record: the ring was overwritten before it was drained.
    lateness : Histogram
        Time from the deadline to the start of a cycle.
    compute : Histogram
        Computing time of a cycle: decode, state, tick, guard, encode and record.
    transfer : Histogram
        Time of the bus library for sending and receiving, without waits.
    """

    cycles: int = 0
    late: int = 0
    skipped: int = 0
    lost: int = 0
    clipped: int = 0
    invalid: int = 0
    refused: int = 0
    unrecorded: int = 0
    lateness: Histogram = field(default_factory=Histogram)
    compute: Histogram = field(default_factory=Histogram)
    transfer: Histogram = field(default_factory=Histogram)

    def rows(self) -> list[tuple[str, str]]:
        """Counters and durations as text, for a table.

        Returns
        -------
        list of (str, str)
            Name, and value with its unit.
        """

        def durations(histogram: Histogram) -> str:
            parts = (histogram.quantile(0.5), histogram.quantile(0.999), histogram.largest)
            return "median {:.0f}, 99.9 % {:.0f}, largest {:.0f} us".format(
                *(part * 1e6 for part in parts)
            )

        return [
            *((name, str(value)) for name, value in vars(self).items() if isinstance(value, int)),
            ("lateness", durations(self.lateness)),
            ("compute", durations(self.compute)),
            ("transfer", durations(self.transfer)),
        ]

    def to_dict(self) -> dict[str, float]:
        """Counters, and durations in s, for JSON."""
        counts = {k: float(value) for k, value in vars(self).items() if isinstance(value, int)}
        for name, histogram in (
            ("lateness", self.lateness),
            ("compute", self.compute),
            ("transfer", self.transfer),
        ):
            counts[f"{name}_median"] = histogram.quantile(0.5)
            counts[f"{name}_999"] = histogram.quantile(0.999)
            counts[f"{name}_largest"] = histogram.largest
        return counts
