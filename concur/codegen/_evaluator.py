"""Evaluation of CasADi functions with numbers through preallocated buffers.

The usual call of a CasADi function allocates and converts for each argument. An `Evaluator` owns
one flat input and one output buffer, registers them once and afterwards only copies numbers in,
triggers the function, and copies numbers out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from threading import Lock, get_ident
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen._arguments import (
    LARGEST,
    Place,
    as_floats,
    attitude_error,
    nonfinite_error,
    oversized_error,
    shape_error,
)
from concur.codegen._library import Compiled, compiled
from concur.errors import ConcurError

UNSOUND = "unsound"
"""Name of a last result that is 0 if the numbers and quaternions of all arguments are valid."""

ALL = slice(None)
"""All of a memory: made once, as making a slice takes as long as a comparison."""

OTHER = (TypeError, ValueError, IndexError, NotImplementedError, BufferError)
"""Exceptions of a memory view for numbers of another type, or where an argument has no view."""


_LOCK = Lock()


class OneThread:
    """Base of objects with buffers: they belong to the first thread that uses them.

    Results are views of the buffers, so that even calls that do not overlap would change what
    another thread holds. An object is free again when its thread calls `release`, or has ended.
    """

    _thread = 0  # identifier of the thread; a thread that runs has another one than zero

    def _claim(self, where: str) -> None:
        """Take the object for this thread, or raise an error if it belongs to another one."""
        threading.current_thread()  # lists threads that Python has not started
        with _LOCK:
            own, me = self._thread, get_ident()
            if own != me and any(thread.ident == own for thread in threading.enumerate()):
                raise ConcurError(
                    where,
                    expected="calls from one thread, whose numbers are in the buffers",
                    came=f"thread `{threading.current_thread().name}`, beside that of the first "
                    "call",
                    cure="Make one for each thread, such as `servo.compile()`; or call `release()` "
                    "in its thread before another one takes it over.",
                )
            self._thread = me

    def _unclaim(self, where: str) -> None:
        self._claim(where)
        self._thread = 0


class Evaluator(OneThread):
    """A CasADi function called through preallocated buffers.

    Calls are safe from several threads, which then wait for each other; the buffers
    themselves are not. Once a thread has used `view`, calls from others raise an error, until it
    calls `release` or ends.

    Parameters
    ----------
    function : casadi.Function
        The function; sparse results are made dense. A last result named `UNSOUND` is not
        returned: it shows with one number whether the arguments are valid.
    shapes : sequence of tuple of int
        Shape of each NumPy result: ``()`` for a float, ``(n,)`` or ``(m, n)``.
    where : str
        Name used in error messages.
    quaternions : mapping, optional
        Start index of each unit quaternion and the name of its owner, by name of the argument:
        a call rejects other norms.
    can_fail : bool, optional
        Whether the function contains a solver; default: whether it is not a graph over SX.
    kept : bool
        Whether the last result becomes the last input of the next call, in one memory. The
        result must depend on everything that reads this input.

    Attributes
    ----------
    function : casadi.Function
        The function with dense inputs and results, as an expression graph.
    can_fail : bool
        Whether an evaluation may fail; `succeeded` shows it.
    compiled : bool
        Whether the function is machine code rather than interpreted.
    inputs, outputs : tuple of numpy.ndarray
        Views of the buffers, in column-major order, for use without copies: fill the
        inputs, call `trigger`, read the outputs.
    """

    def __init__(
        self,
        function: ca.Function,
        shapes: Sequence[tuple[int, ...]],
        where: str,
        quaternions: Mapping[str, Mapping[Place, str]] | None = None,
        can_fail: bool | None = None,
        kept: bool = False,
    ) -> None:
        self.where = where
        self._lock = Lock()
        self.shapes = tuple(shapes)
        self.function = dense(function)
        self.compiled = self.function.is_a("External")
        self.can_fail = not function.is_a("SXFunction") if can_fail is None else can_fail
        names = self.function.name_in()
        self._places = tuple(f"{where}, argument `{name}`" for name in names)
        sizes_in = [self.function.size_in(i) for i in range(self.function.n_in())]
        outputs = range(self.function.n_out())
        sizes_out = [self.function.size_out(i) for i in outputs]
        self.inputs, self._parts_in = _views(sizes_in)
        self.outputs, self._parts_out = _views(sizes_out)
        if kept:
            self._parts_out[-1] = self._parts_in[-1]
        self._unsound: Callable[[], float] | None = None
        if self.function.name_out()[-1:] == [UNSOUND]:
            self._unsound, self.outputs = self._parts_out[-1].item, self.outputs[:-1]
        # A memory view copies a vector in a third of NumPy's time, but only of the same type.
        memories = [memoryview(part.data) for part in self._parts_in]
        self._vectors: tuple[Any, ...] = tuple(
            memory if columns == 1 else None
            for memory, (_, columns) in zip(memories, sizes_in, strict=True)
        )
        shaped = tuple(
            part.reshape(shape, order="F")
            for part, shape in zip(self._parts_out[: len(self.outputs)], self.shapes, strict=True)
        )
        self._readers = tuple(view.item if view.shape == () else view.copy for view in shaped)
        self._read = self._readers[0] if len(self._readers) == 1 else None
        self._views: Any = shaped[0] if len(shaped) == 1 else shaped
        self._names = names
        self._quaternions = dict(quaternions or {})
        self._use(self.function)

    def _use(self, function: ca.Function) -> None:
        """Let a function with the same arguments and results work on the buffers."""
        self._machine = function
        self._buffer, self.trigger = function.buffer()
        self._failed = False
        if self.can_fail:
            # Only a function with a solver can fail; it then leaves the old results.
            self.trigger = self._guarded(self._buffer, self.trigger)
        for index, part in enumerate(self._parts_in):
            self._buffer.set_arg(index, memoryview(part.data))
        for index, part in enumerate(self._parts_out):
            self._buffer.set_res(index, memoryview(part.data))

    def replace(self, function: ca.Function) -> None:
        """Switch to machine code, which does not fail.

        Parameters
        ----------
        function : casadi.Function
            The evaluator's `function`, compiled.
        """
        with self._lock:
            self.can_fail = False
            self._use(function)
            self.compiled = True

    def copy(self) -> Evaluator:
        """Create an evaluator of the same function, or its machine code, with separate buffers.

        Returns
        -------
        Evaluator
            The other evaluator.
        """
        made = Evaluator(self.function, self.shapes, self.where, self._quaternions, self.can_fail)
        if self.compiled:
            made.replace(self._machine)
        return made

    def release(self) -> None:
        """Let another thread use `view`.

        Raises
        ------
        ConcurError
            If the buffers belong to another thread.
        """
        self._unclaim(self.where)

    @property
    def has_parts(self) -> bool:
        """Whether it has `parts`: all arguments are vectors, and no call may fail."""
        return not (self.can_fail or self._unsound is None or None in self._vectors)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Memory of each argument, trigger, memory of `UNSOUND`, and reader of each result.

        They remain valid as long as the evaluator exists.
        """
        unsound = memoryview(self._parts_out[-1].data)
        return (*self._vectors, self.trigger, unsound, *self._readers)

    def compile(self, key: str | None = None) -> Compiled | None:
        """Compile the function and switch to machine code.

        Parameters
        ----------
        key : str, optional
            A `fingerprint` under which `recalled` finds the function without its graph.

        Returns
        -------
        Compiled or None
            Result of the compilation; None if the function stays interpreted, without a compiler.
        """
        made = compiled([self.function], key)
        if made is not None:
            self.replace(made.functions[0])
        return made

    def __call__(self, *arguments: Any) -> Any:
        """Evaluate at NumPy arguments.

        Parameters
        ----------
        *arguments : array_like
            One array per input of the function, finite.

        Returns
        -------
        float, numpy.ndarray or tuple of them
            New arrays of the shapes given at construction.

        Raises
        ------
        ShapeError
            If an argument has another shape than the function's input, or a quaternion is invalid.
        NonFiniteError
            If an argument holds a NaN or an infinity.
        ConcurError
            If the function fails, or another thread uses `view`.
        """
        if self._thread and get_ident() != self._thread:
            self._claim(self.where)
        with self._lock:
            self._run(arguments)
            if self._read is not None:
                return self._read()
            return tuple([read() for read in self._readers])

    def view(self, *arguments: Any) -> Any:
        """Evaluate at NumPy arguments and return views of the buffers.

        It allocates nothing. The results are valid until the next call. The first thread that calls
        it has the buffers, until it calls `release` or ends.

        Parameters
        ----------
        *arguments : array_like
            One array per input of the function, finite.

        Returns
        -------
        numpy.ndarray or tuple of them
            Views of the results, of the shapes given at construction; a number has shape ().

        Raises
        ------
        ShapeError, NonFiniteError, ConcurError
            As when called.
        """
        if get_ident() != self._thread:
            self._claim(self.where)
        self._run(arguments)
        return self._views

    def _run(self, arguments: tuple[Any, ...]) -> None:
        """Copy arguments, evaluate, and reject invalid ones."""
        vectors = self._vectors
        try:
            index = 0
            for argument in arguments:
                vectors[index][ALL] = argument
                index += 1  # counting by hand takes half the time of `enumerate` or `zip`
        except OTHER:
            self._take(arguments)
        else:
            if index != len(vectors):
                self._take(arguments)
        self.trigger()
        if self._unsound is None or self._unsound():
            self._check()

    def _take(self, arguments: Sequence[Any]) -> None:
        """Copy arguments that are not all vectors of floats, or raise an error."""
        for view, place, argument in zip(self.inputs, self._places, arguments, strict=True):
            array = as_floats(argument, place)
            if array.shape == view.shape:
                view[...] = array
            elif (*array.shape, 1) == view.shape or (array.shape == () and view.size == 1):
                view[:, 0] = array
            else:
                raise shape_error(place, view.shape, array.shape)

    def _check(self) -> None:
        """Raise an error for invalid arguments and for failed evaluations."""
        for view, place in zip(self.inputs, self._places, strict=True):
            if not np.isfinite(view).all():
                raise nonfinite_error(place, view)
        for place, view in zip(self._places, self._parts_in, strict=True):
            if "q" in self._names and np.abs(view).max(initial=0.0) > LARGEST:
                raise oversized_error(place, view)
        for name, place, view in zip(self._names, self._places, self._parts_in, strict=True):
            error = attitude_error(place, name, view, self._quaternions.get(name, {}))
            if error is not None:
                raise error
        if "q" in self._names and self._unsound is not None and self._unsound():
            place, view = max(
                zip(self._places, self._parts_in, strict=True),
                key=lambda entry: np.abs(entry[1]).max(initial=0.0),
            )
            raise oversized_error(place, view)
        if self._failed:
            raise ConcurError(
                self.where,
                expected="a successful evaluation",
                came=f"a failure inside `{self.function.name()}`",
                cure="Check the arguments: results of a failed evaluation are not returned.",
            )

    @property
    def succeeded(self) -> bool:
        """Whether the last `trigger` completed; if not, the outputs are old."""
        return not self._failed

    def _guarded(self, buffer: Any, trigger: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                trigger()
                self._failed = buffer.ret() != 0
            except RuntimeError:
                self._failed = True

        return run

    def __reduce__(self) -> Any:
        parts = self.function, self.shapes, self.where, self._quaternions
        return _rebuilt, (*parts, self.compiled)


def _rebuilt(
    function: ca.Function,
    shapes: Sequence[tuple[int, ...]],
    where: str,
    quaternions: Mapping[str, Mapping[Place, str]],
    compile_too: bool,
) -> Evaluator:
    evaluator = Evaluator(function, shapes, where, quaternions)
    if compile_too:
        evaluator.compile()
    return evaluator


def dense(function: ca.Function, without: str = "") -> ca.Function:
    """The function with dense arguments and results, without a result of some name."""
    names_in, names_out = function.name_in(), function.name_out()
    kept = [i for i, name in enumerate(names_out) if name != without]
    sparsities = [function.sparsity_in(i) for i in range(function.n_in())]
    sparsities += [function.sparsity_out(i) for i in kept]
    if len(kept) == len(names_out) and all(sparsity.is_dense() for sparsity in sparsities):
        return function
    kind = ca.SX if function.is_a("SXFunction") else ca.MX
    symbols = [kind.sym(name, *function.size_in(i)) for i, name in enumerate(names_in)]
    results = function.call(symbols)
    own = [names_out[i] for i in kept]
    dense_results = [ca.densify(results[i]) for i in kept]
    return ca.Function(function.name(), symbols, dense_results, names_in, own)


def _views(
    sizes: Sequence[tuple[int, int]],
) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
    """Matrices side by side in one memory, and each as a vector."""
    flat = np.zeros(max(1, sum(rows * columns for rows, columns in sizes)))
    views, parts, start = [], [], 0
    for rows, columns in sizes:
        part = flat[start : start + rows * columns]
        parts.append(part)
        views.append(part.reshape((rows, columns), order="F"))
        start += rows * columns
    return tuple(views), parts
