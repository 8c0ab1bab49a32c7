"""Tube-optimized decays: Lyapunov functions chosen for a narrow tube under a disturbance.

Where V = z^T P z / 2 decays at the rate alpha, an output acceleration of length at most d keeps |x|
at or below sqrt(b) d / alpha, with P >= diag(D, 0) and P22 <= b D, D the weights of lengths. The
Lyapunov function of the fastest rate does not minimise this bound. For a given alpha the least b is
a convex problem over P and the multipliers; alpha is found by line search. The result is proved
like every other decay.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from concur.certify._certificate import Certificate
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel
from concur.certify._decay import Decay
from concur.certify._inequality import isotropic_multipliers
from concur.certify._problem import Candidate, load_cvxpy, metric, sampled_problem, solved
from concur.certify._prove import prove, stored_boxes
from concur.certify._recheck_conditions import LIMITS
from concur.certify._robust import tube
from concur.certify._search import Linearisation, at_moderate_frequency, falls
from concur.certify._status import Status
from concur.errors import OutputError

_LEAST_SHARE = 0.15
"""Smallest rate searched, as a fraction of the certified one."""

_WIDTH = 0.02
"""Width of the last interval of rates, as a fraction of the certified one."""

_ROOM = 0.01
"""Fraction of the rate kept as reserve for the proof, with one parameter and with several."""

_MORE_ROOM = 0.05

_ROUNDS = 6
"""Number of rounds that add samples where the result fails."""

_SMALLNESS = 1e-4
"""Weight of the size of all members in the objective, as a fraction."""

_PROBE = 1e-9
"""Disturbance so small that its tube fits in any domain, to compare the sizes of tubes."""


def narrow_decays(
    certificate: Certificate,
    budget: int = 20_000,
    progress: Callable[[float], Any] | bool = False,
) -> tuple[Decay, ...]:
    """Prove decays whose tubes are narrow, on the domain of a certificate.

    Parameters
    ----------
    certificate : Certificate
        A proved certificate of the method "tight".
    budget : int, default 20000
        Largest number of boxes evaluated for each channel.
    progress : callable or bool, default False
        Called with the fraction done. True shows no bar, like False.

    Returns
    -------
    tuple of Decay
        One for each channel, for `tubes`: the decay of the certificate where no narrower tube
        was proved. Their rates are lower than the certificate's.

    Raises
    ------
    OutputError
        If the certificate is not proved, or lacks a constant P.
    ConcurError
        If the solver is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> from concur.certify import narrow_decays, tubes
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> narrow = tubes(narrow_decays(cc.certify(servo, angle=1.0)), np.full(2, 0.1))
    >>> narrow[0].status.name
    'PROVED'
    """
    if certificate.status is not Status.PROVED:
        raise OutputError(
            "narrow tubes",
            expected="a certificate with status PROVED",
            came=f"status {certificate.status.name}",
            cure="Certify a smaller domain, or check the gains.",
        )
    if any(one.startswith(LIMITS) for one in certificate.conditions):
        raise OutputError(
            "narrow tubes",
            expected="a certificate of a law without torque limits",
            came="one with limits: a disturbance may push its errors out of the proved box",
            cure="Certify `servo.error_dynamics`, whose claims hold while no limit is reached.",
        )
    found = []
    for k, part in enumerate(certificate.parts):
        usual = Decay.of(part)
        other = _narrow(part, budget)
        narrower = other is not None and tube(other, _PROBE).size < tube(usual, _PROBE).size
        found.append(other if other is not None and narrower else usual)
        if callable(progress):
            progress((k + 1) / len(certificate.parts))
    return tuple(found)


def _narrow(part: ChannelCertificate, budget: int) -> Decay | None:
    """Proved tube-optimized decay of one channel, or None."""
    angle = 1.0 if part.angle is None else part.angle
    found = search_narrow(part.channel, part.rate, angle, part.distance)
    if found is None:
        return None
    proof = prove(
        part.channel,
        found.P,
        found.alpha,
        angle,
        part.distance,
        budget,
        multipliers=found.multipliers,
    )
    if proof.status is not Status.PROVED:
        return None
    return Decay(
        part.channel,
        found.P,
        found.alpha,
        part.angle,
        part.distance,
        proof.status,
        proof.reduction,
        stored_boxes(proof),
        (proof.claim.L, proof.claim.M),
    )


def search_narrow(
    channel: Channel, fastest: float, angle: float, distance: float | None = None
) -> Candidate | None:
    """Search for a P with the narrowest tube on a domain where a rate is reached; not a proof."""
    own, unit = at_moderate_frequency(channel)
    if channel.kind == "linear" or channel.scalar:
        found = _of_the_linearisation(own, fastest / unit)
    else:
        found = _of_samples(own, fastest / unit, angle, distance)
    return None if found is None else found.in_unit(unit)


def _least(
    width: Callable[[float], tuple[float, np.ndarray | None]], fastest: float
) -> tuple[float, np.ndarray | None]:
    """Rate that minimises sqrt(b) / alpha, and the solution there."""
    best: tuple[float, float, np.ndarray | None] = (inf, fastest, None)

    def size(alpha: float) -> float:
        nonlocal best
        square, answer = width(alpha)
        # Beyond the feasible rates the search must turn back: a finite slope, not infinity.
        value = np.sqrt(square) / alpha if answer is not None else 1e6 * alpha
        if answer is not None and value < best[0]:
            best = (value, alpha, answer)
        return float(value)

    minimize_scalar(
        size,
        bounds=(_LEAST_SHARE * fastest, fastest),
        method="bounded",
        options={"xatol": _WIDTH * fastest},
    )
    return best[1], best[2]


def _of_the_linearisation(channel: Channel, fastest: float) -> Candidate | None:
    cp, linear = load_cvxpy(), Linearisation.of(channel)
    size, n = len(linear.F), len(linear.metric)
    inner = linear.F * np.outer(1.0 / linear.scales, linear.scales)
    both = np.outer(linear.scales, linear.scales)
    weights = np.diag(linear.metric)
    start = np.zeros((size, size))
    start[:n, :n] = weights
    P, square, rate = cp.Variable((size, size), PSD=True), cp.Variable(), cp.Parameter(nonneg=True)
    problem = cp.Problem(
        cp.Minimize(square),
        [
            P >> start * both,
            P[n:, n:] << square * (weights * both[n:, n:]),
            P @ inner + inner.T @ P + 2 * rate * P << 0,
        ],
    )

    def width(alpha: float) -> tuple[float, np.ndarray | None]:
        rate.value = (1.0 + _ROOM) * alpha
        if not solved(problem, cp):
            return inf, None
        found = P.value / both
        found = linear.whole(found)[:: linear.copies, :: linear.copies]
        sound = falls(found, linear.F + (1.0 + _ROOM / 2) * alpha * np.eye(size))
        return float(square.value), found if sound else None

    alpha, form = _least(width, fastest)
    if form is None:
        return None
    whole = linear.whole(form)
    return Candidate(whole, alpha, isotropic_multipliers(channel, whole), fastest, 1)


def _of_samples(
    channel: Channel, fastest: float, angle: float, distance: float | None
) -> Candidate | None:
    problem = sampled_problem(channel, angle, distance)
    if problem is None:
        return None
    cp, n = load_cvxpy(), channel.size
    room = _MORE_ROOM if problem.several else _ROOM
    none = np.zeros(n)
    start = problem.scaled(np.diag(np.concatenate([metric(channel), none])))
    unit = problem.scaled(np.diag(np.concatenate([none, metric(channel)])))
    least = problem.scaled(np.diag(np.tile(metric(channel), 2)))

    def width(alpha: float) -> tuple[float, np.ndarray | None]:
        weights, square = cp.Variable(len(problem.forms)), cp.Variable()
        form = problem.combined(weights, problem.forms)
        chosen = cp.Problem(
            cp.Minimize(square + _SMALLNESS * cp.norm(cp.multiply(problem.sizes(), weights))),
            [
                form >> start + 1e-6 * least,
                form[n:, n:] << square * unit[n:, n:],
                *problem.falling(weights, (1.0 + room) * alpha),
            ],
        )
        if not solved(chosen, cp):
            return inf, None
        return float(square.value), np.array(weights.value)

    for _ in range(_ROUNDS):
        alpha, weights = _least(width, fastest)
        if weights is None:
            return None
        if problem.holds(weights, alpha):
            claim = problem.family.combine(weights)
            samples = len(problem.samples)
            return Candidate(claim.P, alpha, (claim.L, claim.M), fastest, samples)
    return None
