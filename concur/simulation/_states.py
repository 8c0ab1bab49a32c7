"""States of a run while it is computed."""

from __future__ import annotations

import numpy as np

from concur.control import TrackingLaw
from concur.simulation._start import FASTEST

NONE = np.zeros(0)


class States:
    """States at the steps, and outputs of the law; NaN where nothing was computed.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    q, v : numpy.ndarray
        State at the start, shapes (nq,) and (nv,).
    steps : int
        Steps in the run.
    loads : numpy.ndarray
        Loads of wheels that slip at the start, shape (nl,).

    Attributes
    ----------
    q, v : numpy.ndarray
        Shapes (steps + 1, nq) and (steps + 1, nv).
    work : numpy.ndarray
        Work of the drives, J, behind it the law's state z, and loads of wheels that slip, N, shape
        (steps + 1, 1 + nz + nl).
    u, missed, scale : numpy.ndarray
        What the law gave, shapes (steps + 1, nu), (steps + 1, size) and (steps + 1,).
    margin, orientation : numpy.ndarray
        Of the decoupling matrix, shape (steps + 1,).
    low, high : numpy.ndarray
        Smallest and largest (q, v, u) of the stages of the step that leads to a state, shape
        (steps + 1, nq + nv + nu).
    """

    def __init__(
        self,
        servo: TrackingLaw,
        q: np.ndarray,
        v: np.ndarray,
        steps: int,
        loads: np.ndarray = NONE,
    ) -> None:
        rows = steps + 1
        self.q, self.v = np.full((rows, q.size), np.nan), np.full((rows, v.size), np.nan)
        self.work = np.zeros((rows, 1 + servo.nz + loads.size))
        self.work[0, 1 + servo.nz :] = loads
        self.u, self.missed = np.full((rows, servo.nu), np.nan), np.full((rows, servo.size), np.nan)
        self.scale, self.margin, self.orientation = np.full((3, rows), np.nan)
        self.low, self.high = np.full((2, rows, q.size + v.size + servo.nu), np.nan)
        self.q[0], self.v[0] = q, v

    def finite(self, done: int, first: int = 0) -> int:
        """Count the leading valid states among done + 1; those before `first` are valid."""
        rows = slice(first, done + 1)
        good = np.isfinite(self.q[rows]).all(axis=1)
        good &= (np.abs(self.v[rows]) < FASTEST).all(axis=1)
        return first + int(np.argmin(good)) if not good.all() else done + 1
