"""Rolling constraints from geometry: the contact point of a wheel does not move.

The rows are written in the frame of the body that carries the wheel: there neither the
axle nor the contact depends on how far the wheel has turned.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.errors import WheelError
from concur.robot._jacobian import jacobian
from concur.robot._motion import Placed, compose, cross, invert, stacked, twist_to_child
from concur.robot._sweep import joint_pose, placement
from concur.robot._tree import Tree
from concur.robot._wheel import BALLS, Support, Wheel
from concur.robot.joints import Joint, Planar, Sliding, Spherical, shortest_rotation

_HERE: Placed = (ca.SX.eye(3), ca.SX(3, 1))


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
    if wheel.support is not None:
        return _supported_rows(tree, q, wheel, wheel.support)
    if wheel.kind in BALLS:
        return _ball_rows(tree, q, wheel)
    index = tree.index(wheel.body)
    own_axis = wheel_axis(tree, wheel)
    carrier, to_wheel = _carrier(tree, wheel, index)
    platform = tree.platform(wheel)
    own_normal = constant(plane_normal(tree, platform))
    seen = _from_platform(tree, q, carrier, platform)
    normal = seen[0].T @ own_normal
    axis = to_wheel[0] @ constant(own_axis)
    center = to_wheel[1] + to_wheel[0] @ _center(tree, wheel)

    columns = _on_plane(tree, q, carrier, platform)
    angular = columns[3:, :]
    at_center = columns[:3, :] - cross(center, angular)
    if carrier != index:
        own = tree.v_slice(wheel.body)
        sign = float(tree.bodies[index].joint.basis[3:, 0] @ own_axis)
        angular[:, own] = sign * axis

    across = ca.cross(axis, normal)
    upright = ca.sqrt(ca.sumsqr(across))
    along = across / upright
    lateral = ca.cross(normal, along)
    up = (normal - ca.dot(axis, normal) * axis) / upright
    radius = _radius(tree, wheel)
    contact = at_center + radius * cross(up, angular)

    rolls = f"{wheel.body}: rolling"
    names: tuple[str, ...]
    if wheel.kind == "disk":
        names = (rolls, f"{wheel.body}: no side slip")
        rows = ca.vertcat(along.T @ contact, lateral.T @ contact)
    elif wheel.kind == "slider":
        names, rows = (f"{wheel.body}: no side slip",), lateral.T @ at_center
    else:
        angle = np.pi / 2 if wheel.kind == "omni" else float(wheel.roller_angle or 0.0)
        cosine = 0.0 if wheel.kind == "omni" else np.cos(angle)
        names, rows = (rolls,), (cosine * lateral + np.sin(angle) * along).T @ contact
    position = seen[1] + seen[0] @ (center - radius * up)
    height = ca.dot(own_normal, position)
    return WheelRows(names, rows, normal.T @ contact, upright, height, ca.SX(1), position)


def _ball_rows(tree: Tree, q: Vector, wheel: Wheel) -> WheelRows:
    """Rows of a ball, in the axes of the body that carries it."""
    wheel_axis(tree, wheel)
    index = tree.index(wheel.body)
    carrier, (_, center) = _carrier(tree, wheel, index)
    platform = tree.platform(wheel)
    own_normal = plane_normal(tree, platform)
    seen = _from_platform(tree, q, carrier, platform)
    plane = seen[0].T @ constant(shortest_rotation(own_normal.tolist()))
    normal = plane[:, 2]

    columns = _on_plane(tree, q, carrier, platform)
    angular = columns[3:, :]
    at_center = columns[:3, :] - cross(center, angular)
    angular[:, tree.v_slice(wheel.body)] = joint_pose(tree, q, index)[0]
    radius = _radius(tree, wheel)
    contact = at_center + radius * cross(normal, angular)

    names = [f"{wheel.body}: rolling along {axis}" for axis in "xy"]
    rows = [plane[:, i].T @ contact for i in range(2)]
    if wheel.kind == "rubber_ball":
        # In metres at the rim, as the others are.
        names.append(f"{wheel.body}: no spin")
        rows.append(radius * normal.T @ angular)
    position = seen[1] + seen[0] @ (center - radius * normal)
    height = ca.dot(constant(own_normal), position)
    one = ca.SX(1)
    found = ca.vertcat(*rows)
    return WheelRows(tuple(names), found, normal.T @ contact, one, height, one, position)


def _supported_rows(tree: Tree, q: Vector, wheel: Wheel, support: Support) -> WheelRows:
    """Rows of a body that no joint keeps on its support, in the axes of the body.

    With w from the support towards the centre c (the normal n of a plane; the line of centres of
    a sphere), a ball touches at p = c - radius w / |w|, a disk with the axis a at p = c - radius e
    with e along the part of w across a. The material points of body and support at p have the
    same velocity: three rows, of which the one along the normal keeps the contact closed.
    """
    own, other = tree.beyond_support(wheel)
    seen: Placed = functools.reduce(compose, (joint_pose(tree, q, i) for i in own), _HERE)
    back: Placed = functools.reduce(compose, (joint_pose(tree, q, i) for i in other), _HERE)
    columns = jacobian(tree, q, wheel.body)
    pose = compose(invert(back), seen)  # of the wheel's body in the frame of the support
    if support.body is not None:
        theirs = jacobian(tree, q, support.body)
        columns -= stacked(twist_to_child(pose, (theirs[:3, :], theirs[3:, :])))
        shared = set(range(tree.nv)) - set(
            tree.freedoms(*(tree.bodies[i].name for i in (*own, *other)))
        )
        columns[:, sorted(shared)] = 0.0  # what carries both, free of rounding
    columns = ca.sparsify(columns)

    center, (middle, reach) = _center(tree, wheel), _sphere(tree, wheel, support)
    origin = pose[0].T @ (constant(middle) - pose[1])
    side = -1.0 if support.hollow else 1.0
    toward = pose[0].T @ constant(support.normal)
    if support.radius is not None:
        toward = side * (center - origin)
    upright, face, radius = ca.SX(1), ca.SX(1), _radius(tree, wheel)
    across = toward
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
        gap = side * (ca.norm_2(point - origin) - reach)
    touched = pose[1] + pose[0] @ point
    return WheelRows(tuple(names), contact, ca.SX(1, tree.nv), upright, gap, face, touched)


def _carrier(tree: Tree, wheel: Wheel, index: int) -> tuple[int, Placed]:
    """Body in whose frame the rows are written, and the wheel's frame in it at angle zero."""
    if wheel.kind == "slider":
        return index, (ca.SX.eye(3), ca.SX(3, 1))
    return tree.parent_index(index) or 0, placement(tree, index)


