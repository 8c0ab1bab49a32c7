"""Parts of a robot: bodies, joints, wheels, and the tree they form."""

from concur.mechanism import joints
from concur.mechanism._bodies import unknown_name
from concur.mechanism._body import Body
from concur.mechanism._drive import Drive, Mimic
from concur.mechanism._helical_plane import helical_plane
from concur.mechanism._inertia import Inertia, unphysical
from concur.mechanism._inertia_lint import suspicious_inertias
from concur.mechanism._numbers import RobotNumbers
from concur.mechanism._pose import Pose, scalar
from concur.mechanism._shape import Shape
from concur.mechanism._size import robot_size
from concur.mechanism._steering import Steering
from concur.mechanism._tree import Tree
from concur.mechanism._unit_lint import suspicious_points, suspicious_start, suspicious_units
from concur.mechanism._wheel import BALLS, Support, Wheel

__all__ = [
    "BALLS",
    "Body",
    "Drive",
    "Inertia",
    "Mimic",
    "Pose",
    "RobotNumbers",
    "Shape",
    "Steering",
    "Support",
    "Tree",
    "Wheel",
    "helical_plane",
    "joints",
    "robot_size",
    "scalar",
    "suspicious_inertias",
    "suspicious_points",
    "suspicious_start",
    "suspicious_units",
    "unknown_name",
    "unphysical",
]
