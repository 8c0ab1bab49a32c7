"""Steps by the classic Runge-Kutta tableau of fourth order: on coordinates, or on groups.

"rk4" integrates the coordinates and brings quaternions back to unit norm. "rkmk4" is the
Runge-Kutta-Munthe-Kaas method: the same tableau on the algebra of the joint groups, with the
exact inverse differential of exp, so that configurations stay on their groups by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import casadi as ca

from concur.codegen import Array
from concur.system import System, displacement_rate

_NODES = (0.0, 0.5, 0.5, 1.0)
_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta(
    slope: Callable[..., Sequence[Array]], start: Sequence[Array], h: Array
) -> list[Array]:
    """Take one step.

    Parameters
    ----------
    slope : callable
        Maps the node and the parts of the state to the rates of all parts; the node is the part of
        the step that has passed: 0, 0.5 or 1.
    start : sequence of Array
        Parts of the state at the start.
    h : Array
        Length of the step, s.

    Returns
    -------
    list of Array
        Parts of the state at the end.
    """
    stage: list[Array] = list(start)
    total: list[Array | float] = [0.0] * len(start)
    for k, (node, weight) in enumerate(zip(_NODES, _WEIGHTS, strict=True)):
        rates = slope(node, *stage)
        total = [t + weight * r for t, r in zip(total, rates, strict=True)]
        if k + 1 < len(_NODES):
            stage = [x + _NODES[k + 1] * h * r for x, r in zip(start, rates, strict=True)]
    return [x + h * t for x, t in zip(start, total, strict=True)]


def stepped(
    robot: System,
    method: str,
    rates: Callable[..., Sequence[Array]],
    state: Sequence[Array],
    h: Array | float,
    normalize: Callable[[Array], Array],
    stop: Callable[..., Sequence[Array]] | None = None,
) -> list[Array]:
    """State after a step of a method.

    Parameters
    ----------
    robot : System
        What moves.
    method : str
        "rk4" or "rkmk4".
    rates : callable
        Maps (node, *state) to the rates of all parts of the state but the first.
    state : sequence of casadi.MX
        Parts of the state at the start: configuration, velocity, and further ones.
    h : casadi.MX or float
        Length of the step, s.
    normalize : callable
        Brings a configuration back to its manifold; "rkmk4" does not need it.
    stop : callable, optional
        Maps the state at the end to the jump of the velocity there, by dry friction, and the parts
        of the state behind it.

    Returns
    -------
    list of casadi.MX
        Parts of the state at the end.
    """
    q, *rest = state
    if method == "rk4":
        rate = graph_of(robot.rate, "rate", robot.nq, robot.nv)
        end, *moved = runge_kutta(
            lambda node, q, v, *rest: (rate(q, v), *rates(node, q, v, *rest)), state, h
        )
        end = normalize(end)

        def displaced(q: Array, d: Array) -> Array:
            return normalize(q + rate(q, d))

    else:
        displaced = graph_of(robot.integrate, "integrate", robot.nq, robot.nv)
        sizes = robot.nq, robot.nv, robot.nv
        way_rate = graph_of(partial(displacement_rate, robot), "displacement_rate", *sizes)

        def slope(node: float, d: Array, v: Array, *rest: Array) -> tuple[Array, ...]:
            at = displaced(q, d)
            return way_rate(at, d, v), *rates(node, at, v, *rest)

        way, *moved = runge_kutta(slope, [ca.MX.zeros(robot.nv), *rest], h)
        end = displaced(q, way)
    if stop is None:
        return [end, *moved]
    jump, *others = stop(end, *moved)
    # A force that is constant in the step moves by half of the jump times the step.
    return [displaced(end, h / 2 * jump), moved[0] + jump, *others]


def graph_of(method: Callable[..., Array], name: str, *sizes: int) -> ca.Function:
    """Function over SX of a method that takes columns of these sizes, without checks of numbers."""
    symbols = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    return ca.Function(name, symbols, [ca.densify(method(*symbols))])
