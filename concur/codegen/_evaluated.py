"""Decorator that makes a symbolic algorithm callable with NumPy arrays and with CasADi SX."""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, MethodType
from typing import Any, ClassVar, ParamSpec, TypeAlias, TypeVar

import casadi as ca
import numpy as np

from concur.codegen._attitude import normalised
from concur.codegen._direct import direct
from concur.codegen._evaluator import (
    LARGEST,
    UNSOUND,
    Evaluator,
    as_floats,
    nonfinite_error,
    shape_error,
)
from concur.codegen._library import compiled, instructions
from concur.errors import ConcurError, ShapeError, UnknownNameError

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

_NONE: Mapping[Any, Any] = MappingProxyType({})

_NUMBERS = frozenset({np.ndarray, np.float64, float, int, list, tuple}).__contains__
"""Types known to contain no expressions."""

_Shape: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Build:
    """Result of `compile_functions`.

    Parameters
    ----------
    names : tuple of str
        Names of the functions.
    instructions : tuple of int
        Length of each graph.
    compiled : bool
        Whether the functions are machine code; else they are interpreted, without a compiler.
    cached : bool
        Whether the machine code came from the cache.
    graph, written, built : float
        Durations of building the graphs, writing the C sources, and compiling or finding and
        loading them, s.
    """

    names: tuple[str, ...]
    instructions: tuple[int, ...]
    compiled: bool
    cached: bool
    graph: float
    written: float
    built: float


