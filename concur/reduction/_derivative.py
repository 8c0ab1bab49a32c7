"""Derivatives with respect to the configuration, also when it is itself an expression."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from concur.codegen import Array, Vector


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
