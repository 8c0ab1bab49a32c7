"""Search for the worst world of a requirement, from the worst samples of a campaign."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concur.campaign._result import Answer, CampaignResult
from concur.campaign._sensitivity import Evaluate
from concur.errors import ConcurError, needed
from concur.worlds import Uncertainty

TAIL = 1e-3
"""Share of the probability at each unbounded end of a distribution that is not searched."""

_EDGE = 1e-9
"""Distance from the faces of the unit cube."""

_WIDTH = 0.15
"""First standard deviation of the search, in parts of the unit cube."""

_LOST = -1e300
"""Stands for the robustness of a world without one: lower than all others."""


@dataclass(frozen=True, eq=False)
class WorstFound(Answer):
    """Lowest robustness of a requirement that samples and search have found.

    Parameters
    ----------
    requirement, unit : str
        The requirement, and the unit of its robustness.
    value : float
        Robustness in the world; not above that of the worst sample.
    world : numpy.ndarray
        Deviations from nominal, shape (d,).
    number : int
        Number of the world: noise and jitter depend on it. It is the number of a sample.
    sample : float
        Robustness of the worst sample of the campaign.
    evaluations : int
        Number of worlds that the search evaluated.
    history : tuple of float
        Lowest robustness after each generation.
    """

    requirement: str
    unit: str
    value: float
    world: np.ndarray
    number: int
    sample: float
    evaluations: int
    history: tuple[float, ...]

    def __str__(self) -> str:
        return (
            f"{self.requirement}: lowest robustness {self.value:.4g} {self.unit}, worst sample "
            f"{self.sample:.4g} {self.unit}, {self.evaluations} worlds searched"
        )


def worst_search(
    evaluate: Evaluate,
    uncertainty: Uncertainty,
    result: CampaignResult,
    requirement: str,
    budget: int = 400,
    starts: int = 3,
    seed: int = 0,
) -> WorstFound:
    """Search for the world with the lowest robustness by CMA-ES.

    Parameters
    ----------
    evaluate : callable
        Robustness (B, m) of worlds (B, d) with numbers (B,), with the columns of the campaign.
        NaN stands for a world without a robustness: the lowest of all.
    uncertainty : Uncertainty
        The declaration of the campaign.
    result : CampaignResult
        The samples.
    requirement : str
        Name of the requirement.
    budget : int
        Number of worlds, at most.
    starts : int
        Number of the worst samples from which a search starts; all searches share the budget and
        each generation is one batch.
    seed : int
        Seed of the search.

    Returns
    -------
    WorstFound
        The lowest robustness of samples and search. No proof: a lower one may exist.

    Raises
    ------
    ConcurError
        If the campaign has no worlds or another declaration, or the package cmaes is missing.
    UnknownNameError
        If the campaign has no such requirement.

    Notes
    -----
    CMA-ES (Hansen and Ostermeier, Evolutionary Computation 9, 2001) in the unit cube of shares of
    the probability, within the declared intervals; for distributions without ends up to `TAIL`
    from both. Candidates of a search have the number of the sample from which it starts, so that
    their noise is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, worst_search
    >>> from scipy.stats import uniform
    >>> from concur.worlds import Quantity, Uncertainty
    >>> mass = Quantity("mass", "arm", uniform(-0.1, 0.2), unit="kg")
    >>> def evaluate(numbers, worlds):
    ...     return 0.01 - worlds ** 2
    >>> uncertainty = Uncertainty((mass,))
    >>> worlds = uncertainty.draw(range(4))
    >>> result = CampaignResult(
    ...     quantities=[(mass.label, mass.unit)], columns=[("error of hand", "m")],
    ...     numbers=range(4), worlds=worlds, values=evaluate(range(4), worlds),
    ...     stopped=np.full(4, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> found = worst_search(evaluate, uncertainty, result, "error of hand", budget=60)
    >>> round(found.value, 4), abs(found.world).round(2)
    (0.0, array([0.1]))
    """
    column = result.requirement(requirement)
    if not len(result):
        raise ConcurError(
            "search of the worst world",
            expected="a campaign with at least one world",
            came="an empty one",
            cure="Draw samples first.",
        )
    robustness = result.robustness[:, column]
    order = np.argsort(robustness, kind="stable")
    lowest, world = float(robustness[order[0]]), np.array(result.worlds[order[0]])
    name, unit = result.columns[column]
    number = int(result.numbers[order[0]])
    found = WorstFound(name, unit, lowest, world, number, sample=lowest, evaluations=0, history=())
    if not uncertainty.size or math.isinf(lowest):  # nothing is lower than a crash
        return found
    chosen = order[np.isfinite(robustness[order])][:starts]
    points = uncertainty.shares(result.numbers[chosen], result.seed, result.method)
    if not np.allclose(uncertainty.at(points), result.worlds[chosen], rtol=1e-9, atol=1e-12):
        raise ConcurError(
            "search of the worst world, `uncertainty`",
            expected="the declaration from which the campaign was drawn",
            came="one that draws other worlds",
            cure="Pass the uncertainty of the same task.",
        )
    searches = _searches(uncertainty, points, seed, column)
    size = searches[0].population_size
    while found.value > -np.inf and found.evaluations + size <= budget:
        active = [k for k, search in enumerate(searches) if not search.should_stop()]
        active = active[: (budget - found.evaluations) // size]
        if not active:
            break
        asked = [np.array([searches[k].ask() for _ in range(size)]) for k in active]
        worlds = uncertainty.at(np.vstack(asked)[:, : uncertainty.size])
        numbers = np.repeat(result.numbers[chosen[active]], size)
        values = np.asarray(evaluate(numbers, worlds), dtype=float)[:, column]
        values = np.where(np.isnan(values), -np.inf, values)
        at = int(np.argmin(values))
        if values[at] < found.value:
            value, number = float(values[at]), int(numbers[at])
            found = replace(found, value=value, world=worlds[at], number=number)
        history = (*found.history, found.value)
        found = replace(found, evaluations=found.evaluations + len(values), history=history)
        costs = np.maximum(values, _LOST).reshape(len(active), size)
        for k, rows, own in zip(active, asked, costs.tolist(), strict=True):
            searches[k].tell(list(zip(rows, own, strict=True)))
    return found


def _searches(uncertainty: Uncertainty, points: np.ndarray, seed: int, column: int) -> list[Any]:
    """One search for each start; CMA-ES needs two coordinates, so a single one gets a second."""
    cma = needed("cmaes", "verify", "search of the worst world").CMA
    supports = np.array([entry.support for entry in uncertainty.quantities])
    margin = np.where(np.isfinite(supports), _EDGE, TAIL)
    bounds = np.stack([margin[:, 0], 1.0 - margin[:, 1]], axis=1)
    if len(bounds) == 1:
        bounds = np.vstack([bounds, [[0.0, 1.0]]])
        points = np.hstack([points, np.full((len(points), 1), 0.5)])
    found = []
    for k, point in enumerate(points):
        own = np.random.SeedSequence([seed, column, k]).generate_state(1)
        mean = np.clip(point, bounds[:, 0], bounds[:, 1])
        # Candidates outside are moved to the face at once: many worst worlds are corners.
        options = {"bounds": bounds, "n_max_resampling": 0, "seed": int(own[0])}
        found.append(cma(mean=mean, sigma=_WIDTH, **options))
    return found
