"""Rows of constraints: the contact point of a wheel does not move, and joints follow others.

The rows of a wheel are written in the frame of the body that carries it: there neither the axle nor
the contact depends on how far the wheel has turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.errors import WheelError
from concur.robot._kinematics import jacobian, joint_pose, placed_along
from concur.robot._numbers import Rim
from concur.robot._pose import shortest_rotation
from concur.robot._spatial import compose, cross, invert, stacked, twist_to_child
from concur.robot._tree import Tree
from concur.robot._wheel import BALLS, Support, Wheel
from concur.robot.joints import Joint, Planar, Sliding, Spherical


@dataclass(frozen=True)
class WheelRows:
    """Rolling constraints of one wheel.

    Parameters
    ----------
    names : tuple of str
        One per row, longitudinal rows first.
    rows : casadi.SX
        Constraint rows, shape (k, nv): rows @ v = 0.
    normal_row : casadi.SX
        Velocity of the contact point along the normal, shape (1, nv); zero for a wheel that
        stays on its plane.
    upright : casadi.SX
        Sine of the angle between axle and normal; zero when the wheel lies flat.
    height : casadi.SX
        Height of the contact point along the normal, from the plane the platform's origin moves
        on, m; the gap if the wheel has a `support`.
    face : casadi.SX
        Above zero if the edge of a disk, not its flat face, is what touches a sphere, m.
    point : casadi.SX
        Contact point in the platform's frame, or in that of the `support`, shape (3,), m.
    """

    names: tuple[str, ...]
    rows: Array
    normal_row: Array
    upright: Array
    height: Array
    face: Array
    point: Array


def plane_normal(tree: Tree, platform: int = 0) -> np.ndarray:
    """Unit normal (3,) of the plane a platform moves on, in its own axes.

    Raises a `WheelError` if its joint is neither planar nor sliding.
    """
    joint = tree.bodies[platform].joint
    if not isinstance(joint, Planar | Sliding):
        raise WheelError(
            f"robot `{tree.name}`, base `{tree.base.name}`",
            expected="a Planar or Sliding joint under a robot with wheels",
            came=type(joint).__name__,
            cure="Wheels roll on the plane the base moves in: describe the base by Planar(normal), "
            "or by Sliding(normal) if it never turns. Wheels on a hull that moves need such a "
            "joint between the hull and the body that stands on them.",
        )
    return np.array(joint.normal)


def wheel_axis(tree: Tree, wheel: Wheel) -> np.ndarray:
    """Axis of a wheel in its body's frame, a unit vector (3,).

    A ball has no axis: the z axis is drawn. Raises a `WheelError` if a rolling wheel's joint does
    not turn about that axis through its centre, or that of a ball not about every axis.
    """
    body = tree.bodies[tree.index(wheel.body)]
    joint: Joint = body.joint
    where = f"robot `{tree.name}`, wheel `{wheel.body}`"
    if wheel.support is not None and (wheel.axis is not None or wheel.kind in BALLS):
        return np.array((0.0, 0.0, 1.0) if wheel.axis is None else wheel.axis)
    if wheel.kind == "slider":
        return np.array(wheel.axis)
    if wheel.kind in BALLS:
        _check_ball(where, joint, wheel)
        return np.array([0.0, 0.0, 1.0])
    spins = joint.nv == 1 and np.linalg.norm(joint.basis[3:, 0]) > 0.0
    if not spins or np.abs(joint.basis[:3, 0]).max() > 0.0:
        raise WheelError(
            where,
            expected="a Revolute joint about the wheel axis",
            came=type(joint).__name__,
            cure="Put the wheel on a separate body with a Revolute joint, or give `axis` if it "
            "rolls on a `support`.",
        )
    turning = joint.basis[3:, 0]
    axis = turning if wheel.axis is None else np.array(wheel.axis)
    center = np.array(wheel.center)
    if np.linalg.norm(np.cross(axis, turning)) > 1e-9:
        raise WheelError(
            f"{where}, `axis`",
            expected=f"the axis of its joint, {tuple(turning.tolist())}",
            came=str(tuple(axis.tolist())),
            cure="Leave `axis` out: the joint's axis is taken.",
        )
    # Rounding of the centre's own digits, whatever the unit of length is.
    if np.linalg.norm(np.cross(center, turning)) > 1e-8 * wheel.radius:
        raise WheelError(
            f"{where}, `center`",
            expected="a point on the joint's axis",
            came=str(tuple(center.tolist())),
            cure="Move the joint frame to the axle, or the centre along it.",
        )
    return axis


def _check_ball(where: str, joint: Joint, wheel: Wheel) -> None:
    if not isinstance(joint, Spherical):
        raise WheelError(
            where,
            expected="a Spherical joint about the centre of the ball",
            came=type(joint).__name__,
            cure="Put the ball on a separate body with a Spherical joint; one that rolls alone "
            "sits on a base without mass on a Sliding joint.",
        )
    if np.abs(wheel.center).max() > 0.0:
        raise WheelError(
            f"{where}, `center`",
            expected="the origin of the ball's joint, about which it turns",
            came=str(tuple(wheel.center)),
            cure="Move the joint frame to the centre of the ball; where its mass lies is the "
            "matter of `com`.",
        )


def wheel_rows(tree: Tree, q: Vector, wheel: Wheel) -> WheelRows:
    """Constraint rows of one wheel, with geometric checks.

    With axle a, normal n, t = a x n / |a x n| and e the direction from contact to centre,
    the contact point moves with W v, W = J_v(centre) + radius [e]x J_w; a disk has the rows
    t W and (n x t) W. A ball has e = n and rows along both axes of the plane; that of rubber
    does not turn about n either. The base moves on a plane.
    """
    rim = Rim.of(wheel) if tree._bound else tree.terms.rims[tree.wheels.index(wheel)]
    if wheel.support is not None:
        return _supported_rows(tree, q, wheel, wheel.support, rim)
    index, own_axis = tree.index(wheel.body), wheel_axis(tree, wheel)
    platform = tree.platform(wheel)
    plane = shortest_rotation(plane_normal(tree, platform).tolist())
    # The body in whose frame the rows are written, and the wheel in it at the angle zero.
    carrier, center = index, rim.center
    if wheel.kind != "slider":
        carrier = tree.parents[index] or 0
        turn, place = tree.terms.placements[index]
        center = place + turn @ rim.center
    path = tree.paths[carrier]
    rotation, origin = placed_along(tree, q, path[path.index(platform) + 1 :])
    moves_on = tree.bodies[platform].parent
    columns = jacobian(tree, q, tree.bodies[carrier].name, moves_on)
    angular, own = columns[3:, :], tree.v_spans[index]
    at_center = columns[:3, :] - cross(center, angular)
    normal = rotation.T @ constant(plane[:, 2])
    if wheel.kind in BALLS:
        up, upright = normal, ca.SX(1)
        along, lateral = ca.horzsplit(rotation.T @ constant(plane[:, :2]))
        angular[:, own] = joint_pose(tree, q, index)[0]
    else:
        axis = constant(own_axis)
        if carrier != index:
            axis = turn @ axis
            sign = float(tree.bodies[index].joint.basis[3:, 0] @ own_axis)
            angular[:, own] = sign * axis
        across = ca.cross(axis, normal)
        upright = ca.sqrt(ca.sumsqr(across))
        along = across / upright
        lateral = ca.cross(normal, along)
        up = (normal - ca.dot(axis, normal) * axis) / upright
    contact = at_center + rim.radius * cross(up, angular)
    if wheel.kind in BALLS:
        rows = {"rolling along x": along.T @ contact, "rolling along y": lateral.T @ contact}
        if wheel.kind == "rubber_ball":
            # In metres at the rim, as the others are.
            rows["no spin"] = rim.radius * normal.T @ angular
    elif wheel.kind == "disk":
        rows = {"rolling": along.T @ contact, "no side slip": lateral.T @ contact}
    elif wheel.kind == "slider":
        rows = {"no side slip": lateral.T @ at_center}
    else:
        angle = np.pi / 2 if wheel.kind == "omni" else float(wheel.roller_angle or 0.0)
        cosine = 0.0 if wheel.kind == "omni" else np.cos(angle)
        rows = {"rolling": (cosine * lateral + np.sin(angle) * along).T @ contact}
    point = origin + rotation @ (center - rim.radius * up)
    return WheelRows(
        tuple(f"{wheel.body}: {name}" for name in rows),
        ca.vertcat(*rows.values()),
        normal_row=normal.T @ contact,
        upright=upright,
        height=ca.dot(constant(plane[:, 2]), point),
        face=ca.SX(1),
        point=point,
    )


def _supported_rows(tree: Tree, q: Vector, wheel: Wheel, support: Support, rim: Rim) -> WheelRows:
    """Rows of a body that no joint keeps on its support, in the axes of the body.

    With w from the support towards the centre c (the normal n of a plane; the line of centres of
    a sphere), a ball touches at p = c - radius w / |w|, a disk with the axis a at p = c - radius e
    with e along the part of w across a. The material points of body and support at p have the
    same velocity: three rows, of which the one along the normal keeps the contact closed.
    """
    own, other = tree.beyond_support(wheel)
    columns = jacobian(tree, q, wheel.body)
    # The pose of the wheel's body in the frame of the support.
    pose = compose(invert(placed_along(tree, q, other)), placed_along(tree, q, own))
    if support.body is not None:
        theirs = jacobian(tree, q, support.body)
        columns -= stacked(twist_to_child(pose, (theirs[:3, :], theirs[3:, :])))
        moving = tree.freedoms(*(tree.bodies[i].name for i in (*own, *other)))
        shared = sorted(set(range(tree.nv)) - set(moving))
        columns[:, shared] = 0.0  # what carries both, free of rounding
    columns = ca.sparsify(columns)

    center, radius = rim.center, rim.radius
    origin = pose[0].T @ (rim.support_center - pose[1])
    side = -1.0 if support.hollow else 1.0
    toward = pose[0].T @ constant(support.normal)
    if support.radius is not None:
        toward = side * (center - origin)
    upright, face, across = ca.SX(1), ca.SX(1), toward
    if wheel.kind == "disk":
        axis = constant(wheel_axis(tree, wheel))
        across = toward - ca.dot(axis, toward) * axis
        upright = ca.norm_2(across) / ca.norm_2(toward)
        if support.radius is not None and not support.hollow:
            face = ca.norm_2(across) - radius
    point = center - radius * across / ca.norm_2(across)
    contact = columns[:3, :] - cross(point, columns[3:, :])
    names = [f"{wheel.body}: contact {letter}" for letter in "xyz"]
    if wheel.kind == "rubber_ball":
        names.append(f"{wheel.body}: no spin")
        normal = across / ca.norm_2(across)
        contact = ca.vertcat(contact, radius * normal.T @ columns[3:, :])
    if support.radius is None:
        gap = ca.dot(toward, point - origin)
    else:
        gap = side * (ca.norm_2(point - origin) - rim.support_radius)
    touched = pose[1] + pose[0] @ point
    return WheelRows(tuple(names), contact, ca.SX(1, tree.nv), upright, gap, face, touched)


def coupling_rows(tree: Tree, q: Vector) -> Array:
    """Constraints of joints that follow others, (k, nv): of `mimics`, then of `steering`.

    Those of mimics are ``v - multiplier v_other = 0``.
    """
    rows = ca.SX(len(tree.mimics), tree.nv)
    for k, mimic in enumerate(tree.mimics):
        rows[k, tree.v_slice(mimic.body)] = 1.0
        rows[k, tree.v_slice(mimic.of)] = -mimic.multiplier
    return ca.vertcat(ca.sparsify(rows), tree.steering_rows(q))


def coupling_names(tree: Tree) -> tuple[str, ...]:
    """Name of each of the `coupling_rows`."""
    names = [f"mimic `{tree.label(m.body)}`: following {tree.label(m.of)}" for m in tree.mimics]
    return (
        *names,
        *(f"steering `{s.wheel}`: following {' and '.join(s.guides)}" for s in tree.steering),
    )


def constraint_rows(tree: Tree, q: Vector, kept: Sequence[int]) -> Array:
    """Rows of all wheels and couplings; those that are kept."""
    rows = [wheel_rows(tree, q, wheel).rows for wheel in tree.wheels]
    return ca.vertcat(ca.SX(0, tree.nv), *rows, coupling_rows(tree, q))[list(kept), :]
