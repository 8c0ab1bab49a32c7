"""Theorem 5.4.2 with its constants: the rate and the overshoot that its own proof gives.

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
proof is a small part of the true one and tends to zero towards the edge of the region: see the
other certificates for better ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt

import numpy as np
from scipy.optimize import minimize_scalar

from concur.certify._bounds import float_above, rational
from concur.certify._channels import Channel
from concur.certify._region import region_level, region_radius
from concur.certify._status import ESTIMATE, Status
from concur.certify._structure import check_structure
from concur.certify._suprema import Suprema, suprema
from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.errors import OutputError


@dataclass(frozen=True, eq=False)
class ThesisConstants:
    """What Theorem 5.4.2 says about a channel, in numbers.

    Parameters
    ----------
    channel : Channel
        The outputs.
    angle : float
        Angle below which rotation errors stay, rad.
    distance : float or None
        Length below which position errors stay, m; None when it was not asked for.
    status : Status
        PROVED when the bounds are closed forms, rounded to the safe side, and the rate was
        checked by rational arithmetic; UNDECIDED when the bounds come from a grid.
    W12, W3, W5, W6, W7 : float
        Bounds over the region, in 1/s (W12, W7) and 1/s^2.
    W_R : float
        Radius of the region in the norm of KP.
    level : float
        W_R^2 / 2: the theorem holds for V_L(0) below it.
    delta_max : float
        Upper end of the range of delta, s.
    delta : float
        The delta in that range with the largest delta_bar, s.
    delta_bar : float
        Decay rate of V_d, 1/s.
    delta_hat : float
        Largest V_L / V_d.
    """

    channel: Channel
    angle: float
    distance: float | None
    status: Status
    W12: float
    W3: float
    W5: float
    W6: float
    W7: float
    W_R: float
    level: float
    delta_max: float
    delta: float
    delta_bar: float
    delta_hat: float

    @property
    def W4(self) -> float:
        """W12^2, 1/s^2."""
        return self.W12**2

    @property
    def rate(self) -> float:
        """Rate at which the error decays, delta_bar / 2, 1/s."""
        return self.delta_bar / 2

    @property
    def overshoot(self) -> float:
        """Largest factor between an error at any time and at the start, in the norm sqrt(V_L)."""
        return nextafter(sqrt(2 * self.delta_hat), inf)

    def contains(self, x: np.ndarray, ve: np.ndarray) -> bool:
        """Whether the theorem holds for a start.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error of the channel, shape (n,).

        Returns
        -------
        bool
            Whether V_L is below `level`, decided exactly.

        Raises
        ------
        ShapeError
            If an argument is no vector of n numbers.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        energy = Fraction(0)
        for vector, metric, name in (
            (x, self.channel.stiffness, "x"),
            (ve, self.channel.inertia, "ve"),
        ):
            part = rational(_finite(vector, name, self.channel))
            energy += part @ rational(metric) @ part
        return self.level == inf or bool(energy < 2 * Fraction(self.level))

    def strict(self, x: np.ndarray, ve: np.ndarray) -> float:
        """V_d, the strict Lyapunov function.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error of the channel, shape (n,).

        Returns
        -------
        float
            V_L + delta dEr/dt; from starts in the region V_d(t) <= V_d(0) exp(-delta_bar t).
        """
        dynamics = self.channel.dynamics
        error_rate, _ = dynamics.rate(x, ve)
        growth = np.asarray(x) @ self.channel.stiffness @ error_rate
        return float(dynamics.lyapunov(x, ve) + self.delta * growth)

    def envelope(self, start: float, time: float) -> float:
        """Bound of V_L after a time.

        Parameters
        ----------
        start : float
            V_L at the start, below `level`.
        time : float
            Time since then, not negative, s.

        Returns
        -------
        float
            2 delta_hat V_L(0) exp(-delta_bar t).
        """
        return float(2 * self.delta_hat * start * np.exp(-self.delta_bar * time))

    def __str__(self) -> str:
        source = (
            "bounds in closed form"
            if self.status is Status.PROVED
            else f"bounds from a grid: {ESTIMATE}"
        )
        return (
            f"Theorem 5.4.2, {self.channel.name}: rate {self.rate:.4g} 1/s of "
            f"{self.channel.true_rate:.4g} 1/s for angles below {np.degrees(self.angle):.4g} deg "
            f"({source})"
        )


def thesis_constants(
    channel: Channel, angle: float, distance: float | None = None
) -> ThesisConstants:
    """Evaluate Theorem 5.4.2 for a channel.

    Parameters
    ----------
    channel : Channel
        Outputs that influence one another and nothing else.
    angle : float
        Angle below which rotation errors are to stay, above 0 and at most pi, rad.
    distance : float, optional
        Length below which position errors are to stay, m. Without it V_L alone limits them.

    Returns
    -------
    ThesisConstants
        The constants with the best delta.

    Raises
    ------
    OutputError
        If a gain is not symmetric positive definite, angle or distance is out of its range, or
        nothing limits errors on a group of unknown kind.
    """
    structure = check_structure(channel.dynamics)
    if not structure.definite:
        raise OutputError(
            f"Theorem 5.4.2, {channel.name}",
            expected="KP, KD and I symmetric positive definite",
            came=str(structure),
            cure="Give gains above zero.",
        )
    level = region_level(channel, angle, distance)
    if level == inf and channel.kind != "linear":
        raise OutputError(
            f"Theorem 5.4.2, {channel.name}",
            expected="a region of finite size",
            came="a group without angles",
            cure="Limit the `distance`.",
        )
    radius = region_radius(channel, angle, distance)
    bounds = suprema(channel, angle, radius)
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


def _finite(vector: np.ndarray, name: str, channel: Channel) -> np.ndarray:
    where = f"start of {channel.name}, `{name}`"
    numbers = as_floats(vector, where)
    if numbers.shape != (channel.size,):
        raise shape_error(where, (channel.size,), numbers.shape)
    if not np.isfinite(numbers).all():
        raise nonfinite_error(where, numbers)
    return numbers


def _delta_max(bounds: Suprema) -> float:
    product = 4 * bounds.W3 * bounds.W7
    span = (bounds.W5 + bounds.W6) ** 2 + 4 * bounds.W3 * bounds.W12**2
    return min(1 / bounds.W12, product / span)


def _decay(bounds: Suprema, delta: float) -> float:
    """Smaller root d of det(What - d W') = 0.

    What is linear in delta and W' positive, so the deltas for which a given d serves are an
    interval: the function has one hill.
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
