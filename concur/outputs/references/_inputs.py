"""Checks of arguments of references."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.errors import ConcurError, ShapeError
from concur.outputs._sample import finite

LARGEST = 1e9
"""Size of a number in a reference, SI units: their squares stay far within double precision."""

SHORTEST = 1e-6
"""Time, s, or length, m, that counts as one: rates and curvatures are divided by it."""


def numbers(value: ArrayLike, where: str, ndim: int | None = None) -> NDArray[np.float64]:
    """Copy an array of finite numbers within `LARGEST`, of `ndim` axes, not empty."""
    place = f"reference {where}"
    try:
        array = finite(value, place)
    except ShapeError as error:
        raise ShapeError(
            place,
            expected="an array of numbers, all rows of one length",
            came=error.came,
            cure="Give lists of numbers or a NumPy array.",
        ) from None
    if array.size and np.abs(array).max() > LARGEST:
        raise ConcurError(
            place,
            expected=f"numbers within {LARGEST:g} (SI units)",
            came=f"{array.flat[np.abs(array).argmax()]:g}",
            cure="Check the unit.",
        )
    if (ndim is not None and array.ndim != ndim) or (array.ndim > 0 and array.shape[-1] == 0):
        form = {1: "a flat array", 2: "a table (rows of numbers)"}.get(ndim or 0, "some numbers")
        # An empty list of times is valid; an empty point or table is not.
        if not (where == "times" and array.ndim == 1):
            raise ShapeError(
                place,
                expected=form,
                came=f"an array of shape {array.shape}",
                cure="Check the brackets.",
            )
    return array


def number(value: ArrayLike, where: str) -> float:
    """Read one finite number."""
    array = numbers(value, where)
    if array.ndim != 0:
        raise ShapeError(
            f"reference {where}",
            expected="one number",
            came=f"an array of shape {array.shape}",
            cure="Give a single number.",
        )
    return float(array)


def positive(value: ArrayLike, where: str, unit: str) -> float:
    """Read one number not below `SHORTEST`."""
    single = number(value, where)
    if single < SHORTEST:
        raise ConcurError(
            f"reference {where}",
            expected=f"a positive number ({unit}), at least {SHORTEST:g}",
            came=f"{single:.9g}",
            cure="Check the sign and the unit.",
        )
    return single


def homogeneous(matrix: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    """Reject an array that is not a pose (4, 4)."""
    if matrix.shape != (4, 4):
        raise ShapeError(
            f"reference {where}",
            expected="a (4, 4) homogeneous matrix",
            came=f"an array of shape {matrix.shape}",
            cure="Build it with `Pose(translation, rotation).matrix`.",
        )
    rotation = matrix[:3, :3]
    proper = np.abs(rotation.T @ rotation - np.eye(3)).max() < 1e-6 and np.linalg.det(rotation) > 0
    if not proper or np.abs(matrix[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9:
        raise ShapeError(
            f"reference {where}",
            expected="a homogeneous matrix with a rotation in it",
            came=str(matrix.tolist()),
            cure="Build it with `Pose(translation, rotation).matrix`.",
        )
    return matrix
