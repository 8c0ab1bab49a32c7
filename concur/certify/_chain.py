"""Chains: how fast all errors of a region decay, by several quadratic forms and a tail without one.

V_L = (x KP x + ve I ve) / 2 never rises, so a region {V_L < level} that the error enters is kept. A
form |z|_P decays at a rate as long as |x| is small, whatever ve. V_L bounds |x|, and each form that
decays bounds V_L, the others and |x| from then on; so the forms begin to decay one after the other,
and bound(t) is the lower envelope of all.

Near zero no form is needed: zdot = A z + N(z). With positions in units of the channel's length, and
E(t) = exp(A t), on SE(3) with isotropic gains

    N = (-(B - 1) ve, kappa (B^T - 1) x),  |(B - 1) ve| <= k1 |x| |ve|,  |(B^T - 1) x| <= k2 |x|^2

B = 1 + a / 2 + sum_n b_2n a^2n, up to the sign of a = ad_x, with |b_2n| <= (2 pi)^(2 - 2n) / 12;
|a| <= c |x| with c = 2 / sqrt(3), the largest norm of [[p, r], [0, p]] for r^2 + p^2 = 1; and
|a^T x| = |phi x rho| <= |x|^2 / 2. Hence for |x| <= R and u = c R

    k1 = c / 2 + c e,  k2 = 1 / 4 + e / 2,  e = (u / 12) / (1 - u^2 / (4 pi^2)).

On SO(3) c = 1 and k2 = 0, as B^T x = x; without rotations N = 0. Step functions X, V that exceed

    |E_x z0| + int |E_xx| k1 X V + |E_xv| kappa k2 X^2,  |E_v z0| + int |E_vx| k1 X V + ...

in every step bound |x| and |ve| (first crossing), and thereby |z|. All of it is monotone in the
level: with the same forms a smaller region never gets a larger bound.

Rounding: bounds are sums and products of nonnegative floats, enlarged by far more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, inf, sqrt

import numpy as np

from concur.certify._bounds import (
    Rational,
    float_above,
    largest_eigenvalue,
    rational,
    root_above,
    solve,
)
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel
from concur.certify._intervals import PRECISION, flint
from concur.certify._recheck_document import CHAIN_STEPS, CHAIN_STRIDE

_UP = 1.0 + 1e-9
"""Factor by which bounds are enlarged, far above the rounding of a few thousand operations."""

_STORED = 1.0 + 1e-5
"""Factor by which the result is enlarged, so that another order of evaluation confirms it."""

_HORIZON = 10.0
"""Length of the grid of times, in units of 1 / linearized rate."""

_ITERATIONS = 200

_CONDITION = 1e5
"""Largest condition of a form for which floats suffice."""


@dataclass(frozen=True, eq=False)
class ChannelChain:
    """Bound of |z| of one channel over time, for all starts of a region.

    Parameters
    ----------
    channel : Channel
        The outputs with their gains.
    level : float
        Bound of V_L of the starts; infinite when every start is covered.
    forms : tuple of ChannelCertificate
        Proved forms with their rates, angles, distances and levels.
    step : float
        Width of a step of time, s.
    bounds : numpy.ndarray
        Bound of |z(t)| / |z(0)| in each step, shape (k,); |z| is the Euclidean norm of (x, ve)
        with metres divided by the channel's length.
    """

    channel: Channel
    level: float
    forms: tuple[ChannelCertificate, ...]
    step: float
    bounds: np.ndarray = field(repr=False)

    def bound(self, time: float) -> float:
        """Bound of |z| after a time, as a fraction of |z| at the start.

        Parameters
        ----------
        time : float
            Time since the start, not negative, s.

        Returns
        -------
        float
            Proved bound.
        """
        length, last = len(self.bounds) * self.step, float(self.bounds[-1])
        whole = int(time / length)
        if whole and last >= 1.0:
            return inf
        # The region is kept, so the bound also holds from a later time on.
        rest = min(int((time - whole * length) / self.step), len(self.bounds) - 1)
        return float(self.bounds[max(rest, 0)] * last**whole)

    def settling(self, share: float) -> float:
        """Time after which |z| stays below a share of |z| at the start.

        Parameters
        ----------
        share : float
            Share of |z| at the start, above 0.

        Returns
        -------
        float
            Proved time, s; infinite when none is proved.
        """
        late, last = np.flatnonzero(self.bounds > share), float(self.bounds[-1])
        if late.size == 0:
            return 0.0
        if late[-1] + 1 < len(self.bounds):
            return float(late[-1] + 1) * self.step
        if last >= 1.0:
            return inf
        return len(self.bounds) * self.step + self.settling(share / last)


@dataclass(frozen=True, eq=False)
class DecayChain:
    """Bound of the error over time, for all starts of a region; proved.

    Parameters
    ----------
    parts : tuple of ChannelChain
        One for each channel.
    """

    parts: tuple[ChannelChain, ...]

    def bound(self, time: float) -> float:
        """Bound of |z| after a time, as a fraction of |z| at the start.

        Parameters
        ----------
        time : float
            Time since the start, not negative, s.

        Returns
        -------
        float
            Largest bound of the channels.
        """
        return max(part.bound(time) for part in self.parts)

    def settling(self, share: float = 0.01) -> float:
        """Time after which |z| stays below a share of |z| at the start.

        Parameters
        ----------
        share : float, default 0.01
            Share of |z| at the start, above 0.

        Returns
        -------
        float
            Proved time, s; infinite when none is proved.
        """
        return max(part.settling(share) for part in self.parts)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Scalar loops of a channel, x'' + damping x' + stiffness x, in units of the length.

    Parameters
    ----------
    places : tuple of int
        First component of each loop.
    gains : tuple of tuple of Fraction
        Stiffness, damping and inertia of each loop; squares of lengths are multiplied in.
    squares : tuple of Fraction
        Squared length of metres in each loop, 1 for radians.
    kappa, reach : Fraction
        Factor of the nonlinear acceleration, and c; both are zero without one.
    """

    places: tuple[int, ...]
    gains: tuple[tuple[Fraction, Fraction, Fraction], ...]
    squares: tuple[Fraction, ...]
    kappa: Fraction
    reach: Fraction


