"""Gain sets of the reference table, and random gains."""

import numpy as np

from concur.outputs.groups import Pose, Rotation
from tests.certify import _motions
from tests.certify._channel import channel

SETS = {"A": (4.0, 5.0, 4.0, 5.0), "B": (4.0, 2.8, 4.0, 2.8), "C": (1.0, 2.5, 9.0, 7.5)}
"""Stiffness and damping of position, then of rotation, over unit inertia."""

TRUE_RATES = {"A": 1.0, "B": 1.4, "C": 0.5}


def rotation(name):
    _, _, stiffness, damping = SETS[name]
    return channel(Rotation(), stiffness * np.eye(3), damping * np.eye(3))


def pose(name):
    kpv, kdv, kpw, kdw = SETS[name]
    return channel(Pose(), np.diag([kpv] * 3 + [kpw] * 3), np.diag([kdv] * 3 + [kdw] * 3))


def positive(rng, size, low=0.3, high=3.0):
    """A random symmetric matrix with eigenvalues in a range."""
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix = turn @ np.diag(rng.uniform(low, high, size)) @ turn.T
    return (matrix + matrix.T) / 2


def error_maps(x):
    """B of rotations or of poses, the rows of x."""
    return _motions.error_maps([Rotation() if x.shape[1] == 3 else Pose()], x)


def ball(rng, stiffness, radius, count, edge=0.0):
    """Random x (count, n) with |x|_KP below a radius; a share of them on the edge."""
    size = len(stiffness)
    y = rng.normal(size=(count, size))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    length = np.where(rng.uniform(size=count) < edge, 1.0, rng.uniform(size=count) ** (1 / size))
    return radius * length[:, None] * y @ np.linalg.inv(np.linalg.cholesky(stiffness))


def quadratic(matrix, x):
    """x matrix x of vectors (k, n)."""
    return np.einsum("ki,ij,kj->k", x, matrix, x)
