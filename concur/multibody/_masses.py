"""Mass matrices with motions that move no mass."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from concur.errors import InertiaError
from concur.mechanism import Tree

EMPTY = 1e-300
"""Entry of the diagonal of a mass matrix below which it is zero."""

MASSLESS = 1e-13
"""Smallest eigenvalue of a mass matrix of unit diagonal below which a motion moves no mass."""


def without_mass(mass: np.ndarray) -> np.ndarray:
    """Find mass matrices for which some motion moves no mass.

    Parameters
    ----------
    mass : numpy.ndarray
        Mass matrices, shape (..., nv, nv).

    Returns
    -------
    numpy.ndarray
        Truth values, shape (...).
    """
    diagonal = np.diagonal(mass, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(diagonal, EMPTY))
    values = np.linalg.eigvalsh(mass / (scale[..., :, None] * scale[..., None, :]))
    return np.asarray((diagonal < EMPTY).any(axis=-1) | (values[..., 0] < MASSLESS))


def check_masses(tree: Tree, masses: Iterable[np.ndarray]) -> None:
    """No motion is free of inertia: else a force would have no finite acceleration."""
    worst = None
    for mass in masses:
        if without_mass(mass):
            scale = np.sqrt(np.maximum(np.diag(mass), EMPTY))
            vectors = np.linalg.eigh(mass / np.outer(scale, scale))[1]
            empty = np.flatnonzero(np.diag(mass) < EMPTY)
            worst = empty[0] if empty.size else int(np.abs(vectors[:, 0]).argmax())
    if worst is not None:
        raise InertiaError(
            f"robot `{tree.name}`, body `{tree.freedom_names[worst].partition('[')[0]}`",
            expected="a mass above zero behind every motion of its joint",
            came="a motion that moves no mass",
            cure="A force would have no finite acceleration: give this body, or those it carries, "
            "an inertia, or make the joint Fixed.",
        )
