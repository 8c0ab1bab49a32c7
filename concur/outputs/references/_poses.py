"""Groups of poses for references: positions and quaternions, in the axes of each group.

References of poses are put together in SE(3), with body twists, and read off in the group of
the output: `from_body` and `to_body` turn motions from the one into the other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import DRIFT, Array
from concur.errors import ConcurError, ShapeError
from concur.groups import quaternion
from concur.outputs._parts import factors
from concur.outputs._sample import Part, pose_numbers
from concur.outputs.groups import OutputGroup, Pose, Product, Rotation, Vector
from concur.outputs.references._columns import Columns, Floats, column_function
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._inputs import homogeneous, numbers
from concur.outputs.references._reference import Expression, Reference
from concur.robot import cross, unknown_name

LIE: dict[str, OutputGroup] = {
    "R3xSO3": Product([Vector("xyz"), Rotation()]),
    "SE3": Pose(),
    "SO3": Rotation(),
    "R3": Vector("xyz"),
}
"""The groups of which a motion in SE(3) gives a reference."""

CURVED = ("R3xSO3", "SE3", "SO3")
"""Those with a rotation in them."""

_COLUMNS = {"R3": slice(0, 3), "SO3": slice(3, 7), "SE3": slice(0, 7), "R3xSO3": slice(0, 7)}


def check_group(group: object, where: str, known: tuple[str, ...] = CURVED) -> str:
    """Refuse the name of a group that does not exist or does not apply."""
    if not isinstance(group, str) or group not in known:
        raise unknown_name(f"reference {where}, group", "group", str(group), known)
    return group


def flat_pose(value: ArrayLike, group: str, where: str) -> Floats:
    """Read one pose of a group: coordinates (n,), or a matrix (4, 4); its quaternion becomes unit.

    Of a matrix "SO3" takes the rotation.
    """
    array = numbers(value, where)
    if array.shape == (4, 4):
        return pose_numbers(homogeneous(array, where))[_COLUMNS[group]]
    size = LIE[group].pose_size
    if array.shape != (size,):
        raise ShapeError(
            f"reference {where}",
            expected=f"{size} numbers for an output in {group}, or a (4, 4) homogeneous matrix",
            came=f"an array of shape {array.shape}",
            cure="See `ReferenceSample` for the coordinates of each group.",
        )
    array[-4:] = unit_quaternion(array[-4:], where)
    return array


def unit_quaternion(value: Floats, where: str) -> Floats:
    """Normalise a quaternion x, y, z, w; refuse a norm that is not 1 within `DRIFT`."""
    norm = float(np.linalg.norm(value))
    if abs(norm - 1.0) > DRIFT:
        raise ShapeError(
            f"reference {where}",
            expected=f"a unit quaternion x, y, z, w, its norm within {DRIFT:g} of one",
            came=f"one of norm {norm:.9g}",
            cure="Divide it by its norm; check that the scalar part comes last.",
        )
    return value / norm


def group_of(reference: Reference, where: str) -> str:
    """Group of the one output that a reference is made for: "R1", "R2", ... or its name.

    A place and an orientation, stacked, are in "R3xSO3". References of several outputs are refused,
    and those that could be in SE3 as well as in R3xSO3.
    """
    parts = reference.groups
    atoms = [atom for part in parts for atom in _line_factors(part)]
    if all(atom == (1, 1, "R") for atom in atoms):
        return f"R{len(atoms)}"
    if [atom[2] for atom in atoms] == ["R", "R", "R", "SO3"]:
        return "R3xSO3"
    if len(atoms) == 1 and atoms[0][2] is not None:
        return atoms[0][2]
    came = ", ".join(f"{part[2] or 'any group'} ({part[0]} coordinates)" for part in parts)
    raise ConcurError(
        f"reference {where}",
        expected="the reference of one output, of a known group",
        came=f"one in {came}",
        cure='Name its group (`group="R3xSO3"`); put outputs together with `stack` afterwards.',
    )


def _line_factors(part: Part) -> list[Part]:
    if part[2] is None and part[0] == part[1]:
        return [(1, 1, "R")] * part[1]
    return factors(part)


def logarithm(poses: Floats, others: Floats, group: str) -> Floats:
    """log(pose^-1 other), the shorter way round, of tables of poses: (k, dim), m and rad."""
    return Columns(_logarithm(group))(poses, others)[0]


def to_body(motion: Motion, group: str) -> Motion:
    """Turn a motion in a group into a pose with a body twist; "SO3" is at the origin."""
    if group == "SE3":
        return motion
    pose, twist, change = _to_body(group)(*motion)
    return pose, twist, change


def from_body(motion: Motion, group: str) -> Motion:
    """Read a pose with a body twist in a group."""
    if group == "SE3":
        return motion
    twist, change = _from_body(group)(*motion)
    return motion[0][_COLUMNS[group]], twist, change


class Read(Expression):
    """A reference in SE(3), read in another group."""

    def __init__(self, reference: Reference, group: str) -> None:
        self.pose_size, self.size = LIE[group].pose_size, LIE[group].dim
        self._reference, self._group = reference, group

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in the group."""
        return ((self.pose_size, self.size, self._group),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        return from_body(self._reference._motion(t, read), self._group)


@cache
def _logarithm(group: str) -> ca.Function:
    lie = LIE[group]
    size = lie.pose_size
    return column_function(f"logarithm_{group}", lambda a, b: (lie.error(a, b),), (size, size))


@cache
def _from_body(group: str) -> ca.Function:
    lie = LIE[group]

    def read(pose: Array, twist: Array, change: Array) -> tuple[Array, Array]:
        placed = (quaternion.to_matrix(pose[3:]), pose[:3])
        own, rate = (twist[:3], twist[3:]), (change[:3], change[3:])
        return lie.velocity(placed, own), lie.acceleration(placed, own, rate)

    return column_function(f"from_body_{group}", read, (7, 6, 6))


@cache
def _to_body(group: str) -> ca.Function:
    def turn(pose: Array, twist: Array, change: Array) -> Any:
        place, attitude = _split(group, pose, ca.SX([0, 0, 0, 1]))
        linear, angular = _split(group, twist, ca.SX(3, 1))
        push, spin = _split(group, change, ca.SX(3, 1))
        back = quaternion.to_matrix(attitude).T
        own = back @ linear
        return (
            ca.vertcat(place, attitude),
            ca.vertcat(own, angular),
            ca.vertcat(back @ push - cross(angular, own), spin),
        )

    lie = LIE[group]
    return column_function(f"to_body_{group}", turn, (lie.pose_size, lie.dim, lie.dim))


def _split(group: str, column: Array, unturned: Array) -> tuple[Array, Array]:
    """Linear and angular part, with rest or the identity for what the group leaves out."""
    if group == "R3":
        return column, unturned
    return (ca.SX(3, 1), column) if group == "SO3" else (column[:3], column[3:])
