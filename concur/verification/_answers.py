"""Answers of a campaign: pass rates with intervals, quantiles, worst worlds, paired comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from concur.errors import ConcurError, shown
from concur.verification._result import CampaignResult

ALL = "all requirements"
"""Name of the pass rate of worlds that keep every requirement."""


@dataclass(frozen=True)
class PassRate:
    """Share of the sampled worlds that keep a requirement.

    Parameters
    ----------
    name : str
        The requirement, or `ALL`.
    passed, worlds : int
        Number of worlds that keep it, and of all worlds.
    confidence : float
        Confidence of the interval.
    low, high : float or None
        Clopper-Pearson interval of the probability that a declared world keeps it; None without.
    why : str
        Reason why there is no interval, or "".
    """

    name: str
    passed: int
    worlds: int
    confidence: float
    low: float | None
    high: float | None
    why: str = ""

    @property
    def rate(self) -> float:
        """Share of the sampled worlds; NaN without worlds."""
        return self.passed / self.worlds if self.worlds else math.nan

    @property
    def interval(self) -> str:
        """The interval in words, or why it is missing."""
        if self.low is None or self.high is None:
            return f"no interval: {self.why}"
        ends = f"{_percent(self.low)} to {_percent(self.high)}"
        return f"{ends} at {_percent(self.confidence)} confidence"

    def __str__(self) -> str:
        share = f" ({_percent(self.rate)})" if self.worlds else ""
        return f"{self.name}: {self.passed} of {self.worlds} worlds pass{share}, {self.interval}"

    def as_dict(self) -> dict[str, Any]:
        """Fields for JSON."""
        return {**asdict(self), "rate": self.rate if self.worlds else None}


@dataclass(frozen=True)
class WorstWorld:
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
        Reason of a crash, or "".
    """

    requirement: str
    unit: str
    number: int
    value: float
    deviations: dict[str, float]
    stopped: float
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Fields for JSON; null for infinite and missing numbers."""
        found = asdict(self)
        for name in ("value", "stopped"):
            found[name] = found[name] if math.isfinite(found[name]) else None
        return found


@dataclass(frozen=True)
class PairedComparison:
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
        Of the exact McNemar test of equal probabilities; None where there is no interval.
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
    why: str = ""

    def __str__(self) -> str:
        counts = (
            f"{self.name}: both pass {self.both} of {self.worlds} worlds, only the first "
            f"{len(self.only_first)}, only the second {len(self.only_second)}"
        )
        if self.low is None or self.high is None:
            return f"{counts}; no interval: {self.why}"
        return (
            f"{counts}; the second passes {_percent(self.difference, '+')} more, between "
            f"{_percent(self.low, '+')} and {_percent(self.high, '+')} at "
            f"{_percent(self.confidence)} confidence (p = {self.p_value:.2g})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Fields for JSON."""
        return {**asdict(self), "difference": self.difference if self.worlds else None}


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
    The interval is that of Clopper and Pearson (Biometrika 26, 1934): it contains the probability
    with at least this confidence, for independent draws and each requirement alone. Sobol
    points and selected worlds are no independent draws; their rate has no interval.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.verification import CampaignResult, pass_rates
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> print(pass_rates(result)[0])
    all requirements: 37 of 50 worlds pass (74 %), 59.7 % to 85.4 % at 95 % confidence
    """
    _check_confidence(confidence)
    why = _no_interval(result)
    columns = [(ALL, result.passed)]
    columns += [(name, result.held[:, k]) for k, (name, _) in enumerate(result.columns)]
    rates = []
    for name, passed in columns:
        count = int(passed.sum())
        low, high = (None, None) if why else clopper_pearson(count, len(result), confidence)
        rates.append(PassRate(name, count, len(result), confidence, low, high, why))
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
    >>> from concur.verification import CampaignResult, quantiles
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
    >>> from concur.verification import CampaignResult, worst_worlds
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
            result.crashes.get(int(result.numbers[row]), ""),
        )
        for row in np.argsort(robustness, kind="stable")[:count]
    ]


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
    bound it, so that the confidence holds for every n.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from concur.verification import CampaignResult, paired_comparisons
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
    _check_confidence(confidence)
    for name in ("columns", "quantities", "method", "seed"):
        if getattr(first, name) != getattr(second, name):
            raise _different(name, getattr(first, name), getattr(second, name))
    if not np.array_equal(first.numbers, second.numbers):
        raise _different("numbers", f"{len(first)} worlds", f"{len(second)} worlds")
    if not np.array_equal(first.worlds, second.worlds):
        raise _different("worlds", "the worlds of the first", "other deviations for a number")
    why = _no_interval(first)
    columns = [(ALL, first.passed, second.passed)]
    columns += [(c[0], first.held[:, k], second.held[:, k]) for k, c in enumerate(first.columns)]
    return tuple(_paired(first, name, a, b, confidence, why) for name, a, b in columns)


def clopper_pearson(count: int, total: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a probability from the number of successes.

    Parameters
    ----------
    count, total : int
        Number of successes, and of independent trials.
    confidence : float
        Confidence, between 0 and 1.

    Returns
    -------
    tuple of float
        Ends of the interval; 0 and 1 without trials.
    """
    from scipy.stats import binomtest

    if not total:
        return 0.0, 1.0
    found = binomtest(count, total).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def _paired(
    result: CampaignResult,
    name: str,
    first: np.ndarray,
    second: np.ndarray,
    confidence: float,
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
        shares, sizes = clopper_pearson(c, m, each), clopper_pearson(m, n, each)
        corners = [(2.0 * share - 1.0) * size for share in shares for size in sizes]
        low, high = min(corners), max(corners)
        p_value = float(binomtest(c, m).pvalue) if m else 1.0
    difference = (2 * c - m) / n if n else math.nan
    both = int((first & second).sum())
    return PairedComparison(
        *(name, n, both, only_first, only_second, difference, confidence, low, high, p_value, why)
    )


def _no_interval(result: CampaignResult) -> str:
    """Return the reason why the worlds of a campaign allow no interval, or ""."""
    if not len(result):
        return "no worlds"
    if result.method != "independent":
        return "Sobol points are no independent draws"
    if result.numbers[-1] - result.numbers[0] + 1 != len(result):
        return "the numbers have gaps, and missing worlds may differ from the others"
    return ""


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ConcurError(
            "campaign, `confidence`",
            expected="a number between 0 and 1",
            came=shown(confidence),
            cure="Pass 0.95, for example.",
        )


def _different(name: str, first: object, second: object) -> ConcurError:
    return ConcurError(
        f"comparison of campaigns, `{name}`",
        expected=f"{shown(first, 200)}, as in the first",
        came=shown(second, 200),
        cure="Run both controllers with the same declaration, method, seed and number of samples.",
    )


def _percent(share: float, sign: str = "") -> str:
    return f"{100.0 * share:{sign}.3g} %"
