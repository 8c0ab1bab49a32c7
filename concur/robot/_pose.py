"""Numbers, directions, rotations, and the pose of one frame in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from concur.codegen import DRIFT, Array, constant, finite_floats
from concur.errors import DescriptionError, ShapeError, shown
from concur.tables import Quaternion, Vector3

ROUNDING = 1e-15
"""Distance from unit norm within which a vector stays as it is: what was normalised is read back
from a file to the last bit."""


def vector(value: Sequence[float], size: int, where: str) -> tuple[float, ...]:
    """Read a finite vector of a given size as a tuple of floats."""
    return tuple(float(x) for x in finite_floats(value, where, (size,)))


def scalar(value: float, where: str) -> float:
    """Read one finite number.

    Parameters
    ----------
    value : float
        The number.
    where : str
        Place named in errors.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ShapeError
        If it is not a single number, or true or false.
    NonFiniteError
        If it is NaN or infinite.
    """
    if isinstance(value, bool | np.bool_):
        raise ShapeError(
            where, expected="a number", came=str(value).lower(), cure="Write 0.0 or 1.0."
        )
    return float(finite_floats(value, where, ()))


def check_name(value: object, where: str) -> None:
    """Demand the name of a part: text that is not empty.

    Parameters
    ----------
    value : object
        The name.
    where : str
        Place named in errors.

    Raises
    ------
    DescriptionError
        If it is not.
    """
    if not isinstance(value, str) or not value.strip():
        raise DescriptionError(
            where,
            expected="a name (text that is not empty)",
            came=f"{type(value).__name__} {shown(value)}",
            cure="Name it by a text.",
        )


def unit_vector(value: Sequence[float], where: str) -> tuple[float, ...]:
    """Read a direction in space, of any length but zero, and normalise it."""
    direction = np.array(vector(value, 3, where))
    length = float(np.linalg.norm(direction))
    if length < 1e-12:
        raise ShapeError(
            where,
            expected="a direction (3-vector that is not zero)",
            came=str(tuple(direction.tolist())),
            cure="Give for example (0, 0, 1).",
        )
    if abs(length - 1.0) > ROUNDING:
        direction = direction / length
    return tuple(float(x) for x in direction)


def shortest_rotation(direction: Sequence[float]) -> np.ndarray:
    """Rotation that takes z to a unit vector by the shortest turn.

    Within 1e-6 of -z, half a turn about x comes before the shortest turn from there, so that
    round-off in a direction does not choose the axis.
    """
    x, y, z = direction
    if z < -1.0 + 1e-12:
        turned = shortest_rotation((x, -y, -z))
        return np.stack([turned[0], -turned[1], -turned[2]])
    # The same as x / sqrt(1 + z), without its cancellation near -z.
    side = np.hypot(x, y)
    a, b = np.array([x, y]) * (np.sqrt(1.0 - z) / side if z < 0.0 else 1.0 / np.sqrt(1.0 + z))
    return np.array(
        [
            [1.0 - a * a, -a * b, x],
            [-a * b, 1.0 - b * b, y],
            [-x, -y, z],
        ]
    )


def axis_rotation(axis: Sequence[float], angle: Array) -> Array:
    """Rotation about a constant unit axis, (2.4.15), with its zeros kept structural."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    along = np.outer(axis, axis)
    return (
        constant(along)
        + ca.cos(angle) * constant(np.eye(3) - along)
        + ca.sin(angle) * constant(cross)
    )


@dataclass(frozen=True)
class Pose:
    """A frame's position and orientation in another frame.

    Parameters
    ----------
    translation : sequence of float
        Origin of the frame, shape (3,), m.
    rotation : sequence of float
        Unit quaternion x, y, z, w, shape (4,), which maps coordinates of the frame to those of the
        other; normalised here, within 1e-3 of unit norm.

    Raises
    ------
    ShapeError
        If a shape is wrong or the quaternion is not of unit norm.

    Examples
    --------
    >>> import concur as cc
    >>> cc.Pose((0.1, 0.0, 0.2)).translation
    (0.1, 0.0, 0.2)
    """

    translation: Vector3 = (0.0, 0.0, 0.0)
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    _cures: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "rpy",
                "rotation_deg",
                "attitude_deg",
                "euler",
                "angles",
                "quaternion",
                "orientation",
                "axis_angle",
            ),
            "Write rpy_deg = [roll, pitch, yaw] in degrees, or a unit quaternion: rotation = "
            "[x, y, z, w]; by the angle a about the unit axis n it is [n sin(a/2), cos(a/2)].",
        ),
        **dict.fromkeys(("xyz", "position", "origin"), "Write translation = [x, y, z], m."),
    }

    def __post_init__(self) -> None:
        translation = vector(self.translation, 3, "Pose, `translation`")
        rotation = np.array(vector(self.rotation, 4, "Pose, `rotation`"))
        norm = float(np.linalg.norm(rotation))
        if abs(norm - 1.0) > DRIFT:
            raise ShapeError(
                "Pose, `rotation`",
                expected="a unit quaternion (x, y, z, w)",
                came=f"{tuple(float(x) for x in rotation)} of norm {norm:.6g}",
                cure="Normalise it; mind that the scalar part comes last.",
            )
        if abs(norm - 1.0) > ROUNDING:
            rotation = rotation / norm
        object.__setattr__(self, "translation", translation)
        object.__setattr__(self, "rotation", tuple(float(x) for x in rotation))

    @classmethod
    def from_table(
        cls,
        translation: Vector3 = (0.0, 0.0, 0.0),
        rotation: Quaternion | None = None,
        rpy_deg: Vector3 | None = None,
    ) -> Pose:
        """A frame's position and orientation in another frame, by `rotation` or `rpy_deg`.

        Parameters
        ----------
        translation : sequence of float
            Origin of the frame, shape (3,), m.
        rotation : sequence of float, optional
            Unit quaternion x, y, z, w, shape (4,), which maps coordinates of the frame to those of
            the other; normalised here, within 1e-3 of unit norm. Default: not turned.
        rpy_deg : sequence of float, optional
            Roll, pitch and yaw, shape (3,), deg, in place of `rotation`: turns about the axes x,
            then y, then z of the other frame, as `rpy` of URDF. Default: none, with `rotation`.

        Returns
        -------
        Pose
            The pose.

        Raises
        ------
        DescriptionError
            If both `rotation` and `rpy_deg` are given.
        ShapeError
            As of the constructor.

        Examples
        --------
        >>> import concur as cc
        >>> cc.Pose.from_table(rpy_deg=(0.0, 0.0, 90.0)).rotation_matrix.round(9)[1].tolist()
        [1.0, 0.0, 0.0]
        """
        if rpy_deg is None:
            return cls(translation, cls.rotation if rotation is None else rotation)
        if rotation is not None:
            raise DescriptionError(
                "Pose, `rpy_deg`",
                expected="either `rotation` or `rpy_deg`",
                came="both",
                cure="Keep one of them.",
                field="rpy_deg",
            )
        angles = vector(rpy_deg, 3, "Pose, `rpy_deg`")
        turn = Rotation.from_euler("xyz", angles, degrees=True).as_quat()
        return cls(translation, tuple(turn.tolist()))

    @property
    def rotation_matrix(self) -> np.ndarray:
        """Rotation matrix (3, 3): columns are the frame's axes seen in the other frame."""
        x, y, z, w = self.rotation
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )

    @property
    def matrix(self) -> np.ndarray:
        """Homogeneous matrix (4, 4), m."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation_matrix
        matrix[:3, 3] = self.translation
        return matrix
