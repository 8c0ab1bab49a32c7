"""Sampled torques: the disturbance by hold and delay, and the maximum hold period.

A torque that is held for a period T and delayed by m periods differs from the ideal one by at most
(m + 1) T times its rate. The resulting disturbance of the outputs is

    |d| <= (m + 1) T L,   L = sup |Jg Mhat^-1 H^T B du/dt|.

L along a motion is known afterwards. Before the motion the certificate bounds the error's part: the
feedback changes at most at the rate kappa' |z|_P + k |d|, k = |I^-1 KD|, so that

    |d| <= t (L + kappa' |z|_P) / (1 - t k),   t = (m + 1) T < 1 / k,

with L now that of the reference followed without error, neglecting the effect of the hold on
Jg Mhat^-1 H^T B. With |z|_P <= p |d| / alpha there is a tube where alpha (1 - t k) > p t kappa'.

For small errors there are exact limits. Where KP, KD and I are diagonal in common modes, each
mode is xddot = -kp x - kd xdot. With both terms held for T it is stable if and only if
T < min(2 / kd, 2 kd / kp), by Jury's criterion on

    z^2 - (2 - kd T - kp T^2 / 2) z + 1 - kd T + kp T^2 / 2;

with both delayed by tau, without a hold, if and only if tau < atan(kd w / kp) / w at the crossover
w^2 = (kd^2 + sqrt(kd^4 + 4 kp^2)) / 2. With hold and delay, T / 2 acts
approximately as a further delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, hypot, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from concur.certify._channels import Channel
from concur.certify._checks import check
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._disturbances import torque_effect
from concur.certify._robust import tubes
from concur.codegen import as_floats, finite_floats, shape_error
from concur.control import Servo
from concur.errors import OutputError

_MOST = 1e12
"""Factor of a disturbance above which every multiple counts as tolerated."""

_COMMON = 1e-9
"""Largest coupling, relative to the damping, of modes that count as separate."""


@dataclass(frozen=True)
class SampleLimits:
    """Limits of hold period and delay of a channel's torques, for small errors.

    All are computed in floating point from the linearised loop.

    Parameters
    ----------
    channel : str
        Name of the channel.
    period : float
        Largest hold period without delay, s.
    delay : float
        Largest delay without a hold, s.
    crossover : float
        Angular frequency at which the loop of the mode with the least delay has gain 1, rad/s.
    phase_margin : float
        Phase margin at that frequency, rad.
    """

    channel: str
    period: float
    delay: float
    crossover: float
    phase_margin: float

    @property
    def advised(self) -> float:
        """Recommended hold period, with a small effect: a tenth of the delay, s."""
        return self.delay / 10

    def allows(self, period: float, delay: float = 0.0) -> bool:
        """Whether a hold period and a delay are allowed together; half a period counts as delay.

        Parameters
        ----------
        period : float
            Hold period, s.
        delay : float, default 0
            Delay, s.

        Returns
        -------
        bool
            Whether period and delay + period / 2 are below their limits. This implies stability
            without delay; with delay it is a rule of thumb.
        """
        return period < self.period and delay + period / 2 < self.delay

    def __str__(self) -> str:
        return (
            f"{self.channel}: held for less than {self.period:.4g} s, late by less than "
            f"{self.delay:.4g} s (phase margin {np.degrees(self.phase_margin):.4g} deg at "
            f"{self.crossover:.4g} rad/s); advised period {self.advised:.3g} s"
        )


def sample_limits(channel: Channel) -> SampleLimits:
    """Compute the limits of hold period and delay of a channel's torques.

    Parameters
    ----------
    channel : Channel
        Outputs with symmetric positive definite gains.

    Returns
    -------
    SampleLimits
        Minimum over the channel's modes.

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
    """Compute output jerks Jg Mhat^-1 H^T B du/dt from the torques along a motion.

    Parameters
    ----------
    servo : Servo
        The servo.
    times : array_like
        Ascending times, shape (k,), s.
    q, u : array_like
        Configurations and control inputs at these times, as in a run, shapes (k, nq) and (k, nu).

    Returns
    -------
    numpy.ndarray
        From differences of successive torques, shape (k - 1, size), m/s^3 and rad/s^3.

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
            cure="Sort the samples by time and remove duplicates.",
        )
    slopes = np.diff(controls, axis=0) / steps[:, None]
    effects = [torque_effect(servo, at) for at in places[:-1]]
    return np.asarray(np.einsum("kij,kj->ki", np.array(effects), slopes))


def hold_disturbance(jerks: ArrayLike, period: float, delay_periods: int = 0) -> Disturbance:
    """Bound the disturbance by hold and delay of the torques.

    Parameters
    ----------
    jerks : array_like
        Rates as from `output_jerk`, shape (k, size), m/s^3 and rad/s^3.
    period : float
        Hold period, nonnegative, s.
    delay_periods : int, default 0
        Delay in whole periods.

    Returns
    -------
    Disturbance
        (delay_periods + 1) period times the largest rates; sampled.

    Raises
    ------
    ShapeError
        If the rates are not a matrix.
    NonFiniteError
        If there is a NaN or an infinity.
    OutputError
        If the period or the delay is negative.
    """
    rates = _rates(jerks)
    for name, value in (("period", period), ("delay_periods", delay_periods)):
        if not 0.0 <= value < inf or (name == "delay_periods" and value != int(value)):
            raise OutputError(
                f"sampled torques, `{name}`",
                expected="a nonnegative time, s" if name == "period" else "a number of periods",
                came=str(value),
                cure="Give the timing of the controller.",
            )
    points = (delay_periods + 1) * period * rates
    rounds = f"{delay_periods} period{'' if delay_periods == 1 else 's'} late"
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
    delay_periods: int = 0,
) -> float:
    """Compute the maximum hold period for which all tubes stay in their domains.

    The result is an estimate from samples of the rates and from the linearised loop, not proved.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    jerks : array_like
        Rates as from `output_jerk`, shape (k, size).
    disturbance : Disturbance, optional
        Additional disturbance.
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.
    delay_periods : int, default 0
        Delay of the torques in whole periods.

    Returns
    -------
    float
        At most the period at which small errors begin to grow, s; zero when a tube leaves its
        domain for every period.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    OutputError
        If the gains have no common modes, or an option is out of range.
    """
    limits = [sample_limits(decay.channel) for decay in decays]
    rates = _rates(jerks)

    def fits(period: float) -> bool:
        total = hold_disturbance(rates, period, delay_periods)
        if disturbance is not None:
            total = total + disturbance
        return all(tube.fits for tube in tubes(decays, total, starts))

    high = min(min(one.period, one.delay / (delay_periods + 0.5)) for one in limits)
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
    delay_periods: int = 0,
) -> float:
    """Compute the maximum hold period before any motion is known.

    The certificate bounds the error's part of the torque rates, which `largest_period` samples; the
    period is therefore shorter.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    jerks : array_like
        Rates as from `output_jerk` along the reference without error, shape (k, size); zeros
        for a reference at rest.
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.
    delay_periods : int, default 0
        Delay of the torques in whole periods.

    Returns
    -------
    float
        The period, s; zero when a start leaves its domain. An estimate from samples of the rates
        of the reference and of the feedback, not proved.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    OutputError
        If the number of periods is negative.
    """
    rates = _rates(jerks)
    hold_disturbance(rates, 0.0, delay_periods)  # rejects arguments out of range
    begin = np.zeros(len(decays)) if starts is None else as_floats(starts, "starts of the loop")
    if begin.shape != (len(decays),):
        raise shape_error("starts of the loop", (len(decays),), begin.shape)
    size = sum(decay.channel.size for decay in decays)
    if rates.shape[1] != size:
        raise shape_error("sampled torques, `jerks`", (len(rates), size), rates.shape)
    return min(
        _time_ahead(decay, rates, float(start)) / (delay_periods + 1)
        for decay, start in zip(decays, begin, strict=True)
    )


def _time_ahead(decay: Decay, rates: np.ndarray, start: float) -> float:
    """Largest age of a torque, s, for which the channel's tube fits."""
    own = rates[:, decay.channel.index] * decay.channel.scales
    jerk = float(np.linalg.norm(own, axis=1).max())
    if not start < decay.limit:
        return 0.0
    growth = decay.rate * decay.damping_gain + decay.push * decay.feedback_rate
    share = 0.0 if decay.limit == inf else decay.push * jerk / decay.limit
    # Slightly smaller, where the bound is finite and inside the domain.
    return (1.0 - 1e-9) * decay.rate / (growth + share)


def disturbance_margin(
    decays: Sequence[Decay], disturbance: Disturbance, starts: ArrayLike | None = None
) -> float:
    """Compute the largest factor of a disturbance with every tube still inside its domain.

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
        The factor, by bisection to a relative 1e-9: one or more when the disturbance itself is
        tolerated; infinite when every multiple is, zero when a start leaves its domain.

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
    check(channel.integral is None, channel.name, "a channel without integral", "one with", cure)
    try:
        # The modes of a generic mean are the common modes of both, if these exist.
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
            came="gains without common modes",
            cure=cure,
        )
    return [(float(kp), float(kd)) for kp, kd in zip(*found, strict=True)]


def _delay(kp: float, kd: float) -> tuple[float, float]:
    """Largest delay and crossover of a mode."""
    crossover = sqrt((kd**2 + hypot(kd**2, 2 * kp)) / 2)
    return atan2(kd * crossover, kp) / crossover, crossover
