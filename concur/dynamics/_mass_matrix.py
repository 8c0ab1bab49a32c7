"""Mass matrix by composite bodies, and energies."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector
from concur.dynamics._body_inertia import body_inertias
from concur.dynamics._columns import columns
from concur.dynamics._distribution import composites, regrouped
from concur.kinematics import (
    body_poses,
    body_twists,
    constant,
    joint_poses,
    link_bases,
    link_frames,
    link_steps,
    step_inwards,
)
from concur.mechanism import Tree


def mass_matrix(tree: Tree, q: Vector) -> Array:
    """Mass matrix in left-trivialised velocities, symmetric (nv, nv), kg, kg m, kg m^2."""
    return columns(tree, q).matrix(tree.nv) if tree.numbers is None else _from_link_to_link(tree, q)


def _from_link_to_link(tree: Tree, q: Vector) -> Array:
    """Mass matrix by momenta moved from link to link, shorter where few numbers are zero."""
    links, seats = link_frames(tree)
    steps, bases = link_steps(tree, links, q), link_bases(links)
    matrix = ca.SX(tree.nv, tree.nv)
    whole = composites(regrouped(tree, links, seats), links, steps)
    for i, (mass, link, basis) in enumerate(zip(whole, links, bases, strict=True)):
        momentum, span = mass.momentum(basis), link.span
        own = basis[0].T @ momentum[0] + basis[1].T @ momentum[1]
        matrix[span, span] = ca.triu2symm(ca.triu(own))
        at = i
        while (parent := links[at].parent) is not None:
            momentum, at = step_inwards(steps[at], momentum), parent
            block = bases[at][0].T @ momentum[0] + bases[at][1].T @ momentum[1]
            matrix[links[at].span, span], matrix[span, links[at].span] = block, block.T
    return matrix


def mass_times(tree: Tree, q: Vector, vdot: Vector) -> Array:
    """Mass matrix times the vector vdot, shape (nv,), by two recursions and without the matrix."""
    return columns(tree, q).times(vdot)


def kinetic_energy(tree: Tree, q: Vector, v: Vector) -> Array:
    """Kinetic energy at the configuration q (nq,) and velocity v (nv,), J."""
    twists = body_twists(tree, joint_poses(tree, q), v)
    energy = ca.SX(0)
    for inertia, twist in zip(body_inertias(tree, "kinetic_energy"), twists, strict=True):
        momentum = inertia.momentum(twist)
        energy += 0.5 * (ca.dot(momentum[0], twist[0]) + ca.dot(momentum[1], twist[1]))
    return energy


def potential_energy(tree: Tree, q: Vector) -> Array:
    """Potential energy of gravity, zero at the inertial origin, (3.3.32), J."""
    gravity, energy = constant(tree.gravity), ca.SX(0)
    bodies = tree.described("potential_energy")
    for body, (rotation, translation) in zip(bodies, body_poses(tree, q), strict=True):
        center = translation + rotation @ constant(body.inertia.com)
        energy -= body.inertia.mass * ca.dot(gravity, center)
    return energy
