"""Decorator that lets a symbolic algorithm be called with NumPy arrays or with CasADi SX."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import casadi as ca
import numpy as np

from concur.codegen._evaluator import Evaluator, as_floats, nonfinite_error, shape_error
from concur.errors import ConcurError, ShapeError

P = ParamSpec("P")
R = TypeVar("R")

Array: TypeAlias = Any
"""A NumPy array of floats, or a CasADi `SX` expression: out comes what went in."""

DRIFT = 0.1
"""Largest difference of a quaternion's squared norm from one that counts as drift."""

_Shape: TypeAlias = tuple[str | int, ...]


class EvaluatedMethods:
    """Base of classes with `evaluated` methods: keeps their evaluators out of pickles."""

    @property
    def quaternions(self) -> Mapping[int, str]:
        """Where unit quaternions start in an argument named `q`, and whose they are.

        Numbers that are none are refused: an attitude that was lost must not pass for one.
        """
        return MappingProxyType({})

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_evaluators"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def evaluated(signature: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function over SX expressions callable with NumPy arrays too.

    The decorated function receives and returns SX only. Its graph is built at the first
    call and kept: called with SX it is expanded into the caller's expression, called with
    numbers it is evaluated through buffers. It may return a `casadi.Function` of its arguments
    instead, when SX cannot hold what it computes: that one is called with numbers or MX.

    Parameters
    ----------
    signature : str
        Shapes in the notation of NumPy's generalised functions, for example
        ``"(nq),(nv)->(nv)"``; ``()`` is a scalar. A name is an attribute of the object the
        method belongs to; ``*`` in a result is as large as it turns out. The leading
        arguments of the function are the arrays; what follows them must be hashable and
        selects another function.

    Returns
    -------
    callable
        The decorator.
    """
    shapes_in, shapes_out = _parse(signature)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function)
        names = list(parameters.parameters)
        first = 1 if names[0] == "self" else 0
        last = first + len(shapes_in)
        configuration = names.index("q") - first if first and "q" in names[first:last] else None
        own_cache: dict[Any, _Entry] = {}

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) != len(names):
                bound = parameters.bind(*args, **kwargs)
                bound.apply_defaults()
                args = bound.args
            arrays, static = args[first:last], args[last:]
            cache = args[0].__dict__.setdefault("_evaluators", {}) if first else own_cache
            key = (function.__qualname__, static)
            try:
                entry = cache.get(key)
            except TypeError:
                raise _not_a_name(_where(args), static) from None
            if entry is None:
                entry = cache[key] = _Entry(_build(args, static))
            if any(isinstance(a, ca.SX) for a in arrays):
                return entry.expand(_expressions(args, arrays, ca.SX))
            if any(isinstance(a, ca.MX) for a in arrays):
                evaluator = entry.evaluator or entry.numeric(_where(args), _shapes(args))
                return evaluator.function(*_expressions(args, arrays, ca.MX))
            evaluator = entry.evaluator or entry.numeric(_where(args), _shapes(args))
            if configuration is not None and args[0].quaternions:
                _check_quaternions(arrays[configuration], args[0].quaternions, evaluator)
            return evaluator(*arrays)

        def _where(args: Any) -> str:
            owner = getattr(args[0], "name", None) if first else None
            return function.__qualname__ + (f" of `{owner}`" if isinstance(owner, str) else "")

        def _expressions(args: Any, arrays: Any, kind: Any) -> list[Any]:
            expressions = []
            for shape, array, name in zip(shapes_in, arrays, names[first:last], strict=True):
                where = f"{_where(args)}, argument `{name}`"
                wanted = _casadi_shape(_resolve(shape, args))
                if not isinstance(array, kind):
                    numbers = as_floats(array, where)
                    if not np.isfinite(numbers).all():
                        raise nonfinite_error(where, numbers)
                    if numbers.ndim > 2:
                        raise shape_error(where, wanted, numbers.shape)
                    array = kind(ca.DM(np.atleast_1d(numbers)))
                if array.shape != wanted:
                    raise shape_error(where, wanted, array.shape)
                expressions.append(array)
            return expressions

        def _build(args: Any, static: Any) -> ca.Function:
            symbols = [
                ca.SX.sym(name, *_casadi_shape(_resolve(shape, args)))
                for shape, name in zip(shapes_in, names[first:last], strict=True)
            ]
            results: Any = function(*args[:first], *symbols, *static)  # type: ignore[call-arg]
            if isinstance(results, ca.Function):
                return results
            results = results if isinstance(results, tuple) else (results,)
            return ca.Function(
                re.sub(r"\W", "_", function.__name__.strip("_")),
                symbols,
                [ca.SX(r) for r in results],
                names[first:last],
                [f"result{i}" for i in range(len(results))],
                {"cse": True},
            )

        def _shapes(args: Any) -> list[tuple[int, ...]]:
            return [_resolve(shape, args) for shape in shapes_out]

        def _resolve(shape: _Shape, args: Any) -> tuple[int, ...]:
            return tuple(
                n if isinstance(n, int) else -1 if n == "*" else int(getattr(args[0], n))
                for n in shape
            )

        return call

    return decorate


def _check_quaternions(q: Any, quaternions: Mapping[int, str], evaluator: Evaluator) -> None:
    """Refuse what is far from unit norm; rounding and integrators' drift are not."""
    array = np.asarray(q)
    if array.dtype.kind not in "fiu" or array.shape != evaluator.inputs[0].shape[:1]:
        return  # the evaluator says what is wrong
    for start, body in quaternions.items():
        part = array[start : start + 4]
        square = float(part @ part)
        if abs(square - 1.0) > DRIFT:
            raise ShapeError(
                f"{evaluator.where}, argument `q`, quaternion of `{body}` at "
                f"q[{start}:{start + 4}]",
                expected="unit norm",
                came=f"norm {square**0.5:.6g}",
                cure="Normalise it, in the order (x, y, z, w); a lost measurement is no attitude.",
            )


