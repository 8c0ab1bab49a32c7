"""Many functions at once as polynomials of second degree in points of balls, with a remainder.

Symbols d come in blocks; each block is a point of the unit ball of its R^n, for n = 1 of an
interval. A `Model` encloses the values of a function by

    f(d) = c + sum_k l_k d_k + sum_{i<=j} q_ij d_i d_j + [-r, r]

for all d with every block in its ball. A linear form is at most the sum over blocks of the
Euclidean norms of its coefficients, a quadratic form at most the sum over pairs of blocks of
Frobenius norms (`task-proof`, section 2): rotations of a block change no bound. Remainders of
products use the same norms. All arrays have a last axis: one column for each cell. A model needs
only the leading symbols of its space; the others have no coefficients. A space may keep products
with some symbols only; the others' are in the remainder. Coefficients are floats; the
remainder includes their rounding.

**Guarantee.** If every argument of an operation encloses its function, the result encloses the
operation's value: no sample of f lies outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import casadi as ca
import numpy as np

from concur.errors import OutputError

# Far above the rounding of one operation on these few coefficients, and of the norms in r.
ROUNDING = 2.0**-44

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


class Crossing(NamedTuple):
    """Pairs of symbols: places, indices and weights, and those with both among the first ones."""

    rows: slice | np.ndarray
    first: np.ndarray
    second: np.ndarray
    weight: Floats
    own: slice | np.ndarray
    own_first: np.ndarray
    own_second: np.ndarray


@dataclass(frozen=True)
class Space:
    """Symbols in blocks, each a point of a unit ball.

    Parameters
    ----------
    blocks : tuple of int
        Dimension of each block.
    curved : int, optional
        Number of leading symbols, those of whole blocks, whose products with all symbols a model
        keeps. Products of two others go into remainders. All if not given.
    """

    blocks: tuple[int, ...]
    curved: int = 10**9

    @cached_property
    def size(self) -> int:
        """Number of symbols."""
        return sum(self.blocks)

    @lru_cache(maxsize=64)  # noqa: B019  # few spaces exist, and each lives as long as its proof
    def pairs(self, n: int) -> tuple[np.ndarray, np.ndarray, Floats, np.ndarray, Floats]:
        """Indices i <= j of the pairs of n symbols, weights of products, starts, pair norms.

        The last matrix adds the squares of coefficients by pair of blocks. Within a block the
        symmetric matrix of the form has half the coefficients off its diagonal.
        """
        ends = [min(j + 1, self.curved) for j in range(n)]
        second = np.repeat(np.arange(n), ends)
        first = np.concatenate([np.arange(0), *(np.arange(end) for end in ends)])
        of = np.repeat(np.arange(len(self.blocks)), self.blocks)
        weight = np.where(first == second, 0.5, 1.0)
        starts = np.concatenate([[0], np.cumsum(self.blocks)[:-1]])
        same = of[first] == of[second]
        keys = of[first] * len(self.blocks) + of[second]
        names = np.unique(keys)
        square = np.where(same & (first != second), 0.5, 1.0)
        norms = (keys == names[:, None]) * square
        return first, second, weight[:, None], starts[starts < n], norms.astype(float)

    def rows(self, n: int) -> int:
        """Number of pairs of n symbols."""
        m = min(n, self.curved)
        return m * (m + 1) // 2 + (n - m) * m

    @cached_property
    def straight(self) -> int:
        """First block beyond the curved symbols."""
        return int(np.searchsorted(np.cumsum(self.blocks), self.curved, side="right"))

    @cached_property
    def spread(self) -> float:
        """Bound of the sum of absolute coefficients of a form, over its largest size."""
        return 1.5 * max(self.blocks, default=1)

    @lru_cache(maxsize=256)  # noqa: B019
    def crossing(self, n: int, m: int) -> Crossing:
        """Pairs of n symbols of which one is among the first m."""
        first, second, weight, _, _ = self.pairs(n)
        rows = np.flatnonzero(first < m)
        own = np.flatnonzero(second[rows] < m)
        every = slice(None)
        return Crossing(
            every if len(rows) == len(first) else rows,
            first[rows],
            second[rows],
            weight[rows],
            every if len(own) == len(rows) else own,
            first[rows[own]],
            second[rows[own]],
        )

    def symbol(self, k: int, half: Floats | float = 1.0, middle: Floats | float = 0.0) -> Model:
        """The function m + h d_k."""
        c, half = np.broadcast_arrays(np.atleast_1d(middle), np.atleast_1d(half))
        linear = np.zeros((k + 1, c.size))
        linear[k] = half
        quadratic = np.zeros((self.rows(k + 1), c.size))
        return Model(self, c.astype(float), linear, quadratic, np.zeros(c.size))

    def block(self, b: int, radius: Floats | float) -> list[Model]:
        """A point of a ball: all symbols of a block times its radius."""
        start = sum(self.blocks[:b])
        return [self.symbol(start + k, radius) for k in range(self.blocks[b])]

    def constant(self, values: Floats | float) -> Model:
        """A number, or one for each column."""
        c = np.atleast_1d(np.asarray(values, dtype=float))
        return Model(self, c, np.zeros((0, c.size)), np.zeros((0, c.size)), np.zeros(c.size))


@dataclass(frozen=True, eq=False)
class Model:
    """Enclosure of a function of the symbols of a space, for each column.

    Parameters
    ----------
    space : Space
        The symbols.
    c, r : numpy.ndarray
        Value at the middle, and remainder, infinite where there is no bound; shape (b,).
    l, q : numpy.ndarray
        Linear and quadratic coefficients of the leading n symbols, shapes (n, b) and
        (space.rows(n), b).
    """

    space: Space
    c: Floats
    l: Floats
    q: Floats
    r: Floats

    __array_ufunc__ = None  # arrays leave products with models to the models

    @cached_property
    def _norms(self) -> Floats:
        """Largest size of the linear form of each block."""
        if not len(self.l):
            return np.zeros((0, self.c.size))
        starts = self.space.pairs(len(self.l))[3]
        return np.asarray(np.sqrt(np.add.reduceat(self.l**2, starts, axis=0)))

    @cached_property
    def linear(self) -> Floats:
        """Largest size of the linear form."""
        return np.asarray(self._norms.sum(axis=0))

    @cached_property
    def quadratic(self) -> Floats:
        """Bound of the quadratic form."""
        if not len(self.l):
            return np.zeros_like(self.c)
        return np.asarray(np.sqrt(self.space.pairs(len(self.l))[4] @ self.q**2).sum(axis=0))

    @cached_property
    def reach(self) -> Floats:
        """Largest distance of the function from its value at the middle."""
        return (self.linear + self.quadratic + self.r) * (1 + ROUNDING)

    @property
    def bound(self) -> Floats:
        """Largest absolute value of the function."""
        return (np.abs(self.c) + self.reach) * (1 + ROUNDING)

    @cached_property
    def size(self) -> Floats:
        """Largest absolute value of the polynomial."""
        return np.abs(self.c) + self.linear + self.quadratic

    @cached_property
    def total(self) -> Floats:
        """Bound of the sum of absolute coefficients, which limits their rounding.

        Operations pass on that of their operands, so that few sums are computed.
        """
        found = np.abs(self.c)
        if len(self.l):
            found = found + np.sqrt(len(self.l) * np.einsum("ib,ib->b", self.l, self.l))
            found = found + np.sqrt(len(self.q) * np.einsum("ib,ib->b", self.q, self.q))
        return found

    def _with_total(self, total: Floats) -> Model:
        """The same model, with a bound of the sum of its absolute coefficients."""
        self.__dict__["total"] = total
        return self

    def with_remainder(self, r: Floats | float) -> Model:
        """The same polynomial with another remainder."""
        own = np.asarray(r)
        if own.shape != self.c.shape:
            own = np.broadcast_to(own, self.c.shape)
        return Model(self.space, self.c, self.l, self.q, own)

    def take(self, columns: np.ndarray) -> Model:
        """Some of the columns."""
        if self.c.size == 1:
            return self
        return Model(
            self.space, self.c[columns], self.l[:, columns], self.q[:, columns], self.r[columns]
        )

    def spread(self, b: int) -> Model:
        """The same function in b columns, if it has one for all."""
        c, r = (np.broadcast_to(part, b) for part in (self.c, self.r))
        linear, quadratic = _spread(b, self.l, self.q)
        return Model(self.space, c, linear, quadratic, r)

    def mixed(self, weights: Floats) -> Model:
        """Sums of the columns by weights (columns, sums); without a bound where one has none."""
        whole, size = self.spread(len(weights)), np.abs(weights)
        rest = (whole.r @ size) * (1 + ROUNDING) + ROUNDING * (whole.total @ size)
        parts = (whole.c @ weights, whole.l @ weights, whole.q @ weights)
        return Model(self.space, *parts, rest)

    def joined(self, other: Model) -> Model:
        """The columns of this one, then those of the other."""
        n = max(len(self.l), len(other.l))
        (l1, q1), (l2, q2) = self.padded(n), other.padded(n)
        return Model(
            self.space,
            np.append(self.c, other.c),
            np.concatenate([l1, l2], axis=1),
            np.concatenate([q1, q2], axis=1),
            np.append(self.r, other.r),
        )

    def at(self, d: Floats) -> Floats:
        """The polynomial at points d, shape (n, b) or (n, 1)."""
        n = len(self.l)
        first, second = self.space.pairs(n)[:2]
        products = d[first] * d[second]
        return np.asarray(self.c + (self.l * d[:n]).sum(axis=0) + (self.q * products).sum(axis=0))

    def padded(self, n: int) -> tuple[Floats, Floats]:
        """Coefficients of the leading n symbols."""
        if len(self.l) == n:
            return self.l, self.q
        b = self.c.size
        linear, quadratic = np.zeros((n, b)), np.zeros((self.space.rows(n), b))
        linear[: len(self.l)] = self.l
        quadratic[: len(self.q)] = self.q
        return linear, quadratic

    def __neg__(self) -> Model:
        return Model(self.space, -self.c, -self.l, -self.q, self.r)._with_total(self.total)

    def __add__(self, other: Model | Floats | float) -> Model:
        return self._sum(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: Model | Floats | float) -> Model:
        return self._sum(other, np.subtract)

    def __rsub__(self, other: Floats | float) -> Model:
        return -self + other

    def _sum(self, other: Model | Floats | float, apply: np.ufunc) -> Model:
        """Sum or difference."""
        if not isinstance(other, Model):
            c = apply(self.c, other)
            grown = (1 + ROUNDING) * self.r + ROUNDING * np.abs(c)
            linear, quadratic = _spread(c.size, self.l, self.q)
            return Model(self.space, c, linear, quadratic, grown)
        total = self.total + other.total
        rest = (self.r + other.r) * (1 + ROUNDING) + ROUNDING * total
        parts = []
        for a, b in ((self.l, other.l), (self.q, other.q)):
            n, m = len(a), len(b)
            if n == m:
                parts.append(apply(a, b))
                continue
            # The shorter one has no coefficients beyond its own symbols.
            whole = np.empty((max(n, m), total.size))
            k = min(n, m)
            apply(a[:k], b[:k], out=whole[:k])
            if n > m:
                whole[k:] = a[k:]
            else:
                apply(0.0, b[k:], out=whole[k:])
            parts.append(whole)
        found = Model(self.space, apply(self.c, other.c), parts[0], parts[1], rest)
        return found._with_total(total)

    def __mul__(self, other: Model | Floats | float) -> Model:
        if not isinstance(other, Model):
            factor = np.atleast_1d(np.asarray(other, dtype=float))
            size = np.abs(factor)
            rest = size * (self.r + ROUNDING * self.total) * (1 + ROUNDING)
            linear, quadratic = self.l * factor, self.q * factor
            found = Model(self.space, self.c * factor, linear, quadratic, rest)
            return found._with_total(size * self.total)
        a, b = (self, other) if len(self.l) >= len(other.l) else (other, self)
        n, both = len(a.l), a.size * b.size
        rest = a.linear * b.quadratic + a.quadratic * (b.linear + b.quadratic)
        rest = rest + a.r * (b.size + b.r) + b.r * a.size
        rest = rest * (1 + ROUNDING) + ROUNDING * both
        linear, quadratic = b.c * a.l, b.c * a.q
        m = len(b.l)
        if m:
            # The smaller one has no coefficients beyond its own symbols.
            at = self.space.crossing(n, m)
            if m > self.space.curved:
                straight = self.space.straight
                ends = (one._norms[straight:].sum(axis=0) for one in (a, b))
                rest = rest + next(ends) * next(ends) * (1 + ROUNDING)
            cross = a.l[at.second] * b.l[at.first]
            if a is b:
                cross *= 2.0
            else:
                cross[at.own] += a.l[at.own_first] * b.l[at.own_second]
            cross *= at.weight
            quadratic[at.rows] += cross
            linear[:m] += a.c * b.l
            quadratic[: len(b.q)] += a.c * b.q
        found = Model(self.space, a.c * b.c, linear, quadratic, rest)
        return found._with_total(self.space.spread**2 * both)

    __rmul__ = __mul__

    def __truediv__(self, other: Model | Floats | float) -> Model:
        return self * (other.inverse() if isinstance(other, Model) else 1.0 / other)

    def __rtruediv__(self, other: Floats | float) -> Model:
        return self.inverse() * other

    def _series(
        self, value: Floats, slope: Floats, bend: Floats, rest: Callable[[Floats], Floats]
    ) -> Model:
        """A function by its Taylor polynomial at c: value, slope, half the second derivative.

        `rest` bounds the error of this polynomial at a distance from c.
        """
        inner = Model(self.space, np.zeros_like(self.c), self.l, self.q, self.r)
        square = inner * inner
        reach = self.reach
        size = np.abs(value) + np.abs(slope) * reach + np.abs(bend) * reach**2
        r = np.abs(slope) * self.r + np.abs(bend) * square.r + rest(reach)
        found = Model(
            self.space,
            value,
            slope * self.l,
            slope * self.q + bend * square.q,
            r * (1 + ROUNDING) + ROUNDING * size,
        )
        return found._with_total(self.space.spread**2 * size)

    def inverse(self) -> Model:
        """The reciprocal; without a bound where the function may vanish."""
        c = self.c

        def rest(reach: Floats) -> Floats:
            t = reach / np.abs(c)
            return np.where(t < 1.0, t**3 / ((1.0 - t) * np.abs(c)), np.inf)

        return self._series(1 / c, -1 / c**2, 1 / c**3, rest)

    def sqrt(self) -> Model:
        """The square root; without a bound where the function may vanish."""
        c = self.c
        root = np.sqrt(c)

        def rest(reach: Floats) -> Floats:
            t = reach / np.abs(c)
            return np.where((c > 0) & (t < 1.0), root * t**3 / (16 * (1.0 - t) ** 2.5), np.inf)

        return self._series(root, 0.5 / root, -0.125 / (root * c), rest)

    def sin(self) -> Model:
        """The sine."""
        s, c = np.sin(self.c), np.cos(self.c)
        return self._series(s, c, -s / 2, lambda reach: reach**3 / 6)

    def cos(self) -> Model:
        """The cosine."""
        s, c = np.sin(self.c), np.cos(self.c)
        return self._series(c, -s, -c / 2, lambda reach: reach**3 / 6)

    def exp(self) -> Model:
        """The exponential."""
        e = np.exp(self.c)
        return self._series(e, e, e / 2, lambda reach: e * np.exp(reach) * reach**3 / 6)


def _spread(b: int, *parts: Floats) -> list[Floats]:
    """Coefficients for b columns."""
    return [p if p.shape[1] == b else np.repeat(p, b, axis=1) for p in parts]


def norm_bound(vector: Sequence[Model] | np.ndarray) -> Floats:
    """Bound of the Euclidean norm of a vector of functions, for each column.

    A block of the linear part counts by its largest singular value.
    """
    if len(vector) == 1:
        return np.asarray(vector[0].bound)
    space, n = vector[0].space, max(len(m.l) for m in vector)
    b = max(m.c.size for m in vector)
    parts = [_spread(b, *m.padded(n)) for m in vector]
    linear, quadratic = (np.array([p[k] for p in parts]) for k in (0, 1))
    total = np.sqrt(sum(np.broadcast_to(m.c, b) ** 2 for m in vector))
    total = total + np.sqrt(sum(np.broadcast_to(m.r, b) ** 2 for m in vector))
    if n:
        _, _, _, starts, norms = space.pairs(n)
        for i, j in zip(starts, [*starts[1:], n], strict=True):
            total = total + _largest_singular_value(linear[:, i:j])
        total = total + np.sqrt(norms @ (quadratic**2).sum(axis=0)).sum(axis=0)
    return np.asarray(total * (1 + ROUNDING))


def _largest_singular_value(matrices: Floats) -> Floats:
    """Bound of the largest singular values of matrices (n, k, b)."""
    letters = "ikb,jkb->bij" if len(matrices) <= matrices.shape[1] else "kib,kjb->bij"
    gram = np.einsum(letters, matrices, matrices)
    trace = np.trace(gram, axis1=1, axis2=2)
    if gram.shape[1] == 1:
        return np.asarray(np.sqrt(trace) * (1 + ROUNDING))
    if gram.shape[1] == 2:
        largest = (trace + np.hypot(gram[:, 0, 0] - gram[:, 1, 1], 2 * gram[:, 0, 1])) / 2
        return np.asarray(np.sqrt(largest + 1e-13 * trace))
    sound = np.isfinite(gram).all(axis=(1, 2))
    largest = np.linalg.eigvalsh(np.where(sound[:, None, None], gram, 0.0))[:, -1]
    return np.where(sound, np.sqrt(np.abs(largest) + 1e-13 * trace), np.inf)


Argument: TypeAlias = Sequence[Any]
"""Entries of a vector: models, numbers, or arrays with a number for each column."""


class Walker:
    """Evaluation of a CasADi function over models.

    Parameters
    ----------
    function : casadi.Function
        Function over SX of dense vectors.
    where : str
        Place for error messages.
    more : mapping, optional
        Further operations, by CasADi's number.

    Raises
    ------
    OutputError
        If it has an unsupported instruction, such as a comparison.
    """

    def __init__(
        self,
        function: ca.Function,
        where: str,
        more: Mapping[int, Callable[..., Any]] = MappingProxyType({}),
    ) -> None:
        self._function = function
        self._operations = {**OPERATIONS, **more}
        self._program = []
        for k in range(function.n_instructions()):
            code = function.instruction_id(k)
            plain = code in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)
            if not plain and code not in self._operations:
                raise OutputError(
                    where,
                    expected="outputs, joints and references whose formulas have no conditionals",
                    came=f"CasADi's instruction number {code}",
                    cure="Use sums, products, quotients, roots, sines and exponentials only.",
                )
            value = function.instruction_constant(k) if code == ca.OP_CONST else 0.0
            into, source = function.instruction_output(k), function.instruction_input(k)
            self._program.append((code, into, source, value))

    def __call__(self, *arguments: Argument, space: Space | None = None) -> list[np.ndarray]:
        """Enclose the entries of each result: object arrays of models, of the arguments' space."""
        if space is None:
            space = next(m.space for part in arguments for m in part if isinstance(m, Model))
        work: list[Any] = [None] * self._function.sz_w()
        sizes = map(self._function.size_out, range(self._function.n_out()))
        results = [np.full(size, space.constant(0.0), dtype=object) for size in sizes]
        places = [self._function.sparsity_out(k).get_triplet() for k in range(len(results))]
        with np.errstate(all="ignore"):
            for code, into, source, value in self._program:
                if code == ca.OP_CONST:
                    work[into[0]] = value
                elif code == ca.OP_INPUT:
                    given = arguments[source[0]][source[1]]
                    work[into[0]] = given if isinstance(given, Model) else space.constant(given)
                elif code == ca.OP_OUTPUT:
                    rows, columns = places[into[0]]
                    value = work[source[0]]
                    value = value if isinstance(value, Model) else space.constant(value)
                    results[into[0]][rows[into[1]], columns[into[1]]] = value
                else:
                    operands = [work[k] for k in source]
                    if not any(isinstance(one, Model) for one in operands):
                        operands[0] = space.constant(operands[0])  # its rounding counts
                    work[into[0]] = self._operations[code](*operands)
        return results


