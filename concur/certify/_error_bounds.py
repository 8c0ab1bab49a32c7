"""Bounds of the later errors, from a start or from a bound of the certificate's norm.

Every proved Lyapunov function of a channel bounds all later errors by its value at the start: that
of the certificate, that of its calmer one, and V_L. The bound is their minimum per component. For a
linear channel z(t) = exp(F t) z(0) is also evaluated in ball arithmetic. On a step of length h
linear channel has more: z(t) = exp(F t) z(0) itself, in ball arithmetic. On a step of length h

    |z_i| <= max(|z_i(t)|, |z_i(t + h)|) + h^2 / 8 sup |(F^2 z)_i|

with the last factor enclosed over the step; after the last step the Lyapunov functions apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from concur.certify._arrays import above, array, matrix
from concur.certify._bounds import Rational, rational, root_above, solve
from concur.certify._certificate import Certificate
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel
from concur.certify._checks import check
from concur.certify._intervals import flint
from concur.certify._status import Status
from concur.errors import OutputError
from concur.robot import scalar

_STEP = 1.0 / 16.0
"""Length of a step times the largest row of F; a step loosens the bound by about 0.1 %."""

_STEPS = 20_000
"""Number of steps after which the Lyapunov functions bound the rest."""

_GONE = 1e-9
"""Fraction of the bound at the start below which a component counts as at rest."""

_BITS = 160
"""Bits of the balls: rounding of some thousand steps stays far below float precision."""


def error_bounds(
    certificate: Certificate,
    norm: float | None = None,
    *,
    start: tuple[ArrayLike, ArrayLike] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bound each component of the errors at all times, from a start or the norm of all starts.

    Parameters
    ----------
    certificate : Certificate
        A proved certificate of the loop, of method "tight".
    norm : float, optional
        Bound of `Certificate.norm` at the start. The bounds cover all such starts, including
        those with the worst transient; give `start` if it is known.
    start : tuple of array_like, optional
        Pose and velocity error at the start, each of shape (size,), that the certificate
        `contains`. One of `norm` and `start` is needed.

    Returns
    -------
    pose_error, velocity_error : numpy.ndarray
        Largest components of x and ve at the start and after it, rounded up, shape (size,).

    Raises
    ------
    OutputError
        If the certificate is not proved, has no quadratic forms, or does not cover the start, the
        norm is negative, or not one of `norm` and `start` is given.
    ShapeError, NonFiniteError
        If the start is not a pair of finite vectors of the outputs' dimension.
    ConcurError
        If a start is given and the extra `certify` is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> from concur.certify import error_bounds
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> x, ve = error_bounds(cc.certify(servo), start=([0.35, 0.0], [0.0, 0.0]))
    >>> np.round(x, 3)
    array([0.35, 0.  ])
    """
    where = "error bounds"
    if not isinstance(certificate, Certificate) or certificate.status is not Status.PROVED:
        raise OutputError(
            f"{where}, `certificate`",
            expected="a proved certificate",
            came=getattr(getattr(certificate, "status", None), "name", type(certificate).__name__),
            cure="Certify the servo first.",
        )
    forms, came = [part.P for part in certificate.parts], f"method `{certificate.method}` without"
    expected, cure = "a Lyapunov function for each channel", 'Certify with method="tight".'
    check(all(P is not None for P in forms), f"{where}, `certificate`", expected, came, cure)
    came, cure = "neither" if norm is None else "both", "Give start=(x, ve) if the start is known."
    check((norm is None) != (start is None), where, "one of `norm` and `start`", came, cure)
    if norm is None:
        assert start is not None
        return _from_start(certificate, start)
    bound = scalar(norm, f"{where}, `norm`")
    cure = "Give certificate.norm(x, ve) of the start."
    check(bound >= 0.0, f"{where}, `norm`", "not negative", bound, cure)
    square = Fraction(bound) ** 2
    return _gathered(
        certificate, (_within(part, square / Fraction(part.weight)) for part in certificate.parts)
    )


def _from_start(
    certificate: Certificate, start: tuple[ArrayLike, ArrayLike]
) -> tuple[np.ndarray, np.ndarray]:
    where, pair = "error bounds, `start`", isinstance(start, (tuple, list)) and len(start) == 2
    came = f"{type(start).__name__} {start!r:.40}"
    check(pair, where, "a pair of x and ve", came, "Give start=(x, ve).")
    inside, cure = certificate.contains(*start), "Certify a larger angle, or give a smaller start."
    check(inside, where, "a start that the certificate contains", f"{start!r:.60}", cure)
    x, ve = (np.asarray(vector, dtype=float) for vector in start)
    calmer = (
        certificate.low_transient.parts
        if certificate.low_transient is not None
        else certificate.parts
    )
    found = []
    for part, calm in zip(certificate.parts, calmer, strict=True):
        z = np.concatenate([x[part.channel.index], ve[part.channel.index]])
        least = np.minimum(_by_form(part, z), _by_form(calm, z))
        least = np.minimum(least, _by_energy(part.channel, z))
        if part.channel.kind == "linear":
            least = np.minimum(least, _by_motion(calm, z))
        found.append(least)
    return _gathered(certificate, found)


