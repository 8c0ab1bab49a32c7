"""Dynamics by recursions over the links: forces, momentum, mass matrix and energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.robot._frames import Link
from concur.robot._links import Motion, Posture
from concur.robot._rotor import Rotor
from concur.robot._spatial import Distribution, Placed, Twist, cross, power, stacked
from concur.robot._spring_forces import added, joint_forces, link_wrenches, spring_energy
from concur.robot._tree import Tree


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, vdot: Vector, followed: Vector | None = None
) -> Vector:
    """Joint forces that make the robot accelerate: M vdot + bias, shape (nv,), N and N m.

    With velocities w `followed`, (nv,), of rates vdot: M vdot + C(v) w and gravity forces, with the
    factor C(v) of the Levi-Civita connection, for which Mdot = C + C^T and C(v) v is that of the
    bias. Springs pull at q, and dampers brake w.
    """
    posture = Posture.of(tree, q)
    wrenches, shafts = inertial_wrenches(tree, posture, v, vdot, followed)
    w = v if followed is None else followed
    return _on_joints(posture, wrenches) + shafts + joint_forces(tree, q, w)


def damping_forces(tree: Tree, q: Vector, w: Vector) -> Vector:
    """Forces (nv,) of dampers in the bias at the velocities w: linear in them."""
    posture = Posture.of(tree, q)
    still = [(ca.SX(3, 1), ca.SX(3, 1)) for _ in posture.links]
    wrenches = added(still, link_wrenches(tree, posture, w, stiff=False))
    return _on_joints(posture, wrenches) + joint_forces(tree, q, w, stiff=False)


def _on_joints(posture: Posture, wrenches: list[Twist]) -> Vector:
    """Forces (nv,) of the joints that carry wrenches on the links."""
    total = posture.carried(wrenches)
    forces = [power(link.basis, wrench) for link, wrench in zip(posture.links, total, strict=True)]
    return ca.vertcat(*forces)


def base_wrench(tree: Tree, q: Vector, v: Vector, vdot: Vector) -> Twist:
    """Force and torque by which the joint of the base makes the robot accelerate.

    Parts (3,) about the origin and along the axes of the base, N and N m, across the joint too.
    """
    posture = Posture.of(tree, q)
    return posture.carried(inertial_wrenches(tree, posture, v, vdot)[0])[0]


def bias(tree: Tree, q: Vector, v: Vector) -> Vector:
    """Coriolis, centrifugal and gravity forces, shape (nv,), N and N m: M vdot + bias = tau."""
    return inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1))


def coriolis(tree: Tree, q: Vector, v: Vector) -> Array:
    """Coriolis factor of the Levi-Civita connection, shape (nv, nv), with Mdot = C + C^T.

    C v and the forces of gravity, springs and dampers are the bias.
    """
    followed = ca.SX.sym("followed", tree.nv)
    forces = inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1), followed)
    return ca.jacobian(forces - damping_forces(tree, q, followed), followed)


def momentum(tree: Tree, q: Vector, v: Vector) -> Vector:
    """Spatial momentum about the inertial origin, (3.3.35).

    Its shape is (6,), [linear; angular], kg m/s and kg m^2/s.
    """
    posture = Posture.of(tree, q)
    moving = zip(posture.links, posture.twists(v), strict=True)
    momenta = [link.mass.momentum(twist) for link, twist in moving]
    for rotor in tree.terms.rotors:
        linear, angular = momenta[rotor.link]
        momenta[rotor.link] = linear, angular + rotor.momentum(v)
    total = posture.carried(momenta)
    return stacked(posture.steps[0].wrench_inwards(total[0]))


def moment_of_motion(tree: Tree, q: Vector, v: Vector, w: Vector) -> Array:
    """Sum of v x w dm, the velocities of each point for v and w (nv,), (3,), N m, in base axes."""
    posture = Posture.of(tree, q)
    moments, moving, following = [], posture.twists(v), posture.twists(w)
    for link, (linear, angular), (other, turning) in zip(
        posture.links, moving, following, strict=True
    ):
        mass = link.mass
        own = mass.second @ cross(angular, turning) + cross(linear, cross(turning, mass.first))
        own -= cross(other, cross(angular, mass.first))
        if mass.moves:
            own += mass.mass * cross(linear, other)
        moments.append(own)
    for rotor in tree.terms.rotors:
        turning = moving[rotor.link][1], following[rotor.link][1]
        moments[rotor.link] += rotor.moment_of_motion(v, w, turning)
    for i in reversed(range(1, len(moments))):
        moments[posture.links[i].parent or 0] += posture.steps[i].inwards(moments[i])
    return moments[0]


def inertial_wrenches(
    tree: Tree, posture: Posture, v: Vector, vdot: Vector, followed: Vector | None = None
) -> tuple[list[Twist], Array]:
    """What makes the regrouped masses of the links move so, and the rotors of motors.

    With the wrenches of springs between points.

    A wrench on each link, about its origin, and forces (nv,) on the joints by their motors' gears.
    """
    motions = posture.motions(v, vdot, tree.gravity, followed)
    wrenches = [_inertial(link.mass, m) for link, m in zip(posture.links, motions, strict=True)]
    shafts = ca.SX(tree.nv, 1)
    for rotor in tree.terms.rotors:
        motion, (force, torque) = motions[rotor.link], wrenches[rotor.link]
        turning = motion.angular, motion.followed, motion.rate
        moment, shaft = rotor.wrench(turning, v, vdot, v if followed is None else followed)
        wrenches[rotor.link] = force, torque + moment
        shafts += rotor.gears(tree.nv).T * shaft
    return added(
        wrenches, link_wrenches(tree, posture, v if followed is None else followed)
    ), shafts


def _inertial(mass: Distribution, motion: Motion) -> Twist:
    """Force and torque about the origin that make a distribution of mass move so."""
    squares, change = motion.squares, motion.change
    second, first = mass.second, mass.first
    torque = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        torque.append(
            change[j, k] * second[i, k]
            - change[i, k] * second[j, k]
            + change[j, i] * second[i, i]
            - change[i, j] * second[j, j]
            + (squares[j] - squares[i]) * second[i, j]
        )
    force = motion.changed(first)
    if mass.moves:
        force += mass.mass * motion.linear
    return force, ca.vertcat(*torque) + cross(first, motion.linear)


def momentum_matrix(tree: Tree, q: Vector) -> Array:
    """Matrix A of the spatial momentum about the inertial origin: A v, (3.3.35).

    Its shape is (6, nv), with rows [linear; angular], kg, kg m, kg m^2.
    """
    posture = Posture.of(tree, q)
    frames: list[Placed] = []
    columns = [ca.SX(6, 0)]
    for link, step, mass in zip(posture.links, posture.steps, posture.composites(), strict=True):
        if link.parent is None:
            frames.append(posture.root)
        else:
            rotation, origin = frames[link.parent]
            frames.append((step.extended(rotation), origin + rotation @ step.offset))
        columns.append(_about_origin(*frames[-1], mass.momentum(link.basis)))
    matrix = ca.horzcat(*columns)
    for rotor in tree.terms.rotors:
        if rotor.axis is not None:
            axis = frames[rotor.link][0] @ rotor.axis
            matrix[3:, :] += rotor.inertia * axis @ rotor.gears(tree.nv)
    return matrix


def _about_origin(rotation: Array, origin: Array, momentum: Twist) -> Array:
    """Momenta about a link's origin, in its axes, as columns about the inertial origin."""
    linear, angular = momentum
    if linear.shape[1] <= 3:
        turned = rotation @ linear
        return ca.vertcat(turned, rotation @ angular + cross(origin, turned))
    # Of many momenta it is shorter to turn the way than to carry what has been turned: along
    # the link's own axes most of their entries are zero.
    about = angular + cross(rotation.T @ origin, linear)
    return ca.vertcat(rotation @ linear, rotation @ about)


