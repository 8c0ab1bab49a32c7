"""Solving with positive definite expressions: factor, never invert."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array


def solve_positive_definite(matrix: Array, right: Array) -> Array:
    """Solve matrix @ x = right by a sparse LDL^T factorisation.

    Parameters
    ----------
    matrix : casadi.SX
        Symmetric positive definite, shape (n, n).
    right : casadi.SX
        Right-hand sides, shape (n, k).

    Returns
    -------
    casadi.SX
        Solutions, shape (n, k).
    """
    # A zero may be known as such on one side of the diagonal only.
    diagonal, lower_transposed, order = ca.ldl(ca.triu2symm(ca.triu(matrix)))
    return ca.ldl_solve(right, diagonal, lower_transposed, order)
