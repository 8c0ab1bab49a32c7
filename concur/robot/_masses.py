"""Mass matrices with motions that move no mass."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.errors import InertiaError
from concur.groups import se3
from concur.robot._sweep import joint_poses
from concur.robot._tree import Tree

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


def check_masses(tree: Tree, samples: list[np.ndarray]) -> None:
    """Reject motions without inertia: a force would have no finite acceleration."""
    worst = None
    for mass in _masses(tree, samples):
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


def _masses(tree: Tree, samples: list[np.ndarray]) -> list[np.ndarray]:
    """Mass matrix (nv, nv) at some configurations, as the sum over bodies of J^T I J.

    This needs the pose of each joint alone as a graph, and takes a twentieth of the time in which
    the graph of the mass matrix is made.
    """
    q = ca.SX.sym("q", tree.nq)
    relative = [ca.vec(ca.densify(ca.horzcat(*pose))) for pose in joint_poses(tree, q)]
    poses = ca.Function("poses", [q], [ca.horzcat(*relative)])
    inertias, masses = tree.inertia_matrices, []
    for sample in samples:
        mass, jacobians = np.zeros((tree.nv, tree.nv)), list[np.ndarray]()
        for i, entries in enumerate(np.array(poses(sample)).T):
            body, parent = tree.bodies[i], tree.parent_index(i)
            jacobian = np.zeros((6, tree.nv))
            if parent is not None:
                pose = np.vstack([entries.reshape(4, 3).T, [0.0, 0.0, 0.0, 1.0]])
                jacobian = se3.adjoint(se3.inverse(pose)) @ jacobians[parent]
            jacobian[:, tree.v_slice(body.name)] += body.joint.basis
            jacobians.append(jacobian)
            mass += jacobian.T @ inertias[i] @ jacobian
        masses.append(mass)
    return masses
