"""Sensitivity: how much each uncertain quantity changes the robustness of each requirement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from concur.campaign._result import Answer, CampaignResult
from concur.errors import ConcurError, ShapeError, shown
from concur.worlds import Uncertainty

Evaluate: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Values (B, m) of the requirements for numbers (B,) and worlds (B, d)."""

FORMS = ("value", "size")
"""Ranked quantities: the deviation, or its distance from nominal."""


@dataclass(frozen=True)
class RankInfluence(Answer):
    """Rank correlation of a quantity with the robustness of a requirement.

    Parameters
    ----------
    requirement, quantity : str
        Their names.
    form : str
        "value" if the deviation is ranked, "size" if its absolute value is: whichever is stronger.
    correlation : float
        Spearman's rank correlation; negative if a larger one reduces the robustness.
    low, high : float
        Bootstrap interval of the correlation.
    p_value : float
        Probability that chance alone gives a correlation of this size somewhere in the table.
    shown : bool
        Whether the p-value is below the level: others may be noise.
    """

    requirement: str
    quantity: str
    form: str
    correlation: float
    low: float
    high: float
    p_value: float
    shown: bool

    def __str__(self) -> str:
        what = self.quantity if self.form == "value" else f"|{self.quantity}|"
        effect = "reduces" if self.correlation < 0.0 else "increases"
        note = "" if self.shown else ", may be noise"
        return (
            f"a larger {what} {effect} the robustness of {self.requirement}: rank correlation "
            f"{self.correlation:+.2f} (p = {self.p_value:.2g}{note})"
        )


@dataclass(frozen=True)
class SobolIndex(Answer):
    """Sobol indices of a quantity: its shares of the variance of a robustness.

    Parameters
    ----------
    requirement, quantity : str
        Their names.
    first : float
        First-order index: the share of the variance that the quantity causes alone.
    first_low, first_high : float
        Bootstrap interval of the first-order index.
    total : float
        Total index: the share with all its interactions.
    total_low, total_high : float
        Bootstrap interval of the total index.
    """

    requirement: str
    quantity: str
    first: float
    first_low: float
    first_high: float
    total: float
    total_low: float
    total_high: float


def rank_influences(
    result: CampaignResult,
    level: float = 0.05,
    permutations: int = 999,
    resamples: int = 400,
    seed: int = 0,
) -> tuple[RankInfluence, ...]:
    """Rank the uncertain quantities by their influence on each requirement.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    level : float
        Probability of a false influence anywhere in the table.
    permutations, resamples : int
        Permutations for the p-values, and bootstrap samples for the intervals (at 1 - `level`).
    seed : int
        Seed of both.

    Returns
    -------
    tuple of RankInfluence
        For each requirement, in the order of the columns, all quantities, the strongest first.

    Raises
    ------
    ConcurError
        If the level is not between 0 and 1, or too small for the number of permutations.

    Notes
    -----
    Each quantity is ranked twice: by its deviation, and by its absolute deviation, because a radius
    that is wrong in either direction has no monotone effect. A p-value compares the correlation
    with the largest one of the whole table after random permutations of the worlds (Westfall and
    Young, Resampling-Based Multiple Testing, 1993). Effects of interactions alone remain hidden;
    Sobol indices show them.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, rank_influences
    >>> worlds = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 2))
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg"), ("radius of wheel", "m")],
    ...     columns=[("error of hand", "m")], numbers=range(50), worlds=worlds,
    ...     values=0.05 - worlds[:, :1], stopped=np.full(50, 5.0), duration=5.0,
    ...     method="independent", seed=0, key="")
    >>> [(found.quantity, found.p_value < 0.05) for found in rank_influences(result)]
    [('mass of arm', True), ('radius of wheel', False)]
    """
    if not 1.0 / (permutations + 1) <= level < 1.0:
        raise ConcurError(
            "rank influences, `level`",
            expected=f"a number from {1.0 / (permutations + 1):.3g} to 1",
            came=shown(level),
            cure="Pass 0.05, or more permutations.",
        )
    rng = np.random.default_rng(seed)
    n, d, m = len(result), len(result.quantities), len(result.columns)
    inputs = np.hstack([_ranked(result.worlds), _ranked(np.abs(result.worlds))])
    outputs = _ranked(result.robustness)
    found = outputs.T @ inputs  # (m, 2d) correlations
    largest = np.zeros(permutations)
    for k in range(permutations if found.size else 0):
        largest[k] = np.abs(outputs[rng.permutation(n)].T @ inputs).max()
    ends = _bootstrap(inputs, outputs, resamples, level, rng)
    larger = np.abs(found[:, d:]) > np.abs(found[:, :d]) + 1e-12  # by its size, not by its value
    chosen = np.arange(d) + d * larger
    sizes, low, high = (np.take_along_axis(one, chosen, axis=1) for one in (found, *ends))
    above = (largest >= np.abs(sizes)[:, :, None] - 1e-12).sum(axis=2)
    p_values = (1 + above) / (permutations + 1)
    return tuple(
        RankInfluence(
            requirement=result.columns[j][0],
            quantity=result.quantities[i][0],
            form=FORMS[int(larger[j, i])],
            correlation=float(sizes[j, i]),
            low=float(low[j, i]),
            high=float(high[j, i]),
            p_value=float(p_values[j, i]),
            shown=bool(p_values[j, i] <= level),
        )
        for j in range(m)
        for i in np.argsort(-np.abs(sizes[j]), kind="stable")
    )


