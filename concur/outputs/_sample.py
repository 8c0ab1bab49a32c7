"""One instant of a reference: pose, velocity and acceleration of the outputs."""

from __future__ import annotations

from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import Array, Vector, as_floats, nonfinite_error, shape_error
from concur.errors import ShapeError
from concur.groups import quaternion

Part: TypeAlias = tuple[int, int, str | None]
"""Pose coordinates, twist coordinates, group; the group is None where any of these sizes fits."""


class ReferenceSample:
    """Reference pose, twist and acceleration of all outputs at one instant.

    Each may also be a CasADi SX column; a pose is then given by its numbers, not as a matrix.

    Parameters
    ----------
    pose : array_like or casadi.SX, shape (4, 4) or (np,)
        A homogeneous matrix, body to world, if there is one output and it is a pose. Otherwise
        the numbers of all outputs one after the other: `R`, `R2`, `R3` their coordinates (m),
        `SO2` the angle (rad), `SE2` x, y, theta, `SO3` a unit quaternion x, y, z, w, `SE3` and
        `R3xSO3` px, py, pz, qx, qy, qz, qw.
    twist : array_like or casadi.SX, shape (n,)
        Left-trivialised velocity of the reference, gamma^-1 gammadot, in output order (m/s,
        rad/s). `R`, `R2`, `R3`: rate in inertial axes. `SE2`: vx, vy, omega in the axes of the
        demanded pose. `SO3`: angular velocity in the axes of the reference pose. `SE3`: linear
        and angular velocity in the axes of the reference pose. `R3xSO3`: linear velocity in
        inertial axes, angular velocity in the axes of the reference pose.
    acceleration : array_like or casadi.SX, shape (n,)
        Time derivative of `twist` (m/s^2, rad/s^2).
    groups : tuple, optional
        Parts for whose groups the numbers are made, as in `Reference.groups`; a reference states
        them, and laws refuse those of other outputs. Default: those of any outputs of the sizes.

    Attributes
    ----------
    flat_pose : numpy.ndarray or casadi.SX
        The pose as a flat vector, shape (np,): that of a matrix is computed once, here, and is
        px, py, pz, qx, qy, qz, qw.

    Raises
    ------
    ShapeError
        If an array is not numeric, is neither flat nor (4, 4), if an SX is not a column,
        or if `twist` and `acceleration` differ in length.
    NonFiniteError
        If a number is NaN or infinite.

    Examples
    --------
    >>> sample = ReferenceSample([1.0, 2.0], [0.1, 0.0], [0.0, 0.0])
    >>> sample.twist
    array([0.1, 0. ])
    """

    __slots__ = ("acceleration", "flat_pose", "groups", "pose", "twist")

    pose: Array
    flat_pose: Array
    twist: Array
    acceleration: Array
    groups: tuple[Part, ...] | None

    def __init__(
        self,
        pose: Array,
        twist: Vector,
        acceleration: Vector,
        groups: tuple[Part, ...] | None = None,
    ) -> None:
        arrays = {
            "pose": _part(pose, "pose"),
            "twist": _part(twist, "twist"),
            "acceleration": _part(acceleration, "acceleration"),
        }
        if not _is_flat(arrays["pose"]) and arrays["pose"].shape != (4, 4):
            raise ShapeError(
                "reference sample, pose",
                expected="a flat array or a (4, 4) homogeneous matrix",
                came=f"an array of shape {arrays['pose'].shape}",
                cure="List the numbers of all outputs one after the other, in output order.",
            )
        for name in ("twist", "acceleration"):
            if not _is_flat(arrays[name]):
                raise ShapeError(
                    f"reference sample, {name}",
                    expected="a flat array",
                    came=f"an array of shape {arrays[name].shape}",
                    cure="List the numbers of all outputs one after the other, in output order.",
                )
        size, rates = arrays["twist"].shape[0], arrays["acceleration"].shape[0]
        if size != rates:
            raise ShapeError(
                "reference sample, acceleration",
                expected=f"{size} numbers, as many as the twist has",
                came=f"{rates} numbers",
                cure="The acceleration is the time derivative of the twist.",
            )
        flat = arrays["pose"]
        arrays["flat_pose"] = flat if _is_flat(flat) else pose_numbers(flat)
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "groups", groups)

    @property
    def is_matrix(self) -> bool:
        """Whether the pose was given as a homogeneous matrix (4, 4)."""
        return self.flat_pose is not self.pose

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be deleted")

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return ReferenceSample, (self.pose, self.twist, self.acceleration, self.groups)

    def __repr__(self) -> str:
        pose, twist, acceleration = (
            part.tolist() if isinstance(part, np.ndarray) else str(part)
            for part in (self.pose, self.twist, self.acceleration)
        )
        return f"ReferenceSample(pose={pose}, twist={twist}, acceleration={acceleration})"


def pose_numbers(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn a homogeneous matrix into px, py, pz, qx, qy, qz, qw with qw >= 0."""
    return np.concatenate([matrix[:3, 3], quaternion.from_matrix(matrix[:3, :3])])


def finite(value: ArrayLike, where: str) -> NDArray[np.float64]:
    """Copy an array of finite numbers."""
    array = np.array(as_floats(value, where))
    if not np.isfinite(array).all():
        raise nonfinite_error(where, array)
    return array


def _part(value: Array, name: str) -> Array:
    where = f"reference sample, {name}"
    if not isinstance(value, ca.SX):
        return finite(value, where)
    if value.shape[1] != 1:
        raise shape_error(where, (value.numel(), 1), value.shape)
    return ca.SX(value)


def _is_flat(part: Array) -> bool:
    return isinstance(part, ca.SX) or part.ndim == 1
