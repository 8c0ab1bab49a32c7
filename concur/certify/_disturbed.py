"""Simulated motions of the error dynamics under disturbances, for comparison with a tube.

They prove nothing, unlike the tube, but show how much of it is used. Half of the disturbances act
along the growth of |z|_P with the largest size within the bound; the others have a random
direction and switch it at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import as_floats, shape_error
from concur.errors import OutputError

_STEPS = 600
"""Steps of the integrator, at which disturbances may change."""

_SPAN = 8.0
"""Duration, as a multiple of the time constant of the tube's bound."""

_SWITCHES = 6
"""Mean number of switches of a disturbance with random direction."""


@dataclass(frozen=True, eq=False)
class DisturbedMotions:
    """Errors of a channel along disturbed motions.

    Parameters
    ----------
    t : numpy.ndarray
        Times, shape (k,), s.
    norms : numpy.ndarray
        |z|_P, shape (m, k).
    angles : numpy.ndarray or None
        Largest rotation error, shape (m, k), rad; None without rotations.
    distances : numpy.ndarray or None
        Largest position error of a factor, shape (m, k), m; None without positions.
    """

    t: np.ndarray
    norms: np.ndarray
    angles: np.ndarray | None
    distances: np.ndarray | None


def disturbed_motions(
    tube: Any,
    disturbance: float | ArrayLike,
    duration: float | None = None,
    count: int = 16,
    seed: int = 0,
) -> DisturbedMotions:
    """Simulate the error dynamics of a channel under disturbances within a bound.

    Parameters
    ----------
    tube : concur.certify.Tube
        Tube of the channel, of finite radius; motions start with |z|_P equal to its `start`.
    disturbance : float or array_like
        The bound of the tube: a number for the length, with metres divided by the
        channel's length, or one for each component, shape (n,), m/s^2 and rad/s^2.
    duration : float, optional
        Duration, s. Default: eight time constants of the tube's bound.
    count : int, default 16
        Number of motions.
    seed : int, default 0
        Seed of the random directions and switches.

    Returns
    -------
    DisturbedMotions
        The errors.

    Raises
    ------
    OutputError
        If the tube has no finite radius, or the duration is not above zero.
    ShapeError
        If the disturbance has another size than the channel.
    """
    channel = tube.channel
    where = f"motions of {channel.name}"
    n = channel.size
    bound = as_floats(disturbance, f"{where}, `disturbance`")
    if bound.shape not in ((), (n,)):
        raise shape_error(f"{where}, `disturbance`", (n,), bound.shape)
    span = _SPAN / tube.decay.rate if duration is None else float(duration)
    if not (np.isfinite(tube.radius) and 0.0 < span < np.inf):
        raise OutputError(
            where,
            expected="a tube of finite radius and a duration above zero",
            came=f"radius {tube.radius:.4g}, duration {span:.4g} s",
            cure="Reduce the disturbance, or omit the duration.",
        )
    rng = np.random.default_rng(seed)
    P, scale = tube.decay.P, channel.scales
    z = rng.normal(size=(count, 2 * n))
    z *= tube.start / np.sqrt(np.einsum("ki,ij,kj->k", z, P, z))[:, None]
    nudge = rng.normal(size=(count, n))
    steady = rng.normal(size=(count, n))
    adverse = np.arange(count) % 2 == 0
    step = span / _STEPS

    x, ve = ca.SX.sym("x", n), ca.SX.sym("ve", n)
    rates = ca.Function("rates", [x, ve], list(channel.dynamics.rate(x, ve))).map(count)

    def strongest(direction: np.ndarray) -> np.ndarray:
        # The disturbance within the bound with the largest component along a direction.
        if bound.ndim:
            return np.asarray(np.sign(direction) * bound)
        turned = direction / scale
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        return np.asarray(bound * turned / scale / length)

    def slope(z: np.ndarray, d: np.ndarray) -> np.ndarray:
        x, ve = (np.asarray(part).T for part in rates(z[:, :n].T, z[:, n:].T))
        return np.hstack([x, ve + d])

    states = [z]
    for _ in range(_STEPS):
        switch = rng.uniform(size=count) < _SWITCHES / _STEPS
        steady[switch] *= -1.0
        growth = z @ P[:, n:]
        # At rest the growth is zero; use any direction.
        still = np.abs(growth).max(axis=1) == 0.0
        growth[still] = nudge[still]
        d = strongest(np.where(adverse[:, None], growth, steady))
        first = slope(z, d)
        second = slope(z + step / 2 * first, d)
        third = slope(z + step / 2 * second, d)
        fourth = slope(z + step * third, d)
        z = z + step / 6 * (first + 2 * second + 2 * third + fourth)
        states.append(z)
    path = np.array(states).swapaxes(0, 1)
    lengths: dict[str, np.ndarray] = {}
    for _, places, unit in channel.error_parts:
        own = np.linalg.norm(path[:, :, places], axis=2)
        lengths[unit] = np.maximum(own, lengths.get(unit, 0.0))
    return DisturbedMotions(
        np.linspace(0.0, span, _STEPS + 1),
        np.sqrt(np.einsum("kti,ij,ktj->kt", path, P, path)),
        lengths.get("rad"),
        lengths.get("m"),
    )
