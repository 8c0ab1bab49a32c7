"""Reports of the drives, in arrays that are allocated once; joint side, SI units."""

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
        Instant of the report, estimated by the host, s of the loop's clock; NaN before the first
        report. Shape (size,).
    count : numpy.ndarray
        Number of valid reports so far, shape (size,), int64.
    enabled : numpy.ndarray
        Whether the drive reports that it applies commanded torque, shape (size,), bool.
    fault : numpy.ndarray
        Fault code of the drive, or a `FaultCode`, shape (size,), int64; 0: no fault.
    status : numpy.ndarray
        Raw status word, shape (size,), int64.
    invalid : numpy.ndarray
        Number of rejected frames of the axis: wrong length, wrong identifier inside, numbers out
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
