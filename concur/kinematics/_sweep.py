"""Recursions from the base outwards: poses, twists and accelerations of all bodies."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array
from concur.kinematics._motion import (
    Placed,
    Twist,
    bracket,
    compose,
    constant,
    twist_to_child,
)
from concur.mechanism import Tree


def joint_poses(tree: Tree, q: Array) -> list[Placed]:
    """Pose of each body in its parent's frame.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    list of tuple
        Rotation (3, 3) and translation (3,), m, for each body.
    """
    poses = []
    for body in tree.bodies:
        placement = constant(body.placement.rotation_matrix), constant(body.placement.translation)
        poses.append(compose(placement, body.joint.pose(q[tree.q_slice(body.name)])))
    return poses


def body_poses(tree: Tree, q: Array) -> list[Placed]:
    """Pose of each body in the inertial frame, (2.2.6) as a recursion.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    list of tuple
        Rotation (3, 3) and translation (3,), m, for each body.
    """
    placed: list[Placed] = []
    for i, relative in enumerate(joint_poses(tree, q)):
        parent = tree.parent_index(i)
        placed.append(relative if parent is None else compose(placed[parent], relative))
    return placed


def joint_bases(tree: Tree) -> list[Twist]:
    """Twist basis of each joint in its body's frame.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    list of tuple
        Linear and angular part, each (3, nv of the joint).
    """
    return [
        (constant(body.joint.basis[:3]), constant(body.joint.basis[3:])) for body in tree.bodies
    ]


def body_twists(tree: Tree, poses: list[Placed], v: Array) -> list[Twist]:
    """Body twist of each body relative to the inertial frame.

    Parameters
    ----------
    tree : Tree
        The robot.
    poses : list of tuple
        From `joint_poses`.
    v : casadi.SX
        Velocity, shape (nv,).

    Returns
    -------
    list of tuple
        Linear and angular velocity in body axes, each (3,), m/s and rad/s.
    """
    twists: list[Twist] = []
    for i, (pose, basis) in enumerate(zip(poses, joint_bases(tree), strict=True)):
        rates = v[tree.v_slice(tree.bodies[i].name), :]
        own = basis[0] @ rates, basis[1] @ rates
        parent = tree.parent_index(i)
        if parent is not None:
            carried = twist_to_child(pose, twists[parent])
            own = carried[0] + own[0], carried[1] + own[1]
        twists.append(own)
    return twists


def body_accelerations(
    tree: Tree,
    poses: list[Placed],
    twists: list[Twist],
    v: Array,
    vdot: Array,
    gravity: Array | None = None,
) -> list[Twist]:
    """Time derivative of each body twist, in body coordinates.

    Parameters
    ----------
    tree : Tree
        The robot.
    poses : list of tuple
        From `joint_poses`.
    twists : list of tuple
        From `body_twists`.
    v, vdot : casadi.SX
        Velocity and its derivative, shape (nv,).
    gravity : casadi.SX, optional
        Acceleration of gravity in the inertial frame, shape (3,), m/s^2: given, the inertial
        frame is taken to accelerate against it, which makes Newton-Euler include gravity.

    Returns
    -------
    list of tuple
        Linear and angular part, each (3,), m/s^2 and rad/s^2.
    """
    accelerations: list[Twist] = []
    ground = (ca.SX(3, 1) if gravity is None else -gravity, ca.SX(3, 1))
    for i, (pose, basis) in enumerate(zip(poses, joint_bases(tree), strict=True)):
        span = tree.v_slice(tree.bodies[i].name)
        own = basis[0] @ v[span, :], basis[1] @ v[span, :]
        parent = tree.parent_index(i)
        carried = twist_to_child(pose, ground if parent is None else accelerations[parent])
        turned = bracket(twists[i], own)
        accelerations.append(
            (
                carried[0] + basis[0] @ vdot[span, :] + turned[0],
                carried[1] + basis[1] @ vdot[span, :] + turned[1],
            )
        )
    return accelerations
