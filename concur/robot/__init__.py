"""The robot: bodies, joints, wheels and drives, where they are, how they move, and what moves them.

`Mechanism` is the robot as one object; functions of a tree are the recursions under its methods.
"""

from concur.robot import joints
from concur.robot._articulated import Articulated as Articulated
from concur.robot._articulated import articulated as articulated
from concur.robot._articulated import forward_dynamics as forward_dynamics
from concur.robot._bodies import unknown_name
from concur.robot._body import Body
from concur.robot._contact import check_wheels as check_wheels
from concur.robot._contact import comparable_rows as comparable_rows
from concur.robot._contact import freedom_lengths as freedom_lengths
from concur.robot._controls import coupling_names as coupling_names
from concur.robot._controls import coupling_rows as coupling_rows
from concur.robot._coriolis import coriolis as coriolis
from concur.robot._distribution import link_numbers as link_numbers
from concur.robot._drive import Drive, Mimic
from concur.robot._exponentials import branch_jacobians as branch_jacobians
from concur.robot._exponentials import joint_screws as joint_screws
from concur.robot._exponentials import modified_jacobian as modified_jacobian
from concur.robot._exponentials import product_of_exponentials as product_of_exponentials
from concur.robot._exponentials import screw_jacobian as screw_jacobian
from concur.robot._exponentials import stacked_jacobian as stacked_jacobian
from concur.robot._flow import Motion as Motion
from concur.robot._flow import link_bases as link_bases
from concur.robot._flow import link_motions as link_motions
from concur.robot._flow import link_twists as link_twists
from concur.robot._flow import step_inwards as step_inwards
from concur.robot._graph import branches, graph_matrix, path_matrix
from concur.robot._helical_plane import helical_plane
from concur.robot._inertia import Inertia, unphysical
from concur.robot._inertia_lint import suspicious_inertias
from concur.robot._jacobian import jacobian as jacobian
from concur.robot._jacobian import motion_from as motion_from
from concur.robot._jacobian import pose as pose
from concur.robot._jacobian import twist as twist
from concur.robot._jacobian import velocity_product as velocity_product
from concur.robot._links import Link as Link
from concur.robot._links import Seat as Seat
from concur.robot._links import Step as Step
from concur.robot._links import displaced as displaced
from concur.robot._links import link_frames as link_frames
from concur.robot._links import link_steps as link_steps
from concur.robot._links import root_axes as root_axes
from concur.robot._mass_matrix import Columns as Columns
from concur.robot._mass_matrix import columns as columns
from concur.robot._mass_matrix import kinetic_energy as kinetic_energy
from concur.robot._mass_matrix import mass_matrix as mass_matrix
from concur.robot._mass_matrix import mass_times as mass_times
from concur.robot._mass_matrix import potential_energy as potential_energy
from concur.robot._masses import without_mass as without_mass
from concur.robot._mechanism import Mechanism
from concur.robot._motion import Placed as Placed
from concur.robot._motion import Twist as Twist
from concur.robot._motion import bracket as bracket
from concur.robot._motion import compose as compose
from concur.robot._motion import cross as cross
from concur.robot._motion import invert as invert
from concur.robot._motion import stacked as stacked
from concur.robot._motion import twist_to_child as twist_to_child
from concur.robot._newton_euler import base_wrench as base_wrench
from concur.robot._newton_euler import bias as bias
from concur.robot._newton_euler import inverse_dynamics as inverse_dynamics
from concur.robot._newton_euler import moment_of_motion as moment_of_motion
from concur.robot._newton_euler import momentum as momentum
from concur.robot._newton_euler import momentum_matrix as momentum_matrix
from concur.robot._numbers import RobotNumbers
from concur.robot._pose import Pose, scalar
from concur.robot._rolling import WheelRows as WheelRows
from concur.robot._rolling import plane_normal as plane_normal
from concur.robot._rolling import wheel_axis as wheel_axis
from concur.robot._rolling import wheel_rows as wheel_rows
from concur.robot._screw import (
    admissible,
    body_map,
    body_map_inverse,
    configuration,
    distance_to_singular,
    is_abelian,
    kernel,
    parameters,
    rate_map,
    rate_map_inverse,
    shortest,
)
from concur.robot._shape import Shape
from concur.robot._size import robot_size
from concur.robot._solve import least_eigenvalue as least_eigenvalue
from concur.robot._solve import side_of_factor as side_of_factor
from concur.robot._solve import solve_positive_definite as solve_positive_definite
from concur.robot._solve import solve_rigid as solve_rigid
from concur.robot._steering import Steering
from concur.robot._sweep import body_accelerations as body_accelerations
from concur.robot._sweep import body_poses as body_poses
from concur.robot._sweep import body_twists as body_twists
from concur.robot._sweep import joint_bases as joint_bases
from concur.robot._sweep import joint_basis as joint_basis
from concur.robot._sweep import joint_pose as joint_pose
from concur.robot._sweep import joint_poses as joint_poses
from concur.robot._symbolic_robot import SymbolicRobot as SymbolicRobot
from concur.robot._symbolic_robot import with_numbers as with_numbers
from concur.robot._systems import as_tree as as_tree
from concur.robot._systems import control_velocities as control_velocities
from concur.robot._systems import controls as controls
from concur.robot._systems import coordinates as coordinates
from concur.robot._tree import Tree
from concur.robot._unit_lint import suspicious_points, suspicious_start, suspicious_units
from concur.robot._wheel import BALLS, Support, Wheel

__all__ = [
    "BALLS",
    "Body",
    "Drive",
    "Inertia",
    "Mechanism",
    "Mimic",
    "Pose",
    "RobotNumbers",
    "Shape",
    "Steering",
    "Support",
    "Tree",
    "Wheel",
    "admissible",
    "body_map",
    "body_map_inverse",
    "branches",
    "configuration",
    "distance_to_singular",
    "graph_matrix",
    "helical_plane",
    "is_abelian",
    "joints",
    "kernel",
    "parameters",
    "path_matrix",
    "rate_map",
    "rate_map_inverse",
    "robot_size",
    "scalar",
    "shortest",
    "suspicious_inertias",
    "suspicious_points",
    "suspicious_start",
    "suspicious_units",
    "unknown_name",
    "unphysical",
]
