"""Poses that move along a screw."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import shape_error
from concur.errors import ConcurError
from concur.groups import se3
from concur.outputs._sample import pose_numbers
from concur.outputs.references._along import Along, Straight
from concur.outputs.references._inputs import homogeneous, numbers
from concur.outputs.references._poses import LIE, Read, check_group, group_of
from concur.outputs.references._reference import Reference, check_reference
from concur.robot import unknown_name

FRAMES = ("body", "spatial")


def screw(
    start_pose: ArrayLike,
    twist: ArrayLike,
    group: str = "R3xSO3",
    frame: str = "body",
    progress: Reference | None = None,
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
    check_group(group, "screw", tuple(LIE))
    if not isinstance(frame, str) or frame not in FRAMES:
        raise unknown_name("reference screw, frame", "frame", frame, FRAMES)
    pose = homogeneous(numbers(start_pose, "screw, start_pose"), "screw, start_pose")
    rate = numbers(twist, "screw, twist")
    if rate.shape != (6,):
        raise shape_error("reference screw, twist", (6,), rate.shape)
    if progress is not None:
        check_reference(progress, "screw, progress")
        if group_of(progress, "screw, progress") != "R1":
            raise ConcurError(
                "reference screw, progress",
                expected="a reference in R",
                came=f"one with {progress.pose_size} coordinates",
                cure="For example rest_to_rest([0.0], [1.0], duration=5.0).",
            )
    if frame == "spatial":
        rate = np.asarray(se3.adjoint(se3.inverse(pose))) @ rate
    return Read(Along(pose_numbers(pose), Straight(rate, progress), "SE3"), group)
