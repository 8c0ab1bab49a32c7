"""Functions over SX, evaluated at many points in one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Evaluator
from concur.control.references._reference import Floats

CHUNK = 64
"""Rows evaluated at once; the last block is padded."""

LONG, BLOCK = 5_000, 1_000
"""Rows from which on machine code is used, if there is a compiler, and how many at once."""


class Columns:
    """A function over SX columns of some sizes that takes and gives tables, a row for each time."""

    def __init__(self, name: str, function: Callable[..., Any], sizes: tuple[int, ...]) -> None:
        symbols = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
        results = [ca.densify(result) for result in function(*symbols)]
        graph = ca.Function(name, symbols, results, {"cse": True})
        self._widths = [result.shape[0] for result in results]
        self._name, self._graph = name, graph
        self._one, self._many = (self._at_once(count) for count in (1, CHUNK))

    def _at_once(self, count: int) -> Evaluator:
        shapes = [(width, count) for width in self._widths]
        return Evaluator(self._graph.map(count), shapes, self._name)

    @cached_property
    def _long(self) -> Evaluator:
        evaluator = self._at_once(BLOCK)
        evaluator.compile()
        return evaluator

    def __call__(self, *tables: Floats) -> tuple[Floats, ...]:
        """Evaluate row by row: tables of shape (k, size) to tables of shape (k, width)."""
        count = len(tables[0])
        if count == 1:
            return self._evaluated(self._one, tables)
        many, size = self._many, CHUNK
        if count >= LONG:
            # Separate functions: results must not depend on earlier calls.
            many, size = self._long, BLOCK
        results = tuple(np.empty((count, width)) for width in self._widths)
        for start in range(0, count, size):
            rows = np.arange(start, start + size).clip(max=count - 1)
            part = self._evaluated(many, tuple(table[rows] for table in tables))
            for result, values in zip(results, part, strict=True):
                result[start : start + size] = values[: count - start]
        return results

    def _evaluated(self, evaluator: Evaluator, tables: tuple[Floats, ...]) -> tuple[Floats, ...]:
        found = evaluator(*[table.T for table in tables])
        found = found if isinstance(found, tuple) else (found,)
        return tuple(values.T for values in found)
