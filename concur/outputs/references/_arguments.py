"""Checks of arguments of references."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import DRIFT, finite_floats, shape_error
from concur.errors import ConcurError, ShapeError
from concur.outputs._sample import homogeneous, pose_numbers
from concur.outputs.groups import named
from concur.robot import unknown_name
from concur.tables import INTERNAL

SPATIAL = ("R3xSO3", "SE3", "SO3", "R3")
"""The groups of which a motion in SE(3) gives a reference."""

CURVED = (*SPATIAL[:3], "S2")
"""Groups with a rotation in them, and directions."""

LARGEST = 1e9
"""Size of a number in a reference, SI units: their squares stay far within double precision."""

SHORTEST = 1e-6
"""Time, s, or length, m, that counts as one: rates and curvatures are divided by it."""


COORDINATES = "See `ReferenceSample` for the coordinates of each group."


Group: TypeAlias = Annotated[str | None, INTERNAL]
"""Group of the output, which a file states with the output."""


def refused(
    where: str,
    expected: str,
    came: object,
    cure: str,
    kind: type[ConcurError] = ShapeError,
    **data: object,
) -> ConcurError:
    """Build the error for an argument of a reference."""
    return kind(f"reference {where}", expected=expected, came=str(came), cure=cure, **data)


def numbers(value: ArrayLike, where: str, ndim: int | None = None) -> NDArray[np.float64]:
    """Copy an array of finite numbers within `LARGEST`, of `ndim` axes, not empty."""
    array = np.array(finite_floats(value, f"reference {where}"))
    if array.size and np.abs(array).max() > LARGEST:
        worst = f"{array.flat[np.abs(array).argmax()]:g}"
        expected = f"numbers within {LARGEST:g} (SI units)"
        raise refused(where, expected, worst, "Check the unit.", ConcurError)
    # An empty list of times is valid; an empty point or table is not.
    empty = array.ndim > 0 and array.shape[-1] == 0 and (where, array.ndim) != ("times", 1)
    if empty or (ndim is not None and array.ndim != ndim):
        form = {1: "a flat array", 2: "a table (rows of numbers)"}.get(ndim or 0, "some numbers")
        raise refused(where, form, f"an array of shape {array.shape}", "Check the brackets.")
    return array


def vector(value: ArrayLike, where: str, size: int) -> NDArray[np.float64]:
    """Copy a flat array of finite numbers of one size."""
    array = numbers(value, where)
    if array.shape != (size,):
        raise shape_error(f"reference {where}", (size,), array.shape)
    return array


def number(value: ArrayLike, where: str) -> float:
    """Read one finite number."""
    array = numbers(value, where)
    if array.ndim != 0:
        raise refused(where, "one number", f"shape {array.shape}", "Give a single number.")
    return float(array)


def positive(value: ArrayLike, where: str, unit: str) -> float:
    """Read one number not below `SHORTEST`."""
    single = number(value, where)
    if single < SHORTEST:
        expected, cure = f"at least {SHORTEST:g} {unit}", "Check the sign and the unit."
        raise refused(where, expected, f"{single:.9g}", cure, ConcurError)
    return single


def check_group(group: object, where: str, known: tuple[str, ...] = CURVED) -> str:
    """Refuse the name of a group that does not exist or does not apply."""
    if not isinstance(group, str) or group not in known:
        raise unknown_name(f"reference {where}, group", "group", str(group), known)
    return group


def flat_pose(value: ArrayLike, group: str, where: str) -> NDArray[np.float64]:
    """Read one pose of a group: coordinates (n,), or a matrix (4, 4); its quaternion becomes unit.

    Of a matrix "SO3" takes the rotation. A direction becomes a unit vector.
    """
    array = numbers(value, where)
    if array.shape == (4, 4) and group != "S2":
        return read_pose(homogeneous(array, f"reference {where}"), group)
    size = named(group).pose_size
    if array.shape != (size,):
        expected = f"{size} numbers for an output in {group}, or a (4, 4) matrix"
        raise refused(where, expected, f"shape {array.shape}", COORDINATES)
    return with_unit_length(array, group, where)


def read_pose(matrix: NDArray[np.float64], group: str) -> NDArray[np.float64]:
    """Coordinates of a homogeneous matrix in a group."""
    return pose_numbers(matrix)[{"R3": slice(0, 3), "SO3": slice(3, 7)}.get(group, slice(0, 7))]


def with_unit_length(pose: NDArray[np.float64], group: str, where: str) -> NDArray[np.float64]:
    """Normalise the quaternion or direction of a pose; refuse a norm not 1 within `DRIFT`."""
    if size := named(group).unit_size:
        norm = float(np.linalg.norm(pose[-size:]))
        if abs(norm - 1.0) > DRIFT:
            expected, cure = "a unit vector x, y, z", "Divide it by its length."
            if size == 4:
                expected = "a unit quaternion x, y, z, w"
                cure = "Divide it by its norm; check that the scalar part comes last."
            raise refused(where, expected, f"norm {norm:.9g}", cure)
        pose[-size:] /= norm
    return pose
