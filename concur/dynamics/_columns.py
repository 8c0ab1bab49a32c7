"""Motions and momenta of the joints, seen from the base: what the mass matrix is made of."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array, Vector
from concur.dynamics._distribution import composites, regrouped
from concur.kinematics import (
    Link,
    Twist,
    cross,
    link_bases,
    link_frames,
    link_steps,
    root_axes,
)
from concur.mechanism import Tree


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
