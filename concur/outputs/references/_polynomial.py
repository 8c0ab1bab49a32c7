"""Straight and curved paths that are polynomials in time."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ConcurError, ShapeError
from concur.outputs.references._along import Along, Straight
from concur.outputs.references._columns import Floats
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._inputs import number, numbers, positive
from concur.outputs.references._poses import LIE, check_group, flat_pose, logarithm
from concur.outputs.references._reference import Path, Reference


def polynomial(
    coefficients: ArrayLike, start: ArrayLike | None = None, group: str | None = None
) -> Reference:
    """Move along a polynomial in time.

    Poses move along its exponential, start exp(c0 + c1 t + c2 t^2 + ...) on their group: on
    "R3xSO3" the position along a polynomial in inertial axes and the orientation separately, on
    "SE3" both together.

    Parameters
    ----------
    coefficients : array_like, shape (degree + 1, n)
        Row i is the factor of t^i (m/s^i, rad/s^i): the first row is the place at t = 0, the
        second the velocity there.
    start : array_like, shape (np,) or (4, 4), optional
        For poses: the pose from which the polynomial counts, as numbers (see `ReferenceSample`)
        or as a homogeneous matrix (m).
    group : {"R3xSO3", "SE3", "SO3"}, optional
        Group of a pose.

    Returns
    -------
    Reference
        Reference in R^n, or in the group.

    Raises
    ------
    ShapeError, NonFiniteError
        If `coefficients` is no table of finite numbers with at least one row, or does not fit
        the group, or `start` is not a pose of it.
    UnknownNameError
        If `group` is another one.
    ConcurError
        If only one of `start` and `group` is given.

    Examples
    --------
    >>> polynomial([[1.0, 0.0], [0.5, 0.2]])(2.0).pose
    array([2. , 0.4])
    """
    path = _Polynomial(numbers(coefficients, "polynomial, coefficients", ndim=2))
    if start is None and group is None:
        return path
    if start is None or group is None:
        raise ConcurError(
            "reference polynomial",
            expected="`start` and `group` for a pose, or neither",
            came="`group` alone" if start is None else "`start` alone",
            cure='For example polynomial(..., start=pose, group="R3xSO3").',
        )
    check_group(group, "polynomial")
    if path.size != LIE[group].dim:
        raise ShapeError(
            "reference polynomial, coefficients",
            expected=f"rows of {LIE[group].dim} numbers for an output in {group}",
            came=f"rows of {path.size}",
            cure="Give the linear, then the angular coefficients of each power.",
        )
    return Along(flat_pose(start, group, "polynomial, start"), path, group)


def rest_to_rest(
    start: ArrayLike,
    end: ArrayLike,
    duration: float,
    begin: float = 0.0,
    group: str | None = None,
) -> Reference:
    """Move in a straight line from one point to another, at rest before and after.

    Poses go along the one-parameter subgroup between them, start exp(x log(start^-1 end)), the
    shorter way round: on "R3xSO3" along a straight line and about a fixed axis, on "SE3" along
    a screw.

    The path parameter is 10 x^3 - 15 x^4 + 6 x^5, so velocity and acceleration vanish at both
    ends and the acceleration is continuous everywhere.

    Parameters
    ----------
    start : array_like, shape (n,) or (4, 4)
        Place until `begin` (m); for a group of poses its numbers, see `ReferenceSample`, or a
        homogeneous matrix.
    end : array_like, shape (n,) or (4, 4)
        Place from `begin` + `duration` on (m), likewise.
    duration : float
        Time of travel (s), positive.
    begin : float, default 0.0
        Time of departure (s).
    group : {"R3xSO3", "SE3", "SO3"}, optional
        Group of poses.

    Returns
    -------
    Reference
        Reference in R^n, or in the group.

    Raises
    ------
    ShapeError, NonFiniteError
        If the places differ in length, are not poses of the group, or a number is not finite.
    UnknownNameError
        If `group` is another one.
    ConcurError
        If `duration` is not positive.

    Examples
    --------
    >>> rest_to_rest([0.0], [2.0], duration=4.0)(2.0).pose
    array([1.])
    """
    if group is not None:
        check_group(group, "rest_to_rest")
        travel = positive(duration, "rest_to_rest, duration", "s")
        pose = flat_pose(start, group, "rest_to_rest, start")
        goal = flat_pose(end, group, "rest_to_rest, end")
        way = logarithm(pose[None], goal[None], group)[0]
        begins = number(begin, "rest_to_rest, begin")
        progress = _RestToRest(np.zeros(1), np.ones(1), travel, begins)
        return Along(pose, Straight(way, progress), group)
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

    def _motion(self, t: Array, read: Reader) -> Motion:
        return (
            _horner(self._position, t),
            _horner(self._rate, t),
            _horner(self._acceleration, t),
        )


def _horner(coefficients: Floats, t: Array) -> Array:
    value = ca.SX(coefficients.shape[1], 1)
    for row in coefficients[::-1]:
        value = value * t + ca.SX(row)
    return value


class _RestToRest(Path):
    def __init__(self, start: Floats, end: Floats, duration: float, begin: float) -> None:
        self.pose_size = self.size = start.size
        self._start, self._way = start, end - start
        self._duration, self._begin = duration, begin

    def _motion(self, t: Array, read: Reader) -> Motion:
        x = ca.fmin(ca.fmax((t - self._begin) / self._duration, 0.0), 1.0)
        place = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
        rate = 30.0 * x**2 * (1.0 - x) ** 2 / self._duration
        acceleration = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / self._duration**2
        start, way = ca.SX(self._start), ca.SX(self._way)
        return start + place * way, rate * way, acceleration * way
