"""Planar motions: SE(2) in the coordinates (x, y, theta) of the planar joint.

The pose ``(x, y, theta)`` has its origin at ``(x, y)`` in world axes, in m, and is turned
by ``theta``, in rad, which is not wrapped. Planar twists are ``(vx, vy, w)``.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Matrix, Vector, evaluated
from concur.groups.stumpff import inverse_coefficients, stumpff


@evaluated("(3)->(3)")
def exp(twist: Vector) -> Vector:
    """Return the planar pose reached by a constant body twist in unit time.

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        ``(x, y, theta)``, m and rad, with ``theta = w``.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import se2
    >>> se2.exp([np.pi, 0, np.pi]).round(12)
    array([0.        , 2.        , 3.14159265])
    """
    vx, vy, w = ca.vertsplit(twist)
    _, c1, c2, *_ = stumpff(w**2)
    return ca.vertcat(c1 * vx - w * c2 * vy, w * c2 * vx + c1 * vy, w)


@evaluated("(3)->(3)")
def log(pose: Vector) -> Vector:
    """Return the body twist that reaches a planar pose in unit time (2.4.19).

    Parameters
    ----------
    pose : array_like, shape (3,)
        ``(x, y, theta)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        ``(vx, vy, w)``, m and rad, with `w` equal to theta modulo 2 pi in (-pi, pi]; it
        jumps at odd multiples of pi.

    References
    ----------
    Thesis, (2.4.19), (2.4.20).
    """
    x, y, theta = ca.vertsplit(pose)
    w = ca.atan2(ca.sin(theta), ca.cos(theta))
    g, _ = inverse_coefficients(w**2)
    gamma = 1 - w**2 * g
    return ca.vertcat(gamma * x + w / 2 * y, gamma * y - w / 2 * x, w)


@evaluated("(3),(3)->(3)")
def compose(a: Vector, b: Vector) -> Vector:
    """Return the product of two planar poses.

    Parameters
    ----------
    a, b : array_like, shape (3,)
        ``(x, y, theta)``, m and rad; `b` is seen in the frame of `a`.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        The pose `b` seen in the frame of reference of `a`.
    """
    return a + ca.vertcat(_turn(a[2]) @ b[:2], b[2])


@evaluated("(3)->(3)")
def inverse(pose: Vector) -> Vector:
    """Return the inverse of a planar pose.

    Parameters
    ----------
    pose : array_like, shape (3,)
        ``(x, y, theta)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        The pose with ``compose(pose, inverse(pose)) = 0``.
    """
    return -ca.vertcat(_turn(pose[2]).T @ pose[:2], pose[2])


@evaluated("(3),(3)->(3)")
def rate(pose: Vector, twist: Vector) -> Vector:
    """Return the time derivative of the coordinates for a body twist.

    Parameters
    ----------
    pose : array_like, shape (3,)
        ``(x, y, theta)``, m and rad.
    twist : array_like, shape (3,)
        Body twist ``(vx, vy, w)``, m/s and rad/s.

    Returns
    -------
    ndarray or casadi.SX, shape (3,)
        ``(xdot, ydot, thetadot)``, m/s and rad/s.
    """
    return ca.vertcat(_turn(pose[2]) @ twist[:2], twist[2])


@evaluated("(3)->(3,3)")
def adjoint(pose: Vector) -> Matrix:
    """Return Ad of a planar pose: body to spatial twists.

    Parameters
    ----------
    pose : array_like, shape (3,)
        ``(x, y, theta)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        ``[[R, (y, -x)], [0, 1]]``.
    """
    return _upper(_turn(pose[2]), ca.vertcat(pose[1], -pose[0]), ca.SX(1.0))


@evaluated("(3)->(3,3)")
def ad(twist: Vector) -> Matrix:
    """Return ad of a planar twist: ``ad(a) @ b`` is the bracket [a, b].

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        The operator on planar twists.
    """
    vx, vy, w = ca.vertsplit(twist)
    return _upper(_quarter(w), ca.vertcat(vy, -vx), ca.SX(1, 1))


@evaluated("(3)->(3,3)")
def dexp_body(twist: Vector) -> Matrix:
    """Return D: the body twist of ``exp(twist)`` is ``D(twist) @ twist_rate`` (2.1.4).

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        D; singular where `w` is a nonzero multiple of 2 pi.
    """
    return dexp_spatial(-twist)


@evaluated("(3)->(3,3)")
def dexp_spatial(twist: Vector) -> Matrix:
    """Return F: the spatial twist of ``exp(twist)`` is ``F(twist) @ twist_rate`` (2.3.7).

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        F; singular where `w` is a nonzero multiple of 2 pi.
    """
    vx, vy, w = ca.vertsplit(twist)
    _, c1, c2, c3, *_ = stumpff(w**2)
    column = ca.vertcat(c2 * vy + c3 * vx * w, c3 * vy * w - c2 * vx)
    return _upper(c1 * ca.SX.eye(2) + _quarter(w * c2), column, ca.SX(1.0))


@evaluated("(3)->(3,3)")
def dexp_body_inverse(twist: Vector) -> Matrix:
    """Return the inverse of `dexp_body`.

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``, m and rad, the angle below 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        ``D(twist)^-1``.
    """
    return dexp_spatial_inverse(-twist)


@evaluated("(3)->(3,3)")
def dexp_spatial_inverse(twist: Vector) -> Matrix:
    """Return the inverse of `dexp_spatial`, also B(x) of the error dynamics.

    Parameters
    ----------
    twist : array_like, shape (3,)
        ``(vx, vy, w)``, m and rad, the angle below 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (3, 3)
        ``F(twist)^-1 = ad / (exp(ad) - 1)``.
    """
    vx, vy, w = ca.vertsplit(twist)
    g, _ = inverse_coefficients(w**2)
    column = ca.vertcat(g * vx * w - vy / 2, g * vy * w + vx / 2)
    return _upper((1 - w**2 * g) * ca.SX.eye(2) - _quarter(w / 2), column, ca.SX(1.0))


def _turn(theta: ca.SX) -> ca.SX:
    cosine, sine = ca.cos(theta), ca.sin(theta)
    return ca.blockcat([[cosine, -sine], [sine, cosine]])


def _quarter(scale: ca.SX) -> ca.SX:
    return ca.blockcat([[ca.SX(1, 1), -scale], [scale, ca.SX(1, 1)]])


def _upper(block: ca.SX, column: ca.SX, corner: ca.SX) -> ca.SX:
    return ca.vertcat(ca.horzcat(block, column), ca.horzcat(ca.SX(1, 2), corner))
