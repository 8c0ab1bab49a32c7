"""The closed loop's error dynamics: autonomous, and the same for every robot.

With the linearizing law, x = log(r^-1 gamma) and ve = r^-1 rdot - Ad gamma^-1 gammadot obey
``xdot = -B(x) ve``, ``vedot = I^-1 (B(x)^T KP x - KD ve)`` whatever the robot (section 5.4). With
integral action I^-1 KI z comes on top of vedot, with ``zdot = x``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
import scipy
from scipy.linalg import expm

from concur.codegen import EvaluatedMethods, Scalar, Vector, constant, evaluated
from concur.outputs.groups import OutputGroup


@dataclass(frozen=True, eq=False)
class ErrorDynamics(EvaluatedMethods):
    """Ordinary differential equation of the tracking error.

    Parameters
    ----------
    group : OutputGroup
        Group of all outputs together.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I on the algebra, shape (dim, dim).
    integral : numpy.ndarray, optional
        KI on the algebra, shape (dim, dim); None without integral action.
    """

    group: OutputGroup
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    integral: np.ndarray | None = None

    @cached_property
    def size(self) -> int:
        """Dimension of the outputs."""
        return self.group.dim

    @property
    def linear(self) -> bool:
        """Whether the equation is linear: all outputs on abelian groups."""
        return self.group.abelian

    @property
    def matrix(self) -> np.ndarray:
        """Rates of (x, ve) over (x, ve) at small errors, shape (2 size, 2 size).

        With integral action of (x, ve, z), shape (3 size, 3 size).
        """
        scale, one = np.linalg.inv(self.inertia), np.eye(self.size)
        none, pulled = 0.0 * one, [scale @ self.stiffness, -scale @ self.damping]
        if self.integral is None:
            return np.block([[none, -one], pulled])
        return np.block([[none, -one, none], [*pulled, scale @ self.integral], [one, none, none]])

    @evaluated("(size),(size)->(size)")
    def feedback(self, x: Vector, ve: Vector) -> Vector:
        """Proportional and derivative part of the command, (5.4.32).

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            I^-1 (B(x)^T KP x - KD ve), shape (size,).

        References
        ----------
        Thesis, (5.2.14), (5.2.15), (5.4.32).
        """
        scale = np.linalg.inv(self.inertia)
        force = self.group.error_map(x).T @ (constant(self.stiffness) @ x)
        return constant(scale) @ force - constant(scale @ self.damping) @ ve

    @evaluated("(size),(size)->(size),(size)")
    def rate(self, x: Vector, ve: Vector) -> tuple[Vector, Vector]:
        """Rates of the errors, of integral action with z = 0.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        xdot, vedot : numpy.ndarray or casadi.SX
            Shape (size,).

        References
        ----------
        Thesis, (5.4.36), (5.4.37).
        """
        return -self.group.error_map(x) @ ve, self.feedback(x, ve)

    @evaluated("(size),(size)->()")
    def lyapunov(self, x: Vector, ve: Vector) -> Scalar:
        """Lyapunov function (x KP x + ve I ve) / 2, (5.4.35).

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        float or casadi.SX
            Value, in the unit of KP x^2.

        References
        ----------
        Thesis, (5.2.13), (5.4.35).
        """
        return (
            ca.bilin(constant(self.stiffness), x, x) + ca.bilin(constant(self.inertia), ve, ve)
        ) / 2

    def solve(self, x: np.ndarray, ve: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Error over time from an initial error.

        Parameters
        ----------
        x, ve : numpy.ndarray
            Initial errors, shape (size,).
        times : numpy.ndarray
            Ascending times from the start, shape (k,), s.

        Returns
        -------
        numpy.ndarray
            x at the times, shape (k, size): by the matrix exponential when the equation is
            linear, else to a relative tolerance of 1e-11. An integral starts at zero.
        """
        n = self.size
        start = np.concatenate([x, ve, np.zeros(0 if self.integral is None else n)])
        if self.linear:
            return _linear_flow(self.matrix, start, np.asarray(times))[:, :n]

        if times[-1] == times[0]:  # SciPy has no answer for no time
            return np.tile(x, (len(times), 1))

        def slope(_: float, z: np.ndarray) -> np.ndarray:
            xdot, vedot = self.rate(z[:n], z[n : 2 * n])
            if self.integral is None:
                return np.concatenate([xdot, vedot])
            pushed = np.linalg.solve(self.inertia, self.integral @ z[2 * n :])
            return np.concatenate([xdot, vedot + pushed, z[:n]])

        span, tight = (times[0], times[-1]), {"rtol": 1e-11, "atol": 1e-13}
        solution = scipy.integrate.solve_ivp(
            slope, span, start, method="DOP853", t_eval=times, **tight
        )
        return np.asarray(solution.y[:n].T)


def _linear_flow(matrix: np.ndarray, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Exact flow at given times, by exponentials that double what is known of equal steps."""
    states = np.empty((times.size, start.size))
    states[0] = start
    steps = np.round(np.diff(times), 12)
    ends = np.append(np.flatnonzero(np.diff(steps)) + 1, steps.size)
    for first, last in zip(np.append(0, ends[:-1]), ends, strict=True):
        known = 1
        while known <= last - first:
            more = min(known, last - first + 1 - known)
            ahead = expm(matrix * (known * steps[first]))
            states[first + known : first + known + more] = states[first : first + more] @ ahead.T
            known += more
    return states
