"""Evaluation of many worlds in blocks; results are kept as they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from concur._progress import track
from concur.errors import ConcurError, ShapeError, shown
from concur.verification._blocks import Pool, Work
from concur.verification._evaluator import Evaluator
from concur.verification._executors import killed, one_thread_each, processes, processors
from concur.verification._store import Store
from concur.verification._table import Table, joined

ALIKE = 8
"""Number of worlds that have to crash for one cause, before any result, to stop a campaign."""

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?")


def run(
    evaluator: Evaluator,
    numbers: np.ndarray,
    worlds: np.ndarray,
    executor: Executor | Pool | int | None = None,
    *,
    block: int | None = None,
    store: Store | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> Table:
    """Evaluate worlds, in any order and on any number of workers, with the same results.

    Parameters
    ----------
    evaluator : Evaluator
        What is evaluated.
    numbers : numpy.ndarray
        Numbers of the worlds, shape (n,), all different.
    worlds : numpy.ndarray
        Deviations from nominal numbers, shape (n, d).
    executor : concurrent.futures.Executor or int, optional
        Where the blocks are evaluated: a number stands for so many processes, which are spawned;
        default threads of this process, one for each processor. A world that ends the process it
        is evaluated in ends the campaign if these are threads.
    block : int, optional
        Number of worlds in a block; results do not depend on it.
    store : Store, optional
        Results file: its worlds are not evaluated again, and each block is appended to it.
    time_limit : float, optional
        Duration of a block beyond which its worker counts as hung, s; default 20 times that of the
        longest block so far, and at least a minute. Threads of this process have none.
    progress : bool or callable, optional
        True shows a progress bar; a callable is called with the share that is done.

    Returns
    -------
    Table
        The values, sorted by number.

    Raises
    ------
    ConcurError
        If an argument is invalid, workers differ from this process, or the executor fails. If the
        first worlds all crash for one cause, up to numbers in its text: `ALIKE` of them, or all
        worlds of a smaller campaign if there are several. None of them is kept.
    """
    numbers, worlds = _checked(numbers, worlds)
    for name, value in (("block", block), ("time_limit", time_limit)):
        if value is not None and not value > 0:
            raise _wrong(name, "a positive number", shown(value), "Omit it for a default.")
    evaluator.prepare()
    kept = _kept(store, numbers, worlds)
    done = len(kept) if kept is not None else 0
    parts = [kept] if kept is not None else []
    if done < len(numbers):
        left = np.isin(numbers, kept.numbers, invert=True) if kept is not None else slice(None)
        with (
            track(progress, "worlds", len(numbers), done, "worlds/s") as show,
            one_thread_each(),
            workers(executor) as pool,
        ):
            work = Work(evaluator, numbers[left], worlds[left], pool, block, time_limit)
            answered = kept is not None and len(kept.crashes) < len(kept)
            with closing(work.results()) as results:
                for part in _proven((part for _, part in results), len(numbers) - done, answered):
                    if store is not None:
                        store.append(part)
                    parts.append(part)
                    done += len(part)
                    show(done)
    if not parts:
        return Table(numbers, worlds, np.empty((0, len(evaluator.columns))))
    return joined(parts)


def values_of(
    evaluator: Evaluator,
    numbers: np.ndarray,
    worlds: np.ndarray,
    executor: Executor | Pool | int | None = None,
    time_limit: float | None = None,
) -> np.ndarray:
    """Evaluate worlds of which several may have one number, as those of a search.

    Parameters
    ----------
    evaluator : Evaluator
        What is evaluated.
    numbers, worlds : numpy.ndarray
        Numbers, shape (n,), and deviations, shape (n, d).
    executor : optional
        As of `run`.
    time_limit : float, optional
        As of `run`.

    Returns
    -------
    numpy.ndarray
        Values, shape (n, m), NaN for crashed worlds.
    """
    numbers, worlds = np.asarray(numbers, dtype=np.int64), np.asarray(worlds, dtype=float)
    evaluator.prepare()
    values = np.full((len(numbers), len(evaluator.columns)), np.nan)
    with one_thread_each(), workers(executor) as pool:
        work = Work(evaluator, numbers, worlds, pool, None, time_limit)
        with closing(work.results()) as results:
            for first, part in results:
                values[first : first + len(part)] = part.values
    return values


def _proven(parts: Iterator[Table], count: int, answered: bool) -> Iterator[Table]:
    """Pass tables on, once they show that worlds do not all crash for one cause."""
    held: list[Table] = []
    for part in parts:
        held.append(part)
        causes = [why for table in held for why in table.crashes.values()]
        answered = answered or len(causes) < sum(map(len, held))
        if answered or len(causes_of(dict(enumerate(causes)))) > 1:
            answered = True
            yield from held
            held = []
        elif len(causes) >= max(2, min(ALIKE, count)):
            raise ConcurError(
                "campaign",
                expected="worlds that can be evaluated",
                came=f"the same error in all of the first {len(causes)} worlds: {causes[0]}",
                cure="Remove its cause, which is common to all worlds: check the law, the task and "
                "the installed packages. No result of these worlds is kept.",
            )
    yield from held


def causes_of(crashes: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Causes of crashed worlds, up to numbers in their text: its first text, and the worlds.

    The most frequent one comes first.
    """
    found: dict[str, list[int]] = {}
    for number, why in crashes.items():
        found.setdefault(_NUMBER.sub("#", why), []).append(number)
    return sorted(
        ((crashes[numbers[0]], numbers) for numbers in found.values()),
        key=lambda cause: -len(cause[1]),
    )


