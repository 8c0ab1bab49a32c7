"""The matrix inequality that proves a decay rate.

For V = z^T P z / 2 with constant P, z = (x, ve), the claim is

    A(x) = -(sym(P F(x)) + alpha P) + sym([L (1 - B(x)) + M (1 - T(x)), 0]) >= 0,
    F(x) = [[0, -B(x)], [I^-1 B(x)^T KP, -I^-1 KD]],

and P > 0. T is B^T on the rotations of SO(3) and SE(3) and one elsewhere; sym is half the sum with
the transpose. L and M are arbitrary constant matrices: B(x) x = x, and B^T phi = phi on SO(3), so
their terms vanish on z, and A >= 0 gives Vdot <= -2 alpha V for every choice. With L = M = 0 the
terms are absent.

A is affine in the entries of B. Its coefficients are collected exactly, entry by entry, because
an entry occurs in several places and its terms may cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.certify._channels import Channel
from concur.outputs.groups import Direction, Pose, Rotation


@dataclass(frozen=True, eq=False)
class Claim:
    """Claim about a channel: a decay rate, with the matrices that prove it.

    Parameters
    ----------
    P : numpy.ndarray
        Symmetric matrix of V = z^T P z / 2, shape (2 n, 2 n), in the channel's units.
    alpha : float
        Rate, 1/s.
    L, M : numpy.ndarray
        Multipliers of 1 - B and of 1 - T, shape (2 n, n).
    """

    P: np.ndarray
    alpha: float
    L: np.ndarray
    M: np.ndarray


def inequality(
    gains: tuple[Any, Any, Any], turned: np.ndarray, B: Any, claim: Claim, alpha: Any
) -> np.ndarray:
    """Return A, (2 n, 2 n), in the arithmetic of its arguments: floats, fractions or balls.

    `gains` are KP, I^-1 and I^-1 KD; `turned` is 1 for the components of x where T is B^T and 0
    elsewhere; `alpha` replaces that of the claim. P, L and M of several claims may be stacked.
    """
    n = len(turned)
    stiffness, scale, damping = gains
    one = np.eye(n, dtype=int)
    P1, P2 = claim.P[..., :n], claim.P[..., n:]
    left = P2 @ scale @ (B.T @ stiffness)
    right = -(P1 @ B) - P2 @ damping
    both = np.outer(turned, turned)
    left = left - claim.L @ (one - B) - claim.M @ ((one - B.T) * both)
    total = np.concatenate([left, right], axis=-1)
    return np.asarray(-(total + total.swapaxes(-1, -2)) / 2 - alpha * claim.P)


def turned_components(channel: Channel) -> np.ndarray:
    """1 for the components of x where T is B^T, the rotations of SO(3) and SE(3), else 0."""
    turned, start = np.zeros(channel.size, dtype=int), 0
    for f in channel.factors:
        if type(f) in (Rotation, Pose, Direction):
            turned[start + f.dim - min(f.dim, 3) : start + f.dim] = 1
        start += f.dim
    return turned


def isotropic_multipliers(channel: Channel, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return L and M that make A tight for an isotropic channel; zeros for other channels.

    They replace B^T phi by phi where phi meets phi or w, and phi^T C^T rho by rho^T (1 - B) rho,
    with the block C of B that maps w to rho.
    """
    n = channel.size
    L, M = np.zeros((2, 2 * n, n))
    if channel.scalar or channel.kind == "SE3 isotropic":
        w = n - min(n, 3)  # where the rotation starts
        inertia = channel.inertia[w, w]
        turn, one = channel.stiffness[w, w] / inertia, np.eye(n - w)
        a, b, c = P[w, w], P[n + w, n + w], -P[w, n + w]
        M[w:n, w:] = c * turn * one
        M[n + w :, w:] = (a - b * turn) * one
        L[:w, :w] = c * channel.stiffness[0, 0] / inertia * np.eye(w)
    return L, M
