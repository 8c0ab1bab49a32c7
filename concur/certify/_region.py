"""Region of attraction from V_L alone: the W_R of Theorem 5.4.2, corrected.

V_L = (x KP x + ve I ve) / 2 never grows, so |x|_KP <= sqrt(2 V_L(0)) at all times. Among the x with
|x|_KP = r, the rotational part phi of one factor has at most the length r / sqrt(lambda_min(S)),
with the Schur complement S = KP_ww - KP_wu KP_uu^-1 KP_uw of that factor's rotation w and all other
components u. Hence

    V_L(0) < W_R^2 / 2,    W_R = angle min over the factors of sqrt(lambda_min(S))

keeps every rotation error below the angle; with pi the logarithm stays smooth.

The thesis prints V_L(0) < W_R^2 with W_R in the norm of I, over a ball that mixes metres and
radians. This lacks the factor 1/2 and ignores KP: an SO(3) output with KP = 1, KD = 0.1, I = 1,
x = 0.9 pi and ve = -0.995 pi about the same axis has V_L(0) = 0.9 pi^2 < pi^2 = W_R^2, and its
error passes the angle pi after 0.11 s.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np

from concur.certify._bounds import (
    Rational,
    float_below,
    largest_eigenvalue,
    rational,
    root_below,
)
from concur.certify._channels import Channel
from concur.certify._checks import check_angle, check_distance


def region_radius(channel: Channel, angle: float, distance: float | None = None) -> float:
    """Radius W_R of the region in the norm of KP, rounded down; infinite without a limit."""
    level = region_level(channel, angle, distance)
    return root_below(2 * Fraction(level)) if level < inf else inf


def region_level(channel: Channel, angle: float, distance: float | None = None) -> float:
    """Value W_R^2 / 2 that V_L must start below, rounded down; infinite without a limit.

    It keeps every rotation error below the angle and, if one is given, every position error of a
    factor below the distance.
    """
    check_angle(f"region of {channel.name}", angle)
    limits = {"rad": angle}
    if distance is not None:
        check_distance(f"region of {channel.name}", distance)
        limits["m"] = distance
    stiffness = rational(channel.stiffness)
    squares = [
        Fraction(limits[unit]) ** 2 * _schur_eigenvalue(stiffness, part)
        for _, part, unit in channel.error_parts
        if unit in limits
    ]
    return float_below(min(squares) / 2) if squares else inf


def _schur_eigenvalue(stiffness: Rational, part: np.ndarray) -> Fraction:
    """Lower bound of the eigenvalues of the Schur complement of KP over a part of x."""
    # S^-1 is that part of KP^-1, so take the largest eigenvalue of KP^-1 times its projector.
    chosen = np.full(stiffness.shape, Fraction(0))
    chosen[part, part] = Fraction(1)
    return 1 / largest_eigenvalue(chosen, stiffness)
