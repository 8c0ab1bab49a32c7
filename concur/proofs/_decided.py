"""The reference over segments of time: formulas whose conditionals each segment decides.

**What holds.** The models contain the values at every time of the segment. A comparison that a
segment does not decide is answered in both ways, and the models contain all results. Of two numbers
the larger one is taken, with what the other one may exceed it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import OPERATIONS, Floats, Model, Space
from concur.errors import OutputError

MOST = 5
"""Undecided comparisons of one formula; each doubles the work in its segments."""

JUMP = 1e-9
"""Relative difference of a reference's pieces where they meet that counts as rounding."""

DIVISIONS, PARTS = 9, 16
"""How often an interval is divided, and into how many parts, until its pieces meet."""


def _chosen(condition: Model, value: Model) -> Model:
    """The value where the condition is 1, 0 where it is 0, whatever the value is there."""
    b = max(condition.c.size, value.c.size)
    zero = np.broadcast_to((condition.c == 0.0) & (condition.reach == 0.0), b)
    product = condition * value
    parts = [np.where(zero, 0.0, part) for part in (product.c, product.l, product.q, product.r)]
    return Model(value.space, *parts)


def _larger(a: Model, b: Model) -> Model:
    """The larger one: the one that the other exceeds by less, and that excess."""
    apart = a - b
    excess = [np.maximum(part, 0.0) for part in (apart.reach - apart.c, apart.reach + apart.c)]
    first = excess[0] <= excess[1]
    n = max(len(a.l), len(b.l))
    (l1, q1), (l2, q2) = a.padded(n), b.padded(n)
    rest = np.where(first, a.r + excess[0], b.r + excess[1])
    return Model(
        a.space,
        np.where(first, a.c, b.c),
        np.where(first, l1, l2),
        np.where(first, q1, q2),
        rest * (1 + 1e-12),
    )


def _hull(parts: list[Model]) -> Model:
    """A model that contains all of them."""
    first = parts[0]
    return first.with_remainder(np.max([(m - first).bound for m in parts], axis=0))


def _placed(whole: Model, part: Model, columns: np.ndarray) -> Model:
    """A model with other columns in some places."""
    n = max(len(whole.l), len(part.l))
    arrays = [np.array(part) for part in (whole.c, *whole.padded(n), whole.r)]
    for array, own in zip(arrays, (part.c, *part.padded(n), part.r), strict=True):
        array[..., columns] = own
    return Model(whole.space, *arrays)


def _open_columns(open_: dict[int, np.ndarray], size: int) -> np.ndarray:
    """Columns with an undecided comparison."""
    return np.flatnonzero(np.any([*open_.values(), np.zeros(size, bool)], axis=0))


_MORE: dict[int, Any] = {
    ca.OP_NOT: lambda a: 1.0 - a,
    ca.OP_AND: lambda a, b: a * b,
    ca.OP_OR: lambda a, b: a + b - a * b,
    ca.OP_IF_ELSE_ZERO: _chosen,
    ca.OP_FMAX: _larger,
    ca.OP_FMIN: lambda a, b: -_larger(-a, -b),
}


def _opposite(f: ca.Function) -> list[tuple[int, int]]:
    """Pairs of instructions a <= b and b <= a of the same values."""
    held, seen = dict[int, int](), dict[tuple[int, int], int]()
    pairs = []
    for k in range(f.n_instructions()):
        source = f.instruction_input(k)
        if f.instruction_id(k) == ca.OP_LE:
            # A work register holds the value of the instruction that wrote it last.
            key = (held[source[0]], held[source[1]])
            if key[::-1] in seen:
                pairs.append((seen[key[::-1]], k))
            seen[key] = k
        if f.instruction_id(k) != ca.OP_OUTPUT:
            held[f.instruction_output(k)[0]] = k
    return pairs


