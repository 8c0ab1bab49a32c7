"""Constant references."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ShapeError
from concur.outputs._sample import Part, pose_numbers
from concur.outputs.references._columns import Floats
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._inputs import homogeneous, numbers
from concur.outputs.references._poses import check_group, unit_quaternion
from concur.outputs.references._reference import Expression, Reference

SIZES = {
    "R": (1, 1),
    "R2": (2, 2),
    "R3": (3, 3),
    "SO2": (1, 1),
    "SE2": (3, 3),
    "SO3": (4, 3),
    "SE3": (7, 6),
    "R3xSO3": (7, 6),
}
"""Pose and twist coordinates of the groups of outputs."""


def hold(point: ArrayLike, group: str | None = None) -> Reference:
    """Make a reference that is a constant point or pose.

    Parameters
    ----------
    point : array_like, shape (n,) or (4, 4)
        Coordinates of the point (m, rad), or a pose, body to world.
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
    if group is not None:
        check_group(group, "hold", tuple(SIZES))
    array = numbers(point, "hold, point")
    if array.shape == (4, 4) and group in (None, "SE3", "R3xSO3"):
        return _Hold(pose_numbers(homogeneous(array, "hold, point")), 6, group)
    array = array.reshape(1) if array.ndim == 0 else array
    pose_size, size = SIZES[group] if group else (array.size, array.size)
    if array.shape != (pose_size,):
        raise ShapeError(
            "reference hold, point",
            expected=f"{pose_size} numbers for an output in {group}" if group else "a flat array",
            came=f"an array of shape {array.shape}",
            cure="See `ReferenceSample` for the coordinates of each group.",
        )
    if pose_size > size:
        array[-4:] = unit_quaternion(array[-4:], "hold, point")
    return _Hold(array, size, group)


def nothing() -> Reference:
    """Make the reference of no outputs."""
    return _Hold(np.empty(0), 0, None)


class _Hold(Expression):
    def __init__(self, point: Floats, size: int, group: str | None) -> None:
        self.pose_size, self.size = point.size, size
        self._point, self._group = point, group

    @property
    def groups(self) -> tuple[Part, ...]:
        return ((self.pose_size, self.size, self._group),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        return ca.SX(self._point), ca.SX(self.size, 1), ca.SX(self.size, 1)
