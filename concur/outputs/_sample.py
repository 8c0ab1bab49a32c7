"""One instant of a reference: pose, velocity and acceleration, and the outputs that it fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import Array, Vector, finite_floats, shape_error
from concur.errors import OutputError, ShapeError
from concur.groups import quaternion
from concur.outputs._output import Output, refused

Part: TypeAlias = tuple[int, int, str | None]
"""Pose coordinates, twist coordinates, group; the group is None where any of these sizes fits."""


class ReferenceSample:
    """Reference pose, twist and acceleration of all outputs at one instant.

    Each may also be a CasADi SX column; a pose is then given by its numbers, not as a matrix.

    Parameters
    ----------
    pose : array_like or casadi.SX, shape (4, 4) or (np,)
        A homogeneous matrix, body to world, if there is one output and it is a pose. Otherwise
        the numbers of all outputs one after the other: `R`, `R2`, `R3` their coordinates (m),
        `SO2` the angle (rad), `SE2` x, y, theta, `SO3` a unit quaternion x, y, z, w, `S2` a unit
        vector x, y, z, `SE3` and `R3xSO3` px, py, pz, qx, qy, qz, qw.
    twist : array_like or casadi.SX, shape (n,)
        Left-trivialised velocity of the reference, gamma^-1 gammadot, in output order (m/s,
        rad/s). `R`, `R2`, `R3`: rate in inertial axes. `SE2`: vx, vy, omega in the axes of the
        demanded pose. `SO3`: angular velocity in the axes of the reference pose. `S2`: angular
        velocity in inertial axes, in which the part along the direction is free. `SE3`: linear
        and angular velocity in the axes of the reference pose. `R3xSO3`: linear velocity in
        inertial axes, angular velocity in the axes of the reference pose.
    acceleration : array_like or casadi.SX, shape (n,)
        Time derivative of `twist` (m/s^2, rad/s^2).
    groups : tuple, optional
        Parts for whose groups the numbers are made, as in `Reference.groups`; a reference states
        them, and laws refuse those of other outputs. Default: those of any outputs of the sizes.

    Attributes
    ----------
    flat_pose : numpy.ndarray or casadi.SX
        The pose as a flat vector, shape (np,): that of a matrix is computed once, here, and is
        px, py, pz, qx, qy, qz, qw.

    Raises
    ------
    ShapeError
        If an array is not numeric, is neither flat nor (4, 4), if an SX is not a column,
        or if `twist` and `acceleration` differ in length.
    NonFiniteError
        If a number is NaN or infinite.

    Examples
    --------
    >>> sample = ReferenceSample([1.0, 2.0], [0.1, 0.0], [0.0, 0.0])
    >>> sample.twist
    array([0.1, 0. ])
    """

    __slots__ = ("acceleration", "flat_pose", "groups", "pose", "twist")

    pose: Array
    flat_pose: Array
    twist: Array
    acceleration: Array
    groups: tuple[Part, ...] | None

    def __init__(
        self,
        pose: Array,
        twist: Vector,
        acceleration: Vector,
        groups: tuple[Part, ...] | None = None,
    ) -> None:
        given = {"pose": pose, "twist": twist, "acceleration": acceleration}
        arrays = {name: _part(value, f"reference sample, {name}") for name, value in given.items()}
        for name, array in arrays.items():
            if not (_is_flat(array) or (name == "pose" and array.shape == (4, 4))):
                expected = "a flat array, or for one pose a (4, 4) homogeneous matrix"
                came, cure = f"shape {array.shape}", "List the numbers of all outputs in order."
                raise refused(f"reference sample, {name}", expected, came, cure, ShapeError)
        size, rates = arrays["twist"].shape[0], arrays["acceleration"].shape[0]
        if size != rates:
            expected, came = f"{size} numbers, as many as the twist has", f"{rates} numbers"
            cure = "The acceleration is the time derivative of the twist."
            raise refused("reference sample, acceleration", expected, came, cure, ShapeError)
        flat = arrays["pose"]
        arrays["flat_pose"] = flat if _is_flat(flat) else pose_numbers(flat)
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "groups", groups)

    @property
    def is_matrix(self) -> bool:
        """Whether the pose was given as a homogeneous matrix (4, 4)."""
        return self.flat_pose is not self.pose

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a reference sample is frozen: `{name}` cannot be deleted")

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return ReferenceSample, (self.pose, self.twist, self.acceleration, self.groups)

    def __repr__(self) -> str:
        pose, twist, acceleration = (
            part.tolist() if isinstance(part, np.ndarray) else str(part)
            for part in (self.pose, self.twist, self.acceleration)
        )
        return f"ReferenceSample(pose={pose}, twist={twist}, acceleration={acceleration})"


def pose_numbers(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn a homogeneous matrix into px, py, pz, qx, qy, qz, qw with qw >= 0."""
    return np.concatenate([matrix[:3, 3], quaternion.from_matrix(matrix[:3, :3])])