def _wrong(name: str, expected: str, came: str, cure: str) -> ConcurError:
    return ConcurError(f"campaign, `{name}`", expected=expected, came=came, cure=cure)


def _checked(numbers: Any, worlds: Any) -> tuple[np.ndarray, np.ndarray]:
    numbers, worlds = np.asarray(numbers), np.asarray(worlds, dtype=float)
    if numbers.ndim != 1 or worlds.ndim != 2 or len(numbers) != len(worlds):
        raise ShapeError(
            "campaign, `worlds`",
            expected="shapes (n,) of `numbers` and (n, d) of `worlds`",
            came=f"{numbers.shape} and {worlds.shape}",
            cure="Pass a row for each number.",
        )
    numbers = numbers.astype(np.int64)
    if len(np.unique(numbers)) < len(numbers):
        raise _wrong("numbers", "different numbers", "one twice", "Count each world once.")
    return numbers, worlds


def _kept(store: Store | None, numbers: np.ndarray, worlds: np.ndarray) -> Table | None:
    """Rows of the results file that are asked for, None without any."""
    if store is None or not len(store.table):
        return None
    table = store.table
    asked = np.isin(table.numbers, numbers)
    order = np.argsort(numbers)
    same = worlds[order][np.searchsorted(numbers, table.numbers[asked], sorter=order)]
    if same.tobytes() != table.worlds[asked].tobytes():
        raise ConcurError(
            str(store.path),
            expected="the worlds of this campaign",
            came="other worlds with the same numbers",
            cure="Name another folder.",
        )
    here = set(table.numbers[asked].tolist())
    crashes = {number: why for number, why in table.crashes.items() if number in here}
    return Table(table.numbers[asked], table.worlds[asked], table.values[asked], crashes)


@contextmanager
def workers(given: Executor | Pool | int | None = None) -> Iterator[Pool]:
    """Keep the workers of a campaign for its searches, or for further campaigns.

    Parameters
    ----------
    given : concurrent.futures.Executor or int, optional
        As the argument `executor` of `verify`.

    Yields
    ------
    Pool
        To pass as `executor`; workers that were started for it end with the context.

    Raises
    ------
    ConcurError
        If it is neither.

    Examples
    --------
    >>> from concur.verification import workers
    >>> with workers(1) as pool:
    ...     print(type(pool).__name__)
    Pool
    """
    if isinstance(given, Pool):
        yield given
        return
    if given is None:
        pool = Pool(ThreadPoolExecutor(processors()), True)
    elif isinstance(given, int):
        pool = Pool(processes(given), True)
    elif hasattr(given, "submit"):
        pool = Pool(given, False)
    else:
        cure = "Pass a number of processes, or None for threads of this process."
        raise _wrong("executor", "an executor of concurrent.futures", shown(given), cure)
    try:
        yield pool
    except BaseException:
        if pool.own and isinstance(pool.executor, ProcessPoolExecutor):
            killed(pool.executor)
        raise
    finally:
        if pool.own:
            pool.executor.shutdown(wait=True, cancel_futures=True)
