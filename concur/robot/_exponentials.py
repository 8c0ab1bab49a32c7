"""Forward kinematics by the product of exponentials, and its Jacobians.

Configurations are screw parameters s, shape (nv,), m and rad, stacked like the velocities v:
joint j moves by exp(basis s_j) from the neutral configuration. All twists are spatial, [linear;
angular], and seen in the inertial frame unless said otherwise; `jacobian` has the body form in v.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.groups import se3
from concur.robot._screw import admissible, is_abelian, kernel
from concur.robot._tree import Tree


def joint_screws(tree: Tree) -> list[np.ndarray]:
    """Twist bases (6, nv of the joint) at the neutral configuration, seen in the inertial frame.

    For each body this is T_j = Ad_(r_j,0^0) B_j of (2.2.6).
    """
    return [
        se3.adjoint(pose) @ body.joint.basis
        for pose, body in zip(_neutral_poses(tree), tree.bodies, strict=True)
    ]


def product_of_exponentials(tree: Tree, s: Vector, body: str) -> Array:
    """Pose of a body by the product of exponentials, (2.2.6).

    The homogeneous matrix (4, 4), body to world, m, is exp(T_1 s_1) ... exp(T_m s_m) r_m,0^0.
    """
    index = tree.index(body)
    return _displacements(tree, s)[index] @ constant(_neutral_poses(tree)[index])


def screw_jacobian(
    tree: Tree,
    s: Vector,
    body: str,
    seen_from: str | None = None,
    relative_to: str | None = None,
) -> Array:
    """Map from the rate of the screw parameters to the spatial twist of a body, (2.3.7).

    The columns of joint j are exp(ad_T1s1) ... exp(ad_Tj-1sj-1) F(T_j s_j) T_j, with the
    differential F of the exponential, `dexp_spatial`. They do not depend on the joints
    after j.

    Parameters
    ----------
    tree : Tree
        The robot.
    s : casadi.SX
        Screw parameters of all joints, shape (nv,), m and rad.
    body : str
        Name of the body.
    seen_from : str, optional
        Body in whose frame the twist is expressed, (2.3.11): `body` itself gives the body
        twist. Default the inertial frame.
    relative_to : str, optional
        Body relative to which the motion is meant, (2.3.12) where it is one on the path.
        Default the inertial frame.

    Returns
    -------
    casadi.SX
        Shape (6, nv), [linear; angular]; zero columns for joints that do not take part.
    """
    path = tree.path(tree.index(body))
    start = () if relative_to is None else tree.path(tree.index(relative_to))
    # What carries both bodies alike cancels, also where they sit on different branches.
    own = [i for i in path if i not in start]
    others = [i for i in start if i not in path]
    screws, displacements = joint_screws(tree), _displacements(tree, s)
    columns = ca.SX(6, tree.nv)
    for joints, sign in ((own, 1.0), (others, -1.0)):
        for i in joints:
            span, before = tree.v_slice(tree.bodies[i].name), tree.parent_index(i)
            column = sign * constant(screws[i])
            if not is_abelian(tree.bodies[i].joint):
                column = se3.dexp_spatial(constant(screws[i]) @ s[span, :]) @ column
            if before is not None:
                column = se3.adjoint(displacements[before]) @ column
            columns[:, span] = column
    if seen_from is None:
        return columns
    observer = product_of_exponentials(tree, s, seen_from)
    return se3.adjoint(se3.inverse(observer)) @ columns


def modified_jacobian(
    tree: Tree, s: Vector, body: str, rows: Mapping[str, Any] | None = None
) -> Array:
    """Map from admissible velocities to the spatial twist of a body, (2.3.13).

    Parameters
    ----------
    tree : Tree
        The robot.
    s : casadi.SX
        Screw parameters of all joints, shape (nv,), m and rad.
    body : str
        Name of the body.
    rows : mapping of str to array_like, optional
        Constraint on the body twist of a joint, shape (f, nv of the joint), by the name of its
        body, see `admissible`. A joint that is not named has its sdot as velocity.

    Returns
    -------
    casadi.SX
        Shape (6, n), [linear; angular]: J diag(Sigma_1, ..., Sigma_N), with zero columns for
        joints that are not on the path.
    """
    return screw_jacobian(tree, s, body) @ _admissible_rates(tree, s, rows or {})


def stacked_jacobian(
    tree: Tree, s: Vector, bodies: Sequence[str], rows: Mapping[str, Any] | None = None
) -> Array:
    """Map from admissible velocities to the spatial twists of several bodies.

    Joints that carry several of the bodies have their columns once: this is the derivative of
    the forward kinematics along admissible motions. Use it for every question of rank. The shape is
    (6 bodies, n), a row block per body; `rows` are as in `modified_jacobian`.
    """
    rates = _admissible_rates(tree, s, rows or {})
    return ca.vertcat(*[screw_jacobian(tree, s, body) for body in bodies]) @ rates


def branch_jacobians(
    tree: Tree, s: Vector, bodies: Sequence[str], rows: Mapping[str, Any] | None = None
) -> Array:
    """Block-diagonal array of the modified Jacobians of branches, as printed with (2.3.13).

    Each block has the joints of one branch only, and the velocities of joints that several
    branches share are repeated, once per branch. Beware: a map with this matrix lets a shared
    joint move in one way for one branch and in another for the next, so its rank is not that
    of the robot. In the case study of section 2.5 it is 12, while the two tips, one joint
    each on one arm, have only 8 independent twists; `stacked_jacobian` has that rank. The bodies
    are those at the ends of the branches; the shape is (6 bodies, sum of the branches' velocities).
    """
    constraints = rows or {}
    spans = _admissible_spans(tree, constraints)
    blocks = []
    for body in bodies:
        own = [k for i in tree.path(tree.index(body)) for k in spans[i]]
        blocks.append(modified_jacobian(tree, s, body, constraints)[:, own])
    return ca.diagcat(*blocks)


def _neutral_poses(tree: Tree) -> list[np.ndarray]:
    """Pose (4, 4) of each body in the inertial frame at the neutral configuration."""
    poses: list[np.ndarray] = []
    for i, body in enumerate(tree.described("product of exponentials")):
        parent = tree.parent_index(i)
        own = body.placement.matrix
        poses.append(own if parent is None else poses[parent] @ own)
    return poses


def _displacements(tree: Tree, s: Vector) -> list[Array]:
    """Product exp(T_1 s_1) ... exp(T_i s_i) along the path to each body, (4, 4)."""
    products: list[Array] = []
    for i, (body, screw) in enumerate(zip(tree.bodies, joint_screws(tree), strict=True)):
        own = se3.exp(constant(screw) @ s[tree.v_slice(body.name), :])
        parent = tree.parent_index(i)
        products.append(own if parent is None else products[parent] @ own)
    return products


def _admissible_rates(tree: Tree, s: Vector, rows: Mapping[str, Any]) -> Array:
    """diag(Sigma_1, ..., Sigma_N), shape (nv, n)."""
    for name in rows:
        tree.index(name)
    blocks = []
    for body in tree.bodies:
        own = s[tree.v_slice(body.name), :]
        free = body.name not in rows
        blocks.append(
            ca.SX.eye(body.joint.nv) if free else admissible(body.joint, own, rows[body.name])
        )
    return ca.diagcat(*blocks)


def _admissible_spans(tree: Tree, rows: Mapping[str, Any]) -> list[range]:
    """Where the admissible velocities of each joint stand among those of the robot."""
    spans, start = [], 0
    for body in tree.bodies:
        count = body.joint.nv
        if body.name in rows:
            count = kernel(rows[body.name], count).shape[1]
        spans.append(range(start, start + count))
        start += count
    return spans
