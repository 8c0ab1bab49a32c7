"""Poses in the plane from paths of x, y and heading."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array
from concur.errors import ShapeError
from concur.outputs._sample import Part
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._reference import Expression, Reference, check_reference


def planar(reference: Reference) -> Reference:
    """Take a reference of x, y, theta as one of a pose in the plane.

    A path in R^3 has rates in inertial axes; a reference in SE(2) has them in the axes of the
    pose. This converts the one into the other.

    Parameters
    ----------
    reference : Reference
        Reference in R^3 with coordinates x (m), y (m), theta (rad).

    Returns
    -------
    Reference
        The same motion as a reference for an output in "SE2".

    Raises
    ------
    ShapeError
        If the reference does not have three coordinates.

    Examples
    --------
    >>> from concur.outputs.references import polynomial
    >>> sideways = polynomial([[0.0, 0.0, 1.5707963267948966], [0.0, 1.0, 0.0]])
    >>> planar(sideways)(0.0).twist.round(12)
    array([1., 0., 0.])
    """
    check_reference(reference, "planar")
    if (reference.pose_size, reference.size) != (3, 3):
        raise ShapeError(
            "reference planar",
            expected="a reference with the coordinates x, y, theta",
            came=f"one with {reference.pose_size}",
            cure="Stack a path in R2 and an angle.",
        )
    return _PlanarPose(reference)


class _PlanarPose(Expression):
    def __init__(self, path: Reference) -> None:
        self.pose_size = self.size = 3
        self._path = path

    @property
    def groups(self) -> tuple[Part, ...]:
        return ((3, 3, "SE2"),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        pose, rate, change = self._path._motion(t, read)
        cos, sin, turn = ca.cos(pose[2]), ca.sin(pose[2]), rate[2]
        forward = cos * rate[0] + sin * rate[1]
        sideways = -sin * rate[0] + cos * rate[1]
        forward_change = cos * change[0] + sin * change[1] + turn * sideways
        sideways_change = -sin * change[0] + cos * change[1] - turn * forward
        return (
            pose,
            ca.vertcat(forward, sideways, turn),
            ca.vertcat(forward_change, sideways_change, change[2]),
        )
