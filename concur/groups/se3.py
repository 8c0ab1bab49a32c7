"""Rigid motions: SE(3) as 4x4 poses, twists ``[v; w]`` and their operators.

`ad` of a twist is ``skew(w)`` over the dual numbers, ``skew(w) + eps skew(v)``. So each
6x6 function of it is ``[[f, f'], [0, f]]``: f of ``skew(w)``, and the derivative of f in
the direction `v`. That derivative holds the Stumpff coefficients below.
"""

from __future__ import annotations

import casadi as ca

from concur.codegen import Matrix, Vector, evaluated
from concur.errors import UnknownNameError, shown
from concur.groups import quaternion as quaternions
from concur.groups import so3
from concur.groups.stumpff import inverse_coefficients, stumpff


@evaluated("(6)->(4,4)")
def hat(twist: Vector) -> Matrix:
    """Return the 4x4 matrix of a twist, an element of se(3).

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``.

    Returns
    -------
    ndarray or casadi.SX, shape (4, 4)
        ``[[skew(w), v], [0, 0]]``.
    """
    return ca.vertcat(ca.horzcat(so3.skew(twist[3:]), twist[:3]), ca.SX(1, 4))


@evaluated("(4,4)->(6)")
def vee(matrix: Matrix) -> Vector:
    """Return the twist of a matrix of se(3), the inverse of `hat`.

    Parameters
    ----------
    matrix : array_like, shape (4, 4)
        An element of se(3); a symmetric part of its 3x3 block is ignored.

    Returns
    -------
    ndarray or casadi.SX, shape (6,)
        ``[v; w]``.
    """
    return ca.vertcat(matrix[:3, 3], so3.vee(matrix[:3, :3]))


@evaluated("(6)->(4,4)")
def exp(twist: Vector) -> Matrix:
    """Return the pose reached by a constant twist in unit time (2.4.14).

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (4, 4)
        The pose.

    References
    ----------
    Thesis, Proposition 2.4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import se3
    >>> se3.exp([np.pi, 0, 0, 0, 0, np.pi])[:3, 3].round(12)
    array([0., 2., 0.])
    """
    v, w = ca.vertsplit(twist, 3)
    return _pose(so3.exp(w), so3.dexp_spatial(w) @ v)


@evaluated("(4,4)->(6)")
def log(pose: Matrix) -> Vector:
    """Return the twist that reaches a pose in unit time.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        A pose.

    Returns
    -------
    ndarray or casadi.SX, shape (6,)
        ``[v; w]``, m and rad, with ``|w|`` from 0 to pi. At pi, where two twists are
        right, one of them is returned and the derivative is one-sided.

    References
    ----------
    Thesis, Proposition 2.4.2: each pose has one.

    Examples
    --------
    >>> from concur.groups import se3
    >>> se3.log(se3.exp([1, 2, 3, 0.4, 0.5, 0.6])).round(12)
    array([1. , 2. , 3. , 0.4, 0.5, 0.6])
    """
    w = so3.log(pose[:3, :3])
    return ca.vertcat(so3.dexp_spatial_inverse(w) @ pose[:3, 3], w)


@evaluated("(4,4)->(4,4)")
def inverse(pose: Matrix) -> Matrix:
    """Return the inverse of a pose.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        A pose, body to world.

    Returns
    -------
    ndarray or casadi.SX, shape (4, 4)
        The pose world to body.
    """
    turned_back = pose[:3, :3].T
    return _pose(turned_back, -turned_back @ pose[:3, 3])


@evaluated("(3),(4)->(4,4)")
def pose(translation: Vector, quaternion: Vector) -> Matrix:
    """Return the pose of a position and a unit quaternion.

    Parameters
    ----------
    translation : array_like, shape (3,)
        Position of the body's origin in the world, m.
    quaternion : array_like, shape (4,)
        Unit quaternion xyzw, body to world.

    Returns
    -------
    ndarray or casadi.SX, shape (4, 4)
        The pose, body to world.
    """
    return _pose(quaternions.to_matrix(quaternion), translation)


