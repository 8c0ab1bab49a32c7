"""Campaign of a task from start to end: draw worlds, evaluate them, search the worst."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.campaign._campaign import Campaign
from concur.campaign._result import CampaignResult, Method
from concur.campaign._run import run
from concur.campaign._search import WorstFound, worst_search
from concur.campaign._store import opened
from concur.errors import ConcurError, DescriptionError, shown
from concur.io import Task


def verify(
    task: Task | Campaign,
    samples: int,
    executor: Executor | int | None = None,
    seed: int = 0,
    *,
    method: Method = "independent",
    file: str | PathLike[str] | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> CampaignResult:
    """Evaluate the requirements of a task in sampled worlds of its uncertainty.

    Parameters
    ----------
    task : Task or Campaign
        Task with `uncertainty` and `requirements`, or its campaign, which has its own seed.
    samples : int
        Number of worlds: those with the numbers from 0 to `samples` - 1.
    executor : concurrent.futures.Executor or int, optional
        Where worlds are evaluated: an executor, such as that of a Dask scheduler, or a number of
        processes to spawn; default threads of this process, one for each processor. Results do not
        depend on it.
    seed : int
        Seed of the draws, of jitter and of noise.
    method : str
        "independent" draws, of which a pass rate has an interval, or "sobol" points, which cover
        the declared intervals more evenly.
    file : path, optional
        Results file, in HDF5. Each block of worlds is saved there when it is finished, and a
        campaign that was killed continues.
        It keeps the numbers of worlds of all answers: with more than one, intervals of pass rates
        hold at each look. So does a `Campaign`.
    time_limit : float, optional
        Time without the result of any block that ends the campaign, s; default 20 times the longest
        one so far, and at least a minute. Threads of this process have none.
    progress : bool or callable, optional
        True shows a bar with rate and time left; a callable is called with the share that is done.

    Returns
    -------
    concur.campaign.CampaignResult
        Robustness of each requirement in each world, sorted by number.

    Raises
    ------
    DescriptionError
        If the task declares no uncertainty, or the file holds the results of another campaign.
    ConcurError
        If workers differ from this process; or if the evaluation of a block raises an error, or
        its worker dies or hangs: the error names its worlds.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.campaign import pass_rates
    >>> from concur.worlds import Quantity, Requirement, Uncertainty, Uniform
    >>> mass = Quantity("mass", "forearm", Uniform(-0.05, 0.05), unit="kg")
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> task = replace(task, duration=0.01, requirements=(slow,), uncertainty=Uncertainty((mass,)))
    >>> result = cc.verify(task, 2)
    >>> print(pass_rates(result)[0])  # doctest: +NORMALIZE_WHITESPACE
    all requirements: 2 of 2 worlds pass: at least 22.3 %, two-sided 15.8 % to 100 %, at 95 %
    confidence for a number of worlds fixed beforehand
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ConcurError(
            "campaign, `samples`",
            expected="a number of worlds of at least 1",
            came=shown(samples),
            cure="Pass 1000, for example.",
        )
    campaign = task if isinstance(task, Campaign) else Campaign(task, seed)
    uncertainty = campaign.task.uncertainty
    if not uncertainty.size and campaign.task.imperfections is None:
        raise DescriptionError(
            f"campaign of `{campaign.task.name}`",
            expected="a task with [uncertainty]",
            came="a task without",
            cure="Declare it, for example [uncertainty.mass] with the line hand = [-0.1, 0.1].",
        )
    numbers = np.arange(samples)
    worlds = uncertainty.draw(numbers, campaign.seed, method)
    results = nullcontext() if file is None else opened(Path(file), campaign, worlds)
    with results as store:
        values = run(
            *(campaign, numbers, worlds, executor),
            store=store,
            time_limit=time_limit,
            progress=progress,
        )
        if store is not None:
            store.look(len(numbers))
    if method == "independent":
        campaign.looks |= {len(numbers)} | (set() if store is None else store.looks)
    return campaign.result(numbers, worlds, values, method)


def worst_searches(
    campaign: Campaign,
    result: CampaignResult,
    budget: int,
    executor: Executor | int | None = None,
    progress: Callable[[float], Any] | None = None,
) -> tuple[WorstFound, ...]:
    """Search the worst world of each requirement.

    Parameters
    ----------
    campaign : Campaign
        The campaign.
    result : CampaignResult
        Its samples.
    budget : int
        Number of worlds for each requirement, at most.
    executor : optional
        As of `verify`.
    progress : callable, optional
        Called with the share of the requirements that are done.

    Returns
    -------
    tuple of WorstFound
        The worst world of each requirement, among the samples and the worlds of all searches.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.campaign import Campaign, worst_searches
    >>> from concur.worlds import Quantity, Requirement, Uncertainty, Uniform
    >>> mass = Quantity("mass", "forearm", Uniform(-0.05, 0.05), unit="kg")
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> task = replace(task, duration=0.01, requirements=(slow,), uncertainty=Uncertainty((mass,)))
    >>> campaign = Campaign(task)
    >>> found = worst_searches(campaign, cc.verify(campaign, 2), budget=4)[0]
    >>> found.value <= found.sample
    True
    """
    count, found = len(result.columns), []
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def evaluate(numbers: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        values = run(campaign, numbers, worlds, executor)[:, :count]
        seen.append((numbers, worlds, np.where(np.isnan(values), -np.inf, values)))
        return values

    for k, (name, _) in enumerate(result.columns):
        options = {"budget": budget, "seed": result.seed}
        found.append(worst_search(evaluate, campaign.task.uncertainty, result, name, **options))
        if progress is not None:
            progress((k + 1) / count)
    # The search of one requirement may find the worst world of another.
    for numbers, worlds, values in seen:
        for k, row in enumerate(values.argmin(axis=0)):
            if values[row, k] < found[k].value:
                lower = {"value": float(values[row, k]), "world": worlds[row]}
                found[k] = replace(found[k], **lower, number=int(numbers[row]))
    return tuple(found)
