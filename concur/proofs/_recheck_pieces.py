"""References with conditionals over intervals of time, for the checker of proofs of floaters.

A comparison that an interval does not decide is answered in all ways, and the models contain all
results. A jump in such an interval would escape: intervals are divided until all answers agree.

**What holds.** `Formula.over` encloses pose, twist, acceleration and its rate at all times, and
`continuous` returns only if pose, twist and acceleration do not jump within rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import casadi as ca
import numpy as np

from concur.proofs._recheck_balls import (
    Balls,
    Blocks,
    Dual,
    Floats,
    cosine,
    reciprocal,
    root,
    sine,
    times,
)
from concur.proofs._recheck_smooth import require
from concur.proofs._recheck_work import spend

MOST = 4
"""Undecided comparisons of one formula at a time."""

DIVISIONS, PARTS, AGREED = 9, 16, 1e-9
"""How often an interval is divided into parts, and the relative difference of equal answers."""


def _value(a: Any) -> Balls:
    found = a.value if isinstance(a, Dual) else a
    assert isinstance(found, Balls)
    return found


_UNARY: dict[int, Callable[[Any], Any]] = {
    ca.OP_ASSIGN: lambda a: a,
    ca.OP_NEG: lambda a: -a,
    ca.OP_TWICE: lambda a: a * 2.0,
    ca.OP_SQ: lambda a: times(",->", a, a),
    ca.OP_SIN: sine,
    ca.OP_COS: cosine,
    ca.OP_SQRT: root,
    ca.OP_INV: reciprocal,
}
_BINARY: dict[int, Callable[[Any, Any], Any]] = {
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: times(",->", a, b),
    ca.OP_DIV: lambda a, b: times(",->", a, reciprocal(b)),
}
_LOGIC: dict[int, Callable[..., Any]] = {
    ca.OP_NOT: lambda a: ~a,
    ca.OP_AND: lambda a, b: a & b,
    ca.OP_OR: lambda a, b: a | b,
}


class Formula:
    """A reference of one pose.

    Parameters
    ----------
    reference : Reference
        Reference with a formula and without tables.
    blocks : Blocks
        Symbols; the first one is the time.
    """

    def __init__(self, reference: Any, blocks: Blocks) -> None:
        pieces = reference.pieces()
        require(pieces is not None and not pieces.tables, "reference: it has no formula")
        self.plain, self.blocks = pieces.function, blocks
        sizes = [self.plain.size1_out(k) for k in range(self.plain.n_out())]
        require(sizes == [7, 6, 6], "reference: the checker covers one pose")
        self.work = 60.0 * self.plain.n_instructions()

    def over(self, middle: Floats, half: Floats) -> list[list[Any]]:
        """Entries of pose, twist and acceleration over middle +- half, with their rates."""
        spend(self.work * 2**MOST + 0.1 * self.work * len(middle))
        found, open_ = self._walk(middle, half, {})
        columns = np.flatnonzero(np.any([*open_.values(), np.zeros(len(middle), bool)], axis=0))
        if len(columns):
            tries = self._answered(middle[columns], half[columns], open_)
            for k, rows in enumerate(found):
                for i, entry in enumerate(rows):
                    own = [one[k][i] for one in tries]
                    value = _placed(entry.value, _hull([e.value for e in own]), columns)
                    rows[i] = Dual(
                        value, _placed(entry.rate, _hull([e.rate for e in own]), columns)
                    )
        return found

    def continuous(self, middle: Floats, half: Floats) -> None:
        """Reject a reference whose pose, twist or acceleration jumps."""
        for _ in range(DIVISIONS):
            spend(self.work * 2**MOST + 0.1 * self.work * len(middle))
            open_ = self._walk(middle, half, {})[1]
            mask = np.any([*open_.values(), np.zeros(len(middle), bool)], axis=0)
            middle, half = middle[mask], half[mask]
            if not len(middle):
                return
            apart = 0.0
            tries = self._answered(middle, half, open_)
            for k, rows in enumerate(tries[0]):
                for i, entry in enumerate(rows):
                    first = entry.value
                    for one in tries[1:]:
                        differs = (one[k][i].value - first).bound / (1.0 + first.bound)
                        apart = np.maximum(apart, differs)
            late = np.flatnonzero(np.broadcast_to(~(apart < AGREED), len(middle)))
            if not len(late):
                return
            at = (2 * np.arange(PARTS) + 1) / PARTS - 1
            middle = (middle[late, None] + half[late, None] * at).ravel()
            half = np.repeat(half[late] / PARTS, PARTS) * (1 + 1e-9)
        require(False, f"reference: it may jump at {middle[0]:.6g} s")

    def _answered(
        self, middle: Floats, half: Floats, open_: dict[int, np.ndarray]
    ) -> list[list[list[Any]]]:
        """Results for all answers of undecided comparisons."""
        asked = [k for k, mask in open_.items() if mask.any()]
        require(len(asked) <= MOST, "reference: it has too many pieces at a time")
        answers = product((False, True), repeat=len(asked))
        return [self._walk(middle, half, dict(zip(asked, a, strict=True)))[0] for a in answers]

    def _walk(
        self, middle: Floats, half: Floats, answers: dict[int, bool]
    ) -> tuple[list[list[Any]], dict[int, np.ndarray]]:
        """Results, and where comparisons are undecided."""
        f, cells = self.plain, len(middle)
        time = self.blocks.ball(0, half) + middle
        work: dict[int, Any] = {}
        found: list[list[Any]] = [[None] * f.size1_out(k) for k in range(f.n_out())]
        undecided: dict[int, np.ndarray] = {}
        none = self.blocks.plain(np.zeros(cells))

        def decided(k: int, apart: Balls, equal: bool) -> np.ndarray:
            """Whether a number is above zero, or not below."""
            same = (apart.c == 0.0) & (apart.bound <= 1e-300)
            clear = (np.abs(apart.c) > apart.reach) | same
            undecided[k] = ~clear
            own = np.where(same, equal, apart.c > 0.0)
            return np.where(clear, own, answers.get(k, False))

        for k in range(f.n_instructions()):
            code, into, source = (
                f.instruction_id(k),
                f.instruction_output(k),
                f.instruction_input(k),
            )
            given = [work[i] for i in source] if code not in (ca.OP_INPUT, ca.OP_OUTPUT) else []
            if code == ca.OP_CONST:
                work[into[0]] = Dual(none + float(f.instruction_constant(k)), none)
            elif code == ca.OP_INPUT:
                work[into[0]] = Dual(time[0], none + 1.0)
            elif code == ca.OP_OUTPUT:
                found[into[0]][into[1]] = work[source[0]]
            elif code in (ca.OP_LT, ca.OP_LE):
                apart = _value(given[1]) - _value(given[0])
                work[into[0]] = decided(k, apart, code == ca.OP_LE)
            elif code in (ca.OP_FMAX, ca.OP_FMIN):
                larger = decided(k, _value(given[0]) - _value(given[1]), True)
                first = larger if code == ca.OP_FMAX else ~larger
                work[into[0]] = _selected(first, *given)
            elif code == ca.OP_IF_ELSE_ZERO:
                work[into[0]] = _selected(given[0], given[1], Dual(none, none))
            elif code in _LOGIC:
                work[into[0]] = _LOGIC[code](*given)
            elif code in _UNARY:
                work[into[0]] = _UNARY[code](given[0])
            elif code in _BINARY:
                work[into[0]] = _BINARY[code](*given)
            else:
                require(False, f"reference: operation {code} is not covered")
        return [[Dual(none, none) if e is None else e for e in row] for row in found], undecided


def _selected(first: np.ndarray, a: Dual, b: Dual) -> Dual:
    """The first where true, else the second, by columns."""
    parts = []
    for one, two in ((a.value, b.value), (a.rate, b.rate)):
        n = max(len(one.g), len(two.g))
        x, y = one.padded(n), two.padded(n)
        own = [
            np.where(first, getattr(x, name), getattr(y, name))
            for name in ("c", "g", "h", "r", "size")
        ]
        parts.append(Balls(x.blocks, *own))
    return Dual(*parts)


def _hull(parts: list[Balls]) -> Balls:
    """A model that contains all of them."""
    first = parts[0]
    wider = np.max([(m - first).bound for m in parts], axis=0)
    return Balls(first.blocks, first.c, first.g, first.h, first.r + wider, first.size)


def _placed(whole: Balls, part: Balls, columns: np.ndarray) -> Balls:
    """A model with other columns in some places."""
    n = max(len(whole.g), len(part.g))
    a, b = whole.padded(n), part.padded(n)
    own = [np.array(getattr(a, name)) for name in ("c", "g", "h", "r", "size")]
    for array, name in zip(own, ("c", "g", "h", "r", "size"), strict=True):
        array[..., columns] = getattr(b, name)
    return Balls(a.blocks, *own)
