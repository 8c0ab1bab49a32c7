"""Motions of the error dynamics from random starts in the certified region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import cholesky, solve_triangular

# Tolerance of the integrator, whose error must not visibly lift a norm above its bound.
_TOLERANCE = 1e-9
# Fraction of its start to which the bound decays in the figure.
_FALL = 1e-4


@dataclass(frozen=True, eq=False)
class ErrorMotions:
    """Norms of a certificate along motions; from `error_motions`.

    Parameters
    ----------
    t : numpy.ndarray
        Times, shape (k,), s.
    norms : numpy.ndarray
        Norms from random starts, shape (m, k).
    own : numpy.ndarray or None
        Norm from the given start, shape (k,); None if it is not in the certified region.
    """

    t: np.ndarray
    norms: np.ndarray
    own: np.ndarray | None

    def share(self, rate: float) -> float:
        """Largest ratio of a norm to the bound after the start.

        Parameters
        ----------
        rate : float
            Rate of the bound, 1/s.

        Returns
        -------
        float
            At most 1 if the bound holds.
        """
        bound = np.exp(-rate * self.t[1:])
        return float((self.norms[:, 1:] / (self.norms[:, :1] * bound)).max())


def error_motions(
    certificate: Any,
    own: tuple[np.ndarray, np.ndarray] | None = None,
    count: int = 40,
    points: int = 161,
) -> ErrorMotions:
    """Simulate the error dynamics from random starts in the certified region.

    Parameters
    ----------
    certificate : Certificate
        A certificate whose status is PROVED.
    own : tuple of numpy.ndarray, optional
        A further start: pose and velocity error, shapes (size,).
    count : int
        Number of random starts.
    points : int
        Number of times.

    Returns
    -------
    ErrorMotions
        Norms over time.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import error_motions
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> certificate = cc.certify(cc.Servo(cc.reduce(robot), [base], 4, 4), method="thesis")
    >>> error_motions(certificate, count=3).share(certificate.rate) < 1.0
    True
    """
    generator = np.random.default_rng(0)
    times = np.linspace(0.0, -np.log(_FALL) / certificate.rate, points)
    starts = [_start(certificate, generator) for _ in range(count)]
    norms = np.array([_norms(certificate, x, ve, times) for x, ve in starts])
    if own is None or not certificate.contains(*own) or certificate.norm(*own) == 0.0:
        return ErrorMotions(times, norms, None)
    return ErrorMotions(times, norms, _norms(certificate, *own, times))


def _start(certificate: Any, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw errors with V_L below its bound, most of them close to it."""
    x, ve = np.zeros(certificate.dynamics.size), np.zeros(certificate.dynamics.size)
    for part in certificate.parts:
        channel, n = part.channel, part.channel.size
        direction = generator.normal(size=2 * n)
        # Without a bound the dynamics are linear, so any size is suitable.
        level = part.level if np.isfinite(part.level) else 1.0
        reach = 0.999 * np.sqrt(2.0 * level) * generator.uniform(0.3, 1.0)
        direction *= reach / np.linalg.norm(direction)
        x[channel.index] = solve_triangular(cholesky(channel.stiffness), direction[:n])
        ve[channel.index] = solve_triangular(cholesky(channel.inertia), direction[n:])
    return x, ve


def _norms(certificate: Any, x: np.ndarray, ve: np.ndarray, times: np.ndarray) -> np.ndarray:
    dynamics, n = certificate.dynamics, certificate.dynamics.size

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        return np.concatenate(dynamics.rate(z[:n], z[n:]))

    # `ErrorDynamics.solve` returns poses only, and rates of channels may differ widely.
    start = np.concatenate([x, ve])
    moved = solve_ivp(
        slope,
        (times[0], times[-1]),
        start,
        method="LSODA",
        t_eval=times,
        rtol=_TOLERANCE,
        atol=_TOLERANCE * _FALL * float(np.linalg.norm(start)),
    )
    return np.array([certificate.norm(z[:n], z[n:]) for z in moved.y.T])
