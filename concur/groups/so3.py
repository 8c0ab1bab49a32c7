"""Rotations: SO(3) and its exponential coordinates, the rotation vectors.

A rotation vector `w` has the direction of the axis and the angle as its length, in rad.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Matrix, Vector, evaluated
from concur.groups import quaternion
from concur.groups.stumpff import inverse_coefficients, stumpff


@evaluated("(3)->(3,3)")
def skew(w: Vector) -> Matrix:
    """Return the matrix of the cross product: ``skew(w) @ x = cross(w, x)``.

    Parameters
    ----------
    w : array_like, shape (3,)
        A vector.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        The antisymmetric matrix, an element of so(3).
    """
    zero = ca.SX(1, 1)
    return ca.blockcat([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]])


@evaluated("(3,3)->(3)")
def vee(matrix: Matrix) -> Vector:
    """Return the vector of a matrix of so(3), the inverse of `skew`.

    Parameters
    ----------
    matrix : array_like, shape (3, 3)
        An antisymmetric matrix; a symmetric part is ignored.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        The vector.
    """
    return (
        ca.vertcat(
            matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]
        )
        / 2
    )


@evaluated("(3)->(3,3)")
def exp(w: Vector) -> Matrix:
    """Return the rotation matrix of a rotation vector (2.4.15).

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector, rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        The rotation, from turned to original axes.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import so3
    >>> (so3.exp([0, 0, np.pi / 2]) @ [1, 0, 0]).round(12)
    array([0., 1., 0.])
    """
    _, c1, c2, *_ = stumpff(ca.sumsqr(w))
    turn = skew(w)
    return ca.SX.eye(3) + c1 * turn + c2 * (turn @ turn)


@evaluated("(3,3)->(3)")
def log(rotation: Matrix) -> Vector:
    """Return the rotation vector of a rotation matrix, accurate up to and at the angle pi.

    Parameters
    ----------
    rotation : array_like, shape (3, 3)
        A rotation matrix.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        Rotation vector, rad, of length 0 to pi. At pi, where both signs are right, one of
        them is returned and the derivative is one-sided.

    References
    ----------
    Thesis, Lemma 2.4.3: each rotation has one.

    Examples
    --------
    >>> from concur.groups import so3
    >>> so3.log(so3.exp([0.1, -2.0, 0.3])).round(12)
    array([ 0.1, -2. ,  0.3])
    """
    return quaternion.log(quaternion.from_matrix(rotation))


@evaluated("(3)->(3,3)")
def dexp_body(w: Vector) -> Matrix:
    """Return D(w): the body angular velocity is ``D(w) wdot`` (2.1.4).

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector of ``R = exp(w)``, rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        D with ``R^T Rdot = skew(D wdot)``.
    """
    return dexp_spatial(-w)


@evaluated("(3)->(3,3)")
def dexp_spatial(w: Vector) -> Matrix:
    """Return F(w): the spatial angular velocity is ``F(w) wdot`` (2.4.23, M1).

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector of ``R = exp(w)``, rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        F with ``Rdot R^T = skew(F wdot)``.
    """
    _, _, c2, c3, *_ = stumpff(ca.sumsqr(w))
    turn = skew(w)
    return ca.SX.eye(3) + c2 * turn + c3 * (turn @ turn)


@evaluated("(3)->(3,3)")
def dexp_body_inverse(w: Vector) -> Matrix:
    """Return the inverse of `dexp_body`: ``wdot`` of a body angular velocity.

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector, rad, shorter than 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        ``D(w)^-1``.
    """
    return dexp_spatial_inverse(-w)


@evaluated("(3)->(3,3)")
def dexp_spatial_inverse(w: Vector) -> Matrix:
    """Return the inverse of `dexp_spatial`, also B(w) of the error dynamics.

    Parameters
    ----------
    w : array_like, shape (3,)
        Rotation vector, rad, shorter than 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        ``F(w)^-1 = ad / (exp(ad) - 1)`` with ``ad = skew(w)``.
    """
    g, _ = inverse_coefficients(ca.sumsqr(w))
    turn = skew(w)
    return ca.SX.eye(3) - turn / 2 + g * (turn @ turn)
