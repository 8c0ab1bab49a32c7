"""Evaluators of campaigns: worlds to numbers, with a hash of all that the numbers depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Protocol

import numpy as np


class Evaluator(Protocol):
    """Map from worlds to values, such as that of a task.

    It can be pickled, and a row of its values depends on the number and the deviations of its world
    only, bit by bit: not on the other worlds of the call, the thread or the process.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values of a world."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Causes of the values, a short text or a hash by field.

        They are found in the process that asks, not carried by the pickle: the compiler and the
        processor are those of the worker.
        """

    def prepare(self) -> None:
        """Build and compile what `evaluate` needs, once per process; called before it."""

    def evaluate(self, numbers: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        """Evaluate worlds with one thread; several threads may call it at once.

        Parameters
        ----------
        numbers : numpy.ndarray
            Numbers of the worlds, shape (n,).
        worlds : numpy.ndarray
            Deviations from nominal numbers, shape (n, d).

        Returns
        -------
        numpy.ndarray
            Values, shape (n, m), NaN where a world has none.
        """


def key_of(facts: Mapping[str, str]) -> str:
    """Hash of the causes of values.

    Parameters
    ----------
    facts : mapping of str to str
        As of an `Evaluator`.

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    text = json.dumps(dict(facts), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(facts: Mapping[str, str], others: Mapping[str, str]) -> tuple[str, ...]:
    """Name the fields in which two sets of facts differ, with both values."""
    names = [*facts, *(name for name in others if name not in facts)]
    return tuple(
        f"`{name}` ({others.get(name, 'nothing'):.40} instead of {facts.get(name, 'nothing'):.40})"
        for name in names
        if facts.get(name) != others.get(name)
    )
