"""Motions that move no mass: they are refused, but for the spin of links on cables.

A point mass that hangs on a massless cable, or a thin rod, can spin about its line without any
kinetic energy, while all that it carries turns back. The mass matrix is singular along this spin.
With a moment C about the line it becomes regular, and at zero spin nothing else depends on C:
these are the equations on the two-sphere of the link's direction, whose spin decouples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.errors import InertiaError
from concur.groups import se3, so3
from concur.robot._bodies import BodyTree
from concur.robot.joints import Spherical

EMPTY = 1e-300
"""Entry of the diagonal of a mass matrix below which it is zero."""

MASSLESS = 1e-13
"""Smallest eigenvalue of a mass matrix of unit diagonal below which a motion moves no mass."""

ON_LINE = 1e-12
"""Part of its largest moment, or of a length, below which a link has no moment about its line."""


@dataclass(frozen=True, eq=False)
class Cable:
    """The line of a link on a cable.

    Parameters
    ----------
    axis : numpy.ndarray
        Direction of the line in the body frame, a unit vector, shape (3,).
    moment : float
        Moment about the line that makes the mass matrix regular, kg m^2: the moment across it, all
        that the link carries being at the ends of the line.
    """

    axis: np.ndarray
    moment: float


def find_cables(tree: BodyTree, pushed: Collection[str]) -> dict[str, Cable]:
    """Find the links on cables.

    Parameters
    ----------
    tree : BodyTree
        The robot.
    pushed : collection of str
        Bodies on which something acts beside gravity: motors, thrusters, wheels. Neither a link on
        a cable nor what hangs on it is one of them.

    Returns
    -------
    dict of str to Cable
        The line of each such link, by body.
    """
    found = {}
    for i, body in enumerate(tree.bodies):
        if body.parent is None or not isinstance(body.joint, Spherical):
            continue
        welded = tree.welded(i)
        hung = [k for k, b in enumerate(tree.bodies) if b.joint.nv and tree.parents[k] in welded]
        names = {tree.bodies[k].name for k in (*welded, *hung)}
        if names & set(pushed) or any(
            not isinstance(tree.bodies[k].joint, Spherical) for k in hung
        ):
            continue
        cable = _line(tree, welded, hung)
        if cable is not None:
            found[body.name] = cable
    return found


def _line(tree: BodyTree, welded: dict[int, np.ndarray], hung: list[int]) -> Cable | None:
    """Line about which neither the mass of a link has a moment nor the joints on it an arm."""
    own = np.zeros((3, 3))
    for k, pose in welded.items():
        back = se3.adjoint(se3.inverse(pose))
        own += (back.T @ tree.bodies[k].inertia.matrix @ back)[3:, 3:]
    across = float(np.linalg.norm(own, 2))
    conditions = [own / across] if across else []
    for k in hung:
        arm = (welded[tree.parents[k] or 0] @ tree.bodies[k].placement.matrix)[:3, 3]
        length = float(np.linalg.norm(arm))
        carried = sum(b.inertia.mass for j, b in enumerate(tree.bodies) if k in tree.paths[j])
        if length * carried:
            conditions.append(so3.skew(arm / length))
            across += carried * length**2
    if not across:
        return None
    _, sizes, lines = np.linalg.svd(np.vstack(conditions))
    if not sizes[2] < ON_LINE < sizes[1]:
        return None
    axis = lines[2] * np.sign(lines[2, np.abs(lines[2]).argmax()])
    axis[np.abs(axis) < ON_LINE] = 0.0
    return Cable(axis, across)


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


def check_masses(tree: BodyTree, inertias: np.ndarray, samples: list[np.ndarray]) -> None:
    """Reject motions without inertia: a force would have no finite acceleration.

    The spatial inertias of the bodies have the shape (bodies, 6, 6), kg, kg m and kg m^2.
    """
    for mass in reversed(_masses(tree, inertias, samples)):
        if not without_mass(mass):
            continue
        scale = np.sqrt(np.maximum(np.diag(mass), EMPTY))
        vectors = np.linalg.eigh(mass / np.outer(scale, scale))[1]
        empty = np.flatnonzero(np.diag(mass) < EMPTY)
        worst = empty[0] if empty.size else int(np.abs(vectors[:, 0]).argmax())
        moved = next(b for b, at in zip(tree.bodies, tree.v_spans, strict=True) if worst < at.stop)
        raise InertiaError(
            f"robot `{tree.name}`, body `{moved.name}`",
            expected="a mass above zero behind every motion of its joint",
            came="a motion that moves no mass",
            cure="A force would have no finite acceleration: give this body, or those it carries, "
            "an inertia, or make the joint Fixed.",
        )


def _masses(tree: BodyTree, inertias: np.ndarray, samples: list[np.ndarray]) -> list[np.ndarray]:
    """Mass matrix (nv, nv) at some configurations, as the sum over bodies of J^T I J.

    This needs the pose of each joint alone as a graph, and takes a twentieth of the time in which
    the graph of the mass matrix is made.
    """
    q, joints = ca.SX.sym("q", tree.nq), [body.joint for body in tree.bodies]
    moved = zip(joints, tree.q_spans, strict=True)
    relative = [ca.vec(ca.densify(ca.horzcat(*joint.pose(q[at, :])))) for joint, at in moved]
    poses = ca.Function("poses", [q], [ca.horzcat(*relative)])
    masses = []
    for sample in samples:
        mass, jacobians = np.zeros((tree.nv, tree.nv)), list[np.ndarray]()
        for i, (entries, parent) in enumerate(
            zip(np.array(poses(sample)).T, tree.parents, strict=True)
        ):
            jacobian = np.zeros((6, tree.nv))
            if parent is not None:
                pose = np.vstack([entries.reshape(4, 3).T, [0.0, 0.0, 0.0, 1.0]])
                pose = tree.bodies[i].placement.matrix @ pose
                jacobian = se3.adjoint(se3.inverse(pose)) @ jacobians[parent]
            jacobian[:, tree.v_spans[i]] += joints[i].basis
            jacobians.append(jacobian)
            mass += jacobian.T @ inertias[i] @ jacobian
        masses.append(mass)
    return masses