class Decided:
    """Pose, twist, acceleration and jerk of a reference over segments.

    Parameters
    ----------
    reference : Reference
        Reference with a formula and without tables.
    where : str
        Place for error messages.
    """

    def __init__(self, reference: Any, where: str) -> None:
        pieces = reference.pieces()
        if pieces is None or pieces.tables:
            raise OutputError(
                where,
                expected="a reference with a formula for all times",
                came="tables or custom functions" if pieces else "custom functions or a loop",
                cure="Use rest_to_rest, circle or another formula.",
            )
        t = ca.SX.sym("t")
        pose, twist, acceleration = (ca.densify(part) for part in pieces.function(t))
        jerk = ca.densify(ca.jacobian(acceleration, t))
        self._function = ca.Function("r", [t], [pose, twist, acceleration, jerk], {"cse": True})
        self.plain = pieces.function
        self._opposite = _opposite(self._function)
        self._where = where

    def models(self, space: Space, clock: int, middle: Floats, half: Floats) -> list[list[Model]]:
        """Enclose over middle + half d, d the symbol `clock`."""
        found, open_ = self._walk(space.symbol(clock, half, middle), {})
        columns = _open_columns(open_, middle.size)
        if len(columns):
            tries = self._answered(space.symbol(clock, half[columns], middle[columns]), open_)
            for k, rows in enumerate(found):
                for i in range(len(rows)):
                    rows[i] = _placed(rows[i], _hull([one[k][i] for one in tries]), columns)
        return found

    def check_continuity(self, middle: Floats, half: Floats) -> None:
        """Reject a reference whose pose, twist or acceleration jumps: held torques are wrong then.

        Intervals that do not decide a comparison are divided until all answers agree.
        """
        space = Space((1,))
        for _ in range(DIVISIONS):
            open_ = self._walk(space.symbol(0, half, middle), {})[1]
            columns = _open_columns(open_, middle.size)
            if not len(columns):
                return
            middle, half = middle[columns], half[columns]
            tries = self._answered(space.symbol(0, half, middle), open_)
            apart = np.zeros(middle.size)
            for k in range(3):
                for i, first in enumerate(tries[0][k]):
                    for one in tries[1:]:
                        differs = (one[k][i] - first).bound / (1.0 + first.bound)
                        apart = np.fmax(apart, np.where(np.isnan(differs), np.inf, differs))
            late = np.flatnonzero(~(apart < JUMP))
            if not len(late):
                return
            at = (2 * np.arange(PARTS) + 1) / PARTS - 1
            middle = (middle[late, None] + half[late, None] * at).ravel()
            half = np.repeat(half[late] / PARTS, PARTS) * (1 + 1e-9)
        raise self._refusal(
            "a reference with continuous acceleration", f"a jump at {middle[0]:g} s"
        )

    def _answered(self, time: Model, open_: dict[int, np.ndarray]) -> list[list[list[Model]]]:
        """Results for all answers of undecided comparisons, true or false at every time."""
        asked = [k for k, undecided in open_.items() if undecided.any()]
        if len(asked) > MOST:
            came = f"{len(asked)} undecided comparisons at {time.c[0]:g} s"
            raise self._refusal("a reference with few pieces", came)
        answers = [dict(zip(asked, a, strict=True)) for a in product((0.0, 1.0), repeat=len(asked))]
        # Of a <= b and b <= a one is true; both occur in derivatives of the larger of two.
        both = [(i, j) for i, j in self._opposite if i in open_ and j in open_]
        answers = [a for a in answers if all(a.get(i, 1.0) + a.get(j, 1.0) > 0.0 for i, j in both)]
        return [self._walk(time, one)[0] for one in answers]

    def _refusal(self, expected: str, came: str) -> OutputError:
        return OutputError(self._where, expected=expected, came=came, cure="Use another reference.")

    def _walk(
        self, time: Model, answers: dict[int, float]
    ) -> tuple[list[list[Model]], dict[int, np.ndarray]]:
        """Results, and by comparison where a segment does not decide it."""
        f, operations, space = self._function, {**OPERATIONS, **_MORE}, time.space
        work: list[Any] = [None] * f.sz_w()
        found: list[list[Any]] = [[None] * f.size1_out(k) for k in range(4)]
        undecided = dict[int, np.ndarray]()
        with np.errstate(all="ignore"):
            for k in range(f.n_instructions()):
                code = f.instruction_id(k)
                into, source = f.instruction_output(k), f.instruction_input(k)
                if code == ca.OP_CONST:
                    number = np.full(time.c.size, f.instruction_constant(k))
                    work[into[0]] = space.constant(number)
                elif code == ca.OP_INPUT:
                    work[into[0]] = time
                elif code == ca.OP_OUTPUT:
                    found[into[0]][into[1]] = work[source[0]]
                elif code in (ca.OP_LT, ca.OP_LE):
                    apart = work[source[1]] - work[source[0]]
                    equal = (apart.c == 0.0) & (apart.bound <= 1e-300)
                    open_ = ~(np.abs(apart.c) > apart.reach) & ~equal
                    undecided[k] = open_
                    own = np.where(equal, code == ca.OP_LE, apart.c > 0.0)
                    given = np.where(open_, answers.get(k, 0.0), own)
                    work[into[0]] = space.constant(given)
                elif code in operations:
                    work[into[0]] = operations[code](*(work[i] for i in source))
                else:
                    raise self._refusal(
                        "a reference of sums, products, roots, sines and comparisons",
                        f"CasADi's instruction number {code}",
                    )
        return found, undecided
