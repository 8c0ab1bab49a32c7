"""Executors of a campaign: threads of this process, processes, or those of the caller.

An executor is anything with the interface of `concurrent.futures.Executor`. Beside it a campaign
needs the number of blocks that are at work at once, and another worker after one has died or hangs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import connection, get_context, parent_process
from typing import Any

from concur._threads import LIMITS
from concur.errors import ConcurError, install_command, shown


def processors() -> int:
    """Number of processors that this process may use."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local(executor: Executor) -> bool:
    """Whether an executor evaluates in threads of this process."""
    return isinstance(executor, ThreadPoolExecutor)


def processes(count: int) -> ProcessPoolExecutor:
    """Start a pool of spawned processes.

    They ignore Ctrl-C, which is for the campaign, and end when its process is killed. They start at
    the first blocks: `one_thread_each` holds until then.

    Parameters
    ----------
    count : int
        How many.

    Returns
    -------
    concurrent.futures.ProcessPoolExecutor
        The pool.
    """
    if isinstance(count, bool) or count < 1:
        raise ConcurError(
            "campaign, `executor`",
            expected="an executor, or a number of processes of at least 1",
            came=shown(count),
            cure="Pass None for threads of this process.",
        )
    return ProcessPoolExecutor(count, get_context("spawn"), _start)


def _start() -> None:
    """Prepare a process of the pool."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


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
    >>> from concur.verification import cluster
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as local:
    ...     with cluster(local.scheduler_address) as executor:
    ...         print(executor.submit(pow, 2, 3).result())
    8
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise ConcurError(
            "option `--scheduler`",
            expected="the package distributed, which sends blocks to a Dask scheduler",
            came="an environment without it",
            cure=f"Install the extra: {install_command('cluster')}.",
        ) from None
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
    """Number of blocks that an executor evaluates at once.

    More are never submitted, so that a block starts when it is submitted, and a worker that dies
    takes one with it.
    """
    client = _client(executor)
    if client is not None:
        return max(1, int(sum(client.nthreads().values())))
    for name in ("_max_workers", "num_workers"):  # of the standard library; of mpi4py.futures
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    return processors()


def renewed(executor: Executor) -> Executor:
    """Executor for the other blocks after a worker has died.

    A pool of processes is killed and replaced by one like it; others replace workers themselves.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return executor
    pool: Any = executor  # these attributes are private, and the same from Python 3.8 to 3.14
    killed(executor)
    return ProcessPoolExecutor(
        pool._max_workers, pool._mp_context, pool._initializer, pool._initargs
    )


def killed(pool: ProcessPoolExecutor) -> None:
    """End a pool of processes, whatever they do."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def named(executor: Executor, key: str) -> dict[str, str]:
    """Further arguments of `submit` by which `freed` finds a block again."""
    return {} if _client(executor) is None else {"key": key}


def freed(executor: Executor, key: str, future: Future[Any]) -> bool:
    """Give up a block that hangs and end its worker; False if this is impossible.

    Only a Dask scheduler can do so; the nanny of the worker starts it again.
    """
    client = _client(executor)
    if client is None:
        return False
    busy = _holders(client, key)
    # The block goes first: else the scheduler gives it to the next worker, which hangs too.
    future.cancel()
    _wait_until(lambda: not _holders(client, key))
    if busy:
        # In the thread of the worker's server, beside the one that hangs.
        client.run(os._exit, 1, workers=busy, on_error="ignore")
        _wait_until(lambda: not set(busy) & set(client.nthreads()))  # it would get the next block
    return bool(busy or client.nthreads())


def _wait_until(done: Callable[[], bool]) -> None:
    """Wait for a scheduler, ten seconds at most."""
    for _ in range(100):
        if done():
            break
        time.sleep(0.1)


def _holders(client: Any, key: str) -> list[str]:
    """Workers that a block was given to."""
    return [worker for worker, keys in client.processing().items() if key in keys]


def _client(executor: Executor) -> Any:
    """Client of an executor of Dask; None for others."""
    if type(executor).__module__.partition(".")[0] == "distributed":
        return getattr(executor, "_client", None)
    return None
