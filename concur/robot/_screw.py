"""Screw parameters of a joint: exponential coordinates s with the motion exp(basis s).

A joint's coordinates q are global; s is a chart, good for one turn. The functions here go
from one to the other, map rates between them, and give the limits of the chart: for joints whose
rotations do not commute with their other motions the map from sdot to the body twist is
singular where the angle is 2 pi k, k >= 1. The pose reached there has other screw parameters
that are regular, see `shortest`.

All functions take CasADi SX or numbers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import (
    Array,
    EvaluatedMethods,
    Vector,
    as_floats,
    constant,
    evaluated,
    finite_floats,
    shape_error,
)
from concur.errors import SingularConfigurationError
from concur.robot.joints import Joint

NEAREST = 1e-6
"""Distance (rad) to an angle of 2 pi k below which numeric inverses are refused."""

JointFunction = Callable[[Joint, Array], Array]


class _OfJoint(EvaluatedMethods):
    """Members of a joint that `evaluated` uses: counts for the shapes, a name for errors."""

    def __init__(self, joint: Joint) -> None:
        self.joint, self.nq, self.nv = joint, joint.nq, joint.nv
        self.name = type(joint).__name__


_of_joint = functools.cache(_OfJoint)


def _evaluated(signature: str) -> Callable[[JointFunction], JointFunction]:
    """Make `evaluated` out of a function of a joint and an array."""

    def decorate(function: JointFunction) -> JointFunction:
        def method(self: _OfJoint, array: Array) -> Array:
            return function(self.joint, array)

        # `evaluated` keeps graphs under the name of the method and reports names of arguments.
        method.__name__ = method.__qualname__ = function.__name__.lstrip("_")
        array = list(inspect.signature(function).parameters.values())[1]
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        method.__signature__ = inspect.Signature([own, array])  # type: ignore[attr-defined]
        call = evaluated(signature)(method)

        @functools.wraps(function)
        def of_joint(joint: Joint, array: Array) -> Array:
            return call(_of_joint(joint), array)

        return of_joint

    return decorate


def is_abelian(joint: Joint) -> bool:
    """Whether all motions of a joint commute: then q is s and nothing is singular.

    Parameters
    ----------
    joint : Joint
        The joint.

    Returns
    -------
    bool
        True if the bracket of its group is zero.
    """
    a, b = ca.SX.sym("a", joint.nv), ca.SX.sym("b", joint.nv)
    return not ca.sparsify(joint.bracket(a, b)).nnz()


@_evaluated("(nv)->(nq)")
def configuration(joint: Joint, s: Vector) -> Array:
    """Coordinates of the joint for screw parameters, (2.1.3a).

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters in the joint's basis, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Coordinates of exp(basis s), shape (nq,).

    Examples
    --------
    >>> import numpy as np
    >>> from concur.robot import joints
    >>> configuration(joints.Planar(), [np.pi, 0, np.pi]).round(12)
    array([0.        , 2.        , 3.14159265])
    """
    return joint.integrate(constant(joint.neutral), s)


@_evaluated("(nq)->(nv)")
def parameters(joint: Joint, q: Vector) -> Array:
    """Screw parameters of coordinates of the joint, the shorter way: inverse of (2.1.3a).

    Parameters
    ----------
    joint : Joint
        The joint.
    q : array_like
        Coordinates, shape (nq,).

    Returns
    -------
    numpy.ndarray or casadi.SX
        Screw parameters, shape (nv,), m and rad. The angle is at most pi, but for joints that
        commute: those keep the turns counted in q.
    """
    return joint.difference(constant(joint.neutral), q)


@_evaluated("(nv)->(nv,nv)")
def body_map(joint: Joint, s: Vector) -> Array:
    """Map D_Q(s) from the rate of the screw parameters to the body twist, (2.1.4).

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nv, nv): v = D_Q(s) sdot in the joint's basis.
    """
    return _matrix(lambda rate: joint.dexp(s, rate), joint.nv, joint.nv)


def body_map_inverse(joint: Joint, s: Vector) -> Array:
    """Inverse of `body_map`: rate of the screw parameters for a body twist.

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nv, nv): sdot = D_Q(s)^-1 v. As an expression it is infinite or NaN where
        `distance_to_singular` is zero.

    Raises
    ------
    SingularConfigurationError
        If s are numbers with an angle within 1e-6 of 2 pi k, k >= 1, and the joint does not
        commute.
    """
    _refuse_singular(joint, s)
    return _body_map_inverse(joint, s)


@_evaluated("(nv)->(nv,nv)")
def _body_map_inverse(joint: Joint, s: Vector) -> Array:
    return _matrix(lambda v: joint.dexp_inverse(s, v), joint.nv, joint.nv)


@_evaluated("(nv)->(nq,nv)")
def rate_map(joint: Joint, s: Vector) -> Array:
    """Map Z(s) from the rate of the screw parameters to that of the coordinates, (2.1.3b).

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nq, nv): qdot = Z(s) sdot. Square but for joints with a quaternion.
    """
    return _coordinate_rates(joint, configuration(joint, s)) @ body_map(joint, s)


def rate_map_inverse(joint: Joint, s: Vector) -> Array:
    """Left inverse of `rate_map`: rate of the screw parameters for that of the coordinates.

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nv, nq): sdot for a qdot that keeps a quaternion's norm.

    Raises
    ------
    SingularConfigurationError
        If s are numbers with an angle within 1e-6 of 2 pi k, k >= 1, and the joint does not
        commute.
    """
    _refuse_singular(joint, s)
    return _rate_map_inverse(joint, s)


@_evaluated("(nv)->(nv,nq)")
def _rate_map_inverse(joint: Joint, s: Vector) -> Array:
    rates = _coordinate_rates(joint, configuration(joint, s))
    # The columns are orthogonal and of constant length: 1, or 1/2 for a quaternion's.
    neutral = _coordinate_rates(joint, constant(joint.neutral))
    scale = ca.SX(ca.diag(1.0 / ca.sum1(ca.DM(ca.evalf(neutral**2))).T))
    return _body_map_inverse(joint, s) @ scale @ rates.T


@_evaluated("(nv)->()")
def distance_to_singular(joint: Joint, s: Vector) -> Array:
    """Angle from the nearest screw parameters at which `body_map` is singular.

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    float or casadi.SX
        Difference of the rotation angle from the nearest 2 pi k, k >= 1, rad; infinite for
        joints that commute.
    """
    if is_abelian(joint):
        return ca.SX(np.inf)
    angle = _angle(joint, s)
    turns = ca.fmax(1.0, ca.floor(angle / (2 * np.pi) + 0.5))
    return ca.fabs(angle - 2 * np.pi * turns)


@_evaluated("(nv)->(nv)")
def shortest(joint: Joint, s: Vector) -> Array:
    """Screw parameters of the same pose with an angle of at most pi.

    To move on from there is to re-anchor the chart: it is regular again.

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nv,), m and rad; s itself for joints that commute.
    """
    return parameters(joint, configuration(joint, s))


def admissible(joint: Joint, s: Vector, rows: Any) -> Array:
    """Map Sigma(s) from admissible velocities to the rate of the screw parameters, (2.1.5).

    For a constraint on the body twist that does not depend on the pose, rows v = 0, no chart
    is left in (2.1.5): Sigma(s) = D_Q(s)^-1 kernel, and the admissible velocities are those
    body velocities that the rows leave free, see `kernel`.

    Parameters
    ----------
    joint : Joint
        The joint.
    s : array_like
        Screw parameters, shape (nv,), m and rad.
    rows : array_like
        Constraint on the body twist in the joint's basis, shape (f, nv), constant. For a wheel
        on the body these are the columns of the joint in `wheel_rows`.

    Returns
    -------
    numpy.ndarray or casadi.SX
        Shape (nv, nv - rank of the rows).

    Raises
    ------
    SingularConfigurationError
        If s are numbers with an angle within 1e-6 of 2 pi k, k >= 1, and the joint does not
        commute.

    Examples
    --------
    A body that rolls along its x axis and cannot slip sideways has the velocities (vx, omega):

    >>> from concur.robot import joints
    >>> admissible(joints.Planar(), [0.6, -0.25, 0.0], [[0, 1, 0]])
    array([[ 1.   , -0.125],
           [ 0.   , -0.3  ],
           [ 0.   ,  1.   ]])
    """
    free = kernel(rows, joint.nv)
    inverse = body_map_inverse(joint, s)
    return inverse @ (constant(free) if isinstance(inverse, ca.SX) else free)


def kernel(rows: Any, count: int) -> np.ndarray:
    """Basis of the velocities that a constraint admits, in reduced echelon form.

    Coordinates are kept as velocities where possible: each column has a one at its own free
    coordinate and zeros at the others'. The rows [0, 1, 0] give the columns e1 and e3.

    Parameters
    ----------
    rows : array_like or casadi.SX
        Constant constraint rows, shape (f, count).
    count : int
        Number of coordinates.

    Returns
    -------
    numpy.ndarray
        Shape (count, count - rank): rows @ basis = 0.

    Raises
    ------
    ShapeError
        If the rows are not constant numbers of that shape.
    NonFiniteError
        If there is a NaN or an infinity in them.
    """
    where = "kernel, `rows`"
    if isinstance(rows, ca.SX) and rows.is_constant():
        rows = ca.DM(rows)
    rest = finite_floats(rows, where).copy()
    if rest.ndim != 2 or rest.shape[1] != count:
        raise shape_error(where, (rest.shape[0] if rest.ndim else 1, count), rest.shape)
    size = np.linalg.norm(rest, axis=1, keepdims=True)
    rest /= np.where(size > 0.0, size, 1.0)
    pivots: list[int] = []
    for column in range(count):
        row = len(pivots)
        if row == len(rest):
            break
        best = row + int(np.abs(rest[row:, column]).argmax())
        if abs(rest[best, column]) < 1e-9:
            continue
        rest[[row, best]] = rest[[best, row]]
        rest[row] /= rest[row, column]
        others = [i for i in range(len(rest)) if i != row]
        rest[others] -= np.outer(rest[others, column], rest[row])
        pivots.append(column)
    free = [column for column in range(count) if column not in pivots]
    basis = np.zeros((count, len(free)))
    basis[free, range(len(free))] = 1.0
    basis[pivots] = -rest[: len(pivots), free]
    return basis + 0.0  # no negative zeros


def _angle(joint: Joint, s: Vector) -> Array:
    """Rotation angle of exp(basis s), with derivatives that are zero, not NaN, at rest."""
    square = ca.densify(ca.sumsqr(constant(joint.basis[3:]) @ s))
    moving = square > 1e-300
    return ca.if_else(moving, ca.sqrt(ca.if_else(moving, square, 1.0)), 0.0)


def _refuse_singular(joint: Joint, s: Vector) -> None:
    if isinstance(s, (ca.SX, ca.MX)) or is_abelian(joint):
        return
    distance = distance_to_singular(joint, s)
    if distance < NEAREST:
        angle = float(np.linalg.norm(joint.basis[3:] @ as_floats(s, "s")))
        raise SingularConfigurationError(
            f"screw parameters of a {type(joint).__name__} joint",
            expected="a rotation angle that is no multiple of a full turn",
            came=f"{angle:.9g} rad, {distance:.2g} rad from {angle / (2 * np.pi):.0f} x 2 pi",
            cure="Re-anchor: `shortest(joint, s)` gives other parameters of the same pose.",
            angle=angle,
            distance=distance,
        )


def _coordinate_rates(joint: Joint, q: Vector) -> Array:
    """Matrix (nq, nv) of the map from body twist to rate of the coordinates."""
    return _matrix(lambda v: joint.rate(q, v), joint.nq, joint.nv)


def _matrix(linear: Callable[[Array], Array], rows: int, columns: int) -> Array:
    """Matrix of a linear map."""
    units = ca.SX.eye(columns)
    return ca.horzcat(ca.SX(rows, 0), *[linear(units[:, k]) for k in range(columns)])
