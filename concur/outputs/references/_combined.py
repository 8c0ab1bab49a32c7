"""References made of others: side by side, on top of each other, or one carried by another."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, as_floats
from concur.errors import ConcurError, shown
from concur.outputs.references._arguments import SPATIAL, check_group, number, refused, vector
from concur.outputs.references._motions import (
    check_reference,
    from_body,
    group_of,
    part_in,
    product,
    space_group,
    to_body,
)
from concur.outputs.references._paths import screw
from concur.outputs.references._reference import Formula, Motion, Reader, Reference


def stack(*references: Reference) -> Reference:
    """Put the references of several outputs into one.

    Parameters
    ----------
    *references : Reference
        References in the order of the outputs.

    Returns
    -------
    Reference
        Reference of all outputs.

    Raises
    ------
    ConcurError
        If there is no argument, or one is not a `Reference`.

    Examples
    --------
    >>> from concur.outputs.references import hold
    >>> stack(hold([1.0, 2.0]), hold([3.0]))(0.0).pose
    array([1., 2., 3.])
    """
    if not references:
        cure = "Give the reference of each output, in output order."
        raise refused("stack", "at least one reference", "no value", cure, ConcurError)
    for reference in references:
        check_reference(reference, "stack")

    def motion(t: Array, read: Reader) -> list[Array]:
        parts = [reference._expression(t, read) for reference in references]
        return [ca.vertcat(*part) for part in zip(*parts, strict=True)]

    return Formula([part for reference in references for part in reference.groups], motion)


def relative(
    reference: Reference, to: Reference, components: Sequence[int] | None = None
) -> Reference:
    """Add two references in R^n, for example a hand's circle to the path of its base.

    Parameters
    ----------
    reference : Reference
        Motion relative to `to`, in inertial axes: only the place moves along, not the heading.
    to : Reference
        Motion of the moving origin.
    components : sequence of int, optional
        Where the coordinates of the one with fewer coordinates are added in the other. By
        default to the first ones: a path in R^2 moves x and y of a point in R^3.

    Returns
    -------
    Reference
        The sum, with as many coordinates and the groups of the larger one; of `reference` where
        both are of one size.

    Raises
    ------
    ConcurError
        If one of them is a reference of poses, or `components` does not fit.

    Examples
    --------
    >>> from concur.outputs.references import hold, polynomial
    >>> path = polynomial([[0.0, 0.0], [1.0, 0.0]])
    >>> relative(hold([0.1, 0.2, 0.3]), path)(1.0).pose
    array([1.1, 0.2, 0.3])
    """
    for part in (reference, to):
        check_reference(part, "relative")
        # Twists that are plain rates of the pose coordinates add.
        if any(pose != twist or group == "SE2" for pose, twist, group in part.groups):
            cure = "Add positions only; give the orientation in inertial axes."
            raise refused("relative", "two references in R^n", "a rotation in one", cure)
    low, high = sorted((reference, to), key=lambda r: r.size)
    given = np.arange(low.size) if components is None else components
    columns = as_floats(given, "reference relative, components")
    if (
        columns.shape != (low.size,)
        or len(set(columns.tolist()) & set(range(high.size))) < low.size
    ):
        expected = f"{low.size} different whole numbers from 0 to {high.size - 1}"
        cure = "Name a coordinate of the larger reference for each of the smaller."
        raise refused("relative, components", expected, shown(components), cure)
    places = columns.astype(int).tolist()

    def motion(t: Array, read: Reader) -> list[Array]:
        sums = [ca.SX(part) for part in high._expression(t, read)]
        for part, more in zip(sums, low._expression(t, read), strict=True):
            part[places] += more
        return sums

    return Formula((reference if reference.size == high.size else to).groups, motion)


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
        came, cure = f"{reference.pose_size} coordinates", "Stack a path in R2 and an angle."
        raise refused("planar", "coordinates x, y, theta", came, cure)

    def motion(t: Array, read: Reader) -> Motion:
        pose, rate, change = reference._expression(t, read)
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

    return Formula(part_in("SE2"), motion)


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
    check_group(group, "composed", SPATIAL)
    parts = [(part, space_group(part, "composed")) for part in (base, *factors)]

    def motion(t: Array, read: Reader) -> Motion:
        whole, *others = (to_body(part._expression(t, read), own) for part, own in parts)
        for other in others:
            whole = product(whole, other)
        return from_body(whole, group)

    return Formula(part_in(group), motion)


def drifting(reference: Reference, velocity: ArrayLike, start: float = 0.0) -> Reference:
    """Carry a reference along with a constant inertial velocity.

    The centre of mass of a floating robot moves at its linear momentum over its mass for ever,
    and nothing inside the robot changes that: what stands still in inertial axes gets out of
    reach, what drifts along does not.

    Parameters
    ----------
    reference : Reference
        Reference of one output with a position: in R^n, "R3xSO3" or "SE3". Of a pose in the plane
        carry the path, and make it `planar` afterwards.
    velocity : array_like, shape (n,)
        Velocity in inertial axes (m/s): three numbers for a pose, as many as coordinates in R^n.
    start : float, default 0.0
        Time (s) at which the reference is where it would be without the drift.

    Returns
    -------
    Reference
        The reference, displaced by velocity (t - start); attitude and group are the same.

    Raises
    ------
    ConcurError
        If `reference` is no `Reference`, or no position of one output.
    ShapeError, NonFiniteError
        If the velocity does not fit, or a number is not finite.

    Examples
    --------
    >>> from concur.outputs.references import hold
    >>> drifting(hold([1.0, 2.0, 3.0]), [0.1, 0.0, 0.0])(10.0).pose
    array([2., 2., 3.])
    """
    group = group_of(reference, "drifting")
    if group in ("SO3", "SO2", "SE2"):
        cure = "Carry a path in x, y, theta and then use `planar`; orientations do not drift."
        raise refused("drifting", "a position: R^n, R3xSO3 or SE3", group, cure, ConcurError)
    size = 3 if group in ("SE3", "R3xSO3") else reference.size
    rate = vector(velocity, "drifting, velocity", size)
    begin = number(start, "drifting, start")
    if group == "SE3":
        return _carried(reference, np.append(rate, np.zeros(3)), begin, group)

    def motion(t: Array, read: Reader) -> Motion:
        pose, twist, acceleration = (ca.SX(part) for part in reference._expression(t, read))
        pose[:size] += (t - begin) * rate
        twist[:size] += rate
        return pose, twist, acceleration

    return Formula(reference.groups, motion)


def moving(reference: Reference, twist: ArrayLike, start: float = 0.0) -> Reference:
    """Give a reference relative to a frame that moves with a constant spatial twist.

    gamma(t) = exp(xi (t - start)) gamma_0(t), for example a hand's pose in the frame of a
    target that tumbles about a fixed axis.

    Parameters
    ----------
    reference : Reference
        Motion gamma_0 in the moving frame: reference of one output in "SE3", "R3xSO3", "SO3" or
        R^3.
    twist : array_like, shape (6,)
        Constant twist xi of the frame, linear then angular, in inertial axes: the linear part
        is the velocity of the point of the moving frame that passes the inertial origin (m/s,
        rad/s).
    start : float, default 0.0
        Time (s) at which the moving frame is the inertial one.

    Returns
    -------
    Reference
        The motion in inertial axes, in the group of `reference`.

    Raises
    ------
    ConcurError
        If `reference` is no `Reference`, or no motion in space of one output.
    ShapeError, NonFiniteError
        If the twist is not of six finite numbers, or `start` no number.

    Examples
    --------
    A point that stands still in a frame that turns about z:

    >>> from concur.outputs.references import hold
    >>> float(moving(hold([1.0, 0.0, 0.0]), [0, 0, 0, 0, 0, 0.5])(0.0).twist[1])
    0.5
    """
    group = space_group(reference, "moving")
    rate = vector(twist, "moving, twist", 6)
    return _carried(reference, rate, number(start, "moving, start"), group)


def _carried(reference: Reference, twist: ArrayLike, start: float, group: str) -> Reference:
    """A motion in a frame with a constant twist that is the inertial one at the start."""
    frame = screw(np.eye(4), twist, "SE3")

    def motion(t: Array, read: Reader) -> Motion:
        # The frame reads no rows, so that its time may be another one.
        own = to_body(reference._expression(t, read), group)
        return from_body(product(frame._expression(t - start, read), own), group)

    return Formula(part_in(group), motion)
