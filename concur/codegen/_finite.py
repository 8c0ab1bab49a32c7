"""Which numbers count as finite within a graph."""

from __future__ import annotations

import casadi as ca

from concur.codegen._evaluated import Array

FINITE = 1e300
"""Up to here a number counts as finite: `x == x` would be folded to true, and a comparison with a
NaN is false."""


def zero_unless_finite(values: Array) -> Array:
    """The values, zero where one is a NaN or infinite."""
    return ca.if_else(ca.fabs(values) <= FINITE, values, 0)
