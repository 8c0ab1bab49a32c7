"""Directions: the two-sphere S^2 of unit vectors, a homogeneous space of SO(3).

A direction moves by ``ddot = omega x d``. The rotation vector between two directions is normal to
both, so that its length is the angle between them and turns about it are geodesics, great circles.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Matrix, Vector, evaluated
from concur.groups.stumpff import inverse_coefficients, stumpff

_TINY = 1e-150
"""Length of the part that chooses an axis where two directions are opposite."""


@evaluated("(3)->(3,2)")
def frame(direction: Vector) -> Matrix:
    """Return two unit vectors normal to a direction and to each other, right-handed with it.

    No choice of them is continuous on the whole sphere: this one jumps where the third component
    changes its sign.

    Parameters
    ----------
    direction : array_like, shape (3,)
        A unit vector.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 2)
        The two vectors as columns.

    References
    ----------
    T. Duff and others, "Building an orthonormal basis, revisited" (2017).

    Examples
    --------
    >>> from concur.groups import s2
    >>> s2.frame([0.0, 0.0, 1.0]) + 0.0
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    x, y, z = direction[0], direction[1], direction[2]
    side = ca.if_else(z < 0, -1.0, 1.0)
    scale = -1 / (side + z)
    mixed = x * y * scale
    return ca.horzcat(
        ca.vertcat(1 + side * x * x * scale, side * mixed, -side * x),
        ca.vertcat(mixed, side + y * y * scale, -y),
    )


@evaluated("(3),(3)->(3)")
def log(start: Vector, end: Vector) -> Vector:
    """Return the rotation vector that takes one direction to another the shorter way.

    Parameters
    ----------
    start, end : array_like, shape (3,)
        Unit vectors; both may be of any other length.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        Rotation vector, rad, normal to both, of length 0 to pi. At pi, where every normal is
        right, one of them is returned.

    Examples
    --------
    >>> from concur.groups import s2
    >>> s2.log([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).round(12)
    array([0.    , 0.    , 1.570796326795])
    """
    normal = ca.cross(start, end) + _TINY * frame(start)[:, 0]
    sine = ca.sqrt(ca.sumsqr(normal))
    return normal * (ca.atan2(sine, ca.dot(start, end)) / sine)


@evaluated("(3),(3)->(3)")
def turned(direction: Vector, w: Vector) -> Vector:
    """Return a direction after the turn of a rotation vector in inertial axes.

    Parameters
    ----------
    direction : array_like, shape (3,)
        A unit vector.
    w : array_like, shape (3,)
        Rotation vector, rad, in the axes of the direction.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        The unit vector exp(w) d.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import s2
    >>> s2.turned([1.0, 0.0, 0.0], [0.0, 0.0, np.pi / 2]).round(12)
    array([0., 1., 0.])
    """
    _, c1, c2, *_ = stumpff(ca.sumsqr(w))
    once = ca.cross(w, direction)
    return direction + c1 * once + c2 * ca.cross(w, once)


@evaluated("(2)->(2,2)")
def error_map(x: Vector) -> Matrix:
    """Return B(x) with ``xdot = -B(x) ve`` for a direction that turns relative to its goal.

    Along the great circle to the goal it is 1, and across it ``a cot a`` with the angle a.

    Parameters
    ----------
    x : array_like, shape (2,)
        Rotation vector to the goal, rad, along two normals of the direction.

    Returns
    -------
    ndarray or casadi.SX, shape (2, 2)
        B, symmetric, with ``B x = x`` and no eigenvalue above 1.

    Examples
    --------
    >>> from concur.groups import s2
    >>> s2.error_map([0.8, 0.0]).round(6)
    array([[1.      , 0.      ],
           [0.      , 0.776971]])
    """
    square = ca.sumsqr(x)
    bend = 4 * inverse_coefficients(4 * square)[0]  # (1 - a cot a) / a^2
    return (1 - bend * square) * ca.SX.eye(2) + bend * (x @ x.T)
