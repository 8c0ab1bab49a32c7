"""Certificate of one channel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from concur.certify._bounds import root_above
from concur.certify._channels import Channel
from concur.certify._status import Status
from concur.certify._thesis_constants import ThesisConstants
from concur.rounding import rounded_down


@dataclass(frozen=True, eq=False)
class ChannelCertificate:
    """Certificate of one channel: outputs that are coupled to each other and to no others.

    Parameters
    ----------
    channel : Channel
        The outputs with their gains.
    status : Status
        Whether the decay is proved.
    reason : str
        Explanation of the status.
    rate : float
        Claimed decay rate, 1/s; zero without a claim.
    level : float
        Bound of V_L = (x KP x + ve I ve) / 2; infinite when every start is covered.
    angle : float or None
        Bound of the rotation errors, rad; None without rotations.
    distance : float or None
        Bound of the position errors that rotations act on, m; None without them.
    P : numpy.ndarray or None
        Symmetric matrix of the Lyapunov function z^T P z, z = (x, ve), shape (2 n, 2 n), in m,
        rad and s; None if absent.
    weight, lower, upper : float
        Factor of z^T P z in the norm of the whole loop, and numbers with
        lower D <= P <= upper D, D = diag(1 / length^2 for metres, 1 for radians).
    reduction : str
        Name of the symmetry argument that extends the proof from `boxes` to all errors.
    boxes : numpy.ndarray
        Lower and upper ends of the boxes of rotation vectors on which the decay was proved,
        shape (b, k, 2), rad.
    tested : int
        Number of boxes evaluated in all attempts.
    multipliers : tuple of numpy.ndarray
        Multipliers L and M of the matrix inequality, each of shape (2 n, n).
    constants : ThesisConstants or None
        Constants of Theorem 5.4.2, with the method "thesis".
    seconds : float
        Duration of search and proof, s.
    """

    channel: Channel
    status: Status
    reason: str
    rate: float
    level: float
    angle: float | None
    distance: float | None
    P: np.ndarray | None = None
    weight: float = 1.0
    lower: float = 0.0
    upper: float = math.inf
    reduction: str = "none"
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 2)))
    tested: int = 0
    multipliers: tuple[np.ndarray, np.ndarray] | None = None
    constants: ThesisConstants | None = None
    seconds: float = 0.0

    @property
    def true_rate(self) -> float:
        """Linearized rate, 1/s: decay rate of small errors."""
        return self.channel.true_rate

    @property
    def transient_bound(self) -> float:
        """Transient bound c of |z(t)| <= c exp(-rate t) |z(0)|; NaN without a constant P."""
        if self.P is None:
            return math.nan
        return root_above(Fraction(self.upper) / Fraction(self.lower))

    def form(self, x: np.ndarray, ve: np.ndarray) -> float:
        """Weighted value of the quadratic Lyapunov function.

        Parameters
        ----------
        x, ve : numpy.ndarray
            Pose and velocity error of the channel, shape (n,).

        Returns
        -------
        float
            weight z^T P z; NaN without a constant P.
        """
        if self.P is None:
            return math.nan
        z = np.concatenate([x, ve])
        return float(self.weight * (z @ self.P @ z))

    def __str__(self) -> str:
        room = [] if self.angle is None else [f"angle {np.degrees(self.angle):.4g} deg"]
        room += [] if self.distance is None else [f"distance {rounded_down(self.distance, 4)} m"]
        if self.level < math.inf:
            room.append(f"(x KP x + ve I ve) / 2 below {rounded_down(self.level, 4)}")
        elif self.status is Status.PROVED:
            room = ["from any start"]
        where = ", ".join(room) or "no region"
        return (
            f"{self.channel.name}: {self.status.name}, rate {rounded_down(self.rate, 4)} 1/s of "
            f"{self.true_rate:.4g} 1/s, {where}. {self.reason}"
        )