def walker(given: list[ca.SX], results: list[ca.SX], where: str) -> Walker:
    """Walker of dense results; `where` as of `Walker`."""
    dense = [ca.densify(part) for part in results]
    return Walker(ca.Function("part", given, dense, {"cse": True}), where)


def heading(y: Any, x: Any) -> Any:
    """The angle of a direction, without the jump at a half turn: for results of its sines alone."""
    y, x = (a if isinstance(a, Model) else b.space.constant(a) for a, b in ((y, x), (x, y)))
    middle = np.arctan2(y.c, x.c)
    s, c = np.sin(middle), np.cos(middle)
    across, along = c * y - s * x, c * x + s * y
    ratio = across / along
    t = ratio.c
    square = 1 + t**2
    turned = ratio._series(np.arctan(t), 1 / square, -t / square**2, lambda reach: reach**3 / 3)
    # The direction must stay within a quarter turn of its middle.
    behind = np.where(along.c > along.reach, 0.0, np.inf)
    found = turned + middle
    return found.with_remainder(found.r + behind)


def _divided(a: Any, b: Any) -> Any:
    return a * b.inverse() if isinstance(b, Model) else a / b


OPERATIONS: dict[int, Callable[..., Any]] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_NEG: lambda a: -a,
    ca.OP_TWICE: lambda a: 2.0 * a,
    ca.OP_SQ: lambda a: a * a,
    ca.OP_INV: lambda a: a.inverse(),
    ca.OP_SQRT: lambda a: a.sqrt(),
    ca.OP_SIN: lambda a: a.sin(),
    ca.OP_COS: lambda a: a.cos(),
    ca.OP_EXP: lambda a: a.exp(),
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: _divided,
}
