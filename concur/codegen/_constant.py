"""Numbers as expressions, expressions without NaN, and parts of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np


def constant(values: object) -> Any:
    """Convert numbers to an expression with structural zeros.

    Parameters
    ----------
    values : array_like or casadi.SX
        A vector or matrix; an expression is returned as it is.

    Returns
    -------
    casadi.SX
        The same numbers.
    """
    if isinstance(values, ca.SX):
        return values
    numbers = np.asarray(values, dtype=float)
    return _kept(numbers.shape, numbers.tobytes())[:, :]


def part(vector: Any, which: slice | Sequence[int]) -> Any:
    """Take entries of a vector, as a vector.

    Of a column of one entry, CasADi's ``x[0:0]`` and ``x[[]]`` are rows of shape (1, 0), which
    another function takes as something else than nothing.

    Parameters
    ----------
    vector : numpy.ndarray, casadi.SX or casadi.MX
        Shape (n,).
    which : slice or sequence of int
        The entries.

    Returns
    -------
    numpy.ndarray, casadi.SX or casadi.MX
        The entries, shape (k,).
    """
    return vector[which] if isinstance(vector, np.ndarray) else vector[which, :]


@lru_cache(maxsize=4096)
def _kept(shape: tuple[int, ...], data: bytes) -> ca.SX:
    """Cached conversion, as sweeps repeat the same numbers; a copy takes a fifth of the time."""
    return ca.SX(ca.sparsify(ca.DM(np.frombuffer(data).reshape(shape))))


FINITE = 1e300
"""Largest number that counts as finite: a comparison with NaN is false, while CasADi folds
`x == x` to true."""


def zero_unless_finite(values: Any) -> Any:
    """Replace NaN and infinities by zero.

    Parameters
    ----------
    values : numpy.ndarray or casadi.SX
        Numbers of any shape.

    Returns
    -------
    numpy.ndarray or casadi.SX
        The finite numbers.
    """
    return ca.if_else(ca.fabs(values) <= FINITE, values, 0)
