"""Products of motions in space: frames that move in frames that move."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca

from concur.codegen import Array
from concur.errors import ConcurError
from concur.groups import quaternion, se3
from concur.outputs._sample import Part
from concur.outputs.references._columns import column_function
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._poses import LIE, Read, check_group, group_of, to_body
from concur.outputs.references._reference import Expression, Reference, check_reference


def composed(base: Reference, *factors: Reference, group: str = "R3xSO3") -> Reference:
    """Compose motions: gamma = base factor factor ..., as poses in SE(3).

    Each factor moves in the frame that the ones before it move. With body twists

        xi = Ad_(b^-1) xi_a + xi_b,
        d/dt xi = Ad_(b^-1) d/dt xi_a - ad_(xi_b) Ad_(b^-1) xi_a + d/dt xi_b

    for a pose a b, so that twist and acceleration are exact.

    Parameters
    ----------
    base : Reference
        Motion of the first frame in the inertial one: a reference of one output in "SE3",
        "R3xSO3", "SO3" (about the origin) or "R3" (without turning).
    *factors : Reference
        Motions of each next frame in the one before, likewise.
    group : {"R3xSO3", "SE3", "SO3", "R3"}, default "R3xSO3"
        Group of the result.

    Returns
    -------
    Reference
        Reference of one output.

    Raises
    ------
    ConcurError
        If a part is no `Reference`, or no motion in space.
    UnknownNameError
        If `group` is another one.

    Examples
    --------
    A hand that nods in a frame that drifts:

    >>> import numpy as np
    >>> from concur.outputs.references import polynomial, screw
    >>> drift = polynomial([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    >>> nod = screw(np.eye(4), [0, 0, 0, 0, 0.2, 0])
    >>> composed(drift, nod)(2.0).twist
    array([0.1, 0. , 0. , 0. , 0.2, 0. ])
    """
    check_group(group, "composed", tuple(LIE))
    parts = (base, *factors)
    for part in parts:
        check_reference(part, "composed")
    return Read(Composed(parts, [space_group(part, "composed") for part in parts]), group)


def space_group(reference: Reference, where: str) -> str:
    """Group of a motion in space: "SE3", "R3xSO3", "SO3" or "R3"; others are refused."""
    group = group_of(reference, where)
    if group not in LIE:
        raise ConcurError(
            f"reference {where}",
            expected=f"motions in space: references in {', '.join(LIE)}",
            came=f"one in {group}",
            cure="Give all three coordinates of a place, or a pose.",
        )
    return group


class Composed(Expression):
    """The product of motions in some groups, from the first frame on, in the group "SE3"."""

    pose_size, size = 7, 6

    def __init__(self, parts: tuple[Reference, ...], names: list[str]) -> None:
        self._parts, self._names = parts, names

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in SE3."""
        return ((7, 6, "SE3"),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        bodies = [
            to_body(part._motion(t, read), name)
            for part, name in zip(self._parts, self._names, strict=True)
        ]
        pose, twist, change = bodies[0]
        for body in bodies[1:]:
            pose, twist, change = _product()(pose, twist, change, *body)
        return pose, twist, change


@cache
def _product() -> ca.Function:
    def product(
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

    return column_function("product", product, (7, 6, 6, 7, 6, 6))
