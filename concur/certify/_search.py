"""Search for a quadratic Lyapunov function with the fastest rate, by linear matrix inequalities.

The result is not a proof: P, the rate and the multipliers are floats that a convex solver found on
sampled errors; `prove` decides. P has the symmetry of the gains where this lets `_reduction` use
fewer parameters; its average over the symmetry would be as good.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from concur.certify._channels import Channel
from concur.certify._checks import check, check_fraction
from concur.certify._inequality import isotropic_multipliers
from concur.certify._problem import Candidate, load_cvxpy, metric, sampled_problem, solved

_WIDE = 1.7
"""Angle above which several parameters need a larger reserve for the proof, rad."""

_FREQUENCIES = (0.5, 20.0)
"""Natural frequencies that need no scaling, rad/s."""


def search(
    channel: Channel,
    angle: float,
    distance: float | None = None,
    backoff: float | None = None,
    rate_fraction: float = 1.0,
) -> Candidate | None:
    """Search for a Lyapunov function that decays fast on a domain.

    Among those that decay at the rate, the search selects the one whose P has the least condition,
    and thereby a small transient bound.

    Parameters
    ----------
    channel : Channel
        Outputs of one stable channel.
    angle : float
        Bound of every rotation error on which B depends, above 0 and at most pi, rad.
    distance : float, optional
        Bound of every position error on which B depends, m; needed when there is one.
    backoff : float, optional
        Fraction of the rate kept as reserve for the proof, from 0 to below 1. Default: 0.005
        for linear and isotropic rotational channels, 0.015 for others with one parameter, else
        0.1, 0.2 for large angles, and 0.3 for poses.
    rate_fraction : float, default 1
        Fraction of the rate that is requested, above 0 and at most 1: a lower rate allows a
        smaller transient bound.

    Returns
    -------
    Candidate or None
        None when no rate above zero was found, no reduction of the domain is known, or the
        inequalities would be too large: poses with gains that are not diagonal.

    Raises
    ------
    ConcurError
        If the solver is not installed.
    OutputError
        If the domain, the back-off or the share is out of range.
    """
    cvxpy = load_cvxpy()
    where = f"search for {channel.name}"
    sound = backoff is None or 0.0 <= backoff < 1.0
    check(sound, f"{where}, `backoff`", "a fraction from 0 to below 1", backoff, "Omit it.")
    check_fraction(where, "rate_fraction", rate_fraction)
    if not channel.true_rate > 0.0:
        return None
    own, unit = at_moderate_frequency(channel)
    if channel.kind == "linear" or channel.scalar:
        backoff = 0.005 if backoff is None else backoff
        return _of_the_linearisation(cvxpy, own, backoff, rate_fraction).in_unit(unit)
    problem = sampled_problem(own, angle, distance)
    if problem is None:
        return None
    if backoff is None and channel.kind == "SE3":
        backoff = 0.3
    elif backoff is None:
        backoff = 0.015 if not problem.several else 0.1 if angle < _WIDE else 0.2
    found = problem.solve(backoff, rate_fraction)
    return None if found is None else found.in_unit(unit)


def at_moderate_frequency(channel: Channel) -> tuple[Channel, float]:
    """Scale time by a power of two, 1/s, to a frequency that suits the solver; exact.

    Gains of ordinary size remain unchanged, so that ve keeps its weight in |z|.
    """
    pull = np.diag(np.linalg.solve(channel.inertia, channel.stiffness))
    if not (pull > 0.0).all() or not np.isfinite(pull).all():
        return channel, 1.0
    frequency = float(np.exp(np.log(pull).mean() / 2))
    unit = float(2.0 ** round(np.log2(frequency / np.clip(frequency, *_FREQUENCIES))))
    if unit == 1.0:
        return channel, unit
    stiffness, damping = channel.stiffness / unit / unit, channel.damping / unit
    return replace(channel, stiffness=stiffness, damping=damping), unit


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Error dynamics at small errors: zdot = F z; isotropic rotations are copies of it.

    Its rates also hold for rotations with isotropic gains at every angle: with the multipliers for
    isotropic channels A depends on x only through c (1 - sym(B)) >= 0, c = -P12 >= 0.

    Parameters
    ----------
    F : numpy.ndarray
        Shape (2 n, 2 n).
    scales : numpy.ndarray
        Relative magnitudes of the components of z, shape (2 n,).
    metric : numpy.ndarray
        Weights of squares of x, shape (n,).
    copies : int
        Number of copies in the channel.
    """

    F: np.ndarray
    scales: np.ndarray
    metric: np.ndarray
    copies: int

    @classmethod
    def of(cls, channel: Channel) -> Linearisation:
        """Linearise a channel of kind "linear" or, by one component, a scalar one."""
        n, copies = channel.size, 1
        gains = [channel.stiffness, channel.damping, channel.inertia]
        if channel.scalar:
            n, copies = 1, channel.size
            gains = [gain[:1, :1] for gain in gains]
        pull = np.linalg.solve(gains[2], np.hstack([gains[0], -gains[1]]))
        F = np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), pull])
        quick = np.sqrt(np.abs(np.diag(pull)))
        return cls(F, np.concatenate([np.ones(n), quick]), metric(channel)[:n], copies)

    def whole(self, P: np.ndarray) -> np.ndarray:
        """Symmetric matrix of all copies from that of one."""
        return np.kron((P + P.T) / 2, np.eye(self.copies))


