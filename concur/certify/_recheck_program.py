"""Interval evaluation of stored functions: values and slopes, for many boxes at once.

A program is an object of `code`, a list of instructions, and `results`, which maps names to rows of
indices in `code`. An instruction is ["input", argument, entry], ["const", number] or the name of an
operation with the indices of its operands, which precede it.

A slope over a box exists where all steps are smooth; elsewhere it is NaN, which proves nothing.
With `cases`, both outcomes of an undecided comparison are evaluated separately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, pi
from typing import Any

import numpy as np

from concur.certify._recheck_document import (
    float_of,
    integer_of,
    list_of,
    object_of,
    refuse,
    rows_of,
)
from concur.certify._recheck_finding import Rejection
from concur.certify._recheck_outward import Interval
from concur.certify._recheck_work import spend
from concur.certify._status import Status

LARGEST_ANGLE = 1e5
"""Larger arguments give sines only the range from -1 to 1."""

_MOST_CASES = 64
_HALF_PI = Interval(np.array(pi / 2), np.array(np.nextafter(pi / 2, 4.0)))  # the float is below
_TAIL = 1e-20  # 0.8^20 / 20!, the first omitted term of sine and cosine
_SINE = [Interval.exact(Fraction((-1) ** j, factorial(2 * j + 1))) for j in range(10)]
_COSINE = [Interval.exact(Fraction((-1) ** j, factorial(2 * j))) for j in range(10)]

Pair = tuple[Interval, Interval | None]
"""A value of shape (2, boxes), at the middles and over the boxes, and its slopes, (k, boxes)."""


@dataclass(frozen=True)
class Program:
    """A stored function."""

    code: list[list[Any]]
    results: dict[str, list[list[int]]]
    last: list[int]
    """Index of the last instruction that uses each value."""


def program_of(table: dict[str, Any], where: str, inputs: list[int], shapes: dict[str, Any]
) -> Program:  # fmt: skip
    """Read a program; `inputs` are sizes of its arguments, `shapes` those of its results."""
    code, results = list_of(table, "code", where), object_of(table, "results", where)
    spend(3.0 * len(code))
    last = list(range(len(code)))
    for i, step in enumerate(code):
        name = step[0] if isinstance(step, list) and step else None
        places = step[1:] if isinstance(step, list) else []
        if name == "const" and len(places) == 1:
            float_of(places[0], f"`{where}.code`")
            continue
        if not all(isinstance(p, int) and not isinstance(p, bool) and p >= 0 for p in places):
            refuse(f"`{where}.code`", "indices of operands", step)
        known = name == "input" and len(places) == 2 and places[0] < len(inputs)
        if known and places[1] < inputs[places[0]]:
            continue
        fit = isinstance(name, str) and len(places) == _OPERANDS.get(name)
        if fit and max(places) < i:
            for p in places:
                last[p] = i
            continue
        refuse(f"`{where}.code`", "an instruction whose operands come before it", step)
    for name, (rows, columns) in shapes.items():
        for row in rows_of(results, name, f"{where}.results", rows, columns):
            for p in row:
                last[integer_of(p, f"`{where}.results.{name}`", len(code))] = len(code)
    return Program(code, {name: results[name] for name in shapes}, last)


def run(program: Program, arguments: list[list[Pair]]) -> dict[str, Pair]:
    """Enclose all results: values (2, boxes, rows, columns), slopes (k, boxes, rows, columns)."""
    found = _run(program, arguments, None)
    assert isinstance(found, dict)
    return found


def cases(program: Program, arguments: list[list[Interval]]) -> dict[str, Interval]:
    """Enclose all results for one box: the hull over all outcomes of undecided comparisons."""
    waiting: list[dict[int, bool]] = [{}]
    hull: dict[str, Interval] = {}
    done = 0
    while waiting:
        chosen = waiting.pop()
        found = _run(program, [[(v, None) for v in part] for part in arguments], chosen)
        if isinstance(found, int):
            waiting += [{**chosen, found: answer} for answer in (False, True)]
            continue
        done += 1
        if done > _MOST_CASES:
            raise Rejection(Status.UNDECIDED, "too many comparisons are undecided")
        for name, (value, _) in found.items():
            old = hull.get(name, value)
            low, high = np.minimum(old.lo, value.lo), np.maximum(old.hi, value.hi)
            hull[name] = Interval(low, high)
    return hull


def _run(
    program: Program, arguments: list[list[Pair]], chosen: dict[int, bool] | None
) -> dict[str, Pair] | int:
    """Results, or the index of the first undecided comparison without an outcome in `chosen`."""
    pairs = [pair for part in arguments for pair in part]
    width = max([v.lo.size for v, _ in pairs], default=1)
    count = max([1 if d is None else len(d.lo) for _, d in pairs], default=1)
    spend(len(program.code) * (60.0 + 0.02 * width * (2 + count)))
    done: list[Pair | None] = []
    for i, (name, *places) in enumerate(program.code):
        if name == "const":
            done.append((Interval(np.full((1, 1), float(places[0]))), None))
            continue
        if name == "input":
            done.append(arguments[places[0]][places[1]])
            continue
        operands = [pair for p in places if (pair := done[p]) is not None]
        values = [value for value, _ in operands]
        slopes = [slope for _, slope in operands]
        if name in _COMPARISONS:
            value = _COMPARISONS[name](*values)
            if chosen is not None and not (value.lo == value.hi).all():
                if i not in chosen:
                    return i
                value = Interval(np.full(value.shape, float(chosen[i])))
                if name in ("lt", "le"):
                    # Restrict the operands to the range in which the comparison has this outcome.
                    less, more = places if chosen[i] else places[::-1]
                    a, b = values if chosen[i] else values[::-1]
                    done[less] = (Interval(a.lo, np.minimum(a.hi, b.hi)), None)
                    done[more] = (Interval(np.maximum(a.lo, b.lo), b.hi), None)
        else:
            value = _VALUES[name](*values)
        slope: Interval | None = None
        if any(one is not None for one in slopes):
            rule = _SLOPES.get(name)
            slope = rule(value, *values, *slopes) if rule else Interval(np.full((1, 1), np.nan))
        done.append((value, slope))
        for p in places:
            if program.last[p] == i:
                done[p] = None
    return {name: _gather(done, rows, arguments) for name, rows in program.results.items()}


def _gather(done: list[Any], rows: list[list[int]], arguments: list[list[Pair]]) -> Pair:
    pairs = [pair for part in arguments for pair in part]
    shape = np.broadcast_shapes(*(v.shape for v, _ in pairs), (1, 1))
    deep = max([0 if d is None else len(d.lo) for _, d in pairs], default=0)
    flat = [done[p] for row in rows for p in row]
    size = (len(rows), len(rows[0]) if rows else 0)

    def stacked(parts: list[Any], shape: tuple[int, ...]) -> Interval:
        ends = [np.zeros((*shape, *size)) for _ in range(2)]
        for k, part in enumerate(parts):
            if part is not None:
                ends[0][..., k // size[1], k % size[1]] = part.lo
                ends[1][..., k // size[1], k % size[1]] = part.hi
        return Interval(*ends)

    values = stacked([value for value, _ in flat], shape)
    return values, stacked([slope for _, slope in flat], (deep, shape[1])) if deep else None


def inverse(a: Interval) -> Interval:
    """1 / a, NaN where a may be zero."""
    apart = (a.lo > 0.0) | (a.hi < 0.0)
    with np.errstate(all="ignore"):
        low, high = np.nextafter(1.0 / a.hi, -np.inf), np.nextafter(1.0 / a.lo, np.inf)
    return Interval(np.where(apart, low, np.nan), np.where(apart, high, np.nan))


def root(a: Interval) -> Interval:
    """Square root, NaN where a may be negative."""
    with np.errstate(all="ignore"):
        low, high = np.nextafter(np.sqrt(a.lo), -np.inf), np.nextafter(np.sqrt(a.hi), np.inf)
    return Interval(np.where(a.lo > 0.0, low, np.where(a.lo == 0.0, 0.0, np.nan)),
                    np.where(a.lo >= 0.0, high, np.nan))  # fmt: skip


def _at_point(x: np.ndarray, quarter: int) -> Interval:
    """sin(x + quarter pi / 2) of floats, by its series within an eighth of a turn."""
    turns = np.rint(x * (2.0 / pi))
    rest = x - _HALF_PI * turns
    u = rest.square()
    sine, cosine = _SINE[-1], _COSINE[-1]
    for s, c in zip(_SINE[-2::-1], _COSINE[-2::-1], strict=True):
        sine, cosine = sine * u + s, cosine * u + c
    tail = Interval(np.array(-_TAIL), np.array(_TAIL))
    sine, cosine = sine * rest + tail, cosine + tail
    which = (turns + quarter) % 4
    low = np.select(
        [which == 0, which == 1, which == 2], [sine.lo, cosine.lo, -sine.hi], -cosine.hi
    )
    high = np.select(
        [which == 0, which == 1, which == 2], [sine.hi, cosine.hi, -sine.lo], -cosine.lo
    )
    return Interval(low, high)


def wave(x: Interval, quarter: int) -> Interval:
    """Sine (quarter 0) or cosine (quarter 1)."""
    ends = [_at_point(end, quarter) for end in (x.lo, x.hi)]
    low, high = np.minimum(ends[0].lo, ends[1].lo), np.maximum(ends[0].hi, ends[1].hi)

    def within(peak: float) -> np.ndarray:
        # Whether the interval may contain peak + m turns, with a wide allowance for rounding.
        first, last = ((end / (2.0 * pi)) + (quarter - peak) / 4.0 for end in (x.lo, x.hi))
        return np.asarray(np.floor(last + 1e-9) >= np.ceil(first - 1e-9))

    known = np.maximum(np.abs(x.lo), np.abs(x.hi)) <= LARGEST_ANGLE
    nan = np.isnan(x.lo) | np.isnan(x.hi)
    low = np.where(known & ~within(3.0), np.maximum(low, -1.0), -1.0)
    high = np.where(known & ~within(1.0), np.minimum(high, 1.0), 1.0)
    return Interval(np.where(nan, np.nan, low), np.where(nan, np.nan, high))


def _angle(y: Interval, x: Interval) -> Interval:
    """atan2: near an angle t it is t + atan(across / along) in axes turned by t."""
    t = np.arctan2((y.lo + y.hi) / 2, (x.lo + x.hi) / 2)
    cosine, sine = _at_point(t, 1), _at_point(t, 0)
    along, across = x * cosine + y * sine, y * cosine - x * sine
    rest: np.ndarray = (across * inverse(along)).size()
    fit = (along.lo > 0.0) & ((x.lo > 0.0) | (y.lo > 0.0) | (y.hi < 0.0))
    rest = np.where(fit, rest, np.nan)
    return Interval(-rest, rest) + Interval(t)


def _between(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi))


def _never(a: Interval) -> np.ndarray:
    return np.asarray((a.lo == 0.0) & (a.hi == 0.0))


def _always(a: Interval) -> np.ndarray:
    return np.asarray((a.lo > 0.0) | (a.hi < 0.0))


def _answer(true: np.ndarray, false: np.ndarray) -> Interval:
    return Interval(np.asarray(true, dtype=float), np.asarray(~false, dtype=float))


def _either(condition: Interval, then: Interval) -> Interval:
    never, always = _never(condition), _always(condition)
    low = np.where(never, 0.0, np.where(always, then.lo, np.minimum(then.lo, 0.0)))
    high = np.where(never, 0.0, np.where(always, then.hi, np.maximum(then.hi, 0.0)))
    return Interval(low, high)


def _size(a: Interval) -> Interval:
    return Interval(np.maximum(np.maximum(a.lo, -a.hi), 0.0), a.size())


def _same(a: Interval, b: Interval) -> np.ndarray:
    return np.asarray((a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo))


def _apart(a: Interval, b: Interval) -> np.ndarray:
    return np.asarray((a.hi < b.lo) | (a.lo > b.hi))


_COMPARISONS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "lt": lambda a, b: _answer(a.hi < b.lo, a.lo >= b.hi),
    "le": lambda a, b: _answer(a.hi <= b.lo, a.lo > b.hi),
    "eq": lambda a, b: _answer(_same(a, b), _apart(a, b)),
    "ne": lambda a, b: _answer(_apart(a, b), _same(a, b)),
}

_VALUES: dict[str, Callable[..., Interval]] = {
    "neg": lambda a: -a,
    "twice": lambda a: a * 2.0,
    "sq": lambda a: a.square(),
    "inv": inverse,
    "sqrt": root,
    "sin": lambda a: wave(a, 0),
    "cos": lambda a: wave(a, 1),
    "fabs": _size,
    "not": lambda a: _answer(_never(a), _always(a)),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a * inverse(b),
    "atan2": _angle,
    "fmin": _between,
    "fmax": lambda a, b: -_between(-a, -b),
    "and": lambda a, b: _answer(_always(a) & _always(b), _never(a) | _never(b)),
    "or": lambda a, b: _answer(_always(a) | _always(b), _never(a) & _never(b)),
    "if_else_zero": _either,
}

_BINARY = {"add", "sub", "mul", "div", "atan2", "fmin", "fmax", "and", "or", "if_else_zero"}
_OPERANDS = {name: 2 if name in _BINARY else 1 for name in _VALUES} | dict.fromkeys(_COMPARISONS, 2)
OPERATIONS = frozenset(_OPERANDS) | {"const", "input"}
"""Names of all instructions."""


def _sum(a: Interval | None, b: Interval | None) -> Interval:
    if a is None or b is None:
        found = b if a is None else a
        assert found is not None
        return found
    return a + b


def _times(slope: Interval | None, factor: Interval) -> Interval | None:
    """A slope times a value over the boxes."""
    return None if slope is None else slope * factor[-1]


def _quotient(z: Interval, a: Interval, b: Interval, da: Any, db: Any) -> Interval:
    one = inverse(b)
    return _sum(_times(da, one), _times(db, -(z * one)))


def _turn(z: Interval, y: Interval, x: Interval, dy: Any, dx: Any) -> Interval:
    one = inverse(x.square() + y.square())
    return _sum(_times(dy, x * one), _times(dx, -(y * one)))


# Arguments: the result, the operands' values and the operands' slopes.
_SLOPES: dict[str, Callable[..., Interval | None]] = {
    "neg": lambda z, a, d: -d,
    "twice": lambda z, a, d: d * 2.0,
    "sq": lambda z, a, d: _times(d, a * 2.0),
    "inv": lambda z, a, d: _times(d, -z.square()),
    "sqrt": lambda z, a, d: _times(d, inverse(z * 2.0)),
    "sin": lambda z, a, d: _times(d, wave(a, 1)),
    "cos": lambda z, a, d: _times(d, -wave(a, 0)),
    "add": lambda z, a, b, da, db: _sum(da, db),
    "sub": lambda z, a, b, da, db: _sum(da, None if db is None else -db),
    "mul": lambda z, a, b, da, db: _sum(_times(da, b), _times(db, a)),
    "div": _quotient,
    "atan2": _turn,
}
