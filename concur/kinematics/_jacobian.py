"""Body Jacobians and velocity-product accelerations."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array
from concur.kinematics._motion import compose, stacked, twist_to_child
from concur.kinematics._sweep import (
    body_accelerations,
    body_poses,
    body_twists,
    joint_bases,
    joint_poses,
)
from concur.mechanism import Tree


def pose(tree: Tree, q: Array, body: str) -> Array:
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
    rotation, translation = body_poses(tree, q)[tree.index(body)]
    bottom = ca.SX(ca.sparsify(ca.DM([[0.0, 0.0, 0.0, 1.0]])))
    return ca.vertcat(ca.horzcat(rotation, translation), bottom)


def jacobian(tree: Tree, q: Array, body: str, ancestor: str | None = None) -> Array:
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
    poses, bases = joint_poses(tree, q), joint_bases(tree)
    path = tree.path(tree.index(body))
    if ancestor is not None:
        path = path[path.index(tree.index(ancestor)) + 1 :]
    columns = ca.SX(3, tree.nv), ca.SX(3, tree.nv)
    # From the body inwards: each column is turned once, however long the path is.
    seen = ca.SX.eye(3), ca.SX(3, 1)
    for i in reversed(path):
        span = tree.v_slice(tree.bodies[i].name)
        columns[0][:, span], columns[1][:, span] = twist_to_child(seen, bases[i])
        seen = compose(poses[i], seen)
    return ca.sparsify(stacked(columns))


def twist(tree: Tree, q: Array, v: Array, body: str) -> Array:
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
    return stacked(body_twists(tree, joint_poses(tree, q), v)[tree.index(body)])


def velocity_product(tree: Tree, q: Array, v: Array, body: str) -> Array:
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
    poses = joint_poses(tree, q)
    twists = body_twists(tree, poses, v)
    accelerations = body_accelerations(tree, poses, twists, v, ca.SX(tree.nv, 1))
    return stacked(accelerations[tree.index(body)])
