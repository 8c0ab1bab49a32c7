"""Quadratic programs of any size by one solver, with arrays as arguments.

The wheel of CasADi has the solver DAQP. Its results are exact to the tolerance of an active set, so
that programs of the same numbers end alike on all machines.
"""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.planning._graphs import Call

BLOCK = 64
"""Programs have a multiple of this number of rows, so that few solvers are made."""

KEPT_SOLVERS = 64
"""Sizes of programs whose solvers are kept."""

Floats = NDArray[np.float64]


def least(
    square: Floats,
    slope: Floats,
    table: Floats,
    rows: tuple[Floats, Floats],
    bounds: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Variables of least ``x' square x / 2 + slope' x`` within rows and bounds; prices of rows.

    A solver that stops early may leave the bounds; its result is cut there.
    """
    count, size = table.shape
    padded = count + -count % BLOCK
    call = _solver(size, padded)
    own = np.zeros((padded, size), order="F")
    own[:count] = table
    low, high = np.full(padded, -np.inf), np.full(padded, np.inf)
    low[:count], high[:count] = rows
    given = (square, slope, own, low, high, *bounds)
    unused = [np.zeros(call.function.size_in(k)) for k in range(len(given), call.function.n_in())]
    x, _, prices, _ = call(*given, *unused)
    return np.clip(x[:, 0], *bounds), prices[:count, 0]


@lru_cache(KEPT_SOLVERS)
def _solver(size: int, rows: int) -> Call:
    shapes = {"h": ca.Sparsity.dense(size, size), "a": ca.Sparsity.dense(rows, size)}
    return Call(ca.conic("step", "daqp", shapes, {"error_on_fail": False}))