@dataclass(frozen=True, eq=False)
class Columns:
    """For each link, along the axes of the first: what its joint moves, and with what momentum.

    Moments and linear velocities are those at the link's own origin: of what moves near the end
    of a long arm nothing is lost in the distance to the base.

    Parameters
    ----------
    links : sequence of Link
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

    links: Sequence[Link]
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
            own = power(self.twists[i], momentum)
            matrix[link.span, link.span] = ca.triu2symm(ca.triu(own))
            linear, angular = momentum
            at, j = i, link.parent
            while j is not None:
                if self.links[j].parent is None:
                    angular = momentum[1] + cross(self.places[i], linear)
                else:
                    angular += cross(self.ways[at], linear)
                block, across = power(self.twists[j], (linear, angular)), self.links[j].span
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
            forces[i] = power(momentum, changes[i]) + power(twist, carried[i])
            if link.parent is not None:
                rates, outer = vdot[link.span, :], carried[link.parent]
                linear = carried[i][0] + momentum[0] @ rates
                angular = carried[i][1] + momentum[1] @ rates + cross(self.ways[i], linear)
                carried[link.parent] = outer[0] + linear, outer[1] + angular
        return ca.vertcat(*forces)


def columns(tree: Tree, q: Vector) -> Columns:
    """Find the columns at the configuration q; they do not depend on the pose of the base."""
    posture = Posture.of(tree, q)
    frames = posture.frames()
    twists, momenta = [], []
    for link, mass, (rotation, _) in zip(posture.links, posture.composites(), frames, strict=True):
        linear, angular = mass.momentum(link.basis)
        twists.append((rotation @ link.basis[0], rotation @ link.basis[1]))
        momenta.append((rotation @ linear, rotation @ angular))
    ways = [
        ca.SX(3, 1) if link.parent is None else frames[link.parent][0] @ step.offset
        for link, step in zip(posture.links, posture.steps, strict=True)
    ]
    return Columns(posture.links, [place for _, place in frames], ways, twists, momenta)


def mass_matrix(tree: Tree, q: Vector) -> Array:
    """Mass matrix in left-trivialised velocities, symmetric (nv, nv), kg, kg m, kg m^2."""
    matrix = columns(tree, q).matrix(tree.nv) if tree._bound else _from_link_to_link(tree, q)
    for rotor, gears, carried in _spins(tree, q) if tree.terms.rotors else ():
        across = gears.T @ carried
        matrix += rotor.inertia * (gears.T @ gears + across + across.T)
    return matrix


def _spins(tree: Tree, q: Vector) -> list[tuple[Rotor, Array, Array]]:
    """Each rotor, its speeds and those of its link about its axis of unit velocities, (1, nv)."""
    found = []
    posture = Posture.of(tree, q)
    for rotor in tree.terms.rotors:
        carried, axis, at = ca.SX(1, tree.nv), rotor.axis if rotor.carried else None, rotor.link
        while axis is not None:
            link = posture.links[at]
            carried[0, link.span] = axis.T @ link.basis[1]
            axis = None if link.parent is None else posture.steps[at].inwards(axis)
            at = link.parent or 0
        found.append((rotor, rotor.gears(tree.nv), ca.sparsify(carried)))
    return found


def _from_link_to_link(tree: Tree, q: Vector) -> Array:
    """Mass matrix by momenta moved from link to link, shorter where few numbers are zero."""
    posture, matrix = Posture.of(tree, q), ca.SX(tree.nv, tree.nv)
    links = posture.links
    for i, (mass, link) in enumerate(zip(posture.composites(), links, strict=True)):
        momentum, span = mass.momentum(link.basis), link.span
        matrix[span, span] = ca.triu2symm(ca.triu(power(link.basis, momentum)))
        at = i
        while (parent := links[at].parent) is not None:
            momentum, at = posture.steps[at].wrench_inwards(momentum), parent
            block = power(links[at].basis, momentum)
            matrix[links[at].span, span], matrix[span, links[at].span] = block, block.T
    return matrix


def mass_times(tree: Tree, q: Vector, vdot: Vector) -> Array:
    """Mass matrix times the vector vdot, shape (nv,), by two recursions and without the matrix."""
    forces = columns(tree, q).times(vdot)
    for rotor, gears, carried in _spins(tree, q) if tree.terms.rotors else ():
        speed = gears @ vdot
        forces += rotor.inertia * (gears.T * (speed + carried @ vdot) + carried.T * speed)
    return forces


def kinetic_energy(tree: Tree, q: Vector, v: Vector) -> Array:
    """Kinetic energy at the configuration q (nq,) and velocity v (nv,), J."""
    posture, energy = Posture.of(tree, q), ca.SX(0)
    twists = posture.twists(v)
    for link, twist in zip(posture.links, twists, strict=True):
        momentum = link.mass.momentum(twist)
        energy += 0.5 * (ca.dot(momentum[0], twist[0]) + ca.dot(momentum[1], twist[1]))
    for rotor in tree.terms.rotors:
        energy += rotor.energy(v, twists[rotor.link][1])
    return energy


def potential_energy(tree: Tree, q: Vector) -> Array:
    """Potential energy of gravity, zero at the inertial origin, (3.3.32), and of springs, J."""
    posture = Posture.of(tree, q)
    moment, mass = [ca.SX(3, 1) for _ in posture.links], [0.0] * len(posture.links)
    bodies = tree.described("potential_energy")
    for body, seat in zip(bodies, tree.terms.seats, strict=True):
        center = seat.translation + seat.rotation @ np.array(body.inertia.com)
        moment[seat.link] += constant(body.inertia.mass * center)
        mass[seat.link] += body.inertia.mass
    # First moment of all that a link carries, about its parent's origin; the base's comes last.
    for i, link in reversed(list(enumerate(posture.links))):
        moved = posture.steps[i].inwards(moment[i]) + mass[i] * posture.steps[i].offset
        if link.parent is not None:
            moment[link.parent] += moved
            mass[link.parent] += mass[i]
    return spring_energy(tree, q) - ca.dot(constant(tree.gravity), moved)
