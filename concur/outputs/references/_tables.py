"""Motions through samples at given times: waypoints, and tables with all derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from concur.codegen import Array, shape_error
from concur.errors import ConcurError
from concur.groups import quaternion
from concur.outputs.groups import NAMES, named
from concur.outputs.references._arguments import (
    SHORTEST,
    SPATIAL,
    Group,
    check_group,
    flat_pose,
    numbers,
    refused,
)
from concur.outputs.references._motions import (
    column_function,
    exponential,
    in_logarithms,
    logarithm,
    part_in,
    path,
)
from concur.outputs.references._paths import horner
from concur.outputs.references._reference import (
    Floats,
    Formula,
    Motion,
    Reader,
    Reference,
    Table,
    evaluate,
)
from concur.tables import Expected, InFiles, NumberOrList, Numbers, Rows

Points = Annotated[Sequence[NumberOrList], Expected("a list of points, one for each time")]

HALF_TURN = np.pi - 1e-6
"""Angle (rad) at which it is not clear which way round is the shorter."""


def waypoints(
    times: Annotated[ArrayLike, InFiles(Numbers)],
    points: Annotated[ArrayLike, InFiles(Points)],
    rates: Annotated[ArrayLike | None, InFiles(Rows)] = None,
    group: Group = None,
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
        Points (m, rad). A flat array of k numbers is taken as n = 1. Of an "SO3" quaternions x, y,
        z, w, of an "S2" unit vectors, of poses x, y, z and a quaternion, or homogeneous matrices.
    rates : array_like, shape (2, n), optional
        Velocity at the first and the last time (m/s), of poses the twist. Default: at rest.
    group : {"R3xSO3", "SE3", "SO3", "S2"}, optional
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
    knots, found = samples_of("waypoints", times, points, "points", group)
    size = named(check_group(group, "waypoints")).paths.dim if group is not None else found.shape[1]
    ends = np.zeros((2, size))
    if rates is not None:
        ends = _like(rates, ends, "waypoints, rates")
    if group is None:
        return _spline(knots, found, ends)
    # Along a one-parameter subgroup the twist is constant, so that mean twists before and
    # after a pose are both in its axes, and the parabola through three poses is as in R^n.
    steps = np.diff(knots)[:, None]
    means = ways_of("waypoints, points", found, group) / steps
    before, after = steps[:-1], steps[1:]
    twists, changes = np.zeros((2, len(knots), size))
    twists[[0, -1]] = ends
    twists[1:-1] = (after * means[:-1] + before * means[1:]) / (before + after)
    changes[1:-1] = 2.0 * np.diff(means, axis=0) / (before + after)
    return _through("waypoints, points", knots, found, twists, changes, group)


def table(
    times: Annotated[ArrayLike, InFiles(Numbers)],
    poses: Annotated[ArrayLike, InFiles(Points)],
    twists: Annotated[ArrayLike | None, InFiles(Rows)] = None,
    accelerations: Annotated[ArrayLike | None, InFiles(Rows)] = None,
    group: Group = None,
) -> Reference:
    """Pass through samples of a motion, with their velocities and accelerations.

    Between two samples the motion is the quintic in the logarithm from one to the next that has the
    twist and the acceleration of both, so that pose, twist and acceleration are continuous.
    Outside the table it continues at the twist of its first and its last sample.

    Parameters
    ----------
    times : array_like, shape (k,)
        Times (s), increasing, at least two.
    poses : array_like, shape (k, np) or (k, 4, 4)
        Coordinates at each time, see `ReferenceSample`; a flat array of k numbers is taken as
        np = 1. Homogeneous matrices for an output in "R3xSO3", "SE3", "SO3" or "R3".
    twists : array_like, shape (k, n), optional
        Left-trivialised velocities (m/s, rad/s). Default: those of the cubic spline through the
        coordinates, whose error falls with the third power of the time between samples.
    accelerations : array_like, shape (k, n), optional
        Time derivatives of the twists (m/s^2, rad/s^2). Default: those of the spline through the
        twists, or, without twists, through the coordinates.
    group : str, optional
        Group of the output, such as "R3xSO3"; without it the table is in R^np.

    Returns
    -------
    Reference
        Reference of one output, with a graph; `stack` joins those of several.

    Raises
    ------
    ShapeError, NonFiniteError
        If the arrays do not fit each other, are not poses of the group, or a number is not finite.
    UnknownNameError
        If `group` does not exist.
    ConcurError
        If the times do not increase, or an orientation is half a turn from the next.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 2.0, 21)
    >>> wave = table(t, np.sin(t), np.cos(t)[:, None])
    >>> bool(abs(wave(0.77).pose[0] - np.sin(0.77)) < 1e-8)
    True
    """
    if group is not None:
        check_group(group, "table", NAMES)
    knots, found = samples_of("table", times, poses, "poses", group)
    known = f"R{found.shape[1]}" if group is None else group
    like = np.zeros((len(knots), named(known).paths.dim))
    rates = None if twists is None else _like(twists, like, "table, twists")
    changes = None if accelerations is None else _like(accelerations, like, "table, accelerations")
    if rates is None or changes is None:
        moved = _differentiated(knots, found, known)
        if rates is not None:
            moved = rates, scipy.interpolate.CubicSpline(knots, rates)(knots, 1)
        rates, changes = moved[0], moved[1] if changes is None else changes
    return _through("table, poses", knots, found, rates, changes, known)


def samples_of(
    where: str, times: ArrayLike, values: ArrayLike, name: str, group: str | None
) -> tuple[Floats, Floats]:
    """Read increasing times, and one row of coordinates for each."""
    knots = numbers(times, f"{where}, times", ndim=1)
    rows = numbers(values, f"{where}, {name}")
    rows = rows[:, None] if rows.ndim == 1 else rows
    if knots.size < 2:
        cure = "To stay at one point use `hold`."
        raise refused(f"{where}, times", "at least two times", knots.size, cure)
    matrices = group in SPATIAL and rows.ndim == 3
    if rows.ndim != 2 + matrices or len(rows) != knots.size:
        expected, cure = f"a row for each of the {knots.size} times", f"Give {name} for all times."
        raise refused(f"{where}, {name}", expected, f"shape {rows.shape}", cure)
    late = np.flatnonzero(~(np.diff(knots) >= SHORTEST))
    if late.size:
        row = int(late[0]) + 1
        place, cure = f"{where}, times, entry {row}", "Sort by time and remove doubles."
        expected = f"a time after {knots[row - 1]:.9g} s, by at least {SHORTEST:g} s"
        raise refused(place, expected, f"{knots[row]:.9g} s", cure, ConcurError, row=row)
    if group is not None:
        entry = f"{where}, {name}, entry"
        rows = np.array([flat_pose(row, group, f"{entry} {i}") for i, row in enumerate(rows)])
    return knots, rows


def _like(value: ArrayLike, like: Floats, where: str) -> Floats:
    """Read a table of one shape; a flat array stands for one column."""
    array = numbers(value, where)
    array = array[:, None] if array.ndim == 1 and like.shape[1] == 1 else array
    if array.shape != like.shape:
        raise shape_error(f"reference {where}", like.shape, array.shape)
    return array


def _differentiated(times: Floats, poses: Floats, group: str) -> tuple[Floats, Floats]:
    """Twists and accelerations at the samples of a cubic spline through the coordinates."""
    return rates_of(scipy.interpolate.CubicSpline(times, continuous(poses, group)), times, group)


def continuous(poses: Floats, group: str) -> Floats:
    """Coordinates without jumps: of headings by whole turns, of quaternions by their sign."""
    names, smooth = named(group).coordinate_names, poses.copy()
    if "heading" in names:
        smooth[:, -1] = np.unwrap(smooth[:, -1])
    if "qw" in names:  # both signs are one orientation
        products = np.einsum("ij,ij->i", smooth[1:, -4:], smooth[:-1, -4:])
        smooth[1:, -4:] *= np.cumprod(np.where(products < 0.0, -1.0, 1.0))[:, None]
    return smooth


def rates_of(spline: Any, times: Floats, group: str) -> tuple[Floats, Floats]:
    """Twists and accelerations at some times of a spline of the coordinates, of SciPy."""
    size = len(named(group).coordinate_names)

    def moved(pose: Array, rate: Array, second: Array) -> tuple[Array, Array]:
        twist = _trivialized(group, pose, rate)
        return twist, ca.jtimes(twist, ca.vertcat(pose, rate), ca.vertcat(rate, second))

    function = column_function(moved, size, size, size)
    twists, changes = evaluate(function, spline(times), spline(times, 1), spline(times, 2))
    return twists, changes


def _trivialized(group: str, pose: Array, rate: Array) -> Array:
    """Left-trivialised velocity of coordinates that change at a rate; quaternions of any norm."""
    if group == "SE2":
        c, s = ca.cos(pose[2]), ca.sin(pose[2])
        return ca.vertcat(c * rate[0] + s * rate[1], c * rate[1] - s * rate[0], rate[2])
    if named(group).unit_size == 3:
        return ca.cross(pose, rate) / ca.sumsqr(pose)
    if not named(group).unit_size:
        return rate
    norm = ca.norm_2(pose[-4:])
    back = quaternion.conjugate(pose[-4:] / norm)
    linear = rate[:-4]
    if group == "SE3":
        linear = quaternion.rotate(back, linear)
    return ca.vertcat(linear, 2.0 * quaternion.multiply(back, rate[-4:] / norm)[:3])


def ways_of(where: str, poses: Floats, group: str) -> Floats:
    """Logarithms from each pose to the next; half a turn is refused."""
    ways = logarithm(poses[:-1], poses[1:], group)
    units = np.array(named(group).paths.error_units)
    angles = np.linalg.norm(ways[:, units == "rad"], axis=1)
    if angles.max() > HALF_TURN:
        row = int(np.argmax(angles)) + 1
        expected = "an orientation less than half a turn from the one before"
        came, cure = f"{angles[row - 1]:.9g} rad", "Put another pose between the two."
        raise refused(f"{where}, entry {row}", expected, came, cure, ConcurError, row=row)
    return ways


def _through(
    where: str, times: Floats, poses: Floats, twists: Floats, changes: Floats, group: str
) -> Reference:
    """Quintics in the logarithms from each pose to the next, with two continuous derivatives."""
    steps, ways = np.diff(times)[:, None], ways_of(where, poses, group)
    last_rates, last = in_logarithms(ways, twists[1:], changes[1:], group)
    powers = _quintics(steps, ways, twists[:-1], changes[:-1], last_rates, last)
    ends = np.zeros((2, powers.shape[1]))
    ends[:, : ways.shape[1]] = twists[[0, -1]]
    segments = _segments(times, poses, np.concatenate([ends[:1], powers, ends[1:]]))
    lie = named(group).paths

    def motion(t: Array, read: Reader) -> Motion:
        row = read(segments)
        since, start, *own = ca.vertsplit(
            row, [0, 1, *range(1 + lie.pose_size, segments.width + 1, lie.dim)]
        )
        place = [ca.SX(lie.dim, 1), *own]
        rate = [i * c for i, c in enumerate(place)][1:]
        second = [i * c for i, c in enumerate(rate)][1:]
        way, rates, seconds = (horner(c, t - since, lie.dim) for c in (place, rate, second))
        return exponential(start, (way, rates, seconds), group)

    return Formula(part_in(group), motion)


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


def _spline(times: Floats, points: Floats, rates: Floats) -> Reference:
    """Cubic spline in R^n with rates (2, n) at its ends."""
    size = points.shape[1]
    spline = scipy.interpolate.CubicSpline(times, points, bc_type=((1, rates[0]), (1, rates[1])))
    powers = np.zeros((len(times) + 1, 3, size))
    powers[1:-1], powers[[0, -1], 0] = spline.c[2::-1].transpose(1, 0, 2), rates
    segments = _segments(times, points, powers.reshape(len(powers), -1))

    def motion(t: Array, read: Reader) -> Motion:
        row = read(segments)
        elapsed = t - row[0]
        place, first, second, third = ca.vertsplit(row[1:], size)
        return (
            ((third * elapsed + second) * elapsed + first) * elapsed + place,
            (3.0 * third * elapsed + 2.0 * second) * elapsed + first,
            6.0 * third * elapsed + 2.0 * second,
        )

    return Formula(path(size), motion)


def _segments(times: Floats, points: Floats, powers: Floats) -> Table:
    """Rows of start time, start point and coefficients; straight on outside the times."""
    rows = [np.append(times[0], times), np.concatenate([points[:1], points]), powers]
    # The last time belongs to the last segment.
    changes = np.append(times[:-1], np.nextafter(times[-1], np.inf))
    return Table(changes, np.column_stack(rows))
