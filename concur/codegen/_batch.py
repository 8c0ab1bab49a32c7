"""Functions of many worlds: arrays with a leading axis, one loop in C, optional threads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from concur.codegen._compiler import (
    Compiler,
    find_compiler,
    forget,
    interpreted_on_purpose,
    library,
    warn_once,
)
from concur.codegen._evaluator import UNSOUND, Evaluator, as_floats
from concur.codegen._sources import Sources
from concur.errors import ShapeError

BoundCall: TypeAlias = Callable[[], None]
"""Computes all worlds once, from and to bound arrays."""


class Batch(ABC):
    """Vectorised call of a function of one world for many worlds.

    Parameters
    ----------
    function : casadi.Function or Evaluator
        The function. The result by which an `Evaluator` detects NaN, a sum of the arguments, is
        omitted.
    threads : int, default 1
        Number of threads that share the worlds, if the compiler has OpenMP. They end with each
        call, so that a process may fork between calls. They sleep while they wait, unless
        another library loaded OpenMP earlier with OMP_WAIT_POLICY other than PASSIVE.

    Attributes
    ----------
    function : casadi.Function
        The evaluated function.
    compiled : bool
        Whether the function is machine code; else worlds are interpreted one by one.
    threads : int
        Number of threads.
    width : int
        Number of worlds that one thread computes simultaneously.

    Raises
    ------
    ShapeError
        If the number of threads is not a positive integer.
    """

    def __init__(self, function: ca.Function | Evaluator, threads: int = 1) -> None:
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise ShapeError(
                f"{type(self).__name__}, `threads`",
                expected="a positive integer",
                came=repr(threads),
                cure="Use 1, or the number of processors.",
            )
        self._made_of = function
        graph = function.function if isinstance(function, Evaluator) else function
        self.function = self._prepared(results_only(graph))
        self._where = f"{type(self).__name__} of `{self.function.name()}`"
        self._alone = has_solver(self.function)
        own = [self.function.size_in(i) for i in range(self.function.n_in())]
        self._shapes_in = [_shape(size) for size in own]
        found = [_shape(self.function.size_out(i)) for i in range(self.function.n_out())]
        self._shapes_out = list(function.shapes) if isinstance(function, Evaluator) else found
        self._lock = Lock()
        self.threads = 1 if self._alone else threads
        self.width = 1
        self._code = self._load()
        self.compiled = self._code is not None
        self._interpreter: Evaluator | None = None

    @abstractmethod
    def _prepared(self, function: ca.Function) -> ca.Function:
        """The function in the form for C code."""

    @abstractmethod
    def _sources(self, compiler: Compiler) -> Sources:
        """C sources with an entry `concur_batch`."""

    def __call__(self, *arguments: Any) -> Any:
        """Compute all worlds.

        Parameters
        ----------
        *arguments : array_like
            One array per input, with a leading axis of worlds: shape (B, n) for vectors, (B, m, n)
            for matrices, (B,) or (B, 1) for numbers. An array without that axis applies to all
            worlds. NaN is not rejected and affects only its world.

        Returns
        -------
        numpy.ndarray or tuple of them
            New arrays with a leading axis of worlds. Numbers have shape (B,) where an `Evaluator`
            defines them as scalars, else (B, 1).

        Raises
        ------
        ShapeError
            If the arrays do not fit the function or each other.
        """
        given = [
            np.asarray(as_floats(argument, self._place(i)), order="C")
            for i, argument in enumerate(arguments)
        ]
        count = self._count(given)
        found = [np.empty((count, *shape)) for shape in self._shapes_out]
        self._bound_call(count, given, found)()
        return found[0] if len(found) == 1 else tuple(found)

    def bind(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> BoundCall:
        """Bind arrays once for repeated calls without copies.

        Parameters
        ----------
        arguments : sequence of numpy.ndarray
            As for a call, of float64, rows contiguous. They are read at each call.
        results : sequence of numpy.ndarray
            One array for each result, with a leading axis of worlds. An array that is also an
            argument is updated in place, so that each call continues from the last. Otherwise
            arrays must not overlap.

        Returns
        -------
        callable
            Function without arguments that computes all worlds once. It keeps the arrays alive.

        Raises
        ------
        ShapeError
            If an array does not fit, or would have to be copied.
        """
        count = self._count(arguments)
        for i, (argument, own) in enumerate(zip(arguments, self._shapes_in, strict=True)):
            _refuse_copies(argument, self._place(i), own)
        if len(results) != len(self._shapes_out):
            raise _number_error(self._where, "results", len(self._shapes_out), len(results))
        for i, (result, own) in enumerate(zip(results, self._shapes_out, strict=True)):
            place = f"{self._where}, result `{self.function.name_out(i)}`"
            _refuse_copies(result, place, own)
            numbers = [(count,), (count, 1)] if own in ((), (1,)) else []
            if result.shape not in ((count, *own), *numbers):
                raise _shape_error(place, f"shape {(count, *own)}", result.shape)
            if not result.flags.writeable:
                raise _shape_error(place, "a writable array", "a read-only array")
        return self._bound_call(count, list(arguments), list(results))

    def _place(self, index: int) -> str:
        names = self.function.name_in()
        return f"{self._where}, argument `{names[index] if index < len(names) else index}`"

    def _count(self, arguments: Sequence[np.ndarray]) -> int:
        """Number of worlds."""
        if len(arguments) != len(self._shapes_in):
            raise _number_error(self._where, "arguments", len(self._shapes_in), len(arguments))
        counts: dict[int, int] = {}
        alone = False
        for i, (argument, own) in enumerate(zip(arguments, self._shapes_in, strict=True)):
            shape = np.shape(argument)
            if _is_batch(shape, own):
                counts[i] = shape[0]
            elif shape == own or (shape == () and own == (1,)):
                # A single number may belong to the only world.
                alone = alone or shape == (1,)
            else:
                expected = f"shape (B{''.join(f', {n}' for n in own)}) or {own}"
                raise _shape_error(self._place(i), expected, shape)
        if not counts and not alone:
            raise _shape_error(self._where, "a leading axis of worlds", "arguments without")
        first, count = next(iter(counts.items()), (0, 1))
        for i, other in counts.items():
            if other != count:
                expected = f"{count} worlds, as in `{self.function.name_in(first)}`"
                raise _shape_error(self._place(i), expected, str(other))
        return count

    def _bound_call(
        self, count: int, given: list[np.ndarray], found: list[np.ndarray]
    ) -> BoundCall:
        if self._code is None:
            return functools.partial(self._interpret, count, given, found)
        steps = [
            argument.strides[0] // argument.itemsize if _is_batch(argument.shape, own) else 0
            for argument, own in zip(given, self._shapes_in, strict=True)
        ]
        steps_out = [result.strides[0] // result.itemsize for result in found]
        lock = self._lock if self._alone else contextlib.nullcontext()
        parts = (
            ctypes.c_longlong(count),
            ctypes.c_int(self.threads),
            (ctypes.c_void_p * len(given))(*(a.ctypes.data for a in given)),
            (ctypes.c_longlong * len(steps))(*steps),
            (ctypes.c_void_p * len(found))(*(r.ctypes.data for r in found)),
            (ctypes.c_longlong * len(steps_out))(*steps_out),
        )

        return functools.partial(_enter, self._code, lock, parts, (given, found))

    def __reduce__(self) -> Any:
        return type(self), (self._made_of, self.threads)

    def _interpret(self, count: int, given: list[np.ndarray], found: list[np.ndarray]) -> None:
        if self._interpreter is None:
            shapes = [tuple(self.function.size_out(i)) for i in range(self.function.n_out())]
            self._interpreter = Evaluator(self.function, shapes, self._where)
        run = self._interpreter
        rows = [
            argument if _is_batch(argument.shape, own) else np.broadcast_to(argument, (count, *own))
            for argument, own in zip(given, self._shapes_in, strict=True)
        ]
        with self._lock:
            for world in range(count):
                for place, row in zip(run.inputs, rows, strict=True):
                    place[...] = row[world].reshape(place.shape)
                run.trigger()
                for result, place in zip(found, run.outputs, strict=True):
                    one = result[world : world + 1]
                    one[...] = place.reshape(one.shape) if run.succeeded else np.nan

    def _load(self) -> Any:
        """Entry of the compiled library; None if worlds must be interpreted."""
        compiler = batch_compiler()
        if compiler is None:
            return None
        if self.threads > 1:
            compiler = threaded(compiler)
            self.threads = self.threads if OPENMP in compiler.command else 1
        found = loaded(self._sources(compiler), compiler)
        if found is None:
            return None
        self.width = int(found.concur_width())
        return found.concur_batch


OPENMP = "-fopenmp"
"""Flag of threads."""


def batch_compiler() -> Compiler | None:
    """The compiler of many worlds; None, with a warning, if they must be interpreted."""
    compiler = find_compiler()
    if compiler is None and not interpreted_on_purpose():
        warn_once(
            "No C compiler was found: many worlds are interpreted one by one. Install gcc "
            "or clang, or the package `ziglang`; CONCUR_CC=none silences this."
        )
    return compiler


def threaded(compiler: Compiler, needed: bool = True) -> Compiler:
    """The compiler with the flag of threads if it has them, else itself, with a warning."""
    if _has_openmp(compiler):
        return replace(compiler, command=(*compiler.command, OPENMP))
    if needed:
        warn_once(
            f"`{' '.join(compiler.command)}` has no OpenMP: one thread computes all "
            "worlds. Set CONCUR_CC to a gcc, or distribute the worlds over processes."
        )
    return compiler


def loaded(code: Sources, compiler: Compiler) -> Any:
    """The compiled library; None if worlds must be interpreted."""
    for _ in range(2):
        found = library(code, compiler)
        if found is None:
            return None
        try:
            with _sleeping_threads():
                return ctypes.CDLL(str(found[0]))
        except OSError:
            forget(found[0])
    warn_once(
        f"A library compiled by `{' '.join(compiler.command)}` cannot be loaded: worlds are "
        "interpreted one by one. Set CONCUR_CC to another compiler."
    )
    return None


def _enter(code: Any, lock: contextlib.AbstractContextManager[Any], parts: Any, _: Any) -> None:
    """Call the entry; the last argument keeps the arrays behind its pointers alive."""
    with lock:
        code(*parts)


@functools.lru_cache(maxsize=16)
def _has_openmp(compiler: Compiler) -> bool:
    """Whether a compiler can compile and link code with threads of OpenMP."""
    text = "#include <omp.h>\nint most(void) { return omp_get_max_threads(); }\n"
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "openmp.c"
        source.write_text(text, encoding="ascii")
        command = [*compiler.command, "-fopenmp", "-shared", "-fPIC", "openmp.c", "-o", "openmp"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def _sleeping_threads() -> Iterator[None]:
    """Let OpenMP threads sleep while they wait, unless the environment sets another policy.

    GNU's library reads the setting once, when it is loaded. By default its threads spin instead: if
    other processes need the processors, a call then takes tens of milliseconds.
    """
    name = "OMP_WAIT_POLICY"
    if name in os.environ:
        yield
        return
    os.environ[name] = "PASSIVE"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def has_solver(function: ca.Function) -> bool:
    """Whether a function contains more than graphs: then all calls share one work memory."""
    inner = function.find_functions() if function.is_a("MXFunction") else []
    graphs = ("SXFunction", "MXFunction", "Switch")
    return not all(any(f.is_a(kind) for kind in graphs) for f in [function, *inner])


def results_only(function: ca.Function) -> ca.Function:
    """The function with dense results, without the one that validates the arguments."""
    names_in, names_out = function.name_in(), function.name_out()
    kept = [i for i, name in enumerate(names_out) if name != UNSOUND]
    sparsities = [function.sparsity_in(i) for i in range(function.n_in())]
    sparsities += [function.sparsity_out(i) for i in kept]
    if len(kept) == len(names_out) and all(sparsity.is_dense() for sparsity in sparsities):
        return function
    kind = ca.SX if function.is_a("SXFunction") else ca.MX
    symbols = [kind.sym(name, *function.size_in(i)) for i, name in enumerate(names_in)]
    results = function.call(symbols)
    return ca.Function(
        function.name(),
        symbols,
        [ca.densify(results[i]) for i in kept],
        names_in,
        [names_out[i] for i in kept],
    )


def _shape(size: tuple[int, int]) -> tuple[int, ...]:
    rows, columns = size
    return (rows,) if columns == 1 else (rows, columns)


def _is_batch(shape: tuple[int, ...], own: tuple[int, ...]) -> bool:
    """Whether an argument has an axis of worlds."""
    if own == (1,) and len(shape) == 1:
        return shape != (1,)
    return len(shape) == len(own) + 1 and shape[1:] == own


def _refuse_copies(array: Any, place: str, own: tuple[int, ...]) -> None:
    """Reject an array that is not float64 with contiguous rows."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        raise _shape_error(place, "a NumPy array of float64", type(array).__name__)
    row = own if array.ndim >= len(own) else ()
    strides, contiguous = array.strides[array.ndim - len(row) :], np.empty(row).strides
    gaps = any(n > 1 and a != b for n, a, b in zip(row, strides, contiguous, strict=True))
    if gaps or (array.ndim and array.strides[0] % array.itemsize):
        raise _shape_error(place, "contiguous rows", "an array with gaps")


def _shape_error(place: str, expected: str, came: object) -> ShapeError:
    return ShapeError(
        place,
        expected=expected,
        came=f"shape {came}" if isinstance(came, tuple) else str(came),
        cure="Give arrays with a leading axis of worlds, or one value for all worlds.",
    )


def _number_error(where: str, what: str, expected: int, came: int) -> ShapeError:
    return ShapeError(
        where,
        expected=f"{expected} {what}",
        came=str(came),
        cure="Give one array for each, in the order of the function.",
    )
