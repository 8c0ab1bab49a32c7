"""Decorator that makes a symbolic algorithm callable with NumPy arrays and with CasADi SX."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import casadi as ca
import numpy as np

from concur.codegen._arguments import (
    LARGEST,
    Place,
    as_floats,
    constant,
    nonfinite_error,
    normalised,
    shape_error,
    symbols_of,
)
from concur.codegen._direct import direct
from concur.codegen._evaluator import UNSOUND, Evaluator
from concur.errors import ConcurError, ShapeError

P = ParamSpec("P")
R = TypeVar("R")

Array: TypeAlias = np.ndarray | ca.SX | ca.MX
"""A NumPy array of floats or a CasADi expression. Functions return the type they were given."""

Scalar: TypeAlias = float | ca.SX | ca.MX
"""A number or a CasADi expression of shape (1, 1)."""

Vector: TypeAlias = Array
"""An `Array` of shape (n,), as an expression (n, 1)."""

Matrix: TypeAlias = Array
"""An `Array` of shape (n, m)."""

NONE: Mapping[Any, Any] = MappingProxyType({})

_NUMBERS = frozenset({np.ndarray, np.float64, float, int, list, tuple}).__contains__
"""Types known to contain no expressions."""

_Shape: TypeAlias = tuple[str | int, ...]


def evaluated(
    signature: str, symbols: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function over SX expressions also callable with NumPy arrays.

    The decorated function receives and returns SX only. Its graph is built at the first call and
    kept. A call with SX expands it into the caller's expression; a call with numbers evaluates it
    through buffers.

    Parameters
    ----------
    signature : str
        Shapes in the notation of NumPy's generalised functions, for example
        ``"(nq),(nv)->(nv)"``; ``()`` is a scalar. A name is an attribute of the object that
        the method belongs to; ``*`` in a result stands for any size. The leading arguments of
        the function are the arrays; further arguments must be hashable and select another
        function. The last array may be optional, with the default None: a call without it has
        another graph, which `compile_functions` means unless the name of the array is given.
    symbols : str, optional
        Attribute of the object that holds the symbol type of its graph: `casadi.SX`, or
        `casadi.MX` where SX cannot represent the computation; default SX.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        method = _Method(function, signature, symbols)
        # Local names: an attribute of `method` takes longer.
        first, last, qualified = method.first, method.last, method.qualified
        count, optional, own = len(method.parameters.parameters), method.optional, method.graphs

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) != count:
                bound = method.parameters.bind(*args, **kwargs)
                bound.apply_defaults()
                args = bound.args
            graphs = args[0].__dict__.get("_evaluators", NONE) if first else own
            arrays, static = args[first:last], args[last:]
            if optional:
                arrays, static = method.given(arrays, static)
            try:
                graph = graphs.get((qualified, static))
            except TypeError:
                raise _not_a_name(method.where(args), static) from None
            if graph is None:
                if first and not args[0]._bound:
                    return function(args[0], *map(constant, arrays), *args[last:])  # type: ignore[call-arg]
                graph = method.graph(args, static)
            if not all(map(_NUMBERS, map(type, arrays))) and any(
                isinstance(array, (ca.SX, ca.MX)) for array in arrays
            ):
                return graph.expand(arrays)
            return (graph.evaluator or graph.numeric())(*arrays)

        call.evaluator_for = method.evaluator_for  # type: ignore[attr-defined]
        call.direct_for = functools.partial(method.direct_for, call)  # type: ignore[attr-defined]
        return call

    return decorate


class _Method:
    """A decorated function: how its graphs are built and found.

    Attributes
    ----------
    first, last : int
        Places of its arrays among its arguments; a method of an object has `first` 1.
    optional : bool
        Whether the last array may be missing.
    graphs : dict
        Graphs of a function that belongs to no object.
    """

    def __init__(self, function: Callable[..., Any], signature: str, symbols: str | None) -> None:
        given, results = signature.split("->")
        self._function, self._symbols = function, symbols
        self._shapes_in, self._shapes_out = _parsed(given), _parsed(results)
        self.parameters, self.qualified = inspect.signature(function), function.__qualname__
        names = list(self.parameters.parameters)
        self.first = 1 if names[0] == "self" else 0
        self.last = self.first + len(self._shapes_in)
        self._names = names[self.first : self.last]
        self.optional = self.parameters.parameters[self._names[-1]].default is None
        self.graphs: dict[Any, Graph] = {}

    def given(self, arrays: Any, static: Any) -> tuple[Any, Any]:
        """Arrays without an optional one that is missing, and the key of their graph."""
        if arrays[-1] is None:
            return arrays[:-1], static
        return arrays, (*static, self._names[-1])

    def where(self, args: Any) -> str:
        """Place named in errors."""
        if not self.first:
            return self.qualified
        owner = getattr(args[0], "name", None)
        named = f" of `{owner}`" if isinstance(owner, str) else ""
        return f"{type(args[0]).__name__}.{self._function.__name__}{named}"

    def graph(self, args: Any, static: Any) -> Graph:
        """The graph for given arguments, built at the first call."""
        graphs = self.graphs
        if self.first:
            owner = args[0]
            # An unpickled object compiles again what was compiled.
            if owner.__dict__.get("_compiled") and "_evaluators" not in owner.__dict__:
                owner._compile_again()
            graphs = owner.__dict__.setdefault("_evaluators", {})
        key = (self.qualified, static)
        found: Graph | None = graphs.get(key)
        if found is None:
            found = graphs[key] = self._build(args, len(static) > len(args[self.last :]))
        return found

    def _build(self, args: Any, whole: bool) -> Graph:
        def resolved(shape: _Shape) -> tuple[int, ...]:
            return tuple(
                n if isinstance(n, int) else -1 if n == "*" else int(getattr(args[0], n))
                for n in shape
            )

        where, function = self.where(args), self._function
        kind = ca.SX if self._symbols is None else getattr(args[0], self._symbols)
        missing = [None] if self.optional and not whole else []
        names = self._names[: len(self._names) - len(missing)]
        inputs = [
            kind.sym(name, *(*resolved(shape), 1, 1)[:2])
            for name, shape in zip(names, self._shapes_in, strict=False)
        ]
        results = function(*args[: self.first], *inputs, *missing, *args[self.last :])
        results = results if isinstance(results, tuple) else (results,)
        graph = ca.Function(
            re.sub(r"\W", "_", function.__name__.strip("_")),
            inputs,
            [kind(r) for r in results],
            names,
            [f"result{i}" for i in range(len(results))],
            {"cse": kind is ca.SX, "allow_free": True},
        )
        if graph.has_free():
            # A graph that is kept cannot follow symbols inside the object.
            raise ConcurError(
                where,
                expected="an object that contains numbers only",
                came=f"one that contains the symbols {', '.join(graph.get_free()[:5])}",
                cure="Pass symbols as arguments, for example those of Plant(robot, uncertain=...).",
            )
        shapes = [
            tuple(own if n < 0 else n for n, own in zip(shape, graph.size_out(i), strict=False))
            for i, shape in enumerate(map(resolved, self._shapes_out))
        ]
        attitudes = args[0]._attitudes if self.first else NONE
        attitudes = {name: attitudes[name] for name in names if name in attitudes}
        bound = LARGEST if self.first and "q" in names else np.inf
        return Graph(graph, shapes, where, attitudes, bound)

    def evaluator_for(self, owner: Any, *static: Any) -> Evaluator:
        """Evaluator for an object and the arguments that select a function."""
        whole = self.optional and static[-1:] == (self._names[-1],)
        chosen = static[:-1] if whole else static
        bound = self.parameters.bind(owner, *[None] * len(self._names), *chosen)
        bound.apply_defaults()
        key = bound.args[self.last :] + static[len(chosen) :]
        return self.graph(bound.args, key).numeric()

    def direct_for(self, call: Callable[..., Any], owner: Any) -> Callable[..., Any] | None:
        """Direct call of machine code for an object; None if nothing is compiled."""
        count = len(self.parameters.parameters) - self.last
        found = {
            static: evaluator
            for (name, static), evaluator in numeric(owner).items()
            if name == self.qualified and evaluator.compiled and len(static) == count
        }
        if self.optional:  # of several arrays, those without the last
            found = {(None, *static): evaluator for static, evaluator in found.items()}
        return direct(call, len(self._names) - self.optional, found)


class Graph:
    """One graph, built once: expanded into larger expressions, or called with numbers.

    Parameters
    ----------
    function : casadi.Function
        The graph.
    shapes : list of tuple of int
        Shape of each result.
    where : str
        Place named in errors.
    attitudes : mapping
        Start index of each unit quaternion and the name of its owner, by name of the argument.
    bound : float
        Magnitude of the sum of all arguments from which on they are rejected.
    """

    def __init__(
        self,
        function: ca.Function,
        shapes: list[tuple[int, ...]],
        where: str,
        attitudes: Mapping[str, Mapping[Place, str]],
        bound: float,
    ) -> None:
        self._function, self._shapes, self._where = function, shapes, where
        self._attitudes, self._bound = attitudes, bound
        self.evaluator: Evaluator | None = None

    def numeric(self) -> Evaluator:
        """The evaluator, which normalises quaternions and validates all arguments."""
        if self.evaluator is None:
            graph = self._function
            names, inputs = graph.name_in(), symbols_of(graph)
            sizes = tuple(graph.size_in(name) for name in names)
            starts = tuple(tuple(self._attitudes.get(name, ())) for name in names)
            *taken, unsound = _validated(sizes, starts, self._bound).call(inputs)
            results = [*map(ca.densify, graph.call(taken)), unsound]
            names_out = [*graph.name_out(), UNSOUND]
            checked = ca.Function(graph.name(), inputs, results, names, names_out)
            self.evaluator = Evaluator(checked, self._shapes, self._where, self._attitudes)
        return self.evaluator

    def expand(self, arrays: tuple[Any, ...]) -> Any:
        """Results for expressions, or expressions and numbers."""
        graph = self._function
        kind = ca.SX if any(isinstance(array, ca.SX) for array in arrays) else ca.MX
        if kind is ca.SX and not graph.is_a("SXFunction"):
            raise ConcurError(
                f"function `{graph.name()}`",
                expected="numbers or MX expressions",
                came="SX expressions",
                cure="Call it with MX: it contains a solver, which SX cannot represent.",
            )
        expressions = []
        for array, name in zip(arrays, graph.name_in(), strict=True):
            where, expected = f"{self._where}, argument `{name}`", graph.size_in(name)
            if not isinstance(array, kind):
                numbers = as_floats(array, where)
                if not np.isfinite(numbers).all():
                    raise nonfinite_error(where, numbers)
                if numbers.ndim > 2:
                    raise shape_error(where, expected, numbers.shape)
                array = kind(ca.DM(np.atleast_1d(numbers)))
            if array.shape != expected:
                raise shape_error(where, expected, array.shape)
            expressions.append(array)
        if kind is ca.SX:
            # Restore the structural zeros of the results for these arguments.
            results = [ca.sparsify(result) for result in graph.call(expressions)]
        else:
            results = self.numeric().function.call(expressions)[:-1]
        return tuple(results) if len(results) != 1 else results[0]


def numeric(owner: Any) -> dict[tuple[str, tuple[Any, ...]], Evaluator]:
    """Evaluators of an object's methods, by name and arguments."""
    # The object also keeps other graphs.
    kept = list(owner.__dict__.get("_evaluators", {}).items())
    graphs = [(key, graph) for key, graph in kept if isinstance(graph, Graph)]
    return {key: graph.evaluator for key, graph in graphs if graph.evaluator is not None}


