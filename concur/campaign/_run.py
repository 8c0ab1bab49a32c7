"""Evaluation of many worlds in blocks on any executor; results are saved as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from concur._progress import track
from concur.campaign._evaluator import Evaluator
from concur.campaign._store import Store
from concur.campaign._workers import capacity, evaluate, one_thread_each, shipped, workers
from concur.errors import ConcurError, shown

FIRST_LIMIT = 600.0
"""Time limit of a block until one has been evaluated, s: workers start, and compile."""

SHORTEST_LIMIT = 60.0
"""Shortest time limit of a block that is set from the duration of others, s."""

SLOWER = 20.0
"""Ratio of a time limit to the longest wait for a block so far."""

LARGEST_BLOCK = 64
"""Largest number of worlds in a block by default: the rover takes half a second for them."""

LANES = 8
"""Number of worlds that machine code computes at once; blocks are multiples of it by default."""


def run(
    evaluator: Evaluator,
    numbers: np.ndarray,
    worlds: np.ndarray,
    executor: Executor | int | None = None,
    *,
    block: int | None = None,
    store: Store | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> np.ndarray:
    """Evaluate worlds, in any order and on any number of workers, with the same results.

    Parameters
    ----------
    evaluator : Evaluator
        What is evaluated.
    numbers : numpy.ndarray
        Numbers of the worlds, shape (n,); those of a search occur several times.
    worlds : numpy.ndarray
        Deviations from nominal numbers, shape (n, d).
    executor : concurrent.futures.Executor or int, optional
        Where the blocks are evaluated: a number stands for so many processes, which are spawned;
        default threads of this process, one for each processor.
    block : int, optional
        Number of worlds in a block; results do not depend on it.
    store : Store, optional
        Results file of these worlds: those in it are not evaluated again, each block is saved.
    time_limit : float, optional
        Time without the result of any block that ends the campaign, s; default 20 times the longest
        one so far, and at least a minute. Threads of this process have none.
    progress : bool or callable, optional
        True shows a progress bar; a callable is called with the share that is done.

    Returns
    -------
    numpy.ndarray
        Values, shape (n, m), in the order of the worlds.

    Raises
    ------
    ConcurError
        If an argument is invalid, workers differ from this process, or a block has no result: its
        evaluation raises an error, its worker dies or hangs.
    """
    for name, value in (("block", block), ("time_limit", time_limit)):
        if value is not None and not value > 0:
            raise ConcurError(
                f"campaign, `{name}`",
                expected="a positive number",
                came=shown(value),
                cure="Omit it for a default.",
            )
    numbers, worlds = np.asarray(numbers, dtype=np.int64), np.asarray(worlds, dtype=float)
    evaluator.prepare()
    values = np.full((len(numbers), len(evaluator.columns)), np.nan)
    left = np.arange(len(numbers))
    if store is not None:
        known = store.known[numbers]
        values[known] = store.values[numbers[known]]
        left = left[~known]
    if not len(left):
        return values
    done = len(numbers) - len(left)
    with (
        track(progress, "worlds", len(numbers), done, "worlds/s") as show,
        one_thread_each(),
        workers(executor) as pool,
    ):
        size = int(block) if block is not None else _block_size(len(left), capacity(pool))
        blocks = deque(left[at : at + size] for at in range(0, len(left), size))
        sent = shipped(evaluator, pool)

        def submit(rows: np.ndarray) -> Future[np.ndarray]:
            return pool.submit(evaluate, sent, numbers[rows], worlds[rows])

        with closing(_results(submit, blocks, pool, time_limit, numbers)) as results:
            for rows, found in results:
                values[rows] = found
                if store is not None:
                    store.save(numbers[rows], found)
                done += len(rows)
                show(done)
    return values


def _results(
    submit: Callable[[np.ndarray], Future[np.ndarray]],
    blocks: deque[np.ndarray],
    executor: Executor,
    time_limit: float | None,
    numbers: np.ndarray,
) -> Generator[tuple[np.ndarray, np.ndarray], None, None]:
    """Rows and values of blocks, in the order in which they come."""
    flying: dict[Future[np.ndarray], np.ndarray] = {}
    longest, room = 0.0, capacity(executor)
    try:
        while blocks or flying:
            while blocks and len(flying) < room:
                rows = blocks.popleft()
                with _blaming(executor, numbers, [*flying.values(), rows]):
                    flying[submit(rows)] = rows
            limit = time_limit
            if limit is None:
                limit = max(SHORTEST_LIMIT, SLOWER * longest) if longest else FIRST_LIMIT
            start = time.monotonic()
            patience = None if isinstance(executor, ThreadPoolExecutor) else limit
            finished, _ = wait(flying, patience, FIRST_COMPLETED)
            longest = max(longest, time.monotonic() - start)
            if not finished:
                with _blaming(executor, numbers, list(flying.values())):
                    raise TimeoutError(f"no result within {limit:g} s")
            lost = {future for future in finished if future.cancelled() or future.exception()}
            for future in finished - lost:
                yield flying.pop(future), future.result()
            for future in lost:
                with _blaming(executor, numbers, [flying[future]]):
                    future.result()
    finally:
        for future in flying:
            future.cancel()


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


def _block_size(worlds: int, count: int) -> int:
    """Worlds in a block: at least four blocks for each worker, of whole lanes."""
    share = -(-worlds // (4 * count))
    return min(LARGEST_BLOCK, -(-share // LANES) * LANES)