class EvaluatedMethods:
    """Base of classes with `evaluated` methods: keeps their evaluators out of pickles."""

    COMPILED: ClassVar[tuple[str, ...]] = ()
    """Methods that `compile_functions` compiles by default."""

    @property
    def quaternions(self) -> Mapping[int, str]:
        """Start index of each unit quaternion in a configuration, and the name of its owner."""
        return MappingProxyType({})

    @property
    def attitudes(self) -> Mapping[str, Mapping[int, str]]:
        """Start indices of unit quaternions, by name of the argument.

        Numeric calls normalise them inside the graph if they are within 1e-3 of unit norm, and
        reject others. Symbolic calls do not: there quaternions must have unit norm.
        """
        return dict.fromkeys(("q", "q0", "q1"), self.quaternions) if self.quaternions else _NONE

    def compile_functions(self, *functions: str | tuple[Any, ...]) -> Build:
        """Compile methods of this object to machine code.

        Results stay the same. Copies made by pickling use machine code too; other objects are
        unaffected.

        Parameters
        ----------
        *functions : str or tuple
            Names of methods that take arrays; for a method that also takes a name, a tuple such as
            ``("jacobian", "tool")``. Default: those in `COMPILED`, and those already called with
            numbers.

        Returns
        -------
        Build
            The compiled functions, with durations.

        Raises
        ------
        UnknownNameError
            If a method does not exist.
        """
        start = time.perf_counter()
        asked = functions or self.COMPILED
        calls = [entry if isinstance(entry, tuple) else (entry,) for entry in asked]
        evaluators = {
            call: self._evaluator(call[0], "compile_functions", *call[1:]) for call in calls
        }
        found = list(dict.fromkeys(evaluators.values()))
        if not functions:
            found = list(dict.fromkeys([*found, *_numeric(self).values()]))
        if not found:
            raise _nothing_to_compile(self)
        graphs = [evaluator.function for evaluator in found]
        graph = time.perf_counter() - start
        made = compiled(graphs)
        if made is not None:
            for evaluator, function in zip(found, made.functions, strict=True):
                evaluator.replace(function)
            keys = [key for key, evaluator in _numeric(self).items() if evaluator in found]
            before = self.__dict__.get("_compiled", ())
            self.__dict__["_compiled"] = tuple(dict.fromkeys((*before, *keys)))
            self._install({name for name, _ in keys})
        return Build(
            tuple(f.name() for f in graphs),
            tuple(instructions(f) for f in graphs),
            made is not None,
            made is not None and made.cached,
            graph,
            0.0 if made is None else made.written,
            0.0 if made is None else made.built,
        )

    def buffered(self, name: str, *static: Any) -> Evaluator:
        """Return an evaluator of a method of this object with separate buffers.

        Parameters
        ----------
        name : str
            Name of a method that takes arrays.
        *static : str
            Its arguments that are not arrays, like the body of ``robot.jacobian(q, body)``.

        Returns
        -------
        Evaluator
            Call it like the method. `view` returns its buffers instead of copies; `inputs`,
            `trigger` and `outputs` are for loops that fill the buffers themselves. It is machine
            code if the method is compiled already. Each thread needs another one.

        Raises
        ------
        UnknownNameError
            If the method does not exist.
        ShapeError
            If the number of arguments that are not arrays is wrong.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.free_flyer()
        >>> mass_matrix = robot.buffered("mass_matrix")
        >>> mass_matrix.view(robot.neutral()).shape
        (12, 12)
        """
        return self._evaluator(name, "buffered", *static).copy()

    def _evaluator(self, name: str, asked: str, *static: Any) -> Evaluator:
        method: Any = getattr(type(self), name, None) if isinstance(name, str) else None
        if not hasattr(method, "evaluator_for"):
            known = [n for n in dir(type(self)) if hasattr(getattr(type(self), n), "evaluator_for")]
            raise UnknownNameError(
                f"{type(self).__name__}.{asked}",
                expected=f"methods that take arrays ({', '.join(known)})",
                came=f"`{name}`",
                cure="Correct the name.",
                name=name,
            )
        try:
            evaluator: Evaluator = method.evaluator_for(self, *static)
        except TypeError as error:
            raise ShapeError(
                f"{type(self).__name__}.{asked}, `{name}`",
                expected="the arguments that are not arrays",
                came=f"{static} ({error})",
                cure='Write for example ("jacobian", "tool").',
            ) from None
        return evaluator

    def _install(self, names: set[str]) -> None:
        """Install direct calls of compiled methods."""
        for qualified in names:
            name = qualified.rpartition(".")[2]
            method: Any = getattr(type(self), name, None)
            # A subclass's override calls an overridden method: it keeps the general call.
            if getattr(method, "__qualname__", None) == qualified:
                function = method.direct_for(self)
                if function is not None:
                    self.__dict__[name] = MethodType(function, self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            k: v
            for k, v in self.__dict__.items()
            if k != "_evaluators" and not (isinstance(v, MethodType) and v.__self__ is self)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _numeric(owner: Any) -> dict[tuple[str, tuple[Any, ...]], Evaluator]:
    """Evaluators of an object's methods, by name and arguments."""
    # The object also keeps other graphs.
    kept = list(owner.__dict__.get("_evaluators", {}).items())
    entries = [(key, entry) for key, entry in kept if isinstance(entry, _Entry)]
    return {key: entry.evaluator for key, entry in entries if entry.evaluator is not None}


def _compile_again(owner: Any) -> None:
    """Compile the previously compiled methods at the first call after unpickling."""
    known = owner.__dict__.get("_compiled", ())
    if known and "_evaluators" not in owner.__dict__:
        owner.__dict__["_evaluators"] = {}
        owner.compile_functions(*[(name.rpartition(".")[2], *static) for name, static in known])


def _nothing_to_compile(owner: EvaluatedMethods) -> UnknownNameError:
    return UnknownNameError(
        f"{type(owner).__name__}.compile_functions",
        expected="names of methods that take arrays",
        came="no names, and no method called before",
        cure="Name the methods.",
    )


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
    shapes_in, shapes_out = _parse(signature)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function)
        names = list(parameters.parameters)
        first = 1 if names[0] == "self" else 0
        last = first + len(shapes_in)
        optional = [*parameters.parameters.values()][last - 1].default is None
        own_cache: dict[Any, _Entry] = {}
        bound = LARGEST if first and "q" in names[first:last] else np.inf
        count, qualified = len(names), function.__qualname__

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) != count:
                bound = parameters.bind(*args, **kwargs)
                bound.apply_defaults()
                args = bound.args
            cache = args[0].__dict__.get("_evaluators", _NONE) if first else own_cache
            arrays, static = args[first:last], args[last:]
            if optional:
                arrays, static = _given(arrays, static)
            try:
                entry = cache.get((qualified, static))
            except TypeError:
                raise _not_a_name(_where(args), static) from None
            if entry is None:
                entry = _entry(args, static)
            if all(map(_NUMBERS, map(type, arrays))):
                return (entry.evaluator or entry.numeric(*_labels(args)))(*arrays)
            if any(isinstance(a, ca.SX) for a in arrays):
                return entry.expand(_expressions(args, arrays, ca.SX))
            evaluator = entry.numeric(*_labels(args))
            if any(isinstance(a, ca.MX) for a in arrays):
                expressions = _expressions(args, arrays, ca.MX)
                return _alone(evaluator.function.call(expressions)[:-1])
            return evaluator(*arrays)

        def _given(arrays: Any, static: Any) -> tuple[Any, Any]:
            """Arrays without an optional one that is missing, and the key of their graph."""
            if arrays[-1] is None:
                return arrays[:-1], static
            return arrays, (*static, names[last - 1])

        def _entry(args: Any, static: Any) -> _Entry:
            """The graph for given arguments, built at the first call."""
            owner = args[0] if first else None
            if first:
                _compile_again(owner)
            cache = owner.__dict__.setdefault("_evaluators", {}) if first else own_cache
            key = (qualified, static)
            entry: _Entry | None = cache.get(key)
            if entry is None:
                entry = cache[key] = _Entry(_build(args, len(static) > len(args[last:])))
            return entry

        def _labels(args: Any) -> Any:
            return _where(args), _shapes(args), _attitudes(args), bound

        def _attitudes(args: Any) -> dict[str, Mapping[int, str]]:
            known = args[0].attitudes if first else _NONE
            return {name: known[name] for name in names[first:last] if name in known}

        def evaluator_for(owner: Any, *static: Any) -> Evaluator:
            """Evaluator for an object and the arguments that select a function."""
            chosen = static[:-1] if optional and static[-1:] == (names[last - 1],) else static
            bound = parameters.bind(owner, *[None] * (last - first), *chosen)
            bound.apply_defaults()
            own = bound.args[last:] + static[len(chosen) :]
            return _entry(bound.args, own).numeric(*_labels(bound.args))

        def direct_for(owner: Any) -> Callable[..., Any] | None:
            """Direct call of machine code for an object; None if nothing is compiled."""
            found = {
                static: evaluator
                for (name, static), evaluator in _numeric(owner).items()
                if name == qualified and evaluator.compiled and len(static) == count - last
            }
            if optional:  # of several arrays, those without the last
                found = {(None, *static): evaluator for static, evaluator in found.items()}
            return direct(call, last - first - optional, found)

        def _where(args: Any) -> str:
            if not first:
                return function.__qualname__
            owner = getattr(args[0], "name", None)
            named = f" of `{owner}`" if isinstance(owner, str) else ""
            return f"{type(args[0]).__name__}.{function.__name__}{named}"

        def _expressions(args: Any, arrays: Any, kind: Any) -> list[Any]:
            expressions = []
            for shape, array, name in zip(shapes_in, arrays, names[first:last], strict=False):
                where = f"{_where(args)}, argument `{name}`"
                expected = _casadi_shape(_resolve(shape, args))
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
            return expressions

        def _build(args: Any, whole: bool) -> ca.Function:
            kind = ca.SX if symbols is None else getattr(args[0], symbols)
            missing = [None] if optional and not whole else []
            inputs = [
                kind.sym(name, *_casadi_shape(_resolve(shape, args)))
                for shape, name in zip(shapes_in, names[first : last - len(missing)], strict=False)
            ]
            results: Any = function(*args[:first], *inputs, *missing, *args[last:])  # type: ignore
            results = results if isinstance(results, tuple) else (results,)
            graph = ca.Function(
                re.sub(r"\W", "_", function.__name__.strip("_")),
                inputs,
                [kind(r) for r in results],
                names[first : first + len(inputs)],
                [f"result{i}" for i in range(len(results))],
                {"cse": kind is ca.SX, "allow_free": True},
            )
            if graph.has_free():
                raise _free_symbols(_where(args), graph.get_free())
            return graph

        def _shapes(args: Any) -> list[tuple[int, ...]]:
            return [_resolve(shape, args) for shape in shapes_out]

        def _resolve(shape: _Shape, args: Any) -> tuple[int, ...]:
            return tuple(
                n if isinstance(n, int) else -1 if n == "*" else int(getattr(args[0], n))
                for n in shape
            )

        call.evaluator_for = evaluator_for  # type: ignore[attr-defined]
        call.direct_for = direct_for  # type: ignore[attr-defined]
        return call

    return decorate


