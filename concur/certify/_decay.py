"""Decays: the certified decay of a channel in the form that tubes need.

V = z^T P z / 2 with constant P decays at a rate on a domain of pose errors. This module bounds the
components of z, the distance to the boundary of the domain and the feedback by |z|_P =
sqrt(z^T P z), in rational numbers and rounded to the safe side where stated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, pi

import casadi as ca
import numpy as np

from concur.certify._bounds import (
    Rational,
    definite,
    largest_eigenvalue,
    rational,
    root_above,
    root_below,
    semidefinite,
    solve,
)
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel, is_flat
from concur.certify._checks import check
from concur.certify._status import Status
from concur.codegen import finite_floats
from concur.errors import OutputError
from concur.outputs.groups import OutputGroup

_ZERO = Fraction(0)

_SAMPLES = 256
"""Number of pose errors at which the size of the feedback is sampled."""


@dataclass(frozen=True, eq=False)
class Decay:
    """Decay of one channel: V = z^T P z / 2 decays at a rate on a domain.

    Parameters
    ----------
    channel : Channel
        The outputs.
    P : numpy.ndarray
        Symmetric positive definite matrix, shape (2 n, 2 n), in the channel's units.
    rate : float
        Decay rate alpha of sqrt(V), above zero, 1/s.
    angle : float, optional
        Bound of the rotation errors on which B depends, above 0 and at most pi, rad. Required
        if there are any.
    distance : float, optional
        Bound of the position errors on which B depends, above zero, m. Required if there are
        any.
    certified : Status
        Status of the proof of this decay. For abelian groups, and for SO(3) with isotropic gains
        and P, the constructor decides it if it is not PROVED.
    reduction, boxes, multipliers : str, numpy.ndarray, tuple of numpy.ndarray
        Proof of the decay, as in `ChannelCertificate`; not needed for abelian groups and for
        SO(3) with isotropic gains.

    Raises
    ------
    ShapeError
        If P is not a matrix of shape (2 n, 2 n).
    NonFiniteError
        If P has a NaN or an infinity.
    OutputError
        If P is not symmetric positive definite, the rate is not above zero, or a bound is out
        of range.
    """

    channel: Channel
    P: np.ndarray
    rate: float
    angle: float | None = None
    distance: float | None = None
    certified: Status = Status.UNDECIDED
    reduction: str | None = None
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 2)))
    multipliers: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        where = f"decay of {self.channel.name}"
        n = self.channel.size
        form = finite_floats(self.P, f"{where}, `P`", (2 * n, 2 * n))
        sound = np.array_equal(form, form.T) and definite(rational(form))
        expected, cure = "a symmetric positive definite matrix", "Take it from a certificate."
        check(sound, f"{where}, `P`", expected, "another matrix", cure)
        form = form.copy()
        form.setflags(write=False)
        object.__setattr__(self, "P", form)
        self._check(where, "rate", self.rate, inf, "1/s")
        units = {unit for factor, _, unit in self.channel.error_parts if not is_flat(factor)}
        for name, unit, most in (("angle", "rad", pi), ("distance", "m", inf)):
            value = getattr(self, name)
            if value is not None or unit in units:
                self._check(where, name, value, most, unit)

    @classmethod
    def of(cls, part: ChannelCertificate) -> Decay:
        """Decay and status of a channel's certificate."""
        if part.P is None or not part.rate > 0.0:
            raise OutputError(
                f"decay of {part.channel.name}",
                expected="a certificate with a rate and a constant P",
                came=f"a certificate without them: {part.reason.rstrip('.')}",
                cure='Certify a smaller domain, or use method="tight".',
            )
        return cls(
            part.channel,
            part.P,
            part.rate,
            part.angle,
            part.distance,
            part.status,
            part.reduction,
            part.boxes,
            part.multipliers,
        )

    @staticmethod
    def _check(where: str, name: str, value: float | None, most: float, unit: str) -> None:
        check(
            value is not None and 0.0 < value <= most and value < inf,
            f"{where}, `{name}`",
            f"a number above zero{'' if most == inf else ' and at most pi'}, {unit}",
            value,
            "Give the bound of the certificate, which holds on a bounded domain only.",
        )

    @cached_property
    def status(self) -> Status:
        """Whether the decay is proved."""
        if self.certified is Status.UNDECIDED and _falls(self):
            return Status.PROVED
        return self.certified

    @cached_property
    def limit(self) -> float:
        """Least |z|_P on the boundary of the domain, rounded down; infinite without boundary."""
        squares = []
        form = rational(self.P)
        for factor, places, unit in self.channel.error_parts:
            bound = {"rad": self.angle, "m": self.distance}[unit]
            if is_flat(factor):
                # B is the identity for all x; the logarithm of an angle still ends at pi.
                bound = pi if unit == "rad" else None
            if bound is not None:
                squares.append(Fraction(bound) ** 2 / widest_square(form, places))
        return root_below(min(squares)) if squares else inf

    @cached_property
    def push(self) -> float:
        """Largest sqrt(d^T P22 d) for |d| = 1, rounded up; metres are divided by the length."""
        n = self.channel.size
        return root_above(largest_eigenvalue(rational(self.P)[n:, n:], self.channel.length_metric))

    @cached_property
    def feedback_gain(self) -> float:
        """Largest |I^-1 (B^T KP x - KD ve)| for |z|_P = 1 over sampled x of the domain, 1/s^2.

        An estimate from samples, not proved, unless B does not matter. Metres are divided by the
        channel's length.
        """
        channel = self.channel
        root = np.linalg.inv(np.linalg.cholesky(self.P)).T
        scale = channel.scales[:, None] * np.linalg.inv(channel.inertia)
        dynamics = channel.dynamics
        rng, worst = np.random.default_rng(0), 0.0
        # Columns of the matrix that maps x to B^T KP x.
        flat = channel.kind == "linear" or channel.scalar
        errors = [np.zeros(channel.size)]
        if not flat:
            errors += [self._somewhere(rng) for _ in range(_SAMPLES)]
        for x in errors:
            turn = np.asarray(_error_map(dynamics.group, x)).T
            matrix = scale @ np.hstack([turn @ channel.stiffness, -channel.damping])
            worst = max(worst, float(np.linalg.norm(matrix @ root, 2)))
        return worst

    @cached_property
    def feedback_rate(self) -> float:
        """Largest rate of I^-1 (B^T KP x - KD ve) for |z|_P = 1 over sampled x, 1/s^3.

        Without a disturbance; the kappa' of `_sampling`. An estimate from samples, not proved;
        metres are divided by the channel's length, as for `feedback_gain`.
        """
        channel, worst = self.channel, 0.0
        group, inverse = channel.dynamics.group, np.linalg.inv(channel.inertia)
        scale = channel.scales[:, None] * inverse
        error = ca.SX.sym("x", channel.size)
        pull = ca.densify(group.error_map(error).T @ ca.DM(channel.stiffness) @ error)
        slope = ca.Function("slope", [error], [ca.densify(ca.jacobian(pull, error))])
        root = np.linalg.inv(np.linalg.cholesky(self.P)).T
        rng = np.random.default_rng(0)
        errors = [np.zeros(channel.size)]
        if channel.kind != "linear":
            errors += [self._somewhere(rng) for _ in range(_SAMPLES)]
        for x in errors:
            turn = _error_map(group, x)
            # There B^T x = x.
            back = np.eye(len(x)) if channel.scalar else turn.T
            by_pose = -channel.damping @ inverse @ back @ channel.stiffness
            by_velocity = channel.damping @ inverse @ channel.damping - slope(x).full() @ turn
            matrix = scale @ np.hstack([by_pose, by_velocity])
            worst = max(worst, float(np.linalg.norm(matrix @ root, 2)))
        return worst

    @cached_property
    def damping_gain(self) -> float:
        """Largest |I^-1 KD d| for |d| = 1, 1/s; metres are divided by the channel's length."""
        scale = self.channel.scales
        gain = np.linalg.solve(self.channel.inertia, self.channel.damping)
        return float(np.linalg.norm(scale[:, None] * gain / scale, 2))

    def _somewhere(self, rng: np.random.Generator) -> np.ndarray:
        """Random pose error on the boundary of the domain."""
        x = np.zeros(self.channel.size)
        for factor, places, unit in self.channel.error_parts:
            bound = None if is_flat(factor) else {"rad": self.angle, "m": self.distance}[unit]
            if bound is not None:
                direction = rng.normal(size=places.size)
                share = rng.uniform() if unit == "rad" else 1.0
                x[places] = share * bound * direction / np.linalg.norm(direction)
        return x


