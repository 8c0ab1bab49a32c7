"""Paths by formulas: points at rest, polynomials, circles and screws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ConcurError, shown
from concur.groups import quaternion, se3
from concur.outputs._sample import homogeneous, pose_numbers
from concur.outputs.groups import NAMES, named
from concur.outputs.references._arguments import (
    COORDINATES,
    SHORTEST,
    SPATIAL,
    Group,
    check_group,
    flat_pose,
    number,
    numbers,
    positive,
    refused,
    vector,
    with_unit_length,
)
from concur.outputs.references._motions import (
    exponential,
    from_body,
    group_of,
    logarithm,
    part_in,
    path,
    product,
    to_body,
)
from concur.outputs.references._reference import Floats, Formula, Motion, Reader, Reference
from concur.robot import Pose, unknown_name
from concur.tables import (
    INTERNAL,
    Choice,
    InFiles,
    NumberOrList,
    Numbers,
    Positive,
    Quaternion,
    Rows,
    Vector3,
    Vector6,
)

FRAMES = ("body", "spatial")


def hold(point: Annotated[ArrayLike, InFiles(NumberOrList)], group: Group = None) -> Reference:
    """Make a reference that is a constant point or pose.

    Parameters
    ----------
    point : array_like, shape (n,) or (4, 4)
        Coordinates of the point (m, rad); of an "SO3" a quaternion x, y, z, w, of an "S2" a unit
        vector, of a pose x, y, z and a quaternion, or the pose as a homogeneous matrix, body to
        world.
    group : str, optional
        Group of the output: "R", "R2", "R3", "SO2", "SE2", "SO3", "S2", "SE3" or "R3xSO3". Needed
        only for a flat "SO3" (quaternion x, y, z, w), an "S2" (unit vector) and a flat "SE3" or
        "R3xSO3" (position and quaternion), which look like points of R^4, R^3 and R^7 otherwise.

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
    if group is not None:
        check_group(group, "hold", NAMES)
    array = numbers(point, "hold, point")
    if array.shape == (4, 4) and group in (None, "SE3", "R3xSO3"):
        array = pose_numbers(homogeneous(array, "reference hold, point"))
        return _held(array, 6, group)
    array = array.reshape(1) if array.ndim == 0 else array
    pose_size, size = (array.size, array.size)
    if group is not None:
        pose_size, size = named(group).pose_size, named(group).paths.dim
    if array.shape != (pose_size,):
        expected = f"a flat array, {pose_size} numbers" + f" for {group}" * (group is not None)
        raise refused("hold, point", expected, f"shape {array.shape}", COORDINATES)
    if group is not None:
        array = with_unit_length(array, group, "hold, point")
    return _held(array, size, group)


def _held(point: Floats, size: int, group: str | None) -> Reference:
    rest = ca.SX(size, 1)
    return Formula([(point.size, size, group)], lambda t, read: (ca.SX(point), rest, rest))


