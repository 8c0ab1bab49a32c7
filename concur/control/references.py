"""References: what the outputs shall do, as functions of time.

A `Reference` gives pose, twist and acceleration at any time. The constructors here make the
usual ones; `stack` puts the references of several outputs into one, in output order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from concur.control._sample import ReferenceSample, pose_numbers
from concur.errors import ConcurError, NonFiniteError, ShapeError, UnknownNameError
from concur.groups import se3

__all__ = [
    "Reference",
    "circle",
    "from_function",
    "hold",
    "planar",
    "polynomial",
    "relative",
    "rest_to_rest",
    "screw",
    "stack",
    "waypoints",
]

Floats: TypeAlias = NDArray[np.float64]
Samples: TypeAlias = tuple[Floats, Floats, Floats]


class Reference(ABC):
    """A demand on one or several outputs as a function of time.

    Attributes
    ----------
    pose_size : int
        Number of pose coordinates, see `ReferenceSample`.
    size : int
        Number of twist coordinates: the degrees of freedom demanded.
    """

    pose_size: int
    size: int
    # Whether twists are plain rates of the pose coordinates, so that references add.
    _adds: bool = True

    def __call__(self, t: float) -> ReferenceSample:
        """Evaluate the reference at one time.

        Parameters
        ----------
        t : float
            Time (s).

        Returns
        -------
        ReferenceSample
            Pose, twist and acceleration at `t`.

        Raises
        ------
        NonFiniteError
            If `t` is NaN or infinite.
        """
        poses, twists, accelerations = self.sample([t])
        return ReferenceSample(poses[0], twists[0], accelerations[0])

    def sample(self, times: ArrayLike) -> Samples:
        """Evaluate the reference at many times.

        Parameters
        ----------
        times : array_like, shape (k,)
            Times (s), in any order.

        Returns
        -------
        poses : ndarray, shape (k, pose_size)
            Poses, flat.
        twists : ndarray, shape (k, size)
            Left-trivialised velocities.
        accelerations : ndarray, shape (k, size)
            Time derivatives of the twists.

        Raises
        ------
        ShapeError, NonFiniteError
            If `times` is no flat array of finite numbers.
        """
        return self._evaluate(_array(times, "times", ndim=1))

    @abstractmethod
    def _evaluate(self, times: Floats) -> Samples:
        """Do the work of `sample` on times that have been checked."""


def hold(point: ArrayLike, group: str | None = None) -> Reference:
    """Stay at one place for ever.

    Parameters
    ----------
    point : array_like, shape (n,) or (4, 4)
        Coordinates of the place (m, rad), or a pose, body to world.
    group : str, optional
        Group of the output: "R", "R2", "R3", "SO2", "SE2", "SO3", "SE3" or "R3xSO3". Needed
        only for a flat "SO3" (quaternion x, y, z, w) and a flat "SE3" or "R3xSO3" (position and
        quaternion), which look like points of R^4 and R^7 otherwise.

    Returns
    -------
    Reference
        Constant pose, zero twist and acceleration.

    Raises
    ------
    ShapeError
        If `point` does not have the shape its group needs, or a quaternion is not a unit one.
    UnknownNameError
        If `group` is not the name of an output group.

    Examples
    --------
    >>> hold([1.0, 2.0])(5.0).pose
    array([1., 2.])
    """
    if group is not None and group not in _SIZES:
        raise UnknownNameError(
            "reference hold, group",
            expected="one of " + ", ".join(_SIZES),
            came=repr(group),
            cure="Use the group of the output this reference is for.",
        )
    array = _array(point, "hold, point")
    if array.shape == (4, 4) and group in (None, "SE3", "R3xSO3"):
        return _Hold(pose_numbers(_pose(array, "hold, point")), 6, adds=False)
    array = array.reshape(1) if array.ndim == 0 else array
    pose_size, size = _SIZES[group] if group else (array.size, array.size)
    if array.shape != (pose_size,):
        raise ShapeError(
            "reference hold, point",
            expected=f"{pose_size} numbers for an output in {group}" if group else "a flat array",
            came=f"an array of shape {array.shape}",
            cure="See `ReferenceSample` for the coordinates of each group.",
        )
    if pose_size > size and abs(np.linalg.norm(array[-4:]) - 1.0) > 1e-6:
        raise ShapeError(
            "reference hold, point",
            expected="a unit quaternion x, y, z, w",
            came=f"one of length {np.linalg.norm(array[-4:]):.9g}",
            cure="Divide it by its length; check that the scalar part comes last.",
        )
    return _Hold(array, size, adds=group not in ("SO3", "SE2", "SE3", "R3xSO3"))


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
    return _Polynomial(_array(coefficients, "polynomial, coefficients", ndim=2))


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
    first = np.atleast_1d(_array(start, "rest_to_rest, start"))
    last = np.atleast_1d(_array(end, "rest_to_rest, end"))
    if first.ndim != 1 or first.shape != last.shape:
        raise ShapeError(
            "reference rest_to_rest, end",
            expected="two flat arrays of one length for start and end",
            came=f"shapes {first.shape} and {last.shape}",
            cure="Give both places with the same number of coordinates.",
        )
    travel = _positive(duration, "rest_to_rest, duration", "s")
    return _RestToRest(first, last, travel, _number(begin, "rest_to_rest, begin"))


def circle(
    center: ArrayLike,
    radius: float,
    period: float,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    phase: float = 0.0,
) -> Reference:
    """Run round a circle at constant speed, counter-clockwise about its normal.

    In three dimensions the angle is counted from the projection of the inertial x axis onto the
    plane of the circle; of the y axis where the normal is within 26 degrees of the x axis.

    Parameters
    ----------
    center : array_like, shape (2,) or (3,)
        Centre in inertial axes (m).
    radius : float
        Radius (m), positive.
    period : float
        Time of one revolution (s); negative runs clockwise.
    normal : array_like, shape (3,), default (0, 0, 1)
        Normal of the plane, of any length. In the plane (two-dimensional centre) it stays at its
        default.
    phase : float, default 0.0
        Angle at t = 0 (rad).

    Returns
    -------
    Reference
        Reference in R^2 or R^3, as the centre.

    Raises
    ------
    ShapeError, NonFiniteError
        If the centre is not of two or three finite numbers, or the normal not of three.
    ConcurError
        If the radius is not positive, the period or the normal zero.

    Examples
    --------
    >>> circle([0.0, 0.0], radius=2.0, period=4.0)(1.0).pose.round(12)
    array([0., 2.])
    """
    middle = _array(center, "circle, center", ndim=1)
    if middle.size not in (2, 3):
        raise ShapeError(
            "reference circle, center",
            expected="two or three numbers",
            came=f"{middle.size} numbers",
            cure="A circle lies in the plane (R2) or in space (R3).",
        )
    size = _positive(radius, "circle, radius", "m")
    turn = _number(period, "circle, period")
    if turn == 0.0:
        raise ConcurError(
            "reference circle, period",
            expected="a time of revolution (s) other than zero",
            came="0.0",
            cure="A negative period runs clockwise; to stand still use `hold`.",
        )
    up = _array(normal, "circle, normal", ndim=1)
    if up.shape != (3,) or not np.linalg.norm(up) > 0.0:
        raise ShapeError(
            "reference circle, normal",
            expected="three numbers that are not all zero",
            came=str(up.tolist()),
            cure="Give a vector at right angles to the plane of the circle.",
        )
    up = up / np.linalg.norm(up)
    if middle.size == 2:
        if not np.array_equal(up, [0.0, 0.0, 1.0]):
            raise ShapeError(
                "reference circle, normal",
                expected="(0, 0, 1) for a circle in the plane",
                came=str(up.tolist()),
                cure="Give a centre of three numbers, or a negative period to run clockwise.",
            )
        axes = np.eye(2)
    else:
        along = np.array([1.0, 0.0, 0.0] if abs(up[0]) < 0.9 else [0.0, 1.0, 0.0])
        first = along - (along @ up) * up
        first /= np.linalg.norm(first)
        axes = np.array([first, np.cross(up, first)])
    return _Circle(middle, size * axes, 2.0 * math.pi / turn, _number(phase, "circle, phase"))


def waypoints(times: ArrayLike, points: ArrayLike, rates: ArrayLike | None = None) -> Reference:
    """Pass through given points at given times, on cubic splines.

    Between the first and the last time position, velocity and acceleration are continuous.
    Outside, the motion goes on at the constant rate of its end, which by default is rest; the
    velocity is continuous there too, while the acceleration jumps to zero. Where this jump
    matters (it is a step in torque), let the outer points lie beyond the time of the run.

    Parameters
    ----------
    times : array_like, shape (k,)
        Times (s), increasing, at least two.
    points : array_like, shape (k, n)
        Points (m). A flat array of k numbers is taken as n = 1.
    rates : array_like, shape (2, n), optional
        Velocity at the first and the last time (m/s). Zero if not given.

    Returns
    -------
    Reference
        Reference in R^n.

    Raises
    ------
    ShapeError, NonFiniteError
        If the arrays do not fit each other, or a number is not finite.
    ConcurError
        If the times do not increase.

    Examples
    --------
    >>> waypoints([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]])(1.0).pose
    array([0.5])
    """
    knots = _array(times, "waypoints, times", ndim=1)
    table = _array(points, "waypoints, points")
    if table.ndim == 1:
        table = table[:, None]
    if knots.size < 2:
        raise ShapeError(
            "reference waypoints, times",
            expected="at least two times",
            came=str(knots.size),
            cure="To stay at one point use `hold`.",
        )
    if table.ndim != 2 or len(table) != knots.size or table.shape[1] == 0:
        raise ShapeError(
            "reference waypoints, points",
            expected=f"one row for each of the {knots.size} times",
            came=f"an array of shape {table.shape}",
            cure="Give as many points as times.",
        )
    steps = np.diff(knots)
    if not (steps > 0.0).all():
        row = int(np.argmin(steps > 0.0)) + 1
        raise ConcurError(
            f"reference waypoints, times, entry {row}",
            expected=f"a time after {knots[row - 1]:.9g} s",
            came=f"{knots[row]:.9g} s",
            cure="Sort the points by time and remove doubles.",
            row=row,
        )
    ends = np.zeros((2, table.shape[1]))
    if rates is not None:
        ends = _array(rates, "waypoints, rates")
        if ends.shape != (2, table.shape[1]):
            raise ShapeError(
                "reference waypoints, rates",
                expected=f"shape (2, {table.shape[1]}): velocity at the first and the last point",
                came=f"shape {ends.shape}",
                cure="Leave `rates` away to start and end at rest.",
            )
    return _Waypoints(knots, table, ends)


def screw(start_pose: ArrayLike, twist: ArrayLike, group: str = "R3xSO3") -> Reference:
    """Move a pose with a constant body twist: start_pose exp(twist t).

    Parameters
    ----------
    start_pose : array_like, shape (4, 4)
        Pose at t = 0, body to world (m).
    twist : array_like, shape (6,)
        Constant body twist, linear then angular, in the axes of the moving pose (m/s, rad/s).
    group : {"R3xSO3", "SE3"}, default "R3xSO3"
        Group of the output. The motion is the same; the twist of the samples has its linear part
        in inertial axes for "R3xSO3" and in the axes of the pose for "SE3".

    Returns
    -------
    Reference
        Reference of one pose output.

    Raises
    ------
    ShapeError, NonFiniteError
        If the pose is no homogeneous matrix, or `twist` not of six finite numbers.
    UnknownNameError
        If `group` is another one.

    Examples
    --------
    >>> import numpy as np
    >>> screw(np.eye(4), [0.1, 0, 0, 0, 0, 0])(2.0).pose
    array([0.2, 0. , 0. , 0. , 0. , 0. , 1. ])
    """
    if group not in ("R3xSO3", "SE3"):
        raise UnknownNameError(
            "reference screw, group",
            expected="R3xSO3 or SE3",
            came=repr(group),
            cure="Use the group of the output this reference is for.",
        )
    pose = _pose(_array(start_pose, "screw, start_pose"), "screw, start_pose")
    rate = _array(twist, "screw, twist")
    if rate.shape != (6,):
        raise ShapeError(
            "reference screw, twist",
            expected="six numbers, linear then angular velocity",
            came=f"an array of shape {rate.shape}",
            cure="Give the constant body twist.",
        )
    return _Screw(pose, rate, group)


def planar(reference: Reference) -> Reference:
    """Take a reference of x, y, theta as one of a pose in the plane.

    A path in R^3 has rates in inertial axes; a reference in SE(2) has them in the axes of the
    pose. This converts the one into the other.

    Parameters
    ----------
    reference : Reference
        Reference in R^3 with coordinates x (m), y (m), theta (rad).

    Returns
    -------
    Reference
        The same motion as a reference for an output in "SE2".

    Raises
    ------
    ShapeError
        If the reference does not have three coordinates.

    Examples
    --------
    >>> sideways = polynomial([[0.0, 0.0, 1.5707963267948966], [0.0, 1.0, 0.0]])
    >>> planar(sideways)(0.0).twist.round(12)
    array([1., 0., 0.])
    """
    _check_reference(reference, "planar")
    if (reference.pose_size, reference.size) != (3, 3):
        raise ShapeError(
            "reference planar",
            expected="a reference with the coordinates x, y, theta",
            came=f"one with {reference.pose_size}",
            cure="Stack a path in R2 and an angle.",
        )
    return _PlanarPose(reference)


def stack(*references: Reference) -> Reference:
    """Put the references of several outputs into one.

    Parameters
    ----------
    *references : Reference
        References in the order of the outputs.

    Returns
    -------
    Reference
        Reference of all outputs.

    Raises
    ------
    ConcurError
        If there is none, or an argument is no `Reference`.

    Examples
    --------
    >>> stack(hold([1.0, 2.0]), hold([3.0]))(0.0).pose
    array([1., 2., 3.])
    """
    if not references:
        raise ConcurError(
            "reference stack",
            expected="at least one reference",
            came="none",
            cure="Give the reference of each output, in output order.",
        )
    for reference in references:
        _check_reference(reference, "stack")
    return _Stack(references)


def relative(
    reference: Reference, to: Reference, components: Sequence[int] | None = None
) -> Reference:
    """Add two references in R^n, for example a hand's circle to the path of its base.

    Parameters
    ----------
    reference : Reference
        Motion relative to `to`, in inertial axes: only the place moves along, not the heading.
    to : Reference
        Motion of the moving origin.
    components : sequence of int, optional
        Where the coordinates of the one with fewer coordinates are added in the other. By
        default to the first ones: a path in R^2 moves x and y of a point in R^3.

    Returns
    -------
    Reference
        The sum, with as many coordinates as the larger one has.

    Raises
    ------
    ConcurError
        If one of them is a reference of poses, or `components` does not fit.

    Examples
    --------
    >>> path = polynomial([[0.0, 0.0], [1.0, 0.0]])
    >>> relative(hold([0.1, 0.2, 0.3]), path)(1.0).pose
    array([1.1, 0.2, 0.3])
    """
    for part in (reference, to):
        _check_reference(part, "relative")
        if not part._adds:
            raise ShapeError(
                "reference relative",
                expected="two references in R^n",
                came="a reference with a rotation in it",
                cure="Add positions only; give the orientation in inertial axes.",
            )
    low, high = sorted((reference, to), key=lambda r: r.size)
    columns = np.arange(low.size) if components is None else np.asarray(components)
    if (
        columns.shape != (low.size,)
        or columns.dtype.kind != "i"
        or len(set(columns.tolist())) != low.size
        or columns.min() < 0
        or columns.max() >= high.size
    ):
        raise ShapeError(
            "reference relative, components",
            expected=f"{low.size} different whole numbers from 0 to {high.size - 1}",
            came=repr(components),
            cure="Name the coordinate of the larger reference to which each number is added.",
        )
    return _Sum(low, high, columns)


def from_function(
    function: Callable[[float], ReferenceSample], pose_size: int, size: int
) -> Reference:
    """Wrap an own function of time.

    Parameters
    ----------
    function : callable
        Maps a time (s) to a `ReferenceSample`. Twist and acceleration must be the true
        derivatives of the pose: the servo feeds them forward.
    pose_size : int
        Number of pose coordinates of the samples.
    size : int
        Number of twist coordinates of the samples.

    Returns
    -------
    Reference
        The function as a reference.

    Raises
    ------
    ConcurError
        At once if `function` cannot be called; when evaluated if it returns something else
        than a sample of the sizes named.

    Examples
    --------
    >>> import math
    >>> wave = from_function(
    ...     lambda t: ReferenceSample([math.sin(t)], [math.cos(t)], [-math.sin(t)]), 1, 1
    ... )
    >>> wave(0.0).twist
    array([1.])
    """
    if not callable(function):
        raise ConcurError(
            "reference from_function",
            expected="a function from time to ReferenceSample",
            came=repr(function),
            cure="Pass the function itself.",
        )
    return _Function(function, int(pose_size), int(size))


_SIZES = {
    "R": (1, 1),
    "R2": (2, 2),
    "R3": (3, 3),
    "SO2": (1, 1),
    "SE2": (3, 3),
    "SO3": (4, 3),
    "SE3": (7, 6),
    "R3xSO3": (7, 6),
}


class _Hold(Reference):
    def __init__(self, point: Floats, size: int, adds: bool) -> None:
        self.pose_size, self.size = point.size, size
        self._point, self._adds = point, adds

    def _evaluate(self, times: Floats) -> Samples:
        zero = np.zeros((times.size, self.size))
        return np.tile(self._point, (times.size, 1)), zero, zero.copy()


class _Polynomial(Reference):
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


class _RestToRest(Reference):
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


class _Circle(Reference):
    def __init__(self, center: Floats, axes: Floats, speed: float, phase: float) -> None:
        self.pose_size = self.size = center.size
        self._center, self._axes = center, axes
        self._speed, self._phase = speed, phase

    def _evaluate(self, times: Floats) -> Samples:
        angle = self._phase + self._speed * times
        outward = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ self._axes
        forward = np.stack([-np.sin(angle), np.cos(angle)], axis=1) @ self._axes
        return self._center + outward, self._speed * forward, -(self._speed**2) * outward


class _Waypoints(Reference):
    def __init__(self, times: Floats, points: Floats, rates: Floats) -> None:
        self.pose_size = self.size = points.shape[1]
        self._first, self._last = float(times[0]), float(times[-1])
        position = CubicSpline(times, points, bc_type=((1, rates[0]), (1, rates[1])))
        self._splines = [position, position.derivative(1), position.derivative(2)]
        self._rates = rates

    def _evaluate(self, times: Floats) -> Samples:
        inside = np.clip(times, self._first, self._last)
        outside = times != inside
        position, rate, acceleration = (spline(inside) for spline in self._splines)
        beyond = (times - inside)[outside, None]
        rate[outside] = self._rates[(beyond[:, 0] > 0.0).astype(int)]
        position[outside] += beyond * rate[outside]
        acceleration[outside] = 0.0
        return position, rate, acceleration


class _Screw(Reference):
    def __init__(self, start: Floats, twist: Floats, group: str) -> None:
        self.pose_size, self.size, self._adds = 7, 6, False
        self._start, self._twist = start, twist
        self._inertial = group == "R3xSO3"

    def _evaluate(self, times: Floats) -> Samples:
        matrices = np.array([self._start @ se3.exp(self._twist * t) for t in times])
        matrices = matrices.reshape(-1, 4, 4)
        poses = np.array([pose_numbers(m) for m in matrices]).reshape(-1, 7)
        twists = np.tile(self._twist, (times.size, 1))
        accelerations = np.zeros((times.size, 6))
        if self._inertial:
            linear, angular = self._twist[:3], self._twist[3:]
            rotations = matrices[:, :3, :3]
            twists[:, :3] = rotations @ linear
            accelerations[:, :3] = rotations @ np.cross(angular, linear)
        return poses, twists, accelerations


class _PlanarPose(Reference):
    def __init__(self, path: Reference) -> None:
        self.pose_size = self.size = 3
        self._adds = False
        self._path = path

    def _evaluate(self, times: Floats) -> Samples:
        poses, rates, changes = self._path._evaluate(times)
        cos, sin, turn = np.cos(poses[:, 2]), np.sin(poses[:, 2]), rates[:, 2]
        forward = cos * rates[:, 0] + sin * rates[:, 1]
        sideways = -sin * rates[:, 0] + cos * rates[:, 1]
        forward_change = cos * changes[:, 0] + sin * changes[:, 1] + turn * sideways
        sideways_change = -sin * changes[:, 0] + cos * changes[:, 1] - turn * forward
        return (
            poses,
            np.stack([forward, sideways, turn], axis=1),
            np.stack([forward_change, sideways_change, changes[:, 2]], axis=1),
        )


class _Stack(Reference):
    def __init__(self, references: tuple[Reference, ...]) -> None:
        self.pose_size = sum(r.pose_size for r in references)
        self.size = sum(r.size for r in references)
        self._adds = all(r._adds for r in references)
        self._references = references

    def _evaluate(self, times: Floats) -> Samples:
        parts = [r._evaluate(times) for r in self._references]
        poses, twists, accelerations = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
        return poses, twists, accelerations


class _Sum(Reference):
    def __init__(self, low: Reference, high: Reference, columns: NDArray[np.int_]) -> None:
        self.pose_size = self.size = high.size
        self._low, self._high, self._columns = low, high, columns

    def _evaluate(self, times: Floats) -> Samples:
        poses, twists, accelerations = (part.copy() for part in self._high._evaluate(times))
        more = self._low._evaluate(times)
        poses[:, self._columns] += more[0]
        twists[:, self._columns] += more[1]
        accelerations[:, self._columns] += more[2]
        return poses, twists, accelerations


class _Function(Reference):
    def __init__(
        self, function: Callable[[float], ReferenceSample], pose_size: int, size: int
    ) -> None:
        self.pose_size, self.size = pose_size, size
        self._adds = pose_size == size
        self._function = function

    def _evaluate(self, times: Floats) -> Samples:
        samples = [self._checked(float(t)) for t in times]
        return (
            np.array([s.flat_pose for s in samples]).reshape(-1, self.pose_size),
            np.array([s.twist for s in samples]).reshape(-1, self.size),
            np.array([s.acceleration for s in samples]).reshape(-1, self.size),
        )

    def _checked(self, t: float) -> ReferenceSample:
        sample = self._function(t)
        if not isinstance(sample, ReferenceSample):
            raise ConcurError(
                f"reference from_function, t = {t:.9g} s",
                expected="a ReferenceSample",
                came=type(sample).__name__,
                cure="Return ReferenceSample(pose, twist, acceleration).",
            )
        sizes = (sample.flat_pose.size, sample.twist.size)
        if sizes != (self.pose_size, self.size):
            raise ShapeError(
                f"reference from_function, t = {t:.9g} s",
                expected=f"{self.pose_size} pose and {self.size} twist coordinates",
                came=f"{sizes[0]} and {sizes[1]}",
                cure="Return samples of the sizes named in `from_function`.",
            )
        return sample


def _array(value: ArrayLike, where: str, ndim: int | None = None) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(
            f"reference {where}",
            expected="an array of numbers, all rows of one length",
            came=repr(value),
            cure="Give lists of numbers or a NumPy array.",
        ) from None
    if (ndim is not None and array.ndim != ndim) or (array.ndim > 0 and array.shape[-1] == 0):
        form = {1: "a flat array", 2: "a table (rows of numbers)"}.get(ndim or 0, "some numbers")
        # An empty list of times is a fair question; an empty point or table is not.
        if not (where == "times" and array.ndim == 1):
            raise ShapeError(
                f"reference {where}",
                expected=form,
                came=f"an array of shape {array.shape}",
                cure="Check the brackets.",
            )
    if not np.isfinite(array).all():
        raise NonFiniteError(
            f"reference {where}",
            expected="finite numbers",
            came=str(array.tolist()),
            cure="Replace NaN and infinity by numbers.",
        )
    return array


def _number(value: float, where: str) -> float:
    array = _array(value, where)
    if array.ndim != 0:
        raise ShapeError(
            f"reference {where}",
            expected="one number",
            came=f"an array of shape {array.shape}",
            cure="Give a single number.",
        )
    return float(array)


def _positive(value: float, where: str, unit: str) -> float:
    number = _number(value, where)
    if number <= 0.0:
        raise ConcurError(
            f"reference {where}",
            expected=f"a positive number ({unit})",
            came=f"{number:.9g}",
            cure="Check the sign.",
        )
    return number


def _pose(matrix: Floats, where: str) -> Floats:
    if matrix.shape != (4, 4):
        raise ShapeError(
            f"reference {where}",
            expected="a (4, 4) homogeneous matrix",
            came=f"an array of shape {matrix.shape}",
            cure="Build it with `Pose(translation, rotation).matrix`.",
        )
    rotation = matrix[:3, :3]
    proper = np.abs(rotation.T @ rotation - np.eye(3)).max() < 1e-6 and np.linalg.det(rotation) > 0
    if not proper or np.abs(matrix[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9:
        raise ShapeError(
            f"reference {where}",
            expected="a homogeneous matrix with a rotation in it",
            came=str(matrix.tolist()),
            cure="Build it with `Pose(translation, rotation).matrix`.",
        )
    return matrix


def _check_reference(value: object, where: str) -> None:
    if not isinstance(value, Reference):
        raise ConcurError(
            f"reference {where}",
            expected="references",
            came=type(value).__name__,
            cure="Wrap own functions with `references.from_function`.",
        )
