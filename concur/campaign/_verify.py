"""Campaign of a task from start to end: draw worlds, evaluate them, search the worst."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur._progress import track
from concur.campaign._campaign import Campaign, Outcome
from concur.campaign._executors import capacity, evaluate, one_thread_each, shipped, workers
from concur.campaign._result import CampaignResult, Method
from concur.campaign._search import WorstFound, worst_search
from concur.campaign._store import Store, opened
from concur.errors import ConcurError, DescriptionError, shown
from concur.io import Task
from concur.worlds import Requirement, Uncertainty

TIME_LIMIT = 600.0
"""Time without the result of any block that ends a campaign by default, s."""

LARGEST_BLOCK = 64
"""Largest number of worlds in a block: the rover takes half a second for them."""

LANES = 8
"""Number of worlds that machine code computes at once; blocks are multiples of it."""


def verify(
    task: Task | Campaign,
    samples: int,
    executor: Executor | int | None = None,
    seed: int = 0,
    *,
    uncertainty: Uncertainty | None = None,
    requirements: Sequence[Requirement] | None = None,
    method: Method = "independent",
    file: str | PathLike[str] | None = None,
    time_limit: float = TIME_LIMIT,
    progress: bool | Callable[[float], Any] = False,
) -> CampaignResult:
    """Evaluate the requirements of a task in sampled worlds of its uncertainty.

    Parameters
    ----------
    task : Task or Campaign
        The task, or its campaign, which has its own seed, uncertainty and requirements.
    samples : int
        Number of worlds: those with the numbers from 0 to `samples` - 1.
    executor : concurrent.futures.Executor or int, optional
        Where worlds are evaluated: an executor, such as that of a Dask scheduler, or a number of
        processes to spawn; default threads of this process, one for each processor. Results do not
        depend on it.
    seed : int
        Seed of the draws, of jitter and of noise.
    uncertainty : Uncertainty, optional
        Uncertain quantities; default those of the task's file.
    requirements : sequence of Requirement, optional
        Requirements on each run; default those of the task's file.
    method : str
        "independent" draws, of which a pass rate has an interval, or "sobol" points, which cover
        the declared intervals more evenly.
    file : path, optional
        Results file, in HDF5. Each block of worlds is saved there when it is finished, and a
        campaign that was killed continues.
        It keeps the numbers of worlds of all answers: with more than one, intervals of pass rates
        hold at each look. So does a `Campaign`.
    time_limit : float
        Time without the result of any block that ends the campaign, s. Threads of this process
        have none.
    progress : bool or callable, optional
        True shows a bar with rate and time left; a callable is called with the share that is done.

    Returns
    -------
    concur.campaign.CampaignResult
        Robustness of each requirement in each world, sorted by number.

    Raises
    ------
    DescriptionError
        If no uncertainty is declared, or the file holds the results of another campaign.
    ConcurError
        If workers differ from this process, die or hang: the error names their worlds.

    Notes
    -----
    A world whose numbers are not physical, or whose evaluation raises an error, fails all
    requirements: `CampaignResult.crashes` has its reason.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scipy.stats import uniform
    >>> import concur as cc
    >>> from concur.campaign import pass_rates
    >>> from concur.worlds import Quantity, Requirement, Uncertainty
    >>> mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.05, 0.1), unit="kg"),))
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.01)
    >>> result = cc.verify(task, 2, uncertainty=mass, requirements=[slow])
    >>> print(pass_rates(result)[0])  # doctest: +NORMALIZE_WHITESPACE
    all requirements: 2 of 2 worlds pass: at least 22.3 %, two-sided 15.8 % to 100 %, at 95 %
    confidence for a number of worlds fixed beforehand
    """
    whole = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    for name, given, right, expected in (
        ("samples", samples, whole and samples > 0, "a number of worlds of at least 1"),
        ("time_limit", time_limit, time_limit > 0.0, "a positive number"),
    ):
        if not right:
            where, cure = f"campaign, `{name}`", "Pass 1000, for example."
            raise ConcurError(where, expected=expected, came=shown(given), cure=cure)
    if isinstance(task, Campaign):
        campaign = task
    else:
        campaign = Campaign(task, seed, uncertainty, requirements)
    if not campaign.uncertainty.size and campaign.task.imperfections is None:
        raise DescriptionError(
            f"campaign of `{campaign.task.name}`",
            expected="a task with [uncertainty]",
            came="a task without",
            cure="Declare it, for example [uncertainty.mass] with the line hand = [-0.1, 0.1].",
        )
    numbers = np.arange(samples)
    worlds = campaign.uncertainty.draw(numbers, campaign.seed, method)
    results = nullcontext() if file is None else opened(Path(file), campaign, worlds)
    with results as store:
        values, reasons = run(
            *(campaign, numbers, worlds, executor),
            store=store,
            time_limit=time_limit,
            progress=progress,
        )
        if store is not None:
            store.look(len(numbers))
    if method == "independent":
        campaign.looks |= {len(numbers)} | (set() if store is None else store.looks)
    return campaign.result(numbers, worlds, values, reasons, method)


def run(
    campaign: Campaign,
    numbers: np.ndarray,
    worlds: np.ndarray,
    executor: Executor | int | None = None,
    store: Store | None = None,
    time_limit: float = TIME_LIMIT,
    progress: bool | Callable[[float], Any] = False,
) -> Outcome:
    """Values of worlds, and reasons of those without; in any order, on any number of workers.

    The numbers of a search occur several times. Worlds of the results file are not evaluated again.
    """
    campaign.prepare()
    values = np.full((len(numbers), len(campaign.columns)), np.nan)
    left, reasons = np.arange(len(numbers)), dict[int, str]()
    if store is not None:
        known = store.known[numbers]
        values[known] = store.values[numbers[known]]
        left = left[~known]
    if not len(left):
        return values, reasons
    done = len(numbers) - len(left)
    with (
        track(progress, "worlds", len(numbers), done, "worlds/s") as show,
        one_thread_each(),
        workers(executor) as pool,
    ):
        size, sent = block_size(len(left), capacity(pool)), shipped(campaign, pool)
        blocks = np.split(left, range(size, len(left), size))

        def submit(rows: np.ndarray) -> Future[Outcome]:
            return pool.submit(evaluate, sent, numbers[rows], worlds[rows])

        with closing(_results(submit, blocks, pool, time_limit, numbers)) as results:
            for rows, (found, own) in results:
                values[rows] = found
                reasons |= {int(rows[k]): reason for k, reason in own.items()}
                if store is not None:
                    store.save(numbers[rows], found)
                done += len(rows)
                show(done)
    return values, reasons


def block_size(worlds: int, count: int) -> int:
    """Worlds in a block: at least four blocks for each worker, of whole lanes."""
    share = -(-worlds // (4 * count))
    return min(LARGEST_BLOCK, -(-share // LANES) * LANES)


def _results(
    submit: Callable[[np.ndarray], Future[Outcome]],
    blocks: Sequence[np.ndarray],
    executor: Executor,
    time_limit: float,
    numbers: np.ndarray,
) -> Generator[tuple[np.ndarray, Outcome], None, None]:
    """Rows and outcome of blocks, in the order in which they come."""
    waiting, room = iter(blocks), capacity(executor)
    patience = None if isinstance(executor, ThreadPoolExecutor) else time_limit
    flying: dict[Future[Outcome], np.ndarray] = {}
    try:
        while True:
            for rows in islice(waiting, room - len(flying)):
                with _blaming(executor, numbers, [*flying.values(), rows]):
                    flying[submit(rows)] = rows
            if not flying:
                return
            finished, _ = wait(flying, patience, FIRST_COMPLETED)
            if not finished:
                with _blaming(executor, numbers, list(flying.values())):
                    raise TimeoutError(f"no result within {time_limit:g} s")
            for future in sorted(finished, key=_is_lost):  # keep results before an error
                with _blaming(executor, numbers, [flying[future]]):
                    outcome = future.result()
                yield flying.pop(future), outcome
    finally:
        for future in flying:
            future.cancel()


def _is_lost(future: Future[Outcome]) -> bool:
    return future.cancelled() or future.exception() is not None


@contextmanager
def _blaming(executor: Executor, numbers: np.ndarray, blocks: list[np.ndarray]) -> Iterator[None]:
    """Name the worlds that were at work when an executor failed."""
    try:
        yield
    except ConcurError:
        raise
    except (Exception, CancelledError) as error:
        ends = tuple((int(numbers[rows[0]]), int(numbers[rows[-1]])) for rows in blocks)
        raise ConcurError(
            f"campaign, {type(executor).__name__}",
            expected=f"the results of worlds {', '.join(f'{a} to {b}' for a, b in ends)}",
            came=f"{type(error).__name__}: {shown(str(error), 200)}",
            cure="Check that workers are there, and run scripts under "
            '`if __name__ == "__main__":`. With a results file the campaign continues.',
            worlds=ends,
        ) from error


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
    >>> from scipy.stats import uniform
    >>> import concur as cc
    >>> from concur.campaign import Campaign, worst_searches
    >>> from concur.worlds import Quantity, Requirement, Uncertainty
    >>> mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.05, 0.1), unit="kg"),))
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.01)
    >>> campaign = Campaign(task, uncertainty=mass, requirements=[slow])
    >>> found = worst_searches(campaign, cc.verify(campaign, 2), budget=4)[0]
    >>> found.value <= found.sample
    True
    """
    count, found = len(result.columns), []
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def evaluate(numbers: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        values = run(campaign, numbers, worlds, executor)[0][:, :count]
        seen.append((numbers, worlds, np.where(np.isnan(values), -np.inf, values)))
        return values

    for k, (name, _) in enumerate(result.columns):
        options = {"budget": budget, "seed": result.seed}
        found.append(worst_search(evaluate, campaign.uncertainty, result, name, **options))
        if progress is not None:
            progress((k + 1) / count)
    # The search of one requirement may find the worst world of another.
    for numbers, worlds, values in seen:
        for k, row in enumerate(values.argmin(axis=0)):
            if values[row, k] < found[k].value:
                lower = {"value": float(values[row, k]), "world": worlds[row]}
                found[k] = replace(found[k], **lower, number=int(numbers[row]))
    return tuple(found)
