"""Functions over boxes as polynomials of second degree with a remainder.

Ball arithmetic ignores that operands depend on the same variable: in a chain of rotations the same
angle occurs many times, and its whole range counts each time. This module represents every
intermediate result as

    f(m + h d) = c + sum_k l_k d_k + sum_{j<=k} q_jk d_j d_k + [-r, r],   |d_k| <= 1,

so that terms in the same angle cancel up to third order in the widths. Coefficients are floats; r
includes their rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.errors import OutputError

# Far above the rounding of one operation on these few coefficients, and of the sums of sizes in r.
_ROUNDING = 2.0**-44


@dataclass(frozen=True, eq=False)
class Model:
    """A polynomial with its remainder, or several at once.

    Parameters
    ----------
    values : numpy.ndarray
        Coefficients: constant, linear, quadratic by pairs j <= k; shape (b, 1 + k + k (k + 1) / 2).
    remainder : numpy.ndarray
        r, shape (b,); not finite where the result may be undefined.
    """

    values: np.ndarray
    remainder: np.ndarray


class TaylorWalker:
    """Evaluation of a CasADi function over polynomials with remainders.

    Parameters
    ----------
    function : casadi.Function
        Function over SX of a vector in a box, and of further exact vectors.
    where : str
        Place for error messages.

    Raises
    ------
    OutputError
        If it has an unsupported instruction, such as a comparison.
    """

    def __init__(self, function: ca.Function, where: str) -> None:
        self._function = function
        self._size = function.numel_in(0)
        self._first, self._second = np.triu_indices(self._size)
        self._twice = self._first != self._second
        one = np.eye(self._size)
        self.count = 1 + self._size + len(self._first)
        both = (one[:, self._first] + one[:, self._second]) > 0.0
        self.involved = np.hstack([one, both])
        self._program = []
        for k in range(function.n_instructions()):
            code = function.instruction_id(k)
            plain = code in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)
            if not plain and code not in _UNARY and code not in _BINARY:
                raise OutputError(
                    where,
                    expected="outputs and joints whose formulas have no conditionals",
                    came=f"CasADi's instruction number {code}",
                    cure="Use sums, products, quotients, roots and sines only.",
                )
            value = function.instruction_constant(k) if code == ca.OP_CONST else 0.0
            into, source = function.instruction_output(k), function.instruction_input(k)
            self._program.append((code, into, source, value))

    def __call__(
        self, middle: np.ndarray, half: np.ndarray, *given: np.ndarray
    ) -> list[list[list[Model]]]:
        """Enclose the entries of each result over a box; other arguments are exact, (n, b)."""
        work: list[Model] = [None] * self._function.sz_w()  # type: ignore[list-item]
        zero = self.constant(np.zeros(1))
        results = [
            [[zero] * columns for _ in range(rows)]
            for rows, columns in map(self._function.size_out, range(self._function.n_out()))
        ]
        places = [self._function.sparsity_out(k).get_triplet() for k in range(len(results))]
        with np.errstate(all="ignore"):
            for code, into, source, value in self._program:
                if code == ca.OP_CONST:
                    work[into[0]] = self.constant(np.array([value]))
                elif code == ca.OP_INPUT:
                    argument, entry = source
                    if argument == 0:
                        work[into[0]] = self._coordinate(entry, middle[entry], half[entry])
                    else:
                        work[into[0]] = self.constant(given[argument - 1][entry])
                elif code == ca.OP_OUTPUT:
                    result, entry = into
                    rows, columns = places[result]
                    results[result][rows[entry]][columns[entry]] = work[source[0]]
                elif len(source) == 1:
                    work[into[0]] = _UNARY[code](self, work[source[0]])
                else:
                    work[into[0]] = _BINARY[code](self, work[source[0]], work[source[1]])
        return results

    def constant(self, numbers: np.ndarray) -> Model:
        """Constants over the box."""
        values = np.zeros((len(numbers), 1 + self._size + len(self._first)))
        values[:, 0] = numbers
        return Model(values, np.zeros(len(numbers)))

    def _coordinate(self, entry: int, middle: float, half: float) -> Model:
        values = np.zeros((1, 1 + self._size + len(self._first)))
        values[0, 0], values[0, 1 + entry] = middle, half
        return Model(values, np.zeros(1))

    def add(self, a: Model, b: Model, sign: float = 1.0) -> Model:
        """Sum, or difference, of two results."""
        values = a.values + sign * b.values
        rounding = _ROUNDING * (np.abs(a.values).sum(axis=1) + np.abs(b.values).sum(axis=1))
        return Model(values, (a.remainder + b.remainder) * (1 + _ROUNDING) + rounding)

    def multiply(self, a: Model, b: Model) -> Model:
        """Product of two results."""
        n = self._size + 1
        x, y = a.values, b.values
        values = x[:, :1] * y + y[:, :1] * x
        values[:, 0] = x[:, 0] * y[:, 0]
        p, q = x[:, 1:n], y[:, 1:n]
        cross = p[:, self._first] * q[:, self._second]
        values[:, n:] += cross + self._twice * (p[:, self._second] * q[:, self._first])
        p1, q1 = np.abs(p).sum(axis=1), np.abs(q).sum(axis=1)
        p2, q2 = np.abs(x[:, n:]).sum(axis=1), np.abs(y[:, n:]).sum(axis=1)
        whole = np.abs(x[:, 0]) + p1 + p2
        other = np.abs(y[:, 0]) + q1 + q2
        rest = p1 * q2 + p2 * (q1 + q2)
        rest = rest + a.remainder * (other + b.remainder) + b.remainder * whole
        return Model(values, rest * (1 + _ROUNDING) + _ROUNDING * whole * other)

    def series(
        self,
        a: Model,
        value: np.ndarray,
        slope: np.ndarray,
        bend: np.ndarray,
        rest: Callable[[np.ndarray], np.ndarray],
    ) -> Model:
        """A function of a result, by its Taylor polynomial at the constant.

        `value`, `slope` and `bend` are the function, its derivative and half the second one there;
        `rest` bounds the error of the polynomial at a distance from the constant.
        """
        moved = a.values.copy()
        moved[:, 0] = 0.0
        inner = Model(moved, a.remainder)
        reach = (np.abs(moved).sum(axis=1) + a.remainder) * (1 + _ROUNDING)
        square = self.multiply(inner, inner)
        values = slope[:, None] * moved + bend[:, None] * square.values
        values[:, 0] += value
        size = np.abs(value) + np.abs(slope) * reach + np.abs(bend) * reach**2
        remainder = np.abs(slope) * a.remainder + np.abs(bend) * square.remainder + rest(reach)
        return Model(values, remainder * (1 + _ROUNDING) + _ROUNDING * size)


def _inverse(walker: TaylorWalker, a: Model) -> Model:
    c = a.values[:, 0]

    def rest(reach: np.ndarray) -> np.ndarray:
        t = reach / np.abs(c)
        return np.where(t < 1.0, t**3 / ((1.0 - t) * np.abs(c)), np.inf)

    return walker.series(a, 1 / c, -1 / c**2, 1 / c**3, rest)


def _root(walker: TaylorWalker, a: Model) -> Model:
    c = a.values[:, 0]
    root = np.sqrt(c)

    def rest(reach: np.ndarray) -> np.ndarray:
        t = reach / np.abs(c)
        return np.where(t < 1.0, root * t**3 / (16 * (1.0 - t) ** 2.5), np.inf)

    return walker.series(a, root, 0.5 / root, -0.125 / (root * c), rest)


def _sine(walker: TaylorWalker, a: Model) -> Model:
    s, c = np.sin(a.values[:, 0]), np.cos(a.values[:, 0])
    return walker.series(a, s, c, -s / 2, lambda reach: reach**3 / 6)


def _cosine(walker: TaylorWalker, a: Model) -> Model:
    s, c = np.sin(a.values[:, 0]), np.cos(a.values[:, 0])
    return walker.series(a, c, -s, -c / 2, lambda reach: reach**3 / 6)


def _angle(walker: TaylorWalker, y: Model, x: Model) -> Model:
    """The angle of a direction, without the jump at a half turn: only its sines are used."""
    heading = np.arctan2(y.values[:, 0], x.values[:, 0])
    s, c = (walker.constant(np.atleast_1d(v)) for v in (np.sin(heading), np.cos(heading)))
    across = walker.add(walker.multiply(c, y), walker.multiply(s, x), -1.0)
    along = walker.add(walker.multiply(c, x), walker.multiply(s, y))
    ratio = walker.multiply(across, _inverse(walker, along))
    t = ratio.values[:, 0]
    square = 1 + t**2
    turned = walker.series(
        ratio, np.arctan(t), 1 / square, -t / square**2, lambda reach: reach**3 / 3
    )
    # The direction must stay within a quarter turn of its middle.
    reach = np.abs(along.values[:, 1:]).sum(axis=1) + along.remainder
    behind = np.where(along.values[:, 0] > reach, 0.0, np.inf)
    whole = walker.add(turned, walker.constant(np.atleast_1d(heading)))
    return Model(whole.values, whole.remainder + behind)


def _negative(walker: TaylorWalker, a: Model) -> Model:
    return Model(-a.values, a.remainder)


def _twice(walker: TaylorWalker, a: Model) -> Model:
    return Model(2 * a.values, 2 * a.remainder)


_UNARY: dict[int, Callable[[TaylorWalker, Model], Model]] = {
    ca.OP_ASSIGN: lambda walker, a: a,
    ca.OP_NEG: _negative,
    ca.OP_TWICE: _twice,
    ca.OP_SQ: lambda walker, a: walker.multiply(a, a),
    ca.OP_INV: _inverse,
    ca.OP_SQRT: _root,
    ca.OP_SIN: _sine,
    ca.OP_COS: _cosine,
}

_BINARY: dict[int, Callable[[TaylorWalker, Model, Model], Model]] = {
    ca.OP_ADD: lambda walker, a, b: walker.add(a, b),
    ca.OP_SUB: lambda walker, a, b: walker.add(a, b, -1.0),
    ca.OP_MUL: lambda walker, a, b: walker.multiply(a, b),
    ca.OP_DIV: lambda walker, a, b: walker.multiply(a, _inverse(walker, b)),
    ca.OP_ATAN2: _angle,
}


def combined(parts: Sequence[tuple[float, Model]]) -> Model:
    """Weighted sum of results; not finite where one of them is not, for a weight of zero too."""
    with np.errstate(all="ignore"):
        values = sum(weight * part.values for weight, part in parts)
        sizes = sum(abs(weight) * np.abs(part.values).sum(axis=1) for weight, part in parts)
        rest = sum(abs(weight) * part.remainder for weight, part in parts)
        return Model(np.asarray(values), np.asarray(rest) * (1 + _ROUNDING) + _ROUNDING * sizes)
