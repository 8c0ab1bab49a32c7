"""Blocks of worlds on an executor, of which workers may die or hang.

A block that was at work when a worker died is a suspect. Suspects are evaluated one at a time,
after all others; one that kills its worker alone is halved until the world is found. This world has
crashed, and so has one that exceeds the time limit.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concur.errors import ConcurError, shown
from concur.verification._evaluator import Evaluator
from concur.verification._executors import capacity, freed, local, named, renewed
from concur.verification._table import Table, crashed
from concur.verification._worker import evaluate, ready, shipped, table_of

DEATHS = 2
"""Number of workers that a single world has to kill, alone, before it counts as crashed."""

FIRST_LIMIT = 600.0
"""Time limit of a block until one has been evaluated, s: workers start, and compile."""

SHORTEST_LIMIT = 60.0
"""Shortest time limit of a block that is set from the duration of others, s."""

SLOWER = 20.0
"""Ratio of a time limit to the longest duration of a block so far."""

LARGEST_BLOCK = 64
"""Largest number of worlds in a block by default: the rover takes half a second for them."""

LANES = 8
"""Number of worlds that machine code computes at once; blocks are multiples of it by default."""

_GOES_ON = "With a results file the campaign continues where it was."


@dataclass
class Pool:
    """Executor in use; `own` if the campaign made it, and so ends it."""

    executor: Executor
    own: bool

    def renew(self) -> None:
        """Go on after a worker has died."""
        new = renewed(self.executor)
        self.own = self.own or new is not self.executor
        self.executor = new


@dataclass(frozen=True)
class _Piece:
    """Consecutive worlds, and the number of workers that they have killed alone."""

    first: int
    last: int
    deaths: int = 0

    @property
    def halves(self) -> tuple[_Piece, _Piece]:
        middle = (self.first + self.last) // 2
        return _Piece(self.first, middle), _Piece(middle, self.last)


@dataclass
class _Flight:
    """A block at work: since when, its name for the executor, whether others are at work."""

    piece: _Piece
    start: float
    key: str
    alone: bool


class Work:
    """Worlds that are still to be evaluated."""

    def __init__(
        self,
        evaluator: Evaluator,
        numbers: np.ndarray,
        worlds: np.ndarray,
        pool: Pool,
        block: int | None,
        time_limit: float | None,
    ) -> None:
        self._evaluator, self._numbers, self._worlds = evaluator, numbers, worlds
        self._pool, self._time_limit = pool, time_limit
        self._sent = None if local(pool.executor) else shipped(evaluator)
        self._longest = 0.0
        self._attempts, self._name = itertools.count(), secrets.token_hex(8)
        self._flying: dict[Future[Table], _Flight] = {}
        self._suspects: deque[_Piece] = deque()
        n = len(numbers)
        size = int(block) if block is not None else _block_size(n, capacity(pool.executor))
        self._fresh = deque(_Piece(k, min(k + size, n)) for k in range(0, n, size))

    def results(self) -> Generator[tuple[int, Table], None, None]:
        """Evaluate all worlds; tables in the order in which they come, with their first row."""
        try:
            while self._fresh or self._suspects or self._flying:
                self._submit()
                finished, _ = wait(self._flying, self._patience(), FIRST_COMPLETED)
                deaths = []
                while finished:
                    future = finished.pop()
                    flight = self._flying.pop(future)
                    try:
                        table = future.result()
                    except (Exception, CancelledError) as error:
                        if not _is_death(error):
                            raise self._failure(error) from error
                        deaths.append(flight)
                    else:
                        self._longest = max(self._longest, time.monotonic() - flight.start)
                        yield flight.piece.first, table
                    del future  # Dask computes again what a dead worker had computed
                if deaths and not self._flying:
                    self._pool.renew()
                for flight in deaths:
                    yield from self._death(flight, "the process of its worker ended")
                if self._sent is not None:
                    yield from self._late()
        finally:
            for future in self._flying:
                future.cancel()

    def _submit(self) -> None:
        """Keep all workers busy; with suspects one."""
        while self._fresh and len(self._flying) < capacity(self._pool.executor):
            if not self._sent_off(self._fresh):
                return
        if self._suspects and not self._flying:
            self._sent_off(self._suspects)

    def _sent_off(self, queue: deque[_Piece]) -> bool:
        """Submit the first block of a queue; False if the executor is broken."""
        piece, attempt, executor = queue[0], next(self._attempts), self._pool.executor
        rows, key = self._rows(piece), f"concur-{self._name}-{attempt}"
        try:
            if self._sent is None:
                future = executor.submit(table_of, self._evaluator, *rows)
            else:
                more: dict[str, Any] = named(executor, key)
                future = executor.submit(evaluate, self._sent, *rows, attempt, **more)
        except BrokenExecutor:
            if not self._flying:
                self._pool.renew()
                self._probe()
            return False
        except RuntimeError as error:  # it was shut down
            raise self._failure(error) from error
        queue.popleft()
        alone = queue is self._suspects
        self._flying[future] = _Flight(piece, time.monotonic(), key, alone)
        return True

    def _rows(self, piece: _Piece) -> tuple[np.ndarray, np.ndarray]:
        part = slice(piece.first, piece.last)
        return self._numbers[part], self._worlds[part]

    @property
    def _limit(self) -> float:
        """Time limit of a block, s."""
        if self._time_limit is not None:
            return self._time_limit
        return max(SHORTEST_LIMIT, SLOWER * self._longest) if self._longest else FIRST_LIMIT

    def _patience(self) -> float | None:
        """Duration after which a block is late, s; None: threads are waited for."""
        if self._sent is None or not self._flying:
            return None
        first = min(flight.start for flight in self._flying.values())
        return max(0.0, first + self._limit - time.monotonic())

    def _late(self) -> Iterator[tuple[int, Table]]:
        """End workers whose blocks have exceeded the time limit."""
        now, limit, executor = time.monotonic(), self._limit, self._pool.executor
        late = {f: flight for f, flight in self._flying.items() if now - flight.start >= limit}
        for future, flight in late.items():
            del self._flying[future]
            if not isinstance(executor, ProcessPoolExecutor) and not freed(
                executor, flight.key, future
            ):
                raise ConcurError(
                    f"campaign, {type(executor).__name__}",
                    expected=f"the results of a block of worlds within {limit:g} s",
                    came="none, and no worker that can be restarted",
                    cure="Check that workers are there (those of Dask with a nanny), or pass a "
                    f"larger `time_limit`. {_GOES_ON}",
                )
        if late and isinstance(executor, ProcessPoolExecutor):
            self._fresh.extendleft(flight.piece for flight in self._flying.values())
            self._flying.clear()
            self._pool.renew()
        for flight in late.values():
            yield from self._death(flight, f"no result within {limit:g} s")

    def _death(self, flight: _Flight, why: str) -> Iterator[tuple[int, Table]]:
        """Suspect a block whose worker has died, halve it, or find that its world has crashed."""
        piece = flight.piece
        if not flight.alone:
            self._suspects.append(piece)
            return
        self._probe()
        if piece.last - piece.first > 1:
            self._suspects.extendleft(reversed(piece.halves))
        elif piece.deaths + 1 < DEATHS:
            self._suspects.appendleft(replace(piece, deaths=piece.deaths + 1))
        else:
            columns = len(self._evaluator.columns)
            text = f"{why}, {DEATHS} times of {DEATHS}"
            yield piece.first, crashed(*self._rows(piece), columns, text)

    def _failure(self, error: BaseException) -> ConcurError:
        """Error of an executor, or of a worker before it has evaluated anything."""
        if isinstance(error, ConcurError):
            return error
        return ConcurError(
            f"campaign, {type(self._pool.executor).__name__}",
            expected="workers that start, prepare the evaluation and return results",
            came=f"{type(error).__name__}: {shown(str(error), 200)}",
            cure='Run scripts under `if __name__ == "__main__":`, install the same packages for '
            f"all workers, and check that workers are there. {_GOES_ON}",
        )

    def _probe(self) -> None:
        """Check that workers start and compile: otherwise no world is to blame for their deaths."""
        try:
            if self._sent is None:
                raise BrokenExecutor("its threads do not start")
            attempt = next(self._attempts)
            limit = max(self._limit, SHORTEST_LIMIT)
            self._pool.executor.submit(ready, self._sent, attempt).result(limit)
        except (Exception, CancelledError) as error:
            raise self._failure(error) from error


def _is_death(error: BaseException) -> bool:
    """Whether an error of a block means that its worker has died."""
    kinds = (BrokenExecutor, CancelledError)
    return isinstance(error, kinds) or type(error).__name__ == "KilledWorker"  # the last of Dask


def _block_size(worlds: int, count: int) -> int:
    """Worlds in a block: at least four blocks for each worker, of whole lanes."""
    share = -(-worlds // (4 * count))
    return min(LARGEST_BLOCK, -(-share // LANES) * LANES)
