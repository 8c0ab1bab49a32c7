"""Joints: displacement subgroups of SE(3) with global coordinates (Table 2.1 of the thesis).

A joint moves the child's frame in the joint frame that is fixed to the parent. Its group is
given by a twist basis `basis`, written in the child's frame; the velocity coordinates `v`
are the body twist in that basis. Configurations are global: no chart is singular.

A new subgroup is one more class in a file of this package: it states its basis, its coordinates,
its pose, its rate, and how a motion `basis @ dv` is appended and read back.
"""

from concur.robot.joints._fixed import Fixed
from concur.robot.joints._joint import Joint
from concur.robot.joints._planar import Planar, PlanarPrismatic
from concur.robot.joints._quaternion import Free, Spherical
from concur.robot.joints._rotation import axis_rotation as axis_rotation
from concur.robot.joints._rotation import shortest_rotation as shortest_rotation
from concur.robot.joints._vector import (
    Cartesian,
    Cylindrical,
    Helical,
    Prismatic,
    Revolute,
    Sliding,
)

__all__ = [
    "Cartesian",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "PlanarPrismatic",
    "Prismatic",
    "Revolute",
    "Sliding",
    "Spherical",
]