def sobol_cost(uncertainty: Uncertainty, base: int) -> int:
    """Return the number of worlds that Sobol indices take: base (d + 2).

    Parameters
    ----------
    uncertainty : Uncertainty
        The d uncertain quantities.
    base : int
        Number of base points, a power of two.

    Returns
    -------
    int
        The number of worlds.
    """
    return base * (uncertainty.size + 2)


def sobol_indices(
    evaluate: Evaluate,
    uncertainty: Uncertainty,
    requirements: Sequence[str],
    base: int = 256,
    level: float = 0.05,
    resamples: int = 200,
    seed: int = 0,
) -> tuple[SobolIndex, ...]:
    """Compute Sobol indices of all quantities, in separate worlds.

    Parameters
    ----------
    evaluate : callable
        Robustness (B, m) of worlds (B, d) with numbers (B,), of which noise and jitter depend. All
        worlds of a base point have its number, so that noise does not count as an influence.
    uncertainty : Uncertainty
        The uncertain quantities.
    requirements : sequence of str
        Names of the m requirements.
    base : int
        Number of base points, a power of two; `sobol_cost` is the number of worlds.
    level : float
        One minus the confidence of the bootstrap intervals.
    resamples : int
        Bootstrap samples.
    seed : int
        Seed of points and bootstrap.

    Returns
    -------
    tuple of SobolIndex
        For each requirement all quantities, the largest total index first. Indices of a
        requirement with the same value in all worlds are zero.

    Raises
    ------
    ConcurError
        If `base` is no power of two, a value is not finite, or the number of values is wrong.

    Notes
    -----
    Estimators of Saltelli et al. (Computer Physics Communications 181, 2010), as in
    `scipy.stats.sobol_indices`. Quantities are independent of each other.

    Examples
    --------
    >>> from concur.campaign import sobol_indices
    >>> from scipy.stats import uniform
    >>> from concur.worlds import Quantity, Uncertainty
    >>> deviation = uniform(-0.1, 0.2)
    >>> quantities = [Quantity("mass", body, deviation, unit="kg") for body in ("arm", "hand")]
    >>> def evaluate(numbers, worlds):
    ...     return 0.5 - worlds[:, :1] - 0.1 * worlds[:, 1:]
    >>> found = sobol_indices(evaluate, Uncertainty(tuple(quantities)), ["error"], base=64)
    >>> [(index.quantity, round(index.total, 2)) for index in found]
    [('mass.arm', 1.01), ('mass.hand', 0.01)]
    """
    from scipy.stats import qmc
    from scipy.stats import sobol_indices as estimate

    d, m = uncertainty.size, len(requirements)
    if base < 2 or base & (base - 1):
        raise ConcurError(
            "Sobol indices, `base`",
            expected="a power of two, at least 2",
            came=shown(base),
            cure="Pass 256, or 1024 for narrower intervals.",
        )
    if not (d and m):
        return ()
    rng = np.random.default_rng(seed)
    points = qmc.Sobol(2 * d, seed=rng).random(base) + 2.0**-31
    first, second = points[:, :d], points[:, d:]
    parts = [first, second]
    for i in range(d):
        parts.append(first.copy())
        parts[-1][:, i] = second[:, i]
    numbers = np.tile(np.arange(base), d + 2)
    values = np.asarray(evaluate(numbers, uncertainty.at(np.vstack(parts))), dtype=float)
    if values.shape != (len(numbers), m):
        raise ShapeError(
            "Sobol indices, values",
            expected=f"shape {(len(numbers), m)}",
            came=f"shape {values.shape}",
            cure="Return a row for each world and a column for each requirement.",
        )
    lost = int(np.sum(~np.isfinite(values).all(axis=1)))
    if lost:
        raise ConcurError(
            "Sobol indices",
            expected="a finite robustness in each world",
            came=f"{lost} worlds without one",
            cure="Narrow the declared intervals until no world crashes.",
        )
    cube = values.reshape(d + 2, base, m).transpose(0, 2, 1)

    def shares(chosen: np.ndarray) -> np.ndarray:
        # The first requirement twice: SciPy fails on one quantity and one output.
        part = cube[:, [*range(m), 0]][:, :, chosen]
        found = estimate(func={"f_A": part[0], "f_B": part[1], "f_AB": part[2:]}, n=base)
        orders = [found.first_order, found.total_order]
        return np.array([np.reshape(order, (m + 1, d))[:m] for order in orders])

    centre = shares(np.arange(base))
    drawn = np.array([shares(rng.integers(base, size=base)) for _ in range(resamples)])
    low, high = np.quantile(drawn, [level / 2, 1.0 - level / 2], axis=0)
    rows = []
    for j, requirement in enumerate(requirements):
        for i in np.argsort(-centre[1, j], kind="stable"):
            ends = [x[order, j, i] for order in (0, 1) for x in (centre, low, high)]
            rows.append(SobolIndex(requirement, uncertainty.labels[i], *map(float, ends)))
    return tuple(rows)


