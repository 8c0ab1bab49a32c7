"""Interval arithmetic on NumPy floats, rounded outward, and B(x) of each group in it.

Written for `recheck` alone, so that it shares no arithmetic and no formula with the prover. Every
operation of IEEE arithmetic is off by at most half a unit in the last place, so the neighbouring
float is a bound. A bound that overflows becomes an infinity or NaN; neither passes a comparison
that would prove something.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

# Supremum of |phi|^2 for the series below, slightly above pi^2.
LARGEST_SQUARE = 12.0

_TERMS = 36

# Truncation error: |B_2n| / (2n)! = 2 zeta(2n) / (2 pi)^2n < 3.29 / 39.4^n, and twice
# differentiated at u <= 12 they sum to less than sum_(n > 36) n^2 3.29 (12 / 39.4)^(n-3) / 39.4^3,
# which is below 1e-18; the same number bounds the tails of the series and of its derivative.
_TAIL = 1e-18


def _down(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.nextafter(x, -np.inf))


def _up(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.nextafter(x, np.inf))


class Interval:
    """Array of intervals, one for each entry.

    Parameters
    ----------
    lo, hi : numpy.ndarray
        Lower and upper bounds, of one shape.
    """

    # Makes NumPy arrays defer to the operators of this class.
    __array_ufunc__ = None
    __slots__ = ("hi", "lo")

    def __init__(self, lo: np.ndarray, hi: np.ndarray | None = None) -> None:
        self.lo = np.asarray(lo, dtype=float)
        self.hi = self.lo if hi is None else np.asarray(hi, dtype=float)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.lo.shape

    @property
    def T(self) -> Interval:
        """Transpose of the last two axes."""
        return Interval(self.lo.swapaxes(-1, -2), self.hi.swapaxes(-1, -2))

    def __getitem__(self, key: Any) -> Interval:
        return Interval(self.lo[key], self.hi[key])

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __add__(self, other: Interval | np.ndarray | float) -> Interval:
        other = _interval(other)
        return Interval(_down(self.lo + other.lo), _up(self.hi + other.hi))

    def __sub__(self, other: Interval | np.ndarray | float) -> Interval:
        return self + (-_interval(other))

    def __mul__(self, other: Interval | np.ndarray | float) -> Interval:
        other = _interval(other)
        a, b = self.lo * other.lo, self.lo * other.hi
        c, d = self.hi * other.lo, self.hi * other.hi
        # `minimum` and `maximum` propagate NaN, as required here.
        low = np.minimum(np.minimum(a, b), np.minimum(c, d))
        high = np.maximum(np.maximum(a, b), np.maximum(c, d))
        return Interval(_down(low), _up(high))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Interval | np.ndarray | float) -> Interval:
        return _interval(other) - self

    def __matmul__(self, other: Interval | np.ndarray) -> Interval:
        other = _interval(other)
        total = self[..., :, 0, None] * other[..., None, 0, :]
        for k in range(1, self.shape[-1]):
            total = total + self[..., :, k, None] * other[..., None, k, :]
        return total

    def __rmatmul__(self, other: np.ndarray) -> Interval:
        return _interval(other) @ self

    def square(self) -> Interval:
        """Squares, never below zero."""
        a, b = self.lo * self.lo, self.hi * self.hi
        holds_zero = (self.lo <= 0.0) & (self.hi >= 0.0)
        low = np.where(holds_zero, 0.0, np.maximum(_down(np.minimum(a, b)), 0.0))
        return Interval(low, _up(np.maximum(a, b)))

    def size(self) -> np.ndarray:
        """Largest absolute value."""
        return np.asarray(np.maximum(np.abs(self.lo), np.abs(self.hi)))

    @classmethod
    def exact(cls, values: object) -> Interval:
        """Tightest intervals around rational numbers, of any shape."""
        rational = np.array(values, dtype=object)
        nearest = np.array([float(r) for r in rational.flat])
        low = [x if Fraction(x) <= r else np.nextafter(x, -np.inf)
               for x, r in zip(nearest, rational.flat, strict=True)]  # fmt: skip
        high = [x if Fraction(x) >= r else np.nextafter(x, np.inf)
                for x, r in zip(nearest, rational.flat, strict=True)]  # fmt: skip
        return cls(np.array(low).reshape(rational.shape), np.array(high).reshape(rational.shape))


def _interval(value: Interval | np.ndarray | float) -> Interval:
    return value if isinstance(value, Interval) else Interval(np.asarray(value, dtype=float))


def stack(rows: list[list[Interval]]) -> Interval:
    """Matrices (k, rows, columns) from rows of entries of shape (k,)."""
    low = np.stack([np.stack([entry.lo for entry in row], -1) for row in rows], -2)
    high = np.stack([np.stack([entry.hi for entry in row], -1) for row in rows], -2)
    return Interval(low, high)


def join(left: Interval, right: Interval) -> Interval:
    """Matrices side by side."""
    low = np.concatenate([left.lo, right.lo], axis=-1)
    return Interval(low, np.concatenate([left.hi, right.hi], axis=-1))


def _coefficients() -> tuple[list[float], list[float]]:
    """Bounds of |B_2n| / (2n)! for n = 1 ... _TERMS, from exact Bernoulli numbers."""
    bernoulli = [Fraction(1)]
    factorial = 1
    exact = []
    for m in range(1, 2 * _TERMS + 1):
        total = sum((comb(m + 1, k) * b for k, b in enumerate(bernoulli)), Fraction(0))
        bernoulli.append(-total / (m + 1))
        factorial *= m
        if m % 2 == 0:
            exact.append(abs(bernoulli[m]) / factorial)
    bounds = Interval.exact(exact)
    return bounds.lo.tolist(), bounds.hi.tolist()


_LOW, _HIGH = _coefficients()


def series(u: Interval, order: int) -> Interval:
    """hh(u) = (1 - (t/2) cot(t/2)) / u, u = t^2, or its first or second derivative by u.

    Coefficients are positive, so the ends of u give the ends of the values; NaN from u = 12 on.
    """

    def horner(at: np.ndarray, coefficients: list[float], outward: float) -> np.ndarray:
        total = np.zeros_like(at)
        for n in range(_TERMS - 1, order - 1, -1):
            factor = float(np.prod(np.arange(n - order + 1, n + 1), dtype=float))
            weight = np.nextafter(coefficients[n] * factor, outward)
            total = np.nextafter(np.nextafter(total * at, outward) + weight, outward)
        return total

    low = horner(np.maximum(u.lo, 0.0), _LOW, -np.inf)
    high = _up(horner(u.hi, _HIGH, np.inf) + _TAIL)
    known = u.hi <= LARGEST_SQUARE
    return Interval(np.where(known, low, np.nan), np.where(known, high, np.nan))


def _skew(a: list[Interval]) -> Interval:
    zero = a[0] * 0.0
    return stack([[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]])


def _symmetric_product(a: list[Interval], b: list[Interval]) -> Interval:
    """skew(a) skew(b) + skew(b) skew(a) = a b^T + b a^T - 2 (a.b) 1."""
    products = [x * y for x, y in zip(a, b, strict=True)]
    rows = []
    for i in range(3):
        j, k = [m for m in range(3) if m != i]
        row = [a[i] * b[m] + b[i] * a[m] for m in range(3)]
        # Omit cancelling terms on the diagonal: intervals would not cancel them.
        row[i] = (products[j] + products[k]) * -2.0
        rows.append(row)
    return stack(rows)


def _dot(a: list[Interval], b: list[Interval]) -> Interval:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _square(a: list[Interval]) -> Interval:
    """skew(a)^2 = a a^T - (a.a) 1."""
    squares = [x.square() for x in a]
    rows = []
    for i in range(3):
        j, k = [m for m in range(3) if m != i]
        row = [a[i] * a[m] for m in range(3)]
        row[i] = -(squares[j] + squares[k])
        rows.append(row)
    return stack(rows)


def _scaled(scale: Interval, matrix: Interval) -> Interval:
    return scale[:, None, None] * matrix


def _norm_square(a: list[Interval]) -> Interval:
    return a[0].square() + a[1].square() + a[2].square()


def rotation_map(phi: list[Interval]) -> Interval:
    """B of SO(3), (k, 3, 3): 1 - PHI / 2 + hh PHI^2."""
    bend = _scaled(series(_norm_square(phi), 0), _square(phi))
    return np.eye(3) - _skew(phi) * 0.5 + bend


def coupling_map(phi: list[Interval], rho: list[Interval]) -> Interval:
    """Block C of SE(3), the derivative of B of SO(3) at phi along rho, (k, 3, 3).

    -RHO / 2 + hh (PHI RHO + RHO PHI) + 2 hh' (phi.rho) PHI^2
    """
    u = _norm_square(phi)
    bend = _scaled(series(u, 0), _symmetric_product(phi, rho))
    twice = series(u, 1) * 2.0
    return bend - _skew(rho) * 0.5 + _scaled(twice * _dot(phi, rho), _square(phi))


def coupling_slope(phi: list[Interval], rho: list[Interval], along: list[Interval]) -> Interval:
    """Derivative of `coupling_map` by phi, in the direction `along`, (k, 3, 3)."""
    u = _norm_square(phi)
    zeroth, first, second = (series(u, order) for order in range(3))
    turn, slide = _dot(phi, along), _dot(phi, rho)
    return (
        _scaled(zeroth, _symmetric_product(along, rho))
        + _scaled(first * turn * 2.0, _symmetric_product(phi, rho))
        + _scaled(first * _dot(along, rho) * 2.0, _square(phi))
        + _scaled(first * slide * 2.0, _symmetric_product(along, phi))
        + _scaled(second * turn * slide * 4.0, _square(phi))
    )


def planar_map(rho: list[Interval], t: Interval) -> Interval:
    """B of SE(2), (k, 3, 3)."""
    u = t.square()
    bend = series(u, 0)
    g, lever, half = 1.0 - u * bend, bend * t, t * 0.5
    zero = t * 0.0
    return stack(
        [
            [g, half, lever * rho[0] - rho[1] * 0.5],
            [-half, g, lever * rho[1] + rho[0] * 0.5],
            [zero, zero, zero + 1.0],
        ]
    )


def planar_slope(rho: list[Interval], t: Interval) -> Interval:
    """Derivative of `planar_map` by the angle."""
    u = t.square()
    zeroth, first = series(u, 0), series(u, 1)
    g = (t * (zeroth + u * first)) * -2.0
    lever = zeroth + u * first * 2.0
    zero = t * 0.0
    return stack(
        [
            [g, zero + 0.5, lever * rho[0]],
            [zero - 0.5, g, lever * rho[1]],
            [zero, zero, zero],
        ]
    )
