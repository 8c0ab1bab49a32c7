"""The robot: bodies, joints, wheels and motors, where they are, how they move, and what moves them.

`Mechanism` is the robot as one object; functions of a tree are the recursions under its methods.
"""

from concur.robot import joints
from concur.robot._articulated import articulated as articulated
from concur.robot._articulated import factors_by_links as factors_by_links
from concur.robot._articulated import forward_dynamics as forward_dynamics
from concur.robot._bodies import unknown_name
from concur.robot._body import Body, helical_plane
from concur.robot._clearance import Capsule as Capsule
from concur.robot._clearance import Clearance as Clearance
from concur.robot._clearance import Obstacle as Obstacle
from concur.robot._contact import check_contacts as check_contacts
from concur.robot._contact import comparable_rows as comparable_rows
from concur.robot._contact import freedom_lengths as freedom_lengths
from concur.robot._dynamics import base_wrench as base_wrench
from concur.robot._dynamics import inverse_dynamics as inverse_dynamics
from concur.robot._dynamics import mass_matrix as mass_matrix
from concur.robot._dynamics import mass_times as mass_times
from concur.robot._dynamics import moment_of_motion as moment_of_motion
from concur.robot._inertia import Inertia
from concur.robot._keyframe import Keyframe
from concur.robot._kinematics import jacobian as jacobian
from concur.robot._kinematics import joint_basis as joint_basis
from concur.robot._kinematics import joint_pose as joint_pose
from concur.robot._kinematics import motion_from as motion_from
from concur.robot._kinematics import pose as pose
from concur.robot._links import Posture as Posture
from concur.robot._lint import (
    suspicious_inertias,
    suspicious_points,
    suspicious_start,
    suspicious_units,
)
from concur.robot._lint_motors import repeated_limits as repeated_limits
from concur.robot._mechanism import Mechanism
from concur.robot._motor import Mimic, Motor
from concur.robot._motor import speed_torque_line as speed_torque_line
from concur.robot._mount import mount
from concur.robot._pose import Pose, scalar
from concur.robot._pose import check_name as check_name
from concur.robot._pose import shortest_rotation as shortest_rotation
from concur.robot._rows import coupling_rows as coupling_rows
from concur.robot._rows import plane_normal as plane_normal
from concur.robot._rows import wheel_rows as wheel_rows
from concur.robot._screw import (
    admissible,
    body_map,
    is_abelian,
    kernel,
)
from concur.robot._shapes import Shape
from concur.robot._shapes import box_distance as box_distance
from concur.robot._shapes import mesh_formats as mesh_formats
from concur.robot._shapes import read_mesh as read_mesh
from concur.robot._shapes import segment_distance as segment_distance
from concur.robot._solve import least_eigenvalue as least_eigenvalue
from concur.robot._solve import side_of_factor as side_of_factor
from concur.robot._solve import solve_positive_definite as solve_positive_definite
from concur.robot._solve import solve_rigid as solve_rigid
from concur.robot._spatial import Placed as Placed
from concur.robot._spatial import Twist as Twist
from concur.robot._spatial import bracket as bracket
from concur.robot._spatial import compose as compose
from concur.robot._spatial import cross as cross
from concur.robot._spatial import invert as invert
from concur.robot._spatial import twist_to_child as twist_to_child
from concur.robot._spring import Spring
from concur.robot._steering import Steering
from concur.robot._suspicious import suspicious
from concur.robot._systems import JointPlace as JointPlace
from concur.robot._systems import as_tree as as_tree
from concur.robot._systems import control_velocities as control_velocities
from concur.robot._systems import controls as controls
from concur.robot._systems import coordinates as coordinates
from concur.robot._systems import damping_forces as damping_forces
from concur.robot._systems import joint_names as joint_names
from concur.robot._systems import joint_place as joint_place
from concur.robot._systems import joint_places as joint_places
from concur.robot._systems import robot_size
from concur.robot._tree import COUPLED as COUPLED
from concur.robot._tree import Supports as Supports
from concur.robot._tree import Tree
from concur.robot._wheel import BALLS, Support, Wheel
from concur.robot._worlds import FreeNumbers as FreeNumbers
from concur.robot._worlds import Worlds as Worlds
from concur.robot._worlds import mapping as mapping

__all__ = [
    "BALLS",
    "Body",
    "Inertia",
    "Keyframe",
    "Mechanism",
    "Mimic",
    "Motor",
    "Pose",
    "Shape",
    "Spring",
    "Steering",
    "Support",
    "Tree",
    "Wheel",
    "admissible",
    "body_map",
    "helical_plane",
    "is_abelian",
    "joints",
    "kernel",
    "mount",
    "robot_size",
    "scalar",
    "suspicious",
    "suspicious_inertias",
    "suspicious_points",
    "suspicious_start",
    "suspicious_units",
    "unknown_name",
]
