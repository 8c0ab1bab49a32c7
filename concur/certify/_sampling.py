"""Sampled torques: what holding and delaying them does, and how long a period may be.

A torque that is held for a period T and comes m periods late is wrong by at most (m + 1) T times
its rate, so that the outputs are pushed by

    |d| <= (m + 1) T L,   L = sup |Jg Mhat^-1 H^T B du/dt|.

L along a motion is known afterwards. Ahead of it the error's part is bounded by the certificate:
the feedback changes at most at the rate kappa' |z|_P + k |d|, k = |I^-1 KD|, so that

    |d| <= t (L + kappa' |z|_P) / (1 - t k),   t = (m + 1) T < 1 / k,

L now that of the reference followed without error, with what holding does to Jg Mhat^-1 H^T B left
out. With |z|_P <= p |d| / alpha there is a tube where alpha (1 - t k) > p t kappa'.

For small errors there are exact limits. Where KP, KD and I are diagonal in common modes, each
mode is xddot = -kp x - kd xdot. With both terms held for T it is stable if and only if
T < min(2 / kd, 2 kd / kp), by Jury's criterion on

    z^2 - (2 - kd T - kp T^2 / 2) z + 1 - kd T + kp T^2 / 2;

with both late by tau, without holding, if and only if tau < atan(kd w / kp) / w at the crossover
w^2 = (kd^2 + sqrt(kd^4 + 4 kp^2)) / 2. Held and late, T / 2 counts as a delay, nearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, hypot, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from concur.certify._channels import Channel
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._disturbances import torque_effect
from concur.certify._robust import tubes
from concur.codegen import as_floats, finite_floats, shape_error
from concur.control import Servo
from concur.errors import OutputError

_MOST = 1e12
"""Factor of a disturbance beyond which every multiple counts as borne."""

_COMMON = 1e-9
"""Largest coupling, relative to the damping, of modes that count as separate."""


@dataclass(frozen=True)
class SampleLimits:
    """How slowly the torques of a channel may come, for small errors.

    All are computed in floating point from the linearised loop.

    Parameters
    ----------
    channel : str
        Name of the channel.
    period : float
        Period below which torques may be held, without delay, s.
    delay : float
        Time below which torques may be late, without holding, s.
    crossover : float
        Angular frequency at which the loop of the mode with the least delay has gain one, rad/s.
    phase_margin : float
        Phase left there, rad.
    """

    channel: str
    period: float
    delay: float
    crossover: float
    phase_margin: float

    @property
    def advised(self) -> float:
        """Period for which holding hardly matters: a tenth of the delay, s."""
        return self.delay / 10

    def allows(self, period: float, delay: float = 0.0) -> bool:
        """Whether torques may be held and late at once, half a period counting as delay.

        Parameters
        ----------
        period : float
            Time for which a torque is held, s.
        delay : float, default 0
            Time by which it is late, s.

        Returns
        -------
        bool
            Whether period and delay + period / 2 are below their limits: without delay that is
            surely stable, with delay it is a rule.
        """
        return period < self.period and delay + period / 2 < self.delay

    def __str__(self) -> str:
        return (
            f"{self.channel}: held for less than {self.period:.4g} s, late by less than "
            f"{self.delay:.4g} s (phase margin {np.degrees(self.phase_margin):.4g} deg at "
            f"{self.crossover:.4g} rad/s); advised period {self.advised:.3g} s"
        )


def sample_limits(channel: Channel) -> SampleLimits:
    """Return how slowly the torques of a channel may come.

    Parameters
    ----------
    channel : Channel
        Outputs with symmetric positive definite gains.

    Returns
    -------
    SampleLimits
        The least over its modes.

    Raises
    ------
    OutputError
        If the gains are not positive definite, or have no common modes.
    """
    modes = _modes(channel)
    worst = min(modes, key=lambda mode: _delay(*mode)[0])
    delay, crossover = _delay(*worst)
    return SampleLimits(
        channel.name,
        period=min(min(2 / kd, 2 * kd / kp) for kp, kd in modes),
        delay=delay,
        crossover=crossover,
        phase_margin=delay * crossover,
    )


def output_jerk(servo: Servo, times: ArrayLike, q: ArrayLike, u: ArrayLike) -> np.ndarray:
    """Rates Jg Mhat^-1 H^T B du/dt at which torques along a motion push the outputs.

    Parameters
    ----------
    servo : Servo
        The servo.
    times : array_like
        Ascending times, shape (k,), s.
    q, u : array_like
        Configurations and controls at these times, as in a run, shapes (k, nq) and (k, nu).

    Returns
    -------
    numpy.ndarray
        By differences of successive torques, shape (k - 1, size), m/s^3 and rad/s^3.

    Raises
    ------
    ShapeError
        If the shapes do not fit, or there are fewer than two times.
    NonFiniteError
        If there is a NaN or an infinity.
    OutputError
        If the times do not ascend.
    """
    where = f"motion of `{servo.name}`"
    given = finite_floats(times, f"{where}, `times`")
    if given.ndim != 1 or given.size < 2:
        raise shape_error(f"{where}, `times`", (2,), given.shape)
    places = finite_floats(q, f"{where}, `q`", (given.size, servo.nq))
    controls = finite_floats(u, f"{where}, `u`", (given.size, servo.nu))
    steps = np.diff(given)
    if not (steps > 0.0).all():
        raise OutputError(
            f"{where}, `times`",
            expected="ascending times",
            came=f"a step of {steps.min():.6g} s",
            cure="Sort the samples by time and leave out doubles.",
        )
    slopes = np.diff(controls, axis=0) / steps[:, None]
    effects = [torque_effect(servo, at) for at in places[:-1]]
    return np.asarray(np.einsum("kij,kj->ki", np.array(effects), slopes))


def hold_disturbance(jerks: ArrayLike, period: float, late: int = 0) -> Disturbance:
    """Bound what holding torques for a period, and their delay, do.

    Parameters
    ----------
    jerks : array_like
        Rates as those of `output_jerk`, shape (k, size), m/s^3 and rad/s^3.
    period : float
        Time for which a torque is held, not negative, s.
    late : int, default 0
        Whole periods by which it is late.

    Returns
    -------
    Disturbance
        (late + 1) period times the largest rates; sampled.

    Raises
    ------
    ShapeError
        If the rates are no matrix.
    NonFiniteError
        If there is a NaN or an infinity.
    OutputError
        If the period or the delay is negative.
    """
    rates = _rates(jerks)
    for name, value in (("period", period), ("late", late)):
        if not 0.0 <= value < inf or (name == "late" and value != int(value)):
            raise OutputError(
                f"sampled torques, `{name}`",
                expected="a time, not negative, s" if name == "period" else "a number of periods",
                came=str(value),
                cure="Give what the controller does.",
            )
    points = (late + 1) * period * rates
    rounds = f"{late} period{'' if late == 1 else 's'} late"
    return Disturbance(
        np.abs(points).max(axis=0),
        f"torques held for {period:.4g} s, {rounds}, by {len(points)} samples of their rate",
        sampled=True,
        points=points,
    )


def largest_period(
    decays: Sequence[Decay],
    jerks: ArrayLike,
    disturbance: Disturbance | None = None,
    starts: ArrayLike | None = None,
    late: int = 0,
) -> float:
    """Return the largest period for which all tubes stay in their domains.

    The answer rests on the samples of the rates, and on the linearised loop: it is no proof.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    jerks : array_like
        Rates as those of `output_jerk`, shape (k, size).
    disturbance : Disturbance, optional
        What acts besides.
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.
    late : int, default 0
        Whole periods by which torques are late.

    Returns
    -------
    float
        At most the period at which small errors begin to grow, s; zero when a tube leaves its
        domain whatever the period.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    OutputError
        If the gains have no common modes, or an option is out of its range.
    """
    limits = [sample_limits(decay.channel) for decay in decays]
    rates = _rates(jerks)

    def fits(period: float) -> bool:
        total = hold_disturbance(rates, period, late)
        if disturbance is not None:
            total = total + disturbance
        return all(tube.fits for tube in tubes(decays, total, starts))

    high = min(min(one.period, one.delay / (late + 0.5)) for one in limits)
    if fits(high):
        return high
    if not fits(0.0):
        return 0.0
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def period_ahead(
    decays: Sequence[Decay],
    jerks: ArrayLike,
    starts: ArrayLike | None = None,
    late: int = 0,
) -> float:
    """Return the largest period for which all tubes stay in their domains, ahead of any motion.

    What the error adds to the rates of the torques is bounded by the certificate, not sampled as
    in `largest_period`, so that the period is shorter.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    jerks : array_like
        Rates as those of `output_jerk` along the reference without error, shape (k, size); zeros
        for a reference at rest.
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.
    late : int, default 0
        Whole periods by which torques are late.

    Returns
    -------
    float
        The period, s; zero when a start leaves its domain. It rests on samples of the reference's
        rates and of the feedback's: it is no proof.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    OutputError
        If the number of periods is negative.
    """
    rates = _rates(jerks)
    hold_disturbance(rates, 0.0, late)  # refuses what is out of its range
    begin = np.zeros(len(decays)) if starts is None else as_floats(starts, "starts of the loop")
    if begin.shape != (len(decays),):
        raise shape_error("starts of the loop", (len(decays),), begin.shape)
    size = sum(decay.channel.size for decay in decays)
    if rates.shape[1] != size:
        raise shape_error("sampled torques, `jerks`", (len(rates), size), rates.shape)
    return min(
        _time_ahead(decay, rates, float(start)) / (late + 1)
        for decay, start in zip(decays, begin, strict=True)
    )


def _time_ahead(decay: Decay, rates: np.ndarray, start: float) -> float:
    """Largest age of a torque for which the channel's tube fits."""
    own = rates[:, decay.channel.index] * decay.channel.scales
    jerk = float(np.linalg.norm(own, axis=1).max())
    if not start < decay.limit:
        return 0.0
    growth = decay.rate * decay.damping_gain + decay.push * decay.feedback_rate
    share = 0.0 if decay.limit == inf else decay.push * jerk / decay.limit
    # A hair below, where the bound is finite and inside.
    return (1.0 - 1e-9) * decay.rate / (growth + share)


