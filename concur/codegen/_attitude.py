"""Validation of unit quaternions in arguments, the same for all graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ShapeError

DRIFT = 1e-3
"""Largest deviation of a quaternion's norm from 1; quaternions beyond it are rejected."""


def normalised(vector: Any, starts: Iterable[int]) -> tuple[Any, Any]:
    """Normalise the quaternions in a vector, inside the graph.

    Parameters
    ----------
    vector : casadi.SX or casadi.MX
        Coordinates, shape (n,).
    starts : iterable of int
        Indices at which quaternions start.

    Returns
    -------
    vector : casadi.SX or casadi.MX
        The vector with normalised quaternions, shape (n,).
    valid : casadi.SX or casadi.MX
        1 if every norm is within `DRIFT` of 1, else 0, also for NaN.
    """
    parts, valid, end = [], type(vector)(1), 0
    for start in starts:
        quaternion = vector[start : start + 4]
        excess = ca.sumsqr(quaternion) - 1.0
        valid = ca.logic_and(valid, ca.fabs(excess - DRIFT**2) <= 2.0 * DRIFT)
        parts += [vector[end:start, :], quaternion * _inverse_root(excess)]
        end = start + 4
    return ca.vertcat(*parts, vector[end:, :]), valid


def _inverse_root(excess: Any) -> Any:
    """1 / sqrt(1 + excess) by its series, exact to the last bit within `DRIFT`; faster than a root.

    The series ends with the fifth power; the sixth is below 2e-17.
    """
    square = excess * excess
    high = 35.0 / 128.0 - 63.0 / 256.0 * excess
    return (1.0 - 0.5 * excess) + square * ((0.375 - 0.3125 * excess) + square * high)


def attitude_error(
    where: str, name: str, values: np.ndarray, starts: Mapping[int, str]
) -> ShapeError | None:
    """Build the error for the first invalid quaternion.

    Parameters
    ----------
    where, name : str
        Place named in the error, and name of the array.
    values : numpy.ndarray
        The argument, finite.
    starts : mapping of int to str
        Start index of each quaternion, and the name of its owner.

    Returns
    -------
    ShapeError or None
        The error to raise; None if all norms are within `DRIFT` of 1.
    """
    for start, whose in starts.items():
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(values[start : start + 4]))
        if not abs(norm - 1.0) <= DRIFT:
            return ShapeError(
                f"{where}, quaternion of `{whose}` at {name}[{start}:{start + 4}]",
                expected=f"unit norm within {DRIFT:g}",
                came=f"norm {norm:.6g}",
                cure="Normalise it, in the order (x, y, z, w), and check the measurement.",
            )
    return None
