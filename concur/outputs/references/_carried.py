"""References that are carried along: by a drift of the whole system, or by a moving frame."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, shape_error
from concur.errors import ConcurError
from concur.outputs._sample import Part
from concur.outputs.references._columns import Floats
from concur.outputs.references._composed import Composed, space_group
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._inputs import number, numbers
from concur.outputs.references._poses import Read, group_of
from concur.outputs.references._reference import Expression, Reference, check_reference
from concur.outputs.references._screw import screw


def drifting(reference: Reference, velocity: ArrayLike, start: float = 0.0) -> Reference:
    """Carry a reference along with a constant inertial velocity.

    The centre of mass of a floating robot moves at its linear momentum over its mass for ever,
    and nothing inside the robot changes that: what stands still in inertial axes gets out of
    reach, what drifts along does not.

    Parameters
    ----------
    reference : Reference
        Reference of one output with a position: in R^n, "R3xSO3" or "SE3". Of a pose in the plane
        carry the path, and make it `planar` afterwards.
    velocity : array_like, shape (n,)
        Velocity in inertial axes (m/s): three numbers for a pose, as many as coordinates in R^n.
    start : float, default 0.0
        Time (s) at which the reference is where it would be without the drift.

    Returns
    -------
    Reference
        The reference, displaced by velocity (t - start); attitude and group are the same.

    Raises
    ------
    ConcurError
        If `reference` is no `Reference`, or no position of one output.
    ShapeError, NonFiniteError
        If the velocity does not fit, or a number is not finite.

    Examples
    --------
    >>> from concur.outputs.references import hold
    >>> drifting(hold([1.0, 2.0, 3.0]), [0.1, 0.0, 0.0])(10.0).pose
    array([2., 2., 3.])
    """
    check_reference(reference, "drifting")
    group = group_of(reference, "drifting")
    if group in ("SO3", "SO2", "SE2"):
        raise ConcurError(
            "reference drifting",
            expected="the reference of a position: in R^n, R3xSO3 or SE3",
            came=f"one in {group}",
            cure="Carry the path in x, y, theta and then use `planar`."
            if group == "SE2"
            else "An orientation does not drift: leave it as it is.",
        )
    rate = numbers(velocity, "drifting, velocity")
    size = 3 if group in ("SE3", "R3xSO3") else reference.size
    if rate.shape != (size,):
        raise shape_error("reference drifting, velocity", (size,), rate.shape)
    begin = number(start, "drifting, start")
    if group == "SE3":
        frame = screw(np.eye(4), [*rate, 0.0, 0.0, 0.0], "SE3")
        return Composed((_Later(frame, begin), reference), ["SE3", "SE3"])
    return _Drifting(reference, rate, begin)


def moving(reference: Reference, twist: ArrayLike, start: float = 0.0) -> Reference:
    """Give a reference relative to a frame that moves with a constant spatial twist.

    gamma(t) = exp(xi (t - start)) gamma_0(t), for example a hand's pose in the frame of a
    target that tumbles about a fixed axis.

    Parameters
    ----------
    reference : Reference
        Motion gamma_0 in the moving frame: reference of one output in "SE3", "R3xSO3", "SO3" or
        R^3.
    twist : array_like, shape (6,)
        Constant twist xi of the frame, linear then angular, in inertial axes: the linear part
        is the velocity of the point of the moving frame that passes the inertial origin (m/s,
        rad/s).
    start : float, default 0.0
        Time (s) at which the moving frame is the inertial one.

    Returns
    -------
    Reference
        The motion in inertial axes, in the group of `reference`.

    Raises
    ------
    ConcurError
        If `reference` is no `Reference`, or no motion in space of one output.
    ShapeError, NonFiniteError
        If the twist is not of six finite numbers, or `start` no number.

    Examples
    --------
    A point that stands still in a frame that turns about z:

    >>> from concur.outputs.references import hold
    >>> float(moving(hold([1.0, 0.0, 0.0]), [0, 0, 0, 0, 0, 0.5])(0.0).twist[1])
    0.5
    """
    check_reference(reference, "moving")
    group = space_group(reference, "moving")
    rate = numbers(twist, "moving, twist")
    if rate.shape != (6,):
        raise shape_error("reference moving, twist", (6,), rate.shape)
    frame = _Later(screw(np.eye(4), rate, "SE3"), number(start, "moving, start"))
    return Read(Composed((frame, reference), ["SE3", group]), group)


class _Later(Expression):
    """A reference whose time counts from a start."""

    def __init__(self, reference: Reference, start: float) -> None:
        self.pose_size, self.size = reference.pose_size, reference.size
        self._reference, self._start = reference, start

    @property
    def groups(self) -> tuple[Part, ...]:
        return self._reference.groups

    def _motion(self, t: Array, read: Reader) -> Motion:
        return self._reference._motion(t - self._start, read)


class _Drifting(Expression):
    """Positions in inertial axes, the first coordinates, with a constant velocity added."""

    def __init__(self, reference: Reference, velocity: Floats, start: float) -> None:
        self.pose_size, self.size = reference.pose_size, reference.size
        self._reference, self._velocity, self._start = reference, velocity, start

    @property
    def groups(self) -> tuple[Part, ...]:
        return self._reference.groups

    def _motion(self, t: Array, read: Reader) -> Motion:
        pose, twist, acceleration = self._reference._motion(t, read)
        pose, twist, count = ca.SX(pose), ca.SX(twist), self._velocity.size
        pose[:count] += (t - self._start) * self._velocity
        twist[:count] += self._velocity
        return pose, twist, acceleration
