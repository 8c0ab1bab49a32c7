"""Theorem 5.4.2 with its constants: the rate and the transient bound of its proof.

With V_L = (x KP x + ve I ve) / 2 of (5.4.35), V_d = V_L + delta dEr/dt = V_L - delta x KP B ve, and
y = (|x|_KP, |ve|_I), the bounds W of `concur.certify._suprema` over the region of
`concur.certify._region` give

    y W y / 2 <= V_d <= y W' y / 2,    W, W' = [[1, -+delta W12], [-+delta W12, 1]]
    d/dt V_d <= -y What y / 2,
        What = [[2 delta W3, -delta (W5 + W6)], [-delta (W5 + W6), 2 (W7 - delta W4)]]
    0 < delta < min(1 / W12, 4 W3 W7 / ((W5 + W6)^2 + 4 W3 W4))
    delta_bar: the largest number with What >= delta_bar W',   delta_hat = 1 / (1 - delta W12)
    V_L(t) <= delta_hat V_d(0) exp(-delta_bar t) <= 2 delta_hat V_L(0) exp(-delta_bar t)

In (5.4.44) the thesis has W6 for W7, in the last step of the proof What for W'. The rate of this
proof is a small fraction of the linearized rate and tends to zero towards the edge of the region;
the method "tight" proves faster ones.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt

from scipy.optimize import minimize_scalar

from concur.certify._bounds import float_above
from concur.certify._channels import Channel
from concur.certify._region import region_level, region_radius
from concur.certify._status import Status
from concur.certify._structure import check_structure
from concur.certify._suprema import Suprema, suprema
from concur.certify._thesis_constants import ThesisConstants
from concur.errors import OutputError


def thesis_constants(
    channel: Channel, angle: float, distance: float | None = None
) -> ThesisConstants:
    """Evaluate Theorem 5.4.2 for a channel.

    Parameters
    ----------
    channel : Channel
        Outputs that are coupled to each other and to no others.
    angle : float
        Bound of the rotation errors, above 0 and at most pi, rad.
    distance : float, optional
        Bound of the position errors, m. Without it V_L alone limits them.

    Returns
    -------
    ThesisConstants
        The constants with the best delta.

    Raises
    ------
    OutputError
        If a gain is not symmetric positive definite, angle or distance is out of range, or
        the bounds have no closed form: they have one for abelian groups, and for rotations with
        isotropic gains.

    References
    ----------
    Thesis, Theorem 5.4.2, (5.4.38)-(5.4.44).
    """
    _check_gains(channel)
    return constants_of(channel, angle, distance, suprema(channel, angle))


def _check_gains(channel: Channel) -> None:
    structure = check_structure(channel.dynamics)
    if not structure.definite:
        raise OutputError(
            f"Theorem 5.4.2, {channel.name}",
            expected="KP, KD and I symmetric positive definite",
            came=str(structure),
            cure="Give gains above zero.",
        )


def constants_of(
    channel: Channel, angle: float, distance: float | None, bounds: Suprema
) -> ThesisConstants:
    """Constants with the best delta, from the bounds over the region."""
    level = region_level(channel, angle, distance)
    if level == inf and channel.kind != "linear":
        raise OutputError(
            f"Theorem 5.4.2, {channel.name}",
            expected="a region of finite size",
            came="a group without angles",
            cure="Limit the `distance`.",
        )
    radius = region_radius(channel, angle, distance)
    delta_max = _delta_max(bounds)
    found = minimize_scalar(
        lambda share: -_decay(bounds, share * delta_max),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    delta = float(found.x) * delta_max
    delta_bar = _checked(bounds, delta, _decay(bounds, delta))
    left = 1 - Fraction(delta) * Fraction(bounds.W12)
    return ThesisConstants(
        channel,
        angle,
        distance,
        Status.PROVED if bounds.exact and delta_bar > 0.0 else Status.UNDECIDED,
        bounds.W12,
        bounds.W3,
        bounds.W5,
        bounds.W6,
        bounds.W7,
        W_R=radius,
        level=level,
        delta_max=delta_max,
        delta=delta,
        delta_bar=delta_bar,
        delta_hat=float_above(1 / left) if left > 0 else inf,
    )


def _delta_max(bounds: Suprema) -> float:
    product = 4 * bounds.W3 * bounds.W7
    span = (bounds.W5 + bounds.W6) ** 2 + 4 * bounds.W3 * bounds.W12**2
    return min(1 / bounds.W12, product / span)


def _decay(bounds: Suprema, delta: float) -> float:
    """Smaller root d of det(What - d W') = 0.

    What is linear in delta and W' positive, so each d is feasible for an interval of deltas: the
    function has one maximum.
    """
    first, last = 2 * delta * bounds.W3, 2 * (bounds.W7 - delta * bounds.W12**2)
    across, mixed = delta * (bounds.W5 + bounds.W6), delta * bounds.W12
    middle = first + last + 2 * across * mixed
    end = first * last - across**2
    return 2 * end / (middle + sqrt(max(middle**2 - 4 * (1 - mixed**2) * end, 0.0)))


def _checked(bounds: Suprema, delta: float, guess: float) -> float:
    """Largest float near a guess for which What - d W' >= 0 holds exactly; else zero."""
    d, W12, W3 = Fraction(delta), Fraction(bounds.W12), Fraction(bounds.W3)
    side, W7 = Fraction(bounds.W5) + Fraction(bounds.W6), Fraction(bounds.W7)
    if d * W12 >= 1 or not guess > 0.0:
        return 0.0
    for bits in range(48, 0, -1):
        value = guess * (1 - 2.0**-bits)
        decay = Fraction(value)
        first, last = 2 * d * W3 - decay, 2 * (W7 - d * W12**2) - decay
        across = d * side + decay * d * W12
        if first >= 0 and last >= 0 and first * last >= across**2:
            return value
    return 0.0