def _gathered(
    certificate: Certificate, parts: Iterable[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the whole loop from those of the channels."""
    x, ve = np.zeros((2, certificate.dynamics.size))
    for part, own in zip(certificate.parts, parts, strict=True):
        x[part.channel.index], ve[part.channel.index] = np.split(own, 2)
    return x, ve


def _reach(form: Rational, square: Fraction) -> np.ndarray:
    """Largest absolute value of each component of z where z^T form z <= `square`."""
    inverse = solve(form, rational(np.eye(len(form))))
    return np.abs([root_above(inverse[i, i] * square) for i in range(len(form))])


def _within(part: ChannelCertificate, square: Fraction) -> np.ndarray:
    assert part.P is not None
    return _reach(rational(part.P), square)


def _by_form(part: ChannelCertificate, z: np.ndarray) -> np.ndarray:
    """Bound by the decay of z^T P z."""
    assert part.P is not None
    own = rational(z)
    return _within(part, own @ rational(part.P) @ own)


def _by_energy(channel: Channel, z: np.ndarray) -> np.ndarray:
    """Bound by V_L = (x KP x + ve I ve) / 2, which never grows with positive definite gains."""
    n, own = channel.size, rational(z)
    form = np.full((2 * n, 2 * n), Fraction(0))
    form[:n, :n], form[n:, n:] = rational(channel.stiffness), rational(channel.inertia)
    return _reach(form, own @ form @ own)


def _by_motion(part: ChannelCertificate, z: np.ndarray) -> np.ndarray:
    """Largest components of exp(F t) z over all t; infinite where the steps are too few."""
    module = flint()
    at_start, still = _by_form(part, z), _at_rest(part.channel, z)
    with module.ctx.workprec(_BITS):
        F = _flow(part.channel)
        rows = np.array([above(sum(abs(v) for v in row)) for row in array(F)])
        step = _STEP / rows.max()
        # Over a step the time is a ball, at its end a number.
        over = (F * module.arb(step / 2, step / 2)).exp()
        on = (F * module.arb(step)).exp()
        bend = F * F * over
        now = matrix(z[:, None])
        largest, reach = _sizes(now), _within(part, Fraction(1))
        for _ in range(_STEPS):
            further = on * now
            ends = np.maximum(_sizes(now), _sizes(further))
            largest = np.maximum(largest, ends + step * step / 8 * (1 + 1e-12) * _sizes(bend * now))
            now = further
            # The Lyapunov function bounds all later states.
            rest = reach * _length(part, now)
            if (still | (rest <= largest) | (rest <= _GONE * at_start)).all():
                return np.where(still, 0.0, np.nextafter(np.maximum(largest, rest), inf))
    return np.full(len(z), inf)


def _at_rest(channel: Channel, z: np.ndarray) -> np.ndarray:
    """Components that are zero at all times: no nonzero component is coupled to them."""
    coupled = sum(np.abs(np.sign(g)) for g in (channel.stiffness, channel.damping, channel.inertia))
    labels = connected_components(coupled, directed=False)[1]
    moving = labels[(z.reshape(2, -1) != 0.0).any(axis=0)]
    return np.tile(~np.isin(labels, moving), 2)


def _flow(channel: Channel) -> Any:
    """[[0, -1], [I^-1 KP, -I^-1 KD]] in balls."""
    n = channel.size
    inertia = matrix(channel.inertia)
    pull = array(inertia.solve(matrix(np.hstack([channel.stiffness, -channel.damping]))))
    top = np.hstack([np.zeros((n, n)), -np.eye(n)]).astype(object)
    return matrix(np.vstack([top, pull]))


def _sizes(vector: Any) -> np.ndarray:
    return np.array([above(abs(v)) for v in vector.entries()])


def _length(part: ChannelCertificate, z: Any) -> float:
    """Upper bound of sqrt(z^T P z), widened for the product that uses it."""
    assert part.P is not None
    square = above((z.transpose() * matrix(part.P) * z).entries()[0])
    return float(np.sqrt(max(square, 0.0)) * (1 + 1e-12))
