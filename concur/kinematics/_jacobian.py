"""Body Jacobians and velocity-product accelerations."""

from __future__ import annotations

import functools

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.kinematics._motion import compose, stacked, twist_to_child
from concur.kinematics._sweep import (
    AT_REST,
    body_acceleration,
    body_twist,
    joint_basis,
    joint_pose,
)
from concur.mechanism import Tree


def pose(tree: Tree, q: Vector, body: str) -> Array:
    """Pose of a body in the inertial frame.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).
    body : str
        Name of the body.

    Returns
    -------
    casadi.SX
        Homogeneous matrix (4, 4), m.
    """
    path = tree.path(tree.index(body))
    rotation, translation = functools.reduce(compose, (joint_pose(tree, q, i) for i in path))
    bottom = constant([[0.0, 0.0, 0.0, 1.0]])
    return ca.vertcat(ca.horzcat(rotation, translation), bottom)


def jacobian(tree: Tree, q: Vector, body: str, ancestor: str | None = None) -> Array:
    """Map from joint velocities to the body twist of a body.

    Body form of (2.3.7): the columns of joint j are Ad_(r_j^m) B_j.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : casadi.SX
        Configuration, shape (nq,).
    body : str
        Name of the body.
    ancestor : str, optional
        Body on the path relative to which the motion is meant; default the inertial frame.

    Returns
    -------
    casadi.SX
        Shape (6, nv), [linear; angular] in the body's axes.
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


def twist(tree: Tree, q: Vector, v: Vector, body: str) -> Array:
    """Body twist of a body relative to the inertial frame.

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v : casadi.SX
        Configuration and velocity, shapes (nq,) and (nv,).
    body : str
        Name of the body.

    Returns
    -------
    casadi.SX
        Shape (6,), [linear; angular] in the body's axes, m/s and rad/s.
    """
    own = AT_REST
    for i in tree.path(tree.index(body)):
        own = body_twist(tree, i, joint_pose(tree, q, i), v, own)
    return stacked(own)


def velocity_product(tree: Tree, q: Vector, v: Vector, body: str) -> Array:
    """Acceleration of a body at zero joint accelerations: Jdot v.

    Parameters
    ----------
    tree : Tree
        The robot.
    q, v : casadi.SX
        Configuration and velocity, shapes (nq,) and (nv,).
    body : str
        Name of the body.

    Returns
    -------
    casadi.SX
        Derivative of the body twist, shape (6,), [linear; angular], m/s^2 and rad/s^2.
    """
    still = ca.SX(tree.nv, 1)
    own = rate = AT_REST
    for i in tree.path(tree.index(body)):
        moved = joint_pose(tree, q, i)
        own = body_twist(tree, i, moved, v, own)
        rate = body_acceleration(tree, i, moved, own, v, still, rate)
    return stacked(rate)
