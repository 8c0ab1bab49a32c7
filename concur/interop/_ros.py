"""States as messages of ROS hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from concur.codegen import attitude_error, finite_floats
from concur.errors import DescriptionError, shown
from concur.interop._chains import urdf_joints
from concur.interop._order import Order
from concur.interop._parts import (
    Array,
    Part,
    free_part,
    in_plane_axes,
    same,
    standing_part,
    three_angles,
)
from concur.robot import Body, Tree, joints


@dataclass(frozen=True)
class RosState:
    """A state as the messages of ROS hold it: ``sensor_msgs/JointState``, ``nav_msgs/Odometry``.

    Parameters
    ----------
    name : tuple of str
        Names of the joints of the URDF file that `Mechanism.save` writes.
    position, velocity, effort : numpy.ndarray
        Of each joint: m or rad, m/s or rad/s, N or N m.
    base_position : numpy.ndarray
        Position of the base in the inertial frame, shape (3,), m: ``pose.pose.position``.
    base_orientation : numpy.ndarray
        Its orientation, quaternion x, y, z, w: ``pose.pose.orientation``.
    base_linear, base_angular : numpy.ndarray
        Its velocity in body axes, shape (3,), m/s and rad/s: ``twist.twist``, which ROS gives in
        the frame of the child.
    """

    name: tuple[str, ...]
    position: Array
    velocity: Array
    effort: Array
    base_position: Array
    base_orientation: Array
    base_linear: Array
    base_angular: Array


def _layout(robot: Tree) -> tuple[Part | None, Order, tuple[str, ...]]:
    """Pose of a base beside the joints, if it has one; order and names of all other joints."""
    body, base = robot.base, None
    if isinstance(body.joint, joints.Planar):
        base = standing_part(body, body.joint)
    elif isinstance(body.joint, joints.Free):
        base = free_part(body, False, False, ())
    bodies = [body for body in robot.bodies[base is not None :] if body.joint.nv]
    parts = {body.name: _part(robot, body) for body in bodies}
    names = tuple(name for body in bodies for name in urdf_joints(body))
    return base, Order("ROS", robot, tuple(parts), parts), names


def _part(robot: Tree, body: Body) -> Part:
    match body.joint:
        case joints.Free():
            raise DescriptionError(
                f"robot `{robot.name}`, body `{body.name}`",
                expected="joints of one position each, as messages of joint states have them",
                came="a Free joint that is not the base",
                cure="Publish the pose of this body as a transform.",
            )
        case joints.Spherical():
            return three_angles()
        case joints.Planar() | joints.PlanarPrismatic():
            return in_plane_axes(body.joint)
    return same(body.joint.nq)


def to_ros(
    robot: Tree, q: ArrayLike, v: ArrayLike | None = None, tau: ArrayLike | None = None
) -> RosState:
    """Convert a state to the names, orders and frames of ROS.

    Parameters
    ----------
    robot : Tree
        The robot. A `Free` or `Planar` base is the pose of the odometry; all other joints are
        joints of the joint state.
    q : array_like
        Configuration, shape (nq,), m and rad.
    v, tau : array_like, optional
        Velocity and generalized forces, shape (nv,), SI units; default zero.

    Returns
    -------
    RosState
        The fields of both messages.

    Raises
    ------
    DescriptionError
        If a joint other than the base is `Free`, or a joint is a screw.
    """
    zero = np.zeros(robot.nv)
    rates = np.array(zero if v is None else v, dtype=float)
    base, order, names = _layout(robot)
    position, velocity = order.to_q(q), order.to_v(q, rates)
    effort = order.to_force(q, zero if tau is None else tau)
    body, twist = robot.base, np.zeros(6)
    pose = np.array([*body.placement.translation, *np.roll(body.placement.rotation, 1)])
    if base is not None:
        pose = base.to_q(np.array(q, dtype=float)[robot.q_slice(body.name)])
        twist = body.joint.basis @ rates[robot.v_slice(body.name)]
    base_pose = pose[:3], np.roll(pose[3:], -1)
    return RosState(names, position, velocity, effort, *base_pose, twist[:3], twist[3:])


def from_ros(robot: Tree, state: RosState) -> tuple[Array, Array, Array]:
    """Convert a state of ROS; joints may come in any order, as they do in messages.

    Parameters
    ----------
    robot : Tree
        The robot.
    state : RosState
        The fields of both messages; joints that the robot lacks are ignored.

    Returns
    -------
    q : numpy.ndarray
        Configuration, shape (nq,), m and rad. A planar base is the projection of the pose on its
        plane.
    v : numpy.ndarray
        Velocity, shape (nv,), m/s and rad/s.
    tau : numpy.ndarray
        Generalized forces, shape (nv,), N and N m; zero for the base.

    Raises
    ------
    DescriptionError
        If a joint is missing, or occurs twice, or a planar base tilts by 90 deg or more.
    ShapeError, NonFiniteError
        If the numbers do not fit the names, or are not finite.
    """
    base, order, wanted = _layout(robot)
    places = [[k for k, name in enumerate(state.name) if name == joint] for joint in wanted]
    wrong = next((j for j, p in zip(wanted, places, strict=True) if len(p) != 1), None)
    if wrong is not None:
        raise DescriptionError(
            "RosState, `name`",
            expected=f"the joint `{wrong}` once",
            came=shown(tuple(state.name), 200),
            cure="Wait for a message with all joints, or merge the messages.",
        )
    rows, count = [place[0] for place in places], len(state.name)
    sizes = dict.fromkeys(("position", "velocity", "effort"), count)
    sizes |= {"base_position": 3, "base_orientation": 4, "base_linear": 3, "base_angular": 3}
    read = {
        name: np.array(finite_floats(getattr(state, name), f"RosState, `{name}`", (size,)))
        for name, size in sizes.items()
    }
    position, velocity, effort = (read[name][rows] for name in list(sizes)[:3])
    attitude, body = read["base_orientation"], robot.base
    error = attitude_error("RosState", "base_orientation", attitude, {0: body.name})
    if error is not None:
        raise error
    q = order.from_q(position)
    v, tau = order.from_v(q, velocity), order.from_force(q, effort)
    if base is not None:
        turned = Rotation.from_quat(attitude)
        if isinstance(body.joint, joints.Planar):
            normal = np.array(body.joint.normal)
            upright = Rotation.from_quat(body.placement.rotation).apply(normal)
            cosine = float(upright @ turned.apply(normal))
            if cosine <= 0.0:
                raise DescriptionError(
                    "RosState, `base_orientation`",
                    expected="a planar base that tilts by less than 90 deg",
                    came=f"{np.degrees(np.arccos(max(-1.0, cosine))):.3g} deg",
                    cure="Give the quaternion in the order x, y, z, w, as ROS does.",
                )
        pose = [*read["base_position"], *np.roll(turned.as_quat(), 1)]
        q[robot.q_slice(body.name)] = base.from_q(np.array(pose))
        twist = np.concatenate([read["base_linear"], read["base_angular"]])
        v[robot.v_slice(body.name)] = body.joint.basis.T @ twist
    return q, v, tau
