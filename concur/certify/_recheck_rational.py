"""Linear algebra in rational numbers, for `recheck` alone."""

from __future__ import annotations

from fractions import Fraction

from concur.certify._recheck_work import fraction_cost, spend

Matrix = list[list[Fraction]]


def _bits(a: Matrix) -> int:
    """Bits of the longest entry."""
    return max(x.numerator.bit_length() + x.denominator.bit_length() for row in a for x in row)


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Product of two matrices."""
    spend(len(a) * len(b) * len(b[0]) * fraction_cost(_bits(a) + _bits(b)))
    columns = list(zip(*b, strict=True))
    return [
        [sum((x * y for x, y in zip(row, c, strict=True) if x and y), Fraction(0)) for c in columns]
        for row in a
    ]


def combine(a: Matrix, factor: Fraction, b: Matrix) -> Matrix:
    """A + factor B."""
    pairs = zip(a, b, strict=True)
    return [[x + factor * y for x, y in zip(p, q, strict=True)] for p, q in pairs]


def transpose(a: Matrix) -> Matrix:
    """Transpose of a matrix."""
    return [list(column) for column in zip(*a, strict=True)]


def diagonal(entries: list[Fraction]) -> Matrix:
    """Diagonal matrix."""
    n = len(entries)
    return [[entries[i] if i == j else Fraction(0) for j in range(n)] for i in range(n)]


def invert(a: Matrix) -> Matrix:
    """Inverse of a positive definite matrix."""
    n = len(a)
    rows = [row + unit for row, unit in zip(a, diagonal([Fraction(1)] * n), strict=True)]
    for k in range(n):
        pivot = rows[k][k]
        spend(2 * n * n * fraction_cost(2 * _bits(rows[k : k + 1])))
        rows[k] = [x / pivot for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def symmetric(a: Matrix) -> bool:
    """Whether a matrix equals its transpose."""
    return a == transpose(a)


def definite(a: Matrix, semi: bool = False) -> bool:
    """Whether a symmetric matrix is positive (semi)definite, by the pivots of L D L^T."""
    rows = [row[:] for row in a]
    n = len(rows)
    for k in range(n):
        pivot = rows[k][k]
        spend((n - k) ** 2 * fraction_cost(2 * _bits([rows[k][k:]])))
        if pivot < 0 or (pivot == 0 and not semi):
            return False
        if pivot == 0:
            # A zero on the diagonal of a semidefinite matrix requires a zero row.
            if any(rows[k][k + 1 :]):
                return False
            continue
        for i in range(k + 1, n):
            if rows[i][k]:
                factor = rows[i][k] / pivot
                for j in range(i, n):
                    rows[i][j] -= factor * rows[k][j]
                    rows[j][i] = rows[i][j]
    return True