def polynomial(
    coefficients: Annotated[ArrayLike, InFiles(Rows)],
    start: Annotated[ArrayLike | None, InFiles(Numbers)] = None,
    group: Group = None,
) -> Reference:
    """Move along a polynomial in time.

    Poses move along its exponential, start exp(c0 + c1 t + c2 t^2 + ...) on their group: on
    "R3xSO3" the position along a polynomial in inertial axes and the orientation separately, on
    "SE3" both together. A direction, on "S2", is turned by it in inertial axes: at a constant rate
    about an axis for two coefficients.

    Parameters
    ----------
    coefficients : array_like, shape (degree + 1, n)
        Row i is the factor of t^i (m/s^i, rad/s^i): the first row is the place at t = 0, the
        second the velocity there.
    start : array_like, shape (np,) or (4, 4), optional
        For poses: the pose from which the polynomial counts, x, y, z (m) and a quaternion x, y, z,
        w, of an "SO3" the quaternion; or a homogeneous matrix. Of an "S2" the direction.
    group : {"R3xSO3", "SE3", "SO3", "S2"}, optional
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
    rows = numbers(coefficients, "polynomial, coefficients", ndim=2)
    powers = np.arange(len(rows))[:, None]
    derivatives = rows, (powers * rows)[1:], (powers * (powers - 1) * rows)[2:]

    def way(t: Array) -> Motion:
        place, rate, second = (horner(part, t, rows.shape[1]) for part in derivatives)
        return place, rate, second

    if start is None and group is None:
        return Formula(path(rows.shape[1]), lambda t, read: way(t))
    if start is None or group is None:
        cure = 'For example polynomial(..., start=pose, group="R3xSO3").'
        raise refused("polynomial", "`start` and `group`, or neither", "one", cure, ConcurError)
    lie = named(check_group(group, "polynomial")).paths
    if rows.shape[1] != lie.dim:
        expected, came = f"rows of {lie.dim} numbers for {group}", f"rows of {rows.shape[1]}"
        cure = "Give the linear, then the angular coefficients of each power."
        raise refused("polynomial, coefficients", expected, came, cure)
    first = ca.SX(flat_pose(start, group, "polynomial, start"))
    return Formula(part_in(group), lambda t, read: exponential(first, way(t), group))


def horner(coefficients: Sequence[Array] | Floats, t: Array, size: int) -> Array:
    """Polynomial (size,) whose coefficients come by power; zero without any."""
    value = ca.SX(size, 1)
    for coefficient in coefficients[::-1]:
        value = value * t + ca.SX(coefficient)
    return value


def rest_to_rest(
    start: Annotated[ArrayLike, InFiles(Numbers)],
    end: Annotated[ArrayLike, InFiles(Numbers)],
    duration: Positive,
    begin: float = 0.0,
    group: Group = None,
) -> Reference:
    """Move in a straight line from one point to another, at rest before and after.

    Poses go along the one-parameter subgroup between them, start exp(x log(start^-1 end)), the
    shorter way round: on "R3xSO3" along a straight line and about a fixed axis, on "SE3" along
    a screw, on "S2" along a great circle.

    The path parameter is 10 x^3 - 15 x^4 + 6 x^5, so velocity and acceleration vanish at both
    ends and the acceleration is continuous everywhere.

    Parameters
    ----------
    start : array_like, shape (n,) or (4, 4)
        Place until `begin` (m, rad); of an "SO3" a quaternion x, y, z, w, of an "S2" a unit vector,
        of a pose x, y, z and a quaternion, or a homogeneous matrix.
    end : array_like, shape (n,) or (4, 4)
        Place from `begin` + `duration` on (m), likewise.
    duration : float
        Time of travel (s), positive.
    begin : float, default 0.0
        Time of departure (s).
    group : {"R3xSO3", "SE3", "SO3", "S2"}, optional
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
    where = "rest_to_rest"
    if group is not None:
        check_group(group, where)
        first = flat_pose(start, group, f"{where}, start")
        last = flat_pose(end, group, f"{where}, end")
        way = logarithm(first[None], last[None], group)[0]
    else:
        first = np.atleast_1d(numbers(start, f"{where}, start"))
        last = np.atleast_1d(numbers(end, f"{where}, end"))
        if first.ndim != 1 or first.shape != last.shape:
            came, cure = f"shapes {first.shape} and {last.shape}", "Give as many coordinates."
            raise refused(f"{where}, end", "a flat array like `start`", came, cure)
        way = last - first
    travel = positive(duration, f"{where}, duration", "s")
    departure = number(begin, f"{where}, begin")

    def motion(t: Array, read: Reader) -> Motion:
        place, rate, second = smooth((t - departure) / travel)
        progress = place, rate / travel, second / travel**2
        if group is not None:
            return _along(first, way, progress, group)
        place, rate, second = (part * ca.SX(way) for part in progress)
        return ca.SX(first) + place, rate, second

    ends = departure, departure + travel
    return Formula(path(first.size) if group is None else part_in(group), motion, ends)


def smooth(progress: Array) -> Motion:
    """10 x^3 - 15 x^4 + 6 x^5 with its derivatives, x kept from 0 to 1: from rest to rest."""
    x = ca.fmin(ca.fmax(progress, 0.0), 1.0)
    return (
        x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
        30.0 * x**2 * (1.0 - x) ** 2,
        60.0 * x * (1.0 - x) * (1.0 - 2.0 * x),
    )


