"""Answers of a campaign: pass rates with intervals, quantiles, worst worlds, comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.campaign._intervals import anytime_p_value, at_least, at_most, interval
from concur.campaign._result import Answer, CampaignResult
from concur.errors import ConcurError, shown
from concur.results import plain
from concur.rounding import percent, percent_down, percent_range, percent_up

ALL = "all requirements"
"""Name of the pass rate of worlds that keep every requirement."""


@dataclass(frozen=True)
class PassRate(Answer):
    """Share of the sampled worlds that keep a requirement.

    Parameters
    ----------
    name : str
        The requirement, or `ALL`.
    passed, worlds : int
        Number of worlds that keep it, and of all worlds.
    confidence : float
        Confidence of the interval, and of each one-sided bound.
    low, high : float or None
        Two-sided interval of the probability that a declared world keeps it; None without.
    at_least, at_most : float or None
        One-sided bounds of this probability, each for itself; None without.
    grown : bool
        Whether interval and bounds hold at every look of a campaign that grows; else for a number
        of worlds that is fixed beforehand.
    why : str
        Reason why there is no interval, or "".
    """

    name: str
    passed: int
    worlds: int
    confidence: float
    low: float | None
    high: float | None
    at_least: float | None
    at_most: float | None
    grown: bool = False
    why: str = ""

    @property
    def rate(self) -> float:
        """Share of the sampled worlds; NaN without worlds."""
        return self.passed / self.worlds if self.worlds else math.nan

    @property
    def interval(self) -> str:
        """One-sided bound and interval in words, rounded outwards, or why they are missing."""
        if self.low is None or self.high is None or self.at_least is None or self.at_most is None:
            return f"no interval: {self.why}"
        bound = f"at least {percent_down(self.at_least)}"
        if not self.passed:
            bound = f"at most {percent_up(self.at_most)}"
        low, high = percent_range(self.low, self.high)
        return (
            f"{bound}, two-sided {low} to {high}, at {percent(self.confidence)} confidence "
            f"{_looks(self.grown)}"
        )

    def __str__(self) -> str:
        share = f" ({percent(self.rate)})" if 0 < self.passed < self.worlds else ""
        return f"{self.name}: {self.passed} of {self.worlds} worlds pass{share}: {self.interval}"

    def as_dict(self) -> dict[str, Any]:
        """Fields for JSON."""
        return super().as_dict() | {"rate": plain(self.rate), "text": str(self)}


@dataclass(frozen=True)
class WorstWorld(Answer):
    """World with the lowest robustness of a requirement.

    Parameters
    ----------
    requirement, unit : str
        The requirement, and the unit of its robustness.
    number : int
        Number of the world.
    value : float
        Robustness; minus infinity if the world crashed or has no value.
    deviations : dict of str to float
        Deviation of each quantity, in its unit.
    stopped : float
        Time at which the world ended, s.
    reason : str
        Reason of a crash or of an invalid run, or "".
    """

    requirement: str
    unit: str
    number: int
    value: float
    deviations: dict[str, float]
    stopped: float
    reason: str = ""


def pass_rates(result: CampaignResult, confidence: float = 0.95) -> tuple[PassRate, ...]:
    """Pass rates of all requirements together, and of each one.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    confidence : float
        Confidence of each interval, between 0 and 1.

    Returns
    -------
    tuple of PassRate
        That of all requirements first, then each requirement in the order of the columns.

    Raises
    ------
    ConcurError
        If the confidence is not between 0 and 1.

    Notes
    -----
    Intervals and one-sided bounds are those of Clopper and Pearson (Biometrika 26, 1934): each
    holds with at least this confidence, for independent draws, each requirement alone and a number
    of worlds that is fixed beforehand. A campaign that was evaluated at another number of
    worlds (`CampaignResult.looks`) gets confidence sequences: bounds that hold at all numbers of
    worlds at once, from mixtures of likelihood ratios (Robbins, Ann. Math. Stat. 41, 1970). It may
    stop at whatever look. Sobol points and selected worlds are no independent draws; their rate
    has no interval.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, pass_rates
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> print(pass_rates(result)[0])  # doctest: +NORMALIZE_WHITESPACE
    all requirements: 37 of 50 worlds pass (74 %): at least 61.8 %, two-sided 59.6 % to 85.4 %, at
    95 % confidence for a number of worlds fixed beforehand
    """
    why, grown = _no_interval(result, confidence), result.grown
    rates = []
    for name, passed in _verdicts(result):
        count, n = int(passed.sum()), len(result)
        low = high = least = most = None
        if not why:
            low, high = interval(count, n, confidence, grown)
            least, most = (side(count, n, 1.0 - confidence, grown) for side in (at_least, at_most))
        rates.append(PassRate(name, count, n, confidence, low, high, least, most, grown, why))
    return tuple(rates)


def quantiles(result: CampaignResult, shares: Sequence[float] = (0.0, 0.05, 0.5)) -> np.ndarray:
    """Quantiles of the robustness over the sampled worlds.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    shares : sequence of float
        Shares of the worlds, from 0 (the lowest value) to 1 (the highest).

    Returns
    -------
    numpy.ndarray
        A row for each share, a column for each requirement. Each entry is the value of a world;
        minus infinity for crashed ones, NaN without worlds.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, quantiles
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> quantiles(result, [0.0, 0.5]).round(3)
    array([[-0.05 ],
           [ 0.048]])
    """
    if not len(result):
        return np.full((len(shares), len(result.columns)), np.nan)
    found = np.quantile(result.robustness, list(shares), axis=0, method="inverted_cdf")
    return np.asarray(found)


def worst_worlds(result: CampaignResult, requirement: str, count: int = 1) -> list[WorstWorld]:
    """Worlds with the lowest robustness of a requirement.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    requirement : str
        Name of the requirement.
    count : int
        Number of worlds, at most.

    Returns
    -------
    list of WorstWorld
        The lowest first; of equal ones that with the lowest number.

    Raises
    ------
    UnknownNameError
        If there is no such requirement.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, worst_worlds
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> worst = worst_worlds(result, "error of hand")[0]
    >>> worst.number, worst.deviations
    (49, {'mass of arm': 0.1})
    """
    column = result.requirement(requirement)
    robustness = result.robustness[:, column]
    labels = [name for name, _ in result.quantities]
    return [
        WorstWorld(
            requirement,
            result.columns[column][1],
            int(result.numbers[row]),
            float(robustness[row]),
            dict(zip(labels, result.worlds[row].tolist(), strict=True)),
            float(result.stopped[row]),
            (result.crashes | result.invalid).get(int(result.numbers[row]), ""),
        )
        for row in np.argsort(robustness, kind="stable")[:count]
    ]


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
            f"{_looks(self.grown)}"
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
    for name in ("columns", "quantities", "method", "seed", "numbers", "worlds"):
        one, other = getattr(first, name), getattr(second, name)
        if not np.array_equal(one, other):
            raise ConcurError(
                f"comparison of campaigns, `{name}`",
                expected=f"{shown(one, 200)}, as in the first",
                came=shown(other, 200),
                cure="Run both controllers with the same declaration, method, seed and number of "
                "samples.",
            )
    why, grown = _no_interval(first, confidence), first.grown or second.grown
    n, each = len(first), 1.0 - (1.0 - confidence) / 2.0
    found = []
    for (name, one), (_, other) in zip(_verdicts(first), _verdicts(second), strict=True):
        only_first, only_second = (
            tuple(first.numbers[which].tolist()) for which in (one & ~other, other & ~one)
        )
        c, m = len(only_second), len(only_first) + len(only_second)
        low = high = p_value = None
        if not why:
            shares, sizes = interval(c, m, each, grown), interval(m, n, each, grown)
            corners = [(2.0 * share - 1.0) * size for share in shares for size in sizes]
            low, high = min(corners), max(corners)
            p_value = anytime_p_value(c, m) if grown else _mcnemar(c, m)
        found.append(
            PairedComparison(
                name=name,
                worlds=n,
                both=int((one & other).sum()),
                only_first=only_first,
                only_second=only_second,
                difference=(2 * c - m) / n if n else math.nan,
                confidence=confidence,
                low=low,
                high=high,
                p_value=p_value,
                grown=grown,
                why=why,
            )
        )
    return tuple(found)


def _mcnemar(count: int, total: int) -> float:
    """p-value of equal probabilities, from the trials in which only one of both passes."""
    from scipy.stats import binomtest

    return float(binomtest(count, total).pvalue) if total else 1.0


def _verdicts(result: CampaignResult) -> list[tuple[str, np.ndarray]]:
    """Whether each world passes: all requirements first, then each."""
    names = [name for name, _ in result.columns]
    return [(ALL, result.passed), *zip(names, result.held.T, strict=True)]


def _no_interval(result: CampaignResult, confidence: float) -> str:
    """Reason why the worlds of a campaign allow no interval, or ""."""
    if not (0.0 < confidence < 1.0 and 1.0 - confidence < 1.0):  # a risk of one bounds nothing
        raise ConcurError(
            "campaign, `confidence`",
            expected="a number between 0 and 1",
            came=shown(confidence),
            cure="Pass 0.95, for example.",
        )
    if not len(result):
        return "no worlds"
    if result.method != "independent":
        return "Sobol points are no independent draws"
    if result.numbers[-1] - result.numbers[0] + 1 != len(result):
        return "the numbers have gaps, and missing worlds may differ from the others"
    return ""


def _looks(grown: bool) -> str:
    """State for which looks a bound holds."""
    if grown:
        return "at every look of a growing campaign"
    return "for a number of worlds fixed beforehand"