def kinds_of(channel: Channel) -> Kinds | None:
    """Scalar loops of a channel; None when its gains couple its components."""
    every = (channel.stiffness, channel.damping, channel.inertia)
    if any(not np.array_equal(gain, np.diag(np.diag(gain))) for gain in every):
        return None
    linear = channel.kind == "linear"
    if not linear and channel.kind not in ("SO3 isotropic", "SE3 isotropic"):
        return None
    places = tuple(range(0, channel.size, 1 if linear else 3))
    square = Fraction(channel.length) ** 2
    squares = tuple(square if channel.units[i] == "m" else Fraction(1) for i in places)
    gains = tuple(
        (Fraction(k[i, i]) * s, Fraction(d[i, i]) * s, Fraction(m[i, i]) * s)
        for k, d, m in [every]
        for i, s in zip(places, squares, strict=True)
    )
    if channel.kind != "SE3 isotropic":
        return Kinds(places, gains, squares, Fraction(0), Fraction(0 if linear else 1))
    stiff = gains[0][0]
    return Kinds(places, gains, squares, stiff / min(g[2] for g in gains), Fraction(11548, 10000))


def chain_of(
    channel: Channel, level: float, forms: tuple[ChannelCertificate, ...]
) -> ChannelChain | None:
    """Chain of the forms and the tail; None when the channel is not of scalar loops."""
    kinds = kinds_of(channel)
    if kinds is None:
        return None
    step = _HORIZON / channel.true_rate / CHAIN_STEPS
    try:
        kernels = _Kernels(kinds, step)
    except ArithmeticError:
        return None
    march = _march(kinds, level, forms, step)
    bounds = np.array([state.size for state in march])
    for j in range(0, CHAIN_STEPS, CHAIN_STRIDE):
        tail = _tail(kinds, kernels, march[j], forms, CHAIN_STEPS - j)
        bounds[j:] = np.minimum(bounds[j:], tail)
    return ChannelChain(channel, level, forms, step, bounds * _STORED)


@dataclass(frozen=True, eq=False)
class _State:
    """Bounds that the forms prove from a time on: V_L and |z| in the region, shares of |z(0)|."""

    level: float
    scale: float  # bound of the least s with |z| <= size s and |z|_P <= share s for each form
    size: float  # bound of |z| / |z(0)|
    shares: np.ndarray  # bounds of |z|_P / |z(0)|


def _blocks(kinds: Kinds, form: ChannelCertificate) -> list[Rational]:
    assert form.P is not None
    n = form.channel.size
    found = []
    for place, square in zip(kinds.places, kinds.squares, strict=True):
        rows = [place, n + place]
        found.append(rational(form.P[np.ix_(rows, rows)]) * square)
    return found


