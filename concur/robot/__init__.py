"""The robot: bodies, joints, wheels and drives, where they are, how they move, and what moves them.

`Mechanism` is the robot as one object; functions of a tree are the recursions under its methods.
"""

from concur.robot import joints
from concur.robot._articulated import Articulated, articulated, forward_dynamics
from concur.robot._bodies import unknown_name
from concur.robot._body import Body
from concur.robot._contact import check_wheels, comparable_rows, freedom_lengths
from concur.robot._controls import coupling_names, coupling_rows
from concur.robot._coriolis import coriolis
from concur.robot._distribution import link_numbers
from concur.robot._drive import Drive, Mimic
from concur.robot._exponentials import (
    branch_jacobians,
    joint_screws,
    modified_jacobian,
    product_of_exponentials,
    screw_jacobian,
    stacked_jacobian,
)
from concur.robot._flow import Motion, link_bases, link_motions, link_twists, step_inwards
from concur.robot._graph import branches, graph_matrix, path_matrix
from concur.robot._helical_plane import helical_plane
from concur.robot._inertia import Inertia, unphysical
from concur.robot._inertia_lint import suspicious_inertias
from concur.robot._jacobian import jacobian, motion_from, pose, twist, velocity_product
from concur.robot._links import Link, Seat, Step, displaced, link_frames, link_steps, root_axes
from concur.robot._mass_matrix import (
    Columns,
    columns,
    kinetic_energy,
    mass_matrix,
    mass_times,
    potential_energy,
)
from concur.robot._masses import without_mass
from concur.robot._mechanism import Mechanism
from concur.robot._motion import (
    Placed,
    Twist,
    bracket,
    compose,
    cross,
    invert,
    stacked,
    twist_to_child,
)
from concur.robot._newton_euler import (
    base_wrench,
    bias,
    inverse_dynamics,
    moment_of_motion,
    momentum,
    momentum_matrix,
)
from concur.robot._numbers import RobotNumbers
from concur.robot._pose import Pose, scalar
from concur.robot._rolling import WheelRows, plane_normal, wheel_axis, wheel_rows
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
from concur.robot._solve import (
    least_eigenvalue,
    side_of_factor,
    solve_positive_definite,
    solve_rigid,
)
from concur.robot._steering import Steering
from concur.robot._sweep import (
    body_accelerations,
    body_poses,
    body_twists,
    joint_bases,
    joint_basis,
    joint_pose,
    joint_poses,
)
from concur.robot._symbolic_robot import SymbolicRobot, with_numbers
from concur.robot._systems import as_tree, control_velocities, controls, coordinates
from concur.robot._tree import Tree
from concur.robot._unit_lint import suspicious_points, suspicious_start, suspicious_units
from concur.robot._wheel import BALLS, Support, Wheel

__all__ = [
    "BALLS",
    "Articulated",
    "Body",
    "Columns",
    "Drive",
    "Inertia",
    "Link",
    "Mechanism",
    "Mimic",
    "Motion",
    "Placed",
    "Pose",
    "RobotNumbers",
    "Seat",
    "Shape",
    "Steering",
    "Step",
    "Support",
    "SymbolicRobot",
    "Tree",
    "Twist",
    "Wheel",
    "WheelRows",
    "admissible",
    "articulated",
    "as_tree",
    "base_wrench",
    "bias",
    "body_accelerations",
    "body_map",
    "body_map_inverse",
    "body_poses",
    "body_twists",
    "bracket",
    "branch_jacobians",
    "branches",
    "check_wheels",
    "columns",
    "comparable_rows",
    "compose",
    "configuration",
    "control_velocities",
    "controls",
    "coordinates",
    "coriolis",
    "coupling_names",
    "coupling_rows",
    "cross",
    "displaced",
    "distance_to_singular",
    "forward_dynamics",
    "freedom_lengths",
    "graph_matrix",
    "helical_plane",
    "inverse_dynamics",
    "invert",
    "is_abelian",
    "jacobian",
    "joint_bases",
    "joint_basis",
    "joint_pose",
    "joint_poses",
    "joint_screws",
    "joints",
    "kernel",
    "kinetic_energy",
    "least_eigenvalue",
    "link_bases",
    "link_frames",
    "link_motions",
    "link_numbers",
    "link_steps",
    "link_twists",
    "mass_matrix",
    "mass_times",
    "modified_jacobian",
    "moment_of_motion",
    "momentum",
    "momentum_matrix",
    "motion_from",
    "parameters",
    "path_matrix",
    "plane_normal",
    "pose",
    "potential_energy",
    "product_of_exponentials",
    "rate_map",
    "rate_map_inverse",
    "robot_size",
    "root_axes",
    "scalar",
    "screw_jacobian",
    "shortest",
    "side_of_factor",
    "solve_positive_definite",
    "solve_rigid",
    "stacked",
    "stacked_jacobian",
    "step_inwards",
    "suspicious_inertias",
    "suspicious_points",
    "suspicious_start",
    "suspicious_units",
    "twist",
    "twist_to_child",
    "unknown_name",
    "unphysical",
    "velocity_product",
    "wheel_axis",
    "wheel_rows",
    "with_numbers",
    "without_mass",
]
