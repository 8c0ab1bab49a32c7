"""Derivatives with respect to the configuration, also when it is itself an expression."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from concur.codegen import Array, Vector
from concur.robot import Mechanism, inverse_dynamics, solve_positive_definite
from concur.system import System


def along(function: Callable[[Array], Array], q: Vector, rate: Array) -> Array:
    """Directional derivative of a function of the configuration.

    Parameters
    ----------
    function : callable
        Takes q, returns an expression of any shape; what else it uses is held fixed.
    q : casadi.SX
        Where, shape (nq,).
    rate : casadi.SX
        Direction in coordinates, shape (nq,).

    Returns
    -------
    casadi.SX
        Same shape as the function's result; zeros are structural.
    """
    symbol = ca.SX.sym("q", q.shape[0])
    direction = ca.SX.sym("rate", q.shape[0])
    value = ca.SX(function(symbol))
    slope = ca.jtimes(ca.vec(ca.densify(value)), symbol, direction)
    derivative = ca.sparsify(ca.reshape(slope, *value.shape))
    rest = _others(derivative, ca.vertcat(symbol, direction))
    return ca.Function("along", [symbol, direction, rest], [derivative])(q, rate, rest)


def gradient(function: Callable[[Array], Array], q: Vector) -> Array:
    """Gradient of a scalar function of the configuration, in coordinates.

    Parameters
    ----------
    function : callable
        Takes q, returns a scalar expression; what else it uses is held fixed.
    q : casadi.SX
        Where, shape (nq,).

    Returns
    -------
    casadi.SX
        Shape (nq,).
    """
    symbol = ca.SX.sym("q", q.shape[0])
    slope = ca.gradient(function(symbol), symbol)
    rest = _others(slope, symbol)
    return ca.Function("gradient", [symbol, rest], [slope])(q, rest)


def _others(expression: Array, symbols: Array) -> ca.SX:
    """Symbols of an expression that are not among given ones, as a column."""
    others = [x for x in ca.symvar(expression) if not _within(x, symbols)]
    return ca.vertcat(*others) if others else ca.SX(0, 1)


def _within(x: Vector, symbols: Array) -> bool:
    return any(ca.is_equal(x, symbols[i]) for i in range(symbols.shape[0]))


def frame_bracket(system: System, q: Vector, v: Vector, w: Vector) -> Array:
    """Lie bracket of two fields with constant velocities v and w (nv,), in velocities, (nv,).

    A system with a `bracket` has velocities that determine no rate, such as spins of directions.
    """
    own = getattr(system, "factor_velocity", system.rate)
    turned = along(lambda x: own(x, w), q, system.rate(q, v))
    turned -= along(lambda x: own(x, v), q, system.rate(q, w))
    if hasattr(system, "bracket"):
        turned += system.bracket(own(q, v), own(q, w))
    if not ca.SX(turned).nnz():
        return turned
    unit = ca.SX.eye(system.nv)
    frame = ca.horzcat(*[own(q, unit[:, k]) for k in range(system.nv)])
    return solve_positive_definite(frame.T @ frame, frame.T @ turned)


def following_forces(system: System, q: Vector, v: Vector, w: Vector, wdot: Vector) -> Array:
    """Forces M wdot + C(v) w + potential forces, (nv,), on velocities w that follow the motion v.

    C(v) is that of the Levi-Civita connection, (49) of source 004: Mdot = C + C^T, and C(v) v is
    the quadratic part of the bias. Of any system it follows from bias and bracket. With two-spheres
    this holds of velocities, and of forces on them, without spins.
    """
    if isinstance(system, Mechanism):
        return inverse_dynamics(system, q, v, wdot, w)
    still = ca.SX(system.nv, 1)
    both = (system.bias(q, v + w) - system.bias(q, v - w)) / 4
    moved = wdot + frame_bracket(system, q, v, w) / 2
    return system.mass_matrix(q) @ moved + both + system.bias(q, still)
