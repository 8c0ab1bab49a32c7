"""More controls than shape velocities: the least torques that make given forces on the shape.

With the actuation A = H^T B (ns, nu) of full rank and positive weights W the forces f come from

    u = W^-1 A^T (A W^-1 A^T)^-1 f,

the solution of ``A u = f`` with the least ``u^T W u``, by the QR factors of ``(A W^-1/2)^T``.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from concur.codegen import Array, constant


def share(
    actuation: Array, forces: Array, weights: Sequence[float] | None = None
) -> tuple[Array, Array, Array]:
    """Share forces on the shape among more controls.

    Parameters
    ----------
    actuation : casadi.SX
        A, shape (ns, nu) with nu > ns.
    forces : casadi.SX
        Forces on the shape as columns, shape (ns, k).
    weights : sequence of float, optional
        Weight of the square of each control, shape (nu,); default ones.

    Returns
    -------
    controls : casadi.SX
        Least controls, shape (nu, k).
    least, largest : casadi.SX
        Lower bound of the smallest, and upper bound of the largest singular value of A W^-1/2;
        `least` is zero where it is singular.
    """
    root = _roots(actuation, weights)
    columns, upper = ca.qr((actuation @ ca.diag(root)).T)
    minus = minus_inverse(upper)
    size = ca.norm_fro(minus)
    # A zero on the diagonal leaves NaN behind, which must not pass for a large number.
    least = ca.if_else(size < ca.inf, 1.0 / size, 0.0)
    controls = -(ca.diag(root) @ (columns @ (minus.T @ forces)))
    return controls, least, ca.norm_fro(upper)


def unfelt(actuation: Array, weights: Sequence[float] | None = None) -> Array:
    """Controls that make no force on the shape, orthonormal in the weights, (nu, nu - ns).

    Parameters
    ----------
    actuation : casadi.SX
        A, shape (ns, nu) with nu > ns.
    weights : sequence of float, optional
        As for `share`.

    Returns
    -------
    casadi.SX
        Z with A Z = 0 and Z^T W Z = 1.
    """
    root = _roots(actuation, weights)
    return ca.diag(root) @ ca.nullspace(ca.densify(actuation @ ca.diag(root)))


def minus_inverse(upper: Array) -> Array:
    """Negative inverse of an upper triangular matrix, by back substitution.

    The negative, since CasADi makes a division of every product with 1 / x.

    Parameters
    ----------
    upper : casadi.SX
        The matrix, square.

    Returns
    -------
    casadi.SX
        Minus its inverse.
    """
    n = upper.shape[0]
    minus = ca.SX(n, n)
    for k in range(n):
        minus[k, k] = -1.0 / upper[k, k]
        for i in reversed(range(k)):
            within = slice(i + 1, k + 1)
            minus[i, k] = (upper[i, within] @ minus[within, k]) * minus[i, i]
    return minus


def _roots(actuation: Array, weights: Sequence[float] | None) -> Array:
    """Diagonal of W^-1/2."""
    if weights is None:
        return ca.SX.ones(actuation.shape[1])
    return 1.0 / ca.sqrt(constant(weights))
