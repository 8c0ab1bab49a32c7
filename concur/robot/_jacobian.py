"""Body Jacobians and velocity-product accelerations."""

from __future__ import annotations

import functools

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._motion import Placed, Twist, compose, stacked, twist_to_child
from concur.robot._sweep import (
    AT_REST,
    body_acceleration,
    body_twist,
    joint_basis,
    joint_pose,
)
from concur.robot._tree import Tree


def pose(tree: Tree, q: Vector, body: str) -> Array:
    """Pose of a body in the inertial frame: homogeneous matrix (4, 4), m."""
    path = tree.path(tree.index(body))
    rotation, translation = functools.reduce(compose, (joint_pose(tree, q, i) for i in path))
    bottom = constant([[0.0, 0.0, 0.0, 1.0]])
    return ca.vertcat(ca.horzcat(rotation, translation), bottom)


def jacobian(tree: Tree, q: Vector, body: str, ancestor: str | None = None) -> Array:
    """Map (6, nv) from joint velocities to the body twist, [linear; angular] in the body's axes.

    Body form of (2.3.7): the columns of joint j are Ad_(r_j^m) B_j. The motion is relative to
    `ancestor`, a body on the path; default the inertial frame.
    """
    path = tree.path(tree.index(body))
    if ancestor is not None:
        path = path[path.index(tree.index(ancestor)) + 1 :]
    columns = ca.SX(3, tree.nv), ca.SX(3, tree.nv)
    # From the body inwards: each column is turned once, however long the path is.
    seen = ca.SX.eye(3), ca.SX(3, 1)
    for i in reversed(path):
        span = tree.v_slice(tree.bodies[i].name)
        columns[0][:, span], columns[1][:, span] = twist_to_child(seen, joint_basis(tree, i))
        seen = compose(joint_pose(tree, q, i), seen)
    return ca.sparsify(stacked(columns))


def motion_from(
    tree: Tree, q: Vector, v: Vector, vdot: Vector, body: str, ancestor: str | None = None
) -> tuple[Placed, Twist, Twist]:
    """Pose, twist and rate of the twist of a body relative to a body on its path.

    Without `ancestor` they are relative to the inertial frame. The pose is in the ancestor's frame,
    m; twist and rate are in the body's axes, m/s, rad/s and m/s^2, rad/s^2.
    """
    path = tree.path(tree.index(body))
    if ancestor is not None:
        path = path[path.index(tree.index(ancestor)) + 1 :]
    seen: Placed = ca.SX.eye(3), ca.SX(3, 1)
    own = rate = AT_REST
    for i in path:
        moved = joint_pose(tree, q, i)
        seen = compose(seen, moved)
        own = body_twist(tree, i, moved, v, own)
        rate = body_acceleration(tree, i, moved, own, v, vdot, rate)
    return seen, own, rate


def twist(tree: Tree, q: Vector, v: Vector, body: str) -> Array:
    """Body twist of a body relative to the inertial frame.

    Its shape is (6,), [linear; angular] in the body's axes, m/s and rad/s.
    """
    own = AT_REST
    for i in tree.path(tree.index(body)):
        own = body_twist(tree, i, joint_pose(tree, q, i), v, own)
    return stacked(own)


def velocity_product(tree: Tree, q: Vector, v: Vector, body: str) -> Array:
    """Acceleration of a body at zero joint accelerations: Jdot v.

    This derivative of the body twist has shape (6,), [linear; angular], m/s^2 and rad/s^2.
    """
    still = ca.SX(tree.nv, 1)
    own = rate = AT_REST
    for i in tree.path(tree.index(body)):
        moved = joint_pose(tree, q, i)
        own = body_twist(tree, i, moved, v, own)
        rate = body_acceleration(tree, i, moved, own, v, still, rate)
    return stacked(rate)
