"""Gain sets of the reference table, random gains, and B written down a second time."""

import numpy as np
from scipy.linalg import expm
from scipy.special import bernoulli, factorial

from concur.certify._channels import split
from concur.control import ErrorDynamics
from concur.outputs.groups import Pose, Rotation

SETS = {"A": (4.0, 5.0, 4.0, 5.0), "B": (4.0, 2.8, 4.0, 2.8), "C": (1.0, 2.5, 9.0, 7.5)}
"""Stiffness and damping of position, then of rotation, over unit inertia."""

TRUE_RATES = {"A": 1.0, "B": 1.4, "C": 0.5}

_ORDERS = np.arange(2, 80, 2)
_COEFFICIENTS = np.abs(bernoulli(int(_ORDERS[-1]))[_ORDERS]) / factorial(_ORDERS)


def channel(group, stiffness, damping, inertia=None):
    """The one channel of a group with the given gain matrices."""
    inertia = np.eye(group.dim) if inertia is None else inertia
    (found,) = split(ErrorDynamics(group, stiffness, damping, inertia))
    return found


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


def skews(w):
    """Cross product matrices (k, 3, 3) of vectors (k, 3)."""
    zero = np.zeros(len(w))
    x, y, z = w.T
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)


def brackets(x):
    """ad of errors (k, n): (k, n, n) for SO(3) and SE(3)."""
    if x.shape[1] == 3:
        return skews(x)
    turn, shift = skews(x[:, 3:]), skews(x[:, :3])
    return np.block([[turn, shift], [np.zeros_like(turn), turn]])


def error_maps(x):
    """B of errors (k, n) below 2 pi by the series of ad / (exp(ad) - 1), (k, n, n)."""
    ad = brackets(x)
    square = ad @ ad
    signs = (-1.0) ** np.arange(len(_ORDERS))
    rest = np.zeros_like(ad)
    for sign, coefficient in zip(signs[::-1], _COEFFICIENTS[::-1], strict=True):
        rest = square @ (sign * coefficient * np.eye(x.shape[1]) + rest)
    return np.eye(x.shape[1]) - ad / 2 + rest


def error_map_by_integral(x):
    """B of one error (n,) as the inverse of the integral of exp(s ad) over s in [0, 1]."""
    (ad,) = brackets(x[None])
    size = len(x)
    block = np.block([[ad, np.eye(size)], [np.zeros((size, 2 * size))]])
    return np.linalg.inv(expm(block)[:size, size:])


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
