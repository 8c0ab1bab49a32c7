"""Motions of the error dynamics from random starts in the certified region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import cholesky, solve_triangular

from concur.certify import Certificate

# Tolerance of the integrator, whose error must not visibly lift a norm above its bound.
_TOLERANCE = 1e-9
# Fraction of its start to which the bound decays in the figure.
_FALL = 1e-4


@dataclass(frozen=True, eq=False)
class Decay:
    """Norms of a certificate along motions."""

    t: np.ndarray  # (k,), s
    norms: np.ndarray  # from random starts, (m, k)
    own: np.ndarray | None  # from the task's start, (k,); None if it is not covered

    def share(self, rate: float) -> float:
        """Largest ratio of a norm to the bound after the start; at most 1 if the bound holds."""
        bound = np.exp(-rate * self.t[1:])
        return float((self.norms[:, 1:] / (self.norms[:, :1] * bound)).max())


def simulate_decay(
    certificate: Certificate,
    own: tuple[np.ndarray, np.ndarray] | None,
    count: int = 40,
    points: int = 161,
) -> Decay:
    """Simulate the error dynamics from random starts in the certified region, and from `own`."""
    generator = np.random.default_rng(0)
    times = np.linspace(0.0, -np.log(_FALL) / certificate.rate, points)
    starts = [_start(certificate, generator) for _ in range(count)]
    norms = np.array([_norms(certificate, x, ve, times) for x, ve in starts])
    if own is None or not certificate.contains(*own) or certificate.norm(*own) == 0.0:
        return Decay(times, norms, None)
    return Decay(times, norms, _norms(certificate, *own, times))


def _start(
    certificate: Certificate, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
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


def _norms(
    certificate: Certificate, x: np.ndarray, ve: np.ndarray, times: np.ndarray
) -> np.ndarray:
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
