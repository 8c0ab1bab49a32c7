"""The classic Runge-Kutta step of fourth order, for expressions and for numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concur.codegen import Array

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
