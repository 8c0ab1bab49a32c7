"""Unit quaternions (x, y, z, w) as coordinates of SO(3).

`q` and ``-q`` are the same rotation. Functions that read a rotation from a quaternion
expect unit norm, except `log` and `normalize`, which accept any norm but zero.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Matrix, Vector, evaluated
from concur.groups.along_matrix import along_matrix
from concur.groups.stumpff import horner, stumpff

SMALL_TANGENT = 0.05
"""Squared tangent of the half angle below which `log` uses the series of the arc tangent."""

ARCTANGENT_SERIES = [(-1) ** i / (2 * i + 1) for i in range(14)]


@evaluated("(4),(4)->(4)")
def multiply(a: Vector, b: Vector) -> Vector:
    """Return the quaternion product, the composition of two rotations.

    Parameters
    ----------
    a, b : array_like, shape (4,)
        Quaternions xyzw.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        ``a o b``: the rotation `b` followed by `a`, as in ``R(a) R(b)``.
    """
    vector = a[3] * b[:3] + b[3] * a[:3] + ca.cross(a[:3], b[:3])
    return ca.vertcat(vector, a[3] * b[3] - ca.dot(a[:3], b[:3]))


@evaluated("(4)->(4)")
def conjugate(q: Vector) -> Vector:
    """Return the conjugate, the inverse rotation of a unit quaternion.

    Parameters
    ----------
    q : array_like, shape (4,)
        Quaternion xyzw.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        ``(-x, -y, -z, w)``.
    """
    return ca.vertcat(-q[:3], q[3])


@evaluated("(4)->(4)")
def normalize(q: Vector) -> Vector:
    """Return the quaternion scaled to unit norm.

    Parameters
    ----------
    q : array_like, shape (4,)
        Quaternion xyzw, not zero.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        ``q / |q|``.
    """
    return q / ca.sqrt(ca.sumsqr(q))


@evaluated("(4)->(3,3)")
def to_matrix(q: Vector) -> Matrix:
    """Return the rotation matrix of a unit quaternion.

    Parameters
    ----------
    q : array_like, shape (4,)
        Unit quaternion xyzw.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        The rotation, from turned to original axes.
    """
    x, y, z, w = ca.vertsplit(q)
    return ca.blockcat(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@evaluated("(3,3)->(4)")
def from_matrix(rotation: Matrix) -> Vector:
    """Return the unit quaternion of a rotation matrix.

    Parameters
    ----------
    rotation : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        Unit quaternion xyzw with ``w >= 0``.
    """
    column = along_matrix(rotation)
    return normalize(_sign(column[3]) * column)


@evaluated("(3)->(4)")
def exp(w: Vector) -> Vector:
    """Return the unit quaternion of a rotation vector.

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector, rad.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        Unit quaternion xyzw; its last entry is the cosine of the half angle.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import quaternion
    >>> quaternion.exp([np.pi, 0, 0]).round(12)
    array([1., 0., 0., 0.])
    """
    c0, c1, *_ = stumpff(ca.sumsqr(w) / 4)
    return ca.vertcat(c1 / 2 * w, c0)


@evaluated("(4)->(3)")
def log(q: Vector) -> Vector:
    """Return the rotation vector of a quaternion, the shorter way round.

    Parameters
    ----------
    q : array_like, shape (4,)
        Quaternion xyzw, not zero; its norm does not matter.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        Rotation vector, rad, of length 0 to pi. At pi (``w = 0``) it points along
        ``(x, y, z)``; there the function jumps and the derivative is one-sided.
    """
    sign = _sign(q[3])
    vector, scalar = sign * q[:3], sign * q[3]
    square = ca.sumsqr(vector)
    small = square < SMALL_TANGENT * scalar**2
    # Each branch gets arguments in its domain, so that no NaN enters a derivative.
    scalar_near = ca.if_else(small, scalar, 1.0)
    tangent_square = ca.if_else(small, square, 0.0) / scalar_near**2
    norm_far = ca.sqrt(ca.if_else(small, 1.0, square))
    factor = ca.if_else(
        small,
        2 / scalar_near * horner(ARCTANGENT_SERIES, tangent_square),
        2 * ca.atan2(norm_far, scalar) / norm_far,
    )
    return factor * vector


@evaluated("(4),(3)->(4)")
def rate(q: Vector, w: Vector) -> Vector:
    """Return the time derivative of a quaternion for a body angular velocity.

    Parameters
    ----------
    q : array_like, shape (4,)
        Unit quaternion xyzw.
    w : array_like, shape (3,)
        Angular velocity in body axes, rad/s.

    Returns
    -------
    ndarray or casadi.SX, shape (4,)
        ``qdot = q o (w, 0) / 2``, 1/s.
    """
    return multiply(q, ca.vertcat(w, ca.SX(1, 1))) / 2


@evaluated("(4),(3)->(3)")
def rotate(q: Vector, x: Vector) -> Vector:
    """Return a vector turned by a unit quaternion.

    Parameters
    ----------
    q : array_like, shape (4,)
        Unit quaternion xyzw.
    x : array_like, shape (3,)
        A vector in turned (body) axes.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        ``R(q) x``, the vector in original (world) axes.

    Examples
    --------
    >>> from concur.groups import quaternion
    >>> quaternion.rotate([0, 0, 1, 0], [1, 2, 3])
    array([-1., -2.,  3.])
    """
    twice = 2 * ca.cross(q[:3], x)
    return x + q[3] * twice + ca.cross(q[:3], twice)


def _sign(x: ca.SX) -> ca.SX:
    return ca.if_else(x < 0, -1.0, 1.0)