def _not_a_name(where: str, static: tuple[Any, ...]) -> ShapeError:
    """Arguments that select a function must be names, not lists."""
    came = next(value for value in static if not isinstance(value, Hashable))
    return ShapeError(
        where,
        expected="a name",
        came=f"{type(came).__name__} {came!r:.40}",
        cure="Pass one name at a time.",
    )


class _Entry:
    """One graph, built once: expanded into larger expressions, or evaluated."""

    def __init__(self, graph: ca.Function) -> None:
        self._graph = graph
        self.evaluator: Evaluator | None = None

    def expand(self, expressions: list[ca.SX]) -> Any:
        if not self._graph.is_a("SXFunction"):
            raise ConcurError(
                f"function `{self._graph.name()}`",
                expected="numbers or MX expressions",
                came="SX expressions",
                cure="It solves a programme inside, which SX cannot hold: call it with MX.",
            )
        # Zeros that the graph folds to for these arguments become structural again.
        results = tuple(ca.sparsify(r) for r in self._graph.call(expressions))
        return results if len(results) != 1 else results[0]

    def numeric(self, where: str, shapes: list[tuple[int, ...]]) -> Evaluator:
        if self.evaluator is None:
            sizes = [self._graph.size_out(i) for i in range(self._graph.n_out())]
            known = [
                tuple(own if n < 0 else n for n, own in zip(shape, size, strict=False))
                for shape, size in zip(shapes, sizes, strict=True)
            ]
            self.evaluator = Evaluator(self._graph, known, where)
        return self.evaluator


def _casadi_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    padded = (*shape, 1, 1)
    return padded[0], padded[1]


def _parse(signature: str) -> tuple[list[_Shape], list[_Shape]]:
    def shapes(text: str) -> list[_Shape]:
        groups = re.findall(r"\(([^()]*)\)", text)
        return [
            tuple(int(n) if n.isdigit() else n for n in re.findall(r"\w+|\*", group))
            for group in groups
        ]

    left, right = signature.split("->")
    return shapes(left), shapes(right)
