"""Arguments as numbers and as expressions: conversion, normalised quaternions, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from concur.errors import NonFiniteError, ShapeError

FINITE = 1e300
"""Largest number that counts as finite: a comparison with NaN is false, while CasADi folds
`x == x` to true."""

LARGEST = 1e18
"""Largest magnitude that a tick, and a method with a configuration, accept, in SI units."""

DRIFT = 1e-3
"""Largest deviation of a quaternion's norm from 1; quaternions beyond it are rejected."""


Place: TypeAlias = int | tuple[int, int]
"""Index at which a unit quaternion starts; or start and end of another unit vector."""


def unit_span(place: Place) -> slice:
    """Indices of a unit quaternion, or of another unit vector.

    Parameters
    ----------
    place : int or tuple of int
        Where it starts, or its start and end.

    Returns
    -------
    slice
        The indices.
    """
    return slice(place, place + 4) if isinstance(place, int) else slice(*place)


def normalised(vector: Any, starts: Iterable[Place]) -> tuple[Any, Any]:
    """Normalise the quaternions and other unit vectors in a vector, inside the graph.

    Parameters
    ----------
    vector : casadi.SX or casadi.MX
        Coordinates, shape (n,).
    starts : iterable of int
        Indices at which quaternions start; pairs of start and end for other unit vectors.

    Returns
    -------
    vector : casadi.SX or casadi.MX
        The vector with normalised quaternions, shape (n,).
    valid : casadi.SX or casadi.MX
        1 if every norm is within `DRIFT` of 1, else 0, also for NaN.
    """
    parts, valid, end = [], type(vector)(1), 0
    for span in map(unit_span, starts):
        excess = ca.sumsqr(vector[span]) - 1.0
        valid = ca.logic_and(valid, ca.fabs(excess - DRIFT**2) <= 2.0 * DRIFT)
        parts += [vector[end : span.start, :], vector[span] * _inverse_root(excess)]
        end = span.stop
    return ca.vertcat(*parts, vector[end:, :]), valid


def _inverse_root(excess: Any) -> Any:
    """1 / sqrt(1 + excess) by its series, exact to the last bit within `DRIFT`; faster than a root.

    The series ends with the fifth power; the sixth is below 2e-17.
    """
    square = excess * excess
    high = 35.0 / 128.0 - 63.0 / 256.0 * excess
    return (1.0 - 0.5 * excess) + square * ((0.375 - 0.3125 * excess) + square * high)


def attitude_error(
    where: str, name: str, values: np.ndarray, starts: Mapping[Place, str]
) -> ShapeError | None:
    """Build the error for the first invalid quaternion or other unit vector.

    Parameters
    ----------
    where, name : str
        Place named in the error, and name of the array.
    values : numpy.ndarray
        The argument, finite.
    starts : mapping of int to str
        Start index of each quaternion, or start and end of another unit vector, and the name of its
        owner.

    Returns
    -------
    ShapeError or None
        The error to raise; None if all norms are within `DRIFT` of 1.
    """
    for place, whose in starts.items():
        span, turns = unit_span(place), isinstance(place, int)
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(values[span]))
        if not abs(norm - 1.0) <= DRIFT:
            kind, order = ("quaternion", "x, y, z, w") if turns else ("direction", "x, y, z")
            return ShapeError(
                f"{where}, {kind} of `{whose}` at {name}[{span.start}:{span.stop}]",
                expected=f"unit norm within {DRIFT:g}",
                came=f"norm {norm:.6g}",
                cure=f"Normalise it, in the order ({order}), and check the measurement.",
            )
    return None


