"""Outputs: what of the robot is to follow a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.control._output_groups import (
    AXES,
    Angle,
    OutputGroup,
    PlanarPose,
    Pose,
    Product,
    Rotation,
    Vector,
)
from concur.errors import OutputError
from concur.kinematics import Placed, Twist, constant, cross
from concur.mechanism import unknown_name

GROUPS = ("R3xSO3", "SE3", "SO3", "R3", "SE2", "R2", "SO2", "R")
_VECTORS = {"R": "x", "R2": "xy", "R3": "xyz"}


@dataclass(frozen=True)
class Output:
    """A pose, or part of a pose, of a body that is to follow a reference.

    Parameters
    ----------
    name : str
        Name of the output, for tables and figures.
    body : str
        Name of the body.
    group : str
        Lie group of the output: "R3xSO3" (full pose, recommended), "SE3", "SO3", "R3",
        "SE2", "R2", "SO2" or "R". The vector groups are components of the position in
        inertial axes; "SE2" and "SO2" are the pose and heading in the x-y plane.
    point : sequence of float
        Point of the body, in its frame, shape (3,), m.
    axes : str, optional
        Inertial axes of a vector output, such as "xz" or "z"; default the first ones.

    Raises
    ------
    UnknownNameError
        If the group does not exist.
    OutputError
        If the axes do not fit the group.
    """

    name: str
    body: str
    group: str
    point: Sequence[float] = (0.0, 0.0, 0.0)
    axes: str | None = None

    def __post_init__(self) -> None:
        where = f"output `{self.name}`"
        if self.group not in GROUPS:
            raise unknown_name(f"{where}, `group`", "group", self.group, GROUPS)
        point = as_floats(self.point, f"{where}, `point`")
        if point.shape != (3,):
            raise shape_error(f"{where}, `point`", (3,), point.shape)
        if not np.isfinite(point).all():
            raise nonfinite_error(f"{where}, `point`", point)
        object.__setattr__(self, "point", tuple(float(x) for x in point))
        default = _VECTORS.get(self.group)
        axes = default if self.axes is None else self.axes
        if axes != default and (
            default is None
            or len(axes or "") != len(default)
            or len(set(axes or "")) != len(default)
            or not set(axes or "") <= set(AXES)
        ):
            raise OutputError(
                f"{where}, `axes`",
                expected=f"{len(default)} different letters of x, y, z"
                if default
                else f"none for group {self.group}",
                came=repr(self.axes),
                cure='For example axes="z" for an R output that is a height.',
            )
        object.__setattr__(self, "axes", axes)

    @cached_property
    def lie(self) -> OutputGroup:
        """The group with its error geometry."""
        simple: dict[str, OutputGroup] = {
            "SE3": Pose(),
            "SO3": Rotation(),
            "SE2": PlanarPose(),
            "SO2": Angle(),
        }
        if self.group in simple:
            return simple[self.group]
        if self.group == "R3xSO3":
            return Product([Vector("xyz"), Rotation()])
        return Vector(self.axes or "")

    @property
    def dim(self) -> int:
        """Dimension of the group."""
        return self.lie.dim

    @property
    def pose_size(self) -> int:
        """Length of the flat coordinates."""
        return self.lie.pose_size

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the error's components."""
        return self.lie.error_names

    @property
    def coordinate_units(self) -> tuple[str, ...]:
        """Units of the error's components, "m" or "rad"."""
        return self.lie.error_units

    def closure_residual(self) -> float:
        """Largest part of a bracket of two basis elements that leaves the algebra (CON6).

        Returns
        -------
        float
            Zero for a Lie subgroup of SE(3), or a product of such.
        """
        return self.lie.closure_residual()

    def placed(self, pose: Placed) -> Placed:
        """Pose of the output's frame: that of the body, moved to the point.

        Parameters
        ----------
        pose : tuple of casadi.SX
            Rotation (3, 3) and translation (3,) of the body, m.

        Returns
        -------
        tuple of casadi.SX
            Rotation and translation of the output's frame.
        """
        return pose[0], pose[1] + pose[0] @ constant(self.point)

    def moved(self, twist: Twist) -> Twist:
        """Body twist, or its rate, at the point.

        Parameters
        ----------
        twist : tuple of casadi.SX
            Linear and angular part in the body's frame, each (3, k).

        Returns
        -------
        tuple of casadi.SX
            The same motion, its linear part taken at the point.
        """
        return twist[0] - cross(constant(self.point), twist[1]), twist[1]
