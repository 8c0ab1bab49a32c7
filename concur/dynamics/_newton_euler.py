"""Inverse dynamics by the Newton-Euler recursion, and momentum."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array
from concur.dynamics._body_inertia import BodyInertia
from concur.kinematics import (
    Twist,
    body_accelerations,
    body_twists,
    constant,
    cross,
    joint_bases,
    joint_poses,
    stacked,
    wrench_to_parent,
)
from concur.mechanism import Tree


def inverse_dynamics(tree: Tree, q: Array, v: Array, vdot: Array) -> Array:
    """Joint forces that make the robot accelerate: M vdot + bias.

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v, vdot : casadi.SX
        Configuration, velocity and its derivative, shapes (nq,), (nv,), (nv,).

    Returns
    -------
    casadi.SX
        Generalised forces, shape (nv,), N and N m.
    """
    poses, bases = joint_poses(tree, q), joint_bases(tree)
    twists = body_twists(tree, poses, v)
    gravity = constant(tree.gravity)
    accelerations = body_accelerations(tree, poses, twists, v, vdot, gravity)
    wrenches: list[Twist] = []
    for body, twist, acceleration in zip(tree.bodies, twists, accelerations, strict=True):
        inertia = BodyInertia.of(body.inertia)
        force, torque = inertia.momentum(acceleration)
        linear, angular = inertia.momentum(twist)
        wrenches.append(
            (
                force + cross(twist[1], linear),
                torque + cross(twist[1], angular) + cross(twist[0], linear),
            )
        )
    forces: list[Array] = [ca.SX(0, 1)] * len(tree.bodies)
    for i in reversed(range(len(tree.bodies))):
        forces[i] = bases[i][0].T @ wrenches[i][0] + bases[i][1].T @ wrenches[i][1]
        parent = tree.parent_index(i)
        if parent is not None:
            carried = wrench_to_parent(poses[i], wrenches[i])
            wrenches[parent] = (
                wrenches[parent][0] + carried[0],
                wrenches[parent][1] + carried[1],
            )
    return ca.vertcat(*forces)


def bias(tree: Tree, q: Array, v: Array) -> Array:
    """Coriolis, centrifugal and gravity forces: M vdot + bias = tau.

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v : casadi.SX
        Configuration and velocity, shapes (nq,) and (nv,).

    Returns
    -------
    casadi.SX
        Shape (nv,), N and N m.
    """
    return inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1))


def momentum(tree: Tree, q: Array, v: Array) -> Array:
    """Spatial momentum about the inertial origin, (3.3.35).

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v : casadi.SX
        Configuration and velocity, shapes (nq,) and (nv,).

    Returns
    -------
    casadi.SX
        Shape (6,), [linear; angular], kg m/s and kg m^2/s.
    """
    poses = joint_poses(tree, q)
    twists = body_twists(tree, poses, v)
    carried = [
        BodyInertia.of(body.inertia).momentum(twist)
        for body, twist in zip(tree.bodies, twists, strict=True)
    ]
    for i in reversed(range(1, len(carried))):
        parent = tree.parent_index(i) or 0
        moved = wrench_to_parent(poses[i], carried[i])
        carried[parent] = carried[parent][0] + moved[0], carried[parent][1] + moved[1]
    return stacked(wrench_to_parent(poses[0], carried[0]))
