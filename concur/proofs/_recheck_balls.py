"""Arrays of second-order models over balls, for the checker of proofs of floaters.

A `Balls` encloses functions f of points xi of balls, block by block of their coordinates,

    |f - (c + sum_i g_i xi_i + sum_ij h_ij xi_i xi_j)| <= r .

A linear form is at most the sum of the Euclidean norms of its coefficients by blocks, a quadratic
one that of Frobenius norms by pairs of blocks. Products of two symbols beyond the first `kept` go
into r. The prover's models are single functions in another order with other operations; nothing is
shared. `size` bounds the absolute values that were added on the way: rounding is a share of it.

A `Dual` is a function with its rate along a motion. `times` takes plain arrays, `Balls` and `Dual`,
so that a formula is written once. The last axis of all arrays counts cells.

**What holds.** Operations return r that contain truncated terms, given remainders and rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

Floats = np.ndarray

ROUND = 1e-13
"""Above the rounding of sums of some hundred products, relative to the sum of absolute values."""

UP = 1 + 1e-12
"""Above the rounding of sums of positive numbers."""


class Blocks:
    """Symbols in balls.

    Parameters
    ----------
    sizes : tuple of int
        Dimension of each ball.
    kept : int
        Number of leading balls whose products with all symbols are kept.
    """

    def __init__(self, sizes: tuple[int, ...], kept: int) -> None:
        self.sizes, self.kept = sizes, sum(sizes[:kept])
        self.ends = np.cumsum((0, *sizes))
        of = np.repeat(np.arange(len(sizes)), sizes)
        pairs = [(of[j], of[i], i, j) for j in range(len(of)) for i in range(j + 1)]
        pairs = sorted(pair for pair in pairs if pair[2] < self.kept)
        self._of = np.array([pair[:2] for pair in pairs]).reshape(-1, 2)
        self.first, self.second = (np.array([p[k] for p in pairs], dtype=int) for k in (2, 3))
        twice = (self._of[:, 0] == self._of[:, 1]) & (self.first != self.second)
        # A symmetric matrix has half the coefficients off its diagonal.
        self.weights = np.where(twice, 0.5, 1.0)

    @lru_cache(maxsize=64)  # noqa: B019  # few objects exist, as long as a verification
    def rows(self, n: int) -> int:
        """Number of pairs of the leading n symbols, the end of a block."""
        return int(np.searchsorted(self._of[:, 0], np.searchsorted(self.ends, n), side="left"))

    @lru_cache(maxsize=64)  # noqa: B019
    def starts(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """First symbol of each block, and first row of each pair of blocks."""
        own = self._of[: self.rows(n)]
        new = np.flatnonzero(np.append(True, (np.diff(own, axis=0) != 0).any(axis=1)))
        return self.ends[:-1][self.ends[:-1] < n], new[: len(own)]

    def ball(self, block: int, radius: Floats) -> Balls:
        """Points of a ball with a radius for each cell (b,), shape (size, b)."""
        size, start, end = self.sizes[block], self.ends[block], self.ends[block + 1]
        found = self.plain(np.zeros((size, len(radius))), int(end))
        for k in range(size):
            found.g[start + k, k] = radius
        return Balls(self, found.c, found.g, found.h, found.r, np.tile(radius, (size, 1)))

    def own(self, first_block: int, radii: Floats) -> Balls:
        """Numbers within radii (k, b), each with the only symbol of its block."""
        count = len(radii)
        found = self.plain(np.zeros(radii.shape), int(self.ends[first_block + count]))
        for k in range(count):
            found.g[self.ends[first_block + k], k] = radii[k]
        return Balls(self, found.c, found.g, found.h, found.r, np.abs(radii))

    def plain(self, values: Floats, n: int = 0) -> Balls:
        """Constants."""
        c = np.array(values, dtype=float)
        g, h = np.zeros((n, *c.shape)), np.zeros((self.rows(n), *c.shape))
        return Balls(self, c, g, h, np.zeros(c.shape), np.abs(c))


class Balls:
    """Models as an array.

    Parameters
    ----------
    blocks : Blocks
        Symbols.
    c, g, h, r : numpy.ndarray
        Values in the middle (..., b), linear and quadratic coefficients with a leading axis, and
        remainders.
    size : numpy.ndarray
        Bounds of the absolute values behind c, g and h.
    """

    __array_ufunc__ = None

    def __init__(
        self, blocks: Blocks, c: Floats, g: Floats, h: Floats, r: Floats, size: Floats
    ) -> None:
        self.blocks, self.c, self.g, self.h, self.r, self.size = blocks, c, g, h, r, size

    @cached_property
    def _lines(self) -> Floats:
        """Norms of the linear form by blocks."""
        starts = self.blocks.starts(len(self.g))[0]
        if not len(starts):
            return np.zeros((0, *self.c.shape))
        return np.asarray(np.sqrt(np.add.reduceat(self.g**2, starts, axis=0)))

    @cached_property
    def line(self) -> Floats:
        """Bound of the linear form."""
        return np.asarray(self._lines.sum(axis=0))

    @cached_property
    def bend(self) -> Floats:
        """Bound of the quadratic form."""
        starts = self.blocks.starts(len(self.g))[1]
        if not len(starts):
            return np.zeros(self.c.shape)
        weights = self.blocks.weights[: len(self.h)].reshape(-1, *[1] * self.c.ndim)
        return np.asarray(np.sqrt(np.add.reduceat(weights * self.h**2, starts, axis=0)).sum(axis=0))

    @cached_property
    def late(self) -> Floats:
        """Bound of the linear form of the symbols beyond the kept ones."""
        starts = self.blocks.starts(len(self.g))[0]
        return np.asarray(self._lines[starts >= self.blocks.kept].sum(axis=0))

    @property
    def reach(self) -> Floats:
        """Bound of |f - c|."""
        return np.asarray((self.line + self.bend + self.r) * UP + ROUND * self.size)

    @property
    def bound(self) -> Floats:
        """Bound of |f|."""
        return np.asarray((np.abs(self.c) + self.reach) * UP)

    def padded(self, n: int) -> Balls:
        """The same with at least n symbols."""
        k = n - len(self.g)
        if k <= 0:
            return self
        rows = self.blocks.rows(n) - len(self.h)
        g = np.concatenate([self.g, np.zeros((k, *self.c.shape))])
        h = np.concatenate([self.h, np.zeros((rows, *self.c.shape))])
        return Balls(self.blocks, self.c, g, h, self.r, self.size)

    def __getitem__(self, key: Any) -> Balls:
        own = key if isinstance(key, tuple) else (key,)
        parts = (self.c[own], self.g[(slice(None), *own)], self.h[(slice(None), *own)])
        return Balls(self.blocks, *parts, self.r[own], self.size[own])

    def averaged(self, start: int, end: int) -> Balls:
        """Mean of f(.., theta xi, ..) over theta from 0 to 1, xi the symbols from start to end."""
        first, second = self.blocks.first[: len(self.h)], self.blocks.second[: len(self.h)]
        own = [
            ((k >= start) & (k < end)).astype(float)
            for k in (np.arange(len(self.g)), first, second)
        ]
        shape = (-1, *[1] * self.c.ndim)
        g = self.g / (1.0 + own[0]).reshape(shape)
        h = self.h / (1.0 + own[1] + own[2]).reshape(shape)
        return Balls(self.blocks, self.c, g, h, self.r, self.size)

    def exact(self) -> Balls:
        """The polynomial alone."""
        none = np.zeros_like(self.r)
        return Balls(self.blocks, self.c, self.g, self.h, none, none)

    def with_rest(self, r: Floats) -> Balls:
        """The same polynomial with another remainder."""
        return Balls(self.blocks, self.c, self.g, self.h, r, np.zeros_like(r))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return NotImplemented
        if not isinstance(other, Balls):
            other = self.blocks.plain(np.broadcast_to(other, self.c.shape))
        n = max(len(self.g), len(other.g))
        a, b = self.padded(n), other.padded(n)
        r = (a.r + b.r) * UP
        return Balls(self.blocks, a.c + b.c, a.g + b.g, a.h + b.h, r, a.size + b.size)

    __radd__ = __add__

    def __neg__(self) -> Balls:
        return Balls(self.blocks, -self.c, -self.g, -self.h, self.r, self.size)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: float | Floats) -> Balls:
        k = np.asarray(other, dtype=float)
        parts = (self.c * k, self.g * k, self.h * k, self.r * np.abs(k) * UP, self.size * np.abs(k))
        return Balls(self.blocks, *parts)

    __rmul__ = __mul__

    def composed(self, values: tuple[Floats, Floats, Floats], third: Floats | float) -> Balls:
        """F(f) by F, F', F'' / 2 in the middle and a bound of |F'''| over the range."""
        away = Balls(self.blocks, 0.0 * self.c, self.g, self.h, self.r, self.size)
        square, far = times(",->", away, away), self.reach
        found = away * values[1] + square * values[2] + values[0]
        return Balls(
            self.blocks,
            found.c,
            found.g,
            found.h,
            (found.r + third * far**3 / 6) * UP,
            found.size + np.abs(values[0]),
        )


class Dual:
    """A function and its rate."""

    __array_ufunc__ = None

    def __init__(self, value: Any, rate: Any) -> None:
        self.value, self.rate = value, rate

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.value[key], self.rate[key])

    def __add__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return Dual(self.value + other, self.rate)
        return Dual(self.value + other.value, self.rate + other.rate)

    def __radd__(self, other: Any) -> Dual:
        return self.__add__(other)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate)

    def __sub__(self, other: Any) -> Dual:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Dual:
        return (-self).__add__(other)

    def __mul__(self, other: float) -> Dual:
        return Dual(self.value * other, self.rate * other)

    __rmul__ = __mul__


Array: TypeAlias = "Floats | Balls | Dual"
"""Entries of a formula."""


def times(spec: str, a: Any, b: Any) -> Any:
    """Sum of products by the letters of `einsum`, without that of the cells."""
    if isinstance(a, Dual) or isinstance(b, Dual):
        va, vb = (part.value if isinstance(part, Dual) else part for part in (a, b))
        rates = []
        if isinstance(a, Dual):
            rates.append(times(spec, a.rate, vb))
        if isinstance(b, Dual):
            rates.append(times(spec, va, b.rate))
        return Dual(times(spec, va, vb), rates[0] if len(rates) == 1 else rates[0] + rates[1])
    given, result = spec.split("->")
    left, right = given.split(",")
    bare = [
        not isinstance(part, Balls) and np.ndim(part) == len(own)
        for part, own in ((a, left), (b, right))
    ]

    def letters(s: str, k: int) -> str:
        return f"...{s}" if bare[k] else f"...{s}B"

    text = f"{letters(left, 0)},{letters(right, 1)}->...{result}B"

    def own(x: Floats, y: Floats) -> Floats:
        return np.asarray(np.einsum(text, x, y))

    if isinstance(a, Balls) and isinstance(b, Balls):
        return _both(own, a, b)
    if isinstance(a, Balls):
        size = np.abs(b)
        c, g, h = (own(part, b) for part in (a.c, a.g, a.h))
        return Balls(a.blocks, c, g, h, own(a.r, size) * UP, own(a.size, size))
    if isinstance(b, Balls):
        size = np.abs(a)
        c, g, h = (own(a, part) for part in (b.c, b.g, b.h))
        return Balls(b.blocks, c, g, h, own(size, b.r) * UP, own(size, b.size))
    return own(np.asarray(a), np.asarray(b))


def _both(own: Callable[[Floats, Floats], Floats], a: Balls, b: Balls) -> Balls:
    """Product of two arrays of models."""
    blocks, na, nb = a.blocks, len(a.g), len(b.g)
    n = max(na, nb)
    c = own(a.c, b.c)
    g, h = np.zeros((n, *c.shape)), np.zeros((blocks.rows(n), *c.shape))
    if na:
        g[:na] += own(a.g, b.c[None])
        h[: len(a.h)] += own(a.h, b.c[None])
    if nb:
        g[:nb] += own(a.c[None], b.g)
        h[: len(b.h)] += own(a.c[None], b.h)
    if na and nb:
        first, second = blocks.first[: len(h)], blocks.second[: len(h)]
        for i, j, skip in ((first, second, False), (second, first, True)):
            rows = np.flatnonzero((i < na) & (j < nb) & ~(skip & (i == j)))
            if len(rows):
                h[rows] += own(a.g[i[rows]], b.g[j[rows]])
    pa, pb = np.abs(a.c) + a.line + a.bend, np.abs(b.c) + b.line + b.bend
    r = own(a.line, b.bend) + own(a.bend, b.line + b.bend) + own(a.late, b.late)
    r = r + own(a.r, pb + b.r) + own(pa, b.r)
    # Rounding of both arguments counts in the products, too.
    r = r + ROUND * (own(a.size, pb) + own(pa, b.size))
    return Balls(blocks, c, g, h, r * UP, own(pa, pb))


def stacked(parts: list[Any]) -> Any:
    """Arrays of equal shape along a new first axis."""
    return _combined(parts, np.stack)


def joined(parts: list[Any]) -> Any:
    """Arrays along their first axis."""
    return _combined(parts, np.concatenate)


def _combined(parts: list[Any], put: Callable[..., Floats]) -> Any:
    if any(isinstance(part, Dual) for part in parts):
        own = [part if isinstance(part, Dual) else Dual(part, 0.0 * part) for part in parts]
        return Dual(*(_combined([getattr(p, k) for p in own], put) for k in ("value", "rate")))
    known = [part for part in parts if isinstance(part, Balls)]
    if not known:
        return put(parts)
    models = [part if isinstance(part, Balls) else known[0].blocks.plain(part) for part in parts]
    n = max(len(m.g) for m in models)
    models = [m.padded(n) for m in models]
    c, r, size = (put([getattr(m, name) for m in models]) for name in ("c", "r", "size"))
    g, h = (put([getattr(m, name) for m in models], axis=1) for name in ("g", "h"))
    return Balls(known[0].blocks, c, g, h, r, size)


def norm(vector: Balls) -> Floats:
    """Bound of the Euclidean norm of a vector (k, b); balls count by their singular values."""
    total = np.sqrt((vector.c**2).sum(axis=0)) + np.sqrt((vector.r**2).sum(axis=0))
    ends = vector.blocks.ends
    for i, j in itertools.pairwise(ends.tolist()):
        if j > len(vector.g):
            break
        part = np.moveaxis(vector.g[i:j], -1, 0)
        sound = np.isfinite(part).all(axis=(1, 2))
        safe = np.where(sound[:, None, None], part, 0.0)
        gram = safe @ safe.transpose(0, 2, 1)
        top = np.abs(np.linalg.eigvalsh(gram)[:, -1]) + 1e-13 * np.trace(gram, axis1=1, axis2=2)
        total = total + np.where(sound, np.sqrt(top), np.inf)
    starts = vector.blocks.starts(len(vector.g))[1]
    if len(starts):
        weights = vector.blocks.weights[: len(vector.h), None, None]
        square = np.add.reduceat(weights * vector.h**2, starts, axis=0)
        total = total + np.sqrt(square.sum(axis=1)).sum(axis=0)
    rounding = ROUND * np.sqrt((vector.size**2).sum(axis=0))
    found = np.asarray(total * UP + rounding)
    return np.where(np.isnan(found), np.inf, found)


class Solver:
    """Equations A y = B with a matrix of models (k, k, b).

    With X the inverse in the middle, y a polynomial, |1 - X A| <= K and |X (B - A y)| <= D entry by
    entry, the solution differs from y by at most (1 - K)^-1 D, where the row sums of K are below 1.
    """

    def __init__(self, matrix: Balls) -> None:
        self.matrix, k = matrix, len(matrix.c)
        middle = np.moveaxis(matrix.c, -1, 0)
        sound = np.isfinite(middle).all(axis=(1, 2))
        safe = np.where(sound[:, None, None], middle, np.eye(k))
        sound &= np.abs(np.linalg.det(safe)) > 0.0
        safe = np.where(sound[:, None, None], safe, np.eye(k))
        self.guess = np.moveaxis(np.linalg.inv(safe), 0, -1)
        self.gain = (times("ij,jk->ik", self.guess, matrix) - np.eye(k)[:, :, None]).bound
        self.sound = sound & (self.gain.sum(axis=1).max(axis=0) < 0.99)

    def __call__(self, right: Any, steps: int = 3) -> Balls:
        """Solution for vectors (k, b) or matrices (k, m, b)."""
        matrix = self.matrix
        given = right if isinstance(right, Balls) else matrix.blocks.plain(right)
        spec = "ij,j->i" if given.c.ndim == 2 else "ij,jk->ik"
        plain, exact = matrix.exact(), given.exact()
        y: Balls = times(spec, self.guess, exact).exact()
        for _ in range(steps - 1):
            y = (y + times(spec, self.guess, exact - times(spec, plain, y))).exact()
        defect = times(spec, self.guess, given - times(spec, matrix, y)).bound
        sound = self.sound & np.isfinite(defect).reshape(-1, defect.shape[-1]).all(axis=0)
        gain, safe = np.where(sound, self.gain, 0.0), np.where(sound, defect, 0.0)
        k = len(gain)
        left = np.linalg.inv(np.eye(k) - np.moveaxis(gain, -1, 0))
        r = np.einsum("Bij,j...B->i...B", np.abs(left), safe) * (1 + 1e-9) + 1e-300
        return y.with_rest(np.where(sound, r, np.inf))


def sine(a: Any) -> Any:
    """Sine."""
    if isinstance(a, Dual):
        return Dual(sine(a.value), times(",->", cosine(a.value), a.rate))
    if not isinstance(a, Balls):
        return np.sin(a)
    s, c = np.sin(a.c), np.cos(a.c)
    return a.composed((s, c, -s / 2), 1.0)


def cosine(a: Any) -> Any:
    """Cosine."""
    if isinstance(a, Dual):
        return Dual(cosine(a.value), -times(",->", sine(a.value), a.rate))
    if not isinstance(a, Balls):
        return np.cos(a)
    s, c = np.sin(a.c), np.cos(a.c)
    return a.composed((c, -s, -c / 2), 1.0)


def reciprocal(a: Any) -> Any:
    """1 / a; without a bound where a may vanish."""
    if isinstance(a, Dual):
        back = reciprocal(a.value)
        return Dual(back, -times(",->", times(",->", back, back), a.rate))
    if not isinstance(a, Balls):
        return 1.0 / np.asarray(a)
    far = np.abs(a.c) - a.reach
    with np.errstate(all="ignore"):
        third = np.where(far > 0.0, 6.0 / far**4, np.inf)
        return a.composed((1 / a.c, -1 / a.c**2, 1 / a.c**3), third)


def root(a: Any) -> Any:
    """Square root; without a bound where a may vanish."""
    if isinstance(a, Dual):
        found = root(a.value)
        return Dual(found, times(",->", reciprocal(found), a.rate) * 0.5)
    if not isinstance(a, Balls):
        return np.sqrt(a)
    far = a.c - a.reach
    with np.errstate(all="ignore"):
        third = np.where(far > 0.0, 0.375 * far**-2.5, np.inf)
        s = np.sqrt(a.c)
        return a.composed((s, 0.5 / s, -0.125 / (s * a.c)), third)
