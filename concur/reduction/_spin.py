"""Momentum of a link alone, with all that it carries turned back.

A right translation of a joint by w turns its link by w in the body. If the joints that the link
carries turn back at the same time, nothing else moves, and the momentum of this motion is that of
the link alone: ``w^T B^T I V``, with B the basis of the joint, I the inertia of the link and V its
twist. It is constant for the spin of a round link on a ball joint that carries others on ball
joints on its axis. On a link on a cable it is zero, and the spin with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.groups import se3
from concur.reduction._model import ReducedModel
from concur.robot import Mechanism

_ROUNDED = 1e-15  # part of the terms of a sum below which it is zero


def link_rows(robot: Mechanism, joint: str, generators: Sequence[Sequence[float]]) -> np.ndarray:
    """Momenta of a link along generators in its axes, as rows on its twist, shape (k, 6)."""
    basis = robot.bodies[robot.index(joint)].joint.basis @ np.array(generators).T
    inertias, inertia, size = robot.inertia_matrices, np.zeros((6, 6)), np.zeros((6, 6))
    for k, pose in robot.welded(robot.index(joint)).items():
        back = se3.adjoint(se3.inverse(pose))
        matrix = inertias[k]
        inertia += back.T @ matrix @ back
        size += np.abs(back.T) @ np.abs(matrix) @ np.abs(back)
    rows = basis.T @ inertia
    return np.where(np.abs(rows) <= _ROUNDED * (np.abs(basis.T) @ size), 0.0, rows)


def link_metric(robot: Mechanism, joint: str, generators: Sequence[Sequence[float]]) -> np.ndarray:
    """Twice the kinetic energy of these motions, as a form on the generators, shape (k, k)."""
    basis = robot.bodies[robot.index(joint)].joint.basis @ np.array(generators).T
    return np.asarray(link_rows(robot, joint, generators) @ basis)


def link_weights(
    robot: Mechanism, joint: str, generators: Sequence[Sequence[float]], q: Vector
) -> Array:
    """Momenta of a link along generators, as rows on v, shape (k, nv)."""
    return constant(link_rows(robot, joint, generators)) @ robot.jacobian(q, joint)


def link_rate(
    robot: Mechanism,
    joint: str,
    generators: Sequence[Sequence[float]],
    q: Vector,
    v: Vector,
    vdot: Vector,
) -> Array:
    """Rates of these momenta, shape (k,): the rows are constant in the axes of the link."""
    acceleration = robot.jacobian(q, joint) @ vdot + robot.velocity_product(q, v, joint)
    return constant(link_rows(robot, joint, generators)) @ acceleration


def link_terms(model: ReducedModel, joint: str) -> ca.Function:
    """Rates of the momenta of a link along the basis of its joint, and the size of their terms.

    Both are functions of q, s and u, of shape (nv of the joint,).
    """
    robot = model.robot
    every = np.eye(robot.bodies[robot.index(joint)].joint.nv).tolist()
    q, s, u = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns), ca.SX.sym("u", model.nu)
    v = model.velocity(q, s)
    vdot = model.lift(q)[0] @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)
    weights = link_weights(robot, joint, every, q)
    terms = ca.fabs(weights) @ (ca.fabs(vdot) + ca.fabs(v))
    results = [link_rate(robot, joint, every, q, v, vdot), terms]
    return ca.Function("link", [q, s, u], [ca.densify(part) for part in results], {"cse": True})


def carries_joints(robot: Mechanism, joint: str) -> bool:
    """Whether a link carries others that move on it."""
    index = robot.index(joint)
    moving = [k for k, body in enumerate(robot.bodies) if body.joint.nv and k != index]
    return any(index in robot.path(k) for k in moving)