def circle(
    center: Annotated[ArrayLike, InFiles(Numbers)],
    radius: Positive,
    period: float,
    normal: Annotated[ArrayLike, InFiles(Vector3)] = (0.0, 0.0, 1.0),
    phase: float = 0.0,
    attitude: Annotated[ArrayLike | None, InFiles(Quaternion)] = None,
    turning: bool = False,
    group: Group = None,
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
    attitude : array_like, shape (4,), optional
        Orientation at t = 0: unit quaternion x, y, z, w, body to world. With it the reference is
        one of a pose, about a centre in space.
    turning : bool, default False
        Whether the orientation turns with the circle, so that the same side always faces the
        centre, or stays as it is.
    group : {"R3xSO3", "SE3"}, optional
        Group of a pose; "R3xSO3" if not given.

    Returns
    -------
    Reference
        Reference in R^2 or R^3, as the centre, or of a pose.

    Raises
    ------
    ShapeError, NonFiniteError
        If the centre is not of two or three finite numbers, the normal not of three, or the
        attitude no unit quaternion.
    UnknownNameError
        If `group` is another one.
    ConcurError
        If the radius is not positive, the period or the normal zero, or `turning` or `group` are
        given without `attitude`.

    Examples
    --------
    >>> circle([0.0, 0.0], radius=2.0, period=4.0)(1.0).pose.round(12)
    array([0., 2.])
    """
    middle = numbers(center, "circle, center", ndim=1)
    if middle.size not in (2, 3):
        cure = "A circle lies in the plane (R2) or in space (R3)."
        raise refused("circle, center", "two or three numbers", middle.size, cure)
    if not isinstance(turning, (bool, np.bool_)):
        raise refused(
            "circle, turning", "True or False", shown(turning), "Say whether it turns.", ConcurError
        )
    size = positive(radius, "circle, radius", "m")
    turn = number(period, "circle, period")
    if abs(turn) < SHORTEST:
        cure = "A negative period runs clockwise; to stand still use `hold`."
        raise refused("circle, period", f"at least {SHORTEST:g} s", f"{turn:g}", cure, ConcurError)
    up, axes = _plane(normal, middle.size)
    speed, ahead = 2.0 * math.pi / turn, number(phase, "circle, phase")

    def around(t: Array) -> Motion:
        angle = ahead + speed * t
        cos, sin, plane = ca.cos(angle), ca.sin(angle), ca.SX(size * axes.T)
        outward, forward = plane @ ca.vertcat(cos, sin), plane @ ca.vertcat(-sin, cos)
        return ca.SX(middle) + outward, speed * forward, -(speed**2) * outward

    if attitude is None:
        if turning or group is not None:
            cure = "Give a unit quaternion x, y, z, w, or leave out `turning` and `group`."
            raise refused("circle, attitude", "one at t = 0", "none", cure, ConcurError)
        return Formula(path(middle.size), lambda t, read: around(t))
    known = check_group("R3xSO3" if group is None else group, "circle", ("R3xSO3", "SE3"))
    if middle.size == 2:
        cure = "Give the height of the centre too."
        raise refused("circle, center", "three numbers for a pose", "2 numbers", cure)
    first = flat_pose(attitude, "SO3", "circle, attitude")
    # A turn about the normal is a constant rate in the axes of the body too.
    rate = float(turning) * speed * np.asarray(quaternion.rotate(quaternion.conjugate(first), up))

    def motion(t: Array, read: Reader) -> Motion:
        turned = to_body(_along(first, rate, (t, ca.SX(1), ca.SX(0)), "SO3"), "SO3")
        return from_body(product(to_body(around(t), "R3"), turned), known)

    return Formula(part_in(known), motion)


def _plane(normal: ArrayLike, size: int) -> tuple[Floats, Floats]:
    """Unit normal of a circle in R^size, and the rows of the axes from which its angle counts."""
    up = numbers(normal, "circle, normal", ndim=1)
    if up.shape != (3,) or not np.linalg.norm(up) > 0.0:
        cure = "Give a vector at right angles to the plane of the circle."
        raise refused("circle, normal", "three numbers, not all zero", up.tolist(), cure)
    up = up / np.linalg.norm(up)
    if size == 2:
        if not np.array_equal(up, [0.0, 0.0, 1.0]):
            cure = "Give a centre of three numbers, or a negative period to run clockwise."
            raise refused("circle, normal", "(0, 0, 1) in the plane", up.tolist(), cure)
        return up, np.eye(2)
    along = np.array([1.0, 0.0, 0.0] if abs(up[0]) < 0.9 else [0.0, 1.0, 0.0])
    first = along - (along @ up) * up
    first /= np.linalg.norm(first)
    return up, np.array([first, np.cross(up, first)])


def screw(
    start_pose: Annotated[ArrayLike, InFiles(Pose)],
    twist: Annotated[ArrayLike, InFiles(Vector6)],
    group: Annotated[str, INTERNAL] = "R3xSO3",
    frame: Annotated[str, Choice(FRAMES)] = "body",
    progress: Annotated[Reference | None, INTERNAL] = None,
) -> Reference:
    """Move a pose with a constant twist: start_pose exp(twist t) or exp(twist t) start_pose.

    Parameters
    ----------
    start_pose : array_like, shape (4, 4)
        Pose at t = 0, body to world (m).
    twist : array_like, shape (6,)
        Constant twist, linear then angular (m/s, rad/s).
    group : {"R3xSO3", "SE3", "SO3", "R3"}, default "R3xSO3"
        Group of the output. The motion is the same; "SO3" follows its orientation and "R3" its
        place. The twist of the samples has its linear part in inertial axes for "R3xSO3" and
        "R3", in the axes of the pose for "SE3".
    frame : {"body", "spatial"}, default "body"
        Axes of `twist`: those of the moving pose, or inertial axes, where the linear part is the
        velocity at the inertial origin.
    progress : Reference, optional
        Reference in R whose value (s) stands in place of the time t, for example a
        `rest_to_rest` from 0 to 1; `twist` is then per second of it.

    Returns
    -------
    Reference
        Reference of one output.

    Raises
    ------
    ShapeError, NonFiniteError
        If the pose is no homogeneous matrix, or `twist` not of six finite numbers.
    UnknownNameError
        If `group` or `frame` is another one.
    ConcurError
        If `progress` is not a reference in R.

    Examples
    --------
    >>> import numpy as np
    >>> screw(np.eye(4), [0.1, 0, 0, 0, 0, 0])(2.0).pose
    array([0.2, 0. , 0. , 0. , 0. , 0. , 1. ])
    """
    check_group(group, "screw", SPATIAL)
    if not isinstance(frame, str) or frame not in FRAMES:
        raise unknown_name("reference screw, frame", "frame", frame, FRAMES)
    pose = homogeneous(numbers(start_pose, "screw, start_pose"), "reference screw, start_pose")
    rate = vector(twist, "screw, twist", 6)
    if progress is not None and group_of(progress, "screw, progress") != "R1":
        came, cure = f"{progress.size} coordinates", "For example rest_to_rest([0.0], [1.0], 5.0)."
        raise refused("screw, progress", "a reference in R", came, cure, ConcurError)
    if frame == "spatial":
        rate = np.asarray(se3.adjoint(se3.inverse(pose))) @ rate
    first = pose_numbers(pose)

    def motion(t: Array, read: Reader) -> Motion:
        parts = (t, ca.SX(1), ca.SX(0)) if progress is None else progress._expression(t, read)
        return from_body(_along(first, rate, parts, "SE3"), group)

    return Formula(part_in(group), motion)


def _along(start: Floats, direction: Floats, progress: Motion, group: str) -> Motion:
    """Pose start exp(direction progress), along a one-parameter subgroup: the rates are exact."""
    place, rate, second = (part * ca.SX(direction) for part in progress)
    return exponential(ca.SX(start), (place, rate, second), group)[0], rate, second
