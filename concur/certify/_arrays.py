"""Matrices of balls: bounds of eigenvalues, inverses and values over boxes."""

from __future__ import annotations

from math import inf, isfinite, nextafter
from typing import Any

import numpy as np

from concur.certify._intervals import flint


def floats(balls: np.ndarray) -> np.ndarray:
    """Midpoints of an array of balls, as floats, rounded to nearest."""
    return np.array([float(b.mid()) for b in balls.ravel()]).reshape(balls.shape)


def below(ball: Any) -> float:
    """Float not above any number of a ball; minus infinity if the ball is not finite."""
    value = float(ball.lower())
    return nextafter(value, -inf) if isfinite(value) else -inf


def above(ball: Any) -> float:
    """Float not below any number of a ball; infinity if the ball is not finite."""
    return -below(-ball)


def matrix(values: np.ndarray) -> Any:
    """Matrix of balls (`arb_mat`) from balls or floats, for products."""
    module = flint()
    rows, columns = values.shape
    flat = [v if isinstance(v, module.arb) else module.arb(float(v)) for v in values.ravel()]
    return module.arb_mat(rows, columns, flat)


def array(values: Any) -> np.ndarray:
    """Matrix of balls (`arb_mat`) as an array of objects."""
    entries = np.empty(values.nrows() * values.ncols(), dtype=object)
    entries[:] = values.entries()
    return entries.reshape(values.nrows(), values.ncols())


def sizes(values: Any) -> np.ndarray:
    """Upper bounds of the absolute values of an `arb_mat`, infinite where a ball is not finite."""
    balls = array(values)
    return np.array([above(abs(b)) for b in balls.ravel()]).reshape(balls.shape)


def spread(value: Any, changes: list[Any]) -> Any:
    """Enclose value + sum_k d_k changes[k] for all |d_k| <= 1, matrices of balls."""
    swing = flint().arb(0, 1)
    for change in changes:
        value = value + change * swing
    return value


def positive_definite(whole: Any) -> bool:
    """Whether Gershgorin's discs prove all symmetric matrices in balls positive definite.

    Works for matrices near a diagonal; False proves nothing.
    """
    entries, extent = array(whole), sizes(whole)
    np.fill_diagonal(extent, 0.0)
    if not np.isfinite(extent).all():
        return False
    weights = _weights(extent)
    for i, row in enumerate(entries):
        disc = row[i]
        for j, entry in enumerate(row):
            if j != i:
                disc -= abs(entry) * (flint().arb(float(weights[j])) / float(weights[i]))
        if not disc > 0:
            return False
    return True


def inverse(whole: Any, left: np.ndarray, right: np.ndarray) -> Any | None:
    """Enclose (1 - R)^-1 with R = 1 - L A Q for all matrices A in balls; None if that may diverge.

    A^-1 = Q (1 + R + R^2 + ...) L; the terms after R are bounded in the norm in which R is about
    smallest. L and Q are floats for which L A Q is near the identity.
    """
    arb = flint().arb
    one = matrix(np.eye(len(left)))
    rest = one - matrix(left) * whole * matrix(right)
    extent = sizes(rest)
    if not np.isfinite(extent).all():
        return None
    weights = _weights(extent)
    norm = nextafter(float((extent @ weights / weights).max()) * (1 + 1e-12), inf)
    if not norm < 0.9:
        return None
    tail = arb(norm) ** 2 / (1 - arb(norm))
    ball = tail.union(-tail)
    tails = np.array([[ball * (arb(a) / b) for b in weights.tolist()] for a in weights.tolist()])
    return one + rest + matrix(tails)


def _weights(extent: np.ndarray) -> np.ndarray:
    """Positive weights p for which the largest row sum of |A_ij| p_j / p_i is about least."""
    weights = np.ones(len(extent))
    for _ in range(30):
        weights = extent @ weights + (1e-3 * extent.max() + 1e-30) * weights
        weights = np.maximum(weights / weights.max(), 1e-3)
    return weights
