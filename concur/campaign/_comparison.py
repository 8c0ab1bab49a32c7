"""Comparison of two controllers in the same worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concur.campaign._answers import ALL, check_confidence, kind_of, no_interval
from concur.campaign._intervals import anytime_p_value, interval
from concur.campaign._result import Answer, CampaignResult
from concur.errors import ConcurError, shown
from concur.rounding import percent, percent_range


@dataclass(frozen=True)
class PairedComparison(Answer):
    """Pass rates of two controllers in the same worlds.

    Parameters
    ----------
    name : str
        The requirement, or `ALL`.
    worlds : int
        Number of worlds.
    both : int
        Number of worlds in which both pass.
    only_first, only_second : tuple of int
        Numbers of the worlds in which only one of them passes.
    difference : float
        Pass rate of the second minus that of the first; NaN without worlds.
    confidence : float
        Confidence of the interval.
    low, high : float or None
        Interval of the difference of the probabilities; None without.
    p_value : float or None
        Of the exact McNemar test of equal probabilities, or with `grown` one that holds at every
        look; None where there is no interval.
    grown : bool
        As of a `PassRate`.
    why : str
        Reason why there is no interval, or "".
    """

    name: str
    worlds: int
    both: int
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]
    difference: float
    confidence: float
    low: float | None
    high: float | None
    p_value: float | None
    grown: bool = False
    why: str = ""

    def __str__(self) -> str:
        counts = (
            f"{self.name}: both pass {self.both} of {self.worlds} worlds, only the first "
            f"{len(self.only_first)}, only the second {len(self.only_second)}"
        )
        if self.low is None or self.high is None:
            return f"{counts}; no interval: {self.why}"
        return f"{counts}; the second passes {self.interval} (p = {self.p_value:.2g})"

    @property
    def interval(self) -> str:
        """Difference and its interval in words, rounded outwards, or why it is missing."""
        more = f"{percent(self.difference, '+')} more"
        if self.low is None or self.high is None:
            return f"{more}, no interval: {self.why}"
        low, high = percent_range(self.low, self.high, "+")
        return (
            f"{more}, between {low} and {high} at {percent(self.confidence)} confidence "
            f"{kind_of(self.grown)}"
        )


def paired_comparisons(
    first: CampaignResult, second: CampaignResult, confidence: float = 0.95
) -> tuple[PairedComparison, ...]:
    """Compare two controllers in the same worlds.

    Parameters
    ----------
    first, second : CampaignResult
        Two campaigns with the same worlds and the same requirements.
    confidence : float
        Confidence of each interval, between 0 and 1.

    Returns
    -------
    tuple of PairedComparison
        That of all requirements first, then each requirement in the order of the columns.

    Raises
    ------
    ConcurError
        If worlds or requirements differ, or the confidence is not between 0 and 1.

    Notes
    -----
    Worlds in which both do the same do not count. Of the other m of n worlds the second passes c.
    With c binomial of share theta (McNemar, Psychometrika 12, 1947) and m binomial of share psi,
    the difference is (2 theta - 1) psi. Two Clopper-Pearson intervals, each with half of the risk,
    bound it, so that the confidence holds for every n; of a campaign that was evaluated at
    another number of worlds, two confidence sequences.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, paired_comparisons
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> better = replace(result, values=result.values + 0.03)
    >>> found = paired_comparisons(result, better)[0]
    >>> str(found).partition(";")[0]
    'all requirements: both pass 37 of 50 worlds, only the first 0, only the second 8'
    """
    check_confidence(confidence)
    for name in ("columns", "quantities", "method", "seed"):
        if getattr(first, name) != getattr(second, name):
            raise _different(name, getattr(first, name), getattr(second, name))
    if not np.array_equal(first.numbers, second.numbers):
        raise _different("numbers", f"{len(first)} worlds", f"{len(second)} worlds")
    if not np.array_equal(first.worlds, second.worlds):
        raise _different("worlds", "the worlds of the first", "other deviations for a number")
    why, grown = no_interval(first), first.grown or second.grown
    columns = [(ALL, first.passed, second.passed)]
    columns += [(c[0], first.held[:, k], second.held[:, k]) for k, c in enumerate(first.columns)]
    return tuple(_paired(first, name, a, b, confidence, grown, why) for name, a, b in columns)


def _paired(
    result: CampaignResult,
    name: str,
    first: np.ndarray,
    second: np.ndarray,
    confidence: float,
    grown: bool,
    why: str,
) -> PairedComparison:
    from scipy.stats import binomtest

    n = len(result)
    only_first = tuple(result.numbers[first & ~second].tolist())
    only_second = tuple(result.numbers[second & ~first].tolist())
    c, m = len(only_second), len(only_first) + len(only_second)
    low = high = p_value = None
    if not why:
        each = 1.0 - (1.0 - confidence) / 2.0
        shares, sizes = interval(c, m, each, grown), interval(m, n, each, grown)
        corners = [(2.0 * share - 1.0) * size for share in shares for size in sizes]
        low, high = min(corners), max(corners)
        p_value = 1.0
        if m:
            p_value = anytime_p_value(c, m) if grown else float(binomtest(c, m).pvalue)
    difference = (2 * c - m) / n if n else math.nan
    both = int((first & second).sum())
    return PairedComparison(
        *(name, n, both, only_first, only_second, difference, confidence, low, high, p_value),
        grown=grown,
        why=why,
    )


def _different(name: str, first: object, second: object) -> ConcurError:
    return ConcurError(
        f"comparison of campaigns, `{name}`",
        expected=f"{shown(first, 200)}, as in the first",
        came=shown(second, 200),
        cure="Run both controllers with the same declaration, method, seed and number of samples.",
    )
