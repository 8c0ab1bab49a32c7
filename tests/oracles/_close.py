"""Comparison relative to the size of the whole array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def assert_close(
    actual: object, expected: object, relative: float, floor: float = 1.0, name: str = ""
) -> None:
    """Fail unless two arrays agree relative to the largest entry, saying by how much they differ.

    Parameters
    ----------
    actual, expected : array_like
        The arrays.
    relative : float
        Allowed difference over the largest expected entry.
    floor : float
        Smallest size that is divided by: what counts as one unit of the quantity.
    name : str
        Shown when it fails.
    """
    expected = np.asarray(expected, dtype=float)
    scale = max(floor, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=relative * scale, err_msg=name)


def difference_quotient(
    function: Callable[[float], np.ndarray | float], step: float = 1e-3
) -> np.ndarray:
    """Derivative at zero of a smooth function of one number, to fourth order in the step."""

    def values(h: float) -> np.ndarray:
        return (np.asarray(function(h)) - np.asarray(function(-h))) / (2 * h)

    return (4 * values(step / 2) - values(step)) / 3
