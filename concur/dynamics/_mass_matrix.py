"""Mass matrix by composite bodies, and energies."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array
from concur.dynamics._body_inertia import BodyInertia, composite_inertias
from concur.kinematics import (
    body_poses,
    body_twists,
    constant,
    joint_bases,
    joint_poses,
    wrench_to_parent,
)
from concur.mechanism import Tree


def mass_matrix(tree: Tree, q: Array) -> Array:
    """Mass matrix in left-trivialised velocities.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    casadi.SX
        Symmetric, shape (nv, nv), kg, kg m, kg m^2.
    """
    poses, bases = joint_poses(tree, q), joint_bases(tree)
    parents = [tree.parent_index(i) for i in range(len(tree.bodies))]
    composite = composite_inertias(
        [BodyInertia.of(body.inertia) for body in tree.bodies], poses, parents
    )
    spans = [tree.v_slice(body.name) for body in tree.bodies]
    matrix = ca.SX(tree.nv, tree.nv)
    for i, span in enumerate(spans):
        if tree.bodies[i].joint.nv == 0:
            continue
        wrench = composite[i].momentum(bases[i])
        matrix[span, span] = bases[i][0].T @ wrench[0] + bases[i][1].T @ wrench[1]
        j = i
        while (parent := parents[j]) is not None:
            wrench, j = wrench_to_parent(poses[j], wrench), parent
            if tree.bodies[j].joint.nv:
                block = bases[j][0].T @ wrench[0] + bases[j][1].T @ wrench[1]
                matrix[spans[j], span] = block
                matrix[span, spans[j]] = block.T
    return matrix


def kinetic_energy(tree: Tree, q: Array, v: Array) -> Array:
    """Kinetic energy.

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v : casadi.SX
        Configuration and velocity, shapes (nq,) and (nv,).

    Returns
    -------
    casadi.SX
        Scalar, J.
    """
    twists = body_twists(tree, joint_poses(tree, q), v)
    energy = ca.SX(0)
    for body, twist in zip(tree.bodies, twists, strict=True):
        momentum = BodyInertia.of(body.inertia).momentum(twist)
        energy += 0.5 * (ca.dot(momentum[0], twist[0]) + ca.dot(momentum[1], twist[1]))
    return energy


def potential_energy(tree: Tree, q: Array) -> Array:
    """Potential energy of gravity, zero at the inertial origin, (3.3.32).

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    casadi.SX
        Scalar, J.
    """
    gravity, energy = constant(tree.gravity), ca.SX(0)
    for body, (rotation, translation) in zip(tree.bodies, body_poses(tree, q), strict=True):
        center = translation + rotation @ constant(body.inertia.com)
        energy -= body.inertia.mass * ca.dot(gravity, center)
    return energy
