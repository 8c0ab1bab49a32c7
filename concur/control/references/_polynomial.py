"""Straight and curved paths that are polynomials in time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.control.references._inputs import number, numbers, positive
from concur.control.references._reference import Floats, Path, Reference, Samples
from concur.errors import ShapeError


def polynomial(coefficients: ArrayLike) -> Reference:
    """Move along a polynomial in time.

    Parameters
    ----------
    coefficients : array_like, shape (degree + 1, n)
        Row i is the factor of t^i (m/s^i): the first row is the place at t = 0, the second the
        velocity there.

    Returns
    -------
    Reference
        Reference in R^n.

    Raises
    ------
    ShapeError, NonFiniteError
        If `coefficients` is no table of finite numbers with at least one row.

    Examples
    --------
    >>> polynomial([[1.0, 0.0], [0.5, 0.2]])(2.0).pose
    array([2. , 0.4])
    """
    return _Polynomial(numbers(coefficients, "polynomial, coefficients", ndim=2))


def rest_to_rest(
    start: ArrayLike, end: ArrayLike, duration: float, begin: float = 0.0
) -> Reference:
    """Go straight from one place to another, at rest before and after.

    The path parameter is 10 x^3 - 15 x^4 + 6 x^5, so velocity and acceleration vanish at both
    ends and the acceleration is continuous everywhere.

    Parameters
    ----------
    start : array_like, shape (n,)
        Place until `begin` (m).
    end : array_like, shape (n,)
        Place from `begin` + `duration` on (m).
    duration : float
        Time of travel (s), positive.
    begin : float, default 0.0
        Time of departure (s).

    Returns
    -------
    Reference
        Reference in R^n.

    Raises
    ------
    ShapeError, NonFiniteError
        If the places differ in length, or a number is not finite.
    ConcurError
        If `duration` is not positive.

    Examples
    --------
    >>> rest_to_rest([0.0], [2.0], duration=4.0)(2.0).pose
    array([1.])
    """
    first = np.atleast_1d(numbers(start, "rest_to_rest, start"))
    last = np.atleast_1d(numbers(end, "rest_to_rest, end"))
    if first.ndim != 1 or first.shape != last.shape:
        raise ShapeError(
            "reference rest_to_rest, end",
            expected="two flat arrays of one length for start and end",
            came=f"shapes {first.shape} and {last.shape}",
            cure="Give both places with the same number of coordinates.",
        )
    travel = positive(duration, "rest_to_rest, duration", "s")
    return _RestToRest(first, last, travel, number(begin, "rest_to_rest, begin"))


class _Polynomial(Path):
    def __init__(self, coefficients: Floats) -> None:
        self.pose_size = self.size = coefficients.shape[1]
        powers = np.arange(len(coefficients))[:, None]
        self._position = coefficients
        self._rate = (powers * coefficients)[1:]
        self._acceleration = (powers * (powers - 1) * coefficients)[2:]

    def _evaluate(self, times: Floats) -> Samples:
        return (
            _horner(self._position, times),
            _horner(self._rate, times),
            _horner(self._acceleration, times),
        )


def _horner(coefficients: Floats, times: Floats) -> Floats:
    value = np.zeros((times.size, coefficients.shape[1]))
    for row in coefficients[::-1]:
        value = value * times[:, None] + row
    return value


class _RestToRest(Path):
    def __init__(self, start: Floats, end: Floats, duration: float, begin: float) -> None:
        self.pose_size = self.size = start.size
        self._start, self._way = start, end - start
        self._duration, self._begin = duration, begin

    def _evaluate(self, times: Floats) -> Samples:
        x = np.clip((times - self._begin) / self._duration, 0.0, 1.0)[:, None]
        place = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
        rate = 30.0 * x**2 * (1.0 - x) ** 2 / self._duration
        acceleration = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / self._duration**2
        return self._start + place * self._way, rate * self._way, acceleration * self._way
