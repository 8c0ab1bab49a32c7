"""Mass matrix by composite bodies, from motions and momenta seen from the base; energies."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._body_inertia import body_inertias
from concur.robot._distribution import composites, regrouped
from concur.robot._flow import link_bases, step_inwards
from concur.robot._links import Link, link_frames, link_steps, root_axes
from concur.robot._motion import Twist, cross
from concur.robot._sweep import body_poses, body_twists, joint_poses
from concur.robot._tree import Tree


@dataclass(frozen=True, eq=False)
class Columns:
    """For each link, along the axes of the first: what its joint moves, and with what momentum.

    Moments and linear velocities are those at the link's own origin: of what moves near the end
    of a long arm nothing is lost in the distance to the base.

    Parameters
    ----------
    links : list of Link
        The links.
    places : list of casadi.SX
        Origins of the links in the frame of the first, shape (3,), m.
    ways : list of casadi.SX
        Ways to them from the origins of the links' parents, shape (3,), m.
    twists : list of tuple
        Twists of unit velocities of the joint, parts (3, nv of the joint).
    momenta : list of tuple
        Momenta that these give the link with all it carries, parts (3, nv of the joint).
    """

    links: list[Link]
    places: list[Array]
    ways: list[Array]
    twists: list[Twist]
    momenta: list[Twist]

    def matrix(self, nv: int) -> Array:
        """Mass matrix, symmetric (nv, nv): momenta along the twists of the joints further in."""
        matrix = ca.SX(nv, nv)
        for i, (link, momentum) in enumerate(zip(self.links, self.momenta, strict=True)):
            if not momentum[0].shape[1]:
                continue
            own = _power(self.twists[i], momentum)
            matrix[link.span, link.span] = ca.triu2symm(ca.triu(own))
            linear, angular = momentum
            at, j = i, link.parent
            while j is not None:
                if self.links[j].parent is None:
                    angular = momentum[1] + cross(self.places[i], linear)
                else:
                    angular += cross(self.ways[at], linear)
                block, across = _power(self.twists[j], (linear, angular)), self.links[j].span
                matrix[across, link.span] = block
                matrix[link.span, across] = block.T
                at, j = j, self.links[j].parent
        return matrix

    def times(self, vdot: Vector) -> Array:
        """Mass matrix times a vector of shape (nv,), without the matrix."""
        changes: list[Twist] = []
        for i, link in enumerate(self.links):
            linear, angular = (part @ vdot[link.span, :] for part in self.twists[i])
            if link.parent is not None:
                carried_linear, carried_angular = changes[link.parent]
                linear = linear + carried_linear - cross(self.ways[i], carried_angular)
                angular = angular + carried_angular
            changes.append((linear, angular))
        forces = [ca.SX(0, 1)] * len(self.links)
        carried = [(ca.SX(3, 1), ca.SX(3, 1)) for _ in self.links]
        for i in reversed(range(len(self.links))):
            link, twist, momentum = self.links[i], self.twists[i], self.momenta[i]
            forces[i] = _power(momentum, changes[i]) + _power(twist, carried[i])
            if link.parent is not None:
                rates, outer = vdot[link.span, :], carried[link.parent]
                linear = carried[i][0] + momentum[0] @ rates
                angular = carried[i][1] + momentum[1] @ rates + cross(self.ways[i], linear)
                carried[link.parent] = outer[0] + linear, outer[1] + angular
        return ca.vertcat(*forces)


def columns(tree: Tree, q: Vector) -> Columns:
    """Find the columns at the configuration q; they do not depend on the pose of the base."""
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    whole = composites(regrouped(tree, links, seats), links, steps)
    frames = root_axes(links, steps)
    twists, momenta = [], []
    for basis, mass, (rotation, _) in zip(link_bases(links), whole, frames, strict=True):
        linear, angular = mass.momentum(basis)
        twists.append((rotation @ basis[0], rotation @ basis[1]))
        momenta.append((rotation @ linear, rotation @ angular))
    ways = [
        ca.SX(3, 1) if link.parent is None else frames[link.parent][0] @ step.offset
        for link, step in zip(links, steps, strict=True)
    ]
    return Columns(links, [place for _, place in frames], ways, twists, momenta)


def _power(a: Twist, b: Twist) -> Array:
    return a[0].T @ b[0] + a[1].T @ b[1]


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
