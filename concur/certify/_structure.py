"""Exact checks of the gains: positive definite, and a linearised loop that is stable.

The entries of KP, KD and I are binary fractions and all arithmetic is rational, so that a
verdict is a theorem about those numbers, even next to the stability limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np

from concur.certify._channels import Channel, split
from concur.certify._status import Status
from concur.control import ErrorDynamics

Matrix = list[list[Fraction]]

GAINS = (("KP", "stiffness"), ("KD", "damping"), ("I", "inertia"))
"""Symbol and attribute of each gain."""


@dataclass(frozen=True)
class Refusal:
    """A failed check: a number that should be above zero, or a difference that should be zero.

    Parameters
    ----------
    claim : str
        "symmetric", "positive definite" or "stable".
    quantity : str
        The computed quantity, with its place.
    value : fractions.Fraction
        Its exact value.
    channel : str
        Name of the channel.
    """

    claim: str
    quantity: str
    value: Fraction
    channel: str

    def __str__(self) -> str:
        shown = f"{self.channel}: {self.quantity} is {_decimal(self.value)}"
        if self.claim == "symmetric":
            return f"{shown}, not zero. Give (K + K^T) / 2 in place of K."
        return f"{shown}, not above zero."


@dataclass(frozen=True)
class Structure:
    """Verdict on the gains.

    Parameters
    ----------
    refusals : tuple of Refusal
        Failed checks; the first of each claim in each gain and channel.
    """

    refusals: tuple[Refusal, ...]

    @property
    def status(self) -> Status:
        """Whether KP, KD and I are symmetric positive definite and the loop is stable."""
        return Status.REFUTED if self.refusals else Status.PROVED

    @property
    def definite(self) -> bool:
        """Whether KP, KD and I are symmetric positive definite, as Theorem 5.4.2 requires."""
        return all(refusal.claim == "stable" for refusal in self.refusals)

    @property
    def stable(self) -> bool:
        """Whether the linearised error dynamics are Hurwitz; indefinite gains may be."""
        return all(refusal.claim != "stable" for refusal in self.refusals)

    def __str__(self) -> str:
        if not self.refusals:
            return "KP, KD and I are symmetric positive definite; the linearised loop is stable."
        return "\n".join(str(refusal) for refusal in self.refusals)


def check_structure(dynamics: ErrorDynamics) -> Structure:
    """Check exactly the properties of the gains that every certificate requires.

    KP, KD and I must be symmetric, and positive definite by the pivots of LDL^T; all roots of
    det(s^2 I + s KD + KP), the characteristic polynomial of the linearised error dynamics, must be
    left of the imaginary axis by Routh's array. With an integral, KI must be symmetric too, and
    where it is positive definite the polynomial is det(s^3 I + s^2 KD + s KP + KI).

    Parameters
    ----------
    dynamics : ErrorDynamics
        The closed loop's error dynamics.

    Returns
    -------
    Structure
        The verdict: proved or refuted, never undecided.

    Raises
    ------
    ShapeError
        If a gain is not a matrix of the group's dimension.
    NonFiniteError
        If a gain has a NaN or an infinity.
    """
    refusals = [refusal for channel in split(dynamics) for refusal in _channel_refusals(channel)]
    return Structure(tuple(refusals))


def exact(matrix: np.ndarray) -> Matrix:
    """Rows of a matrix of floats as equal fractions."""
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def ldl_pivots(matrix: Matrix) -> list[Fraction]:
    """Pivots of LDL^T, up to the first nonpositive one."""
    rest = [list(row) for row in matrix]
    pivots: list[Fraction] = []
    while rest:
        pivot, *top = rest[0]
        pivots.append(pivot)
        if pivot <= 0:
            break
        rest = [
            [entry - row[0] * above / pivot for entry, above in zip(row[1:], top, strict=True)]
            for row in rest[1:]
        ]
    return pivots


def characteristic_polynomial(*gains: Matrix) -> list[Fraction]:
    """Coefficients of det(s^2 I + s KD + KP), or with KI one power more, the highest first."""
    n, degree = len(gains[0]), len(gains) - 1
    scale = lcm(*(entry.denominator for gain in gains for row in gain for entry in row))
    whole = [[[int(entry * scale) for entry in row] for row in gain] for gain in gains]

    def at(s: int) -> list[list[int]]:
        powers = [s**k for k in range(degree, -1, -1)]
        return [
            [sum(g[i][j] * p for g, p in zip(whole, powers, strict=True)) for j in range(n)]
            for i in range(n)
        ]

    # A polynomial of degree 2 n or 3 n is determined by its values at 0, 1, ..., that.
    values = [Fraction(_determinant(at(s)), scale**n) for s in range(degree * n + 1)]
    return _interpolate(values)


def routh_column(coefficients: list[Fraction]) -> list[Fraction]:
    """First column of Routh's array, up to the first nonpositive entry.

    The roots of a polynomial of degree k have negative real parts if its first coefficient and all
    k + 1 entries are above zero.
    """
    upper, lower = coefficients[0::2], coefficients[1::2]
    column = [upper[0]]
    while lower and column[-1] > 0:
        column.append(lower[0])
        if lower[0] == 0:
            break
        ratio = upper[0] / lower[0]
        padded = [*lower[1:], Fraction(0)]
        below = [a - ratio * b for a, b in zip(upper[1:], padded, strict=False)]
        upper, lower = lower, below
    return column


def _channel_refusals(channel: Channel) -> list[Refusal]:
    found = []
    gains = {symbol: exact(getattr(channel, name)) for symbol, name in GAINS}
    for symbol, gain in gains.items():
        found += _definite_refusals(channel, symbol, gain)
    orders, equation = [gains["I"], gains["KD"], gains["KP"]], "det(s^2 I + s KD + KP)"
    if channel.integral is not None:
        integral = exact(channel.integral)
        asked = _definite_refusals(channel, "KI", integral)
        found += [refusal for refusal in asked if refusal.claim == "symmetric"]
        if not asked:
            # A singular KI has roots at zero that the errors do not show.
            orders, equation = [*orders, integral], "det(s^3 I + s^2 KD + s KP + KI)"
    return found + _stable_refusals(channel, characteristic_polynomial(*orders), equation)


def _definite_refusals(channel: Channel, symbol: str, gain: Matrix) -> list[Refusal]:
    rows = [f"{i}: {name}" for i, name in zip(channel.index, channel.names, strict=True)]
    for i in range(channel.size):
        for j in range(i):
            difference = gain[i][j] - gain[j][i]
            if difference:
                here, there = f"{symbol}[{rows[i]}; {rows[j]}]", f"{symbol}[{rows[j]}; {rows[i]}]"
                return [Refusal("symmetric", f"{here} - {there}", difference, channel.name)]
    pivots = ldl_pivots(gain)
    if pivots[-1] > 0:
        return []
    place = f"pivot of {symbol} in row {rows[len(pivots) - 1]}"
    return [Refusal("positive definite", place, pivots[-1], channel.name)]


def _stable_refusals(channel: Channel, polynomial: list[Fraction], equation: str) -> list[Refusal]:
    def refuse(quantity: str, value: Fraction) -> list[Refusal]:
        return [Refusal("stable", quantity, value, channel.name)]

    degree, lead = len(polynomial) - 1, polynomial[0]
    if lead == 0:
        return refuse(f"det I, the first coefficient of {equation},", lead)
    monic = [coefficient / lead for coefficient in polynomial]
    for power, coefficient in zip(range(degree, -1, -1), monic, strict=True):
        if coefficient <= 0:
            return refuse(f"coefficient of s^{power} in {equation} / det I", coefficient)
    column = routh_column(monic)
    if column[-1] > 0:
        return []
    row = degree + 1 - len(column)
    return refuse(f"first entry of row s^{row} in Routh's array", column[-1])


def _determinant(matrix: list[list[int]]) -> int:
    """Determinant of integers by Bareiss's elimination, which divides without remainder."""
    rest, previous, sign = [list(row) for row in matrix], 1, 1
    while len(rest) > 1:
        k = next((k for k, row in enumerate(rest) if row[0]), None)
        if k is None:
            return 0
        if k:
            rest[0], rest[k], sign = rest[k], rest[0], -sign
        pivot, *top = rest[0]
        rest = [
            [
                (pivot * entry - row[0] * above) // previous
                for entry, above in zip(row[1:], top, strict=True)
            ]
            for row in rest[1:]
        ]
        previous = pivot
    return sign * rest[0][0]


def _interpolate(values: list[Fraction]) -> list[Fraction]:
    """Coefficients, highest power first, of the polynomial with given values at 0, 1, 2, ..."""
    differences, steps = [], list(values)
    while steps:
        differences.append(steps[0])
        order = len(differences)
        steps = [(b - a) / order for a, b in pairwise(steps)]
    polynomial = [Fraction(0)]
    for node, difference in reversed(list(enumerate(differences))):
        # Newton's form by Horner: multiply by (s - node), then add.
        shifted = [*polynomial, Fraction(0)]
        lowered = [Fraction(0), *(node * c for c in polynomial)]
        polynomial = [a - b for a, b in zip(shifted, lowered, strict=True)]
        polynomial[-1] += difference
    return polynomial[-len(values) :]


def _decimal(value: Fraction) -> str:
    """Six digits of a number of any size; never zero for a nonzero number."""
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"