@evaluated("(4,4)->(6,6)")
def adjoint(pose: Matrix) -> Matrix:
    """Return Ad of a pose: body to spatial twists.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        A pose, body to world.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        ``[[R, skew(p) R], [0, R]]``.

    References
    ----------
    Thesis, (2.3.9), (2.4.22), Proposition 2.4.5; source 004, (140).
    """
    rotation = pose[:3, :3]
    return _dual(rotation, so3.skew(pose[:3, 3]) @ rotation)


@evaluated("(6)->(6,6)")
def ad(twist: Vector) -> Matrix:
    """Return ad of a twist: ``ad(a) @ b`` is the bracket [a, b].

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        ``[[skew(w), skew(v)], [0, skew(w)]]``.

    References
    ----------
    Source 004, (132).
    """
    v, w = ca.vertsplit(twist, 3)
    return _dual(so3.skew(w), so3.skew(v))


@evaluated("(6)->(6,6)")
def dexp_body(twist: Vector) -> Matrix:
    """Return D: the body twist of ``exp(twist)`` is ``D(twist) @ twist_rate`` (2.1.4).

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        D; singular where ``|w|`` is a nonzero multiple of 2 pi.
    """
    return dexp_spatial(-twist)


@evaluated("(6)->(6,6)")
def dexp_spatial(twist: Vector) -> Matrix:
    """Return F: the spatial twist of ``exp(twist)`` is ``F(twist) @ twist_rate`` (2.3.7).

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``, m and rad.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        F; singular where ``|w|`` is a nonzero multiple of 2 pi.

    Notes
    -----
    The upper right block M2 of (2.4.23) is printed with a slip in the thesis, which shows
    unless ``w . v`` is 0 or ``|w|^2``; the form here is right for all twists.
    """
    v, w = ca.vertsplit(twist, 3)
    _, _, c2, c3, c4, c5 = stumpff(ca.sumsqr(w))
    turn, shift = so3.skew(w), so3.skew(v)
    square = turn @ turn
    along = ca.dot(w, v) * ((2 * c4 - c3) * turn + (3 * c5 - c4) * square)
    coupling = c2 * shift + c3 * (turn @ shift + shift @ turn) + along
    return _dual(ca.SX.eye(3) + c2 * turn + c3 * square, coupling)


@evaluated("(6)->(6,6)")
def dexp_body_inverse(twist: Vector) -> Matrix:
    """Return the inverse of `dexp_body`: the rate of the logarithm for a body twist.

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``, m and rad, with ``|w|`` below 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        ``D(twist)^-1``.

    References
    ----------
    Source 000, (4.10), (4.11).
    """
    return dexp_spatial_inverse(-twist)


@evaluated("(6)->(6,6)")
def dexp_spatial_inverse(twist: Vector) -> Matrix:
    """Return the inverse of `dexp_spatial`, also B(x) of the error dynamics.

    With ``x = log(r^-1 gamma)`` and the velocity error ``ve`` of (5.2.17), the error
    moves by ``xdot = -B(x) ve``.

    Parameters
    ----------
    twist : array_like, shape (6,)
        ``[v; w]``, m and rad, with ``|w|`` below 2 pi.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        ``F(twist)^-1 = ad / (exp(ad) - 1)``.
    """
    v, w = ca.vertsplit(twist, 3)
    g, slope = inverse_coefficients(ca.sumsqr(w))
    turn, shift = so3.skew(w), so3.skew(v)
    square = turn @ turn
    coupling = g * (turn @ shift + shift @ turn) + 2 * ca.dot(w, v) * slope * square
    return _dual(ca.SX.eye(3) - turn / 2 + g * square, coupling - shift / 2)


