"""Recursions from the base outwards: poses, twists and accelerations of all bodies."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._motion import Placed, Twist, bracket, compose, twist_to_child
from concur.robot._tree import Tree

AT_REST: Twist = (ca.SX(3, 1), ca.SX(3, 1))
"""Twist of the inertial frame, with structural zeros."""


def joint_poses(tree: Tree, q: Vector) -> list[Placed]:
    """Pose of each body in its parent's frame: rotation (3, 3) and translation (3,), m."""
    return [joint_pose(tree, q, i) for i in range(len(tree.bodies))]


def joint_pose(tree: Tree, q: Vector, index: int) -> Placed:
    """Pose of one body in its parent's frame: rotation (3, 3) and translation (3,), m."""
    body = tree.bodies[index]
    return compose(placement(tree, index), body.joint.pose(q[tree.q_slice(body.name), :]))


def placement(tree: Tree, index: int) -> Placed:
    """Frame of a body's joint at its identity in the parent's frame: rotation, translation, m."""
    pose, given = tree.bodies[index].placement, tree.numbers
    if given is None:
        return constant(pose.rotation_matrix), constant(pose.translation)
    return constant(given.attitudes[index]), constant(given.places[index])


def body_poses(tree: Tree, q: Vector) -> list[Placed]:
    """Pose of each body in the inertial frame, m, (2.2.6) as a recursion."""
    placed: list[Placed] = []
    for i, relative in enumerate(joint_poses(tree, q)):
        parent = tree.parent_index(i)
        placed.append(relative if parent is None else compose(placed[parent], relative))
    return placed


def joint_bases(tree: Tree) -> list[Twist]:
    """Twist basis of each joint in its body's frame, parts (3, nv of the joint)."""
    return [joint_basis(tree, i) for i in range(len(tree.bodies))]


def joint_basis(tree: Tree, index: int) -> Twist:
    """Twist basis of one joint in its body's frame, parts (3, nv of the joint)."""
    basis = tree.bodies[index].joint.basis
    return constant(basis[:3]), constant(basis[3:])


def body_twists(tree: Tree, poses: list[Placed], v: Vector) -> list[Twist]:
    """Body twist of each body relative to the inertial frame, for poses from `joint_poses`.

    The parts are linear and angular velocity in body axes, each (3,), m/s and rad/s.
    """
    twists: list[Twist] = []
    for i, pose in enumerate(poses):
        parent = tree.parent_index(i)
        twists.append(body_twist(tree, i, pose, v, AT_REST if parent is None else twists[parent]))
    return twists


def body_twist(tree: Tree, index: int, pose: Placed, v: Vector, parent: Twist) -> Twist:
    """Body twist of one body, from its pose in its parent and the parent's twist."""
    basis, rates = joint_basis(tree, index), v[tree.v_slice(tree.bodies[index].name), :]
    own = basis[0] @ rates, basis[1] @ rates
    carried = twist_to_child(pose, parent)
    return carried[0] + own[0], carried[1] + own[1]


def body_accelerations(
    tree: Tree,
    poses: list[Placed],
    twists: list[Twist],
    v: Vector,
    vdot: Vector,
    gravity: Array | None = None,
) -> list[Twist]:
    """Time derivative of each body twist, in body coordinates, m/s^2 and rad/s^2.

    The poses come from `joint_poses` and the twists from `body_twists`. If `gravity` is given, in
    the inertial frame, shape (3,), m/s^2, that frame is taken to accelerate against it, which
    makes Newton-Euler include gravity.
    """
    accelerations: list[Twist] = []
    ground = AT_REST if gravity is None else (-gravity, ca.SX(3, 1))
    for i, (pose, twist) in enumerate(zip(poses, twists, strict=True)):
        parent = tree.parent_index(i)
        before = ground if parent is None else accelerations[parent]
        accelerations.append(body_acceleration(tree, i, pose, twist, v, vdot, before))
    return accelerations


def body_acceleration(
    tree: Tree, index: int, pose: Placed, twist: Twist, v: Vector, vdot: Vector, parent: Twist
) -> Twist:
    """Time derivative of one body's twist, from the twist and from its parent's derivative."""
    basis, span = joint_basis(tree, index), tree.v_slice(tree.bodies[index].name)
    own = basis[0] @ v[span, :], basis[1] @ v[span, :]
    carried, turned = twist_to_child(pose, parent), bracket(twist, own)
    return (
        carried[0] + basis[0] @ vdot[span, :] + turned[0],
        carried[1] + basis[1] @ vdot[span, :] + turned[1],
    )
