"""Outputs: poses of the robot that follow a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from concur.codegen import DRIFT, Array, Place, constant, finite_floats
from concur.errors import ConcurError, OutputError, ShapeError, shown
from concur.outputs.groups import AXES, NAMES, OutputGroup, named
from concur.robot import Placed, Twist, check_name, cross, unknown_name
from concur.robot import Pose as Frame
from concur.tables import Quaternion, Vector3, one_of

_VECTORS = {"R": "x", "R2": "xy", "R3": "xyz"}
_PLANAR = ("SE2", "SO2")
_UPRIGHT, _UNTURNED = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)


def refused(
    where: str, expected: str, came: str, cure: str, kind: type[ConcurError] = OutputError
) -> ConcurError:
    """Error for an output."""
    return kind(where, expected=expected, came=came, cure=cure)


@dataclass(frozen=True)
class Output:
    """A pose, or part of a pose, of a body that is to follow a reference.

    What follows is a frame fixed to the body: the right translate r = q_body r0 of the body's
    pose by the constant r0 = (point, orientation), a tool's frame for example. Errors and twists
    are in the axes of that frame, so that they lie in Ad_(r0^-1) of the body's.

    The pose is in the inertial frame, or with `relative_to` in the frame of another body. Then the
    axes of that body stand wherever inertial axes are named below.

    Parameters
    ----------
    name : str
        Name of the output, for tables and figures.
    body : str
        Name of the body.
    group : str
        Lie group of the output: "R3xSO3" (full pose, recommended), "SE3", "SO3", "R3",
        "SE2", "R2", "SO2" or "R"; or "S2". The vector groups are components of the position in
        inertial axes; "SE2" and "SO2" are the pose and heading in a plane, see `normal`; "S2" is
        the direction of an axis of the body, see `axis`, whose spin about it stays free.
    point : sequence of float
        Point of the body, in its frame, shape (3,), m.
    axes : str, optional
        Inertial axes of a vector output, such as "xz" or "z". Default: the first ones.
    orientation : sequence of float
        Orientation of the output's frame in the body: unit quaternion (x, y, z, w), shape (4,),
        frame to body as in `Pose`; normalised here, within 1e-3 of unit norm. Vector outputs
        have none, and directions `axis` instead.
    normal : sequence of float
        Normal of the plane of an "SE2" or "SO2" output, in inertial axes, shape (3,), of any
        length but zero. The plane's axes are the inertial ones turned the shortest way that
        takes z to the normal (about x for -z), as for the joint `Planar`: x and y for the
        default. The heading is the angle, right-handed about the normal, from the first axis to
        the x axis of the output's frame as it is seen in the plane.
    axis : sequence of float
        Of an "S2" output the axis of the body that is to point along the reference, in the body's
        frame, shape (3,), of any length but zero.
    relative_to : str, optional
        Name of the body in whose frame the output and its reference are given: r = q_a^-1 q_body r0
        with its pose q_a. Default: the inertial frame.

    Raises
    ------
    UnknownNameError
        If the group does not exist.
    DescriptionError
        If the name is no text, or empty.
    ShapeError
        If a shape is wrong, the quaternion is not of unit norm, or the normal or the axis is zero.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If the axes, the orientation, the normal or the axis do not fit the group, or the output is
        relative to its own body.

    Examples
    --------
    >>> import concur as cc
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> hand.group
    'R3'
    """

    name: str
    body: str
    group: Annotated[str, one_of(NAMES)]
    point: Vector3 = (0.0, 0.0, 0.0)
    axes: str | None = None
    orientation: Quaternion = _UNTURNED
    normal: Vector3 = _UPRIGHT
    axis: Vector3 = _UPRIGHT
    relative_to: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "output, `name`")
        where = f"output `{self.name}`"
        if not isinstance(self.group, str) or self.group not in NAMES:
            raise unknown_name(f"{where}, `group`", "group", self.group, NAMES)
        point = finite_floats(self.point, f"{where}, `point`", (3,))
        object.__setattr__(self, "point", tuple(point.tolist()))
        default = _VECTORS.get(self.group)
        axes = default if self.axes is None else self.axes
        fits = isinstance(axes, str) and default and len(axes) == len(default)
        if axes != default and not (
            fits and len(set(axes or "") & set(AXES)) == len(default or "")
        ):
            expected = (
                f"{len(default)} different letters of x, y, z"
                if default
                else f"none for group {self.group}"
            )
            cure = 'For example axes="z" for an R output that is a height.'
            raise refused(f"{where}, `axes`", expected, shown(repr(self.axes)), cure)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "orientation", self._checked_orientation(where))
        object.__setattr__(self, "normal", self._direction(where, "normal", _PLANAR))
        object.__setattr__(self, "axis", self._direction(where, "axis", ("S2",)))
        names = {"body": self.body, "relative_to": self.relative_to}
        for attribute, value in names.items():
            if not isinstance(value, str) and (value is not None or attribute == "body"):
                cure = 'For example body="hand".'
                raise refused(f"{where}, `{attribute}`", "the name of a body", shown(value), cure)
        if self.relative_to == self.body:
            came, cure = f"`{self.body}`", "Name the body in whose frame the output is given."
            raise refused(f"{where}, `relative_to`", "another body than the output's", came, cure)

    def _checked_orientation(self, where: str) -> tuple[float, ...]:
        place = f"{where}, `orientation`"
        quaternion = finite_floats(self.orientation, place, (4,))
        norm = float(np.linalg.norm(quaternion))
        if abs(norm - 1.0) > DRIFT:
            came = f"{tuple(quaternion.tolist())} of norm {norm:.6g}"
            cure = "Normalise it; mind that the scalar part comes last."
            raise refused(place, "a unit quaternion (x, y, z, w)", came, cure, ShapeError)
        # A quaternion of unit norm stays as it was written.
        quaternion = quaternion / norm if norm != 1.0 else quaternion
        if not quaternion[:3].any():
            return _UNTURNED
        if self.group in _VECTORS or self.group == "S2":
            expected = f"none for group {self.group}, which is in inertial axes"
            came, cure = str(tuple(quaternion.tolist())), "Take a group with a rotation in it."
            raise refused(place, expected, came, cure)
        return tuple(quaternion.tolist())

    def _direction(self, where: str, name: str, groups: Sequence[str]) -> tuple[float, ...]:
        """Unit vector of a field that some groups have."""
        place = f"{where}, `{name}`"
        given = finite_floats(getattr(self, name), place, (3,))
        length = float(np.linalg.norm(given))
        if length < 1e-12:
            came, cure = str(tuple(given.tolist())), "Give for example (0, 0, 1)."
            raise refused(place, "a direction, not zero", came, cure, ShapeError)
        direction = tuple((given / length).tolist())
        if self.group not in groups and direction != _UPRIGHT:
            expected = f"none for group {self.group}: it is for {' and '.join(groups)}"
            came, cure = str(tuple(given.tolist())), "Remove it; vector outputs have `axes`."
            raise refused(place, expected, came, cure)
        return direction

    @cached_property
    def lie(self) -> OutputGroup:
        """The group with its error geometry."""
        return named(self.group, self.axes, tuple(self.normal), tuple(self.axis))

    @cached_property
    def frame(self) -> Frame:
        """Output's frame in the body: the constant r0 of the right translate."""
        return Frame(tuple(self.point), tuple(self.orientation))

    @property
    def dim(self) -> int:
        """Dimension of the group."""
        return self.lie.dim

    @property
    def pose_size(self) -> int:
        """Length of the flat coordinates."""
        return self.lie.pose_size

    @property
    def twist_size(self) -> int:
        """Length of a twist of its reference: that of the group, or 3 for "S2"."""
        return self.lie.paths.dim

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the error's components."""
        return self.lie.error_names

    @property
    def is_function(self) -> bool:
        """Whether it is a `FunctionOutput`, which has no body."""
        return False

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
        """Pose of the output's frame: that of the body, moved to the point and turned.

        Parameters
        ----------
        pose : tuple of casadi.SX
            Rotation (3, 3) and translation (3,) of the body, m.

        Returns
        -------
        tuple of casadi.SX
            Rotation and translation of the output's frame.
        """
        origin = pose[1] + pose[0] @ constant(self.point)
        return (pose[0] if self._turn is None else pose[0] @ self._turn), origin

    def moved(self, twist: Twist) -> Twist:
        """Twist of the output's frame, or its rate, from that of the body.

        Parameters
        ----------
        twist : tuple of casadi.SX
            Linear and angular part in the body's frame, each (3, k).

        Returns
        -------
        tuple of casadi.SX
            The same motion, its linear part taken at the point, in the axes of the output's
            frame.
        """
        linear = twist[0] - cross(constant(self.point), twist[1])
        if self._turn is None:
            return linear, twist[1]
        return self._turn.T @ linear, self._turn.T @ twist[1]

    @property
    def _turn(self) -> Array | None:
        """Rotation of the output's frame in the body; None for the identity."""
        if self.orientation == _UNTURNED:
            return None
        return constant(self.frame.rotation_matrix)


def pose_quaternions(outputs: Sequence[Output]) -> Mapping[Place, str]:
    """Names of the outputs whose quaternions and directions are at places in the flat pose."""
    found, start = dict[Place, str](), 0
    for output in outputs:
        start, size = start + output.pose_size, output.lie.unit_size
        if size:
            found[start - size if size == 4 else (start - size, start)] = output.name
    return found
