"""Second-order models with bounds of their slopes, for the checker of proofs.

A `Smooth` of symbols xi in [-1, 1]^n holds arrays of functions f with a polynomial p of degree 2,

    |f - p| <= r_0,   |d(f - p) / d xi_i| <= r_i,

so that the slope of a function over its cell is known from the function itself. Nothing here is
shared with the models of the prover (`concur._polynomials`), which have no slopes and measure by
balls.

**What holds.** Every operation returns r_0 and r_i that contain the truncated terms, the given
remainders and the rounding of floats. r_0 never depends on given r_i. NaN stays NaN: the
caller compares such that NaN fails.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Floats = np.ndarray

ROUND = 1e-14
"""Above the rounding of sums of some tens of products, relative to the sum of absolute values."""

UP = 1 + 1e-13
"""Above the rounding of a sum of positive numbers."""


class Rejection(Exception):  # noqa: N818 - a result, not an error
    """Ends a verification without confirmation."""


def require(holds: bool, reason: str) -> None:
    """End the verification with a reason unless `holds` is true."""
    if not holds:
        raise Rejection(reason)


class Smooth:
    """Functions of n symbols: value, slopes and curvatures in the middle, and remainders.

    Parameters
    ----------
    c : numpy.ndarray
        Values in the middle; the last axis counts cells.
    g : numpy.ndarray
        Coefficients of the symbols, shape (n, *c.shape).
    h : numpy.ndarray
        Coefficients of xi_i xi_j, i <= j, shape (n (n + 1) / 2, *c.shape).
    r : numpy.ndarray
        Bounds of the remainder and of its slopes, shape (1 + n, *c.shape).
    """

    __slots__ = ("c", "g", "h", "r")

    def __init__(self, c: Floats, g: Floats, h: Floats, r: Floats) -> None:
        self.c, self.g, self.h, self.r = c, g, h, r

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Coefficients and remainders."""
        return self.c, self.g, self.h, self.r

    def __getitem__(self, key: object) -> Smooth:
        own = key if isinstance(key, tuple) else (key,)
        return Smooth(self.c[own], *(part[(slice(None), *own)] for part in self.parts[1:]))

    @property
    def sizes(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Bounds over the cell: of linear and quadratic parts, and of their slopes."""
        first, second = _pairs(len(self.g))
        own = np.abs(self.h)
        bend = np.zeros_like(self.g)
        for k, (i, j) in enumerate(zip(first, second, strict=True)):
            bend[i] += own[k]
            bend[j] += own[k]
        return np.abs(self.g).sum(axis=0), own.sum(axis=0), np.abs(self.g), bend

    @property
    def reach(self) -> Floats:
        """Bound of |f - c|."""
        line, bend, _, _ = self.sizes
        return np.asarray((line + bend + self.r[0]) * UP)

    @property
    def bound(self) -> Floats:
        """Bound of |f|."""
        return np.asarray((np.abs(self.c) + self.reach) * UP)

    @property
    def slope(self) -> Floats:
        """Bounds of |df / d xi_i|, shape (n, ...)."""
        _, _, first, second = self.sizes
        return np.asarray((first + second + self.r[1:]) * UP)

    def widened(self, by: Floats) -> Smooth:
        """The same with `by` (1 + n, ...) added to the remainders."""
        return Smooth(self.c, self.g, self.h, (self.r + by) * UP)

    def __add__(self, other: Smooth | Floats | float) -> Smooth:
        if not isinstance(other, Smooth):
            other = constant(np.broadcast_to(other, self.c.shape), len(self.g))
        c, g, h, r = (np.asarray(a + b) for a, b in zip(self.parts, other.parts, strict=True))
        size = np.abs(c) + np.abs(g).sum(axis=0) + 2 * np.abs(h).sum(axis=0)
        return Smooth(c, g, h, (r + ROUND * size) * UP)

    __radd__ = __add__

    def __neg__(self) -> Smooth:
        return Smooth(-self.c, -self.g, -self.h, self.r)

    def __sub__(self, other: Smooth | Floats | float) -> Smooth:
        return self + (-other)

    def __rsub__(self, other: Floats | float) -> Smooth:
        return (-self) + other

    def __mul__(self, other: Smooth | Floats | float) -> Smooth:
        if isinstance(other, Smooth):
            return _bilinear(np.multiply, self, other)
        k = np.asarray(other, dtype=float)
        c, g, h = self.c * k, self.g * k, self.h * k
        size = np.abs(c) + np.abs(g).sum(axis=0) + 2 * np.abs(h).sum(axis=0)
        return Smooth(c, g, h, (self.r * np.abs(k) + ROUND * size) * UP)

    __rmul__ = __mul__

    def compose(self, values: tuple[Floats, Floats, Floats], third: Floats | float) -> Smooth:
        """F(self) by values F, F', F'' / 2 in the middle and a bound of |F'''| over the range."""
        n = len(self.g)
        away = Smooth(0.0 * self.c, self.g, self.h, self.r)
        whole = away * values[1] + (away * away) * values[2] + values[0]
        far = self.reach
        rest = np.concatenate([(third * far**3 / 6)[None], third * far**2 / 2 * self.slope])
        size = sum(np.abs(v) for v in values) * (1 + far) * (1 + self.slope.max(axis=0, initial=0))
        return whole.widened(rest + ROUND * np.broadcast_to(size, (1 + n, *self.c.shape)))

    def sine(self) -> Smooth:
        """Sine."""
        s, c = np.sin(self.c), np.cos(self.c)
        return self.compose((s, c, -s / 2), 1.0)

    def cosine(self) -> Smooth:
        """Cosine."""
        s, c = np.sin(self.c), np.cos(self.c)
        return self.compose((c, -s, -c / 2), 1.0)

    def reciprocal(self) -> Smooth:
        """Reciprocal; infinite where the function may vanish."""
        c, far = self.c, np.abs(self.c) - self.reach
        with np.errstate(all="ignore"):
            third = np.where(far > 0.0, 6.0 / far**4, np.inf)
            return self.compose((1 / c, -1 / c**2, 1 / c**3), third)

    def root(self) -> Smooth:
        """Square root; infinite where the function may vanish."""
        c, far = self.c, self.c - self.reach
        with np.errstate(all="ignore"):
            third = np.where(far > 0.0, 0.375 / far**2.5, np.inf)
            root = np.sqrt(c)
            return self.compose((root, 0.5 / root, -0.125 / (root * c)), third)


def _pairs(n: int) -> tuple[list[int], list[int]]:
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def constant(values: Floats, n: int) -> Smooth:
    """Constants."""
    c = np.array(values, dtype=float)
    zero = [np.zeros((k, *c.shape)) for k in (n, n * (n + 1) // 2, 1 + n)]
    return Smooth(c, *zero)


def symbols(middle: Floats, half: Floats) -> Smooth:
    """Values middle + half xi, one symbol for each of the n rows, shape (n, cells)."""
    found = constant(middle, len(middle))
    for i in range(len(middle)):
        found.g[i, i] = half[i]
    return found.widened(ROUND * (np.abs(middle) + np.abs(half)))


def stack(parts: list[Smooth]) -> Smooth:
    """Functions of equal shape along a new first axis."""
    c = np.stack([part.c for part in parts])
    rest = [np.stack(own, axis=1) for own in zip(*(p.parts[1:] for p in parts), strict=True)]
    return Smooth(c, *rest)


def product(spec: str, a: Smooth | Floats, b: Smooth | Floats) -> Smooth:
    """Sum of products by the letters of `einsum`; plain arrays are constants."""
    left, right, result = (f"...{part}" for part in spec.replace("->", ",").split(","))
    text = f"{left},{right}->{result}"

    def times(x: Floats, y: Floats) -> Floats:
        return np.asarray(np.einsum(text, x, y))

    if isinstance(a, Smooth) and isinstance(b, Smooth):
        return _bilinear(times, a, b)
    parts = a.parts if isinstance(a, Smooth) else b.parts  # type: ignore[union-attr]

    def with_plain(x: Floats, size: bool = False) -> Floats:
        plain = np.abs(b if isinstance(a, Smooth) else a) if size else None  # type: ignore[arg-type]
        if isinstance(a, Smooth):
            return times(x, b if plain is None else plain)  # type: ignore[arg-type]
        return times(a if plain is None else plain, x)

    c, g, h = (with_plain(part) for part in parts[:3])
    size = np.abs(parts[0]) + np.abs(parts[1]).sum(axis=0) + 2 * np.abs(parts[2]).sum(axis=0)
    return Smooth(c, g, h, with_plain(parts[3] + ROUND * size, size=True) * UP)


def _bilinear(times: Callable[[Floats, Floats], Floats], a: Smooth, b: Smooth) -> Smooth:
    """Product of two models by a bilinear map of arrays whose entries are 0 or 1."""
    first, second = _pairs(len(a.g))
    other = np.array([float(i != j) for i, j in zip(first, second, strict=True)])
    c = times(a.c, b.c)
    g = times(a.c[None], b.g) + times(a.g, b.c[None])
    cross = times(a.g[second], b.g[first])
    cross *= other.reshape(-1, *[1] * (cross.ndim - 1))
    h = times(a.c[None], b.h) + times(a.h, b.c[None]) + times(a.g[first], b.g[second]) + cross
    (la, qa, ga, ba), (lb, qb, gb, bb) = a.sizes, b.sizes
    pa, pb = np.abs(a.c) + la + qa, np.abs(b.c) + lb + qb
    ra, rb = a.r[0], b.r[0]
    whole = times(la + qa, qb) + times(qa, lb) + times(pa, rb + ROUND * pb) + times(ra, pb + rb)
    slopes = (
        times(ga + ba, (qb + rb)[None])
        + times((la + qa)[None], bb)
        + times(ba, lb[None])
        + times((qa + ra)[None], gb)
        + times(ra[None], bb + b.r[1:])
        + times(pa[None], b.r[1:] + ROUND * pb)
        + times(a.r[1:], (pb + rb)[None])
    )
    return Smooth(c, g, h, np.concatenate([whole[None], slopes]) * UP)


def inverse(matrix: Smooth) -> Smooth:
    """Inverse of matrices (k, k, cells) by the series about that of the middle.

    With E = 1 - X A for any X, A^-1 = (1 + E + E^2 + E^3 (1 - E)^-1) X where |E| < 1; infinite
    remainders elsewhere. The middle's inverse is a guess.
    """
    k = len(matrix.c)
    with np.errstate(all="ignore"):
        middle = np.moveaxis(matrix.c, -1, 0)
        sound = np.isfinite(middle).all(axis=(1, 2))
        sound &= np.abs(np.linalg.det(np.where(sound[:, None, None], middle, 0.0))) > 0.0
        guess = np.linalg.inv(np.where(sound[:, None, None], middle, np.eye(k)))
    x = np.moveaxis(guess, 0, -1)
    off = -product("ijb,jkb->ikb", x, matrix) + np.eye(k)[:, :, None]
    series = off + product("ijb,jkb->ikb", off, off) + np.eye(k)[:, :, None]
    size, slope = off.bound, off.slope
    norm = size.sum(axis=1).max(axis=0)
    good = sound & (norm < 0.9)
    size, slope = np.where(good, size, 0.0), np.where(good, slope, 0.0)

    def times(a: Floats, b: Floats) -> Floats:
        return np.asarray(np.einsum("...ijb,...jkb->...ikb", a, b))

    # Entry by entry, (1 - E)^-1 is at most the series of |E|, whose end is below its norm.
    whole = np.eye(k)[:, :, None] + size
    for _ in range(5):
        whole = np.eye(k)[:, :, None] + times(size, whole)
    short = np.where(good, norm, 0.0)
    whole = whole + short**7 / (1 - short)
    square = times(size, size)
    rest = times(times(square, size), whole)
    turn = times(square[None], slope) + times(times(size[None], slope), size[None])
    turn = turn + times(slope, square[None]) + times(rest[None], slope)
    add = np.concatenate([rest[None], times(turn, whole[None])])
    add = np.where(good, add, np.inf) * UP
    return product("ijb,jkb->ikb", series.widened(add), x)
