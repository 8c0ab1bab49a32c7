"""A factor C of the Coriolis forces with Mdot = C + C^T.

With body Jacobians J, C = sum J^T (I Jdot + B J), where B is skew and B V gives the
gyroscopic wrench of a body; the sum runs over composite bodies as for the mass matrix.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector
from concur.groups import so3
from concur.robot._body_inertia import BodyInertia, body_inertias, composite_inertias
from concur.robot._motion import Placed, Twist, bracket, invert, stacked
from concur.robot._sweep import body_twists, joint_bases, joint_poses
from concur.robot._tree import Tree


def coriolis(tree: Tree, q: Vector, v: Vector) -> Array:
    """Coriolis factor, shape (nv, nv): C v + gravity forces = bias and Mdot = C + C^T."""
    poses, bases = joint_poses(tree, q), joint_bases(tree)
    twists = body_twists(tree, poses, v)
    parents = [tree.parent_index(i) for i in range(len(tree.bodies))]
    inertias = body_inertias(tree, "coriolis")
    composite = composite_inertias(inertias, poses, parents)
    gyroscopic = [_gyroscopic(i, t) for i, t in zip(inertias, twists, strict=True)]
    for i in reversed(range(len(poses))):
        parent = parents[i]
        if parent is not None:
            transform = _adjoint_inverse(poses[i])
            gyroscopic[parent] = gyroscopic[parent] + transform.T @ gyroscopic[i] @ transform

    columns = [stacked(basis) for basis in bases]
    rates = [stacked(bracket(t, basis)) for t, basis in zip(twists, bases, strict=True)]
    spans = [tree.v_slice(body.name) for body in tree.bodies]
    factor = ca.SX(tree.nv, tree.nv)
    for i, span in enumerate(spans):
        inertia = composite[i].matrix()
        moved = ca.SX.eye(6)
        j: int | None = i
        while j is not None:
            column, rate = moved @ columns[j], moved @ rates[j]
            factor[span, spans[j]] = columns[i].T @ (inertia @ rate + gyroscopic[i] @ column)
            if j != i:
                factor[spans[j], span] = column.T @ (
                    inertia @ rates[i] + gyroscopic[i] @ columns[i]
                )
            moved, j = moved @ _adjoint_inverse(poses[j]), parents[j]
    return factor


def _gyroscopic(inertia: BodyInertia, twist: Twist) -> Array:
    """B - I ad_V: what multiplies the Jacobian once its own rate is split off."""
    linear, angular = inertia.momentum(twist)
    p, h = so3.skew(linear), so3.skew(angular)
    skew_part = -ca.vertcat(ca.horzcat(ca.SX(3, 3), p), ca.horzcat(p, h))
    v, w = so3.skew(twist[0]), so3.skew(twist[1])
    ad = ca.vertcat(ca.horzcat(w, v), ca.horzcat(ca.SX(3, 3), w))
    return skew_part - inertia.matrix() @ ad


def _adjoint_inverse(pose: Placed) -> Array:
    """Matrix (6, 6) of `twist_to_child`."""
    rotation, translation = invert(pose)
    return ca.vertcat(
        ca.horzcat(rotation, so3.skew(translation) @ rotation), ca.horzcat(ca.SX(3, 3), rotation)
    )
