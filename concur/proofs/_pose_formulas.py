"""Formulas of SE(3) without conditionals: power series in the squared angle, with their tails.

A twist is [linear; angular]. The coefficients of exp and of B(x) = ad_x / (exp(ad_x) - 1) are
analytic in y = |w|^2. Graphs contain their truncated series plus a symbol for each tail, so that
models can walk them: `tails` bounds these symbols for angles of at most 2 rad.

With c_k = B_2k / (2k)! the even part of B is 1 + sum_k c_k ad^2k. The minimal polynomial of ad has
the roots 0 and, twice, +-i sqrt(y), so ad^2k = (2 - k) (-y)^(k-1) ad^2 + (k - 1) (-y)^(k-2) ad^4.
"""

from __future__ import annotations

from math import factorial, pi

import casadi as ca
import numpy as np
from scipy.special import bernoulli

from concur._polynomials import Floats

TERMS = 11
"""Terms of each series; the tails are below 1e-8 at 2 rad and below rounding at 1 rad."""

LARGEST = 4.0
"""Largest y for which `tails` bounds the tails, rad^2."""

_C = [float(b) / factorial(2 * k) for k, b in enumerate(bernoulli(2 * TERMS)[::2])]


def _sum(y: ca.SX, coefficients: list[float]) -> ca.SX:
    total = ca.SX(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * y + c
    return total


def tails(y: Floats) -> Floats:
    """Bounds of the tails of sin / angle, (1 - cos) / y, (1 - sin / angle) / y and of B's series.

    Of the largest y of each column, shape (b,); returns (5, b), infinite beyond `LARGEST`.
    """
    # Alternating series with falling terms: at most the first term that is left out.
    plain = [y**TERMS / factorial(2 * TERMS + k) for k in (1, 2, 3)]
    t, n = y / (2 * pi) ** 2, TERMS + 1
    # |c_k| <= 3.3 (2 pi)^-2k; sum over k >= n of k t^(k-1) is the derivative of t^n / (1 - t).
    with np.errstate(all="ignore"):
        rest = t ** (n - 2) * (n - (n - 1) * t) / (1 - t) ** 2
    found = np.array([*plain, 3.3 / (2 * pi) ** 2 * t * rest, 3.3 / (2 * pi) ** 4 * rest])
    return np.where(y <= LARGEST, found * (1 + 1e-9) + 1e-16, np.inf)


def exponential(x: ca.SX, tail: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Rotation and position of exp(x)."""
    v, w = x[:3], x[3:]
    y = ca.dot(w, w)
    a, b, c = (
        _sum(y, [(-1.0) ** i / factorial(2 * i + k) for i in range(TERMS)]) + tail[k - 1]
        for k in (1, 2, 3)
    )
    turn = ca.skew(w)
    square = turn @ turn
    wv = ca.cross(w, v)
    return ca.SX.eye(3) + a * turn + b * square, v + b * wv + c * ca.cross(w, wv)


def bracket(x: ca.SX, y: ca.SX) -> ca.SX:
    """ad_x y."""
    return ca.vertcat(
        ca.cross(x[3:], y[:3]) + ca.cross(x[:3], y[3:]),
        ca.cross(x[3:], y[3:]),
    )


def dual_bracket(x: ca.SX, f: ca.SX) -> ca.SX:
    """ad_x^T f."""
    return -ca.vertcat(
        ca.cross(x[3:], f[:3]),
        ca.cross(x[:3], f[:3]) + ca.cross(x[3:], f[3:]),
    )


def error_map(x: ca.SX, y: ca.SX, tail: ca.SX, dual: bool = False) -> ca.SX:
    """B(x) y, or B(x)^T y."""
    own, angle = dual_bracket if dual else bracket, ca.dot(x[3:], x[3:])
    second = [(2 - k) * _C[k] * (-1.0) ** (k - 1) for k in range(1, TERMS + 1)]
    fourth = [(k - 1) * _C[k] * (-1.0) ** k for k in range(2, TERMS + 1)]
    one = own(x, y)
    two = own(x, one)
    four = own(x, own(x, two))
    k2, k4 = _sum(angle, second) + tail[3], _sum(angle, fourth) + tail[4]
    return y - one / 2 + k2 * two + k4 * four


def rotation(q: ca.SX) -> ca.SX:
    """Rotation matrix of a quaternion (x, y, z, w) of any length but zero."""
    turn = ca.skew(q[:3])
    return ca.SX.eye(3) + 2.0 * (q[3] * turn + turn @ turn) / ca.dot(q, q)


def carried(turn: ca.SX, place: ca.SX, twist: ca.SX) -> ca.SX:
    """Ad of a pose on a twist."""
    w = turn @ twist[3:]
    return ca.vertcat(turn @ twist[:3] + ca.cross(place, w), w)