def _ratio(first: list[Rational], second: list[Rational]) -> float:
    """Upper bound of |z|_first / |z|_second."""
    pairs = zip(first, second, strict=True)
    return root_above(max(largest_eigenvalue(a, b) for a, b in pairs)) * _UP


def _radius(form: ChannelCertificate) -> float:
    """Bound of |x| within which a form decays, metres divided by the length."""
    ends = [] if form.angle is None else [form.angle]
    ends += [] if form.distance is None else [form.distance / form.channel.length]
    return min(ends, default=0.0) / _UP


def _march(
    kinds: Kinds, level: float, forms: tuple[ChannelCertificate, ...], step: float
) -> list[_State]:
    """States at the beginning of each step."""
    one = [rational(np.eye(2)) for _ in kinds.gains]
    weights = [np.array([[k, Fraction(0)], [Fraction(0), m]]) for k, _, m in kinds.gains]
    between = _ratio(one, weights)
    plain = between * sqrt(2.0 * level) * _UP if level < inf else inf
    if not forms:
        return [_State(level, plain, 1.0 if j == 0 else inf, np.zeros(0))
                for j in range(CHAIN_STEPS)]  # fmt: skip
    blocks = [_blocks(kinds, form) for form in forms]
    to_one = np.array([_ratio(one, block) for block in blocks])
    to_weight = np.array([_ratio(weights, block) for block in blocks])
    from_weight = np.array([_ratio(block, weights) for block in blocks])
    across = np.array([[_ratio(a, b) for b in blocks] for a in blocks])
    falls = np.array([exp(-form.rate * step) for form in forms]) * (1.0 + 1e-13)
    levels = np.array([form.level for form in forms])
    place = [np.array([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(0)]])] * len(kinds.gains)
    to_place = np.array([_ratio(place, block) for block in blocks])
    radii = np.array([_radius(form) for form in forms])
    shares = np.array([_ratio(block, one) for block in blocks])
    sizes, states = np.full(len(forms), inf), []
    for j in range(CHAIN_STEPS):
        shares = np.minimum(shares, (across * shares).min(axis=1))
        if level < inf:
            sizes = np.minimum(sizes, from_weight * sqrt(2.0 * level) * _UP)
            sizes = np.minimum(sizes, (across * sizes).min(axis=1))
            level = min(level, float((to_weight * sizes).min()) ** 2 / 2.0 * _UP)
        absolute = float((to_one * sizes).min()) * _UP
        if level < inf:
            absolute = min(absolute, between * sqrt(2.0 * level) * _UP)
        size = 1.0 if j == 0 else float((to_one * shares).min()) * _UP
        # The start is at most as large as these quotients, and as the region.
        scale = min(max(absolute / size, float((sizes / shares).max())) * _UP, plain)
        states.append(_State(level, scale, size, shares))
        # All bounds hold from here on, so the forms that decay now do so for ever.
        reach = float((to_place * sizes).min()) * _UP
        inside = np.where((level <= levels) | (reach <= radii), falls, 1.0)
        shares, sizes = shares * inside, sizes * inside
    return states


class _Kernels:
    """Values of exp(A t) of each loop at the ends of the steps, enclosed by balls."""

    def __init__(self, kinds: Kinds, step: float) -> None:
        every = []
        self.slack = np.zeros(CHAIN_STEPS)
        with flint().ctx.workprec(PRECISION):
            for k, d, m in kinds.gains:
                A = flint().arb_mat(2, 2, [0, -1, *(flint().arb(flint().fmpq(
                    x.numerator, x.denominator)) for x in (k / m, -d / m))])  # fmt: skip
                one = (A * flint().arb(step)).exp()
                value, row = flint().arb_mat(2, 2, [1, 0, 0, 1]), []
                for _ in range(CHAIN_STEPS + 1):
                    row.append([float(entry.mid()) for entry in value.entries()])
                    wide = max(float(entry.rad()) for entry in value.entries())
                    if wide > 1e-12:
                        raise ArithmeticError("the exponential is not enclosed tightly")
                    value = value * one
                every.append(np.array(row).reshape(-1, 2, 2))
                # Between the ends, a value is off its chord by at most step^2 |A^2 E| / 8.
                size = float_above(1 + (k / m) ** 2 + (d / m) ** 2)
                bend = step**2 / 8.0 * size * exp(sqrt(size) * step)
                peak = np.sqrt((every[-1][:-1] ** 2).sum(axis=(1, 2)))
                self.slack = np.maximum(self.slack, bend * peak * _UP + 1e-11)
        self.values, self.step = np.array(every), step

    def over(self, ends: np.ndarray) -> np.ndarray:
        """Bound of a norm over each step from its values at the ends; shape (kinds, steps + 1)."""
        most = ends.max(axis=0)
        return np.asarray(np.maximum(most[:-1], most[1:]) * _UP)

    def convolved(self, norm: np.ndarray) -> np.ndarray:
        """Integral of a norm over a step, at each lag, wherever both times lie in their steps."""
        over = self.over(norm) + self.slack
        return np.asarray(np.maximum(np.concatenate([over[:1], over[:-1]]), over) * self.step)


