"""Ball arithmetic for CasADi functions: enclosures of the results over ranges of the arguments.

The instructions of a `casadi.Function` over SX are evaluated one by one in ball arithmetic
(`flint.arb`). The enclosed function is the one that runs on the robot, as a formula over the reals
with its constants. Where a comparison is undecided, both branches are evaluated separately to the
end: each branch is a formula without conditions, which is smooth where it is finite. Late joining
keeps series and closed forms separate, which a hull at each conditional would mix.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import casadi as ca

from concur.errors import OutputError, ShapeError, needed

Ball = Any
"""A `flint.arb`: an interval that contains a real number."""

PRECISION = 80
"""Bits of the balls' centres: more than a float64 has, so that rounding is negligible."""

MOST_CASES = 64
"""Largest number of cases that are evaluated separately; further ones are mixed."""


def flint() -> ModuleType:
    """Import python-flint, the ball arithmetic."""
    return needed("flint", "certify", "certificates")


def interval(lower: float, upper: float) -> Ball:
    """Return a ball around all numbers from `lower` to `upper`, taken as exact numbers."""
    arb = flint().arb
    if not lower <= upper:
        return arb.nan()
    return arb(float(lower)).union(arb(float(upper)))


@dataclass(frozen=True)
class Case:
    """Result of a function for one set of outcomes of its undecided comparisons.

    Parameters
    ----------
    answers : dict of int to bool
        Outcome of each undecided comparison, by number of the instruction.
    results : list of flint.arb_mat
        Enclosure of each result of the function, wherever the comparisons have these outcomes.
    mixed : bool
        Whether there were too many undecided comparisons; the results are then a hull over
        several formulas.
    """

    answers: dict[int, bool]
    results: list[Any]
    mixed: bool


class Walker:
    """Evaluation of a CasADi function over balls.

    Parameters
    ----------
    function : casadi.Function
        Function over SX.

    Raises
    ------
    OutputError
        If the function is not made of SX, or has an unsupported instruction.
    """

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        if not function.is_a("SXFunction"):
            raise OutputError(
                f"function `{function.name()}`",
                expected="a casadi.Function over SX",
                came=function.class_name(),
                cure="Call `expand` first.",
            )
        self._program = [self._instruction(k) for k in range(function.n_instructions())]
        self._inputs = [_places(function.sparsity_in(k)) for k in range(function.n_in())]
        self._outputs = [_places(function.sparsity_out(k)) for k in range(function.n_out())]

    def cases(
        self,
        arguments: Sequence[Sequence[Ball]],
        answers: Mapping[int, bool] | None = None,
        clip: bool = False,
    ) -> list[Case]:
        """Enclose the results, separately for each outcome of the undecided comparisons.

        `answers` fixes outcomes by number of the instruction, whatever the arguments are: the
        result then encloses the formula of that case. `clip` restricts a compared number to the
        range in which the comparison has the outcome; that is tighter, but invalid for a mean value
        theorem, which uses points between two arguments. A result that may be undefined is NaN.
        """
        self._check(arguments)
        module = flint()
        done: list[Case] = []
        waiting = [dict(answers or {})]
        with module.ctx.workprec(PRECISION):
            while waiting:
                chosen = waiting.pop()
                room = len(done) + len(waiting) < MOST_CASES - 1
                results, undecided = self._run(arguments, chosen, clip, room)
                if undecided is None:
                    done.append(Case(chosen, results, not room))
                else:
                    waiting += [{**chosen, undecided: answer} for answer in (False, True)]
        return done

    def __call__(self, arguments: Sequence[Sequence[Ball]]) -> list[Any]:
        """Enclose each result by the hull of all cases; arguments are balls in column order."""
        cases = self.cases(arguments, clip=True)
        hull = cases[0].results
        for case in cases[1:]:
            hull = [_union(a, b) for a, b in zip(hull, case.results, strict=True)]
        return hull

    def _run(
        self,
        arguments: Sequence[Sequence[Ball]],
        chosen: Mapping[int, bool],
        clip: bool,
        room: bool,
    ) -> tuple[list[Any], int | None]:
        """Results, or the number of the first undecided comparison."""
        module = flint()
        arb = module.arb
        zero, one = arb(0), arb(1)
        work: list[Ball] = [None] * self.function.sz_w()
        outputs = [
            [[zero] * columns for _ in range(rows)]
            for rows, columns in (self.function.size_out(k) for k in range(self.function.n_out()))
        ]
        for number, (code, act, into, source, value) in enumerate(self._program):
            if act is not None:
                work[into[0]] = act(*[work[k] for k in source])
            elif code == ca.OP_CONST:
                work[into[0]] = arb(value)
            elif code == ca.OP_INPUT:
                argument, entry = source
                work[into[0]] = arguments[argument][self._inputs[argument][entry][2]]
            elif code == ca.OP_OUTPUT:
                result, entry = into
                row, column, _ = self._outputs[result][entry]
                outputs[result][row][column] = work[source[0]]
            elif code in _COMPARISONS:
                a, b = work[source[0]], work[source[1]]
                answer = chosen[number] if number in chosen else _COMPARISONS[code](a, b)
                if answer is None:
                    if room:
                        return [], number
                    work[into[0]] = zero.union(one)
                    continue
                work[into[0]] = one if answer else zero
                if clip and code in (ca.OP_LT, ca.OP_LE):
                    less, more = (source[0], source[1]) if answer else (source[1], source[0])
                    low, high = work[less], work[more]
                    # If the outcome is impossible, the ends cross, and any enclosure is valid.
                    work[less] = low.lower().union(low.upper().min(high.upper()))
                    work[more] = high.lower().max(low.lower()).union(high.upper())
            else:  # OP_IF_ELSE_ZERO
                condition, then = work[source[0]], work[source[1]]
                if condition.is_zero():
                    work[into[0]] = zero
                else:
                    work[into[0]] = then if not condition.contains(0) else then.union(zero)
        return [module.arb_mat(rows) if rows else module.arb_mat(0, 0) for rows in outputs], None

    def _instruction(
        self, k: int
    ) -> tuple[int, Callable[..., Ball] | None, list[int], list[int], float]:
        function = self.function
        code = function.instruction_id(k)
        act = _ARITHMETIC.get(code)
        moves = (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_IF_ELSE_ZERO)
        if act is None and code not in moves and code not in _COMPARISONS:
            raise OutputError(
                f"function `{function.name()}`, instruction {k}",
                expected="an instruction supported by ball arithmetic",
                came=f"CasADi's instruction number {code}",
                cure="Use only sums, products, quotients, roots, powers, sines, "
                "comparisons and conditionals.",
            )
        value = function.instruction_constant(k) if code == ca.OP_CONST else 0.0
        return code, act, function.instruction_output(k), function.instruction_input(k), value

    def _check(self, arguments: Sequence[Sequence[Ball]]) -> None:
        expected = [self.function.numel_in(k) for k in range(self.function.n_in())]
        came = [len(argument) for argument in arguments]
        if came != expected:
            raise ShapeError(
                f"function `{self.function.name()}`",
                expected=f"arguments of {expected} entries",
                came=str(came),
                cure="Give the entries of each argument, column by column.",
            )


