"""Circles at constant speed."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ConcurError, ShapeError, shown
from concur.groups import quaternion
from concur.outputs.references._along import Along, Straight
from concur.outputs.references._columns import Floats
from concur.outputs.references._composed import Composed
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._inputs import SHORTEST, number, numbers, positive
from concur.outputs.references._poses import Read, check_group, flat_pose
from concur.outputs.references._reference import Path, Reference


def circle(
    center: ArrayLike,
    radius: float,
    period: float,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    phase: float = 0.0,
    attitude: ArrayLike | None = None,
    turning: bool = False,
    group: str | None = None,
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
        raise ShapeError(
            "reference circle, center",
            expected="two or three numbers",
            came=f"{middle.size} numbers",
            cure="A circle lies in the plane (R2) or in space (R3).",
        )
    if not isinstance(turning, (bool, np.bool_)):
        raise ConcurError(
            "reference circle, turning",
            expected="True or False",
            came=shown(turning),
            cure="Say whether the orientation turns with the circle.",
        )
    size = positive(radius, "circle, radius", "m")
    turn = number(period, "circle, period")
    if abs(turn) < SHORTEST:
        raise ConcurError(
            "reference circle, period",
            expected=f"a time of revolution (s) other than zero, of at least {SHORTEST:g}",
            came=f"{turn:g}",
            cure="A negative period runs clockwise; to stand still use `hold`.",
        )
    up = numbers(normal, "circle, normal", ndim=1)
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
    speed = 2.0 * math.pi / turn
    place = _Circle(middle, size * axes, speed, number(phase, "circle, phase"))
    if attitude is None:
        if turning or group is not None:
            raise ConcurError(
                "reference circle, attitude",
                expected="an orientation at t = 0",
                came="nothing, but `turning` or `group`",
                cure="Give a unit quaternion x, y, z, w, or leave these out.",
            )
        return place
    named = check_group("R3xSO3" if group is None else group, "circle", ("R3xSO3", "SE3"))
    if middle.size == 2:
        raise ShapeError(
            "reference circle, center",
            expected="three numbers for a pose",
            came="2 numbers",
            cure="Give the height of the centre too.",
        )
    first = flat_pose(attitude, "SO3", "circle, attitude")
    # A turn about the normal is a constant rate in the axes of the body too.
    inside = quaternion.rotate(quaternion.conjugate(first), up)
    turned = Along(first, Straight(float(turning) * speed * np.asarray(inside)), "SO3")
    return Read(Composed((place, turned), ["R3", "SO3"]), named)


class _Circle(Path):
    def __init__(self, center: Floats, axes: Floats, speed: float, phase: float) -> None:
        self.pose_size = self.size = center.size
        self._center, self._axes = center, axes
        self._speed, self._phase = speed, phase

    def _motion(self, t: Array, read: Reader) -> Motion:
        angle = self._phase + self._speed * t
        cos, sin, axes = ca.cos(angle), ca.sin(angle), ca.SX(self._axes.T)
        outward, forward = axes @ ca.vertcat(cos, sin), axes @ ca.vertcat(-sin, cos)
        return ca.SX(self._center) + outward, self._speed * forward, -(self._speed**2) * outward
