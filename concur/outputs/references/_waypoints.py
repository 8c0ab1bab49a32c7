"""Paths through given points at given times."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from concur.codegen import Array, shape_error
from concur.errors import ConcurError, ShapeError
from concur.outputs.references._columns import Floats
from concur.outputs.references._expression import Motion, Reader, Table
from concur.outputs.references._inputs import SHORTEST, numbers
from concur.outputs.references._pose_waypoints import PoseWaypoints
from concur.outputs.references._poses import LIE, check_group, flat_pose
from concur.outputs.references._reference import Path, Reference


def waypoints(
    times: ArrayLike,
    points: ArrayLike,
    rates: ArrayLike | None = None,
    group: str | None = None,
) -> Reference:
    """Pass through given points at given times, on cubic splines.

    Poses are joined by quintics in the logarithms from each to the next, the shorter way round,
    with the velocity and acceleration at each that the parabola through it and its neighbours
    has. Everything is continuous up to the acceleration there, at the ends too, where it is zero.

    Of points in R^n, position, velocity and acceleration are continuous between the first and
    the last time. Outside, the motion continues at the constant rate of its end, which by default
    is rest; the velocity is continuous there too, while the acceleration jumps to zero. Where
    this jump matters (it is a step in torque), let the outer points lie beyond the time of the
    run.

    Parameters
    ----------
    times : array_like, shape (k,)
        Times (s), increasing, at least two.
    points : array_like, shape (k, n) or (k, 4, 4)
        Points (m). A flat array of k numbers is taken as n = 1. For a group of poses their
        numbers, see `ReferenceSample`, or homogeneous matrices.
    rates : array_like, shape (2, n), optional
        Velocity at the first and the last time (m/s), of poses the twist. Zero if not given.
    group : {"R3xSO3", "SE3", "SO3"}, optional
        Group of poses.

    Returns
    -------
    Reference
        Reference in R^n, or in the group.

    Raises
    ------
    ShapeError, NonFiniteError
        If the arrays do not fit each other, are not poses of the group, or a number is not finite.
    UnknownNameError
        If `group` is another one.
    ConcurError
        If the times do not increase, or a pose is half a turn from the next.

    Examples
    --------
    >>> waypoints([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]])(1.0).pose
    array([0.5])
    """
    knots = numbers(times, "waypoints, times", ndim=1)
    table = numbers(points, "waypoints, points")
    if table.ndim == 1:
        table = table[:, None]
    if knots.size < 2:
        raise ShapeError(
            "reference waypoints, times",
            expected="at least two times",
            came=str(knots.size),
            cure="To stay at one point use `hold`.",
        )
    width = table.shape[-1] if table.ndim else 0
    if group is not None:
        width = LIE[check_group(group, "waypoints")].dim
    matrices = group is not None and table.ndim == 3
    if table.ndim != 2 + matrices or len(table) != knots.size or width == 0:
        raise ShapeError(
            "reference waypoints, points",
            expected=f"one row for each of the {knots.size} times",
            came=f"an array of shape {table.shape}",
            cure="Give as many points as times.",
        )
    steps = np.diff(knots)
    if not (steps >= SHORTEST).all():
        row = int(np.argmin(steps >= SHORTEST)) + 1
        raise ConcurError(
            f"reference waypoints, times, entry {row}",
            expected=f"a time after {knots[row - 1]:.9g} s, by at least {SHORTEST:g} s",
            came=f"{knots[row]:.9g} s",
            cure="Sort the points by time and remove doubles.",
            row=row,
        )
    ends = np.zeros((2, width))
    if rates is not None:
        ends = numbers(rates, "waypoints, rates")
        if ends.shape != (2, width):
            raise shape_error("reference waypoints, rates", (2, width), ends.shape)
    if group is not None:
        poses = [flat_pose(p, group, f"waypoints, points, entry {i}") for i, p in enumerate(table)]
        return PoseWaypoints(knots, np.array(poses), ends, group)
    return _Waypoints(knots, table, ends)


class _Waypoints(Path):
    def __init__(self, times: Floats, points: Floats, rates: Floats) -> None:
        self.pose_size = self.size = points.shape[1]
        spline = CubicSpline(times, points, bc_type=((1, rates[0]), (1, rates[1])))
        ends = np.zeros((4, 2, self.size))  # straight on, from the first and from the last point
        ends[2], ends[3] = rates, points[[0, -1]]
        coefficients = np.concatenate([ends[:, :1], spline.c, ends[:, 1:]], axis=1)
        starts = np.concatenate([times[:1], times])
        rows = np.hstack([starts[:, None], *coefficients])
        # The last time belongs to the last segment.
        changes = np.append(times[:-1], np.nextafter(times[-1], np.inf))
        self._segments = Table(changes, rows)

    def _motion(self, t: Array, read: Reader) -> Motion:
        row = read(self._segments, t)
        elapsed = t - row[0]
        third, second, first, place = ca.vertsplit(row[1:], self.size)
        return (
            ((third * elapsed + second) * elapsed + first) * elapsed + place,
            (3.0 * third * elapsed + 2.0 * second) * elapsed + first,
            6.0 * third * elapsed + 2.0 * second,
        )
