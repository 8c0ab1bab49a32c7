"""Solving with positive definite expressions: factor, never invert."""

from __future__ import annotations

from functools import reduce

import casadi as ca

from concur.codegen import Array
from concur.robot._spatial import cross

HALVINGS = 50
"""Halvings of the interval of an eigenvalue: to the rounding of its matrix."""

TINY = 1e-300
"""Square of a column that is zero."""


def solve_positive_definite(matrix: Array, right: Array) -> Array:
    """Solve matrix @ x = right, shapes (n, n) and (n, k), by a sparse LDL^T factorisation."""
    # A zero may be known as such on one side of the diagonal only.
    diagonal, lower_transposed, order = ca.ldl(ca.triu2symm(ca.triu(matrix)))
    return ca.ldl_solve(right, diagonal, lower_transposed, order)


def solve_rigid(matrix: Array, right: Array) -> Array:
    """Solve for the twists (6, k) of a rigid body with mass that has given momenta (6, k).

    The matrix is its spatial inertia (6, 6), [linear; angular]. About the centre of mass it falls
    into the mass and a tensor: three unknowns are left of six.
    """
    inverse_mass = 1 / matrix[0, 0]
    first = ca.vertcat(matrix[5, 1], matrix[3, 2], matrix[4, 0])
    center = first * inverse_mass
    products = [first[k] * center[k] for k in range(3)]
    linear, angular = right[:3, :], right[3:, :]
    tensor = ca.SX(3, 3)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        tensor[k, k] = matrix[3 + k, 3 + k] - (products[i] + products[j])
        tensor[i, j] = tensor[j, i] = matrix[3 + i, 3 + j] + first[i] * center[j]
    turning = solve_small(tensor, angular - cross(center, linear))
    return ca.vertcat(linear * inverse_mass + cross(center, turning), turning)


def solve_small(matrix: Array, right: Array) -> Array:
    """Solve by LDL^T in the order given, with one division for each unknown and no more."""
    n = matrix.shape[0]
    # The negative, since CasADi makes a division of every product with 1 / pivot.
    lower = ca.SX(n, n)
    minus: list[Array] = []
    rows = [right[k, :] for k in range(n)]
    for k in range(n):
        column = matrix[k:, k]
        for j in range(k):
            column += lower[k:, j] * (lower[k, j] * minus[j])
            rows[k] += (lower[k, j] * minus[j]) * rows[j]
        lower[k:, k] = column
        minus.append(-1 / column[0])
    for k in reversed(range(n)):
        rows[k] *= -minus[k]
        for i in range(k + 1, n):
            rows[k] += (lower[i, k] * minus[k]) * rows[i]
    return ca.vertcat(ca.SX(0, right.shape[1]), *rows)


def least_eigenvalue(matrix: Array) -> Array:
    """Least eigenvalue of a positive definite matrix (n, n), or zero if it is not.

    Bisection on the signs of the leading minors of its tridiagonal form: alike for equal, close and
    distinct eigenvalues, without a branch and, beside the form, a division. The result is below the
    eigenvalue, by `HALVINGS` halvings of the least diagonal entry.
    """
    diagonal, beside = _tridiagonal(matrix)
    size = ca.fmax(reduce(ca.fmax, diagonal), 0)
    entries = [entry / size for entry in diagonal]
    squares = [(entry / size) ** 2 for entry in beside]
    least, width = ca.SX(0), ca.fmax(0, reduce(ca.fmin, entries))
    for _ in range(HALVINGS):
        width *= 0.5
        middle = least + width
        before, minor = ca.SX(1), entries[0] - middle
        smallest = minor
        for entry, square in zip(entries[1:], squares, strict=True):
            before, minor = minor, (entry - middle) * minor - square * before
            smallest = ca.fmin(smallest, minor)
        least = ca.if_else(smallest > 0, middle, least)
    return ca.if_else(least > 0, size * least, 0)


def _tridiagonal(matrix: Array) -> tuple[list[Array], list[Array]]:
    """Diagonal and the entries beside it of a similar matrix, by Householder's reflections."""
    rest, diagonal, beside = ca.densify(matrix), list[Array](), list[Array]()
    for _ in range(matrix.shape[0] - 2):
        first, column, rest = rest[0, 0], rest[1:, 0], rest[1:, 1:]
        end = -ca.copysign(ca.norm_2(column), column[0])
        mirror = ca.vertcat(column[0] - end, column[1:])
        weight = 2 / ca.fmax(ca.sumsqr(mirror), TINY)
        turned = weight * (rest @ mirror)
        turned -= (weight / 2 * ca.dot(turned, mirror)) * mirror
        rest -= mirror @ turned.T + turned @ mirror.T
        diagonal.append(first)
        beside.append(end)
    if rest.shape[0] == 1:
        return [rest[0, 0]], []
    return [*diagonal, rest[0, 0], rest[1, 1]], [*beside, rest[1, 0]]


def side_of_factor(scales: ca.SX) -> Array:
    """Sign of a determinant, 1 or -1, up to one that is the same for all matrices of its sparsity.

    The scales of the reflectors, shape (n,), come from `casadi.qr_sparse`: zero where a column was
    not reflected. The triangle's diagonal is positive.
    """
    side = ca.SX(1)
    for k in range(scales.numel()):
        side *= 1.0 - 2.0 * (scales[k] > 0.0)
    return side
