"""Functions over SX, evaluated at many points in one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import Evaluator

Floats: TypeAlias = NDArray[np.float64]

CHUNK, BLOCK = 64, 1_000
"""Rows evaluated at once, of few and of many; the last block is padded."""

LONG = 50_000
"""Rows from which on machine code is used if there is a compiler: below, compiling takes longer."""


class Columns:
    """A function over SX columns that takes and gives tables, a row for each time."""

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        self._widths = [function.size1_out(i) for i in range(function.n_out())]

    def _at_once(self, count: int) -> Evaluator:
        shapes = [(width, count) for width in self._widths]
        return Evaluator(self.function.map(count), shapes, self.function.name())

    @cached_property
    def _one(self) -> Evaluator:
        shapes = [(width,) for width in self._widths]
        return Evaluator(self.function, shapes, self.function.name())

    @cached_property
    def _few(self) -> Evaluator:
        return self._at_once(CHUNK)

    @cached_property
    def _many(self) -> Evaluator:
        return self._at_once(BLOCK)

    @cached_property
    def _long(self) -> Evaluator:
        # A separate function: results must not depend on earlier calls.
        evaluator = self._at_once(BLOCK)
        evaluator.compile()
        return evaluator

    def __call__(self, *tables: Floats) -> tuple[Floats, ...]:
        """Evaluate row by row: tables of shape (k, size) to tables of shape (k, width)."""
        count = len(tables[0])
        if count == 1:
            found = self._one(*[table[0] for table in tables])
            found = found if isinstance(found, tuple) else (found,)
            return tuple([values[None] for values in found])
        evaluator, size = (self._few, CHUNK) if count < BLOCK else (self._many, BLOCK)
        if count >= LONG:
            evaluator = self._long
        results = tuple(np.empty((count, width)) for width in self._widths)
        for start in range(0, count, size):
            rows = np.arange(start, start + size).clip(max=count - 1)
            part = self._evaluated(evaluator, tuple(table[rows] for table in tables))
            for result, values in zip(results, part, strict=True):
                result[start : start + size] = values[: count - start]
        return results

    def _evaluated(self, evaluator: Evaluator, tables: tuple[Floats, ...]) -> tuple[Floats, ...]:
        found = evaluator(*[table.T for table in tables])
        found = found if isinstance(found, tuple) else (found,)
        return tuple(values.T for values in found)


def column_function(name: str, function: Callable[..., Any], sizes: tuple[int, ...]) -> ca.Function:
    """Function over SX columns of some sizes."""
    symbols = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    results = [ca.densify(result) for result in function(*symbols)]
    return ca.Function(name, symbols, results, {"cse": True})
