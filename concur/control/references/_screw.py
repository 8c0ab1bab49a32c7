"""Poses that move with a constant twist."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import shape_error
from concur.control._sample import pose_numbers
from concur.control.references._inputs import homogeneous, numbers
from concur.control.references._reference import Floats, Part, Reference, Samples
from concur.groups import se3
from concur.mechanism import unknown_name

GROUPS = ("R3xSO3", "SE3")


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
    if group not in GROUPS:
        raise unknown_name("reference screw, group", "group", group, GROUPS)
    pose = homogeneous(numbers(start_pose, "screw, start_pose"), "screw, start_pose")
    rate = numbers(twist, "screw, twist")
    if rate.shape != (6,):
        raise shape_error("reference screw, twist", (6,), rate.shape)
    return _Screw(pose, rate, group)


class _Screw(Reference):
    def __init__(self, start: Floats, twist: Floats, group: str) -> None:
        self.pose_size, self.size = 7, 6
        self._start, self._twist = start, twist
        self._group = group

    @property
    def groups(self) -> tuple[Part, ...]:
        return ((7, 6, self._group),)

    def _evaluate(self, times: Floats) -> Samples:
        matrices = np.array([self._start @ se3.exp(self._twist * t) for t in times])
        matrices = matrices.reshape(-1, 4, 4)
        poses = np.array([pose_numbers(m) for m in matrices]).reshape(-1, 7)
        twists = np.tile(self._twist, (times.size, 1))
        accelerations = np.zeros((times.size, 6))
        if self._group == "R3xSO3":
            linear, angular = self._twist[:3], self._twist[3:]
            rotations = matrices[:, :3, :3]
            twists[:, :3] = rotations @ linear
            accelerations[:, :3] = rotations @ np.cross(angular, linear)
        return poses, twists, accelerations