def _starts(kernels: _Kernels, kinds: Kinds, rows: slice, state: _State,
            forms: tuple[ChannelCertificate, ...], steps: int) -> np.ndarray:  # fmt: skip
    """Bounds of |E(t) z0| / |z(0)| over each step, from all that is known of z0."""
    values = kernels.values[:, : steps + 1, rows]
    bend = kernels.slack[:steps]
    best = kernels.over(np.linalg.norm(values, 2, axis=(2, 3))) + bend
    best = best * state.size
    for share, form in zip(state.shares, forms, strict=True):
        ends, most = [], 0.0
        for value, block in zip(values, _blocks(kinds, form), strict=True):
            inverse = solve(block, rational(np.eye(2))).astype(float)
            if np.linalg.cond(inverse) > _CONDITION:
                break
            square = value @ inverse @ value.swapaxes(1, 2)
            ends.append(np.sqrt(np.linalg.norm(square, 2, axis=(1, 2))))
            most = max(most, float(np.trace(inverse)))
        else:
            own = kernels.over(np.array(ends)) + bend * sqrt(most) * _UP
            best = np.minimum(best, own * share)
    return best * _UP


def _tail(kinds: Kinds, kernels: _Kernels, state: _State,
          forms: tuple[ChannelCertificate, ...], steps: int) -> np.ndarray:  # fmt: skip
    """Bounds of |z| / |z(0)| in each step from a state, by first crossing; infinite if none."""
    bounds = np.full(steps, inf)
    least = min(k for k, _, _ in kinds.gains)
    radius = sqrt(2.0 * state.level / float(least)) * _UP if kinds.reach else 0.0
    u = float(kinds.reach) * radius
    if (kinds.reach and not state.scale < inf) or not state.size < inf or u * u > 30.0:
        return bounds
    even = u / 12.0 / (1.0 - u * u / 39.0)
    first = (float(kinds.reach) / 2.0 + float(kinds.reach) * even) * _UP
    second = float(kinds.kappa) * (0.25 + even / 2.0) * _UP
    scale = state.scale if kinds.reach else 0.0
    starts = [_starts(kernels, kinds, rows, state, forms, steps)
              for rows in (slice(0, 1), slice(1, 2), slice(0, 2))]  # fmt: skip
    E = kernels.values[:, : steps + 1]
    norms = [abs(E[:, :, 0, 0]), abs(E[:, :, 0, 1]), abs(E[:, :, 1, 0]), abs(E[:, :, 1, 1]),
             np.linalg.norm(E[..., 0], axis=2), np.linalg.norm(E[..., 1], axis=2)]  # fmt: skip
    full = _Kernels.__new__(_Kernels)
    full.slack, full.step = kernels.slack[:steps], kernels.step
    D = np.array([full.convolved(norm) for norm in norms])
    P, Q = np.zeros(steps), np.zeros(steps)
    for j in range(steps):
        past = np.concatenate([D[0::2, 1 : j + 1] @ P[:j][::-1], D[1::2, 1 : j + 1] @ Q[:j][::-1]])
        base = past[:3] + past[3:]
        x, v = starts[0][j], starts[1][j]
        for _ in range(_ITERATIONS):
            near = min(scale * x, radius)
            p, q = first * near * v, second * near * x
            reached = [starts[i][j] + base[i] + D[2 * i, 0] * p + D[2 * i + 1, 0] * q
                       for i in range(2)]  # fmt: skip
            if reached[0] * _UP < x and reached[1] * _UP < v:
                break
            x, v = reached[0] * _UP**2, reached[1] * _UP**2
        else:
            return bounds
        P[j], Q[j] = p, q
        bounds[j] = (starts[2][j] + base[2] + D[4, 0] * p + D[5, 0] * q) * _UP
    return bounds
