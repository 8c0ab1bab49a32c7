"""One instant of a reference: where the outputs should be, how fast, and how this changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.errors import NonFiniteError, ShapeError


class ReferenceSample:
    """Demanded pose, twist and acceleration of all outputs at one instant.

    Parameters
    ----------
    pose : array_like, shape (4, 4) or (np,)
        A homogeneous matrix, body to world, if there is one output and it is a pose. Otherwise
        the numbers of all outputs one after the other: `R`, `R2`, `R3` their coordinates (m),
        `SO2` the angle (rad), `SE2` x, y, theta, `SO3` a unit quaternion x, y, z, w, `SE3` and
        `R3xSO3` px, py, pz, qx, qy, qz, qw.
    twist : array_like, shape (n,)
        Left-trivialised velocity of the demand, gamma^-1 gammadot, in output order (m/s,
        rad/s). `R`, `R2`, `R3`: rate in inertial axes. `SE2`: vx, vy, omega in the axes of the
        demanded pose. `SO3`: angular velocity in the axes of the demanded pose. `SE3`: linear
        and angular velocity in the axes of the demanded pose. `R3xSO3`: linear velocity in
        inertial axes, angular velocity in the axes of the demanded pose.
    acceleration : array_like, shape (n,)
        Time derivative of `twist` (m/s^2, rad/s^2).

    Raises
    ------
    ShapeError
        If an array is no array of numbers, is neither flat nor (4, 4), or if `twist` and
        `acceleration` differ in length.
    NonFiniteError
        If a number is NaN or infinite.

    Examples
    --------
    >>> sample = ReferenceSample([1.0, 2.0], [0.1, 0.0], [0.0, 0.0])
    >>> sample.twist
    array([0.1, 0. ])
    """

    __slots__ = ("acceleration", "pose", "twist")

    pose: NDArray[np.float64]
    twist: NDArray[np.float64]
    acceleration: NDArray[np.float64]

    def __init__(self, pose: ArrayLike, twist: ArrayLike, acceleration: ArrayLike) -> None:
        arrays = {
            "pose": _numbers(pose, "pose"),
            "twist": _numbers(twist, "twist"),
            "acceleration": _numbers(acceleration, "acceleration"),
        }
        if arrays["pose"].ndim != 1 and arrays["pose"].shape != (4, 4):
            raise ShapeError(
                "reference sample, pose",
                expected="a flat array or a (4, 4) homogeneous matrix",
                came=f"an array of shape {arrays['pose'].shape}",
                cure="List the numbers of all outputs one after the other, in output order.",
            )
        for name in ("twist", "acceleration"):
            if arrays[name].ndim != 1:
                raise ShapeError(
                    f"reference sample, {name}",
                    expected="a flat array",
                    came=f"an array of shape {arrays[name].shape}",
                    cure="List the numbers of all outputs one after the other, in output order.",
                )
        if arrays["twist"].shape != arrays["acceleration"].shape:
            raise ShapeError(
                "reference sample, acceleration",
                expected=f"{arrays['twist'].size} numbers, as many as the twist has",
                came=f"{arrays['acceleration'].size} numbers",
                cure="The acceleration is the time derivative of the twist.",
            )
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def flat_pose(self) -> NDArray[np.float64]:
        """Pose as a flat vector; a (4, 4) matrix becomes px, py, pz, qx, qy, qz, qw."""
        if self.pose.ndim == 1:
            return self.pose
        flat = pose_numbers(self.pose)
        flat.setflags(write=False)
        return flat

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be deleted")

    def __reduce__(self) -> tuple[type, tuple[NDArray[np.float64], ...]]:
        return ReferenceSample, (self.pose, self.twist, self.acceleration)

    def __repr__(self) -> str:
        return (
            f"ReferenceSample(pose={self.pose.tolist()}, twist={self.twist.tolist()}, "
            f"acceleration={self.acceleration.tolist()})"
        )


def pose_numbers(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn a homogeneous matrix into px, py, pz, qx, qy, qz, qw.

    Parameters
    ----------
    matrix : ndarray, shape (4, 4)
        Pose, body to world (m).

    Returns
    -------
    ndarray, shape (7,)
        Position (m) and unit quaternion with qw >= 0.
    """
    r = matrix[:3, :3]
    # Of the four candidates for the divisor the largest one is never near zero, so nothing cancels.
    squares = np.array([r[0, 0], r[1, 1], r[2, 2], np.trace(r)])
    largest = int(np.argmax(squares))
    if largest == 3:
        q = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], 1.0 + squares[3]])
    else:
        i, j, k = largest, (largest + 1) % 3, (largest + 2) % 3
        q = np.empty(4)
        q[i] = 1.0 + r[i, i] - r[j, j] - r[k, k]
        q[j] = r[i, j] + r[j, i]
        q[k] = r[i, k] + r[k, i]
        q[3] = r[k, j] - r[j, k]
    q /= np.linalg.norm(q)
    return np.concatenate([matrix[:3, 3], -q if q[3] < 0 else q])


def _numbers(value: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(
            f"reference sample, {name}",
            expected="an array of numbers",
            came=repr(value),
            cure="Give a list of numbers or a NumPy array.",
        ) from None
    if not np.isfinite(array).all():
        raise NonFiniteError(
            f"reference sample, {name}",
            expected="finite numbers",
            came=str(array.tolist()),
            cure="Check the reference at this time for divisions by zero.",
        )
    return array
