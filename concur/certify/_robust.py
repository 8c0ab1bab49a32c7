"""Tubes: bounds of the tracking error of a certified loop under a bounded disturbance.

With an unmodelled output acceleration d,

    xdot = -B(x) ve,   vedot = I^-1 (B(x)^T KP x - KD ve) + d.

Where V = z^T P z / 2 with constant P decays at the rate alpha on a domain of x, the norm
|z|_P = sqrt(z^T P z) obeys there

    d/dt |z|_P <= -alpha |z|_P + sqrt(d^T P22 d)
    |z(t)|_P <= exp(-alpha t) |z(0)|_P + (1 - exp(-alpha t)) r,   r = sup sqrt(d^T P22 d) / alpha

as long as x stays in the domain. It does when max(|z(0)|_P, r) is less than the least |z|_P on
the domain's boundary; V_L cannot show this, as it may grow under a disturbance.

A disturbance may also grow with the feedback, for example for a wrong inertia:
d = d0 + D nu_fb. Then the norms y of the channels obey
``ydot_i <= -alpha_i y_i + p_i (d0_i + sum_j delta_ij kappa_j y_j)`` with delta_ij = sup |D_ij|,
kappa = sup |I^-1 [B^T KP, -KD] P^-1/2| and p = sqrt(lambda_max(P22)). For one channel there is a
tube when alpha > p delta kappa; the difference takes the place of alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._bounds import float_above, rational, root_above
from concur.certify._checks import check
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._status import ESTIMATE, Status
from concur.certify._tube import Tube
from concur.codegen import LARGEST, as_floats, shape_error

_ZERO = Fraction(0)

_MOST_COMPONENTS = 12
"""Largest number of components for which corners are evaluated; else the enclosing ball is."""


def tube(decay: Decay, disturbance: float | ArrayLike | Disturbance, start: float = 0.0) -> Tube:
    """Bound the error of one channel under a disturbance.

    Parameters
    ----------
    decay : Decay
        Certified decay of the channel.
    disturbance : float, array_like or Disturbance
        A number bounds the length of d, with metres divided by the channel's length. An array,
        shape (n,), or a `Disturbance` of the channel's size bounds each component, m/s^2 and
        rad/s^2.
    start : float, default 0
        Largest |z|_P at the start, nonnegative.

    Returns
    -------
    Tube
        PROVED when the decay is proved, the disturbance is not sampled, and the tube fits.

    Raises
    ------
    ShapeError
        If the disturbance has another size than the channel.
    OutputError
        If a bound is negative.
    """
    if isinstance(disturbance, Disturbance):
        if disturbance.size != decay.channel.size:
            raise shape_error(
                f"disturbance of {decay.channel.name}", (decay.channel.size,), (disturbance.size,)
            )
        local = np.arange(decay.channel.size)
        return _tubes([decay], [local], disturbance, [start])[0]
    bound = as_floats(disturbance, f"disturbance of {decay.channel.name}")
    if bound.ndim:
        return tube(decay, Disturbance(bound), start)
    length = _not_negative(float(bound), f"disturbance of {decay.channel.name}")
    start = _not_negative(start, f"start of {decay.channel.name}")
    push = float_above(Fraction(decay.push) * Fraction(length))
    return _tube(decay, push, start, None, length)


def tubes(
    decays: Sequence[Decay], disturbance: ArrayLike | Disturbance, starts: ArrayLike | None = None
) -> tuple[Tube, ...]:
    """Bound the errors of all channels of a loop under a disturbance.

    Parameters
    ----------
    decays : sequence of Decay
        One for each channel of the loop.
    disturbance : array_like or Disturbance
        Bound of the disturbance over all outputs, shape (size,).
    starts : array_like, optional
        Largest |z|_P of each channel at the start, shape (channels,); default zero.

    Returns
    -------
    tuple of Tube
        One for each channel. If the disturbance grows with the feedback, they hold jointly.

    Raises
    ------
    ShapeError
        If the channels do not match the outputs, or the starts the channels.
    OutputError
        If a start is negative.
    """
    if not isinstance(disturbance, Disturbance):
        disturbance = Disturbance(as_floats(disturbance, "disturbance"))
    index = [decay.channel.index for decay in decays]
    places = np.sort(np.concatenate([np.zeros(0, dtype=int), *index]))
    if not np.array_equal(places, np.arange(disturbance.size)):
        raise shape_error("disturbance of the loop", (places.size,), (disturbance.size,))
    given = np.zeros(len(decays)) if starts is None else as_floats(starts, "starts of the loop")
    if given.shape != (len(decays),):
        raise shape_error("starts of the loop", (len(decays),), given.shape)
    return _tubes(decays, index, disturbance, [float(start) for start in given])


def _tubes(
    decays: Sequence[Decay],
    index: Sequence[np.ndarray],
    disturbance: Disturbance,
    starts: Sequence[float],
) -> tuple[Tube, ...]:
    pushes = [
        _push(decay, places, disturbance) for decay, places in zip(decays, index, strict=True)
    ]
    begin = [
        _not_negative(start, f"start of {decay.channel.name}")
        for decay, start in zip(decays, starts, strict=True)
    ]
    if disturbance.feedback is None:
        source = disturbance.source if disturbance.sampled else None
        return tuple(
            _tube(decay, push, start, source, _local(disturbance, places))
            for decay, push, start, places in zip(decays, pushes, begin, index, strict=True)
        )
    rates = np.array([decay.rate for decay in decays])
    growth = _growth(decays, index, disturbance.feedback)
    still = _settled(growth / rates[:, None], np.array(pushes) / rates, np.zeros(len(decays)))
    least = _settled(growth / rates[:, None], np.array(pushes) / rates, np.array(begin))
    # The bounds of the channels depend on each other: all tubes must fit.
    fit = all(decay.limit > radius for decay, radius in zip(decays, least, strict=True))
    if not np.isfinite(least).all():
        reason = "The disturbance grows with the feedback faster than the error decays."
    elif not fit:
        reason = "A tube does not fit in the domain on which the decay is certified."
    else:
        reason = f"Bounds from samples ({disturbance.source}): {ESTIMATE}."
    return tuple(
        Tube(decay, Status.UNDECIDED, reason, start, float(end), float(radius), 0.0)
        for decay, start, end, radius in zip(decays, begin, still, least, strict=True)
    )


def _local(disturbance: Disturbance, places: np.ndarray) -> Disturbance:
    """Disturbance of one channel."""
    points = None if disturbance.points is None else disturbance.points[:, places]
    own = disturbance.components[places]
    return Disturbance(own, disturbance.source, disturbance.sampled, points)


def _tube(
    decay: Decay, push: float, start: float, sampled: str | None, given: Disturbance | float
) -> Tube:
    """One tube from the largest sqrt(d^T P22 d)."""
    ultimate = float_above(Fraction(push) / Fraction(decay.rate))
    radius = max(start, ultimate)
    status = Status.UNDECIDED
    if not radius < decay.limit:
        reason = "The tube does not fit in the domain on which the decay is certified."
    elif sampled is not None:
        reason = f"Bound from samples ({sampled}): {ESTIMATE}."
    elif decay.status is not Status.PROVED:
        reason = "The decay of the channel is not proved."
    else:
        status = Status.PROVED
        reason = "It holds for every disturbance within the bound."
    return Tube(decay, status, reason, start, ultimate, radius, decay.rate, given)


def _push(decay: Decay, places: np.ndarray, disturbance: Disturbance) -> float:
    """Largest sqrt(d^T P22 d) of a disturbance, rounded up; an extreme point attains it."""
    n = decay.channel.size
    block = decay.P[n:, n:]
    if disturbance.points is not None:
        candidates = np.unique(disturbance.points[:, places], axis=0)
    elif n <= _MOST_COMPONENTS:
        # One of each pair of opposite corners.
        signs = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=n - 1)])
        candidates = np.unique(signs * disturbance.components[places], axis=0)
    else:
        corner = rational(disturbance.components[places])
        return float_above(
            Fraction(decay.push)
            * Fraction(root_above(corner @ decay.channel.length_metric @ corner))
        )
    floats = np.einsum("ki,ij,kj->k", candidates, block, candidates)
    # Candidates that are equal up to rounding may hide the largest one.
    longest = np.einsum("ki,ki->k", candidates, candidates).max(initial=0.0)
    slack = 1e-14 * n * n * float(np.linalg.norm(block)) * longest
    near = candidates[floats >= floats.max(initial=0.0) - slack]
    form = rational(block)
    squares = [point @ form @ point for point in (rational(c) for c in near)]
    return root_above(max(squares, default=_ZERO))


def _growth(
    decays: Sequence[Decay], index: Sequence[np.ndarray], feedback: np.ndarray
) -> np.ndarray:
    """p_i delta_ij kappa_j, shape (m, m), 1/s."""
    growth = np.zeros((len(decays), len(decays)))
    for i, to in enumerate(decays):
        for j, by in enumerate(decays):
            blocks = feedback[:, index[i][:, None], index[j]]
            blocks = to.channel.scales[:, None] * blocks / by.channel.scales
            delta = np.linalg.norm(blocks, 2, axis=(1, 2)).max(initial=0.0)
            growth[i, j] = to.push * delta * by.feedback_gain
    return growth


def _settled(gain: np.ndarray, offset: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Smallest y >= least with y >= gain y + offset; infinite without a solution."""
    if np.abs(np.linalg.eigvals(gain)).max(initial=0.0) >= 1.0 - 1e-9:
        return np.full(len(gain), inf)
    # Components determined by the inequality, not by `least`; their number grows each time.
    free = np.zeros(len(gain), dtype=bool)
    y = least.copy()
    for _ in range(len(gain) + 1):
        free |= gain @ y + offset > y
        if free.any():
            own = np.eye(free.sum()) - gain[np.ix_(free, free)]
            y = least.copy()
            y[free] = np.linalg.solve(own, offset[free] + gain[np.ix_(free, ~free)] @ y[~free])
    return np.asarray(np.maximum(y, least))


def _not_negative(value: float, where: str) -> float:
    value, expected = float(value), f"a number from 0 to {LARGEST:g}"
    check(0.0 <= value <= LARGEST, where, expected, value, "Give an upper bound.")
    return value
