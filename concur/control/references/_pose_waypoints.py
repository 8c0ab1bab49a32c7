"""Motions through given poses at given times."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import Array, Vector
from concur.control.references._along import exponential
from concur.control.references._columns import Columns
from concur.control.references._poses import LIE, logarithm
from concur.control.references._reference import Floats, Part, Reference, Samples
from concur.errors import ConcurError

HALF_TURN = np.pi - 1e-6
"""Angle (rad) at which it is not clear which way round is the shorter."""


class PoseWaypoints(Reference):
    """Quintics in the logarithms from each pose to the next, with two continuous derivatives.

    Of poses (k, n) at increasing times (k,), with twists (2, dim) at the first and the last. A pose
    that is half a turn from the next is refused.
    """

    def __init__(self, times: Floats, poses: Floats, rates: Floats, group: str) -> None:
        self.pose_size, self.size = LIE[group].pose_size, LIE[group].dim
        self._times, self._poses, self._group = times, poses, group
        steps = np.diff(times)[:, None]
        ways = logarithm(poses[:-1], poses[1:], group)
        angles = np.linalg.norm(ways[:, -3:], axis=1)
        if angles.max() > HALF_TURN:
            row = int(np.argmax(angles))
            raise ConcurError(
                f"reference waypoints, points, entry {row + 1}",
                expected="an orientation less than half a turn from the one before",
                came=f"{angles[row]:.9g} rad",
                cure="Put another pose between the two to fix the sense of rotation.",
                row=row + 1,
            )
        # Along a one-parameter subgroup the twist is constant, so that mean twists before and
        # after a pose are both in its axes, and the parabola through three poses is as in R^n.
        means = ways / steps
        before, after = steps[:-1], steps[1:]
        self._twists = np.vstack([rates[:1], np.zeros((len(ways) - 1, self.size)), rates[1:]])
        self._twists[1:-1] = (after * means[:-1] + before * means[1:]) / (before + after)
        changes = np.zeros_like(self._twists)
        changes[1:-1] = 2.0 * np.diff(means, axis=0) / (before + after)
        rate, second = _in_logarithms(group)(ways, self._twists[1:], changes[1:])
        self._coefficients = _quintics(steps, ways, self._twists[:-1], changes[:-1], rate, second)

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in the group."""
        return ((self.pose_size, self.size, self._group),)

    def _evaluate(self, times: Floats) -> Samples:
        knots, last = self._times, len(self._times) - 1
        row = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, last)
        elapsed = (times - knots[row])[:, None]
        outside = (times < knots[0]) | (row == last)
        way, rate, second = (_horner(table, row, elapsed) for table in self._coefficients)
        rate[outside] = self._twists[row[outside]]
        way[outside] = elapsed[outside] * rate[outside]
        second[outside] = 0.0
        return exponential(self._poses[row], (way, rate, second), self._group)


def _quintics(
    steps: Floats, ways: Floats, rates: Floats, changes: Floats, last_rates: Floats, last: Floats
) -> list[list[Floats]]:
    """Coefficients of quintics that start at zero, and of their derivatives.

    For each derivative and power a table with one row per segment, and a row of zeros after the
    last, so that times beyond it find one.
    """
    gap = ways - steps * rates - steps**2 * changes / 2
    slope = steps * (last_rates - rates - steps * changes)
    bend = steps**2 * (last - changes)
    place = [
        np.zeros_like(ways),
        rates,
        changes / 2,
        (10 * gap - 4 * slope + bend / 2) / steps**3,
        (-15 * gap + 7 * slope - bend) / steps**4,
        (6 * gap - 3 * slope + bend / 2) / steps**5,
    ]
    place = [np.vstack([c, np.zeros((1, c.shape[1]))]) for c in place]
    rate = [i * c for i, c in enumerate(place)][1:]
    return [place, rate, [i * c for i, c in enumerate(rate)][1:]]


def _horner(table: list[Floats], row: NDArray[np.intp], elapsed: Floats) -> Floats:
    value = table[-1][row]
    for coefficients in table[-2::-1]:
        value = value * elapsed + coefficients[row]
    return value


@cache
def _in_logarithms(group: str) -> Columns:
    """Rates of the logarithm x for a twist and its time derivative: xdot = D(x)^-1 twist."""
    lie = LIE[group]

    def rates(x: Vector, twist: Vector, change: Array) -> Any:
        rate = lie.error_map(-x) @ twist
        second = ca.jtimes(rate, ca.vertcat(x, twist), ca.vertcat(rate, change))
        return rate, second

    return Columns(f"in_logarithms_{group}", rates, (lie.dim,) * 3)
