"""Gains as a user writes them, read into positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.errors import OutputError, ShapeError
from concur.outputs._output import Output
from concur.robot import scalar


def read_gain(
    where: str, value: Any, outputs: Sequence[Output], definite: bool = True
) -> np.ndarray:
    """Read a gain as a symmetric positive definite matrix (size, size), a read-only copy.

    A number; one entry per output, each a number or one number per coordinate; or a matrix. Unless
    `definite`, it may be singular, as an integral is for outputs without one.
    """
    matrix = _matrix(where, value, outputs)
    if not np.isfinite(matrix).all():
        raise nonfinite_error(where, matrix)
    symmetric = np.abs(matrix - matrix.T).max() <= 1e-12 * np.abs(matrix).max()
    lowest = float(np.linalg.eigvalsh(matrix)[0]) if symmetric else float("nan")
    if not (lowest > 0.0 if definite else lowest >= -1e-12 * np.abs(matrix).max()):
        raise OutputError(
            where,
            expected=f"a symmetric positive {'' if definite else 'semi'}definite gain",
            came=f"smallest eigenvalue {lowest:.6g}" if symmetric else "an unsymmetric matrix",
            cure="The error dynamics would not be stable: give gains above zero.",
        )
    # Rounding that is left, as in R D R^T, would be an unsymmetric gain to an exact check.
    matrix = np.asarray((matrix + matrix.T) / 2)
    matrix.setflags(write=False)
    return matrix


def _matrix(where: str, value: Any, outputs: Sequence[Output]) -> np.ndarray:
    size = sum(output.dim for output in outputs)
    if isinstance(value, str) or value is None:
        raise ShapeError(
            where,
            expected="a number, one entry per output, or a matrix",
            came=repr(value),
            cure="Write for example 4.0 or [4.0, 9.0].",
        )
    if not np.iterable(value):
        return scalar(value, where) * np.eye(size)
    entries = list(value)
    nested = [np.iterable(entry) and len(list(entry)) == size for entry in entries]
    if len(entries) == size and all(nested):
        matrix = as_floats(value, where)
        if matrix.shape != (size, size):
            raise shape_error(where, (size, size), matrix.shape)
        return np.array(matrix)
    if len(entries) != len(outputs):
        raise ShapeError(
            where,
            expected=f"{len(outputs)} entries, one per output, or a matrix ({size}, {size})",
            came=f"{len(entries)} entries",
            cure="Write one gain for each of " + ", ".join(o.name for o in outputs) + ".",
        )
    blocks = []
    for output, entry in zip(outputs, entries, strict=True):
        numbers = as_floats(entry, f"{where}, output `{output.name}`")
        if numbers.shape not in ((), (output.dim,)):
            raise shape_error(f"{where}, output `{output.name}`", (output.dim,), numbers.shape)
        blocks.append(np.broadcast_to(numbers, (output.dim,)))
    return np.diag(np.concatenate(blocks))