def largest_factor(
    decays: Sequence[Decay], disturbance: Disturbance, starts: ArrayLike | None = None
) -> float:
    """Return how often a disturbance may act at once while all tubes stay in their domains.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    disturbance : Disturbance
        Bound of the disturbance over all outputs; that of wrong inertias grows with the feedback.
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.

    Returns
    -------
    float
        The factor, by bisection to 1e-9 of it: one or more when the disturbance itself is borne;
        infinite when no multiple of it leads out, zero when a start does.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    """

    def fits(factor: float) -> bool:
        scaled = [
            None if part is None else factor * part
            for part in (disturbance.components, disturbance.points, disturbance.feedback)
        ]
        assert scaled[0] is not None
        many = Disturbance(scaled[0], disturbance.source, disturbance.sampled, *scaled[1:])
        return all(tube.fits for tube in tubes(decays, many, starts))

    if not fits(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 4.0 * high
        if high > _MOST:
            return inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rates(jerks: ArrayLike) -> np.ndarray:
    where = "sampled torques, `jerks`"
    rates = finite_floats(jerks, where)
    if rates.ndim != 2 or not len(rates):
        raise shape_error(where, (1, rates.shape[-1] if rates.ndim else 1), rates.shape)
    return rates


def _modes(channel: Channel) -> list[tuple[float, float]]:
    """Stiffness and damping over inertia of the common modes."""
    expected = "KP, KD and I symmetric positive definite with common modes"
    cure = "Give KP and KD as multiples of I, output by output."
    try:
        # Modes of a generic mean are those of both, when there are any.
        mean = channel.stiffness + sqrt(2.0) * channel.damping
        _, shapes = eigh(mean, channel.inertia)
    except np.linalg.LinAlgError:
        shapes = None
    found = []
    if shapes is not None:
        for gain in (channel.stiffness, channel.damping):
            seen = shapes.T @ gain @ shapes
            rest = seen - np.diag(np.diag(seen))
            if np.abs(rest).max() > _COMMON * np.abs(seen).max() or np.diag(seen).min() <= 0.0:
                break
            found.append(np.diag(seen))
    if len(found) < 2:
        raise OutputError(
            f"sampled torques of {channel.name}",
            expected=expected,
            came="others",
            cure=cure,
        )
    return [(float(kp), float(kd)) for kp, kd in zip(*found, strict=True)]


def _delay(kp: float, kd: float) -> tuple[float, float]:
    """Largest delay and crossover of a mode."""
    crossover = sqrt((kd**2 + hypot(kd**2, 2 * kp)) / 2)
    return atan2(kd * crossover, kp) / crossover, crossover