def _ranked(values: np.ndarray) -> np.ndarray:
    """Ranks of each column, with zero mean and unit length; zero for a constant column."""
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=0) if values.size else np.zeros(values.shape)
    ranks -= (len(values) + 1) / 2.0
    length = np.linalg.norm(ranks, axis=0)
    return np.asarray(ranks / np.where(length > 0.0, length, 1.0))


def _bootstrap(
    inputs: np.ndarray,
    outputs: np.ndarray,
    resamples: int,
    level: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile intervals of the correlations of ranks, each shape (m, 2d)."""
    n, m = outputs.shape
    if not n:
        return np.zeros((m, inputs.shape[1])), np.zeros((m, inputs.shape[1]))
    drawn = np.empty((resamples, m, inputs.shape[1]))
    for k in range(resamples):
        weight = np.bincount(rng.integers(n, size=n), minlength=n)[:, None] / n
        x, y = inputs - (weight * inputs).sum(axis=0), outputs - (weight * outputs).sum(axis=0)
        sizes = np.sqrt(np.outer((weight * y**2).sum(axis=0), (weight * x**2).sum(axis=0)))
        drawn[k] = (weight * y).T @ x / np.where(sizes > 0.0, sizes, 1.0)
    low, high = np.quantile(drawn, [level / 2, 1.0 - level / 2], axis=0)
    return low, high
