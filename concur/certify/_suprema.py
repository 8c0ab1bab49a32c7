"""Bounds W12 and W3 to W7 of Theorem 5.4.2 over a ball, with its proof corrected.

With N(x) = KP^1/2 B(x) I^-1/2, T_ij = x^T KP DB(x)[B e_j] e_i, D = I^-1/2 KD I^-1/2 and the ball
|x|_KP <= r:

    W12 = sup |N|             in place of the product W1 W2, whose norms are not those needed
    W3  = inf smallest singular value of N, squared         (5.4.40)
    W4  = W12^2                                             (5.4.41)
    W5  = r sup |sym I^-1/2 T I^-1/2| / |x|_KP              (5.4.42); r bounds |ve|_I
    W6  = sup |N D|                                         (5.4.43), with I^-1 for KP^-1
    W7  = smallest eigenvalue of D                          the thesis has W6, valid for KP <= I

Lengths are measured by KP and I alone, so that the choice of metres per radian has no effect: x, ve
and the gains in any unit of length give the same numbers.

On an abelian group B = 1 and T = 0. On SO(3) with KP = kp, KD = kd, I = i (multiples of the
identity) B = 1 - PHI/2 + hh PHI^2 has the singular values 1 and u / sin u with u = |phi| / 2, and
x^T DB[d] = d^T (1 - B) makes sym T = kp (sym B - B^T B), so that

    W12 = sqrt(kp / i) u / sin u,  W3 = kp / i,  W6 = (kd / i) W12,  W7 = kd / i,
    W5 = (kp / i) (u^2 / sin^2 u - u cot u)

at the largest angle: each grows with it, W5 because T's norm over |phi| is half the derivative of
-u cot u, a series with positive coefficients. On other groups there is no closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from concur.certify._bounds import (
    cosine,
    float_above,
    float_below,
    largest_eigenvalue,
    rational,
    root_above,
    sine,
    smallest_eigenvalue,
    solve,
)
from concur.certify._channels import Channel
from concur.errors import OutputError

SLACK = 1 + Fraction(1, 2**40)
"""Bound of the difference between B and its computed series with rounded coefficients."""

CLOSED = ("linear", "SO3 isotropic")
"""Kinds of channels whose bounds have a closed form."""


@dataclass(frozen=True)
class Suprema:
    """The bounds over a ball of x.

    Parameters
    ----------
    W12 : float
        Largest factor between the lengths of ve and of B ve, 1/s.
    W3 : float
        Smallest such factor, squared, 1/s^2.
    W5 : float
        Bound of the term with the derivative of B, 1/s^2.
    W6 : float
        Bound of the term with the damping, 1/s^2.
    W7 : float
        Smallest damping over inertia, 1/s.
    exact : bool
        Whether these are closed forms rounded to the safe side, else values on a grid.
    """

    W12: float
    W3: float
    W5: float
    W6: float
    W7: float
    exact: bool


def suprema(channel: Channel, angle: float) -> Suprema:
    """Compute the bounds of Theorem 5.4.2 on the region of an angle, in closed form."""
    if channel.kind not in CLOSED:
        raise OutputError(
            f"Theorem 5.4.2, {channel.name}",
            expected="vectors and angles, or a rotation with isotropic gains",
            came=f"a channel of kind {channel.kind}",
            cure='Certify with method="tight".',
        )
    stiffness, damping, inertia = (
        rational(gain) for gain in (channel.stiffness, channel.damping, channel.inertia)
    )
    stretch, growth = _rotation_factors(angle) if channel.kind != "linear" else (1, 0)
    most = largest_eigenvalue(stiffness, inertia)
    through = damping @ solve(inertia, stiffness @ solve(inertia, damping))
    return Suprema(
        W12=root_above(most * stretch**2),
        W3=float_below(smallest_eigenvalue(stiffness, inertia)),
        W5=float_above(most * growth),
        W6=root_above(largest_eigenvalue(through, inertia) * stretch**2),
        W7=float_below(smallest_eigenvalue(damping, inertia)),
        exact=True,
    )


def _rotation_factors(angle: float) -> tuple[Fraction, Fraction]:
    """Upper bounds of u / sin u and u^2 / sin^2 u - u cot u for half an angle u."""
    half = Fraction(angle) / 2
    sines, cosines = sine(half), cosine(half)
    stretch = half / sines[0] * SLACK
    return stretch, stretch**2 - half / sines[1] * cosines[0]
