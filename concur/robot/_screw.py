"""Screw parameters of a joint that rolls: exponential coordinates s with the motion exp(basis s).

A joint's coordinates q are global; s is a chart, good for one turn. For joints whose rotations do
not commute with their other motions the map from sdot to the body twist is singular where the
angle is 2 pi k, k >= 1. All functions take CasADi SX or numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant, finite_floats, shape_error
from concur.errors import SingularConfigurationError
from concur.robot.joints import Joint

NEAREST = 1e-6
"""Distance (rad) to an angle of 2 pi k below which numeric inverses are refused."""


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
    return _matrix(joint, joint.dexp, s)


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
    if not isinstance(s, ca.SX):
        _refuse_singular(joint, s)
    inverse = _matrix(joint, joint.dexp_inverse, s)
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


def _matrix(joint: Joint, linear: Callable[[Array, Array], Array], s: Vector) -> Array:
    """Matrix (nv, nv) of the second argument of a linear map, as an expression or in numbers."""
    units, at = ca.SX.eye(joint.nv), ca.SX.sym("s", joint.nv)
    if isinstance(s, ca.SX):
        at = s
    matrix = ca.horzcat(ca.SX(joint.nv, 0), *[linear(at, units[:, k]) for k in range(joint.nv)])
    if isinstance(s, ca.SX):
        return matrix
    numbers = finite_floats(s, f"screw parameters of a {type(joint).__name__} joint", (joint.nv,))
    return np.array(ca.Function("map", [at], [ca.densify(matrix)])(numbers))


def _refuse_singular(joint: Joint, s: Vector) -> None:
    """Refuse numbers s near a full turn, unless the joint commutes."""
    where = f"screw parameters of a {type(joint).__name__} joint"
    angle = float(np.linalg.norm(joint.basis[3:] @ finite_floats(s, where, (joint.nv,))))
    turns = max(1.0, np.floor(angle / (2 * np.pi) + 0.5))
    distance = abs(angle - 2 * np.pi * turns)
    if distance < NEAREST and not is_abelian(joint):
        raise SingularConfigurationError(
            where,
            expected="a rotation angle that is no multiple of a full turn",
            came=f"{angle:.9g} rad, {distance:.2g} rad from {turns:.0f} x 2 pi",
            cure="Take other parameters of the same pose: robot.screw_parameters(q).",
            angle=angle,
            distance=distance,
        )
