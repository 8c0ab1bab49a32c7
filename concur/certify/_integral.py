"""Proof of a decay rate of a law with integral action.

zeta = (z, x, ve) obeys zdot = x, xdot = -B(x) ve, vedot = I^-1 (B(x)^T KP x - KD ve + KI z).

On abelian groups B = 1 and zeta' = A zeta: a rational P > 0 with A^T P + P A + 2 rate P <= 0 proves
the rate.

On SO(3) with gains that are multiples of the identity P = p (x) 1. B(x) is normal: it is 1 along x
and acts as b = y cot y +- i y, y = |x| / 2, on the plane across, where x has no component. So
V = zeta^T P zeta decays at the rate if the inequality of B = 1 holds for p, and on (z, ve) across

    [[a, q], [conj(q), c]] <= 0,    a = 2 (ki p_zv + rate p_zz),
    q = ki p_vv - kd p_zv + 2 rate p_zv - b p_zx,    c = 2 (-Re(b) p_xv - kd p_vv + rate p_vv),

with unit inertia. This is affine in b and symmetric in Im(b): it holds on the curve of b if it
holds at points whose convex hull with their conjugates contains the curve. As y cot y falls, the
points (u(y_k), y_k+1) and the last (u(y_N), y_N) do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from scipy.linalg import eigvals, solve_continuous_lyapunov
from scipy.sparse.csgraph import connected_components

from concur.certify._bounds import (
    cosine,
    definite,
    float_below,
    rational,
    semidefinite,
    sine,
    solve,
)
from concur.certify._certify import domain_of, dynamics_of
from concur.certify._channels import Channel, split
from concur.certify._checks import check
from concur.certify._integral_certificate import IntegralCertificate, IntegralPart
from concur.certify._problem import load_cvxpy, solved
from concur.certify._recheck_conditions import LIMITS, conditions_of
from concur.certify._status import Status
from concur.certify._structure import check_structure
from concur.control import ErrorDynamics, Servo

_LIMITED = (
    "The law has torque limits, and no bound of its torques with an integral is known: certify "
    "`error_dynamics` for the claim while none is reached."
)

_RATES = (0.995, 0.97, 0.9, 0.75, 0.5)
"""Fractions of the linearized rate, tried in order until one is proved."""

_RESERVE = 0.97
"""Fraction of the fastest rate of rotations at which P is sought; its square is proved."""

_STEPS = 12
"""Halvings in the search for the fastest rate of rotations."""

_SAMPLES, _POINTS = 16, 64
"""Points around the curve of b, in the search and in the proof."""


def certify_integral(law: Servo | ErrorDynamics, angle: float | None = None) -> IntegralCertificate:
    """Certify a rate at which errors and integral of a law with integral action decay.

    Rates are proved for outputs on R^n and SO2 with any gains, and for rotations with gains that
    are multiples of the identity, SO3 or in R3xSO3. Others are UNDECIDED, with the reason.

    Parameters
    ----------
    law : Servo or ErrorDynamics
        The law, or its error dynamics, with integral action.
    angle : float
        Largest rotation error covered, above 0 and at most pi, rad. Required if an output
        rotates.

    Returns
    -------
    IntegralCertificate
        REFUTED when a gain is not symmetric positive definite, or the linearised loop is not
        stable, as with KI >= KP KD; UNDECIDED with torque limits; else the proved rate and region.

    Raises
    ------
    OutputError
        If `law` is neither a servo nor error dynamics or has no integral, the angle is out of
        range, or none is given and an output rotates.
    ConcurError
        If an output is a rotation and the extra `certify` is not installed.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import certify_integral
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4, integral=1)
    >>> found = certify_integral(servo)
    >>> found.status.name, found.contains([1, 0], [0, 0], [0, 0])
    ('PROVED', True)
    """
    dynamics = dynamics_of(law)
    angle, _ = domain_of(dynamics, angle, None)
    check(
        dynamics.integral is not None,
        "certificate, `law`",
        "a law with integral action",
        "a law without",
        "Use certify.",
    )
    structure = check_structure(dynamics)
    if structure.status is Status.REFUTED:
        return IntegralCertificate(
            dynamics, Status.REFUTED, angle, (), structure, conditions_of(law)
        )
    parts = tuple(
        _part(channel, places, angle) for channel in split(dynamics) for places in _blocks(channel)
    )
    conditions = conditions_of(law)
    if LIMITS in conditions:
        parts = tuple(
            replace(part, status=Status.UNDECIDED, reason=_LIMITED, rate=0.0, P=None)
            for part in parts
        )
    proved = all(part.status is Status.PROVED for part in parts)
    status = Status.PROVED if proved else Status.UNDECIDED
    return IntegralCertificate(dynamics, status, angle, parts, None, conditions)


def _blocks(channel: Channel) -> Iterator[np.ndarray]:
    """Places of coordinates that are coupled; only outputs on abelian groups come apart."""
    if channel.kind != "linear":
        yield np.arange(channel.size)
        return
    coupled = sum(np.abs(np.sign(gain)) for gain in _gains(channel))
    count, labels = connected_components(coupled, directed=False)
    for k in range(count):
        yield np.flatnonzero(labels == k)


def _gains(channel: Channel) -> list[np.ndarray]:
    """I, KD, KP and KI of a channel."""
    gains = [channel.inertia, channel.damping, channel.stiffness]
    none = np.zeros_like(channel.inertia)
    return [*gains, none if channel.integral is None else channel.integral]


def _part(channel: Channel, places: np.ndarray, angle: float) -> IntegralPart:
    gains = [gain[np.ix_(places, places)] for gain in _gains(channel)]
    turns = [i for i, place in enumerate(places) if channel.units[place] == "rad"]
    rotation = channel.kind == "SO3 isotropic"
    own = [gain[:1, :1] for gain in gains] if rotation else gains
    A = _rates(own)
    slowest = _abscissa(A)
    limit = angle if turns else None

    def undecided(reason: str) -> IntegralPart:
        return IntegralPart(channel, places, Status.UNDECIDED, reason, 0.0, slowest, limit)

    if channel.kind == "SO3":
        return undecided("Its gains are not multiples of the identity, so B(x) turns them.")
    if not (rotation or channel.kind == "linear"):
        return undecided("No Lyapunov function with an integral is known for this group.")
    if not slowest > 0.0:
        return undecided("KI is singular or nearly so: the integral does not decay.")
    weights = np.sqrt(np.diag(own[0]))
    if turns:
        found = _turning(A, slowest, weights, angle if rotation else None)
    else:
        found = _linear(A, slowest, weights)
    if found is None:
        hint = " A smaller angle may have one." if rotation else ""
        return undecided(f"No Lyapunov function that decays in the whole domain was found.{hint}")
    P, rate = found
    bound = math.inf
    if turns:
        # (P^-1)_ii V is the largest x_i^2 on a level of V.
        n, inverse = len(own[0]), solve(rational(P), rational(np.eye(len(P))))
        start = len(P) - 2 * n
        rooms = [inverse[start + i, start + i] for i in turns[: 1 if rotation else None]]
        bound = float_below(Fraction(angle) ** 2 / max(rooms))
    if rotation:
        P = np.kron(P, np.eye(3))
    reason = "A quadratic Lyapunov function decays, by rational arithmetic."
    return IntegralPart(channel, places, Status.PROVED, reason, rate, slowest, limit, bound, P)


def _rates(gains: list[np.ndarray]) -> np.ndarray:
    """Rates A of (z, x, ve) at small errors, in fractions; of (x, ve) where KI is zero."""
    n = len(gains[0])
    one, none = rational(np.eye(n)), rational(np.zeros((n, n)))
    right = np.hstack([rational(gain) for gain in (gains[3], gains[2], -gains[1])])
    rows = [np.hstack([none, one, none]), np.hstack([none, none, -one])]
    A = np.vstack([*rows, solve(rational(gains[0]), right)])
    return A if gains[3].any() else A[n:, n:]


def _abscissa(A: np.ndarray) -> float:
    return float(-eigvals(A.astype(float)).real.max())


def _scales(A: np.ndarray, weights: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Scales of zeta and a time that make the numbers independent of units."""
    size = np.abs(eigvals(A.astype(float)))
    for time in (1.0 / float(np.exp(np.log(size).mean())), 1.0 / _abscissa(A)):
        powers = [1.0 / time, 1.0, time][3 - len(A) // len(weights) :]
        yield np.concatenate([power * weights for power in powers]), time


def _linear(A: np.ndarray, slowest: float, weights: np.ndarray) -> tuple[np.ndarray, float] | None:
    """P and the rate that it proves, for B = 1 and starts without bound."""
    for share in _RATES:
        rate = share * slowest
        for scales, time in _scales(A, weights):
            inner = A.astype(float) * np.outer(scales, 1.0 / scales) * time
            shifted = inner + (rate + slowest) / 2 * time * np.eye(len(inner))
            try:
                P = solve_continuous_lyapunov(shifted.T, -np.eye(len(inner)))
            except np.linalg.LinAlgError:
                continue
            P = (P + P.T) / 2 * np.outer(scales, scales)
            if np.isfinite(P).all() and _decays(A, P, rate):
                return P, rate
    return None


def _decays(A: np.ndarray, P: np.ndarray, rate: float) -> bool:
    """Whether zeta^T P zeta > 0 decays at the rate with zeta' = A zeta, exactly."""
    form = rational(P)
    left = form @ A
    return definite(form) and semidefinite(-(left + left.T) - 2 * Fraction(rate) * form)


def _turning(
    A: np.ndarray, slowest: float, weights: np.ndarray, angle: float | None
) -> tuple[np.ndarray, float] | None:
    """P, of least condition for a large region, and the rate that it proves.

    For B = 1, or with an angle for one direction of rotations on SO(3) up to it.
    """
    scales, time = next(_scales(A, weights))
    inner = A.astype(float) * np.outer(scales, 1.0 / scales) * time
    problem = _problem(load_cvxpy(), inner, angle)

    def found(share: float) -> np.ndarray | None:
        return problem(share * slowest * time)

    low, high = 0.0, 1.0
    if found(0.99) is not None:
        low = high = 0.99
    for _ in range(_STEPS if high == 1.0 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) is None else (middle, high)
    for share in (_RESERVE, 0.8, 0.5):
        P = found(share * low) if low else None
        if P is None:
            continue
        P, rate = P * np.outer(scales, scales), share * _RESERVE * low * slowest
        across = angle is None or _decays_across(A, P, rate, angle)
        if across and _decays(A, P, rate):
            return P, rate
    return None


def _across(A: Any, P: Any, rate: Any, u: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """Entries a, c, Re q and Im q of the inequality across x at b = u + i w; without z only c."""
    kd = -A[-1, -1]
    c = 2 * (rate * P[-1, -1] - u * P[-2, -1] - kd * P[-1, -1])
    if A.shape[0] == 2:
        return 0 * c, c, 0 * c, 0 * c
    ki = A[2, 0]
    a = 2 * (ki * P[0, 2] + rate * P[0, 0])
    q = ki * P[2, 2] - kd * P[0, 2] + 2 * rate * P[0, 2]
    return a, c, q - u * P[0, 1], -w * P[0, 1]


def _points(angle: float, count: int) -> Iterator[tuple[Fraction, Fraction]]:
    """Points (u, w) whose hull with their mirror images contains y cot y + i y up to angle / 2."""
    ends = [Fraction(angle) * k / (2 * count) for k in range(count + 1)]
    for low, high in pairwise(ends):
        yield (low * cosine(low)[1] / sine(low)[0] if low else Fraction(1)), high
    yield ends[-1] * cosine(ends[-1])[0] / sine(ends[-1])[1], ends[-1]


def _decays_across(A: np.ndarray, P: np.ndarray, rate: float, angle: float) -> bool:
    form, exact = rational(P), Fraction(rate)
    for u, w in _points(angle, _POINTS):
        a, c, real, imaginary = _across(A, form, exact, u, w)
        if a > 0 or c > 0 or a * c < real**2 + imaginary**2:
            return False
    return True


def _problem(
    cp: ModuleType, A: np.ndarray, angle: float | None
) -> Callable[[float], np.ndarray | None]:
    """Function of the rate: P of least condition with it along and across x, in floats, or None."""
    P, condition, rate = cp.Variable(A.shape, symmetric=True), cp.Variable(), cp.Parameter()
    one, left = np.eye(len(A)), P @ A
    rules = [P >> one, condition * one >> P, left + left.T + 2 * rate * P << 0]
    for u, w in [] if angle is None else _points(angle, _SAMPLES):
        a, c, real, imaginary = _across(A, P, rate, float(u), float(w))
        if len(A) == 2:
            rules.append(c <= 0)
        else:
            rules.append(cp.bmat([[c, real, imaginary], [real, a, 0], [imaginary, 0, a]]) << 0)
    problem = cp.Problem(cp.Minimize(condition), rules)

    def found(value: float) -> np.ndarray | None:
        rate.value = value
        return (P.value + P.value.T) / 2 if solved(problem, cp) else None

    return found
