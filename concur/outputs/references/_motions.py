"""Motions on groups: exponentials, logarithms, products, and frames seen from each other.

References of poses are put together in SE(3), with body twists, and read off in the group of the
output: `to_body` and `from_body` turn motions from the one into the other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca

from concur.codegen import Array
from concur.errors import ConcurError
from concur.groups import quaternion, se3
from concur.outputs._sample import Part, factors
from concur.outputs.groups import named
from concur.outputs.references._arguments import SPATIAL, refused
from concur.outputs.references._reference import Floats, Motion, Reference, evaluate
from concur.robot import cross


def part_in(group: str) -> tuple[Part, ...]:
    """One part, in a group."""
    lie = named(group).paths
    return ((lie.pose_size, lie.dim, group),)


def path(size: int) -> tuple[Part, ...]:
    """One part, in R^n: the twist is the plain rate of the coordinates, in inertial axes.

    It fits R^n outputs and angles, several of them too, but no SE2 output, whose velocity is
    in the axes of the reference pose: `planar` makes one of it.
    """
    return ((size, size, f"R{size}"),)


def check_reference(value: object, where: str) -> None:
    """Reject anything but a reference where references are combined."""
    if not isinstance(value, Reference):
        cure = "Wrap own functions with `references.from_function`."
        raise refused(where, "references", type(value).__name__, cure, ConcurError)


def group_of(reference: Reference, where: str) -> str:
    """Group of the one output that a reference is made for: "R1", "R2", ... or its name.

    A place and an orientation, stacked, are in "R3xSO3". References of several outputs are refused,
    and those that could be in SE3 as well as in R3xSO3.
    """
    check_reference(reference, where)
    atoms = [
        atom
        for part in reference.groups
        for atom in factors((*part[:2], part[2] or (f"R{part[1]}" if part[0] == part[1] else None)))
    ]
    if all(atom == (1, 1, "R") for atom in atoms):
        return f"R{len(atoms)}"
    if [atom[2] for atom in atoms] == ["R", "R", "R", "SO3"]:
        return "R3xSO3"
    if len(atoms) == 1 and atoms[0][2] is not None:
        return atoms[0][2]
    came = ", ".join(f"{p[2] or 'any group'} ({p[0]} coordinates)" for p in reference.groups)
    cure = 'Name its group (`group="R3xSO3"`); put outputs together with `stack` afterwards.'
    raise refused(where, "one output of a known group", came, cure, ConcurError)


def space_group(reference: Reference, where: str) -> str:
    """Group of a motion in space: "SE3", "R3xSO3", "SO3" or "R3"; others are refused."""
    group = group_of(reference, where)
    if group not in SPATIAL:
        cure = "Give all three coordinates of a place, or a pose."
        raise refused(where, f"references in {', '.join(SPATIAL)}", group, cure, ConcurError)
    return group


def to_body(motion: Motion, group: str) -> Motion:
    """Turn a motion in a group into a pose with a body twist; "SO3" is at the origin."""
    if group == "SE3":
        return motion
    pose, twist, change = motion
    place, attitude = _split(group, pose, ca.SX([0, 0, 0, 1]))
    linear, angular = _split(group, twist, ca.SX(3, 1))
    push, spin = _split(group, change, ca.SX(3, 1))
    back = quaternion.to_matrix(attitude).T
    own = back @ linear
    rate = back @ push - cross(angular, own)
    return ca.vertcat(place, attitude), ca.vertcat(own, angular), ca.vertcat(rate, spin)


def from_body(motion: Motion, group: str) -> Motion:
    """Read a pose with a body twist in a group."""
    if group == "SE3":
        return motion
    pose, twist, change = motion
    lie, placed = named(group), (quaternion.to_matrix(pose[3:]), pose[:3])
    own, rate = (twist[:3], twist[3:]), (change[:3], change[3:])
    coordinates = {"R3": pose[:3], "SO3": pose[3:]}.get(group, pose)
    return coordinates, lie.velocity(placed, own), lie.acceleration(placed, own, rate)


def product(a: Motion, b: Motion) -> Motion:
    """Motion of the frame b in the frame a, both with body twists."""
    pose, twist, change = _product()(*a, *b)
    return pose, twist, change


@cache
def _product() -> ca.Function:
    # A function, whose intermediate results `from_body` then shares with it.
    def expressions(
        a: Array, twist_a: Array, change_a: Array, b: Array, twist_b: Array, change_b: Array
    ) -> Any:
        place = a[:3] + quaternion.rotate(a[3:], b[:3])
        back = se3.adjoint(se3.inverse(se3.pose(b[:3], b[3:])))
        carried = back @ twist_a
        return (
            ca.vertcat(place, quaternion.multiply(a[3:], b[3:])),
            carried + twist_b,
            back @ change_a - se3.ad(twist_b) @ carried + change_b,
        )

    return column_function(expressions, 7, 6, 6, 7, 6, 6)


def exponential(start: Array, path: Motion, group: str) -> Motion:
    """Pose start exp(x) with twist D(x) xdot (2.1.4) and its time derivative.

    Of a starting pose, and x with its first and second rate.
    """
    pose, twist, change = _exponential(group)(start, *path)
    return pose, twist, change


@cache
def _exponential(group: str) -> ca.Function:
    lie = named(group).paths

    def along(start: Array, x: Array, rate: Array, second: Array) -> Any:
        twist = lie.differential(x) @ rate
        change = ca.jtimes(twist, ca.vertcat(x, rate), ca.vertcat(rate, second))
        return lie.shifted(start, -x), twist, change

    return column_function(along, lie.pose_size, *[lie.dim] * 3)


def logarithm(poses: Floats, others: Floats, group: str) -> Floats:
    """log(pose^-1 other), the shorter way round, of tables of poses: (k, dim), m and rad."""
    lie = named(group).paths
    error = column_function(lambda a, b: (lie.error(a, b),), lie.pose_size, lie.pose_size)
    return evaluate(error, poses, others)[0]


def in_logarithms(ways: Floats, twists: Floats, changes: Floats, group: str) -> list[Floats]:
    """Rates of logarithms x for twists and their time derivatives: xdot = D(x)^-1 twist."""
    lie = named(group).paths

    def rates(x: Array, twist: Array, change: Array) -> Any:
        rate = lie.error_map(-x) @ twist
        return rate, ca.jtimes(rate, ca.vertcat(x, twist), ca.vertcat(rate, change))

    return evaluate(column_function(rates, *[lie.dim] * 3), ways, twists, changes)


def column_function(expressions: Any, *sizes: int) -> ca.Function:
    """Function over SX columns of some sizes."""
    symbols = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    results = [ca.densify(result) for result in expressions(*symbols)]
    return ca.Function("motion", symbols, results, {"cse": True})


def _split(group: str, column: Array, unturned: Array) -> tuple[Array, Array]:
    """Linear and angular part, with rest or the identity for what the group leaves out."""
    if group == "R3":
        return column, unturned
    return (ca.SX(3, 1), column) if group == "SO3" else (column[:3], column[3:])