def as_floats(value: Any, where: str) -> np.ndarray:
    """Convert to an array of floats, or raise an error.

    Parameters
    ----------
    value : array_like
        Argument of the user.
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


def finite_floats(value: Any, where: str, *shapes: tuple[int, ...]) -> np.ndarray:
    """Convert to finite floats of one of the given shapes, or raise an error.

    Parameters
    ----------
    value : array_like
        Argument of the user.
    where : str
        Place named in the error.
    *shapes : tuple of int
        Allowed shapes, default any; an error names the last one.

    Returns
    -------
    numpy.ndarray
        The numbers as ``float64``.

    Raises
    ------
    ShapeError
        If the value is ragged or not numeric, or has another shape.
    NonFiniteError
        If there is a NaN or an infinity.
    """
    array = as_floats(value, where)
    if shapes and array.shape not in shapes:
        raise shape_error(where, shapes[-1], array.shape)
    if not np.isfinite(array).all():
        raise nonfinite_error(where, array)
    return array


def shape_error(where: str, expected: tuple[int, ...], came: tuple[int, ...]) -> ShapeError:
    """Build the error for a wrong shape; column vectors are shown as ``(n,)``.

    Parameters
    ----------
    where : str
        Place of the error.
    expected, came : tuple of int
        The two shapes.

    Returns
    -------
    ShapeError
        The error to raise.
    """
    displayed = expected[:1] if len(expected) == 2 and expected[1] == 1 else expected
    return ShapeError(
        where,
        expected=f"shape {tuple(displayed)}",
        came=f"shape {tuple(came)}",
        cure="Check the order of the arguments and the number of coordinates.",
    )


def nonfinite_error(where: str, values: np.ndarray) -> NonFiniteError:
    """Build the error for NaN or infinite numbers, with their indices.

    Parameters
    ----------
    where : str
        Place of the error.
    values : numpy.ndarray
        The array that contains them.

    Returns
    -------
    NonFiniteError
        The error to raise.
    """
    flat = np.asarray(values).reshape(-1, order="F")
    bad = np.flatnonzero(~np.isfinite(flat))
    shown = ", ".join(f"[{i}] = {flat[i]}" for i in bad[:6])
    if np.ndim(values) == 0:
        shown = str(flat[0])
    return NonFiniteError(
        where,
        expected="finite numbers",
        came=shown,
        cure="Check for a lost measurement or a diverged state; nothing was computed.",
        entries=tuple(int(i) for i in bad),
    )


def oversized_error(where: str, values: np.ndarray) -> NonFiniteError:
    """Build the error for numbers too large to compute with, with the index of the largest.

    Parameters
    ----------
    where : str
        Place of the error.
    values : numpy.ndarray
        The array that contains it, shape (n,).

    Returns
    -------
    NonFiniteError
        The error to raise.
    """
    worst = int(np.abs(values).argmax())
    return NonFiniteError(
        where,
        expected=f"numbers up to {LARGEST:g}",
        came=f"[{worst}] = {values[worst]:g}",
        cure="Check for a lost measurement or a diverged state; nothing was computed.",
        entries=(worst,),
    )


def constant(values: object) -> Any:
    """Convert numbers to an expression with structural zeros.

    Parameters
    ----------
    values : array_like or casadi.SX
        A vector or matrix; an expression is returned as it is.

    Returns
    -------
    casadi.SX
        The same numbers.
    """
    if isinstance(values, ca.SX):
        return values
    numbers = np.asarray(values, dtype=float)
    return _kept(numbers.shape, numbers.tobytes())[:, :]


def symbols_of(function: ca.Function) -> list[Any]:
    """Make symbols for the inputs of a function: over SX where it is, else over MX.

    Parameters
    ----------
    function : casadi.Function
        The function.

    Returns
    -------
    list of casadi.SX or casadi.MX
        One for each input, of its sparsity.
    """
    return list(function.sx_in() if function.is_a("SXFunction") else function.mx_in())


def part(vector: Any, which: slice | Sequence[int]) -> Any:
    """Take entries of a vector, as a vector.

    Of a column of one entry, CasADi's ``x[0:0]`` and ``x[[]]`` are rows of shape (1, 0), which
    another function takes as something else than nothing.

    Parameters
    ----------
    vector : numpy.ndarray, casadi.SX or casadi.MX
        Shape (n,).
    which : slice or sequence of int
        The entries.

    Returns
    -------
    numpy.ndarray, casadi.SX or casadi.MX
        The entries, shape (k,).
    """
    return vector[which] if isinstance(vector, np.ndarray) else vector[which, :]


@lru_cache(maxsize=4096)
def _kept(shape: tuple[int, ...], data: bytes) -> ca.SX:
    """Cached conversion, as sweeps repeat the same numbers; a copy takes a fifth of the time."""
    return ca.SX(ca.sparsify(ca.DM(np.frombuffer(data).reshape(shape))))


def zero_unless_finite(values: Any) -> Any:
    """Replace NaN and infinities by zero.

    Parameters
    ----------
    values : numpy.ndarray or casadi.SX
        Numbers of any shape.

    Returns
    -------
    numpy.ndarray or casadi.SX
        The finite numbers.
    """
    return ca.if_else(ca.fabs(values) <= FINITE, values, 0)
