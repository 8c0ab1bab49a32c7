"""Motions through given poses at given times."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.errors import ConcurError
from concur.outputs._sample import Part
from concur.outputs.references._along import exponential
from concur.outputs.references._columns import Columns, Floats, column_function
from concur.outputs.references._expression import Motion, Reader, Table
from concur.outputs.references._poses import LIE, logarithm
from concur.outputs.references._reference import Expression

HALF_TURN = np.pi - 1e-6
"""Angle (rad) at which it is not clear which way round is the shorter."""


class PoseWaypoints(Expression):
    """Quintics in the logarithms from each pose to the next, with two continuous derivatives.

    Of poses (k, n) at increasing times (k,), with twists (2, dim) at the first and the last. A pose
    that is half a turn from the next is refused.
    """

    def __init__(self, times: Floats, poses: Floats, rates: Floats, group: str) -> None:
        self.pose_size, self.size = LIE[group].pose_size, LIE[group].dim
        self._group = group
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
        twists = np.vstack([rates[:1], np.zeros((len(ways) - 1, self.size)), rates[1:]])
        twists[1:-1] = (after * means[:-1] + before * means[1:]) / (before + after)
        changes = np.zeros_like(twists)
        changes[1:-1] = 2.0 * np.diff(means, axis=0) / (before + after)
        rate, second = Columns(_in_logarithms(group))(ways, twists[1:], changes[1:])
        powers = _quintics(steps, ways, twists[:-1], changes[:-1], rate, second)
        # Straight on, before the first and from the last pose on.
        ends = np.zeros((2, powers.shape[1]))
        ends[:, : self.size] = rates
        rows = np.hstack(
            [
                np.concatenate([times[:1], times])[:, None],
                np.concatenate([poses[:1], poses]),
                np.concatenate([ends[:1], powers, ends[1:]]),
            ]
        )
        self._segments = Table(times, rows)

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in the group."""
        return ((self.pose_size, self.size, self._group),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        row = read(self._segments, t)
        start, powers = row[1 : 1 + self.pose_size], row[1 + self.pose_size :]
        elapsed = t - row[0]
        place = [ca.SX(self.size, 1), *ca.vertsplit(powers, self.size)]
        rate = [i * c for i, c in enumerate(place)][1:]
        second = [i * c for i, c in enumerate(rate)][1:]
        way = _horner(place, elapsed), _horner(rate, elapsed), _horner(second, elapsed)
        return exponential(start, way, self._group)


def _quintics(
    steps: Floats, ways: Floats, rates: Floats, changes: Floats, last_rates: Floats, last: Floats
) -> Floats:
    """Coefficients, by power from the first on, of quintics that start at zero: a row for each."""
    gap = ways - steps * rates - steps**2 * changes / 2
    slope = steps * (last_rates - rates - steps * changes)
    bend = steps**2 * (last - changes)
    return np.hstack(
        [
            rates,
            changes / 2,
            (10 * gap - 4 * slope + bend / 2) / steps**3,
            (-15 * gap + 7 * slope - bend) / steps**4,
            (6 * gap - 3 * slope + bend / 2) / steps**5,
        ]
    )


def _horner(coefficients: list[Array], t: Array) -> Array:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * t + coefficient
    return value


@cache
def _in_logarithms(group: str) -> ca.Function:
    """Rates of the logarithm x for a twist and its time derivative: xdot = D(x)^-1 twist."""
    lie = LIE[group]

    def rates(x: Vector, twist: Vector, change: Array) -> Any:
        rate = lie.error_map(-x) @ twist
        second = ca.jtimes(rate, ca.vertcat(x, twist), ca.vertcat(rate, change))
        return rate, second

    return column_function(f"in_logarithms_{group}", rates, (lie.dim,) * 3)
