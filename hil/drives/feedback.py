"""What the drives report, in arrays that are allocated once; joint side, SI units."""

from __future__ import annotations

import numpy as np


class Feedback:
    """Last report of every axis, in the order of the axes.

    Parameters
    ----------
    size : int
        Number of axes.

    Attributes
    ----------
    position, velocity, torque : numpy.ndarray
        Of the joint: rad, rad/s, N m (m, m/s, N on a linear axis); velocity is NaN where the
        drive reports none. Shape (size,).
    time : numpy.ndarray
        Instant at which the report was sampled as well as the host knows it, s of the loop's
        clock; NaN before the first one. Shape (size,).
    count : numpy.ndarray
        Valid reports so far, shape (size,), int64. Only a valid one changes it.
    enabled : numpy.ndarray
        Whether the drive says that it turns commands into torque, shape (size,), bool.
    fault : numpy.ndarray
        Fault code as the drive gives it, shape (size,), int64; 0: none.
    status : numpy.ndarray
        Raw status word, shape (size,), int64.
    invalid : numpy.ndarray
        Frames of the axis that were refused: wrong length, wrong identifier inside, numbers out
        of range. Shape (size,), int64.
    """

    __slots__ = (
        "count",
        "enabled",
        "fault",
        "invalid",
        "position",
        "status",
        "time",
        "torque",
        "velocity",
    )

    def __init__(self, size: int) -> None:
        self.position = np.full(size, np.nan)
        self.velocity = np.full(size, np.nan)
        self.torque = np.full(size, np.nan)
        self.time = np.full(size, np.nan)
        self.count = np.zeros(size, dtype=np.int64)
        self.enabled = np.zeros(size, dtype=np.bool_)
        self.fault = np.zeros(size, dtype=np.int64)
        self.status = np.zeros(size, dtype=np.int64)
        self.invalid = np.zeros(size, dtype=np.int64)
