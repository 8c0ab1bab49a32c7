"""Articulated bodies: the mass matrix factored without being formed, in as many steps as joints.

The inertia that a link shows to its parent, all joints further out being free, is handed inwards
(Featherstone); what the joint of a link resists to is a pivot of the mass matrix, eliminated from
the outermost joint to the base.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._dynamics import bias, inertial_wrenches, mass_matrix
from concur.robot._links import Posture
from concur.robot._solve import solve_positive_definite, solve_small
from concur.robot._spatial import Distribution, Step, Twist, cross, plus, power
from concur.robot._spring_forces import joint_forces
from concur.robot._tree import Tree


@dataclass(frozen=True, eq=False)
class Articulated:
    """The mass matrix as the product of its factors, M = L D L^T.

    Parameters
    ----------
    posture : Posture
        The links at the configuration.
    pivots : list of casadi.SX
        Blocks of D: resistance of each joint, shape (nv of the joint, nv of the joint).
    shares : list of tuple
        Wrench on a link of a unit force of its joint, all joints further out being free, in the
        link's frame, parts (3, nv of the joint).
    """

    posture: Posture
    pivots: list[Array]
    shares: list[Twist]

    def inwards(self, forces: Array, wrenches: list[Twist] | None = None) -> Array:
        """L^-1 forces (nv, k): forces on joints, less those that joints further out pass on.

        Wrenches, parts (3, k), that the links require are subtracted from the forces.
        """
        links, count = self.posture.links, forces.shape[1]
        still = ca.SX(3, count), ca.SX(3, count)
        passed = list(wrenches) if wrenches else [still] * len(links)
        left: list[Array] = [ca.SX(0, count)] * len(links)
        for i, link in reversed(list(enumerate(links))):
            share = self.shares[i]
            left[i] = forces[link.span, :] - power(link.basis, passed[i])
            if link.parent is not None:
                wrench = plus(passed[i], (share[0] @ left[i], share[1] @ left[i]))
                moved = self.posture.steps[i].wrench_inwards(wrench)
                passed[link.parent] = plus(passed[link.parent], moved)
        return ca.vertcat(*left)

    def yielding(self, forces: Array) -> Array:
        """D^-1 forces (nv, k), from `inwards`: joint accelerations on links that do not move."""
        parts = zip(self.posture.links, self.pivots, strict=True)
        return ca.vertcat(*[solve_small(pivot, forces[link.span, :]) for link, pivot in parts])

    def outwards(self, accelerations: Array) -> Array:
        """L^-T accelerations (nv,), from `yielding`: joint accelerations on links that move."""
        moving: list[Twist] = []
        found: list[Array] = []
        for link, step, share in zip(
            self.posture.links, self.posture.steps, self.shares, strict=True
        ):
            own, carried = accelerations[link.span, :], (ca.SX(3, 1), ca.SX(3, 1))
            if link.parent is not None:
                carried = step.twist_outwards(moving[link.parent])
                own -= power(share, carried)
            moving.append(plus(carried, (link.basis[0] @ own, link.basis[1] @ own)))
            found.append(own)
        return ca.vertcat(*found)


def articulated(tree: Tree, q: Vector) -> Articulated:
    """Factor the mass matrix of a robot at the configuration q, shape (nq,)."""
    posture = Posture.of(tree, q)
    links, steps = posture.links, posture.steps
    inertias = [_Inertia.of(link.mass) for link in links]
    own = {rotor.places[0]: rotor for rotor in tree.terms.rotors}
    pivots: list[Array] = [ca.SX(0, 0)] * len(links)
    shares = [(ca.SX(3, 0), ca.SX(3, 0))] * len(links)
    for i, link in reversed(list(enumerate(links))):
        inertia = inertias[i]
        wrenches = inertia.momentum(link.basis)
        pivots[i] = ca.triu2symm(ca.triu(power(link.basis, wrenches)))
        rotor = own.get(link.span.start) if link.basis[0].shape[1] else None
        free = link.axial
        if rotor is not None:
            reflected = rotor.inertia * rotor.ratios
            pivots[i] += reflected * rotor.ratios
            if rotor.carried:  # what carries the joint feels the rotor speed up
                wrenches = (
                    wrenches[0],
                    wrenches[1] + steps[i].outwards(constant(rotor.axis)) @ reflected.T,
                )
                free = False
        linear, angular = (solve_small(pivots[i], part.T).T for part in wrenches)
        shares[i] = linear, angular
        if link.parent is not None:
            seen = inertia.yielding(wrenches, shares[i], free).seen_inwards(steps[i])
            inertias[link.parent] = inertias[link.parent].plus(seen)
    return Articulated(posture, pivots, shares)


@dataclass(frozen=True, eq=False)
class _Inertia:
    """Articulated inertia about a link's origin: blocks of linear, mixed and angular parts.

    Momentum is linear v + mixed w and mixed^T v + angular w, for velocities v and w.
    """

    linear: Array
    mixed: Array
    angular: Array

    @staticmethod
    def of(mass: Distribution) -> _Inertia:
        x, y, z = (mass.first[k] for k in range(3))
        mixed = ca.SX(3, 3)
        mixed[0, 1], mixed[1, 2], mixed[2, 0] = z, x, y
        mixed[1, 0], mixed[2, 1], mixed[0, 2] = -z, -x, -y
        linear = ca.sparsify(mass.mass * ca.SX.eye(3))
        return _Inertia(linear, ca.sparsify(mixed), mass.tensor)

    def momentum(self, twist: Twist) -> Twist:
        linear, angular = twist
        return (
            self.linear @ linear + self.mixed @ angular,
            self.mixed.T @ linear + self.angular @ angular,
        )

    def plus(self, other: _Inertia) -> _Inertia:
        return _Inertia(
            self.linear + other.linear, self.mixed + other.mixed, self.angular + other.angular
        )

    def yielding(self, wrenches: Twist, shares: Twist, axial: bool) -> _Inertia:
        """Inertia that remains once the joint is free."""
        linear = self.linear - ca.triu2symm(ca.triu(wrenches[0] @ shares[0].T))
        mixed = self.mixed - wrenches[0] @ shares[1].T
        angular = self.angular - ca.triu2symm(ca.triu(wrenches[1] @ shares[1].T))
        if axial:
            # A link that may turn about z takes no torque about it.
            mixed[:, 2], angular[:, 2], angular[2, :] = 0.0, 0.0, 0.0
        return _Inertia(*map(ca.sparsify, (linear, mixed, angular)))

    def seen_inwards(self, step: Step) -> _Inertia:
        """The same about the origin of the link's parent, along its axes."""
        linear, turned = step.seen_inwards(self.linear), step.seen_inwards(self.angular)
        mixed = step.inwards(step.inwards(self.mixed).T).T
        # w at the parent is v - offset x w here, and a force f here is offset x f more torque.
        moved = mixed + cross(step.offset, linear).T
        angular = turned + cross(step.offset, mixed).T + cross(step.offset, moved)
        return _Inertia(linear, moved, ca.triu2symm(ca.triu(angular)))


def factors_by_links(tree: Tree) -> bool:
    """Whether `articulated` applies: each rotor turns with one joint, on the link before it."""
    single = {
        link.span.start: link for link in tree.terms.links if link.span.stop - link.span.start == 1
    }
    rotors = tree.terms.rotors
    for rotor in rotors:
        link = single.get(rotor.places[0]) if len(rotor.places) == 1 else None
        if link is None or (rotor.carried and rotor.link != link.parent):
            return False
    return len({rotor.places for rotor in rotors}) == len(rotors)


def forward_dynamics(tree: Tree, q: Vector, v: Vector, forces: Vector) -> Vector:
    """Acceleration (nv,) under joint forces (nv,), N and N m: M vdot + bias = forces."""
    if tree.terms.rotors and not factors_by_links(tree):
        return solve_positive_definite(mass_matrix(tree, q), forces - bias(tree, q, v))
    factors = articulated(tree, q)
    wrenches, shafts = inertial_wrenches(tree, factors.posture, v, ca.SX(tree.nv, 1))
    left = forces - shafts - joint_forces(tree, q, v)
    return factors.outwards(factors.yielding(factors.inwards(left, wrenches)))
