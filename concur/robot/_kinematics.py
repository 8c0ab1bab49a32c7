"""Poses, Jacobians and motions of bodies, in the frames of the description."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._spatial import Placed, Twist, bracket, compose, plus, stacked, twist_to_child
from concur.robot._tree import Tree

HERE: Placed = (ca.SX.eye(3), ca.SX(3, 1))
"""Pose of a frame in itself, with structural zeros."""

AT_REST: Twist = (ca.SX(3, 1), ca.SX(3, 1))
"""Twist of the inertial frame, with structural zeros."""


def joint_pose(tree: Tree, q: Vector, index: int) -> Placed:
    """Pose of one body in its parent's frame: rotation (3, 3) and translation (3,), m."""
    own = tree.bodies[index].joint.pose(q[tree.q_spans[index], :])
    return compose(tree.terms.placements[index], own)


def joint_basis(tree: Tree, index: int) -> Twist:
    """Twist basis of one joint in its body's frame, parts (3, nv of the joint)."""
    basis = tree.bodies[index].joint.basis
    return constant(basis[:3]), constant(basis[3:])


def placed_along(tree: Tree, q: Vector, joints: Iterable[int]) -> Placed:
    """Pose in the frame before the first of some joints, one after the other, of the last body."""
    return functools.reduce(compose, (joint_pose(tree, q, i) for i in joints), HERE)


def way_to(tree: Tree, body: str, ancestor: str | None = None) -> tuple[int, ...]:
    """Joints between a body on the path to another, default the inertial frame, and this body."""
    path = tree.paths[tree.index(body)]
    return path if ancestor is None else path[path.index(tree.index(ancestor)) + 1 :]


def pose(tree: Tree, q: Vector, body: str) -> Array:
    """Pose of a body in the inertial frame: homogeneous matrix (4, 4), m."""
    placed = placed_along(tree, q, way_to(tree, body))
    return ca.vertcat(ca.horzcat(*placed), constant([[0.0, 0.0, 0.0, 1.0]]))


def jacobian(tree: Tree, q: Vector, body: str, ancestor: str | None = None) -> Array:
    """Map (6, nv) from joint velocities to the body twist, [linear; angular] in the body's axes.

    Body form of (2.3.7): the columns of joint j are Ad_(r_j^m) B_j. The motion is relative to
    `ancestor`, a body on the path; default the inertial frame.
    """
    columns = ca.SX(3, tree.nv), ca.SX(3, tree.nv)
    # From the body inwards: each column is turned once, however long the path is.
    seen = HERE
    for i in reversed(way_to(tree, body, ancestor)):
        span = tree.v_spans[i]
        columns[0][:, span], columns[1][:, span] = twist_to_child(seen, joint_basis(tree, i))
        seen = compose(joint_pose(tree, q, i), seen)
    return ca.sparsify(stacked(columns))


def motion_from(
    tree: Tree,
    q: Vector,
    v: Vector,
    vdot: Vector | None,
    body: str,
    ancestor: str | None = None,
) -> tuple[Placed, Twist, Twist]:
    """Pose, twist and rate of the twist of a body relative to a body on its path.

    Without `ancestor` they are relative to the inertial frame, without joint accelerations vdot the
    rate is Jdot v. The pose is in the ancestor's frame, m; twist and rate are in the body's axes,
    m/s, rad/s and m/s^2, rad/s^2.
    """
    seen, twist, rate = HERE, AT_REST, AT_REST
    for i in way_to(tree, body, ancestor):
        moved, (linear, angular), span = (
            joint_pose(tree, q, i),
            joint_basis(tree, i),
            tree.v_spans[i],
        )
        seen = compose(seen, moved)
        own = linear @ v[span, :], angular @ v[span, :]
        twist = plus(twist_to_child(moved, twist), own)
        rate = twist_to_child(moved, rate)
        if vdot is not None:
            rate = plus(rate, (linear @ vdot[span, :], angular @ vdot[span, :]))
        rate = plus(rate, bracket(twist, own))
    return seen, twist, rate


def along_controls(tree: Tree, q: Vector, columns: Array) -> Array:
    """Velocities of the motors and thrusters, B^T columns, for velocities (nv, k) of the joints.

    A motor turns with the sum of its joints' velocities times the ratios; a thruster moves with the
    component of its body's twist along its wrench. So the power of the controls is ``u^T B^T v``.
    """
    rows = columns[list(tree.actuated_freedoms), :]
    for motor, ratios in zip(tree.motors, tree.terms.ratios, strict=True):
        if not motor.ratios:
            along = constant(motor.at_origin).T @ jacobian(tree, q, str(motor.body))
            row = along @ columns
        else:
            places = [tree.freedom_names.index(name) for name in motor.ratios]
            row = ratios.T @ columns[places, :]
        rows = ca.vertcat(rows, row)
    return rows
