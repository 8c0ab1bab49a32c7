"""Where worlds are evaluated: threads of this process, processes, or any executor of the caller."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from typing import Any, NamedTuple

import numpy as np

from concur._threads import LIMITS, processors
from concur.campaign._campaign import Campaign, Outcome
from concur.campaign._store import differences
from concur.errors import ConcurError, needed, shown


@contextmanager
def workers(given: Executor | int | None = None) -> Iterator[Executor]:
    """Keep the workers of a campaign for its searches, or for further campaigns.

    Parameters
    ----------
    given : concurrent.futures.Executor or int, optional
        As the argument `executor` of `verify`.

    Yields
    ------
    concurrent.futures.Executor
        To pass as `executor`; workers that were started for it end with the context.

    Raises
    ------
    ConcurError
        If it is neither.

    Examples
    --------
    >>> from concur.campaign import workers
    >>> with workers(1) as pool:
    ...     print(type(pool).__name__)
    ProcessPoolExecutor
    """
    if isinstance(given, Executor):
        yield given
        return
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
        raise ConcurError(
            "campaign, `executor`",
            expected="an executor of concurrent.futures, or a number of processes of at least 1",
            came=shown(given),
            cure="Pass None for threads of this process.",
        )
    pool: ThreadPoolExecutor | ProcessPoolExecutor
    if given is None:
        pool = ThreadPoolExecutor(processors())
    else:
        pool = ProcessPoolExecutor(given, get_context("spawn"), _start)
    try:
        yield pool
    except BaseException:
        if isinstance(pool, ProcessPoolExecutor):  # they may hang; the attribute is private
            for process in list((pool._processes or {}).values()):
                process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to a Dask scheduler.

    Parameters
    ----------
    address : str
        Its address, such as ``tcp://10.0.0.1:8786``.

    Yields
    ------
    concurrent.futures.Executor
        An executor of its workers.

    Raises
    ------
    ConcurError
        If the extra `cluster` is not installed or the scheduler does not answer.

    Examples
    --------
    >>> from distributed import LocalCluster
    >>> from concur.campaign import cluster
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as local:
    ...     with cluster(local.scheduler_address) as executor:
    ...         print(executor.submit(pow, 2, 3).result())
    8
    """
    distributed = needed("distributed", "cluster", "option `--scheduler`")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ConcurError(
            f"option `--scheduler`, {address}",
            expected="the address of a Dask scheduler that answers",
            came=shown(str(error), 200) or type(error).__name__,
            cure="Start one with `dask scheduler`, and pass the address that it prints.",
        ) from None
    with client:
        yield client.get_executor(pure=False)


def capacity(executor: Executor) -> int:
    """Number of blocks that an executor evaluates at once; more are not submitted."""
    client: Any = getattr(executor, "_client", None)  # of Dask
    if hasattr(client, "nthreads"):
        return max(1, int(sum(client.nthreads().values())))
    for name in ("_max_workers", "num_workers"):  # of the standard library; of mpi4py.futures
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    return processors()


class Shipped(NamedTuple):
    """A pickled campaign, and its facts in the process that sends it."""

    key: str
    facts: Mapping[str, str]
    data: bytes


def shipped(campaign: Campaign, executor: Executor) -> Campaign | Shipped:
    """Pickle a campaign once, for all blocks; threads of this process use it as it is."""
    if isinstance(executor, ThreadPoolExecutor):
        return campaign
    try:
        return Shipped(campaign.key, campaign.facts, pickle.dumps(campaign))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConcurError(
            "campaign, workers in other processes",
            expected="a task that can be pickled",
            came=shown(str(error), 200),
            cure="Take classes and functions from importable modules, or evaluate in threads.",
        ) from None


def evaluate(sent: Campaign | Shipped, numbers: np.ndarray, worlds: np.ndarray) -> Outcome:
    """Evaluate a block of worlds in a worker; a world that raises has a reason, and no values."""
    campaign = _unpacked(sent) if isinstance(sent, Shipped) else sent
    try:
        return campaign.outcome(numbers, worlds)
    except Exception as error:
        if len(numbers) == 1:
            reason = f"{type(error).__name__}: {shown(str(error), 300)}"
            return np.full((1, len(campaign.columns)), np.nan), {0: reason}
    alone = [evaluate(campaign, numbers[[k]], worlds[[k]]) for k in range(len(numbers))]
    reasons = {k: own[0] for k, (_, own) in enumerate(alone) if own}
    return np.concatenate([values for values, _ in alone]), reasons


_KEPT: dict[str, Campaign] = {}
_LOCK = threading.Lock()


def _unpacked(sent: Shipped) -> Campaign:
    """Campaign that this process keeps; unpickled, compiled and compared at its first block."""
    with _LOCK:
        if sent.key not in _KEPT:
            campaign: Campaign = pickle.loads(sent.data)
            campaign.prepare()
            other = differences(sent.facts, campaign.facts)
            if other:
                raise ConcurError(
                    f"campaign, worker {os.getpid()}",
                    expected="an environment with which results are the same, bit by bit",
                    came=f"another one: {', '.join(other.values())}",
                    cure="Use workers with the same packages, compiler and kind of processor.",
                    fields=tuple(other),
                )
            _KEPT.clear()  # one campaign at a time
            _KEPT[sent.key] = campaign
        return _KEPT[sent.key]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let linear algebra in processes that start meanwhile use one thread."""
    before = {name: os.environ.get(name) for name in LIMITS}
    os.environ.update(dict.fromkeys(LIMITS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _start() -> None:
    """Prepare a process: Ctrl-C is for the campaign, and it ends when the campaign is killed."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