def _of_the_linearisation(
    cp: ModuleType, channel: Channel, backoff: float, share: float
) -> Candidate:
    """P that proves nearly the linearized rate: B = 1, or isotropic gains on SO(3)."""
    linear = Linearisation.of(channel)
    # Half of the back-off is reserve for the proof.
    room = backoff / 2 * channel.true_rate
    alpha = (1.0 - backoff) * share * channel.true_rate
    shifted = linear.F + (alpha + room) * np.eye(len(linear.F))
    P = _least_overshoot(cp, shifted, room, linear.scales, linear.metric)
    if P is None:
        # Near critical damping the solver may fail; use this less optimal P.
        n = len(linear.metric)
        weight = np.diag(np.concatenate([linear.scales[n:] ** 2, np.ones(n)]))
        with warnings.catch_warnings():
            # At the edge of stability it is inaccurate; `falls` checks it.
            warnings.simplefilter("ignore")
            P = solve_continuous_lyapunov(shifted.T, -weight)
        P = P / np.abs(P).max()
    P = linear.whole(P)
    return Candidate(P, alpha, isotropic_multipliers(channel, P), channel.true_rate, 1)


def _least_overshoot(
    cp: ModuleType, F: np.ndarray, room: float, scales: np.ndarray, metric: np.ndarray
) -> np.ndarray | None:
    """P of least condition in a metric that decays with F, with a reserve `room`."""
    P, condition = cp.Variable(F.shape, PSD=True), cp.Variable()
    inner = F * np.outer(1.0 / scales, scales)
    unit = np.diag(scales**2 * np.tile(metric, 2))
    problem = cp.Problem(
        cp.Minimize(condition),
        [P >> unit, condition * unit >> P, P @ inner + inner.T @ P << 0],
    )
    if not solved(problem, cp):
        return None
    found = P.value / np.outer(scales, scales)
    found = (found + found.T) / 2
    return found if falls(found, F - room * np.eye(len(F))) else None


def falls(P: np.ndarray, F: np.ndarray) -> bool:
    """Whether P > 0 and P F + F^T P < 0, in floats and independent of units."""
    try:
        root = np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return False
    turned = np.linalg.solve(root, (P @ F + F.T @ P) @ np.linalg.inv(root).T)
    return bool(np.linalg.eigvalsh((turned + turned.T) / 2)[-1] < 0.0)