def _falls(decay: Decay) -> bool:
    """Whether V decays at zero error in rational numbers and this implies decay on the domain.

    On abelian groups B = 1. On SO(3) with multiples of the identity B^T x = x, and with P12 <= 0
    V decays the faster, the smaller sym(B) <= 1 is.
    """
    channel, P = decay.channel, rational(decay.P)
    n = channel.size
    if channel.scalar:
        a, c, b = decay.P[0, 0], decay.P[0, n], decay.P[n, n]
        if c > 0.0 or not np.array_equal(decay.P, np.kron([[a, c], [c, b]], np.eye(n))):
            return False
    elif channel.kind != "linear":
        return False
    one = rational(np.eye(n))
    inertia = rational(channel.inertia)
    if not (np.array_equal(channel.inertia, channel.inertia.T) and definite(inertia)):
        return False
    flow = np.full((2 * n, 2 * n), _ZERO)
    flow[:n, n:] = -one
    flow[n:, :n] = solve(inertia, rational(channel.stiffness))
    flow[n:, n:] = -solve(inertia, rational(channel.damping))
    change = P @ flow
    return semidefinite(-(change + change.T) - 2 * Fraction(decay.rate) * P)


def widest_square(form: Rational, places: np.ndarray) -> Fraction:
    """Upper bound of the squared length of a part of x where z^T form z = 1."""
    chosen = np.full(form.shape, _ZERO)
    chosen[places, places] = Fraction(1)
    return largest_eigenvalue(chosen, form)


def _error_map(group: OutputGroup, x: np.ndarray) -> np.ndarray:
    return np.asarray(ca.DM(ca.evalf(group.error_map(ca.SX(x)))).full())
