"""Coordinates of MuJoCo, Pinocchio, Drake and ROS: orders and frames of q, v and forces.

Each function describes how a library writes the state of a robot. The library's model has the
joints of the robot; a joint that the library lacks is a chain of joints with one degree of freedom
each, as `Mechanism.save` writes it.

=========  ===========================  ==============================  =======================
library    floating base, q             floating base, v                planar joint, q and v
=========  ===========================  ==============================  =======================
here       position, quaternion xyzw    [linear; angular], body axes    x, y, angle; body axes
Pinocchio  position, quaternion xyzw    [linear; angular], body axes    x, y, cos, sin; body axes
MuJoCo     position, quaternion wxyz    linear in world axes, angular   x, y, angle; axes of the
                                        in body axes                    plane
Drake      quaternion wxyz, position    [angular; linear], world axes   x, y, angle; axes of the
                                                                        plane
ROS        position, quaternion xyzw    linear, angular, body axes      (a base: as floating)
=========  ===========================  ==============================  =======================
"""

from concur.interop._chains import Link, chain, is_native, urdf_joints
from concur.interop._order import Order, drake, mujoco, pinocchio
from concur.interop._parts import roll_pitch_yaw
from concur.interop._ros import RosState, from_ros, to_ros

__all__ = [
    "Link",
    "Order",
    "RosState",
    "chain",
    "drake",
    "from_ros",
    "is_native",
    "mujoco",
    "pinocchio",
    "roll_pitch_yaw",
    "to_ros",
    "urdf_joints",
]
