"""Test for finite numbers within a graph."""

from __future__ import annotations

import casadi as ca

from concur.codegen._evaluated import Array

FINITE = 1e300
"""Largest number that counts as finite: a comparison with NaN is false, while CasADi folds
`x == x` to true."""


def zero_unless_finite(values: Array) -> Array:
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