def _places(sparsity: ca.Sparsity) -> list[tuple[int, int, int]]:
    """Row, column and dense index of every stored entry, column by column."""
    rows, columns = sparsity.get_triplet()
    return [(r, c, c * sparsity.size1() + r) for r, c in zip(rows, columns, strict=True)]


def _union(a: Any, b: Any) -> Any:
    rows = [
        [x.union(y) for x, y in zip(one, other, strict=True)]
        for one, other in zip(a.tolist(), b.tolist(), strict=True)
    ]
    return flint().arb_mat(rows) if rows else a


def _square(a: Ball) -> Ball:
    # The product of two balls ignores that they are the same number: the square of an interval
    # around zero would be negative in part.
    return (a.abs_lower() ** 2).union(a.abs_upper() ** 2)


def _less(a: Ball, b: Ball) -> bool | None:
    return True if a < b else False if a >= b else None


def _not_more(a: Ball, b: Ball) -> bool | None:
    return True if a <= b else False if a > b else None


def _equal(a: Ball, b: Ball) -> bool | None:
    if a.is_exact() and b.is_exact():
        return bool(a == b)
    return None if a.overlaps(b) or a.is_nan() or b.is_nan() else False


def _different(a: Ball, b: Ball) -> bool | None:
    equal = _equal(a, b)
    return None if equal is None else not equal


def _negation(a: Ball) -> Ball:
    return flint().arb(1) - a


_COMPARISONS: dict[int, Callable[[Ball, Ball], bool | None]] = {
    ca.OP_LT: _less,
    ca.OP_LE: _not_more,
    ca.OP_EQ: _equal,
    ca.OP_NE: _different,
}

_ARITHMETIC: dict[int, Callable[..., Ball]] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_NEG: operator.neg,
    ca.OP_SQ: _square,
    ca.OP_TWICE: lambda a: 2 * a,
    ca.OP_INV: lambda a: 1 / a,
    ca.OP_SQRT: lambda a: a.sqrt(),
    ca.OP_EXP: lambda a: a.exp(),
    ca.OP_LOG: lambda a: a.log(),
    ca.OP_SIN: lambda a: a.sin(),
    ca.OP_COS: lambda a: a.cos(),
    ca.OP_TAN: lambda a: a.tan(),
    ca.OP_ASIN: lambda a: a.asin(),
    ca.OP_ACOS: lambda a: a.acos(),
    ca.OP_ATAN: lambda a: a.atan(),
    ca.OP_FABS: abs,
    ca.OP_NOT: _negation,
    ca.OP_ADD: operator.add,
    ca.OP_SUB: operator.sub,
    ca.OP_MUL: operator.mul,
    ca.OP_DIV: operator.truediv,
    ca.OP_POW: operator.pow,
    ca.OP_CONSTPOW: operator.pow,
    ca.OP_ATAN2: lambda a, b: flint().arb.atan2(a, b),
    # The balls' own functions pass over an operand without bounds; the sum has none then.
    ca.OP_FMIN: lambda a, b: a.min(b) if a.is_finite() and b.is_finite() else a + b,
    ca.OP_FMAX: lambda a, b: a.max(b) if a.is_finite() and b.is_finite() else a + b,
    ca.OP_AND: lambda a, b: a * b,
    ca.OP_OR: lambda a, b: 1 - (1 - a) * (1 - b),
}