def _radius(tree: Tree, wheel: Wheel) -> float | Array:
    if tree.numbers is None:
        return wheel.radius
    return tree.numbers.radii[tree.wheels.index(wheel)]


def _center(tree: Tree, wheel: Wheel) -> Array:
    if tree.numbers is None:
        return constant(wheel.center)
    return constant(tree.numbers.centers[tree.wheels.index(wheel)])


def _sphere(tree: Tree, wheel: Wheel, support: Support) -> tuple[Any, Any]:
    """Centre and radius of a support."""
    if tree.numbers is None:
        return support.center, support.radius
    k = tree.wheels.index(wheel)
    return tree.numbers.support_centers[k], tree.numbers.support_radii[k]


def _on_plane(tree: Tree, q: Vector, index: int, platform: int) -> Array:
    """Jacobian of a body relative to the body whose plane the platform moves on."""
    support = tree.bodies[platform].parent
    return jacobian(tree, q, tree.bodies[index].name, support)


def _from_platform(tree: Tree, q: Vector, index: int, platform: int) -> Placed:
    placed: Placed = (ca.SX.eye(3), ca.SX(3, 1))
    path = tree.path(index)
    for i in path[path.index(platform) + 1 :]:
        placed = compose(placed, joint_pose(tree, q, i))
    return placed
