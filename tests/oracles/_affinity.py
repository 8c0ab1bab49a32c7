"""Connections in moving frames: torsion, curvature, non-metricity and pull-back in NumPy.

After S. Natsiavas, P. Passas and K. Tzaferis (2023), source 004, with its misprints mended. Arrays:
L[k, i, j] with the direction i first among the lower indices, c[k, i, j], dg[i, j, k] = g_ij,k.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def christoffel(g: Array, dg: Array, c: Array) -> Array:
    """Generalized Christoffel affinities of a metric in a moving frame.

    004: (1)-(3), (42)-(46), (50)-(53), (84)-(93).
    """
    first = classical(dg)
    hat = np.einsum("mli,jm->ijl", c, g) + np.einsum("mlj,im->ijl", c, g)
    hat = (hat + np.einsum("mij,lm->ijl", c, g)) / 2
    return np.einsum("kl,ijl->kij", np.linalg.inv(g), first + hat)


def classical(dg: Array) -> Array:
    """C_ijl. 004: (43)."""
    return (dg.transpose(1, 2, 0) + dg.transpose(2, 1, 0) - dg) / 2


def torsion(affinities: Array, c: Array) -> Array:
    """Torsion. 004: (4)-(13), (22)-(26)."""
    return affinities - affinities.transpose(0, 2, 1) - c


def curvature(affinities: Array, c: Array, slopes: Array | None = None) -> Array:
    """R[i, j, k, l]; slopes[k, i, j, m] = L^k_ij,m, zero by default.

    000: (7.1), (7.2); 004: (4)-(13), (22)-(26), (84)-(89), (91).
    """
    twice = np.einsum("ikm,mlj->ijkl", affinities, affinities)
    found = twice - twice.transpose(0, 1, 3, 2) - np.einsum("mkl,imj->ijkl", c, affinities)
    if slopes is not None:
        bent = slopes.transpose(0, 2, 3, 1)  # L^i_lj,k at [i, j, k, l]
        found = found + bent - bent.transpose(0, 1, 3, 2)
    return found


def nonmetricity(g: Array, dg: Array, affinities: Array) -> Array:
    """D[i, j, k] = D_k g_ij. 004: (4)-(13), (22)-(26), (54)-(66)."""
    lowered = np.einsum("li,lkj->ijk", g, affinities)
    return dg - lowered - lowered.transpose(1, 0, 2)


def residual(affinities: Array, g: Array, dg: Array, c: Array, v: Array) -> Array:
    """Condition of an admissible connection; zero for all v.

    004: (18), (19), (21), (90), (92)-(114).
    """
    momenta = g @ v
    ours = np.einsum("rga,r,g->a", affinities, momenta, v)
    return ours - np.einsum("bga,b,g->a", dg, v, v) / 2 - np.einsum("dga,d,g->a", c, momenta, v)


def pull_back(g: Array, affinities: Array, n: Array, dn: Array) -> tuple[Array, Array]:
    """g_A and lowered affinities [gamma, alpha, beta] on constraints; dn[i, alpha, gamma].

    004: (14)-(17), (20), (27)-(40), (47)-(49).
    """
    low = np.einsum("iag,ij,jb->gab", dn, g, n)
    low = low + np.einsum("ia,kg,lki,lj,jb->gab", n, n, affinities, g, n)
    return n.T @ g @ n, low


def acceleration(g: Array, dg: Array, affinities: Array, v: Array, force: Array) -> Array:
    """vdot of pdot_i - L^k_ji v^j p_k = f_i. 004: (41), (122)-(130)."""
    turned = np.einsum("kji,j,k->i", affinities, v, g @ v) - np.einsum("ijk,j,k->i", dg, v, v)
    return np.linalg.solve(g, force + turned)


def change(affinities: Array, a: Array, da: Array, swapped: bool = False) -> Array:
    """Affinities for e_i' = A^i_i' e_i; da[k, j', i'] = A^k_j',i'. Swapped: as printed.

    004: (67)-(83), (115)-(121).
    """
    back = np.linalg.inv(a)
    moved = np.einsum("ck,ia,jb,kij->cab", back, a, a, affinities)
    return moved + np.einsum("ck,kab->cab", back, da if swapped else da.transpose(0, 2, 1))
