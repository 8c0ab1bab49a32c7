"""States as messages of ROS hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from concur.codegen import attitude_error, finite_floats
from concur.errors import DescriptionError, shown
from concur.interop._chains import urdf_joints
from concur.interop._order import Order
from concur.interop._parts import Array, Part, in_plane_axes, same, three_angles
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


def _joint_state(robot: Tree) -> tuple[bool, Order]:
    """Whether the base is a pose beside the joints, and the order of all other joints."""
    floats = isinstance(robot.base.joint, joints.Free | joints.Planar)
    parts = {body.name: _part(robot, body) for body in robot.bodies[floats:] if body.joint.nv}
    return floats, Order("ROS", robot, tuple(parts), parts)


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
    floats, order = _joint_state(robot)
    position = order.to_q(q)
    velocity = order.to_v(q, zero if v is None else v)
    effort = order.to_force(q, zero if tau is None else tau)
    names = [name for body in order.bodies for name in urdf_joints(robot.bodies[robot.index(body)])]
    ours, rates = np.array(q, dtype=float), np.array(zero if v is None else v, dtype=float)
    frame = Rotation.from_quat(robot.base.placement.rotation)
    origin, twist = np.array(robot.base.placement.translation), np.zeros(6)
    if floats:
        own = ours[robot.q_slice(robot.base.name)]
        joint: Any = robot.base.joint
        if isinstance(joint, joints.Planar):
            moved = joint.frame[:, :2] @ own[:2]
            turned = Rotation.from_rotvec(own[2] * np.array(joint.normal))
        else:
            moved, turned = own[:3], Rotation.from_quat(own[3:])
        origin, frame = origin + frame.apply(moved), frame * turned
        twist = joint.basis @ rates[robot.v_slice(robot.base.name)]
    return RosState(
        tuple(names),
        position,
        velocity,
        effort,
        origin,
        frame.as_quat(),
        twist[:3],
        twist[3:],
    )


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
    floats, order = _joint_state(robot)
    wanted = [
        name for body in order.bodies for name in urdf_joints(robot.bodies[robot.index(body)])
    ]
    places = [[k for k, name in enumerate(state.name) if name == joint] for joint in wanted]
    wrong = next((j for j, p in zip(wanted, places, strict=True) if len(p) != 1), None)
    if wrong is not None:
        raise DescriptionError(
            "RosState, `name`",
            expected=f"the joint `{wrong}` once",
            came=shown(tuple(state.name), 200),
            cure="Wait for a message with all joints, or merge the messages.",
        )
    rows = [place[0] for place in places]
    read = {
        name: np.array(
            finite_floats(getattr(state, name), f"RosState, `{name}`", (len(state.name),))
        )[rows]
        for name in ("position", "velocity", "effort")
    }
    sizes = {"base_position": 3, "base_orientation": 4, "base_linear": 3, "base_angular": 3}
    read |= {
        name: np.array(finite_floats(getattr(state, name), f"RosState, `{name}`", (size,)))
        for name, size in sizes.items()
    }
    attitude = read["base_orientation"]
    error = attitude_error("RosState", "base_orientation", attitude, {0: robot.base.name})
    if error is not None:
        raise error
    q = order.from_q(read["position"])
    v, tau = order.from_v(q, read["velocity"]), order.from_force(q, read["effort"])
    if floats:
        joint: Any = robot.base.joint
        frame = Rotation.from_quat(robot.base.placement.rotation).inv()
        moved = frame.apply(read["base_position"] - np.array(robot.base.placement.translation))
        turned = frame * Rotation.from_quat(attitude)
        if isinstance(joint, joints.Planar):
            x, y, _ = joint.frame.T @ moved
            flat = joint.frame.T @ turned.as_matrix() @ joint.frame
            if flat[2, 2] <= 0.0:
                raise DescriptionError(
                    "RosState, `base_orientation`",
                    expected="a planar base that tilts by less than 90 deg",
                    came=f"{np.degrees(np.arccos(max(-1.0, flat[2, 2]))):.3g} deg",
                    cure="Give the quaternion in the order x, y, z, w, as ROS does.",
                )
            q[:3] = x, y, np.arctan2(flat[1, 0] - flat[0, 1], flat[0, 0] + flat[1, 1])
        else:
            q[:7] = [*moved, *turned.as_quat()]
        twist = np.concatenate([read["base_linear"], read["base_angular"]])
        v[: joint.nv] = joint.basis.T @ twist
    return q, v, tau