@evaluated("(4,4),(6)->(6)")
def convert_twist(pose: Matrix, twist: Vector, source: str, target: str) -> Vector:
    """Return a twist in another representation: body, spatial or hybrid.

    ``body`` is ``r^-1 rdot``; ``spatial`` is ``rdot r^-1``, with the velocity of the body-fixed
    point at the origin of the world; ``hybrid`` is the velocity of the body's origin and the
    angular velocity, both in world axes.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        Pose of the body, body to world.
    twist : array_like, shape (6,)
        ``[v; w]``, m/s and rad/s.
    source, target : str
        Representations of the argument and of the result.

    Returns
    -------
    ndarray or casadi.SX, shape (6,)
        ``[v; w]`` of the same motion.

    Raises
    ------
    UnknownNameError
        If a representation is not one of the three.

    Notes
    -----
    ``V_s = Ad_r V_b`` and ``V_h = diag(R, R) V_b``. Source 003 orders twists [angular; linear].

    References
    ----------
    Source 003, (157)-(160), (175).

    Examples
    --------
    >>> import numpy as np
    >>> from concur.groups import se3
    >>> pose = np.eye(4)
    >>> pose[0, 3] = 2.0
    >>> se3.convert_twist(pose, [0, 0, 0, 0, 0, 1], "body", "spatial")
    array([ 0., -2.,  0.,  0.,  0.,  1.])
    """
    return _change(pose, source, target) @ twist


@evaluated("(4,4),(6)->(6)")
def convert_wrench(pose: Matrix, wrench: Vector, source: str, target: str) -> Vector:
    """Return a wrench or a momentum in another representation; power and energy are kept.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        Pose of the body, body to world.
    wrench : array_like, shape (6,)
        ``[f; tau]``, N and N m, or a momentum, kg m/s and kg m^2/s. The moment is about the
        origin of the body (body, hybrid) or of the world (spatial).
    source, target : str
        Representations ``body``, ``spatial`` or ``hybrid`` of the argument and of the result.

    Returns
    -------
    ndarray or casadi.SX, shape (6,)
        The same wrench or momentum.

    Raises
    ------
    UnknownNameError
        If a representation is not one of the three.

    See Also
    --------
    convert_twist : The representations.

    References
    ----------
    Source 003, (157)-(160), (175).
    """
    return _change(pose, target, source).T @ wrench


@evaluated("(4,4),(6,6)->(6,6)")
def convert_inertia(pose: Matrix, inertia: Matrix, source: str, target: str) -> Matrix:
    """Return the mass matrix of a body in another representation; the energy is kept.

    Parameters
    ----------
    pose : array_like, shape (4, 4)
        Pose of the body, body to world.
    inertia : array_like, shape (6, 6)
        Momentum is ``inertia @ twist``; kg, kg m and kg m^2.
    source, target : str
        Representations ``body``, ``spatial`` or ``hybrid`` of the argument and of the result.

    Returns
    -------
    ndarray or casadi.SX, shape (6, 6)
        The mass matrix: constant in the body, a function of the pose in the others.

    Raises
    ------
    UnknownNameError
        If a representation is not one of the three.

    See Also
    --------
    convert_twist : The representations.

    References
    ----------
    Source 003, (84), (85), (94), (95), (114).
    """
    back = _change(pose, target, source)
    return back.T @ inertia @ back


def _change(pose: ca.SX, source: str, target: str) -> ca.SX:
    """Matrix from twists of one representation to those of another."""
    frames = {
        "body": ca.SX.eye(4),
        "spatial": pose,
        "hybrid": _pose(pose[:3, :3], ca.SX(3, 1)),
    }
    for name in (source, target):
        if name not in frames:
            raise UnknownNameError(
                "representation",
                expected=" or ".join(frames),
                came=shown(name),
                cure="Use one of these names.",
            )
    if source == target:
        return ca.SX.eye(6)
    return ca.SX(adjoint(frames[target] @ inverse(frames[source])))


def _pose(rotation: ca.SX, translation: ca.SX) -> ca.SX:
    last = ca.horzcat(ca.SX(1, 3), ca.SX(1.0))
    return ca.vertcat(ca.horzcat(rotation, translation), last)


def _dual(diagonal: ca.SX, upper: ca.SX) -> ca.SX:
    return ca.vertcat(ca.horzcat(diagonal, upper), ca.horzcat(ca.SX(3, 3), diagonal))
