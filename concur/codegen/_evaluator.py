"""The one door from expressions to numbers.

A CasADi function called in the plain way allocates and converts for each argument. An
`Evaluator` owns one flat input and one output buffer, registers them once and afterwards
only copies numbers in, triggers, and copies numbers out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ConcurError, NonFiniteError, ShapeError


class Evaluator:
    """A CasADi function called through preallocated buffers.

    Calls are safe from several threads, which then wait for each other; the buffers
    themselves are not.

    Parameters
    ----------
    function : casadi.Function
        The function; sparse results are made dense.
    shapes : sequence of tuple of int
        Shape of each NumPy result: ``()`` for a float, ``(n,)`` or ``(m, n)``.
    where : str
        Name used in error messages.

    Attributes
    ----------
    function : casadi.Function
        The function with dense inputs and results.
    inputs, outputs : tuple of numpy.ndarray
        Views of the buffers, in column-major order, for use without copies: fill the
        inputs, call `trigger`, read the outputs.
    """

    def __init__(
        self, function: ca.Function, shapes: Sequence[tuple[int, ...]], where: str
    ) -> None:
        self.where = where
        self._lock = Lock()
        self.shapes = tuple(shapes)
        self.function = _dense(function)
        self._places = tuple(f"{where}, argument `{name}`" for name in self.function.name_in())
        sizes_in = [self.function.size_in(i) for i in range(self.function.n_in())]
        sizes_out = [self.function.size_out(i) for i in range(self.function.n_out())]
        self._flat_in, self.inputs, parts_in = _views(sizes_in)
        self._flat_out, self.outputs, parts_out = _views(sizes_out)
        self._buffer, self.trigger = self.function.buffer()
        self._failed = False
        if not self.function.is_a("SXFunction"):
            # Only a function with a solver inside can fail, and then leaves old results behind.
            self.trigger = self._guarded(self.trigger)
        for index, part in enumerate(parts_in):
            self._buffer.set_arg(index, memoryview(part.data))
        for index, part in enumerate(parts_out):
            self._buffer.set_res(index, memoryview(part.data))

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
            If an argument has another shape than the function's input.
        NonFiniteError
            If an argument holds a NaN or an infinity.
        ConcurError
            If the function fails.
        """
        with self._lock:
            for view, argument, place in zip(self.inputs, arguments, self._places, strict=True):
                array = as_floats(argument, place)
                if array.shape == view.shape:
                    view[...] = array
                elif (*array.shape, 1) == view.shape or (array.shape == () and view.size == 1):
                    view[:, 0] = array
                else:
                    raise shape_error(place, view.shape, array.shape)
            if not np.isfinite(self._flat_in).all():
                self._refuse_nonfinite()
            self.trigger()
            if not self.succeeded:
                raise ConcurError(
                    self.where,
                    expected="an evaluation that succeeds",
                    came=f"a failure inside `{self.function.name()}`",
                    cure="Its results are not given out; check that the arguments are sensible.",
                )
            results = tuple(
                float(view[0, 0]) if shape == () else view.reshape(shape, order="F").copy()
                for view, shape in zip(self.outputs, self.shapes, strict=True)
            )
        return results if len(results) != 1 else results[0]

    @property
    def succeeded(self) -> bool:
        """Whether the last `trigger` ran to its end; if not, the outputs are old ones."""
        return not self._failed

    def _guarded(self, trigger: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                trigger()
                self._failed = self._buffer.ret() != 0
            except RuntimeError:
                self._failed = True

        return run

    def _refuse_nonfinite(self) -> None:
        for view, place in zip(self.inputs, self._places, strict=True):
            if not np.isfinite(view).all():
                raise nonfinite_error(place, view)

    def __reduce__(self) -> Any:
        return Evaluator, (self.function, self.shapes, self.where)


def as_floats(value: Any, where: str) -> np.ndarray:
    """Convert to an array of floats or say what is wrong.

    Parameters
    ----------
    value : array_like
        What a user passed.
    where : str
        Place named in the error.

    Returns
    -------
    numpy.ndarray
        The numbers as ``float64``.

    Raises
    ------
    ShapeError
        If the value is ragged or not numeric.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return np.asarray(array, dtype=float)
        raise TypeError
    except (TypeError, ValueError, NotImplementedError, RuntimeError):
        raise ShapeError(
            where,
            expected="an array of numbers",
            came=f"{type(value).__name__} {value!r:.80}",
            cure="Pass a NumPy array, a list of floats or a CasADi SX expression.",
        ) from None


def shape_error(where: str, expected: tuple[int, ...], came: tuple[int, ...]) -> ShapeError:
    """Build the error for a wrong shape; column vectors are shown as ``(n,)``.

    Parameters
    ----------
    where : str
        Place of the fault.
    expected, came : tuple of int
        The two shapes.

    Returns
    -------
    ShapeError
        The error, to be raised.
    """
    wanted = expected[:1] if len(expected) == 2 and expected[1] == 1 else expected
    return ShapeError(
        where,
        expected=f"shape {tuple(wanted)}",
        came=f"shape {tuple(came)}",
        cure="Check the order of the arguments and the number of coordinates.",
    )


def nonfinite_error(where: str, values: np.ndarray) -> NonFiniteError:
    """Build the error for NaN or infinite numbers, naming the entries.

    Parameters
    ----------
    where : str
        Place of the fault.
    values : numpy.ndarray
        The array that holds them.

    Returns
    -------
    NonFiniteError
        The error, to be raised.
    """
    flat = np.asarray(values).reshape(-1, order="F")
    bad = np.flatnonzero(~np.isfinite(flat))
    shown = ", ".join(f"[{i}] = {flat[i]}" for i in bad[:6])
    return NonFiniteError(
        where,
        expected="finite numbers",
        came=shown,
        cure="Nothing was computed; look for a lost measurement or a diverged state.",
        entries=tuple(int(i) for i in bad),
    )


def _dense(function: ca.Function) -> ca.Function:
    names_in, names_out = function.name_in(), function.name_out()
    symbols = [ca.MX.sym(name, *function.size_in(i)) for i, name in enumerate(names_in)]
    sparse = any(function.sparsity_in(i).is_dense() is False for i in range(function.n_in()))
    sparse = sparse or any(
        function.sparsity_out(i).is_dense() is False for i in range(function.n_out())
    )
    if not sparse:
        return function
    if function.is_a("SXFunction"):
        symbols = [ca.SX.sym(name, *function.size_in(i)) for i, name in enumerate(names_in)]
    results = function.call(symbols)
    return ca.Function(
        function.name(), symbols, [ca.densify(r) for r in results], names_in, names_out
    )


def _views(
    sizes: Sequence[tuple[int, int]],
) -> tuple[np.ndarray, tuple[np.ndarray, ...], list[np.ndarray]]:
    flat = np.zeros(max(1, sum(rows * columns for rows, columns in sizes)))
    views, parts, start = [], [], 0
    for rows, columns in sizes:
        part = flat[start : start + rows * columns]
        parts.append(part)
        views.append(part.reshape((rows, columns), order="F"))
        start += rows * columns
    return flat, tuple(views), parts