def homogeneous(matrix: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    """Reject an array that is not a pose (4, 4)."""
    cure = "Build it with `Pose(translation, rotation).matrix`."
    if matrix.shape != (4, 4):
        came = f"an array of shape {matrix.shape}"
        raise refused(where, "a (4, 4) homogeneous matrix", came, cure, ShapeError)
    rotation = matrix[:3, :3]
    proper = np.abs(rotation.T @ rotation - np.eye(3)).max() < 1e-6 and np.linalg.det(rotation) > 0
    if not proper or np.abs(matrix[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9:
        expected = "a homogeneous matrix with a rotation in it"
        raise refused(where, expected, str(matrix.tolist()), cure, ShapeError)
    return matrix


def _part(value: Array, where: str) -> Array:
    if not isinstance(value, ca.SX):
        return np.array(finite_floats(value, where))
    if value.shape[1] != 1:
        raise shape_error(where, (value.numel(), 1), value.shape)
    return ca.SX(value)


def _is_flat(part: Array) -> bool:
    return isinstance(part, ca.SX) or part.ndim == 1


_LINE: Part = (1, 1, "R")
_SIZES: tuple[int, Part] = (-1, _LINE)
_FACTORS: dict[str, list[Part]] = {"R": [_LINE], "R3xSO3": [*[_LINE] * 3, (4, 3, "SO3")]}


def check_parts(parts: tuple[Part, ...], outputs: Sequence[Output], where: str) -> None:
    """Refuse parts that do not fit a list of outputs.

    Sizes must agree, and where a part is made for a certain group, this must be the output's.
    Products count by their factors: a place in R^3 and a quaternion, stacked, fit an output in
    "R3xSO3". A part for any group fits one or several whole outputs.
    """
    needed = tuple((o.pose_size, o.twist_size, o.group) for o in outputs)
    misfit = _misfit(parts, needed)
    if misfit is None:
        return
    listed = ", ".join(f"`{o.name}` {_shown(w)}" for o, w in zip(outputs, needed, strict=True))
    came = ", ".join(_shown(part) for part in parts)
    if misfit == _SIZES:
        pose_size, size = total(needed)
        expected = f"{pose_size} pose and {size} twist coordinates, in output order: {listed}"
        came = "{} and {}: {}".format(*total(parts), came)
        cure = "Stack one reference for each output, in output order; name the group of a pose."
        raise refused(f"{where}, reference", expected, came, cure, ShapeError)
    first, part = misfit
    raise OutputError(
        f"{where}, reference of output `{outputs[first].name}`",
        expected=f"a part in {_shown(needed[first])}",
        came=f"one in {_shown(part)}; the outputs are {listed}, the parts {came}",
        cure="Make the reference of each output for its group (`group=...`; `planar` for "
        "SE2) and stack them in output order.",
        output=outputs[first].name,
    )


@lru_cache(maxsize=256)
def _misfit(parts: tuple[Part, ...], needed: tuple[Part, ...]) -> tuple[int, Part] | None:
    """Output and part that do not fit, `_SIZES` if the sizes differ, None if all fit."""
    if total(parts) != total(needed):
        return _SIZES
    atoms = [(i, atom) for i, part in enumerate(needed) for atom in factors(part)]
    start = 0
    for part in parts:
        stop, fits = _covered(part, [atom for _, atom in atoms[start:]])
        if not fits:
            return atoms[start + stop][0], part
        start += stop
    return None


def total(parts: Sequence[Part]) -> tuple[int, int]:
    """Pose and twist coordinates of all parts."""
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def _covered(part: Part, atoms: list[Part]) -> tuple[int, bool]:
    """Number of atoms that a part takes up and True, or place of the first misfit and False."""
    if part[2] is None:
        pose_size = size = count = 0
        while pose_size < part[0] or size < part[1]:
            pose_size, size = pose_size + atoms[count][0], size + atoms[count][1]
            count += 1
        fits = (pose_size, size) == part[:2]
        return (count, True) if fits else (0, False)
    own, plain = factors(part), part[2] != "R"
    for i, atom in enumerate(own):
        angle = plain and i < len(atoms) and atom == _LINE and atoms[i][2] == "SO2"
        if not angle and (i >= len(atoms) or atom != atoms[i]):
            return min(i, len(atoms) - 1), False
    return len(own), True


def factors(part: Part) -> list[Part]:
    """Factors of a part: lines for R^n, lines and "SO3" for "R3xSO3", else the part itself."""
    name = part[2] or ""
    if name.startswith("R") and name[1:].isdigit():
        return [_LINE] * int(name[1:])
    return _FACTORS.get(name, [part])


def _shown(part: Part) -> str:
    return f"{part[2] or 'any group'} ({part[0]} pose, {part[1]} twist coordinates)"
