"""Evaluation of a block of worlds, in this process or in that of a worker."""

from __future__ import annotations

import os
import pickle
import threading
from dataclasses import dataclass

import numpy as np

from concur.errors import ConcurError, printable, shown
from concur.verification._evaluator import Evaluator, differences, key_of
from concur.verification._table import Table, crashed, stacked

_KEPT: dict[str, Evaluator] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Shipped:
    """An evaluator on its way to other processes.

    Parameters
    ----------
    facts : dict of str to str
        What its values depend on, in the process that sends it.
    data : bytes
        Its pickle.
    """

    facts: dict[str, str]
    data: bytes


def shipped(evaluator: Evaluator) -> Shipped:
    """Pickle an evaluator once, for all blocks."""
    try:
        return Shipped(dict(evaluator.facts), pickle.dumps(evaluator))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConcurError(
            "campaign, workers in other processes",
            expected="an evaluator that can be pickled",
            came=shown(str(error), 200),
            cure="Take classes and functions from importable modules, or evaluate in threads.",
        ) from None


def ready(sent: Shipped, attempt: int) -> int:
    """Prepare a worker, and show by the number of its process that it answers."""
    _unpacked(sent)
    return os.getpid()


def evaluate(sent: Shipped, numbers: np.ndarray, worlds: np.ndarray, attempt: int) -> Table:
    """Evaluate a block in a worker.

    `attempt` differs in each call, so that no scheduler answers from what it keeps of an earlier
    one.
    """
    return table_of(_unpacked(sent), numbers, worlds)


def _unpacked(sent: Shipped) -> Evaluator:
    """Evaluator that this process keeps; unpickled, compiled and compared at its first block."""
    key = key_of(sent.facts)
    with _LOCK:
        if key not in _KEPT:
            evaluator: Evaluator = pickle.loads(sent.data)
            evaluator.prepare()
            other = differences(sent.facts, evaluator.facts)
            if other:
                raise ConcurError(
                    f"campaign, worker {os.getpid()} on {_host()}",
                    expected="an environment with which results are the same, bit by bit",
                    came=f"another one: {', '.join(other)}",
                    cure="Use workers with the same packages, compiler and kind of processor.",
                    fields=tuple(text.split("`")[1] for text in other),
                )
            _KEPT.clear()  # one campaign at a time
            _KEPT[key] = evaluator
        return _KEPT[key]


def _host() -> str:
    import socket

    return socket.gethostname()


def table_of(evaluator: Evaluator, numbers: np.ndarray, worlds: np.ndarray) -> Table:
    """Evaluate worlds; halve those whose evaluation raises an error until the world is found."""
    columns = len(evaluator.columns)
    try:
        values = np.asarray(evaluator.evaluate(numbers, worlds), dtype=float)
    except Exception as error:
        if len(numbers) == 1:
            why = printable(f"{type(error).__name__}: {error}")
            return crashed(numbers, worlds, columns, why)
        middle = len(numbers) // 2
        halves = (slice(0, middle), slice(middle, None))
        return stacked(table_of(evaluator, numbers[half], worlds[half]) for half in halves)
    if values.shape != (len(numbers), columns):
        raise ConcurError(
            f"{type(evaluator).__name__}.evaluate",
            expected=f"values of shape {(len(numbers), columns)}",
            came=f"shape {values.shape}",
            cure="Return a row for each world and a column for each name in `columns`.",
        )
    return Table(numbers, worlds, values)