def _free_symbols(where: str, symbols: list[str]) -> ConcurError:
    """Error for an object that contains symbols: a graph that is kept cannot follow them."""
    return ConcurError(
        where,
        expected="an object that contains numbers only",
        came=f"one that contains the symbols {', '.join(symbols[:5])}",
        cure="Pass symbols as arguments, for example those of Plant(robot, uncertain=...).",
    )


def _not_a_name(where: str, static: tuple[Any, ...]) -> ShapeError:
    """Error for an argument that should select a function but is not a name."""
    came = next(value for value in static if not isinstance(value, Hashable))
    return ShapeError(
        where,
        expected="a name",
        came=f"{type(came).__name__} {came!r:.40}",
        cure="Pass one name at a time.",
    )


class _Entry:
    """One graph, built once: expanded into larger expressions, or called with numbers."""

    def __init__(self, graph: ca.Function) -> None:
        self._graph = graph
        self.evaluator: Evaluator | None = None

    def expand(self, expressions: list[ca.SX]) -> Any:
        if not self._graph.is_a("SXFunction"):
            raise ConcurError(
                f"function `{self._graph.name()}`",
                expected="numbers or MX expressions",
                came="SX expressions",
                cure="Call it with MX: it contains a solver, which SX cannot represent.",
            )
        # Restore the structural zeros of the results for these arguments.
        return _alone([ca.sparsify(r) for r in self._graph.call(expressions)])

    def numeric(
        self,
        where: str,
        shapes: list[tuple[int, ...]],
        attitudes: Mapping[str, Mapping[int, str]],
        bound: float,
    ) -> Evaluator:
        if self.evaluator is None:
            known = [
                tuple(
                    own if n < 0 else n
                    for n, own in zip(shape, self._graph.size_out(i), strict=False)
                )
                for i, shape in enumerate(shapes)
            ]
            self.evaluator = Evaluator(
                _checked(self._graph, attitudes, bound), known, where, attitudes
            )
        return self.evaluator


def _checked(
    graph: ca.Function, attitudes: Mapping[str, Mapping[int, str]], bound: float
) -> ca.Function:
    """A graph for numeric calls, which normalises quaternions and validates all arguments."""
    kind = ca.SX if graph.is_a("SXFunction") else ca.MX
    names, shapes = graph.name_in(), [graph.size_in(i) for i in range(graph.n_in())]
    starts = [tuple(attitudes.get(name, ())) for name in names]
    inputs = [kind.sym(name, *shape) for name, shape in zip(names, shapes, strict=True)]
    *taken, unsound = _validated(tuple(shapes), tuple(starts), bound).call(inputs)
    results = [*map(ca.densify, graph.call(taken)), unsound]
    return ca.Function(graph.name(), inputs, results, names, [*graph.name_out(), UNSOUND])


@functools.lru_cache(maxsize=64)
def _validated(
    shapes: tuple[tuple[int, int], ...], starts: tuple[tuple[int, ...], ...], bound: float
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


def _alone(results: list[Any]) -> Any:
    """A single result, or a tuple of several."""
    return tuple(results) if len(results) != 1 else results[0]


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
