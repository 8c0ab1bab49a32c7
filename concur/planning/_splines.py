"""Paths of the shape as quintic B-splines over the unit interval, with derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

DEGREE = 5
"""Degree of the splines, whose accelerations are smooth."""

ENDS = 3
"""Control points at either end that position, velocity and acceleration fix."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Splines:
    """Splines with `count` control points at equal knots.

    The free parameters of a coordinate are its control points between the ends, its value at the
    end, and its slope there; it starts with a given value, slope and second derivative, and ends
    with a second derivative of zero.
    """

    count: int

    @property
    def free(self) -> int:
        """Number of free parameters of a coordinate."""
        return self.count - 2 * ENDS + 2

    @cached_property
    def knots(self) -> Floats:
        """All knots."""
        inner = np.linspace(0.0, 1.0, self.count - DEGREE + 1)
        return np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])

    @cached_property
    def _edges(self) -> Floats:
        """Second and third control point from an end, by the slope there."""
        knot = 1.0 / (self.count - DEGREE)
        return np.array([0.0, knot, 3.0 * knot]) / DEGREE

    @cached_property
    def start(self) -> Floats:
        """Control points by value, slope and second derivative at the start, shape (count, 3)."""
        points = np.zeros((self.count, 3))
        points[:ENDS, 0], points[:ENDS, 1] = 1.0, self._edges
        points[ENDS - 1, 2] = 2.0 / (DEGREE * (DEGREE - 1) * (self.count - DEGREE) ** 2)
        return points

    @cached_property
    def inner(self) -> Floats:
        """Control points by the free parameters, shape (count, free)."""
        points = np.zeros((self.count, self.free))
        points[ENDS:-ENDS, :-2] = np.eye(self.count - 2 * ENDS)
        points[-ENDS:, -2], points[-ENDS:, -1] = 1.0, -self._edges[::-1]
        return points

    def at(self, places: Floats) -> Floats:
        """Value and two derivatives at places, by the control points, shape (3, n, count)."""
        curve = BSpline(self.knots, np.eye(self.count), DEGREE)
        return np.array([curve.derivative(k)(places) if k else curve(places) for k in range(3)])

    def third(self, places: Floats) -> Floats:
        """Third derivative at places, by the control points, shape (n, count)."""
        return np.asarray(BSpline(self.knots, np.eye(self.count), DEGREE).derivative(3)(places))

    @cached_property
    def hulls(self) -> tuple[Floats, ...]:
        """Control points of the value and three derivatives, which bound them."""
        rows, knots = [np.eye(self.count)], self.knots
        for degree in range(DEGREE, DEGREE - 3, -1):
            last = rows[-1]
            spans = knots[1 + degree : 1 + degree + len(last) - 1] - knots[1 : len(last)]
            rows.append(degree * np.diff(last, axis=0) / spans[:, None])
            knots = knots[1:-1]
        return tuple(rows)
