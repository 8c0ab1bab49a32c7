"""Proved bounds: rational arithmetic, with results rounded to the safe side.

Float arguments are taken as the exact numbers that they are.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter, sqrt

import numpy as np
from scipy.linalg import eigh

from concur.certify._structure import exact, ldl_pivots

Rational = np.ndarray
"""Matrix of fractions, dtype object."""

TERMS = 24
"""Terms of the series of sine and cosine: more than float precision needs up to pi / 2."""


def rational(matrix: np.ndarray) -> Rational:
    """Floats of any shape as equal fractions, dtype object."""
    rows = exact(np.atleast_2d(matrix))
    return np.array(rows, dtype=object).reshape(matrix.shape)


def float_below(value: Fraction) -> float:
    """Float not above a number, by at most one step of the floats."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)


def float_above(value: Fraction) -> float:
    """Float not below a number, by at most one step of the floats."""
    return -float_below(-value)


def root_above(value: Fraction) -> float:
    """Float whose square is not below a nonnegative number."""
    root = sqrt(float_above(value))
    while Fraction(root) ** 2 < value:
        root = nextafter(root, inf)
    return root


def root_below(value: Fraction) -> float:
    """Float, not negative, whose square is not above a nonnegative number."""
    root = sqrt(float_above(value))
    while Fraction(root) ** 2 > value:
        root = nextafter(root, 0.0)
    return root


def sine(angle: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of the sine of an angle from 0 to pi / 2, by its series."""
    return _partial_sums(angle, angle, 1)


def cosine(angle: Fraction) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of the cosine of an angle from 0 to pi / 2; not negative."""
    lower, upper = _partial_sums(angle, Fraction(1), 0)
    return max(lower, Fraction(0)), upper


def largest_eigenvalue(matrix: Rational, metric: Rational) -> Fraction:
    """Upper bound of the eigenvalues of a positive semidefinite matrix in a metric.

    For the returned number a, a metric - matrix is positive definite, by its pivots.
    """
    try:
        floats = eigh(matrix.astype(float), metric.astype(float), eigvals_only=True)
        guess = Fraction(float(floats[-1]))
    except np.linalg.LinAlgError:  # the metric is definite, but not in float arithmetic
        guess = Fraction(np.trace(solve(metric, matrix)))
    slack = max(guess, Fraction(1, 2**1000)) / 2**45
    while not definite((guess + slack) * metric - matrix):
        slack *= 2
    return guess + slack


def smallest_eigenvalue(matrix: Rational, metric: Rational) -> Fraction:
    """Lower bound, above zero, of the eigenvalues of a positive definite matrix in a metric."""
    return 1 / largest_eigenvalue(metric, matrix)


def solve(matrix: Rational, right: Rational) -> Rational:
    """Exact solution of equations with a positive definite matrix, for the columns of `right`."""
    size = len(matrix)
    rows = np.hstack([matrix, right])
    for i in range(size):  # pivots of a positive definite matrix are never zero
        rows[i] = rows[i] / rows[i, i]
        for k in range(size):
            if k != i:
                rows[k] = rows[k] - rows[k, i] * rows[i]
    return rows[:, size:]


def definite(matrix: Rational) -> bool:
    """Whether a symmetric matrix of fractions is positive definite, by its pivots."""
    pivots = ldl_pivots(matrix.tolist())
    return len(pivots) == len(matrix) and pivots[-1] > 0


def semidefinite(matrix: Rational) -> bool:
    """Whether a symmetric matrix of fractions has no negative eigenvalue."""
    rest = matrix
    while len(rest):
        pivot, row = rest[0, 0], rest[0, 1:]
        if pivot < 0 or (pivot == 0 and any(entry != 0 for entry in row)):
            return False
        rest = rest[1:, 1:] - (np.outer(row, row) / pivot if pivot else 0)
    return True


def _partial_sums(angle: Fraction, first: Fraction, order: int) -> tuple[Fraction, Fraction]:
    # From the second one on the terms decrease for angles up to pi / 2.
    total, term, sums = Fraction(0), first, []
    for k in range(TERMS):
        total += term
        sums.append(total)
        term = -term * angle**2 / ((2 * k + 1 + order) * (2 * k + 2 + order))
    lower, upper = sorted(sums[-2:])
    return lower, upper
