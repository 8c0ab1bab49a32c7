"""Closed paths of several coordinates as Fourier series."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ConcurError
from concur.outputs.references._arguments import numbers, positive, refused
from concur.outputs.references._motions import path
from concur.outputs.references._paths import smooth
from concur.outputs.references._reference import Floats, Formula, Motion


class Loop(Formula):
    """Move along a closed smooth curve, once or several times.

    With the path parameter x, which grows from 0 by one for each cycle,

        r(x) = start + sum over k = 1 ... m of a_k (cos 2 pi k x - 1) + b_k sin 2 pi k x .

    The loop begins and ends at `start`, and stays there before and afterwards.

    Parameters
    ----------
    start : array_like, shape (n,)
        Place at which the loop begins, m or rad.
    cosine, sine : array_like, shape (m, n)
        Rows a_k and b_k, m or rad.
    duration : float, default 1.0
        Time of all cycles together (s), positive.
    cycles : int, default 1
        Number of cycles; a negative one runs the loop backwards.
    rest : bool, default True
        Whether velocity and acceleration vanish at both ends: x is then ``10 y^3 - 15 y^4 + 6 y^5``
        times the cycles, with y from 0 to 1. Otherwise x is proportional to time.

    Raises
    ------
    ShapeError, NonFiniteError
        If the coefficients do not fit the start, or a number is not finite.
    ConcurError
        If `duration` is not positive, or `cycles` is no whole number other than 0.

    Examples
    --------
    A circle of radius 0.5 m:

    >>> circle = Loop([0.5, 0.0], [[0.5, 0.0]], [[0.0, 0.5]], duration=4.0)
    >>> circle(2.0).pose.round(12).tolist()
    [-0.5, 0.0]
    >>> bool(abs(circle.areas[0, 1] - 3.14159 / 4) < 1e-5)
    True
    """

    def __init__(
        self,
        start: ArrayLike,
        cosine: ArrayLike,
        sine: ArrayLike,
        duration: float = 1.0,
        cycles: int = 1,
        rest: bool = True,
    ) -> None:
        self.start = np.atleast_1d(numbers(start, "loop, start", ndim=1))
        self.cosine = numbers(cosine, "loop, cosine", ndim=2)
        self.sine = numbers(sine, "loop, sine", ndim=2)
        self.duration = positive(duration, "loop, duration", "s")
        for name in ("cosine", "sine"):
            shape = getattr(self, name).shape
            if shape != (max(1, len(self.cosine)), self.start.size):
                expected = f"rows of {self.start.size}, as many of `cosine` as of `sine`"
                cure = "Write a row for each harmonic."
                raise refused(f"loop, {name}", expected, f"shape {shape}", cure)
        if not isinstance(cycles, int | np.integer) or not cycles:
            cure = "Write how often the loop runs; a negative number runs it backwards."
            expected = "a whole number other than 0"
            raise refused("loop, cycles", expected, repr(cycles), cure, ConcurError)
        self.cycles, self.rest = int(cycles), bool(rest)
        for array in (self.start, self.cosine, self.sine):
            array.setflags(write=False)
        ends = 0.0, self.duration
        super().__init__(path(self.start.size), lambda t, read: self._along(t), ends)

    @classmethod
    def through(
        cls, points: ArrayLike, duration: float = 1.0, cycles: int = 1, rest: bool = True
    ) -> Loop:
        """Lay a loop through points at equal steps of the path parameter.

        Parameters
        ----------
        points : array_like, shape (k, n)
            Points of the loop, at least three, m or rad. The loop returns from the last to the
            first, which is not repeated.
        duration : float
            Time of all cycles together (s), positive.
        cycles : int
            Number of cycles; a negative one runs the loop backwards.
        rest : bool
            Whether velocity and acceleration vanish at both ends.

        Returns
        -------
        Loop
            The Fourier series of lowest order through the points.

        Raises
        ------
        ShapeError, NonFiniteError
            If there are fewer than three points, the last repeats the first, or a number is not
            finite.
        """
        places = numbers(points, "loop, points", ndim=2)
        if len(places) < 3 or (places[0] == places[-1]).all():
            expected = "at least three points, the last other than the first"
            raise refused("loop, points", expected, places.tolist(), "Omit the last point.")
        series = np.fft.rfft(places, axis=0)[1:] * 2.0 / len(places)
        if len(places) % 2 == 0:  # of the highest harmonic only the cosine passes the points
            series[-1] = series[-1].real / 2.0
        return cls(places[0], series.real, -series.imag, duration, cycles, rest)

    @property
    def center(self) -> Floats:
        """Mean place over the path parameter, shape (n,)."""
        return np.asarray(self.start - self.cosine.sum(axis=0))

    @property
    def areas(self) -> Floats:
        """Oriented areas of all cycles, shape (n, n): (1/2) of the integral of r_i dr_j - r_j dr_i.

        Antisymmetric; entry (i, j) is the area in the plane of coordinates i and j, counted
        counter-clockwise from i to j.
        """
        order = np.arange(1, len(self.cosine) + 1)[:, None]
        half = np.pi * self.cycles * self.cosine.T @ (order * self.sine)
        return np.asarray(half - half.T)

    def reversed(self) -> Loop:
        """The same loop in the other direction, of the same duration.

        Returns
        -------
        Loop
            Runs through the same places backwards.
        """
        return Loop(self.start, self.cosine, self.sine, self.duration, -self.cycles, self.rest)

    def places(self, parameter: ArrayLike) -> Floats:
        """Places at values of the path parameter.

        Parameters
        ----------
        parameter : array_like, shape (k,)
            Path parameter x; one cycle is from 0 to 1.

        Returns
        -------
        numpy.ndarray
            Shape (k, n).
        """
        turn = self._turns(parameter)
        return np.asarray(
            self.start + (np.cos(turn) - 1.0) @ self.cosine + np.sin(turn) @ self.sine
        )

    def slopes(self, parameter: ArrayLike) -> Floats:
        """Derivatives dr/dx of the place by the path parameter.

        Parameters
        ----------
        parameter : array_like, shape (k,)
            Path parameter x.

        Returns
        -------
        numpy.ndarray
            Shape (k, n).
        """
        turn, order = self._turns(parameter), self._orders()
        return np.asarray(np.cos(turn) @ (order * self.sine) - np.sin(turn) @ (order * self.cosine))

    def _orders(self) -> Floats:
        return np.asarray(
            2.0 * np.pi * np.arange(1.0, len(self.cosine) + 1.0)[:, None], dtype=float
        )

    def _turns(self, parameter: ArrayLike) -> Floats:
        values = numbers(parameter, "loop, parameter", ndim=1)
        return np.asarray(values[:, None] * self._orders().T)

    def _along(self, t: Array) -> Motion:
        x = ca.fmin(ca.fmax(t / self.duration, 0.0), 1.0)
        inside = ca.logic_and(t >= 0.0, t <= self.duration)
        rate, change = ca.if_else(inside, 1.0, 0.0), ca.SX(0.0)
        if self.rest:
            x, rate, change = smooth(t / self.duration)
        rate = rate * self.cycles / self.duration
        change = change * self.cycles / self.duration**2
        orders = ca.SX(self._orders())
        cosine, sine = ca.SX(self.cosine), ca.SX(self.sine)
        c, s = ca.cos(self.cycles * x * orders), ca.sin(self.cycles * x * orders)
        slope = sine.T @ (orders * c) - cosine.T @ (orders * s)
        curved = -(cosine.T @ (orders**2 * c) + sine.T @ (orders**2 * s))
        pose = ca.SX(self.start) + cosine.T @ (c - 1.0) + sine.T @ s
        return pose, slope * rate, curved * rate**2 + slope * change
