"""Where the bodies are and how they move: poses, Jacobians, rolling constraints."""

from concur.kinematics._jacobian import jacobian, pose, twist, velocity_product
from concur.kinematics._motion import (
    Placed,
    Twist,
    bracket,
    compose,
    constant,
    cross,
    invert,
    stacked,
    twist_to_child,
    wrench_to_parent,
)
from concur.kinematics._rolling import WheelRows, plane_normal, wheel_axis, wheel_rows
from concur.kinematics._sweep import (
    body_accelerations,
    body_poses,
    body_twists,
    joint_bases,
    joint_poses,
)

__all__ = [
    "Placed",
    "Twist",
    "WheelRows",
    "body_accelerations",
    "body_poses",
    "body_twists",
    "bracket",
    "compose",
    "constant",
    "cross",
    "invert",
    "jacobian",
    "joint_bases",
    "joint_poses",
    "plane_normal",
    "pose",
    "stacked",
    "twist",
    "twist_to_child",
    "velocity_product",
    "wheel_axis",
    "wheel_rows",
    "wrench_to_parent",
]
