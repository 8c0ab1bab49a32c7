"""References for the group functions, and their arguments: nothing here calls them."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

often = settings(deadline=None, max_examples=60)

SLANTED = np.array([2.0, -3.0, 6.0]) / 7.0

ROTATION_VECTORS = {
    "zero": np.zeros(3),
    "underflow": np.array([1e-170, 0.0, 0.0]),
    "tiny": 1e-9 * SLANTED,
    "small": 1e-3 * SLANTED,
    "half": 0.5 * SLANTED,
    "below the seam": (2.0 - 1e-12) * SLANTED,
    "seam": np.array([2.0, 0.0, 0.0]),
    "above the seam": (2.0 + 1e-12) * SLANTED,
    "near a half turn": (np.pi - 1e-2) * SLANTED,
    "nearer a half turn": (np.pi - 1e-6) * SLANTED,
    "nearest a half turn": (np.pi - 1e-10) * SLANTED,
    "half turn about x": np.array([np.pi, 0.0, 0.0]),
    "half turn": np.pi * SLANTED,
    "half turn in the plane": np.array([0.6 * np.pi, 0.0, -0.8 * np.pi]),
}
"""Rotation vectors up to the angle pi."""

LONG_ROTATION_VECTORS = {
    "near a turn": np.array([0.0, 0.0, 6.2]),
    "turn": 2 * np.pi * SLANTED,
    "beyond a turn": 12.0 * SLANTED,
}

TWISTS = {
    **{name: np.array([1.0, 2.0, 3.0, *w]) for name, w in ROTATION_VECTORS.items()},
    "identity": np.zeros(6),
    "pure rotation": np.array([0.0, 0.0, 0.0, 0.4, -0.5, 0.6]),
    "translation across the axis": np.array([2.0, 2.0, -1.0, 0.5, -0.25, 0.5]),
    "translation along the axis": np.array([2.0, -1.0, 2.0, 0.8, -0.4, 0.8]),
    "general": np.array([0.4, -0.3, 0.2, 0.5, -0.7, 0.9]),
}
"""Twists [v; w] with an angle up to pi."""

LONG_TWISTS = {name: np.array([1.0, 2.0, 3.0, *w]) for name, w in LONG_ROTATION_VECTORS.items()}

PLANAR_TWISTS = {
    "identity": np.zeros(3),
    "translation": np.array([1.0, 2.0, 0.0]),
    "underflow": np.array([1.0, 2.0, 1e-170]),
    "tiny": np.array([1.0, 2.0, 1e-9]),
    "small": np.array([1.0, 2.0, -1e-5]),
    "rotation": np.array([0.0, 0.0, 1.1]),
    "below the seam": np.array([1.0, 2.0, 2.0 - 1e-12]),
    "seam": np.array([1.0, 2.0, 2.0]),
    "above the seam": np.array([1.0, 2.0, -2.0 - 1e-12]),
    "near a half turn": np.array([1.0, 2.0, np.pi - 1e-2]),
    "nearest a half turn": np.array([1.0, 2.0, 1e-10 - np.pi]),
    "half turn": np.array([1.0, 2.0, np.pi]),
}
"""Planar twists (vx, vy, w) with an angle up to pi."""

LONG_PLANAR_TWISTS = {
    "near a turn": np.array([1.0, 2.0, 5.9]),
    "turn": np.array([1.0, 2.0, 2 * np.pi]),
    "beyond a turn": np.array([1.0, 2.0, -12.0]),
}

QUATERNIONS = {
    "identity": np.array([0.0, 0.0, 0.0, 1.0]),
    "minus identity": np.array([0.0, 0.0, 0.0, -1.0]),
    "half turn about x": np.array([1.0, 0.0, 0.0, 0.0]),
    "half turn": np.array([0.6, 0.0, 0.8, 0.0]),
    "tiny": np.array([1e-9, 0.0, 0.0, 1.0]),
    "about x": np.array([0.6, 0.0, 0.0, 0.8]),
    "negative": np.array([0.0, 0.6, 0.0, -0.8]),
    "small": np.array([0.1, 0.2, 0.1, 0.97]) / np.linalg.norm([0.1, 0.2, 0.1, 0.97]),
}


def cross_matrix(w: np.ndarray) -> np.ndarray:
    x, y, z = w
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def twist_matrix(twist: np.ndarray) -> np.ndarray:
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = cross_matrix(twist[3:])
    matrix[:3, 3] = twist[:3]
    return matrix


def twist_of(matrix: np.ndarray) -> np.ndarray:
    """Coordinates of a matrix of se(3)."""
    return np.array([*matrix[:3, 3], matrix[2, 1], matrix[0, 2], matrix[1, 0]])


UNIT_TWISTS = np.array([twist_matrix(e) for e in np.eye(6)])
"""Matrices (6, 4, 4) of se(3)."""


def bracket(twist: np.ndarray) -> np.ndarray:
    """ad from the commutator of 4x4 matrices."""
    a = twist_matrix(twist)
    return np.column_stack([twist_of(matrix) for matrix in a @ UNIT_TWISTS - UNIT_TWISTS @ a])


def conjugation(pose: np.ndarray) -> np.ndarray:
    """Ad from the conjugation of 4x4 matrices."""
    moved = pose @ UNIT_TWISTS @ np.linalg.inv(pose)
    return np.column_stack([twist_of(matrix) for matrix in moved])


def pose_of(twist: np.ndarray) -> np.ndarray:
    """exp, with the rotation by SciPy so that half turns are as exact as they can be."""
    matrix = expm(twist_matrix(twist))
    matrix[:3, :3] = Rotation.from_rotvec(twist[3:]).as_matrix()
    return matrix


def integral(operator: np.ndarray) -> np.ndarray:
    """int_0^1 exp(s operator) ds, the upper right block of one larger exponential."""
    n = len(operator)
    return expm(np.block([[operator, np.eye(n)], [np.zeros((n, 2 * n))]]))[:n, n:]


def planar(twist: np.ndarray) -> np.ndarray:
    """A planar twist (vx, vy, w) as a twist of SE(3)."""
    vx, vy, w = twist
    return np.array([vx, vy, 0.0, 0.0, 0.0, w])


PLANE = [0, 1, 5]
"""Places of a planar twist in a twist of SE(3)."""


def differences(function, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of fourth order, one column (last axis) per coordinate."""

    def slope(e: np.ndarray) -> np.ndarray:
        one = function(at + e) - function(at - e)
        two = function(at + 2 * e) - function(at - 2 * e)
        return (8 * one - two) / (12 * step)

    return np.stack([slope(step * e) for e in np.eye(len(at))], axis=-1)


def near(actual, expected, tolerance: float = 1e-12) -> None:
    """Compare to a tolerance that is relative for large numbers and absolute for small ones."""
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=tolerance * (1 + np.max(np.abs(expected)))
    )
