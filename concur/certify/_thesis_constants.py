"""Constants of Theorem 5.4.2 for a channel, and the claims of the theorem with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt

import numpy as np

from concur.certify._bounds import rational
from concur.certify._channels import Channel
from concur.certify._status import ESTIMATE, Status
from concur.codegen import finite_floats
from concur.rounding import rounded_down


@dataclass(frozen=True, eq=False)
class ThesisConstants:
    """Theorem 5.4.2 for a channel, in numbers.

    Parameters
    ----------
    channel : Channel
        The outputs.
    angle : float
        Bound of the rotation errors, rad.
    distance : float or None
        Bound of the position errors, m; None when not requested.
    status : Status
        PROVED when the bounds are closed forms, rounded to the safe side, and the rate was
        verified in rational arithmetic; UNDECIDED when the bounds come from a grid.
    W12, W3, W5, W6, W7 : float
        Bounds over the region, in 1/s (W12, W7) and 1/s^2.
    W_R : float
        Radius of the region in the norm of KP.
    level : float
        W_R^2 / 2: the theorem holds for V_L(0) below it.
    delta_max : float
        Upper end of the range of delta, s.
    delta : float
        The delta from 0 to `delta_max` with the largest delta_bar, s.
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
        """Decay rate of the error, delta_bar / 2, 1/s."""
        return self.delta_bar / 2

    @property
    def transient_bound(self) -> float:
        """Transient bound: largest ratio of the error at any time to the start, by sqrt(V_L)."""
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
            If an argument is not a vector of n numbers.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        energy = Fraction(0)
        for vector, metric, name in (
            (x, self.channel.stiffness, "x"),
            (ve, self.channel.inertia, "ve"),
        ):
            where = f"start of {self.channel.name}, `{name}`"
            part = rational(finite_floats(vector, where, (self.channel.size,)))
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
        """Compute the bound of V_L after a time.

        Parameters
        ----------
        start : float
            V_L at the start, below `level`.
        time : float
            Time since the start, nonnegative, s.

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
            f"Theorem 5.4.2, {self.channel.name}: rate {rounded_down(self.rate, 4)} 1/s of "
            f"{self.channel.true_rate:.4g} 1/s for angles below {np.degrees(self.angle):.4g} deg "
            f"({source})"
        )