@functools.lru_cache(maxsize=64)
def _validated(
    shapes: tuple[tuple[int, int], ...], starts: tuple[tuple[Place, ...], ...], bound: float
) -> ca.Function:
    """Arguments with normalised quaternions at given indices, and whether one is invalid."""
    symbols = [ca.SX.sym("x", *shape) for shape in shapes]
    total = sum((ca.sum1(ca.vec(symbol)) for symbol in symbols), ca.SX(0))
    valid, taken = ca.fabs(total) < bound, list[ca.SX]()
    for symbol, places in zip(symbols, starts, strict=True):
        unit, near = normalised(symbol, places) if places else (symbol, 1)
        valid = ca.logic_and(valid, near)
        taken.append(unit)
    return ca.Function("door", symbols, [*taken, ca.logic_not(valid)], {"cse": True})


def _not_a_name(where: str, static: tuple[Any, ...]) -> ShapeError:
    """Error for an argument that should select a function but is not a name."""
    came = next(value for value in static if not isinstance(value, Hashable))
    return ShapeError(
        where,
        expected="a name",
        came=f"{type(came).__name__} {came!r:.40}",
        cure="Pass one name at a time.",
    )


def _parsed(text: str) -> list[_Shape]:
    """Shapes of one side of a signature."""
    return [
        tuple(int(n) if n.isdigit() else n for n in re.findall(r"\w+|\*", group))
        for group in re.findall(r"\(([^()]*)\)", text)
    ]
