"""Coefficients of the exponential and its differentials as smooth functions of the squared angle.

The quotients such as ``(1 - cos a) / a**2`` lose digits for small angles and their
derivatives lose more, so a series is used below a large threshold. CasADi evaluates both
branches of a conditional, and a NaN in the discarded one spoils reverse derivatives;
therefore each branch is given an argument that never leaves its own domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, pi

import casadi as ca
from scipy.special import zeta

THRESHOLD = 4.0
"""Squared angle (rad^2) below which the series are used."""

STUMPFF_SERIES = [[(-1) ** i / factorial(2 * i + order) for i in range(14)] for order in range(6)]
"""Coefficients of c0..c5: ``c_k(t) = sum_i (-t)^i / (2i + k)!``."""

# |B_2n| / (2n)! = 2 zeta(2n) / (2 pi)^(2n), with the Bernoulli numbers B.
INVERSE_SERIES = [2 * zeta(n) / (2 * pi) ** n for n in range(2, 44, 2)]
"""Coefficients of ``g(t) = sum_n |B_2n| / (2n)! t^(n-1)``, 21 of them: 20 for g, 20 for g'."""


def stumpff(t: ca.SX) -> list[ca.SX]:
    """Return the Stumpff functions of a squared angle.

    Parameters
    ----------
    t : casadi.SX
        Squared angle, rad^2, not negative.

    Returns
    -------
    list of casadi.SX
        [c0, ..., c5].

    Notes
    -----
    ``c0 = cos a``, ``c1 = sin(a) / a``, ``c2 = (1 - cos a) / a^2``,
    ``c3 = (a - sin a) / a^3`` with ``a = sqrt(t)``, and ``c_{k+2} = (1/k! - c_k) / t``.
    """
    small, near, far = _branches(t)
    angle = ca.sqrt(far)
    closed = [ca.cos(angle), ca.sin(angle) / angle]
    for order in range(4):
        closed.append((1 / factorial(order) - closed[order]) / far)
    return [
        ca.if_else(small, horner(series, near), quotient)
        for series, quotient in zip(STUMPFF_SERIES, closed, strict=True)
    ]


def inverse_coefficients(t: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return g(t) = (1 - (a/2) cot(a/2)) / t with a = sqrt(t), and its derivative.

    Parameters
    ----------
    t : casadi.SX
        Squared angle below (2 pi)^2, rad^2.

    Returns
    -------
    g, slope : casadi.SX
        g and dg/dt.
    """
    small, near, far = _branches(t)
    angle = ca.sqrt(far)
    # 1 - cos a = 2 sin^2(a/2), which keeps its digits near a full turn.
    sine = ca.sin(angle / 2)
    gamma = angle / 2 * ca.cos(angle / 2) / sine
    slope_series = [n * c for n, c in enumerate(INVERSE_SERIES)][1:]
    g = ca.if_else(small, horner(INVERSE_SERIES[:20], near), (1 - gamma) / far)
    closed_slope = (far / (8 * sine**2) + gamma / 2 - 1) / far**2
    return g, ca.if_else(small, horner(slope_series, near), closed_slope)


def horner(coefficients: Sequence[float], x: ca.SX) -> ca.SX:
    """Evaluate a polynomial.

    Parameters
    ----------
    coefficients : sequence of float
        Coefficients, from the constant one upwards.
    x : casadi.SX
        Argument.

    Returns
    -------
    casadi.SX
        Value.
    """
    value = ca.SX(float(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + float(coefficient)
    return value


def _branches(t: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    t = ca.densify(t)
    small = t < THRESHOLD
    return small, ca.if_else(small, t, 0.0), ca.if_else(small, THRESHOLD, t)
