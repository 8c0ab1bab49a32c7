"""Unit quaternions in arguments: one rule for all graphs, and one error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ShapeError

DRIFT = 1e-3
"""Largest difference of a quaternion's norm from one that is normalised; beyond it is refused."""


def normalised(vector: Any, starts: Iterable[int]) -> tuple[Any, Any]:
    """Normalise the quaternions in a vector, inside the graph.

    Parameters
    ----------
    vector : casadi.SX or casadi.MX
        Coordinates, shape (n,).
    starts : iterable of int
        Where quaternions start.

    Returns
    -------
    vector : casadi.SX or casadi.MX
        The same with unit quaternions, shape (n,).
    valid : casadi.SX or casadi.MX
        One if each norm is within `DRIFT` of one, else zero; zero for NaN.
    """
    parts, valid, end = [], type(vector)(1), 0
    for start in starts:
        quaternion = vector[start : start + 4]
        excess = ca.sumsqr(quaternion) - 1.0
        valid = ca.logic_and(valid, ca.fabs(excess - DRIFT**2) <= 2.0 * DRIFT)
        parts += [vector[end:start], quaternion * _inverse_root(excess)]
        end = start + 4
    return ca.vertcat(*parts, vector[end:]), valid


def _inverse_root(excess: Any) -> Any:
    """1 / sqrt(1 + excess) to the last bit, for what `DRIFT` allows: shorter than a root.

    Its series up to the fifth power; the sixth is below 2e-17.
    """
    square = excess * excess
    high = 35.0 / 128.0 - 63.0 / 256.0 * excess
    return (1.0 - 0.5 * excess) + square * ((0.375 - 0.3125 * excess) + square * high)


def attitude_error(
    where: str, name: str, values: np.ndarray, starts: Mapping[int, str]
) -> ShapeError | None:
    """Build the error for the first quaternion that is not near unit norm.

    Parameters
    ----------
    where, name : str
        Place named in the error, and name of the array.
    values : numpy.ndarray
        The argument, finite.
    starts : mapping of int to str
        Where quaternions start, and what they belong to.

    Returns
    -------
    ShapeError or None
        The error, to be raised; None if all norms are within `DRIFT` of one.
    """
    for start, whose in starts.items():
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(values[start : start + 4]))
        if not abs(norm - 1.0) <= DRIFT:
            return ShapeError(
                f"{where}, quaternion of `{whose}` at {name}[{start}:{start + 4}]",
                expected=f"unit norm within {DRIFT:g}",
                came=f"norm {norm:.6g}",
                cure="Normalise it, in the order (x, y, z, w); look for a lost measurement.",
            )
    return None
