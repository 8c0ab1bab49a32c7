"""Verification of the chains of a stored certificate: bounds of |z| over time.

The bounds are computed again from the forms of the file, whose decay is verified like that of any
channel, and each stored bound must not be below. Nothing else of a chain is read: entry times
follow from V_L = (x KP x + ve I ve) / 2, which never rises, and from |x|. With positions in units
of the channel's length and |z| the Euclidean norm,

1. a form |z|_P with its rate falls while |x| is in the form's region: as long as bounds of |x| are,
   or V_L is below the form's bound;
2. norms bound each other by the largest roots of det(A - a B) = 0 of their 2 x 2 blocks;
3. from every 16th step on, step functions X and V bound |x| and |ve| if in each step they exceed
   the convolution of exp(A t) with k1 X V and kappa k2 X^2; constants as in `_chain`.

Matrix exponentials are integers in fixed point, roots are those of integers, and sums of
nonnegative floats are enlarged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from concur.certify._recheck_document import (
    CHAIN_STEPS,
    CHAIN_STRIDE,
    StoredChannel,
    StoredProof,
    channel_of,
    floats_of,
    list_of,
    number_of,
    refuse,
)
from concur.certify._recheck_finding import Rejection, require
from concur.certify._recheck_work import spend
from concur.certify._status import Status

_MORE = 1.0 + 2.0**-32
_ABOVE = 1.0 + 2.0**-28
_BITS = 1024
_MOST_FORMS = 40
_ZERO, _ONE = Fraction(0), Fraction(1)

Block = tuple[Fraction, Fraction, Fraction]
"""Entries 11, 12 and 22 of a symmetric matrix."""


@dataclass(frozen=True, eq=False)
class StoredChain:
    where: str
    channel: StoredChannel
    step: Fraction
    bounds: np.ndarray
    forms: list[StoredChannel]


def chains_of(document: dict[str, Any], proof: StoredProof) -> list[StoredChain]:
    """Chains of a document, one for each channel; none without the entry."""
    if document.get("chain") is None:
        return []
    groups, gains, channels = proof.groups, proof.gains, proof.channels
    size, found = len(gains["stiffness"]), []
    entries = list_of(document, "chain", "", len(channels))
    for k, (entry, channel) in enumerate(zip(entries, channels, strict=True)):
        where = f"chain[{k}]"
        if not isinstance(entry, dict):
            refuse(f"`{where}`", "an object", entry)
        forms = [
            channel_of(form, f"{where}.forms[{i}]", groups, gains, size)
            for i, form in enumerate(list_of(entry, "forms", where)[: _MOST_FORMS + 1])
        ]
        for form in forms:
            if form.components != channel.components:
                refuse(f"`{form.where}.components`", "those of the channel", form.components)
        bounds = np.concatenate([
            floats_of({"bounds": part}, "bounds", where)
            for part in list_of(entry, "bounds", where)
            if isinstance(part, list)
        ] or [np.zeros(0)])  # fmt: skip
        step = number_of(entry, "step", where)
        found.append(StoredChain(where, channel, step, bounds, forms))
    return found


def verify_chain(chain: StoredChain, verify_form: Callable[[StoredChannel], None]) -> None:
    """Verify the bounds of a chain; `verify_form` verifies region and decay of one form."""
    where = chain.where
    require(len(chain.forms) <= _MOST_FORMS, Status.UNDECIDED, f"{where} has too many forms")
    fit = len(chain.bounds) == CHAIN_STEPS and chain.step > 0
    require(fit, Status.UNDECIDED, f"{where} leaves a gap: not {CHAIN_STEPS} steps above zero")
    loops = _Loops(chain)
    for form in chain.forms:
        verify_form(form)
    spend(8e6 + 3e3 * len(loops.rows) * (1 + len(chain.forms)) ** 2)
    bounds = loops.bounds()
    late = np.flatnonzero(~(chain.bounds >= bounds))
    if late.size:
        time = float(chain.step) * int(late[0])
        raise Rejection(Status.UNDECIDED, f"{where}.bounds are too small from {time:.4g} s on")


def _root(block: Block, metric: Block) -> float:
    """Bound of the square root of the largest a with det(block - a metric) = 0."""
    (p, q, r), (u, v, w) = block, metric
    two, one, none = u * w - v * v, p * w + r * u - 2 * q * v, p * r - q * q
    inside = max(one * one - 4 * two * none, _ZERO)
    return math.sqrt(float((one + _above(inside)) / (2 * two))) * _MORE


def _above(square: Fraction) -> Fraction:
    """Number not below the square root of a fraction, close to it."""
    scale = 1 << 200
    return Fraction(math.isqrt(int(square * scale * scale) + 1) + 1, scale)


class _Loops:
    """Scalar loops into which an isotropic or diagonal channel falls apart."""

    def __init__(self, chain: StoredChain) -> None:
        channel = self.channel = chain.channel
        self.chain, self.step = chain, float(chain.step)
        n, groups = channel.size, channel.groups
        flat = not channel.turning
        alone = groups in (["SO3"], ["SE3"])
        require(flat or alone, Status.UNDECIDED, f"{chain.where} is of no scalar loops")
        width = 1 if flat else 3
        self.rows = list(range(0, n, width))
        matrices = [(m, n, n) for m in (channel.kp, channel.kd, channel.metric)]
        matrices += [(form.p, 2 * n, 2 * n) for form in chain.forms]
        for matrix, high, wide in matrices:
            for i in range(high):
                for j in range(wide):
                    # The components of one loop meet only themselves, all in the same way.
                    same = i % n == j % n
                    first = matrix[i - (i % n) % width][j - (j % n) % width]
                    fit = matrix[i][j] == (first if same else _ZERO)
                    require(fit, Status.UNDECIDED, f"{chain.where}: a matrix couples its loops")
        self.squares = [channel.length**2 if channel.units[i] == "m" else _ONE for i in self.rows]
        self.gains = [
            tuple(m[i][i] * s for m in (channel.kp, channel.kd, channel.metric))
            for i, s in zip(self.rows, self.squares, strict=True)
        ]
        self.weights = [(k, _ZERO, m) for k, _, m in self.gains]
        self.ones = [(_ONE, _ZERO, _ONE)] * len(self.rows)
        self.reach = {"SO3": _ONE, "SE3": Fraction(11548, 10000)}.get("".join(groups), _ZERO)
        if flat:
            self.reach = _ZERO
        coupling = groups == ["SE3"]
        lightest = min(m for _, _, m in self.gains)
        self.kappa = float(self.gains[0][0] / lightest) * _MORE if coupling else 0.0
        self.forms = [
            [
                (form.p[i][i] * s, form.p[i][n + i] * s, form.p[n + i][n + i] * s)
                for i, s in zip(self.rows, self.squares, strict=True)
            ]
            for form in chain.forms
        ]

    @staticmethod
    def ratio(first: list[Block], second: list[Block]) -> float:
        return max(_root(a, b) for a, b in zip(first, second, strict=True)) * _MORE

    def bounds(self) -> np.ndarray:
        """Bounds of |z| / |z(0)| in each step."""
        entries = self._forms_over_time()
        found = np.array([size for _, _, size, _ in entries])
        self._exponentials()
        for j in range(0, CHAIN_STEPS, CHAIN_STRIDE):
            tail = self._tail(*entries[j], CHAIN_STEPS - j)
            found[j:] = np.minimum(found[j:], tail)
        return np.asarray(found)

    def _forms_over_time(self) -> list[tuple[float, float, float, list[float]]]:
        """V_L, the largest start, and shares of the start in |z| and each form, at each step."""
        every = range(len(self.forms))
        bound = self.channel.bound
        energy = math.inf if bound is None else float(bound)
        by_energy = self.ratio(self.ones, self.weights)
        largest = by_energy * math.sqrt(2 * energy) * _MORE
        cross = [[self.ratio(a, b) for b in self.forms] for a in self.forms]
        out = [self.ratio(self.ones, form) for form in self.forms]
        share = [self.ratio(form, self.ones) for form in self.forms]
        energy_of = [self.ratio(self.weights, form) for form in self.forms]
        of_energy = [self.ratio(form, self.weights) for form in self.forms]
        places = [(_ONE, _ZERO, _ZERO)] * len(self.rows)
        place_of = [self.ratio(places, form) for form in self.forms]
        size = [math.inf for _ in every]
        fall = [math.exp(-float(form.rate) * self.step) * _MORE_STEP for form in self.chain.forms]
        found = []
        for j in range(CHAIN_STEPS):
            share = [min(cross[i][k] * share[k] for k in every) for i in every]
            if energy < math.inf:
                start = math.sqrt(2 * energy) * _MORE
                size = [min(size[i], of_energy[i] * start) for i in every]
                size = [min(cross[i][k] * size[k] for k in every) for i in every]
                energy = min([energy, *((energy_of[i] * size[i]) ** 2 / 2 * _MORE for i in every)])
            total = 1.0 if j == 0 else min((out[i] * share[i] for i in every), default=math.inf)
            now = by_energy * math.sqrt(2 * energy) * _MORE
            now = min([now, *(out[i] * size[i] for i in every)])
            quotients = [now / total, *(size[i] / share[i] for i in every)]
            scale = min(max(quotients) * _MORE, largest) if total < math.inf else largest
            found.append((energy, scale, total * _MORE, share[:]))
            away = min((place_of[i] * size[i] for i in every), default=math.inf)
            for i in every:
                limit = self.chain.forms[i].bound
                if limit is None or Fraction(energy) <= limit or self._is_near(i, away):
                    share[i], size[i] = share[i] * fall[i], size[i] * fall[i]
        return found

    def _is_near(self, i: int, away: float) -> bool:
        """Whether all |x| below a bound are in the region of a form's decay."""
        form = self.chain.forms[i]
        ends = [] if form.angle is None else [form.angle]
        ends += [] if form.distance is None else [form.distance / self.channel.length]
        return bool(ends) and away * _ABOVE <= float(min(ends))

    def _exponentials(self) -> None:
        """exp(A t) at the ends of the steps, and the most it is off a chord between them."""
        table, self.bend = [], np.zeros(CHAIN_STEPS)
        unit = 1 << _BITS
        for k, d, m in self.gains:
            a = [[_ZERO, -_ONE], [k / m, -d / m]]
            norm = math.sqrt(float(1 + (k / m) ** 2 + (d / m) ** 2)) * _MORE
            reach = norm * self.step
            fit = reach < 1 and reach * CHAIN_STEPS < 300
            require(fit, Status.UNDECIDED, f"{self.chain.where}.step is too long")
            term = [[_ONE, _ZERO], [_ZERO, _ONE]]
            total = [row[:] for row in term]
            for order in range(1, 150):
                term = [
                    [sum(term[i][l] * a[l][j] for l in (0, 1)) * self.chain.step / order
                     for j in (0, 1)] for i in (0, 1)]  # fmt: skip
                term = [[Fraction(round(x * unit), unit) for x in row] for row in term]
                total = [[x + y for x, y in zip(*rows, strict=True)]
                         for rows in zip(total, term, strict=True)]  # fmt: skip
            one = [[round(x * unit) for x in row] for row in total]
            now, row = [[unit, 0], [0, unit]], []
            for _ in range(CHAIN_STEPS + 1):
                row.append([[x / unit for x in line] for line in now])
                now = [[sum(now[i][l] * one[l][j] for l in (0, 1)) >> _BITS for j in (0, 1)]
                       for i in (0, 1)]  # fmt: skip
            # Errors of 2^-800 grow by at most exp(reach) in each step, together exp(300) < 2^433.
            table.append(row)
            sizes = np.linalg.norm(np.array(row)[:-1].reshape(-1, 4), axis=1)
            own = reach**2 / 8 * math.exp(reach) * sizes * _MORE + 1e-11
            self.bend = np.maximum(self.bend, own)
        self.table = np.array(table)

    @staticmethod
    def _steps(ends: np.ndarray) -> np.ndarray:
        most = ends.max(axis=0) * _MORE
        return np.asarray(np.maximum(most[:-1], most[1:]))

    def _start(self, part: slice, total: float, share: list[float], count: int) -> np.ndarray:
        rows, bend = self.table[:, : count + 1, part], self.bend[:count]
        gram = rows @ rows.swapaxes(2, 3)
        found = (self._steps(_largest(gram)) + bend) * total
        for own, form in zip(share, self.forms, strict=True):
            inverses, traces = [], []
            for p, q, r in form:
                det = p * r - q * q
                inverses.append(
                    [[float(r / det), float(-q / det)], [float(-q / det), float(p / det)]]
                )
                traces.append(float((p + r) / det))
                # Floats lose 2^-50 times the condition.
                steep = (p + r) ** 2 / det > 100_000
                if steep:
                    break
            else:
                middle = np.array(inverses)[:, None]
                ends = _largest(rows @ middle @ rows.swapaxes(2, 3))
                wide = self._steps(ends) + bend * math.sqrt(max(traces)) * _MORE
                found = np.minimum(found, wide * own)
        return np.asarray(found * _MORE)

    def _tail(
        self, energy: float, scale: float, total: float, share: list[float], count: int
    ) -> np.ndarray:
        """Bounds of |z| / |z(0)| by step functions, from one step on."""
        found = np.full(count, math.inf)
        reach, radius = float(self.reach), 0.0
        if reach:
            softest = float(min(k for k, _, _ in self.gains))
            radius = math.sqrt(2 * energy / softest) * _MORE
        u = reach * radius
        if not total < math.inf or (reach and not scale < math.inf) or u * u > 30:
            return found
        even = u / 12 / (1 - u * u / 39)
        k1 = reach * (0.5 + even) * _MORE
        k2 = self.kappa * (0.25 + even / 2) * _MORE
        start_x, start_v, start_z = (
            self._start(part, total, share, count)
            for part in (slice(0, 1), slice(1, 2), slice(0, 2))
        )
        table = np.abs(self.table[:, : count + 1])
        norms = [table[..., 0, 0], table[..., 0, 1], table[..., 1, 0], table[..., 1, 1],
                 np.hypot(table[..., 0, 0], table[..., 1, 0]),
                 np.hypot(table[..., 0, 1], table[..., 1, 1])]  # fmt: skip
        weights = []
        for norm in norms:
            over = self._steps(norm) + self.bend[:count]
            shifted = np.concatenate([over[:1], over[:-1]])
            # Two times in steps i and j are (j - i - 1) to (j - i + 1) steps apart.
            weights.append(np.maximum(over, shifted) * self.step * _MORE)
        xx, xv, vx, vv, zx, zv = weights
        first, second = np.zeros(count), np.zeros(count)

        def past(a: np.ndarray, b: np.ndarray, j: int) -> float:
            return float(a[j:0:-1] @ first[:j] + b[j:0:-1] @ second[:j]) * _MORE

        for j in range(count):
            base_x, base_v = start_x[j] + past(xx, xv, j), start_v[j] + past(vx, vv, j)
            x, v = base_x, base_v
            for _ in range(300):
                x, v = x * _ABOVE, v * _ABOVE
                one = k1 * min(scale * x, radius) * v if reach else 0.0
                two = k2 * min(scale * x, radius) * x if reach else 0.0
                next_x = (base_x + xx[0] * one + xv[0] * two) * _MORE
                next_v = (base_v + vx[0] * one + vv[0] * two) * _MORE
                if next_x < x and next_v < v:
                    break
                x, v = max(next_x, base_x), max(next_v, base_v)
            else:
                return found
            first[j], second[j] = one, two
            found[j] = (start_z[j] + past(zx, zv, j) + zx[0] * one + zv[0] * two) * _MORE
        return found


_MORE_STEP = 1.0 + 2.0**-44


def _largest(gram: np.ndarray) -> np.ndarray:
    """Square roots of the largest eigenvalues of symmetric matrices of one or two rows."""
    if gram.shape[-1] == 1:
        return np.asarray(np.sqrt(np.maximum(gram[..., 0, 0], 0.0)))
    a, b, c = gram[..., 0, 0], gram[..., 0, 1], gram[..., 1, 1]
    return np.asarray(np.sqrt(np.maximum((a + c) / 2 + np.hypot((a - c) / 2, b), 0.0)))
