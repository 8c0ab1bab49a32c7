"""Inverse dynamics by the Newton-Euler recursion, momentum and its matrix."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector
from concur.robot._distribution import Distribution, composites, regrouped
from concur.robot._flow import Motion, link_bases, link_motions, link_twists, step_inwards
from concur.robot._links import Link, Seat, Step, link_frames, link_steps
from concur.robot._motion import Twist, cross, stacked
from concur.robot._tree import Tree


def inverse_dynamics(
    tree: Tree, q: Vector, v: Vector, vdot: Vector, followed: Vector | None = None
) -> Vector:
    """Joint forces that make the robot accelerate: M vdot + bias, shape (nv,), N and N m.

    With velocities w `followed`, (nv,), of rates vdot: M vdot + C(v) w and gravity forces, with the
    factor C(v) of the Levi-Civita connection, for which Mdot = C + C^T and C(v) v is that of the
    bias.
    """
    links, seats = link_frames(tree)
    steps, bases = link_steps(tree, links, q), link_bases(links)
    wrenches = inertial_wrenches(tree, links, seats, steps, v, vdot, followed)
    forces: list[Array] = [ca.SX(0, 1)] * len(links)
    for i in reversed(range(len(links))):
        force, torque = wrenches[i]
        forces[i] = bases[i][0].T @ force + bases[i][1].T @ torque
        parent = links[i].parent
        if parent is not None:
            carried = step_inwards(steps[i], wrenches[i])
            outer = wrenches[parent]
            wrenches[parent] = outer[0] + carried[0], outer[1] + carried[1]
    return ca.vertcat(*forces)


def base_wrench(tree: Tree, q: Vector, v: Vector, vdot: Vector) -> Twist:
    """Force and torque by which the joint of the base makes the robot accelerate.

    Parts (3,) about the origin and along the axes of the base, N and N m, across the joint too.
    """
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    wrenches = inertial_wrenches(tree, links, seats, steps, v, vdot)
    for i in reversed(range(1, len(links))):
        force, torque = step_inwards(steps[i], wrenches[i])
        outer = wrenches[links[i].parent or 0]
        wrenches[links[i].parent or 0] = outer[0] + force, outer[1] + torque
    return wrenches[0]


def bias(tree: Tree, q: Vector, v: Vector) -> Vector:
    """Coriolis, centrifugal and gravity forces, shape (nv,), N and N m: M vdot + bias = tau."""
    return inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1))


def momentum(tree: Tree, q: Vector, v: Vector) -> Vector:
    """Spatial momentum about the inertial origin, (3.3.35).

    Its shape is (6,), [linear; angular], kg m/s and kg m^2/s.
    """
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    carried = [
        mass.momentum(twist)
        for mass, twist in zip(
            regrouped(tree, links, seats), link_twists(links, steps, v), strict=True
        )
    ]
    for i in reversed(range(1, len(links))):
        parent = links[i].parent or 0
        moved = step_inwards(steps[i], carried[i])
        carried[parent] = carried[parent][0] + moved[0], carried[parent][1] + moved[1]
    return stacked(step_inwards(steps[0], carried[0]))


def moment_of_motion(tree: Tree, q: Vector, v: Vector, w: Vector) -> Array:
    """Sum of v x w dm, the velocities of each point for v and w (nv,), (3,), N m, in base axes."""
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    moments = []
    for mass, (linear, angular), (other, turning) in zip(
        regrouped(tree, links, seats),
        link_twists(links, steps, v),
        link_twists(links, steps, w),
        strict=True,
    ):
        own = mass.second @ cross(angular, turning) + cross(linear, cross(turning, mass.first))
        own -= cross(other, cross(angular, mass.first))
        if isinstance(mass.mass, ca.SX) or mass.mass:
            own += mass.mass * cross(linear, other)
        moments.append(own)
    for i in reversed(range(1, len(links))):
        moments[links[i].parent or 0] += steps[i].inwards(moments[i])
    return moments[0]


def inertial_wrenches(
    tree: Tree,
    links: list[Link],
    seats: list[Seat],
    steps: list[Step],
    v: Vector,
    vdot: Vector,
    followed: Vector | None = None,
) -> list[Twist]:
    """Wrench on each link, about its origin, that makes its regrouped mass move so."""
    motions = link_motions(links, steps, v, vdot, tree.gravity, followed)
    return [
        _inertial(mass, motion)
        for mass, motion in zip(regrouped(tree, links, seats), motions, strict=True)
    ]


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
    if isinstance(mass.mass, ca.SX) or mass.mass:
        force += mass.mass * motion.linear
    return force, ca.vertcat(*torque) + cross(first, motion.linear)


def momentum_matrix(tree: Tree, q: Vector) -> Array:
    """Matrix A of the spatial momentum about the inertial origin: A v, (3.3.35).

    Its shape is (6, nv), with rows [linear; angular], kg, kg m, kg m^2.
    """
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    whole = composites(regrouped(tree, links, seats), links, steps)
    frames: list[tuple[Array, Array]] = []
    columns = [ca.SX(6, 0)]
    for link, step, mass, basis in zip(links, steps, whole, link_bases(links), strict=True):
        if link.parent is None:
            frames.append((step.extended(ca.SX.eye(3)), step.offset))
        else:
            rotation, origin = frames[link.parent]
            frames.append((step.extended(rotation), origin + rotation @ step.offset))
        columns.append(_about_origin(*frames[-1], mass.momentum(basis)))
    return ca.horzcat(*columns)


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
