"""Intervals of a probability from successes: of one number of trials, or of all numbers at once."""

from __future__ import annotations

import math

import numpy as np


def interval(count: int, total: int, confidence: float, grown: bool = False) -> tuple[float, float]:
    """Return the interval of a probability, each side with half of the risk.

    Parameters
    ----------
    count, total : int
        Number of successes, and of independent trials.
    confidence : float
        Confidence, between 0 and 1.
    grown : bool
        Whether it has to hold at each number of trials at once, as of a campaign that grows.

    Returns
    -------
    tuple of float
        Ends of the interval; 0 and 1 without trials.
    """
    risk = (1.0 - confidence) / 2.0
    return at_least(count, total, risk, grown), at_most(count, total, risk, grown)


def at_least(count: int, total: int, risk: float, grown: bool = False) -> float:
    """Return a lower bound of a probability that is above it with at most this risk.

    Parameters
    ----------
    count, total : int
        Number of successes, and of independent trials.
    risk : float
        Probability that the bound is too high; with `grown` at any number of trials.
    grown : bool
        Whether it has to hold at each number of trials at once.

    Returns
    -------
    float
        The bound of Clopper and Pearson (Biometrika 26, 1934); with `grown` the confidence
        sequence of `evidence`. 0 without successes.
    """
    from scipy.special import betaincinv

    if not count:
        return 0.0
    if not grown:
        return float(betaincinv(count, total - count + 1, risk))
    return _sequence(count, total, math.log(1.0 / risk))


def at_most(count: int, total: int, risk: float, grown: bool = False) -> float:
    """Return an upper bound of a probability that is below it with at most this risk.

    Parameters
    ----------
    count, total : int
        Number of successes, and of independent trials.
    risk : float
        Probability that the bound is too low; with `grown` at any number of trials.
    grown : bool
        Whether it has to hold at each number of trials at once.

    Returns
    -------
    float
        As of `at_least`; 1 without failures.
    """
    from scipy.special import betaincinv

    if count == total:
        return 1.0
    if not grown:
        return float(betaincinv(count + 1, total - count, 1.0 - risk))
    return 1.0 - _sequence(total - count, total, math.log(1.0 / risk))


def evidence(count: int, total: int, p: float) -> float:
    """Return the logarithm of the evidence that a probability is above p.

    Parameters
    ----------
    count, total : int
        Number of successes k, and of independent trials n.
    p : float
        Probability, between 0 and 1.

    Returns
    -------
    float
        Logarithm of the mean over q, uniform from p to 1, of the likelihood ratio
        (q / p)^k ((1 - q) / (1 - p))^(n - k).

    Notes
    -----
    With a true probability of p or less it is a supermartingale that begins at 1, for whatever n
    is reached: the probability that it ever exceeds 1 / r is at most r (Ville 1939; mixtures of
    likelihood ratios: Robbins, Ann. Math. Stat. 41, 1970). With q = p + (1 - p) t the ratio is
    (1 + t (1 / p - 1))^k (1 - t)^(n - k), so it falls with p.
    """
    from scipy.special import betainc, betaln

    failed = total - count
    if p >= 1.0:
        return -math.log(failed + 1.0)
    above = float(betainc(failed + 1, count + 1, 1.0 - p))
    if above == 0.0:  # far below p: none
        return -math.inf
    whole = float(betaln(count + 1, failed + 1))
    return whole + math.log(above) - count * math.log(p) - (failed + 1) * math.log1p(-p)


def anytime_p_value(count: int, total: int) -> float:
    """Return a p-value of the probability one half that holds at each number of trials at once.

    Parameters
    ----------
    count, total : int
        Number of successes, and of independent trials.

    Returns
    -------
    float
        One over the mean of the evidence for more and for less, at most 1.
    """
    more, less = evidence(count, total, 0.5), evidence(total - count, total, 0.5)
    return min(1.0, math.exp(math.log(2.0) - float(np.logaddexp(more, less))))


def _sequence(count: int, total: int, enough: float) -> float:
    """Smallest probability that the evidence for a larger one does not exclude."""
    from scipy.optimize import brentq

    if not count:
        return 0.0
    high = count / total  # there the evidence is below 1
    low = high / 2.0
    while evidence(count, total, low) < enough:
        high, low = low, low / 2.0

    def rest(p: float) -> float:
        return evidence(count, total, p) - enough

    return float(brentq(rest, low, high, xtol=1e-300, rtol=1e-15))
